//! `netaware collect` as people run it, on loopback: what its flags say holds as long as it runs,
//! and a file that is applied from elsewhere means the collector's own folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use netaware_testkit::program::{netaware_path, output};
use serde_json::Value;

const FLEET: &str = r#"
listen = ["127.0.0.1:0"]
state = "state"
[probes.a]
key_file = "keys/a.key"
"#;

const TASK: &str = r#"
[tasks.volume]
on = ["a"]
kind = "volume"
"#;

/// A collector that ends with the test.
struct Running {
    child: Child,
    at: String,
    /// The file of the admin token that it made.
    token: PathBuf,
    /// What it says later must find somebody who could read it.
    _said: BufReader<ChildStdout>,
}

impl Running {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(netaware_path());
        command.current_dir(folder).args(["collect", "run", "--config", "site/collect.toml"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line.strip_prefix("collecting on ").and_then(|rest| rest.split(';').next());
        let at = format!("http://{}", address.unwrap_or_else(|| panic!("'{line}' names no address")));
        let token = folder.join("site/state/admin-token");
        Self { child, at, token, _said: said }
    }

    /// `collect ACTION` for the file of that folder, whose paths mean nothing there.
    fn ask(&self, action: &str, folder: &Path) -> Output {
        let arguments = ["collect", action, "--config", "collect.toml", "--at", &self.at, "--token-file"];
        output(Command::new(netaware_path()).current_dir(folder).args(arguments).arg(&self.token))
    }

    fn config(&self) -> String {
        let token = std::fs::read_to_string(&self.token).unwrap();
        let client = netaware_collector::Client::new(&self.at, Some(token), None).unwrap();
        client.ask("GET", "/api/v1/config", "").unwrap().body
    }

    fn health(&self) -> Value {
        let client = netaware_collector::Client::new(&self.at, None, None).unwrap();
        serde_json::from_str(&client.ask("GET", "/api/v1/health", "").unwrap().body).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The collector's host and somebody else's, as two folders: the second has the file alone.
fn hosts() -> (tempfile::TempDir, tempfile::TempDir) {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir_all(here.path().join("site/keys")).unwrap();
    std::fs::write(here.path().join("site/keys/a.key"), "key of a\n").unwrap();
    std::fs::write(here.path().join("site/collect.toml"), FLEET).unwrap();
    std::fs::write(there.path().join("collect.toml"), format!("{FLEET}{TASK}")).unwrap();
    (here, there)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn a_file_applied_from_elsewhere_means_the_collectors_own_folder() {
    let (here, there) = hosts();
    let collector = Running::start(here.path(), &[]);
    let plan = collector.ask("plan", there.path());
    assert!(plan.status.success() && said(&plan).contains("volume"), "{}", said(&plan));
    let applied = collector.ask("apply", there.path());
    assert!(applied.status.success(), "{}", said(&applied));
    assert_eq!(collector.health()["number"], 2);
    let site = here.path().canonicalize().unwrap().join("site");
    let key = site.join("keys/a.key").display().to_string();
    assert!(collector.config().contains(&key), "{}", collector.config());
    // A key that the collector does not have is refused by its name there.
    std::fs::write(there.path().join("collect.toml"), FLEET.replace("a.key", "b.key")).unwrap();
    let refused = collector.ask("apply", there.path());
    let missing = site.join("keys/b.key").display().to_string();
    assert!(!refused.status.success() && said(&refused).contains(&missing), "{}", said(&refused));
}

#[test]
fn flags_of_the_start_hold_for_every_file_that_is_applied() {
    let (here, there) = hosts();
    let flags = ["--shard", "1/2", "--ipfix", "udp://127.0.0.1:0", "--store", "elsewhere.db"];
    let collector = Running::start(here.path(), &flags);
    let store = here.path().canonicalize().unwrap().join("elsewhere.db");
    assert!(store.exists(), "{}", store.display());
    for number in [2, 2] {
        let applied = collector.ask("apply", there.path());
        assert!(applied.status.success(), "{}", said(&applied));
        assert_eq!(collector.health()["number"], number);
    }
    let config = collector.config();
    assert!(config.contains("shard = \"1/2\"") && config.contains("elsewhere.db"), "{config}");
    assert_eq!(config.matches("udp://127.0.0.1:0").count(), 1, "{config}");
}

#[test]
fn a_store_that_makes_no_sense_is_named_at_the_start() {
    let (here, _) = hosts();
    let arguments = ["collect", "run", "--config", "site/collect.toml", "--store", "postgres://host/db"];
    let output = output(Command::new(netaware_path()).current_dir(here.path()).args(arguments));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("postgres://"), "{}", said(&output));
}
