//! Over which time a stream of datagrams was due, and whether it broke off before its end.
//!
//! **Measures** a stream by its plan: a sender whose system refuses its last datagrams, or that was
//! stopped, leaves for a shorter time than was planned, and what left in that time is not what the
//! path was asked to carry. **Assumes** that datagrams are due at equal distances, and that the
//! numbers of those that left have no holes. **Biased**: pauses in the midst of the last datagrams
//! make a silence at the end look shorter; so does a queue that holds the last arrivals. A run of
//! losses at the end is no silence as long as chance explains it.

use netaware_record::{UdpReceiverEnd, UdpSenderEnd};
use netaware_stats::ceasing::{Ceased, USUAL_SILENCE};
use netaware_units::Span;
use netaware_wire::control::UdpPlan;

/// When the datagrams of a stream are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Picoseconds from one datagram, or burst, to the next; `None` for as fast as possible.
    pub gap_ps: Option<u64>,
    /// Datagrams of a burst, from 1.
    pub burst: u32,
    /// Nothing is due after that.
    pub lasts: Span,
}

impl Schedule {
    /// That of a plan.
    pub fn of(plan: &UdpPlan) -> Self {
        Self { gap_ps: plan.gap_ps, burst: plan.burst, lasts: plan.duration.or_zero() }
    }

    /// Whether several datagrams leave at once at each step.
    pub fn is_of_bursts(&self) -> bool {
        self.gap_ps.is_some() && self.burst > 1
    }
}

/// From when the first datagram was due, or left, to when the last one was, or did. Of a stream
/// without times of its own: from its first to its last attempt.
pub fn due_over(sender: &UdpSenderEnd, schedule: Schedule) -> Span {
    let planned = sender.sent.saturating_add(sender.not_sent);
    let Some(gap_ps) = schedule.gap_ps.filter(|_| sender.not_sent > 0) else { return sender.elapsed };
    let steps = planned.saturating_sub(1) / u64::from(schedule.burst.max(1));
    let ns = u128::from(steps) * u128::from(gap_ps) / 1000;
    let due = Span(i64::try_from(ns).unwrap_or(i64::MAX));
    // Nothing is due after the plan's end.
    due.min(schedule.lasts).max(sender.elapsed)
}

/// The time over which so many datagrams of a stream have their rate, and the share of them that
/// belongs to it; the first and the last of them were `elapsed` apart. Of single datagrams there is
/// one less in that time than there are. Of bursts the time goes to the end of the last one's slot:
/// up to its last datagram there would be one burst too many in it. `None` of one datagram, and of
/// one burst, which have no rate.
pub fn rated(datagrams: u64, elapsed: Span, schedule: Schedule) -> Option<(f64, Span)> {
    let Some(gap_ps) = schedule.gap_ps.filter(|_| schedule.is_of_bursts()) else {
        return (datagrams > 1).then(|| ((datagrams - 1) as f64 / datagrams as f64, elapsed));
    };
    let burst = u64::from(schedule.burst);
    if datagrams <= burst {
        return None;
    }
    let ns = u128::from(datagrams) * u128::from(gap_ps) / (u128::from(burst) * 1000);
    let slots = Span(i64::try_from(ns).unwrap_or(i64::MAX));
    Some((1.0, slots.max(elapsed)))
}

/// Whether nothing of a stream arrived any more from an instant on until its end, for longer than
/// paths are usually silent, and why: datagrams that left and were lost, or that never left. `None`
/// too where nothing came at all, or where the receiver did not listen to the end.
pub fn broke_off(sender: &UdpSenderEnd, receiver: &UdpReceiverEnd, schedule: Schedule) -> Option<Ceased> {
    if receiver.received == 0 || receiver.observed.is_some() {
        return None;
    }
    let due = due_over(sender, schedule);
    let planned = sender.sent.saturating_add(sender.not_sent).max(1);
    let gap = due.secs_f64() / planned as f64;
    if gap <= 0.0 {
        return None;
    }
    let unanswered = sender.sent.saturating_sub(receiver.highest);
    // Of a stream without times of its own the last attempts are known by what came before them.
    let idle =
        if schedule.gap_ps.is_some() { due - sender.elapsed } else { refused_at_the_end(sender, receiver) };
    let not_sent = ((idle.secs_f64() / gap).round() as u64).min(sender.not_sent);
    let silent = idle + Span::from_secs_f64(gap * unanswered as f64);
    let ceased = Ceased { after: (due - silent).or_zero(), silent, unanswered, not_sent };
    // What the receiving host dropped had crossed the path.
    let is_of_host =
        receiver.drops.total().is_some_and(|drops| unanswered > 0 && drops >= unanswered.div_ceil(2))
            || receiver.stood_still.is_some_and(|stood| stood >= silent / 2);
    if is_of_host {
        return None;
    }
    let is_long = silent >= USUAL_SILENCE && unanswered.saturating_add(not_sent) >= MIN_SILENT;
    // Before the last arrival so many were lost; as many in a row may be chance.
    let lost = receiver.highest.saturating_sub(receiver.received);
    let chance = lost.saturating_add(1) as f64 / receiver.highest.saturating_add(2) as f64;
    let is_no_chance = idle >= USUAL_SILENCE || unanswered as f64 * chance.ln() <= CHANCE.ln();
    (is_long && is_no_chance).then_some(ceased)
}

/// How long the system had refused all datagrams when the stream ended, if all that left arrived.
fn refused_at_the_end(sender: &UdpSenderEnd, receiver: &UdpReceiverEnd) -> Span {
    let last = sender.refusals.iter().filter(|refusal| refusal.not_sent > 0).map(|it| it.last).max();
    let is_at_the_end = last.is_some_and(|last| sender.elapsed - last < USUAL_SILENCE / 2);
    let is_whole = receiver.received == sender.sent;
    if is_at_the_end && is_whole { (sender.elapsed - receiver.elapsed).or_zero() } else { Span::ZERO }
}

/// A few may be lost one by one.
const MIN_SILENT: u64 = 4;
/// Of so many streams, one may be told to have broken off that met with chance.
const CHANCE: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use netaware_record::{HostDrops, SendRefusal};

    use super::*;

    /// 10 Mbit/s in 3 s: 2583 datagrams of 1452 bytes.
    fn schedule(gap_ps: Option<u64>) -> Schedule {
        Schedule { gap_ps, burst: 1, lasts: Span::from_secs(3) }
    }

    const GAP_PS: u64 = 1_161_600_000;

    fn sender(sent: u64, not_sent: u64, ms: i64) -> UdpSenderEnd {
        UdpSenderEnd { sent, not_sent, elapsed: Span::from_millis(ms), ..UdpSenderEnd::default() }
    }

    fn receiver(received: u64, highest: u64) -> UdpReceiverEnd {
        UdpReceiverEnd { received, highest, elapsed: Span::from_millis(300), ..UdpReceiverEnd::default() }
    }

    #[test]
    fn a_stream_of_which_the_last_part_was_not_sent_is_measured_over_its_planned_time() {
        let plan = schedule(Some(GAP_PS));
        let cut = due_over(&sender(265, 2318, 307), plan);
        assert!((cut - Span::from_millis(2999)).0.abs() < 1_000_000, "{cut}");
        // In the midst nothing changes.
        assert_eq!(due_over(&sender(2000, 583, 2999), plan), Span(2_999_251_200));
        assert_eq!(due_over(&sender(2583, 0, 2990), plan), Span::from_millis(2990));
        let as_it_goes = schedule(None);
        assert_eq!(due_over(&sender(265, 2318, 307), as_it_goes), Span::from_millis(307));
    }

    /// 1.99 Mbit/s were told of 1 Mbit/s in two bursts, and 378 Mbit/s of 200 kbit/s in one.
    #[test]
    fn a_rate_of_bursts_is_that_of_their_slots_and_one_burst_has_none() {
        let plan = |burst| Schedule { burst, ..schedule(Some(1_177_600_000_000)) };
        let slot = Span::from_micros(1_177_600);
        let rated = |datagrams, elapsed, schedule| {
            rated(datagrams, elapsed, schedule).map(|(share, over)| ((share * 100.0).round() as u64, over))
        };
        assert_eq!(rated(200, slot, plan(100)), Some((100, slot * 2)));
        assert_eq!(rated(150, slot, plan(100)), Some((100, slot * 3 / 2)), "a part of a burst");
        assert_eq!(rated(200, slot * 3, plan(100)), Some((100, slot * 3)), "it took longer than planned");
        assert_eq!(rated(100, Span::from_micros(185), plan(100)), None);
        // Of single datagrams, and of those without times of their own, it is all but one.
        let all_but_one = Some((75, slot));
        assert_eq!(rated(4, slot, plan(1)), all_but_one);
        assert_eq!(rated(4, slot, Schedule { gap_ps: None, ..plan(100) }), all_but_one);
        assert_eq!(rated(1, slot, plan(1)), None);
    }

    #[test]
    fn a_stream_of_which_nothing_came_for_the_last_second_broke_off() {
        let plan = schedule(Some(GAP_PS));
        let judged = |sender: UdpSenderEnd, receiver: UdpReceiverEnd| {
            broke_off(&sender, &receiver, plan).map(|it| (it.unanswered, it.not_sent))
        };
        let whole = |sent| sender(sent, 0, 2999);
        // Sent, and lost to the end; refused to the end; and both.
        assert_eq!(judged(whole(2583), receiver(1183, 1183)), Some((1400, 0)));
        assert_eq!(judged(sender(265, 2318, 307), receiver(265, 265)), Some((0, 2318)));
        assert_eq!(judged(sender(1000, 1583, 1160), receiver(800, 800)), Some((200, 1583)));
        // An outage that ended, one that lasted for less than a second, and nothing at all.
        assert_eq!(judged(whole(2583), receiver(1183, 2583)), None);
        assert_eq!(judged(whole(2583), receiver(1800, 1800)), None);
        assert_eq!(judged(whole(2583), receiver(0, 0)), None);
        // Datagrams that were held back in the midst.
        assert_eq!(judged(sender(1000, 1583, 2999), receiver(1000, 1000)), None);
        // A receiver that did not listen to the end knows nothing of it.
        let deaf = UdpReceiverEnd { observed: Some(1183), ..receiver(1183, 1183) };
        assert_eq!(judged(whole(2583), deaf), None);
    }

    #[test]
    fn what_the_receiving_host_did_not_take_in_is_no_end_of_the_stream() {
        let judged = |receiver| broke_off(&sender(2583, 0, 2999), &receiver, schedule(Some(GAP_PS)));
        let drops = HostDrops { socket: Some(1350), ..HostDrops::default() };
        assert!(judged(receiver(1183, 1183)).is_some());
        assert_eq!(judged(UdpReceiverEnd { drops, ..receiver(1183, 1183) }), None);
        let stopped = Some(Span::from_millis(1600));
        assert_eq!(judged(UdpReceiverEnd { stood_still: stopped, ..receiver(1183, 1183) }), None);
        // A peer may claim anything.
        assert!(judged(receiver(1, u64::MAX)).is_none());
    }

    #[test]
    fn losses_in_a_row_at_the_end_are_chance_where_nearly_all_are_lost() {
        let slow = schedule(Some(100_000_000_000));
        let judged = |received, highest| broke_off(&sender(30, 0, 2900), &receiver(received, highest), slow);
        assert!(judged(8, 18).is_none(), "12 in a row where more than half are lost");
        assert!(judged(18, 18).is_some(), "12 in a row where none was");
    }

    #[test]
    fn a_stream_without_times_that_was_refused_to_its_end_broke_off() {
        let refused = |last| SendRefusal {
            cause: "Operation not permitted".into(),
            not_sent: 130,
            last: Span::from_millis(last),
            ..SendRefusal::default()
        };
        let judged = |last, received| {
            let end = UdpSenderEnd { refusals: vec![refused(last)], ..sender(9000, 130, 3000) };
            broke_off(&end, &receiver(received, received), schedule(None)).is_some()
        };
        assert!(judged(2990, 9000));
        assert!(!judged(400, 9000), "it was sent again after the refusals");
    }
}
