//! A box on this host between prober and responder. It passes TCP on as it is. Datagrams pass until
//! it has seen a given number of them that belong to trains.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use netaware_testkit::program::free_port;

/// What the box does to every datagram, in both directions, after `after` datagrams of trains have
/// passed. Datagrams that set a flow up are not counted, because a busy machine sends some of them
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whim {
    /// Drops each from the very first, set-up included.
    DropAll,
    /// Drops each.
    Drop,
    /// Has them come from another port, as an address translator that has forgotten the flow.
    Rebind,
}

/// One client's, for as long as it lives.
pub(crate) struct Middle {
    pub(crate) port: u16,
    over: Arc<AtomicBool>,
}

impl Middle {
    /// Stands before `responder`, on the same address with a port of its own. `after` datagrams of
    /// trains are passed, those of both directions together; then the whim begins.
    pub(crate) fn before(responder: SocketAddr, whim: Whim, after: u32) -> Self {
        let (port, ip) = (free_port(), responder.ip());
        let over = Arc::new(AtomicBool::new(false));
        pass_datagrams(bind(ip, port), responder, whim, after, &over);
        let listener = TcpListener::bind((ip, port)).unwrap();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(responder) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || splice(from, to));
                }
            }
        });
        Self { port, over }
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// What both directions share.
struct Shared {
    outside: Mutex<UdpSocket>,
    client: Mutex<Option<SocketAddr>>,
    /// Datagrams of trains.
    passed: AtomicU32,
    has_begun: AtomicBool,
    responder: SocketAddr,
    whim: Whim,
    after: u32,
}

impl Shared {
    /// Whether a datagram of this length passes.
    fn lets_pass(&self, length: usize) -> bool {
        if length > SET_UP && self.passed.fetch_add(1, Ordering::Relaxed) == self.after {
            self.has_begun.store(true, Ordering::Relaxed);
            if self.whim == Whim::Rebind {
                *self.outside.lock().unwrap() = outside(self.responder);
            }
        }
        self.whim == Whim::Rebind || !self.has_begun.load(Ordering::Relaxed)
    }
}

fn pass_datagrams(inside: UdpSocket, responder: SocketAddr, whim: Whim, after: u32, over: &Arc<AtomicBool>) {
    let shared = Arc::new(Shared {
        outside: Mutex::new(outside(responder)),
        client: Mutex::new(None),
        passed: AtomicU32::new(0),
        has_begun: AtomicBool::new(whim == Whim::DropAll),
        responder,
        whim,
        after,
    });
    let (there, back) = (inside.try_clone().unwrap(), inside);
    let (shared_there, over_there) = (shared.clone(), over.clone());
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while !over_there.load(Ordering::Relaxed) {
            let Ok((length, address)) = there.recv_from(&mut bytes) else { continue };
            let mut client = shared_there.client.lock().unwrap();
            // A datagram of full size that asks for the path's MTU is of no flow, and no train.
            let is_of_flow = length <= SET_UP || *client == Some(address);
            if is_of_flow {
                *client = Some(address);
            }
            drop(client);
            if !is_of_flow || shared_there.lets_pass(length) {
                let _ = shared_there.outside.lock().unwrap().send(&bytes[..length]);
            }
        }
    });
    let over_back = over.clone();
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while !over_back.load(Ordering::Relaxed) {
            let socket = shared.outside.lock().unwrap().try_clone().unwrap();
            let Ok(length) = socket.recv(&mut bytes) else { continue };
            let client: Option<SocketAddr> = *shared.client.lock().unwrap();
            if let Some(client) = client.filter(|_| shared.lets_pass(length)) {
                let _ = back.send_to(&bytes[..length], client);
            }
        }
    });
}

fn outside(responder: SocketAddr) -> UdpSocket {
    let socket = bind(responder.ip(), 0);
    socket.connect(responder).unwrap();
    socket
}

fn bind(ip: IpAddr, port: u16) -> UdpSocket {
    let socket = UdpSocket::bind((ip, port)).unwrap();
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

/// Bytes. No datagram that sets a flow up is as long; those of trains are longer.
const SET_UP: usize = 100;
const SOON: Duration = Duration::from_millis(50);
