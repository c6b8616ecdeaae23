//! How far stamps can be trusted, and how large a burst a socket holds.

use netaware_record::{Effort, StampTiming};
use netaware_units::ByteCount;

use super::calls::pair;
use super::times;
use crate::volley;

/// Stamps and sends of single packets as estimators use them: see [`crate::volley::stamp_timing`],
/// which asks the same in a shorter time. `None` on a host without loopback.
pub fn stamps(effort: Effort) -> Option<StampTiming> {
    volley::calibrate_for(times(effort, 40, 400))
}

/// Payload of a burst of datagrams of 1472 bytes that a receiving socket of netaware's holds while
/// nobody reads it. The largest buffer that may be had is asked for, as for a measurement, so
/// privilege makes it larger. `None` on a host without loopback.
pub fn receive_room() -> Option<ByteCount> {
    let (out, into) = pair().ok()?;
    into.set_nonblocking(true).ok()?;
    let payload = [0; PAYLOAD];
    for _ in 0..MOST {
        // Loopback refuses nothing; what does not fit is dropped at the receiver.
        let _ = out.send(&payload);
    }
    let mut buf = [0; PAYLOAD];
    let mut held = 0;
    while let Ok(length) = into.recv(&mut buf) {
        held += length as u64;
    }
    (held > 0).then_some(ByteCount(held))
}

const PAYLOAD: usize = 1472;
/// 6 MB: more than any train has.
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_holds_some_datagrams_and_not_more_than_were_sent() {
        let room = receive_room().unwrap();
        assert!(room.0 >= 10 * 1472 && room.0 <= (MOST * PAYLOAD) as u64, "{room}");
        assert_eq!(room.0 % 1472, 0);
    }
}
