//! What a probe stands on in earnest: this host's interfaces, or a capture file.

mod untagged;

use std::fs::Metadata;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use netaware_capture::{Capture, Direction, FileOpenError, FileSource, Frame, Options, Spread, filter};
use netaware_io::clock;
use netaware_passive::Link as Interface;
use netaware_passive::filter::Program;
use netaware_record::passive::CaptureHealth;
use netaware_units::{BitRate, ClockSource, Span};
use netaware_wire::packet::LinkType;

use crate::probe::Ground;
use crate::watch::run::Pace;
use crate::watch::source::{Read, Source};
use crate::watch::station::Matcher;

/// The interfaces of this host.
#[derive(Debug)]
pub struct Host {
    /// How each is captured; the name of the interface in it is not looked at.
    pub options: Options,
    /// Rings, each with a thread of its own, that share an interface's packets flow by flow, both
    /// directions of a flow in one.
    pub rings: NonZeroUsize,
    /// Only these, the first being the usual one; empty: all there are.
    pub only: Vec<String>,
}

/// Where Linux tells about interfaces.
const CLASS: &str = "/sys/class/net";

impl Host {
    /// All that there are, those that are up first, loopback last.
    pub fn all() -> Vec<String> {
        let listed = std::fs::read_dir(CLASS).into_iter().flatten();
        let mut names: Vec<String> =
            listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.retain(|name| attribute(name, "ifindex").is_some());
        names.sort_by_key(|name| {
            let up = attribute(name, "operstate").is_some_and(|state| state == "up");
            (name == "lo", !up, name.clone())
        });
        names
    }
}

fn attribute(interface: &str, name: &str) -> Option<String> {
    // No interface has a slash in its name.
    let path = Path::new(CLASS).join(interface).join(name);
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

impl Ground for Host {
    fn interfaces(&self) -> Vec<String> {
        let all = Self::all();
        if self.only.is_empty() {
            return all;
        }
        self.only.iter().filter(|name| all.contains(name)).cloned().collect()
    }

    fn open(&mut self, interface: &str) -> Result<Vec<Box<dyn Source>>, String> {
        let filter = Some(NOTHING.to_owned());
        let options = Options { interface: interface.to_owned(), filter, ..self.options.clone() };
        let opened = match self.rings.get() {
            1 => Capture::open(&options).map(|capture| vec![capture]),
            rings => Capture::open_several(&options, rings, Spread::Flow),
        };
        let by_card = self.options.stamps == ClockSource::Nic;
        let live = |capture| Box::new(Live { capture, by_card, changed: false }) as Box<dyn Source>;
        opened.map(|captures| captures.into_iter().map(live).collect()).map_err(|error| error.to_string())
    }

    fn link(&self, interface: &str) -> Interface {
        link(interface)
    }

    fn compile(&self, text: &str, interface: &str) -> Result<Matcher, String> {
        // ARPHRD_NONE, of TUN devices: frames begin with IP.
        let raw = attribute(interface, "type").is_some_and(|kind| kind == "65534");
        if raw {
            return matcher(text, LinkType::Raw);
        }
        let whole = matcher(text, LinkType::Ethernet)?;
        Ok(if filter::asks_for_tags(text) { whole } else { untagged::behind(whole) })
    }

    fn pace(&self) -> Pace {
        Pace::Live
    }
}

/// Until the first tasks say what they want: a task whose filter is the kernel's looks at no packet
/// again, so none may lie in the ring that came through no filter.
const NOTHING: &str = "less 0";

fn matcher(text: &str, link: LinkType) -> Result<Matcher, String> {
    let code = filter::compile(text, link).map_err(|error| error.to_string())?;
    let program =
        Program::new(code.into_iter().map(Into::into).collect()).map_err(|error| error.to_string())?;
    Ok(Box::new(move |frame, wire_length| program.matches(frame, wire_length)))
}

/// Live captures follow the MTU by themselves and say which frames are merged, so tasks need not
/// know it.
fn link(interface: &str) -> Interface {
    let speed = attribute(interface, "speed").and_then(|text| text.parse::<u64>().ok());
    // Mbit/s; -1 or nothing where it has none, as loopback.
    let rate = speed.filter(|speed| (1..10_000_000).contains(speed));
    Interface { mtu: None, rate: rate.map(|speed| BitRate(speed * 1_000_000)) }
}

/// A card's clock may be so far from the host's: a packet waits in the ring for less, and periods
/// bear as much.
fn is_bearable(apart: Span) -> bool {
    apart.0.abs() <= Span::from_secs(1).0
}

struct Live {
    capture: Capture,
    /// Stamps are the card's, whose clock may be another.
    by_card: bool,
    /// The interface was down or changed since its speed was last asked for.
    changed: bool,
}

impl Source for Live {
    fn read(&mut self, patience: Span, see: &mut dyn FnMut(Frame<'_>)) -> Result<Read, String> {
        if !self.by_card {
            return self.capture.read(patience, see).map(|_| Read::More).map_err(|error| error.to_string());
        }
        let now = clock::wall();
        let mut apart = None;
        let read = self.capture.read(patience, &mut |frame| {
            if frame.stamped_by == ClockSource::Nic && apart.is_none() {
                apart = Some(frame.at.since(now));
            }
            // Periods follow stamps: those of another time would end ours.
            if apart.is_none_or(is_bearable) {
                see(frame);
            }
        });
        read.map_err(|error| error.to_string())?;
        match apart.filter(|apart| !is_bearable(*apart)) {
            Some(apart) => Err(format!(
                "the clock of {}'s card is {apart} from this host's; let ptp4l and phc2sys keep them together (in UTC), or take --stamps kernel",
                self.capture.interface()
            )),
            None => Ok(Read::More),
        }
    }

    fn health(&mut self) -> CaptureHealth {
        let health = self.capture.counts().health();
        // Links agree on a speed when they come up.
        self.changed |= health.mtu_changed || health.link_was_down;
        health
    }

    fn changed_link(&mut self) -> Option<Interface> {
        std::mem::take(&mut self.changed).then(|| link(self.capture.interface()))
    }

    fn set_filter(&mut self, filter: Option<&str>) -> Result<(), String> {
        self.capture.set_filter(filter).map_err(|error| error.to_string())
    }
}

/// Gives a folder and all that is in it to a user, who writes there later.
///
/// # Errors
/// There is no such user, or the system refuses.
pub fn give(folder: &Path, user: &str) -> std::io::Result<()> {
    let (owner, group) = numbers(user)?;
    give_to(folder, owner, group)
}

/// Whether a user, in no group but the own, can come to a folder through all that are above it.
pub fn reaches(user: &str, folder: &Path) -> bool {
    let (Ok(user), Ok(folder)) = (numbers(user), folder.canonicalize()) else { return false };
    folder.ancestors().skip(1).all(|above| above.metadata().is_ok_and(|above| lets_through(&above, user)))
}

fn lets_through(folder: &Metadata, (owner, group): (u32, u32)) -> bool {
    let bit = match (folder.uid() == owner, folder.gid() == group) {
        (true, _) => 0o100,
        (false, true) => 0o010,
        (false, false) => 0o001,
    };
    folder.mode() & bit != 0
}

/// Of a user and the group.
fn numbers(user: &str) -> std::io::Result<(u32, u32)> {
    let passwd = std::fs::read_to_string("/etc/passwd")?;
    let line = passwd.lines().find(|line| line.split(':').next() == Some(user));
    let mut numbers =
        line.into_iter().flat_map(|line| line.split(':').skip(2).take(2)).map(str::parse::<u32>);
    let (Some(Ok(owner)), Some(Ok(group))) = (numbers.next(), numbers.next()) else {
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "there is no such user"));
    };
    Ok((owner, group))
}

fn give_to(path: &Path, owner: u32, group: u32) -> std::io::Result<()> {
    // Links are not followed: they could lead out of the folder.
    std::os::unix::fs::lchown(path, Some(owner), Some(group))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give_to(&entry?.path(), owner, group)?;
        }
    }
    Ok(())
}

/// A file as if it were the only interface.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    opened: Option<FileSource>,
    name: String,
    /// Longest IP packet of the link; `None`: nothing is taken for merged.
    pub mtu: Option<u32>,
}

impl Replay {
    /// Of a pcap or pcapng file, which is open from now on: what is read of it needs no privilege
    /// any more.
    ///
    /// # Errors
    /// It cannot be opened, or is no such file.
    pub fn open(path: &Path) -> Result<Self, FileOpenError> {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.display().to_string());
        let opened = Some(FileSource::open(path, None, Direction::Both)?);
        Ok(Self { path: path.to_owned(), opened, name, mtu: None })
    }
}

impl Ground for Replay {
    fn interfaces(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn open(&mut self, _: &str) -> Result<Vec<Box<dyn Source>>, String> {
        let opened =
            self.opened.take().map_or_else(|| FileSource::open(&self.path, None, Direction::Both), Ok);
        opened
            .map(|file| vec![Box::new(Recorded { file }) as Box<dyn Source>])
            .map_err(|error| error.to_string())
    }

    fn link(&self, _: &str) -> Interface {
        Interface { mtu: self.mtu, rate: None }
    }

    fn compile(&self, text: &str, _: &str) -> Result<Matcher, String> {
        matcher(text, LinkType::Ethernet)
    }

    fn pace(&self) -> Pace {
        Pace::Replay
    }
}

struct Recorded {
    file: FileSource,
}

impl Source for Recorded {
    fn read(&mut self, patience: Span, see: &mut dyn FnMut(Frame<'_>)) -> Result<Read, String> {
        match self.file.read(patience, see) {
            Ok(0) => Ok(Read::End),
            Ok(_) => Ok(Read::More),
            Err(error) => Err(error.to_string()),
        }
    }

    fn health(&mut self) -> CaptureHealth {
        self.file.counts().health()
    }

    /// Before the first packet is read, and once only.
    fn set_filter(&mut self, filter: Option<&str>) -> Result<(), String> {
        self.file.set_filter(filter).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_reached_only_if_all_above_it_let_through() {
        let above = tempfile::tempdir().unwrap();
        let (open, folder) = (above.path().join("open"), above.path().join("open/own"));
        std::fs::create_dir_all(&folder).unwrap();
        let modes = |first, second| {
            std::fs::set_permissions(above.path(), PermissionsExt::from_mode(first)).unwrap();
            std::fs::set_permissions(&open, PermissionsExt::from_mode(second)).unwrap();
            reaches("nobody", &folder)
        };
        assert!(modes(0o755, 0o711));
        assert!(!modes(0o755, 0o700) && !modes(0o700, 0o755));
        assert!(!reaches("no-such-user", &folder) && !reaches("nobody", &folder.join("none")));
    }

    #[test]
    fn a_cards_clock_may_be_a_second_off() {
        assert!(is_bearable(Span::from_millis(-999)) && is_bearable(Span::from_secs(1)));
        assert!(!is_bearable(Span::from_secs(37)), "a card in TAI");
    }
}
