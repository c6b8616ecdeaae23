//! What the two hosts can do as an instrument, in one direction.

use netaware_units::Span;

/// Facts about sender and receiver that bound every figure. Measured before (`netaware host`, the
/// session's set-up), and the same for all methods.
#[derive(Debug, Clone, PartialEq)]
pub struct Instrument {
    /// Largest IP packet of the path, bytes.
    pub largest: u32,
    /// Smallest probe packet worth sending, bytes.
    pub smallest: u32,
    /// Round trip without load: what one question and its answer take at least.
    pub rtt: Span,
    /// Shortest distance at which the sender starts two packets; what leaves back to back leaves
    /// so.
    pub send_gap: Span,
    /// Standard error of the time of a send, as stamped.
    pub send_error: Span,
    /// Standard error of the time of an arrival, as stamped, coalescing apart.
    pub receive_error: Span,
    /// Most bytes of one train: what the path's queues and the receiver's buffers took without loss
    /// so far.
    pub largest_burst: u64,
    /// Share of the capacity that may be used, averaged over the measurement, 0..=1 (`--max-load`).
    pub max_load: f64,
    /// All of the measurement must be over by then, from its begin.
    pub time_limit: Span,
    /// The rate at which first trains came, bit/s, where some were sent before the method.
    pub carried: Option<f64>,
}

impl Instrument {
    /// Standard error of the time that a packet took, by its two stamps, ns.
    pub fn stamp_error(&self) -> f64 {
        let [sent, received] =
            [self.send_error, self.receive_error].map(|error| error.or_zero().nanos() as f64);
        sent.hypot(received)
    }

    /// The longest time that a method may take that usually needs no more than `usual`, sends so
    /// many packets of the largest size, and has so many volleys, one after the other. On slow and
    /// on long paths that is more, but never more than the time limit.
    pub fn longest(&self, usual: Span, packets: u32, volleys: u32) -> Span {
        let load = if self.max_load.is_finite() { self.max_load.clamp(0.001, 1.0) } else { 0.1 };
        let bits = f64::from(packets) * f64::from(self.largest) * 8.0;
        let sending =
            self.carried.map_or(Span::ZERO, |rate| Span::from_secs_f64(bits / (load * rate.max(1.0))));
        let volleys = match self.carried {
            Some(_) => self.rtt.or_zero() * i64::from(volleys) * 2,
            None => Span::ZERO,
        };
        usual.max(sending + volleys).min(self.time_limit.or_zero())
    }
}
