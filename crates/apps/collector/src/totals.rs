//! Delays between points since this process started, added up for /metrics.

pub(crate) mod sparse;

use std::collections::BTreeMap;
use std::sync::Mutex;

use netaware_record::IpVersion;
use netaware_record::passive::{DelayRow, Row, TaskRow};

use self::sparse::Sparse;
use crate::held;

/// Upper edges of the classic buckets, seconds: three a decade from 10 us to 10 s.
pub(crate) const EDGES: [f64; 19] = [
    1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0,
];

/// Task, from, to, IP version, method.
pub(crate) type Pair = (String, String, String, &'static str, String);

/// Of one pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Total {
    pub(crate) packets: u64,
    pub(crate) matched: u64,
    pub(crate) lost: u64,
    pub(crate) unobserved: u64,
    pub(crate) late: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) below_bound: u64,
    /// Rows that carry a warning.
    pub(crate) warned: u64,
    pub(crate) bound: Option<f64>,
    pub(crate) count: u64,
    pub(crate) sum: f64,
    /// One for each of [`EDGES`], not cumulative; what is longer still is in `count` only.
    pub(crate) buckets: [u64; EDGES.len()],
    /// The same, finer, for those who can read it.
    pub(crate) sparse: Sparse,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Totals(Mutex<BTreeMap<Pair, Total>>);

/// More pairs than a fleet has; what comes beyond is left out of /metrics and is in the store.
const MOST: usize = 20_000;

impl Totals {
    pub(crate) fn add(&self, rows: &[TaskRow]) {
        let mut totals = held(&self.0);
        for row in rows {
            let Row::Delay(delay) = &row.row else { continue };
            let version = match delay.version {
                None => "both",
                Some(IpVersion::V4) => "4",
                Some(IpVersion::V6) => "6",
            };
            let pair =
                (row.task.clone(), delay.from.clone(), delay.to.clone(), version, delay.method.clone());
            if totals.len() < MOST || totals.contains_key(&pair) {
                totals.entry(pair).or_default().add(delay);
            }
        }
    }

    pub(crate) fn all(&self) -> BTreeMap<Pair, Total> {
        held(&self.0).clone()
    }
}

impl Total {
    fn add(&mut self, row: &DelayRow) {
        self.packets += row.packets;
        self.matched += row.matched;
        self.lost += row.lost;
        self.unobserved += row.unobserved;
        self.late += row.late;
        self.duplicates += row.duplicates;
        self.reordered += row.reordered;
        self.below_bound += row.below_bound;
        self.warned += u64::from(!row.warnings.is_empty());
        self.bound = row.clock_bound.map(|bound| bound.0 as f64 / 1e9);
        self.count += row.delay.count;
        self.sum += row.delay.sum_ns as f64 / 1e9;
        self.sparse.add(&row.delay);
        // What only clocks can make of a delay is below every edge.
        self.buckets[0] += row.delay.histogram.underflow;
        for (edge, count) in &row.delay.histogram.bins {
            // By the lower edge: three digits are finer than these buckets.
            let seconds = *edge as f64 / 1e9;
            let place = EDGES.partition_point(|upper| *upper < seconds);
            if let Some(bucket) = self.buckets.get_mut(place) {
                *bucket += count;
            }
        }
    }
}
