//! The integration tests of `netaware-store`, in one executable.

mod cases;
#[cfg(target_os = "linux")]
mod fleet_clickhouse;
#[cfg(target_os = "linux")]
mod fleet_clickhouse_sharded;
mod fleet_sqlite;
