//! What this process has in use: both ends of the stream, what they keep, and what they might
//! forget to give back.

use std::os::unix::fs::MetadataExt as _;
use std::{fmt, fs};

/// At one time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Resident, KiB.
    resident: u64,
    /// Bytes kept in files in memory, which no process has resident, KiB.
    kept: u64,
    threads: u64,
    descriptors: u64,
}

impl Usage {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let open: Vec<_> = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten().collect();
        let kept = open.iter().filter(|file| {
            fs::read_link(file.path()).is_ok_and(|it| it.to_string_lossy().contains("netaware-stream"))
        });
        let blocks = kept.filter_map(|file| fs::metadata(file.path()).ok()).map(|it| it.blocks());
        Self {
            resident: field("VmRSS:"),
            kept: blocks.sum::<u64>() / 2,
            threads: field("Threads:"),
            descriptors: open.len() as u64,
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            resident: self.resident.max(other.resident),
            kept: self.kept.max(other.kept),
            threads: self.threads.max(other.threads),
            descriptors: self.descriptors.max(other.descriptors),
        }
    }
}

/// The most in each tenth of a run.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    tenths: Vec<Usage>,
    seen: u64,
}

impl fmt::Display for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, tenth) in self.tenths.iter().enumerate() {
            let Usage { resident, kept, threads, descriptors } = tenth;
            let line =
                format!("{resident} KiB resident, {kept} kept, {threads} threads, {descriptors} descriptors");
            writeln!(out, "tenth {}: {line}", number + 1)?;
        }
        Ok(())
    }
}

impl Memory {
    /// Looks at it now and then.
    pub(crate) fn at(&mut self, before: u64, bytes: u64) {
        self.seen += 1;
        let tenth = (before * 10 / bytes) as usize;
        if tenth < self.tenths.len() && !self.seen.is_multiple_of(64) {
            return;
        }
        let usage = Usage::now();
        self.tenths.resize(self.tenths.len().max(tenth + 1), usage);
        self.tenths[tenth] = self.tenths[tenth].most(usage);
    }

    /// No end keeps more than its window, and the second half of a run needs no more than the first
    /// but for the window of either end, which it may happen to fill for the first time.
    ///
    /// # Panics
    /// It does.
    pub(crate) fn assert_flat(&self) {
        let most = |tenths: &[Usage]| tenths.iter().copied().fold(Usage::default(), Usage::most);
        let (first, second) = self.tenths.split_at(self.tenths.len() / 2);
        let (first, second) = (most(first), most(second));
        let kept = first.kept.max(second.kept);
        assert!(kept <= 2 * MOST_KEPT_KIB, "the ends keep more than both windows: {first:?} then {second:?}");
        assert!(second.resident <= first.resident + 2 * WINDOW_KIB, "{first:?} then {second:?}");
        assert!(second.threads <= first.threads + 4, "{first:?} then {second:?}");
        assert!(second.descriptors <= first.descriptors + 8, "{first:?} then {second:?}");
    }
}

/// The window of each end.
const WINDOW_KIB: u64 = super::WINDOW as u64 / 1024;
/// A window, one more block of 256 KiB because a window may begin within one, and what is left over
/// of a large page of 2 MiB.
const MOST_KEPT_KIB: u64 = WINDOW_KIB + 256 + 2048;
