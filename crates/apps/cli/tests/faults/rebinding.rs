//! An address translator between prober and responder that gives a flow another port in the middle of a test.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use netaware_io::clock;
use netaware_units::Span;

use crate::program::{Program, Responder, free_port, netaware};

/// Passes TCP on as it is, and datagrams of one client from a port of its own.
struct Translator {
    port: u16,
    outside: Arc<Mutex<UdpSocket>>,
    over: Arc<AtomicBool>,
}

impl Translator {
    fn before(responder: SocketAddr) -> Self {
        let port = free_port();
        let over = Arc::new(AtomicBool::new(false));
        let outside = Arc::new(Mutex::new(outside(responder)));
        let inside = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        inside.set_read_timeout(Some(SOON)).unwrap();
        let client = Arc::new(Mutex::new(None));
        let (there, back) = (inside.try_clone().unwrap(), inside);
        let (over_there, over_back) = (over.clone(), over.clone());
        let (to, from) = (outside.clone(), outside.clone());
        let (learns, knows) = (client.clone(), client);
        thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            while !over_there.load(Ordering::Relaxed) {
                let Ok((length, address)) = there.recv_from(&mut bytes) else { continue };
                *learns.lock().unwrap() = Some(address);
                let _ = to.lock().unwrap().send(&bytes[..length]);
            }
        });
        thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            while !over_back.load(Ordering::Relaxed) {
                let socket = from.lock().unwrap().try_clone().unwrap();
                let Ok(length) = socket.recv(&mut bytes) else { continue };
                let known: Option<SocketAddr> = *knows.lock().unwrap();
                if let Some(client) = known {
                    let _ = back.send_to(&bytes[..length], client);
                }
            }
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(responder) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || splice(from, to));
                }
            }
        });
        Self { port, outside, over }
    }

    /// From now on the responder sees the flow come from another port.
    fn rebind(&self, responder: SocketAddr) {
        *self.outside.lock().unwrap() = outside(responder);
    }
}

impl Drop for Translator {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn outside(responder: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(responder).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket
}

fn splice(mut from: TcpStream, mut to: TcpStream) -> io::Result<()> {
    let mut bytes = vec![0; 65_536];
    loop {
        match from.read(&mut bytes)? {
            0 => return to.shutdown(std::net::Shutdown::Write),
            length => to.write_all(&bytes[..length])?,
        }
    }
}

const SOON: Duration = Duration::from_millis(50);

#[test]
fn a_flow_that_gets_another_port_is_told_and_ends_in_time() {
    let responder = Responder::start(&[]);
    for command in ["capacity", "available"] {
        let translator = Translator::before(responder.address());
        let to = format!("127.0.0.1:{}", translator.port);
        let running =
            Program::start(netaware(&[command, &to, "-4", "-t", "8s", "--format", "json", "--no-save"]));
        clock::sleep(Span::from_millis(600));
        translator.rebind(responder.address());
        let ended = running.finish_within(Span::from_secs(40));
        let record = ended.record();
        let found = record.versions.iter().flat_map(|version| &version.path_rates).collect::<Vec<_>>();
        // Loopback has no narrow link: all that can be said of it is a bound, or that the host was the limit.
        let told = found.iter().all(|rate| rate.rate.is_none() || !rate.flags.is_empty());
        let failed = record.versions.iter().any(|version| version.unreachable.is_some());
        assert!(told || failed, "{command}: {found:#?}");
    }
}
