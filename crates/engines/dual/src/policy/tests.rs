use super::*;

fn mono(millis: i64) -> Mono {
    Mono(0) + Span::from_millis(millis)
}

fn rate(at: i64, ip: IpVersion, mbit: f64) -> Observation {
    let goodput = Some(BitRate((mbit * 1e6) as u64));
    Observation { at: mono(at), ip, goodput, round_trip: None, loss: None, loss_bounds: None }
}

/// Observes both versions every half second and does what is decided; when it switched, and to which.
fn follow(rules: Rules, seconds: i64, mbit: impl Fn(i64, IpVersion) -> f64) -> Vec<(i64, IpVersion)> {
    let mut policy = Policy::new(rules);
    let mut present = IpVersion::V4;
    let mut switches = Vec::new();
    for at in (0..seconds * 1000).step_by(500) {
        for ip in [IpVersion::V4, IpVersion::V6] {
            policy.observe(&rate(at, ip, mbit(at, ip)));
        }
        if let Some(decision) = policy.decide(mono(at), present) {
            present = decision.to;
            policy.switched(decision.at);
            switches.push((at, present));
        }
    }
    switches
}

/// Uniform from -1 to 1, the same for the same arguments.
fn noise(at: i64, ip: IpVersion, salt: u64) -> f64 {
    let mut x = (at as u64) ^ salt ^ if ip == IpVersion::V6 { 0x9e37_79b9_7f4a_7c15 } else { 0 };
    for _ in 0..3 {
        x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[test]
fn twice_the_rate_is_gone_for_within_ten_seconds() {
    let switches = follow(Rules::of(Use::Bulk), 120, |at, ip| {
        let mean = if ip == IpVersion::V6 { 200.0 } else { 100.0 };
        mean * (1.0 + 0.2 * noise(at, ip, 1))
    });
    assert_eq!(switches.len(), 1, "{switches:?}");
    assert!(switches[0].0 <= 10_000 && switches[0].1 == IpVersion::V6, "{switches:?}");
}

#[test]
fn an_hour_of_noise_around_equality_does_not_make_it_flap() {
    for salt in 0..20 {
        let switches = follow(Rules::of(Use::Bulk), 3600, |at, ip| 100.0 * (1.0 + 0.3 * noise(at, ip, salt)));
        assert!(switches.len() <= 1, "{salt}: {switches:?}");
    }
}

#[test]
fn a_version_that_is_better_by_turns_is_followed_ever_more_slowly() {
    let switches = follow(Rules::of(Use::Bulk), 3600, |at, ip| {
        let good = if (at / 40_000) % 2 == 0 { IpVersion::V6 } else { IpVersion::V4 };
        if ip == good { 200.0 } else { 100.0 }
    });
    // Without damping 90 of them.
    assert!((2..25).contains(&switches.len()), "{}", switches.len());
}

#[test]
fn one_version_alone_gives_no_decision() {
    let mut policy = Policy::new(Rules::of(Use::Bulk));
    for at in (0..60_000).step_by(500) {
        policy.observe(&rate(at, IpVersion::V6, 500.0));
    }
    assert_eq!(policy.decide(Mono(60_000_000_000), IpVersion::V4), None);
}

#[test]
fn shorter_round_trips_and_less_loss_are_better() {
    for (what_for, here, there) in [(Use::Interactive, 40.0, 20.0), (Use::Media, 0.02, 0.001)] {
        let mut policy = Policy::new(Rules::of(what_for));
        for at in (0..10_000).step_by(500) {
            for (ip, value) in [(IpVersion::V4, here), (IpVersion::V6, there)] {
                let round_trip = (what_for == Use::Interactive).then_some(Span((value * 1e6) as i64));
                let loss = (what_for == Use::Media).then_some(value);
                let at = mono(at);
                let (goodput, loss_bounds) = (None, None);
                policy.observe(&Observation { at, ip, goodput, round_trip, loss, loss_bounds });
            }
        }
        let now = Mono(9_500_000_000);
        assert_eq!(policy.decide(now, IpVersion::V4).map(|it| it.to), Some(IpVersion::V6));
        assert_eq!(policy.decide(now, IpVersion::V6), None);
    }
}

/// Media, IPv4 in use: what is decided after ten seconds of these shares and bounds.
fn by_loss(here: (f64, [f64; 2]), there: (f64, [f64; 2])) -> Option<Decision> {
    let mut policy = Policy::new(Rules { prefer: None, ..Rules::of(Use::Media) });
    for at in (0..10_000).step_by(500) {
        for (ip, (loss, bounds)) in [(IpVersion::V4, here), (IpVersion::V6, there)] {
            let (at, loss, loss_bounds) = (mono(at), Some(loss), Some(bounds));
            policy.observe(&Observation { at, ip, goodput: None, round_trip: None, loss, loss_bounds });
        }
    }
    policy.decide(mono(9_500), IpVersion::V4)
}

#[test]
fn what_may_be_chance_decides_nothing() {
    let sure = by_loss((0.03, [0.025, 0.035]), (0.0, [0.0, 0.005])).unwrap();
    assert!((sure.present - 0.03).abs() < 1e-12 && sure.other.abs() < 1e-12, "{sure:?}");
    // The same shares, of fewer packets of either.
    assert_eq!(by_loss((0.03, [0.025, 0.035]), (0.0, [0.0, 0.025])), None);
    assert_eq!(by_loss((0.03, [0.004, 0.09]), (0.0, [0.0, 0.005])), None);
}

#[test]
fn a_decision_says_how_much_was_seen_of_either_version_and_no_more_than_is_kept() {
    let mut policy = Policy::new(Rules::of(Use::Bulk));
    for n in 0..24 {
        policy.observe(&rate(n, IpVersion::V6, 200.0));
    }
    for n in 0..600 {
        policy.observe(&rate(100 + n * 50, IpVersion::V4, 100.0));
    }
    let decision = policy.decide(mono(40_000), IpVersion::V4).unwrap();
    assert_eq!(decision.of, [KEPT, LEAST_SEEN]);
}
