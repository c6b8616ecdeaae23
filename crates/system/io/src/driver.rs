//! Runs an engine over a socket in real time, and keeps the three promises of its contract.
//!
//! Sends leave on time by sleeping in the receive call until a measured margin before they are due
//! and spinning the rest, looking for arrivals meanwhile. A send that left late is still sent, and
//! told: the plan (`due`) and what happened (`tx`) stay apart. Single sends that are late are
//! caught up with one by one, at four fifths of their distance. With kernel stamps `Sent` is
//! delivered when the stamp has come, normally with the next wake-up and before the answer that it
//! belongs to. A stamp that does not come is replaced by the application's reading before the call,
//! which leans early by the way through the kernel (about 1 us), so that a round trip from it reads
//! long, never short.

mod awake;
mod catching_up;
mod planned;
mod sent;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::io;

pub use awake::AnswerWait;
use awake::Awake;
use catching_up::CatchingUp;
use netaware_engine::{Engine, Input, NotSent, Output, Tag};
use netaware_record::SendRefusal;
use netaware_units::{ByteCount, Mono, Span, Stamp};
use planned::{Planned, Send};
use sent::Unconfirmed;

use crate::clock;
use crate::pacer::{margin, precise_sleep};
use crate::probe_socket::{Arrival, ProbeSocket, is_refusal, is_too_big};
use crate::stop::StopFlag;
use crate::udp_stream::refusals::Answers;

/// How a run went, apart from what the engine says: the health of the instrument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drive {
    /// Datagrams that left.
    pub sends: u64,
    /// Datagrams that never left.
    pub not_sent: u64,
    /// Why the last of them did not.
    pub why_not_sent: Option<NotSent>,
    /// Sends handed to the system more than 50 us after they were due.
    pub late_sends: u64,
    /// The latest of all.
    pub worst_lateness: Span,
    /// Datagrams that came.
    pub arrivals: u64,
    /// Stamps of the application given where the kernel's were wanted, for arrivals and departures.
    pub stamp_fallbacks: u64,
    /// Datagrams that the socket's buffer dropped.
    pub drops: u64,
    /// ICMP answers to our datagrams: port, host or network unreachable, too big.
    pub refusals: u64,
    /// The last of them (errno).
    pub last_refusal: Option<i32>,
    /// The same ones, error by error, with their times since the run began.
    pub rejections: Vec<SendRefusal>,
    /// Whether the engine was cut off because it had not wound down within 2 s of the stop.
    pub cut_off: bool,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The socket is no longer usable.
    #[error("receiving on {address}: {source}")]
    Receive {
        /// Where the socket is bound.
        address: String,
        /// What the system answered.
        source: io::Error,
    },
}

/// Drives the engine until it is done, or until 2 s after the stop flag was raised. `waiting` says
/// how to spend the time until an answer comes.
///
/// `on_event` is called between the engine's steps: what it does there delays the measurement. ICMP
/// answers do not end the run; they are counted, and their datagrams are lost.
pub fn run<E: Engine>(
    engine: &mut E,
    socket: &ProbeSocket,
    waiting: AnswerWait,
    stop: &StopFlag,
    on_event: &mut dyn FnMut(E::Event),
) -> Result<Drive, DriveError> {
    let _precise = precise_sleep();
    let mut run = Run::new(engine, socket, waiting, on_event);
    run.feed(clock::now(), Input::Wake);
    while !run.done {
        run.obey(stop);
        if run.drive.cut_off {
            break;
        }
        run.step()?;
    }
    Ok(run.finish())
}

struct Run<'a, E: Engine> {
    engine: &'a mut E,
    socket: &'a ProbeSocket,
    on_event: &'a mut dyn FnMut(E::Event),
    planned: Planned,
    catching_up: CatchingUp,
    unconfirmed: Unconfirmed,
    awake: Awake,
    /// What the engine last asked to be woken at.
    wake_at: Mono,
    stopped_at: Option<Mono>,
    /// The sleep before a send ends this early.
    margin: Span,
    done: bool,
    /// Sends since arrivals were last looked for.
    sends_in_a_row: u32,
    out: Vec<u8>,
    buf: Vec<u8>,
    drops_before: u64,
    fallbacks_before: u64,
    answers: Answers,
    drive: Drive,
}

impl<'a, E: Engine> Run<'a, E> {
    fn new(
        engine: &'a mut E,
        socket: &'a ProbeSocket,
        waiting: AnswerWait,
        on_event: &'a mut dyn FnMut(E::Event),
    ) -> Self {
        // Stamps of an earlier run on this socket belong to nobody any more.
        socket.sent_stamps().for_each(drop);
        let mut answers = Answers::default();
        answers.begin(clock::now());
        Self {
            engine,
            socket,
            on_event,
            planned: Planned::default(),
            catching_up: CatchingUp::default(),
            unconfirmed: Unconfirmed::following(socket.stamped_sends()),
            awake: Awake::new(waiting),
            wake_at: Mono(u64::MAX),
            stopped_at: None,
            margin: margin(),
            done: false,
            sends_in_a_row: 0,
            out: vec![0; LARGEST],
            buf: vec![0; LARGEST],
            drops_before: socket.drops(),
            fallbacks_before: socket.stamp_fallbacks(),
            answers,
            drive: Drive::default(),
        }
    }

    /// One send, or one wait.
    fn step(&mut self) -> Result<(), DriveError> {
        let now = clock::now();
        match self.next_turn() {
            Some(turn) if turn <= now + self.margin => {
                if self.spin_until(turn)? {
                    self.carry_out();
                }
                // Sends that are always behind their plan must not keep us from hearing the peer.
                if self.sends_in_a_row >= SENDS_BEFORE_LISTENING {
                    self.look()?;
                }
            }
            next => self.listen(now, next)?,
        }
        self.wake_if_due();
        Ok(())
    }

    /// When the next send may leave: when it is due, or later where it is caught up with. A train
    /// stays together.
    fn next_turn(&self) -> Option<Mono> {
        let due = self.planned.next_due()?;
        Some(if self.planned.next_is_single() { self.catching_up.turn(due) } else { due })
    }

    /// Whether `due` was reached; false if an arrival came first, which may have changed the plan.
    fn spin_until(&mut self, due: Mono) -> Result<bool, DriveError> {
        loop {
            let now = clock::now();
            if now >= due {
                return Ok(true);
            }
            if now + ONE_LOOK < due && self.look()? {
                return Ok(false);
            }
        }
    }

    /// Takes one datagram if there is one.
    fn look(&mut self) -> Result<bool, DriveError> {
        self.sends_in_a_row = 0;
        let arrival = self.socket.try_receive(&mut self.buf);
        self.take(arrival)
    }

    /// Waits until a datagram comes or something falls due.
    fn listen(&mut self, now: Mono, next_send: Option<Mono>) -> Result<(), DriveError> {
        let mut until = self.wake_at.min(now + LOOK_AT_STOP);
        if let Some(due) = next_send {
            // The kernel allows itself a thousandth of a poll's timeout on top.
            until = until.min(due - self.margin - due.since(now) / 1000);
        }
        if let Some(expires_at) = self.unconfirmed.expires_at() {
            until = until.min(expires_at);
        }
        self.sends_in_a_row = 0;
        if self.look_until(until)? {
            return Ok(());
        }
        let arrival = self.socket.receive(&mut self.buf, Some(until));
        if !self.take(arrival)? {
            self.confirm_sent(clock::now());
        }
        self.expire_unconfirmed();
        Ok(())
    }

    /// Stays awake while an answer is to be expected soon. Whether it came.
    fn look_until(&mut self, until: Mono) -> Result<bool, DriveError> {
        let Some(awake_until) = self.awake.until() else { return Ok(false) };
        while clock::now() < awake_until.min(until) {
            if self.look()? {
                return Ok(true);
            }
            std::thread::yield_now();
        }
        Ok(false)
    }

    /// Gives an arrival to the engine, after the stamps of the sends before it.
    fn take(&mut self, arrival: io::Result<Option<Arrival>>) -> Result<bool, DriveError> {
        match arrival {
            Ok(None) => Ok(false),
            Ok(Some(arrival)) => {
                // One instant for all of it: `now` of an arrival is when the program had it,
                // whatever came first.
                let now = arrival.seen_at;
                self.drive.arrivals += 1;
                self.awake.note_arrival(now);
                self.confirm_sent(now);
                let buf = std::mem::take(&mut self.buf);
                let bytes = buf.get(..arrival.len).unwrap_or_default();
                self.feed(now, Input::Datagram { bytes, rx: arrival.rx, ttl: arrival.ttl });
                self.buf = buf;
                Ok(true)
            }
            Err(error) if is_refusal(&error) => {
                self.note_refusal(&error);
                Ok(false)
            }
            Err(source) => Err(DriveError::Receive {
                address: self.socket.local_addr().map_or_else(|_| "?".to_owned(), |at| at.to_string()),
                source,
            }),
        }
    }

    /// Sends what is due.
    fn carry_out(&mut self) {
        let Some((due, send)) = self.planned.next_due().zip(self.planned.pop()) else { return };
        let (tag, len) = match send {
            Send::Single { tag, bytes } => {
                self.out[..bytes.len()].copy_from_slice(&bytes);
                let len = bytes.len();
                self.planned.recycle(bytes);
                (tag, len)
            }
            Send::OfTrain { tag, len } => {
                let written = self.engine.fill(tag, &mut self.out[..len.min(LARGEST)]);
                (tag, written.min(len))
            }
        };
        self.sends_in_a_row += 1;
        let started_at = clock::now();
        self.note_lateness(started_at.since(due));
        if CatchingUp::is_over(due, started_at) {
            self.catching_up.stayed(due);
            self.not_sent(tag, NotSent::Overdue);
            return;
        }
        self.catching_up.tried(due, started_at);
        let (handed_at, answer) = self.send(len, started_at);
        match answer {
            Ok(()) => self.sent(tag, handed_at),
            Err(error) => self.not_sent(tag, self.why(&error)),
        }
    }

    /// Tries again at once when the error was the answer to an earlier datagram: this one has not
    /// been tried yet.
    fn send(&mut self, len: usize, started_at: Mono) -> (Mono, io::Result<()>) {
        match self.socket.send(&self.out[..len]) {
            Err(error) if is_refusal(&error) => {
                let handed_at = clock::now();
                let second = self.socket.send(&self.out[..len]);
                if is_of_an_earlier_one(&error, &second) {
                    self.note_refusal(&error);
                }
                (handed_at, second)
            }
            answer => (started_at, answer),
        }
    }

    fn sent(&mut self, tag: Tag, handed_at: Mono) {
        self.drive.sends += 1;
        self.awake.note_sent(handed_at);
        if self.socket.stamps_sends() {
            self.unconfirmed.push(tag, handed_at);
            self.feed(clock::now(), Input::Handed { tag, at: handed_at });
        } else {
            self.feed(clock::now(), Input::Sent { tag, tx: Stamp::application(handed_at) });
        }
    }

    fn not_sent(&mut self, tag: Tag, why: NotSent) {
        self.drive.not_sent += 1;
        self.drive.why_not_sent = Some(why);
        self.feed(clock::now(), Input::NotSent { tag, why });
    }

    fn why(&self, error: &io::Error) -> NotSent {
        if is_too_big(error) {
            return NotSent::TooBig(self.socket.path_mtu().map(|mtu| ByteCount(u64::from(mtu))));
        }
        #[cfg(unix)]
        let no_room = error.raw_os_error() == Some(libc::ENOBUFS);
        #[cfg(not(unix))]
        let no_room = false;
        if no_room || error.kind() == io::ErrorKind::WouldBlock {
            NotSent::QueueFull
        } else {
            NotSent::Refused(error.raw_os_error().unwrap_or(0))
        }
    }

    /// Delivers the transmit stamps that have come.
    fn confirm_sent(&mut self, now: Mono) {
        if self.unconfirmed.is_empty() {
            return;
        }
        let socket = self.socket;
        for (id, stamp) in socket.sent_stamps() {
            if let Some((tag, tx)) = self.unconfirmed.confirm(id, stamp) {
                self.feed(now, Input::Sent { tag, tx });
            }
        }
    }

    fn expire_unconfirmed(&mut self) {
        let now = clock::now();
        while let Some((tag, tx)) = self.unconfirmed.expire(now) {
            self.feed(now, Input::Sent { tag, tx });
        }
    }

    fn wake_if_due(&mut self) {
        let now = clock::now();
        if now >= self.wake_at {
            self.feed(now, Input::Wake);
        }
    }

    fn obey(&mut self, stop: &StopFlag) {
        match self.stopped_at {
            None if stop.is_raised() => {
                let now = clock::now();
                self.stopped_at = Some(now);
                self.feed(now, Input::Stop);
            }
            Some(at) if clock::now().since(at) > WIND_DOWN => self.drive.cut_off = true,
            _ => {}
        }
    }

    /// The first promise: after every `handle`, `poll` until it waits or is done.
    fn feed(&mut self, now: Mono, input: Input<'_>) {
        if self.done {
            return;
        }
        self.engine.handle(now, input);
        loop {
            match self.engine.poll(now, &mut self.out) {
                Output::Send { len, tag, due } => {
                    self.planned.single(due, tag, &self.out[..len.min(LARGEST)]);
                }
                Output::Train { count, len, gap, tag, due } => self.planned.train(due, tag, count, len, gap),
                Output::Event(event) => (self.on_event)(event),
                Output::Wait(until) => {
                    self.wake_at = until;
                    return;
                }
                Output::Done => {
                    self.done = true;
                    return;
                }
            }
        }
    }

    fn note_lateness(&mut self, late_by: Span) {
        self.drive.worst_lateness = self.drive.worst_lateness.max(late_by);
        if late_by > LATE {
            self.drive.late_sends += 1;
        }
    }

    fn note_refusal(&mut self, error: &io::Error) {
        self.drive.refusals += 1;
        self.drive.last_refusal = error.raw_os_error();
        self.answers.note(error, clock::now(), 0);
    }

    fn finish(self) -> Drive {
        let received = self.socket.stamp_fallbacks() - self.fallbacks_before;
        Drive {
            stamp_fallbacks: received + self.unconfirmed.fallbacks(),
            drops: self.socket.drops().saturating_sub(self.drops_before),
            rejections: self.answers.finish(),
            ..self.drive
        }
    }
}

/// Whether an error was the ICMP answer to an earlier datagram, by what became of a second try at
/// once: the same error again is this host's own about this datagram, such as that it is too long
/// or that a firewall of this host drops it.
fn is_of_an_earlier_one(first: &io::Error, second: &io::Result<()>) -> bool {
    second.as_ref().err().is_none_or(|second| second.raw_os_error() != first.raw_os_error())
}

/// No UDP datagram is longer.
const LARGEST: usize = 65_535;
/// No look for arrivals so shortly before a send is due: handing one to the engine may take as
/// long.
const ONE_LOOK: Span = Span::from_micros(3);
/// A send is called late beyond this.
const LATE: Span = Span::from_micros(50);
/// The stop flag is looked at this often.
const LOOK_AT_STOP: Span = Span::from_millis(50);
/// An engine that was told to stop has so long.
const WIND_DOWN: Span = Span::from_secs(2);
/// As many late sends go out back to back, so that a train without gaps stays together.
const SENDS_BEFORE_LISTENING: u32 = 64;
