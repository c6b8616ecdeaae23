//! What the kernel's TCP knows about a connection (`TCP_INFO`, tcp(7), linux/tcp.h).

use std::net::TcpStream;

use netaware_record::StreamEnd;
use netaware_units::{BitRate, ByteCount, Span};
use socket2::SockRef;

/// The part of `TCP_INFO` that results show. What an older kernel does not fill stays zero, and so
/// does what it says of a path that is gone: where the route has vanished, segments and windows are
/// those of a device that swallows everything, and after time-outs the window is one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// Segments sent again.
    pub retransmits: u64,
    /// Of those, that the peer had already, as it has said (RFC 2883); zero before Linux 4.19.
    pub resent_in_vain: u64,
    /// Segments with data sent, those sent again included; zero before Linux 4.6.
    pub segments_sent: u64,
    /// Smoothed round trip.
    pub rtt: Span,
    /// Its mean deviation.
    pub rtt_var: Span,
    /// Smallest round trip seen (over the kernel's window of some minutes).
    pub min_rtt: Span,
    /// Congestion window, bytes.
    pub cwnd: ByteCount,
    /// Slow-start threshold, bytes; absent while slow start never ended.
    pub ssthresh: Option<ByteCount>,
    /// Window the peer advertised; zero before Linux 5.4.
    pub send_window: ByteCount,
    /// Segment size used when sending.
    pub mss: u32,
    /// Path MTU the kernel used.
    pub path_mtu: u32,
    /// Time with data to send.
    pub busy: Span,
    /// Of that: held back by the peer's window.
    pub window_limited: Span,
    /// Of that: held back by our send buffer.
    pub buffer_limited: Span,
    /// Bytes that the peer has acknowledged.
    pub acked: ByteCount,
    /// Bytes that the peer has acknowledged selectively: they wait there behind a gap (in whole
    /// segments).
    pub held: ByteCount,
    /// Payload bytes sent, those sent again included; zero before Linux 4.19.
    pub bytes_sent: ByteCount,
    /// Payload bytes sent again; zero before Linux 4.19.
    pub bytes_resent: ByteCount,
    /// Segments that the peer has acknowledged; zero before Linux 4.18.
    pub delivered: u64,
    /// Of these: those that came to it with a mark of congestion (RFC 3168).
    pub delivered_marked: u64,
    /// Time until what is not acknowledged goes again, doubled for each time that it did.
    pub rto: Span,
    /// How many times it was doubled.
    pub backoff: u8,
    /// Segments that the peer has not acknowledged.
    pub unacked: u32,
    /// Since the last acknowledgement came, in whole milliseconds.
    pub since_ack: Span,
    /// Given to the kernel and not sent yet; zero before Linux 4.6.
    pub unsent: ByteCount,
    /// The last rate at which the peer acknowledged while there was enough to send, payload; zero
    /// before Linux 4.9.
    pub delivery_rate: BitRate,
    /// Segments carry timestamps (RFC 7323).
    pub timestamps: bool,
    /// The connection is gone, by a reset or at its end.
    pub is_closed: bool,
}

impl TcpInfo {
    /// Copies what belongs there.
    pub fn fill(&self, end: &mut StreamEnd) {
        end.retransmits = Some(self.retransmits);
        end.rtt = known(self.rtt);
        // Without a round trip there is nothing that it could deviate from.
        end.rtt_var = end.rtt.map(|_| self.rtt_var);
        end.min_rtt = known(self.min_rtt);
        end.cwnd = known(self.cwnd);
        end.ssthresh = self.ssthresh;
        end.send_window = known(self.send_window);
        end.mss = known(self.mss);
        end.path_mtu = known(self.path_mtu);
        end.busy = Some(self.busy);
        end.window_limited = Some(self.window_limited);
        end.buffer_limited = Some(self.buffer_limited);
        // An older kernel has sent segments and tells of no byte.
        let counts_bytes = self.bytes_sent > ByteCount(0) || self.segments_sent == 0;
        end.bytes_sent = counts_bytes.then_some(self.bytes_sent);
        end.bytes_resent = counts_bytes.then_some(self.bytes_resent);
        // A connection has at least its first segment acknowledged.
        end.delivered = known(self.delivered);
        end.delivered_marked = end.delivered.map(|_| self.delivered_marked);
        end.timestamps = self.timestamps;
    }

    /// Asks the kernel; `None` where there is no `TCP_INFO` of Linux.
    #[cfg(target_os = "linux")]
    pub fn read(stream: &TcpStream) -> Option<Self> {
        RawTcpInfo::read(stream).map(|raw| Self::from(&raw))
    }

    /// The smoothed round trip of a connection whose socket belongs to an event loop; `None` where
    /// it is not known yet, or the kernel does not tell.
    #[cfg(target_os = "linux")]
    pub fn round_trip(socket: &impl std::os::fd::AsRawFd) -> Option<Span> {
        known(Self::from(&RawTcpInfo::read(socket)?).rtt)
    }

    /// Not told.
    #[cfg(not(target_os = "linux"))]
    pub fn round_trip<S>(_: &S) -> Option<Span> {
        None
    }

    /// The shortest round trip of a connection, `None` where it is not known yet, and how many
    /// segments were sent again.
    #[cfg(target_os = "linux")]
    pub(crate) fn shortest_round_trip(socket: &impl std::os::fd::AsRawFd) -> (Option<Span>, u64) {
        let info = RawTcpInfo::read(socket).map(|raw| Self::from(&raw));
        info.map_or((None, 0), |info| (known(info.min_rtt), info.retransmits))
    }

    /// For how long the peer has acknowledged nothing of what is on its way: what it had
    /// acknowledged it had so long ago. Zero where acknowledgements come.
    pub(crate) fn silence(&self) -> Span {
        if self.unacked > 0 && self.since_ack >= SILENT { self.since_ack } else { Span::ZERO }
    }

    /// Segments of any kind that were handed to the network layer, of a connection that has not
    /// been reset; `None` where the kernel does not tell.
    #[cfg(target_os = "linux")]
    pub(crate) fn segments_out(socket: &socket2::Socket) -> Option<u32> {
        RawTcpInfo::read(socket).map(|raw| raw.segs_out)
    }

    /// Whether this host itself dropped the first segment of a connection when it was last sent
    /// again, as a firewall of its own makes it do. Unknown, and so not said, before that.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_kept_in(socket: &socket2::Socket) -> bool {
        RawTcpInfo::read(socket).is_some_and(|raw| raw.is_kept_in())
    }

    /// Not told.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_kept_in(_: &socket2::Socket) -> bool {
        false
    }

    /// Not told.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn segments_out(_: &socket2::Socket) -> Option<u32> {
        None
    }

    /// Asks the kernel; `None` where there is no `TCP_INFO` of Linux.
    #[cfg(not(target_os = "linux"))]
    pub fn read(_: &TcpStream) -> Option<Self> {
        None
    }
}

/// Acknowledgements are a round trip apart at most, and on most paths far less than this.
const SILENT: Span = Span::from_secs(1);

/// Zero is what the kernel says of what it has not measured, or does not tell.
pub(crate) fn known<T: Default + PartialEq>(figure: T) -> Option<T> {
    (figure != T::default()).then_some(figure)
}

#[cfg(target_os = "linux")]
impl RawTcpInfo {
    fn read(socket: &impl std::os::fd::AsRawFd) -> Option<Self> {
        let mut raw = RawTcpInfo::default();
        let mut len = size_of::<RawTcpInfo>() as libc::socklen_t;
        // SAFETY: `raw` is plain data of `len` bytes; the kernel writes at most `len` of them.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut raw).cast(),
                &raw mut len,
            )
        };
        (status == 0).then_some(raw)
    }

    /// See [`TcpInfo::is_kept_in`]. The kernel counts each attempt to send a segment again, and
    /// counts it as one that is on its way only if it could leave.
    fn is_kept_in(&self) -> bool {
        const STATE: usize = 0;
        /// `TCP_SYN_SENT`.
        const SYN_SENT: u8 = 2;
        const RETRANS: usize = 7;
        const TOTAL_RETRANS: usize = 23;
        let was_sent_again = self.classic[TOTAL_RETRANS] > 0;
        self.bytes[STATE] == SYN_SENT && was_sent_again && self.classic[RETRANS] == 0
    }
}

/// The congestion control in use, as the kernel names it.
#[cfg(target_os = "linux")]
pub fn congestion(stream: &TcpStream) -> Option<String> {
    let name = SockRef::from(stream).tcp_congestion().ok()?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The congestion control in use: other systems do not tell.
#[cfg(not(target_os = "linux"))]
pub fn congestion(_: &TcpStream) -> Option<String> {
    None
}

/// Everything that a finished stream shows, except its bytes, calls, thread shares and error.
pub(crate) fn stream_end(index: u16, stream: &TcpStream) -> StreamEnd {
    let socket = SockRef::from(stream);
    let size = |size: std::io::Result<usize>| size.ok().map(|size| ByteCount(size as u64));
    let mut end = StreamEnd {
        index,
        congestion: congestion(stream).unwrap_or_default(),
        send_buffer: size(socket.send_buffer_size()),
        receive_buffer: size(socket.recv_buffer_size()),
        ..StreamEnd::default()
    };
    if let Some(info) = TcpInfo::read(stream) {
        info.fill(&mut end);
    }
    end
}

/// `struct tcp_info` of linux/tcp.h up to `tcpi_snd_wnd` (5.4); libc's own ends in 2007. The kernel
/// fills as many bytes as it knows and we asked for.
#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Debug, Default)]
struct RawTcpInfo {
    /// state, ca_state, retransmits, probes, backoff, options, window scales, two flags.
    bytes: [u8; 8],
    /// rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans, fackets, four ages, pmtu,
    /// rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering, rcv_rtt, rcv_space,
    /// total_retrans.
    classic: [u32; 24],
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt_us: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_us: u64,
    rwnd_limited_us: u64,
    sndbuf_limited_us: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
}

#[cfg(target_os = "linux")]
impl From<&RawTcpInfo> for TcpInfo {
    fn from(raw: &RawTcpInfo) -> Self {
        const STATE: usize = 0;
        const BACKOFF: usize = 4;
        const OPTIONS: usize = 5;
        /// `TCP_CLOSE`.
        const CLOSED: u8 = 7;
        /// `TCPI_OPT_TIMESTAMPS`.
        const TIMESTAMPS: u8 = 1;
        const RTO: usize = 0;
        const SND_MSS: usize = 2;
        const UNACKED: usize = 4;
        const SACKED: usize = 5;
        const LAST_ACK_RECV: usize = 12;
        const PMTU: usize = 13;
        const RTT: usize = 15;
        const RTTVAR: usize = 16;
        const SND_SSTHRESH: usize = 17;
        const SND_CWND: usize = 18;
        const TOTAL_RETRANS: usize = 23;
        /// `TCP_INFINITE_SSTHRESH`.
        const NEVER: u32 = 0x7fff_ffff;
        /// Of the device to which Linux moves a connection whose route is gone
        /// (`blackhole_netdev`): no path has so little.
        const NO_PATH: u32 = 68;
        let mss = raw.classic[SND_MSS];
        let has_path = raw.classic[PMTU] > NO_PATH;
        let since_ack = Span::from_millis(raw.classic[LAST_ACK_RECV].into());
        let backoff = raw.bytes[BACKOFF];
        let is_alive = has_path && (backoff == 0 || since_ack < SILENT);
        let of_path = |figure: u32| if has_path { figure } else { 0 };
        let segments = |count: u32| ByteCount(u64::from(count) * u64::from(mss));
        let micros = |us: u64| Span::from_micros(us.cast_signed());
        let ssthresh = raw.classic[SND_SSTHRESH];
        Self {
            retransmits: raw.classic[TOTAL_RETRANS].into(),
            resent_in_vain: raw.dsack_dups.into(),
            segments_sent: raw.data_segs_out.into(),
            rtt: micros(raw.classic[RTT].into()),
            rtt_var: micros(raw.classic[RTTVAR].into()),
            // All ones before the first sample.
            min_rtt: if raw.min_rtt_us == u32::MAX { Span::ZERO } else { micros(raw.min_rtt_us.into()) },
            cwnd: if is_alive { segments(raw.classic[SND_CWND]) } else { ByteCount(0) },
            ssthresh: (ssthresh < NEVER && is_alive).then(|| segments(ssthresh)),
            send_window: ByteCount(raw.snd_wnd.into()),
            mss: of_path(mss),
            path_mtu: of_path(raw.classic[PMTU]),
            busy: micros(raw.busy_us),
            window_limited: micros(raw.rwnd_limited_us),
            buffer_limited: micros(raw.sndbuf_limited_us),
            acked: ByteCount(raw.bytes_acked),
            held: segments(raw.classic[SACKED]),
            bytes_sent: ByteCount(raw.bytes_sent),
            bytes_resent: ByteCount(raw.bytes_retrans),
            delivered: raw.delivered.into(),
            delivered_marked: raw.delivered_ce.into(),
            rto: micros(raw.classic[RTO].into()),
            backoff,
            unacked: raw.classic[UNACKED],
            since_ack,
            unsent: ByteCount(raw.notsent_bytes.into()),
            delivery_rate: BitRate(raw.delivery_rate.saturating_mul(8)),
            timestamps: raw.bytes[OPTIONS] & TIMESTAMPS != 0,
            is_closed: raw.bytes[STATE] == CLOSED,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// "MSS, path MTU 36 B, 68 B" and "cwnd 36 B", of a link that went down.
    #[test]
    fn a_path_that_is_gone_has_neither_a_window_nor_a_size() {
        let told = |path_mtu: u32, backoff: u8, since_ack_ms: u32| {
            let mut raw = RawTcpInfo::default();
            raw.bytes[4] = backoff;
            let fields = [(2, path_mtu - 32), (12, since_ack_ms), (13, path_mtu), (17, 20), (18, 10)];
            for (field, value) in fields {
                raw.classic[field] = value;
            }
            let info = TcpInfo::from(&raw);
            (info.mss, info.path_mtu, info.cwnd.0, info.ssthresh.is_some())
        };
        assert_eq!(told(1500, 0, 20), (1468, 1500, 14_680, true));
        assert_eq!(told(68, 0, 20), (0, 0, 0, false));
        // The path swallows everything: the window of now is that of the time-outs.
        assert_eq!(told(1500, 3, 4300), (1468, 1500, 0, false));
        assert_eq!(told(1500, 1, 400), (1468, 1500, 14_680, true));
    }

    /// IPv4 was silent, a firewall of this host dropped IPv6, and IPv4 was said to be dropped here
    /// as well: the system's count of segments that could not leave is one of all connections.
    #[test]
    fn a_segment_of_another_connection_that_this_host_drops_says_nothing_of_this_one() {
        let is_kept_in = |state: u8, again: u32, on_its_way: u32| {
            let mut raw = RawTcpInfo::default();
            raw.bytes[0] = state;
            (raw.classic[23], raw.classic[7]) = (again, on_its_way);
            raw.is_kept_in()
        };
        let (established, syn_sent) = (1, 2);
        assert!(is_kept_in(syn_sent, 1, 0) && is_kept_in(syn_sent, 4, 0));
        // It left, and nobody answers.
        assert!(!is_kept_in(syn_sent, 1, 1) && !is_kept_in(syn_sent, 4, 1));
        // It has not been sent again yet.
        assert!(!is_kept_in(syn_sent, 0, 0));
        assert!(!is_kept_in(established, 1, 0));
    }

    /// "acknowledged 7.57 s, 7.66 Mbit/s" beside 18.6 Mbit/s, with 4.3 s of silence in it.
    #[test]
    fn a_silence_at_the_end_is_no_time_of_what_was_acknowledged() {
        let info = |unacked, ms| TcpInfo { unacked, since_ack: Span::from_millis(ms), ..TcpInfo::default() };
        assert_eq!(info(3, 4300).silence(), Span::from_millis(4300));
        assert_eq!(info(3, 40).silence(), Span::ZERO);
        // There was nothing to be acknowledged.
        assert_eq!(info(0, 4300).silence(), Span::ZERO);
    }

    #[test]
    fn the_kernel_fills_the_fields_where_we_look_for_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[1; 1000]).unwrap();
        receiver.read_exact(&mut [0; 1000]).unwrap();
        let info = TcpInfo::read(&sender).unwrap();
        assert!(info.rtt > Span::ZERO && info.rtt < Span::from_secs(1), "{info:?}");
        assert!(info.min_rtt > Span::ZERO && info.min_rtt <= info.rtt + info.rtt_var * 4, "{info:?}");
        assert!(info.path_mtu >= 1500 && info.mss < info.path_mtu && info.mss > 500, "{info:?}");
        assert_eq!((info.retransmits, info.segments_sent, info.ssthresh), (0, 1, None));
        assert!((Span::from_millis(100)..Span::from_secs(10)).contains(&info.rto), "{info:?}");
        assert_eq!((info.backoff, info.unacked, info.resent_in_vain), (0, 0, 0));
        assert!(info.delivered >= 1 && info.delivered_marked == 0, "{info:?}");
        assert!(info.since_ack < Span::from_secs(10), "{info:?}");
        assert!(info.send_window > ByteCount(0) && info.cwnd >= ByteCount(u64::from(info.mss)), "{info:?}");
        assert_eq!(info.acked, ByteCount(1001), "data and the SYN");
        assert_eq!(
            (info.bytes_sent, info.bytes_resent, info.is_closed),
            (ByteCount(1000), ByteCount(0), false)
        );
        let timestamps = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps").unwrap();
        assert_eq!(info.timestamps, timestamps.trim() != "0");
        assert!(!congestion(&sender).unwrap().is_empty());
    }
}
