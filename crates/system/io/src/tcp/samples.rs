//! TCP_INFO of each stream over time, in bounded memory.
//!
//! One sample per stream and slice. When a stream has as many as may be kept, every second one goes
//! and from then on only every second slice is kept: whatever the length of a transfer, the samples
//! stand at even distances and number between half the bound and the bound.

use netaware_record::StreamSample;
use netaware_units::{ByteCount, Span};
use netaware_wire::control::{MAX_SAMPLES, MAX_SAMPLES_IN_ALL};

use crate::tcp_info::{TcpInfo, known};

/// The samples of all streams of a transfer.
#[derive(Debug)]
pub(super) struct Samples {
    /// What was acknowledged before the transfer, stream by stream.
    before: Vec<ByteCount>,
    of: Vec<Vec<StreamSample>>,
    most: usize,
    /// Slices from sample to sample.
    every: u64,
    slices: u64,
}

impl Samples {
    /// For as many streams as `before` names.
    pub(super) fn new(before: Vec<ByteCount>) -> Self {
        let streams = before.len().max(1);
        let most = MAX_SAMPLES.min(MAX_SAMPLES_IN_ALL / streams).max(2);
        Self { of: vec![Vec::new(); before.len()], before, most, every: 1, slices: 0 }
    }

    /// A slice has ended at `at`; `infos` has one entry for each stream, or is ignored.
    pub(super) fn take(&mut self, at: Span, infos: &[TcpInfo]) {
        self.slices += 1;
        if infos.len() != self.of.len() || !self.slices.is_multiple_of(self.every) {
            return;
        }
        for ((samples, info), before) in self.of.iter_mut().zip(infos).zip(&self.before) {
            samples.push(StreamSample {
                at,
                acked: Some(info.acked - *before),
                cwnd: known(info.cwnd),
                rtt: known(info.rtt),
                retransmits: Some(info.retransmits),
            });
        }
        if self.of.first().is_some_and(|samples| samples.len() >= self.most) {
            self.thin_out();
        }
    }

    /// Those of each stream, in order.
    pub(super) fn into_streams(self) -> Vec<Vec<StreamSample>> {
        self.of
    }

    /// Keeps the second of each two, whose slices are multiples of the new distance.
    fn thin_out(&mut self) {
        for samples in &mut self.of {
            *samples = samples.iter().skip(1).step_by(2).copied().collect();
        }
        self.every *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(slices: i64, streams: usize) -> Vec<Vec<StreamSample>> {
        let mut samples = Samples::new(vec![ByteCount(37); streams]);
        for slice in 1..=slices {
            let info = TcpInfo { acked: ByteCount(37 + slice.cast_unsigned()), ..TcpInfo::default() };
            samples.take(Span(slice), &vec![info; streams]);
        }
        samples.into_streams()
    }

    #[test]
    fn samples_stay_within_their_bound_at_even_distances() {
        for (slices, streams, most) in [(999, 1, 1000), (1000, 1, 1000), (123_457, 3, 1000), (5000, 512, 16)]
        {
            let samples = after(slices, streams);
            assert_eq!(samples.len(), streams);
            for of_one in &samples {
                assert!(
                    of_one.len() <= most && of_one.len() >= most.min(slices as usize) / 2,
                    "{}",
                    of_one.len()
                );
                let every = of_one[0].at;
                for (n, sample) in of_one.iter().enumerate() {
                    assert_eq!(sample.at, every * (n as i64 + 1), "{slices} slices, {streams} streams");
                    assert_eq!(sample.acked, Some(ByteCount(sample.at.0.cast_unsigned())));
                    assert_eq!((sample.rtt, sample.cwnd), (None, None), "the kernel told of neither");
                }
                assert!(of_one.last().unwrap().at + every > Span(slices));
            }
        }
    }

    #[test]
    fn a_slice_without_every_stream_is_left_out() {
        let mut samples = Samples::new(vec![ByteCount(0); 2]);
        samples.take(Span(1), &[TcpInfo::default()]);
        assert_eq!(samples.into_streams(), [Vec::new(), Vec::new()]);
    }
}
