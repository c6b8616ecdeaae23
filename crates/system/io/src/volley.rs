//! Volleys of trains over a connected UDP socket: sent at planned distances, or taken in with their
//! kernel stamps.
//!
//! What is measured: when each packet left, by the clock read just before it was handed to the
//! system, and when each came, by the kernel's stamp. A packet never leaves early. If the host had
//! the thread wait, the packets behind keep their distance to it: they are later than planned, and
//! do not crowd together. What leaves back to back leaves with a call each, which takes some 2 us;
//! nothing shorter is ever claimed, since estimators look at the stamps and not at the plan.

mod calibrate;

use std::io;
use std::net::UdpSocket;

use netaware_units::{Mono, Span};
use netaware_wire::control::{MAX_VOLLEY_PACKETS, VolleySpec};
use netaware_wire::datagram::{HEADER_LEN, Header, Kind, MAX_PAYLOAD};
use socket2::SockRef;

use crate::clock;
use crate::pacer::{self, PreciseSleep};
use crate::probe_socket::{ProbeSocket, Stamping, is_refusal};
use crate::stop::StopFlag;

pub(crate) use calibrate::calibrate_for;
pub use calibrate::{Calibration, stamp_timing};

/// One end of a test with volleys.
#[derive(Debug)]
pub struct VolleySocket {
    socket: ProbeSocket,
    flow: u32,
    bytes: Vec<u8>,
}

/// Packets of one volley that came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caught {
    /// Sequence number and instant, in the order of arrival, each number once.
    pub arrivals: Vec<(u64, Mono)>,
    /// Stamps that are the application's because the kernel had none: they lean late by a wake-up.
    pub unstamped: u64,
    /// Packets of earlier volleys that came only now.
    pub late: u64,
}

impl VolleySocket {
    /// Takes a connected socket of a flow. From now on what comes has its kernel stamp.
    ///
    /// # Errors
    /// The socket is unusable.
    pub fn new(socket: UdpSocket, flow: u32) -> io::Result<Self> {
        crate::udp_stream::ask_for_room(&socket);
        let _ = SockRef::from(&socket).set_send_buffer_size(SEND_BUFFER);
        let socket = ProbeSocket::new(socket, Stamping::Kernel)?;
        Ok(Self { socket, flow, bytes: vec![0; MAX_PAYLOAD] })
    }

    /// Sends a volley from now on. Gives sequence number and instant of each packet that left.
    pub fn send(&mut self, volley: &VolleySpec, stop: &StopFlag) -> Vec<(u64, Mono)> {
        let _precise: PreciseSleep = pacer::precise_sleep();
        let mut sent =
            Vec::with_capacity(usize::try_from(volley.packets().min(MAX_VOLLEY_PACKETS)).unwrap_or(0));
        let mut seq = volley.first;
        let mut due = clock::now() + LEAD;
        for train in &volley.trains {
            due += train.rest.or_zero();
            let length = (train.length as usize).clamp(HEADER_LEN, MAX_PAYLOAD);
            let mut carried_ps = 0;
            for n in 0..train.packets {
                if stop.is_raised() {
                    return sent;
                }
                let now = pacer::wait_until(due);
                if self.send_one(seq, length, now).is_ok() {
                    sent.push((seq, now));
                }
                seq += 1;
                // A train's picoseconds are carried, so that its rate is exact; what was late
                // shifts the rest.
                carried_ps += train.gap_ps(n);
                let step = Span(i64::try_from(carried_ps / 1000).unwrap_or(i64::MAX));
                carried_ps %= 1000;
                let is_last = n + 1 == train.packets;
                due = if is_last { due.max(now) } else { (due + step).max(now + step) };
            }
        }
        sent
    }

    fn send_one(&mut self, seq: u64, length: usize, now: Mono) -> io::Result<()> {
        let datagram = &mut self.bytes[..length];
        Header { kind: Kind::Data, flow: self.flow, seq, sent_at: now.0 }.emit(datagram);
        let give_up = now + LONGEST_WAIT;
        let mut answers = 0;
        loop {
            match self.socket.send(datagram) {
                // An answer about an earlier packet; this one has not been tried yet. One that
                // comes again is about this one: without a route no packet leaves, and the train
                // must not wait for each.
                Err(error) if is_refusal(&error) && answers < MOST_ANSWERS => answers += 1,
                // The device is slower than the program: it leaves when there is room, and the
                // stamp is that of the first try.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && clock::now() < give_up => {}
                other => return other,
            }
        }
    }

    /// Takes in the packets of a volley until all are there, none has come for its patience after
    /// its planned end, or somebody stops it. Packets of other volleys are late ones, counted and
    /// dropped.
    ///
    /// # Errors
    /// The socket failed.
    pub fn catch(&mut self, volley: &VolleySpec, stop: &StopFlag) -> io::Result<Caught> {
        let mut caught = Caught::default();
        let wanted = volley.packets().min(MAX_VOLLEY_PACKETS);
        let mut here = vec![false; usize::try_from(wanted).unwrap_or(0)];
        let mut give_up = clock::now() + LEAD + volley.planned() + volley.patience.or_zero();
        while (caught.arrivals.len() as u64) < wanted && !stop.is_raised() {
            let now = clock::now();
            if now >= give_up {
                break;
            }
            let until = give_up.min(now + LOOK_UP);
            let arrival = match self.socket.receive(&mut self.bytes, Some(until)) {
                Ok(Some(arrival)) => arrival,
                Ok(None) => continue,
                Err(error) if is_refusal(&error) => continue,
                Err(error) => return Err(error),
            };
            let Ok(header) = Header::parse(&self.bytes[..arrival.len.min(self.bytes.len())]) else {
                continue;
            };
            if header.kind != Kind::Data || header.flow != self.flow {
                continue;
            }
            caught.late += u64::from(header.seq < volley.first);
            let place = header.seq.checked_sub(volley.first).and_then(|place| usize::try_from(place).ok());
            let Some(seen) = place.and_then(|place| here.get_mut(place)) else { continue };
            if !std::mem::replace(seen, true) {
                caught.unstamped += u64::from(arrival.rx.by != netaware_units::ClockSource::Kernel);
                caught.arrivals.push((header.seq, arrival.rx.at));
                give_up = give_up.max(arrival.seen_at + volley.patience.or_zero());
            }
        }
        Ok(caught)
    }
}

/// For what leaves back to back through a slow device.
const SEND_BUFFER: usize = 4 << 20;
/// Answers about earlier packets, of the socket and of its error queue, that may come before a
/// packet is tried.
const MOST_ANSWERS: u32 = 2;
/// For room in the send buffer.
const LONGEST_WAIT: Span = Span::from_millis(20);
/// Before the first packet, so that it is on time.
const LEAD: Span = Span::from_micros(200);
/// A blocked call returns after this and looks at the stop flag.
const LOOK_UP: Span = Span::from_millis(20);

#[cfg(test)]
mod tests {
    use netaware_wire::control::TrainSpec;

    use super::*;

    fn pair() -> (VolleySocket, VolleySocket) {
        let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (one, other) = (bind(), bind());
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        (VolleySocket::new(one, 7).unwrap(), VolleySocket::new(other, 7).unwrap())
    }

    fn volley(first: u64, trains: Vec<TrainSpec>) -> VolleySpec {
        VolleySpec { number: 0, first, trains, patience: Span::from_millis(50) }
    }

    #[test]
    fn every_packet_leaves_no_earlier_than_planned_and_is_caught_once() {
        let (mut out, mut into) = pair();
        let rest = Span::from_micros(300);
        let trains = vec![
            TrainSpec { packets: 20, length: 200, gaps_ps: vec![50_000_000], rest },
            TrainSpec { packets: 3, length: 1400, gaps_ps: vec![100_000_000, 200_000_000], rest },
            TrainSpec { packets: 5, length: 24, gaps_ps: Vec::new(), rest },
        ];
        let volley = volley(100, trains);
        let sent = out.send(&volley, &StopFlag::new());
        assert_eq!(sent.iter().map(|packet| packet.0).collect::<Vec<_>>(), (100..128).collect::<Vec<_>>());
        let gap = |a: usize, b: usize| sent[b].1 - sent[a].1;
        assert!((1..20).all(|n| gap(n - 1, n) >= Span::from_micros(50)), "{sent:?}");
        assert!(
            gap(19, 20) >= rest
                && gap(20, 21) >= Span::from_micros(100)
                && gap(21, 22) >= Span::from_micros(200)
        );
        let caught = into.catch(&volley, &StopFlag::new()).unwrap();
        assert_eq!(caught.arrivals.iter().map(|it| it.0).collect::<Vec<_>>(), (100..128).collect::<Vec<_>>());
        assert!(caught.arrivals.iter().zip(&sent).all(|(came, left)| came.1 >= left.1), "{caught:?}");
    }

    #[test]
    fn what_never_comes_costs_the_patience_and_no_more() {
        let (mut out, mut into) = pair();
        let train = |packets| TrainSpec { packets, length: 64, gaps_ps: Vec::new(), rest: Span::ZERO };
        out.send(&volley(0, vec![train(3)]), &StopFlag::new());
        let began_at = clock::now();
        let caught = into.catch(&volley(0, vec![train(5)]), &StopFlag::new()).unwrap();
        assert_eq!(caught.arrivals.len(), 3);
        assert!(clock::now() - began_at >= Span::from_millis(50));
    }

    #[test]
    fn late_packets_of_an_earlier_volley_are_not_taken_for_this_one() {
        let (mut out, mut into) = pair();
        let train = || TrainSpec { packets: 4, length: 64, gaps_ps: Vec::new(), rest: Span::ZERO };
        out.send(&volley(0, vec![train()]), &StopFlag::new());
        out.send(&volley(4, vec![train()]), &StopFlag::new());
        let caught = into.catch(&volley(4, vec![train()]), &StopFlag::new()).unwrap();
        assert_eq!(caught.arrivals.iter().map(|it| it.0).collect::<Vec<_>>(), [4, 5, 6, 7]);
    }
}
