//! Filters in tcpdump's language (pcap-filter(7)), compiled by libpcap into instructions that the
//! kernel runs on each packet.
//!
//! libpcap is loaded when the first filter is compiled, so nothing needs it to be built or to run
//! without filters. Names in a filter are looked up by libpcap, which may wait for a name server.

mod libpcap;

use netaware_wire::packet::LinkType;

/// One instruction of the classic Berkeley packet filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfInstruction {
    /// What it does.
    pub code: u16,
    /// Instructions to pass over if true.
    pub jump_true: u8,
    /// If false.
    pub jump_false: u8,
    /// Its operand.
    pub operand: u32,
}

impl From<BpfInstruction> for (u16, u8, u8, u32) {
    fn from(one: BpfInstruction) -> Self {
        (one.code, one.jump_true, one.jump_false, one.operand)
    }
}

impl BpfInstruction {
    pub(crate) fn to_kernel(self) -> libc::sock_filter {
        libc::sock_filter { code: self.code, jt: self.jump_true, jf: self.jump_false, k: self.operand }
    }

    const fn new(code: u16, jump_true: u8, jump_false: u8, operand: u32) -> Self {
        Self { code, jump_true, jump_false, operand }
    }
}

/// Why a filter cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// libpcap is not there, or lacks what is needed.
    #[error(
        "the filter needs libpcap, which cannot be loaded ({0}); on Debian install the package libpcap0.8"
    )]
    NoLibrary(String),
    /// libpcap does not understand it.
    #[error("the filter '{filter}' is wrong: {reason}")]
    Syntax {
        /// What was given.
        filter: String,
        /// What libpcap says.
        reason: String,
    },
    /// Longer than 4096 bytes, or with a zero byte.
    #[error("the filter is longer than 4096 bytes or has a zero byte in it")]
    Text,
    /// libpcap made a program of it that the packet filter's own rules forbid.
    #[error("the filter becomes a program that cannot be run: {0}")]
    Program(String),
    /// More instructions than the kernel takes.
    #[error("the filter becomes {0} instructions; the kernel takes 4096 at most")]
    TooLong(usize),
}

/// Compiles a filter for frames of this kind; the empty one takes everything. A packet that passes
/// returns [`WHOLE`], one that does not 0.
///
/// # Errors
/// Why it cannot be used.
pub fn compile(text: &str, link: LinkType) -> Result<Vec<BpfInstruction>, FilterError> {
    if text.len() > LONGEST_TEXT || text.contains('\0') {
        return Err(FilterError::Text);
    }
    if text.trim().is_empty() {
        return Ok(vec![take(WHOLE)]);
    }
    let program = libpcap::compile(text, link)?;
    if program.len() + PREFIX > MOST_INSTRUCTIONS {
        return Err(FilterError::TooLong(program.len()));
    }
    Ok(program)
}

/// Whether a filter asks for VLAN tags. The kernel has taken the tag out of a frame before it runs
/// filters, so such a filter is run behind the ring, on the frame with its tag.
pub fn asks_for_tags(text: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == "vlan")
}

/// `program` with what passes cut to `snap` bytes.
pub(crate) fn with_snap(program: &[BpfInstruction], snap: u32) -> Vec<BpfInstruction> {
    let cut = |one: &BpfInstruction| match (one.code, one.operand) {
        (RETURN, 1..) => take(snap),
        _ => *one,
    };
    program.iter().map(cut).collect()
}

/// `program` for packets that the interface sent only.
pub(crate) fn sent_only(program: &[BpfInstruction]) -> Vec<BpfInstruction> {
    let mut prefixed = vec![
        BpfInstruction::new(LOAD_BYTE, 0, 0, PACKET_TYPE),
        BpfInstruction::new(JUMP_EQUAL, 1, 0, libc::PACKET_OUTGOING as u32),
        take(0),
    ];
    prefixed.extend(program);
    prefixed
}

/// Takes nothing.
pub(crate) fn nothing() -> Vec<BpfInstruction> {
    vec![take(0)]
}

const fn take(bytes: u32) -> BpfInstruction {
    BpfInstruction::new(RETURN, 0, 0, bytes)
}

/// What a program returns for a packet that passes: more bytes than any has.
pub const WHOLE: u32 = 262_144;
const LONGEST_TEXT: usize = 4096;
/// `BPF_MAXINSNS`.
const MOST_INSTRUCTIONS: usize = 4096;
/// Instructions that [`sent_only`] adds.
const PREFIX: usize = 3;
/// `BPF_RET | BPF_K`, `BPF_LD | BPF_B | BPF_ABS`, `BPF_JMP | BPF_JEQ | BPF_K`.
const RETURN: u16 = 0x06;
const LOAD_BYTE: u16 = 0x30;
const JUMP_EQUAL: u16 = 0x15;
/// `SKF_AD_OFF + SKF_AD_PKTTYPE`.
const PACKET_TYPE: u32 = (-0x1000_i32 + 4) as u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcpdumps_language_becomes_instructions() {
        let program = compile("udp port 53", LinkType::Ethernet).unwrap();
        assert!(program.len() > 5, "{program:?}");
        assert_eq!(program[0], BpfInstruction::new(0x28, 0, 0, 12), "the EtherType comes first");
        let returns: Vec<u32> =
            program.iter().filter(|one| one.code == RETURN).map(|one| one.operand).collect();
        assert!(returns.contains(&0) && returns.contains(&WHOLE), "{returns:?}");
        let raw = compile("udp port 53", LinkType::Raw).unwrap();
        assert_eq!(raw[0], BpfInstruction::new(0x30, 0, 0, 0), "the version comes first");
        assert_eq!(compile("  ", LinkType::Raw), Ok(vec![take(WHOLE)]));
    }

    #[test]
    fn wrong_filters_are_refused_with_libpcaps_words() {
        let error = compile("udp prt 53", LinkType::Ethernet).unwrap_err();
        assert!(matches!(&error, FilterError::Syntax { filter, .. } if filter == "udp prt 53"), "{error}");
        assert!(error.to_string().contains("syntax error"), "{error}");
        assert_eq!(compile("udp\0", LinkType::Ethernet), Err(FilterError::Text));
        assert_eq!(compile(&"a".repeat(4097), LinkType::Ethernet), Err(FilterError::Text));
        let many = (1..=1200).map(|port| format!("port {port}")).collect::<Vec<_>>().join(" or ");
        assert!(matches!(compile(&many, LinkType::Ethernet), Err(FilterError::Text)));
    }

    #[test]
    fn what_passes_is_cut_and_what_does_not_stays_refused() {
        let program = [take(WHOLE), take(0), BpfInstruction::new(0x28, 0, 0, 12)];
        let cut = with_snap(&program, 96);
        assert_eq!(cut, [take(96), take(0), program[2]]);
        let sent = sent_only(&cut);
        assert_eq!((sent.len(), sent[2], sent[3]), (6, take(0), take(96)));
    }

    #[test]
    fn only_the_word_vlan_asks_for_tags() {
        let rows =
            [("vlan 5 and udp", true), ("udp and (vlan)", true), ("host vlans.example", false), ("", false)];
        for (text, want) in rows {
            assert_eq!(asks_for_tags(text), want, "{text}");
        }
    }
}
