//! When a transfer changes its IP version because somebody wants it.

use std::str::FromStr;

use netaware_record::IpVersion;

/// What a person wants: `auto`, `off`, `4`, `6`, `at=50%`, or some of them with commas between.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SwitchPlan {
    /// Where it begins.
    pub first: Option<IpVersion>,
    /// The faster one is found and used.
    pub auto: bool,
    /// It goes to the other one where so much of all bytes is there, in hundredths of a percent,
    /// rising.
    at: Vec<u32>,
}

impl SwitchPlan {
    /// To the faster one.
    pub fn automatic() -> Self {
        Self { auto: true, ..Self::default() }
    }
}

/// Why a text is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SwitchPlanError {
    /// Not one of the words.
    #[error("say auto, off, 4, 6 or at=PERCENT, as in 'at=25%,at=75%' or '4,at=50%'")]
    Unknown,
    /// Not between the ends.
    #[error("a share is more than 0% and less than 100%, with at most two decimals")]
    Share,
    /// Both.
    #[error("'auto' and 'off' stand alone, and only one of 4 and 6 can be the first")]
    Contradiction,
}

impl FromStr for SwitchPlan {
    type Err = SwitchPlanError;

    fn from_str(text: &str) -> Result<Self, SwitchPlanError> {
        match text {
            "auto" => return Ok(Self::automatic()),
            "off" => return Ok(Self::default()),
            _ => {}
        }
        let mut plan = Self::default();
        for word in text.split(',').map(str::trim) {
            let first = match word {
                "4" => IpVersion::V4,
                "6" => IpVersion::V6,
                "auto" | "off" => return Err(SwitchPlanError::Contradiction),
                _ => {
                    let at = word.strip_prefix("at=").ok_or(SwitchPlanError::Unknown)?;
                    plan.at.push(share(at)?);
                    continue;
                }
            };
            if plan.first.replace(first).is_some() {
                return Err(SwitchPlanError::Contradiction);
            }
        }
        plan.at.sort_unstable();
        plan.at.dedup();
        Ok(plan)
    }
}

fn share(text: &str) -> Result<u32, SwitchPlanError> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let value: f64 = number.parse().map_err(|_| SwitchPlanError::Share)?;
    let hundredths = (value * 100.0).round();
    if (value * 100.0 - hundredths).abs() < 1e-6 && (1.0..WHOLE.into()).contains(&hundredths) {
        Ok(hundredths as u32)
    } else {
        Err(SwitchPlanError::Share)
    }
}

/// A plan on its way.
#[derive(Debug, Clone)]
pub(crate) struct Switching {
    /// Where it has to go and has not gone: at the start, and after each share.
    first: Option<IpVersion>,
    at: Vec<u32>,
    /// The first of `at` that is still to come.
    next: Option<usize>,
}

impl Switching {
    pub(crate) fn new(plan: &SwitchPlan) -> Self {
        Self { first: plan.first, at: plan.at.clone(), next: None }
    }

    /// The first bytes are about to go, and so many are there already: what that has passed is not
    /// done any more.
    pub(crate) fn begin(&mut self, done: u64, total: u64) {
        let share = share_of(done, total);
        self.next.get_or_insert_with(|| self.at.iter().filter(|at| **at < share).count());
    }

    /// The version to ask for now, of a transfer that has begun, has so much of its bytes there and
    /// uses `current`.
    pub(crate) fn due(&self, done: u64, total: u64, current: IpVersion) -> Option<IpVersion> {
        let share = share_of(done, total);
        if self.at.get(self.next?).is_some_and(|at| *at <= share) {
            return Some(current.other());
        }
        self.first.filter(|first| *first != current)
    }

    /// What was due has been asked for.
    pub(crate) fn asked(&mut self, done: u64, total: u64) {
        let share = share_of(done, total);
        self.first = None;
        if let Some(next) = &mut self.next
            && self.at.get(*next).is_some_and(|at| *at <= share)
        {
            *next += 1;
        }
    }

    /// Shares, in percent, at which it should have switched and could not.
    pub(crate) fn missed(&self) -> Vec<f64> {
        self.at[self.next.unwrap_or(0)..].iter().map(|at| f64::from(*at) / 100.0).collect()
    }
}

fn share_of(done: u64, total: u64) -> u32 {
    (u128::from(done) * u128::from(WHOLE)).checked_div(u128::from(total)).unwrap_or(0) as u32
}

/// In hundredths of a percent.
const WHOLE: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_and_what_makes_none_is_refused() {
        let plan = |text: &str| text.parse::<SwitchPlan>();
        assert!(plan("auto").unwrap().auto);
        assert_eq!(plan("off"), Ok(SwitchPlan::default()));
        assert_eq!(plan("6").unwrap().first, Some(IpVersion::V6));
        assert_eq!(plan("at=75%, at=25%,4").unwrap().at, [2500, 7500]);
        assert_eq!(plan("at=12.5").unwrap().at, [1250]);
        for (text, want) in [
            ("", SwitchPlanError::Unknown),
            ("5", SwitchPlanError::Unknown),
            ("at=", SwitchPlanError::Share),
            ("at=0%", SwitchPlanError::Share),
            ("at=100%", SwitchPlanError::Share),
            ("at=nan", SwitchPlanError::Share),
            ("at=1.234%", SwitchPlanError::Share),
            ("4,6", SwitchPlanError::Contradiction),
            ("auto,at=50%", SwitchPlanError::Contradiction),
        ] {
            assert_eq!(plan(text), Err(want), "{text}");
        }
    }

    #[test]
    fn each_share_switches_once_and_waits_until_it_can() {
        let mut switching = Switching::new(&"at=25%,at=75%".parse().unwrap());
        assert_eq!(switching.due(990, 1000, IpVersion::V6), None, "not begun");
        switching.begin(0, 1000);
        assert_eq!(switching.due(0, 1000, IpVersion::V6), None);
        assert_eq!(switching.due(249, 1000, IpVersion::V6), None);
        assert_eq!(switching.due(260, 1000, IpVersion::V6), Some(IpVersion::V4));
        assert_eq!(switching.due(270, 1000, IpVersion::V6), Some(IpVersion::V4), "not asked for yet");
        switching.asked(270, 1000);
        assert_eq!(switching.due(300, 1000, IpVersion::V4), None);
        assert_eq!(switching.due(800, 1000, IpVersion::V4), Some(IpVersion::V6));
        assert_eq!(switching.missed(), [75.0]);
        switching.asked(800, 1000);
        assert!(switching.missed().is_empty());
    }

    #[test]
    fn what_a_resumed_transfer_has_behind_it_is_not_done_again() {
        let mut switching = Switching::new(&"4,at=25%,at=75%".parse().unwrap());
        switching.begin(500, 1000);
        assert_eq!(switching.due(500, 1000, IpVersion::V6), Some(IpVersion::V4), "where it begins");
        switching.asked(500, 1000);
        assert_eq!(switching.due(600, 1000, IpVersion::V4), None);
        assert_eq!(switching.due(750, 1000, IpVersion::V4), Some(IpVersion::V6));
    }

    #[test]
    fn nothing_to_send_is_no_share() {
        let mut switching = Switching::new(&"at=50%".parse().unwrap());
        switching.begin(0, 0);
        assert_eq!(switching.due(0, 0, IpVersion::V4), None);
    }
}
