//! Do real programs see the pair that the drawing promises?

use std::process::{Child, Command, Output, Stdio};

use netaware_netns::{IpVersion, Pair, Running, Side, Transport, permitted, remove_stale, wait_until_bound};
use netaware_units::BitRate;
use serde_json::Value;

const V4: IpVersion = IpVersion::V4;
const V6: IpVersion = IpVersion::V6;

#[expect(clippy::disallowed_methods, reason = "waits for a program that is not ours; nothing is timed by it")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(10));
}

#[test]
fn both_versions_work_at_once_and_names_lead_to_the_other_side() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("at once").unwrap();
    let _server = iperf3_server(pair.right(), 5201);
    for name in ["v4.test", "v6.test", "both.test", "10.77.0.2", "fd00:77::2"] {
        let result = json(client(pair.left(), name, 5201, &["-n", "1M"]));
        assert!(result.get("error").is_none(), "{name}: {result}");
    }
    let both = text(pair.left().command("getent").args(["ahosts", "both.test"]));
    assert!(both.contains("10.77.0.2") && both.contains("fd00:77::2"), "{both}");
}

#[test]
fn unknown_name_fails_without_asking_the_real_network() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("names").unwrap();
    let found = pair.left().command("getent").args(["hosts", "unknown.example"]).output().unwrap();
    assert!(!found.status.success());
}

#[test]
fn nothing_is_left_behind_even_when_a_process_stays_inside() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("left behind").unwrap();
    let name = pair.right().namespace().to_owned();
    let mut server = iperf3_server(pair.right(), 5201);
    assert_eq!(pair.right().processes(), [server.id()]);
    drop(pair);
    let ended = (0..1000).find_map(|_| {
        pause();
        server.child().try_wait().unwrap()
    });
    assert!(!ended.expect("the server ends").success(), "the server was killed");
    assert!(!text(Command::new("ip").args(["netns", "list"])).contains(&name));
    assert!(!std::path::Path::new("/etc/netns").join(&name).exists());
}

#[test]
fn pairs_with_the_same_name_live_side_by_side() {
    if !permitted() {
        return;
    }
    let (one, two) = (Pair::new("twin").unwrap(), Pair::new("twin").unwrap());
    let _server = iperf3_server(one.right(), 5201);
    assert!(json(client(one.left(), "v4.test", 5201, &["-n", "1M"])).get("error").is_none());
    assert!(
        json(client(two.left(), "v4.test", 5201, &["-n", "1M"])).get("error").is_some(),
        "no server there"
    );
}

#[test]
fn mtu_is_that_of_the_wire() {
    if !permitted() {
        return;
    }
    let pair = Pair::with_mtu("mtu", 1280).unwrap();
    for side in [pair.left(), pair.right()] {
        assert!(side.ip(&["link", "show", side.device()]).unwrap().contains("mtu 1280"));
    }
}

#[test]
fn each_version_gets_its_own_rate_while_the_other_is_busy() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("shape").unwrap();
    pair.shape_two_classes(BitRate(40_000_000), BitRate(80_000_000)).unwrap();
    let _servers = [iperf3_server(pair.right(), 5201), iperf3_server(pair.right(), 5202)];
    for direction in ["--get-server-output", "--reverse"] {
        let v4 = client(pair.left(), "v4.test", 5201, &["-t", "4", "-O", "1", direction]).spawn().unwrap();
        let v6 = client(pair.left(), "v6.test", 5202, &["-t", "4", "-O", "1", direction]).spawn().unwrap();
        let v4 = received(v4) / (40e6 * 1448.0 / 1514.0);
        let v6 = received(v6) / (80e6 * 1428.0 / 1514.0);
        assert!(is_let_through(v4) && is_let_through(v6), "{v4} and {v6} of the limits");
        // What the machine withholds it withholds from both.
        assert!((v4 / v6 - 1.0).abs() < 0.03, "{v4} and {v6} of the limits");
    }
}

#[test]
fn limits_are_replaced_and_taken_away() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("reshape").unwrap();
    pair.shape_two_classes(BitRate(1_000_000), BitRate(1_000_000)).unwrap();
    pair.shape_two_classes(BitRate(20_000_000), BitRate(20_000_000)).unwrap();
    let _server = iperf3_server(pair.right(), 5201);
    let rate = received(client(pair.left(), "v4.test", 5201, &["-t", "3", "-O", "1"]).spawn().unwrap());
    assert!(is_let_through(rate / 19.13e6), "{rate} bit/s");
    pair.unshape().unwrap();
    assert!(received(client(pair.left(), "v4.test", 5201, &["-t", "1"]).spawn().unwrap()) > 200e6);
}

#[test]
fn blackholed_version_is_silent_and_the_other_untouched() {
    if !permitted() {
        return;
    }
    for (hole, gone, stays) in [(V4, "v4.test", "v6.test"), (V6, "v6.test", "v4.test")] {
        let pair = Pair::new("hole").unwrap();
        let _server = iperf3_server(pair.right(), 5201);
        pair.blackhole(hole).unwrap();
        let patience = ["-n", "100K", "--connect-timeout", "700"];
        let silent = json(client(pair.left(), gone, 5201, &patience))["error"].to_string();
        assert!(silent.contains("Operation now in progress") || silent.contains("timed out"), "{silent}");
        assert!(json(client(pair.left(), stays, 5201, &patience)).get("error").is_none());
        pair.unblackhole().unwrap();
        assert!(json(client(pair.left(), gone, 5201, &patience)).get("error").is_none());
    }
}

#[test]
fn only_packets_above_the_limit_vanish() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("mtu hole").unwrap();
    let _server = iperf3_server(pair.right(), 5201);
    for (version, name, header) in [(V4, "v4.test", 28), (V6, "v6.test", 48)] {
        pair.blackhole_larger_than(1300, version).unwrap();
        assert!(udp_arrived(&pair, name, 1300 - header) > 20, "{name}: exactly the limit passes");
        assert_eq!(udp_arrived(&pair, name, 1301 - header), 0, "{name}: one byte more does not");
        pair.unblackhole().unwrap();
    }
}

#[test]
fn short_tcp_segments_pass_a_length_limit_although_they_leave_in_aggregates() {
    if !permitted() {
        return;
    }
    let pair = Pair::new("aggregates").unwrap();
    pair.blackhole_larger_than(1400, V4).unwrap();
    let _server = iperf3_server(pair.right(), 5201);
    let rate = received(client(pair.left(), "v4.test", 5201, &["-t", "1", "-M", "1300"]).spawn().unwrap());
    // If aggregates were taken for long packets, nothing but retransmissions of single segments
    // would pass.
    assert!(rate > 20e6, "{rate} bit/s");
}

#[test]
fn namespaces_of_a_killed_run_are_swept_and_living_ones_stay() {
    if !permitted() {
        return;
    }
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let orphan = format!("netaware-{}-0-orphan-left", dead.id());
    text(Command::new("ip").args(["netns", "add", &orphan]));
    let pair = Pair::new("living").unwrap();
    assert!(remove_stale().unwrap().contains(&orphan));
    assert!(text(Command::new("ip").args(["netns", "list"])).contains(pair.left().namespace()));
}

fn iperf3_server(side: &Side, port: u16) -> Running {
    let port_text = port.to_string();
    let mut command = side.command("iperf3");
    command.args(["-s", "-p", &port_text]).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running::start(&mut command).unwrap();
    wait_until_bound(server.id(), Transport::Tcp, port).unwrap();
    server
}

fn client(side: &Side, to: &str, port: u16, arguments: &[&str]) -> Command {
    let mut command = side.command("iperf3");
    command.args(["-J", "-c", to, "-p", &port.to_string()]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn json(mut command: Command) -> Value {
    parse(&command.output().unwrap())
}

fn parse(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Payload rate at the receiver in bit/s.
fn received(client: Child) -> f64 {
    let result = parse(&client.wait_with_output().unwrap());
    result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{result}"))
}

fn udp_arrived(pair: &Pair, name: &str, payload: u32) -> i64 {
    let payload = payload.to_string();
    let result = json(client(pair.left(), name, 5201, &["-u", "-l", &payload, "-b", "1M", "-t", "1"]));
    let sum = &result["end"]["sum_received"];
    let count = |field: &str| sum[field].as_i64().unwrap_or_else(|| panic!("no {field}: {result}"));
    if count("bytes") == 0 { 0 } else { count("packets") - count("lost_packets") }
}

/// Whether this share of a limit is what a shaper lets through: never more, and less by what a
/// machine that stands still for 100 ms loses.
fn is_let_through(share: f64) -> bool {
    (0.9..1.01).contains(&share)
}

fn text(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
