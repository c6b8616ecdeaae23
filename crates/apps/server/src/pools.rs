//! What strangers take and all share: each of these is a pool with a share for each host and site
//! ([`netaware_pool`]).

use std::net::IpAddr;

use netaware_pool::{AtShare, Full, Limits, Place, Places, Standing};
use tokio::sync::watch;

use crate::channel::MOST_CHANNELS;
use crate::config::Config;

/// The pools of a responder.
#[derive(Debug)]
pub(crate) struct Pools {
    /// Connections that have not said yet what they want. They are brief, so that a newcomer takes
    /// the place of the oldest one of its own host rather than being refused.
    strangers: Places,
    /// Control sessions.
    pub(crate) sessions: Places,
    /// Latency tests, and further connections of one.
    pub(crate) echoes: Places,
    /// Data channels of pages.
    pub(crate) channels: Places,
    /// TCP connections of throughput tests.
    pub(crate) streams: Places,
    /// Results that strangers' pages send, while they come: each takes its length in memory.
    uploads: Places,
}

impl Pools {
    pub(crate) fn new(config: &Config) -> Self {
        let long_held = |all, per_host, per_site| {
            Places::new(Limits { all, reserved: 0, per_host, per_site, at_share: AtShare::Refuse })
        };
        let (sessions, per_address) = (config.max_sessions, config.max_sessions_per_address);
        let echoes = config.max_echo_flows;
        Self {
            strangers: Places::new(Limits {
                all: MAX_STRANGERS,
                reserved: 0,
                per_host: MAX_STRANGERS_PER_HOST,
                per_site: MAX_STRANGERS_PER_SITE,
                at_share: AtShare::Evict,
            }),
            sessions: long_held(sessions, per_address, per_address.saturating_mul(2)),
            echoes: long_held(echoes, echoes.div_ceil(4), echoes.div_ceil(2)),
            // One page may use all of them; another address gets one as soon as it asks.
            channels: long_held(MOST_CHANNELS, MOST_CHANNELS, MOST_CHANNELS),
            streams: long_held(MAX_STREAMS_IN_ALL, MAX_STREAMS_PER_HOST, MAX_STREAMS_PER_SITE),
            uploads: Places::new(Limits {
                all: MAX_UPLOADS,
                reserved: 0,
                per_host: MAX_UPLOADS / 2,
                per_site: MAX_UPLOADS / 2,
                at_share: AtShare::Evict,
            }),
        }
    }
}

/// The place of a connection that has not said yet what it wants.
#[derive(Debug)]
pub(crate) struct Stranger {
    pub(crate) place: Place,
    pub(crate) eviction: Eviction,
}

/// Tells that a place was taken away. Cloned freely.
#[derive(Debug, Clone)]
pub(crate) struct Eviction(watch::Receiver<bool>);

impl Eviction {
    /// Waits until the place is taken away; for ever if it was given back before.
    pub(crate) async fn happened(&mut self) {
        if self.0.wait_for(|is_evicted| *is_evicted).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Pools {
    /// A place for a connection that has just been accepted.
    pub(crate) fn stranger(&self, from: IpAddr) -> Result<Stranger, Full> {
        let (place, eviction) = enter(&self.strangers, from)?;
        Ok(Stranger { place, eviction })
    }

    /// A place for a result that a stranger's page begins to send.
    pub(crate) fn upload(&self, from: IpAddr) -> Result<(Place, Eviction), Full> {
        enter(&self.uploads, from)
    }
}

/// A place, and what tells of its loss.
fn enter(places: &Places, from: IpAddr) -> Result<(Place, Eviction), Full> {
    let (tell, told) = watch::channel(false);
    let evict = move || {
        tell.send_replace(true);
    };
    let place = places.enter(from, Standing::Unproven, evict)?;
    Ok((place, Eviction(told)))
}

/// What a refused newcomer is told; `what` is the plural of what the places are for.
pub(crate) fn told(full: Full, what: &str) -> String {
    match full {
        Full::Everywhere(most) => format!("the responder's cap for {what} is {most}"),
        Full::ForThisHost(most) => format!("the responder's cap for {what} per address is {most}"),
        Full::ForThisSite(most) => format!("the responder's cap for {what} per IPv6 /48 is {most}"),
    }
}

/// All at once; each costs a file descriptor for some seconds.
pub(crate) const MAX_STRANGERS: usize = 768;
/// One prober's streams arrive together: [`netaware_wire::control::MAX_STREAMS`] and some sessions.
const MAX_STRANGERS_PER_HOST: usize = 544;
const MAX_STRANGERS_PER_SITE: usize = 640;
/// Two tests of the most streams at once over each IP version. Each costs two file descriptors.
pub(crate) const MAX_STREAMS_IN_ALL: usize = 2100;
const MAX_STREAMS_PER_HOST: usize = 1040;
const MAX_STREAMS_PER_SITE: usize = 1560;
/// At half a megabyte each.
const MAX_UPLOADS: usize = 32;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn attacker(n: usize) -> IpAddr {
        IpAddr::from([10, 0, (n / 250) as u8, (n % 250) as u8])
    }

    const HONEST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    /// 500 addresses try to hold 100 places each in every pool.
    #[test]
    fn five_hundred_addresses_with_a_hundred_connections_each_keep_nobody_out() {
        let pools = Pools::new(&Config::default());
        let Pools { strangers, sessions, echoes, channels, streams, uploads } = &pools;
        for pool in [strangers, sessions, echoes, streams, uploads] {
            let mut held: Vec<Place> = Vec::new();
            for round in 0..100 {
                for n in 0..500 {
                    held.extend(pool.enter(attacker(n), Standing::Unproven, || {}));
                }
                let honest = pool.enter(HONEST, Standing::Unproven, || {});
                assert!(honest.is_ok(), "round {round}: {honest:?}");
            }
        }
        let held: Vec<_> =
            (0..500).filter_map(|n| channels.enter(attacker(n), Standing::Unproven, || {}).ok()).collect();
        assert_eq!(held.len(), 64, "more addresses than channels: first come, first served");
    }

    /// Each stranger made the responder keep half a megabyte of a result that never came whole.
    #[test]
    fn results_that_never_come_whole_take_the_memory_of_a_few() {
        let pools = Pools::new(&Config::default());
        let held: Vec<_> = (0..500).map(|n| pools.upload(attacker(n)).unwrap()).collect();
        assert_eq!(pools.uploads.taken(), MAX_UPLOADS);
        let is_evicted = |(_, eviction): &&(Place, Eviction)| *eviction.0.borrow();
        assert_eq!(held.iter().filter(is_evicted).count(), 500 - MAX_UPLOADS, "each was told");
    }

    /// A hundred sessions of one address and one of another: the one is never taken away.
    #[test]
    fn who_holds_little_loses_nothing_to_who_holds_much() {
        let config = Config { max_sessions: 10, max_sessions_per_address: 10, ..Config::default() };
        let pools = Pools::new(&config);
        let lost = Arc::new(AtomicUsize::new(0));
        let counts = lost.clone();
        let _honest = pools.sessions.enter(HONEST, Standing::Unproven, move || {
            counts.fetch_add(1, Ordering::Relaxed);
        });
        let _held: Vec<_> =
            (0..100).map(|n| pools.sessions.enter(attacker(n % 4), Standing::Unproven, || {})).collect();
        assert_eq!(lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_refusal_names_the_cap() {
        assert_eq!(told(Full::Everywhere(1000), "sessions"), "the responder's cap for sessions is 1000");
        let of_host = told(Full::ForThisHost(200), "sessions");
        assert_eq!(of_host, "the responder's cap for sessions per address is 200");
    }
}
