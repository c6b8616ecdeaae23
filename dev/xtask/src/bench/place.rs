//! Where a contest is held.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::process::Command;

use netaware_netns::{IpVersion, Pair};

/// A path between a client and a server, with one IP version.
///
/// Loopback is that of a namespace, so that no other program's traffic or firewall is on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pair: &'a Pair,
    pub(crate) link: Link,
    pub(crate) version: IpVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Loopback,
    Veth,
}

impl<'a> Place<'a> {
    pub(crate) fn new(pair: &'a Pair, link: Link, version: IpVersion) -> Self {
        Self { pair, link, version }
    }

    /// Both links with both versions.
    pub(crate) fn all(pair: &'a Pair) -> Vec<Self> {
        let versions = [IpVersion::V4, IpVersion::V6];
        let on = |link| versions.into_iter().map(move |version| Self::new(pair, link, version));
        on(Link::Loopback).chain(on(Link::Veth)).collect()
    }

    /// Both links with IPv4 alone.
    pub(crate) fn both_links(pair: &'a Pair) -> Vec<Self> {
        let v4 = |link| Self::new(pair, link, IpVersion::V4);
        vec![v4(Link::Loopback), v4(Link::Veth)]
    }

    pub(crate) fn name(&self) -> String {
        let link = match self.link {
            Link::Loopback => "loopback",
            Link::Veth => "veth",
        };
        let version = match self.version {
            IpVersion::V4 => "IPv4",
            IpVersion::V6 => "IPv6",
        };
        format!("{link} {version}")
    }

    /// A program at the server's end.
    pub(crate) fn server(&self, program: impl AsRef<OsStr>) -> Command {
        self.pair.right().command(program)
    }

    /// A program at the client's end, ended by force when it outlives `limit` seconds by far.
    pub(crate) fn client(&self, program: impl AsRef<OsStr>, limit: u32) -> Command {
        let side = match self.link {
            Link::Loopback => self.pair.right(),
            Link::Veth => self.pair.left(),
        };
        let mut command = side.command("timeout");
        command.args(["--kill-after=2", &(limit + 20).to_string()]).arg(program.as_ref());
        command
    }

    /// The server's address.
    pub(crate) fn address(&self) -> IpAddr {
        match (self.link, self.version) {
            (Link::Loopback, IpVersion::V4) => std::net::Ipv4Addr::LOCALHOST.into(),
            (Link::Loopback, IpVersion::V6) => std::net::Ipv6Addr::LOCALHOST.into(),
            (Link::Veth, version) => self.pair.right().address(version),
        }
    }

    /// The interface at which the server receives.
    pub(crate) fn server_device(&self) -> &'static str {
        match self.link {
            Link::Loopback => "lo",
            Link::Veth => self.pair.right().device(),
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
