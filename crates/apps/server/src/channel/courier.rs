//! The life of one flow in a data channel: opening, then echoes or a stream, in a thread of its
//! own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};

use netaware_host::DropSnapshot;
use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_io::udp_stream::Follower;
use netaware_record::{Direction, HostDrops, IpVersion, Outcome, UdpReceiverEnd};
use netaware_units::{ByteCount, ClockSource, Mono, Span};
use netaware_wire::control::{EndReport, UdpPlan};
use netaware_wire::datagram::{EchoStamps, as_remote};
use netaware_wire::echo;

use super::association::{Association, Gone, LOOK_UP, Message};
use super::ledger::Ledger;
use super::{Belonging, Counts, Use, sender};
use crate::event::Event;
use crate::runner::{CpuMeter, Reporter};

pub(super) struct Courier {
    pub(super) association: Association,
    pub(super) belonging: Belonging,
    pub(super) purpose: Use,
    pub(super) told: Receiver<Reporter>,
    pub(super) stop: StopFlag,
    pub(super) counts: Arc<Counts>,
}

impl Courier {
    /// To the end of the flow, or until the flag is raised.
    pub(super) fn serve(mut self) {
        if let Err(gone) = self.live() {
            // A stream that runs has told so by its report; the session knows which tests still
            // wait for their channel.
            let event = Event::ChannelLost { test: self.belonging.test, why: gone.to_string() };
            let _ = self.belonging.events.send(event);
        }
        let (refused, foreign) = self.association.refused();
        tracing::debug!(test = self.belonging.test, refused, foreign, "a data channel has ended");
    }

    fn live(&mut self) -> Result<(), Gone> {
        while !self.association.is_open() {
            if self.stop.is_raised() {
                return Ok(());
            }
            self.association.turn(clock::now() + LOOK_UP)?;
        }
        let _ = self.belonging.events.send(Event::ChannelOpen { test: self.belonging.test });
        match self.purpose.clone() {
            Use::Echo { longest, response, .. } => self.answer(longest, response),
            Use::Stream(plan) => match self.told_to_run()? {
                Some(reporter) => {
                    self.stream(reporter, &plan);
                    Ok(())
                }
                None => Ok(()),
            },
        }
    }

    fn told_to_run(&mut self) -> Result<Option<Reporter>, Gone> {
        loop {
            match self.told.try_recv() {
                Ok(reporter) => return Ok(Some(reporter)),
                Err(TryRecvError::Disconnected) => return Ok(None),
                Err(TryRecvError::Empty) if self.stop.is_raised() => return Ok(None),
                Err(TryRecvError::Empty) => self.association.turn(clock::now() + TELL_UP)?,
            }
        }
    }

    fn answer(&mut self, longest: usize, response: Option<usize>) -> Result<(), Gone> {
        let mut buf = vec![0; longest.max(response.unwrap_or(0))];
        while !self.stop.is_raised() {
            self.association.turn(clock::now() + LOOK_UP)?;
            while let Some(message) = self.association.next_message() {
                self.answer_one(&message, &mut buf, response)?;
            }
            let held_back = self.belonging.meter.as_ref().map_or(0, |meter| meter.held_back());
            self.counts.drops.store(self.association.drops() + held_back, Ordering::Release);
        }
        Ok(())
    }

    /// A request that is longer than agreed, or that finds SCTP full, gets no answer: as on the
    /// network.
    fn answer_one(&mut self, message: &Message, buf: &mut [u8], response: Option<usize>) -> Result<(), Gone> {
        let Message { bytes, arrival } = message;
        let response = response.unwrap_or(bytes.len());
        let fits = bytes.len() <= buf.len() && self.association.buffered() < MOST_UNANSWERED;
        let Some(request) = buf.get_mut(..bytes.len()).filter(|_| fits) else { return Ok(()) };
        if let Some(meter) = &self.belonging.meter
            && !meter.passes(clock::now(), bytes.len() + response)
        {
            return Ok(());
        }
        request.copy_from_slice(bytes);
        let stamps = EchoStamps {
            received_at: as_remote(arrival.rx.at),
            answered_at: as_remote(clock::now()),
            ttl: arrival.ttl.unwrap_or(0),
            kernel_stamp: arrival.rx.by != ClockSource::Application,
        };
        if echo::answer(buf, bytes.len(), response, self.belonging.test, &stamps).is_ok()
            && self.association.write(&buf[..response])?
        {
            self.counts.answered.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn stream(&mut self, reporter: Reporter, plan: &UdpPlan) {
        let cpu = CpuMeter::start();
        let number = self.belonging.test;
        let report = if plan.direction == Direction::Reverse {
            self.association.ledger = Ledger::new(ByteCount(plan.length.into()));
            let mut end = sender::send(&mut self.association, number, plan, &self.stop);
            end.cpu = Some(cpu.stop(end.cpu));
            EndReport::UdpSender(end)
        } else {
            let before = DropSnapshot::take(&self.belonging.interfaces);
            let mut end = self.receive(&reporter, number, plan);
            let version = IpVersion::of(self.belonging.local.ip().to_canonical());
            let after = DropSnapshot::take(&self.belonging.interfaces);
            end.drops = after.since(&before, version, end.drops.socket);
            end.cpu = Some(cpu.stop(end.cpu));
            EndReport::UdpReceiver(end)
        };
        reporter.end(report);
    }

    fn receive(&mut self, reporter: &Reporter, number: u32, plan: &UdpPlan) -> UdpReceiverEnd {
        let drops_before = self.association.drops();
        let mut follower = Follower::new(number, plan, clock::now());
        let outcome = loop {
            match self.follow(&mut follower) {
                Ok(now) => {
                    if let Some(tick) = follower.tick(now) {
                        reporter.receiver_tick(tick);
                    }
                    if follower.verdict(now).is_some() || self.stop.is_raised() {
                        self.look_once_more(&mut follower);
                        // What came may be a reason to wait for more.
                        if let Some(outcome) = follower.verdict(clock::now()) {
                            break outcome;
                        }
                        if self.stop.is_raised() {
                            break Outcome::Interrupted;
                        }
                    }
                }
                Err(_) => break Outcome::Interrupted,
            }
        };
        if let Some(tick) = follower.last_tick(clock::now()) {
            reporter.receiver_tick(tick);
        }
        let socket = self.association.drops() - drops_before;
        UdpReceiverEnd {
            outcome,
            drops: HostDrops { socket: Some(socket), ..HostDrops::default() },
            ..follower.close(clock::now())
        }
    }

    fn follow(&mut self, follower: &mut Follower) -> Result<Mono, Gone> {
        let turned = self.association.turn(clock::now() + LOOK_UP);
        // What came before it broke has come.
        self.hand_over(follower);
        turned.map(|()| clock::now())
    }

    /// Takes what has come and was not read yet: who did not run for a while finds the time over
    /// and the datagrams in its socket.
    fn look_once_more(&mut self, follower: &mut Follower) {
        let until = clock::now() + LONGEST_DRAIN;
        while self.association.look().is_ok() && self.hand_over(follower) > 0 && clock::now() < until {}
    }

    /// Shows the messages that have come to the follower; gives how many these were.
    fn hand_over(&mut self, follower: &mut Follower) -> u64 {
        let mut messages = 0;
        while let Some(Message { bytes, arrival }) = self.association.next_message() {
            follower.take(&bytes, arrival.rx);
            messages += 1;
        }
        messages
    }
}

/// A sender that does not stop fills the socket again and again.
const LONGEST_DRAIN: Span = Span::from_millis(500);

/// While a stream waits for its start.
const TELL_UP: Span = Span::from_millis(2);
/// Bytes of answers that wait for the network; who asks faster than it is acknowledged asks in
/// vain.
const MOST_UNANSWERED: usize = 64 << 10;
