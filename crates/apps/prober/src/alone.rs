//! What nobody at the far end has to cooperate in: one IP version after the other, as two at a time
//! would be each other's traffic.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use netaware_io::clock;
use netaware_io::hop_socket::{EchoAccess, HopSocket};
use netaware_io::stop::StopFlag;
use netaware_io::zone::ZonedIp;
use netaware_record::{Record, Unreachable, VersionResult};
use netaware_stats::ceasing::Ceased;
use netaware_units::Span;

use crate::broke_off;
use crate::own_absence;
use crate::progress::{Progress, Watch};
use crate::report;
use crate::request::Target;
use crate::resolve::resolve;
use crate::stage::{Cause, Failure, OWN_HOST};

/// What to do alone.
pub(crate) struct Alone<'a> {
    pub(crate) command: &'static str,
    pub(crate) target: &'a Target,
    /// As the record tells them.
    pub(crate) options: BTreeMap<String, String>,
    /// What the whole may take, shared out over the versions.
    pub(crate) time: Span,
    pub(crate) stop: &'a StopFlag,
}

/// One version's turn.
pub(crate) struct Turn<'a, 'w> {
    pub(crate) socket: HopSocket,
    pub(crate) destination: SocketAddr,
    /// What it may take.
    pub(crate) time: Span,
    pub(crate) result: &'a mut VersionResult,
    pub(crate) stop: &'a StopFlag,
    pub(crate) watch: &'a mut Watch<'w>,
}

impl Alone<'_> {
    /// Has `over` fill in the result of each version that can be probed.
    pub(crate) fn run(
        self,
        progress: &mut dyn FnMut(Progress),
        mut over: impl FnMut(&mut Turn<'_, '_>),
    ) -> Record {
        let Self { command, target, options, time, stop } = self;
        let opened = report::Opening::now(command, target, options);
        let deadline = clock::now() + time;
        let mut watch = Watch::new(time, progress);
        watch.phase("look up", None);
        let resolved = resolve(target);
        watch.foretell(time);
        let (mut warnings, mut locals) = (Vec::new(), Vec::new());
        let mut versions: Vec<VersionResult> = Vec::new();
        for (done, version) in target.versions.iter().copied().enumerate() {
            let mut result = VersionResult::new(version);
            let address = match &resolved {
                Ok(resolved) => resolved.address(version),
                Err(failure) => Err(failure.clone()),
            };
            let left = i64::try_from(target.versions.len() - done).unwrap_or(1);
            let time = (deadline - clock::now()).or_zero() / left;
            match address {
                Err(failure) => result.unreachable = Some(failure.unreachable()),
                Ok(_) if stop.is_raised() => {
                    result.unreachable = Some(Failure::new("probe", None, Cause::Stopped).unreachable());
                }
                Ok(destination) => {
                    result.address = Some(ZonedIp::of(destination).to_string());
                    if let Some(socket) = open(target, destination, &mut result, &mut warnings) {
                        let (result, watch) = (&mut result, &mut watch);
                        let mut turn = Turn { socket, destination, time, result, stop, watch };
                        let ((), away) = own_absence::watching(|| over(&mut turn));
                        let stopped = own_absence::in_words(away, "what was due then was not asked");
                        warnings.extend(stopped.map(|text| format!("{}: {text}", version.name())));
                        let local = turn.socket.local();
                        turn.result.local = local.map(|local| local.to_string());
                        locals.extend(local);
                    }
                }
            }
            versions.push(result);
        }
        report::finish_alone(opened, versions, warnings, &locals, stop)
    }
}

impl Turn<'_, '_> {
    /// Whether echoes may be sent.
    pub(crate) fn echo(&self) -> bool {
        *self.socket.echo() == EchoAccess::Granted
    }

    /// Largest IP packet that goes out of this host whole, as far as it is a usual size; bytes.
    pub(crate) fn largest(&self) -> u32 {
        self.socket.mtu().unwrap_or(USUAL_MTU).clamp(LEAST_MTU, USUAL_MTU)
    }

    /// This host let nothing out.
    pub(crate) fn sends_nothing(&mut self, errno: i32) {
        let to = ZonedIp::of(self.destination);
        let reason = format!("nothing could be sent to {to}: {}", report::refusal(errno));
        self.is_silent(reason, OWN_HOST);
    }

    /// Somebody answered, and then no more until the end.
    pub(crate) fn breaks_off(&mut self, ceased: &Ceased) {
        let refused = self.socket.counts().refused.map(report::refusal);
        let local = self.socket.local();
        self.result.unreachable = Some(broke_off::unreachable(ceased, "questions", local, None, refused));
    }

    /// The advice to give where nobody answered: `usual`, unless this host knows the reason.
    pub(crate) fn advice_on_silence(&self, usual: &'static str) -> &'static str {
        if self.socket.counts().no_neighbour > 0 { NO_NEIGHBOUR } else { usual }
    }

    /// Nobody answered.
    pub(crate) fn is_silent(&mut self, reason: String, advice: &str) {
        let (stage, advice) = ("probe".to_owned(), advice.to_owned());
        self.result.unreachable = Some(Unreachable { stage, reason, advice });
    }
}

const NO_NEIGHBOUR: &str = "nobody on this host's own link answers for that address or for the next router (ARP or \
                            neighbour discovery had no answer): check the address, and whether that host is up";

fn open(
    target: &Target,
    destination: SocketAddr,
    result: &mut VersionResult,
    warnings: &mut Vec<String>,
) -> Option<HopSocket> {
    match HopSocket::open(destination, &target.options) {
        Ok(socket) => {
            if let EchoAccess::Refused(why) = socket.echo() {
                warnings.push(format!("{}: {}", result.version.name(), no_echo(why)));
            }
            Some(socket)
        }
        Err(error) => {
            result.unreachable = Some(Unreachable {
                stage: "probe".to_owned(),
                reason: error.to_string(),
                advice: advice_on_opening(target.options.interface.as_deref()).to_owned(),
            });
            None
        }
    }
}

/// What to check where no socket could be had, by the interface that was asked for.
fn advice_on_opening(interface: Option<&str>) -> &'static str {
    if interface.is_some_and(|name| netaware_io::zone::index(name).is_none()) {
        "check the name of the interface"
    } else {
        "check that this host has an address and a route of this version"
    }
}

/// What is missing without echoes, and what to do about it.
fn no_echo(why: &str) -> String {
    format!(
        "no ICMP echo ({why}): a destination that ignores UDP stays silent; CAP_NET_RAW, or a group of yours in \
         net.ipv4.ping_group_range, gives it"
    )
}

/// UDP's header, bytes.
pub(crate) const UDP_HEADER: u32 = 8;
const USUAL_MTU: u32 = 1500;
const LEAST_MTU: u32 = 576;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_does_not_exist_is_not_called_a_missing_route() {
        assert!(advice_on_opening(Some("no-such-interface")).contains("name of the interface"));
        assert!(advice_on_opening(None).contains("route"));
    }
}
