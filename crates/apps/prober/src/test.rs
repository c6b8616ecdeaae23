//! The main job: every phase over both IP versions, in turns.
//!
//! ```text
//! connect (both at once) · reserve · path MTU · idle latency in 8 short blocks, IPv4 6 6 4 4 6 6 4
//! then rounds of turns, IPv4 6 | 6 4 | …; a turn is, for down and then up:
//!     TCP with one stream · TCP with several · UDP at 80 % of that          (echoes run beside TCP all the time)
//! and if asked for, before the rounds: capacity and available bandwidth from trains, both ways
//! ```

use std::collections::BTreeMap;

use netaware_io::stop::StopFlag;
use netaware_record::{Direction, IpVersion, Reach, Record};
use netaware_units::{BitRate, Span};

use crate::echo::{EchoOrder, EchoSizes};
use crate::estimation::{self, AvailableMethod, CapacityMethod, Estimation, EstimationRequest};
use crate::lane::{self, Lane};
use crate::path;
use crate::progress::{Progress, Watch};
use crate::report::{self, Findings};
use crate::request::{Directions, TestRequest};
use crate::transfer::{self, TcpOrder, UdpOrder};

/// Blocks of idle latency per version, and requests in each: 200 in all.
const IDLE_BLOCKS: u16 = 8;
const IDLE_REQUESTS: u64 = 25;
const IDLE_SPACING: Span = Span::from_millis(5);
const IDLE_PAYLOAD: u32 = 64;
/// Between echoes beside a bulk transfer, at the least, and while nothing is known of the path's
/// rate.
const LOADED_SPACING: Span = Span::from_millis(10);
const CAREFUL_SPACING: Span = Span::from_millis(50);
/// A slow path gets some echoes all the same.
const LONGEST_SPACING: Span = Span::from_millis(100);
/// Of the path's rate, at most, for the echoes: 2 promille. They would be missing from what TCP
/// reaches.
const ECHO_SHARE: u64 = 500;
const TICK: Span = Span::from_millis(50);
/// What opening, attaching and ending one transfer costs on a short path; subtracted from the
/// budget.
const TRANSFER_OVERHEAD: Span = Span::from_millis(60);
/// And the round trips of it: open, connect, attach, start, end, and what is left in the path's
/// queue.
const TRANSFER_ROUND_TRIPS: i64 = 7;
/// What connecting and the search for the MTU cost on a short path, and their round trips.
const SET_UP: Span = Span::from_millis(500);
const SET_UP_ROUND_TRIPS: i64 = 12;
/// Of each version and direction.
const CAPACITY_TIME: Span = Span::from_secs(3);
const AVAILABLE_TIME: Span = Span::from_secs(5);
/// The UDP phase runs at this share of what TCP reached.
const UDP_PERCENT: u64 = 80;

/// Measures both versions and compares them. `stop` ends it early with what there is.
pub fn test(request: &TestRequest, stop: &StopFlag, progress: &mut dyn FnMut(Progress)) -> Record {
    let opened = report::Opening::now("test", &request.target, options_of(request));
    let path_time =
        path_requests(request).iter().map(|it| it.time * 2).fold(Span::ZERO, |sum, time| sum + time)
            * i64::try_from(request.target.versions.len()).unwrap_or(1);
    let mut watch = Watch::new(request.budget + path_time, progress);
    watch.phase("connect", None);
    let mut lanes = lane::open_all(&request.target, stop);
    lane::note_dead(&lanes, &mut watch);
    let mut findings: Vec<Findings> = lanes.iter().map(|_| Findings::default()).collect();

    let lease = request.budget + path_time + Span::from_secs(10);
    if request.tcp || request.udp || request.path {
        lane::reserve_all(&mut lanes, lease, stop, &mut watch);
    }
    lane::attach_echo(&mut lanes, &request.target, lease, EchoSizes::equal(path::LARGEST_PROBE));
    for (lane, _) in alive(&mut lanes, &mut findings, stop) {
        watch.phase("path MTU", Some(lane.version));
        path::explore(lane);
    }
    idle_latency(&mut lanes, &mut findings, stop, &mut watch);
    if request.path {
        estimation::path_rates(&path_requests(request), &mut lanes, stop, &mut watch);
    }
    let living = lanes.iter().filter(|lane| lane.is_alive()).count();
    let schedules: Vec<Schedule> =
        lanes.iter().map(|lane| Schedule::new(request, living, round_trip(lane))).collect();
    for round in 0..request.rounds {
        for turn in lane::turns(lanes.len(), round) {
            take_turn(request, &schedules[turn], &mut lanes[turn], &mut findings[turn], stop, &mut watch);
        }
    }
    watch.phase("done", None);
    report::finish(opened, lanes, &findings, stop)
}

/// What `path` asks for: bulks and the curve, which are content within seconds.
fn path_requests(request: &TestRequest) -> Vec<EstimationRequest> {
    if !request.path {
        return Vec::new();
    }
    let of = |estimation, time| EstimationRequest {
        directions: Directions::Both,
        time,
        ..EstimationRequest::new(request.target.clone(), estimation)
    };
    vec![
        of(Estimation::Capacity(CapacityMethod::Bulk), CAPACITY_TIME),
        of(Estimation::Available(AvailableMethod::Curve), AVAILABLE_TIME),
    ]
}

fn alive<'a>(
    lanes: &'a mut [Lane],
    findings: &'a mut [Findings],
    stop: &'a StopFlag,
) -> impl Iterator<Item = (&'a mut Lane, &'a mut Findings)> {
    lanes.iter_mut().zip(findings).filter(|(lane, _)| lane.is_alive() && !stop.is_raised())
}

fn idle_latency(lanes: &mut [Lane], findings: &mut [Findings], stop: &StopFlag, watch: &mut Watch<'_>) {
    for block in 0..IDLE_BLOCKS {
        for turn in lane::turns(lanes.len(), block) {
            let (lane, found) = (&mut lanes[turn], &mut findings[turn]);
            if stop.is_raised() || !lane.is_alive() {
                continue;
            }
            watch.phase("idle latency", Some(lane.version));
            let order = EchoOrder {
                patience: idle_patience(round_trip(lane)),
                ..EchoOrder::open_loop(Some(IDLE_REQUESTS), IDLE_SPACING, IDLE_PAYLOAD)
            };
            found.idle.extend(lane.echo(&order));
        }
    }
}

/// After which an answer on an idle path counts as lost. Each block in which one is lost waits that
/// long: with a second, a path that loses 1 % would cost a third of the budget.
fn idle_patience(round_trip: Span) -> Span {
    (round_trip * 10).clamp(Span::from_millis(250), Span::from_secs(1))
}

/// One version's turn in a round.
fn take_turn(
    request: &TestRequest,
    schedule: &Schedule,
    lane: &mut Lane,
    found: &mut Findings,
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) {
    for direction in [Direction::Reverse, Direction::Forward] {
        let mut earlier = found.tcp.iter().rev().filter(|round| round.order.direction == direction);
        let mut reached = earlier.find_map(report::received_rate);
        if request.tcp {
            for (streams, duration) in [(1, schedule.single), (request.streams, schedule.parallel)] {
                if stop.is_raised() || !lane.is_alive() || streams == 0 {
                    return;
                }
                let what = format!("TCP {}, {}", direction.name(), count(streams));
                watch.phase(what, Some(lane.version));
                let order = TcpOrder {
                    streams,
                    duration,
                    congestion: request.congestion.clone(),
                    ..TcpOrder::new(direction, TICK)
                };
                let load = EchoOrder::until_stopped(spacing_beside(reached, lane.version), IDLE_PAYLOAD);
                let round = transfer::tcp(lane, &request.target, &[order], Some(&load), stop, watch);
                reached = round.first().and_then(report::received_rate).or(reached);
                found.tcp.extend(round);
            }
        }
        if request.udp && !stop.is_raised() && lane.is_alive() && lane.echo.is_some() {
            watch.phase(format!("UDP {}", direction.name()), Some(lane.version));
            let rate = request.udp_rate.or(reached.map(|rate| rate.percent(UDP_PERCENT)));
            let order = udp_order(request, lane, direction, schedule.udp, rate);
            found.udp.extend(transfer::udp(lane, &request.target, &[order], stop, watch));
        }
    }
}

/// Between the echoes beside a transfer that will reach about `rate`.
fn spacing_beside(rate: Option<BitRate>, version: IpVersion) -> Span {
    let Some(rate) = rate.filter(|rate| rate.0 > 0) else { return CAREFUL_SPACING };
    let bits = u64::from(IDLE_PAYLOAD + 8 + version.header_len()) * 8;
    let spacing = Span((bits * ECHO_SHARE * 1_000_000_000 / rate.0).min(i64::MAX as u64).cast_signed());
    spacing.clamp(LOADED_SPACING, LONGEST_SPACING)
}

fn count(streams: u16) -> String {
    if streams == 1 { "1 stream".into() } else { format!("{streams} streams") }
}

/// Without a TCP figure to go by, UDP runs at the rate of iperf3's default, which hurts nobody.
const CAREFUL_RATE: BitRate = BitRate(1_000_000);

fn udp_order(
    request: &TestRequest,
    lane: &mut Lane,
    direction: Direction,
    duration: Span,
    rate: Option<BitRate>,
) -> UdpOrder {
    let length = request.udp_length.unwrap_or_else(|| path::udp_payload(lane));
    let rate = rate.map(|rate| if request.udp_rate.is_some() { rate } else { paceable(lane, rate, length) });
    UdpOrder::paced(direction, duration, length, rate.unwrap_or(CAREFUL_RATE), TICK)
}

/// Beyond this many datagrams per second one core can no longer keep an even pace on the hosts we
/// know, and the phase would tell their limit instead of the path's loss.
const MOST_PACED: u64 = 200_000;

/// A rate that is derived from TCP's is cut to what can be paced, with a warning; one that a person
/// asked for is not.
fn paceable(lane: &mut Lane, rate: BitRate, length: u32) -> BitRate {
    let highest = BitRate(MOST_PACED * u64::from(length) * 8);
    if rate <= highest {
        return rate;
    }
    lane.warn(&format!(
        "UDP ran at {highest} and not at {UDP_PERCENT} % of TCP's rate: hosts cannot pace more than {MOST_PACED} \
         datagrams per second one by one"
    ));
    highest
}

/// What a handshake took.
fn round_trip(lane: &Lane) -> Span {
    lane.result.reach.as_ref().and_then(Reach::shortest_round_trip).unwrap_or_default()
}

/// How long each transfer of a turn lasts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Schedule {
    single: Span,
    parallel: Span,
    udp: Span,
}

impl Schedule {
    /// Shares what the latency phase leaves of the budget among all transfers: UDP's gaps and
    /// losses settle sooner than TCP's rate, and one stream sooner than several. On a long path the
    /// exchanges around transfers take their part.
    fn new(request: &TestRequest, lanes: usize, round_trip: Span) -> Self {
        let lanes = i64::try_from(lanes.max(1)).unwrap_or(1);
        let set_up = SET_UP + round_trip * (SET_UP_ROUND_TRIPS + i64::from(IDLE_BLOCKS) * lanes);
        let overhead = TRANSFER_OVERHEAD + round_trip * TRANSFER_ROUND_TRIPS;
        let idle = IDLE_SPACING * (i64::from(IDLE_BLOCKS) * IDLE_REQUESTS.cast_signed() * lanes);
        let transfers = 2 * i64::from(request.tcp) + i64::from(request.udp);
        let turns = i64::from(request.rounds.max(1)) * lanes * 2;
        let each = (request.budget - set_up - idle) / turns - overhead * transfers;
        let parts = [(request.tcp, SINGLE), (request.tcp, PARALLEL), (request.udp, UDP)];
        let whole: i64 = parts.iter().filter(|(used, _)| *used).map(|(_, part)| part).sum();
        let share = |part: i64| (each * part / whole.max(1)).max(SHORTEST);
        Self { single: share(SINGLE), parallel: share(PARALLEL), udp: share(UDP) }
    }
}

/// Shares of a turn. Several streams disturb each other longest before their sum is steady.
const SINGLE: i64 = 25;
const PARALLEL: i64 = 55;
const UDP: i64 = 20;

/// Shorter transfers say nothing, whatever the budget.
const SHORTEST: Span = Span::from_millis(200);

fn options_of(request: &TestRequest) -> BTreeMap<String, String> {
    let mut options = BTreeMap::from([
        ("time".to_owned(), request.budget.to_string()),
        ("streams".to_owned(), request.streams.to_string()),
        ("rounds".to_owned(), request.rounds.to_string()),
        ("tcp".to_owned(), request.tcp.to_string()),
        ("udp".to_owned(), request.udp.to_string()),
        ("path".to_owned(), request.path.to_string()),
    ]);
    let optional = [
        ("rate", request.udp_rate.map(|rate| rate.to_string())),
        ("length", request.udp_length.map(|length| format!("{length} B"))),
        ("congestion", request.congestion.clone()),
    ];
    options.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Target;

    #[test]
    fn a_schedule_fits_its_budget() {
        let request = TestRequest::new(Target::new("::1"));
        let schedule = Schedule::new(&request, 2, Span::ZERO);
        let turn = schedule.single + schedule.parallel + schedule.udp + TRANSFER_OVERHEAD * 3;
        let whole = turn * 8 + SET_UP + Span::from_secs(2);
        assert!(whole <= request.budget && whole > request.budget - Span::from_millis(10), "{whole}");
    }

    #[test]
    fn echoes_take_two_promille_of_a_path_at_most_or_ten_a_second() {
        let spacing = |mbit: u64| spacing_beside(Some(BitRate(mbit * 1_000_000)), IpVersion::V6);
        // 112 bytes of IPv6 packet: 896 bits.
        assert_eq!(spacing(10), Span::from_micros(44_800));
        assert_eq!((spacing(1), spacing(1000)), (LONGEST_SPACING, LOADED_SPACING));
        assert_eq!(spacing_beside(None, IpVersion::V4), CAREFUL_SPACING);
    }

    #[test]
    fn an_idle_path_is_given_ten_round_trips() {
        let millis = Span::from_millis;
        assert_eq!([0, 40, 600].map(|rtt| idle_patience(millis(rtt))), [250, 400, 1000].map(millis));
    }

    #[test]
    fn on_a_long_path_transfers_are_shorter() {
        let request = TestRequest { budget: Span::from_secs(60), ..TestRequest::new(Target::new("::1")) };
        let near = Schedule::new(&request, 2, Span::ZERO);
        let far = Schedule::new(&request, 2, Span::from_millis(20));
        // Three transfers per turn, each 140 ms shorter for its round trips, and an eighth of what
        // setting up takes.
        let less = (near.single + near.parallel + near.udp) - (far.single + far.parallel + far.udp);
        let expected = Span::from_millis(20) * (7 * 3) + Span::from_millis(20) * (12 + 16) / 8;
        assert!((less - expected).abs() < Span::from_micros(1), "{less}");
    }

    #[test]
    fn a_tiny_budget_still_gives_each_transfer_some_time() {
        let request = TestRequest { budget: Span::from_secs(1), ..TestRequest::new(Target::new("::1")) };
        assert_eq!(Schedule::new(&request, 2, Span::ZERO).udp, SHORTEST);
    }
}
