//! Transfers over TCP that stopped for good, while what ran beside them went on.
//!
//! **Measures** how long nothing came at the end of each transfer of one version and direction.
//! **Assumes** that TCP sends a lost segment again after a time-out of a round trip and 200 ms, and
//! doubles that time each time (RFC 6298 §5.5): a path that only loses carries one of these. Each
//! transfer of the direction has to stop, because something that ends connections ends each of
//! them. Streams that agree to a twentieth in what they carried show it after two time-outs; others
//! show it after fifteen, in which four have passed. **Biased** towards a transfer that only
//! pauses: if one of a direction had a rate or a number of bytes to keep to, met an outage by the
//! requests beside it, or an end did not run meanwhile, nothing is said of that direction.

use netaware_probe::unrest::{self, Stall};
use netaware_record::{Direction, Outcome};
use netaware_units::{ByteCount, Span};

use super::count::planned;
use super::own_round_trip;
use crate::heavy_loss;
use crate::report::{Findings, outages};
use crate::transfer::TcpRound;

/// The transfers of one direction, each of which stopped for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopped {
    direction: Direction,
    /// No stream carried more.
    most: ByteCount,
    /// Streams that carried something.
    streams: usize,
    /// Whether each of several streams carried about as much.
    are_alike: bool,
}

impl Stopped {
    fn of(found: &Findings, direction: Direction) -> Option<Self> {
        if heavy_loss::is_heavy(heavy_loss::of_runs(&found.idle)) {
            // Losses by chance alone may take each segment that is sent again.
            return None;
        }
        let own = || found.tcp.iter().filter(|round| round.order.direction == direction);
        let silences: Vec<Silence> =
            own().map(|round| Silence::of(round, found.longest_pause)).collect::<Option<_>>()?;
        let ends = own().filter_map(|round| round.ended.tcp_receiver.as_ref());
        let carried = ends.flat_map(|end| &end.streams).map(|stream| stream.bytes);
        let carried: Vec<ByteCount> = carried.filter(|bytes| *bytes > ByteCount(0)).collect();
        let (least, most) = (*carried.iter().min()?, *carried.iter().max()?);
        let are_alike = carried.len() > 1 && most.0 <= least.0 + least.0 / ALIKE;
        let enough = if are_alike { TIME_OUTS_OF_ALIKE } else { TIME_OUTS };
        let is_enough = silences.iter().any(|it| it.is_long && it.lasted >= it.time_out * enough);
        is_enough.then_some(Self { direction, most, streams: carried.len(), are_alike })
    }

    pub(in crate::report) fn is_of(self, direction: Direction) -> bool {
        self.direction == direction
    }

    /// What was seen of each stream.
    pub(in crate::report) fn seen(self) -> String {
        let way = self.direction.name();
        let (most, all) = (self.most, self.streams);
        if self.are_alike {
            format!("TCP {way} stopped after {most} in each of {all} streams and did not go on")
        } else {
            let of_streams =
                if all == 1 { "with one stream".to_owned() } else { format!("with {all} streams") };
            format!("TCP {way} {of_streams} stopped after {most} at most and did not go on")
        }
    }

    pub(in crate::report) fn warning(self) -> String {
        let why = if self.are_alike {
            "something on the way drops the packets of a connection after so many bytes, or after so long"
        } else {
            "something on the way began to drop the packets of its connections, or each of those that were sent \
             again was lost"
        };
        format!("{}: {why}; a longer --time shows no more", self.seen())
    }
}

/// Marks the transfers that stopped for good as ones that did not run to their end.
pub(in crate::report) fn mark(found: &mut Findings) {
    for direction in [Direction::Reverse, Direction::Forward] {
        let Some(stopped) = Stopped::of(found, direction) else { continue };
        for round in found.tcp.iter_mut().filter(|round| round.order.direction == direction) {
            round.ended.outcome = Outcome::Failed;
            round.ended.early = Some(WHY.to_owned());
        }
        found.stopped.push(stopped);
    }
}

/// The time without data at the end of a transfer.
struct Silence {
    lasted: Span,
    /// How long TCP waits before it sends for the first time again.
    time_out: Span,
    /// It took half of the transfer or more.
    is_long: bool,
}

impl Silence {
    /// `None` where data came until the end or nearly so, or where something else may have ended
    /// them. `longest_pause` is that of the control connection.
    fn of(round: &TcpRound, longest_pause: Option<Span>) -> Option<Self> {
        let planned = planned(round)?;
        let is_whole = round.ended.outcome == Outcome::Complete && round.ran.is_none();
        if !is_whole || round.order.held_to().is_some() {
            return None;
        }
        let (_, ticks) = round.count();
        let at = ticks.iter().rfind(|tick| tick.bytes > ByteCount(0))?.end;
        let lasted = (ticks.last()?.end.min(planned) - at).or_zero();
        if lasted * SHORTEST < planned
            || unrest::contradicts(&round.ended.receiver_ticks, &Stall { at, lasted })
        {
            return None;
        }
        let went_on = match round.under_load() {
            Some(beside) => beside.answers() > 0 && outages::beside(round).is_none(),
            None => longest_pause.is_some_and(|pause| pause < lasted),
        };
        let round_trip = round.loaded_rtt().max(own_round_trip(round)).unwrap_or_default();
        went_on.then_some(Self {
            lasted,
            time_out: MIN_VARIATION + round_trip,
            is_long: lasted * 2 >= planned,
        })
    }
}

/// Why a transfer that stopped for good did not run to its end.
const WHY: &str = "nothing came any more, though its time was not up";
/// What systems add to the round trip at least before they send again.
const MIN_VARIATION: Span = Span::from_millis(200);
/// So long is one time-out and a part of the next one: several streams that stop at one place are
/// no accident.
const TIME_OUTS_OF_ALIKE: i64 = 2;
/// So long are four time-outs, of which each is twice as long as the one before.
const TIME_OUTS: i64 = 15;
/// The silence takes this part of a transfer at least: a short one is mostly its begin.
const SHORTEST: i64 = 3;
/// Streams carried as much as each other up to one part in so many.
const ALIKE: u64 = 20;

#[cfg(test)]
mod tests {
    use netaware_record::{ReceiverTick, StreamEnd, TcpEnd};

    use super::*;
    use crate::bulk::Ended;
    use crate::transfer::TcpOrder;

    const TICK: Span = Span::from_millis(100);

    /// A transfer up of which so much came in each of its slices, and so much of each stream.
    fn round(slices: &[u64], carried: &[u64]) -> TcpRound {
        let slice = |(n, bytes): (i64, &u64)| ReceiverTick {
            end: TICK * n,
            length: TICK,
            bytes: ByteCount(*bytes),
            ..ReceiverTick::default()
        };
        let receiver_ticks: Vec<ReceiverTick> = (1..).zip(slices).map(slice).collect();
        let stream = |bytes: &u64| StreamEnd { bytes: ByteCount(*bytes), ..StreamEnd::default() };
        let end = TcpEnd {
            bytes: ByteCount(carried.iter().sum()),
            streams: carried.iter().map(stream).collect(),
            ..TcpEnd::default()
        };
        let order = TcpOrder {
            duration: TICK * i64::try_from(slices.len()).unwrap(),
            streams: u16::try_from(carried.len()).unwrap(),
            ..TcpOrder::new(Direction::Forward, TICK)
        };
        let ended =
            Ended { outcome: Outcome::Complete, receiver_ticks, tcp_receiver: Some(end), ..Ended::default() };
        TcpRound { order, ended, arrived: None, ran: None, load: None }
    }

    fn burst(bytes: u64, silent: usize) -> TcpRound {
        round(&[[bytes].as_slice(), vec![0; silent].as_slice()].concat(), &[bytes])
    }

    fn found(tcp: Vec<TcpRound>) -> Findings {
        Findings { tcp, longest_pause: Some(Span::from_millis(300)), ..Findings::default() }
    }

    fn stopped(tcp: Vec<TcpRound>) -> Option<Stopped> {
        Stopped::of(&found(tcp), Direction::Forward)
    }

    /// A filter that drops the long packets of a connection after 60 kB was "still speeding up".
    #[test]
    fn a_transfer_that_stalled_for_good_is_not_still_speeding_up() {
        let mut found = found(vec![burst(58_420, 24), burst(59_232, 24)]);
        mark(&mut found);
        let want = "TCP up stopped after 57.8 KiB in each of 2 streams and did not go on";
        assert_eq!(found.stopped.iter().copied().map(Stopped::seen).collect::<Vec<_>>(), [want]);
        for round in &found.tcp {
            assert_eq!((round.ended.outcome, round.ended.early.as_deref()), (Outcome::Failed, Some(WHY)));
            let measured = super::super::measured(round, None);
            assert_eq!(super::super::verdict::unsettled(round, &measured), None);
        }
    }

    #[test]
    fn a_single_stream_stopped_for_good_after_four_time_outs_and_alike_ones_sooner() {
        let one = stopped(vec![burst(58_420, 30)]).unwrap();
        assert_eq!(one.seen(), "TCP up with one stream stopped after 57.1 KiB at most and did not go on");
        assert_eq!(stopped(vec![burst(58_420, 29)]), None);
        assert_eq!(stopped(vec![burst(58_420, 29), burst(90_000, 29)]), None, "they do not agree");
        let alike = |silent| stopped(vec![burst(58_420, silent), burst(59_232, silent)]).is_some();
        assert!(alike(4) && !alike(3));
    }

    #[test]
    fn a_transfer_that_went_on_or_met_an_outage_did_not_stop_for_good() {
        let went_on = round(&[20_000; 25], &[500_000]);
        assert_eq!(stopped(vec![burst(58_420, 24), went_on]), None);
        let late = round(&[[20_000; 20].as_slice(), &[0; 5]].concat(), &[400_000]);
        assert_eq!(stopped(vec![late]), None, "a short silence at the end");
        // The control connection was as silent.
        let pause = Some(Span::from_secs(3));
        let out = Findings { longest_pause: pause, ..found(vec![burst(58_420, 30)]) };
        assert_eq!(Stopped::of(&out, Direction::Forward), None);
        assert_eq!(Stopped::of(&found(Vec::new()), Direction::Forward), None);
    }
}
