//! `netaware` on both sides of a pair of namespaces.

use netaware_netns::Pair;
use netaware_record::{IpVersion, Record, VersionResult};

use crate::program::{NETAWARE, Program, Responder};

const PORT: u16 = 14_233;

/// A responder on the right.
pub(crate) fn responder(pair: &Pair, options: &[&str]) -> Responder {
    let mut command = pair.right().command(NETAWARE);
    command.args(["serve", "--port", &PORT.to_string()]);
    Responder::launch(command, options, PORT)
}

/// A prober on the left.
pub(crate) fn prober(pair: &Pair, arguments: &[&str]) -> Program {
    let mut command = pair.left().command(NETAWARE);
    command.args(arguments);
    Program::start(command)
}

/// What was learnt over one version.
pub(crate) fn over(record: &Record, version: IpVersion) -> &VersionResult {
    record.versions.iter().find(|it| it.version == version).unwrap_or_else(|| panic!("no {}", version.name()))
}
