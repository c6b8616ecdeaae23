//! Policies of streams, what they decide, and who is told.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use netaware::{
    NA_ADDRESS_LENGTH, NA_BY_CALLBACK, NA_IPV4, NA_IPV6, NA_KEEP, NA_LOSS, NA_ROUND_TRIP, NA_SHUT_WR,
    NaDecision, NaEvidence, na_close, na_decision, na_hold, na_peer, na_peer_of, na_policy,
    na_policy_callback, na_recv, na_send, na_shutdown, na_socket,
};

use super::{connected, datagrams, errno, listening, status, streams, wait_for, words};

const INTERACTIVE: &CStr = c"[policy]\nuse = \"interactive\"\nevery = \"100ms\"";
const EBUSY: i32 = 16;

fn next_decision(stream: c_int) -> Option<NaDecision> {
    let mut decision = std::mem::MaybeUninit::uninit();
    // SAFETY: it has room for one, which is there where the call says so.
    unsafe {
        match na_decision(stream, decision.as_mut_ptr()) {
            0 => None,
            1 => Some(decision.assume_init()),
            other => panic!("{other}: {}", words()),
        }
    }
}

/// Until it is told to stop, what the one sends the other reads: policies look at streams that are
/// used.
struct Traffic {
    stop: std::sync::Arc<AtomicI32>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Traffic {
    fn begin(from: c_int, to: c_int) -> Self {
        let stop = std::sync::Arc::new(AtomicI32::new(0));
        let stopped = stop.clone();
        let sender = thread::spawn(move || {
            while stopped.load(Ordering::SeqCst) == 0 {
                // SAFETY: a vector.
                unsafe { assert_eq!(na_send(from, [7_u8; 1000].as_ptr().cast(), 1000, 0), 1000) };
                netaware_io::clock::sleep(netaware_units::Span::from_micros(500));
            }
            assert_eq!(na_shutdown(from, NA_SHUT_WR), 0);
        });
        let reader = thread::spawn(move || {
            let mut buffer = vec![0_u8; 20_000];
            // SAFETY: a vector.
            while unsafe { na_recv(to, buffer.as_mut_ptr().cast(), buffer.len(), 0) } > 0 {}
        });
        Self { stop, threads: vec![sender, reader] }
    }

    fn end(self) {
        self.stop.store(1, Ordering::SeqCst);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Wants the version that is not in use, once both were seen, as often as `user` says.
unsafe extern "C" fn wants_the_other(evidence: *const NaEvidence, user: *mut c_void) -> c_int {
    // SAFETY: the library's own, and an atomic that outlives the callback.
    let (evidence, times) = unsafe { (&*evidence, &*user.cast::<AtomicI32>()) };
    let known = [evidence.ipv4, evidence.ipv6].iter().all(|it| it.up != 0 && it.rtt_us >= 0);
    if !known || times.fetch_sub(1, Ordering::SeqCst) <= 0 {
        return NA_KEEP;
    }
    if evidence.present == NA_IPV6 { NA_IPV4 } else { NA_IPV6 }
}

#[test]
fn a_callback_moves_a_stream_and_its_decision_can_be_read() {
    let (client, server) = streams();
    let before = status(client).current;
    let times = AtomicI32::new(1);
    let traffic = Traffic::begin(client, server);
    // SAFETY: a text, and an atomic that outlives what may use it.
    unsafe {
        assert_eq!(na_policy(client, INTERACTIVE.as_ptr()), 0, "{}", words());
        let user = (&raw const times).cast_mut().cast();
        assert_eq!(na_policy_callback(client, Some(wants_the_other), user), 0, "{}", words());
        wait_for(|| status(client).current != before && status(server).current != before);
        assert_eq!(na_policy_callback(client, None, null_mut()), 0);
    }
    let decision = next_decision(client).expect("it has decided");
    assert_eq!((decision.from, decision.to), (before, status(client).current));
    assert_eq!((decision.by, decision.metric, decision.not_done), (NA_BY_CALLBACK, NA_ROUND_TRIP, 0));
    assert!(decision.present_looks > 0 && decision.other_looks > 0, "{decision:?}");
    assert!(decision.present > 0.0 && decision.other > 0.0 && decision.at_us > 0, "{decision:?}");
    assert!(next_decision(client).is_none() && next_decision(server).is_none());
    traffic.end();
    assert_eq!((na_close(client), na_close(server)), (0, 0));
}

#[test]
fn a_decision_that_comes_to_nothing_says_why() {
    let (client, server) = streams();
    let times = AtomicI32::new(i32::MAX);
    let traffic = Traffic::begin(client, server);
    assert_eq!(na_hold(client, 1), 0);
    let before = status(client).current;
    // SAFETY: a text, and an atomic that outlives what may use it.
    unsafe {
        assert_eq!(na_policy(client, INTERACTIVE.as_ptr()), 0, "{}", words());
        let user = (&raw const times).cast_mut().cast();
        assert_eq!(na_policy_callback(client, Some(wants_the_other), user), 0, "{}", words());
        // It is asked again and again, and told once.
        wait_for(|| times.load(Ordering::SeqCst) < i32::MAX - 3);
        assert_eq!(na_policy_callback(client, None, null_mut()), 0);
    }
    let decision = next_decision(client).expect("it has decided");
    assert_eq!((decision.not_done, decision.from), (EBUSY, before));
    assert!(next_decision(client).is_none(), "told once");
    assert_eq!(status(client).current, before);
    traffic.end();
    // SAFETY: nulls and numbers that are no streams, which the call has to refuse.
    unsafe {
        assert_eq!((na_decision(client, null_mut()), errno()), (-1, 14));
        let mut decision = decision;
        assert_eq!((na_decision(4711, &raw mut decision), errno()), (-1, 9));
    }
    assert_eq!((na_close(client), na_close(server)), (0, 0));
}

#[test]
fn a_policy_of_a_listening_stream_is_that_of_those_accepted_from_then_on() {
    let (listener, port) = listening();
    let times = AtomicI32::new(1);
    // SAFETY: a text, and an atomic that outlives what may use it.
    unsafe {
        let user = (&raw const times).cast_mut().cast();
        assert_eq!(na_policy(listener, INTERACTIVE.as_ptr()), 0, "{}", words());
        assert_eq!(na_policy_callback(listener, Some(wants_the_other), user), 0, "{}", words());
        let (client, server) = connected(listener, port);
        let traffic = Traffic::begin(server, client);
        let mut decision = None;
        wait_for_some(&mut decision, || next_decision(server));
        // By goodput, which bulk transfer goes by, where there are no rules.
        assert_eq!(decision.map(|it| (it.by, it.metric)), Some((NA_BY_CALLBACK, NA_ROUND_TRIP)));
        traffic.end();
        assert_eq!((na_close(client), na_close(server)), (0, 0));

        times.store(1, Ordering::SeqCst);
        let media = c"[policy]\nuse = \"media\"\nevery = \"100ms\"";
        assert_eq!(na_policy(listener, media.as_ptr()), 0, "{}", words());
        let (client, server) = connected(listener, port);
        let traffic = Traffic::begin(server, client);
        let mut decision = None;
        wait_for_some(&mut decision, || next_decision(server));
        assert_eq!(decision.map(|it| it.metric), Some(NA_LOSS));
        traffic.end();
        assert_eq!((na_close(client), na_close(server), na_close(listener)), (0, 0, 0));
    }
}

fn wait_for_some<T>(found: &mut Option<T>, look: impl Fn() -> Option<T>) {
    let found = std::cell::RefCell::new(found);
    wait_for(|| {
        let one = look();
        let there = one.is_some();
        if there {
            **found.borrow_mut() = one;
        }
        there
    });
}

/// The version told of, the address and the port.
fn peer(stream: c_int, version: c_int) -> (c_int, String, u16) {
    let (mut address, mut port) = ([0 as c_char; NA_ADDRESS_LENGTH], 0);
    // SAFETY: an array and a number.
    unsafe {
        let told = na_peer(stream, version, address.as_mut_ptr(), address.len(), &raw mut port);
        let text = CStr::from_ptr(address.as_ptr());
        (told, text.to_string_lossy().into_owned(), port)
    }
}

#[test]
fn the_other_ends_address_is_told_for_each_version() {
    let (listener, listens_at) = listening();
    let (client, server) = connected(listener, listens_at);
    assert_eq!(peer(client, NA_IPV4), (NA_IPV4, "127.0.0.1".to_owned(), listens_at));
    assert_eq!(peer(client, NA_IPV6), (NA_IPV6, "::1".to_owned(), listens_at));
    let (told, address, port) = peer(server, NA_IPV6);
    assert!(told == NA_IPV6 && address == "::1" && port != 0 && port != listens_at, "{address} {port}");
    assert_eq!(peer(client, 0).0, status(client).current);
    let mut address = [0 as c_char; 16];
    // SAFETY: what the arguments say, and a null that the call has to refuse.
    unsafe {
        assert_eq!((na_peer(client, NA_IPV6, address.as_mut_ptr(), 3, null_mut()), errno()), (-1, 34));
        assert_eq!(na_peer(client, NA_IPV6, address.as_mut_ptr(), 4, null_mut()), NA_IPV6);
        assert_eq!((na_peer(client, NA_IPV6, null_mut(), 4, null_mut()), errno()), (-1, 14));
        assert_eq!((na_peer(client, 5, address.as_mut_ptr(), 16, null_mut()), errno()), (-1, 22));
        assert_eq!((na_peer(listener, 0, address.as_mut_ptr(), 16, null_mut()), errno()), (-1, 107));
    }
    for number in [client, server, listener] {
        assert_eq!(na_close(number), 0);
    }
    let alone = na_socket(netaware::NA_DUAL);
    assert_eq!((peer(alone, 0).0, errno()), (-1, 107));
    na_close(alone);
}

#[test]
fn the_address_of_who_sends_datagrams_is_told() {
    let (client, bound) = datagrams();
    wait_for(|| status(client).ipv4_up != 0 && status(client).ipv6_up != 0);
    assert_eq!(peer(client, NA_IPV4).1, "127.0.0.1");
    let (mut address, mut port) = ([0 as c_char; NA_ADDRESS_LENGTH], 0);
    // SAFETY: an array and a number.
    unsafe {
        let text = address.as_mut_ptr();
        assert_eq!(na_peer_of(bound, 1, NA_IPV6, text, address.len(), &raw mut port), NA_IPV6);
        assert_eq!((CStr::from_ptr(text), port != 0), (c"::1", true));
        assert_eq!((na_peer_of(bound, 9, 0, text, address.len(), null_mut()), errno()), (-1, 107));
    }
    assert_eq!((na_close(client), na_close(bound)), (0, 0));
}
