//! Follows a path's rate over time: versions and directions take turns, each with a flow of its own
//! and an estimator that remembers what it saw in its turns before.
//!
//! A method that is content after seconds begins anew in its next turn; one that tracks (`chirp`)
//! goes on.

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_path::{Careful, Disturbance, Estimate, Estimator, Flag, Instrument, NoFigure, RateMethod};
use netaware_record::{Direction, RatePoint};
use netaware_units::{BitRate, ByteCount, Mono, Span};
use netaware_wire::control::MAX_VOLLEY_PATIENCE;

use super::{
    ENDLESS, EstimationRequest, Follow, SLACK, allowed, headers, instrument, share_of, told_cap_on_bytes,
    turn,
};
use crate::broke_off;
use crate::host::{self, Known};
use crate::lane::{self, Lane};
use crate::lease;
use crate::progress::{Progress, Watch};
use crate::report::path_rates::{self, Estimated};
use crate::trains::{Pending, Ran};

/// What is kept of one version and direction.
struct Followed {
    lane: usize,
    direction: Direction,
    /// The first turn of all.
    began_at: Mono,
    estimator: Option<Careful>,
    pending: Option<Pending>,
    /// The newest figure, with everything sent so far.
    last: Option<Estimated>,
    /// What the hosts did in the turn before.
    lately: Option<Disturbance>,
    over_time: Vec<RatePoint>,
    /// That turns end at the bytes that the responder's owner allows has been said.
    is_cap_said: bool,
    /// That the method has no figure of such a path, however often it begins, has been said.
    is_hopeless_said: bool,
}

/// Until its time is over, or somebody stops it.
pub(super) fn follow(
    request: &EstimationRequest,
    follow: Follow,
    lanes: &mut [Lane],
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) {
    let known = host::known();
    let began_at = clock::now();
    let end = began_at + follow.lasting.unwrap_or(ENDLESS);
    let ways = request.directions.each();
    let mut followed: Vec<Followed> = ways
        .iter()
        .flat_map(|way| (0..lanes.len()).map(|lane| Followed::new(lane, *way, began_at)))
        .collect();
    let turns = i64::try_from(followed.len().max(1)).unwrap_or(1);
    let share = follow.interval / turns;
    let asked = turn_time(request, follow, share);
    let (mut is_first, mut has_place) = (true, true);
    while clock::now() < end && !stop.is_raised() && lanes.iter().any(Lane::is_alive) {
        // The first round has its place already; between rounds others have their chance.
        if !std::mem::take(&mut is_first) {
            let around = lease::around(lanes, i64::try_from(ways.len()).unwrap_or(1), 1);
            lane::reserve_all(lanes, follow.interval + request.time + around + SLACK, stop, watch);
            has_place = true;
        }
        for (to_come, each) in (1..=turns).rev().zip(&mut followed) {
            let lane = &mut lanes[each.lane];
            if stop.is_raised() || !lane.is_alive() || clock::now() >= end {
                continue;
            }
            let Some(time) = allowed(lane, asked) else { continue };
            let needed = time + lease::exchanges_at_most(lane.round_trip(), 1, MAX_VOLLEY_PATIENCE);
            if has_place {
                lane::keep_reserved(lanes, needed, needed * to_come, stop, watch);
            } else {
                lane::reserve_again(lanes, needed * to_come, stop, watch);
                has_place = true;
            }
            let lane = &mut lanes[each.lane];
            if stop.is_raised() || !lane.is_alive() {
                continue;
            }
            watch.phase(format!("{} {}", request.metric().name(), each.direction.name()), Some(lane.version));
            let until = (clock::now() + share).min(end);
            let turn_until = until.min(clock::now() + time);
            let known = known.through(lane.local);
            let Some(session) = lane.session() else { continue };
            // One that tracks goes on in its next turn.
            let limit = if request.tracks() { end - began_at } else { time };
            let instrument = instrument(session, request, &known, each.direction, limit);
            let over = session.over.clone();
            let (failure, sent) = each.take_turn(session, request, &known, &instrument, turn_until);
            let is_capped = each.last.as_ref().is_some_and(|last| last.capped.is_some());
            if is_capped && let Some(most) = told_cap_on_bytes(lane) {
                each.tell_cap(lane.version, most, watch);
            }
            if request.tracks() {
                each.tell_hopeless(lane.version, request, watch);
            }
            if let Err(cause) = failure {
                lane.fail("send trains", cause);
            }
            if sent > 0 {
                each.tell(lane.version, began_at, watch);
            }
            // The responder takes a place back that is not used, and gives it to the next.
            if is_worth_releasing(until - clock::now()) {
                lane::release_all(lanes);
                has_place = false;
            }
            // The interval stays what was asked for. A turn that could not begin, or has no use for
            // its time, is over at once, and so would be all that follow. A session that is over
            // has no turn to wait for.
            wait(until, &over);
        }
        if std::mem::take(&mut has_place) {
            lane::release_all(lanes);
        }
    }
    for each in followed {
        let lane = &mut lanes[each.lane];
        let Some(last) = each.last else { continue };
        if stop.is_raised() {
            // Who is stopped while waiting for the next round has measured all the same.
            lane.result.unreachable = None;
        } else if let Some(ceased) = last.ceased.filter(|_| lane.is_alive()) {
            // The silence is that of the last turn: what came in other turns came before it.
            let why = broke_off::trains(&ceased, each.direction, lane.local);
            lane.phase_broke_off("send trains", why);
        }
        let mut rate = path_rates::result(request.metric(), lane.version, each.direction, &last);
        rate.over_time = each.over_time;
        lane.result.path_rates.push(rate);
    }
}

impl Followed {
    fn new(lane: usize, direction: Direction, began_at: Mono) -> Self {
        Self {
            lane,
            direction,
            began_at,
            estimator: None,
            pending: None,
            last: None,
            lately: None,
            over_time: Vec::new(),
            is_cap_said: false,
            is_hopeless_said: false,
        }
    }

    /// Runs the estimator until this turn is over, or for the instrument's time limit if it does
    /// not track: then it is a new one in each turn.
    fn take_turn(
        &mut self,
        session: &mut crate::session::Session,
        request: &EstimationRequest,
        known: &Known,
        instrument: &Instrument,
        until: Mono,
    ) -> (Result<(), crate::stage::Cause>, u64) {
        let version = session.version;
        let tracks = request.tracks();
        if !tracks {
            // The time of one that a failure left behind is over.
            (self.estimator, self.pending) = (None, None);
        }
        let estimator = self.estimator.get_or_insert_with(|| request.estimator(instrument));
        let pending = &mut self.pending;
        let now = clock::now();
        // A method that is content by itself is let run to its end, or its turn would never give a
        // figure.
        if tracks {
            estimator.begin_turn();
        }
        let duration = if tracks { until - now } else { instrument.time_limit };
        let mut ran = Ran::Content;
        let done =
            turn(session, request, self.direction, instrument.largest, duration + SLACK, |trains, over| {
                ran = trains.run(estimator, pending, tracks.then_some(until), over)?;
                Ok(())
            });
        let capped = session.limits.bytes.filter(|_| ran == Ran::Capped);
        if capped.is_some() && !tracks {
            estimator.cut_short(clock::now());
        }
        let (sent, sent_bytes) = self.last.as_ref().map_or((0, 0), |last| (last.sent, last.sent_bytes));
        let (received, unstamped, took) =
            self.last.as_ref().map_or((0, 0, Span::ZERO), |last| (last.received, last.unstamped, last.took));
        let (before, known_before) = self
            .last
            .take()
            .map(|last| (last.during, last.answer))
            .map_or_else(Default::default, |(during, answer)| (during, answer.ok()));
        let during = before.and(&done.during);
        // A method that begins anew knows nothing of the turns before; of one that tracks the
        // figure is mostly of the last two.
        let now_seen = done.during.disturbance(self.direction, share_of(done.unstamped, done.received));
        let before = self.lately.replace(now_seen).filter(|_| tracks);
        let disturbance = before.map_or(now_seen, |before| now_seen.or_worse(&before));
        let found = estimator.conclusion();
        let method = found.as_ref().map_or_else(|_| request.method(), |answer| answer.method);
        let host = known.honest(method, instrument.largest);
        let able = host.as_ref().map(|host| host.rate.0 as f64);
        let mut answer =
            found.map(|answer| disturbance.on(during.bounded(answer).unless_host_is_faster(able)));
        if let (true, Ok(answer)) = (tracks, answer.as_mut()) {
            // It goes on until its time is over: that cuts nothing short.
            answer.flags.retain(|flag| *flag != Flag::CutShort);
        }
        // A turn that was over before it had a figure takes no earlier one back.
        let answer = match (answer, known_before) {
            (Err(NoFigure::Stopped | NoFigure::NotSent), Some(known)) if !known.is_of_two_paths() => {
                Ok(known)
            }
            (answer, _) => answer.map_err(|why| of_a_turn(why, ran)),
        };
        let has_changed = tracks && is_of_two_paths(&answer);
        self.last = Some(Estimated {
            host,
            during,
            answer,
            tight: estimator.tight_link().and_then(|link| disturbance.on_tight_link(link)),
            modes: estimator.modes(),
            packet: instrument.largest,
            sent: sent + done.sent,
            sent_bytes: sent_bytes + done.sent_bytes,
            received: received + done.received,
            unstamped: unstamped + done.unstamped,
            // One that tracks has its load allowed for all of the time, turns of others included.
            took: if tracks { clock::now().since(self.began_at) } else { took + done.lasted },
            instrument: instrument.clone(),
            headers: headers(version),
            // Each turn has a flow of its own: what an earlier one did not get says nothing of this
            // one.
            silence: done.silence,
            ceased: done.ceased,
            capped,
        });
        // With the first trains of a new one the last turn would send more than the allowed load,
        // and have no time for a figure.
        if ran == Ran::Content && !(tracks && estimator.is_out_of_time()) {
            self.estimator = None;
        }
        if has_changed {
            // What was seen of another path is of no use for this one.
            (self.estimator, self.pending) = (None, None);
        }
        if tracks && ran == Ran::Paused {
            clock::sleep_until(until);
        }
        (done.ended, done.sent)
    }

    /// Says once, while it goes on, why turns end early: the record with its warnings comes only
    /// after the last turn, which may be a day later.
    fn tell_cap(&mut self, version: netaware_record::IpVersion, most: ByteCount, watch: &mut Watch<'_>) {
        if !std::mem::replace(&mut self.is_cap_said, true) {
            watch.tell(Progress::Note(format!(
                "{} {}: the responder's owner allows tests of no more than {most}: each turn ends at that",
                version.name(),
                self.direction.name()
            )));
        }
    }

    /// Says once, while it goes on, that turns have no figure because of the path, and what would
    /// have one.
    fn tell_hopeless(
        &mut self,
        version: netaware_record::IpVersion,
        request: &EstimationRequest,
        watch: &mut Watch<'_>,
    ) {
        let Some(Err(why)) = self.last.as_ref().map(|last| &last.answer) else { return };
        let Some(what) = hopeless(*why, request) else { return };
        if !std::mem::replace(&mut self.is_hopeless_said, true) {
            watch.tell(Progress::Note(format!("{} {}: {what}", version.name(), self.direction.name())));
        }
    }

    fn tell(&mut self, version: netaware_record::IpVersion, began_at: Mono, watch: &mut Watch<'_>) {
        let Some(last) = &self.last else { return };
        let point = path_rates::point(clock::now() - began_at, &last.answer);
        watch.tell(Progress::Rate { version, direction: self.direction, point: point.clone() });
        if self.over_time.len() >= MOST_POINTS {
            self.over_time.remove(0);
        }
        self.over_time.push(point);
    }
}

/// What one turn may take, before the caps of the responder's owner: a method that tracks has its
/// share of the interval, one that is content by itself the time that was asked for.
fn turn_time(request: &EstimationRequest, follow: Follow, share: Span) -> Span {
    if request.tracks() { share.min(follow.lasting.unwrap_or(ENDLESS)) } else { request.time }
}

/// Why a turn gave no figure: nobody stopped one that was over before it had any.
fn of_a_turn(why: NoFigure, ran: Ran) -> NoFigure {
    match why {
        NoFigure::Stopped if matches!(ran, Ran::Paused | Ran::Capped) => {
            NoFigure::TooShort { carried: None, enough: None }
        }
        why => why,
    }
}

/// Why each turn of a method that tracks ends without a figure, where first trains have shown that
/// the path is too slow for it, and what to do; `None` where a later turn may have one.
fn hopeless(why: NoFigure, request: &EstimationRequest) -> Option<String> {
    match why {
        NoFigure::TooSlow(carried) => {
            let (chirp, curve) = (request.rate_method().needs().train, RateMethod::Curve.needs().train);
            Some(format!(
                "the path carries about {}, which is too slow for this method: it needs trains of {chirp} packets; \
                 '--method curve' needs {curve}, and a smaller --packet makes trains shorter",
                BitRate(carried.max(0.0) as u64)
            ))
        }
        // Without a time that would be enough it was the turn that was too short.
        NoFigure::TooShort { enough: Some(enough), .. } => Some(format!(
            "the time is too short for this method over such a path: -t {}s or more would be enough",
            enough.secs_f64().ceil()
        )),
        _ => None,
    }
}

/// Whether a turn met two paths, one after the other: that is said once, and the next turn begins
/// with nothing that is known of the first one.
fn is_of_two_paths(answer: &Result<Estimate, NoFigure>) -> bool {
    match answer {
        Ok(answer) => answer.is_of_two_paths(),
        Err(why) => matches!(why, NoFigure::PathChanged | NoFigure::Slower { .. }),
    }
}

/// Whether others have their chance meanwhile, if the next turn begins after so long: well before
/// the responder finds that nobody uses the place.
fn is_worth_releasing(wait: Span) -> bool {
    wait > LONGEST_IDLE
}

/// Waits until then, or until the session or a person ends it.
fn wait(until: Mono, stop: &StopFlag) {
    while clock::now() < until && !stop.is_raised() {
        clock::sleep_until(until.min(clock::now() + LOOK));
    }
}

/// How often whoever waits looks whether it was stopped.
const LOOK: Span = Span::from_millis(50);
/// A place is kept for so long without a test; the responder takes it back after 10 s.
const LONGEST_IDLE: Span = Span::from_secs(4);
/// Kept of one version and direction: a day with one every ten seconds.
const MOST_POINTS: usize = 8640;

#[cfg(test)]
mod tests {
    use netaware_path::Bound;
    use netaware_stats::interval::Interval;

    use super::super::{AvailableMethod, Estimation};
    use super::*;
    use crate::request::Target;

    /// `--watch 60s` held the place unused until the responder took it back, and ended then.
    #[test]
    fn a_place_that_is_not_used_until_the_next_turn_is_given_back_before_the_responder_takes_it() {
        let seconds = Span::from_secs;
        for (wait, is_released) in [(-1, false), (0, false), (4, false), (5, true), (55, true)] {
            assert_eq!(is_worth_releasing(seconds(wait)), is_released, "{wait} s");
        }
    }

    #[test]
    fn a_path_that_changed_once_is_not_told_as_changed_in_each_turn() {
        let figure = |flags: &[Flag]| Estimate {
            rate: Interval { estimate: 1e7, lo: 9e6, hi: 1.1e7, confidence: 0.95 },
            bound: Bound::None,
            method: "chirp",
            bytes: 1,
            packets: 1,
            took: Span(1),
            flags: flags.to_vec(),
        };
        // After these the next turn begins with nothing that is known.
        for flag in [Flag::PathChanged, Flag::Slower { from: 6e7, to: 1.2e7 }] {
            assert!(is_of_two_paths(&Ok(figure(&[Flag::Noisy, flag]))));
        }
        assert!(is_of_two_paths(&Err(NoFigure::Slower { from: 6e7, to: 1.2e7 })));
        assert!(is_of_two_paths(&Err(NoFigure::PathChanged)));
        // After these the method goes on.
        assert!(!is_of_two_paths(&Ok(figure(&[Flag::Noisy]))));
        assert!(!is_of_two_paths(&Err(NoFigure::Stopped)));
    }

    #[test]
    fn a_turn_is_planned_by_its_own_time_and_not_by_that_of_the_whole_watch() {
        let of = |method| EstimationRequest::new(Target::new("h"), Estimation::Available(method));
        let (chirp, curve) = (of(AvailableMethod::Chirp), of(AvailableMethod::Curve));
        let minute = Span::from_secs(60);
        let watch = |lasting| Follow { interval: minute, lasting };
        assert_eq!(turn_time(&chirp, watch(None), minute / 2), minute / 2);
        assert_eq!(turn_time(&chirp, watch(Some(minute / 3)), minute), minute / 3);
        // It would be told that it has a day, and its test at the responder lasts 40 s.
        assert_eq!(turn_time(&curve, watch(None), minute / 4), curve.time);
    }

    #[test]
    fn a_cap_that_ends_every_turn_is_said_at_once_and_only_once() {
        let mut said = Vec::new();
        let mut listener = |progress: Progress| said.push(progress);
        let mut watch = Watch::new(Span::ZERO, &mut listener);
        let mut followed = Followed::new(0, Direction::Forward, Mono(0));
        for _ in 0..2 {
            followed.tell_cap(netaware_record::IpVersion::V4, ByteCount(51_200), &mut watch);
        }
        let note =
            "IPv4 up: the responder's owner allows tests of no more than 50.0 KiB: each turn ends at that";
        assert_eq!(said, [Progress::Note(note.to_owned())]);
    }

    /// `--watch` over 0.5 Mbit/s sent first trains again and again, and never said why it had no
    /// figure.
    #[test]
    fn a_path_that_is_too_slow_for_chirps_is_said_to_be_once_with_what_has_a_figure() {
        let request = EstimationRequest::new(Target::new("h"), Estimation::Available(AvailableMethod::Chirp));
        let slow = "the path carries about 500 kbit/s, which is too slow for this method: it needs trains of 20 packets; \
                    '--method curve' needs 8, and a smaller --packet makes trains shorter";
        assert_eq!(hopeless(NoFigure::TooSlow(5e5), &request).as_deref(), Some(slow));
        let short = |enough| NoFigure::TooShort { carried: Some(1e6), enough };
        let said = hopeless(short(Some(Span::from_millis(99_100))), &request).unwrap();
        assert!(said.ends_with("-t 100s or more would be enough"), "{said}");
        // The next turn may have a figure.
        for other in [short(None), NoFigure::NotSent, NoFigure::PathChanged, NoFigure::Undecided] {
            assert_eq!(hopeless(other, &request), None);
        }
    }

    #[test]
    fn the_next_turn_is_not_waited_for_where_its_time_has_come_or_its_session_is_over() {
        let (stop, now) = (StopFlag::new(), clock::now());
        let over = stop.child();
        wait(now, &over);
        over.raise();
        wait(now + Span::from_secs(3600), &over);
        assert!(clock::now() - now < Span::from_secs(3600) && !stop.is_raised());
    }

    #[test]
    fn a_turn_that_was_too_short_for_a_figure_was_not_stopped_by_anybody() {
        let too_short = NoFigure::TooShort { carried: None, enough: None };
        assert_eq!(of_a_turn(NoFigure::Stopped, Ran::Paused), too_short);
        assert_eq!(of_a_turn(NoFigure::Stopped, Ran::Capped), too_short);
        assert_eq!(of_a_turn(NoFigure::Stopped, Ran::Stopped), NoFigure::Stopped);
        assert_eq!(of_a_turn(NoFigure::NotSent, Ran::Paused), NoFigure::NotSent);
    }
}
