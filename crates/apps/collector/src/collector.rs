//! The collector as a whole: what it consists of, how it begins and how it ends.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use netaware_io::clock;
use netaware_ipfix::Over;
use netaware_store::fleet::{self, Ages, FleetError, Settings};
use netaware_wire::Token;
use netaware_wire::lmap::{DEFAULT_PORT, FromCollector};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::access::Gate;
use crate::config::{Config, Start};
use crate::controller::{ApplyError, Controller};
use crate::desk::{self, Counter, Desk, DeskCounts, Errand, Own};
use crate::export::Export;
use crate::foreign::{Entrance, Foreign, Place};
use crate::joins::{self, Joins};
use crate::listener::Listener;
use crate::parked;
use crate::roster::Roster;
use crate::shared::Shared;
use crate::tls;
use crate::totals::Totals;
use crate::window::Window;

/// Why a collector does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be put to work.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The store cannot be opened.
    #[error("the store {place}: {source}")]
    Store {
        /// Which.
        place: String,
        /// Why.
        source: Box<FleetError>,
    },
    /// A port cannot be listened on.
    #[error(
        "cannot listen on {address}: {source}; is another collector running, or 'listen' an address of another host?"
    )]
    Listen {
        /// Which.
        address: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// A place for IPFIX of others cannot be listened at.
    #[error(transparent)]
    Ipfix(#[from] netaware_ipfix::ListenError),
    /// The state folder cannot be read.
    #[error("cannot use the state folder {}: {source}", path.display())]
    State {
        /// Which.
        path: std::path::PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// No threads.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
}

/// Everything, ready to run.
pub struct Collector {
    runtime: Runtime,
    sockets: Vec<std::net::TcpListener>,
    listener: Arc<Listener>,
    shared: Arc<Shared>,
    desk: JoinHandle<()>,
    counter: Counter,
    foreign: Arc<Foreign>,
    stop: Arc<AtomicBool>,
}

/// Ends a collector from elsewhere.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<AtomicBool>);

impl Stopper {
    /// It ends within a moment, having settled what it holds.
    pub fn stop(&self) {
        self.0.store(true, Relaxed);
    }
}

const TICK: Duration = Duration::from_millis(100);

/// Files beside sockets: of the store, of the state, and some in reserve.
const OTHER_FILES: usize = 200;

/// Login shells commonly allow 1024 open files, which is less than the probes that we promise.
fn provide_for_sockets(config: &Config) {
    let others = config.ipfix.len() * netaware_ipfix::Options::default().connections;
    let wanted = (crate::listener::MOST + others + OTHER_FILES) as u64;
    if let Some(limit) = netaware_host::raise_open_files(wanted)
        && limit < wanted
    {
        tracing::warn!(limit, wanted, "too few open files allowed for as many probes as may come");
    }
}

impl Collector {
    /// Opens files and ports.
    ///
    /// # Errors
    /// One of them cannot be opened; says which and what to do.
    pub fn start(config: Config) -> Result<Self, StartError> {
        Self::start_as(config, Start::default())
    }

    /// The same, and told what stays as it is whatever configuration comes later.
    ///
    /// # Errors
    /// As [`Collector::start`].
    pub fn start_as(config: Config, start: Start) -> Result<Self, StartError> {
        provide_for_sockets(&config);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(8)
            .thread_name("collector")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let controller = Controller::start(config, start)?;
        let config = controller.running().config.clone();
        let acceptor = config.tls.as_ref().map(tls::acceptor).transpose()?;
        let gate = Gate::new(&config.access, &config.state.clone().unwrap_or_default())?;
        let sockets = listen(&config)?;
        let place = config.store.clone().unwrap_or_default();
        let failed =
            |source| StartError::Store { place: fleet::without_password(&place), source: Box::new(source) };
        let store = fleet::open_with(&place, &settings(&config)).map_err(failed)?;
        let reader = fleet::read(&place).map_err(failed)?;
        let state = config.state.clone().unwrap_or_default();
        let before = parked::take(&state, &joins::setups(&config));
        let window = Window::open(&state, joins::setups(&config), before.joins.keys());
        let window = window.map_err(|source| StartError::State { path: state, source })?;
        let roster = Arc::new(Roster::default());
        let counts = Arc::new(DeskCounts { backlog: store.gauge(), ..DeskCounts::default() });
        let (views, totals) = (joins::Views::default(), Arc::new(Totals::default()));
        let joins = Joins::new(&config, views.clone(), roster.clone(), window.lost_times(), before);
        let (counter, errands) = desk::counter();
        let own = own(&config)?;
        let (export, exported) = Export::start(&config)?;
        let kept = (counts.clone(), totals.clone());
        let desk = Desk::new(store, roster.clone(), (joins, window), own, kept, export, errands);
        let desk = std::thread::Builder::new().name("desk".into()).spawn(move || desk.run());
        let desk = desk.map_err(StartError::Threads)?;
        let foreign = Arc::new(listen_to_others(&config, &counter)?);
        let shared = Shared::new(
            controller,
            roster,
            views,
            (counts, totals),
            (foreign.clone(), exported),
            gate,
            reader,
            counter.clone(),
        );
        let shared = Arc::new(shared);
        shared.follow(&config);
        let listener = Listener::new(shared.clone(), acceptor);
        let stop = Arc::new(AtomicBool::new(false));
        Ok(Self { runtime, sockets, listener, shared, desk, counter, foreign, stop })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }

    /// Where it takes IPFIX of other exporters.
    pub fn ipfix_addresses(&self) -> Vec<(Over, SocketAddr)> {
        self.foreign.addresses()
    }

    /// For ending it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// A socket cannot be used.
    pub fn run(self) -> Result<(), StartError> {
        let Self { runtime, sockets, listener, shared, desk, counter, foreign, stop } = self;
        let served = runtime.block_on(async {
            for socket in sockets {
                let address = socket.local_addr().map_or(String::new(), |address| address.to_string());
                let failed = |source| StartError::Listen { address: address.clone(), source };
                socket.set_nonblocking(true).map_err(failed)?;
                tokio::spawn(listener.clone().accept(TcpListener::from_std(socket).map_err(failed)?));
            }
            while !stop.load(Relaxed) {
                start_runs(&shared);
                tokio::time::sleep(TICK).await;
            }
            Ok(())
        });
        // Connections end with the runtime; what they have brought is settled after that.
        runtime.shutdown_timeout(Duration::from_secs(2));
        foreign.end();
        let _ = counter.send(Errand::End);
        let _ = desk.join();
        served
    }
}

/// Tells probes which throughput tests may start now.
fn start_runs(shared: &Shared) {
    let running = shared.controller.running();
    if running.config.shard().0 != 0 {
        // Active tasks are the first collector's: probes take them from nobody else.
        return;
    }
    let here = shared.roster.here();
    let now = clock::wall();
    // Whatever is suppressed does not start, as its probe would not start it; its turns count as
    // missed.
    let may = |probe: &str, task: &str| {
        let suppression = running.config.suppression.as_ref();
        here.iter().any(|name| name == probe) && !suppression.is_some_and(|held| held.names(task, now))
    };
    for start in shared.mesh.poll(clock::now(), &may) {
        let message = FromCollector::Start { task: start.task.clone(), run: start.run };
        if !shared.roster.send(&start.probe, message) {
            shared.mesh.undo(&start);
        }
    }
}

/// Name of this collector's own rows, and an identity for their numbers that no process before it
/// had.
fn own(config: &Config) -> Result<Own, StartError> {
    let mut random = Token::default();
    getrandom::fill(&mut random.0).map_err(ApplyError::Random)?;
    let incarnation = random.to_string();
    let name = match config.shard() {
        (_, 1) => "collector".to_owned(),
        (index, parts) => format!("collector-{}-of-{parts}", index + 1),
    };
    Ok(Own { name, incarnation, stores_reports: config.shard().0 == 0 })
}

fn settings(config: &Config) -> Settings {
    let usual = Ages::default();
    let kept = &config.retention;
    let ages = Ages {
        to_minutes: kept.periods.map_or(usual.to_minutes, |time| time.0),
        to_hours: kept.minutes.map_or(usual.to_hours, |time| time.0),
        delete: kept.hours.map_or(usual.delete, |time| time.0),
        delete_single: kept.minutes.map_or(usual.delete_single, |time| time.0),
    };
    let buffer = config.state.as_ref().map(|folder| folder.join("buffer.db"));
    let usual = Settings::default();
    let buffer_bytes = config.store_buffer.map_or(usual.buffer_bytes, |size| size.0.0);
    Settings { ages, buffer, buffer_bytes }
}

fn listen_to_others(config: &Config, counter: &Counter) -> Result<Foreign, StartError> {
    let places: Vec<Place> = config.ipfix.iter().filter_map(|text| Place::read(text)).collect();
    let encrypted = config.tls.as_ref().filter(|_| places.iter().any(|place| place.over == Over::Tls));
    let tls = encrypted.map(tls::for_exporters).transpose()?;
    let entrance = Entrance::new(config, counter.clone());
    Ok(Foreign::open(&places, tls.as_ref(), &entrance, &netaware_ipfix::Options::default())?)
}

fn listen(config: &Config) -> Result<Vec<std::net::TcpListener>, StartError> {
    let bind = |address: &SocketAddr| {
        let failed = |source| StartError::Listen { address: address.to_string(), source };
        std::net::TcpListener::bind(address).map_err(failed)
    };
    if !config.listen.is_empty() {
        return config.listen.iter().map(bind).collect();
    }
    let four = bind(&(Ipv4Addr::LOCALHOST, DEFAULT_PORT).into())?;
    // A host without IPv6 is served over IPv4 alone.
    let six = bind(&(Ipv6Addr::LOCALHOST, DEFAULT_PORT).into()).ok();
    Ok(std::iter::once(four).chain(six).collect())
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;

    #[test]
    fn the_store_keeps_rows_as_long_as_the_file_says_and_as_usual_where_it_says_nothing() {
        let ages = |text: &str| settings(&Config::read(text).unwrap()).ages;
        let hours = |n: i64| Span::from_secs(n * 3600);
        let all = "[retention]\nperiods = \"2h\"\nminutes = \"5h\"\nhours = \"9h\"\n";
        assert_eq!(
            ages(all),
            Ages { to_minutes: hours(2), to_hours: hours(5), delete: hours(9), delete_single: hours(5) }
        );
        let usual = Ages::default();
        assert_eq!(ages(""), usual);
        assert_eq!(ages("[retention]\nperiods = \"3d\"\n"), Ages { to_minutes: hours(72), ..usual });
        assert_eq!(ages("[retention]\nhours = \"1000d\"\n"), Ages { delete: hours(24_000), ..usual });
        let minutes = Ages { to_hours: hours(24), delete_single: hours(24), ..usual };
        assert_eq!(ages("[retention]\nminutes = \"1d\"\n"), minutes);
    }
}
