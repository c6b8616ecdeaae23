//! The contract between a method and the world that drives it.
//!
//! A method whose product is *when* is an [`Engine`]: a state machine without socket, clock or
//! thread. The driver owns those and keeps three promises:
//!
//! 1. after every `handle` it calls `poll` until that returns [`Output::Wait`] or [`Output::Done`];
//! 2. `now` never runs backwards between calls;
//! 3. each `Send` is answered by exactly one `Sent` or `NotSent` with its `tag`, in any order and
//!    at any later time.
//!
//! The plan (`due`) and what happened (`tx` in `Sent`) stay apart, so a late send is visible and
//! published instead of silently stretching a result. The same engine runs under the real-time
//! driver, in a simulator and over a trace.

use netaware_units::{ByteCount, Mono, Span, Stamp};

/// Chosen by the engine, given back by the driver with the fate of the datagram.
pub type Tag = u64;

/// What the world tells an engine.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// The instant asked for with [`Output::Wait`] has come, or the driver woke early; look at
    /// `now`.
    Wake,
    /// Wind down: give what there is.
    Stop,
    /// A datagram from the peer.
    Datagram {
        /// Its payload.
        bytes: &'a [u8],
        /// When it arrived.
        rx: Stamp,
        /// TTL (IPv4) or hop limit (IPv6) it arrived with, when the system tells.
        ttl: Option<u8>,
    },
    /// The program is about to hand a datagram to the system. Optional, at most once for each
    /// `Send`, before its `Sent`: a driver whose `tx` stamps are the kernel's tells here when the
    /// application itself sent, as an application would have timed it.
    Handed {
        /// Of the `Send` that is carried out.
        tag: Tag,
        /// Read just before the system call.
        at: Mono,
    },
    /// A datagram has left.
    Sent {
        /// Of the `Send` it answers.
        tag: Tag,
        /// When it left.
        tx: Stamp,
    },
    /// A datagram never left.
    NotSent {
        /// Of the `Send` it answers.
        tag: Tag,
        /// Why it stayed.
        why: NotSent,
    },
}

/// Why a datagram stayed at home. It is data about the host, never a loss of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// The send buffer or the device queue was full.
    QueueFull,
    /// Larger than the path MTU that the system knows, which is given.
    TooBig(Option<ByteCount>),
    /// Its time was over before the host came round to it.
    Overdue,
    /// The system refused for another reason (errno).
    Refused(i32),
}

/// What an engine asks of the world.
#[derive(Debug, Clone, PartialEq)]
pub enum Output<E> {
    /// Send the first `len` bytes of the buffer given to `poll`, not before `due`.
    Send {
        /// Bytes of the buffer that are the payload.
        len: usize,
        /// To be given back with the outcome.
        tag: Tag,
        /// The plan; a `due` in the past means at once.
        due: Mono,
    },
    /// Send `count` datagrams of `len` bytes, `gap` apart, the first not before `due`; the driver
    /// asks [`Engine::fill`] for each and answers with tags `tag..tag + count`.
    Train {
        /// Datagrams in the train.
        count: u32,
        /// Bytes of each.
        len: usize,
        /// From start to start.
        gap: Span,
        /// Of the first datagram.
        tag: Tag,
        /// Of the first datagram.
        due: Mono,
    },
    /// Something the caller wants to know.
    Event(E),
    /// Nothing to do until then, or until an input comes.
    Wait(Mono),
    /// Finished; no further input changes anything.
    Done,
}

/// A measurement method.
pub trait Engine {
    /// What it reports.
    type Event;

    /// Takes in what happened.
    fn handle(&mut self, now: Mono, input: Input<'_>);

    /// Says what to do next. `out` is at least as long as the largest datagram that the engine was
    /// configured for.
    fn poll(&mut self, now: Mono, out: &mut [u8]) -> Output<Self::Event>;

    /// Writes the datagram of a train that carries `tag` and returns its length. Engines without
    /// trains keep this.
    fn fill(&mut self, tag: Tag, out: &mut [u8]) -> usize {
        let _ = (tag, out);
        0
    }
}
