//! A pair of hosts: a server on one, programs with the library on the other.

use std::path::PathBuf;
use std::process::Command;

use netaware_netns::{IpVersion, Pair, Running, Transport, permitted, wait_until_bound};

/// Counts what comes and answers with the IP version that it came over and the count.
const SERVER: &str = r#"
import socket, threading
s = socket.create_server(("::", 5000), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
def serve(c, a):
    count = 0
    while piece := c.recv(65536):
        count += len(piece)
    c.sendall(b"%s %d" % (b"4" if a[0].startswith("::ffff:") else b"6", count))
    c.close()
while True:
    threading.Thread(target=serve, args=s.accept(), daemon=True).start()
"#;

const PORT: u16 = 5000;
/// Of a server of pages.
pub(crate) const HTTP: u16 = 5001;

pub(crate) struct Host {
    pair: Pair,
    _servers: [Running; 2],
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Where cargo has put the library: beside this test.
fn library() -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().unwrap().join("libnetaware_shim.so");
    assert!(path.is_file(), "{}", path.display());
    path
}

impl Host {
    /// `None` where namespaces are not permitted.
    pub(crate) fn start(name: &str) -> Option<Self> {
        if !permitted() {
            return None;
        }
        let pair = Pair::new(name).unwrap();
        let counting = Running::start(pair.right().command("python3").args(["-c", SERVER])).unwrap();
        let http = ["-m", "http.server", "--bind", "::", &HTTP.to_string()];
        let pages = Running::start(pair.right().command("python3").args(http)).unwrap();
        wait_until_bound(counting.id(), Transport::Tcp, PORT).unwrap();
        wait_until_bound(pages.id(), Transport::Tcp, HTTP).unwrap();
        Some(Self { pair, _servers: [counting, pages] })
    }

    pub(crate) fn silence(&self, version: IpVersion) {
        self.pair.blackhole(version).unwrap();
    }

    pub(crate) fn hear(&self) {
        self.pair.unblackhole().unwrap();
    }

    /// A script, which gets the port as its first argument.
    pub(crate) fn python(&self, script: &str, arguments: &[&str], order: Option<&str>) -> Outcome {
        let port = PORT.to_string();
        self.program(&[&["python3", "-c", script, &port][..], arguments].concat(), order)
    }

    /// With the library where there is an order for it. One without it is ended after two seconds,
    /// with code 124.
    pub(crate) fn program(&self, line: &[&str], order: Option<&str>) -> Outcome {
        let mut command = self.pair.left().command("env");
        if let Some(order) = order {
            command.arg(format!("LD_PRELOAD={}", library().display())).arg(format!("NETAWARE_RUN={order}"));
        }
        command.args(["timeout", if order.is_some() { "40" } else { "2" }]).args(line);
        let ended = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stderr = text(&ended.stderr);
        // The library goes on without itself where it panics; here that is a failure.
        assert!(!stderr.contains("panicked at"), "{line:?}: {stderr}");
        Outcome { code: ended.status.code(), stdout: text(&ended.stdout), stderr }
    }
}

impl Outcome {
    /// Over which version, to whom, and after how many seconds.
    pub(crate) fn connected(&self) -> (&str, &str, f64) {
        assert_eq!(self.code, Some(0), "{self:#?}");
        let words: Vec<&str> = self.stdout.split_whitespace().collect();
        let [seen, peer, took] = words[..] else { panic!("{self:#?}") };
        (seen, peer, took.parse().unwrap())
    }

    pub(crate) fn has(program: &str) -> bool {
        Command::new(program).arg("--version").output().is_ok()
    }
}
