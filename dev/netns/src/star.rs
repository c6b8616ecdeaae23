//! Some sites, each with a network of its own, and a router between them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::NetnsError;
use crate::side::Side;
use crate::stale::{namespace_name, next_number};
use crate::tool::run;

/// A router (`hub`) and up to [`Star::MOST`] sites around it, in namespaces of their own:
///
/// ```text
///   site 1: eth0  10.80.1.2/24, fd00:80:1::2/64 ── veth ──┐
///   site 2: eth0  10.80.2.2/24, fd00:80:2::2/64 ── veth ──┤ hub: lo 10.80.0.1, fd00:80::1
///   …                                                     ┘
/// ```
///
/// Each site reaches the others and the hub through the hub, and knows them all by name, the hub as
/// `hub`. Dropping it kills every process left inside (SIGKILL) and removes the namespaces, their
/// links and their files.
#[derive(Debug)]
pub struct Star {
    hub: Side,
    sites: Vec<Side>,
}

impl Star {
    /// Sites that one can have.
    pub const MOST: u8 = 250;

    /// Sites of these names, at most [`Self::MOST`]. `name` only helps a person who looks at `ip
    /// netns`; it need not be unique.
    pub fn new(name: &str, sites: &[&str]) -> Result<Self, NetnsError> {
        let number = next_number();
        let hub = Side::new(namespace_name(number, name, "hub"), "lo", v4(0, 1), v6(0, 1));
        let numbered = (1..=Self::MOST).zip(sites);
        let side = |(n, site): (u8, &&str)| {
            Side::new(namespace_name(number, name, site), "eth0", v4(n, 2), v6(n, 2))
        };
        // Built before the first command runs, so that a failure half-way is cleaned up by `Drop`
        // too.
        let star = Self { hub, sites: numbered.map(side).collect() };
        star.create(sites)?;
        Ok(star)
    }

    /// The router.
    pub fn hub(&self) -> &Side {
        &self.hub
    }

    /// The sites, in the order in which they were named.
    pub fn sites(&self) -> &[Side] {
        &self.sites
    }

    fn create(&self, names: &[&str]) -> Result<(), NetnsError> {
        self.hub.create()?;
        self.hub.ip(&["address", "add", &format!("{}/32", self.hub.v4()), "dev", "lo"])?;
        self.hub.ip(&["address", "add", &format!("{}/128", self.hub.v6()), "dev", "lo", "nodad"])?;
        forward(&self.hub)?;
        for (n, site) in (1..=Self::MOST).zip(&self.sites) {
            site.create()?;
            let (device, near) = (site.device(), format!("site{n}"));
            let link = ["link", "add", &near, "netns", self.hub.namespace(), "type", "veth"];
            run("ip", &[&link[..], &["peer", "name", device, "netns", site.namespace()]].concat())?;
            self.hub.ip(&["link", "set", &near, "up"])?;
            site.ip(&["link", "set", device, "up"])?;
            for (side, device, host) in [(&self.hub, &*near, 1), (site, device, 2)] {
                side.ip(&["address", "add", &format!("{}/24", v4(n, host)), "dev", device])?;
                side.ip(&["address", "add", &format!("{}/64", v6(n, host)), "dev", device, "nodad"])?;
            }
            site.ip(&["route", "add", "default", "via", &v4(n, 1).to_string()])?;
            site.ip(&["-6", "route", "add", "default", "via", &v6(n, 1).to_string()])?;
        }
        let names = names.iter().copied().chain(["hub"]);
        let lines = names.zip(self.sides()).map(|(name, side)| {
            let (v4, v6) = (side.v4(), side.v6());
            format!("{v4} {name}\n{v6} {name}\n")
        });
        let known = lines.collect::<Vec<_>>().concat();
        self.sides().try_for_each(|side| side.know_hosts(&known))
    }

    fn sides(&self) -> impl Iterator<Item = &Side> {
        self.sites.iter().chain([&self.hub])
    }
}

impl Drop for Star {
    fn drop(&mut self) {
        self.sides().for_each(Side::remove);
    }
}

fn v4(network: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 80, network, host)
}

fn v6(network: u8, host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x80, network.into(), 0, 0, 0, 0, host.into())
}

fn forward(hub: &Side) -> Result<(), NetnsError> {
    let switches = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"];
    for path in switches {
        hub.within(|| std::fs::write(path, "1"))
            .map_err(|source| NetnsError::Write { path: path.into(), source })?;
    }
    Ok(())
}
