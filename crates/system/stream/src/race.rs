//! The first attempts to connect a stream, by turns over both versions (RFC 8305), in a thread of
//! their own: they go on after the first has led to a stream.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use netaware_dual::connect::{Connect, Step};
use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_units::Mono;
use netaware_wire::dual::Join;

use crate::opening::{self, ConnectError};
use crate::queue::Queue;
use crate::shared::Shared;
use crate::threads;

/// Returns as soon as a connection belongs to the stream; the others follow.
///
/// # Errors
/// The last attempt's, where all have failed.
pub(crate) fn run(shared: &Arc<Shared>, addresses: [Vec<SocketAddr>; 2]) -> Result<(), ConnectError> {
    let told = Arc::new(Queue::new(1));
    let race = Race::new(shared.clone(), addresses, told.clone());
    threads::start("dual-race", None, move || race.run()).map_err(ConnectError::Host)?;
    let ended = || ConnectError::Host(ErrorKind::UnexpectedEof.into());
    told.take(None).map_err(|_| ended())?
}

struct Race {
    shared: Arc<Shared>,
    connect: Connect,
    sorted: [Vec<SocketAddr>; 2],
    attempts: Vec<SocketAddr>,
    tell: Arc<Queue<Result<(), ConnectError>>>,
    began: bool,
    last: Option<ConnectError>,
}

impl Race {
    fn new(
        shared: Arc<Shared>,
        sorted: [Vec<SocketAddr>; 2],
        tell: Arc<Queue<Result<(), ConnectError>>>,
    ) -> Self {
        let mut connect = Connect::new(shared.options.wanted, shared.options.preferred);
        let now = clock::now();
        for ip in [IpVersion::V4, IpVersion::V6] {
            let addresses: Vec<_> = sorted[ip.index()].iter().map(SocketAddr::ip).collect();
            connect.resolved(now, ip, &addresses);
        }
        Self { shared, connect, sorted, attempts: Vec::new(), tell, began: false, last: None }
    }

    fn run(mut self) {
        let (came, coming) = mpsc::channel();
        loop {
            match self.connect.step(clock::now()) {
                Step::Try(attempt, ip) => self.attempt(attempt, ip, &came),
                Step::Wait(until) => self.wait(until, &coming),
                Step::Done => return,
                Step::Failed => {
                    if let Some(last) = self.last.take() {
                        let _ = self.tell.put(Err(last));
                    }
                    return;
                }
            }
        }
    }

    fn attempt(
        &mut self,
        attempt: usize,
        ip: std::net::IpAddr,
        came: &Sender<(usize, io::Result<TcpStream>)>,
    ) {
        let all = self.sorted.iter().flatten();
        let Some(address) = all.copied().find(|address| address.ip() == ip) else { return };
        self.attempts.push(address);
        let (came, patience) = (came.clone(), self.shared.options.connect_patience);
        let spawned = threads::start("dual-connect", None, move || {
            // Nobody listens once the race is over.
            let _ = came.send((attempt, TcpStream::connect_timeout(&address, patience.to_std())));
        });
        if let Err(source) = spawned {
            self.fail(attempt, ConnectError::Failed { address, source });
        }
    }

    fn wait(&mut self, until: Option<Mono>, coming: &Receiver<(usize, io::Result<TcpStream>)>) {
        let most = self.shared.options.connect_patience * 2;
        let left = until.map_or(most, |until| (until - clock::now()).or_zero());
        let Ok((attempt, socket)) = coming.recv_timeout(left.to_std()) else { return };
        let address = self.attempts[attempt];
        match socket {
            Ok(socket) => self.open(attempt, socket, address),
            Err(source) => self.fail(attempt, ConnectError::Failed { address, source }),
        }
    }

    fn open(&mut self, attempt: usize, socket: TcpStream, address: SocketAddr) {
        let ip = IpVersion::of(address.ip());
        let join = if self.began { Join::Existing } else { Join::New };
        let opened =
            opening::open(&self.shared, socket, address, ip, join).and_then(|(socket, generation, peer)| {
                self.shared
                    .join(socket, ip, generation, peer)
                    .map_err(|source| ConnectError::Failed { address, source })
            });
        match opened {
            Ok(()) => {
                self.connect.came_up(attempt);
                if !std::mem::replace(&mut self.began, true) {
                    let _ = self.tell.put(Ok(()));
                }
            }
            Err(why) => self.fail(attempt, why),
        }
    }

    fn fail(&mut self, attempt: usize, why: ConnectError) {
        self.connect.failed(attempt);
        self.last = Some(why);
    }
}

impl Drop for Race {
    fn drop(&mut self) {
        self.tell.close();
    }
}
