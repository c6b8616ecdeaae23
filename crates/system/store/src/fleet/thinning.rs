//! When figures get coarser, and when they go.

use netaware_units::Span;

/// Ages from which rows are kept only as sums per minute and per hour, and from which they are
/// deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ages {
    /// Rows shorter than a minute become rows of a minute at this age.
    pub to_minutes: Span,
    /// Rows shorter than an hour become rows of an hour at this age.
    pub to_hours: Span,
    /// Rows of any length go.
    pub delete: Span,
    /// What cannot be added up (marking blocks, capacities, records of active tasks) and the
    /// reports of probes about themselves go.
    pub delete_single: Span,
}

impl Default for Ages {
    /// A week by the second, three months by the minute, five years by the hour.
    fn default() -> Self {
        Self { to_minutes: days(7), to_hours: days(90), delete: days(5 * 365), delete_single: days(90) }
    }
}

impl Ages {
    /// The steps, fine to coarse: age, and the length that rows have from then on.
    pub(super) fn steps(&self) -> [(Span, Span); 2] {
        [(self.to_minutes, MINUTE), (self.to_hours, HOUR)]
    }
}

/// Rows of the first coarser kind.
pub(super) const MINUTE: Span = Span::from_secs(60);

/// Rows of the second.
pub(super) const HOUR: Span = Span::from_secs(3600);

const fn days(n: i64) -> Span {
    Span::from_secs(n * 86_400)
}
