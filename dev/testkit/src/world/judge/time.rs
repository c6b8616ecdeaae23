//! In time: within a tenth of what was promised, or the longer time was said beforehand.
//!
//! What a command says beforehand are the notes of the prober (`progress.rs`, `test.rs`) and the
//! line of whoever waits for another measurement. They are read as they are written there, and only
//! as notes: a sentence that is printed at the end takes nothing back. Nothing else is granted but
//! the limits that the program documents for a path that is gone: an IP version to which nobody
//! connects within `--connect-timeout`, and a connection on which nothing is heard.

use netaware_record::IpVersion;
use netaware_units::Span;
use serde_json::Value;

use super::{Bench, Verdict, list, word};

/// The program's start and end, and the waits for a core beside other labs.
const MACHINE: Span = Span::from_millis(500);
/// A longer time is not announced if it is longer by a tenth and no more than this.
const NOTICEABLE: Span = Span::from_millis(500);
/// The default of `--connect-timeout`. The versions connect at the same time.
const CONNECT_TIMEOUT: Span = Span::from_secs(5);
/// A silent responder is given up after 4 s and some round trips, and after half a minute in any
/// case.
const LONGEST_SILENCE: Span = Span::from_secs(30);

impl Bench<'_> {
    pub(super) fn time(&mut self, record: Option<&Value>) {
        let said = Announced::of(&self.found.stderr);
        let (promised, limit) = self.limit(&said, record);
        match self.found.took {
            None => self.say(Verdict::TooLong, format!("it did not end; {limit} is the limit")),
            Some(took) if took > limit => {
                self.say(
                    Verdict::TooLong,
                    format!("it took {took}; promised were {promised}, {limit} is the limit"),
                );
            }
            Some(_) => {}
        }
        let elapsed = record.and_then(|record| record.get("elapsed")?.as_i64()).map(Span);
        if let (Some(elapsed), Some(took)) = (elapsed, self.found.took) {
            self.wrong(elapsed > took, || format!("the record says that it took {elapsed}, it took {took}"));
        }
    }

    /// What was promised or announced, and what it may take.
    fn limit(&self, said: &Announced, record: Option<&Value>) -> (Span, Span) {
        let asked = self.ask.promised(self.truth.reachable().max(1));
        let slack = if said.whole.is_some() { Span::ZERO } else { NOTICEABLE };
        let promised = asked.max(said.whole.unwrap_or_default()) + said.drains;
        let gone = record.map(|record| self.gone(record)).unwrap_or_default();
        let limit = promised + promised / 10 + slack + said.waits + gone + self.suspended + MACHINE;
        (promised, limit)
    }

    /// How long was waited for versions that are gone, as far as the program's limits go. Where the
    /// path gives no reason for silence nobody may wait for it.
    fn gone(&self, record: &Value) -> Span {
        let may_be_gone = |version: &&Value| {
            let of = if word(version, "version") == "IPv4" { IpVersion::V4 } else { IpVersion::V6 };
            !version["unreachable"].is_null() && !self.is_plain(self.truth.over(of))
        };
        let reasons = || {
            let gone = list(record, "versions").filter(may_be_gone);
            gone.map(|version| {
                (word(&version["unreachable"], "stage"), word(&version["unreachable"], "reason"))
            })
        };
        let silent = |(_, reason): (&str, &str)| {
            let silence = reason.split("nothing heard for ").nth(1)?;
            silence.replace(' ', "").parse::<Span>().ok()
        };
        let silence = reasons().filter_map(silent).max().unwrap_or_default().min(LONGEST_SILENCE);
        let connecting = reasons().any(|(stage, _)| stage == "connect");
        silence + if connecting { CONNECT_TIMEOUT } else { Span::ZERO }
    }
}

/// What was said beforehand of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Announced {
    /// The longest time for the whole.
    whole: Option<Span>,
    /// What the path's queues may add to it.
    drains: Span,
    /// What other measurements in front may add to it.
    waits: Span,
}

impl Announced {
    fn of(stderr: &str) -> Self {
        let mut said = Self::default();
        for line in stderr.lines() {
            if let Some(note) = line.strip_prefix("note: ") {
                let whole = between(note, "this takes about ", " instead of ")
                    .or_else(|| between(note, "this takes about ", ":"))
                    .or_else(|| between(note, "this may take up to ", " instead of "))
                    .or_else(|| between(note, "it takes about ", " instead of "))
                    .or_else(|| between(note, "it takes about ", ":"));
                said.whole = said.whole.max(whole);
                said.drains =
                    said.drains.max(between(note, "this takes up to ", " longer").unwrap_or_default());
            } else if line.starts_with("waiting for another measurement: ") {
                // The same wait is told again with each place that is won.
                said.waits = said.waits.max(between(line, ", ", " at most").unwrap_or_default());
            }
        }
        said
    }
}

/// The time that stands between two pieces of a sentence.
fn between(text: &str, before: &str, after: &str) -> Option<Span> {
    let rest = &text[text.find(before)? + before.len()..];
    let time = &rest[..rest.find(after)?];
    time.replace(' ', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{found, latency, said, truth};
    use super::super::{Found, Verdict};
    use super::*;
    use crate::world::Ask;

    fn took(ask: Ask, millis: i64, stderr: &str) -> Verdict {
        let found =
            Found { took: Some(Span::from_millis(millis)), stderr: stderr.to_owned(), ..found(&latency()) };
        // Of such a path not every figure is demanded.
        said(ask, &truth("outages = [{ at = '90s' }]"), &found).0
    }

    #[test]
    fn a_promise_is_kept_or_taken_back_beforehand() {
        assert_eq!(took(Ask::Test, 11_900, ""), Verdict::Held);
        assert_eq!(took(Ask::Test, 12_100, ""), Verdict::TooLong);
        let never = Found { took: None, code: None, ..found(&latency()) };
        assert_eq!(said(Ask::Test, &truth(""), &never).0, Verdict::TooLong);
    }

    #[test]
    fn only_what_is_said_beforehand_of_the_whole_is_an_announcement() {
        let rows = [
            (
                "note: this takes about 24.0 s instead of 6.00 s: an exchange takes 600 ms on this path",
                24,
                0,
                0,
            ),
            (
                "note: 10.0 s is too short; it takes about 15s instead of 10.0 s; -t 63s would be enough",
                15,
                0,
                0,
            ),
            ("note: it takes about 15s: ends of transfers have taken 2.00 s longer than planned", 15, 0, 0),
            ("note: this takes about 38.0 s: 153 transfers of some 7 round trips each", 38, 0, 0),
            (
                "note: this may take up to 19.0 s instead of 15.0 s: the end of a transfer is overdue",
                19,
                0,
                0,
            ),
            ("note: it takes about 16s: the path\nnote: it takes about 20s: the path", 20, 0, 0),
            ("note: 10.0 s is too short for the whole test; -t 63s would be enough for all of it", 0, 0, 0),
            ("error: the measurement failed before its end: it takes about 12s instead of 10.0 s", 0, 0, 0),
            (
                "note: the time is up, and what is still there is waited for: this takes up to 13.5 s longer",
                0,
                13_500,
                0,
            ),
            ("waiting for another measurement: place 1, 7 s at most", 0, 0, 7),
            (
                "waiting for another measurement: place 2, 14 s at most\nwaiting for another measurement: place 1, 7 s at \
                 most",
                0,
                0,
                14,
            ),
            ("note: the path's round trip takes 20 ms and needs 5 s of patience", 0, 0, 0),
        ];
        for (stderr, whole, drains, waits) in rows {
            let whole = (whole > 0).then(|| Span::from_secs(whole));
            let (drains, waits) = (Span::from_millis(drains), Span::from_secs(waits));
            assert_eq!(Announced::of(stderr), Announced { whole, drains, waits }, "{stderr}");
        }
    }

    #[test]
    fn a_t_that_would_be_enough_is_no_announcement_of_the_time_that_it_takes() {
        let enough =
            "note: 10.0 s is too short; rounds: 1 instead of 2; -t 63s would be enough for all of it";
        assert_eq!(took(Ask::Test, 20_000, enough), Verdict::TooLong);
    }

    #[test]
    fn a_version_that_is_gone_is_waited_for_as_long_as_its_reason_says_and_no_longer() {
        let record = |stage: &str, reason: &str| {
            json!({"outcome": "failed", "warnings": [], "versions": [
                {"version": "IPv4", "unreachable": {"stage": stage, "reason": reason}}]})
        };
        let verdict = |record: &Value, millis| {
            let found = Found { took: Some(Span::from_millis(millis)), code: Some(2), ..found(record) };
            said(Ask::Latency, &truth("outages = [{ at = '3s' }]"), &found).0
        };
        let silent = record("measure latency", "the connection ended: nothing heard for 4.11 s");
        assert_eq!(
            [verdict(&silent, 11_000), verdict(&silent, 13_000)],
            [Verdict::Flagged, Verdict::TooLong]
        );
        let deaf = record("connect", "no answer");
        assert_eq!([verdict(&deaf, 12_000), verdict(&deaf, 13_500)], [Verdict::Flagged, Verdict::TooLong]);
        let refused = record("open", "refused");
        assert_eq!(verdict(&refused, 9_000), Verdict::TooLong);
    }

    #[test]
    fn a_record_that_says_it_took_longer_than_it_did_is_wrong() {
        let mut record = latency();
        record["elapsed"] = json!(5_100_000_000_i64);
        assert_eq!(said(Ask::Latency, &truth(""), &found(&record)).0, Verdict::Wrong);
    }
}
