//! What one thread hands over to another.
//!
//! `std::sync::mpsc` would do, but for one thing: waiting there makes Rust's handle of the waiting
//! thread, and a thread of a C program's own never gives that back, which tools that look for leaks
//! then report.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use netaware_io::clock;
use netaware_units::Mono;

/// First in, first out, up to a number.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inside: Mutex<Inside<T>>,
    changed: Condvar,
    most: usize,
}

#[derive(Debug)]
struct Inside<T> {
    waiting: VecDeque<T>,
    closed: bool,
}

/// Why nothing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nothing {
    InTime,
    AnyMore,
}

impl<T> Queue<T> {
    pub(crate) fn new(most: usize) -> Self {
        let inside = Inside { waiting: VecDeque::new(), closed: false };
        Self { inside: Mutex::new(inside), changed: Condvar::new(), most }
    }

    /// Gives it back where there is no room, or nobody takes any more.
    pub(crate) fn put(&self, one: T) -> Result<(), T> {
        let mut inside = self.lock();
        if inside.closed || inside.waiting.len() >= self.most {
            return Err(one);
        }
        inside.waiting.push_back(one);
        self.changed.notify_one();
        Ok(())
    }

    /// Nothing comes any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// The next one; waits for it until then, or without end.
    pub(crate) fn take(&self, until: Option<Mono>) -> Result<T, Nothing> {
        let mut inside = self.lock();
        loop {
            if let Some(one) = inside.waiting.pop_front() {
                return Ok(one);
            }
            if inside.closed {
                return Err(Nothing::AnyMore);
            }
            let left = until.map(|until| until - clock::now());
            inside = match left {
                None => self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.nanos() <= 0 => return Err(Nothing::InTime),
                Some(left) => {
                    let waited = self.changed.wait_timeout(inside, left.to_std());
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use netaware_units::Span;

    use super::*;

    #[test]
    fn who_waits_gets_what_comes_and_hears_when_nothing_will() {
        let queue = Arc::new(Queue::new(2));
        let there = queue.clone();
        let taker = std::thread::spawn(move || (there.take(None), there.take(None), there.take(None)));
        queue.put(1).unwrap();
        queue.put(2).unwrap();
        queue.close();
        assert_eq!(taker.join().unwrap(), (Ok(1), Ok(2), Err(Nothing::AnyMore)));
        assert_eq!(queue.put(3), Err(3));
    }

    #[test]
    fn it_holds_no_more_than_it_may_and_waits_no_longer() {
        let queue = Queue::new(1);
        assert_eq!(queue.take(Some(clock::now() + Span::from_millis(5))), Err(Nothing::InTime));
        assert_eq!((queue.put(1), queue.put(2)), (Ok(()), Err(2)));
        assert_eq!(queue.take(Some(clock::now())), Ok(1));
    }
}
