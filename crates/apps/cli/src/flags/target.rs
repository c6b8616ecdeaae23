//! Where to measure to and how to get there: the same for every measuring command.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Args};
use netaware_io::options::SocketOptions;
use netaware_io::zone::{self, ZonedIp};
use netaware_prober::Target;
use netaware_record::IpVersion;
use netaware_units::Span;
use netaware_wire::DEFAULT_PORT;

use super::host::Host;
use super::{dscp, key, quantity};

const PATH: &str = "Path";

/// HOST and the flags of the way there.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("versions").args(["ipv4", "ipv6"]).multiple(true))]
#[command(group = ArgGroup::new("class").args(["dscp", "tos", "precedence"]))]
pub(crate) struct TargetFlags {
    /// Host on which `netaware serve` runs: a name, an address, HOST:PORT or [IPv6]:PORT. Without
    /// it netaware starts a responder of its own on loopback, over both IP versions
    #[arg(value_name = "HOST")]
    pub(crate) host: Option<Host>,
    /// Port of the responder, TCP and UDP [default: 14233]
    #[arg(short, long, value_name = "PORT", value_parser = quantity::whole::<u16>(1..=65_535), help_heading = PATH)]
    port: Option<u16>,
    /// The port where none is given.
    #[arg(skip = DEFAULT_PORT)]
    default_port: u16,
    /// Measure over IPv4 only
    #[arg(short = '4', long, help_heading = PATH)]
    ipv4: bool,
    /// Measure over IPv6 only
    #[arg(short = '6', long, help_heading = PATH)]
    ipv6: bool,
    /// Send from this local address; it decides the IP version too
    #[arg(short = 'B', long, value_name = "ADDR", help_heading = PATH)]
    bind: Option<ZonedIp>,
    /// Send through this interface
    #[arg(long, value_name = "NAME", help_heading = PATH)]
    interface: Option<String>,
    /// Mark packets with this class: EF, AF41, CS1, LE, … or 0..63
    #[arg(long, value_name = "CLASS", value_parser = dscp::parse, help_heading = PATH)]
    dscp: Option<u8>,
    /// The same as the TOS byte: 0xb8 is EF
    #[arg(long, value_name = "BYTE", value_parser = dscp::tos, help_heading = PATH)]
    tos: Option<u8>,
    /// The same as the three bits of IP precedence, 0..7: 5 is CS5
    #[arg(long, value_name = "N", value_parser = dscp::precedence, help_heading = PATH)]
    precedence: Option<u8>,
    /// Send with this TTL (IPv4) or hop limit (IPv6), both hosts
    #[arg(long, value_name = "N", value_parser = quantity::whole::<u8>(1..=255), help_heading = PATH)]
    ttl: Option<u8>,
    /// Mark IPv6 packets with this flow label, 1..0xfffff (Linux)
    #[arg(long, value_name = "LABEL", value_parser = dscp::flow_label, help_heading = PATH)]
    flow_label: Option<u32>,
    /// File with the shared key of the responder; the variable NETAWARE_KEY can hold the key
    /// instead
    #[arg(long, value_name = "FILE", help_heading = PATH)]
    key_file: Option<PathBuf>,
    /// Give up on an IP version that does not answer within this time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantity::some_time, help_heading = PATH)]
    connect_timeout: Span,
}

/// Somewhere without a responder.
pub(crate) struct Place {
    pub(crate) host: Host,
    /// Given by `--port`.
    pub(crate) port: Option<u16>,
    pub(crate) default_port: u16,
    pub(crate) ipv4: bool,
    pub(crate) ipv6: bool,
    pub(crate) bind: Option<ZonedIp>,
    pub(crate) interface: Option<String>,
    pub(crate) dscp: Option<u8>,
    pub(crate) flow_label: Option<u32>,
    pub(crate) patience: Span,
}

impl TargetFlags {
    /// What a command without responder has of it.
    pub(crate) fn of_place(place: Place) -> Self {
        Self {
            host: Some(place.host),
            port: place.port,
            default_port: place.default_port,
            ipv4: place.ipv4,
            ipv6: place.ipv6,
            bind: place.bind,
            interface: place.interface,
            dscp: place.dscp,
            tos: None,
            precedence: None,
            ttl: None,
            flow_label: place.flow_label,
            key_file: None,
            connect_timeout: place.patience,
        }
    }

    /// Whether a responder of our own is needed.
    pub(crate) fn is_own(&self) -> bool {
        self.host.is_none()
    }

    /// Whether a flow label is asked for, which the host that accepts a TCP connection cannot set.
    pub(crate) fn has_flow_label(&self) -> bool {
        self.flow_label.is_some()
    }

    /// As the prober wants it. For a responder of our own, `port` is what it listens on.
    ///
    /// # Errors
    /// Flags that contradict each other, or a key that cannot be read.
    pub(crate) fn target(&self, own_port: Option<u16>) -> anyhow::Result<Target> {
        let host = self.host.as_ref();
        let port = own_port.map_or_else(|| self.port(), Ok)?;
        // Without a name the prober goes to both loopback addresses.
        let name = host.map_or_else(String::new, |host| host.name.clone());
        Ok(Target {
            port,
            versions: self.labelled_versions()?,
            key: key::read(self.key_file.as_deref())?,
            options: self.options()?,
            connect_patience: self.connect_timeout,
            own_responder: own_port.is_some(),
            ..Target::new(name)
        })
    }

    fn port(&self) -> anyhow::Result<u16> {
        let typed = self.host.as_ref().and_then(|host| host.port);
        if let (Some(a), Some(b)) = (typed, self.port) {
            ensure!(a == b, "HOST says port {a} and --port says {b}: give one of them");
        }
        Ok(typed.or(self.port).unwrap_or(self.default_port))
    }

    /// The versions asked for, less those that a literal address or a bound address rules out.
    fn versions(&self) -> anyhow::Result<Vec<IpVersion>> {
        let asked = match (self.ipv4, self.ipv6) {
            (true, false) => vec![IpVersion::V4],
            (false, true) => vec![IpVersion::V6],
            _ => vec![IpVersion::V4, IpVersion::V6],
        };
        let host = self.host.as_ref().and_then(|host| Some((host.version()?, "HOST")));
        let bind = self.bind.map(|address| (IpVersion::of(address.ip()), "--bind"));
        let mut left = asked;
        for (only, said_by) in [host, bind].into_iter().flatten() {
            if !left.contains(&only) {
                let other = left.first().map_or("", |version| version.name());
                bail!("{said_by} is an {} address, but {other} is asked for", only.name());
            }
            left = vec![only];
        }
        Ok(left)
    }

    /// As [`Self::versions`]; a flow label needs IPv6 among them.
    fn labelled_versions(&self) -> anyhow::Result<Vec<IpVersion>> {
        let versions = self.versions()?;
        ensure!(
            !self.has_flow_label() || versions.contains(&IpVersion::V6),
            "IPv4 has no flow label: leave out --flow-label, or measure over IPv6"
        );
        Ok(versions)
    }

    /// The interface on which link-local addresses of this measurement are, and by whom it was
    /// named: HOST, --bind and --interface have to agree.
    fn zone(&self) -> anyhow::Result<Option<u32>> {
        let host = self.host.as_ref().and_then(|host| zone::resolve_literal(&host.name)).transpose()?;
        let of_host = host.and_then(ZonedIp::zone).map(|zone| ("HOST", zone));
        let of_bind = self.bind.and_then(ZonedIp::zone).map(|zone| ("--bind", zone));
        let named = self.interface.as_deref().and_then(zone::index).map(|zone| ("--interface", zone));
        let mut known: Option<(&str, u32)> = None;
        for (by, zone) in [of_host, of_bind, named].into_iter().flatten() {
            match known {
                Some((first, other)) if other != zone => {
                    bail!("{first} and {by} name different interfaces: name one");
                }
                _ => known = known.or(Some((by, zone))),
            }
        }
        let zone = known.map(|(_, zone)| zone);
        if let Some(host) = host {
            host.within(zone).complete()?;
        }
        Ok(zone)
    }

    fn options(&self) -> anyhow::Result<SocketOptions> {
        let zone = self.zone()?;
        let source = self.bind.map(|bind| bind.within(zone).complete()).transpose().context("--bind")?;
        Ok(SocketOptions {
            dscp: self.dscp.or(self.tos).or(self.precedence).unwrap_or(0),
            ttl: self.ttl,
            flow_label: self.flow_label,
            interface: self.interface.clone(),
            source,
            ..SocketOptions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: TargetFlags,
    }

    fn target(words: &str) -> Result<Target, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map_err(|e| e.to_string())?.flags.target(None).map_err(|e| e.to_string())
    }

    #[test]
    fn ports_come_from_either_place_and_must_agree() {
        let rows = [
            ("h", Ok(14233)),
            ("h:99", Ok(99)),
            ("h -p 99", Ok(99)),
            ("[::1]:99 -p 99", Ok(99)),
            ("h:98 -p 99", Err("HOST says port 98 and --port says 99: give one of them".to_owned())),
        ];
        for (words, want) in rows {
            assert_eq!(target(words).map(|t| t.port), want, "{words}");
        }
        assert!(target("h -p 0").is_err());
    }

    #[test]
    fn versions_are_narrowed_by_flags_and_addresses() {
        const BOTH: &[IpVersion] = &[IpVersion::V4, IpVersion::V6];
        let rows: &[(&str, Option<&[IpVersion]>)] = &[
            ("h", Some(BOTH)),
            ("h -4", Some(&BOTH[..1])),
            ("h -6", Some(&BOTH[1..])),
            ("h -4 -6", Some(BOTH)),
            ("192.0.2.1", Some(&BOTH[..1])),
            ("::1", Some(&BOTH[1..])),
            ("h -B 192.0.2.9", Some(&BOTH[..1])),
            ("192.0.2.1 -6", None),
            ("::1 -B 192.0.2.9", None),
        ];
        for (words, want) in rows {
            assert_eq!(target(words).ok().map(|t| t.versions).as_deref(), *want, "{words}");
        }
        let error = target("::1 -4").unwrap_err();
        assert_eq!(error, "HOST is an IPv6 address, but IPv4 is asked for");
    }

    #[test]
    fn header_fields_reach_the_target_in_any_spelling() {
        let options = |words: &str| target(words).map(|target| target.options);
        for words in ["h --dscp CS5", "h --tos 0xa0", "h --precedence 5"] {
            assert_eq!(options(words).unwrap().dscp, 40, "{words}");
        }
        let marked = options("h --ttl 9 --flow-label 0x12345").unwrap();
        assert_eq!((marked.ttl, marked.flow_label), (Some(9), Some(0x1_2345)));
        for bad in ["h --dscp EF --tos 0xb8", "h --tos 0xb8 --precedence 5", "h --ttl 0", "h --ttl 256"] {
            assert!(options(bad).is_err(), "{bad}");
        }
        for only_v4 in ["h -4 --flow-label 1", "192.0.2.1 --flow-label 1"] {
            let error = options(only_v4).unwrap_err();
            assert_eq!(error, "IPv4 has no flow label: leave out --flow-label, or measure over IPv6");
        }
        assert!(options("::1 --flow-label 1").is_ok());
    }

    #[test]
    fn a_zone_is_not_lost_from_either_address_and_completes_the_other() {
        let lo = zone::index("lo");
        let zone_of = |words: &str| target(words).map(|target| target.options.source.and_then(ZonedIp::zone));
        for words in
            ["fe80::1%lo -B fe80::2", "fe80::1%lo -B fe80::2%lo", "fe80::1 --interface lo -B fe80::2"]
        {
            assert_eq!(zone_of(words), Ok(lo), "{words}");
        }
        assert_eq!(target("fe80::1 -B fe80::2%lo").unwrap().options.zone(), lo);
        assert!(target("fe80::1").unwrap_err().contains("add the interface, for example fe80::1%"));
        assert!(target("h -B fe80::1").unwrap_err().contains("--bind"));
        assert!(target("fe80::1%no-such").unwrap_err().contains("no interface 'no-such'"));
        assert!(target("h -B fe80::1%no-such").unwrap_err().contains("no interface 'no-such'"));
        assert!(target("h -B ::1%lo").unwrap_err().contains("leave out %lo"));
    }

    #[test]
    fn socket_options_reach_the_target() {
        let target = target("h --dscp EF --interface eth0 --connect-timeout 500ms").unwrap();
        assert_eq!((target.options.dscp, target.options.interface.as_deref()), (46, Some("eth0")));
        assert_eq!(target.connect_patience, Span::from_millis(500));
    }
}
