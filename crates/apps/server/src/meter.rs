//! Holds echo tests to the owner's caps while they run: the rate for all of them together
//! ([`Allowance`]), the bytes for each.
//!
//! What comes too soon waits where it can, on a TCP connection or a WebSocket, and has no answer
//! over UDP. These requests are counted, so that their prober knows that the network did not lose
//! them. A responder without caps has no meters.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_pool::Site;
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::Limits;

use crate::allowance::Allowance;
use crate::context::Events;
use crate::event::Event;
use crate::plan::Cap;

/// The caps on echoes, which all tests share.
#[derive(Debug)]
pub(crate) struct EchoCaps {
    rate: Option<Mutex<Allowance>>,
    bytes: Option<ByteCount>,
}

impl EchoCaps {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { rate: limits.rate.map(|rate| Mutex::new(Allowance::new(rate))), bytes: limits.bytes }
    }

    /// What counts an echo test of a prober at this address; `None` where there is no cap.
    pub(crate) fn meter(self: &Arc<Self>, prober: IpAddr, test: u32, events: Events) -> Option<Arc<Meter>> {
        let is_capped = self.rate.is_some() || self.bytes.is_some();
        is_capped.then(|| {
            Arc::new(Meter {
                caps: Arc::clone(self),
                site: Site::of(prober),
                test,
                events,
                moved: AtomicU64::new(0),
                held_back: AtomicU64::new(0),
                told: [AtomicBool::new(false), AtomicBool::new(false)],
            })
        })
    }
}

/// Counts one echo test against the caps.
#[derive(Debug)]
pub(crate) struct Meter {
    caps: Arc<EchoCaps>,
    site: Site,
    test: u32,
    events: Events,
    /// Bytes of exchanges, where there is a cap on them.
    moved: AtomicU64,
    /// Requests over UDP that were not answered.
    held_back: AtomicU64,
    /// The session knows that this cap was reached.
    told: [AtomicBool; 2],
}

/// Whether an exchange may take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Now,
    /// To be asked again then.
    After(Span),
    /// The test has moved all that it may.
    Never,
}

impl Meter {
    /// Whether a request that has come over UDP is answered now. One that is not is counted.
    pub(crate) fn passes(&self, now: Mono, bytes: usize) -> bool {
        let passes = self.judge(now, bytes as u64) == Verdict::Now;
        if !passes {
            self.held_back.fetch_add(1, Ordering::AcqRel);
        }
        passes
    }

    /// Requests that were not answered because of a cap.
    pub(crate) fn held_back(&self) -> u64 {
        self.held_back.load(Ordering::Acquire)
    }

    /// Waits until an exchange may take place; `false` if it never may.
    pub(crate) async fn admits(&self, bytes: usize) -> bool {
        loop {
            match self.judge(clock::now(), bytes as u64) {
                Verdict::Now => return true,
                Verdict::Never => return false,
                Verdict::After(span) => tokio::time::sleep(pause(span).to_std()).await,
            }
        }
    }

    fn judge(&self, now: Mono, bytes: u64) -> Verdict {
        if self.is_over_bytes(self.moved.load(Ordering::Acquire), bytes) {
            return self.reached(Cap::Bytes, Verdict::Never);
        }
        if let Some(allowance) = &self.caps.rate {
            // Every change is one call, so a thread that panicked left nothing half done.
            let taken = allowance.lock().unwrap_or_else(PoisonError::into_inner).take(now, self.site, bytes);
            if let Err(wait) = taken {
                return self.reached(Cap::Rate, Verdict::After(wait));
            }
        }
        // Another connection of the same test may have been as far.
        if self.caps.bytes.is_some()
            && self.is_over_bytes(self.moved.fetch_add(bytes, Ordering::AcqRel), bytes)
        {
            return self.reached(Cap::Bytes, Verdict::Never);
        }
        Verdict::Now
    }

    fn is_over_bytes(&self, moved: u64, more: u64) -> bool {
        self.caps.bytes.is_some_and(|cap| moved.saturating_add(more) > cap.0)
    }

    /// Reports to the session once that the cap was reached.
    fn reached(&self, cap: Cap, verdict: Verdict) -> Verdict {
        if !self.told[cap as usize].swap(true, Ordering::AcqRel) {
            // A session that is gone needs no news.
            let _ = self.events.send(Event::CapReached { test: self.test, cap });
        }
        verdict
    }
}

/// How a thread that answers on a connection asks before it does.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    pub(crate) meter: Option<Arc<Meter>>,
    /// The test is over.
    pub(crate) over: StopFlag,
}

impl Gate {
    /// Waits until an exchange of so many bytes may take place.
    ///
    /// # Errors
    /// It never may, or the test is over.
    pub(crate) fn wait(&self, bytes: usize) -> io::Result<()> {
        let Some(meter) = &self.meter else { return Ok(()) };
        loop {
            match meter.judge(clock::now(), bytes as u64) {
                Verdict::Now => return Ok(()),
                Verdict::After(span) if !self.over.is_raised() => clock::sleep(pause(span)),
                Verdict::After(_) | Verdict::Never => return Err(io::ErrorKind::PermissionDenied.into()),
            }
        }
    }
}

/// Others may leave room meanwhile, and the test may end.
fn pause(span: Span) -> Span {
    Span(span.0.clamp(SHORTEST_PAUSE.0, LONGEST_PAUSE.0))
}

const SHORTEST_PAUSE: Span = Span::from_millis(1);
const LONGEST_PAUSE: Span = Span::from_millis(50);

#[cfg(test)]
mod tests {
    use netaware_units::BitRate;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const T0: Mono = Mono(1_000_000_000_000);

    fn metered(limits: Limits) -> (Arc<Meter>, UnboundedReceiver<Event>) {
        let (events, inbox) = unbounded_channel();
        let prober = IpAddr::from([192, 0, 2, 1]);
        (Arc::new(EchoCaps::new(&limits)).meter(prober, 7, events).unwrap(), inbox)
    }

    fn told(inbox: &mut UnboundedReceiver<Event>) -> Vec<Cap> {
        std::iter::from_fn(|| inbox.try_recv().ok())
            .map(|event| match event {
                Event::CapReached { test: 7, cap } => cap,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn without_caps_nothing_is_counted() {
        let (events, _inbox) = unbounded_channel();
        let caps = Arc::new(EchoCaps::new(&Limits::default()));
        assert!(caps.meter(IpAddr::from([192, 0, 2, 1]), 7, events).is_none());
        assert!(Gate::default().wait(usize::MAX).is_ok());
    }

    #[test]
    fn a_flood_of_requests_draws_no_more_than_the_cap_and_is_counted_and_told_once() {
        let (meter, mut inbox) = metered(Limits { rate: Some(BitRate(8_000_000)), ..Limits::default() });
        // A second of 1.3 Gbit/s in requests of 1500 bytes, answered at the same length.
        let requests = 108_000_u64;
        let passed = (0..requests)
            .filter(|n| meter.passes(T0 + Span((n * 1_000_000_000 / requests) as i64), 3000))
            .count() as u64;
        assert!((333..=667).contains(&passed), "{passed}");
        assert_eq!(meter.held_back(), requests - passed);
        assert_eq!(told(&mut inbox), [Cap::Rate]);
    }

    #[test]
    fn an_echo_test_moves_no_more_bytes_than_a_transfer_may() {
        let (meter, mut inbox) = metered(Limits { bytes: Some(ByteCount(10_000)), ..Limits::default() });
        let passed = (0..100).filter(|_| meter.passes(T0, 3000)).count();
        assert_eq!((passed, meter.held_back()), (3, 97));
        assert_eq!(told(&mut inbox), [Cap::Bytes]);
        let gate = Gate { meter: Some(meter), over: StopFlag::new() };
        assert!(gate.wait(1000).is_ok(), "what is left");
        assert!(gate.wait(1).is_err());
    }

    #[test]
    fn a_thread_does_not_wait_beyond_the_end_of_its_test() {
        let (meter, _inbox) = metered(Limits { rate: Some(BitRate(0)), ..Limits::default() });
        let gate = Gate { meter: Some(meter), over: StopFlag::new() };
        gate.over.raise();
        assert!(gate.wait(1).is_err());
    }
}
