//! The library as a packager installs it, with cargo-c, in a folder of its own. It is built once
//! more for that.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Gone when it is dropped.
pub(crate) struct Installation(TempDir);

impl Installation {
    /// # Panics
    /// Where there is no cargo-c (`cargo install cargo-c`), or it fails.
    pub(crate) fn new() -> Self {
        let here = Self(TempDir::new().unwrap());
        let mut cinstall = Command::new("cargo");
        cinstall.args(["cinstall", "--locked", "--release", "--package", "netaware-ffi", "--libdir", "lib"]);
        cinstall.arg("--prefix").arg(here.prefix()).current_dir(repository());
        cinstall.env(linker_variable(), repository().join("packaging/libnetaware/versioned-cc"));
        // These are the test's package, not the library's.
        for name in std::env::vars().map(|(name, _)| name).filter(|name| name.starts_with("CARGO_PKG_")) {
            cinstall.env_remove(name);
        }
        output(&mut cinstall);
        here
    }

    pub(crate) fn prefix(&self) -> PathBuf {
        self.0.path().join("usr")
    }

    pub(crate) fn lib(&self) -> PathBuf {
        self.prefix().join("lib")
    }

    /// What pkg-config tells a compiler.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut told = Command::new("pkg-config");
        told.args(["--cflags", "--libs", "netaware"]).env("PKG_CONFIG_PATH", self.lib().join("pkgconfig"));
        output(&mut told).split_whitespace().map(str::to_owned).collect()
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// What a program prints.
pub(crate) fn output(command: &mut Command) -> String {
    let ended = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(ended.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

/// Where cargo looks for the linker of this host's programs.
fn linker_variable() -> String {
    let told = output(Command::new("rustc").arg("-vV"));
    let host = told.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc tells its host");
    format!("CARGO_TARGET_{}_LINKER", host.to_uppercase().replace('-', "_"))
}
