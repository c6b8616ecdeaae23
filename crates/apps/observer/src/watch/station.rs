//! The tasks of one source of packets, and their periods.
//!
//! Periods are aligned to the epoch, so that all probes have the same ones. A period ends when a
//! packet of the next one comes, or a quarter of a second after its end by the wall clock when none
//! does: a packet may lie in the ring for so long. A packet that comes even later is counted in the
//! period that runs; its own stamp says when it was. When stamps jump back by more than a period
//! the clock was stepped, and a new period begins where the clock is now.
//!
//! A file may say any time at all. A stamp before 1970 or after 2261 makes its frame malformed and
//! moves no period. Any other closes eight periods at most, however far it jumps: what comes out is
//! bounded by the number of frames, and not by the times that they claim.
//!
//! The first period of a task begins with the task, the last ends with it: they are shorter than
//! the others, and say so.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use netaware_capture::Frame;
use netaware_passive::{Found, Link as Interface, Observed, Watch};
use netaware_record::passive::{CaptureHealth, PacketSighting, Period};
use netaware_units::{Span, Wall};
use netaware_wire::lmap::{Task, What};
use netaware_wire::packet::{self, Packet, Tunnels};

use crate::after;

/// A packet may wait in the ring for so long before it is shown.
const GRACE: Span = Span::from_millis(250);
/// Empty periods that are closed one by one; a longer silence (a host that slept) is skipped.
const CATCH_UP: i64 = 8;
/// Sightings are handed on in portions of at least this many.
const PORTION: usize = 8192;
/// Emptied portions of a task that wait to be filled again; of more the memory is given back to the
/// system.
const EMPTIED: usize = 4;

/// Whether a frame (bytes, length on the wire) is a task's business: its filter in user space.
pub type Matcher = Box<dyn Fn(&[u8], u32) -> bool + Send>;

/// A task that is to begin.
pub struct Setup {
    /// Its name.
    pub name: String,
    /// What was asked for; tasks that are asked for the same again go on.
    pub task: Task,
    /// Its filter; `None`: none.
    pub program: Option<Matcher>,
    /// The task.
    pub watch: Box<dyn Watch>,
    /// Another of the same, for the time in which the first is read out; `None`: it is read out in
    /// place.
    pub spare: Option<Box<dyn Watch>>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setup({})", self.name)
    }
}

/// Whether a task's table can be changed for an empty one at the end of a period. The others
/// remember what spans periods (unanswered packets, blocks, neighbours in time) and are read out in
/// place, which holds packets up for as long as that takes.
pub fn is_changed(what: &What) -> bool {
    matches!(what, What::Volume { .. } | What::Traffic { .. } | What::Digest { .. })
}

/// A task on its way between the thread that captures and the one that reads tables out.
pub type Emptied = Box<dyn Watch>;

/// A task's share of a period.
pub struct Table {
    /// Whose.
    pub task: String,
    /// Its time.
    pub period: Period,
    /// What has to be read out, and where it goes then.
    pub full: Option<(Emptied, Sender<Emptied>)>,
    /// What was read out already.
    pub found: Found,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({}, {:?})", self.task, self.period)
    }
}

/// What a station hands on.
#[derive(Debug)]
pub enum Handed {
    /// Packets of a digest task.
    Sightings(Chosen),
    /// A period is over; counts of what was seen, and the tables.
    Closed(Period, CaptureHealth, Vec<Table>),
}

/// Packets that a digest task has chosen, in memory that goes back to it: taking new pages from the
/// system for each portion would cost as much as the digests.
#[derive(Debug)]
pub struct Chosen {
    /// Whose.
    pub task: String,
    sightings: Vec<PacketSighting>,
    back: SyncSender<Vec<PacketSighting>>,
}

impl Chosen {
    /// Of a task; `back` is where the memory goes.
    pub(super) fn new(
        task: &str,
        sightings: Vec<PacketSighting>,
        back: &SyncSender<Vec<PacketSighting>>,
    ) -> Self {
        Self { task: task.to_owned(), sightings, back: back.clone() }
    }

    /// The packets.
    pub fn sightings(&self) -> &[PacketSighting] {
        &self.sightings
    }
}

impl Drop for Chosen {
    fn drop(&mut self) {
        self.sightings.clear();
        // There may be enough of them, or the task has ended.
        let _ = self.back.try_send(std::mem::take(&mut self.sightings));
    }
}

struct Slot {
    name: String,
    task: Task,
    program: Option<Matcher>,
    watch: Box<dyn Watch>,
    changed: bool,
    emptied: (Sender<Emptied>, Receiver<Emptied>),
    since: Wall,
    /// Empty; changes places with what the task has chosen.
    room: Vec<PacketSighting>,
    rooms: (SyncSender<Vec<PacketSighting>>, Receiver<Vec<PacketSighting>>),
}

/// See the module.
pub struct Station {
    slots: Vec<Slot>,
    /// Length of a period, ns.
    length: i64,
    period: Period,
    health: CaptureHealth,
    /// Whether slots' own filters are looked at: not when all want the same, which the kernel sees
    /// to.
    filters: bool,
    tunnels: Tunnels,
    /// What the interface has become since tasks began.
    link: Option<Interface>,
}

impl std::fmt::Debug for Station {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Station").field("period", &self.period).finish_non_exhaustive()
    }
}

impl Station {
    /// Without tasks. `now` is when it begins.
    pub fn new(length: Span, now: Wall, tunnels: Tunnels) -> Self {
        let length = length.0.max(1_000_000);
        let until = Wall(aligned(now.0, length).saturating_add(length));
        Self {
            slots: Vec::new(),
            length,
            period: Period { from: now, until },
            health: CaptureHealth::default(),
            filters: true,
            tunnels,
            link: None,
        }
    }

    /// Where the first packet of a file with a time is: periods begin there.
    pub fn begin_at(&mut self, at: Wall) {
        self.period = self.period_of(at.0);
        for slot in &mut self.slots {
            slot.since = self.period.from;
        }
    }

    fn period_of(&self, at: i64) -> Period {
        let from = aligned(at, self.length);
        Period { from: Wall(from), until: Wall(from.saturating_add(self.length)) }
    }

    /// Tasks from now on: those named in `keep` go on, others end, `add` begin.
    pub fn set(&mut self, keep: &[String], add: Vec<Setup>, filters: bool, now: Wall, out: &mut Vec<Handed>) {
        let ended: Vec<Slot> = self.slots.extract_if(.., |slot| !keep.contains(&slot.name)).collect();
        let until = now.clamp(self.period.from, self.period.until);
        let link = self.link;
        let tables: Vec<Table> = ended.into_iter().map(|mut slot| slot.close(until, link, out)).collect();
        if !tables.is_empty() {
            // Their last words belong to the report of this period, which is not over.
            out.push(Handed::Closed(Period { from: until, until }, CaptureHealth::default(), tables));
        }
        self.slots.extend(add.into_iter().map(|setup| Slot::new(setup, until)));
        self.filters = filters;
    }

    /// The interface is another than it was: tasks that run, and their tables that are being read
    /// out, have to know.
    pub fn link(&mut self, link: Interface) {
        self.link = Some(link);
        for slot in &mut self.slots {
            slot.watch.link(link);
        }
    }

    /// Names and tasks that run.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, &Task)> {
        self.slots.iter().map(|slot| (slot.name.as_str(), &slot.task))
    }

    /// Takes a frame.
    #[inline]
    pub fn see(&mut self, seen: &Frame<'_>, out: &mut Vec<Handed>) {
        if !is_dated(seen.at) {
            self.health.malformed += 1;
            return;
        }
        if seen.at >= self.period.until || self.is_long_before(seen.at) {
            self.turn_to(seen.at, out);
        }
        match packet::parse_with(self.tunnels, seen.link, seen.bytes, seen.wire_length) {
            Ok(packet) => {
                self.health.seen += 1;
                self.health.seen_bytes.0 += u64::from(seen.wire_length);
                self.show(seen, packet);
            }
            Err(error) if error.is_malformed() => self.health.malformed += 1,
            Err(_) => self.health.not_ip += 1,
        }
    }

    #[inline]
    fn show(&mut self, seen: &Frame<'_>, packet: Packet<'_>) {
        let Frame { at, outgoing, segments, bytes: frame, .. } = *seen;
        let observed = Observed { at, outgoing, segments, packet, frame };
        for slot in &mut self.slots {
            let wanted = !self.filters
                || slot.program.as_ref().is_none_or(|program| program(seen.bytes, seen.wire_length));
            if wanted {
                slot.watch.observe(&observed);
            }
        }
    }

    /// To be called after each portion of packets, with the wall clock's time: hands sightings on,
    /// and closes what is over.
    pub fn tick(&mut self, now: Wall, out: &mut Vec<Handed>) {
        for slot in &mut self.slots {
            slot.drain(PORTION, out);
        }
        if now >= after(self.period.until, GRACE) {
            self.turn_to(after(now, -GRACE), out);
        } else if self.is_long_before(now) {
            self.turn_to(now, out);
        }
    }

    /// Nothing comes any more, as at a file's end: [`Self::finish`] keeps nothing back.
    pub fn run_out(&mut self) {
        for slot in &mut self.slots {
            slot.watch.end();
        }
    }

    /// Ends everything: a file's end, or a probe's.
    pub fn finish(&mut self, now: Wall, out: &mut Vec<Handed>) {
        let until = now.clamp(self.period.from, self.period.until);
        self.close(until, out);
        self.slots.clear();
        self.period.from = until;
    }

    /// Whether the clock was stepped back: `at` is more than a period before the present one.
    fn is_long_before(&self, at: Wall) -> bool {
        at.0 < self.period.from.0.saturating_sub(self.length)
    }

    /// Closes periods until the present one holds `at`, which is not in it now. How many are closed
    /// is calculated: a time at the end of what 64 bits hold would be waited for without end.
    fn turn_to(&mut self, at: Wall, out: &mut Vec<Handed>) {
        let ahead = at.0.saturating_sub(self.period.until.0).div_euclid(self.length);
        if !(0..CATCH_UP).contains(&ahead) || at < self.period.from {
            let end = if at < self.period.from {
                self.period.until.min(self.period.from)
            } else {
                self.period.until
            };
            self.close(end.max(self.period.from), out);
            self.begin(self.period_of(at.0));
            return;
        }
        for _ in 0..=ahead {
            self.close(self.period.until, out);
            self.begin(self.period_of(self.period.until.0));
        }
    }

    fn begin(&mut self, period: Period) {
        self.period = period;
        for slot in &mut self.slots {
            slot.since = period.from;
        }
    }

    fn close(&mut self, until: Wall, out: &mut Vec<Handed>) {
        let period = Period { from: self.period.from, until };
        let link = self.link;
        let tables = self.slots.iter_mut().map(|slot| slot.close(until, link, out)).collect();
        out.push(Handed::Closed(period, std::mem::take(&mut self.health), tables));
    }
}

/// Whether a clock can show this: the years 1970 to 2261. What 64 bits of nanoseconds hold ends in
/// April 2262; readers of files saturate there, and sums of such stamps would overflow.
pub(super) fn is_dated(at: Wall) -> bool {
    (0..YEAR_2262).contains(&at.0)
}

/// 2262-01-01, ns.
const YEAR_2262: i64 = 9_214_646_400 * 1_000_000_000;

fn aligned(at: i64, length: i64) -> i64 {
    at.div_euclid(length).saturating_mul(length)
}

impl Slot {
    fn new(setup: Setup, since: Wall) -> Self {
        let emptied = channel();
        if let Some(spare) = setup.spare {
            // The receiver is beside it.
            let _ = emptied.0.send(spare);
        }
        let changed = is_changed(&setup.task.what);
        Self {
            name: setup.name,
            task: setup.task,
            program: setup.program,
            watch: setup.watch,
            changed,
            emptied,
            since,
            room: Vec::new(),
            rooms: sync_channel(EMPTIED),
        }
    }

    /// Hands on what the task has chosen, if it is `least` packets or more.
    fn drain(&mut self, least: usize, out: &mut Vec<Handed>) {
        self.watch.drain(least, &mut self.room);
        if !self.room.is_empty() {
            let room = self.rooms.1.try_recv().unwrap_or_default();
            let sightings = std::mem::replace(&mut self.room, room);
            out.push(Handed::Sightings(Chosen::new(&self.name, sightings, &self.rooms.0)));
        }
    }

    fn close(&mut self, until: Wall, link: Option<Interface>, out: &mut Vec<Handed>) -> Table {
        self.drain(1, out);
        let period = Period { from: self.since, until };
        let mut table = Table { task: self.name.clone(), period, full: None, found: Found::default() };
        match self.emptied.1.try_recv() {
            Ok(empty) if self.changed => {
                let full = std::mem::replace(&mut self.watch, empty);
                if let Some(link) = link {
                    self.watch.link(link);
                }
                table.full = Some((full, self.emptied.0.clone()));
            }
            // The last one is still being read out: rather a short pause than a table that grows
            // without end.
            _ => self.watch.close(period, &mut table.found),
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::{DigestRow, Row};
    use netaware_units::{ByteCount, ClockSource};
    use netaware_wire::packet::LinkType;
    use proptest::prelude::*;

    use super::*;

    /// Counts packets; its row says how many.
    #[derive(Default)]
    struct Counter(u64);

    impl Watch for Counter {
        fn observe(&mut self, _: &Observed<'_>) {
            self.0 += 1;
        }

        fn close(&mut self, _: Period, found: &mut Found) {
            let observed = std::mem::take(&mut self.0);
            found.rows.push(Row::Digests(DigestRow { observed, ..DigestRow::default() }));
        }
    }

    fn setup(name: &str, program: Option<Matcher>) -> Setup {
        let what = What::Traffic { slice_ms: 10, top: 1 };
        let task = Task { interface: None, filter: None, what, schedule: None };
        let (watch, spare) =
            (Box::new(Counter::default()), Some(Box::new(Counter::default()) as Box<dyn Watch>));
        Setup { name: name.to_owned(), task, program, watch, spare }
    }

    /// IPv4, UDP, no payload.
    fn packet() -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        bytes.extend([0, 53, 0, 53, 0, 8, 0, 0]);
        bytes
    }

    const SECOND: i64 = 1_000_000_000;

    fn at(ns: i64) -> Wall {
        Wall(1_000 * SECOND + ns)
    }

    fn seen(bytes: &[u8], ns: i64) -> Frame<'_> {
        Frame {
            at: at(ns),
            stamped_by: ClockSource::Kernel,
            outgoing: false,
            bytes,
            wire_length: bytes.len() as u32,
            link: LinkType::Raw,
            segments: 1,
            interface: 0,
        }
    }

    fn station(names: &[&str]) -> Station {
        let mut station = Station::new(Span::from_secs(1), at(SECOND / 4), Tunnels::default());
        let add = names.iter().map(|name| setup(name, None)).collect();
        station.set(&[], add, false, at(SECOND / 4), &mut Vec::new());
        station
    }

    /// Task, from, until (ns after the beginning), packets; tables go back as the reader would give
    /// them.
    fn read_out(out: Vec<Handed>) -> Vec<(String, i64, i64, u64)> {
        let mut rows = Vec::new();
        for handed in out {
            let Handed::Closed(_, _, tables) = handed else { continue };
            for mut table in tables {
                if let Some((mut watch, back)) = table.full.take() {
                    watch.close(table.period, &mut table.found);
                    let _ = back.send(watch);
                }
                let [Row::Digests(row)] = &table.found.rows[..] else { panic!() };
                let Period { from, until } = table.period;
                rows.push((table.task, from.0 - at(0).0, until.0 - at(0).0, row.observed));
            }
        }
        rows
    }

    #[test]
    fn periods_close_with_the_first_packet_of_the_next() {
        let (mut station, bytes, mut out) = (station(&["a"]), packet(), Vec::new());
        for ns in [SECOND / 2, SECOND - 1, SECOND, SECOND + 5, 3 * SECOND + 1] {
            station.see(&seen(&bytes, ns), &mut out);
        }
        station.finish(at(3 * SECOND + 7), &mut out);
        let a = || "a".to_owned();
        assert_eq!(
            read_out(out),
            [
                (a(), SECOND / 4, SECOND, 2),
                (a(), SECOND, 2 * SECOND, 2),
                (a(), 2 * SECOND, 3 * SECOND, 0),
                (a(), 3 * SECOND, 3 * SECOND + 7, 1)
            ]
        );
    }

    #[test]
    fn a_silent_interface_closes_its_periods_by_the_clock_and_a_late_packet_is_not_lost() {
        let (mut station, bytes, mut out) = (station(&["a"]), packet(), Vec::new());
        station.tick(at(SECOND + 200_000_000), &mut out);
        assert!(out.is_empty(), "packets may still lie in the ring");
        station.tick(at(SECOND + 250_000_000), &mut out);
        assert_eq!(read_out(std::mem::take(&mut out)), [("a".to_owned(), SECOND / 4, SECOND, 0)]);
        station.see(&seen(&bytes, SECOND - 1), &mut out);
        station.finish(at(2 * SECOND), &mut out);
        assert_eq!(read_out(out), [("a".to_owned(), SECOND, 2 * SECOND, 1)]);
    }

    #[test]
    fn after_a_long_sleep_or_a_step_of_the_clock_periods_begin_anew() {
        let (mut station, bytes, mut out) = (station(&["a"]), packet(), Vec::new());
        station.see(&seen(&bytes, 3600 * SECOND), &mut out);
        assert_eq!(read_out(std::mem::take(&mut out)).len(), 1, "no hour of empty periods");
        station.see(&seen(&bytes, 10 * SECOND + 1), &mut out);
        let closed = read_out(std::mem::take(&mut out));
        assert_eq!((closed.len(), closed[0].3), (1, 1));
        assert!(closed[0].2 >= closed[0].1, "a period never ends before it begins");
        station.finish(at(11 * SECOND), &mut out);
        assert_eq!(read_out(out), [("a".to_owned(), 10 * SECOND, 11 * SECOND, 1)]);
    }

    #[test]
    fn tasks_that_stay_are_not_disturbed_and_others_say_their_last_words() {
        let (mut station, bytes, mut out) = (station(&["a", "b"]), packet(), Vec::new());
        station.see(&seen(&bytes, SECOND / 2), &mut out);
        station.set(&["a".to_owned()], vec![setup("c", None)], false, at(3 * SECOND / 4), &mut out);
        station.see(&seen(&bytes, 3 * SECOND / 4), &mut out);
        station.see(&seen(&bytes, SECOND), &mut out);
        station.finish(at(SECOND + 9), &mut out);
        let rows = read_out(out);
        assert_eq!(rows[0], ("b".to_owned(), SECOND / 4, 3 * SECOND / 4, 1));
        assert_eq!(rows[1], ("a".to_owned(), SECOND / 4, SECOND, 2));
        assert_eq!(rows[2], ("c".to_owned(), 3 * SECOND / 4, SECOND, 1));
        assert_eq!(rows[3..].iter().map(|row| row.3).collect::<Vec<_>>(), [1, 1]);
    }

    /// Its row says how fast the link was for the last packet, Mbit/s.
    #[derive(Default)]
    struct Fast(Interface, u64);

    impl Watch for Fast {
        fn observe(&mut self, _: &Observed<'_>) {
            self.1 = self.0.rate.map_or(0, |rate| rate.0 / 1_000_000);
        }

        fn close(&mut self, _: Period, found: &mut Found) {
            found.rows.push(Row::Digests(DigestRow { observed: self.1, ..DigestRow::default() }));
        }

        fn link(&mut self, link: Interface) {
            self.0 = link;
        }
    }

    #[test]
    fn a_new_speed_reaches_tasks_and_the_tables_that_were_being_read_out() {
        let (mut station, bytes, mut out) = (station(&[]), packet(), Vec::new());
        let task = Setup {
            watch: Box::new(Fast::default()),
            spare: Some(Box::new(Fast::default())),
            ..setup("a", None)
        };
        station.set(&[], vec![task], false, at(SECOND / 4), &mut out);
        station.see(&seen(&bytes, SECOND / 2), &mut out);
        let rate = Some(netaware_units::BitRate(2_500_000_000));
        station.link(Interface { mtu: None, rate });
        let mut rows = Vec::new();
        for second in 0..3 {
            station.see(&seen(&bytes, second * SECOND + 3 * SECOND / 4), &mut out);
            rows.append(&mut read_out(std::mem::take(&mut out)));
        }
        station.finish(at(3 * SECOND), &mut out);
        rows.append(&mut read_out(out));
        assert_eq!(rows.iter().map(|row| row.3).collect::<Vec<_>>(), [2500, 2500, 2500]);
    }

    #[test]
    fn each_task_has_its_own_filter() {
        let mut station = Station::new(Span::from_secs(1), at(0), Tunnels::default());
        let longer = |than: usize| -> Option<Matcher> { Some(Box::new(move |bytes, _| bytes.len() > than)) };
        let add = vec![setup("all", longer(0)), setup("none", longer(99)), setup("open", None)];
        let (mut out, bytes) = (Vec::new(), packet());
        station.set(&[], add, true, at(0), &mut out);
        station.see(&seen(&bytes, 1), &mut out);
        station.finish(at(2), &mut out);
        assert_eq!(read_out(out).into_iter().map(|row| row.3).collect::<Vec<_>>(), [1, 0, 1]);
    }

    #[test]
    fn what_is_no_packet_is_counted_by_its_reason() {
        let (mut station, bytes, mut out) = (station(&[]), packet(), Vec::new());
        station.see(&seen(&bytes, SECOND / 2), &mut out);
        station.see(&seen(&bytes[..10], SECOND / 2), &mut out);
        station.finish(at(SECOND), &mut out);
        let Some(Handed::Closed(_, health, _)) = out.pop() else { panic!() };
        assert_eq!((health.seen, health.malformed, health.seen_bytes), (1, 1, ByteCount(28)));
    }

    #[test]
    fn a_stamp_at_the_end_of_time_makes_its_frame_malformed_and_closes_nothing() {
        let (mut station, bytes, mut out) = (station(&["a"]), packet(), Vec::new());
        for stamp in [i64::MAX, YEAR_2262, -1, i64::MIN] {
            station.see(&Frame { at: Wall(stamp), ..seen(&bytes, 0) }, &mut out);
        }
        assert!(out.is_empty(), "{out:?}");
        station.see(&seen(&bytes, SECOND / 2), &mut out);
        station.finish(at(SECOND), &mut out);
        let Some(Handed::Closed(_, health, _)) = out.pop() else { panic!() };
        assert_eq!((health.seen, health.malformed), (1, 4));
        assert!(is_dated(Wall(0)) && is_dated(Wall(YEAR_2262 - 1)));
    }

    #[test]
    fn a_jump_to_where_64_bits_end_closes_no_more_periods_than_any_other() {
        let ends = [i64::MIN, 0, i64::MAX - 1, i64::MAX];
        for (from, to) in ends.iter().flat_map(|from| ends.map(|to| (*from, to))) {
            let (mut station, mut out) = (station(&["a"]), Vec::new());
            station.begin_at(Wall(from));
            station.turn_to(Wall(to), &mut out);
            assert!((1..=CATCH_UP as usize).contains(&out.len()), "{from} to {to}: {}", out.len());
        }
    }

    proptest! {
        #[test]
        fn whatever_times_a_file_claims_periods_are_bounded_and_frames_accounted_for(
            stamps in prop::collection::vec(
                prop_oneof![any::<i64>(), 0..60 * SECOND, YEAR_2262 - SECOND..YEAR_2262 + SECOND],
                0..40,
            ),
        ) {
            let (mut station, bytes, mut out) = (station(&["a"]), packet(), Vec::new());
            for stamp in &stamps {
                station.see(&Frame { at: Wall(*stamp), ..seen(&bytes, 0) }, &mut out);
            }
            station.finish(Wall(0), &mut out);
            prop_assert!(out.len() <= CATCH_UP as usize * stamps.len() + 1, "{}", out.len());
            let frames = |handed: &Handed| match handed {
                Handed::Closed(_, health, _) => health.seen + health.not_ip + health.malformed,
                Handed::Sightings(_) => 0,
            };
            prop_assert_eq!(out.iter().map(frames).sum::<u64>(), stamps.len() as u64);
        }
    }

    #[test]
    fn without_an_empty_table_at_hand_the_full_one_is_read_out_in_place() {
        let (mut station, bytes, mut out) = (station(&["a"]), packet(), Vec::new());
        for second in 0..4 {
            station.see(&seen(&bytes, second * SECOND + SECOND / 2), &mut out);
        }
        // Nobody gave a table back.
        let in_place =
            |handed: &Handed| matches!(handed, Handed::Closed(_, _, tables) if tables[0].full.is_none());
        assert_eq!(out.iter().map(in_place).collect::<Vec<_>>(), [false, true, true]);
        assert_eq!(read_out(out).iter().map(|row| row.3).collect::<Vec<_>>(), [1, 1, 1]);
    }
}
