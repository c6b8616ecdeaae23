//! Many bytes while the stream is switched and its connections fail at random: all of them come,
//! and nothing grows.
//!
//! ```text
//!   sender ══ bytes of a seed ══► stream (IPv4 + IPv6 over veth) ══► SHA-256 ══ same? ══ SHA-256 of what was sent
//!     │ at random bytes: a wish of either end              ▲
//!     └ at random bytes: a failure, ended at random ───────┘      backwards, at once: a sixteenth as many
//! ```
//!
//! The short run is part of the gate, the long one of nightly: it takes some ten minutes. `SEED=n`
//! repeats a run's plan.

mod chance;
mod failures;
mod memory;

use std::io::Write as _;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use chance::Chance;
use failures::Failures;
use memory::Memory;
use netaware_io::clock;
use netaware_netns::{Pair, permitted};
use netaware_stream::{DualListener, DualStream, Event, Options, Outcome, Standing};
use netaware_units::{Mono, Span};
use sha2::{Digest, Sha256};

const PORT: u16 = 4447;
const BLOCK: usize = 64 * 1024;
/// The window of each end, bytes: an end keeps no more than this to send again.
const WINDOW: u32 = 4 << 20;
const PAUSE: Span = Span::from_millis(4);
/// No run takes as long, whatever fails.
const LONGEST: Span = Span::from_secs(3600);

/// How much of everything.
#[derive(Debug, Clone, Copy)]
struct Plan {
    seed: u64,
    bytes: u64,
    wishes: usize,
    /// So many wishes are granted at least. The others meet a failure or each other.
    granted: usize,
    failures: usize,
}

impl Plan {
    /// Nothing is planned for what is left after this place.
    fn is_near_end(&self, before: u64) -> bool {
        before > self.bytes / 20 * 19
    }
}

#[test]
fn a_sixteenth_of_a_gibibyte_with_twenty_switches_and_a_failure_of_each_kind() {
    run(Plan { seed: seed(), bytes: 64 << 20, wishes: 20, granted: 10, failures: failures::KINDS.len() });
}

#[test]
#[ignore = "long: 10 minutes"]
fn ten_gibibytes_with_a_thousand_switches_and_a_hundred_failures() {
    run(Plan { seed: seed(), bytes: 10 << 30, wishes: 1000, granted: 600, failures: 100 });
}

/// Another one each time, and printed, unless the environment has one.
fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| clock::now().0 as u64 % 1_000_000)
}

fn run(plan: Plan) {
    if !permitted() {
        return;
    }
    println!("{plan:?}");
    let began_at = clock::now();
    let pair = Pair::new("endurance").unwrap();
    let (opener, acceptor, _listener) = ends(&pair);
    let mut events = Events::default();
    let sent = AtomicU64::new(0);
    let failures = Failures::plan(&mut Chance::new(plan.seed), plan.failures, plan.bytes);
    let mut wishes = Wishes::new(plan);
    let (first, second, done, memory) = thread::scope(|scope| {
        let receives = scope.spawn(|| receive(&acceptor));
        let backwards = scope.spawn(|| send(&acceptor, plan.seed + 1, plan.bytes / 16, |_| {}));
        let comes_back = scope.spawn(|| receive(&opener));
        let failing = scope.spawn(|| failures.happen(&pair, [&opener, &acceptor], &sent));
        let mut memory = Memory::default();
        // What goes wrong here must not leave the other threads waiting.
        let _here = failures.take_part();
        let hash = send(&opener, plan.seed, plan.bytes, |before| {
            sent.store(before, Ordering::Release);
            failures.wait_for_turn(before);
            wishes.at(before, [&opener, &acceptor]);
            // Those that failures have put off have only the last blocks to be made in.
            while plan.is_near_end(before) && wishes.are_late(before) && clock::now() < began_at + LONGEST {
                clock::sleep_until(clock::now() + PAUSE);
                wishes.at(before, [&opener, &acceptor]);
            }
            if failures.is_under_way() || wishes.are_late(before) {
                // A second without one of the versions is to be a part of the bytes, not most of
                // them.
                clock::sleep_until(clock::now() + PAUSE);
            }
            memory.at(before, plan.bytes);
            events.take([&opener, &acceptor]);
        });
        sent.store(plan.bytes, Ordering::Release);
        let first = (hash, receives.join().unwrap());
        let second = (backwards.join().unwrap(), comes_back.join().unwrap());
        (first, second, failing.join().unwrap(), memory)
    });
    let until = clock::now() + Span::from_secs(60);
    opener.finish(until).unwrap();
    acceptor.finish(until).unwrap();
    events.take([&opener, &acceptor]);
    println!("{} in {}", hex(&first.0), clock::now() - began_at);
    println!("{} at the other end", hex(&first.1.0));
    println!("failures: {done}");
    println!("{events:?}");
    println!("{memory}");
    assert_eq!(first.1, (first.0.clone(), plan.bytes), "forwards");
    assert_eq!(second.1, (second.0.clone(), plan.bytes / 16), "backwards");
    assert_eq!(done.happened, plan.failures);
    assert!(wishes.due.is_empty(), "wishes that were not made: {:?}", wishes.due);
    assert_eq!(events.wishes_ended(), plan.wishes, "a wish without an end: {events:?}");
    assert!(events.granted >= plan.granted, "{events:?}");
    memory.assert_flat();
}

/// Both ends, in namespaces of their own, with both connections up.
fn ends(pair: &Pair) -> (DualStream, DualStream, DualListener) {
    let options = || Options { window: WINDOW, ..Options::default() };
    let listener = pair.right().within(|| DualListener::bind(PORT, options())).unwrap();
    let right = pair.right();
    let addresses = [SocketAddr::from((right.v6(), PORT)), SocketAddr::from((right.v4(), PORT))];
    let connect = || DualStream::connect_to("right", &addresses, options()).map_err(std::io::Error::other);
    let opener = pair.left().within(connect).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    both_up([&opener, &acceptor], clock::now() + Span::from_secs(10)).unwrap();
    (opener, acceptor, listener)
}

/// Waits until all four ends of connections are up, or none is needed any more; how long that took.
fn both_up(ends: [&DualStream; 2], until: Mono) -> Result<Span, String> {
    let from = clock::now();
    loop {
        let status = ends.map(DualStream::status);
        let now = clock::now();
        let over = status.iter().all(|status| status.standing == Standing::Finished);
        if over || status.iter().all(|status| status.v4.is_some() && status.v6.is_some()) {
            return Ok(now - from);
        }
        if now > until {
            return Err(format!("a connection does not come back: {status:#?}"));
        }
        clock::sleep_until(now + Span::from_millis(2));
    }
}

/// Sends the bytes of a seed; the hash of them. `meanwhile` is told how many went before each
/// block.
fn send(stream: &DualStream, seed: u64, bytes: u64, mut meanwhile: impl FnMut(u64)) -> Vec<u8> {
    let (mut chance, mut hash) = (Chance::new(seed), Sha256::new());
    let mut block = vec![0; BLOCK];
    let mut before = 0;
    while before < bytes {
        meanwhile(before);
        chance.fill(&mut block);
        let most = (bytes - before).min(BLOCK as u64) as usize;
        hash.update(&block[..most]);
        (&*stream).write_all(&block[..most]).unwrap();
        before += most as u64;
    }
    stream.shutdown(Shutdown::Write);
    hash.finalize().to_vec()
}

/// The longest time without any byte, whatever fails.
const MAX_SILENCE: Span = Span::from_secs(120);

/// Reads to the end: the hash, and how many bytes there were.
fn receive(stream: &DualStream) -> (Vec<u8>, u64) {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut buffer = vec![0; BLOCK];
    loop {
        match stream.recv_until(&mut buffer, Some(clock::now() + MAX_SILENCE)).unwrap() {
            0 => return (hash.finalize().to_vec(), bytes),
            count => {
                hash.update(&buffer[..count]);
                bytes += count as u64;
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Wishes at random bytes, of a random end, for the version that it does not use.
struct Wishes {
    chance: Chance,
    /// Later ones first.
    due: Vec<u64>,
    /// The last number of either end.
    last: [u32; 2],
}

impl Wishes {
    fn new(plan: Plan) -> Self {
        let mut chance = Chance::new(plan.seed ^ 0x5717_c4e5);
        let due = chance.places(plan.wishes, plan.bytes);
        Self { chance, due, last: [0; 2] }
    }

    /// Whether some have to be made before the bytes end.
    fn are_late(&self, before: u64) -> bool {
        self.due.last().is_some_and(|due| *due <= before)
    }

    /// One that cannot be had now is made at the next block.
    fn at(&mut self, before: u64, ends: [&DualStream; 2]) {
        while self.due.last().is_some_and(|due| *due <= before) {
            let which = self.chance.below(2) as usize;
            let Some(current) = ends[which].status().current else { return };
            match ends[which].switch(current.other()) {
                // The same number is the same wish, which has no answer yet.
                Ok(number) if number > self.last[which] => self.last[which] = number,
                _ => return,
            }
            self.due.pop();
        }
    }
}

/// What both ends have told.
#[derive(Debug, Default)]
struct Events {
    granted: usize,
    crossed: usize,
    down: usize,
    superseded: usize,
    held: usize,
    over: usize,
    /// Of either direction.
    turned: usize,
    connections_lost: usize,
    connections_made: usize,
    /// Bytes sent once more.
    again: u64,
}

impl Events {
    fn take(&mut self, ends: [&DualStream; 2]) {
        for happened in ends.iter().flat_map(|end| end.happened()) {
            match happened.event {
                Event::WishEnded { outcome, .. } => match outcome {
                    Outcome::Granted => self.granted += 1,
                    Outcome::Crossed => self.crossed += 1,
                    Outcome::Down => self.down += 1,
                    Outcome::Superseded => self.superseded += 1,
                    Outcome::Held => self.held += 1,
                    Outcome::Over => self.over += 1,
                },
                Event::Turning { again, .. } => {
                    self.turned += 1;
                    self.again += again;
                }
                Event::Down { .. } => self.connections_lost += 1,
                Event::Up { .. } => self.connections_made += 1,
                Event::Turned { .. } | Event::Pong { .. } => {}
            }
        }
    }

    fn wishes_ended(&self) -> usize {
        self.granted + self.crossed + self.down + self.superseded + self.held + self.over
    }
}
