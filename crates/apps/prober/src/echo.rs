//! An attached UDP flow that answers, and the trains of requests that run over it.

use netaware_engine::NotSent;
use netaware_host::CpuSnapshot;
use netaware_io::options::SocketOptions;
use netaware_io::probe_socket::{ProbeSocket, Stamping};
use netaware_io::stop::StopFlag;
use netaware_io::{clock, driver};
use netaware_probe::delay_report::{EchoLog, EchoRound, Stopped};
use netaware_probe::{EchoEvent, EchoPlan, EchoTrain, Pacing, outage};
use netaware_record::{CpuUse, SendRefusal};
use netaware_stats::ceasing::Ceasing;
use netaware_stats::patience::{LEAST, Waiting};
use netaware_units::{Mono, Span};
use netaware_wire::control::{MAX_TCP_ECHO_BESIDE, TestPlan};
use netaware_wire::datagram::ECHO_LEN;

use crate::attach;
use crate::link::standstill::Standstill;
use crate::request::Transport;
use crate::session::Session;
use crate::stage::Cause;

/// Payload of a request and of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EchoSizes {
    pub(crate) request: u32,
    pub(crate) response: u32,
}

impl EchoSizes {
    pub(crate) fn equal(length: u32) -> Self {
        Self { request: length, response: length }
    }

    /// As a UDP plan has it: absent where the request comes back as it is.
    fn udp_response(self) -> Option<u32> {
        let comes_back = self.request == self.response && self.request as usize >= ECHO_LEN;
        (!comes_back).then_some(self.response)
    }

    /// As a TCP plan has it.
    pub(crate) fn tcp_response(self) -> Option<u32> {
        let comes_back = self.request == self.response && !self.fills_the_path();
        (!comes_back).then_some(self.response)
    }

    /// Over TCP an exchange of this size is bulk, and waits for its turn.
    pub(crate) fn fills_the_path(self) -> bool {
        self.request.max(self.response) > MAX_TCP_ECHO_BESIDE
    }
}

/// What to ask of an echo.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EchoOrder {
    /// Requests; absent: until time or somebody ends it.
    pub(crate) count: Option<u64>,
    /// At most so long.
    pub(crate) time: Option<Span>,
    /// When they go.
    pub(crate) pacing: Pacing,
    /// Payload of a request.
    pub(crate) length: u32,
    /// Payload of a response.
    pub(crate) response: u32,
    /// After how long without an answer a request is lost; in an [`EchoRun`] what it was in the
    /// end.
    pub(crate) patience: Span,
    /// How that is meant.
    pub(crate) waiting: Waiting,
}

impl EchoOrder {
    /// Even spacing, a patience of at least a second that follows the path, equal lengths.
    pub(crate) fn open_loop(count: Option<u64>, spacing: Span, length: u32) -> Self {
        let pacing = Pacing::Even(spacing);
        let waiting = Waiting::AtLeast;
        Self { count, time: None, pacing, length, response: length, patience: LEAST, waiting }
    }

    /// Even spacing for as long as something else lasts, which may fill a queue of seconds.
    pub(crate) fn beside_load(spacing: Span, length: u32, round_trip: Span) -> Self {
        let patience = LONGEST_QUEUE + round_trip * 2;
        Self { patience, ..Self::open_loop(None, spacing, length) }
    }

    /// The spacing as records tell it.
    pub(crate) fn shown_spacing(&self) -> Span {
        self.pacing.spacing()
    }
}

/// Answers that wait behind a load are still answers: the longest queue that people meet.
const LONGEST_QUEUE: Span = Span::from_secs(4);

/// All has been sent, and answers are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overdue {
    /// They are waited for until then.
    pub(crate) until: Mono,
    /// Requests in a row, up to the last one, that have no answer yet.
    pub(crate) in_a_row: u64,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct EchoRun {
    pub(crate) order: EchoOrder,
    pub(crate) transport: Transport,
    pub(crate) round: EchoRound,
    pub(crate) late_sends: u64,
    pub(crate) worst_lateness: Span,
    /// Why the last request that never left this host did not.
    pub(crate) why_not_sent: Option<NotSent>,
    /// What ICMP said of requests that had left, with times since the run began.
    pub(crate) rejections: Vec<SendRefusal>,
    pub(crate) stamp_fallbacks: Option<u64>,
    /// When its first request was due.
    pub(crate) began_at: Mono,
    /// Requests without an answer in time.
    pub(crate) unanswered: Vec<Unanswered>,
    /// What was found out behind its end, where answers were missing there.
    pub(crate) afterwards: Afterwards,
    /// Lost requests after the last one that was answered.
    pub(crate) lost_at_end: u64,
    /// Whether answers ceased.
    pub(crate) ceasing: Ceasing,
    /// A connection that was silent for too long ended it.
    pub(crate) gave_up: bool,
    /// Answers that this host's socket dropped.
    pub(crate) host_drops: Option<u64>,
    /// Of this host.
    pub(crate) cpu: CpuUse,
}

/// A request that counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unanswered {
    pub(crate) number: u64,
    /// When it left, or was to leave.
    pub(crate) left_at: Mono,
    /// Its answer came after all.
    pub(crate) came_late: bool,
}

/// Requests that were on their way while the responder did not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Forgotten {
    /// That no longer count as lost.
    pub(crate) unknown: u64,
    /// That were answered, and whose round trips are left out.
    pub(crate) untimed: u64,
}

/// What requests that were only asked to find out whether anything still comes told of the silence
/// in which a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Afterwards {
    /// One that was asked then had no answer.
    pub(crate) silent_at: Option<Mono>,
    /// An answer came, for the first time.
    pub(crate) came_at: Option<Mono>,
}

impl Afterwards {
    /// By requests that followed.
    pub(crate) fn and_tried(self, tried: &EchoRun) -> Self {
        let came_at = tried.first_answer_at();
        let silent_at = if came_at.is_none() { Some(tried.last_due()) } else { None };
        Self { silent_at: self.silent_at.max(silent_at), came_at: self.came_at.or(came_at) }
    }
}

impl EchoRun {
    /// When the first answer came, of requests at even distances.
    pub(crate) fn first_answer_at(&self) -> Option<Mono> {
        let arrivals = self.round.arrivals(self.order.shown_spacing());
        arrivals.iter().map(|(_, since)| self.began_at + *since).min()
    }

    /// What an answer took at most; zero where none came.
    pub(crate) fn longest_round_trip(&self) -> Span {
        let longest = self.round.rtts_ns().into_iter().reduce(f64::max);
        longest.map_or(Span::ZERO, |ns| Span(ns as i64))
    }

    /// When the last request was due, of requests at even distances.
    fn last_due(&self) -> Mono {
        let before = self.round.counts().asked.saturating_sub(1);
        self.began_at + self.order.shown_spacing() * i64::try_from(before).unwrap_or(i64::MAX)
    }

    /// What became of requests that came while the responder did not run nobody observed: it need
    /// not have been the path. How long the answers took that came is not the path's either, unless
    /// they tell how long the responder took.
    pub(crate) fn forget_standstills(&mut self, standstills: &[Standstill]) -> Forgotten {
        let unknown = self.forget_unanswered(standstills);
        let stopped = |one: &Standstill| Stopped { lasted: one.lasted, from: one.from, until: one.until };
        let times: Vec<Stopped> = standstills.iter().map(stopped).collect();
        Forgotten { unknown, untimed: self.round.leave_out_of(&times) }
    }

    fn forget_unanswered(&mut self, standstills: &[Standstill]) -> u64 {
        let met = |lost: &&Unanswered| standstills.iter().any(|one| one.met(lost.left_at));
        let met: Vec<Unanswered> = self.unanswered.iter().filter(met).copied().collect();
        if met.is_empty() {
            return 0;
        }
        self.unanswered.retain(|lost| !met.contains(lost));
        let late = met.iter().filter(|lost| lost.came_late).count() as u64;
        let numbers: Vec<u64> = met.iter().map(|lost| lost.number).collect();
        let round = std::mem::take(&mut self.round);
        let last_answered = round.last_answered();
        let at_end = numbers.iter().filter(|number| Some(**number) > last_answered).count() as u64;
        self.lost_at_end = self.lost_at_end.saturating_sub(at_end);
        self.round = round.not_knowing_those(&numbers, late);
        numbers.len() as u64
    }

    /// Whether any of its requests may have met one of these.
    pub(crate) fn met_any(&self, standstills: &[Standstill]) -> bool {
        let until = (self.began_at + self.round.lasted().unwrap_or_default()).max(self.last_due());
        standstills.iter().any(|one| one.from <= until && self.began_at <= one.until)
    }

    /// Answers that came, in time or late.
    pub(crate) fn answers(&self) -> u64 {
        let counts = self.round.counts();
        counts.received + counts.late
    }

    /// It is part of a measurement that broke off: what became of the requests after the last
    /// answer nobody observed.
    pub(crate) fn forget_its_end(&mut self) {
        let round = std::mem::take(&mut self.round);
        let silent = std::mem::take(&mut self.lost_at_end);
        let last_answered = round.last_answered();
        self.unanswered.retain(|lost| lost.came_late || Some(lost.number) < last_answered);
        self.round = round.not_knowing_of(silent);
    }
}

/// A flow to the responder's reflector.
pub(crate) struct EchoFlow {
    pub(crate) socket: ProbeSocket,
    pub(crate) number: u32,
    test: u32,
    /// Until when the responder answers.
    pub(crate) until: Mono,
    /// The longest that an answer of the set-up took: the first round trip that is known.
    rtt: Option<Span>,
    /// When it was last known to be used.
    used_at: Mono,
}

impl EchoFlow {
    /// Opens an echo test and attaches a flow to it. `duration` is how long it will be needed at
    /// most.
    pub(crate) fn open(
        session: &mut Session,
        options: &SocketOptions,
        duration: Span,
        sizes: EchoSizes,
    ) -> Result<Self, Cause> {
        let (length, response) = (sizes.request, sizes.udp_response());
        let plan = TestPlan::UdpEcho { length, response, duration, dscp: options.dscp };
        let test = session.open_test(plan, &mut |_| {})?;
        let opened_at = clock::now();
        let flow = attach::flow(session, options, test, &mut |_| {})?;
        session.await_ready(test, &mut |_| {})?;
        session.start_test(test, &mut |_| {})?;
        let system = |e: std::io::Error| Cause::System(e.to_string());
        flow.socket.set_nonblocking(false).map_err(system)?;
        let socket = ProbeSocket::new(flow.socket, Stamping::Kernel).map_err(system)?;
        let rtt = session.longest_rtt().max(Some(flow.rtt));
        // The responder counts from when the flow is attached, which is later than now.
        let until = opened_at + duration;
        Ok(Self { socket, number: flow.number, test, until, rtt, used_at: clock::now() })
    }

    /// Whether an address translator on the path may have forgotten it by now. On a far path
    /// another one would take too long.
    pub(crate) fn may_be_forgotten(&self, round_trip: Span) -> bool {
        round_trip < FAR && clock::now() - self.used_at > FORGOTTEN
    }

    /// Ends the echo test at the responder.
    pub(crate) fn close(self, session: &mut Session) -> Result<(), Cause> {
        session.stop_test(self.test)
    }

    /// Sends a train and waits for its answers.
    pub(crate) fn run(&mut self, order: &EchoOrder, stop: &StopFlag) -> Result<EchoRun, Cause> {
        self.run_telling(order, stop, &mut |_| {})
    }

    /// The same, and tells until when the last answers are waited for where they are late.
    pub(crate) fn run_telling(
        &mut self,
        order: &EchoOrder,
        stop: &StopFlag,
        overdue: &mut dyn FnMut(Overdue),
    ) -> Result<EchoRun, Cause> {
        let start = clock::now() + HEAD_START;
        let plan = EchoPlan {
            flow: self.number,
            count: order.count,
            pacing: order.pacing,
            length: order.length as usize,
            response: order.response as usize,
            patience: order.patience,
            start,
        };
        let train = match order.waiting {
            Waiting::Exactly => EchoTrain::new(plan),
            Waiting::AtLeast => EchoTrain::following(plan, self.rtt),
        };
        let mut train = train.map_err(|e| Cause::System(e.to_string()))?;
        if let Some(time) = order.time {
            train = train.sending_until(start + time);
        }
        let mut log = EchoLog::default();
        let cpu_before = (CpuSnapshot::take(), clock::now());
        let drops_before = self.socket.drops();
        let is_closed = order.pacing.depth().is_some();
        let waiting =
            if is_closed { driver::AnswerWait::AwakeForSoonAnswers } else { driver::AnswerWait::Asleep };
        let (mut last_verdict_at, mut last_answer_at) = (start, start);
        let (mut lost_at_end, mut highest_answered) = (0, None);
        let mut unanswered: Vec<Unanswered> = Vec::new();
        let spacing = match order.pacing {
            Pacing::Even(spacing) => Some(spacing),
            _ => None,
        };
        let mut ceasing = Ceasing::beginning(start);
        // It follows the path: the shortest dates the first requests a little late.
        let patience = order.patience;
        let drive = driver::run(&mut train, &self.socket, waiting, stop, &mut |event| {
            log.observe(&event);
            let at = match &event {
                EchoEvent::Answered(exchange) => exchange.rx_application,
                _ => clock::now(),
            };
            match event {
                EchoEvent::Answered(exchange) => {
                    (last_verdict_at, last_answer_at) = (at, at);
                    highest_answered = highest_answered.max(Some(exchange.seq));
                    lost_at_end = 0;
                    ceasing.came(at);
                }
                EchoEvent::Lost(seq) => {
                    last_verdict_at = at;
                    let due = spacing.map(|apart| start + apart * i64::try_from(seq).unwrap_or(i64::MAX));
                    let left_at = due.unwrap_or(at - patience);
                    unanswered.push(Unanswered { number: seq, left_at, came_late: false });
                    if Some(seq) > highest_answered {
                        lost_at_end += 1;
                        ceasing.unanswered(at - patience);
                    }
                }
                // The flow still works.
                EchoEvent::Late(seq) => {
                    if let Some(late) = unanswered.iter_mut().rev().find(|lost| lost.number == seq) {
                        late.came_late = true;
                    }
                    lost_at_end = 0;
                    ceasing.came(at);
                }
                EchoEvent::NotSent { .. } => ceasing.not_sent(at),
                EchoEvent::Overdue { until, in_a_row } => overdue(Overdue { until, in_a_row }),
                _ => {}
            }
        })
        .map_err(|e| Cause::System(e.to_string()))?;
        self.used_at = clock::now();
        let rejected = spacing.map_or_else(Vec::new, |apart| {
            drive.rejections.iter().map(|one| outage::rejected(one.first, one.last, apart)).collect()
        });
        Ok(EchoRun {
            order: EchoOrder { patience: train.patience(), ..*order },
            transport: Transport::Udp,
            round: log
                .finish(train.counts())
                .lasting(last_verdict_at.since(start))
                .answered_within(last_answer_at.since(start))
                .rejected_among(rejected),
            late_sends: drive.late_sends,
            worst_lateness: drive.worst_lateness,
            why_not_sent: drive.why_not_sent,
            rejections: drive.rejections,
            stamp_fallbacks: Some(drive.stamp_fallbacks),
            began_at: start,
            unanswered,
            afterwards: Afterwards::default(),
            lost_at_end,
            ceasing,
            gave_up: false,
            host_drops: Some(self.socket.drops() - drops_before),
            cpu: CpuSnapshot::take().use_since(&cpu_before.0, clock::now() - cpu_before.1),
        })
    }
}

/// Address translators keep a flow of datagrams for 30 s and longer as a rule (RFC 4787 §4.3 asks
/// for two minutes).
const FORGOTTEN: Span = Span::from_secs(25);
/// Opening a flow takes four round trips.
const FAR: Span = Span::from_millis(250);
/// The first request is due a little later than now, so that it is not late by construction.
const HEAD_START: Span = Span::from_millis(1);
