//! A library that the examples in C are built against.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where it is, and how a compiler hears of it.
pub(crate) struct Library {
    pub(crate) folder: PathBuf,
    pub(crate) flags: Vec<String>,
}

impl Library {
    /// The one that cargo has put beside this test, with the header of the sources.
    pub(crate) fn built() -> Self {
        let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include");
        let flags =
            [format!("-I{}", header.display()), format!("-L{}", folder.display()), "-lnetaware".into()];
        Self { folder, flags: flags.into() }
    }

    /// The example of this name, which runs with the library from this folder where LD_LIBRARY_PATH
    /// does not say otherwise.
    pub(crate) fn compile(&self, name: &str, into: &Path) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.c"));
        let program = into.join(name);
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-g", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L"]);
        cc.arg("-o").arg(&program).arg(source).args(&self.flags);
        cc.arg(format!("-Wl,-rpath,{}", self.folder.display()));
        assert!(cc.status().expect("a C compiler").success());
        program
    }
}
