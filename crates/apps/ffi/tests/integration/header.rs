//! `include/netaware.h` is what the library has. After a change of the ABI: `BLESS=1 cargo test -p
//! netaware-ffi --test integration header`.

use std::path::Path;

/// Rooms that have calls, constants or types of C.
const NAMES: [&str; 7] =
    ["calls.rs", "datagrams.rs", "decisions.rs", "peers.rs", "policy.rs", "signals.rs", "status.rs"];

#[test]
fn the_header_is_that_of_the_library() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).unwrap();
    let source = |name| here.join("src").join(name);
    let mut builder = cbindgen::Builder::new().with_config(config);
    for name in NAMES {
        builder = builder.with_src(source(name));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let file = here.join("../../../include/netaware.h");
    if std::env::var_os("BLESS").is_some() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "CI has nothing to bless");
        std::fs::write(&file, &made).unwrap();
    }
    assert!(made == std::fs::read_to_string(&file).unwrap_or_default(), "include/netaware.h is out of date");
}

#[test]
fn the_manual_names_every_call_and_constant() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(here.join("../../../include/netaware.h")).unwrap();
    let manual = std::fs::read_to_string(here.join("man/libnetaware.3")).unwrap();
    let words = header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = words.filter(|word| word.starts_with("na_") || word.starts_with("NA_"));
    for name in names {
        assert!(manual.contains(name), "libnetaware(3) does not name {name}");
    }
}
