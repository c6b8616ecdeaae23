//! `--bottleneck`: the rate of the narrowest link, and what it counts beside IP packets.

use netaware_record::{Bottleneck, ETHERNET_OVERHEAD};

use super::quantity;

/// "100Mbit/s", or "100Mbit/s,0" for a link whose rate counts IP packets alone.
pub(crate) fn parse(text: &str) -> Result<Bottleneck, String> {
    let (rate, overhead) = match text.split_once(',') {
        Some((rate, bytes)) => (rate, overhead(bytes)?),
        None => (text, ETHERNET_OVERHEAD),
    };
    quantity::some_rate(rate).map(|rate| Bottleneck { rate, overhead })
}

fn overhead(text: &str) -> Result<u32, String> {
    let bytes = text.trim().parse().ok().filter(|bytes| *bytes <= MOST_OVERHEAD);
    bytes.ok_or_else(|| format!("'{text}' is no number of bytes per packet from 0 to {MOST_OVERHEAD}"))
}

/// Several tunnels around each other; more is a slip of the hand.
const MOST_OVERHEAD: u32 = 1000;

#[cfg(test)]
mod tests {
    use netaware_units::BitRate;

    use super::*;

    #[test]
    fn a_rate_alone_is_ethernets() {
        let mbit = BitRate(100_000_000);
        assert_eq!(parse("100Mbit/s"), Ok(Bottleneck { rate: mbit, overhead: 38 }));
        assert_eq!(parse("100M,0"), Ok(Bottleneck { rate: mbit, overhead: 0 }));
        assert_eq!(parse("0.1G,42"), Ok(Bottleneck { rate: mbit, overhead: 42 }));
        for bad in ["", "0M", "100", "100M,", "100M,-1", "100M,1001", ",38", "100MBps", "1,5M"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        for zero in ["0", "0M", "0,38"] {
            assert_eq!(parse(zero), Err("it must be more than zero".to_owned()), "{zero}");
        }
    }
}
