//! Who works for a stream when nobody is in a call: acknowledges, answers wishes, notices failures,
//! connects anew and sees a stream that was let go to its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use netaware_dual::connect::Wanted;
use netaware_dual::{Side, Standing};
use netaware_io::clock;
use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::dual::Join;

use crate::draining::{Draining, MOST_PATIENCE, STEP};
use crate::leader::Who;
use crate::opening;
use crate::shared::Shared;
use crate::state::{QUIET, State};
use crate::threads;

/// Begins to keep a stream; ends with it.
pub(crate) fn start(shared: Arc<Shared>) -> io::Result<()> {
    // What the first attempts have left undone is theirs for a while.
    let first = || Try { next_at: Some(clock::now() + FIRST_RETRY), ..Try::default() };
    let keeper = Keeper { shared, tries: [first(), first()], draining: None };
    let keeps = Arc::downgrade(&keeper.shared);
    threads::start("dual-keeper", Some(keeps), move || keeper.run())
}

struct Keeper {
    shared: Arc<Shared>,
    tries: [Try; 2],
    /// Since the last holder is gone.
    draining: Option<Draining>,
}

/// Attempts to have a connection again.
#[derive(Debug, Default)]
struct Try {
    /// Since there was one.
    failed: u32,
    next_at: Option<Mono>,
    under_way: Arc<AtomicBool>,
}

impl Keeper {
    fn run(mut self) {
        loop {
            let shared = self.shared.clone();
            let state = shared.lock();
            let now = clock::now();
            if state.is_called(now) {
                let pause = if state.calls > 0 { BUSY } else { QUIET };
                drop(state);
                clock::sleep_until(now + pause);
            } else {
                let (wake_at, lingers) = (now + PATROL, self.draining.is_some());
                let over = |state: &State, _| (!lingers || threads::is_ending()) && is_over(state);
                let mut state = shared.drive(state, Who::Keeper, None, Some(wake_at), over);
                if state.released && self.is_done(&state) {
                    if state.stream.standing() == Standing::Open {
                        // Nobody reads what the peer may yet send.
                        state.stream.abandon();
                        state.write(clock::now());
                    }
                    return;
                }
            }
            self.patrol();
        }
    }

    /// What the holders of a stream do not see to.
    fn patrol(&mut self) {
        let now = clock::now();
        let mut missing = Vec::new();
        {
            let mut state = self.shared.lock();
            if state.released {
                // Nobody reads any more: what comes is dropped, so that the peer's end comes too.
                let unread = state.stream.unread();
                state.stream.consumed(now, unread);
                state.inbox.skip(unread);
            }
            let alone = state.alone_since.is_some_and(|since| now - since > self.shared.options.patience);
            if alone && state.failure.is_none() && state.stream.standing() == Standing::Open {
                state.failure = Some("no connection came up in time".to_owned());
                state.stream.abandon();
                drop(state);
                self.shared.call_back();
                return;
            }
            if self.shared.side == Side::Opener && state.stream.standing() == Standing::Open {
                for (one, _) in self.tries.iter_mut().zip(&state.links).filter(|(_, link)| link.is_some()) {
                    // The next failure is another one's.
                    (one.failed, one.next_at) = (0, None);
                }
                missing.extend(self.missing(&state, now));
            }
        }
        for ip in missing {
            self.connect(ip);
        }
        self.ask();
    }

    /// Asks the program's own policy, with nothing locked.
    fn ask(&self) {
        if !self.shared.judge.is_there() {
            return;
        }
        let evidence = self.shared.lock().evidence(clock::now());
        if let Some(evidence) = evidence {
            let choice = self.shared.judge.ask(&evidence);
            self.shared.lock().obey(clock::now(), choice);
            self.shared.call_back();
        }
    }

    fn missing(&self, state: &State, now: Mono) -> Vec<IpVersion> {
        let wanted = |ip: &IpVersion| match self.shared.options.wanted {
            Wanted::Each => true,
            Wanted::Only(only) => only == *ip,
            Wanted::First => state.alone_since.is_some(),
        };
        let due = |ip: &IpVersion| {
            let one = &self.tries[ip.index()];
            one.next_at.is_none_or(|at| at <= now) && !one.under_way.load(Ordering::Acquire)
        };
        let known = |ip: &IpVersion| self.shared.addresses[ip.index()].is_some();
        let down = |ip: &IpVersion| state.links[ip.index()].is_none();
        let both = [IpVersion::V4, IpVersion::V6];
        both.into_iter().filter(|ip| known(ip) && down(ip) && wanted(ip) && due(ip)).collect()
    }

    /// A try at a connection is a thread's, since it may take as long as it is given.
    fn connect(&mut self, ip: IpVersion) {
        let Some(address) = self.shared.addresses[ip.index()] else { return };
        let one = &mut self.tries[ip.index()];
        one.failed = (one.failed + 1).min(8);
        let pause = (RETRY * (1_i64 << (one.failed - 1))).min(LONGEST_RETRY);
        one.next_at = Some(clock::now() + pause);
        one.under_way.store(true, Ordering::Release);
        let (shared, under_way) = (self.shared.clone(), one.under_way.clone());
        let spawned = threads::start("dual-connect", None, move || {
            let joined = opening::connect(&shared, address, ip, Join::Existing);
            if let Ok((socket, generation, peer)) = joined {
                let _ = shared.join(socket, ip, generation, peer);
            }
            under_way.store(false, Ordering::Release);
        });
        if spawned.is_err() {
            one.under_way.store(false, Ordering::Release);
        }
    }

    fn is_done(&mut self, state: &State) -> bool {
        let now = clock::now();
        let acked = state.stream.acked();
        let draining = self.draining.get_or_insert_with(|| Draining::new(now, acked, STEP));
        draining.look(now, acked, state.kept.len());
        match state.stream.standing() {
            _ if threads::is_ending() && state.stream.is_delivered() => true,
            // An acceptor stays for a peer that may have missed the last acknowledgement.
            Standing::Finished if self.shared.side == Side::Acceptor => {
                now - draining.began_at > LINGER || state.links.iter().all(Option::is_none)
            }
            Standing::Finished | Standing::Broken(_) => true,
            Standing::Open => draining.is_stuck(now, MOST_PATIENCE),
        }
    }
}

fn is_over(state: &State) -> bool {
    let ending = threads::is_ending() && state.stream.is_delivered();
    state.released && (ending || state.stream.standing() != Standing::Open)
}

/// While somebody is in a call.
const BUSY: Span = Span::from_millis(20);
/// Between looks at what holders do not see to.
const PATROL: Span = Span::from_millis(250);
const FIRST_RETRY: Span = Span::from_secs(3);
const RETRY: Span = Span::from_millis(500);
const LONGEST_RETRY: Span = Span::from_secs(30);
const LINGER: Span = Span::from_secs(2);
