//! Adding rows up: of the same kind and key, of neighbouring times or of collectors that each had a
//! share of the digests.

use netaware_record::Histogram;
use netaware_record::passive::{
    CaptureLoss, DelayRow, DelayStatistics, DigestRow, FlowKey, Period, Row, RttRow, TrafficRow, VolumeRow,
};

/// Different warnings that a sum keeps.
const MOST_WARNINGS: usize = 16;

/// Slices that a sum of traffic rows keeps: an hour by the second.
pub(super) const MOST_SLICES: usize = 3600;

/// Said of a clock when the parts of a sum had different methods.
pub(super) const MIXED: &str = "mixed";

/// What rows must have in common to be added up; rows of other kinds never are. The text is only
/// compared.
pub(super) fn key(row: &Row) -> Option<String> {
    let text = |key: &FlowKey, more: &str| serde_json::to_string(key).ok().map(|key| format!("{key} {more}"));
    match row {
        Row::Volume(volume) => text(&volume.key, if volume.rest { "rest" } else { "" }),
        Row::Traffic(traffic) => Some(format!("{}", traffic.slice.0)),
        Row::Rtt(rtt) => text(&rtt.key, &rtt.method),
        Row::Digests(_) => Some(String::new()),
        Row::Marking(_) | Row::Capacity(_) | Row::Delay(_) | Row::Paths(_) | Row::Active(_) => None,
    }
}

/// Adds `other`, which has the same key and comes later, to `row`; rows of different kinds are left
/// alone.
pub(super) fn add(row: &mut Row, other: &Row) {
    match (row, other) {
        (Row::Volume(a), Row::Volume(b)) => add_volume(a, b),
        (Row::Traffic(a), Row::Traffic(b)) => add_traffic(a, b),
        (Row::Rtt(RttRow { delay: a, .. }), Row::Rtt(RttRow { delay: b, .. })) => a.merge(b),
        (Row::Digests(a), Row::Digests(b)) => add_digests(a, b),
        _ => {}
    }
}

/// What captures lost in neighbouring times.
pub(super) fn add_lost(a: &mut CaptureLoss, b: &CaptureLoss) {
    a.packets = a.packets.saturating_add(b.packets);
    a.merged = a.merged.saturating_add(b.merged);
    a.doubtful |= b.doubtful;
}

fn add_volume(a: &mut VolumeRow, b: &VolumeRow) {
    a.packets = a.packets.saturating_add(b.packets);
    a.bytes.0 = a.bytes.0.saturating_add(b.bytes.0);
    a.first_at = a.first_at.min(b.first_at);
    a.last_at = a.last_at.max(b.last_at);
    a.packets_error = a.packets_error.saturating_add(b.packets_error);
    a.rest |= b.rest;
}

fn add_digests(a: &mut DigestRow, b: &DigestRow) {
    a.observed = a.observed.saturating_add(b.observed);
    a.selected = a.selected.saturating_add(b.selected);
    a.unusable = a.unusable.saturating_add(b.unusable);
    a.given_up = a.given_up.saturating_add(b.given_up);
    a.cut = a.cut.saturating_add(b.cut);
}

/// The top talkers of a sum are those of its parts: a key that just missed the top each time is not
/// among them, so small ones may read low; the top one is right unless it missed a part.
/// Utilisation is weighted by bytes' time, which is the slices'.
fn add_traffic(a: &mut TrafficRow, b: &TrafficRow) {
    let (of_a, of_b) = (a.slices.len() as f64, b.slices.len() as f64);
    a.utilisation = match (a.utilisation, b.utilisation) {
        (Some(x), Some(y)) if of_a + of_b > 0.0 => Some((x * of_a + y * of_b) / (of_a + of_b)),
        _ => None,
    };
    a.packets = a.packets.saturating_add(b.packets);
    a.bytes.0 = a.bytes.0.saturating_add(b.bytes.0);
    a.link_bytes.0 = a.link_bytes.0.saturating_add(b.link_bytes.0);
    a.sent_link_bytes.0 = a.sent_link_bytes.0.saturating_add(b.sent_link_bytes.0);
    a.slices.extend_from_slice(&b.slices);
    a.slices.truncate(MOST_SLICES);
    add_sizes(&mut a.sizes, &b.sizes);
    let most = a.top.len().max(b.top.len());
    for talker in &b.top {
        match a.top.iter_mut().find(|known| known.key == talker.key && known.rest == talker.rest) {
            Some(known) => add_volume(known, talker),
            None => a.top.push(talker.clone()),
        }
    }
    a.top.sort_by_key(|talker| std::cmp::Reverse(talker.bytes.0));
    a.top.truncate(most);
}

/// Bins of one shape, as one task makes them: those with the same edge add up.
fn add_sizes(a: &mut Histogram, b: &Histogram) {
    a.bins.extend_from_slice(&b.bins);
    a.bins.sort_by_key(|(edge, _)| *edge);
    a.bins.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(later.1);
        }
        same
    });
    a.underflow = a.underflow.saturating_add(b.underflow);
    a.overflow = a.overflow.saturating_add(b.overflow);
    // Moments of a sum would need the values.
    a.moments = None;
}

/// Delays of one pair, being added up.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DelaySum {
    pub(super) period: Period,
    pub(super) rows: u64,
    pub(super) row: DelayRow,
}

impl DelaySum {
    /// Of one row, its bins made those that add up.
    pub(super) fn of(period: Period, rows: u64, mut row: DelayRow) -> Self {
        row.delay = normal(&row.delay);
        row.ipdv = normal(&row.ipdv);
        row.warnings = some_warnings(row.warnings);
        Self { period, rows, row }
    }

    /// Adds another.
    ///
    /// The clock's bound of a sum is the largest of its parts, and none if a part had none. The
    /// offset is that of the part that ended last: it labels the sum, nothing is computed from it
    /// any more.
    pub(super) fn add(&mut self, other: &Self) {
        let (a, b) = (&mut self.row, &other.row);
        if (other.period.until, b.offset) > (self.period.until, a.offset) {
            a.offset = b.offset;
        }
        for (mine, theirs) in counts_mut(a).into_iter().zip(counts(b)) {
            *mine = mine.saturating_add(theirs);
        }
        a.patience = a.patience.max(b.patience);
        a.delay.merge(&b.delay);
        a.ipdv.merge(&b.ipdv);
        a.clock_bound = a.clock_bound.zip(b.clock_bound).map(|(a, b)| a.max(b));
        if a.clock_method != b.clock_method {
            MIXED.clone_into(&mut a.clock_method);
        }
        a.warnings.extend_from_slice(&b.warnings);
        a.warnings = some_warnings(std::mem::take(&mut a.warnings));
        self.period.from = self.period.from.min(other.period.from);
        self.period.until = self.period.until.max(other.period.until);
        self.rows = self.rows.saturating_add(other.rows);
    }
}

/// The same with bins in order and each once, however they came.
fn normal(delays: &DelayStatistics) -> DelayStatistics {
    let mut normal = DelayStatistics::default();
    normal.histogram.digits = Some(3);
    normal.merge(delays);
    normal
}

/// Sorted, each once, not too many.
fn some_warnings(mut warnings: Vec<String>) -> Vec<String> {
    warnings.sort_unstable();
    warnings.dedup();
    warnings.truncate(MOST_WARNINGS);
    warnings
}

/// The names of the counts of a delay row, as columns have them and in the order of [`counts`].
pub(super) const COUNTS: [&str; 10] = [
    "packets",
    "matched",
    "lost",
    "unobserved",
    "late",
    "duplicates",
    "reordered",
    "collisions",
    "given_up",
    "below_bound",
];

pub(super) fn counts(row: &DelayRow) -> [u64; 10] {
    [
        row.packets,
        row.matched,
        row.lost,
        row.unobserved,
        row.late,
        row.duplicates,
        row.reordered,
        row.collisions,
        row.given_up,
        row.below_bound,
    ]
}

pub(super) fn counts_mut(row: &mut DelayRow) -> [&mut u64; 10] {
    [
        &mut row.packets,
        &mut row.matched,
        &mut row.lost,
        &mut row.unobserved,
        &mut row.late,
        &mut row.duplicates,
        &mut row.reordered,
        &mut row.collisions,
        &mut row.given_up,
        &mut row.below_bound,
    ]
}

/// A row with nothing in it, to be filled.
pub(super) fn empty_row() -> DelayRow {
    use netaware_units::Span;
    DelayRow {
        from: String::new(),
        to: String::new(),
        version: None,
        method: String::new(),
        packets: 0,
        matched: 0,
        lost: 0,
        unobserved: 0,
        late: 0,
        duplicates: 0,
        reordered: 0,
        collisions: 0,
        given_up: 0,
        patience: Span::ZERO,
        delay: DelayStatistics::default(),
        ipdv: DelayStatistics::default(),
        offset: Span::ZERO,
        clock_bound: None,
        clock_method: String::new(),
        below_bound: 0,
        warnings: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::{ByteCount, Span, Wall};

    use super::*;

    fn sum(from: i64, bound: Option<i64>, method: &str) -> DelaySum {
        let mut row = empty_row();
        for (n, count) in counts_mut(&mut row).into_iter().enumerate() {
            *count = n as u64 + 1;
        }
        row.offset = Span(from);
        row.clock_bound = bound.map(Span);
        row.clock_method = method.into();
        row.warnings = vec![method.into(), "w".into()];
        row.delay.observe(Span(1000 + from));
        let period = Period { from: Wall(from), until: Wall(from + 1) };
        DelaySum::of(period, 1, row)
    }

    #[test]
    fn counts_add_up_and_pedigree_is_that_of_the_worst_part() {
        let mut all = sum(5, Some(30), "clock_daemons");
        all.add(&sum(3, Some(70), "clock_daemons"));
        assert_eq!(counts(&all.row), [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
        assert_eq!((all.row.offset, all.row.clock_bound), (Span(5), Some(Span(70))));
        assert_eq!((all.period.from, all.period.until, all.rows), (Wall(3), Wall(6), 2));
        assert_eq!((all.row.delay.min, all.row.delay.max), (Span(1003), Span(1005)));
        assert_eq!(all.row.clock_method, "clock_daemons");
        all.add(&sum(9, None, "same_host"));
        assert_eq!((all.row.clock_bound, all.row.clock_method.as_str()), (None, MIXED));
        assert_eq!(all.row.warnings, ["clock_daemons", "same_host", "w"]);
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let parts = [sum(5, Some(30), "a"), sum(3, None, "b"), sum(9, Some(1), "a")];
        let add = |order: [usize; 3]| {
            let mut all = parts[order[0]].clone();
            all.add(&parts[order[1]]);
            all.add(&parts[order[2]]);
            all
        };
        assert_eq!(add([0, 1, 2]), add([2, 1, 0]));
        assert_eq!(add([0, 1, 2]), add([1, 2, 0]));
    }

    #[test]
    fn talkers_of_both_parts_compete_for_the_same_places() {
        let talker = |port: u16, bytes: u64| VolumeRow {
            key: FlowKey { source_port: Some(port), ..FlowKey::default() },
            packets: 1,
            bytes: ByteCount(bytes),
            first_at: Wall(1),
            last_at: Wall(2),
            packets_error: 0,
            rest: false,
        };
        let part = |top: Vec<VolumeRow>, bin: u64| TrafficRow {
            packets: 3,
            bytes: ByteCount(100),
            link_bytes: ByteCount(120),
            sent_link_bytes: ByteCount(20),
            utilisation: Some(bin as f64 / 10.0),
            slices: vec![ByteCount(50), ByteCount(50)],
            slice: Span::from_millis(500),
            sizes: Histogram { bins: vec![(64, 2), (bin, 1)], ..Histogram::default() },
            top,
        };
        let mut row = Row::Traffic(part(vec![talker(1, 60), talker(2, 40)], 5));
        add(&mut row, &Row::Traffic(part(vec![talker(3, 55), talker(1, 10)], 7)));
        let Row::Traffic(sum) = row else { unreachable!() };
        let top: Vec<(u64, Option<u16>)> = sum.top.iter().map(|t| (t.bytes.0, t.key.source_port)).collect();
        assert_eq!(top, [(70, Some(1)), (55, Some(3))]);
        assert_eq!((sum.packets, sum.bytes.0, sum.slices.len()), (6, 200, 4));
        assert_eq!((sum.link_bytes.0, sum.sent_link_bytes.0), (240, 40));
        assert_eq!(sum.sizes.bins, [(5, 1), (7, 1), (64, 4)]);
        assert!((sum.utilisation.unwrap() - 0.6).abs() < 1e-9);
    }

    #[test]
    fn rows_that_are_no_sums_have_no_key() {
        let mut digests =
            Row::Digests(DigestRow { observed: 5, selected: 2, unusable: 1, given_up: 3, cut: 1 });
        assert!(key(&digests).is_some());
        let same = digests.clone();
        add(&mut digests, &same);
        assert_eq!(
            digests,
            Row::Digests(DigestRow { observed: 10, selected: 4, unusable: 2, given_up: 6, cut: 2 })
        );
        assert!(key(&Row::Delay(Box::new(empty_row()))).is_none());
    }
}
