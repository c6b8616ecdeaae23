//! Looks after a sender's stream while its bytes travel: switches when that is due, follows what
//! switches gain, tells how far it is.

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_stream::{CannotSwitch, DualStream, Event};
use netaware_units::{Mono, Span};

use crate::error::Broken;
use crate::gains::{Gains, Switch};
use crate::report::{Decided, Progress};
use crate::switching::{SwitchPlan, Switching};

pub(crate) struct Watch<'a> {
    stop: &'a StopFlag,
    progress: &'a mut dyn FnMut(Progress),
    switching: Switching,
    gains: Gains,
    began_at: Mono,
    pub(crate) switches: Vec<Switch>,
    pub(crate) decisions: Vec<Decided>,
    /// Bytes of entries of which nothing more has to be sent.
    pub(crate) settled: u64,
    /// Bytes of the file under way that the stream was given.
    pub(crate) position: u64,
    pub(crate) total: u64,
    /// When the receiver last acknowledged something new.
    pub(crate) moved_at: Mono,
    acked: u64,
    /// Bytes that the stream was given and the receiver may not have.
    pub(crate) unacknowledged: u64,
    /// Bytes of files go over this stream; greetings alone get nobody on.
    flows: bool,
    looked_at: Mono,
    told_at: Mono,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(
        plan: &SwitchPlan,
        total: u64,
        stop: &'a StopFlag,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Self {
        let now = clock::now();
        Self {
            stop,
            progress,
            switching: Switching::new(plan),
            gains: Gains::new(now),
            began_at: now,
            switches: Vec::new(),
            decisions: Vec::new(),
            settled: 0,
            position: 0,
            total,
            moved_at: now,
            acked: 0,
            unacknowledged: 0,
            flows: false,
            looked_at: Mono(0),
            told_at: Mono(0),
        }
    }

    /// The bytes of a file are about to go from there on.
    pub(crate) fn begin(&mut self, position: u64) {
        self.position = position;
        self.flows = true;
        self.switching.begin(self.settled + position, self.total);
    }

    pub(crate) fn tell(&mut self, progress: Progress) {
        (self.progress)(progress);
    }

    /// # Errors
    /// It was told to stop.
    pub(crate) fn look(&mut self, stream: &DualStream) -> Result<(), Broken> {
        let now = clock::now();
        if now - self.looked_at < EVERY {
            return Ok(());
        }
        self.looked_at = now;
        let status = stream.status();
        if status.acknowledged > self.acked && self.flows {
            self.moved_at = now;
        }
        // What happened was before this look: with what was acknowledged at the last one, or the
        // end of a stall would hide it.
        for happened in stream.happened() {
            match happened.event {
                Event::Turning { from, to, reason, .. } => {
                    self.gains.turning(happened.at, self.acked, from, to, reason);
                }
                Event::Turned { .. } => self.gains.turned(happened.at, self.acked),
                _ => {}
            }
        }
        (self.acked, self.unacknowledged) = (status.acknowledged, status.unacknowledged);
        self.gains.observe(now, self.acked);
        self.tell_decisions(stream);
        self.tell_switches();
        // The stream holds what it was given until the peer has it; the few bytes around the files
        // count as theirs.
        let done = (self.settled + self.position).saturating_sub(status.unacknowledged);
        if let Some(current) = status.current
            && let Some(to) = self.switching.due(done, self.total, current)
        {
            match stream.switch(to) {
                Ok(_) => self.switching.asked(done, self.total),
                Err(CannotSwitch::Down | CannotSwitch::Held | CannotSwitch::Over) => {}
            }
        }
        if now - self.told_at >= TOLD_EVERY {
            self.told_at = now;
            let rate = self.gains.rate(now, self.acked);
            (self.progress)(Progress::Moved { done, bytes: self.total, rate, via: status.current });
        }
        if self.stop.is_raised() { Err(Broken::Stopped) } else { Ok(()) }
    }

    /// The last ones of a stream are told with its last look.
    fn tell_decisions(&mut self, stream: &DualStream) {
        for decision in stream.decisions() {
            let decided = Decided { at: (decision.at - self.began_at).or_zero(), decision };
            if self.decisions.len() < MOST_SWITCHES {
                self.decisions.push(decided);
            }
            (self.progress)(Progress::Decided(decided));
        }
    }

    fn tell_switches(&mut self) {
        for switch in self.gains.take() {
            if self.switches.len() < MOST_SWITCHES {
                self.switches.push(switch);
            }
            (self.progress)(Progress::Switched(switch));
        }
    }

    /// The stream is over.
    pub(crate) fn restart(&mut self) {
        self.gains.restart(clock::now(), self.acked);
        (self.acked, self.unacknowledged, self.flows) = (0, 0, false);
        self.tell_switches();
    }

    /// Shares at which it should have switched.
    pub(crate) fn missed(&self) -> Vec<f64> {
        self.switching.missed()
    }
}

const EVERY: Span = Span::from_millis(5);
const TOLD_EVERY: Span = Span::from_millis(100);
/// Kept for the report, and as many decisions.
const MOST_SWITCHES: usize = 10_000;
