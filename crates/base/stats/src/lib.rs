//! Statistics of delays, rates and losses: pure functions and small structs over plain numbers.
//!
//! The one contract: **nothing here invents a figure.** Where the data cannot support an answer (no
//! samples, no spread, a quantile beyond the last bin) the answer is `None`, never zero. Nothing
//! here reads a clock, starts a thread or draws randomness: the bootstrap takes its seed as an
//! argument, so a published interval can be recomputed to the last digit.
//!
//! Numbers carry the unit of the samples they came from; netaware feeds nanoseconds. Each module
//! header says what is assumed, which way the result leans, and where the method was published.
//!
//! | question | module |
//! |---|---|
//! | how are these samples spread? | [`quantile`], [`moments`], [`hist`], [`running`] |
//! | how far can I trust the difference of two? | [`bootstrap`], [`interval`] |
//! | did it break off before its end? | [`ceasing`] |
//! | where do they gather? | [`modes`] |
//! | how long may an answer take before it is lost? | [`patience`] |
//! | what was lost, doubled, reordered? | [`sequence`] |
//! | is the delay rising? | [`trend`] |
//! | what does a byte more cost? | [`line_fit`] |
//! | how much does the delay vary from packet to packet? | [`variation`] |

pub mod bootstrap;
pub mod ceasing;
pub mod distribution;
pub mod hist;
pub mod interval;
pub mod line_fit;
pub mod modes;
pub mod moments;
pub mod patience;
pub mod quantile;
pub mod rng;
pub mod running;
pub mod sequence;
pub mod trend;
pub mod variation;

#[cfg(test)]
mod truth;
