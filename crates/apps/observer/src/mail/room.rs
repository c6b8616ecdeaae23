//! A report that is too long for a batch is made to fit, and says what it lacks.
//!
//! Of the task that takes most room the lesser half of the rows goes, until the rest fits. Volumes
//! lose no packet by that: keys with few packets go into the row of all that had no room, as they
//! do in the probe's own table, so all rows together stay all packets. Rows of other kinds cannot
//! be added up; those are counted in [`ProbeReport::rows_cut`].

use std::collections::BTreeMap;
use std::io;

use netaware_record::Document;
use netaware_record::passive::{FlowKey, Period, ProbeReport, Row, TaskRow, VolumeRow};

/// Cuts rows until the report's JSON has `most` bytes at most, or nothing is left to cut.
pub(super) fn fit(report: &mut ProbeReport, most: usize) {
    while length(report) > most {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &report.rows {
            *taken.entry(&row.task).or_default() += length(row);
        }
        let mut by_room: Vec<(usize, &str)> = taken.into_iter().map(|(task, bytes)| (bytes, task)).collect();
        by_room.sort_unstable();
        let tasks: Vec<String> = by_room.into_iter().rev().map(|(_, task)| task.to_owned()).collect();
        if !tasks.iter().any(|task| halve(report, task)) {
            return;
        }
    }
}

/// Leaves half of a task's rows; whether there was anything to cut.
fn halve(report: &mut ProbeReport, task: &str) -> bool {
    let (own, others): (Vec<TaskRow>, Vec<TaskRow>) =
        std::mem::take(&mut report.rows).into_iter().partition(|row| row.task == task);
    report.rows = others;
    let before = own.len();
    let (volumes, mut plain): (Vec<TaskRow>, Vec<TaskRow>) =
        own.into_iter().partition(|row| matches!(row.row, Row::Volume(_)));
    let cut = plain.split_off(plain.len() / 2).len() as u64;
    if cut > 0 {
        *report.rows_cut.entry(task.to_owned()).or_default() += cut;
    }
    plain.extend(folded(task, volumes));
    let after = plain.len();
    report.rows.append(&mut plain);
    after < before
}

/// The heavier half of the keys, and what the others make together: one row for each period.
fn folded(task: &str, rows: Vec<TaskRow>) -> Vec<TaskRow> {
    let mut rests: BTreeMap<Period, VolumeRow> = BTreeMap::new();
    let mut keys: Vec<(Period, VolumeRow)> = Vec::new();
    for TaskRow { period, row, .. } in rows {
        match row {
            Row::Volume(volume) if volume.rest => add(&mut rests, period, &volume),
            Row::Volume(volume) => keys.push((period, volume)),
            _ => {}
        }
    }
    keys.sort_by_key(|(_, volume)| std::cmp::Reverse(volume.packets));
    for (period, volume) in keys.split_off(keys.len() / 2) {
        add(&mut rests, period, &volume);
    }
    let rows = keys.into_iter().chain(rests);
    rows.map(|(period, volume)| TaskRow::new(task, period, Row::Volume(volume))).collect()
}

fn add(rests: &mut BTreeMap<Period, VolumeRow>, period: Period, volume: &VolumeRow) {
    let rest = rests.entry(period).or_insert_with(|| VolumeRow {
        key: FlowKey::default(),
        packets: 0,
        bytes: netaware_units::ByteCount(0),
        packets_error: 0,
        rest: true,
        ..volume.clone()
    });
    rest.packets += volume.packets;
    rest.bytes.0 += volume.bytes.0;
    rest.first_at = rest.first_at.min(volume.first_at);
    rest.last_at = rest.last_at.max(volume.last_at);
}

/// Bytes of JSON, without writing them anywhere: a table of a million keys is a third of a
/// gigabyte.
fn length(of: &impl Document) -> usize {
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = of.write_json(&mut count);
    count.0
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::{ClockState, DelayStatistics, RttRow};
    use netaware_units::{ByteCount, Wall};

    use super::*;

    const PERIOD: Period = Period { from: Wall(0), until: Wall(10) };

    fn report(rows: Vec<Row>) -> ProbeReport {
        let rows = rows.into_iter().map(|row| TaskRow::new("t", PERIOD, row)).collect();
        ProbeReport {
            probe: "p".into(),
            sequence: 1,
            period: PERIOD,
            captures: Vec::new(),
            clock: ClockState::default(),
            rows,
            rows_cut: BTreeMap::new(),
            exchanges: Vec::new(),
        }
    }

    /// A key of so many packets, seen at its number.
    fn volume(packets: u64, rest: bool) -> Row {
        let key = FlowKey { flow_label: (!rest).then_some(packets as u32), ..FlowKey::default() };
        let at = Wall(packets as i64);
        let bytes = ByteCount(packets * 100);
        Row::Volume(VolumeRow { key, packets, bytes, first_at: at, last_at: at, packets_error: 0, rest })
    }

    fn volumes(report: &ProbeReport) -> Vec<&VolumeRow> {
        let volume = |row: &TaskRow| matches!(row.row, Row::Volume(_));
        let rows = report.rows.iter().filter(|row| volume(row));
        rows.filter_map(|row| if let Row::Volume(volume) = &row.row { Some(volume) } else { None }).collect()
    }

    #[test]
    fn all_rows_of_a_volume_stay_all_packets_and_the_heaviest_keys_stay_keys() {
        for rest in [None, Some(volume(5000, true))] {
            // Lightest first, as a table may give them.
            let rows: Vec<Row> = (1..=1000).map(|packets| volume(packets, false)).chain(rest).collect();
            let mut cut = report(rows);
            let before: u64 = volumes(&cut).iter().map(|row| row.packets).sum();
            fit(&mut cut, 50_000);
            assert!(length(&cut) <= 50_000);
            let after = volumes(&cut);
            assert_eq!(after.iter().map(|row| row.packets).sum::<u64>(), before);
            assert_eq!(after.iter().map(|row| row.bytes.0).sum::<u64>(), before * 100);
            let (rests, keys): (Vec<_>, Vec<_>) = after.into_iter().partition(|row| row.rest);
            assert_eq!((rests.len(), rests[0].first_at), (1, Wall(1)));
            assert!(keys.len() > 100 && keys.iter().all(|row| row.packets > 1000 - keys.len() as u64));
            assert!(cut.rows_cut.is_empty(), "nothing is missing");
        }
    }

    #[test]
    fn rows_that_cannot_be_added_up_are_counted_when_they_are_cut() {
        let rtt = |_| {
            let (key, method) = (FlowKey::default(), "timestamps".to_owned());
            Row::Rtt(RttRow { key, method, delay: DelayStatistics::default() })
        };
        let mut cut = report((0..1000).map(rtt).collect());
        fit(&mut cut, 50_000);
        assert!(length(&cut) <= 50_000 && cut.rows.len() > 100);
        assert_eq!(cut.rows_cut["t"], 1000 - cut.rows.len() as u64);
    }

    #[test]
    fn what_cannot_be_made_to_fit_ends_with_one_row_of_everything() {
        let mut cut = report((1..=9).map(|packets| volume(packets, false)).collect());
        fit(&mut cut, 10);
        assert_eq!(volumes(&cut).iter().map(|row| row.packets).collect::<Vec<_>>(), [45]);
    }
}
