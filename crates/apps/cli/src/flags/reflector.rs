//! HOST and the way there where a STAMP reflector is to answer.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::probed::ProbedFlags;
use super::target::TargetFlags;

/// The flags of [`ProbedFlags`] with another port and other words.
#[derive(Debug, Clone)]
pub(crate) struct ReflectorFlags(pub(crate) TargetFlags);

impl FromArgMatches for ReflectorFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(ProbedFlags::from_arg_matches(matches)?.0))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for ReflectorFlags {
    fn augment_args(command: Command) -> Command {
        let (host, port) = (
            "Host on which a STAMP reflector runs: a name, an address, HOST:PORT or [IPv6]:PORT",
            "UDP port of the reflector",
        );
        ProbedFlags::augment_args(command)
            .mut_arg("host", |arg| arg.help(host))
            .mut_arg("port", |arg| arg.help(port).visible_alias("target-port").default_value(PORT))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// [`netaware_wire::stamp::PORT`], as text.
const PORT: &str = "862";
