//! `netaware serve`: the responder.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use netaware_confine::Confinement;
use netaware_io::priority::Permits;
use netaware_io::zone::{self, ZonedIp};
use netaware_record::Record;
use netaware_server::{
    Config, Fingerprint, Identity, KeepError, Key, Listed, Network, PublicName, Results, Sender, Server,
};
use netaware_store::{Among, Filter, OpenError, Room, SaveError, Store};
use netaware_units::{BitRate, ByteCount, Span};
use netaware_wire::DEFAULT_PORT;
use netaware_wire::control::MAX_STREAMS;
use qrcode::render::unicode::Dense1x2;

use crate::confinement;
use crate::exit::Exit;
use crate::flags::affinity;
use crate::flags::logging::Logging;
use crate::flags::{identity_file, key, quantity};
use crate::signals;
use crate::sink;

const LONG: &str = "\
Answers measurements of 'netaware test' and its phases on one port, TCP and UDP, over both IP versions. Needs no \
privilege. Throughput measurements run one at a time unless --max-concurrent says otherwise; others wait their turn. \
SIGTERM or Ctrl-C ends it: running measurements end with what they have.";

const AFTER: &str = "\
Examples:
  netaware serve
  netaware serve --key-file key --allow 192.0.2.0/24 --allow 2001:db8::/32
  netaware serve --max-rate 1Gbit/s --max-duration 30s --log json
  netaware serve --stamp=8620
  netaware serve --tls                        the page over https

A key file holds any text of up to 1024 bytes; give probers the same one:
  head -c 32 /dev/urandom | base64 > key

Exit codes:
  0  ended by a signal
  2  could not listen, or the command line is wrong";

const LIMITS: &str = "Limits";
const PAGE: &str = "Page for browsers";
/// Answer measurements
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
pub(crate) struct Serve {
    /// TCP and UDP port; 0 lets the system choose one
    #[arg(short, long, value_name = "PORT", default_value_t = DEFAULT_PORT, value_parser = quantity::whole::<u16>(0..=65_535))]
    port: u16,
    /// Listen on this address instead of all (may be given several times)
    #[arg(short = 'B', long, value_name = "ADDR", value_parser = zone::parse_ip)]
    bind: Vec<ZonedIp>,
    /// File with a shared key that probers must have; the variable NETAWARE_KEY can hold the key
    /// instead
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Only answer probers of this network, as in 192.0.2.0/24 (may be given several times)
    #[arg(long, value_name = "CIDR")]
    allow: Vec<Network>,
    /// Answer STAMP (RFC 8762) as well, for 'netaware owd' and others, on this UDP port:
    /// --stamp=8620 [default: 862, which needs CAP_NET_BIND_SERVICE]; with a key only packets that
    /// prove it
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "862", value_parser = quantity::whole::<u16>(0..=65_535))]
    stamp: Option<u16>,
    /// Throughput measurements at the same time
    #[arg(long, value_name = "N", default_value_t = Config::default().max_concurrent as u64, value_parser = quantity::whole::<u64>(1..=1000), help_heading = LIMITS)]
    max_concurrent: u64,
    /// Sessions in all
    #[arg(long, value_name = "N", default_value_t = Config::default().max_sessions as u64, value_parser = quantity::whole::<u64>(1..=100_000), help_heading = LIMITS)]
    max_sessions: u64,
    /// Sessions of one IPv4 address or one IPv6 /64
    #[arg(long, value_name = "N", default_value_t = Config::default().max_sessions_per_address as u64, value_parser = quantity::whole::<u64>(1..=100_000), help_heading = LIMITS)]
    max_sessions_per_address: u64,
    /// Longest transfer [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = quantity::lasting, help_heading = LIMITS)]
    max_duration: Option<Span>,
    /// Highest rate of a transfer, and of all echoes [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = quantity::some_rate, help_heading = LIMITS)]
    max_rate: Option<BitRate>,
    /// Most payload of a transfer, or of an echo test [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = quantity::some_bytes, help_heading = LIMITS)]
    max_bytes: Option<ByteCount>,
    /// Most parallel streams of a transfer [default: 512]
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u16>(1..=u64::from(MAX_STREAMS)), help_heading = LIMITS)]
    max_streams: Option<u16>,
    /// Bind the threads that move data to these cores: 0,2,3
    #[arg(short = 'A', long, value_name = "N[,N…]", value_delimiter = ',', value_parser = quantity::whole::<usize>(0..=u64::MAX), help_heading = LIMITS)]
    cpu_affinity: Vec<usize>,
    /// Let one paced stream at a time run before all ordinary programs of a busy host, for at most
    /// half of a core; needs CAP_SYS_NICE
    #[arg(long, help_heading = LIMITS)]
    real_time: bool,
    /// The page over https alone, with a certificate made here at the first time and kept in
    /// netaware/serve.pem in the user's data folder; probers measure as before
    #[arg(long, help_heading = PAGE)]
    tls: bool,
    /// The page over https alone, with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert_key", help_heading = PAGE)]
    cert: Option<PathBuf>,
    /// The key of --cert (PEM)
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = PAGE)]
    cert_key: Option<PathBuf>,
    /// A name by which browsers ask for the page, beside its addresses and this host's own name:
    /// speed.example.com, or the page's address behind a reverse proxy, as in
    /// https://example.com/speed/ (may be given several times)
    #[arg(long, value_name = "NAME", help_heading = PAGE)]
    name: Vec<PublicName>,
    /// Keep the results that pages send, and show them to pages: --results=FILE [default: the file
    /// of 'netaware results']
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = PAGE)]
    results: Option<PathBuf>,
    /// Print codes that a phone's camera reads, for the addresses of the page
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto, help_heading = PAGE)]
    qr: When,
    #[command(flatten)]
    logging: Logging,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal
    Auto,
    Always,
    Never,
}

impl When {
    fn applies(self) -> bool {
        match self {
            Self::Auto => std::io::stdout().is_terminal(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

impl Serve {
    /// Serves until a signal ends it.
    ///
    /// # Errors
    /// The key cannot be read, or the port not be listened on.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        self.logging.start()?;
        affinity::check(self.cpu_affinity.iter().copied())?;
        let server = Server::bind(self.config()?)?;
        // Sockets, keys and certificates are open, and no thread serves anybody yet.
        confinement::log(&self.confinement()?.enter());
        let stopper = server.stopper();
        let end = move |by| {
            tracing::info!("{by}: ending; running measurements end with what they have");
            stopper.stop();
        };
        signals::listen_and(end, |_| ())?;
        if !self.logging.quiet {
            sink::announce(&announcement(&server, self.qr)?)?;
            for error in server.absent() {
                eprintln!("note: one IP version only: {error}");
            }
        }
        server.run()?;
        Ok(Exit::Done)
    }

    /// Only results are written, and nothing is read again that was read at the start.
    fn confinement(&self) -> anyhow::Result<Confinement> {
        let Some(files) = self.result_files()? else { return Ok(Confinement::default()) };
        let writes = [&files.own, &files.strangers].map(|file| confinement::folder_of(file)).into();
        let scratch = netaware_confine::sqlite_scratch().into_iter().collect();
        Ok(Confinement { writes, scratch, ..Confinement::default() })
    }

    /// Without a name, where all other results are.
    fn result_files(&self) -> anyhow::Result<Option<ResultFiles>> {
        let Some(file) = &self.results else { return Ok(None) };
        let is_named = !file.as_os_str().is_empty();
        let file = if is_named { file.clone() } else { netaware_store::default_path()? };
        Ok(Some(ResultFiles { strangers: netaware_store::strangers_path(&file), own: file }))
    }

    fn results(&self) -> anyhow::Result<Option<Arc<dyn Results>>> {
        let Some(files) = self.result_files()? else { return Ok(None) };
        // An owner who cannot keep results learns it now, before the first page sends one.
        for file in [&files.own, &files.strangers] {
            Store::open(file).with_context(|| format!("--results={}", file.display()))?;
        }
        Ok(Some(Arc::new(files)))
    }

    fn identity(&self) -> anyhow::Result<Option<Identity>> {
        match (&self.cert, &self.cert_key) {
            (Some(certificate), Some(secret)) => {
                key::warn_if_exposed(secret);
                Ok(Some(Identity::read(certificate, secret)?))
            }
            _ if self.tls => {
                let file = identity_file("serve.pem");
                let file = file.context("--tls: neither XDG_DATA_HOME nor HOME is set; give --cert")?;
                let named = self.name.iter().map(|name| name.host().trim_matches(['[', ']']).to_owned());
                let names: Vec<String> = netaware_server::names().into_iter().chain(named).collect();
                Ok(Some(Identity::kept(&file, &names)?))
            }
            _ => Ok(None),
        }
    }

    fn config(&self) -> anyhow::Result<Config> {
        let defaults = Config::default();
        let key = key::read(self.key_file.as_deref())?.map(Key::new).transpose()?;
        Ok(Config {
            port: self.port,
            bind: self.bind.clone(),
            key,
            max_concurrent: self.max_concurrent as usize,
            max_sessions: self.max_sessions as usize,
            max_sessions_per_address: self.max_sessions_per_address as usize,
            max_duration: self.max_duration.or(defaults.max_duration),
            max_rate: self.max_rate,
            max_bytes: self.max_bytes,
            max_streams: self.max_streams,
            stamp: self.stamp,
            identity: self.identity()?,
            names: self.name.clone(),
            results: self.results()?,
            allow: self.allow.clone(),
            affinity: self.cpu_affinity.clone(),
            real_time: if self.real_time { Permits::one() } else { Permits::none() },
            ..defaults
        })
    }
}

/// Results of pages, opened for each question: seldom, and other programs may use the files
/// meanwhile.
#[derive(Debug)]
struct ResultFiles {
    /// The owner's, which pages of strangers can only read.
    own: PathBuf,
    /// What these send.
    strangers: PathBuf,
}

impl Results for ResultFiles {
    fn list(&self, limit: u32) -> Result<Vec<Listed>, String> {
        self.listed(&Filter::default(), limit)
    }

    fn list_series(&self, series: uuid::Uuid, limit: u32) -> Result<Vec<Listed>, String> {
        self.listed(&Filter { series: Among::Of(series), ..Filter::default() }, limit)
    }

    fn get(&self, id: uuid::Uuid) -> Option<Record> {
        let in_file = |file: &Path| Store::open_to_read(file).ok()?.get(&id.to_string()).ok();
        // Nobody puts a result of their own in the place of one of the owner's.
        in_file(&self.own).or_else(|| in_file(&self.strangers))
    }

    fn keep(&self, record: &Record, sender: Sender) -> Result<(), KeepError> {
        let file = match sender {
            Sender::Owner => &self.own,
            Sender::Stranger => &self.strangers,
        };
        let store = Store::open(file).map_err(|error| KeepError::Refused(error.to_string()))?;
        let saved = match sender {
            Sender::Owner => store.save(record),
            Sender::Stranger => store.save_within(record, OF_STRANGERS),
        };
        saved.map_err(|error| match error {
            SaveError::DiskFull { .. } => KeepError::Full(error.to_string()),
            _ => KeepError::Refused(error.to_string()),
        })
    }
}

impl ResultFiles {
    fn listed(&self, filter: &Filter, limit: u32) -> Result<Vec<Listed>, String> {
        Ok(merged(listed_in(&self.own, filter, limit)?, listed_in(&self.strangers, filter, limit)?, limit))
    }
}

/// The newest first. Strangers, who say themselves when they measured, take at most half of a list
/// from the owner.
fn merged(mut own: Vec<Listed>, mut strangers: Vec<Listed>, limit: u32) -> Vec<Listed> {
    let limit = limit as usize;
    strangers.truncate((limit / 2).max(limit.saturating_sub(own.len())));
    own.truncate(limit - strangers.len());
    own.append(&mut strangers);
    own.sort_by_key(|listed| std::cmp::Reverse(listed.started_at));
    own
}

fn listed_in(file: &Path, filter: &Filter, limit: u32) -> Result<Vec<Listed>, String> {
    let store = match Store::open_to_read(file) {
        Ok(store) => store,
        // Nothing was kept so far.
        Err(OpenError::Missing { .. } | OpenError::Empty { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let found = store.list(filter, limit).map_err(|error| error.to_string())?;
    let listed = found.into_iter().map(|summary| Listed {
        id: summary.id,
        started_at: summary.started_at,
        elapsed: summary.elapsed,
        command: summary.command,
        host: summary.host,
        label: summary.label,
    });
    Ok(listed.collect())
}

/// What pages of strangers may take of the disk; what came first goes first.
const OF_STRANGERS: Room = Room { records: 1000, bytes: 64 << 20 };

/// Goes to stdout, so that a script can read the port that the system chose.
fn announcement(server: &Server, qr: When) -> anyhow::Result<String> {
    let mut out = String::new();
    for address in server.addresses() {
        writeln!(out, "listening on {}, TCP and UDP", zone::shown(*address))?;
    }
    for address in server.stamp_addresses() {
        writeln!(out, "answering STAMP on {}, UDP", zone::shown(address))?;
    }
    let port = server.addresses().first().map_or(DEFAULT_PORT, SocketAddr::port);
    let host = if port == DEFAULT_PORT { "HOST".to_owned() } else { format!("HOST:{port}") };
    writeln!(
        out,
        "measure from elsewhere with 'netaware test {host}', HOST being a name or address of this host"
    )?;
    let fingerprint = server.fingerprint();
    for address in server.page_addresses() {
        let url = page_url(address, fingerprint);
        writeln!(out, "or with a browser, on a phone too: {url}")?;
        if qr.applies() {
            writeln!(out, "{}", code(&url)?)?;
        }
    }
    if let Some(fingerprint) = fingerprint {
        writeln!(out, "certificate of the page, SHA-256: {}", fingerprint.in_pairs())?;
    }
    Ok(out)
}

/// With TLS its fragment, which no browser sends, says what to compare the certificate with.
fn page_url(address: SocketAddr, fingerprint: Option<Fingerprint>) -> String {
    // In a URL the percent sign before a zone is written with one itself (RFC 6874).
    let address = zone::shown(address).replace('%', "%25");
    match fingerprint {
        None => format!("http://{address}/"),
        Some(fingerprint) => format!("https://{address}/#tls={fingerprint}"),
    }
}

/// Two rows of modules in each line of text, with the margin that cameras need.
fn code(url: &str) -> anyhow::Result<String> {
    let code = qrcode::QrCode::with_error_correction_level(url, qrcode::EcLevel::L)?;
    // Dark on light whatever the terminal's colours are: light is drawn, dark is left out of it.
    let (light, dark) = (Dense1x2::Light, Dense1x2::Dark);
    Ok(code.render::<Dense1x2>().dark_color(light).light_color(dark).build())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tracing::level_filters::LevelFilter;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: Serve,
    }

    fn serve(words: &str) -> Result<Serve, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.serve).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_those_of_the_responder() {
        let (ours, theirs) = (serve("").unwrap().config().unwrap(), Config::default());
        assert_eq!(ours.port, theirs.port);
        assert_eq!(ours.max_duration, theirs.max_duration);
        assert_eq!(
            (ours.max_concurrent, ours.max_sessions, ours.max_sessions_per_address),
            (theirs.max_concurrent, theirs.max_sessions, theirs.max_sessions_per_address)
        );
    }

    /// A responder that is taken over writes to the folder of results at most.
    #[test]
    fn a_responder_keeps_no_file_but_the_results_that_it_was_told_to_keep() {
        let nothing = serve("").unwrap().confinement().unwrap();
        assert!(nothing.reads.is_empty() && nothing.writes.is_empty() && nothing.scratch.is_empty());
        assert!(nothing.programs.is_none());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().canonicalize().unwrap().join("results.db");
        let kept = serve(&format!("--results={}", file.display())).unwrap().confinement().unwrap();
        assert!(kept.reads.is_empty() && kept.programs.is_none());
        assert!(kept.writes.iter().all(|path| Some(path.as_path()) == file.parent()), "{:?}", kept.writes);
    }

    #[test]
    fn limits_reach_the_responder() {
        let line = "-p 0 -B ::1 -B 127.0.0.1 --allow 192.0.2.0/24 --max-rate 1G --max-bytes 1GiB --max-duration 30 \
                    --max-concurrent 2 --max-sessions-per-address 3 --cpu-affinity 0,2";
        let config = serve(line).unwrap().config().unwrap();
        assert_eq!((config.port, config.bind.len(), config.allow.len()), (0, 2, 1));
        assert_eq!(config.max_rate, Some(BitRate(1_000_000_000)));
        assert_eq!(config.max_duration, Some(Span::from_secs(30)));
        assert_eq!((config.max_concurrent, config.max_sessions_per_address), (2, 3));
        assert_eq!(config.affinity, [0, 2]);
        let names = serve("--name Speed.example.com --name https://example.com/speed")
            .unwrap()
            .config()
            .unwrap()
            .names;
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["speed.example.com", "https://example.com/speed/"]);
        assert!(serve("--name *.example.com").unwrap_err().contains("is no name of a host"));
        let stamp = |line: &str| serve(line).unwrap().config().unwrap().stamp;
        assert_eq!([stamp(""), stamp("--stamp"), stamp("--stamp=0")], [None, Some(862), Some(0)]);
    }

    /// What a stranger sends was written into the owner's results.
    #[test]
    fn a_strangers_page_cannot_touch_the_owners_results() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("results.db");
        let files = ResultFiles { strangers: netaware_store::strangers_path(&own), own };
        let record = |n: u128, host: &str| {
            let mut record = crate::render::fixture::tcp();
            record.id = uuid::Uuid::from_u128(n);
            record.request.host = host.to_owned();
            record
        };
        files.keep(&record(1, "owner"), Sender::Owner).unwrap();
        for (n, host) in [(1, "in the owner's name"), (2, "evil")] {
            files.keep(&record(n, host), Sender::Stranger).unwrap();
        }
        let host = |n| files.get(uuid::Uuid::from_u128(n)).map(|record| record.request.host);
        assert_eq!([host(1).as_deref(), host(2).as_deref()], [Some("owner"), Some("evil")]);
        let own = Store::open_to_read(&files.own).unwrap().list(&Filter::default(), 10).unwrap();
        assert_eq!(own.len(), 1, "only the owner's");
        assert!(matches!(files.keep(&record(2, "again"), Sender::Stranger), Err(KeepError::Refused(_))));
    }

    #[test]
    fn strangers_who_measure_in_the_future_leave_the_owner_half_of_each_list() {
        let listed = |count: i64, from: i64| -> Vec<Listed> {
            let one = |n| Listed {
                id: uuid::Uuid::nil(),
                started_at: netaware_units::Wall(from - n),
                elapsed: Span::ZERO,
                command: String::new(),
                host: String::new(),
                label: None,
            };
            (0..count).map(one).collect()
        };
        for (own, strangers, want) in [(10, 10, (5, 5)), (2, 10, (2, 8)), (10, 2, (8, 2)), (3, 0, (3, 0))] {
            let merged = merged(listed(own, 1000), listed(strangers, 9_000_000), 10);
            let of_strangers = merged.iter().filter(|listed| listed.started_at.0 > 1000).count();
            assert_eq!((merged.len() - of_strangers, of_strangers), want);
            assert!(merged.is_sorted_by_key(|listed| std::cmp::Reverse(listed.started_at)));
        }
    }

    #[test]
    fn a_stranger_gets_real_time_priority_only_if_the_owner_asked_for_it() {
        let permits = |line: &str| format!("{:?}", serve(line).unwrap().config().unwrap().real_time);
        assert_eq!(permits(""), format!("{:?}", Permits::none()));
        assert_eq!(permits("--real-time"), format!("{:?}", Permits::one()));
    }

    #[test]
    fn a_code_has_its_margin_and_two_rows_in_a_line() {
        let drawn = code("http://[2001:db8::1]:14233/").unwrap();
        let lines: Vec<&str> = drawn.lines().collect();
        let width = lines[0].chars().count();
        assert!(lines.iter().all(|line| line.chars().count() == width), "{drawn}");
        assert_eq!(lines.len(), width.div_ceil(2));
        // Four modules of margin, all light.
        assert!(lines[..2].iter().all(|line| line.chars().all(|module| module == '█')), "{drawn}");
    }

    #[test]
    fn with_tls_the_code_carries_what_to_compare_the_certificate_with() {
        let address = "[2001:db8::1]:14233".parse().unwrap();
        assert_eq!(page_url(address, None), "http://[2001:db8::1]:14233/");
        let url = page_url(address, Some(Fingerprint([0xa5; 32])));
        assert_eq!(url, format!("https://[2001:db8::1]:14233/#tls={}", "a5".repeat(32)));
        assert!(code(&url).unwrap().lines().next().unwrap().chars().count() <= 80, "it fits a terminal");
        assert!(serve("--cert c.pem").is_err() && serve("--cert-key k.pem").is_err());
    }

    #[test]
    fn levels_follow_the_flags() {
        let level = |line: &str| serve(line).unwrap().logging.level();
        assert_eq!(
            [level("-q"), level(""), level("-v")],
            [LevelFilter::WARN, LevelFilter::INFO, LevelFilter::DEBUG]
        );
        assert_eq!(level("-vvv"), LevelFilter::TRACE);
        assert!(serve("-q -v").is_err());
        assert!(serve("--allow 192.0.2.7/24").unwrap_err().contains("the network is 192.0.2.0/24"));
    }
}
