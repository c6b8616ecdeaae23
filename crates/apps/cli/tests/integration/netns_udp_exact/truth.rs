//! What the emulator says it did with the datagrams that host A sent.

use std::collections::BTreeMap;
use std::path::Path;

use netaware_record::IpVersion;
use serde_json::Value;

/// Datagrams of one payload, by IP version.
pub(crate) struct Truth {
    /// The emulator's numbers of all packets that were offered.
    offered: BTreeMap<&'static str, Vec<u64>>,
    /// Those that were handed over whole, in that order.
    delivered: BTreeMap<&'static str, Vec<u64>>,
}

impl Truth {
    /// # Panics
    /// When the file is not what the emulator writes.
    pub(crate) fn read(path: &Path, payload: u32) -> Self {
        let mut truth = Self { offered: BTreeMap::new(), delivered: BTreeMap::new() };
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        for line in lines.filter(|line| line["type"] == "packet" && line["from"] == "a") {
            for version in [IpVersion::V4, IpVersion::V6] {
                let length = payload + 8 + version.header_len();
                if line["version"] == version.name() && line["length"] == length {
                    truth.take(version, &line);
                }
            }
        }
        for numbers in truth.offered.values_mut() {
            numbers.sort_unstable();
            numbers.dedup();
        }
        truth
    }

    fn take(&mut self, version: IpVersion, line: &Value) {
        let number = line["number"].as_u64().unwrap();
        self.offered.entry(version.name()).or_default().push(number);
        if line["fate"] == "delivered" && is_accepted(version, &line["corrupted_bit"]) {
            self.delivered.entry(version.name()).or_default().push(number);
        }
    }

    pub(crate) fn offered(&self, version: IpVersion) -> u64 {
        self.offered[version.name()].len() as u64
    }

    /// Sequence numbers in the order in which they were handed over: the sender numbers in the
    /// order in which it sends.
    pub(crate) fn arrivals(&self, version: IpVersion) -> Vec<u64> {
        let offered = &self.offered[version.name()];
        let place = |number: &u64| offered.binary_search(number).unwrap() as u64;
        self.delivered[version.name()].iter().map(place).collect()
    }
}

/// A flipped bit fails a checksum, but for those of the IPv6 header that no checksum covers:
/// traffic class, flow label and hop limit (RFC 8200 §8.1).
fn is_accepted(version: IpVersion, flipped: &Value) -> bool {
    match flipped.as_u64() {
        None => true,
        Some(bit) => version == IpVersion::V6 && ((4..32).contains(&bit) || (56..64).contains(&bit)),
    }
}
