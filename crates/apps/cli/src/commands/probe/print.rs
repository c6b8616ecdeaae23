//! Reports of a probe that stands alone, as people and programs read them.

use std::fmt::Write as _;
use std::io::{self, Write};

use netaware_io::stop::StopFlag;
use netaware_observer::watch::report::Outlet;
use netaware_record::Document as _;
use netaware_record::passive::{
    CaptureHealth, CaptureLoss, DelayStatistics, FlowKey, PacketSighting, ProbeReport, Row, TaskRow,
    VolumeRow,
};
use netaware_units::{BitRate, ByteCount, Span, Wall};

use crate::render::figures::known;

/// How reports are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Form {
    /// For people
    #[default]
    Text,
    /// One JSON object per period, indented
    Json,
    /// One JSON object per period and line
    Ndjson,
}

/// Prints each report when its period is over, as long as somebody takes them.
pub(crate) struct Printer<W: Write + Send> {
    pub(crate) form: Form,
    pub(crate) top: usize,
    pub(crate) out: W,
    pub(crate) reports: u64,
    /// Why printing ended.
    pub(crate) failed: Option<io::Error>,
    /// Raised when printing ended; none where reports go elsewhere, too, and there is still a
    /// reason to watch.
    pub(crate) stop: Option<StopFlag>,
}

impl<W: Write + Send> Outlet for Printer<W> {
    fn sightings(&mut self, _: &str, _: &str, _: &[PacketSighting]) {
        // Digests mean something beside those of another point; the row counts them.
    }

    fn report(&mut self, mut report: ProbeReport) {
        if self.failed.is_some() {
            return;
        }
        self.reports += 1;
        report.sequence = self.reports;
        let text = match self.form {
            Form::Text => text(&report, self.top),
            Form::Json => report.to_json_pretty().unwrap_or_default() + "\n",
            Form::Ndjson => report.to_json().unwrap_or_default() + "\n",
        };
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.failed = Some(error);
            if let Some(stop) = &self.stop {
                stop.raise();
            }
        }
    }
}

/// A `String` takes everything.
macro_rules! line {
    ($out:expr, $($word:tt)*) => { let _ = writeln!($out, $($word)*); };
}

fn text(report: &ProbeReport, top: usize) -> String {
    let mut out = String::new();
    let length = report.period.until.since(report.period.from);
    for capture in &report.captures {
        line!(
            out,
            "{}  {}: {} packets, {} in {}{}",
            clock_time(report.period.until),
            capture.interface,
            capture.health.seen,
            capture.health.seen_bytes,
            length,
            losses(&capture.health)
        );
    }
    let mut rows: Vec<&TaskRow> = report.rows.iter().collect();
    rows.sort_by_key(|row| (row.task.clone(), std::cmp::Reverse(weight(&row.row))));
    let mut shown: (&str, usize) = ("", 0);
    for row in rows {
        shown = if shown.0 == row.task { (shown.0, shown.1 + 1) } else { (&row.task, 1) };
        let length = row.period.until.since(row.period.from);
        if shown.1 <= top.max(1) {
            line!(out, "  {:<8} {}{}", row.task, sentence(&row.row, length), lacking(&row.lost));
        } else if shown.1 == top.max(1) + 1 {
            let more = report.rows.iter().filter(|other| other.task == row.task).count() - top.max(1);
            line!(out, "  {:<8} … and {more} more", row.task);
        }
    }
    out
}

/// UTC, as in the records.
fn clock_time(at: Wall) -> String {
    let seconds = at.0.div_euclid(1_000_000_000).rem_euclid(86_400);
    let millis = at.0.rem_euclid(1_000_000_000) / 1_000_000;
    format!("{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// What a reader must know before believing a figure of this period.
fn losses(health: &CaptureHealth) -> String {
    let counts = [
        ("LOST in the ring", health.lost_ring),
        ("LOST in the kernel", health.lost_kernel),
        ("LOST by the card", health.lost_nic.unwrap_or(0)),
        ("merged by offloads", health.merged),
        ("malformed", health.malformed),
        ("not IP", health.not_ip),
    ];
    let mut out = String::new();
    for (what, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let _ = write!(out, "; {count} {what}");
    }
    if health.link_was_down {
        out.push_str("; the interface was down");
    }
    if health.mtu_changed {
        out.push_str("; its MTU changed");
    }
    if health.doubtful && health.lost() == 0 {
        out.push_str("; packets LOST may be counted in a neighbouring period");
    }
    out
}

/// How far a figure leans low; behind each, as lines are read and kept one by one.
fn lacking(lost: &CaptureLoss) -> String {
    match lost {
        CaptureLoss { packets: 0, doubtful: true, .. } => "; packets may be LOST".to_owned(),
        CaptureLoss { packets: 0, .. } => String::new(),
        CaptureLoss { packets, .. } => format!("; {packets} LOST meanwhile"),
    }
}

/// What puts a row before others of its task.
fn weight(row: &Row) -> u64 {
    match row {
        Row::Volume(row) => row.bytes.0,
        Row::Rtt(row) => row.delay.count,
        Row::Marking(row) => row.packets,
        Row::Capacity(row) => row.samples,
        _ => 0,
    }
}

fn sentence(row: &Row, length: Span) -> String {
    match row {
        Row::Volume(row) => volume(row, length),
        Row::Traffic(row) => {
            let slice = |bytes: &ByteCount| BitRate::mean(*bytes, row.slice);
            let (least, most) =
                (row.slices.iter().filter_map(slice).min(), row.slices.iter().filter_map(slice).max());
            let between = least.zip(most).map_or(String::new(), |(least, most)| {
                format!(", {least} to {most} in slices of {}", row.slice)
            });
            let share = row
                .utilisation
                .map_or(String::new(), |share| format!(", {:.1} % of the link", share * 100.0));
            let top =
                row.top.first().map_or(String::new(), |first| format!("; most: {}", volume(first, length)));
            let rate = known(BitRate::mean(row.bytes, length), |rate| rate.to_string());
            format!("{} packets, {rate}{between}{share}{top}", row.packets)
        }
        Row::Rtt(row) => format!("{}  {} ({})", key(&row.key), delays(&row.delay), row.method),
        Row::Marking(row) => format!(
            "{}  block {} colour {}: {} packets, {}, {} late",
            key(&row.key),
            row.block,
            row.colour,
            row.packets,
            row.bytes,
            row.late
        ),
        Row::Capacity(row) => format!(
            "{}  {:.3} Mbit/s ({:.3} to {:.3}) by {} of {} samples{}",
            key(&row.key),
            row.rate.estimate / 1e6,
            row.rate.lo / 1e6,
            row.rate.hi / 1e6,
            row.method,
            row.samples,
            if row.doubts.is_empty() {
                String::new()
            } else {
                format!("; doubtful: {}", row.doubts.join(", "))
            }
        ),
        Row::Digests(row) => {
            format!("{} packets, {} chosen, {} unusable", row.observed, row.selected, row.unusable)
        }
        Row::Delay(row) => {
            let below = if row.below_bound > 0 { " (some below their bound)" } else { "" };
            format!(
                "{} to {}  {}, {} lost of {}{below}",
                row.from,
                row.to,
                delays(&row.delay),
                row.lost,
                row.packets
            )
        }
        Row::Paths(row) => format!("{} paths", row.paths.len()),
        Row::Active(_) => "measured; see the JSON".to_owned(),
    }
}

fn delays(delay: &DelayStatistics) -> String {
    if delay.count == 0 {
        return "none".to_owned();
    }
    let mean = Span((delay.sum_ns / i128::from(delay.count)) as i64);
    format!("{} min, {mean} mean, {} max of {}", delay.min, delay.max, delay.count)
}

fn volume(row: &VolumeRow, length: Span) -> String {
    let name = if row.rest { "all others".to_owned() } else { key(&row.key) };
    let error =
        if row.packets_error > 0 { format!(" (up to {} more)", row.packets_error) } else { String::new() };
    let rate = known(BitRate::mean(row.bytes, length), |rate| rate.to_string());
    format!("{name}  {} packets{error}, {}, {rate}", row.packets, row.bytes)
}

fn key(key: &FlowKey) -> String {
    let end = |address: Option<std::net::IpAddr>, prefix: Option<u8>, port: Option<u16>| {
        let mut text = match (address, port) {
            (Some(std::net::IpAddr::V6(address)), Some(port)) => format!("[{address}]:{port}"),
            (Some(address), Some(port)) => format!("{address}:{port}"),
            (Some(address), None) => address.to_string(),
            (None, Some(port)) => format!("*:{port}"),
            (None, None) => return None,
        };
        if let Some(prefix) = prefix {
            let _ = write!(text, "/{prefix}");
        }
        Some(text)
    };
    let source = end(key.source, key.source_prefix, key.source_port);
    let destination = end(key.destination, key.destination_prefix, key.destination_port);
    let mut words = Vec::new();
    if let Some(protocol) = key.protocol {
        words.push(match protocol {
            1 => "ICMP".to_owned(),
            6 => "TCP".to_owned(),
            17 => "UDP".to_owned(),
            58 => "ICMPv6".to_owned(),
            other => format!("protocol {other}"),
        });
    }
    match (source, destination) {
        (Some(source), Some(destination)) => words.push(format!("{source} > {destination}")),
        (Some(source), None) => words.push(format!("from {source}")),
        (None, Some(destination)) => words.push(format!("to {destination}")),
        (None, None) => {}
    }
    if let Some(version) = key.version {
        words.push(if version == netaware_record::IpVersion::V6 { "IPv6" } else { "IPv4" }.to_owned());
    }
    if let Some(dscp) = key.dscp {
        words.push(format!("DSCP {dscp}"));
    }
    if let Some(label) = key.flow_label {
        words.push(format!("label {label:#x}"));
    }
    if words.is_empty() { "everything".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::{ClockState, InterfaceCapture, Period};

    use super::*;

    fn report() -> ProbeReport {
        let period = Period { from: Wall(1_700_000_000_000_000_000), until: Wall(1_700_000_001_000_000_000) };
        let health =
            CaptureHealth { seen: 30, seen_bytes: ByteCount(3000), lost_ring: 2, ..Default::default() };
        let row = |source: &str, packets| {
            let key = FlowKey {
                source: Some(source.parse().unwrap()),
                source_port: Some(443),
                protocol: Some(6),
                ..FlowKey::default()
            };
            let row = Row::Volume(VolumeRow {
                key,
                packets,
                bytes: ByteCount(packets * 100),
                first_at: period.from,
                last_at: period.from,
                packets_error: 0,
                rest: false,
            });
            TaskRow { lost: health.loss(), ..TaskRow::new("volume", period, row) }
        };
        ProbeReport {
            probe: "here".into(),
            sequence: 0,
            period,
            captures: vec![InterfaceCapture { interface: "eth0".into(), health }],
            clock: ClockState::default(),
            rows: vec![row("192.0.2.1", 10), row("2001:db8::1", 20), row("192.0.2.3", 5)],
            rows_cut: std::collections::BTreeMap::new(),
            exchanges: Vec::new(),
        }
    }

    #[test]
    fn people_see_losses_first_and_the_largest_rows() {
        let text = text(&report(), 2);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("22:13:21.000Z  eth0: 30 packets"), "{text}");
        assert!(lines[0].ends_with("; 2 LOST in the ring"), "{text}");
        assert!(lines[1].contains("TCP from [2001:db8::1]:443  20 packets"), "{text}");
        assert!(lines[1].ends_with("; 2 LOST meanwhile"), "{text}");
        assert!(lines[2].contains("192.0.2.1:443"), "{text}");
        assert_eq!(lines[3], "  volume   … and 1 more");
        assert_eq!(lines.len(), 4);
    }

    fn printer<W: Write + Send>(out: W, stop: Option<StopFlag>) -> Printer<W> {
        Printer { form: Form::Ndjson, top: 1, out, reports: 0, failed: None, stop }
    }

    #[test]
    fn programs_get_one_report_per_line() {
        let mut printer = printer(Vec::new(), None);
        printer.report(report());
        printer.report(report());
        let text = String::from_utf8(printer.out).unwrap();
        let read: Vec<ProbeReport> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((read.len(), read[1].sequence, read[0].rows.len()), (2, 2, 3));
    }

    /// Takes one report, as `head -1` does.
    struct Head {
        lines: usize,
    }

    impl Write for Head {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            if self.lines == 1 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.lines += 1;
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_probe_whose_reader_has_gone_does_not_watch_for_ever() {
        let stop = StopFlag::new();
        let mut alone = printer(Head { lines: 0 }, Some(stop.clone()));
        alone.report(report());
        assert!(!stop.is_raised());
        alone.report(report());
        assert!(stop.is_raised());
        assert_eq!(alone.failed.map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
    }

    #[test]
    fn beside_an_export_a_printer_whose_reader_has_gone_is_left_out() {
        let mut beside = printer(Head { lines: 0 }, None);
        for _ in 0..3 {
            beside.report(report());
        }
        assert_eq!(beside.reports, 2, "the third was not tried");
        assert!(beside.failed.is_some());
    }
}
