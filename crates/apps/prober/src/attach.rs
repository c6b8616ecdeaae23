//! Joining data connections and UDP flows to a test of a session.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;

use netaware_io::clock;
use netaware_io::options::{self, ConnectError, SocketOptions};
use netaware_io::probe_socket::is_refusal;
use netaware_io::stop::StopFlag;
use netaware_io::timeout::is_timeout;
use netaware_probe::compare::Share;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::datagram::{Header, Kind, Setup};
use netaware_wire::preface::{ATTACHED, Attach, Preface, Role};

use crate::dial::{self, Dialled};
use crate::heavy_loss;
use crate::report;
use crate::session::Session;
use crate::stage::Cause;

/// A UDP datagram of the set-up is repeated this often, at growing distances. Where none is
/// answered, UDP counts as blocked if TCP lost nothing and was heard all the time; if not, all are
/// asked once more. On a path that was seen to lose requests there are more of them.
const KNOCK_WAITS: [Span; 6] = [
    Span::from_millis(100),
    Span::from_millis(200),
    Span::from_millis(400),
    Span::from_millis(600),
    Span::from_millis(600),
    Span::from_millis(600),
];

/// For connecting and for the answer, each: a first segment that is lost on a round trip of 1.2 s
/// comes after 3.6 s, a second one after 7.2 s more.
const ATTACH_PATIENCE: Span = Span::from_secs(8);

/// How many connections of `count` are made one after the other, the others beside them.
pub(crate) fn connects_in_turn(count: u16) -> i64 {
    i64::from(count.div_ceil(AT_A_TIME))
}

/// The same on this path: connecting and attaching take a round trip each.
fn attach_patience(session: &Session) -> Span {
    ATTACH_PATIENCE.max(session.patience())
}

/// How long each datagram of the set-up is waited for: so many, and then one in each round trip for
/// as long as an answer may take on this path.
fn knock_waits(count: usize, patience: Span, round_trip: Span) -> impl Iterator<Item = Span> {
    let usual: Span = first_waits(count).sum();
    let each = round_trip.max(LEAST_BETWEEN);
    let more = std::iter::successors(Some((patience - usual).or_zero()), move |left| Some(*left - each));
    let more = more.take_while(|left| *left > Span::ZERO).map(move |left| left.min(each));
    first_waits(count).chain(more)
}

fn first_waits(count: usize) -> impl Iterator<Item = Span> {
    KNOCK_WAITS.into_iter().chain(std::iter::repeat(LATER_WAIT)).take(count)
}

/// How many questions it takes, `usual` at least, that all of them, or their answers, are rarely
/// lost where this share is.
fn questions(loss: Share, usual: usize) -> usize {
    if !heavy_loss::is_heavy(loss) {
        return usual;
    }
    let share = loss.part as f64 / loss.of as f64;
    let all_lost = |count: &usize| share.powf(*count as f64);
    (usual..MOST_KNOCKS).find(|count| all_lost(count) <= SELDOM).unwrap_or(MOST_KNOCKS)
}

/// Why questions may have had no answer within this time although UDP passes.
fn excuse(questions: usize, waited: Span, round_trip: Span, loss: Share) -> Option<Cause> {
    if round_trip * 2 > waited {
        return Some(Cause::UdpTooSlow { waited, round_trip });
    }
    let Share { part: lost, of } = loss;
    heavy_loss::is_heavy(loss).then_some(Cause::UdpLost { questions, lost, of })
}

/// How long opening a UDP flow takes at most where nothing is answered: its first question is all,
/// and it may be asked once more, while the responder waits.
pub(crate) fn entry_patience(session: &Session) -> Span {
    let patience = flow_patience(session);
    let count = questions(session.loss(), KNOCK_WAITS.len());
    let once: Span = knock_waits(count, patience, session.latest_rtt()).sum();
    (once * 2).min(responder_waits(session.latest_rtt()))
}

/// Where a round trip takes long, the usual repetitions are over before the first answer.
fn flow_patience(session: &Session) -> Span {
    let round_trip = session.latest_rtt();
    if round_trip > SLOW { session.patience().max(round_trip * ANSWERED_IN) } else { Span::ZERO }
}

/// Within which time after the first question of a flow it is of use to ask for it once more. The
/// responder counts from `opened`, which takes half a round trip to this end, and the flow enters
/// one and a half after the first question. It knows the round trip that the session began with,
/// and need not have noticed yet that it is another one now.
fn asked_twice_within(at_first: Span, now: Span) -> Span {
    if now <= SLOW {
        return ASKED_TWICE_WITHIN;
    }
    responder_waits(at_first) - now * 2 - LEAST_BETWEEN
}

/// For how long a responder waits for the flow of a test that it has opened, if it knows of a round
/// trip that takes so long.
fn responder_waits(round_trip: Span) -> Span {
    RESPONDER_WAITS.max(round_trip * RESPONDER_ROUND_TRIPS)
}

/// How long a question is waited for of which so much time is `left` until the responder forgets
/// its test. Then it is of no use to ask on.
fn waited_for(wait: Span, left: Span) -> Option<Span> {
    Some(wait.min(left)).filter(|wait| *wait > Span::ZERO)
}

/// Opens `count` data connections of a test, some at a time: one after the other they would take
/// two round trips each.
pub(crate) fn streams(
    session: &Session,
    options: &SocketOptions,
    test: u32,
    count: u16,
    role: Role,
) -> Result<Vec<TcpStream>, Cause> {
    let (at, token) = (session.link.peer(), session.token);
    let patience = attach_patience(session);
    let (counted, over) = (&session.unanswered, &session.over);
    let round_trip = session.round_trip();
    let open = |stream| {
        let attach = Attach { token, test, stream };
        let (stream, unanswered) = one_stream(at, options, attach, role, patience, (round_trip, over))?;
        counted.fetch_add(unanswered, Ordering::AcqRel);
        Ok(stream)
    };
    let mut opened = Vec::with_capacity(usize::from(count));
    for first in (0..count).step_by(usize::from(AT_A_TIME)) {
        let group = first..count.min(first + AT_A_TIME);
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = group.map(|stream| scope.spawn(move || open(stream))).collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|done| done.unwrap_or_else(|_| Err(Cause::System("a thread panicked".into()))))
                .collect()
        });
        for result in results {
            opened.push(result.inspect_err(|cause| await_end_behind(session, cause))?);
        }
    }
    Ok(opened)
}

/// Each has a thread of its own for a moment. The responder waits ten seconds for all of them: a
/// test of 512 streams has these within 15 round trips.
const AT_A_TIME: u16 = 64;

fn one_stream(
    at: SocketAddr,
    options: &SocketOptions,
    attach: Attach,
    role: Role,
    patience: Span,
    (round_trip, over): (Span, &StopFlag),
) -> Result<(TcpStream, u32), Cause> {
    let dialled = dial::dial_until(at, options, patience, over);
    let Dialled { mut stream, unanswered, .. } =
        dialled.map_err(|e| why_not_connected(&e, attach.stream, patience, over))?;
    let accepted_at = clock::now() + round_trip / 2;
    let system = |e: std::io::Error| Cause::System(format!("data connection {}: {e}", attach.stream));
    stream.set_read_timeout(Some(LOOKS_EACH.to_std())).map_err(system)?;
    let mut opening = Vec::with_capacity(36);
    opening.extend_from_slice(&Preface::new(role).emit());
    opening.extend_from_slice(&attach.emit());
    stream.write_all(&opening).map_err(system)?;
    await_acceptance(&mut stream, attach.stream, accepted_at, patience, over)?;
    stream.set_read_timeout(None).map_err(system)?;
    Ok((stream, unanswered))
}

/// Waits for the one byte that says that the responder has taken the connection. Reading returns
/// now and then while nothing comes. The responder knows of the connection since `accepted_at`.
fn await_acceptance(
    connection: &mut impl Read,
    number: u16,
    accepted_at: Mono,
    patience: Span,
    over: &StopFlag,
) -> Result<(), Cause> {
    let until = clock::now() + patience;
    let mut answer = [0];
    loop {
        match connection.read(&mut answer) {
            Ok(0) => {
                let what = "closed before it was accepted";
                return Err(turned_away(number, what, clock::now() - accepted_at));
            }
            Ok(_) if answer[0] == ATTACHED => return Ok(()),
            Ok(_) => return Err(turned_away(number, "not accepted", clock::now() - accepted_at)),
            Err(e) if !is_timeout(&e) => {
                return Err(Cause::System(format!("data connection {number}: {e}")));
            }
            Err(_) if over.is_raised() => return Err(Cause::Stopped),
            Err(_) if clock::now() >= until => return Err(no_answer(number, patience)),
            Err(_) => {}
        }
    }
}

/// A responder waits for what a connection is for some seconds only since it accepted it, and for
/// all connections of a test. What it turns away so long `after` that was late, and it keeps to the
/// protocol.
fn turned_away(number: u16, what: &str, after: Span) -> Cause {
    if after < RESPONDER_READS {
        return Cause::Protocol(format!("data connection {number} was {what}"));
    }
    Cause::AttachTimedOut(format!(
        "data connection {number} was {what}, after {after}: what it began with was not there in time"
    ))
}

fn why_not_connected(error: &ConnectError, number: u16, patience: Span, over: &StopFlag) -> Cause {
    if over.is_raised() {
        Cause::Stopped
    } else if dial::is_unanswered(error) {
        no_answer(number, patience)
    } else {
        Cause::System(error.to_string())
    }
}

fn no_answer(number: u16, patience: Span) -> Cause {
    Cause::System(format!("data connection {number} had no answer within {patience}"))
}

/// Waits a little for the end of the session where a data connection was turned away: a responder
/// that does not know the session any more does that, and what it said when it gave the session up
/// may still be on its way.
fn await_end_behind(session: &Session, cause: &Cause) {
    let is_turned_away = matches!(cause, Cause::Protocol(_) | Cause::AttachTimedOut(_));
    let until = clock::now() + session.link.allowance() + GOODBYE;
    while is_turned_away && !session.over.is_raised() && clock::now() < until {
        clock::sleep(LOOKS_EACH);
    }
}

/// How often it is looked whether the session is over.
const LOOKS_EACH: Span = Span::from_millis(50);
/// A segment that was lost has been sent again by then.
const GOODBYE: Span = Span::from_secs(1);

/// A round trip that the usual repetitions do not leave room for twice.
const SLOW: Span = Span::from_millis(600);

/// An attached UDP flow.
pub(crate) struct Flow {
    pub(crate) socket: UdpSocket,
    pub(crate) number: u32,
    /// Datagrams of the set-up that had to be sent again.
    pub(crate) repeats: u64,
    /// The longest that an answer of the set-up took, from its first question on.
    pub(crate) rtt: Span,
}

/// Opens a flow of a test that the responder has accepted. Where that fails, the test is ended: the
/// responder would go on to wait for its flow. Where nothing was answered and all is asked once
/// more, `asks_again` is told before how long that takes at most.
pub(crate) fn flow(
    session: &mut Session,
    options: &SocketOptions,
    test: u32,
    asks_again: &mut dyn FnMut(Span),
) -> Result<Flow, Cause> {
    let flow = open_flow(session, options, test, asks_again);
    if flow.is_err() && !session.over.is_raised() {
        // Why there is no flow is known; what else has failed shows with the next message.
        let _ = session.stop_test(test);
    }
    flow
}

/// Knocks, repeats the cookie, and gets a flow number. Where nothing was answered before it asks
/// less, and where UDP is known to be blocked, it does not ask any more: each try takes seconds. A
/// try that the loss or the round trip of the path explains shows nothing of UDP by itself, and
/// behind two tries in a row there are no more.
fn open_flow(
    session: &Session,
    options: &SocketOptions,
    test: u32,
    asks_again: &mut dyn FnMut(Span),
) -> Result<Flow, Cause> {
    let found = session.udp_unanswered.load(Ordering::Acquire);
    if found >= ENOUGH_FINDINGS {
        return Err(since_answered(Cause::UdpBlocked, session.udp_came()));
    }
    let loss = session.loss();
    let usual = if found > 0 { FEW_KNOCKS } else { KNOCK_WAITS.len() };
    let count = questions(loss, usual);
    let mut began_at = clock::now();
    // The responder does not wait for ever for the answer to its cookie.
    let until = began_at + responder_waits(session.latest_rtt());
    let mut hearing = Hearing::new(began_at);
    let repeated = repeated(session);
    let mut entered = enter(session, options, test, (count, until), &mut hearing);
    let mut in_vain = 0;
    let loses = || heavy_loss::is_heavy(loss) || loses(session, repeated);
    let is_proven = |hearing: &Hearing| hearing.shows_that_udp_is_blocked(loses());
    let at_first = session.longest_rtt().unwrap_or_default();
    let still_waits = asked_twice_within(at_first, session.latest_rtt());
    let may_ask_twice = found == 0 && clock::now() - began_at < still_waits;
    let excuse_of = |since: Mono| excuse(count, clock::now() - since, session.latest_rtt(), loss);
    let is_clear = is_proven(&hearing) && excuse_of(began_at).is_none();
    if matches!(entered, Err(Cause::UdpBlocked)) && may_ask_twice && !is_clear {
        in_vain = count as u64;
        let longer: Span = knock_waits(count, flow_patience(session), session.latest_rtt()).sum();
        asks_again(longer.min(until - clock::now()).or_zero());
        let first_at = std::mem::replace(&mut began_at, clock::now());
        hearing = Hearing::new(began_at);
        entered = enter(session, options, test, (count, until), &mut hearing);
        if matches!(entered, Err(Cause::UdpBlocked)) && !session.link.heard_since(began_at) {
            // The control connection is silent as well: the path has failed, and not UDP alone.
            return Err(Cause::UdpAndTcpSilent(clock::now() - first_at));
        }
    }
    let cause = match entered {
        Ok(flow) => {
            session.note_udp(ANSWERS_OF_AN_ENTRY);
            session.udp_unanswered.store(0, Ordering::Release);
            return Ok(Flow { repeats: flow.repeats + in_vain, ..flow });
        }
        Err(Cause::UdpBlocked) => excuse_of(began_at).unwrap_or(Cause::UdpBlocked),
        Err(cause) => cause,
    };
    if !session.link.heard_since(began_at) {
        return Err(cause);
    }
    session.udp_unanswered.store(findings(found, &cause, is_proven(&hearing)), Ordering::Release);
    Err(since_answered(cause, session.udp_came()))
}

/// How many times in a row UDP has had no answer while TCP was heard, after `found` times and one
/// more that ended like this. One that the path explains is not certain, and counts all the same:
/// otherwise each flow of a measurement would be asked for to the end.
fn findings(found: u32, cause: &Cause, is_proven: bool) -> u32 {
    match cause {
        Cause::UdpRejected(_) => ENOUGH_FINDINGS,
        Cause::UdpBlocked if is_proven => ENOUGH_FINDINGS,
        Cause::UdpBlocked | Cause::UdpLost { .. } | Cause::UdpTooSlow { .. } => found + 1,
        _ => found,
    }
}

/// Whether it is of use to ask once more for a flow of datagrams.
pub(crate) fn may_ask_again(session: &Session) -> bool {
    session.udp_unanswered.load(Ordering::Acquire) < ENOUGH_FINDINGS
}

/// How many segments of the control connection have been sent again.
fn repeated(session: &Session) -> u64 {
    session.link.tcp_info().map_or(0, |info| info.retransmits)
}

/// Whether the path has been seen to lose packets since so many had been `repeated`.
fn loses(session: &Session, before: u64) -> bool {
    repeated(session) > before || session.unanswered.load(Ordering::Acquire) > 0
}

/// When the control connection was heard while questions were asked over UDP.
struct Hearing {
    looked_at: Mono,
    /// Since when nothing has come.
    silent_since: Mono,
    longest_silence: Span,
    was_heard: bool,
}

impl Hearing {
    fn new(now: Mono) -> Self {
        Self { looked_at: now, silent_since: now, longest_silence: Span::ZERO, was_heard: false }
    }

    /// Takes note whether something has come since the last look.
    fn look(&mut self, now: Mono, is_heard: bool) {
        if is_heard {
            (self.silent_since, self.was_heard) = (now, true);
        }
        self.longest_silence = self.longest_silence.max(now - self.silent_since);
        self.looked_at = now;
    }

    /// Questions without an answer show something of UDP where TCP came all the time, and nothing
    /// was lost of it: in an outage, and by chance, they are lost all the same.
    fn shows_that_udp_is_blocked(&self, loses: bool) -> bool {
        !loses && self.was_heard && self.longest_silence < OUTAGE
    }
}

/// Of a control connection on a path that works something comes every 1.25 s; an outage that all
/// questions fall into lasts 1.9 s.
const OUTAGE: Span = Span::from_millis(1600);
/// A second time this many questions are enough. They are asked and waited for during 1.3 s, in
/// which something comes of a control connection.
const FEW_KNOCKS: usize = 4;
/// Nothing was answered so many times in a row, or it is certain that nothing will be: it is not
/// asked any more.
const ENOUGH_FINDINGS: u32 = 2;
/// A responder waits for so long for the first bytes of a connection.
const RESPONDER_READS: Span = Span::from_secs(6);
/// How long a responder waits for a flow: as long as so many round trips, and this at least.
const RESPONDER_WAITS: Span = Span::from_secs(10);
const RESPONDER_ROUND_TRIPS: i64 = 4;
/// On a path that is not slow: all questions of a second time, two times 2.5 s, fit behind it.
const ASKED_TWICE_WITHIN: Span = Span::from_secs(4);
/// Where a path loses much, each question behind the usual ones.
const LATER_WAIT: Span = Span::from_millis(600);
/// These take 6.1 s, and are over while the responder waits.
const MOST_KNOCKS: usize = 12;
/// All questions in a row are lost by chance.
const SELDOM: f64 = 0.001;
/// Round trips that a question is asked and waited for at least, where they take long.
const ANSWERED_IN: i64 = 3;
/// Between questions that are repeated for longer than usual.
const LEAST_BETWEEN: Span = Span::from_secs(1);

/// A cookie and a number.
const ANSWERS_OF_AN_ENTRY: u64 = 2;

/// The same cause where UDP was answered before: its port is open, and it has ceased.
fn since_answered(cause: Cause, answers: u64) -> Cause {
    match cause {
        Cause::UdpBlocked if answers > 0 => Cause::UdpCeased(answers, None),
        Cause::UdpRejected(why) if answers > 0 => Cause::UdpCeased(answers, Some(why)),
        cause => cause,
    }
}

fn enter(
    session: &Session,
    options: &SocketOptions,
    test: u32,
    (count, until): (usize, Mono),
    hearing: &mut Hearing,
) -> Result<Flow, Cause> {
    let socket =
        options::connect_udp(session.link.peer(), options).map_err(|e| Cause::System(e.to_string()))?;
    let knock = Setup { token: session.token, test, cookie: Token::default() };
    let waits: Vec<Span> = knock_waits(count, flow_patience(session), session.latest_rtt()).collect();
    let mut asking = Asking { session, socket: &socket, test, waits: &waits, until, hearing };
    let cookie = asking.ask(&knock.emit_request(Kind::Knock), Kind::Cookie)?;
    let enter = Setup { cookie: cookie.setup.cookie, ..knock };
    let entered = asking.ask(&enter.emit_request(Kind::Enter), Kind::Entered)?;
    socket.set_read_timeout(None).map_err(|e| Cause::System(e.to_string()))?;
    let rtt = cookie.rtt.max(entered.rtt);
    Ok(Flow { socket, number: entered.flow, repeats: cookie.repeats + entered.repeats, rtt })
}

struct Answer {
    flow: u32,
    setup: Setup,
    repeats: u64,
    rtt: Span,
}

/// What became of questions on their way out of this host.
#[derive(Default)]
struct Leaving {
    has_sent: bool,
    /// Those that a firewall of this host has dropped.
    dropped_here: u32,
    /// Why the last one did not leave that did not.
    refused: Option<std::io::Error>,
    /// What ICMP said of one that left.
    rejected: Option<std::io::Error>,
}

impl Leaving {
    /// Takes note of what sending one of them came to.
    fn note(&mut self, sent: std::io::Result<usize>) {
        match sent {
            Ok(_) => self.has_sent = true,
            // A socket that has sent something hands over what ICMP said of that.
            Err(e) if self.has_sent && e.raw_os_error() != Some(report::EPERM) => self.rejected = Some(e),
            Err(e) => {
                self.dropped_here += u32::from(e.raw_os_error() == Some(report::EPERM));
                self.refused = Some(e);
            }
        }
    }

    /// Whether a firewall of this host has dropped so many questions, and let out none, that it is
    /// of no use to ask on: it is no outage that passes.
    fn is_kept_in(&self) -> bool {
        self.dropped_here >= MOST_DROPPED_HERE && !self.has_sent
    }

    /// Why none of them was answered.
    fn cause(self) -> Cause {
        match (self.rejected, self.refused) {
            // The question left this host, and somebody on the path rejected it.
            (Some(e), _) if self.has_sent => Cause::UdpRejected(e.to_string()),
            // This host's own firewall, or no route.
            (_, Some(e)) | (Some(e), None) => Cause::NotSent(format!("UDP: {}", report::refusal_of(&e))),
            (None, None) => Cause::UdpBlocked,
        }
    }
}

/// One that drops a part of the packets may drop as many in a row once.
const MOST_DROPPED_HERE: u32 = 3;

/// How the questions of a set-up are asked.
struct Asking<'a> {
    session: &'a Session,
    socket: &'a UdpSocket,
    test: u32,
    /// How long each of them is waited for.
    waits: &'a [Span],
    /// When the responder forgets the test.
    until: Mono,
    hearing: &'a mut Hearing,
}

impl Asking<'_> {
    /// Repeats a question until the wanted answer comes.
    fn ask(&mut self, question: &[u8], wanted: Kind) -> Result<Answer, Cause> {
        let mut leaving = Leaving::default();
        let began_at = clock::now();
        *self.hearing = Hearing::new(began_at);
        for (repeats, wait) in (0..).zip(self.waits) {
            let Some(wait) = waited_for(*wait, self.until - clock::now()) else { break };
            leaving.note(self.socket.send(question));
            if let Some((flow, setup)) = self.listen(wanted, wait, &mut leaving.rejected) {
                return Ok(Answer { flow, setup, repeats, rtt: clock::now() - began_at });
            }
            if self.session.over.is_raised() {
                return Err(Cause::Stopped);
            }
            if leaving.is_kept_in() {
                break;
            }
        }
        Err(leaving.cause())
    }

    /// Takes answers until the wanted one has come, and looks at the control connection meanwhile.
    fn listen(
        &mut self,
        wanted: Kind,
        wait: Span,
        rejected: &mut Option<std::io::Error>,
    ) -> Option<(u32, Setup)> {
        let until = clock::now() + wait;
        let mut bytes = [0; 256];
        loop {
            let now = clock::now();
            let is_heard = self.session.link.heard_since(self.hearing.looked_at);
            self.hearing.look(now, is_heard);
            let left = until - now;
            if left.0 <= 0 || self.session.over.is_raised() {
                return None;
            }
            self.socket.set_read_timeout(Some(left.min(LOOKS_EACH).to_std())).ok()?;
            match self.socket.recv(&mut bytes) {
                Ok(len) => {
                    let answer = Header::parse(&bytes[..len])
                        .and_then(|header| Setup::parse(&header, &bytes[..len]).map(|setup| (header, setup)));
                    if let Ok((header, setup)) = answer
                        && header.kind == wanted
                        && setup.test == self.test
                    {
                        return Some((header.flow, setup));
                    }
                }
                Err(e) if is_refusal(&e) => *rejected = Some(e),
                Err(e) if is_timeout(&e) => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use netaware_wire::preface::REFUSED;

    use super::*;

    /// A connection over which nothing comes.
    struct Silent;

    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::WouldBlock.into())
        }
    }

    /// `latency` asked for 10 s what its own firewall dropped.
    #[test]
    fn what_this_hosts_own_firewall_drops_is_not_asked_to_the_end() {
        let dropped = || Err(std::io::Error::from_raw_os_error(report::EPERM));
        // How many of the usual questions are sent, and what is said in the end.
        let asked = |sent: &dyn Fn(usize) -> std::io::Result<usize>| {
            let mut leaving = Leaving::default();
            let stops_behind = (0..KNOCK_WAITS.len()).position(|question| {
                leaving.note(sent(question));
                leaving.is_kept_in()
            });
            (stops_behind.map_or(KNOCK_WAITS.len(), |last| last + 1), leaving.cause())
        };
        let (questions, cause) = asked(&|_| dropped());
        assert_eq!(questions, 3);
        assert!(matches!(&cause, Cause::NotSent(why) if why.starts_with("UDP: ")), "{cause:?}");
        // It lets something out: that is a filter of some packets.
        let (questions, cause) = asked(&|question| if question == 1 { Ok(64) } else { dropped() });
        assert_eq!(questions, 6);
        assert!(matches!(cause, Cause::NotSent(_)), "{cause:?}");
        assert_eq!(asked(&|_| Ok(64)), (6, Cause::UdpBlocked));
        // What ICMP said of the first one.
        let unreachable = || Err(std::io::ErrorKind::ConnectionRefused.into());
        let (questions, cause) = asked(&|question| if question == 0 { Ok(64) } else { unreachable() });
        assert_eq!(questions, 6);
        assert!(matches!(cause, Cause::UdpRejected(_)), "{cause:?}");
    }

    /// Requests were lost now and then, UDP was dropped, and each stream asked for its flow for 6 s
    /// and more.
    #[test]
    fn a_flow_that_the_loss_of_the_path_excuses_is_not_asked_for_without_end() {
        let lost = Cause::UdpLost { questions: 12, lost: 60, of: 200 };
        let slow = Cause::UdpTooSlow { waited: Span::from_secs(2), round_trip: Span::from_secs(3) };
        for cause in [lost, slow, Cause::UdpBlocked] {
            assert_eq!(findings(0, &cause, false), 1, "{cause:?}");
            assert_eq!(findings(1, &cause, false), ENOUGH_FINDINGS, "{cause:?}");
        }
        let rejected = Cause::UdpRejected("refused".to_owned());
        assert_eq!([findings(0, &Cause::UdpBlocked, true), findings(0, &rejected, false)], [2, 2]);
        // It says nothing of UDP.
        assert_eq!(findings(1, &Cause::Stopped, true), 1);
    }

    /// All questions were asked a second time of a responder that had forgotten their test.
    #[test]
    fn a_responder_is_asked_only_as_long_as_it_knows_the_test() {
        let millis = Span::from_millis;
        assert_eq!(
            [20, 2500, 5000].map(|ms| responder_waits(millis(ms))),
            [10_000, 10_000, 20_000].map(millis)
        );
        // The first 9 s are over.
        let mut left = millis(1000);
        let mut waits = Vec::new();
        for wait in knock_waits(KNOCK_WAITS.len(), Span::ZERO, millis(700)) {
            let Some(wait) = waited_for(wait, left) else { break };
            waits.push(wait);
            left -= wait;
        }
        assert_eq!(waits, [100, 200, 400, 300].map(millis));
        assert_eq!(waited_for(millis(600), millis(-20)), None);
    }

    /// Connecting had taken 6 s, and a responder that turned the connection away at once was called
    /// late.
    #[test]
    fn a_connection_is_late_by_the_time_since_the_responder_accepted_it() {
        let said = |accepted_ms_ago: i64| {
            let accepted_at = clock::now() - Span::from_millis(accepted_ms_ago);
            let came = [REFUSED];
            await_acceptance(&mut came.as_slice(), 1, accepted_at, Span::ZERO, &StopFlag::new())
        };
        // Its answer takes half a round trip as well.
        for accepted_ms_ago in [-200, 0, 200] {
            assert!(matches!(said(accepted_ms_ago), Err(Cause::Protocol(_))), "{accepted_ms_ago}");
        }
    }

    /// It was waited for 8 s longer, and ended as "Resource temporarily unavailable".
    #[test]
    fn a_data_connection_is_not_waited_for_beyond_the_end_of_its_session() {
        let over = StopFlag::new();
        over.raise();
        let hour = Span::from_secs(3600);
        let now = clock::now();
        assert_eq!(await_acceptance(&mut Silent, 0, now, hour, &over), Err(Cause::Stopped));
        // What has come counts all the same.
        assert_eq!(await_acceptance(&mut [ATTACHED].as_slice(), 0, now, hour, &over), Ok(()));
        let late = await_acceptance(&mut Silent, 3, now, Span::ZERO, &StopFlag::new());
        assert_eq!(late, Err(no_answer(3, Span::ZERO)));
        let said = "data connection 3 had no answer within 8.00 s".to_owned();
        assert_eq!(no_answer(3, ATTACH_PATIENCE), Cause::System(said));
    }

    #[test]
    fn a_data_connection_that_is_turned_away_says_how() {
        let said = |came: &[u8]| {
            let mut came = came;
            await_acceptance(&mut came, 1, clock::now(), Span::ZERO, &StopFlag::new())
        };
        let broken = |why: &str| Err(Cause::Protocol(format!("data connection 1 was {why}")));
        assert_eq!(said(&[REFUSED]), broken("not accepted"));
        assert_eq!(said(&[]), broken("closed before it was accepted"));
    }

    /// "The responder broke the protocol" was said of one that had waited for 6 s for what the path
    /// lost again and again.
    #[test]
    fn a_connection_that_is_closed_because_attaching_took_too_long_is_a_time_out() {
        let said = |after: i64| turned_away(2, "closed before it was accepted", Span::from_millis(after));
        assert!(matches!(said(5900), Cause::Protocol(_)));
        let Cause::AttachTimedOut(why) = said(6060) else { panic!("{:?}", said(6060)) };
        assert!(
            why.starts_with("data connection 2 was closed before it was accepted, after 6.06 s"),
            "{why}"
        );
    }

    /// A path lost a quarter each way, or its round trip rose, and a person was told to see whether
    /// a firewall began to drop UDP.
    #[test]
    fn a_path_that_loses_or_has_become_slow_is_no_path_that_blocks_udp() {
        let millis = Span::from_millis;
        let share = |part, of| Share { part, of };
        let six = KNOCK_WAITS.len();
        assert_eq!([share(0, 200), share(3, 6), share(10, 45)].map(|loss| questions(loss, six)), [six; 3]);
        assert_eq!(
            [share(60, 200), share(22, 45), share(150, 200)].map(|loss| questions(loss, six)),
            [6, 10, 12]
        );
        assert_eq!(questions(share(60, 200), FEW_KNOCKS), 6);
        assert_eq!(first_waits(MOST_KNOCKS).sum::<Span>(), millis(6100));
        let lost = Cause::UdpLost { questions: 10, lost: 22, of: 45 };
        assert_eq!(excuse(10, millis(4900), millis(60), share(22, 45)), Some(lost));
        let slow = Cause::UdpTooSlow { waited: millis(2500), round_trip: millis(3000) };
        assert_eq!(excuse(six, millis(2500), millis(3000), share(0, 200)), Some(slow));
        assert_eq!(excuse(six, millis(2500), millis(60), share(0, 200)), None);
        // On a slow path that was known to be one they were waited for.
        assert_eq!(excuse(six, millis(13_000), millis(3000), share(0, 200)), None);
    }

    /// What was heard at these times, of the 2.5 s that all questions are waited for.
    fn hearing(heard_at: &[i64]) -> Hearing {
        let at = |ms: i64| Mono(0) + Span::from_millis(ms);
        let mut hearing = Hearing::new(at(0));
        for now in (50..=2500).step_by(50) {
            hearing.look(at(now), heard_at.iter().any(|heard| (now - 50..now).contains(heard)));
        }
        hearing
    }

    /// TCP was heard behind an outage of 2 s, and a person was told to open the port for UDP.
    #[test]
    fn questions_that_were_lost_in_an_outage_do_not_show_that_udp_is_blocked() {
        assert!(hearing(&[300, 1550]).shows_that_udp_is_blocked(false));
        assert!(!hearing(&[20, 2100]).shows_that_udp_is_blocked(false));
        assert!(!hearing(&[]).shows_that_udp_is_blocked(false));
        // Of three in ten packets lost, six questions in a row are once in fifty times.
        assert!(!hearing(&[300, 1550]).shows_that_udp_is_blocked(true));
    }

    #[test]
    fn a_second_time_fewer_questions_are_asked_and_a_far_path_has_its_time_all_the_same() {
        let waits = |count, patience| {
            let waits: Vec<Span> = knock_waits(count, patience, Span::from_millis(2500)).collect();
            (waits.len(), waits.into_iter().sum::<Span>())
        };
        assert_eq!(waits(KNOCK_WAITS.len(), Span::ZERO), (6, Span::from_millis(2500)));
        assert_eq!(waits(FEW_KNOCKS, Span::ZERO), (4, Span::from_millis(1300)));
        // 7.7 s are left, for a question in each round trip.
        assert_eq!(waits(FEW_KNOCKS, Span::from_secs(9)), (8, Span::from_secs(9)));
    }

    /// On a path of 700 ms the questions of the first 2.5 s were all: an outage of 3 s took UDP
    /// away from the whole run.
    #[test]
    fn a_far_path_is_asked_for_as_long_as_its_answers_may_take() {
        let millis = Span::from_millis;
        let waits: Vec<Span> = knock_waits(KNOCK_WAITS.len(), millis(6100), millis(700)).collect();
        assert_eq!(waits[6..], [1000, 1000, 1000, 600].map(millis));
        assert_eq!(knock_waits(KNOCK_WAITS.len(), millis(2500), millis(700)).count(), 6);
        // The second time has to be over while the responder still waits.
        assert_eq!(asked_twice_within(millis(20), millis(20)), ASKED_TWICE_WITHIN);
        assert_eq!(asked_twice_within(millis(700), millis(700)), millis(7600));
        assert_eq!(asked_twice_within(millis(5000), millis(5000)), millis(9000));
        // It has become slow since.
        assert_eq!(asked_twice_within(millis(40), millis(3000)), millis(3000));
    }

    #[test]
    fn udp_that_was_answered_before_has_ceased_and_is_not_blocked() {
        assert_eq!(since_answered(Cause::UdpBlocked, 0), Cause::UdpBlocked);
        assert_eq!(since_answered(Cause::UdpBlocked, 202), Cause::UdpCeased(202, None));
        let rejected = || Cause::UdpRejected("refused".to_owned());
        assert_eq!(since_answered(rejected(), 0), rejected());
        assert_eq!(since_answered(rejected(), 3), Cause::UdpCeased(3, Some("refused".to_owned())));
        assert_eq!(since_answered(Cause::Stopped, 3), Cause::Stopped);
    }
}
