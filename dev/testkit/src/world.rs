//! The paths of the world, and what every measuring command has to do on each: no harm, in time,
//! true or marked, in agreement with itself, and the other end free again.
//!
//! [`truth`] derives what is true of a path from its scenario, [`cell`] runs one command over one
//! path, [`judge`] says of what came out whether it held. The judge is a pure function over what
//! was printed, what is true and what entered the path; [`kept`] keeps these, so that a change of
//! the judge is tried on a whole run at once.

pub mod cell;
pub mod judge;
pub mod kept;
pub mod truth;

use netaware_lab::{Scenario, scenarios};
use netaware_units::{BitRate, Span};

use truth::{Truth, VersionTruth};

/// A measuring command, as the columns of the table name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// `test`
    Test,
    /// `latency`
    Latency,
    /// `tcp`
    Tcp,
    /// `tcp -R`
    TcpReverse,
    /// `tcp --bidir`
    TcpBidir,
    /// `udp`
    Udp,
    /// `udp -R`
    UdpReverse,
    /// `udp --bidir`
    UdpBidir,
    /// `matrix`
    Matrix,
    /// `capacity`
    Capacity,
    /// `available`
    Available,
    /// `owd`
    Owd,
    /// `reach`
    Reach,
    /// `hops`
    Hops,
}

impl Ask {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 14] = [
        Self::Test,
        Self::Latency,
        Self::Tcp,
        Self::TcpReverse,
        Self::TcpBidir,
        Self::Udp,
        Self::UdpReverse,
        Self::UdpBidir,
        Self::Matrix,
        Self::Capacity,
        Self::Available,
        Self::Owd,
        Self::Reach,
        Self::Hops,
    ];

    /// The heading of its column.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Latency => "latency",
            Self::Tcp => "tcp",
            Self::TcpReverse => "tcp -R",
            Self::TcpBidir => "tcp --bidir",
            Self::Udp => "udp",
            Self::UdpReverse => "udp -R",
            Self::UdpBidir => "udp --bidir",
            Self::Matrix => "matrix",
            Self::Capacity => "capacity",
            Self::Available => "available",
            Self::Owd => "owd",
            Self::Reach => "reach",
            Self::Hops => "hops",
        }
    }

    /// The words behind `netaware`. No rate is typed: whatever is sent is the program's own choice.
    pub const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Test => &["test", "b", "-t", "10s"],
            Self::Latency => &["latency", "b", "-t", "3s"],
            Self::Tcp => &["tcp", "b", "-t", "4s"],
            Self::TcpReverse => &["tcp", "b", "-R", "-t", "4s"],
            Self::TcpBidir => &["tcp", "b", "--bidir", "-t", "4s"],
            Self::Udp => &["udp", "b", "-t", "3s"],
            Self::UdpReverse => &["udp", "b", "-R", "-t", "3s"],
            Self::UdpBidir => &["udp", "b", "--bidir", "-t", "3s"],
            Self::Matrix => {
                &["matrix", "b", "--bytes", "10kB", "--blocks", "1kB", "--runs", "1", "--patience", "5s"]
            }
            Self::Capacity => &["capacity", "b", "-t", "6s"],
            Self::Available => &["available", "b", "-t", "6s"],
            Self::Owd => &["owd", "b", "-t", "3s"],
            Self::Reach => &["reach", "b", "--tcp-port", "14233", "-t", "3s"],
            Self::Hops => &["hops", "b", "-t", "6s"],
        }
    }

    /// How long that promises to measure: `test` in all, the others over each IP version in turns,
    /// except those that ask both at once. `matrix` promises that none of its three transfers over
    /// each version takes longer than its patience.
    pub fn promised(self, versions: i64) -> Span {
        match self {
            Self::Test => Span::from_secs(10),
            Self::Latency | Self::Udp | Self::UdpReverse | Self::UdpBidir => Span::from_secs(3 * versions),
            Self::Tcp | Self::TcpReverse | Self::TcpBidir => Span::from_secs(4 * versions),
            Self::Matrix => Span::from_secs(15 * versions),
            Self::Capacity | Self::Available => Span::from_secs(6 * versions),
            Self::Owd | Self::Reach => Span::from_secs(3),
            Self::Hops => Span::from_secs(6),
        }
    }

    /// Whether it needs `netaware serve` at the other end.
    pub const fn needs_responder(self) -> bool {
        !matches!(self, Self::Reach | Self::Hops)
    }
}

/// What happens at a host while the command runs, which no scenario can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Nothing.
    None,
    /// The prober is stopped after 2 s, for 6 s.
    Suspended,
    /// In place of the responder something answers with HTTP.
    Captive,
}

/// A path of the world.
#[derive(Debug, Clone)]
pub struct WorldPath {
    /// Its file in scenarios/world, without the ending.
    pub name: &'static str,
    /// Its scenario as text.
    pub text: &'static str,
}

impl WorldPath {
    /// What happens at its hosts.
    pub fn event(&self) -> Event {
        match self.name {
            "suspended-host" => Event::Suspended,
            "captive-portal" => Event::Captive,
            _ => Event::None,
        }
    }

    /// Why a command makes no sense there; `None` if it does.
    pub fn senseless(&self, ask: Ask) -> Option<&'static str> {
        match (self.name, ask) {
            ("clocks-a-day-apart", _) => {
                Some("both hosts of a lab have the clock of this machine: simulator only")
            }
            ("captive-portal", Ask::Owd) => Some("nothing there speaks STAMP, which has no connection"),
            ("sensor-20k" | "modem-64k" | "umts-384k", Ask::Available) => {
                Some("one train of it is seconds of all that the path carries")
            }
            (_, Ask::TcpBidir | Ask::UdpBidir) if !self.directions_meet() => {
                Some("neither direction has anything to lose to the other that one alone does not show")
            }
            _ => None,
        }
    }

    /// Whether what one direction carries matters to the other: both are not alike, or slow, or
    /// without a link for a while.
    fn directions_meet(&self) -> bool {
        let Ok(scenario) = Scenario::parse(self.text) else { return false };
        let truth = Truth::of(&scenario);
        let differs = |version: &VersionTruth| {
            version.rate[0] != version.rate[1]
                || (version.one_way[0][0] - version.one_way[1][0]).abs() > NOTICEABLE
        };
        truth.has_outages || truth.carries(0) < SLOW || truth.versions.iter().any(differs)
    }

    /// Where people meet it: the first line of its file.
    pub fn met_where(&self) -> &'static str {
        self.text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default()
    }
}

/// A way that is longer by more than this than the other is another way.
const NOTICEABLE: Span = Span::from_millis(5);
/// On a path below this the acknowledgements of one direction take their share of the other.
const SLOW: BitRate = BitRate(1_000_000);

/// All paths of scenarios/world, by name.
pub fn paths() -> Vec<WorldPath> {
    let world = scenarios::bundled().iter();
    world.filter_map(|(name, text)| Some(WorldPath { name: name.strip_prefix("world/")?, text })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_read_says_where_people_meet_it_and_is_named_on_the_page() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/world.md")).unwrap();
        let paths = paths();
        assert!(paths.len() >= 45, "{}", paths.len());
        for path in &paths {
            let scenario =
                Scenario::parse(path.text).unwrap_or_else(|error| panic!("{}: {error}", path.name));
            assert!(path.met_where().ends_with('.'), "{} does not say where people meet it", path.name);
            assert!(page.contains(&format!("`{}`", path.name)), "docs/world.md does not name {}", path.name);
            assert!(scenario.about.len() > 10);
        }
    }

    #[test]
    fn what_a_test_does_at_a_host_belongs_to_a_path_that_is_there() {
        let named = |event| paths().iter().filter(|path| path.event() == event).count();
        assert_eq!([named(Event::Suspended), named(Event::Captive)], [1, 1]);
        let senseless = |name: &str| {
            paths()
                .iter()
                .filter(|path| path.name == name)
                .flat_map(|path| Ask::ALL.map(|ask| path.senseless(ask)))
                .flatten()
                .count()
        };
        assert_eq!(["clocks-a-day-apart", "captive-portal", "modem-64k"].map(senseless), [14, 3, 1]);
    }

    #[test]
    fn both_directions_at_once_are_asked_where_they_meet() {
        let meets: Vec<&str> =
            paths().into_iter().filter(WorldPath::directions_meet).map(|path| path.name).collect();
        let wanted = ["adsl", "asymmetric-route", "blip-2s", "geostationary", "modem-64k", "path-dies"];
        assert!(wanted.iter().all(|name| meets.contains(name)), "{meets:?}");
        assert!(!meets.contains(&"pmtu-1480") && meets.len() < 30, "{meets:?}");
    }
}
