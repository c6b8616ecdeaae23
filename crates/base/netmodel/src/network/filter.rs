//! Middleboxes that treat some packets apart: firewalls, limits per protocol, boxes that reset.

use std::collections::BTreeMap;

use netaware_record::IpVersion;

use super::bucket::TokenBucket;
use crate::scenario::{Bucket, BucketKind, Filter, FilterAction, bounds};
use crate::{DropCause, Kind};

/// One filter and what it has seen.
#[derive(Debug, Clone)]
pub(super) struct FilterState {
    filter: Filter,
    limit: Option<TokenBucket>,
    /// Bytes of each flow that passed, where that decides.
    passed: BTreeMap<u64, u64>,
}

/// What a filter looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) version: IpVersion,
    pub(super) kind: Kind,
    /// IP bytes.
    pub(super) length: u32,
    pub(super) flow: u64,
}

impl FilterState {
    pub(super) fn new(filter: &Filter) -> Self {
        let limit = match filter.action {
            FilterAction::Limit { rate, burst } => {
                let kind = BucketKind::Policer;
                Some(TokenBucket::new(&Bucket { rate, burst, initial: burst, kind }))
            }
            _ => None,
        };
        Self { filter: filter.clone(), limit, passed: BTreeMap::new() }
    }

    /// Why the packet ends here, if it does.
    pub(super) fn judge(&mut self, at: u64, seen: Seen) -> Option<DropCause> {
        if !self.looks_at(seen) {
            return None;
        }
        if self.filter.after > 0 && !self.is_over(seen) {
            return None;
        }
        match self.filter.action {
            FilterAction::Drop => Some(DropCause::Filter),
            // A host that was reset says so to the other end when that goes on.
            FilterAction::Reset => (!seen.kind.reset).then_some(DropCause::Reset),
            FilterAction::Limit { .. } => {
                let limit = self.limit.as_mut()?;
                let bytes = u64::from(seen.length);
                if limit.earliest(bytes) > at {
                    return Some(DropCause::Filter);
                }
                limit.take(at, bytes);
                None
            }
        }
    }

    fn looks_at(&self, seen: Seen) -> bool {
        let Filter { version, protocol, port, longer_than, ecn, .. } = &self.filter;
        version.is_none_or(|version| version == seen.version)
            && protocol.is_none_or(|protocol| protocol == seen.kind.protocol)
            && port.is_none_or(|port| seen.kind.ports.contains(&port))
            && seen.length > *longer_than
            && (!ecn || seen.kind.ecn)
    }

    /// Whether the flow has had what passes before this acts. Flows above the bound start again.
    fn is_over(&mut self, seen: Seen) -> bool {
        if self.passed.len() >= bounds::FILTERED_FLOWS && !self.passed.contains_key(&seen.flow) {
            self.passed.clear();
        }
        let passed = self.passed.entry(seen.flow).or_default();
        let is_over = *passed >= self.filter.after;
        if !is_over {
            *passed += u64::from(seen.length);
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use netaware_units::BitRate;

    use super::*;
    use crate::scenario::Protocol;

    const ANY: Filter = Filter {
        version: None,
        protocol: None,
        port: None,
        longer_than: 0,
        ecn: false,
        after: 0,
        action: FilterAction::Drop,
    };

    fn seen(protocol: Protocol, length: u32) -> Seen {
        let kind = Kind { protocol, ports: [40_000, 443], ecn: false, reset: false };
        Seen { version: IpVersion::V6, kind, length, flow: 1 }
    }

    #[test]
    fn a_filter_looks_at_nothing_but_what_it_names() {
        let udp = seen(Protocol::Udp, 1400);
        let rows = [
            (ANY, true),
            (Filter { version: Some(IpVersion::V4), ..ANY }, false),
            (Filter { version: Some(IpVersion::V6), ..ANY }, true),
            (Filter { protocol: Some(Protocol::Tcp), ..ANY }, false),
            (Filter { protocol: Some(Protocol::Udp), ..ANY }, true),
            (Filter { port: Some(443), ..ANY }, true),
            (Filter { port: Some(444), ..ANY }, false),
            (Filter { longer_than: 1399, ..ANY }, true),
            (Filter { longer_than: 1400, ..ANY }, false),
            (Filter { ecn: true, ..ANY }, false),
        ];
        for (row, (filter, drops)) in rows.into_iter().enumerate() {
            let found = FilterState::new(&filter).judge(0, udp);
            assert_eq!(found, drops.then_some(DropCause::Filter), "row {row}");
        }
    }

    #[test]
    fn each_flow_passes_until_it_has_had_its_bytes() {
        let mut filter = FilterState::new(&Filter { after: 3000, action: FilterAction::Reset, ..ANY });
        let of_flow = |flow| Seen { flow, ..seen(Protocol::Tcp, 1500) };
        let found: Vec<bool> = (0..4).map(|_| filter.judge(0, of_flow(1)).is_some()).collect();
        assert_eq!(found, [false, false, true, true]);
        assert_eq!(filter.judge(0, of_flow(2)), None);
        assert_eq!(filter.judge(0, of_flow(1)), Some(DropCause::Reset));
        // What an end says that was reset goes through: the other end may have heard of nothing
        // yet.
        let mut says = of_flow(1);
        says.kind.reset = true;
        assert_eq!(filter.judge(0, says), None);
    }

    #[test]
    fn a_limit_passes_its_rate_and_no_more() {
        let action = FilterAction::Limit { rate: BitRate(2_000_000), burst: 15_000 };
        let mut filter = FilterState::new(&Filter { action, ..ANY });
        // 10 Mbit/s for 10 s.
        let passed =
            (0..8333_u64).filter(|n| filter.judge(n * 1_200_000_000, seen(Protocol::Udp, 1500)).is_none());
        let (passed, exact) = (passed.count() as f64, (2e6 * 10.0 + 15_000.0 * 8.0) / 12_000.0);
        assert!((passed / exact - 1.0).abs() < 0.002, "{passed} instead of {exact}");
    }
}
