//! Two namespaces and the wire between them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::NetnsError;
use crate::side::Side;
use crate::stale::{namespace_name, next_number};
use crate::tool::run;

/// Two namespaces joined by a veth pair; see the drawing at the top of the crate.
///
/// Dropping it kills every process left inside (SIGKILL) and removes the namespaces, their links
/// and their files.
#[derive(Debug)]
pub struct Pair {
    left: Side,
    right: Side,
}

/// What Ethernet carries by default.
const USUAL_MTU: u32 = 1500;

impl Pair {
    /// A pair with an MTU of 1500. `name` only helps a person who looks at `ip netns`; it need not
    /// be unique.
    pub fn new(name: &str) -> Result<Self, NetnsError> {
        Self::with_mtu(name, USUAL_MTU)
    }

    /// A pair whose wire has this MTU in bytes, 1280 (the least that IPv6 allows) to 65535.
    pub fn with_mtu(name: &str, mtu: u32) -> Result<Self, NetnsError> {
        let number = next_number();
        // Built before the first command runs, so that a failure half-way is cleaned up by `Drop`
        // too.
        let pair = Self {
            left: side(namespace_name(number, name, "left"), 1),
            right: side(namespace_name(number, name, "right"), 2),
        };
        pair.create(mtu)?;
        Ok(pair)
    }

    /// The side that clients usually run in.
    pub fn left(&self) -> &Side {
        &self.left
    }

    /// The side that servers usually run in.
    pub fn right(&self) -> &Side {
        &self.right
    }

    pub(crate) fn sides(&self) -> [&Side; 2] {
        [&self.left, &self.right]
    }

    fn create(&self, mtu: u32) -> Result<(), NetnsError> {
        for side in self.sides() {
            side.create()?;
        }
        let (left, right, mtu) = (self.left.namespace(), self.right.namespace(), mtu.to_string());
        let near = ["link", "add", DEVICE, "netns", left, "mtu", &mtu, "type", "veth"];
        let far = ["peer", "name", DEVICE, "netns", right, "mtu", &mtu];
        run("ip", &[&near[..], &far[..]].concat())?;
        for side in self.sides() {
            side.ip(&["link", "set", DEVICE, "up"])?;
        }
        // Addresses come last: set on a link that is up on both ends, and without duplicate address
        // detection, they can be used at once.
        configure(&self.left, &self.right)?;
        configure(&self.right, &self.left)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for side in self.sides() {
            side.remove();
        }
    }
}

const DEVICE: &str = "lan";

fn side(namespace: String, host: u8) -> Side {
    let v4 = Ipv4Addr::new(10, 77, 0, host);
    let v6 = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, host.into());
    Side::new(namespace, DEVICE, v4, v6)
}

fn configure(side: &Side, other: &Side) -> Result<(), NetnsError> {
    side.ip(&["address", "add", &format!("{}/24", side.v4()), "dev", DEVICE])?;
    side.ip(&["address", "add", &format!("{}/64", side.v6()), "dev", DEVICE, "nodad"])?;
    side.know_hosts(&hosts(other))
}

fn hosts(other: &Side) -> String {
    let (v4, v6) = (other.v4(), other.v6());
    format!("{v4} both.test\n{v6} both.test\n{v4} v4.test\n{v6} v6.test\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_stands_for_both_addresses_of_the_other_side() {
        let text = hosts(&side("x".into(), 2));
        assert!(text.contains("10.77.0.2 both.test\nfd00:77::2 both.test"), "{text}");
    }
}
