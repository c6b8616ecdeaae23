//! Tasks that send: when they run, and what they find.
//!
//! A task with a schedule starts by its own clock, spread at random so that a fleet does not start
//! at one instant. One that loads the path never does: it runs when the collector says so, which
//! knows what else runs on the hosts and links. Two runs of one task never overlap, nor do two that
//! fill a path; what could not start is counted as missed.
//!
//! A measurement runs as a process of its own, the very program that runs here (`netaware tcp …`):
//! what an instruction can ask for is then what a user could, no more ([`command`] has the list),
//! and nothing that happens to it reaches the capture.

mod command;
mod schedule;
pub mod stamp;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_record::passive::{ClockExchanges, Period, Row, TaskRow};
use netaware_units::{Span, Wall};
use netaware_wire::lmap::{Task, What, fills_path};

use crate::after;
use crate::watch::report::Told;
pub use command::refusal;
use schedule::Clockwork;

/// What a task found in a period.
#[derive(Debug)]
pub struct Finding {
    /// Which.
    pub period: Period,
    /// The figures.
    pub rows: Vec<Row>,
    /// What its packets say of two clocks, where the other end is a probe.
    pub exchanges: Option<ClockExchanges>,
}

/// Takes what a task found.
pub type Finds<'a> = dyn FnMut(Finding) + 'a;

/// Sends a flow of STAMP packets (what, length of a period) until it is told to stop.
pub type StampRun = Arc<dyn Fn(&What, Span, &StopFlag, &mut Finds<'_>) -> Result<(), String> + Send + Sync>;

/// After a run that failed, before the next.
const REST: Span = Span::from_secs(1);

struct Running {
    stop: StopFlag,
    thread: JoinHandle<()>,
    fills: bool,
}

struct Entry {
    task: Task,
    clockwork: Option<Clockwork>,
    running: Option<Running>,
}

/// All active tasks of a probe.
pub struct Active {
    period: Span,
    entries: BTreeMap<String, Entry>,
    told: SyncSender<Told>,
    missed: Arc<AtomicU64>,
    stamp: StampRun,
    seed: u64,
}

impl std::fmt::Debug for Active {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Active").field("tasks", &self.entries.keys()).finish_non_exhaustive()
    }
}

/// Whether a task loads the path so that nothing else can be measured meanwhile.
fn fills(what: &What) -> bool {
    matches!(what, What::Measure { command, .. } if fills_path(command))
}

impl Active {
    /// None yet. `stamp` runs the flows of STAMP packets.
    pub fn new(told: SyncSender<Told>, stamp: StampRun, seed: u64) -> Self {
        Self {
            period: Span::from_secs(1),
            entries: BTreeMap::new(),
            told,
            missed: Arc::default(),
            stamp,
            seed,
        }
    }

    /// Runs that could not start, since the beginning.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Names of what runs now.
    pub fn running(&self) -> Vec<String> {
        let running = self.entries.iter().filter(|(_, entry)| entry.is_running());
        running.map(|(name, _)| name.clone()).collect()
    }

    /// Tasks from now on, and how long their periods are. Tasks that stay the same are not
    /// disturbed, others are stopped.
    pub fn set(&mut self, tasks: BTreeMap<String, Task>, period: Span, now: Wall) {
        self.period = period;
        let before = std::mem::take(&mut self.entries);
        for (name, mut entry) in before {
            if tasks.get(&name) == Some(&entry.task) {
                self.entries.insert(name, entry);
            } else {
                entry.end();
            }
        }
        for (name, task) in tasks {
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let seed = self.seed;
            self.entries.entry(name).or_insert_with(|| {
                let own = task.schedule.as_ref().filter(|_| !fills(&task.what));
                let clockwork = own.map(|schedule| Clockwork::new(schedule.clone(), seed, now));
                Entry { task, clockwork, running: None }
            });
        }
    }

    /// Starts what is due.
    pub fn tick(&mut self, now: Wall) {
        let mut due = Vec::new();
        for (name, entry) in &mut self.entries {
            if entry.running.as_ref().is_some_and(|running| running.thread.is_finished()) {
                entry.end();
            }
            let always = entry.clockwork.is_none() && matches!(entry.task.what, What::Stamp { .. });
            match &mut entry.clockwork {
                Some(clockwork) => {
                    let (starts, missed) = clockwork.due(now);
                    self.missed.fetch_add(missed, Ordering::Relaxed);
                    if starts {
                        due.push(name.clone());
                    }
                }
                // A flow without a schedule never ends; if it does, it begins again.
                None if always && entry.running.is_none() => due.push(name.clone()),
                None => {}
            }
        }
        for name in due {
            self.start(&name);
        }
    }

    /// Starts a task now, because the collector says so. One that is not known is none of ours any
    /// more.
    pub fn start(&mut self, name: &str) {
        let filling = self.entries.values().any(|entry| entry.is_running() && entry.fills());
        let Some(entry) = self.entries.get_mut(name) else {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if entry.is_running() || (filling && fills(&entry.task.what)) {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        entry.end();
        let stop = StopFlag::new();
        let run = Run {
            name: name.to_owned(),
            period: self.period,
            what: entry.task.what.clone(),
            told: self.told.clone(),
            stamp: self.stamp.clone(),
            stop: stop.clone(),
        };
        let thread = std::thread::Builder::new().name("probe-active".into()).spawn(move || run.run());
        match thread {
            Ok(thread) => {
                entry.running = Some(Running { stop, thread, fills: fills(&entry.task.what) });
            }
            Err(error) => {
                tracing::warn!(task = name, "cannot start a thread: {error}");
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Stops everything.
    pub fn end(&mut self) {
        for entry in self.entries.values() {
            if let Some(running) = &entry.running {
                running.stop.raise();
            }
        }
        for entry in self.entries.values_mut() {
            entry.end();
        }
    }
}

impl Entry {
    fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.thread.is_finished())
    }

    fn fills(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.fills)
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop.raise();
            // A thread of ours that panicked has said so; its task is over.
            drop(running.thread.join());
        }
    }
}

struct Run {
    name: String,
    period: Span,
    what: What,
    told: SyncSender<Told>,
    stamp: StampRun,
    stop: StopFlag,
}

impl Run {
    fn run(&self) {
        let from = clock::wall();
        let ended = match &self.what {
            What::Stamp { .. } => (self.stamp)(&self.what, self.period, &self.stop, &mut |found| {
                self.tell(found);
            }),
            What::Measure { command, target, options, .. } => {
                command::run(command, target, options, &self.stop).map(|record| {
                    let period = Period { from, until: clock::wall().max(after(from, Span(1))) };
                    self.tell(Finding { period, rows: vec![Row::Active(record)], exchanges: None });
                })
            }
            _ => Err("it watches packets, it does not send any".to_owned()),
        };
        if let Err(why) = ended {
            tracing::warn!(task = self.name, "{why}");
            // What cannot run is not tried again at once.
            let until = clock::now() + REST;
            while clock::now() < until && !self.stop.is_raised() {
                clock::sleep(Span::from_millis(50));
            }
        }
    }

    fn tell(&self, found: Finding) {
        let Finding { period, rows, exchanges } = found;
        let rows = rows.into_iter().map(|row| TaskRow::new(&*self.name, period, row));
        // Nobody listens any more when the probe ends.
        drop(self.told.send(Told::Active(rows.collect(), exchanges)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use netaware_wire::lmap::Schedule;

    use super::*;

    fn stamp(every_ms: Option<u64>) -> Task {
        let what =
            What::Stamp { target: "x".into(), interval_ns: 1_000_000, length: 44, peer: None, version: None };
        let schedule = every_ms.map(|every_ms| Schedule { every_ms, spread_ms: 0, from: None, until: None });
        Task { interface: None, filter: None, what, schedule }
    }

    fn measure(command: &str) -> Task {
        let what = What::Measure {
            command: command.into(),
            target: "x".into(),
            options: BTreeMap::new(),
            peer: None,
        };
        let schedule = Some(Schedule { every_ms: 100, spread_ms: 0, from: None, until: None });
        Task { interface: None, filter: None, what, schedule }
    }

    /// Runs until it is told to stop.
    fn endless() -> StampRun {
        Arc::new(|_, _, stop, _| {
            while !stop.is_raised() {
                std::thread::yield_now();
            }
            Ok(())
        })
    }

    #[test]
    fn runs_of_one_task_never_overlap_and_those_that_could_not_start_are_counted() {
        let (told, _news) = mpsc::sync_channel(64);
        let mut active = Active::new(told, endless(), 1);
        active.set([("flow".to_owned(), stamp(Some(1000)))].into(), Span::from_secs(1), Wall(0));
        active.tick(Wall(1_000_000_000));
        assert_eq!((active.running(), active.missed()), (vec!["flow".to_owned()], 0));
        active.tick(Wall(2_000_000_000));
        assert_eq!(active.missed(), 1);
        active.start("flow");
        active.start("nobody");
        assert_eq!(active.missed(), 3);
        active.end();
        assert!(active.running().is_empty());
    }

    #[test]
    fn a_task_that_stays_the_same_runs_on_and_one_that_changed_is_stopped() {
        let (told, _news) = mpsc::sync_channel(64);
        let mut active = Active::new(told, endless(), 1);
        let tasks: BTreeMap<_, _> = [("a".to_owned(), stamp(None)), ("b".to_owned(), stamp(None))].into();
        active.set(tasks.clone(), Span::from_secs(1), Wall(0));
        active.tick(Wall(1));
        assert_eq!(active.running(), ["a", "b"]);
        let mut changed = tasks;
        changed.insert("b".to_owned(), stamp(Some(60_000)));
        active.set(changed, Span::from_secs(1), Wall(2));
        assert_eq!(active.running(), ["a"]);
        active.end();
    }

    #[test]
    fn what_fills_the_path_waits_for_the_collector() {
        let (told, _news) = mpsc::sync_channel(64);
        let mut active = Active::new(told, endless(), 1);
        active.set([("bulk".to_owned(), measure("tcp"))].into(), Span::from_secs(1), Wall(0));
        active.tick(Wall(3_600_000_000_000));
        assert!(active.running().is_empty());
        assert_eq!(active.missed(), 0);
    }

    /// Nobody else would start them: collectors give the word to what fills a path alone.
    #[test]
    fn what_fills_no_path_has_a_clockwork_of_its_own() {
        let (told, _news) = mpsc::sync_channel(64);
        let mut active = Active::new(told, endless(), 1);
        let tasks = netaware_wire::lmap::MEASUREMENTS.map(|command| (command.to_owned(), measure(command)));
        active.set(tasks.into(), Span::from_secs(1), Wall(0));
        let own = active.entries.iter().filter(|(_, entry)| entry.clockwork.is_some());
        assert_eq!(own.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["hops", "latency", "reach"]);
    }
}
