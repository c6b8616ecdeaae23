//! Packets that vanish without a word: no ICMP, no error for the sender.
//!
//! They are dropped where they enter a side, because a drop on the way out would be told to the
//! sender (`EPERM`).

use crate::tool::run_with_input;
use crate::{IpVersion, NetnsError, Pair, Side};

impl Pair {
    /// Drops everything of one IP version, both ways, except neighbour discovery: without that the
    /// sender's own kernel would soon report "no route to host", and nothing would be silent any
    /// more.
    pub fn blackhole(&self, version: IpVersion) -> Result<(), NetnsError> {
        self.filter(everything(version))
    }

    /// Answers every TCP segment of one IP version with a reset, both ways: what is connected dies
    /// at once, and nothing connects.
    pub fn reset(&self, version: IpVersion) -> Result<(), NetnsError> {
        self.filter(&[&format!(
            "meta nfproto {} meta l4proto tcp counter reject with tcp reset",
            family(version)
        )])
    }

    /// Drops packets of one IP version that are longer than `bytes`, IP header included, both ways:
    /// a path MTU that nobody announces.
    ///
    /// From now on both sides cut segments before they reach the wire, as otherwise a 64 KiB
    /// aggregate of small segments would be taken for one long packet.
    pub fn blackhole_larger_than(&self, bytes: u32, version: IpVersion) -> Result<(), NetnsError> {
        for side in self.sides() {
            side.ip(&["link", "set", "dev", side.device(), "gso_max_segs", "1"])?;
        }
        self.filter(&[&format!("meta nfproto {} meta length > {bytes} counter drop", family(version))])
    }

    /// Lets everything through again.
    pub fn unblackhole(&self) -> Result<(), NetnsError> {
        for side in self.sides() {
            side.nft("add table inet netaware\ndelete table inet netaware\n")?;
            side.ip(&["link", "set", "dev", side.device(), "gso_max_segs", USUAL_SEGMENTS])?;
        }
        Ok(())
    }

    fn filter(&self, rules: &[&str]) -> Result<(), NetnsError> {
        for side in self.sides() {
            side.nft(&script(side.device(), rules))?;
        }
        Ok(())
    }
}

fn family(version: IpVersion) -> &'static str {
    match version {
        IpVersion::V4 => "ipv4",
        IpVersion::V6 => "ipv6",
    }
}

/// The kernel's default, `GSO_MAX_SEGS`.
const USUAL_SEGMENTS: &str = "65535";

fn everything(version: IpVersion) -> &'static [&'static str] {
    match version {
        IpVersion::V4 => &["meta nfproto ipv4 counter drop"],
        IpVersion::V6 => &[
            "icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
            "meta nfproto ipv6 counter drop",
        ],
    }
}

/// Adding a table or chain that exists is no error, so calls add up.
fn script(device: &str, rules: &[&str]) -> String {
    let chain = "inet netaware vanish";
    let vanish = |rule: &&str| format!("add rule {chain} iifname \"{device}\" {rule}\n");
    let rules: String = rules.iter().map(vanish).collect();
    format!(
        "add table inet netaware\nadd chain {chain} {{ type filter hook prerouting priority raw; }}\n{rules}"
    )
}

impl Side {
    /// Drops what comes in of one IP version, as [`Pair::blackhole`] does for both sides.
    pub fn blackhole(&self, version: IpVersion) -> Result<(), NetnsError> {
        self.nft(&script(self.device(), everything(version)))
    }

    fn nft(&self, rules: &str) -> Result<(), NetnsError> {
        run_with_input("ip", &["netns", "exec", self.namespace(), "nft", "-f", "-"], rules).map(drop)
    }
}
