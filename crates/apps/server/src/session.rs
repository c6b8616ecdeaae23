//! One control session as a state machine, without socket, clock or thread.
//!
//! ```text
//! Hello --------> Proof --------> Enrolling --------> Open --------> Leaving --------> Closed
//!   | no key set    ^                 ^                 |  Bye, silence, stop,           ^
//!   +---------------+-----------------+                 |  a lost connection             |
//!   +------------------ timeout, refusal ---------------+--------------------------------+
//! ```
//!
//! The owner feeds it messages and events, and carries out its [`Action`]s. Promises between the
//! two:
//!
//! 1. each `Enrol` is answered by [`Session::enrolled`], each `Prepare` by [`Session::prepared`];
//! 2. each `Halt` and each `Run` is followed, now or later, by exactly one [`Session::ended`] of
//!    that test;
//! 3. the owner calls [`Session::wake`] at [`Session::deadline`].
//!
//! A session holds its place in the admission queue until its last throughput test has ended, so
//! that the next one in the queue never measures the remains of this one; [`WIND_DOWN`] bounds how
//! long that may take.

mod messages;
mod report;
mod reservation;
mod test_life;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use netaware_record::{HostInfo, Outcome};
use netaware_units::{Mono, Span};
use netaware_wire::control::{
    ChannelEnd, ClientMessage, ErrorCode, Limits, MAX_ROUND_TRIP, PING_EVERY, SILENCE_LIMIT, ServerMessage,
    TestPlan, VolleySpec, silence_limit,
};
use netaware_wire::frame::FrameError;
use netaware_wire::header::HeaderFields;
use netaware_wire::proof::Key;
use netaware_wire::{OwnerToken, PROTOCOL_VERSION, Token, proof};

use crate::plan::Refusal;
use crate::together::Together;
use reservation::Permit;
use test_life::Test;

/// What every session of a responder shares.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) key: Option<Key>,
    pub(crate) limits: Limits,
    pub(crate) software: String,
}

/// What the owner has to do, in order.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    Send(Box<ServerMessage>),
    /// Count this session among the others, or refuse it.
    Enrol,
    /// Take a place in the admission queue, or join a reservation.
    Reserve {
        expected: Span,
        join: Option<Token>,
    },
    /// Leave queue and reservation.
    Leave,
    /// Let streams or a flow attach.
    Prepare {
        test: u32,
        plan: TestPlan,
    },
    /// Let its flow come in a data channel; the answer is [`Session::channel_prepared`].
    OpenChannel {
        test: u32,
        end: ChannelEnd,
    },
    /// Everything is attached and wanted: go.
    Run {
        test: u32,
    },
    /// Send a volley of a running test, or look out for it.
    Ask {
        test: u32,
        volley: VolleySpec,
    },
    /// End it with what there is; if it never ran, take down what `Prepare` set up.
    Halt {
        test: u32,
    },
    /// Send what is queued, then close.
    Close,
}

/// How a session ended, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The prober said goodbye.
    Bye,
    /// The connection broke.
    Vanished,
    /// Nothing was heard.
    Silence,
    /// It was turned away or thrown out, for this.
    Refused(ErrorCode),
    /// The responder is stopping.
    Stopped,
}

/// What is worth a log line at the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    pub(crate) software: String,
    pub(crate) tests: u32,
    /// Payload of throughput tests, as this end counted it.
    pub(crate) bytes: u64,
    pub(crate) ending: Option<Ending>,
}

#[derive(Debug)]
enum State {
    Hello { until: Mono },
    Proof { until: Mono, expected: String, answer: String },
    Enrolling { proof: Option<String> },
    Open { heard_at: Mono },
    Leaving { until: Mono, farewell: Option<String> },
    Closed,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    rules: &'a Rules,
    token: Token,
    nonce: Token,
    /// For who proves the key.
    owner: Option<OwnerToken>,
    state: State,
    permit: Permit,
    /// A test was opened since it was last asked whether the reservation is used.
    has_opened: bool,
    /// The throughput tests of all sessions of the reservation.
    together: Arc<Together>,
    header: HeaderFields,
    tests: BTreeMap<u32, Test>,
    actions: VecDeque<Action>,
    strikes: u32,
    /// When the latest ping came, or the session opened.
    pinged_at: Mono,
    /// What a sender of this session has left in the path's queues has drained by then. The
    /// acknowledgements of the prober's pings are behind it, and without them its TCP sends no
    /// more: so silence counts from then on.
    drained_by: Mono,
    /// The time from the welcome to the first ping.
    first_gap: Option<Span>,
    /// The longest time between two pings of late, and before the first.
    longest_gap: LongestLately,
    /// The round trip of the connection when it was accepted, zero where that is not known.
    handshake: Span,
    /// The longest round trip that the sender of a test has had of late, queues included.
    loaded: LongestLately,
    /// From the welcome to what followed it: a round trip, and what the prober took. Absent until
    /// then.
    round_trip: Option<Span>,
    /// For how long the program has not run so far.
    stood_still: Span,
    /// No test is out of time before: what came while the program did not run is still to be read.
    catches_up_by: Mono,
    summary: Summary,
}

impl<'a> Session<'a> {
    /// A connection whose preface asked for a control session. `token` and `nonce` are fresh and
    /// random.
    pub(crate) fn new(rules: &'a Rules, now: Mono, token: Token, nonce: Token) -> Self {
        Self {
            rules,
            token,
            nonce,
            owner: None,
            state: State::Hello { until: now + HELLO_PATIENCE },
            permit: Permit::None,
            has_opened: false,
            together: Arc::default(),
            header: HeaderFields::default(),
            tests: BTreeMap::new(),
            actions: VecDeque::new(),
            strikes: 0,
            pinged_at: now,
            drained_by: now,
            first_gap: None,
            longest_gap: LongestLately::within(GAPS_COUNT),
            handshake: Span::ZERO,
            loaded: LongestLately::within(QUEUES_COUNT),
            round_trip: None,
            stood_still: Span::ZERO,
            catches_up_by: now,
            summary: Summary::default(),
        }
    }

    /// The same over a connection of this round trip.
    pub(crate) fn over(self, round_trip: Span) -> Self {
        Self { handshake: round_trip.or_zero().min(MAX_ROUND_TRIP), ..self }
    }

    /// The same over a connection that nobody else reads: who proves the key is told this token,
    /// which opens what is the owner's. Without a key nobody is told one.
    pub(crate) fn for_owner(self, owner: Option<OwnerToken>) -> Self {
        Self { owner: owner.filter(|_| self.rules.key.is_some()), ..self }
    }

    /// The reservation that it is about to hold is shared with those that have the same.
    pub(crate) fn share(&mut self, together: Arc<Together>) {
        self.together = together;
    }

    /// The next thing to do.
    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// What opens the owner's view for who has proved the key: a session is enrolled only then.
    pub(crate) fn owner(&self) -> Option<OwnerToken> {
        self.owner
    }

    /// What the prober wants in the IP header of what is sent for its tests.
    pub(crate) fn header(&self) -> HeaderFields {
        self.header
    }

    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// When to call [`Session::wake`] if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        let own = match &self.state {
            State::Hello { until } | State::Proof { until, .. } | State::Leaving { until, .. } => {
                Some(*until)
            }
            State::Open { heard_at } => Some(self.silent_until(*heard_at)),
            State::Enrolling { .. } | State::Closed => None,
        };
        let tests = self.tests.values().filter_map(Test::deadline).map(|until| until.max(self.catches_up_by));
        own.into_iter().chain(tests).chain(self.permit.deadline()).min()
    }

    /// Time has passed.
    pub(crate) fn wake(&mut self, now: Mono) {
        match &self.state {
            State::Hello { until } | State::Proof { until, .. } if *until <= now => {
                self.turn_away(now, ErrorCode::Timeout, "nothing was said in time");
            }
            State::Open { heard_at } if self.silent_until(*heard_at) <= now => {
                self.say_error(ErrorCode::Timeout, "not a byte for too long", None);
                self.depart(now, Ending::Silence, None);
            }
            State::Leaving { until, .. } if *until <= now => self.tests.clear(),
            _ => {}
        }
        self.wake_reservation(now);
        if self.catches_up_by <= now {
            self.wake_tests(now);
        }
        self.close_when_empty();
    }

    /// For so long the program has not run since the session began, because it was stopped or its
    /// host was suspended. What the prober said meanwhile is still to be read: so a silence begins
    /// again, and whatever else is awaited has as much time as the program was away, within
    /// [`SILENCE_LIMIT`].
    pub(crate) fn note_standing_still(&mut self, now: Mono, in_all: Span) {
        let away = in_all - std::mem::replace(&mut self.stood_still, in_all);
        if away <= Span::ZERO {
            return;
        }
        self.catches_up_by = now + away.min(SILENCE_LIMIT);
        // The path did not delay these pings.
        self.pinged_at = now;
        match &mut self.state {
            State::Hello { until } | State::Proof { until, .. } => *until = (*until).max(self.catches_up_by),
            State::Open { heard_at } => *heard_at = now,
            State::Enrolling { .. } | State::Leaving { .. } | State::Closed => {}
        }
    }

    /// The first bytes of a message, or a sign of life on another connection of the session.
    pub(crate) fn heard(&mut self, now: Mono) {
        if let State::Open { heard_at } = &mut self.state {
            // Nothing has come since the welcome, or else this is known.
            self.round_trip.get_or_insert(now - *heard_at);
            *heard_at = now;
        }
    }

    fn note_ping(&mut self, now: Mono) {
        let gap = now - self.pinged_at;
        self.first_gap.get_or_insert(gap);
        self.longest_gap.observe(now, gap);
        self.pinged_at = now;
    }

    /// How long the prober may say nothing. Its pings leave once a second; where they come at
    /// longer distances, the path delays or loses them, and a slow path is not taken for a dead
    /// one. It may also have been out for once, which says nothing about it: so such a distance
    /// counts for [`GAPS_COUNT`] only. The first gap, between the welcome and what follows it, has
    /// the round trip in it: until that is known, the connection's own stands for it. A test, of
    /// this session or of another one over the same path, fills queues that no ping has met before:
    /// so the round trip counts also while all pings came in time.
    fn patience(&self, since: Mono) -> Span {
        // A ping that is lost comes later the longer the round trip is.
        let limit = silence_limit(self.handshake).min(LONGEST_ON_SLOW_PATH);
        if self.round_trip.is_none() {
            return limit.max(SILENCE_LIMIT + self.handshake);
        }
        let by_path = (self.behind_a_queue(since) * GAPS).min(LONGEST_ON_SLOW_PATH).max(limit);
        (self.slowest_ping(since) * GAPS).min(LONGEST_PATIENCE).max(by_path)
    }

    /// How long after the one before it a ping comes that is lost once in the path's queue.
    fn behind_a_queue(&self, since: Mono) -> Span {
        PING_EVERY + self.handshake.max(self.loaded.lately(since)) * LOST_ONCE
    }

    /// How long after the one before it a ping may come: one was that late, or one is lost once
    /// behind a queue.
    fn slowest_ping(&self, since: Mono) -> Span {
        // Where the kernel tells no round trip, the first gap stands for it.
        let first_gap = self.first_gap.filter(|_| self.handshake == Span::ZERO).unwrap_or_default();
        self.longest_gap.lately(since).max(self.behind_a_queue(since)).max(first_gap)
    }

    /// When a prober that was last heard at that time is given up. What drains is waited for, and
    /// then one ping: the time for both is not added to the patience with a path whose queues
    /// nobody knows.
    fn silent_until(&self, heard_at: Mono) -> Mono {
        let limit = silence_limit(self.handshake);
        let one_ping = self.slowest_ping(heard_at).clamp(limit, LONGEST_PATIENCE.max(limit));
        let given_up = heard_at + self.patience(heard_at);
        if self.drained_by > heard_at { given_up.max(self.drained_by + one_ping) } else { given_up }
    }

    /// A sender has left what takes so long to drain from the last sign of life on.
    fn note_drain(&mut self, draining: Span) {
        if let State::Open { heard_at } = self.state {
            self.drained_by = self.drained_by.max(heard_at + draining);
        }
    }

    /// How long the prober may take for a step of so many round trips, at least `usual`.
    fn patience_for(&self, round_trips: i64, usual: Span) -> Span {
        usual.max(self.round_trip() * round_trips)
    }

    /// The same for steps that wait for messages, which are lost or late as pings are: where these
    /// come at longer distances than they leave, so do a message and what answers it. A queue that
    /// a test has filled of late counts, too.
    fn patience_now(&self, now: Mono, round_trips: i64, usual: Span) -> Span {
        let late = (self.longest_gap.lately(now) - PING_EVERY).or_zero();
        let queued = self.loaded.lately(now) * round_trips;
        let usual = self.patience_for(round_trips, usual);
        (usual.max(queued) + late * 2).min(LONGEST_ON_SLOW_PATH.max(usual))
    }

    /// The path's, as far as it is known, and rather longer than shorter.
    fn round_trip(&self) -> Span {
        self.round_trip.unwrap_or(Span::ZERO).or_zero().min(MAX_ROUND_TRIP)
    }

    /// A message, or why it is none.
    pub(crate) fn received(&mut self, now: Mono, message: Result<ClientMessage, FrameError>) {
        self.heard(now);
        match (&self.state, message) {
            (State::Leaving { .. } | State::Closed | State::Enrolling { .. }, _) => {}
            (_, Ok(ClientMessage::Bye)) => self.depart(now, Ending::Bye, None),
            (_, Err(error)) => self.damaged(now, &error),
            (State::Hello { .. }, Ok(ClientMessage::Hello { version, software, nonce })) => {
                self.hello(now, version, &software, nonce);
            }
            (State::Proof { expected, answer, .. }, Ok(ClientMessage::Authenticate { proof })) => {
                if proof::matches(expected, &proof) {
                    self.enrol(Some(answer.clone()));
                } else {
                    self.turn_away(now, ErrorCode::Key, "the proof does not fit this responder's key");
                }
            }
            (State::Open { .. }, Ok(message)) => self.command(now, message),
            (State::Hello { .. } | State::Proof { .. }, Ok(_)) => {
                self.turn_away(
                    now,
                    ErrorCode::State,
                    "a session begins with hello, and authenticate if challenged",
                );
            }
        }
        self.close_when_empty();
    }

    /// The connection broke, or its other end does not read.
    pub(crate) fn lost(&mut self, now: Mono) {
        self.depart(now, Ending::Vanished, None);
        self.close_when_empty();
    }

    /// The responder is stopping: running tests end with what they have.
    pub(crate) fn stop(&mut self, now: Mono) {
        let farewell =
            matches!(self.state, State::Open { .. }).then(|| "the responder is stopping".to_owned());
        self.depart(now, Ending::Stopped, farewell);
        self.close_when_empty();
    }

    /// Its place was taken away for somebody whose address holds fewer: running tests end with what
    /// they have.
    pub(crate) fn evicted(&mut self, now: Mono) {
        if matches!(self.state, State::Open { .. }) {
            self.say_error(ErrorCode::Busy, EVICTED, None);
            self.depart(now, Ending::Refused(ErrorCode::Busy), None);
        } else {
            self.turn_away(now, ErrorCode::Busy, EVICTED);
        }
        self.close_when_empty();
    }

    /// The answer to [`Action::Enrol`].
    pub(crate) fn enrolled(&mut self, now: Mono, outcome: Result<HostInfo, Refusal>) {
        let State::Enrolling { proof } = &mut self.state else { return };
        let proof = proof.take();
        match outcome {
            Ok(host) => {
                self.state = State::Open { heard_at: now };
                self.pinged_at = now;
                self.say(ServerMessage::Welcome {
                    version: PROTOCOL_VERSION,
                    software: self.rules.software.clone(),
                    token: self.token,
                    proof,
                    host: Box::new(host),
                    limits: self.rules.limits,
                    owner: self.owner,
                });
            }
            Err(refusal) => {
                self.say_error(refusal.code, &refusal.message, None);
                self.depart(now, Ending::Refused(refusal.code), None);
                self.close_when_empty();
            }
        }
    }

    fn hello(&mut self, now: Mono, version: u16, software: &str, prober_nonce: Token) {
        self.summary.software = netaware_record::excerpt(software, 64);
        if version == 0 {
            return self.turn_away(now, ErrorCode::Version, "version 0 is not spoken here");
        }
        let Some(key) = &self.rules.key else { return self.enrol(None) };
        self.state = State::Proof {
            until: now + PROOF_PATIENCE,
            expected: proof::client(key.bytes(), self.nonce, prober_nonce),
            answer: proof::server(key.bytes(), self.nonce, prober_nonce),
        };
        self.say(ServerMessage::Challenge { nonce: self.nonce });
    }

    fn enrol(&mut self, proof: Option<String>) {
        self.state = State::Enrolling { proof };
        self.actions.push_back(Action::Enrol);
    }

    fn damaged(&mut self, now: Mono, error: &FrameError) {
        let code = match error {
            FrameError::UnknownType(_) => ErrorCode::UnknownMessage,
            _ => ErrorCode::BadMessage,
        };
        let fatal = matches!(error, FrameError::TooLong(_)) || self.strikes >= MAX_STRIKES;
        self.strikes += 1;
        if !matches!(self.state, State::Open { .. }) {
            return self.turn_away(now, code, &error.to_string());
        }
        self.say_error(code, &error.to_string(), None);
        if fatal {
            self.depart(now, Ending::Refused(code), None);
        }
    }

    /// Refuses who has no session yet. With a key set, strangers learn about versions and proofs
    /// and nothing else.
    fn turn_away(&mut self, now: Mono, code: ErrorCode, why: &str) {
        if self.rules.key.is_none() || matches!(code, ErrorCode::Version | ErrorCode::Key) {
            self.say_error(code, why, None);
        }
        self.depart(now, Ending::Refused(code), None);
    }

    /// Ends everything; what still runs has [`WIND_DOWN`] for it.
    fn depart(&mut self, now: Mono, ending: Ending, farewell: Option<String>) {
        if matches!(self.state, State::Leaving { .. } | State::Closed) {
            return;
        }
        self.summary.ending = Some(ending);
        let is_told = matches!(ending, Ending::Stopped | Ending::Refused(ErrorCode::Busy));
        self.halt_all(is_told.then_some(Outcome::Interrupted), |_| true);
        self.state = State::Leaving { until: now + WIND_DOWN, farewell };
    }

    fn close_when_empty(&mut self) {
        let State::Leaving { farewell, .. } = &mut self.state else { return };
        if !self.tests.is_empty() {
            return;
        }
        let farewell = farewell.take();
        self.state = State::Closed;
        if let Some(reason) = farewell {
            self.say(ServerMessage::Bye { reason });
        }
        if self.permit.is_something() {
            self.permit = Permit::None;
            self.actions.push_back(Action::Leave);
        }
        self.actions.push_back(Action::Close);
    }

    fn say(&mut self, message: ServerMessage) {
        self.actions.push_back(Action::Send(Box::new(message)));
    }

    fn say_error(&mut self, code: ErrorCode, message: &str, test: Option<u32>) {
        let versions = if code == ErrorCode::Version { vec![PROTOCOL_VERSION] } else { Vec::new() };
        self.say(ServerMessage::Error { code, message: message.to_owned(), test, versions });
    }
}

/// The longest delay that has been seen of late. A queue that has drained delays no ping, and
/// neither does an outage that is over.
#[derive(Debug, Clone, Copy)]
struct LongestLately {
    delay: Span,
    at: Option<Mono>,
    /// It counts for so long.
    within: Span,
}

impl LongestLately {
    fn within(within: Span) -> Self {
        Self { delay: Span::ZERO, at: None, within }
    }

    fn observe(&mut self, now: Mono, delay: Span) {
        let delay = delay.or_zero().min(MAX_ROUND_TRIP);
        if delay >= self.lately(now) {
            *self = Self { delay, at: Some(now), ..*self };
        }
    }

    fn lately(&self, now: Mono) -> Span {
        let is_recent = self.at.is_some_and(|at| now - at <= self.within);
        if is_recent { self.delay } else { Span::ZERO }
    }
}

/// Queues that fill now have been filled so long ago.
const QUEUES_COUNT: Span = Span::from_secs(10);
/// A path that loses one packet in ten delays a ping by two seconds within that time, again and
/// again; on one that was out for once the next outage is rarely as near.
const GAPS_COUNT: Span = Span::from_secs(30);
/// For the hello to arrive; the connection's first bytes had their own patience. On a round trip of
/// 1.2 s a first segment that is lost comes after 3.6 s.
const HELLO_PATIENCE: Span = Span::from_secs(6);
/// A round trip for the challenge, and the proof is lost once.
const PROOF_PATIENCE: Span = Span::from_secs(15);
/// A ping that is lost comes again after the sender's time-out, which is longer than any gap of
/// those that are not.
const GAPS: i64 = 3;
/// Round trips that a ping takes which is lost once in a queue as long as the path: the sender's
/// time-out, and the way.
const LOST_ONCE: i64 = 3;
/// Whoever comes back after a longer silence opens a session again.
const LONGEST_PATIENCE: Span = Span::from_secs(15);
/// Where the round trips that are known make it as long: queues of slow paths hold seconds, which a
/// test has filled, and a segment that is lost there is sent again late. Probers wait no longer.
const LONGEST_ON_SLOW_PATH: Span = Span::from_secs(30);
/// For running tests to end once they are told to. With the silence limit of 4 s this keeps the
/// promise that a vanished client is forgotten within 5 s, on a path whose pings come in time.
pub(crate) const WIND_DOWN: Span = Span::from_millis(900);
/// Damaged or unknown messages of one session that are answered; then it is closed.
const MAX_STRIKES: u32 = 32;
pub(crate) const EVICTED: &str =
    "the responder is full, and this address holds more places than others; try again later";

#[cfg(test)]
mod tests;
