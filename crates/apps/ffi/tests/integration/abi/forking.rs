//! A child of `fork` has the descriptors and the memory of its parent, and none of its threads.

use std::ffi::{c_int, c_void};

use netaware::{
    NA_DGRAM, NA_DUAL, NA_EFORK, NA_IPV4, NA_SHUT_RDWR, na_accept, na_close, na_hold, na_poll_fd, na_recv,
    na_send, na_shutdown, na_signals, na_socket, na_switch,
};

use super::{errno, status, streams, words};

/// Runs `check` in a child and returns what it said; the child is killed when it hangs.
fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child calls only what is tested, and ends without leaving this function.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child: {}", std::io::Error::last_os_error());
    if child == 0 {
        let well = check();
        // SAFETY: it ends the child, whose parent runs the tests.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut killed_in = 5000;
    loop {
        let mut ended: c_int = 0;
        // SAFETY: a child of ours, and room for its status.
        if unsafe { libc::waitpid(child, &raw mut ended, libc::WNOHANG) } == child {
            return libc::WIFEXITED(ended) && libc::WEXITSTATUS(ended) == 0;
        }
        netaware_io::clock::sleep(netaware_units::Span::from_millis(2));
        killed_in -= 1;
        if killed_in == 0 {
            // SAFETY: a child of ours that has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
    }
}

/// It wrote into its parent's connections, and waited for ever for threads that it does not have.
#[test]
fn a_child_of_fork_can_neither_use_nor_end_the_streams_of_its_parent_and_does_not_hang() {
    let (client, server) = streams();
    let well = in_child(|| {
        let mut byte = [0_u8];
        let fails = |result: isize| result == -1 && errno() == NA_EFORK;
        // SAFETY: buffers of one byte.
        let (sent, received) = unsafe {
            let sent = fails(na_send(client, [9_u8].as_ptr().cast::<c_void>(), 1, 0));
            (sent, fails(na_recv(server, byte.as_mut_ptr().cast::<c_void>(), 1, 0)))
        };
        let others: [fn(c_int) -> c_int; 8] = [
            |_| na_socket(NA_DUAL | NA_DGRAM),
            |number| na_accept(number),
            |number| na_poll_fd(number),
            |number| na_hold(number, 1),
            |number| na_switch(number, NA_IPV4),
            |number| na_shutdown(number, NA_SHUT_RDWR),
            |_| na_signals(1),
            |number| na_close(number),
        ];
        let others = others.iter().all(|call| fails(call(client) as isize));
        sent && received && others && words().contains("after fork the streams belong to process")
    });
    assert!(well, "a call in the child hung, or did not fail as it has to");
    // The parent's streams have noticed nothing.
    let mut byte = [0_u8];
    // SAFETY: buffers of one byte.
    unsafe {
        assert_eq!(na_send(client, [7_u8].as_ptr().cast::<c_void>(), 1, 0), 1, "{}", words());
        assert_eq!(na_recv(server, byte.as_mut_ptr().cast::<c_void>(), 1, 0), 1, "{}", words());
    }
    assert_eq!(byte, [7]);
    assert_eq!(status(client).standing, 0);
    assert_eq!((na_close(client), na_close(server)), (0, 0));
}
