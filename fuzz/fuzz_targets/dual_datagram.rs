//! A peer that says anything in datagrams of a dual-stack session: nothing panics, no datagram of
//! the application comes twice, what a peer tells cannot make counts go wrong, the session always
//! says when it wants to be woken, and what parses comes back as it was.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_dual::Side;
use netaware_dual::connect::Wanted;
use netaware_dual::datagram::{Door, Session, Setting, Taken};
use netaware_dual::policy::{Choice, Rules};
use netaware_record::{IpVersion, Use};
use netaware_units::{Mono, Span};
use netaware_wire::dual::{DatagramBody, DatagramHead, DatagramKind, PROBE_LEN};

#[derive(Debug, arbitrary::Arbitrary)]
enum Act {
    Bytes(Vec<u8>),
    /// Datagrams that make sense are rare among random bytes.
    Near {
        kind: u8,
        six: bool,
        sequence: u16,
        number: u16,
        body: [u8; 40],
    },
    Send(u16),
    Switch {
        six: bool,
    },
    Hold(bool),
    NotSent {
        six: bool,
    },
    Joined {
        six: bool,
    },
    Reach {
        six: bool,
    },
    Unreachable {
        six: bool,
    },
    Policy {
        interactive: bool,
        judged: bool,
    },
    Judge {
        six: bool,
    },
    Wait(u16),
    Close,
}

#[derive(Debug, arbitrary::Arbitrary)]
struct Input {
    opener: bool,
    acts: Vec<Act>,
}

#[derive(Default)]
struct Numbers {
    came: HashSet<u32>,
    jumped: bool,
}

fn ip(six: bool) -> IpVersion {
    if six { IpVersion::V6 } else { IpVersion::V4 }
}

fn take(session: &mut Session, now: Mono, bytes: &[u8], numbers: &mut Numbers) {
    let Ok((head, body)) = DatagramHead::parse(bytes) else { return };
    let mut out = [0; PROBE_LEN];
    let length = body.emit(head, &mut out);
    assert_eq!(out[..length], bytes[..length]);
    if let DatagramBody::Hello { speaks, cookie, .. } = body {
        let door = Door::new([1; 32]);
        let _ = door.knock(now, "192.0.2.1:7".parse().unwrap(), head.session, speaks, cookie);
    }
    if session.take(now, &head, &body) == Taken::Payload {
        assert_eq!(head.kind, DatagramKind::Data);
        // Beyond that low bits may come again, of numbers beyond 2^32.
        numbers.jumped |= head.number >= 1 << 16;
        assert!(numbers.came.insert(head.number) || numbers.jumped, "{} came twice", head.number);
    }
}

fuzz_target!(|input: Input| {
    let side = if input.opener { Side::Opener } else { Side::Acceptor };
    let mut now = Mono(1_000_000_000);
    let setting = Setting {
        side,
        session: 0,
        clock_offset: 7,
        every: Span::from_millis(500),
        overlap: Span::from_millis(500),
        patience: Span::from_secs(60),
        wanted: Wanted::Each,
        preferred: IpVersion::V6,
    };
    let mut session = Session::new(setting, now);
    let mut numbers = Numbers::default();
    for act in input.acts {
        now = now + Span::from_millis(5);
        match act {
            Act::Bytes(bytes) => take(&mut session, now, &bytes, &mut numbers),
            Act::Near { kind, six, sequence, number, body } => {
                let mut bytes = [0; PROBE_LEN];
                let kind = kind % 8 + 1;
                bytes[..2].copy_from_slice(b"nd");
                bytes[2] = if kind > 5 { 16 | kind } else { kind };
                bytes[3] = if six { 6 } else { 4 };
                if kind > 5 {
                    bytes[6..8].copy_from_slice(&sequence.to_be_bytes());
                }
                if kind == 6 {
                    bytes[22..24].copy_from_slice(&number.to_be_bytes());
                }
                bytes[24..].copy_from_slice(&body);
                let length = [48, 40, 32, 32, 24, 64, 64, 24][usize::from(kind - 1)];
                take(&mut session, now, &bytes[..length], &mut numbers);
            }
            Act::Send(bytes) => {
                if let Ok([first, second]) = session.send(now, bytes.into()) {
                    assert!(first.is_some() && first.map(|it| it.ip) != second.map(|it| it.ip));
                }
            }
            Act::Switch { six } => drop(session.switch(now, ip(six))),
            Act::Hold(holds) => session.hold(holds),
            Act::NotSent { six } => {
                if session.send(now, 1).is_ok_and(|[first, _]| first.is_some_and(|it| it.ip == ip(six))) {
                    session.not_sent(now, ip(six));
                }
            }
            Act::Joined { six } if side == Side::Acceptor => session.joined(now, ip(six)),
            Act::Reach { six } if side == Side::Opener => session.reach(now, ip(six)),
            Act::Joined { .. } | Act::Reach { .. } => {}
            Act::Unreachable { six } => session.unreachable(now, ip(six)),
            Act::Policy { interactive, judged } => {
                let rules = Rules::of(if interactive { Use::Interactive } else { Use::Media });
                let _ = session.set_policy(now, Some(rules), judged);
            }
            Act::Judge { six } => {
                let _ = session.evidence(now);
                session.judge(now, Choice::Use(ip(six)));
            }
            Act::Wait(millis) => now = now + Span::from_millis(millis.into()),
            Act::Close => session.close(),
        }
        let mut due = 0;
        while let Some(it) = session.poll(now) {
            due += 1;
            assert!(due < 20, "it has ever more to say");
            assert!(DatagramHead::parse(it.bytes()).is_ok());
        }
        if let Some(at) = session.wake_at() {
            assert!(at > now, "nothing is due any more, and yet it wants to be woken");
        }
        while session.event().is_some() {}
        while session.decision().is_some() {}
        let status = session.status();
        for version in [status.v4, status.v6] {
            assert!(version.confirmed + version.lost.unwrap_or(0) <= version.sent);
        }
    }
});
