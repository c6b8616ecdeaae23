//! The joins of a fleet, one thread each: sightings and reports go in, delays between points come
//! out.
//!
//! A thread has a queue of bounded length; when a join does not keep up, the desk waits, the probes
//! are not answered, and what they see stays on their disks. Nothing is dropped on the way.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use netaware_io::clock;
use netaware_passive::clock::Exchange;
use netaware_passive::join::{Expects, Join, JoinCounts, JoinSettings, Joined, Pair, PointId};
use netaware_record::passive::{
    CaptureHealth, ClockExchange, ClockExchanges, ClockState, DigestRow, PacketSighting, PathTaken, PathsRow,
    Period, ProbeReport, Row, TaskRow,
};
use netaware_units::{Span, Wall};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedSemaphorePermit;

use crate::config::{Config, JoinRule, interface_of, on_interface, probe_of};
use crate::desk::Delivery;
use crate::held;
use crate::markings::{self, Markings};
use crate::parked::{self, Gaps, Parked};
use crate::roster::Roster;

/// What a join has done, as the HTTP API shows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct JoinView {
    /// Its name.
    pub name: String,
    /// Its points.
    pub points: Vec<String>,
    /// Sightings taken.
    pub taken: u64,
    /// Sightings that came after their time had been settled.
    pub came_late: u64,
    /// Sightings with impossible stamps.
    pub absurd: u64,
    /// Sightings settled early because memory was full.
    pub given_up: u64,
    /// Sightings that another collector joins: used for the clocks where they are of the sample,
    /// else not at all.
    #[serde(default)]
    pub elsewhere: u64,
    /// Sightings in memory now.
    pub held: u64,
    /// Periods that were settled.
    pub periods: u64,
    /// Packets of the last period by the points that they passed, most first.
    pub paths: Vec<PathTaken>,
    /// Packets of that period on further paths, for which there was no room.
    #[serde(default)]
    pub other_paths: u64,
}

/// Views of all, by name.
pub(crate) type Views = Arc<Mutex<BTreeMap<String, JoinView>>>;

/// What makes a join: when it changes, the join begins anew.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setup {
    pub(crate) task: String,
    pub(crate) settings: JoinSettings,
}

/// What a file asks for, by name.
pub(crate) fn setups(config: &Config) -> BTreeMap<String, Setup> {
    let digests = config.joins.iter().filter(|(_, rule)| !markings::is_marking(config, &rule.task));
    digests.map(|(name, rule)| (name.clone(), setup(config, rule))).collect()
}

/// Of which of a join's tasks and points something is that a probe said of one of its tasks.
pub(crate) fn point_of<'a>(probe: &'a str, task: &'a str) -> (Cow<'a, str>, &'a str) {
    match task.split_once('/') {
        None => (probe.into(), task),
        Some((task, interface)) => (format!("{probe}/{interface}").into(), task),
    }
}

pub(crate) fn setup(config: &Config, rule: &JoinRule) -> Setup {
    let points = config.members(&rule.points);
    let usual = JoinSettings::default();
    let parts = u16::try_from(config.shard().1).unwrap_or(1);
    let settings = JoinSettings {
        pairs: pairs(rule, &points),
        period: config.period(),
        patience: rule.patience.map_or(Span::from_secs(2), |time| time.0),
        lateness: rule.patience.map_or(Span::from_secs(2), |time| time.0),
        report_patience: rule.report_patience.map_or(Span::from_secs(15), |time| time.0),
        clocks_apart: rule.clocks_apart.map_or(usual.clocks_apart, |time| time.0),
        most_sightings: rule.most_sightings.unwrap_or(usual.most_sightings),
        lanes: rule.lanes.unwrap_or(parts),
        part: (u16::try_from(config.shard().0).unwrap_or(0), parts),
        ..usual
    };
    Setup {
        task: rule.task.clone(),
        settings: JoinSettings { points: points.into_iter().map(str::to_owned).collect(), ..settings },
    }
}

/// What is compared. In a mesh with one filter for all most packets of a point are for another than
/// the one it is compared with.
fn pairs(rule: &JoinRule, points: &BTreeSet<&str>) -> Vec<Pair> {
    let is_mesh = rule.pairs.is_empty() && points.len() > 2;
    let usual = if is_mesh { Expects::NothingSeenElsewhere } else { Expects::Everything };
    let expects = rule.expects.unwrap_or(usual);
    let direction = rule.direction.unwrap_or_default();
    let pair = |from: &str, to: &str| Pair { expects, direction, ..Pair::new(from, to) };
    if !rule.pairs.is_empty() {
        return rule.pairs.iter().map(|(from, to)| pair(from, to)).collect();
    }
    let each = points.iter().flat_map(|from| points.iter().map(move |to| (from, to)));
    each.filter(|(from, to)| from != to).map(|(from, to)| pair(from, to)).collect()
}

enum Offer {
    Seen(PointId, Arc<Vec<PacketSighting>>, Arc<OwnedSemaphorePermit>),
    Watched(PointId, Period, u64, Box<ClockState>),
    /// The first asked, the second answered.
    Exchanges(PointId, PointId, Vec<ClockExchange>),
    /// The process ends; the next one goes on from this state folder.
    Park(PathBuf, Box<Gaps>),
}

struct Worker {
    setup: Setup,
    offers: SyncSender<Offer>,
    thread: JoinHandle<()>,
}

/// Sightings of a time that a collector before this one took and lost with its memory: by join,
/// point and beginning of the period.
pub(crate) type LostTimes = BTreeSet<(String, String, i64)>;

/// See the module.
pub(crate) struct Joins {
    workers: BTreeMap<String, Worker>,
    rows: (Sender<Vec<TaskRow>>, Receiver<Vec<TaskRow>>),
    views: Views,
    roster: Arc<Roster>,
    gaps: Gaps,
    markings: Markings,
}

/// Offers that may wait for one join.
const QUEUE: usize = 256;
/// How often rows are looked for.
const TURN: Duration = Duration::from_millis(100);
/// A stamp further ahead of this host's time is not joined: it would lie in memory until then. One
/// of the past may have lain on a disk for as long as the collector was away.
const UNTIMELY: Span = Span::from_secs(3600);

impl Joins {
    /// They go on from where those of the process before were, as far as that is known; else they
    /// lack the times that it lost.
    pub(crate) fn new(
        config: &Config,
        views: Views,
        roster: Arc<Roster>,
        lost: LostTimes,
        before: Parked,
    ) -> Self {
        let Parked { joins: resumed, mut gaps } = before;
        gaps.lost.extend(lost);
        let markings = Markings::default();
        let mut joins =
            Self { workers: BTreeMap::new(), rows: mpsc::channel(), views, roster, gaps, markings };
        joins.begin(config, resumed);
        joins
    }

    /// Joins from now on. One that changed gives what it has and begins anew.
    pub(crate) fn follow(&mut self, config: &Config) {
        self.begin(config, BTreeMap::new());
    }

    fn begin(&mut self, config: &Config, mut resumed: BTreeMap<String, Join>) {
        self.markings.follow(config, &self.views);
        let wanted = setups(config);
        let gone: Vec<String> = self
            .workers
            .iter()
            .filter(|(name, worker)| wanted.get(*name) != Some(&worker.setup))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            if let Some(worker) = self.workers.remove(&name) {
                worker.end();
            }
            held(&self.views).remove(&name);
        }
        for (name, setup) in wanted {
            if !self.workers.contains_key(&name)
                && let Some(worker) = self.start(&name, setup, resumed.remove(&name))
            {
                self.workers.insert(name, worker);
            }
        }
    }

    fn start(&self, name: &str, setup: Setup, resumed: Option<Join>) -> Option<Worker> {
        let join = match resumed.map_or_else(|| Join::new(setup.settings.clone()), Ok) {
            Ok(join) => join,
            Err(why) => {
                tracing::error!(join = name, "cannot be made: {why}");
                return None;
            }
        };
        let view =
            JoinView { name: name.to_owned(), points: setup.settings.points.clone(), ..JoinView::default() };
        held(&self.views).insert(name.to_owned(), view);
        let (offers, queue) = sync_channel(QUEUE);
        let worker = Work {
            name: name.to_owned(),
            setup: setup.clone(),
            join,
            queue,
            rows: self.rows.0.clone(),
            views: self.views.clone(),
        };
        let thread = std::thread::Builder::new().name("join".into()).spawn(move || worker.run());
        let thread =
            thread.map_err(|why| tracing::error!(join = name, "cannot start a thread: {why}")).ok()?;
        Some(Worker { setup, offers, thread })
    }

    /// A delivery that is on the disk.
    pub(crate) fn offer(&mut self, delivery: Delivery) {
        let Delivery { probe, sightings, report, room, malformed, missing, .. } = delivery;
        let room = Arc::new(room);
        self.gaps.lacks.add(&probe, missing.saturating_add(malformed));
        for (task, seen) in sightings {
            let seen = Arc::new(self.timely(&probe, seen));
            let (point, task) = point_of(&probe, &task);
            for worker in self.workers.values().filter(|worker| worker.setup.task == task) {
                worker.offer(&point, |point| Offer::Seen(point, seen.clone(), room.clone()));
            }
        }
        if let Some(report) = report {
            let lacking = self.gaps.lacks.of_report(&probe);
            self.markings.offer(&probe, &report, lacking);
            for (name, worker) in &self.workers {
                worker.exchanges(&probe, &report.exchanges);
                for point in points_of(&worker.setup.settings.points, &probe) {
                    for (period, lost) in watched(&report, &worker.setup.task, interface_of(point)) {
                        let before = (name.clone(), point.clone(), period.from.0);
                        // What a collector before this one took is not here: that this point
                        // watched says nothing about it.
                        let lost_before = u64::from(self.gaps.lost.contains(&before));
                        let lost = lost.saturating_add(lacking).saturating_add(lost_before);
                        let clock = Box::new(report.clock.clone());
                        worker.offer(point, |point| Offer::Watched(point, period, lost, clock));
                    }
                }
            }
        }
    }

    /// Packet reports of an exporter that joins have as a point, whatever made its digests. It does
    /// not say when it watched, so what it did not see is unobserved.
    pub(crate) fn offer_seen(&mut self, point: &str, seen: Vec<PacketSighting>, room: OwnedSemaphorePermit) {
        let (seen, room) = (Arc::new(self.timely(point, seen)), Arc::new(room));
        for worker in self.workers.values() {
            worker.offer(point, |point| Offer::Seen(point, seen.clone(), room.clone()));
        }
    }

    fn timely(&mut self, probe: &str, mut seen: Vec<PacketSighting>) -> Vec<PacketSighting> {
        let now = clock::wall();
        let before = seen.len();
        seen.retain(|one| one.at.since(now) < UNTIMELY);
        let untimely = (before - seen.len()) as u64;
        if untimely > 0 {
            self.gaps.lacks.add(probe, untimely);
            self.roster.note(probe, |view| view.counts.untimely += untimely);
        }
        seen
    }

    /// Rows that joins have made since the last call.
    pub(crate) fn rows(&mut self) -> Vec<TaskRow> {
        let mut rows: Vec<TaskRow> = self.rows.1.try_iter().flatten().collect();
        rows.extend(self.markings.rows(clock::wall(), &self.views));
        rows
    }

    /// Without any.
    pub(crate) fn none() -> Self {
        let (views, roster) = (Views::default(), Arc::new(Roster::default()));
        Self::new(&Config::default(), views, roster, LostTimes::new(), Parked::default())
    }

    /// Ends all; what they hold lies in the state folder for the next process, and rows that were
    /// made come back.
    pub(crate) fn park(mut self, state: &Path) -> Vec<TaskRow> {
        for (_, worker) in std::mem::take(&mut self.workers) {
            // A thread that is gone has said why.
            let _ = worker.offers.send(Offer::Park(state.to_owned(), Box::new(self.gaps.clone())));
            worker.end();
        }
        self.rows()
    }
}

/// When the task watched, and how many packets are missing from what it saw.
///
/// A merged frame hides packets of this task only if it passed the task's filter, and then it is
/// among those the task could not use. So are packets that the snap length cut, which a point that
/// captures more sees.
///
/// `interface`: of what it did there, the losses of that capture alone; else any capture's losses
/// may be of its packets.
pub(crate) fn watched(report: &ProbeReport, task: &str, interface: Option<&str>) -> Vec<(Period, u64)> {
    let its = |name: &str| interface.is_none_or(|interface| interface == name);
    let healths = || {
        let captures = report.captures.iter().filter(|capture| its(&capture.interface));
        captures.map(|capture| &capture.health)
    };
    let task = on_interface(task, interface);
    let unsure = |health: &CaptureHealth| u64::from(health.link_was_down) + u64::from(health.doubtful);
    let lost =
        healths().fold(0_u64, |sum, health| sum.saturating_add(health.lost()).saturating_add(unsure(health)));
    let merged = healths().fold(0_u64, |sum, health| sum.saturating_add(health.merged));
    // Two rings of one interface have a row each.
    let mut spans: BTreeMap<Period, DigestRow> = BTreeMap::new();
    for row in report.rows.iter().filter(|row| row.task == task) {
        match &row.row {
            Row::Digests(digests) => {
                let sum = spans.entry(row.period).or_default();
                sum.given_up = sum.given_up.saturating_add(digests.given_up);
                sum.unusable = sum.unusable.saturating_add(digests.unusable);
                sum.cut = sum.cut.saturating_add(digests.cut);
            }
            // Frames that stand for several packets count as so many, each in the block of its
            // colour.
            Row::Marking(_) => drop(spans.entry(row.period).or_default()),
            _ => {}
        }
    }
    let lacks = |sum: &DigestRow| {
        let hidden = merged.saturating_add(sum.cut).min(sum.unusable);
        lost.saturating_add(sum.given_up).saturating_add(hidden)
    };
    spans.into_iter().map(|(period, sum)| (period, lacks(&sum))).collect()
}

/// The points that are of a probe: itself, or interfaces of it.
pub(crate) fn points_of<'a>(points: &'a [String], probe: &str) -> impl Iterator<Item = &'a String> {
    points.iter().filter(move |point| probe_of(point) == probe)
}

/// Shows what a probe and others said to each other: interfaces of one probe have one clock. Who is
/// none of these points is left out.
pub(crate) fn for_exchanges(
    points: &[String],
    probe: &str,
    all: &[ClockExchanges],
    mut show: impl FnMut(PointId, PointId, Vec<ClockExchange>),
) {
    let farthest = Wall(clock::wall().0.saturating_add(UNTIMELY.0));
    let numbered = || (0_u8..).map(PointId).zip(points);
    for one in all.iter().filter(|one| one.with != probe) {
        let timely = || one.tightest.iter().filter(|one| one.sent_at.max(one.received_at) < farthest);
        for (asked, _) in numbered().filter(|(_, point)| probe_of(point) == probe) {
            for (answered, _) in numbered().filter(|(_, point)| probe_of(point) == one.with) {
                show(asked, answered, timely().copied().collect());
            }
        }
    }
}

impl Worker {
    /// Waits while the queue is full.
    fn offer(&self, probe: &str, offer: impl FnOnce(PointId) -> Offer) {
        if let Some(point) = self.setup.settings.point(probe) {
            // A thread that is gone has said why.
            let _ = self.offers.send(offer(point));
        }
    }

    /// What it and others said to each other; those who are none of this join's points are left
    /// out.
    fn exchanges(&self, probe: &str, all: &[ClockExchanges]) {
        for_exchanges(&self.setup.settings.points, probe, all, |asked, answered, timely| {
            let _ = self.offers.send(Offer::Exchanges(asked, answered, timely));
        });
    }

    fn end(self) {
        drop(self.offers);
        let _ = self.thread.join();
    }
}

struct Work {
    name: String,
    setup: Setup,
    join: Join,
    queue: Receiver<Offer>,
    rows: Sender<Vec<TaskRow>>,
    views: Views,
}

impl Work {
    fn run(mut self) {
        let mut look_at = clock::now();
        loop {
            match self.queue.recv_timeout(TURN) {
                Ok(Offer::Seen(point, seen, _room)) => self.join.offer(point, &seen),
                Ok(Offer::Watched(point, period, lost, clock)) => {
                    self.join.watched(point, period, lost, &clock);
                }
                Ok(Offer::Exchanges(asked, answered, all)) => {
                    for one in &all {
                        self.join.exchange(asked, answered, &exchange(one));
                    }
                }
                Ok(Offer::Park(state, gaps)) => match self.park(&state, *gaps) {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::warn!(join = self.name, "it cannot be put away: {error}");
                        break;
                    }
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if clock::now() >= look_at {
                look_at = clock::now() + Span::from_millis(100);
                let joined = self.join.advance(clock::wall());
                self.tell(joined);
            }
        }
        let joined = self.join.finish();
        self.tell(joined);
    }

    fn park(&mut self, state: &Path, gaps: Gaps) -> std::io::Result<()> {
        let joined = self.join.advance(clock::wall());
        self.tell(joined);
        parked::put(state, &self.name, &mut self.join, &self.setup, gaps)
    }

    fn tell(&self, joined: Vec<Joined>) {
        let JoinCounts { taken, came_late, absurd, given_up, elsewhere, held: inside } = self.join.counts();
        if let Some(view) = held(&self.views).get_mut(&self.name) {
            (view.taken, view.came_late, view.absurd) = (taken, came_late, absurd);
            (view.given_up, view.elsewhere, view.held) = (given_up, elsewhere, inside);
            view.periods += joined.len() as u64;
            if let Some(last) = joined.last() {
                PathsRow { paths: view.paths, others: view.other_paths } = paths_of(last);
            }
        }
        let rows: Vec<TaskRow> = joined
            .into_iter()
            .flat_map(|one| rows_of(one).map(|(period, row)| TaskRow::new(&*self.name, period, row)))
            .collect();
        if !rows.is_empty() {
            let _ = self.rows.send(rows);
        }
    }
}

pub(crate) fn exchange(of: &ClockExchange) -> Exchange {
    Exchange { sent: of.sent_at, received: of.received_at, answered: of.answered_at, returned: of.came_at }
}

fn paths_of(joined: &Joined) -> PathsRow {
    let mut row = PathsRow { others: joined.other_paths, ..PathsRow::default() };
    for path in &joined.paths {
        row.count(&PathTaken { points: path.points.clone(), packets: path.packets });
    }
    row
}

/// What is kept of a period.
fn rows_of(joined: Joined) -> impl Iterator<Item = (Period, Row)> {
    let paths = paths_of(&joined);
    let paths = (!paths.paths.is_empty()).then_some(Row::Paths(paths));
    let period = joined.period;
    let delays = joined.delays.into_iter().map(|delay| Row::Delay(Box::new(delay)));
    delays.chain(paths).map(move |row| (period, row))
}

/// Beginning of the period that an instant is in.
pub(crate) fn beginning(at: Wall, period: Span) -> i64 {
    at.0.div_euclid(period.0.max(1)).saturating_mul(period.0.max(1))
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::{CaptureHealth, InterfaceCapture};

    use super::*;

    #[test]
    fn only_a_mesh_leaves_out_what_a_third_point_saw() {
        let expects = |text: &str, points: &[&str]| -> Vec<(String, String, Expects)> {
            let rule: JoinRule = toml::from_str(&format!("task = 'd'\npoints = ['all']\n{text}")).unwrap();
            pairs(&rule, &points.iter().copied().collect())
                .into_iter()
                .map(|pair| (pair.from, pair.to, pair.expects))
                .collect()
        };
        let mesh = expects("", &["a", "b", "c"]);
        assert_eq!(mesh.len(), 6);
        assert!(mesh.iter().all(|pair| pair.0 != pair.1 && pair.2 == Expects::NothingSeenElsewhere));
        let two = |of| [("a".into(), "b".into(), of), ("b".into(), "a".into(), of)];
        assert_eq!(expects("", &["a", "b"]), two(Expects::Everything));
        assert_eq!(expects("pairs = [['a', 'b'], ['b', 'a']]", &["a", "b", "c"]), two(Expects::Everything));
        let asked = "pairs = [['a', 'b'], ['b', 'a']]\nexpects = 'nothing_seen_elsewhere'";
        assert_eq!(expects(asked, &["a", "b", "c"]), two(Expects::NothingSeenElsewhere));
    }

    #[test]
    fn a_task_lacks_what_the_capture_lost_and_what_was_merged_behind_its_filter() {
        let lacks = |health: CaptureHealth, digests: DigestRow| {
            let period = Period { from: Wall(0), until: Wall(1) };
            let row = TaskRow::new("d", period, Row::Digests(digests));
            let report = ProbeReport {
                probe: "p".into(),
                sequence: 1,
                period,
                captures: vec![InterfaceCapture { interface: "eth0".into(), health }],
                clock: ClockState::default(),
                rows: vec![row],
                rows_cut: BTreeMap::new(),
                exchanges: Vec::new(),
            };
            watched(&report, "d", None).iter().map(|(_, lost)| *lost).collect::<Vec<_>>()
        };
        let merged = CaptureHealth { merged: 5, ..CaptureHealth::default() };
        assert_eq!(lacks(merged, DigestRow::default()), [0], "others' packets");
        assert_eq!(lacks(merged, DigestRow { unusable: 2, ..DigestRow::default() }), [2]);
        let fragments = DigestRow { unusable: 2, ..DigestRow::default() };
        assert_eq!(lacks(CaptureHealth::default(), fragments), [0], "no point can use these");
        let cut = DigestRow { unusable: 3, cut: 1, ..DigestRow::default() };
        assert_eq!(lacks(CaptureHealth::default(), cut), [1], "a point with a longer snap length can");
        assert_eq!(lacks(CaptureHealth::default(), DigestRow { given_up: 3, ..DigestRow::default() }), [3]);
        let lost = CaptureHealth { lost_ring: 4, ..merged };
        assert_eq!(lacks(lost, DigestRow::default()), [4]);
        let doubtful = CaptureHealth { doubtful: true, ..CaptureHealth::default() };
        assert_eq!(lacks(doubtful, DigestRow::default()), [1], "counted in a neighbouring period");
    }
}
