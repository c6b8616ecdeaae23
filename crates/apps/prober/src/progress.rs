//! What a person may watch while it runs.

use netaware_record::{Direction, IpVersion, RatePoint};
use netaware_units::{BitRate, ByteCount, Span};

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A new phase began, or time passed in it.
    Phase {
        /// "TCP down, 4 streams".
        what: String,
        /// Over which version, if over one.
        version: Option<IpVersion>,
        /// Since the measurement began.
        done: Span,
        /// What it will take in all.
        total: Span,
    },
    /// Somebody else is measuring; it goes on by itself.
    Queued {
        /// 1 = next.
        place: u32,
        /// At most, if those in front use all they asked for.
        expected_wait: Span,
    },
    /// A slice of a bulk transfer.
    Interval {
        /// Over which version.
        version: IpVersion,
        /// Which way.
        direction: Direction,
        /// Since the start of the transfer.
        start: Span,
        /// Since the start of the transfer.
        end: Span,
        /// Payload received in it.
        bytes: ByteCount,
        /// Mean payload rate.
        rate: BitRate,
        /// Datagrams received, for UDP.
        packets: Option<u64>,
        /// Datagrams missing, for UDP.
        lost: Option<i64>,
        /// Segments sent again, for TCP, as far as the sender has told yet.
        retransmits: Option<u64>,
        /// The sender's smoothed round trip, for TCP.
        rtt: Option<Span>,
        /// The sender's congestion windows, for TCP.
        cwnd: Option<ByteCount>,
    },
    /// What is known of a path that is followed.
    Rate {
        /// Over which version.
        version: IpVersion,
        /// Which way.
        direction: Direction,
        /// The figure, and when it was known.
        point: RatePoint,
    },
    /// A remark for the person who waits.
    Note(String),
    /// A remark that takes back how long it was to last, which is worth reading only at once.
    Longer(String),
}

/// Counts the time that phases take against the plan, and tells the listener.
pub(crate) struct Watch<'a> {
    listener: &'a mut dyn FnMut(Progress),
    began_at: netaware_units::Mono,
    total: Span,
    /// That queues drain after the time is up has been said.
    is_draining_said: bool,
    /// What comes after the transfer that runs, where that is known.
    afterwards: Option<Span>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(total: Span, listener: &'a mut dyn FnMut(Progress)) -> Self {
        Self {
            listener,
            began_at: netaware_io::clock::now(),
            total,
            is_draining_said: false,
            afterwards: None,
        }
    }

    /// What the person who waits expects it to take.
    pub(crate) fn total(&self) -> Span {
        self.total
    }

    /// What it will take is known only now.
    pub(crate) fn expect(&mut self, total: Span) {
        self.total = total;
    }

    /// Says how long it takes before that time is spent, where it is worth a word: most know the
    /// time that they have asked for, and not what they have left to the command.
    pub(crate) fn foretell(&mut self, whole: Span) {
        if whole >= WORTH_A_WORD {
            self.tell(Progress::Longer(format!("this takes up to {whole}; -t sets the time")));
        }
    }

    /// What the `rest` takes is known only now that the path is. Where that makes the whole longer
    /// than was promised, the person who waits is told before it goes on. `round_trip` is what an
    /// exchange with the responder takes.
    pub(crate) fn announce(&mut self, rest: Span, round_trip: Span) {
        self.announce_because(
            rest,
            &format!("an exchange with the responder takes {round_trip} on this path"),
        );
    }

    /// The same where it is something else that takes so long.
    pub(crate) fn announce_because(&mut self, rest: Span, why: &str) {
        let whole = self.done() + rest;
        if let Some(note) = longer(self.total, whole, why) {
            self.tell(Progress::Longer(note));
            self.total = whole;
        }
    }

    /// Takes the promise back where what has been done, with the `rest`, makes the whole longer,
    /// and leaves it as it is where not: delays that are too short to be told one by one add up.
    pub(crate) fn review(&mut self, rest: Span, why: &str) {
        self.announce_because(rest, why);
    }

    /// Something that nobody planned begins, which takes `at_most`. Said in any case, and before it
    /// begins: what is looked into is a result by itself.
    pub(crate) fn extends(&mut self, at_most: Span, what: &str) {
        self.tell(Progress::Longer(format!("{what}: this takes up to {at_most} longer")));
        self.total = self.done().max(self.total) + at_most;
    }

    /// What is to be done after the transfer that begins now.
    pub(crate) fn will_go_on_for(&mut self, afterwards: Option<Span>) {
        self.afterwards = afterwards;
    }

    /// A transfer that was asked for has begun and is over in `lasts`.
    pub(crate) fn has_begun(&mut self, lasts: Span) {
        if let Some(afterwards) = self.afterwards {
            self.review(lasts + afterwards, REPEATED);
        }
    }

    /// The time is up, and data that are still in the path's queues are waited for. Said once.
    pub(crate) fn drains(&mut self, at_most: Span) {
        if !std::mem::replace(&mut self.is_draining_said, true) {
            let note =
                "the time is up, and what is still in the path's queues is waited for: this takes up to";
            self.tell(Progress::Longer(format!("{note} {at_most} longer")));
        }
    }

    /// The same of one transfer among others, whose plan contains what queues usually take to
    /// drain: said where the time is nearly up.
    pub(crate) fn drains_late(&mut self, at_most: Span) {
        let done = self.done();
        if done + NEARLY >= self.total && longer(self.total, done + at_most, "").is_some() {
            self.drains(at_most);
            self.total = done + at_most;
        }
    }

    /// One transfer among others does not end. Where what comes after it is planned anew, only this
    /// one may make the whole longer than was promised.
    pub(crate) fn ends_late(&mut self, at_most: Span) {
        match self.afterwards {
            Some(_) => self.waits_for_an_end(at_most),
            None => self.announce_because(at_most, OVERDUE),
        }
    }

    /// The time of a transfer is up, nothing more comes of it, and its end is waited for. Said
    /// where that makes the whole longer than was promised.
    pub(crate) fn waits_for_an_end(&mut self, at_most: Span) {
        let whole =
            self.afterwards.map_or(self.done().max(self.total), |later| self.done() + later) + at_most;
        self.review(whole - self.done(), OVERDUE);
    }

    /// Waiting for other measurements is not part of the plan: the clock is put back.
    pub(crate) fn exclude(&mut self, waited: Span) {
        self.began_at += waited;
    }

    /// Since the measurement began, waiting for others not counted.
    pub(crate) fn done(&self) -> Span {
        netaware_io::clock::now() - self.began_at
    }

    pub(crate) fn phase(&mut self, what: impl Into<String>, version: Option<IpVersion>) {
        let done = self.done();
        let total = self.total.max(done);
        (self.listener)(Progress::Phase { what: what.into(), version, done, total });
    }

    pub(crate) fn tell(&mut self, progress: Progress) {
        (self.listener)(progress);
    }
}

/// Why turns begin later than planned.
pub(crate) const REPEATED: &str =
    "messages between the hosts were slow or repeated, or ends of transfers were waited for";

/// What is said of a measurement that takes `whole` where `promised` was the promise.
fn longer(promised: Span, whole: Span, why: &str) -> Option<String> {
    let rounded = Span::from_secs((whole + whole / 20).nanos() / 1_000_000_000 + 1);
    let is_longer = whole > promised + promised / 10 + NOTICEABLE;
    is_longer.then(|| format!("this takes about {rounded} instead of {promised}: {why}"))
}

const OVERDUE: &str = "the end of a transfer is overdue, and it is waited for";
/// What a plan has left when its last transfer ends.
const NEARLY: Span = Span::from_secs(1);
/// Nobody waits for longer without wondering.
const WORTH_A_WORD: Span = Span::from_secs(10);
/// Less than this is not worth a word.
const NOTICEABLE: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_that_the_path_does_not_keep_is_taken_back_beforehand() {
        let said = |whole| longer(Span::from_secs(6), Span::from_millis(whole), "it is far");
        assert_eq!((said(6000), said(7000)), (None, None));
        let note = said(22_000).unwrap();
        assert!(note.starts_with("this takes about 24.0 s instead of 6.00 s: "), "{note}");
    }

    #[test]
    fn delays_that_are_too_short_to_be_told_one_by_one_are_told_once_they_add_up() {
        let mut notes = 0;
        let mut listener = |progress| notes += u32::from(matches!(progress, Progress::Longer(_)));
        let mut watch = Watch::new(Span::from_secs(6), &mut listener);
        for more in [300, 600, 900] {
            watch.review(Span::from_millis(6000 + more), REPEATED);
        }
        assert_eq!(watch.total, Span::from_secs(6), "within what a promise allows");
        watch.will_go_on_for(Some(Span::from_secs(4)));
        watch.has_begun(Span::from_millis(3200));
        assert!(watch.total >= Span::from_millis(7200));
        // Once told it is the promise.
        watch.has_begun(Span::from_millis(3200));
        assert_eq!(notes, 1);
    }

    #[test]
    fn a_time_of_tens_of_seconds_is_said_before_it_is_spent() {
        let said = |seconds| {
            let mut notes = Vec::new();
            let mut listener = |progress| notes.push(progress);
            let whole = Span::from_secs(seconds);
            Watch::new(whole, &mut listener).foretell(whole);
            notes
        };
        assert_eq!(said(40), [Progress::Longer("this takes up to 40.0 s; -t sets the time".to_owned())]);
        assert_eq!(said(5), []);
    }

    #[test]
    fn many_small_delays_do_not_move_a_promise_that_nobody_took_back() {
        let mut notes = Vec::new();
        let mut listener = |progress| notes.push(progress);
        let mut watch = Watch::new(Span::from_secs(8), &mut listener);
        for millis in [8_700, 9_200, 9_700] {
            watch.announce(Span::from_millis(millis), Span::from_millis(20));
        }
        let [Progress::Longer(note)] = notes.as_slice() else { panic!("{notes:?}") };
        assert!(note.starts_with("this takes about 11.0 s instead of 8.00 s: "), "{note}");
    }

    #[test]
    fn a_search_that_nobody_planned_is_said_before_it_begins_and_counts_as_said() {
        let mut notes = Vec::new();
        let mut listener = |progress| notes.push(progress);
        let mut watch = Watch::new(Span::from_secs(8), &mut listener);
        watch.extends(Span::from_secs(3), "nothing came; whether large packets vanish is looked into");
        watch.review(Span::from_secs(11), "it has taken so long");
        let [Progress::Longer(note)] = notes.as_slice() else { panic!("{notes:?}") };
        assert!(note.ends_with("is looked into: this takes up to 3.00 s longer"), "{note}");
    }

    #[test]
    fn an_end_that_is_overdue_is_announced_where_it_breaks_the_promise() {
        let said = |total: i64, at_most: i64| {
            let mut notes = Vec::new();
            let mut listener =
                |progress| notes.extend(matches!(progress, Progress::Longer(_)).then_some(progress));
            let mut watch = Watch::new(Span::from_secs(total), &mut listener);
            watch.waits_for_an_end(Span::from_millis(at_most));
            watch.waits_for_an_end(Span::from_millis(at_most));
            (watch.total, notes)
        };
        let (total, notes) = said(8, 2600);
        let [Progress::Longer(first), Progress::Longer(second)] = notes.as_slice() else {
            panic!("{notes:?}")
        };
        assert!(first.starts_with("this takes about 12.0 s instead of 8.00 s: "), "{first}");
        assert!(second.starts_with("this takes about 14.0 s instead of 10.6 s: "), "{second}");
        assert!((Span::from_millis(13_200)..Span::from_secs(14)).contains(&total), "{total}");
        // A short wait within the promise's tenth is no news.
        assert_eq!(said(60, 2600), (Span::from_secs(60), Vec::new()));
    }
}
