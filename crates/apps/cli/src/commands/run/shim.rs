//! Where the library is that programs are run with, and for which programs it can do nothing.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::bail;

/// Names the file.
const VARIABLE: &str = "NETAWARE_SHIM";
const NAME: &str = "libnetaware_shim.so";

/// The library.
///
/// # Errors
/// It is nowhere; the message says what to do.
pub(super) fn find() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        let path = PathBuf::from(named);
        // The loader takes a name without a slash for one to look up.
        return match path.canonicalize() {
            Ok(path) if path.is_file() => fit(path),
            _ => bail!("{VARIABLE} names {}, where no file is", path.display()),
        };
    }
    let Some(here) = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned)) else {
        bail!("cannot tell where this program lies: name {NAME} in {VARIABLE}");
    };
    let places = [here.join(NAME), here.join("../lib").join(NAME), here.join("../lib/netaware").join(NAME)];
    match places.iter().find(|place| place.is_file()) {
        Some(place) => fit(place.canonicalize().unwrap_or_else(|_| place.clone())),
        None => bail!(
            "{NAME} is neither in {0} nor in {0}/../lib: build it with 'cargo build --release -p netaware-shim', and put it \
             there or name it in {VARIABLE}",
            here.display()
        ),
    }
}

/// The loader takes spaces and colons for the end of a name.
fn fit(path: PathBuf) -> anyhow::Result<PathBuf> {
    if path.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'\t' | b'\n')) {
        bail!("LD_PRELOAD cannot name {}: copy it to a folder without spaces and colons", path.display());
    }
    Ok(path)
}

/// What the loader makes of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// As far as can be told the library is loaded.
    Dynamic,
    /// It has no loader.
    Static,
    /// It runs as somebody else, for whom the loader takes no libraries from us.
    Privileged,
}

impl Program {
    /// Why the library has no effect.
    pub(super) fn left_alone(self) -> Option<&'static str> {
        match self {
            Self::Dynamic => None,
            Self::Static => Some("is linked statically"),
            Self::Privileged => Some("runs with the rights of its file (setuid, setgid)"),
        }
    }
}

/// As `execvp` finds it.
pub(super) fn find_program(name: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program)
}

/// By its file; what cannot be read is taken for a usual one.
pub(super) fn kind(path: &Path) -> Program {
    let Ok(mut file) = File::open(path) else { return Program::Dynamic };
    let mode = file.metadata().map_or(0, |meta| meta.permissions().mode());
    if mode & 0o6000 != 0 && mode & 0o111 != 0 {
        return Program::Privileged;
    }
    let mut head = [0; 64];
    match file.read_exact(&mut head) {
        Ok(()) if has_no_loader(&head, &file).unwrap_or(false) => Program::Static,
        _ => Program::Dynamic,
    }
}

/// An ELF64 file of this byte order without a `PT_INTERP` (System V ABI, program header). `None` is
/// no such file.
fn has_no_loader(head: &[u8; 64], file: &File) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let own_order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if head[..4] != *b"\x7fELF" || head[4] != 2 || head[5] != own_order {
        return None;
    }
    let offset = u64::from_ne_bytes(head[32..40].try_into().ok()?);
    let size = u64::from(u16::from_ne_bytes(head[54..56].try_into().ok()?));
    let count = u64::from(u16::from_ne_bytes(head[56..58].try_into().ok()?));
    for n in 0..count {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, offset.checked_add(n * size)?).ok()?;
        if u32::from_ne_bytes(kind) == PT_INTERP {
            return Some(false);
        }
    }
    Some(true)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn programs_that_the_loader_does_not_touch_are_known() {
        assert_eq!(kind(&std::env::current_exe().unwrap()), Program::Dynamic);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let mut elf = vec![0; 64 + 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[32] = 64;
        (elf[54], elf[56], elf[64]) = (56, 1, 1);
        fs::write(&path, &elf).unwrap();
        assert_eq!(kind(&path), Program::Static);
        elf[64] = 3;
        fs::write(&path, &elf).unwrap();
        assert_eq!(kind(&path), Program::Dynamic);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(kind(&path), Program::Privileged);
        elf[32..40].fill(0xff);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(&path, &elf).unwrap();
        assert_eq!(kind(&path), Program::Dynamic, "a file that lies is none of ours");
        assert_eq!(kind(Path::new("/nowhere")), Program::Dynamic);
    }

    #[test]
    fn a_path_that_the_loader_would_cut_is_refused() {
        assert!(fit("/a b/libnetaware_shim.so".into()).unwrap_err().to_string().contains("without spaces"));
        assert!(fit("/a/libnetaware_shim.so".into()).is_ok());
    }
}
