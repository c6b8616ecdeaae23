//! Hops as the record has them.

use netaware_io::hop_socket::HopCounts;
use netaware_path::Bound;
use netaware_path::hops::{
    AnswerRate, HopCapacity as Capacity, HopFinding, HopFlag, HopsFinding, PathFlag, Way,
};
use netaware_record::{
    Direction, Health, Hop, HopCapacity, HopQueueing, HopTrain, HopsResult, IpVersion, Layer, Pedigree,
    RateBound,
};
use netaware_units::{BitRate, ByteCount, ClockSource, Span};

use crate::estimation::interval;
use crate::hops::HopsInstrument;
use crate::host::During;
use crate::report::path_rates::{ability, busy_sentence};

/// The result over one version.
pub(crate) fn result(
    version: IpVersion,
    found: &HopsFinding,
    counts: HopCounts,
    took: Span,
    instrument: &HopsInstrument,
) -> HopsResult {
    let bytes = ByteCount(found.bytes);
    let limited = limit(found, instrument);
    let is_limited = found.hops.iter().any(|hop| hop.flags.contains(&HopFlag::HostLimited));
    let own = is_limited.then(|| "host_limited".to_owned());
    let bounds = || found.hops.iter().filter_map(|hop| Some(hop.capacity.as_ref()?.bound));
    let has_interval = bounds().any(|bound| bound == Bound::None);
    let bounded = bounds().next().map(|_| RateBound::AtLeast);
    let kind = if has_interval { Some(RateBound::None) } else { bounded };
    let kept_in = kept_in(found, counts, &instrument.during);
    // More time would not have helped where this host let nothing out.
    let flags = || found.flags.iter().filter(|flag| kept_in.is_none() || **flag != PathFlag::CutShort);
    let own_queue = own_queue(found, BitRate::mean(bytes, took).unwrap_or_default());
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
        load: BitRate::mean(bytes, took).unwrap_or_default(),
        unmatched: counts.unmatched,
        stamp_fallbacks: counts.unstamped,
        stamp_error: instrument.stamp_error,
        health: Health { stamp_fallbacks: Some(counts.unstamped), ..instrument.during.health() },
        host: instrument.host.clone(),
        flags: flags()
            .map(|flag| path_word(*flag).to_owned())
            .chain(kept_in.iter().map(|_| "not_sent".to_owned()))
            .chain(own)
            .chain(own_queue.iter().map(|_| "own_queue".to_owned()))
            .collect(),
        remarks: flags()
            .map(|flag| path_sentence(*flag, kind))
            .chain(kept_in.clone())
            .chain(limited)
            .chain(own_queue)
            .chain(unmatched(counts))
            .collect(),
    }
}

/// What limits this host, where a hop shows it or has a figure beyond it.
fn limit(found: &HopsFinding, instrument: &HopsInstrument) -> Option<String> {
    let host = instrument.host.as_ref()?;
    let is_limited = |hop: &&HopFinding| hop.flags.contains(&HopFlag::HostLimited);
    let is_beyond = |hop: &&HopFinding| {
        let figure = hop.capacity.as_ref().filter(|capacity| capacity.bound == Bound::None);
        figure.is_some_and(|capacity| capacity.rate.estimate > host.rate.0 as f64)
    };
    let numbers = |which: &dyn Fn(&&HopFinding) -> bool| {
        let all: Vec<String> = found.hops.iter().filter(which).map(|hop| hop.ttl.to_string()).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    let limited = numbers(&is_limited).map(|hops| format!("host-limited at hop {hops}: {}", ability(host)));
    limited.or_else(|| {
        numbers(&is_beyond)
            .map(|hops| format!("hop {hops} is beyond what one probe tells: {}", ability(host)))
    })
}

/// That the probes' own load is a good part of a link: the queues behind that hop are theirs, too.
fn own_queue(found: &HopsFinding, load: BitRate) -> Option<String> {
    let links = found.hops.iter().filter_map(|hop| {
        let link = hop.capacity.as_ref().filter(|capacity| capacity.bound == Bound::None)?;
        Some((hop.ttl, link.rate.estimate))
    });
    let (ttl, rate) = links.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = load.0 as f64 / rate.max(1.0);
    (share >= OWN_SHARE).then(|| {
        format!(
            "the probes themselves are {:.0} % of what the link in front of hop {ttl} carries: a part of the queues from there on is \
             their own",
            share * 100.0
        )
    })
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

/// That this host itself let out less than was to be asked.
fn kept_in(found: &HopsFinding, counts: HopCounts, during: &During) -> Option<String> {
    let (why, kept) = (counts.refused?, during.health().not_sent?);
    let asked = found.packets.max(kept);
    (kept as f64 > asked as f64 * NOT_SENT).then(|| {
        format!(
            "{kept} probes were not sent by this host: {}: what is missing is nobody else's silence",
            super::refusal(why)
        )
    })
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
        HopFlag::HostLimited => "host_limited",
        _ => "other",
    }
}

fn sentence(flag: HopFlag) -> String {
    match flag {
        HopFlag::Silent => "never answered".to_owned(),
        HopFlag::RateLimited(rate) => {
            let often = rate.and_then(how_often).map_or_else(String::new, |often| format!(" ({often})"));
            format!("answers a part of what it is asked{often}: asked less often, no loss told")
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
            "small packets fell behind the large ones, because this link is much faster than an earlier one: the figure is \
             a lower bound"
                .to_owned()
        }
        HopFlag::HostLimited => {
            "host-limited: what this host's stamps err, how far apart it sends, or how long it had no core, tells \
             no more"
                .to_owned()
        }
        _ => "something that this version cannot name".to_owned(),
    }
}

/// "about 2.0 times a second", or a lower bound; nothing where that would be rounded to nothing.
fn how_often(rate: AnswerRate) -> Option<String> {
    match rate.about() {
        Some(about) if about >= MIN_ANSWER_RATE => Some(format!("about {about:.1} times a second")),
        None if rate.at_least >= MIN_ANSWER_RATE => {
            // Rounded down: a bound stays one.
            Some(format!("at least {:.1} times a second", (rate.at_least * 10.0).floor() / 10.0))
        }
        _ => None,
    }
}

fn path_word(flag: PathFlag) -> &'static str {
    match flag {
        PathFlag::DestinationSilent => "destination_silent",
        PathFlag::Refused => "refused",
        PathFlag::Mtu(_) => "mtu",
        PathFlag::PathChanged => "path_changed",
        PathFlag::CutShort => "cut_short",
        PathFlag::HostBusy { .. } => "host_busy",
        _ => "other",
    }
}

fn path_sentence(flag: PathFlag, kind: Option<RateBound>) -> String {
    match flag {
        PathFlag::DestinationSilent => {
            "the destination did not answer: the last hop shown is the furthest that did".to_owned()
        }
        PathFlag::Refused => "a router says that it goes no further".to_owned(),
        PathFlag::Mtu(mtu) => format!("longer packets did not pass: ones of up to {mtu} bytes were used"),
        PathFlag::PathChanged => "the path changed while it was measured: figures mix two paths".to_owned(),
        PathFlag::HostBusy { away } => busy_sentence(away, kind),
        PathFlag::CutShort => "no capacity at all: give it more --time".to_owned(),
        _ => "something that this version cannot name".to_owned(),
    }
}

/// Answers a second below which no number is said.
const MIN_ANSWER_RATE: f64 = 0.1;
/// Share of the probes beyond which it is told that they did not leave.
const NOT_SENT: f64 = 0.01;
/// Of a link's capacity: a load that is seen in the median of the queues.
const OWN_SHARE: f64 = 0.25;

#[cfg(test)]
mod tests {
    use netaware_path::{Bound, Disturbance};
    use netaware_record::{Ceiling, HonestRate};
    use netaware_stats::interval::Interval;

    use super::*;
    use crate::host::During;

    /// One hop read as `mbits`, by a host that tells up to 200 Mbit/s.
    fn told(mbits: f64, bound: Bound, flags: &[HopFlag]) -> HopsResult {
        told_by(mbits, bound, flags, &Disturbance { away: 0.0, beside: false })
    }

    fn told_by(mbits: f64, bound: Bound, flags: &[HopFlag], disturbance: &Disturbance) -> HopsResult {
        let estimate = mbits * 1e6;
        let hop = HopFinding {
            ttl: 1,
            addresses: Vec::new(),
            asked: 9,
            answered: 9,
            rtt_min: None,
            rtt_median: None,
            queueing: None,
            capacity: Some(Capacity {
                rate: Interval { estimate, lo: estimate, hi: estimate, confidence: 0.95 },
                bound,
                least_squares: None,
                way: Way::Direct,
                from: 1,
                segments: None,
                sizes: 8,
                samples: 80,
            }),
            train: None,
            flags: flags.to_vec(),
        };
        let mut found = HopsFinding {
            ceased: None,
            hops: vec![hop],
            reached: true,
            choke_point: None,
            trains: 0,
            largest: 1500,
            packets: 9,
            bytes: 900,
            took: Span::from_secs(1),
            flags: Vec::new(),
        };
        disturbance.on_hops(&mut found);
        let rate = BitRate(200_000_000);
        let limited_by = Ceiling { by: "stamps".into(), rate, because: "1 us each".into() };
        let host = HonestRate {
            way: "sizes".into(),
            methods: Vec::new(),
            packet: 1500,
            error: 0.05,
            rate,
            limited_by,
            above: Vec::new(),
        };
        let instrument =
            HopsInstrument { stamp_error: Span(1414), during: During::default(), host: Some(host) };
        result(IpVersion::V4, &found, HopCounts::default(), Span::from_secs(1), &instrument)
    }

    const CAN: &str =
        "this host probes by sizes of 1500 B up to 200 Mbit/s with 5 % error, limited by stamps: 1 us each";

    #[test]
    fn no_router_answers_0_0_times_a_second() {
        let told = |at_least, at_most| sentence(HopFlag::RateLimited(Some(AnswerRate { at_least, at_most })));
        let rows = [
            (1.8, 2.2, " (about 2.0 times a second)"),
            (0.68, 2.2, " (at least 0.6 times a second)"),
            (0.68, f64::INFINITY, " (at least 0.6 times a second)"),
            (0.04, 0.05, ""),
            (0.09, f64::INFINITY, ""),
        ];
        for (at_least, at_most, want) in rows {
            assert_eq!(
                told(at_least, at_most),
                format!("answers a part of what it is asked{want}: asked less often, no loss told")
            );
        }
        assert!(!sentence(HopFlag::RateLimited(None)).contains("times"));
    }

    #[test]
    fn a_figure_within_what_the_host_tells_has_no_remark() {
        let result = told(100.0, Bound::None, &[]);
        assert_eq!((result.flags, result.remarks), (vec![], vec![]));
        assert_eq!(result.stamp_error, Span(1414));
        assert!(result.host.is_some());
    }

    #[test]
    fn a_figure_beyond_it_says_so_and_what_the_limit_is() {
        let result = told(900.0, Bound::None, &[]);
        assert_eq!(result.remarks, [format!("hop 1 is beyond what one probe tells: {CAN}")]);
        assert!(result.flags.is_empty(), "its interval holds the host's error");
        assert!(told(900.0, Bound::AtLeast, &[]).remarks.is_empty(), "a bound claims no more than it knows");
    }

    #[test]
    fn a_bound_that_the_host_is_to_blame_for_names_the_host() {
        let result = told(900.0, Bound::AtLeast, &[HopFlag::HostLimited]);
        assert_eq!(result.flags, ["host_limited"]);
        assert_eq!(result.remarks, [format!("host-limited at hop 1: {CAN}")]);
        assert_eq!(result.hops[0].flags, ["host_limited"]);
        assert!(result.hops[0].remarks[0].starts_with("host-limited"), "{:?}", result.hops[0].remarks);
    }

    #[test]
    fn a_busy_host_is_told_of_the_path_and_widens_its_hops() {
        use netaware_path::EndLoad;
        let load = EndLoad { paused: Some(0.125), ..EndLoad::default() };
        let result = told_by(100.0, Bound::None, &[], &Disturbance::alone(&load));
        assert_eq!(result.flags, ["host_busy"]);
        assert!(result.remarks[0].starts_with("busy host: "), "{:?}", result.remarks);
        let rate = &result.hops[0].capacity.as_ref().unwrap().rate;
        assert!(rate.lo < 90e6 && rate.hi > 110e6, "{rate:?}");
    }
}
