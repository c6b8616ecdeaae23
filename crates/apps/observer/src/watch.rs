//! Passive tasks at work: packets of one source shown to the tasks, and periods closed without
//! holding packets up.
//!
//! [`station`] belongs to the thread that captures. When a period ends it takes each task's table
//! away, puts an empty one in its place and hands the full one on; [`report`] reads tables out in
//! another thread, makes one report per period of what all stations say, and gives emptied tables
//! back. [`source`] is where packets come from, [`run`] the thread around a station; `losses`
//! decides which periods a loss belongs to.

mod losses;
pub mod report;
mod rings;
pub mod run;
pub mod source;
pub mod station;
