//! More than one measurement: over the values of an option (`--scan`), or over time (`--every`).
//!
//! A series is a row of ordinary measurements. For each point the values of the scanned options are
//! put on the command line, which is read again as a whole, so every option can be scanned and is
//! judged by its own parser. Each point yields a record of its own, saved and printed before the
//! next one begins; nothing is kept in memory but what the closing summary needs.
//!
//! Reading order: `scan` (which values), `slots` (which times), `line` (the command line), `run`
//! (the course), `rows` and `table` (how points look), `summary`, `size`, `figures` (the main
//! figures of a record).

pub(crate) mod figures;
mod line;
mod plan;
mod quantity;
pub(crate) mod rows;
mod run;
mod scan;
mod slots;
pub(crate) mod summary;
pub(crate) mod table;
mod tally;

pub(crate) use quantity::base_value;
pub(crate) use run::run;

/// No series has more points; a scan of so many takes months.
pub(crate) const MOST_POINTS: u64 = 1_000_000;
