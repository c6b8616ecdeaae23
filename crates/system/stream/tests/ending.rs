//! A program that lets go of its streams and ends. An executable of its own, because `settle` ends
//! the streams of the whole process.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use netaware_io::clock;
use netaware_stream::{DualListener, DualStream, Options, settle};
use netaware_units::Span;

const BYTES: usize = 8 << 20;

#[test]
fn what_was_sent_has_come_when_the_program_may_end() {
    // Of what is sent the peer takes no more before it reads.
    let taking = Options { window: 1 << 20, ..Options::default() };
    let listener = DualListener::bind(0, taking).unwrap();
    let port = listener.addresses()[0].port();
    let addresses =
        ["[::1]", "127.0.0.1"].map(|host| format!("{host}:{port}").parse::<SocketAddr>().unwrap());
    let opener = DualStream::connect_to("loopback", &addresses, Options::default()).unwrap();
    let (acceptor, _) = listener.accept().unwrap();
    let (let_go, begins) = mpsc::channel();
    let reader = thread::spawn(move || {
        begins.recv().unwrap();
        clock::sleep_until(clock::now() + Span::from_millis(300));
        let (mut buffer, mut bytes) = (vec![0; 64 * 1024], 0);
        loop {
            match acceptor.recv(&mut buffer).unwrap() {
                0 => return bytes,
                count => bytes += count,
            }
        }
    });
    (&opener).write_all(&vec![7; BYTES]).unwrap();
    assert!(opener.status().acknowledged < BYTES as u64, "all of it has come before it could be waited for");
    drop(opener);
    let_go.send(()).unwrap();
    assert!(settle(Span::from_secs(20)), "a thread has not ended");
    assert_eq!(reader.join().unwrap(), BYTES);
}
