use std::io::Write as _;

use super::*;

fn frame(length: u16) -> Vec<u8> {
    let mut bytes = vec![0x82, 0x80 | 0x7e];
    bytes.extend(length.to_be_bytes());
    bytes.extend([9, 8, 7, 6]);
    bytes.resize(bytes.len() + usize::from(length), 0xaa);
    bytes
}

fn carried(sockets: Vec<TcpStream>) -> Vec<Stream> {
    sockets.into_iter().map(Stream::from).collect()
}

#[test]
fn of_a_browsers_stream_the_payload_counts_and_messages_are_blocks() {
    let (out, into) = pairs(2);
    let plan = plan(2, 2_000);
    let end = std::thread::scope(|scope| {
        let stop = StopFlag::new();
        let receiver = scope.spawn(move || {
            receive_carried(carried(into), Carriage::WebSocket, &plan, &[], &stop, &mut |_| {})
        });
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
    let end = receive_carried(carried(into), Carriage::WebSocket, &plan, &[], &StopFlag::new(), &mut |_| {});
    assert_eq!(end.outcome, Outcome::Failed);
    assert!(end.streams[0].error.as_deref().is_some_and(|why| why.contains("masked")), "{end:?}");
}

/// Stands in for a library: a byte in front of every 99 that says how many follow.
#[derive(Debug, Default)]
struct Padded {
    waiting: Vec<u8>,
    given: u64,
    incoming: Vec<u8>,
}

impl Padded {
    fn flush(&mut self, mut socket: &TcpStream) -> std::io::Result<()> {
        while !self.waiting.is_empty() {
            let given = socket.write(&self.waiting)?;
            self.given += given as u64;
            self.waiting.drain(..given);
        }
        Ok(())
    }
}

impl Encryption for Padded {
    fn read(&mut self, mut socket: &TcpStream, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let whole = self.incoming.first().map(|count| usize::from(*count) + 1);
            if let Some(whole) = whole.filter(|whole| *whole <= self.incoming.len()) {
                into[..whole - 1].copy_from_slice(&self.incoming[1..whole]);
                self.incoming.drain(..whole);
                return Ok(whole - 1);
            }
            let mut more = [0; 700];
            match std::io::Read::read(&mut socket, &mut more)? {
                0 => return Ok(0),
                count => self.incoming.extend_from_slice(&more[..count]),
            }
        }
    }

    fn write(&mut self, socket: &TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
        self.flush(socket)?;
        let taken = bytes.len().min(9_900);
        for piece in bytes[..taken].chunks(99) {
            self.waiting.push(piece.len() as u8);
            self.waiting.extend_from_slice(piece);
        }
        match self.flush(socket) {
            Err(error) if !is_timeout(&error) => Err(error),
            _ => Ok(taken),
        }
    }

    fn finish(&mut self, socket: &TcpStream) -> std::io::Result<()> {
        self.flush(socket)
    }

    fn given(&self) -> u64 {
        self.given
    }
}

fn padded(sockets: Vec<TcpStream>) -> Vec<Stream> {
    let encryption = || Some(Box::<Padded>::default() as Box<dyn Encryption>);
    sockets.into_iter().map(|socket| Stream { socket, encryption: encryption() }).collect()
}

#[test]
fn what_encryption_adds_is_no_payload_at_either_end() {
    let limit = ByteCount(3_000_001);
    let plan = TcpPlan { bytes: Some(limit), ..plan(2, 20_000) };
    let (out, into) = pairs(2);
    let stop = StopFlag::new();
    let (sent, received) = std::thread::scope(|scope| {
        let (stop, plan) = (&stop, &plan);
        let receiver =
            scope.spawn(|| receive_carried(padded(into), Carriage::Plain, plan, &[], stop, &mut |_| {}));
        (send_carried(padded(out), plan, &[], stop, &mut |_| {}), receiver.join().unwrap())
    });
    assert_eq!((sent.outcome, received.outcome), (Outcome::Complete, Outcome::Complete), "{sent:?}");
    assert_eq!((sent.bytes, received.bytes), (limit, limit));
    if cfg!(target_os = "linux") {
        assert_eq!(sent.acknowledged_bytes, Some(limit));
    }
}

#[test]
fn spaced_blocks_are_refused_with_encryption_and_the_reason_is_told() {
    let (out, _into) = pairs(1);
    let plan = TcpPlan { block_spacing: Some(Span::from_millis(1)), ..plan(1, 1_000) };
    let sent = send_carried(padded(out), &plan, &[], &StopFlag::new(), &mut |_| {});
    assert_eq!(sent.outcome, Outcome::Failed);
    assert!(sent.streams[0].error.as_deref().is_some_and(|why| why.contains("encrypted")), "{sent:?}");
}
