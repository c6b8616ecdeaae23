//! Files are opened only where it is allowed (Landlock).
//!
//! Rules are for files and folders as they are when the confinement is entered: a folder holds
//! whatever comes into it later, but a file that is replaced by a rename is another one. So what
//! may be replaced is allowed by its folder.
//!
//! The rights are those of Linux 6.2 and later; earlier kernels enforce what they know. Not
//! covered: what is open already, reading names and attributes (stat, access), changing
//! permissions, and connecting to local sockets.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, LandlockStatus, PathBeneath, PathFd, RestrictSelfAttr as _,
    RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    make_bitflags,
};

use crate::{Confinement, Held};

pub(crate) fn enter(confinement: &Confinement) -> Held {
    let others = other_threads();
    match restrict(confinement) {
        Ok(status) => held(status.landlock, if status.all_threads { 0 } else { others }),
        Err(error) => Held::NotAvailable(format!("the kernel refused it (Landlock): {error}")),
    }
}

/// Takes all files from the calling thread.
pub(crate) fn forbid() {
    if ruleset().and_then(RulesetCreated::restrict_self).is_ok() {
        WITHOUT_FILES.fetch_add(1, Relaxed);
    }
}

/// This program and the loader that the kernel starts it with, which is executed as well.
pub(crate) fn this_program() -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    std::iter::once(PathBuf::from("/proc/self/exe")).chain(loader(&maps)).collect()
}

/// Finds it in `/proc/PID/maps`; a program that is linked statically has none.
fn loader(maps: &str) -> Option<PathBuf> {
    maps.lines().find_map(|line| {
        let path = Path::new("/").join(line.split_once('/')?.1);
        let is_loader = path.file_name()?.to_str()?.starts_with("ld-");
        is_loader.then_some(path)
    })
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default().handle_access(AccessFs::from_all(RIGHTS))?.create()
}

fn restrict(confinement: &Confinement) -> Result<RestrictionStatus, RulesetError> {
    let mut ruleset = ruleset()?;
    let programs = confinement.programs.iter().flat_map(|programs| &programs.files);
    let rows: [(Vec<&PathBuf>, BitFlags<AccessFs>); 5] = [
        (confinement.reads.iter().collect(), reading()),
        (confinement.writes.iter().collect(), writing()),
        (confinement.scratch.iter().collect(), scratch()),
        (confinement.sockets.iter().collect(), make_bitflags!(AccessFs::{MakeSock | RemoveFile})),
        (programs.collect(), make_bitflags!(AccessFs::{Execute | ReadFile})),
    ];
    for (paths, rights) in rows {
        for path in paths {
            allow(&mut ruleset, path, rights);
        }
    }
    for path in read_by_every_program() {
        allow(&mut ruleset, &path, reading());
    }
    allow(&mut ruleset, Path::new("/dev/null"), writing());
    ruleset.all_threads(true)?.restrict_self()
}

fn reading() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | ReadDir})
}

fn writing() -> BitFlags<AccessFs> {
    let changing =
        make_bitflags!(AccessFs::{WriteFile | Truncate | RemoveFile | RemoveDir | MakeReg | MakeDir | Refer});
    reading() | changing
}

fn scratch() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | MakeReg | RemoveFile})
}

/// What is not there, or is nothing that a path can be allowed for (a pipe), is left out: it stays
/// forbidden, or needs no rule.
fn allow(ruleset: &mut RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) {
    let Ok(file) = PathFd::new(path) else { return };
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(RIGHTS) };
    let _ = ruleset.add_rule(PathBeneath::new(file, rights));
}

/// Facts of the kernel, settings of the system (whose files are replaced by renames), libraries,
/// time zones, and the hardware clocks.
fn read_by_every_program() -> Vec<PathBuf> {
    let clocks = fs::read_dir("/dev").into_iter().flatten().flatten().map(|entry| entry.path());
    let clocks = clocks
        .filter(|path| path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("ptp")));
    // It is often a link to a folder of whoever manages the network.
    let resolver = fs::canonicalize("/etc/resolv.conf").ok();
    let resolver = resolver.as_deref().and_then(Path::parent).filter(|folder| *folder != Path::new("/"));
    SYSTEM.iter().map(PathBuf::from).chain(resolver.map(Path::to_path_buf)).chain(clocks).collect()
}

/// Threads of this process beside the calling one and those that have no files.
fn other_threads() -> usize {
    let all = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    all.saturating_sub(1 + WITHOUT_FILES.load(Relaxed))
}

fn held(landlock: LandlockStatus, others: usize) -> Held {
    match landlock {
        LandlockStatus::NotImplemented => {
            Held::NotAvailable("this kernel has no Landlock, which came with Linux 5.13".to_owned())
        }
        LandlockStatus::NotEnabled => {
            Held::NotAvailable("Landlock is switched off; 'lsm=' on the kernel's command line".to_owned())
        }
        LandlockStatus::Available { effective_abi, .. } if effective_abi < RIGHTS => Held::Partly(
            "this kernel lets files be emptied by truncate, which Landlock forbids from Linux 6.2 on"
                .to_owned(),
        ),
        LandlockStatus::Available { .. } if others > 0 => {
            Held::Partly(format!("threads that were started before are not held to it: {others}"))
        }
        LandlockStatus::Available { .. } => Held::Enforced,
    }
}

/// Threads that called [`forbid`].
static WITHOUT_FILES: AtomicUsize = AtomicUsize::new(0);

/// Files alone, `truncate` among them. Later versions add calls on devices and local sockets, which
/// clocks need.
const RIGHTS: ABI = ABI::V3;

const SYSTEM: [&str; 11] = [
    "/proc",
    "/sys",
    "/etc",
    "/usr",
    "/lib",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_is_said() {
        let of = |effective_abi| LandlockStatus::Available { effective_abi, kernel_abi: None };
        let rows = [
            (LandlockStatus::NotImplemented, 0, "not available: this kernel has no Landlock"),
            (LandlockStatus::NotEnabled, 0, "not available: Landlock is switched off"),
            (of(ABI::V1), 0, "partly enforced: this kernel lets files be emptied"),
            (of(ABI::V7), 2, "partly enforced: threads that were started before are not held to it: 2"),
            (of(ABI::V3), 0, "enforced"),
            (of(ABI::V8), 0, "enforced"),
        ];
        for (number, (landlock, others, want)) in rows.into_iter().enumerate() {
            let said = held(landlock, others).to_string();
            assert!(said.starts_with(want), "{number}: {said}");
        }
    }

    #[test]
    fn the_loader_is_found_where_it_is_mapped() {
        let maps = "\
55d0c0000000-55d0c0021000 r--p 00000000 fe:00 21 /opt/ld/netaware
7f1200000000-7f1200028000 r--p 00000000 fe:00 31 /usr/lib/x86_64-linux-gnu/libc.so.6
7f1200300000-7f1200302000 rw-p 00000000 00:00 0
7f1200400000-7f1200401000 r--p 00000000 fe:00 33 /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]
";
        let found = loader(maps).unwrap();
        assert_eq!(found, Path::new("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"));
        assert_eq!(loader(maps.split_once("7f1200400000").unwrap().0), None);
    }

    #[test]
    fn reading_gives_no_right_to_write_or_to_execute() {
        let others = AccessFs::from_write(RIGHTS) | AccessFs::Execute;
        assert!(!reading().intersects(others));
        assert!(!(writing() | scratch()).contains(AccessFs::Execute));
    }
}
