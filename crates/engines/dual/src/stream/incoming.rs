//! The direction towards this end: what has come, in whichever order, and what the peer is told of
//! it.

use netaware_units::Mono;
use netaware_wire::dual::Record;

use super::Violation;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Incoming {
    room: u32,
    /// Without a gap.
    received: u64,
    /// Read by the application.
    consumed: u64,
    /// Beyond a gap: sorted, apart from each other and from `received`.
    held: Vec<(u64, u64)>,
    /// Bytes in the direction, once the peer has told its end.
    end: Option<u64>,
    told: Told,
    /// Tell at once.
    urgent: bool,
    /// Tell then at the latest.
    due: Option<Mono>,
}

/// What the peer was told last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Told {
    received: u64,
    limit: u64,
}

impl Incoming {
    pub(super) fn new(room: u32) -> Self {
        let told = Told { received: 0, limit: u64::from(room) };
        Self { room, received: 0, consumed: 0, held: Vec::new(), end: None, told, urgent: false, due: None }
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn unread(&self) -> u64 {
        self.received - self.consumed
    }

    pub(super) fn is_over(&self) -> bool {
        self.end == Some(self.received)
    }

    /// Beyond `received`.
    pub(super) fn room_left(&self) -> u32 {
        (self.limit() - self.received) as u32
    }

    fn limit(&self) -> u64 {
        self.consumed + u64::from(self.room)
    }

    /// Whether a data record may come.
    pub(super) fn expect(&self, offset: u64, length: u32) -> Result<(), Violation> {
        let until = offset + u64::from(length);
        if until > self.limit() {
            return Err(Violation::BeyondRoom);
        }
        if self.end.is_some_and(|end| until > end) {
            return Err(Violation::BeyondEnd);
        }
        Ok(())
    }

    pub(super) fn arrived(&mut self, offset: u64, bytes: u32, due: Mono) -> Result<(), Violation> {
        let until = offset + u64::from(bytes);
        if until <= self.received {
            // It came before, so the peer does not know that it did.
            self.urgent = true;
            return Ok(());
        }
        if offset <= self.received {
            self.received = until;
            self.join_held();
        } else {
            self.hold(offset, until)?;
        }
        self.due.get_or_insert(due);
        let step = self.step();
        self.urgent |= self.is_over() || self.received - self.told.received >= step;
        Ok(())
    }

    /// Ranges that touch become one, so what a sender with two connections makes are a few.
    fn hold(&mut self, from: u64, until: u64) -> Result<(), Violation> {
        let first = self.held.partition_point(|held| held.1 < from);
        let last = self.held.partition_point(|held| held.0 <= until);
        let mut joined = (from, until);
        for held in &self.held[first..last] {
            joined = (joined.0.min(held.0), joined.1.max(held.1));
        }
        self.held.splice(first..last, [joined]);
        if self.held.len() > MOST_HELD { Err(Violation::TooManyPieces) } else { Ok(()) }
    }

    fn join_held(&mut self) {
        let reached = self.held.partition_point(|held| held.0 <= self.received);
        for held in self.held.drain(..reached) {
            self.received = self.received.max(held.1);
        }
    }

    pub(super) fn consumed(&mut self, bytes: u64, due: Mono) {
        self.consumed += bytes;
        debug_assert!(self.consumed <= self.received, "read before it came");
        let opened = self.limit() - self.told.limit;
        if opened > 0 {
            self.due.get_or_insert(due);
        }
        self.urgent |= opened >= self.step();
    }

    /// How much may come or be read before the peer is told without waiting.
    fn step(&self) -> u64 {
        u64::from((self.room / STEPS).clamp(1, MOST_STEP))
    }

    pub(super) fn take_marker(&mut self, offset: u64) -> Result<(), Violation> {
        if offset > self.limit() {
            return Err(Violation::BeyondRoom);
        }
        self.urgent = true;
        Ok(())
    }

    pub(super) fn take_fin(&mut self, offset: u64) -> Result<(), Violation> {
        let came = self.held.last().map_or(self.received, |held| held.1);
        if offset < came || self.end.is_some_and(|end| end != offset) {
            return Err(Violation::OtherEnd);
        }
        self.end = Some(offset);
        self.urgent = true;
        Ok(())
    }

    /// The peer may have missed what it was told.
    pub(super) fn acknowledge_now(&mut self) {
        self.urgent = true;
    }

    /// What to tell the peer, where it is time to.
    pub(super) fn ack(&mut self, now: Mono) -> Option<Record> {
        if !self.urgent && self.due.is_none_or(|due| due > now) {
            return None;
        }
        (self.urgent, self.due) = (false, None);
        self.told = Told { received: self.received, limit: self.limit() };
        Some(Record::Ack { received: self.received, room: self.room_left(), all: self.is_over() })
    }

    pub(super) fn ack_at(&self) -> Option<Mono> {
        self.due
    }
}

/// Acknowledgements in a roomful of bytes.
const STEPS: u32 = 8;
/// What a sender keeps stays in its cache.
const MOST_STEP: u32 = 512 * 1024;
/// A sender goes back to what is not acknowledged at most once for each connection that it lost or
/// left.
const MOST_HELD: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_the_room_is_acknowledged_at_once_and_less_when_it_is_due() {
        let mut incoming = Incoming::new(800);
        incoming.arrived(0, 99, Mono(50)).unwrap();
        assert_eq!(incoming.ack(Mono(49)), None);
        incoming.arrived(99, 1, Mono(60)).unwrap();
        assert_eq!(incoming.ack(Mono(49)), Some(Record::Ack { received: 100, room: 700, all: false }));
        incoming.arrived(100, 1, Mono(70)).unwrap();
        assert_eq!((incoming.ack(Mono(69)), incoming.ack_at()), (None, Some(Mono(70))));
        assert_eq!(incoming.ack(Mono(70)), Some(Record::Ack { received: 101, room: 699, all: false }));
    }

    #[test]
    fn the_end_is_acknowledged_at_once() {
        let mut incoming = Incoming::new(800);
        incoming.take_fin(1).unwrap();
        assert!(incoming.ack(Mono(0)).is_some());
        incoming.arrived(0, 1, Mono(50)).unwrap();
        assert_eq!(incoming.ack(Mono(0)), Some(Record::Ack { received: 1, room: 799, all: true }));
    }

    #[test]
    fn pieces_that_touch_become_one_and_what_is_reached_is_received() {
        let mut incoming = Incoming::new(800);
        // From where, how many, and what is held beyond the gap then.
        let rows = [
            (10, 5, vec![(10, 15)]),
            (20, 5, vec![(10, 15), (20, 25)]),
            (15, 5, vec![(10, 25)]),
            (30, 5, vec![(10, 25), (30, 35)]),
            (5, 3, vec![(5, 8), (10, 25), (30, 35)]),
            (7, 30, vec![(5, 37)]),
        ];
        for (offset, bytes, held) in rows {
            incoming.arrived(offset, bytes, Mono(50)).unwrap();
            assert_eq!(incoming.held, held, "{bytes} from {offset} on");
        }
        incoming.arrived(0, 5, Mono(50)).unwrap();
        assert!(incoming.received() == 37 && incoming.held.is_empty(), "{incoming:?}");
    }

    #[test]
    fn what_fits_exactly_is_taken_and_a_byte_more_is_not() {
        let mut incoming = Incoming::new(800);
        assert_eq!([0, 1].map(|offset| incoming.expect(offset, 800)), [Ok(()), Err(Violation::BeyondRoom)]);
        assert_eq!([800, 801].map(|at| incoming.take_marker(at)), [Ok(()), Err(Violation::BeyondRoom)]);
        assert_eq!([700, 701].map(|at| incoming.take_fin(at)), [Ok(()), Err(Violation::OtherEnd)]);
        assert_eq!(incoming.take_fin(700), Ok(()), "told once more");
        let expected = [Ok(()), Err(Violation::BeyondEnd)];
        assert_eq!([600, 601].map(|offset| incoming.expect(offset, 100)), expected);
    }

    #[test]
    fn room_that_opens_is_told_at_once_where_it_is_an_eighth_of_all_and_later_where_it_is_less() {
        let ack = |received, room| Some(Record::Ack { received, room, all: false });
        let mut incoming = Incoming::new(800);
        incoming.arrived(0, 100, Mono(10)).unwrap();
        assert_eq!(incoming.ack(Mono(0)), ack(100, 700));
        incoming.consumed(0, Mono(20));
        assert_eq!((incoming.unread(), incoming.ack_at()), (100, None));
        incoming.consumed(99, Mono(50));
        assert_eq!((incoming.ack(Mono(49)), incoming.ack_at()), (None, Some(Mono(50))));
        assert_eq!(incoming.ack(Mono(50)), ack(100, 799));
        incoming.arrived(100, 100, Mono(60)).unwrap();
        assert_eq!(incoming.ack(Mono(0)), ack(200, 699));
        incoming.consumed(100, Mono(80));
        assert_eq!(incoming.ack(Mono(0)), ack(200, 799));

        // An eighth of very much is more than a sender is to keep.
        let mut large = Incoming::new(u32::MAX);
        large.arrived(0, 512 * 1024 - 1, Mono(10)).unwrap();
        assert_eq!(large.ack(Mono(0)), None);
        large.arrived(512 * 1024 - 1, 1, Mono(10)).unwrap();
        assert!(large.ack(Mono(0)).is_some());
    }
}
