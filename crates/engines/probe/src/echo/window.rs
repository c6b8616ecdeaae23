//! The requests whose fate is open, and the last few whose fate is known.

use std::collections::VecDeque;

use netaware_units::{ClockSource, Mono, Span, Stamp};
use netaware_wire::datagram::EchoStamps;

use super::Exchange;
use super::plan::EchoPlan;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Open,
    Answered,
    Lost,
    Late,
    NotSent,
    Abandoned,
}

/// What an answer turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The first answer, in time. `complete` when the request's departure is known as well.
    InTime { complete: bool },
    /// The first answer, arrived after patience had ended but before the verdict was spoken. That
    /// is spoken now: lost and late at once.
    TooLate,
    /// The first answer, after the verdict.
    Late,
    /// Another copy.
    Copy,
    /// So old that nobody remembers.
    Forgotten,
    /// To nothing we asked.
    Unasked,
}

/// The oldest request without a verdict.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenProbe {
    pub(super) seq: u64,
    pub(super) departure: Mono,
    pub(super) deadline: Mono,
    /// Its answer is here and only the transmit stamp is missing.
    pub(super) answered: bool,
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    due: Mono,
    /// What the request carries as its send time: the earliest instant at which it may have left.
    sent_at: Mono,
    handed_at: Option<Mono>,
    tx: Option<Stamp>,
    reply: Option<Reply>,
    fate: Fate,
}

#[derive(Debug, Clone, Copy)]
struct Reply {
    rx: Stamp,
    handled_at: Mono,
    stamps: Option<EchoStamps>,
    ttl: Option<u8>,
}

impl Probe {
    fn departure(&self) -> Mono {
        self.tx.map(|tx| tx.at).or(self.handed_at).unwrap_or(self.sent_at)
    }

    /// While nothing is known of its departure the driver may be late, or its stamp on the way: the
    /// request is given twice the patience.
    fn deadline(&self, patience: Span) -> Mono {
        let known = self.tx.is_some() || self.handed_at.is_some();
        self.departure() + patience * if known { 1 } else { 2 }
    }

    fn exchange(&self, seq: u64) -> Option<Exchange> {
        let reply = self.reply?;
        let tx = self.tx.unwrap_or(Stamp::application(self.departure()));
        let told = (tx.by == ClockSource::Application).then_some(tx.at);
        let held = reply.stamps.map(|stamps| stamps.answered_at.since(stamps.received_at));
        let longest = reply.rx.at.since(tx.at) + tx.error + reply.rx.error;
        let by_kernel = reply.stamps.is_some_and(|stamps| stamps.kernel_stamp);
        let clock = if by_kernel { ClockSource::Kernel } else { ClockSource::Application };
        Some(Exchange {
            seq,
            due: self.due,
            tx,
            rx: reply.rx,
            tx_application: self.handed_at.or(told).unwrap_or(self.sent_at.min(tx.at)),
            rx_application: reply.handled_at,
            responder: held.filter(|held| (Span::ZERO..=longest).contains(held)),
            responder_told: held.is_some(),
            responder_clock: clock,
            ttl_forward: reply.stamps.map(|stamps| stamps.ttl).filter(|ttl| *ttl != 0),
            ttl_reverse: reply.ttl,
        })
    }
}

/// Requests by number. Everything below `open` has a verdict; `open..` may or may not.
#[derive(Debug)]
pub(super) struct Window {
    patience: Span,
    /// Number of the first one in `probes`.
    base: u64,
    /// Number of the first one without a verdict.
    open: u64,
    probes: VecDeque<Probe>,
}

impl Window {
    pub(super) fn new(patience: Span) -> Self {
        Self { patience, base: 0, open: 0, probes: VecDeque::new() }
    }

    /// From now on, and for requests that are on their way.
    pub(super) fn set_patience(&mut self, patience: Span) {
        self.patience = patience;
    }

    /// From a request's departure, as far as it is known, to this instant; `None` where nobody
    /// remembers it.
    pub(super) fn since_departure(&mut self, seq: u64, at: Mono) -> Option<Span> {
        self.probe(seq).map(|probe| at.since(probe.departure()))
    }

    /// When the last request without a verdict gets one at the latest.
    pub(super) fn last_deadline(&self) -> Option<Mono> {
        let last = self.probes.iter().rev().find(|probe| probe.fate == Fate::Open)?;
        Some(last.deadline(self.patience))
    }

    /// Whether another request may be asked for: false only if the driver answers for none of those
    /// it has.
    pub(super) fn has_room(&self) -> bool {
        self.next() - self.open < MOST_OPEN
    }

    /// Adds the next request and returns its number.
    pub(super) fn push(&mut self, due: Mono, sent_at: Mono) -> u64 {
        self.advance();
        let seq = self.next();
        let fate = Fate::Open;
        self.probes.push_back(Probe { due, sent_at, handed_at: None, tx: None, reply: None, fate });
        seq
    }

    pub(super) fn first_open(&mut self) -> Option<OpenProbe> {
        self.advance();
        let (seq, patience) = (self.open, self.patience);
        let probe = self.probe(seq)?;
        let (departure, deadline) = (probe.departure(), probe.deadline(patience));
        Some(OpenProbe { seq, departure, deadline, answered: probe.reply.is_some() })
    }

    pub(super) fn handed(&mut self, seq: u64, at: Mono) {
        if let Some(probe) = self.open_probe(seq) {
            probe.handed_at.get_or_insert(at);
        }
    }

    /// Notes a departure; true when an answer has waited for it.
    pub(super) fn sent(&mut self, seq: u64, tx: Stamp) -> bool {
        let Some(probe) = self.open_probe(seq) else { return false };
        probe.tx.get_or_insert(tx);
        probe.reply.is_some()
    }

    /// Notes that a request stayed at home; false if that contradicts what is known, and then
    /// nothing changes.
    pub(super) fn not_sent(&mut self, seq: u64) -> bool {
        match self.open_probe(seq) {
            Some(probe) if probe.tx.is_none() && probe.reply.is_none() => {
                probe.fate = Fate::NotSent;
                true
            }
            _ => false,
        }
    }

    /// Whether an answer may be to something we asked: to a request that is remembered and left at
    /// that time, or to one that is too old to tell.
    pub(super) fn may_answer(&self, seq: u64, sent_at: Option<u64>) -> bool {
        let Some(index) = seq.checked_sub(self.base) else { return true };
        let probe = usize::try_from(index).ok().and_then(|index| self.probes.get(index));
        probe.is_some_and(|probe| sent_at.is_none_or(|sent_at| probe.sent_at.0 == sent_at))
    }

    /// Judges an answer and keeps it if it is the first and in time. `at` is when the program and
    /// the stamp saw it; `sent_at` what it repeats of the request's send time, if it had room for
    /// that.
    pub(super) fn arrive(
        &mut self,
        seq: u64,
        sent_at: Option<u64>,
        at: (Mono, Stamp),
        stamps: Option<EchoStamps>,
        ttl: Option<u8>,
    ) -> Arrival {
        if seq < self.base {
            return Arrival::Forgotten;
        }
        let (patience, (handled_at, rx)) = (self.patience, at);
        let Some(probe) =
            self.probe(seq).filter(|probe| sent_at.is_none_or(|sent_at| probe.sent_at.0 == sent_at))
        else {
            return Arrival::Unasked;
        };
        match probe.fate {
            Fate::NotSent | Fate::Abandoned => Arrival::Unasked,
            Fate::Open if probe.reply.is_none() => {
                if rx.at > probe.deadline(patience) {
                    probe.fate = Fate::Late;
                    return Arrival::TooLate;
                }
                probe.reply = Some(Reply { rx, handled_at, stamps, ttl });
                Arrival::InTime { complete: probe.tx.is_some() }
            }
            Fate::Open | Fate::Answered | Fate::Late => Arrival::Copy,
            Fate::Lost => {
                probe.fate = Fate::Late;
                Arrival::Late
            }
        }
    }

    /// Gives the verdict "answered"; `None` if it has one already or no answer is here.
    pub(super) fn settle_answer(&mut self, seq: u64) -> Option<Exchange> {
        let probe = self.open_probe(seq)?;
        let exchange = probe.exchange(seq)?;
        probe.fate = Fate::Answered;
        Some(exchange)
    }

    /// Gives a verdict to a request without one; the first verdict stands.
    pub(super) fn settle(&mut self, seq: u64, fate: Fate) {
        if let Some(probe) = self.open_probe(seq) {
            probe.fate = fate;
        }
    }

    /// The number that the next request will have.
    pub(super) fn next(&self) -> u64 {
        self.base + self.probes.len() as u64
    }

    fn probe(&mut self, seq: u64) -> Option<&mut Probe> {
        let index = usize::try_from(seq.checked_sub(self.base)?).ok()?;
        self.probes.get_mut(index)
    }

    fn open_probe(&mut self, seq: u64) -> Option<&mut Probe> {
        self.probe(seq).filter(|probe| probe.fate == Fate::Open)
    }

    /// Moves `open` past the verdicts and forgets the oldest of them.
    fn advance(&mut self) {
        while self.probe(self.open).is_some_and(|probe| probe.fate != Fate::Open) {
            self.open += 1;
        }
        while self.open - self.base > REMEMBERED {
            self.probes.pop_front();
            self.base += 1;
        }
    }
}

/// Twice what a plan may have outstanding, because a request of unknown departure is given twice
/// the patience; and the slack of as much again before sending pauses.
const MOST_OPEN: u64 = 4 * EchoPlan::MOST_OUTSTANDING as u64;
/// Verdicts kept to recognise copies and late answers: 40 s of them at a request every 10 ms.
const REMEMBERED: u64 = 4096;

#[cfg(test)]
mod tests {
    use netaware_units::RemoteMono;

    use super::*;

    #[test]
    fn there_is_room_for_so_many_without_a_verdict_and_for_one_more_with_each_verdict() {
        let mut window = Window::new(Span::from_secs(1));
        for seq in 0..MOST_OPEN {
            assert!(window.has_room(), "{seq}");
            assert_eq!(window.push(Mono(0), Mono(0)), seq);
        }
        assert!(!window.has_room());
        window.settle(0, Fate::Lost);
        assert!(window.first_open().is_some_and(|open| open.seq == 1));
        assert!(window.has_room());
        window.push(Mono(0), Mono(0));
        assert!(!window.has_room());
    }

    #[test]
    fn there_is_room_for_four_times_what_a_plan_may_have_outstanding() {
        let mut window = Window::new(Span::from_secs(1));
        for _ in 1..4 * EchoPlan::MOST_OUTSTANDING {
            window.push(Mono(0), Mono(0));
        }
        assert!(window.has_room());
        window.push(Mono(0), Mono(0));
        assert!(!window.has_room());
    }

    /// Due at 90 ns, given to the driver at 100 ns.
    fn probe(handed_at: Option<u64>, tx: Option<Stamp>) -> Probe {
        let handed_at = handed_at.map(Mono);
        Probe { due: Mono(90), sent_at: Mono(100), handed_at, tx, reply: None, fate: Fate::Open }
    }

    /// Good to 3 ns.
    fn kernel(at: u64) -> Stamp {
        Stamp { at: Mono(at), by: ClockSource::Kernel, error: Span(3) }
    }

    #[test]
    fn patience_is_doubled_only_while_nothing_is_known_of_the_departure() {
        let rows = [
            (None, None, 140),
            (Some(105), None, 125),
            (None, Some(kernel(107)), 127),
            (Some(105), Some(kernel(107)), 127),
        ];
        for (handed_at, tx, want) in rows {
            assert_eq!(probe(handed_at, tx).deadline(Span(20)), Mono(want), "{handed_at:?} {tx:?}");
        }
    }

    #[test]
    fn an_exchange_has_the_best_stamps_there_are_and_no_claim_that_cannot_be() {
        let answered = |handed_at, tx, held: u64, ttl| {
            let (received_at, answered_at) = (RemoteMono(1_000), RemoteMono(1_000 + held));
            let stamps = EchoStamps { received_at, answered_at, ttl, kernel_stamp: true };
            let reply = Reply { rx: kernel(150), handled_at: Mono(160), stamps: Some(stamps), ttl: Some(57) };
            Probe { reply: Some(reply), ..probe(handed_at, tx) }.exchange(4)
        };
        let stamped = Exchange {
            seq: 4,
            due: Mono(90),
            tx: kernel(107),
            rx: kernel(150),
            tx_application: Mono(105),
            rx_application: Mono(160),
            // 43 ns between the stamps, and what they may be off by.
            responder: Some(Span(49)),
            responder_told: true,
            responder_clock: ClockSource::Kernel,
            ttl_forward: Some(61),
            ttl_reverse: Some(57),
        };
        assert_eq!(answered(Some(105), Some(kernel(107)), 49, 61), Some(stamped));
        let doubted = Exchange { responder: None, ttl_forward: None, ..stamped };
        assert_eq!(answered(Some(105), Some(kernel(107)), 50, 0), Some(doubted));
        // Nobody told when the program handed it over: what the request says stands for it.
        let of_kernel = Exchange { tx_application: Mono(100), ..stamped };
        assert_eq!(answered(None, Some(kernel(107)), 49, 61), Some(of_kernel));
        let told = Stamp::application(Mono(107));
        let of_program = Exchange { tx: told, tx_application: Mono(107), responder: None, ..stamped };
        assert_eq!(answered(None, Some(told), 49, 61), Some(of_program));
        let nobody_told =
            Exchange { tx: Stamp::application(Mono(100)), tx_application: Mono(100), ..stamped };
        assert_eq!(answered(None, None, 49, 61), Some(nobody_told));
        assert_eq!(probe(None, None).exchange(4), None);
    }

    #[test]
    fn a_request_that_left_or_was_answered_is_not_called_unsent_afterwards() {
        let mut window = Window::new(Span(20));
        for seq in 0..3 {
            assert_eq!(window.push(Mono(90), Mono(100)), seq);
        }
        assert!(!window.sent(0, kernel(107)), "no answer waits for it");
        let arrival = window.arrive(1, Some(100), (Mono(130), kernel(120)), None, None);
        assert_eq!(arrival, Arrival::InTime { complete: false });
        assert_eq!([0, 1, 2, 2].map(|seq| window.not_sent(seq)), [false, false, true, false]);
        assert!(window.sent(1, kernel(107)), "its answer waits for it");
        assert!(window.settle_answer(1).is_some() && window.settle_answer(1).is_none());
        assert_eq!(window.arrive(2, Some(100), (Mono(130), kernel(120)), None, None), Arrival::Unasked);
    }

    #[test]
    fn an_answer_at_the_very_end_of_patience_is_in_time_and_one_later_is_too_late() {
        for (at, want) in [(127, Arrival::InTime { complete: true }), (128, Arrival::TooLate)] {
            let mut window = Window::new(Span(20));
            window.push(Mono(90), Mono(100));
            window.sent(0, kernel(107));
            assert_eq!(window.arrive(0, Some(100), (Mono(200), kernel(at)), None, None), want, "{at}");
        }
    }

    #[test]
    fn so_many_verdicts_are_remembered_and_no_more() {
        for (count, want) in [(REMEMBERED, Arrival::Late), (REMEMBERED + 1, Arrival::Forgotten)] {
            let mut window = Window::new(Span(20));
            for seq in 0..count {
                window.push(Mono(90), Mono(100));
                window.settle(seq, Fate::Lost);
            }
            assert!(window.first_open().is_none());
            assert_eq!(window.arrive(0, None, (Mono(200), kernel(150)), None, None), want);
            assert_eq!(window.next(), count);
        }
    }
}
