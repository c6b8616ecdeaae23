//! The file in which a host finds again what it has measured of itself.
//!
//! Timings hold as long as the [fingerprint](crate::fingerprint()) does, and a month at most, since
//! settings that no fingerprint shows (governors, firmware) drift. A file that cannot be read, is
//! of another layout or holds what no host can have is a [`Miss`] with its reason, never an error:
//! the host is measured again. Whoever can write the file can make the host look slower or faster
//! to this user, and nothing else.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use netaware_record::{Effort, Fingerprint, HostTimings};
use netaware_units::{Span, Wall};
use serde::{Deserialize, Serialize};

/// What the file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// [`LAYOUT`] of the writer.
    layout: u32,
    /// When it was measured.
    pub measured_at: Wall,
    /// What it belongs to.
    pub fingerprint: Fingerprint,
    /// What was measured.
    pub timings: HostTimings,
}

impl Kept {
    /// To be kept.
    pub fn new(measured_at: Wall, fingerprint: Fingerprint, timings: HostTimings) -> Self {
        Self { layout: LAYOUT, measured_at, fingerprint, timings }
    }

    fn is_sound(&self) -> bool {
        let timings = &self.timings;
        let stamps = timings.stamps.known();
        let is_time = |ns: f64| ns.is_finite() && ns >= 0.0;
        is_time(timings.clock.read_ns)
            && timings.clock.resolution >= Span::ZERO
            && stamps.is_none_or(|stamps| stamps.send_gap > Span::ZERO && stamps.error > Span::ZERO)
            && timings.calls.iter().all(|call| is_time(call.median_ns))
            && timings.waits.iter().all(|wait| is_time(wait.mean_ns) && is_time(wait.sd_ns))
    }
}

/// Why there is nothing to be read from the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// There is no such file.
    Absent,
    /// It holds something else; in words.
    Broken(String),
    /// It belongs to another machine, or to this one before it changed; what differs.
    Changed(Vec<String>),
    /// It is older than a month, or from the future.
    Old(Span),
    /// It was measured in less time than is asked for now.
    Rough,
}

/// It cannot be written.
#[derive(Debug)]
pub struct UnusableCache {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// `netaware/host.json` under `$XDG_CACHE_HOME`, else under `$HOME/.cache` (XDG Base Directory
/// Specification 0.8); `None` if neither is set.
pub fn default_cache() -> Option<PathBuf> {
    place(|name| std::env::var_os(name))
}

fn place(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
    let folder = folder.or_else(|| set("HOME").map(|home| home.join(".cache")));
    folder.map(|folder| folder.join("netaware/host.json"))
}

/// What the file holds, if it belongs to this host and was measured with `effort` or more.
///
/// # Errors
/// Why not.
pub fn kept(path: &Path, fingerprint: &Fingerprint, now: Wall, effort: Effort) -> Result<Kept, Miss> {
    let text = match read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Miss::Absent),
        Err(error) => return Err(Miss::Broken(error.to_string())),
    };
    let kept: Kept = serde_json::from_str(&text).map_err(|error| Miss::Broken(error.to_string()))?;
    if kept.layout != LAYOUT {
        return Err(Miss::Broken(format!("layout {}, not {LAYOUT}", kept.layout)));
    }
    if !kept.is_sound() {
        return Err(Miss::Broken("it holds times that no host has".to_owned()));
    }
    let differences = kept.fingerprint.differences(fingerprint);
    if !differences.is_empty() {
        return Err(Miss::Changed(differences));
    }
    let age = now.since(kept.measured_at);
    if age < Span::ZERO || age > LONGEST {
        return Err(Miss::Old(age));
    }
    if kept.timings.effort < effort || kept.timings.cut_short {
        return Err(Miss::Rough);
    }
    Ok(kept)
}

/// Writes the file, whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn keep(path: &Path, kept: &Kept) -> Result<(), UnusableCache> {
    write(path, kept).map_err(|source| UnusableCache { path: path.to_path_buf(), source })
}

fn write(path: &Path, kept: &Kept) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // Another run may write at the same time: each has a file of its own until it is whole.
    let beside = folder.join(format!("host.json.{}", std::process::id()));
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(serde_json::to_string_pretty(kept)?.as_bytes())?;
        fs::rename(&beside, path)
    });
    if written.is_err() {
        // What is left would only be a blemish.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // A longer file is cut off, which makes it broken.
    File::open(path)?.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Grows when a reader of the old one would misread the new one.
const LAYOUT: u32 = 1;
const LONGEST: Span = Span::from_secs(30 * 24 * 3600);
/// A host's timings have some 10 kB.
const LARGEST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use netaware_record::{ClockTiming, Fact, StampTiming};

    use super::*;

    fn timings() -> HostTimings {
        HostTimings {
            effort: Effort::Quick,
            took: Span::from_secs(2),
            cut_short: false,
            clock: ClockTiming { read_ns: 31.25, resolution: Span(17), claimed: Span(1) },
            waits: Vec::new(),
            calls: Vec::new(),
            memory_copy_ns_per_byte: Fact::Known(0.0812),
            stamps: Fact::Known(StampTiming {
                by_kernel: true,
                error: Span(210),
                send_gap: Span(1310),
                room: None,
            }),
            receive_room: Fact::not_known("no loopback"),
            loopback: Vec::new(),
            moderation: Vec::new(),
            steal: Fact::Known(0.0),
            load_before: Fact::not_known("no /proc/stat"),
        }
    }

    fn fingerprint() -> Fingerprint {
        Fingerprint { cpu: "A".into(), cores: 2, ..Fingerprint::default() }
    }

    const NOW: Wall = Wall(1_795_232_087_000_000_000);

    fn fresh() -> Kept {
        Kept::new(NOW, fingerprint(), timings())
    }

    fn later(span: Span) -> Wall {
        Wall(NOW.0 + span.0)
    }

    #[test]
    fn what_was_kept_is_read_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/host.json");
        keep(&path, &fresh()).unwrap();
        let found = kept(&path, &fingerprint(), later(Span::from_secs(60)), Effort::Quick).unwrap();
        assert_eq!(found, fresh());
        let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(names.len(), 1, "no file of the writing is left beside it");
    }

    #[test]
    fn each_reason_for_measuring_again_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.json");
        let look =
            |fingerprint: &Fingerprint, now, effort| kept(&path, fingerprint, now, effort).unwrap_err();
        assert_eq!(look(&fingerprint(), NOW, Effort::Quick), Miss::Absent);
        keep(&path, &fresh()).unwrap();
        let other = Fingerprint { cores: 4, ..fingerprint() };
        assert_eq!(look(&other, NOW, Effort::Quick), Miss::Changed(vec!["cores were 2, are 4".into()]));
        assert_eq!(look(&fingerprint(), NOW, Effort::Full), Miss::Rough);
        let month = Span::from_secs(31 * 24 * 3600);
        assert_eq!(look(&fingerprint(), later(month), Effort::Quick), Miss::Old(month));
        let before = -Span::from_secs(5);
        assert_eq!(look(&fingerprint(), later(before), Effort::Quick), Miss::Old(before));
    }

    #[test]
    fn a_broken_file_is_a_miss_whatever_is_wrong_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.json");
        let whole = serde_json::to_string(&fresh()).unwrap();
        let rows = [
            String::new(),
            "{".to_owned(),
            "[]".to_owned(),
            "null".to_owned(),
            whole[..whole.len() / 2].to_owned(),
            whole.replace("\"layout\":1", "\"layout\":2"),
            whole.replace("\"send_gap\":1310", "\"send_gap\":0"),
            whole.replace("\"send_gap\":1310", "\"send_gap\":-5"),
            whole.replace("31.25", "-1.0"),
            whole.replace("31.25", "1e999"),
        ];
        for text in rows {
            assert_ne!(text, whole);
            fs::write(&path, &text).unwrap();
            let miss = kept(&path, &fingerprint(), NOW, Effort::Quick).unwrap_err();
            assert!(matches!(&miss, Miss::Broken(why) if !why.is_empty()), "{text}: {miss:?}");
        }
        fs::write(&path, [0xff; 64]).unwrap();
        assert!(matches!(kept(&path, &fingerprint(), NOW, Effort::Quick), Err(Miss::Broken(_))));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(kept(&path, &fingerprint(), NOW, Effort::Quick), Err(Miss::Broken(_))));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = keep(&file.join("below/host.json"), &fresh()).unwrap_err();
        assert!(error.path.starts_with(&file));
    }

    /// Variables of the environment, and the place that follows from them.
    type Rows<'a> = &'a [(&'a [(&'a str, &'a str)], Option<&'a str>)];

    #[test]
    fn the_place_follows_the_folders_of_the_user() {
        let place = |variables: &[(&str, &str)]| {
            let find = |name: &str| {
                variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
            };
            place(find).map(|path| path.display().to_string())
        };
        let home = ("HOME", "/home/a");
        let rows: Rows<'_> = &[
            (&[home], Some("/home/a/.cache/netaware/host.json")),
            (&[home, ("XDG_CACHE_HOME", "/c")], Some("/c/netaware/host.json")),
            (&[home, ("XDG_CACHE_HOME", "c")], Some("/home/a/.cache/netaware/host.json")),
            (&[home, ("XDG_CACHE_HOME", "")], Some("/home/a/.cache/netaware/host.json")),
            (&[], None),
        ];
        for (n, (variables, want)) in rows.iter().enumerate() {
            assert_eq!(place(variables).as_deref(), *want, "row {n}");
        }
    }
}
