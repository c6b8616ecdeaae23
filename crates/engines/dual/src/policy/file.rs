//! Rules as a person writes them:
//!
//! ```toml
//! [policy]
//! use = "bulk"          # bulk, interactive or media; what is not said below is as suits it
//! metric = "goodput"    # goodput, round-trip or loss
//! margin = "10%"
//! after = "4s"
//! hold = "30s"
//! every = "500ms"
//! budget = "5%"
//! prefer = "6"          # 4, 6 or none
//! ```

use std::str::FromStr;

use netaware_record::{IpVersion, Use};
use netaware_units::{Share, Span};
use serde::Deserialize;

use super::{Metric, Rules};

/// Why a text is no policy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// No TOML, or a key that there is not; the message names line and column.
    #[error("{0}")]
    Syntax(String),
    /// A value that makes no sense for its key.
    #[error("policy.{key}: {value:?} is not {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// What stands there.
        value: String,
        /// What could.
        wanted: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    policy: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    r#use: Option<String>,
    metric: Option<String>,
    margin: Option<String>,
    after: Option<String>,
    hold: Option<String>,
    every: Option<String>,
    budget: Option<String>,
    prefer: Option<String>,
}

impl FromStr for Rules {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let file: File = toml::from_str(text).map_err(|error| PolicyError::Syntax(error.to_string()))?;
        let table = file.policy;
        let what_for = table.r#use.as_deref().map_or(Ok(Use::Bulk), a_use)?;
        let base = Self::of(what_for);
        let share = |key, text: Option<&str>, default| text.map_or(Ok(default), |text| share(key, text));
        let span = |key, text: Option<&str>, default| text.map_or(Ok(default), |text| span(key, text));
        Ok(Self {
            metric: table.metric.as_deref().map_or(Ok(base.metric), metric)?,
            margin: share("margin", table.margin.as_deref(), base.margin)?,
            after: span("after", table.after.as_deref(), base.after)?,
            hold: span("hold", table.hold.as_deref(), base.hold)?,
            every: span("every", table.every.as_deref(), base.every)?,
            budget: share("budget", table.budget.as_deref(), base.budget)?,
            prefer: table.prefer.as_deref().map_or(Ok(base.prefer), prefer)?,
        })
    }
}

fn a_use(text: &str) -> Result<Use, PolicyError> {
    Ok(match text {
        "bulk" => Use::Bulk,
        "interactive" => Use::Interactive,
        "media" => Use::Media,
        _ => return Err(wrong("use", text, "bulk, interactive or media")),
    })
}

fn metric(text: &str) -> Result<Metric, PolicyError> {
    Ok(match text {
        "goodput" => Metric::Goodput,
        "round-trip" => Metric::RoundTrip,
        "loss" => Metric::Loss,
        _ => return Err(wrong("metric", text, "goodput, round-trip or loss")),
    })
}

fn prefer(text: &str) -> Result<Option<IpVersion>, PolicyError> {
    Ok(match text {
        "4" => Some(IpVersion::V4),
        "6" => Some(IpVersion::V6),
        "none" => None,
        _ => return Err(wrong("prefer", text, "4, 6 or none")),
    })
}

fn share(key: &'static str, text: &str) -> Result<f64, PolicyError> {
    let share = text.parse::<Share>().map(|share| share.0);
    share.map_err(|_| wrong(key, text, "a share from 0% to 100%"))
}

fn span(key: &'static str, text: &str) -> Result<Span, PolicyError> {
    let wanted = "a time from 100ms to 24h, as 500ms or 30s";
    let span: Span = text.trim().parse().map_err(|_| wrong(key, text, wanted))?;
    let fits = (Span::from_millis(100)..=Span::from_secs(86_400)).contains(&span);
    if fits { Ok(span) } else { Err(wrong(key, text, wanted)) }
}

fn wrong(key: &'static str, value: &str, wanted: &'static str) -> PolicyError {
    PolicyError::Value { key, value: value.to_owned(), wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_counts_and_the_rest_suits_the_use() {
        let rules: Rules =
            "[policy]\nuse = \"interactive\"\nmargin = \"25%\"\nhold = \"2m\"\nprefer = \"none\"\n"
                .parse()
                .unwrap();
        assert_eq!(rules.metric, Metric::RoundTrip);
        assert!((rules.margin - 0.25).abs() < 1e-12);
        assert_eq!((rules.hold, rules.prefer), (Span::from_secs(120), None));
        assert_eq!("[policy]".parse(), Ok(Rules::of(Use::Bulk)));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let fault = |line: &str| format!("[policy]\n{line}\n").parse::<Rules>().unwrap_err().to_string();
        assert_eq!(fault("margin = \"ten\""), "policy.margin: \"ten\" is not a share from 0% to 100%");
        assert!(fault("hold = \"1us\"").contains("100ms to 24h"));
        assert!(fault("metric = \"luck\"").contains("goodput, round-trip or loss"));
        assert!(fault("prefers = \"6\"").contains("unknown field"));
        assert!("policy = 3".parse::<Rules>().is_err());
    }

    #[test]
    fn every_word_means_what_it_says() {
        let bulk = Rules {
            metric: Metric::Goodput,
            margin: 0.1,
            after: Span::from_secs(4),
            hold: Span::from_secs(30),
            every: Span::from_millis(500),
            budget: 0.05,
            prefer: Some(IpVersion::V6),
        };
        let interactive = Rules { metric: Metric::RoundTrip, margin: 0.15, ..bulk };
        let media = Rules { metric: Metric::Loss, margin: 0.005, hold: Span::from_secs(60), ..bulk };
        let (after, every) = (Span::from_secs(2), Span::from_millis(250));
        let rows = [
            ("use = \"bulk\"", bulk),
            ("use = \"interactive\"", interactive),
            ("use = \"media\"", media),
            ("metric = \"round-trip\"", Rules { metric: Metric::RoundTrip, ..bulk }),
            ("metric = \"loss\"", Rules { metric: Metric::Loss, ..bulk }),
            ("use = \"media\"\nmetric = \"goodput\"", Rules { metric: Metric::Goodput, ..media }),
            ("prefer = \"4\"", Rules { prefer: Some(IpVersion::V4), ..bulk }),
            ("prefer = \"6\"", bulk),
            (
                "after = \"2s\"\nevery = \"250ms\"\nbudget = \"50%\"",
                Rules { after, every, budget: 0.5, ..bulk },
            ),
        ];
        for (lines, rules) in rows {
            assert_eq!(format!("[policy]\n{lines}\n").parse(), Ok(rules), "{lines}");
        }
    }
}
