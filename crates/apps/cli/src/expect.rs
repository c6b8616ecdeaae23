//! `--expect 'rtt.p99<20ms'`: thresholds that turn a measurement into a check.
//!
//! A threshold holds when every figure it speaks of is on the right side: all IP versions and
//! directions measured, unless it names one. Without any figure it fails, because a check that
//! could not look must not pass.

mod metric;

use std::str::FromStr;

use netaware_record::{Expectation, IpVersion, RateBound, Record};

pub(crate) use metric::{Figure, Kind, METRICS, Metric};

/// A metric, a comparison and a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Threshold {
    /// As typed.
    text: String,
    version: Option<IpVersion>,
    metric: &'static Metric,
    comparison: Comparison,
    /// In the metric's base unit.
    value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
}

/// Longer signs first: "<=" begins with "<".
const SIGNS: &[(&str, Comparison)] = &[
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

impl Comparison {
    /// A bound says nothing of its other side: of what is at least this nobody knows whether it is
    /// less than that.
    fn holds(self, figure: f64, bound: RateBound, value: f64) -> bool {
        let is_unknown = match self {
            Self::Less | Self::AtMost => bound == RateBound::AtLeast,
            Self::More | Self::AtLeast => bound == RateBound::AtMost,
        };
        !is_unknown
            && match self {
                Self::Less => figure < value,
                Self::AtMost => figure <= value,
                Self::More => figure > value,
                Self::AtLeast => figure >= value,
            }
    }
}

impl FromStr for Threshold {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let at = text
            .find(['<', '>'])
            .ok_or_else(|| format!("'{text}' compares nothing: write METRIC, one of < <= > >=, VALUE"))?;
        let (left, right) = text.split_at(at);
        // `find` has seen the sign, so one of them matches.
        let (sign, comparison) =
            *SIGNS.iter().find(|(sign, _)| right.starts_with(sign)).ok_or("no comparison sign")?;
        let (version, name) = split_version(left.trim());
        let metric = Metric::named(name)?;
        let value = metric
            .kind
            .parse(right[sign.len()..].trim())
            .map_err(|why| format!("the value for {}: {why}", metric.name))?;
        Ok(Self { text: text.to_owned(), version, metric, comparison, value })
    }
}

fn split_version(name: &str) -> (Option<IpVersion>, &str) {
    for (prefix, version) in [("ipv4.", IpVersion::V4), ("ipv6.", IpVersion::V6)] {
        if let Some(rest) = name.strip_prefix(prefix) {
            return (Some(version), rest);
        }
    }
    (None, name)
}

impl Threshold {
    /// How it turned out.
    pub(crate) fn judge(&self, record: &Record) -> Expectation {
        let wanted = |version| self.version.is_none_or(|only| only == version);
        let of_host = record.ability.as_ref().filter(|_| self.version.is_none());
        let of_host = of_host.and_then(|host| (self.metric.of_host)(host));
        let of_host = of_host.map(|value| (String::new(), value, RateBound::None));
        let figures: Vec<(String, f64, RateBound)> = record
            .versions
            .iter()
            .filter(|result| wanted(result.version))
            .flat_map(|result| {
                let name = result.version.name();
                self.metric.figures(result).into_iter().map(move |Figure { of, value, bound }| {
                    (if of.is_empty() { name.to_owned() } else { format!("{name} {of}") }, value, bound)
                })
            })
            .chain(of_host)
            .collect();
        let broken: Vec<&str> = record
            .versions
            .iter()
            .filter(|it| wanted(it.version) && self.metric.is_broken_off(it, record))
            .map(|it| it.version.name())
            .collect();
        let all_hold =
            figures.iter().all(|(_, figure, bound)| self.comparison.holds(*figure, *bound, self.value));
        let untold = record
            .versions
            .iter()
            .filter(|it| wanted(it.version))
            .filter_map(|it| Some(format!("{} {}", it.version.name(), self.metric.why_not_judged(it)?)));
        let untold: Vec<String> = untold.collect();
        let cut = record.versions.iter().filter(|it| wanted(it.version));
        let cut: Vec<String> = cut.filter_map(|it| self.metric.cut_short(it, record)).collect();
        let is_whole = broken.is_empty() && cut.is_empty();
        let held = !figures.is_empty() && all_hold && is_whole && untold.is_empty();
        let shown = |(who, figure, bound): &(String, f64, RateBound)| {
            let side = match bound {
                RateBound::None => "",
                RateBound::AtLeast => "at least ",
                RateBound::AtMost => "at most ",
            };
            format!("{who} {side}{}", self.metric.kind.show(*figure)).trim_start().to_owned()
        };
        let all: Vec<String> = figures.iter().map(shown).chain(untold).collect();
        let mut found =
            if all.is_empty() { "no such figure was measured".to_owned() } else { all.join(", ") };
        if !broken.is_empty() && !figures.is_empty() {
            found = format!("{found} ({} was not measured to its end)", broken.join(" and "));
        }
        if !cut.is_empty() && !figures.is_empty() {
            let what = cut.join(" and ");
            found = format!("{found} (not judged: {what}, because it was ended on request)");
        }
        Expectation { text: self.text.clone(), held, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixture;

    fn judge(text: &str) -> Expectation {
        text.parse::<Threshold>().unwrap().judge(&fixture::test())
    }

    #[test]
    fn thresholds_are_judged_on_every_version_and_direction() {
        let rows = [
            ("rtt.p50<1ms", true),
            ("rtt.p99 < 300 us", false),
            ("ipv4.rtt.p99<300us", true),
            ("loss<=0.5%", true),
            ("loss<0.5%", false),
            ("ipv4.loss<=0", true),
            ("tcp.down>30Mbit/s", true),
            ("tcp.down>=50M", false),
            ("ipv6.tcp.down>=50M", true),
            ("tcp>30M", true),
            ("udp.loss<0.1", true),
            ("udp.up.loss<0.0001%", false),
            ("jitter<1ms", true),
            ("rpm>100", true),
        ];
        for (n, (text, held)) in rows.into_iter().enumerate() {
            let judged = judge(text);
            assert_eq!(judged.held, held, "row {n}: {text}: {}", judged.found);
        }
    }

    #[test]
    fn a_threshold_on_the_side_that_a_bound_leaves_open_does_not_hold() {
        let mut record = fixture::capacity();
        record.versions.truncate(1);
        record.versions[0].path_rates.truncate(1);
        let of = &mut record.versions[0].path_rates[0];
        (of.metric, of.bound) = (netaware_record::PathMetric::Capacity, RateBound::AtLeast);
        let rate = of.rate.as_mut().unwrap();
        (rate.lo, rate.estimate, rate.hi) = (20e6, 21e6, 25e6);
        let judge = |record: &Record, text: &str| text.parse::<Threshold>().unwrap().judge(record);
        let judged = judge(&record, "capacity<100M");
        assert!(!judged.held && judged.found.contains("at least 20.0 Mbit/s"), "{judged:?}");
        assert!(judge(&record, "capacity>10M").held);
        record.versions[0].path_rates[0].bound = RateBound::AtMost;
        assert!(judge(&record, "capacity<100M").held && !judge(&record, "capacity>10M").held);
    }

    #[test]
    fn a_threshold_does_not_hold_over_what_was_not_measured_to_its_end() {
        let threshold = |text: &str| text.parse::<Threshold>().unwrap();
        let mut record = fixture::test();
        assert!(threshold("ipv4.loss<=0").judge(&record).held);
        let gone = netaware_record::Unreachable {
            stage: "measure".to_owned(),
            reason: "nothing came any more after 1.00 s".to_owned(),
            advice: String::new(),
        };
        record.versions[0].unreachable = Some(gone);
        let judged = threshold("ipv4.loss<=0").judge(&record);
        assert!(!judged.held && judged.found.ends_with("(IPv4 was not measured to its end)"), "{judged:?}");
        assert!(threshold("ipv6.rtt.p50<1s").judge(&record).held);
        // A stream that broke off speaks for UDP of its direction alone.
        let mut record = fixture::test();
        assert!(threshold("udp.loss<100%").judge(&record).held);
        record.versions[0].udp[0].outcome = netaware_record::Outcome::Failed;
        assert!(!threshold("udp.loss<100%").judge(&record).held);
        assert!(threshold("rtt.p50<1s").judge(&record).held && threshold("tcp>1M").judge(&record).held);
    }

    /// `loss<1%` held over 89 of 600 requests, and `tcp>1M` over a rate marked as partial.
    #[test]
    fn a_threshold_does_not_hold_over_what_a_person_ended_before_its_end() {
        use netaware_record::Outcome::Interrupted;
        let mut record = fixture::latency();
        record.versions.truncate(1);
        record.outcome = Interrupted;
        let name = record.versions[0].version.name();
        let judge = |record: &Record, text: &str| text.parse::<Threshold>().unwrap().judge(record);
        let measured = |record: &mut Record, requests: u64, options: &[(&str, &str)]| {
            let latency = record.versions[0].latency.as_mut().unwrap();
            (latency.sent, latency.received, latency.lost) = (requests, requests, 0);
            (latency.unknown, latency.not_sent) = (0, 0);
            record.versions[0].latency_tcp = None;
            let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            record.request.options = options.collect();
        };
        measured(&mut record, 89, &[("count", "600")]);
        let judged = judge(&record, "loss<1%");
        let want = format!(
            "{name} 0 % (not judged: only 89 of 600 over {name} were measured, because it was ended on request)"
        );
        assert!(!judged.held && judged.found == want, "{judged:?}");
        // A share of losses is judged where 90 % are known; a time is that of all.
        measured(&mut record, 550, &[("count", "600")]);
        assert!(judge(&record, "loss<1%").held && !judge(&record, "rtt.p50<1s").held);
        measured(&mut record, 600, &[("count", "600")]);
        assert!(judge(&record, "rtt.p50<1s").held);
        measured(&mut record, 89, &[("time", "6.00 s")]);
        let judged = judge(&record, "loss<1%");
        assert!(!judged.held && judged.found.contains("was not measured to its end, because"), "{judged:?}");
        // It was to go on until then.
        measured(&mut record, 89, &[]);
        assert!(judge(&record, "loss<1%").held && judge(&record, "rtt.p50<1s").held);

        let mut record = fixture::tcp();
        assert!(judge(&record, "tcp>1k").held);
        record.outcome = Interrupted;
        record.versions.iter_mut().flat_map(|it| &mut it.tcp).for_each(|it| it.outcome = Interrupted);
        let judged = judge(&record, "tcp>1k");
        assert!(!judged.held && judged.found.contains("because it was ended on request"), "{judged:?}");
    }

    #[test]
    fn a_threshold_without_a_figure_fails() {
        let mut record = fixture::test();
        record.versions.iter_mut().for_each(|version| version.udp.clear());
        let judged = "udp.loss<100%".parse::<Threshold>().unwrap().judge(&record);
        assert!(!judged.held);
        assert_eq!(judged.found, "no such figure was measured");
    }

    /// "No such figure was measured" stood beside "lost 0 % (0 of 769)".
    #[test]
    fn a_loss_that_is_printed_and_not_judged_is_not_said_not_to_be_measured() {
        let mut record = fixture::udp();
        record.versions.truncate(1);
        record.versions[0].udp.truncate(1);
        let udp = &mut record.versions[0].udp[0];
        udp.pedigree.direction = netaware_record::Direction::Forward;
        (udp.sent, udp.not_sent, udp.loss.lost, udp.loss.unknown) = (769, Some(1814), 0, 0);
        (udp.loss.host, udp.loss.network) = (Some(0), Some(0));
        let judge = |text: &str| text.parse::<Threshold>().unwrap().judge(&record);
        for name in ["udp.loss", "udp.up.loss", "ipv4.udp.network-loss"] {
            let judged = judge(&format!("{name}<1%"));
            assert!(!judged.held);
            let want = "IPv4 up 0 % lost, but only 29.8 % of its datagrams were sent and followed: too few to judge the \
                        stream by";
            assert_eq!(judged.found, want);
        }
        // What the receiving host dropped is no loss by the network.
        let mut of_host = record.clone();
        let loss = &mut of_host.versions[0].udp[0].loss;
        (loss.lost, loss.host, loss.network) = (76, Some(76), Some(0));
        let judged = "udp.network-loss<1%".parse::<Threshold>().unwrap().judge(&of_host);
        assert!(judged.found.starts_with("IPv4 up 0 % lost, but only"), "{judged:?}");
        assert_eq!(judge("udp.down.loss<1%").found, "no such figure was measured");
        assert_eq!(judge("rtt.p50<1s").found, "no such figure was measured");
        // Nor does the other direction speak for both.
        let mut whole = record.versions[0].udp[0].clone();
        whole.pedigree.direction = netaware_record::Direction::Reverse;
        (whole.sent, whole.not_sent) = (2583, Some(0));
        record.versions[0].udp.push(whole);
        let judged = "udp.loss<1%".parse::<Threshold>().unwrap().judge(&record);
        assert!(
            !judged.held && judged.found.starts_with("IPv4 down 0 %, IPv4 up 0 % lost, but only"),
            "{judged:?}"
        );
    }

    #[test]
    fn a_host_has_metrics_of_its_own_and_no_ip_versions() {
        let judge = |text: &str| text.parse::<Threshold>().unwrap().judge(&fixture::host_ability());
        for (text, held) in [
            ("host.trains>=1Gbit/s", true),
            ("host.pairs>1Tbit/s", false),
            ("host.clock<1us", true),
            ("host.send<1ns", false),
            ("host.packets>1000", true),
            ("ipv4.host.clock<1us", false),
            ("rtt.p99<1s", false),
        ] {
            let judged = judge(text);
            assert_eq!(judged.held, held, "{text}: {}", judged.found);
        }
        assert_eq!(judge("host.steal<1%").found, "0.40 %");
    }

    #[test]
    fn what_was_found_names_version_and_direction() {
        assert_eq!(judge("rtt.p50<1s").found, "IPv4 212 us, IPv6 214 us");
        assert_eq!(judge("ipv6.tcp>1M").found, "IPv6 down 76.2 Mbit/s, IPv6 up 76.3 Mbit/s");
    }

    #[test]
    fn slips_are_explained() {
        let rows = [
            ("rtt.p99", "'rtt.p99' compares nothing"),
            ("rtt.p98<1ms", "did you mean rtt.p99"),
            ("speed>1M", "'speed' is no metric"),
            ("rtt.p99<20", "the value for rtt.p99: '20' needs a unit: ns, us, ms"),
            ("tcp.up>20ms", "the value for tcp.up"),
            ("tcp.up>10MBps", "write 80Mbit/s, or 10Mbit/s if you mean bits"),
            ("rtt.p99<20M", "has a capital M"),
            ("loss<lots", "'lots' does not start with a decimal number"),
            ("loss<1", "'1' is a share without its sign: write 1%"),
            ("loss<NaN", "'NaN' does not start with a decimal number"),
            ("loss<150%", "'150%' is more than 100 %"),
            ("rpm>NaN", "'NaN' is no number"),
            ("ipv5.loss<1%", "'ipv5.loss' is no metric"),
            ("<1%", "'' is no metric"),
            ("loss<", "'' does not start with a decimal number"),
        ];
        for (text, want) in rows {
            let error = text.parse::<Threshold>().unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
