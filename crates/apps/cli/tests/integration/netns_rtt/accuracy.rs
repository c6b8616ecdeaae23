//! How near round trips are to the path's, with the emulator at its best.

use super::*;

/// A handshake and its acknowledgement are among them.
#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn the_round_trip_of_real_tcp_exceeds_the_paths_by_little() {
    if !permitted() {
        return;
    }
    let (rows, report) = of_conversations(talk);
    judge(&late(&rows, Span::from_millis(1), Span::from_millis(2)), &report, LATE);
}

#[test]
#[ignore = "accuracy in real time: judged by its pass rate in nightly"]
fn the_spin_bit_of_real_quic_is_the_paths_round_trip() {
    if !permitted() {
        return;
    }
    let (rows, report) = of_conversations(quic::talk);
    // An edge turns round at both ends, and waits at each for the next datagram.
    judge(&quic::far(&rows, Span::from_millis(1), quic::EVERY * 2), &report, LATE);
}
