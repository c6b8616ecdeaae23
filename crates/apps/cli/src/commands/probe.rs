//! `netaware probe`: watches packets, alone or for a collector.

mod print;
mod tasks;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use netaware_capture::{Keep, Merging, Options, drop_privileges};
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_observer::active::stamp;
use netaware_observer::buffer::{Buffer, BufferSettings};
use netaware_observer::ground::{Host, Replay};
use netaware_observer::link::{CollectorAddress, Heard, Identity, Judge, Link, Said, Shared, Trust};
use netaware_observer::mail::Mail;
use netaware_observer::probe::{Ground, Probe as Observer, ProbeSettings};
use netaware_units::{ByteCount, Span};
use netaware_wire::lmap::{self, Instruction};
use netaware_wire::packet::Tunnels;
use netaware_wire::proof::Key;

use self::print::{Form, Printer};
use self::tasks::TaskFlags;
use crate::exit::Exit;
use crate::flags::logging::Logging;
use crate::flags::{key, quantity};
use crate::signals;

const LONG: &str = "\
Watches the packets of an interface, or of a capture file, and says what they tell: who sends how much, at what rate, how far away \
others are. Alone it prints what it finds, period by period. With --collector it gets its tasks from a collector, and its \
reports stay on disk until the collector has them.

Capturing needs CAP_NET_RAW: root, or 'setcap cap_net_raw+ep' on the program. A probe that is alone becomes the user 'nobody' once \
it is started by root. Reading a file needs no privilege.";

const AFTER: &str = "\
Examples:
  netaware probe                              packets and bytes, each second
  netaware probe -i eth0 volume --by source   who sends how much
  netaware probe -i eth0 traffic rtt --period 10s --for 10min
  netaware probe -i eth0 -f 'tcp port 443' rtt --format ndjson
  netaware probe --read file.pcap volume --by source,destination,protocol
  netaware probe --collector tls://collect.example --name bern --key-file key

A key file holds any text of up to 1024 bytes; the collector has the same one under this probe's name.

Exit codes:
  0  ended by a signal, by --for, or by the end of the file
  2  could not watch, or the command line is wrong";

const REPORTS: &str = "Reports";
const FLEET: &str = "Fleet";
const CAPTURE: &str = "Capture";

/// Watch packets, alone or for a collector
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
pub(crate) struct Probe {
    #[command(flatten)]
    tasks: TaskFlags,
    /// Watch this interface [default: the first that is up; for a collector, all] (may be given several times with --collector)
    #[arg(short, long, value_name = "NAME", help_heading = CAPTURE)]
    interface: Vec<String>,
    /// Read this pcap or pcapng file instead
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["interface", "collector", "lasting"], help_heading = CAPTURE)]
    read: Option<PathBuf>,
    /// Bytes kept of each packet
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=65_535), help_heading = CAPTURE)]
    snap: u32,
    /// Memory in which packets wait to be looked at
    #[arg(long, value_name = "SIZE", default_value = "32MiB", help_heading = CAPTURE)]
    ring: ByteCount,
    /// Also packets that are addressed to others
    #[arg(long, help_heading = CAPTURE)]
    promiscuous: bool,
    /// Look into tunnels: gre, ip, vxlan, gtp
    #[arg(long, value_name = "KIND[,KIND…]", help_heading = CAPTURE)]
    tunnels: Option<Tunnels>,
    /// Do not watch interfaces that merge packets (GRO, LRO, TSO, GSO); without this such frames are counted as merged
    #[arg(long, help_heading = CAPTURE)]
    refuse_merged: bool,
    /// Length of a period; periods are aligned to the clock
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = period, conflicts_with = "collector", help_heading = REPORTS)]
    period: Span,
    /// End after this time
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::some_seconds, help_heading = REPORTS)]
    lasting: Option<Span>,
    /// How to print: text, json, ndjson
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, hide_possible_values = true, conflicts_with = "collector", help_heading = REPORTS)]
    format: Form,
    /// Get tasks from this collector: HOST, HOST:PORT or tls://HOST:PORT; further ones each get their part of the digests
    #[arg(short, long, value_name = "ADDR", requires = "name", help_heading = FLEET)]
    collector: Vec<CollectorAddress>,
    /// Name of this probe in the fleet: a-z, 0-9 and -
    #[arg(short, long, value_name = "NAME", value_parser = name, requires = "collector", help_heading = FLEET)]
    name: Option<String>,
    /// File with this probe's key; the variable NETAWARE_KEY can hold the key instead
    #[arg(long, value_name = "FILE", requires = "collector", help_heading = FLEET)]
    key_file: Option<PathBuf>,
    /// PEM file of the authority that signed the collector's certificate
    #[arg(long, value_name = "FILE", requires = "collector", conflicts_with = "fingerprint", help_heading = FLEET)]
    ca: Option<PathBuf>,
    /// SHA-256 of the collector's certificate, 64 hexadecimal digits
    #[arg(long, value_name = "HEX", requires = "collector", help_heading = FLEET)]
    fingerprint: Option<String>,
    /// PEM file of this probe's own certificate; its name has to be the probe's
    #[arg(long, value_name = "FILE", requires_all = ["collector", "certificate_key"], help_heading = FLEET)]
    certificate: Option<PathBuf>,
    /// PEM file of its key
    #[arg(long, value_name = "FILE", requires = "certificate", help_heading = FLEET)]
    certificate_key: Option<PathBuf>,
    /// Folder for reports that were not taken yet
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/netaware/probe", help_heading = FLEET)]
    state: PathBuf,
    /// Room for them on disk; the oldest go when it is full, and are counted
    #[arg(long, value_name = "SIZE", default_value = "256MiB", help_heading = FLEET)]
    buffer: ByteCount,
    /// Address by which other probes reach this one (may be given several times)
    #[arg(long, value_name = "ADDR", requires = "collector", help_heading = FLEET)]
    address: Vec<IpAddr>,
    /// Become this user once the files are open [default: nobody, with --collector: none]
    #[arg(long, value_name = "USER", help_heading = CAPTURE)]
    user: Option<String>,
    #[command(flatten)]
    logging: Logging,
}

fn name(text: &str) -> Result<String, String> {
    let wrong = || "a probe's name is 1 to 63 of a-z, 0-9 and '-'".to_owned();
    lmap::is_name(text).then(|| text.to_owned()).ok_or_else(wrong)
}

fn period(text: &str) -> Result<Span, String> {
    let span = quantity::some_seconds(text)?;
    let fits = (Span::from_millis(100)..=Span::from_secs(3600)).contains(&span);
    if fits { Ok(span) } else { Err("it is 100ms to 1h".to_owned()) }
}

impl Probe {
    /// Watches until a signal, the given time or the file's end.
    ///
    /// # Errors
    /// There is nothing to watch, or no way to do it.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        self.logging.start();
        let stop = StopFlag::new();
        signals::listen(&stop, |_| ())?;
        match (&self.read, self.collector.is_empty()) {
            (Some(file), _) => self.alone(Replay::new(file), &stop),
            (None, true) => {
                let host = self.host()?;
                self.drop_to(self.user.as_deref().or(Some("nobody")), &[])?;
                self.alone(host, &stop)
            }
            (None, false) => self.in_fleet(&stop),
        }
    }

    fn host(&self) -> anyhow::Result<Host> {
        let all = Host::all();
        for wanted in &self.interface {
            if !all.contains(wanted) {
                bail!("there is no interface '{wanted}'; there are: {}", all.join(", "));
            }
        }
        let options = Options {
            snap: self.snap,
            ring: self.ring,
            promiscuous: self.promiscuous,
            merging: if self.refuse_merged { Merging::Refuse } else { Merging::Count },
            ..Options::new(String::new())
        };
        Ok(Host { options, only: self.interface.clone() })
    }

    /// Prints what it finds.
    fn alone<G: Ground>(&self, ground: G, stop: &StopFlag) -> anyhow::Result<Exit> {
        let printer = Printer {
            form: self.format,
            top: self.tasks.top as usize,
            out: std::io::stdout(),
            reports: 0,
            failed: None,
        };
        let settings = self.settings("here".to_owned(), Arc::default())?;
        let is_file = self.read.is_some();
        let (mut probe, reporting) = Observer::new(ground, settings, printer, self.period)?;
        probe.follow(Instruction {
            number: 1,
            tasks: self.tasks.tasks().into_iter().collect(),
            suppression: None,
            seed: "0".repeat(32),
            period_ms: (self.period.0 / 1_000_000) as u32,
        });
        if let Some((task, why)) = probe.refused().first_key_value() {
            let why = anyhow!("{task}: {why}");
            probe.end();
            return Err(why);
        }
        let until = self.lasting.map(|span| clock::now() + span);
        while !(stop.is_raised() || is_file && probe.is_finished())
            && until.is_none_or(|until| clock::now() < until)
        {
            clock::sleep(Span::from_millis(20));
            if !is_file {
                probe.tick();
            }
        }
        let failed = probe.end();
        let printer = reporting.join().context("the reporting thread panicked")?;
        match (printer.failed, failed) {
            (Some(error), _) => Err(error).context("stdout"),
            (None, Some(why)) if is_file => Err(anyhow!(why)),
            (None, _) => Ok(Exit::Done),
        }
    }

    fn settings(&self, name: String, said: Arc<Mutex<Said>>) -> anyhow::Result<ProbeSettings> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).context("no random numbers")?;
        let here = name.clone();
        let mut clock_watch = netaware_observer::clock::ClockWatch::new();
        Ok(ProbeSettings {
            name,
            tunnels: self.tunnels.unwrap_or_default(),
            clock: Box::new(move || clock_watch.state()),
            stamp: Arc::new(move |what, period, stop, finds| stamp::flow(&here, what, period, stop, finds)),
            random: u64::from_ne_bytes(random),
            said,
        })
    }

    /// Does what collectors say.
    fn in_fleet(&self, stop: &StopFlag) -> anyhow::Result<Exit> {
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
        let shared = self.shared(&said)?;
        self.drop_to(self.user.as_deref(), &[&self.state])?;
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
        let own = self.certificate.as_deref().zip(self.certificate_key.as_deref());
        if matches!(judge, Judge::Key) && own.is_some() && self.key_file.is_none() {
            bail!("without a key the collector has to be known by --ca or --fingerprint");
        }
        Ok([(false, Trust::Plain), (true, Trust::tls(judge, own)?)].into())
    }

    /// One buffer for each collector, in a folder of its own.
    fn shared(&self, said: &Arc<Mutex<Said>>) -> anyhow::Result<Vec<Shared>> {
        let open = |address: &CollectorAddress| {
            let folder = self.state.join(folder_name(address));
            let most = ByteCount(self.buffer.0 / self.collector.len() as u64);
            let buffer = Buffer::open(BufferSettings { folder, most })
                .context("give a folder that this user can write to with --state")?;
            Ok(Shared::new(buffer, said.clone()))
        };
        self.collector.iter().map(open).collect()
    }

    /// Gives privileges back. Folders that are written to later are given to the user first.
    fn drop_to(&self, user: Option<&str>, folders: &[&Path]) -> anyhow::Result<()> {
        let Some(user) = user else { return Ok(()) };
        if self.user.is_some() {
            for folder in folders {
                netaware_observer::ground::give(folder, user)
                    .with_context(|| format!("cannot give {} to {user}", folder.display()))?;
            }
        }
        drop_privileges(user, Keep::RawSockets)?;
        Ok(())
    }
}

/// What collectors are told that this can do.
fn abilities() -> Vec<String> {
    ["volume", "traffic", "digest", "rtt", "marking", "capacity", "stamp", "measure"]
        .map(str::to_owned)
        .into()
}

/// The same collector finds its reports again, whatever else is in the folder.
fn folder_name(address: &CollectorAddress) -> String {
    let host = address.host.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-', "_");
    format!("{host}_{}", address.port)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use netaware_wire::lmap::What;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        probe: Probe,
    }

    fn probe(words: &str) -> Result<Probe, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.probe).map_err(|error| error.to_string())
    }

    #[test]
    fn without_a_word_it_counts_packets() {
        let tasks = probe("").unwrap().tasks.tasks();
        assert_eq!(tasks.len(), 1);
        assert!(matches!(&tasks[0].1.what, What::Volume { by, .. } if by.is_empty()));
    }

    #[test]
    fn several_tasks_share_one_filter_and_are_within_the_bounds_of_instructions() {
        let line = "-i eth0 rtt volume traffic volume --by source,dscp --prefix 24,64 -f tcp --slice 50ms";
        let tasks = probe(line).unwrap().tasks.tasks();
        assert_eq!(
            tasks.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["volume", "traffic", "rtt"]
        );
        assert!(tasks.iter().all(|(_, task)| task.filter.as_deref() == Some("tcp") && task.check().is_ok()));
        assert!(matches!(tasks[0].1.what, What::Volume { prefix: Some((24, 64)), .. }));
    }

    #[test]
    fn wrong_lines_say_what_is_wrong() {
        let wrong = |line: &str| probe(line).unwrap_err();
        assert!(wrong("volume --by colour").contains("colour"));
        assert!(wrong("--collector x --name Bern").contains("1 to 63 of a-z"));
        assert!(wrong("--collector http://x --name bern").contains("tls://HOST:PORT"));
        assert!(wrong("--collector x").contains("--name"));
        assert!(wrong("--read f --collector x --name bern").contains("cannot be used with"));
        assert!(wrong("volume --period 1ms").contains("100ms to 1h"));
        assert!(wrong("--key-file k").contains("--collector"));
    }

    #[test]
    fn an_unknown_interface_is_told_with_those_there_are() {
        let error = probe("-i nonesuch0").unwrap().host().unwrap_err().to_string();
        assert!(
            error.contains("nonesuch0") && error.contains("there are: ") && error.contains("lo"),
            "{error}"
        );
    }

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
    fn each_collector_has_a_folder_that_leads_nowhere_else() {
        let name = |text: &str| folder_name(&text.parse().unwrap());
        assert_eq!(name("lab-b:5"), "lab-b_5");
        assert_eq!(name("[2001:db8::1]:5"), "2001_db8__1_5");
        assert!(!name("..:5").contains('/'));
    }
}
