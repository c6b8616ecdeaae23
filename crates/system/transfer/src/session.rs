//! One transfer, from the receiver's side: does what [`Receiving`] says, on the disk and on the
//! stream.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

use netaware_io::clock;
use netaware_io::signals::quiet_thread;
use netaware_io::stop::StopFlag;
use netaware_pool::{Full, Place, Places, Standing};
use netaware_stream::DualStream;
use netaware_units::{Mono, Span};
use netaware_wire::transfer::{Digest, Done, ReceiverMessage, RefusalCode, SenderMessage};

use crate::channel::{Came, Channel};
use crate::error::{Broken, Failure};
use crate::greeting::{admit, turn_away, welcome};
use crate::place::{Incoming, Refusal};
use crate::receiver::{Shared, Tell};
use crate::receiving::{Announced, Receiving, Sealed, Task};
use crate::report::{Event, ReceiveReport};
use crate::sender::{SILENCE, WAIT_EVERY};

/// One transfer.
pub(crate) struct Session {
    transfer: u64,
    /// Held until the sender is let in, or turned away.
    opening: Option<Place>,
    /// One of the transfers that there may be at the same time.
    seat: Option<Place>,
    channel: Channel,
    shared: Arc<Shared>,
    tell: Tell,
    stop: StopFlag,
    receiving: Receiving,
    incoming: BTreeMap<u64, Incoming>,
    report: ReceiveReport,
    began_at: Mono,
    told_at: Mono,
    /// Of files that are there or were refused.
    done: u64,
}

impl Session {
    /// `opening` is the place that the stream holds among those that have not proven the key.
    pub(crate) fn new(
        transfer: u64,
        (stream, from): (DualStream, SocketAddr),
        opening: Place,
        shared: &Arc<Shared>,
        tell: &Tell,
        stop: &StopFlag,
    ) -> Self {
        let report = ReceiveReport {
            from,
            written: 0,
            present: 0,
            bytes: 0,
            resumed: 0,
            took: Span::ZERO,
            failures: Vec::new(),
            failed: 0,
            ended: None,
        };
        Self {
            transfer,
            opening: Some(opening),
            seat: None,
            channel: Channel::new(stream, None),
            shared: shared.clone(),
            tell: tell.clone(),
            stop: stop.clone(),
            receiving: Receiving::default(),
            incoming: BTreeMap::new(),
            report,
            began_at: clock::now(),
            told_at: Mono(0),
            done: 0,
        }
    }

    /// Whether the sender has said that this was all.
    pub(crate) fn run(mut self) -> bool {
        let ended = self.receive();
        let told = match &ended {
            Err(Broken::Protocol(why)) => Some(why),
            // Who encrypts where this end does not fails at that text, and does not try again.
            Err(Broken::Tls(why)) if self.shared.config.identity.is_none() => Some(why),
            _ => None,
        };
        if let Some(why) = told {
            let why = why.chars().take(200).collect();
            let _ = self.say(&ReceiverMessage::Error { code: RefusalCode::Protocol, why });
        }
        // Locks go before anybody is told.
        self.incoming.clear();
        self.shared.place.leave(self.transfer, clock::now());
        self.shared.roster.leave(self.transfer);
        let was_let_in = self.seat.take().is_some();
        // Last words take no seat, but a place all the same: a sender decides how long they take.
        let _held = if was_let_in {
            self.enter(&self.shared.leaving, Standing::Unproven).ok()
        } else {
            self.opening.take()
        };
        self.report.took = clock::now() - self.began_at;
        self.report.ended = ended.err();
        let came_to_its_end = self.report.ended.is_none();
        if was_let_in || self.shared.reports.admit(clock::now()) {
            (self.tell)(Event::Ended { transfer: self.transfer, report: self.report });
        }
        let most = if came_to_its_end { MOST_LAST_WORDS } else { Span::ZERO };
        let patience = if came_to_its_end { LAST_WORDS } else { LAST_REFUSAL };
        end_stream(self.channel, patience, most);
        came_to_its_end
    }

    fn receive(&mut self) -> Result<(), Broken> {
        if let Some(identity) = &self.shared.config.identity {
            let tls = identity.connection()?;
            self.channel = Channel::new(self.channel.stream().clone(), Some(tls));
            self.channel.shake_hands(clock::now() + GREETING)?;
        }
        let key = self.shared.config.key.as_ref();
        let proof = admit(&mut self.channel, key, GREETING)?;
        // Not before: who only connects must not keep out who has the key.
        let standing = if key.is_some() { Standing::Proven } else { Standing::Unproven };
        let Ok(seat) = self.enter(&self.shared.seats, standing) else {
            let why = "it has as many transfers as it takes at the same time (--max-transfers)";
            return turn_away(&mut self.channel, why);
        };
        self.seat = Some(seat);
        self.opening = None;
        welcome(&mut self.channel, proof, GREETING)?;
        (self.tell)(Event::Began { transfer: self.transfer, from: self.report.from });
        self.shared.roster.enter(self.transfer, self.channel.stream().clone());
        let (mut heard_at, mut received) = (clock::now(), 0);
        loop {
            if self.stop.is_raised() {
                let why = "the receiver is ending".to_owned();
                let _ = self.say(&ReceiverMessage::Error { code: RefusalCode::System, why });
                return Err(Broken::Stopped);
            }
            let now = clock::now();
            match self.channel.next(now + LOOKED)? {
                None => {
                    let so_far = self.channel.stream().status().received;
                    if so_far > received {
                        (heard_at, received) = (now, so_far);
                    } else if now - heard_at > SILENCE {
                        return Err(Broken::Silent(SILENCE));
                    }
                    continue;
                }
                Some(Came::Chunk(length)) => self.take_chunk(length)?,
                Some(Came::Message(body)) => {
                    let message = SenderMessage::parse(&body);
                    let message = message.map_err(|why| Broken::Protocol(why.to_string()))?;
                    let task = self.receiving.take(message);
                    let task = task.map_err(|why| Broken::Protocol(format!("the sender sent {why}")))?;
                    if self.perform(task)? {
                        return Ok(());
                    }
                }
            }
            heard_at = clock::now();
            self.seal()?;
            self.show();
        }
    }

    /// Takes a place. The stream ends at once if the place is taken away.
    fn enter(&self, places: &Places, standing: Standing) -> Result<Place, Full> {
        let stream = self.channel.stream().clone();
        places.enter(self.report.from.ip(), standing, move || stream.shutdown(Shutdown::Both))
    }

    fn take_chunk(&mut self, length: usize) -> Result<(), Broken> {
        let whose = self.receiving.chunk(length);
        let whose = whose.map_err(|why| Broken::Protocol(format!("the sender sent {why}")))?;
        let bytes = self.channel.chunk();
        let Some((entry, incoming)) = whose.and_then(|entry| Some((entry, self.incoming.get_mut(&entry)?)))
        else {
            return Ok(());
        };
        match incoming.write(bytes) {
            Ok(()) => {
                self.report.bytes += length as u64;
                self.done += length as u64;
                Ok(())
            }
            Err(refusal) => self.refuse(entry, refusal),
        }
    }

    /// Whether that was all.
    fn perform(&mut self, task: Task) -> Result<bool, Broken> {
        match task {
            Task::Nothing => {}
            Task::Plan { files, bytes } => {
                (self.tell)(Event::Planned { transfer: self.transfer, files, bytes });
            }
            Task::MakeFolder { entry, path } => {
                match self.shared.place.make_folder(&path, self.transfer, clock::now()) {
                    Ok(how) => self.finish_entry(entry, how)?,
                    Err(refusal) => self.refuse_named(entry, path.as_str(), refusal)?,
                }
            }
            Task::Examine { entry, file } => self.examine(entry, &file)?,
            Task::Begin { entry, from } => {
                let Some(incoming) = self.incoming.get_mut(&entry) else { return Ok(false) };
                match incoming.begin(from) {
                    Ok(()) => {
                        self.report.resumed += incoming.kept;
                        self.done += from;
                    }
                    Err(refusal) => self.refuse(entry, refusal)?,
                }
            }
            Task::End { entry, digest } => self.end(entry, digest)?,
            Task::GiveUp { entry } => {
                if let Some(incoming) = self.take_incoming(entry) {
                    let path = incoming.file.path.to_string();
                    self.refuse_named(entry, &path, incoming.give_up())?;
                }
            }
            Task::Finish => {
                let shared = self.shared.clone();
                let settled = self.patiently(move || shared.place.settle())?;
                settled.map_err(|why| Broken::Protocol(format!("cannot put it on the disk: {why}")))?;
                self.say(&ReceiverMessage::Finished)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn examine(&mut self, entry: u64, file: &Announced) -> Result<(), Broken> {
        let deadline = clock::now() + BUSY_PATIENCE;
        let path = file.path.to_string();
        let shared = self.shared.clone();
        loop {
            let found = {
                let (channel, stop) = (&mut self.channel, &self.stop);
                let mut said_at = clock::now();
                let mut busy = || {
                    if clock::now() - said_at > WAIT_EVERY {
                        said_at = clock::now();
                        // That the sender has gone is found at the next message.
                        let _ = channel.say(&ReceiverMessage::Wait, &mut in_time(said_at + SILENCE));
                    }
                    !stop.is_raised()
                };
                shared.place.examine(file.clone(), &mut busy)
            };
            match found {
                Ok(incoming) => {
                    let have = incoming.have();
                    self.receiving.examined(entry, have.map(|have| have.bytes));
                    shared.roster.holds(self.transfer, &incoming.file.path);
                    self.incoming.insert(entry, incoming);
                    return self.say(&ReceiverMessage::Ready { entry, have });
                }
                // An earlier stream of the same sender lets go soon, or is made to.
                Err(Refusal { code: RefusalCode::Busy, .. })
                    if clock::now() < deadline && !self.stop.is_raised() =>
                {
                    shared.roster.press(&file.path, clock::now());
                    clock::sleep(Span::from_millis(100));
                }
                Err(refusal) => return self.refuse_named(entry, &path, refusal),
            }
        }
    }

    fn end(&mut self, entry: u64, digest: Digest) -> Result<(), Broken> {
        let Some(incoming) = self.take_incoming(entry) else { return Ok(()) };
        let path = incoming.file.path.to_string();
        let ended = if incoming.file.bytes < QUICKLY {
            incoming.end(digest)
        } else {
            self.patiently(move || incoming.end(digest))?
        };
        match ended {
            Ok(how) => {
                match how {
                    Done::Written => self.report.written += 1,
                    Done::Present => self.report.present += 1,
                }
                self.finish_entry(entry, how)
            }
            Err(refusal) => self.refuse_named(entry, &path, refusal),
        }
    }

    fn take_incoming(&mut self, entry: u64) -> Option<Incoming> {
        let incoming = self.incoming.remove(&entry)?;
        self.shared.roster.lets_go(self.transfer, &incoming.file.path);
        Some(incoming)
    }

    /// Folders whose entries are all over.
    fn seal(&mut self) -> Result<(), Broken> {
        while let Some(Sealed { entry, path, mode, mtime }) = self.receiving.sealed() {
            match self.shared.place.seal(&path, mode, mtime, self.transfer, clock::now()) {
                Ok(how) => self.finish_entry(entry, how)?,
                Err(refusal) => self.refuse_named(entry, path.as_str(), refusal)?,
            }
        }
        Ok(())
    }

    fn finish_entry(&mut self, entry: u64, how: Done) -> Result<(), Broken> {
        self.receiving.over(entry);
        self.say(&ReceiverMessage::Done { entry, how })
    }

    fn refuse(&mut self, entry: u64, refusal: Refusal) -> Result<(), Broken> {
        let Some(incoming) = self.take_incoming(entry) else { return Ok(()) };
        self.refuse_named(entry, &incoming.file.path.to_string(), refusal)
    }

    fn refuse_named(&mut self, entry: u64, path: &str, refusal: Refusal) -> Result<(), Broken> {
        self.receiving.over(entry);
        self.report.failed += 1;
        let Refusal { code, why } = refusal;
        if self.report.failures.len() < MOST_FAILURES {
            self.report.failures.push(Failure { path: path.to_owned(), why: why.clone() });
        }
        self.say(&ReceiverMessage::Refused { entry, code, why })
    }

    fn say(&mut self, message: &ReceiverMessage) -> Result<(), Broken> {
        self.channel.say(message, &mut in_time(clock::now() + SILENCE))
    }

    /// Does what may take long, and lets the sender know meanwhile that somebody is here.
    fn patiently<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Broken> {
        let (tell, told) = std::sync::mpsc::channel();
        let spawned = quiet_thread("transfer-disk", move || {
            // Who asked may have gone.
            let _ = tell.send(work());
        });
        spawned.map_err(Broken::Stream)?;
        loop {
            match told.recv_timeout(WAIT_EVERY.to_std()) {
                Ok(done) => return Ok(done),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => self.say(&ReceiverMessage::Wait)?,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(Broken::Stream(io::Error::other("a thread has failed")));
                }
            }
        }
    }

    fn show(&mut self) {
        let now = clock::now();
        if now - self.told_at >= SHOWN_EVERY {
            self.told_at = now;
            (self.tell)(Event::Moved { transfer: self.transfer, done: self.done });
        }
    }
}

/// Waits until the sender has everything and has ended as well: as long as it acknowledges more
/// within each `patience` and four round trips, until `most` is over. A stream that is not finished
/// then is given up: it does not count as a transfer any more, so a sender could hold any number.
fn end_stream(channel: Channel, patience: Span, most: Span) {
    let stream = channel.stream().clone();
    let status = stream.status();
    let round_trips = [status.v4, status.v6].into_iter().flatten().filter_map(|link| link.round_trip);
    let round_trip = round_trips.max().unwrap_or(Span::ZERO);
    let patience = (patience + round_trip * ROUND_TRIPS).min(LONGEST_PATIENCE);
    let until = clock::now() + most;
    let mut channel = Some(channel);
    let finished = while_it_moves(
        || stream.status().acknowledged,
        || clock::now() < until,
        || {
            let deadline = clock::now() + patience;
            match channel.take() {
                Some(channel) => channel.finish(deadline).is_ok(),
                None => stream.finish(deadline).is_ok(),
            }
        },
    );
    if !finished {
        stream.shutdown(Shutdown::Both);
    }
}

/// Waits again each time that more was acknowledged meanwhile and there is time; whether a wait was
/// enough.
fn while_it_moves(
    acknowledged: impl Fn() -> u64,
    is_time_left: impl Fn() -> bool,
    mut wait: impl FnMut() -> bool,
) -> bool {
    loop {
        let before = acknowledged();
        if wait() {
            return true;
        }
        if acknowledged() == before || !is_time_left() {
            return false;
        }
    }
}

/// A sender that does not listen does not hold a receiver.
fn in_time(deadline: Mono) -> impl FnMut(&DualStream) -> Result<(), Broken> {
    move |_| if clock::now() < deadline { Ok(()) } else { Err(Broken::Silent(SILENCE)) }
}

/// Between looks at whether to stop.
pub(crate) const LOOKED: Span = Span::from_millis(250);
/// For the first words.
const GREETING: Span = Span::from_secs(10);
/// For another transfer that brings the same file.
const BUSY_PATIENCE: Span = Span::from_secs(8);
const SHOWN_EVERY: Span = Span::from_millis(100);
/// For the sender to have the end of a transfer, without acknowledging any more of it.
const LAST_WORDS: Span = Span::from_secs(5);
/// The same in all, while it acknowledges more.
const MOST_LAST_WORDS: Span = Span::from_secs(60);
/// For the sender to have why a transfer is broken off.
const LAST_REFUSAL: Span = Span::from_secs(1);
/// These come on top.
const ROUND_TRIPS: i64 = 4;
/// Round trips are what the other end makes of them.
const LONGEST_PATIENCE: Span = Span::from_secs(10);
/// A shorter file takes its place in no time.
const QUICKLY: u64 = 1 << 20;
const MOST_FAILURES: usize = 1000;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_sender_that_acknowledges_a_byte_at_a_time_does_not_hold_a_stream_for_ever() {
        let (acknowledged, waits) = (Cell::new(0_u64), Cell::new(0));
        let wait = || {
            acknowledged.set(acknowledged.get() + 1);
            waits.set(waits.get() + 1);
            false
        };
        assert!(!while_it_moves(|| acknowledged.get(), || waits.get() < 12, wait));
        assert_eq!(waits.get(), 12);
    }

    #[test]
    fn a_sender_on_a_slow_path_is_waited_for_again_and_one_that_is_stuck_is_not() {
        let acknowledged = Cell::new(0_u64);
        let slow = || {
            acknowledged.set(acknowledged.get() + 40_000);
            acknowledged.get() == 120_000
        };
        assert!(while_it_moves(|| acknowledged.get(), || true, slow));

        let mut waits = 0;
        let stuck = || {
            waits += 1;
            false
        };
        assert!(!while_it_moves(|| 7, || true, stuck));
        assert_eq!(waits, 1);
    }
}
