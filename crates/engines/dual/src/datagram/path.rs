//! One version of IP within a session: whether it works, what it carried, what it lost and how long
//! that took.

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
    /// What was sent since the last that was told to have come, oldest first; some of it, and the
    /// newest of very much not.
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

    /// The share that was lost of what the peer told of in the last seconds; `None` where that are
    /// too few.
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

    /// When silence is too long. One that carries data is given up sooner: the peer reports on data
    /// within [`REPORT_AFTER`].
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
            lost: (self.confirmed_highest > 0).then_some(self.confirmed_highest - self.confirmed),
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
    use netaware_wire::dual::DatagramKind;

    use super::*;

    const EVERY: Span = Span::from_millis(500);

    fn mono(millis: i64) -> Mono {
        Mono(0) + Span::from_millis(millis)
    }

    #[test]
    fn before_the_peer_has_told_anything_it_is_not_known_that_nothing_was_lost() {
        let path = Path { sent: 10, ..Path::new(IpVersion::V4, Mono(0)) };
        assert_eq!((path.status().lost, path.status().confirmed), (None, 0));
    }

    #[test]
    fn what_came_after_all_is_no_longer_counted_as_lost() {
        let mut path = Path { sent: 10, ..Path::new(IpVersion::V4, Mono(0)) };
        path.told(Mono(1), Came { highest: 10, received: 7 }).unwrap();
        assert_eq!(path.status().lost, Some(3));
        path.told(Mono(2), Came { highest: 10, received: 9 }).unwrap();
        assert_eq!(path.status().lost, Some(1));
        // A report that was overtaken by a later one.
        path.told(Mono(3), Came { highest: 8, received: 8 }).unwrap();
        assert_eq!(path.status().lost, Some(1));
    }

    #[test]
    fn reports_of_what_was_never_sent_are_refused() {
        let mut path = Path { sent: 10, ..Path::new(IpVersion::V6, Mono(0)) };
        assert_eq!(path.told(Mono(1), Came { highest: 11, received: 11 }), Err(()));
        assert_eq!(path.told(Mono(1), Came { highest: 5, received: 6 }), Err(()));
    }

    #[test]
    fn one_in_twenty_milliseconds_is_a_mark_until_it_is_taken_back_or_there_are_very_many() {
        let marks = |path: &Path| -> Vec<(u64, Mono, Option<Mono>)> {
            path.marks.iter().map(|mark| (mark.sequence, mark.at, mark.data_at)).collect()
        };
        let mut path = Path::new(IpVersion::V4, mono(0));
        let sent = [(0, false), (19, true), (20, false), (21, true)];
        assert_eq!(sent.map(|(at, is_data)| path.number(mono(at), is_data)), [1, 2, 3, 4]);
        let (first, second) = ((1, mono(0), Some(mono(19))), (3, mono(20), Some(mono(21))));
        assert_eq!(marks(&path), [first, second]);
        path.take_back();
        assert_eq!((path.sent(), marks(&path)), (3, vec![first, second]));
        path.take_back();
        assert_eq!((path.sent(), marks(&path)), (2, vec![first]));
        for n in 0..300 {
            path.number(mono(100 + n * 20), false);
        }
        assert_eq!(path.marks.len(), MOST_MARKS);
    }

    #[test]
    fn only_what_was_sent_into_the_silence_proves_that_it_works_again() {
        let mut path = Path { sent: 10, ..Path::new(IpVersion::V6, mono(0)) };
        assert_eq!(path.told(mono(0), Came { highest: 0, received: 0 }), Ok(false), "nothing came yet");
        path.come_up(mono(0));
        assert_eq!(path.told(mono(1), Came { highest: 4, received: 4 }), Ok(false), "it works");
        path.fall_silent(mono(2), EVERY);
        assert_eq!(path.number(mono(3), false), 11);
        assert_eq!(path.told(mono(4), Came { highest: 10, received: 10 }), Ok(false), "sent before");
        assert_eq!(path.told(mono(5), Came { highest: 11, received: 10 }), Ok(true));
        // A report of as much that was made before another one came.
        assert_eq!(path.told(mono(6), Came { highest: 11, received: 9 }), Ok(true));
        assert_eq!(path.status().lost, Some(1));
    }

    #[test]
    fn loss_is_that_of_the_last_ten_seconds_and_of_ten_datagrams_at_least() {
        let mut path = Path { sent: 1000, ..Path::new(IpVersion::V4, mono(0)) };
        // When, highest and received as told, and the thousandths lost.
        let rows = [
            (0, 5, 5, None),
            (100, 14, 13, None),
            (150, 15, 14, Some(100)),
            (200, 25, 24, Some(50)),
            (10_000, 30, 29, Some(40)),
            (10_150, 40, 37, Some(80)),
        ];
        // The times that are remembered then.
        let remembered: [&[i64]; 6] =
            [&[0], &[0, 100], &[0, 150], &[0, 150, 200], &[0, 150, 200, 10_000], &[150, 200, 10_000, 10_150]];
        for ((at, highest, received, lost), remembered) in rows.into_iter().zip(remembered) {
            path.told(mono(at), Came { highest, received }).unwrap();
            let times: Vec<Mono> = path.history.iter().map(|told| told.0).collect();
            assert_eq!(times, remembered.iter().map(|at| mono(*at)).collect::<Vec<_>>(), "at {at} ms");
            assert_eq!(path.loss().map(|share| (share * 1000.0).round() as i64), lost, "at {at} ms");
        }
    }

    #[test]
    fn a_probe_says_what_came_last_how_long_it_was_kept_and_how_much_longer_it_took() {
        let mut path = Path::new(IpVersion::V6, mono(0));
        path.come_up(mono(0));
        let (kind, ip, session) = (DatagramKind::Data, IpVersion::V6, 77);
        let head = DatagramHead { kind, ip, sequence: 1, session, sent_at: 777, number: 1 };
        assert_eq!(path.arrive(mono(1000), &head, 5_777), Arrival::First);
        let first = Probe { echo: Some((777, 3_000)), delay: Some(0), ..Probe::default() };
        assert_eq!(path.report(mono(1003), EVERY), first);
        assert_eq!((path.probe_at, path.probed_at), (mono(1503), Some(mono(1003))));
        // This one takes 8 ms longer, of which the smoothed delay has an eighth.
        let later = DatagramHead { sequence: 2, sent_at: 1_000, number: 2, ..head };
        assert_eq!(path.arrive(mono(1010), &later, 14_000), Arrival::First);
        let second = Probe { echo: Some((1_000, 0)), delay: Some(1_000), ..Probe::default() };
        assert_eq!(path.report(mono(1010), EVERY), second);
        let third = Probe { echo: None, ..second };
        assert_eq!(path.report(mono(61_010), EVERY), third, "a minute ago says nothing of now");
    }

    #[test]
    fn round_trips_are_smoothed_by_an_eighth_and_one_of_a_minute_is_none() {
        let mut path = Path::new(IpVersion::V4, mono(0));
        let echo = |echo| Probe { echo: Some(echo), ..Probe::default() };
        path.probed(mono(0), 1_000_000, &echo((900_000, 20_000)));
        assert_eq!((path.round_trip(), path.samples), (Some(Span::from_millis(80)), 1));
        path.probed(mono(1), 2_000_000, &echo((1_800_000, 40_000)));
        path.probed(mono(2), 60_000_000, &echo((0, 0)));
        assert_eq!((path.round_trip(), path.samples), (Some(Span::from_millis(90)), 2));
        // One that asks for an answer gets it a little after the last probe.
        path.report(mono(100), EVERY);
        path.probed(mono(105), 0, &Probe { delay: Some(7), prompt: true, ..Probe::default() });
        assert_eq!((path.probe_at, path.told_delay), (mono(120), Some(Span::from_micros(7))));
    }

    #[test]
    fn an_answer_is_asked_for_when_none_came_and_ever_more_seldom_in_silence() {
        let mut path = Path::new(IpVersion::V6, mono(0));
        path.come_up(mono(0));
        path.number(mono(0), false);
        // Two round trips after the next probe; how long they are is not known yet.
        let asks = [999, 1000].map(|at| path.report(mono(at), EVERY).prompt);
        assert_eq!(asks, [false, true]);
        path.fall_silent(mono(1000), EVERY);
        let pauses = [(); 6].map(|()| {
            let at = path.probe_at;
            path.report(at, EVERY);
            path.probe_at - at
        });
        assert_eq!(pauses, [500, 1000, 2000, 4000, 5000, 5000].map(Span::from_millis));
    }

    #[test]
    fn silence_is_suspected_and_believed_in_sooner_where_data_went() {
        let path = |standing| Path {
            standing,
            round_trip: Some(Span::from_millis(100)),
            probe_at: mono(5000),
            ..Path::new(IpVersion::V6, mono(0))
        };
        let mut idle = path(Standing::Up);
        idle.number(mono(0), false);
        assert_eq!(idle.suspected_at(EVERY), Some(mono(700)));
        assert_eq!([true, false].map(|carries| idle.silent_at(EVERY, carries)), [Some(mono(1900)); 2]);
        let mut used = path(Standing::Up);
        used.number(mono(0), false);
        used.number(mono(10), true);
        assert_eq!(used.suspected_at(EVERY), Some(mono(410)));
        let silent_at = [true, false].map(|carries| used.silent_at(EVERY, carries));
        assert_eq!(silent_at, [Some(mono(910)), Some(mono(1900))]);
        let due_at = [true, false].map(|carries| used.probe_due_at(EVERY, carries));
        assert_eq!(due_at, [Some(mono(410)), Some(mono(5000))]);
        used.probed_at = Some(mono(350));
        assert_eq!(used.probe_due_at(EVERY, true), Some(mono(450)));
        // What came is reported at once, or a little after the last probe.
        let mut owes = path(Standing::Up);
        owes.owe_report(mono(300));
        owes.owe_report(mono(390));
        let due_at = [None, Some(mono(250)), Some(mono(310))].map(|probed_at| {
            owes.probed_at = probed_at;
            owes.probe_due_at(EVERY, false)
        });
        assert_eq!(due_at, [300, 350, 400].map(|at| Some(mono(at))));
        let silent_and_greeting = [Standing::Silent, Standing::Greeting].map(|standing| {
            let path = path(standing);
            (path.silent_at(EVERY, true), path.probe_due_at(EVERY, true))
        });
        assert_eq!(silent_and_greeting, [(None, Some(mono(5000))), (None, None)]);
    }
}
