//! STAMP reflectors beside the responder: one thread per address, under the responder's key and
//! allowed networks.
//!
//! They share nothing else with it: no session, no admission, as what they send is never more than
//! what comes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use netaware_io::stamp::reflector::{ReflectorError, ReflectorSocket, wake};
use netaware_io::stamp::run_of_kernel;
use netaware_io::stop::StopFlag;
use netaware_probe::stamp::reflector::{ReflectorCounts, ReflectorSettings, Refused};

use crate::Config;
use crate::bind;
use crate::context::Context;

/// Those of a responder, bound and not yet started.
#[derive(Debug, Default)]
pub(crate) struct StampReflectors {
    sockets: Vec<ReflectorSocket>,
}

impl StampReflectors {
    /// On every address of the configuration, if it wants any. An IP version that this host does
    /// not have is left out where nobody insisted on it.
    pub(crate) fn bind(config: &Config) -> Result<Self, ReflectorError> {
        let Some(mut port) = config.stamp else { return Ok(Self::default()) };
        let settings = ReflectorSettings {
            key: config.key.clone(),
            run_of_kernel: run_of_kernel(),
            ..ReflectorSettings::default()
        };
        let (mut sockets, mut absent) = (Vec::new(), None);
        for ip in bind::wanted(config) {
            match ReflectorSocket::bind(ip.at(port), settings.clone()) {
                Ok(socket) => {
                    port = socket.local().port();
                    sockets.push(socket);
                }
                Err(error) if config.bind.is_empty() => absent = Some(error),
                Err(error) => return Err(error),
            }
        }
        match absent {
            Some(error) if sockets.is_empty() => Err(error),
            _ => Ok(Self { sockets }),
        }
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(ReflectorSocket::local).collect()
    }

    /// Answers until [`Running::end`].
    pub(crate) fn start(self, context: &Arc<Context>) -> std::io::Result<Running> {
        let stop = StopFlag::new();
        let mut running = Running { stop: stop.clone(), threads: Vec::new() };
        for socket in self.sockets {
            let (local, context, stop) = (socket.local(), Arc::clone(context), stop.clone());
            let thread =
                thread::Builder::new().name("netaware-stamp".to_owned()).spawn(move || {
                    match socket.run(&stop, &|ip| context.config.admits(ip)) {
                        Ok(counts) => log(local, &counts),
                        Err(error) => tracing::error!(%local, %error, "the STAMP reflector ended"),
                    }
                })?;
            running.threads.push((local, thread));
        }
        Ok(running)
    }
}

/// Those that answer.
#[derive(Debug)]
pub(crate) struct Running {
    stop: StopFlag,
    threads: Vec<(SocketAddr, JoinHandle<()>)>,
}

impl Running {
    /// Ends them all; one whose wake-up a firewall swallows ends within a second.
    pub(crate) fn end(self) {
        self.stop.raise();
        for (local, thread) in self.threads {
            wake(local);
            if thread.join().is_err() {
                tracing::error!(%local, "a STAMP reflector panicked");
            }
        }
    }
}

fn log(local: SocketAddr, counts: &ReflectorCounts) {
    let refused: Vec<String> = Refused::ALL
        .into_iter()
        .map(|why| (why.name(), counts.refused(why)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    tracing::info!(%local, answered = counts.answered, refused = refused.join(", "), "STAMP reflector");
}
