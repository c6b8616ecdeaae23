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
