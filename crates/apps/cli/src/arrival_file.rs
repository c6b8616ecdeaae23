//! `--log`: every arrival of a UDP stream as a line of CSV.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use netaware_record::{LoggedArrival, Record};

/// Makes the file, empty, before anything is measured: a long run whose log cannot be written would
/// be in vain.
///
/// # Errors
/// The file is there already, or cannot be made.
pub(crate) fn reserve(path: &Path) -> anyhow::Result<()> {
    File::create_new(path).with_context(|| format!("cannot make the file {} for --log", path.display()))?;
    Ok(())
}

/// Moves the arrivals out of the record into a reserved file; what cannot be written is a warning
/// in the record.
pub(crate) fn write(path: &Path, record: &mut Record) {
    if let Err(error) = File::create(path).and_then(|file| rows(BufWriter::new(file), record)) {
        record.warnings.push(format!("the arrivals are not all in {}: {error}", path.display()));
    }
    let unlogged: u64 = ends(record).map(|end| end.unlogged).sum();
    if unlogged > 0 {
        let path = path.display();
        record
            .warnings
            .push(format!("{unlogged} arrivals came after the log was full and are not in {path}"));
    }
}

fn rows(mut out: impl Write, record: &mut Record) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for version in &mut record.versions {
        let name = version.version.name();
        for result in &mut version.udp {
            let way = result.pedigree.direction.name();
            let Some(receiver) = &mut result.receiver else { continue };
            let arrivals = std::mem::take(&mut receiver.arrivals);
            for Row { seq, sent, received, delay } in Relative::new(&arrivals) {
                writeln!(out, "{name},{way},{seq},{sent},{received},{delay}")?;
            }
        }
    }
    out.flush()
}

const HEADER: &str = "version,direction,sequence,sent_ns,received_ns,delay_over_minimum_ns";

fn ends(record: &Record) -> impl Iterator<Item = &netaware_record::UdpReceiverEnd> {
    record.versions.iter().flat_map(|version| &version.udp).filter_map(|result| result.receiver.as_ref())
}

/// Clocks of two hosts have no common origin: each column begins at its own first value, and the
/// delay is that over the shortest of the stream.
struct Relative<'a> {
    arrivals: std::slice::Iter<'a, LoggedArrival>,
    sent: u64,
    received: u64,
    shortest: i64,
}

struct Row {
    seq: u64,
    sent: i64,
    received: i64,
    delay: i64,
}

impl<'a> Relative<'a> {
    fn new(arrivals: &'a [LoggedArrival]) -> Self {
        let earliest = |of: fn(&LoggedArrival) -> u64| arrivals.iter().map(of).min().unwrap_or(0);
        Self {
            sent: earliest(|arrival| arrival.1),
            received: earliest(|arrival| arrival.2),
            shortest: arrivals.iter().map(difference).min().unwrap_or(0),
            arrivals: arrivals.iter(),
        }
    }
}

fn difference(arrival: &LoggedArrival) -> i64 {
    arrival.2.wrapping_sub(arrival.1).cast_signed()
}

impl Iterator for Relative<'_> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let arrival = self.arrivals.next()?;
        Some(Row {
            seq: arrival.0,
            sent: arrival.1.wrapping_sub(self.sent).cast_signed(),
            received: arrival.2.wrapping_sub(self.received).cast_signed(),
            delay: difference(arrival).wrapping_sub(self.shortest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixture;

    #[test]
    fn arrivals_leave_the_record_for_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut record = fixture::udp();
        let receiver = record.versions[0].udp[0].receiver.as_mut().unwrap();
        receiver.arrivals = vec![
            LoggedArrival(0, 1_000_000, 77_000),
            LoggedArrival(2, 3_000_000, 2_077_100),
            LoggedArrival(1, 2_000_000, 2_077_200),
        ];
        receiver.unlogged = 5;
        let warnings = record.warnings.len();
        reserve(&path).unwrap();
        write(&path, &mut record);
        let way = record.versions[0].udp[0].pedigree.direction.name();
        let text = std::fs::read_to_string(&path).unwrap();
        let rows = [(0, 0, 0, 0), (2, 2_000_000, 2_000_100, 100), (1, 1_000_000, 2_000_200, 1_000_200)];
        let rows = rows.map(|(seq, sent, got, delay)| format!("IPv4,{way},{seq},{sent},{got},{delay}\n"));
        assert_eq!(text, format!("{HEADER}\n{}", rows.concat()));
        assert!(record.versions[0].udp[0].receiver.as_ref().unwrap().arrivals.is_empty());
        assert_eq!(record.warnings.len(), warnings + 1);
    }

    #[test]
    fn a_file_that_is_there_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        std::fs::write(&path, "mine").unwrap();
        assert!(reserve(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
