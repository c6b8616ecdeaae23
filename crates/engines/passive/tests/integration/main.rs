//! The integration tests of `netaware-passive`, in one executable.

mod join_clocks;
mod join_faults;
mod join_oracle;
mod join_saved;
mod ten_million_flows;
