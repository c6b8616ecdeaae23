//! What an echo train reports.

use netaware_engine::NotSent;
use netaware_units::{ClockSource, Mono, Span, Stamp};

/// A request that was answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Number of the request, from zero.
    pub seq: u64,
    /// When it should have left.
    pub due: Mono,
    /// When it left, by the stamp closest to the wire.
    pub tx: Stamp,
    /// When the answer arrived, by the stamp closest to the wire.
    pub rx: Stamp,
    /// When the program handed it over. Taken from `due` where the driver does not tell, and then
    /// too early by as much as the send was late.
    pub tx_application: Mono,
    /// When the program got the answer.
    pub rx_application: Mono,
    /// How long the responder held it by its own clock; `None` if it does not tell, or claims what
    /// cannot be: less than nothing, or more than the whole round trip.
    pub responder: Option<Span>,
    /// Whether the responder told.
    pub responder_told: bool,
    /// Who took the responder's receive stamp; its send stamp is always the program's.
    pub responder_clock: ClockSource,
    /// TTL or hop limit of the request on arrival there.
    pub ttl_forward: Option<u8>,
    /// TTL or hop limit of the answer on arrival here.
    pub ttl_reverse: Option<u8>,
}

impl Exchange {
    /// Round trip between the stamps closest to the wire, the responder's own time taken out. Never
    /// negative: stamps that contradict each other by less than their error give zero.
    pub fn rtt(&self) -> Span {
        (self.rx.at.since(self.tx.at) - self.responder.unwrap_or(Span::ZERO)).or_zero()
    }

    /// Round trip as the application sees it, the responder's time included.
    pub fn rtt_application(&self) -> Span {
        self.rx_application.since(self.tx_application).or_zero()
    }

    /// From when the request should have left until the application had the answer: with what held
    /// up the send, and with the responder's time.
    pub fn rtt_from_due(&self) -> Span {
        self.rx_application.since(self.due).or_zero()
    }

    /// The worse of the two clocks that took [`Self::rtt`].
    pub fn clock(&self) -> ClockSource {
        self.tx.by.min(self.rx.by)
    }
}

/// Something a caller wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoEvent {
    /// Request answered in time.
    Answered(Exchange),
    /// No answer within patience.
    Lost(u64),
    /// The answer to a lost request came after all.
    Late(u64),
    /// The request never left.
    NotSent {
        /// Which.
        seq: u64,
        /// Why.
        why: NotSent,
    },
    /// A further copy of an answer.
    Duplicate(u64),
    /// An answer came after that to a later request (RFC 4737 §3); its `Answered` comes as well.
    Reordered(u64),
    /// All requests are sent, and half of the patience with one of them is over: the train ends no
    /// later than then. Told once.
    Overdue {
        /// When it ends at the latest.
        until: Mono,
        /// Requests in a row, up to the last one, that have no answer yet.
        in_a_row: u64,
    },
}

/// Counts of a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EchoCounts {
    /// Requests given to the driver.
    pub asked: u64,
    /// Of these: never left.
    pub not_sent: u64,
    /// Answered in time.
    pub received: u64,
    /// Not answered in time.
    pub lost: u64,
    /// Of the lost: answered after all.
    pub late: u64,
    /// Answered in time, but after a later one.
    pub reordered: u64,
    /// Further copies of answers.
    pub duplicates: u64,
    /// Without an answer when the train was stopped, and asked after the last that was answered:
    /// too young to be lost.
    pub abandoned: u64,
    /// Without a verdict yet; zero when the train is done.
    pub outstanding: u64,
    /// Datagrams that were no answers.
    pub ignored: Ignored,
}

impl EchoCounts {
    /// Requests that left: `received + lost + abandoned`, once nothing is outstanding.
    pub fn sent(&self) -> u64 {
        self.received + self.lost + self.abandoned
    }

    /// Answers that came and could not be used.
    pub fn bad(&self) -> u64 {
        self.ignored.wrong_length + self.ignored.altered
    }
}

/// Datagrams that changed nothing, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored {
    /// Not an echo reply of ours, or of another flow.
    pub foreign: u64,
    /// An answer of another length than asked for.
    pub wrong_length: u64,
    /// An answer whose payload is not what it should be.
    pub altered: u64,
    /// Answers what was never asked, or repeats a send time that we did not choose.
    pub unasked: u64,
    /// Answers a request so old that a copy cannot be told from a late answer any more.
    pub forgotten: u64,
}
