//! What becomes of an interface while it is watched: up, down, gone, its MTU and its own counts of
//! drops (rtnetlink).
//!
//! Netlink sockets stay in the network namespace in which they were made, whatever the thread does,
//! and need no privilege; files in /sys show the namespace of whoever mounted it.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use crate::socket::check;

/// How an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LinkState {
    /// Switched on and with carrier.
    pub(crate) up: bool,
    /// 0 where it is not told.
    pub(crate) mtu: u32,
    /// Since it exists: received and dropped by driver or stack.
    pub(crate) dropped: u64,
    /// Since it exists: dropped by the card for want of room.
    pub(crate) missed: u64,
    /// There is hardware behind it.
    pub(crate) is_card: bool,
}

/// What happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is like this now.
    Is(i32, LinkState),
    /// It is no more.
    Gone,
}

pub(crate) struct LinkWatch {
    news: OwnedFd,
    questions: OwnedFd,
    name: String,
    sequence: u32,
}

impl LinkWatch {
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let news = netlink_socket(libc::RTMGRP_LINK as u32, libc::SOCK_NONBLOCK)?;
        let questions = netlink_socket(0, 0)?;
        // An answer that does not come is a kernel that does not answer: a second is plenty.
        let patience = libc::timeval { tv_sec: 1, tv_usec: 0 };
        // SAFETY: `patience` is what this option takes, and outlives the call.
        check(unsafe {
            libc::setsockopt(
                questions.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const patience).cast(),
                size_of::<libc::timeval>() as u32,
            )
        })?;
        Ok(Self { news, questions, name: name.to_owned(), sequence: 0 })
    }

    /// Readable when something happened to some interface.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// How the interface of this name is now, and its number; `None` if there is none.
    pub(crate) fn state(&mut self) -> io::Result<Option<(i32, LinkState)>> {
        self.sequence += 1;
        let request = question(&self.name, self.sequence);
        // SAFETY: `request` is valid for its length during the call.
        let sent =
            unsafe { libc::send(self.questions.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut buffer = vec![0; BUFFER];
        loop {
            let length = receive(self.questions.as_fd(), &mut buffer)?;
            for message in Messages(&buffer[..length]) {
                // Answers to earlier questions that came too late are passed over.
                if message.sequence != self.sequence {
                    continue;
                }
                return match message.kind {
                    libc::RTM_NEWLINK => Ok(message.link().map(|link| (link.index, link.state))),
                    _ => Ok(None),
                };
            }
        }
    }

    /// What happened to the interface since the last call, in order. Where more happened than the
    /// kernel keeps, how it is now.
    pub(crate) fn changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut buffer = vec![0; BUFFER];
        loop {
            match receive(self.news.as_fd(), &mut buffer) {
                Ok(length) => {
                    changes.extend(Messages(&buffer[..length]).filter_map(|news| self.change(&news)));
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    let now = self.state().ok().flatten();
                    changes.push(now.map_or(Change::Gone, |(index, state)| Change::Is(index, state)));
                }
                Err(_) => return changes,
            }
        }
    }

    fn change(&self, message: &Message<'_>) -> Option<Change> {
        let link = message.link().filter(|link| link.name == self.name.as_bytes())?;
        match message.kind {
            libc::RTM_NEWLINK => Some(Change::Is(link.index, link.state)),
            libc::RTM_DELLINK => Some(Change::Gone),
            _ => None,
        }
    }
}

fn netlink_socket(groups: u32, flags: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | flags;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
    check(fd)?;
    // SAFETY: a descriptor that was just opened and that nobody else has.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as u16;
    address.nl_groups = groups;
    let size = size_of::<libc::sockaddr_nl>() as u32;
    // SAFETY: `address` is a netlink address of the size given.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) })?;
    Ok(fd)
}

fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` is valid for writing its length. Netlink messages come from the kernel
    // alone: others would need privilege.
    let length = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    if length < 0 { Err(io::Error::last_os_error()) } else { Ok(length as usize) }
}

/// `RTM_GETLINK` by name.
fn question(name: &str, sequence: u32) -> Vec<u8> {
    let text = name.len() + 1;
    let attribute = 4 + text;
    let length = MESSAGE + LINK + attribute.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(libc::RTM_GETLINK.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.resize(MESSAGE + LINK, 0);
    bytes.extend((attribute as u16).to_ne_bytes());
    bytes.extend(libc::IFLA_IFNAME.to_ne_bytes());
    bytes.extend(name.bytes());
    bytes.resize(length, 0);
    bytes
}

/// Messages of a datagram, one after the other, ends with the first that is cut.
struct Messages<'a>(&'a [u8]);

struct Message<'a> {
    kind: u16,
    sequence: u32,
    content: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let length = u32_at(self.0, 0)? as usize;
        let whole = self.0.get(..length).filter(|whole| whole.len() >= MESSAGE)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind: u16_at(whole, 4)?, sequence: u32_at(whole, 8)?, content: &whole[MESSAGE..] })
    }
}

struct Link<'a> {
    index: i32,
    name: &'a [u8],
    state: LinkState,
}

impl<'a> Message<'a> {
    /// `None` for what is not about a link.
    fn link(&self) -> Option<Link<'a>> {
        if self.kind != libc::RTM_NEWLINK && self.kind != libc::RTM_DELLINK {
            return None;
        }
        let running = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
        let up = u32_at(self.content, 8)? & running == running;
        let mut link = Link {
            index: u32_at(self.content, 4)? as i32,
            name: &[],
            state: LinkState { up, ..LinkState::default() },
        };
        let mut rest = self.content.get(LINK..)?;
        while let Some(length) = u16_at(rest, 0).map(usize::from).filter(|length| *length >= 4) {
            let Some(value) = rest.get(4..length) else { break };
            link.take(u16_at(rest, 2)?, value);
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(link)
    }
}

impl<'a> Link<'a> {
    fn take(&mut self, kind: u16, value: &'a [u8]) {
        match kind {
            libc::IFLA_IFNAME => self.name = value.strip_suffix(&[0]).unwrap_or(value),
            libc::IFLA_MTU => self.state.mtu = u32_at(value, 0).unwrap_or(0),
            libc::IFLA_STATS64 => {
                let count = |place: usize| {
                    let bytes = value.get(place * 8..).and_then(|rest| rest.first_chunk());
                    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
                };
                self.state.dropped = count(RX_DROPPED);
                // Drivers count the same event in one or the other, some in both: the larger errs
                // low.
                self.state.missed = count(RX_FIFO).max(count(RX_MISSED));
            }
            PARENT_DEVICE => self.state.is_card = true,
            _ => {}
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// `struct nlmsghdr`, `struct ifinfomsg`.
const MESSAGE: usize = 16;
const LINK: usize = 16;
/// Places in `struct rtnl_link_stats64`.
const RX_DROPPED: usize = 6;
const RX_FIFO: usize = 14;
const RX_MISSED: usize = 15;
/// `IFLA_PARENT_DEV_NAME`: only what hangs on a bus has it.
const PARENT_DEVICE: u16 = 56;
/// The kernel's answers about one link stay below this (`NLMSG_GOODSIZE` is 8 KiB).
const BUFFER: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, flags: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
        let content = attributes.concat();
        let mut bytes = ((MESSAGE + LINK + content.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(9_u32.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn a_link_says_whether_it_is_up_its_mtu_and_its_drops() {
        let mut counts = [0_u8; 192];
        for (place, count) in [(RX_DROPPED, 5_u64), (RX_FIFO, 2), (RX_MISSED, 3)] {
            counts[place * 8..place * 8 + 8].copy_from_slice(&count.to_ne_bytes());
        }
        let attributes = [
            attribute(libc::IFLA_IFNAME, b"lan0\0"),
            attribute(libc::IFLA_MTU, &1500_u32.to_ne_bytes()),
            attribute(libc::IFLA_STATS64, &counts),
            attribute(PARENT_DEVICE, b"0000:00:03.0\0"),
        ];
        let running = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
        let both =
            [message(libc::RTM_NEWLINK, running, &attributes), message(libc::RTM_DELLINK, 0, &[])].concat();
        let found: Vec<Message<'_>> = Messages(&both).collect();
        assert_eq!((found.len(), found[0].sequence, found[1].kind), (2, 9, libc::RTM_DELLINK));
        let link = found[0].link().unwrap();
        assert_eq!((link.index, link.name), (7, &b"lan0"[..]));
        assert_eq!(link.state, LinkState { up: true, mtu: 1500, dropped: 5, missed: 3, is_card: true });
        assert!(!found[1].link().unwrap().state.up);
        for cut in 0..both.len() {
            for message in Messages(&both[..cut]) {
                let _ = message.link();
            }
        }
    }

    #[test]
    fn loopback_is_known_to_the_kernel_and_others_are_not() {
        let mut watch = LinkWatch::new("lo").unwrap();
        let (index, state) = watch.state().unwrap().unwrap();
        assert!(index > 0 && state.mtu > 0 && !state.is_card, "{index} {state:?}");
        assert!(LinkWatch::new("no-such-link").unwrap().state().unwrap().is_none());
    }
}
