//! What hosts that others use make of estimates, and what is told of these: the sender is kept from
//! its core for milliseconds, between its reading of the clock and the packet's leaving, so that no
//! stamp and no method can see it.

use netaware_path::{Bound, Disturbance, EndLoad, Estimate, Flag};
use netaware_sim::accuracy::{Method, holds, misleads};
use netaware_sim::cells::{Cell, FROM, RTT, Shape, Traffic};
use netaware_sim::{HostNoise, Stall, VolleyPath, estimate};
use netaware_units::{BitRate, Span};

const SEEDS: u64 = 12;
const METHODS: [Method; 6] =
    [Method::Bulk, Method::Capacity, Method::Curve, Method::Slops, Method::Spruce, Method::Available];

fn cell() -> Cell {
    Cell { rate: BitRate(100_000_000), load: 50, traffic: Traffic::Cbr, coalescing: None, shape: Shape::One }
}

/// One in so many packets waits for `micros` after its stamp.
fn unseen(one_in: u32, micros: i64) -> HostNoise {
    let stall = Stall { probability: 1.0 / f64::from(one_in), lasts: Span::from_micros(micros) };
    HostNoise { unseen: Some(stall), ..cell().noise() }
}

struct Run {
    /// As the method has it, and as it is told.
    plain: Estimate,
    told: Estimate,
    truth: f64,
    away: f64,
}

fn runs(method: Method, noise: HostNoise) -> Vec<Run> {
    let cell = cell();
    let scenario = cell.scenario().unwrap();
    let truth = cell.truth();
    let one = |seed| {
        let mut path = VolleyPath::new(&scenario, FROM, seed, noise);
        // Without first trains: they would keep some of the methods from being wrong by themselves.
        let mut estimator = method.of_commands(truth.tight_capacity).lasting(&cell.instrument(), seed);
        let ended = estimate(&mut path, estimator.as_mut(), RTT);
        let plain = ended.answer.unwrap_or_else(|| panic!("{method}, seed {seed}: no answer"));
        let sender = EndLoad { paused: Some(path.away()), ..EndLoad::default() };
        let told = Disturbance::of(&sender, &EndLoad::default(), 0.0).on(plain.clone());
        let truth = if method.is_of_capacity() { truth.capacity } else { truth.available };
        Run { plain, told, truth, away: path.away() }
    };
    (0..SEEDS).map(one).collect()
}

fn is_flagged(answer: &Estimate) -> bool {
    answer.flags.iter().any(|flag| matches!(flag, Flag::HostBusy { .. }))
}

#[test]
fn figures_of_quiet_hosts_are_told_as_they_are() {
    for method in METHODS {
        for run in runs(method, cell().noise()) {
            assert_eq!((run.told, run.away), (run.plain, 0.0), "{method}");
        }
    }
}

/// Off by more than any figure may be, and not by what its interval allows.
fn is_wrong(answer: &Estimate, truth: f64) -> bool {
    let far = (answer.rate.estimate / truth - 1.0).abs() > 0.2;
    answer.bound == Bound::None && far && !answer.rate.contains(truth)
}

#[test]
fn a_host_that_others_use_gives_figures_that_hold_the_truth_or_bounds() {
    let (mut all, mut held, mut wrong) = (0, 0, 0);
    for (one_in, micros) in [(200, 3_000), (50, 1_000), (20, 3_000)] {
        for method in METHODS {
            for Run { plain, told, truth, away } in runs(method, unseen(one_in, micros)) {
                let of = format!("{method}, one in {one_in} waits {micros} us, away {away:.3}: {told:?}");
                assert_eq!(is_flagged(&told), away >= 0.05, "{of}");
                assert!(away < 0.15 || told.bound != Bound::None, "{of}");
                assert!(told.rate.lo <= plain.rate.lo && told.rate.hi >= plain.rate.hi, "{of}");
                assert!(!is_wrong(&told, truth) && !misleads(&told, truth), "{of}");
                wrong += usize::from(is_wrong(&plain, truth));
                held += usize::from(holds(&told, truth));
                all += 1;
            }
        }
    }
    assert!(held * 10 >= all * 9, "{held} of {all} hold the truth");
    // Otherwise this shows nothing.
    assert!(wrong > 10, "{wrong} of {all} are wrong without the rule");
    println!("{held} of {all} hold the truth; {wrong} would be wrong");
}
