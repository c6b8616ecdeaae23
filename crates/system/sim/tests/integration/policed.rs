//! Paths whose losses or order mislead methods: policers before fast links, links that take turns,
//! a path that is gone for a moment.

use netaware_netmodel::Scenario;
use netaware_path::{Bound, Flag, Instrument, NoFigure, RateMethod};
use netaware_sim::cells::FROM;
use netaware_sim::{Concluded, HostNoise, VolleyPath, conclude};
use netaware_units::Span;

const AVAILABLE: [RateMethod; 5] =
    [RateMethod::Available, RateMethod::Curve, RateMethod::Slops, RateMethod::Chirp, RateMethod::Spruce(1e9)];
const CAPACITY: [RateMethod; 3] = [RateMethod::Capacity, RateMethod::Bulk, RateMethod::Pathrate];

fn run(hops: &str, method: RateMethod, rtt: Span, limit: Span, seed: u64) -> Concluded {
    let host = Instrument {
        largest: 1500,
        smallest: 200,
        rtt,
        send_gap: Span::from_micros(2),
        send_error: Span(300),
        receive_error: Span(500),
        largest_burst: 200_000,
        max_load: 0.1,
        time_limit: limit,
        carried: None,
    };
    let noise = HostNoise {
        send_gap: Span::from_micros(2),
        send_error: Span(300),
        receive_error: Span(500),
        ..HostNoise::default()
    };
    let scenario = Scenario::parse(&format!("about = 'a path that misleads'\n{hops}")).unwrap();
    let mut path = VolleyPath::new(&scenario, FROM, seed, noise);
    let ended = conclude(&mut path, &mut method.careful(&host, 1), rtt, |_, _| {});
    let took = ended.took.secs_f64();
    let load = ended.bytes() as f64 * 8e-6 / took;
    match &ended.conclusion {
        Ok(it) => println!(
            "{method:?} {seed}: {took:.1} s, load {load:.2}, {:?} {:.2} ({:.2} .. {:.2}) {:?}",
            it.bound,
            it.rate.estimate / 1e6,
            it.rate.lo / 1e6,
            it.rate.hi / 1e6,
            it.flags
        ),
        Err(why) => println!("{method:?} {seed}: {took:.1} s, load {load:.2}, {why:?}"),
    }
    ended
}

#[test]
fn behind_a_policer_the_rate_of_its_link_is_no_figure() {
    for (rate, burst) in [(25e6, "60kB"), (40e6, "250kB"), (100e6, "100kB"), (50e6, "1MB")] {
        let hops = format!(
            "[[hop]]\nrate = '1Gbit/s'\ndelay = '4ms'\n\
             bucket = {{ kind = 'policer', rate = '{}bit/s', burst = '{burst}' }}\n\
             [[hop]]\nrate = '1Gbit/s'\ndelay = '4ms'\n",
            rate as u64
        );
        println!("{} Mbit/s, {burst}", rate / 1e6);
        let (mut figures, mut named, mut best) = (0, 0, 0.0_f64);
        for method in AVAILABLE.into_iter().chain(CAPACITY) {
            for seed in 0..2 {
                let ended = run(&hops, method, Span::from_millis(16), Span::from_secs(30), seed);
                let answer = match &ended.conclusion {
                    Ok(answer) => answer,
                    Err(why) => {
                        assert!(
                            matches!(why, NoFigure::Policed { .. }),
                            "{method:?}, {rate}, {burst}: {why:?}"
                        );
                        named += 1;
                        continue;
                    }
                };
                let row = format!("{method:?}, {rate}, {burst}: {answer:?}");
                figures += 1;
                named += u32::from(answer.flags.iter().any(|flag| matches!(flag, Flag::Policed { .. })));
                best = best.max(answer.rate.lo);
                let is_told = answer.flags.iter().any(|flag| {
                    matches!(
                        flag,
                        Flag::Policed { .. } | Flag::Shaped { .. } | Flag::Ambiguous | Flag::Lossy(_)
                    )
                });
                assert!(is_told, "{row}");
                match answer.bound {
                    Bound::None => assert!((answer.rate.estimate / rate - 1.0).abs() < 0.2, "{row}"),
                    Bound::AtLeast => {
                        assert!(
                            answer.rate.estimate <= rate * 1.01 && answer.rate.lo <= rate * 1.01,
                            "{row}"
                        );
                        assert!(answer.rate.lo >= rate * 0.01, "a bound that says nothing: {row}");
                    }
                    Bound::AtMost => assert!(answer.rate.hi >= rate, "{row}"),
                }
            }
        }
        assert!(figures >= 12 && named >= 1, "{rate}, {burst}: {figures} figures, {named} times a policer");
        // A credit that lets most trains pass leaves hardly a loss to reckon by.
        assert!(burst == "60kB" || best >= rate * 0.5, "{rate}, {burst}: {best} at best");
    }
}

#[test]
fn losses_by_chance_while_the_credit_lasts_do_not_raise_what_is_said_to_last() {
    let hops = "[[hop]]\nrate = '1Gbit/s'\ndelay = '4ms'\n\
                bucket = { kind = 'policer', rate = '25Mbit/s', burst = '60kB' }\n\
                [[hop]]\nrate = '1Gbit/s'\ndelay = '4ms'\nloss = 0.005\n";
    let mut answers = 0;
    for method in AVAILABLE.into_iter().chain(CAPACITY) {
        for seed in 0..4 {
            let ended = run(hops, method, Span::from_millis(16), Span::from_secs(30), seed);
            let lasts = match &ended.conclusion {
                Ok(answer) if answer.bound == Bound::AtLeast => answer.rate.lo,
                Ok(answer) if answer.bound == Bound::None => answer.rate.estimate,
                Err(NoFigure::Policed { lasts, .. }) => *lasts,
                _ => continue,
            };
            answers += 1;
            assert!(lasts < 25e6 * 1.25, "{method:?}, {seed}: {:?}", ended.conclusion);
        }
    }
    assert!(answers > 8, "{answers} of 32");
}

#[test]
fn the_load_behind_a_policer_is_that_of_what_lasts() {
    // Its credit lets each train pass, and together they would be half of what lasts.
    let hops = "[[hop]]\nrate = '1Gbit/s'\ndelay = '8ms'\n\
                bucket = { kind = 'policer', rate = '40Mbit/s', burst = '250kB' }\n";
    let ended = run(hops, RateMethod::Available, Span::from_millis(16), Span::from_secs(30), 1);
    let load = ended.bytes() as f64 * 8.0 / ended.took.secs_f64();
    assert!(load < 0.15 * 40e6, "{load}");
    let answer = ended.conclusion.unwrap();
    assert!(answer.flags.iter().any(|flag| matches!(flag, Flag::Policed { .. })), "{answer:?}");
    assert!(answer.bound == Bound::AtLeast && answer.rate.lo > 0.5 * 40e6, "{answer:?}");
}

#[test]
fn loss_by_chance_and_a_queue_that_is_too_short_are_no_policer() {
    let rows = [
        "[[hop]]\nrate = '20Mbit/s'\ndelay = '10ms'\nloss = 0.01\n",
        "[[hop]]\nrate = '20Mbit/s'\ndelay = '10ms'\nloss = 0.03\n",
        "[[hop]]\nrate = '20Mbit/s'\ndelay = '10ms'\nloss = 0.1\n",
        "[[hop]]\nrate = '20Mbit/s'\ndelay = '10ms'\nloss = 0.3\n",
        "[[hop]]\nrate = '10Mbit/s'\ndelay = '10ms'\nqueue = { packets = 5 }\n",
        "[[hop]]\nrate = '100Mbit/s'\ndelay = '10ms'\nqueue = { packets = 20 }\n",
        "[[hop]]\nrate = '1Mbit/s'\ndelay = '10ms'\nqueue = { packets = 3 }\n",
    ];
    let mut wrong = Vec::new();
    for hops in rows {
        println!("{hops}");
        for method in AVAILABLE.into_iter().chain(CAPACITY) {
            for seed in 0..3 {
                let ended = run(hops, method, Span::from_millis(20), Span::from_secs(30), seed);
                let is_policed = match &ended.conclusion {
                    Ok(answer) => answer.flags.iter().any(|flag| matches!(flag, Flag::Policed { .. })),
                    Err(why) => matches!(why, NoFigure::Policed { .. }),
                };
                // One packet of a hundred is no reason for having no figure.
                let is_usual = !matches!(method, RateMethod::Chirp | RateMethod::Spruce(_));
                let is_known = ended.conclusion.as_ref().is_ok_and(|answer| {
                    answer.bound == Bound::None && (answer.rate.estimate / 20e6 - 1.0).abs() < 0.05
                });
                let is_light = hops.contains("loss = 0.01\n");
                let is_gone = match &ended.conclusion {
                    Ok(answer) => answer.flags.iter().any(|flag| matches!(flag, Flag::Interrupted { .. })),
                    Err(why) => matches!(why, NoFigure::Interrupted { .. }),
                };
                let is_missing = is_light && is_usual && !is_known;
                if is_policed || is_gone || is_missing {
                    wrong.push(format!("{method:?}, {seed}, {hops}: {:?}", ended.conclusion));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_links_that_take_turns_are_no_path_that_became_slower() {
    let hops = "[[hop]]\nrate = '1Gbit/s'\ndelay = '500us'\n[[hop]]\nrate = '30Mbit/s'\ndelay = '10ms'\n\
                members = { count = 2, balance = 'packet', delay_step = '7ms' }\nqueue = { bytes = '120kB' }\n";
    for method in AVAILABLE.into_iter().chain(CAPACITY) {
        for seed in 0..4 {
            let ended = run(hops, method, Span::from_millis(28), Span::from_secs(30), seed);
            match &ended.conclusion {
                Ok(answer) => {
                    let fell = answer.flags.iter().any(|flag| matches!(flag, Flag::Slower { .. }));
                    assert!(!fell, "{method:?}, {seed}: {answer:?}");
                }
                Err(why) => assert!(!matches!(why, NoFigure::Slower { .. }), "{method:?}, {seed}: {why:?}"),
            }
        }
    }
}

#[test]
fn jitter_that_keeps_the_order_is_no_path_that_became_slower() {
    // A packet that is held up holds up those behind it, and all come at once then.
    let hops = "[[hop]]\nrate = '20Mbit/s'\ndelay = '25ms'\nqueue = { time = '400ms' }\n\
                jitter = { distribution = 'exponential', mean = '15ms', max = '60ms' }\n\
                [[hop]]\nrate = '1Gbit/s'\ndelay = '200us'\n";
    let mut figures = 0;
    for method in AVAILABLE.into_iter().chain(CAPACITY) {
        for seed in 0..4 {
            let ended = run(hops, method, Span::from_millis(65), Span::from_secs(30), seed);
            match &ended.conclusion {
                Ok(answer) => {
                    figures += 1;
                    let fell = answer.flags.iter().any(|flag| matches!(flag, Flag::Slower { .. }));
                    assert!(!fell, "{method:?}, {seed}: {answer:?}");
                }
                Err(why) => assert!(!matches!(why, NoFigure::Slower { .. }), "{method:?}, {seed}: {why:?}"),
            }
        }
    }
    assert!(figures > 4, "{figures} of 32");
}

#[test]
fn a_path_that_does_become_slower_is_told_as_such() {
    let hops = "[[hop]]\ndelay = '15ms'\nqueue = { time = '100ms' }\n\
                rate = [{ at = '0s', value = '60Mbit/s' }, { at = '4s', value = '6Mbit/s' }]\n";
    let (mut told, mut asked) = (0, 0);
    // The others are content before that, or send trains too short to see it.
    for method in [RateMethod::Slops, RateMethod::Chirp] {
        let ended = run(hops, method, Span::from_millis(30), Span::from_secs(30), 1);
        asked += 1;
        told += u32::from(match &ended.conclusion {
            Ok(answer) => answer.flags.iter().any(|it| matches!(it, Flag::Slower { .. } | Flag::PathChanged)),
            Err(why) => matches!(why, NoFigure::Slower { .. } | NoFigure::PathChanged),
        });
    }
    assert!(told == asked, "{told} of {asked}");
}

#[test]
fn a_path_that_is_gone_for_a_moment_has_a_figure_or_says_that_it_was_gone() {
    for at in ["700ms", "1500ms", "2300ms", "2500ms", "2700ms", "3100ms", "3500ms", "3900ms"] {
        // Once, and again and again.
        let every = if at == "700ms" { ", every = '2s'" } else { "" };
        let hops = format!(
            "[[hop]]\nrate = '20Mbit/s'\ndelay = '1ms'\nqueue = {{ time = '50ms' }}\n\
             outages = [{{ at = '{at}', for = '300ms'{every} }}]\n"
        );
        println!("{at}");
        for method in AVAILABLE.into_iter().chain(CAPACITY) {
            for seed in 0..3 {
                let ended = run(&hops, method, Span::from_millis(2), Span::from_secs(6), seed);
                let row = format!("{method:?}, {at}, {seed}: {:?}", ended.conclusion);
                match &ended.conclusion {
                    Ok(answer) => {
                        let too_low = answer.bound == Bound::AtLeast && answer.rate.lo < 10e6;
                        assert!(!too_low, "{row}");
                        assert!(answer.bound != Bound::None || answer.rate.contains(20e6), "{row}");
                    }
                    Err(why) => assert!(matches!(why, NoFigure::Interrupted { .. }), "{row}"),
                }
            }
        }
    }
}
