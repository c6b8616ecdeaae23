//! Which rate next: from outside in, around a grey region.
//!
//! The state is four rates: the highest at which no fleet rose, the lowest at which one did, and
//! between them the lowest and the highest that were grey. It ends when what is not known has
//! become narrow: the bracket, or both of its rims.

/// What a fleet says of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Above the available bandwidth.
    Above,
    /// Below it.
    Below,
    /// Now and then.
    Grey,
}

/// The search as it stands; all rates in bit/s.
#[derive(Debug, Clone)]
pub(super) struct Search {
    below: Option<f64>,
    above: Option<f64>,
    grey: Option<(f64, f64)>,
    first: f64,
    fastest: f64,
    capacity: f64,
    /// Rates to try first, the next one last.
    expected: Vec<f64>,
    /// How far the next step out goes, doubled each time.
    stride: f64,
    /// A fleet said the opposite of what an older one had said of a rate further that way.
    contradicted: bool,
    /// Fleets on both sides of what was expected said at once what they should.
    confirmed: bool,
    over: bool,
}

impl Search {
    /// Begins at `available`.
    pub(super) fn new(available: f64, capacity: f64, fastest: f64) -> Self {
        Self {
            below: None,
            above: None,
            grey: None,
            first: available.min(fastest),
            fastest,
            capacity,
            expected: Vec::new(),
            stride: FIRST_STRIDE,
            contradicted: false,
            confirmed: false,
            over: false,
        }
    }

    /// Somebody says that the truth lies between these.
    pub(super) fn expect(&mut self, lo: f64, hi: f64) {
        let margin = self.resolution(self.first);
        self.expected = vec![(hi + margin).min(self.fastest), (lo - margin).max(self.first * 0.1)];
    }

    /// The rate of the next fleet.
    pub(super) fn rate(&self) -> f64 {
        if let Some(rate) = self.expected.last() {
            return *rate;
        }
        let rate = match (self.below, self.above, self.grey) {
            (None, None, None) => self.first,
            (Some(lo), Some(hi), None) => f64::midpoint(lo, hi),
            (lo, hi, Some(grey)) => self.at_rim(lo, hi, grey),
            (Some(lo), None, None) => lo * (1.0 + self.stride),
            (None, Some(hi), None) => hi / (1.0 + self.stride),
        };
        rate.min(self.fastest)
    }

    /// The wider of the two rims is halved; one without an outer end is stepped out of.
    fn at_rim(&self, lo: Option<f64>, hi: Option<f64>, grey: (f64, f64)) -> f64 {
        match (lo, hi) {
            (None, _) => grey.0 / (1.0 + self.stride),
            (_, None) => grey.1 * (1.0 + self.stride),
            (Some(lo), Some(hi)) if hi - grey.1 >= grey.0 - lo => f64::midpoint(grey.1, hi),
            (Some(lo), Some(_)) => f64::midpoint(lo, grey.0),
        }
    }

    /// A fleet at `rate`.
    pub(super) fn take(&mut self, rate: f64, verdict: Verdict) {
        let expected = self.expected.pop().is_some();
        match verdict {
            Verdict::Below => self.is_below(rate),
            Verdict::Above => self.is_above(rate),
            Verdict::Grey => {
                self.grey = Some(self.grey.map_or((rate, rate), |(lo, hi)| (lo.min(rate), hi.max(rate))));
            }
        }
        let outwards = self.below.is_none() || self.above.is_none();
        if outwards && !expected {
            self.stride *= 2.0;
        }
        let top = verdict == Verdict::Below && rate > 0.98 * self.fastest;
        let bottom = verdict == Verdict::Above && rate < LEAST_SHARE * self.capacity;
        // Both sides of what was expected are as they should be.
        self.confirmed = expected && self.expected.is_empty() && !outwards && self.grey.is_none();
        self.over = top || bottom || self.confirmed || self.is_narrow();
    }

    /// The last word counts: what an older fleet said against it is forgotten.
    fn is_below(&mut self, rate: f64) {
        self.contradicted |= self.above.is_some_and(|above| above <= rate);
        self.below = Some(self.below.map_or(rate, |old| old.max(rate)));
        self.above = self.above.filter(|above| *above > rate);
        self.grey = self.grey.and_then(|(lo, hi)| (hi > rate).then_some((lo.max(rate), hi)));
    }

    fn is_above(&mut self, rate: f64) {
        self.contradicted |= self.below.is_some_and(|below| below >= rate);
        self.above = Some(self.above.map_or(rate, |old| old.min(rate)));
        self.below = self.below.filter(|below| *below < rate);
        self.grey = self.grey.and_then(|(lo, hi)| (lo < rate).then_some((lo, hi.min(rate))));
    }

    fn resolution(&self, near: f64) -> f64 {
        (RESOLUTION * near).max(LEAST_RESOLUTION * self.capacity)
    }

    fn is_narrow(&self) -> bool {
        let (Some(lo), Some(hi)) = (self.below, self.above) else { return false };
        let narrow = |a: f64, b: f64, factor: f64| b - a <= factor * self.resolution(b);
        narrow(lo, hi, 1.0)
            || self.grey.is_some_and(|grey| narrow(lo, grey.0, RIM) && narrow(grey.1, hi, RIM))
    }

    /// bit/s, of the tight link, roughly.
    pub(super) fn capacity(&self) -> f64 {
        self.capacity
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether what it found is far from where it began, as a share of the former: one of the two
    /// was wrong, or the path changed.
    pub(super) fn strayed(&self, found: f64) -> bool {
        (self.first - found).abs() > STRAYED * found
    }

    /// Whether all that was looked at was what another method said: how far apart the rates of
    /// these fleets are is that method's choice, and no finding.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Whether fleets contradicted each other.
    pub(super) fn contradicted(&self) -> bool {
        self.contradicted
    }

    /// The best lower end that there is.
    pub(super) fn below(&self) -> Option<f64> {
        self.below.or_else(|| self.grey.filter(|_| self.above.is_some()).map(|grey| grey.0 * 0.9))
    }

    /// The best upper end that there is.
    pub(super) fn above(&self) -> Option<f64> {
        self.above.or_else(|| self.grey.filter(|_| self.below.is_some()).map(|grey| grey.1 * 1.1))
    }

    /// Where in `lo..=hi` the truth is likeliest: in the middle of what was grey.
    pub(super) fn centre(&self, lo: f64, hi: f64) -> f64 {
        self.grey.map_or_else(|| f64::midpoint(lo, hi), |grey| f64::midpoint(grey.0.max(lo), grey.1.min(hi)))
    }
}

/// Step out of the first rate, as a share of it.
const FIRST_STRIDE: f64 = 0.1;
/// Width of a bracket that is narrow, as a share of the rate.
const RESOLUTION: f64 = 0.04;
/// The same as a share of the capacity.
const LEAST_RESOLUTION: f64 = 0.01;
/// A rim of the grey region may be wider than a bracket without grey.
const RIM: f64 = 1.5;
/// The approach is off by less, if nothing is wrong.
const STRAYED: f64 = 0.2;
/// Less than this of the capacity is next to nothing.
const LEAST_SHARE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    /// Verdicts of a path whose available bandwidth moves between two rates.
    fn searched(begin: f64, lo: f64, hi: f64) -> (Search, u32) {
        let mut search = Search::new(begin, 100.0, 200.0);
        for fleets in 1..40 {
            let rate = search.rate();
            let verdict = match rate {
                rate if rate > hi => Verdict::Above,
                rate if rate < lo => Verdict::Below,
                _ => Verdict::Grey,
            };
            search.take(rate, verdict);
            if search.is_over() {
                return (search, fleets);
            }
        }
        panic!("no end: {search:?}");
    }

    #[test]
    fn it_closes_in_from_anywhere() {
        for begin in [20.0, 45.0, 50.0, 60.0, 110.0] {
            let (search, fleets) = searched(begin, 49.9, 50.1);
            let (lo, hi) = (search.below().unwrap(), search.above().unwrap());
            assert!(lo <= 50.0 && 50.0 <= hi && hi - lo <= 4.7 && fleets <= 9, "{begin}: {search:?}");
        }
    }

    #[test]
    fn a_grey_region_is_bracketed_and_not_cut() {
        for begin in [30.0, 50.0, 80.0] {
            let (search, fleets) = searched(begin, 44.0, 58.0);
            let (lo, hi) = (search.below().unwrap(), search.above().unwrap());
            assert!(lo <= 44.0 && lo > 40.0 && (58.0..63.0).contains(&hi), "{begin}: {search:?}");
            assert!(!search.contradicted());
            assert!((search.centre(lo, hi) - 51.0).abs() < 4.0 && fleets <= 13, "{fleets}");
        }
    }

    #[test]
    fn what_is_expected_is_tried_first() {
        let mut search = Search::new(50.0, 100.0, 200.0);
        search.expect(49.0, 51.0);
        assert!(search.rate() < 49.0);
        search.take(search.rate(), Verdict::Below);
        assert!(search.rate() > 51.0);
        search.take(search.rate(), Verdict::Above);
        assert!(search.above().unwrap() - search.below().unwrap() < 7.0 && search.is_over());
        assert!(search.is_confirmed());
        // What is as wide because the search ended there is a finding.
        let mut search = Search::new(50.0, 100.0, 200.0);
        search.expect(49.0, 51.0);
        search.take(search.rate(), Verdict::Below);
        search.take(search.rate(), Verdict::Grey);
        assert!(!search.is_confirmed());
    }

    #[test]
    fn the_ends_of_what_can_be_sent_end_the_search() {
        let (search, _) = searched(50.0, 500.0, 500.0);
        assert!(search.above().is_none() && search.below().unwrap() > 195.0);
        let (search, _) = searched(50.0, 0.0, 0.0);
        assert!(search.below().is_none() && search.above().unwrap() < 1.0);
    }

    #[test]
    fn the_last_word_counts() {
        let mut search = Search::new(50.0, 100.0, 200.0);
        search.take(50.0, Verdict::Above);
        search.take(70.0, Verdict::Below);
        assert_eq!((search.below(), search.above()), (Some(70.0), None));
        assert!(search.contradicted() && search.strayed(70.0) && !search.strayed(55.0));
    }
}
