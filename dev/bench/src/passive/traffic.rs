//! Datagrams over a veth pair, as a traffic generator of a laboratory sends them.
#![expect(unsafe_code, reason = "segmentation has no safe wrapper")]

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use anyhow::{Context as _, Result};
use netaware_io::{clock, pacer};
use netaware_netns::{NetnsError, Pair};
use netaware_units::{Mono, Span};

use super::generator::{self, Stream};
use crate::shell::output;

/// Where the datagrams go; readers look at nothing else.
pub(crate) const PORT: u16 = 9000;
/// What readers let through.
pub(crate) const FILTER: &str = "udp port 9000";
/// Behind each frame on a wire; no capture sees it.
const CHECKSUM: usize = 4;
/// Of a frame: Ethernet's header and checksum, IPv6, UDP.
const AROUND: u32 = 14 + 4 + 40 + 8;
/// Sequence number and the clock at the sender, in each payload.
const STAMPED: usize = 16;
/// Datagrams cut from one system call.
const TRAIN: usize = 40;

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traffic {
    /// Bytes of a frame, checksum included, as the figures of the field count; 84 at least.
    pub(crate) frame: u32,
    pub(crate) pace: Pace,
    pub(crate) seconds: f64,
}

/// How fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// Packets per second, at equal distances.
    Rate(f64),
    /// The same from a core that stays awake, and that sends others to a port that no reader looks
    /// at in between: how long a packet takes from here to the device does not depend on how long
    /// ago the last one did.
    Warm(f64),
    /// Packets per second, those of two milliseconds one after the other: takes little of the host,
    /// for hours.
    Batches(f64),
    /// One system call after the other.
    Fastest,
    /// The kernel's own generator; packets per second, 0: as many as it gives.
    Generated(f64),
    /// The kernel cuts datagrams out of larger writes.
    Segmented,
}

/// What became of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) packets: u64,
    pub(crate) seconds: f64,
}

/// Datagrams that the kernel cuts leave the sender one by one: receiving hosts see no merged frames
/// from a network either.
pub(crate) fn cut_before_the_link(pair: &Pair) -> Result<(), NetnsError> {
    let left = pair.left();
    left.ip(&["link", "set", left.device(), "gso_max_segs", "1"]).map(drop)
}

/// A link that carries less, until it is dropped.
pub(crate) struct Shaped<'a>(&'a Pair);

impl<'a> Shaped<'a> {
    pub(crate) fn new(pair: &'a Pair, rate: &str) -> Result<Self> {
        let left = pair.left();
        let tc = [
            "qdisc",
            "add",
            "dev",
            left.device(),
            "root",
            "tbf",
            "rate",
            rate,
            "burst",
            "1514",
            "limit",
            "15140",
        ];
        output(left.command("tc").args(tc))?;
        Ok(Self(pair))
    }
}

impl Drop for Shaped<'_> {
    fn drop(&mut self) {
        let left = self.0.left();
        // Goes with its namespace anyway.
        let _ = output(left.command("tc").args(["qdisc", "del", "dev", left.device(), "root"]));
    }
}

/// Packets that have come at the right side, as its interface counts them.
pub(crate) fn received(pair: &Pair) -> Result<u64> {
    let right = pair.right();
    let file = format!("/sys/class/net/{}/statistics/rx_packets", right.device());
    // `/sys` shows the interfaces of the namespace that mounted it, and `ip netns exec` mounts it
    // anew.
    Ok(output(right.command("cat").arg(file))?.trim().parse()?)
}

/// Sends from the left side to the right, where a socket takes it and nobody reads.
pub(crate) fn send(pair: &Pair, traffic: Traffic) -> Result<Sent> {
    if let Pace::Generated(rate) = traffic.pace {
        let gap_ns = if rate > 0.0 { (1e9 / rate) as u32 } else { 0 };
        let length = traffic.frame as usize - CHECKSUM;
        return generator::send(pair, Stream { length, gap_ns, seconds: traffic.seconds });
    }
    let sink = pair.right().within(|| UdpSocket::bind((pair.right().v6(), PORT)));
    let sink = sink.context("no socket to send to")?;
    // Whatever comes there is no reason to answer that nobody is there.
    let discard = pair.right().within(|| UdpSocket::bind((pair.right().v6(), DISCARD)));
    let _discard = discard.context("no socket for what nobody reads")?;
    let to = sink.local_addr()?;
    let sent = pair.left().within(|| {
        let socket = UdpSocket::bind((pair.left().v6(), 0))?;
        socket.connect(to)?;
        // The first one waits until the neighbour's address is known; to a port that no reader
        // looks at.
        socket.send_to(&[0], (to.ip(), DISCARD))?;
        clock::sleep(Span::from_millis(100));
        stream(&socket, traffic)
    });
    sent.context("sending failed")
}

const DISCARD: u16 = 9;

/// Sends on a connected socket.
pub(crate) fn stream(socket: &UdpSocket, traffic: Traffic) -> io::Result<Sent> {
    let length = traffic.frame.saturating_sub(AROUND).max(STAMPED as u32) as usize;
    let at_once = if traffic.pace == Pace::Segmented { TRAIN } else { 1 };
    if at_once > 1 {
        set_segment(socket, length)?;
    }
    let mut payload = vec![0; length * at_once];
    let _precise = pacer::precise_sleep();
    let start = clock::now() + Span::from_millis(1);
    let mut deadlines = match traffic.pace {
        Pace::Rate(rate) | Pace::Warm(rate) | Pace::Batches(rate) => {
            Some(pacer::Pacer::new(start, (1e12 / rate) as u64))
        }
        Pace::Fastest | Pace::Segmented | Pace::Generated(_) => None,
    };
    let discard = (socket.peer_addr()?.ip(), DISCARD).into();
    let end = start + Span::from_secs_f64(traffic.seconds);
    let mut packets = 0;
    loop {
        let now = match &mut deadlines {
            Some(deadlines) => {
                let due = deadlines.due();
                deadlines.advance();
                match traffic.pace {
                    Pace::Batches(_) => catch_up(due),
                    Pace::Warm(_) => stay_warm(socket, discard, &payload, due)?,
                    _ => pacer::wait_until(due),
                }
            }
            None => clock::now(),
        };
        if now >= end {
            return Ok(Sent { packets, seconds: (now - start).secs_f64() });
        }
        for datagram in payload.chunks_exact_mut(length) {
            datagram[..8].copy_from_slice(&packets.to_be_bytes());
            datagram[8..STAMPED].copy_from_slice(&clock::wall().0.to_be_bytes());
            packets += 1;
        }
        match socket.send(&payload) {
            Ok(_) => {}
            // Nobody took it, so nobody has to have seen it.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => packets -= at_once as u64,
            Err(error) => return Err(error),
        }
    }
}

/// Returns the time at `due`.
fn stay_warm(socket: &UdpSocket, discard: SocketAddr, payload: &[u8], due: Mono) -> io::Result<Mono> {
    let mut next = clock::now() + BETWEEN;
    loop {
        let now = clock::now();
        if now >= due {
            return Ok(now);
        }
        if now >= next && due - now > BETWEEN {
            socket.send_to(payload, discard)?;
            next = now + BETWEEN;
        }
        std::hint::spin_loop();
    }
}

/// Of packets that keep the way warm; they take some 2 us.
const BETWEEN: Span = Span::from_micros(15);

/// Sleeps only when all that was due has left; returns the time then.
fn catch_up(due: Mono) -> Mono {
    let now = clock::now();
    if due <= now {
        return now;
    }
    clock::sleep(BATCH);
    clock::now()
}

/// Of packets that leave one after the other.
const BATCH: Span = Span::from_millis(2);

fn set_segment(socket: &UdpSocket, length: usize) -> io::Result<()> {
    let length = libc::c_int::try_from(length).map_err(io::Error::other)?;
    let size = size_of_val(&length) as libc::socklen_t;
    // SAFETY: the option takes an int, which outlives the call; `size` is its size.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const length).cast(),
            size,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
