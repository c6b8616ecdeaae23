//! What happens when something goes wrong: strangers on the port, keys, versions, deaths on either
//! side, garbage, a full disk. Everything runs on loopback, without root unless it says so, and
//! ends by itself.

mod clock_step;
mod dead_responder;
mod endings;
mod future;
mod garbage;
mod keys;
mod middle;
mod rebinding;
mod slow;
mod store;
mod strangers;
mod suspended;
mod unwanted;
mod vanished;

use netaware_io::clock;
use netaware_testkit::program::{Program, Responder};
use netaware_units::{Mono, Span};

/// Waits until a program with `--format ndjson` has measured something: for its first interval, or
/// half a second of `latency`, which prints none.
fn until_it_measures(prober: &Program, command: &str) {
    if command == "latency" {
        until_it_prints(prober, r#""what":"latency""#);
        clock::sleep(Span::from_millis(500));
    } else {
        until_it_prints(prober, r#""event":"interval""#);
    }
}

/// Waits until a program has printed this.
fn until_it_prints(program: &Program, words: &str) {
    let due = clock::now() + Span::from_secs(15);
    while !program.printed().contains(words) {
        assert!(
            clock::now() < due,
            "no '{words}' within 15 s: {} {}",
            program.printed(),
            program.complained()
        );
        clock::sleep(Span::from_millis(5));
    }
}

/// Waits until a program has said this on stderr.
fn until_it_says(program: &Program, words: &str) {
    let due = clock::now() + Span::from_secs(10);
    while !program.complained().contains(words) {
        assert!(clock::now() < due, "no '{words}' within 10 s: {}", program.complained());
        clock::sleep(Span::from_millis(5));
    }
}

/// Runs a case for each item, all at the same time: each mostly waits.
fn side_by_side<T: Send>(items: impl IntoIterator<Item = T>, case: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for item in items {
            scope.spawn(|| case(item));
        }
    });
}

/// What a process holds of the system.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Holdings {
    files: usize,
    threads: usize,
}

impl Holdings {
    fn of(responder: &Responder) -> Self {
        let count =
            |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", responder.id())).unwrap().count();
        Self { files: count("fd"), threads: count("task") }
    }

    fn within(self, other: Self) -> bool {
        self.files <= other.files && self.threads <= other.threads
    }
}

/// Waits until the responder holds no more than `idle`; without it, until what it holds has been
/// the same for 300 ms.
fn settles(responder: &Responder, idle: Option<Holdings>, due: Mono) {
    let (mut last, mut since) = (Holdings::of(responder), clock::now());
    loop {
        let held = Holdings::of(responder);
        if held != last {
            (last, since) = (held, clock::now());
        }
        match idle {
            Some(idle) if held.within(idle) => return,
            None if clock::now() - since > Span::from_millis(300) => return,
            _ => assert!(clock::now() < due, "still holds {held:?}, idle it held {idle:?}"),
        }
        clock::sleep(Span::from_millis(20));
    }
}
