//! What a probe stands on in earnest: this host's interfaces, or a capture file.

use std::path::{Path, PathBuf};

use netaware_capture::{Capture, Direction, FileSource, Frame, Options, filter};
use netaware_passive::Link as Interface;
use netaware_passive::filter::Program;
use netaware_record::passive::CaptureHealth;
use netaware_units::{BitRate, Span};
use netaware_wire::packet::LinkType;

use crate::probe::Ground;
use crate::watch::run::Pace;
use crate::watch::source::{Read, Seen, Source};
use crate::watch::station::Matcher;

/// The interfaces of this host.
#[derive(Debug)]
pub struct Host {
    /// How each is captured; the name of the interface in it is not looked at.
    pub options: Options,
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

    fn open(&mut self, interface: &str) -> Result<Box<dyn Source>, String> {
        let options = Options { interface: interface.to_owned(), filter: None, ..self.options.clone() };
        match Capture::open(&options) {
            Ok(capture) => Ok(Box::new(Live { capture })),
            Err(error) => Err(error.to_string()),
        }
    }

    fn link(&self, interface: &str) -> Interface {
        let number = |name| attribute(interface, name).and_then(|text| text.parse::<u64>().ok());
        let mtu = number("mtu").and_then(|mtu| u32::try_from(mtu).ok());
        // Mbit/s; -1 or nothing where it has none.
        let rate = number("speed").filter(|speed| (1..10_000_000).contains(speed));
        // Loopback has no speed and its MTU is longer than any packet.
        Interface { mtu, rate: rate.map(|speed| BitRate(speed * 1_000_000)) }
    }

    fn compile(&self, text: &str, interface: &str) -> Result<Matcher, String> {
        // ARPHRD_NONE, of TUN devices: frames begin with IP.
        let raw = attribute(interface, "type").is_some_and(|kind| kind == "65534");
        matcher(text, if raw { LinkType::Raw } else { LinkType::Ethernet })
    }

    fn pace(&self) -> Pace {
        Pace::Live
    }
}

fn matcher(text: &str, link: LinkType) -> Result<Matcher, String> {
    let code = filter::compile(text, link).map_err(|error| error.to_string())?;
    let program =
        Program::new(code.into_iter().map(Into::into).collect()).map_err(|error| error.to_string())?;
    Ok(Box::new(move |frame, wire_length| program.matches(frame, wire_length)))
}

struct Live {
    capture: Capture,
}

fn seen<'a>(frame: &Frame<'a>) -> Seen<'a> {
    Seen {
        at: frame.at,
        outgoing: frame.outgoing,
        merged: frame.is_merged(),
        bytes: frame.bytes,
        wire_length: frame.wire_length,
        link: frame.link,
    }
}

impl Source for Live {
    fn read(&mut self, patience: Span, see: &mut dyn FnMut(Seen<'_>)) -> Result<Read, String> {
        let read = self.capture.read(patience, &mut |frame| see(seen(&frame)));
        read.map(|_| Read::More).map_err(|error| error.to_string())
    }

    fn health(&mut self) -> CaptureHealth {
        self.capture.counts().health()
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
    let passwd = std::fs::read_to_string("/etc/passwd")?;
    let line = passwd.lines().find(|line| line.split(':').next() == Some(user));
    let mut numbers =
        line.into_iter().flat_map(|line| line.split(':').skip(2).take(2)).map(str::parse::<u32>);
    let (Some(Ok(owner)), Some(Ok(group))) = (numbers.next(), numbers.next()) else {
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "there is no such user"));
    };
    give_to(folder, owner, group)
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
    name: String,
    /// Longest IP packet of the link; `None`: nothing is taken for merged.
    pub mtu: Option<u32>,
}

impl Replay {
    /// Of a pcap or pcapng file.
    pub fn new(path: &Path) -> Self {
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.display().to_string());
        Self { path: path.to_owned(), name, mtu: None }
    }
}

impl Ground for Replay {
    fn interfaces(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn open(&mut self, _: &str) -> Result<Box<dyn Source>, String> {
        open(&self.path, None)
            .map(|file| Box::new(Recorded { path: self.path.clone(), file }) as Box<dyn Source>)
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

fn open(path: &Path, filter: Option<&str>) -> Result<FileSource, String> {
    FileSource::open(path, filter, Direction::Both).map_err(|error| error.to_string())
}

struct Recorded {
    path: PathBuf,
    file: FileSource,
}

impl Source for Recorded {
    fn read(&mut self, patience: Span, see: &mut dyn FnMut(Seen<'_>)) -> Result<Read, String> {
        match self.file.read(patience, &mut |frame| see(seen(&frame))) {
            Ok(0) => Ok(Read::End),
            Ok(_) => Ok(Read::More),
            Err(error) => Err(error.to_string()),
        }
    }

    fn health(&mut self) -> CaptureHealth {
        self.file.counts().health()
    }

    /// Set before the first packet is read, and once only: from the beginning again.
    fn set_filter(&mut self, filter: Option<&str>) -> Result<(), String> {
        self.file = open(&self.path, filter)?;
        Ok(())
    }
}
