//! Labs for tests, each with a name of its own, and `netaware` on their two hosts.

use std::sync::atomic::{AtomicU32, Ordering};

use netaware_lab::{EmulatorCore, Lab, LabOptions, Scenario, Side, scenarios};

use crate::program::{Program, Responder, netaware_path};

/// The port of [`responder`].
pub const PORT: u16 = 14_233;

/// A prefix that no other lab on this host has: `netaware-<process>-<number>`. If the test is
/// killed, `netaware_netns::remove_stale` removes the namespaces of this prefix like its own.
pub fn prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Three digits, so that no prefix is the beginning of another one.
    format!("netaware-{}-{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The usual options, with a prefix of their own. Where tests run side by side, the runner sets
/// `NETAWARE_LAB_CORE` to `shared`: the emulator of such a lab has no core of its own.
pub fn options() -> LabOptions {
    let shared = std::env::var("NETAWARE_LAB_CORE").is_ok_and(|core| core == "shared");
    let core = if shared { EmulatorCore::Shared } else { EmulatorCore::Own };
    LabOptions { prefix: prefix(), core, ..LabOptions::default() }
}

/// The scenario of this text. A text that does not begin with `about` gets such a line.
///
/// # Panics
/// If the text is not a scenario.
#[track_caller]
pub fn scenario(text: &str) -> Scenario {
    let about = if text.trim_start().starts_with("about") { "" } else { "about = \"a test\"\n" };
    scenarios::parse("a test", format!("{about}{text}")).unwrap_or_else(|error| panic!("{error}")).scenario
}

/// The scenario of this name that comes with netaware.
///
/// # Panics
/// If there is none.
#[track_caller]
pub fn bundled(name: &str) -> Scenario {
    scenarios::load(name).unwrap_or_else(|error| panic!("{error}")).scenario
}

/// Brings a lab up.
///
/// # Panics
/// If it does not come up: with the reason.
#[track_caller]
pub fn start(scenario: &Scenario, options: &LabOptions) -> Lab {
    Lab::up(scenario, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Brings a lab up over the [`scenario`] of this text, with this seed and a prefix of its own.
#[track_caller]
pub fn up(text: &str, seed: u64) -> Lab {
    start(&scenario(text), &LabOptions { seed, ..options() })
}

/// Keeps the calling thread, and every thread that it starts from then on, off the core that the
/// emulator has for itself. Does nothing if the emulator shares its core.
///
/// # Errors
/// If the system refuses it.
pub fn keep_off_emulator(lab: &Lab) -> std::io::Result<()> {
    let Some(core) = lab.state().core else { return Ok(()) };
    let other = netaware_io::thread::allowed_cores().into_iter().find(|it| *it != core);
    other.map_or(Ok(()), netaware_io::thread::pin)
}

/// Starts a responder on host B at [`PORT`] and waits until it listens.
pub fn responder(lab: &Lab, options: &[&str]) -> Responder {
    let mut serve = lab.command(Side::B, netaware_path());
    serve.args(["serve", "--port", &PORT.to_string()]);
    Responder::launch(serve, options, PORT)
}

/// Starts `netaware` with these arguments on host A.
pub fn prober(lab: &Lab, arguments: &[&str]) -> Program {
    let mut command = lab.command(Side::A, netaware_path());
    command.args(arguments);
    Program::start(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_differ_and_fit_a_lab() {
        let (one, two) = (prefix(), prefix());
        assert_ne!(one, two);
        assert!(one.len() <= 32 && !two.starts_with(&one), "{one} {two}");
        assert!(one.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{one}");
    }
}
