//! Short transfers by protocol, total and block size.

use netaware_units::{BitRate, ByteCount, Span};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unknown::zero_is_unknown;
use crate::{Direction, Interval, Outcome, Pedigree};

/// How the blocks of a matrix travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MatrixProtocol {
    /// A TCP connection of its own for each transfer; TCP may join small blocks (RFC 896).
    Tcp,
    /// The same with `TCP_NODELAY`: no block waits for the acknowledgement of the one before.
    TcpNodelay,
    /// One datagram per block.
    Udp,
}

impl MatrixProtocol {
    /// All of them, in the order run and shown.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::TcpNodelay, Self::Udp];

    /// The words shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::TcpNodelay => "TCP_NODELAY",
            Self::Udp => "UDP",
        }
    }

    /// As it is typed on a command line and written in tables for programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::TcpNodelay => "tcp-nodelay",
            Self::Udp => "udp",
        }
    }
}

/// One protocol over one IP version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MatrixResult {
    /// Where the figures come from.
    pub pedigree: Pedigree,
    /// Which protocol.
    pub protocol: MatrixProtocol,
    /// In the order of the plan. Cells that were never run are left out.
    pub cells: Vec<MatrixCell>,
}

impl MatrixResult {
    /// Throughput at the server of the largest total, in the blocks in which it came fastest; the
    /// figure that stands for the whole. Absent where no run took the server any time.
    pub fn best(&self) -> Option<&Interval> {
        let largest = self.cells.iter().map(|cell| cell.bytes).max()?;
        let of_largest = self.cells.iter().filter(|cell| cell.bytes == largest);
        let rates = of_largest.filter_map(|cell| cell.server_throughput.as_ref());
        rates.max_by(|a, b| a.estimate.total_cmp(&b.estimate))
    }

    /// Share of the bytes sent that never came, all runs together, of those whose fate is known;
    /// absent when there are none.
    pub fn lost(&self) -> Option<f64> {
        let runs = || self.cells.iter().flat_map(|cell| &cell.runs);
        let sent: ByteCount = runs().filter_map(|run| run.settled(self.pedigree.direction)).sum();
        let lost: ByteCount = runs().map(|run| run.lost).sum();
        (sent > ByteCount(0)).then(|| lost.0 as f64 / sent.0 as f64)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_nothing(bytes: &ByteCount) -> bool {
    bytes.0 == 0
}

/// One total in one block size, all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MatrixCell {
    /// Total asked for.
    pub bytes: ByteCount,
    /// Bytes handed over at once, after the caps of the protocol.
    pub block: ByteCount,
    /// The client's time over the runs, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_time: Option<Interval>,
    /// The client's throughput over the runs, bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_throughput: Option<Interval>,
    /// The server's time over the runs, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_time: Option<Interval>,
    /// The server's throughput over the runs, bit/s. These four are medians; the bounds are the
    /// smallest and the largest run, between which the true median lies with a probability of `1 -
    /// 2^(1 - runs)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_throughput: Option<Interval>,
    /// Each run, in the order made.
    pub runs: Vec<MatrixRun>,
}

/// One transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MatrixRun {
    /// Round of the plan, from zero.
    pub round: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// The end that asked: it sends where the pedigree's direction is forward, and receives where
    /// it is reverse. Absent when the transfer did not even begin.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "zero_is_unknown")]
    pub client: Option<MatrixEnd>,
    /// The other end; absent when it never reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<MatrixEnd>,
    /// Sent and not received, of what the receiving end observed to its end; zero for TCP, which
    /// sends again what the path loses.
    pub lost: ByteCount,
    /// Of these: dropped inside the receiving host, by its own counters; absent where nobody read
    /// them, and for TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_in_host: Option<ByteCount>,
    /// Given to TCP and not delivered when the transfer ended.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub undelivered: ByteCount,
    /// Sent, and nobody could observe whether it arrived: the receiving end never reported, or its
    /// reports ended before the transfer did.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub unknown: ByteCount,
    /// Segments sent again, for TCP; absent where nobody told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
}

impl MatrixRun {
    /// Bytes sent of which it is known whether they came, in a matrix of this direction; absent
    /// where the sending end never reported.
    pub fn settled(&self, direction: Direction) -> Option<ByteCount> {
        let sender = if direction == Direction::Reverse { self.server } else { self.client };
        sender.map(|end| end.bytes - self.unknown - self.undelivered)
    }
}

/// What one end of a transfer counted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct MatrixEnd {
    /// Payload written, or read without duplicates.
    pub bytes: ByteCount,
    /// System calls that moved them: writes or reads; absent where nobody counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Sender: from the first write until the receiver had confirmed all of it (TCP) or the last
    /// write returned (UDP). Receiver: from the first byte to the last. Absent when no time passed
    /// between the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Span>,
    /// Sender: payload over its time. Receiver: payload that came after the first read over its
    /// time, since the first read's own time is not in it. Absent when everything came at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<BitRate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_matrix_in_reverse_it_is_the_other_end_that_sent() {
        let end = |bytes| Some(MatrixEnd { bytes: ByteCount(bytes), ..MatrixEnd::default() });
        let run = MatrixRun {
            round: 0,
            outcome: Outcome::Complete,
            client: end(9_000),
            server: end(10_000),
            lost: ByteCount(900),
            lost_in_host: None,
            undelivered: ByteCount(0),
            unknown: ByteCount(100),
            retransmits: None,
        };
        assert_eq!(run.settled(Direction::Reverse), Some(ByteCount(9_900)));
        assert_eq!(run.settled(Direction::Forward), Some(ByteCount(8_900)));
        assert_eq!(MatrixRun { server: None, ..run }.settled(Direction::Reverse), None);
    }
}
