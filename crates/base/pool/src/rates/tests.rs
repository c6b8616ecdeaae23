use proptest::prelude::*;

use super::*;

const NEVER: Rate = Rate { per_second: 1_000_000_000, burst: u32::MAX };

fn v4(n: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, n])
}

fn v6(network: u16, n: u16) -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, 0, network, 0, 0, 0, n])
}

fn at_ms(ms: u64) -> Mono {
    Mono(ms * 1_000_000)
}

/// Ten each second and two at once for a host.
fn rates(all: Rate, hosts: usize) -> Rates {
    Rates::new(RateLimits { per_host: Rate { per_second: 10, burst: 2 }, all, hosts })
}

#[test]
fn a_host_that_is_forged_again_and_again_is_answered_at_its_rate() {
    let mut rates = rates(NEVER, 9);
    // One every millisecond for a second: two at once, and one for each 100 ms.
    let answered = (0..=1000).filter(|ms| rates.allow(at_ms(*ms), v4(1)).is_ok()).count();
    assert_eq!(answered, 12);
    assert_eq!(rates.allow(at_ms(1000), v4(2)), Ok(()), "another host has its own rate");
    // After a pause there is one burst, and not all that was not used.
    let answered = (0..10).filter(|_| rates.allow(at_ms(60_000), v4(1)).is_ok()).count();
    assert_eq!(answered, 2);
}

#[test]
fn a_host_with_2_to_the_64_addresses_has_one_rate() {
    let mut rates = rates(NEVER, 9);
    let answered = (0..100).filter(|n| rates.allow(Mono(0), v6(1, *n)).is_ok()).count();
    assert_eq!((answered, rates.hosts()), (2, 1));
    assert_eq!(rates.allow(Mono(0), v6(2, 1)), Ok(()));
}

#[test]
fn many_forged_hosts_are_answered_no_more_often_than_all_may_be() {
    let mut rates = rates(Rate { per_second: 10, burst: 5 }, 1000);
    let verdicts: Vec<_> = (0..=255).map(|n| rates.allow(Mono(0), v4(n))).collect();
    assert_eq!(verdicts.iter().filter(|verdict| verdict.is_ok()).count(), 5);
    assert!(verdicts[5..].iter().all(|verdict| *verdict == Err(OverRate::All)));
    assert_eq!(rates.hosts(), 5, "nothing is kept of who was not answered");
    assert_eq!(rates.allow(at_ms(100), v4(200)), Ok(()));
    assert_eq!(rates.allow(at_ms(100), v4(201)), Err(OverRate::All));
}

#[test]
fn a_host_over_its_rate_uses_up_nothing_of_the_others() {
    let mut rates = rates(Rate { per_second: 10, burst: 3 }, 9);
    let verdicts: Vec<_> = (0..100).map(|_| rates.allow(Mono(0), v4(1))).collect();
    assert_eq!(verdicts[..2], [Ok(()), Ok(())]);
    assert!(verdicts[2..].iter().all(|verdict| *verdict == Err(OverRate::Host)));
    assert_eq!(rates.allow(Mono(0), v4(2)), Ok(()), "the third of all");
    assert_eq!(rates.allow(Mono(0), v4(3)), Err(OverRate::All));
}

#[test]
fn a_flood_of_forged_hosts_does_not_make_a_host_forgotten_that_goes_on_asking() {
    let mut rates = rates(NEVER, 2);
    assert_eq!([(); 2].map(|()| rates.allow(Mono(0), v4(1))), [Ok(()); 2]);
    for n in 2..=255 {
        assert_eq!(rates.allow(Mono(0), v4(n)), Ok(()));
        assert_eq!(rates.allow(Mono(0), v4(1)), Err(OverRate::Host), "{n}");
        assert_eq!(rates.hosts(), 2);
    }
    // Two others in a row, and it is the one that was seen least recently.
    rates.allow(Mono(0), v4(2)).unwrap();
    rates.allow(Mono(0), v4(3)).unwrap();
    assert_eq!(rates.allow(Mono(0), v4(1)), Ok(()), "forgotten");
}

#[test]
fn limits_of_nothing_are_limits_of_one() {
    let none = Rate { per_second: 0, burst: 0 };
    let mut rates = Rates::new(RateLimits { per_host: none, all: NEVER, hosts: 0 });
    assert_eq!(rates.allow(Mono(0), v4(1)), Ok(()));
    assert_eq!(rates.allow(at_ms(999), v4(1)), Err(OverRate::Host));
    assert_eq!(rates.allow(at_ms(1000), v4(1)), Ok(()));
    assert_eq!(rates.hosts(), 1);
}

/// Tokens in a bucket, counted in the time that it takes to refill them.
#[derive(Debug, Clone, Copy)]
struct Tokens {
    level: u64,
    at: u64,
}

impl Tokens {
    fn full(rate: Rate) -> Self {
        Self { level: Self::refill(rate) * u64::from(rate.burst), at: 0 }
    }

    fn refill(rate: Rate) -> u64 {
        1_000_000_000 / u64::from(rate.per_second)
    }

    fn has_one(&mut self, now: u64, rate: Rate) -> bool {
        let most = Self::refill(rate) * u64::from(rate.burst);
        self.level = (self.level + now - self.at).min(most);
        self.at = now;
        self.level >= Self::refill(rate)
    }
}

/// Two hosts as buckets of tokens that are filled and emptied.
fn by_tokens(limits: RateLimits, asked: &[(u64, usize)]) -> Vec<Result<(), OverRate>> {
    let (mut all, mut hosts) = (Tokens::full(limits.all), [Tokens::full(limits.per_host); 2]);
    let mut verdicts = Vec::new();
    for (now, host) in asked {
        let host_has = hosts[*host].has_one(*now, limits.per_host);
        let all_have = all.has_one(*now, limits.all);
        verdicts.push(match (host_has, all_have) {
            (false, _) => Err(OverRate::Host),
            (true, false) => Err(OverRate::All),
            (true, true) => {
                hosts[*host].level -= Tokens::refill(limits.per_host);
                all.level -= Tokens::refill(limits.all);
                Ok(())
            }
        });
    }
    verdicts
}

fn asked_in_turn(limits: RateLimits, asked: &[(u64, usize)]) -> Vec<Result<(), OverRate>> {
    let mut rates = Rates::new(limits);
    asked.iter().map(|(now, host)| rates.allow(Mono(*now), v4(*host as u8))).collect()
}

/// Each of the sequences of six questions of two hosts that come 0, 1 or 3 steps apart, a step
/// being a third of what a host's token takes and half of what one of all takes.
#[test]
fn all_short_sequences_are_judged_as_by_counting_tokens() {
    let per_host = Rate { per_second: 10, burst: 2 };
    let limits = RateLimits { per_host, all: Rate { per_second: 15, burst: 3 }, hosts: 2 };
    let choices = [0_u64, 1, 3].map(|steps| [0_usize, 1].map(|host| (steps, host))).concat();
    for mut n in 0..choices.len().pow(6) {
        let mut now = 0;
        let mut asked = Vec::new();
        for _ in 0..6 {
            let (steps, host) = choices[n % choices.len()];
            n /= choices.len();
            now += steps * 33_333_334;
            asked.push((now, host));
        }
        assert_eq!(asked_in_turn(limits, &asked), by_tokens(limits, &asked), "{asked:?}");
    }
}

proptest! {
    #[test]
    fn any_sequence_is_judged_as_by_counting_tokens(
        steps in proptest::collection::vec((0_u64..400_000_000, 0_usize..2), 0..200),
        host in (1_u32..1000, 1_u32..20),
        all in (1_u32..1000, 1_u32..20),
    ) {
        let rate = |(per_second, burst)| Rate { per_second, burst };
        let limits = RateLimits { per_host: rate(host), all: rate(all), hosts: 2 };
        let mut now = 0;
        let asked: Vec<_> = steps.into_iter().map(|(step, host)| { now += step; (now, host) }).collect();
        prop_assert_eq!(asked_in_turn(limits, &asked), by_tokens(limits, &asked));
    }

    #[test]
    fn no_more_hosts_are_remembered_than_there_is_room_for(
        steps in proptest::collection::vec((0_u64..2_000_000_000, any::<u8>()), 0..300),
        hosts in 1_usize..10,
    ) {
        let mut rates = rates(NEVER, hosts);
        let mut now = 0;
        for (step, host) in steps {
            now += step;
            let _ = rates.allow(Mono(now), v4(host));
            prop_assert!(rates.hosts() <= hosts);
            prop_assert_eq!(rates.hosts.len(), rates.by_age.len());
        }
    }
}
