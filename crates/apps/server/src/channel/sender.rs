//! Sends a stream into a data channel, at a planned spacing or as fast as SCTP's congestion window
//! lets it.
//!
//! A datagram is numbered when it is given to SCTP, and given only while none waits there for the
//! window. So what was sent is what left, each datagram left in a packet of its own, and what the
//! window held back at its time is `not_sent`, never lost.

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_io::udp_stream::Timetable;
use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;
use netaware_wire::datagram::{HEADER_LEN, Header, Kind};

use super::association::{Association, Gone, LOOK_UP};

pub(super) fn send(
    association: &mut Association,
    number: u32,
    plan: &UdpPlan,
    stop: &StopFlag,
) -> UdpSenderEnd {
    let start = clock::now();
    let mut stream =
        Stream { association, number, datagram: vec![0; plan.length as usize], sequence: 0, last: start };
    let (outcome, kept) = match plan.gap_ps {
        Some(gap_ps) => {
            let gap_ps = gap_ps.max(SHORTEST_GAP_PS);
            let tolerance = Span((gap_ps / 10_000) as i64).max(LEAST_TOLERANCE);
            let mut timetable = Timetable::new(plan, start, gap_ps, stop);
            let outcome = stream.paced(&mut timetable, tolerance);
            (outcome, timetable.kept())
        }
        None => (stream.unpaced(plan, start, stop), UdpSenderEnd::default()),
    };
    let outcome = outcome.and_then(|outcome| stream.conclude(stop).map(|()| outcome));
    let ledger = &stream.association.ledger;
    UdpSenderEnd {
        outcome: outcome.unwrap_or(Outcome::Interrupted),
        elapsed: stream.last - start,
        sent: ledger.left(),
        not_sent: kept.not_sent + ledger.waiting() + ledger.refused(),
        bytes: ByteCount(ledger.left() * u64::from(plan.length)),
        calls: ledger.left(),
        ..kept
    }
}

struct Stream<'a> {
    association: &'a mut Association,
    number: u32,
    datagram: Vec<u8>,
    sequence: u64,
    /// When SCTP had taken the latest one, and sent it if it could.
    last: Mono,
}

impl Stream<'_> {
    /// A datagram whose time comes while another waits for the window is held back.
    fn paced(&mut self, timetable: &mut Timetable<'_>, tolerance: Span) -> Result<Outcome, Gone> {
        loop {
            let due = match timetable.due() {
                Ok(due) => due,
                Err(outcome) => return Ok(outcome),
            };
            let now = clock::now();
            if now < due {
                self.association.turn(due)?;
                continue;
            }
            let lateness = now - due;
            timetable.behind(lateness);
            if lateness > HOPELESS {
                timetable.skip_to(now);
                continue;
            }
            self.association.look()?;
            timetable.advance();
            if self.association.ledger.waiting() > 0 || !self.write()? {
                timetable.held_back();
            } else {
                timetable.left(self.last, lateness > tolerance);
            }
        }
    }

    fn unpaced(&mut self, plan: &UdpPlan, start: Mono, stop: &StopFlag) -> Result<Outcome, Gone> {
        let (end, packets) = (start + plan.duration.or_zero(), plan.packets.unwrap_or(u64::MAX));
        while self.sequence < packets && clock::now() < end {
            if stop.is_raised() {
                return Ok(Outcome::Interrupted);
            }
            if self.association.ledger.waiting() > 0 {
                self.association.turn(clock::now() + LOOK_UP)?;
            } else if self.write()? {
                // Acknowledgements open the window while it is being filled.
                if self.sequence.is_multiple_of(LOOK_EVERY) {
                    self.association.look()?;
                }
            } else {
                self.association.turn(clock::now() + LOOK_UP)?;
            }
        }
        Ok(Outcome::Complete)
    }

    fn write(&mut self) -> Result<bool, Gone> {
        let now = clock::now();
        let header = Header { kind: Kind::Data, flow: self.number, seq: self.sequence, sent_at: now.0 };
        header.emit(&mut self.datagram);
        // Counted before it can come out.
        self.association.ledger.wrote();
        if !self.association.write(&self.datagram)? {
            self.association.ledger.took_back();
            return Ok(false);
        }
        self.sequence += 1;
        self.last = clock::now();
        Ok(true)
    }

    /// Waits for what the window still holds, then says how many there were. Where the path takes
    /// nothing any more, what waits never left.
    fn conclude(&mut self, stop: &StopFlag) -> Result<(), Gone> {
        let until = clock::now() + FLUSH;
        while self.association.ledger.waiting() > 0 && clock::now() < until && !stop.is_raised() {
            self.association.turn(until)?;
        }
        if self.association.ledger.waiting() > 0 {
            return Ok(());
        }
        let mut end = [0; HEADER_LEN];
        let seq = self.sequence;
        Header { kind: Kind::End, flow: self.number, seq, sent_at: clock::now().0 }.emit(&mut end);
        for _ in 0..ENDS {
            self.association.write(&end)?;
            self.pause(END_EVERY)?;
        }
        let until = clock::now() + LINGER;
        while self.association.buffered() > 0 && clock::now() < until {
            self.association.turn(until)?;
        }
        Ok(())
    }

    fn pause(&mut self, span: Span) -> Result<(), Gone> {
        let until = clock::now() + span;
        while clock::now() < until {
            self.association.turn(until)?;
        }
        Ok(())
    }
}

/// 10 us: no plan makes the arithmetic absurd.
const SHORTEST_GAP_PS: u64 = 10_000_000;
/// So far behind there is no catching up.
const HOPELESS: Span = Span::from_millis(100);
const LEAST_TOLERANCE: Span = Span::from_micros(100);
const LOOK_EVERY: u64 = 8;
/// For the window to open once more on a slow path.
const FLUSH: Span = Span::from_secs(2);
const ENDS: u32 = 5;
const END_EVERY: Span = Span::from_millis(5);
/// For the last acknowledgements: a browser that hears nothing more would send its own again.
const LINGER: Span = Span::from_millis(500);
