//! Datagrams over both loopback addresses, with the kernel's UDP below.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use netaware_dual::datagram::{End, Event, Standing};
use netaware_io::clock;
use netaware_record::{IpVersion, Use};
use netaware_stream::{
    AsyncDualDatagram, Callback, Choice, ConnectError, DatagramOptions, DecidedBy, DualDatagram, PeerId,
    Reason, Rules, Wanted,
};
use netaware_units::{Mono, Span};
use netaware_wire::Token;
use netaware_wire::dual::{
    COOKIE_LEN, DATAGRAM_HEAD_LEN, DatagramBody, DatagramHead, DatagramKind, HELLO_LEN, Join, PROBE_LEN,
    Probe,
};

const V4: IpVersion = IpVersion::V4;
const V6: IpVersion = IpVersion::V6;
const HERE: PeerId = PeerId::CONNECTED;

fn bound() -> DualDatagram {
    DualDatagram::bind(0, DatagramOptions::default()).unwrap()
}

fn addresses(bound: &DualDatagram) -> [SocketAddr; 2] {
    let port = bound.addresses()[0].port();
    [SocketAddr::from((Ipv6Addr::LOCALHOST, port)), SocketAddr::from((Ipv4Addr::LOCALHOST, port))]
}

fn connected(bound: &DualDatagram, options: DatagramOptions) -> DualDatagram {
    DualDatagram::connect_to("loopback", &addresses(bound), options).unwrap()
}

/// With both versions up at both ends.
fn pair_with(options: DatagramOptions) -> (DualDatagram, DualDatagram) {
    let bound = DualDatagram::bind(0, options).unwrap();
    let opener = connected(&bound, options);
    wait_for(|| {
        [&opener, &bound].iter().all(|end| {
            end.status(HERE)
                .is_some_and(|it| it.v4.standing == Standing::Up && it.v6.standing == Standing::Up)
        })
    });
    (opener, bound)
}

fn pair() -> (DualDatagram, DualDatagram) {
    pair_with(DatagramOptions::default())
}

fn wait_for(done: impl Fn() -> bool) {
    let deadline = clock::now() + Span::from_secs(15);
    while !done() {
        assert!(clock::now() < deadline, "it did not come in 15 seconds");
        pause(2);
    }
}

fn pause(millis: i64) {
    clock::sleep(Span::from_millis(millis));
}

/// A socket whose port refuses all datagrams: it is connected to an address that sends none. While
/// it lives, no other program gets the port.
fn refusing() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect("127.0.0.1:9").unwrap();
    socket
}

fn soon() -> Mono {
    clock::now() + Span::from_secs(5)
}

#[test]
fn datagrams_go_both_ways_whole() {
    let (opener, bound) = pair();
    opener.send(b"question").unwrap();
    let mut buffer = [0; 100];
    let (count, peer) = bound.recv_from_until(&mut buffer, Some(soon())).unwrap();
    assert_eq!(&buffer[..count], b"question");
    bound.send_to(b"answer", peer).unwrap();
    bound.send_to(b"", peer).unwrap();
    bound.send_to(&vec![7; 60_000], peer).unwrap();
    let lengths: Vec<usize> =
        (0..3).map(|_| opener.recv_from_until(&mut buffer, Some(soon())).unwrap().0).collect();
    assert_eq!(lengths, [6, 0, 100], "the last one is cut off to the buffer");
    let error = opener.send(&vec![0; 65_507]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_bound_socket_tells_its_peers_apart() {
    let bound = bound();
    let openers: Vec<DualDatagram> = (0..5).map(|_| connected(&bound, DatagramOptions::default())).collect();
    for (n, opener) in openers.iter().enumerate() {
        opener.send(&[n as u8]).unwrap();
    }
    let mut buffer = [0; 10];
    let mut peers = BTreeSet::new();
    for _ in 0..5 {
        let (count, peer) = bound.recv_from_until(&mut buffer, Some(soon())).unwrap();
        assert!(peers.insert(peer));
        bound.send_to(&buffer[..count], peer).unwrap();
    }
    for (n, opener) in openers.iter().enumerate() {
        assert_eq!(opener.recv_from_until(&mut buffer, Some(soon())).unwrap().0, 1);
        assert_eq!(usize::from(buffer[0]), n);
    }
    assert_eq!(bound.peers().len(), 5);
}

#[test]
fn nothing_is_lost_or_comes_twice_while_it_switches_all_the_time() {
    let (opener, bound) = pair();
    let count = 20_000_u32;
    // The sender keeps close to the receiver: the room of a loaded machine's buffers is no part of
    // the claim.
    let taken = Arc::new(AtomicU32::new(0));
    let sender = {
        let (opener, taken) = (opener.clone(), taken.clone());
        thread::spawn(move || {
            let mut to = V4;
            for n in 0..count {
                if n % 1000 == 0 {
                    opener.switch(HERE, to).unwrap();
                    to = to.other();
                }
                opener.send(&n.to_be_bytes()).unwrap();
                while n.saturating_sub(taken.load(Ordering::Acquire)) > 200 {
                    pause(1);
                }
            }
        })
    };
    let mut came = vec![false; count as usize];
    let mut buffer = [0; 10];
    for _ in 0..count {
        let (length, _) = bound.recv_from_until(&mut buffer, Some(soon())).unwrap();
        let n = u32::from_be_bytes(buffer[..length].try_into().unwrap()) as usize;
        assert!(!std::mem::replace(&mut came[n], true), "{n} came twice");
        taken.fetch_add(1, Ordering::Release);
    }
    sender.join().unwrap();
    assert!(bound.recv_from_until(&mut buffer, Some(clock::now() + Span::from_millis(200))).is_err());
    let status = bound.status(HERE).unwrap();
    assert!(status.repeated > 0 && status.v4.received > 1000 && status.v6.received > 1000, "{status:?}");
    let turned = opener.happened().iter().filter(|it| matches!(it.event, Event::Turned { .. })).count();
    assert!((18..=20).contains(&turned), "{turned}");
}

#[test]
fn the_peer_comes_along_and_both_see_round_trips() {
    let (opener, bound) = pair();
    assert_eq!(opener.status(HERE).unwrap().current, Some(V6));
    bound.switch(HERE, V4).unwrap();
    wait_for(|| opener.status(HERE).unwrap().current == Some(V4));
    let reason = opener.happened().iter().find_map(|it| match it.event {
        Event::Turned { reason, .. } => Some(reason),
        _ => None,
    });
    assert_eq!(reason, Some(Reason::PeersWish));
    wait_for(|| {
        [&opener, &bound].iter().all(|end| {
            let status = end.status(HERE).unwrap();
            [status.v4, status.v6].iter().all(|version| version.round_trip.is_some())
        })
    });
    let round_trip = opener.status(HERE).unwrap().v4.round_trip.unwrap();
    assert!(round_trip < Span::from_secs(1), "{round_trip}");
}

#[test]
fn a_bystander_keeps_nobody_from_receiving() {
    // Many receivers on one socket: each datagram goes to one of them.
    let (opener, bound) = pair();
    let got = Arc::new(Mutex::new(BTreeSet::new()));
    // The sender waits for the receivers, so that the socket's buffer does not overflow.
    let taken = Arc::new(AtomicU32::new(0));
    let receivers: Vec<_> = (0..4)
        .map(|_| {
            let (bound, got, taken) = (bound.clone(), got.clone(), taken.clone());
            thread::spawn(move || {
                let mut buffer = [0; 4];
                while bound.recv_from_until(&mut buffer, Some(clock::now() + Span::from_secs(1))).is_ok() {
                    got.lock().unwrap().insert(u32::from_be_bytes(buffer));
                    taken.fetch_add(1, Ordering::Release);
                }
            })
        })
        .collect();
    for n in 0..1000_u32 {
        opener.send(&n.to_be_bytes()).unwrap();
        if n % 50 == 0 {
            pause(1);
        }
        wait_for(|| n.saturating_sub(taken.load(Ordering::Acquire)) <= 200);
    }
    for receiver in receivers {
        receiver.join().unwrap();
    }
    assert_eq!(got.lock().unwrap().len(), 1000);
}

#[test]
fn the_end_is_told() {
    let (opener, bound) = pair();
    let mut buffer = [0; 4];
    drop(opener);
    wait_for(|| bound.peers().is_empty());
    assert!(bound.happened().iter().any(|it| it.event == Event::Ended(End::PeerClosed)));
    assert_eq!(bound.send_to(b"x", HERE).unwrap_err().kind(), ErrorKind::NotConnected);

    let (opener, bound) = pair();
    bound.close(HERE);
    assert_eq!(opener.recv(&mut buffer).unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(opener.send(b"x").unwrap_err().to_string(), "the peer has ended the session");
}

#[test]
fn a_receiver_does_not_wait_longer_than_it_says() {
    let (opener, _bound) = pair();
    let deadline = clock::now() + Span::from_millis(60);
    let error = opener.recv_from_until(&mut [0; 10], Some(deadline)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(clock::now() < deadline + Span::from_secs(5));
}

#[test]
fn one_version_alone_nobody_there_and_no_address() {
    let bound = bound();
    let options = DatagramOptions { wanted: Wanted::Only(V4), ..DatagramOptions::default() };
    let opener = connected(&bound, options);
    opener.send(b"x").unwrap();
    assert_eq!(opener.status(HERE).unwrap().v6.standing, Standing::Unused);
    assert!(opener.switch(HERE, V6).is_err());

    let refusing = refusing();
    let nobody = refusing.local_addr().unwrap();
    let error = DualDatagram::connect_to("nobody", &[nobody], DatagramOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot connect to {nobody}: ")), "{error}");
    let only_v6 = [SocketAddr::from((Ipv6Addr::LOCALHOST, 1))];
    let error = DualDatagram::connect_to("loopback", &only_v6, options).unwrap_err();
    assert!(matches!(error, ConnectError::NoAddress { .. }), "{error}");

    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = DatagramOptions { connect_patience: Span::from_millis(600), ..DatagramOptions::default() };
    let error = DualDatagram::connect_to("silent", &[silent.local_addr().unwrap()], options).unwrap_err();
    let ConnectError::Failed { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), ErrorKind::TimedOut);
}

#[test]
fn the_next_address_is_tried_where_one_is_silent_and_where_one_refuses() {
    let bound = bound();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let refusing = refusing();
    let addresses = [refusing.local_addr().unwrap(), silent.local_addr().unwrap(), addresses(&bound)[1]];
    let opener = DualDatagram::connect_to("three", &addresses, DatagramOptions::default()).unwrap();
    assert_eq!(opener.address(HERE, V4), Some(addresses[2]));
}

#[test]
fn an_address_that_was_not_proven_gets_no_more_than_it_sent() {
    let bound = bound();
    let address = addresses(&bound)[1];
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut out = [0; PROBE_LEN];
    let mut buffer = [0; 2000];
    let mut ask = |body: DatagramBody, head: DatagramHead| {
        // An answer that is expected is waited for; that none comes can only be given some time.
        let wait = if matches!(body, DatagramBody::Unknown) { 300 } else { 15_000 };
        stranger.set_read_timeout(Some(std::time::Duration::from_millis(wait))).unwrap();
        let length = body.emit(head, &mut out);
        stranger.send_to(&out[..length], address).unwrap();
        let answer = stranger.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec());
        assert!(answer.as_ref().is_none_or(|answer| answer.len() <= length));
        answer
    };
    let hello = |cookie| DatagramBody::Hello { speaks: (1, 1), join: Join::New, cookie };
    let head = DatagramHead::set_up(DatagramKind::Hello, V4, 99);
    let answer = ask(hello(Token::default()), head).unwrap();
    assert_eq!((answer.len(), HELLO_LEN), (COOKIE_LEN, 48));
    assert!(bound.peers().is_empty(), "nothing is kept of it");
    let probe = DatagramHead { kind: DatagramKind::Probe, sequence: 1, sent_at: 1, ..head };
    let unknown = ask(DatagramBody::Probe(Probe::default()), probe).unwrap();
    assert_eq!(unknown.len(), DATAGRAM_HEAD_LEN);
    let unknown = DatagramHead::set_up(DatagramKind::Unknown, V4, 99);
    assert_eq!(ask(DatagramBody::Unknown, unknown), None, "that would go on for ever");
    // The right cookie from there, and the wrong one.
    assert_eq!(ask(hello(Token([1; 16])), head).unwrap().len(), COOKIE_LEN);
    let Ok((_, DatagramBody::Cookie(cookie))) = DatagramHead::parse(&answer) else { panic!("{answer:?}") };
    let Ok((_, welcome)) = DatagramHead::parse(&ask(hello(cookie), head).unwrap()) else {
        panic!("no welcome")
    };
    assert_eq!(welcome, DatagramBody::Welcome { version: 1 });
    assert_eq!(bound.peers().len(), 1);
    // Another address cannot use that session.
    let thief = UdpSocket::bind("127.0.0.1:0").unwrap();
    let data = DatagramHead { kind: DatagramKind::Data, sequence: 1, number: 1, sent_at: 5, ..head };
    thief.send_to(&data.emit(), address).unwrap();
    assert!(bound.recv_from_until(&mut [0; 9], Some(clock::now() + Span::from_millis(200))).is_err());
    assert!(bound.socket_status().strangers >= 2);
}

#[test]
fn what_nobody_receives_is_dropped_and_counted() {
    let options = DatagramOptions { inbox: 10_000, ..DatagramOptions::default() };
    let (opener, bound) = pair_with(options);
    for _ in 0..50 {
        opener.send(&[0; 1000]).unwrap();
    }
    wait_for(|| bound.socket_status().dropped == 40);
    let mut buffer = [0; 1000];
    for _ in 0..10 {
        bound.recv_from_until(&mut buffer, Some(soon())).unwrap();
    }
    opener.send(b"more").unwrap();
    assert_eq!(bound.recv_from_until(&mut buffer, Some(soon())).unwrap().0, 4);
}

#[test]
fn an_event_loop_and_tokio_see_what_would_not_wait() {
    let (opener, bound) = pair();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let [opener, bound] = [opener, bound].map(|end| AsyncDualDatagram::new(end).unwrap());
        let mut buffer = [0; 10];
        let echo = async {
            let mut buffer = [0; 10];
            for _ in 0..200 {
                let (count, peer) = bound.recv_from(&mut buffer).await.unwrap();
                bound.send_to(&buffer[..count], peer).await.unwrap();
            }
        };
        let ask = async {
            for n in 0..200_u32 {
                opener.send(&n.to_be_bytes()).await.unwrap();
                if n == 100 {
                    opener.socket().switch(HERE, V4).unwrap();
                }
                assert_eq!(opener.recv(&mut buffer).await.unwrap(), 4);
                assert_eq!(buffer[..4], n.to_be_bytes());
            }
        };
        tokio::join!(echo, ask);
        assert_eq!(opener.socket().status(HERE).unwrap().current, Some(V4));
    });
}

#[test]
fn rules_that_do_not_fit_datagrams_are_refused() {
    let options = DatagramOptions { policy: Some(Rules::of(Use::Bulk)), ..DatagramOptions::default() };
    let error = DualDatagram::bind(0, options).unwrap_err();
    assert!(error.to_string().contains("interactive"), "{error}");
    let (opener, _bound) = pair();
    assert!(opener.set_policy(Some(Rules::of(Use::Bulk))).is_err());
    assert!(opener.set_policy(Some(Rules::of(Use::Interactive))).is_ok());
}

#[test]
fn a_callback_decides_for_all_sessions_of_a_bound_socket() {
    let every = Span::from_millis(100);
    let options = DatagramOptions { every, ..DatagramOptions::default() };
    let (opener, bound) = pair_with(options);
    bound.set_policy(Some(Rules { every, ..Rules::of(Use::Interactive) })).unwrap();
    let seen = Arc::new(AtomicBool::new(false));
    let saw = seen.clone();
    bound.set_policy_callback(Some(Callback::new(move |evidence| {
        let rtts = [evidence.v4, evidence.v6].map(|version| version.round_trip);
        saw.store(rtts.iter().all(Option::is_some), Ordering::SeqCst);
        if saw.load(Ordering::SeqCst) { Choice::Use(V4) } else { Choice::Keep }
    })));
    wait_for(|| opener.status(HERE).unwrap().current == Some(V4));
    assert!(seen.load(Ordering::SeqCst));
    let decisions = bound.decisions();
    assert_eq!(decisions.len(), 1, "{decisions:?}");
    assert_eq!((decisions[0].1.to, decisions[0].1.by), (V4, DecidedBy::Callback));
    bound.set_policy_callback(None);
}

/// Passes datagrams on as a NAT does, each client from a port of its own, until it is told not to.
struct Passage {
    address: SocketAddr,
    open: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<usize>>,
}

impl Passage {
    fn to(server: SocketAddr) -> Self {
        let front = UdpSocket::bind("[::1]:0").unwrap();
        let address = front.local_addr().unwrap();
        front.set_read_timeout(Some(std::time::Duration::from_millis(1))).unwrap();
        let [open, ended] = [true, false].map(|it| Arc::new(AtomicBool::new(it)));
        let (is_open, is_ended) = (open.clone(), ended.clone());
        let thread = thread::spawn(move || {
            let mut clients: Vec<(SocketAddr, UdpSocket)> = Vec::new();
            let mut buffer = [0; 2000];
            while !is_ended.load(Ordering::SeqCst) {
                let passes = is_open.load(Ordering::SeqCst);
                if let Ok((count, from)) = front.recv_from(&mut buffer)
                    && passes
                {
                    if clients.iter().all(|(client, _)| *client != from) {
                        let own = UdpSocket::bind("[::1]:0").unwrap();
                        own.connect(server).unwrap();
                        own.set_nonblocking(true).unwrap();
                        clients.push((from, own));
                    }
                    let own = clients.iter().find(|(client, _)| *client == from);
                    let _ = own.map(|(_, own)| own.send(&buffer[..count]));
                }
                for (client, own) in &clients {
                    while let Ok(count) = own.recv(&mut buffer) {
                        let _ = passes.then(|| front.send_to(&buffer[..count], client));
                    }
                }
            }
            clients.len()
        });
        Self { address, open, ended, thread: Some(thread) }
    }

    /// How many clients it has had.
    fn end(mut self) -> usize {
        self.ended.store(true, Ordering::SeqCst);
        self.thread.take().map_or(0, |thread| thread.join().unwrap())
    }
}

#[test]
fn a_version_that_falls_silent_is_left_and_comes_back_from_another_port() {
    let bound = bound();
    let [v6, v4] = addresses(&bound);
    let passage = Passage::to(v6);
    let options = DatagramOptions { every: Span::from_millis(200), ..DatagramOptions::default() };
    let opener = DualDatagram::connect_to("passage", &[passage.address, v4], options).unwrap();
    let standing = || opener.status(HERE).unwrap().v6.standing;
    wait_for(|| opener.status(HERE).unwrap().v4.standing == Standing::Up && standing() == Standing::Up);
    assert_eq!(opener.status(HERE).unwrap().current, Some(V6));
    passage.open.store(false, Ordering::SeqCst);
    wait_for(|| {
        opener.send(b"x").unwrap();
        opener.status(HERE).unwrap().current == Some(V4)
    });
    assert_eq!(standing(), Standing::Silent);
    while bound.recv_from_until(&mut [0; 9], Some(clock::now() + Span::from_millis(100))).is_ok() {}
    opener.send(b"over IPv4").unwrap();
    assert_eq!(bound.recv_from_until(&mut [0; 9], Some(soon())).unwrap().0, 9);
    // Long enough for a few hellos in vain.
    pause(1500);
    passage.open.store(true, Ordering::SeqCst);
    wait_for(|| standing() == Standing::Up);
    opener.switch(HERE, V6).unwrap();
    wait_for(|| bound.status(HERE).is_some_and(|it| it.current == Some(V6)));
    opener.send(b"IPv6").unwrap();
    assert_eq!(bound.recv_from_until(&mut [0; 9], Some(soon())).unwrap().0, 4);
    assert_eq!(bound.peers().len(), 1, "the same session");
    assert!(passage.end() > 1, "from another port");
}
