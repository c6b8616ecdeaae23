//! The slices of a saved bulk transfer, as they were shown while it ran.

use std::io::{self, Write};

use netaware_prober::Progress;
use netaware_record::{Direction, IpVersion, RatePoint, ReceiverTick, Record, SenderTick, VersionResult};
use netaware_units::BitRate;

use crate::render::paint::Paint;
use crate::render::stream::{interval_line, titles};

/// Whether a record of this command shows intervals; those of `test` are too many.
pub(super) fn has(record: &Record) -> bool {
    let is_followed = |v: &VersionResult| v.path_rates.iter().any(|rate| !rate.over_time.is_empty());
    matches!(record.command.as_str(), "tcp" | "udp") || record.versions.iter().any(is_followed)
}

pub(super) fn write(out: &mut dyn Write, record: &Record, paint: Paint) -> io::Result<()> {
    if !has(record) {
        return Ok(());
    }
    let slices = slices(record);
    if let Some(titles) = slices.first().and_then(titles) {
        writeln!(out, "\n{}", paint.heading(&titles))?;
    }
    for line in slices.iter().filter_map(interval_line) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn slices(record: &Record) -> Vec<Progress> {
    let mut slices = Vec::new();
    for v in &record.versions {
        for rate in &v.path_rates {
            let point = |point: &RatePoint| Progress::Rate {
                version: v.version,
                direction: rate.pedigree.direction,
                point: point.clone(),
            };
            slices.extend(rate.over_time.iter().map(point));
        }
        for r in &v.tcp {
            // Both ends slice alike when both told all; otherwise the sender's columns stay empty.
            let paired = r.sender_ticks.len() == r.receiver_ticks.len();
            for (n, tick) in r.receiver_ticks.iter().enumerate() {
                let sender = r.sender_ticks.get(n).filter(|_| paired);
                slices.extend(slice(v.version, r.pedigree.direction, tick, sender, false));
            }
        }
        for r in &v.udp {
            for (n, tick) in r.ticks.iter().enumerate() {
                let mut shown = slice(v.version, r.pedigree.direction, tick, None, true);
                if let Some(Progress::Interval { rate, .. }) = &mut shown
                    && is_cut_behind_one(&r.ticks[..=n])
                {
                    *rate = None;
                }
                slices.extend(shown);
            }
        }
    }
    slices
}

/// Whether the last of these ended with the stream, behind one datagram: its length says nothing.
fn is_cut_behind_one(ticks: &[ReceiverTick]) -> bool {
    let [.., before, last] = ticks else { return false };
    last.packets == 1 && last.length + last.length / 10 < before.length
}

fn slice(
    version: IpVersion,
    direction: Direction,
    tick: &ReceiverTick,
    sender: Option<&SenderTick>,
    counts_datagrams: bool,
) -> Option<Progress> {
    Some(Progress::Interval {
        version,
        direction,
        start: tick.end - tick.length,
        end: tick.end,
        bytes: tick.bytes,
        rate: Some(BitRate::mean(tick.bytes, tick.length)?),
        packets: counts_datagrams.then_some(tick.packets),
        // Older versions have had overtaken datagrams as fewer than none lost.
        lost: counts_datagrams.then_some(tick.lost.max(0)),
        retransmits: sender.and_then(|tick| tick.retransmits),
        rtt: sender.and_then(|tick| tick.rtt),
        cwnd: sender.and_then(|tick| tick.cwnd),
    })
}

#[cfg(test)]
mod tests {
    use netaware_units::Span;

    use super::*;

    #[test]
    fn one_datagram_behind_which_the_stream_ended_has_no_rate() {
        let of = |length: i64, packets| ReceiverTick {
            length: Span::from_millis(length),
            packets,
            ..ReceiverTick::default()
        };
        assert!(is_cut_behind_one(&[of(100, 9), of(1, 1)]));
        assert!(!is_cut_behind_one(&[of(100, 9), of(50, 4)]));
        assert!(!is_cut_behind_one(&[of(100, 1), of(98, 1)]));
        assert!(!is_cut_behind_one(&[of(1, 1)]));
    }
}
