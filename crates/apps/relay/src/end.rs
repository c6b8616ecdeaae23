//! What is the same at both ends: the runtime, stopping, counting.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_units::Span;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::far::{self, Doors};
use crate::near::{self, Lobby};
use crate::orders::Orders;
use crate::{Far, Near, Settings};
use netaware_pool::Reports;

/// Why there is no relay.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// An address cannot be had.
    #[error("cannot listen on {}: {source}", netaware_io::zone::shown(*address))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's word.
        source: io::Error,
    },
    /// The system has no threads or descriptors left.
    #[error("cannot start: {0}")]
    Start(#[from] io::Error),
}

/// A relay that listens; [`Bound::run`] works.
#[derive(Debug)]
pub struct Bound {
    runtime: Runtime,
    shared: Arc<Shared>,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Near(Near, Lobby),
    Far(Arc<Far>, Doors),
}

/// What all connections of a relay share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    /// One for each connection that may be.
    pub(crate) places: Arc<Semaphore>,
    orders: watch::Sender<Orders>,
    numbers: AtomicU64,
    /// Of strangers.
    refusals: Reports,
}

/// Stops a relay, or moves its streams, from anywhere.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// No new connections; those that are open get [`Settings::drain`] to end.
    pub fn stop(&self) {
        self.0.orders.send_modify(|orders| orders.stop = true);
    }

    /// Moves all streams to this IP version.
    pub fn switch(&self, to: IpVersion) {
        self.0.orders.send_modify(|orders| {
            orders.wishes = orders.wishes.wrapping_add(1);
            orders.wished = Some(to);
        });
    }
}

impl Shared {
    fn new(settings: Settings) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(settings.max.clamp(1, Semaphore::MAX_PERMITS)));
        let (orders, _) = watch::channel(Orders::default());
        Arc::new(Self { settings, places, orders, numbers: AtomicU64::new(0), refusals: Reports::default() })
    }

    pub(crate) fn orders(&self) -> watch::Receiver<Orders> {
        self.orders.subscribe()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.orders.borrow().stop
    }

    /// Logs that somebody was turned away, a few times a minute.
    pub(crate) fn note_refusal(&self, who: &str, why: &str) {
        if self.refusals.admit(clock::now()) {
            warn!("{who} is turned away: {why}");
        }
    }

    /// Names the next connection in the log.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits until all connections have ended, at last by giving them up.
    async fn drain(&self) {
        let all = self.settings.max as u32;
        let open = all as usize - self.places.available_permits();
        if open > 0 {
            info!("waiting for {open} connections to end, {} at most", self.settings.drain);
        }
        if timeout(self.settings.drain.to_std(), self.places.acquire_many(all)).await.is_ok() {
            return;
        }
        let open = all as usize - self.places.available_permits();
        warn!("gave up {open} connections");
        self.orders.send_modify(|orders| orders.give_up = true);
        let _ = timeout(GIVING_UP.to_std(), self.places.acquire_many(all)).await;
    }
}

/// Ends when new connections are no longer taken.
pub(crate) async fn stopped(mut orders: watch::Receiver<Orders>) {
    let _ = orders.wait_for(|orders| orders.stop).await;
}

impl Bound {
    /// The end that local programs connect to.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub fn near(near: Near, settings: Settings) -> Result<Self, RelayError> {
        let runtime = runtime(settings.max)?;
        let lobby = runtime.block_on(async { near::listen(&near) })?;
        Ok(Self { runtime, shared: Shared::new(settings), part: Part::Near(near, lobby) })
    }

    /// The end that connects to servers.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub fn far(far: Far, settings: Settings) -> Result<Self, RelayError> {
        let doors = far::listen(&far, &settings)?;
        let shared = Shared::new(settings);
        let runtime = runtime(shared.settings.max)?;
        Ok(Self { runtime, shared, part: Part::Far(Arc::new(far), doors) })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match &self.part {
            Part::Near(_, lobby) => lobby.addresses(),
            Part::Far(_, doors) => doors.addresses(),
        }
    }

    /// Stops and moves it.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Works until [`Handle::stop`], and then until what is open has ended.
    pub fn run(self) {
        let Self { runtime, shared, part } = self;
        runtime.block_on(async {
            // Listeners live until all is over: further connections of open streams come through
            // the far one's.
            match part {
                Part::Near(near, lobby) => {
                    near::serve(&shared, Arc::new(near), lobby).await;
                    shared.drain().await;
                }
                Part::Far(far, doors) => {
                    let doors = far::serve(&shared, far, doors).await;
                    shared.drain().await;
                    drop(doors);
                }
            }
        });
        // A thread that still waits for a resolver is left behind.
        runtime.shutdown_background();
    }
}

fn runtime(max: usize) -> io::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).max_blocking_threads(blocking_threads(max)).thread_name("relay");
    builder.enable_all().build()
}

/// The most threads for what blocks, where there are `max` connections at most. Each holds one
/// while it connects, looks up a name or drains, so none has to wait for those that drain slowly.
fn blocking_threads(max: usize) -> usize {
    max.min(Semaphore::MAX_PERMITS) + SPARE_THREADS
}

/// What both ends do to a plain connection: small writes go at once, a vanished host is noticed in
/// the end.
pub(crate) fn prepare(socket: &TcpStream) {
    // Without them it works as well.
    let _ = socket.set_nodelay(true);
    let _ = socket2::SockRef::from(socket).set_keepalive(true);
}

/// The other side is told that this was no regular end.
pub(crate) fn reset(socket: &TcpStream) {
    let _ = socket2::SockRef::from(socket).set_linger(Some(std::time::Duration::ZERO));
}

const MOST_THREADS: usize = 4;
/// For names that are still looked up though whoever asked has given up.
const SPARE_THREADS: usize = 64;
/// For connections that are told to end now.
const GIVING_UP: Span = Span::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_drain_slowly_leave_threads_for_those_that_connect() {
        // 512 is what a runtime has without being asked.
        for max in [1, 256, 512, 2000, usize::MAX] {
            let most = blocking_threads(max);
            assert!(most > max.min(Semaphore::MAX_PERMITS), "{most} threads for {max} connections");
        }
    }
}
