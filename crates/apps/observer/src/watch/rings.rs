//! Rows of several rings of one interface become rows of the interface.
//!
//! Each ring has a station of its own, with tables of its own. A flow, both its directions, is in
//! one ring, so rows of flows are those of the interface as they are; rows whose keys are coarser
//! than flows are added up. What a ring had no room for makes sums doubtful: a key that is not
//! among a ring's rows may have been put into that ring's rest, so that its error grows by the
//! least that the ring still has. Top talkers are pairs of hosts: one whose flows lie in several
//! rings reads low by what it had where it was not among the top.

use std::collections::BTreeMap;

use netaware_record::Histogram;
use netaware_record::passive::{DigestRow, FlowKey, MarkingRow, Period, Row, TaskRow, TrafficRow, VolumeRow};
use netaware_units::Wall;

/// What stations said, one part each; rows of the same task and period are of rings of one
/// interface.
pub(super) fn whole(parts: Vec<Vec<TaskRow>>) -> Vec<TaskRow> {
    if parts.len() < 2 {
        return parts.into_iter().flatten().collect();
    }
    let mut tasks: BTreeMap<(String, Period), Vec<Vec<Row>>> = BTreeMap::new();
    let mut order = Vec::new();
    for part in parts {
        let mut begun: Option<(String, Period)> = None;
        for TaskRow { task, period, row, .. } in part {
            let key = (task, period);
            if begun.as_ref() != Some(&key) {
                let rings = tasks.entry(key.clone()).or_default();
                if rings.is_empty() {
                    order.push(key.clone());
                }
                rings.push(Vec::new());
                begun = Some(key.clone());
            }
            if let Some(ring) = tasks.get_mut(&key).and_then(|rings| rings.last_mut()) {
                ring.push(row);
            }
        }
    }
    let mut rows = Vec::new();
    for key in order {
        let rings = tasks.remove(&key).unwrap_or_default();
        let (task, period) = key;
        rows.extend(of_rings(rings).into_iter().map(|row| TaskRow::new(task.clone(), period, row)));
    }
    rows
}

/// Of one task in one period.
fn of_rings(mut rings: Vec<Vec<Row>>) -> Vec<Row> {
    if rings.len() == 1 {
        return rings.remove(0);
    }
    let mut volumes: Vec<Vec<VolumeRow>> = Vec::new();
    let mut digests: Option<DigestRow> = None;
    let mut traffic: Vec<TrafficRow> = Vec::new();
    let mut blocks: BTreeMap<(u64, u8), MarkingRow> = BTreeMap::new();
    let mut rows = Vec::new();
    for ring in rings {
        let mut counted = Vec::new();
        for row in ring {
            match row {
                Row::Volume(row) => counted.push(row),
                Row::Digests(row) => add_digests(digests.get_or_insert_default(), &row),
                Row::Traffic(row) => traffic.push(row),
                Row::Marking(row) => match blocks.get_mut(&(row.block, row.colour)) {
                    Some(block) => add_block(block, row),
                    None => drop(blocks.insert((row.block, row.colour), row)),
                },
                flow @ (Row::Rtt(_) | Row::Capacity(_) | Row::Delay(_) | Row::Paths(_) | Row::Active(_)) => {
                    rows.push(flow);
                }
            }
        }
        if !counted.is_empty() {
            volumes.push(counted);
        }
    }
    rows.extend(all_volumes(volumes).into_iter().map(Row::Volume));
    rows.extend(digests.map(Row::Digests));
    rows.extend(all_traffic(traffic).map(Row::Traffic));
    rows.extend(blocks.into_values().map(Row::Marking));
    rows
}

/// Heaviest first, the rest last, as one table would be read out.
fn all_volumes(rings: Vec<Vec<VolumeRow>>) -> Vec<VolumeRow> {
    let floors: Vec<u64> = rings.iter().map(|ring| floor(ring)).collect();
    let all: u64 = floors.iter().sum();
    let mut keys: BTreeMap<FlowKey, VolumeRow> = BTreeMap::new();
    let mut rest: Option<VolumeRow> = None;
    for (ring, floor) in rings.into_iter().zip(floors) {
        for row in ring {
            if row.rest {
                rest = Some(rest.map_or_else(|| row.clone(), |rest| sum(rest, &row)));
            } else if let Some(known) = keys.get_mut(&row.key) {
                *known = sum(known.clone(), &row);
                known.packets_error = known.packets_error.saturating_sub(floor);
            } else {
                let packets_error = row.packets_error + all - floor;
                keys.insert(row.key.clone(), VolumeRow { packets_error, ..row });
            }
        }
    }
    let mut rows: Vec<VolumeRow> = keys.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.packets + row.packets_error));
    rows.extend(rest);
    rows
}

/// No key that a ring has no row of had more packets there: what was put into the rest was less
/// than all that stayed.
fn floor(ring: &[VolumeRow]) -> u64 {
    if !ring.iter().any(|row| row.rest) {
        return 0;
    }
    let stayed = ring.iter().filter(|row| !row.rest);
    stayed.map(|row| row.packets + row.packets_error).min().unwrap_or(0)
}

fn sum(a: VolumeRow, b: &VolumeRow) -> VolumeRow {
    // A row of no packets has the beginning of the period for its stamps.
    let (first_at, last_at) = match (a.packets, b.packets) {
        (_, 0) => (a.first_at, a.last_at),
        (0, _) => (b.first_at, b.last_at),
        _ => (a.first_at.min(b.first_at), a.last_at.max(b.last_at)),
    };
    VolumeRow {
        packets: a.packets + b.packets,
        bytes: a.bytes + b.bytes,
        packets_error: a.packets_error + b.packets_error,
        first_at,
        last_at,
        ..a
    }
}

fn add_digests(all: &mut DigestRow, one: &DigestRow) {
    all.observed += one.observed;
    all.selected += one.selected;
    all.unusable += one.unusable;
    all.given_up += one.given_up;
    all.cut += one.cut;
}

fn add_block(all: &mut MarkingRow, one: MarkingRow) {
    all.late += one.late;
    if one.packets == 0 {
        return;
    }
    if all.packets == 0 {
        *all = MarkingRow { late: all.late, ..one };
        return;
    }
    let packets = all.packets + one.packets;
    let apart = i128::from(one.mean_at.0) - i128::from(all.mean_at.0);
    let moved = apart * i128::from(one.packets) / i128::from(packets.max(1));
    all.mean_at = Wall(all.mean_at.0.saturating_add(moved as i64));
    all.packets = packets;
    all.bytes += one.bytes;
    all.first_at = all.first_at.min(one.first_at);
    all.marked_at.extend(one.marked_at);
    all.marked_at.sort_unstable();
}

fn all_traffic(rings: Vec<TrafficRow>) -> Option<TrafficRow> {
    let utilisation = utilisation(&rings);
    let mut all = rings.into_iter().reduce(add_traffic)?;
    all.utilisation = utilisation;
    all.top.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
    Some(all)
}

fn add_traffic(a: TrafficRow, b: TrafficRow) -> TrafficRow {
    let (mut longer, shorter) = if a.slice >= b.slice { (a, b) } else { (b, a) };
    // Both began with the same slices and doubled them.
    let each = usize::try_from(longer.slice.0 / shorter.slice.0.max(1)).unwrap_or(1).max(1);
    for (number, bytes) in shorter.slices.iter().enumerate() {
        if let Some(slice) = longer.slices.get_mut(number / each) {
            *slice += *bytes;
        }
    }
    longer.packets += shorter.packets;
    longer.bytes += shorter.bytes;
    longer.link_bytes += shorter.link_bytes;
    longer.sent_link_bytes += shorter.sent_link_bytes;
    add_sizes(&mut longer.sizes, shorter.sizes);
    for talker in shorter.top {
        match longer.top.iter_mut().find(|known| known.key == talker.key) {
            Some(known) => *known = sum(known.clone(), &talker),
            None => longer.top.push(talker),
        }
    }
    longer
}

/// Of the fuller direction of all together; each ring tells of its own fuller one, from which what
/// could have gone is known.
fn utilisation(rings: &[TrafficRow]) -> Option<f64> {
    let directions = |row: &TrafficRow| [row.sent_link_bytes.0, row.link_bytes.0 - row.sent_link_bytes.0];
    let fuller = |[sent, received]: [u64; 2]| sent.max(received) as f64;
    let shares: Option<Vec<f64>> = rings.iter().map(|row| row.utilisation).collect();
    let busy = shares?.into_iter().zip(rings).find(|(share, _)| *share > 0.0);
    let Some((share, row)) = busy else { return Some(0.0) };
    let all = rings.iter().map(directions).fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
    Some(fuller(all) * share / fuller(directions(row)))
}

fn add_sizes(all: &mut Histogram, one: Histogram) {
    let mut bins: BTreeMap<u64, u64> = std::mem::take(&mut all.bins).into_iter().collect();
    for (size, packets) in one.bins {
        *bins.entry(size).or_default() += packets;
    }
    all.bins = bins.into_iter().collect();
    all.overflow += one.overflow;
}

#[cfg(test)]
mod tests {
    use netaware_units::{ByteCount, Span};

    use super::*;

    const PERIOD: Period = Period { from: Wall(0), until: Wall(1000) };

    fn volume(port: u16, packets: u64, packets_error: u64) -> Row {
        let key = FlowKey { source_port: Some(port), ..FlowKey::default() };
        let bytes = ByteCount(packets * 100);
        let (first_at, last_at) = (Wall(i64::from(port)), Wall(900 + i64::from(port)));
        Row::Volume(VolumeRow { key, packets, bytes, first_at, last_at, packets_error, rest: false })
    }

    fn rest(packets: u64) -> Row {
        let (key, bytes) = (FlowKey::default(), ByteCount(packets * 100));
        let (first_at, last_at) = (Wall(1), Wall(2));
        Row::Volume(VolumeRow { key, packets, bytes, first_at, last_at, packets_error: 0, rest: true })
    }

    fn task(rows: Vec<Row>) -> Vec<TaskRow> {
        rows.into_iter().map(|row| TaskRow::new("t", PERIOD, row)).collect()
    }

    /// Port (0: the rest), packets, error.
    fn counted(rows: Vec<TaskRow>) -> Vec<(u16, u64, u64)> {
        let of = |row: TaskRow| match row.row {
            Row::Volume(row) => (row.key.source_port.unwrap_or(0), row.packets, row.packets_error),
            other => panic!("{other:?}"),
        };
        rows.into_iter().map(of).collect()
    }

    #[test]
    fn keys_of_several_rings_add_up_and_are_exact_while_none_was_full() {
        let rings =
            vec![task(vec![volume(1, 10, 0), volume(2, 5, 0)]), task(vec![volume(2, 7, 0), volume(3, 1, 0)])];
        assert_eq!(counted(whole(rings)), [(2, 12, 0), (1, 10, 0), (3, 1, 0)]);
    }

    #[test]
    fn a_key_that_a_full_ring_may_have_put_into_its_rest_says_so() {
        let rings = vec![
            task(vec![volume(1, 10, 0), volume(2, 5, 2)]),
            task(vec![volume(2, 9, 0), volume(3, 3, 1), rest(20)]),
        ];
        // The second ring purged nothing heavier than 4, the first nothing at all.
        assert_eq!(counted(whole(rings)), [(2, 14, 2), (1, 10, 4), (3, 3, 1), (0, 20, 0)]);
    }

    #[test]
    fn a_ring_without_a_packet_does_not_move_the_stamps() {
        let nothing = Row::Volume(VolumeRow {
            key: FlowKey::default(),
            packets: 0,
            bytes: ByteCount(0),
            first_at: Wall(0),
            last_at: Wall(0),
            packets_error: 0,
            rest: false,
        });
        let Row::Volume(some) = volume(7, 3, 0) else { unreachable!() };
        let some = Row::Volume(VolumeRow { key: FlowKey::default(), ..some });
        for rings in [[nothing.clone(), some.clone()], [some, nothing]] {
            let rows = whole(rings.into_iter().map(|row| task(vec![row])).collect());
            let Row::Volume(row) = &rows[0].row else { panic!() };
            assert_eq!((rows.len(), row.packets, row.first_at, row.last_at), (1, 3, Wall(7), Wall(907)));
        }
    }

    fn traffic(sent: u64, received: u64, slice: i64, slices: &[u64]) -> Row {
        let share = sent.max(received) as f64 / 1000.0;
        let Row::Volume(top) = volume(1, 1, 0) else { unreachable!() };
        Row::Traffic(TrafficRow {
            packets: 2,
            bytes: ByteCount(slices.iter().sum()),
            link_bytes: ByteCount(sent + received),
            sent_link_bytes: ByteCount(sent),
            utilisation: Some(share),
            slices: slices.iter().map(|bytes| ByteCount(*bytes)).collect(),
            slice: Span(slice),
            sizes: Histogram { bins: vec![(60, 1), (100, 1)], ..Histogram::default() },
            top: vec![top],
        })
    }

    #[test]
    fn traffic_of_rings_is_that_of_the_link() {
        let rings = vec![
            task(vec![traffic(100, 300, 10, &[1, 2, 3, 4])]),
            task(vec![traffic(400, 0, 20, &[10, 20])]),
        ];
        let rows = whole(rings);
        let [TaskRow { row: Row::Traffic(row), .. }] = &rows[..] else { panic!("{rows:?}") };
        let slices: Vec<u64> = row.slices.iter().map(|bytes| bytes.0).collect();
        assert_eq!((row.packets, row.bytes.0, row.slice, slices), (4, 40, Span(20), vec![13, 27]));
        assert_eq!(row.utilisation, Some(0.5), "500 sent, 300 received, of 1000");
        assert_eq!(row.sizes.bins, [(60, 2), (100, 2)]);
        assert_eq!((row.top.len(), row.top[0].packets), (1, 2));
    }

    #[test]
    fn blocks_of_marking_and_counts_of_digests_add_up() {
        let block = |packets, mean, marked| {
            Row::Marking(MarkingRow {
                key: FlowKey::default(),
                colour: 1,
                block: 7,
                packets,
                bytes: ByteCount(packets),
                first_at: Wall(mean - 5),
                mean_at: Wall(mean),
                marked_at: vec![Wall(marked)],
                late: 1,
            })
        };
        let digests = Row::Digests(DigestRow { observed: 4, selected: 3, unusable: 1, given_up: 0, cut: 1 });
        let rings =
            vec![task(vec![block(1, 100, 130), digests.clone()]), task(vec![block(3, 200, 120), digests])];
        let rows = whole(rings);
        let [TaskRow { row: Row::Digests(counts), .. }, TaskRow { row: Row::Marking(block), .. }] = &rows[..]
        else {
            panic!("{rows:?}")
        };
        assert_eq!((counts.observed, counts.cut), (8, 2));
        assert_eq!((block.packets, block.mean_at, block.first_at), (4, Wall(175), Wall(95)));
        assert_eq!((&block.marked_at[..], block.late), (&[Wall(120), Wall(130)][..], 2));
    }

    #[test]
    fn rows_of_other_tasks_and_periods_are_left_alone() {
        let mut other = task(vec![volume(1, 1, 0)]);
        other[0].period.from = Wall(500);
        let rows = whole(vec![task(vec![volume(1, 10, 0)]), other]);
        assert_eq!(counted(rows), [(1, 10, 0), (1, 1, 0)]);
    }
}
