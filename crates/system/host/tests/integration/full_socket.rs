//! Real sockets: a receive queue that overflows shows in the drop counters of its IP version.
#![cfg(target_os = "linux")]

use std::net::UdpSocket;

use netaware_host::DropSnapshot;
use netaware_record::IpVersion;

#[test]
fn datagrams_dropped_at_a_full_socket_are_counted_for_their_ip_version() {
    for (address, version) in [("127.0.0.1:0", IpVersion::V4), ("[::1]:0", IpVersion::V6)] {
        let receiver = UdpSocket::bind(address).expect("loopback of both IP versions");
        let sender = UdpSocket::bind(address).expect("loopback of both IP versions");
        sender.connect(receiver.local_addr().expect("a bound socket")).expect("an address to send to");

        let before = DropSnapshot::take(&["lo"]);
        let sent = (0..SENT).filter(|_| sender.send(&[0; 1400]).is_ok()).count();
        let drops = DropSnapshot::take(&["lo"]).since(&before, version, Some(0));

        receiver.set_nonblocking(true).expect("a socket option");
        let received = (0..SENT).take_while(|_| receiver.recv(&mut [0; 1500]).is_ok()).count();
        assert!(received < sent, "{sent} datagrams of 1400 bytes should overflow a default receive buffer");
        // Not equal: other programs on this host may lose datagrams at the same time.
        assert!(drops.stack >= Some((sent - received) as u64), "{drops:?}, sent {sent}, received {received}");
        assert_eq!((drops.socket, drops.nic), (Some(0), Some(0)));
    }
}

/// 14 MB; Linux ships with receive buffers of 0.2 MB.
const SENT: usize = 10_000;
