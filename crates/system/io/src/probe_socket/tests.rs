//! On the loopback interface, both IP versions; nothing here is timed against an absolute limit.

use netaware_units::{ClockSource, Span};

use super::*;
use crate::clock;

const HOSTS: [&str; 2] = ["127.0.0.1", "::1"];

/// Two sockets that talk to each other.
fn pair(host: &str, stamping: Stamping) -> (ProbeSocket, ProbeSocket) {
    let ip: IpAddr = host.parse().unwrap();
    let [a, b] = [0, 1].map(|_| UdpSocket::bind((ip, 0)).unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    (ProbeSocket::new(a, stamping).unwrap(), ProbeSocket::new(b, stamping).unwrap())
}

fn soon() -> Mono {
    clock::now() + Span::from_secs(2)
}

#[test]
fn kernel_stamps_lie_between_send_and_arrival_in_order() {
    for host in HOSTS {
        let (a, b) = pair(host, Stamping::Kernel);
        let mut buf = [0; 100];
        for id in 0..50 {
            let before = clock::now();
            a.send(&[7; 64]).unwrap();
            let arrival = b.receive(&mut buf, Some(soon())).unwrap().unwrap();
            let (stamp_id, tx) = a.sent_stamps().next().unwrap();
            let after = clock::now();
            assert_eq!((arrival.len, stamp_id, arrival.ttl), (64, id, Some(64)));
            assert_eq!((tx.by, arrival.rx.by), (ClockSource::Kernel, ClockSource::Kernel));
            assert!(before <= tx.at + tx.error, "{host}: {before:?} {tx:?}");
            assert!(tx.at <= arrival.rx.at + arrival.rx.error, "{host}: {tx:?} {arrival:?}");
            assert!(arrival.rx.at <= after);
        }
        assert_eq!(a.stamp_fallbacks() + b.stamp_fallbacks(), 0);
        assert_eq!(a.sent_stamps().count(), 0);
    }
}

#[test]
fn application_stamps_are_called_so() {
    let (a, b) = pair("::1", Stamping::Application);
    a.send(b"x").unwrap();
    let arrival = b.receive(&mut [0; 10], Some(soon())).unwrap().unwrap();
    assert_eq!((arrival.rx.by, arrival.ttl, a.stamps_sends()), (ClockSource::Application, Some(64), false));
    assert_eq!(a.sent_stamps().count() + usize::try_from(b.stamp_fallbacks()).unwrap(), 0);
}

#[test]
fn a_wildcard_socket_answers_from_the_address_that_was_asked() {
    for (wildcard, asked, asker) in
        [("0.0.0.0", "127.0.0.2", "127.0.0.1"), ("0.0.0.0", "127.0.0.9", "127.0.0.3"), ("::", "::1", "::1")]
    {
        let wildcard: IpAddr = wildcard.parse().unwrap();
        let asked: IpAddr = asked.parse().unwrap();
        let asker: IpAddr = asker.parse().unwrap();
        let responder = ProbeSocket::new(UdpSocket::bind((wildcard, 0)).unwrap(), Stamping::Kernel).unwrap();
        let port = responder.local_addr().unwrap().port();
        let client = UdpSocket::bind((asker, 0)).unwrap();
        client.send_to(b"?", (asked, port)).unwrap();
        let mut buf = [0; 16];
        let question = responder.receive(&mut buf, Some(soon())).unwrap().unwrap();
        assert_eq!((question.to, question.ttl), (Some(asked), Some(64)));
        assert_eq!((question.from, question.rx.by), (client.local_addr().unwrap(), ClockSource::Kernel));
        responder.send_to(b"!", question.from, question.to).unwrap();
        client.set_read_timeout(Some(Span::from_secs(2).to_std())).unwrap();
        assert_eq!(client.recv_from(&mut buf).unwrap().1, SocketAddr::from((asked, port)));
        assert_eq!(responder.sent_stamps().count(), 0);
    }
}

#[test]
fn an_unread_error_queue_does_not_cut_waits_short() {
    let (a, _b) = pair("127.0.0.1", Stamping::Kernel);
    for _ in 0..10 {
        a.send(b"x").unwrap();
    }
    for wait in [Span::from_millis(5), Span::from_millis(45)] {
        let until = clock::now() + wait;
        assert_eq!(a.receive(&mut [0; 10], Some(until)).unwrap(), None);
        assert!(clock::now() >= until);
    }
    let ids: Vec<u32> = a.sent_stamps().map(|(id, _)| id).collect();
    assert_eq!(ids, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_deadline_in_the_past_still_takes_what_is_there() {
    let (a, b) = pair("::1", Stamping::Kernel);
    a.send(b"x").unwrap();
    assert!(b.receive(&mut [0; 10], Some(Mono(0))).unwrap().is_some());
    assert!(b.receive(&mut [0; 10], Some(Mono(0))).unwrap().is_none());
    assert!(b.try_receive(&mut [0; 10]).unwrap().is_none());
}

#[test]
fn a_datagram_longer_than_the_buffer_is_cut() {
    let (a, b) = pair("::1", Stamping::Kernel);
    a.send(&[1; 50]).unwrap();
    assert_eq!(b.receive(&mut [0; 10], Some(soon())).unwrap().unwrap().len, 10);
    a.send(&[]).unwrap();
    assert_eq!(b.receive(&mut [0; 10], Some(soon())).unwrap().unwrap().len, 0);
}

#[test]
fn a_closed_port_is_told_once_and_stamps_keep_their_numbers() {
    for host in HOSTS {
        let (a, b) = pair(host, Stamping::Kernel);
        let at = b.local_addr().unwrap();
        drop(b);
        a.send(b"x").unwrap();
        let refused = a.receive(&mut [0; 10], Some(soon())).unwrap_err();
        assert!(is_refusal(&refused) && refused.kind() == io::ErrorKind::ConnectionRefused, "{refused}");
        let until = clock::now() + Span::from_millis(5);
        assert!(a.receive(&mut [0; 10], Some(until)).unwrap().is_none(), "told twice");

        let again = ProbeSocket::new(UdpSocket::bind(at).unwrap(), Stamping::Kernel).unwrap();
        a.send(b"y").unwrap();
        assert!(again.receive(&mut [0; 10], Some(soon())).unwrap().is_some());
        assert_eq!(a.sent_stamps().map(|(id, _)| id).collect::<Vec<_>>(), [0, 1]);
    }
}

#[test]
fn a_failed_send_does_not_shift_the_numbers_of_later_stamps() {
    for host in HOSTS {
        let (a, b) = pair(host, Stamping::Kernel);
        drop(b);
        a.send(b"x").unwrap();
        // The refusal of the first datagram is met by the second, which does not leave.
        assert_eq!(a.send(b"y").unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        a.send(b"z").unwrap();
        assert_eq!(a.sent_stamps().map(|(id, _)| id).collect::<Vec<_>>(), [0, 1], "{host}");
    }
}

#[test]
fn what_exceeds_the_path_mtu_is_refused_and_the_mtu_told() {
    for host in HOSTS {
        let (a, _b) = pair(host, Stamping::Kernel);
        a.set_dont_fragment(DontFragment::Kernel).unwrap();
        assert!(a.path_mtu().unwrap() >= 1280);
        let largest = 65_535 - 8 - if host == "::1" { 0 } else { 20 };
        let answer = a.send(&vec![0; largest + 1]).unwrap_err();
        assert!(is_too_big(&answer), "{answer}");
    }
}

#[test]
fn drops_of_a_full_buffer_are_counted() {
    let (a, b) = pair("127.0.0.1", Stamping::Kernel);
    socket2::SockRef::from(b.socket()).set_recv_buffer_size(4096).unwrap();
    for _ in 0..100 {
        a.send(&[0; 1000]).unwrap();
    }
    let mut taken = 0;
    while b.try_receive(&mut [0; 1500]).unwrap().is_some() {
        taken += 1;
    }
    assert_eq!(b.drops(), 100 - taken);
    assert_eq!(a.drops(), 0);
}
