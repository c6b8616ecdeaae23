//! Packet sockets: the calls, one function each, with the system's answer.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use crate::filter::BpfInstruction;

/// A packet socket that hears nothing until it is bound.
pub(crate) struct PacketSocket {
    fd: OwnedFd,
}

/// What frames of a socket begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The link-layer header (`SOCK_RAW`).
    Link,
    /// The network header (`SOCK_DGRAM`): for links whose header we do not read.
    Network,
}

impl PacketSocket {
    pub(crate) fn open(begin: Begin) -> io::Result<Self> {
        let kind = match begin {
            Begin::Link => libc::SOCK_RAW,
            Begin::Network => libc::SOCK_DGRAM,
        };
        // SAFETY: no pointers. Protocol 0: nothing is received before `bind`, so nothing slips past
        // the filter.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that was just opened and that nobody else has.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Number of the interface in this network namespace.
    pub(crate) fn index_of(&self, interface: &str) -> io::Result<i32> {
        let mut request = interface_request(interface).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: `request` names an interface and is valid for writing.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SIOCGIFINDEX as _, &raw mut request) })?;
        // SAFETY: the call succeeded and filled this field.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// Kind of the interface's link layer (`ARPHRD_…`).
    pub(crate) fn hardware_of(&self, interface: &str) -> io::Result<u16> {
        let mut request = interface_request(interface).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: `request` names an interface and is valid for writing.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) })?;
        // SAFETY: the call succeeded and filled this field.
        Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
    }

    /// Has the card stamp all that it receives, and takes those stamps. Only switching it on needs
    /// `CAP_NET_ADMIN`; refused by interfaces that are no cards. How it stamps what it sends is
    /// left as it was.
    pub(crate) fn stamp_in_hardware(&self, interface: &str) -> io::Result<()> {
        let mut stamps = HardwareStamps { flags: 0, tx_type: 0, rx_filter: 0 };
        let known = self.hardware_stamps(libc::SIOCGHWTSTAMP, interface, &mut stamps);
        if known.is_err() || stamps.rx_filter != ALL {
            let mut wanted = HardwareStamps { flags: 0, rx_filter: ALL, ..stamps };
            self.hardware_stamps(libc::SIOCSHWTSTAMP, interface, &mut wanted)?;
        }
        self.set(libc::SOL_PACKET, libc::PACKET_TIMESTAMP, &RAW_HARDWARE)
    }

    fn hardware_stamps(
        &self,
        command: libc::c_ulong,
        interface: &str,
        stamps: &mut HardwareStamps,
    ) -> io::Result<()> {
        let mut request = interface_request(interface).ok_or(io::ErrorKind::InvalidInput)?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(stamps).cast();
        // SAFETY: `request` points to a structure as both commands take it; both outlive the call.
        check(unsafe { libc::ioctl(self.fd.as_raw_fd(), command as _, &raw mut request) })
    }

    pub(crate) fn set<T: Copy>(&self, level: i32, name: i32, value: &T) -> io::Result<()> {
        let (data, size) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: `data` is valid for `size` bytes during the call; options that take another size
        // refuse it.
        check(unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, name, data, size) })
    }

    fn get<T: Default + Copy>(&self, level: i32, name: i32) -> io::Result<T> {
        let mut value = T::default();
        let mut size = size_of::<T>() as libc::socklen_t;
        // SAFETY: `value` is valid for writing `size` bytes; all callers ask for plain integers.
        check(unsafe {
            libc::getsockopt(self.fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut size)
        })?;
        Ok(value)
    }

    /// Takes a program in place of the one before.
    pub(crate) fn attach(&self, program: &[BpfInstruction]) -> io::Result<()> {
        let mut filter: Vec<libc::sock_filter> = program.iter().map(|one| one.to_kernel()).collect();
        let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Hears the interface from now on; every protocol.
    pub(crate) fn bind(&self, index: i32) -> io::Result<()> {
        // SAFETY: all zeros is a valid value of this plain structure.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: `address` is a link-layer address of the size given.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), size) })
    }

    pub(crate) fn be_promiscuous(&self, index: i32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
    }

    /// Joins the group, or founds one with a number that nobody has; the number.
    pub(crate) fn share(&self, group: Option<u16>, spread: u32) -> io::Result<u16> {
        let flags = if group.is_some() { 0 } else { libc::PACKET_FANOUT_FLAG_UNIQUEID };
        let value = u32::from(group.unwrap_or(0)) | (spread | flags) << 16;
        self.set(libc::SOL_PACKET, libc::PACKET_FANOUT, &value)?;
        let joined: u32 = self.get(libc::SOL_PACKET, libc::PACKET_FANOUT)?;
        Ok(joined as u16)
    }

    /// Packets, drops and freezes since the last call.
    pub(crate) fn statistics(&self) -> io::Result<[u32; 3]> {
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS)
    }

    /// What went wrong since the last call, which forgets it.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        let code: i32 = self.get(libc::SOL_SOCKET, libc::SO_ERROR).unwrap_or(0);
        (code != 0).then(|| io::Error::from_raw_os_error(code))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A request to the kernel about an interface; `None` for what cannot be a name.
pub(crate) fn interface_request(interface: &str) -> Option<libc::ifreq> {
    if interface.is_empty() || interface.len() >= libc::IFNAMSIZ || interface.bytes().any(|byte| byte == 0) {
        return None;
    }
    // SAFETY: all zeros is a valid value of this structure of plain data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = byte as libc::c_char;
    }
    Some(request)
}

pub(crate) fn check(answer: libc::c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `struct hwtstamp_config`.
#[repr(C)]
#[derive(Clone, Copy)]
struct HardwareStamps {
    flags: i32,
    tx_type: i32,
    rx_filter: i32,
}

/// `HWTSTAMP_FILTER_ALL`.
const ALL: i32 = 1;
/// `SOF_TIMESTAMPING_RAW_HARDWARE`.
const RAW_HARDWARE: i32 = 1 << 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_an_interface_is_not_asked_for() {
        for name in ["", "0123456789abcdef", "a\0b"] {
            assert!(interface_request(name).is_none(), "{name:?}");
        }
        assert!(interface_request("eth0").is_some());
    }
}
