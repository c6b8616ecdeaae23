//! Flow records of one exporter until they are handed over.
//!
//! Records of one key become one row: counts are added, the times are those of the first and the
//! last packet. As many keys are kept as the store can take rows of; when there are more, the
//! lesser half goes into one row of the rest, and a key that is let in after that may have been in
//! it: its row says how many packets may be missing at most. So all rows together are always all
//! packets that were exported, counts of a key lean low only, and by no more than they say.

use std::collections::HashMap;

use netaware_record::passive::{FlowKey, VolumeRow};
use netaware_units::{ByteCount, Span};

/// Rows that go to the store together: at one hand-over a second SQLite keeps up with several
/// exporters of so many.
const MOST: usize = 10_000;
/// Records of one key with more than this between them stay two rows, so that a row does not claim
/// hours of which nothing is known.
const MOST_APART: Span = Span::from_secs(60);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Flows {
    keys: HashMap<FlowKey, VolumeRow>,
    /// Of keys that came again long before or after.
    apart: Vec<VolumeRow>,
    rest: Option<VolumeRow>,
    /// No key that went into the rest had more packets.
    floor: u64,
}

impl Flows {
    pub(super) fn add(&mut self, row: VolumeRow) {
        if row.rest {
            return self.add_rest(&row);
        }
        let crowded = self.keys.len() + self.apart.len() >= MOST;
        match self.keys.get_mut(&row.key) {
            Some(known) if crowded || !is_apart(known, &row) => merge(known, &row),
            Some(known) => self.apart.push(std::mem::replace(known, row)),
            None => {
                if crowded {
                    self.purge();
                }
                let packets_error = row.packets_error.saturating_add(self.floor);
                self.keys.insert(row.key.clone(), VolumeRow { packets_error, ..row });
            }
        }
    }

    fn add_rest(&mut self, row: &VolumeRow) {
        match &mut self.rest {
            Some(rest) => merge(rest, row),
            None => {
                self.rest =
                    Some(VolumeRow { key: FlowKey::default(), rest: true, packets_error: 0, ..row.clone() });
            }
        }
    }

    /// Makes room: the half with fewer packets, those that may be missing included, goes into the
    /// rest.
    fn purge(&mut self) {
        let mut uppers: Vec<u64> = self.keys.values().map(upper).collect();
        let middle = uppers.len() / 2;
        if middle > 0 {
            let limit = *uppers.select_nth_unstable(middle).1;
            // Of those that weigh just the limit only so many go that half remains: else a table of
            // equals would be emptied.
            let below = uppers[..middle].iter().filter(|upper| **upper < limit).count();
            let mut equals = middle - below;
            let gone: Vec<VolumeRow> = self
                .keys
                .extract_if(|_, row| {
                    let is_equal = upper(row) == limit && equals > 0;
                    equals -= usize::from(is_equal);
                    upper(row) < limit || is_equal
                })
                .map(|(_, row)| row)
                .collect();
            self.floor = gone.iter().map(upper).fold(self.floor, u64::max);
            for row in &gone {
                self.add_rest(row);
            }
        }
        for row in std::mem::take(&mut self.apart) {
            self.add_rest(&row);
        }
    }

    /// All rows; the table is empty and exact again.
    pub(super) fn take(&mut self) -> Vec<VolumeRow> {
        let Self { keys, apart, rest, .. } = std::mem::take(self);
        apart.into_iter().chain(keys.into_values()).chain(rest).collect()
    }
}

fn upper(row: &VolumeRow) -> u64 {
    row.packets.saturating_add(row.packets_error)
}

fn is_apart(one: &VolumeRow, other: &VolumeRow) -> bool {
    one.first_at.0.saturating_sub(other.last_at.0).max(other.first_at.0.saturating_sub(one.last_at.0))
        > MOST_APART.nanos()
}

fn merge(into: &mut VolumeRow, row: &VolumeRow) {
    into.packets = into.packets.saturating_add(row.packets);
    into.bytes = ByteCount(into.bytes.0.saturating_add(row.bytes.0));
    into.first_at = into.first_at.min(row.first_at);
    into.last_at = into.last_at.max(row.last_at);
    // What may be missing of a key is not missing of the rest: there it is counted.
    into.packets_error = if into.rest { 0 } else { into.packets_error.saturating_add(row.packets_error) };
}

#[cfg(test)]
mod tests {
    use netaware_units::Wall;
    use proptest::prelude::*;

    use super::*;

    fn row(key: u32, packets: u64, first: i64, last: i64) -> VolumeRow {
        VolumeRow {
            key: FlowKey { flow_label: Some(key), ..FlowKey::default() },
            packets,
            bytes: ByteCount(packets * 100),
            first_at: Wall(first),
            last_at: Wall(last),
            packets_error: 0,
            rest: false,
        }
    }

    #[test]
    fn records_of_one_flow_become_one_row_unless_hours_are_between() {
        let hour = 3_600_000_000_000;
        let mut flows = Flows::default();
        for (first, last) in [(10, 20), (15, 40), (5, 7), (hour, hour + 1)] {
            flows.add(row(1, 2, first, last));
        }
        let mut rows = flows.take();
        rows.sort_by_key(|row| row.first_at);
        assert_eq!(rows, [row(1, 6, 5, 40), row(1, 2, hour, hour + 1)]);
        assert!(flows.take().is_empty());
    }

    #[test]
    fn more_flows_than_there_is_room_for_lose_their_names_and_no_packet() {
        let mut flows = Flows::default();
        let heavy = |flows: &mut Flows| (0..10).for_each(|n| flows.add(row(n, 1000, 0, 1)));
        heavy(&mut flows);
        (100..100_000).for_each(|n| flows.add(row(n, 1, 0, 1)));
        heavy(&mut flows);
        let rows = flows.take();
        assert!(rows.len() <= MOST + 1, "{}", rows.len());
        assert_eq!(rows.iter().map(|row| row.packets).sum::<u64>(), 20_000 + 99_900);
        for n in 0..10 {
            let kept = rows.iter().find(|row| row.key.flow_label == Some(n));
            assert_eq!(kept.map(|row| (row.packets, row.packets_error)), Some((2000, 0)), "flow {n}");
        }
        let late = rows.iter().find(|row| row.key.flow_label == Some(99_999));
        assert!(late.is_some_and(|row| row.packets_error >= 1), "it may have been in the rest: {late:?}");
    }

    proptest! {
        #[test]
        fn what_is_taken_is_what_was_added(
            added in prop::collection::vec((0..30_u32, 0..1_000_u64, 0..1_000_i64), 0..200),
        ) {
            let mut flows = Flows::default();
            for (key, packets, minutes) in &added {
                let at = minutes * 30_000_000_000;
                flows.add(row(*key, *packets, at, at));
            }
            let rows = flows.take();
            prop_assert_eq!(
                rows.iter().map(|row| row.packets).sum::<u64>(),
                added.iter().map(|(_, packets, _)| packets).sum::<u64>()
            );
            prop_assert!(rows.iter().all(|row| row.first_at <= row.last_at && row.packets_error == 0));
        }
    }
}
