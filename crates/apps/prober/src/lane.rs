//! One IP version of a measurement: its session, its echo flow, and what has been learnt.

use std::sync::atomic::Ordering;

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_io::zone::ZonedIp;
use netaware_probe::compare::Share;
use netaware_record::{FailedPhase, HostInfo, IpVersion, Outcome, Reach, Unreachable, VersionResult};
use netaware_units::{ByteCount, Mono, SendRate, Span};

use crate::attach;
use crate::echo::{EchoFlow, EchoOrder, EchoRun, EchoSizes, Overdue};
use crate::heavy_loss;
use crate::link::standstill::{Standstill, Standstills};
use crate::own_absence;
use crate::progress::{Progress, Watch};
use crate::report;
use crate::request::Target;
use crate::resolve::{Resolved, resolve};
use crate::session::Session;
use crate::stage::{ASK_FOR_BOTH, ASK_FOR_NAT, ASK_FOR_PATH, ASK_FOR_SERVE, Cause, Failure};

/// A version that was asked for, alive or not.
pub(crate) struct Lane {
    pub(crate) version: IpVersion,
    pub(crate) result: VersionResult,
    pub(crate) warnings: Vec<String>,
    session: Option<Session>,
    /// How long it took to connect and to greet the responder.
    pub(crate) opening: Span,
    /// For how much of that first segments of connections were not answered.
    pub(crate) unanswered_for: Span,
    pub(crate) echo: Option<EchoFlow>,
    pub(crate) responder: Option<HostInfo>,
    pub(crate) local: Option<ZonedIp>,
    /// It died after something had been measured.
    broke: bool,
    /// The path MTU was searched for because nothing came, which is done once.
    pub(crate) is_silence_explained: bool,
    /// When nothing came, until its session was given up, and what was said of that.
    fell_silent: Option<((Mono, Mono), Failure)>,
    /// Nothing came over another version in that time either.
    is_silence_shared: bool,
    /// When the last of its transfers ended that was not whole.
    cut_at: Option<Mono>,
    /// Until when it was measured, where that is noted.
    measured_until: Option<Mono>,
    /// It died after everything had been measured.
    is_whole: bool,
    /// Datagrams are answered no longer.
    has_lost_udp: bool,
    /// The last echo flow could not be attached: no question over UDP was answered.
    had_no_answer_over_udp: bool,
    /// When the responder's program did not run.
    standstills: Standstills,
}

impl Lane {
    fn dead(version: IpVersion, failure: &Failure) -> Self {
        let mut lane = Self::empty(version);
        lane.result.unreachable = Some(failure.unreachable());
        lane
    }

    pub(crate) fn empty(version: IpVersion) -> Self {
        Self {
            version,
            result: VersionResult::new(version),
            warnings: Vec::new(),
            session: None,
            opening: Span::ZERO,
            unanswered_for: Span::ZERO,
            echo: None,
            responder: None,
            local: None,
            broke: false,
            is_silence_explained: false,
            fell_silent: None,
            is_silence_shared: false,
            cut_at: None,
            measured_until: None,
            is_whole: false,
            has_lost_udp: false,
            had_no_answer_over_udp: false,
            standstills: Standstills::default(),
        }
    }

    fn alive(session: Session) -> Self {
        let mut lane = Self::empty(session.version);
        lane.result.address = Some(ZonedIp::of(session.link.peer()).to_string());
        lane.result.reach = Some(session.reach.clone());
        lane.responder = Some(session.responder.clone());
        lane.local = session.local;
        lane.result.local = session.local.map(|local| local.to_string());
        lane.standstills = session.link.standstills();
        lane.unanswered_for = session.unanswered_for;
        lane.session = Some(session);
        lane.note_lost_syns();
        lane
    }

    /// Tells of connects that took as long as they did because a first segment was lost.
    fn note_lost_syns(&mut self) {
        if let Some(lost) = self.result.reach.as_ref().and_then(Reach::lost_syns) {
            self.warn(&lost);
        }
    }

    /// Waits a little for what a responder that has just gone on says of its standstill.
    pub(crate) fn await_overdue_pong(&self) {
        if let Some(session) = &self.session {
            session.link.await_overdue_pong();
        }
    }

    /// When the responder's program did not run, by what it has said so far.
    pub(crate) fn standstills(&self) -> Vec<Standstill> {
        self.standstills.all()
    }

    /// Packets of trains that were left out because the responder's program did not run.
    pub(crate) fn left_out_of_trains(&self) -> u64 {
        self.standstills.left_out()
    }

    /// The session while it lives.
    pub(crate) fn session(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    /// The longest test that the responder's owner allows, where there is a limit.
    pub(crate) fn duration_cap(&self) -> Option<Span> {
        self.session.as_ref().and_then(|session| session.limits.duration)
    }

    /// Session and echo flow at once, for phases that need both.
    pub(crate) fn parts(&mut self) -> Option<(&mut Session, Option<&mut EchoFlow>)> {
        self.session.as_mut().map(|session| (session, self.echo.as_mut()))
    }

    /// Notices a responder that went away while nobody listened to it.
    pub(crate) fn check(&mut self, stage: &'static str) {
        let checked = self.session.as_mut().map(Session::check);
        self.note_caps();
        if let Some(Err(cause)) = checked {
            self.fail(stage, cause);
        }
        self.note_absence();
    }

    /// Tells of requests that the responder held back under a cap of its owner's.
    fn note_caps(&mut self) {
        let reached = self.session.as_mut().map(Session::take_reached_caps).unwrap_or_default();
        for what in reached {
            self.warn(&what);
        }
    }

    /// Tells of connections that only another port got an answer to.
    fn note_unanswered(&mut self) {
        let unanswered =
            self.session.as_ref().map_or(0, |session| session.unanswered.load(Ordering::Acquire));
        if unanswered > 0 {
            self.warn(
                "a TCP connection was not answered, and one from another port was: either its first segments were \
                 lost, or the path spreads its connections over several links or servers, of which one carries nothing",
            );
        }
    }

    /// Flags a measurement during which this host was not there.
    fn note_absence(&mut self) {
        self.note_unanswered();
        let away = self.session.as_ref().map_or(Span::ZERO, |session| session.link.away());
        if away > Span::ZERO {
            self.warn(&format!(
                "this host did not run netaware for {away} (it was suspended or stopped, or had no CPU time); what was \
                 due then was not sent, and what arrived then may have been dropped here"
            ));
        }
    }

    /// Flags a measurement during which this host was not there for a time that is too short for
    /// the session to notice it.
    pub(crate) fn note_own_absence(&mut self, away: Span) {
        self.note_absence();
        let is_told = self.warnings.iter().any(|warning| warning.contains(own_absence::DID_NOT_RUN));
        let then = "what was due then was not sent or left late";
        if let Some(said) = own_absence::in_words(away, then).filter(|_| self.is_alive() && !is_told) {
            self.warn(&said);
        }
    }

    /// Takes note that a turn of it is over: what the lane dies of later does not touch it.
    pub(crate) fn note_measured(&mut self) {
        self.measured_until = Some(clock::now());
    }

    /// Whether all of it had been measured when the responder was last heard of.
    fn was_over_before(&self, stage: &str, cause: &Cause, silence: Option<(Mono, Mono)>) -> bool {
        let (Cause::Unheard(_), Some((from, _))) = (cause, silence) else { return false };
        let was_over = self.measured_until.is_some_and(|until| until <= from);
        stage == "finish" && was_over && self.cut_at.is_none()
    }

    /// Takes note of the end of a transfer that was not whole.
    pub(crate) fn note_cut(&mut self) {
        self.cut_at = Some(clock::now());
    }

    /// Waits for the responder's goodbye, which ends the lane. It comes within `patience` of the
    /// end of the transfer that it explains, which may be long ago.
    pub(crate) fn await_goodbye(&mut self, stage: &'static str, patience: Span) {
        let rest = self.cut_at.map_or(patience, |cut_at| (cut_at + patience - clock::now()).or_zero());
        if let Some(Err(cause)) = self.session.as_mut().map(|session| session.check_for(rest)) {
            self.fail(stage, cause);
        }
    }

    /// Sends a train over the echo flow; ends early with the person's patience, or with the
    /// responder.
    pub(crate) fn echo(&mut self, order: &EchoOrder) -> Option<EchoRun> {
        self.echo_telling(order, &mut |_| {})
    }

    /// The same, and tells until when the last answers are waited for where they are late.
    pub(crate) fn echo_telling(
        &mut self,
        order: &EchoOrder,
        overdue: &mut dyn FnMut(Overdue),
    ) -> Option<EchoRun> {
        let run = self.echo_filling(order, overdue)?;
        if let Some(session) = &self.session {
            session.note_requests(heavy_loss::of_run(&run), run.longest_round_trip());
        }
        Some(run)
    }

    /// The same with requests that may overfill the path on purpose: what is lost of them, and how
    /// long their answers take, tells nothing of the idle path.
    pub(crate) fn echo_filling(
        &mut self,
        order: &EchoOrder,
        overdue: &mut dyn FnMut(Overdue),
    ) -> Option<EchoRun> {
        let over = self.session.as_ref()?.over.clone();
        let run = self.echo.as_mut()?.run_telling(order, &over, overdue);
        match run {
            Ok(run) => {
                if let Some(session) = &self.session {
                    session.note_udp(run.answers());
                }
                self.check("measure latency");
                Some(run)
            }
            Err(cause) => {
                self.fail("measure latency", cause);
                None
            }
        }
    }

    /// The round trip of the path without load, zero where it is not known.
    pub(crate) fn round_trip(&self) -> Span {
        self.session.as_ref().map(Session::round_trip).unwrap_or_default()
    }

    /// Makes sure that the echo flow answers for another `needed`: one that the responder ends
    /// before, or that an address translator may have forgotten, is opened again, for `rest`. Under
    /// an owner's cap it lasts as long as that allows.
    pub(crate) fn keep_echo(&mut self, target: &Target, needed: Span, rest: Span, sizes: EchoSizes) {
        let cap = self.session.as_ref().and_then(|session| session.limits.duration);
        // Opening one takes a part of its time.
        let round_trip = self.round_trip();
        let needed = cap.map_or(needed, |cap| needed.min(cap - round_trip * 4 - JUST_OPENED));
        let is_used_up =
            |flow: &mut EchoFlow| flow.until < clock::now() + needed || flow.may_be_forgotten(round_trip);
        let (Some(old), Some(session)) = (self.echo.take_if(is_used_up), self.session.as_mut()) else {
            return;
        };
        if let Err(cause) = old.close(session) {
            return self.fail_to_end("end a UDP flow", cause);
        }
        attach_echo(std::slice::from_mut(self), target, rest.max(needed), sizes);
    }

    /// Opens another echo flow in place of the one that the lane has, which goes on if that fails,
    /// and is handed out otherwise.
    pub(crate) fn renew_echo(&mut self, target: &Target, duration: Span, sizes: EchoSizes) -> Renewed {
        let Some((session, echo)) = self.session.as_mut().zip(self.echo.as_mut()) else {
            return Renewed::Failed;
        };
        let duration = session.limits.duration.map_or(duration, |cap| cap.min(duration));
        let began_at = clock::now();
        let fresh = match EchoFlow::open(session, &target.options, duration, sizes) {
            Ok(fresh) => fresh,
            Err(cause) => {
                let heard = session.link.heard_since(began_at);
                // If the session has ended, that shows at once.
                self.check("measure latency");
                let is_udp = is_of_udp(&cause) && heard && self.is_alive();
                return if is_udp { Renewed::UdpBlocked } else { Renewed::Failed };
            }
        };
        Renewed::Works(std::mem::replace(echo, fresh))
    }

    /// Goes on with another flow that is open, and hands out the one that it had.
    pub(crate) fn exchange_echo(&mut self, flow: Option<EchoFlow>) -> Option<EchoFlow> {
        if self.is_alive() { std::mem::replace(&mut self.echo, flow) } else { None }
    }

    /// Ends a flow that the lane does not go on with.
    pub(crate) fn close_echo(&mut self, flow: Option<EchoFlow>) {
        let Some((flow, session)) = flow.zip(self.session.as_mut()) else { return };
        if let Err(cause) = flow.close(session) {
            self.fail_to_end("end a UDP flow", cause);
        }
    }

    /// How long opening a UDP flow takes where nothing is answered.
    pub(crate) fn entry_patience(&self) -> Span {
        self.session.as_ref().map(attach::entry_patience).unwrap_or_default()
    }

    /// Ends the lane's echo flow, if it has one.
    pub(crate) fn detach_echo(&mut self) {
        let flow = self.echo.take();
        self.close_echo(flow);
    }

    /// Shortens and slows a transfer to what the responder's owner allows, and says so once. An
    /// owner who allows a rate of zero gets the slowest that there is, which the responder refuses,
    /// and never an unlimited one.
    pub(crate) fn obey_limits(&mut self, duration: &mut Span, rate: &mut Option<SendRate>) {
        let Some(limits) = self.session.as_ref().map(|session| session.limits) else { return };
        let mut told = Vec::new();
        if let Some(longest) = limits.duration.filter(|longest| *longest < *duration) {
            *duration = longest;
            told.push(format!("transfers no longer than {longest}"));
        }
        let highest = limits.rate.map(|highest| SendRate::at_least(highest.0));
        if let Some(highest) = highest.filter(|highest| rate.is_none_or(|rate| *highest < rate)) {
            *rate = Some(highest);
            told.push(format!("no more than {highest}"));
        }
        for what in told {
            self.warn(&format!("the responder's owner allows {what}"));
        }
    }

    /// The bytes after which a transfer of a given time has to end, if the responder's owner allows
    /// no more, and says so once. `moves` is what it moves in its time, where that is known.
    pub(crate) fn bytes_allowed(&mut self, moves: Option<ByteCount>) -> Option<ByteCount> {
        let most = self.session.as_ref()?.limits.bytes?;
        if moves.is_some_and(|moves| moves <= most) {
            return None;
        }
        self.warn(&format!("the responder's owner allows transfers of no more than {most}"));
        Some(most)
    }

    /// As many streams of a transfer over TCP as the responder's owner allows, and says so before
    /// all else: it is another measurement than was asked for.
    pub(crate) fn streams_allowed(&mut self, asked: u16) -> u16 {
        let limit = self.session.as_ref().and_then(|session| session.limits.streams);
        let Some(most) = limit.map(|most| most.max(1)).filter(|most| *most < asked) else { return asked };
        let warning = format!(
            "{}: the responder's owner allows no more than {most} stream(s) at a time: TCP ran with {most} and not \
             with {asked}",
            self.version.name()
        );
        if !self.warnings.contains(&warning) {
            self.warnings.insert(0, warning);
        }
        most
    }

    /// Adds a warning, once.
    pub(crate) fn warn(&mut self, what: &str) {
        let warning = format!("{}: {what}", self.version.name());
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Whether it broke off, or UDP did, so that what has no answer in the end may never have met
    /// the path.
    pub(crate) fn has_fallen_silent(&self) -> bool {
        self.broke || self.has_lost_udp
    }

    /// The longest time in which nothing came over the session's connection, while it lives: pings
    /// are asked every second.
    pub(crate) fn longest_pause(&self) -> Option<Span> {
        let (from, until) = self.session.as_ref()?.link.longest_pause()?;
        Some(until - from)
    }

    /// For how long nothing came of the responder, which is there again.
    pub(crate) fn outlived(&self) -> Option<Span> {
        self.session.as_ref()?.link.outlived()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.session.is_some()
    }

    /// Writes down that something could not be ended well, which makes no figure less true.
    pub(crate) fn fail_to_end(&mut self, stage: &'static str, cause: Cause) {
        let before = self.result.failed_phases.len();
        self.fail(stage, cause);
        self.result.failed_phases.truncate(before);
    }

    /// Writes down why a phase failed. The lane dies with its control connection, and lives on when
    /// the responder merely refused a phase.
    pub(crate) fn fail(&mut self, stage: &'static str, mut cause: Cause) {
        self.note_absence();
        let Some(session) = &mut self.session else { return };
        // Whatever fails beside the end of the session fails because of it.
        if is_seen_from_here(&cause)
            && session.link.death() != Some(&cause)
            && let Err(death) = session.check()
        {
            cause = death;
        }
        // The person who stopped it knows why nothing more came.
        if cause == Cause::Stopped {
            return;
        }
        cause = session.link.explain(cause);
        if matches!(cause, Cause::Lost(_) | Cause::Unheard(_))
            && let Some(local) = self.local
        {
            let refused = || report::refused_here(local, session.link.peer(), session.round_trip());
            if let Some(what) = netaware_host::lost_network(local.at(0)) {
                cause = Cause::Cut(what);
            } else if let Some(why) = refused() {
                cause = Cause::Barred(why);
            }
        }
        self.has_lost_udp |= matches!(cause, Cause::UdpCeased(..) | Cause::UdpAndTcpSilent(_));
        let failure = session.failure(stage, cause);
        let silence = session.link.silence();
        if matches!(failure.cause, Cause::Unheard(_)) {
            self.fell_silent = silence.map(|silence| (silence, failure.clone()));
        }
        if session.link.death().is_some() || matches!(failure.cause, Cause::Silent(_)) {
            if self.was_over_before(stage, &failure.cause, silence) {
                self.is_whole = true;
                (self.echo, self.session) = (None, None);
                return self.warn(&format!("all of it was measured; then {failure}"));
            }
            self.broke = true;
            self.result.unreachable = Some(failure.unreachable());
            self.echo = None;
            self.session = None;
        } else {
            let advice = failure.advice();
            let advice = if advice.is_empty() { String::new() } else { format!("; {advice}") };
            let failed = FailedPhase { stage: stage.to_owned(), reason: failure.to_string() };
            if !self.result.failed_phases.contains(&failed) {
                self.result.failed_phases.push(failed);
            }
            // Before all that is only worth knowing: it is why something is missing.
            let warning = format!("{}: {failure}{advice}", self.version.name());
            if !self.warnings.contains(&warning) {
                self.warnings.insert(0, warning);
            }
        }
    }
}

impl Lane {
    /// Since when nothing came over it, where it died of that.
    pub(crate) fn fell_silent_at(&self) -> Option<Mono> {
        self.fell_silent.as_ref().filter(|_| self.broke).map(|((from, _), _)| *from)
    }

    /// Without the responder's place it is not measured any further, whatever the cause.
    fn end_without_place(&mut self, cause: Cause) {
        let Some(session) = &mut self.session else { return };
        let cause = session.link.explain(cause);
        if session.link.death().is_some() {
            return self.fail(RESERVE, cause);
        }
        self.result.unreachable = Some(session.failure(RESERVE, cause).unreachable());
        (self.echo, self.session) = (None, None);
    }

    /// Whether it lives without an echo flow because no question over UDP was answered.
    fn lacks_echo(&self) -> bool {
        let goes_on = |session: &Session| !session.over.is_raised() && attach::may_ask_again(session);
        self.session.as_ref().is_some_and(goes_on) && self.echo.is_none() && self.had_no_answer_over_udp
    }

    /// Takes back what was said of an echo flow that could not be attached.
    fn forget_failed_flow(&mut self) {
        let failed = self.result.failed_phases.iter().filter(|phase| phase.stage == ATTACH_FLOW);
        let reasons: Vec<String> = failed.map(|phase| phase.reason.clone()).collect();
        self.warnings.retain(|warning| !reasons.iter().any(|reason| warning.contains(reason)));
        self.result.failed_phases.retain(|phase| phase.stage != ATTACH_FLOW);
        (self.has_lost_udp, self.had_no_answer_over_udp) = (false, false);
    }

    /// Notes that a phase ended in silence while the session lives on.
    pub(crate) fn phase_broke_off(&mut self, stage: &'static str, why: Unreachable) {
        let Unreachable { reason, advice, .. } = why;
        let warning = format!("{}: {reason}; {advice}", self.version.name());
        let failed = FailedPhase { stage: stage.to_owned(), reason };
        if !self.result.failed_phases.contains(&failed) {
            self.result.failed_phases.push(failed);
        }
        if !self.warnings.contains(&warning) {
            self.warnings.insert(0, warning);
        }
    }

    /// Corrects the reason of a version that fell silent while nothing came over another one
    /// either, though that one lived on: the responder, or what both have in common, stood still.
    fn note_that_nobody_went_on(&mut self, pauses: &[(Mono, Mono)]) {
        let Some(((from, until), failure)) = &mut self.fell_silent else { return };
        let silence = *until - *from;
        let shared = |pause: &(Mono, Mono)| pause.1.min(*until) - pause.0.max(*from);
        if pauses.iter().any(|pause| shared(pause) * 2 > silence) && self.result.unreachable.is_some() {
            failure.cause = Cause::UnheardOverBoth(silence);
            self.result.unreachable = Some(failure.unreachable());
            self.is_silence_shared = true;
        }
    }

    /// Whether its session was given up in a silence that another version shared: that passes, and
    /// says nothing of this version.
    pub(crate) fn is_silence_shared(&self) -> bool {
        self.is_silence_shared
    }

    /// Nothing came any more over it until the end of what was asked: it is dead, whatever its
    /// session has noticed of that.
    pub(crate) fn break_off(&mut self, why: Unreachable) {
        self.broke = true;
        self.result.unreachable.get_or_insert(why);
        (self.echo, self.session) = (None, None);
    }
}

/// Whether the cause is this end's own conclusion, and not what the responder has said itself. What
/// it says of a test that was not begun in time may follow from the end of the session.
fn is_seen_from_here(cause: &Cause) -> bool {
    !matches!(cause, Cause::Refused(..))
}

/// Whether no question over UDP was answered, be it that others had been before.
fn is_without_answer(cause: &Cause) -> bool {
    matches!(cause, Cause::UdpBlocked | Cause::UdpCeased(_, None))
}

/// Whether questions over UDP had no answer, be it that the path explains that.
fn is_of_udp(cause: &Cause) -> bool {
    is_without_answer(cause) || is_of_the_path(cause)
}

/// Whether nothing came over TCP either.
fn is_silence(cause: &Cause) -> bool {
    matches!(cause, Cause::UdpAndTcpSilent(_))
}

/// Whether the loss or the round trip of the path explains that nothing came over UDP.
fn is_of_the_path(cause: &Cause) -> bool {
    matches!(cause, Cause::UdpLost { .. } | Cause::UdpTooSlow { .. })
}

/// What became of an attempt to open another UDP flow.
pub(crate) enum Renewed {
    /// This was the flow before.
    Works(EchoFlow),
    /// The responder answered over TCP meanwhile, and to none of its questions over UDP.
    UdpBlocked,
    Failed,
}

/// Gives versions that fell silent together an advice that fits both: it was hardly one version's
/// path, and need not be the responder.
pub(crate) fn note_common_silence(lanes: &mut [Lane]) {
    let from = || lanes.iter().filter_map(|lane| Some(lane.fell_silent.as_ref()?.0.0));
    let (Some(first), Some(last)) = (from().min(), from().max()) else { return };
    if from().count() < 2 || last - first > TOGETHER {
        return;
    }
    for lane in lanes {
        let Some((_, mut failure)) = lane.fell_silent.take() else { continue };
        if let Cause::Unheard(silence) = failure.cause
            && !lane.is_whole
        {
            failure.cause = Cause::UnheardOverBoth(silence);
            lane.result.unreachable = Some(failure.unreachable());
            lane.is_silence_shared = true;
        }
    }
}

/// Finds the addresses and opens all sessions, IPv4 first in the result, at the same time, so that
/// a version into the void costs its own time-out and nobody else's.
pub(crate) fn open_all(target: &Target, stop: &StopFlag) -> Vec<Lane> {
    let mut versions = target.versions.clone();
    versions.sort_unstable();
    let resolved = match resolve(target) {
        Ok(resolved) => resolved,
        Err(failure) => return versions.iter().map(|version| Lane::dead(*version, &failure)).collect(),
    };
    std::thread::scope(|scope| {
        let opening: Vec<_> = versions
            .iter()
            .map(|version| {
                let open = || {
                    let began_at = clock::now();
                    (open_one(target, *version, &resolved, stop), clock::now() - began_at)
                };
                (*version, scope.spawn(open))
            })
            .collect();
        opening
            .into_iter()
            .map(|(version, thread)| match thread.join() {
                Ok((Ok(session), opening)) => Lane { opening, ..Lane::alive(session) },
                Ok((Err(failure), _)) => Lane::dead(version, &failure),
                Err(_) => {
                    let cause = Cause::System("the connecting thread panicked".into());
                    Lane::dead(version, &Failure::new("connect", None, cause))
                }
            })
            .collect()
    })
}

fn open_one(
    target: &Target,
    version: IpVersion,
    resolved: &Resolved,
    stop: &StopFlag,
) -> Result<Session, Failure> {
    Session::open(target, version, resolved.address(version)?, resolved.took, stop)
}

/// Gets the right to fill the path, one place for all lanes: at first, and again after
/// [`release_all`].
pub(crate) fn reserve_all(lanes: &mut [Lane], expected: Span, stop: &StopFlag, watch: &mut Watch<'_>) {
    let mut joined = None;
    for index in 0..lanes.len() {
        let (before, rest) = lanes.split_at_mut(index);
        let Some((lane, after)) = rest.split_first_mut() else { return };
        let Some(session) = lane.session.as_mut() else { continue };
        let others = || {
            let others = before.iter().chain(after.iter()).filter_map(|lane| lane.session.as_ref());
            others.map(Session::heard_within).max().unwrap_or_default()
        };
        match session.reserve(expected, joined, &others, stop, watch) {
            Ok(reservation) => joined = Some(reservation),
            Err(cause) => lane.end_without_place(cause),
        }
    }
}

/// Takes the round trips of lanes again that have waited in the responder's queue: those of before
/// are of a path that somebody else was filling. Returns whether there were such lanes.
pub(crate) fn connect_again(lanes: &mut [Lane], target: &Target) -> bool {
    let mut has_waited = false;
    for lane in lanes {
        let Some(session) = lane.session.as_mut().filter(|it| it.has_waited()) else { continue };
        has_waited = true;
        session.connect_again(target);
        lane.result.reach = Some(session.reach.clone());
        lane.note_lost_syns();
    }
    has_waited
}

/// Makes sure that the responder's place is ours for another `needed`. Where the lease is too short
/// for that, or the place was unused for so long that somebody else has it, the place is given back
/// and asked for again, for `rest`: others who wait have their turn first, and nothing that is
/// still to come is refused. Returns whether that was so: tests that need the place have ended
/// then.
pub(crate) fn keep_reserved(
    lanes: &mut [Lane],
    needed: Span,
    rest: Span,
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> bool {
    let ends = lanes.iter().filter_map(|lane| lane.session.as_ref()?.has_place_until());
    let Some(ends_at) = ends.min() else { return false };
    if stop.is_raised() || ends_at >= clock::now() + needed {
        return false;
    }
    release_all(lanes);
    reserve_again(lanes, rest.max(needed), stop, watch);
    true
}

/// Gets the right to fill the path again after [`release_all`], in the middle of a measurement.
pub(crate) fn reserve_again(lanes: &mut [Lane], expected: Span, stop: &StopFlag, watch: &mut Watch<'_>) {
    let alive: Vec<bool> = lanes.iter().map(Lane::is_alive).collect();
    reserve_all(lanes, expected, stop, watch);
    let were_alive = lanes.iter_mut().zip(alive).filter(|(_, was_alive)| *was_alive);
    for (lane, _) in were_alive.filter(|(lane, _)| stop.is_raised() && !lane.broke) {
        // Who is stopped while waiting has measured all the same.
        lane.result.unreachable = None;
    }
}

/// Gives the responder's place to whoever waits for it.
pub(crate) fn release_all(lanes: &mut [Lane]) {
    for lane in lanes {
        let Some(session) = lane.session() else { continue };
        if let Err(cause) = session.release() {
            lane.fail_to_end("release", cause);
        }
    }
}

/// Attaches an echo flow to each lane. Without UDP a lane goes on with TCP alone and says so.
pub(crate) fn attach_echo(lanes: &mut [Lane], target: &Target, duration: Span, sizes: EchoSizes) {
    for lane in lanes {
        let Some(session) = lane.session.as_mut() else { continue };
        // An owner's cap is on one test: one that beats it is opened again when it is over.
        let duration = session.limits.duration.map_or(duration, |cap| cap.min(duration));
        match EchoFlow::open(session, &target.options, duration, sizes) {
            Ok(flow) => lane.echo = Some(flow),
            Err(cause) => {
                lane.had_no_answer_over_udp = is_of_udp(&cause) || is_silence(&cause);
                lane.fail(ATTACH_FLOW, cause);
            }
        }
    }
}

/// Tries once again to attach an echo flow to each lane whose questions over UDP had no answer: it
/// may have been an outage. What was said of the first attempt is replaced.
pub(crate) fn attach_missing_echo(lanes: &mut [Lane], target: &Target, duration: Span, sizes: EchoSizes) {
    for lane in lanes.iter_mut().filter(|lane| lane.lacks_echo()) {
        lane.forget_failed_flow();
        attach_echo(std::slice::from_mut(lane), target, duration, sizes);
        if lane.echo.is_some() {
            lane.warn("a UDP flow was answered only at the second attempt: the first one had no answer");
        }
    }
}

/// What is being tried when an echo flow is attached.
const ATTACH_FLOW: &str = "attach a UDP flow";

/// How the measurement as a whole ended.
pub(crate) fn outcome(lanes: &[Lane], stop: &StopFlag) -> Outcome {
    if lanes.iter().any(|lane| lane.broke) && !lanes.iter().any(|lane| lane.is_alive() || lane.is_whole) {
        Outcome::Failed
    } else if stop.is_raised() {
        Outcome::Interrupted
    } else {
        Outcome::Complete
    }
}

/// What is being tried in the responder's queue.
const RESERVE: &str = "reserve";
/// Pings leave once a second, and the patience of one version is longer by its round trips.
const TOGETHER: Span = Span::from_secs(3);
/// An echo flow so young, beside its round trips, is not opened again.
const JUST_OPENED: Span = Span::from_millis(50);

/// Names the loss of the path where it explains that a version fell silent: a heavy one, of the
/// requests of these versions.
fn note_heavy_loss(lanes: &mut [Lane], losses: &[(IpVersion, Share)]) {
    for lane in lanes {
        let unreachable = lane.result.unreachable.as_mut();
        let fell_silent = |it: &&mut Unreachable| [ASK_FOR_PATH, ASK_FOR_BOTH].contains(&it.advice.as_str());
        let Some(unreachable) = unreachable.filter(fell_silent) else { continue };
        if let Some(advice) = heavy_loss::advice(lane.version, losses) {
            unreachable.advice = advice;
        }
    }
}

/// Does not blame the responder for the end of one version's session if it went on over another,
/// nor the path of that version alone where both lose heavily.
pub(crate) fn note_single_loss(lanes: &mut [Lane], losses: &[(IpVersion, Share)]) {
    if !lanes.iter().any(Lane::is_alive) {
        return note_heavy_loss(lanes, losses);
    }
    let pauses: Vec<_> =
        lanes.iter().filter_map(|lane| lane.session.as_ref()?.link.longest_pause()).collect();
    for lane in lanes.iter_mut() {
        lane.note_that_nobody_went_on(&pauses);
    }
    note_heavy_loss(lanes, losses);
    for unreachable in lanes.iter_mut().filter_map(|lane| lane.result.unreachable.as_mut()) {
        if [ASK_FOR_SERVE, ASK_FOR_PATH].contains(&unreachable.advice.as_str()) {
            ASK_FOR_NAT.clone_into(&mut unreachable.advice);
        }
    }
}

/// Says on whose behalf nothing more will come.
pub(crate) fn note_dead(lanes: &[Lane], watch: &mut Watch<'_>) {
    for lane in lanes {
        if let Some(Unreachable { reason, .. }) = &lane.result.unreachable {
            watch.tell(Progress::Note(format!("{}: {reason}", lane.version.name())));
        }
    }
}

/// The order of turns in a round: forth in even rounds, back in odd ones (ABBA), so that a drift of
/// the path or of the hosts hits both versions alike.
pub(crate) fn turns(lanes: usize, round: u16) -> Vec<usize> {
    if round.is_multiple_of(2) { (0..lanes).collect() } else { (0..lanes).rev().collect() }
}

#[cfg(test)]
mod tests {
    use netaware_wire::control::ErrorCode;

    use super::*;

    #[test]
    fn a_version_that_stood_still_as_well_is_not_said_to_have_gone_on() {
        let at = |millis: i64| Mono(0) + Span::from_millis(millis);
        let advice = |pause: (i64, i64)| {
            let mut lane = Lane::empty(IpVersion::V6);
            let failure = Failure::new("measure", None, Cause::Unheard(Span::from_secs(4)));
            lane.result.unreachable = Some(failure.unreachable());
            lane.fell_silent = Some(((at(8_000), at(12_000)), failure));
            lane.note_that_nobody_went_on(&[(at(pause.0), at(pause.1))]);
            lane.result.unreachable.unwrap().advice
        };
        for pause in [(8_000, 12_000), (8_500, 11_500), (6_000, 11_000)] {
            assert!(advice(pause).contains("both IP versions fell silent"), "{pause:?}");
        }
        for pause in [(11_000, 12_000), (2_000, 8_500)] {
            assert_eq!(advice(pause), ASK_FOR_PATH, "{pause:?}");
        }
    }

    /// A NAT was blamed on a path that had lost half of all requests over the other version.
    #[test]
    fn a_session_that_ends_on_a_path_that_loses_half_of_all_ends_of_that_loss() {
        let advice = |cause, loss| {
            let mut lane = Lane::empty(IpVersion::V4);
            lane.result.unreachable = Some(Failure::new(RESERVE, None, cause).unreachable());
            let mut lanes = [lane];
            note_single_loss(&mut lanes, &[(IpVersion::V4, heavy_loss::NOTHING), (IpVersion::V6, loss)]);
            let [lane] = lanes;
            lane.result.unreachable.unwrap().advice
        };
        let unheard = || Cause::Unheard(Span::from_millis(3710));
        let half = Share { part: 12, of: 24 };
        assert!(advice(unheard(), half).starts_with("IPv6 lost 12 of 24 requests"));
        assert_eq!(advice(unheard(), Share { part: 0, of: 200 }), ASK_FOR_PATH);
        assert_eq!(advice(Cause::Lost("closed by the responder".to_owned()), half), ASK_FOR_SERVE);
    }

    #[test]
    fn two_versions_that_fall_silent_together_do_not_blame_the_responder_alone() {
        let advice = |apart: i64| {
            let mut lanes = [IpVersion::V4, IpVersion::V6].map(Lane::empty);
            let seconds = [10, 10 + apart];
            for (lane, at) in lanes.iter_mut().zip(seconds) {
                let failure = Failure::new("measure", None, Cause::Unheard(Span::from_secs(4)));
                lane.result.unreachable = Some(failure.unreachable());
                let at = Mono(0) + Span::from_secs(at);
                lane.fell_silent = Some(((at - Span::from_secs(4), at), failure));
            }
            note_common_silence(&mut lanes);
            lanes.map(|lane| lane.result.unreachable.unwrap().advice.contains("both IP versions fell silent"))
        };
        assert_eq!((advice(1), advice(8)), ([true; 2], [false; 2]));
    }

    #[test]
    fn a_version_that_was_measured_before_the_path_died_has_not_failed() {
        let died_at = Mono(0) + Span::from_secs(20);
        let was_over = |measured_until: i64, stage: &str, cut_at: Option<Mono>| {
            let measured_until = Some(Mono(0) + Span::from_secs(measured_until));
            let lane = Lane { cut_at, measured_until, ..Lane::empty(IpVersion::V4) };
            let silence = (died_at - Span::from_secs(4), died_at);
            lane.was_over_before(stage, &Cause::Unheard(Span::from_secs(4)), Some(silence))
        };
        assert!(was_over(15, "finish", None));
        assert!(!was_over(17, "finish", None), "the silence may have begun in its last turn");
        assert!(!was_over(15, "measure throughput", None), "it was not over");
        assert!(!was_over(15, "finish", Some(died_at)), "its last transfer was cut");
        // One version that is whole is a measurement.
        let mut lanes = [IpVersion::V4, IpVersion::V6].map(Lane::empty);
        lanes[1].broke = true;
        assert_eq!(outcome(&lanes, &StopFlag::new()), Outcome::Failed);
        lanes[0].is_whole = true;
        assert_eq!(outcome(&lanes, &StopFlag::new()), Outcome::Complete);
    }

    /// "The responder broke the protocol" was said of a session that an outage had ended.
    #[test]
    fn what_fails_here_may_follow_from_the_end_of_the_session_and_what_the_responder_says_does_not() {
        for cause in [
            Cause::Protocol("data connection 0 was not accepted".to_owned()),
            Cause::System("data connection 0 had no answer within 8.00 s".to_owned()),
            Cause::Silent(Span::from_secs(4)),
            Cause::UdpBlocked,
            Cause::Stopped,
        ] {
            assert!(is_seen_from_here(&cause), "{cause:?}");
        }
        assert!(!is_seen_from_here(&Cause::Refused(ErrorCode::Cap, "no".to_owned())));
    }

    #[test]
    fn a_flow_that_is_answered_at_the_second_attempt_leaves_no_port_to_open() {
        let mut lane = Lane::empty(IpVersion::V4);
        let failure = Failure::new(ATTACH_FLOW, None, Cause::UdpBlocked);
        let phases = [(ATTACH_FLOW, failure.to_string()), ("send trains", "it failed".to_owned())];
        let failed = phases.map(|(stage, reason)| FailedPhase { stage: stage.to_owned(), reason });
        lane.result.failed_phases = failed.to_vec();
        lane.warnings = vec![format!("IPv4: {failure}; {}", failure.advice()), "IPv4: it failed".to_owned()];
        (lane.has_lost_udp, lane.had_no_answer_over_udp) = (true, true);
        lane.forget_failed_flow();
        assert_eq!(lane.warnings, ["IPv4: it failed"]);
        assert_eq!(lane.result.failed_phases.len(), 1);
        assert!(!lane.has_fallen_silent());
        // Without a session there is nothing to try again.
        lane.had_no_answer_over_udp = true;
        assert!(!lane.lacks_echo());
    }

    /// `latency` opened another flow in each of its blocks where the path explained that none was
    /// answered.
    #[test]
    fn a_flow_without_an_answer_on_a_path_that_loses_heavily_is_looked_into_once() {
        let lost = Cause::UdpLost { questions: 12, lost: 60, of: 200 };
        let slow = Cause::UdpTooSlow { waited: Span::from_secs(2), round_trip: Span::from_secs(3) };
        for cause in [Cause::UdpBlocked, Cause::UdpCeased(200, None), lost, slow] {
            assert!(is_of_udp(&cause), "{cause:?}");
        }
        assert!(!is_of_udp(&Cause::UdpAndTcpSilent(Span::from_secs(5))));
        assert!(!is_of_udp(&Cause::UdpRejected("refused".to_owned())));
    }

    /// An outage in the first two seconds of a run was in none of its warnings.
    #[test]
    fn a_syn_that_was_lost_while_the_session_was_opened_is_a_warning_once() {
        let mut lane = Lane::empty(IpVersion::V4);
        lane.note_lost_syns();
        assert_eq!(lane.warnings, Vec::<String>::new());
        lane.result.reach = Some(Reach {
            resolve: None,
            connects: [2020, 20, 20].map(Span::from_millis).to_vec(),
            greeting: Span::from_millis(20),
            round_trip: None,
        });
        lane.note_lost_syns();
        lane.note_lost_syns();
        let want = "IPv4: the first SYN got no answer: connecting took 2.02 s instead of 20.0 ms";
        assert_eq!(lane.warnings, [want]);
    }

    #[test]
    fn turns_run_forth_and_back() {
        let order: Vec<usize> = (0..4).flat_map(|round| turns(2, round)).collect();
        assert_eq!(order, [0, 1, 1, 0, 0, 1, 1, 0]);
    }
}
