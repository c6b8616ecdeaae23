//! What system calls cost.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use netaware_record::{CallTiming, Effort, HostCall};

use super::samples::quantile;
use super::times;
use crate::clock;
use crate::probe_socket::{ProbeSocket, Stamping};

/// UDP payloads that calls are timed with, bytes: IPv4 packets of 128, 576, 1500 and 9000 bytes.
pub const PAYLOADS: [u32; 4] = [100, 548, 1472, 8972];

/// Each call by itself, then each that moves a datagram for each of [`PAYLOADS`]. What this host
/// cannot do is left out. Quick takes 20 ms, full 0.5 s.
pub fn calls(effort: Effort) -> Vec<CallTiming> {
    let rounds = times(effort, 60, 600);
    let clock_ns = super::clock_timing().read_ns;
    let mut found = vec![bare(HostCall::Null, rounds * 20, clock_ns, null)];
    if let Ok(bench) = Bench::new() {
        found.push(bare(HostCall::EmptyReceive, rounds * 20, clock_ns, || bench.receive_nothing()));
        for payload in PAYLOADS {
            for call in MOVING {
                let mut costs = Costs::new(call, payload, clock_ns);
                // A call that fails on this host is left out; datagrams that it left behind are not
                // the next one's.
                let done = (0..rounds).try_for_each(|_| bench.round(&mut costs));
                bench.drain();
                if done.is_ok() {
                    found.extend(costs.timing());
                }
            }
        }
    }
    found
}

fn bare(call: HostCall, samples: usize, clock_ns: f64, mut once: impl FnMut()) -> CallTiming {
    let mut costs = Costs::new(call, 0, clock_ns);
    for _ in 0..samples {
        let began_at = clock::now();
        once();
        costs.add((clock::now() - began_at).nanos(), 1);
    }
    costs.timing().unwrap_or(CallTiming {
        call,
        payload: 0,
        batch: 1,
        samples: 0,
        median_ns: 0.0,
        p99_ns: 0.0,
    })
}

#[cfg(target_os = "linux")]
fn null() {
    // SAFETY: takes nothing and cannot fail. By its number, so that no library answers in the
    // kernel's place.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

#[cfg(not(target_os = "linux"))]
fn null() {
    let _ = std::os::unix::process::parent_id();
}

/// Times of one kind of call.
struct Costs {
    call: HostCall,
    payload: u32,
    clock_ns: f64,
    batch: u32,
    each: Vec<f64>,
}

impl Costs {
    fn new(call: HostCall, payload: u32, clock_ns: f64) -> Self {
        Self { call, payload, clock_ns, batch: 1, each: Vec::new() }
    }

    /// A call that moved `count` took so long between two readings, of which one is in it.
    fn add(&mut self, nanos: i64, count: usize) {
        if count > 0 {
            self.batch = self.batch.max(count as u32);
            self.each.push((nanos as f64 - self.clock_ns).max(0.0) / count as f64);
        }
    }

    fn timing(mut self) -> Option<CallTiming> {
        let samples = self.each.len() as u64;
        let median_ns = quantile(&mut self.each, 0.5);
        let p99_ns = quantile(&mut self.each, 0.99);
        let Self { call, payload, batch, .. } = self;
        (samples > 0).then_some(CallTiming { call, payload, batch, samples, median_ns, p99_ns })
    }
}

/// Two sockets on loopback.
struct Bench {
    out: UdpSocket,
    into: UdpSocket,
    /// The same as `into`, and asked for stamps only while these are timed.
    stamped: ProbeSocket,
    stamped_out: UdpSocket,
}

impl Bench {
    fn new() -> io::Result<Self> {
        let (out, into) = pair()?;
        into.set_nonblocking(true)?;
        let (stamped_out, stamped) = pair()?;
        let stamped = ProbeSocket::new(stamped, Stamping::Kernel)?;
        Ok(Self { out, into, stamped, stamped_out })
    }

    fn receive_nothing(&self) {
        // That there is nothing is what is asked for.
        let _ = self.into.recv(&mut [0; 16]);
    }

    fn drain(&self) {
        let mut buf = [0; LONGEST];
        while self.into.recv(&mut buf).is_ok() {}
        while self.stamped.try_receive(&mut buf).is_ok_and(|arrival| arrival.is_some()) {}
    }

    /// A handful of datagrams out and in again, with the call in question timed.
    fn round(&self, costs: &mut Costs) -> io::Result<()> {
        let payload = vec![0x5a_u8; costs.payload as usize];
        let mut buf = [0; LONGEST];
        match costs.call {
            HostCall::Send => {
                for _ in 0..HANDFUL {
                    let began_at = clock::now();
                    self.out.send(&payload)?;
                    costs.add((clock::now() - began_at).nanos(), 1);
                }
                self.drain();
            }
            HostCall::Receive => {
                for _ in 0..HANDFUL {
                    self.out.send(&payload)?;
                }
                for _ in 0..HANDFUL {
                    let began_at = clock::now();
                    self.into.recv(&mut buf)?;
                    costs.add((clock::now() - began_at).nanos(), 1);
                }
            }
            HostCall::ReceiveStamped => {
                for _ in 0..HANDFUL {
                    self.stamped_out.send(&payload)?;
                }
                for _ in 0..HANDFUL {
                    let began_at = clock::now();
                    let came = self.stamped.try_receive(&mut buf)?;
                    let took = clock::now() - began_at;
                    costs.add(took.nanos(), usize::from(came.is_some()));
                }
            }
            #[cfg(target_os = "linux")]
            HostCall::SendMany => {
                costs_of(costs, || many::send(&self.out, &payload, HANDFUL))?;
                self.drain();
            }
            #[cfg(target_os = "linux")]
            HostCall::ReceiveMany => {
                for _ in 0..HANDFUL {
                    self.out.send(&payload)?;
                }
                let mut room = many::Room::new(HANDFUL, costs.payload as usize);
                costs_of(costs, || room.receive(&self.into))?;
            }
            #[cfg(target_os = "linux")]
            HostCall::SendSegmented => {
                let count = (LONGEST_BUFFER / payload.len()).clamp(1, HANDFUL);
                let buffer = payload.repeat(count);
                costs_of(costs, || many::send_segmented(&self.out, &buffer, payload.len()).map(|()| count))?;
                self.drain();
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn costs_of(costs: &mut Costs, call: impl FnOnce() -> io::Result<usize>) -> io::Result<()> {
    let began_at = clock::now();
    let moved = call()?;
    costs.add((clock::now() - began_at).nanos(), moved);
    Ok(())
}

/// Two connected sockets with as much room as can be had.
pub(super) fn pair() -> io::Result<(UdpSocket, UdpSocket)> {
    let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let (one, other) = (bind()?, bind()?);
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    crate::udp_stream::ask_for_room(&other);
    Ok((one, other))
}

/// Many datagrams per call.
#[cfg(target_os = "linux")]
mod many {
    use std::io;
    use std::mem::zeroed;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    fn header(part: &mut libc::iovec) -> libc::mmsghdr {
        // SAFETY: all zeroes is a valid header: no name, no data, no control messages.
        let mut message: libc::mmsghdr = unsafe { zeroed() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message
    }

    pub(super) fn send(socket: &UdpSocket, payload: &[u8], count: usize) -> io::Result<usize> {
        let mut part = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        let mut messages: Vec<libc::mmsghdr> = (0..count).map(|_| header(&mut part)).collect();
        // SAFETY: every header points at `part`, and that at `payload`; both outlive the call,
        // which only reads.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count as libc::c_uint, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Sends one buffer that is cut into datagrams of `length`.
    pub(super) fn send_segmented(socket: &UdpSocket, buffer: &[u8], length: usize) -> io::Result<()> {
        crate::udp_stream::set_segment_length(socket, length);
        let sent = socket.send(buffer);
        crate::udp_stream::set_segment_length(socket, 0);
        sent.map(|_| ())
    }

    /// Buffers for `recvmmsg`. Nothing is moved after `new`: the headers point into it.
    pub(super) struct Room {
        _bytes: Vec<u8>,
        _parts: Vec<libc::iovec>,
        messages: Vec<libc::mmsghdr>,
    }

    impl Room {
        pub(super) fn new(count: usize, length: usize) -> Self {
            let length = length.max(1);
            let mut bytes = vec![0; count * length];
            let mut parts: Vec<libc::iovec> = bytes
                .chunks_exact_mut(length)
                .map(|chunk| libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: chunk.len() })
                .collect();
            let messages = parts.iter_mut().map(header).collect();
            Self { _bytes: bytes, _parts: parts, messages }
        }

        pub(super) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
            // SAFETY: the headers point at parts and these at bytes of `self`, whose heap blocks
            // have not moved.
            let got = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    self.messages.as_mut_ptr(),
                    self.messages.len() as libc::c_uint,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                )
            };
            usize::try_from(got).map_err(|_| io::Error::last_os_error())
        }
    }
}

const MOVING: [HostCall; 6] = [
    HostCall::Send,
    HostCall::Receive,
    HostCall::ReceiveStamped,
    HostCall::SendMany,
    HostCall::ReceiveMany,
    HostCall::SendSegmented,
];
/// Datagrams that the smallest usual receive buffer holds, whatever their size: 208 KiB, of which
/// 9000 bytes take 16 KiB.
const HANDFUL: usize = 10;
const LONGEST: usize = 9216;
/// What one segmented buffer may hold.
#[cfg(target_os = "linux")]
const LONGEST_BUFFER: usize = 65_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_costs_something_and_a_datagram_more_than_nothing() {
        let found = calls(Effort::Quick);
        let of = |call, payload| {
            found.iter().find(|timing| timing.call == call && timing.payload == payload).copied()
        };
        let null = of(HostCall::Null, 0).unwrap();
        assert!(null.median_ns > 0.0 && null.p99_ns >= null.median_ns, "{null:?}");
        for payload in PAYLOADS {
            let send = of(HostCall::Send, payload).unwrap();
            // Another call with work besides: less than an empty one would be a mistake of the
            // timing.
            assert!(send.median_ns > null.median_ns, "{send:?} {null:?}");
            assert!(of(HostCall::Receive, payload).unwrap().median_ns > 0.0);
            assert!(of(HostCall::ReceiveStamped, payload).is_some());
        }
        #[cfg(target_os = "linux")]
        assert_eq!(of(HostCall::SendMany, 1472).map(|timing| timing.batch), Some(10));
    }

    #[test]
    fn a_reading_of_the_clock_is_taken_out_and_the_rest_shared() {
        let mut costs = Costs::new(HostCall::SendMany, 100, 30.0);
        costs.add(1030, 10);
        costs.add(2030, 10);
        costs.add(5, 0);
        let timing = costs.timing().unwrap();
        assert_eq!((timing.median_ns, timing.batch, timing.samples), (150.0, 10, 2));
        assert!(Costs::new(HostCall::Send, 100, 30.0).timing().is_none());
    }
}
