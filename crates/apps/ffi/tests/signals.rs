//! Whose signals they are. An executable of its own, because dispositions are those of a process.
#![expect(unsafe_code, reason = "the calls are for C")]

use netaware::{NA_DUAL, na_close, na_signals, na_socket};

/// What a signal does now: the address of its handler, or SIG_DFL or SIG_IGN.
fn disposition(signal: i32) -> usize {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: it has room for one, which is there where the call says so.
    unsafe {
        assert_eq!(libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()), 0);
        now.assume_init().sa_sigaction
    }
}

fn all() -> Vec<usize> {
    (1..=31).map(disposition).collect()
}

extern "C" fn own(_: i32) {}

#[test]
fn signals_are_the_programs_until_it_asks_and_again_when_it_asks_no_more() {
    let before = all();
    let stream = na_socket(NA_DUAL);
    // SAFETY: null is all addresses.
    assert_eq!(unsafe { netaware::na_bind(stream, std::ptr::null(), 0) }, 0);
    assert!(netaware::na_listen(stream, 1) > 0);
    assert_eq!(all(), before, "nothing was installed");

    // The program ignores one of them and handles the other.
    let handler = own as extern "C" fn(i32) as usize;
    // SAFETY: a handler that does nothing.
    unsafe {
        libc::signal(libc::SIGUSR1, libc::SIG_IGN);
        libc::signal(libc::SIGUSR2, handler);
    }
    let before = all();
    for _ in 0..2 {
        assert_eq!((na_signals(1), na_signals(1)), (0, 0));
        let changed: Vec<usize> = (0..31).filter(|at| all()[*at] != before[*at]).map(|at| at + 1).collect();
        assert_eq!(changed, [libc::SIGUSR1 as usize, libc::SIGUSR2 as usize]);
        assert_eq!((na_signals(0), na_signals(0)), (0, 0));
        assert_eq!(all(), before, "as the program had it");
    }
    assert_eq!(na_close(stream), 0);
}
