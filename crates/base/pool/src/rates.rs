//! How often strangers are answered: each host so often, and all of them together so often.
//!
//! Addresses can be forged, so this bounds two things: what one host that is forged again and again
//! is sent, and what all answers together cost. It does not keep a forger from using up the answers
//! that others could have had; only a proof of the address does that.
//!
//! Memory is bounded by [`RateLimits::hosts`], and each question takes O(log n) of n hosts.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use netaware_units::{Mono, Span};

use crate::network::Host;

/// How often something may happen: the two figures of a token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How often in a second; less than 1 counts as 1.
    pub per_second: u32,
    /// How often at once after a pause; less than 1 counts as 1.
    pub burst: u32,
}

/// How often strangers are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// One host: an IPv4 address or an IPv6 /64.
    pub per_host: Rate,
    /// All of them together.
    pub all: Rate,
    /// How many hosts are remembered, at least 1. If there are more, the one that was seen least
    /// recently is forgotten, and may have a whole burst again.
    pub hosts: usize,
}

/// Whose rate is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverRate {
    /// This host's.
    Host,
    /// That of all hosts together.
    All,
}

/// Decides who is answered. It has neither clock nor socket.
#[derive(Debug)]
pub struct Rates {
    limits: RateLimits,
    all: Bucket,
    hosts: HashMap<Host, Remembered>,
    /// The same hosts by when they were seen last. `remember` is the only writer of both.
    by_age: BTreeMap<u64, Host>,
    seen: u64,
}

#[derive(Debug, Clone, Copy)]
struct Remembered {
    bucket: Bucket,
    /// The key in `by_age`.
    seen: u64,
}

impl Rates {
    /// Nobody has been answered yet.
    pub fn new(limits: RateLimits) -> Self {
        Self { limits, all: Bucket::default(), hosts: HashMap::new(), by_age: BTreeMap::new(), seen: 0 }
    }

    /// Counts an answer to this address, if it may have one.
    ///
    /// # Errors
    /// A rate is used up. Nothing is counted then: who is refused uses up nobody's rate.
    pub fn allow(&mut self, now: Mono, address: IpAddr) -> Result<(), OverRate> {
        let host = Host::of(address);
        let mut bucket = self.hosts.get(&host).map(|known| known.bucket).unwrap_or_default();
        if !bucket.take(now, self.limits.per_host) {
            // A host that goes on asking is not forgotten.
            self.remember(host, bucket);
            return Err(OverRate::Host);
        }
        if !self.all.take(now, self.limits.all) {
            return Err(OverRate::All);
        }
        self.remember(host, bucket);
        Ok(())
    }

    /// Returns how many hosts are remembered.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    fn remember(&mut self, host: Host, bucket: Bucket) {
        self.seen += 1;
        if let Some(before) = self.hosts.insert(host, Remembered { bucket, seen: self.seen }) {
            self.by_age.remove(&before.seen);
        }
        self.by_age.insert(self.seen, host);
        if self.hosts.len() > self.limits.hosts.max(1)
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.hosts.remove(&oldest);
        }
    }
}

/// A token bucket, as the time at which it is full again.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    full_at: Mono,
}

impl Bucket {
    fn take(&mut self, now: Mono, rate: Rate) -> bool {
        let refill = Span(NS_PER_S / i64::from(rate.per_second.max(1)));
        let full_at = self.full_at.max(now);
        // The last token of a burst is still there if all the others have to be refilled.
        let others = refill * i64::from(rate.burst.max(1) - 1);
        let allowed = full_at.since(now) <= others;
        if allowed {
            self.full_at = full_at + refill;
        }
        allowed
    }
}

const NS_PER_S: i64 = 1_000_000_000;

#[cfg(test)]
mod tests;
