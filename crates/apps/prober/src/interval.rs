//! Joins fine slices into the intervals that a person watches.

use netaware_record::{Direction, IpVersion};
use netaware_units::{BitRate, ByteCount, Span};

use crate::bulk::Tick;
use crate::progress::{Progress, Watch};

/// One open interval per direction.
pub(crate) struct IntervalMeter {
    version: IpVersion,
    every: Span,
    forward: Open,
    reverse: Open,
}

#[derive(Default)]
struct Open {
    end: Span,
    length: Span,
    bytes: ByteCount,
    packets: u64,
    lost: i64,
    is_udp: bool,
    retransmits: Option<u64>,
    rtt: Option<Span>,
    cwnd: Option<ByteCount>,
}

impl IntervalMeter {
    pub(crate) fn new(version: IpVersion, every: Span) -> Self {
        Self { version, every, forward: Open::default(), reverse: Open::default() }
    }

    /// Adds a slice; tells the interval once it is long enough. The sender's figures come from
    /// another clock and another message, so they are those known when the receiver's interval
    /// closed.
    pub(crate) fn take(&mut self, direction: Direction, tick: &Tick, watch: &mut Watch<'_>) {
        let every = self.every;
        let open = self.open(direction);
        match tick {
            Tick::Begun(lasts) => watch.has_begun(*lasts),
            Tick::Draining(most) => watch.drains(*most),
            Tick::Unheard(most) => watch.waits_for_an_end(*most),
            Tick::Sender(tick) => {
                open.retransmits = match (open.retransmits, tick.retransmits) {
                    (Some(sum), Some(more)) => Some(sum + more),
                    (sum, more) => sum.or(more),
                };
                (open.rtt, open.cwnd) = (tick.rtt, tick.cwnd);
            }
            Tick::Receiver(tick) => {
                open.end = tick.end;
                open.length += tick.length;
                open.bytes += tick.bytes;
                open.packets += tick.packets;
                open.lost += tick.lost;
                open.is_udp = tick.streams == 0;
                // Half a slice of tolerance: slices are cut by a clock that is a little late each
                // time.
                if open.length + tick.length / 2 >= every {
                    self.tell(direction, watch);
                }
            }
        }
    }

    /// Tells what is left.
    pub(crate) fn flush(&mut self, watch: &mut Watch<'_>) {
        for direction in [Direction::Forward, Direction::Reverse] {
            if self.open(direction).length.0 > 0 {
                self.tell(direction, watch);
            }
        }
    }

    fn open(&mut self, direction: Direction) -> &mut Open {
        if direction == Direction::Reverse { &mut self.reverse } else { &mut self.forward }
    }

    fn tell(&mut self, direction: Direction, watch: &mut Watch<'_>) {
        let version = self.version;
        let open = std::mem::take(self.open(direction));
        watch.tell(Progress::Interval {
            version,
            direction,
            start: (open.end - open.length).or_zero(),
            end: open.end,
            bytes: open.bytes,
            rate: BitRate::mean(open.bytes, open.length),
            packets: open.is_udp.then_some(open.packets),
            lost: open.is_udp.then_some(open.lost),
            retransmits: open.retransmits.filter(|_| !open.is_udp),
            rtt: open.rtt,
            cwnd: open.cwnd,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netaware_record::ReceiverTick;

    #[test]
    fn slices_add_up_to_intervals_and_a_rest() {
        let mut told = Vec::new();
        let mut listener = |progress| told.push(progress);
        let mut watch = Watch::new(Span::from_secs(1), &mut listener);
        let mut meter = IntervalMeter::new(IpVersion::V4, Span::from_millis(100));
        for n in 1..=5 {
            let tick = ReceiverTick {
                end: Span::from_millis(50 * n),
                length: Span::from_millis(50),
                bytes: ByteCount(1000),
                streams: 1,
                ..ReceiverTick::default()
            };
            meter.take(Direction::Forward, &Tick::Receiver(tick), &mut watch);
        }
        meter.flush(&mut watch);
        let bytes: Vec<u64> = told
            .iter()
            .filter_map(|p| if let Progress::Interval { bytes, .. } = p { Some(bytes.0) } else { None })
            .collect();
        assert_eq!(bytes, [2000, 2000, 1000]);
    }
}
