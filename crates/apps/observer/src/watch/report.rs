//! Makes one report per period of what all stations say, in a thread of its own.
//!
//! A report goes out when every station has closed the period, or a station has closed the next but
//! one: a station that hangs holds nobody up for longer. Sightings go out at once, ahead of the
//! report of their period, so that memory does not grow with them. Rows of active tasks go with the
//! report that comes next. Rings of one interface say what they saw as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use netaware_passive::Found;
use netaware_record::passive::{
    CaptureHealth, ClockExchanges, ClockState, InterfaceCapture, PacketSighting, Period, ProbeReport, TaskRow,
};
use netaware_units::{Span, Wall};
use netaware_wire::lmap::Task;

use super::rings;
use super::run::Portion;
use super::station::{Handed, Table};
use crate::after;

/// Where reports go.
pub trait Outlet: Send {
    /// Packets that a digest task on an interface has chosen.
    fn sightings(&mut self, task: &str, interface: &str, sightings: &[PacketSighting]);

    /// These are the passive tasks from now on.
    fn tasks(&mut self, tasks: &BTreeMap<String, Task>) {
        let _ = tasks;
    }

    /// A period is over; the number is the outlet's to give.
    fn report(&mut self, report: ProbeReport);
}

/// What comes to the reporter.
#[derive(Debug)]
pub enum Told {
    /// From a station's thread.
    Portion(Portion),
    /// These are the passive tasks from now on; comes before anything of theirs.
    Tasks(BTreeMap<String, Task>),
    /// A station begins on this interface.
    Station(usize, String),
    /// A station has ended; everything from it has come.
    Ended(usize),
    /// An active task has found something, about two clocks too perhaps.
    Active(Vec<TaskRow>, Option<ClockExchanges>),
}

/// See the module.
pub struct Reporter<O: Outlet> {
    probe: String,
    outlet: O,
    clock: Box<dyn FnMut() -> ClockState + Send>,
    now: Box<dyn FnMut() -> Wall + Send>,
    stations: BTreeMap<usize, String>,
    /// On which interface a task watches; those that send are not in it.
    places: BTreeMap<String, String>,
    /// By the end of the period.
    pending: BTreeMap<Wall, Pending>,
    /// Rows that belong to no period yet, by who said them.
    loose: Vec<Vec<TaskRow>>,
    /// Go with the next report as well.
    exchanges: Vec<ClockExchanges>,
    /// Without stations, reports follow this length of period.
    length: Span,
    next_loose: Wall,
}

impl<O: Outlet> std::fmt::Debug for Reporter<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporter").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Pending {
    period: Period,
    closed: BTreeSet<usize>,
    captures: BTreeMap<String, CaptureHealth>,
    /// By station.
    rows: Vec<Vec<TaskRow>>,
}

impl<O: Outlet> Reporter<O> {
    /// `clock` tells the state of the clock that stamps, `now` what it shows.
    pub fn new(
        probe: String,
        length: Span,
        outlet: O,
        clock: Box<dyn FnMut() -> ClockState + Send>,
        mut now: Box<dyn FnMut() -> Wall + Send>,
    ) -> Self {
        let next_loose = after(now(), length);
        Self {
            probe,
            outlet,
            clock,
            now,
            stations: BTreeMap::new(),
            places: BTreeMap::new(),
            pending: BTreeMap::new(),
            loose: Vec::new(),
            exchanges: Vec::new(),
            length,
            next_loose,
        }
    }

    /// Until everybody who could tell something is gone; the outlet comes back with everything in
    /// it.
    pub fn run(mut self, told: &Receiver<Told>) -> O {
        loop {
            match told.recv_timeout(Duration::from_millis(100)) {
                Ok(told) => self.hear(told),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.report_what_is_loose();
        }
        while let Some((_, pending)) = self.pending.pop_first() {
            self.send(pending);
        }
        if !self.loose.is_empty() {
            self.send_loose();
        }
        self.outlet
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Portion(Portion { station, handed: Handed::Sightings(chosen) }) => {
                let interface = self.stations.get(&station).map_or("", String::as_str);
                self.outlet.sightings(&chosen.task, interface, chosen.sightings());
            }
            Told::Portion(Portion { station, handed: Handed::Closed(period, health, tables) }) => {
                self.close(station, period, &health, tables);
            }
            Told::Station(station, interface) => {
                self.stations.insert(station, interface);
            }
            Told::Tasks(tasks) => self.outlet.tasks(&tasks),
            Told::Ended(station) => {
                self.stations.remove(&station);
            }
            Told::Active(rows, exchanges) => {
                for row in &rows {
                    self.places.remove(&row.task);
                }
                self.loose.push(rows);
                self.exchanges.extend(exchanges);
            }
        }
        self.send_what_is_complete();
    }

    fn close(&mut self, station: usize, period: Period, health: &CaptureHealth, tables: Vec<Table>) {
        let interface = self.stations.get(&station).cloned().unwrap_or_default();
        self.places.extend(tables.iter().map(|table| (table.task.clone(), interface.clone())));
        let rows: Vec<TaskRow> = tables.into_iter().flat_map(read_out).collect();
        if period.until <= period.from {
            // Last words of tasks that were taken away; they go with the next report.
            if !rows.is_empty() {
                self.loose.push(rows);
            }
            return;
        }
        let pending = self.pending.entry(period.until).or_insert_with(|| Pending {
            period,
            closed: BTreeSet::new(),
            captures: BTreeMap::new(),
            rows: Vec::new(),
        });
        pending.period.from = pending.period.from.min(period.from);
        pending.closed.insert(station);
        sum(pending.captures.entry(interface).or_default(), health);
        pending.rows.push(rows);
    }

    fn send_what_is_complete(&mut self) {
        while let Some((_, first)) = self.pending.first_key_value() {
            let complete = self.stations.keys().all(|station| first.closed.contains(station));
            if !complete && self.pending.len() < 3 {
                return;
            }
            if let Some((_, pending)) = self.pending.pop_first() {
                self.send(pending);
            }
        }
    }

    /// A probe with active tasks only has no periods of packets.
    fn report_what_is_loose(&mut self) {
        if !self.stations.is_empty() || self.loose.is_empty() {
            return;
        }
        let now = (self.now)();
        if now >= self.next_loose || self.next_loose > after(now, self.length) {
            self.send_loose();
        }
    }

    fn send_loose(&mut self) {
        let now = (self.now)();
        let period = Period { from: after(self.next_loose, -self.length), until: now };
        self.next_loose = after(now, self.length);
        self.send(Pending { period, closed: BTreeSet::new(), captures: BTreeMap::new(), rows: Vec::new() });
    }

    fn send(&mut self, pending: Pending) {
        let mut parts = pending.rows;
        parts.append(&mut self.loose);
        let mut rows = rings::whole(parts);
        for row in &mut rows {
            // A row says itself what the capture behind it lost: it is kept and shown apart from
            // its report.
            let health = self.places.get(&row.task).and_then(|interface| pending.captures.get(interface));
            row.lost = health.map(CaptureHealth::loss).unwrap_or_default();
        }
        self.next_loose = after((self.now)(), self.length);
        let captures = pending
            .captures
            .into_iter()
            .map(|(interface, health)| InterfaceCapture { interface, health })
            .collect();
        let clock = (self.clock)();
        let (probe, period, rows_cut) = (self.probe.clone(), pending.period, BTreeMap::new());
        let exchanges = std::mem::take(&mut self.exchanges);
        self.outlet.report(ProbeReport {
            probe,
            sequence: 0,
            period,
            captures,
            clock,
            rows,
            rows_cut,
            exchanges,
        });
    }
}

/// Reads a table out and gives it back.
fn read_out(table: Table) -> Vec<TaskRow> {
    let Table { task, period, full, mut found } = table;
    if let Some((mut watch, back)) = full {
        watch.close(period, &mut found);
        // The task may have ended meanwhile.
        let _ = back.send(watch);
    }
    let Found { rows, .. } = found;
    rows.into_iter().map(|row| TaskRow::new(task.clone(), period, row)).collect()
}

/// Two rings of one interface: what each lost adds up, the card's own count is the same for both.
fn sum(all: &mut CaptureHealth, one: &CaptureHealth) {
    all.seen += one.seen;
    all.seen_bytes.0 += one.seen_bytes.0;
    all.lost_ring += one.lost_ring;
    all.lost_kernel = all.lost_kernel.max(one.lost_kernel);
    all.lost_nic = all.lost_nic.max(one.lost_nic);
    all.merged += one.merged;
    all.not_ip += one.not_ip;
    all.malformed += one.malformed;
    all.link_was_down |= one.link_was_down;
    all.mtu_changed |= one.mtu_changed;
    all.backlog = all.backlog.max(one.backlog);
    all.lost_by_writer += one.lost_by_writer;
    all.stamped_by_nic += one.stamped_by_nic;
    all.doubtful |= one.doubtful;
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use netaware_record::passive::{CaptureLoss, DigestRow, Row};

    use super::*;
    use crate::watch::station::Chosen;

    #[derive(Default)]
    struct Kept {
        reports: Vec<ProbeReport>,
        sightings: Vec<(String, String, usize)>,
    }

    impl Outlet for Kept {
        fn sightings(&mut self, task: &str, interface: &str, sightings: &[PacketSighting]) {
            self.sightings.push((task.to_owned(), interface.to_owned(), sightings.len()));
        }

        fn report(&mut self, report: ProbeReport) {
            self.reports.push(report);
        }
    }

    fn closed(station: usize, from: i64, until: i64, seen: u64) -> Told {
        let health = CaptureHealth { seen, lost_ring: 1, lost_nic: Some(7), ..CaptureHealth::default() };
        let handed = Handed::Closed(Period { from: Wall(from), until: Wall(until) }, health, Vec::new());
        Told::Portion(Portion { station, handed })
    }

    fn run(told: Vec<Told>) -> Kept {
        let (sender, receiver) = mpsc::channel();
        for told in told {
            sender.send(told).unwrap();
        }
        drop(sender);
        let clock = Box::new(|| ClockState { source: "none".to_owned(), ..ClockState::default() });
        Reporter::new("bern".into(), Span(10), Kept::default(), clock, Box::new(|| Wall(0))).run(&receiver)
    }

    fn station(index: usize, interface: &str) -> Told {
        Told::Station(index, interface.to_owned())
    }

    #[test]
    fn one_report_holds_all_interfaces_and_rings_of_one_add_up() {
        let kept = run(vec![
            station(0, "eth0"),
            station(1, "eth0"),
            station(2, "eth1"),
            closed(0, 0, 10, 5),
            closed(2, 3, 10, 1),
            closed(1, 0, 10, 6),
        ]);
        let [report] = &kept.reports[..] else { panic!("{:?}", kept.reports) };
        assert_eq!(report.period, Period { from: Wall(0), until: Wall(10) });
        let [first, second] = &report.captures[..] else { panic!() };
        assert_eq!((first.interface.as_str(), first.health.seen, first.health.lost_ring), ("eth0", 11, 2));
        assert_eq!(first.health.lost_nic, Some(7), "one card");
        assert_eq!((second.interface.as_str(), second.health.seen), ("eth1", 1));
    }

    #[test]
    fn a_row_says_what_was_lost_on_its_own_interface() {
        let row = |task: &str| {
            let found = Found { rows: vec![Row::Digests(DigestRow::default())], ..Found::default() };
            let period = Period { from: Wall(0), until: Wall(10) };
            Table { task: task.into(), period, full: None, found }
        };
        let closed = |station, health, task| {
            let period = Period { from: Wall(0), until: Wall(10) };
            Told::Portion(Portion { station, handed: Handed::Closed(period, health, vec![row(task)]) })
        };
        let lossy = CaptureHealth { lost_ring: 2, lost_nic: Some(1), merged: 5, ..CaptureHealth::default() };
        let down = CaptureHealth { link_was_down: true, ..CaptureHealth::default() };
        let told = [(0, "eth0", lossy), (1, "eth1", CaptureHealth::default()), (2, "eth2", down)];
        let stations = told.iter().map(|(index, name, _)| station(*index, name));
        let kept = run(stations
            .chain(told.iter().map(|(index, name, health)| closed(*index, *health, name)))
            .collect());
        let lost: Vec<_> = kept.reports[0].rows.iter().map(|row| (row.task.as_str(), row.lost)).collect();
        let loss = |packets, merged, doubtful| CaptureLoss { packets, merged, doubtful };
        assert_eq!(
            lost,
            [("eth0", loss(3, 5, false)), ("eth1", loss(0, 0, false)), ("eth2", loss(0, 0, true))]
        );
    }

    #[test]
    fn a_station_that_hangs_holds_nobody_up_for_long() {
        let (sender, receiver) = mpsc::channel();
        for told in [
            station(0, "a"),
            station(1, "b"),
            closed(0, 0, 10, 1),
            closed(0, 10, 20, 2),
            closed(0, 20, 30, 3),
        ] {
            sender.send(told).unwrap();
        }
        let clock = Box::new(ClockState::default);
        let mut reporter = Reporter::new("x".into(), Span(10), Kept::default(), clock, Box::new(|| Wall(0)));
        while let Ok(told) = receiver.try_recv() {
            reporter.hear(told);
        }
        assert_eq!(reporter.outlet.reports.len(), 1);
    }

    #[test]
    fn sightings_go_ahead_with_their_interface() {
        let sighting = PacketSighting { digest: 1, at: Wall(2), length: 3, ttl: 4, version: 6 };
        let handed = Handed::Sightings(Chosen::new("delay", vec![sighting; 3], &mpsc::sync_channel(0).0));
        let kept = run(vec![station(4, "wan"), Told::Portion(Portion { station: 4, handed })]);
        assert_eq!(kept.sightings, [("delay".to_owned(), "wan".to_owned(), 3)]);
        assert!(kept.reports.is_empty());
    }

    #[test]
    fn a_probe_without_an_interface_reports_what_active_tasks_found() {
        let period = Period { from: Wall(1), until: Wall(2) };
        let row = Row::Digests(DigestRow::default());
        let exchanges = ClockExchanges { with: "basel".into(), tightest: Vec::new() };
        let kept = run(vec![Told::Active(vec![TaskRow::new("owd", period, row)], Some(exchanges.clone()))]);
        assert_eq!(kept.reports.len(), 1);
        assert_eq!(kept.reports[0].exchanges, [exchanges]);
        assert_eq!(kept.reports[0].rows[0].task, "owd");
    }
}
