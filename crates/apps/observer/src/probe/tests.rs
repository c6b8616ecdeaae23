use std::sync::atomic::{AtomicUsize, Ordering};

use netaware_capture::Frame;
use netaware_record::passive::{CaptureHealth, PacketSighting, ProbeReport};
use netaware_wire::lmap::Suppression;

use super::*;
use crate::watch::source::Read;

struct Nothing(Pace);

impl Ground for Nothing {
    fn interfaces(&self) -> Vec<String> {
        Vec::new()
    }

    fn open(&mut self, _: &str) -> Result<Vec<Box<dyn Source>>, String> {
        Err("there is nothing".to_owned())
    }

    fn link(&self, _: &str) -> Interface {
        Interface::default()
    }

    fn compile(&self, _: &str, _: &str) -> Result<Matcher, String> {
        Err("there is nothing".to_owned())
    }

    fn pace(&self) -> Pace {
        self.0
    }
}

struct Nowhere;

impl Outlet for Nowhere {
    fn sightings(&mut self, _: &str, _: &str, _: &[PacketSighting]) {}

    fn report(&mut self, _: ProbeReport) {}
}

#[test]
fn a_file_has_one_table_for_each_task_so_that_no_thread_decides_which_is_used() {
    let what = What::Volume { by: vec!["source".to_owned()], prefix: None, keys: 10 };
    let task = Task { interface: None, filter: None, what, schedule: None };
    for (pace, spare) in [(Pace::Replay, false), (Pace::Live, true)] {
        let settings = ProbeSettings {
            name: "here".to_owned(),
            tunnels: Tunnels::default(),
            clock: Box::new(ClockState::default),
            stamp: Arc::new(|_, _, _, _| Ok(())),
            random: 1,
            said: Arc::default(),
        };
        let (probe, reporting) = Probe::new(Nothing(pace), settings, Nowhere, Span::from_secs(1)).unwrap();
        let setup = probe.setup("t", &task, "lan", &Seed::new([1; 16]), &Interface::default()).unwrap();
        assert_eq!(setup.spare.is_some(), spare, "{pace:?}");
        probe.end();
        assert!(reporting.join().is_some());
    }
}

/// Two interfaces on which nothing ever comes.
struct Silence;

impl Ground for Silence {
    fn interfaces(&self) -> Vec<String> {
        vec!["lan".to_owned(), "wan".to_owned()]
    }

    fn open(&mut self, _: &str) -> Result<Vec<Box<dyn Source>>, String> {
        Ok(vec![Box::new(Self)])
    }

    fn link(&self, _: &str) -> Interface {
        Interface::default()
    }

    fn compile(&self, _: &str, _: &str) -> Result<Matcher, String> {
        Err("no filter is asked for".to_owned())
    }

    fn pace(&self) -> Pace {
        Pace::Live
    }
}

impl Source for Silence {
    fn read(&mut self, _: Span, _: &mut dyn FnMut(Frame<'_>)) -> Result<Read, String> {
        std::thread::yield_now();
        Ok(Read::More)
    }

    fn health(&mut self) -> CaptureHealth {
        CaptureHealth::default()
    }

    fn set_filter(&mut self, _: Option<&str>) -> Result<(), String> {
        Ok(())
    }
}

/// Names of all that a probe does at present, in order.
fn doing<G: Ground>(probe: &Probe<G>) -> Vec<String> {
    let watching = probe.posts.iter().flat_map(|post| post.tasks.keys().cloned());
    let doing: BTreeSet<String> = watching.chain(probe.active.running()).collect();
    doing.into_iter().collect()
}

/// A probe whose flows count their starts and run until they are told to stop, with two tasks that
/// watch and two that send.
fn suppressible(starts: &Arc<AtomicUsize>) -> (Probe<Silence>, Reporting<Nowhere>, BTreeMap<String, Task>) {
    let starts = Arc::clone(starts);
    let settings = ProbeSettings {
        name: "here".to_owned(),
        tunnels: Tunnels::default(),
        clock: Box::new(ClockState::default),
        stamp: Arc::new(move |_, _, stop, _| {
            starts.fetch_add(1, Ordering::Relaxed);
            while !stop.is_raised() {
                std::thread::yield_now();
            }
            Ok(())
        }),
        random: 1,
        said: Arc::default(),
    };
    let (probe, reporting) = Probe::new(Silence, settings, Nowhere, Span::from_secs(1)).unwrap();
    let watches = |interface: &str| Task {
        interface: Some(interface.to_owned()),
        filter: None,
        what: What::Rtt { flows: 10 },
        schedule: None,
    };
    let what = What::Stamp {
        target: "192.0.2.2".to_owned(),
        interval_ns: 1_000_000,
        length: 44,
        peer: None,
        version: None,
    };
    let sends = Task { interface: None, filter: None, what, schedule: None };
    let tasks = [
        ("count", watches("lan")),
        ("count/wan", watches("wan")),
        ("flow", sends.clone()),
        ("mesh.oslo", sends),
    ];
    (probe, reporting, tasks.map(|(name, task)| (name.to_owned(), task)).into())
}

#[test]
fn what_is_suppressed_stops_the_rest_goes_on_and_all_is_taken_up_again_when_its_time_is_over() {
    const ALL: [&str; 4] = ["count", "count/wan", "flow", "mesh.oslo"];
    let starts = Arc::default();
    let (mut probe, reporting, tasks) = suppressible(&starts);
    let instruction = |suppression| Instruction {
        number: 1,
        tasks: tasks.clone(),
        suppression,
        seed: "0".repeat(32),
        period_ms: 1000,
    };
    let held = |tasks: &[&str], passive| {
        let tasks = tasks.iter().map(ToString::to_string).collect();
        Some(Suppression { tasks, passive, until: Some(100) })
    };
    let at_ms = |ms: i64| Wall(ms * 1_000_000);
    let table: [(u32, _, &[&str]); 8] = [
        (1, None, &ALL),
        (2, held(&[], false), &["count", "count/wan"]),
        (3, held(&[], true), &[]),
        (4, held(&["flow"], false), &["count", "count/wan", "mesh.oslo"]),
        (5, held(&["mesh"], true), &["count", "count/wan", "flow"]),
        (6, held(&["count"], true), &["flow", "mesh.oslo"]),
        (7, held(&["count/wan"], true), &["count", "flow", "mesh.oslo"]),
        (8, held(&["count"], false), &ALL),
    ];
    for (row, suppression, expected) in table {
        probe.follow_at(instruction(suppression), at_ms(50_000));
        probe.tick_at(at_ms(50_050));
        assert_eq!(doing(&probe), expected, "row {row}");
        probe.tick_at(at_ms(99_999));
        assert_eq!(doing(&probe), expected, "row {row}, just before its end");
        assert!(probe.refused().is_empty(), "row {row}: {:?}", probe.refused());
        // Nobody says anything: the probe itself knows when it is over.
        probe.tick_at(at_ms(100_000));
        assert_eq!(doing(&probe), ALL, "row {row}, at its end");
    }
    assert!(probe.end().is_none());
    assert!(reporting.join().is_some());
}

#[test]
fn a_suppression_of_others_does_not_interrupt_a_flow_and_a_start_that_it_forbids_is_missed() {
    let starts = Arc::default();
    let (mut probe, reporting, tasks) = suppressible(&starts);
    let mut instruction =
        Instruction { number: 1, tasks, suppression: None, seed: "0".repeat(32), period_ms: 1000 };
    probe.follow_at(instruction.clone(), Wall(1));
    probe.tick_at(Wall(2));
    let until = clock::now() + Span::from_secs(10);
    while starts.load(Ordering::Relaxed) < 2 {
        assert!(clock::now() < until, "both flows have begun");
        std::thread::yield_now();
    }
    let only = |name: &str| Suppression { tasks: vec![name.to_owned()], passive: true, until: None };
    instruction.suppression = Some(only("count"));
    probe.follow_at(instruction.clone(), Wall(3));
    probe.tick_at(Wall(4));
    instruction.suppression = Some(only("flow"));
    probe.follow_at(instruction, Wall(5));
    probe.tick_at(Wall(6));
    assert_eq!(
        (doing(&probe), probe.active.missed()),
        (vec!["count".into(), "count/wan".into(), "mesh.oslo".into()], 0)
    );
    probe.active.start("flow");
    assert_eq!((probe.active.running(), probe.active.missed()), (vec!["mesh.oslo".to_owned()], 1));
    probe.end();
    assert!(reporting.join().is_some());
    assert_eq!(starts.load(Ordering::Relaxed), 2, "neither flow began a second time");
}

#[test]
fn each_ring_has_a_core_where_there_are_enough() {
    let table = [
        (1, vec![0, 1, 2], vec![None]),
        (2, vec![0, 1, 2], vec![Some(0), Some(1)]),
        (3, vec![3, 7], vec![Some(3), Some(7)]),
        (4, vec![0, 1], vec![None, None, None]),
        (5, vec![], vec![None, None]),
        (6, vec![0, 1], vec![]),
    ];
    for (row, allowed, expected) in table {
        assert_eq!(cores_of(expected.len(), &allowed), expected, "row {row}");
    }
}

#[test]
fn capacity_wants_all_packets_of_a_source_in_one_ring() {
    let capacity = What::Capacity { sources: 10 };
    assert!(suits(&capacity, 1).is_ok());
    assert!(suits(&capacity, 2).unwrap_err().contains("--rings 1"));
    assert!(suits(&What::Rtt { flows: 10 }, 2).is_ok());
}
