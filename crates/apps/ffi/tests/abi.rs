//! Wrong calls are errors, never more.
#![expect(unsafe_code, reason = "the calls are for C")]

use std::ffi::CStr;
use std::ptr::null;

use netaware::{
    NA_DONTWAIT, NA_DUAL, NA_IPV6, NA_NONBLOCK, NA_RCVTIMEO, NA_SHUT_WR, NA_WINDOW, na_accept, na_bind,
    na_close, na_connect, na_getsockopt, na_listen, na_policy, na_poll_fd, na_recv, na_send, na_setsockopt,
    na_shutdown, na_socket, na_status, na_strerror, na_switch,
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
        assert_eq!(
            (na_status(stream, std::ptr::null_mut()), words().as_str()),
            (-1, "nowhere to put the status")
        );
        assert_eq!(na_send(stream, null(), 1, 0), -1);
        assert_eq!(na_recv(stream, std::ptr::null_mut(), 1, 0), -1);
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
