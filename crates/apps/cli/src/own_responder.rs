//! A responder on loopback for whoever has no second host at hand.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread::JoinHandle;

use anyhow::Context;
use netaware_io::zone::ZonedIp;
use netaware_server::{Config, Key, RunError, Server, Stopper};

/// Runs until it is dropped.
pub(crate) struct OwnResponder {
    port: u16,
    addresses: Vec<SocketAddr>,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), RunError>>>,
}

impl OwnResponder {
    /// Listens on both loopback addresses, or on the one this host has, on a port that the system
    /// chooses.
    ///
    /// # Errors
    /// Neither can be listened on.
    pub(crate) fn start(key: Option<&[u8]>) -> anyhow::Result<Self> {
        let (v4, v6) = (ZonedIp::from(Ipv4Addr::LOCALHOST), ZonedIp::from(Ipv6Addr::LOCALHOST));
        let listen = |bind: Vec<ZonedIp>| -> anyhow::Result<Server> {
            let key = key.map(Key::new).transpose()?;
            Ok(Server::bind(Config { port: 0, bind, key, ..Config::default() })?)
        };
        let server = listen(vec![v4, v6])
            .or_else(|both| listen(vec![v4]).or_else(|_| listen(vec![v6])).map_err(|_| both))
            .context("cannot start a responder on loopback; give a HOST instead")?;
        let addresses = server.addresses().to_vec();
        let port = addresses.first().map_or(0, SocketAddr::port);
        let stopper = server.stopper();
        let thread = std::thread::Builder::new()
            .name("responder".into())
            .spawn(move || server.run())
            .context("cannot start a thread for the responder")?;
        Ok(Self { port, addresses, stopper, thread: Some(thread) })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// "127.0.0.1:4711 and [::1]:4711".
    pub(crate) fn place(&self) -> String {
        self.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    }
}

impl Drop for OwnResponder {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            // Its end changes nothing any more: the result is there.
            let _ = thread.join();
        }
    }
}
