//! The command line as a whole.

use clap::{Parser, Subcommand};

use crate::commands::{
    available, capacity, completions, hops, host, latency, man, matrix, owd, reach, relay, results, schema,
    serve, tcp, test, udp,
};
#[cfg(target_os = "linux")]
use crate::commands::{collect, lab, probe, receive, run, send, simulate};
use crate::config::Parsed;
use crate::exit::{self, Exit};
use crate::measure::{self, Measuring};

const ABOUT: &str = "\
Tells what a network path can do over IPv4 and over IPv6, and what limits it: the network or this host.

Run 'netaware serve' on one host and 'netaware test HOST' on another. Without a HOST netaware measures against itself on \
loopback, which shows what this host can do.";

const AFTER: &str = "\
Examples:
  netaware serve                       answer measurements on port 14233
  netaware test lab-b                  IPv4 beside IPv6 in 15 seconds
  netaware tcp lab-b -R -P 4           TCP from lab-b, four streams
  netaware udp lab-b -b 100M -l 1200   UDP at 100 Mbit/s
  netaware latency lab-b -c 1000       round trips
  netaware capacity lab-b              the rate of the narrowest link, without filling it
  netaware available lab-b             what other traffic leaves of the path
  netaware hops example.org            every link on the way; nobody there needed
  netaware reach example.org           what a host answers that runs nothing
  netaware owd lab-b                   delay and loss of each way
  netaware matrix lab-b                short transfers by block size
  netaware host                        what this host can measure at all
  netaware udp lab-b --scan spacing=0us..100us+10us
  netaware test lab-b --every 10min --for 12h
  netaware results show last           the newest saved result
  netaware lab up bufferbloat          a path to try things on, on this host
  netaware simulate lte latency        what it would say there, at once
  netaware relay --listen 8080 --to lab-b
                                       a path that changes its IP version, for programs as they are
  netaware run -- curl -4 http://lab-b/
                                       a program as it is, over whichever IP version answers
  netaware probe -i eth0 volume --by source
                                       who sends how much, from passing packets
  netaware receive ~/incoming          take files that others send
  netaware send disk.img lab-b         send some, over both IP versions
  netaware collect run                 delay and loss of real traffic

Settings: every long flag is also a key of netaware.toml (in $XDG_CONFIG_HOME/netaware/ and in the present folder) and a \
variable: --connect-timeout is connect-timeout and NETAWARE_CONNECT_TIMEOUT. A flag beats a variable, a variable beats a \
file, a [COMMAND] table beats the rest of its file.
";

/// All of it.
#[derive(Debug, Parser)]
#[command(
    name = "netaware",
    version,
    about = "Tells what a network path can do over IPv4 and IPv6, and what limits it",
    long_about = ABOUT,
    after_help = format!("{AFTER}\n{}", exit::HELP),
    max_term_width = 80,
    disable_help_subcommand = false,
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Test(test::Test),
    Tcp(tcp::Tcp),
    Udp(udp::Udp),
    Latency(latency::Latency),
    Capacity(capacity::Capacity),
    Available(available::Available),
    Hops(hops::Hops),
    Reach(reach::Reach),
    Owd(owd::Owd),
    Matrix(matrix::Matrix),
    Host(host::Host),
    Relay(relay::Relay),
    #[cfg(target_os = "linux")]
    Probe(probe::Probe),
    #[cfg(target_os = "linux")]
    Run(run::Run),
    Results(results::Results),
    #[cfg(target_os = "linux")]
    Lab(lab::Lab),
    #[cfg(target_os = "linux")]
    Simulate(simulate::Simulate),
    #[cfg(target_os = "linux")]
    Send(send::Send),
    #[cfg(target_os = "linux")]
    Receive(receive::Receive),
    #[cfg(target_os = "linux")]
    Collect(collect::Collect),
    Completions(completions::Completions),
    Man(man::Man),
    Schema(schema::Schema),
}

impl Command {
    /// The commands that can be repeated and scanned.
    pub(crate) fn into_measuring(self) -> Option<Box<dyn Measuring>> {
        match self {
            Self::Test(test) => Some(Box::new(test)),
            Self::Tcp(tcp) => Some(Box::new(tcp)),
            Self::Udp(udp) => Some(Box::new(udp)),
            Self::Latency(latency) => Some(Box::new(latency)),
            Self::Matrix(matrix) => Some(Box::new(matrix)),
            Self::Capacity(capacity) => Some(Box::new(capacity)),
            Self::Available(available) => Some(Box::new(available)),
            Self::Hops(hops) => Some(Box::new(hops)),
            Self::Reach(reach) => Some(Box::new(reach)),
            Self::Owd(owd) => Some(Box::new(owd)),
            _ => None,
        }
    }

    /// Does it; `parsed` is what it was read from.
    ///
    /// # Errors
    /// One sentence for the person who typed it.
    pub(crate) fn run(&self, parsed: &Parsed) -> anyhow::Result<Exit> {
        match self {
            Self::Test(test) => measure::run(test, parsed),
            Self::Tcp(tcp) => measure::run(tcp, parsed),
            Self::Udp(udp) => measure::run(udp, parsed),
            Self::Latency(latency) => measure::run(latency, parsed),
            Self::Serve(serve) => serve.run(),
            Self::Matrix(matrix) => measure::run(matrix, parsed),
            Self::Capacity(capacity) => measure::run(capacity, parsed),
            Self::Available(available) => measure::run(available, parsed),
            Self::Host(host) => host.run(),
            Self::Hops(hops) => measure::run(hops, parsed),
            Self::Reach(reach) => measure::run(reach, parsed),
            Self::Owd(owd) => measure::run(owd, parsed),
            Self::Relay(relay) => relay.run(),
            #[cfg(target_os = "linux")]
            Self::Probe(probe) => probe.run(),
            #[cfg(target_os = "linux")]
            Self::Run(run) => run.run(),
            Self::Results(results) => results.run(parsed),
            #[cfg(target_os = "linux")]
            Self::Lab(lab) => lab.run(),
            #[cfg(target_os = "linux")]
            Self::Simulate(simulate) => simulate.run(),
            #[cfg(target_os = "linux")]
            Self::Send(send) => send.run(),
            #[cfg(target_os = "linux")]
            Self::Receive(receive) => receive.run(),
            #[cfg(target_os = "linux")]
            Self::Collect(collect) => collect.run(),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
            Self::Schema(schema) => schema.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The options of a command and of those below it, with the words that lead there.
    fn options(command: &clap::Command, words: &[String], found: &mut Vec<(Vec<String>, String, String)>) {
        for arg in command.get_arguments() {
            let kind = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
            if let (Some(long), Some(kind)) = (arg.get_long(), kind) {
                found.push((words.to_vec(), format!("--{long}"), kind));
            }
        }
        // Times there are points in time.
        for below in command.get_subcommands().filter(|below| below.get_name() != "results") {
            options(below, &[words, &[below.get_name().to_owned()]].concat(), found);
        }
    }

    #[test]
    fn no_option_reads_a_rate_a_size_or_a_time_in_a_unit_of_something_else() {
        let mut found = Vec::new();
        options(&Cli::command(), &["netaware".to_owned()], &mut found);
        let nonsense = ["-3", "NaN", "inf", "1e400", "", "99999999999999999999999"];
        let mut tried = 0;
        for (words, option, kind) in found {
            let foreign: &[&str] = match kind.split(['[', ',']).next() {
                Some("RATE") => &["10MBps", "10MB", "5s"],
                Some("SIZE") => &["10MBps", "8Mb", "10Mbit/s", "5s"],
                Some("TIME") => &["10MBps", "8Mb", "5M", "10MB"],
                _ => continue,
            };
            for value in foreign.iter().chain(&nonsense) {
                let line = words.iter().cloned().chain([format!("{option}={value}")]);
                let refused = Cli::command().try_get_matches_from(line).err().map(|error| error.kind());
                let is_refused =
                    matches!(refused, Some(ErrorKind::ValueValidation | ErrorKind::InvalidValue));
                assert!(is_refused, "{words:?} {option}={value}: {refused:?}");
            }
            tried += 1;
        }
        assert!(tried > 60, "{tried} options take a rate, a size or a time");
    }

    #[test]
    fn every_help_text_is_as_agreed() {
        let mut command = Cli::command();
        command.build();
        insta::assert_snapshot!("help", command.render_long_help().to_string());
        let measuring =
            ["test", "tcp", "udp", "latency", "capacity", "available", "hops", "reach", "matrix", "owd"];
        let others = [
            "serve",
            "host",
            "relay",
            "run",
            "results",
            "lab",
            "simulate",
            "send",
            "receive",
            "probe",
            "collect",
            "completions",
            "man",
            "schema",
        ];
        for name in measuring.into_iter().chain(others) {
            let of = command.find_subcommand_mut(name).unwrap();
            insta::assert_snapshot!(format!("help_{name}"), of.render_long_help().to_string());
        }
    }

    #[test]
    fn no_help_line_is_wider_than_80_columns() {
        let mut command = Cli::command();
        command.build();
        for of in command.get_subcommands_mut() {
            for line in of.render_long_help().to_string().lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", of.get_name());
            }
        }
    }
}
