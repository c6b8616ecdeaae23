//! Runs an estimator over a session: its volleys travel over a UDP flow, what became of them comes
//! back by the control connection.
//!
//! The estimator is always here, whichever end sends: so it asks, and a session that breaks leaves
//! what it had found.

use netaware_host::CoreDemand;
use netaware_io::clock;
use netaware_io::options::SocketOptions;
use netaware_io::stop::StopFlag;
use netaware_io::volley::VolleySocket;
use netaware_path::{
    Arrival, Estimator, Gaps, Step, Train, TrainReport, Volley, VolleyPatience, VolleyReport,
};
use netaware_record::{CpuUse, Direction};
use netaware_stats::ceasing::{Ceased, Ceasing};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::{
    ClientMessage, EndReport, MAX_VOLLEY_PATIENCE, ServerMessage, TestPlan, TrainSpec, TrainsPlan, VolleySpec,
};

use crate::attach;
use crate::departures::Departures;
use crate::session::{ANSWER_PATIENCE, Session, test_of};
use crate::stage::Cause;

/// A flow with trains in one direction.
pub(crate) struct Trains<'a> {
    session: &'a mut Session,
    socket: VolleySocket,
    test: u32,
    direction: Direction,
    /// IP and UDP headers, bytes.
    headers: u32,
    /// For packets that do not come.
    patience: VolleyPatience,
    next_volley: u32,
    next_seq: u64,
    payload: Payload,
    /// Packets sent and received so far.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// IP bytes of the packets that were sent.
    pub(crate) sent_bytes: u64,
    /// When the last volley was over of which that is known.
    pub(crate) over_at: Option<Mono>,
    /// Of those received, stamped by a program because the kernel had no stamp.
    pub(crate) unstamped: u64,
    /// What the sending host made of the plans.
    pub(crate) departures: Departures,
    /// Of this thread, while it sent or took in packets.
    pub(crate) demand: CoreDemand,
    pub(crate) silence: Silence,
}

impl Trains<'_> {
    /// How it ended, where nothing came any more.
    pub(crate) fn ceased(&self) -> Option<Ceased> {
        self.silence.ceased(self.patience.now())
    }
}

/// What has not come since anything came: a firewall that begins to drop, or an address translator
/// that gives the flow another port, leaves nothing of any later train, while the control
/// connection lives on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Silence {
    /// Packets in a row that left and did not come, up to the end.
    pub(crate) packets: u64,
    /// Volleys that they were in.
    volleys: u32,
    /// Volleys since then of which no packet left.
    kept_in: u32,
    /// Something had come before.
    pub(crate) after_some: bool,
    /// When the volleys were begun, and when they were to be over, those included that never left.
    ceasing: Ceasing,
    /// Packets in a row that never left.
    not_sent: u64,
    /// IP length of the largest that ever came, bytes: longer ones may not fit the path.
    largest: u32,
}

impl Silence {
    /// A volley was begun, was to be sent by then, and is over.
    fn observe(&mut self, volley: &Volley, report: &VolleyReport, [began_at, sent_by, over_at]: [Mono; 3]) {
        let all: u64 = report.trains.iter().map(|train| train.sent.len() as u64).sum();
        let sent = report.trains.iter().flat_map(|train| &train.sent).flatten().count() as u64;
        if report.trains.iter().any(|train| !train.arrivals.is_empty()) {
            self.ceasing.came(over_at);
            let came = volley.trains.iter().zip(&report.trains).filter(|(_, it)| !it.arrivals.is_empty());
            let largest = came.map(|(train, _)| train.length).max().max(Some(self.largest));
            let largest = largest.unwrap_or_default();
            *self = Self { after_some: true, ceasing: self.ceasing, largest, ..Self::default() };
            return;
        }
        let has_passed = volley.trains.iter().any(|train| train.length <= self.largest);
        self.not_sent += all - sent;
        if sent > 0 {
            self.packets += sent;
            self.volleys += 1;
            if has_passed {
                self.ceasing.unanswered(began_at);
                self.ceasing.unanswered(sent_by);
            }
        } else if all > 0 && has_passed {
            self.kept_in += 1;
            self.ceasing.not_sent(began_at);
            self.ceasing.not_sent(sent_by);
        }
    }

    /// Packets of earlier volleys came after all, from a queue that is longer than they were waited
    /// for.
    fn came_late(&mut self, at: Mono) {
        self.ceasing.came(at);
        *self = Self { after_some: true, ceasing: self.ceasing, largest: self.largest, ..Self::default() };
    }

    /// Whether nothing came any more until the end, for longer than volleys are usually silent that
    /// wait `patience` for their packets. A policer and loss let something of each volley pass; of
    /// a few packets they may let none.
    pub(crate) fn ceased(&self, patience: Span) -> Option<Ceased> {
        let ceased = self.ceasing.ceased(patience)?;
        let (unanswered, not_sent) = (self.packets, self.not_sent);
        let gone = unanswered + not_sent;
        let volleys = self.volleys + self.kept_in;
        let by_volleys = volleys >= MIN_CEASED_VOLLEYS && gone >= MIN_CEASED;
        let by_packets = volleys >= SILENT_VOLLEYS && gone >= MANY_CEASED;
        (by_volleys || by_packets).then_some(Ceased { unanswered, not_sent, ..ceased })
    }

    /// So many packets in a row did not come after others had come.
    pub(crate) fn after_some(packets: u64) -> Self {
        Self { packets, after_some: true, ..Self::default() }
    }

    /// Whole volleys that loss alone would hardly have taken.
    pub(crate) fn is_told(&self) -> bool {
        self.volleys >= SILENT_VOLLEYS
    }
}

/// The payload of the volleys of a test, as the responder counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Payload {
    asked: u64,
    /// The most that the responder's owner allows: a volley beyond that is refused.
    most: Option<ByteCount>,
}

impl Payload {
    fn has_room_for(self, more: u64) -> bool {
        self.most.is_none_or(|most| self.asked.saturating_add(more) <= most.0)
    }

    fn add(&mut self, more: u64) {
        self.asked = self.asked.saturating_add(more);
    }
}

/// A volley that an estimator has asked for, and that is not sent yet.
#[derive(Debug)]
pub(crate) struct Pending {
    volley: Volley,
    due: Mono,
}

/// Why [`Trains::run`] came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// The estimator wants nothing more.
    Content,
    /// The time of this call was over.
    Paused,
    /// The next volley has more bytes than the responder's owner allows in this test.
    Capped,
    /// Somebody stopped it.
    Stopped,
}

/// The time of an estimator that takes turns with others: it stands still in theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnTime {
    /// How long it has stood in all.
    stood: Span,
    /// Since when it stands.
    left_at: Option<Mono>,
}

impl OwnTime {
    /// Its turn begins.
    pub(crate) fn enter(&mut self, wall: Mono) {
        if let Some(left_at) = self.left_at.take() {
            self.stood += wall.since(left_at);
        }
    }

    /// Its turn is over.
    pub(crate) fn leave(&mut self, wall: Mono) {
        self.left_at = Some(wall);
    }

    /// What it reads at an instant.
    pub(crate) fn at(&self, wall: Mono) -> Mono {
        self.left_at.unwrap_or(wall) - self.stood
    }

    /// When it will read that, if its turn lasts until then.
    pub(crate) fn wall(&self, own: Mono) -> Mono {
        own + self.stood
    }
}

/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;
/// A train may drown in a queue that others fill; the next volley comes later.
const SILENT_VOLLEYS: u32 = 2;
/// Fewer packets may be lost one by one.
const MIN_CEASED: u64 = 20;
/// In so many volleys: on a slow path two may be seconds apart and drown in what others send.
const MIN_CEASED_VOLLEYS: u32 = 3;
/// So many are not lost one by one, and drown in no two volleys.
const MANY_CEASED: u64 = 100;
/// How often a volley is sent again whose fate is unknown.
const MOST_AGAIN: u32 = 3;
/// By so much more than a volley usually takes, the responder may have stood still: it tells from
/// half a second on.
const LATE: Span = Span::from_millis(100);
/// Between telling the responder of a volley and sending it.
const HEAD_START: Span = Span::from_millis(2);

impl<'a> Trains<'a> {
    /// Opens a test whose trains have packets of at most `largest` bytes of IP.
    pub(crate) fn open(
        session: &'a mut Session,
        options: &SocketOptions,
        direction: Direction,
        largest: u32,
        duration: Span,
    ) -> Result<Self, Cause> {
        let headers = session.version.header_len() + UDP_HEADER;
        let plan =
            TrainsPlan { direction, duration, length: largest.saturating_sub(headers), dscp: options.dscp };
        let test = session.open_test(TestPlan::Trains(plan), &mut |_| {})?;
        let flow = attach::flow(session, options, test, &mut |_| {})?;
        session.await_ready(test, &mut |_| {})?;
        let socket = VolleySocket::new(flow.socket, flow.number).map_err(|e| Cause::System(e.to_string()))?;
        session.start_test(test, &mut |_| {})?;
        let rtt = session.reach.shortest_round_trip().unwrap_or_default();
        let payload = Payload { asked: 0, most: session.limits.bytes };
        Ok(Self {
            session,
            socket,
            test,
            direction,
            headers,
            patience: VolleyPatience::new(rtt),
            next_volley: 0,
            next_seq: 0,
            payload,
            sent: 0,
            received: 0,
            sent_bytes: 0,
            over_at: None,
            unstamped: 0,
            departures: Departures::default(),
            demand: CoreDemand::default(),
            silence: Silence::default(),
        })
    }

    /// Asks the estimator and answers it until it is content, somebody stops it, or its next volley
    /// is due only after `until` or has more bytes than are left of this test. That volley is then
    /// in `pending`, and the first one of the next call.
    pub(crate) fn run(
        &mut self,
        estimator: &mut dyn Estimator,
        pending: &mut Option<Pending>,
        until: Option<Mono>,
        stop: &StopFlag,
    ) -> Result<Ran, Cause> {
        loop {
            if stop.is_raised() {
                return Ok(Ran::Stopped);
            }
            let Pending { volley, due } = match pending.take() {
                Some(pending) => pending,
                None => match estimator.next(clock::now()) {
                    Step::Volley { volley, due } => Pending { volley, due },
                    Step::Done => return Ok(Ran::Content),
                },
            };
            if until.is_some_and(|until| due.max(clock::now()) > until) {
                *pending = Some(Pending { volley, due });
                return Ok(Ran::Paused);
            }
            if !self.has_room_for(&volley) {
                *pending = Some(Pending { volley, due });
                return Ok(Ran::Capped);
            }
            self.serve(estimator, &volley, due, &OwnTime::default(), stop)?;
        }
    }

    /// Asks the estimator for one volley, in its own time, and answers it; says why not where there
    /// is none.
    pub(crate) fn step(
        &mut self,
        estimator: &mut dyn Estimator,
        time: &OwnTime,
        stop: &StopFlag,
    ) -> Result<Option<Ran>, Cause> {
        if stop.is_raised() {
            return Ok(Some(Ran::Stopped));
        }
        match estimator.next(time.at(clock::now())) {
            Step::Volley { volley, .. } if !self.has_room_for(&volley) => Ok(Some(Ran::Capped)),
            Step::Volley { volley, due } => {
                self.serve(estimator, &volley, time.wall(due), time, stop)?;
                Ok(None)
            }
            Step::Done => Ok(Some(Ran::Content)),
        }
    }

    /// Waits until `due`, sends, and tells the estimator.
    fn serve(
        &mut self,
        estimator: &mut dyn Estimator,
        volley: &Volley,
        due: Mono,
        time: &OwnTime,
        stop: &StopFlag,
    ) -> Result<(), Cause> {
        while clock::now() < due && !stop.is_raised() {
            clock::sleep_until(due.min(clock::now() + Span::from_millis(20)));
        }
        let mut began_at = clock::now();
        let mut report = self.fire(volley, stop)?;
        let mut again = 0;
        while report.is_none() && again < MOST_AGAIN && !stop.is_raised() && self.has_room_for(volley) {
            again += 1;
            began_at = clock::now();
            report = self.fire(volley, stop)?;
        }
        // A volley of unknown fate says no more than one that never left.
        let report = report.unwrap_or_else(|| not_sent(volley));
        let now = clock::now();
        estimator.take(time.at(now), &report, now - began_at);
        Ok(())
    }

    /// Sends a volley and returns what became of it. Returns nothing where the responder's program
    /// did not run meanwhile: what came too late then, or was dropped there, is not the path's
    /// doing.
    fn fire(&mut self, volley: &Volley, stop: &StopFlag) -> Result<Option<VolleyReport>, Cause> {
        let began_at = clock::now();
        let unstamped = self.unstamped;
        let spec = self.spec(volley);
        let sent_by = began_at + spec.planned();
        self.next_volley += 1;
        self.next_seq += spec.packets();
        self.payload.add(spec.payload());
        let (number, first) = (spec.number, spec.first);
        self.session.link.send(&ClientMessage::Volley { test: self.test, volley: spec.clone() })?;
        let mut report = not_sent(volley);
        let places = Places::of(first, volley);
        if self.direction == Direction::Forward {
            clock::sleep_until(clock::now() + HEAD_START);
            let Self { socket, demand, .. } = &mut *self;
            let sent = demand.during(clock::now, spec.rests(), || socket.send(&spec, stop));
            places.sent(&mut report, sent.iter().map(|(seq, at)| (*seq, at.0)));
            let times = self.times(number, &spec)?;
            places.arrived(&mut report, times.into_iter());
        } else {
            let Self { socket, demand, .. } = &mut *self;
            let caught = demand.during(clock::now, Span::ZERO, || socket.catch(&spec, stop));
            let caught = caught.map_err(|e| Cause::System(e.to_string()))?;
            self.unstamped += caught.unstamped;
            if caught.late > 0 {
                self.silence.came_late(clock::now());
            }
            places.arrived(&mut report, caught.arrivals.iter().map(|(seq, at)| (*seq, at.0)));
            let times = self.times(number, &spec)?;
            places.sent(&mut report, times.into_iter());
        }
        let usual = spec.planned() + spec.patience;
        if self.met_a_standstill(&report, began_at, usual, stop) {
            self.session.link.standstills().leave_out(left(&report));
            self.unstamped = unstamped;
            return Ok(None);
        }
        self.departures.observe(volley, &report);
        self.silence.observe(volley, &report, [began_at, sent_by, clock::now()]);
        self.patience.observe(&report);
        for (asked, train) in volley.trains.iter().zip(&report.trains) {
            let sent = train.sent.iter().flatten().count() as u64;
            self.sent += sent;
            self.sent_bytes += sent * u64::from(asked.length);
            self.received += train.arrivals.len() as u64;
        }
        self.over_at = Some(clock::now());
        Ok(Some(report))
    }

    /// Whether the responder's program did not run while a volley was under way, by what it says.
    /// It says so with the answer to a ping, which may come behind that to the volley.
    fn met_a_standstill(&self, report: &VolleyReport, began_at: Mono, usual: Span, stop: &StopFlag) -> bool {
        let link = &self.session.link;
        let now = clock::now();
        if now - began_at > usual + link.allowance() + LATE && !stop.is_raised() {
            let came: u64 = report.trains.iter().map(|train| train.arrivals.len() as u64).sum();
            if came < left(report) {
                link.await_pong_after(now);
            } else {
                link.await_overdue_pong();
            }
        }
        link.standstills().is_told_since(began_at)
    }

    fn has_room_for(&self, volley: &Volley) -> bool {
        self.payload.has_room_for(self.spec(volley).payload())
    }

    /// What the responder tells of a volley.
    fn times(&mut self, number: u32, spec: &VolleySpec) -> Result<Vec<(u64, u64)>, Cause> {
        // The last packets may have to wait in a queue for as long as anybody waits for them, and
        // the answer behind others in one of the other direction.
        let mut until = clock::now() + spec.planned() + spec.patience * 2 + ANSWER_PATIENCE;
        let (mut found, mut has_ended) = (Vec::new(), false);
        while let Some(message) = self.session.next(until)? {
            if test_of(&message) != Some(self.test) {
                continue;
            }
            match message {
                ServerMessage::VolleyTimes { volley, times, last, unstamped, .. } if volley == number => {
                    self.unstamped += unstamped.min(times.len() as u64);
                    let room = usize::try_from(spec.packets()).unwrap_or(0).saturating_sub(found.len());
                    found.extend(times.into_iter().take(room));
                    if last {
                        return Ok(found);
                    }
                    until = until.max(clock::now() + ANSWER_PATIENCE);
                }
                ServerMessage::Error { code, message, test, .. } => {
                    return Err(Cause::refused(code, message, test));
                }
                // A responder that is stopped says so right after it has ended its tests.
                ServerMessage::Finished { .. } => {
                    (has_ended, until) = (true, clock::now() + ANSWER_PATIENCE);
                }
                _ => {}
            }
        }
        Err(if has_ended {
            Cause::Protocol("it ended the trains by itself".into())
        } else {
            Cause::Silent(ANSWER_PATIENCE)
        })
    }

    fn spec(&self, volley: &Volley) -> VolleySpec {
        let train = |train: &Train| TrainSpec {
            packets: train.packets,
            length: train.length.saturating_sub(self.headers),
            gaps_ps: match &train.gaps {
                Gaps::BackToBack => Vec::new(),
                Gaps::Even(gap) => vec![*gap],
                Gaps::Each(gaps) => gaps.clone(),
            },
            rest: train.rest.or_zero(),
        };
        VolleySpec {
            number: self.next_volley,
            first: self.next_seq,
            trains: volley.trains.iter().map(train).collect(),
            patience: self.patience.now().min(MAX_VOLLEY_PATIENCE),
        }
    }

    /// Ends the test at the responder. Gives what its processors did meanwhile, if it tells.
    pub(crate) fn close(self) -> Result<Option<CpuUse>, Cause> {
        self.session.link.send(&ClientMessage::Stop { test: self.test })?;
        let until = clock::now() + ANSWER_PATIENCE;
        while let Some(message) = self.session.next(until)? {
            if test_of(&message) != Some(self.test) {
                continue;
            }
            match message {
                ServerMessage::Finished { report: EndReport::Trains { cpu, .. }, .. } => return Ok(cpu),
                ServerMessage::Finished { .. } => return Ok(None),
                _ => {}
            }
        }
        Err(Cause::Silent(ANSWER_PATIENCE))
    }
}

/// The report of a volley that never left.
fn not_sent(volley: &Volley) -> VolleyReport {
    let empty =
        |train: &Train| TrainReport { sent: vec![None; train.packets as usize], arrivals: Vec::new() };
    VolleyReport { trains: volley.trains.iter().map(empty).collect() }
}

/// How many packets of a volley left.
fn left(report: &VolleyReport) -> u64 {
    report.trains.iter().map(|train| train.sent.iter().flatten().count() as u64).sum()
}

/// Which packet of which train a sequence number is.
struct Places {
    first: u64,
    /// Packets before each train, and those of all at the end.
    begins: Vec<u64>,
}

impl Places {
    fn of(first: u64, volley: &Volley) -> Self {
        let mut begins = vec![0];
        for train in &volley.trains {
            begins.push(begins.last().unwrap_or(&0) + u64::from(train.packets));
        }
        Self { first, begins }
    }

    fn place(&self, seq: u64) -> Option<(usize, u32)> {
        let at = seq.checked_sub(self.first)?;
        let train = self.begins.partition_point(|begin| *begin <= at).checked_sub(1)?;
        let number = u32::try_from(at - self.begins[train]).ok()?;
        (train + 1 < self.begins.len()).then_some((train, number))
    }

    fn sent(&self, report: &mut VolleyReport, times: impl Iterator<Item = (u64, u64)>) {
        for (seq, at) in times {
            let Some((train, number)) = self.place(seq) else { continue };
            if let Some(slot) = report.trains[train].sent.get_mut(number as usize) {
                *slot = i64::try_from(at).ok();
            }
        }
    }

    fn arrived(&self, report: &mut VolleyReport, times: impl Iterator<Item = (u64, u64)>) {
        for (seq, at) in times {
            let (Some((train, number)), Ok(at)) = (self.place(seq), i64::try_from(at)) else { continue };
            report.trains[train].arrivals.push(Arrival { number, at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volley(packets: &[u32]) -> Volley {
        let train = |packets: &u32| Train {
            packets: *packets,
            length: 100,
            gaps: Gaps::BackToBack,
            rest: Span::ZERO,
        };
        Volley { trains: packets.iter().map(train).collect() }
    }

    #[test]
    fn a_sequence_number_has_its_place_in_a_train() {
        let places = Places::of(10, &volley(&[2, 3]));
        let found: Vec<_> = (9..16).map(|seq| places.place(seq)).collect();
        let want = [None, Some((0, 0)), Some((0, 1)), Some((1, 0)), Some((1, 1)), Some((1, 2)), None];
        assert_eq!(found, want);
    }

    #[test]
    fn silence_is_what_nothing_has_come_of_since() {
        let report = |sent: usize, came: usize| {
            let arrivals = (0..came as u32).map(|number| Arrival { number, at: 1 }).collect();
            VolleyReport { trains: vec![TrainReport { sent: vec![Some(0); sent], arrivals }] }
        };
        let after = |volleys: &[(usize, usize)]| {
            let mut silence = Silence::default();
            for (sent, came) in volleys {
                silence.observe(&volley(&[1]), &report(*sent, *came), [Mono(0); 3]);
            }
            (silence.packets, silence.after_some, silence.is_told())
        };
        assert_eq!(after(&[(5, 5), (20, 20)]), (0, true, false));
        assert_eq!(after(&[(5, 5), (20, 0)]), (20, true, false));
        assert_eq!(after(&[(5, 5), (20, 0), (20, 0)]), (40, true, true));
        assert_eq!(after(&[(5, 5), (20, 0), (20, 0), (20, 1)]), (0, true, false));
        assert_eq!(after(&[(5, 0), (5, 0)]), (10, false, true));
        // What never left says nothing of the path.
        assert_eq!(after(&[(0, 0), (0, 0), (0, 0)]), (0, false, false));
    }

    #[test]
    fn no_volley_is_asked_for_that_an_owner_who_caps_bytes_would_refuse() {
        let mut capped = Payload { asked: 0, most: Some(ByteCount(5_000)) };
        capped.add(3_000);
        assert!(capped.has_room_for(2_000) && !capped.has_room_for(2_001));
        capped.add(2_000);
        assert!(capped.has_room_for(0) && !capped.has_room_for(1));
        assert!(Payload::default().has_room_for(u64::MAX), "there is no cap");
    }

    #[test]
    fn trains_of_which_none_came_for_more_than_a_second_until_the_end_broke_off() {
        let second = Span::from_secs(1);
        let at = |ms: i64| Mono(0) + Span::from_millis(ms);
        // Five volleys that come, and then so many, so far apart, of so many packets that do not.
        let apart = 100;
        let after = |volleys: i64, length: u32, sent: usize, left: bool| {
            let mut silence = Silence::default();
            let report = |came: bool| {
                let arrivals = if came { vec![Arrival { number: 0, at: 1 }] } else { Vec::new() };
                let stamp = (came || left).then_some(0);
                VolleyReport { trains: vec![TrainReport { sent: vec![stamp; sent], arrivals }] }
            };
            let times = |n: i64| [at(n * apart), at(n * apart + 10), at(n * apart + 20)];
            (0..5).for_each(|n| silence.observe(&volley(&[1]), &report(true), times(n)));
            let mut gone = volley(&[1]);
            gone.trains[0].length = length;
            (5..5 + volleys).for_each(|n| silence.observe(&gone, &report(false), times(n)));
            silence.ceased(Span::from_millis(60)).map(|it| (it.unanswered, it.not_sent, it.silent >= second))
        };
        assert_eq!(after(12, 100, 40, true), Some((480, 0, true)));
        assert_eq!(after(12, 100, 40, false), Some((0, 480, true)), "the sending host let nothing out");
        assert_eq!(after(10, 100, 40, true), None, "less than a second");
        let mut late = Silence::default();
        let report = |came: bool| {
            let arrivals = if came { vec![Arrival { number: 0, at: 1 }] } else { Vec::new() };
            VolleyReport { trains: vec![TrainReport { sent: vec![Some(0); 40], arrivals }] }
        };
        for n in 0..20 {
            late.observe(&volley(&[1]), &report(n < 5), [n * 100, n * 100 + 10, n * 100 + 20].map(at));
            late.came_late(at(n * 100 + 30));
        }
        assert_eq!(late.ceased(Span::from_millis(60)), None, "they came too late to count, and came");
        assert_eq!(after(12, 100, 1, true), None, "pairs and single packets may be lost");
        assert_eq!(after(12, 1500, 40, true), None, "such long ones never came");
    }

    #[test]
    fn what_a_responder_makes_up_is_left_out() {
        let places = Places::of(0, &volley(&[2]));
        let mut report = not_sent(&volley(&[2]));
        places.sent(&mut report, [(0, 5), (7, 9), (1, u64::MAX)].into_iter());
        places.arrived(&mut report, [(u64::MAX, 1), (1, 8)].into_iter());
        assert_eq!(report.trains[0].sent, [Some(5), None]);
        assert_eq!(report.trains[0].arrivals, [Arrival { number: 1, at: 8 }]);
    }
}
