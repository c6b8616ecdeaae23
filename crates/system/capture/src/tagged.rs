//! Filters that run on frames after the ring, or on those of files: the same instructions, run by
//! us.

use netaware_passive::filter::Program;

use crate::filter::{BpfInstruction, FilterError};
use crate::frame::Frame;

/// A compiled filter over frames with their VLAN tags in place.
pub(crate) struct TaggedFilter(Program);

impl TaggedFilter {
    pub(crate) fn new(instructions: Vec<BpfInstruction>) -> Result<Self, FilterError> {
        let plain = instructions.into_iter().map(Into::into).collect();
        Program::new(plain).map(Self).map_err(|error| FilterError::Program(error.to_string()))
    }

    pub(crate) fn matches(&self, frame: &Frame<'_>) -> bool {
        self.0.matches(frame.bytes, frame.wire_length)
    }
}
