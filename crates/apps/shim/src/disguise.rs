//! What a program that made an IPv4 socket is told of the addresses of an IPv6 connection.
//!
//! It may have room for an IPv4 address alone, and take what it gets for one. So it is told the
//! address that it asked for as the peer's, which is the same host's, and no address (0.0.0.0) with
//! the true port as its own. A program that made an IPv6 socket needs none of this: IPv4 comes to
//! it written into IPv6, as the system does it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::guard::lock_soon;
use crate::system::inode;

/// Which one is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Own,
    Peer,
}

static MOVED: Mutex<Vec<(u64, SocketAddr)>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The socket that `fd` stands for is not what the program made, or will not be as soon as it has
/// the program's number.
pub(crate) fn put_on(fd: i32, asked: SocketAddr) {
    if let Some(mut moved) = lock_soon(&MOVED) {
        if moved.len() >= MOST {
            moved.remove(0);
        }
        moved.push((inode(fd), asked));
        COUNT.store(moved.len(), Ordering::Release);
    }
}

/// It is not moved after all.
pub(crate) fn take_off(fd: i32) {
    if let Some(mut moved) = lock_soon(&MOVED) {
        let inode = inode(fd);
        moved.retain(|(of, _)| *of != inode);
        COUNT.store(moved.len(), Ordering::Release);
    }
}

/// Whether any socket has one; cheap.
pub(crate) fn any() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// What to tell instead of the truth.
pub(crate) fn of(fd: i32, end: End, truth: SocketAddr) -> Option<SocketAddr> {
    if !any() || truth.is_ipv4() {
        return None;
    }
    let inode = inode(fd);
    let moved = lock_soon(&MOVED)?;
    // The newest, should the system have used a number again.
    let asked = moved.iter().rev().find(|(of, _)| *of == inode)?.1;
    Some(match end {
        End::Peer => asked,
        End::Own => (Ipv4Addr::UNSPECIFIED, truth.port()).into(),
    })
}

/// Remembered; the oldest are told the truth again.
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_disguise_is_a_sockets_and_not_a_numbers() {
        let (one, other) = (TcpListener::bind("[::1]:0").unwrap(), TcpListener::bind("[::1]:0").unwrap());
        let asked: SocketAddr = "192.0.2.1:80".parse().unwrap();
        let truth: SocketAddr = "[2001:db8::1]:4711".parse().unwrap();
        put_on(one.as_raw_fd(), asked);
        assert_eq!(of(one.as_raw_fd(), End::Peer, truth), Some(asked));
        assert_eq!(of(one.as_raw_fd(), End::Own, truth), Some("0.0.0.0:4711".parse().unwrap()));
        assert_eq!(of(one.as_raw_fd(), End::Peer, asked), None, "it is of IPv4 anyway");
        assert_eq!(of(other.as_raw_fd(), End::Peer, truth), None);
        take_off(one.as_raw_fd());
        assert_eq!(of(one.as_raw_fd(), End::Peer, truth), None);
    }
}
