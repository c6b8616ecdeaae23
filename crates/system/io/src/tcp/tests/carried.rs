use std::io::Write as _;

use super::*;

fn frame(length: u16) -> Vec<u8> {
    let mut bytes = vec![0x82, 0x80 | 0x7e];
    bytes.extend(length.to_be_bytes());
    bytes.extend([9, 8, 7, 6]);
    bytes.resize(bytes.len() + usize::from(length), 0xaa);
    bytes
}

#[test]
fn of_a_browsers_stream_the_payload_counts_and_messages_are_blocks() {
    let (out, into) = pairs(2);
    let plan = plan(2, 2_000);
    let end = std::thread::scope(|scope| {
        let stop = StopFlag::new();
        let receiver =
            scope.spawn(move || receive_carried(into, Carriage::WebSocket, &plan, &[], &stop, &mut |_| {}));
        for mut stream in &out {
            let bytes = frame(5_000).repeat(40);
            for piece in bytes.chunks(3_333) {
                stream.write_all(piece).unwrap();
            }
            stream.write_all(&[0x88, 0x80, 0, 0, 0, 0]).unwrap();
        }
        receiver.join().unwrap()
    });
    assert_eq!(end.bytes, ByteCount(2 * 40 * 5_000));
    assert_eq!(end.streams.iter().map(|stream| stream.calls).collect::<Vec<_>>(), [40, 40]);
}

#[test]
fn bytes_that_are_no_frames_end_a_stream_with_the_reason() {
    let (out, into) = pairs(1);
    let plan = plan(1, 2_000);
    (&out[0]).write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let end = receive_carried(into, Carriage::WebSocket, &plan, &[], &StopFlag::new(), &mut |_| {});
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(end.streams[0].error.as_deref().is_some_and(|why| why.contains("masked")), "{end:?}");
}
