//! A bulk transfer of one lane, with echoes beside it if wanted.

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_probe::absence::{self, Away};
use netaware_probe::held_back;
use netaware_record::{Bottleneck, Direction, Outcome, ReceiverTick, TcpCount, TcpEnd};
use netaware_stats::patience;
use netaware_units::{BitRate, ByteCount, SendRate, Span};
use netaware_wire::control::{MAX_BLOCK_SPACING, TcpPlan, UdpPlan, UdpReceive, UdpSend};

use crate::bulk::{self, BulkPlan, Ended, Job, Tick};
use crate::careful;
use crate::echo::{EchoOrder, EchoRun};
use crate::interval::IntervalMeter;
use crate::lane::Lane;
use crate::progress::{ASKS_AGAIN, Watch};
use crate::request::Target;

/// What to ask of TCP.
#[derive(Debug, Clone)]
pub(crate) struct TcpOrder {
    pub(crate) direction: Direction,
    pub(crate) duration: Span,
    pub(crate) bytes: Option<ByteCount>,
    /// As many as were asked for, which `bytes` then says in bytes.
    pub(crate) blocks: Option<u64>,
    /// From block to block.
    pub(crate) block_spacing: Option<Span>,
    pub(crate) streams: u16,
    pub(crate) length: Option<u32>,
    pub(crate) rate: Option<SendRate>,
    /// The rate that the responder's owner made of it.
    pub(crate) cap: Option<BitRate>,
    /// Socket buffers asked for, for the record; the target's options set them.
    pub(crate) window: Option<u32>,
    pub(crate) nodelay: bool,
    pub(crate) congestion: Option<String>,
    pub(crate) zerocopy: bool,
    pub(crate) affinity: Vec<usize>,
    /// Exactly so much is left out at the start; absent leaves it to the slow-start rule.
    pub(crate) omit: Option<Span>,
    pub(crate) tick: Span,
    /// Intervals are told to the listener at this length; absent keeps quiet.
    pub(crate) tell_every: Option<Span>,
    /// Sample TCP_INFO of each stream.
    pub(crate) per_stream: bool,
    /// The narrowest link, if somebody knows it.
    pub(crate) bottleneck: Option<Bottleneck>,
    /// Another transfer ran at the same time, the other way.
    pub(crate) at_once: bool,
}

impl TcpOrder {
    pub(crate) fn new(direction: Direction, tick: Span) -> Self {
        Self {
            direction,
            duration: Span::from_secs(1),
            bytes: None,
            blocks: None,
            block_spacing: None,
            streams: 1,
            length: None,
            rate: None,
            cap: None,
            window: None,
            nodelay: false,
            congestion: None,
            zerocopy: false,
            affinity: Vec::new(),
            omit: None,
            tick,
            tell_every: None,
            per_stream: false,
            bottleneck: None,
            at_once: false,
        }
    }

    /// Bytes per write.
    pub(crate) fn block_length(&self) -> u32 {
        self.length.unwrap_or(netaware_io::tcp::DEFAULT_LENGTH)
    }

    /// What the sender is held to by what was asked for.
    pub(crate) fn requested_rate(&self) -> Option<BitRate> {
        let block = ByteCount(self.block_length().into());
        let rate = self.rate.map(SendRate::bit_rate);
        rate.or_else(|| self.block_spacing.and_then(|spacing| BitRate::mean(block, spacing)))
    }

    /// What the sender was held to, by the responder's owner or by what was asked for.
    pub(crate) fn held_to(&self) -> Option<BitRate> {
        self.cap.or_else(|| self.requested_rate())
    }

    fn plan(&self, target: &Target) -> TcpPlan {
        TcpPlan {
            streams: self.streams,
            bytes: self.bytes,
            length: self.block_length(),
            tick: self.tick,
            rate: self.rate.map(SendRate::bit_rate),
            window: target.options.window,
            mss: target.options.mss,
            nodelay: self.nodelay,
            dscp: target.options.dscp,
            congestion: self.congestion.clone(),
            zerocopy: self.zerocopy,
            quiet: self.tell_every.is_none(),
            block_spacing: self.block_spacing,
            per_stream: self.per_stream,
            ..TcpPlan::new(self.direction, self.duration)
        }
    }

    /// What was asked for in the end, under the limits of the responder's owner: figures are judged
    /// by this. A cap on bytes that was reached ended the transfer before its time.
    fn as_it_ran(&self, plan: &TcpPlan, ended: &Ended) -> Self {
        let moved = [&ended.tcp_sender, &ended.tcp_receiver].into_iter().flatten().map(|end| end.bytes).max();
        let reached = plan.bytes.filter(|cap| moved.is_some_and(|moved| moved >= *cap));
        let bytes = self.bytes.or(reached);
        let block = ByteCount(plan.length.into());
        let spaced = || plan.block_spacing.and_then(|spacing| BitRate::mean(block, spacing));
        let cap = plan.rate.or_else(spaced).filter(|rate| Some(*rate) != self.requested_rate());
        Self { duration: plan.duration, streams: plan.streams, bytes, cap, ..self.clone() }
    }
}

/// What to ask of UDP.
#[derive(Debug, Clone)]
pub(crate) struct UdpOrder {
    pub(crate) plan: UdpPlan,
    /// Rates on the wire are those of tagged frames.
    pub(crate) vlan: bool,
    pub(crate) planned: Option<SendRate>,
    /// The responder's owner lowered the planned rate to this one.
    pub(crate) cap: Option<BitRate>,
    /// Nobody typed the rate: it follows from what the path was seen to carry, and the stream ends
    /// where that has come to be far less.
    pub(crate) is_derived: bool,
    pub(crate) affinity: Vec<usize>,
    pub(crate) tell_every: Option<Span>,
}

impl UdpOrder {
    /// One datagram at a time, evenly spaced.
    pub(crate) fn paced(
        direction: Direction,
        duration: Span,
        length: u32,
        rate: SendRate,
        tick: Span,
    ) -> Self {
        Self {
            plan: UdpPlan {
                direction,
                duration,
                packets: None,
                length,
                gap_ps: Some(rate.gap_ps(length)),
                send: UdpSend::Single,
                receive: UdpReceive::Single,
                tick,
                settle: None,
                round_trip: Span::ZERO,
                window: None,
                dscp: 0,
                burst: 1,
                histogram: None,
                log: false,
            },
            vlan: false,
            planned: Some(rate),
            cap: None,
            is_derived: false,
            affinity: Vec::new(),
            tell_every: None,
        }
    }

    /// The same with the plan and the rate that the responder's owner allows.
    fn as_allowed(&self, plan: UdpPlan, planned: Option<SendRate>) -> Self {
        let is_lowered = planned != self.planned;
        let cap = if is_lowered { planned.map(SendRate::bit_rate) } else { self.cap };
        Self { plan, planned, cap, ..self.clone() }
    }
}

/// One TCP transfer as it went.
pub(crate) struct TcpRound {
    pub(crate) order: TcpOrder,
    pub(crate) ended: Ended,
    /// What arrived, where TCP held some of it back from the application.
    pub(crate) arrived: Option<Vec<ReceiverTick>>,
    /// The slices that count without those in which an end did not run, where there were such.
    pub(crate) ran: Option<Vec<ReceiverTick>>,
    pub(crate) load: Option<EchoRun>,
}

impl TcpRound {
    pub(crate) fn new(order: TcpOrder, ended: Ended, load: Option<EchoRun>) -> Self {
        let arrived = held_back::arrivals(&ended.sender_ticks).filter(|_| sender_tells_all(&order, &ended));
        let mut round = Self { order, ended, arrived, ran: None, load };
        round.ran = round.without_absences();
        round
    }

    /// Whose count the round goes by. A transfer of so many bytes goes by what was delivered: its
    /// last bytes count, too.
    pub(crate) fn count(&self) -> (TcpCount, &[ReceiverTick]) {
        let (count, ticks) = match &self.arrived {
            Some(arrived) if self.order.bytes.is_none() => (TcpCount::Acknowledged, arrived),
            _ => (TcpCount::Delivered, &self.ended.receiver_ticks),
        };
        (count, self.ran.as_ref().unwrap_or(ticks))
    }

    /// The slices that count without those in which an end did not run: what the path would have
    /// carried meanwhile nobody knows. `None` where both ends ran all the time, or told nothing of
    /// it.
    fn without_absences(&self) -> Option<Vec<ReceiverTick>> {
        let (tick, ended) = (self.order.tick, &self.ended);
        let stood = |end: &Option<TcpEnd>| end.as_ref().and_then(|end| end.stood_still);
        let sender = ended.sender_ticks.iter().map(|tick| (tick.end, tick.length));
        let receiver = ended.receiver_ticks.iter().map(|tick| (tick.end, tick.length));
        let sender = absence::times(sender, tick, stood(&ended.tcp_sender));
        let receiver = absence::times(receiver, tick, stood(&ended.tcp_receiver));
        let (count, ticks) = self.count();
        // The receiver's clock starts with the first byte.
        let apart = self.loaded_rtt().unwrap_or_default().max(tick);
        let is_senders = count == TcpCount::Acknowledged;
        let on_clock = |away: Vec<Away>, is_own: bool| {
            away.into_iter().map(move |away| if is_own { away } else { away.widened(apart) })
        };
        let away: Vec<Away> = on_clock(sender, is_senders).chain(on_clock(receiver, !is_senders)).collect();
        absence::without(ticks, &away, tick)
    }

    /// What the sender's TCP measured in the middle of the transfer, the queue included.
    pub(crate) fn loaded_rtt(&self) -> Option<Span> {
        let mut rtts: Vec<Span> = self.ended.sender_ticks.iter().filter_map(|tick| tick.rtt).collect();
        rtts.sort_unstable();
        rtts.get(rtts.len() / 2).copied()
    }

    /// Not one byte of payload is known to have come.
    pub(crate) fn carried_nothing(&self) -> bool {
        let told = self.ended.tcp_receiver.as_ref().map_or(0, |end| end.bytes.0);
        told == 0 && self.ended.receiver_ticks.iter().all(|tick| tick.bytes.0 == 0)
    }

    /// The echoes beside it: without a load they ran beside nothing.
    pub(crate) fn under_load(&self) -> Option<&EchoRun> {
        self.load.as_ref().filter(|_| !self.carried_nothing())
    }
}

/// A sender that broke off tells less than the receiver has seen of the planned time. What comes
/// after that, while queues drain, is nobody's rate.
fn sender_tells_all(order: &TcpOrder, ended: &Ended) -> bool {
    let told = ended.sender_ticks.last().map_or(Span::ZERO, |tick| tick.end);
    let seen = ended.receiver_ticks.last().map_or(Span::ZERO, |tick| tick.end);
    told + order.tick >= seen.min(order.duration)
}

/// One UDP stream as it went.
pub(crate) struct UdpRound {
    pub(crate) order: UdpOrder,
    pub(crate) ended: Ended,
    /// Another stream ran at the same time.
    pub(crate) at_once: bool,
    /// For how long nothing came over the session's own connection while it ran, where that was
    /// long.
    pub(crate) silence: Option<Span>,
}

impl UdpRound {
    /// A stream that was ended because it overfilled the path is measured for as long as it was
    /// sent, where it is one of many phases: a warning says so.
    pub(crate) fn accept_giving_way(&mut self) {
        let Ended { gave_way, outcome, udp_sender, udp_receiver, .. } = &mut self.ended;
        if *gave_way {
            *outcome = Outcome::Complete;
            if let Some(end) = udp_sender {
                end.outcome = Outcome::Complete;
            }
            if let Some(end) = udp_receiver {
                end.outcome = Outcome::Complete;
            }
        }
    }

    /// Datagrams left, and none came.
    pub(crate) fn carried_nothing(&self) -> bool {
        let sent = self.ended.udp_sender.as_ref().is_some_and(|end| end.sent > 0);
        sent && self.ended.udp_receiver.as_ref().is_some_and(|end| end.received == 0)
    }
}

/// Runs TCP transfers of one lane at the same time. A failure is written to the lane; what was
/// measured is returned.
pub(crate) fn tcp(
    lane: &mut Lane,
    target: &Target,
    orders: &[TcpOrder],
    load: Option<&EchoOrder>,
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> Vec<TcpRound> {
    let plans: Vec<TcpPlan> = orders
        .iter()
        .map(|order| {
            let mut plan = order.plan(target);
            plan.streams = lane.streams_allowed(plan.streams);
            obey_limits(lane, &mut plan);
            obey_cap_on_bytes(lane, &mut plan);
            plan
        })
        .collect();
    let job = |(order, plan): (&TcpOrder, &TcpPlan)| Job {
        plan: BulkPlan::Tcp(plan.clone()),
        affinity: order.affinity.clone(),
        // TCP listens to losses by itself.
        gives_way: false,
    };
    let jobs = orders.iter().zip(&plans).map(job).collect();
    let tell_every = orders.first().and_then(|order| order.tell_every);
    let Ran { ended, echoes, .. } = run(lane, target, jobs, load, tell_every, stop, watch);
    let mut echoes = echoes.into_iter();
    let ran = orders.iter().zip(&plans).zip(ended);
    ran.map(|((order, plan), ended)| {
        let order = TcpOrder { at_once: orders.len() > 1, ..order.as_it_ran(plan, &ended) };
        TcpRound::new(order, ended, echoes.next())
    })
    .collect()
}

/// Shortens and slows a transfer to what the responder's owner allows; blocks that have a spacing
/// get a longer one.
fn obey_limits(lane: &mut Lane, plan: &mut TcpPlan) {
    let Some(spacing) = plan.block_spacing else {
        let mut rate = plan.rate.and_then(SendRate::new);
        lane.obey_limits(&mut plan.duration, &mut rate);
        plan.rate = rate.map(SendRate::bit_rate);
        return;
    };
    let block = ByteCount(plan.length.into());
    let asked = BitRate::mean(block, spacing).map(|rate| SendRate::at_least(rate.0));
    let mut rate = asked;
    lane.obey_limits(&mut plan.duration, &mut rate);
    if let Some(allowed) = rate.filter(|_| rate != asked) {
        plan.block_spacing = Some(allowed.bit_rate().time_for(block).min(MAX_BLOCK_SPACING));
    }
}

/// Ends a transfer of a given time before it moves more than the responder's owner allows. One of a
/// given size is left as it is, and refused: it would be another measurement.
fn obey_cap_on_bytes(lane: &mut Lane, plan: &mut TcpPlan) {
    if plan.bytes.is_some() {
        return;
    }
    let block = ByteCount(plan.length.into());
    let rate = plan.rate.or_else(|| plan.block_spacing.and_then(|spacing| BitRate::mean(block, spacing)));
    // Each stream may be ahead of the rate by a block.
    let ahead = u64::from(plan.streams) * block.0;
    let moves = rate.map(|rate| ByteCount(moved(rate, plan.duration).0.saturating_add(ahead)));
    plan.bytes = lane.bytes_allowed(moves);
}

/// What a rate moves in a time.
fn moved(rate: BitRate, over: Span) -> ByteCount {
    let bytes = u128::from(rate.0) * u128::from(over.or_zero().0.unsigned_abs()) / 8_000_000_000;
    ByteCount(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// The same for UDP streams.
pub(crate) fn udp(
    lane: &mut Lane,
    target: &Target,
    orders: &[UdpOrder],
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> Vec<UdpRound> {
    let orders: Vec<UdpOrder> = orders
        .iter()
        .map(|order| {
            let round_trip = lane.round_trip();
            let mut plan = UdpPlan {
                dscp: target.options.dscp,
                settle: Some(patience::after_the_end(round_trip)),
                round_trip,
                ..order.plan.clone()
            };
            let mut rate = order.planned;
            lane.obey_limits(&mut plan.duration, &mut rate);
            if rate != order.planned {
                slow_down(&mut plan, rate);
                if plan.burst < order.plan.burst {
                    lane.warn(&format!(
                        "so many datagrams at once as were asked for, {}, would exceed for long what the responder's \
                         owner allows: bursts have {} instead",
                        order.plan.burst, plan.burst
                    ));
                }
            }
            if plan.packets.is_none() {
                let moves = plan.rate().map(|rate| moved(rate, plan.duration));
                let allowed = lane.bytes_allowed(moves);
                plan.packets = allowed.map(|most| (most.0 / u64::from(plan.length.max(1))).max(1));
            }
            order.as_allowed(plan, rate)
        })
        .collect();
    let job = |order: &UdpOrder| Job {
        plan: BulkPlan::Udp(order.plan.clone()),
        affinity: order.affinity.clone(),
        gives_way: order.is_derived,
    };
    let jobs = orders.iter().map(job).collect();
    let tell_every = orders.first().and_then(|order| order.tell_every);
    let Ran { ended, silence, .. } = run(lane, target, jobs, None, tell_every, stop, watch);
    let at_once = orders.len() > 1;
    let round = |(order, ended)| UdpRound { order, ended, at_once, silence };
    orders.into_iter().zip(ended).map(round).collect()
}

/// Gives a stream the rate that the responder's owner allows, which is that of all datagrams of its
/// bursts. These are made shorter where they would exceed it for long.
fn slow_down(plan: &mut UdpPlan, rate: Option<SendRate>) {
    if let Some(rate) = rate.filter(|_| plan.burst > 1) {
        plan.burst = careful::burst(plan.burst, plan.length, rate);
    }
    let at_once = plan.length.saturating_mul(plan.burst.max(1));
    plan.gap_ps = rate.map(|rate| rate.gap_ps(at_once));
    plan.send = UdpSend::Single;
}

/// What transfers that ran at the same time came to.
#[derive(Default)]
struct Ran {
    ended: Vec<Ended>,
    echoes: Option<EchoRun>,
    /// See [`UdpRound::silence`].
    silence: Option<Span>,
}

fn run(
    lane: &mut Lane,
    target: &Target,
    jobs: Vec<Job>,
    load: Option<&EchoOrder>,
    tell_every: Option<Span>,
    stop: &StopFlag,
    watch: &mut Watch<'_>,
) -> Ran {
    let version = lane.version;
    let Some((session, echo)) = lane.parts() else { return Ran::default() };
    let began_at = clock::now();
    let transfer_over = StopFlag::new();
    let mut meter = tell_every.map(|every| IntervalMeter::new(version, every));
    let ((mut ended, failure), echoes) = std::thread::scope(|scope| {
        let beside = load.zip(echo).map(|(plan, echo)| {
            let over = transfer_over.clone();
            scope.spawn(move || echo.run(plan, &over))
        });
        let ended = bulk::run(session, &target.options, jobs, stop, &mut |direction, tick| match (
            &mut meter, &tick,
        ) {
            (Some(meter), _) => meter.take(direction, &tick, watch),
            (None, Tick::Begun(lasts)) => watch.has_begun(*lasts),
            (None, Tick::Unheard(most)) => watch.ends_late(*most),
            (None, Tick::Draining(most)) => watch.drains_late(*most),
            (None, Tick::AsksAgain(most)) => watch.extends(*most, ASKS_AGAIN),
            (None, Tick::Unanswered(most)) => watch.waits_for_an_answer(*most),
            (None, _) => {}
        });
        transfer_over.raise();
        (ended, beside.and_then(|thread| thread.join().ok()))
    });
    for one in &mut ended {
        one.began_at = Some(began_at);
    }
    if let Some(meter) = &mut meter {
        meter.flush(watch);
    }
    if ended.iter().any(|ended| ended.outcome != Outcome::Complete) {
        lane.note_cut();
    }
    // A flow that broke beside the transfer broke with the lane; the transfer says enough.
    let echoes = echoes.and_then(Result::ok);
    let came = ended.iter().filter_map(|ended| ended.udp_receiver.as_ref()).map(|end| end.received);
    let mut silence = None;
    if let Some(session) = lane.session() {
        session.note_udp(came.sum::<u64>() + echoes.as_ref().map_or(0, EchoRun::answers));
        let last = session.link.last_silence().filter(|(_, until)| *until > began_at);
        silence = last.map(|(from, until)| until - from.max(began_at));
    }
    if let Some(cause) = failure {
        let told = lane.session().map(|session| session.failure(bulk::STAGE, cause.clone()).to_string());
        lane.fail(bulk::STAGE, cause);
        let found = lane.result.unreachable.as_ref();
        if let Some((told, found)) = told.zip(found) {
            give_one_reason(&mut ended, &told, &found.reason);
        }
    }
    Ran { ended, echoes, silence }
}

/// Where it was found out afterwards why the session ended, its transfers ended for the same
/// reason.
fn give_one_reason(ended: &mut [Ended], told: &str, found: &str) {
    for early in ended.iter_mut().filter_map(|ended| ended.early.as_mut()) {
        if early.as_str() == told {
            found.clone_into(early);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_record::SenderTick;

    /// Bursts of 64 at a cap of 1 Mbit/s were planned as 64 Mbit/s.
    #[test]
    fn a_cap_on_the_rate_is_that_of_all_datagrams_of_a_burst() {
        let rate = SendRate::at_least(10_000_000);
        let second = Span::from_secs(1);
        let mut plan = UdpOrder::paced(Direction::Forward, second, 1472, rate, second).plan;
        plan.burst = 64;
        slow_down(&mut plan, Some(SendRate::at_least(1_000_000)));
        assert_eq!(plan.rate(), Some(BitRate(1_000_000)));
        assert_eq!(plan.burst, 8, "64 of them took 750 ms at this rate");
    }

    #[test]
    fn a_stream_knows_that_the_owner_of_the_responder_lowered_its_rate() {
        let second = Span::from_secs(1);
        let asked = SendRate::at_least(10_000_000);
        let order = UdpOrder::paced(Direction::Forward, second, 1472, asked, second);
        let of = |rate| order.as_allowed(order.plan.clone(), Some(rate));
        let lowered = of(SendRate::at_least(1_000_000));
        assert_eq!(
            (lowered.planned, lowered.cap),
            (SendRate::new(BitRate(1_000_000)), Some(BitRate(1_000_000)))
        );
        assert_eq!(of(asked).cap, None);
    }

    /// One record said that nothing was heard for 4.33 s, and that this host had lost its address.
    #[test]
    fn a_transfer_has_the_reason_for_which_its_session_ended() {
        let early = |why: &str| Ended { early: Some(why.to_owned()), ..Ended::default() };
        let mut ended = [early("nothing heard for 4.33 s"), early("stopped by the user"), Ended::default()];
        give_one_reason(&mut ended, "nothing heard for 4.33 s", "this host has lost its address");
        let told = ended.map(|ended| ended.early.unwrap_or_default());
        assert_eq!(told, ["this host has lost its address", "stopped by the user", ""]);
    }

    #[test]
    fn a_transfer_that_a_cap_on_bytes_ended_is_not_judged_by_the_time_that_was_asked_for() {
        let order = TcpOrder {
            duration: Span::from_secs(3),
            ..TcpOrder::new(Direction::Forward, Span::from_millis(50))
        };
        let cap = ByteCount(1_000_000);
        let plan =
            TcpPlan { bytes: Some(cap), streams: 2, ..TcpPlan::new(Direction::Forward, Span::from_secs(2)) };
        let ran = |moved: u64| {
            let end = TcpEnd { bytes: ByteCount(moved), ..Default::default() };
            order.as_it_ran(&plan, &Ended { tcp_sender: Some(end), ..Ended::default() })
        };
        assert_eq!((ran(1_000_000).bytes, ran(1_000_000).duration), (Some(cap), Span::from_secs(2)));
        assert_eq!(ran(999_999).bytes, None, "its time was over before");
        assert_eq!(ran(999_999).streams, plan.streams, "nor by the streams that were asked for");
        assert_eq!(order.as_it_ran(&plan, &Ended::default()).bytes, None, "nobody told");
    }

    #[test]
    fn a_sender_tells_all_if_it_lasted_to_the_plan_or_as_long_as_the_receiver() {
        let second = Span::from_secs(1);
        let order = TcpOrder { duration: second, ..TcpOrder::new(Direction::Forward, Span::from_millis(50)) };
        let tells = |sender: i64, receiver: i64| {
            let ended = Ended {
                sender_ticks: vec![SenderTick { end: Span::from_millis(sender), ..SenderTick::default() }],
                receiver_ticks: vec![ReceiverTick {
                    end: Span::from_millis(receiver),
                    ..ReceiverTick::default()
                }],
                ..Ended::default()
            };
            sender_tells_all(&order, &ended)
        };
        assert!(tells(1000, 1300), "the queue drained for long");
        assert!(tells(430, 460), "both were stopped");
        assert!(!tells(430, 990), "the sender broke off");
    }
}
