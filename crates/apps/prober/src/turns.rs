//! A bulk command as a whole: connect, queue, and let each version have its turns.

use std::collections::BTreeMap;

use netaware_io::stop::StopFlag;
use netaware_record::Record;
use netaware_units::Span;

use crate::lane::{self, Lane};
use crate::lease;
use crate::progress::{Afterwards, Progress, REPEATED, Watch};
use crate::report::{self, Findings};
use crate::request::Target;

/// What the command is, and how long it takes.
pub(crate) struct Course<'a> {
    pub(crate) command: &'static str,
    pub(crate) target: &'a Target,
    pub(crate) options: BTreeMap<String, String>,
    /// Per version, shared out over its turns.
    pub(crate) time: Span,
    /// Ends after a number of bytes or packets, which is not split into turns.
    pub(crate) counted: bool,
    /// Connections or knocks of a transfer that are made one after the other.
    pub(crate) connects: i64,
    /// How long queues may be waited for after a turn that has sent for so long.
    pub(crate) drain: fn(Span) -> Span,
    /// What preparing one version takes where nothing is lost and an exchange takes so long.
    pub(crate) preparing: &'a dyn Fn(Span) -> Span,
    /// How long the receiver of a turn listens on after its end on a path of this round trip.
    pub(crate) settling: fn(Span) -> Span,
}

impl Course<'_> {
    /// What all turns take, where an exchange with the responder takes so long.
    fn lasts(&self, lanes: &[Lane], rounds: u16, exchange: Span) -> Span {
        let alive = lanes.iter().filter(|lane| lane.is_alive());
        alive.map(|lane| self.turn(lane, rounds, exchange) * i64::from(rounds)).sum()
    }

    /// What one turn takes.
    fn turn(&self, lane: &Lane, rounds: u16, exchange: Span) -> Span {
        let around = lease::exchanges(exchange, self.connects) + (self.settling)(lane.round_trip());
        self.time / i64::from(rounds.max(1)) + around
    }
}

/// Turns of each version when both are measured: two, in ABBA order.
const ROUNDS: u16 = 2;
/// Added to the time asked for: opening and ending the transfers.
const SLACK: Span = Span::from_secs(8);

/// Runs `prepare` for each version once it has the responder's place, and then `turn` for each
/// version in each round; it is told how many rounds there are.
pub(crate) fn take(
    course: &Course<'_>,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
    prepare: &dyn Fn(&mut Lane, &mut Watch<'_>),
    turn: &dyn Fn(&mut Lane, &mut Findings, u16, &mut Watch<'_>),
) -> Record {
    let opened = report::Opening::now(course.command, course.target, course.options.clone());
    let versions = i64::try_from(course.target.versions.len()).unwrap_or(1);
    let mut watch = Watch::new(course.time * versions, progress);
    watch.phase("connect", None);
    let mut lanes = lane::open_all(course.target, stop);
    lane::note_dead(&lanes, &mut watch);
    let mut findings: Vec<Findings> = lanes.iter().map(|_| Findings::default()).collect();
    let alive = lanes.iter().filter(|lane| lane.is_alive()).count();
    let rounds = if alive > 1 && !course.counted { ROUNDS } else { 1 };
    let around = lease::around(&lanes, i64::from(rounds), course.connects);
    let drain = (course.drain)(course.time / i64::from(rounds));
    lane::reserve_all(&mut lanes, course.time * versions + around + drain + SLACK, stop, &mut watch);
    let exchange = lease::exchange(&lanes);
    let rest = course.lasts(&lanes, rounds, exchange);
    let preparing = (course.preparing)(exchange) * i64::try_from(alive).unwrap_or(1);
    watch.announce(preparing + rest, exchange);
    let began_at = watch.done();
    lanes.iter_mut().filter(|lane| lane.is_alive()).for_each(|lane| prepare(lane, &mut watch));
    let took = watch.done() - began_at;
    watch.review(rest, &format!("finding out what the path carries has taken {took}"));
    let turns: Vec<usize> = (0..rounds).flat_map(|round| lane::turns(lanes.len(), round)).collect();
    for (n, index) in turns.iter().copied().enumerate() {
        if stop.is_raised() || !lanes[index].is_alive() {
            continue;
        }
        let left = || turns[n..].iter().filter(|index| lanes[**index].is_alive());
        let each = course.time / i64::from(rounds)
            + lease::exchanges_at_most(lanes[index].round_trip(), course.connects, drain);
        let turns_left = i64::try_from(left().count()).unwrap_or(1);
        let rest: Span = left().map(|index| course.turn(&lanes[*index], rounds, exchange)).sum();
        let afterwards = rest - course.turn(&lanes[index], rounds, exchange);
        watch.review(rest, REPEATED);
        watch.will_go_on_for(Afterwards::Fixed(afterwards));
        lane::keep_reserved(&mut lanes, each, each * turns_left, stop, &mut watch);
        watch.phase(course.command.to_uppercase(), Some(lanes[index].version));
        turn(&mut lanes[index], &mut findings[index], rounds, &mut watch);
        if is_last_turn(&turns, n) && lanes[index].is_alive() && !stop.is_raised() {
            lanes[index].note_measured();
        }
    }
    report::finish(opened, lanes, &mut findings, stop)
}

/// Whether the version of the `n`-th turn has no other one behind it: then it is measured.
fn is_last_turn(turns: &[usize], n: usize) -> bool {
    !turns[n + 1..].contains(&turns[n])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IPv6 died beside the last turn of IPv4, when both turns of IPv6 were whole, and was said to
    /// have broken off before its end.
    #[test]
    fn a_version_is_measured_when_its_last_turn_is_over() {
        let measured =
            |turns: &[usize]| -> Vec<bool> { (0..turns.len()).map(|n| is_last_turn(turns, n)).collect() };
        assert_eq!(measured(&[0, 1, 1, 0]), [false, false, true, true]);
        assert_eq!(measured(&[0, 1]), [true, true]);
        assert_eq!(measured(&[0]), [true]);
    }
}
