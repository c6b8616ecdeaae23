//! How long a TCP connection takes to be answered, as near to the kernel as it is told.
//!
//! Of an accepted connection the kernel knows the time from SYN to SYN-ACK in microseconds: it is
//! the first sample of its smoothed round trip (`tcpi_rtt`, RFC 6298 §2.2), and no data have
//! changed it when the connection has just come about. A SYN that was repeated, as after a second
//! on a slow path, has such a sample only by TCP's timestamps, which say which of them was
//! answered; without them nobody can tell (Karn), and the time is that from the first. And a
//! refused connection leaves nothing behind: with `CAP_NET_RAW` an [`AnswerEar`] hears the RST and
//! has the kernel's stamp of it; without, the program's own reading has to do, which also holds the
//! way into and out of the kernel, and the wait for a core.

#[cfg(not(target_os = "linux"))]
mod deaf;
#[cfg(target_os = "linux")]
mod ear;

use std::io;
use std::net::{SocketAddr, TcpStream};

use netaware_units::{ClockSource, Span};

use crate::clock;
use crate::options::{self, ConnectError, SocketOptions};
use crate::tcp_info::TcpInfo;

#[cfg(not(target_os = "linux"))]
pub use deaf::AnswerEar;
#[cfg(target_os = "linux")]
pub use ear::AnswerEar;

/// How a SYN was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// SYN-ACK. The connection is gone again.
    Accepted(Timed),
    /// RST.
    Refused(Timed),
    /// ICMP said why not.
    Unreachable,
    /// Not at all within the patience.
    Silent,
    /// The SYN never left this host, and why: a firewall or the lack of a route of its own (errno),
    /// or an option that cannot be had.
    NotSent(Option<i32>),
}

/// A time and who took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timed {
    /// From SYN to answer.
    pub rtt: Span,
    /// The kernel, or the program around its call.
    pub clock: ClockSource,
}

impl Handshake {
    /// Opens a connection and resets it at once; `ear` is one for the same host.
    pub fn attempt(
        to: SocketAddr,
        options: &SocketOptions,
        patience: Span,
        ear: Option<&mut AnswerEar>,
    ) -> Self {
        let prepared = match options::prepare_connect(to, options) {
            Ok(prepared) => prepared,
            Err(error) => return Self::NotSent(error.errno()),
        };
        // A refused socket has lost its port, if it did not choose one itself.
        let port = ear.as_ref().and_then(|_| prepared.bind_any());
        let began_at = clock::now();
        let outcome = options::connect_prepared(prepared, patience);
        let around = Timed { rtt: clock::now() - began_at, clock: ClockSource::Application };
        match outcome {
            Ok(stream) => {
                let timed = kernel(&stream, around).unwrap_or(around);
                options::close_now(&stream);
                Self::Accepted(timed)
            }
            Err(ConnectError::NotSent { source, .. }) => Self::NotSent(source.raw_os_error()),
            Err(ConnectError::System { source, .. }) => match source.kind() {
                io::ErrorKind::ConnectionRefused => {
                    let answer = port.zip(ear).and_then(|(port, ear)| ear.answer(to.port(), port, began_at));
                    let heard = answer.map(|at| at - began_at).filter(|rtt| *rtt <= around.rtt);
                    let heard = heard.map(|rtt| Timed { rtt, clock: ClockSource::Kernel });
                    Self::Refused(heard.unwrap_or(around))
                }
                io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Self::Unreachable,
                _ => Self::Silent,
            },
            Err(error @ ConnectError::Option { .. }) => Self::NotSent(error.errno()),
        }
    }
}

/// What the kernel measured, if it did, once, and no longer than the call took.
fn kernel(stream: &TcpStream, around: Timed) -> Option<Timed> {
    let info = TcpInfo::read(stream)?;
    let is_told = info.retransmits == 0 || info.timestamps;
    let measured = is_told && info.rtt > Span::ZERO && info.rtt <= around.rtt;
    let rtt = if info.retransmits == 0 { info.rtt } else { with_a_tick(info.rtt, around.rtt) };
    measured.then_some(Timed { rtt, clock: ClockSource::Kernel })
}

/// Of a SYN that was sent again Linux tells the round trip by TCP's timestamps, which count whole
/// milliseconds: it may be short by one.
fn with_a_tick(rtt: Span, around: Span) -> Span {
    (rtt + Span::from_millis(1)).min(around)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_syn_that_was_sent_again_is_not_timed_below_its_round_trip() {
        let [told, around, truth] = [1_200_000, 1_202_500, 1_200_400].map(Span::from_micros);
        assert!((truth..=around).contains(&with_a_tick(told, around)));
        assert_eq!(with_a_tick(told, truth), truth, "the call took no longer");
    }
    use crate::zone::ZonedIp;

    const PATIENCE: Span = Span::from_secs(2);

    #[test]
    fn an_accepted_connection_has_the_kernels_time_which_is_the_shorter() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(host).unwrap();
            let to = listener.local_addr().unwrap();
            for _ in 0..10 {
                let began_at = clock::now();
                let Handshake::Accepted(timed) =
                    Handshake::attempt(to, &SocketOptions::default(), PATIENCE, None)
                else {
                    panic!("{to}")
                };
                assert!(timed.rtt > Span::ZERO && timed.rtt < clock::now() - began_at, "{timed:?}");
                assert_eq!(timed.clock, ClockSource::Kernel);
            }
        }
    }

    #[test]
    fn a_refused_connection_has_the_programs_time() {
        let to = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let Handshake::Refused(timed) = Handshake::attempt(to, &SocketOptions::default(), PATIENCE, None)
        else {
            panic!()
        };
        assert!(timed.rtt > Span::ZERO && timed.clock == ClockSource::Application, "{timed:?}");
    }

    /// `None`, said on stderr, where raw sockets are not permitted.
    fn ear(of: SocketAddr) -> Option<AnswerEar> {
        AnswerEar::open(ZonedIp::of(of))
            .inspect_err(|why| {
                let ci = std::env::var("CI");
                assert_ne!(ci.as_deref(), Ok("true"), "{why}, and CI=true: a skip would hide that");
                eprintln!("SKIPPED: {why}");
            })
            .ok()
    }

    #[test]
    fn a_refused_connection_has_the_kernels_time_where_raw_sockets_are_permitted() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let to = TcpListener::bind(host).unwrap().local_addr().unwrap();
            let Some(mut ear) = ear(to) else { return };
            for _ in 0..10 {
                let before = clock::now();
                let outcome = Handshake::attempt(to, &SocketOptions::default(), PATIENCE, Some(&mut ear));
                let Handshake::Refused(timed) = outcome else { panic!("{outcome:?}") };
                assert_eq!(timed.clock, ClockSource::Kernel, "{to}");
                assert!(timed.rtt > Span::ZERO && timed.rtt < clock::now() - before, "{timed:?}");
            }
        }
    }

    #[test]
    fn data_of_other_connections_do_not_crowd_out_the_kernels_time() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let to = TcpListener::bind(host).unwrap().local_addr().unwrap();
            let Some(mut ear) = ear(to) else { return };
            let listener = TcpListener::bind(host).unwrap();
            let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut receiver = listener.accept().unwrap().0;
            let read = std::thread::spawn(move || io::copy(&mut receiver, &mut io::sink()).unwrap());
            let block = vec![7; 64 << 10];
            for _ in 0..1000 {
                io::Write::write_all(&mut sender, &block).unwrap();
            }
            let outcome = Handshake::attempt(to, &SocketOptions::default(), PATIENCE, Some(&mut ear));
            let Handshake::Refused(timed) = outcome else { panic!("{outcome:?}") };
            assert_eq!(timed.clock, ClockSource::Kernel, "{to}");
            drop(sender);
            assert_eq!(read.join().unwrap(), 1000 * (64 << 10));
        }
    }

    #[test]
    fn an_option_that_cannot_be_had_sends_nothing() {
        let to = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let options = SocketOptions { congestion: Some("no-such-thing".into()), ..SocketOptions::default() };
        assert_eq!(Handshake::attempt(to, &options, PATIENCE, None), Handshake::NotSent(Some(libc::ENOENT)));
    }
}
