//! A collector on loopback, and probes that are made of bytes.

mod probe;

mod answers;
mod api;
mod away;
mod clocks;
mod crowd;
mod export;
mod foreign;
mod gaps;
mod guide;
mod joined;
mod killed;
mod metrics;
mod page;
mod protocol;
mod restarted;
mod secure;
mod shards;

use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;

use netaware_collector::{Client, Collector, Config, StartError, Stopper};
use netaware_ipfix::Over;
use serde_json::Value;

/// A collector that ends with the test.
struct Running {
    address: SocketAddr,
    /// Where it takes IPFIX of others.
    ipfix: Vec<(Over, SocketAddr)>,
    /// The admin token that it made itself; `None` where its file names one.
    token: Option<String>,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), StartError>>>,
}

const TWO: &str = r#"
listen = ["127.0.0.1:0"]
period = "1s"
[probes.a]
key_file = "a.key"
address = "192.0.2.1"
[probes.b]
key_file = "b.key"
address = "192.0.2.2"
[tasks.delay]
on = ["all"]
kind = "digest"
[joins.path]
task = "delay"
points = ["a", "b"]
patience = "500ms"
report_patience = "1s"
"#;

fn config(folder: &Path, text: &str) -> Config {
    for name in ["a", "b"] {
        std::fs::write(folder.join(format!("{name}.key")), format!("key of {name}\n")).unwrap();
    }
    let path = folder.join("collect.toml");
    std::fs::write(&path, text).unwrap();
    Config::load(&path).unwrap()
}

fn start(folder: &Path, text: &str) -> Running {
    let config = config(folder, text);
    let state = config.state.clone().unwrap();
    let collector = Collector::start(config).unwrap();
    let token = std::fs::read_to_string(state.join("admin-token")).ok();
    let (address, stopper) = (collector.addresses()[0], collector.stopper());
    let ipfix = collector.ipfix_addresses();
    let thread = Some(std::thread::spawn(move || collector.run()));
    Running { address, ipfix, token, stopper, thread }
}

impl Running {
    fn client(&self) -> Client {
        self.client_with(self.token.as_deref())
    }

    fn client_with(&self, token: Option<&str>) -> Client {
        Client::new(&format!("http://{}", self.address), token.map(str::to_owned), None).unwrap()
    }

    fn ask(&self, path: &str) -> Value {
        let answer = self.client().ask("GET", path, "").unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    fn end(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}
