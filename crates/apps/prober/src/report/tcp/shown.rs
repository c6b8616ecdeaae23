//! What a transfer showed of its path, for later phases.

use netaware_probe::goodput::goodput;
use netaware_probe::warm_up;
use netaware_record::ReceiverTick;
use netaware_units::{BitRate, ByteCount, SendRate, Span};

use super::count::{is_cut, measured, planned};
use crate::transfer::TcpRound;

/// What one transfer showed of its path: what later phases go by. A rate of zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Seen {
    /// What the receiver got per second after the warm-up.
    pub(crate) rate: Option<SendRate>,
    /// What it got per second of all the time that was planned, warm-up and silence included.
    pub(crate) mean: Option<SendRate>,
    /// What the receiver got per second in the last third of what counts.
    pub(crate) lately: Option<SendRate>,
    /// It was still speeding up when it ended.
    pub(crate) is_lower_bound: bool,
    /// What came per second behind the last slice in which nothing came.
    pub(crate) behind: Option<SendRate>,
    /// How long the warm-up took; absent where it was not over.
    pub(crate) warm_up: Option<Span>,
    /// An outage fell into it: the path carries more while it lasts.
    pub(crate) is_cut: bool,
}

impl Seen {
    /// What a stream that does not listen to losses may go by: the rate, unless it had fallen by
    /// the end. A token bucket lets more pass at first than it does for good.
    pub(crate) fn lasting(&self) -> Option<SendRate> {
        let rate = self.rate?;
        let lately = self.lately.unwrap_or(rate);
        let has_fallen = lately.bit_rate().0 < rate.bit_rate().percent(HAS_FALLEN).0;
        Some(if has_fallen { lately } else { rate })
    }
}

/// Rates of a transfer vary by less than this share, per cent.
const HAS_FALLEN: u64 = 70;

/// What one transfer showed of a path with this round trip.
pub(crate) fn seen(round: &TcpRound, round_trip: Span) -> Seen {
    let measured = measured(round, Some(round_trip));
    let bytes: ByteCount = measured.ticks.iter().map(|tick| tick.bytes).sum();
    let time: Span = measured.ticks.iter().map(|tick| tick.length.or_zero()).sum();
    let counted = measured.counted();
    let last = &counted[counted.len() - counted.len() / 3..];
    let rate_of = |ticks: &[ReceiverTick]| {
        let bytes: ByteCount = ticks.iter().map(|tick| tick.bytes).sum();
        let time: Span = ticks.iter().map(|tick| tick.length.or_zero()).sum();
        BitRate::mean(bytes, time).and_then(SendRate::new)
    };
    let silent = counted.iter().rposition(|tick| tick.bytes == ByteCount(0));
    let behind = silent.map_or(counted, |at| &counted[at + 1..]);
    Seen {
        lately: rate_of(last).filter(|_| last.len() > 1),
        behind: rate_of(behind),
        rate: goodput(&[measured]).and_then(|goodput| SendRate::new(goodput.rate)),
        mean: BitRate::mean(bytes, time.max(planned(round).unwrap_or_default())).and_then(SendRate::new),
        is_lower_bound: measured.warm_up == warm_up::WarmUpEnd::NeverEnded,
        is_cut: is_cut(round),
        warm_up: (measured.warm_up != warm_up::WarmUpEnd::NeverEnded).then(|| {
            measured.ticks.iter().take(measured.warm_up.first()).map(|tick| tick.length.or_zero()).sum()
        }),
    }
}
