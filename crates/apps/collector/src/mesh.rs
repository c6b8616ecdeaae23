//! When throughput tests between probes run: no two at a time on one host or named link.
//!
//! Each ordered pair of a mesh is a [`Run`] that becomes due every so often. Those that are due
//! wait in order of their time; one starts when all that it needs (both hosts, their named links)
//! is free *and no older one waits for any of that*, so a run that needs much is not overtaken for
//! ever. A run that is still waiting when its next turn comes is missed and counted: measuring it
//! twice in a row would say less than measuring it on time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use netaware_record::passive::{ProbeReport, Row};
use netaware_units::{Mono, Span};
use netaware_wire::lmap::What;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Config, is_throughput};
use crate::held;
use crate::instruct::run_name;

/// One pair of one mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    every: Span,
    patience: Span,
    /// Each start is moved by up to this.
    spread: Span,
    /// Hosts and links.
    needs: BTreeSet<String>,
}

/// Probe and task.
type Name = (String, String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Waiting,
    /// `seen`: the probe has said that it runs.
    Running {
        since: Mono,
        seen: bool,
    },
}

#[derive(Debug, Clone)]
struct Run {
    rule: Rule,
    /// Beginning of its turn.
    due: Mono,
    state: State,
    number: u64,
    counts: RunCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct RunCounts {
    started: u64,
    done: u64,
    missed: u64,
    overdue: u64,
}

/// A run as the HTTP API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RunView {
    /// The probe that measures.
    pub probe: String,
    /// Its task.
    pub task: String,
    /// `idle`, `waiting` or `running`.
    pub state: String,
    /// Seconds until it is due; negative: since when it waits.
    pub due_in: i64,
    /// Times it was started.
    pub started: u64,
    /// Times it ended in time.
    pub done: u64,
    /// Times it could not start before its next turn: hosts or links were taken, or the probe was
    /// away.
    pub missed: u64,
    /// Times it did not end within its patience; hosts and links were given to others.
    pub overdue: u64,
}

/// Permission to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) probe: String,
    pub(crate) task: String,
    pub(crate) run: u64,
}

/// See the module. Knows no clock.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    runs: BTreeMap<Name, Run>,
    numbers: u64,
}

/// What a file asks for.
pub(crate) fn rules(config: &Config) -> BTreeMap<Name, Rule> {
    let mut rules = BTreeMap::new();
    for (name, mesh) in config.meshes.iter().filter(|(_, mesh)| is_throughput(&mesh.method)) {
        let Some(every) = mesh.every else { continue };
        let patience = mesh.patience.map_or_else(|| may_take(&mesh.method, &mesh.options), |time| time.0);
        let members = config.members(&mesh.members);
        for from in &members {
            for to in members.iter().filter(|to| *to != from) {
                let needs = needs(config, [*from, *to]);
                let rule = Rule {
                    every: every.0,
                    patience,
                    spread: mesh.spread.map_or(Span::ZERO, |time| time.0),
                    needs,
                };
                rules.insert(((*from).to_owned(), run_name(name, to)), rule);
            }
        }
    }
    for (name, task) in config.tasks.iter().filter(|(_, task)| task.is_throughput()) {
        let Some(every) = task.every else { continue };
        let What::Measure { peer, command, options, .. } = &task.what else { continue };
        for probe in config.members(&task.on) {
            let ends = std::iter::once(probe).chain(peer.as_deref());
            let spread = task.spread.map_or(Span::ZERO, |time| time.0);
            let patience = may_take(command, options);
            let rule = Rule { every: every.0, patience, spread, needs: needs(config, ends) };
            rules.insert((probe.to_owned(), name.clone()), rule);
        }
    }
    rules
}

/// How long a run of this measurement may take by what its options ask for: as long as it lasts,
/// it fills its path. What is not known is taken to be long, since a run that ends earlier says so.
fn may_take(command: &str, options: &BTreeMap<String, String>) -> Span {
    let has = |names: &[&str]| names.iter().any(|name| options.contains_key(*name));
    let takes_turns = matches!(command, "capacity" | "available");
    let versions = if has(&["ipv4", "ipv6"]) { 1 } else { 2 };
    let turns = if takes_turns { versions * 2 } else { versions };
    let usual = if has(&["bytes", "packets", "blocks"]) {
        UNTIL_ALL_IS_SENT
    } else if takes_turns {
        Span::from_secs(30)
    } else {
        Span::from_secs(10)
    };
    let asked = options.get("time").and_then(|text| time(text));
    let turn = asked.unwrap_or(usual).min(LONGEST);
    (turn * turns + SET_UP).clamp(LEAST, LONGEST)
}

/// A time as the measurements read it: seconds, if it has no unit.
fn time(text: &str) -> Option<Span> {
    let is_bare = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_bare { format!("{text}s").parse().ok() } else { text.parse().ok() }
}

/// What `tcp` and `udp` take at most where an amount was asked for, over each IP version.
const UNTIL_ALL_IS_SENT: Span = Span::from_secs(600);
/// Sessions, and waiting for a place at the responder.
const SET_UP: Span = Span::from_secs(60);
/// A run that is away is believed to last for so long at least.
const LEAST: Span = Span::from_secs(120);
/// A probe ends a run after 15 minutes; it may have begun a moment after it was told to.
const LONGEST: Span = Span::from_secs(915);

fn needs<'a>(config: &Config, ends: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let mut needs = BTreeSet::new();
    for end in ends {
        needs.insert(format!("host {end}"));
        let links = config.probes.get(end).into_iter().flat_map(|probe| &probe.links);
        needs.extend(links.map(|link| format!("link {link}")));
    }
    needs
}

impl Scheduler {
    /// Takes new rules; runs that stay the same keep their turn.
    pub(crate) fn follow(&mut self, rules: BTreeMap<Name, Rule>, now: Mono) {
        self.runs.retain(|name, run| rules.get(name).is_some_and(|rule| *rule == run.rule));
        for (name, rule) in rules {
            let due = now + share(&name, &[], rule.every);
            let fresh = Run { rule, due, state: State::Idle, number: 0, counts: RunCounts::default() };
            self.runs.entry(name).or_insert(fresh);
        }
    }

    /// Lets time pass; gives what starts now, of what `may` by its probe and its task.
    pub(crate) fn poll(&mut self, now: Mono, may: &dyn Fn(&str, &str) -> bool) -> Vec<Start> {
        for (name, run) in &mut self.runs {
            run.pass(name, now);
        }
        let running = self.runs.values().filter(|run| matches!(run.state, State::Running { .. }));
        let mut taken: BTreeSet<String> = running.flat_map(|run| run.rule.needs.iter().cloned()).collect();
        let mut waiting: Vec<(Mono, Name)> = self
            .runs
            .iter()
            .filter(|((probe, task), run)| run.state == State::Waiting && may(probe, task))
            .map(|(name, run)| (run.due, name.clone()))
            .collect();
        waiting.sort();
        let mut starts = Vec::new();
        for (_, name) in waiting {
            let Some(run) = self.runs.get_mut(&name) else { continue };
            if run.rule.needs.is_disjoint(&taken) {
                self.numbers += 1;
                run.number = self.numbers;
                run.counts.started += 1;
                run.state = State::Running { since: now, seen: false };
                starts.push(Start { probe: name.0, task: name.1, run: run.number });
            }
            // Started or not: what it needs is not for those behind it.
            taken.extend(run.rule.needs.iter().cloned());
        }
        starts
    }

    /// What the probe says that it runs. A run that it began and no longer has is over, and so is
    /// one that it never began.
    pub(crate) fn status(&mut self, probe: &str, running: &[String], now: Mono) {
        for ((_, task), run) in self.runs.iter_mut().filter(|((of, _), _)| of == probe) {
            let State::Running { since, seen } = run.state else { continue };
            if running.contains(task) {
                run.state = State::Running { since, seen: true };
            } else if seen || now.since(since) > BEGIN {
                run.end(now);
                run.counts.done += u64::from(seen);
            }
        }
    }

    /// A result of it has come.
    pub(crate) fn finished(&mut self, probe: &str, task: &str, now: Mono) {
        if let Some(run) = self.runs.get_mut(&(probe.to_owned(), task.to_owned()))
            && matches!(run.state, State::Running { .. })
        {
            run.end(now);
            run.counts.done += 1;
        }
    }

    /// The start could not be told: as if it had never been given.
    pub(crate) fn undo(&mut self, start: &Start) {
        if let Some(run) = self.runs.get_mut(&(start.probe.clone(), start.task.clone()))
            && run.number == start.run
        {
            run.state = State::Waiting;
            run.counts.started -= 1;
        }
    }

    pub(crate) fn views(&self, now: Mono) -> Vec<RunView> {
        let view = |(name, run): (&Name, &Run)| RunView {
            probe: name.0.clone(),
            task: name.1.clone(),
            state: match run.state {
                State::Idle => "idle",
                State::Waiting => "waiting",
                State::Running { .. } => "running",
            }
            .to_owned(),
            due_in: run.start_at(name).since(now).0 / 1_000_000_000,
            started: run.counts.started,
            done: run.counts.done,
            missed: run.counts.missed,
            overdue: run.counts.overdue,
        };
        self.runs.iter().map(view).collect()
    }
}

/// A probe that was told to start says so within this (a status comes every ten seconds) or has not
/// started.
const BEGIN: Span = Span::from_secs(25);

impl Run {
    /// When it starts in its turn, if nothing else takes its place.
    fn start_at(&self, name: &Name) -> Mono {
        // Each turn begins at an instant of its own, which makes a draw of its own.
        self.due + share(name, &self.due.since(Mono(0)).0.to_le_bytes(), self.rule.spread)
    }

    fn pass(&mut self, name: &Name, now: Mono) {
        match self.state {
            State::Running { since, .. } if now.since(since) > self.rule.patience => {
                self.counts.overdue += 1;
                self.end(now);
            }
            State::Idle if now >= self.start_at(name) => self.state = State::Waiting,
            State::Waiting if now.since(self.due) >= self.rule.every => {
                let turns = now.since(self.due).0 / self.rule.every.0.max(1);
                self.counts.missed += turns.unsigned_abs();
                self.due += self.rule.every * turns;
            }
            _ => {}
        }
    }

    /// The next turn is the first of its row that is still to come; those that passed while it ran
    /// are missed.
    fn end(&mut self, now: Mono) {
        self.state = State::Idle;
        let passed = now.since(self.due).0.max(0) / self.rule.every.0.max(1);
        self.counts.missed += passed.unsigned_abs();
        self.due += self.rule.every * (passed + 1);
    }
}

/// A part of a span that differs from pair to pair and from draw to draw: not all of a mesh is due
/// at once, and the starts of one pair do not keep step with anything.
fn share((probe, task): &Name, draw: &[u8], of: Span) -> Span {
    // FNV-1a.
    let bytes = probe.bytes().chain([0]).chain(task.bytes()).chain(draw.iter().copied());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let share = (hash >> 11) as f64 / (1_u64 << 53) as f64;
    Span((of.0 as f64 * share) as i64)
}

/// The scheduler as all threads see it.
#[derive(Default)]
pub(crate) struct Keeper(Mutex<Scheduler>);

impl Keeper {
    pub(crate) fn follow(&self, config: &Config, now: Mono) {
        held(&self.0).follow(rules(config), now);
    }

    pub(crate) fn poll(&self, now: Mono, may: &dyn Fn(&str, &str) -> bool) -> Vec<Start> {
        held(&self.0).poll(now, may)
    }

    pub(crate) fn undo(&self, start: &Start) {
        held(&self.0).undo(start);
    }

    pub(crate) fn status(&self, probe: &str, running: &[String], now: Mono) {
        held(&self.0).status(probe, running, now);
    }

    /// Results of active tasks say that their runs are over.
    pub(crate) fn report(&self, probe: &str, report: &ProbeReport, now: Mono) {
        for row in report.rows.iter().filter(|row| matches!(row.row, Row::Active(_))) {
            held(&self.0).finished(probe, &row.task, now);
        }
    }

    pub(crate) fn views(&self, now: Mono) -> Vec<RunView> {
        held(&self.0).views(now)
    }
}

#[cfg(test)]
mod tests {
    use netaware_wire::lmap::Suppression;
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Mono {
        Mono(0) + Span::from_secs(seconds)
    }

    fn rule(every: i64, needs: &[&str]) -> Rule {
        let needs = needs.iter().map(ToString::to_string).collect();
        Rule { every: Span::from_secs(every), patience: Span::from_secs(60), spread: Span::ZERO, needs }
    }

    fn name(probe: &str, task: &str) -> Name {
        (probe.to_owned(), task.to_owned())
    }

    #[test]
    fn a_host_measures_with_one_other_at_a_time() {
        let config = Config::read(
            r#"
[probes.a]
key_file = "k"
address = "192.0.2.1"
links = ["uplink"]
[probes.b]
key_file = "k"
address = "192.0.2.2"
[probes.c]
key_file = "k"
address = "192.0.2.3"
links = ["uplink"]
[meshes.bulk]
members = ["all"]
method = "tcp"
every = "60s"
[meshes.rtt]
members = ["all"]
method = "latency"
every = "10s"
"#,
        )
        .unwrap();
        let rules = rules(&config);
        assert_eq!(rules.len(), 6, "latency does not fill a path");
        let needs = &rules[&name("a", "bulk.b")].needs;
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        assert_eq!(needs, ["host a", "host b", "link uplink"]);
        let mut scheduler = Scheduler::default();
        scheduler.follow(rules, at(0));
        let started = scheduler.poll(at(60), &|_, _| true);
        // Every pair of three hosts shares one with every other.
        assert_eq!(started.len(), 1);
    }

    #[test]
    fn a_run_ends_by_its_result_by_the_status_or_by_patience() {
        let mut scheduler = Scheduler::default();
        scheduler.follow([(name("a", "t"), rule(100, &["x"]))].into(), at(0));
        assert_eq!(scheduler.poll(at(100), &|_, _| true).len(), 1);
        scheduler.finished("a", "t", at(110));
        assert_eq!(scheduler.poll(at(200), &|_, _| true).len(), 1);
        scheduler.status("a", &["t".into()], at(201));
        scheduler.status("a", &[], at(211));
        assert_eq!(scheduler.poll(at(300), &|_, _| true).len(), 1);
        scheduler.status("a", &[], at(301));
        assert!(scheduler.views(at(301))[0].state == "running", "it may not have begun yet");
        scheduler.poll(at(361), &|_, _| true);
        let view = &scheduler.views(at(361))[0];
        assert_eq!((view.started, view.done, view.overdue, view.missed), (3, 2, 1, 0));
        assert_eq!(view.state, "idle");
    }

    #[test]
    fn a_long_run_holds_its_link_for_as_long_as_its_options_let_it_take() {
        let takes = |command: &str, options: &[(&str, &str)]| {
            let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            may_take(command, &options.collect()).0 / 1_000_000_000
        };
        assert_eq!(takes("tcp", &[]), 120);
        assert_eq!(takes("tcp", &[("time", "5min")]), 660);
        assert_eq!(takes("udp", &[("time", "300"), ("ipv4", "")]), 360);
        assert_eq!(takes("tcp", &[("bytes", "1GB"), ("ipv6", "")]), 660);
        assert_eq!(takes("tcp", &[("bytes", "1GB")]), 915);
        assert_eq!(takes("capacity", &[]), 180);
        assert_eq!(takes("available", &[("time", "1d")]), 915);
        let fleet = |more: &str| {
            format!(
                "[probes.a]\nkey_file = \"k\"\naddress = \"192.0.2.1\"\n[probes.b]\nkey_file = \"k\"\n\
                 address = \"192.0.2.2\"\n[meshes.bulk]\nmembers = [\"all\"]\nmethod = \"tcp\"\n\
                 every = \"1h\"\noptions = {{ time = \"5min\" }}\n{more}"
            )
        };
        let patience = |more: &str| {
            let rules = rules(&Config::read(&fleet(more)).unwrap());
            rules[&name("a", "bulk.b")].patience
        };
        assert_eq!(patience(""), Span::from_secs(660));
        assert_eq!(patience("patience = \"3min\"\n"), Span::from_secs(180));
    }

    #[test]
    fn a_turn_that_passes_while_waiting_is_missed_and_counted() {
        let mut scheduler = Scheduler::default();
        scheduler.follow([(name("a", "t"), rule(10, &["x"]))].into(), at(0));
        assert!(scheduler.poll(at(10), &|_, _| false).is_empty());
        assert!(scheduler.poll(at(45), &|_, _| false).is_empty());
        let missed = scheduler.views(at(45))[0].missed;
        assert!((3..=4).contains(&missed), "{missed}");
        assert_eq!(scheduler.poll(at(46), &|_, _| true).len(), 1);
    }

    #[test]
    fn a_start_that_could_not_be_told_did_not_happen() {
        let mut scheduler = Scheduler::default();
        scheduler.follow([(name("a", "t"), rule(10, &["x"]))].into(), at(0));
        let start = scheduler.poll(at(10), &|_, _| true).remove(0);
        scheduler.undo(&start);
        assert_eq!(scheduler.views(at(10))[0].started, 0);
        assert_eq!(scheduler.poll(at(11), &|_, _| true).len(), 1);
    }

    #[test]
    fn a_task_that_may_not_start_holds_nobody_and_is_not_counted_as_started() {
        let mut scheduler = Scheduler::default();
        let rules = [(name("a", "held"), rule(10, &["a", "b"])), (name("b", "free"), rule(10, &["a", "b"]))];
        scheduler.follow(rules.into(), at(0));
        let suppression = Suppression { tasks: vec!["held".into()], ..Suppression::default() };
        let may = |_: &str, task: &str| !suppression.names(task, netaware_units::Wall(0));
        let started: Vec<String> = scheduler.poll(at(10), &may).into_iter().map(|start| start.task).collect();
        assert_eq!(started, ["free"]);
        scheduler.poll(at(35), &may);
        let held = scheduler.views(at(35)).into_iter().find(|view| view.task == "held").unwrap();
        assert_eq!((held.started, held.state.as_str()), (0, "waiting"));
        assert!(held.missed >= 2, "{held:?}");
    }

    #[test]
    fn spread_moves_each_start_within_its_turn_by_another_time() {
        let spread = Rule { spread: Span::from_secs(50), ..rule(100, &["x"]) };
        let mut scheduler = Scheduler::default();
        scheduler.follow([(name("a", "t"), spread)].into(), at(0));
        let first_turn = share(&name("a", "t"), &[], Span::from_secs(100));
        let mut moved = Vec::new();
        for second in 0..1000 {
            if scheduler.poll(at(second), &|_, _| true).len() == 1 {
                let turn = first_turn + Span::from_secs(100) * moved.len() as i64;
                moved.push(at(second).since(Mono(0) + turn).0 / 1_000_000_000);
                scheduler.finished("a", "t", at(second));
            }
        }
        assert!(moved.len() >= 9, "{moved:?}");
        assert!(moved.iter().all(|moved| (0..=51).contains(moved)), "{moved:?}");
        let different: BTreeSet<i64> = moved.iter().copied().collect();
        assert!(different.len() >= moved.len() / 2, "{moved:?}");
    }

    proptest! {
        #[test]
        fn nothing_is_shared_and_nobody_starves(hosts in 2_usize..7, length in 1_i64..8, seed in any::<u64>()) {
            let names: Vec<String> = (0..hosts).map(|n| format!("h{n}")).collect();
            let mut rules = BTreeMap::new();
            for from in &names {
                for to in names.iter().filter(|to| *to != from) {
                    rules.insert(name(from, to), rule(1000, &[from, to]));
                }
            }
            let pairs = rules.len();
            let needs: BTreeMap<Name, BTreeSet<String>> =
                rules.iter().map(|(name, rule)| (name.clone(), rule.needs.clone())).collect();
            let mut scheduler = Scheduler::default();
            scheduler.follow(rules, at(0));
            let mut running: Vec<(i64, Name)> = Vec::new();
            let mut seed = seed;
            for second in 0..2000 {
                let (over, on): (Vec<_>, Vec<_>) = running.into_iter().partition(|(end, _)| *end <= second);
                running = on;
                for (_, (probe, task)) in over {
                    scheduler.finished(&probe, &task, at(second));
                }
                for start in scheduler.poll(at(second), &|_, _| true) {
                    let fresh = name(&start.probe, &start.task);
                    for (_, other) in &running {
                        prop_assert!(needs[&fresh].is_disjoint(&needs[other]), "{fresh:?} beside {other:?}");
                    }
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let takes = 1 + (seed >> 33) as i64 % length;
                    running.push((second + takes, fresh));
                }
            }
            let views = scheduler.views(at(2000));
            prop_assert_eq!(views.len(), pairs);
            for view in views {
                prop_assert!(view.started >= 1, "{} {} never ran", view.probe, view.task);
            }
        }
    }
}
