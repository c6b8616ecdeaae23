//! Measurements that belong together: a scan over an option, or one repeated over hours.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The place of a record in its series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SeriesPoint {
    /// UUIDv7 that all records of the series share.
    pub id: Uuid,
    /// What makes it a series.
    pub kind: SeriesKind,
    /// Position in the plan, from zero. Positions without a record were not measured.
    pub index: u64,
    /// How many were planned; zero for a series that goes on until it is stopped.
    pub planned: u64,
    /// The scanned options by their long names, with units, as this record was measured: `spacing`
    /// is `20us`.
    #[serde(default)]
    pub point: BTreeMap<String, String>,
}

/// What makes it a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// One or more options take one value after the other (`--scan`).
    Scan,
    /// The same measurement at even times (`--every`).
    Repeat,
    /// The combinations of a matrix (`netaware matrix`).
    Matrix,
}
