//! Puts scenarios/*.toml into the library, so that they can be had by name.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let folder = here.join("../../../scenarios");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let rows: String = files.iter().map(|file| row(file)).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("bundled.rs");
    let text = format!("const BUNDLED: &[(&str, &str)] = &[\n{rows}];\n");
    fs::write(out, text).expect("the output folder can be written");
}

fn row(file: &Path) -> String {
    println!("cargo::rerun-if-changed={}", file.display());
    let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let path = file.to_string_lossy();
    format!("    ({name:?}, include_str!({path:?})),\n")
}
