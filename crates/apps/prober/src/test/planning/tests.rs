use super::*;

const ASK: Ask = Ask { rounds: 2, streams: 4, tcp: true, udp: true };
const RTTS_MS: [i64; 6] = [0, 20, 150, 300, 600, 1200];
const RATES: [u64; 7] = [20_000, 64_000, 384_000, 3_000_000, 10_000_000, 100_000_000, 1_000_000_000];

fn millis(ms: i64) -> Span {
    Span::from_millis(ms)
}

fn known(rtt_ms: i64, rate: Option<u64>) -> PathKnown {
    PathKnown { rate: rate.map(SendRate::at_least), ..PathKnown::new(millis(rtt_ms)) }
}

/// All paths of the table, their rate unknown and known.
fn paths() -> impl Iterator<Item = PathKnown> {
    let rates = [None].into_iter().chain(RATES.map(Some));
    rates.flat_map(|rate| RTTS_MS.map(|rtt| known(rtt, rate)))
}

fn steps(known: PathKnown, extent: Extent, count: usize) -> Vec<Step> {
    vec![Step { known, extent }; count]
}

/// Runs a plan on a path that behaves as the plan believes, and returns how long it took.
fn run_through(ask: Ask, plan: &Plan, known: &PathKnown, lanes: usize, left: Span) -> Span {
    let legs = usize::from(plan.rounds) * lanes * 2;
    let mut spent = idle_time(&vec![*known; lanes], plan.blocks);
    for leg in 0..legs {
        let ahead = steps(*known, plan.extent, legs - leg);
        let given = durations(ask, &ahead, left.max(plan.takes) - spent);
        spent += given.iter().map(|(phase, duration)| *duration + phase.overhead(known)).sum::<Span>();
    }
    spent
}

#[test]
fn a_plan_takes_what_it_says_on_every_path() {
    for known in paths() {
        for lanes in [1, 2] {
            for seconds in [5, 15, 60, 300] {
                let left = Span::from_secs(seconds);
                let plan = plan(ASK, &vec![known; lanes], left);
                let took = run_through(ASK, &plan, &known, lanes, left);
                let what = format!("{known:?}, {lanes} lanes, {left}: {plan:?} took {took}");
                assert!((took - plan.takes).abs() < millis(1), "{what}");
                assert!(plan.takes >= left && plan.takes >= plan.cost, "{what}");
                assert!(plan.takes == left || plan.takes == plan.cost, "{what}");
                assert!((1..=ASK.rounds).contains(&plan.rounds) && (1..=8).contains(&plan.blocks), "{what}");
            }
        }
    }
}

#[test]
fn what_is_said_to_be_enough_is_enough() {
    for known in paths() {
        let paths = [known, known];
        let enough = plan(ASK, &paths, Span::from_secs(15)).whole;
        let whole = plan(ASK, &paths, enough);
        assert_eq!((whole.rounds, whole.extent), (2, Extent::Whole), "{known:?}: {enough}");
        assert_eq!(whole.takes, enough, "{known:?}");
        // And where each end of TCP comes a quarter of a second late, with a tenth in hand.
        let advised = plan(ASK, &paths, Span::from_secs(15)).enough;
        assert!(advised >= enough * 11 / 10 + Span::from_secs(4), "{known:?}: {advised}");
    }
}

#[test]
fn tcp_has_the_time_that_slow_start_needs_on_every_path() {
    for known in paths() {
        for (seconds, streams) in [(15, 1), (15, 4), (60, 4)] {
            let ask = Ask { streams, ..ASK };
            let left = Span::from_secs(seconds);
            let plan = plan(ask, &[known], left);
            let ahead = steps(known, plan.extent, usize::from(plan.rounds) * 2);
            for (phase, duration) in durations(ask, &ahead, plan.takes) {
                let streams = match phase {
                    Phase::OneStream => 1,
                    Phase::SeveralStreams => streams,
                    Phase::Udp => continue,
                };
                let needed = slow_start(&known, streams) + known.round_trip * 5;
                assert!(duration >= needed.max(SHORTEST), "{known:?} {phase:?} {duration} < {needed}");
            }
        }
    }
}

#[test]
fn slow_start_doubles_from_ten_segments_to_the_product() {
    // 10 Mbit/s and 300 ms are 375 kB, 26 times ten segments: five doublings.
    assert_eq!(slow_start(&known(300, Some(10_000_000)), 1), millis(1500));
    // Four streams begin with four times as much.
    assert_eq!(slow_start(&known(300, Some(10_000_000)), 4), millis(900));
    assert_eq!(slow_start(&known(20, Some(20_000)), 1), Span::ZERO, "the first window fills it");
    let bound = PathKnown { is_lower_bound: true, ..known(300, Some(10_000_000)) };
    assert_eq!(slow_start(&bound, 1), millis(2100), "a path that may be faster has two doublings more");
    assert_eq!(slow_start(&known(1200, Some(1_000_000_000)), 1), millis(10_800), "buffers end it");
}

#[test]
fn a_short_path_has_everything_in_fifteen_seconds() {
    for rtt in [0, 5, 15] {
        let plan = plan(ASK, &[known(rtt, None); 2], Span::from_secs(15) - set_up(&[known(rtt, None); 2]));
        assert_eq!((plan.rounds, plan.extent, plan.blocks), (2, Extent::Whole, 8), "{rtt} ms: {plan:?}");
    }
}

#[test]
fn a_long_path_has_fewer_rounds_and_then_fewer_phases() {
    let chosen = |rtt, lanes, seconds| {
        let plan = plan(ASK, &vec![known(rtt, None); lanes], Span::from_secs(seconds));
        (plan.rounds, plan.extent)
    };
    assert_eq!(chosen(60, 2, 15), (1, Extent::Whole));
    assert_eq!(chosen(300, 1, 15), (1, Extent::SeveralStreams));
    assert_eq!(chosen(300, 1, 20), (1, Extent::WithoutOneStream));
    assert_eq!(chosen(300, 1, 32), (1, Extent::Whole));
    assert_eq!(chosen(1200, 2, 15), (1, Extent::SeveralStreams), "never less than that");
    assert_eq!(chosen(300, 2, 300), (2, Extent::Whole));
}

#[test]
fn a_tiny_budget_on_a_short_path_still_has_every_phase_once() {
    for rtt in [0, 20] {
        let plan = plan(ASK, &[known(rtt, None); 2], Span::from_secs(1));
        assert_eq!((plan.rounds, plan.extent), (1, Extent::Whole));
        assert!(plan.takes < Span::from_secs(12), "{rtt} ms: {plan:?}");
    }
}

#[test]
fn spare_time_is_shared_as_turns_are() {
    let near = known(0, None);
    let given = durations(ASK, &steps(near, Extent::Whole, 1), Span::from_secs(11));
    let of = |phase| given.iter().find(|it| it.0 == phase).unwrap().1.secs_f64();
    let sum: f64 = [Phase::OneStream, Phase::SeveralStreams, Phase::Udp].map(of).iter().sum();
    for (phase, share) in [(Phase::OneStream, 0.25), (Phase::SeveralStreams, 0.55), (Phase::Udp, 0.2)] {
        assert!((of(phase) / sum - share).abs() < 1e-6, "{phase:?}: {given:?}");
    }
}

#[test]
fn without_tcp_udp_stays_and_without_both_nothing_is_shared() {
    let udp_alone = Ask { tcp: false, ..ASK };
    let far = known(1200, None);
    let plan_of = plan(udp_alone, &[far, far], Span::from_secs(15));
    assert_eq!(plan_of.extent.phases(udp_alone), [Phase::Udp]);
    assert_eq!(plan_of.extent.left_out(udp_alone), None);
    let neither = Ask { udp: false, ..udp_alone };
    let plan_of = plan(neither, &[far, far], Span::from_secs(15));
    assert!(plan_of.takes < Span::from_secs(12), "{plan_of:?}");
    assert!(durations(neither, &steps(far, Extent::Whole, 1), Span::from_secs(9)).is_empty());
}

#[test]
fn a_queue_that_was_seen_to_drain_is_planned_for() {
    let path = known(300, Some(10_000_000));
    let deep = PathKnown { drain: Some(drain(&path, millis(60 + 1500 + 1200))), ..path };
    assert_eq!(deep.drain, Some(millis(1200)));
    let cost = |known: &PathKnown| Extent::SeveralStreams.direction_cost(ASK, known);
    assert_eq!(cost(&deep) - cost(&path), millis(900), "before, it was taken for a round trip");
    let ahead = [deep, path].map(|known| Step { known, extent: Extent::SeveralStreams });
    assert_eq!(needed(ASK, &ahead), cost(&deep) + cost(&path));
    let near = Step { known: known(50, None), ..ahead[0] };
    assert!(are_near(&[near]) && !are_near(&[near, ahead[1]]));
}

#[test]
fn one_end_that_was_late_does_not_plan_all_others_as_late() {
    let mut path = known(20, Some(10_000_000));
    let usual = millis(60) + path.round_trip * 5;
    assert!(!learn_drain(&mut path, usual + millis(3700)));
    assert_eq!(path.drain, Some(millis(1000)));
    assert!(learn_drain(&mut path, usual + millis(200)));
    assert_eq!(path.drain, Some(millis(500)), "it is forgotten by halves");
    // A path of 20 kbit/s has a queue that drains for ten of its round trips.
    let mut slow = known(1100, Some(20_000));
    assert!(learn_drain(&mut slow, millis(60 + 5 * 1100 + 9000)));
    assert_eq!(slow.drain, Some(millis(9000)));
    // A queue of three seconds is there every time.
    let mut deep = known(20, Some(10_000_000));
    for drained in [1000, 3000] {
        learn_drain(&mut deep, usual + millis(3000));
        assert_eq!(deep.drain, Some(millis(drained)));
    }
}

#[test]
fn two_rounds_that_never_leave_slow_start_are_not_preferred_to_one_that_does() {
    let paths = [known(30, None); 2];
    let left = Span::from_secs(15) - set_up(&paths);
    let asked = plan(ASK, &paths, left);
    assert_eq!((asked.rounds, asked.extent), (1, Extent::Whole), "{asked:?}");
    // With the time that is said to be enough, each transfer of two rounds has time to warm up.
    let whole = plan(ASK, &paths, asked.whole);
    assert_eq!(whole.rounds, 2);
    let legs = steps(known(30, None), whole.extent, 8);
    let left = asked.whole - idle_time(&paths, whole.blocks);
    for (phase, duration) in durations(ASK, &legs, left) {
        assert!(duration >= phase.well(ASK, &legs[0].known), "{phase:?} {duration}");
    }
}

#[test]
fn after_a_transfer_that_never_warmed_up_the_next_one_has_twice_its_time() {
    let lasted = millis(900);
    let cold = PathKnown { warm_up: [None, Some(WarmUp::NotOver(lasted))], ..known(30, Some(10_000_000)) };
    assert_eq!(Phase::SeveralStreams.prolonged(ASK, &cold, lasted), lasted);
    assert_eq!(Phase::OneStream.prolonged(ASK, &cold, lasted), Span::ZERO);
    let given = durations(ASK, &steps(cold, Extent::Whole, 1), Span::from_secs(9));
    assert!(given.iter().all(|(phase, duration)| *duration >= phase.well(ASK, &cold)), "{given:?}");
    assert!(Phase::SeveralStreams.well(ASK, &cold) == lasted * 2);
    let warm = PathKnown { warm_up: [None, Some(WarmUp::Took(lasted))], ..cold };
    assert_eq!(Phase::SeveralStreams.prolonged(ASK, &warm, lasted), Span::ZERO);
    assert_eq!(Phase::SeveralStreams.well(ASK, &warm), lasted * 2, "as much is measured as is left out");
}

#[test]
fn a_second_round_is_run_where_its_transfers_add_something_and_not_for_their_length_alone() {
    // What a cable modem with a full queue shows in the first round.
    let seen = |warm_up| PathKnown {
        rate: Some(SendRate::at_least(57_000_000)),
        drain: Some(millis(100)),
        warm_up: [Some(warm_up); 2],
        ..known(18, None)
    };
    let later = |known: PathKnown, left: i64| later_rounds(ASK, &[], &[vec![known; 4]], millis(left));
    let warm = seen(WarmUp::Took(millis(600)));
    let whole = Extent::Whole.direction_useful(ASK, &warm) * 4;
    assert_eq!(later(warm, whole.0 / 1_000_000 + 1), Later { rounds: 1, extent: Extent::Whole });
    assert_eq!(later(warm, 4600), Later { rounds: 1, extent: Extent::WithoutOneStream });
    assert_eq!(later(warm, 2500), Later { rounds: 1, extent: Extent::SeveralStreams });
    assert_eq!(later(warm, 1000).rounds, 0, "not even that");
    // Transfers that were still speeding up have half as much time again in it, or it is a part.
    let cold = seen(WarmUp::NotOver(millis(600)));
    assert_eq!(later(cold, 5100), Later { rounds: 1, extent: Extent::SeveralStreams });
    // What is left at the end of the first round is used; before, it is worth more there.
    assert_eq!(later(cold, 2500), Later { rounds: 1, extent: Extent::SeveralStreams });
    let before = steps(cold, Extent::Whole, 1);
    let before_end = needed(ASK, &before) + millis(2500);
    assert_eq!(later_rounds(ASK, &before, &[vec![cold; 4]], before_end).rounds, 0);
    // Of several the first ones are kept whole.
    let rounds = vec![vec![warm; 4]; 3];
    assert_eq!(later_rounds(ASK, &[], &rounds, whole * 5 / 2), Later { rounds: 2, extent: Extent::Whole });
    assert_eq!(later_rounds(ASK, &[], &[], Span::from_secs(60)).rounds, 0);
}

#[test]
fn a_path_without_a_flow_of_datagrams_has_no_time_for_udp() {
    let blocked = PathKnown { has_udp: false, ..known(24, None) };
    let with = plan(ASK, &[known(24, None); 2], Span::from_secs(15));
    let without = plan(ASK, &[blocked; 2], Span::from_secs(15));
    assert!(without.whole < with.whole - Span::from_secs(6), "{without:?} {with:?}");
    assert_eq!((without.rounds, with.rounds), (2, 1), "its time is TCP's");
    let given = durations(ASK, &steps(blocked, Extent::Whole, 1), Span::from_secs(5));
    assert_eq!(given.iter().map(|it| it.0).collect::<Vec<_>>(), [Phase::OneStream, Phase::SeveralStreams]);
}

#[test]
fn a_test_does_not_say_three_times_how_long_it_takes() {
    let second = Span::from_secs(1);
    let first =
        Promise { ends: second * 16, fills: second * 16, announced: second * 16, tolerance: second, said: 1 };
    assert_eq!(first.judge(second * 10, second * 7, Span::ZERO, true), Rest::Fits);
    let Rest::Takes(next) = first.judge(second * 12, second * 8, Span::ZERO, true) else { panic!() };
    assert_eq!((next.ends, next.said), (second * 20, 2), "transfers do not fill the margin");
    // After an outage one version had transfers of 1.7 s and the other one of 0.3 s.
    assert_eq!(next.fills, first.fills, "nor the time that something else took");
    assert_eq!(next.announced, second * 22, "with a quarter of the rest in hand");
    assert_eq!(next.judge(second * 20, second * 3, Span::ZERO, true), Rest::Fits);
    assert_eq!(next.judge(second * 20, second * 4, Span::ZERO, true), Rest::TooLong);
    // TCP with several streams is what a test is for.
    // What ends of transfers have taken beyond the plan so far is in hand as well.
    let Rest::Takes(late) = first.judge(second * 12, second * 8, second * 5, true) else { panic!() };
    assert_eq!(late.announced, next.announced + second * 5);
    let Rest::Takes(third) = next.judge(second * 20, second * 4, Span::ZERO, false) else { panic!() };
    assert_eq!(third.announced, second * 25);
    // What a phase has announced by itself counts as well, and transfers do not fill it.
    assert_eq!(first.or_announced(second * 17), first);
    assert_eq!(first.or_announced(second * 20), Promise { announced: second * 20, said: 2, ..first });
}

#[test]
fn exchanges_that_lose_segments_are_not_planned_as_round_trips() {
    let paths = [known(120, None); 2];
    assert_eq!(late_after_set_up(&paths, set_up(&paths) * 5 / 4), Span::ZERO, "hosts vary");
    let late = late_after_set_up(&paths, set_up(&paths) * 3 / 2 + millis(1600));
    assert_eq!(late, millis(500), "five of eight round trips of 800 ms in all");
    assert_eq!(late_after_set_up(&paths, Span::from_secs(60)), Span::from_secs(1));
    let lossy = PathKnown { late, ..paths[0] };
    let cost = |known: &PathKnown| Phase::Udp.overhead(known);
    assert_eq!(cost(&lossy) - cost(&paths[0]), late);
    assert_eq!(super::late(&lossy, cost(&paths[0]) + millis(700)), millis(700));
    assert!(Phase::OneStream.overhead(&lossy) > Phase::OneStream.overhead(&paths[0]));
}

const LARGE: Datagram = Datagram { payload: 1472, headers: 28 };

fn rate(bits: u64) -> Option<SendRate> {
    SendRate::new(BitRate(bits))
}

#[test]
fn tcp_that_reached_nothing_does_not_let_udp_run_without_a_limit() {
    let nothing = Carried { had_tcp: true, tcp: rate(0), tcp_mean: rate(0), ..Carried::default() };
    for echoes in [None, rate(100_000)] {
        let decided = udp_rate(&Carried { echoes, ..nothing }, LARGE);
        assert!(matches!(decided, UdpRate::LeftOut(_)), "{decided:?}");
    }
}

#[test]
fn udp_runs_at_eighty_percent_of_what_tcp_carried_and_never_above_what_was_seen() {
    for seen in RATES {
        let tcp = Carried { had_tcp: true, tcp: rate(seen), tcp_mean: rate(seen / 2), ..Carried::default() };
        assert_eq!(udp_rate(&tcp, LARGE), UdpRate::At(SendRate::at_least(seen / 100 * 80)));
        let only_mean = Carried { tcp: None, ..tcp };
        assert_eq!(udp_rate(&only_mean, LARGE), UdpRate::At(SendRate::at_least(seen / 2 / 100 * 80)));
        let echoes = Carried { echoes: rate(seen), ..Carried::default() };
        assert_eq!(udp_rate(&echoes, LARGE), UdpRate::At(SendRate::at_least(seen.min(1_000_000))));
        for payload in [24, 64, 300, 1472] {
            let UdpRate::At(rate) = udp_rate(&tcp, Datagram { payload, headers: 48 }) else { panic!() };
            let on_link = rate.bit_rate().0 as f64 * f64::from(payload + 48) / f64::from(payload);
            assert!(on_link <= 1.25 * seen as f64, "{payload} B: {on_link} of {seen}");
        }
    }
}

#[test]
fn a_stream_that_overfilled_the_path_is_not_sent_again() {
    // A token bucket's credit let TCP look faster than the path is for long.
    let burst = Carried { had_tcp: true, tcp: rate(300_000_000), ..Carried::default() };
    let again = Carried { lossy_udp: rate(10_000_000), ..burst };
    assert_eq!(udp_rate(&burst, LARGE), UdpRate::At(SendRate::at_least(240_000_000)));
    assert_eq!(udp_rate(&again, LARGE), UdpRate::At(SendRate::at_least(10_000_000)));
}

#[test]
fn a_typed_rate_is_taken_as_it_is() {
    let typed =
        Carried { typed: rate(50_000_000), had_tcp: true, tcp: rate(1_000_000), ..Carried::default() };
    assert_eq!(udp_rate(&typed, LARGE), UdpRate::At(SendRate::at_least(50_000_000)));
}

/// A path that serves a request each `service` and is idle otherwise.
fn answers(block: Block, rtt: Span, service: Span) -> Vec<f64> {
    let mut free = 0.0_f64;
    (0..block.count)
        .map(|n| {
            let at = block.spacing.nanos() as f64 * n as f64;
            free = free.max(at) + service.nanos() as f64;
            free - at + rtt.nanos() as f64
        })
        .collect()
}

#[test]
fn idle_requests_close_up_to_two_hundred_on_a_path_that_carries_them() {
    for blocks in [1, 2, 3, 8] {
        let mut rhythm = IdleRhythm::new();
        let mut time = Span::ZERO;
        for ahead in (1..=blocks).rev() {
            let block = rhythm.next(ahead, blocks);
            time += block.spacing * block.count.cast_signed();
            rhythm.observe(block, &answers(block, millis(20), Span::from_micros(100)));
        }
        assert!(time <= IDLE_SENDING + millis(200), "{blocks} blocks: {time}");
        assert!(rhythm.asked == 200 || blocks < 4, "{blocks} blocks: {}", rhythm.asked);
        assert!(rhythm.asked >= 20, "{blocks} blocks: {}", rhythm.asked);
    }
}

#[test]
fn idle_requests_do_not_fill_a_slow_path() {
    // 92 bytes take 37 ms at 20 kbit/s, 11.5 ms at 64 kbit/s.
    for (service, least) in [(millis(37), millis(40)), (Span::from_micros(11_500), Span::from_micros(11_500))]
    {
        let mut rhythm = IdleRhythm::new();
        let mut queued = 0;
        let mut last = rhythm.next(8, 8);
        for ahead in (1..=8).rev() {
            last = rhythm.next(ahead, 8);
            let rtts = answers(last, millis(200), service);
            queued += usize::from(rtts[rtts.len() - 1] > rtts[0] * 1.1 + millis(40).nanos() as f64);
            rhythm.observe(last, &rtts);
        }
        assert!(queued <= 1, "{service}: {queued} blocks stood in their own queue");
        assert!(last.spacing >= least, "{service}: {last:?}");
        let carried = rhythm.carried(64).unwrap();
        assert!(carried <= SendRate::at_least(64 * 8 * 1000 / 12), "{service}: {carried}");
    }
}

/// 24 requests each 50 ms were all on their way before the first of them came back, over 8 kbit/s.
#[test]
fn a_path_that_was_seen_to_be_slow_gets_no_block_at_the_usual_distance() {
    let (round_trip, service) = (millis(1180), millis(92));
    let mut rhythm = IdleRhythm::new();
    rhythm.begin_at(service);
    for ahead in [2, 1] {
        let block = rhythm.next(ahead, 2);
        assert!(block.spacing * 5 >= service * 4, "{block:?}");
        let rtts = answers(block, round_trip, service);
        assert!(rtts[rtts.len() - 1] < rtts[0] * 1.01, "{block:?}");
        rhythm.observe(block, &rtts);
    }
    // A path that lets them through at once goes on as it did.
    let mut quick = IdleRhythm::new();
    quick.begin_at(Span::from_micros(60));
    assert_eq!(quick.next(8, 8), IdleRhythm::new().next(8, 8));
    assert_eq!((quick.slowly_served(), rhythm.slowly_served()), (None, Some(service)));
}

/// One pause of the path lowered the rate of UDP for the whole test.
#[test]
fn a_pause_of_the_path_does_not_lower_the_rate_that_idle_requests_were_carried_at() {
    let mut rhythm = IdleRhythm::new();
    for ahead in (5..=8).rev() {
        let block = rhythm.next(ahead, 8);
        rhythm.observe(block, &answers(block, millis(20), Span::from_micros(100)));
    }
    // The path stands still for 80 ms when the 26th request comes.
    let held_up = |n: i32| if n < 25 { 0 } else { (80 - 5 * (n - 25)).max(0) };
    let paused: Vec<f64> = (0..40).map(|n| f64::from(20 + held_up(n)) * 1e6).collect();
    rhythm.observe(Block { count: 40, spacing: IDLE_SPACING }, &paused);
    assert_eq!(rhythm.carried(64), SendRate::new(BitRate(64 * 8 * 200)));
    assert_eq!(rhythm.next(3, 8).spacing, IDLE_SPACING);
}

/// A path of 20 Mbit/s that fell to 20 kbit/s: UDP ran at the rate of the requests before the fall.
#[test]
fn a_path_that_fell_lowers_the_rate_that_idle_requests_were_carried_at() {
    let closed_up = || {
        let mut rhythm = IdleRhythm::new();
        for ahead in (5..=8).rev() {
            let block = rhythm.next(ahead, 8);
            rhythm.observe(block, &answers(block, millis(20), Span::from_micros(100)));
        }
        assert_eq!(rhythm.carried(64), SendRate::new(BitRate(64 * 8 * 200)));
        rhythm
    };
    let mut rhythm = closed_up();
    let block = rhythm.next(4, 8);
    rhythm.observe(block, &answers(block, millis(20), millis(37)));
    assert_eq!(rhythm.carried(64), SendRate::new(BitRate(64 * 8 * 1000 / 37)));
    assert_eq!(rhythm.next(3, 8).spacing, millis(37) * 5 / 4);
    // A short queue drops what the path does not carry, and no round trip grows.
    let mut rhythm = closed_up();
    rhythm.observe(Block { count: 40, spacing: IDLE_SPACING }, &[20e6; 10]);
    assert_eq!(rhythm.carried(64), SendRate::new(BitRate(64 * 8 * 50)));
    // An outage says nothing of the rate.
    let mut rhythm = closed_up();
    rhythm.observe(Block { count: 40, spacing: IDLE_SPACING }, &[]);
    assert_eq!(rhythm.carried(64), SendRate::new(BitRate(64 * 8 * 200)));
}
