//! Joins fine slices into the intervals that a person watches.

use netaware_probe::loss_split;
use netaware_record::{Direction, IpVersion, ReceiverTick};
use netaware_units::{BitRate, ByteCount, Span};

use crate::bulk::Tick;
use crate::progress::{ASKS_AGAIN, Progress, Watch};

/// One open interval per direction.
pub(crate) struct IntervalMeter {
    version: IpVersion,
    every: Span,
    forward: Open,
    reverse: Open,
    held: [Held; 2],
    /// When the transfers are over; empty slices behind that show nothing.
    over_at: Option<Span>,
}

/// Slices of one direction that are not shown yet: those in which no datagram came, because what
/// was lost in them is known once one does, and those behind a loss, because what is missing may
/// have been overtaken.
#[derive(Default)]
struct Held {
    slices: Vec<ReceiverTick>,
    /// Datagrams that were shown as lost and came after all.
    shown: i64,
}

impl Held {
    fn push(&mut self, tick: ReceiverTick) {
        let paid = tick.lost.clamp(0, self.shown);
        self.shown -= paid;
        self.slices.push(ReceiverTick { lost: tick.lost - paid, ..tick });
        self.slices = loss_split::placed(&self.slices);
        self.shown = self.shown.saturating_add(loss_split::settle(&mut self.slices));
    }

    /// Takes out what will not change, and what has been held for [`MAX_HELD`].
    fn settled(&mut self) -> Vec<ReceiverTick> {
        let mut newer: Span = self.slices.iter().map(|tick| tick.length.or_zero()).sum();
        let (mut until, mut is_whole) = (0, true);
        for (at, tick) in self.slices.iter().enumerate() {
            newer -= tick.length.or_zero();
            is_whole &= tick.lost <= 0;
            let is_silent = tick.streams == 0 && tick.packets == 0;
            let is_crowded = at + MOST_HELD < self.slices.len();
            if newer >= MAX_HELD || is_crowded || (is_whole && !is_silent) {
                until = at + 1;
            }
        }
        self.slices.drain(..until).collect()
    }
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
        Self {
            version,
            every,
            forward: Open::default(),
            reverse: Open::default(),
            held: Default::default(),
            over_at: None,
        }
    }

    /// Adds a slice; tells the interval once it is long enough. The sender's figures come from
    /// another clock and another message, so they are those known when the receiver's interval
    /// closed.
    pub(crate) fn take(&mut self, direction: Direction, tick: &Tick, watch: &mut Watch<'_>) {
        let open = self.open(direction);
        match tick {
            Tick::Begun(lasts) => {
                self.over_at = Some(*lasts);
                watch.has_begun(*lasts);
            }
            Tick::Draining(most) => watch.drains(*most),
            Tick::Unheard(most) => watch.waits_for_an_end(*most),
            Tick::AsksAgain(most) => watch.extends(*most, ASKS_AGAIN),
            Tick::Unanswered(most) => watch.waits_for_an_answer(*most),
            Tick::Sender(tick) => {
                open.retransmits = match (open.retransmits, tick.retransmits) {
                    (Some(sum), Some(more)) => Some(sum + more),
                    (sum, more) => sum.or(more),
                };
                (open.rtt, open.cwnd) = (tick.rtt, tick.cwnd);
            }
            Tick::Receiver(tick) => {
                let held = self.held(direction);
                held.push(*tick);
                let settled = held.settled();
                self.add(direction, settled, watch);
            }
        }
    }

    /// Adds slices that are held back no longer.
    fn add(&mut self, direction: Direction, slices: Vec<ReceiverTick>, watch: &mut Watch<'_>) {
        let (every, over_at) = (self.every, self.over_at);
        let shows_nothing = |tick: &ReceiverTick| {
            let is_udp = tick.streams == 0;
            let is_empty = is_udp && tick.bytes == ByteCount(0) && tick.packets == 0 && tick.lost == 0;
            is_empty && over_at.is_some_and(|over| tick.end - tick.length >= over)
        };
        for tick in slices.into_iter().filter(|tick| !shows_nothing(tick)) {
            let open = self.open(direction);
            open.end = tick.end;
            open.length += tick.length;
            open.bytes += tick.bytes;
            open.packets += tick.packets;
            open.lost += tick.lost;
            open.is_udp = tick.streams == 0;
            // Half a slice of tolerance: slices are cut by a clock that is a little late each time.
            if open.length + tick.length / 2 >= every {
                self.tell(direction, watch);
            }
        }
    }

    /// Tells what is left, unless nothing came any more: then the stream was over.
    pub(crate) fn flush(&mut self, watch: &mut Watch<'_>) {
        for direction in [Direction::Forward, Direction::Reverse] {
            let held = std::mem::take(self.held(direction));
            self.add(direction, held.slices, watch);
            let open = self.open(direction);
            let has_come = open.bytes > ByteCount(0) || open.packets > 0 || open.lost != 0;
            if open.length.0 > 0 && has_come {
                self.tell(direction, watch);
            }
            *self.open(direction) = Open::default();
        }
    }

    fn held(&mut self, direction: Direction) -> &mut Held {
        &mut self.held[usize::from(direction == Direction::Reverse)]
    }

    fn open(&mut self, direction: Direction) -> &mut Open {
        if direction == Direction::Reverse { &mut self.reverse } else { &mut self.forward }
    }

    fn tell(&mut self, direction: Direction, watch: &mut Watch<'_>) {
        let version = self.version;
        let open = std::mem::take(self.open(direction));
        let Some(rate) = BitRate::mean(open.bytes, open.length) else { return };
        // Of an interval that ended with the stream, behind one datagram, the length says nothing.
        let is_cut = open.length + open.length / 10 < self.every;
        let has_rate = !(open.is_udp && open.packets == 1 && is_cut);
        watch.tell(Progress::Interval {
            version,
            direction,
            start: (open.end - open.length).or_zero(),
            end: open.end,
            bytes: open.bytes,
            rate: has_rate.then_some(rate),
            packets: open.is_udp.then_some(open.packets),
            lost: open.is_udp.then_some(open.lost),
            retransmits: open.retransmits.filter(|_| !open.is_udp),
            rtt: open.rtt,
            cwnd: open.cwnd,
        });
    }
}

/// A person who watches an outage or a loss sees it no later than this. What was overtaken usually
/// comes sooner.
const MAX_HELD: Span = Span::from_secs(1);
/// Slices have lengths of 50 ms and more, but those of a peer may have any.
const MOST_HELD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// A responder that sent slices of no length made the prober copy all of them each time.
    #[test]
    fn slices_without_a_length_are_not_held_for_ever() {
        let mut held = Held::default();
        let tick = ReceiverTick { packets: 1, lost: 1, ..ReceiverTick::default() };
        for _ in 0..3 * MOST_HELD {
            held.push(tick);
            held.settled();
        }
        assert!(held.slices.len() <= MOST_HELD, "{}", held.slices.len());
    }

    /// `udp` stood still for seconds before its stream began, and said nothing.
    #[test]
    fn that_a_flow_is_asked_for_once_more_is_said_before_it_is() {
        let mut told = Vec::new();
        let mut listener = |progress| told.push(progress);
        let mut watch = Watch::new(Span::from_secs(10), &mut listener);
        let mut meter = IntervalMeter::new(IpVersion::V4, Span::from_secs(1));
        meter.take(Direction::Forward, &Tick::AsksAgain(Span::from_millis(2500)), &mut watch);
        let note =
            "questions over UDP had no answer, and all are asked once more: this takes up to 2.50 s longer";
        assert_eq!(told, [Progress::Longer(note.to_owned())]);
    }

    /// The lines of a stream: datagrams that came and that were lost.
    fn lines(slices: &[(u64, i64)]) -> Vec<(u64, i64)> {
        lines_of(slices, None)
    }

    /// The same of a stream that is over after this time.
    fn lines_of(slices: &[(u64, i64)], over_at: Option<Span>) -> Vec<(u64, i64)> {
        let mut told = Vec::new();
        let mut listener = |progress| told.push(progress);
        let mut watch = Watch::new(Span::from_secs(1), &mut listener);
        let mut meter = IntervalMeter::new(IpVersion::V4, Span::from_secs(1));
        meter.over_at = over_at;
        for (n, (packets, lost)) in (1..).zip(slices) {
            let tick = ReceiverTick {
                end: Span::from_millis(100 * n),
                length: Span::from_millis(100),
                bytes: ByteCount(packets * 1472),
                packets: *packets,
                lost: *lost,
                ..ReceiverTick::default()
            };
            meter.take(Direction::Reverse, &Tick::Receiver(tick), &mut watch);
        }
        meter.flush(&mut watch);
        let counts = |line: &Progress| match line {
            Progress::Interval { packets, lost, .. } => Some((packets.unwrap(), lost.unwrap())),
            _ => None,
        };
        told.iter().filter_map(counts).collect()
    }

    #[test]
    fn losses_stand_in_the_second_in_which_they_were() {
        let cut = [vec![(43, 0); 6], vec![(0, 0); 4], vec![(43, 172)], vec![(43, 0); 9]].concat();
        assert_eq!(lines(&cut), [(258, 172), (430, 0)]);
        // Nobody waits longer than a second to see that nothing comes.
        let dead = [vec![(43, 0); 5], vec![(0, 0); 30]].concat();
        assert_eq!(lines(&dead), [(215, 0), (0, 0), (0, 0)]);
    }

    /// Lines had -5 and -14 datagrams as lost, of a stream that lost none.
    #[test]
    fn what_was_overtaken_is_not_lost_and_no_line_has_fewer_than_none() {
        let across_the_border = [vec![(15, 0); 9], vec![(13, 2)], vec![(17, -2)], vec![(15, 0); 9]].concat();
        assert_eq!(lines(&across_the_border), [(148, 0), (152, 0)]);
        // What came after its line was shown is taken off later losses.
        let late = [vec![(14, 1); 10], vec![(15, 0); 20], vec![(25, -10)], vec![(12, 3)]].concat();
        assert_eq!(lines(&late), [(140, 10), (150, 0), (150, 0), (37, 0)]);
    }

    /// One datagram in the 94 ms of a stream at 1 kbit/s was "189 kbit/s".
    #[test]
    fn one_datagram_in_an_interval_that_was_cut_off_has_no_rate() {
        let rates = |packets: u64, ms: i64| {
            let mut told = Vec::new();
            let mut listener = |progress| told.push(progress);
            let mut watch = Watch::new(Span::from_secs(1), &mut listener);
            let mut meter = IntervalMeter::new(IpVersion::V4, Span::from_secs(1));
            let (end, length) = (Span::from_millis(ms), Span::from_millis(ms));
            let bytes = ByteCount(packets * 1472);
            let tick = ReceiverTick { end, length, bytes, packets, ..ReceiverTick::default() };
            meter.take(Direction::Forward, &Tick::Receiver(tick), &mut watch);
            meter.flush(&mut watch);
            let rate = |line: &Progress| match line {
                Progress::Interval { rate, .. } => Some(*rate),
                _ => None,
            };
            told.iter().filter_map(rate).collect::<Vec<_>>()
        };
        assert_eq!(rates(1, 94), [None]);
        assert_eq!(rates(2, 94), [BitRate::mean(ByteCount(2944), Span::from_millis(94))]);
        assert_eq!(rates(1, 980), [BitRate::mean(ByteCount(1472), Span::from_millis(980))]);
    }

    #[test]
    fn a_stream_that_is_over_has_no_empty_row_behind_it() {
        let over = [vec![(43, 0); 20], vec![(0, 0); 1]].concat();
        assert_eq!(lines(&over), [(430, 0), (430, 0)]);
    }

    #[test]
    fn a_stream_that_died_has_no_empty_rows_behind_its_planned_end() {
        let dead = [vec![(43, 0); 15], vec![(0, 0); 35]].concat();
        assert_eq!(lines_of(&dead, Some(Span::from_millis(3020))), [(430, 0), (215, 0), (0, 0)]);
    }

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
