//! A bottleneck per IP version.
//!
//! The classes of `htb` only sort (`prio` would be simpler, but kernels without it exist); the
//! token buckets below them shape. Segmentation offload may stay on: `tbf` cuts whatever exceeds
//! its bucket, and counts the headers of every segment that a smaller aggregate will become.

use netaware_units::BitRate;

use crate::tool::run;
use crate::{NetnsError, Pair, Side};

impl Pair {
    /// Limits what leaves either side, separately for IPv4 and IPv6, replacing limits set before.
    ///
    /// Rates count Ethernet frames without preamble and checksum (14 B of header), so the largest
    /// payload rate of TCP with timestamps at MTU 1500 is 1448/1514 of it over IPv4 and 1428/1514
    /// over IPv6. The queue holds 50 ms. Other protocols (ARP) pass at once.
    pub fn shape_two_classes(&self, v4_rate: BitRate, v6_rate: BitRate) -> Result<(), NetnsError> {
        self.unshape()?;
        for side in self.sides() {
            side.tc(&["qdisc", "add", "dev", side.device(), "root", "handle", "1:", "htb"])?;
            side.add_class("4", "ip", v4_rate)?;
            side.add_class("6", "ipv6", v6_rate)?;
        }
        Ok(())
    }

    /// Takes the limits away.
    pub fn unshape(&self) -> Result<(), NetnsError> {
        for side in self.sides() {
            if side.tc(&["qdisc", "show", "dev", side.device()])?.contains("htb") {
                side.tc(&["qdisc", "delete", "dev", side.device(), "root"])?;
            }
        }
        Ok(())
    }
}

impl Side {
    fn add_class(&self, number: &str, protocol: &str, rate: BitRate) -> Result<(), NetnsError> {
        let (class, handle) = (format!("1:{number}"), format!("{number}0:"));
        let (rate, burst) = (format!("{}bit", rate.0), burst_for(rate).to_string());
        let device = self.device();
        // Far above any shaped rate; the explicit quantum keeps htb from complaining about it.
        let open = ["htb", "rate", "100gbit", "quantum", "60000"];
        self.tc(&[&["class", "add", "dev", device, "parent", "1:", "classid", &class], &open[..]].concat())?;
        let bucket = ["tbf", "rate", &rate, "burst", &burst, "latency", "50ms"];
        self.tc(
            &[&["qdisc", "add", "dev", device, "parent", &class, "handle", &handle], &bucket[..]].concat()
        )?;
        let everything = ["u32", "match", "u32", "0", "0", "flowid", &class];
        let filter = ["filter", "add", "dev", device, "parent", "1:", "protocol", protocol, "prio", number];
        self.tc(&[&filter[..], &everything[..]].concat()).map(drop)
    }

    fn tc(&self, arguments: &[&str]) -> Result<String, NetnsError> {
        run("tc", &[&["-netns", self.namespace()], arguments].concat())
    }
}

/// Bytes that may pass at once: what the rate moves in 10 ms. Tokens are lost while the bucket is
/// full, so a bucket that fills before a busy host's timer fires falls short of its rate: with 3 ms
/// (16 kB at 40 Mbit/s) it read up to 4 % low beside a compiler. The price is a credit of 10 ms
/// after each pause, 1 % of the first second.
fn burst_for(rate: BitRate) -> u64 {
    const SMALLEST: u64 = 16_000;
    (rate.0 / 8 / 100).max(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_is_ten_milliseconds_of_the_rate_and_always_several_packets() {
        assert_eq!(burst_for(BitRate(40_000_000)), 50_000);
        assert_eq!(burst_for(BitRate(1_000_000)), 16_000);
    }
}
