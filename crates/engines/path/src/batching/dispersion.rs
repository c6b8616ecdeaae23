//! How fast a train came: bytes over time, between two arrivals that can be trusted.
//!
//! The rate of a train is the mean over its gaps turned into a rate at the end; the mean of the
//! rates of its gaps would read high (Jacobsson et al., IFAC 2005).

use super::{Batching, starts};
use crate::Arrival;

/// From the end of one packet to the end of a later one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dispersion {
    /// Packets that came in between, the later one with them.
    pub packets: u32,
    /// How long that took, ns; above zero.
    pub span: f64,
}

impl Dispersion {
    /// Of arrivals in their order: from first to last, or, where they come in batches, from the
    /// second batch start to the last but one, if there are so many: the last batch may have been
    /// handed over by the timer where the others were full. `None` where there are not two of
    /// those.
    pub fn of(arrivals: &[Arrival], batching: Option<&Batching>) -> Option<Self> {
        if batching.is_none() {
            return Self::between(arrivals, 0, arrivals.len().checked_sub(1)?);
        }
        let starts = starts(arrivals);
        let cut = usize::from(starts.len() > 3);
        Self::between(arrivals, *starts.first()?, *starts.get(starts.len().checked_sub(1 + cut)?)?)
    }

    /// From one place to another.
    pub fn between(arrivals: &[Arrival], from: usize, to: usize) -> Option<Self> {
        let span = arrivals.get(to)?.at.saturating_sub(arrivals.get(from)?.at);
        let packets = u32::try_from(to.checked_sub(from)?).ok()?;
        (packets > 0 && span > 0).then_some(Self { packets, span: span as f64 })
    }

    /// bit/s, of packets of `length` bytes.
    pub fn rate(&self, length: u32) -> f64 {
        f64::from(self.packets) * f64::from(length) * 8.0 * 1e9 / self.span
    }

    /// ns per packet.
    pub fn gap(&self) -> f64 {
        self.span / f64::from(self.packets)
    }
}
