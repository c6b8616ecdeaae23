//! A fair queue: each flow waits behind its own packets only.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng 1996): a packet is stamped with the greater of
//! the virtual time and the virtual end of its flow's packet before it, and the least stamp is
//! served. Virtual time is the stamp of the packet in service. Flows are told apart exactly, so
//! none shares a queue by accident, as they may with a hash of few buckets.

use std::collections::VecDeque;

use super::server::Waiting;

#[derive(Debug, Clone, Default)]
pub(super) struct FairQueue {
    now: u64,
    /// Those that have packets, and those whose end is still ahead of virtual time.
    flows: Vec<Flow>,
    length: usize,
}

#[derive(Debug, Clone)]
struct Flow {
    key: u64,
    end: u64,
    bytes: u64,
    waiting: VecDeque<(u64, Waiting)>,
}

impl FairQueue {
    /// Packets and bytes of a flow that wait.
    pub(super) fn of_flow(&self, key: u64) -> (u64, u64) {
        let flow = self.flows.iter().find(|flow| flow.key == key);
        flow.map_or((0, 0), |flow| (flow.waiting.len() as u64, flow.bytes))
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, key: u64, waiting: Waiting) {
        let now = self.now;
        self.flows.retain(|flow| !flow.waiting.is_empty() || flow.end > now);
        let place = self.flows.iter().position(|flow| flow.key == key).unwrap_or_else(|| {
            self.flows.push(Flow { key, end: 0, bytes: 0, waiting: VecDeque::new() });
            self.flows.len() - 1
        });
        let flow = &mut self.flows[place];
        let stamp = flow.end.max(now);
        flow.end = stamp + waiting.bytes;
        flow.bytes += waiting.bytes;
        flow.waiting.push_back((stamp, waiting));
        self.length += 1;
    }

    /// Which one is served next: the least stamp, and of equal ones the first that came.
    fn next(&self) -> Option<usize> {
        let heads = self.flows.iter().enumerate();
        let heads =
            heads.filter_map(|(n, flow)| flow.waiting.front().map(|(stamp, head)| (*stamp, head.at, n)));
        heads.min().map(|(.., place)| place)
    }

    pub(super) fn head(&self) -> Option<&Waiting> {
        self.flows[self.next()?].waiting.front().map(|(_, head)| head)
    }

    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let place = self.next()?;
        let flow = &mut self.flows[place];
        let (stamp, waiting) = flow.waiting.pop_front()?;
        flow.bytes -= waiting.bytes;
        self.now = self.now.max(stamp);
        self.length -= 1;
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;

    use super::*;
    use crate::network::server::Carried;

    fn packet(at: u64, bytes: u64, tag: u32) -> Waiting {
        Waiting { at, bytes, packet: Carried { length: bytes as u32, tag, version: IpVersion::V4 } }
    }

    #[test]
    fn a_lone_packet_does_not_wait_behind_another_flows_hundred() {
        let mut queue = FairQueue::default();
        (0..100).for_each(|n| queue.push(1, packet(n, 1500, 1)));
        for _ in 0..10 {
            assert_eq!(queue.pop().map(|it| it.packet.tag), Some(1));
        }
        queue.push(2, packet(200, 100, 2));
        assert_eq!(queue.of_flow(1), (90, 135_000));
        let order: Vec<u32> = std::iter::from_fn(|| queue.pop()).take(3).map(|it| it.packet.tag).collect();
        assert!(order[..2].contains(&2), "{order:?}");
        assert_eq!(queue.len(), 88);
    }

    #[test]
    fn flows_share_by_bytes_whatever_the_size_of_their_packets() {
        let mut queue = FairQueue::default();
        (0..1000).for_each(|n| queue.push(1, packet(n, 1500, 1)));
        (0..10_000).for_each(|n| queue.push(2, packet(n, 150, 2)));
        let mut bytes = [0_u64; 3];
        for _ in 0..5000 {
            let Some(sent) = queue.pop() else { break };
            bytes[sent.packet.tag as usize] += sent.bytes;
        }
        assert!(bytes[1].abs_diff(bytes[2]) <= 1500, "{bytes:?}");
    }
}
