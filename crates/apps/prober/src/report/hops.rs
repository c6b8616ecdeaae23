//! Hops as the record has them.

use netaware_io::hop_socket::HopCounts;
use netaware_path::Bound;
use netaware_path::hops::{HopCapacity as Capacity, HopFinding, HopFlag, HopsFinding, PathFlag, Way};
use netaware_record::{
    Direction, Hop, HopCapacity, HopQueueing, HopTrain, HopsResult, IpVersion, Layer, Pedigree, RateBound,
};
use netaware_units::{BitRate, ByteCount, ClockSource, Span};

use crate::estimation::interval;

/// The result over one version.
pub(crate) fn result(version: IpVersion, found: &HopsFinding, counts: HopCounts, took: Span) -> HopsResult {
    let bytes = ByteCount(found.bytes);
    HopsResult {
        pedigree: Pedigree {
            method: "hops".to_owned(),
            layer: Layer::Ip,
            direction: Direction::Forward,
            version,
            clock: ClockSource::Kernel,
            uncertainty:
                "95 % intervals of the difference of two Theil-Sen slopes; bounds where it may be zero"
                    .to_owned(),
        },
        hops: found.hops.iter().map(hop).collect(),
        reached: found.reached,
        choke_point: found.choke_point,
        trains: found.trains,
        packet: found.largest,
        packets: found.packets,
        bytes,
        took,
        load: BitRate::mean(bytes, took),
        unmatched: counts.unmatched,
        stamp_fallbacks: counts.unstamped,
        flags: found.flags.iter().map(|flag| path_word(*flag).to_owned()).collect(),
        remarks: found.flags.iter().map(|flag| path_sentence(*flag)).chain(unmatched(counts)).collect(),
    }
}

fn hop(found: &HopFinding) -> Hop {
    let limited = found.flags.iter().any(|flag| matches!(flag, HopFlag::RateLimited(_)));
    let missing = found.asked.saturating_sub(found.answered);
    Hop {
        ttl: found.ttl,
        addresses: found.addresses.iter().map(ToString::to_string).collect(),
        asked: found.asked,
        answered: found.answered,
        loss: (found.answered > 0 && !limited).then(|| f64::from(missing) / f64::from(found.asked.max(1))),
        rtt_min: found.rtt_min,
        rtt_median: found.rtt_median,
        queueing: found.queueing.map(|queueing| HopQueueing {
            median: queueing.median,
            p90: queueing.p90,
            own_mean: queueing.own_mean,
        }),
        capacity: found.capacity.as_ref().map(capacity),
        train: found.train.map(|train| HopTrain {
            rate: train.rate,
            seen: train.seen,
            stretched: train.stretched,
        }),
        flags: found.flags.iter().map(|flag| word(*flag).to_owned()).collect(),
        remarks: found.flags.iter().map(|flag| sentence(*flag)).collect(),
    }
}

fn capacity(found: &Capacity) -> HopCapacity {
    HopCapacity {
        rate: interval(&found.rate),
        bound: match found.bound {
            Bound::None => RateBound::None,
            Bound::AtLeast => RateBound::AtLeast,
            Bound::AtMost => RateBound::AtMost,
        },
        least_squares: found.least_squares,
        way: match found.way {
            Way::Direct => "direct",
            Way::Tailgating => "tailgating",
            Way::TwoWay => "two_way",
        }
        .to_owned(),
        from: found.from,
        segments: found.segments.as_ref().map(|segments| segments.rates.clone()).unwrap_or_default(),
        sizes: u32::try_from(found.sizes).unwrap_or(u32::MAX),
        samples: u32::try_from(found.samples).unwrap_or(u32::MAX),
    }
}

fn unmatched(counts: HopCounts) -> Option<String> {
    (counts.unmatched > 0).then(|| {
        format!(
            "{} answers quote too little of the packet to tell which it was: hops that look silent may not be",
            counts.unmatched
        )
    })
}

fn word(flag: HopFlag) -> &'static str {
    match flag {
        HopFlag::Silent => "silent",
        HopFlag::RateLimited(_) => "rate_limited",
        HopFlag::SeveralAddresses => "several_addresses",
        HopFlag::PathChanged => "path_changed",
        HopFlag::FitsDisagree => "fits_disagree",
        HopFlag::SlopeFalls => "slope_falls",
        HopFlag::TooFewAnswers => "too_few_answers",
        HopFlag::AssumesSymmetry => "assumes_symmetry",
        HopFlag::AnswersInTheWay => "answers_in_the_way",
        HopFlag::FellBehind => "fell_behind",
        _ => "other",
    }
}

fn sentence(flag: HopFlag) -> String {
    match flag {
        HopFlag::Silent => "never answered".to_owned(),
        HopFlag::RateLimited(rate) => {
            format!("answers about {rate:.1} times a second and no more: asked less often, no loss told")
        }
        HopFlag::SeveralAddresses => "several addresses answer in turns: parallel paths".to_owned(),
        HopFlag::PathChanged => "another router, or another distance, since the measurement began".to_owned(),
        HopFlag::FitsDisagree => {
            "least squares and Theil-Sen disagree: outliers among the smallest delays".to_owned()
        }
        HopFlag::SlopeFalls => "the delay grows less with size than one hop before: no capacity".to_owned(),
        HopFlag::TooFewAnswers => "too few sizes were answered: no capacity".to_owned(),
        HopFlag::AssumesSymmetry => {
            "answers grow with the probes: the capacity assumes one rate both ways".to_owned()
        }
        HopFlag::AnswersInTheWay => {
            "answers to large packets may have delayed those to small ones: capacity may read low".to_owned()
        }
        HopFlag::FellBehind => {
            "much faster than a link before it: small packets may have fallen behind; a rough figure"
                .to_owned()
        }
        _ => "something that this version cannot name".to_owned(),
    }
}

fn path_word(flag: PathFlag) -> &'static str {
    match flag {
        PathFlag::DestinationSilent => "destination_silent",
        PathFlag::Refused => "refused",
        PathFlag::Mtu(_) => "mtu",
        PathFlag::PathChanged => "path_changed",
        PathFlag::CutShort => "cut_short",
        _ => "other",
    }
}

fn path_sentence(flag: PathFlag) -> String {
    match flag {
        PathFlag::DestinationSilent => {
            "the destination did not answer: the last hop shown is the furthest that did".to_owned()
        }
        PathFlag::Refused => "a router says that it goes no further".to_owned(),
        PathFlag::Mtu(mtu) => format!("packets of more than {mtu} bytes do not pass: smaller ones were used"),
        PathFlag::PathChanged => "the path changed while it was measured: figures mix two paths".to_owned(),
        PathFlag::CutShort => "no capacity at all: give it more --time".to_owned(),
        _ => "something that this version cannot name".to_owned(),
    }
}
