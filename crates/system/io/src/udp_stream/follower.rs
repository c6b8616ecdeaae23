//! Follows a stream that somebody else takes off the wire, datagram by datagram: what came in
//! another protocol's packets is counted by the same rules as what comes by a socket of ours.

use netaware_record::{Outcome, ReceiverTick, UdpReceiverEnd};
use netaware_units::{ByteCount, ClockSource, Mono, Span, Stamp};
use netaware_wire::control::UdpPlan;

use super::account::{Account, ArrivedAt, Standing};
use super::receiver::{observed, verdict};

/// The receiving end of one stream. Time is an argument.
#[derive(Debug)]
pub struct Follower {
    plan: UdpPlan,
    account: Account,
    start: Mono,
    ticked_at: Option<Mono>,
    before: Standing,
}

impl Follower {
    /// Of the stream `flow`, from now on.
    pub fn new(flow: u32, plan: &UdpPlan, now: Mono) -> Self {
        let account = Account::new(flow, plan);
        Self { plan: plan.clone(), account, start: now, ticked_at: None, before: Standing::default() }
    }

    /// A datagram that has come; what is not the stream's is counted as foreign.
    pub fn take(&mut self, datagram: &[u8], rx: Stamp) {
        let by_kernel = rx.by != ClockSource::Application;
        self.account.take(datagram, ArrivedAt { at: rx.at, by_kernel });
    }

    /// How the stream ended, once it has: `plan.settle` after its end was heard of, or
    /// [`UdpPlan::longest_drain`] after the plan's end.
    pub fn verdict(&self, now: Mono) -> Option<Outcome> {
        verdict(&self.account, &self.plan, self.start, now)
    }

    /// The slice since the last one, once `plan.tick` has passed. Slices count from the first
    /// datagram.
    pub fn tick(&mut self, now: Mono) -> Option<ReceiverTick> {
        let ticked_at = *self.ticked_at.get_or_insert(self.account.first()?);
        (now - ticked_at >= self.plan.tick.max(SHORTEST_TICK)).then(|| self.cut(now))
    }

    /// The last, shorter slice.
    pub fn last_tick(&mut self, now: Mono) -> Option<ReceiverTick> {
        self.account.first().map(|_| self.cut(now))
    }

    /// Everything but outcome, drops and CPU, of a stream that is no longer followed from `now` on.
    pub fn close(self, now: Mono) -> UdpReceiverEnd {
        let observed = observed(&self.account, &self.plan, self.start, now);
        UdpReceiverEnd { observed, ..self.account.close(&self.plan) }
    }

    fn cut(&mut self, now: Mono) -> ReceiverTick {
        let first = self.account.first().unwrap_or(now);
        let (standing, before) = (self.account.standing(), self.before);
        let begun = self.ticked_at.replace(now).unwrap_or(first);
        self.before = standing;
        ReceiverTick {
            end: now - first,
            length: now - begun,
            bytes: ByteCount(standing.bytes - before.bytes),
            packets: standing.packets - before.packets,
            lost: standing.missing.cast_signed().wrapping_sub(before.missing.cast_signed()),
            streams: 0,
        }
    }
}

/// A plan may come from the network.
const SHORTEST_TICK: Span = Span::from_millis(1);

#[cfg(test)]
mod tests {
    use netaware_wire::datagram::{Header, Kind};

    use super::*;

    fn plan() -> UdpPlan {
        let plan = super::super::tests::plan(100, None);
        UdpPlan { duration: Span::from_secs(1), tick: Span::from_millis(100), ..plan }
    }

    fn datagram(kind: Kind, seq: u64) -> [u8; 100] {
        let mut bytes = [0; 100];
        Header { kind, flow: 7, seq, sent_at: seq * 1_000_000 }.emit(&mut bytes);
        bytes
    }

    fn at(ms: u64) -> Stamp {
        Stamp::application(Mono(ms * 1_000_000))
    }

    #[test]
    fn slices_and_the_end_count_every_datagram_once() {
        let mut follower = Follower::new(7, &plan(), Mono(0));
        assert_eq!((follower.tick(Mono(0)), follower.last_tick(Mono(0))), (None, None));
        let mut ticks = Vec::new();
        for seq in (0..500).filter(|seq| seq % 100 != 3) {
            let now = at(1000 + seq).at;
            follower.take(&datagram(Kind::Data, seq), at(1000 + seq));
            ticks.extend(follower.tick(now));
        }
        follower.take(&datagram(Kind::End, 500), at(1600));
        assert_eq!(follower.verdict(at(1899).at), None);
        assert_eq!(follower.verdict(at(1900).at), Some(Outcome::Complete));
        ticks.extend(follower.last_tick(at(1900).at));
        assert_eq!(ticks.iter().map(|tick| tick.packets).sum::<u64>(), 495);
        assert_eq!(ticks.iter().map(|tick| tick.lost).sum::<i64>(), 5);
        assert_eq!(ticks.iter().map(|tick| tick.length.0).sum::<i64>(), ticks.last().unwrap().end.0);
        let end = follower.close(at(1900).at);
        assert_eq!(end.observed, None);
        assert_eq!((end.received, end.bytes, end.loss_runs), (495, ByteCount(49_500), vec![(1, 5)]));
    }

    #[test]
    fn who_stops_listening_before_the_end_has_observed_what_came_by_then() {
        let mut follower = Follower::new(7, &plan(), Mono(0));
        for ms in [10, 11, 13] {
            follower.take(&datagram(Kind::Data, ms), at(ms));
        }
        let end = follower.close(at(20).at);
        assert_eq!((end.received, end.observed), (3, Some(14)));
    }

    #[test]
    fn a_stream_from_far_away_is_heard_to_its_end() {
        let far = UdpPlan { round_trip: Span::from_secs(5), ..plan() };
        let mut follower = Follower::new(7, &far, Mono(0));
        assert_eq!(follower.verdict(at(4999).at), None, "the first datagram is on its way");
        for ms in [5000, 5990] {
            follower.take(&datagram(Kind::Data, ms - 5000), at(ms));
        }
        assert_eq!(follower.verdict(at(6100).at), None);
        assert_eq!(follower.verdict(at(8000).at), Some(Outcome::Complete));
    }

    #[test]
    fn without_an_end_the_plan_decides() {
        let mut follower = Follower::new(7, &plan(), Mono(0));
        assert_eq!(follower.verdict(at(2999).at), None);
        assert_eq!(follower.verdict(at(3000).at), Some(Outcome::Failed));
        for ms in [10, 980] {
            follower.take(&datagram(Kind::Data, ms), at(ms));
        }
        assert_eq!(follower.verdict(at(3000).at), Some(Outcome::Complete));
    }
}
