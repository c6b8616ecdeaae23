//! What a host that runs nothing tells, against paths whose truth is known by direction: losses,
//! queues, the narrowest link.

use netaware_path::Bound;
use netaware_path::reach::TcpTries;
use netaware_path::reach::{HostClock, ReachFinding, WayQueues};
use netaware_record::IpVersion;
use netaware_sim::hops::{HopPath, TcpPort};
use netaware_sim::reach::{TcpFound, reach, reach_with_tcp, usual_plan};
use netaware_sim::{Scenario, Side};
use netaware_stats::quantile;
use netaware_units::Span;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("about = 'reach'\n{text}")).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, version: IpVersion, seed: u64, seconds: i64) -> (ReachFinding, HopPath) {
    let mut path = HopPath::new(scenario, version, seed);
    let (time, began_at) = (Span::from_secs(seconds), path.now());
    let found = reach(&mut path, usual_plan(version, time));
    assert!(path.now() - began_at <= time, "{} of {time}", path.now() - began_at);
    (found, path)
}

fn believed(found: &ReachFinding) -> WayQueues {
    match found.clock {
        Some(HostClock::Believed(ways)) => ways,
        other => panic!("{other:?}"),
    }
}

fn verdict(ways: &WayQueues) -> (bool, bool) {
    (ways.forward.is_queue(ways.resolution), ways.reverse.is_queue(ways.resolution))
}

/// Beyond the fastest, of nine in ten timestamps.
fn true_p90(path: &HopPath, from: Side) -> Span {
    let mut delays: Vec<f64> = path.stamped(from).iter().map(|delay| delay.nanos() as f64).collect();
    delays.sort_unstable_by(f64::total_cmp);
    Span((quantile::linear(&delays, 0.9).unwrap() - delays[0]) as i64)
}

#[test]
fn five_percent_one_way_are_lost_that_way_and_no_other() {
    for lossy in ["forward", "reverse"] {
        let path = format!("[[hop]]\nrate = '50Mbit/s'\ndelay = '8ms'\n{lossy} = {{ loss = 0.05 }}\n");
        let scenario = scenario(&path);
        let (mut told, mut of) = (0, 0);
        for seed in 0..10 {
            let (found, path) = run(&scenario, IpVersion::V4, seed, 60);
            let by = found.by_direction.unwrap_or_else(|| panic!("{lossy}, seed {seed}"));
            let (right, wrong) =
                if lossy == "forward" { (by.forward, by.reverse) } else { (by.reverse, by.forward) };
            assert_eq!(wrong, 0, "{lossy}, seed {seed}: {by:?}");
            assert!(right > 0, "{lossy}, seed {seed}: {by:?}");
            let lost = [path.way(Side::A).lost(), path.way(Side::B).lost()];
            assert_eq!(lost[usize::from(lossy == "forward")], 0, "the scenario itself");
            (told, of) = (told + right, of + by.of);
            let loss = 1.0 - f64::from(found.echo.answered) / f64::from(found.echo.asked);
            assert!((0.03..0.075).contains(&loss), "{loss}");
        }
        let share = f64::from(told) / f64::from(of);
        println!("{lossy}: {told} of {of} = {share:.4}");
        assert!((0.03..0.07).contains(&share), "{lossy}: {share}");
    }
}

#[test]
fn what_the_end_of_the_time_would_cut_off_is_no_loss() {
    // Round trips of 24 to 90 ms end wherever the time does.
    for delay in [12, 25, 45] {
        let scenario = scenario(&format!("[[hop]]\nrate = '10Mbit/s'\ndelay = '{delay}ms'\n"));
        for seed in 0..5 {
            for version in [IpVersion::V4, IpVersion::V6] {
                let (found, _) = run(&scenario, version, seed, 3 + seed as i64);
                assert_eq!(found.echo.answered, found.echo.asked, "{delay} ms, seed {seed}");
            }
        }
    }
}

#[test]
fn over_ipv6_no_way_is_told() {
    let (found, _) = run(&scenario("[[hop]]\nrate = '50Mbit/s'\nloss = 0.05\n"), IpVersion::V6, 1, 20);
    assert_eq!((found.by_direction, found.clock, found.timestamps.asked), (None, None, 0));
    assert!(found.echo.answered < found.echo.asked);
}

/// A queue that fills and empties again, one way.
fn busy(from: &str, hosts: &str) -> Scenario {
    scenario(&format!(
        "[[hop]]\nrate = '20Mbit/s'\ndelay = '8ms'\nqueue = {{ bytes = '100kB' }}\n\
         [[cross]]\nenter = 0\nfrom = '{from}'\npattern = 'poisson'\nload = 0.7\n\
         square = {{ period = '370ms', duty = 0.4, high = 2.0, low = 0.3 }}\n{hosts}"
    ))
}

#[test]
fn a_queue_one_way_is_told_of_that_way_whatever_the_hosts_clock_does() {
    let clocks = [
        "",
        // Midnight comes 4 s after the beginning.
        "[host.b]\nclock = { offset = '86396s', skew_ppm = 35.0 }\n",
        "[host.b]\nclock = { offset = '-3h', skew_ppm = -200.0 }\n",
    ];
    for (n, hosts) in clocks.into_iter().enumerate() {
        for (from, want) in [("a", (true, false)), ("b", (false, true))] {
            for seed in 0..10 {
                let (found, path) = run(&busy(from, hosts), IpVersion::V4, seed, 20);
                let ways = believed(&found);
                assert_eq!(verdict(&ways), want, "clock {n}, from {from}, seed {seed}: {ways:?}");
                let (told, side) =
                    if from == "a" { (ways.forward, Side::A) } else { (ways.reverse, Side::B) };
                // Low by a step of the clock, and by what the way never was free of while it was
                // looked at.
                let error = told.p90 - true_p90(&path, side);
                let within = Span::from_millis(-2)..=Span::from_millis(1);
                assert!(within.contains(&error), "clock {n}, from {from}, seed {seed}: {error}");
            }
        }
    }
}

#[test]
fn without_a_queue_none_is_told() {
    for skew in [0.0, 80.0, -500.0] {
        let path = format!(
            "[[hop]]\nrate = '20Mbit/s'\ndelay = '8ms'\n[host.b]\nclock = {{ offset = '17h', skew_ppm = {skew:.1} }}\n"
        );
        for seed in 0..10 {
            let (found, _) = run(&scenario(&path), IpVersion::V4, seed, 60);
            assert_eq!(
                verdict(&believed(&found)),
                (false, false),
                "{skew} ppm, seed {seed}: {:?}",
                found.clock
            );
        }
    }
}

#[test]
fn a_clock_that_is_set_makes_no_queue() {
    let set = |by: &str| {
        let hosts = format!("[host.b]\nclock = {{ steps = [{{ at = '7s', by = '{by}' }}] }}\n");
        scenario(&format!("[[hop]]\nrate = '20Mbit/s'\ndelay = '8ms'\n{hosts}"))
    };
    for by in ["250ms", "-2s", "3h"] {
        let ways = believed(&run(&set(by), IpVersion::V4, 1, 20).0);
        assert!(ways.stepped && verdict(&ways) == (false, false), "{by}: {ways:?}");
    }
    // By less than a round trip takes: a step there is a queue that came, back one that went.
    assert_eq!(run(&set("9ms"), IpVersion::V4, 1, 20).0.clock, Some(HostClock::Ambiguous));
}

#[test]
fn the_narrowest_link_is_within_its_interval() {
    let cells = [
        ("20 Mbit/s, idle", 20e6, "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n"),
        ("asymmetric", 10e6, "[[hop]]\ndelay = '5ms'\nrate = '100Mbit/s'\nreverse = { rate = '10Mbit/s' }\n"),
        (
            "20 Mbit/s with half of it used",
            20e6,
            "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n[[cross]]\nenter = 0\npattern = 'poisson'\nload = 0.5\n",
        ),
        (
            "50 Mbit/s behind a loaded 100, both ways",
            50e6,
            "[[hop]]\nrate = '100Mbit/s'\ndelay = '2ms'\n[[hop]]\nrate = '50Mbit/s'\ndelay = '2ms'\n\
             [[cross]]\nenter = 0\npattern = 'poisson'\nload = 0.4\n\
             [[cross]]\nenter = 0\nfrom = 'b'\npattern = 'poisson'\nload = 0.3\n",
        ),
        (
            "20 Mbit/s with 80 % in bursts",
            20e6,
            "[[hop]]\nrate = '20Mbit/s'\ndelay = '5ms'\n\
             [[cross]]\nenter = 0\npattern = 'pareto'\nalpha = 1.5\nload = 0.8\nsizes = 'imix'\n",
        ),
    ];
    for (name, truth, path) in cells {
        let scenario = scenario(path);
        let (mut held, mut worst) = (0, 0.0_f64);
        for seed in 0..SEEDS {
            let (found, _) = run(&scenario, IpVersion::V4, seed, 10);
            let (rate, bound) = found.capacity.unwrap_or_else(|| panic!("{name}, seed {seed}"));
            assert_eq!(bound, Bound::None, "{name}, seed {seed}: {rate:?}");
            held += u64::from(rate.contains(truth));
            worst = worst.max((rate.estimate / truth - 1.0).abs());
        }
        println!("{name}: {held} of {SEEDS} intervals hold the truth, worst error {worst:.4}");
        assert!(held * 10 >= SEEDS * 9, "{name}: {held} of {SEEDS}, worst {worst}");
    }
}

#[test]
fn answers_that_are_handed_over_in_batches_tell_no_capacity() {
    let path = "[[hop]]\nrate = '1Gbit/s'\ndelay = '1ms'\n\
                [host.a]\nreceive = { period = '50us', batch = 64, per_packet = '300ns' }\n";
    let (found, _) = run(&scenario(path), IpVersion::V4, 1, 10);
    assert_eq!((found.capacity, found.batched), (None, true), "{} pairs", found.pairs);
    assert!(found.pairs > 20);
}

fn connect(scenario: &Scenario, version: IpVersion, seed: u64, port: TcpPort) -> TcpFound {
    let mut path = HopPath::new(scenario, version, seed);
    let (time, began_at) = (Span::from_secs(10), path.now());
    let (found, tcp) = reach_with_tcp(&mut path, usual_plan(version, time), port);
    assert!(path.now() - began_at <= time && found.echo.asked > 0, "{} of {time}", path.now() - began_at);
    tcp
}

#[test]
fn a_syn_is_answered_as_the_port_is_after_what_a_lone_packet_takes() {
    let scenario = scenario("[[hop]]\nrate = '10Mbit/s'\ndelay = '5ms'\nreverse = { rate = '1Mbit/s' }\n");
    for version in [IpVersion::V4, IpVersion::V6] {
        let header = version.header_len();
        let lone = |answer| {
            scenario.base_delay(Side::A, version, header + 40).unwrap()
                + scenario.base_delay(Side::B, version, header + answer).unwrap()
        };
        // SYN-ACK has options, RST has none.
        for (port, answer) in [(TcpPort::Open, 40), (TcpPort::Closed, 20)] {
            let TcpFound { tries, rtts, lost } = connect(&scenario, version, 1, port);
            let TcpTries { asked, accepted, refused, .. } = tries;
            assert!((20..=40).contains(&asked) && lost == 0, "{tries:?}");
            assert_eq!([accepted, refused], if port == TcpPort::Open { [asked, 0] } else { [0, asked] });
            assert_eq!((tries.rtts.iter().min(), &tries.rtts), (Some(&lone(answer)), &rtts), "{port:?}");
        }
        let filtered = connect(&scenario, version, 1, TcpPort::Filtered);
        assert_eq!((filtered.tries.asked, filtered.tries.answered(), filtered.lost), (2, 0, 0));
    }
}

#[test]
fn a_syn_without_an_answer_is_one_that_was_lost_there_or_back() {
    let scenario = scenario(
        "[[hop]]\nrate = '50Mbit/s'\ndelay = '4ms'\nforward = { loss = 0.1 }\nreverse = { loss = 0.05 }\n\
         [[cross]]\nenter = 0\npattern = 'poisson'\nload = 0.5\n",
    );
    let (mut asked, mut lost) = (0, 0);
    for seed in 0..20 {
        let tcp = connect(&scenario, IpVersion::V4, seed, TcpPort::Open);
        assert_eq!(tcp.tries.asked - tcp.tries.answered(), tcp.lost, "seed {seed}: {tcp:?}");
        assert_eq!(tcp.tries.rtts, tcp.rtts, "seed {seed}: host A's clock is true");
        (asked, lost) = (asked + tcp.tries.asked, lost + tcp.lost);
    }
    let share = f64::from(lost) / f64::from(asked);
    println!("{lost} of {asked} = {share:.4}, by the scenario {:.4}", 1.0 - 0.9 * 0.95);
    assert!((0.09..0.20).contains(&share), "{share}");
}

#[test]
fn what_trains_lose_is_no_loss_of_the_echoes() {
    // Bursts beyond the credit are cut off: pairs and lone questions are not.
    let path = "[[hop]]\nrate = '1Gbit/s'\ndelay = '5ms'\n\
                bucket = { kind = 'policer', rate = '50Mbit/s', burst = '100kB' }\n";
    let (found, path) = run(&scenario(path), IpVersion::V4, 1, 10);
    assert_eq!((found.echo.answered, path.way(Side::A).lost()), (found.echo.asked, 0));
    assert!(matches!(found.capacity, Some((_, Bound::AtMost))), "{:?} {:?}", found.capacity, found.lasting);
}

const SEEDS: u64 = 50;
