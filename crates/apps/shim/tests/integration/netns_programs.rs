//! Real programs, unmodified, on a path of which one IP version is silent.

mod host;

use host::{HTTP, Host, Outcome};
use netaware_netns::IpVersion;

/// Asks for one address of the family in argv[2] and connects as argv[3] says; prints what it got
/// and how long it took.
const CLIENT: &str = r#"
import asyncio, os, select, socket, sys, time
port, family, how = int(sys.argv[1]), {"4": socket.AF_INET, "6": socket.AF_INET6}[sys.argv[2]], sys.argv[3]
if how == "hostbyname":
    address = (socket.gethostbyname("both.test"), port)
else:
    lookup = socket.AF_UNSPEC if how != "alone" else family
    found = socket.getaddrinfo("both.test", port, lookup, socket.SOCK_STREAM)
    address = [a[4] for a in found if a[0] == family][0]
s = socket.socket(family, socket.SOCK_STREAM)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
os.set_inheritable(s.fileno(), True)
began = time.monotonic()
if how in ("blocking", "hostbyname", "alone"):
    s.connect(address)
elif how == "timeout":
    s.settimeout(20)
    s.connect(address)
    s.settimeout(None)
elif how in ("select", "epoll"):
    s.setblocking(False)
    assert s.connect_ex(address) == 115
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if how == "select":
        select.select([], [s], [], 20)
    else:
        e = select.epoll()
        e.register(s, select.EPOLLOUT)
        assert e.poll(20) == [(s.fileno(), select.EPOLLOUT)]
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    assert s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    s.setblocking(True)
elif how == "asyncio":
    s.setblocking(False)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(asyncio.wait_for(loop.sock_connect(s, address), 20))
    s.setblocking(True)
took = time.monotonic() - began
assert s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
assert os.get_inheritable(s.fileno())
assert s.getblocking()
peer, own = s.getpeername(), s.getsockname()
assert peer[1] == port and own[1] != 0, (peer, own)
s.sendall(b"x" * 300000)
s.shutdown(socket.SHUT_WR)
got = b""
while piece := s.recv(65536):
    got += piece
seen, count = got.split()
assert count == b"300000", got
print(seen.decode(), peer[0], "%.3f" % took)
"#;

#[test]
fn a_program_that_asks_for_the_silent_version_connects_over_the_other_one() {
    let Some(host) = Host::start("silent") else { return };
    for (silent, family, over) in [(IpVersion::V6, "6", "4"), (IpVersion::V4, "4", "6")] {
        host.silence(silent);
        for how in ["blocking", "timeout", "select", "epoll", "asyncio"] {
            let ran = host.python(CLIENT, &[family, how], Some("race,verbose"));
            let (seen, peer, took) = ran.connected();
            println!(
                "IPv{family} is silent, {how}: over IPv{seen} after {took} s, the peer is {peer}\n{}",
                ran.stderr
            );
            assert_eq!(seen, over, "{how}");
            assert!((0.2..2.0).contains(&took), "{how}: {took} s");
            // What the program takes for an address of its own family.
            assert_eq!(peer, if family == "6" { "::ffff:10.77.0.2" } else { "10.77.0.2" }, "{how}");
            assert!(ran.stderr.contains("no answer; IPv"), "{}", ran.stderr);
        }
        let bare = host.python(CLIENT, &[family, "blocking"], None);
        assert_eq!(bare.code, Some(124), "without it the program still waits after two seconds");
        host.hear();
    }
}

#[test]
fn a_program_that_never_asked_for_the_other_version_gets_it_when_it_is_needed() {
    let Some(host) = Host::start("unasked") else { return };
    host.silence(IpVersion::V4);
    for how in ["hostbyname", "alone"] {
        let ran = host.python(CLIENT, &["4", how], Some("race,verbose"));
        let (seen, _, took) = ran.connected();
        assert_eq!(seen, "6", "{how}");
        assert!(took < 2.0, "{how}: {took} s");
    }
}

#[test]
fn where_both_versions_answer_nothing_is_moved() {
    let Some(host) = Host::start("both") else { return };
    for how in ["blocking", "select", "epoll", "asyncio", "hostbyname"] {
        let family = if how == "hostbyname" { "4" } else { "6" };
        let ran = host.python(CLIENT, &[family, how], Some("race,verbose"));
        let (seen, peer, took) = ran.connected();
        assert_eq!((seen, peer.starts_with("::ffff:")), (family, false), "{how}");
        assert!(took < 0.2, "{how}: {took} s");
    }
}

#[test]
fn a_version_can_be_preferred_or_be_the_only_one() {
    let Some(host) = Host::start("chosen") else { return };
    for (order, family, over) in [
        ("race,prefer=4", "6", "4"),
        ("race,prefer=6", "4", "6"),
        ("race,only=4", "6", "4"),
        ("race,only=6", "4", "6"),
        ("race,only=6", "6", "6"),
    ] {
        for how in ["blocking", "select", "epoll", "asyncio", "alone"] {
            let ran = host.python(CLIENT, &[family, how], Some(order));
            assert_eq!(ran.connected().0, over, "{order} {how}");
        }
    }
    let refused = host.python(
        "import errno, socket, sys\n\
         s = socket.socket()\n\
         print(errno.errorcode[s.connect_ex(('10.77.0.2', int(sys.argv[1])))])",
        &[],
        Some("race,only=6"),
    );
    assert_eq!(refused.stdout.trim(), "ENETUNREACH");
}

#[test]
fn a_refusal_on_both_versions_is_the_one_that_was_asked_for() {
    let Some(host) = Host::start("refused") else { return };
    let ran = host.python(
        "import errno, socket\n\
         found = socket.getaddrinfo('both.test', 1, 0, socket.SOCK_STREAM)\n\
         address = [a[4] for a in found if a[0] == socket.AF_INET6][0]\n\
         s = socket.socket(socket.AF_INET6)\n\
         print(errno.errorcode[s.connect_ex(address)])\n\
         s.settimeout(5)\n\
         print(errno.errorcode[s.connect_ex(address)])",
        &[],
        Some("race"),
    );
    assert_eq!(ran.stdout, "ECONNREFUSED\nECONNREFUSED\n", "{}", ran.stderr);
}

#[test]
fn a_number_that_is_closed_and_used_again_is_left_alone() {
    let Some(host) = Host::start("closed") else { return };
    host.silence(IpVersion::V6);
    let ran = host.python(
        "import os, socket, sys, tempfile, time\n\
         found = socket.getaddrinfo('both.test', int(sys.argv[1]), 0, socket.SOCK_STREAM)\n\
         address = [a[4] for a in found if a[0] == socket.AF_INET6][0]\n\
         same = 0\n\
         for wait in (0.0, 0.2, 0.249, 0.25, 0.251, 0.255, 0.3):\n\
         \x20   s = socket.socket(socket.AF_INET6)\n\
         \x20   s.setblocking(False)\n\
         \x20   s.connect_ex(address)\n\
         \x20   number = s.fileno()\n\
         \x20   time.sleep(wait)\n\
         \x20   s.close()\n\
         \x20   f = tempfile.TemporaryFile()\n\
         \x20   same += f.fileno() == number\n\
         \x20   time.sleep(0.4)\n\
         \x20   f.write(b'mine')\n\
         \x20   f.flush()\n\
         \x20   assert os.fstat(f.fileno()).st_size == 4\n\
         \x20   f.close()\n\
         print('fine' if same >= 5 else same)",
        &[],
        Some("race"),
    );
    // A socket of the race may be made just then, and get the number for a moment.
    assert_eq!(ran.stdout, "fine\n", "{}", ran.stderr);
}

#[test]
fn a_timer_that_interrupts_still_interrupts() {
    let Some(host) = Host::start("signal") else { return };
    host.silence(IpVersion::V4);
    host.silence(IpVersion::V6);
    let ran = host.python(
        "import signal, socket, sys, time\n\
         class Late(Exception): pass\n\
         def late(*_): raise Late\n\
         signal.signal(signal.SIGALRM, late)\n\
         found = socket.getaddrinfo('both.test', int(sys.argv[1]), 0, socket.SOCK_STREAM)\n\
         address = [a[4] for a in found if a[0] == socket.AF_INET6][0]\n\
         signal.setitimer(signal.ITIMER_REAL, 0.6)\n\
         began = time.monotonic()\n\
         try: socket.socket(socket.AF_INET6).connect(address)\n\
         except Late: print(0.5 < time.monotonic() - began < 1.5)",
        &[],
        Some("race"),
    );
    assert_eq!(ran.stdout, "True\n", "{}", ran.stderr);
}

#[test]
fn curl_told_to_use_the_silent_version_gets_its_page() {
    let Some(host) = Host::start("curl") else { return };
    if !Outcome::has("curl") {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "curl is needed in CI");
        eprintln!("SKIPPED: curl is not installed");
        return;
    }
    host.silence(IpVersion::V6);
    let url = format!("http://both.test:{HTTP}/");
    let bare = host.program(&["curl", "-6", "-s", "-m", "1", &url], None);
    assert_eq!(bare.code, Some(28), "{bare:?}");
    let ran =
        host.program(&["curl", "-6", "-s", "-m", "5", "-w", "%{time_connect}", &url], Some("race,verbose"));
    println!("curl: {} {}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let took: f64 = ran.stdout.rsplit('>').next().unwrap().trim().parse().unwrap();
    assert!(ran.stdout.contains("Directory listing") && took < 1.0, "{ran:?}");
}
