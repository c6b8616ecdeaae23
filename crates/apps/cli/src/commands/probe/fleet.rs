//! A probe that collectors tell what to do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use anyhow::{Context, bail};
use netaware_capture::Keep;
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_observer::buffer::{Buffer, BufferSettings};
use netaware_observer::ground::Host;
use netaware_observer::link::{CollectorAddress, Heard, Identity, Judge, Link, Said, Shared, Trust};
use netaware_observer::mail::Mail;
use netaware_observer::probe::{Ground as _, Probe as Observer};
use netaware_units::{ByteCount, Span};
use netaware_wire::proof::Key;

use super::Probe;
use crate::exit::Exit;
use crate::flags::key;

impl Probe {
    /// Does what collectors say.
    pub(super) fn in_fleet(&self, stop: &StopFlag) -> anyhow::Result<Exit> {
        let name = self.name.clone().context("--name is missing")?;
        let key = key::read(self.key_file.as_deref())?.map(Key::new).transpose()?;
        if key.is_none() && self.certificate.is_none() {
            bail!(
                "a probe needs a key or a certificate; give --key-file, the variable NETAWARE_KEY, or --certificate"
            );
        }
        let trust = self.trust()?;
        let host = self.host()?;
        let said = Arc::new(Mutex::new(Said::default()));
        let shared = self.shared(&name, &said)?;
        // A task may name any of them later, when nothing can be switched on any more; one that
        // does not stamp is refused then.
        let given = host.only.iter().cloned();
        self.switch_stamps_on(given)?;
        if self.interface.is_empty() {
            for interface in host.interfaces() {
                drop(self.switch_stamps_on(std::iter::once(interface)));
            }
        }
        let folders: Vec<PathBuf> =
            self.collector.iter().map(|address| self.folder(&name, address)).collect();
        Self::confine(&Self::fleet_needs(&folders), stop)?;
        self.drop_privileges(Keep::RawSockets, &folders)?;
        let identity = Identity {
            probe: name.clone(),
            key,
            abilities: abilities(),
            interfaces: Host::all(),
            addresses: self.address.clone(),
        };
        let (news, heard) = mpsc::channel();
        let links = self.links(&shared, &trust, &identity, &news);
        drop(news);
        let mail = Mail::new(shared.iter().map(|shared| shared.buffer.clone()).collect());
        let settings = self.settings(name, said)?;
        let (probe, reporting) = Observer::new(host, settings, mail, Span::from_secs(1))?;
        self.work(probe, reporting, links, &heard, stop)
    }

    fn work(
        &self,
        probe: Observer<Host>,
        reporting: netaware_observer::probe::Reporting<Mail>,
        links: Vec<Link>,
        heard: &mpsc::Receiver<Heard>,
        stop: &StopFlag,
    ) -> anyhow::Result<Exit> {
        if let Some(span) = self.lasting {
            let stop = stop.clone();
            std::thread::Builder::new().name("probe-end".into()).spawn(move || {
                let until = clock::now() + span;
                while clock::now() < until && !stop.is_raised() {
                    clock::sleep(Span::from_millis(50));
                }
                stop.raise();
            })?;
        }
        // Links end after the last reports are made, so that a collector that is there gets them.
        let links_stop = StopFlag::new();
        let threads: Result<Vec<_>, _> = links
            .into_iter()
            .map(|link| {
                let stop = links_stop.clone();
                std::thread::Builder::new().name("probe-link".into()).spawn(move || link.run(&stop))
            })
            .collect();
        let threads = threads.context("cannot start a thread")?;
        probe.run(heard, stop);
        drop(reporting.join());
        links_stop.raise();
        for thread in threads {
            if thread.join().is_err() {
                bail!("a link's thread panicked");
            }
        }
        Ok(Exit::Done)
    }

    fn links(
        &self,
        shared: &[Shared],
        trust: &BTreeMap<bool, Trust>,
        identity: &Identity,
        news: &mpsc::Sender<Heard>,
    ) -> Vec<Link> {
        let each = self.collector.iter().zip(shared).enumerate();
        each.map(|(index, (address, shared))| Link {
            index,
            address: address.clone(),
            trust: trust.get(&self.is_encrypted(address)).cloned().unwrap_or(Trust::Plain),
            identity: identity.clone(),
            shared: shared.clone(),
            news: news.clone(),
        })
        .collect()
    }

    fn is_encrypted(&self, address: &CollectorAddress) -> bool {
        address.tls || self.ca.is_some() || self.fingerprint.is_some() || self.certificate.is_some()
    }

    fn trust(&self) -> anyhow::Result<BTreeMap<bool, Trust>> {
        let judge = match (&self.ca, &self.fingerprint) {
            (Some(path), _) => Judge::Authority(path),
            (None, Some(text)) => Judge::Fingerprint(text),
            (None, None) => Judge::Key,
        };
        let own = self.own_certificate();
        if matches!(judge, Judge::Key) && own.is_some() && self.key_file.is_none() {
            bail!("without a key the collector has to be known by --ca or --fingerprint");
        }
        Ok([(false, Trust::Plain), (true, Trust::tls(judge, own)?)].into())
    }

    fn folder(&self, name: &str, address: &CollectorAddress) -> PathBuf {
        self.state.join(folder_name(name, address))
    }

    /// One buffer for each collector, in a folder of its own.
    fn shared(&self, name: &str, said: &Arc<Mutex<Said>>) -> anyhow::Result<Vec<Shared>> {
        let open = |address: &CollectorAddress| {
            let folder = self.folder(name, address);
            let most = ByteCount(self.buffer.0 / self.collector.len() as u64);
            let buffer = Buffer::open(BufferSettings { folder, most })
                .context("give a folder that this user can write to with --state")?;
            Ok(Shared::new(buffer, said.clone()))
        };
        self.collector.iter().map(open).collect()
    }
}

/// What collectors are told that this can do.
fn abilities() -> Vec<String> {
    ["volume", "traffic", "digest", "rtt", "marking", "capacity", "stamp", "measure"]
        .map(str::to_owned)
        .into()
}

/// The probe of this name finds its reports for the same collector again, whatever else is in the
/// folder.
fn folder_name(probe: &str, address: &CollectorAddress) -> String {
    let harmless =
        |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-', "_");
    format!("{}@{}_{}", harmless(probe), harmless(&address.host), address.port)
}

#[cfg(test)]
mod tests {
    use super::super::tests::probe;
    use super::*;

    #[test]
    fn encryption_follows_the_address_and_what_is_known_of_the_collector() {
        let encrypted = |line: &str| {
            let probe = probe(line).unwrap();
            probe.is_encrypted(&probe.collector[0])
        };
        assert!(!encrypted("--collector a --name x"));
        assert!(encrypted("--collector tls://a --name x"));
        assert!(encrypted("--collector a --name x --fingerprint 00"));
    }

    #[test]
    fn each_probe_has_a_folder_for_each_collector_that_leads_nowhere_else() {
        let name = |probe: &str, text: &str| folder_name(probe, &text.parse().unwrap());
        assert_eq!(name("oslo", "lab-b:5"), "oslo@lab-b_5");
        assert_eq!(name("bern-2", "[2001:db8::1]:5"), "bern-2@2001_db8__1_5");
        assert!(!name("../x", "..:5").contains('/'));
    }
}
