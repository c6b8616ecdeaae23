//! Warnings about strangers, so many a minute: whoever knocks a million times must not fill the
//! disk with our log.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use netaware_units::{Mono, Span};

/// Decides which warnings are written.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    began_at: Option<Mono>,
    written: u32,
    swallowed: u64,
}

impl Complaints {
    /// Writes a warning, or counts it for the next minute's first.
    pub(crate) fn warn(&self, now: Mono, peer: SocketAddr, why: &str) {
        let verdict = self.0.lock().unwrap_or_else(PoisonError::into_inner).admit(now);
        match verdict {
            Some(0) => tracing::warn!(%peer, why, "refused"),
            Some(swallowed) => tracing::warn!(%peer, why, swallowed, "refused"),
            None => {}
        }
    }
}

impl Minute {
    /// `Some(n)`: write it, and that `n` were swallowed before.
    fn admit(&mut self, now: Mono) -> Option<u64> {
        if self.began_at.is_none_or(|began| now - began >= Span::from_secs(60)) {
            self.began_at = Some(now);
            self.written = 0;
        }
        if self.written >= A_MINUTE {
            self.swallowed += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.swallowed))
    }
}

const A_MINUTE: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_summed_up() {
        let mut minute = Minute::default();
        let written = (0..1000).filter(|n| minute.admit(Mono(*n)).is_some()).count();
        assert_eq!(written, 20);
        assert_eq!(minute.admit(Mono(60_000_000_000)), Some(980));
        assert_eq!(minute.admit(Mono(60_000_000_001)), Some(0));
    }
}
