//! TCP, UDP and ICMP headers of a captured packet.

/// A TCP header (RFC 9293 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgment number; without meaning unless [`Tcp::ACK`] is set.
    pub acknowledgment: u32,
    /// Control bits, FIN the lowest.
    pub flags: u8,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Bytes of the header, 20..=60.
    pub header_length: u8,
    /// Options, as far as captured.
    pub options: &'a [u8],
    /// What it carries, as far as captured.
    pub payload: &'a [u8],
    /// Bytes that it carries on the wire. In the first fragment of a packet: those in that
    /// fragment.
    pub payload_length: u32,
}

impl<'a> Tcp<'a> {
    /// No more from the sender.
    pub const FIN: u8 = 0x01;
    /// Sequence numbers begin here.
    pub const SYN: u8 = 0x02;
    /// Torn down.
    pub const RST: u8 = 0x04;
    /// Hand it over now.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number counts.
    pub const ACK: u8 = 0x10;

    /// `None` where the fixed header was cut off or states a length that cannot be.
    #[inline]
    pub(super) fn read(rest: &'a [u8], length: u32) -> Option<Self> {
        let head: &[u8; 20] = rest.first_chunk()?;
        let header = u32::from(head[12] >> 4) * 4;
        if header < 20 || header > length {
            return None;
        }
        let end = rest.len().min(header as usize);
        Some(Self {
            source: u16::from_be_bytes([head[0], head[1]]),
            destination: u16::from_be_bytes([head[2], head[3]]),
            sequence: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            acknowledgment: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
            flags: head[13],
            window: u16::from_be_bytes([head[14], head[15]]),
            header_length: header as u8,
            options: &rest[20..end],
            payload: rest.get(header as usize..).unwrap_or_default(),
            payload_length: length - header,
        })
    }

    /// Value and echo of the timestamps option (RFC 7323 §3.2); `None` without one, where it was
    /// cut off, and where options before it make no sense.
    #[inline]
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        // What nearly all senders write (RFC 7323 appendix A).
        if let Some([1, 1, 8, 10, stamps @ ..]) = self.options.first_chunk::<12>() {
            return Some(pair(*stamps));
        }
        let mut options = self.options;
        loop {
            match options {
                [] | [0, ..] => return None,
                [1, rest @ ..] => options = rest,
                [8, 10, rest @ ..] => return rest.first_chunk::<8>().map(|stamps| pair(*stamps)),
                [_, length, ..] if *length >= 2 => options = options.get(usize::from(*length)..)?,
                _ => return None,
            }
        }
    }
}

fn pair(bytes: [u8; 8]) -> (u32, u32) {
    let both = u64::from_be_bytes(bytes);
    ((both >> 32) as u32, both as u32)
}

/// A UDP header (RFC 768).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp<'a> {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Header and payload as the header says, bytes. Packets that offloads merged state that of all
    /// together, or of one.
    pub length: u16,
    /// As on the wire, or what was there before the card filled it in: not to be compared between
    /// two points.
    pub checksum: u16,
    /// What it carries, as far as captured.
    pub payload: &'a [u8],
}

impl<'a> Udp<'a> {
    #[inline]
    pub(super) fn read(rest: &'a [u8]) -> Option<Self> {
        let head: &[u8; 8] = rest.first_chunk()?;
        Some(Self {
            source: u16::from_be_bytes([head[0], head[1]]),
            destination: u16::from_be_bytes([head[2], head[3]]),
            length: u16::from_be_bytes([head[4], head[5]]),
            checksum: u16::from_be_bytes([head[6], head[7]]),
            payload: &rest[8..],
        })
    }
}

/// The first bytes of an ICMP or ICMPv6 message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmp<'a> {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// The message from its type on, as far as captured.
    pub message: &'a [u8],
}

impl<'a> Icmp<'a> {
    pub(super) fn read(rest: &'a [u8]) -> Option<Self> {
        let [kind, code, ..] = *rest.first_chunk::<4>()?;
        Some(Self { kind, code, message: rest })
    }

    /// Identifier and sequence number of an echo request or reply of either version.
    pub fn echo(&self) -> Option<(u16, u16)> {
        if !matches!(self.kind, 0 | 8 | 128 | 129) {
            return None;
        }
        let [a, b, c, d] = *self.message.get(4..)?.first_chunk()?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }
}
