//! How trains really left: what the sending host did to a plan.
//!
//! A packet may leave later than planned, never earlier, and those behind keep their distance to
//! it. So a distance that is longer than planned is the host's doing, and the shortest distance
//! seen bounds every rate that this measurement can tell.

use netaware_path::hops::{Fate, Round, RoundReport};
use netaware_path::{Gaps, Train, TrainReport, Volley, VolleyReport};
use netaware_units::Span;

/// Of all volleys so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Departures {
    /// Packets that left later after the one before than planned, by more than a tenth of the
    /// distance, and more than a microsecond.
    pub(crate) late: u64,
    /// The worst of it.
    pub(crate) worst: Span,
    /// Packets that never left.
    pub(crate) not_sent: u64,
    /// The highest rate at which two packets followed each other, bit/s of IP.
    pub(crate) fastest: Option<f64>,
    /// From first to last packets of trains, all together.
    pub(crate) sending: Span,
    /// What of that was pauses that nobody planned.
    pub(crate) pauses: Span,
}

impl Departures {
    /// Takes what left of a volley.
    pub(crate) fn observe(&mut self, volley: &Volley, report: &VolleyReport) {
        for (train, left) in volley.trains.iter().zip(&report.trains) {
            self.observe_train(train, left);
        }
    }

    /// Takes what left of a round of lone probes and pairs.
    pub(crate) fn observe_round(&mut self, round: &Round, report: &RoundReport) {
        self.not_sent += report.probes.iter().filter(|told| told.fate == Fate::NotSent).count() as u64;
        let all: Vec<_> = round.probes.iter().zip(&report.probes).collect();
        for pair in all.windows(2) {
            let [(_, before), (probe, after)] = pair else { continue };
            let is_planned = probe.after > Span::ZERO;
            if is_planned && [before, after].iter().all(|told| told.fate != Fate::NotSent) {
                self.note_gap((after.sent_at - before.sent_at).nanos(), probe.after.nanos());
            }
        }
    }

    /// With those of later trains.
    #[must_use]
    pub(crate) fn and(self, later: &Self) -> Self {
        Self {
            late: self.late + later.late,
            worst: self.worst.max(later.worst),
            not_sent: self.not_sent + later.not_sent,
            fastest: [self.fastest, later.fastest].into_iter().flatten().reduce(f64::max),
            sending: self.sending + later.sending,
            pauses: self.pauses + later.pauses,
        }
    }

    /// Of the time in which trains were being sent, the share in pauses that nobody planned, 0..=1;
    /// absent without trains.
    pub(crate) fn paused(&self) -> Option<f64> {
        (self.sending > Span::ZERO).then(|| (self.pauses.secs_f64() / self.sending.secs_f64()).min(1.0))
    }

    fn observe_train(&mut self, train: &Train, left: &TrainReport) {
        self.not_sent += left.sent.iter().filter(|at| at.is_none()).count() as u64;
        for (n, pair) in left.sent.windows(2).enumerate() {
            let [Some(before), Some(after)] = pair else { continue };
            let gap = after.saturating_sub(*before);
            if gap <= 0 {
                continue;
            }
            let rate = f64::from(train.length) * 8e9 / gap as f64;
            self.fastest = Some(self.fastest.map_or(rate, |known| known.max(rate)));
            let planned = planned(train, n);
            self.sending += Span(gap);
            let pause = Span(gap.saturating_sub(planned.unwrap_or(0)));
            self.pauses += if pause >= PAUSE { pause } else { Span::ZERO };
            if let Some(planned) = planned {
                self.note_gap(gap, planned);
            }
        }
    }

    fn note_gap(&mut self, gap: i64, planned: i64) {
        let late = gap.saturating_sub(planned);
        if late > (planned / 10).max(TOLERATED.nanos()) {
            self.late += 1;
            self.worst = self.worst.max(Span(late));
        }
    }
}

/// ns from packet `n` to the next; `None` where as soon as possible was asked for.
fn planned(train: &Train, n: usize) -> Option<i64> {
    let ps = match &train.gaps {
        Gaps::BackToBack => None,
        Gaps::Even(gap) => Some(*gap),
        Gaps::Each(gaps) => gaps.get(n).copied(),
    };
    ps.map(|ps| i64::try_from(ps / 1000).unwrap_or(i64::MAX))
}

const TOLERATED: Span = Span::from_micros(1);
/// Longer than wake-ups on idle cores are late, and shorter than a scheduler's slice.
const PAUSE: Span = Span::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn train(gaps: Gaps, sent: &[Option<i64>]) -> (Volley, VolleyReport) {
        let packets = sent.len() as u32;
        let train = Train { packets, length: 1500, gaps, rest: Span::ZERO };
        let report = TrainReport { sent: sent.to_vec(), arrivals: Vec::new() };
        (Volley { trains: vec![train] }, VolleyReport { trains: vec![report] })
    }

    fn of(gaps: Gaps, sent: &[Option<i64>]) -> Departures {
        let mut seen = Departures::default();
        let (volley, report) = train(gaps, sent);
        seen.observe(&volley, &report);
        seen
    }

    #[test]
    fn a_distance_longer_than_planned_by_more_than_a_tenth_is_late() {
        // Planned 20 us each; the third comes 50 us after the second.
        let seen = of(Gaps::Even(20_000_000), &[Some(0), Some(21_900), Some(71_900), Some(91_900)]);
        assert_eq!((seen.late, seen.worst, seen.not_sent), (1, Span::from_micros(30), 0));
        // 12,000 bit in 20 us.
        assert_eq!(seen.fastest, Some(600e6));
    }

    #[test]
    fn a_pause_is_what_nobody_planned_and_a_wake_up_is_none() {
        let seen = of(Gaps::Even(1_000_000_000), &[Some(0), Some(1_050_000), Some(5_050_000)]);
        let paused = |of: &Departures| of.paused().unwrap();
        assert!((paused(&seen) - 3.0 / 5.05).abs() < 1e-12);
        let at_once = of(Gaps::BackToBack, &[Some(0), Some(2_000), Some(302_000), Some(400_000)]);
        assert!((paused(&at_once) - 0.75).abs() < 1e-12);
        assert!((paused(&at_once.and(&seen)) - 3.3 / 5.45).abs() < 1e-12);
        assert_eq!(Departures::default().paused(), None);
    }

    #[test]
    fn what_was_to_leave_at_once_is_never_late() {
        let seen = of(Gaps::BackToBack, &[Some(0), Some(1_500), Some(900_000)]);
        assert_eq!((seen.late, seen.fastest), (0, Some(8e9)));
    }

    #[test]
    fn each_gap_has_its_own_plan_and_a_missing_packet_none() {
        let gaps = Gaps::Each(vec![100_000_000, 50_000_000, 25_000_000]);
        let seen = of(gaps, &[Some(0), Some(100_000), None, Some(175_000)]);
        assert_eq!((seen.late, seen.not_sent), (0, 1));
        assert_eq!(seen.fastest, Some(120e6));
    }

    #[test]
    fn rounds_of_probes_are_late_as_trains_are() {
        use netaware_path::hops::{Kind, Probe, Told};
        use netaware_units::Mono;
        let probe = |after_us| Probe {
            ttl: 1,
            length: 1500,
            kind: Kind::Udp,
            after: Span::from_micros(after_us),
            awaited: true,
            mute: false,
        };
        let told = |us: u64, fate| Told { sent_at: Mono(us * 1000), fate };
        // The tail has no plan but "at once"; the third is 400 us late, the last never left.
        let round = Round {
            probes: vec![probe(900), probe(0), probe(1000), probe(1000), probe(1000)],
            patience: Span::ZERO,
        };
        let probes = vec![
            told(5_000, Fate::Silent),
            told(5_900, Fate::Silent),
            told(7_300, Fate::Silent),
            told(8_350, Fate::TooBig(1400)),
            told(9_999, Fate::NotSent),
        ];
        let mut seen = Departures::default();
        seen.observe_round(&round, &RoundReport::of(probes));
        assert_eq!((seen.late, seen.worst, seen.not_sent), (1, Span::from_micros(400), 1));
        assert_eq!(seen.fastest, None);
    }

    #[test]
    fn later_trains_add_up_and_the_worst_and_the_fastest_stay() {
        let one = of(Gaps::Even(20_000_000), &[Some(0), Some(50_000)]);
        let other = of(Gaps::Even(20_000_000), &[Some(0), Some(40_000), None]);
        let both = one.and(&other);
        assert_eq!((both.late, both.worst, both.not_sent), (2, Span::from_micros(30), 1));
        assert_eq!(both.fastest, Some(300e6));
    }

    #[test]
    fn instants_that_no_clock_gives_are_survived() {
        let seen = of(Gaps::Even(u64::MAX), &[Some(i64::MIN), Some(i64::MAX), Some(5), Some(5)]);
        // The first distance is as long as a clock can tell, which is longer than any plan.
        assert_eq!((seen.late, seen.worst > Span::ZERO), (1, true));
        assert!(seen.fastest.is_some_and(f64::is_finite));
    }
}
