//! Writing and reading apart: requests leave when they are due, in an open loop or as far ahead as
//! the pipeline is deep.
//!
//! TCP answers in order, so the reader needs only a queue of what was asked. An open loop does not
//! wait for anybody: when the responder stalls, requests pile up in the socket, then in front of
//! it, and each of them counts from when it was due. An answer after `patience` is lost and late at
//! once, as over UDP.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};

use netaware_io::clock;
use netaware_io::pacer::{precise_sleep, wait_until};
use netaware_io::stop::StopFlag;
use netaware_probe::EchoPlan;
use netaware_probe::echo::Schedule;
use netaware_units::{Mono, Span};

use super::message::{Broken, Messages};
use super::{Asked, Course, Ended, LATE};

pub(super) fn run(course: &Course<'_>) -> Ended {
    // Bounded: a writer that is this far ahead of its answers waits.
    let (tell, asked) = sync_channel(EchoPlan::MOST_OUTSTANDING as usize);
    let (free, freed) = channel();
    let (reader_gone, ending_at) = (StopFlag::new(), AtomicU64::new(u64::MAX));
    let writer = Writer { course, tell, freed, reader_gone: &reader_gone, ending_at: &ending_at };
    let reader = Reader { course, asked, free, ending_at: &ending_at, ended: Ended::new(course) };
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| writer.run());
        let mut ended = reader.run();
        reader_gone.raise();
        let panicked = |_| Wrote {
            failed: Some(io::Error::other("the writing thread panicked")),
            cut_off: true,
            ..Wrote::default()
        };
        let wrote = writing.join().unwrap_or_else(panicked);
        // What left and was never looked at.
        let settled = ended.counts.received + ended.counts.lost + ended.counts.abandoned;
        ended.counts.asked = wrote.asked.max(settled);
        let unread = ended.counts.asked - settled;
        ended.counts.abandoned += unread;
        let behind = unread * u64::from(course.sizes.response);
        ended.owed = ended.owed.filter(|_| !wrote.cut_off).map(|owed| owed + behind);
        ended.late_sends = wrote.late_sends;
        ended.worst_lateness = wrote.worst_lateness;
        ended.failed = ended.failed.or(wrote.failed);
        ended
    })
}

struct Writer<'a> {
    course: &'a Course<'a>,
    tell: SyncSender<Asked>,
    freed: Receiver<Mono>,
    reader_gone: &'a StopFlag,
    ending_at: &'a AtomicU64,
}

/// What the writer did.
#[derive(Default)]
struct Wrote {
    asked: u64,
    late_sends: u64,
    worst_lateness: Span,
    /// The last request left in part.
    cut_off: bool,
    /// The system's answer to it.
    failed: Option<io::Error>,
}

impl Writer<'_> {
    fn run(self) -> Wrote {
        let _precise = precise_sleep();
        let (course, mut wrote) = (self.course, Wrote::default());
        let mut schedule = Schedule::new(course.order.pacing, course.start);
        let mut requests = Messages::new(course.stream, course.sizes.request);
        let unwanted =
            |_| (self.reader_gone.is_raised() || self.is_past_its_end()).then_some(Broken::Stopped);
        while let Some(due) = self.next_due(&mut schedule) {
            if course.is_over(wrote.asked, due) || !self.is_reached(due) {
                break;
            }
            schedule.advance();
            let sent_at = clock::now();
            let asked = Asked { seq: wrote.asked, due, sent_at };
            if self.tell.send(asked).is_err() {
                break;
            }
            wrote.asked += 1;
            if course.order.pacing.arrivals().is_some() {
                let late_by = sent_at.since(due);
                wrote.late_sends += u64::from(late_by > LATE);
                wrote.worst_lateness = wrote.worst_lateness.max(late_by);
            }
            match requests.write(course.first + asked.seq, &unwanted) {
                Ok(()) => {}
                Err(why) => {
                    wrote.cut_off = true;
                    if let Broken::Failed(error) = why {
                        wrote.failed = Some(error);
                    }
                    break;
                }
            }
        }
        // A run waits for its last answers, which are the slowest where a queue grows; somebody who
        // stopped it waits only for a moment.
        if course.order.count != Some(wrote.asked) {
            let patience = course.patience.span();
            let wait = if course.stop.is_raised() { LINGER.min(patience) } else { patience };
            self.ending_at.store((clock::now() + wait).0, Ordering::Release);
        }
        wrote
    }

    /// The writer may still hang in a write when the run is stopped.
    fn is_past_its_end(&self) -> bool {
        let ends_at = self.course.order.time.map(|time| self.course.start + time);
        self.course.stop.is_raised() || ends_at.is_some_and(|ends_at| clock::now() >= ends_at)
    }

    /// A closed loop waits here for an answer; `None` when the run is over.
    fn next_due(&self, schedule: &mut Schedule) -> Option<Mono> {
        self.freed.try_iter().for_each(|at| schedule.turn_over(at));
        while schedule.next_due().is_none() {
            match self.freed.recv_timeout(TICK.to_std()) {
                Ok(at) => schedule.turn_over(at),
                Err(RecvTimeoutError::Timeout) if !self.is_past_its_end() => {}
                Err(_) => return None,
            }
        }
        schedule.next_due()
    }

    /// Waits for it; false when the run is over before.
    fn is_reached(&self, due: Mono) -> bool {
        while due > clock::now() + TICK {
            if self.is_past_its_end() || self.reader_gone.is_raised() {
                return false;
            }
            clock::sleep(TICK);
        }
        wait_until(due);
        true
    }
}

struct Reader<'a> {
    course: &'a Course<'a>,
    asked: Receiver<Asked>,
    free: Sender<Mono>,
    ending_at: &'a AtomicU64,
    ended: Ended,
}

impl Reader<'_> {
    fn run(mut self) -> Ended {
        let mut responses = Messages::new(self.course.stream, self.course.sizes.response);
        while let Ok(asked) = self.asked.recv() {
            let number = self.course.first + asked.seq;
            responses.go_on(asked.sent_at);
            match responses.read(number, &|since| self.verdict(since.max(asked.sent_at))) {
                Ok(_) if responses.was_away_since(asked.sent_at) => {
                    let at = clock::now();
                    self.ended.came_unseen(at);
                    let _ = self.free.send(at);
                }
                Ok(is_intact) => self.note(asked, is_intact),
                Err(why) => {
                    self.ended.broke(asked.sent_at, why);
                    self.ended.owed = Some(responses.missing());
                    break;
                }
            }
        }
        self.ended
    }

    fn note(&mut self, asked: Asked, is_intact: bool) {
        let at = clock::now();
        let is_open = self.course.order.pacing.arrivals().is_some();
        if is_open && at.since(asked.sent_at) > self.ended.patience.span() {
            self.ended.came_late(asked, at);
        } else {
            self.ended.answered(asked, at, is_intact);
        }
        // A writer that has all it wants is gone.
        let _ = self.free.send(at);
    }

    /// Whether it is time to give up on an answer. An open loop outlasts a stall that is longer
    /// than patience: the answers that come after it are late, and the following ones in time
    /// again.
    fn verdict(&self, since: Mono) -> Option<Broken> {
        let now = clock::now();
        if now.0 >= self.ending_at.load(Ordering::Acquire) {
            return Some(Broken::Stopped);
        }
        let patience = self.ended.patience.span();
        let is_open = self.course.order.pacing.arrivals().is_some();
        let limit = if is_open { patience.max(LONGEST_STALL) } else { patience };
        (now.since(since) >= limit).then_some(Broken::Silent)
    }
}

/// How often a wait looks whether the run is over.
const TICK: Span = Span::from_millis(20);
/// After a run was ended by time or by somebody: as over UDP.
const LINGER: Span = Span::from_millis(250);
/// An open loop gives up on a connection that has been silent for so long; a session is given up
/// then as well.
const LONGEST_STALL: Span = Span::from_secs(4);
