//! What the throughput tests of one reservation do together: the owner's caps on rate and bytes
//! hold for the sum of those that go the same way at the same time, whichever of the reservation's
//! sessions they belong to. Bytes of trains are counted for each test, since those of both IP
//! versions run at once.
//!
//! Before they run their planned rates are added up. While they run what they move is: the sum may
//! be ahead of the cap by as much as a single test may ([`crate::plan::exceeded`]), in all the time
//! in which at least one of them runs. What is ahead when the last one ends is not forgotten, so
//! many short tests move no more than a long one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netaware_record::Direction;
use netaware_units::{BitRate, ByteCount, Mono};
use netaware_wire::control::{ErrorCode, Limits};

use crate::plan::{Planned, Refusal};

/// The throughput tests of one reservation.
#[derive(Debug, Default)]
pub(crate) struct Together(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Tests that are open, both ways.
    open: usize,
    forward: Way,
    reverse: Way,
}

/// All tests of one direction.
#[derive(Debug, Default)]
struct Way {
    /// Sum of the planned rates, in bits per second.
    planned: u64,
    /// What the tests that are open have moved, or will without being counted.
    bytes: u64,
    running: usize,
    /// What has moved beyond what the cap allows, in bits times 10^9; negative if that is less.
    ahead: i128,
    /// `ahead` is as it was then.
    at: Mono,
}

/// The part of one test, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    together: Arc<Together>,
    direction: Direction,
    planned: u64,
    bytes: u64,
    is_open: bool,
    is_running: bool,
}

impl Together {
    /// Opens another test.
    pub(crate) fn open(self: &Arc<Self>, limits: &Limits, plan: Planned) -> Result<Part, Refusal> {
        let Planned { direction, rate, bytes: ByteCount(bytes) } = plan;
        let mut state = self.lock();
        if state.open >= MAX_TESTS_TOGETHER {
            return Err(Refusal {
                code: ErrorCode::State,
                message: format!("{MAX_TESTS_TOGETHER} throughput tests are open in this reservation"),
            });
        }
        let planned = rate.map_or(0, |rate| rate.0);
        let way = state.way(direction);
        let sum = way.planned.saturating_add(planned);
        if let Some(cap) = limits.rate.filter(|cap| way.planned > 0 && sum > cap.0) {
            let sum = BitRate(sum);
            return Err(Refusal {
                code: ErrorCode::Cap,
                message: format!(
                    "the responder's cap for rate is {cap}, and with this test those of the reservation that go the \
                     same way would have {sum}"
                ),
            });
        }
        let in_all = way.bytes.saturating_add(bytes);
        if let Some(cap) = limits.bytes.filter(|cap| way.bytes > 0 && bytes > 0 && in_all > cap.0) {
            return Err(too_many_bytes(cap));
        }
        way.planned = sum;
        way.bytes = in_all;
        state.open += 1;
        drop(state);
        let together = Arc::clone(self);
        Ok(Part { together, direction, planned, bytes, is_open: true, is_running: false })
    }

    /// A thread that panicked left nothing half done: every change is one call.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn way(&mut self, direction: Direction) -> &mut Way {
        if direction == Direction::Reverse { &mut self.reverse } else { &mut self.forward }
    }
}

impl Way {
    /// A test that does not use what it may is not followed by one that uses it twice.
    fn advance(&mut self, now: Mono, cap: BitRate) {
        let passed = (now - self.at).or_zero();
        self.at = self.at.max(now);
        self.ahead -= allowed(cap) * i128::from(passed.0);
        if self.running == 0 {
            self.ahead = self.ahead.max(0);
        }
    }
}

fn too_many_bytes(cap: ByteCount) -> Refusal {
    Refusal {
        code: ErrorCode::Cap,
        message: format!(
            "the responder's cap for bytes is {cap}, also for the tests of a reservation that go the same way at the same \
             time"
        ),
    }
}

/// In a nanosecond, in bits times 10^9; with the quarter of slack that a single test has.
fn allowed(cap: BitRate) -> i128 {
    i128::from(cap.0) * 5 / 4
}

impl Part {
    /// The test begins to move data.
    pub(crate) fn begin(&mut self, now: Mono, limits: &Limits) {
        let mut state = self.together.lock();
        let way = state.way(self.direction);
        if let Some(cap) = limits.rate {
            way.advance(now, cap);
        }
        if !self.is_running {
            way.running += 1;
        }
        drop(state);
        self.is_running = true;
    }

    /// The test has moved so much more. Says why it has to end if all of them have moved too much.
    pub(crate) fn moved(&mut self, now: Mono, bytes: ByteCount, limits: &Limits) -> Option<Refusal> {
        self.count_bytes(bytes, limits).or_else(|| self.count_rate(now, bytes, limits))
    }

    fn count_bytes(&mut self, ByteCount(bytes): ByteCount, limits: &Limits) -> Option<Refusal> {
        let cap = limits.bytes.filter(|_| self.is_open)?;
        self.bytes = self.bytes.saturating_add(bytes);
        let mut state = self.together.lock();
        let way = state.way(self.direction);
        way.bytes = way.bytes.saturating_add(bytes);
        (way.bytes > cap.0).then(|| too_many_bytes(cap))
    }

    fn count_rate(&self, now: Mono, bytes: ByteCount, limits: &Limits) -> Option<Refusal> {
        let cap = limits.rate?;
        let mut state = self.together.lock();
        let way = state.way(self.direction);
        way.advance(now, cap);
        way.ahead += i128::from(bytes.0) * 8_000_000_000;
        let is_too_much = way.ahead > allowed(cap) * 1_000_000_000;
        let running = way.running;
        drop(state);
        is_too_much.then(|| Refusal {
            code: ErrorCode::Cap,
            message: format!(
                "the responder's cap for rate is {cap}, and the tests of the reservation that go the same way, {running} \
                 now, moved more in all"
            ),
        })
    }

    /// The test is told to end: another one may be opened.
    pub(crate) fn halted(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let mut state = self.together.lock();
            state.open = state.open.saturating_sub(1);
            let way = state.way(self.direction);
            way.planned = way.planned.saturating_sub(self.planned);
            way.bytes = way.bytes.saturating_sub(self.bytes);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.halted();
        if self.is_running {
            let mut state = self.together.lock();
            let way = state.way(self.direction);
            way.running = way.running.saturating_sub(1);
        }
    }
}

/// Throughput tests of one reservation that are open at the same time: four at most are of use, two
/// each way.
pub(crate) const MAX_TESTS_TOGETHER: usize = 8;

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;

    const T0: Mono = Mono(1_000_000_000_000);
    /// 1 MB/s.
    const CAP: BitRate = BitRate(8_000_000);

    fn limits() -> Limits {
        Limits { rate: Some(CAP), ..Limits::default() }
    }

    fn ms(milliseconds: i64) -> Mono {
        T0 + Span::from_millis(milliseconds)
    }

    fn open(together: &Arc<Together>, direction: Direction, rate: u64) -> Result<Part, Refusal> {
        together.open(&limits(), Planned { direction, rate: Some(BitRate(rate)), bytes: ByteCount(0) })
    }

    #[test]
    fn tests_of_one_reservation_do_not_each_have_the_whole_cap() {
        let together = Arc::default();
        let up = open(&together, Direction::Forward, 8_000_000).unwrap();
        let refusal = open(&together, Direction::Forward, 1).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::Cap);
        assert!(refusal.message.starts_with("the responder's cap for rate is 8.00 Mbit/s, and with"));
        // Both ways at once each have it.
        let _down = open(&together, Direction::Reverse, 8_000_000).unwrap();
        drop(up);
        let halves: Vec<_> = (0..2).map(|_| open(&together, Direction::Forward, 4_000_000)).collect();
        assert!(halves.iter().all(Result::is_ok));
        assert!(open(&together, Direction::Forward, 1).is_err());
    }

    #[test]
    fn a_test_that_is_halted_leaves_room_before_its_thread_has_ended() {
        let together = Arc::default();
        let mut first = open(&together, Direction::Reverse, 8_000_000).unwrap();
        first.begin(T0, &limits());
        first.halted();
        let second = open(&together, Direction::Reverse, 8_000_000).unwrap();
        drop(first);
        assert!(open(&together, Direction::Reverse, 1).is_err(), "it left once and not twice");
        drop(second);
    }

    #[test]
    fn nobody_opens_128_tests_in_one_reservation() {
        let together = Arc::default();
        let plan = Planned { direction: Direction::Forward, rate: None, bytes: ByteCount(0) };
        let open = || Together::open(&together, &Limits::default(), plan);
        let tests: Vec<_> = (0..128).map_while(|_| open().ok()).collect();
        assert_eq!(tests.len(), MAX_TESTS_TOGETHER);
        assert_eq!(open().unwrap_err().code, ErrorCode::State);
        drop(tests);
        assert!(open().is_ok());
    }

    /// The time until tests that each move so much in a tenth of a second are stopped.
    fn stopped_after(tests: usize, each: u64) -> Option<i64> {
        let together = Arc::default();
        let mut parts: Vec<_> =
            (0..tests).map(|_| open(&together, Direction::Forward, 1_000_000).unwrap()).collect();
        for part in &mut parts {
            part.begin(T0, &limits());
        }
        (1..=600).find_map(|tick| {
            let is_over =
                parts.iter_mut().any(|part| part.moved(ms(tick * 100), ByteCount(each), &limits()).is_some());
            is_over.then_some(tick * 100)
        })
    }

    #[test]
    fn what_parallel_tests_move_is_added_up() {
        // Alone, at the cap and an eighth above it, which is slack.
        assert_eq!(stopped_after(1, 112_500), None);
        // Eight that each keep to the cap move eight times as much: 0.8 MB in each tenth.
        assert_eq!(stopped_after(8, 100_000), Some(200));
        assert_eq!(stopped_after(8, 12_500), None);
    }

    #[test]
    fn parallel_tests_do_not_each_move_all_bytes_that_a_test_may() {
        let limits = Limits { bytes: Some(ByteCount(1_000_000)), ..Limits::default() };
        let together = Arc::default();
        let open = |direction, bytes| {
            Together::open(&together, &limits, Planned { direction, rate: None, bytes: ByteCount(bytes) })
        };
        let mut parts: Vec<_> = (0..2).map(|_| open(Direction::Forward, 0).unwrap()).collect();
        assert_eq!(parts[0].moved(T0, ByteCount(600_000), &limits), None);
        assert_eq!(parts[1].moved(T0, ByteCount(400_000), &limits), None);
        let refusal = parts[0].moved(T0, ByteCount(1), &limits).unwrap();
        assert!(refusal.message.starts_with("the responder's cap for bytes is 977 KiB"), "{refusal:?}");
        // The next turn begins while the last one still winds down.
        parts.iter_mut().for_each(Part::halted);
        let mut next = open(Direction::Forward, 0).unwrap();
        assert_eq!(next.moved(T0, ByteCount(1_000_000), &limits), None);
        assert_eq!(parts[0].moved(T0, ByteCount(1), &limits), None);
        // What is sent over UDP is counted by its plan.
        let first = open(Direction::Reverse, 600_000).unwrap();
        assert_eq!(open(Direction::Reverse, 600_000).unwrap_err().code, ErrorCode::Cap);
        drop(first);
        assert!(open(Direction::Reverse, 600_000).is_ok());
    }

    #[test]
    fn a_queue_that_empties_at_once_ends_no_test() {
        let together = Arc::default();
        let mut part = open(&together, Direction::Forward, 8_000_000).unwrap();
        part.begin(T0, &limits());
        assert_eq!(part.moved(ms(5000), ByteCount(5_000_000), &limits()), None);
        assert_eq!(part.moved(ms(60_000), ByteCount(55_000_000), &limits()), None);
    }

    #[test]
    fn many_short_tests_move_no_more_than_a_long_one() {
        let together = Arc::default();
        let mut at = 0;
        let stopped = (0..100).any(|_| {
            let mut part = open(&together, Direction::Forward, 8_000_000).unwrap();
            part.begin(ms(at), &limits());
            at += 50;
            // 1 MB in a twentieth of a second.
            part.moved(ms(at), ByteCount(1_000_000), &limits()).is_some()
        });
        assert!(stopped && at <= 100, "{at} ms");
        // After a pause the next one is as good as the first.
        let mut part = open(&together, Direction::Forward, 8_000_000).unwrap();
        part.begin(ms(at + 10_000), &limits());
        assert_eq!(part.moved(ms(at + 10_050), ByteCount(1_000_000), &limits()), None);
        assert!(part.moved(ms(at + 10_060), ByteCount(1_000_000), &limits()).is_some());
    }
}
