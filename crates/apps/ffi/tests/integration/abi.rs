//! Wrong calls are errors, never more.
#![expect(unsafe_code, reason = "the calls are for C")]

mod forking;
mod holding;
mod policies;
mod sharing;

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering};

use netaware::{
    NA_DGRAM, NA_DONTWAIT, NA_DUAL, NA_IPV4, NA_IPV6, NA_KEEP, NA_MSG_HOLD, NA_NONBLOCK, NA_RCVTIMEO,
    NA_SHUT_RDWR, NA_SHUT_WR, NA_WINDOW, NaEvidence, NaStatus, na_accept, na_bind, na_close, na_connect,
    na_getsockopt, na_listen, na_policy, na_policy_callback, na_poll_fd, na_recv, na_recvfrom, na_send,
    na_sendto, na_setsockopt, na_shutdown, na_socket, na_status, na_status_of, na_strerror, na_switch,
};

fn words() -> String {
    // SAFETY: what the library gives is a text until the next failure in this thread.
    unsafe { CStr::from_ptr(na_strerror()) }.to_string_lossy().into_owned()
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[test]
fn a_number_that_is_no_stream_is_told() {
    assert_eq!((na_close(4711), errno()), (-1, libc_ebadf()));
    assert_eq!(words(), "4711 is no stream");
    assert_eq!(na_switch(4711, NA_IPV6), -1);
    let stream = na_socket(NA_DUAL);
    assert!(stream > 0);
    assert_eq!(na_close(stream), 0);
    assert_eq!(na_close(stream), -1);
}

fn libc_ebadf() -> i32 {
    9
}

#[test]
fn nulls_and_nonsense_are_told() {
    let stream = na_socket(NA_DUAL);
    assert_eq!((na_socket(5), words().as_str()), (-1, "neither NA_DUAL, NA_FIRST, NA_IPV4 nor NA_IPV6"));
    // SAFETY: nulls, which the calls have to refuse.
    unsafe {
        assert_eq!((na_connect(stream, null(), 1), words().as_str()), (-1, "a text is missing"));
        assert_eq!((na_status(stream, null_mut()), words().as_str()), (-1, "nowhere to put the status"));
        assert_eq!(na_send(stream, null(), 1, 0), -1);
        assert_eq!(na_recv(stream, null_mut(), 1, 0), -1);
        assert_eq!(
            (na_bind(stream, c"nowhere".as_ptr(), 0), words().as_str()),
            (-1, "no address of IPv4 or IPv6")
        );
        assert_eq!(na_policy(stream, c"[policy]\nmargin = \"x\"".as_ptr()), -1);
        assert!(words().contains("policy.margin"), "{}", words());
    }
    assert_eq!((na_shutdown(stream, NA_SHUT_WR), words().as_str()), (-1, "not connected"));
    assert_eq!((na_poll_fd(stream), na_listen(stream, 1), na_accept(stream)), (-1, -1, -1));
    assert_eq!(na_setsockopt(stream, 99, 0), -1);
    assert_eq!(na_setsockopt(stream, NA_WINDOW, 1), -1);
    na_close(stream);
}

#[test]
fn options_are_kept_and_calls_that_do_not_wait_do_not() {
    let stream = na_socket(NA_DUAL);
    assert_eq!(na_setsockopt(stream, NA_WINDOW, 100_000), 0);
    assert_eq!(na_setsockopt(stream, NA_RCVTIMEO, 1500), 0);
    assert_eq!((na_getsockopt(stream, NA_WINDOW), na_getsockopt(stream, NA_RCVTIMEO)), (100_000, 1500));
    // SAFETY: null is all addresses.
    assert_eq!(unsafe { na_bind(stream, null(), 0) }, 0);
    let port = na_listen(stream, 5);
    assert!(port > 0, "{}", words());
    assert_eq!(na_setsockopt(stream, NA_NONBLOCK, 1), 0);
    assert_eq!((na_accept(stream), errno()), (-1, 11));
    let client = na_socket(NA_DUAL);
    let mut byte = [0_u8; 4];
    // SAFETY: texts and buffers are what they are said to be.
    unsafe {
        assert_eq!(na_connect(client, c"localhost".as_ptr(), port as u16), 0, "{}", words());
        assert_eq!((na_recv(client, byte.as_mut_ptr().cast(), 4, NA_DONTWAIT), errno()), (-1, 11));
    }
    na_setsockopt(stream, NA_NONBLOCK, 0);
    let server = na_accept(stream);
    assert!(server > 0, "{}", words());
    // SAFETY: as above.
    unsafe {
        assert_eq!(na_send(server, c"word".as_ptr().cast(), 4, 0), 4);
        assert_eq!(na_recv(client, byte.as_mut_ptr().cast(), 4, 0), 4);
    }
    assert_eq!(&byte, b"word");
    for stream in [stream, client, server] {
        assert_eq!(na_close(stream), 0);
    }
}

const BOTH: &CStr = c"::1,127.0.0.1";

/// A stream that listens, and its port.
fn listening() -> (c_int, u16) {
    let listener = na_socket(NA_DUAL);
    // SAFETY: null is all addresses.
    assert_eq!(unsafe { na_bind(listener, null(), 0) }, 0, "{}", words());
    let port = na_listen(listener, 5);
    assert!(port > 0, "{}", words());
    (listener, port as u16)
}

/// A stream to it and what it accepts, with both connections up.
fn connected(listener: c_int, port: u16) -> (c_int, c_int) {
    let client = na_socket(NA_DUAL);
    // SAFETY: a text.
    assert_eq!(unsafe { na_connect(client, BOTH.as_ptr(), port) }, 0, "{}", words());
    let server = na_accept(listener);
    assert!(server > 0, "{}", words());
    let up = |stream| status(stream).ipv4_up != 0 && status(stream).ipv6_up != 0;
    wait_for(|| up(client) && up(server));
    // The opener's first wish, by which both agree on a connection, would cross one of the
    // acceptor's. What comes after its answer, on the same connection, shows that it is over.
    for (from, to) in [(client, server), (server, client)] {
        let mut byte = [0_u8];
        // SAFETY: buffers of one byte.
        unsafe {
            assert_eq!(na_send(from, [7_u8].as_ptr().cast(), 1, 0), 1, "{}", words());
            assert_eq!(na_recv(to, byte.as_mut_ptr().cast(), 1, 0), 1, "{}", words());
        }
    }
    (client, server)
}

fn streams() -> (c_int, c_int) {
    let (listener, port) = listening();
    let both = connected(listener, port);
    assert_eq!(na_close(listener), 0);
    both
}
const HERE: u64 = 1;

/// A connected socket of datagrams and a bound one.
fn datagrams() -> (c_int, c_int) {
    let (bound, client) = (na_socket(NA_DUAL | NA_DGRAM), na_socket(NA_DUAL | NA_DGRAM));
    // SAFETY: null is all addresses; a text.
    unsafe {
        assert_eq!(na_bind(bound, null(), 0), 0, "{}", words());
        let port = na_listen(bound, 1);
        assert!(port > 0, "{}", words());
        assert_eq!(na_connect(client, BOTH.as_ptr(), port as u16), 0, "{}", words());
    }
    (client, bound)
}

fn status(socket: c_int) -> NaStatus {
    let mut status = std::mem::MaybeUninit::uninit();
    // SAFETY: it has room for one, which is there where the call says so.
    unsafe {
        assert_eq!(na_status(socket, status.as_mut_ptr()), 0, "{}", words());
        status.assume_init()
    }
}

fn wait_for(done: impl Fn() -> bool) {
    let deadline = netaware_io::clock::now() + netaware_units::Span::from_secs(15);
    while !done() {
        assert!(netaware_io::clock::now() < deadline, "it did not come in 15 seconds");
        netaware_io::clock::sleep(netaware_units::Span::from_millis(2));
    }
}

#[test]
fn datagrams_go_both_ways_and_each_version_is_told() {
    let (client, bound) = datagrams();
    let (mut buffer, mut peer) = ([0_u8; 8], 0);
    // SAFETY: buffers are what they are said to be.
    unsafe {
        assert_eq!(na_send(client, c"question".as_ptr().cast(), 8, 0), 8, "{}", words());
        assert_eq!(na_recvfrom(bound, buffer.as_mut_ptr().cast(), 8, 0, &raw mut peer), 8);
        assert_eq!((&buffer, peer), (b"question", 1));
        assert_eq!(na_sendto(bound, c"answers that are long".as_ptr().cast(), 21, 0, peer), 21);
        assert_eq!(na_sendto(bound, null(), 0, 0, peer), 0, "an empty one");
        assert_eq!(na_recv(client, buffer.as_mut_ptr().cast(), 8, 0), 8, "cut off");
        assert_eq!(na_recvfrom(client, buffer.as_mut_ptr().cast(), 8, 0, null_mut()), 0);
        assert_eq!((na_recv(client, buffer.as_mut_ptr().cast(), 8, NA_DONTWAIT), errno()), (-1, 11));
    }
    wait_for(|| status(client).ipv4_up != 0 && status(client).ipv6_up != 0);
    assert_eq!(status(client).current, NA_IPV6);
    assert_eq!(na_switch(client, NA_IPV4), 0, "{}", words());
    wait_for(|| status(bound).current == NA_IPV4);
    wait_for(|| status(client).ipv4_rtt_us >= 0 && status(client).ipv6_rtt_us >= 0);
    let told = status(client);
    assert!(told.ipv6.sent > 0 && told.ipv6.confirmed > 0 && told.ipv6.lost == 0, "{told:?}");
    assert_eq!((told.received, told.standing), (2, 0));
    let mut of_peer = told;
    // SAFETY: it has room for one.
    unsafe {
        assert_eq!(na_status_of(bound, HERE, &raw mut of_peer), 0);
        assert_eq!(of_peer.received, 1);
        assert_eq!((na_status_of(bound, 4, &raw mut of_peer), errno()), (-1, 107));
    }
    assert!(na_poll_fd(client) > 0 && na_poll_fd(bound) > 0);
    assert_eq!((na_close(client), na_close(bound)), (0, 0));
}

#[test]
fn what_datagrams_cannot_is_told() {
    let (client, bound) = datagrams();
    let stream = na_socket(NA_DUAL);
    let mut buffer = [0_u8; 8];
    // SAFETY: buffers and texts are what they are said to be.
    unsafe {
        assert_eq!((na_sendto(stream, buffer.as_ptr().cast(), 1, 0, 1), errno()), (-1, 22));
        assert_eq!(na_recvfrom(stream, buffer.as_mut_ptr().cast(), 1, 0, null_mut()), -1);
        assert_eq!((na_sendto(bound, buffer.as_ptr().cast(), 1, 0, 99), errno()), (-1, 107));
        assert_eq!((na_send(client, buffer.as_ptr().cast(), 1, NA_MSG_HOLD), errno()), (-1, 22));
        let long = vec![0_u8; 65_507];
        assert_eq!((na_send(client, long.as_ptr().cast(), long.len(), 0), errno()), (-1, 90));
        assert_eq!(na_policy(client, c"[policy]\nuse = \"bulk\"".as_ptr()), -1);
        assert!(words().contains("interactive"), "{}", words());
        assert_eq!(na_policy(client, c"[policy]\nuse = \"media\"".as_ptr()), 0);
    }
    assert_eq!((na_shutdown(client, NA_SHUT_WR), errno()), (-1, 22));
    assert_eq!((na_accept(bound), errno()), (-1, 22));
    assert_eq!(na_getsockopt(client, NA_WINDOW), 4 << 20);
    assert_eq!(na_shutdown(client, NA_SHUT_RDWR), 0);
    // SAFETY: as above.
    unsafe {
        assert_eq!((na_recv(client, buffer.as_mut_ptr().cast(), 8, 0), errno()), (-1, 107));
    }
    assert_eq!(status(client).standing, 1);
    for number in [client, bound, stream] {
        assert_eq!(na_close(number), 0);
    }
}

/// Wants IPv4, counts its calls, and knows that both versions were seen.
unsafe extern "C" fn wants_ipv4(evidence: *const NaEvidence, user: *mut c_void) -> c_int {
    // SAFETY: the library's own, and an atomic that outlives the callback.
    let (evidence, calls) = unsafe { (&*evidence, &*user.cast::<AtomicI32>()) };
    calls.fetch_add(1, Ordering::SeqCst);
    let known =
        [evidence.ipv4, evidence.ipv6].iter().all(|it| it.up != 0 && it.rtt_us >= 0 && it.observations > 0);
    if known && evidence.present == NA_IPV6 { NA_IPV4 } else { NA_KEEP }
}

#[test]
fn a_callback_moves_and_is_silent_once_it_is_removed_or_closed() {
    let (client, bound) = datagrams();
    let rules = c"[policy]\nuse = \"interactive\"\nevery = \"100ms\"";
    let calls = AtomicI32::new(0);
    let user = (&raw const calls).cast_mut().cast();
    // SAFETY: the text is one, and the atomic outlives what may use it.
    unsafe {
        assert_eq!(na_policy(bound, rules.as_ptr()), 0, "{}", words());
        assert_eq!(na_policy_callback(bound, Some(wants_ipv4), user), 0, "{}", words());
        wait_for(|| status(client).current == NA_IPV4);
        assert_eq!(na_policy_callback(bound, None, null_mut()), 0);
        let had = calls.load(Ordering::SeqCst);
        assert_eq!(na_policy_callback(client, Some(wants_ipv4), user), 0);
        assert_eq!(na_close(client), 0);
        netaware_io::clock::sleep(netaware_units::Span::from_millis(700));
        assert!(calls.load(Ordering::SeqCst) <= had + 1);
        assert_eq!((na_policy_callback(4711, None, null_mut()), errno()), (-1, 9));
    }
    assert_eq!(na_close(bound), 0);
}
