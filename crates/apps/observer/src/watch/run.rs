//! The thread that captures: reads a source, shows the packets to its station, and hands on what is closed.
//!
//! What it hands on waits in a bounded channel. When that is full because the disk or the reader is too slow, this thread waits,
//! the ring fills, and the kernel counts what it has to drop: nothing is lost without a number.

use std::sync::mpsc::{Receiver, SyncSender};

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_record::passive::CaptureHealth;
use netaware_units::{Span, Wall};

use super::report::Told;
use super::source::{Read, Source};
use super::station::{Handed, Setup, Station};
use crate::after;

/// A change of tasks takes effect within this.
const LOOK: Span = Span::from_millis(20);

/// Portions (of 8192 sightings or one period each) that may wait: 50 MiB.
pub const WAITING: usize = 256;

/// What the probe tells a station's thread.
#[derive(Debug)]
pub enum Order {
    /// Tasks from now on; see [`Station::set`].
    Tasks {
        /// Names of those that go on.
        keep: Vec<String>,
        /// Those that begin.
        add: Vec<Setup>,
        /// Whether each has to look at its own filter.
        filters: bool,
        /// For the kernel, which lets everything through that any of them wants.
        kernel: Option<String>,
        /// Since when: the same for all rings of an interface.
        at: Wall,
    },
}

/// From a station's thread to who makes reports.
#[derive(Debug)]
pub struct Portion {
    /// Which station.
    pub station: usize,
    /// What it handed on.
    pub handed: Handed,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Told to.
    Stopped,
    /// The file has no more.
    End,
    /// The source failed; why.
    Failed(String),
}

/// Which clock periods follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// An interface: the wall clock ends periods without packets.
    Live,
    /// A file: only its stamps count, so that the same file gives the same rows.
    Replay,
}

/// A station and what is around it.
#[derive(Debug)]
pub struct Runner {
    /// Which one it is.
    pub index: usize,
    /// The station.
    pub station: Station,
    /// Which clock.
    pub pace: Pace,
    /// What the probe wants.
    pub orders: Receiver<Order>,
    /// Where portions go.
    pub told: SyncSender<Told>,
}

impl Runner {
    /// Until told to stop, the end of the file, or a failure. Everything that was seen is handed on before it returns.
    pub fn run(mut self, source: &mut dyn Source, stop: &StopFlag) -> Ended {
        let mut out = Vec::new();
        let mut last_at: Option<Wall> = None;
        if let Ok(first) = self.orders.recv() {
            // A file must not be read before somebody wants its packets.
            if let Err(why) = self.obey_one(first, source, &mut out) {
                return Ended::Failed(why);
            }
        }
        let ended = loop {
            if let Err(why) = self.obey(source, &mut out) {
                break Ended::Failed(why);
            }
            let read = {
                let (station, pace) = (&mut self.station, self.pace);
                source.read(LOOK, &mut |seen| {
                    if pace == Pace::Replay && last_at.is_none() {
                        station.begin_at(seen.at);
                    }
                    last_at = Some(last_at.map_or(seen.at, |last| last.max(seen.at)));
                    station.see(&seen, &mut out);
                })
            };
            if self.pace == Pace::Live {
                self.station.tick(clock::wall(), &mut out);
            } else if let Some(at) = last_at {
                self.station.tick(at, &mut out);
            }
            if !self.hand_on(source, &mut out) {
                break Ended::Stopped;
            }
            if let Some(link) = source.changed_link() {
                self.station.link(link);
            }
            match read {
                Err(why) => break Ended::Failed(why),
                Ok(Read::End) => break Ended::End,
                Ok(Read::More) if stop.is_raised() => break Ended::Stopped,
                Ok(Read::More) => {}
            }
        };
        let now = match self.pace {
            Pace::Live => Some(clock::wall()),
            // The stamp of the last packet is within the period. Without a packet there is no time of which to say anything.
            Pace::Replay => last_at.map(|at| after(at, Span(1))),
        };
        if let Some(now) = now {
            self.station.finish(now, &mut out);
        }
        self.hand_on(source, &mut out);
        ended
    }

    fn obey(&mut self, source: &mut dyn Source, out: &mut Vec<Handed>) -> Result<(), String> {
        while let Ok(order) = self.orders.try_recv() {
            self.obey_one(order, source, out)?;
        }
        Ok(())
    }

    fn obey_one(
        &mut self,
        order: Order,
        source: &mut dyn Source,
        out: &mut Vec<Handed>,
    ) -> Result<(), String> {
        let Order::Tasks { keep, add, filters, kernel, at } = order;
        source.set_filter(kernel.as_deref())?;
        self.station.set(&keep, add, filters, at, out);
        Ok(())
    }

    /// Adds to each closed period what the source lost until now. `false`: nobody listens any more.
    fn hand_on(&self, source: &mut dyn Source, out: &mut Vec<Handed>) -> bool {
        let mut lost: Option<CaptureHealth> = None;
        out.drain(..).all(|mut handed| {
            if let Handed::Closed(period, health, _) = &mut handed
                && period.until > period.from
            {
                // All of it goes to the first: it was lost until then at the latest.
                let source = if lost.is_none() { source.health() } else { CaptureHealth::default() };
                add(health, &source);
                lost = Some(source);
            }
            self.told.send(Told::Portion(Portion { station: self.index, handed })).is_ok()
        })
    }
}

/// Counts of one cause each add up; packets are the station's.
fn add(health: &mut CaptureHealth, source: &CaptureHealth) {
    health.lost_ring += source.lost_ring;
    health.lost_kernel += source.lost_kernel;
    health.lost_nic = match (health.lost_nic, source.lost_nic) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
    };
    health.merged += source.merged;
    health.link_was_down |= source.link_was_down;
    health.mtu_changed |= source.mtu_changed;
    health.backlog = health.backlog.max(source.backlog);
    health.lost_by_writer += source.lost_by_writer;
    health.stamped_by_nic += source.stamped_by_nic;
}
