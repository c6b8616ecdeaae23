//! What must be known before trusting the figures: versions that failed, thresholds, warnings.

use std::io::{self, Write};

use netaware_record::{IpVersion, Outcome, PathFacts, Reach, Record, Unreachable, VersionResult, printable};

use crate::render::paint::Paint;
use crate::render::paragraph;
use crate::render::table::padded;

pub(super) fn write(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    let why = |v: &VersionResult| v.unreachable.as_ref().map(because).or_else(|| stalled(v));
    let failed: Vec<_> = record.versions.iter().filter_map(|v| Some((v, why(v)?))).collect();
    if !failed.is_empty() {
        let is_partly = |(v, _): &(&VersionResult, String)| v.unreachable.is_some() && v.has_figures();
        let heading = if failed.iter().all(is_partly) { "NOT MEASURED TO THE END" } else { "NOT MEASURED" };
        writeln!(out, "\n{}", paint.heading(heading))?;
    }
    for (version, why) in failed {
        let lead = format!("  {}  ", version.version.name());
        writeln!(out, "{}", paint.bad(&paragraph(&lead, &why)))?;
    }
    if !record.expectations.is_empty() {
        writeln!(out, "\n{}", paint.heading("EXPECTED"))?;
    }
    for e in &record.expectations {
        let lead = format!("  {}", padded(if e.held { "held" } else { "FAILED" }, 8));
        let shown = paragraph(&lead, &format!("{}  ({})", e.text, e.found));
        writeln!(out, "{}", if e.held { shown } else { paint.bad(&shown) })?;
    }
    let warnings: Vec<&String> = record.warnings.iter().filter(|it| !is_a_remark(record, it)).collect();
    if !warnings.is_empty() {
        writeln!(out, "\n{}", paint.heading("WARNINGS"))?;
    }
    for warning in warnings {
        writeln!(out, "{}", paint.caution(&paragraph("  ! ", warning)))?;
    }
    Ok(())
}

/// For stderr: the thresholds that did not hold, of a record whose form has no place for them.
pub(crate) fn missed_lines(record: &Record) -> Vec<String> {
    let missed = record.expectations.iter().filter(|e| !e.held);
    missed.map(|e| format!("FAILED  {}  ({})", e.text, e.found)).collect()
}

/// What of a version that answered carried nothing, and why if that is known: transfers over TCP,
/// else streams of datagrams, else requests.
fn stalled(version: &VersionResult) -> Option<String> {
    let tcp = version.tcp.iter().filter(|tcp| tcp.carried_nothing());
    let udp = version.udp.iter().filter(|udp| udp.received == 0 && udp.loss.lost > 0);
    let early = tcp.clone().next().and_then(|first| first.ended_early.clone());
    let in_vain = |protocol: &str, ways: Vec<&'static str>| {
        let mut ways = ways;
        ways.dedup();
        (!ways.is_empty()).then(|| format!("{protocol} {} carried nothing", ways.join(" and ")))
    };
    let of_tcp = in_vain("TCP", tcp.map(|tcp| tcp.pedigree.direction.name()).collect());
    let of_udp = || in_vain("UDP", udp.map(|udp| udp.pedigree.direction.name()).collect());
    let delay = version.latency.as_ref().filter(|it| it.received == 0 && it.lost > 0);
    let unanswered = || {
        delay.map(|it| {
            let late = match it.late {
                0 => String::new(),
                late => format!(" in time; {late} answers came later"),
            };
            format!("none of the {} requests was answered{late}", it.lost)
        })
    };
    let what = of_tcp.or_else(of_udp).or_else(unanswered)?;
    let why = version.path.as_ref().and_then(PathFacts::black_hole).or(early);
    Some(format!("{what}{}", why.map(|why| format!(": {why}")).unwrap_or_default()))
}

/// What failed of a measurement that has figures, of each version that failed: the transfers that
/// carried nothing, else what its warnings begin with.
fn failure(record: &Record) -> Option<String> {
    let of_all = |what: &dyn Fn(&VersionResult) -> Option<String>| {
        let lines = lines_of(record, what);
        (!lines.is_empty()).then(|| lines.join("; "))
    };
    let is_early = !record.has_figures() && record.outcome == Outcome::Interrupted;
    let ended =
        || is_ended_before_a_figure(record).then(|| "it was ended before there was a figure".to_owned());
    let has_stalled = record.versions.iter().any(|version| stalled(version).is_some());
    let why = |version: &VersionResult| {
        let without_rate = || rateless(version).filter(|_| !has_stalled);
        let broken = || {
            // A first segment that was sent again ends nothing.
            let lost_syns = version.reach.as_ref().and_then(Reach::lost_syns);
            let mut others =
                warnings_of(record, version.version).filter(|text| lost_syns.as_deref() != Some(*text));
            others.next().map(str::to_owned).filter(|_| has_failed(version) && !is_early)
        };
        stalled(version).or_else(without_rate).or_else(broken)
    };
    let on_request =
        || (record.outcome == Outcome::Interrupted).then(|| "it was ended on request".to_owned());
    of_all(&why).or_else(ended).or_else(on_request).or_else(|| reason(record))
}

/// What a host's system tells is no figure: none of its limits was measured.
fn is_ended_before_a_figure(record: &Record) -> bool {
    let has_none = !record.has_figures() || record.ability.is_some() && !record.is_measured();
    has_none && record.outcome == Outcome::Interrupted
}

/// Whether a warning is the reason why a rate has no figure, which is told below that rate.
fn is_a_remark(record: &Record, warning: &str) -> bool {
    record.versions.iter().any(|version| {
        version.path_rates.iter().any(|rate| {
            let (name, way) = (rate.metric.name(), rate.pedigree.direction.name());
            let lead = format!("{}: no figure of {name} {way}: ", version.version.name());
            let is_told =
                |why: &str| rate.remarks.iter().any(|it| it.strip_prefix("no figure: ") == Some(why));
            warning.strip_prefix(lead.as_str()).is_some_and(is_told)
        })
    })
}

/// Why a capacity or an available bandwidth has no figure.
fn rateless(version: &VersionResult) -> Option<String> {
    let missing = version.path_rates.iter().find_map(|rate| Some((rate, rate.missing.as_ref()?)));
    let (rate, missing) = missing?;
    let why = version.path.as_ref().and_then(PathFacts::black_hole);
    let why = why.unwrap_or_else(|| missing.because.clone());
    let (name, way) = (rate.metric.name(), rate.pedigree.direction.name());
    Some(format!("no figure of {name} {way}: {why}"))
}

fn because(why: &Unreachable) -> String {
    let reason = why.reason.trim_end_matches('.');
    if why.advice.is_empty() { reason.to_owned() } else { format!("{reason}; {}", why.advice) }
}

/// For stderr when nothing could be measured, or not to the end: what was tried, where, what the
/// system said, what to try.
pub(crate) fn failure_lines(record: &Record) -> Vec<String> {
    let mut lines = unreachable_lines(record);
    let is_reached = record.versions.iter().any(|version| version.unreachable.is_none());
    if is_reached || record.versions.is_empty() {
        let what = if record.has_figures() && !is_ended_before_a_figure(record) {
            "the measurement failed before its end"
        } else {
            "nothing was measured"
        };
        let why = failure(record).map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(printable(&format!("{what}{why}")));
    }
    lines
}

/// The first warning of any version, with the versions of which it says the same. What comes before
/// the warnings of versions is about the plan as a whole.
fn reason(record: &Record) -> Option<String> {
    let first = |version: &VersionResult| {
        let why = warnings_of(record, version.version).next()?;
        let at = record.warnings.iter().position(|it| it.ends_with(why))?;
        Some((at, why))
    };
    let told = record.versions.iter().filter_map(first).min();
    let Some((_, why)) = told else { return record.warnings.first().cloned() };
    let says_so = |version: &VersionResult| {
        warnings_of(record, version.version).any(|other| other == why).then(|| why.to_owned())
    };
    lines_of(record, says_so).into_iter().next()
}

/// The warnings of one version, without its name.
fn warnings_of(record: &Record, version: IpVersion) -> impl Iterator<Item = &str> {
    let lead = format!("{}: ", version.name());
    record.warnings.iter().filter_map(move |warning| warning.strip_prefix(lead.as_str()))
}

/// Whether some phase of a version did not run to its end. A version that was lost on the way has a
/// line of its own.
fn has_failed(version: &VersionResult) -> bool {
    let cells = version.matrix.iter().flat_map(|matrix| &matrix.cells);
    let mut runs = cells.flat_map(|cell| &cell.runs);
    let is_broken = version.broke_off() || runs.any(|run| run.outcome == Outcome::Failed);
    version.unreachable.is_none() && is_broken
}

fn unreachable_lines(record: &Record) -> Vec<String> {
    let lines = lines_of(record, |version| version.unreachable.as_ref().map(because));
    lines.into_iter().map(|line| printable(&line)).collect()
}

/// A line for each thing that there is to say of versions. Those that failed alike share one.
fn lines_of(record: &Record, what: impl Fn(&VersionResult) -> Option<String>) -> Vec<String> {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for version in &record.versions {
        let Some(why) = what(version) else { continue };
        match said.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(version.version.name()),
            None => said.push((why, vec![version.version.name()])),
        }
    }
    said.into_iter().map(|(why, names)| format!("{}: {why}", names.join(" and "))).collect()
}

#[cfg(test)]
mod tests {
    use netaware_record::MtuFinding;
    use netaware_units::{ByteCount, Span};

    use super::*;
    use crate::flags::output::Colour;
    use crate::render::fixture;

    #[test]
    fn a_failure_of_versions_that_were_reached_is_said_too() {
        let mut record = fixture::udp();
        record.warnings = vec!["IPv4: UDP is blocked".into()];
        assert_eq!(failure_lines(&record), ["the measurement failed before its end: IPv4: UDP is blocked"]);
        record.versions.iter_mut().for_each(|version| version.udp.clear());
        assert_eq!(failure_lines(&record), ["nothing was measured: IPv4: UDP is blocked"]);
        assert_eq!(failure_lines(&fixture::nothing()).len(), 1);
    }

    #[test]
    fn the_reason_why_a_rate_has_no_figure_is_not_printed_twice() {
        let mut record = fixture::capacity();
        let way = record.versions[1].path_rates[1].pedigree.direction.name();
        let of = |why: &str| format!("IPv6: no figure of capacity {way}: {why}");
        record.warnings = vec![of("the time was too short"), of("large packets vanish")];
        let mut page = Vec::new();
        write(&mut page, &record, Paint::for_file(Colour::Never)).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("WARNINGS") && page.contains("vanish"), "{page}");
        assert!(!page.contains("too short"), "{page}");
        record.warnings.pop();
        let mut page = Vec::new();
        write(&mut page, &record, Paint::for_file(Colour::Never)).unwrap();
        assert!(!String::from_utf8(page).unwrap().contains("WARNINGS"));
    }

    #[test]
    fn a_note_about_the_plan_is_not_given_as_the_reason_of_a_failure() {
        let mut record = fixture::udp();
        record.versions.iter_mut().for_each(|version| version.udp.clear());
        let (note, why) = ("blocks of UDP: 100000 B became 65507 B", "IPv4: the cap for bytes is 1 MB");
        record.warnings = vec![note.into(), why.into()];
        assert_eq!(failure_lines(&record), ["nothing was measured: IPv4: the cap for bytes is 1 MB"]);
        record.warnings.pop();
        assert_eq!(failure_lines(&record), [format!("nothing was measured: {note}")]);
    }

    #[test]
    fn a_stalled_transfer_is_blamed_on_its_black_hole_and_not_on_the_first_warning() {
        let mut record = fixture::test();
        record.outcome = Outcome::Failed;
        record.warnings = vec!["15.0 s is too short for the whole test".into()];
        let version = &mut record.versions[1];
        let path = version.path.as_mut().unwrap();
        (path.mtu, path.mtu_finding) = (Some(1300), MtuFinding::BlackHole);
        for tcp in &mut version.tcp {
            (tcp.bytes, tcp.goodput, tcp.measured) = (Some(ByteCount(0)), None, Span::ZERO);
            tcp.ended_early = Some("nothing of what was sent arrived in 7.25 s".into());
        }
        let why =
            "IPv6: TCP down and up carried nothing: packets above 1300 bytes vanish and no router says so";
        assert_eq!(failure_lines(&record), [format!("the measurement failed before its end: {why}")]);
        let mut page = Vec::new();
        write(&mut page, &record, Paint::for_file(Colour::Never)).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("NOT MEASURED") && page.contains("carried nothing"), "{page}");
    }

    #[test]
    fn a_black_hole_of_both_versions_is_not_blamed_on_one_of_them() {
        let mut record = fixture::udp();
        let [mut v4, mut v6] = [record.versions[0].clone(), record.versions[0].clone()];
        (v4.version, v6.version) = (IpVersion::V4, IpVersion::V6);
        for version in [&mut v4, &mut v6] {
            for udp in &mut version.udp {
                (udp.received, udp.loss.lost, udp.goodput) = (0, udp.sent, None);
            }
            let path = version.path.get_or_insert_default();
            (path.mtu, path.mtu_finding) = (Some(1420), MtuFinding::BlackHole);
        }
        let way = v4.udp[0].pedigree.direction.name();
        record.versions = vec![v4, v6];
        let said = failure_lines(&record);
        let want = format!("IPv4 and IPv6: UDP {way} carried nothing: packets above 1420 bytes vanish");
        assert!(said[0].contains(&want), "{said:?}");
        record.versions.iter_mut().for_each(|version| version.udp.clear());
        record.warnings = vec!["IPv4: UDP is blocked".into(), "IPv6: UDP is blocked".into()];
        assert_eq!(failure_lines(&record), ["nothing was measured: IPv4 and IPv6: UDP is blocked"]);
    }

    /// Two streams ended before their time, and the reason was that of the first alone.
    #[test]
    fn what_broke_off_over_both_versions_is_said_of_both() {
        let mut record = fixture::udp();
        let [mut v4, mut v6] = [record.versions[0].clone(), record.versions[0].clone()];
        (v4.version, v6.version) = (IpVersion::V4, IpVersion::V6);
        v4.udp.iter_mut().for_each(|udp| udp.outcome = Outcome::Failed);
        v6.udp.iter_mut().for_each(|udp| udp.outcome = Outcome::Failed);
        record.versions = vec![v4, v6];
        record.warnings = vec![
            "IPv4: UDP up: nothing arrived any more after 158 ms".into(),
            "IPv4: nothing came for 1.84 s".into(),
            "IPv6: UDP up: nothing arrived any more after 155 ms".into(),
        ];
        let want = "the measurement failed before its end: IPv4: UDP up: nothing arrived any more after 158 ms; IPv6: \
                    UDP up: nothing arrived any more after 155 ms";
        assert_eq!(failure_lines(&record), [want]);
        // A first segment that was sent again ends nothing.
        let millis = |ms| Span::from_millis(ms);
        let reach = Reach { connects: vec![millis(1020), millis(20)], ..Reach::default() };
        let lost_syn = format!("IPv4: {}", reach.lost_syns().unwrap());
        record.versions[0].reach = Some(reach);
        record.warnings.insert(0, lost_syn);
        assert_eq!(failure_lines(&record), [want]);
        // A version that was measured to its end has no part in it, whatever else is said of it.
        record.versions[0].udp.iter_mut().for_each(|udp| udp.outcome = Outcome::Complete);
        let want =
            "the measurement failed before its end: IPv6: UDP up: nothing arrived any more after 155 ms";
        assert_eq!(failure_lines(&record), [want]);
    }

    #[test]
    fn what_was_ended_on_request_has_no_other_reason() {
        let mut record = fixture::udp();
        record.versions.iter_mut().for_each(|version| version.udp.clear());
        record.outcome = Outcome::Interrupted;
        record.warnings = vec!["IPv4: at a round trip of 601 ms opening takes 5.41 s of 10.0 s".into()];
        let said = failure_lines(&record);
        assert_eq!(said, ["nothing was measured: it was ended before there was a figure"]);
    }

    /// A matrix under a cap was ended by SIGINT, and the cap was said to be the reason.
    #[test]
    fn a_matrix_that_was_ended_on_request_does_not_blame_the_cap_of_the_owner() {
        let mut record = fixture::matrix();
        record.outcome = Outcome::Interrupted;
        record.warnings = vec!["IPv4: the responder's owner allows no more than 1.00 Mbit/s".into()];
        assert_eq!(failure(&record).as_deref(), Some("it was ended on request"));
    }

    #[test]
    fn a_host_that_was_stopped_being_measured_is_not_said_to_have_failed_for_being_busy() {
        let mut record = fixture::host_ability();
        record.outcome = Outcome::Interrupted;
        record.ability.as_mut().unwrap().honest.clear();
        let said = failure_lines(&record);
        assert_eq!(said, ["nothing was measured: it was ended before there was a figure"]);
        record.outcome = Outcome::Failed;
        assert!(failure_lines(&record)[0].ends_with("other programs kept the processors 41 % busy"));
    }

    #[test]
    fn versions_that_failed_alike_share_a_line() {
        let mut record = fixture::nothing();
        assert_eq!(unreachable_lines(&record).len(), 1);
        assert!(
            unreachable_lines(&record)[0]
                .starts_with("IPv4 and IPv6: connect [2001:db8::2]:14233: no answer")
        );
        record.versions[0].unreachable.as_mut().unwrap().reason = "a\nb".into();
        assert_eq!(unreachable_lines(&record).len(), 2);
        assert!(unreachable_lines(&record)[0].starts_with("IPv4: a\u{fffd}b; check that"));
    }
}
