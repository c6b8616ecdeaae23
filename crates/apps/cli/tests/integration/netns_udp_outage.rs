//! UDP streams across what breaks for a moment: a route that is gone, a filter on the sending host,
//! a link that is down, a responder that dies, a prober that is stopped. Needs root. The cases
//! mostly wait and run side by side, each between two namespaces of its own.

use netaware_io::clock;
use netaware_netns::{IpVersion, Pair, Side, permitted};
use netaware_record::{LimitedBy, Outcome, Record, UdpResult};
use netaware_testkit::program::{Finished, Program, Responder, netaware_path, signal};
use netaware_units::Span;

const PORT: u16 = 14_233;
/// 500 datagrams a second.
const STREAM: &[&str] = &["-b", "4M", "-l", "1000", "-i", "100ms"];
const PLANNED: u64 = 750;
const OUTAGE: Span = Span::from_millis(300);

#[test]
fn a_stream_goes_on_after_an_outage_and_what_was_not_sent_is_not_called_planned_or_lost() {
    if !permitted() {
        return;
    }
    let (v4, v6) = (IpVersion::V4, IpVersion::V6);
    side_by_side(
        [
            (Outage::Route(v4), "-4", None, "unreachable"),
            (Outage::Route(v6), "-6", None, "unreachable"),
            (Outage::Route(v4), "-4", Some("-R"), "unreachable"),
            (Outage::Route(v4), "-4", Some("--bidir"), "unreachable"),
            (Outage::Filter, "-4", None, "permitted"),
            (Outage::Filter, "-6", Some("-R"), "permitted"),
            (Outage::Link, "-4", None, ""),
        ],
        |(outage, version, direction, cause)| {
            let pair = Pair::new("outage").unwrap();
            let _responder = responder(&pair);
            let arguments = [&[version, "-t", "1500ms"], STREAM, direction.as_slice()].concat();
            let prober = prober(&pair, version, &arguments);
            until_it_measures(&prober);
            let sending = if direction == Some("-R") { pair.right() } else { pair.left() };
            outage.begin(sending);
            clock::sleep(OUTAGE);
            outage.end(sending);
            let record = last_record(&prober.finish_within(Span::from_secs(20)).exits_with(0));
            let what = format!("{outage:?} {version} {direction:?}");
            assert_eq!(record.outcome, Outcome::Complete, "{what}: {:?}", record.warnings);
            let broken = record.versions[0].udp.iter().max_by_key(|udp| udp.not_sent).unwrap();
            holds(&what, broken, &record, cause);
        },
    );
}

fn holds(what: &str, udp: &UdpResult, record: &Record, cause: &str) {
    let sender = udp.sender.as_ref().unwrap();
    let not_sent = udp.not_sent.unwrap();
    assert_eq!((udp.outcome, sender.outcome), (Outcome::Complete, Outcome::Complete), "{what}");
    assert_eq!(udp.sent, udp.received + udp.loss.lost + udp.loss.unknown, "{what}: {udp:#?}");
    assert!(PLANNED.abs_diff(udp.sent + not_sent) <= 1, "{what}: {} + {not_sent}", udp.sent);
    // The outage is a fifth of the stream.
    assert!(not_sent > PLANNED / 20, "{what}: {not_sent} not sent");
    assert!(udp.sent > PLANNED / 2, "{what}: the stream did not go on: {}", udp.sent);
    assert!(udp.loss.lost < PLANNED / 50, "{what}: {} lost", udp.loss.lost);
    assert!(sender.elapsed * 10 > Span::from_millis(1500) * 9, "{what}: {}", sender.elapsed);
    assert!(!udp.limit.evidence.contains("as planned"), "{what}: {}", udp.limit.evidence);
    let is_named = |warning: &&String| warning.contains("were not sent") && warning.contains(cause);
    assert!(record.warnings.iter().any(|warning| is_named(&warning)), "{what}: {:?}", record.warnings);
}

#[test]
fn a_path_that_prohibits_for_a_moment_does_not_end_a_stream_and_keeps_no_promise_of_its_loss() {
    if !permitted() {
        return;
    }
    let rows = [("-4", None), ("-6", None), ("-4", Some("-R")), ("-6", Some("--bidir"))];
    side_by_side(rows, |(version, direction)| {
        let pair = Pair::new("prohibited").unwrap();
        let _responder = responder(&pair);
        let expect = ["--expect", "udp.loss<0.1%"];
        let arguments =
            [&[version, "-t", "1500ms"], STREAM, direction.as_slice(), expect.as_slice()].concat();
        let prober = prober(&pair, version, &arguments);
        until_it_measures(&prober);
        let receiving = if direction == Some("-R") { pair.left() } else { pair.right() };
        nft(
            receiving,
            "add table inet outage; add chain inet outage in { type filter hook input priority 0; }; \
             add rule inet outage in meta l4proto udp reject with icmpx admin-prohibited",
        );
        clock::sleep(OUTAGE);
        nft(receiving, "delete table inet outage");
        let finished = prober.finish_within(Span::from_secs(20)).exits_with(1);
        let record = last_record(&finished);
        let what = format!("{version} {direction:?}");
        assert_eq!(record.outcome, Outcome::Complete, "{what}: {:?}", record.warnings);
        for udp in &record.versions[0].udp {
            assert_eq!(udp.outcome, Outcome::Complete, "{what}");
            assert_eq!(udp.sent, udp.received + udp.loss.lost + udp.loss.unknown, "{what}: {udp:#?}");
            assert!(PLANNED.abs_diff(udp.sent + not_sent(udp)) <= 1, "{what}: {udp:#?}");
            assert!(udp.received > PLANNED / 2, "{what}: the stream did not go on: {udp:#?}");
        }
        let broken = record.versions[0].udp.iter().max_by_key(|udp| udp.loss.lost + not_sent(udp)).unwrap();
        assert!(broken.loss.lost + not_sent(broken) > PLANNED / 20, "{what}: {broken:#?}");
    });
}

#[test]
fn what_a_dead_responder_or_a_stopped_prober_left_unobserved_is_nobodys_loss() {
    if !permitted() {
        return;
    }
    side_by_side([Death::OfResponder, Death::OfLink, Death::Suspension], |death| {
        let pair = Pair::new("unobserved").unwrap();
        let responder = responder(&pair);
        let arguments = [&["-4", "-t", "20s"], STREAM].concat();
        let prober = prober(&pair, "-4", &arguments);
        until_it_measures(&prober);
        match death {
            Death::OfResponder => signal("KILL", responder.id()),
            Death::OfLink => drop(pair.right().ip(&["link", "set", "dev", pair.right().device(), "down"])),
            Death::Suspension => {
                signal("STOP", prober.id());
                clock::sleep(Span::from_millis(5500));
                signal("CONT", prober.id());
            }
        }
        let finished = prober.finish_within(Span::from_secs(12)).exits_with(2);
        let record = last_record(&finished);
        let udp = &record.versions[0].udp[0];
        assert_eq!((record.outcome, udp.outcome), (Outcome::Failed, Outcome::Failed), "{death:?}");
        assert_eq!(udp.sent, udp.received + udp.loss.lost + udp.loss.unknown, "{death:?}: {udp:#?}");
        assert_eq!(udp.loss.lost, 0, "{death:?}: {:?}", udp.loss);
        assert!(udp.received > 0, "{death:?}");
        assert_ne!(udp.limit.by, LimitedBy::Network, "{death:?}: {}", udp.limit.evidence);
        assert!(!udp.limit.evidence.contains("as planned"), "{death:?}: {}", udp.limit.evidence);
        let reason = record.versions[0].unreachable.as_ref().map_or("", |it| it.reason.as_str());
        let blames_this_host = reason.contains("this host did not run netaware");
        assert_eq!(blames_this_host, matches!(death, Death::Suspension), "{death:?}: {reason}");
    });
}

#[derive(Debug, Clone, Copy)]
enum Death {
    OfResponder,
    OfLink,
    Suspension,
}

#[derive(Debug, Clone, Copy)]
enum Outage {
    /// The route to the other side is withdrawn.
    Route(IpVersion),
    /// The host's own filter drops what it sends.
    Filter,
    /// The interface is down.
    Link,
}

impl Outage {
    fn begin(self, side: &Side) {
        match self {
            Self::Route(version) => change_route(side, version, "del"),
            Self::Filter => nft(
                side,
                "add table inet outage; add chain inet outage out \
                                       { type filter hook output priority 0; }; \
                                       add rule inet outage out meta l4proto udp drop",
            ),
            Self::Link => set_link(side, "down"),
        }
    }

    fn end(self, side: &Side) {
        match self {
            Self::Route(version) => change_route(side, version, "add"),
            Self::Filter => nft(side, "delete table inet outage"),
            Self::Link => set_link(side, "up"),
        }
    }
}

fn change_route(side: &Side, version: IpVersion, how: &str) {
    let (family, net) = match version {
        IpVersion::V4 => ("-4", format!("{}/24", side.v4())),
        IpVersion::V6 => ("-6", format!("{}/64", side.v6())),
    };
    let net = network(&net);
    side.ip(&[family, "route", how, &net, "dev", side.device()]).unwrap();
}

/// The network of an address with its prefix length.
fn network(address: &str) -> String {
    let (address, length) = address.split_once('/').unwrap();
    let masked = match address.parse().unwrap() {
        std::net::IpAddr::V4(it) => std::net::Ipv4Addr::from(u32::from(it) & !0xff).to_string(),
        std::net::IpAddr::V6(it) => {
            std::net::Ipv6Addr::from(u128::from(it) & !u128::from(u64::MAX)).to_string()
        }
    };
    format!("{masked}/{length}")
}

fn set_link(side: &Side, how: &str) {
    side.ip(&["link", "set", "dev", side.device(), how]).unwrap();
}

fn nft(side: &Side, rules: &str) {
    assert!(side.command("nft").arg(rules).status().unwrap().success(), "{rules}");
}

fn responder(pair: &Pair) -> Responder {
    let mut serve = pair.right().command(netaware_path());
    serve.args(["serve", "--port", &PORT.to_string()]);
    Responder::launch(serve, &[], PORT)
}

fn prober(pair: &Pair, version: &str, arguments: &[&str]) -> Program {
    let to = if version == "-6" { pair.right().v6().to_string() } else { pair.right().v4().to_string() };
    let mut command = pair.left().command(netaware_path());
    command.args(["udp", &to, "--port", &PORT.to_string(), "--format", "ndjson"]).args(arguments);
    Program::start(command)
}

fn until_it_measures(prober: &Program) {
    let due = clock::now() + Span::from_secs(10);
    while prober.printed().matches(r#""event":"interval""#).count() < 2 {
        assert!(clock::now() < due, "{} {}", prober.printed(), prober.complained());
        clock::sleep(Span::from_millis(5));
    }
}

/// The record, with which line-wise JSON ends.
fn last_record(finished: &Finished) -> Record {
    let last = finished.stdout.lines().last().unwrap_or_else(|| panic!("{finished:#?}"));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {finished:#?}"))
}

/// Runs a case for each item, all at the same time: each mostly waits.
fn side_by_side<T: Send>(items: impl IntoIterator<Item = T>, case: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for item in items {
            scope.spawn(|| case(item));
        }
    });
}

/// Told by every sender of these tests.
fn not_sent(udp: &UdpResult) -> u64 {
    udp.not_sent.unwrap()
}
