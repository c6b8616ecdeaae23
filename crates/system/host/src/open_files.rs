//! How many sockets this process may have open.
#![expect(unsafe_code, reason = "getrlimit and setrlimit have no safe wrapper in the standard library")]

/// Raises this process's limit of open files to `wanted`, as far as the system lets it without a
/// privilege (the hard limit), and returns the limit then in force; absent where the system does
/// not tell. Never lowers it.
pub fn raise_open_files(wanted: u64) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live, writable `rlimit`, and the call keeps no pointer to it.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return None;
    }
    let raised = libc::rlimit { rlim_cur: wanted.min(limit.rlim_max), ..limit };
    if raised.rlim_cur <= limit.rlim_cur {
        return Some(limit.rlim_cur);
    }
    // SAFETY: `raised` is a valid `rlimit` for the whole call.
    let answer = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) };
    Some(if answer == 0 { raised.rlim_cur } else { limit.rlim_cur })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hard_limit() -> u64 {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is valid for writing.
        let answer = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        assert_eq!(answer, 0);
        limit.rlim_max
    }

    #[test]
    fn the_limit_rises_as_far_as_it_may_and_never_falls() {
        let before = raise_open_files(0).expect("a limit");
        assert!(before > 0);
        let after = raise_open_files(before + 1).expect("a limit");
        let may_rise = before < hard_limit();
        assert_eq!(after, if may_rise { before + 1 } else { before });
        assert_eq!(raise_open_files(1), Some(after));
    }
}
