//! Where datagrams were lost: on the way, or inside the receiving host.
//!
//! **Measures** what was sent and not received among the datagrams that the receiver observed to
//! their end, and takes off it what the receiving host's own counters say it dropped after arrival.
//! Datagrams beyond the receiver's last report are neither received nor lost: they are unknown, and
//! no share is computed over them. **Assumes** that the counters cover the same time as the stream.
//! **Biased**: the stack's and the interface's counters belong to the whole host, so another
//! program's drops make the host's part lean high; the stack counts a merged bundle (GRO) as one,
//! which the socket's count is corrected for; a suspended host counts nothing, so of a row of
//! losses as long as the receiver did not run the place is unknown; in a virtual machine or behind
//! a switch of the hypervisor, drops just before our interface count as the network's. The host's
//! part is never more than what is missing. **Published**: the split is that of UDPmon
//! (`num_lost_innet`, Hughes-Jones); the counters are RFC 4113 and `SO_RXQ_OVFL` (socket(7)); the
//! interval is Wilson's (1927) as recommended by Brown, Cai, DasGupta, Statistical Science 2001.
//! Losses come in runs, for which any binomial interval is too narrow.

use netaware_record::{HostDrops, Interval, LossSplit, ReceiverTick, UdpReceiverEnd};
use netaware_units::Span;

use crate::limit;

/// Splits the loss of one stream. Without a receiver's report the fate of all is unknown.
pub fn split(sent: u64, receiver: Option<&UdpReceiverEnd>) -> LossSplit {
    let Some(receiver) = receiver else {
        return LossSplit { unknown: sent, ..LossSplit::default() };
    };
    let (received, drops) = (receiver.received, receiver.drops);
    let observed = receiver.observed.map_or(sent, |observed| observed.max(received).min(sent));
    let lost = observed.saturating_sub(received);
    // Where nothing is missing, no counter is needed to know that the host lost nothing of it.
    let host = match lost {
        0 => Some(0),
        _ if may_be_of_absence(sent, receiver) => None,
        lost => drops.total().map(|drops| lost.min(drops)),
    };
    LossSplit {
        lost,
        host,
        network: host.map(|host| lost - host),
        unknown: sent - observed,
        ratio: wilson(lost, observed),
    }
}

/// Whether datagrams were lost in a row that may be those which came while the receiving program
/// did not run: beyond what its counters say, which a suspended host does not keep. Where those
/// were lost nobody knows.
pub fn may_be_of_absence(sent: u64, receiver: &UdpReceiverEnd) -> bool {
    let (stood, elapsed) = (receiver.stood_still.unwrap_or_default(), receiver.elapsed);
    let Some(stood) = limit::stood_still(Some(stood), elapsed) else { return false };
    let lost = sent.saturating_sub(receiver.received);
    let in_rows = |least: u64| {
        let rows = receiver.loss_runs.iter().filter(|(length, _)| *length >= least);
        rows.map(|(length, times)| length.saturating_mul(*times)).fold(0, u64::saturating_add)
    };
    let counted = in_rows(0);
    // The marks of the stream's end may have been lost together with its last datagrams.
    let at_the_end = lost.saturating_sub(counted);
    let longest = receiver.loss_runs.iter().map(|(length, _)| *length).max().unwrap_or(0).max(at_the_end);
    let Some(apart) = apart(receiver) else { return longest >= MIN_ROW };
    let meanwhile = stood.secs_f64() / apart;
    let (least, most) = (meanwhile / 4.0, meanwhile * 1.5);
    let uncounted = longest.saturating_sub(receiver.drops.total().unwrap_or(0));
    // It may have been stopped several times.
    let in_long_rows = in_rows(MIN_ROW).max(longest);
    uncounted >= MIN_ROW && in_long_rows as f64 >= least && longest as f64 <= most
}

/// Seconds from one datagram of a stream to the next, by its plan or else as they came.
fn apart(receiver: &UdpReceiverEnd) -> Option<f64> {
    let length = receiver.bytes.0.checked_div(receiver.received).filter(|length| *length > 0)?;
    let planned = receiver.planned.filter(|rate| rate.0 > 0).map(|rate| length as f64 * 8.0 / rate.0 as f64);
    planned.or_else(|| {
        let apart = receiver.elapsed.secs_f64() / receiver.highest.max(1) as f64;
        (apart > 0.0).then_some(apart)
    })
}

/// The loss of several streams together, which sent so many datagrams in all. A stream that lost
/// nothing, perhaps because nobody observed it, takes nothing from what is known of the others.
pub fn total(sent: u64, splits: impl IntoIterator<Item = LossSplit>) -> LossSplit {
    let splits: Vec<LossSplit> = splits.into_iter().collect();
    let is_any_known = splits.iter().any(|split| split.host.is_some());
    let losing = splits.into_iter().map(|split| match split.lost {
        0 if is_any_known => LossSplit { host: Some(0), network: Some(0), ..split },
        _ => split,
    });
    let sum = losing.reduce(|sum, next| LossSplit {
        lost: sum.lost.saturating_add(next.lost),
        host: both(sum.host, next.host),
        network: both(sum.network, next.network),
        unknown: sum.unknown.saturating_add(next.unknown),
        ratio: None,
    });
    let sum = sum.unwrap_or_default();
    LossSplit { ratio: wilson(sum.lost, sent.saturating_sub(sum.unknown)), ..sum }
}

/// A sum is known where both parts are.
fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}

/// Wilson's 95 % interval for `hits` of `of`; `None` of none.
pub fn wilson(hits: u64, of: u64) -> Option<Interval> {
    (of > 0).then(|| wilson_of_share(hits.min(of) as f64 / of as f64, of as f64))
}

/// The same for a share `p` of `n` independent packets, more than zero and not always a whole
/// number.
pub(crate) fn wilson_of_share(p: f64, n: f64) -> Interval {
    let z2 = Z95 * Z95;
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z95 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt() / (1.0 + z2 / n);
    // At the ends rounding would leave a bound a hair on the wrong side of the estimate.
    let (lo, hi) = ((centre - half).clamp(0.0, p), (centre + half).clamp(p, 1.0));
    Interval { estimate: p, lo, hi, confidence: 0.95 }
}

/// Drops of several phases on the same host; a place that was not counted in one of them is unknown
/// over all.
pub fn sum(drops: impl IntoIterator<Item = HostDrops>) -> HostDrops {
    let sum = drops.into_iter().reduce(|sum, next| HostDrops {
        socket: both(sum.socket, next.socket),
        stack: both(sum.stack, next.stack),
        nic: both(sum.nic, next.nic),
    });
    sum.unwrap_or_default()
}

/// The slices of one stream with each loss in the slice in which it happened. A receiver finds out
/// about datagrams that did not come when a later one does; what it finds after slices without any
/// was lost in those, evenly, and before the later one in its own.
pub fn placed(ticks: &[ReceiverTick]) -> Vec<ReceiverTick> {
    let mut placed = ticks.to_vec();
    let mut silent_since = None;
    for at in 0..placed.len() {
        if placed[at].packets == 0 && placed[at].lost == 0 {
            silent_since.get_or_insert(at);
            continue;
        }
        if let Some(first) = silent_since.take() {
            spread(&mut placed[first..=at]);
        }
    }
    placed
}

/// Spreads what was found in the last of these slices over them.
fn spread(slices: &mut [ReceiverTick]) {
    let Some((found, silent)) = slices.split_last_mut() else { return };
    let Some(lost) = u64::try_from(found.lost).ok().filter(|lost| *lost > 0) else { return };
    let over: Span = silent.iter().map(|slice| slice.length.or_zero()).sum();
    let whole = (over + found.length.or_zero()).secs_f64();
    if silent.is_empty() || whole <= 0.0 {
        return;
    }
    let usual = (lost + found.packets) as f64 / whole * found.length.or_zero().secs_f64();
    let own = ((usual - found.packets as f64).max(0.0).round() as u64).min(lost);
    let (mut left, mut time_left) = (lost - own, over);
    found.lost = i64::try_from(own).unwrap_or(i64::MAX);
    for slice in silent {
        let share = slice.length.or_zero().secs_f64() / time_left.secs_f64().max(1e-9);
        let part = ((left as f64 * share).round() as u64).min(left);
        slice.lost = i64::try_from(part).unwrap_or(i64::MAX);
        (left, time_left) = (left - part, time_left - slice.length.or_zero());
    }
}

/// Takes datagrams that came late off the losses of the slices before the one in which they came,
/// the last of these first: none has fewer than none lost then. Returns how many came of those that
/// were missing before the first slice.
pub fn settle(ticks: &mut [ReceiverTick]) -> i64 {
    let mut late = 0_i64;
    for tick in ticks.iter_mut().rev() {
        let missing = tick.lost.saturating_sub(late);
        (tick.lost, late) = (missing.max(0), missing.saturating_neg().max(0));
    }
    late
}

/// Loss of each slice, `lost / (lost + packets)`, in order: samples for the comparison. Slices in
/// which nothing was expected are left out, and so is a rest of less than half of what is usual, in
/// which one loss would be a large share; a slice in which late datagrams filled older holes counts
/// as without loss.
pub fn per_tick(ticks: &[ReceiverTick]) -> Vec<f64> {
    let counts = ticks.iter().map(|tick| (tick.lost.max(0) as f64, tick.packets as f64));
    let slices: Vec<(f64, f64)> =
        counts.map(|(lost, came)| (lost, lost + came)).filter(|(_, expected)| *expected > 0.0).collect();
    let mut sizes: Vec<f64> = slices.iter().map(|(_, expected)| *expected).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let usual = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    let is_whole = |(_, expected): &&(f64, f64)| expected * 2.0 >= usual;
    slices.iter().filter(is_whole).map(|(lost, expected)| lost / expected).collect()
}

/// Fewer may be lost in a row by chance.
const MIN_ROW: u64 = 8;
/// The normal distribution's two-sided 95 % point.
const Z95: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    use netaware_units::{BitRate, ByteCount};

    use super::*;

    /// Lines said that -5 and -14 datagrams were lost of a stream that lost none.
    #[test]
    fn datagrams_that_were_overtaken_are_lost_in_no_slice() {
        let of = |lost: &[i64]| {
            let mut ticks: Vec<ReceiverTick> =
                lost.iter().map(|lost| ReceiverTick { lost: *lost, ..ReceiverTick::default() }).collect();
            let before = settle(&mut ticks);
            (ticks.iter().map(|tick| tick.lost).collect::<Vec<_>>(), before)
        };
        assert_eq!(of(&[26, -5, -7, -14]), (vec![0, 0, 0, 0], 0));
        assert_eq!(of(&[26, -5, 8, -3, 0]), (vec![21, 0, 5, 0, 0], 0));
        assert_eq!(of(&[2, -5, 3]), (vec![0, 0, 3], 3));
        assert_eq!(of(&[i64::MIN, i64::MAX, i64::MIN]).0, [0, 0, 0]);
    }

    /// 172 datagrams that were lost between 0.6 and 1.0 s stood in the second after it.
    #[test]
    fn losses_are_those_of_the_slices_in_which_nothing_came() {
        let slice = |(n, (packets, lost)): (i64, &(u64, i64))| ReceiverTick {
            end: Span::from_millis(100) * (n + 1),
            length: Span::from_millis(100),
            packets: *packets,
            lost: *lost,
            ..ReceiverTick::default()
        };
        let of = |slices: &[(u64, i64)]| {
            let ticks: Vec<ReceiverTick> = (0..).zip(slices).map(slice).collect();
            placed(&ticks).iter().map(|tick| (tick.packets, tick.lost)).collect::<Vec<_>>()
        };
        let cut = of(&[(43, 0), (43, 1), (0, 0), (0, 0), (0, 0), (0, 0), (43, 172), (43, 0)]);
        assert_eq!(cut, [(43, 0), (43, 1), (0, 43), (0, 43), (0, 43), (0, 43), (43, 0), (43, 0)]);
        // It came again in the middle of a slice.
        assert_eq!(of(&[(43, 0), (0, 0), (0, 0), (23, 106)]), [(43, 0), (0, 43), (0, 43), (23, 20)]);
        // Late datagrams that fill holes, losses one by one, and a stream that is over are left
        // alone.
        for same in [&[(0, 0), (43, -2)][..], &[(40, 3), (41, 2)], &[(43, 0), (0, 0), (0, 0)], &[]] {
            assert_eq!(of(same), same);
        }
    }

    #[test]
    fn the_hosts_part_never_exceeds_what_is_missing() {
        let drops =
            |socket, stack, nic| HostDrops { socket: Some(socket), stack: Some(stack), nic: Some(nic) };
        let rows = [
            (100, 100, drops(5, 5, 5), (0, 0, 0)),
            (100, 90, drops(0, 0, 0), (10, 0, 10)),
            (100, 90, drops(4, 0, 0), (10, 4, 6)),
            (100, 90, drops(4, 6, 0), (10, 6, 4)),
            (100, 90, drops(4, 6, 3), (10, 9, 1)),
            (100, 90, drops(u64::MAX, 6, u64::MAX), (10, 10, 0)),
            (100, 101, drops(4, 6, 3), (0, 0, 0)),
            (0, 0, drops(0, 0, 0), (0, 0, 0)),
        ];
        for (n, (sent, received, drops, (lost, host, network))) in rows.into_iter().enumerate() {
            let split = split(sent, Some(&UdpReceiverEnd { received, drops, ..UdpReceiverEnd::default() }));
            assert_eq!((split.lost, split.host, split.network), (lost, Some(host), Some(network)), "row {n}");
            assert_eq!(split.unknown, 0, "row {n}");
        }
    }

    /// A receiver whose host was suspended: its counters say nothing of what came meanwhile, and
    /// the network was told to have lost all of it.
    #[test]
    fn a_row_lost_while_the_receiver_did_not_run_is_not_lost_by_the_network() {
        let none = HostDrops { socket: Some(0), stack: Some(0), nic: Some(0) };
        let full = HostDrops { socket: Some(300), ..none };
        // 100 datagrams a second over 10 s.
        let of = |stood: i64, runs: &[(u64, u64)], drops, planned| {
            let lost: u64 = runs.iter().map(|(length, times)| length * times).sum();
            let receiver = UdpReceiverEnd {
                received: 1000 - lost,
                bytes: ByteCount((1000 - lost) * 1250),
                highest: 1000,
                elapsed: Span::from_secs(10),
                loss_runs: runs.to_vec(),
                stood_still: Some(Span::from_millis(stood)),
                planned: Some(BitRate(1_000_000)).filter(|_| planned),
                drops,
                ..UdpReceiverEnd::default()
            };
            let split = split(1000, Some(&receiver));
            (split.host, split.network)
        };
        for planned in [true, false] {
            assert_eq!(of(3000, &[(300, 1)], none, planned), (None, None), "all that came meanwhile");
            assert_eq!(of(3000, &[(1, 4), (120, 1)], none, planned), (None, None), "the buffer held some");
            assert_eq!(of(3000, &[(300, 1)], full, planned), (Some(300), Some(0)), "it counted them");
            assert_eq!(of(0, &[(300, 1)], none, planned), (Some(0), Some(300)), "it ran");
            assert_eq!(of(3000, &[(1, 50), (2, 9)], none, planned), (Some(0), Some(68)), "one by one");
            assert_eq!(of(1000, &[(300, 1)], none, planned), (Some(0), Some(300)), "a longer outage");
            assert_eq!(of(3000, &[(20, 1)], none, planned), (Some(0), Some(20)), "a shorter one");
        }
        // The last datagrams, and the marks of the end after them.
        let end = UdpReceiverEnd { received: 700, bytes: ByteCount(875_000), highest: 700, ..end_of(none) };
        assert_eq!(split(1000, Some(&end)).network, None);
    }

    /// The receiver of a stream of 10 s that did not run for three of them.
    fn end_of(drops: HostDrops) -> UdpReceiverEnd {
        UdpReceiverEnd {
            elapsed: Span::from_secs(7),
            stood_still: Some(Span::from_secs(3)),
            drops,
            ..UdpReceiverEnd::default()
        }
    }

    #[test]
    fn what_nobody_could_observe_is_unknown_and_not_lost() {
        let rows = [
            // sent, received, observed, (lost, unknown)
            (1000, 400, Some(400), (0, 600)),
            (1000, 390, Some(400), (10, 600)),
            (1000, 400, None, (600, 0)),
            (1000, 0, Some(0), (0, 1000)),
            // A report that contradicts itself still adds up.
            (1000, 400, Some(7), (0, 600)),
            (1000, 400, Some(5000), (600, 0)),
        ];
        for (n, (sent, received, observed, (lost, unknown))) in rows.into_iter().enumerate() {
            let receiver = UdpReceiverEnd { received, observed, ..UdpReceiverEnd::default() };
            let split = split(sent, Some(&receiver));
            assert_eq!((split.lost, split.unknown), (lost, unknown), "row {n}");
            assert_eq!(sent, received + split.lost + split.unknown, "row {n}");
        }
        let unheard = split(77, None);
        assert_eq!((unheard.lost, unheard.unknown, unheard.ratio), (0, 77, None));
    }

    #[test]
    fn loss_is_a_share_of_the_datagrams_whose_fate_is_known() {
        let end = |received, observed| UdpReceiverEnd { received, observed, ..UdpReceiverEnd::default() };
        let parts = [split(1000, Some(&end(400, Some(500)))), split(500, Some(&end(500, None)))];
        let total = total(1500, parts);
        assert_eq!((total.lost, total.network, total.unknown), (100, None, 500), "nobody read the counters");
        assert!((total.ratio.unwrap().estimate - 0.1).abs() < 1e-12);
    }

    #[test]
    fn wilsons_interval_equals_the_published_examples() {
        // Brown, Cai, DasGupta 2001 and Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of
        // 29.
        let rows = [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ];
        for (hits, of, lo, hi) in rows {
            let interval = wilson(hits, of).unwrap();
            assert!((interval.lo - lo).abs() < 5e-5 && (interval.hi - hi).abs() < 5e-5, "{interval:?}");
        }
        assert_eq!(wilson(0, 0), None);
        assert!(wilson(9, 9).unwrap().hi <= 1.0);
    }

    #[test]
    fn slices_without_traffic_are_no_samples() {
        let tick = |packets, lost| ReceiverTick { packets, lost, ..ReceiverTick::default() };
        let ticks = [tick(9, 1), tick(0, 0), tick(5, -3), tick(0, 4)];
        assert_eq!(per_tick(&ticks), [0.1, 0.0, 1.0]);
        // One of the two datagrams of the stream's last moment is not half of a slice.
        assert_eq!(per_tick(&[tick(9, 1), tick(10, 0), tick(1, 1)]), [0.1, 0.0]);
        assert!(per_tick(&[]).is_empty());
    }

    #[test]
    fn drops_of_phases_add_up_by_place_and_never_overflow() {
        let drops =
            |socket, stack, nic| HostDrops { socket: Some(socket), stack: Some(stack), nic: Some(nic) };
        assert_eq!(sum([drops(1, 2, 3), drops(10, 20, 30), drops(0, 0, 5)]), drops(11, 22, 38));
        assert_eq!(sum([drops(u64::MAX, 1, 2), drops(1, 1, 1)]), drops(u64::MAX, 2, 3));
        assert_eq!(sum([]), HostDrops::default());
    }

    #[test]
    fn what_a_host_dropped_that_never_reported_is_unknown_and_not_zero() {
        let counted = HostDrops { socket: Some(4), ..HostDrops::default() };
        let end = |drops| UdpReceiverEnd { received: 90, drops, ..UdpReceiverEnd::default() };
        let silent = split(100, Some(&end(HostDrops::default())));
        assert_eq!((silent.lost, silent.host, silent.network), (10, None, None));
        let told = split(100, Some(&end(counted)));
        assert_eq!((told.lost, told.host, told.network), (10, Some(4), Some(6)));
        let unheard = split(100, None);
        assert_eq!((unheard.host, unheard.network, unheard.unknown), (None, None, 100));
        let host_and_network = |pair: [&LossSplit; 2]| {
            let total = total(200, pair.map(Clone::clone));
            (total.host, total.network, total.unknown)
        };
        assert_eq!(host_and_network([&told, &silent]), (None, None, 0));
        assert_eq!(host_and_network([&told, &unheard]), (Some(4), Some(6), 100), "of those that are lost");
        assert_eq!(host_and_network([&unheard, &unheard]), (None, None, 200));
        assert_eq!(sum([counted, HostDrops::default()]), HostDrops::default());
    }
}
