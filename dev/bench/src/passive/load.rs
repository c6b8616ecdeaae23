//! What watching costs, and when packets begin to be lost: rate, memory, filters, tasks, frame
//! size, gap, duration, overload.

use std::time::Duration;

use anyhow::Result;

use super::published;
use super::reader::{Reader, Seen, USUAL, Watching};
use super::traffic::{self, FILTER, Pace, Sent, Traffic};
use super::{Bench, OURS, TCPDUMP};
use crate::clock::pause;
use crate::contest::{Bound, Claim, Contender, Contest, Reading};

/// Bytes of the smallest frame of the published tests.
const SMALL: u32 = 84;
/// As near to what packets of the Internet are in the mean.
const MIDDLE: u32 = 300;

/// Rates of single datagrams, from idle to what one sender can give.
pub(crate) fn rate<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let paced = [
        (6_010.0, Some((0.0, 4.79))),
        (12_019.0, Some((0.0, 9.64))),
        (18_029.0, Some((0.0, 13.68))),
        (24_038.0, Some((0.0, 18.81))),
        (30_048.0, Some((0.0, 22.93))),
        (36_058.0, Some((0.0, 28.48))),
        (42_067.0, Some((0.0, 32.78))),
        (48_077.0, Some((0.0, 39.65))),
        (54_087.0, Some((0.0, 53.40))),
        (60_096.0, Some((0.0, 74.03))),
        (66_106.0, Some((0.0, 88.29))),
        (73_782.0, Some((3.18, 99.71))),
        (78_125.0, Some((21.44, 99.9))),
        (84_135.0, Some((37.19, 99.9))),
        (120_192.0, Some((68.91, 99.46))),
        (250_000.0, None),
    ];
    let mut contests: Vec<Contest<'a>> = paced
        .into_iter()
        .map(|(rate, known)| {
            let mut contest =
                both(bench, format!("{SMALL} B, {rate} packets/s"), paced_at(SMALL, rate, bench));
            contest.claims.truncate(LOSSES);
            let theirs = known.map(|(loss, cpu)| published::load(rate, loss, cpu));
            contest.contenders.extend(theirs);
            contest
        })
        .collect();
    let at_once = |pace| Traffic { frame: SMALL, pace, seconds: bench.seconds };
    contests.push(both(bench, format!("{SMALL} B, one socket"), at_once(Pace::Fastest)));
    let mut segmented = both(bench, format!("{SMALL} B, one socket, segmented"), at_once(Pace::Segmented));
    segmented.claims.push(floor(REACHABLE));
    contests.push(segmented);
    for rate in [500_000.0, ASKED_SINGLE] {
        let title = format!("{SMALL} B, generated, {rate} packets/s");
        contests.push(both(bench, title, at_once(Pace::Generated(rate))));
    }
    if let Some(last) = contests.last_mut() {
        last.claims.push(floor(REACHABLE_SINGLE));
    }
    let mut most =
        both(bench, format!("{SMALL} B, generated, as fast as it goes"), at_once(Pace::Generated(0.0)));
    most.claims.push(floor(REACHABLE));
    contests.push(most);
    contests
}

/// More than [`REACHABLE_SINGLE`]: the sender does not give all of what it is asked for where a
/// hypervisor takes its core away.
const ASKED_SINGLE: f64 = 1_000_000.0;
const REACHABLE_SINGLE: f64 = 900_000.0;
const REACHABLE: f64 = 1e6;

fn floor(rate: f64) -> Claim {
    Claim { ours: OURS, figure: "packets/s", bound: Bound::Floor(rate) }
}

/// Memory: of the ring in which packets wait, and in the published tests of the host.
pub(crate) fn memory<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    const RINGS: [(&str, &str); 4] = [
        ("netaware, ring 1 MiB", "1MiB"),
        ("netaware, ring 4 MiB", "4MiB"),
        ("netaware, ring 32 MiB", "32MiB"),
        ("netaware, ring 128 MiB", "128MiB"),
    ];
    const HOSTS: [&str; 3] = ["OpenIMP, 256 MB", "OpenIMP, 512 MB", "OpenIMP, 1 GB"];
    // Per rate, and for each host: loss and CPU in per cent. The host of 1 GB had its sixth test at
    // 73,782/s, which is in `rate`.
    let known: [(f64, &[(f64, f64)]); 6] = [
        (54_087.0, &[(0.0, 43.79), (0.0, 42.67), (0.0, 53.40)]),
        (60_096.0, &[(0.0, 47.54), (0.0, 49.21), (0.0, 74.03)]),
        (66_106.0, &[(0.0, 73.64), (0.0, 73.83), (0.0, 88.29)]),
        (72_115.0, &[(0.0, 97.83), (0.0, 97.33)]),
        (78_125.0, &[(11.07, 99.9), (11.25, 99.9), (21.44, 99.9)]),
        (84_135.0, &[(27.21, 99.9), (27.28, 99.85), (37.19, 99.9)]),
    ];
    let contest = |title, traffic, rings: &[(&'static str, &'static str)]| {
        let ours = |(name, ring): &(&'static str, &'static str)| {
            netaware(bench, name, Watching { ring, ..USUAL }, traffic)
        };
        let claims = rings.iter().map(|(name, _)| accounted(name)).collect();
        Contest { title, contenders: rings.iter().map(ours).collect(), claims }
    };
    let mut contests: Vec<Contest<'a>> = known
        .into_iter()
        .map(|(rate, theirs)| {
            let traffic = paced_at(SMALL, rate, bench);
            let mut contest = contest(format!("{rate} packets/s"), traffic, &[RINGS[0], RINGS[2]]);
            let theirs = HOSTS.into_iter().zip(theirs);
            contest
                .contenders
                .extend(theirs.map(|(name, &(loss, cpu))| published::load_of(name, rate, loss, cpu)));
            contest
        })
        .collect();
    let fastest = Traffic { frame: SMALL, pace: Pace::Fastest, seconds: bench.seconds };
    contests.push(contest("as fast as it goes".to_owned(), fastest, &RINGS));
    contests
}

/// A link of 10 Mbit/s, which lets through what it can of more.
pub(crate) fn link<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let known = [
        (6_011.0, 0.0, 18.13),
        (12_019.0, 0.01, 40.22),
        (13_221.0, 9.06, 39.35),
        (14_423.0, 16.61, 38.43),
        (18_029.0, 33.3, 40.12),
    ];
    let contest = |(rate, loss, cpu)| {
        let traffic = paced_at(SMALL, rate, bench);
        let ours = move || {
            let _slow = traffic::Shaped::new(bench.pair, "10mbit")?;
            let before = traffic::received(bench.pair)?;
            let reader = Reader::netaware(bench.netaware, bench.pair, USUAL)?;
            let sent = traffic::send(bench.pair, traffic)?;
            let seen = reader.finish()?;
            let came = traffic::received(bench.pair)? - before;
            Ok(behind_a_link(sent, seen, came))
        };
        Contest {
            title: format!("{SMALL} B, {rate} packets/s"),
            contenders: vec![
                Contender { name: OURS, run: Box::new(ours) },
                published::load_of("OpenIMP, card of 10 Mbit/s", rate, loss, cpu),
            ],
            claims: vec![Claim { ours: OURS, figure: "lost by the probe", bound: Bound::Limit(0.0) }],
        }
    };
    known.map(contest).into_iter().collect()
}

/// Loss is the link's: what the probe says it lost and what came and was not seen stand beside it.
fn behind_a_link(sent: Sent, seen: Seen, came: u64) -> Reading {
    let packets = sent.packets.max(1) as f64;
    vec![
        ("packets/s", sent.packets as f64 / sent.seconds),
        ("lost %", 100.0 * (1.0 - seen.packets as f64 / packets)),
        ("lost by the probe", seen.lost as f64),
        // Neighbours that ask for each other are among those that came.
        ("came and not seen", (came as f64 - (seen.packets + seen.lost) as f64).max(0.0)),
        ("CPU %", 100.0 * seen.cpu_ns as f64 / 1e9 / sent.seconds),
    ]
}

const NO_FILTER: &str = "netaware, simple filter";
const MEDIUM: &str = "netaware, medium filter";
const HIGH: &str = "netaware, complex filter";

/// Filters of more and more conditions. None passes what else comes over the link: neighbours that
/// look for each other (RFC 4861).
pub(crate) fn filters<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    const NAMES: [&str; 3] = ["OpenIMP, no filter", "OpenIMP, medium filter", "OpenIMP, complex filter"];
    const CONDITIONS: [(&str, &str); 3] = [
        (NO_FILTER, "dst port 9000"),
        (MEDIUM, "ip6 and udp and dst port 9000 and not src port 53"),
        (
            HIGH,
            "(ip6 and udp and (dst port 53 or dst port 123 or dst port 443 or dst port 5004 or dst port 9000) and not net \
             2001:db8::/32 and not net ff00::/8) or (ip and tcp and (port 80 or port 443) and net 192.0.2.0/24)",
        ),
    ];
    let contest = |(title, pace, figure, bound): (&str, Pace, &'static str, fn(f64) -> Bound)| {
        let traffic = Traffic { frame: MIDDLE, pace, seconds: bench.seconds };
        let ours = |(name, filter)| netaware(bench, name, Watching { filter, ..USUAL }, traffic);
        let claim = |ours| Claim { ours, figure, bound: bound(0.05) };
        Contest {
            title: format!("{MIDDLE} B, {title}"),
            contenders: CONDITIONS.map(ours).into_iter().collect(),
            claims: vec![claim(MEDIUM), claim(HIGH)],
        }
    };
    let ns_per_packet: fn(f64) -> Bound = |by| Bound::AtMost(1.0 + by, &[NO_FILTER]);
    let packets_per_second: fn(f64) -> Bound = |by| Bound::AtLeast(1.0 - by, &[NO_FILTER]);
    let mut contests: Vec<Contest<'a>> = vec![
        contest(("250,000 packets/s", Pace::Rate(250_000.0), "ns/packet", ns_per_packet)),
        contest(("as fast as it goes", Pace::Fastest, "packets/s", packets_per_second)),
    ];
    // On an AMD K6 of 450 MHz; per line: without a filter, a medium one, a complex one, each with
    // rate, loss and CPU.
    let known = [
        [(6_010.0, 0.0, 15.97), (6_048.0, 0.0, 18.28), (6_048.0, 0.0, 15.98)],
        [(18_029.0, 0.0, 46.05), (18_145.0, 0.0, 50.46), (18_145.0, 0.0, 49.35)],
        [(24_038.0, 5.37, 99.9), (24_194.0, 14.67, 99.9), (24_194.0, 14.38, 99.9)],
        [(30_048.0, 40.07, 99.88), (30_242.0, 41.81, 99.9), (30_242.0, 41.68, 99.88)],
        [(36_058.0, 61.8, 99.85), (36_290.0, 63.69, 99.82), (36_290.0, 64.93, 99.85)],
        [(42_067.0, 76.97, 99.82), (42_339.0, 83.53, 99.8), (42_339.0, 86.07, 99.85)],
    ];
    contests.extend(known.map(|line| {
        let rate = line[1].0;
        let traffic = paced_at(SMALL, rate, bench);
        let mut contenders: Vec<Contender<'a>> = CONDITIONS
            .map(|(name, filter)| netaware(bench, name, Watching { filter, ..USUAL }, traffic))
            .into_iter()
            .collect();
        let theirs = NAMES.into_iter().zip(line);
        contenders.extend(theirs.map(|(name, (rate, loss, cpu))| published::load_of(name, rate, loss, cpu)));
        let claims = CONDITIONS.into_iter().flat_map(|(ours, _)| losses_of(ours)).collect();
        Contest { title: format!("{SMALL} B, {rate} packets/s"), contenders, claims }
    }));
    contests
}

const ONE_TASK: &[&str] = &["volume"];
const FOUR_TASKS: &[&str] = &["digest", "volume", "traffic", "rtt"];

/// One task and four on one capture.
pub(crate) fn tasks<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let at = [
        (MIDDLE, Pace::Rate(39_063.0), Some((0.03, 33.43, 0.14, 53.58))),
        (1500, Pace::Rate(8_224.0), Some((0.01, 7.17, 0.09, 10.77))),
        (MIDDLE, Pace::Fastest, None),
    ];
    let contests = at.into_iter().flat_map(|(frame, pace, known)| {
        [(1, ONE_TASK), (4, FOUR_TASKS)].map(|(count, tasks)| {
            let traffic = Traffic { frame, pace, seconds: bench.seconds };
            let rate = match pace {
                Pace::Rate(rate) | Pace::Warm(rate) | Pace::Batches(rate) => format!("{rate} packets/s"),
                Pace::Fastest | Pace::Segmented | Pace::Generated(_) => "as fast as it goes".to_owned(),
            };
            let mut contenders =
                vec![netaware(bench, OURS, Watching { tasks, ..USUAL }, traffic), tcpdump(bench, traffic)];
            if let (Some((loss_1, cpu_1, loss_4, cpu_4)), Pace::Rate(rate)) = (known, pace) {
                let (loss, cpu) = if count == 1 { (loss_1, cpu_1) } else { (loss_4, cpu_4) };
                contenders.push(published::load(rate, loss, cpu));
            }
            let title = format!("tasks: {count}, {frame} B, {rate}");
            Contest { title, contenders, claims: losses() }
        })
    });
    contests.collect()
}

/// Frames of all sizes, each as often as a link of 100 Mbit/s carries it.
pub(crate) fn frame_sizes<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let known = [
        (84, 96_525.0, 19.358, 94.82),
        (300, 39_002.0, 0.019, 33.89),
        (600, 20_145.0, 0.013, 17.69),
        (900, 13_580.0, 0.009, 11.83),
        (1200, 10_242.0, 0.010, 8.56),
        (1500, 8_221.0, 0.010, 7.17),
    ];
    let contest = |(frame, rate, loss, cpu)| {
        let mut contest = both(bench, format!("{frame} B, {rate} packets/s"), paced_at(frame, rate, bench));
        contest.claims.truncate(LOSSES);
        contest.contenders.push(published::load(rate, loss, cpu));
        contest
    };
    let mut contests: Vec<Contest<'a>> = known.map(contest).into_iter().collect();
    contests.extend([84, 300, 1500].map(|frame| {
        let traffic = Traffic { frame, pace: Pace::Fastest, seconds: bench.seconds };
        both(bench, format!("{frame} B, as fast as it goes"), traffic)
    }));
    contests
}

/// Gaps between frames of 300 B on a link of 100 Mbit/s.
pub(crate) fn gaps<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let known = [
        (1, 39_002.0, 0.019, 33.89),
        (3, 36_179.0, 0.015, 31.81),
        (5, 33_738.0, 0.015, 29.23),
        (7, 31_605.0, 0.016, 27.09),
        (9, 29_727.0, 0.015, 25.49),
        (15, 25_227.0, 0.011, 22.40),
        (25, 20_145.0, 0.007, 17.94),
    ];
    let contest = |(gap, rate, loss, cpu)| {
        let mut contest =
            both(bench, format!("gap {gap} us, {rate} packets/s"), paced_at(MIDDLE, rate, bench));
        contest.claims.truncate(LOSSES);
        contest.contenders.push(published::load(rate, loss, cpu));
        contest
    };
    known.map(contest).into_iter().collect()
}

/// Whether what is lost depends on how long it lasts: once, three, five and ten times as long, and
/// an hour where it is a minute once.
pub(crate) fn durations<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let known = [
        (54_087.0, [(60, 0.01, 48.98), (180, 0.01, 50.31), (300, 8.91, 50.45), (600, 3.49, 50.29)]),
        (60_096.0, [(60, 0.01, 37.93), (180, 0.01, 39.13), (300, 11.69, 38.72), (600, 9.52, 77.87)]),
    ];
    let times_as_long = |rate: f64, times: u32| {
        let lasting = bench.long_seconds * f64::from(times);
        let traffic = Traffic { frame: SMALL, pace: Pace::Batches(rate), seconds: lasting };
        let contenders = vec![netaware(bench, OURS, USUAL, traffic)];
        Contest { title: format!("{rate} packets/s, {times} times as long"), contenders, claims: losses() }
    };
    let mut contests: Vec<Contest<'a>> = known
        .into_iter()
        .flat_map(|(rate, lines)| lines.map(|line| (rate, line)))
        .map(|(rate, (seconds, loss, cpu))| {
            let mut contest = times_as_long(rate, seconds / 60);
            contest.contenders.push(published::published(
                published::OPENIMP,
                vec![
                    ("packets/s", rate),
                    ("lost %", loss),
                    ("CPU %", cpu),
                    ("lasting s", f64::from(seconds)),
                ],
            ));
            contest
        })
        .collect();
    contests.push(times_as_long(60_096.0, 60));
    contests
}

/// A reader that gets no time for a second: more is lost than any ring holds, and every packet of
/// it must be counted.
pub(crate) fn overload<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let traffic = Traffic { frame: SMALL, pace: Pace::Fastest, seconds: bench.seconds.max(2.0) };
    let held_up = move |reader: Result<Reader>| -> Result<Reading> {
        let reader = reader?;
        let sent = std::thread::scope(|scope| {
            let sending = scope.spawn(|| traffic::send(bench.pair, traffic));
            pause(Duration::from_millis(700));
            let held = reader.hold_up(Duration::from_secs(1));
            let sent = sending.join().unwrap_or_else(|_| anyhow::bail!("the sender panicked"));
            held.and(sent)
        })?;
        Ok(figures(sent, reader.finish()?))
    };
    let small = Watching { ring: "4MiB", ..USUAL };
    let ours = move || held_up(Reader::netaware(bench.netaware, bench.pair, small));
    let theirs = move || held_up(Reader::tcpdump(bench.pair, FILTER));
    vec![Contest {
        title: "stopped for 1 s".to_owned(),
        contenders: vec![
            Contender { name: OURS, run: Box::new(ours) },
            Contender { name: TCPDUMP, run: Box::new(theirs) },
        ],
        claims: vec![accounted(OURS)],
    }]
}

fn paced_at(frame: u32, rate: f64, bench: &Bench<'_>) -> Traffic {
    Traffic { frame, pace: Pace::Rate(rate), seconds: bench.seconds }
}

/// Us and tcpdump: nothing lost, and no more than so much CPU per packet.
fn both<'a>(bench: &'a Bench<'a>, title: String, traffic: Traffic) -> Contest<'a> {
    let contenders = vec![netaware(bench, OURS, USUAL, traffic), tcpdump(bench, traffic)];
    let mut claims = losses();
    claims.push(Claim { ours: OURS, figure: "ns/packet", bound: Bound::AtMost(1.5, &[TCPDUMP]) });
    Contest { title, contenders, claims }
}

fn losses() -> Vec<Claim> {
    losses_of(OURS)
}

fn losses_of(ours: &'static str) -> Vec<Claim> {
    vec![Claim { ours, figure: "lost %", bound: Bound::Limit(0.0) }, accounted(ours)]
}

/// Claims of [`losses`].
const LOSSES: usize = 2;

/// What was sent was seen or counted as lost.
fn accounted(ours: &'static str) -> Claim {
    Claim { ours, figure: "unaccounted", bound: Bound::Limit(0.0) }
}

fn netaware<'a>(
    bench: &'a Bench<'a>,
    name: &'static str,
    watching: Watching<'a>,
    traffic: Traffic,
) -> Contender<'a> {
    let run = move || under(bench, traffic, Reader::netaware(bench.netaware, bench.pair, watching)?);
    Contender { name, run: Box::new(run) }
}

fn tcpdump<'a>(bench: &'a Bench<'a>, traffic: Traffic) -> Contender<'a> {
    let run = move || under(bench, traffic, Reader::tcpdump(bench.pair, FILTER)?);
    Contender { name: TCPDUMP, run: Box::new(run) }
}

fn under(bench: &Bench<'_>, traffic: Traffic, reader: Reader) -> Result<Reading> {
    let sent = traffic::send(bench.pair, traffic)?;
    Ok(figures(sent, reader.finish()?))
}

fn figures(sent: Sent, seen: Seen) -> Reading {
    let packets = sent.packets.max(1) as f64;
    vec![
        ("packets/s", sent.packets as f64 / sent.seconds),
        ("lost %", 100.0 * seen.lost as f64 / packets),
        ("unaccounted", (sent.packets as f64 - (seen.packets + seen.lost) as f64).abs()),
        ("CPU %", 100.0 * seen.cpu_ns as f64 / 1e9 / sent.seconds),
        ("ns/packet", seen.cpu_ns as f64 / seen.packets.max(1) as f64),
        ("memory MiB", seen.memory as f64 / f64::from(1 << 20)),
        ("lasting s", sent.seconds),
    ]
}
