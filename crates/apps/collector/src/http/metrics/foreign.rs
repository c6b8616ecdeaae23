//! IPFIX of other exporters, and what was exported to others, by what became of it.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use netaware_ipfix::ExportCounts;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::export::Lines;
use crate::foreign::Foreign;
use crate::held;

pub(super) fn encode(foreign: &Foreign, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let (totals, counts) = (foreign.totals(), foreign.counts());
    let by_cause = totals.counts.named().into_iter().map(|(name, value)| (name, help(name), value));
    let bad = &totals.counts;
    let malformed = bad.messages_bad + bad.records_bad + bad.templates_bad + totals.foreign;
    let others = [
        ("malformed", "IPFIX messages, records and templates that could not be read", malformed),
        (
            "refused",
            "IPFIX connections without a place, datagrams without one or of another kind",
            totals.refused,
        ),
        ("foreign", "Connections to the place for IPFIX that spoke something else", totals.foreign),
        ("silent", "IPFIX connections that were closed because nothing came", totals.silent),
        ("flows", "Flow records of other exporters", counts.flows.load(Relaxed)),
        ("flows_untimed", "Flow records without a time of their own", counts.untimed.load(Relaxed)),
        (
            "sightings",
            "Packet reports of other exporters that went to the joins",
            counts.sightings.load(Relaxed),
        ),
        ("sightings_unnamed", "Packet reports of exporters that have no name", counts.unnamed.load(Relaxed)),
        ("frames", "Packet reports without a digest", counts.frames.load(Relaxed)),
        ("delays", "Delays that others have measured", counts.delays.load(Relaxed)),
        ("others", "Records that mean nothing here", counts.others.load(Relaxed)),
    ];
    for (name, help, value) in by_cause.chain(others) {
        let (name, counter) = (format!("netaware_collector_ipfix_{name}"), ConstCounter::new(value));
        counter.encode(encoder.encode_descriptor(&name, help, None, counter.metric_type())?)?;
    }
    let gauges = [
        ("connections", "IPFIX connections that there are", totals.connections),
        ("exporters", "IPFIX exporters over datagrams that there are", totals.exporters),
    ];
    for (name, help, value) in gauges {
        let name = format!("netaware_collector_ipfix_{name}");
        let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        gauge.encode(encoder.encode_descriptor(&name, help, None, gauge.metric_type())?)?;
    }
    Ok(())
}

/// Of what was sent, and of how many batches there was no room for.
type OfLine = fn(&ExportCounts, u64) -> u64;

/// What was exported, by where to.
pub(super) fn encode_exported(lines: &Lines, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let rows: [(&str, &str, OfLine); 3] = [
        ("messages", "IPFIX messages that were exported", |sent, _| sent.messages),
        ("lost", "Batches of delays that this collector of others did not take", |sent, crowded| {
            sent.batches_lost + crowded
        }),
        ("refused", "IPFIX messages that could not be sent as datagrams", |sent, _| sent.datagrams_refused),
    ];
    for (name, help, of) in rows {
        let name = format!("netaware_collector_export_{name}");
        let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
        for (target, counts) in lines.iter() {
            let value = of(&held(&counts.sent), counts.crowded.load(Relaxed));
            ConstCounter::new(value).encode(family.encode_family(&[("target", target.as_str())])?)?;
        }
    }
    Ok(())
}

/// What a count of [`netaware_wire::ipfix::Counts`] is of.
fn help(name: &str) -> &'static str {
    match name {
        "messages" => "IPFIX messages of other exporters",
        "records" => "IPFIX records that were read",
        "templates" => "IPFIX templates learnt or repeated",
        "templates_changed" => "IPFIX templates that came to mean something else",
        "templates_withdrawn" => "IPFIX templates withdrawn",
        "templates_refused" => "IPFIX templates that there was no room for",
        "templates_expired" => "IPFIX templates that were not repeated in time",
        "templates_bad" => "IPFIX templates that no record can look like",
        "sets_unknown" => "IPFIX sets of data without a template",
        "sets_reserved" => "IPFIX sets with reserved numbers",
        "records_bad" => "IPFIX records that their set ends within",
        "messages_bad" => "IPFIX messages that could not be read to their end",
        "domains_refused" => "IPFIX messages of domains that there was no room for",
        "missing" => "IPFIX records that never came, by sequence numbers",
        "late" => "IPFIX messages that came after younger ones",
        "duplicates" => "IPFIX messages that had come already, not used",
        "replays" => "IPFIX messages older than what came last, not used",
        "restarts" => "Times that an IPFIX exporter began to count anew",
        _ => "IPFIX of other exporters",
    }
}

#[cfg(test)]
mod tests {
    use netaware_wire::ipfix::Counts;

    use super::*;

    #[test]
    fn every_cause_is_said_in_words() {
        for (name, _) in Counts::default().named() {
            assert_ne!(help(name), help(""), "{name}");
        }
    }
}
