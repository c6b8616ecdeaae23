use proptest::prelude::*;

use super::*;

/// A host 10 ms away each way whose clock is what it is.
struct Host {
    /// Of the first question, ms since midnight there.
    zero_ms: f64,
    ppm: f64,
    /// ms waited there and back by second and question.
    forward: fn(f64, usize) -> f64,
    reverse: fn(f64, usize) -> f64,
    /// What the clock is set by at this second, ms.
    step: Option<(f64, f64)>,
    ticks_ms: u32,
    /// Between questions, ms.
    every: f64,
}

const IDLE: Host = Host {
    zero_ms: 43_200_000.3,
    ppm: 0.0,
    forward: |_, _| 0.0,
    reverse: |_, _| 0.0,
    step: None,
    ticks_ms: 1,
    every: 103.7,
};

/// Some packets wait, others do not.
fn now_and_then(n: usize) -> f64 {
    [0.0, 11.0, 3.0, 14.0, 0.3, 8.0, 13.0][n % 7]
}

fn answers(host: &Host, count: usize) -> Vec<StampSample> {
    let answer = |n: usize| {
        let sent = n as f64 * host.every;
        let there = sent + 10.0 + (host.forward)(sent / 1e3, n);
        let back = there + 0.05 + 10.0 + (host.reverse)(sent / 1e3, n);
        let stamp = |at: f64| {
            let step = host.step.filter(|(when, _)| at / 1e3 >= *when).map_or(0.0, |(_, by)| by);
            let shown = host.zero_ms + at * (1.0 + host.ppm * 1e-6) + step;
            (shown.rem_euclid(86_400_000.0) as u32) / host.ticks_ms * host.ticks_ms
        };
        let mono = |ms: f64| Mono(7_000_000_000_000 + (ms * 1e6) as u64);
        let stamps = HostStamps { receive: stamp(there), transmit: stamp(there + 0.05) };
        StampSample { sent_at: mono(sent), at: mono(back), stamps }
    };
    (0..count).map(answer).collect()
}

fn believed(host: &Host, count: usize) -> WayQueues {
    match HostClock::of(&answers(host, count)) {
        HostClock::Believed(queues) => queues,
        other => panic!("{other:?}"),
    }
}

fn verdict(queues: &WayQueues) -> (bool, bool) {
    (queues.forward.is_queue(queues.resolution), queues.reverse.is_queue(queues.resolution))
}

#[test]
fn an_idle_path_has_no_queue_either_way() {
    let found = believed(&IDLE, 50);
    assert_eq!((verdict(&found), found.resolution), ((false, false), Span::from_millis(1)), "{found:?}");
    assert_eq!((found.drift_ppm, found.stepped, found.samples), (None, false, 50));
    assert!(found.forward.max <= Span::from_millis(1) && found.reverse.max <= Span::from_millis(1));
}

#[test]
fn the_way_that_queues_is_told_with_its_size() {
    let there = believed(&Host { forward: |_, n| now_and_then(n), ..IDLE }, 50);
    assert_eq!(verdict(&there), (true, false), "{there:?}");
    let error = (there.forward.p90 - Span::from_millis(13)).abs();
    assert!(error <= Span::from_millis(1), "{there:?}");
    let back = believed(&Host { reverse: |_, n| now_and_then(n), ..IDLE }, 50);
    assert_eq!(verdict(&back), (false, true), "{back:?}");
    let both =
        believed(&Host { forward: |_, n| now_and_then(n), reverse: |_, n| now_and_then(n / 7), ..IDLE }, 50);
    assert_eq!(verdict(&both), (true, true), "{both:?}");
}

#[test]
fn midnight_in_the_middle_changes_nothing() {
    let host = Host { forward: |_, n| now_and_then(n), zero_ms: 86_400_000.0 - 2_500.2, ..IDLE };
    let (over, before) = (believed(&host, 50), believed(&Host { zero_ms: 40_000_000.8, ..host }, 50));
    assert_eq!((over.forward, over.reverse), (before.forward, before.reverse));
}

#[test]
fn a_clock_that_drifts_is_no_queue_and_a_queue_that_grows_is_no_drift() {
    for ppm in [80.0, -300.0] {
        // 10 minutes: 48 and 180 ms.
        let drifting = Host { ppm, every: 1_003.7, ..IDLE };
        let found = believed(&drifting, 600);
        assert_eq!(verdict(&found), (false, false), "{found:?}");
        assert!((found.drift_ppm.unwrap() - ppm).abs() < 5.0, "{found:?}");
        let loaded = believed(&Host { reverse: |_, n| now_and_then(n), ..drifting }, 600);
        assert_eq!(verdict(&loaded), (false, true), "{loaded:?}");
    }
    let growing = Host { forward: |at, _| at / 12.0, every: 1_003.7, ..IDLE };
    let found = believed(&growing, 600);
    assert_eq!((verdict(&found), found.drift_ppm), ((true, false), None), "{found:?}");
}

#[test]
fn a_clock_that_is_set_leaves_one_side_or_no_verdict() {
    let found = believed(&Host { step: Some((3.0, 700.0)), ..IDLE }, 50);
    assert!(found.stepped && verdict(&found) == (false, false) && found.samples < 50, "{found:?}");
    // By less than a round trip: there it looks like a queue, back like one that has gone.
    let small = Host { step: Some((3.0, 9.0)), ..IDLE };
    assert_eq!(HostClock::of(&answers(&small, 50)), HostClock::Ambiguous);
}

#[test]
fn a_coarse_clock_says_so() {
    let found = believed(&Host { ticks_ms: 10, ..IDLE }, 60);
    assert_eq!((found.resolution, verdict(&found)), (Span::from_millis(10), (false, false)), "{found:?}");
}

#[test]
fn what_is_no_time_of_day_is_not_believed() {
    let with = |change: fn(usize, u32) -> u32| -> HostClock {
        let changed = answers(&IDLE, 50).into_iter().enumerate().map(|(n, sample)| {
            let HostStamps { receive, transmit } = sample.stamps;
            let stamps = HostStamps { receive: change(n, receive), transmit: change(n, transmit) };
            StampSample { stamps, ..sample }
        });
        HostClock::of(&changed.collect::<Vec<_>>())
    };
    assert_eq!(with(|_, ms| ms.swap_bytes()), HostClock::LittleEndian);
    assert_eq!(with(|_, ms| ms | NON_STANDARD), HostClock::NonStandard);
    assert_eq!(with(|_, _| 0), HostClock::Unsteady, "stands still");
    assert_eq!(with(|_, _| u32::MAX), HostClock::NonStandard);
    assert_eq!(with(|_, ms| ms * 2 % 86_400_000), HostClock::Unsteady, "twice as fast");
    assert_eq!(with(|n, _| (n as u32).wrapping_mul(2_654_435_761) >> 6), HostClock::Unsteady, "noise");
    assert_eq!(HostClock::of(&answers(&IDLE, 7)), HostClock::Few);
}

#[test]
fn a_reply_that_leaves_before_its_question_came_is_left_out() {
    let mut some = answers(&IDLE, 50);
    some[49].stamps.transmit -= 5_000;
    let HostClock::Believed(found) = HostClock::of(&some) else { panic!() };
    assert_eq!((found.samples, found.stepped), (49, true));
}

proptest! {
    #[test]
    fn no_stamps_break_it(raw in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>()), 0..40)) {
        let sample = |(sent, at, receive, transmit)| StampSample {
            sent_at: Mono(sent),
            at: Mono(at),
            stamps: HostStamps { receive, transmit },
        };
        let all: Vec<StampSample> = raw.into_iter().map(sample).collect();
        let _ = HostClock::of(&all);
    }

    #[test]
    fn noisy_queues_one_way_are_never_told_of_the_other(
        waits in proptest::collection::vec(0.0_f64..40.0, 40..120),
        zero in 0.0_f64..86_400_000.0,
        back in any::<bool>(),
    ) {
        let mut samples = answers(&Host { zero_ms: zero, ..IDLE }, waits.len());
        for (sample, wait) in samples.iter_mut().zip(&waits) {
            let wait = Span((wait * 1e6) as i64);
            // Later there by as much is the same as sent sooner.
            if back { sample.at += wait } else { sample.sent_at = sample.sent_at - wait }
        }
        if let HostClock::Believed(found) = HostClock::of(&samples) {
            prop_assert!(!if back { found.forward } else { found.reverse }.is_queue(found.resolution), "{:?}", found);
        } else {
            prop_assert!(false, "not believed");
        }
    }
}

/// Delays there and back, ms, read every 100 ms of a host that holds packets for 10 ms.
fn read(delays: &[(i64, i64)]) -> Vec<Reading> {
    let reading = |(n, (forward, reverse)): (i64, &(i64, i64))| Reading {
        sent: n * 100 * MILLI,
        rtt: 50 * MILLI,
        forward: forward * MILLI,
        reverse: reverse * MILLI,
        held: 10 * MILLI,
    };
    (0..).zip(delays).map(reading).collect()
}

#[test]
fn what_is_told_of_queues_is_counted_in_steps_of_the_clock() {
    let span = Span::from_millis;
    let queues = WayQueues {
        forward: WayQueue { median: span(10), p90: span(30), max: span(40) },
        reverse: WayQueue { median: span(0), p90: span(20), max: span(30) },
        resolution: span(10),
        held: span(10),
        drift_ppm: None,
        stepped: true,
        samples: 4,
    };
    let run = read(&[(0, 0), (20, 0), (0, 30), (40, 0)]);
    assert_eq!(HostClock::told(&run, true), HostClock::Believed(queues));
    assert_eq!(HostClock::told(&run, false), HostClock::Believed(WayQueues { stepped: false, ..queues }));
}

#[test]
fn ways_never_free_together_are_ambiguous_beyond_three_steps_and_half_of_what_is_told() {
    // Each way was free once, and both together never.
    let rows = [
        ([(0, 40), (40, 0), (40, 40), (40, 40)], true),
        ([(0, 30), (30, 0), (30, 30), (30, 30)], false),
        ([(0, 40), (40, 0), (60, 60), (60, 60)], true),
        ([(0, 40), (40, 0), (80, 80), (80, 80)], false),
    ];
    for (delays, is_ambiguous) in rows {
        let told = HostClock::told(&read(&delays), false);
        assert_eq!(told == HostClock::Ambiguous, is_ambiguous, "{delays:?}: {told:?}");
    }
}

#[test]
fn of_all_drifts_that_explain_as_much_the_least_is_told() {
    // Packets met no queue at first and 4 ms each way 100 s later: 40 ppm more or less explain as
    // much.
    for (gained, ppm) in [(-10, -60.0), (10, 60.0)] {
        let reading = |sent, forward, reverse| Reading { sent, rtt: 50 * MILLI, forward, reverse, held: 0 };
        let run = [reading(0, 0, 0), reading(100_000 * MILLI, (4 + gained) * MILLI, (4 - gained) * MILLI)];
        let found = drift(&run, Span::from_millis(1)) * 1e6;
        assert!((found - ppm).abs() < 1e-4, "{found} ppm");
        assert_eq!(drift(&run, Span::from_millis(7)).to_bits(), 0.0_f64.to_bits());
    }
}

#[test]
fn a_reading_is_what_the_stamps_say_beyond_the_first_ones() {
    let sample = |sent: u64, at: u64, receive, transmit| StampSample {
        sent_at: Mono(sent * 1_000_000),
        at: Mono(at * 1_000_000),
        stamps: HostStamps { receive, transmit },
    };
    let samples = [
        sample(1_000, 1_020, 500, 501),
        sample(1_100, 1_125, 605, 605),
        // No time of day.
        sample(1_150, 1_170, MILLIS_OF_A_DAY, 655),
        sample(1_160, 1_170, 665, MILLIS_OF_A_DAY),
        // Over midnight.
        sample(1_200, 1_230, 86_399_990, 10),
    ];
    let found: Vec<[i64; 5]> = Reading::all(&samples, |stamp| stamp)
        .iter()
        .map(|it| [it.sent, it.rtt, it.forward, it.reverse, it.held].map(|ns| ns / MILLI))
        .collect();
    assert_eq!(found, [[0, 20, 0, 0, 1], [100, 25, 5, 1, 0], [200, 30, -710, 701, 20]]);
}

#[test]
fn what_one_clock_can_have_shown_ends_where_round_trips_and_drift_do() {
    let reading = |rtt: i64, held: i64| Reading { sent: 0, rtt: rtt * MILLI, forward: 0, reverse: 0, held };
    let possible = [-1, 0, 12 * MILLI, 12 * MILLI + 1].map(|held| reading(10, held).is_possible());
    assert_eq!(possible, [false, true, true, false]);
    // A second apart, a clock may have gained a millisecond, besides the 20 that it may tick by.
    let late = Reading { sent: 1_000 * MILLI, ..reading(10, 0) };
    let (least, most) = (-36 * MILLI, 31 * MILLI);
    for (delay, agrees) in [(least - 1, false), (least, true), (0, true), (most, true), (most + 1, false)] {
        assert_eq!(Reading { forward: delay, ..late }.agrees_with(&reading(15, 0)), agrees, "{delay} there");
        assert_eq!(Reading { reverse: delay, ..late }.agrees_with(&reading(15, 0)), agrees, "{delay} back");
    }
    // The same, asked of the other one.
    assert!(reading(15, 0).agrees_with(&Reading { forward: least, ..late }));
    assert!(!reading(15, 0).agrees_with(&Reading { forward: least - 1, ..late }));
    let half = 43_200_000 * MILLI;
    let days = [half - 1, half, half + 1, -half, -half - 1, 3 * half, 5].map(of_a_day);
    assert_eq!(days, [half - 1, -half, 1 - half, -half, half - 1, -half, 5]);
}

#[test]
fn the_longest_run_is_the_first_of_its_length_and_has_nothing_impossible_in_it() {
    // By the delay there, ms; impossible where the host held it for longer than its round trip.
    let run = |marks: &[Option<i64>]| {
        let reading = |(n, mark): (i64, &Option<i64>)| Reading {
            sent: n * 100 * MILLI,
            rtt: 10 * MILLI,
            forward: mark.unwrap_or(0) * MILLI,
            reverse: 0,
            held: if mark.is_some() { 0 } else { 50 * MILLI },
        };
        let readings: Vec<Reading> = (0..).zip(marks).map(reading).collect();
        let (run, whole) = longest_run(&readings);
        (run.iter().map(|it| it.sent / MILLI / 100).collect::<Vec<_>>(), whole)
    };
    assert_eq!(run(&[Some(0), Some(1), Some(2)]), (vec![0, 1, 2], true));
    assert_eq!(run(&[None, Some(0), Some(1)]), (vec![1, 2], false));
    assert_eq!(run(&[Some(0), Some(1), None, Some(0), Some(1)]), (vec![0, 1], false));
    assert_eq!(run(&[Some(0), None, Some(0), Some(1), Some(2)]), (vec![2, 3, 4], false));
    // Set by a second.
    assert_eq!(run(&[Some(0), Some(1_000), Some(1_001), Some(1_002)]), (vec![1, 2, 3], false));
    assert_eq!(run(&[Some(0), Some(1), None]), (vec![0, 1], false));
    assert_eq!(run(&[]), (vec![], true));
}

#[test]
fn eight_answers_are_enough_if_they_are_more_than_half() {
    let told = |count: usize, which: std::ops::Range<usize>, change: fn(&mut HostStamps)| {
        let mut samples = answers(&IDLE, count);
        samples[which].iter_mut().for_each(|sample| change(&mut sample.stamps));
        HostClock::of(&samples)
    };
    let looked_at = |clock: HostClock| if let HostClock::Believed(found) = clock { found.samples } else { 0 };
    // Answers that left before their questions came are none.
    let early: fn(&mut HostStamps) = |stamps| stamps.transmit -= 5_000;
    assert_eq!(looked_at(told(8, 0..0, early)), 8);
    assert_eq!(looked_at(told(15, 8..15, early)), 8);
    assert_eq!(told(16, 8..16, early), HostClock::Unsteady);
    // One of the two stamps is marked.
    let receive: fn(&mut HostStamps) = |stamps| stamps.receive |= NON_STANDARD;
    let transmit: fn(&mut HostStamps) = |stamps| stamps.transmit |= NON_STANDARD;
    assert_eq!(told(16, 0..8, receive), HostClock::Unsteady);
    assert_eq!(told(17, 0..9, receive), HostClock::NonStandard);
    assert_eq!(told(17, 0..9, transmit), HostClock::NonStandard);
}
