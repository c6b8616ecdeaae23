//! That a sender's bytes need no buffer on their way out: they are written from where the caller
//! has them to where they are kept, and the kernel sends them from there (`link`'s own tests see to
//! that).
//!
//! An executable of its own, because its allocator is that of the whole program.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{IoSlice, Read as _};
use std::thread;

use netaware_io::clock;
use netaware_stream::{DualListener, DualStream, Options};
use netaware_units::Span;

/// The system's, and how many bytes each thread has asked it for.
struct Counting;

thread_local! {
    static ASKED_FOR: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: what the system's allocator keeps to holds here as well, for every call goes there as it
// came. Counting does not allocate: the counter is there from the start, and has nothing to drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED_FOR.set(ASKED_FOR.get() + layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: it came from there.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn asked_for_by(work: impl FnOnce()) -> usize {
    let before = ASKED_FOR.get();
    work();
    ASKED_FOR.get() - before
}

#[test]
fn what_is_allocated_is_counted() {
    assert_eq!(asked_for_by(|| drop(std::hint::black_box(vec![0_u8; 5000]))), 5000);
    assert_eq!(asked_for_by(|| ()), 0);
}

#[test]
fn parts_that_lie_apart_are_sent_without_a_buffer_to_put_them_together() {
    const PART: usize = 4096;
    const PARTS: usize = 64;
    const ROUNDS: usize = 20;
    let listener = DualListener::bind(0, Options::default()).unwrap();
    let port = listener.addresses()[0].port();
    let opener = DualStream::connect("::1,127.0.0.1", port, Options::default()).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    let reader = thread::spawn(move || {
        let mut all = vec![0; (ROUNDS + 1) * PARTS * PART];
        (&acceptor).read_exact(&mut all).unwrap();
        all
    });
    let apart: Vec<Vec<u8>> = (0..PARTS as u8).map(|n| vec![n; PART]).collect();
    let parts: Vec<IoSlice<'_>> = apart.iter().map(|part| IoSlice::new(part)).collect();
    let send = || {
        let deadline = Some(clock::now() + Span::from_secs(10));
        assert_eq!(opener.send_vectored_until(&parts, deadline).unwrap(), PARTS * PART);
    };
    // What is made once, for all that follow.
    send();
    let asked_for = asked_for_by(|| (0..ROUNDS).for_each(|_| send()));
    println!("{asked_for} bytes of memory for {} that were sent", ROUNDS * PARTS * PART);
    assert!(asked_for < ROUNDS * PART, "{asked_for} bytes: as much as a part, or more, for each call");
    assert!(
        reader
            .join()
            .unwrap()
            .chunks(PART)
            .zip((0..PARTS as u8).cycle())
            .all(|(part, n)| part == vec![n; PART])
    );
}
