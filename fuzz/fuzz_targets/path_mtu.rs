//! A path that answers, refuses and lies as it likes: the search ends within its budget and finds
//! no size that was never answered.
#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use netaware_engine::{Engine, Input, NotSent, Output};
use netaware_probe::{PathMtuPlan, PathMtuSearch};
use netaware_record::IpVersion;
use netaware_units::{ByteCount, Mono, RemoteMono, Span, Stamp};
use netaware_wire::datagram::{EchoStamps, Header};

#[derive(Debug, arbitrary::Arbitrary)]
struct Script {
    six: bool,
    believed: u32,
    timeout_us: u32,
    fates: Vec<Fate>,
}

#[derive(Debug, arbitrary::Arbitrary)]
enum Fate {
    Answered,
    AnsweredLate(u32),
    Silent,
    TooBig(Option<u16>),
    Refused(i32),
    Forged(Vec<u8>),
}

const BUDGET: Span = Span::from_secs(20);

fuzz_target!(|script: Script| {
    let plan = PathMtuPlan {
        flow: 1,
        version: if script.six { IpVersion::V6 } else { IpVersion::V4 },
        believed: script.believed,
        timeout: Span::from_micros(script.timeout_us.into()),
        budget: BUDGET,
        start: Mono(0),
    };
    let mut path = Path { search: PathMtuSearch::new(plan), now: Mono(0), late: Vec::new(), answered: 0 };
    let mut out = vec![0; plan.longest_datagram()];
    let mut fates = script.fates.iter();
    let mut found = None;
    for _ in 0..100_000 {
        match path.search.poll(path.now, &mut out) {
            Output::Send { len, tag, .. } => path.carry(&out[..len], tag, fates.next()),
            Output::Event(result) => {
                assert!(found.replace(result).is_none(), "one result");
                assert!(
                    result.mtu.is_none() || path.answered > 0,
                    "{result:?} although nothing was answered"
                );
            }
            Output::Wait(until) => path.pass_time(until),
            Output::Done => {
                assert!(found.is_some(), "done without a result");
                return;
            }
            Output::Train { .. } => panic!("a search sends one by one"),
        }
    }
    panic!("never done");
});

struct Path {
    search: PathMtuSearch,
    now: Mono,
    late: Vec<(Mono, Vec<u8>)>,
    answered: u32,
}

impl Path {
    fn carry(&mut self, request: &[u8], tag: u64, fate: Option<&Fate>) {
        let why = match fate {
            Some(Fate::TooBig(mtu)) => Some(NotSent::TooBig(mtu.map(|mtu| ByteCount(mtu.into())))),
            Some(Fate::Refused(errno)) => Some(NotSent::Refused(*errno)),
            _ => None,
        };
        if let Some(why) = why {
            return self.search.handle(self.now, Input::NotSent { tag, why });
        }
        self.search.handle(self.now, Input::Sent { tag, tx: Stamp::application(self.now) });
        match fate {
            Some(Fate::Answered) => self.deliver(&answer(request)),
            Some(Fate::AnsweredLate(us)) => {
                self.late.push((self.now + Span::from_micros((*us).into()), answer(request)));
            }
            Some(Fate::Forged(bytes)) => self.deliver(bytes),
            _ => {}
        }
    }

    fn pass_time(&mut self, until: Mono) {
        assert!(until > self.now, "waits for the past: {until:?} at {:?}", self.now);
        assert!(until <= Mono(0) + BUDGET + Span::from_secs(1), "waits beyond its budget");
        self.now = until;
        let now = self.now;
        let (due, later) = std::mem::take(&mut self.late).into_iter().partition(|(at, _)| *at <= now);
        self.late = later;
        let due: Vec<(Mono, Vec<u8>)> = due;
        due.iter().for_each(|(_, bytes)| self.deliver(bytes));
        self.search.handle(self.now, Input::Wake);
    }

    fn deliver(&mut self, bytes: &[u8]) {
        self.answered += 1;
        let rx = Stamp::application(self.now);
        self.search.handle(self.now, Input::Datagram { bytes, rx, ttl: None });
    }
}

fn answer(request: &[u8]) -> Vec<u8> {
    let mut bytes = request.to_vec();
    assert!(Header::parse(&bytes).is_ok());
    let stamps =
        EchoStamps { received_at: RemoteMono(1), answered_at: RemoteMono(2), ttl: 64, kernel_stamp: false };
    stamps.answer(&mut bytes).unwrap();
    bytes
}
