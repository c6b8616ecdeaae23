//! Whether a stream that does not listen to losses has come to overfill its path.
//!
//! Nobody typed its rate: it was found by what the path carried then, and the path may carry far
//! less by now. **Measures** windows of a second, or of two round trips where these are longer, by
//! what the receiver got and missed. **Assumes** that a path which carries the stream loses less
//! than half of it for good. **Biased**: an outage fills nothing, so a window in which nothing came
//! begins the count anew; bursts of losses of less than three windows are not noticed, and in a
//! shorter stream nothing is.

use netaware_record::ReceiverTick;
use netaware_units::Span;

/// See the module.
#[derive(Debug)]
pub(super) struct Crowding {
    window: Span,
    lasted: Span,
    came: u64,
    lost: i64,
    /// Windows in a row in which most was lost.
    in_a_row: u32,
}

impl Crowding {
    pub(super) fn over(round_trip: Span) -> Self {
        Self { window: WINDOW.max(round_trip * 2), lasted: Span::ZERO, came: 0, lost: 0, in_a_row: 0 }
    }

    /// Takes in what the receiver tells. Returns whether it is time to end the stream.
    pub(super) fn observe(&mut self, tick: &ReceiverTick) -> bool {
        self.lasted += tick.length.or_zero();
        self.came += tick.packets;
        self.lost += tick.lost;
        if self.lasted >= self.window {
            let is_crowded = self.came > 0 && self.lost > i64::try_from(self.came).unwrap_or(i64::MAX);
            self.in_a_row = if is_crowded { self.in_a_row + 1 } else { 0 };
            (self.lasted, self.came, self.lost) = (Span::ZERO, 0, 0);
        }
        self.in_a_row >= ENOUGH
    }
}

/// What is said of a stream that was ended for this.
pub(crate) const GAVE_WAY: &str = "more than half of it was lost for three seconds in a row, at a rate that nobody typed: the \
                                   path, or the receiving host, takes less of UDP than what the rate was found by; -b sets one";

const WINDOW: Span = Span::from_secs(1);
const ENOUGH: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// When a stream ends of which this came and was lost in each slice of 0.1 s.
    fn ended_at(slices: impl IntoIterator<Item = (u64, i64)>) -> Option<usize> {
        let mut crowding = Crowding::over(Span::from_millis(20));
        slices.into_iter().position(|(packets, lost)| {
            let length = Span::from_millis(100);
            crowding.observe(&ReceiverTick { length, packets, lost, ..ReceiverTick::default() })
        })
    }

    /// `udp` at the 1 Mbit/s that it had found filled a path of 20 kbit/s for 50 s.
    #[test]
    fn a_stream_whose_rate_nobody_typed_ends_where_the_path_carries_far_less() {
        let falls = (0..100).map(|n| if n < 20 { (86, 0) } else { (u64::from(n % 5 == 0), 80) });
        assert_eq!(ended_at(falls), Some(49), "three seconds behind the fall");
        let is_lossy = (0..100).map(|_| (50, 36));
        assert_eq!(ended_at(is_lossy), None);
        let has_outages = (0..100).map(|n| if n % 40 < 25 { (86, 0) } else { (0, 0) });
        assert_eq!(ended_at(has_outages), None);
        // What an outage took is told when something comes again.
        let is_out_once =
            (0..100).map(|n| if (20..60).contains(&n) { (0, 0) } else { (86, i64::from(n == 60) * 3440) });
        assert_eq!(ended_at(is_out_once), None);
    }
}
