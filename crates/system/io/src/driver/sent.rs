//! Sends whose kernel stamp has not come yet.

use std::collections::VecDeque;

use netaware_engine::Tag;
use netaware_units::{Mono, Span, Stamp};

/// In the order of sending. Entries carry consecutive numbers from `first` on, those of the
/// socket's transmit stamps; `push` is called for each send that the socket stamps, and for no
/// other.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    waiting: VecDeque<Waiting>,
    first: u32,
    /// Entries that have not been answered.
    open: usize,
    fallbacks: u64,
}

#[derive(Debug)]
struct Waiting {
    tag: Tag,
    handed_at: Mono,
    answered: bool,
}

impl Unconfirmed {
    /// The next send will carry the number `first`.
    pub(super) fn following(first: u32) -> Self {
        Self { waiting: VecDeque::with_capacity(64), first, open: 0, fallbacks: 0 }
    }

    /// A send has left; `handed_at` is the application's reading before the call.
    pub(super) fn push(&mut self, tag: Tag, handed_at: Mono) {
        self.waiting.push_back(Waiting { tag, handed_at, answered: false });
        self.open += 1;
    }

    /// Matches the stamp of send `id`. A stamp from before the send is not its own (its number was
    /// given twice, or the clock stepped); the application's takes its place. `None`: not one of
    /// ours, or answered already.
    pub(super) fn confirm(&mut self, id: u32, stamp: Stamp) -> Option<(Tag, Stamp)> {
        let waiting = self.waiting.get_mut(id.wrapping_sub(self.first) as usize)?;
        if waiting.answered {
            return None;
        }
        waiting.answered = true;
        let (tag, handed_at) = (waiting.tag, waiting.handed_at);
        self.open -= 1;
        self.forget_answered();
        if stamp.at + stamp.error >= handed_at {
            Some((tag, stamp))
        } else {
            self.fallbacks += 1;
            Some((tag, Stamp::application(handed_at)))
        }
    }

    /// A send whose stamp has not come within `PATIENCE`, with the application's stamp.
    pub(super) fn expire(&mut self, now: Mono) -> Option<(Tag, Stamp)> {
        if self.expires_at()? > now {
            return None;
        }
        let waiting = self.waiting.pop_front()?;
        self.first = self.first.wrapping_add(1);
        self.open -= 1;
        self.fallbacks += 1;
        self.forget_answered();
        Some((waiting.tag, Stamp::application(waiting.handed_at)))
    }

    /// When the next `expire` will give one.
    pub(super) fn expires_at(&self) -> Option<Mono> {
        // The front is always unanswered: `forget_answered` sees to it.
        self.waiting.front().map(|waiting| waiting.handed_at + PATIENCE)
    }

    /// Whether no stamp is awaited.
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Sends that got the application's stamp.
    pub(super) fn fallbacks(&self) -> u64 {
        self.fallbacks
    }

    fn forget_answered(&mut self) {
        while self.waiting.front().is_some_and(|waiting| waiting.answered) {
            self.waiting.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

/// Stamps come with the next wake-up, or once a queue in front of the device has let the datagram
/// go. Not shorter, so that a wait may be a cheap blocking one.
const PATIENCE: Span = Span::from_millis(50);

#[cfg(test)]
mod tests {
    use netaware_units::ClockSource;

    use super::*;

    fn kernel(at: u64) -> Stamp {
        Stamp { at: Mono(at), by: ClockSource::Kernel, error: Span(1) }
    }

    #[test]
    fn stamps_find_their_sends_in_any_order_and_once() {
        let mut sends = Unconfirmed::following(u32::MAX);
        for tag in [10, 11, 12] {
            sends.push(tag, Mono(100));
        }
        assert_eq!(sends.confirm(1, kernel(130)), Some((12, kernel(130))));
        assert_eq!(sends.confirm(u32::MAX, kernel(110)), Some((10, kernel(110))));
        assert_eq!(sends.confirm(u32::MAX, kernel(110)), None);
        assert_eq!(sends.confirm(1, kernel(130)), None);
        assert_eq!(sends.confirm(77, kernel(130)), None);
        assert!(!sends.is_empty());
        assert_eq!(sends.confirm(0, kernel(120)), Some((11, kernel(120))));
        assert!(sends.is_empty() && sends.expires_at().is_none());
    }

    #[test]
    fn a_stamp_that_does_not_come_is_replaced_once_and_counted() {
        let mut sends = Unconfirmed::following(0);
        sends.push(5, Mono(1_000));
        sends.push(6, Mono(2_000));
        sends.confirm(1, kernel(2_100));
        assert_eq!(sends.expire(Mono(1_000)), None);
        let late = Mono(1_000) + PATIENCE;
        assert_eq!(sends.expire(late), Some((5, Stamp::application(Mono(1_000)))));
        assert_eq!(sends.expire(late), None);
        assert_eq!((sends.confirm(0, kernel(1_100)), sends.fallbacks()), (None, 1));
    }

    #[test]
    fn a_stamp_from_before_its_send_is_not_believed() {
        let mut sends = Unconfirmed::following(0);
        sends.push(5, Mono(1_000));
        assert_eq!(sends.confirm(0, kernel(500)), Some((5, Stamp::application(Mono(1_000)))));
        assert_eq!(sends.fallbacks(), 1);
    }
}
