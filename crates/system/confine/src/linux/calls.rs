//! System calls that no measurement needs fail with `EPERM`, in all threads.
//!
//! A list of what is denied, and not of what is allowed: `docs/decisions/confinement.md` says why.
//! A call of another architecture (32 bits on a kernel of 64) ends the process, since its numbers
//! mean something else.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, TargetArch, sock_filter};

use super::capabilities::set_no_new_privs;
use crate::{Held, Programs};

pub(crate) fn enter(programs: Option<&Programs>) -> Held {
    let filter = match filter(&denied(programs)) {
        Ok(filter) => filter,
        Err(error) => return Held::NotAvailable(error.to_string()),
    };
    match install(&filter) {
        Err(error) => Held::NotAvailable(format!("the kernel refused the filter (seccomp): {error}")),
        Ok(()) => programs.map_or(Held::Enforced, |programs| {
            Held::Partly(format!("programs can be started, because {}", programs.why))
        }),
    }
}

fn denied(programs: Option<&Programs>) -> Vec<i64> {
    let starting = if programs.is_none() { STARTING } else { &[] };
    by_all_numbers(&[starting, DENIED].concat())
}

fn filter(denied: &[i64]) -> Result<BpfProgram, BackendError> {
    // No condition on arguments: the call fails whatever they are.
    let rules: BTreeMap<_, _> = denied.iter().map(|call| (*call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?.try_into()
}

/// `struct sock_fprog` (seccomp(2)).
#[repr(C)]
struct Program {
    length: u16,
    instructions: *const sock_filter,
}

fn install(filter: &[sock_filter]) -> io::Result<()> {
    // Without it a filter needs CAP_SYS_ADMIN.
    set_no_new_privs()?;
    let program = Program { length: filter.len() as u16, instructions: filter.as_ptr() };
    let mut refused = None;
    for flags in FLAGS {
        // SAFETY: the program and its instructions are as the call has them, and outlive it.
        let answer = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        match answer {
            0 => return Ok(()),
            1.. => refused = Some(io::Error::other(format!("thread {answer} has a filter of its own"))),
            _ => refused = Some(io::Error::last_os_error()),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// All threads. Kernels before 5.16 slow down every thread with a filter by switching off
/// speculative stores, unless it is said that nothing here runs foreign code; those before 4.17 do
/// not know the word.
const FLAGS: [libc::c_ulong; 2] =
    [libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW, libc::SECCOMP_FILTER_FLAG_TSYNC];

const STARTING: &[i64] = &[libc::SYS_execve, libc::SYS_execveat];

const DENIED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Files that no path leads to.
    libc::SYS_open_by_handle_at,
    // The kernel and the machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    // Keys of the kernel.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Parts of the kernel in which holes are found often. Filters of captures are classic ones,
    // which setsockopt(2) attaches.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
];

/// Not every C library names it.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: i64 = 320;
#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: i64 = 294;

/// The same calls by the numbers of x32, which has the same architecture for a filter
/// (`arch/x86/entry/syscalls/syscall_64.tbl`).
#[cfg(target_arch = "x86_64")]
fn by_all_numbers(calls: &[i64]) -> Vec<i64> {
    let of_x32 =
        |call: i64| X32_NUMBERS.iter().filter(move |(usual, _)| *usual == call).map(|(_, x32)| x32 | X32);
    calls.iter().flat_map(|call| [*call, call | X32].into_iter().chain(of_x32(*call))).collect()
}

#[cfg(target_arch = "aarch64")]
fn by_all_numbers(calls: &[i64]) -> Vec<i64> {
    calls.to_vec()
}

#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

#[cfg(target_arch = "x86_64")]
const X32_NUMBERS: &[(i64, i64)] = &[
    (libc::SYS_execve, 520),
    (libc::SYS_ptrace, 521),
    (libc::SYS_kexec_load, 528),
    (libc::SYS_process_vm_readv, 539),
    (libc::SYS_process_vm_writev, 540),
    (libc::SYS_execveat, 545),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_programs_is_denied_to_who_starts_none() {
        let programs = Programs { files: Vec::new(), why: "it does" };
        let (none, some) = (denied(None), denied(Some(&programs)));
        for call in STARTING {
            assert!(none.contains(call) && !some.contains(call), "{call}");
        }
        assert!(DENIED.iter().all(|call| none.contains(call) && some.contains(call)));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn no_call_comes_back_by_its_number_of_x32() {
        let denied = by_all_numbers(&[libc::SYS_execve, libc::SYS_mount]);
        assert_eq!(denied, [59, 59 + X32, 520 + X32, 165, 165 + X32]);
    }

    #[test]
    fn the_filter_is_one_that_the_kernel_takes() {
        // At most 4096 instructions (BPF_MAXINSNS).
        let filter = filter(&denied(None)).unwrap();
        assert!((DENIED.len()..=4096).contains(&filter.len()), "{}", filter.len());
    }
}
