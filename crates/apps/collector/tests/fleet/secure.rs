//! `plan` and `apply` over TLS: whom the client believes, and what it says when it does not.

use std::path::{Path, PathBuf};

use netaware_collector::{Client, ClientError, Judge};

use super::{Running, TWO, start};

/// A certificate for these names and its key, PEM, in the folder.
fn certified(folder: &Path, name: &str, names: &[&str]) -> (PathBuf, PathBuf) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let [chain, key] = ["pem", "key.pem"].map(|end| folder.join(format!("{name}.{end}")));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (chain, key)
}

fn encrypted(folder: &Path, names: &[&str]) -> Running {
    certified(folder, "own", names);
    start(folder, &format!("{TWO}[tls]\ncertificate = \"own.pem\"\nkey = \"own.key.pem\"\n"))
}

/// The plan of the file that runs already.
fn plan(collector: &Running, host: &str, judge: Judge<'_>) -> Result<u16, ClientError> {
    let address = format!("https://{host}:{}", collector.address.port());
    let answer = Client::new(&address, None, Some(judge))?.ask("POST", "/api/v1/plan", TWO)?;
    Ok(answer.status)
}

#[test]
fn a_collector_is_known_by_its_authority_and_name_or_by_its_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    let collector = encrypted(folder.path(), &["localhost"]);
    let own = folder.path().join("own.pem");
    assert_eq!(plan(&collector, "localhost", Judge::Authority(&own)).unwrap(), 200);
    let chain = netaware_tls::pem::certificates(&own).unwrap();
    let fingerprint = netaware_tls::fingerprint(&chain[0]).to_string();
    // By its fingerprint it may be dialled by any name.
    assert_eq!(plan(&collector, "127.0.0.1", Judge::Fingerprint(&fingerprint)).unwrap(), 200);
}

#[test]
fn one_that_is_not_believed_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let collector = encrypted(folder.path(), &["collect.example"]);
    let (own, (other, _)) =
        (folder.path().join("own.pem"), certified(folder.path(), "other", &["collect.example"]));
    let told = |judge| plan(&collector, "127.0.0.1", judge).unwrap_err().to_string();
    let unknown = told(Judge::Authority(&other));
    assert!(unknown.contains("signed by nobody who is known here"), "{unknown}");
    let named = told(Judge::Authority(&own));
    assert!(named.contains("collect.example") && named.contains("not for '127.0.0.1'"), "{named}");
    let another = told(Judge::Fingerprint(&"00".repeat(32)));
    let chain = netaware_tls::pem::certificates(&own).unwrap();
    assert!(another.contains(&netaware_tls::fingerprint(&chain[0]).to_string()), "{another}");
}

#[test]
fn a_collector_without_tls_is_told_from_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let collector = start(folder.path(), TWO);
    let (other, _) = certified(folder.path(), "other", &["localhost"]);
    let plain = plan(&collector, "127.0.0.1", Judge::Authority(&other)).unwrap_err();
    assert!(plain.to_string().contains("speaks no TLS"), "{plain}");
    let port = collector.address.port();
    collector.end();
    let gone = Client::new(&format!("https://127.0.0.1:{port}"), None, Some(Judge::Authority(&other)));
    let gone = gone.unwrap().ask("GET", "/api/v1/health", "").unwrap_err();
    assert!(gone.to_string().contains("'netaware collect run'"), "{gone}");
}
