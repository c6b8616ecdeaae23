//! A program calls connect(2): whether there is a race, and the race of a socket that blocks.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

use crate::background;
use crate::book::{Book, Known};
use crate::guard::lock_soon;
use crate::order::{self, Order};
use crate::race::{Lookup, Race, Standing};
use crate::socket::{Movable, is_fresh_tcp};
use crate::system::{a_handler_interrupts, option, wait_to_write};
use crate::told;

/// What resolvers have told this process.
pub(crate) static BOOK: Mutex<Book> = Mutex::new(Book::new());

/// What connect(2) returns; an error is an `errno`.
pub(crate) type Connected = Result<(), c_int>;

/// `None` is to call the system's.
pub(crate) fn connect(fd: c_int, address: SocketAddr, lookup: Lookup) -> Option<Connected> {
    let order = order::present()?;
    let asked = plain(address)?;
    let own = IpVersion::of(asked.ip());
    if order.only == Some(own) {
        return None;
    }
    let known = lock_soon(&BOOK)?.host_of(clock::now(), asked.ip());
    if let Some(only) = order.only {
        return only_other(fd, address, asked, only, order, known, lookup);
    }
    let known = known.filter(|known| known.others.as_ref().is_none_or(|others| !others.is_empty()))?;
    let movable = Movable::of(fd, address)?;
    let mut race = Race::new(movable, order, asked, known.name, known.others.as_deref(), lookup);
    if order.prefer.is_some_and(|prefer| prefer != own) {
        race.look_up();
    }
    Some(run(race))
}

fn run(race: Race) -> Connected {
    if race.movable.blocks() { run_blocking(race) } else { background::begin(race) }
}

/// The program may not have the version that it asks for.
fn only_other(
    fd: c_int,
    address: SocketAddr,
    asked: SocketAddr,
    only: IpVersion,
    order: Order,
    known: Option<Known>,
    lookup: Lookup,
) -> Option<Connected> {
    if !is_fresh_tcp(fd) {
        return None;
    }
    let name = known.as_ref().map_or_else(String::new, |known| known.name.clone());
    let others = match known {
        Some(Known { others: Some(others), .. }) => others,
        Some(Known { others: None, name }) => lookup(&name, only),
        None => Vec::new(),
    };
    let movable = Movable::of(fd, address).filter(|_| !others.is_empty());
    let Some(movable) = movable else {
        told::refused(order, asked, &name, only);
        return Some(Err(libc::ENETUNREACH));
    };
    Some(run(Race::new(movable, order, asked, name, Some(&others), lookup)))
}

/// IPv4 as such. `None` for what means no host, or another one on each link.
fn plain(address: SocketAddr) -> Option<SocketAddr> {
    let ip = address.ip().to_canonical();
    let scoped = match address {
        SocketAddr::V6(v6) => v6.scope_id() != 0 || v6.ip().is_unicast_link_local(),
        SocketAddr::V4(_) => false,
    };
    let odd = address.port() == 0 || ip.is_unspecified() || ip.is_multicast() || scoped;
    (!odd).then(|| if ip == address.ip() { address } else { SocketAddr::new(ip, address.port()) })
}

/// In the call. The program's socket does not wait meanwhile.
fn run_blocking(mut race: Race) -> Connected {
    let deadline = send_timeout(race.movable.fd).map(|timeout| race.began_at + timeout);
    race.movable.set_blocking(false);
    loop {
        let now = clock::now();
        match race.advance(now) {
            Standing::Won(number) => {
                race.movable.set_blocking(true);
                race.settled(number);
                let placed = race.place(number);
                told::ended(&race, Some(number), None);
                return if placed { Ok(()) } else { Err(libc::EBADF) };
            }
            Standing::Lost(errno) => {
                race.movable.set_blocking(true);
                told::ended(&race, None, None);
                return Err(errno);
            }
            Standing::Wait(until) => {
                if deadline.is_some_and(|deadline| deadline <= now) {
                    return leave(race, libc::EINPROGRESS);
                }
                let until = [until, deadline].into_iter().flatten().min();
                let span = until.map(|until| (until - now).nanos());
                let waited = wait_to_write(&mut race.under_way(true), span);
                if waited == Err(libc::EINTR) && a_handler_interrupts() {
                    return leave(race, libc::EINTR);
                }
                race.observe(true);
            }
        }
    }
}

/// The program does not wait for longer. As after the system's connect(2), an attempt goes on under
/// its number.
fn leave(mut race: Race, errno: c_int) -> Connected {
    race.movable.set_blocking(true);
    if let Some(first) = race.first_under_way().filter(|_| !race.own_is_under_way()) {
        race.place(first);
    }
    Err(errno)
}

/// How long a socket that blocks waits (`SO_SNDTIMEO`, socket(7)); `None` is for as long as it
/// takes.
fn send_timeout(fd: c_int) -> Option<Span> {
    let mut bytes = [0; size_of::<libc::timeval>()];
    option(fd, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &mut bytes).ok()?;
    let half = |from: usize| bytes.get(from..from + 8)?.try_into().ok().map(i64::from_ne_bytes);
    let span = Span::from_secs(half(0)?) + Span::from_micros(half(8)?);
    (span > Span::ZERO).then_some(span)
}

/// A resolver has told the program.
pub(crate) fn record(name: &str, asked: &[IpVersion], found: &[IpAddr]) {
    let now: Mono = clock::now();
    if order::present().is_some()
        && let Some(mut book) = lock_soon(&BOOK)
    {
        book.record(now, name, asked, found);
    }
}
