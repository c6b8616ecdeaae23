//! The neutral observer: tcpdump at the receiving interface, its file read by us.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Read};
use std::process::{ChildStderr, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use netaware_netns::Running;
use tempfile::NamedTempFile;

use super::place::Place;
use crate::shell::{command, output};

/// A capture in progress.
pub(crate) struct Capture {
    tcpdump: Running,
    words: BufReader<ChildStderr>,
    file: NamedTempFile,
}

impl Capture {
    /// Begins to record UDP datagrams of exactly this payload towards the server; IPv4 only,
    /// because the filter language reaches no UDP header behind an IPv6 one.
    pub(crate) fn start(place: Place<'_>, payload: u32) -> Result<Self> {
        let file = NamedTempFile::new().context("no room for a capture")?;
        let filter = format!("udp and dst host {} and udp[4:2] = {}", place.address(), payload + UDP_HEADER);
        let mut tcpdump = place.server("tcpdump");
        // 64 B are enough for the headers; the large buffer outlives the moments in which tcpdump
        // gets no CPU.
        tcpdump.args(["-i", place.server_device(), "-n", "-s", "64", "-B", "65536", "-Z", "root"]);
        tcpdump.args(["--time-stamp-precision=nano", "-w"]).arg(file.path()).arg(filter);
        let mut tcpdump = Running::start(tcpdump.stdin(Stdio::null()).stderr(Stdio::piped()))?;
        let words = tcpdump.child().stderr.take().context("tcpdump has no stderr")?;
        let mut capture = Self { tcpdump, words: BufReader::new(words), file };
        capture.wait_for("listening on")?;
        Ok(capture)
    }

    /// Ends it and reads the gaps. A capture that missed a packet is an error: its gap would be the
    /// observer's fault.
    pub(crate) fn stop(mut self) -> Result<Gaps> {
        let id = self.tcpdump.id().to_string();
        output(&mut command("sh", &["-c", &format!("kill -INT {id}")]))?;
        let dropped = self.wait_for("dropped by kernel")?;
        self.tcpdump.child().wait().context("waiting for tcpdump")?;
        ensure!(dropped.starts_with("0 "), "the capture is incomplete: {dropped}");
        let stamps = read_stamps(BufReader::new(File::open(self.file.path())?))?;
        Ok(Gaps::of_stamps(&stamps))
    }

    fn wait_for(&mut self, words: &str) -> Result<String> {
        let mut line = String::new();
        let mut said = String::new();
        while self.words.read_line(&mut line).context("reading from tcpdump")? > 0 {
            if line.contains(words) {
                return Ok(line.trim().to_owned());
            }
            said += &std::mem::take(&mut line);
        }
        bail!("tcpdump ended without \"{words}\": {}", said.trim())
    }
}

const UDP_HEADER: u32 = 8;

/// Stamps in nanoseconds of all records of a capture file (classic pcap with nanoseconds, written
/// on this host).
fn read_stamps(mut file: impl Read) -> Result<Vec<u64>> {
    const NANOSECONDS: u32 = 0xa1b2_3c4d;
    let mut header = [0; 24];
    file.read_exact(&mut header).context("the capture file has no header")?;
    ensure!(word(&header, 0) == NANOSECONDS, "the capture file has no nanosecond stamps");
    let mut stamps = Vec::new();
    let mut record = [0; 16];
    loop {
        match file.read_exact(&mut record) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(stamps),
            read => read.context("reading the capture file")?,
        }
        stamps.push(u64::from(word(&record, 0)) * 1_000_000_000 + u64::from(word(&record, 4)));
        let length = u64::from(word(&record, 8));
        std::io::copy(&mut file.by_ref().take(length), &mut std::io::sink())?;
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Times between successive arrivals in nanoseconds, ascending.
#[derive(Debug, PartialEq)]
pub(crate) struct Gaps(Vec<i64>);

impl Gaps {
    /// Signed, because a wall clock that is corrected while we watch may step back.
    pub(crate) fn of_stamps(stamps: &[u64]) -> Self {
        let mut gaps: Vec<i64> =
            stamps.windows(2).map(|pair| pair[1].cast_signed() - pair[0].cast_signed()).collect();
        gaps.sort_unstable();
        Self(gaps)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().map(|&gap| gap as f64).sum::<f64>() / self.0.len() as f64
    }

    pub(crate) fn standard_deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|&gap| (gap as f64 - mean).powi(2)).sum();
        (squares / (self.0.len() as f64 - 1.0)).sqrt()
    }

    /// The smallest gap that at least this share of all gaps does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).map_or(f64::NAN, |&gap| gap as f64)
    }

    /// Share of gaps that deviate from `planned` by no more than this share of it.
    pub(crate) fn share_within(&self, planned: f64, tolerance: f64) -> f64 {
        let near = self.0.iter().filter(|&&gap| (gap as f64 - planned).abs() <= planned * tolerance).count();
        near as f64 / self.0.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pcap(magic: u32, stamps: &[(u32, u32)]) -> Vec<u8> {
        let mut file = magic.to_ne_bytes().to_vec();
        file.extend([0; 20]);
        for (seconds, nanos) in stamps {
            for field in [*seconds, *nanos, 3, 1292] {
                file.extend(field.to_ne_bytes());
            }
            file.extend([0xaa; 3]);
        }
        file
    }

    #[test]
    fn stamps_are_read_over_the_second() {
        let file = pcap(0xa1b2_3c4d, &[(7, 999_999_000), (8, 500)]);
        assert_eq!(read_stamps(&file[..]).unwrap(), [7_999_999_000, 8_000_000_500]);
    }

    #[test]
    fn microsecond_file_is_refused() {
        assert!(read_stamps(&pcap(0xa1b2_c3d4, &[])[..]).is_err());
    }

    #[test]
    fn gaps_are_summed_up_as_the_textbook_says() {
        let gaps = Gaps::of_stamps(&[0, 10, 20, 40, 50]);
        assert_eq!(gaps.count(), 4);
        assert!((gaps.mean() - 12.5).abs() < 1e-9);
        assert!((gaps.standard_deviation() - 5.0).abs() < 1e-9);
        assert!((gaps.quantile(0.5) - 10.0).abs() < 1e-9);
        assert!((gaps.quantile(0.99) - 20.0).abs() < 1e-9);
        assert!((gaps.share_within(10.0, 0.1) - 0.75).abs() < 1e-9);
    }
}
