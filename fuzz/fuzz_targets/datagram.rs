//! Any datagram: header, set-up and echo; whatever is understood survives being written and read
//! again.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_units::RemoteMono;
use netaware_wire::datagram::{EchoStamps, HEADER_LEN, Header, Kind, Setup};

#[derive(Debug, arbitrary::Arbitrary)]
struct Datagram {
    /// Begins like one of ours, with this kind.
    ours: Option<u8>,
    bytes: Vec<u8>,
}

fuzz_target!(|datagram: Datagram| {
    let mut bytes = datagram.bytes;
    if let (Some(kind), Some(opening)) = (datagram.ours, bytes.first_chunk_mut()) {
        *opening = [b'N', b'a', kind];
    }
    judge(&bytes);
});

fn judge(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    let mut written = [0; HEADER_LEN];
    header.emit(&mut written);
    assert_eq!(Header::parse(&written), Ok(header));
    if let Ok(setup) = Setup::parse(&header, bytes) {
        set_up_again(&header, setup);
    }
    if let Ok(stamps) = EchoStamps::parse(bytes) {
        answer(&header, stamps, bytes.to_vec());
    }
}

fn set_up_again(header: &Header, setup: Setup) {
    let read = |bytes: &[u8]| Setup::parse(&Header::parse(bytes).unwrap(), bytes);
    if matches!(header.kind, Kind::Knock | Kind::Enter) {
        assert_eq!(read(&setup.emit_request(header.kind)), Ok(setup));
    } else if matches!(header.kind, Kind::Cookie | Kind::Entered) {
        assert_eq!(read(&setup.emit_answer(header.kind, header.flow)), Ok(setup));
    }
}

fn answer(header: &Header, stamps: EchoStamps, mut request: Vec<u8>) {
    let length = request.len();
    let stamps = EchoStamps { answered_at: RemoteMono(stamps.received_at.0), ..stamps };
    stamps.answer(&mut request).unwrap();
    let reply = Header::parse(&request).unwrap();
    assert_eq!(reply, Header { kind: Kind::EchoReply, ..*header });
    assert_eq!((EchoStamps::parse(&request), request.len()), (Ok(stamps), length));
}
