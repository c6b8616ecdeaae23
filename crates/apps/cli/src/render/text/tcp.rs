//! TCP in one direction, all numbers of streams together.

use std::io;

use netaware_record::{
    CpuUse, Direction, Interval, LoadedLatency, Outcome, StreamEnd, TcpEnd, TcpResult, VersionResult,
};
use netaware_units::{BitRate, ByteCount, Span};

use super::{Sheet, latency, limit, pedigree, streams, tcp_times};
use crate::render::figures::{self, UNKNOWN, count, known, load, signed};

pub(super) fn section(sheet: &mut Sheet<'_>, direction: Direction) -> io::Result<()> {
    let page = Page { direction, streams: stream_counts(sheet.versions, direction) };
    if page.streams.is_empty() {
        return Ok(());
    }
    sheet.table.section(&format!("TCP {}", direction.name().to_uppercase()))?;
    page.rates(sheet)?;
    page.transport(sheet)?;
    if sheet.is_full() {
        page.details(sheet)?;
    }
    page.under_load(sheet)?;
    page.hosts(sheet)?;
    page.limits(sheet)?;
    if sheet.is_full() {
        for result in sheet.versions.iter().flat_map(|v| page.of(v)).collect::<Vec<_>>() {
            streams::table(sheet, result)?;
        }
    }
    let results: Vec<&TcpResult> = sheet.versions.iter().flat_map(|v| page.of(v)).collect();
    let told: Vec<_> = results.iter().map(|r| (&r.pedigree, &r.health)).collect();
    pedigree::remarks(sheet, &told)
}

fn stream_counts(versions: &[&VersionResult], direction: Direction) -> Vec<u16> {
    let here = versions.iter().flat_map(|v| &v.tcp).filter(|r| r.pedigree.direction == direction);
    let mut counts: Vec<u16> = here.map(|r| r.streams).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn stream_count(n: u16) -> String {
    if n == 1 { "1 stream".to_owned() } else { format!("{n} streams") }
}

struct Page {
    direction: Direction,
    /// Ascending.
    streams: Vec<u16>,
}

impl Page {
    fn of<'v>(&self, v: &'v VersionResult) -> Vec<&'v TcpResult> {
        let mut results: Vec<_> = v.tcp.iter().filter(|r| r.pedigree.direction == self.direction).collect();
        results.sort_by_key(|r| r.streams);
        results
    }

    /// The one with the most streams: the heaviest load.
    fn fullest<'v>(&self, v: &'v VersionResult) -> Option<&'v TcpResult> {
        self.of(v).pop()
    }

    /// "retransmits, 1 / 4".
    fn label(&self, what: &str) -> String {
        if self.streams.len() < 2 {
            return what.to_owned();
        }
        let counts: Vec<_> = self.streams.iter().map(u16::to_string).collect();
        format!("{what}, {}", counts.join(" / "))
    }

    /// A value per number of streams; one if they are all the same.
    fn joined(&self, v: &VersionResult, value: impl Fn(&TcpResult) -> String) -> Option<String> {
        let values: Vec<String> = self.of(v).into_iter().map(value).collect();
        (!values.is_empty()).then(|| values.join(" / "))
    }

    fn rates(&self, sheet: &mut Sheet<'_>) -> io::Result<()> {
        for n in &self.streams {
            let result = |v: &VersionResult| self.of(v).into_iter().find(|r| r.streams == *n).cloned();
            sheet.row(&stream_count(*n), |v| {
                let result = result(v)?;
                Some(result.goodput.map_or_else(
                    || nothing(&result).to_owned(),
                    |rate| reached(rate, &result) + partial(&result),
                ))
            })?;
        }
        self.ended_early(sheet)
    }

    /// Of how much of the planned time the figures are, and why not of all of it.
    fn ended_early(&self, sheet: &mut Sheet<'_>) -> io::Result<()> {
        sheet.row("not whole", |v| {
            let early = self.of(v).into_iter().filter(|r| r.outcome != Outcome::Complete);
            let texts: Vec<String> = early.map(after).collect();
            (!texts.is_empty()).then(|| texts.join(" / "))
        })
    }

    fn transport(&self, sheet: &mut Sheet<'_>) -> io::Result<()> {
        sheet.row("congestion control", |v| {
            let mut names: Vec<String> = self.of(v).into_iter().map(|r| r.congestion.clone()).collect();
            names.dedup();
            (!names.is_empty()).then(|| names.join(" / ")).filter(|name| !name.is_empty())
        })?;
        sheet.row(&self.label("resent"), |v| self.joined(v, |r| known(r.retransmits, count)))?;
        sheet.row(&self.label("TCP's RTT"), |v| self.joined(v, |r| known(r.rtt, |it| it.to_string())))?;
        sheet.row(&self.label("cwnd"), |v| self.joined(v, |r| known(r.cwnd, |it| it.to_string())))
    }

    fn details(&self, sheet: &mut Sheet<'_>) -> io::Result<()> {
        sheet.row("payload received", |v| self.joined(v, |r| known(r.bytes, |it| it.to_string())))?;
        sheet.row("measured", |v| self.joined(v, |r| r.measured.to_string()))?;
        sheet.row("left in the path's queues", |v| {
            let left = self.of(v).into_iter().filter_map(|r| r.queue_left).max_by_key(|left| left.drained)?;
            let on_the_way =
                left.in_flight.map(|bytes| format!("; {bytes} were on the way")).unwrap_or_default();
            Some(format!("{}, drained in {}{on_the_way}", left.bytes, left.drained))
        })?;
        sheet.row("warm-up left out", |v| {
            self.joined(v, |r| known(r.warm_up.as_ref(), |it| format!("{}, {}", it.omitted, it.rule)))
        })?;
        sheet.row("each round", |v| {
            self.joined(v, |r| r.rounds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
                .filter(|text| !text.is_empty())
        })?;
        sheet.row("TCP's smallest RTT", |v| self.joined(v, |r| known(r.min_rtt, |it| it.to_string())))?;
        sheet.row("MSS, path MTU", |v| {
            let stream = self.fullest(v)?.sender.as_ref()?.streams.first()?;
            let bytes = |size: Option<u32>| known(size, |size| format!("{size} B"));
            Some(format!("{}, {}", bytes(stream.mss), bytes(stream.path_mtu)))
        })?;
        tcp_times::rows(sheet, &|v| self.fullest(v).cloned())?;
        sheet.row("fairness (Jain)", |v| self.fullest(v)?.fairness.map(|f| format!("{f:.3}")))?;
        sheet.row("sender held back", |v| held_back(self.fullest(v)?))
    }

    fn under_load(&self, sheet: &mut Sheet<'_>) -> io::Result<()> {
        sheet.row("RTT under load, p50", |v| {
            let loaded = self.loaded(v)?;
            let rise = loaded.rise.map(|rise| format!(" ({})", signed(rise))).unwrap_or_default();
            loaded.latency.rtt.map(|d| format!("{}{rise}", d.p50))
        })?;
        sheet.row("RTT under load, p99", |v| Some(self.loaded(v)?.latency.rtt?.p99.to_string()))?;
        sheet.row_of_counts("lost under load", |v| {
            let loaded = &self.loaded(v)?.latency;
            Some((loaded.lost, latency::lost(loaded)))
        })?;
        sheet.row_of_counts("fate unknown, loaded", |v| {
            let unknown = self.loaded(v)?.latency.unknown;
            Some((unknown, count(unknown)))
        })?;
        sheet.row("round trips per minute", |v| {
            self.loaded(v)?.round_trips_per_minute.map(|rpm| count(rpm.max(0.0) as u64))
        })
    }

    fn loaded<'v>(&self, v: &'v VersionResult) -> Option<&'v LoadedLatency> {
        self.fullest(v)?.latency_under_load.as_ref()
    }

    fn hosts(&self, sheet: &mut Sheet<'_>) -> io::Result<()> {
        let fullest = |v: &VersionResult| self.fullest(v).cloned();
        sheet.row("CPU, sender / receiver", |v| {
            fullest(v).map(|r| cores(cpu(r.sender.as_ref()), cpu(r.receiver.as_ref())))
        })?;
        sheet.row("busiest core, each end", |v| {
            fullest(v).and_then(|r| busiest(cpu(r.sender.as_ref()), cpu(r.receiver.as_ref())))
        })
    }

    fn limits(&self, sheet: &mut Sheet<'_>) -> io::Result<()> {
        limit::rows(sheet, &self.label("limited by"), |v| {
            let several = self.streams.len() > 1;
            let name = |r: &TcpResult| {
                let version = r.pedigree.version.name();
                if several { format!("{version}, {}", stream_count(r.streams)) } else { version.to_owned() }
            };
            self.of(v).into_iter().map(|r| (name(r), &r.limit)).collect()
        })
    }
}

fn held_back(result: &TcpResult) -> Option<String> {
    let streams = &result.sender.as_ref()?.streams;
    let sum =
        |of: fn(&StreamEnd) -> Option<Span>| streams.iter().map(|s| Some(of(s)?.0)).sum::<Option<i64>>();
    let busy = sum(|s| s.busy).filter(|busy| *busy > 0)?;
    let part = |spans: Option<i64>| known(spans, |spans| load(spans as f64 / busy as f64));
    let (window, buffer) = (sum(|s| s.window_limited), sum(|s| s.buffer_limited));
    Some(format!("window {}, buffer {}", part(window), part(buffer)))
}

/// CPU time of both ends as cores kept busy.
pub(super) fn cores(sender: Option<CpuUse>, receiver: Option<CpuUse>) -> String {
    let used = |cpu: Option<CpuUse>| {
        let used = cpu.and_then(|cpu| Some(cpu.process_user? + cpu.process_system?));
        known(used, |used| format!("{used:.2}"))
    };
    let (sender, receiver) = (used(sender), used(receiver));
    let unit = if sender == UNKNOWN && receiver == UNKNOWN { "" } else { " cores" };
    format!("{sender} / {receiver}{unit}")
}

/// The busiest core of each end.
pub(super) fn busiest(sender: Option<CpuUse>, receiver: Option<CpuUse>) -> Option<String> {
    let (sender, receiver) =
        (sender.and_then(|cpu| cpu.busiest_core), receiver.and_then(|cpu| cpu.busiest_core));
    if sender.is_none() && receiver.is_none() {
        return None;
    }
    let shown = |core: Option<f64>| core.map_or_else(|| "?".to_owned(), load);
    Some(format!("{} / {}", shown(sender), shown(receiver)))
}

fn cpu(end: Option<&TcpEnd>) -> Option<CpuUse> {
    end.and_then(|end| end.cpu)
}

/// What stands in place of a rate.
fn nothing(result: &TcpResult) -> &'static str {
    match (result.outcome, result.bytes) {
        (Outcome::Complete, _) => "too short to tell",
        (_, Some(ByteCount(0))) => "nothing came",
        _ => UNKNOWN,
    }
}

/// The rate with its interval, or what rounds had that are so far apart that their mean is none of
/// any of them: "78.4-171 Mbit/s by round".
fn reached(rate: BitRate, result: &TcpResult) -> String {
    let rounds = || result.rounds.iter().copied();
    let ends = rounds().min().zip(rounds().max()).filter(|(least, most)| least.0.saturating_mul(2) < most.0);
    let is_unsettled = |it: &Interval| it.hi - it.lo > rate.0 as f64;
    match (ends, &result.goodput_interval) {
        (Some((least, most)), Some(interval)) if is_unsettled(interval) => {
            format!("{} by round", figures::rates_between(least, most))
        }
        (_, interval) => figures::rate(rate, interval.as_ref()),
    }
}

/// The mark of a rate that is not of the whole time.
fn partial(result: &TcpResult) -> &'static str {
    if result.outcome == Outcome::Complete { "" } else { " (partial)" }
}

/// "2.90 s of 20.0 s counted; nothing heard for 4 s".
fn after(result: &TcpResult) -> String {
    let of = result.planned.map_or(String::new(), |planned| format!(" of {planned}"));
    let why = result.ended_early.as_ref().map_or(String::new(), |why| format!("; {why}"));
    if result.measured == Span::ZERO {
        return result.ended_early.clone().unwrap_or_else(|| format!("nothing{of} counted"));
    }
    format!("{}{of} counted{why}", result.measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_rounds_that_are_far_apart_is_shown_as_those_rounds() {
        let of = |rounds: [u64; 2], lo: f64, hi: f64| {
            let rate = BitRate(u64::midpoint(rounds[0], rounds[1]));
            let interval = Interval { estimate: rate.0 as f64, lo, hi, confidence: 0.95 };
            let of_fixture = crate::render::fixture::tcp().versions[0].tcp[0].clone();
            let result = TcpResult {
                goodput_interval: Some(interval),
                rounds: rounds.map(BitRate).to_vec(),
                ..of_fixture
            };
            reached(rate, &result)
        };
        // A link of 180 Mbit/s that had faded in one of them.
        assert_eq!(of([78_400_000, 171_000_000], 0.0, 324e6), "78.4-171 Mbit/s by round");
        assert_eq!(of([900_000, 171_000_000], 0.0, 324e6), "900 kbit/s - 171 Mbit/s by round");
        assert_eq!(of([169_000_000, 174_000_000], 162e6, 181e6), "171.5 ±9.5 Mbit/s");
    }
}
