//! Which interface owns a local address.
#![expect(unsafe_code, reason = "getifaddrs has no safe wrapper in the standard library")]

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

/// The interface that owns this local address; `None` for a wildcard or foreign one.
///
/// All of 127.0.0.0/8 belongs to loopback, and IPv4-mapped IPv6 addresses count as IPv4. A
/// link-local IPv6 address may be that of several interfaces (those of VLANs have the one of the
/// interface below): its scope says which, and without one the first is taken. The port says
/// nothing.
pub fn interface_for(local: SocketAddr) -> Option<String> {
    owner(local, &assigned_addresses())
}

/// What this host has lost of the network by which packets from a local address leave: the address
/// itself, or the link of its interface. `None` if neither, or if the system does not say.
pub fn lost_network(local: SocketAddr) -> Option<String> {
    lost(local, &assigned_addresses())
}

fn lost(local: SocketAddr, assigned: &[Assigned]) -> Option<String> {
    let Some(interface) = owner(local, assigned) else {
        return (!assigned.is_empty()).then(|| format!("this host has lost its address {}", local.ip()));
    };
    let is_down = assigned.iter().any(|entry| entry.interface == interface && !entry.is_running);
    is_down.then(|| format!("interface {interface} of this host is down"))
}

/// Addresses of this host that others may reach it by, without those of loopback and those that
/// hold on one link only. Those that a device nearby will most likely reach come first: private
/// IPv4 of the interface towards the rest of the world, then its other IPv4, then global IPv6, then
/// all others, and those of bridges of containers and virtual machines last.
pub fn reachable_addresses() -> Vec<IpAddr> {
    let far = |address: &IpAddr| match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local() && !v4.is_unspecified(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local() && !v6.is_unspecified(),
    };
    let mut assigned = assigned_addresses();
    let outward = outward_interfaces(&assigned);
    assigned.retain(|entry| far(&entry.address.ip()));
    assigned.sort_by_key(|entry| remoteness(entry, &outward));
    assigned.into_iter().map(|entry| entry.address.ip()).collect()
}

/// Interfaces that own the address by which this host would speak to somebody far away. Connecting
/// a UDP socket sends nothing.
fn outward_interfaces(assigned: &[Assigned]) -> Vec<String> {
    let strangers: [IpAddr; 2] =
        [Ipv4Addr::new(198, 51, 100, 1).into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()];
    let own = strangers.into_iter().filter_map(|stranger| {
        let any: IpAddr =
            if stranger.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((stranger, 9)).ok()?;
        socket.local_addr().ok()
    });
    own.filter_map(|address| owner(address, assigned)).collect()
}

/// See [`reachable_addresses`]; less is tried first.
fn remoteness(entry: &Assigned, outward: &[String]) -> u8 {
    let is_outward = outward.contains(&entry.interface);
    match entry.address.ip() {
        _ if BRIDGES.iter().any(|prefix| entry.interface.starts_with(prefix)) && !is_outward => 5,
        IpAddr::V4(v4) if is_outward && v4.is_private() => 0,
        IpAddr::V4(_) if is_outward => 1,
        // Global unicast (RFC 4291 §2.4 and what IANA gives out of it).
        IpAddr::V6(v6) if v6.segments()[0] & 0xe000 == 0x2000 => 2,
        _ if is_outward => 3,
        IpAddr::V4(_) | IpAddr::V6(_) => 4,
    }
}

/// How interfaces are named that lead to containers and virtual machines of this host.
const BRIDGES: &[&str] = &[
    "docker", "br-", "veth", "virbr", "vnet", "lxc", "lxd", "podman", "cni", "flannel", "cali", "vmnet",
    "vboxnet",
];

/// All interfaces of this network namespace that exist now, loopback included, in the system's
/// order.
pub fn all_interfaces() -> Vec<String> {
    // SAFETY: takes nothing; the array is freed below.
    let first = unsafe { libc::if_nameindex() };
    if first.is_null() {
        return Vec::new();
    }
    let mut names = Vec::new();
    let mut next = first;
    // SAFETY: the array ends with an entry whose index is 0 and whose name is null; names are
    // terminated.
    unsafe {
        while (*next).if_index != 0 && !(*next).if_name.is_null() {
            names.push(CStr::from_ptr((*next).if_name).to_string_lossy().into_owned());
            next = next.add(1);
        }
        libc::if_freenameindex(first);
    }
    names
}

/// Its number in this network namespace.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: a terminated text that outlives the call.
    Some(unsafe { libc::if_nametoindex(name.as_ptr()) }).filter(|index| *index > 0)
}

/// The interfaces that own these addresses, each once, in the order of the addresses.
pub(crate) fn interfaces_for(local: &[SocketAddr]) -> Vec<String> {
    let assigned = assigned_addresses();
    let mut names = Vec::new();
    for name in local.iter().filter_map(|address| owner(*address, &assigned)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

struct Assigned {
    interface: String,
    /// A link-local one has the scope of its interface, and all have port 0.
    address: SocketAddr,
    loopback: bool,
    /// Its interface is up and has a link.
    is_running: bool,
}

fn owner(local: SocketAddr, assigned: &[Assigned]) -> Option<String> {
    let (ip, scope) = (local.ip().to_canonical(), scope_of(local));
    let is_on_its_link = |entry: &Assigned| {
        let of_entry = scope_of(entry.address);
        scope == 0 || of_entry == 0 || of_entry == scope
    };
    let exact = assigned.iter().find(|entry| entry.address.ip() == ip && is_on_its_link(entry));
    // 127.0.0.2 can be bound to although no interface lists it.
    let loopback = || assigned.iter().find(|entry| entry.loopback && ip.is_loopback());
    exact.or_else(loopback).map(|entry| entry.interface.clone())
}

/// The number of the interface on which the address is valid; 0 if it is valid on all.
fn scope_of(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V6(v6) => v6.scope_id(),
        SocketAddr::V4(_) => 0,
    }
}

fn assigned_addresses() -> Vec<Assigned> {
    let Some(list) = AddressList::read() else { return Vec::new() };
    let mut assigned = Vec::new();
    let mut next = list.first;
    // SAFETY: `next` is null or an entry of the list, which lives until `list` is dropped.
    while let Some(entry) = unsafe { next.as_ref() } {
        assigned.extend(read_entry(entry));
        next = entry.ifa_next;
    }
    assigned
}

fn read_entry(entry: &libc::ifaddrs) -> Option<Assigned> {
    // SAFETY: `ifa_addr` is null or points to a socket address whose size its family tells.
    let address = unsafe { read_address(entry.ifa_addr) }?;
    if entry.ifa_name.is_null() {
        return None;
    }
    // SAFETY: `ifa_name` is not null and, as getifaddrs(3) has it, a terminated string within the
    // list.
    let interface = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
    let loopback = entry.ifa_flags & libc::IFF_LOOPBACK as libc::c_uint != 0;
    let is_running =
        [libc::IFF_UP, libc::IFF_RUNNING].iter().all(|flag| entry.ifa_flags & *flag as libc::c_uint != 0);
    Some(Assigned { interface, address, loopback, is_running })
}

/// # Safety
/// `address` must be null or point to a socket address that is as long as its family says.
unsafe fn read_address(address: *const libc::sockaddr) -> Option<SocketAddr> {
    // SAFETY: every socket address begins with the fields of `sockaddr`; the caller vouches for the
    // rest.
    let family = i32::from(unsafe { address.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: the family says that a whole `sockaddr_in` is there; unaligned reads make no
            // further demand.
            let inet = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some((Ipv4Addr::from(inet.sin_addr.s_addr.to_ne_bytes()), 0).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above, with `sockaddr_in6`.
            let inet6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(inet6.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, 0, 0, inet6.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// What getifaddrs(3) allocated. `first` may be null and is never written to.
struct AddressList {
    first: *mut libc::ifaddrs,
}

impl AddressList {
    fn read() -> Option<Self> {
        let mut first = std::ptr::null_mut();
        // SAFETY: `first` is a live pointer variable for the call to fill.
        let answer = unsafe { libc::getifaddrs(&raw mut first) };
        (answer == 0).then_some(Self { first })
    }
}

impl Drop for AddressList {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // SAFETY: `first` came from getifaddrs, is freed here only, and no entry outlives the
            // list.
            unsafe { libc::freeifaddrs(self.first) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(interface: &str, address: &str, loopback: bool) -> Assigned {
        let address = local(address);
        Assigned { interface: interface.to_owned(), address, loopback, is_running: true }
    }

    /// An address of a socket, without a scope.
    fn local(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().expect("an address"), 0)
    }

    fn link_local(scope: u32) -> SocketAddr {
        SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), 14_233, 0, scope).into()
    }

    #[test]
    fn a_lost_address_and_a_link_that_is_down_are_this_hosts_own() {
        let mut all = [assigned("eth0", "192.0.2.2", false), assigned("eth1", "2001:db8::2", false)];
        let of = |address: &str, all: &[Assigned]| lost(local(address), all);
        assert_eq!(of("192.0.2.2", &all), None);
        let gone = "this host has lost its address 2001:db8::3".to_owned();
        assert_eq!((of("2001:db8::3", &all), of("2001:db8::3", &[])), (Some(gone), None));
        all[1].is_running = false;
        assert_eq!(of("2001:db8::2", &all), Some("interface eth1 of this host is down".to_owned()));
        assert_eq!(of("192.0.2.2", &all), None);
    }

    #[test]
    fn an_address_belongs_to_who_lists_it_and_127_8_to_loopback() {
        let all = [
            assigned("eth0", "192.0.2.2", false),
            assigned("lo", "127.0.0.1", true),
            assigned("lo", "::1", true),
            assigned("eth1", "127.5.5.5", false),
            assigned("eth1", "2001:db8::2", false),
        ];
        let rows: &[(&str, Option<&str>)] = &[
            ("192.0.2.2", Some("eth0")),
            ("::ffff:192.0.2.2", Some("eth0")),
            ("127.0.0.1", Some("lo")),
            ("127.9.9.9", Some("lo")),
            ("127.5.5.5", Some("eth1")),
            ("::1", Some("lo")),
            ("2001:db8::2", Some("eth1")),
            ("2001:db8::3", None),
            ("0.0.0.0", None),
            ("::", None),
        ];
        for (n, (address, want)) in rows.iter().enumerate() {
            let found = owner(local(address), &all);
            assert_eq!(found.as_deref(), *want, "row {n}: {address}");
        }
        assert_eq!(owner(local("127.0.0.1"), &[]), None);
    }

    #[test]
    fn a_link_local_address_of_several_links_belongs_to_the_one_of_its_scope() {
        let on = |interface: &str, scope| Assigned {
            address: link_local(scope),
            ..assigned(interface, "::", false)
        };
        let mut all = [on("eth0", 2), on("eth0.7", 3), on("eth0.8", 4)];
        for (scope, want) in [(2, Some("eth0")), (3, Some("eth0.7")), (4, Some("eth0.8")), (5, None)] {
            assert_eq!(owner(link_local(scope), &all).as_deref(), want, "{scope}");
        }
        assert_eq!(owner(link_local(0), &all).as_deref(), Some("eth0"), "the first, if none is named");
        all[1].is_running = false;
        assert_eq!(lost(link_local(2), &all), None);
        assert_eq!(lost(link_local(3), &all), Some("interface eth0.7 of this host is down".to_owned()));
        assert_eq!(lost(link_local(5), &all), Some("this host has lost its address fe80::1".to_owned()));
    }

    #[test]
    fn what_a_phone_will_most_likely_reach_comes_first() {
        let mut all = [
            assigned("docker0", "172.17.0.1", false),
            assigned("eth0", "fd00::2", false),
            assigned("eth0", "203.0.113.2", false),
            assigned("tun0", "10.8.0.1", false),
            assigned("eth0", "2a00::2", false),
            assigned("eth0", "192.168.1.2", false),
        ];
        all.sort_by_key(|entry| remoteness(entry, &["eth0".to_owned()]));
        let order: Vec<String> = all.iter().map(|entry| entry.address.ip().to_string()).collect();
        assert_eq!(order, ["192.168.1.2", "203.0.113.2", "2a00::2", "fd00::2", "10.8.0.1", "172.17.0.1"]);
    }

    #[test]
    fn loopback_of_this_host_has_a_name_and_is_named_once() {
        let loopback = interface_for(local("127.0.0.1")).expect("a loopback interface");
        assert!(all_interfaces().contains(&loopback));
        assert_eq!(interfaces_for(&[local("127.0.0.1"), local("127.0.0.2")]), [loopback]);
        assert_eq!(interface_for(local("::")), None);
    }
}
