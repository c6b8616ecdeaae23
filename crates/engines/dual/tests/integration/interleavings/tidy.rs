//! Frames that mean nothing any more are left out.
//!
//! What an end hears from an acknowledgement only grows: bytes that came, bytes that may come,
//! whether that is all. One that tells no more than the end has heard, or will have heard before
//! from the same queue, changes nothing whenever it is taken, and nothing follows from it. So does
//! word of the loss of a connection that the end does not have any more. A state with such frames
//! and the one without them go on in the same ways, but for taking them: they end alike, and
//! whatever is wrong in one is wrong in the other.
//!
//! Two ends acknowledge at every turn and failure, most often what is known already, so this is
//! where most of the states come from. Small walks are made with and without; in a debug build
//! everything left out is taken by a copy of the end first, which has to stay as it is.

use std::collections::VecDeque;

use netaware_dual::Stream;
use netaware_record::IpVersion;
use netaware_units::Mono;
use netaware_wire::dual::Record;

use super::world::Frame;

/// What an end has heard of its own direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Heard {
    received: u64,
    limit: u64,
    all: bool,
}

impl Heard {
    /// Whether it tells something new.
    pub(crate) fn take(&mut self, frame: &Frame) -> bool {
        let (received, room, all) = match frame {
            Frame::Opening { own } | Frame::Welcome { own } => (own.received, own.room, false),
            Frame::Record(Record::Ack { received, room, all }) => (*received, *room, *all),
            Frame::Record(_) | Frame::Data { .. } => return true,
        };
        let before = *self;
        self.received = self.received.max(received);
        self.limit = self.limit.max(received + u64::from(room));
        self.all |= all;
        *self != before
    }
}

/// Of a queue towards an end that has heard so much.
pub(crate) fn tidy(queue: &mut VecDeque<Frame>, heard: Heard, stream: &Stream, over: IpVersion) {
    let mut before = heard;
    queue.retain(|frame| {
        let means = match frame {
            Frame::Record(Record::Ack { .. }) => before.take(frame),
            Frame::Record(Record::Gone { ip, generation }) => {
                let known = stream.generation(*ip);
                known < *generation || (known == *generation && stream.is_up(*ip))
            }
            _ => {
                before.take(frame);
                true
            }
        };
        if cfg!(debug_assertions) && !means && before == heard {
            stays_as_it_is(stream, over, frame);
        }
        means
    });
}

fn stays_as_it_is(stream: &Stream, over: IpVersion, frame: &Frame) {
    if let Frame::Record(record) = frame {
        let mut copy = stream.clone();
        copy.take(Mono(0), over, *record).expect("an honest peer");
        assert!(copy == *stream, "{frame:?} means something");
    }
}
