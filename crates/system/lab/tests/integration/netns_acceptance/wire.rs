//! Probes over a lab, with the kernels' stamps of when they left one host and came to the other.
//!
//! A lab's path begins where a packet leaves its host's network stack and ends where the other
//! host's takes it over. What programs see on top, system calls and the stacks themselves, belongs
//! to the hosts, with or without a lab.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use netaware_io::pacer::Pacer;
use netaware_io::probe_socket::{ProbeSocket, Stamping};
use netaware_io::{clock, thread};
use netaware_lab::{Lab, Side};
use netaware_record::IpVersion;
use netaware_units::{ClockSource, Mono, Span, Stamp};

pub(crate) const PAYLOAD: usize = 172;

/// IP bytes of a probe.
pub(crate) fn packet_length(version: IpVersion) -> u32 {
    PAYLOAD as u32 + 8 + version.header_len()
}

/// One probe that passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    /// When it left the sender's stack.
    pub(crate) sent: Mono,
    /// From there to the receiver's stack.
    pub(crate) delay: Span,
    /// From before `send` to after `recv`, by a thread that never sleeps.
    pub(crate) between_programs: Span,
}

/// Sends probes, evenly spaced, and waits for all of them.
///
/// # Panics
/// If one in a hundred is missing, or has no stamp of the kernel.
pub(crate) fn passages(
    lab: &Lab,
    version: IpVersion,
    from: Side,
    count: usize,
    spacing: Span,
) -> Vec<Passage> {
    let bound = |side| lab.within(side, || UdpSocket::bind((lab.address(side, version), 7))).unwrap();
    let (near, far) = (bound(from), bound(from.other()));
    make_room(&near);
    make_room(&far);
    near.connect((lab.address(from.other(), version), 7)).unwrap();
    let [near, far] = [near, far].map(|socket| ProbeSocket::new(socket, Stamping::Kernel).unwrap());
    let exchanged = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            // The emulator has the last core.
            let _ = thread::pin(0);
            Exchange::new(count).run(&near, &far, spacing)
        });
        work.join().unwrap().unwrap()
    });
    let found: Vec<Passage> = exchanged.passages().collect();
    assert!(found.len() * 100 >= count * 99, "{} of {count} probes came with both stamps", found.len());
    found
}

/// For all that an emulator lets go at once after its core was taken from it, past the system's
/// limit.
#[expect(unsafe_code, reason = "no crate offers the option that passes the limit")]
pub(crate) fn make_room(receiver: &UdpSocket) {
    let bytes: libc::c_int = 16 << 20;
    // SAFETY: the option takes an int, which lives until the call returns.
    let status = unsafe {
        libc::setsockopt(
            receiver.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(status, 0, "{}", io::Error::last_os_error());
}

struct Exchange {
    asked: Vec<Mono>,
    sent: Vec<Option<Stamp>>,
    came: Vec<Option<(Stamp, Mono)>>,
    missing: usize,
}

impl Exchange {
    fn new(count: usize) -> Self {
        Self { asked: Vec::new(), sent: vec![None; count], came: vec![None; count], missing: 2 * count }
    }

    /// One thread that never sleeps sends when it is time and takes what has come.
    fn run(mut self, near: &ProbeSocket, far: &ProbeSocket, spacing: Span) -> io::Result<Self> {
        let count = self.sent.len();
        let start = clock::now() + spacing;
        let mut pacer = Pacer::new(start, spacing.0.cast_unsigned() * 1000);
        let until = start + spacing * count as i64 + Span::from_secs(1);
        let (mut probe, mut buffer) = ([0; PAYLOAD], [0; 2 * PAYLOAD]);
        while self.missing > 0 && clock::now() < until {
            if self.asked.len() < count && clock::now() >= pacer.due() {
                probe[..8].copy_from_slice(&(self.asked.len() as u64).to_be_bytes());
                self.asked.push(clock::now());
                near.send(&probe)?;
                pacer.advance();
            }
            while let Some(arrival) = far.try_receive(&mut buffer)? {
                let seen_at = clock::now();
                let number = buffer.first_chunk().map(|number| u64::from_be_bytes(*number) as usize);
                let place = number.and_then(|number| self.came.get_mut(number));
                self.missing -=
                    usize::from(place.is_some_and(|it| it.replace((arrival.rx, seen_at)).is_none()));
            }
            for (number, stamp) in near.sent_stamps() {
                let place = self.sent.get_mut(number as usize);
                self.missing -= usize::from(place.is_some_and(|it| it.replace(stamp).is_none()));
            }
        }
        Ok(self)
    }

    fn passages(&self) -> impl Iterator<Item = Passage> {
        let whole = self.asked.iter().zip(&self.sent).zip(&self.came);
        whole.filter_map(|((asked, sent), came)| {
            let (sent, (rx, seen_at)) = ((*sent)?, (*came)?);
            let by_kernel = sent.by == ClockSource::Kernel && rx.by == ClockSource::Kernel;
            by_kernel.then(|| Passage {
                sent: sent.at,
                delay: rx.at - sent.at,
                between_programs: seen_at - *asked,
            })
        })
    }
}
