//! One version of IP within a session: whether it works, what it carried, what it lost and how long that took.

use std::collections::VecDeque;

use netaware_record::IpVersion;
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::dual::{Came, DatagramHead, Probe};

use super::delay::Delay;
use super::event::{Standing, VersionStatus};
use super::seen::{Arrival, Seen, extend};

#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) ip: IpVersion,
    pub(super) standing: Standing,
    /// What the acceptor wants to have repeated; zero before it said so.
    pub(super) cookie: Token,
    pub(super) greet_at: Mono,
    pub(super) greetings: u32,
    /// The opener has had an address of it.
    pub(super) reached: bool,
    /// The opener's hello is to be answered.
    pub(super) welcome_due: bool,
    sent: u64,
    confirmed_highest: u64,
    confirmed: u64,
    /// What was sent since the last that was told to have come, oldest first; some of it, and the newest of very much not.
    marks: VecDeque<Mark>,
    /// What was sent when it fell silent: only what was sent later proves that it works again.
    silent_after: u64,
    /// The time that silence has to last is doubled after each probe into it.
    silent_pause: Span,
    seen: Seen,
    repeated: u64,
    last: Option<(u32, Mono)>,
    delay: Delay,
    told_delay: Option<Span>,
    round_trip: Option<Span>,
    /// Counts samples of the round trip, so that a policy can tell a new one.
    pub(super) samples: u64,
    probe_at: Mono,
    probed_at: Option<Mono>,
    unreported_since: Option<Mono>,
    /// As the peer told at that time: highest and different ones.
    history: VecDeque<(Mono, u64, u64)>,
}

/// A datagram that is not told to have come, and when it went.
#[derive(Debug, Clone, Copy)]
struct Mark {
    sequence: u64,
    at: Mono,
    /// The first of the application's own from there to the next mark.
    data_at: Option<Mono>,
}

impl Path {
    pub(super) fn new(ip: IpVersion, now: Mono) -> Self {
        Self {
            ip,
            standing: Standing::Unused,
            cookie: Token::default(),
            greet_at: now,
            greetings: 0,
            reached: false,
            welcome_due: false,
            sent: 0,
            confirmed_highest: 0,
            confirmed: 0,
            marks: VecDeque::new(),
            silent_after: 0,
            silent_pause: Span::ZERO,
            seen: Seen::new(),
            repeated: 0,
            last: None,
            delay: Delay::default(),
            told_delay: None,
            round_trip: None,
            samples: 0,
            probe_at: now,
            probed_at: None,
            unreported_since: None,
            history: VecDeque::new(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.standing == Standing::Up
    }

    pub(super) fn round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// The sequence number of the next datagram.
    pub(super) fn number(&mut self, now: Mono, is_data: bool) -> u64 {
        self.sent += 1;
        let due = self.marks.back().is_none_or(|last| now - last.at >= MARKED_EVERY);
        if due && self.marks.len() < MOST_MARKS {
            self.marks.push_back(Mark { sequence: self.sent, at: now, data_at: None });
        }
        if let Some(last) = self.marks.back_mut().filter(|_| is_data) {
            last.data_at.get_or_insert(now);
        }
        self.sent
    }

    /// The last one could not leave this host.
    pub(super) fn take_back(&mut self) {
        self.sent = self.sent.saturating_sub(1);
        self.marks.pop_back_if(|mark| mark.sequence > self.sent);
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn confirmed_highest(&self) -> u64 {
        self.confirmed_highest
    }

    /// It works from now on.
    pub(super) fn come_up(&mut self, now: Mono) {
        self.standing = Standing::Up;
        self.marks.clear();
        self.probe_at = now;
        self.greetings = 0;
    }

    /// What is sent is not told to have come.
    pub(super) fn fall_silent(&mut self, now: Mono, every: Span) {
        self.standing = Standing::Silent;
        self.silent_after = self.sent;
        self.silent_pause = every;
        self.probe_at = now;
        self.greet_at = now;
        self.marks.clear();
        self.history.clear();
    }

    /// A numbered datagram came.
    pub(super) fn arrive(&mut self, now: Mono, head: &DatagramHead, clock: u32) -> Arrival {
        let arrival = self.seen.take(head.sequence);
        self.repeated += u64::from(arrival == Arrival::Again);
        if arrival == Arrival::First {
            self.last = Some((head.sent_at, now));
            self.delay.observe(now, clock.wrapping_sub(head.sent_at));
        }
        arrival
    }

    /// Data came, which the peer is to hear of soon.
    pub(super) fn owe_report(&mut self, now: Mono) {
        self.unreported_since.get_or_insert(now);
    }

    /// A probe goes as soon as can be: at once, or a little after the last one.
    pub(super) fn hurry(&mut self, now: Mono) {
        let soonest = self.probed_at.map_or(now, |at| (at + LEAST_BETWEEN).max(now));
        self.probe_at = self.probe_at.min(soonest);
    }

    /// The peer tells what came. Whether that is possible; and whether it works again by that.
    pub(super) fn told(&mut self, now: Mono, came: Came) -> Result<bool, ()> {
        let highest = extend(self.sent, came.highest);
        let lost = u64::from(came.highest.wrapping_sub(came.received));
        if highest > self.sent || lost > highest {
            return Err(());
        }
        if highest < self.confirmed_highest {
            // Reports overtake each other.
            return Ok(false);
        }
        let received = highest - lost;
        let newer = highest > self.confirmed_highest;
        self.confirmed = if newer { received } else { self.confirmed.max(received) };
        self.confirmed_highest = highest;
        while self.marks.front().is_some_and(|mark| mark.sequence <= highest) {
            self.marks.pop_front();
        }
        if newer {
            self.remember(now);
        }
        Ok(self.standing == Standing::Silent && highest > self.silent_after)
    }

    fn remember(&mut self, now: Mono) {
        let fresh = |(at, ..): &(Mono, u64, u64)| now - *at < LOSS_STEP;
        if self.history.len() > 1 && self.history.iter().rev().nth(1).is_some_and(fresh) {
            self.history.pop_back();
        }
        self.history.push_back((now, self.confirmed_highest, self.confirmed));
        while self.history.front().is_some_and(|(at, ..)| now - *at > LOSS_WINDOW) {
            self.history.pop_front();
        }
    }

    /// The share that was lost of what the peer told of in the last seconds; `None` where that are too few.
    pub(super) fn loss(&self) -> Option<f64> {
        let ((_, from, had), (_, to, has)) = (self.history.front()?, self.history.back()?);
        let sent = to - from;
        let came = has.saturating_sub(*had).min(sent);
        (sent >= LOSS_LEAST).then(|| 1.0 - came as f64 / sent as f64)
    }

    /// What a probe of the peer says of this version, over which it came.
    pub(super) fn probed(&mut self, now: Mono, clock: u32, probe: &Probe) {
        if let Some((sent_at, held)) = probe.echo {
            let sample = Span::from_micros(clock.wrapping_sub(sent_at).wrapping_sub(held).into());
            if sample < LONGEST_ROUND_TRIP {
                self.samples += 1;
                // RFC 6298 §2.3, its gain of 1/8.
                self.round_trip =
                    Some(self.round_trip.map_or(sample, |smoothed| smoothed + (sample - smoothed) / 8));
            }
        }
        if let Some(delay) = probe.delay {
            self.told_delay = Some(Span::from_micros(delay.into()));
        }
        if probe.prompt {
            self.hurry(now);
        }
    }

    /// What this end saw of this version; a probe is about to go.
    pub(super) fn report(&mut self, now: Mono, every: Span) -> Probe {
        let prompt = self.suspected_at(every).is_some_and(|at| at <= now);
        self.probed_at = Some(now);
        self.unreported_since = None;
        let pause = if self.standing == Standing::Silent { self.silent_pause } else { every };
        self.silent_pause = (self.silent_pause * 2).min(LONGEST_SILENT_PAUSE.max(every));
        self.probe_at = now + pause;
        let held = |at: Mono| u32::try_from((now - at).nanos() / 1000).ok().filter(|held| *held < MOST_HELD);
        let micros = |span: Span| u32::try_from(span.nanos() / 1000).ok();
        Probe {
            echo: self.last.and_then(|(sent_at, at)| Some((sent_at, held(at)?))),
            delay: self.delay.smoothed().and_then(micros),
            prompt,
            ..Probe::default()
        }
    }

    pub(super) fn came(&self) -> Came {
        Came { highest: self.seen.highest() as u32, received: self.seen.received() as u32 }
    }

    fn round_trips(&self, count: i64) -> Span {
        self.round_trip.unwrap_or(UNKNOWN_ROUND_TRIP) * count
    }

    /// The first of the application's that is not told to have come.
    fn data_since(&self) -> Option<Mono> {
        self.marks.iter().find_map(|mark| mark.data_at)
    }

    /// When silence is long enough to ask for an answer.
    fn suspected_at(&self, every: Span) -> Option<Mono> {
        let idle = self.marks.front()?.at + every + self.round_trips(2);
        let used = self.data_since().map(|at| at + REPORT_AFTER * 2 + self.round_trips(2));
        Some(used.map_or(idle, |used| used.min(idle)))
    }

    /// When silence is too long. One that carries data is given up sooner: the peer reports on data within [`REPORT_AFTER`].
    pub(super) fn silent_at(&self, every: Span, carries: bool) -> Option<Mono> {
        let mark = self.marks.front().filter(|_| self.is_up())?;
        let idle = mark.at + every * 3 + self.round_trips(4);
        let used = self.data_since().filter(|_| carries).map(|at| at + SILENT_AFTER + self.round_trips(4));
        Some(used.map_or(idle, |used| used.min(idle)))
    }

    /// When the next probe goes, if nothing happens before.
    pub(super) fn probe_due_at(&self, every: Span, carries: bool) -> Option<Mono> {
        let tried = match self.standing {
            Standing::Up => true,
            Standing::Silent => return Some(self.probe_at),
            Standing::Unused | Standing::Greeting => false,
        };
        let report = self.unreported_since.map(|since| {
            let soonest = self.probed_at.map_or(since, |at| (at + REPORT_AFTER).max(since));
            soonest.min(since + REPORT_AFTER)
        });
        let again = |at: Mono| self.probed_at.map_or(at, |probed| at.max(probed + REPORT_AFTER));
        let prompt = self.suspected_at(every).filter(|_| carries).map(again);
        tried.then(|| [report, prompt].into_iter().flatten().fold(self.probe_at, Mono::min))
    }

    pub(super) fn probed_at(&self) -> Option<Mono> {
        self.probed_at
    }

    pub(super) fn status(&self) -> VersionStatus {
        VersionStatus {
            standing: self.standing,
            sent: self.sent,
            confirmed: self.confirmed,
            lost: self.confirmed_highest - self.confirmed,
            received: self.seen.received(),
            missing: self.seen.highest() - self.seen.received(),
            repeated: self.repeated,
            round_trip: self.round_trip,
            forward_delay: self.told_delay,
            reverse_delay: self.delay.smoothed(),
        }
    }
}

/// Between a report and the next one that data make necessary.
pub(super) const REPORT_AFTER: Span = Span::from_millis(100);
/// Of a version that carries data: five reports in a row have not come, and four round trips.
const SILENT_AFTER: Span = Span::from_millis(500);
/// Between probes that are answers.
const LEAST_BETWEEN: Span = Span::from_millis(20);
/// How late silence may be noticed because not every datagram is a mark.
const MARKED_EVERY: Span = Span::from_millis(20);
const MOST_MARKS: usize = 256;
const LONGEST_SILENT_PAUSE: Span = Span::from_secs(5);
const UNKNOWN_ROUND_TRIP: Span = Span::from_millis(250);
const LONGEST_ROUND_TRIP: Span = Span::from_secs(60);
/// Microseconds; what was held longer says nothing of now.
const MOST_HELD: u32 = 60_000_000;
/// Loss is that of so long.
const LOSS_WINDOW: Span = Span::from_secs(10);
const LOSS_STEP: Span = Span::from_millis(200);
/// Fewer datagrams give no share.
const LOSS_LEAST: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_after_all_is_no_longer_counted_as_lost() {
        let mut path = Path { sent: 10, ..Path::new(IpVersion::V4, Mono(0)) };
        path.told(Mono(1), Came { highest: 10, received: 7 }).unwrap();
        assert_eq!(path.status().lost, 3);
        path.told(Mono(2), Came { highest: 10, received: 9 }).unwrap();
        assert_eq!(path.status().lost, 1);
        // A report that was overtaken by a later one.
        path.told(Mono(3), Came { highest: 8, received: 8 }).unwrap();
        assert_eq!(path.status().lost, 1);
    }

    #[test]
    fn reports_of_what_was_never_sent_are_refused() {
        let mut path = Path { sent: 10, ..Path::new(IpVersion::V6, Mono(0)) };
        assert_eq!(path.told(Mono(1), Came { highest: 11, received: 11 }), Err(()));
        assert_eq!(path.told(Mono(1), Came { highest: 5, received: 6 }), Err(()));
    }
}
