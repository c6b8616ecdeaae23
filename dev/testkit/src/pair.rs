//! `netaware` on both sides of a pair of namespaces.

use netaware_netns::Pair;
use netaware_record::{IpVersion, Record, VersionResult};

use crate::lab::PORT;
use crate::program::{Program, Responder, netaware_path};

/// Starts a responder on the right.
pub fn responder(pair: &Pair, options: &[&str]) -> Responder {
    let mut command = pair.right().command(netaware_path());
    command.args(["serve", "--port", &PORT.to_string()]);
    Responder::launch(command, options, PORT)
}

/// Starts `netaware` with these arguments on the left.
pub fn prober(pair: &Pair, arguments: &[&str]) -> Program {
    let mut command = pair.left().command(netaware_path());
    command.args(arguments);
    Program::start(command)
}

/// The part of a record that is about one IP version.
pub fn over(record: &Record, version: IpVersion) -> &VersionResult {
    record.versions.iter().find(|it| it.version == version).unwrap_or_else(|| panic!("no {}", version.name()))
}
