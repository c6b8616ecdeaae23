//! A program's socket: whether its connection may come over another one, and one that is set alike.

use std::ffi::c_int;
use std::net::{IpAddr, SocketAddr};

use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};

use crate::address::Raw;
use crate::claims;
use crate::system::{
    close_own, fcntl, inode, int_option, local_address, option, set_option, socket, take_place,
};

/// A socket of the program that can be moved: TCP, not bound, not connected, nothing special about
/// it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Movable {
    pub(crate) fd: c_int,
    pub(crate) inode: u64,
    /// `AF_INET` or `AF_INET6`.
    pub(crate) domain: c_int,
    /// Of the open file: `O_NONBLOCK` among them.
    pub(crate) flags: c_int,
}

/// How far a TCP connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No connection, or none any more.
    Closed,
    Connecting,
    /// It is there, or was.
    Up,
}

impl Movable {
    /// `None` is to leave it alone.
    pub(crate) fn of(fd: c_int, asked: SocketAddr) -> Option<Self> {
        let domain = int_option(fd, SOL_SOCKET, libc::SO_DOMAIN).ok()?;
        let wanted = if asked.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        if domain != wanted || !is_fresh_tcp(fd) {
            return None;
        }
        let local = local_address(fd)?;
        if local.port() != 0 || !local.ip().is_unspecified() || is_special(fd) {
            return None;
        }
        let inode = inode(fd);
        let flags = fcntl(fd, libc::F_GETFL, 0).ok()?;
        let signalled = flags & libc::O_ASYNC != 0 || fcntl(fd, libc::F_GETOWN, 0) != Ok(0);
        if inode == 0 || signalled || claims::is_watched(fd, inode) {
            return None;
        }
        Some(Self { fd, inode, domain, flags })
    }

    pub(crate) fn blocks(&self) -> bool {
        self.flags & libc::O_NONBLOCK == 0
    }

    /// The number still stands for it.
    pub(crate) fn is_there(&self) -> bool {
        inode(self.fd) == self.inode
    }

    /// A socket of ours that can connect to there and is set like the program's; it does not block
    /// and is closed on exec.
    pub(crate) fn alike(&self, to: IpAddr) -> Result<c_int, c_int> {
        let domain = if to.is_ipv6() { libc::AF_INET6 } else { self.domain };
        let fd = socket(domain)?;
        let mut done = self.copy_early_options(fd).and_then(|()| self.copy_options(fd));
        if domain == libc::AF_INET6 && to.is_ipv4() && done.is_ok() {
            done = set_option(fd, IPPROTO_IPV6, libc::IPV6_V6ONLY, &0_i32.to_ne_bytes());
        }
        done.map(|()| fd).inspect_err(|_| close_own(fd))
    }

    /// What the system itself changes once a connection is begun.
    fn copy_early_options(&self, to: c_int) -> Result<(), c_int> {
        for option in EARLY {
            copy(self.fd, option, to, option)?;
        }
        for name in [libc::SO_SNDBUF, libc::SO_RCVBUF] {
            let (ours, theirs) = (int_option(to, SOL_SOCKET, name), int_option(self.fd, SOL_SOCKET, name));
            if let (Ok(ours), Ok(theirs)) = (ours, theirs)
                && ours != theirs
            {
                // The kernel doubles what it is given (socket(7)).
                set_option(to, SOL_SOCKET, name, &(theirs / 2).to_ne_bytes())?;
            }
        }
        Ok(())
    }

    /// Everything else in which it differs from another one, now.
    pub(crate) fn copy_options(&self, to: c_int) -> Result<(), c_int> {
        for option in SAME {
            copy(self.fd, option, to, option)?;
        }
        let of_ip = usize::from(self.domain == libc::AF_INET6);
        for pair in OF_IP {
            for target in pair {
                // An option of the version that the other socket is not of has no effect there, and
                // may be refused.
                let _ = copy(self.fd, pair[of_ip], to, target);
            }
        }
        Ok(())
    }

    /// The program's number stands for `winner` from now on, with the flags that its own socket has
    /// now. Ours is closed.
    pub(crate) fn give(&self, winner: c_int) -> Result<(), c_int> {
        let flags = fcntl(self.fd, libc::F_GETFL, 0)?;
        let kept = fcntl(self.fd, libc::F_GETFD, 0)? & libc::FD_CLOEXEC != 0;
        fcntl(winner, libc::F_SETFL, flags)?;
        take_place(winner, self.fd, kept)?;
        close_own(winner);
        Ok(())
    }

    /// Turns waiting in calls off, or back to what it was.
    pub(crate) fn set_blocking(&self, blocks: bool) {
        let flags = if blocks { self.flags & !libc::O_NONBLOCK } else { self.flags | libc::O_NONBLOCK };
        let _ = fcntl(self.fd, libc::F_SETFL, flags);
    }
}

/// A TCP socket without a connection, begun or not.
pub(crate) fn is_fresh_tcp(fd: c_int) -> bool {
    int_option(fd, SOL_SOCKET, libc::SO_TYPE) == Ok(libc::SOCK_STREAM)
        && int_option(fd, SOL_SOCKET, libc::SO_PROTOCOL) == Ok(IPPROTO_TCP)
        && stage(fd) == Some(Stage::Closed)
}

/// Where a connection stands; `None` is no TCP socket.
pub(crate) fn stage(fd: c_int) -> Option<Stage> {
    let mut info = [0; 8];
    option(fd, IPPROTO_TCP, libc::TCP_INFO, &mut info).ok()?;
    // The first byte is the state, of include/net/tcp_states.h.
    Some(match info[0] {
        7 => Stage::Closed,
        2 | 3 => Stage::Connecting,
        10 => return None,
        _ => Stage::Up,
    })
}

/// What came of a connection that did not wait; its error is forgotten by the socket then.
pub(crate) fn outcome(fd: c_int) -> Result<(), c_int> {
    match int_option(fd, SOL_SOCKET, libc::SO_ERROR) {
        Ok(0) | Err(_) => Ok(()),
        Ok(error) => Err(error),
    }
}

/// The system has to be told twice that a connection is there before it says so itself (`EISCONN`).
pub(crate) fn settle(fd: c_int, to: &Raw) {
    let _ = crate::system::begin_connect(fd, to);
}

/// Options that bind a socket to a version, a link, a policy or bytes already.
fn is_special(fd: c_int) -> bool {
    let set = |level, name| int_option(fd, level, name).is_ok_and(|value| value != 0);
    let mut bytes = [0; 64];
    let long = |level, name, bytes: &mut [u8]| option(fd, level, name, bytes).is_ok_and(|length| length > 0);
    set(IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT)
        || set(IPPROTO_TCP, libc::TCP_REPAIR)
        || set(IPPROTO_IP, libc::IP_TRANSPARENT)
        || set(SOL_SOCKET, libc::SO_MARK)
        || long(SOL_SOCKET, libc::SO_BINDTODEVICE, &mut bytes)
        || long(IPPROTO_IP, libc::IP_OPTIONS, &mut bytes)
        || long(IPPROTO_TCP, libc::TCP_ULP, &mut bytes)
        // SO_GET_FILTER is the same number; it counts instructions.
        || option(fd, SOL_SOCKET, libc::SO_ATTACH_FILTER, &mut []).is_ok_and(|length| length > 0)
}

/// From one option to another, where the two differ.
fn copy(from: c_int, (level, name): Name, to: c_int, target: Name) -> Result<(), c_int> {
    let (mut theirs, mut ours) = ([0; 32], [0; 32]);
    // What the system does not know cannot have been set.
    let Ok(length) = option(from, level, name, &mut theirs) else { return Ok(()) };
    let same = option(to, target.0, target.1, &mut ours).is_ok() && theirs == ours;
    if same { Ok(()) } else { set_option(to, target.0, target.1, &theirs[..length]) }
}

type Name = (c_int, c_int);

/// Options that mean the same on both.
const SAME: [Name; 23] = [
    (SOL_SOCKET, libc::SO_KEEPALIVE),
    (SOL_SOCKET, libc::SO_OOBINLINE),
    (SOL_SOCKET, libc::SO_REUSEADDR),
    (SOL_SOCKET, libc::SO_REUSEPORT),
    (SOL_SOCKET, libc::SO_PRIORITY),
    (SOL_SOCKET, libc::SO_RCVLOWAT),
    (SOL_SOCKET, libc::SO_DONTROUTE),
    (SOL_SOCKET, libc::SO_LINGER),
    (SOL_SOCKET, libc::SO_RCVTIMEO),
    (SOL_SOCKET, libc::SO_SNDTIMEO),
    (SOL_SOCKET, libc::SO_ZEROCOPY),
    (SOL_SOCKET, libc::SO_MAX_PACING_RATE),
    (IPPROTO_TCP, libc::TCP_NODELAY),
    (IPPROTO_TCP, libc::TCP_CORK),
    (IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (IPPROTO_TCP, libc::TCP_KEEPCNT),
    (IPPROTO_TCP, libc::TCP_SYNCNT),
    (IPPROTO_TCP, libc::TCP_LINGER2),
    (IPPROTO_TCP, libc::TCP_CONGESTION),
    (IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    (IPPROTO_TCP, libc::TCP_THIN_LINEAR_TIMEOUTS),
];

const EARLY: [Name; 2] = [(IPPROTO_TCP, libc::TCP_MAXSEG), (IPPROTO_TCP, libc::TCP_WINDOW_CLAMP)];

/// Options that each IP version has its own name for: IPv4's first.
const OF_IP: [[Name; 2]; 3] = [
    [(IPPROTO_IP, libc::IP_TOS), (IPPROTO_IPV6, libc::IPV6_TCLASS)],
    [(IPPROTO_IP, libc::IP_TTL), (IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS)],
    [(IPPROTO_IP, libc::IP_MTU_DISCOVER), (IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER)],
];

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;

    use super::*;

    const ASKED: &str = "192.0.2.1:80";

    fn fresh(domain: c_int) -> c_int {
        socket(domain).unwrap()
    }

    fn movable(fd: c_int) -> Option<Movable> {
        Movable::of(fd, ASKED.parse().unwrap())
    }

    fn set(fd: c_int, (level, name): Name, value: i32) {
        set_option(fd, level, name, &value.to_ne_bytes()).unwrap();
    }

    #[test]
    fn only_fresh_tcp_sockets_are_moved() {
        assert!(movable(fresh(libc::AF_INET)).is_some());
        assert!(movable(fresh(libc::AF_INET6)).is_none(), "of another version than the address");
        assert!(movable(UdpSocket::bind("127.0.0.1:0").unwrap().as_raw_fd()).is_none());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(movable(listener.as_raw_fd()).is_none());
        let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(movable(connected.as_raw_fd()).is_none());
        assert!(movable(-1).is_none());
        let bound = fresh(libc::AF_INET);
        let local = Raw::new("127.0.0.1:0".parse().unwrap(), libc::AF_INET);
        // SAFETY: an address of that length.
        assert_eq!(unsafe { libc::bind(bound, local.pointer().cast(), local.length()) }, 0);
        assert!(movable(bound).is_none());
        let fast = fresh(libc::AF_INET);
        set(fast, (IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT), 1);
        assert!(movable(fast).is_none());
    }

    #[test]
    fn a_socket_of_ours_is_set_like_the_programs() {
        let theirs = fresh(libc::AF_INET);
        let set_ones = [
            ((SOL_SOCKET, libc::SO_KEEPALIVE), 1),
            ((IPPROTO_TCP, libc::TCP_NODELAY), 1),
            ((IPPROTO_TCP, libc::TCP_KEEPIDLE), 77),
            ((IPPROTO_TCP, libc::TCP_USER_TIMEOUT), 1234),
        ];
        for (name, value) in set_ones {
            set(theirs, name, value);
        }
        set(theirs, (SOL_SOCKET, libc::SO_RCVBUF), 20_000);
        set(theirs, (IPPROTO_IP, libc::IP_TOS), 0x28);
        set(theirs, (IPPROTO_IP, libc::IP_TTL), 33);
        let ours = movable(theirs).unwrap().alike("2001:db8::1".parse().unwrap()).unwrap();
        assert_eq!(int_option(ours, SOL_SOCKET, libc::SO_DOMAIN), Ok(libc::AF_INET6));
        for ((level, name), value) in set_ones {
            assert_eq!(int_option(ours, level, name), Ok(value), "{level} {name}");
        }
        assert_eq!(int_option(ours, SOL_SOCKET, libc::SO_RCVBUF), Ok(40_000));
        assert_eq!(int_option(ours, IPPROTO_IPV6, libc::IPV6_TCLASS), Ok(0x28));
        assert_eq!(int_option(ours, IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS), Ok(33));
    }

    #[test]
    fn flags_stay_the_programs() {
        let theirs = fresh(libc::AF_INET);
        fcntl(theirs, libc::F_SETFD, 0).unwrap();
        fcntl(theirs, libc::F_SETFL, libc::O_RDWR).unwrap();
        let movable = movable(theirs).unwrap();
        assert!(movable.blocks() && movable.is_there());
        let ours = movable.alike("2001:db8::1".parse().unwrap()).unwrap();
        let winner = inode(ours);
        movable.give(ours).unwrap();
        assert_eq!((inode(theirs), inode(ours)), (winner, 0));
        assert_eq!(fcntl(theirs, libc::F_GETFD, 0), Ok(0));
        assert_eq!(fcntl(theirs, libc::F_GETFL, 0).unwrap() & libc::O_NONBLOCK, 0);
        assert!(!movable.is_there());
    }
}
