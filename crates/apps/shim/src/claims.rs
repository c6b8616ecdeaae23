//! Sockets of the program on which a thread of ours works, and what has to be known to move them
//! under it.
//!
//! A claim ends when its number is closed; whoever closes waits for the moment in which a socket is
//! moved, so that what we put under a number is never put under another file's.

use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

use libc::epoll_event;

use crate::guard::lock_soon;
use crate::socket::Movable;
use crate::system::{close_own, epoll_change, fcntl, inode, process, shut};

static CLAIMS: Mutex<Vec<Claim>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// A child of a fork has none of its parent's threads.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// By number, the socket that an epoll was told to watch under it; it is remembered even when it
/// was told no longer to.
static WATCHED: [AtomicU64; WATCHABLE] = [const { AtomicU64::new(0) }; WATCHABLE];

#[derive(Debug)]
struct Claim {
    fd: c_int,
    inode: u64,
    /// Which epolls watch it, and what for.
    watches: Vec<(c_int, epoll_event)>,
}

/// Takes a number; `false` where there are too many.
pub(crate) fn claim(movable: &Movable) -> bool {
    let Some(mut claims) = lock_soon(&CLAIMS) else { return false };
    let own = process();
    if OWNER.swap(own, Ordering::AcqRel) != own {
        claims.clear();
    }
    claims.retain(|claim| claim.fd != movable.fd);
    let room = claims.len() < MOST;
    if room {
        claims.push(Claim { fd: movable.fd, inode: movable.inode, watches: Vec::new() });
    }
    COUNT.store(claims.len(), Ordering::Release);
    room
}

/// Whether there is any at all; cheap.
pub(crate) fn any() -> bool {
    COUNT.load(Ordering::Acquire) > 0 && OWNER.load(Ordering::Acquire) == process()
}

/// A number is about to be closed.
pub(crate) fn closing(fd: c_int) {
    end_where(|claim| claim.fd == fd);
}

/// The work on a socket is over.
pub(crate) fn end(movable: &Movable) {
    end_where(|claim| claim.fd == movable.fd && claim.inode == movable.inode);
}

fn end_where(over: impl Fn(&Claim) -> bool) {
    if let Some(mut claims) = lock_soon(&CLAIMS) {
        claims.retain(|claim| !over(claim));
        COUNT.store(claims.len(), Ordering::Release);
    }
}

/// Whether it is still held.
pub(crate) fn holds(movable: &Movable) -> bool {
    let held = |claim: &Claim| claim.fd == movable.fd && claim.inode == movable.inode;
    lock_soon(&CLAIMS).is_some_and(|claims| claims.iter().any(held)) && movable.is_there()
}

/// An epoll is told to watch a number, by `tell`; kept in mind where it is claimed.
pub(crate) fn watch(
    epoll: c_int,
    what: c_int,
    fd: c_int,
    event: Option<epoll_event>,
    tell: impl Fn() -> c_int,
) -> c_int {
    let mut claims = if any() { lock_soon(&CLAIMS) } else { None };
    let done = tell();
    if done != 0 {
        return done;
    }
    if what == libc::EPOLL_CTL_ADD
        && let Some(watched) = usize::try_from(fd).ok().and_then(|fd| WATCHED.get(fd))
    {
        watched.store(inode(fd), Ordering::Release);
    }
    let claim = claims.as_mut().and_then(|claims| claims.iter_mut().find(|claim| claim.fd == fd));
    if let Some(claim) = claim {
        claim.watches.retain(|(other, _)| *other != epoll);
        claim.watches.extend(event.filter(|_| what != libc::EPOLL_CTL_DEL).map(|event| (epoll, event)));
    }
    done
}

/// Whether an epoll may watch this socket from before. One with a number too high to be remembered
/// may be.
pub(crate) fn is_watched(fd: c_int, inode: u64) -> bool {
    usize::try_from(fd)
        .ok()
        .and_then(|fd| WATCHED.get(fd))
        .is_none_or(|watched| watched.load(Ordering::Acquire) == inode)
}

/// Puts `winner` in the place of a claimed socket, and ends the claim; whoever waits for the old
/// one waits for the new one then. `false` where the claim has ended; `winner` is still the
/// caller's then.
pub(crate) fn move_to(movable: &Movable, winner: c_int) -> bool {
    let Some(mut claims) = lock_soon(&CLAIMS) else { return false };
    let at = claims.iter().position(|claim| claim.fd == movable.fd && claim.inode == movable.inode);
    let Some(claim) = at.map(|at| claims.swap_remove(at)) else { return false };
    COUNT.store(claims.len(), Ordering::Release);
    if !movable.is_there() || movable.copy_options(winner).is_err() {
        return false;
    }
    let Ok(old) = fcntl(movable.fd, libc::F_DUPFD_CLOEXEC, 0) else { return false };
    for (epoll, event) in &claim.watches {
        epoll_change(*epoll, libc::EPOLL_CTL_DEL, movable.fd, &mut { *event });
    }
    let given = movable.give(winner).is_ok();
    for (epoll, event) in &claim.watches {
        // Those who wait in epoll_wait(2) are told at once.
        epoll_change(*epoll, libc::EPOLL_CTL_ADD, movable.fd, &mut { *event });
    }
    if given {
        // Wakes those who wait in poll(2) and select(2): they look at the number anew.
        shut(old);
    }
    close_own(old);
    given
}

/// Each has a thread.
const MOST: usize = 64;
const WATCHABLE: usize = 16_384;
