//! What a receiver knows about its stream: one place that every datagram passes, merged or single.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use netaware_record::{Histogram, HistogramShape, UdpReceiverEnd};
use netaware_stats::hist::{FixedHistogram, LengthHistogram};
use netaware_stats::sequence::{Arrival, SequenceReport, SequenceTracker};
use netaware_stats::variation::RtpJitter;
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;
use netaware_wire::datagram::{HEADER_LEN, Header, Kind};

use super::bursts::BurstMeter;
use super::delay::DelayVariation;
use super::gaps::GapRecorder;
use super::log::ArrivalLog;

/// When one or more datagrams arrived, and whether the stamp is good enough for gaps.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrivedAt {
    pub(super) at: Mono,
    /// Taken by the kernel where the datagram entered the host. The program's own reading has the
    /// scheduler's delay in it: gaps would show the host and not the path.
    pub(super) by_kernel: bool,
}

/// Follows one flow.
#[derive(Debug)]
pub(super) struct Account {
    flow: u32,
    /// First bytes of every data datagram of the flow: kind and flow compare in one step.
    prefix: [u8; 8],
    tracker: SequenceTracker,
    bytes: u64,
    foreign: u64,
    first: Option<Mono>,
    last: Mono,
    last_stamp: Option<Mono>,
    gaps: GapRecorder,
    /// Those that were asked for.
    bins: Option<FixedHistogram>,
    bursts: Option<BurstMeter>,
    log: Option<ArrivalLog>,
    delay: DelayVariation,
    jitter: RtpJitter,
    end: Option<SenderEnd>,
    /// Delay of the latest one that nothing had overtaken, by clocks that are not the same.
    in_order: Option<i64>,
    /// By how much more than that one the latest straggler was delayed, at most.
    lateness: Span,
}

/// What the sender said when it ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct SenderEnd {
    pub(super) heard_at: Mono,
    sent: u64,
}

impl Account {
    /// What the plan wants to know beside the counts is followed too.
    pub(super) fn new(flow: u32, plan: &UdpPlan) -> Self {
        let mut header = [0; HEADER_LEN];
        Header { kind: Kind::Data, flow, seq: 0, sent_at: 0 }.emit(&mut header);
        let mut prefix = [0; 8];
        prefix.copy_from_slice(&header[..8]);
        Self {
            flow,
            prefix,
            tracker: SequenceTracker::new(),
            bytes: 0,
            foreign: 0,
            first: None,
            last: Mono(0),
            last_stamp: None,
            gaps: GapRecorder::new(),
            bins: plan.histogram.as_ref().and_then(HistogramShape::empty),
            bursts: BurstMeter::new(plan.burst),
            log: ArrivalLog::new(plan),
            delay: DelayVariation::new(),
            jitter: RtpJitter::new(),
            end: None,
            in_order: None,
            lateness: Span::ZERO,
        }
    }

    /// One datagram.
    #[inline]
    pub(super) fn take(&mut self, datagram: &[u8], arrived: ArrivedAt) {
        let Some((seq, sent_at)) = self.data(datagram) else { return self.take_other(datagram, arrived.at) };
        let arrival = self.count(seq, datagram.len());
        self.note_time(arrived.at);
        let delay = self.delay.observe(arrived.at, sent_at);
        self.follow_order(arrival, delay);
        self.follow_jitter(arrival, delay);
        self.follow_gap(arrived);
        self.follow_details(seq, sent_at, arrived);
    }

    /// Datagrams of `segment` bytes that the kernel has merged; the last may be shorter. They share
    /// one arrival, so the delay of the first stands for all, and there are no gaps.
    #[cfg_attr(not(any(target_os = "linux", test)), expect(dead_code, reason = "nothing is merged there"))]
    #[inline]
    pub(super) fn take_merged(&mut self, merged: &[u8], segment: usize, arrived: ArrivedAt) {
        let mut sample = None;
        for datagram in merged.chunks(segment.max(1)) {
            match self.data(datagram) {
                Some((seq, sent_at)) => {
                    let arrival = self.count(seq, datagram.len());
                    self.follow_order(arrival, arrived.at.0.wrapping_sub(sent_at).cast_signed());
                    if let Some(log) = &mut self.log {
                        log.take(seq, sent_at, arrived.at);
                    }
                    sample.get_or_insert(sent_at);
                }
                None => self.take_other(datagram, arrived.at),
            }
        }
        if let Some(sent_at) = sample {
            self.note_time(arrived.at);
            self.delay.observe(arrived.at, sent_at);
        }
    }

    /// All that came of this flow, copies included.
    pub(super) fn datagrams(&self) -> u64 {
        let counts = self.tracker.counts();
        counts.received + counts.duplicates + counts.late
    }

    pub(super) fn first(&self) -> Option<Mono> {
        self.first
    }

    pub(super) fn last(&self) -> Mono {
        self.last
    }

    /// How long one that is still on its way may come after one that was sent later: where
    /// datagrams overtake each other, by as much as one was late that did, and half as much again.
    /// A queue that all of them wait in delays none behind another.
    pub(super) fn stragglers(&self) -> Span {
        self.lateness * 3 / 2
    }

    pub(super) fn end(&self) -> Option<SenderEnd> {
        self.end
    }

    /// Highest number that came, plus one.
    pub(super) fn highest(&self) -> u64 {
        self.tracker.counts().highest.map_or(0, |highest| highest.saturating_add(1))
    }

    /// Number and sending time of a data datagram of this flow.
    #[inline]
    fn data(&self, datagram: &[u8]) -> Option<(u64, u64)> {
        let header = datagram.first_chunk::<HEADER_LEN>()?;
        if header[..8] != self.prefix {
            return None;
        }
        let field = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        Some((field(8), field(16)))
    }

    #[inline]
    fn count(&mut self, seq: u64, length: usize) -> Arrival {
        let arrival = self.tracker.observe(seq);
        if matches!(arrival, Arrival::InOrder | Arrival::Ahead { .. } | Arrival::Reordered) {
            self.bytes += length as u64;
        }
        arrival
    }

    #[inline]
    fn note_time(&mut self, at: Mono) {
        self.first.get_or_insert(at);
        self.last = at;
    }

    /// Pairs in the order of arrival, which need not be that of the numbers (RFC 3550 §6.4.1); of
    /// copies only the first counts.
    #[inline]
    fn follow_jitter(&mut self, arrival: Arrival, delay: i64) {
        match arrival {
            Arrival::InOrder | Arrival::Ahead { .. } | Arrival::Reordered => self.jitter.observe(Some(delay)),
            Arrival::Duplicate | Arrival::Late | Arrival::Rejected => {}
        }
    }

    #[inline]
    fn follow_order(&mut self, arrival: Arrival, delay: i64) {
        match arrival {
            Arrival::InOrder | Arrival::Ahead { .. } => self.in_order = Some(delay),
            Arrival::Reordered => {
                let usual = self.in_order.unwrap_or(delay);
                self.lateness = self.lateness.max(Span(delay.saturating_sub(usual)));
            }
            Arrival::Duplicate | Arrival::Late | Arrival::Rejected => {}
        }
    }

    #[inline]
    fn follow_gap(&mut self, arrived: ArrivedAt) {
        let stamp = arrived.by_kernel.then_some(arrived.at);
        if let (Some(now), Some(before)) = (stamp, self.last_stamp) {
            self.gaps.observe(now - before);
            if let Some(bins) = &mut self.bins {
                bins.observe((now - before).0);
            }
        }
        self.last_stamp = stamp;
    }

    #[inline]
    fn follow_details(&mut self, seq: u64, sent_at: u64, arrived: ArrivedAt) {
        if let Some(bursts) = self.bursts.as_mut().filter(|_| arrived.by_kernel) {
            bursts.take(seq, sent_at, arrived.at);
        }
        if let Some(log) = &mut self.log {
            log.take(seq, sent_at, arrived.at);
        }
    }

    #[cold]
    fn take_other(&mut self, datagram: &[u8], at: Mono) {
        match Header::parse(datagram) {
            Ok(Header { kind: Kind::End, flow, seq, .. }) if flow == self.flow => {
                self.end.get_or_insert(SenderEnd { heard_at: at, sent: seq });
            }
            _ => self.foreign += 1,
        }
    }

    /// Everything but outcome, calls, drops and CPU.
    pub(super) fn close(self, plan: &UdpPlan) -> UdpReceiverEnd {
        let SequenceReport { counts, loss_runs, reorder_extents, .. } =
            self.tracker.finish(self.end.map(|end| end.sent));
        let highest = counts.highest.map_or(0, |highest| highest + 1);
        let sent = self.end.map(|end| end.sent);
        let (arrivals, unlogged) = self.log.map(ArrivalLog::finish).unwrap_or_default();
        let gap = plan.gap_ps.map(|gap| Span((gap / 1000) as i64));
        UdpReceiverEnd {
            elapsed: self.first.map_or(Span::ZERO, |first| self.last - first),
            received: counts.received,
            bytes: ByteCount(self.bytes),
            duplicates: Some(counts.duplicates),
            reordered: Some(counts.reordered),
            reorder_extent: Some(reorder_extents.longest()),
            reorder_extents: lengths(&reorder_extents),
            highest,
            loss_runs: lengths(&loss_runs),
            gaps: self.gaps.summary(gap),
            histogram: self.gaps.histogram(),
            bins: self.bins.as_ref().map(Histogram::from),
            bursts: self.bursts.and_then(|bursts| bursts.summary(sent, highest, plan.length)),
            arrivals,
            unlogged,
            delay_variation: self.delay.summary(),
            foreign: Some(self.foreign),
            jitter: self.jitter.value().map(|nanos| Span(nanos.round() as i64)),
            planned: plan.rate(),
            ..UdpReceiverEnd::default()
        }
    }

    /// Where the stream stands.
    pub(super) fn standing(&self) -> Standing {
        let counts = self.tracker.counts();
        Standing { bytes: self.bytes, packets: counts.received, missing: counts.missing }
    }

    /// Shows the meter where the stream stands.
    pub(super) fn publish(&self, board: &Board) {
        let counts = self.tracker.counts();
        board.bytes.store(self.bytes, Relaxed);
        board.packets.store(counts.received, Relaxed);
        board.missing.store(counts.missing, Relaxed);
        if let Some(first) = self.first {
            board.first.store(first.0.max(1), Release);
        }
        if let Some(end) = self.end {
            board.end.store(end.heard_at.0.max(1), Release);
        }
    }
}

/// Lengths beyond the histogram's limit: their number, all under the longest of them.
fn lengths(of: &LengthHistogram) -> Vec<(u64, u64)> {
    let mut pairs: Vec<(u64, u64)> = of.iter().collect();
    if of.beyond() > 0 {
        pairs.push((of.longest(), of.beyond()));
    }
    pairs
}

/// Written by the receiving thread after each batch, read by the meter.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Board {
    bytes: AtomicU64,
    packets: AtomicU64,
    missing: AtomicU64,
    /// Zero before the first datagram.
    first: AtomicU64,
    /// When the sender's end was heard of; zero before.
    end: AtomicU64,
    done: AtomicBool,
}

/// One reading of a [`Board`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) missing: u64,
}

impl Board {
    pub(super) fn read(&self) -> Standing {
        Standing {
            bytes: self.bytes.load(Relaxed),
            packets: self.packets.load(Relaxed),
            missing: self.missing.load(Relaxed),
        }
    }

    pub(super) fn first(&self) -> Option<Mono> {
        let at = self.first.load(Acquire);
        (at != 0).then_some(Mono(at))
    }

    pub(super) fn end(&self) -> Option<Mono> {
        let at = self.end.load(Acquire);
        (at != 0).then_some(Mono(at))
    }

    pub(super) fn finish(&self) {
        self.done.store(true, Release);
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.load(Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(kind: Kind, flow: u32, seq: u64) -> [u8; 100] {
        let mut bytes = [0; 100];
        Header { kind, flow, seq, sent_at: seq.wrapping_mul(10) }.emit(&mut bytes);
        bytes
    }

    fn at(nanos: u64) -> ArrivedAt {
        ArrivedAt { at: Mono(nanos), by_kernel: true }
    }

    fn plan() -> UdpPlan {
        super::super::tests::plan(100, None)
    }

    #[test]
    fn loss_copies_and_reordering_are_told_apart() {
        let mut account = Account::new(3, &plan());
        for (n, seq) in [0, 1, 4, 3, 3, 5].into_iter().enumerate() {
            account.take(&datagram(Kind::Data, 3, seq), at(2_000 + n as u64 * 10));
        }
        account.take(&datagram(Kind::End, 3, 8), at(9_000));
        let end = account.close(&plan());
        assert_eq!((end.received, end.bytes, end.highest), (5, ByteCount(500), 6));
        assert_eq!((end.duplicates, end.reordered, end.reorder_extent), (Some(1), Some(1), Some(1)));
        // Number 2 in the middle, 6 and 7 at the end.
        assert_eq!(end.loss_runs, [(1, 1), (2, 1)]);
        assert_eq!((end.elapsed, end.gaps.unwrap().count), (Span(50), 5));
    }

    #[test]
    fn what_is_not_of_the_flow_is_counted_and_changes_nothing() {
        let mut account = Account::new(3, &plan());
        account.take(&datagram(Kind::Data, 4, 0), at(1));
        account.take(&datagram(Kind::End, 4, 0), at(1));
        account.take(&datagram(Kind::Knock, 3, 0), at(1));
        account.take(b"Na", at(1));
        account.take(&[], at(1));
        account.take_merged(&[7; 200], 50, at(1));
        assert!(account.end().is_none() && account.first().is_none());
        let end = account.close(&plan());
        assert_eq!((end.foreign, end.received, end.highest), (Some(9), 0, 0));
        assert!(end.gaps.is_none() && end.delay_variation.is_none());
    }

    #[test]
    fn merged_datagrams_count_one_by_one_and_may_end_with_the_end() {
        let mut account = Account::new(9, &plan());
        let mut merged = Vec::new();
        for seq in 0..4 {
            merged.extend(datagram(Kind::Data, 9, seq));
        }
        merged.extend(&datagram(Kind::End, 9, 4)[..HEADER_LEN]);
        account.take_merged(&merged, 100, at(5));
        assert!(account.end().is_some());
        let end = account.close(&plan());
        assert_eq!((end.received, end.bytes, end.foreign), (4, ByteCount(400), Some(0)));
        assert_eq!((end.delay_variation.unwrap().count, end.gaps), (1, None));
    }

    #[test]
    fn a_queue_that_all_wait_in_does_not_make_a_straggler_late() {
        // The queue grows by 10 ms from each to the next, sent 10 ns apart; one is overtaken by
        // three and a half of these.
        let ms = |n: u64| n * 1_000_000;
        let account = |merged: bool| {
            let mut account = Account::new(3, &plan());
            let arrivals = [(0, 0), (1, 10), (3, 30), (4, 40), (5, 50), (2, 55), (60, 600)];
            for (seq, at_ms) in arrivals {
                let datagram = datagram(Kind::Data, 3, seq);
                if merged {
                    account.take_merged(&datagram, 100, at(ms(at_ms)));
                } else {
                    account.take(&datagram, at(ms(at_ms)));
                }
            }
            account
        };
        for merged in [false, true] {
            let stragglers = account(merged).stragglers();
            let late = Span(5_000_000 + 30);
            assert_eq!(stragglers, late * 3 / 2, "merged: {merged}");
        }
        let mut in_order = Account::new(3, &plan());
        (0..50).for_each(|seq| in_order.take(&datagram(Kind::Data, 3, seq), at(ms(seq * 20))));
        assert_eq!(in_order.stragglers(), Span::ZERO);
    }

    #[test]
    fn an_absurd_number_does_not_break_the_count() {
        let mut account = Account::new(0, &plan());
        for seq in [0, u64::MAX, 1 << 62, 1] {
            account.take(&datagram(Kind::Data, 0, seq), at(seq % 7));
        }
        account.take(&datagram(Kind::End, 0, u64::MAX), at(8));
        assert!(account.close(&plan()).received >= 2);
    }
}
