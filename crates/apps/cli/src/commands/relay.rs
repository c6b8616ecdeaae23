//! `netaware relay`: a path over both IP versions for programs that know nothing of it.

mod place;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use netaware_io::zone;
use netaware_record::{IpVersion, Use};
use netaware_relay::{
    Bound, Far, Forward, Handle, Key, Near, Network, Options, Rules, Settings, WINDOW, is_local,
};
use netaware_units::Span;
use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use self::place::{Place, Port, Target};
use crate::exit::Exit;
use crate::flags::logging::Logging;
use crate::flags::{key, quantity};
use crate::signals;
use crate::sink;

const LONG: &str = "\
Carries TCP connections of programs that know nothing of it over a stream that has a connection of each IP version and changes \
between them without losing a byte. One relay (--listen, --to) takes connections of local programs; the other one (--accept, \
--forward) connects to the server, and only to those of its own command line. Both directions end by themselves; a server that \
refuses or breaks off is a reset to the program. What travels between the relays is not encrypted.

SIGUSR1 moves all streams to IPv4, SIGUSR2 to IPv6. SIGTERM or Ctrl-C takes no new connections and waits for those that are \
open, --drain at most; a second one ends it at once.";

const AFTER: &str = "\
Examples:
  netaware relay --accept 14234 --forward 127.0.0.1:80 --key-file key
  netaware relay --listen 8080 --to lab-b --key-file key
  curl http://127.0.0.1:8080/

  netaware relay --accept 14234 --forward 127.0.0.1:80 --forward db=10.0.0.7:5432 --key-file key
  netaware relay --listen 5432 --to 192.0.2.1,2001:db8::1 --service db --key-file key

A key file holds any text of up to 1024 bytes, the same at both ends:
  head -c 32 /dev/urandom | base64 > key

Exit codes:
  0  ended by a signal
  2  could not listen, or the command line is wrong";

const NEAR: &str = "The end that programs connect to";
const FAR: &str = "The end that connects to servers";
const LIMITS: &str = "Limits";

/// Which IP version carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Switch {
    /// The better one, by the policy
    #[default]
    Auto,
    /// IPv4 unless it fails
    #[value(name = "4")]
    V4,
    /// IPv6 unless it fails
    #[value(name = "6")]
    V6,
}

/// Carry TCP connections of unmodified programs over both IP versions
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = AFTER)]
pub(crate) struct Relay {
    /// Take connections of programs here, on loopback where no address is said (may be given
    /// several times)
    #[arg(short = 'L', long, value_name = "[ADDR:]PORT", required_unless_present = "accept", conflicts_with_all = ["accept", "forward", "allow"], requires = "to", help_heading = NEAR)]
    listen: Vec<Place>,
    /// Host of the other relay; several names or addresses of it with commas between
    #[arg(long, value_name = "HOST[:PORT]", requires = "listen", conflicts_with_all = ["accept", "forward", "allow"], help_heading = NEAR)]
    to: Option<Target>,
    /// Which of the other relay's servers; without it the one that has no name
    #[arg(long, value_name = "NAME", requires = "listen", conflicts_with_all = ["accept", "forward", "allow"], value_parser = place::service, help_heading = NEAR)]
    service: Option<String>,
    /// Take streams of other relays here, on all addresses where none is said (may be given several
    /// times)
    #[arg(long, value_name = "[ADDR:]PORT", requires = "forward", help_heading = FAR)]
    accept: Vec<Port>,
    /// Server that the other relays get, by a name where there are several
    #[arg(long, value_name = "[NAME=]HOST:PORT", requires = "accept", value_parser = place::forward, help_heading = FAR)]
    forward: Vec<Forward>,
    /// Only take streams from this network, as in 192.0.2.0/24 (may be given several times)
    #[arg(long, value_name = "CIDR", requires = "accept", help_heading = FAR)]
    allow: Vec<Network>,
    /// File with a key that both ends share; the variable NETAWARE_KEY can hold the key instead
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Serve other hosts than this one without a key (--accept), or at all (--listen)
    #[arg(long)]
    public: bool,
    /// auto goes over to the better IP version; 4 or 6 stays on that one unless it fails
    #[arg(long, value_enum, value_name = "HOW", default_value_t, hide_possible_values = true)]
    switch: Switch,
    /// File with the policy of --switch auto; without it the one for bulk transfers
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Connections at the same time; the others wait (--listen) or are turned away (--accept)
    #[arg(long, value_name = "N", default_value_t = Settings::default().max as u64, value_parser = quantity::whole::<u64>(1..=4000), help_heading = LIMITS)]
    max: u64,
    /// Bytes under way of one connection, each way [default: 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = place::window, help_heading = LIMITS)]
    window: Option<u32>,
    /// How long open connections get when it is told to end [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds, help_heading = LIMITS)]
    drain: Option<Span>,
    #[command(flatten)]
    logging: Logging,
}

impl Relay {
    /// Carries until a signal ends it.
    ///
    /// # Errors
    /// Something cannot be read or listened on, or other hosts could use it without a key.
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let settings = self.settings()?;
        let bound = match &self.to {
            Some(to) => Bound::near(self.near(to)?, settings)?,
            None => Bound::far(self.far(settings.key.is_some())?, settings)?,
        };
        self.logging.start()?;
        listen_for_signals(bound.handle())?;
        if !self.logging.quiet {
            sink::announce(&self.announcement(&bound))?;
        }
        bound.run();
        Ok(Exit::Done)
    }

    fn near(&self, to: &Target) -> anyhow::Result<Near> {
        let listen: Vec<SocketAddr> = self.listen.iter().flat_map(|place| place.0.clone()).collect();
        if !is_local(&listen) && !self.public {
            bail!("other hosts could use this relay: listen on loopback, or say --public");
        }
        let service = self.service.clone().unwrap_or_default();
        Ok(Near { listen, to: to.hosts.clone(), port: to.port, service })
    }

    fn far(&self, has_key: bool) -> anyhow::Result<Far> {
        let accept: Vec<SocketAddr> = match self.accept[..] {
            // The library knows what all addresses are where one IP version is missing.
            [Port { address: None, port }] => vec![(Ipv6Addr::UNSPECIFIED, port).into()],
            _ => self.accept.iter().flat_map(Port::addresses).collect(),
        };
        if !is_local(&accept) && !has_key && self.allow.is_empty() && !self.public {
            bail!(
                "whoever reaches this relay could use its servers: give both ends --key-file, name who may with --allow, or \
                 say --public"
            );
        }
        for (n, forward) in self.forward.iter().enumerate() {
            if self.forward[..n].iter().any(|earlier| earlier.name == forward.name) {
                bail!("two servers have the same name '{}': write --forward NAME=HOST:PORT", forward.name);
            }
        }
        Ok(Far { accept, forwards: self.forward.clone(), allow: self.allow.clone() })
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let defaults = Settings::default();
        let (preferred, policy) = match self.switch {
            Switch::Auto => (IpVersion::V6, Some(self.rules()?)),
            _ if self.policy.is_some() => bail!("a policy needs --switch auto"),
            Switch::V4 => (IpVersion::V4, None),
            Switch::V6 => (IpVersion::V6, None),
        };
        let window = self.window.unwrap_or(WINDOW);
        Ok(Settings {
            key: key::read(self.key_file.as_deref())?.map(Key::new).transpose()?,
            max: self.max as usize,
            drain: self.drain.unwrap_or(defaults.drain),
            options: Options { window, preferred, policy, ..defaults.options },
        })
    }

    fn rules(&self) -> anyhow::Result<Rules> {
        let Some(path) = &self.policy else { return Ok(Rules::of(Use::Bulk)) };
        let shown = path.display();
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read the policy in {shown}"))?;
        text.parse().with_context(|| format!("the policy in {shown}"))
    }

    /// Goes to stdout, so that a script can read the port that the system chose.
    fn announcement(&self, bound: &Bound) -> String {
        let of = self.to.as_ref().map(|to| format!("programs, to {} port {}", to.hosts, to.port));
        let of = of.as_deref().unwrap_or("relays");
        let line = |address| format!("listening on {} for {of}\n", zone::shown(address));
        bound.addresses().into_iter().map(line).collect::<Vec<String>>().concat()
    }
}

fn listen_for_signals(handle: Handle) -> anyhow::Result<()> {
    let heard = signals::ending().into_iter().chain([SIGUSR1, SIGUSR2]);
    let mut signals = Signals::new(heard).context("cannot listen for signals")?;
    let work = move || {
        let mut stopping = false;
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => handle.switch(IpVersion::V4),
                SIGUSR2 => handle.switch(IpVersion::V6),
                _ if stopping => std::process::exit(NOT_DRAINED),
                _ => {
                    stopping = true;
                    let by = signals::By(signal);
                    tracing::info!("{by}: ending; waiting for open connections, once more cuts them off");
                    handle.stop();
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(work)
        .context("cannot start a thread for signals")?;
    Ok(())
}

/// Exit code of a relay that was told twice: connections were cut off.
const NOT_DRAINED: i32 = 2;
/// Both addresses of loopback.
const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        relay: Relay,
    }

    fn relay(words: &str) -> Result<Relay, String> {
        let line = Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()));
        line.map(|line| line.relay).map_err(|e| e.to_string())
    }

    #[test]
    fn an_open_relay_has_to_be_asked_for() {
        let far = |words: &str, key| relay(words).unwrap().far(key).map_err(|e| e.to_string());
        assert!(far("--accept 14234 --forward h:80", false).unwrap_err().contains("--key-file"));
        assert!(far("--accept 192.0.2.1:1 --accept 127.0.0.1:1 --forward h:80", false).is_err());
        assert!(far("--accept 14234 --forward h:80", true).is_ok());
        assert!(far("--accept 14234 --forward h:80 --allow 192.0.2.0/24", false).is_ok());
        assert!(far("--accept 14234 --forward h:80 --public", false).is_ok());
        assert!(far("--accept 127.0.0.1:1 --accept [::1]:1 --forward h:80", false).is_ok());
        let near = |words: &str| {
            let relay = relay(words).unwrap();
            relay.near(relay.to.as_ref().unwrap()).map_err(|e| e.to_string())
        };
        assert!(near("--listen 0.0.0.0:80 --to h").unwrap_err().contains("--public"));
        assert_eq!(near("--listen 80 --to h").unwrap().listen.len(), 2);
        assert!(near("--listen [::]:80 --to h --public").is_ok());
    }

    #[test]
    fn the_ends_exclude_each_other() {
        for wrong in [
            "",
            "--listen 80",
            "--to h",
            "--accept 80",
            "--forward h:80",
            "--listen 80 --to h --accept 81 --forward h:80",
            "--listen 80 --to h --allow 192.0.2.0/24",
            "--accept 81 --forward h:80 --service x",
            // --listen, which it belongs to, excludes --accept: the parser did not miss it.
            "--accept 81 --forward h:80 --to h",
        ] {
            assert!(relay(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_servers_of_one_name_are_told() {
        let far = relay("--accept 1 --forward a:1 --forward b:2 --public").unwrap().far(false);
        assert!(far.unwrap_err().to_string().contains("NAME=HOST:PORT"));
    }

    #[test]
    fn the_switch_becomes_options() {
        let options = |words: &str| relay(&format!("--listen 80 --to h {words}")).unwrap().settings();
        assert_eq!(options("").unwrap().options.policy, Some(Rules::of(Use::Bulk)));
        let fixed = options("--switch 4 --window 1MiB --drain 3").unwrap();
        assert_eq!((fixed.options.policy, fixed.options.preferred), (None, IpVersion::V4));
        assert_eq!((fixed.options.window, fixed.drain), (1 << 20, Span::from_secs(3)));
        assert!(options("--switch 6 --policy p").unwrap_err().to_string().contains("--switch auto"));
        assert!(options("--policy /nowhere").unwrap_err().to_string().contains("cannot read the policy"));
    }
}
