//! Hears what this host gives to a device to send, before it waits there.
//!
//! A packet socket is given a copy of each packet on its way into the device, with the kernel's
//! stamp of that moment. So what is timed does not hold the wait in the device's own queue.

use std::ffi::CString;
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd as _;

use netaware_units::Mono;
use socket2::{Domain, SockAddr, SockAddrStorage, SockFilter, Socket, Type};

use crate::ancillary::{ClockPair, RealTime};
use crate::clock;
use crate::hop_socket::{Queue, receive, set};

/// Open for one device.
#[derive(Debug)]
pub struct SentEar {
    socket: Socket,
    clocks: RealTime,
    opened_at: Mono,
}

/// A packet that was given to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeardPacket {
    /// Bytes of it that had room, from its network header on.
    pub length: usize,
    /// When; `None` where the kernel's stamp cannot be believed, as after somebody set the
    /// real-time clock.
    pub at: Option<Mono>,
}

impl SentEar {
    /// Hears a device of the calling thread's network namespace, which has to be up. Room for
    /// `bytes` of packets that were heard and not read; what has none is not heard.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` and, for the room, `CAP_NET_ADMIN`; or if there is no such device.
    pub fn open(device: &str, bytes: i32) -> io::Result<Self> {
        // No protocol: it hears nothing before it is bound, thus nothing that the filter would have
        // kept away.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
        socket.attach_filter(&outgoing_only())?;
        let stamps = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
        set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &stamps)?;
        set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)?;
        socket.bind(&every_protocol(device)?)?;
        Ok(Self { socket, clocks: RealTime::start(), opened_at: clock::now() })
    }

    /// The next packet, its first bytes in `start`; `None` if there is none. Does not wait.
    pub fn next_packet(&mut self, start: &mut [u8]) -> Option<HeardPacket> {
        let (length, told) = receive(self.socket.as_raw_fd(), start, Queue::Arrivals).ok()?;
        let pair = ClockPair::read();
        let at = told.stamp.and_then(|stamp| self.clocks.map(stamp, pair, self.opened_at));
        Some(HeardPacket { length, at: at.map(|stamp| stamp.at) })
    }
}

/// What the device hands to the host passes the same socket.
fn outgoing_only() -> [SockFilter; 4] {
    let kind_of_packet = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();
    let outgoing = u32::from(libc::PACKET_OUTGOING);
    [
        SockFilter::new((libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16, 0, 0, kind_of_packet),
        SockFilter::new((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, 0, 1, outgoing),
        SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, u32::MAX),
        SockFilter::new((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, 0),
    ]
}

fn every_protocol(device: &str) -> io::Result<SockAddr> {
    let name = CString::new(device)?;
    // SAFETY: a string that ends with zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: the storage has room and alignment for every kind of address.
    *unsafe { storage.view_as() } = address;
    // SAFETY: it holds a link-layer address, of that length.
    Ok(unsafe { SockAddr::new(storage, size_of::<libc::sockaddr_ll>() as libc::socklen_t) })
}
