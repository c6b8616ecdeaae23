//! What really happened to every packet, as the lab wrote it down.

use std::path::Path;

use netaware_record::IpVersion;
use serde_json::Value;

/// Packets of one IP version, or those of them with so many bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) version: IpVersion,
    pub(crate) length: Option<u64>,
}

/// What became of a flow's packets; delays in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum {
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Every packet of a lab.
pub(crate) struct Truth(Vec<Value>);

impl Truth {
    pub(crate) fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        Self(lines.filter(|line| line["type"] == "packet").collect())
    }

    /// Packets of a flow that a host sent.
    pub(crate) fn of(&self, from: &str, flow: Flow) -> Sum {
        let is_it = |packet: &&Value| {
            packet["from"] == from
                && packet["version"] == flow.version.name()
                && flow.length.is_none_or(|length| packet["length"] == length)
        };
        let packets: Vec<&Value> = self.0.iter().filter(is_it).collect();
        let delivered = packets.iter().filter(|packet| packet["fate"] == "delivered");
        let delays: Vec<f64> = delivered
            .map(|packet| packet["delay"].as_f64().unwrap() + packet["late"].as_f64().unwrap())
            .collect();
        Sum {
            sent: packets.len() as u64,
            delivered: delays.len() as u64,
            mean: delays.iter().sum::<f64>() / delays.len() as f64,
            min: delays.iter().copied().fold(f64::INFINITY, f64::min),
            max: delays.iter().copied().fold(0.0, f64::max),
        }
    }
}
