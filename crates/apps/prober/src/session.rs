//! A session with a responder over one IP version: connect, greet, reserve, open tests.
//!
//! Each version has a session of its own, so that whatever fails over one of them cannot hurt the
//! other. Their throughput reservations are joined: a prober holds one place in the queue.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use netaware_io::clock;
use netaware_io::options::{self, ConnectError, SocketOptions};
use netaware_io::stop::StopFlag;
use netaware_io::tcp_info::TcpInfo;
use netaware_io::zone::ZonedIp;
use netaware_probe::compare::Share;
use netaware_record::{HostInfo, IpVersion, Reach};
use netaware_stats::patience::Patience;
use netaware_units::{Mono, Span};
use netaware_wire::control::{
    ClientMessage, ErrorCode, LEASE_IS_OVER, Limits, MAX_ROUND_TRIP, ServerMessage, TestPlan,
};
use netaware_wire::header::HeaderFields;
use netaware_wire::{PROTOCOL_VERSION, Token, proof};

use crate::dial::{Dialled, dial};
use crate::link::Link;
use crate::progress::{Progress, Watch};
use crate::report;
use crate::request::Target;
use crate::stage::{Cause, Failure};

/// Greeted, and ready for tests.
pub(crate) struct Session {
    pub(crate) version: IpVersion,
    pub(crate) link: Link,
    pub(crate) token: Token,
    pub(crate) responder: HostInfo,
    pub(crate) limits: Limits,
    pub(crate) reach: Reach,
    /// What the greeting took, if none of its segments was sent again.
    greeting: Option<Span>,
    /// This host's end of the control connection: which interface the measured traffic leaves by.
    pub(crate) local: Option<ZonedIp>,
    pub(crate) interface: Option<String>,
    next_test: u32,
    /// Until when throughput tests may run, as far as this end can tell.
    pub(crate) reserved_until: Option<Mono>,
    /// The place was given back, and the responder may not know yet.
    gave_back: bool,
    /// Somebody else was measuring when the place was asked for.
    has_waited: bool,
    /// How many times in a row UDP to the responder's port got no answer while its TCP answered.
    pub(crate) udp_unanswered: AtomicU32,
    /// Answers and data that came over UDP, either way, as far as they were counted.
    udp_came: AtomicU64,
    /// Requests on the idle path that were lost one by one, and those and the answered ones.
    requests_lost: AtomicU64,
    requests_settled: AtomicU64,
    /// The longest round trip of the last requests on the idle path; nanoseconds.
    requests_took: AtomicI64,
    /// By how much opening the session took longer because first segments of connections were not
    /// answered.
    pub(crate) unanswered_for: Span,
    /// TCP connections that were not answered, while others from other ports were.
    pub(crate) unanswered: AtomicU32,
    put_aside: VecDeque<ServerMessage>,
    /// Tests of requests and responses.
    echoes: Vec<u32>,
    /// What is to be said of the caps that these have reached.
    reached_caps: Vec<String>,
    /// Raised when the person wants to stop, or when the responder is gone.
    pub(crate) over: StopFlag,
}

/// How often the connect time is taken.
const CONNECTS: usize = 3;
/// A responder that does not answer a control message for so long is broken, even if it still
/// answers pings.
pub(crate) const ANSWER_PATIENCE: Span = Span::from_secs(4);

impl Session {
    /// Connects and greets. `resolve` is the lookup's time, kept for the record.
    pub(crate) fn open(
        target: &Target,
        version: IpVersion,
        at: SocketAddr,
        resolve: Option<Span>,
        stop: &StopFlag,
    ) -> Result<Self, Failure> {
        let (stream, mut connects) = Connects::begin(connect(target, at)?);
        options::prepare_dialled_control(&stream);
        let resent_before = TcpInfo::read(&stream).map_or(0, |info| info.retransmits);
        let connected_at = clock::now();
        let local = stream.local_addr().ok().map(ZonedIp::of);
        let over = stop.child();
        let failed = |cause| Failure::new("hello", Some(at), cause);
        let nonce = random_token().map_err(failed)?;
        let software = format!("netaware {}", env!("CARGO_PKG_VERSION"));
        let hello = ClientMessage::Hello { version: PROTOCOL_VERSION, software, nonce };
        let mut link = Link::open(stream, at, &hello, target.connect_patience, over.clone())?;
        let welcome = greet(&mut link, target, nonce).map_err(failed)?;
        let greeting = clock::now() - connected_at;
        link.know_the_path();
        let resent = link.tcp_info().map_or(0, |info| info.retransmits);
        set_header(&mut link, &target.options, version, target.connect_patience)
            .map_err(|cause| Failure::new("hello", Some(at), cause))?;
        connects.take_more(target, at)?;
        let Connects { took, in_all, unanswered } = connects;
        let round_trip = link.tcp_info().map(|info| info.min_rtt).filter(|rtt| *rtt > Span::ZERO);
        let reach = Reach { resolve, connects: took, greeting, round_trip };
        let unanswered_for = waited_for_answers(&reach, &in_all);
        if let Some(too_long) = reach.shortest_round_trip().filter(|rtt| *rtt > MAX_ROUND_TRIP) {
            return Err(failed(Cause::TooFar(too_long)));
        }
        let Welcome { token, responder, limits } = welcome;
        Ok(Self {
            version,
            link,
            token,
            responder,
            limits,
            reach,
            greeting: greeting_at_once(greeting, resent_before, resent),
            local,
            interface: local.and_then(|it| it.interface().or_else(|| netaware_host::interface_for(it.at(0)))),
            next_test: 1,
            reserved_until: None,
            gave_back: false,
            has_waited: false,
            udp_unanswered: AtomicU32::new(0),
            udp_came: AtomicU64::new(0),
            requests_lost: AtomicU64::new(0),
            requests_settled: AtomicU64::new(0),
            requests_took: AtomicI64::new(0),
            unanswered_for,
            unanswered: AtomicU32::new(unanswered),
            put_aside: VecDeque::new(),
            echoes: Vec::new(),
            reached_caps: Vec::new(),
            over,
        })
    }

    /// The longest round trip that is known, which patience begins with. The greeting goes to the
    /// responder itself, where a proxy nearby may have accepted the connection.
    pub(crate) fn longest_rtt(&self) -> Option<Span> {
        self.reach.longest_round_trip().max(self.greeting)
    }

    /// So many datagrams have come over UDP, either way.
    pub(crate) fn note_udp(&self, came: u64) {
        self.udp_came.fetch_add(came, Ordering::AcqRel);
    }

    /// How many datagrams are known to have come.
    pub(crate) fn udp_came(&self) -> u64 {
        self.udp_came.load(Ordering::Acquire)
    }

    /// Takes note of what requests on the idle path have shown: what was lost of them, and how long
    /// an answer took at most.
    pub(crate) fn note_requests(&self, loss: Share, took: Span) {
        self.requests_lost.fetch_add(loss.part, Ordering::AcqRel);
        self.requests_settled.fetch_add(loss.of, Ordering::AcqRel);
        if took > Span::ZERO {
            self.requests_took.store(took.0, Ordering::Release);
        }
    }

    /// What has been lost of requests on the idle path so far.
    pub(crate) fn loss(&self) -> Share {
        let part = self.requests_lost.load(Ordering::Acquire);
        Share { part, of: self.requests_settled.load(Ordering::Acquire) }
    }

    /// What a round trip takes now, and rather longer than shorter: as long as the longest one of
    /// the beginning, as answers to pings, and as the last requests. Zero while nothing is known.
    pub(crate) fn latest_rtt(&self) -> Span {
        let requests = Span(self.requests_took.load(Ordering::Acquire));
        let pings = round_trip_now(self.link.round_trip(), self.link.tcp_info().as_ref());
        self.longest_rtt().unwrap_or_default().max(pings).max(requests)
    }

    /// A failure of this session in a stage.
    pub(crate) fn failure(&self, stage: &'static str, cause: Cause) -> Failure {
        Failure::new(stage, Some(self.link.peer()), cause)
    }

    /// Waits in the responder's queue for the right to fill the path. `others` is within which time
    /// this host's other sessions are heard by the responder, as it is now.
    pub(crate) fn reserve(
        &mut self,
        expected: Span,
        join: Option<Token>,
        others: &dyn Fn() -> Span,
        stop: &StopFlag,
        watch: &mut Watch<'_>,
    ) -> Result<Token, Cause> {
        self.link.send(&ClientMessage::Reserve { expected, join })?;
        let own = std::mem::take(&mut self.gave_back);
        let mut queue = Queueing { since: None, own: own.then_some(Span::ZERO) };
        let mut told = None;
        loop {
            if stop.is_raised() {
                return Err(Cause::Stopped);
            }
            queue.expect_own(self.heard_within().max(others()));
            let soon = clock::now() + Span::from_millis(100);
            if queue.for_others(clock::now()).is_some()
                && let Some(queued) = told.take()
            {
                watch.tell(queued);
            }
            match self.link.next(soon)? {
                Some(ServerMessage::Queued { place, expected_wait }) => {
                    queue.since.get_or_insert_with(clock::now);
                    told = Some(Progress::Queued { place, expected_wait });
                }
                Some(ServerMessage::Admitted { reservation, lease }) => {
                    watch.exclude(queue.for_others(clock::now()).unwrap_or_default());
                    self.has_waited |= queue.since.is_some() && !own;
                    // It was granted half a round trip ago, and what is asked for at its end must
                    // still arrive.
                    self.reserved_until = Some(clock::now() + lease - self.round_trip());
                    return Ok(reservation);
                }
                // It was on its way when the place was given back.
                Some(ServerMessage::Error { message, .. }) if message == LEASE_IS_OVER => {}
                // What it says of a test that nobody waits for any longer is not about the place.
                Some(ServerMessage::Error { code, message, test: None, .. }) => {
                    return Err(Cause::Refused(code, message));
                }
                _ => {}
            }
        }
    }

    /// Within which time what this session sends has been answered, as far as is known now: two
    /// round trips, and for as long more as what was sent again is not acknowledged. Nothing is
    /// waited for of a session that has ended.
    pub(crate) fn heard_within(&self) -> Span {
        let info = self.link.tcp_info().filter(|_| self.link.died_at().is_none());
        self.round_trip() * 2 + info.map_or(Span::ZERO, |info| stuck(&info))
    }

    /// Until when throughput tests may run; a time long past where the responder has given the
    /// place to the next.
    pub(crate) fn has_place_until(&self) -> Option<Mono> {
        self.reserved_until.map(|until| if self.link.has_lost_place() { Mono(0) } else { until })
    }

    /// Whether somebody else was measuring when the connect times were taken.
    pub(crate) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Takes the connect times again. Where that fails, those of before stay.
    pub(crate) fn connect_again(&mut self, target: &Target) {
        self.has_waited = false;
        let at = self.link.peer();
        let again = connect(target, at).and_then(|first| {
            let (_, mut connects) = Connects::begin(first);
            connects.take_more(target, at)?;
            Ok(connects)
        });
        let Ok(Connects { took: connects, .. }) = again else { return };
        let round_trip = self.link.tcp_info().map(|info| info.min_rtt).filter(|rtt| *rtt > Span::ZERO);
        self.reach = Reach { connects, round_trip, ..self.reach.clone() };
    }

    /// The round trip of the path without load: what connecting took at best.
    pub(crate) fn round_trip(&self) -> Span {
        self.reach.shortest_round_trip().unwrap_or_default()
    }

    /// Gives that right back before the session ends.
    pub(crate) fn release(&mut self) -> Result<(), Cause> {
        self.reserved_until = None;
        self.gave_back = true;
        self.link.send(&ClientMessage::Release)
    }

    /// Ends a test that nobody waits for any longer.
    pub(crate) fn stop_test(&mut self, test: u32) -> Result<(), Cause> {
        self.link.send(&ClientMessage::Stop { test })
    }

    /// Prepares a test and returns its number once the responder has accepted it. An answer that is
    /// overdue is told to `waits`, with the time for which it is waited for at most.
    pub(crate) fn open_test(&mut self, plan: TestPlan, waits: &mut dyn FnMut(Span)) -> Result<u32, Cause> {
        let test = self.next_test;
        self.next_test += 1;
        if matches!(plan, TestPlan::UdpEcho { .. } | TestPlan::TcpEcho { .. }) {
            self.echoes.push(test);
        }
        self.link.send(&ClientMessage::Open { test, plan })?;
        self.await_test(test, waits, |message| matches!(message, ServerMessage::Opened { .. }))?;
        Ok(test)
    }

    /// Waits until everything of the test is attached.
    pub(crate) fn await_ready(&mut self, test: u32, waits: &mut dyn FnMut(Span)) -> Result<(), Cause> {
        self.await_test(test, waits, |message| matches!(message, ServerMessage::Ready { .. }))
    }

    /// Lets a prepared test begin, and waits until it has.
    pub(crate) fn start_test(&mut self, test: u32, waits: &mut dyn FnMut(Span)) -> Result<(), Cause> {
        self.link.send(&ClientMessage::Start { test })?;
        self.await_test(test, waits, |message| matches!(message, ServerMessage::Started { .. }))
    }

    /// The next message, those first that came while something else was awaited.
    pub(crate) fn next(&mut self, until: Mono) -> Result<Option<ServerMessage>, Cause> {
        if let Some(message) = self.put_aside.pop_front() {
            return Ok(Some(message));
        }
        let message = self.link.next(until)?;
        if let Some(message) = &message {
            self.note_cap(message);
        }
        Ok(message)
    }

    /// Takes note of a cap of the responder's owner that a running test of requests has reached.
    fn note_cap(&mut self, message: &ServerMessage) {
        if let ServerMessage::Error { code: ErrorCode::Cap, message, test: Some(test), .. } = message
            && self.echoes.contains(test)
            && let Some(words) = cap_in_words(&self.limits, message)
            && !self.reached_caps.contains(&words)
        {
            self.reached_caps.push(words);
        }
    }

    /// What is to be said of caps that were reached since the last call.
    pub(crate) fn take_reached_caps(&mut self) -> Vec<String> {
        std::mem::take(&mut self.reached_caps)
    }

    /// Whether the responder is still there, as far as is known at this moment.
    pub(crate) fn check(&mut self) -> Result<(), Cause> {
        self.check_for(Span::ZERO)
    }

    /// Whether it is still there when so much time has passed.
    pub(crate) fn check_for(&mut self, patience: Span) -> Result<(), Cause> {
        let until = clock::now() + patience;
        while let Some(message) = self.link.next(until)? {
            self.note_cap(&message);
            self.put_aside.push_back(message);
        }
        Ok(())
    }

    /// How long an answer may take: the responder's own time, round trips of the control connection
    /// as they are now, queues included, and for how long the question has not even arrived. A
    /// responder that is gone is found out by its silence, and not by this.
    pub(crate) fn patience(&self) -> Span {
        let usual = Patience::following(ANSWER_PATIENCE).knowing(self.longest_rtt()).span();
        self.link.tcp_info().map_or(usual, |info| patience_for(&info).max(usual))
    }

    /// Messages of other tests, which may be running already, are put aside in their order.
    fn await_test(
        &mut self,
        test: u32,
        waits: &mut dyn FnMut(Span),
        done: impl Fn(&ServerMessage) -> bool,
    ) -> Result<(), Cause> {
        let asked_at = clock::now();
        let mut is_said = false;
        loop {
            let Some(message) = self.link.next(clock::now() + LOOK_UP)? else {
                let (patience, waited) = (self.patience(), clock::now() - asked_at);
                if waited > patience {
                    return Err(Cause::Silent(patience));
                }
                if is_overdue(waited, self.round_trip()) && !is_said {
                    is_said = true;
                    waits((patience.max(self.link.silence_allowed()) - waited).or_zero());
                }
                continue;
            };
            if test_of(&message) != Some(test) {
                self.note_cap(&message);
                self.put_aside.push_back(message);
                continue;
            }
            if done(&message) {
                return Ok(());
            }
            if let ServerMessage::Error { code, message, .. } = message {
                return Err(Cause::refused(code, message, Some(test)));
            }
        }
    }
}

/// What a person is told of the cap that a test of requests has reached. Its name is in the
/// responder's message.
fn cap_in_words(limits: &Limits, message: &str) -> Option<String> {
    if message.contains("cap for bytes") {
        return limits.bytes.map(|most| {
            format!(
                "the responder's owner allows no more than {most} in a test of requests: it ended early, and what was \
                 asked after that had no answer"
            )
        });
    }
    limits.rate.map(|most| {
        format!(
            "the responder's owner allows no more than {most} of requests and responses in all: the responder held back \
             what was above it, so the network neither lost nor delayed all of what counts as lost or late"
        )
    })
}

/// Whether an answer takes so long that a person who waits wants to know.
fn is_overdue(waited: Span, round_trip: Span) -> bool {
    waited > round_trip * ROUND_TRIPS + OVERDUE
}

/// See [`Session::patience`].
fn patience_for(info: &TcpInfo) -> Span {
    (ANSWER_PATIENCE + info.rtt * ROUND_TRIPS + unheard(info)).min(LONGEST_PATIENCE)
}

/// What a round trip takes by the answers to pings. One that was lost, or met an outage, came late
/// all the same: TCP takes no such time for a round trip, and tells how far they vary.
fn round_trip_now(pings: Span, info: Option<&TcpInfo>) -> Span {
    let of_tcp = info.filter(|info| info.rtt > Span::ZERO).map(|info| info.rtt + info.rtt_var * DEVIATIONS);
    of_tcp.map_or(pings, |of_tcp| pings.min(of_tcp))
}

/// For how long nothing that was sent has been acknowledged.
fn unheard(info: &TcpInfo) -> Span {
    if info.unacked > 0 { info.since_ack } else { Span::ZERO }
}

/// The same where some of it was sent again already: on a path that works, a message is without its
/// acknowledgement for a round trip, and the last one before it is a ping's distance old.
fn stuck(info: &TcpInfo) -> Span {
    if info.backoff > 0 { unheard(info) } else { Span::ZERO }
}

/// A wait in the responder's queue. The places that this end has just given back, over all of its
/// sessions, are nobody else's: they are waited for first.
struct Queueing {
    since: Option<Mono>,
    /// Until these are free, where there are such places.
    own: Option<Span>,
}

impl Queueing {
    /// The responder hears within so much time that the last of them was given back.
    fn expect_own(&mut self, heard_within: Span) {
        self.own = self.own.map(|own| own.max(heard_within + WIND_DOWN));
    }

    /// For how long other people's measurements have been waited for.
    fn for_others(&self, now: Mono) -> Option<Span> {
        let waited = now - self.since? - self.own.unwrap_or_default();
        (waited >= Span::ZERO).then_some(waited)
    }
}

/// The responder lets running tests end for so long before the place is free.
const WIND_DOWN: Span = Span::from_secs(1);
/// As TCP itself has it (RFC 6298 §2.3).
const DEVIATIONS: i64 = 4;
/// There and back, and the same again for a segment that is lost.
const ROUND_TRIPS: i64 = 3;
/// Whatever the path: a person waits for it.
const LONGEST_PATIENCE: Span = Span::from_secs(30);
/// How often the patience is reckoned again while an answer is awaited.
const LOOK_UP: Span = Span::from_millis(250);
/// An answer that was lost has come again after less.
const OVERDUE: Span = Span::from_secs(1);

/// Has the responder send with the header fields that this end sends with; says nothing where none
/// are asked for.
fn set_header(
    link: &mut Link,
    options: &SocketOptions,
    version: IpVersion,
    patience: Span,
) -> Result<(), Cause> {
    let patience = patience.max(ANSWER_PATIENCE);
    let flow_label = options.flow_label.filter(|_| version == IpVersion::V6);
    let header = HeaderFields { dscp: options.dscp, ttl: options.ttl, flow_label };
    if header.is_empty() {
        return Ok(());
    }
    link.send(&ClientMessage::SetHeader { header })?;
    match link.next(clock::now() + patience)? {
        Some(ServerMessage::HeaderSet) => Ok(()),
        Some(ServerMessage::Error { code, message, .. }) => Err(Cause::Refused(code, message)),
        Some(other) => Err(Cause::Protocol(format!("it answered 'set_header' with {other:?}"))),
        None => Err(Cause::Silent(patience)),
    }
}

/// The test that a message concerns.
pub(crate) fn test_of(message: &ServerMessage) -> Option<u32> {
    match message {
        ServerMessage::Opened { test }
        | ServerMessage::Ready { test }
        | ServerMessage::Started { test }
        | ServerMessage::ReceiverTicks { test, .. }
        | ServerMessage::SenderTicks { test, .. }
        | ServerMessage::StreamEnds { test, .. }
        | ServerMessage::Bins { test, .. }
        | ServerMessage::Arrivals { test, .. }
        | ServerMessage::StreamSamples { test, .. }
        | ServerMessage::VolleyTimes { test, .. }
        | ServerMessage::Finished { test, .. } => Some(*test),
        ServerMessage::Error { test, .. } => *test,
        _ => None,
    }
}

fn connect(target: &Target, at: SocketAddr) -> Result<Dialled<TcpStream>, Failure> {
    dial(at, &control_options(&target.options), target.connect_patience)
        .map_err(|e| Failure::new("connect", Some(at), connect_cause(&e, target.connect_patience)))
}

/// Segments that pass wherever IPv6 does: on a path that swallows larger ones the session goes on,
/// and can say so.
fn control_options(options: &SocketOptions) -> SocketOptions {
    let mss = if cfg!(target_os = "linux") { Some(CONTROL_MSS) } else { None };
    SocketOptions { mss, ..options.clone() }
}

/// 1280 bytes of IPv6 (RFC 8200 §5) with TCP's header.
const CONTROL_MSS: u32 = 1280 - 40 - 20;

/// What the connections showed whose time was taken.
struct Connects {
    /// What each took.
    took: Vec<Span>,
    /// The same with the attempts before it, from other ports, which were not answered.
    in_all: Vec<Span>,
    /// How many attempts that were.
    unanswered: u32,
}

impl Connects {
    fn begin(first: Dialled<TcpStream>) -> (TcpStream, Self) {
        let Dialled { stream, took, in_all, unanswered } = first;
        (stream, Self { took: vec![took], in_all: vec![in_all], unanswered })
    }

    /// Further connections are only timed, and only once a netaware responder has answered: servers
    /// of other protocols, one client at a time, would be upset by them and could no longer be
    /// named.
    fn take_more(&mut self, target: &Target, at: SocketAddr) -> Result<(), Failure> {
        for _ in 1..CONNECTS {
            let Dialled { took, in_all, unanswered, .. } = connect(target, at)?;
            self.took.push(took);
            self.in_all.push(in_all);
            self.unanswered += unanswered;
        }
        Ok(())
    }
}

/// A greeting that was sent again took TCP's time-out, and tells nothing of the path's round trip.
/// The responder's first answer may come late all the same, where no segment was sent again.
fn greeting_at_once(took: Span, resent_before: u64, resent: u64) -> Option<Span> {
    (resent <= resent_before).then_some(took)
}

/// How long connections that took so long, in all, have waited because first segments were not
/// answered.
fn waited_for_answers(reach: &Reach, in_all: &[Span]) -> Span {
    in_all.iter().filter_map(|took| reach.resent_for(*took)).sum()
}

fn connect_cause(e: &ConnectError, patience: Span) -> Cause {
    use std::io::ErrorKind::{AddrNotAvailable, ConnectionRefused, TimedOut, WouldBlock};
    match e {
        ConnectError::System { operation: options::BIND, source, .. }
            if source.kind() == AddrNotAvailable =>
        {
            Cause::Address(format!("{e}; --bind wants an address of this host"))
        }
        ConnectError::System { source, .. } => match source.kind() {
            ConnectionRefused => Cause::ConnectionRefused,
            TimedOut | WouldBlock => Cause::Silent(patience),
            _ => Cause::System(source.to_string()),
        },
        ConnectError::NotSent { source, .. } => Cause::NotSent(report::refusal_of(source)),
        ConnectError::Option { source, .. } => Cause::System(source.to_string()),
    }
}

struct Welcome {
    token: Token,
    responder: HostInfo,
    limits: Limits,
}

/// What answers the hello: the challenge if there is one, and the welcome.
fn greet(link: &mut Link, target: &Target, nonce: Token) -> Result<Welcome, Cause> {
    let until = clock::now() + target.connect_patience;
    let mut expected_proof = None;
    loop {
        match link.next(until)? {
            None => return Err(Cause::Silent(target.connect_patience)),
            Some(ServerMessage::Challenge { nonce: theirs }) => {
                let key = target.key.as_deref().ok_or(Cause::KeyNeeded)?;
                expected_proof = Some(proof::server(key, theirs, nonce));
                link.send(&ClientMessage::Authenticate { proof: proof::client(key, theirs, nonce) })?;
            }
            Some(ServerMessage::Welcome { token, proof, host, limits, .. }) => {
                check_responder(target, expected_proof.as_deref(), proof.as_deref())?;
                return Ok(Welcome { token, responder: *host, limits });
            }
            Some(ServerMessage::Error { code, message, versions, .. }) => {
                return Err(refusal(code, message, &versions));
            }
            Some(_) => return Err(Cause::Protocol("something else than a welcome".into())),
        }
    }
}

/// With a key, both sides prove themselves: a responder that does not ask for it is an impostor or
/// misconfigured.
fn check_responder(target: &Target, expected: Option<&str>, given: Option<&str>) -> Result<(), Cause> {
    match (target.key.is_some(), expected, given) {
        (false, ..) => Ok(()),
        (true, Some(expected), Some(given)) if proof::matches(expected, given) => Ok(()),
        (true, ..) => Err(Cause::FalseResponder),
    }
}

fn refusal(code: ErrorCode, message: String, versions: &[u16]) -> Cause {
    if code == ErrorCode::Version && !versions.is_empty() {
        let spoken = versions.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let text =
            format!("{message} (it speaks protocol version {spoken}, this is version {PROTOCOL_VERSION})");
        return Cause::Refused(code, text);
    }
    Cause::Refused(code, message)
}

fn random_token() -> Result<Token, Cause> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| Cause::System(format!("no random numbers: {e}")))?;
    Ok(Token(bytes))
}

/// A deadline for everything that must not outlive a phase.
pub(crate) fn phase_deadline(duration: Span) -> Mono {
    clock::now() + duration + ANSWER_PATIENCE
}

#[cfg(test)]
mod tests {
    use netaware_units::{BitRate, ByteCount};

    use super::*;

    fn at(ms: i64) -> Mono {
        Mono(0) + Span::from_millis(ms)
    }

    /// What the responder holds back looks like a loss.
    #[test]
    fn a_cap_that_holds_requests_back_is_named_and_the_network_is_not_blamed() {
        let limits =
            Limits { rate: Some(BitRate(1_000_000)), bytes: Some(ByteCount(1_000_000)), ..Limits::default() };
        let said = |message| cap_in_words(&limits, message).unwrap();
        let rate = said("the responder's cap for rate is 1.00 Mbit/s for all echoes together: requests wait");
        assert!(
            rate.starts_with("the responder's owner allows no more than 1.00 Mbit/s of requests"),
            "{rate}"
        );
        assert!(rate.contains("held back"), "{rate}");
        let bytes = said("the responder's cap for bytes is 977 KiB");
        assert!(bytes.starts_with("the responder's owner allows no more than 977 KiB in a test"), "{bytes}");
        assert_eq!(cap_in_words(&Limits::default(), "the responder's cap for rate is 0 bit/s"), None);
    }

    /// A version of 20 ms waited behind the place of one of 2.5 s, which was its own, "for another
    /// measurement".
    #[test]
    fn a_place_that_this_end_has_given_back_itself_is_not_somebody_elses() {
        let mut queue = Queueing { since: Some(at(0)), own: Some(Span::ZERO) };
        queue.expect_own(Span::from_millis(40));
        assert_eq!(queue.for_others(at(1030)), None);
        assert_eq!(queue.for_others(at(1100)), Some(Span::from_millis(60)));
        queue.expect_own(Span::from_secs(5));
        assert_eq!(queue.for_others(at(5900)), None);
        // What was sent into an outage arrives behind it: what was known of that stays.
        queue.expect_own(Span::from_millis(40));
        assert_eq!(queue.for_others(at(5900)), None);
        assert_eq!(queue.for_others(at(7000)), Some(Span::from_secs(1)));
    }

    #[test]
    fn the_time_that_a_lost_syn_cost_is_known_with_the_attempts_from_other_ports() {
        let millis = Span::from_millis;
        let reach = Reach {
            resolve: None,
            connects: [1020, 20, 22].map(millis).to_vec(),
            greeting: millis(20),
            round_trip: Some(millis(20)),
        };
        assert_eq!(waited_for_answers(&reach, &[2520, 20, 22].map(millis)), millis(2500));
        assert_eq!(waited_for_answers(&reach, &[20, 20, 22].map(millis)), Span::ZERO);
    }

    /// A hello that was lost made a path of 20 ms one of 600 ms, with the patience of such a path.
    #[test]
    fn a_greeting_that_was_sent_again_is_no_round_trip() {
        let took = Span::from_millis(620);
        assert_eq!(greeting_at_once(took, 0, 1), None);
        // The SYN was sent again, and the greeting was not: a proxy may have accepted it nearby.
        assert_eq!(greeting_at_once(took, 1, 1), Some(took));
    }

    #[test]
    fn a_ping_that_was_lost_is_no_longer_round_trip_and_one_that_rose_is() {
        let ms = Span::from_millis;
        let info = |rtt, rtt_var| TcpInfo { rtt: ms(rtt), rtt_var: ms(rtt_var), ..TcpInfo::default() };
        assert_eq!(round_trip_now(ms(2100), Some(&info(60, 10))), ms(100));
        // The first answer of 3 s on a path of 40 ms.
        assert_eq!(round_trip_now(ms(3000), Some(&info(410, 745))), ms(3000));
        assert_eq!(round_trip_now(ms(3000), Some(&info(0, 0))), ms(3000));
        assert_eq!(round_trip_now(ms(3000), None), ms(3000));
    }

    #[test]
    fn a_message_that_has_just_left_is_not_stuck() {
        let since_ack = Span::from_secs(1);
        let just_left = TcpInfo { unacked: 1, since_ack, ..TcpInfo::default() };
        assert_eq!((stuck(&just_left), unheard(&just_left)), (Span::ZERO, since_ack));
        assert_eq!(stuck(&TcpInfo { backoff: 1, ..just_left }), since_ack);
        assert_eq!(stuck(&TcpInfo { backoff: 1, unacked: 0, ..just_left }), Span::ZERO);
    }

    #[test]
    fn who_gave_nothing_back_waits_for_others_from_the_first_moment() {
        let mut queue = Queueing { since: None, own: None };
        queue.expect_own(Span::from_secs(5));
        assert_eq!(queue.for_others(at(100)), None);
        queue.since = Some(at(100));
        assert_eq!(queue.for_others(at(100)), Some(Span::ZERO));
        assert_eq!(queue.for_others(at(300)), Some(Span::from_millis(200)));
    }
}
