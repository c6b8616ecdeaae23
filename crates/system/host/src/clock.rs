//! Who keeps this host's wall clock right, and how far it may be off.
//!
//! [`read`] asks, in the order of what they know: chronyd (its monitoring protocol), ntpd (NTP mode
//! 6), ptp4l (PTP management), and the kernel (`adjtimex`). The first that says that the clock is
//! synchronised is believed; otherwise the first that answered at all. Nothing needs a privilege
//! where the daemon lets everybody ask; an answer is waited for 200 ms at most, and a daemon that
//! is not there refuses at once.
//!
//! [`StepWatch`] finds jumps of the wall clock against the monotonic one. What daemons say is their
//! own estimate, and a network whose ways differ fools them all by up to half the round trip:
//! chronyd and ntpd have that in their bound, and for ptp4l we put the whole path delay into it.

pub mod chrony;
mod kernel;
pub mod ntpd;
pub mod ptp;
mod step;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use netaware_record::passive::ClockState;
use netaware_units::Span;

use crate::kernel_file;
pub use step::StepWatch;

/// The state of this host's clock now.
pub fn read() -> ClockState {
    read_at(&Places::default())
}

/// Where daemons are asked. Only tests have others than the default.
#[derive(Debug, Clone)]
pub struct Places {
    /// UDP addresses of chronyd.
    pub chrony_udp: Vec<SocketAddr>,
    /// Its socket in the file system, for who may write beside it.
    pub chrony_socket: PathBuf,
    /// UDP address of ntpd.
    pub ntpd: SocketAddr,
    /// Sockets of ptp4l, tried in this order.
    pub ptp4l: Vec<PathBuf>,
}

impl Default for Places {
    fn default() -> Self {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self {
            chrony_udp: vec![local(323), SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 323))],
            chrony_socket: "/run/chrony/chronyd.sock".into(),
            ntpd: local(123),
            ptp4l: vec!["/var/run/ptp4lro".into(), "/var/run/ptp4l".into()],
        }
    }
}

/// As [`read`], asking elsewhere.
pub fn read_at(places: &Places) -> ClockState {
    let kernel = kernel::state();
    let askers: [&dyn Fn() -> Option<ClockState>; 3] =
        [&|| chrony::ask(places), &|| ntpd::ask(places.ntpd), &|| ptp::ask(&places.ptp4l, kernel.as_ref())];
    let mut answered: Option<ClockState> = None;
    for ask in askers {
        let Some(state) = ask() else { continue };
        if state.synchronised {
            return identified(state);
        }
        answered = answered.or(Some(state));
    }
    let kernel = kernel.filter(|state| state.synchronised);
    let unknown = || ClockState { source: "none".to_owned(), ..ClockState::default() };
    identified(kernel.or(answered).unwrap_or_else(unknown))
}

/// Which running kernel this is: what has the same identity stamps by the same clock. `None`
/// outside Linux.
pub fn identity() -> Option<String> {
    kernel_file::read_line("/proc/sys/kernel/random/boot_id").filter(|id| id.len() <= 64)
}

fn identified(state: ClockState) -> ClockState {
    ClockState { identity: identity(), ..state }
}

/// A question to a daemon by UDP and its answers, of which `take` says when it has all.
fn ask_udp(to: SocketAddr, question: &[u8], take: impl FnMut(&[u8]) -> Taken) -> io::Result<()> {
    let from: SocketAddr = if to.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = UdpSocket::bind(from)?;
    // Connected: a port where nobody listens is refused at once, and strangers are not heard.
    socket.connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(question)?;
    hear(|buffer| socket.recv(buffer), take)
}

/// The same by a socket in the file system; the answer comes to one of our own beside it, which is
/// removed afterwards.
fn ask_unix(to: &Path, own: &Path, question: &[u8], take: impl FnMut(&[u8]) -> Taken) -> io::Result<()> {
    let socket = UnixDatagram::bind(own)?;
    let _own = Removed(own);
    // The daemon answers as a user of its own.
    std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o666))?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.send(question)?;
    hear(|buffer| socket.recv(buffer), take)
}

/// What a datagram was to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// The answer, or its last piece.
    All,
    /// A piece, or somebody else's.
    More,
}

fn hear(
    mut receive: impl FnMut(&mut [u8]) -> io::Result<usize>,
    mut take: impl FnMut(&[u8]) -> Taken,
) -> io::Result<()> {
    let mut buffer = [0; 2048];
    // Each may be waited for: so many at most, whoever sends them.
    for _ in 0..MOST_DATAGRAMS {
        let length = receive(&mut buffer)?;
        if take(&buffer[..length]) == Taken::All {
            return Ok(());
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Removes its file when it goes.
struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

/// A path beside the daemon's socket that is ours alone.
fn own_path(beside: &Path, name: &str) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    beside.with_file_name(format!("{name}.{}.{call}.sock", std::process::id()))
}

/// Seconds of a daemon's answer as a span; `None` for what is no number.
fn seconds(value: f64) -> Option<Span> {
    value.is_finite().then(|| Span::from_secs_f64(value))
}

/// A daemon on this host answers in well under a millisecond; one that is stopped must not hold a
/// probe.
const PATIENCE: Duration = Duration::from_millis(200);

/// ntpd tells its variables in a few.
const MOST_DATAGRAMS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere(folder: &Path) -> Places {
        // A port that is ours and silent would be waited for; one that was ours and is closed
        // refuses.
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Places {
            chrony_udp: vec![closed],
            chrony_socket: folder.join("chronyd.sock"),
            ntpd: closed,
            ptp4l: vec![folder.join("ptp4l")],
        }
    }

    #[test]
    fn without_any_daemon_the_kernel_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let state = read_at(&nowhere(folder.path()));
        assert!(["kernel", "none"].contains(&state.source.as_str()), "{state:?}");
        assert_eq!(state.synchronised, state.source == "kernel");
        assert_eq!(state.identity, identity());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no socket of ours stays behind");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernel_has_an_identity() {
        assert_eq!(identity().map(|id| id.len()), Some(36));
    }

    #[test]
    fn a_daemon_that_is_not_synchronised_does_not_hide_one_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let chronyd = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ntpd = UdpSocket::bind("127.0.0.1:0").unwrap();
        let places = Places {
            chrony_udp: vec![chronyd.local_addr().unwrap()],
            ntpd: ntpd.local_addr().unwrap(),
            ..nowhere(folder.path())
        };
        let daemons = [
            std::thread::spawn(move || {
                chrony::tests::serve_once(
                    &chronyd,
                    &chrony::Tracking { leap: 3, ..chrony::Tracking::default() },
                );
            }),
            std::thread::spawn(move || {
                ntpd::tests::serve_once(
                    &ntpd,
                    0x0615,
                    &["rootdelay=2.0, rootdisp=3.0, offset=-0.5, frequency=1.25"],
                );
            }),
        ];
        let state = read_at(&places);
        for daemon in daemons {
            daemon.join().unwrap();
        }
        assert_eq!((state.source.as_str(), state.synchronised), ("ntpd", true));
        assert_eq!(state.bound, Some(Span::from_micros(4500)));
    }
}
