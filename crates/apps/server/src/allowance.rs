//! Decides which echoes are answered under the owner's cap on the rate, and how soon.
//!
//! The cap holds for the bytes of all exchanges together, requests and responses. What has been
//! used is kept as the time that it takes at that rate, so it wears off by itself. A prober that
//! floods must not make the losses of another one, so how far the allowance may be used up depends
//! on who asks:
//!
//! | of its share a site has used of late | until so much has been used by all |
//! |---|---|
//! | 1/32 s | [`BURST`] |
//! | 1/4 s | three quarters of it |
//! | 1/2 s | half of it |
//! | more | a quarter of it |
//!
//! A share is the cap divided by the number of sites that ask. Whoever is alone has all of it, and
//! what others leave is not lost. A site is an IPv4 address or an IPv6 /48 ([`Site`]), so nobody
//! has a larger share with more sessions.

use std::collections::HashMap;

use netaware_pool::Site;
use netaware_units::{BitRate, ByteCount, Mono, Span};

/// What all echoes together may move. It has neither lock nor clock.
///
/// Memory is bounded by the number of sites that ask, each of which holds a place among the echoes.
#[derive(Debug)]
pub(crate) struct Allowance {
    rate: BitRate,
    used: Used,
    /// Sites that have asked within [`REMEMBERED`].
    sites: HashMap<Site, Asked>,
    swept_at: Mono,
}

/// What has been used, as the time at which it has worn off.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    gone_at: Mono,
}

impl Used {
    fn left(self, now: Mono) -> Span {
        (self.gone_at - now).or_zero()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    used: Used,
    asked_at: Mono,
}

impl Allowance {
    pub(crate) fn new(rate: BitRate) -> Self {
        Self { rate, used: Used::default(), sites: HashMap::new(), swept_at: Mono(0) }
    }

    /// Counts an exchange of so many bytes with this site if it may take place now. Otherwise
    /// nothing is counted, and the time is returned after which to ask again.
    ///
    /// An exchange that is longer than the burst may take place when nothing is used.
    pub(crate) fn take(&mut self, now: Mono, site: Site, bytes: u64) -> Result<(), Span> {
        if self.rate.0 == 0 {
            return Err(BURST);
        }
        self.sweep(now);
        let cost = self.rate.time_for(ByteCount(bytes));
        let asked = self.sites.entry(site).or_default();
        asked.asked_at = now;
        let own = asked.used.left(now);
        let sites = i64::try_from(self.sites.len()).unwrap_or(i64::MAX);
        // A share is a part of the rate: the same bytes take so many times as long.
        let own = own + cost.min(BURST) * sites;
        let room = room_for(own);
        let used = self.used.left(now);
        if used > Span::ZERO && used + cost > room {
            return Err((used + cost - room).min(used));
        }
        self.used.gone_at = now + used + cost;
        // What is above its share is no debt: nobody has missed it.
        self.sites.entry(site).or_default().used.gone_at = now + own.min(BURST / 2);
        Ok(())
    }

    fn sweep(&mut self, now: Mono) {
        if now - self.swept_at >= SWEPT_EVERY {
            self.swept_at = now;
            self.sites.retain(|_, asked| now - asked.asked_at < REMEMBERED);
        }
    }
}

/// How far everything may be used up by who has then used so much of its share. The first step is
/// so small that any number of sites that begin at once leave room for one that asks little.
fn room_for(own: Span) -> Span {
    if own <= BURST / 32 {
        BURST
    } else if own <= BURST / 4 {
        BURST / 4 * 3
    } else if own <= BURST / 2 {
        BURST / 2
    } else {
        BURST / 4
    }
}

/// What all may move at once after a pause, at the cap's rate.
const BURST: Span = Span::from_secs(1);
/// Longer than what a site has used takes to wear off.
const REMEMBERED: Span = Span::from_secs(1);
const SWEPT_EVERY: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const T0: Mono = Mono(1_000_000_000_000);
    /// 1 MB/s: 1000 bytes take a millisecond.
    const RATE: BitRate = BitRate(8_000_000);

    fn site(n: u16) -> Site {
        let [high, low] = n.to_be_bytes();
        Site::of(IpAddr::from([10, 0, high, low]))
    }

    fn ms(milliseconds: i64) -> Mono {
        T0 + Span::from_millis(milliseconds)
    }

    #[test]
    fn a_flood_of_any_number_of_addresses_gets_no_more_than_the_cap_and_one_second() {
        for (sites, bytes) in [(1, 200), (1, 3000), (2, 131_014), (10, 88), (50, 3000), (300, 1500)] {
            let mut allowance = Allowance::new(RATE);
            let mut moved = 0;
            for at in 0..3000 {
                // Each time another site is the first to ask.
                for n in 0..sites {
                    let site = site((n + at as u16) % sites);
                    while allowance.take(ms(at), site, bytes).is_ok() {
                        moved += bytes;
                    }
                }
            }
            assert!(moved <= 4_000_000, "{sites} sites, {bytes} B: {moved}");
            // What nobody else asks for is not lost.
            assert!(moved >= 2_700_000, "{sites} sites, {bytes} B: {moved}");
        }
    }

    #[test]
    fn a_prober_that_floods_makes_no_losses_of_another_one() {
        for floods in [1, 3, 40] {
            let mut allowance = Allowance::new(RATE);
            let mut flooded = 0;
            for at in 0..2000 {
                for flood in 1..=floods {
                    for _ in 0..20 {
                        flooded += if allowance.take(ms(at), site(flood), 1500).is_ok() { 1500 } else { 0 };
                    }
                }
                // 100 requests a second, also in the middle of the flood and after it.
                if at % 10 == 9 {
                    assert_eq!(allowance.take(ms(at), site(0), 200), Ok(()), "{at} ms, {floods} floods");
                }
            }
            assert!(flooded > 1_800_000, "what is left is theirs: {flooded}");
        }
    }

    #[test]
    fn who_asks_ten_times_as_often_gets_no_more_than_another_who_wants_its_share() {
        let mut allowance = Allowance::new(RATE);
        let mut got = [0_u64; 2];
        for at in 0..5000 {
            for (who, times) in [(0, 20), (1, 2)] {
                for _ in 0..times {
                    let taken = allowance.take(ms(at), site(who), 1500).is_ok();
                    got[usize::from(who)] += if taken { 1500 } else { 0 };
                }
            }
        }
        assert!(got.iter().all(|bytes| *bytes > 2_000_000), "{got:?}");
    }

    #[test]
    fn an_exchange_that_is_longer_than_the_burst_passes_when_nothing_is_used() {
        let mut allowance = Allowance::new(BitRate(8000));
        assert_eq!(allowance.take(T0, site(1), 65_507), Ok(()));
        let wait = Span::from_millis(65_507);
        assert_eq!(allowance.take(T0, site(1), 65_507), Err(wait));
        assert_eq!(allowance.take(T0 + wait, site(1), 65_507), Ok(()));
    }

    #[test]
    fn whoever_waits_as_long_as_it_is_told_is_served() {
        let mut allowance = Allowance::new(RATE);
        while allowance.take(T0, site(1), 3000).is_ok() {}
        let wait = allowance.take(T0, site(1), 3000).unwrap_err();
        assert!(wait <= BURST);
        assert_eq!(allowance.take(T0 + wait, site(1), 3000), Ok(()));
    }

    #[test]
    fn addresses_that_ask_no_more_take_neither_memory_nor_a_share() {
        let mut allowance = Allowance::new(RATE);
        for n in 0..1000 {
            let _ = allowance.take(T0, site(n), 200);
        }
        assert_eq!(allowance.sites.len(), 1000);
        assert_eq!(allowance.take(ms(1100), site(7), 200), Ok(()));
        assert_eq!(allowance.sites.len(), 1);
    }

    #[test]
    fn a_rate_of_zero_answers_nothing() {
        assert!(Allowance::new(BitRate(0)).take(T0, site(1), 1).is_err());
    }
}
