//! The JSON of a row that is kept as such: its figures, and beside them what the capture behind
//! them lost.
//!
//! Rows of before that was told have nothing beside their figures; what lost nothing still has not.

use netaware_record::Document as _;
use netaware_record::passive::{CaptureLoss, Row, TaskRow};
use serde::Deserialize;

/// Apart from the figures, whose own numbers may be wider than a flattened one can be.
#[derive(Deserialize)]
struct Beside {
    #[serde(default)]
    capture_lost: CaptureLoss,
}

pub(super) fn emit(row: &TaskRow) -> serde_json::Result<String> {
    let mut json = row.row.to_json()?;
    if !row.lost.is_nothing() {
        // A row is an object with a kind, so there is a field before this one.
        json.pop();
        json.push_str(",\"capture_lost\":");
        json.push_str(&serde_json::to_string(&row.lost)?);
        json.push('}');
    }
    Ok(json)
}

pub(super) fn parse(json: &str) -> serde_json::Result<(Row, CaptureLoss)> {
    let Beside { capture_lost } = serde_json::from_str(json)?;
    Ok((Row::from_json(json.as_bytes())?, capture_lost))
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::{DelayStatistics, FlowKey, Period, RttRow};
    use netaware_units::Wall;

    use super::*;

    #[test]
    fn what_was_lost_comes_back_beside_the_figures_and_rows_without_it_lost_nothing() {
        let period = Period { from: Wall(0), until: Wall(1) };
        let delay = DelayStatistics { sum_ns: i128::from(u64::MAX) * 9, ..DelayStatistics::default() };
        let (key, method) = (FlowKey::default(), "timestamps".to_owned());
        let whole = TaskRow::new("t", period, Row::Rtt(RttRow { key, method, delay }));
        let json = emit(&whole).unwrap();
        assert_eq!(json, serde_json::to_string(&whole.row).unwrap(), "as it was kept before");
        assert_eq!(parse(&json).unwrap(), (whole.row.clone(), CaptureLoss::default()));
        let lost = CaptureLoss { packets: 3, merged: 4, doubtful: true };
        let json = emit(&TaskRow { lost, ..whole.clone() }).unwrap();
        assert_eq!(parse(&json).unwrap(), (whole.row, lost));
    }
}
