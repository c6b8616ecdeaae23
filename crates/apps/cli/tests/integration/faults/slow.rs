//! Slow-loris: many connections that send a byte a second, each of which looks alive.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use netaware_io::clock;
use netaware_testkit::control::hello;
use netaware_testkit::program::{Program, Responder, netaware};
use netaware_units::Span;
use netaware_wire::preface::{Preface, Role};
use netaware_wire::{PROTOCOL_VERSION, frame};

use super::side_by_side;

#[test]
fn slow_openings_messages_and_attachments_are_cut_while_a_real_prober_is_served() {
    let hello =
        [&Preface::new(Role::Control).emit()[..], &frame::emit(&hello(PROTOCOL_VERSION)).unwrap()].concat();
    let message = [&60_000_u32.to_be_bytes()[..], &[b' '; 100]].concat();
    let attachment = Preface::new(Role::Data).emit();
    // How many, what each says at once, and what it says slowly. Each kind has a responder of its
    // own.
    let kinds: [(usize, &[u8], &[u8]); 3] =
        [(200, &[], &hello), (16, &hello, &message), (100, &attachment, &[0; 24])];
    side_by_side(kinds, |(count, at_once, slowly)| are_cut(count, at_once, slowly));
}

/// Opens so many connections, says `at_once` on each and then `slowly` one byte a second, until all
/// are cut.
fn are_cut(count: usize, at_once: &[u8], slowly: &[u8]) {
    /// Long enough for any timeout of a state, far shorter than the bytes would last.
    const PATIENCE_S: usize = 15;
    let responder = Responder::start(&[]);
    let mut slow: Vec<TcpStream> = (0..count).map(|_| open(responder.address(), at_once)).collect();
    let port = responder.port();
    let real = Program::start(netaware(&["latency", "127.0.0.1", "--port", &port, "-t", "3s"]));
    let mut real = Some(real);
    for second in 0..PATIENCE_S {
        slow.retain_mut(|stream| lives(stream) && stream.write_all(&slowly[second..=second]).is_ok());
        if slow.is_empty() {
            break;
        }
        clock::sleep(Span::from_secs(1));
        if second == 8 {
            served(real.take());
        }
    }
    assert!(slow.is_empty(), "{} of {count} are still there after {PATIENCE_S} s", slow.len());
    served(real.take());
}

fn served(real: Option<Program>) {
    if let Some(real) = real {
        real.finish_within(Span::from_secs(10)).exits_with(0);
    }
}

fn open(address: SocketAddr, at_once: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(at_once).unwrap();
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Reads away what came; false once the other side has closed.
fn lives(stream: &mut TcpStream) -> bool {
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}
