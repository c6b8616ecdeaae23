//! The tests of a session, each with its own small life:
//! `Preparing → Attaching → Ready → Running → Ending`, and gone.

use std::collections::BTreeSet;

use netaware_record::{Outcome, ReceiverTick, SenderTick, StreamEnd};
use netaware_units::{BitRate, ByteCount, Mono, Span};
use netaware_wire::control::{ChannelEnd, EndReport, ErrorCode, ServerMessage, TestPlan, VolleySpec};

use super::{Action, EVICTED, Session, report};
use crate::plan::{self, Cap, Refusal};
use crate::together::Part;

#[derive(Debug)]
pub(super) struct Test {
    pub(super) plan: TestPlan,
    stage: Stage,
    /// Streams that are attached.
    attached: BTreeSet<u16>,
    /// Payload so far, from the ticks.
    bytes: ByteCount,
    /// A throughput test that has run, for the summary.
    has_run: bool,
    /// Slices that are told in the end, or once there is enough in them.
    held: Vec<SenderTick>,
    /// A slice of a receiving TCP test in which too little came to be told by itself.
    thin: Option<ReceiverTick>,
    /// For how long nothing of what a sender sent has been acknowledged.
    unacknowledged: Span,
    /// Volleys asked for and not answered yet.
    volleys: u32,
    /// Its flow comes in a data channel.
    has_channel: bool,
    /// What it has of the reservation; absent without one.
    part: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Preparing,
    Attaching {
        until: Mono,
    },
    Ready {
        until: Mono,
    },
    Running {
        until: Mono,
        /// `until` is never put off beyond this.
        latest: Mono,
    },
    /// `Halt` is out. `verdict` is what is told, `None` tells nothing.
    Ending {
        verdict: Option<Verdict>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Whatever the report says itself.
    AsReported,
    Is(Outcome),
}

impl Test {
    pub(super) fn deadline(&self) -> Option<Mono> {
        match self.stage {
            Stage::Attaching { until } | Stage::Ready { until } | Stage::Running { until, .. } => Some(until),
            Stage::Preparing | Stage::Ending { .. } => None,
        }
    }

    fn is_echo(&self) -> bool {
        plan::is_echo(&self.plan)
    }

    fn wants(&self, stream: u16) -> bool {
        match &self.plan {
            TestPlan::Tcp(plan) => {
                let early = matches!(self.stage, Stage::Attaching { .. });
                early && stream < plan.streams && !self.attached.contains(&stream)
            }
            TestPlan::TcpEcho { .. } => {
                let alive = !matches!(self.stage, Stage::Preparing | Stage::Ending { .. });
                alive && stream < MAX_ECHO_CONNECTIONS && !self.attached.contains(&stream)
            }
            TestPlan::UdpEcho { .. } | TestPlan::Udp(_) | TestPlan::Trains(_) => false,
        }
    }

    fn is_complete(&self) -> bool {
        match &self.plan {
            TestPlan::Tcp(plan) => self.attached.len() == usize::from(plan.streams),
            _ => true,
        }
    }

    /// How long it may stay ready, `to_start` unless it is an echo test: that answers from the
    /// moment it is ready, so its whole duration.
    fn patience_when_ready(&self, to_start: Span) -> Span {
        if self.is_echo() { plan::duration(&self.plan) } else { to_start }
    }
}

impl Session<'_> {
    pub(super) fn open(&mut self, test: u32, plan: TestPlan) {
        let part = match self.may_open(test, &plan) {
            Ok(part) => part,
            Err(Refusal { code, message }) => return self.say_error(code, &message, Some(test)),
        };
        self.has_opened = true;
        let (attached, bytes) = (BTreeSet::new(), ByteCount(0));
        let prepared = plan.clone();
        self.tests.insert(
            test,
            Test {
                plan,
                stage: Stage::Preparing,
                attached,
                bytes,
                has_run: false,
                held: Vec::new(),
                thin: None,
                unacknowledged: Span::ZERO,
                volleys: 0,
                has_channel: false,
                part,
            },
        );
        self.actions.push_back(Action::Prepare { test, plan: prepared });
    }

    fn may_open(&self, test: u32, plan: &TestPlan) -> Result<Option<Part>, Refusal> {
        let state = |message: &str| Err(Refusal { code: ErrorCode::State, message: message.to_owned() });
        if self.tests.contains_key(&test) {
            return state("a test of this number is open");
        }
        if self.tests.len() >= MAX_TESTS {
            return state("too many tests are open in this session");
        }
        if plan::needs_reservation(plan) && !self.permit.is_held() {
            return state("a throughput test needs a reservation");
        }
        plan::check_label(plan, &self.header)?;
        plan::check(plan, &self.rules.limits)?;
        if !plan::needs_reservation(plan) {
            return Ok(None);
        }
        self.together.open(&self.rules.limits, plan::planned(plan)).map(Some)
    }

    /// The answer to [`Action::Prepare`]; an error may also come later, when a stream that was
    /// wanted cannot be used.
    pub(crate) fn prepared(&mut self, now: Mono, test: u32, outcome: Result<(), Refusal>) {
        let patience = self.patience_now(now, ATTACH_ROUND_TRIPS, ATTACH_PATIENCE);
        let Some(entry) = self.tests.get_mut(&test) else { return };
        match outcome {
            Ok(()) => {
                if entry.stage == Stage::Preparing {
                    entry.stage = Stage::Attaching { until: now + patience };
                    self.say(ServerMessage::Opened { test });
                }
            }
            Err(refusal) => {
                self.cannot_run(test, &refusal);
            }
        }
    }

    /// Whether a connection may be `stream` of `test`. The owner then attaches it and calls
    /// [`Session::attached`].
    pub(crate) fn wants_stream(&self, test: u32, stream: u16) -> bool {
        self.tests.get(&test).is_some_and(|test| test.wants(stream))
    }

    /// The flow of a test that waits for it will come in a data channel.
    pub(super) fn open_channel(&mut self, test: u32, end: ChannelEnd) {
        let refuse = |code, message: &str| Err(Refusal { code, message: message.to_owned() });
        let to_agree = self.round_trip() * CHANNEL_ROUND_TRIPS;
        let may = match self.tests.get_mut(&test) {
            Some(entry) if matches!(entry.stage, Stage::Attaching { .. }) && !entry.has_channel => {
                match (plan::check_channel(&entry.plan), end.fault()) {
                    (Err(refusal), _) => Err(refusal),
                    (_, Some(fault)) => refuse(ErrorCode::BadMessage, fault),
                    (Ok(()), None) => {
                        entry.has_channel = true;
                        if let Stage::Attaching { until } = &mut entry.stage {
                            *until += to_agree;
                        }
                        Ok(())
                    }
                }
            }
            Some(_) => refuse(ErrorCode::State, "this test does not wait for a data channel"),
            None => refuse(ErrorCode::State, "no such test is open"),
        };
        match may {
            Ok(()) => self.actions.push_back(Action::OpenChannel { test, end }),
            Err(Refusal { code, message }) => self.say_error(code, &message, Some(test)),
        }
    }

    /// The answer to [`Action::OpenChannel`].
    pub(crate) fn channel_prepared(&mut self, test: u32, outcome: Result<ChannelEnd, Refusal>) {
        match outcome {
            Ok(end) if self.tests.contains_key(&test) => self.say(ServerMessage::Channel { test, end }),
            Ok(_) => {}
            Err(refusal) => self.cannot_run(test, &refusal),
        }
    }

    /// The data channel of a test that does not run yet is no more; of one that runs its report
    /// tells.
    pub(crate) fn channel_lost(&mut self, test: u32, why: &str) {
        let waits = |stage| matches!(stage, Stage::Attaching { .. } | Stage::Ready { .. });
        if self.tests.get(&test).is_some_and(|entry| entry.has_channel && waits(entry.stage)) {
            self.say_error(ErrorCode::Internal, why, Some(test));
            self.halt(test, None);
        }
    }

    /// A place that this test held was taken away: it ends with what it has.
    pub(crate) fn test_evicted(&mut self, test: u32) {
        if self.tests.contains_key(&test) {
            self.say_error(ErrorCode::Busy, EVICTED, Some(test));
            self.halt(test, Some(Verdict::Is(Outcome::Interrupted)));
        }
    }

    /// An echo test has reached a cap. The rate holds requests back, the bytes end the test as they
    /// end a transfer.
    pub(crate) fn cap_reached(&mut self, test: u32, cap: Cap) {
        let goes_on = self.tests.get(&test).is_some_and(|entry| !matches!(entry.stage, Stage::Ending { .. }));
        let Some(refusal) = plan::reached(&self.rules.limits, cap).filter(|_| goes_on) else { return };
        self.say_error(refusal.code, &refusal.message, Some(test));
        if cap == Cap::Bytes {
            self.halt(test, Some(Verdict::Is(Outcome::Interrupted)));
        }
    }

    /// A stream that was wanted is attached, or a flow has entered (`stream` is then 0).
    pub(crate) fn attached(&mut self, now: Mono, test: u32, stream: u16) {
        let to_attach = self.patience_now(now, ATTACH_ROUND_TRIPS, ATTACH_PATIENCE);
        let to_start = self.patience_now(now, START_ROUND_TRIPS, START_PATIENCE);
        let Some(entry) = self.tests.get_mut(&test) else { return };
        entry.attached.insert(stream);
        let is_complete = entry.is_complete();
        match &mut entry.stage {
            Stage::Attaching { until } if !is_complete => *until = now + to_attach,
            Stage::Attaching { .. } => {
                entry.stage = Stage::Ready { until: now + entry.patience_when_ready(to_start) };
                self.say(ServerMessage::Ready { test });
            }
            _ => {}
        }
    }

    pub(super) fn start(&mut self, now: Mono, test: u32) {
        // The first data come a round trip after that: a prober waits for `started`.
        let overtime = OVERTIME + self.round_trip();
        let Some(entry) = self.tests.get_mut(&test) else {
            return self.say_error(ErrorCode::State, "no such test is open", Some(test));
        };
        let Stage::Ready { until } = entry.stage else {
            return self.say_error(ErrorCode::State, "this test is not ready to start", Some(test));
        };
        let until = if entry.is_echo() { until } else { now + plan::duration(&entry.plan) + overtime };
        let latest = until + entry.plan.longest_drain();
        if let Some(part) = entry.part.as_mut().filter(|_| !plan::is_echo(&entry.plan)) {
            part.begin(now, &self.rules.limits);
        }
        entry.stage = Stage::Running { until, latest };
        entry.has_run = true;
        self.summary.tests += 1;
        if entry.is_echo() {
            return self.say(ServerMessage::Started { test });
        }
        self.actions.push_back(Action::Run { test });
    }

    /// The test of an [`Action::Run`] has its threads: the other end may begin.
    pub(crate) fn started(&mut self, test: u32) {
        if self.tests.get(&test).is_some_and(|entry| matches!(entry.stage, Stage::Running { .. })) {
            self.say(ServerMessage::Started { test });
        }
    }

    /// A running test of trains is asked for some. One more may wait while one is under way, so
    /// that nobody can pile them up.
    pub(super) fn volley(&mut self, test: u32, volley: VolleySpec) {
        let limits = self.rules.limits;
        let refused = match self.tests.get_mut(&test) {
            Some(Test {
                plan: TestPlan::Trains(plan), stage: Stage::Running { .. }, volleys, bytes, ..
            }) => {
                let more = ByteCount(bytes.0.saturating_add(volley.payload()));
                if let Some(fault) = volley.fault(plan) {
                    Err((ErrorCode::BadMessage, fault.to_owned()))
                } else if *volleys >= MOST_VOLLEYS {
                    Err((ErrorCode::State, "a volley is under way and another waits".to_owned()))
                } else if let Some(refusal) = plan::exceeded(&limits, more, Span(i64::MAX)) {
                    Err((refusal.code, refusal.message))
                } else {
                    *volleys += 1;
                    *bytes = more;
                    Ok(())
                }
            }
            _ => Err((ErrorCode::State, "no test of trains of this number is running".to_owned())),
        };
        match refused {
            Ok(()) => self.actions.push_back(Action::Ask { test, volley }),
            Err((code, message)) => self.say_error(code, &message, Some(test)),
        }
    }

    /// Packets of a volley.
    pub(crate) fn volley_times(
        &mut self,
        test: u32,
        volley: u32,
        times: Vec<(u64, u64)>,
        last: bool,
        unstamped: u64,
    ) {
        let Some(entry) = self.tests.get_mut(&test) else { return };
        if last {
            entry.volleys = entry.volleys.saturating_sub(1);
        }
        if entry.stage != (Stage::Ending { verdict: None }) {
            self.say(ServerMessage::VolleyTimes { test, volley, times, last, unstamped });
        }
    }

    /// A test cannot go on: its set-up failed.
    pub(crate) fn cannot_run(&mut self, test: u32, why: &Refusal) {
        if self.tests.remove(&test).is_some() {
            self.say_error(why.code, &why.message, Some(test));
            self.leave_when_idle();
            self.close_when_empty();
        }
    }

    /// Stopping what is already over is no error: the messages may have crossed.
    pub(super) fn stop_test(&mut self, test: u32) {
        let verdict = match self.tests.get(&test) {
            // They go on until somebody ends them.
            Some(entry) if entry.is_echo() || matches!(entry.plan, TestPlan::Trains(_)) => Outcome::Complete,
            Some(_) => Outcome::Interrupted,
            None => return,
        };
        self.halt(test, Some(Verdict::Is(verdict)));
    }

    /// Halts the tests that `which` picks; `outcome` is told in their `Finished`, `None` tells
    /// nothing.
    pub(super) fn halt_all(&mut self, outcome: Option<Outcome>, which: impl Fn(&Test) -> bool) {
        let chosen: Vec<u32> =
            self.tests.iter().filter(|(_, test)| which(test)).map(|(number, _)| *number).collect();
        for test in chosen {
            self.halt(test, outcome.map(Verdict::Is));
        }
    }

    fn halt(&mut self, test: u32, verdict: Option<Verdict>) {
        let Some(entry) = self.tests.get_mut(&test) else { return };
        let first = !matches!(entry.stage, Stage::Ending { .. });
        // A session that leaves without a word takes back what it wanted to be told.
        if first || verdict.is_none() {
            entry.stage = Stage::Ending { verdict };
        }
        if first {
            if let Some(part) = &mut entry.part {
                part.halted();
            }
            self.actions.push_back(Action::Halt { test });
        }
    }

    pub(super) fn wake_tests(&mut self, now: Mono) {
        let due: Vec<u32> = self
            .tests
            .iter()
            .filter(|(_, test)| test.deadline().is_some_and(|until| until <= now))
            .map(|(number, _)| *number)
            .collect();
        for test in due {
            self.out_of_time(test);
        }
    }

    fn out_of_time(&mut self, test: u32) {
        let Some(entry) = self.tests.get(&test) else { return };
        let why = match entry.stage {
            Stage::Attaching { .. } => "its streams or its flow did not attach in time",
            Stage::Ready { .. } if !entry.is_echo() => "it was not started in time",
            _ if entry.is_echo() => return self.halt(test, Some(Verdict::Is(Outcome::Complete))),
            _ => return self.halt(test, Some(Verdict::AsReported)),
        };
        self.say_error(ErrorCode::Timeout, why, Some(test));
        self.halt(test, None);
    }

    /// Progress of a receiving test. What arrives from the prober is a sign of life, too: on a
    /// congested path it may hold up the pings for longer than the silence limit.
    pub(crate) fn receiver_tick(&mut self, now: Mono, test: u32, tick: ReceiverTick) {
        if tick.bytes > ByteCount(0) {
            self.heard(now);
            self.put_off(now, test);
        }
        if !self.count(now, test, tick.bytes, tick.end) {
            return;
        }
        let Some(entry) = self.tests.get_mut(&test) else { return };
        let tick = entry.thin.take().map_or(tick, |thin| thin.joined(tick));
        let is_thin = tick.bytes < WORTH_A_SLICE && tick.length < LONGEST_RECEIVED;
        if is_thin && matches!(entry.plan, TestPlan::Tcp(_)) {
            entry.thin = Some(tick);
        } else {
            self.say(ServerMessage::ReceiverTicks { test, ticks: vec![tick] });
        }
    }

    /// What still comes out of the path's queues after the planned end is awaited, within bounds:
    /// the end of the streams is behind it.
    fn put_off(&mut self, now: Mono, test: u32) {
        let overtime = self.patience_for(DRAIN_ROUND_TRIPS, OVERTIME);
        if let Some(Test { stage: Stage::Running { until, latest }, .. }) = self.tests.get_mut(&test) {
            *until = (*until).max((now + overtime).min(*latest));
        }
    }

    /// Progress of a sending test. What the prober's host acknowledges is a sign of life, too.
    pub(crate) fn sender_tick(&mut self, now: Mono, test: u32, tick: SenderTick) {
        if tick.acked.is_some_and(|acked| acked > ByteCount(0)) {
            self.heard(now);
            // A number of bytes is acknowledged beyond the planned end while queues drain.
            self.put_off(now, test);
        }
        self.loaded.observe(now, tick.rtt.unwrap_or_default());
        if !self.count(now, test, tick.bytes, tick.end) {
            return;
        }
        let Some(entry) = self.tests.get_mut(&test) else { return };
        let is_silent = tick.acked.is_some_and(|acked| acked.0 == 0);
        entry.unacknowledged = if is_silent { entry.unacknowledged + tick.length } else { Span::ZERO };
        match entry.held.last_mut() {
            Some(last) if is_thin(last) => *last = last.joined(tick),
            _ => entry.held.push(tick),
        }
        let is_quiet = matches!(&entry.plan, TestPlan::Tcp(plan) if plan.quiet);
        let has_enough = !is_quiet && !entry.held.last().is_some_and(is_thin);
        if has_enough || entry.held.len() >= MOST_HELD {
            self.tell_held(test);
        }
    }

    fn tell_held(&mut self, test: u32) {
        let Some(entry) = self.tests.get_mut(&test) else { return };
        let (held, thin) = (std::mem::take(&mut entry.held), entry.thin.take());
        if let Some(tick) = thin {
            self.say(ServerMessage::ReceiverTicks { test, ticks: vec![tick] });
        }
        for ticks in held.chunks(TICKS_IN_A_MESSAGE) {
            self.say(ServerMessage::SenderTicks { test, ticks: ticks.to_vec() });
        }
    }

    /// Whether the test goes on and its progress is told.
    fn count(&mut self, now: Mono, test: u32, bytes: ByteCount, elapsed: Span) -> bool {
        let limits = &self.rules.limits;
        let Some(entry) = self.tests.get_mut(&test) else { return false };
        entry.bytes = ByteCount(entry.bytes.0.saturating_add(bytes.0));
        let running = matches!(entry.stage, Stage::Running { .. });
        let together = entry.part.as_mut().and_then(|part| part.moved(now, bytes, limits));
        let exceeded = plan::exceeded(limits, entry.bytes, elapsed).or(together);
        if running && let Some(refusal) = exceeded {
            self.say_error(refusal.code, &refusal.message, Some(test));
            self.halt(test, Some(Verdict::Is(Outcome::Interrupted)));
            return true;
        }
        !matches!(entry.stage, Stage::Ending { verdict: None })
    }

    /// A test is over.
    pub(crate) fn ended(&mut self, test: u32, report: EndReport) {
        if self.tests.get(&test).is_some_and(|entry| entry.stage != Stage::Ending { verdict: None }) {
            self.tell_held(test);
        }
        let Some(entry) = self.tests.remove(&test) else { return };
        self.note_drain(left_in_queues(&entry.plan, &report, entry.unacknowledged));
        if entry.has_run {
            self.summary.bytes = self.summary.bytes.saturating_add(report::bytes(&report).0);
        }
        let verdict = match entry.stage {
            Stage::Ending { verdict } => verdict,
            _ => Some(Verdict::AsReported),
        };
        if let Some(verdict) = verdict {
            let outcome = match verdict {
                Verdict::AsReported => report::outcome(&report),
                Verdict::Is(outcome) => outcome,
            };
            for message in report::messages(test, outcome, report) {
                self.say(message);
            }
        }
        self.leave_when_idle();
        self.close_when_empty();
    }
}

/// How long what a sender has left in the path's queues takes to drain, by the rate at which it was
/// acknowledged. `silent` is how long nothing has been acknowledged: a queue that drains lets
/// something through now and then, and a path that lets nothing through is not waited for.
fn left_in_queues(plan: &TestPlan, report: &EndReport, silent: Span) -> Span {
    let (TestPlan::Tcp(plan), EndReport::TcpSender(end)) = (plan, report) else { return Span::ZERO };
    let told = end.acknowledged_bytes.zip(end.acknowledged);
    let Some((acked, over)) = told else { return Span::ZERO };
    // A path that became silent drains nothing, however slow its mean looks from then on.
    let spoke = (over - silent).max(SHORTEST_SLICE);
    let Some(rate) = BitRate::mean(acked, spoke).filter(|_| acked.0 > 0) else { return Span::ZERO };
    let sum = |of: fn(&StreamEnd) -> Option<ByteCount>| {
        end.streams.iter().filter_map(of).map(|bytes| bytes.0).sum::<u64>()
    };
    let sent = sum(|stream| stream.bytes_sent).saturating_sub(sum(|stream| stream.bytes_resent));
    let left = ByteCount(sent.saturating_sub(acked.0));
    if silent > DRAINS_NOT.max(rate.time_for(A_FEW_SEGMENTS)) {
        return Span::ZERO;
    }
    rate.time_for(left).min(plan.longest_drain())
}

/// Whether too little has moved in a slice to spend a message on it.
fn is_thin(tick: &SenderTick) -> bool {
    tick.acked.unwrap_or(tick.bytes) < WORTH_A_SLICE && tick.length < LONGEST_SENT
}

/// Outages that mobile networks recover from are shorter.
const DRAINS_NOT: Span = Span::from_secs(2);
/// What was acknowledged came in no less, as far as slices tell.
const SHORTEST_SLICE: Span = Span::from_millis(20);
const A_FEW_SEGMENTS: ByteCount = ByteCount(8 * 1500);
/// Volleys of one test at a time.
const MOST_VOLLEYS: u32 = 2;
/// Slices of a quiet test that are held back: at 50 ms each those of almost a minute.
const MOST_HELD: usize = 1024;
/// A message about a slice takes some 250 bytes on the path, and on a slow one it competes with
/// what is measured: so it takes 2 % of that at most.
const WORTH_A_SLICE: ByteCount = ByteCount(12_500);
/// A person watches how fast it goes, and the prober whether it goes on.
const LONGEST_RECEIVED: Span = Span::from_secs(1);
/// What the sender tells goes the way of the data.
const LONGEST_SENT: Span = Span::from_secs(4);
/// Each takes some 200 bytes.
const TICKS_IN_A_MESSAGE: usize = 64;
/// Open tests of one session: both directions of both IP versions, with latency beside them.
const MAX_TESTS: usize = 8;
/// Connections of one TCP echo test.
const MAX_ECHO_CONNECTIONS: u16 = 16;
/// From one connection to the next, or for a cookie exchange with losses.
const ATTACH_PATIENCE: Span = Span::from_secs(10);
/// Of `opened`, knock and cookie, and half of one until the flow enters; a second try of either.
const ATTACH_ROUND_TRIPS: i64 = 4;
/// ICE, DTLS and SCTP of a data channel, beside that.
const CHANNEL_ROUND_TRIPS: i64 = 8;
const START_PATIENCE: Span = Span::from_secs(10);
/// Another test that starts together with this one is opened and attached before.
const START_ROUND_TRIPS: i64 = 6;
/// Beyond a test's duration, for what is still in the path's queues.
const OVERTIME: Span = Span::from_secs(4);
/// From one piece of what is still in them to the next: a receiver itself waits for three.
const DRAIN_ROUND_TRIPS: i64 = 4;
