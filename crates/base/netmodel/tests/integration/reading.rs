//! What a file says is what the scenario has, and what follows from it.

use netaware_netmodel::scenario::{Cross, Factor, Pattern, Schedule, SizeShare};
use netaware_netmodel::{Scenario, Side};
use netaware_record::IpVersion;
use netaware_units::{BitRate, Span};

fn scenario(text: &str) -> Scenario {
    Scenario::parse(&format!("about = 'x'\n{text}")).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The only cross traffic of a path of two hops, with these lines.
fn cross(lines: &str) -> Cross {
    let hops = "[[hop]]\nrate = '10Mbit/s'\noverhead = 100\nmembers = { count = 2 }\n\
                reverse.rate = '20Mbit/s'\n[[hop]]\nrate = '1Mbit/s'\n";
    let mut cross = scenario(&format!("{hops}[[cross]]\n{lines}\n")).cross;
    assert_eq!(cross.len(), 1, "{lines}");
    cross.remove(0)
}

fn usual(pattern: Pattern) -> Cross {
    Cross {
        from: Side::A,
        enter: 0,
        leave: 0,
        version: IpVersion::V4,
        sizes: vec![SizeShare { bytes: 1500, share: 1.0 }],
        pattern,
        schedule: Schedule::Steps(vec![Factor { at: Span::ZERO, factor: 1.0 }]),
    }
}

#[test]
fn every_pattern_of_cross_traffic_is_read_with_what_it_says() {
    // Half of two links of 10 Mbit/s, and of each packet 750 of 850 bytes are those of IP.
    let found = cross(
        "enter = 0\npattern = 'pareto'\nalpha = 2.5\nload = 0.5\n\
         sizes = [{ bytes = 300, share = 1 }, { bytes = 900, share = 3 }]",
    );
    let sizes = vec![SizeShare { bytes: 300, share: 0.25 }, SizeShare { bytes: 900, share: 0.75 }];
    let pareto = usual(Pattern::Pareto { rate: BitRate(8_823_529), alpha: 2.5 });
    assert_eq!(found, Cross { sizes, ..pareto });

    // Half of two links of 20 Mbit/s, and 1500 of 1600 bytes.
    let found = cross(
        "enter = 0\nfrom = 'b'\npattern = 'on_off'\nload = 0.5\nsources = 7\nalpha = 1.5\n\
         on = '10ms'\noff = '90ms'\nsquare = { period = '10s', duty = 0.25, high = 2, low = 0.5 }",
    );
    let (on, off) = (Span::from_millis(10), Span::from_millis(90));
    let on_off = Pattern::OnOff { rate: BitRate(18_750_000), sources: 7, alpha: 1.5, on, off };
    let schedule = Schedule::Square { period: Span::from_secs(10), duty: 0.25, high: 2.0, low: 0.5 };
    assert_eq!(found, Cross { from: Side::B, schedule, ..usual(on_off) });

    let found = cross(
        "enter = 1\nleave = 0\nfrom = 'b'\nversion = 'v6'\npattern = 'constant'\nrate = '3Mbit/s'\n\
         sizes = '576B'\nstart = '1s'\nstop = '2s'",
    );
    let steps = [(1, 1.0), (2, 0.0)].map(|(at, factor)| Factor { at: Span::from_secs(at), factor });
    let expected = Cross {
        from: Side::B,
        enter: 1,
        version: IpVersion::V6,
        sizes: vec![SizeShare { bytes: 576, share: 1.0 }],
        schedule: Schedule::Steps(steps.to_vec()),
        ..usual(Pattern::Constant { rate: BitRate(3_000_000) })
    };
    assert_eq!(found, expected);

    let found = cross(
        "enter = 0\npattern = 'poisson'\nrate = '1Mbit/s'\nsizes = 'imix'\n\
         steps = [{ at = '1s', factor = 0.5 }, { at = '2s', factor = 2 }]",
    );
    let shares = [(40, 7.0 / 12.0), (576, 4.0 / 12.0), (1500, 1.0 / 12.0)];
    let sizes = shares.map(|(bytes, share)| SizeShare { bytes, share }).to_vec();
    let steps = [(1, 0.5), (2, 2.0)].map(|(at, factor)| Factor { at: Span::from_secs(at), factor });
    let schedule = Schedule::Steps(steps.to_vec());
    let poisson = usual(Pattern::Poisson { rate: BitRate(1_000_000) });
    assert_eq!(found, Cross { sizes, schedule, ..poisson });

    let found = cross("enter = 0\nleave = 1\npattern = 'tcp'\nflows = 3\nback = '4ms'\nwindow = 20");
    let tcp = Pattern::Tcp { flows: 3, back: Span::from_millis(4), window: 20 };
    assert_eq!(found, Cross { leave: 1, ..usual(tcp) });
}

#[test]
fn capacities_and_delays_follow_from_the_path_alone() {
    let scenario = scenario(
        "[[hop]]\nrate = '8Mbit/s'\ndelay = '1ms'\noverhead = 100\nmembers = { count = 2 }\n\
         aggregation = { access = '2ms' }\nswitches = [{ rate = '4Mbit/s', delay = '3ms' }]\n\
         [[hop]]\nrate = '80Mbit/s'\nmtu = 1000\n\
         forward.bucket = { kind = 'policer', rate = '2Mbit/s', burst = 2000 }\n\
         reverse.bucket = { kind = 'shaper', rate = '6Mbit/s', burst = 2000 }\n\
         [host.a]\nreceive = { period = '70us', batch = 1 }\n\
         [host.b]\nreceive = { period = '50us', batch = 8 }\n",
    );
    let sides = [Side::A, Side::B];
    // There the policer is the least; back it is the switch, where 900 of 1000 bytes are those of
    // IP.
    let capacity = |length| sides.map(|from| scenario.capacity(from, IpVersion::V4, length));
    assert_eq!(capacity(900), [Some(BitRate(2_000_000)), Some(BitRate(3_600_000))]);
    assert_eq!((capacity(1000)[0], capacity(1001)), (Some(BitRate(2_000_000)), [None; 2]));
    // 1 ms on the link, 1 ms along it, 2 ms for access, 2 + 3 ms in the switch, 90 us on the second
    // link. The card of B hands over 50 us later, and that of A at once.
    let delays = sides.map(|from| scenario.base_delay(from, IpVersion::V4, 900));
    assert_eq!(delays, [9140, 9090].map(|micros| Some(Span::from_micros(micros))));
    assert_eq!(scenario.base_rtt(IpVersion::V4, 900), Some(Span::from_micros(18_230)));
    assert_eq!(scenario.base_rtt(IpVersion::V4, 1001), None);
    assert_eq!(scenario.path_mtu(Side::A, IpVersion::V6), 1000);
    assert_eq!(sides.map(|from| scenario.is_policed(from)), [true, false]);
}
