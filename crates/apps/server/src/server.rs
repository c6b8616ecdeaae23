//! A responder as a whole: from its sockets to its end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netaware_io::clock;
use netaware_io::options::ConnectError;
use netaware_io::probe_socket::{ProbeSocket, Stamping};
use netaware_io::stop::StopFlag;
use netaware_tls::{Fingerprint, Identity};
use netaware_units::Span;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::bind::{self, BindError, Door};
use crate::context::{Context, Registry};
use crate::control::raised;
use crate::flows::{FlowTable, Reason};
use crate::pools::{MAX_STRANGERS, MAX_STREAMS_IN_ALL, told};
use crate::reflector::Reflector;
use crate::stamp::StampReflectors;
use crate::{Config, opening, random};

/// A responder that listens; [`Server::run`] serves.
pub struct Server {
    context: Arc<Context>,
    addresses: Vec<SocketAddr>,
    absent: Vec<ConnectError>,
    listeners: Vec<TcpListener>,
    runtime: Runtime,
    stopper: Stopper,
    reflectors_stop: StopFlag,
    stamp: StampReflectors,
}

/// Ends a responder from anywhere, for example from a thread that waits for signals. Cloned freely.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<watch::Sender<bool>>);

impl Stopper {
    /// Asks it to stop: running tests end with what they have, sessions are told, [`Server::run`]
    /// returns within 2 s. Takes a lock, so it must not be called *in* a signal handler.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// Why serving ended other than by being asked to.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a thread for UDP: {0}")]
pub struct RunError(#[from] io::Error);

impl Server {
    /// Opens the sockets. From here on connections are queued by the system, though nobody serves
    /// them yet.
    pub fn bind(config: Config) -> Result<Self, BindError> {
        let doors = bind::open(&config)?;
        let stamp = StampReflectors::bind(&config)
            .map_err(|source| BindError::Stamp { port: config.stamp.unwrap_or(0), source })?;
        provide_for_sockets(&config);
        let addresses = doors.open.iter().map(|door| door.address).collect();
        // One thread for all that is not measured; it sleeps until something comes.
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(system("start the event loop"))?;
        let registry = Arc::new(Registry::default());
        let flows = Arc::new(FlowTable::new(random::secret().map_err(|error| BindError::System {
            operation: "get random bytes",
            source: io::Error::other(error),
        })?));
        let reflectors_stop = StopFlag::new();
        let (mut listeners, mut reflectors) = (Vec::new(), Vec::new());
        for Door { tcp, udp, .. } in doors.open {
            listeners.push(listener(&runtime, tcp).map_err(system("listen"))?);
            let reflector = ProbeSocket::new(udp, Stamping::Kernel).and_then(|socket| {
                Reflector::new(socket, Arc::clone(&flows), Arc::clone(&registry), reflectors_stop.clone())
            });
            reflectors.push(Arc::new(reflector.map_err(system("use a UDP socket"))?));
        }
        let (stop, stopping) = watch::channel(false);
        let context = Arc::new(Context::new(config, flows, registry, reflectors, stopping));
        let stopper = Stopper(Arc::new(stop));
        Ok(Self {
            context,
            addresses,
            absent: doors.absent,
            listeners,
            runtime,
            stopper,
            reflectors_stop,
            stamp,
        })
    }

    /// Where it listens, with TCP and UDP on each.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where a browser on another host finds the page; nowhere if a key is set and no certificate:
    /// a key is given to no page that came without.
    pub fn page_addresses(&self) -> Vec<SocketAddr> {
        if self.context.rules.key.is_some() && self.context.tls.is_none() {
            return Vec::new();
        }
        let reached = netaware_host::reachable_addresses().into_iter().filter_map(|address| {
            let at = self.addresses.iter().find(|at| is_served_by(address, at.ip()))?;
            Some(SocketAddr::new(address, at.port()))
        });
        reached.collect()
    }

    /// Of the page's certificate, if the page comes over TLS.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.context.config.identity.as_ref().map(Identity::fingerprint)
    }

    /// Where it answers STAMP.
    pub fn stamp_addresses(&self) -> Vec<SocketAddr> {
        self.stamp.addresses()
    }

    /// The IP version that this host does not have, if nobody insisted on it, with what the system
    /// said.
    pub fn absent(&self) -> &[ConnectError] {
        &self.absent
    }

    /// A handle to stop it with.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Serves until it is stopped. Sessions that have not ended two seconds after that are cut off.
    pub fn run(self) -> Result<(), RunError> {
        let Self { context, listeners, runtime, stopper, reflectors_stop, stamp, .. } = self;
        let threads = start_reflectors(&context.reflectors)?;
        let stamp = stamp.start(&context)?;
        let measured = Arc::clone(&context);
        let stamps = thread::Builder::new().name("stamps".into()).spawn(move || measured.measure_stamps());
        runtime.block_on(serve(&context, listeners));
        runtime.shutdown_background();
        // Tasks that were cut off must not outlive the sockets they speak for.
        stopper.stop();
        reflectors_stop.raise();
        end_reflectors(&context.reflectors, threads);
        stamp.end();
        // Without it the first session has measured them.
        let _ = stamps.map(JoinHandle::join);
        log_dropped(&context.flows);
        Ok(())
    }
}

/// Names and addresses of this host, for a certificate.
pub fn names() -> Vec<String> {
    let host = netaware_host::describe(&[]).name;
    let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from(std::net::Ipv6Addr::LOCALHOST)];
    let addresses = netaware_host::reachable_addresses().into_iter().chain(loopback);
    let names = [host.clone(), format!("{host}.local"), "localhost".to_owned()];
    // A host without a name has none to certify; others that are no names of the DNS would be
    // refused.
    let is_name = |name: &String| {
        !name.starts_with('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    names
        .into_iter()
        .filter(|name| !name.is_empty() && is_name(name))
        .chain(addresses.map(|a| a.to_string()))
        .collect()
}

/// Whether a socket bound to `bound` takes what is sent to `address`.
pub(crate) fn is_served_by(address: IpAddr, bound: IpAddr) -> bool {
    bound == address || bound.is_unspecified() && bound.is_ipv4() == address.is_ipv4()
}

/// Login shells commonly allow 1024 open files, which is less than the sessions that we promise.
fn provide_for_sockets(config: &Config) {
    let wanted = (config.max_sessions + config.max_echo_flows + MAX_STRANGERS + 2 * MAX_STREAMS_IN_ALL)
        as u64
        + OTHER_FILES;
    if let Some(limit) = netaware_host::raise_open_files(wanted)
        && limit < wanted
    {
        tracing::warn!(limit, wanted, "too few open files allowed for as many sessions as are configured");
    }
}

fn listener(runtime: &Runtime, tcp: std::net::TcpListener) -> io::Result<TcpListener> {
    tcp.set_nonblocking(true)?;
    let _entered = runtime.enter();
    TcpListener::from_std(tcp)
}

fn system(operation: &'static str) -> impl Fn(io::Error) -> BindError {
    move |source| BindError::System { operation, source }
}

fn start_reflectors(reflectors: &[Arc<Reflector>]) -> io::Result<Vec<JoinHandle<()>>> {
    let start = |reflector: &Arc<Reflector>| {
        let reflector = Arc::clone(reflector);
        thread::Builder::new().name("netaware-echo".to_owned()).spawn(move || reflector.run())
    };
    reflectors.iter().map(start).collect()
}

fn end_reflectors(reflectors: &[Arc<Reflector>], threads: Vec<JoinHandle<()>>) {
    for (reflector, thread) in reflectors.iter().zip(threads) {
        for pause in NUDGE_PAUSES_MS {
            if thread.is_finished() {
                break;
            }
            reflector.nudge();
            clock::sleep(Span::from_millis(pause));
        }
        // A thread whose nudges were swallowed by a firewall is left behind rather than waited for.
        if thread.is_finished() && thread.join().is_err() {
            tracing::error!("a reflecting thread panicked");
        }
    }
}

async fn serve(context: &Arc<Context>, listeners: Vec<TcpListener>) {
    // Each connection holds a sender; when the last is gone, so are all connections.
    let (alive, mut all_gone) = mpsc::channel::<()>(1);
    let accepting: Vec<_> = listeners
        .into_iter()
        .map(|listener| tokio::spawn(accept(Arc::clone(context), listener, alive.clone())))
        .collect();
    drop(alive);
    raised(&mut context.stopping.clone()).await;
    for task in accepting {
        task.abort();
    }
    let _ = timeout(STOP_PATIENCE, all_gone.recv()).await;
}

async fn accept(context: Arc<Context>, listener: TcpListener, alive: mpsc::Sender<()>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                match context.pools.stranger(peer.ip()) {
                    Ok(stranger) => {
                        let (context, alive) = (Arc::clone(&context), alive.clone());
                        tokio::spawn(async move {
                            let _alive = alive;
                            let warned = Arc::clone(&context);
                            let mut eviction = stranger.eviction.clone();
                            // Whoever has become a session is no stranger any more and is not
                            // evicted.
                            tokio::select! {
                                () = opening::serve(context, stream, peer, stranger) => {}
                                () = eviction.happened() => {
                                    warned.warn(peer, "others needed the place of this idle connection");
                                }
                            }
                        });
                    }
                    Err(full) => {
                        context.warn(peer, &told(full, "connections that have not said what they want"));
                    }
                }
            }
            // Out of file descriptors, mostly: without a pause this loop would take a core and free
            // none.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn log_dropped(flows: &FlowTable) {
    let dropped: Vec<String> = Reason::ALL
        .into_iter()
        .map(|reason| (reason.name(), flows.dropped(reason)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !dropped.is_empty() {
        tracing::info!(reasons = dropped.join(", "), "datagrams dropped since the start");
    }
}

/// With what follows it below the 2 s that are promised.
const STOP_PATIENCE: Duration = Duration::from_millis(1700);
/// Data channels, sockets of UDP streams, files, and what the process itself needs.
const OTHER_FILES: u64 = 512;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const NUDGE_PAUSES_MS: [i64; 5] = [1, 4, 20, 20, 20];
