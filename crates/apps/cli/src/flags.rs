//! Flags that several commands share, and the readers of their values.

pub(crate) mod affinity;
pub(crate) mod bottleneck;
pub(crate) mod dscp;
pub(crate) mod estimation;
pub(crate) mod hist;
pub(crate) mod host;
mod identity_file;
pub(crate) mod key;
pub(crate) mod logging;
pub(crate) mod output;
pub(crate) mod pace;
pub(crate) mod probed;
pub(crate) mod quantity;
pub(crate) mod reflector;
pub(crate) mod series;
pub(crate) mod target;

pub(crate) use identity_file::identity_file;
