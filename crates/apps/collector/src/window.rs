//! What the joins hold in memory, kept on the disk as numbers: how many packets of which point and
//! period wait for their row.
//!
//! When the process is killed, the sightings are gone. The next one finds these numbers, and tells
//! the packets as `unobserved`: taken, and nothing is known of their way. It also knows which times
//! of which points it must not take for watched. An append-only file of short lines; it is not
//! synced, so the end of the process is survived, and the end of the machine's power is not
//! (`unobserved` is too small then). A line that was cut off is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use netaware_record::IpVersion;
use netaware_record::passive::{DelayRow, DelayStatistics, PacketSighting, Period, Row, TaskRow};
use netaware_units::{Span, Wall};

use crate::desk::Delivery;
use crate::joins::{LostTimes, Setup, beginning, point_of};

/// Join, point, beginning of the period.
type Place = (String, String, i64);

/// Packets over IPv4 and IPv6 of each.
type Added = BTreeMap<Place, [u64; 2]>;

/// See the module.
pub(crate) struct Window {
    path: PathBuf,
    file: Option<File>,
    setups: BTreeMap<String, Setup>,
    /// Packets over IPv4 and IPv6 that have no row yet.
    open: BTreeMap<Place, [u64; 2]>,
    /// Of the process before.
    before: BTreeMap<Place, [u64; 2]>,
    /// Places of the process before that have their row.
    done: BTreeSet<Place>,
    lines: u64,
}

/// Counts sightings of a point by their period: most that come together are of the same one.
fn add(added: &mut Added, name: &str, setup: &Setup, point: &str, seen: &[PacketSighting]) {
    if setup.settings.point(point).is_none() {
        return;
    }
    for run in seen.chunk_by(|one, next| {
        beginning(one.at, setup.settings.period) == beginning(next.at, setup.settings.period)
    }) {
        let place = (name.to_owned(), point.to_owned(), beginning(run[0].at, setup.settings.period));
        let packets = added.entry(place).or_default();
        // Those of another collector's part are here for the clocks alone.
        for one in run.iter().filter(|one| setup.settings.is_joined_here(one.digest)) {
            packets[usize::from(one.version == 6)] += 1;
        }
    }
}

/// A file longer than this, and than twice what is open, is written anew.
const MOST_LINES: u64 = 100_000;
/// Joins, points and periods at the same time: stamps come from outside, and each may name a period
/// of its own. Packets of more are not told as unobserved should this process be killed.
const MOST_PLACES: usize = 1 << 18;

impl Window {
    /// Reads what the process before left. Joins that go on from where they were have lost nothing.
    pub(crate) fn open<'n>(
        folder: &Path,
        setups: BTreeMap<String, Setup>,
        resumed: impl Iterator<Item = &'n String>,
    ) -> io::Result<Self> {
        let path = folder.join("window.log");
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let (mut before, mut done) = (BTreeMap::new(), BTreeSet::new());
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            read_line(line, &mut before, &mut done);
        }
        netaware_private::narrow(&path);
        let mut file = netaware_private::options().create(true).append(true).open(&path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // A line that was torn by the end of that process must not swallow the next one.
            file.write_all(b"\n")?;
        }
        let lines = text.lines().count() as u64;
        let open = before.clone();
        let resumed: BTreeSet<&String> = resumed.collect();
        before.retain(|place, _| !resumed.contains(&place.0));
        done.retain(|place| !resumed.contains(&place.0));
        Ok(Self { path, file: Some(file), setups, open, before, done, lines })
    }

    /// Where it lies.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Joins from now on.
    pub(crate) fn follow(&mut self, setups: BTreeMap<String, Setup>) {
        self.setups = setups;
    }

    /// Times of points that the process before took sightings of: they are not complete here.
    pub(crate) fn lost_times(&self) -> LostTimes {
        self.before.keys().chain(&self.done).cloned().collect()
    }

    /// Packets that the process before took and had no row for, as rows.
    pub(crate) fn lost_rows(&mut self) -> Vec<TaskRow> {
        let mut rows = Vec::new();
        for ((name, from, begin), packets) in &self.before {
            let Some(setup) = self.setups.get(name) else { continue };
            let period =
                Period { from: Wall(*begin), until: Wall(begin.saturating_add(setup.settings.period.0)) };
            for to in partners(setup, from) {
                for (version, count) in
                    [IpVersion::V4, IpVersion::V6].into_iter().zip(packets).filter(|(_, n)| **n > 0)
                {
                    let row = lost_row(from, &to, version, *count, setup.settings.patience);
                    rows.push(TaskRow::new(&**name, period, Row::Delay(Box::new(row))));
                }
            }
        }
        rows
    }

    /// Deliveries that are about to be taken.
    pub(crate) fn enter(&mut self, deliveries: &[Delivery]) {
        let mut added = Added::new();
        for delivery in deliveries {
            for (task, seen) in &delivery.sightings {
                let (point, task) = point_of(&delivery.probe, task);
                for (name, setup) in self.setups.iter().filter(|(_, setup)| setup.task == task) {
                    add(&mut added, name, setup, &point, seen);
                }
            }
        }
        self.enter_added(added);
    }

    /// Packet reports of a point that is no probe.
    pub(crate) fn enter_seen(&mut self, point: &str, seen: &[PacketSighting]) {
        let mut added = Added::new();
        for (name, setup) in &self.setups {
            add(&mut added, name, setup, point, seen);
        }
        self.enter_added(added);
    }

    fn enter_added(&mut self, mut added: Added) {
        let mut room = MOST_PLACES.saturating_sub(self.open.len());
        added.retain(|place, _| {
            let is_known = self.open.contains_key(place);
            let fits = is_known || room > 0;
            room -= usize::from(fits && !is_known);
            fits
        });
        let mut text = String::new();
        for ((name, point, begin), [four, six]) in &added {
            text += &added_line(name, point, *begin, [*four, *six]);
        }
        for (place, [four, six]) in added {
            let open = self.open.entry(place).or_default();
            (open[0], open[1]) = (open[0] + four, open[1] + six);
        }
        self.append(&text);
    }

    /// Rows that are in the store. Rows of one period come together, so all that waited for it
    /// waits no longer, at points of which no row is made too.
    pub(crate) fn leave(&mut self, rows: &[TaskRow]) {
        let made = |row: &&TaskRow| matches!(row.row, Row::Delay(_));
        let ended: BTreeSet<(&str, i64)> =
            rows.iter().filter(made).map(|row| (row.task.as_str(), row.period.from.0)).collect();
        let last: BTreeMap<&str, i64> = ended.iter().copied().collect();
        let is_done = |(name, _, begin): &&Place| {
            let name = name.as_str();
            ended.contains(&(name, *begin))
                || last.get(name).is_some_and(|last| begin.saturating_add(PASSED) < *last)
        };
        let done: Vec<Place> = self.open.keys().filter(is_done).cloned().collect();
        let mut text = String::new();
        for place in done {
            if self.open.remove(&place).is_some() {
                text.extend(["- ", &place.0, " ", &place.1, " ", &place.2.to_string(), "\n"]);
            }
        }
        self.append(&text);
        if self.lines > MOST_LINES.max(2 * self.open.len() as u64) {
            self.rewrite();
        }
    }

    fn append(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.lines += text.lines().count() as u64;
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(text.as_bytes())
        {
            tracing::warn!(
                "{}: {error}; should this process be killed, fewer packets are told as unobserved",
                self.path.display()
            );
        }
    }

    fn rewrite(&mut self) {
        let text: String = self
            .open
            .iter()
            .map(|((name, point, begin), counts)| added_line(name, point, *begin, *counts))
            .collect();
        let beside = self.path.with_extension("new");
        let written = netaware_private::write(&beside, &text)
            .and_then(|()| std::fs::rename(&beside, &self.path))
            .and_then(|()| OpenOptions::new().append(true).open(&self.path));
        if let Ok(file) = written {
            (self.file, self.lines) = (Some(file), self.open.len() as u64);
        }
    }
}

/// Ten minutes, ns: longer than any join waits.
const PASSED: i64 = 600_000_000_000;

fn added_line(name: &str, point: &str, begin: i64, [four, six]: [u64; 2]) -> String {
    format!("+ {name} {point} {begin} {four} {six}\n")
}

fn read_line(line: &str, open: &mut BTreeMap<Place, [u64; 2]>, done: &mut BTreeSet<Place>) -> Option<()> {
    let words: Vec<&str> = line.split(' ').collect();
    let place = ((*words.get(1)?).to_owned(), (*words.get(2)?).to_owned(), words.get(3)?.parse().ok()?);
    match (*words.first()?, words.len()) {
        ("+", 6) => {
            let (four, six): (u64, u64) = (words[4].parse().ok()?, words[5].parse().ok()?);
            let counts = open.entry(place).or_default();
            (counts[0], counts[1]) = (counts[0].saturating_add(four), counts[1].saturating_add(six));
        }
        ("-", 4) => {
            open.remove(&place);
            done.insert(place);
        }
        _ => {}
    }
    Some(())
}

/// Points that rows from this one are wanted to.
fn partners(setup: &Setup, from: &str) -> Vec<String> {
    let settings = &setup.settings;
    if settings.pairs.is_empty() {
        return settings.points.iter().filter(|to| *to != from).cloned().collect();
    }
    settings.pairs.iter().filter(|pair| pair.from == from).map(|pair| pair.to.clone()).collect()
}

fn lost_row(from: &str, to: &str, version: IpVersion, packets: u64, patience: Span) -> DelayRow {
    DelayRow {
        from: from.to_owned(),
        to: to.to_owned(),
        version: Some(version),
        method: "passive".to_owned(),
        packets,
        matched: 0,
        lost: 0,
        unobserved: packets,
        late: 0,
        duplicates: 0,
        reordered: 0,
        collisions: 0,
        given_up: 0,
        patience,
        delay: DelayStatistics::default(),
        ipdv: DelayStatistics::default(),
        offset: Span::ZERO,
        clock_bound: None,
        clock_method: "none".to_owned(),
        below_bound: 0,
        warnings: vec!["the collector was ended while these waited to be joined".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use netaware_passive::join::JoinSettings;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn setups() -> BTreeMap<String, Setup> {
        let settings = JoinSettings { period: Span(SECOND), ..JoinSettings::of(["a", "b", "c"]) };
        [("j".to_owned(), Setup { task: "delay".into(), settings })].into()
    }

    #[test]
    fn what_was_taken_and_has_no_row_is_told_as_unobserved_towards_each_other_point() {
        let folder = tempfile::tempdir().unwrap();
        let left = "+ j a 1000000000 3 0\n+ j a 1000000000 1 2\n+ j b 1000000000 9 0\n- j b 1000000000\n+ gone a 5 1 1\n+ j c 20";
        std::fs::write(folder.path().join("window.log"), left).unwrap();
        let mut window = Window::open(folder.path(), setups(), [].iter()).unwrap();
        let rows = window.lost_rows();
        let told: Vec<_> = rows
            .iter()
            .filter_map(|row| match &row.row {
                Row::Delay(delay) => Some((delay.to.as_str(), delay.version, delay.unobserved, delay.lost)),
                _ => None,
            })
            .collect();
        let (four, six) = (Some(IpVersion::V4), Some(IpVersion::V6));
        assert_eq!(told, [("b", four, 4, 0), ("b", six, 2, 0), ("c", four, 4, 0), ("c", six, 2, 0)]);
        let lost = window.lost_times();
        assert!(
            lost.contains(&("j".into(), "b".into(), SECOND)),
            "its row is made, but its sightings are gone"
        );
        window.leave(&rows);
        drop(window);
        let mut again = Window::open(folder.path(), setups(), [].iter()).unwrap();
        assert!(again.lost_rows().is_empty());
    }

    #[test]
    fn what_an_exporter_of_others_reported_and_has_no_row_is_told_as_unobserved_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut window = Window::open(folder.path(), setups(), [].iter()).unwrap();
        let seen = |at, version| PacketSighting { digest: 1, at: Wall(at), length: 40, ttl: 64, version };
        let reported = [seen(5, 4), seen(SECOND - 1, 6), seen(SECOND, 4), seen(7, 4)];
        window.enter_seen("a", &reported);
        window.enter_seen("nobody", &reported);
        drop(window);
        let text = std::fs::read_to_string(folder.path().join("window.log")).unwrap();
        assert_eq!(text, "+ j a 0 2 1\n+ j a 1000000000 1 0\n");
        // Towards each of two other points: two versions in the first period, one in the second.
        assert_eq!(Window::open(folder.path(), setups(), [].iter()).unwrap().lost_rows().len(), 2 * 3);
    }

    #[test]
    fn stamps_of_any_number_of_periods_take_no_more_places_than_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut window = Window::open(folder.path(), setups(), [].iter()).unwrap();
        let seen = |second: i64| {
            let at = Wall(second * SECOND);
            PacketSighting { digest: 1, at, length: 40, ttl: 64, version: 4 }
        };
        let all: Vec<PacketSighting> = (0..MOST_PLACES as i64 + 5).map(seen).collect();
        window.enter_seen("a", &all);
        assert_eq!(window.open.len(), MOST_PLACES);
        window.enter_seen("a", &[seen(0), seen(-1)]);
        assert_eq!(window.open.len(), MOST_PLACES);
        assert_eq!(window.open[&("j".to_owned(), "a".to_owned(), 0)], [2, 0], "what is known goes on");
    }

    #[test]
    fn a_long_file_is_written_anew_with_what_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let mut window = Window::open(folder.path(), setups(), [].iter()).unwrap();
        window.open.insert(("j".into(), "a".into(), 7), [1, 2]);
        window.lines = MOST_LINES + 1;
        window.leave(&[]);
        assert_eq!(std::fs::read_to_string(folder.path().join("window.log")).unwrap(), "+ j a 7 1 2\n");
        window.append("+ j a 7 1 1\n");
        let mut again = Window::open(folder.path(), setups(), [].iter()).unwrap();
        assert_eq!(again.lost_rows().len(), 4);
    }
}
