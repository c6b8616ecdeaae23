//! One transmitter with its queue.
//!
//! A plain queue is Lindley's recursion: the departure of a packet is known when it arrives, and a
//! ring of departures tells how much still waits. Where the choice can only be made at the head of
//! the queue (CoDel, aggregation) packets really wait in `waiting`.

use std::collections::VecDeque;

use super::bucket::TokenBucket;
use super::codel::{CoDelState, Verdict};
use super::fair::FairQueue;
use super::pace::{FAR, Pace, PerByte, ps};
use crate::scenario::{Link, QueueLimit, version_index};
use netaware_record::IpVersion;

/// A packet on its way, as queues hold it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carried {
    /// IP bytes.
    pub(crate) length: u32,
    /// Slot of an offered packet, or source and flow of another.
    pub(crate) tag: u32,
    pub(crate) version: IpVersion,
}

/// In `Carried::tag`: an offered packet.
pub(super) const OFFERED: u32 = 1 << 31;

impl Carried {
    pub(super) const fn slot(self) -> Option<u32> {
        if self.tag & OFFERED == 0 { None } else { Some(self.tag & !OFFERED) }
    }

    pub(super) const fn wire(self) -> usize {
        version_index(self.version)
    }
}

/// A packet in a queue whose order of service is decided at its head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) at: u64,
    pub(super) bytes: u64,
    pub(super) packet: Carried,
}

#[derive(Debug, Clone)]
pub(super) struct Server {
    /// When the transmitter falls idle.
    free: u64,
    pace: Pace,
    limit: QueueLimit,
    /// Begin of transmission and bytes of those that wait by arithmetic.
    starts: VecDeque<(u64, u32)>,
    bytes: u64,
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) offered_waiting: usize,
    codel: Option<CoDelState>,
    /// In place of `waiting`.
    fair: Option<FairQueue>,
}

/// When a packet is on the link.
#[derive(Debug, Clone, Copy)]
pub(super) struct Service {
    pub(super) start: u64,
    pub(super) depart: u64,
}

impl Server {
    pub(super) fn new(link: &Link, mtu: u32) -> Self {
        let codel = link.queue.codel.map(|codel| CoDelState::new(&codel, u64::from(mtu + link.overhead)));
        let fair = link.queue.fair.then(FairQueue::default);
        Self { fair, ..Self::with_limit(link.queue.limit, codel) }
    }

    /// With a queue that never fills.
    pub(super) fn endless() -> Self {
        Self::with_limit(QueueLimit::Packets(u64::MAX), None)
    }

    fn with_limit(limit: QueueLimit, codel: Option<CoDelState>) -> Self {
        let (starts, waiting) = (VecDeque::new(), VecDeque::new());
        Self {
            free: 0,
            pace: Pace::default(),
            limit,
            starts,
            bytes: 0,
            waiting,
            offered_waiting: 0,
            codel,
            fair: None,
        }
    }

    /// When a packet of `bytes` that is there at `at` would start.
    #[inline]
    pub(super) fn start_for(&self, at: u64, bytes: u64, shaper: Option<&TokenBucket>) -> u64 {
        let start = at.max(self.free);
        shaper.map_or(start, |bucket| start.max(bucket.earliest(bytes)))
    }

    /// Packets that really wait.
    pub(super) fn waits(&self) -> usize {
        self.waiting.len() + self.fair.as_ref().map_or(0, FairQueue::len)
    }

    /// Whether a packet that comes to a fair queue finds room in the share of its flow; `None` if
    /// the queue is not fair.
    pub(super) fn admits_fairly(&self, at: u64, flow: u64, bytes: u64) -> Option<bool> {
        let fair = self.fair.as_ref()?;
        if fair.len() == 0 && self.free <= at {
            return Some(true);
        }
        let (packets, waiting) = fair.of_flow(flow);
        Some(match self.limit {
            QueueLimit::Bytes(limit) => waiting + bytes <= limit,
            QueueLimit::Packets(limit) => packets < limit,
            QueueLimit::Time(_) => true,
        })
    }

    /// Whether a packet that comes at `at` and would start at `start` finds room.
    #[inline]
    pub(super) fn admits(&mut self, at: u64, start: u64, bytes: u64) -> bool {
        while self.starts.front().is_some_and(|(start, _)| *start <= at) {
            self.bytes -= self.starts.pop_front().map_or(0, |(_, bytes)| u64::from(bytes));
        }
        if start <= at && self.waiting.is_empty() {
            return true;
        }
        match self.limit {
            QueueLimit::Bytes(limit) => self.bytes + bytes <= limit,
            QueueLimit::Packets(limit) => ((self.starts.len() + self.waiting.len()) as u64) < limit,
            QueueLimit::Time(limit) => start - at <= ps(limit),
        }
    }

    /// Takes the transmitter from `start` on.
    #[inline]
    pub(super) fn transmit(&mut self, start: u64, bytes: u64, per_byte: PerByte) -> Service {
        self.free = start.saturating_add(self.pace.take(per_byte, bytes)).min(FAR);
        Service { start, depart: self.free }
    }

    /// Remembers that a packet waits until `start`. Needless where the queue has no limit in bytes
    /// or packets.
    #[inline]
    pub(super) fn remember(&mut self, at: u64, start: u64, bytes: u64) {
        let counted = match self.limit {
            QueueLimit::Bytes(_) => true,
            QueueLimit::Packets(limit) => limit != u64::MAX,
            QueueLimit::Time(_) => false,
        };
        if start > at && counted {
            self.starts.push_back((start, bytes as u32));
            self.bytes += bytes;
        }
    }

    /// Keeps the transmitter busy for `span` without a packet.
    pub(super) fn hold(&mut self, span: u64) {
        self.free = (self.free + span).min(FAR);
    }

    /// `flow` matters to a fair queue only.
    pub(super) fn enqueue(&mut self, flow: u64, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.offered_waiting += usize::from(waiting.packet.slot().is_some());
        match &mut self.fair {
            Some(fair) => fair.push(flow, waiting),
            None => self.waiting.push_back(waiting),
        }
    }

    pub(super) fn dequeue(&mut self) -> Option<Waiting> {
        let waiting = match &mut self.fair {
            Some(fair) => fair.pop()?,
            None => self.waiting.pop_front()?,
        };
        self.bytes -= waiting.bytes;
        self.offered_waiting -= usize::from(waiting.packet.slot().is_some());
        Some(waiting)
    }

    /// When the head of `waiting` would be served; `u64::MAX` for never.
    #[inline]
    pub(super) fn next_start(&self, shaper: Option<&TokenBucket>) -> u64 {
        let head = self.fair.as_ref().map_or(self.waiting.front(), FairQueue::head);
        head.map_or(u64::MAX, |head| self.start_for(head.at, head.bytes, shaper))
    }

    /// What CoDel says of a packet just taken from the head.
    pub(super) fn judge(&mut self, start: u64, waiting: &Waiting) -> Verdict {
        let behind = self.bytes;
        self.codel.as_mut().map_or(Verdict::Send, |codel| codel.dequeue(start, start - waiting.at, behind))
    }
}
