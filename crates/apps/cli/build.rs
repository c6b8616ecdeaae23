//! Asks the linker to pack the program's relocations, which saves 1.25 MB, if the C library can
//! unpack them.

use std::process::Command;

/// The first glibc that unpacks them.
const SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let is_for_this_machine = variable("HOST") == variable("TARGET");
    if is_for_this_machine
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && glibc().is_some_and(|it| it >= SINCE)
    {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
