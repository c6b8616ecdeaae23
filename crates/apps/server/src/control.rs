//! A control connection: carries the session's messages and carries out its actions.
//!
//! All decisions are the session's; here are its sockets, its timer and the set-up of its tests.
//! One task, which waits for whatever comes first and never blocks.

mod attach;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use netaware_io::absence::Absence;
use netaware_io::clock;
use netaware_io::zone::ZonedIp;
use netaware_pool::{Place, Site, Standing};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::{ErrorCode, ServerMessage, TestPlan};
use netaware_wire::{Token, frame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::admission::{Notice, SessionId};
use crate::context::{Context, Events};
use crate::event::Event;
use crate::framing::Frames;
use crate::opening;
use crate::outbox::Outbox;
use crate::plan::Refusal;
use crate::pools::{Eviction, Stranger, told};
use crate::random;
use crate::rig::{self, Rig};
use crate::roster::Guest;
use crate::session::{Action, Ending, Session};

/// Both ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// What the kernel has seen between them, zero where it does not tell.
    pub(crate) round_trip: Span,
    /// Whether nobody between them reads what they say.
    pub(crate) is_encrypted: bool,
}

/// Serves a connection whose preface has been answered, to the end of its session.
pub(crate) async fn serve<S>(
    context: Arc<Context>,
    stream: S,
    Ends { local, peer, round_trip, is_encrypted }: Ends,
    stranger: Stranger,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Ok([token, nonce]) = random::tokens() else {
        tracing::error!("the system gives no random bytes; no session can be opened");
        return;
    };
    // Without one the owner's view stays closed.
    let owner = if is_encrypted { random::owner_token().ok() } else { None };
    let began_at = clock::now();
    let (events, inbox) = mpsc::unbounded_channel();
    let session = Session::new(&context.rules, began_at, token, nonce).over(round_trip).for_owner(owner);
    let mut control = Control {
        context: &context,
        session,
        events,
        outbox: Outbox::new(),
        details: VecDeque::new(),
        rigs: HashMap::new(),
        plans: HashMap::new(),
        ticket: None,
        told_siblings_at: None,
        place: stranger.place,
        eviction: stranger.eviction,
        is_enrolled: false,
        peer,
        local,
        round_trip,
        is_closing: false,
    };
    control.converse(stream, inbox).await;
    control.log(clock::now() - began_at);
}

struct Control<'a> {
    context: &'a Context,
    session: Session<'a>,
    events: Events,
    outbox: Outbox,
    /// Long ends of tests, which wait until the outbox has room; what comes after them about the
    /// same tests, too.
    details: VecDeque<ServerMessage>,
    rigs: HashMap<u32, Rig>,
    /// Of the tests in `rigs`, for the report of a thread that fails.
    plans: HashMap<u32, TestPlan>,
    /// Of the present reservation.
    ticket: Option<SessionId>,
    told_siblings_at: Option<Mono>,
    /// Among the strangers, then among the sessions; only held, and free again when it is dropped.
    place: Place,
    /// Of the place among the strangers.
    eviction: Eviction,
    is_enrolled: bool,
    peer: SocketAddr,
    local: SocketAddr,
    /// Of the path without load, zero where it is not known.
    round_trip: Span,
    is_closing: bool,
}

/// What a turn of the loop woke up for.
enum Turn {
    Read(std::io::Result<usize>),
    Wrote(std::io::Result<usize>),
    Event(Event),
    Timer,
    /// Nothing happened for a while.
    Look,
    Stopping,
}

impl Control<'_> {
    async fn converse<S>(&mut self, stream: S, mut inbox: mpsc::UnboundedReceiver<Event>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut stopping = self.context.stopping.clone();
        let mut frames = Frames::default();
        let mut is_connected = true;
        let mut has_stopped = false;
        let mut absence = Absence::longer_than(NOTICEABLE_ABSENCE);
        let mut renewed_at = clock::now();
        while !self.is_closing {
            let mut buf = [0; 2048];
            let deadline = self.session.deadline();
            let now = clock::now();
            if now - renewed_at >= LOOKS_EVERY {
                renewed_at = now;
                absence.begin_anew();
                self.tell_use(now);
            }
            absence.sleeps_until(now + LOOKS_EVERY);
            let turn = tokio::select! {
                read = reader.read(&mut buf), if is_connected => Turn::Read(read),
                wrote = writer.write(self.outbox.waiting()), if is_connected && !self.outbox.is_empty() => Turn::Wrote(wrote),
                Some(event) = inbox.recv() => Turn::Event(event),
                () = self.eviction.happened(), if !self.is_enrolled => Turn::Event(Event::SessionEvicted),
                () = until(deadline) => Turn::Timer,
                () = sleep(LOOKS_EVERY.to_std()) => Turn::Look,
                () = raised(&mut stopping), if !has_stopped => Turn::Stopping,
            };
            let now = clock::now();
            absence.look(now);
            self.session.note_standing_still(now, absence.total());
            match turn {
                Turn::Look => {}
                Turn::Read(Ok(count)) if count > 0 => self.take_in(now, &mut frames, &buf[..count]),
                Turn::Wrote(Ok(count)) if count > 0 => self.outbox.advance(count),
                Turn::Read(_) | Turn::Wrote(_) => {
                    is_connected = false;
                    self.session.lost(now);
                }
                Turn::Event(event) => self.on_event(now, event),
                Turn::Timer => self.session.wake(now),
                Turn::Stopping => {
                    has_stopped = true;
                    self.session.stop(now);
                }
            }
            self.carry_out(now);
        }
        // Everything that the session held is free before its last words have travelled.
        self.let_go();
        if is_connected {
            self.say_last_words(reader.unsplit(writer)).await;
        }
    }

    fn take_in(&mut self, now: Mono, frames: &mut Frames, bytes: &[u8]) {
        // The middle of a frame is no sign of life: it could drip for ever.
        if !frames.is_partial() {
            self.session.heard(now);
        }
        frames.push(bytes);
        while !self.is_closing
            && let Some(message) = frames.pop()
        {
            self.session.received(now, message);
            self.carry_out(now);
        }
    }

    fn on_event(&mut self, now: Mono, event: Event) {
        match event {
            Event::Notice(ticket, notice) if self.ticket == Some(ticket) => {
                if let Notice::Admitted { reservation, .. } = notice {
                    self.session.share(self.context.together(reservation));
                }
                self.session.noticed(now, notice);
            }
            Event::Notice(..) => {}
            Event::Connection { welcome, attach, stream } => {
                self.attach_stream(now, &welcome, attach, stream);
            }
            Event::Echo { attach, answer } => {
                // Who no longer waits has gone.
                let _ = answer.send(self.attach_echo(now, attach));
            }
            Event::Entered { test, flow } => self.attach_flow(now, test, flow),
            Event::ChannelOpen { test } => self.attach_channel(now, test),
            Event::ChannelLost { test, why } => self.session.channel_lost(test, &why),
            Event::Evicted { test } => self.session.test_evicted(test),
            Event::CapReached { test, cap } => self.session.cap_reached(test, cap),
            Event::SessionEvicted => self.session.evicted(now),
            Event::ReceiverTick { test, tick } => {
                self.tell_siblings(now, tick.bytes);
                self.session.receiver_tick(now, test, tick);
            }
            Event::SenderTick { test, tick } => {
                self.tell_siblings(now, tick.acked.unwrap_or_default());
                self.session.sender_tick(now, test, tick);
            }
            Event::VolleyTimes { test, volley, times, last, unstamped } => {
                self.session.volley_times(test, volley, times, last, unstamped);
            }
            Event::Ended { test, report } => {
                let plan = self.forget(test);
                let report = report.map(|report| *report).or_else(|| plan.as_ref().map(rig::failed));
                if let Some(report) = report {
                    self.session.ended(test, report);
                }
            }
        }
    }

    fn carry_out(&mut self, now: Mono) {
        while let Some(action) = self.session.next_action() {
            match action {
                Action::Send(message) if is_detail(&message) || self.awaits_details(&message) => {
                    self.details.push_back(*message);
                }
                Action::Send(message) => self.post(now, &message),
                Action::Enrol => {
                    let outcome = self.enrol().map(|()| self.context.host(ZonedIp::of(self.local)));
                    self.session.enrolled(now, outcome);
                }
                Action::Reserve { expected, join } => self.reserve(now, expected, join),
                Action::Leave => self.leave(now),
                Action::Prepare { test, plan } => {
                    let outcome = self.prepare(test, plan);
                    self.session.prepared(now, test, outcome);
                }
                Action::OpenChannel { test, end } => {
                    let outcome = self.open_channel(test, &end);
                    self.session.channel_prepared(test, outcome);
                }
                Action::Run { test } => self.run(test),
                Action::Ask { test, volley } => self.ask(test, volley),
                Action::Halt { test } => self.halt(test),
                Action::Close => self.is_closing = true,
            }
        }
        while self.outbox.has_room()
            && let Some(message) = self.details.pop_front()
        {
            self.post(now, &message);
        }
    }

    /// The end of a test must not overtake its details.
    fn awaits_details(&self, message: &ServerMessage) -> bool {
        let ServerMessage::Finished { test: ended, .. } = message else { return false };
        self.details.iter().any(|detail| {
            matches!(detail, ServerMessage::Bins { test, .. }
                | ServerMessage::Arrivals { test, .. }
                | ServerMessage::VolleyTimes { test, .. } if test == ended)
        })
    }

    fn post(&mut self, now: Mono, message: &ServerMessage) {
        let bytes = match frame::emit(message) {
            Ok(bytes) => bytes,
            Err(error) => return tracing::error!(%error, "a message of our own does not fit its frame"),
        };
        if self.outbox.push(&bytes).is_err() {
            self.outbox.clear();
            self.details.clear();
            self.session.lost(now);
        }
    }

    fn enrol(&mut self) -> Result<(), Refusal> {
        let events = self.events.clone();
        let tell = move || {
            // A session that is gone needs no news.
            let _ = events.send(Event::SessionEvicted);
        };
        let entered = self.context.pools.sessions.enter(self.peer.ip(), Standing::Unproven, tell);
        let place =
            entered.map_err(|full| Refusal { code: ErrorCode::Busy, message: told(full, "sessions") })?;
        self.place = place;
        self.is_enrolled = true;
        self.context.registry.add(self.session.token(), self.events.clone());
        let guest = Guest {
            peer: self.peer,
            software: self.session.summary().software.clone(),
            since: clock::now(),
            owner: self.session.owner(),
            ticket: None,
            tests: BTreeMap::new(),
        };
        self.context.roster.enter(self.session.token(), guest);
        Ok(())
    }

    fn reserve(&mut self, now: Mono, expected: Span, join: Option<Token>) {
        self.outbox.widen();
        let ticket = self.context.ticket();
        self.ticket = Some(ticket);
        self.note(|guest| guest.ticket = Some(ticket));
        self.context.registry.add_ticket(ticket, self.events.clone());
        let fresh = random::tokens::<1>();
        let site = Site::of(self.peer.ip());
        self.context.admit(|admission| match (join, fresh) {
            (Some(reservation), _) => admission.join(now, ticket, reservation),
            (None, Ok([token])) => admission.reserve(now, ticket, site, expected, token),
            // Without randomness there is no reservation that only its owner could name; nothing
            // can be joined then.
            (None, Err(_)) => admission.join(now, ticket, Token::default()),
        });
    }

    /// Data of a test came, or were acknowledged: the prober's other session, whose pings may wait
    /// behind them, need not fear for it.
    fn tell_siblings(&mut self, now: Mono, moved: ByteCount) {
        let is_due = self.told_siblings_at.is_none_or(|at| now - at >= TELL_SIBLINGS_EVERY);
        if let Some(ticket) = self.ticket.filter(|_| moved > ByteCount(0) && is_due) {
            self.told_siblings_at = Some(now);
            self.context.admit(|admission| admission.lives(ticket));
        }
    }

    /// Whether the reservation is used: one that is only held is given to the next.
    fn tell_use(&mut self, now: Mono) {
        if let Some(ticket) = self.ticket {
            let (is_used, may_idle) = (self.session.takes_use(now), self.session.may_idle(now));
            self.context.admit(|admission| admission.look(now, ticket, is_used, may_idle));
        }
    }

    fn leave(&mut self, now: Mono) {
        if let Some(ticket) = self.ticket.take() {
            self.note(|guest| guest.ticket = None);
            self.context.registry.remove_ticket(ticket);
            self.context.admit(|admission| admission.leave(now, ticket));
        }
    }

    fn note(&self, change: impl FnOnce(&mut Guest)) {
        self.context.roster.note(self.session.token(), change);
    }

    /// Takes a test down; its plan is returned if there was one.
    fn forget(&mut self, test: u32) -> Option<TestPlan> {
        self.context.flows.forget(self.session.token(), test);
        self.rigs.remove(&test);
        self.note(|guest| {
            guest.tests.remove(&test);
        });
        self.plans.remove(&test)
    }

    /// Frees all that this session holds. Done twice it does no harm.
    fn let_go(&mut self) {
        for rig in self.rigs.values() {
            if let Rig::Running { stop, .. } = rig {
                stop.raise();
            }
        }
        let tests: Vec<u32> = self.plans.keys().copied().collect();
        for test in tests {
            self.forget(test);
        }
        self.leave(clock::now());
        if self.is_enrolled {
            self.context.registry.remove(self.session.token());
            self.context.roster.leave(self.session.token());
        }
    }

    async fn say_last_words<S: AsyncRead + AsyncWrite + Unpin>(&mut self, mut stream: S) {
        let within = opening::parting_within(self.round_trip);
        if let Ok(Ok(())) = timeout(within, stream.write_all(self.outbox.waiting())).await {
            opening::part(&mut stream, within).await;
        }
    }

    fn log(&self, lasted: Span) {
        let summary = self.session.summary();
        let ending = summary.ending.unwrap_or(Ending::Vanished);
        let peer = self.peer;
        match ending {
            Ending::Refused(code) => self.context.warn(peer, &format!("{code:?}")),
            _ if !self.is_enrolled => self.context.warn(peer, "it left before its session stood"),
            _ => {}
        }
        // Strangers get no line of their own: they cost nothing, so there could be any number.
        if !self.is_enrolled {
            return;
        }
        tracing::info!(
            %peer,
            software = summary.software,
            tests = summary.tests,
            bytes = summary.bytes,
            outcome = ?ending,
            seconds = (lasted.secs_f64() * 1000.0).round() / 1000.0,
            "session ended"
        );
    }
}

/// Also when the task is dropped or panics.
impl Drop for Control<'_> {
    fn drop(&mut self) {
        self.let_go();
    }
}

async fn until(deadline: Option<Mono>) {
    match deadline {
        Some(deadline) => sleep((deadline - clock::now()).to_std()).await,
        None => std::future::pending().await,
    }
}

/// Waits for the responder's end. One that has vanished without a word has ended, too.
pub(crate) async fn raised(stopping: &mut tokio::sync::watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

/// Messages of which a test has so many that they would overflow the outbox.
fn is_detail(message: &ServerMessage) -> bool {
    matches!(
        message,
        ServerMessage::Bins { .. } | ServerMessage::Arrivals { .. } | ServerMessage::VolleyTimes { .. }
    )
}

/// Pings leave once a second, and are missed after some.
const TELL_SIBLINGS_EVERY: Span = Span::from_millis(500);
/// A responder that did not run meanwhile notices it by then.
const LOOKS_EVERY: Span = Span::from_millis(250);
/// What all sessions have to do keeps one waiting for less.
const NOTICEABLE_ABSENCE: Span = Span::from_millis(500);
