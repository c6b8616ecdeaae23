//! `netaware relay` and `netaware run` between two namespaces, with programs that know nothing of
//! them: python3 and curl.

use std::fs;
use std::process::Command;

use netaware_io::clock;
use netaware_netns::{IpVersion, Pair, Running, Transport, permitted, wait_until_bound};
use netaware_testkit::program::{Program, netaware_path, signal};
use netaware_units::{BitRate, Span};

const SERVER_PORT: u16 = 5000;
const LOCAL_PORT: u16 = 8080;
const RELAY_PORT: u16 = 14_234;

/// Gives back what it gets, to the end.
const SERVER: &str = r#"
import socket, threading
s = socket.create_server(("127.0.0.1", 5000))
def serve(c):
    while piece := c.recv(65536): c.sendall(piece)
    c.shutdown(socket.SHUT_WR)
while True: threading.Thread(target=serve, args=s.accept()[:1], daemon=True).start()
"#;

/// Sends 24 MB, reads them back, prints `moving` when the first have come, and at the end whether
/// they are equal and the longest wait in seconds.
const CLIENT: &str = r#"
import hashlib, os, socket, threading, time
s = socket.create_connection(("127.0.0.1", 8080))
data = os.urandom(24_000_000)
def send():
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send); t.start()
got, count, last, longest = hashlib.sha256(), 0, time.monotonic(), 0
while piece := s.recv(65536):
    now = time.monotonic()
    longest, last = max(longest, now - last), now
    if count == 0: print("moving", flush=True)
    got.update(piece); count += len(piece)
t.join()
print(count == len(data) and got.digest() == hashlib.sha256(data).digest(), "%.3f" % longest)
"#;

struct Relays {
    pair: Pair,
    near: Program,
    far: Program,
    _server: Running,
}

/// 40 Mbit/s over either version, a server behind the far relay that only its own host reaches.
fn relays(name: &str, near_options: &[&str]) -> Relays {
    let pair = Pair::new(name).unwrap();
    pair.shape_two_classes(BitRate(40_000_000), BitRate(40_000_000)).unwrap();
    let server = Running::start(pair.right().command("python3").args(["-c", SERVER])).unwrap();
    wait_until_bound(server.id(), Transport::Tcp, SERVER_PORT).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, "sesame").unwrap();
    let start = |mut command: Command, options: &[&str], port: u16| {
        command.arg(netaware_path()).args(["relay", "--key-file"]).arg(&key).args(options);
        let program = Program::start(command);
        if let Err(error) = wait_until_bound(program.id(), Transport::Tcp, port) {
            panic!("{error}\n{}", program.complained());
        }
        program
    };
    // ip(8) is replaced by env(1), and that by the relay.
    let far = start(
        pair.right().command("env"),
        &["--accept", "14234", "--forward", "127.0.0.1:5000", "--switch", "6", "-v"],
        RELAY_PORT,
    );
    let options = [&["--listen", "8080", "--to", "both.test", "-v"][..], near_options].concat();
    let near = start(pair.left().command("env"), &options, LOCAL_PORT);
    Relays { pair, near, far, _server: server }
}

fn client(relays: &Relays) -> Program {
    let mut python = relays.pair.left().command("python3");
    python.args(["-c", CLIENT]);
    Program::start(python)
}

/// Waits until a program has printed or complained of something.
fn until_it_says(words: &str, said: impl Fn() -> String) {
    let due = clock::now() + Span::from_secs(15);
    while !said().contains(words) {
        assert!(clock::now() < due, "no '{words}' within 15 s:\n{}", said());
        clock::sleep(Span::from_millis(10));
    }
}

fn equal_and_longest_wait(client: Program) -> f64 {
    let ended = client.finish_within(Span::from_secs(60)).exits_with(0);
    let (equal, wait) = ended.stdout.lines().last().and_then(|line| line.split_once(' ')).unwrap();
    assert_eq!(equal, "True", "{ended:#?}");
    wait.parse().unwrap()
}

#[test]
fn a_transfer_of_programs_survives_switches_and_ends_of_either_version() {
    if !permitted() {
        return;
    }
    let relays = relays("relay", &["--switch", "6"]);
    let transfer = client(&relays);
    until_it_says("moving", || transfer.printed());
    signal("USR1", relays.near.id());
    until_it_says("goes over from IPv6 to IPv4: this end wants it", || relays.near.complained());
    signal("USR2", relays.far.id());
    until_it_says("goes over from IPv4 to IPv6: this end wants it", || relays.far.complained());
    relays.pair.blackhole(IpVersion::V6).unwrap();
    let longest = equal_and_longest_wait(transfer);
    println!("longest wait of the program: {longest} s, a version was cut off");
    let (near, far) = (relays.near.complained(), relays.far.complained());
    assert!(near.contains("lost its connection over IPv6: "), "{near}\nfar:\n{far}");
    assert!(longest < 3.0, "{longest} s\n{near}\nfar:\n{far}");
    for relay in [relays.near, relays.far] {
        signal("TERM", relay.id());
        relay.finish_within(Span::from_secs(15)).exits_with(0);
    }
}

#[test]
fn by_itself_it_goes_where_there_is_more_room_and_says_why() {
    if !permitted() {
        return;
    }
    let relays = relays("relay auto", &["--switch", "auto"]);
    relays.pair.shape_two_classes(BitRate(40_000_000), BitRate(10_000_000)).unwrap();
    equal_and_longest_wait(client(&relays));
    let near = relays.near.complained();
    assert!(near.contains("IPv4 looks better: ") && near.contains("medians of "), "{near}");
    assert!(near.contains("goes over from IPv6 to IPv4: this end wants it"), "{near}");
}

#[test]
fn a_program_is_run_over_the_version_that_answers() {
    if !permitted() {
        return;
    }
    let shim = std::env::current_exe().unwrap().parent().unwrap().join("libnetaware_shim.so");
    assert!(shim.is_file(), "{}", shim.display());
    let pair = Pair::new("run").unwrap();
    let serve = "import socket; s = socket.create_server(('::', 5000), family=socket.AF_INET6, dualstack_ipv6=True)\n\
                 while True: s.accept()[0].sendall(b'x')";
    let server = Running::start(pair.right().command("python3").args(["-c", serve])).unwrap();
    wait_until_bound(server.id(), Transport::Tcp, SERVER_PORT).unwrap();
    pair.blackhole(IpVersion::V6).unwrap();
    let ask = "import socket\n\
               a = [a[4] for a in socket.getaddrinfo('both.test', 5000) if a[0] == socket.AF_INET6][0]\n\
               s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM); s.connect(a)\n\
               print(s.recv(1), s.getpeername()[0]); exit(3)";
    // Program takes the variables of netaware away, so it is told behind that.
    let mut command = pair.left().command("env");
    command.arg(format!("NETAWARE_SHIM={}", shim.display()));
    command.arg(netaware_path()).args(["run", "--verbose", "--", "python3", "-c", ask]);
    let ended = Program::start(command).finish_within(Span::from_secs(30)).exits_with(3);
    assert_eq!(ended.stdout, "b'x' ::ffff:10.77.0.2\n", "{ended:#?}");
    let said = &ended.stderr;
    assert!(
        said.contains(
            "netaware: both.test port 5000: IPv6 fd00:77::2 no answer; IPv4 10.77.0.2 connected after "
        ),
        "{said}"
    );
}
