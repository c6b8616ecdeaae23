//! One question over both IP versions at once: a volley over one, a volley over the other, until
//! each has its answer.
//!
//! So a path that changes, and traffic that comes and goes, meets both versions alike, and what
//! differs between them is theirs. While one waits, the other does not send: versions often share
//! their links, and the share that trains may use of one would be used twice. Each estimator
//! therefore lives in a time of its own, which stands still in the other's turns; its limits and
//! its load count in that, and all together take as long as one after the other would.

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_path::{Careful, Estimator, Instrument};
use netaware_record::{Direction, IpVersion};
use netaware_units::{Mono, Span};

use super::{
    Estimated, EstimationRequest, OPENING_TRIPS, Opened, SLACK, Turn, allowed, headers, instrument, share_of,
    told_cap_on_bytes, with_time_to_open, without_opening,
};
use crate::broke_off;
use crate::host::Known;
use crate::lane::{self, Lane};
use crate::trains::{OwnTime, Ran};

/// What one version is asked, before anything is sent.
struct Prepared {
    lane: usize,
    version: IpVersion,
    known: Known,
    instrument: Instrument,
    estimator: Careful,
}

/// One version under way.
struct Course<'a> {
    prepared: Prepared,
    opened: Opened<'a>,
    time: OwnTime,
    began_at: Mono,
    /// When its last volley was over, in its own time.
    over_at: Mono,
    ran: Option<Result<Ran, crate::stage::Cause>>,
}

/// The lanes that are measured together, in the order in which they begin: all, but where the
/// responder's owner allows no test as long as that; then they follow each other.
pub(super) fn groups(lanes: &mut [Lane], asked: Span, round: u16) -> Vec<Vec<usize>> {
    let order: Vec<usize> =
        lane::turns(lanes.len(), round).into_iter().filter(|index| lanes[*index].is_alive()).collect();
    if order.is_empty() {
        return Vec::new();
    }
    let together = asked * i64::try_from(order.len()).unwrap_or(1);
    let shortest = order.iter().filter_map(|index| super::longest(&mut lanes[*index])).min();
    match shortest {
        Some((cap, longest)) if order.len() > 1 && together > longest => {
            let told = format!(
                "the responder's owner allows tests no longer than {cap}: IP versions were measured one after the other, and not volley \
                 by volley"
            );
            for index in &order {
                lanes[*index].warn(&told);
            }
            order.into_iter().map(|index| vec![index]).collect()
        }
        _ => vec![order],
    }
}

/// Estimates over a group of lanes; those that gave nothing, and could not, are left out.
pub(super) fn estimate(
    lanes: &mut [Lane],
    group: &[usize],
    request: &EstimationRequest,
    direction: Direction,
    known: &Known,
    stop: &StopFlag,
) -> Vec<(usize, Estimated)> {
    let prepared = group.iter().filter_map(|index| prepare(lanes, *index, request, direction, known));
    let prepared: Vec<Prepared> = prepared.collect();
    let mut done = Vec::new();
    let mut courses = Vec::new();
    let all = i64::try_from(prepared.len()).unwrap_or(1);
    let mut sessions: Vec<_> = lanes.iter_mut().map(Lane::session).collect();
    for prepared in prepared {
        let Some(session) = sessions.get_mut(prepared.lane).and_then(Option::take) else { continue };
        let (largest, time) = (prepared.instrument.largest, prepared.instrument.time_limit);
        match Opened::open(session, request, direction, largest, time * all + SLACK) {
            Ok(opened) => {
                let (began_at, mut time) = (clock::now(), OwnTime::default());
                time.leave(began_at);
                courses.push(Course { prepared, opened, time, began_at, over_at: began_at, ran: None });
            }
            Err(cause) => done.push((prepared, Turn::failed(cause), Span::ZERO, Ran::Content)),
        }
    }
    in_turns(courses.len(), |index| courses[index].once());
    for course in courses {
        let took = course.over_at - course.began_at;
        let ran = course.ran.unwrap_or(Ok(Ran::Content));
        let end = *ran.as_ref().unwrap_or(&Ran::Content);
        done.push((course.prepared, course.opened.close(ran.map(|_| ())), took, end));
    }
    drop(sessions);
    // As they began, whichever opened.
    done.sort_by_key(|(prepared, ..)| group.iter().position(|index| *index == prepared.lane));
    let told = done.into_iter().filter_map(|(prepared, turn, took, end)| {
        let index = prepared.lane;
        let lane = &mut lanes[index];
        let capped = if end == Ran::Capped { told_cap_on_bytes(lane) } else { None };
        let found = finish(lane, prepared, request, direction, turn, took, stop)?;
        Some((index, Estimated { capped, ..found }))
    });
    told.collect()
}

fn prepare(
    lanes: &mut [Lane],
    index: usize,
    request: &EstimationRequest,
    direction: Direction,
    known: &Known,
) -> Option<Prepared> {
    let lane = &mut lanes[index];
    let known = known.through(lane.local);
    let time = allowed(lane, request.time)?;
    let time = without_opening(lane, time);
    let instrument = instrument(lane.session()?, request, &known, direction, time);
    let largest = instrument.largest;
    if let Some(asked) = request.packet.filter(|asked| *asked > largest) {
        lane.warn(&format!(
            "packets of {asked} bytes do not fit the path: its MTU is {largest}, and so large they were"
        ));
    }
    let estimator = request.estimator(&instrument);
    Some(Prepared { lane: index, version: lane.version, known, instrument, estimator })
}

impl Course<'_> {
    /// One more volley, if there is one.
    fn once(&mut self) -> More {
        let Opened { trains, over, .. } = &mut self.opened;
        self.time.enter(clock::now());
        let ran = trains.step(&mut self.prepared.estimator, &self.time, over);
        self.time.leave(clock::now());
        match ran {
            Ok(None) => {
                self.over_at = self.time.at(clock::now());
                More::Yes
            }
            Ok(Some(ran)) => {
                if ran == Ran::Capped {
                    self.prepared.estimator.cut_short(self.time.at(clock::now()));
                }
                self.ran = Some(Ok(ran));
                More::No
            }
            Err(cause) => {
                self.ran = Some(Err(cause));
                More::No
            }
        }
    }
}

fn finish(
    lane: &mut Lane,
    prepared: Prepared,
    request: &EstimationRequest,
    direction: Direction,
    turn: Turn,
    took: Span,
    stop: &StopFlag,
) -> Option<Estimated> {
    let Prepared { version, known, instrument, estimator, .. } = prepared;
    let Turn { sent, sent_bytes, received, unstamped, during, silence, ceased, ended, .. } = turn;
    let has_failed = ended.is_err();
    if let Err(cause) = ended {
        lane.fail("send trains", cause);
    } else if let Some(ceased) = ceased.filter(|_| !stop.is_raised()) {
        let why = broke_off::trains(&ceased, direction, lane.local);
        lane.phase_broke_off("send trains", why);
    }
    if sent == 0 && (stop.is_raised() || has_failed) {
        return None;
    }
    let disturbance = during.disturbance(direction, share_of(unstamped, received));
    let opening = lane.round_trip() * OPENING_TRIPS;
    let found = estimator.conclusion().map_err(|why| with_time_to_open(why, opening));
    let method = found.as_ref().map_or_else(|_| request.method(), |answer| answer.method);
    let packet = instrument.largest;
    let host = known.honest(method, packet);
    let able = host.as_ref().map(|host| host.rate.0 as f64);
    let answer = found.map(|answer| disturbance.on(during.bounded(answer).unless_host_is_faster(able)));
    Some(Estimated {
        host,
        answer,
        tight: estimator.tight_link().and_then(|link| disturbance.on_tight_link(link)),
        modes: estimator.modes(),
        packet,
        sent,
        sent_bytes,
        received,
        unstamped,
        took,
        instrument,
        headers: headers(version),
        during,
        silence,
        ceased,
        capped: None,
    })
}

/// Whether there is more to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Yes,
    No,
}

/// Has each of so many do one more in turns, in ABBA order, until none has more.
fn in_turns(count: usize, mut once: impl FnMut(usize) -> More) {
    let mut open = vec![true; count];
    let mut round = 0;
    while open.contains(&true) {
        for index in lane::turns(count, round) {
            open[index] = open[index] && once(index) == More::Yes;
        }
        round ^= 1;
    }
}

#[cfg(test)]
mod tests {
    use netaware_path::{Estimate, Gaps, Step, Train, Volley, VolleyReport};

    use super::*;

    #[test]
    fn volleys_of_both_versions_alternate_until_each_has_its_answer() {
        let mut left = [3, 6];
        let mut order = Vec::new();
        in_turns(2, |index| {
            order.push(index);
            left[index] -= 1;
            if left[index] == 0 { More::No } else { More::Yes }
        });
        assert_eq!(order, [0, 1, 1, 0, 0, 1, 1, 1, 1]);
        in_turns(0, |_| panic!("nobody to ask"));
    }

    /// Wants ten volleys that last 10 ms, each 100 ms after the one before: a tenth of the link.
    struct Tenth {
        began_at: Option<Mono>,
        asked: i64,
        last: Mono,
    }

    impl Estimator for Tenth {
        fn next(&mut self, now: Mono) -> Step {
            let began_at = *self.began_at.get_or_insert(now);
            assert!(now >= self.last, "time runs backwards");
            self.last = now;
            if self.asked == 10 {
                return Step::Done;
            }
            let train = Train { packets: 10, length: 1250, gaps: Gaps::BackToBack, rest: Span::ZERO };
            Step::Volley {
                volley: Volley { trains: vec![train] },
                due: began_at + Span::from_millis(100 * self.asked),
            }
        }

        fn take(&mut self, now: Mono, _: &VolleyReport, took: Span) {
            assert_eq!(
                now,
                self.last.max(self.began_at.unwrap() + Span::from_millis(100 * self.asked)) + took
            );
            self.last = now;
            self.asked += 1;
        }

        fn answer(&self) -> Option<Estimate> {
            None
        }
    }

    /// What `Trains::step` does, on a clock of the test's own; says when the volley left.
    fn step(estimator: &mut Tenth, time: &OwnTime, wall: &mut Mono) -> Option<Mono> {
        let Step::Volley { due, .. } = estimator.next(time.at(*wall)) else { return None };
        let took = Span::from_millis(10);
        let left_at = time.wall(due).max(*wall);
        *wall = left_at + took;
        estimator.take(time.at(*wall), &VolleyReport { trains: Vec::new() }, took);
        Some(left_at)
    }

    #[test]
    fn each_lives_in_its_own_time_and_both_together_load_the_link_no_more_than_one() {
        let mut wall = Mono(7_000_000);
        let began_at = wall;
        let mut courses: Vec<(Tenth, OwnTime)> =
            (0..2).map(|_| (Tenth { began_at: None, asked: 0, last: Mono(0) }, OwnTime::default())).collect();
        let mut left: Vec<(usize, Mono)> = Vec::new();
        in_turns(2, |index| {
            let (estimator, time) = &mut courses[index];
            time.enter(wall);
            let sent = step(estimator, time, &mut wall);
            time.leave(wall);
            left.extend(sent.map(|at| (index, at)));
            if sent.is_some() { More::Yes } else { More::No }
        });
        // Ten volleys each, none more than two ahead of the other's.
        for (n, _) in left.iter().enumerate() {
            let of = |index| left[..=n].iter().filter(|(of, _)| *of == index).count();
            assert!(of(0).abs_diff(of(1)) <= 1, "{left:?}");
        }
        assert_eq!(left.len(), 20);
        // 9 distances of 100 ms and the last volley, twice; 20 volleys of 10 ms in that are a
        // tenth, and a little more for the ends.
        assert_eq!(wall - began_at, Span::from_millis(2 * 910));
        for (estimator, time) in &courses {
            assert_eq!(time.at(wall) - estimator.began_at.unwrap(), Span::from_millis(910));
        }
        for two in left.windows(2) {
            assert!(two[1].1 - two[0].1 >= Span::from_millis(10), "one waits until the other's is over");
        }
    }
}
