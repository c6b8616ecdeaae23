//! No program that is started gains a capability.
//!
//! `no_new_privs` alone forbids gaining any by a program's file (prctl(2), PR_SET_NO_NEW_PRIVS).
//! The bounding set is emptied besides, where that is permitted: a program that root starts would
//! otherwise have all of it. What this process holds itself it keeps, and gives back elsewhere.

use std::io;

use libc::{c_int, c_ulong};

use crate::Held;

pub(crate) fn enter() -> Held {
    if let Err(error) = set_no_new_privs() {
        return Held::NotAvailable(format!("the kernel refused no_new_privs: {error}"));
    }
    match empty_bounding_set() {
        0 => Held::Enforced,
        left => Held::Partly(format!(
            "no_new_privs is set, and the bounding set keeps {left} capabilities, since emptying it needs CAP_SETPCAP"
        )),
    }
}

pub(crate) fn set_no_new_privs() -> io::Result<()> {
    if call(libc::PR_SET_NO_NEW_PRIVS, 1) < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns how many are left in it.
fn empty_bounding_set() -> usize {
    let is_in = |capability: &c_ulong| call(libc::PR_CAPBSET_READ, *capability) == 1;
    let stays = |capability: &c_ulong| call(libc::PR_CAPBSET_DROP, *capability) < 0;
    (0..CAPABILITIES).filter(is_in).filter(stays).count()
}

fn call(what: c_int, value: c_ulong) -> c_int {
    const NOTHING: c_ulong = 0;
    // SAFETY: plain numbers.
    unsafe { libc::prctl(what, value, NOTHING, NOTHING, NOTHING) }
}

/// The kernel keeps them in 64 bits; it refuses numbers that it does not know.
const CAPABILITIES: c_ulong = 64;
