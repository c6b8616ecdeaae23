//! One way to end a measurement early, shared by everybody who takes part in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cloned freely; raised once, never lowered. Every loop in this crate looks at it at least every
/// 50 ms.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    raised: AtomicBool,
    parent: Option<StopFlag>,
}

impl StopFlag {
    /// Not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag for a part of the work: raised with this one, or alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(Arc::new(Inner { raised: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Asks everybody to wind down.
    pub fn raise(&self) {
        self.0.raised.store(true, Ordering::Release);
    }

    /// Whether to wind down.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::Acquire) || self.0.parent.as_ref().is_some_and(Self::is_raised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stops_with_the_whole_but_not_the_other_way_round() {
        let whole = StopFlag::new();
        let part = whole.child();
        let other = whole.child();
        part.raise();
        assert!(part.is_raised() && !other.is_raised() && !whole.is_raised());
        whole.raise();
        assert!(other.is_raised());
    }
}
