//! How well packets are stamped: intervals between stamps beside those at which the packets were
//! handed to the kernel.
//!
//! The published test had a generator of its own whose intervals are exact. Here the sender's
//! clock, read before its system call, is all that is known, so the sender sees to it that the call
//! takes the same time always ([`Pace::Warm`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use anyhow::{Context as _, Result, ensure};
use netaware_capture::{Capture, Options};
use netaware_units::Span;

use super::published::Stamps;
use super::traffic::{self, FILTER, Pace, Traffic};
use super::{Bench, OURS};
use crate::contest::{Bound, Claim, Contender, Contest, Reading};

/// The published test: bytes of a frame; then interval at the sender, packets per second, longest
/// and shortest interval at the probe, its standard deviation, error of its mean, all in us; loss
/// in per cent.
const KNOWN: [(u32, [f64; 7]); 30] = [
    (84, [7.68, 120_192.0, 61_934.0, 1.0, 62.72, 18.32, 68.91]),
    (84, [20.16, 48_077.0, 9_441.0, 2.0, 6.67, 0.16, 0.05]),
    (84, [506.72, 1_971.0, 520.0, 496.0, 0.71, 0.28, 0.00]),
    (84, [1_006.72, 993.0, 1_017.0, 998.0, 0.68, 0.28, 0.00]),
    (84, [5_006.72, 200.0, 5_021.0, 5_004.0, 0.87, 5.28, 0.00]),
    (300, [24.96, 39_063.0, 21_276.0, 2.0, 17.46, 0.04, 0.14]),
    (300, [63.36, 15_625.0, 2_944.0, 39.0, 3.03, 0.64, 0.00]),
    (300, [524.00, 1_906.0, 542.0, 507.0, 0.87, 0.00, 0.00]),
    (300, [1_024.00, 976.0, 1_036.0, 1_015.0, 1.02, 0.00, 0.00]),
    (300, [5_024.00, 199.0, 5_039.0, 5_024.0, 0.89, 5.00, 0.00]),
    (600, [48.96, 20_161.0, 6_051.0, 20.0, 13.41, 0.04, 0.09]),
    (600, [123.36, 8_065.0, 150.0, 98.0, 0.74, 0.64, 0.00]),
    (600, [548.00, 1_823.0, 557.0, 540.0, 0.89, 0.00, 0.00]),
    (600, [1_048.00, 954.0, 1_058.0, 1_039.0, 0.93, 0.00, 0.00]),
    (600, [5_048.00, 198.0, 5_060.0, 5_043.0, 1.26, 2.00, 0.00]),
    (900, [72.96, 13_587.0, 24_952.0, 50.0, 33.85, 0.04, 0.10]),
    (900, [183.36, 5_435.0, 203.0, 165.0, 1.23, 0.36, 0.00]),
    (900, [572.00, 1_746.0, 590.0, 555.0, 0.94, 0.00, 0.00]),
    (900, [1_072.00, 932.0, 2_145.0, 1_063.0, 4.63, 0.00, 0.00]),
    (900, [5_072.00, 197.0, 5_085.0, 5_064.0, 1.02, 0.00, 0.00]),
    (1200, [96.96, 10_246.0, 21_278.0, 74.0, 28.63, 0.04, 0.05]),
    (1200, [243.36, 4_098.0, 259.0, 230.0, 1.24, 0.36, 0.00]),
    (1200, [596.00, 1_676.0, 611.0, 584.0, 1.00, 0.00, 0.00]),
    (1200, [1_096.00, 912.0, 48_250.0, 1_088.0, 201.67, 1.00, 0.08]),
    (1200, [5_096.00, 196.0, 5_110.0, 5_088.0, 1.07, 0.00, 0.00]),
    (1500, [120.96, 8_224.0, 20_794.0, 96.0, 30.39, 0.04, 0.04]),
    (1500, [303.36, 3_289.0, 319.0, 289.0, 1.21, 0.36, 0.00]),
    (1500, [620.00, 1_611.0, 633.0, 609.0, 0.95, 0.00, 0.00]),
    (1500, [1_120.00, 892.0, 40_343.0, 1_112.0, 169.56, 1.00, 0.07]),
    (1500, [5_120.00, 195.0, 5_132.0, 5_112.0, 1.36, 1.00, 0.00]),
];

fn published(
    (frame, [interval, rate, longest, shortest, deviation, mean_error, loss]): (u32, [f64; 7]),
) -> Stamps {
    Stamps { frame, rate, interval, longest, shortest, deviation, mean_error, loss }
}

/// Intervals at the reader against intervals at the sender.
pub(crate) fn contests<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let contest = |known: Stamps| {
        let traffic = Traffic { frame: known.frame, pace: Pace::Warm(known.rate), seconds: bench.seconds };
        let ours = Contender { name: OURS, run: Box::new(move || stamped(bench, traffic)) };
        let limit = |figure, limit| Claim { ours: OURS, figure, bound: Bound::Limit(limit) };
        Contest {
            title: format!("{} B, every {} us", known.frame, known.interval),
            contenders: vec![ours, known.contender()],
            claims: vec![
                limit("mean error us", known.mean_error.max(MEAN)),
                limit("deviation us", known.deviation),
            ],
        }
    };
    KNOWN.map(published).map(contest).into_iter().collect()
}

/// Where the published error was 0 to their two digits.
const MEAN: f64 = 0.01;

/// A stamp of the kernel, and what the sender wrote into the packet.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    number: u64,
    sent: i64,
    seen: i64,
}

fn stamped(bench: &Bench<'_>, traffic: Traffic) -> Result<Reading> {
    let over = AtomicBool::new(false);
    let (sent, stamps, lost) = thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let reading = scope.spawn(|| read(bench, &over, ready));
        let sent = is_ready.recv().context("the capture did not open").and_then(|()| {
            let sent = traffic::send(bench.pair, traffic);
            crate::clock::pause(std::time::Duration::from_millis(300));
            sent
        });
        over.store(true, Ordering::Relaxed);
        let read = reading.join().unwrap_or_else(|_| Err(io::Error::other("the reader panicked")))?;
        sent.map(|sent| (sent, read.0, read.1))
    })?;
    ensure!(stamps.len() as u64 + lost == sent.packets, "{} of {sent:?} stamped, {lost} lost", stamps.len());
    Ok(figures(&stamps, lost as f64 / sent.packets as f64))
}

/// Where the numbers are: behind Ethernet, IPv6 and UDP.
const PAYLOAD: usize = 14 + 40 + 8;

fn read(
    bench: &Bench<'_>,
    over: &AtomicBool,
    ready: std::sync::mpsc::Sender<()>,
) -> io::Result<(Vec<Stamp>, u64)> {
    let device = bench.pair.right().device();
    bench.pair.right().within(move || {
        let options = Options { filter: Some(FILTER.to_owned()), ..Options::new(device) };
        let mut capture = Capture::open(&options).map_err(io::Error::other)?;
        // Whoever waits is there, or has ended and needs no word.
        let _ = ready.send(());
        drop(ready);
        let mut stamps = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let mut see = |frame: netaware_capture::Frame<'_>| {
                let word = |at: usize| frame.bytes.get(at..at + 8)?.first_chunk::<8>().copied();
                if let (Some(number), Some(sent)) = (word(PAYLOAD), word(PAYLOAD + 8)) {
                    let (number, sent) = (u64::from_be_bytes(number), i64::from_be_bytes(sent));
                    stamps.push(Stamp { number, sent, seen: frame.at.0 });
                }
            };
            capture.read(Span::from_millis(50), &mut see).map_err(io::Error::other)?;
        }
        let counts = capture.counts();
        Ok((stamps, counts.lost_ring + counts.lost_kernel))
    })
}

/// Errors of intervals between successive packets, us, and how far stamps are behind the sender's
/// clock.
fn figures(stamps: &[Stamp], lost: f64) -> Reading {
    let successive = stamps.windows(2).filter(|pair| pair[1].number == pair[0].number + 1);
    let errors: Vec<f64> = successive
        .map(|pair| ((pair[1].seen - pair[0].seen) - (pair[1].sent - pair[0].sent)) as f64 / 1e3)
        .collect();
    let mut behind: Vec<f64> = stamps.iter().map(|stamp| (stamp.seen - stamp.sent) as f64 / 1e3).collect();
    behind.sort_by(f64::total_cmp);
    let at = |share: f64| behind.get((share * behind.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    let most = |sign: f64| errors.iter().map(|error| sign * error).fold(f64::NEG_INFINITY, f64::max) * sign;
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let squares: f64 = errors.iter().map(|error| (error - mean).powi(2)).sum();
    vec![
        ("mean error us", mean.abs()),
        ("deviation us", (squares / (errors.len() as f64 - 1.0)).sqrt()),
        ("longest off us", most(1.0)),
        ("shortest off us", most(-1.0)),
        ("lost %", 100.0 * lost),
        ("behind sender us, median", at(0.5)),
        ("behind sender us, 99 %", at(0.99)),
        ("behind sender us, 99.9 %", at(0.999)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_over_a_lost_packet_do_not_count() {
        let stamp = |number, sent, seen| Stamp { number, sent, seen };
        let stamps =
            [stamp(0, 0, 5_000), stamp(1, 1_000, 7_000), stamp(3, 3_000, 99_000), stamp(4, 4_000, 99_000)];
        let found = figures(&stamps, 0.25);
        let of = |name: &str| found.iter().find(|(known, _)| *known == name).unwrap().1;
        assert!(of("mean error us").abs() < 1e-9, "{found:?}");
        assert!((of("deviation us") - 2.0_f64.sqrt()).abs() < 1e-9, "{found:?}");
        assert!((of("lost %") - 25.0).abs() < 1e-9);
        assert!((of("longest off us") - 1.0).abs() < 1e-9, "{found:?}");
        assert!((of("shortest off us") + 1.0).abs() < 1e-9, "{found:?}");
    }
}
