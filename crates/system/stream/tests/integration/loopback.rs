//! Streams over both loopback addresses, with the kernel's TCP below.

use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use netaware_io::clock;
use netaware_record::{IpVersion, Use};
use netaware_stream::{
    Callback, Choice, ConnectError, DecidedBy, DualListener, DualStream, Event, Options, Outcome, Rules,
    Standing, Wanted,
};
use netaware_units::Span;
use netaware_wire::dual::{OPENING_LEN, WELCOME_LEN, Welcome};

const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

fn listener() -> DualListener {
    DualListener::bind(0, Options::default()).unwrap()
}

/// Of a listener, first IPv6.
fn addresses(listener: &DualListener) -> [SocketAddr; 2] {
    let port = listener.addresses()[0].port();
    [SocketAddr::from((Ipv6Addr::LOCALHOST, port)), SocketAddr::from((Ipv4Addr::LOCALHOST, port))]
}

fn pair_with(options: Options) -> (DualStream, DualStream, DualListener) {
    let listener = listener();
    let opener = DualStream::connect_to("loopback", &addresses(&listener), options).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    (opener, acceptor, listener)
}

/// With both connections up.
fn pair() -> (DualStream, DualStream, DualListener) {
    both_up(Options::default())
}

fn both_up(options: Options) -> (DualStream, DualStream, DualListener) {
    let (opener, acceptor, listener) = pair_with(options);
    wait_for(|| {
        [&opener, &acceptor].iter().all(|end| end.status().v4.is_some() && end.status().v6.is_some())
    });
    agree(&opener, &acceptor);
    (opener, acceptor, listener)
}

/// An opener begins with a wish for the connection that it has: while that is under way one of the
/// acceptor's would cross it. What comes after its answer, on the same connection, shows that it is
/// over.
fn agree(opener: &DualStream, acceptor: &DualStream) {
    for [mut from, to] in [[opener, acceptor], [acceptor, opener]] {
        from.write_all(b"x").unwrap();
        assert_eq!(to.recv(&mut [0]).unwrap(), 1);
    }
}

fn wait_for(done: impl Fn() -> bool) {
    let deadline = clock::now() + Span::from_secs(10);
    while !done() {
        assert!(clock::now() < deadline, "it did not come in ten seconds");
        clock::sleep_until(clock::now() + Span::from_millis(2));
    }
}

fn soon() -> netaware_units::Mono {
    clock::now() + Span::from_secs(20)
}

/// Byte `n` of every test's stream.
fn byte(n: u64) -> u8 {
    (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn send_all(stream: &DualStream, bytes: u64, block: usize, mut meanwhile: impl FnMut(u64)) {
    let mut sent = 0;
    let mut buffer = Vec::new();
    while sent < bytes {
        meanwhile(sent);
        let count = (block as u64).min(bytes - sent);
        buffer.clear();
        buffer.extend((sent..sent + count).map(byte));
        (&*stream).write_all(&buffer).unwrap();
        sent += count;
    }
}

fn check_all(stream: &DualStream, bytes: u64, block: usize) {
    let mut buffer = vec![0; block];
    let mut read = 0;
    loop {
        let count = stream.recv(&mut buffer).unwrap();
        if count == 0 {
            break;
        }
        for (n, got) in (read..).zip(&buffer[..count]) {
            assert_eq!(*got, byte(n), "byte {n}");
        }
        read += count as u64;
    }
    assert_eq!(read, bytes);
}

#[test]
fn bytes_go_both_ways_and_both_ends_finish() {
    let (opener, acceptor, _listener) = pair();
    (&opener).write_all(b"question").unwrap();
    let mut got = [0; 8];
    (&acceptor).read_exact(&mut got).unwrap();
    assert_eq!(&got, b"question");
    (&acceptor).write_all(b"answer").unwrap();
    acceptor.shutdown(Shutdown::Write);
    let mut rest = Vec::new();
    (&opener).read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"answer");
    opener.finish(soon()).unwrap();
    acceptor.finish(soon()).unwrap();
    assert_eq!(opener.status().standing, Standing::Finished);
    assert!(opener.send(b"more").is_err());
}

#[test]
fn bytes_that_lie_in_several_places_come_in_order_up_to_what_there_is_room_for() {
    let (opener, acceptor, _listener) = pair_with(Options { window: 50_000, ..Options::default() });
    let bytes: Vec<u8> = (0..60_000).map(byte).collect();
    let (head, rest) = bytes.split_at(100);
    let parts = [&[], head, &[], &rest[..7], &rest[7..], &[]].map(IoSlice::new);
    assert_eq!((&opener).write_vectored(&[IoSlice::new(&[]); 2]).unwrap(), 0);
    let sent = opener.send_vectored_until(&parts, Some(clock::now())).unwrap();
    assert_eq!(sent, 50_000, "all parts, as far as there is room");
    let mut got = vec![0; sent];
    (&acceptor).read_exact(&mut got).unwrap();
    assert!(got == bytes[..sent]);
    let sent = (&opener).write_vectored(&parts[1..4]).unwrap();
    let mut got = vec![0; sent];
    (&acceptor).read_exact(&mut got).unwrap();
    assert!(sent == 107 && got == bytes[..107]);
}

#[test]
fn every_byte_comes_once_while_it_switches_all_the_time() {
    // A turn ends when what went the old way is acknowledged: the less there is, the more turns.
    let (opener, acceptor, _listener) = both_up(Options { window: 500_000, ..Options::default() });
    let bytes = 40_000_000;
    let reader = thread::spawn(move || {
        check_all(&acceptor, bytes, 30_000);
        acceptor.finish(soon()).unwrap();
    });
    let mut switches = 0;
    send_all(&opener, bytes, 50_000, |sent| {
        if sent % 500_000 == 0 {
            switches += usize::from(opener.switch(BOTH[switches % 2]).is_ok());
        }
    });
    opener.finish(soon()).unwrap();
    reader.join().unwrap();
    let happened = opener.happened();
    let turned = happened.iter().filter(|it| matches!(it.event, Event::Turned { .. })).count();
    assert!(turned > 3, "{turned} turns of {switches} wishes");
}

#[test]
fn both_ends_switch_and_send_at_once() {
    let (opener, acceptor, _listener) = pair();
    let bytes = 10_000_000;
    let ends = [opener, acceptor];
    let threads = ends.clone().into_iter().enumerate().flat_map(|(n, end)| {
        let other = end.clone();
        [
            thread::spawn(move || check_all(&other, bytes, 20_000)),
            thread::spawn(move || {
                let mut turn = n;
                send_all(&end, bytes, 33_333, |_| {
                    turn += 1;
                    let _ = end.switch(BOTH[turn / 7 % 2]);
                });
                end.shutdown(Shutdown::Write);
            }),
        ]
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
    for end in ends {
        let turned = end.happened().iter().filter(|it| matches!(it.event, Event::Turned { .. })).count();
        assert!(turned > 0, "it has never changed its version");
        end.finish(soon()).unwrap();
    }
}

#[test]
fn connections_that_die_cost_no_byte_and_come_anew() {
    let (opener, acceptor, _listener) = pair();
    let bytes = 30_000_000;
    let reader = acceptor.clone();
    let reader = thread::spawn(move || check_all(&reader, bytes, 64_000));
    let mut cuts = 0;
    send_all(&opener, bytes, 50_000, |sent| {
        let both_up = opener.status().v4.is_some() && opener.status().v6.is_some();
        if sent % 5_000_000 == 0 && both_up {
            let victim = if cuts % 2 == 0 { &opener } else { &acceptor };
            victim.cut(victim.status().current.unwrap_or(IpVersion::V6));
            cuts += 1;
        }
    });
    opener.shutdown(Shutdown::Write);
    reader.join().unwrap();
    assert!(cuts > 0);
    acceptor.finish(soon()).unwrap();
    opener.finish(soon()).unwrap();
}

#[test]
fn both_dead_is_a_pause() {
    let (opener, acceptor, _listener) = pair();
    (&opener).write_all(b"before").unwrap();
    for ip in BOTH {
        opener.cut(ip);
    }
    (&opener).write_all(b" and after").unwrap();
    let mut got = [0; 16];
    (&acceptor).read_exact(&mut got).unwrap();
    assert_eq!(&got, b"before and after");
}

#[test]
fn an_idle_stream_answers_wishes() {
    let (opener, acceptor, _listener) = pair();
    let before = opener.status().current.unwrap();
    let to = if before == IpVersion::V4 { IpVersion::V6 } else { IpVersion::V4 };
    let serial = acceptor.switch(to).unwrap();
    wait_for(|| opener.status().current == Some(to) && acceptor.status().current == Some(to));
    wait_for(|| {
        let ended = Event::WishEnded { serial, outcome: Outcome::Granted };
        acceptor.happened().iter().any(|it| it.event == ended)
    });
}

#[test]
fn a_reader_that_waits_hears_of_the_end() {
    let (opener, acceptor, _listener) = pair();
    let reader = thread::spawn(move || acceptor.recv(&mut [0; 10]));
    clock::sleep_until(clock::now() + Span::from_millis(50));
    opener.shutdown(Shutdown::Both);
    assert!(reader.join().unwrap().is_err());
}

#[test]
fn a_reader_does_not_wait_longer_than_it_says() {
    let (opener, _acceptor, _listener) = pair();
    let began_at = clock::now();
    let error = opener.recv_until(&mut [0; 10], Some(began_at + Span::from_millis(60))).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(clock::now() - began_at < Span::from_secs(5));
}

#[test]
fn a_sender_waits_for_a_reader_that_does_not_read() {
    let options = Options { window: 100_000, ..Options::default() };
    let (opener, acceptor, _listener) = pair_with(options);
    let sender = thread::spawn(move || {
        send_all(&opener, 3_000_000, 10_000, |_| {});
        opener.shutdown(Shutdown::Write);
        opener
    });
    clock::sleep_until(clock::now() + Span::from_millis(100));
    assert!(!sender.is_finished());
    check_all(&acceptor, 3_000_000, 7_000);
    acceptor.finish(soon()).unwrap();
    sender.join().unwrap().finish(soon()).unwrap();
}

#[test]
fn dropping_the_last_clone_sends_what_there_is() {
    let (opener, acceptor, _listener) = pair();
    send_all(&opener, 2_000_000, 100_000, |_| {});
    drop(opener.clone());
    drop(opener);
    check_all(&acceptor, 2_000_000, 100_000);
}

#[test]
fn one_version_alone_and_no_address_at_all() {
    let listener = listener();
    let options = Options { wanted: Wanted::Only(IpVersion::V4), ..Options::default() };
    let stream = DualStream::connect_to("loopback", &addresses(&listener), options).unwrap();
    assert!(stream.status().v4.is_some() && stream.status().v6.is_none());
    assert!(stream.switch(IpVersion::V6).is_err());
    let v6 = [SocketAddr::from((Ipv6Addr::LOCALHOST, 1))];
    let error = DualStream::connect_to("loopback", &v6, options).unwrap_err();
    assert!(matches!(error, ConnectError::NoAddress { .. }), "{error}");
}

#[test]
fn nobody_there_and_somebody_else_there_are_told_apart() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = DualStream::connect_to("nobody", &[nobody], Options::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot connect to {nobody}: ")), "{error}");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let server =
        thread::spawn(move || other.accept().unwrap().0.write_all(b"220 mail.example.net ESMTP ready\r\n"));
    let error = DualStream::connect_to("mail", &[address], Options::default()).unwrap_err();
    assert!(error.to_string().contains("does not speak the framing"), "{error}");
    server.join().unwrap().unwrap();
}

#[test]
fn strangers_are_closed_and_a_join_without_a_stream_is_refused() {
    use netaware_wire::Token;
    use netaware_wire::dual::{Join, Opening, Refusal};
    let listener = listener();
    let address = addresses(&listener)[1];
    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.write_all(&[b'x'; 100]).unwrap();
    let mut got = Vec::new();
    let _ = stranger.read_to_end(&mut got);
    assert!(got.is_empty());
    let opening = Opening {
        speaks: (1, 1),
        join: Join::Existing,
        ip: IpVersion::V4,
        generation: 1,
        room: 1000,
        received: 0,
        stream: Token([7; 16]),
    };
    let ask = |opening: Opening| {
        let mut joiner = TcpStream::connect(address).unwrap();
        joiner.write_all(&opening.emit()).unwrap();
        let mut bytes = [0; WELCOME_LEN];
        joiner.read_exact(&mut bytes).unwrap();
        Welcome::parse(&bytes, (1, 9)).unwrap()
    };
    assert_eq!(ask(opening), Welcome::Refused(Refusal::Stream));
    assert_eq!(ask(Opening { speaks: (2, 9), ..opening }), Welcome::Refused(Refusal::Version));
}

/// Before the listener's IPv4 address; the first connection ends when the listener has taken it,
/// but before its welcome comes.
fn loses_the_first_welcome(to: SocketAddr) -> SocketAddr {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap();
    thread::spawn(move || {
        let (mut client, _) = proxy.accept().unwrap();
        let mut server = TcpStream::connect(to).unwrap();
        let (mut opening, mut welcome) = ([0; OPENING_LEN], [0; WELCOME_LEN]);
        client.read_exact(&mut opening).unwrap();
        server.write_all(&opening).unwrap();
        server.read_exact(&mut welcome).unwrap();
        drop((client, server));
        let (client, _) = proxy.accept().unwrap();
        let server = TcpStream::connect(to).unwrap();
        let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
        let _ = std::io::copy(&mut { server }, &mut { client });
    });
    address
}

#[test]
fn a_welcome_that_got_lost_does_not_shut_its_version_out() {
    let listener = listener();
    let [v6, v4] = addresses(&listener);
    let opener =
        DualStream::connect_to("loopback", &[v6, loses_the_first_welcome(v4)], Options::default()).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    wait_for(|| [&opener, &acceptor].iter().all(|end| end.status().v4.is_some()));
}

#[test]
fn a_first_welcome_that_got_lost_costs_an_attempt_and_not_the_stream() {
    let listener = listener();
    let [v6, v4] = addresses(&listener);
    let options = Options { preferred: IpVersion::V4, ..Options::default() };
    let opener = DualStream::connect_to("loopback", &[loses_the_first_welcome(v4), v6], options).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    (&opener).write_all(b"word").unwrap();
    let mut word = [0; 4];
    (&acceptor).read_exact(&mut word).unwrap();
    assert_eq!(&word, b"word");
}

#[test]
fn a_version_that_dies_often_comes_back_as_soon_as_the_first_time() {
    let (opener, acceptor, _listener) = pair();
    for _ in 0..9 {
        // One that lives for a shorter time counts as another attempt that failed.
        clock::sleep_until(clock::now() + Span::from_millis(600));
        let before = opener.status().v4.unwrap().generation;
        opener.cut(IpVersion::V4);
        wait_for(|| {
            let later = |end: &DualStream| end.status().v4.is_some_and(|link| link.generation > before);
            later(&opener) && later(&acceptor)
        });
    }
}

#[test]
fn a_callback_sees_both_versions_and_its_decision_is_logged() {
    let (opener, acceptor, _listener) = pair();
    let before = opener.status().current.unwrap();
    opener.set_policy(Some(Rules { every: Span::from_millis(100), ..Rules::of(Use::Interactive) }));
    let threads = Arc::new(Mutex::new(Vec::new()));
    let (called_on, asked) = (threads.clone(), Arc::new(AtomicBool::new(false)));
    let told = asked.clone();
    opener.set_policy_callback(Some(Callback::new(move |evidence| {
        called_on.lock().unwrap().push(thread::current().name().map(str::to_owned));
        let known = BOTH.iter().all(|ip| evidence.of(*ip).up && evidence.of(*ip).round_trip.is_some());
        let once = known && !told.swap(known, Ordering::SeqCst);
        if once { Choice::Use(evidence.present.other()) } else { Choice::Keep }
    })));
    let reader = thread::spawn(move || while acceptor.recv(&mut [0; 10_000]).unwrap() > 0 {});
    wait_for(|| {
        (&opener).write_all(&[1; 10_000]).unwrap();
        opener.status().current == Some(before.other())
    });
    let decisions = opener.decisions();
    assert_eq!(decisions.len(), 1, "{decisions:?}");
    assert_eq!((decisions[0].by, decisions[0].to), (DecidedBy::Callback, before.other()));
    assert!(decisions[0].of.iter().all(|count| *count > 0), "{decisions:?}");
    assert!(threads.lock().unwrap().iter().all(|name| name.as_deref() == Some("dual-keeper")));
    opener.set_policy_callback(None);
    let calls = threads.lock().unwrap().len();
    clock::sleep_until(clock::now() + Span::from_millis(600));
    assert_eq!(threads.lock().unwrap().len(), calls, "not called any more");
    opener.shutdown(Shutdown::Write);
    reader.join().unwrap();
}

#[test]
fn a_listeners_callback_is_that_of_its_streams() {
    let listener = listener();
    let calls = Arc::new(AtomicUsize::new(0));
    let called = calls.clone();
    listener.set_policy_callback(Some(Callback::new(move |_| {
        called.fetch_add(1, Ordering::SeqCst);
        Choice::Keep
    })));
    let opener = DualStream::connect_to("loopback", &addresses(&listener), Options::default()).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    acceptor.set_policy(Some(Rules { every: Span::from_millis(100), ..Rules::of(Use::Interactive) }));
    wait_for(|| calls.load(Ordering::SeqCst) > 2);
    assert!(acceptor.decisions().is_empty());
    drop((opener, acceptor));
}

#[test]
fn a_sender_of_small_blocks_without_a_pause_hears_the_peers_wish() {
    let (opener, acceptor, _listener) = pair();
    let to = opener.status().current.unwrap().other();
    let reader = acceptor.clone();
    let reader = thread::spawn(move || while reader.recv(&mut [0; 10_000]).unwrap() > 0 {});
    acceptor.switch(to).unwrap();
    let mut sent = 0;
    while opener.status().current != Some(to) {
        (&opener).write_all(&[1; 100]).unwrap();
        sent += 100;
        // Shorter than a keeper waits for a pause of the callers.
        clock::sleep_until(clock::now() + Span::from_millis(1));
        assert!(sent < 100_000, "it does not hear it");
    }
    opener.shutdown(Shutdown::Write);
    reader.join().unwrap();
}

#[test]
fn the_loss_of_the_version_that_is_not_used_is_told_once_enough_packets_show_it() {
    let (opener, acceptor, _listener) = pair();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    opener.set_policy(Some(Rules { every: Span::from_millis(100), ..Rules::of(Use::Media) }));
    opener.set_policy_callback(Some(Callback::new(move |evidence| {
        let other = evidence.of(evidence.present.other());
        told.lock().unwrap().push((other.observations, other.loss));
        Choice::Keep
    })));
    let reader = thread::spawn(move || while acceptor.recv(&mut [0; 10_000]).unwrap() > 0 {});
    let deadline = soon();
    while seen.lock().unwrap().last().is_none_or(|(_, loss)| loss.is_none()) {
        assert!(clock::now() < deadline, "it is not told: {:?}", seen.lock().unwrap());
        (&opener).write_all(&[1; 3_000]).unwrap();
        clock::sleep_until(clock::now() + Span::from_millis(5));
    }
    opener.set_policy_callback(None);
    opener.shutdown(Shutdown::Write);
    reader.join().unwrap();
    let seen = seen.lock().unwrap();
    // At most 50 packets each second: there are looks before there is enough to be told.
    assert!(seen.iter().any(|(observations, loss)| *observations > 2 && loss.is_none()), "{seen:?}");
    let loss = seen.last().and_then(|(_, loss)| *loss);
    assert!(loss.is_some_and(|loss| loss < 0.05), "{seen:?}");
}

#[test]
fn a_listeners_rules_are_those_of_streams_accepted_from_then_on() {
    let options = Options { policy: Some(Rules::of(Use::Bulk)), ..Options::default() };
    let listener = DualListener::bind(0, options).unwrap();
    let connect = || DualStream::connect_to("loopback", &addresses(&listener), Options::default()).unwrap();
    // One that has come, but is not accepted, gets what there is when it is.
    let openers = [connect(), connect()];
    let (first, _) = listener.accept().unwrap();
    assert_eq!(first.policy(), Some(Rules::of(Use::Bulk)));
    listener.set_policy(Some(Rules::of(Use::Interactive)));
    let (second, _) = listener.accept().unwrap();
    assert_eq!(second.policy(), Some(Rules::of(Use::Interactive)));
    assert_eq!(first.policy(), Some(Rules::of(Use::Bulk)));
    listener.set_policy(None);
    let _third = connect();
    assert_eq!(listener.accept().unwrap().0.policy(), None);
    drop(openers);
}

#[test]
fn an_event_loop_sees_what_would_not_wait() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let options = Options { window: 50_000, ..Options::default() };
    let (opener, acceptor, _listener) = pair_with(options);
    let descriptors = [opener.descriptor().unwrap(), acceptor.descriptor().unwrap()];
    let shows = |which: usize, flags: PollFlags| {
        let mut polled = [PollFd::new(&descriptors[which], flags)];
        let timeout = Timespec { tv_sec: 5, tv_nsec: 0 };
        poll(&mut polled, Some(&timeout)).unwrap() == 1
    };
    let now = || Some(clock::now());
    let bytes = 400_000_u64;
    let sender = thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while sent < bytes {
                assert!(shows(0, PollFlags::OUT), "no room for five seconds");
                let block: Vec<u8> = (sent..(sent + 9000).min(bytes)).map(byte).collect();
                sent += opener.send_until(&block, now()).unwrap_or(0) as u64;
            }
            opener.shutdown(Shutdown::Write);
        });
        let mut read = 0;
        loop {
            assert!(shows(1, PollFlags::IN), "nothing for five seconds");
            let mut buffer = [0; 7000];
            match acceptor.recv_until(&mut buffer, now()) {
                Ok(0) => break read,
                Ok(count) => {
                    assert!((read..).zip(&buffer[..count]).all(|(n, got)| byte(n) == *got));
                    read += count as u64;
                }
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::TimedOut),
            }
        }
    });
    assert_eq!(sender, bytes);
}

#[test]
fn on_tokio_both_directions_go_at_once() {
    use netaware_stream::AsyncDualStream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, split};
    let (opener, acceptor, _listener) = pair();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let bytes: Vec<u8> = (0..3_000_000).map(byte).collect();
    let got = runtime.block_on(async {
        let ends = [AsyncDualStream::new(opener).unwrap(), AsyncDualStream::new(acceptor).unwrap()];
        let [(mut from_a, mut to_a), (mut from_b, mut to_b)] = ends.map(split);
        let send_a = async {
            assert!(tokio::io::AsyncWrite::is_write_vectored(&to_a));
            let (head, rest) = bytes.split_at(2);
            let sent = to_a.write_vectored(&[head, rest].map(IoSlice::new)).await.unwrap();
            assert!(sent > 2, "both of them");
            to_a.write_all(&bytes[sent..]).await.unwrap();
            to_a.shutdown().await.unwrap();
        };
        let send_b = async {
            to_b.write_all(&bytes).await.unwrap();
            to_b.shutdown().await.unwrap();
        };
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let read_a = async { from_a.read_to_end(&mut a).await.unwrap() };
        let read_b = async { from_b.read_to_end(&mut b).await.unwrap() };
        tokio::join!(send_a, send_b, read_a, read_b);
        [a, b]
    });
    assert!(got.iter().all(|got| *got == bytes));
}
