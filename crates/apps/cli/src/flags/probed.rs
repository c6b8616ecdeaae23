//! HOST and the way there for commands that need nobody at the far end.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use netaware_units::Span;

use super::host::Host;
use super::target::{Place, TargetFlags};
use super::{dscp, quantity};

const PATH: &str = "Path";

/// The flags as typed.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("versions").args(["ipv4", "ipv6"]).multiple(true))]
struct Typed {
    /// Host to measure towards: a name or an address. It need not run anything
    #[arg(value_name = "HOST", required = true)]
    host: Host,
    /// UDP port at which nobody is expected; it never changes, so that routers that balance by flow
    /// take one path
    #[arg(short, long, value_name = "PORT", default_value_t = PORT, value_parser = quantity::whole::<u16>(1..=65_535), help_heading = PATH)]
    port: u16,
    /// Measure over IPv4 only
    #[arg(short = '4', long, help_heading = PATH)]
    ipv4: bool,
    /// Measure over IPv6 only
    #[arg(short = '6', long, help_heading = PATH)]
    ipv6: bool,
    /// Send from this local address; it decides the IP version too
    #[arg(short = 'B', long, value_name = "ADDR", help_heading = PATH)]
    bind: Option<netaware_io::zone::ZonedIp>,
    /// Send through this interface
    #[arg(long, value_name = "NAME", help_heading = PATH)]
    interface: Option<String>,
    /// Mark packets with this class: EF, AF41, CS1, LE, … or 0..63
    #[arg(long, value_name = "CLASS", value_parser = dscp::parse, help_heading = PATH)]
    dscp: Option<u8>,
    /// Mark IPv6 packets with this flow label, 1..0xfffff (Linux)
    #[arg(long, value_name = "LABEL", value_parser = dscp::flow_label, help_heading = PATH)]
    flow_label: Option<u32>,
}

/// The same as other commands know them.
#[derive(Debug, Clone)]
pub(crate) struct ProbedFlags(pub(crate) TargetFlags);

impl FromArgMatches for ProbedFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = Typed::from_arg_matches(matches)?;
        // A default is not held against the port of HOST; of a setting `config` has seen to that.
        let is_given = matches.value_source("port") == Some(ValueSource::CommandLine);
        Ok(Self(TargetFlags::of_place(Place {
            host: typed.host,
            port: is_given.then_some(typed.port),
            default_port: typed.port,
            ipv4: typed.ipv4,
            ipv6: typed.ipv6,
            bind: typed.bind,
            interface: typed.interface,
            dscp: typed.dscp,
            flow_label: typed.flow_label,
            patience: LOOKUP_PATIENCE,
        })))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ProbedFlags {
    fn augment_args(command: Command) -> Command {
        Typed::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Typed::augment_args_for_update(command)
    }
}

/// The first that traceroute uses: routers and hosts know what such packets are.
const PORT: u16 = 33_434;
/// Of the name lookup: the system asks a server that does not answer again after five seconds.
const LOOKUP_PATIENCE: Span = Span::from_secs(12);

#[cfg(test)]
mod tests {
    use clap::Parser;
    use netaware_record::IpVersion;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: ProbedFlags,
    }

    fn target(words: &str) -> Result<netaware_prober::Target, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map_err(|e| e.to_string())?.flags.0.target(None).map_err(|e| e.to_string())
    }

    #[test]
    fn a_host_is_needed_and_becomes_a_target() {
        assert!(target("").is_err());
        let found = target("h -4 --dscp EF").unwrap();
        assert_eq!((found.port, found.options.dscp), (PORT, 46));
        assert_eq!(found.versions, [IpVersion::V4]);
        assert_eq!(target("h -p 9").unwrap().port, 9);
        assert_eq!(target("192.0.2.1:99").unwrap().port, 99);
        assert_eq!(target("192.0.2.1 -6").unwrap_err(), "HOST is an IPv4 address, but IPv6 is asked for");
    }

    #[test]
    fn a_port_that_was_typed_is_not_dropped_beside_that_of_the_host() {
        let error = target("h:99 -p 98").unwrap_err();
        assert_eq!(error, "HOST says port 99 and --port says 98: give one of them");
        // Also where it happens to be the default.
        assert!(target(&format!("h:99 -p {PORT}")).is_err());
        assert_eq!(target("h:99 -p 99").unwrap().port, 99);
    }
}
