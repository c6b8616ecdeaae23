//! The three parts on Linux.

mod calls;
mod capabilities;
mod files;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) use files::{forbid as forbid_files, this_program};

use crate::{Confinement, Report};

/// Capabilities come first, since emptying the bounding set needs one; calls come last.
pub(crate) fn enter(confinement: &Confinement) -> Report {
    let capabilities = capabilities::enter();
    let files = files::enter(confinement);
    let calls = calls::enter(confinement.programs.as_ref());
    Report { files, calls, capabilities }
}

/// Whether this user may make files in a folder, by its permissions.
pub(crate) fn may_write(folder: &Path) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: a terminated path that outlives the call, which changes nothing.
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}
