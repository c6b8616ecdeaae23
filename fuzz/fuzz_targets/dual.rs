//! A peer that says anything on either connection of a dual-stack stream: nothing panics, nothing
//! grows beyond its bound, what was read stays within what was allowed, and what parses comes back
//! as it was.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_dual::{Due, Loss, Peer, Reception, Setting, Side, Stream};
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::{HEAD_LEN, OPENING_LEN, Opening, Record, WELCOME_LEN, Welcome};

const ROOM: u32 = 1000;

#[derive(Debug, arbitrary::Arbitrary)]
enum Act {
    Head {
        six: bool,
        bytes: [u8; HEAD_LEN],
    },
    /// Heads that make sense are rare among random bytes.
    Near {
        six: bool,
        kind: u8,
        ip: u8,
        code: u8,
        small: u16,
        large: u16,
    },
    Queued(u8),
    Switch {
        six: bool,
    },
    Hold,
    Release,
    Lost {
        six: bool,
    },
    Connected {
        six: bool,
        room: u32,
        received: u16,
    },
    Write {
        six: bool,
        most: u8,
    },
    Read,
    Finish,
}

#[derive(Debug, arbitrary::Arbitrary)]
struct Input {
    opening: [u8; OPENING_LEN],
    welcome: [u8; WELCOME_LEN],
    opener: bool,
    acts: Vec<Act>,
}

fn ip(six: bool) -> IpVersion {
    if six { IpVersion::V6 } else { IpVersion::V4 }
}

fn take(stream: &mut Stream, now: Mono, six: bool, bytes: &[u8; HEAD_LEN]) {
    let Ok(record) = Record::parse(bytes) else { return };
    assert_eq!(record.emit(), *bytes);
    let taken = stream.take(now, ip(six), record);
    if let (Ok(Reception::Heeded), Record::Data { offset, length }) = (taken, record) {
        let _ = stream.arrived(now, offset, length);
    }
}

fuzz_target!(|input: Input| {
    if let Ok(opening) = Opening::parse(&input.opening) {
        assert_eq!(opening.emit(), input.opening);
    }
    if let Ok(welcome) = Welcome::parse(&input.welcome, (1, 9)) {
        let _ = welcome.emit();
    }
    let side = if input.opener { Side::Opener } else { Side::Acceptor };
    let setting = Setting { side, room: ROOM, longest: 100, ack_delay: Span::from_millis(20) };
    let mut stream = Stream::new(setting);
    let (mut now, mut read, mut queued, mut finished) = (Mono(0), 0, 0_u64, false);
    for act in input.acts {
        now = now + Span::from_millis(5);
        match act {
            Act::Head { six, bytes } => take(&mut stream, now, six, &bytes),
            Act::Near { six, kind, ip, code, small, large } => {
                let mut bytes = [0; HEAD_LEN];
                (bytes[0], bytes[1], bytes[3]) = (kind % 12, ip, code);
                bytes[6..8].copy_from_slice(&small.to_be_bytes());
                bytes[14..].copy_from_slice(&large.to_be_bytes());
                take(&mut stream, now, six, &bytes);
            }
            Act::Queued(_) if finished => {}
            Act::Queued(bytes) => {
                queued += u64::from(bytes);
                stream.queued(bytes.into());
            }
            Act::Switch { six } => drop(stream.switch(now, ip(six))),
            Act::Hold => stream.hold(),
            Act::Release => {
                let held = stream.is_held();
                assert_eq!(stream.release(now), held);
            },
            Act::Lost { six } => stream.lost(now, ip(six), stream.generation(ip(six)), Loss::Ended),
            Act::Connected { six, room, received } => {
                let generation = stream.generation(ip(six)) + 1;
                let peer = Peer { room, received: received.into() };
                let _ = stream.connected(now, ip(six), generation, peer);
            }
            Act::Write { six, most } => {
                for _ in 0..most {
                    let Some(due) = stream.poll(now, ip(six)) else { break };
                    if let Due::Data { offset, length } = due {
                        assert!(length > 0 && offset >= stream.acked());
                        assert!(offset + u64::from(length) <= queued);
                    }
                }
            }
            Act::Read => {
                let came = stream.received() - read;
                read += came;
                stream.consumed(now, came);
            }
            Act::Finish => {
                finished = true;
                stream.finish();
            }
        }
        while stream.event().is_some() {}
        assert!(stream.received() <= read + u64::from(ROOM));
        assert!(stream.acked() <= queued);
        let _ = (stream.standing(), stream.wake_at(), stream.own());
    }
});
