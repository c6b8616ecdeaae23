//! Transfers whose rate does not last, as behind a token bucket.

use netaware_probe::goodput::{MeasuredRound, goodput};
use netaware_record::{Outcome, ReceiverTick, TcpResult, UdpResult};
use netaware_units::{BitRate, ByteCount};

use super::Seen;
use super::count::{counting, cut, kind, measured};
use crate::transfer::TcpRound;

/// That a transfer began fast and then held a much lower rate, in words.
pub(super) fn slowing_down<'a>(rounds: impl IntoIterator<Item = &'a MeasuredRound<'a>>) -> Option<String> {
    rounds.into_iter().find_map(|round| {
        let (first, later) = fallen(round.ticks)?;
        let half = round.ticks.get(..round.ticks.len() / 2)?;
        let fast = half.iter().rposition(|tick| slice_rate(tick) * 2.0 > first + later)?;
        let credit: ByteCount = half.iter().take(fast + 1).map(|tick| tick.bytes).sum();
        let (first, later) = (BitRate(first as u64), BitRate(later as u64));
        Some(format!("it fell for good from {first} to {later} after {credit}: {BUCKET_OR_PATH}"))
    })
}

/// The fall within a transfer was one of the path, because the other version met it as well.
pub(in crate::report) fn blame_the_path(tcp: &mut TcpResult) {
    tcp.limit.evidence = tcp.limit.evidence.replace(BUCKET_OR_PATH, PATH);
}

const BUCKET_OR_PATH: &str = "a token bucket was empty then, or the path became slower";
const PATH: &str = "the path became slower, over both versions";

/// The rates at first and later, in bit/s, of a transfer that fell for good in its first half.
fn fallen(ticks: &[ReceiverTick]) -> Option<(f64, f64)> {
    let half = ticks.get(..ticks.len() / 2)?;
    let early = half.iter().map(slice_rate).sum::<f64>() / half.len().max(1) as f64;
    crate::report::path_rates::held_down(early, ticks)
}

fn slice_rate(tick: &ReceiverTick) -> f64 {
    tick.bytes.0 as f64 * 8.0 / tick.length.secs_f64().max(1e-9)
}

/// The rates before and after a fall for good within a transfer of which [`super::seen`] tells
/// `seen`: in its first half, or by its last third.
pub(in crate::report) fn fell_within(round: &TcpRound, seen: &Seen) -> Option<(BitRate, BitRate)> {
    let early = fallen(counting(round))
        .map(|(first, later)| (BitRate(first.round() as u64), BitRate(later.round() as u64)));
    early.or_else(|| Some((seen.rate?.bit_rate(), seen.lately?.bit_rate())))
}

/// That several streams, which came later, got far less than one stream in the same direction: what
/// passes at first does not last. `tcp` and `udp` are the results of one version, TCP's in the
/// order first run, of these rounds. Where an outage fell into the slower transfer, or what came
/// after it had the higher rate again, nothing of the kind is known.
pub(in crate::report) fn fell_behind(
    tcp: &[TcpResult],
    udp: &[UdpResult],
    rounds: &[TcpRound],
) -> Vec<String> {
    let cut = cut(rounds);
    let whole = tcp.iter().filter(|it| !cut.contains(&(it.pedigree.direction, it.streams)));
    whole.filter_map(|later| fell_behind_one(later, tcp, udp, rounds)).collect()
}

fn fell_behind_one(
    later: &TcpResult,
    all: &[TcpResult],
    udp: &[UdpResult],
    rounds: &[TcpRound],
) -> Option<String> {
    let before = all.iter().take_while(|it| *it != later);
    let of_direction = |it: &&TcpResult| it.pedigree.direction == later.pedigree.direction;
    let first = before.filter(of_direction).find(|it| it.streams < later.streams)?;
    let is_whole = [first, later].iter().all(|it| it.outcome == Outcome::Complete);
    let (fast, slow) = (first.goodput?, later.goodput?);
    let middle = BitRate(u64::midpoint(fast.0, slow.0));
    if !is_whole || slow.0.saturating_mul(2) > fast.0 || came_again(later, udp, rounds, middle) {
        return None;
    }
    let round = |it: &TcpResult| -> Vec<ReceiverTick> {
        it.receiver_ticks.chunk_by(|one, next| one.end < next.end).next().unwrap_or_default().to_vec()
    };
    let ticks = round(later);
    let is_fast = |it: &ReceiverTick| BitRate::mean(it.bytes, it.length).is_some_and(|rate| rate > middle);
    let credit = ticks.iter().rposition(is_fast).map_or(0, |last| last + 1);
    let bytes: ByteCount = round(first).iter().chain(&ticks[..credit]).map(|it| it.bytes).sum();
    let way = later.pedigree.direction.name();
    let of_kind = |it: &&TcpRound| kind(it) == (later.pedigree.direction, later.streams);
    let each =
        rounds.iter().filter(of_kind).filter_map(|it| goodput(&[measured(it, None)])).map(|it| it.rate);
    let cause = "a token bucket was empty, or the path became slower";
    Some(match apart(each) {
        // Their mean is the rate of neither, and which of them lasts is not known.
        Some((least, most)) => format!(
            "TCP {way} came at {fast} for the first {bytes} and at {least} to {most} by round then: {cause}; the first \
             rate does not last"
        ),
        None => format!(
            "TCP {way} came at {fast} for the first {bytes} and at {slow} then: {cause}; only the lower rate lasts"
        ),
    })
}

/// The lowest and the highest of several rates, if they are not alike.
fn apart(rates: impl Iterator<Item = BitRate>) -> Option<(BitRate, BitRate)> {
    let rates: Vec<BitRate> = rates.collect();
    let (least, most) = (*rates.iter().min()?, *rates.iter().max()?);
    (most.0 > least.0 + least.0 / 4).then_some((least, most))
}

/// Whether something came faster than that in the same direction after the first transfer of this
/// kind: a transfer, or the stream of datagrams that follows transfers.
fn came_again(slow: &TcpResult, udp: &[UdpResult], rounds: &[TcpRound], than: BitRate) -> bool {
    let direction = slow.pedigree.direction;
    let of_kind = |round: &&TcpRound| kind(round) == (direction, slow.streams);
    let after = rounds.iter().skip_while(|round| !of_kind(round)).skip(1);
    let mut transfers = after.filter(|round| round.order.direction == direction);
    let mut streams = udp.iter().filter(|it| it.pedigree.direction == direction);
    transfers.any(|round| goodput(&[measured(round, None)]).is_some_and(|it| it.rate > than))
        || streams.any(|it| it.goodput.is_some_and(|rate| rate > than))
}
