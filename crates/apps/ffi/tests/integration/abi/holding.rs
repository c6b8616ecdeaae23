//! What na_hold and NA_MSG_HOLD keep where it is.

use std::ffi::c_int;
use std::thread;

use netaware::{
    NA_DONTWAIT, NA_HOLD, NA_IPV4, NA_IPV6, NA_MSG_HOLD, NA_RCVTIMEO, NA_WINDOW, na_close, na_getsockopt,
    na_hold, na_recv, na_send, na_setsockopt, na_socket, na_switch,
};
use netaware_io::clock;
use netaware_units::Span;

use super::{datagrams, errno, status, streams, wait_for, words};

const EBUSY: i32 = 16;

fn other(version: c_int) -> c_int {
    if version == NA_IPV4 { NA_IPV6 } else { NA_IPV4 }
}

/// The peer wishes to go over the other version and is refused, which is seen by where both ends
/// stay.
#[track_caller]
fn refuses(held: c_int, peer: c_int) {
    let before = status(peer).current;
    assert_eq!(na_switch(peer, other(before)), 0, "{}", words());
    clock::sleep(Span::from_millis(300));
    assert_eq!([status(held).current, status(peer).current], [before; 2]);
}

/// The peer wishes to go over the other version, and both ends do.
#[track_caller]
fn follows(held: c_int, peer: c_int) {
    let wanted = other(status(peer).current);
    assert_eq!(na_switch(peer, wanted), 0, "{}", words());
    wait_for(|| [status(held).current, status(peer).current] == [wanted; 2]);
}

fn send(stream: c_int, bytes: &[u8], flags: c_int) -> isize {
    // SAFETY: a slice.
    unsafe { na_send(stream, bytes.as_ptr().cast(), bytes.len(), flags) }
}

fn receive(stream: c_int, out: &mut [u8], flags: c_int) -> isize {
    // SAFETY: a slice.
    unsafe { na_recv(stream, out.as_mut_ptr().cast(), out.len(), flags) }
}

#[test]
fn a_stream_that_is_held_stays_until_as_many_let_go() {
    let (client, server) = streams();
    assert_eq!((na_hold(server, 0), errno()), (-1, 22), "nobody held it");
    assert_eq!(na_getsockopt(server, NA_HOLD), 0);
    assert_eq!((na_hold(server, 1), na_hold(server, 1)), (0, 0));
    assert_eq!(na_getsockopt(server, NA_HOLD), 2);
    refuses(server, client);
    assert_eq!((na_switch(server, other(status(server).current)), errno()), (-1, EBUSY));
    assert_eq!(na_hold(server, 0), 0);
    // one of two has let go
    refuses(server, client);
    assert_eq!(na_hold(server, 0), 0);
    assert_eq!(na_getsockopt(server, NA_HOLD), 0);
    follows(server, client);
    assert_eq!((na_setsockopt(server, NA_HOLD, 1), errno()), (-1, 92));
    assert_eq!((na_close(client), na_close(server)), (0, 0));
    let fresh = na_socket(netaware::NA_DUAL);
    assert_eq!((na_hold(fresh, 1), errno(), na_getsockopt(fresh, NA_HOLD)), (-1, 107, 0));
    na_close(fresh);
}

#[test]
fn a_call_that_is_left_out_takes_back_no_hold_but_its_own() {
    let (client, server) = streams();
    assert_eq!(na_hold(server, 1), 0);
    assert_eq!(send(server, b"word", NA_MSG_HOLD), 4);
    assert_eq!((receive(server, &mut [0; 4], NA_MSG_HOLD | NA_DONTWAIT), errno()), (-1, 11));
    assert_eq!(na_getsockopt(server, NA_HOLD), 1);
    // na_hold holds it still
    refuses(server, client);
    assert_eq!(na_hold(server, 0), 0);
    follows(server, client);
    assert_eq!((na_close(client), na_close(server)), (0, 0));
}

#[test]
fn while_a_call_is_left_out_the_stream_stays_and_nobody_can_take_that_back() {
    let (client, server) = streams();
    let receiver = thread::spawn(move || receive(server, &mut [0; 4], NA_MSG_HOLD));
    wait_for(|| na_getsockopt(server, NA_HOLD) == 1);
    assert_eq!((na_hold(server, 0), errno()), (-1, 22));
    refuses(server, client);
    assert_eq!(send(client, b"word", 0), 4);
    assert_eq!(receiver.join().unwrap(), 4);
    assert_eq!(na_getsockopt(server, NA_HOLD), 0);
    follows(server, client);
    assert_eq!((na_close(client), na_close(server)), (0, 0));
}

#[test]
fn a_send_that_waits_for_room_holds_as_long() {
    let listener = na_socket(netaware::NA_DUAL);
    let client = na_socket(netaware::NA_DUAL);
    for number in [listener, client] {
        assert_eq!(na_setsockopt(number, NA_WINDOW, 20_000), 0);
    }
    // SAFETY: null is all addresses.
    assert_eq!(unsafe { netaware::na_bind(listener, std::ptr::null(), 0) }, 0);
    let port = netaware::na_listen(listener, 1);
    // SAFETY: a text.
    assert_eq!(unsafe { netaware::na_connect(client, super::BOTH.as_ptr(), port as u16) }, 0, "{}", words());
    let server = netaware::na_accept(listener);
    let sender = thread::spawn(move || send(client, &vec![7; 300_000], NA_MSG_HOLD));
    wait_for(|| na_getsockopt(client, NA_HOLD) == 1);
    assert_eq!((na_switch(client, NA_IPV4), errno()), (-1, EBUSY));
    let (mut buffer, mut got) = ([0; 10_000], 0);
    na_setsockopt(server, NA_RCVTIMEO, 10_000);
    while got < 300_000 {
        let count = receive(server, &mut buffer, 0);
        assert!(count > 0, "{}", words());
        got += count;
    }
    assert_eq!(sender.join().unwrap(), 300_000);
    assert_eq!(na_getsockopt(client, NA_HOLD), 0);
    for number in [listener, client, server] {
        assert_eq!(na_close(number), 0);
    }
}

#[test]
fn holds_of_datagrams_count_as_well() {
    let (client, bound) = datagrams();
    assert_eq!((na_hold(client, 1), na_hold(client, 1), na_hold(client, 0)), (0, 0, 0));
    assert_eq!(na_getsockopt(client, NA_HOLD), 1);
    assert_eq!((na_switch(client, NA_IPV4), errno()), (-1, EBUSY));
    assert_eq!((na_hold(client, 0), na_hold(client, 0), errno()), (0, -1, 22));
    wait_for(|| na_switch(client, NA_IPV4) == 0);
    assert_eq!((na_close(client), na_close(bound)), (0, 0));
}
