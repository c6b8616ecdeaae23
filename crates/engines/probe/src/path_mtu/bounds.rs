//! What is known of the path MTU: the largest size that passed and the smallest that did not.

use netaware_record::MtuFinding;

/// Why a size does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// Not tried: nothing above the believed MTU is.
    Unbelieved,
    /// A router, or the system, said so.
    Told,
    /// No answer to any try, and nobody knows whether anything passed at that time.
    Doubtful,
    /// No answer to any try, in which a smaller size was answered.
    Silent,
    /// The system would not send it, for a reason of its own.
    Refused,
}

/// Invariant: `passed < failed`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    believed: u32,
    floor: u32,
    passed: Option<u32>,
    failed: u32,
    why: Failure,
    /// Smallest size that somebody said is too big.
    told: Option<u32>,
    common_tried: bool,
}

impl Bounds {
    pub(super) fn new(believed: u32, floor: u32) -> Self {
        let failed = believed + 1;
        Self {
            believed,
            floor,
            passed: None,
            failed,
            why: Failure::Unbelieved,
            told: None,
            common_tried: false,
        }
    }

    pub(super) fn passed(&self) -> Option<u32> {
        self.passed
    }

    pub(super) fn smallest_failed(&self) -> u32 {
        self.failed
    }

    /// The smallest size of which nothing came back, if that is what bounds the search.
    pub(super) fn vanishes(&self) -> Option<u32> {
        (self.why == Failure::Silent && self.passed.is_some()).then_some(self.failed)
    }

    /// A size was answered. True when that contradicts an earlier failure, which is then taken
    /// back.
    pub(super) fn pass(&mut self, size: u32) -> bool {
        self.passed = self.passed.max(Some(size));
        let contradiction = size >= self.failed;
        if contradiction {
            let told = self.told.filter(|told| *told > size);
            self.failed = told.unwrap_or(self.believed + 1);
            self.why = if told.is_some() { Failure::Told } else { Failure::Unbelieved };
        }
        contradiction
    }

    /// The size whose failure is to be looked at again, once a smaller one passes.
    fn doubtful(&self) -> Option<u32> {
        (self.why == Failure::Doubtful).then_some(self.failed)
    }

    /// A size failed. Ignored if a larger one has passed: then it was bad luck.
    pub(super) fn fail(&mut self, size: u32, why: Failure) {
        let is_news = size < self.failed || self.doubtful() == Some(size);
        if is_news && self.passed.is_none_or(|passed| size > passed) {
            self.failed = size;
            self.why = why;
        }
    }

    /// A size was called too big, and perhaps the largest that is not. What is told is believed
    /// only as far as it makes sense: below the size, not below the floor.
    pub(super) fn told(&mut self, size: u32, mtu: Option<u32>) {
        let mtu = mtu.filter(|mtu| *mtu < size).map_or(size - 1, |mtu| mtu.max(self.floor.min(size - 1)));
        self.fail(mtu + 1, Failure::Told);
        if self.why == Failure::Told {
            self.told = Some(self.failed);
        }
    }

    /// Sizes to try at once, largest first; empty when the search is over.
    pub(super) fn next_sizes(&mut self) -> Vec<u32> {
        let top = self.failed - 1;
        let untried_top = matches!(self.why, Failure::Unbelieved | Failure::Told);
        match self.passed {
            Some(passed) if passed == top && self.doubtful().is_none() => Vec::new(),
            None if top < self.floor => Vec::new(),
            _ if untried_top => vec![top],
            Some(passed) => self.doubtful().into_iter().chain(between(passed, self.failed)).collect(),
            None if self.common_tried => Vec::new(),
            None => {
                self.common_tried = true;
                let common = COMMON.into_iter().filter(|size| (self.floor + 1..self.failed).contains(size));
                common.chain([self.floor]).collect()
            }
        }
    }

    pub(super) fn finding(&self) -> MtuFinding {
        match (self.passed, self.why) {
            (Some(passed), _) if passed == self.believed => MtuFinding::Confirmed,
            (Some(_), Failure::Told) => MtuFinding::Learnt,
            (Some(_), Failure::Silent) => MtuFinding::BlackHole,
            (Some(_), Failure::Refused | Failure::Unbelieved | Failure::Doubtful) | (None, _) => {
                MtuFinding::Unknown
            }
        }
    }
}

/// Sizes that divide what lies between evenly, largest first.
fn between(passed: u32, failed: u32) -> Vec<u32> {
    let inside = failed - passed - 1;
    let parts = inside.min(AT_ONCE);
    (1..=parts)
        .rev()
        .map(|part| passed + (u64::from(inside + 1) * u64::from(part) / u64::from(parts + 1)) as u32)
        .collect()
}

/// What paths really have: FDDI and token ring, jumbo frames, Ethernet, PPPoE, GRE and IPIP
/// tunnels, WireGuard and other VPNs, 1400 and 1380 as administrators like them, Azure and older
/// VPNs, the IPv6 minimum.
const COMMON: [u32; 12] = [9000, 4352, 1500, 1492, 1480, 1472, 1460, 1420, 1400, 1380, 1350, 1280];
/// Tried at once when a range is divided: the range shrinks ninefold for the time of one failure.
const AT_ONCE: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_divided_evenly_and_always_get_smaller() {
        assert_eq!(between(1400, 1402), [1401]);
        assert_eq!(between(1400, 1404), [1403, 1402, 1401]);
        assert_eq!(between(1400, 1409), [1408, 1407, 1406, 1405, 1404, 1403, 1402, 1401]);
        let sizes = between(1500, 9000);
        assert_eq!((sizes.len(), sizes[0], sizes[7]), (8, 8166, 2333));
    }

    #[test]
    fn what_is_told_is_believed_within_reason() {
        let rows = [
            (Some(1400), 1401),
            (Some(1500), 1500),
            (Some(9000), 1500),
            (Some(0), 577),
            (Some(68), 577),
            (None, 1500),
        ];
        for (told, failed) in rows {
            let mut bounds = Bounds::new(1500, 576);
            bounds.told(1500, told);
            assert_eq!(bounds.smallest_failed(), failed, "{told:?}");
        }
    }

    #[test]
    fn a_smaller_size_that_fails_is_bad_luck_once_a_larger_one_passed() {
        let mut bounds = Bounds::new(1500, 576);
        bounds.pass(1492);
        bounds.fail(1400, Failure::Silent);
        assert_eq!((bounds.passed(), bounds.smallest_failed()), (Some(1492), 1501));
    }

    #[test]
    fn a_size_that_failed_while_nothing_passed_is_tried_again_before_it_is_a_black_hole() {
        let doubtful = |passed| {
            let mut bounds = Bounds::new(1500, 576);
            bounds.fail(1500, Failure::Doubtful);
            bounds.pass(passed);
            bounds
        };
        let mut bounds = doubtful(1499);
        assert_eq!((bounds.finding(), bounds.vanishes()), (MtuFinding::Unknown, None));
        assert_eq!(bounds.next_sizes(), [1500]);
        assert_eq!(doubtful(1497).next_sizes(), [1500, 1499, 1498]);
        bounds.fail(1500, Failure::Silent);
        assert_eq!((bounds.finding(), bounds.vanishes()), (MtuFinding::BlackHole, Some(1500)));
        assert_eq!(bounds.next_sizes(), [0_u32; 0]);
        let mut bounds = doubtful(1499);
        assert!(bounds.pass(1500));
        assert_eq!((bounds.finding(), bounds.next_sizes()), (MtuFinding::Confirmed, Vec::new()));
    }

    #[test]
    fn a_size_that_passes_takes_back_failures_below_it_and_keeps_what_was_told_above_it() {
        // The MTU that was told, the size that passes after 1400 failed, and what is known then.
        let rows = [
            (None, 1399, false, 1400, MtuFinding::BlackHole),
            (None, 1400, true, 1501, MtuFinding::Unknown),
            (None, 1500, true, 1501, MtuFinding::Confirmed),
            (Some(1450), 1450, true, 1451, MtuFinding::Learnt),
            (Some(1450), 1451, true, 1501, MtuFinding::Unknown),
        ];
        for (told, size, contradicts, failed, finding) in rows {
            let mut bounds = Bounds::new(1500, 576);
            if told.is_some() {
                bounds.told(1500, told);
            }
            bounds.fail(1400, Failure::Silent);
            assert_eq!(bounds.pass(size), contradicts, "{told:?}, {size}");
            assert_eq!((bounds.smallest_failed(), bounds.finding()), (failed, finding), "{told:?}, {size}");
            assert_eq!(bounds.passed(), Some(size));
        }
    }
}
