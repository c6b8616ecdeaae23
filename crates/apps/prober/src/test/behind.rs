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
    set_up: SetUp,
    /// What transfers have taken that could not begin, because the responder did not answer.
    unopened: Span,
    /// By how much longer than planned capacity and available bandwidth took.
    path: Span,
    /// For how long it was looked into why nothing came.
    searches: Span,
    /// What asking again for the responder's place and for flows of datagrams took.
    reopening: Span,
}

/// What the time before the plan was spent on, and the plan, take beyond what was asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct SetUp {
    /// By how much setting up took longer than usual, as far as that time is missing.
    late: Span,
    /// For how much of it connections were not answered, or nothing came at all.
    unanswered: Span,
    /// What the plan exceeds the time by that was asked for, beside that.
    plan: Span,
    /// Of the slowest path.
    round_trip: Span,
}

impl SetUp {
    /// Setting up took `late` longer than usual, and with what is planned the test takes `beyond`
    /// more than it was asked to.
    pub(super) fn new(late: Span, unanswered: Span, beyond: Span, round_trip: Span) -> Self {
        let late = late.min(beyond).or_zero();
        Self { late, unanswered: unanswered.min(late), plan: (beyond - late).or_zero(), round_trip }
    }

    fn said(&self) -> String {
        let Self { late, unanswered, .. } = self;
        if *unanswered > NOTICEABLE {
            format!("setting up took {late} longer than usual, {unanswered} of that without an answer")
        } else {
            format!("setting up took {late} longer than usual, because packets were lost or late")
        }
    }
}

impl Behind {
    pub(super) fn new(planned: Vec<[PathKnown; 2]>) -> Self {
        Self { planned, ..Self::default() }
    }

    /// The plan is made.
    pub(super) fn note_set_up(&mut self, set_up: SetUp) {
        self.set_up = set_up;
    }

    /// Capacity and available bandwidth are known.
    pub(super) fn note_path(&mut self, took: Span, planned: Span) {
        self.path = took - planned;
    }

    /// It was looked into why nothing came.
    pub(super) fn note_search(&mut self, took: Span) {
        self.searches += took;
    }

    /// The responder's place and flows of datagrams are there for the next transfer.
    pub(super) fn note_reopening(&mut self, took: Span) {
        self.reopening += took;
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

    /// A transfer could not begin, and finding that out took so long.
    pub(super) fn note_unopened(&mut self, took: Span) {
        self.unopened += took;
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
        let parts = self.delays().into_iter().chain(warm_up.map(of_tcp));
        let largest = parts.max_by_key(|(over, _)| *over);
        largest
            .filter(|(over, _)| *over > NOTICEABLE)
            .map_or_else(|| "what came before has taken longer than planned".to_owned(), |(_, what)| what)
    }

    /// What took longer than planned, and how much longer.
    fn delays(&self) -> [(Span, String); 3] {
        let ends = format!("ends of transfers have taken {} longer than planned", self.ends);
        let idle = format!("the idle round trips have taken {} longer than planned", self.idle);
        let unopened = format!("waiting for a transfer that could not begin has taken {}", self.unopened);
        [(self.ends, ends), (self.idle, idle), (self.unopened, unopened)]
    }

    /// Everything that is known to have made the test take `over` longer than it was asked to, with
    /// its share, and what of it nothing explains. Later transfers may have been shortened for some
    /// of that, so that the shares may be more than the whole.
    pub(super) fn causes(&self, over: Span) -> String {
        let SetUp { plan, round_trip, .. } = self.set_up;
        let of_plan =
            format!("a path with a round trip of {round_trip} needs {plan} more for the least of it");
        let Self { path, searches, reopening, .. } = self;
        let of_path = format!("capacity and available bandwidth have taken {path} longer than planned");
        let of_searches = format!("looking into why nothing came has taken {searches}");
        let of_reopening =
            format!("asking again for the responder's place or for flows has taken {reopening}");
        let [ends, idle, unopened] = self.delays();
        let known = [
            (self.set_up.late, self.set_up.said()),
            (plan, of_plan),
            ends,
            idle,
            unopened,
            (*path, of_path),
            (*searches, of_searches),
            (*reopening, of_reopening),
        ];
        let mut named: Vec<(Span, String)> =
            known.into_iter().filter(|(share, _)| *share >= WORTH_NAMING).collect();
        let unexplained = over - named.iter().map(|(share, _)| *share).sum::<Span>();
        if unexplained >= WORTH_NAMING {
            named.push((unexplained, format!("{unexplained} of it are unexplained")));
        }
        named.into_iter().map(|(_, what)| what).collect::<Vec<_>>().join("; ")
    }
}

/// Less is nobody's reason.
const NOTICEABLE: Span = Span::from_millis(10);
/// Less is none of several causes.
const WORTH_NAMING: Span = Span::from_millis(100);

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

    /// IPv6 died before its first transfer began, and what was waited for it was "unexplained".
    #[test]
    fn the_wait_for_a_transfer_that_could_not_begin_is_a_cause() {
        let mut behind = Behind::new(vec![[PathKnown::new(millis(24)); 2]]);
        behind.note_unopened(millis(6600));
        let want = "waiting for a transfer that could not begin has taken 6.60 s";
        assert_eq!(behind.causes(millis(6600)), want);
    }

    /// A test took 5.9 s longer than it was asked to, and its warning explained 1.7 s of that.
    #[test]
    fn each_cause_of_a_late_end_has_its_share_and_the_rest_is_called_unexplained() {
        let known = [PathKnown::new(millis(20)); 2];
        let mut behind = Behind::new(vec![known]);
        assert_eq!(behind.causes(millis(5900)), "5.90 s of it are unexplained");
        let usual = Phase::OneStream.overhead(&known[0]);
        behind.note_end(0, 0, Phase::OneStream, usual + millis(1700));
        behind.note_set_up(SetUp::new(millis(2500), millis(2000), millis(2100), millis(20)));
        assert_eq!(
            behind.causes(millis(5900)),
            "setting up took 2.10 s longer than usual, 2.00 s of that without an answer; ends of transfers have taken \
             1.70 s longer than planned; 2.10 s of it are unexplained"
        );
        behind.note_search(millis(1500));
        behind.note_reopening(millis(600));
        let all = behind.causes(millis(5900));
        assert!(all.ends_with(
            "has taken 1.50 s; asking again for the responder's place or for flows has taken 600 ms"
        ));
        // The plan takes what is left of the time: what it made up for is no cause.
        behind.note_set_up(SetUp::new(millis(2500), Span::ZERO, -millis(10), millis(20)));
        assert!(!behind.causes(millis(5900)).contains("setting up"));
        behind.note_set_up(SetUp::new(Span::ZERO, Span::ZERO, millis(48_000), millis(600)));
        let far = behind.causes(millis(48_000));
        assert!(
            far.starts_with("a path with a round trip of 600 ms needs 48.0 s more for the least of it; "),
            "{far}"
        );
        assert!(!far.contains("unexplained"), "{far}");
    }

    #[test]
    fn a_transfer_that_warmed_up_as_planned_is_no_reason() {
        let known = [PathKnown::new(millis(14)); 2];
        let warm = PathKnown { warm_up: [Some(WarmUp::Took(millis(100))); 2], ..known[0] };
        let cause = Behind::new(vec![known]).cause(ASK, &[[warm; 2]]);
        assert_eq!(cause, "what came before has taken longer than planned");
    }
}
