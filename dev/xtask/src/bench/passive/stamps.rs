//! How well packets are stamped: intervals between stamps beside those at which the packets were handed to the kernel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use anyhow::{Context as _, Result, ensure};
use netaware_capture::{Capture, Options};
use netaware_units::Span;

use super::published;
use super::traffic::{self, FILTER, Pace, Traffic};
use super::{Bench, OURS};
use crate::bench::contest::{Bound, Claim, Contender, Contest, Reading};

/// Frame, packets per second, and of the published test: error of the mean interval and standard deviation in us, loss in per cent.
const KNOWN: [(u32, f64, (f64, f64, f64)); 7] = [
    (84, 120_192.0, (18.32, 62.72, 68.91)),
    (84, 48_077.0, (0.16, 6.67, 0.05)),
    (300, 39_063.0, (0.04, 17.46, 0.14)),
    (300, 1_906.0, (0.0, 0.87, 0.0)),
    (600, 20_161.0, (0.04, 13.41, 0.09)),
    (1500, 8_224.0, (0.04, 30.39, 0.04)),
    (1500, 892.0, (1.0, 169.56, 0.07)),
];

/// Intervals at the reader against intervals at the sender.
pub(crate) fn contests<'a>(bench: &'a Bench<'a>) -> Vec<Contest<'a>> {
    let contest = |(frame, rate, (error, deviation, loss))| {
        let traffic = Traffic { frame, pace: Pace::Rate(rate), seconds: bench.seconds };
        let ours = Contender { name: OURS, run: Box::new(move || stamped(bench, traffic)) };
        let limit = |figure, limit| Claim { ours: OURS, figure, bound: Bound::Limit(limit) };
        Contest {
            title: format!("{frame} B, {rate} packets/s"),
            contenders: vec![ours, published::stamps(error, deviation, loss)],
            claims: vec![limit("mean error us", error.max(MEAN)), limit("deviation us", deviation)],
        }
    };
    KNOWN.map(contest).into_iter().collect()
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

/// Errors of intervals between successive packets, us, and how far stamps are behind the sender's clock.
fn figures(stamps: &[Stamp], lost: f64) -> Reading {
    let successive = stamps.windows(2).filter(|pair| pair[1].number == pair[0].number + 1);
    let errors: Vec<f64> = successive
        .map(|pair| ((pair[1].seen - pair[0].seen) - (pair[1].sent - pair[0].sent)) as f64 / 1e3)
        .collect();
    let mut behind: Vec<f64> = stamps.iter().map(|stamp| (stamp.seen - stamp.sent) as f64 / 1e3).collect();
    behind.sort_by(f64::total_cmp);
    let at = |share: f64| behind.get((share * behind.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let squares: f64 = errors.iter().map(|error| (error - mean).powi(2)).sum();
    vec![
        ("mean error us", mean.abs()),
        ("deviation us", (squares / (errors.len() as f64 - 1.0)).sqrt()),
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
    }
}
