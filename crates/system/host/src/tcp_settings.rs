//! The kernel's settings that bound what a socket may ask for, read from `/proc/sys/net`, which
//! shows the network namespace of whoever reads it. Outside Linux nothing is known.

use netaware_units::ByteCount;

use crate::kernel_file;

/// Congestion controls that a TCP socket may select now, in the kernel's order; empty where
/// unknown.
///
/// Others may exist as modules that are not loaded; an unprivileged process may moreover select
/// only those in `tcp_allowed_congestion_control`, so a choice can still be refused.
pub fn congestion_controls() -> Vec<String> {
    let text = kernel_file::read("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The congestion control that new sockets start with, for IPv4 and IPv6 alike; empty where
/// unknown.
pub(crate) fn default_congestion_control() -> String {
    kernel_file::read_line("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default()
}

/// Socket buffer sizes the kernel grants. Bytes of kernel memory with its overhead, of which
/// payload fills a half or less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketBufferLimits {
    /// Largest `SO_RCVBUF` that may be asked for (`net.core.rmem_max`); the kernel then doubles
    /// what was asked.
    pub receive_max: Option<ByteCount>,
    /// Largest `SO_SNDBUF` that may be asked for (`net.core.wmem_max`); the kernel then doubles
    /// what was asked.
    pub send_max: Option<ByteCount>,
    /// `SO_RCVBUF` of a new UDP socket (`net.core.rmem_default`).
    pub receive_default: Option<ByteCount>,
    /// `SO_SNDBUF` of a new UDP socket (`net.core.wmem_default`).
    pub send_default: Option<ByteCount>,
    /// Within which TCP tunes its receive buffer by itself (`net.ipv4.tcp_rmem`, for IPv6 too).
    pub tcp_receive: Option<BufferRange>,
    /// Within which TCP tunes its send buffer by itself (`net.ipv4.tcp_wmem`, for IPv6 too).
    pub tcp_send: Option<BufferRange>,
}

/// The range of a buffer that tunes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferRange {
    /// Granted even under memory pressure.
    pub min: ByteCount,
    /// Of a new socket.
    pub default: ByteCount,
    /// Never exceeded without `SO_RCVBUF` or `SO_SNDBUF`.
    pub max: ByteCount,
}

/// Reads the limits in force; each one is absent by itself.
pub fn socket_buffer_limits() -> SocketBufferLimits {
    let core = |name| parse_size(&kernel_file::read(format!("/proc/sys/net/core/{name}"))?);
    let tcp = |name| parse_range(&kernel_file::read(format!("/proc/sys/net/ipv4/{name}"))?);
    SocketBufferLimits {
        receive_max: core("rmem_max"),
        send_max: core("wmem_max"),
        receive_default: core("rmem_default"),
        send_default: core("wmem_default"),
        tcp_receive: tcp("tcp_rmem"),
        tcp_send: tcp("tcp_wmem"),
    }
}

fn parse_size(text: &str) -> Option<ByteCount> {
    text.trim().parse().ok().map(ByteCount)
}

fn parse_range(text: &str) -> Option<BufferRange> {
    let mut sizes = text.split_whitespace().map(parse_size);
    Some(BufferRange { min: sizes.next()??, default: sizes.next()??, max: sizes.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_needs_all_three_sizes() {
        let whole =
            BufferRange { min: ByteCount(4096), default: ByteCount(131_072), max: ByteCount(33_554_432) };
        let rows: &[(&str, Option<BufferRange>)] = &[
            ("4096\t131072\t33554432\n", Some(whole)),
            ("4096 131072", None),
            ("4096 131072 -1", None),
            ("a b c", None),
            ("", None),
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(parse_range(text), *want, "row {n}: {text:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_default_congestion_control_is_among_those_available() {
        assert!(congestion_controls().contains(&default_congestion_control()));
    }
}
