//! Does a filter of tcpdump's language match, without the kernel?
//!
//! libpcap compiles the language to programs of the classic BPF machine (McCanne and Jacobson, "The
//! BSD packet filter", USENIX 1993). The kernel runs them on what it captures; this runs them on
//! what comes from files, and beside a capture that several tasks with filters of their own share.
//!
//! A program is checked before it runs: every jump goes forward and lands inside, so that each ends
//! after at most as many steps as it has instructions; nothing divides by a constant zero or
//! touches memory that there is not. A load beyond the captured bytes ends the program without a
//! match, as in the kernel.
//!
//! Where we differ from the kernel: VLAN tags stay in the frame here (as libpcap puts them back),
//! so the ancillary loads for stripped tags say that there is none, and programs compiled for
//! either place of the tag match the same frames. Shifts by 32 and more yield 0, as in libpcap.

mod machine;
mod ops;

use thiserror::Error;

use ops::Op;

/// A checked program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Vec<Op>);

/// Instructions that a program has at most; the kernel's limit.
pub const MOST_INSTRUCTIONS: usize = 4096;

impl Program {
    /// From instructions as `struct sock_filter` has them: code, jump if true, jump if false,
    /// constant.
    pub fn new(instructions: Vec<(u16, u8, u8, u32)>) -> Result<Self, ProgramError> {
        if instructions.is_empty() || instructions.len() > MOST_INSTRUCTIONS {
            return Err(ProgramError::Length(instructions.len()));
        }
        let count = instructions.len();
        let mut ops = Vec::with_capacity(count);
        for (at, (code, if_true, if_false, k)) in instructions.into_iter().enumerate() {
            let op = Op::decode(code, if_true, if_false, k).map_err(|fault| fault.at(at))?;
            if op.furthest().is_some_and(|furthest| at + 1 + furthest >= count) {
                return Err(ProgramError::JumpsOut { at });
            }
            ops.push(op);
        }
        match ops.last() {
            Some(Op::ReturnK(_) | Op::ReturnA) => Ok(Self(ops)),
            _ => Err(ProgramError::DoesNotEnd),
        }
    }

    /// Whether the frame is let through. `frame` is what was captured from the link layer on,
    /// `wire_length` how long it was.
    #[inline]
    pub fn matches(&self, frame: &[u8], wire_length: u32) -> bool {
        self.run(frame, wire_length) != 0
    }

    /// What the program returns: how many bytes of the frame to keep, 0: none.
    pub fn run(&self, frame: &[u8], wire_length: u32) -> u32 {
        machine::run(&self.0, frame, wire_length)
    }
}

/// Why a program is not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// Empty or too long.
    #[error("a filter program has 1 to {MOST_INSTRUCTIONS} instructions, this has {0}")]
    Length(usize),
    /// Not an instruction of this machine, or one that is of no use here.
    #[error("instruction {at} of the filter program has the unknown code {code:#06x}")]
    UnknownCode {
        /// Which.
        at: usize,
        /// Its code.
        code: u16,
    },
    /// A load of something that is not in a frame (mark, CPU, random number).
    #[error("instruction {at} of the filter program asks for something that is not in the frame ({k:#010x})")]
    NotInFrame {
        /// Which.
        at: usize,
        /// Its constant.
        k: u32,
    },
    /// A jump beyond the end.
    #[error("instruction {at} of the filter program jumps out of it")]
    JumpsOut {
        /// Which.
        at: usize,
    },
    /// Division by zero, a shift of 32 or more, or memory beyond 16 words.
    #[error("instruction {at} of the filter program has the impossible constant {k}")]
    BadConstant {
        /// Which.
        at: usize,
        /// Its constant.
        k: u32,
    },
    /// The last instruction returns nothing.
    #[error("the filter program does not end with a return")]
    DoesNotEnd,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `tcpdump -dd -y EN10MB 'ip6 and udp port 53'` prints.
    const DNS6: [(u16, u8, u8, u32); 9] = [
        (0x28, 0, 0, 0x0c),
        (0x15, 0, 6, 0x86dd),
        (0x30, 0, 0, 0x14),
        (0x15, 0, 4, 0x11),
        (0x28, 0, 0, 0x36),
        (0x15, 3, 0, 0x35),
        (0x28, 0, 0, 0x38),
        (0x15, 1, 0, 0x35),
        (0x06, 0, 0, 0),
    ];

    fn dns6() -> Program {
        let mut code = DNS6.to_vec();
        code.push((0x06, 0, 0, 0x40000));
        Program::new(code).unwrap()
    }

    fn frame(ethertype: u16, protocol: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut frame = vec![0; 62];
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame[20] = protocol;
        frame[54..56].copy_from_slice(&ports[0].to_be_bytes());
        frame[56..58].copy_from_slice(&ports[1].to_be_bytes());
        frame
    }

    #[test]
    fn a_program_of_tcpdump_matches_what_it_says() {
        let program = dns6();
        for (ethertype, protocol, ports, expected) in [
            (0x86dd, 17, [53, 9999], true),
            (0x86dd, 17, [9999, 53], true),
            (0x86dd, 17, [9999, 54], false),
            (0x86dd, 6, [53, 53], false),
            (0x0800, 17, [53, 53], false),
        ] {
            let frame = frame(ethertype, protocol, ports);
            assert_eq!(program.matches(&frame, 62), expected, "{ethertype:#x} {protocol} {ports:?}");
            assert!(!program.matches(&frame[..50], 62), "the ports were cut off");
        }
        assert_eq!(program.run(&frame(0x86dd, 17, [53, 1]), 62), 0x40000);
    }

    #[test]
    fn programs_that_could_go_wrong_are_refused_with_their_reason() {
        let end = (0x06, 0, 0, 1);
        let cases = [
            (vec![], ProgramError::Length(0)),
            (vec![end; MOST_INSTRUCTIONS + 1], ProgramError::Length(MOST_INSTRUCTIONS + 1)),
            (vec![(0x15, 1, 0, 0), end], ProgramError::JumpsOut { at: 0 }),
            (vec![(0x05, 0, 0, u32::MAX), end], ProgramError::JumpsOut { at: 0 }),
            (vec![(0x34, 0, 0, 0), end], ProgramError::BadConstant { at: 0, k: 0 }),
            (vec![(0x94, 0, 0, 0), end], ProgramError::BadConstant { at: 0, k: 0 }),
            (vec![(0x64, 0, 0, 32), end], ProgramError::BadConstant { at: 0, k: 32 }),
            (vec![(0x02, 0, 0, 16), end], ProgramError::BadConstant { at: 0, k: 16 }),
            (vec![(0x28, 0, 0, 12)], ProgramError::DoesNotEnd),
            (vec![(0xffff, 0, 0, 0), end], ProgramError::UnknownCode { at: 0, code: 0xffff }),
            (
                vec![end, (0x20, 0, 0, 0xffff_f000 + 56), end],
                ProgramError::NotInFrame { at: 1, k: 0xffff_f038 },
            ),
        ];
        for (code, expected) in cases {
            assert_eq!(Program::new(code).unwrap_err(), expected);
        }
    }

    #[test]
    fn programs_for_stripped_vlan_tags_find_the_tag_in_the_frame() {
        // `vlan 5` as libpcap compiles it for a live capture: the tag beside the frame, or else in
        // it.
        let program = Program::new(vec![
            (0x30, 0, 0, 0xffff_f030),
            (0x15, 4, 0, 1),
            (0x28, 0, 0, 12),
            (0x15, 2, 0, 0x8100),
            (0x15, 1, 0, 0x88a8),
            (0x15, 0, 8, 0x9100),
            (0x30, 0, 0, 0xffff_f030),
            (0x15, 0, 2, 1),
            (0x28, 0, 0, 0xffff_f02c),
            (0x05, 0, 0, 1),
            (0x28, 0, 0, 14),
            (0x54, 0, 0, 0xfff),
            (0x15, 0, 1, 5),
            (0x06, 0, 0, 262_144),
            (0x06, 0, 0, 0),
        ])
        .unwrap();
        let mut tagged = vec![0; 64];
        tagged[12..16].copy_from_slice(&[0x81, 0, 0xa0, 5]);
        assert!(program.matches(&tagged, 64));
        tagged[15] = 6;
        assert!(!program.matches(&tagged, 64));
        assert!(!program.matches(&frame(0x0800, 17, [1, 2]), 62));
    }
}
