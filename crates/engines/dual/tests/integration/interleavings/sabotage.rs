//! Ways to break what two ends tell each other, to see that the walks find out.

use std::collections::VecDeque;

use netaware_wire::dual::{Answer, Record};

use super::world::Frame;

/// What is done to frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sabotage {
    /// Answers to wishes get lost.
    AnswersLost,
    /// A wish that was crossed is said to be granted.
    CrossedIsGranted,
    /// A direction is said to end a byte later than it does.
    EndTooLate,
    /// One byte more is acknowledged than came.
    AcknowledgedAhead,
    /// When a connection comes anew, one byte more is said to have come than has.
    WelcomeAhead,
}

impl Sabotage {
    pub(crate) fn put(self, queue: &mut VecDeque<Frame>, mut frame: Frame) {
        match (self, &mut frame) {
            (Self::AnswersLost, Frame::Record(Record::Answer { .. })) => return,
            (Self::CrossedIsGranted, Frame::Record(Record::Answer { outcome, decision, .. }))
                if *outcome == Answer::Crossed =>
            {
                (*outcome, *decision) = (Answer::Granted, u32::MAX);
            }
            (Self::EndTooLate, Frame::Record(Record::Fin { offset })) => *offset += 1,
            (Self::AcknowledgedAhead, Frame::Record(Record::Ack { received, .. })) => *received += 1,
            (Self::WelcomeAhead, Frame::Welcome { own }) => own.received += 1,
            _ => {}
        }
        queue.push_back(frame);
    }
}
