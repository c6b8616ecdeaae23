//! Runs one or more bulk transfers of a session at once and collects what both ends saw.
//!
//! The data moves in threads of its own; this one only listens: to the responder's control messages
//! and to the local slices. Several transfers at once are what `--bidir` is.

mod crowding;
mod local;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_io::{clock, tcp};
use netaware_record::{
    Direction, Exchanges, HistogramShape, LoggedArrival, Outcome, ReceiverTick, SenderTick, StreamEnd,
    StreamSample, TcpEnd, UdpReceiverEnd, UdpSenderEnd,
};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::{
    ClientMessage, EndReport, MAX_LOGGED, MAX_SAMPLES, ServerMessage, TcpPlan, TestPlan, UdpPlan,
};
use netaware_wire::preface::Role;

use self::crowding::Crowding;
pub(crate) use self::crowding::GAVE_WAY;
use self::local::{Attached, Before, Local, move_data, options_of_tcp, options_of_udp};
use crate::attach;
use crate::session::{Session, phase_deadline, test_of};
use crate::stage::Cause;

/// A transfer to run.
pub(crate) struct Job {
    pub(crate) plan: BulkPlan,
    pub(crate) affinity: Vec<usize>,
    /// It ends where the path has come to carry far less.
    pub(crate) gives_way: bool,
}

/// TCP or UDP.
#[derive(Clone)]
pub(crate) enum BulkPlan {
    Tcp(TcpPlan),
    Udp(UdpPlan),
}

impl BulkPlan {
    pub(crate) fn direction(&self) -> Direction {
        match self {
            Self::Tcp(plan) => plan.direction,
            Self::Udp(plan) => plan.direction,
        }
    }

    fn duration(&self) -> Span {
        match self {
            Self::Tcp(plan) => plan.duration + plan.alone,
            Self::Udp(plan) => plan.duration,
        }
    }

    /// How long the path's queues may go on giving after that.
    fn longest_drain(&self) -> Span {
        match self {
            Self::Tcp(plan) => plan.longest_drain(),
            Self::Udp(plan) => plan.longest_drain(),
        }
    }
}

/// What both ends saw of a transfer. An end that never reported is empty.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) sender_ticks: Vec<SenderTick>,
    pub(crate) receiver_ticks: Vec<ReceiverTick>,
    pub(crate) tcp_sender: Option<TcpEnd>,
    pub(crate) tcp_receiver: Option<TcpEnd>,
    pub(crate) udp_sender: Option<UdpSenderEnd>,
    pub(crate) udp_receiver: Option<UdpReceiverEnd>,
    /// The worst of both ends.
    pub(crate) outcome: Outcome,
    /// Why it ended before its time, in words; `None` if it did not, or if nobody knows.
    pub(crate) early: Option<String>,
    /// It was ended here because the path had come to carry far less.
    pub(crate) gave_way: bool,
    /// What had to be repeated around the data.
    pub(crate) exchanges: Exchanges,
    /// Bytes of an IP packet that this host sends over the path at most, if the system tells.
    pub(crate) path_mtu: Option<u32>,
    /// When it was begun, its set-up included; the same of all that ran at the same time.
    pub(crate) began_at: Option<Mono>,
    /// For how long this host did not run the program while it sent a UDP stream.
    pub(crate) own_absence: Option<Span>,
}

impl Ended {
    /// Whether the other end may have ended it before its time. A transfer of which the sender has
    /// sent all that was planned was cut by nobody, whatever has become of it on the way.
    pub(crate) fn may_have_been_cut(&self) -> bool {
        let tcp = self.tcp_sender.as_ref().map(|end| end.outcome);
        let sender = tcp.or(self.udp_sender.as_ref().map(|end| end.outcome));
        self.outcome != Outcome::Complete && sender != Some(Outcome::Complete) && !self.gave_way
    }
}

/// A slice of either end, as it becomes known.
pub(crate) enum Tick {
    Receiver(ReceiverTick),
    Sender(SenderTick),
    /// All transfers have begun, and are over after this time.
    Begun(Span),
    /// The time is up, and data still come out of the path's queues. They are waited for at most
    /// this long.
    Draining(Span),
    /// The time is up, nothing more comes, and the end of the transfer has not been seen. It is
    /// waited for at most this long.
    Unheard(Span),
    /// No question over UDP was answered, and all are asked once more, before the transfer begins.
    /// That takes at most this long.
    AsksAgain(Span),
    /// The responder's answer is overdue before the transfer begins. It is waited for at most this
    /// long.
    Unanswered(Span),
}

/// Runs all jobs at the same time. On failure everything collected so far is returned beside the
/// cause.
pub(crate) fn run(
    session: &mut Session,
    options: &SocketOptions,
    jobs: Vec<Job>,
    stop: &StopFlag,
    on_tick: &mut dyn FnMut(Direction, Tick),
) -> (Vec<Ended>, Option<Cause>) {
    let mut transfers = Vec::new();
    for job in jobs {
        match Transfer::prepare(session, options, job, on_tick) {
            Ok(transfer) => transfers.push(transfer),
            Err(cause) => return (Vec::new(), Some(cause)),
        }
    }
    let mut failure = None;
    for transfer in &mut transfers {
        if let Err(cause) = transfer.start(session, on_tick) {
            failure = Some(cause);
            break;
        }
    }
    if failure.is_none() {
        if let Some(first) = transfers.first() {
            let lasts = transfers.iter().map(|transfer| transfer.plan.duration()).max().unwrap_or_default();
            on_tick(first.plan.direction(), Tick::Begun(lasts + session.round_trip() * EXCHANGES));
        }
        failure = pump(session, &mut transfers, stop, on_tick).err();
    }
    // A session that ended because this host stood still was not ended by the responder.
    let failure = failure.map(|cause| session.link.explain(cause));
    let why = failure.clone().map(|cause| session.failure(STAGE, cause).to_string());
    let ended = transfers.into_iter().map(|transfer| transfer.finish(why.as_deref(), on_tick)).collect();
    (ended, failure)
}

/// What is being tried.
pub(crate) const STAGE: &str = "measure throughput";

/// Listens until every transfer is over at both ends.
fn pump(
    session: &mut Session,
    transfers: &mut [Transfer],
    stop: &StopFlag,
    on_tick: &mut dyn FnMut(Direction, Tick),
) -> Result<(), Cause> {
    let longest = transfers.iter().map(|t| t.plan.duration()).max().unwrap_or_default();
    let drain = transfers.iter().map(|t| t.plan.longest_drain()).max().unwrap_or_default();
    let planned_end = clock::now() + longest;
    let latest = planned_end + drain + session.patience();
    // The last data come a round trip after the first were asked for.
    let worth_saying = planned_end + session.round_trip() + WORTH_SAYING;
    let mut unheard = Unheard::of(transfers, planned_end, session.round_trip());
    let mut deadline = phase_deadline(longest + session.patience());
    let mut stopping = false;
    while transfers.iter().any(|t| t.remote.is_none() || !t.local_is_over()) {
        if stop.is_raised() && !stopping {
            stopping = true;
            deadline = deadline.min(clock::now() + session.patience());
            for transfer in transfers.iter_mut() {
                transfer.is_asked_to_stop = true;
                transfer.stop.raise();
                session.link.send(&ClientMessage::Stop { test: transfer.test })?;
            }
        }
        let looked_at = clock::now();
        if looked_at > deadline + session.link.allowance() {
            return Err(Cause::Silent(session.patience()));
        }
        let message = session.next(looked_at + LISTEN)?;
        for transfer in transfers.iter_mut().filter(|transfer| transfer.is_to_give_way()) {
            transfer.ended.gave_way = true;
            transfer.stop.raise();
            session.link.send(&ClientMessage::Stop { test: transfer.test })?;
        }
        // Time in which this host did not run is nobody's delay.
        let held_up = clock::now() - looked_at - LISTEN;
        if held_up > HELD_UP {
            deadline += held_up;
        }
        for transfer in transfers.iter_mut() {
            let before = transfer.received;
            if transfer.collect_local(on_tick) {
                session.link.sign_of_life();
            }
            if let Some(ServerMessage::Error { test: None, message, .. }) = &message {
                transfer.objection = Some(message.clone());
            }
            if let Some(message) = message.as_ref().filter(|m| test_of(m) == Some(transfer.test)) {
                transfer.take(message, on_tick)?;
                // A long report is on its way as long as parts of it come.
                deadline = deadline.max(clock::now() + session.patience());
                if transfer.remote.is_some() {
                    let retransmits = session.link.tcp_info().map(|info| info.retransmits);
                    transfer.ended.exchanges.fetching = since(retransmits, transfer.retransmits);
                }
            }
            // The report is behind the data in the path's queue.
            if transfer.received > before && !stopping {
                let now = clock::now();
                deadline = deadline.max(now + session.patience()).min(latest.max(deadline));
                unheard.moved(now);
                // Whoever waits decides when that is news.
                if now > worth_saying {
                    on_tick(transfer.plan.direction(), Tick::Draining((latest - now).or_zero()));
                }
            }
        }
        let gives_up = deadline + session.link.allowance();
        let overdue = unheard.worth_saying(clock::now(), gives_up);
        if let Some(at_most) = overdue.filter(|_| !stopping) {
            on_tick(transfers[0].plan.direction(), Tick::Unheard(at_most));
        }
    }
    Ok(())
}

/// Decides when to say that the end of a transfer is waited for although nothing comes: its last
/// segments or datagrams were lost, or so was its report, or the path has become silent.
#[derive(Debug)]
struct Unheard {
    /// Both ends of a transfer that met with nothing are over by then.
    usual_end: Mono,
    /// Every receiver has given up by then, and its report has come.
    latest: Mono,
    moved_at: Option<Mono>,
    /// Until when the end is waited for, as was announced last.
    until: Option<Mono>,
}

impl Unheard {
    fn of(transfers: &[Transfer], planned_end: Mono, round_trip: Span) -> Self {
        let streams = transfers.iter().filter_map(|transfer| match &transfer.plan {
            BulkPlan::Udp(plan) => Some(plan),
            BulkPlan::Tcp(_) => None,
        });
        // A receiver of datagrams listens on after their end.
        let settles = streams.clone().filter_map(|plan| plan.settle).max().unwrap_or_default();
        let listens = streams.map(UdpPlan::longest_drain).max().unwrap_or_default();
        let gives_up = transfers.iter().map(|it| tcp::grace_over(round_trip, it.plan.longest_drain()));
        Self::after(planned_end, round_trip, settles, gives_up.fold(listens, Span::max))
    }

    fn after(planned_end: Mono, round_trip: Span, settles: Span, gives_up: Span) -> Self {
        let usual_end = planned_end + settles + round_trip * EXCHANGES + SOON;
        let latest = planned_end + gives_up + round_trip * EXCHANGES;
        Self { usual_end, latest, moved_at: None, until: None }
    }

    /// Data have come.
    fn moved(&mut self, at: Mono) {
        self.moved_at = Some(at);
    }

    /// For how long the end is waited for at most, once that is worth saying: until the report of a
    /// receiver that gave up must have come, and then, if it has not, until this end `gives_up`.
    fn worth_saying(&mut self, now: Mono, gives_up: Mono) -> Option<Span> {
        let has_just_moved = self.moved_at.is_some_and(|at| now - at < SOON);
        if now < self.until.unwrap_or(self.usual_end) || has_just_moved {
            return None;
        }
        let until = if self.until.is_none() { self.latest } else { gives_up };
        self.until = Some(until.max(now));
        Some(until - now).filter(|left| *left > Span::ZERO)
    }
}

/// Round trips from the planned end to the report: the sender began one later than this clock, and
/// the report comes another one later.
const EXCHANGES: i64 = 2;
/// Threads of a busy host end no later.
const SOON: Span = Span::from_millis(400);

/// A busy host does not let a program wait for a core for so long.
const HELD_UP: Span = Span::from_millis(1500);
/// A queue that takes less to drain is no reason to speak of it.
const WORTH_SAYING: Span = Span::from_secs(1);

/// How long the listener sleeps at most; the data threads do not depend on it.
const LISTEN: Span = Span::from_millis(20);

struct Transfer {
    test: u32,
    plan: BulkPlan,
    affinity: Vec<usize>,
    attached: Option<Attached>,
    local: Option<JoinHandle<Local>>,
    ticks: (Sender<Tick>, Receiver<Tick>),
    /// Raised for this transfer alone: by the user's stop, or because the responder is gone.
    stop: StopFlag,
    ended: Ended,
    remote_streams: Vec<StreamEnd>,
    /// Of a histogram that was asked for.
    remote_bins: Vec<(u64, u64)>,
    remote_arrivals: Vec<LoggedArrival>,
    remote: Option<EndReport>,
    before: Before,
    /// Payload that either end is known to have received.
    received: ByteCount,
    /// The user wants no more of it.
    is_asked_to_stop: bool,
    /// Of a stream whose rate nobody typed.
    crowding: Option<Crowding>,
    /// It overfills its path.
    crowds: bool,
    /// What the responder has said against the session as a whole.
    objection: Option<String>,
    /// Segments of the control connection that had been sent again when the stream began, if the
    /// system tells.
    retransmits: Option<u64>,
}

impl Transfer {
    fn prepare(
        session: &mut Session,
        options: &SocketOptions,
        job: Job,
        on_tick: &mut dyn FnMut(Direction, Tick),
    ) -> Result<Self, Cause> {
        let (plan, options) = match &job.plan {
            BulkPlan::Tcp(plan) => (TestPlan::Tcp(plan.clone()), options_of_tcp(options, plan)),
            BulkPlan::Udp(plan) => (TestPlan::Udp(plan.clone()), options_of_udp(options, plan)),
        };
        let retransmits = session.link.tcp_info().map(|info| info.retransmits);
        let mut repeats = 0;
        let direction = job.plan.direction();
        let test = session.open_test(plan, &mut |at_most| on_tick(direction, Tick::Unanswered(at_most)))?;
        let attached = match &job.plan {
            BulkPlan::Tcp(plan) => {
                Attached::Streams(attach::streams(session, &options, test, plan.streams, Role::Data)?)
            }
            BulkPlan::Udp(_) => {
                let flow = attach::flow(session, &options, test, &mut |at_most| {
                    on_tick(direction, Tick::AsksAgain(at_most));
                })?;
                repeats = flow.repeats;
                Attached::Flow { socket: flow.socket, number: flow.number }
            }
        };
        session.await_ready(test, &mut |at_most| on_tick(direction, Tick::Unanswered(at_most)))?;
        let info = session.link.tcp_info();
        let now = info.as_ref().map(|info| info.retransmits);
        let clearing = since(now, retransmits).map(|again| again + repeats);
        let ended = Ended {
            exchanges: Exchanges { clearing, fetching: None },
            path_mtu: info.map(|info| info.path_mtu).filter(|mtu| *mtu > 0),
            ..Ended::default()
        };
        Ok(Self {
            test,
            plan: job.plan,
            affinity: job.affinity,
            attached: Some(attached),
            local: None,
            ticks: channel(),
            stop: StopFlag::new(),
            ended,
            remote_streams: Vec::new(),
            remote_bins: Vec::new(),
            remote_arrivals: Vec::new(),
            remote: None,
            before: Before::now(session),
            received: ByteCount(0),
            is_asked_to_stop: false,
            crowding: job.gives_way.then(|| Crowding::over(session.round_trip())),
            crowds: false,
            objection: None,
            retransmits: now,
        })
    }

    /// A receiver must be there before its sender begins, whichever end it is.
    fn start(
        &mut self,
        session: &mut Session,
        on_tick: &mut dyn FnMut(Direction, Tick),
    ) -> Result<(), Cause> {
        let direction = self.plan.direction();
        if direction == Direction::Reverse {
            self.spawn()?;
            session.link.send(&ClientMessage::Start { test: self.test })
        } else {
            let mut waits = |at_most| on_tick(direction, Tick::Unanswered(at_most));
            session.start_test(self.test, &mut waits)?;
            self.spawn()
        }
    }

    fn spawn(&mut self) -> Result<(), Cause> {
        let Some(attached) = self.attached.take() else { return Ok(()) };
        let (plan, affinity, stop, tell) =
            (self.plan.clone(), self.affinity.clone(), self.stop.clone(), self.ticks.0.clone());
        let work = move || move_data(attached, &plan, &affinity, &stop, &tell);
        let thread = std::thread::Builder::new().name("bulk".into()).spawn(work);
        self.local = Some(thread.map_err(|e| Cause::System(e.to_string()))?);
        Ok(())
    }

    /// Whether it has to end because the path has come to carry far less, and has not been ended.
    fn is_to_give_way(&self) -> bool {
        self.crowds && !self.ended.gave_way && !self.is_asked_to_stop && self.remote.is_none()
    }

    fn local_is_over(&self) -> bool {
        self.local.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether there was a sign of the other end in it: data that came, or were acknowledged.
    fn collect_local(&mut self, on_tick: &mut dyn FnMut(Direction, Tick)) -> bool {
        let mut is_alive = false;
        while let Ok(tick) = self.ticks.1.try_recv() {
            is_alive |= match &tick {
                Tick::Receiver(tick) => tick.bytes.0 > 0,
                Tick::Sender(tick) => tick.acked.is_some_and(|acked| acked.0 > 0),
                Tick::Begun(_)
                | Tick::Draining(_)
                | Tick::Unheard(_)
                | Tick::AsksAgain(_)
                | Tick::Unanswered(_) => false,
            };
            self.keep(tick, on_tick);
        }
        is_alive
    }

    fn keep(&mut self, tick: Tick, on_tick: &mut dyn FnMut(Direction, Tick)) {
        match &tick {
            Tick::Receiver(tick) => {
                self.received += tick.bytes;
                self.crowds |= self.crowding.as_mut().is_some_and(|crowding| crowding.observe(tick));
                self.ended.receiver_ticks.push(*tick);
            }
            Tick::Sender(tick) => self.ended.sender_ticks.push(*tick),
            Tick::Begun(_)
            | Tick::Draining(_)
            | Tick::Unheard(_)
            | Tick::AsksAgain(_)
            | Tick::Unanswered(_) => {}
        }
        on_tick(self.plan.direction(), tick);
    }

    fn take(
        &mut self,
        message: &ServerMessage,
        on_tick: &mut dyn FnMut(Direction, Tick),
    ) -> Result<(), Cause> {
        match message {
            ServerMessage::ReceiverTicks { ticks, .. } => {
                for tick in ticks {
                    self.keep(Tick::Receiver(*tick), on_tick);
                }
            }
            ServerMessage::SenderTicks { ticks, .. } => {
                for tick in ticks {
                    self.keep(Tick::Sender(*tick), on_tick);
                }
            }
            ServerMessage::Bins { bins, .. } => {
                let room = (HistogramShape::MOST_BINS as usize).saturating_sub(self.remote_bins.len());
                self.remote_bins.extend(bins.iter().take(room));
            }
            ServerMessage::Arrivals { arrivals, .. } => {
                let room = MAX_LOGGED.saturating_sub(self.remote_arrivals.len());
                self.remote_arrivals.extend(arrivals.iter().take(room));
            }
            ServerMessage::StreamEnds { streams, .. } => self.keep_streams(streams),
            ServerMessage::StreamSamples { stream, samples, .. } => self.keep_samples(*stream, samples),
            ServerMessage::Finished { outcome, report, .. } => {
                self.ended.outcome = *outcome;
                self.remote = Some(report.clone());
                if *outcome != Outcome::Complete {
                    self.stop.raise();
                }
            }
            ServerMessage::Error { code, message, test, .. } => {
                return Err(Cause::refused(*code, message.clone(), *test));
            }
            _ => {}
        }
        Ok(())
    }

    /// No more streams than were opened, whatever the responder says.
    fn keep_streams(&mut self, streams: &[StreamEnd]) {
        let BulkPlan::Tcp(plan) = &self.plan else { return };
        let room = usize::from(plan.streams).saturating_sub(self.remote_streams.len());
        self.remote_streams.extend(streams.iter().take(room).cloned());
    }

    fn keep_samples(&mut self, stream: u16, samples: &[StreamSample]) {
        if let Some(end) = self.remote_streams.iter_mut().find(|end| end.index == stream) {
            let room = MAX_SAMPLES.saturating_sub(end.samples.len());
            end.samples.extend(samples.iter().take(room));
        }
    }

    /// Joins the local thread and puts each end's report in its place. `failed` says why the whole
    /// could not go on, if it could not.
    fn finish(mut self, failed: Option<&str>, on_tick: &mut dyn FnMut(Direction, Tick)) -> Ended {
        if failed.is_some() {
            self.stop.raise();
            self.ended.outcome = Outcome::Failed;
        }
        let local = self.local.take().and_then(|thread| thread.join().ok());
        self.collect_local(on_tick);
        let told = self.ended.outcome;
        if let Some(mut local) = local {
            let own = local.outcome();
            self.ended.outcome = if self.ended.gave_way { Outcome::Failed } else { own.max(told) };
            // It was stopped because something had failed.
            if self.ended.outcome == Outcome::Failed && own == Outcome::Interrupted {
                local.set_outcome(Outcome::Failed);
            }
            local.keep_in(&mut self.ended, &self.before);
        }
        let early = self.why_early(failed);
        let remote = self.remote.take().filter(|report| !stands_for_nobody(report));
        let reported = remote.is_some();
        match remote {
            Some(EndReport::TcpSender(end)) => {
                self.ended.tcp_sender = Some(TcpEnd { streams: self.remote_streams, ..end });
            }
            Some(EndReport::TcpReceiver(end)) => {
                self.ended.tcp_receiver = Some(TcpEnd { streams: self.remote_streams, ..end });
            }
            Some(EndReport::UdpSender(end)) => self.ended.udp_sender = Some(end),
            Some(EndReport::UdpReceiver(mut end)) => {
                if let Some(bins) = &mut end.bins {
                    bins.bins = std::mem::take(&mut self.remote_bins);
                }
                end.arrivals = std::mem::take(&mut self.remote_arrivals);
                self.ended.udp_receiver = Some(end);
            }
            Some(EndReport::Echo { .. } | EndReport::Trains { .. }) | None => self.piece_together(),
        }
        self.ended.outcome =
            if self.ended.gave_way { Outcome::Failed } else { outcome_of(&self.ended, reported) };
        self.ended.early = early.filter(|_| self.ended.outcome != Outcome::Complete);
        self.ended
    }

    /// Why it ended before its time.
    fn why_early(&self, failed: Option<&str>) -> Option<String> {
        if self.ended.outcome == Outcome::Complete {
            return None;
        }
        let ends = [&self.ended.tcp_sender, &self.ended.tcp_receiver];
        let local = ends.into_iter().flatten().flat_map(|end| &end.streams);
        let mut streams = local.chain(&self.remote_streams);
        let broken = streams
            .find_map(|stream| Some(format!("stream {}: {}", stream.index + 1, stream.error.as_ref()?)));
        let stopped = self.is_asked_to_stop.then(|| "stopped by the user".to_owned());
        let by_the_other_end = || {
            let said = self.ended.outcome == Outcome::Interrupted && self.remote.is_some();
            said.then(|| "the responder ended it".to_owned())
        };
        let gave_way = self.ended.gave_way.then(|| GAVE_WAY.to_owned());
        failed
            .map(str::to_owned)
            .or(gave_way)
            .or(stopped)
            .or_else(|| self.objection.clone())
            .or_else(|| self.vain())
            .or(broken)
            .or_else(by_the_other_end)
    }

    /// A sender that ended as planned drops what nobody acknowledged, and its receiver sees a reset
    /// that no other party caused.
    fn vain(&self) -> Option<String> {
        let remote = |is: fn(&EndReport) -> Option<&TcpEnd>| self.remote.as_ref().and_then(is);
        let sender = self.ended.tcp_sender.as_ref().or(remote(|end| match end {
            EndReport::TcpSender(end) => Some(end),
            _ => None,
        }))?;
        let receiver = self.ended.tcp_receiver.as_ref().or(remote(|end| match end {
            EndReport::TcpReceiver(end) => Some(end),
            _ => None,
        }))?;
        let is_vain = sender.outcome == Outcome::Complete && sender.bytes.0 > 0 && receiver.bytes.0 == 0;
        is_vain.then(|| format!("nothing of what was sent arrived in {}", sender.elapsed))
    }

    /// A receiving responder that died has told its slices up to then; they stand in for its
    /// report.
    fn piece_together(&mut self) {
        let ticks = &self.ended.receiver_ticks;
        let Some(last) = ticks.last().filter(|_| self.plan.direction() == Direction::Forward) else { return };
        let (outcome, elapsed) = (Outcome::Failed, last.end);
        let bytes = ticks.iter().map(|tick| tick.bytes).sum();
        match self.plan {
            BulkPlan::Tcp(_) => {
                self.ended.tcp_receiver = Some(TcpEnd { outcome, elapsed, bytes, ..TcpEnd::default() });
            }
            BulkPlan::Udp(_) => {
                let received: u64 = ticks.iter().map(|tick| tick.packets).sum();
                let missing: i64 = ticks.iter().map(|tick| tick.lost).sum();
                // What was sent after the last slice has a fate that nobody can tell.
                let highest = received.saturating_add_signed(missing.max(0));
                let observed = Some(highest);
                self.ended.udp_receiver = Some(UdpReceiverEnd {
                    outcome,
                    elapsed,
                    bytes,
                    received,
                    highest,
                    observed,
                    ..UdpReceiverEnd::default()
                });
            }
        }
    }
}

/// By how much a count has grown; unknown where it was not told both times.
fn since(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(before?))
}

/// What a responder sends in place of a report that its thread did not live to give: nothing moved,
/// and nobody measured its CPU. Its zeros are no counts.
fn stands_for_nobody(report: &EndReport) -> bool {
    match report {
        EndReport::TcpSender(end) | EndReport::TcpReceiver(end) => end.cpu.is_none() && end.bytes.0 == 0,
        EndReport::UdpSender(end) => end.cpu.is_none() && end.sent == 0 && end.not_sent == 0,
        EndReport::UdpReceiver(end) => end.cpu.is_none() && end.received == 0,
        EndReport::Echo { .. } | EndReport::Trains { .. } => false,
    }
}

/// A stream whose sender broke off has failed, whatever its receiver made of it. One that was sent
/// to its end and listened for to the end is complete, even if nothing of it arrived: that is loss.
fn outcome_of(ended: &Ended, reported: bool) -> Outcome {
    let (Some(sender), Some(receiver)) = (&ended.udp_sender, &ended.udp_receiver) else {
        return ended.outcome;
    };
    match (sender.outcome, ended.outcome) {
        (Outcome::Failed, _) => Outcome::Failed,
        (sent, Outcome::Failed) if reported && receiver.observed.is_none() => sent,
        (_, ended) => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_that_went_silent_is_not_waited_for_without_a_note() {
        let at = |ms: i64| Mono(10_000_000_000) + Span::from_millis(ms);
        let round_trip = Span::from_millis(20);
        // The last data came before the planned end.
        let drain = TcpPlan::longest_drain_after(Span::from_secs(1));
        let of_tcp =
            |round_trip| Unheard::after(at(0), round_trip, Span::ZERO, tcp::grace_over(round_trip, drain));
        let mut silent = of_tcp(round_trip);
        silent.moved(at(-1500));
        assert_eq!(silent.worth_saying(at(430), at(30_000)), None, "the report may still be on its way");
        assert_eq!(silent.worth_saying(at(440), at(30_000)), Some(Span::from_millis(2600)));
        assert_eq!(silent.worth_saying(at(460), at(30_000)), None, "said once");
        assert_eq!(
            silent.worth_saying(at(3040), at(8000)),
            Some(Span::from_millis(4960)),
            "longer than was said"
        );
        assert_eq!(silent.worth_saying(at(7990), at(8000)), None);
        // While data come, the queue drains, and that is said elsewhere.
        let mut draining = of_tcp(round_trip);
        draining.moved(at(400));
        assert_eq!(draining.worth_saying(at(500), at(30_000)), None);
        assert_eq!(draining.worth_saying(at(900), at(30_000)), Some(Span::from_millis(2140)));
        // A round trip of two seconds has a longer grace.
        let mut far = of_tcp(Span::from_secs(2));
        assert_eq!(far.worth_saying(at(4_300), at(30_000)), None);
        assert_eq!(far.worth_saying(at(4_400), at(30_000)), Some(Span::from_millis(5_600)));
        // A stream of datagrams is listened to for a while after its end.
        let mut datagrams = Unheard::after(at(0), round_trip, Span::from_millis(130), Span::from_secs(2));
        assert_eq!(datagrams.worth_saying(at(560), at(30_000)), None);
        assert_eq!(datagrams.worth_saying(at(570), at(30_000)), Some(Span::from_millis(1_470)));
    }

    #[test]
    fn a_report_in_place_of_one_that_nobody_gave_is_none_and_its_zeros_are_no_counts() {
        let cpu = Some(netaware_record::CpuUse { cores: 2, ..Default::default() });
        let failed = Outcome::Failed;
        let udp = |cpu, received| {
            EndReport::UdpReceiver(UdpReceiverEnd {
                outcome: failed,
                cpu,
                received,
                ..UdpReceiverEnd::default()
            })
        };
        let sent =
            |cpu| EndReport::UdpSender(UdpSenderEnd { outcome: failed, cpu, ..UdpSenderEnd::default() });
        let tcp = |cpu| EndReport::TcpReceiver(TcpEnd { outcome: failed, cpu, ..TcpEnd::default() });
        for (report, want) in
            [(udp(None, 0), true), (sent(None), true), (tcp(None), true), (udp(None, 3), false)]
        {
            assert_eq!(stands_for_nobody(&report), want, "{report:?}");
        }
        for report in [udp(cpu, 0), sent(cpu), tcp(cpu)] {
            assert!(!stands_for_nobody(&report), "of a stream of which nothing came: {report:?}");
        }
    }

    #[test]
    fn a_transfer_that_was_sent_to_its_end_does_not_wait_for_a_goodbye() {
        use Outcome::{Complete, Failed, Interrupted};
        let tcp = |outcome, sender: Option<Outcome>| Ended {
            tcp_sender: sender.map(|outcome| TcpEnd { outcome, ..TcpEnd::default() }),
            outcome,
            ..Ended::default()
        };
        // The path has swallowed it.
        assert!(!tcp(Failed, Some(Complete)).may_have_been_cut());
        assert!(!tcp(Complete, Some(Complete)).may_have_been_cut());
        // The responder is stopping, or nothing is known of its end.
        assert!(tcp(Interrupted, Some(Interrupted)).may_have_been_cut());
        assert!(tcp(Failed, Some(Interrupted)).may_have_been_cut());
        assert!(tcp(Failed, None).may_have_been_cut());
        let udp = Ended { udp_sender: Some(UdpSenderEnd::default()), ..tcp(Interrupted, None) };
        assert!(!udp.may_have_been_cut());
    }

    #[test]
    fn a_stream_whose_sender_broke_off_has_failed_at_both_levels() {
        use Outcome::{Complete, Failed, Interrupted};
        let rows = [
            // sender, other end, observed, reported, want
            (Complete, Complete, None, true, Complete),
            (Failed, Complete, None, true, Failed),
            // Nothing arrived of a stream that was sent and listened for: all of it was lost.
            (Complete, Failed, None, true, Complete),
            (Complete, Failed, Some(7), true, Failed),
            (Complete, Failed, None, false, Failed),
            (Interrupted, Failed, None, true, Interrupted),
            (Complete, Interrupted, Some(7), true, Interrupted),
        ];
        for (n, (sent, other, observed, reported, want)) in rows.into_iter().enumerate() {
            let ended = Ended {
                udp_sender: Some(UdpSenderEnd { outcome: sent, ..UdpSenderEnd::default() }),
                udp_receiver: Some(UdpReceiverEnd { observed, ..UdpReceiverEnd::default() }),
                outcome: other,
                ..Ended::default()
            };
            assert_eq!(outcome_of(&ended, reported), want, "row {n}");
        }
        assert_eq!(outcome_of(&Ended { outcome: Failed, ..Ended::default() }, true), Failed);
    }
}
