//! What was being tried when something failed, and the sentence a person gets.

use std::fmt;
use std::net::SocketAddr;

use netaware_record::Unreachable;
use netaware_units::Span;
use netaware_wire::control::{ErrorCode, MAX_ROUND_TRIP};
use netaware_wire::stranger::Stranger;

/// Why a version cannot be measured, or not any further.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    /// What was being tried.
    pub(crate) stage: &'static str,
    /// Where.
    pub(crate) at: Option<SocketAddr>,
    /// What happened.
    pub(crate) cause: Cause,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cause {
    /// The name has no address of this version.
    NoAddress(String),
    /// The resolver failed.
    Resolve(String),
    /// The address cannot be measured to, and what to type instead.
    Address(String),
    /// The system's answer to a call.
    System(String),
    /// This host let nothing out, and the system's reason.
    NotSent(String),
    /// One connection of the measurement stands still while the session goes on.
    Unanswered(String),
    /// Nobody listens.
    ConnectionRefused,
    /// No answer at all.
    Silent(Span),
    /// A round trip takes longer than sessions can bear.
    TooFar(Span),
    /// Another program listens.
    Stranger(Stranger),
    /// The responder said no.
    Refused(ErrorCode, String),
    /// It gave up a test that was not begun in time: its reason.
    NotBegun(String),
    /// The responder wants a key, and none was given.
    KeyNeeded,
    /// The responder could not prove that it knows the key.
    FalseResponder,
    /// The control connection ended.
    Lost(String),
    /// Nothing has been heard on the control connection for so long.
    Unheard(Span),
    /// The same over both IP versions within the same seconds.
    UnheardOverBoth(Span),
    /// The connection ended because this host has lost what it went by.
    Cut(String),
    /// The connection ended, and this host lets nothing out to the responder: why.
    Barred(String),
    /// The session ended because this host did not run the program for so long.
    Away(Span),
    /// The responder is stopping.
    Stopping(String),
    /// The responder answers over TCP, but none of our UDP comes back.
    UdpBlocked,
    /// The responder answers over TCP, and somebody on the path rejects our UDP: the system's
    /// error for it.
    UdpRejected(String),
    /// UDP was answered before, at least so many times, and is answered no longer, while TCP is;
    /// the system's error, if somebody on the path rejects it now.
    UdpCeased(u64, Option<String>),
    /// So many questions over UDP had no answer on a path that had lost so many of so many
    /// requests.
    UdpLost { questions: usize, lost: u64, of: u64 },
    /// Nothing came over UDP for so long, and a round trip takes this long now.
    UdpTooSlow { waited: Span, round_trip: Span },
    /// A connection was closed or turned away after so long that attaching it was out of time.
    AttachTimedOut(String),
    /// Nothing has come over UDP for so long, nor over TCP.
    UdpAndTcpSilent(Span),
    /// The responder broke the protocol.
    Protocol(String),
    /// The person asked to stop.
    Stopped,
}

impl Cause {
    /// What the responder refused, of one test where it names that.
    pub(crate) fn refused(code: ErrorCode, why: String, test: Option<u32>) -> Self {
        match (code, test) {
            (ErrorCode::Timeout, Some(_)) => Self::NotBegun(why),
            _ => Self::Refused(code, why),
        }
    }
}

impl Failure {
    pub(crate) fn new(stage: &'static str, at: Option<SocketAddr>, cause: Cause) -> Self {
        Self { stage, at, cause }
    }

    /// As the record tells it.
    pub(crate) fn unreachable(&self) -> Unreachable {
        Unreachable {
            stage: self.stage.to_owned(),
            reason: self.to_string(),
            advice: self.advice().to_owned(),
        }
    }

    /// What to try; empty where nothing is known.
    pub(crate) fn advice(&self) -> &'static str {
        match &self.cause {
            Cause::NoAddress(_) => "give the other version's address, or add the missing DNS record",
            Cause::Resolve(_) => "check the name, or give an address",
            Cause::ConnectionRefused => "start 'netaware serve' on that host, or name its port with --port",
            Cause::Silent(_) if self.stage == "connect" => {
                "check that the host is up and that no firewall drops TCP and UDP on that port; a path whose round trip \
                 is longer needs a longer --connect-timeout"
            }
            Cause::Silent(_) => {
                "check that the host is up and that no firewall, of this host or on the way, drops TCP and UDP on that port"
            }
            Cause::NotSent(_) | Cause::Barred(_) => OWN_HOST,
            Cause::Unanswered(_) => {
                "where large packets vanish on the way, shorter messages (-l) pass: compare them"
            }
            Cause::Stranger(_) => "name the port of 'netaware serve' with --port",
            Cause::KeyNeeded => "give the shared key with --key-file or NETAWARE_KEY",
            Cause::Refused(ErrorCode::Key, _) => "check that both sides have the same key",
            Cause::Refused(ErrorCode::Version, _) => "bring the older of the two sides up to date",
            Cause::Refused(ErrorCode::Busy, _) => "try again later",
            Cause::Refused(ErrorCode::Cap, _) => "ask for less, or have the responder's owner raise the cap",
            Cause::FalseResponder => "do not trust this responder: somebody may be impersonating it",
            Cause::UdpBlocked | Cause::UdpRejected(_) => "open the port for UDP as well as TCP",
            Cause::UdpCeased(..) => {
                "the way of UDP or the other end has failed since: see whether a firewall, a NAT or a limit on the way began \
                 to drop UDP, and try again"
            }
            Cause::UdpLost { .. } | Cause::AttachTimedOut(_) => {
                "packets are lost or late on the way: see what drops or delays them"
            }
            Cause::UdpTooSlow { .. } => {
                "the round trip has risen: see what delays packets on the way, and try again"
            }
            Cause::Stopping(_) => "measure again when 'netaware serve' runs there",
            Cause::Unheard(_) | Cause::UdpAndTcpSilent(_) => ASK_FOR_PATH,
            Cause::UnheardOverBoth(_) => ASK_FOR_BOTH,
            Cause::Cut(_) => "measure again when this host's network is up",
            Cause::Lost(_) => ASK_FOR_SERVE,
            Cause::Away(_) => "keep this host awake while it measures",
            Cause::Address(_)
            | Cause::Refused(..)
            | Cause::NotBegun(_)
            | Cause::TooFar(_)
            | Cause::System(_)
            | Cause::Protocol(_)
            | Cause::Stopped => "",
        }
    }
}

/// The control connection ended, and nobody knows why.
pub(crate) const ASK_FOR_SERVE: &str = "see whether 'netaware serve' still runs there";
/// The same where nothing came any more.
pub(crate) const ASK_FOR_PATH: &str =
    "see whether the path is up, and whether 'netaware serve' still runs there";
/// The same where nothing came any more over either IP version.
pub(crate) const ASK_FOR_BOTH: &str = "both IP versions fell silent together: see whether the path, this host's network and that host are up, \
                                       and whether 'netaware serve' still runs there";
/// The same where the responder went on over the other IP version.
pub(crate) const ASK_FOR_NAT: &str = "the other IP version went on with the same responder: see whether a NAT, a firewall \
                                      or a router on the way of this version was restarted or forgot its connections";

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.map(netaware_io::zone::shown).unwrap_or_default();
        match &self.cause {
            Cause::NoAddress(host) => write!(f, "'{host}' has no address of this version"),
            Cause::Resolve(why) => write!(f, "the name lookup failed: {why}"),
            Cause::Address(why) => f.write_str(why),
            Cause::System(why) | Cause::Unanswered(why) | Cause::AttachTimedOut(why) => {
                write!(f, "{} {at}: {why}", self.stage)
            }
            Cause::NotSent(why) => write!(f, "nothing could be sent to {at}: {why}"),
            Cause::ConnectionRefused => write!(f, "nobody listens at {at}: connection refused"),
            Cause::Silent(after) => write!(f, "{} {at}: no answer within {after}", self.stage),
            Cause::TooFar(rtt) => write!(
                f,
                "a round trip to {at} takes {rtt}, and netaware measures paths of at most {MAX_ROUND_TRIP}"
            ),
            Cause::Stranger(who) => {
                write!(f, "{at} is answered by {}, not by a netaware responder", who.name())
            }
            Cause::Refused(_, why) | Cause::NotBegun(why) => {
                write!(f, "the responder at {at} refused: {why}")
            }
            Cause::KeyNeeded => write!(f, "the responder at {at} wants a shared key"),
            Cause::FalseResponder => write!(f, "the responder at {at} does not know the shared key"),
            Cause::Lost(why) => {
                write!(f, "the connection to {at} ended while trying to {}: {why}", self.stage)
            }
            Cause::Unheard(silence) | Cause::UnheardOverBoth(silence) => write!(
                f,
                "the connection to {at} ended while trying to {}: nothing heard for {silence}",
                self.stage
            ),
            Cause::Barred(why) => write!(
                f,
                "the connection to {at} ended while trying to {}: this host lets no packets out to it: {why}",
                self.stage
            ),
            Cause::Cut(what) => {
                write!(f, "the connection to {at} ended while trying to {}: {what}", self.stage)
            }
            Cause::Away(away) => {
                write!(
                    f,
                    "this host did not run netaware for {away} (it was suspended or stopped, or had no CPU time), and \
                     the session with {at} ended meanwhile"
                )
            }
            Cause::Stopping(why) => {
                // What its owner said beyond the fact, if anything.
                let why =
                    why.strip_prefix("the responder is stopping").unwrap_or(why).trim_start_matches(": ");
                let why = if why.is_empty() { String::new() } else { format!(": {why}") };
                write!(f, "the responder at {at} was stopped{why}")
            }
            Cause::UdpBlocked => write!(f, "TCP reaches {at}, but UDP to the same port gets no answer"),
            Cause::UdpRejected(why) => {
                write!(f, "TCP reaches {at}, but UDP to the same port is rejected there or on the way: {why}")
            }
            Cause::UdpCeased(answers, why) => {
                let now = match why {
                    None => "gets no answer any more".to_owned(),
                    Some(why) => format!("is rejected there or on the way now: {why}"),
                };
                write!(
                    f,
                    "UDP to {at} {now}, after at least {answers} answers over UDP; TCP still reaches it"
                )
            }
            Cause::UdpLost { questions, lost, of } => write!(
                f,
                "none of {questions} questions over UDP to {at} was answered, and {lost} of {of} requests were lost on this \
                 path before"
            ),
            Cause::UdpTooSlow { waited, round_trip } => write!(
                f,
                "no answer over UDP came from {at} within {waited}, and a round trip takes up to {round_trip} now"
            ),
            Cause::UdpAndTcpSilent(waited) => {
                write!(f, "nothing came from {at} for {waited}, neither over UDP nor over TCP")
            }
            Cause::Protocol(why) => write!(f, "the responder at {at} broke the protocol: {why}"),
            Cause::Stopped => write!(f, "stopped by the user while trying to {}", self.stage),
        }
    }
}

impl std::error::Error for Failure {}

/// Where this host itself lets nothing out.
pub(crate) const OWN_HOST: &str = "check that this host has an address and a route of this version, and that no firewall of this host drops \
                                   what it sends";

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 requests had been answered over UDP when it was cut, and a person was told to open the
    /// port.
    #[test]
    fn a_port_that_answered_over_udp_before_is_not_told_to_be_opened() {
        let said = |cause| {
            let at = Some("192.0.2.1:14233".parse().unwrap());
            let Unreachable { reason, advice, .. } =
                Failure::new("attach a UDP flow", at, cause).unreachable();
            format!("{reason}; {advice}")
        };
        let ceased = said(Cause::UdpCeased(204, None));
        assert!(
            ceased.starts_with(
                "UDP to 192.0.2.1:14233 gets no answer any more, after at least 204 answers over UDP; TCP still reaches it; \
                 the way of UDP or the other end has failed since"
            ),
            "{ceased}"
        );
        let rejected = said(Cause::UdpCeased(2, Some("Connection refused".to_owned())));
        assert!(rejected.contains("is rejected there or on the way now: Connection refused"), "{rejected}");
        let silent = said(Cause::UdpAndTcpSilent(Span::from_millis(2500)));
        assert!(!(ceased + &rejected + &silent).contains("open the port"));
        assert!(silent.starts_with("nothing came from 192.0.2.1:14233 for 2.50 s, neither"), "{silent}");
        assert!(said(Cause::UdpBlocked).ends_with("open the port for UDP as well as TCP"));
    }
}
