//! Connections over a simulated path: a SYN, and what the destination's port makes of it.
//!
//! As Linux does it: SYN and SYN-ACK carry 20 bytes of options, a RST none, and who only wanted to
//! know acknowledges and resets at once. A SYN that gets no answer is sent again after a second,
//! which is longer than [`netaware_path::reach::TcpTries`] waits: so none is here.

use netaware_netmodel::{Fate as Passage, Packet, Side};
use netaware_path::reach::TcpAnswer;
use netaware_units::{Mono, Span};

use super::{HopPath, HostAnswer, Said, Underway};

/// What a port of the destination is, in the words of port scanners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TcpPort {
    /// Somebody listens: SYN-ACK.
    #[default]
    Open,
    /// Nobody does: RST.
    Closed,
    /// Something in front of it drops what comes.
    Filtered,
}

/// A connection that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connected {
    /// What a prober sees of it.
    pub answer: TcpAnswer,
    /// True delays of the SYN and of its answer, if both arrived.
    pub rtt: Option<Span>,
    /// Whether the SYN or its answer was lost on the way.
    pub lost: bool,
}

/// One under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connecting {
    /// Number of the SYN.
    syn: u64,
    port: TcpPort,
    /// True delays.
    there: Option<Span>,
    back: Option<Span>,
    lost: bool,
    /// When the answer came, by the clock of A.
    answered_at: Option<Mono>,
}

impl HopPath {
    /// Opens a connection, and resets it if it comes about.
    pub fn connect(&mut self, port: TcpPort, patience: Span) -> Connected {
        let sent_at = self.now();
        self.connections += 1;
        let syn = self.offer(Side::A, SYN);
        let connecting = Connecting { syn, port, there: None, back: None, lost: false, answered_at: None };
        let mut underway = Underway { probes: &[], first: 0, told: Vec::new(), tcp: Some(connecting) };
        let until = self.sim.now + patience;
        loop {
            let next = self.sim.network.next_event().filter(|next| *next <= until);
            self.pass_to(next.unwrap_or(until), &mut underway);
            if next.is_none() || underway.tcp.is_none_or(|tcp| tcp.answered_at.is_some()) {
                break;
            }
        }
        let Connecting { there, back, lost, answered_at, .. } = underway.tcp.unwrap_or(connecting);
        let rtt = there.zip(back).map(|(there, back)| there + back);
        let answer = match (answered_at.map(|at| at - sent_at), port) {
            (Some(rtt), TcpPort::Open) => {
                // The acknowledgement, and the reset of who wanted nothing more.
                self.offer(Side::A, SHORT);
                self.offer(Side::A, SHORT);
                TcpAnswer::Accepted(rtt)
            }
            (Some(rtt), _) => TcpAnswer::Refused(rtt),
            (None, _) => TcpAnswer::Silent,
        };
        Connected { answer, rtt, lost }
    }

    /// What became of a packet, if it is one of a connection under way.
    pub(super) fn take_tcp(&mut self, fate: &Passage, underway: &mut Underway<'_>) {
        let Some(tcp) = &mut underway.tcp else { return };
        let answers = self.answers.get(&fate.id()).is_some_and(|answer| answer.about == tcp.syn);
        if fate.id() != tcp.syn && !answers {
            return;
        }
        match *fate {
            Passage::Dropped { .. } | Passage::Delivered { corrupted_bit: Some(_), duplicate: false, .. } => {
                tcp.lost = true;
            }
            Passage::Delivered { delay, at, to: Side::A, corrupted_bit: None, duplicate: false, .. } => {
                tcp.back = Some(delay);
                tcp.answered_at = Some(self.sim.clock(Side::A).reading(at));
            }
            Passage::Delivered { delay, to: Side::B, corrupted_bit: None, duplicate: false, .. } => {
                tcp.there = Some(delay);
                let (syn, port) = (tcp.syn, tcp.port);
                let payload = match port {
                    TcpPort::Open => SYN,
                    TcpPort::Closed => RST,
                    TcpPort::Filtered => return,
                };
                let answer = self.offer(Side::B, payload);
                let said = HostAnswer { about: syn, said: Said::Tcp, ident: None, stamps: None };
                self.answers.insert(answer, said);
            }
            _ => {}
        }
    }

    /// Sends a segment of so many bytes above IP; each connection is a flow of its own.
    fn offer(&mut self, from: Side, segment: u32) -> u64 {
        let id = self.sim.next_id;
        self.sim.next_id += 1;
        let packet = Packet {
            id,
            version: self.version,
            length: self.version.header_len() + segment,
            hop_limit: 64,
            flow: FLOWS + self.connections,
            dont_fragment: true,
        };
        self.book(id, from).sent += 1;
        self.sim.network.offer(self.sim.now, from, packet);
        id
    }
}

/// Header with the options that Linux sends, bytes.
const SYN: u32 = 40;
/// Acknowledgement or reset of a connection with timestamps.
const SHORT: u32 = 32;
/// Without options.
const RST: u32 = 20;
/// Beyond those of probes.
const FLOWS: u64 = 1000;
