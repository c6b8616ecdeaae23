//! Methods for capacity and available bandwidth, as the commands run them, on the paths of the
//! world: no harm, in time, true or marked.
//!
//! - No harm: within a second, a round trip or the time of ten packets, whichever is longest, no
//!   more leaves than 1.25 times what the path carries, the first three packets apart.
//! - In time: nothing takes longer than its limit.
//! - True or marked: a figure is within a fifth of the truth or has it in its interval, a bound
//!   holds, or a flag says why not. Where there is no figure, there is a reason that fits.

use netaware_netmodel::Scenario;
use netaware_path::available::Search;
use netaware_path::{Bound, Careful, Estimate, Flag, Instrument, NoFigure, RateMethod, VolleyReport};
use netaware_sim::cells::FROM;
use netaware_sim::{Concluded, HostNoise, VolleyPath, conclude};
use netaware_stats::interval::Interval;
use netaware_stats::rng::SplitMix64;
use netaware_units::{Mono, Span};

const METHODS: [&str; 10] = [
    "bulk",
    "pathrate",
    "capacity",
    "curve",
    "slops",
    "chirp",
    "spruce",
    "available",
    "maximum",
    "maximum-c",
];
const LIMIT: Span = Span::from_secs(30);

/// A path, and what is true of it, bit/s.
#[derive(Clone, Copy)]
struct World {
    name: &'static str,
    hops: &'static str,
    rtt: Span,
    capacity: f64,
    available: f64,
    /// What it carries in the long run.
    lasts: f64,
    /// What a bucket lets through at once, bytes.
    credit: f64,
}

impl World {
    /// What short trains meet.
    fn peak(&self) -> f64 {
        if self.credit > 0.0 { 1e8 } else { self.capacity }
    }
}

const fn world(name: &'static str, hops: &'static str, millis: i64, rate: f64) -> World {
    let rtt = Span::from_millis(millis);
    World { name, hops, rtt, capacity: rate, available: rate, lasts: rate, credit: 0.0 }
}

const fn loaded(of: World, available: f64) -> World {
    World { available, ..of }
}

const fn bucket(of: World, lasts: f64, credit: f64) -> World {
    World { lasts, credit, capacity: lasts, available: lasts, ..of }
}

#[rustfmt::skip]
const PATHS: [World; 30] = [
    world("20 kbit/s", "[[hop]]\nrate = '20kbit/s'\ndelay = '300ms'\n", 600, 2e4),
    world("20 kbit/s, three packets of queue", "[[hop]]\nrate = '20kbit/s'\ndelay = '300ms'\nqueue = { packets = 3 }\n", 600, 2e4),
    world("64 kbit/s", "[[hop]]\nrate = '64kbit/s'\ndelay = '50ms'\nqueue = { time = '2500ms' }\n", 100, 6.4e4),
    world("64 kbit/s, three packets of queue", "[[hop]]\nrate = '64kbit/s'\ndelay = '50ms'\nqueue = { packets = 3 }\n", 100, 6.4e4),
    world("384/64 kbit/s, forward", "[[hop]]\nforward = { rate = '384kbit/s' }\nreverse = { rate = '64kbit/s' }\ndelay = '100ms'\n", 200, 3.84e5),
    world("384 kbit/s, three packets of queue", "[[hop]]\nrate = '384kbit/s'\ndelay = '100ms'\nqueue = { packets = 3 }\n", 200, 3.84e5),
    world("ADSL up", "[[hop]]\nrate = '1Mbit/s'\ndelay = '10ms'\nqueue = { time = '2500ms' }\n", 20, 1e6),
    world("1 Mbit/s, three packets of queue", "[[hop]]\nrate = '1Mbit/s'\ndelay = '10ms'\nqueue = { packets = 3 }\n", 20, 1e6),
    world("10 Mbit/s at 300 ms", "[[hop]]\nrate = '10Mbit/s'\ndelay = '150ms'\nqueue = { bytes = '1500kB' }\n", 300, 1e7),
    world("geostationary, up", "[[hop]]\nrate = '3Mbit/s'\ndelay = '300ms'\nqueue = { time = '1s' }\n", 600, 3e6),
    world("1.2 s, 5 Mbit/s", "[[hop]]\nrate = '5Mbit/s'\ndelay = '600ms'\n", 1200, 5e6),
    world("100 Mbit/s at 300 ms", "[[hop]]\nrate = '100Mbit/s'\ndelay = '150ms'\n", 300, 1e8),
    loaded(world("10 Mbit/s, half used", "[[hop]]\nrate = '10Mbit/s'\ndelay = '20ms'\n[[cross]]\nenter = 0\npattern = 'poisson'\nrate = '5Mbit/s'\nsizes = 1000\n", 40, 1e7), 5e6),
    loaded(world("1 Mbit/s, half used", "[[hop]]\nrate = '1Mbit/s'\ndelay = '20ms'\n[[cross]]\nenter = 0\npattern = 'poisson'\nrate = '500kbit/s'\nsizes = 1000\n", 40, 1e6), 5e5),
    loaded(world("ADSL up, full", "[[hop]]\nrate = '1Mbit/s'\ndelay = '10ms'\nqueue = { time = '2500ms' }\n[[cross]]\nenter = 0\npattern = 'tcp'\nback = '10ms'\nsizes = 1500\n", 20, 1e6), 1.0),
    world("1 % lost", "[[hop]]\nrate = '20Mbit/s'\ndelay = '60ms'\nloss = 0.01\n", 120, 2e7),
    world("10 % lost", "[[hop]]\nrate = '20Mbit/s'\ndelay = '10ms'\nloss = 0.1\n", 20, 2e7),
    world("30 % lost", "[[hop]]\nrate = '20Mbit/s'\ndelay = '10ms'\nloss = 0.3\n", 20, 2e7),
    world("30 % lost at 600 ms", "[[hop]]\nrate = '5Mbit/s'\ndelay = '300ms'\nloss = 0.3\n", 600, 5e6),
    world("20 % reordered", "[[hop]]\nrate = '20Mbit/s'\ndelay = '20ms'\nreordering = { probability = 0.2, by = '3ms' }\n", 40, 2e7),
    world("duplicates", "[[hop]]\nrate = '20Mbit/s'\ndelay = '20ms'\nduplication = 0.1\n", 40, 2e7),
    bucket(world("UDP limited to 2 Mbit/s", "[[hop]]\nrate = '100Mbit/s'\ndelay = '10ms'\nbucket = { kind = 'policer', rate = '2Mbit/s', burst = '30kB' }\n", 20, 1e8), 2e6, 30e3),
    bucket(world("a policer with a large credit", "[[hop]]\nrate = '100Mbit/s'\ndelay = '10ms'\nbucket = { kind = 'policer', rate = '10Mbit/s', burst = '1250kB' }\n", 20, 1e8), 1e7, 1.25e6),
    bucket(world("power boost", "[[hop]]\nrate = '100Mbit/s'\ndelay = '10ms'\nbucket = { kind = 'shaper', rate = '20Mbit/s', burst = '10MB' }\n", 20, 1e8), 2e7, 1e7),
    bucket(world("a shaper with little credit", "[[hop]]\nrate = '100Mbit/s'\ndelay = '10ms'\nbucket = { kind = 'shaper', rate = '5Mbit/s', burst = '15kB' }\n", 20, 1e8), 5e6, 15e3),
    world("LTE", "[[hop]]\nrate = '10Mbit/s'\ndelay = '20ms'\njitter = { distribution = 'uniform', mean = '5ms', grid = '10ms' }\n", 50, 1e7),
    world("100 ms of jitter", "[[hop]]\nrate = '10Mbit/s'\ndelay = '20ms'\njitter = { distribution = 'uniform', mean = '50ms' }\n", 90, 1e7),
    world("jitter that reorders", "[[hop]]\nrate = '10Mbit/s'\ndelay = '20ms'\njitter = { distribution = 'uniform', mean = '50ms', order = 'free' }\n", 90, 1e7),
    world("Wi-Fi", "[[hop]]\nrate = '100Mbit/s'\ndelay = '1ms'\naggregation = { packets = 32, access = '200us', contention = '2ms' }\n", 4, 1e8),
    world("slow Wi-Fi", "[[hop]]\nrate = '5Mbit/s'\ndelay = '1ms'\naggregation = { packets = 32, access = '200us', contention = '2ms' }\n", 4, 5e6),
];

fn instrument(world: &World) -> Instrument {
    Instrument {
        largest: 1500,
        smallest: 200,
        rtt: world.rtt,
        send_gap: Span::from_micros(2),
        send_error: Span(300),
        receive_error: Span(500),
        largest_burst: 200_000,
        max_load: 0.1,
        time_limit: LIMIT,
        carried: None,
    }
}

fn noise() -> HostNoise {
    HostNoise {
        send_gap: Span::from_micros(2),
        send_error: Span(300),
        receive_error: Span(500),
        ..HostNoise::default()
    }
}

fn is_of_capacity(name: &str) -> bool {
    ["bulk", "pathrate", "capacity"].contains(&name)
}

/// As the commands run it.
fn careful(name: &str, host: &Instrument, capacity: f64) -> Careful {
    let method = match name {
        "bulk" => RateMethod::Bulk,
        "pathrate" => RateMethod::Pathrate,
        "capacity" => RateMethod::Capacity,
        "curve" => RateMethod::Curve,
        "slops" => RateMethod::Slops,
        "chirp" => RateMethod::Chirp,
        "spruce" => RateMethod::Spruce(capacity),
        "available" => RateMethod::Available,
        "maximum" => RateMethod::Maximum(Search::TypeB),
        _ => RateMethod::Maximum(Search::TypeC),
    };
    let max_load = if matches!(method, RateMethod::Maximum(_)) { 1.0 } else { host.max_load };
    method.careful(&Instrument { max_load, ..host.clone() }, 1)
}

fn run(
    world: &World,
    name: &'static str,
    seed: u64,
    host: &Instrument,
    spoil: impl FnMut(Mono, &mut VolleyReport),
) -> Concluded {
    let scenario = Scenario::parse(&format!("about = 'a path of the world'\n{}", world.hops)).unwrap();
    let mut path = VolleyPath::new(&scenario, FROM, seed, noise());
    // Where a bucket is, its link's rate is what a person would know.
    let capacity = world.peak();
    conclude(&mut path, &mut careful(name, host, capacity), world.rtt, spoil)
}

/// What was sent beyond what the path bears, if anything was.
fn harm(world: &World, ended: &Concluded) -> Option<String> {
    let packet = 12_000.0;
    let window = world.rtt.secs_f64().max(1.0).max(10.0 * packet / world.lasts);
    // A bucket is full again only after a while: what counts is what it bears in the long run.
    let window = window.max(8.0 * world.credit * 8.0 / world.lasts);
    let at = |packet: &(Mono, u32)| packet.0.0 as f64 / 1e9;
    let sent = ended.sent.get(3..)?;
    let (mut first, mut bits, mut worst) = (0, 0.0, 0.0_f64);
    for packet in sent {
        bits += f64::from(packet.1) * 8.0;
        while at(&sent[first]) <= at(packet) - window {
            bits -= f64::from(sent[first].1) * 8.0;
            first += 1;
        }
        worst = worst.max(bits);
    }
    let most = 1.25 * world.lasts * window + world.credit * 8.0;
    (worst > most * 1.001 + packet)
        .then(|| format!("HARM {:.2} times the rate", worst / window / world.lasts))
}

/// Why an answer misleads, if it does.
fn nonsense(name: &str, answer: &Estimate, world: &World) -> Option<String> {
    let told = answer.flags.iter().any(|flag| !matches!(flag, Flag::Coalescing { .. }));
    let Interval { estimate, lo, hi, .. } = answer.rate;
    let is_rate = [estimate, hi].iter().all(|rate| *rate > 0.0) && lo >= 0.0 && !estimate.is_nan();
    let is_bound = answer.bound != Bound::AtLeast || lo > 0.0;
    if !is_rate || !is_bound {
        return Some(format!("WRONG no rate: {answer:?}"));
    }
    if name.starts_with("maximum") {
        return (lo > world.capacity * 1.05 && !told).then(|| format!("WRONG above all: {answer:?}"));
    }
    let truth = if is_of_capacity(name) { world.capacity } else { world.available };
    // A credit that outlasts all that was sent is what the path had while it was measured.
    let filled = world.lasts / 8.0 * answer.took.secs_f64();
    let unspent = world.credit > 1e6 && world.credit + filled > answer.bytes as f64;
    let truth = if unspent { world.peak() } else { truth };
    let honest = told
        || match answer.bound {
            Bound::None => (estimate / truth - 1.0).abs() <= 0.2 || (lo..=hi).contains(&truth),
            Bound::AtLeast => lo <= truth * 1.05,
            Bound::AtMost => hi >= truth * 0.95,
        };
    (!honest).then(|| format!("WRONG {answer:?}, but {truth}"))
}

/// Everything that is wrong with an end.
fn faults(world: &World, name: &'static str, ended: &Concluded, limit: Span) -> Vec<String> {
    let mut faults: Vec<String> = harm(world, ended).into_iter().collect();
    // What others queue meanwhile is not known beforehand.
    if ended.took > limit * 21 / 20 {
        faults.push(format!("LATE {}", ended.took));
    }
    match &ended.conclusion {
        Ok(answer) => faults.extend(nonsense(name, answer, world)),
        Err(
            NoFigure::Stopped
            | NoFigure::NotSent
            | NoFigure::NothingCame { .. }
            | NoFigure::WentSilent { .. },
        ) => {
            faults.push(format!("WRONG reason: {:?}", ended.conclusion));
        }
        Err(NoFigure::TooShort { enough, .. }) if enough.is_some_and(|enough| enough <= limit) => {
            faults.push(format!("WRONG enough: {:?}", ended.conclusion));
        }
        Err(_) => {}
    }
    faults
}

fn said(ended: &Concluded) -> String {
    match &ended.conclusion {
        Ok(answer) => format!(
            "{:?} {:.4} ({:.4} .. {:.4}) Mbit/s {:?}",
            answer.bound,
            answer.rate.estimate / 1e6,
            answer.rate.lo / 1e6,
            answer.rate.hi / 1e6,
            answer.flags
        ),
        Err(why) => format!("{why:?}"),
    }
}

/// Every method over every path.
fn all(methods: &[&'static str], seeds: u64) {
    let mut found = Vec::new();
    for world in &PATHS {
        for name in methods {
            for seed in 0..seeds {
                let ended = run(world, name, seed, &instrument(world), |_, _| {});
                println!(
                    "{:36} {name:10} {:>10} {:>5} packets {}",
                    world.name,
                    ended.took.to_string(),
                    ended.sent.len(),
                    said(&ended)
                );
                let of = faults(world, name, &ended, LIMIT);
                found.extend(of.into_iter().map(|fault| format!("{}, {name}, {seed}: {fault}", world.name)));
            }
        }
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[test]
fn capacity_does_no_harm_and_is_true_or_marked_on_the_paths_of_the_world() {
    all(&METHODS[..3], 2);
}

#[test]
fn available_bandwidth_does_no_harm_and_is_true_or_marked_on_the_paths_of_the_world() {
    all(&METHODS[3..8], 2);
}

#[test]
fn filling_the_path_does_no_harm_on_the_paths_of_the_world() {
    all(&METHODS[8..], 1);
}

#[test]
fn where_nothing_answers_the_end_comes_in_time_with_the_reason() {
    for millis in [10, 600, 1200] {
        let path = World { rtt: Span::from_millis(millis), ..PATHS[9] };
        for name in METHODS {
            let ended = run(&path, name, 1, &instrument(&path), |_, report| {
                report.trains.iter_mut().for_each(|train| train.arrivals.clear());
            });
            assert!(
                matches!(ended.conclusion, Err(NoFigure::NothingCame { packets: 3.. })),
                "{name}: {ended:?}"
            );
            assert!(
                ended.took <= LIMIT && ended.sent.len() <= 12,
                "{name}: {} {}",
                ended.took,
                ended.sent.len()
            );
        }
    }
}

#[test]
fn a_path_that_dies_leaves_what_was_found_or_says_that_it_died() {
    for name in METHODS {
        let mut volleys = 0;
        let path = PATHS[8];
        let ended = run(&path, name, 1, &instrument(&path), |_, report| {
            volleys += 1;
            if volleys > 6 {
                report.trains.iter_mut().for_each(|train| train.arrivals.clear());
            }
        });
        assert!(ended.took <= LIMIT, "{name}: {}", ended.took);
        match &ended.conclusion {
            Ok(answer) => {
                let lie = nonsense(name, answer, &path);
                assert!(lie.is_none(), "{name}: {lie:?}");
            }
            Err(why) => assert!(matches!(why, NoFigure::WentSilent { .. }), "{name}: {why:?}"),
        }
    }
}

#[test]
fn a_path_that_becomes_ten_times_slower_is_not_filled() {
    const AFTER: f64 = 5e6;
    const DROP: f64 = 2.0;
    let hops = "[[hop]]\nrate = [{ at = '0s', value = '50Mbit/s' }, { at = '2s', value = '5Mbit/s' }]\ndelay = '15ms'\nqueue = { bytes = '300kB' }\n";
    let path = world("50 Mbit/s that become 5", hops, 30, AFTER);
    let mut found = Vec::new();
    for name in METHODS {
        for seed in 0..3 {
            let ended = run(&path, name, seed, &instrument(&path), |_, _| {});
            println!(
                "{name:10} {seed} {:>10} {:>5} packets {}",
                ended.took.to_string(),
                ended.sent.len(),
                said(&ended)
            );
            // The first packet leaves at once; a host's clock has no beginning.
            let begin = ended.sent[0].0;
            let within = |from: f64, to: f64| -> f64 {
                let sent = ended.sent.iter().filter(|(at, _)| {
                    let at = at.since(begin).secs_f64();
                    at >= from && at < to
                });
                sent.map(|(_, bytes)| f64::from(*bytes) * 8.0).sum()
            };
            let took = ended.took.secs_f64();
            // Within two seconds the load is that of the path as it is.
            let steps = (0..(took * 10.0) as u32).map(|step| DROP + 2.0 + f64::from(step) * 0.1);
            let most = steps.map(|from| within(from, from + 1.0)).fold(0.0, f64::max);
            if most > 1.25 * AFTER {
                found.push(format!("{name}, {seed}: HARM {:.2} times", most / AFTER));
            }
            let max_load = if name.starts_with("maximum") { 1.0 } else { 0.1 };
            let later = within(DROP + 2.0, took + 1.0) / (took - DROP - 2.0).max(5.0);
            if later > 1.25 * max_load * AFTER {
                found.push(format!("{name}, {seed}: a mean load of {:.2} times", later / AFTER));
            }
            let is_said = match &ended.conclusion {
                Ok(answer) => {
                    let is_flagged =
                        answer.flags.iter().any(|it| matches!(it, Flag::PathChanged | Flag::Slower { .. }));
                    is_flagged || nonsense(name, answer, &path).is_none()
                }
                Err(why) => matches!(why, NoFigure::PathChanged | NoFigure::Slower { .. }),
            };
            if !is_said && took > DROP + 2.0 {
                found.push(format!("{name}, {seed}: not said {}", said(&ended)));
            }
        }
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_short_limit_is_kept_on_slow_and_far_paths() {
    let mut rng = SplitMix64::new(3);
    for world in [PATHS[0], PATHS[2], PATHS[8], PATHS[10], PATHS[17]] {
        for name in METHODS {
            let limit = Span::from_millis(2_000 + (rng.unit() * 6_000.0) as i64);
            let host = Instrument { time_limit: limit, ..instrument(&world) };
            let ended = run(&world, name, 1, &host, |_, _| {});
            // The first packets must come, and be missed, before anybody knows how slow it is.
            let grace = Span::from_secs(2) + world.rtt * 3;
            let of = faults(&world, name, &ended, limit + grace);
            assert!(of.is_empty(), "{}, {limit}, {name}: {of:?}", world.name);
        }
    }
}

#[test]
fn what_is_said_to_be_enough_is_enough() {
    for (world, names) in [
        (PATHS[4], &["bulk", "curve"][..]),
        (PATHS[6], &["bulk", "pathrate", "curve", "chirp", "spruce"]),
        (PATHS[9], &["bulk", "curve", "slops", "spruce", "maximum"]),
    ] {
        for name in names {
            let short = Instrument { time_limit: Span::from_secs(3), ..instrument(&world) };
            let ended = run(&world, name, 1, &short, |_, _| {});
            let Err(NoFigure::TooShort { enough: Some(enough), .. }) = ended.conclusion else {
                assert!(ended.conclusion.is_ok(), "{}, {name}: {:?}", world.name, ended.conclusion);
                continue;
            };
            let host = Instrument { time_limit: enough, ..instrument(&world) };
            let ended = run(&world, name, 1, &host, |_, _| {});
            assert!(ended.conclusion.is_ok(), "{}, {name}, {enough}: {ended:?}", world.name);
            // It is a time and no leave to send more.
            let of = faults(&world, name, &ended, enough);
            assert!(of.is_empty(), "{}, {name}, {enough}: {of:?}", world.name);
        }
    }
}
