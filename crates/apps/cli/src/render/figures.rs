//! Numbers as people read them.

use netaware_record::{DelaySummary, Interval};
use netaware_units::{BitRate, Span};

/// What stands where nothing was measured.
pub(crate) const NONE: &str = "-";

/// What stands where a figure should be that nobody measured.
pub(crate) const UNKNOWN: &str = "unknown";

/// A figure, or that nobody knows it.
pub(crate) fn known<T>(figure: Option<T>, show: impl FnOnce(T) -> String) -> String {
    figure.map_or_else(|| UNKNOWN.to_owned(), show)
}

/// "21.2 ms, 1.10 ms"; one sample alone has no deviation.
pub(crate) fn mean_and_sd(delays: &DelaySummary) -> String {
    format!("{}, {}", delays.mean, delays.sd.map_or_else(|| NONE.to_owned(), |sd| sd.to_string()))
}

/// "1,234,567".
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A share of 1 as "12.3 %", "0.05 %", "0.0003 %": the smaller, the more decimals, since small
/// losses matter.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent.abs() {
        p if p == 0.0 || p >= 100.0 => 0,
        p if p >= 10.0 => 1,
        p if p >= 0.01 => 2,
        _ => 4,
    };
    format!("{percent:.decimals$} %")
}

/// Three digits that count, without an exponent: "0.0412", "9.41", "941", "12345".
pub(crate) fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

/// Whole per cent, for loads of a CPU.
pub(crate) fn load(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// `part` of `whole` as a share; nothing of nothing is no figure.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 { NONE.to_owned() } else { percent(part as f64 / whole as f64) }
}

/// "941.23 ±0.80 Mbit/s": as many decimals as the uncertainty supports. An interval that reaches
/// further to one side, or is wider than the rate itself, is shown by its ends, as in
/// "1.54 (0.56 to 1.55) Mbit/s": no rate is below zero.
pub(crate) fn rate(rate: BitRate, interval: Option<&Interval>) -> String {
    let half = interval.map_or(0.0, |i| (i.hi - i.lo) / 2.0);
    if half <= 0.0 || !half.is_finite() {
        return rate.to_string();
    }
    let (unit, scale) = rate_unit(rate.0 as f64);
    let decimals = decimals(half / scale);
    if let Some(Interval { lo, hi, .. }) = interval
        && (((hi + lo) / 2.0 - rate.0 as f64).abs() > half * LOPSIDED || half > rate.0 as f64)
    {
        let [rate, lo, hi] = [rate.0 as f64, *lo, *hi].map(|bits| bits / scale);
        return format!("{rate:.decimals$} ({lo:.decimals$} to {hi:.decimals$}) {unit}");
    }
    format!("{:.decimals$} ±{:.decimals$} {unit}", rate.0 as f64 / scale, half / scale)
}

/// "78.4-171 Mbit/s".
pub(crate) fn rates_between(least: BitRate, most: BitRate) -> String {
    let (least, most) = (least.to_string(), most.to_string());
    match (least.split_once(' '), most.split_once(' ')) {
        (Some((digits, unit)), Some((_, same))) if unit == same => format!("{digits}-{most}"),
        _ => format!("{least} - {most}"),
    }
}

/// The middle of an interval is so much of its half-width away from the estimate.
const LOPSIDED: f64 = 0.25;

/// A unit of rate and its size in bit/s that leaves at least one whole digit of `bits`.
pub(crate) fn rate_unit(bits: f64) -> (&'static str, f64) {
    scaled(bits, &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)])
}

/// The same for times in ns.
pub(crate) fn time_unit(ns: f64) -> (&'static str, f64) {
    scaled(ns, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)])
}

fn scaled(value: f64, units: &[(&'static str, f64)]) -> (&'static str, f64) {
    units
        .iter()
        .rev()
        .find(|(_, scale)| value.abs() >= *scale)
        .or(units.first())
        .copied()
        .unwrap_or(("", 1.0))
}

/// Decimals at which an uncertainty shows two digits that count.
pub(crate) fn decimals(uncertainty: f64) -> usize {
    let digits = 1.0 - uncertainty.abs().log10().floor();
    if digits.is_finite() { digits.clamp(0.0, 4.0) as usize } else { 0 }
}

/// Nanoseconds with decimals, as gaps have them: "20.00 us".
pub(crate) fn nanos(ns: f64) -> String {
    let (unit, scale) = time_unit(ns);
    let decimals = if scale > 1.0 { 2 } else { 0 };
    format!("{:.decimals$} {unit}", ns / scale)
}

/// A difference with its sign: "+4.10 ms".
pub(crate) fn signed(span: Span) -> String {
    if span.0 < 0 { format!("-{}", span.abs()) } else { format!("+{span}") }
}

/// "2026-11-21 03:34:47 UTC" of an RFC 3339 instant; whatever else it is, as it is.
pub(crate) fn instant(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(10..11), rfc3339.get(11..19)) {
        (Some(day), Some("T"), Some(time)) => netaware_record::printable(&format!("{day} {time} UTC")),
        _ => netaware_record::printable(rfc3339),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_shares_read_easily() {
        assert_eq!([count(0), count(999), count(1000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
        let rows =
            [(0.0, "0 %"), (0.000_003, "0.0003 %"), (0.000_5, "0.05 %"), (0.123, "12.3 %"), (1.0, "100 %")];
        for (value, want) in rows {
            assert_eq!(percent(value), want);
        }
        assert_eq!((share(1, 0), share(1, 200)), ("-".to_owned(), "0.50 %".to_owned()));
    }

    #[test]
    fn three_digits_count() {
        let rows =
            [(0.041_234, "0.0412"), (9.4149, "9.41"), (94.149, "94.1"), (941.49, "941"), (12_345.6, "12346")];
        for (value, want) in rows {
            assert_eq!(significant(value), want);
        }
        assert_eq!(significant(0.0), "0");
    }

    #[test]
    fn a_rate_shows_no_more_digits_than_its_uncertainty_allows() {
        let rows = [
            (941_234_567, 0.8e6, "941.23 ±0.80 Mbit/s"),
            (9_413_000_000, 0.021e9, "9.413 ±0.021 Gbit/s"),
            (941_234_567, 12e6, "941 ±12 Mbit/s"),
            (941_234_567, 0.0, "941 Mbit/s"),
            (941_234_567, 1.0, "941.2346 ±0.0000 Mbit/s"),
        ];
        for (value, half, want) in rows {
            let value_f = value as f64;
            let interval =
                Interval { estimate: value_f, lo: value_f - half, hi: value_f + half, confidence: 0.95 };
            assert_eq!(rate(BitRate(value), Some(&interval)), want);
        }
        let lopsided = Interval { estimate: 1.54e6, lo: 0.556e6, hi: 1.549e6, confidence: 0.95 };
        assert_eq!(rate(BitRate(1_540_000), Some(&lopsided)), "1.54 (0.56 to 1.55) Mbit/s");
    }

    /// "996 ±1084 kbit/s" of an interval that begins at zero.
    #[test]
    fn no_interval_of_a_rate_is_shown_to_reach_below_zero() {
        let wide = Interval { estimate: 996e3, lo: 0.0, hi: 2168e3, confidence: 0.95 };
        assert_eq!(rate(BitRate(996_000), Some(&wide)), "996 (0 to 2168) kbit/s");
        let just = Interval { lo: 1e3, hi: 1991e3, ..wide };
        assert_eq!(rate(BitRate(996_000), Some(&just)), "996 ±995 kbit/s");
    }

    #[test]
    fn instants_are_cut_to_seconds() {
        assert_eq!(instant("2026-11-21T03:34:47.123456Z"), "2026-11-21 03:34:47 UTC");
        assert_eq!(instant("later"), "later");
        assert_eq!(instant("ééééééééééééééé"), "ééééééééééééééé");
    }
}
