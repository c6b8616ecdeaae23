//! The thread that captures: reads a source, shows the packets to its station, and hands on what is
//! closed.
//!
//! What it hands on waits in a bounded channel. When that is full because the disk or the reader is
//! too slow, this thread waits, the ring fills, and the kernel counts what it has to drop: nothing
//! is lost without a number.

use std::sync::mpsc::{Receiver, SyncSender};

use netaware_io::clock;
use netaware_io::stop::StopFlag;
use netaware_units::{Span, Wall};

use super::losses::Losses;
use super::report::Told;
use super::source::{Read, Source};
use super::station::{Handed, Setup, Station, is_dated};
use crate::after;

/// A change of tasks takes effect within this.
const LOOK: Span = Span::from_millis(100);

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
    /// Until told to stop, the end of the file, or a failure. Everything that was seen is handed on
    /// before it returns.
    pub fn run(mut self, source: &mut dyn Source, stop: &StopFlag) -> Ended {
        let (mut out, mut losses) = (Vec::new(), Losses::default());
        let (mut last_at, mut is_empty) = (None::<Wall>, true);
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
                    is_empty = false;
                    if is_dated(seen.at) {
                        if pace == Pace::Replay && last_at.is_none() {
                            station.begin_at(seen.at);
                        }
                        last_at = Some(last_at.map_or(seen.at, |last| last.max(seen.at)));
                    }
                    station.see(&seen, &mut out);
                })
            };
            if self.pace == Pace::Live {
                self.station.tick(clock::wall(), &mut out);
            } else if let Some(at) = last_at {
                self.station.tick(at, &mut out);
            }
            if !self.hand_on(source, &mut losses, &mut out) {
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
            Pace::Replay if last_at.is_none() && !is_empty => {
                // Frames with times that cannot be are counted all the same: in 1970, where those
                // are that say no time.
                self.station.begin_at(Wall(0));
                Some(Wall(1))
            }
            // The stamp of the last packet is within the period. Without a packet there is no time
            // of which to say anything.
            Pace::Replay => last_at.map(|at| after(at, Span(1))),
        };
        if self.pace == Pace::Replay {
            self.station.run_out();
        }
        if let Some(now) = now {
            self.station.finish(now, &mut out);
        }
        self.hand_on(source, &mut losses, &mut out);
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
    fn hand_on(&self, source: &mut dyn Source, losses: &mut Losses, out: &mut Vec<Handed>) -> bool {
        losses.charge(out, source);
        out.drain(..)
            .all(|handed| self.told.send(Told::Portion(Portion { station: self.index, handed })).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use netaware_capture::Frame;
    use netaware_record::passive::CaptureHealth;
    use netaware_units::ClockSource;
    use netaware_wire::packet::{LinkType, Tunnels};
    use netaware_wire::pcap::{Record, Writer};

    use super::*;
    use crate::ground::Replay;
    use crate::probe::Ground;

    const SECOND: i64 = 1_000_000_000;

    /// What one read after the other shows (stamps, s), and what was lost until then.
    struct Script(Vec<(Vec<i64>, u64)>, u64);

    impl Source for Script {
        fn read(&mut self, _: Span, see: &mut dyn FnMut(Frame<'_>)) -> Result<Read, String> {
            if self.0.is_empty() {
                return Ok(Read::End);
            }
            let (stamps, lost) = self.0.remove(0);
            self.1 += lost;
            let mut bytes = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
            bytes.extend([0, 53, 0, 53, 0, 8, 0, 0]);
            for second in stamps {
                let at = Wall(second * SECOND + SECOND / 2);
                let (segments, link, wire_length) = (1, LinkType::Raw, bytes.len() as u32);
                see(Frame {
                    at,
                    stamped_by: ClockSource::Kernel,
                    outgoing: false,
                    bytes: &bytes,
                    wire_length,
                    link,
                    segments,
                    interface: 0,
                });
            }
            Ok(Read::More)
        }

        fn health(&mut self) -> CaptureHealth {
            CaptureHealth { lost_ring: std::mem::take(&mut self.1), ..CaptureHealth::default() }
        }

        fn set_filter(&mut self, _: Option<&str>) -> Result<(), String> {
            Ok(())
        }
    }

    /// What reading a source to its end gives of each period.
    fn periods(source: &mut dyn Source) -> Vec<CaptureHealth> {
        let (orders, received) = mpsc::channel();
        let (told, portions) = mpsc::sync_channel(WAITING);
        let station = Station::new(Span(SECOND), Wall(0), Tunnels::default());
        let runner = Runner { index: 0, station, pace: Pace::Replay, orders: received, told };
        orders
            .send(Order::Tasks { keep: vec![], add: vec![], filters: false, kernel: None, at: Wall(0) })
            .unwrap();
        assert_eq!(runner.run(source, &StopFlag::new()), Ended::End);
        let health = |told| match told {
            Told::Portion(Portion { handed: Handed::Closed(_, health, _), .. }) => health,
            other => panic!("{other:?}"),
        };
        portions.iter().map(health).collect()
    }

    /// Packets lost and whether that is doubtful, period by period.
    fn healths(reads: Vec<(Vec<i64>, u64)>) -> Vec<(u64, bool)> {
        let found = periods(&mut Script(reads, 0));
        found.into_iter().map(|health| (health.lost(), health.doubtful)).collect()
    }

    /// Periods of a file, and its frames that were packets, not IP and malformed.
    fn accounts(file: &[u8]) -> (usize, [u64; 3]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, file).unwrap();
        let mut replay = Replay::open(&path).unwrap();
        let mut sources = Ground::open(&mut replay, "file").unwrap();
        let found = periods(&mut *sources[0]);
        let sum = |of: fn(&CaptureHealth) -> u64| found.iter().map(of).sum::<u64>();
        (
            found.len(),
            [sum(|health| health.seen), sum(|health| health.not_ip), sum(|health| health.malformed)],
        )
    }

    /// Ethernet, IPv4, UDP, no payload.
    fn ethernet() -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        bytes.extend([0, 53, 0, 53, 0, 8, 0, 0]);
        bytes
    }

    /// A pcapng file: a section, an interface whose clock counts nanoseconds, and a packet for each
    /// stamp.
    fn pcapng(stamps: &[u64]) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut file = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
        file.extend(words(&[1, 32, 1, 0, 9 | 1 << 16, 9, 0, 32]));
        for stamp in stamps {
            file.extend(words(&[6, 76, 0, (stamp >> 32) as u32, *stamp as u32, 42, 42]));
            file.extend(ethernet());
            file.extend([0, 0]);
            file.extend(words(&[76]));
        }
        file
    }

    #[test]
    fn a_file_of_136_bytes_with_a_stamp_at_the_end_of_time_is_read_to_its_end() {
        let file = pcapng(&[u64::MAX]);
        assert_eq!((file.len(), accounts(&file)), (136, (1, [0, 0, 1])));
        let second = SECOND.unsigned_abs();
        let stamps = [5 * second, u64::MAX, 6 * second, i64::MAX.unsigned_abs(), 7 * second];
        assert_eq!(accounts(&pcapng(&stamps)), (3, [3, 0, 2]));
    }

    #[test]
    fn a_file_of_three_frames_over_two_centuries_has_no_row_for_each_second_between() {
        let second = SECOND.unsigned_abs();
        let stamps = [0, 86_401 * second, 9_000_000_000 * second];
        assert_eq!(accounts(&pcapng(&stamps)), (3, [3, 0, 0]));
    }

    /// What comes before an IPv4 packet.
    fn head(link: LinkType) -> Vec<u8> {
        match link {
            LinkType::Ethernet => ethernet()[..14].to_vec(),
            LinkType::Raw => vec![],
            LinkType::Cooked => vec![0, 4, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0],
            LinkType::CookedV2 => vec![8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0],
            LinkType::Null => vec![2, 0, 0, 0],
            LinkType::Ppp => vec![0xff, 3, 0, 0x21],
            LinkType::FrameRelay => vec![0x18, 0x41, 3, 0xcc],
            LinkType::CiscoHdlc => vec![0x0f, 0, 8, 0],
            LinkType::IpNet => [&[2, 2, 0, 1][..], &[0; 20]].concat(),
            LinkType::Radiotap => {
                let frame = [&[0, 0, 8, 0, 0, 0, 0, 0, 8, 1][..], &[0; 22]].concat();
                [&frame[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat()
            }
        }
    }

    #[test]
    fn every_frame_of_a_file_is_a_packet_not_ip_or_malformed_whatever_its_link_and_where_it_ends() {
        for link in LinkType::ALL {
            let whole = [head(link), ethernet()[14..].to_vec()].concat();
            let mut writer = Writer::pcap(Vec::new(), link, 256).unwrap();
            let mut frames = 0;
            let mut put = |bytes: &[u8], wire_length: usize| {
                frames += 1;
                let (at, link) = (Wall(SECOND), u32::from(link.number()));
                let wire_length = wire_length as u32;
                writer.write(&Record { at, wire_length, bytes, link, interface: 0, outgoing: None }).unwrap();
            };
            for kept in 0..=whole.len() {
                // Cut by the snap length, short on the wire, and with each byte another.
                put(&whole[..kept], whole.len());
                put(&whole[..kept], kept);
                if kept < whole.len() {
                    let mut other = whole.clone();
                    other[kept] ^= 0xff;
                    put(&other, other.len());
                }
            }
            let (periods, [seen, not_ip, malformed]) = accounts(&writer.finish().unwrap());
            assert_eq!((periods, seen + not_ip + malformed), (1, frames), "{link:?}");
            assert!(seen >= 2 && not_ip > 0 && malformed > 0, "{link:?}: {seen} {not_ip} {malformed}");
        }
    }

    #[test]
    fn a_stall_over_several_periods_leaves_none_of_them_complete() {
        let stalled = healths(vec![(vec![1], 0), (vec![1, 2, 3, 4], 90), (vec![4, 5], 0), (vec![6], 0)]);
        // Seconds 1 to 3 close after the stall; packets of second 4 may have been dropped behind
        // its end.
        assert_eq!(stalled, [(90, true), (0, true), (0, true), (0, true), (0, false), (0, false)]);
    }

    #[test]
    fn without_a_loss_nothing_is_doubtful() {
        let whole = healths(vec![(vec![1, 2, 3], 0), (vec![4], 0)]);
        assert_eq!(whole, [(0, false); 4]);
    }
}
