//! Where a contest is held.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::process::Command;

use netaware_lab::{Lab, Side};
use netaware_netns::{IpVersion, Pair};

/// A path between a client and a server, with one IP version.
///
/// Loopback is that of a namespace, so that no other program's traffic or firewall is on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    ground: Ground<'a>,
    pub(crate) version: IpVersion,
}

#[derive(Debug, Clone, Copy)]
enum Ground<'a> {
    Pair(&'a Pair, Link),
    Lab(&'a Lab),
}

/// What joins client and server in a pair of namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Loopback,
    Veth,
}

impl<'a> Place<'a> {
    pub(crate) fn new(pair: &'a Pair, link: Link, version: IpVersion) -> Self {
        Self { ground: Ground::Pair(pair, link), version }
    }

    /// From host A of a lab to its host B.
    pub(crate) fn in_lab(lab: &'a Lab, version: IpVersion) -> Self {
        Self { ground: Ground::Lab(lab), version }
    }

    /// Both links with IPv4 alone.
    pub(crate) fn both_links(pair: &'a Pair) -> Vec<Self> {
        let v4 = |link| Self::new(pair, link, IpVersion::V4);
        vec![v4(Link::Loopback), v4(Link::Veth)]
    }

    pub(crate) fn name(&self) -> String {
        let ground = match self.ground {
            Ground::Pair(_, Link::Loopback) => "loopback",
            Ground::Pair(_, Link::Veth) => "veth",
            Ground::Lab(_) => "lab",
        };
        let version = match self.version {
            IpVersion::V4 => "IPv4",
            IpVersion::V6 => "IPv6",
        };
        format!("{ground} {version}")
    }

    /// A program at the server's end.
    pub(crate) fn server(&self, program: impl AsRef<OsStr>) -> Command {
        match self.ground {
            Ground::Pair(pair, _) => pair.right().command(program),
            Ground::Lab(lab) => lab.command(Side::B, program),
        }
    }

    /// A program at the client's end, ended by force when it outlives `limit` seconds by far.
    pub(crate) fn client(&self, program: impl AsRef<OsStr>, limit: u32) -> Command {
        let mut command = match self.ground {
            Ground::Pair(pair, Link::Loopback) => pair.right().command("timeout"),
            Ground::Pair(pair, Link::Veth) => pair.left().command("timeout"),
            Ground::Lab(lab) => lab.command(Side::A, "timeout"),
        };
        command.args(["--kill-after=2", &(limit + 20).to_string()]).arg(program.as_ref());
        command
    }

    /// The server's address.
    pub(crate) fn address(&self) -> IpAddr {
        match (self.ground, self.version) {
            (Ground::Pair(_, Link::Loopback), IpVersion::V4) => std::net::Ipv4Addr::LOCALHOST.into(),
            (Ground::Pair(_, Link::Loopback), IpVersion::V6) => std::net::Ipv6Addr::LOCALHOST.into(),
            (Ground::Pair(pair, Link::Veth), version) => pair.right().address(version),
            (Ground::Lab(lab), IpVersion::V4) => lab.address(Side::B, netaware_record::IpVersion::V4),
            (Ground::Lab(lab), IpVersion::V6) => lab.address(Side::B, netaware_record::IpVersion::V6),
        }
    }

    /// The interface at which the server receives.
    pub(crate) fn server_device(&self) -> &'static str {
        match self.ground {
            Ground::Pair(_, Link::Loopback) => "lo",
            Ground::Pair(pair, Link::Veth) => pair.right().device(),
            Ground::Lab(_) => "lab",
        }
    }

    /// `-4` or `-6`, which most tools understand alike.
    pub(crate) fn version_flag(&self) -> &'static str {
        match self.version {
            IpVersion::V4 => "-4",
            IpVersion::V6 => "-6",
        }
    }
}
