//! How does the rate change, how large are packets, who talks most?
//!
//! **What it measures.** Bytes per slice of time, packets by size, the share of the link that was
//! taken, and the pairs of hosts with the most bytes.
//!
//! **What it assumes.** For `link_bytes`: Ethernet (each frame at least 60 bytes, and 24 more for
//! preamble, checksum and gap), where there is a link header at all. For `utilisation`: that the
//! speed the interface says is the link's, and one direction of it: what the interface sent and
//! what it received are different directions, and the fuller one is told.
//!
//! **How it is biased.** Frames that offloads merged count as the packets that the capture says
//! they stand for, all of one size. A packet whose stamp lies outside of the period (clock steps,
//! rings read one after the other) counts in the nearest slice, so that slices always add up.
//!
//! **Where it was published.** Nowhere: counting. Top talkers as in [`crate::volume`], by bytes.

use netaware_record::Histogram;
use netaware_record::passive::{Period, Row, TrafficRow, VolumeRow};
use netaware_units::{ByteCount, Span};
use netaware_wire::lmap::MOST_TALKERS;

use crate::flow::Flow;
use crate::volume::{Bounded, Weight};
use crate::{Found, Link, Observed, Seed, TaskError, Watch, watch};

/// Slices of a period at most; of what is asked for beyond, slices are made longer.
pub const MOST_SLICES: i64 = 10_000;

/// The task.
#[derive(Debug)]
pub struct TrafficWatch {
    /// What was asked for, ns.
    asked: i64,
    /// What it is now; longer if there were too many.
    slice: i64,
    top: usize,
    link: Link,
    packets: u64,
    bytes: u64,
    /// Received, sent.
    link_bytes: [u64; 2],
    /// Bytes by slice number since the epoch; a number may be there several times. The last one is
    /// the present.
    slices: Vec<(i64, u64)>,
    sizes: Vec<u64>,
    larger: u64,
    talkers: Bounded,
}

impl TrafficWatch {
    /// A task with slices of `slice_ms` and `top` talkers.
    pub fn new(slice_ms: u32, top: u32, seed: &Seed, link: Link) -> Result<Self, TaskError> {
        let slice = i64::from(watch::within("slice_ms", slice_ms, 1, 3_600_000)?) * 1_000_000;
        let top = watch::within("top", top, 0, MOST_TALKERS)? as usize;
        // Twenty times as many as are told: the bound of what may be missing is then a tenth of the
        // least of equal shares.
        let talkers = Bounded::new((top * 20).max(1000), Weight::Bytes, seed);
        let sizes = vec![0; LARGEST + 1];
        let (packets, bytes, larger) = (0, 0, 0);
        Ok(Self {
            asked: slice,
            slice,
            top,
            link,
            packets,
            bytes,
            link_bytes: [0; 2],
            slices: Vec::new(),
            sizes,
            larger,
            talkers,
        })
    }

    #[inline]
    fn count_slice(&mut self, at: i64, bytes: u64) {
        let number = at.div_euclid(self.slice);
        match self.slices.last_mut() {
            Some((last, sum)) if *last == number => *sum += bytes,
            _ => {
                if self.slices.len() >= 2 * MOST_SLICES as usize {
                    self.compact();
                }
                self.slices.push((number, bytes));
            }
        }
    }

    /// Makes room among slices: first by adding up equal numbers, then by longer slices.
    #[cold]
    fn compact(&mut self) {
        loop {
            self.slices.sort_unstable();
            self.slices.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
            if self.slices.len() <= MOST_SLICES as usize || self.slice > i64::MAX / 4 {
                return;
            }
            self.slice *= 2;
            for (number, _) in &mut self.slices {
                *number = number.div_euclid(2);
            }
        }
    }

    fn sliced(&mut self, period: Period) -> (Span, Vec<ByteCount>) {
        let (from, until) = (period.from.0, period.until.0.max(period.from.0.saturating_add(1)));
        let mut length = self.slice;
        while until.saturating_sub(from) / length >= MOST_SLICES {
            length *= 2;
        }
        let whole = until.saturating_sub(from);
        let count = (whole.div_euclid(length) + i64::from(whole % length != 0)).max(1);
        let mut slices = vec![ByteCount(0); count as usize];
        for (number, bytes) in std::mem::take(&mut self.slices) {
            let place = (number.saturating_mul(self.slice).saturating_sub(from)).div_euclid(length);
            slices[place.clamp(0, count - 1) as usize] += ByteCount(bytes);
        }
        self.slice = self.asked;
        (Span(length), slices)
    }

    fn utilisation(&self, period: Period) -> Option<f64> {
        let could = self.link.rate?.0 as f64 / 8.0 * period.until.since(period.from).secs_f64();
        (could > 0.0).then(|| *self.link_bytes.iter().max().unwrap_or(&0) as f64 / could)
    }

    fn sizes(&mut self) -> Histogram {
        let filled = self.sizes.iter().enumerate().filter(|(_, packets)| **packets > 0);
        let bins = filled.map(|(size, packets)| (size as u64, *packets)).collect();
        self.sizes.fill(0);
        let overflow = std::mem::take(&mut self.larger);
        Histogram { bins, width: Some(Span(1)), low: Some(Span(0)), overflow, ..Histogram::default() }
    }
}

impl Watch for TrafficWatch {
    #[inline]
    fn observe(&mut self, seen: &Observed<'_>) {
        let packet = &seen.packet;
        let (packets, bytes) = (u64::from(seen.segments), seen.length());
        self.packets += packets;
        self.bytes += bytes;
        self.link_bytes[usize::from(seen.outgoing)] += on_the_link(seen);
        self.count_slice(seen.at.0, bytes);
        let each = if packets > 1 { bytes / packets } else { bytes };
        match self.sizes.get_mut(each as usize) {
            Some(count) => *count += packets,
            None => self.larger += packets,
        }
        if self.top > 0 {
            self.talkers.add(Flow::hosts(packet), seen.segments, bytes, seen.at);
        }
    }

    fn close(&mut self, period: Period, found: &mut Found) {
        let utilisation = self.utilisation(period);
        let (slice, slices) = self.sliced(period);
        let talkers = self.talkers.take().keys.into_iter().take(self.top);
        let top = talkers.map(|(flow, counted)| VolumeRow {
            packets_error: counted.packets_error,
            ..counted.count.row(flow.key())
        });
        let link_bytes = std::mem::take(&mut self.link_bytes);
        let row = TrafficRow {
            packets: std::mem::take(&mut self.packets),
            bytes: ByteCount(std::mem::take(&mut self.bytes)),
            link_bytes: ByteCount(link_bytes.iter().sum()),
            sent_link_bytes: ByteCount(link_bytes[1]),
            utilisation,
            slices,
            slice,
            top: top.collect(),
            sizes: self.sizes(),
        };
        found.rows.push(Row::Traffic(row));
    }

    fn link(&mut self, link: Link) {
        self.link = link;
    }
}

/// Bytes that a frame takes on an Ethernet link: padded, with checksum, preamble and gap. Without a
/// link header, those of the packet.
#[inline]
fn on_the_link(seen: &Observed<'_>) -> u64 {
    let packets = u64::from(seen.segments);
    let header = u64::from(seen.packet.frame_length).saturating_sub(seen.packet.length.into());
    let bytes = seen.length();
    if header == 0 { bytes } else { (bytes + header * packets).max(60 * packets) + 24 * packets }
}

/// Largest packet with a bin of its own, bytes: jumbo frames; what is larger was merged.
const LARGEST: usize = 9216;

#[cfg(test)]
mod tests {
    use netaware_units::{BitRate, Wall};
    use netaware_wire::packet::Packet;

    use super::*;
    use crate::made_up::{Made, PERIOD};

    fn task(slice_ms: u32, top: u32) -> TrafficWatch {
        let link = Link { mtu: None, rate: Some(BitRate(1_000_000)) };
        TrafficWatch::new(slice_ms, top, &Seed::new([1; 16]), link).unwrap()
    }

    fn close(task: &mut TrafficWatch, period: Period) -> TrafficRow {
        let mut found = Found::default();
        task.close(period, &mut found);
        match found.rows.remove(0) {
            Row::Traffic(row) => row,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn slices_sizes_and_talkers_add_up() {
        let mut task = task(1000, 2);
        for (seconds, host, payload) in [(0, 1, 0), (0, 1, 100), (3, 2, 1000), (9, 3, 10), (3, 2, 1000)] {
            let made = Made::udp4().destination_of(host).payload(&vec![0; payload]);
            task.observe(&made.observed(Wall(seconds * 1_000_000_000 + 5)));
        }
        let row = close(&mut task, PERIOD);
        assert_eq!((row.packets, row.bytes, row.slice), (5, ByteCount(2250), Span::from_secs(1)));
        let slices: Vec<u64> = row.slices.iter().map(|bytes| bytes.0).collect();
        assert_eq!(slices, [156, 0, 0, 2056, 0, 0, 0, 0, 0, 38]);
        assert_eq!(row.sizes.bins, [(28, 1), (38, 1), (128, 1), (1028, 2)]);
        // Two frames are padded to 60; all carry 24 bytes more than the frame.
        assert_eq!(row.link_bytes, ByteCount(60 + 60 + 142 + 2 * 1042 + 5 * 24));
        let top: Vec<_> = row
            .top
            .iter()
            .map(|talker| (talker.key.destination.unwrap().to_string(), talker.bytes.0))
            .collect();
        assert_eq!(top, [("192.0.2.2".to_string(), 2056), ("192.0.2.1".to_string(), 156)]);
        let share = row.utilisation.unwrap();
        assert!((share - 2466.0 * 8.0 / 10_000_000.0).abs() < 1e-9, "{share}");
        assert_eq!(close(&mut task, PERIOD).bytes, ByteCount(0));
    }

    #[test]
    fn a_merged_frame_is_as_many_packets_on_the_link() {
        let mut task = task(1000, 1);
        let made = Made::tcp4().payload(&[7; 2920]);
        task.observe(&Observed { segments: 2, ..made.observed(Wall(1)) });
        let row = close(&mut task, PERIOD);
        assert_eq!((row.packets, row.bytes), (2, ByteCount(3000)));
        assert_eq!(row.link_bytes, ByteCount(2 * (1500 + 14 + 24)));
        assert_eq!((row.sizes.bins, row.top[0].packets), (vec![(1500, 2)], 2));
    }

    #[test]
    fn the_fuller_direction_is_the_utilisation() {
        let mut task = task(1000, 0);
        let made = Made::udp4().payload(&[0; 1000]);
        for outgoing in [true, true, false] {
            task.observe(&Observed { outgoing, ..made.observed(Wall(1)) });
        }
        let row = close(&mut task, PERIOD);
        assert_eq!((row.link_bytes, row.sent_link_bytes), (ByteCount(3 * 1066), ByteCount(2 * 1066)));
        let share = row.utilisation.unwrap();
        assert!((share - 2.0 * 1066.0 * 8.0 / 10_000_000.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn stamps_beyond_the_period_count_at_its_ends() {
        let mut task = task(2500, 0);
        for at in [-7, i64::MIN, i64::MAX, 10_000_000_000] {
            task.observe(&Made::udp4().observed(Wall(at)));
        }
        let slices: Vec<u64> = close(&mut task, PERIOD).slices.iter().map(|bytes| bytes.0).collect();
        assert_eq!(slices, [56, 0, 0, 56]);
    }

    #[test]
    fn many_slices_grow_longer_instead_of_more() {
        let mut task = task(1, 0);
        for n in 0..50_000_i64 {
            // Back and forth, so that numbers repeat.
            task.observe(&Made::udp4().observed(Wall((n * 7919 % 50_000) * 1_000_000)));
            assert!(task.slices.len() <= 2 * MOST_SLICES as usize);
        }
        let minute = Period { from: Wall(0), until: Wall(60_000_000_000) };
        let row = close(&mut task, minute);
        assert!(row.slices.len() <= MOST_SLICES as usize, "{}", row.slices.len());
        assert_eq!(row.slices.iter().copied().sum::<ByteCount>(), row.bytes);
        assert_eq!(close(&mut task, Period { until: Wall(5_000_000), ..minute }).slice, Span::from_millis(1));
        let end = Period { from: Wall(i64::MAX), until: Wall(i64::MIN) };
        assert_eq!(close(&mut task, end).slices.len(), 1);
    }

    #[test]
    fn without_a_speed_there_is_no_utilisation_and_merged_frames_overflow() {
        let mut task = task(1000, 0);
        task.link(Link::default());
        task.observe(&Made::tcp4().payload(&vec![0; 20_000]).observed(Wall(0)));
        let row = close(&mut task, PERIOD);
        assert_eq!((row.utilisation, row.sizes.overflow), (None, 1));
    }

    #[test]
    fn bins_of_sizes_are_a_byte_wide_and_begin_at_zero() {
        let mut task = task(1000, 0);
        task.observe(&Made::udp4().observed(Wall(0)));
        let sizes = close(&mut task, PERIOD).sizes;
        assert_eq!((sizes.low, sizes.width), (Some(Span(0)), Some(Span(1))));
        assert_eq!((sizes.bins, sizes.underflow, sizes.overflow), (vec![(28, 1)], 0, 0));
    }

    #[test]
    fn a_row_says_all_of_its_period() {
        let mut task = task(3000, 1);
        let (udp, tcp) = (Made::udp4(), Made::tcp4());
        let elsewhere = udp.clone().destination_of(9);
        let at = |seconds: i64| Wall(seconds * 1_000_000_000);
        task.observe(&udp.observed(at(5)));
        task.observe(&tcp.observed(at(6)));
        task.observe(&Observed { outgoing: true, ..elsewhere.observed(at(9)) });
        let top = VolumeRow {
            key: Flow::hosts(&udp.packet()).key(),
            packets: 2,
            bytes: ByteCount(68),
            first_at: at(5),
            last_at: at(6),
            packets_error: 0,
            rest: false,
        };
        let sizes = Histogram {
            bins: vec![(28, 2), (40, 1)],
            width: Some(Span(1)),
            low: Some(Span(0)),
            ..Histogram::default()
        };
        let want = TrafficRow {
            packets: 3,
            bytes: ByteCount(96),
            // Each frame is padded.
            link_bytes: ByteCount(3 * 84),
            sent_link_bytes: ByteCount(84),
            // Of 1 Mbit/s for 7 s.
            utilisation: Some(168.0 / 875_000.0),
            // Two whole slices and a part; what began before the period is in the first.
            slices: [68, 28, 0].map(ByteCount).to_vec(),
            slice: Span::from_secs(3),
            top: vec![top],
            sizes,
        };
        assert_eq!(close(&mut task, Period { from: at(5), until: at(12) }), want);
    }

    #[test]
    fn slices_are_added_up_and_made_longer_only_where_there_are_too_many() {
        let compacted = |slice: i64, slices: Vec<(i64, u64)>| {
            let mut task = task(1, 0);
            (task.slice, task.slices) = (slice, slices);
            task.compact();
            (task.slice, task.slices)
        };
        let numbered = |from: i64| (from..MOST_SLICES).map(|number| (number, 1)).collect::<Vec<_>>();
        let found = compacted(1_000_000, vec![(5, 1), (4, 2), (5, 3), (4, 10)]);
        assert_eq!(found, (1_000_000, vec![(4, 12), (5, 4)]));
        assert_eq!(compacted(1_000_000, numbered(0)), (1_000_000, numbered(0)));
        let (slice, slices) = compacted(1_000_000, numbered(-1));
        assert_eq!((slice, slices.len()), (2_000_000, 5001));
        assert_eq!([slices[0], slices[1], slices[5000]], [(-1, 1), (0, 2), (4999, 2)]);
        // A slice of centuries grows no longer.
        assert_eq!(compacted(i64::MAX / 2, numbered(-1)), (i64::MAX / 2, numbered(-1)));
    }

    #[test]
    fn a_long_period_has_longer_slices_and_one_of_no_length_no_utilisation() {
        let period = |until: i64| Period { from: Wall(0), until: Wall(until) };
        for (until, slice, slices) in [(9_999_000_000, 1, 9999), (10_000_000_000, 2, 5000)] {
            let row = close(&mut task(1, 0), period(until));
            assert_eq!((row.slice, row.slices.len()), (Span::from_millis(slice), slices));
            assert!(row.utilisation.is_some_and(|share| share.abs() < 1e-9), "{:?}", row.utilisation);
        }
        let mut task = task(1, 0);
        task.observe(&Made::udp4().observed(Wall(0)));
        let row = close(&mut task, period(0));
        assert_eq!((row.utilisation, row.slices), (None, vec![ByteCount(28)]));
    }

    #[test]
    fn a_talker_that_may_have_been_put_out_before_says_so() {
        let mut task = task(1000, 1);
        for number in 0..1000_u16 {
            let made = Made::udp4().source_of((number / 250) as u8).destination_of((number % 250) as u8);
            task.observe(&made.observed(Wall(1)));
        }
        task.observe(&Made::udp4().source_of(9).payload(&[0; 1000]).observed(Wall(2)));
        let row = close(&mut task, PERIOD);
        let said: Vec<_> =
            row.top.iter().map(|talker| (talker.packets, talker.bytes, talker.packets_error)).collect();
        assert_eq!(said, [(1, ByteCount(1028), 1)]);
    }

    #[test]
    fn a_packet_without_a_link_header_is_all_that_the_link_carries_and_jumbo_frames_have_bins() {
        let mut task = task(1000, 0);
        let made = Made::udp4().payload(&[0; 100]);
        let packet = made.packet();
        let bare = Packet { frame_length: packet.length, ..packet };
        task.observe(&Observed { packet: bare, ..made.observed(Wall(1)) });
        for payload in [9188, 9189] {
            task.observe(&Made::udp4().payload(&vec![0; payload]).observed(Wall(1)));
        }
        let row = close(&mut task, PERIOD);
        assert_eq!(row.link_bytes, ByteCount(128 + (9216 + 38) + (9217 + 38)));
        assert_eq!((row.sizes.bins, row.sizes.overflow), (vec![(128, 1), (9216, 1)], 1));
    }
}
