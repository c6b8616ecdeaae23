//! Takes datagrams one by one, stamped by this program: systems without the Linux calls.

use std::io;
use std::net::UdpSocket;

use netaware_units::Mono;
use netaware_wire::control::UdpPlan;

use super::account::{Account, ArrivedAt};
use crate::clock;

/// A buffer for one datagram.
#[derive(Debug)]
pub(super) struct Inbox<'a> {
    socket: &'a UdpSocket,
    bytes: Vec<u8>,
    calls: u64,
}

impl<'a> Inbox<'a> {
    pub(super) fn new(socket: &'a UdpSocket, _: &UdpPlan, _: Mono) -> Self {
        Self { socket, bytes: vec![0; 1 << 16], calls: 0 }
    }

    /// Waits for a datagram and shows it to the account.
    pub(super) fn receive(&mut self, account: &mut Account) -> io::Result<()> {
        self.calls += 1;
        let length = self.socket.recv(&mut self.bytes)?;
        account.take(&self.bytes[..length], ArrivedAt { at: clock::now(), by_kernel: false });
        Ok(())
    }

    /// Shows all that lies in the socket to the account, without waiting, and takes no longer than
    /// until then.
    pub(super) fn drain(&mut self, account: &mut Account, until: Mono) {
        let _ = self.socket.set_nonblocking(true);
        while clock::now() < until && self.receive(account).is_ok() {}
        let _ = self.socket.set_nonblocking(false);
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// What came from the system: a datagram per call.
    pub(super) fn parcels(&self) -> u64 {
        self.calls
    }
}

/// Nothing to ask for on this system.
pub(super) fn ask(_: &UdpSocket, _: &UdpPlan) {}

/// Not told by this system.
pub(super) fn socket_drops(_: &UdpSocket) -> Option<u64> {
    None
}

/// Asks for a large buffer.
pub(super) fn force_receive_buffer(socket: &UdpSocket, bytes: u32) {
    let _ = socket2::SockRef::from(socket).set_recv_buffer_size(bytes as usize);
}
