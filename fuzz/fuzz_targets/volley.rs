//! Any volley that a prober may ask for: one without a fault keeps every bound that sending and
//! waiting rely on, and none is too much to be counted.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_record::Direction;
use netaware_units::Span;
use netaware_wire::control::{
    MAX_VOLLEY_PACKETS, MAX_VOLLEY_PATIENCE, MAX_VOLLEY_TIME, TrainSpec, TrainsPlan, VolleySpec,
};
use netaware_wire::datagram::{HEADER_LEN, MAX_PAYLOAD};

#[derive(Debug, arbitrary::Arbitrary)]
struct Asked {
    longest: u32,
    first: u64,
    patience: i64,
    trains: Vec<Train>,
}

#[derive(Debug, arbitrary::Arbitrary)]
struct Train {
    packets: u32,
    /// So that some volleys are sound.
    few: bool,
    length: u32,
    gaps: Vec<u64>,
    rest: i64,
}

fuzz_target!(|asked: Asked| {
    let plan = TrainsPlan {
        direction: Direction::Forward,
        duration: Span::from_secs(10),
        length: asked.longest,
        dscp: 0,
    };
    let train = |train: &Train| TrainSpec {
        packets: if train.few { train.packets % 100 } else { train.packets },
        length: if train.few { train.length % 2000 } else { train.length },
        gaps_ps: train.gaps.clone(),
        rest: Span(if train.few { train.rest % 1_000_000_000 } else { train.rest }),
    };
    let volley = VolleySpec {
        number: 0,
        first: asked.first,
        trains: asked.trains.iter().map(train).collect(),
        patience: Span(asked.patience),
    };
    let (packets, payload, planned) = (volley.packets(), volley.payload(), volley.planned());
    if volley.fault(&plan).is_some() {
        return;
    }
    assert!((1..=MAX_VOLLEY_PACKETS).contains(&packets));
    assert!(payload <= packets * MAX_PAYLOAD as u64 && payload >= packets * HEADER_LEN as u64);
    assert!((Span::ZERO..=MAX_VOLLEY_TIME).contains(&planned));
    assert!(volley.patience <= MAX_VOLLEY_PATIENCE && volley.first.checked_add(packets).is_some());
    let gaps = volley.trains.iter().map(|train| {
        let gaps: u128 = (0..train.packets - 1).map(|n| u128::from(train.gap_ps(n))).sum();
        i128::from(train.rest.0) + (gaps / 1000).cast_signed()
    });
    assert_eq!(gaps.sum::<i128>(), i128::from(planned.0));
});
