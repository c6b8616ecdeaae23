//! `/metrics`: OpenMetrics text of the collector, its probes and the delays between points.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use netaware_io::clock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::problem;
use crate::held;
use crate::roster::ProbeView;
use crate::shared::Shared;
use crate::totals::{EDGES, Pair, Total};

/// As OpenMetrics asks.
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(shared)));
    let mut out = String::new();
    match text::encode(&mut out, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, KIND)], out).into_response(),
        Err(why) => problem(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
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
        self.probes(&mut encoder)?;
        self.runs(&mut encoder)?;
        self.delays(&mut encoder)
    }
}

type OfProbe<T> = fn(&ProbeView) -> T;
type CountOf<T> = fn(&T) -> u64;

impl Scrape {
    fn own(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (counts, desk) = (&self.0.counts, &self.0.desk);
        let rows = [
            ("connections", "Connections that came", counts.connections.load(Relaxed)),
            ("crowded", "Connections turned away because there were too many", counts.crowded.load(Relaxed)),
            ("refused", "Probes that were refused", counts.refused.load(Relaxed)),
            ("strangers", "Connections that spoke no known language", counts.strangers.load(Relaxed)),
            ("requests", "HTTP requests", counts.requests.load(Relaxed)),
            ("store_transactions", "Transactions that the store took", desk.transactions.load(Relaxed)),
            ("store_failures", "Transactions that the store refused", desk.failures.load(Relaxed)),
            ("ipfix_messages", "IPFIX messages of other exporters", self.0.foreign.messages.load(Relaxed)),
            ("ipfix_flows", "Flow records in them", self.0.foreign.flows.load(Relaxed)),
            (
                "ipfix_malformed",
                "IPFIX messages and records that could not be read",
                self.0.foreign.malformed.load(Relaxed),
            ),
            (
                "ipfix_missing",
                "IPFIX records that never came, by sequence numbers",
                self.0.foreign.missing.load(Relaxed),
            ),
        ];
        for (name, help, value) in rows {
            let name = format!("netaware_collector_{name}");
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(&name, help, None, counter.metric_type())?)?;
        }
        let store = ConstGauge::new(i64::from(held(&self.0.desk.trouble).is_none()));
        store.encode(encoder.encode_descriptor(
            "netaware_collector_store_up",
            "Whether the store takes",
            None,
            store.metric_type(),
        )?)
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
            ("memory_bytes", "Resident memory", |view| Some(view.memory as f64)),
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

    fn delays(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let totals = self.0.totals.all();
        let rows: [(&str, &str, CountOf<Total>); 8] = [
            ("packets", "Packets seen at the first point, or sent", |total| total.packets),
            ("matched", "Seen at both", |total| total.matched),
            ("lost", "Seen at the first, not at the second while that was watching", |total| total.lost),
            ("unobserved", "Of which nothing can be said", |total| total.unobserved),
            ("late", "Came after they had been given up", |total| total.late),
            ("duplicates", "Further copies at the second point", |total| total.duplicates),
            ("reordered", "Came after a younger one", |total| total.reordered),
            ("below_bound", "Delays smaller than the clocks' bound", |total| total.below_bound),
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
                EDGES.iter().copied().zip(total.buckets).chain([(f64::MAX, above)]).collect();
            family.encode_family(&labels(pair))?.encode_histogram::<[(&str, &str); 0]>(
                total.sum,
                total.count,
                &buckets,
                None,
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
