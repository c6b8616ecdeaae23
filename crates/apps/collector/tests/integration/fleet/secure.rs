//! Certificates: whom a client of the collector believes and what it says when it does not, and
//! which probes and exporters the collector believes.

use std::path::{Path, PathBuf};

use netaware_collector::{Client, ClientError, Judge};
use netaware_io::clock;
use netaware_ipfix::{Exporter, Over};
use netaware_tls::Trust;
use rcgen::{CertificateParams, Issuer, KeyPair};

use super::foreign::{count, flow, place, volumes, wait};
use super::probe::Probe;
use super::{Running, TWO, start};

/// A certificate for these names and its key, PEM, in the folder.
pub(crate) fn certified(folder: &Path, name: &str, names: &[&str]) -> (PathBuf, PathBuf) {
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
    let client = Client::new(&address, collector.token.clone(), Some(judge))?;
    let answer = client.ask("POST", "/api/v1/plan", TWO)?;
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

/// An authority that the collector names, and one that it does not know.
struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    fn new(folder: &Path, name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let own = parameters.self_signed(&key).unwrap();
        std::fs::write(folder.join(format!("{name}.pem")), own.pem()).unwrap();
        Self(Issuer::new(parameters, key))
    }

    /// A certificate for `name` and its key, as files.
    fn certify(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let signed = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let [chain, secret] = ["pem", "key.pem"].map(|end| folder.join(format!("card-{name}.{end}")));
        std::fs::write(&chain, signed.pem()).unwrap();
        std::fs::write(&secret, key.serialize_pem()).unwrap();
        (chain, secret)
    }
}

/// A collector that lets in who has a certificate of `fleet`: the probe `c` has no key, and
/// exporters come over TLS.
fn carded(folder: &Path) -> (Running, Authority) {
    certified(folder, "own", &["localhost"]);
    let fleet = Authority::new(folder, "fleet");
    let text = format!(
        "ipfix = [\"tls://127.0.0.1:0\"]{TWO}[probes.c]\n\
[tls]\ncertificate = \"own.pem\"\nkey = \"own.key.pem\"\nclient_ca = \"fleet.pem\"\n"
    );
    (start(folder, &text), fleet)
}

/// Trust in the collector of that folder, with a certificate of one's own or none.
fn trust(folder: &Path, own: Option<&(PathBuf, PathBuf)>) -> Trust {
    let own = own.map(|(chain, key)| (chain.as_path(), key.as_path()));
    Trust::tls(Judge::Authority(&folder.join("own.pem")), own).unwrap()
}

#[test]
fn a_probe_is_let_in_by_a_certificate_with_its_name_and_another_is_refused_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, fleet) = carded(folder.path());
    let join = |name, card: Option<&(PathBuf, PathBuf)>| {
        Probe::try_join_over(&trust(folder.path(), card), collector.address, name, "")
    };
    let (right, wrong) = (fleet.certify(folder.path(), "c"), fleet.certify(folder.path(), "d"));
    assert_eq!(join("c", Some(&right)).unwrap().instruction().tasks.len(), 1);
    for (name, card) in [("c", Some(&wrong)), ("c", None), ("d", Some(&wrong)), ("a", Some(&right))] {
        let why = join(name, card).err().unwrap();
        assert!(why.starts_with("the collector does not know a probe of this name"), "{name}: {why}");
    }
    let refused = |name: &str| collector.ask(&format!("/api/v1/probes/{name}"))["counts"]["refused"].clone();
    assert_eq!((refused("c"), refused("a")), (2.into(), 1.into()));
    // Somebody whom the authority did not sign does not even come to say a name.
    let stranger = Authority::new(folder.path(), "stranger").certify(folder.path(), "c");
    assert!(join("c", Some(&stranger)).is_err());
}

#[test]
fn an_exporter_over_tls_has_to_show_a_certificate_of_the_authority() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, fleet) = carded(folder.path());
    let export = |own: Option<&(PathBuf, PathBuf)>| {
        let Trust::Tls(config) = trust(folder.path(), own) else { panic!("no TLS") };
        let target = format!("tls://localhost:{}", place(&collector, Over::Tls).port()).parse().unwrap();
        let mut exporter = Exporter::new(target, Some(config), 7);
        // What the other end thinks of a certificate shows after one's own handshake is done.
        let _ =
            exporter.send(clock::now(), clock::wall(), &mut |emitter, out| emitter.volume(&flow(80, 4), out));
    };
    let stranger = Authority::new(folder.path(), "stranger").certify(folder.path(), "x");
    export(None);
    export(Some(&stranger));
    wait("both refused", || count(&collector, "foreign_total") == 2);
    export(Some(&fleet.certify(folder.path(), "router")));
    wait("the flow", || volumes(&collector, "ipfix-127.0.0.1") == [(80, (4, 400))].into());
    assert_eq!((count(&collector, "flows_total"), count(&collector, "foreign_total")), (1, 2));
}
