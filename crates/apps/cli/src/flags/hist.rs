//! `--hist`: UDPmon's bin width and low limit.

use std::str::FromStr;

use netaware_record::HistogramShape;
use netaware_units::Span;

/// A shape as it is typed: "1us", "1us,110us", "1us,110us,500".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hist(pub(crate) HistogramShape);

/// Ten milliseconds of bins of a microsecond.
const BINS: u32 = 10_000;

impl Hist {
    /// Bins of a microsecond from zero on.
    pub(crate) const fn micros() -> Self {
        Self(HistogramShape { low: Span::ZERO, width: Span::from_micros(1), bins: BINS })
    }
}

impl FromStr for Hist {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let time = |text: &str| text.parse::<Span>().map_err(|e| e.to_string());
        let width = time(parts.next().unwrap_or(""))?;
        let low = parts.next().map_or(Ok(Span::ZERO), time)?;
        let bins =
            parts.next().map_or(Ok(BINS), str::parse).map_err(|_| "the number of bins is no number")?;
        if parts.next().is_some() {
            return Err("at most a width, a low limit and a number of bins, as in 1us,100us,500".to_owned());
        }
        let shape = HistogramShape { low, width, bins };
        if shape.empty().is_none() || low < Span::ZERO {
            let most = HistogramShape::MOST_BINS;
            return Err(format!(
                "bins must be wider than nothing, begin at zero or later, and be 1 to {most}"
            ));
        }
        Ok(Self(shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_low_limit_and_number_may_be_left_out_from_the_right() {
        let micros = Span::from_micros;
        let rows = [
            ("1us", Some((0, 1, BINS))),
            ("2us,110us", Some((110, 2, BINS))),
            ("1us, 110us, 20", Some((110, 1, 20))),
            ("", None),
            ("1", None),
            ("0us", None),
            ("1us,-5us", None),
            ("1us,0us,0", None),
            ("1us,0us,65537", None),
            ("1us,0us,5,6", None),
        ];
        for (text, want) in rows {
            let want = want.map(|(low, width, bins)| HistogramShape {
                low: micros(low),
                width: micros(width),
                bins,
            });
            assert_eq!(text.parse::<Hist>().ok().map(|hist| hist.0), want, "{text}");
        }
        assert_eq!("1us".parse(), Ok(Hist::micros()));
    }
}
