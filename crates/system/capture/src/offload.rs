//! Which offloads of an interface make one frame of several packets.

use std::os::fd::BorrowedFd;

use crate::socket::interface_request;

/// Offloads that merge, or cut behind the capture; `None` where the driver does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offloads {
    /// Received packets merged by the kernel (generic receive offload).
    pub gro: Option<bool>,
    /// Received packets merged by the card (large receive offload).
    pub lro: Option<bool>,
    /// TCP segments cut by the card: what is sent is captured uncut.
    pub tso: Option<bool>,
    /// Cut by the kernel, behind the capture.
    pub gso: Option<bool>,
}

impl Offloads {
    /// Those of `interface` in the namespace of `socket`.
    pub(crate) fn read(socket: BorrowedFd<'_>, interface: &str) -> Self {
        let ask = |command| value(socket, interface, command);
        Self {
            gro: ask(GET_GRO).map(|value| value != 0),
            lro: ask(GET_FLAGS).map(|flags| flags & FLAG_LRO != 0),
            tso: ask(GET_TSO).map(|value| value != 0),
            gso: ask(GET_GSO).map(|value| value != 0),
        }
    }

    /// Those that are on, by the names that `ethtool -K` takes.
    pub fn merging(&self) -> Vec<&'static str> {
        let rows = [("gro", self.gro), ("lro", self.lro), ("tso", self.tso), ("gso", self.gso)];
        rows.into_iter().filter(|(_, on)| *on == Some(true)).map(|(name, _)| name).collect()
    }
}

fn value(socket: BorrowedFd<'_>, interface: &str, command: u32) -> Option<u32> {
    let mut asked = EthtoolValue { command, data: 0 };
    let mut request = interface_request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut asked).cast();
    // SAFETY: `request` names an interface and points to a structure of the kind that these four
    // commands fill, and both outlive the call.
    let answer = unsafe {
        libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&socket), libc::SIOCETHTOOL as _, &raw mut request)
    };
    (answer == 0).then_some(asked.data)
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Linux `uapi/linux/ethtool.h`.
const GET_TSO: u32 = 0x1e;
const GET_GSO: u32 = 0x23;
const GET_FLAGS: u32 = 0x25;
const GET_GRO: u32 = 0x2b;
const FLAG_LRO: u32 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_on_is_named() {
        let offloads = Offloads { gro: Some(true), lro: None, tso: Some(false), gso: Some(true) };
        assert_eq!(offloads.merging(), ["gro", "gso"]);
    }
}
