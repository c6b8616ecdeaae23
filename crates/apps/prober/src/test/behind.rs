//! What has taken longer than planned: the reason that a person is told where something is left
//! out, or takes longer.

use netaware_units::Span;

use super::planning::{self, Ask, PathKnown, Phase};

/// Counted since the plan was made.
#[derive(Debug, Clone, Default)]
pub(super) struct Behind {
    /// What was known of each lane then: reverse, forward.
    planned: Vec<[PathKnown; 2]>,
    /// By how much the ends of all transfers came later than was planned then, those that came
    /// sooner taken off.
    ends: Span,
    transfers: i64,
    /// The same of the idle round trips.
    idle: Span,
}

impl Behind {
    pub(super) fn new(planned: Vec<[PathKnown; 2]>) -> Self {
        Self { planned, ..Self::default() }
    }

    /// The idle round trips are over.
    pub(super) fn note_idle(&mut self, took: Span, planned: Span) {
        self.idle = took - planned;
    }

    /// A transfer is over; opening and ending it took this beside its duration.
    pub(super) fn note_end(&mut self, lane: usize, way: usize, phase: Phase, took: Span) {
        if let Some(planned) = self.planned.get(lane) {
            self.ends += took - phase.overhead(&planned[way]);
            self.transfers += 1;
        }
    }

    /// By how much so many further transfers may end late, if they do as those so far.
    pub(super) fn late(&self, transfers: usize) -> Span {
        self.ends.or_zero() / self.transfers.max(1) * i64::try_from(transfers).unwrap_or(i64::MAX)
    }

    /// The largest part of what has taken longer, or will by what is known `now`.
    pub(super) fn cause(&self, ask: Ask, now: &[[PathKnown; 2]]) -> String {
        let warm_up = planning::slower_warm_up(ask, now.as_flattened(), self.planned.as_flattened());
        let of_tcp = |(over, took, planned): (Span, Span, Span)| {
            (over, format!("TCP took up to {took} to warm up and not {planned} as planned"))
        };
        let ends = format!("ends of transfers have taken {} longer than planned", self.ends);
        let idle = format!("the idle round trips have taken {} longer than planned", self.idle);
        let parts = [Some((self.ends, ends)), Some((self.idle, idle)), warm_up.map(of_tcp)];
        let largest = parts.into_iter().flatten().max_by_key(|(over, _)| *over);
        largest
            .filter(|(over, _)| *over > NOTICEABLE)
            .map_or_else(|| "what came before has taken longer than planned".to_owned(), |(_, what)| what)
    }
}

/// Less is nobody's reason.
const NOTICEABLE: Span = Span::from_millis(10);

#[cfg(test)]
mod tests {
    use super::super::planning::WarmUp;
    use super::*;

    const ASK: Ask = Ask { rounds: 2, streams: 4, tcp: true, udp: true };

    fn millis(ms: i64) -> Span {
        Span::from_millis(ms)
    }

    #[test]
    fn what_is_left_out_is_left_out_for_what_took_longer_and_not_for_a_slower_path() {
        let known = [PathKnown::new(millis(14)); 2];
        let mut behind = Behind::new(vec![known]);
        let usual = Phase::OneStream.overhead(&known[0]);
        behind.note_end(0, 0, Phase::OneStream, usual + millis(400));
        behind.note_end(0, 1, Phase::OneStream, usual - millis(100));
        assert_eq!(
            behind.cause(ASK, &[known]),
            "ends of transfers have taken 300 ms longer than planned",
            "one that came sooner has made up for a part"
        );
        behind.note_idle(millis(3000), millis(2500));
        assert_eq!(behind.cause(ASK, &[known]), "the idle round trips have taken 500 ms longer than planned");
        let cold = PathKnown { warm_up: [Some(WarmUp::NotOver(millis(900))), None], ..known[0] };
        assert_eq!(
            behind.cause(ASK, &[[cold, known[1]]]),
            "TCP took up to 900 ms to warm up and not 126 ms as planned"
        );
    }

    #[test]
    fn a_transfer_that_warmed_up_as_planned_is_no_reason() {
        let known = [PathKnown::new(millis(14)); 2];
        let warm = PathKnown { warm_up: [Some(WarmUp::Took(millis(100))); 2], ..known[0] };
        let cause = Behind::new(vec![known]).cause(ASK, &[[warm; 2]]);
        assert_eq!(cause, "what came before has taken longer than planned");
    }
}
