//! Which addresses are one host's, as far as this process was told by a resolver.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netaware_record::IpVersion;
use netaware_units::{Mono, Span};

/// Names looked up, newest last. Bounded.
#[derive(Debug)]
pub(crate) struct Book {
    hosts: Vec<Host>,
}

#[derive(Debug)]
struct Host {
    name: String,
    /// By IP version; `None` was never asked for.
    addresses: [Option<Vec<IpAddr>>; 2],
    at: Mono,
}

/// What is known of a host, besides the address that one knows it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) name: String,
    /// Its addresses of the other IP version; `None` was never asked for.
    pub(crate) others: Option<Vec<IpAddr>>,
}

impl Book {
    pub(crate) const fn new() -> Self {
        Self { hosts: Vec::new() }
    }

    /// A resolver has answered for these versions.
    pub(crate) fn record(&mut self, now: Mono, name: &str, asked: &[IpVersion], found: &[IpAddr]) {
        // A name that is an address says nothing of the other version.
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || name.parse::<IpAddr>().is_ok()
            || name.contains('%')
        {
            return;
        }
        let at = self.hosts.iter().position(|host| host.name.eq_ignore_ascii_case(name));
        let mut host = match at {
            Some(at) => self.hosts.remove(at),
            None => Host { name: name.to_owned(), addresses: [None, None], at: now },
        };
        host.at = now;
        for ip in asked {
            let mut list: Vec<IpAddr> = Vec::new();
            for address in found.iter().filter(|it| IpVersion::of(**it) == *ip && is_usable(**it)) {
                if !list.contains(address) && list.len() < MOST_ADDRESSES {
                    list.push(*address);
                }
            }
            host.addresses[ip.index()] = Some(list);
        }
        if self.hosts.len() >= MOST_HOSTS {
            self.hosts.remove(0);
        }
        self.hosts.push(host);
    }

    /// The host of an address. Nothing where two names claim it that differ in the other version:
    /// whom the program means cannot be told.
    pub(crate) fn host_of(&self, now: Mono, address: IpAddr) -> Option<Known> {
        let own = IpVersion::of(address);
        let fresh = |host: &&Host| now - host.at <= FRESH;
        let has = |host: &&Host| host.addresses[own.index()].as_ref().is_some_and(|it| it.contains(&address));
        let mut hosts = self.hosts.iter().rev().filter(fresh).filter(has);
        let newest = hosts.next()?;
        let others = &newest.addresses[own.other().index()];
        if hosts.any(|host| host.addresses[own.other().index()] != *others) {
            return None;
        }
        Some(Known { name: newest.name.clone(), others: others.clone() })
    }
}

/// Not for addresses that mean something else on each link, or no host at all.
fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4 != Ipv4Addr::UNSPECIFIED && !v4.is_multicast() && !v4.is_broadcast(),
        IpAddr::V6(v6) => {
            v6 != Ipv6Addr::UNSPECIFIED
                && !v6.is_multicast()
                && !v6.is_unicast_link_local()
                && v6.to_ipv4_mapped().is_none()
        }
    }
}

/// How long an answer of a resolver is believed: it tells no time to live, and hosts move.
pub(crate) const FRESH: Span = Span::from_secs(600);
const MOST_HOSTS: usize = 128;
const MOST_ADDRESSES: usize = 8;
/// RFC 1035 §2.3.4, and room for a dot.
const LONGEST_NAME: usize = 254;

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn at(seconds: i64) -> Mono {
        Mono(0) + Span::from_secs(seconds)
    }

    #[derive(Debug, PartialEq)]
    struct Doubt;

    fn others(book: &Book, now: i64, address: &str) -> Result<Option<Vec<IpAddr>>, Doubt> {
        book.host_of(at(now), ip(address)).map(|known| known.others).ok_or(Doubt)
    }

    #[test]
    fn one_lookup_tells_both_versions() {
        let mut book = Book::new();
        book.record(at(0), "lab-b", &BOTH, &[ip("2001:db8::1"), ip("192.0.2.1"), ip("192.0.2.2")]);
        assert_eq!(others(&book, 1, "2001:db8::1"), Ok(Some(vec![ip("192.0.2.1"), ip("192.0.2.2")])));
        assert_eq!(others(&book, 1, "192.0.2.2"), Ok(Some(vec![ip("2001:db8::1")])));
        assert_eq!(others(&book, 1, "192.0.2.3"), Err(Doubt));
    }

    #[test]
    fn two_lookups_of_one_name_are_one_host() {
        let mut book = Book::new();
        book.record(at(0), "lab-b", &[IpVersion::V4], &[ip("192.0.2.1")]);
        assert_eq!(others(&book, 1, "192.0.2.1"), Ok(None));
        book.record(at(1), "LAB-B", &[IpVersion::V6], &[ip("2001:db8::1")]);
        assert_eq!(others(&book, 2, "192.0.2.1"), Ok(Some(vec![ip("2001:db8::1")])));
    }

    #[test]
    fn an_address_under_two_names_is_doubtful_unless_they_agree() {
        let mut book = Book::new();
        book.record(at(0), "a", &BOTH, &[ip("192.0.2.1"), ip("2001:db8::a")]);
        book.record(at(0), "b", &BOTH, &[ip("192.0.2.1"), ip("2001:db8::b")]);
        book.record(at(0), "c", &BOTH, &[ip("192.0.2.7"), ip("2001:db8::c")]);
        book.record(at(0), "c.example", &BOTH, &[ip("192.0.2.7"), ip("2001:db8::c")]);
        assert_eq!(others(&book, 1, "192.0.2.1"), Err(Doubt));
        assert_eq!(others(&book, 1, "192.0.2.7"), Ok(Some(vec![ip("2001:db8::c")])));
    }

    #[test]
    fn what_is_old_numeric_or_of_one_link_counts_for_nothing() {
        let mut book = Book::new();
        book.record(at(0), "old", &BOTH, &[ip("192.0.2.1"), ip("2001:db8::1")]);
        book.record(at(0), "192.0.2.9", &BOTH, &[ip("192.0.2.9")]);
        book.record(at(0), "link", &BOTH, &[ip("192.0.2.8"), ip("fe80::1")]);
        assert_eq!(others(&book, 601, "192.0.2.1"), Err(Doubt));
        assert_eq!(others(&book, 1, "192.0.2.9"), Err(Doubt));
        assert_eq!(others(&book, 1, "192.0.2.8"), Ok(Some(vec![])));
    }

    #[test]
    fn the_book_does_not_grow_without_bound() {
        let mut book = Book::new();
        for n in 0..1000_u32 {
            let found: Vec<IpAddr> = (0..100).map(|m| Ipv4Addr::from(n * 256 + m + 1).into()).collect();
            book.record(at(0), &format!("host-{n}"), &BOTH, &found);
        }
        assert_eq!(book.hosts.len(), MOST_HOSTS);
        assert!(book.hosts.iter().all(|host| host.addresses[0].as_ref().unwrap().len() == MOST_ADDRESSES));
    }
}
