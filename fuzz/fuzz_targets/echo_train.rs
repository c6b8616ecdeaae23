//! Any inputs in any order, true and forged answers among them: the books of an echo train stay
//! balanced, it never outgrows its bound, and it ends when told to.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_engine::{Engine, Input, NotSent, Output};
use netaware_probe::{EchoPlan, EchoTrain, Pacing};
use netaware_units::{Mono, RemoteMono, Span, Stamp};
use netaware_wire::datagram::{EchoStamps, Kind};
use netaware_wire::echo;

const FLOW: u32 = 5;

#[derive(Debug, arbitrary::Arbitrary)]
struct Script {
    count: Option<u8>,
    spacing_us: Option<u16>,
    length: u8,
    response: u8,
    /// Closed loops of this depth, where there is no spacing.
    depth: u8,
    patience_us: u32,
    start: u32,
    steps: Vec<Step>,
}

#[derive(Debug, arbitrary::Arbitrary)]
enum Step {
    Wait(u32),
    Leap(u64),
    Stop,
    /// To one of the last requests, forged if the times do not fit.
    Answer {
        back: u8,
        held_us: u16,
        forged: Option<u64>,
        ttl: Option<u8>,
    },
    Raw(Vec<u8>, u64),
    Handed {
        back: u8,
        at: u64,
    },
    Sent {
        back: u8,
        at: u64,
    },
    NotSent {
        back: u8,
        too_big: Option<u16>,
    },
}

fuzz_target!(|script: Script| {
    let (length, response) = (usize::from(script.length), usize::from(script.response));
    let plan = EchoPlan {
        flow: FLOW,
        count: script.count.map(u64::from),
        pacing: script.spacing_us.map_or(Pacing::Pipeline(script.depth.into()), |us| Pacing::Even(Span::from_micros(us.into()))),
        length,
        response,
        patience: Span::from_micros(script.patience_us.into()),
        start: Mono(script.start.into()),
    };
    let Ok(train) = EchoTrain::new(plan) else { return };
    let mut driver = Driver { train, now: Mono(0), sent: Vec::new(), out: vec![0; length], response };
    for step in &script.steps {
        driver.carry_out(step);
        driver.poll();
    }
    driver.wind_down();
});

struct Driver {
    train: EchoTrain,
    now: Mono,
    /// Number and send time of each request.
    sent: Vec<(u64, u64)>,
    out: Vec<u8>,
    response: usize,
}

impl Driver {
    fn carry_out(&mut self, step: &Step) {
        let (tag, sent_at) = self.request(step).unwrap_or_default();
        match step {
            Step::Wait(us) => self.now += Span::from_micros((*us).into()),
            Step::Leap(to) => self.now = self.now.max(Mono(*to)),
            Step::Stop => self.train.handle(self.now, Input::Stop),
            Step::Answer { held_us, forged, ttl, .. } => {
                let bytes = self.answer(tag, forged.unwrap_or(sent_at), *held_us);
                self.datagram(&bytes, self.now, *ttl);
            }
            Step::Raw(bytes, at) => self.datagram(bytes, Mono(*at), None),
            Step::Handed { at, .. } => self.train.handle(self.now, Input::Handed { tag, at: Mono(*at) }),
            Step::Sent { at, .. } => {
                self.train.handle(self.now, Input::Sent { tag, tx: Stamp::application(Mono(*at)) });
            }
            Step::NotSent { too_big, .. } => {
                let why = too_big.map_or(NotSent::QueueFull, |_| NotSent::TooBig(None));
                self.train.handle(self.now, Input::NotSent { tag, why });
            }
        }
        self.check();
    }

    /// The request that a step is about: so many back from the last.
    fn request(&self, step: &Step) -> Option<(u64, u64)> {
        let (Step::Answer { back, .. }
        | Step::Handed { back, .. }
        | Step::Sent { back, .. }
        | Step::NotSent { back, .. }) = step
        else {
            return None;
        };
        self.sent.iter().rev().nth((*back).into()).copied()
    }

    fn answer(&self, seq: u64, sent_at: u64, held_us: u16) -> Vec<u8> {
        let length = self.out.len();
        let mut bytes = vec![0; length.max(self.response)];
        echo::emit_request(&mut bytes[..length], FLOW, seq, sent_at);
        let received_at = RemoteMono(sent_at);
        let answered_at = RemoteMono(sent_at.wrapping_add(u64::from(held_us) * 1000));
        let stamps = EchoStamps { received_at, answered_at, ttl: 64, kernel_stamp: true };
        echo::answer(&mut bytes, length, self.response, FLOW, &stamps).unwrap();
        bytes.truncate(self.response);
        bytes
    }

    fn datagram(&mut self, bytes: &[u8], at: Mono, ttl: Option<u8>) {
        self.train.handle(self.now, Input::Datagram { bytes, rx: Stamp::application(at), ttl });
    }

    /// Polls as a driver does, up to a bound: at a spacing of 1 us a leap of the clock asks for
    /// billions.
    fn poll(&mut self) {
        for _ in 0..300 {
            match self.train.poll(self.now, &mut self.out) {
                Output::Send { len, tag, .. } => {
                    let header = echo::parse_request(&self.out[..len]).unwrap();
                    let next = self.sent.len() as u64 + 1;
                    let number = echo::number_from(header.seq, echo::number_bits(len), next);
                    assert_eq!((number, header.kind), (Some(tag), Kind::EchoRequest));
                    self.sent.push((tag, header.sent_at));
                }
                Output::Event(_) => {}
                Output::Train { .. } => panic!("an echo train sends one by one"),
                Output::Wait(_) | Output::Done => break,
            }
            self.check();
        }
    }

    fn check(&self) {
        let counts = self.train.counts();
        let settled = counts.not_sent + counts.received + counts.lost + counts.abandoned;
        assert_eq!(counts.asked, settled + counts.outstanding, "{counts:?}");
        assert!(counts.outstanding <= EchoPlan::MOST_OUTSTANDING as u64, "{counts:?}");
        assert!(counts.late <= counts.lost, "{counts:?}");
    }

    fn wind_down(&mut self) {
        self.train.handle(self.now, Input::Stop);
        // Beyond any patience and any linger.
        self.now += Span::from_secs(10_000);
        let most = 4 * (self.sent.len() + 100_000);
        for _ in 0..most {
            match self.train.poll(self.now, &mut self.out) {
                Output::Done => {
                    assert_eq!(self.train.counts().outstanding, 0);
                    return;
                }
                Output::Event(_) => {}
                other => panic!("{other:?} after the end"),
            }
        }
        panic!("never done");
    }
}
