//! An address translator between prober and responder that gives the flow of the trains another
//! port in the middle of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netaware_testkit::program::{Responder, run};
use netaware_units::Span;

use super::middle::{Middle, Whim};

/// The first trains pass, and the whim begins within one.
const AFTER: u32 = 10;
const CAPACITY: &[&str] = &["capacity"];
/// The other methods are content with what one train shows of loopback.
const MAXIMUM: &[&str] = &["available", "--method", "maximum", "--max-load", "100%"];

#[test]
fn a_flow_that_gets_another_port_is_named_over_both_versions_and_directions() {
    let responder = Responder::start(&[]);
    let (four, six) = ((IpAddr::from(Ipv4Addr::LOCALHOST), "-4"), (Ipv6Addr::LOCALHOST.into(), "-6"));
    // Each two of version, method and direction meet.
    for ((ip, version), command, way) in [
        (four, CAPACITY, None),
        (four, MAXIMUM, Some("-R")),
        (six, CAPACITY, Some("-R")),
        (six, MAXIMUM, None),
    ] {
        let at = SocketAddr::new(ip, responder.address().port());
        let middle = Middle::before(at, Whim::Rebind, AFTER);
        let (host, port) = (ip.to_string(), middle.port.to_string());
        let fixed = [host.as_str(), "--port", &port, version, "-t", "2s", "--format", "json", "--no-save"];
        let arguments: Vec<&str> = command.iter().copied().chain(fixed).chain(way).collect();
        let ended = run(&arguments, Span::from_secs(40));
        assert!(ended.took < Span::from_secs(7), "{arguments:?}: {}", ended.took);
        let record = ended.record();
        let found = &record.versions[0].path_rates;
        let [rate] = &found[..] else { panic!("{arguments:?}: {record:#?}") };
        // Some came, and from one packet on none.
        assert!(rate.received > 0 && rate.received < rate.packets, "{arguments:?}: {rate:#?}");
        let named = rate.flags.iter().any(|flag| flag == "silent")
            && rate.remarks.iter().any(|remark| remark.contains("another port"));
        assert!(named, "{arguments:?}: {rate:#?}");
        assert_eq!(ended.code, Some(if rate.rate.is_some() { 0 } else { 2 }));
    }
}

#[test]
fn requests_on_a_flow_that_got_another_port_are_unknown_and_not_lost() {
    let responder = Responder::start(&[]);
    let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), responder.address().port());
    // Five requests and their answers.
    let middle = Middle::before(at, Whim::Rebind, 10);
    let port = middle.port.to_string();
    let sending = ["-c", "20", "--spacing", "10ms", "-l", "200", "--timeout", "300ms"];
    let fixed = ["latency", "127.0.0.1", "--port", &port, "-4", "--format", "json", "--no-save"];
    let arguments: Vec<&str> = fixed.into_iter().chain(sending).collect();
    let record = run(&arguments, Span::from_secs(40)).record();
    let latency = record.versions[0].latency.as_ref().unwrap();
    assert!((3..=7).contains(&latency.received), "{latency:#?}");
    assert_eq!((latency.sent, latency.lost, latency.unknown), (20, 0, 20 - latency.received), "{latency:#?}");
    let is_named = record.warnings.iter().any(|warning| warning.contains("given the flow another port"));
    assert!(is_named, "{:?}", record.warnings);
}
