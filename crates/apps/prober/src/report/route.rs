//! A path whose round trip became longer or shorter in the midst.
//!
//! **Measures** the smallest round trip of each phase of one version: of idle requests, and of
//! those beside each transfer with TCP's own, both of which begin before the transfer has filled a
//! queue. **Assumes** that phases follow each other in the order told: idle requests, then
//! transfers. The packets of one-way delays are as idle requests are: of their round trips no clock
//! has to be compared with another. Idle requests that queued behind each other show their own
//! queue, and are left out.

use netaware_probe::shift;
use netaware_record::IpVersion;
use netaware_units::Span;

use super::{Findings, latency, tcp};
use crate::queueing;
use crate::transfer::TcpRound;

/// A round trip that rose or fell, and stayed so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shift {
    pub(super) before: Span,
    pub(super) after: Span,
    /// The first transfer after it; `None` where idle requests saw it.
    first_transfer: Option<usize>,
}

impl Shift {
    /// The shift that the phases of one version show, if any.
    pub(super) fn of(found: &Findings) -> Option<Self> {
        let idle = found.idle.iter().filter(|run| !queueing::filled_a_queue(run));
        let idle: Vec<Span> = idle.flat_map(|run| parts(&run.round.rtts_ns())).collect();
        let transfers: Vec<Option<Span>> = found.tcp.iter().map(least).collect();
        let known = transfers.iter().enumerate().filter_map(|(number, least)| Some((number, (*least)?)));
        let (numbers, least): (Vec<usize>, Vec<Span>) = known.unzip();
        let shift = shift::shift(&[idle.as_slice(), &least].concat())?;
        let first_transfer =
            shift.from.checked_sub(idle.len()).map(|from| numbers.get(from).copied().unwrap_or(usize::MAX));
        Some(Self { before: shift.before, after: shift.after, first_transfer })
    }

    /// The shift that the round trips of packets on an idle path show, in the order sent.
    pub(super) fn of_idle(rtts_ns: &[f64]) -> Option<Self> {
        let shift = shift::shift(&parts(rtts_ns))?;
        Some(Self { before: shift.before, after: shift.after, first_transfer: None })
    }

    /// Whether the transfer with this number began after it, as all did where idle requests saw it.
    pub(super) fn has_moved(&self, transfer: usize) -> bool {
        self.first_transfer.is_none_or(|first| transfer >= first)
    }

    /// Idle requests saw both.
    pub(super) fn is_among_idle(&self) -> bool {
        self.first_transfer.is_none()
    }

    fn has_risen(&self) -> bool {
        self.after > self.before
    }

    pub(super) fn told(&self) -> String {
        let how = if self.has_risen() { "rose" } else { "fell" };
        format!(
            "the path's round trip {how} in the midst, from about {} to about {}",
            self.before, self.after
        )
    }

    /// The warning of one version.
    pub(super) fn warning(&self, version: IpVersion) -> String {
        let what = if self.is_among_idle() {
            "and stayed so until the end".to_owned()
        } else {
            "and stayed so between the transfers: what came after is not compared with the idle round trip"
                .to_owned()
        };
        let why = if self.has_risen() {
            "its route has become longer, or other traffic filled a queue for the rest of the time"
        } else {
            "its route has become shorter, other traffic no longer filled a queue, or a radio link woke up"
        };
        format!("{}: {}, {what}; {why}", version.name(), self.told())
    }
}

/// The smallest round trips of the parts of idle requests: a long run may see a change itself.
fn parts(rtts: &[f64]) -> Vec<Span> {
    if rtts.len() < MIN_REQUESTS {
        return Vec::new();
    }
    let length = rtts.len().div_ceil(PARTS).max(MIN_PART);
    rtts.chunks(length).filter(|part| part.len() >= MIN_REQUESTS).filter_map(smallest).collect()
}

/// The smallest round trip around a transfer.
pub(super) fn least(round: &TcpRound) -> Option<Span> {
    let requests = round.under_load().map(|run| latency::beside_load(run).rtts_ns());
    let of_requests = requests.filter(|rtts| rtts.len() >= MIN_REQUESTS).and_then(|rtts| smallest(&rtts));
    [of_requests, tcp::own_round_trip(round)].into_iter().flatten().min()
}

fn smallest(rtts: &[f64]) -> Option<Span> {
    rtts.iter().copied().reduce(f64::min).map(|ns| Span(ns as i64))
}

/// Parts of a long run.
const PARTS: usize = 4;
/// Requests of which one met the path without what others put into its queues for a moment.
const MIN_REQUESTS: usize = 5;
/// Requests of a part of a run.
const MIN_PART: usize = 20;

#[cfg(test)]
mod tests {
    use super::super::outages::tests::answered_in;
    use super::*;
    use crate::bulk::Ended;
    use crate::echo::EchoRun;
    use crate::transfer::TcpOrder;
    use netaware_record::{Direction, ReceiverTick, SenderTick};
    use netaware_units::ByteCount;

    fn idle(ms: i64) -> EchoRun {
        answered_in(25, |_| ms)
    }

    /// A transfer whose first requests go out on an idle path.
    fn transfer(first_ms: i64, loaded_ms: i64) -> TcpRound {
        let slice = Span::from_millis(50);
        let receiver_ticks =
            vec![ReceiverTick { end: slice, length: slice, bytes: ByteCount(9), ..ReceiverTick::default() }];
        let sender_ticks =
            vec![SenderTick { rtt: Some(Span::from_millis(loaded_ms)), ..SenderTick::default() }];
        TcpRound {
            order: TcpOrder::new(Direction::Forward, slice),
            ended: Ended { sender_ticks, receiver_ticks, ..Ended::default() },
            arrived: None,
            ran: None,
            load: Some(answered_in(40, |seq| if seq < 2 { first_ms } else { loaded_ms })),
        }
    }

    #[test]
    fn a_longer_route_is_told_and_a_deep_queue_under_load_is_not() {
        let of = |idle_ms: &[i64], transfers: &[(i64, i64)]| {
            let found = Findings {
                idle: idle_ms.iter().map(|ms| idle(*ms)).collect(),
                tcp: transfers.iter().map(|(first, loaded)| transfer(*first, *loaded)).collect(),
                ..Findings::default()
            };
            Shift::of(&found)
        };
        let moved = of(&[20, 20], &[(20, 30), (90, 92), (90, 100)]).unwrap();
        assert_eq!([0, 1, 2].map(|number| moved.has_moved(number)), [false, true, true]);
        let told = moved.warning(IpVersion::V6);
        assert!(told.starts_with(
            "IPv6: the path's round trip rose in the midst, from about 20.0 ms to about 90.0 ms, "
        ));
        assert_eq!(of(&[20, 20], &[(20, 2000), (20, 1500), (20, 2000)]), None);
        let shorter = of(&[120, 120], &[(40, 60), (40, 45)]).unwrap().warning(IpVersion::V4);
        assert!(shorter.contains(" fell in the midst, from about 120 ms to about 40.0 ms, "), "{shorter}");
        // The `latency` command has one long run.
        let run = answered_in(400, |seq| if seq < 210 { 20 } else { 90 });
        let seen = Shift::of(&Findings { idle: vec![run], ..Findings::default() });
        assert_eq!(seen, None, "one part alone saw nothing but the longer one");
        let run = answered_in(400, |seq| if seq < 190 { 20 } else { 90 });
        let seen = Shift::of(&Findings { idle: vec![run], ..Findings::default() }).unwrap();
        assert!(seen.is_among_idle() && seen.has_moved(0));
    }

    /// "Its route has become longer" and "the requests queued behind each other" in one record.
    #[test]
    fn requests_that_fill_a_queue_do_not_pass_for_a_longer_route() {
        let run = answered_in(600, |seq| 40 + i64::try_from(seq).unwrap());
        assert!(Shift::of_idle(&run.round.rtts_ns()).is_some(), "a step it looks like as well");
        assert!(queueing::filled_a_queue(&run));
        assert_eq!(Shift::of(&Findings { idle: vec![run], ..Findings::default() }), None);
    }

    /// A path of 20 ms each way, which became one of 300 ms, was said to vary, and no more.
    #[test]
    fn packets_of_one_way_delays_see_a_longer_route_too() {
        let seen = |from: u32| {
            let rtts: Vec<f64> = (0..600).map(|seq| if seq < from { 40.1e6 } else { 600.2e6 }).collect();
            Shift::of_idle(&rtts).map(|shift| shift.warning(IpVersion::V4))
        };
        let said = seen(291).unwrap();
        assert!(
            said.starts_with(
                "IPv4: the path's round trip rose in the midst, from about 40.1 ms to about 600 ms, and stayed so until \
                 the end; its route has become longer"
            ),
            "{said}"
        );
        assert_eq!([seen(600), seen(590)], [None, None]);
        assert_eq!(Shift::of_idle(&[]), None);
    }
}
