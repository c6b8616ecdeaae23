//! A probe behind a router that lends it its own address and lets nobody in: everything goes over
//! the connection that the probe itself began.
//!
//! ```text
//!   bern: probe ── veth ── hub: nft masquerades bern, drops what bern did not ask for ── veth ── oslo: collector
//! ```

use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use netaware_netns::{Side, Star, permitted};
use netaware_units::Span;

use super::sites::Sites;

const FLOW: u16 = 5007;

fn oslo(star: &Star) -> &Side {
    &star.sites()[1]
}

/// The router's word for bern, with counters of what it did.
fn translate(star: &Star) {
    for words in [
        "add table ip nat",
        "add chain ip nat out { type nat hook postrouting priority 100; }",
        "add rule ip nat out iifname site1 oifname site2 counter masquerade",
        "add chain ip nat in { type filter hook forward priority 0; policy accept; }",
        "add rule ip nat in oifname site1 ct state new counter drop",
    ] {
        let done = star.hub().command("nft").arg(words).status().unwrap();
        assert!(done.success(), "nft {words}");
    }
}

#[test]
fn a_probe_behind_nat_is_told_its_tasks_and_its_figures_arrive() {
    if !permitted() {
        return;
    }
    let volume = format!("[tasks.flows]\non = [\"bern\"]\nkind = \"volume\"\nfilter = \"udp port {FLOW}\"\n");
    let mut sites = Sites::start_at(oslo, &["bern", "oslo"], &["bern"], &volume);
    translate(&sites.star);
    // From outside nobody comes in.
    let [inner, outer] = [0, 1].map(|at| sites.star.sites()[at].v4());
    let _listener = sites.star.sites()[0].within(|| std::net::TcpListener::bind((inner, 4000))).unwrap();
    let reach = || TcpStream::connect_timeout(&(inner, 4000).into(), Duration::from_millis(500)).map(drop);
    assert!(sites.star.sites()[1].within(reach).is_err(), "the router lets nobody in");

    sites.probe_to(outer.into(), "bern", |star| &star.sites()[0]);
    sites.watch(1);
    let send = |packets: usize| {
        sites.star.sites()[0]
            .within(|| {
                let socket = UdpSocket::bind("0.0.0.0:0")?;
                (0..packets).try_for_each(|_| socket.send_to(&[0; 100], (outer, FLOW)).map(drop))
            })
            .unwrap();
    };
    let counted = |it: &Sites, task: &str| -> u64 {
        let found = it.json(&format!("/api/v1/rows/volume?from=-1h&task={task}"));
        let items = found["items"].as_array().unwrap();
        items.iter().map(|item| item["row"]["packets"].as_u64().unwrap()).sum()
    };
    send(300);
    sites.until("packets are counted", Span::from_secs(20), |it| counted(it, "flows") == 300);

    let probe = sites.json("/api/v1/probes")[0].clone();
    let peer = probe["peer"].as_str().unwrap();
    let lent = "10.80.2.1".parse::<Ipv4Addr>().unwrap().to_ipv6_mapped();
    let from = peer.parse::<SocketAddr>().unwrap().ip();
    assert_eq!(from, lent, "it comes from the router's address");
    // What is changed reaches it over the same connection.
    let more = format!("[tasks.more]\non = [\"bern\"]\nkind = \"volume\"\nfilter = \"udp port {FLOW}\"\n");
    let number = sites.apply(&more)["number"].clone();
    let follows = |it: &Sites| it.json("/api/v1/probes")[0]["following"] == number;
    sites.until("it follows", Span::from_secs(20), follows);
    let before = sites.json("/api/v1/probes")[0]["counts"]["batches"].as_u64();
    let goes_on =
        |it: &Sites| it.json("/api/v1/probes")[0]["counts"]["batches"].as_u64() > before.map(|n| n + 2);
    sites.until("it watches again", Span::from_secs(20), goes_on);
    send(200);
    sites.until("both tasks count", Span::from_secs(20), |it| {
        (counted(it, "flows"), counted(it, "more")) == (500, 200)
    });
    let probe = sites.json("/api/v1/probes")[0].clone();
    assert_eq!(probe["counts"]["connections"], 1, "{probe:#}");
}
