//! When something happened, by whose clock, and how wrong that may be.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Mono, Span};

/// Where in the machine a timestamp was taken. Later variants stand closer to the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// Read by the program around the system call: contains the scheduler's delay.
    #[default]
    Application,
    /// Taken by the kernel where the packet leaves or enters the network stack (`SO_TIMESTAMPING`,
    /// software).
    Kernel,
    /// Taken by the network card.
    Nic,
}

impl ClockSource {
    /// The word shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Kernel => "kernel",
            Self::Nic => "NIC",
        }
    }
}

/// An instant with its pedigree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The instant on this host's monotonic clock.
    pub at: Mono,
    /// Who read the clock.
    pub by: ClockSource,
    /// Half-width of the error known at the time, for example from mapping the kernel's real-time
    /// stamp to the monotonic clock. Scheduling delay of application stamps is not in it: nobody
    /// can know that one.
    pub error: Span,
}

impl Stamp {
    /// A stamp that the program itself took.
    pub fn application(at: Mono) -> Self {
        Self { at, by: ClockSource::Application, error: Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_named_and_ordered_from_the_program_to_the_wire() {
        let clocks = [ClockSource::Application, ClockSource::Kernel, ClockSource::Nic];
        assert_eq!(clocks.map(ClockSource::name), ["application", "kernel", "NIC"]);
        assert!(clocks.is_sorted());
    }
}
