//! `/metrics`: the collector, its probes and the delays between points.
//!
//! Two forms, by what the reader accepts: OpenMetrics text, whose histograms have the classic
//! buckets, and Prometheus's own protobuf messages, which alone can carry native histograms beside
//! them (no version of the text format that is in use can). Prometheus asks for the second where it
//! is told to scrape native histograms.

mod foreign;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use netaware_io::clock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, NativeHistogram, NativeHistogramBuckets, prometheus_protobuf, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::problem;
use crate::LatestView;
use crate::held;
use crate::roster::ProbeView;
use crate::shared::Shared;
use crate::totals::sparse::{SCHEMA, ZERO_THRESHOLD};
use crate::totals::{EDGES, Pair, Total};

/// As OpenMetrics asks.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const MESSAGES: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

pub(super) async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let native = wants_messages(accepted);
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(shared)));
    let failed = |why: String| problem(StatusCode::INTERNAL_SERVER_ERROR, &why);
    let mut response = if native {
        match prometheus_protobuf::encode_to_vec(&registry) {
            Ok(out) => ([(header::CONTENT_TYPE, MESSAGES)], out).into_response(),
            Err(why) => return failed(why.to_string()),
        }
    } else {
        let mut out = String::new();
        match text::encode(&mut out, &registry) {
            Ok(()) => ([(header::CONTENT_TYPE, TEXT)], out).into_response(),
            Err(why) => return failed(why.to_string()),
        }
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Whether messages are accepted rather than any text (RFC 9110 §12.5.1); text where both are
/// equally welcome.
fn wants_messages<'a>(accepted: impl Iterator<Item = &'a str>) -> bool {
    let (mut messages, mut texts) = (0.0_f64, 0.0_f64);
    for range in accepted.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let kind = parts.next().unwrap_or_default();
        let parts: Vec<String> = parts.collect();
        let has = |wanted: &str| parts.iter().any(|part| part.replace('"', "") == wanted);
        let weight =
            parts.iter().find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok());
        let weight: f64 = weight.unwrap_or(0.0);
        match kind.as_str() {
            "application/vnd.google.protobuf"
                if has("proto=io.prometheus.client.metricfamily") && has("encoding=delimited") =>
            {
                messages = messages.max(weight);
            }
            "application/openmetrics-text" | "text/plain" | "*/*" | "text/*" => texts = texts.max(weight),
            _ => {}
        }
    }
    messages > texts
}

struct Scrape(Arc<Shared>);

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.own(&mut encoder)?;
        foreign::encode(&self.0.foreign, &mut encoder)?;
        foreign::encode_exported(&self.0.exported, &mut encoder)?;
        self.probes(&mut encoder)?;
        self.losses(&mut encoder)?;
        self.runs(&mut encoder)?;
        self.latest(&mut encoder)?;
        self.delays(&mut encoder)
    }
}

type OfProbe<T> = fn(&ProbeView) -> T;
type CountOf<T> = fn(&T) -> u64;
/// What a family says of the last run of an active task.
type MarkOf = fn(&LatestView) -> f64;

impl Scrape {
    fn own(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (counts, desk) = (&self.0.counts, &self.0.desk);
        let backlog = desk.backlog.read();
        let rows = [
            ("connections", "Connections that came", counts.connections.load(Relaxed)),
            ("crowded", "Connections turned away because there were too many", counts.crowded.load(Relaxed)),
            ("refused", "Probes that were refused", counts.refused.load(Relaxed)),
            ("strangers", "Connections that spoke no known language", counts.strangers.load(Relaxed)),
            ("requests", "HTTP requests", counts.requests.load(Relaxed)),
            ("store_transactions", "Transactions that the store took", desk.transactions.load(Relaxed)),
            ("store_failures", "Transactions that the store refused", desk.failures.load(Relaxed)),
            ("rows_given_up", "Rows lost because the store took nothing", desk.rows_given_up.load(Relaxed)),
            (
                "store_given_up_rows",
                "Rows that were given up because the buffer before the store was full",
                backlog.given_up,
            ),
        ];
        for (name, help, value) in rows {
            let name = format!("netaware_collector_{name}");
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(&name, help, None, counter.metric_type())?)?;
        }
        let is_up = held(&desk.trouble).is_none() && backlog.trouble.is_none();
        let gauges = [
            ("store_up", "Whether the store takes, or took when it was last tried", u64::from(is_up)),
            ("store_waiting_rows", "Rows that wait on this host for a store elsewhere", backlog.rows),
            ("store_waiting_bytes", "Bytes of them on the disk", backlog.bytes),
        ];
        for (name, help, value) in gauges {
            let name = format!("netaware_collector_{name}");
            let gauge = ConstGauge::new(value as f64);
            gauge.encode(encoder.encode_descriptor(&name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }

    fn probes(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let views = self.0.roster.views();
        let counters: [(&str, &str, OfProbe<u64>); 9] = [
            ("batches", "Batches taken", |view| view.counts.batches),
            ("duplicates", "Batches that were known already", |view| view.counts.duplicates),
            ("missing", "Batches that never came", |view| view.counts.missing),
            ("refused", "Connections under this name that were refused", |view| view.counts.refused),
            ("sightings", "Packet sightings", |view| view.counts.sightings),
            ("packets_seen", "Packets that its captures saw", |view| view.counts.seen),
            ("packets_lost", "Packets that its captures lost", |view| view.counts.lost),
            ("given_up", "Batches that it gave up because its disk was full", |view| view.given_up),
            ("runs_missed", "Scheduled runs that it could not start", |view| view.missed),
        ];
        for (name, help, of) in counters {
            let name = format!("netaware_probe_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
            for view in &views {
                ConstCounter::new(of(view))
                    .encode(family.encode_family(&[("probe", view.name.as_str())])?)?;
            }
        }
        let gauges: [(&str, &str, OfProbe<Option<f64>>); 5] = [
            ("connected", "Whether it is connected", |view| Some(f64::from(view.connected))),
            ("waiting_bytes", "Bytes on its disk that were not taken yet", |view| {
                Some(view.waiting_bytes as f64)
            }),
            // No program has none: it has not told.
            ("memory_bytes", "Resident memory", |view| {
                Some(view.memory as f64).filter(|memory| *memory > 0.0)
            }),
            ("clock_bound_seconds", "How far its clock may be off, by what it says", |view| {
                Some(view.clock.as_ref()?.bound?.0 as f64 / 1e9)
            }),
            ("report_age_seconds", "Age of the last period that it reported", |view| {
                Some(clock::wall().since(view.last_period?.until).0 as f64 / 1e9)
            }),
        ];
        for (name, help, of) in gauges {
            let name = format!("netaware_probe_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            for view in &views {
                if let Some(value) = of(view) {
                    ConstGauge::new(value).encode(family.encode_family(&[("probe", view.name.as_str())])?)?;
                }
            }
        }
        Ok(())
    }

    /// What figures of probes lack, by cause.
    fn losses(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        const HELP: &str =
            "Packets that its captures lost, by cause; frames that stood for several packets are 'merged'";
        let views = self.0.roster.views();
        // What nobody counts has no row.
        let causes: [(&str, OfProbe<Option<u64>>); 4] = [
            ("ring", |view| Some(view.counts.lost_ring)),
            ("kernel", |view| Some(view.counts.lost_kernel)),
            ("nic", |view| view.counts.lost_nic),
            ("merged", |view| Some(view.counts.merged)),
        ];
        let mut family =
            encoder.encode_descriptor("netaware_probe_losses", HELP, None, MetricType::Counter)?;
        for view in &views {
            for (cause, of) in causes {
                let Some(count) = of(view) else { continue };
                let labels = [("probe", view.name.as_str()), ("cause", cause)];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let others: [(&str, &str, OfProbe<u64>); 2] = [
            ("doubtful_periods", "Periods that may lack packets which another one counts as lost", |view| {
                view.counts.doubtful
            }),
            ("rows_cut", "Rows that are missing because reports were too long", |view| view.counts.rows_cut),
        ];
        for (name, help, of) in others {
            let name = format!("netaware_probe_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
            for view in &views {
                ConstCounter::new(of(view))
                    .encode(family.encode_family(&[("probe", view.name.as_str())])?)?;
            }
        }
        Ok(())
    }

    fn runs(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let views = self.0.mesh.views(clock::now());
        let rows: [(&str, &str, CountOf<crate::RunView>); 3] = [
            ("started", "Throughput tests started", |view| view.started),
            ("missed", "Throughput tests that had no turn", |view| view.missed),
            ("overdue", "Throughput tests that did not end in time", |view| view.overdue),
        ];
        for (name, help, of) in rows {
            let name = format!("netaware_runs_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
            for view in &views {
                let labels = [("probe", view.probe.as_str()), ("task", view.task.as_str())];
                ConstCounter::new(of(view)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn latest(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let views = self.0.latest.views();
        let families = [
            ("bits_per_second", "bit/s", "Rate that an active task found last"),
            ("seconds", "s", "Delay that an active task found last"),
            ("ratio", "1", "Loss that an active task found last"),
        ];
        for (name, unit, help) in families {
            let name = format!("netaware_active_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            for view in &views {
                for figure in view.figures.iter().filter(|figure| figure.unit == unit) {
                    let labels = [
                        ("probe", view.probe.as_str()),
                        ("peer", view.peer.as_deref().unwrap_or("")),
                        ("task", view.task.as_str()),
                        ("figure", figure.name.as_str()),
                        ("version", figure.version.name()),
                        ("direction", figure.direction.name()),
                    ];
                    ConstGauge::new(figure.value).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        let marks: [(&str, &str, MarkOf); 2] = [
            (
                "failed",
                "1 where what an active task did last failed or broke off, over one IP version at least",
                |view| f64::from(u8::from(view.has_failed())),
            ),
            ("end_timestamp_seconds", "When what an active task did last ended", |view| {
                view.at.0 as f64 / 1e9
            }),
        ];
        for (name, help, of) in marks {
            let name = format!("netaware_active_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            for view in &views {
                let peer = view.peer.as_deref().unwrap_or("");
                let labels = [("probe", view.probe.as_str()), ("peer", peer), ("task", view.task.as_str())];
                ConstGauge::new(of(view)).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn delays(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let totals = self.0.totals.all();
        let rows: [(&str, &str, CountOf<Total>); 9] = [
            ("packets", "Packets seen at the first point, or sent", |total| total.packets),
            ("matched", "Seen at both", |total| total.matched),
            ("lost", "Seen at the first, not at the second while that was watching", |total| total.lost),
            ("unobserved", "Of which nothing can be said", |total| total.unobserved),
            ("late", "Came after they had been given up", |total| total.late),
            ("duplicates", "Further copies at the second point", |total| total.duplicates),
            ("reordered", "Came after a younger one", |total| total.reordered),
            ("below_bound", "Delays smaller than the clocks' bound", |total| total.below_bound),
            (
                "warned",
                "Rows with a warning, as that a capture lost packets; the API has its words",
                |total| total.warned,
            ),
        ];
        for (name, help, of) in rows {
            let name = format!("netaware_path_{name}");
            let mut family = encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
            for (pair, total) in &totals {
                ConstCounter::new(of(total)).encode(family.encode_family(&labels(pair))?)?;
            }
        }
        let mut family = encoder.encode_descriptor(
            "netaware_path_delay_seconds",
            "One-way delay",
            None,
            MetricType::Histogram,
        )?;
        for (pair, total) in &totals {
            let above = total.count.saturating_sub(total.buckets.iter().sum());
            let buckets: Vec<(f64, u64)> =
                EDGES.iter().copied().zip(total.buckets).chain([(f64::INFINITY, above)]).collect();
            let (spans, deltas) = total.sparse.spans();
            let native = NativeHistogram {
                schema: SCHEMA,
                zero_threshold: ZERO_THRESHOLD,
                zero_count: total.sparse.zero,
                negative: NativeHistogramBuckets { spans: &[], deltas: &[] },
                positive: NativeHistogramBuckets { spans: &spans, deltas: &deltas },
                created: None,
            };
            family.encode_family(&labels(pair))?.encode_histogram_with_native::<[(&str, &str); 0]>(
                total.sum,
                total.count,
                &buckets,
                None,
                native,
            )?;
        }
        let mut family = encoder.encode_descriptor(
            "netaware_path_clock_bound_seconds",
            "How far delays may be off because of the clocks",
            None,
            MetricType::Gauge,
        )?;
        for (pair, total) in &totals {
            if let Some(bound) = total.bound {
                ConstGauge::new(bound).encode(family.encode_family(&labels(pair))?)?;
            }
        }
        Ok(())
    }
}

fn labels((task, from, to, version, method): &Pair) -> [(&str, &str); 5] {
    [("task", task), ("from", from), ("to", to), ("version", version), ("method", method)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_who_prefers_them_only() {
        let wants = |accept: &str| wants_messages(std::iter::once(accept));
        let message =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        // As Prometheus 2.42 and 3 ask when they are told to scrape native histograms, and when
        // they are not.
        assert!(wants(&format!(
            "{message},application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        )));
        assert!(wants(&format!(
            "{message};q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
        )));
        assert!(!wants(
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
        ));
        assert!(!wants(&format!("text/plain,{message};q=0.1")));
        assert!(!wants(
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text"
        ));
        assert!(!wants(&format!("{message};q=0")));
        assert!(!wants(""));
    }
}
