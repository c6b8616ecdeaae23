//! Accepts streams over both IP versions.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use netaware_dual::policy::Rules;
use netaware_dual::{Peer, Side};
use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_pool::{AtShare, Limits, Place, Places, Standing};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::dual::{Join, Opening, Refusal, Welcome};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::judge::Callback;
use crate::opening;
use crate::options::Options;
use crate::queue::{Nothing, Queue};
use crate::readiness::Readiness;
use crate::shared::Shared;
use crate::stream::DualStream;
use crate::threads;

/// Takes streams, and the further connections of those that it took.
#[derive(Debug)]
pub struct DualListener {
    hall: Arc<Hall>,
    addresses: Vec<SocketAddr>,
    sockets: Vec<Arc<TcpListener>>,
    threads: Vec<JoinHandle<()>>,
    came: Arc<Came>,
}

/// Streams that nobody has accepted.
type Came = Queue<(DualStream, SocketAddr)>;

/// What the threads of a listener share.
#[derive(Debug)]
struct Hall {
    options: Options,
    streams: Mutex<HashMap<Token, Weak<Shared>>>,
    /// The places of these streams. Each stream holds its own.
    places: Places,
    /// Streams that nobody has accepted, and where an event loop waits for them.
    waiting: Mutex<(usize, Option<Readiness>)>,
    /// Connections whose opening is being read. A newcomer takes the place of an older one.
    opening: Places,
    /// Threads that read them: an evicted one needs a moment to end.
    reading: Places,
    closed: AtomicBool,
    /// What a stream gets when it is accepted.
    policy: Mutex<Policy>,
}

#[derive(Debug, Clone)]
struct Policy {
    rules: Option<Rules>,
    callback: Option<Callback>,
}

impl DualListener {
    /// Listens on all addresses of both IP versions; port 0 is any that is free in both.
    ///
    /// # Errors
    /// The port cannot be had in either version, or another program has it in one of them.
    pub fn bind(port: u16, options: Options) -> io::Result<Self> {
        let mut attempts = if port == 0 { ATTEMPTS } else { 1 };
        loop {
            let first = listen(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
            let chosen = first.as_ref().ok().and_then(|it| it.local_addr().ok()).map_or(port, |it| it.port());
            let second = listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, chosen)));
            attempts -= 1;
            return match (first, second) {
                (Ok(v6), Ok(v4)) => Self::serve(vec![v6, v4], options),
                (Ok(_), Err(error)) | (Err(error), Ok(_)) if error.kind() == ErrorKind::AddrInUse => {
                    if attempts > 0 {
                        continue;
                    }
                    Err(error)
                }
                // A host without one of the versions.
                (Ok(one), Err(_)) | (Err(_), Ok(one)) => Self::serve(vec![one], options),
                (Err(error), Err(_)) => Err(error),
            };
        }
    }

    /// Listens on these addresses alone.
    ///
    /// # Errors
    /// One of them cannot be had.
    pub fn bind_to(addresses: &[SocketAddr], options: Options) -> io::Result<Self> {
        let sockets: io::Result<Vec<TcpListener>> =
            addresses.iter().map(|address| listen(*address)).collect();
        Self::serve(sockets?, options)
    }

    fn serve(sockets: Vec<TcpListener>, options: Options) -> io::Result<Self> {
        let hall = Arc::new(Hall::new(options, STREAMS));
        let came = Arc::new(Queue::new(BACKLOG));
        let addresses: io::Result<Vec<SocketAddr>> = sockets.iter().map(TcpListener::local_addr).collect();
        let mut listener =
            Self { hall, addresses: addresses?, sockets: Vec::new(), threads: Vec::new(), came };
        for socket in sockets.into_iter().map(Arc::new) {
            listener.sockets.push(socket.clone());
            let (hall, tell) = (listener.hall.clone(), listener.came.clone());
            listener.threads.push(quiet_thread("dual-listen", move || hall.listen(&socket, &tell))?);
        }
        Ok(listener)
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits for the next stream; with it the address from which it was opened.
    ///
    /// # Errors
    /// The listener has failed.
    pub fn accept(&self) -> io::Result<(DualStream, SocketAddr)> {
        self.accept_until(None)
    }

    /// As [`Self::accept`], but not longer than that.
    ///
    /// # Errors
    /// No stream came in time (`TimedOut`), or the listener has failed.
    pub fn accept_until(&self, deadline: Option<Mono>) -> io::Result<(DualStream, SocketAddr)> {
        let accepted = self.came.take(deadline).map_err(|nothing| match nothing {
            Nothing::InTime => ErrorKind::TimedOut,
            Nothing::AnyMore => ErrorKind::NotConnected,
        })?;
        self.hall.wait_for(-1);
        let Policy { rules, callback } = self.hall.policy().clone();
        accepted.0.set_policy(rules);
        if callback.is_some() {
            accepted.0.set_policy_callback(callback);
        }
        Ok(accepted)
    }

    /// Lets streams that are accepted from now on switch by these rules, in place of those of the
    /// options, or not by themselves.
    pub fn set_policy(&self, rules: Option<Rules>) {
        self.hall.policy().rules = rules;
    }

    /// Lets this decide for all streams that are accepted from now on, or the rules again. See
    /// [`Callback`]; it may be called for several streams at once.
    pub fn set_policy_callback(&self, callback: Option<Callback>) {
        let before = std::mem::replace(&mut self.hall.policy().callback, callback);
        // Dropped unlocked: what it holds may have a say in that.
        drop(before);
    }

    /// A descriptor that is readable when [`Self::accept`] would not wait; as
    /// [`DualStream::descriptor`].
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        let mut waiting = self.hall.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let readiness = match waiting.1.take() {
            Some(readiness) => readiness,
            None => Readiness::new()?,
        };
        let descriptor = readiness.descriptor().try_clone_to_owned();
        waiting.1 = Some(readiness);
        drop(waiting);
        self.hall.wait_for(0);
        descriptor
    }
}

impl Drop for DualListener {
    fn drop(&mut self) {
        self.hall.closed.store(true, Ordering::Release);
        // That ends the wait of accept(2).
        for socket in &self.sockets {
            let _ = SockRef::from(&**socket).shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Hall {
    fn new(options: Options, streams: Limits) -> Self {
        Self {
            options,
            streams: Mutex::new(HashMap::new()),
            places: Places::new(streams),
            waiting: Mutex::new((0, None)),
            opening: Places::new(OPENING),
            reading: Places::new(READING),
            closed: AtomicBool::new(false),
            policy: Mutex::new(Policy { rules: options.policy, callback: None }),
        }
    }

    fn policy(&self) -> MutexGuard<'_, Policy> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(self: Arc<Self>, socket: &TcpListener, tell: &Arc<Came>) {
        loop {
            let accepted = socket.accept();
            if self.closed.load(Ordering::Acquire) {
                return;
            }
            let Ok((connection, from)) = accepted else {
                clock::sleep_until(clock::now() + PAUSE);
                continue;
            };
            let (hall, tell) = (self.clone(), tell.clone());
            let Some((place, thread)) = self.place(&connection, from) else { continue };
            // Without a thread the connection is closed, and its places are free.
            let _ = threads::start("dual-open", None, move || {
                let _thread = thread;
                let _ = hall.welcome(connection, from, place, &tell);
            });
        }
    }

    /// The places of a connection in its opening and of the thread that reads it.
    fn place(&self, connection: &TcpStream, from: SocketAddr) -> Option<(Place, Place)> {
        let twin = connection.try_clone().ok()?;
        let end = move || {
            // That ends the thread's read.
            let _ = twin.shutdown(Shutdown::Both);
        };
        let place = self.opening.enter(from.ip(), Standing::Unproven, end).ok()?;
        let thread = self.reading.enter(from.ip(), Standing::Unproven, || {}).ok()?;
        Some((place, thread))
    }

    /// So many streams more wait to be accepted.
    fn wait_for(&self, more: isize) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.0 = waiting.0.saturating_add_signed(more);
        let readable = waiting.0 > 0;
        if let Some(readiness) = &mut waiting.1 {
            readiness.show(readable, true);
        }
    }

    fn welcome(
        &self,
        mut connection: TcpStream,
        from: SocketAddr,
        place: Place,
        tell: &Came,
    ) -> io::Result<()> {
        let opening = opening::read(&mut connection, OPENING_PATIENCE)?;
        // From here on it is a stream's, which has a place of another kind.
        drop(place);
        match self.place_for(&opening, from.ip()) {
            Err(why) => connection.write_all(&Welcome::Refused(why).emit()),
            Ok((shared, version, is_new)) => {
                let (room, received) = {
                    let own = shared.lock().stream.own();
                    (own.room, own.received)
                };
                connection.write_all(&Welcome::Accepted { version, room, received }.emit())?;
                let peer = Peer { room: opening.room, received: opening.received };
                shared.join(connection, opening.ip, opening.generation, peer)?;
                if !is_new {
                    return Ok(());
                }
                self.wait_for(1);
                let stream = DualStream::kept(shared)?;
                match tell.put((stream, from)) {
                    Ok(()) => Ok(()),
                    Err((stream, _)) => {
                        self.wait_for(-1);
                        stream.shutdown(Shutdown::Both);
                        Ok(())
                    }
                }
            }
        }
    }

    /// The stream that a connection is for, the version of the framing, and whether the stream is
    /// made for it. One that is to be made may be there: an opener that got no welcome tries again
    /// over the other version.
    fn place_for(&self, opening: &Opening, from: IpAddr) -> Result<(Arc<Shared>, u8, bool), Refusal> {
        let version = opening.agreed().ok_or(Refusal::Version)?;
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let known = streams.get(&opening.stream).and_then(Weak::upgrade);
        let is_new = known.is_none();
        let shared = match (opening.join, known) {
            (Join::Existing | Join::New, Some(shared)) => shared,
            (Join::Existing, None) => return Err(Refusal::Stream),
            (Join::New, None) => {
                streams.retain(|_, stream| stream.strong_count() > 0);
                if streams.len() >= MOST_STREAMS {
                    return Err(Refusal::Busy);
                }
                // Nobody has accepted it: its policy comes with that.
                let options = Options { policy: None, ..self.options };
                let made = Shared::new(opening.stream, Side::Acceptor, options, [None, None]);
                let shared = Arc::new(made.map_err(|_| Refusal::Busy)?);
                let evicted = Arc::downgrade(&shared);
                let end = move || {
                    if let Some(shared) = evicted.upgrade() {
                        shared.give_up(EVICTED);
                    }
                };
                let place = self.places.enter(from, Standing::Unproven, end);
                shared.keep(place.map_err(|_| Refusal::Busy)?);
                streams.insert(opening.stream, Arc::downgrade(&shared));
                shared
            }
        };
        let older = |ip: IpVersion| shared.lock().stream.generation(ip) < opening.generation;
        if older(opening.ip) { Ok((shared.clone(), version, is_new)) } else { Err(Refusal::Generation) }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG as i32)?;
    Ok(socket.into())
}

const BACKLOG: usize = 128;
/// At a port that is free in both versions.
const ATTEMPTS: u32 = 16;
/// Each holds a place for [`OPENING_PATIENCE`] at most.
const OPENING: Limits =
    Limits { all: 128, reserved: 0, per_host: 64, per_site: 96, at_share: AtShare::Evict };
/// Places of threads are not taken away: an evicted connection's thread frees its own.
const READING: Limits =
    Limits { all: 256, reserved: 0, per_host: 256, per_site: 256, at_share: AtShare::Refuse };
/// A stream that runs goes on while its host holds no more than others do.
const STREAMS: Limits =
    Limits { all: 4096, reserved: 0, per_host: 1024, per_site: 2048, at_share: AtShare::Refuse };
/// With those whose place was taken away, until the program lets go of them.
const MOST_STREAMS: usize = STREAMS.all + STREAMS.all / 4;
const EVICTED: &str = "all streams of the listener were taken, and another host needed one";
const OPENING_PATIENCE: Span = Span::from_secs(5);
const PAUSE: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(stream: u8) -> Opening {
        Opening {
            speaks: (1, 1),
            join: Join::New,
            ip: IpVersion::V4,
            generation: 1,
            room: 1000,
            received: 0,
            stream: Token([stream; 16]),
        }
    }

    #[test]
    fn one_host_cannot_hold_all_streams_of_a_listener() {
        let limits = Limits { all: 4, reserved: 0, per_host: 2, per_site: 3, at_share: AtShare::Refuse };
        let hall = Hall::new(Options::default(), limits);
        let open = |stream: u8, host: u8| {
            let from = IpAddr::from([192, 0, 2, host]);
            hall.place_for(&opening(stream), from).map(|(shared, _, _)| shared)
        };
        let is_open = |shared: &Arc<Shared>| shared.lock().check().is_ok();
        let greedy = [1, 2].map(|stream| open(stream, 1).unwrap());
        assert_eq!(open(3, 1).map(|_| ()), Err(Refusal::Busy), "its share is used up");
        let second = [4, 5].map(|stream| open(stream, 2).unwrap());
        // All are taken: the host that holds most gives one up, the oldest.
        let third = open(6, 3).unwrap();
        let why = greedy[0].lock().check().unwrap_err().to_string();
        assert_eq!(why, EVICTED);
        assert!([&greedy[1], &second[0], &second[1], &third].into_iter().all(is_open));
        let fourth = open(7, 4).unwrap();
        assert!(!is_open(&second[0]));
        assert_eq!(open(8, 5).map(|_| ()), Err(Refusal::Busy), "nobody holds more than one");
        // Another connection of a stream takes no place, wherever it comes from.
        let joins = Opening { join: Join::Existing, ip: IpVersion::V6, ..opening(6) };
        assert!(hall.place_for(&joins, IpAddr::from([192, 0, 2, 9])).is_ok());
        drop(third);
        open(9, 5).expect("a place is free once nothing is left of its stream");
        assert!([&greedy[1], &second[1], &fourth].into_iter().all(is_open));
    }
}
