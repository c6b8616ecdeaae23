//! `netaware probe`: watches packets, alone or for a collector.

mod export;
mod fleet;
mod print;
mod tasks;

use std::net::IpAddr;
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, anyhow, bail};
use clap::{ArgGroup, Args, ValueEnum};
use netaware_capture::{Keep, Merging, Options, drop_capabilities, drop_privileges, is_root, stamp_by_nic};
use netaware_confine::{Confinement, Programs};
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_ipfix::Target;
use netaware_observer::active::stamp;
use netaware_observer::ground::{Host, Replay, give, reaches};
use netaware_observer::link::{CollectorAddress, Said};
use netaware_observer::probe::{Ground, Probe as Observer, ProbeSettings};
use netaware_record::passive::ClockState;
use netaware_units::{ByteCount, ClockSource, Span};
use netaware_wire::lmap::{self, Instruction};
use netaware_wire::packet::Tunnels;

use self::export::Outlets;
use self::print::Form;
use self::tasks::TaskFlags;
use crate::confinement;
use crate::exit::Exit;
use crate::flags::logging::Logging;
use crate::flags::{key, quantity};
use crate::signals;

const LONG: &str = "\
Watches the packets of an interface, or of a capture file, and says what they tell: who sends how much, at what rate, how far away \
others are. Alone it prints what it finds, period by period. With --collector it gets its tasks from a collector, and its \
reports stay on disk until the collector has them. With --export it sends what it finds as IPFIX to anybody's collector: flows, and \
packet reports (PSAMP) of digest tasks.

Capturing needs CAP_NET_RAW: root, or 'setcap cap_net_raw+ep' on the program. Started by root a probe becomes the user 'nobody' as \
soon as its files are open. Reading a file needs no privilege.";

const AFTER: &str = "\
Examples:
  netaware probe                              packets and bytes, each second
  netaware probe -i eth0 volume --by source   who sends how much
  netaware probe -i eth0 traffic rtt --period 10s --for 10min
  netaware probe -i eth0 -f 'tcp port 443' rtt --format ndjson
  netaware probe --read file.pcap volume --by source,destination,protocol
  netaware probe --export udp://192.0.2.7:9995          flows, as nfcapd and others take them
  netaware probe --export tls://flows.example --ca ca.pem volume digest --period 10s
  netaware probe --collector tls://collect.example --name bern --key-file key

A key file holds any text of up to 1024 bytes; the collector has the same one under this probe's name.

Exit codes:
  0  ended by a signal, by --for, or by the end of the file
  2  could not watch, not all of a file could be exported, or the command line is wrong";

const REPORTS: &str = "Reports";
const FLEET: &str = "Fleet";
const CAPTURE: &str = "Capture";

/// Watch packets, alone or for a collector
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
#[command(group = ArgGroup::new("receiver").args(["collector", "export"]))]
pub(crate) struct Probe {
    #[command(flatten)]
    tasks: TaskFlags,
    /// Watch this interface [default: the first that is up; for a collector, all] (may be given
    /// several times with --collector)
    #[arg(short, long, value_name = "NAME", help_heading = CAPTURE)]
    interface: Vec<String>,
    /// Read this pcap or pcapng file instead
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["interface", "collector", "lasting"], help_heading = CAPTURE)]
    read: Option<PathBuf>,
    /// Bytes kept of each packet
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = quantity::whole::<u32>(64..=65_535), help_heading = CAPTURE)]
    snap: u32,
    /// Memory in which packets wait to be looked at, of each ring
    #[arg(long, value_name = "SIZE", default_value = "32MiB", help_heading = CAPTURE)]
    ring: ByteCount,
    /// Rings that share the packets of an interface, each with a thread and tasks of its own: for
    /// rates beyond one core. Both directions of a flow are in one ring
    #[arg(long, value_name = "N", default_value_t = NonZeroU8::MIN, value_parser = rings, conflicts_with = "read", help_heading = CAPTURE)]
    rings: NonZeroU8,
    /// Who stamps received packets: kernel, or nic for the card's own clock, which ptp4l should
    /// keep
    #[arg(long, value_enum, value_name = "WHO", default_value_t, hide_possible_values = true, conflicts_with = "read", help_heading = CAPTURE)]
    stamps: Stamper,
    /// Also packets that are addressed to others
    #[arg(long, help_heading = CAPTURE)]
    promiscuous: bool,
    /// Look into tunnels: gre, ip, vxlan, gtp
    #[arg(long, value_name = "KIND[,KIND…]", help_heading = CAPTURE)]
    tunnels: Option<Tunnels>,
    /// Do not watch interfaces that merge packets (GRO, LRO, TSO, GSO); without this such frames
    /// are counted as merged
    #[arg(long, help_heading = CAPTURE)]
    refuse_merged: bool,
    /// Length of a period; periods are aligned to the clock
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = period, conflicts_with = "collector", help_heading = REPORTS)]
    period: Span,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::some_seconds, help_heading = REPORTS)]
    lasting: Option<Span>,
    /// How to print: text, json, ndjson [default: text; with --export nothing is printed]
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true, conflicts_with = "collector", help_heading = REPORTS)]
    format: Option<Form>,
    /// Send flows and packet reports as IPFIX to this collector: tcp://HOST:PORT, tls://HOST:PORT
    /// or udp://HOST:PORT (may be given several times)
    #[arg(short, long, value_name = "URL", conflicts_with = "collector", help_heading = REPORTS)]
    export: Vec<Target>,
    /// Get tasks from this collector: HOST, HOST:PORT or tls://HOST:PORT; further ones each get
    /// their part of the digests
    #[arg(short, long, value_name = "ADDR", requires = "name", help_heading = FLEET)]
    collector: Vec<CollectorAddress>,
    /// Name of this probe in the fleet: a-z, 0-9 and -
    #[arg(short, long, value_name = "NAME", value_parser = name, requires = "collector", help_heading = FLEET)]
    name: Option<String>,
    /// File with this probe's key; the variable NETAWARE_KEY can hold the key instead
    #[arg(long, value_name = "FILE", requires = "collector", help_heading = FLEET)]
    key_file: Option<PathBuf>,
    /// PEM file of the authority that signed the collector's certificate
    #[arg(long, value_name = "FILE", requires = "receiver", conflicts_with = "fingerprint", help_heading = FLEET)]
    ca: Option<PathBuf>,
    /// SHA-256 of the collector's certificate, 64 hexadecimal digits
    #[arg(long, value_name = "HEX", requires = "receiver", help_heading = FLEET)]
    fingerprint: Option<String>,
    /// PEM file of this probe's own certificate; for --collector its name has to be the probe's
    #[arg(long, value_name = "FILE", requires_all = ["receiver", "certificate_key"], help_heading = FLEET)]
    certificate: Option<PathBuf>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE", requires = "certificate", help_heading = FLEET)]
    certificate_key: Option<PathBuf>,
    /// Folder for reports that were not taken yet
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/netaware/probe", help_heading = FLEET)]
    state: PathBuf,
    /// Room for them on disk; the oldest go when it is full, and are counted
    #[arg(long, value_name = "SIZE", default_value = "256MiB", help_heading = FLEET)]
    buffer: ByteCount,
    /// Address by which other probes reach this one (may be given several times)
    #[arg(long, value_name = "ADDR", requires = "collector", help_heading = FLEET)]
    address: Vec<IpAddr>,
    /// Started by root, become this user once the files are open [default: nobody]
    #[arg(long, value_name = "USER", help_heading = CAPTURE)]
    user: Option<String>,
    #[command(flatten)]
    logging: Logging,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Stamper {
    /// The kernel, by the host's clock
    #[default]
    Kernel,
    /// The network card, by its own
    Nic,
}

impl From<Stamper> for ClockSource {
    fn from(stamper: Stamper) -> Self {
        match stamper {
            Stamper::Kernel => Self::Kernel,
            Stamper::Nic => Self::Nic,
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    let wrong = || "a probe's name is 1 to 63 of a-z, 0-9 and '-'".to_owned();
    lmap::is_name(text).then(|| text.to_owned()).ok_or_else(wrong)
}

fn rings(text: &str) -> Result<NonZeroU8, String> {
    let rings = quantity::whole::<u8>(1..=255)(text)?;
    NonZeroU8::new(rings).ok_or_else(|| "it must be more than zero".to_owned())
}

fn period(text: &str) -> Result<Span, String> {
    let span = quantity::some_seconds(text)?;
    let fits = (Span::from_millis(100)..=Span::from_secs(3600)).contains(&span);
    if fits { Ok(span) } else { Err("it is 100ms to 1h".to_owned()) }
}

impl Probe {
    /// Refuses options of a fleet without a collector. The parser does not miss `--collector` where
    /// another option excludes it.
    fn check(&self) -> anyhow::Result<()> {
        let given = [("--name", self.name.is_some()), ("--address", !self.address.is_empty())];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) if self.collector.is_empty() => {
                bail!("{option} is for a probe of a fleet: leave it out, or name the --collector")
            }
            _ => Ok(()),
        }
    }

    /// Watches until a signal, the given time or the file's end.
    ///
    /// # Errors
    /// There is nothing to watch, or no way to do it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        self.check()?;
        self.logging.start()?;
        let stop = StopFlag::new();
        match (&self.read, self.collector.is_empty()) {
            (Some(file), _) => {
                // Whoever made the file may be nobody's friend: it is read without a privilege.
                let (file, seed) = (Replay::open(file)?, self.tasks.seed()?);
                Self::confine(&self.alone_needs(), &stop)?;
                let outlet = self.outlet(&stop)?;
                self.drop_privileges(Keep::Nothing, &[])?;
                self.alone(file, outlet, seed, &stop)
            }
            (None, true) => {
                let (host, seed) = (self.host()?, self.tasks.seed()?);
                Self::confine(&self.alone_needs(), &stop)?;
                let outlet = self.outlet(&stop)?;
                self.switch_stamps_on(host.interfaces().into_iter().take(1))?;
                self.drop_privileges(Keep::RawSockets, &[])?;
                self.alone(host, outlet, seed, &stop)
            }
            (None, false) => self.in_fleet(&stop),
        }
    }

    /// Confines this program, which has opened all else. Threads come after that, those that hear
    /// signals being the first.
    fn confine(needs: &Confinement, stop: &StopFlag) -> anyhow::Result<()> {
        confinement::log(&needs.enter());
        let flag = stop.clone();
        let end = move |by| {
            tracing::info!("{by}: ending; what was seen so far is reported");
            flag.raise();
        };
        signals::listen_and(end, |_| ())
    }

    /// What a probe without a collector needs: the file that it reads, and by what a collector is
    /// known, since exporters, which are threads, begin afterwards.
    fn alone_needs(&self) -> Confinement {
        let reads = [&self.read, &self.ca, &self.certificate, &self.certificate_key];
        Confinement {
            reads: reads.into_iter().flatten().cloned().collect(),
            sockets: if self.read.is_some() { Vec::new() } else { sockets_of_clocks() },
            ..Confinement::default()
        }
    }

    /// What a probe of a fleet needs: its buffers, and this program for measurements, which are
    /// programs of their own.
    fn fleet_needs(folders: &[PathBuf]) -> Confinement {
        Confinement {
            writes: folders.to_vec(),
            sockets: sockets_of_clocks(),
            programs: Some(Programs::this_one("this program measures as a program of its own")),
            ..Confinement::default()
        }
    }

    /// The certificate that this probe shows and the file of its private key.
    fn own_certificate(&self) -> Option<(&Path, &Path)> {
        let own = self.certificate.as_deref().zip(self.certificate_key.as_deref());
        if let Some((_, secret)) = own {
            key::warn_if_exposed(secret);
        }
        own
    }

    fn host(&self) -> anyhow::Result<Host> {
        let all = Host::all();
        for wanted in &self.interface {
            if !all.contains(wanted) {
                bail!("there is no interface '{wanted}'; there are: {}", all.join(", "));
            }
        }
        let options = Options {
            snap: self.snap,
            ring: self.ring,
            promiscuous: self.promiscuous,
            stamps: self.stamps.into(),
            merging: if self.refuse_merged { Merging::Refuse } else { Merging::Count },
            ..Options::new(String::new())
        };
        Ok(Host { options, rings: self.rings.into(), only: self.interface.clone() })
    }

    /// Prints or exports what it finds.
    fn alone<G: Ground>(
        &self,
        ground: G,
        outlet: Outlets,
        seed: String,
        stop: &StopFlag,
    ) -> anyhow::Result<Exit> {
        let settings = self.settings("here".to_owned(), Arc::default())?;
        let is_file = self.read.is_some();
        let (mut probe, reporting) = Observer::new(ground, settings, outlet, self.period)?;
        probe.follow(Instruction {
            number: 1,
            tasks: self.tasks().into_iter().collect(),
            suppression: None,
            seed,
            period_ms: (self.period.0 / 1_000_000) as u32,
        });
        if let Some((task, why)) = probe.refused().first_key_value() {
            let why = anyhow!("{task}: {why}");
            probe.end();
            return Err(why);
        }
        let until = self.lasting.map(|span| clock::now() + span);
        while !(stop.is_raised() || is_file && probe.is_finished())
            && until.is_none_or(|until| clock::now() < until)
        {
            if is_file {
                clock::sleep(Span::from_millis(5));
            } else {
                clock::sleep(Span::from_millis(50));
                probe.tick();
            }
        }
        let failed = probe.end();
        let ended = reporting.join().context("the reporting thread panicked")?.end();
        match (ended, failed) {
            (Err(error), _) => Err(error),
            (Ok(_), Some(why)) if is_file => Err(anyhow!(why)),
            (Ok(lost), None) if is_file && lost > 0 => {
                bail!("not all was exported: {lost} batches or datagrams were lost")
            }
            (Ok(_), _) => Ok(Exit::Done),
        }
    }

    fn settings(&self, name: String, said: Arc<Mutex<Said>>) -> anyhow::Result<ProbeSettings> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).context("no random numbers")?;
        let here = name.clone();
        let clock = self.clock();
        Ok(ProbeSettings {
            name,
            tunnels: self.tunnels.unwrap_or_default(),
            clock,
            stamp: Arc::new(move |what, period, stop, finds| stamp::flow(&here, what, period, stop, finds)),
            random: u64::from_ne_bytes(random),
            said,
        })
    }

    /// Tells the state of the clock that stamps.
    fn clock(&self) -> Box<dyn FnMut() -> ClockState + Send> {
        if self.read.is_some() {
            // Which clock stamped the packets of a file nobody knows, and this host's has nothing
            // to do with them.
            return Box::new(|| ClockState { source: "none".to_owned(), ..ClockState::default() });
        }
        let mut watch = netaware_observer::clock::ClockWatch::new();
        let nic = self.stamps == Stamper::Nic;
        Box::new(move || if nic { of_card(watch.state()) } else { watch.state() })
    }

    /// Has cards stamp while that is still allowed; it stays on.
    fn switch_stamps_on(&self, interfaces: impl Iterator<Item = String>) -> anyhow::Result<()> {
        if self.stamps == Stamper::Nic {
            for interface in interfaces {
                stamp_by_nic(&interface)?;
            }
        }
        Ok(())
    }

    /// Gives privileges back. Folders that are written to later are given to the user first.
    fn drop_privileges(&self, keep: Keep, folders: &[PathBuf]) -> anyhow::Result<()> {
        let user = self.user.as_deref().unwrap_or("nobody");
        if !is_root() {
            // Who is not root has nothing but capabilities to give back.
            return Ok(drop_capabilities(keep)?);
        }
        for folder in folders {
            give(folder, user).with_context(|| format!("cannot give {} to {user}", folder.display()))?;
        }
        let Some(closed) = folders.iter().find(|folder| !reaches(user, folder)) else {
            return drop_privileges(user, keep).context("--user names whom to become instead");
        };
        let closed = closed.display();
        if self.user.is_some() {
            bail!("{user} cannot reach {closed}, because a folder above it is closed; give another --state");
        }
        tracing::warn!("{user} cannot reach {closed}: this stays root, without its capabilities");
        for folder in folders {
            give(folder, "root").with_context(|| format!("cannot take {} back", folder.display()))?;
        }
        Ok(drop_capabilities(keep)?)
    }
}

/// Folders in which chronyd and ptp4l are asked: who asks has a socket beside theirs.
fn sockets_of_clocks() -> Vec<PathBuf> {
    let ptp4l = ["/var/run/ptp4lro", "/var/run/ptp4l"].into_iter().any(|socket| Path::new(socket).exists());
    let of_ptp4l = ptp4l.then(|| PathBuf::from("/var/run"));
    std::iter::once(PathBuf::from("/run/chrony")).chain(of_ptp4l).collect()
}

/// What this host's state says of the clock of a card: something only where ptp4l keeps that one,
/// and never that it is the clock by which others of this host stamp.
fn of_card(host: ClockState) -> ClockState {
    if host.source == "ptp4l" {
        ClockState { identity: None, ..host }
    } else {
        ClockState { source: "none".to_owned(), ..ClockState::default() }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use netaware_wire::lmap::What;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        probe: Probe,
    }

    pub(super) fn probe(words: &str) -> Result<Probe, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.probe).map_err(|error| error.to_string())
    }

    #[test]
    fn without_a_word_it_counts_packets() {
        let tasks = probe("").unwrap().tasks.tasks();
        assert_eq!(tasks.len(), 1);
        assert!(matches!(&tasks[0].1.what, What::Volume { by, .. } if by.is_empty()));
    }

    /// A probe reads what strangers send. One that is taken over has no file beside its buffers.
    #[test]
    fn a_probe_keeps_its_buffers_and_what_it_was_given_to_read_and_no_other_file() {
        let needs = |line: &str| probe(line).unwrap().alone_needs();
        let file = needs("--read f.pcap volume");
        assert_eq!(file.reads, [PathBuf::from("f.pcap")]);
        assert!(file.writes.is_empty() && file.sockets.is_empty());
        assert!(file.programs.is_none());
        let exporting = needs("--export tls://a --ca ca.pem volume");
        assert_eq!(exporting.reads, [PathBuf::from("ca.pem")]);
        assert!(exporting.writes.is_empty() && exporting.programs.is_none());
        let fleet = Probe::fleet_needs(&["buffer".into()]);
        assert_eq!(fleet.writes, [PathBuf::from("buffer")]);
        assert!(fleet.reads.is_empty() && fleet.programs.is_some(), "measurements are programs");
    }

    #[test]
    fn several_tasks_share_one_filter_and_are_within_the_bounds_of_instructions() {
        let line = "-i eth0 rtt volume traffic volume --by source,dscp --prefix 24,64 -f tcp --slice 50ms";
        let tasks = probe(line).unwrap().tasks.tasks();
        assert_eq!(
            tasks.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["volume", "traffic", "rtt"]
        );
        assert!(tasks.iter().all(|(_, task)| task.filter.as_deref() == Some("tcp") && task.check().is_ok()));
        assert!(matches!(tasks[0].1.what, What::Volume { prefix: Some((24, 64)), .. }));
    }

    #[test]
    fn wrong_lines_say_what_is_wrong() {
        let wrong = |line: &str| probe(line).unwrap_err();
        assert!(wrong("volume --by colour").contains("colour"));
        assert!(wrong("--collector x --name Bern").contains("1 to 63 of a-z"));
        assert!(wrong("--collector http://x --name bern").contains("tls://HOST:PORT"));
        assert!(wrong("--collector x").contains("--name"));
        assert!(wrong("--read f --collector x --name bern").contains("cannot be used with"));
        assert!(wrong("volume --period 1ms").contains("100ms to 1h"));
        assert!(wrong("volume --rings 0").contains("it must be a whole number from 1 to 255"));
        assert!(wrong("digest --share x").contains("it must be a share above 0 and up to 1"));
        assert!(wrong("digest --share 2").contains("it must be a share above 0 and up to 1"));
        assert!(probe("digest --share 25% --rings 2").is_ok());
        assert!(wrong("--key-file k").contains("--collector"));
        let unused = |line: &str| probe(line).map_err(anyhow::Error::msg).and_then(|probe| probe.check());
        assert!(
            unused("volume --name bern")
                .unwrap_err()
                .to_string()
                .contains("--name is for a probe of a fleet")
        );
        assert!(unused("--read f --address 192.0.2.1 --name a").is_err());
        assert!(unused("--collector x --name bern --address 192.0.2.1").is_ok());
        assert!(wrong("--ca f").contains("--export"));
        assert!(wrong("--export collector:4739").contains("tcp://, tls:// or udp://"));
        assert!(wrong("--export udp://a --collector x --name bern").contains("cannot be used with"));
    }

    #[test]
    fn a_cards_clock_is_vouched_for_by_ptp4l_alone_and_is_not_the_hosts() {
        let host = |source: &str| ClockState {
            source: source.to_owned(),
            synchronised: true,
            bound: Some(Span(5)),
            identity: Some("boot".to_owned()),
            ..ClockState::default()
        };
        let chrony = of_card(host("chrony"));
        assert_eq!((chrony.source.as_str(), chrony.synchronised, chrony.bound), ("none", false, None));
        let ptp = of_card(host("ptp4l"));
        assert_eq!((ptp.source.as_str(), ptp.bound, ptp.identity), ("ptp4l", Some(Span(5)), None));
    }

    #[test]
    fn an_unknown_interface_is_told_with_those_there_are() {
        let error = probe("-i nonesuch0").unwrap().host().unwrap_err().to_string();
        assert!(
            error.contains("nonesuch0") && error.contains("there are: ") && error.contains("lo"),
            "{error}"
        );
    }
}
