//! What all phases of one version saw of its outages, and which transfers one fell into.
//!
//! **Measures** rows of lost requests on the idle path, of those beside TCP, and of lost datagrams,
//! by the same rule. **Assumes** that phases follow each other, so that each saw outages of its
//! own; an outage that two of them saw in part is counted in both. Where streams ran at once, those
//! of the one that saw most are counted. Requests beside TCP are dropped in a row by a full queue,
//! too: theirs is an outage only if nothing came of the transfer either for half of that time. What
//! ICMP messages say was rejected is no outage. Where in a stream of datagrams that was, its slices
//! show: a row beside it is short by up to a slice at each end.

use std::ops::Range;

use netaware_probe::Pacing;
use netaware_probe::loss_split;
use netaware_probe::outage::{self, Outages, Part, Train};
use netaware_record::{Direction, ReceiverTick, SendRefusal, UdpSenderEnd};
use netaware_units::{ByteCount, Span};

use super::{Findings, tcp, udp};
use crate::echo::EchoRun;
use crate::transfer::{TcpRound, UdpRound};

/// The warning of one version: how often, how long, and how many packets fell into outages.
pub(super) fn warning(found: &Findings) -> Option<String> {
    let [down, up] = [Direction::Reverse, Direction::Forward].map(|way| datagrams(&found.udp, way));
    let streams = if found.volume.is_some() {
        // What drops a flow after a volume has a warning of its own.
        Vec::new()
    } else if found.udp.iter().any(|round| round.at_once) {
        vec![both_ways(&down, &up)]
    } else {
        vec![down, up]
    };
    let seen = outage::in_words(&[vec![idle(&found.idle), under_load(&found.tcp)], streams].concat());
    seen.or_else(|| {
        let silence = found.outlived?;
        Some(format!(
            "for {silence} nothing came of the responder, neither answers nor data: the path was out, or its host stood \
             still, while none of what is counted was on its way"
        ))
    })
}

/// Of streams that ran at once: as often as the one that met more outages.
fn both_ways(down: &Part, up: &Part) -> Part {
    let both = down.outages.and(up.outages);
    Part {
        outages: Outages { times: down.outages.times.max(up.outages.times), ..both },
        lost: down.lost + up.lost,
        what: "datagrams".to_owned(),
    }
}

/// The outage that fell into a transfer over TCP, by the requests beside it; `None` where there was
/// none.
pub(super) fn beside(round: &TcpRound) -> Option<Outages> {
    let run = round.under_load()?;
    let found = of_run(run).filter(|found| found.times > 0)?;
    (silence(round, run) >= found.longest / 2).then_some(found)
}

fn of_run(run: &EchoRun) -> Option<Outages> {
    let is_even = matches!(run.order.pacing, Pacing::Even(_));
    (is_even && run.answers() > 0).then(|| run.round.outages(run.order.shown_spacing()))?
}

/// For how long nothing came of a transfer while the requests beside it ran: before its first slice
/// or between them.
fn silence(round: &TcpRound, run: &EchoRun) -> Span {
    let ticks = tcp::slices(round);
    let stretches = ticks.chunk_by(|one, next| (one.bytes.0 == 0) == (next.bytes.0 == 0));
    let silent = stretches.filter(|stretch| stretch[0].bytes == ByteCount(0));
    let lasted = |stretch: &[ReceiverTick]| stretch.iter().map(|tick| tick.length.or_zero()).sum::<Span>();
    let between = silent.map(lasted).max().unwrap_or_default();
    let requests = i64::try_from(run.round.counts().sent()).unwrap_or(i64::MAX);
    let asked = run.order.shown_spacing() * requests;
    let rtts = run.round.rtts_ns();
    let round_trip = rtts.iter().copied().reduce(f64::min).map_or(Span::ZERO, |ns| Span(ns as i64));
    let told = ticks.last().map_or(Span::ZERO, |tick| tick.end);
    between.max((asked - told - round_trip * SET_UP).or_zero())
}

/// Round trips that opening a transfer takes while requests already run beside it.
const SET_UP: i64 = 4;

/// Blocks of requests follow each other: an outage that one of them ended in goes on behind it.
fn idle(runs: &[EchoRun]) -> Part {
    let train = |run: &EchoRun| {
        let is_even = matches!(run.order.pacing, Pacing::Even(_));
        let train = is_even.then(|| run.round.train(run.began_at))??;
        let (silent_at, came_at) = (run.afterwards.silent_at, run.afterwards.came_at);
        Some((run.order.shown_spacing(), Train { silent_at, came_at, ..train }))
    };
    let trains: Vec<Option<(Span, Train)>> = runs.iter().map(train).collect();
    let alike = trains.chunk_by(|one, next| one.as_ref().map(|it| it.0) == next.as_ref().map(|it| it.0));
    let outages = alike.filter_map(|trains| {
        let apart = trains.first()?.as_ref()?.0;
        let trains: Vec<Train> = trains.iter().flatten().map(|(_, train)| train.clone()).collect();
        Some(Outages::over(&trains, apart))
    });
    // Where nothing came at all, no outage ended.
    let has_answers = runs.iter().any(|run| run.answers() > 0);
    Part {
        outages: outages.reduce(Outages::and).filter(|_| has_answers).unwrap_or_default(),
        lost: runs.iter().map(|run| run.round.counts().lost).sum(),
        what: "requests".to_owned(),
    }
}

fn under_load(rounds: &[TcpRound]) -> Part {
    let runs = rounds.iter().filter_map(TcpRound::under_load);
    Part {
        outages: rounds.iter().filter_map(beside).reduce(Outages::and).unwrap_or_default(),
        lost: runs.map(|run| run.round.counts().lost).sum(),
        what: "requests beside TCP".to_owned(),
    }
}

fn datagrams(rounds: &[UdpRound], direction: Direction) -> Part {
    let (mut outages, mut lost) = (Outages::default(), 0);
    let is_of_it = |round: &UdpRound| round.order.plan.direction == direction;
    let broken = udp::broke_off(rounds, direction).and_then(|_| rounds.iter().rposition(is_of_it));
    for (at, round) in rounds.iter().enumerate().filter(|(_, round)| is_of_it(round)) {
        let (Some(sender), Some(receiver)) = (&round.ended.udp_sender, &round.ended.udp_receiver) else {
            continue;
        };
        let mut rows = receiver.loss_runs.clone();
        let told: u64 =
            rows.iter().map(|(length, times)| length.saturating_mul(*times)).fold(0, u64::saturating_add);
        // What broke off is told with its reason.
        let is_broken = broken == Some(at);
        let at_the_end = if is_broken { 0 } else { udp::lost_at_the_end(round) };
        let cut_off = if is_broken { 0 } else { udp::cut_off(round) };
        rows.extend((at_the_end > cut_off).then_some((at_the_end, 1)));
        let apart = sender.elapsed / i64::try_from(sender.sent).unwrap_or(i64::MAX).max(1);
        // A row that late datagrams shortened afterwards is told as it was when they were missing.
        let missing = told.saturating_add(at_the_end).min(sender.sent.saturating_sub(receiver.received));
        lost += missing;
        let rejected = Rejected::of(sender, apart);
        let whole = round.silence.filter(|silence| receiver.received == 0 && *silence >= sender.elapsed);
        let whole = whole.filter(|_| rejected.spared(0..sender.sent) > 0);
        let found = match whole {
            Some(silence) => Outages::of_all(sender.sent, sender.elapsed, silence),
            None if rejected.is_empty() || receiver.received == 0 => {
                Outages::of_stream(&rows, cut_off, sender.sent, apart)
            }
            None => {
                let long = Outages::of_stream(&rows, 0, sender.sent, apart).lost;
                let elsewhere = rejected.lost_elsewhere(round, sender.sent, long, cut_off);
                let rows = outage::rows_elsewhere(&rows, elsewhere, apart);
                let cut_off = rejected.spared(sender.sent.saturating_sub(cut_off)..sender.sent);
                Outages::of_stream(&rows, cut_off, sender.sent, apart)
            }
        };
        // What may have come while the receiver did not run shows no outage of the path.
        if loss_split::may_be_of_absence(sender.sent, receiver) {
            continue;
        }
        // Datagrams that the receiving host dropped had crossed the path.
        let dropped = receiver.drops.total().unwrap_or(0);
        if found.lost <= missing && dropped < found.lost.div_ceil(2) {
            outages = outages.and(found);
        }
    }
    Part { outages, lost, what: format!("datagrams {}", direction.name()) }
}

/// The parts of a stream of which ICMP messages tell that somebody on the path rejected it.
struct Rejected<'a> {
    told: Vec<&'a SendRefusal>,
    apart: Span,
}

impl<'a> Rejected<'a> {
    fn of(sender: &'a UdpSenderEnd, apart: Span) -> Self {
        let is_message = |refusal: &&SendRefusal| refusal.count > refusal.not_sent;
        Self { told: sender.refusals.iter().filter(is_message).collect(), apart }
    }

    fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// How many datagrams with these numbers no message tells of.
    fn spared(&self, numbers: Range<u64>) -> u64 {
        let rejected: Vec<_> =
            self.told.iter().map(|one| outage::rejected(one.first, one.last, self.apart)).collect();
        numbers.filter(|number| !rejected.iter().any(|some| some.contains(number))).count() as u64
    }

    /// How many datagrams at most were lost in long rows while nobody rejected any, apart from
    /// those at the end by which the stream was `cut_off`. Without slices nobody knows when
    /// the `long` rows were: all that can have been rejected is taken for that.
    fn lost_elsewhere(&self, round: &UdpRound, sent: u64, long: u64, cut_off: u64) -> u64 {
        let slices = udp::slices(round);
        if slices.is_empty() {
            return long.saturating_sub(sent - self.spared(0..sent));
        }
        let lost = |slice: &ReceiverTick| u64::try_from(slice.lost).unwrap_or(0);
        let is_spared = |slice: &&ReceiverTick| {
            let midst = slice.end - slice.length / 2;
            !self.told.iter().any(|one| outage::rejected_within(one.first, one.last).contains(&midst))
        };
        let in_rows = slices.iter().filter(|slice| lost(slice) >= slice.packets);
        let placed: u64 = slices.iter().map(lost).sum();
        // What is in no slice was lost after the last datagram that came.
        let at_the_end = udp::lost_in(round).saturating_sub(placed).clamp(cut_off, sent.max(cut_off));
        let at_the_end = sent.saturating_sub(at_the_end)..sent.saturating_sub(cut_off);
        in_rows.filter(is_spared).map(lost).sum::<u64>() + self.spared(at_the_end)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use netaware_probe::compare::Share;
    use netaware_probe::delay_report::EchoLog;
    use netaware_probe::{EchoCounts, Exchange};
    use netaware_record::{CpuUse, IpVersion, UdpReceiverEnd};
    use netaware_stats::ceasing::Ceasing;
    use netaware_units::{ClockSource, Mono, SendRate, Stamp};

    use super::super::volume::Volume;
    use super::*;
    use crate::bulk::Ended;
    use crate::echo::{Afterwards, EchoOrder, Forgotten, Unanswered};
    use crate::heavy_loss;
    use crate::link::standstill::Standstill;
    use crate::request::Transport;
    use crate::transfer::{TcpOrder, UdpOrder};

    const APART: Span = Span::from_millis(10);
    const SLICE: Span = Span::from_millis(50);

    fn answered(seq: u64, ms: i64) -> Exchange {
        let at = |offset: i64| Mono(1_000_000_000) + APART * i64::try_from(seq).unwrap() + offset_ms(offset);
        let stamp = |at| Stamp { at, by: ClockSource::Kernel, error: Span::ZERO };
        Exchange {
            seq,
            due: at(0),
            tx: stamp(at(0)),
            rx: stamp(at(ms)),
            tx_application: at(0),
            rx_application: at(ms),
            responder: Some(Span::ZERO),
            responder_told: true,
            responder_clock: ClockSource::Kernel,
            ttl_forward: None,
            ttl_reverse: None,
        }
    }

    fn offset_ms(ms: i64) -> Span {
        Span::from_millis(ms)
    }

    /// Requests of which these got no answer.
    pub(in crate::report) fn run(sent: u64, lost: Range<u64>) -> EchoRun {
        let mut log = EchoLog::default();
        for seq in (0..sent).filter(|seq| !lost.contains(seq)) {
            log.push(&answered(seq, 5));
        }
        logged(sent, lost, log)
    }

    /// Requests of which each was answered in so many milliseconds.
    pub(in crate::report) fn answered_in(sent: u64, ms: impl Fn(u64) -> i64) -> EchoRun {
        let mut log = EchoLog::default();
        for seq in 0..sent {
            log.push(&answered(seq, ms(seq)));
        }
        logged(sent, 0..0, log)
    }

    /// Requests of which these left 400 ms late and were answered sooner than the others.
    pub(in crate::report) fn left_late(sent: u64, late: Range<u64>) -> EchoRun {
        let mut log = EchoLog::default();
        for seq in 0..sent {
            let mut exchange = answered(seq, 90);
            // A responder that holds it, or a program that reads the answer late, sends no later.
            exchange.rx_application = exchange.rx.at + offset_ms(60);
            if late.contains(&seq) {
                let at = exchange.due + offset_ms(400);
                exchange.tx.at = at;
                exchange.rx.at = at + offset_ms(5);
                (exchange.tx_application, exchange.rx_application) = (exchange.tx.at, exchange.rx.at);
            }
            log.push(&exchange);
        }
        logged(sent, 0..0, log)
    }

    fn unanswered(number: u64) -> Unanswered {
        let left_at = Mono(1_000_000_000) + APART * i64::try_from(number).unwrap();
        Unanswered { number, left_at, came_late: false }
    }

    fn logged(sent: u64, lost: Range<u64>, log: EchoLog) -> EchoRun {
        let counts = EchoCounts {
            asked: sent,
            received: sent - (lost.end - lost.start),
            lost: lost.end - lost.start,
            ..EchoCounts::default()
        };
        EchoRun {
            order: EchoOrder::open_loop(None, APART, 64),
            transport: Transport::Udp,
            round: log.finish(counts),
            late_sends: 0,
            worst_lateness: Span::ZERO,
            why_not_sent: None,
            rejections: Vec::new(),
            stamp_fallbacks: None,
            began_at: Mono(1_000_000_000),
            unanswered: lost.map(unanswered).collect(),
            afterwards: Afterwards::default(),
            lost_at_end: 0,
            ceasing: Ceasing::default(),
            gave_up: false,
            host_drops: None,
            cpu: CpuUse::default(),
        }
    }

    /// Slices of 50 ms of so many Mbit/s.
    pub(in crate::report) fn transfer(mbit: &[u64], load: EchoRun) -> TcpRound {
        let tick = |(n, mbit): (i64, &u64)| ReceiverTick {
            end: SLICE * (n + 1),
            length: SLICE,
            bytes: ByteCount(mbit * 6250),
            streams: 4,
            ..ReceiverTick::default()
        };
        let order = TcpOrder {
            streams: 4,
            duration: SLICE * i64::try_from(mbit.len()).unwrap(),
            ..TcpOrder::new(Direction::Reverse, SLICE)
        };
        let ended = Ended { receiver_ticks: (0..).zip(mbit).map(tick).collect(), ..Ended::default() };
        TcpRound { order, ended, arrived: None, ran: None, load: Some(load) }
    }

    pub(in crate::report) fn stream(direction: Direction, rows: Vec<(u64, u64)>, received: u64) -> UdpRound {
        let rate = SendRate::at_least(10_000_000);
        let order = UdpOrder::paced(direction, Span::from_secs(1), 1472, rate, SLICE);
        let sender = UdpSenderEnd { sent: 1000, elapsed: Span::from_secs(1), ..UdpSenderEnd::default() };
        let receiver =
            UdpReceiverEnd { received, highest: received, loss_runs: rows, ..UdpReceiverEnd::default() };
        let ended = Ended { udp_sender: Some(sender), udp_receiver: Some(receiver), ..Ended::default() };
        UdpRound { order, ended, at_once: false, silence: None }
    }

    /// A link that is down for 0.4 s in each 3.5 s: a third of the requests beside a transfer were
    /// lost, and nothing was said.
    #[test]
    fn an_outage_beside_tcp_at_the_end_of_idle_requests_and_of_a_stream_is_said_once() {
        let cut = [34, 34, 34, 0, 0, 0, 0, 0, 0, 0, 34, 34];
        let found = Findings {
            idle: vec![run(100, 92..100)],
            tcp: vec![transfer(&cut, run(60, 15..55))],
            udp: vec![
                stream(Direction::Reverse, vec![(1, 1)], 599),
                stream(Direction::Forward, vec![], 1000),
            ],
            ..Findings::default()
        };
        let want = "3 times nothing came, for up to 400 ms: 8 of the 8 lost requests, 40 of the 40 lost requests \
                    beside TCP and 400 of the 401 lost datagrams down fell into such an outage";
        assert_eq!(warning(&found).as_deref(), Some(want));
        assert_eq!(warning(&Findings::default()), None);
    }

    /// Four streams of 60 kB each were said to have met two outages of up to 436 ms.
    #[test]
    fn streams_that_stopped_after_the_same_bytes_met_no_outage() {
        let ways = [Direction::Reverse, Direction::Forward];
        let udp = || -> Vec<UdpRound> { ways.map(|way| stream(way, vec![], 40)).into() };
        let volume = Volume::of(IpVersion::V4, &udp());
        assert!(volume.is_some());
        assert_eq!(warning(&Findings { udp: udp(), volume, ..Findings::default() }), None);
        assert!(warning(&Findings { udp: udp(), ..Findings::default() }).is_some());
    }

    /// 65 of 247 datagrams fell into an outage that was longer than the rest of the stream.
    #[test]
    fn the_part_of_an_outage_that_cut_a_stream_off_is_said() {
        let said = |came_within: Span| {
            let mut round = stream(Direction::Reverse, vec![], 936);
            round.ended.udp_receiver.as_mut().unwrap().elapsed = came_within;
            warning(&Findings { udp: vec![round], ..Findings::default() })
        };
        let want = "nothing came for 64.0 ms: 64 of the 64 lost datagrams down fell into such an outage";
        assert_eq!(said(Span::from_millis(936)).as_deref(), Some(want));
        assert_eq!(said(Span::from_millis(1500)), None, "a queue may have held up what did not come");
    }

    /// UDP that ceased in the midst of a train is no path that loses half of all.
    #[test]
    fn what_fell_into_an_outage_or_had_no_answer_at_the_end_is_no_heavy_loss() {
        let ceased = EchoRun { lost_at_end: 50, ..run(100, 50..100) };
        let runs = [run(100, 20..60), ceased, run(100, 30..32)];
        assert_eq!(heavy_loss::of_runs(&runs), Share { part: 2, of: 60 + 50 + 98 + 2 });
        let filtered = run(100, 20..60);
        let filtered = EchoRun { round: filtered.round.rejected_among(vec![20..=60]), ..filtered };
        assert_eq!(heavy_loss::of_runs(&[filtered]), Share { part: 0, of: 60 }, "a filter is no such loss");
    }

    #[test]
    fn requests_that_a_full_queue_dropped_in_a_row_beside_tcp_are_no_outage() {
        let full = transfer(&[34; 12], run(60, 15..40));
        assert_eq!(beside(&full), None);
        // The first bytes came late, because nothing passed when the transfer began.
        let late = transfer(&[34; 4], run(60, 0..35));
        assert_eq!(beside(&late).map(|found| found.lost), Some(35));
    }

    #[test]
    fn streams_both_ways_at_once_do_not_double_their_outages() {
        let both = |at_once| {
            let ways = [Direction::Forward, Direction::Reverse];
            let udp = ways.map(|way| UdpRound { at_once, ..stream(way, vec![(400, 1)], 600) }).into();
            warning(&Findings { udp, ..Findings::default() }).unwrap()
        };
        let once = "nothing came for 400 ms: 800 of the 800 lost datagrams fell into such an outage";
        assert_eq!(both(true), once);
        assert!(both(false).starts_with("2 times nothing came"), "{}", both(false));
    }

    /// `test` called 70 requests beside TCP lost that a responder which was stopped never read.
    #[test]
    fn what_has_no_answer_when_a_measurement_breaks_off_is_unknown_and_not_lost() {
        let at_end = |sent, lost: Range<u64>| EchoRun {
            lost_at_end: if lost.end == sent { lost.end - lost.start } else { 0 },
            ..run(sent, lost)
        };
        let mut found = Findings {
            idle: vec![at_end(200, 20..30), at_end(200, 190..200)],
            idle_tcp: vec![at_end(100, 99..100)],
            tcp: vec![
                transfer(&[34; 12], at_end(60, 5..10)),
                transfer(&[34, 34, 34, 0, 0, 0], at_end(90, 20..90)),
                transfer(&[0; 12], at_end(60, 0..60)),
            ],
            ..Findings::default()
        };
        found.forget_the_end();
        let fate = |run: &EchoRun| (run.round.counts().lost, run.round.counts().abandoned);
        let fates: Vec<_> = found.tcp.iter().map(|round| fate(round.load.as_ref().unwrap())).collect();
        assert_eq!(fates, [(5, 0), (0, 70), (0, 60)]);
        // What was answered later came over a path that was there.
        assert_eq!(found.idle.iter().map(fate).collect::<Vec<_>>(), [(10, 0), (10, 0)]);
        assert_eq!(fate(&found.idle_tcp[0]), (0, 1));
        assert!(found.tcp.iter().skip(1).all(|round| beside(round).is_none()));
    }

    /// `latency` lost "0 %" of an outage of three seconds, and called it an address translator.
    #[test]
    fn requests_that_were_tried_behind_a_silent_block_tell_how_long_the_outage_was() {
        let at = |ms: u64| Mono(1_000_000_000 + ms * 1_000_000);
        let later = |ms: u64, run: EchoRun| EchoRun { began_at: at(ms), ..run };
        // Nothing of the second block after its 50 th request, of the first and second try.
        let afterwards = Afterwards::default();
        let afterwards = afterwards.and_tried(&later(3000, run(2, 0..2)));
        assert_eq!((afterwards.silent_at, afterwards.came_at), (Some(at(3010)), None));
        let afterwards = afterwards.and_tried(&later(4500, run(2, 0..0)));
        assert_eq!(afterwards.came_at, Some(at(4505)));
        let cut = EchoRun { afterwards, ..later(1000, run(100, 50..100)) };
        let found =
            Findings { idle: vec![run(100, 0..0), cut, later(5000, run(100, 0..0))], ..Findings::default() };
        let want = "nothing came for 1.52 s at least and 3.02 s at most: 50 of the 50 lost requests fell into such an outage";
        assert_eq!(warning(&found).as_deref(), Some(want));
        // Blocks without an answer between others that had one.
        let idle = vec![run(100, 0..0), later(1000, run(100, 0..100)), later(2000, run(100, 0..0))];
        let said = warning(&Findings { idle, ..Findings::default() }).unwrap();
        assert!(said.starts_with("nothing came for 1.00 s: 100 of the 100"), "{said}");
    }

    /// "Idle loss IPv4 35.00 %" of a path that lost nothing: the responder was stopped for 2.5 s.
    #[test]
    fn requests_that_a_stopped_responder_did_not_read_are_unknown_and_not_lost() {
        let at = |ms: u64| Mono(1_000_000_000 + ms * 1_000_000);
        let stood = |from, until| {
            let lasted = Span::from_millis(400);
            [Standstill { lasted, from: at(from), until: at(until) }]
        };
        let mut found = Findings {
            idle: vec![EchoRun { lost_at_end: 40, ..run(100, 60..100) }, run(100, 95..96)],
            ..Findings::default()
        };
        let said = found.forget_standstills(&stood(590, 1000)).unwrap();
        assert!(said.starts_with("the responder's host did not run netaware for 400 ms (it was"), "{said}");
        assert!(said.contains("the fate of 41 requests"), "{said}");
        let counts = found.idle[0].round.counts();
        assert_eq!((counts.lost, counts.abandoned, counts.sent()), (0, 40, 100));
        assert_eq!((found.idle[0].lost_at_end, found.idle[1].round.counts().lost), (0, 0));
        assert_eq!(warning(&found), None);
        // What the path lost at another time stays lost, and is told as an outage.
        let mut found = Findings { idle: vec![run(100, 20..60)], ..Findings::default() };
        assert!(found.forget_standstills(&stood(700, 1100)).unwrap().ends_with("was answered late"));
        assert_eq!(found.idle[0].round.counts().lost, 40);
        assert!(warning(&found).unwrap().contains("40 of the 40 lost requests"));
        assert_eq!(found.forget_standstills(&[]), None);
        // A late answer of one of them is no late answer of a lost one.
        let mut late = run(100, 20..60);
        late.unanswered.iter_mut().take(10).for_each(|lost| lost.came_late = true);
        assert_eq!(late.forget_standstills(&stood(300, 700)), Forgotten { unknown: 30, untimed: 0 });
        assert_eq!((late.round.counts().lost, late.unanswered.len()), (10, 10));
        assert!(late.unanswered.iter().all(|lost| lost.came_late));
        // What broke off is not forgotten twice.
        let mut ended = EchoRun { lost_at_end: 40, ..run(100, 60..100) };
        ended.forget_its_end();
        assert_eq!(ended.forget_standstills(&stood(590, 1000)).unknown, 0);
    }

    /// `capacity`, `available` and `matrix` had no word of a responder that was stopped for 2 s.
    #[test]
    fn a_standstill_is_told_where_trains_or_short_transfers_were_measured() {
        let at = |ms: u64| Mono(ms * 1_000_000);
        let stood = [Standstill { lasted: Span::from_secs(2), from: at(1000), until: at(4000) }];
        let said = |left_out_of_trains, tells_each_standstill| {
            let mut found = Findings { left_out_of_trains, tells_each_standstill, ..Findings::default() };
            assert_eq!(found.may_have_met_a_standstill(), tells_each_standstill);
            found.forget_standstills(&stood)
        };
        let begin = "the responder's host did not run netaware for 2.00 s (it was suspended or stopped): ";
        let of_trains = "of trains that met that time is unknown, and these trains are left out";
        let want = |packets: &str| Some(format!("{begin}the fate of {packets} {of_trains}"));
        assert_eq!(said(124, true), want("124 packets"));
        assert_eq!(said(1, false), want("a packet"));
        assert_eq!(said(0, true), Some(format!("{begin}what it owed an answer then was answered late")));
        assert_eq!(said(0, false), None);
        let mut ran = Findings { tells_each_standstill: true, ..Findings::default() };
        assert_eq!(ran.forget_standstills(&[]), None);
    }

    /// `latency --tcp` beside a stop: the stall was its p90, and the path was said to vary.
    #[test]
    fn answers_over_tcp_that_a_stopped_responder_owed_are_no_round_trips_of_the_path() {
        let mut log = EchoLog::default();
        for seq in 0..100 {
            let ms = if (40..60).contains(&seq) { 10 * (60 - i64::try_from(seq).unwrap()) } else { 5 };
            log.push(&Exchange { responder: None, ..answered(seq, ms) });
        }
        let at = |ms: u64| Mono(1_000_000_000 + ms * 1_000_000);
        let stood = [Standstill { lasted: Span::from_millis(200), from: at(400), until: at(600) }];
        let mut found = Findings { idle: vec![logged(100, 0..0, log)], ..Findings::default() };
        let said = found.forget_standstills(&stood).unwrap();
        assert!(said.ends_with("the round trips of 20 requests that met that time are left out"), "{said}");
        let round = &found.idle[0].round;
        assert_eq!((round.counts().received, round.rtts_ns()), (100, vec![5e6; 80]));
        assert_eq!((round.loss_runs(), round.outages(APART).unwrap().times), (0, 0));
    }

    /// Requests 10 ms apart over TCP, each of which was answered at this time, in ms.
    fn answered_at(sent: u64, ms: impl Fn(u64) -> i64) -> EchoRun {
        let mut log = EchoLog::default();
        for seq in 0..sent {
            let took = ms(seq) - 10 * i64::try_from(seq).unwrap();
            log.push(&Exchange { responder: None, ..answered(seq, took) });
        }
        logged(sent, 0..0, log)
    }

    /// A responder on a busy host said that it ran again before it answered a request: 4 of 190
    /// round trips were left out, those of another moment, and p95 was 1.79 s.
    #[test]
    fn requests_that_are_answered_after_the_standstill_was_told_have_met_it_all_the_same() {
        let at = |ms: u64| Mono(1_000_000_000 + ms * 1_000_000);
        let mut run = answered_at(100, |seq| match seq {
            10..14 => 140,
            40..65 => 650,
            seq => 10 * i64::try_from(seq).unwrap() + 5,
        });
        let stood = [Standstill { lasted: Span::from_millis(200), from: at(100), until: at(600) }];
        assert_eq!(run.forget_standstills(&stood), Forgotten { unknown: 0, untimed: 20 });
        // Those that left later waited for the other answers, and not for the program.
        assert_eq!(run.round.rtts_ns().iter().filter(|rtt| **rtt > 5e6).count(), 4 + 5);
        // A run that began later has met nothing of it.
        let mut later = answered_at(10, |seq| 10 * i64::try_from(seq).unwrap() + 5);
        let stood = [Standstill { lasted: Span::from_millis(200), from: Mono(0), until: at(0) }];
        assert_eq!(later.forget_standstills(&stood), Forgotten::default());
        // One that began when it was just over had its usual round trips.
        let stood = [Standstill { lasted: Span::from_millis(200), from: Mono(0), until: at(12) }];
        assert_eq!(later.forget_standstills(&stood), Forgotten::default());
    }

    /// One answer to a ping told of two stops, and requests of one of them were left out.
    #[test]
    fn requests_that_met_the_shorter_one_of_two_stops_are_left_out_as_well() {
        let at = |ms: u64| Mono(1_000_000_000 + ms * 1_000_000);
        let mut run = answered_at(120, |seq| match seq {
            20..50 => 500,
            70..100 => 1000,
            seq => 10 * i64::try_from(seq).unwrap() + 5,
        });
        let stood = [Standstill { lasted: Span::from_millis(600), from: at(200), until: at(1010) }];
        assert_eq!(run.forget_standstills(&stood), Forgotten { unknown: 0, untimed: 60 });
        assert_eq!(run.round.rtts_ns(), vec![5e6; 60]);
    }

    /// 105 requests that a filter rejected for a second were said to have met an outage.
    #[test]
    fn what_icmp_said_was_rejected_met_no_outage() {
        let reported = |first, last| SendRefusal {
            cause: "Permission denied (os error 13)".to_owned(),
            count: 7,
            first: Span::from_millis(first),
            last: Span::from_millis(last),
            ..SendRefusal::default()
        };
        let lost = run(500, 200..305);
        let rejected = vec![outage::rejected(Span::from_millis(2020), Span::from_millis(2080), APART)];
        let idle = EchoRun {
            rejections: vec![reported(2020, 2080)],
            round: lost.round.clone().rejected_among(rejected),
            ..lost.clone()
        };
        assert_eq!(warning(&Findings { idle: vec![idle], ..Findings::default() }), None);
        assert!(warning(&Findings { idle: vec![lost], ..Findings::default() }).is_some());
        let cut = |refusals| {
            let mut round = stream(Direction::Forward, vec![(400, 1)], 600);
            round.ended.udp_sender.as_mut().unwrap().refusals = refusals;
            warning(&Findings { udp: vec![round], ..Findings::default() })
        };
        assert_eq!(cut(vec![reported(300, 310)]), None);
        assert!(cut(vec![SendRefusal { not_sent: 7, ..reported(300, 310) }]).is_some());
    }

    /// One ICMP error at the end of a stream hid a gap of 0.9 s that was over long before it.
    #[test]
    fn an_icmp_message_about_the_end_of_a_stream_hides_no_earlier_outage() {
        let with_message_at = |ms: i64| {
            let mut round = stream(Direction::Forward, vec![(900, 1)], 3100);
            let at = Span::from_millis(ms);
            let refusal = SendRefusal { count: 1, first: at, last: at, ..SendRefusal::default() };
            let sender = round.ended.udp_sender.as_mut().unwrap();
            (sender.sent, sender.elapsed, sender.refusals) = (4000, Span::from_secs(4), vec![refusal]);
            round.ended.udp_receiver.as_mut().unwrap().highest = 4000;
            // Nothing came from 0.5 s to 1.4 s, which the next slice found out.
            let slice = |n: i64| ReceiverTick {
                end: SLICE * (n + 1),
                length: SLICE,
                packets: if (10..28).contains(&n) { 0 } else { 50 },
                lost: if n == 28 { 900 } else { 0 },
                ..ReceiverTick::default()
            };
            round.ended.receiver_ticks = (0..80).map(slice).collect();
            warning(&Findings { udp: vec![round], ..Findings::default() })
        };
        let said = with_message_at(3900).unwrap();
        assert!(said.starts_with("nothing came for 900 ms: 900 of the 900 lost datagrams up"), "{said}");
        assert_eq!(with_message_at(1000), None);
        // It tells of the time until 1 s.
        let said = with_message_at(0).unwrap();
        assert!(said.starts_with("nothing came for 400 ms: 400 of the 900"), "{said}");
    }

    /// Requests of which none was answered were said to have met two outages around a message.
    #[test]
    fn requests_of_which_one_was_rejected_and_none_was_answered_met_no_outage() {
        let none = run(1000, 0..1000);
        let at = Span::from_secs(5);
        let round = none.round.clone().rejected_among(vec![outage::rejected(at, at, APART)]);
        let idle = vec![EchoRun { round, ..none }];
        assert_eq!(warning(&Findings { idle, ..Findings::default() }), None);
    }

    #[test]
    fn a_black_hole_has_no_outages() {
        let found =
            Findings { udp: vec![stream(Direction::Forward, vec![(1000, 1)], 0)], ..Findings::default() };
        assert_eq!(warning(&found), None);
    }

    /// An outage of three seconds took all of a stream of one, and was not named.
    #[test]
    fn a_stream_that_an_outage_took_whole_is_told_by_the_silence_of_the_session() {
        let told = |silence: i64| {
            let round = stream(Direction::Reverse, vec![], 0);
            let silence = Some(Span::from_millis(silence));
            warning(&Findings { udp: vec![UdpRound { silence, ..round }], ..Findings::default() })
        };
        let want = "nothing came for 1.00 s at least and 3.10 s at most: 1000 of the 1000 lost datagrams down fell into such an outage";
        assert_eq!(told(3100).as_deref(), Some(want));
        assert_eq!(told(700), None, "it was over before the stream was");
    }

    /// An outage of three seconds fell into the end of a transfer, and was not named.
    #[test]
    fn an_outage_that_took_nothing_that_is_counted_is_told_by_the_session() {
        let outlived = Some(Span::from_millis(3100));
        let said = warning(&Findings { outlived, ..Findings::default() }).unwrap();
        assert!(said.starts_with("for 3.10 s nothing came of the responder"), "{said}");
        // What is counted tells more.
        let idle = vec![run(100, 20..60)];
        let said = warning(&Findings { idle, outlived, ..Findings::default() }).unwrap();
        assert!(said.contains("40 of the 40 lost requests") && !said.contains("responder"), "{said}");
    }

    #[test]
    fn what_the_receiving_host_dropped_is_no_outage_of_the_path_and_no_more_is_lost_than_was_sent() {
        let mut round = stream(Direction::Reverse, vec![(400, 1)], 600);
        round.ended.udp_receiver.as_mut().unwrap().drops.socket = Some(380);
        assert_eq!(warning(&Findings { udp: vec![round], ..Findings::default() }), None);
        // A row of 900 of which 500 came late.
        let round = stream(Direction::Reverse, vec![(900, 1)], 600);
        assert_eq!(warning(&Findings { udp: vec![round], ..Findings::default() }), None);
    }
}
