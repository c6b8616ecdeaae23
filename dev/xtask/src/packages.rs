//! Debian packages that tests and benchmarks need.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::shell::{command, output, run, works, workspace};

/// What the tests start: namespaces and shapers, black holes, a foreign server on our port, what a
/// path says of its routers; and a compiler for libFuzzer.
pub const FOR_TESTS: &[&str] = &[
    "iproute2",
    "nftables",
    "iperf3",
    "iputils-ping",
    "traceroute",
    "g++",
    "chrony",
    "linuxptp",
    "npm",
    "valgrind",
    "nfdump",
    "libpcap0.8",
    "tshark",
    "softflowd",
    "curl",
    "chromium",
];

/// What a program in C is built with against the library as it is installed, and the observer of
/// its symbols.
pub const FOR_INSTALLED: &[&str] = &["gcc", "libc6-dev", "pkg-config", "binutils"];

/// What builds the page, a browser that uses it, and what makes a certificate for it.
pub const FOR_WEB: &[&str] = &["npm", "chromium", "openssl"];

/// The tools that we compare ourselves with, the neutral observer, and a compiler for the reference
/// program.
pub const FOR_BENCHMARKS: &[&str] = &[
    "iproute2",
    "nftables",
    "iperf3",
    "nuttcp",
    "iperf",
    "qperf",
    "sockperf",
    "irtt",
    "iputils-ping",
    "tcpdump",
    "ethtool",
    "gcc",
    "libc6-dev",
];

/// Installs what is missing, saying so. Without root it says what to run instead, and fails.
pub fn ensure(packages: &[&str]) -> Result<()> {
    if !works(&mut command("dpkg-query", &["--version"])) {
        eprintln!("note: this is not Debian; these must be installed: {}", packages.join(" "));
        return Ok(());
    }
    let different: BTreeSet<&str> = packages.iter().copied().collect();
    let missing: Vec<&str> = different.into_iter().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if output(&mut command("id", &["-u"]))?.trim() != "0" {
        bail!("packages are missing; run: sudo apt-get install -y {}", missing.join(" "));
    }
    eprintln!("installing missing packages: {}", missing.join(" "));
    install(&missing).or_else(|_| {
        // A machine that never asked for the lists of packages knows no package at all.
        run(&mut command("apt-get", &["update", "-q"]))?;
        install(&missing)
    })
}

/// Packages that tests need but that cannot be installed beside others (NTPsec's beside chrony's):
/// each is unpacked into a folder of its name, where tests find it.
const UNPACKED: [&str; 1] = ["ntpsec"];

/// Unpacks those into `target/tmp`, unless they are there.
///
/// # Errors
/// One cannot be fetched.
pub fn unpack() -> Result<()> {
    if !works(&mut command("dpkg-query", &["--version"])) {
        return Ok(());
    }
    let target = workspace()?["target_directory"].as_str().map(PathBuf::from).unwrap_or_default();
    for package in UNPACKED {
        let folder = target.join("tmp").join(package);
        if folder.join("usr").exists() {
            continue;
        }
        std::fs::create_dir_all(&folder).with_context(|| format!("could not make {}", folder.display()))?;
        let fetch = || run(command("apt-get", &["download", "-q", package]).current_dir(&folder));
        fetch().or_else(|_| run(&mut command("apt-get", &["update", "-q"])).and_then(|()| fetch()))?;
        run(command("sh", &["-c", "dpkg --extract *.deb ."]).current_dir(&folder))?;
    }
    Ok(())
}

/// Packages whose program often comes another way: Node's own packages hold `npm`, and Debian's may
/// not stand beside them.
const PROGRAMS: &[(&str, &str)] = &[("npm", "npm")];

fn is_installed(package: &str) -> bool {
    let program = PROGRAMS.iter().find(|(name, _)| *name == package);
    if program.is_some_and(|(_, program)| works(&mut command(program, &["--version"]))) {
        return true;
    }
    let state = output(&mut command("dpkg-query", &["-W", "-f=${db:Status-Status}", package]));
    state.is_ok_and(|state| state == "installed")
}

fn install(packages: &[&str]) -> Result<()> {
    let options = ["install", "-y", "-q", "--no-install-recommends"];
    let mut install = command("apt-get", &[&options[..], packages].concat());
    // iperf3 and irtt would otherwise ask whether to run as a service, and wait for the answer.
    run(install.env("DEBIAN_FRONTEND", "noninteractive"))
}
