//! One connection of the program: which addresses are tried, when, and which one wins.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

use netaware_dual::connect::{Connect, Step, Wanted};
use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::address::Raw;
use crate::disguise;
use crate::order::Order;
use crate::socket::{Movable, Stage, outcome, settle, stage};
use crate::system::{begin_connect, close_own, inode};

/// Attempts at one host.
pub(crate) struct Race {
    pub(crate) movable: Movable,
    pub(crate) order: Order,
    pub(crate) name: String,
    /// As the program has it, IPv4 not written into IPv6.
    pub(crate) asked: SocketAddr,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) began_at: Mono,
    connect: Connect,
    /// The other version's addresses were never asked for; done when the race needs them.
    unasked: Option<Lookup>,
}

/// Finds addresses of one version.
pub(crate) type Lookup = fn(&str, IpVersion) -> Vec<IpAddr>;

/// One address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) ip: IpAddr,
    fd: c_int,
    /// On the program's number; otherwise ours.
    own: bool,
    /// Its connect(2) has not told to wait.
    at_once: bool,
    began_at: Mono,
    pub(crate) ended: Option<(Mono, Result<(), c_int>)>,
}

/// How a race stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// This attempt has a connection.
    Won(usize),
    /// None has, or will.
    Lost(c_int),
    /// Nothing to do before that time, or before something happens.
    Wait(Option<Mono>),
}

impl Race {
    /// The address asked for first, or the version preferred; `others` are those of the other
    /// version, where they are known.
    pub(crate) fn new(
        movable: Movable,
        order: Order,
        asked: SocketAddr,
        name: String,
        others: Option<&[IpAddr]>,
        lookup: Lookup,
    ) -> Self {
        let own = IpVersion::of(asked.ip());
        let wanted = order.only.map_or(Wanted::First, Wanted::Only);
        let mut connect = Connect::new(wanted, order.prefer.unwrap_or(own));
        let now = clock::now();
        connect.resolved(now, own, &[asked.ip()]);
        if let Some(others) = others {
            connect.resolved(now, own.other(), others);
        }
        let unasked = others.is_none().then_some(lookup);
        Self { movable, order, name, asked, attempts: Vec::new(), began_at: now, connect, unasked }
    }

    /// Asks a resolver for the other version's addresses at once.
    pub(crate) fn look_up(&mut self) {
        if let Some(lookup) = self.unasked.take() {
            let other = IpVersion::of(self.asked.ip()).other();
            let found = lookup(&self.name, other);
            self.connect.resolved(clock::now(), other, &found);
        }
    }

    /// Begins what is due.
    pub(crate) fn advance(&mut self, now: Mono) -> Standing {
        loop {
            match self.connect.step(now) {
                Step::Try(_, ip) => self.attempt(now, ip),
                Step::Done => {
                    let up = |attempt: &Attempt| matches!(attempt.ended, Some((_, Ok(()))));
                    return self
                        .attempts
                        .iter()
                        .position(up)
                        .map_or(Standing::Lost(libc::EIO), Standing::Won);
                }
                Step::Failed => return Standing::Lost(self.error()),
                Step::Wait(until) => {
                    let Some(due) = self.lookup_due() else { return Standing::Wait(until) };
                    if due > now {
                        return Standing::Wait(Some(until.map_or(due, |until| until.min(due))));
                    }
                    self.look_up();
                }
            }
        }
    }

    /// As [`Self::advance`], and asks no resolver: where only that could help, the race is lost.
    pub(crate) fn advance_without_lookup(&mut self, now: Mono) -> Standing {
        let lookup = self.unasked.take();
        let standing = self.advance(now);
        self.unasked = lookup;
        let nothing_left = self.unasked.is_some() && self.under_way(true).is_empty();
        match standing {
            Standing::Wait(_) if nothing_left => Standing::Lost(self.error()),
            standing => standing,
        }
    }

    /// A resolver is asked when the first attempt takes its time or has failed.
    fn lookup_due(&self) -> Option<Mono> {
        self.unasked?;
        let first = self.attempts.first()?;
        Some(if first.ended.is_some() { first.began_at } else { first.began_at + PATIENCE })
    }

    fn attempt(&mut self, now: Mono, ip: IpAddr) {
        let number = self.attempts.len();
        let to = self.raw(ip);
        // The program's own socket is the first choice, as nothing has to be moved then.
        let own = ip == self.asked.ip() && !self.attempts.iter().any(|attempt| attempt.own);
        let socket = if own { Ok(self.movable.fd) } else { self.movable.alike(ip) };
        let begun = socket.and_then(|fd| begin_connect(fd, &to));
        let at_once = begun != Err(libc::EINPROGRESS);
        let fd = socket.unwrap_or(-1);
        self.attempts.push(Attempt { ip, fd, own, at_once, began_at: now, ended: None });
        match begun {
            Err(libc::EINPROGRESS) if stage(fd) == Some(Stage::Up) => self.end(number, Ok(())),
            Err(libc::EINPROGRESS) => {}
            how => self.end(number, how),
        }
    }

    fn end(&mut self, number: usize, how: Result<(), c_int>) {
        let attempt = &mut self.attempts[number];
        attempt.ended = Some((clock::now(), how));
        if how.is_ok() {
            self.connect.came_up(number);
            return;
        }
        if !attempt.own && attempt.fd >= 0 {
            close_own(attempt.fd);
            attempt.fd = -1;
        }
        self.connect.failed(number);
    }

    /// Looks at what became of the attempts on sockets of ours, and with `own` of that on the
    /// program's: its error is taken from the socket then, where the program would find it.
    pub(crate) fn observe(&mut self, own: bool) {
        for number in 0..self.attempts.len() {
            let attempt = self.attempts[number];
            if attempt.ended.is_some() || (attempt.own && !own) {
                continue;
            }
            match stage(attempt.fd) {
                Some(Stage::Connecting) => {}
                Some(Stage::Up) => self.end(number, Ok(())),
                // A socket of ours is of no more use; the program's may be used again, so the
                // system has to be asked by another connect(2), after which it is as new.
                _ if attempt.own => {
                    let how = begin_connect(attempt.fd, &self.raw(attempt.ip));
                    self.end(number, how.and(Err(libc::ECONNABORTED)));
                }
                _ => self.end(number, outcome(attempt.fd).and(Err(libc::ECONNABORTED))),
            }
        }
    }

    /// The program's own attempt is over; its socket has the rest.
    pub(crate) fn own_ended(&mut self, how: Result<(), c_int>) {
        if let Some(number) = self.attempts.iter().position(|attempt| attempt.own) {
            self.end(number, how);
        }
    }

    /// Sockets of attempts under way, without the program's unless `own`.
    pub(crate) fn under_way(&self, own: bool) -> Vec<libc::pollfd> {
        let waits = |attempt: &&Attempt| attempt.ended.is_none() && (own || !attempt.own);
        let polled = |attempt: &Attempt| libc::pollfd { fd: attempt.fd, events: libc::POLLOUT, revents: 0 };
        self.attempts.iter().filter(waits).map(polled).collect()
    }

    /// Whether the program's number stands for an attempt under way.
    pub(crate) fn own_is_under_way(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.own && attempt.ended.is_none())
    }

    /// Whether an attempt is the one on the program's number.
    pub(crate) fn is_own(&self, number: usize) -> bool {
        self.attempts[number].own
    }

    /// The socket of an attempt of ours, which is no longer ours to close.
    pub(crate) fn release(&mut self, number: usize) -> c_int {
        std::mem::replace(&mut self.attempts[number].fd, -1)
    }

    /// The program's number stands for this attempt from now on. `false` where it stands for
    /// something else by now.
    pub(crate) fn place(&mut self, number: usize) -> bool {
        let attempt = self.attempts[number];
        if attempt.own || !self.movable.is_there() {
            return attempt.own;
        }
        self.disguise(number, attempt.fd);
        if self.movable.give(attempt.fd).is_err() {
            disguise::take_off(attempt.fd);
            return false;
        }
        for other in self.attempts.iter_mut().filter(|other| other.own) {
            // Its socket is closed, and its number is another one's.
            (other.own, other.fd) = (false, -1);
        }
        let placed = &mut self.attempts[number];
        (placed.own, placed.fd) = (true, self.movable.fd);
        self.movable.inode = inode(self.movable.fd);
        true
    }

    /// A program with an IPv4 socket takes addresses for IPv4's. Before its number stands for this
    /// socket of the attempt: it may ask at once.
    pub(crate) fn disguise(&self, number: usize, socket: c_int) {
        if self.movable.domain == libc::AF_INET && self.attempts[number].ip.is_ipv6() {
            disguise::put_on(socket, self.asked);
        }
    }

    /// The first attempt that may still lead somewhere.
    pub(crate) fn first_under_way(&self) -> Option<usize> {
        self.attempts.iter().position(|attempt| attempt.ended.is_none())
    }

    /// Calls connect(2) once more on what is connected, as the system wants it to say so.
    pub(crate) fn settled(&self, number: usize) {
        let attempt = self.attempts[number];
        settle(attempt.fd, &self.raw(attempt.ip));
    }

    /// What the program's connect(2) would have returned for this attempt, which has a connection.
    pub(crate) fn as_told(&self, number: usize) -> Result<(), c_int> {
        if self.attempts[number].at_once { Ok(()) } else { Err(libc::EINPROGRESS) }
    }

    fn raw(&self, ip: IpAddr) -> Raw {
        let address = if ip == self.asked.ip() { self.asked } else { SocketAddr::new(ip, self.asked.port()) };
        Raw::new(address, if ip.is_ipv6() { libc::AF_INET6 } else { self.movable.domain })
    }

    /// What to tell the program: what its own attempt met with, or else the last one.
    fn error(&self) -> c_int {
        let met = |attempt: &Attempt| attempt.ended.and_then(|(_, how)| how.err());
        let asked = self.attempts.iter().find(|attempt| attempt.ip == self.asked.ip()).and_then(met);
        asked.or_else(|| self.attempts.iter().rev().find_map(met)).unwrap_or(libc::ENETUNREACH)
    }
}

impl Drop for Race {
    fn drop(&mut self) {
        for attempt in self.attempts.iter().filter(|attempt| !attempt.own && attempt.fd >= 0) {
            close_own(attempt.fd);
        }
    }
}

/// RFC 8305 §8, Connection Attempt Delay: until a resolver is asked for the other version.
const PATIENCE: Span = Span::from_millis(250);
