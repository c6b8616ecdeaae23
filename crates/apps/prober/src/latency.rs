//! `netaware latency`: request-response delay as a measurement of its own.

use std::collections::BTreeMap;

use netaware_io::stop::StopFlag;
use netaware_record::Record;
use netaware_units::Span;

use crate::echo::{EchoOrder, EchoRun};
use crate::lane::{self, Lane};
use crate::progress::{Progress, Watch};
use crate::report::{self, Findings};
use crate::request::{LatencyRequest, Target, Transport};
use crate::tcp_echo::TcpEcho;

/// Two versions take turns in this many blocks; short ones, so that a drift hits both alike.
const BLOCKS: u16 = 8;

/// Measures each version asked for, in turns when there are two.
pub fn latency(request: &LatencyRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let opened = report::Opening::now("latency", &request.target, options_of(request));
    let versions = i64::try_from(request.target.versions.len()).unwrap_or(1);
    let whole = expected(request) * versions;
    let mut watch = Watch::new(whole, progress);
    watch.phase("connect", None);
    let mut lanes = lane::open_all(&request.target, stop);
    lane::note_dead(&lanes, &mut watch);
    let mut findings: Vec<Findings> = lanes.iter().map(|_| Findings::default()).collect();

    let lease = whole + Span::from_secs(10);
    let mut probes: Vec<Option<Probe>> =
        lanes.iter_mut().map(|lane| Probe::open(lane, request, lease)).collect();
    let alive = lanes.iter().filter(|lane| lane.is_alive()).count();
    let blocks = blocks(request, alive);
    for block in 0..blocks {
        for turn in lane::turns(lanes.len(), block) {
            let (lane, found) = (&mut lanes[turn], &mut findings[turn]);
            let Some(probe) = probes[turn].as_mut().filter(|_| lane.is_alive() && !stop.is_raised()) else {
                continue;
            };
            watch.phase("latency", Some(lane.version));
            found.idle.extend(probe.run(lane, &plan(request, block, blocks)));
        }
    }
    report::finish(opened, lanes, &findings, stop)
}

/// What asks: the lane's UDP flow, or a TCP connection.
enum Probe {
    Udp,
    Tcp(TcpEcho),
}

impl Probe {
    fn open(lane: &mut Lane, request: &LatencyRequest, lease: Span) -> Option<Self> {
        let target: &Target = &request.target;
        match request.transport {
            Transport::Udp => {
                lane::attach_echo(std::slice::from_mut(lane), target, lease, request.length);
                lane.echo.is_some().then_some(Self::Udp)
            }
            Transport::Tcp => match TcpEcho::open(lane.session()?, &target.options, lease, request.length) {
                Ok(echo) => Some(Self::Tcp(echo)),
                Err(cause) => {
                    lane.fail("open the echo connection", cause);
                    None
                }
            },
        }
    }

    fn run(&mut self, lane: &mut Lane, order: &EchoOrder) -> Option<EchoRun> {
        let Self::Tcp(echo) = self else { return lane.echo(order) };
        let over = lane.session()?.over.clone();
        match echo.run(order, &over) {
            Ok(run) => {
                lane.check("measure latency");
                Some(run)
            }
            Err(cause) => {
                lane.fail("measure latency", cause);
                None
            }
        }
    }
}

/// How long one version takes.
fn expected(request: &LatencyRequest) -> Span {
    let by_count = request.count.map(|count| {
        let each = if request.ping_pong { Span::from_micros(100) } else { request.spacing };
        each * i64::try_from(count).unwrap_or(i64::MAX)
    });
    match (request.time, by_count) {
        (Some(time), Some(count)) => time.min(count),
        (Some(time), None) => time,
        (None, Some(count)) => count,
        (None, None) => Span::from_secs(2),
    }
}

/// One version alone needs no turns, and few requests are not worth splitting.
fn blocks(request: &LatencyRequest, alive: usize) -> u16 {
    let enough = request.count.is_none_or(|count| count >= u64::from(BLOCKS) * 10);
    if alive > 1 && enough { BLOCKS } else { 1 }
}

fn plan(request: &LatencyRequest, block: u16, blocks: u16) -> EchoOrder {
    let (block, blocks) = (u64::from(block), u64::from(blocks));
    // Rounding must lose no request: each block takes up to where it should be by then.
    let count = request.count.map(|count| count * (block + 1) / blocks - count * block / blocks);
    EchoOrder {
        count,
        time: request.time.map(|time| time / blocks.cast_signed()),
        spacing: if request.ping_pong { Span::ZERO } else { request.spacing },
        length: request.length,
        patience: request.patience,
        ping_pong: request.ping_pong,
    }
}

fn options_of(request: &LatencyRequest) -> BTreeMap<String, String> {
    let given = [
        ("count", request.count.map(|count| count.to_string())),
        ("time", request.time.map(|time| time.to_string())),
        ("spacing", (!request.ping_pong).then(|| request.spacing.to_string())),
        ("ping-pong", request.ping_pong.then(|| "true".into())),
        ("length", Some(format!("{} B", request.length))),
        ("transport", Some(format!("{:?}", request.transport).to_lowercase())),
        ("timeout", Some(request.patience.to_string())),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lose_no_request() {
        let request = LatencyRequest { count: Some(203), ..LatencyRequest::new(Target::new("::1")) };
        let sum: u64 = (0..BLOCKS).filter_map(|block| plan(&request, block, BLOCKS).count).sum();
        assert_eq!(sum, 203);
    }
}
