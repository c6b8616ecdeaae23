//! Systems without an error queue.

use std::io;
use std::net::SocketAddr;

use netaware_path::hops::{Round, RoundReport};

use super::{EchoAccess, HopCounts};
use crate::options::{ConnectError, SocketOptions};
use crate::stop::StopFlag;
use crate::zone::ZonedIp;

/// Never made.
#[derive(Debug)]
pub(super) enum System {}

impl System {
    pub(super) fn open(destination: SocketAddr, _: &SocketOptions) -> Result<Self, ConnectError> {
        let source = io::Error::new(io::ErrorKind::Unsupported, "hearing of ICMP errors needs Linux");
        Err(ConnectError::System { operation: "send probes to", address: destination, source })
    }

    pub(super) fn echo(&self) -> &EchoAccess {
        match *self {}
    }

    pub(super) fn timestamps(&self) -> bool {
        match *self {}
    }

    pub(super) fn mtu(&self) -> Option<u32> {
        match *self {}
    }

    pub(super) fn local(&self) -> Option<ZonedIp> {
        match *self {}
    }

    pub(super) fn counts(&self) -> HopCounts {
        match *self {}
    }

    pub(super) fn run(&mut self, _: &Round, _: &StopFlag) -> RoundReport {
        match *self {}
    }
}
