//! How streams and sessions of datagrams stand.

use std::ffi::c_int;

use netaware_record::IpVersion;
use netaware_stream::datagram::{End, SessionStatus, VersionStanding, VersionStatus};
use netaware_stream::{DualStream, LinkStatus, PeerId, Standing};
use netaware_units::Span;

use crate::calls::{NA_IPV4, NA_IPV6, guarded};
use crate::error::Failure;
use crate::table::{self, Carries, datagrams_of, lock, stream_of};

/// What datagrams saw of one version; -1 where it is not known, and everywhere of streams.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NaVersionStatus {
    /// Datagrams sent over it, those of the library included.
    pub sent: i64,
    /// Of those, known to have come.
    pub confirmed: i64,
    /// Of those, missing when the peer last told.
    pub lost: i64,
    /// Datagrams that came over it.
    pub received: i64,
    /// Missing among those.
    pub missing: i64,
    /// How much longer they take to the peer than the quickest one lately, microseconds.
    pub forward_delay_us: i64,
    /// The same of those that come.
    pub reverse_delay_us: i64,
}

/// How a stream stands, or a session of datagrams.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NaStatus {
    /// 0 bytes can travel, 1 both directions have ended, -1 given up.
    pub standing: c_int,
    /// Where this direction goes: 4, 6, or 0 where there is no connection.
    pub current: c_int,
    /// Whether there is a connection over IPv4, or datagrams come through.
    pub ipv4_up: c_int,
    /// Whether there is a connection over IPv6, or datagrams come through.
    pub ipv6_up: c_int,
    /// Smoothed round trip over IPv4, microseconds; -1 where it is not known.
    pub ipv4_rtt_us: i64,
    /// Smoothed round trip over IPv6, microseconds; -1 where it is not known.
    pub ipv6_rtt_us: i64,
    /// Bytes that the peer has; of datagrams 0.
    pub acknowledged: u64,
    /// Bytes that it may not have; of datagrams 0.
    pub unacknowledged: u64,
    /// Bytes that came; of datagrams how many.
    pub received: u64,
    /// What datagrams saw of IPv4.
    pub ipv4: NaVersionStatus,
    /// What datagrams saw of IPv6.
    pub ipv6: NaVersionStatus,
}

/// Writes how a stream stands, or the session of a connected socket of datagrams. 0, or -1.
///
/// # Safety
/// `status` has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_status(stream: c_int, status: *mut NaStatus) -> c_int {
    guarded(|| {
        not_null(status)?;
        let entry = table::entry(stream)?;
        let carries = lock(&entry).carries;
        let made = match carries {
            Carries::Bytes => of_stream(&stream_of(&entry)?),
            Carries::Datagrams => of_session(datagrams_of(&entry)?.status(PeerId::CONNECTED).as_ref())?,
        };
        // SAFETY: the caller's promise, and not null.
        unsafe { status.write(made) };
        Ok(0)
    })
}

/// Writes how the session of a socket of datagrams with this peer stands, as na_recvfrom names it.
/// 0, or -1.
///
/// # Safety
/// `status` has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn na_status_of(socket: c_int, peer: u64, status: *mut NaStatus) -> c_int {
    guarded(|| {
        not_null(status)?;
        let entry = table::entry(socket)?;
        let made = of_session(datagrams_of(&entry)?.status(PeerId(peer)).as_ref())?;
        // SAFETY: the caller's promise, and not null.
        unsafe { status.write(made) };
        Ok(0)
    })
}

fn not_null(status: *mut NaStatus) -> Result<(), Failure> {
    if status.is_null() { Err(Failure::new(libc::EFAULT, "nowhere to put the status")) } else { Ok(()) }
}

fn of_stream(stream: &DualStream) -> NaStatus {
    let told = stream.status();
    let rtt = |link: Option<LinkStatus>| micros(link.and_then(|link| link.round_trip));
    NaStatus {
        standing: match told.standing {
            Standing::Open => 0,
            Standing::Finished => 1,
            Standing::Broken(_) => -1,
        },
        current: told.current.map_or(0, number),
        ipv4_up: told.v4.is_some().into(),
        ipv6_up: told.v6.is_some().into(),
        ipv4_rtt_us: rtt(told.v4),
        ipv6_rtt_us: rtt(told.v6),
        acknowledged: told.acknowledged,
        unacknowledged: told.unacknowledged,
        received: told.received,
        ipv4: UNKNOWN,
        ipv6: UNKNOWN,
    }
}

fn of_session(told: Option<&SessionStatus>) -> Result<NaStatus, Failure> {
    let told = told.ok_or_else(|| Failure::new(libc::ENOTCONN, "there is no session with that peer"))?;
    let up = |version: VersionStatus| (version.standing == VersionStanding::Up).into();
    Ok(NaStatus {
        standing: match told.ended {
            None => 0,
            Some(End::Closed | End::PeerClosed) => 1,
            Some(End::Silent | End::Refused(_)) => -1,
        },
        current: told.current.map_or(0, number),
        ipv4_up: up(told.v4),
        ipv6_up: up(told.v6),
        ipv4_rtt_us: micros(told.v4.round_trip),
        ipv6_rtt_us: micros(told.v6.round_trip),
        acknowledged: 0,
        unacknowledged: 0,
        received: told.delivered,
        ipv4: of_version(&told.v4),
        ipv6: of_version(&told.v6),
    })
}

fn of_version(told: &VersionStatus) -> NaVersionStatus {
    NaVersionStatus {
        sent: told.sent as i64,
        confirmed: told.confirmed as i64,
        lost: told.lost.map_or(-1, |lost| lost as i64),
        received: told.received as i64,
        missing: told.missing as i64,
        forward_delay_us: micros(told.forward_delay),
        reverse_delay_us: micros(told.reverse_delay),
    }
}

pub(crate) fn micros(span: Option<Span>) -> i64 {
    span.map_or(-1, |span| span.nanos() / 1000)
}

pub(crate) fn number(ip: IpVersion) -> c_int {
    if ip == IpVersion::V4 { NA_IPV4 } else { NA_IPV6 }
}

const UNKNOWN: NaVersionStatus = NaVersionStatus {
    sent: -1,
    confirmed: -1,
    lost: -1,
    received: -1,
    missing: -1,
    forward_delay_us: -1,
    reverse_delay_us: -1,
};
