//! Per-hop figures over paths whose truth is written down: capacities with their intervals, hidden
//! devices, silent and rationed routers, changes, MTUs, choke points.

use netaware_path::hops::{CapacityWay, HopFlag, HopsFinding, HopsPlan, PathFlag, Way};
use netaware_record::IpVersion;
use netaware_sim::Scenario;
use netaware_sim::hops::{HopPath, hops, usual_plan};
use netaware_units::Span;

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];
const RATES: [u32; 5] = [100, 50, 20, 10, 40];
const TIME: Span = Span::from_secs(20);

fn scenario(extra: impl Fn(usize) -> String, rest: &str) -> Scenario {
    links(|n| format!("delay = '1ms'\n{}", extra(n)), rest)
}

fn links(of: impl Fn(usize) -> String, rest: &str) -> Scenario {
    let hop = |(n, rate): (usize, &u32)| format!("[[hop]]\nrate = '{rate}Mbit/s'\n{}", of(n));
    let hops: Vec<String> = RATES.iter().enumerate().map(hop).collect();
    Scenario::parse(&format!("about = 'five hops'\n{}\n{rest}", hops.join("\n")))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn loaded(load: f64) -> String {
    let traffic = |hop: usize| {
        format!("[[cross]]\nenter = {hop}\npattern = 'poisson'\nload = {load}\nsizes = 'imix'\n")
    };
    (0..RATES.len()).map(traffic).collect()
}

fn run(scenario: &Scenario, version: IpVersion, seed: u64, change: impl Fn(&mut HopsPlan)) -> HopsFinding {
    let mut plan = usual_plan(version, TIME, seed);
    change(&mut plan);
    let time = plan.time;
    let mut path = HopPath::new(scenario, version, seed);
    let found = hops(&mut path, plan);
    assert!(found.took <= time, "{} of {time}", found.took);
    found
}

/// Mbit/s, by hop.
fn rate(found: &HopsFinding, hop: usize) -> f64 {
    let capacity = found.hops[hop].capacity.as_ref().unwrap_or_else(|| panic!("hop {hop}: {found:#?}"));
    capacity.rate.estimate / 1e6
}

fn has(found: &HopsFinding, hop: usize, flag: impl Fn(&HopFlag) -> bool) -> bool {
    found.hops[hop].flags.iter().any(flag)
}

#[test]
fn every_link_of_an_idle_path_is_found_over_both_versions() {
    let scenario = scenario(|_| String::new(), "");
    for version in VERSIONS {
        for seed in 0..5 {
            let found = run(&scenario, version, seed, |_| {});
            assert!(found.reached && found.hops.len() == RATES.len(), "{found:#?}");
            for (hop, truth) in RATES.iter().enumerate() {
                let error = rate(&found, hop) / f64::from(*truth) - 1.0;
                assert!(
                    error.abs() < 0.005,
                    "{} hop {hop}: {error:+.4} {:#?}",
                    version.name(),
                    found.hops[hop]
                );
                let interval = found.hops[hop].capacity.as_ref().unwrap().rate;
                assert!(interval.contains(f64::from(*truth) * 1e6), "{interval:?} and {truth} Mbit/s");
                let share = f64::from(found.hops[hop].answered) / f64::from(found.hops[hop].asked);
                assert!(share > 0.99, "{share} answered");
            }
        }
    }
}

#[test]
fn links_are_found_under_load_and_intervals_hold_the_truth() {
    // With 60 % on each link one packet in a hundred meets five empty queues. A figure that is no
    // bound has an interval of less than half of its slope: it is wrong by half at most while the
    // interval holds.
    for (load, least_held, most_error) in [(0.3, 95, 0.01), (0.6, 80, 0.5)] {
        let scenario = scenario(|_| String::new(), &loaded(load));
        for version in VERSIONS {
            let (mut held, mut asked, mut worst) = (0, 0, 0.0_f64);
            for seed in 0..3 {
                let found = run(&scenario, version, seed, |plan| plan.time = Span::from_secs(40));
                for (hop, truth) in RATES.iter().enumerate() {
                    let Some(capacity) = &found.hops[hop].capacity else { continue };
                    let truth = f64::from(*truth) * 1e6;
                    asked += 1;
                    let bounded = capacity.bound != netaware_path::Bound::None;
                    held += u32::from(capacity.rate.lo <= truth && (bounded || truth <= capacity.rate.hi));
                    if !bounded {
                        worst = worst.max((capacity.rate.estimate / truth - 1.0).abs());
                    }
                }
            }
            let name = version.name();
            println!(
                "{name}, load {load}: {held} of {asked} intervals hold the truth, worst error {worst:.4}"
            );
            assert!(
                asked >= 13 && held * 100 >= asked * least_held,
                "{name}, load {load}: {held} of {asked}"
            );
            assert!(worst < most_error, "{name}, load {load}: {worst}");
        }
    }
}

#[test]
fn a_hidden_switch_is_told_from_a_plain_link() {
    let hidden =
        |n: usize| if n == 0 { "switches = [{ rate = '100Mbit/s' }]".to_owned() } else { String::new() };
    let scenario = scenario(hidden, "");
    for version in VERSIONS {
        let found = run(&scenario, version, 1, |_| {});
        assert!((rate(&found, 0) / 50.0 - 1.0).abs() < 0.01);
        let named = found.hops[0].capacity.as_ref().unwrap().segments.as_ref().map(|it| it.rates.clone());
        assert_eq!(named, Some(vec![1e8, 1e8]), "{}", version.name());
        assert_eq!(found.hops[3].capacity.as_ref().unwrap().segments, None, "10 Mbit/s is a link");
    }
}

#[test]
fn a_silent_router_is_shown_and_its_links_are_found_by_tailgating() {
    let silent = |n: usize| if n == 2 { "answers = { silent = true }".to_owned() } else { String::new() };
    let scenario = scenario(silent, "");
    for version in VERSIONS {
        let found = run(&scenario, version, 2, |_| {});
        assert!(has(&found, 2, |flag| *flag == HopFlag::Silent) && found.hops[2].addresses.is_empty());
        assert_eq!(found.hops[2].capacity.as_ref().unwrap().way, Way::Tailgating);
        for (hop, truth) in RATES.iter().enumerate() {
            let error = rate(&found, hop) / f64::from(*truth) - 1.0;
            assert!(error.abs() < 0.01, "{} hop {hop}: {error:+.4}", version.name());
        }
    }
}

#[test]
fn without_tailgating_a_figure_covers_the_silent_hop_too() {
    let silent = |n: usize| if n == 2 { "answers = { silent = true }".to_owned() } else { String::new() };
    let found = run(&scenario(silent, ""), IpVersion::V4, 2, |plan| plan.way = CapacityWay::Direct);
    assert_eq!(found.hops[2].capacity, None);
    let both = found.hops[3].capacity.as_ref().unwrap();
    assert_eq!(both.from, 3);
    let truth = 1e6 / (1.0 / 20.0 + 1.0 / 10.0);
    assert!((both.rate.estimate / truth - 1.0).abs() < 0.01, "{both:?}");
}

#[test]
fn a_router_that_rations_its_answers_is_found_out_and_asked_less() {
    let limited =
        |n: usize| if n == 1 { "answers = { rate = 1.0, burst = 6 }".to_owned() } else { String::new() };
    let scenario = scenario(limited, "");
    for version in VERSIONS {
        let found = run(&scenario, version, 3, |_| {});
        let told = found.hops[1].flags.iter().find_map(|flag| match flag {
            HopFlag::RateLimited(rate) => *rate,
            _ => None,
        });
        let told = told.expect("it is asked often enough to know");
        assert!(told.at_least > 0.3 && told.at_least <= 1.001 && told.at_most >= 0.999, "{told:?}");
        assert!(told.about().is_none_or(|rate| (rate - 1.0).abs() < 0.25), "{told:?}");
        assert!(
            found.hops[1].asked < found.hops[0].asked / 3,
            "{} {}",
            found.hops[1].asked,
            found.hops[0].asked
        );
        for other in [0, 2, 3] {
            assert!(!has(&found, other, |flag| matches!(flag, HopFlag::RateLimited(_))), "hop {other}");
        }
        for (hop, truth) in RATES.iter().enumerate() {
            let error = rate(&found, hop) / f64::from(*truth) - 1.0;
            assert!(error.abs() < 0.02, "{} hop {hop}: {error:+.4}", version.name());
        }
    }
}

#[test]
fn nobody_answers_and_it_ends_in_time() {
    let all = |_: usize| "answers = { silent = true }\nreverse = { black_hole = true }".to_owned();
    let found = run(&scenario(all, ""), IpVersion::V4, 1, |plan| plan.time = Span::from_secs(4));
    assert!(found.hops.is_empty() && !found.reached, "{found:#?}");
}

#[test]
fn a_change_of_the_path_is_said() {
    let delay = |n: usize| {
        let steps =
            if n == 2 { "[{ at = '0s', value = '1ms' }, { at = '9s', value = '6ms' }]" } else { "'1ms'" };
        format!("delay = {steps}")
    };
    let scenario = links(delay, "");
    let found = run(&scenario, IpVersion::V4, 1, |_| {});
    assert!(found.flags.contains(&PathFlag::PathChanged), "{:?}", found.flags);
    assert!(!has(&found, 1, |flag| *flag == HopFlag::PathChanged), "before the change");
    assert!(has(&found, 3, |flag| *flag == HopFlag::PathChanged), "behind it");
}

#[test]
fn a_smaller_mtu_on_the_way_is_learnt_or_found_out() {
    for (answer, least, most) in [("icmp", 1400, 1400), ("silent", 1280, 1400)] {
        let narrow =
            |n: usize| if n == 3 { format!("mtu = 1400\nmtu_answer = '{answer}'") } else { String::new() };
        for version in VERSIONS {
            let found = run(&scenario(narrow, ""), version, 1, |_| {});
            let Some(PathFlag::Mtu(mtu)) = found.flags.iter().find(|flag| matches!(flag, PathFlag::Mtu(_)))
            else {
                panic!("{answer}: {:?}", found.flags);
            };
            assert!((least..=most).contains(mtu), "{mtu}");
            for (hop, truth) in RATES.iter().enumerate() {
                let error = rate(&found, hop) / f64::from(*truth) - 1.0;
                assert!(error.abs() < 0.02, "{answer} {} hop {hop}: {error:+.4}", version.name());
            }
        }
    }
}

#[test]
fn trains_find_the_narrowest_link_and_the_loaded_one() {
    let narrow = run(&scenario(|_| String::new(), ""), IpVersion::V4, 1, |_| {});
    assert_eq!(narrow.choke_point, Some(4), "10 Mbit/s");
    let at = narrow.hops[3].train.unwrap();
    assert!((at.rate / 1e7 - 1.0).abs() < 0.1, "{at:?}");
    // 100 Mbit/s with 90 % load leave a train of 50 Mbit/s 36: fast, and yet the choke point.
    let tight = "about = 'tight'\n[[hop]]\nrate = '50Mbit/s'\ndelay = '1ms'\n[[hop]]\nrate = '100Mbit/s'\n\
                 delay = '1ms'\n[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n\
                 [[cross]]\nenter = 1\npattern = 'poisson'\nload = 0.9\n";
    let tight = run(&Scenario::parse(tight).unwrap(), IpVersion::V4, 1, |_| {});
    assert_eq!(tight.choke_point, Some(2), "{:#?}", tight.hops);
}

#[test]
fn queues_are_seen_where_they_are() {
    let rest = "[[cross]]\nenter = 3\npattern = 'poisson'\nload = 0.6\n";
    let found = run(&scenario(|_| String::new(), rest), IpVersion::V4, 1, |_| {});
    let own = |hop: usize| found.hops[hop].queueing.unwrap().own_mean;
    assert!(own(3) > Span::from_micros(300), "{}", own(3));
    for hop in [0, 1, 2] {
        assert!(own(hop) < Span::from_micros(60), "hop {hop}: {}", own(hop));
    }
}

/// The second link is `count` parallel ones of 50 Mbit/s, to which packets are dealt out so.
fn parallel(count: u32, balance: &str) -> Scenario {
    let members = |n: usize| match n {
        1 => format!("members = {{ count = {count}, balance = '{balance}', delay_step = '200us' }}"),
        _ => String::new(),
    };
    scenario(members, "")
}

#[test]
fn links_that_share_packets_one_by_one_are_told_by_their_addresses() {
    for version in VERSIONS {
        for count in [2, 4] {
            let found = run(&parallel(count, "packet"), version, 1, |_| {});
            let name = version.name();
            assert!(
                has(&found, 1, |flag| *flag == HopFlag::SeveralAddresses),
                "{name}: {:#?}",
                found.hops[1]
            );
            assert_eq!(
                found.hops[1].addresses.len(),
                count as usize,
                "{name}: {:?}",
                found.hops[1].addresses
            );
            // That addresses alternate is no change of the path.
            assert!(
                !has(&found, 1, |flag| *flag == HopFlag::PathChanged),
                "{name}: {:?}",
                found.hops[1].flags
            );
            for other in [0, 2, 3] {
                assert_eq!(found.hops[other].addresses.len(), 1, "{name} hop {other}");
                assert!(!has(&found, other, |flag| *flag == HopFlag::SeveralAddresses), "{name} hop {other}");
            }
        }
    }
}

#[test]
fn links_that_share_flows_look_like_one_since_a_measurement_is_one_flow() {
    for seed in 0..3 {
        // Whichever of four it is dealt to: of packets that differed in their flow some would go
        // another way.
        let found = run(&parallel(4, "flow"), IpVersion::V4, seed, |_| {});
        for (hop, truth) in RATES.iter().enumerate() {
            assert_eq!(found.hops[hop].addresses.len(), 1, "hop {hop}: {:?}", found.hops[hop].addresses);
            assert!(!has(&found, hop, |flag| *flag == HopFlag::SeveralAddresses), "hop {hop}");
            // The host answers echoes, which are another flow, and may be dealt to another link
            // than what is sent to hops.
            if found.hops[hop].capacity.is_none() {
                assert!(
                    hop + 1 == RATES.len() && has(&found, hop, |flag| *flag == HopFlag::SlopeFalls),
                    "{found:#?}"
                );
                continue;
            }
            let error = rate(&found, hop) / f64::from(*truth) - 1.0;
            let told = found.hops[hop].capacity.as_ref().is_some_and(|it| it.way == Way::Tailgating);
            assert!(error.abs() < 0.01 || told, "hop {hop}: {error:+.4} {:#?}", found.hops[hop]);
        }
        let found = run(&parallel(4, "flow"), IpVersion::V6, seed, |_| {});
        assert!(found.hops.iter().all(|hop| hop.addresses.len() == 1), "{:#?}", found.hops);
    }
}

#[test]
fn a_host_whose_stamps_err_by_much_gets_bounds_that_name_it() {
    let scenario = scenario(|_| String::new(), "");
    for seed in 0..3 {
        let found = run(&scenario, IpVersion::V4, seed, |plan| plan.stamp_error = Span::from_micros(100));
        // Over 1456 bytes of difference it errs by 69 ns a byte: links of 100 and 50 Mbit/s take 80
        // and 160, of 20 and 10 400 and 800, and the last one of 40 takes 200.
        for (hop, is_limited) in [true, true, false, false, true].into_iter().enumerate() {
            let facts = &found.hops[hop];
            assert_eq!(has(&found, hop, |flag| *flag == HopFlag::HostLimited), is_limited, "{facts:#?}");
            let capacity = facts.capacity.as_ref().unwrap();
            let truth = f64::from(RATES[hop]) * 1e6;
            let is_bound = capacity.bound == netaware_path::Bound::AtLeast;
            assert_eq!(is_bound, is_limited, "{facts:#?}");
            assert!(capacity.rate.lo <= truth && (is_bound || truth <= capacity.rate.hi), "{facts:#?}");
        }
    }
}

#[test]
fn a_gigabit_behind_a_slow_link_is_not_said_to_be_more_than_it_is() {
    // Small packets fall behind large ones at the slow link, so that no link behind it is seen.
    let hops = [("200Mbit/s", 1), ("20Mbit/s", 20), ("1Gbit/s", 1), ("1Gbit/s", 1)];
    let hops = hops.map(|(rate, delay)| format!("[[hop]]\nrate = '{rate}'\ndelay = '{delay}ms'\n"));
    for count in [3, 4] {
        let scenario = Scenario::parse(&format!("about = 'a tunnel'\n{}", hops[..count].concat())).unwrap();
        for version in VERSIONS {
            for seed in 0..4 {
                let found = run(&scenario, version, seed, |plan| plan.stamp_error = Span(1_000));
                for hop in &found.hops[2..] {
                    let Some(capacity) = &hop.capacity else { continue };
                    let told = (version, seed, hop);
                    assert!(capacity.rate.lo <= 1e9, "{told:?}");
                    let is_bound = capacity.bound == netaware_path::Bound::AtLeast;
                    assert!(is_bound || capacity.rate.hi >= 1e9, "{told:?}");
                }
            }
        }
    }
}

#[test]
fn a_path_that_dies_while_sizes_are_measured_was_not_measured_to_its_end() {
    for count in [1, 3] {
        let hop = |n: usize| {
            let dies = if n + 1 == count { "outages = [{ at = '4s' }]\n" } else { "" };
            format!("[[hop]]\nrate = '20Mbit/s'\ndelay = '1ms'\n{dies}")
        };
        let hops: String = (0..count).map(hop).collect();
        let scenario = Scenario::parse(&format!("about = 'it dies'\n{hops}")).unwrap();
        for version in VERSIONS {
            for seed in 0..3 {
                let found = run(&scenario, version, seed, |plan| plan.time = Span::from_secs(8));
                let ceased = found.ceased.expect("the destination fell silent");
                assert!(ceased.after < Span::from_secs(5) && ceased.unanswered > 3, "{ceased:?}");
            }
        }
    }
}
