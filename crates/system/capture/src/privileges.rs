//! Giving privileges back once everything is open.

use std::ffi::CString;
use std::io;

/// What stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nothing: captures that are open go on, no other can be opened.
    Nothing,
    /// `CAP_NET_RAW`: captures can still be opened, for probes whose tasks change.
    RawSockets,
}

/// Why privileges could not be given back. The program should end: it would go on with more than it
/// was to have.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    /// No such user.
    #[error("there is no user '{0}' to become")]
    NoUser(String),
    /// The system refused.
    #[error("could not give privileges back: {doing}: {source}")]
    System {
        /// Which call.
        doing: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// Afterwards they could be taken again.
    #[error("could not give privileges back: this process can still become root")]
    StillRoot,
}

/// Whether this is root, so that [`drop_privileges`] changes the user.
pub fn is_root() -> bool {
    // SAFETY: takes nothing and changes nothing.
    unsafe { libc::geteuid() == 0 }
}

/// Becomes `user` (if this is root) with its group and no others, keeps no capability but `keep`,
/// and forbids that programs started from here gain any. Without root only the latter two.
///
/// Capabilities belong to threads: call this before threads are started. For a root process the
/// change of user takes them from all threads anyway.
///
/// # Errors
/// What was refused; some of it may have been done then.
pub fn drop_privileges(user: &str, keep: Keep) -> Result<(), DropError> {
    let root = is_root();
    if root {
        become_user(user, keep)?;
    }
    drop_capabilities(keep)?;
    // SAFETY: plain numbers. It must fail.
    if root && unsafe { libc::setuid(0) } == 0 {
        return Err(DropError::StillRoot);
    }
    Ok(())
}

/// The same without becoming anybody else: for who is not root, or root that has to stay. The
/// capabilities are this thread's, as above.
///
/// # Errors
/// What was refused.
pub fn drop_capabilities(keep: Keep) -> Result<(), DropError> {
    let kept = match keep {
        Keep::Nothing => 0,
        Keep::RawSockets => 1 << CAP_NET_RAW,
    };
    // Who never had the one to keep ends with none.
    set_capabilities(kept)
        .or_else(|error| if is_root() { Err(error) } else { set_capabilities(0) })
        .map_err(system("capset"))?;
    // SAFETY: plain numbers.
    call("prctl", unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

fn become_user(user: &str, keep: Keep) -> Result<(), DropError> {
    let (uid, gid) = look_up(user)?;
    let kept = i32::from(keep == Keep::RawSockets);
    // SAFETY: plain numbers; the list of further groups is empty, so its pointer is not read.
    unsafe {
        call("prctl", libc::prctl(libc::PR_SET_KEEPCAPS, kept, 0, 0, 0))?;
        call("setgroups", libc::setgroups(0, std::ptr::null()))?;
        call("setresgid", libc::setresgid(gid, gid, gid))?;
        call("setresuid", libc::setresuid(uid, uid, uid))
    }
}

fn look_up(user: &str) -> Result<(u32, u32), DropError> {
    let unknown = || DropError::NoUser(user.to_owned());
    let name = CString::new(user).map_err(|_| unknown())?;
    let mut buffer = vec![0_u8; 16 << 10];
    // SAFETY: all zeros is a valid value of this structure; it is filled below.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: a terminated name, and room of the length given; all outlive the call.
    let answer = unsafe {
        libc::getpwnam_r(
            name.as_ptr(),
            &raw mut entry,
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &raw mut found,
        )
    };
    if answer != 0 || found.is_null() || entry.pw_uid == 0 {
        return Err(unknown());
    }
    Ok((entry.pw_uid, entry.pw_gid))
}

/// Effective and permitted ones of this thread; none are inherited.
fn set_capabilities(bits: u32) -> io::Result<()> {
    let header = CapabilityHeader { version: VERSION_3, thread: 0 };
    let low = CapabilityWords { effective: bits, permitted: bits, inheritable: 0 };
    let data = [low, CapabilityWords { effective: 0, permitted: 0, inheritable: 0 }];
    // SAFETY: header and data are as version 3 of this call has them, and outlive it.
    let answer = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn call(doing: &'static str, answer: libc::c_int) -> Result<(), DropError> {
    if answer < 0 { Err(system(doing)(io::Error::last_os_error())) } else { Ok(()) }
}

fn system(doing: &'static str) -> impl Fn(io::Error) -> DropError {
    move |source| DropError::System { doing, source }
}

/// `struct __user_cap_header_struct`, `struct __user_cap_data_struct` (capset(2)).
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    thread: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityWords {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;
const CAP_NET_RAW: u32 = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_strangers_are_nobody_to_become() {
        for user in ["root", "no-such-user", "a\0b"] {
            assert!(matches!(look_up(user), Err(DropError::NoUser(_))), "{user:?}");
        }
        assert!(look_up("nobody").is_ok_and(|(uid, _)| uid != 0));
    }
}
