//! Ways to break what two ends tell each other, to see that the walks find out.

use std::collections::VecDeque;

use netaware_wire::dual::{Answer, Record};

use crate::world::Frame;

/// What is done to frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sabotage {
    /// Answers to wishes get lost.
    AnswersLost,
    /// A wish that was crossed is said to be granted.
    CrossedIsGranted,
    /// The end of a direction overtakes what waits before it.
    EndOvertakes,
    /// One byte more is acknowledged than came.
    AcknowledgedAhead,
    /// What is sent when a connection has come anew leaves out the first byte.
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
            (Self::EndOvertakes, Frame::Record(Record::Fin { .. })) => {
                queue.push_front(frame);
                return;
            }
            (Self::AcknowledgedAhead, Frame::Record(Record::Ack { received, .. })) => *received += 1,
            (Self::WelcomeAhead, Frame::Welcome { own }) => own.received += 1,
            _ => {}
        }
        queue.push_back(frame);
    }
}
