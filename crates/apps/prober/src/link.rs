//! The control connection: one TCP connection, a reader thread that also keeps it alive, an inbox.
//!
//! A responder that says nothing for too long is gone ([`silence`] says how long that is). The
//! reader therefore wakes four times a second to send pings and to look at the silence; that is all
//! the traffic a running test sees from it.

mod silence;
pub(crate) mod standstill;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netaware_io::clock;
use netaware_io::options;
use netaware_io::stop::StopFlag;
use netaware_io::tcp_info::TcpInfo;
use netaware_io::timeout::is_timeout;
use netaware_units::{Mono, Span};
use netaware_wire::control::{ClientMessage, ErrorCode, LEASE_WAS_IDLE, PING_EVERY, ServerMessage};
use netaware_wire::frame;
use netaware_wire::preface::{PREFACE_LEN, Preface, PrefaceError, Role};
use netaware_wire::stranger;

use crate::stage::{Cause, Failure};
use silence::Silence;
use standstill::Standstills;

/// What the reader found.
type Inbox = Receiver<Result<ServerMessage, Cause>>;

/// A control connection after both prefaces.
pub(crate) struct Link {
    peer: SocketAddr,
    writer: Arc<Mutex<TcpStream>>,
    inbox: Inbox,
    closing: Arc<AtomicBool>,
    shared: Arc<Shared>,
    /// Why the link is dead, once it is; every later call repeats it.
    dead: Option<Cause>,
    /// When nothing came before the other end gave the session up, where it did that first.
    gave_up: Option<(Mono, Mono)>,
}

/// What the reader and the owner of a link say to each other.
#[derive(Default)]
struct Shared {
    /// When data of a transfer last came or were acknowledged; nanoseconds.
    life_at: AtomicU64,
    /// What answers to pings take; nanoseconds.
    round_trip: AtomicI64,
    absence: Mutex<Absence>,
    /// When the oldest ping left that has no answer yet; nanoseconds, 0 where all have one.
    owed_since: AtomicU64,
    /// When the reader found the responder gone; nanoseconds.
    died_at: AtomicU64,
    /// The longest of all times between two signs of life.
    longest_pause: Mutex<Option<(Mono, Mono)>>,
    /// And the last one that is as long as an end may take to give a session up.
    last_silence: Mutex<Option<Quiet>>,
    /// When the responder's program did not run, by what it says.
    standstills: Standstills,
    /// The responder has given the reservation to the next since it was granted.
    has_lost_place: AtomicBool,
}

/// A time in which nothing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quiet {
    from: Mono,
    until: Mono,
    /// What an answer took before: one that came afterwards took as long as this time.
    usual: Span,
}

impl Shared {
    /// Nothing came between these two; an answer `usual`ly takes so long.
    fn paused(&self, from: Mono, until: Mono, usual: Span) {
        let mut longest = self.longest_pause.lock().unwrap_or_else(PoisonError::into_inner);
        if longest.is_none_or(|(a, b)| until - from > b - a) {
            *longest = Some((from, until));
        }
        if until - from >= NOTICED_THERE {
            let mut last = self.last_silence.lock().unwrap_or_else(PoisonError::into_inner);
            let usual = last.filter(|before| before.from == from).map_or(usual, |before| before.usual);
            *last = Some(Quiet { from, until, usual });
        }
    }

    /// Takes note of what a message says of the reservation. Returns whether somebody else has to
    /// hear it, too: a reservation that was lost between two tests is no reason for how a later
    /// test ends.
    fn note_place(&self, message: &ServerMessage) -> bool {
        match message {
            ServerMessage::Error { message, test: None, .. } if message == LEASE_WAS_IDLE => {
                self.has_lost_place.store(true, Ordering::Release);
                false
            }
            ServerMessage::Admitted { .. } => {
                self.has_lost_place.store(false, Ordering::Release);
                true
            }
            _ => true,
        }
    }

    fn absence(&self) -> MutexGuard<'_, Absence> {
        self.absence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When this host did not run the program: suspended, stopped, or without CPU time.
#[derive(Debug, Default, Clone, Copy)]
struct Absence {
    /// In all.
    away: Span,
    /// When it last ended.
    back_at: Mono,
    /// When the reader's wait ends at the latest, while it waits.
    due_at: Option<Mono>,
}

impl Absence {
    /// The absence as it is now. A thread that runs again before the reader does has to know of it,
    /// too: the reader is overdue then.
    fn at(self, now: Mono) -> Self {
        match self.due_at.and_then(|due_at| silence::held_up(now - due_at)) {
            Some(held_up) => Self { away: self.away + held_up, back_at: now, ..self },
            None => self,
        }
    }
}

/// An absence of this host that is noticed, and told of the measurement as a whole.
pub(crate) const NOTICED: Span = silence::HELD_UP;
/// What follows the return of a suspended host so closely follows from that.
const CONSEQUENCE: Span = Span::from_secs(15);
/// The other end hears nothing for as long, and up to a ping's distance more, before it gives up.
const NOTICED_THERE: Span = Span::from_secs(2);

/// Within so much of the path's return, beside round trips, what the other end did meanwhile is
/// heard of, or within as long as the silence lasted: what was sent into it is sent again after a
/// time that doubles with each attempt (RFC 6298 §5.5).
const HEARD_OF: Span = Span::from_secs(3);

/// An answer to a ping that takes so much longer than a round trip waits for the responder.
const OVERDUE: Span = Span::from_millis(200);
const LOOKS_AGAIN: Span = Span::from_millis(5);

const READER_WAKES: Span = Span::from_millis(250);
const WRITE_PATIENCE: Span = Span::from_secs(2);
const LONGEST_ALLOWANCE: Span = Span::from_secs(30);

impl Link {
    /// Sends preface and first message on a fresh connection, checks who answers and starts the
    /// reader. `over` is raised when the responder is gone, so that whoever measures without
    /// listening here ends soon as well.
    ///
    /// Both go out at once: it saves a round trip, and a server of another protocol that waits for
    /// more than a preface speaks up and can be named.
    pub(crate) fn open(
        mut stream: TcpStream,
        peer: SocketAddr,
        hello: &ClientMessage,
        patience: Span,
        over: StopFlag,
    ) -> Result<Self, Failure> {
        let failed = |cause| Failure::new("hello", Some(peer), cause);
        let system = |e: std::io::Error| failed(Cause::System(e.to_string()));
        stream.set_nodelay(true).map_err(system)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE.to_std())).map_err(system)?;
        let mut opening = Preface::new(Role::Control).emit().to_vec();
        opening.extend(frame::emit(hello).map_err(|e| failed(Cause::Protocol(e.to_string())))?);
        let asked_at = clock::now();
        stream.write_all(&opening).map_err(system)?;
        read_preface(&mut stream, patience).map_err(failed)?;
        let answered_at = clock::now();
        // A greeting that was lost once took longer than the path does.
        let path = TcpInfo::read(&stream).map_or(Span::ZERO, |info| info.min_rtt);
        stream.set_read_timeout(Some(READER_WAKES.to_std())).map_err(system)?;

        let writer = Arc::new(Mutex::new(stream.try_clone().map_err(system)?));
        let closing = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared::default());
        let (tell, inbox) = channel();
        let reader = Reader {
            local: stream.local_addr().ok(),
            stream,
            writer: Arc::clone(&writer),
            closing: Arc::clone(&closing),
            shared: Arc::clone(&shared),
            silence: Silence::new(answered_at, clock::suspended(), answered_at - asked_at).over(path),
            looked_at: answered_at,
            is_welcome: false,
            tell,
            over,
        };
        std::thread::Builder::new().name("control".into()).spawn(move || reader.run()).map_err(system)?;
        Ok(Self { peer, writer, inbox, closing, shared, dead: None, gave_up: None })
    }

    /// Of the responder.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What this host's TCP knows of the connection.
    pub(crate) fn tcp_info(&self) -> Option<TcpInfo> {
        TcpInfo::read(&self.writer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something has been answered: the kernel knows the path's round trip now, and sends what is
    /// lost again accordingly.
    pub(crate) fn know_the_path(&self) {
        options::prepare_control(&*self.writer.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// When its reader found the responder gone, if it has.
    pub(crate) fn died_at(&self) -> Option<Mono> {
        Some(Mono(self.shared.died_at.load(Ordering::Acquire))).filter(|at| at.0 > 0)
    }

    /// Why the link is dead, if it is.
    pub(crate) fn death(&self) -> Option<&Cause> {
        self.dead.as_ref()
    }

    /// Whether the responder has given the reservation to the next since it was granted, because no
    /// test was open for long.
    pub(crate) fn has_lost_place(&self) -> bool {
        self.shared.has_lost_place.load(Ordering::Acquire)
    }

    /// Data of a transfer came, or were acknowledged: the responder is there, even if its messages
    /// wait behind that data.
    pub(crate) fn sign_of_life(&self) {
        self.shared.life_at.fetch_max(clock::now().0, Ordering::AcqRel);
    }

    /// Whether anything of the responder has come since then.
    pub(crate) fn heard_since(&self, at: Mono) -> bool {
        self.shared.life_at.load(Ordering::Acquire) >= at.0
    }

    /// When nothing came of the responder for the longest time, neither an answer nor data.
    pub(crate) fn longest_pause(&self) -> Option<(Mono, Mono)> {
        *self.shared.longest_pause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When nothing came of it for as long as makes an end give the session up, the last time.
    pub(crate) fn last_silence(&self) -> Option<(Mono, Mono)> {
        self.last_quiet().map(|quiet| (quiet.from, quiet.until))
    }

    /// For how long nothing came of a responder that is there again, the last time that this was
    /// far longer than its answers take and nobody stood still.
    pub(crate) fn outlived(&self) -> Option<Span> {
        let Quiet { from, until, usual } = self.last_quiet()?;
        let is_long = until - from >= NOTICED_THERE + PING_EVERY / 2 + usual * 2;
        let ran = self.away() == Span::ZERO && self.standstills().all().is_empty();
        (is_long && ran && self.died_at().is_none()).then_some(until - from)
    }

    fn last_quiet(&self) -> Option<Quiet> {
        *self.shared.last_silence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the responder's program did not run, by what it says itself: this goes on to be written
    /// as long as the link lives.
    pub(crate) fn standstills(&self) -> Standstills {
        self.shared.standstills.clone()
    }

    /// Waits a little for the answer to a ping that is overdue: a responder that has just gone on
    /// says with it for how long it did not run.
    pub(crate) fn await_overdue_pong(&self) {
        let usual = Span(self.shared.round_trip.load(Ordering::Acquire)).min(LONGEST_ALLOWANCE) + OVERDUE;
        let until = clock::now() + usual;
        let is_overdue = |now: Mono| {
            let owed_since = self.shared.owed_since.load(Ordering::Acquire);
            owed_since > 0 && now - Mono(owed_since) > usual
        };
        while self.dead.is_none() && self.died_at().is_none() {
            let now = clock::now();
            if now >= until || !is_overdue(now) {
                return;
            }
            clock::sleep(LOOKS_AGAIN);
        }
    }

    /// The same where no ping may have waited for the responder to go on: waits for the next answer
    /// to one after that instant. Pings leave every second.
    pub(crate) fn await_pong_after(&self, at: Mono) {
        let usual = Span(self.shared.round_trip.load(Ordering::Acquire)).min(LONGEST_ALLOWANCE) + OVERDUE;
        let until = at + PING_EVERY + usual;
        let is_awaited = || {
            self.dead.is_none() && self.died_at().is_none() && !self.shared.standstills.is_answered_after(at)
        };
        while is_awaited() && clock::now() < until {
            clock::sleep(LOOKS_AGAIN);
        }
    }

    /// What the answer to a message may take beyond the responder's own time: as its answers to
    /// pings do now, and once more where one is lost.
    pub(crate) fn allowance(&self) -> Span {
        (Span(self.shared.round_trip.load(Ordering::Acquire)) * 2).min(LONGEST_ALLOWANCE)
    }

    /// What an answer to a ping takes now; zero while that is not known.
    pub(crate) fn round_trip(&self) -> Span {
        Span(self.shared.round_trip.load(Ordering::Acquire))
    }

    /// How long nothing may be heard at most before the other end is given up, as far as is known
    /// now.
    pub(crate) fn silence_allowed(&self) -> Span {
        silence::limit(self.round_trip())
    }

    /// How long this host did not run the program (suspended, stopped, without CPU time), in all.
    pub(crate) fn away(&self) -> Span {
        self.shared.absence().at(clock::now()).away
    }

    /// The cause behind a cause: a session that broke because this host was not there is not the
    /// responder's fault.
    pub(crate) fn explain(&mut self, cause: Cause) -> Cause {
        let now = clock::now();
        let cause = match self.silence_before(&cause, self.died_at().unwrap_or(now)) {
            Some((from, until)) => {
                self.gave_up = Some((from, until));
                self.bury(Cause::Unheard(until - from))
            }
            None => cause,
        };
        let Absence { away, back_at, .. } = self.shared.absence().at(now);
        let is_silence = matches!(cause, Cause::Silent(_) | Cause::Lost(_) | Cause::Unheard(_));
        if !is_silence || away < NOTICED_THERE || now - back_at > CONSEQUENCE {
            return cause;
        }
        self.bury(Cause::Away(away))
    }

    /// When nothing came, for so long that one of both ends gave the session up.
    pub(crate) fn silence(&self) -> Option<(Mono, Mono)> {
        let Some(Cause::Unheard(silence)) = self.dead else { return None };
        self.gave_up.or_else(|| self.died_at().map(|at| (at - silence, at)))
    }

    /// When nothing came before the other end closed or refused the session, where it did that
    /// because it heard nothing either: what it says of that comes when the path is back, in one
    /// way or another.
    fn silence_before(&self, cause: &Cause, died_at: Mono) -> Option<(Mono, Mono)> {
        given_up(cause, self.last_quiet()?, died_at)
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &ClientMessage) -> Result<(), Cause> {
        if let Some(cause) = &self.dead {
            return Err(cause.clone());
        }
        write(&self.writer, message).map_err(|cause| self.bury(cause))
    }

    /// The next message, or `None` when `until` has come first.
    pub(crate) fn next(&mut self, until: Mono) -> Result<Option<ServerMessage>, Cause> {
        if let Some(cause) = &self.dead {
            return Err(cause.clone());
        }
        match self.inbox.recv_timeout((until - clock::now()).to_std()) {
            Ok(Ok(ServerMessage::Bye { reason })) => Err(self.bury(Cause::Stopping(reason))),
            Ok(Ok(message)) => Ok(Some(message)),
            Ok(Err(cause)) => Err(self.bury(cause)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.bury(Cause::Lost("the reader ended".into()))),
        }
    }

    fn bury(&mut self, cause: Cause) -> Cause {
        self.dead = Some(cause.clone());
        cause
    }
}

fn given_up(cause: &Cause, quiet: Quiet, died_at: Mono) -> Option<(Mono, Mono)> {
    let Quiet { from, until, usual } = quiet;
    // A refusal of one test alone ends no session.
    let is_because_of_silence = matches!(cause, Cause::Refused(ErrorCode::Timeout, _) | Cause::Lost(_))
        && died_at - until <= HEARD_OF.max(until - from) + usual * 2;
    (is_because_of_silence && until - from >= usual * 2).then_some((from, until))
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.dead.is_none() {
            // A courtesy: the responder would notice the closed connection anyway.
            let _ = write(&self.writer, &ClientMessage::Bye);
        }
        self.closing.store(true, Ordering::Release);
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writer.shutdown(Shutdown::Both);
    }
}

fn write(writer: &Mutex<TcpStream>, message: &ClientMessage) -> Result<(), Cause> {
    let bytes = frame::emit(message).map_err(|e| Cause::Protocol(e.to_string()))?;
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    writer.write_all(&bytes).map_err(|e| Cause::Lost(e.to_string()))
}

/// Reads the responder's preface and says who it is when it is none.
fn read_preface(stream: &mut TcpStream, patience: Span) -> Result<(), Cause> {
    let mut bytes = [0; PREFACE_LEN];
    let mut have = 0;
    let until = clock::now() + patience;
    while have < PREFACE_LEN {
        let left = until - clock::now();
        if left.0 <= 0 {
            break;
        }
        stream.set_read_timeout(Some(left.to_std())).map_err(|e| Cause::System(e.to_string()))?;
        match stream.read(&mut bytes[have..]) {
            Ok(0) => return Err(Cause::Stranger(stranger::identify(&bytes[..have]))),
            Ok(read) => have += read,
            // Whether the time is over is looked at above.
            Err(e) if is_timeout(&e) => {}
            Err(e) if e.kind() == ErrorKind::ConnectionReset => {
                return Err(Cause::Stranger(stranger::identify(&bytes[..have])));
            }
            Err(e) => return Err(Cause::System(e.to_string())),
        }
        if !Preface::may_start_with(&bytes[..have]) {
            return Err(Cause::Stranger(stranger::identify(&bytes[..have])));
        }
    }
    match bytes[..have].first_chunk::<PREFACE_LEN>().filter(|_| have == PREFACE_LEN) {
        // A later version is no error yet: the responder says in a message which ones it speaks.
        Some(whole) => match Preface::parse(whole) {
            Ok(_) => Ok(()),
            Err(PrefaceError::Foreign) => Err(Cause::Stranger(stranger::identify(whole))),
            Err(PrefaceError::UnknownRole(_)) => Err(Cause::Protocol("preface of unknown role".into())),
        },
        None if have == 0 => Err(Cause::Silent(patience)),
        None => Err(Cause::Stranger(stranger::identify(&bytes[..have]))),
    }
}

struct Reader {
    /// This host's address, which it may lose.
    local: Option<SocketAddr>,
    stream: TcpStream,
    writer: Arc<Mutex<TcpStream>>,
    closing: Arc<AtomicBool>,
    shared: Arc<Shared>,
    silence: Silence,
    /// When it was last looked whether this host had been away.
    looked_at: Mono,
    tell: Sender<Result<ServerMessage, Cause>>,
    over: StopFlag,
    /// Pings are asked for from then on: before, a responder with a key takes them for an answer to
    /// its challenge.
    is_welcome: bool,
}

impl Reader {
    fn run(mut self) {
        let cause = match self.read_all() {
            Ok(()) => return,
            Err(cause) => cause,
        };
        if !self.closing.load(Ordering::Acquire) {
            self.shared.died_at.store(clock::now().0, Ordering::Release);
            // The link may be gone by now; then nobody needs to know.
            let _ = self.tell.send(Err(cause));
            self.over.raise();
        }
    }

    /// Ends well when the link is dropped, ill when the responder is gone.
    fn read_all(&mut self) -> Result<(), Cause> {
        let mut pending = Vec::new();
        let mut chunk = vec![0; 16 * 1024];
        let mut pinged_at: Option<Mono> = None;
        let mut pings = 0;
        let mut heard_at = clock::now();
        while !self.closing.load(Ordering::Acquire) {
            self.shared.absence().due_at = Some(clock::now() + READER_WAKES);
            let read = self.stream.read(&mut chunk);
            self.look_for_absence();
            if !matches!(&read, Err(e) if is_timeout(e)) {
                let life_at = Mono(self.shared.life_at.load(Ordering::Acquire));
                self.shared.paused(heard_at.max(life_at), clock::now(), self.silence.usual());
            }
            match read {
                Ok(0) => return Err(Cause::Lost("closed by the responder".into())),
                Ok(read) => {
                    let now = clock::now();
                    self.silence.heard(now);
                    self.shared.life_at.fetch_max(now.0, Ordering::AcqRel);
                    pending.extend_from_slice(&chunk[..read]);
                    if !self.deliver(&mut pending)? {
                        return Ok(());
                    }
                }
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(Cause::Lost(e.to_string())),
            }
            // Before anybody's silence is judged: this host may have been stopped at any instant.
            let now = self.look_for_absence();
            let life_at = Mono(self.shared.life_at.load(Ordering::Acquire));
            self.silence.heard(life_at);
            let until = if life_at > heard_at { life_at } else { now };
            self.shared.paused(heard_at, until, self.silence.usual());
            heard_at = heard_at.max(life_at);
            self.shared.round_trip.store(self.silence.round_trip().0, Ordering::Release);
            let owed_since = self.silence.owed_since().map_or(0, |at| at.0);
            self.shared.owed_since.store(owed_since, Ordering::Release);
            let local = self.local;
            let is_lost = || local.is_some_and(|local| netaware_host::lost_network(local).is_some());
            let cut_off = self.silence.cut_off(now, is_lost);
            if let Some(silence) = cut_off.or(self.silence.too_long(now)) {
                return Err(Cause::Unheard(silence));
            }
            // The first leaves at once: on a slow path the responder has heard nothing for long.
            if self.is_welcome && pinged_at.is_none_or(|at| now - at >= PING_EVERY) {
                pinged_at = Some(now);
                pings += 1;
                self.silence.asked(pings, now);
                write(&self.writer, &ClientMessage::Ping { seq: pings })?;
            }
        }
        Ok(())
    }

    /// Where much more time has passed since the last look than a wait takes, this host did not run
    /// meanwhile. Says what time it is.
    fn look_for_absence(&mut self) -> Mono {
        let now = clock::now();
        let from = std::mem::replace(&mut self.looked_at, now);
        let away = self.silence.waited(from, now, READER_WAKES, clock::suspended());
        let mut absence = self.shared.absence();
        absence.due_at = None;
        if let Some(away) = away {
            absence.away += away;
            absence.back_at = now;
        }
        now
    }

    /// Hands on every whole message in `pending`; false when nobody listens any more.
    fn deliver(&mut self, pending: &mut Vec<u8>) -> Result<bool, Cause> {
        let broken = |e: frame::FrameError| Cause::Protocol(e.to_string());
        while let Some(header) = pending.first_chunk::<4>() {
            let len = frame::body_len(*header).map_err(broken)?;
            if pending.len() < 4 + len {
                break;
            }
            let message = frame::parse::<ServerMessage>(&pending[4..4 + len]);
            pending.drain(..4 + len);
            match message {
                Ok(ServerMessage::Pong { seq, stood_still }) => {
                    let now = clock::now();
                    self.silence.answered(seq, now);
                    let round_trip = self.silence.round_trip();
                    self.shared.standstills.told(stood_still.unwrap_or_default(), now, round_trip);
                }
                Err(frame::FrameError::UnknownType(_)) => {}
                Ok(message) => {
                    self.is_welcome |= matches!(message, ServerMessage::Welcome { .. });
                    if self.shared.note_place(&message) && self.tell.send(Ok(message)).is_err() {
                        return Ok(false);
                    }
                }
                Err(e) => return Err(broken(e)),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use netaware_wire::Token;

    use super::*;

    /// An outage of 4 s was "refused: not a byte for too long", "closed by the responder", "Broken
    /// pipe" and "nothing heard for 4.37 s", and each time something else was to be looked at.
    #[test]
    fn an_outage_in_which_the_other_end_gave_the_session_up_has_one_reason() {
        let at = |ms: u64| Mono(ms * 1_000_000);
        let ms = Span::from_millis;
        let quiet = |from, until, usual| Quiet { from: at(from), until: at(until), usual: ms(usual) };
        let silent = quiet(8000, 12_100, 50);
        let refused = Cause::Refused(ErrorCode::Timeout, "not a byte for too long".to_owned());
        let [closed, broken] =
            ["closed by the responder", "Broken pipe (os error 32)"].map(|why| Cause::Lost(why.to_owned()));
        for cause in [&refused, &closed, &broken] {
            assert_eq!(given_up(cause, silent, at(12_600)), Some((at(8000), at(12_100))), "{cause:?}");
            // An outage of 3 s, of which a segment told that was sent again late.
            let short = quiet(3000, 6000, 50);
            assert_eq!(given_up(cause, short, at(9050)), Some((at(3000), at(6000))));
        }
        // A responder that is killed later has its own reason.
        assert_eq!(given_up(&closed, silent, at(16_400)), None);
        let cap = Cause::Refused(ErrorCode::Cap, "no".to_owned());
        assert_eq!(given_up(&cap, silent, at(12_600)), None);
        // On a path this slow nothing comes for as long.
        assert_eq!(given_up(&closed, quiet(8000, 10_200, 1500), at(10_300)), None);
    }

    /// A test that was not started in time after an outage was "nothing heard for 4.10 s", and its
    /// session was dead, which went on.
    #[test]
    fn a_test_that_was_not_begun_in_time_is_no_silence_of_the_path() {
        let at = |ms: u64| Mono(ms * 1_000_000);
        let quiet = Quiet { from: at(8000), until: at(12_100), usual: Span::from_millis(50) };
        let refused = |test| Cause::refused(ErrorCode::Timeout, "not in time".to_owned(), test);
        assert_eq!(given_up(&refused(Some(3)), quiet, at(12_600)), None);
        assert_eq!(given_up(&refused(None), quiet, at(12_600)), Some((at(8000), at(12_100))));
    }

    /// A reservation that was lost between two turns ended the whole: asked for again, it was taken
    /// for refused.
    #[test]
    fn a_reservation_that_was_unused_is_lost_until_the_next_is_granted_and_refuses_nothing() {
        let shared = Shared::default();
        let error = |message: &str, test| ServerMessage::Error {
            code: ErrorCode::Lease,
            message: message.to_owned(),
            test,
            versions: Vec::new(),
        };
        let is_lost = || shared.has_lost_place.load(Ordering::Acquire);
        assert!(shared.note_place(&error("the reservation to join is over, or full", None)) && !is_lost());
        assert!(!shared.note_place(&error(LEASE_WAS_IDLE, None)) && is_lost());
        assert!(shared.note_place(&error(LEASE_WAS_IDLE, Some(1))) && is_lost());
        let admitted = ServerMessage::Admitted { reservation: Token::default(), lease: Span(1) };
        assert!(shared.note_place(&admitted) && !is_lost());
    }

    #[test]
    fn only_a_silence_as_long_as_an_end_waits_for_is_remembered() {
        let at = |ms: u64| Mono(ms * 1_000_000);
        let shared = Shared::default();
        // The answer that ends a silence took as long as that, and is no measure of it.
        let usual = Span::from_millis(30);
        for (from, until, took) in
            [(1000, 6000, 30), (7000, 9400, 30), (7000, 9500, 2500), (9600, 10_600, 2500)]
        {
            shared.paused(at(from), at(until), Span::from_millis(took));
        }
        let last = Quiet { from: at(7000), until: at(9500), usual };
        assert_eq!(*shared.last_silence.lock().unwrap(), Some(last));
        assert_eq!(*shared.longest_pause.lock().unwrap(), Some((at(1000), at(6000))));
    }

    #[test]
    fn a_thread_that_runs_again_before_the_reader_does_knows_that_the_host_was_away() {
        let at = |ms: u64| Mono(ms * 1_000_000);
        let waiting = Absence { due_at: Some(at(1000)), ..Absence::default() };
        // A busy host lets the reader wait for a core.
        assert_eq!(waiting.at(at(2400)).away, Span::ZERO);
        let stopped = waiting.at(at(7000));
        assert_eq!((stopped.away, stopped.back_at), (Span::from_secs(6), at(7000)));
        // What the reader has noted itself counts once.
        let noted = Absence { away: Span::from_secs(6), back_at: at(7000), due_at: None };
        assert_eq!(noted.at(at(9000)).away, Span::from_secs(6));
    }
}
