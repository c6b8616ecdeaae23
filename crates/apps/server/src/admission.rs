//! Who may run throughput tests now, and who is told to wait how long.
//!
//! A fair queue: `slots` reservations at a time, one site after the other, and first come, first
//! served among the sites and within each. So whoever asks a hundred times delays nobody by more
//! than one reservation. A reservation may have several members (a prober's sessions over IPv4 and
//! over IPv6) and is free again when the last has left, or when no member has had a test open for
//! [`IDLE`]. Two throughput tests at once would each measure the other, so the default is one slot.
//!
//! The expected wait assumes that everybody in front uses exactly what they asked for. It is wrong
//! on the high side when they finish early, which is usual, and on the low side by up to half when
//! they overrun into the slack of their lease.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use netaware_pool::Site;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::control::MIN_DRAIN;

/// A control session, as the responder numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionId(pub(crate) u64);

/// What a session is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Wait.
    Queued { place: u32, expected_wait: Span },
    /// Go.
    Admitted { reservation: Token, lease: Span },
    /// The reservation to join does not exist (any more), or has all the members it may have.
    NothingToJoin,
    /// The reservation was held and not used for too long.
    Idle,
    /// Another session of the same reservation moves data: the prober is there, even if its pings
    /// over this session's IP version wait in a queue that those data fill.
    ProberLives,
}

/// Who holds a place and for how long, as far as can be known, and who waits for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outlook {
    pub(crate) slots: usize,
    /// The expected time is what is left of what was asked for; nothing where it has been overrun.
    pub(crate) held: Vec<(Vec<SessionId>, Span)>,
    /// In order, with the expected wait.
    pub(crate) waiting: Vec<(Vec<SessionId>, Span)>,
}

/// The queue. Notices pile up until they are taken by [`Admission::notices`].
#[derive(Debug)]
pub(crate) struct Admission {
    slots: usize,
    longest: Span,
    held: Vec<Reservation>,
    waiting: VecDeque<Waiting>,
    /// Which reservation, counted from the first, a site was given last. Only sites that hold one
    /// or wait are in it.
    served: HashMap<Site, u64>,
    /// Reservations given.
    given: u64,
    notices: Vec<(SessionId, Notice)>,
}

#[derive(Debug)]
struct Reservation {
    token: Token,
    /// When its owner will have finished, if it uses what it asked for.
    expected_end_at: Mono,
    lease_end_at: Mono,
    members: Vec<SessionId>,
    /// Where it was asked for.
    site: Site,
    /// When a member last had a test open.
    used_at: Mono,
    /// How long it may be unused: [`IDLE`], or longer where a member's path is slow.
    may_idle: Span,
}

#[derive(Debug)]
struct Waiting {
    session: SessionId,
    site: Site,
    token: Token,
    expected: Span,
    /// Place and turn as last told, so that news is told and the mere passing of time is not.
    told: Option<(u32, Mono)>,
}

impl Admission {
    pub(crate) fn new(slots: usize, longest: Span) -> Self {
        Self {
            slots: slots.max(1),
            longest,
            held: Vec::new(),
            waiting: VecDeque::new(),
            served: HashMap::new(),
            given: 0,
            notices: Vec::new(),
        }
    }

    /// Takes a place in the queue. `token` names the reservation that will come of it. A session
    /// that already waits or holds keeps what it has.
    pub(crate) fn reserve(
        &mut self,
        now: Mono,
        session: SessionId,
        site: Site,
        expected: Span,
        token: Token,
    ) {
        if !self.knows(session) {
            let expected = Span(expected.0.clamp(SHORTEST.0, self.longest.0.max(SHORTEST.0)));
            self.waiting.push_back(Waiting { session, site, token, expected, told: None });
        }
        self.move_on(now);
    }

    /// Shares a reservation that another session holds.
    pub(crate) fn join(&mut self, now: Mono, session: SessionId, reservation: Token) {
        let known = self.knows(session);
        let found = self.held.iter_mut().find(|held| held.token == reservation);
        let notice = match found {
            Some(held) if !known && held.members.len() < MAX_MEMBERS => {
                held.members.push(session);
                Notice::Admitted { reservation, lease: (held.lease_end_at - now).or_zero() }
            }
            _ => Notice::NothingToJoin,
        };
        self.notices.push((session, notice));
    }

    /// Leaves queue and reservation: released, or gone.
    pub(crate) fn leave(&mut self, now: Mono, session: SessionId) {
        self.waiting.retain(|waiting| waiting.session != session);
        for held in &mut self.held {
            held.members.retain(|member| *member != session);
        }
        self.held.retain(|held| !held.members.is_empty());
        self.move_on(now);
    }

    /// A session moves data: those with which it shares its reservation are told.
    pub(crate) fn lives(&mut self, session: SessionId) {
        let Some(held) = self.held.iter().find(|held| held.members.contains(&session)) else { return };
        let others = held.members.iter().copied().filter(|member| *member != session);
        self.notices.extend(others.map(|member| (member, Notice::ProberLives)));
    }

    /// What a session that holds a reservation is doing, told every second or oftener: whether it
    /// has a test open, and how long its path may make it look idle. Ends a reservation that no
    /// member has used for long.
    pub(crate) fn look(&mut self, now: Mono, session: SessionId, is_used: bool, may_idle: Span) {
        let Some(held) = self.held.iter_mut().find(|held| held.members.contains(&session)) else { return };
        held.may_idle = held.may_idle.max(may_idle);
        if is_used {
            held.used_at = now;
        } else if now - held.used_at > held.may_idle {
            // Each member leaves when it hears that.
            self.notices.extend(held.members.iter().map(|member| (*member, Notice::Idle)));
        }
    }

    /// What has to be told since the last call, in order.
    pub(crate) fn notices(&mut self) -> Vec<(SessionId, Notice)> {
        std::mem::take(&mut self.notices)
    }

    pub(crate) fn outlook(&self, now: Mono) -> Outlook {
        let held = |held: &Reservation| (held.members.clone(), (held.expected_end_at - now).or_zero());
        let turns = self.turns(now);
        let order = self.order().into_iter().map(|n| &self.waiting[n]);
        let waiting = order.zip(turns).map(|(waiting, at)| (vec![waiting.session], at - now));
        Outlook { slots: self.slots, held: self.held.iter().map(held).collect(), waiting: waiting.collect() }
    }

    fn knows(&self, session: SessionId) -> bool {
        self.waiting.iter().any(|waiting| waiting.session == session)
            || self.held.iter().any(|held| held.members.contains(&session))
    }

    fn move_on(&mut self, now: Mono) {
        while self.held.len() < self.slots
            && let Some(next) = self.order().first().and_then(|first| self.waiting.remove(*first))
        {
            let lease = Span((next.expected + next.expected / 2 + SLACK).0.min(self.longest.0));
            self.held.push(Reservation {
                token: next.token,
                expected_end_at: now + next.expected,
                lease_end_at: now + lease,
                members: vec![next.session],
                site: next.site,
                used_at: now,
                may_idle: IDLE,
            });
            self.notices.push((next.session, Notice::Admitted { reservation: next.token, lease }));
            self.given += 1;
            self.served.insert(next.site, self.given);
        }
        let here: HashSet<Site> =
            self.held.iter().map(|it| it.site).chain(self.waiting.iter().map(|it| it.site)).collect();
        self.served.retain(|site, _| here.contains(site));
        self.tell_places(now);
    }

    /// Those that wait, by their place in `waiting`, in the order in which it will be their turn:
    /// the first of each site, then the second of each, and so on. What a site holds counts as its
    /// first. Of sites, one that was not served yet comes first, then the one that was served
    /// longest ago.
    fn order(&self) -> Vec<usize> {
        let mut asked: HashMap<Site, usize> = HashMap::new();
        for held in &self.held {
            *asked.entry(held.site).or_default() += 1;
        }
        let mut ranked: Vec<(usize, u64, usize)> = Vec::with_capacity(self.waiting.len());
        for (n, waiting) in self.waiting.iter().enumerate() {
            let before = asked.entry(waiting.site).or_default();
            let served = if *before == 0 { self.served.get(&waiting.site).copied().unwrap_or(0) } else { 0 };
            ranked.push((*before, served, n));
            *before += 1;
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(.., n)| n).collect()
    }

    /// When it will be the turn of each that waits, in the order of [`Self::order`].
    fn turns(&self, now: Mono) -> Vec<Mono> {
        // When each slot will be free, and which, so that two that are free at once count twice.
        let mut free_at: BTreeSet<(Mono, usize)> =
            self.held.iter().enumerate().map(|(slot, held)| (held.expected_end_at.max(now), slot)).collect();
        let turn = |waiting: &Waiting| {
            let (turn_at, slot) = free_at.pop_first()?;
            free_at.insert((turn_at + waiting.expected, slot));
            Some(turn_at)
        };
        self.order().into_iter().map(|n| &self.waiting[n]).map_while(turn).collect()
    }

    fn tell_places(&mut self, now: Mono) {
        let (turns, order) = (self.turns(now), self.order());
        for ((n, which), turn_at) in order.into_iter().enumerate().zip(turns) {
            let Some(waiting) = self.waiting.get_mut(which) else { continue };
            let place = u32::try_from(n + 1).unwrap_or(u32::MAX);
            let news = waiting.told.is_none_or(|(p, at)| p != place || (turn_at - at).abs() > WORTH_TELLING);
            if news {
                waiting.told = Some((place, turn_at));
                let expected_wait = turn_at - now;
                self.notices.push((waiting.session, Notice::Queued { place, expected_wait }));
            }
        }
    }
}

/// A lease exceeds what was asked for by half of it and this, for set-up, a slow network, and a
/// queue that drains at the end.
const SLACK: Span = Span(5_000_000_000 + MIN_DRAIN.0);
/// Nobody can reserve less: a queue of zeros would promise that there is no wait.
const SHORTEST: Span = Span::from_secs(1);
/// A wait that differs by less from what was told is no news.
const WORTH_TELLING: Span = Span::from_secs(1);
/// A reservation without an open test is given to the next by then.
pub(crate) const IDLE: Span = Span::from_secs(10);
/// Sessions that share a reservation: two IP versions, and some for whoever has several addresses.
const MAX_MEMBERS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Mono = Mono(1_000_000_000_000);

    fn at(seconds: i64) -> Mono {
        T0 + Span::from_secs(seconds)
    }

    fn token(n: u8) -> Token {
        Token([n; 16])
    }

    fn s(n: u64) -> SessionId {
        SessionId(n)
    }

    /// Each session of a site of its own.
    fn site(n: u64) -> Site {
        Site::of(std::net::IpAddr::from([10, 0, 0, n as u8]))
    }

    fn queued(n: u64, place: u32, wait: i64) -> (SessionId, Notice) {
        (s(n), Notice::Queued { place, expected_wait: Span::from_secs(wait) })
    }

    fn admitted(n: u64, lease: i64) -> (SessionId, Notice) {
        (s(n), Notice::Admitted { reservation: token(n as u8), lease: Span::from_secs(lease) })
    }

    #[test]
    fn whoever_shares_a_reservation_hears_that_its_prober_lives_and_nobody_else_does() {
        let mut queue = Admission::new(1, Span::from_secs(600));
        reserve(&mut queue, 0, 1, 10);
        queue.join(at(0), s(2), token(1));
        reserve(&mut queue, 0, 3, 10);
        queue.notices();
        queue.lives(s(1));
        assert_eq!(queue.notices(), [(s(2), Notice::ProberLives)]);
        queue.lives(s(3));
        assert_eq!(queue.notices(), []);
    }

    fn reserve(queue: &mut Admission, second: i64, n: u64, expected: i64) -> Vec<(SessionId, Notice)> {
        queue.reserve(at(second), s(n), site(n), Span::from_secs(expected), token(n as u8));
        queue.notices()
    }

    fn leave(queue: &mut Admission, second: i64, n: u64) -> Vec<(SessionId, Notice)> {
        queue.leave(at(second), s(n));
        queue.notices()
    }

    fn one_slot() -> Admission {
        Admission::new(1, Span::from_secs(1000))
    }

    #[test]
    fn first_come_first_served_and_everybody_knows_their_place() {
        let mut queue = one_slot();
        assert_eq!(reserve(&mut queue, 0, 1, 10), [admitted(1, 40)]);
        assert_eq!(reserve(&mut queue, 2, 2, 20), [queued(2, 1, 8)]);
        assert_eq!(reserve(&mut queue, 3, 3, 30), [queued(3, 2, 27)]);
        assert_eq!(leave(&mut queue, 4, 1), [admitted(2, 55), queued(3, 1, 20)]);
        assert_eq!(leave(&mut queue, 24, 2), [admitted(3, 70)]);
        assert_eq!(leave(&mut queue, 25, 3), []);
    }

    #[test]
    fn the_owner_sees_who_holds_and_who_waits_for_how_long() {
        let mut queue = one_slot();
        for n in 1..=3 {
            reserve(&mut queue, 0, n, 10);
        }
        let expected = |n, seconds| (vec![s(n)], Span::from_secs(seconds));
        let outlook = queue.outlook(at(4));
        assert_eq!((outlook.slots, outlook.held), (1, vec![expected(1, 6)]));
        assert_eq!(outlook.waiting, [expected(2, 6), expected(3, 16)]);
        assert_eq!(queue.outlook(at(12)).held, [expected(1, 0)], "an overrun promises nothing");
    }

    #[test]
    fn a_waiting_client_that_vanishes_leaves_the_queue() {
        let mut queue = one_slot();
        for n in 1..=3 {
            reserve(&mut queue, 0, n, 10);
        }
        assert_eq!(leave(&mut queue, 1, 2), [queued(3, 1, 9)]);
        assert_eq!(leave(&mut queue, 2, 1), [admitted(3, 40)]);
    }

    #[test]
    fn a_lease_contains_the_queues_that_drain_after_a_transfer() {
        let mut queue = one_slot();
        reserve(&mut queue, 0, 1, 1);
        let lease = queue.held[0].lease_end_at - at(0);
        let sent = Span::from_secs(1);
        assert!(lease > sent + netaware_wire::control::TcpPlan::longest_drain_after(sent), "{lease}");
    }

    #[test]
    fn the_mere_passing_of_time_is_no_news() {
        let mut queue = one_slot();
        for n in 1..=3 {
            reserve(&mut queue, 0, n, 10);
        }
        assert_eq!(reserve(&mut queue, 5, 4, 10), [queued(4, 3, 25)]);
    }

    #[test]
    fn an_overrun_does_not_promise_the_past() {
        let mut queue = one_slot();
        reserve(&mut queue, 0, 1, 10);
        assert_eq!(reserve(&mut queue, 15, 2, 10), [queued(2, 1, 0)]);
    }

    #[test]
    fn several_slots_are_filled_and_shared_out_in_order() {
        let mut queue = Admission::new(2, Span::from_secs(1000));
        assert_eq!(reserve(&mut queue, 0, 1, 30), [admitted(1, 70)]);
        assert_eq!(reserve(&mut queue, 0, 2, 10), [admitted(2, 40)]);
        assert_eq!(reserve(&mut queue, 0, 3, 10), [queued(3, 1, 10)]);
        assert_eq!(reserve(&mut queue, 0, 4, 10), [queued(4, 2, 20)]);
        assert_eq!(reserve(&mut queue, 0, 5, 10), [queued(5, 3, 30)]);
    }

    #[test]
    fn a_shared_reservation_is_free_when_its_last_member_has_left() {
        let mut queue = one_slot();
        reserve(&mut queue, 0, 1, 10);
        reserve(&mut queue, 0, 9, 10);
        queue.join(at(1), s(2), token(1));
        let lease = Span::from_secs(39);
        assert_eq!(queue.notices(), [(s(2), Notice::Admitted { reservation: token(1), lease })]);
        assert_eq!(leave(&mut queue, 2, 1), []);
        assert_eq!(leave(&mut queue, 3, 2), [admitted(9, 40)]);
    }

    #[test]
    fn nobody_joins_what_is_not_held() {
        let mut queue = one_slot();
        reserve(&mut queue, 0, 1, 10);
        reserve(&mut queue, 0, 2, 10);
        for (n, unknown) in [(3, token(7)), (3, token(2)), (1, token(1))] {
            queue.join(at(1), s(n), unknown);
            assert_eq!(queue.notices(), [(s(n), Notice::NothingToJoin)]);
        }
    }

    /// 151 sessions of one address made an honest prober wait for 302 hours.
    #[test]
    fn a_hundred_reservations_of_one_address_delay_another_by_one() {
        let mut queue = one_slot();
        for n in 0..151 {
            queue.reserve(T0, s(n), site(1), Span::from_secs(1000), token(n as u8));
        }
        queue.notices();
        assert_eq!(reserve(&mut queue, 0, 200, 10).first(), Some(&queued(200, 1, 1000)));
        queue.reserve(T0, s(201), site(200), Span::from_secs(10), token(201));
        let of_201 = queue.notices().into_iter().find(|(session, _)| *session == s(201));
        let wait = Span::from_secs(2010);
        assert_eq!(of_201, Some((s(201), Notice::Queued { place: 3, expected_wait: wait })), "one of each");
        let admitted_next = leave(&mut queue, 1, 0);
        assert_eq!(admitted_next[0], admitted(200, 40));
        let others_turn = leave(&mut queue, 2, 200);
        assert_eq!(others_turn[0].0, s(1), "one after the other");
        queue.reserve(at(3), s(202), site(3), Span::from_secs(10), token(202));
        let of_202 = queue.notices().into_iter().find(|(session, _)| *session == s(202));
        assert!(matches!(of_202, Some((_, Notice::Queued { place: 1, .. }))), "{of_202:?}");
    }

    #[test]
    fn a_reservation_that_nobody_uses_ends_and_one_that_a_member_uses_goes_on() {
        let mut queue = one_slot();
        reserve(&mut queue, 0, 1, 600);
        queue.join(at(0), s(2), token(1));
        queue.notices();
        for second in 1..=30 {
            queue.look(at(second), s(1), false, IDLE);
            queue.look(at(second), s(2), true, IDLE);
        }
        assert_eq!(queue.notices(), [], "one IP version waits for the other");
        queue.look(at(40), s(1), false, IDLE);
        assert_eq!(queue.notices(), []);
        queue.look(at(41), s(1), false, IDLE);
        assert_eq!(queue.notices(), [(s(1), Notice::Idle), (s(2), Notice::Idle)]);
        queue.look(at(41), s(2), false, Span::from_secs(40));
        assert_eq!(queue.notices(), [], "over a slow path messages take long");
    }

    #[test]
    fn members_are_bounded() {
        let mut queue = one_slot();
        reserve(&mut queue, 0, 0, 10);
        for n in 1..MAX_MEMBERS as u64 {
            queue.join(at(0), s(n), token(0));
        }
        queue.notices();
        queue.join(at(0), s(99), token(0));
        assert_eq!(queue.notices(), [(s(99), Notice::NothingToJoin)]);
    }

    #[test]
    fn a_second_reservation_of_one_session_changes_nothing() {
        let mut queue = one_slot();
        reserve(&mut queue, 0, 1, 10);
        reserve(&mut queue, 0, 2, 10);
        assert_eq!(reserve(&mut queue, 0, 2, 500), []);
        assert_eq!(reserve(&mut queue, 0, 1, 500), []);
        assert_eq!(leave(&mut queue, 0, 1), [admitted(2, 40)]);
    }

    #[test]
    fn hostile_expectations_are_clamped() {
        for (asked, lease) in [(i64::MIN, 26_500), (i64::MAX, 1_000_000), (0, 26_500)] {
            let mut queue = one_slot();
            queue.reserve(T0, s(1), site(1), Span(asked), token(1));
            let lease = Span::from_millis(lease);
            assert_eq!(queue.notices(), [(s(1), Notice::Admitted { reservation: token(1), lease })]);
        }
    }
}
