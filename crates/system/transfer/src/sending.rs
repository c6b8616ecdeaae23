//! What a sender does next, as far as it can be said without files and sockets.
//!
//! Entries are announced ahead of their bytes, so that many small files do not cost a round trip
//! each, and at most [`MAX_AHEAD`] of them, so that the receiver needs little memory. What is over
//! is known by its number and survives the stream: over the next one only the rest is announced.

use std::collections::BTreeMap;

use netaware_wire::transfer::{Have, MAX_AHEAD, ReceiverMessage};

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Tell of this entry.
    Announce(usize),
    /// Send this file; the receiver has that.
    Send(usize, Option<Have>),
    /// Say that this was all.
    Finish,
    /// Hear what the receiver says.
    Listen,
    /// The receiver has said that all is there.
    Over,
}

/// What an entry waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// That the receiver looks at it.
    Look,
    /// That its bytes go.
    Turn(Option<Have>),
    /// That the receiver has it.
    Verdict,
}

/// A receiver that says what cannot be said then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfTurn;

/// Over one stream.
#[derive(Debug)]
pub(crate) struct Sending {
    /// By entry: nothing more is to be done for it.
    over: Vec<bool>,
    /// The first that was not announced over this stream.
    next: usize,
    under_way: BTreeMap<usize, Waits>,
    finish_said: bool,
    finished: bool,
}

impl Sending {
    pub(crate) fn new(entries: usize) -> Self {
        Self {
            over: vec![false; entries],
            next: 0,
            under_way: BTreeMap::new(),
            finish_said: false,
            finished: false,
        }
    }

    /// The stream is another one: what is not over is announced again.
    pub(crate) fn restart(&mut self) {
        self.next = 0;
        self.under_way.clear();
        (self.finish_said, self.finished) = (false, false);
    }

    pub(crate) fn next(&mut self) -> Next {
        while self.over.get(self.next) == Some(&true) {
            self.next += 1;
        }
        if self.next < self.over.len() && self.under_way.len() < MAX_AHEAD {
            return Next::Announce(self.next);
        }
        // In their order: a folder is sealed after what is in it.
        let unsent = self.under_way.iter().find(|(_, waits)| **waits != Waits::Verdict);
        match unsent {
            Some((entry, Waits::Turn(have))) => Next::Send(*entry, *have),
            None if self.finished => Next::Over,
            None if self.under_way.is_empty() && !self.finish_said => Next::Finish,
            _ => Next::Listen,
        }
    }

    /// An entry has been announced; of a file the receiver will say what it has.
    pub(crate) fn announced(&mut self, entry: usize, is_file: bool) {
        self.next = entry + 1;
        self.under_way.insert(entry, if is_file { Waits::Look } else { Waits::Verdict });
    }

    /// It cannot be announced, and is over.
    pub(crate) fn skip(&mut self, entry: usize) {
        self.over[entry] = true;
        self.under_way.remove(&entry);
    }

    /// Its end or that it is given up has been said.
    pub(crate) fn sent(&mut self, entry: usize) {
        if let Some(waits) = self.under_way.get_mut(&entry) {
            *waits = Waits::Verdict;
        }
    }

    pub(crate) fn said_finish(&mut self) {
        self.finish_said = true;
    }

    /// Whether nothing more is to be done for it.
    pub(crate) fn is_over(&self, entry: usize) -> bool {
        self.over[entry]
    }

    /// Whether the receiver may still take it.
    pub(crate) fn is_open(&self, entry: usize) -> bool {
        self.under_way.contains_key(&entry)
    }

    /// Takes in what the receiver says of entries.
    ///
    /// # Errors
    /// It cannot be said then, or of an entry that is not under way.
    pub(crate) fn hear(&mut self, message: &ReceiverMessage) -> Result<(), OutOfTurn> {
        match message {
            ReceiverMessage::Ready { entry, have } => {
                let entry = usize::try_from(*entry).map_err(|_| OutOfTurn)?;
                match self.under_way.get_mut(&entry) {
                    Some(waits @ Waits::Look) => *waits = Waits::Turn(*have),
                    _ => return Err(OutOfTurn),
                }
            }
            ReceiverMessage::Done { entry, .. } => self.end(*entry, |waits| waits == Waits::Verdict)?,
            ReceiverMessage::Refused { entry, .. } => self.end(*entry, |_| true)?,
            ReceiverMessage::Finished if self.finish_said && self.under_way.is_empty() => {
                self.finished = true;
            }
            ReceiverMessage::Wait => {}
            _ => return Err(OutOfTurn),
        }
        Ok(())
    }

    fn end(&mut self, entry: u64, fits: impl Fn(Waits) -> bool) -> Result<(), OutOfTurn> {
        let entry = usize::try_from(entry).map_err(|_| OutOfTurn)?;
        let waits = self.under_way.get(&entry).copied().ok_or(OutOfTurn)?;
        if !fits(waits) {
            return Err(OutOfTurn);
        }
        self.skip(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use netaware_wire::transfer::{Done, RefusalCode};

    use super::*;

    fn ready(entry: u64) -> ReceiverMessage {
        ReceiverMessage::Ready { entry, have: None }
    }

    fn done(entry: u64) -> ReceiverMessage {
        ReceiverMessage::Done { entry, how: Done::Written }
    }

    #[test]
    fn files_go_in_their_order_and_the_end_is_said_once() {
        let mut sending = Sending::new(2);
        for n in 0..2 {
            assert_eq!(sending.next(), Next::Announce(n));
            sending.announced(n, true);
        }
        sending.hear(&ready(1)).unwrap();
        assert_eq!(sending.next(), Next::Listen);
        sending.hear(&ready(0)).unwrap();
        assert_eq!(sending.next(), Next::Send(0, None));
        sending.sent(0);
        assert_eq!(sending.next(), Next::Send(1, None));
        sending.sent(1);
        sending.hear(&done(1)).unwrap();
        assert_eq!(sending.next(), Next::Listen);
        sending.hear(&done(0)).unwrap();
        assert_eq!(sending.next(), Next::Finish);
        sending.said_finish();
        assert_eq!(sending.next(), Next::Listen);
        sending.hear(&ReceiverMessage::Finished).unwrap();
        assert_eq!(sending.next(), Next::Over);
    }

    #[test]
    fn no_more_is_announced_than_the_receiver_keeps() {
        let mut sending = Sending::new(1000);
        let mut announced = 0;
        while let Next::Announce(n) = sending.next() {
            sending.announced(n, true);
            announced += 1;
        }
        assert_eq!((announced, sending.next()), (MAX_AHEAD, Next::Listen));
    }

    #[test]
    fn over_another_stream_only_the_rest_is_announced() {
        let mut sending = Sending::new(3);
        (0..3).for_each(|n| sending.announced(n, n != 1));
        sending.hear(&done(1)).unwrap();
        sending
            .hear(&ReceiverMessage::Refused { entry: 2, code: RefusalCode::Exists, why: String::new() })
            .unwrap();
        sending.restart();
        assert_eq!(sending.next(), Next::Announce(0));
        sending.announced(0, true);
        assert_eq!(sending.next(), Next::Listen);
    }

    #[test]
    fn a_receiver_that_speaks_out_of_turn_is_found() {
        let mut sending = Sending::new(1);
        assert_eq!(sending.hear(&ready(0)), Err(OutOfTurn));
        sending.announced(0, true);
        assert_eq!(sending.hear(&done(0)), Err(OutOfTurn), "nothing was sent");
        assert_eq!(sending.hear(&ready(7)), Err(OutOfTurn));
        assert_eq!(sending.hear(&ReceiverMessage::Finished), Err(OutOfTurn));
        sending.hear(&ready(0)).unwrap();
        assert_eq!(sending.hear(&ready(0)), Err(OutOfTurn));
    }
}
