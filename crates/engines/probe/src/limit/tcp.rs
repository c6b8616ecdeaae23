//! Who limited a TCP transfer.

use netaware_record::{Limit, LimitedBy, ReceiverTick, StreamEnd, TcpEnd};
use netaware_units::{BitRate, ByteCount, Span};

use super::cpu::CpuLoad;
use super::{Across, flatness, percent, percent_finely};

/// What both ends saw of one transfer, or of the last of several rounds.
#[derive(Debug, Clone, Copy)]
pub struct TcpEvidence<'a> {
    /// The sending end, with its streams.
    pub sender: &'a TcpEnd,
    /// The receiving end.
    pub receiver: &'a TcpEnd,
    /// Rate at the receiver after the warm-up.
    pub goodput: BitRate,
    /// Rate asked for, if any.
    pub requested: Option<BitRate>,
    /// Median round trip without load.
    pub idle_rtt: Option<Span>,
    /// Median round trip during the transfer.
    pub loaded_rtt: Option<Span>,
    /// Receiver's slices after the warm-up.
    pub counted: &'a [ReceiverTick],
    /// The transfer came far faster at first, and then held a lower rate, in each of its rounds.
    pub is_held_down: bool,
    /// What lies between the ends.
    pub across: Across,
    /// Another transfer ran the other way at the same time.
    pub is_both_ways: bool,
}

/// Weighs the evidence. The first rule that applies decides: requested rate, an end that did not
/// run, a sender that missed its times, CPU, receive window, send buffer, network.
pub fn tcp_limit(evidence: &TcpEvidence<'_>) -> Limit {
    let signs = Signs::of(evidence);
    requested(evidence)
        .or_else(|| stood_still(evidence))
        .or_else(|| missed_its_times(evidence))
        .or_else(|| signs.cpu(SATURATED))
        .or_else(|| signs.window())
        .or_else(|| signs.buffer())
        .or_else(|| signs.denied_a_core())
        .or_else(|| signs.policer())
        .or_else(|| signs.network())
        .or_else(|| signs.cpu_of_loopback())
        .unwrap_or_else(|| Limit::new(LimitedBy::Unknown, format!("nothing stands out: {}", signs.known())))
}

fn requested(evidence: &TcpEvidence<'_>) -> Option<Limit> {
    let asked = evidence.requested.filter(|asked| asked.0 > 0)?;
    let reached = evidence.goodput.0 as f64 / asked.0 as f64;
    let text = if reached > EXCEEDED {
        format!("{asked} was asked for, and {} went: a stream sends whole segments", evidence.goodput)
    } else {
        format!("{} of the {asked} asked for was reached", percent(reached))
    };
    (reached >= REACHED).then(|| Limit::new(LimitedBy::RequestedRate, text))
}

/// An end whose program was stopped, or whose host was suspended, for a part of the transfer. What
/// the path would have carried then nobody has seen.
fn stood_still(evidence: &TcpEvidence<'_>) -> Option<Limit> {
    let ends = [("sender", evidence.sender), ("receiver", evidence.receiver)];
    let elapsed = evidence.sender.elapsed.max(evidence.receiver.elapsed);
    let of_end = |(name, end): (&'static str, &TcpEnd)| {
        super::stood_still(end.stood_still, elapsed).map(|stood| (stood, name))
    };
    let (stood, name) = ends.into_iter().filter_map(of_end).max()?;
    let text =
        format!("{}; what the path would have carried meanwhile nobody saw", super::did_not_run(name, stood));
    Some(Limit::new(LimitedBy::Unknown, text))
}

/// A sender of spaced blocks that did not reach its rate although its streams had room: it was not
/// there when the blocks were due, because it had no core or because giving a block takes longer
/// than the spacing.
fn missed_its_times(evidence: &TcpEvidence<'_>) -> Option<Limit> {
    evidence.requested?;
    let (kept, given) = evidence.sender.spaced.zip(evidence.sender.given)?;
    let own = kept.slipped - kept.waited;
    if own <= kept.waited || own.secs_f64() < given.secs_f64() * (1.0 - REACHED) {
        return None;
    }
    let text = format!(
        "the sender put off its blocks by {} in all, and waited only {} of it for room in a stream's buffer",
        kept.slipped, kept.waited
    );
    Some(Limit::new(LimitedBy::SenderCpu, text))
}

/// The evidence, digested.
struct Signs<'a> {
    of: &'a TcpEvidence<'a>,
    sender: CpuLoad,
    receiver: CpuLoad,
    /// Shares of the sender's busy time; `None` where the system does not tell.
    window: Option<f64>,
    buffer: Option<f64>,
    /// What the receive windows and the send buffers together hold, and the share of it that the
    /// rate fills in a round trip; `None` where it is not known of each stream.
    window_filled: Option<Filled>,
    buffer_filled: Option<Filled>,
    /// `None` where no stream's system tells.
    retransmits: Option<u64>,
    /// The share of all bytes that was sent again.
    resent: Option<f64>,
    /// Segments that were acknowledged, and those of them that the path had marked.
    delivered: Option<(u64, u64)>,
    idle_rtt: Option<Span>,
    loaded_rtt: Option<Span>,
    /// The mean of what the streams' TCP had come to.
    own_rtt: Option<Span>,
    flatness: Option<f64>,
}

/// How full something is.
#[derive(Debug, Clone, Copy)]
struct Filled {
    holds: ByteCount,
    share: f64,
}

impl<'a> Signs<'a> {
    fn of(evidence: &'a TcpEvidence<'a>) -> Self {
        let streams = &evidence.sender.streams;
        let busy: Span = streams.iter().filter_map(|stream| stream.busy).sum();
        let share = |part: fn(&StreamEnd) -> Option<Span>| {
            let part: Span = streams.iter().filter_map(part).sum();
            (busy > Span::ZERO).then(|| (part.secs_f64() / busy.secs_f64()).clamp(0.0, 1.0))
        };
        let least = streams.iter().filter_map(|stream| stream.min_rtt).min();
        let smoothed: Vec<Span> = streams.iter().filter_map(|stream| stream.rtt).collect();
        let mean =
            (!smoothed.is_empty()).then(|| smoothed.iter().copied().sum::<Span>() / smoothed.len() as i64);
        let idle_rtt = [evidence.idle_rtt, least].into_iter().flatten().min();
        let delivered = |stream: &StreamEnd| stream.delivered.zip(stream.delivered_marked);
        Self {
            of: evidence,
            sender: CpuLoad::of_tcp(evidence.sender),
            receiver: CpuLoad::of_tcp(evidence.receiver),
            window: share(|stream| stream.window_limited),
            buffer: share(|stream| stream.buffer_limited),
            retransmits: streams.iter().filter_map(|stream| stream.retransmits).reduce(u64::saturating_add),
            resent: resent_share(streams),
            window_filled: filled(evidence, idle_rtt, |stream| stream.send_window),
            buffer_filled: filled(evidence, idle_rtt, |stream| stream.send_buffer),
            delivered: streams
                .iter()
                .filter_map(delivered)
                .reduce(|sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))),
            idle_rtt,
            loaded_rtt: evidence.loaded_rtt.or(mean),
            own_rtt: mean,
            flatness: flatness(evidence.counted),
        }
    }

    /// The end whose CPU was at its end. If both were: the receiver where its window held the
    /// sender back, else the one whose thread was under more pressure.
    fn cpu(&self, threshold: f64) -> Option<Limit> {
        let receiver_held = self.window.unwrap_or(0.0) >= HELD_BACK;
        let receiver_first =
            match (self.sender.is_saturated(threshold), self.receiver.is_saturated(threshold)) {
                (true, true) => receiver_held || self.receiver.pressure() > self.sender.pressure(),
                (false, true) => true,
                (true, false) => false,
                (false, false) => return None,
            };
        let held = if receiver_held { self.held_by_window() } else { String::new() };
        Some(if receiver_first {
            let text = format!(
                "receiver's {}{held}; sender's ran {}",
                self.receiver.describe(),
                self.sender.brief()
            );
            Limit::new(LimitedBy::ReceiverCpu, text)
        } else {
            let text =
                format!("sender's {}; receiver's ran {}", self.sender.describe(), self.receiver.brief());
            Limit::new(LimitedBy::SenderCpu, text)
        })
    }

    /// On loopback a thread that is merely very busy is the best suspect there is: its peer and it
    /// take turns.
    fn cpu_of_loopback(&self) -> Option<Limit> {
        (self.of.across == Across::Loopback).then(|| self.cpu(BUSY_ON_LOOPBACK)).flatten()
    }

    fn held_by_window(&self) -> String {
        self.window.map_or(String::new(), |share| {
            format!(", its window held the sender back {} of the time", percent(share))
        })
    }

    /// Whether something that held the sender back for this share of its busy time was the limit. A
    /// sender that paces (BBR) is held back for the rest of its window only: there the window has
    /// to be full as well, and the network must not have shown itself.
    fn held_back(&self, share: f64, filled: Option<Filled>) -> bool {
        let is_full = filled.is_some_and(|filled| filled.share >= FULL);
        let is_alone = !self.is_lossy() && !self.is_marked();
        let is_enough = share >= HELD_BACK || (share >= HELD_BACK_FULL && is_full && is_alone);
        is_enough && !self.queue_stands()
    }

    fn is_lossy(&self) -> bool {
        self.retransmits.is_some_and(|resent| resent >= FEWEST_RETRANSMITS)
    }

    /// So much was sent again that it is no accident.
    fn loses_much(&self) -> bool {
        self.is_lossy() && self.resent.is_some_and(|share| share >= MUCH_RESENT)
    }

    fn is_marked(&self) -> bool {
        self.delivered.is_some_and(|(_, marked)| marked >= FEWEST_RETRANSMITS)
    }

    /// A window that holds many times what a round trip carries is not too small: it was closed
    /// because what came behind a gap waited in it, or because the program that reads had no core.
    fn window(&self) -> Option<Limit> {
        if self.window_filled.is_some_and(|filled| filled.share < HARDLY_FILLED) {
            return None;
        }
        let share = self.window.filter(|share| self.held_back(*share, self.window_filled))?;
        let buffer = largest(&self.of.receiver.streams, |stream| stream.receive_buffer);
        let buffer = buffer.map_or(String::new(), |buffer| format!("receive buffer {buffer}"));
        let text = format!(
            "the receive window {}held the sender back {} of its busy time ({buffer}{}), receiver CPU {}",
            described(self.window_filled, share),
            percent(share),
            self.at_rtt(),
            self.receiver.brief()
        );
        Some(Limit::new(LimitedBy::ReceiveWindow, text))
    }

    fn buffer(&self) -> Option<Limit> {
        let share = self.buffer.filter(|share| self.held_back(*share, self.buffer_filled))?;
        let buffer = largest(&self.of.sender.streams, |stream| stream.send_buffer);
        let buffer = buffer.map_or(String::new(), |buffer| buffer.to_string());
        let text = format!(
            "the send buffer {}held the sender back {} of its busy time ({buffer}{}), sender CPU {}",
            described(self.buffer_filled, share),
            percent(share),
            self.at_rtt(),
            self.sender.brief()
        );
        Some(Limit::new(LimitedBy::SocketBuffer, text))
    }

    /// A thread was ready nearly all the time and others had its core, while the path showed
    /// neither a queue nor losses to speak of: what it carried is what the thread got to move.
    fn denied_a_core(&self) -> Option<Limit> {
        if self.of.across == Across::Loopback || self.queue_stands() || self.loses_much() {
            return None;
        }
        let (by, name, load) = if self.receiver.was_denied() {
            (LimitedBy::ReceiverCpu, "receiver", &self.receiver)
        } else if self.sender.was_denied() {
            (LimitedBy::SenderCpu, "sender", &self.sender)
        } else {
            return None;
        };
        let text = format!("{name}'s {}: others had the core; {}", load.describe(), self.known());
        Some(Limit::new(by, text))
    }

    /// Much is lost, the round trip does not grow, and what is left is even:
    /// something drops what exceeds a rate and queues nothing.
    fn policer(&self) -> Option<Limit> {
        let is_flat = self.flatness.is_some_and(|flatness| flatness <= FLAT_WHERE_POLICED);
        let (idle, loaded) = self.idle_rtt.zip(self.loaded_rtt)?;
        // Requests may pass while the flow itself waits in a short queue, as its own end shows.
        let has_short_queue = self.own_rtt.is_some_and(|own| own - idle > LEAST_RISE.max(idle / 20));
        let has_no_queue = loaded - idle <= NO_QUEUE.max(idle / 20) && !has_short_queue;
        let is_policed = self.of.across == Across::Network
            && is_flat
            && self.loses_much()
            && has_no_queue
            && !self.is_marked();
        is_policed.then(|| {
            let text = format!(
                "much is lost and nothing queues, as at a policer or a very short queue; {}",
                self.known()
            );
            Limit::new(LimitedBy::Network, text)
        })
    }

    /// Only asked when both CPUs have headroom.
    fn network(&self) -> Option<Limit> {
        let flat = self.flatness.filter(|flatness| *flatness <= FLAT);
        let shows_itself = self.is_lossy() || self.is_marked() || self.queue_stands();
        if self.of.across == Across::Loopback || !(flat.is_some() || shows_itself) {
            return None;
        }
        // A plain link that nobody else uses is as flat as a token bucket that is empty.
        let is_shaped = flat.is_some() && self.of.is_held_down && !self.is_marked();
        let by = if is_shaped { LimitedBy::Shaper } else { LimitedBy::Network };
        Some(Limit::new(by, self.known()))
    }

    /// The round trip grew by more than noise explains: a queue on the path is full, or nearly so.
    fn queue_stands(&self) -> bool {
        let (Some(idle), Some(loaded)) = (self.idle_rtt, self.loaded_rtt) else { return false };
        self.of.across == Across::Network && loaded - idle > LEAST_RISE.max(idle / 2)
    }

    fn at_rtt(&self) -> String {
        self.idle_rtt.map_or(String::new(), |rtt| format!(" at a round trip of {rtt}"))
    }

    /// Everything in one line.
    fn known(&self) -> String {
        let mut known = Vec::new();
        known.extend(self.delivered.filter(|(_, marked)| *marked > 0).map(|(delivered, marked)| {
            format!("ECN marks on {} of segments", percent_finely(marked as f64 / delivered.max(1) as f64))
        }));
        known.extend(self.flatness.map(|flatness| format!("rate varies by {}", percent_finely(flatness))));
        let share = self.resent.filter(|share| *share >= MUCH_RESENT);
        let share = share.map_or(String::new(), |share| format!(" ({} of all bytes)", percent(share)));
        known.extend(self.retransmits.map(|resent| format!("{resent} segments sent again{share}")));
        if let (Some(idle), Some(loaded)) = (self.idle_rtt, self.loaded_rtt) {
            known.push(format!("round trip {idle} idle, {loaded} loaded"));
        }
        if self.of.is_both_ways && self.queue_stands() {
            known.push(
                "a transfer ran the other way at the same time: its queue is in this round trip, and delays the \
                 acknowledgements of this transfer, so that one way at a time may carry more"
                    .to_owned(),
            );
        }
        known.push(format!("CPU sender {}, receiver {}", self.sender.brief(), self.receiver.brief()));
        if let (Some(window), Some(buffer)) = (self.window, self.buffer) {
            known.push(format!("held by window {}, by buffer {}", percent(window), percent(buffer)));
        }
        known.join("; ")
    }
}

/// The share of their bytes that streams sent again; `None` where the system does not tell.
fn resent_share(streams: &[StreamEnd]) -> Option<f64> {
    let sum = |of: fn(&StreamEnd) -> Option<ByteCount>| -> Option<u64> {
        streams.iter().map(|stream| of(stream).map(|bytes| bytes.0)).sum()
    };
    let (sent, resent) = (sum(|stream| stream.bytes_sent)?, sum(|stream| stream.bytes_resent)?);
    (sent > 0).then(|| resent as f64 / sent as f64)
}

/// What `of` holds in all streams, and how much of it the rate fills in the shortest round trip.
fn filled(
    evidence: &TcpEvidence<'_>,
    round_trip: Option<Span>,
    of: fn(&StreamEnd) -> Option<ByteCount>,
) -> Option<Filled> {
    let sizes: Option<Vec<ByteCount>> = evidence.sender.streams.iter().map(of).collect();
    let holds: ByteCount = sizes?.into_iter().sum();
    let in_flight = evidence.goodput.0 as f64 / 8.0 * round_trip?.secs_f64();
    (holds > ByteCount(0)).then(|| Filled { holds, share: in_flight / holds.0 as f64 })
}

/// "of 78.6 KiB was 98 % full (rate times round trip) and ", where that decided.
fn described(filled: Option<Filled>, share: f64) -> String {
    filled.filter(|_| share < HELD_BACK).map_or(String::new(), |Filled { holds, share }| {
        format!("of {holds} was {} full (rate times round trip) and ", percent(share.min(1.0)))
    })
}

fn largest(streams: &[StreamEnd], of: fn(&StreamEnd) -> Option<ByteCount>) -> Option<ByteCount> {
    streams.iter().filter_map(of).max()
}

/// A paced sender never quite reaches its rate; 3 % is more than header and start-up effects take.
const REACHED: f64 = 0.97;
/// More than this of a rate was not limited to it.
const EXCEEDED: f64 = 1.1;
/// Rate variation behind a policer: what is sent again comes in bursts. Seen: 0.4 to 2.1 %.
const FLAT_WHERE_POLICED: f64 = 0.05;
/// Share of bytes sent again that is no accident of a few bursts.
const MUCH_RESENT: f64 = 0.01;
/// A round trip that grows by less met no queue.
const NO_QUEUE: Span = Span::from_micros(500);
/// Ticks of /proc/stat and the meter's own work keep a full core from reading 100 %.
const SATURATED: f64 = 0.9;
/// Two threads that hand data to each other through a socket each idle while the other works.
const BUSY_ON_LOOPBACK: f64 = 0.6;
/// Share of busy time from which a window or buffer is the limit; TCP's own tuning causes some per
/// cent at the start.
const HELD_BACK: f64 = 0.4;
/// The same where the window or buffer is full besides. Seen with BBR, which paces: 25 to 42 % for
/// a receive window of 64 KiB, 19 and 26 % for a send buffer of 4 MiB, and 0 % where the network is
/// the limit.
const HELD_BACK_FULL: f64 = 0.15;
/// Share of a window or buffer from which it is full. Rate times round trip falls short of it: by
/// the slow start that counts, and a send buffer by what the kernel counts for packets beside their
/// data, which is a third. Where the kernel still lengthens a buffer, it is a third full at most.
const FULL: f64 = 0.6;
/// Share of a window below which it has room for several times the rate.
const HARDLY_FILLED: f64 = 0.125;
/// Rate variation below which a token bucket (or a link of fixed rate) is at work; competing
/// traffic makes 5 % and more.
const FLAT: f64 = 0.015;
/// One or two segments get lost for any reason.
const FEWEST_RETRANSMITS: u64 = 3;
/// Wake-ups of a loaded host lengthen a round trip by up to this, without any queue on the path.
const LEAST_RISE: Span = Span::from_millis(2);

#[cfg(test)]
mod tests;
