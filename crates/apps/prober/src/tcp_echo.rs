//! Request-responses over one TCP connection.
//!
//! TCP repairs loss by itself, so there is none to see: a lost segment shows as a round trip longer
//! by a retransmission time-out. A connection that stays silent for a patience that follows the
//! path ([`netaware_stats::patience`]) while an answer is owed has lost a request to us, and in a
//! closed loop that ends the run. What is still owed is read off before the next one, so that no
//! answer is taken for another's.
//!
//! One request at a time needs one thread, which is quickest. With more of them outstanding, or due
//! at times of their own, writing and reading are apart: a request leaves when it is due, however
//! long earlier answers take.

mod duplex;
mod lockstep;
mod message;

use std::net::TcpStream;

use netaware_host::CpuSnapshot;
use netaware_io::clock;
use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_probe::delay_report::EchoLog;
use netaware_probe::{EchoCounts, Exchange, Pacing};
use netaware_stats::ceasing::Ceasing;
use netaware_stats::patience::Patience;
use netaware_units::{ClockSource, Mono, Span, Stamp};
use netaware_wire::control::TestPlan;
use netaware_wire::preface::Role;

use crate::attach;
use crate::echo::{Afterwards, EchoOrder, EchoRun, EchoSizes, Unanswered};
use crate::request::Transport;
use crate::session::Session;
use crate::stage::Cause;
use message::{Broken, Messages};

/// A connection to the responder's reflector.
pub(crate) struct TcpEcho {
    stream: TcpStream,
    sizes: EchoSizes,
    /// What the set-up of the session took: the first round trip that is known.
    rtt: Option<Span>,
    /// Requests written on this connection: their numbers go on from run to run.
    asked: u64,
    /// Bytes of answers that a run gave up on and that may still come; `None` when a request was
    /// cut off half-way, after which nobody knows what the next byte means.
    owed: Option<u64>,
    test: u32,
    /// Until when the responder answers.
    pub(crate) until: Mono,
}

/// A run that did not come to its end, and what was measured until then.
#[derive(Debug)]
pub(crate) struct Broke {
    pub(crate) cause: Cause,
    /// `None` where not one request was answered.
    pub(crate) run: Option<Box<EchoRun>>,
}

impl From<Cause> for Broke {
    fn from(cause: Cause) -> Self {
        Self { cause, run: None }
    }
}

/// A send that is this much behind its plan counts as late.
const LATE: Span = Span::from_micros(50);

impl TcpEcho {
    /// Opens an echo test and attaches a connection to it.
    pub(crate) fn open(
        session: &mut Session,
        options: &SocketOptions,
        duration: Span,
        sizes: EchoSizes,
    ) -> Result<Self, Cause> {
        let (length, response) = (sizes.request, sizes.tcp_response());
        let test = session.open_test(TestPlan::TcpEcho { length, response, duration }, &mut |_| {})?;
        let until = clock::now() + duration;
        let options = SocketOptions { nodelay: true, ..options.clone() };
        let mut streams = attach::streams(session, &options, test, 1, Role::Echo)?;
        session.await_ready(test, &mut |_| {})?;
        session.start_test(test, &mut |_| {})?;
        let stream = streams.pop().ok_or_else(|| Cause::Protocol("no connection attached".into()))?;
        Ok(Self { stream, sizes, rtt: session.longest_rtt(), asked: 0, owed: Some(0), test, until })
    }

    /// Ends the echo test at the responder.
    pub(crate) fn close(self, session: &mut Session) -> Result<(), Cause> {
        session.stop_test(self.test)
    }

    /// Sends requests as the order says and waits for their answers.
    pub(crate) fn run(&mut self, order: &EchoOrder, stop: &StopFlag) -> Result<EchoRun, Broke> {
        let system = |e: std::io::Error| Cause::System(format!("TCP echo: {e}"));
        order.pacing.check(order.patience, order.count).map_err(|e| Cause::System(e.to_string()))?;
        message::set_ticks(&self.stream, order.patience).map_err(system)?;
        let patience = Patience::of(order.patience, order.waiting).knowing(self.rtt);
        self.read_off(patience.span(), stop)?;
        let cpu_before = CpuSnapshot::take();
        let course = Course {
            stream: &self.stream,
            sizes: self.sizes,
            first: self.asked,
            order: *order,
            patience,
            start: clock::now(),
            stop,
        };
        let mut ended = match order.pacing {
            Pacing::PingPong => lockstep::run(&course),
            Pacing::Pipeline(_) | Pacing::Even(_) | Pacing::Poisson { .. } => duplex::run(&course),
        };
        let failed = ended.failed.take();
        let (start, ceasing) = (course.start, ended.ceasing(&course));
        self.asked += ended.counts.asked;
        self.owed = ended.owed;
        let mut run = EchoRun {
            order: EchoOrder { patience: ended.patience.span(), ..*order },
            transport: Transport::Tcp,
            round: ended
                .log
                .finish(ended.counts)
                .lasting(ended.last_verdict_at.since(start))
                .answered_within(ended.came_at.map_or(Span::ZERO, |at| at.since(start))),
            late_sends: ended.late_sends,
            worst_lateness: ended.worst_lateness,
            why_not_sent: None,
            rejections: Vec::new(),
            stamp_fallbacks: None,
            began_at: start,
            unanswered: ended.late,
            afterwards: Afterwards::default(),
            lost_at_end: ended.lost_at_end,
            ceasing,
            gave_up: ended.gave_up,
            host_drops: None,
            cpu: CpuSnapshot::take().use_since(&cpu_before, clock::now() - start),
        };
        let Some(why) = failed else { return Ok(run) };
        // The failure says why nothing more came; what became of the last requests nobody observed.
        run.forget_its_end();
        run.ceasing = Ceasing::default();
        Err(Broke { cause: system(why), run: (run.answers() > 0).then(|| Box::new(run)) })
    }

    /// Waits for what an earlier run gave up on.
    fn read_off(&mut self, patience: Span, stop: &StopFlag) -> Result<(), Cause> {
        let system = |why: String| Cause::System(format!("TCP echo: {why}"));
        let owed = self.owed.ok_or_else(|| system("a request could not be written to its end".into()))?;
        let silent = message::silence(patience, stop);
        let skipped = Messages::new(&self.stream, self.sizes.response).skip(owed, &silent);
        skipped.map_err(|broken| match broken {
            Broken::Silent => Cause::Unanswered(format!(
                "the connection of the requests stands still: answers to earlier ones had not come {patience} later"
            )),
            Broken::Stopped => Cause::Stopped,
            Broken::Failed(e) => system(e.to_string()),
        })?;
        self.owed = Some(0);
        Ok(())
    }
}

/// One run over the connection.
struct Course<'a> {
    stream: &'a TcpStream,
    sizes: EchoSizes,
    /// Number on the connection of the run's first request.
    first: u64,
    order: EchoOrder,
    /// At the start of the run.
    patience: Patience,
    start: Mono,
    stop: &'a StopFlag,
}

impl Course<'_> {
    /// Whether a request that is due then belongs to the run.
    fn is_over(&self, asked: u64, due: Mono) -> bool {
        let enough = self.order.count.is_some_and(|count| asked >= count);
        let ends_at = self.order.time.map(|time| self.start + time);
        enough || self.stop.is_raised() || ends_at.is_some_and(|ends_at| due.max(clock::now()) >= ends_at)
    }
}

/// What came of it.
struct Ended {
    log: EchoLog,
    counts: EchoCounts,
    late_sends: u64,
    worst_lateness: Span,
    last_verdict_at: Mono,
    /// When the last answer came.
    came_at: Option<Mono>,
    /// Lost requests after the last answer.
    lost_at_end: u64,
    /// When the first request left that has no answer, where the run ended before one came.
    silent_from: Option<Mono>,
    /// Requests that count as lost because their answers came too late. TCP would have sent others
    /// again: none of those is lost by a responder's standstill.
    late: Vec<Unanswered>,
    /// The connection was silent for longer than an answer is waited for, which ended the run.
    gave_up: bool,
    /// As far as the path is known by now.
    patience: Patience,
    owed: Option<u64>,
    /// The system's answer that ended the run.
    failed: Option<std::io::Error>,
}

impl Ended {
    fn new(course: &Course<'_>) -> Self {
        Self {
            log: EchoLog::default(),
            counts: EchoCounts::default(),
            late_sends: 0,
            worst_lateness: Span::ZERO,
            last_verdict_at: course.start,
            came_at: None,
            lost_at_end: 0,
            silent_from: None,
            late: Vec::new(),
            gave_up: false,
            patience: course.patience,
            owed: Some(0),
            failed: None,
        }
    }

    /// The answer to a request has been read to its end.
    fn answered(&mut self, asked: Asked, at: Mono, is_intact: bool) {
        self.last_verdict_at = at;
        self.came(at);
        self.patience.observe(at.since(asked.sent_at));
        if is_intact {
            self.counts.received += 1;
            self.log.push(&asked.answered_at(at));
        } else {
            self.counts.ignored.altered += 1;
            self.counts.lost += 1;
        }
    }

    /// The answer to a request came while the program did not run, or may have: nobody saw when.
    fn came_unseen(&mut self, at: Mono) {
        self.last_verdict_at = at;
        self.came(at);
        self.counts.abandoned += 1;
    }

    /// The answer to a request came when it counted as lost.
    fn came_late(&mut self, asked: Asked, at: Mono) {
        self.lost();
        self.came(at);
        self.counts.late += 1;
        self.late.push(Unanswered { number: asked.seq, left_at: asked.sent_at, came_late: true });
        self.patience.observe(at.since(asked.sent_at));
    }

    /// An answer came, in time or late.
    fn came(&mut self, at: Mono) {
        self.came_at = Some(at);
        self.lost_at_end = 0;
    }

    /// The answer to a request did not come, and no later one will.
    fn broke(&mut self, asked_at: Mono, why: Broken) {
        self.silent_from = Some(asked_at);
        match why {
            Broken::Silent => {
                self.gave_up = true;
                self.lost();
            }
            Broken::Stopped => self.counts.abandoned += 1,
            Broken::Failed(error) => {
                self.counts.abandoned += 1;
                self.failed = Some(error);
            }
        }
    }

    /// Whether answers ceased before the end of the run.
    fn ceasing(&self, course: &Course<'_>) -> Ceasing {
        let mut ceasing = Ceasing::beginning(course.start);
        self.came_at.into_iter().for_each(|at| ceasing.came(at));
        let silent = self.lost_at_end + self.counts.abandoned;
        let Some(from) = self.silent_from.filter(|_| silent > 0) else { return ceasing };
        let later = i64::try_from(silent - 1).unwrap_or(i64::MAX);
        ceasing.unanswered(from);
        // Those that left one after the other without waiting for answers did so at their spacing.
        let last = from + course.order.shown_spacing() * later;
        (1..silent).for_each(|_| ceasing.unanswered(last));
        ceasing
    }

    fn lost(&mut self) {
        self.counts.lost += 1;
        self.lost_at_end += 1;
        self.last_verdict_at = clock::now();
    }
}

/// A request on its way.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// From zero in each run.
    seq: u64,
    due: Mono,
    /// Just before its first byte was handed to the system.
    sent_at: Mono,
}

impl Asked {
    fn answered_at(self, at: Mono) -> Exchange {
        Exchange {
            seq: self.seq,
            due: self.due,
            tx: Stamp::application(self.sent_at),
            rx: Stamp::application(at),
            tx_application: self.sent_at,
            rx_application: at,
            responder: None,
            responder_told: false,
            responder_clock: ClockSource::Application,
            ttl_forward: None,
            ttl_reverse: None,
        }
    }
}

#[cfg(test)]
mod tests;
