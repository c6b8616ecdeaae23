//! What really happened to every packet, read back from what a lab wrote down
//! ([`TruthDetail::Packets`](crate::TruthDetail)).

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use netaware_netmodel::Side;
use netaware_record::IpVersion;
use serde::Deserialize;

/// Every packet of a lab, as its file has them.
#[derive(Debug)]
pub struct RecordedPackets {
    packets: Vec<RecordedPacket>,
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RecordedPacket {
    /// The host that sent it; `None` if its source is no host of the lab.
    #[serde(default)]
    pub from: Option<Side>,
    /// IP version; `None` for what is no IP packet.
    #[serde(default)]
    pub version: Option<IpVersion>,
    /// Bytes, IP header included.
    #[serde(default)]
    pub length: Option<u32>,
    /// `delivered`, or where it was lost.
    fate: String,
    /// A further copy of one that has a line of its own.
    #[serde(default)]
    duplicate: bool,
    /// On the path, ns.
    #[serde(default)]
    delay: Option<f64>,
    /// By how much the emulator handed it over too late, ns.
    late: f64,
    /// How long it lay in its host's device before the emulator took it, ns; `None` where that is
    /// not known.
    #[serde(default)]
    waited: Option<f64>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Packet(RecordedPacket),
    Report(Report),
    #[serde(other)]
    Another,
}

/// Of [`crate::Report`] what says whether the file is whole, and how good it is.
#[derive(Deserialize)]
struct Report {
    truth_missing: u64,
    own_drops: OwnDrops,
}

#[derive(Deserialize)]
struct OwnDrops {
    /// These count as delivered.
    write_refused: u64,
}

/// Some of them, summed up; delays in ns, from the instant at which a packet was given to its
/// host's device to the one at which it was handed to the other host.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RecordedSum {
    /// Packets that entered the path.
    pub sent: u64,
    /// Packets that left it.
    pub delivered: u64,
    /// Mean of the delays of those; NaN if there are none.
    pub mean: f64,
    /// The smallest; infinite if there is none.
    pub min: f64,
    /// The largest; 0 if there is none.
    pub max: f64,
    /// Of those delays the part in the host's device, in the mean; NaN if there are none.
    pub waited_mean: f64,
    /// And the longest.
    pub waited_max: f64,
    /// Delivered ones of which that part is not known; their delays are without it.
    pub unstamped: u64,
}

impl RecordedPackets {
    /// Reads the file of a lab that has ended.
    ///
    /// # Errors
    /// It cannot be read, is not such a file, or does not tell of every packet.
    pub fn read(file: &Path) -> io::Result<Self> {
        let (mut packets, mut end) = (Vec::new(), None);
        for line in BufReader::new(std::fs::File::open(file)?).lines() {
            match serde_json::from_str(&line?).map_err(io::Error::other)? {
                Line::Packet(packet) => packets.push(packet),
                Line::Report(report) => end = Some(report),
                Line::Another => {}
            }
        }
        let lacking = match end {
            None => "its last line".to_owned(),
            Some(Report { truth_missing: 0, own_drops: OwnDrops { write_refused: 0 } }) => {
                return Ok(Self { packets });
            }
            Some(Report { truth_missing: 0, own_drops }) => {
                format!("{} packets that a host did not take", own_drops.write_refused)
            }
            Some(Report { truth_missing, .. }) => {
                format!("{truth_missing} lines that the disk was too slow for")
            }
        };
        Err(io::Error::other(format!("the truth in {} lacks {lacking}", file.display())))
    }

    /// Sums up what became of the packets that are asked for; copies that the path made are none.
    pub fn sum(&self, is_it: impl Fn(&RecordedPacket) -> bool) -> RecordedSum {
        let mut sum = RecordedSum { min: f64::INFINITY, ..RecordedSum::default() };
        for packet in self.packets.iter().filter(|packet| !packet.duplicate && is_it(packet)) {
            sum.sent += 1;
            if let Some(delay) = packet.delay.filter(|_| packet.fate == "delivered") {
                let waited = packet.waited.unwrap_or_default();
                let delay = waited + delay + packet.late;
                sum.delivered += 1;
                sum.mean += delay;
                sum.min = sum.min.min(delay);
                sum.max = sum.max.max(delay);
                sum.waited_mean += waited;
                sum.waited_max = sum.waited_max.max(waited);
                sum.unstamped += u64::from(packet.waited.is_none());
            }
        }
        sum.mean /= sum.delivered as f64;
        sum.waited_mean /= sum.delivered as f64;
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"type":"lab","version":1}
{"type":"packet","from":"a","version":"IPv6","length":100,"fate":"delivered","delay":1000,"late":50,"waited":300}
{"type":"packet","from":"a","version":"IPv6","length":100,"fate":"delivered","delay":3000,"late":0}
{"type":"packet","from":"a","version":"IPv6","length":100,"fate":"delivered","duplicate":true,"delay":5000,"late":0}
{"type":"packet","from":"a","version":"IPv6","length":100,"fate":"queue_full","hop":1,"late":0}
{"type":"packet","from":"b","version":"IPv4","length":60,"fate":"delivered","delay":9000,"late":0}
{"type":"report","truth_missing":0,"own_drops":{"write_refused":0}}
"#;

    #[test]
    fn packets_of_one_side_are_summed_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("truth");
        std::fs::write(&file, FILE).unwrap();
        let packets = RecordedPackets::read(&file).unwrap();
        let sum = packets.sum(|packet| packet.from == Some(Side::A));
        assert_eq!((sum.sent, sum.delivered, sum.unstamped), (3, 2, 1));
        assert_eq!((sum.mean, sum.min, sum.max), (2175.0, 1350.0, 3000.0));
        assert_eq!((sum.waited_mean, sum.waited_max), (150.0, 300.0));
    }

    #[test]
    fn a_truth_that_lacks_packets_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("truth");
        let refusal = |text: &str| {
            std::fs::write(&file, text).unwrap();
            RecordedPackets::read(&file).unwrap_err().to_string()
        };
        assert!(
            refusal(&FILE.replace("\"truth_missing\":0", "\"truth_missing\":7")).contains("lacks 7 lines")
        );
        assert!(
            refusal(&FILE.replace("\"write_refused\":0", "\"write_refused\":3")).contains("lacks 3 packets")
        );
        let cut = FILE.lines().filter(|line| !line.contains("report")).collect::<Vec<_>>().join("\n");
        assert!(refusal(&cut).contains("lacks its last line"));
    }

    #[test]
    fn another_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("truth");
        std::fs::write(&file, "no JSON\n").unwrap();
        assert!(RecordedPackets::read(&file).is_err());
    }
}
