//! Which transfers a matrix consists of.

use std::collections::BTreeMap;
use std::fmt;

use netaware_record::MatrixProtocol;
use netaware_units::{ByteCount, Span};
use netaware_wire::control::MAX_TCP_LENGTH;
use netaware_wire::datagram::{HEADER_LEN, MAX_PAYLOAD};

use crate::request::Target;

/// Short transfers.
#[derive(Debug, Clone)]
pub struct MatrixRequest {
    /// To whom.
    pub target: Target,
    /// In the order run; none twice.
    pub protocols: Vec<MatrixProtocol>,
    /// Totals and blocks.
    pub pairs: Pairs,
    /// How often each cell is run over each version.
    pub runs: u16,
    /// A transfer that takes longer is ended.
    pub patience: Span,
}

/// A total and the size of the blocks it is handed over in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// In all.
    pub bytes: ByteCount,
    /// At once.
    pub block: ByteCount,
}

/// Which pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairs {
    /// The 17 of [`Pairs::TABLE`]; for UDP the last has blocks of 50,000 bytes.
    Table,
    /// Every total in every block size that is not larger than it.
    Each {
        /// Totals.
        bytes: Vec<ByteCount>,
        /// Block sizes.
        blocks: Vec<ByteCount>,
    },
}

impl Pairs {
    /// Totals and block sizes that show where small writes stop to cost: Tan, "A Network
    /// Measurement Tool for Handheld Devices", Table 2. `k` is 1000 there.
    pub const TABLE: [(u64, &'static [u64]); 3] = [
        (1_000, &[50, 100, 500, 1_000]),
        (10_000, &[50, 100, 500, 1_000, 5_000, 10_000]),
        (100_000, &[50, 100, 500, 1_000, 5_000, 10_000, 100_000]),
    ];

    /// Smallest total first, smallest block first.
    fn of(&self, protocol: MatrixProtocol) -> Vec<Pair> {
        let mut pairs: Vec<Pair> = match self {
            Self::Table => Self::TABLE
                .iter()
                .flat_map(|(bytes, blocks)| blocks.iter().map(|block| Pair::new(*bytes, *block)))
                .map(|pair| if protocol == MatrixProtocol::Udp { pair.as_in_the_table() } else { pair })
                .collect(),
            Self::Each { bytes, blocks } => bytes
                .iter()
                .flat_map(|bytes| blocks.iter().map(|block| Pair::new(bytes.0, block.0)))
                .filter(|pair| pair.block <= pair.bytes)
                .collect(),
        };
        for pair in &mut pairs {
            pair.block = fitted(protocol, pair.block);
        }
        pairs.sort_unstable_by_key(|pair| (pair.bytes, pair.block));
        pairs.dedup();
        pairs
    }
}

impl Pair {
    fn new(bytes: u64, block: u64) -> Self {
        Self { bytes: ByteCount(bytes), block: ByteCount(block) }
    }

    fn as_in_the_table(self) -> Self {
        if self.block.0 > MAX_PAYLOAD as u64 { Self { block: ByteCount(50_000), ..self } } else { self }
    }
}

/// What one datagram carries, or one write takes.
fn fitted(protocol: MatrixProtocol, block: ByteCount) -> ByteCount {
    let (least, most) = match protocol {
        MatrixProtocol::Udp => (HEADER_LEN as u64, MAX_PAYLOAD as u64),
        MatrixProtocol::Tcp | MatrixProtocol::TcpNodelay => (1, u64::from(MAX_TCP_LENGTH)),
    };
    ByteCount(block.0.clamp(least, most))
}

/// One cell of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) protocol: MatrixProtocol,
    pub(super) pair: Pair,
}

impl Step {
    /// Whole blocks: the last one is filled up.
    pub(super) fn datagrams(&self) -> u64 {
        self.pair.bytes.0.div_ceil(self.pair.block.0.max(1))
    }

    /// What the responder counts of it: datagrams are all of one length.
    pub(super) fn payload(&self) -> ByteCount {
        match self.protocol {
            MatrixProtocol::Udp => ByteCount(self.datagrams().saturating_mul(self.pair.block.0)),
            MatrixProtocol::Tcp | MatrixProtocol::TcpNodelay => self.pair.bytes,
        }
    }

    /// With the headers of its packets.
    pub(super) fn on_the_wire(&self) -> ByteCount {
        let in_a_packet = match self.protocol {
            MatrixProtocol::Tcp => IN_A_PACKET,
            MatrixProtocol::TcpNodelay | MatrixProtocol::Udp => self.pair.block.0.clamp(1, IN_A_PACKET),
        };
        ByteCount(self.pair.bytes.0.saturating_add(self.pair.bytes.0.div_ceil(in_a_packet) * HEADERS))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, pair } = self;
        write!(f, "{}, {} B in blocks of {} B", protocol.name(), pair.bytes.0, pair.block.0)
    }
}

/// What a packet of the usual size carries.
const IN_A_PACKET: u64 = 1400;
/// Of IPv6 and UDP; those of TCP are 24 B longer and fewer where it matters.
const HEADERS: u64 = 48;

impl MatrixRequest {
    /// All protocols, the 17 pairs, three runs.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            protocols: MatrixProtocol::ALL.to_vec(),
            pairs: Pairs::Table,
            runs: 3,
            patience: Span::from_secs(10),
        }
    }

    /// Transfers over each version.
    pub fn transfers(&self) -> u64 {
        self.steps().len() as u64 * u64::from(self.runs)
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        let of = |protocol: &MatrixProtocol| {
            let protocol = *protocol;
            self.pairs.of(protocol).into_iter().map(move |pair| Step { protocol, pair })
        };
        self.protocols.iter().flat_map(of).collect()
    }

    /// Where the plan differs from what was asked.
    pub(super) fn remarks(&self) -> Vec<String> {
        let Pairs::Each { blocks, .. } = &self.pairs else { return Vec::new() };
        let changed = |protocol: &MatrixProtocol| {
            let changes = blocks.iter().filter_map(|block| {
                let fitted = fitted(*protocol, *block);
                (fitted != *block).then(|| format!("{} B became {} B", block.0, fitted.0))
            });
            let changes: Vec<String> = changes.collect();
            (!changes.is_empty()).then(|| format!("blocks of {}: {}", protocol.name(), changes.join(", ")))
        };
        self.protocols.iter().filter_map(changed).collect()
    }

    pub(super) fn options(&self) -> BTreeMap<String, String> {
        let list = |values: &[ByteCount]| {
            values.iter().map(|value| format!("{} B", value.0)).collect::<Vec<_>>().join(", ")
        };
        let words: Vec<&str> = self.protocols.iter().map(|protocol| protocol.word()).collect();
        let mut options = BTreeMap::from([
            ("protocols".to_owned(), words.join(", ")),
            ("runs".to_owned(), self.runs.to_string()),
            ("patience".to_owned(), self.patience.to_string()),
        ]);
        if let Pairs::Each { bytes, blocks } = &self.pairs {
            options.insert("bytes".to_owned(), list(bytes));
            options.insert("blocks".to_owned(), list(blocks));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(pairs: Pairs) -> MatrixRequest {
        MatrixRequest { pairs, ..MatrixRequest::new(Target::new("h")) }
    }

    fn sizes(of: &[u64]) -> Vec<ByteCount> {
        of.iter().copied().map(ByteCount).collect()
    }

    #[test]
    fn the_table_has_17_pairs_for_each_protocol() {
        let steps = request(Pairs::Table).steps();
        assert_eq!(steps.len(), 51);
        for protocol in MatrixProtocol::ALL {
            let pairs: Vec<Pair> = steps.iter().filter(|s| s.protocol == protocol).map(|s| s.pair).collect();
            assert_eq!(pairs.len(), 17, "{protocol:?}");
            let last = if protocol == MatrixProtocol::Udp { 50_000 } else { 100_000 };
            assert_eq!((pairs[0], pairs[16]), (Pair::new(1_000, 50), Pair::new(100_000, last)));
        }
        assert_eq!(request(Pairs::Table).transfers(), 153);
    }

    #[test]
    fn blocks_are_fitted_to_the_protocol_and_said_so() {
        let asked = request(Pairs::Each {
            bytes: sizes(&[200_000, 1_000]),
            blocks: sizes(&[10, 70_000, 100_000, 500]),
        });
        let of = |protocol| asked.pairs.of(protocol);
        let udp =
            [Pair::new(1_000, 24), Pair::new(1_000, 500), Pair::new(200_000, 24), Pair::new(200_000, 500)];
        assert_eq!(of(MatrixProtocol::Udp)[..4], udp);
        assert_eq!(of(MatrixProtocol::Udp)[4..], [Pair::new(200_000, 65_507)]);
        assert_eq!(of(MatrixProtocol::Tcp).len(), 6);
        assert_eq!(
            asked.remarks(),
            ["blocks of UDP: 10 B became 24 B, 70000 B became 65507 B, 100000 B became 65507 B"]
        );
        assert!(request(Pairs::Table).remarks().is_empty());
    }

    #[test]
    fn a_block_larger_than_the_total_is_no_cell() {
        let asked = request(Pairs::Each { bytes: sizes(&[100]), blocks: sizes(&[50, 100, 101]) });
        assert_eq!(asked.pairs.of(MatrixProtocol::Tcp), [Pair::new(100, 50), Pair::new(100, 100)]);
    }

    #[test]
    fn the_last_datagram_is_filled_up() {
        let step = |bytes, block| Step { protocol: MatrixProtocol::Udp, pair: Pair::new(bytes, block) };
        assert_eq!([step(1000, 50), step(1000, 300), step(24, 24)].map(|s| s.datagrams()), [20, 4, 1]);
    }
}
