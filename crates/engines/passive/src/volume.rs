//! How many packets and bytes, of whom?
//!
//! **What it measures.** Packets, bytes and the first and last stamp of each key (any of version,
//! addresses or prefixes, protocol, ports, DSCP, flow label); without parts of a key, of all
//! packets together.
//!
//! **What it assumes.** Nothing of the traffic; that the capture knows how many packets a frame
//! stands for that offloads merged: so many are counted, each with its headers. Where it has that
//! from the MTU alone, a frame of packets that are smaller counts too few. Memory is for a given
//! number of keys; ten million flows do not change that.
//!
//! **How it is biased.** Exact while the keys have room. Then the lesser half is put into one
//! `rest` row, again and again, and a key that comes (back) later may have been among them: its row
//! says how many packets may be missing at most. A key with more than `2 N / keys` of `N` packets
//! is never missing. Counts never lean high, and all rows together are always all packets.
//!
//! **Where it was published.** Purging by the median: Anderson, Bevan, Lang et al., "A
//! high-performance algorithm for identifying frequent items in data streams", IMC 2017; the bound
//! of a key that returns: space-saving (Metwally, Agrawal and El Abbadi, 2005).

mod bounded;
mod key;

use netaware_record::passive::{FlowKey, Period, Row, VolumeRow};
use netaware_units::{ByteCount, Wall};
use netaware_wire::lmap::MOST_KEYS;

pub(crate) use bounded::{Bounded, Weight};
use key::KeyParts;

use crate::{Found, Observed, Seed, TaskError, Watch, watch};

/// The task.
#[derive(Debug)]
pub struct VolumeWatch {
    parts: KeyParts,
    counting: Counting,
}

#[derive(Debug)]
enum Counting {
    All(Count),
    Keys(Bounded),
}

/// Of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) first_at: i64,
    pub(crate) last_at: i64,
}

impl Count {
    pub(crate) const NOTHING: Self = Self { packets: 0, bytes: 0, first_at: i64::MAX, last_at: i64::MIN };

    #[inline]
    pub(crate) fn add(&mut self, packets: u16, bytes: u64, at: Wall) {
        self.packets += u64::from(packets);
        self.bytes += bytes;
        self.first_at = self.first_at.min(at.0);
        self.last_at = self.last_at.max(at.0);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.first_at = self.first_at.min(other.first_at);
        self.last_at = self.last_at.max(other.last_at);
    }

    pub(crate) fn row(&self, key: FlowKey) -> VolumeRow {
        VolumeRow {
            key,
            packets: self.packets,
            bytes: ByteCount(self.bytes),
            first_at: Wall(self.first_at),
            last_at: Wall(self.last_at),
            packets_error: 0,
            rest: false,
        }
    }
}

impl VolumeWatch {
    /// A task that counts by the parts of a key that `by` names, with prefixes (IPv4, IPv6) in
    /// place of addresses if given, and keeps `keys` keys.
    pub fn new(by: &[String], prefix: Option<(u8, u8)>, keys: u32, seed: &Seed) -> Result<Self, TaskError> {
        let parts = KeyParts::new(by, prefix)?;
        let keys = watch::within("keys", keys, 1, MOST_KEYS)? as usize;
        let counting = match by {
            [] => Counting::All(Count::NOTHING),
            _ => Counting::Keys(Bounded::new(keys, Weight::Packets, seed)),
        };
        Ok(Self { parts, counting })
    }
}

impl Watch for VolumeWatch {
    #[inline]
    fn observe(&mut self, seen: &Observed<'_>) {
        match &mut self.counting {
            Counting::All(count) => count.add(seen.segments, seen.length(), seen.at),
            Counting::Keys(table) => {
                table.add(self.parts.of(&seen.packet), seen.segments, seen.length(), seen.at);
            }
        }
    }

    fn close(&mut self, period: Period, found: &mut Found) {
        match &mut self.counting {
            Counting::All(count) => {
                let mut row = count.row(FlowKey::default());
                if count.packets == 0 {
                    // No packet is a figure too: a line that goes on at zero.
                    (row.first_at, row.last_at) = (period.from, period.from);
                }
                *count = Count::NOTHING;
                found.rows.push(Row::Volume(row));
            }
            Counting::Keys(table) => {
                let parts = &self.parts;
                let taken = table.take();
                for (flow, counted) in taken.keys {
                    let row = VolumeRow {
                        packets_error: counted.packets_error,
                        ..counted.count.row(parts.key(flow))
                    };
                    found.rows.push(Row::Volume(row));
                }
                if let Some(rest) = taken.rest {
                    let row = VolumeRow { rest: true, ..rest.row(FlowKey::default()) };
                    found.rows.push(Row::Volume(row));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{Made, PERIOD};

    fn rows(task: &mut VolumeWatch) -> Vec<VolumeRow> {
        let mut found = Found::default();
        task.close(PERIOD, &mut found);
        let volume = |row| if let Row::Volume(row) = row { row } else { panic!("{row:?}") };
        found.rows.into_iter().map(volume).collect()
    }

    fn task(by: &[&str], prefix: Option<(u8, u8)>, keys: u32) -> VolumeWatch {
        let by: Vec<String> = by.iter().map(ToString::to_string).collect();
        VolumeWatch::new(&by, prefix, keys, &Seed::new([1; 16])).unwrap()
    }

    #[test]
    fn without_a_key_all_is_one_row_and_nothing_too() {
        let mut all = task(&[], None, 1);
        all.observe(&Made::tcp4().observed(Wall(30)));
        all.observe(&Made::udp6().observed(Wall(20)));
        let row = rows(&mut all).remove(0);
        assert_eq!(
            (row.packets, row.bytes, row.first_at, row.last_at),
            (2, ByteCount(88), Wall(20), Wall(30))
        );
        assert_eq!(row.key, FlowKey::default());
        let none = rows(&mut all).remove(0);
        assert_eq!((none.packets, none.first_at, none.rest), (0, PERIOD.from, false));
    }

    #[test]
    fn a_merged_frame_counts_as_the_packets_it_stands_for() {
        let (mut all, mut by_version) = (task(&[], None, 1), task(&["version"], None, 10));
        let frames = [Made::tcp4().payload(&[7; 3000]), Made::udp6().payload(&[7; 3000])];
        for made in &frames {
            let merged = Observed { segments: 3, ..made.observed(Wall(1)) };
            all.observe(&merged);
            by_version.observe(&merged);
        }
        // IPv4 and TCP: 40 bytes of headers to each 1000; IPv6 and UDP: 48.
        let found = rows(&mut all).remove(0);
        assert_eq!((found.packets, found.bytes), (6, ByteCount(3 * 1040 + 3 * 1048)));
        let found = rows(&mut by_version);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|row| row.packets == 3), "{found:?}");
    }

    #[test]
    fn keys_hold_what_was_asked_for_and_no_more() {
        let mut by_dscp = task(&["dscp", "version"], None, 10);
        for dscp in [0, 46, 46] {
            by_dscp.observe(&Made::udp4().dscp(dscp).observed(Wall(1)));
            by_dscp.observe(&Made::udp6().dscp(dscp).observed(Wall(1)));
        }
        let found = rows(&mut by_dscp);
        assert_eq!(found.len(), 4);
        let fast: Vec<_> = found.iter().filter(|row| row.key.dscp == Some(46)).collect();
        assert_eq!(fast.len(), 2);
        assert!(
            fast.iter().all(|row| row.packets == 2 && row.key.source.is_none() && row.key.protocol.is_none())
        );
    }

    #[test]
    fn prefixes_stand_for_their_addresses() {
        let mut by_prefix = task(&["source", "destination"], Some((24, 56)), 10);
        for host in 0..4 {
            by_prefix.observe(&Made::udp4().destination_of(host).observed(Wall(1)));
            by_prefix.observe(&Made::udp6().source_of(host).observed(Wall(1)));
        }
        let found = rows(&mut by_prefix);
        assert_eq!(found.len(), 2);
        for row in &found {
            assert_eq!(row.packets, 4);
        }
        let four = found.iter().find(|row| row.key.source_prefix == Some(24)).unwrap();
        assert_eq!(four.key.source, Some("192.0.2.0".parse().unwrap()));
        let six = found.iter().find(|row| row.key.destination_prefix == Some(56)).unwrap();
        assert_eq!(six.key.destination, Some("2001:db8::".parse().unwrap()));
    }

    #[test]
    fn a_flood_of_flows_leaves_the_heavy_one_and_the_sum() {
        let mut flows =
            task(&["source", "destination", "protocol", "source_port", "destination_port"], None, 100);
        for number in 0..60_000_u32 {
            let made = match number % 20 {
                0 => Made::udp4().ports(7, 7),
                _ => Made::udp6().ports(number as u16, (number >> 16) as u16),
            };
            flows.observe(&made.observed(Wall(number.into())));
        }
        let found = rows(&mut flows);
        assert!(found.len() <= 101, "{} rows", found.len());
        assert_eq!(found.iter().map(|row| row.packets).sum::<u64>(), 60_000);
        let heavy = found.iter().find(|row| {
            row.key.source_port == Some(7) && row.key.version == Some(netaware_record::IpVersion::V4)
        });
        let heavy = heavy.expect("3000 of 60,000 packets are more than 2 in 100");
        assert!(heavy.packets <= 3000 && heavy.packets + heavy.packets_error >= 3000);
        assert_eq!(found.iter().filter(|row| row.rest).count(), 1);
    }

    #[test]
    fn a_key_that_was_put_out_may_miss_packets_and_the_rest_is_one_row() {
        let mut by_source = task(&["source"], None, 2);
        for (host, at) in [(1, 1), (1, 2), (1, 3), (2, 4), (3, 5)] {
            by_source.observe(&Made::udp4().source_of(host).observed(Wall(at)));
        }
        let key = |host: u8| FlowKey {
            version: Some(netaware_record::IpVersion::V4),
            source: format!("192.0.2.{host}").parse().ok(),
            ..FlowKey::default()
        };
        let row = |key: FlowKey, packets: u64, (first, last): (i64, i64), packets_error: u64| VolumeRow {
            key,
            packets,
            bytes: ByteCount(28 * packets),
            first_at: Wall(first),
            last_at: Wall(last),
            packets_error,
            rest: false,
        };
        let rest = VolumeRow { rest: true, ..row(FlowKey::default(), 1, (4, 4), 0) };
        assert_eq!(rows(&mut by_source), [row(key(1), 3, (1, 3), 0), row(key(3), 1, (5, 5), 1), rest]);
        // The next period begins anew.
        by_source.observe(&Made::udp4().source_of(4).observed(Wall(6)));
        assert_eq!(rows(&mut by_source), [row(key(4), 1, (6, 6), 0)]);
        assert!(rows(&mut by_source).is_empty());
    }
}
