//! What a confined program can do no more, tried by one, and what it still can.
//!
//! A confinement cannot be left, so each test starts this executable again: the child enters and
//! tries, the parent only wants it to end well.
#![expect(unsafe_code, reason = "the system calls that are to fail")]

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use netaware_confine::{Confinement, Held, Programs, Report};

/// Holds the folder of a child that is to try; the parent has none.
const CHILD: &str = "NETAWARE_TEST_CONFINED";

/// Runs `tries` in a child that runs the test `name` alone.
fn in_a_child(name: &str, tries: impl FnOnce(&Path)) {
    if let Some(folder) = std::env::var_os(CHILD) {
        return tries(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("confined::{name}"), "--nocapture"])
        .env(CHILD, folder.path())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// Whether there is something to try. A kernel without it is said to have none, and why.
fn is_there(part: &Held) -> bool {
    if let Held::NotAvailable(why) = part {
        assert!(!why.is_empty());
        eprintln!("not tried: {why}");
    }
    !matches!(part, Held::NotAvailable(_))
}

fn is_refused<T>(result: std::io::Result<T>, what: &str) {
    match result {
        Ok(_) => panic!("allowed: {what}"),
        Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{what}: {error}"),
    }
}

/// The answer of a system call that must not be had.
fn is_denied(answer: libc::c_long, what: &str) {
    let error = std::io::Error::last_os_error();
    assert_eq!((answer, error.raw_os_error()), (-1, Some(libc::EPERM)), "{what}");
}

fn on_a_new_thread(tries: impl FnOnce() + Send) {
    std::thread::scope(|scope| scope.spawn(tries).join().unwrap());
}

/// A server that was taken over read the keys of its user and wrote where it liked.
#[test]
fn whoever_takes_over_a_confined_program_reads_and_writes_nothing_of_its_users() {
    in_a_child("whoever_takes_over_a_confined_program_reads_and_writes_nothing_of_its_users", |folder| {
        let (own, read, others) = (folder.join("own"), folder.join("read"), folder.join("others"));
        for made in [&own, &read, &others] {
            fs::create_dir(made).unwrap();
            fs::write(made.join("there"), "secret").unwrap();
        }
        let confinement = Confinement {
            reads: vec![read.clone(), folder.join("is not there")],
            writes: vec![own.clone()],
            ..Confinement::default()
        };
        if !is_there(&confinement.enter().files) {
            return;
        }
        let tries = || {
            is_refused(fs::read(others.join("there")), "reading another file");
            is_refused(fs::write(others.join("there"), "x"), "writing to another file");
            is_refused(fs::write(others.join("new"), "x"), "making a file elsewhere");
            is_refused(fs::remove_file(others.join("there")), "removing another file");
            is_refused(fs::read_dir(&others), "listing another folder");
            is_refused(fs::write(read.join("there"), "x"), "writing to what is only read");
            is_refused(fs::create_dir(folder.join("is not there")), "making a folder elsewhere");
            assert_eq!(fs::read(read.join("there")).unwrap(), b"secret");
            fs::create_dir_all(own.join("a/b")).unwrap();
            fs::write(own.join("a/new"), "mine").unwrap();
            fs::rename(own.join("a/new"), own.join("a/old")).unwrap();
            assert_eq!(fs::read(own.join("a/old")).unwrap(), b"mine");
            fs::remove_dir_all(own.join("a")).unwrap();
            fs::write("/dev/null", "nothing").unwrap();
            fs::read("/proc/self/status").unwrap();
            fs::read("/etc/passwd").unwrap();
        };
        tries();
        on_a_new_thread(tries);
    });
}

/// A server that was taken over started a shell.
#[test]
fn whoever_takes_over_a_confined_program_starts_no_other_and_changes_nothing_of_the_system() {
    in_a_child(
        "whoever_takes_over_a_confined_program_starts_no_other_and_changes_nothing_of_the_system",
        |_| {
            let tries = || {
                is_refused(Command::new("/proc/self/exe").arg("--list").status(), "starting a program");
                let none = std::ptr::null::<libc::c_char>();
                // SAFETY: they fail before anything is read, and change nothing if they do not.
                unsafe {
                    is_denied(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0), "ptrace");
                    is_denied(libc::syscall(libc::SYS_mount, none, none, none, 0, none), "mount");
                    is_denied(libc::syscall(libc::SYS_chroot, none), "chroot");
                    is_denied(libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER), "unshare");
                    is_denied(libc::syscall(libc::SYS_bpf, 0, none, 0), "bpf");
                }
            };
            // Calls are denied to threads that were there before as well.
            let (begin, begun) = channel::<()>();
            let earlier = std::thread::scope(|scope| {
                let earlier = scope.spawn(move || {
                    if begun.recv().is_ok() {
                        tries();
                    }
                });
                let Report { calls, .. } = Confinement::default().enter();
                if is_there(&calls) {
                    assert_eq!(calls, Held::Enforced);
                    tries();
                    on_a_new_thread(tries);
                    begin.send(()).unwrap();
                }
                drop(begin);
                earlier.join()
            });
            earlier.unwrap();
        },
    );
}

#[test]
fn a_confined_program_still_has_its_sockets_threads_and_clock() {
    in_a_child("a_confined_program_still_has_its_sockets_threads_and_clock", |_| {
        Confinement::default().enter();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        on_a_new_thread(|| TcpStream::connect(address).unwrap().write_all(b"hello").unwrap());
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        one.send_to(b"datagram", other.local_addr().unwrap()).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(other.recv_from(&mut buffer).unwrap(), (8, one.local_addr().unwrap()));
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: room for the answer, which outlives the call.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) }, 0);
    });
}

#[test]
fn no_program_that_is_started_gains_a_capability() {
    in_a_child("no_program_that_is_started_gains_a_capability", |_| {
        let bits = |name: &str| {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
            u64::from_str_radix(&line, 16).unwrap()
        };
        let may_empty_it = bits("CapEff:") & (1 << CAP_SETPCAP) != 0 || bits("CapBnd:") == 0;
        let held = Confinement::default().enter().capabilities;
        assert_eq!(bits("NoNewPrivs:"), 1);
        assert_eq!(bits("CapBnd:") == 0, may_empty_it);
        assert_eq!(held == Held::Enforced, may_empty_it, "{held}");
        assert!(may_empty_it || held.to_string().contains("CAP_SETPCAP"), "{held}");
    });
}

/// `CAP_SETPCAP` (capabilities(7)).
const CAP_SETPCAP: u64 = 8;

#[test]
fn a_program_that_starts_itself_can_start_nothing_else() {
    in_a_child("a_program_that_starts_itself_can_start_nothing_else", |_| {
        let programs = Some(Programs::this_one("tasks are programs of their own"));
        let report = Confinement { programs, ..Confinement::default() }.enter();
        if is_there(&report.calls) {
            let said = report.calls.to_string();
            assert_eq!(
                said,
                "partly enforced: programs can be started, because tasks are programs of their own"
            );
        }
        let start =
            |program: &str, word: &str| Command::new(program).arg(word).stdout(Stdio::null()).status();
        assert!(start("/proc/self/exe", "--list").unwrap().success());
        if is_there(&report.files) {
            is_refused(start("/usr/bin/env", "--version"), "starting another program");
        }
    });
}

#[test]
fn a_thread_without_files_is_not_counted_as_one_that_was_there_before() {
    in_a_child("a_thread_without_files_is_not_counted_as_one_that_was_there_before", |_| {
        // What the runner of tests has beside this thread is there in any case.
        let count = |held: &Held| match held {
            Held::Partly(why) => why.rsplit(' ').next().and_then(|last| last.parse::<usize>().ok()),
            _ => None,
        };
        let (entered, is_entered) = channel::<()>();
        let (end, ended) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                netaware_confine::forbid_files();
                entered.send(()).unwrap();
                let _ = ended.recv();
            });
            is_entered.recv().unwrap();
            let running = fs::read_dir("/proc/self/task").unwrap().count();
            let held = Confinement::default().enter().files;
            // Landlock of Linux 7.0 and later holds all threads, so that none is counted.
            if let Some(others) = count(&held) {
                assert_eq!(others, running - 2, "{held}");
            }
            drop(end);
        });
    });
}
