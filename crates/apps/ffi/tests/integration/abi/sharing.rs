//! Streams among threads, and in event loops; bytes from several places.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::thread;

use libc::iovec;
use netaware::{
    NA_DONTWAIT, NA_NONBLOCK, NA_SHUT_WR, na_accept, na_close, na_connect, na_poll_fd, na_recv, na_send,
    na_setsockopt, na_shutdown, na_socket, na_writev,
};

use super::{BOTH, datagrams, errno, listening, streams, words};

/// Whether a descriptor shows these within so many milliseconds.
fn shows(descriptor: c_int, events: i16, within: c_int) -> bool {
    let mut polled = libc::pollfd { fd: descriptor, events, revents: 0 };
    // SAFETY: one of them.
    let ready = unsafe { libc::poll(&raw mut polled, 1, within) };
    assert!(ready >= 0 && polled.revents & libc::POLLNVAL == 0);
    polled.revents & events != 0
}

fn send(stream: c_int, bytes: &[u8]) -> isize {
    // SAFETY: a slice.
    unsafe { na_send(stream, bytes.as_ptr().cast(), bytes.len(), 0) }
}

fn receive(stream: c_int, out: &mut [u8]) -> isize {
    // SAFETY: a slice.
    unsafe { na_recv(stream, out.as_mut_ptr().cast(), out.len(), 0) }
}

#[test]
fn poll_shows_when_a_call_would_not_wait() {
    let (listener, port) = listening();
    let listening = na_poll_fd(listener);
    assert!(listening >= 0 && !shows(listening, libc::POLLIN, 100), "nobody has connected");
    let client = na_socket(netaware::NA_DUAL);
    assert_eq!(na_setsockopt(client, netaware::NA_WINDOW, 50_000), 0);
    // SAFETY: a text.
    assert_eq!(unsafe { na_connect(client, BOTH.as_ptr(), port) }, 0, "{}", words());
    assert!(shows(listening, libc::POLLIN, 5000));
    let server = na_accept(listener);
    assert!(server > 0 && !shows(listening, libc::POLLIN, 100), "{}", words());

    let [at_client, at_server] = [client, server].map(|number| na_poll_fd(number));
    assert_eq!(na_poll_fd(client), at_client, "the same one each time");
    assert!(shows(at_client, libc::POLLOUT, 5000) && !shows(at_server, libc::POLLIN, 100));
    for number in [client, server] {
        assert_eq!(na_setsockopt(number, NA_NONBLOCK, 1), 0);
    }
    // Until there is no room: the peer's window and this end's own.
    let mut sent = 0;
    loop {
        match send(client, &[7; 10_000]) {
            -1 if errno() == libc::EAGAIN => {
                if !shows(at_client, libc::POLLOUT, 300) {
                    break;
                }
            }
            count => sent += usize::try_from(count).expect("no other error"),
        }
        assert!(sent < 50 << 20, "there is no end to the room");
    }
    assert!(shows(at_server, libc::POLLIN, 5000));
    let (mut got, mut buffer) = (0, [0; 10_000]);
    while got < sent {
        assert!(shows(at_server, libc::POLLIN, 5000), "{got} of {sent}");
        match receive(server, &mut buffer) {
            -1 => assert_eq!(errno(), libc::EAGAIN),
            count => got += count.unsigned_abs(),
        }
    }
    assert!(shows(at_client, libc::POLLOUT, 5000), "there is room again");
    assert!(!shows(at_server, libc::POLLIN, 100));
    assert_eq!(na_shutdown(client, NA_SHUT_WR), 0);
    assert!(shows(at_server, libc::POLLIN, 5000) && receive(server, &mut buffer) == 0, "the end");
    for number in [listener, client, server] {
        assert_eq!(na_close(number), 0);
    }
}

#[test]
fn poll_shows_datagrams_that_have_come() {
    let (client, bound) = datagrams();
    let descriptor = na_poll_fd(bound);
    assert!(!shows(descriptor, libc::POLLIN, 100) && shows(descriptor, libc::POLLOUT, 100));
    assert_eq!(send(client, b"one"), 3);
    assert!(shows(descriptor, libc::POLLIN, 5000));
    assert_eq!(receive(bound, &mut [0; 8]), 3);
    assert!(!shows(descriptor, libc::POLLIN, 100));
    assert_eq!((na_close(client), na_close(bound)), (0, 0));
}

/// Two that send blocks and two that read them, all over one stream; meanwhile one more asks how it
/// stands and moves it.
#[test]
fn four_threads_on_one_number_lose_nothing() {
    const BLOCKS: u8 = 200;
    const BLOCK: usize = 9_000;
    let (client, server) = streams();
    let counted = Mutex::new([0_usize; 256]);
    thread::scope(|scope| {
        let senders = [0, 1].map(|which| {
            scope.spawn(move || {
                for number in (which..BLOCKS).step_by(2) {
                    assert_eq!(send(client, &[number; BLOCK]), BLOCK as isize, "{}", words());
                }
            })
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut buffer = vec![0; 5000];
                loop {
                    let count = receive(server, &mut buffer);
                    assert!(count >= 0, "{}", words());
                    if count == 0 {
                        return;
                    }
                    let mut counted = counted.lock().unwrap();
                    buffer[..count.unsigned_abs()].iter().for_each(|byte| counted[usize::from(*byte)] += 1);
                }
            });
        }
        scope.spawn(|| {
            let mut wishes = 0;
            for version in [netaware::NA_IPV4, netaware::NA_IPV6].repeat(5) {
                wishes += u32::from(netaware::na_switch(client, version) == 0);
                let _ = super::status(server);
                netaware_io::clock::sleep(netaware_units::Span::from_millis(3));
            }
            assert!(wishes > 0, "no switch could be asked for: {}", words());
        });
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(na_shutdown(client, NA_SHUT_WR), 0);
    });
    // In turns as the threads had them, so what each block is made of is all that is certain.
    let counted = counted.into_inner().unwrap();
    assert!(counted[..usize::from(BLOCKS)].iter().all(|count| *count == BLOCK), "{counted:?}");
    assert_eq!((na_close(client), na_close(server)), (0, 0));
}

fn part(bytes: &[u8]) -> iovec {
    iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() }
}

#[test]
fn bytes_from_several_places_come_behind_each_other() {
    let (client, server) = streams();
    let long = vec![3_u8; 700_000];
    let parts = [part(b"head"), part(b""), part(&long), part(b"tail")];
    // SAFETY: parts are what they are said to be, and nulls and numbers that the call has to
    // refuse.
    unsafe {
        let reader = thread::spawn(move || {
            let (mut all, mut buffer) = (Vec::new(), vec![0; 65_536]);
            loop {
                match receive(server, &mut buffer) {
                    0 => return all,
                    count => all.extend_from_slice(&buffer[..usize::try_from(count).unwrap()]),
                }
            }
        });
        assert_eq!(na_writev(client, parts.as_ptr(), 4, 0), 700_008, "{}", words());
        assert_eq!(na_writev(client, parts.as_ptr(), 0, 0), 0);
        assert_eq!(na_writev(client, [part(b"")].as_ptr(), 1, 0), 0);
        assert_eq!((na_writev(client, std::ptr::null(), 1, 0), errno()), (-1, libc::EFAULT));
        assert_eq!((na_writev(client, parts.as_ptr(), 1025, 0), errno()), (-1, libc::EINVAL));
        assert_eq!((na_writev(client, parts.as_ptr(), -1, 0), errno()), (-1, libc::EINVAL));
        assert_eq!((na_writev(client, parts.as_ptr(), 4, 64), errno()), (-1, libc::EINVAL));
        assert_eq!(na_shutdown(client, NA_SHUT_WR), 0);
        let got = reader.join().unwrap();
        assert!(got == [&b"head"[..], &long, b"tail"].concat());
    }
    assert_eq!((na_close(client), na_close(server)), (0, 0));
}

#[test]
fn of_datagrams_parts_are_one() {
    let (client, bound) = datagrams();
    let long = vec![0; 40_000];
    // SAFETY: parts are what they are said to be.
    unsafe {
        assert_eq!(na_writev(client, [part(b"one "), part(b"word")].as_ptr(), 2, NA_DONTWAIT), 8);
        let mut buffer = [0; 16];
        assert_eq!((receive(bound, &mut buffer), &buffer[..8]), (8, &b"one word"[..]));
        let parts = [part(&long), part(&long)];
        assert_eq!((na_writev(client, parts.as_ptr(), 2, 0), errno()), (-1, libc::EMSGSIZE));
    }
    assert_eq!((na_close(client), na_close(bound)), (0, 0));
}
