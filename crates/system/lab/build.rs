//! Puts scenarios/*.toml and scenarios/world/*.toml into the library, so that they can be had by
//! name: `lte`, `world/geostationary`.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let folder = here.join("../../../scenarios");
    let rows: String = [("", folder.clone()), ("world/", folder.join("world"))]
        .into_iter()
        .flat_map(|(prefix, folder)| scenarios(&folder).into_iter().map(move |file| row(prefix, &file)))
        .collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("bundled.rs");
    let text = format!("const BUNDLED: &[(&str, &str)] = &[\n{rows}];\n");
    fs::write(out, text).expect("the output folder can be written");
}

fn scenarios(folder: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

fn row(prefix: &str, file: &Path) -> String {
    println!("cargo::rerun-if-changed={}", file.display());
    let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let path = file.to_string_lossy();
    let name = format!("{prefix}{name}");
    format!("    ({name:?}, include_str!({path:?})),\n")
}
