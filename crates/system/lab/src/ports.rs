//! Waits until a program on a host listens, by asking the kernel: a connection would count as a
//! client.

use netaware_io::clock;
use netaware_netmodel::Side;
use netaware_units::Span;

use crate::namespace;

/// Waits until any program on the host listens on TCP or has bound a UDP port, at most for
/// `patience`; false if none did. A fresh host has no other sockets.
pub fn await_listener(prefix: &str, side: Side, patience: Span) -> bool {
    let until = clock::now() + patience;
    loop {
        if listens(&namespace::name(prefix, side)) {
            return true;
        }
        if clock::now() >= until {
            return false;
        }
        clock::sleep(Span::from_millis(10));
    }
}

fn listens(namespace: &str) -> bool {
    let read = |table: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{table}"));
    let any = namespace::within(namespace, || {
        let tcp =
            ["tcp", "tcp6"].iter().filter_map(|table| read(table).ok()).any(|text| has(&text, Some("0A")));
        let udp = ["udp", "udp6"].iter().filter_map(|table| read(table).ok()).any(|text| has(&text, None));
        Ok(tcp || udp)
    });
    any.unwrap_or(false)
}

/// Lines of `/proc/net/tcp` and its kin: `sl local_address rem_address st …`; 0A is "listening".
fn has(table: &str, state: Option<&str>) -> bool {
    table.lines().skip(1).any(|line| state.is_none_or(|state| line.split_whitespace().nth(3) == Some(state)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_no_listener() {
        let head = "  sl  local_address rem_address   st\n";
        let row = |state: &str| format!("{head}   0: 0100007F:1451 00000000:0000 {state} 00000000\n");
        assert!(has(&row("0A"), Some("0A")) && !has(&row("01"), Some("0A")) && !has(head, None));
        assert!(has(&row("07"), None));
    }
}
