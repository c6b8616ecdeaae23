//! Limits how many refused connections are reported or logged: a stranger who comes a million times
//! must not fill a disk.

use std::sync::{Mutex, PoisonError};

use netaware_units::{Mono, Span};

/// Counts the reports of the present minute.
#[derive(Debug, Default)]
pub struct Reports(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    began_at: Option<Mono>,
    reported: u32,
}

impl Reports {
    /// Returns whether one more is reported: 20 a minute are.
    pub fn admit(&self, now: Mono) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).admit(now)
    }
}

impl Minute {
    fn admit(&mut self, now: Mono) -> bool {
        if self.began_at.is_none_or(|began| now - began >= Span::from_secs(60)) {
            *self = Self { began_at: Some(now), reported: 0 };
        }
        let is_admitted = self.reported < A_MINUTE;
        self.reported += u32::from(is_admitted);
        is_admitted
    }
}

const A_MINUTE: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_strangers_does_not_fill_the_log() {
        let reports = Reports::default();
        assert_eq!((0..1000).filter(|n| reports.admit(Mono(*n))).count(), 20);
        assert!(reports.admit(Mono(0) + Span::from_secs(60)));
    }
}
