//! Waits until a program has opened its port, by asking the kernel instead of connecting: a
//! connection would count as a client, and some servers serve one only.

use std::time::Duration;

use crate::NetnsError;

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A listening socket is waited for.
    Tcp,
    /// Any bound socket is waited for.
    Udp,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }

    fn tables(self) -> [&'static str; 2] {
        match self {
            Self::Tcp => ["tcp", "tcp6"],
            Self::Udp => ["udp", "udp6"],
        }
    }
}

const POLL: Duration = Duration::from_millis(10);
const POLLS: u32 = 500;

/// Returns as soon as `port` is open, over either IP version, in the network namespace of process
/// `pid` (which may be the host's own). Gives up after 5 s, or when the process is gone.
pub fn wait_until_bound(pid: u32, transport: Transport, port: u16) -> Result<(), NetnsError> {
    for poll in 0..POLLS {
        match is_bound(pid, transport, port) {
            Some(true) => return Ok(()),
            Some(false) => pause(POLL),
            None => return Err(not_bound(pid, transport, port, poll)),
        }
    }
    Err(not_bound(pid, transport, port, POLLS))
}

fn not_bound(pid: u32, transport: Transport, port: u16, polls: u32) -> NetnsError {
    let patience_ms = (POLL * polls).as_millis() as u64;
    NetnsError::NotBound { pid, transport: transport.name(), port, patience_ms }
}

#[expect(clippy::disallowed_methods, reason = "waits for programs that are not ours; nothing is timed by it")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Whether `port` is open, over either IP version, in the network namespace of process `pid`.
/// `None` when the process is gone.
pub fn is_bound(pid: u32, transport: Transport, port: u16) -> Option<bool> {
    let mut readable = false;
    for table in transport.tables() {
        // A kernel without IPv6 has no tcp6: the other table then decides alone.
        if let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")) {
            readable = true;
            if lists(&text, transport, port) {
                return Some(true);
            }
        }
    }
    readable.then_some(false)
}

/// Lines of `/proc/net/tcp` and its kin: `sl local_address rem_address st …`, all in hexadecimal.
fn lists(table: &str, transport: Transport, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1).unwrap_or_default();
        let state = fields.nth(1).unwrap_or_default();
        local.ends_with(&suffix) && (transport == Transport::Udp || state == LISTEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 21 1 0 100 0 0 10 0
   1: 0100007F:0016 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 22 1 0 20 4 30 10 -1
";

    #[test]
    fn listening_port_is_found_and_a_connected_one_is_not() {
        assert!(lists(TABLE, Transport::Tcp, 5201));
        assert!(!lists(TABLE, Transport::Tcp, 22));
        assert!(lists(TABLE, Transport::Udp, 22), "UDP has no listening state");
    }

    #[test]
    fn socket_of_this_process_is_seen() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        wait_until_bound(std::process::id(), Transport::Udp, port).unwrap();
    }

    #[test]
    fn dead_process_ends_the_wait_at_once() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(wait_until_bound(pid, Transport::Tcp, 1).unwrap_err().to_string().contains("within 0 ms"));
    }
}
