//! The decision: who gets a place, and who has to give one up for that.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::net::IpAddr;

use crate::network::{Host, Site};

/// How many places there are, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// All places.
    pub all: usize,
    /// How many of `all` only those get who have proven that they know a key.
    pub reserved: usize,
    /// The most unproven places of one host.
    pub per_host: usize,
    /// The most unproven places of one site.
    pub per_site: usize,
    /// What happens to a newcomer whose share is used up.
    pub at_share: AtShare,
}

/// What happens to an unproven newcomer whose host or site holds its share already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtShare {
    /// The oldest place of its host, or of its site's host that holds most, is taken away. This
    /// suits places that are held briefly, such as connections in their opening: who is silent
    /// cannot keep a neighbour behind the same address out.
    Evict,
    /// The newcomer is refused. This suits places that are held long, such as sessions: what runs
    /// goes on. If the whole pool is full, a newcomer gets a place only from a site that holds at
    /// least two more than the newcomer's.
    Refuse,
}

/// Whether somebody has proven that they know the owner's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// They have not, or there is no key.
    Unproven,
    /// They have.
    Proven,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All places that this newcomer could have are taken; how many these are.
    Everywhere(usize),
    /// The newcomer's host holds its share, which is so many.
    ForThisHost(usize),
    /// The newcomer's site holds its share, which is so many.
    ForThisSite(usize),
}

/// A place that was given.
#[derive(Debug)]
pub struct Entered<H> {
    /// Names the place.
    pub id: Id,
    /// The holder whose place was taken away for that.
    pub evicted: Option<H>,
}

/// Names a place; no two places of a pool ever have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

/// A pool of places. `H` is what the caller needs to reach a holder that is evicted.
#[derive(Debug)]
pub struct Pool<H> {
    limits: Limits,
    next: u64,
    taken: HashMap<Id, Taken<H>>,
    proven: usize,
    /// The unproven places by site, and those of each site by host. A site without any is in
    /// neither.
    sites: Ranking<Site>,
    hosts: HashMap<Site, Ranking<Host>>,
}

#[derive(Debug)]
struct Taken<H> {
    from: IpAddr,
    standing: Standing,
    holder: H,
}

impl<H> Pool<H> {
    /// Makes a pool of which no place is taken.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            next: 0,
            taken: HashMap::new(),
            proven: 0,
            sites: Ranking::default(),
            hosts: HashMap::new(),
        }
    }

    /// Gives a place to `holder`, and takes one away from somebody else if the rules say so.
    ///
    /// # Errors
    /// There is no place; `holder` is given back.
    pub fn enter(&mut self, from: IpAddr, standing: Standing, holder: H) -> Result<Entered<H>, (Full, H)> {
        let victim = match self.victim_for(from, standing) {
            Ok(victim) => victim,
            Err(full) => return Err((full, holder)),
        };
        let evicted = victim.and_then(|id| self.leave(id));
        let id = Id(self.next);
        self.next += 1;
        self.taken.insert(id, Taken { from, standing, holder });
        match standing {
            Standing::Proven => self.proven += 1,
            Standing::Unproven => self.rank(from, id),
        }
        Ok(Entered { id, evicted })
    }

    /// Marks a place as held by somebody who knows the key: it counts in no share any more and is
    /// not taken away. Does nothing if the place was given back or taken away.
    pub fn prove(&mut self, id: Id) {
        let Some(taken) = self.taken.get_mut(&id) else { return };
        if taken.standing == Standing::Unproven {
            taken.standing = Standing::Proven;
            self.proven += 1;
            let from = taken.from;
            self.forget(from, id);
        }
    }

    /// Gives a place back; returns its holder, or nothing if it was given back or taken away
    /// before.
    pub fn leave(&mut self, id: Id) -> Option<H> {
        let Taken { from, standing, holder } = self.taken.remove(&id)?;
        match standing {
            Standing::Proven => self.proven -= 1,
            Standing::Unproven => self.forget(from, id),
        }
        Some(holder)
    }

    /// Returns how many places are taken, proven and unproven.
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// Returns whether no place is taken.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Returns how many unproven places the host of this address holds.
    pub fn held_by_host(&self, address: IpAddr) -> usize {
        self.hosts.get(&Site::of(address)).map_or(0, |hosts| hosts.count(Host::of(address)))
    }

    /// Whose place a newcomer would get, if not a free one.
    fn victim_for(&self, from: IpAddr, standing: Standing) -> Result<Option<Id>, Full> {
        let Limits { all, per_host, per_site, at_share, .. } = self.limits;
        if standing == Standing::Proven {
            let is_full = self.taken.len() >= all;
            return if is_full { self.heaviest().map(Some).ok_or(Full::Everywhere(all)) } else { Ok(None) };
        }
        let (site, host) = (Site::of(from), Host::of(from));
        let at_this_site = self.sites.count(site);
        let own_share = if self.held_by_host(from) >= per_host {
            Some((Full::ForThisHost(per_host), self.hosts.get(&site).and_then(|it| it.oldest(host))))
        } else if at_this_site >= per_site {
            Some((Full::ForThisSite(per_site), self.heaviest_of(site)))
        } else {
            None
        };
        if let Some((full, oldest)) = own_share {
            // Without any share there is nobody to take a place from.
            return oldest.filter(|_| at_share == AtShare::Evict).map(Some).ok_or(full);
        }
        let open_to_all = all - self.limits.reserved.max(self.proven).min(all);
        if self.taken.len() - self.proven < open_to_all {
            return Ok(None);
        }
        let most = self.sites.heaviest().map_or(0, |site| self.sites.count(site));
        let victim = match at_share {
            // A newcomer that would hold the most gives up a place of its own.
            AtShare::Evict if at_this_site >= most => self.heaviest_of(site),
            AtShare::Evict => self.heaviest(),
            AtShare::Refuse if most >= at_this_site + 2 => self.heaviest(),
            AtShare::Refuse => None,
        };
        victim.map(Some).ok_or(Full::Everywhere(open_to_all))
    }

    fn heaviest(&self) -> Option<Id> {
        self.heaviest_of(self.sites.heaviest()?)
    }

    fn heaviest_of(&self, site: Site) -> Option<Id> {
        let hosts = self.hosts.get(&site)?;
        hosts.oldest(hosts.heaviest()?)
    }

    fn rank(&mut self, from: IpAddr, id: Id) {
        let site = Site::of(from);
        self.sites.add(site, id);
        self.hosts.entry(site).or_default().add(Host::of(from), id);
    }

    fn forget(&mut self, from: IpAddr, id: Id) {
        let site = Site::of(from);
        self.sites.remove(site, id);
        if let Some(hosts) = self.hosts.get_mut(&site) {
            hosts.remove(Host::of(from), id);
            if hosts.is_empty() {
                self.hosts.remove(&site);
            }
        }
    }
}

/// The places of each network, and the networks in the order of how many they hold.
#[derive(Debug)]
struct Ranking<K> {
    places: BTreeMap<K, BTreeSet<Id>>,
    /// By number of places, then by age: the network with the oldest place is last among equals.
    order: BTreeSet<(usize, Reverse<Id>, K)>,
}

impl<K> Default for Ranking<K> {
    fn default() -> Self {
        Self { places: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Copy + Ord + Hash> Ranking<K> {
    fn add(&mut self, network: K, id: Id) {
        self.change(network, |places| places.insert(id));
    }

    fn remove(&mut self, network: K, id: Id) {
        self.change(network, |places| places.remove(&id));
    }

    fn change(&mut self, network: K, change: impl FnOnce(&mut BTreeSet<Id>) -> bool) {
        let places = self.places.entry(network).or_default();
        if let Some(oldest) = places.first() {
            self.order.remove(&(places.len(), Reverse(*oldest), network));
        }
        change(places);
        match places.first() {
            Some(oldest) => {
                self.order.insert((places.len(), Reverse(*oldest), network));
            }
            None => {
                self.places.remove(&network);
            }
        }
    }

    fn count(&self, network: K) -> usize {
        self.places.get(&network).map_or(0, BTreeSet::len)
    }

    fn oldest(&self, network: K) -> Option<Id> {
        self.places.get(&network).and_then(BTreeSet::first).copied()
    }

    fn heaviest(&self) -> Option<K> {
        self.order.last().map(|(_, _, network)| *network)
    }

    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests;
