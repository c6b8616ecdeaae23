//! What a person may watch while it runs.

use netaware_record::{Direction, IpVersion, RatePoint};
use netaware_units::{BitRate, ByteCount, Span};

use crate::lease;

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
        /// Mean payload rate; absent of a last slice that was cut off behind one datagram.
        rate: Option<BitRate>,
        /// Datagrams received, for UDP.
        packets: Option<u64>,
        /// Datagrams missing, for UDP, never fewer than none: what was overtaken and came within a
        /// second is not among them, and what came later is taken off those of later slices.
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
    /// A remark on how long it lasts, or that takes that back: worth reading only at once.
    Longer(String),
}

/// Counts the time that phases take against the plan, and tells the listener.
pub(crate) struct Watch<'a> {
    listener: &'a mut dyn FnMut(Progress),
    began_at: netaware_units::Mono,
    /// Time for which others measured.
    waited: Span,
    total: Span,
    /// What a person asked for, or was promised first: what every later promise is compared with.
    asked: Span,
    /// That queues drain after the time is up has been said.
    is_draining_said: bool,
    /// How much time is needed once the running transfer is over.
    afterwards: Afterwards,
    /// That the end of the running transfer is overdue has been said, where what follows is planned
    /// anew.
    is_overdue_said: bool,
}

/// How much time a measurement needs once the transfer that is running now is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// So much, whatever the transfer takes.
    Fixed(Span),
    /// It is planned anew then, from what time is left, and takes no less than this.
    AtLeast(Span),
}

impl Afterwards {
    fn least(self) -> Span {
        match self {
            Self::Fixed(span) | Self::AtLeast(span) => span,
        }
    }
}

impl<'a> Watch<'a> {
    pub(crate) fn new(total: Span, listener: &'a mut dyn FnMut(Progress)) -> Self {
        Self {
            listener,
            began_at: netaware_io::clock::now(),
            waited: Span::ZERO,
            total,
            asked: total,
            is_draining_said: false,
            afterwards: Afterwards::AtLeast(Span::ZERO),
            is_overdue_said: false,
        }
    }

    /// What the person who waits expects it to take.
    pub(crate) fn total(&self) -> Span {
        self.total
    }

    /// What a person asked for, or was promised first.
    pub(crate) fn asked(&self) -> Span {
        self.asked
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

    /// What the `rest` takes is known only now, and nothing was promised before: said where it is
    /// worth a word.
    pub(crate) fn foretell_because(&mut self, rest: Span, why: &str) {
        self.total = self.done() + rest;
        self.asked = self.total;
        if self.total >= WORTH_A_WORD {
            let about = Span::from_secs(self.total.nanos() / 1_000_000_000 + 1);
            self.tell(Progress::Longer(format!("this takes about {about}: {why}")));
        }
    }

    /// What the `rest` takes is known only now that the path is. Where that makes the whole longer
    /// than was promised, the person who waits is told before it goes on. `round_trip` is what an
    /// exchange with the responder takes.
    pub(crate) fn announce(&mut self, rest: Span, round_trip: Span) {
        if round_trip <= Span::ZERO {
            // Nobody was reached, so that nothing follows.
            return;
        }
        let set_up = self.done();
        let too_much = set_up + rest - self.total;
        self.announce_because(rest, &why_longer(set_up, round_trip, too_much));
    }

    /// The same where it is something else that takes so long.
    pub(crate) fn announce_because(&mut self, rest: Span, why: &str) {
        let whole = self.done() + rest;
        if let Some(note) = longer(self.total, self.asked, whole, why) {
            self.tell(Progress::Longer(note));
            self.total = whole;
        }
    }

    /// Takes the promise back where what has been done, with the `rest`, makes the whole longer,
    /// and leaves it as it is where not: delays that are too short to be told one by one add up.
    pub(crate) fn review(&mut self, rest: Span, why: &str) {
        self.announce_because(rest, why);
    }

    /// The same, and a time that is much shorter than was promised is told as well.
    pub(crate) fn review_both(&mut self, rest: Span, why: &str) {
        // What is less than was said is compared with what was said last.
        let whole = self.done() + rest;
        if is_much_shorter(self.total, whole) {
            let about = rounded(whole);
            self.tell(Progress::Longer(format!(
                "this takes about {about} instead of {}: {SHORTER}",
                self.total
            )));
            self.total = whole;
        }
        self.review(rest, why);
    }

    /// Something that nobody planned begins, which takes `at_most`. Said in any case, and before it
    /// begins: what is looked into is a result by itself.
    pub(crate) fn extends(&mut self, at_most: Span, what: &str) {
        self.tell(Progress::Longer(format!("{what}: this takes up to {at_most} longer")));
        self.total = self.done().max(self.total) + at_most;
    }

    /// What is to be done after the transfer that begins now.
    pub(crate) fn will_go_on_for(&mut self, afterwards: Afterwards) {
        (self.afterwards, self.is_overdue_said) = (afterwards, false);
    }

    /// A transfer that was asked for has begun and is over in `lasts`.
    pub(crate) fn has_begun(&mut self, lasts: Span) {
        if let Afterwards::Fixed(afterwards) = self.afterwards {
            self.review(lasts + afterwards, REPEATED);
        }
    }

    /// The time is up, and data that are still in the path's queues are waited for. Said once.
    pub(crate) fn drains(&mut self, at_most: Span) {
        if at_most > Span::ZERO && !std::mem::replace(&mut self.is_draining_said, true) {
            let note =
                "the time is up, and what is still in the path's queues is waited for: this takes up to";
            self.tell(Progress::Longer(format!("{note} {at_most} longer")));
        }
    }

    /// The same of one transfer among others, whose plan contains what queues usually take to
    /// drain: said where the time is nearly up.
    pub(crate) fn drains_late(&mut self, at_most: Span) {
        let is_nearly_up = self.done() + self.afterwards.least() + NEARLY >= self.total;
        if is_nearly_up && !self.is_draining_said {
            self.may_take(at_most, DRAINING);
        }
    }

    /// One transfer among others does not end.
    pub(crate) fn ends_late(&mut self, at_most: Span) {
        match self.afterwards {
            Afterwards::Fixed(_) => self.waits_for_an_end(at_most),
            Afterwards::AtLeast(_) => self.may_take(at_most, OVERDUE),
        }
    }

    /// The time of a transfer is up, nothing more comes of it, and its end is waited for. Said
    /// where that makes the whole longer than was promised.
    pub(crate) fn waits_for_an_end(&mut self, at_most: Span) {
        self.review(at_most + self.afterwards.least(), OVERDUE);
    }

    /// A transfer has not begun, because the responder does not answer: its version may be dead.
    /// Said where waiting for it makes the whole longer than was promised.
    pub(crate) fn waits_for_an_answer(&mut self, at_most: Span) {
        match self.afterwards {
            Afterwards::Fixed(afterwards) => self.review(at_most + afterwards, UNANSWERED),
            Afterwards::AtLeast(_) => self.may_take(at_most, UNANSWERED),
        }
    }

    /// The transfer that runs takes `at_most` longer, which is the worst that can come. Said once
    /// of each transfer: what it has really taken is known when it is over, and what follows is
    /// planned by that.
    fn may_take(&mut self, at_most: Span, why: &str) {
        let whole = self.done() + at_most + self.afterwards.least();
        if !self.is_overdue_said && is_longer(self.total, whole) {
            let note = format!("this may take up to {} instead of {}: {why}", rounded(whole), self.asked);
            self.tell(Progress::Longer(note));
            (self.is_overdue_said, self.total) = (true, whole);
        }
    }

    /// Waiting for other measurements is not part of the plan: the clock is put back.
    pub(crate) fn exclude(&mut self, waited: Span) {
        self.began_at += waited;
        self.waited += waited;
    }

    /// For how long others measured while this one waited.
    pub(crate) fn waited(&self) -> Span {
        self.waited
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

/// What is done before a transfer of datagrams of which no question was answered.
pub(crate) const ASKS_AGAIN: &str = "questions over UDP had no answer, and all are asked once more";
/// Why turns begin later than planned.
pub(crate) const REPEATED: &str =
    "messages between the hosts were slow or repeated, or ends of transfers were waited for";

/// What is said of a measurement that takes `whole` where `promised` was the last promise, and
/// `asked` the first one.
fn longer(promised: Span, asked: Span, whole: Span, why: &str) -> Option<String> {
    is_longer(promised, whole)
        .then(|| format!("this takes about {} instead of {asked}: {why}", rounded(whole)))
}

/// Why a measurement takes `too_much` longer: most of it was spent on setting up, which the round
/// trips of its exchanges do not explain, or each exchange takes long.
fn why_longer(set_up: Span, round_trip: Span, too_much: Span) -> String {
    let unexplained = set_up - round_trip * lease::OPENING_ROUND_TRIPS;
    if unexplained * 2 > too_much {
        format!("setting up has taken {set_up}")
    } else {
        format!("an exchange with the responder takes {round_trip} on this path")
    }
}

fn is_longer(promised: Span, whole: Span) -> bool {
    whole > promised + promised / 10 + NOTICEABLE
}

fn is_much_shorter(promised: Span, whole: Span) -> bool {
    rounded(whole) + WORTH_SHORTENING < promised - promised / 10
}

/// Whole seconds, with something in hand.
fn rounded(whole: Span) -> Span {
    Span::from_secs((whole + whole / 20).nanos() / 1_000_000_000 + 1)
}

const SHORTER: &str = "less is left to be measured, or it goes faster than planned";
/// A wait that is shorter by less than this is no news.
const WORTH_SHORTENING: Span = Span::from_secs(3);
const OVERDUE: &str = "the end of a transfer is overdue, and it is waited for";
const UNANSWERED: &str = "an answer of the responder is overdue, and it is waited for";
const DRAINING: &str = "what is still in the path's queues is waited for";
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
        let six = Span::from_secs(6);
        let said = |whole| longer(six, six, Span::from_millis(whole), "it is far");
        assert_eq!((said(6000), said(7000)), (None, None));
        let note = said(22_000).unwrap();
        assert!(note.starts_with("this takes about 24.0 s instead of 6.00 s: "), "{note}");
    }

    /// "An exchange takes 20.0 ms" was the reason for three seconds that a lost SYN had cost.
    #[test]
    fn a_set_up_that_took_long_is_the_reason_and_not_a_short_round_trip() {
        let why = |set_up, round_trip, too_much| {
            why_longer(Span::from_millis(set_up), Span::from_millis(round_trip), Span::from_millis(too_much))
        };
        assert_eq!(why(2300, 20, 2500), "setting up has taken 2.30 s");
        assert_eq!(why(3000, 300, 9000), "an exchange with the responder takes 300 ms on this path");
        assert_eq!(why(300, 20, 2500), "an exchange with the responder takes 20.0 ms on this path");
    }

    /// "Instead of 10.0 s" was said at first, and "instead of 57.3 s" later on.
    #[test]
    fn every_promise_is_compared_with_what_was_asked_for() {
        let mut notes = Vec::new();
        let mut listener = |progress| {
            if let Progress::Longer(note) = progress {
                notes.push(note);
            }
        };
        let mut watch = Watch::new(Span::from_secs(10), &mut listener);
        watch.expect(Span::from_secs(57));
        watch.review(Span::from_secs(70), REPEATED);
        watch.review(Span::from_secs(90), REPEATED);
        assert_eq!(watch.asked(), Span::from_secs(10));
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes.iter().all(|note| note.contains(" instead of 10.0 s: ")), "{notes:?}");
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
        watch.will_go_on_for(Afterwards::Fixed(Span::from_secs(4)));
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
    fn a_time_that_turns_out_far_too_long_is_taken_back_as_one_that_is_too_short() {
        let mut notes = Vec::new();
        let mut listener = |progress| {
            if let Progress::Longer(note) = progress {
                notes.push(note);
            }
        };
        let mut watch = Watch::new(Span::ZERO, &mut listener);
        watch.foretell_because(Span::from_secs(100), "IPv4 and IPv6");
        watch.review_both(Span::from_secs(95), "");
        watch.review_both(Span::from_secs(40), "IPv6 broke off");
        watch.review_both(Span::from_secs(38), "");
        let [first, second] = notes.as_slice() else { panic!("{notes:?}") };
        assert!(first.starts_with("this takes about 101 s: IPv4"), "{first}");
        assert!(second.starts_with("this takes about 43.0 s instead of 100 s: less is left"), "{second}");
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

    /// What is said by `tell`, and what is promised then.
    fn said(total: i64, afterwards: Afterwards, tell: impl Fn(&mut Watch<'_>)) -> (Span, Vec<String>) {
        let mut notes = Vec::new();
        let mut listener = |progress| {
            if let Progress::Longer(note) = progress {
                notes.push(note);
            }
        };
        let mut watch = Watch::new(Span::from_secs(total), &mut listener);
        watch.will_go_on_for(afterwards);
        tell(&mut watch);
        (watch.total, notes)
    }

    #[test]
    fn an_end_that_is_overdue_is_announced_where_it_breaks_the_promise() {
        let waits = |watch: &mut Watch<'_>| {
            watch.waits_for_an_end(Span::from_millis(2600));
            watch.waits_for_an_end(Span::from_millis(2600));
        };
        let (total, notes) = said(8, Afterwards::Fixed(Span::from_millis(7500)), waits);
        let [note] = notes.as_slice() else { panic!("{notes:?}: a wait that is over is none to come") };
        assert!(note.starts_with("this takes about 11.0 s instead of 8.00 s: "), "{note}");
        assert!((Span::from_millis(10_100)..Span::from_millis(10_300)).contains(&total), "{total}");
        // One that a later part of the plan makes up for is no news.
        let in_time = Afterwards::Fixed(Span::from_secs(5));
        assert_eq!(said(8, in_time, waits), (Span::from_secs(8), Vec::new()));
    }

    /// A test waited for ten seconds for a version that had died before a transfer began, and said
    /// nothing.
    #[test]
    fn an_answer_that_is_overdue_is_announced_where_it_breaks_the_promise() {
        let waits = |seconds: i64| {
            move |watch: &mut Watch<'_>| {
                watch.waits_for_an_answer(Span::from_secs(seconds));
                watch.waits_for_an_answer(Span::from_secs(seconds));
            }
        };
        let (_, notes) = said(15, Afterwards::AtLeast(Span::from_secs(2)), waits(18));
        let want = "this may take up to 22.0 s instead of 15.0 s: an answer of the responder is overdue";
        assert!(notes.len() == 1 && notes[0].starts_with(want), "{notes:?}");
        let (_, notes) = said(8, Afterwards::Fixed(Span::from_secs(2)), waits(9));
        let want = "this takes about 12.0 s instead of 8.00 s: an answer of the responder is overdue";
        assert!(notes.len() == 1 && notes[0].starts_with(want), "{notes:?}");
        assert_eq!(said(15, Afterwards::AtLeast(Span::from_secs(2)), waits(9)).1, Vec::<String>::new());
    }

    #[test]
    fn ends_that_are_overdue_in_a_test_are_one_warning_and_no_chain_of_promises() {
        let waits = |watch: &mut Watch<'_>| {
            for at_most in [2600, 2600, 12_000] {
                watch.ends_late(Span::from_millis(at_most));
                watch.drains_late(Span::from_millis(at_most));
            }
        };
        let (total, notes) = said(15, Afterwards::AtLeast(Span::from_secs(15)), waits);
        let [note] = notes.as_slice() else { panic!("{notes:?}") };
        assert!(note.starts_with("this may take up to 19.0 s instead of 15.0 s: "), "{note}");
        assert!(total < Span::from_secs(18), "{total}");
        // What follows is planned from what time is left.
        assert_eq!(
            said(15, Afterwards::AtLeast(Span::from_secs(2)), |watch| {
                watch.ends_late(Span::from_millis(2600));
            })
            .1,
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_second_transfer_that_ends_later_than_the_first_one_made_known_is_announced_as_well() {
        let (total, notes) = said(15, Afterwards::AtLeast(Span::ZERO), |watch| {
            for at_most in [18_000, 24_000] {
                watch.will_go_on_for(Afterwards::AtLeast(Span::from_secs(1)));
                watch.ends_late(Span::from_millis(at_most));
            }
        });
        let [_, second] = notes.as_slice() else { panic!("{notes:?}") };
        assert!(second.starts_with("this may take up to 27.0 s instead of 15.0 s: "), "{second}");
        assert!(total >= Span::from_secs(25), "{total}");
    }
}
