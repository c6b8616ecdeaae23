//! One way to end a measurement early, shared by everybody who takes part in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cloned freely; raised once, never lowered. Every loop in this crate looks at it at least every 50 ms.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everybody to wind down.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether to wind down.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
