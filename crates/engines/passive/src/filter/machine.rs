//! The machine: two registers, sixteen words of memory, and a frame that cannot be written to.

use super::ops::{Ancillary, Arithmetic, Condition, Op, Operand, Size};

/// Runs checked instructions. Jumps only go forward, so this ends.
#[inline]
pub(super) fn run(ops: &[Op], frame: &[u8], wire_length: u32) -> u32 {
    let (mut a, mut x, mut memory, mut at) = (0_u32, 0_u32, [0_u32; 16], 0);
    while let Some(op) = ops.get(at) {
        at += 1;
        let value = match *op {
            Op::LoadAbsolute(size, k) => load(frame, size, k.into()),
            Op::LoadIndirect(size, k) => load(frame, size, i64::from(x) + i64::from(k)),
            Op::LoadImmediate(k) => Some(k),
            Op::LoadMemory(place) => Some(memory[usize::from(place & 15)]),
            Op::LoadLength => Some(wire_length),
            Op::LoadAncillary(Ancillary::Protocol) => load(frame, Size::Half, 12),
            Op::LoadAncillary(Ancillary::StrippedVlan) => Some(0),
            Op::LoadAncillary(Ancillary::XorX) => Some(a ^ x),
            Op::Arithmetic(which, operand) => arithmetic(which, a, value_of(operand, x)),
            Op::Negate => Some(a.wrapping_neg()),
            Op::XToA => Some(x),
            Op::ReturnK(k) => return k,
            Op::ReturnA => return a,
            _ => {
                match *op {
                    Op::LoadXImmediate(k) => x = k,
                    Op::LoadXMemory(place) => x = memory[usize::from(place & 15)],
                    Op::LoadXLength => x = wire_length,
                    Op::LoadXHeader(k) => match load(frame, Size::Byte, k.into()) {
                        Some(byte) => x = (byte & 15) * 4,
                        None => return 0,
                    },
                    Op::StoreA(place) => memory[usize::from(place & 15)] = a,
                    Op::StoreX(place) => memory[usize::from(place & 15)] = x,
                    Op::Jump(far) => at += far as usize,
                    Op::Branch(condition, operand, if_true, if_false) => {
                        let far = if holds(condition, a, value_of(operand, x)) { if_true } else { if_false };
                        at += usize::from(far);
                    }
                    _ => x = a,
                }
                continue;
            }
        };
        match value {
            Some(value) => a = value,
            None => return 0,
        }
    }
    0
}

#[inline]
fn value_of(operand: Operand, x: u32) -> u32 {
    match operand {
        Operand::K(k) => k,
        Operand::X => x,
    }
}

/// `None` beyond what was captured: the frame is not let through.
#[inline]
fn load(frame: &[u8], size: Size, at: i64) -> Option<u32> {
    let bytes = frame.get(usize::try_from(at).ok()?..)?;
    match size {
        Size::Word => bytes.first_chunk().map(|four| u32::from_be_bytes(*four)),
        Size::Half => bytes.first_chunk().map(|two| u16::from_be_bytes(*two).into()),
        Size::Byte => bytes.first().map(|byte| u32::from(*byte)),
    }
}

/// `None` for a division by zero.
#[inline]
fn arithmetic(which: Arithmetic, a: u32, b: u32) -> Option<u32> {
    Some(match which {
        Arithmetic::Add => a.wrapping_add(b),
        Arithmetic::Subtract => a.wrapping_sub(b),
        Arithmetic::Multiply => a.wrapping_mul(b),
        Arithmetic::Divide => return a.checked_div(b),
        Arithmetic::Modulo => return a.checked_rem(b),
        Arithmetic::Or => a | b,
        Arithmetic::And => a & b,
        Arithmetic::Xor => a ^ b,
        Arithmetic::ShiftLeft => a.checked_shl(b).unwrap_or(0),
        Arithmetic::ShiftRight => a.checked_shr(b).unwrap_or(0),
    })
}

#[inline]
fn holds(condition: Condition, a: u32, b: u32) -> bool {
    match condition {
        Condition::Equal => a == b,
        Condition::Greater => a > b,
        Condition::GreaterOrEqual => a >= b,
        Condition::AnyBit => a & b != 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::filter::Program;

    /// A statement about a frame, as a person would make it.
    #[derive(Debug, Clone)]
    enum Says {
        Byte(u8, u8),
        HalfAbove(u8, u16),
        /// A word at four times the low half of a byte, plus an offset.
        WordBehindHeader(u8, u8, u32),
        AnyBit(u8, u8),
        Length(u32),
        SumIs(u8, u8, u32),
        Not(Box<Says>),
        And(Box<Says>, Box<Says>),
        Or(Box<Says>, Box<Says>),
    }

    fn says() -> impl Strategy<Value = Says> {
        let leaf = prop_oneof![
            (0..24_u8, 0..4_u8).prop_map(|(at, byte)| Says::Byte(at, byte)),
            (0..24_u8, 0..1024_u16).prop_map(|(at, half)| Says::HalfAbove(at, half)),
            (0..24_u8, 0..8_u8, 0..4_u32).prop_map(|(at, more, word)| Says::WordBehindHeader(at, more, word)),
            (0..24_u8, any::<u8>()).prop_map(|(at, bits)| Says::AnyBit(at, bits)),
            (0..40_u32).prop_map(Says::Length),
            (0..24_u8, 0..24_u8, 0..8_u32).prop_map(|(one, other, sum)| Says::SumIs(one, other, sum)),
        ];
        leaf.prop_recursive(3, 10, 2, |inner| {
            prop_oneof![
                inner.clone().prop_map(|says| Says::Not(Box::new(says))),
                (inner.clone(), inner.clone())
                    .prop_map(|(one, other)| Says::And(Box::new(one), Box::new(other))),
                (inner.clone(), inner).prop_map(|(one, other)| Says::Or(Box::new(one), Box::new(other))),
            ]
        })
    }

    /// The oracle: looks at the frame itself. `None`: it had to look beyond the end.
    fn truth(says: &Says, frame: &[u8], length: u32) -> Option<bool> {
        let byte = |at: usize| frame.get(at).map(|byte| u32::from(*byte));
        let number =
            |at: usize, size: usize| (at..at + size).try_fold(0, |sum, at| Some(sum << 8 | byte(at)?));
        Some(match says {
            Says::Byte(at, value) => byte((*at).into())? == u32::from(*value),
            Says::HalfAbove(at, value) => number((*at).into(), 2)? > u32::from(*value),
            Says::WordBehindHeader(at, more, value) => {
                let header = (byte((*at).into())? & 15) * 4;
                number(header as usize + usize::from(*more), 4)? >= *value
            }
            Says::AnyBit(at, bits) => byte((*at).into())? & u32::from(*bits) != 0,
            Says::Length(least) => length >= *least,
            Says::SumIs(one, other, sum) => byte((*one).into())? + byte((*other).into())? == *sum,
            Says::Not(inner) => !truth(inner, frame, length)?,
            Says::And(one, other) => truth(one, frame, length)? && truth(other, frame, length)?,
            Says::Or(one, other) => truth(one, frame, length)? || truth(other, frame, length)?,
        })
    }

    type Code = Vec<(u16, u8, u8, u32)>;

    /// Instructions after which A is 1 or 0.
    fn compile(says: &Says) -> Code {
        let judged = |mut code: Code, jump: (u16, u32), truth: [u8; 2]| {
            code.extend([(jump.0, truth[0], truth[1], jump.1), (0, 0, 0, 1), (5, 0, 0, 1), (0, 0, 0, 0)]);
            code
        };
        match says {
            Says::Byte(at, value) => {
                judged(vec![(0x30, 0, 0, (*at).into())], (0x15, (*value).into()), [0, 2])
            }
            Says::HalfAbove(at, value) => {
                judged(vec![(0x28, 0, 0, (*at).into())], (0x25, (*value).into()), [0, 2])
            }
            Says::WordBehindHeader(at, more, value) => {
                let load = vec![(0xb1, 0, 0, (*at).into()), (0x40, 0, 0, (*more).into())];
                judged(load, (0x35, *value), [0, 2])
            }
            Says::AnyBit(at, bits) => {
                judged(vec![(0x30, 0, 0, (*at).into())], (0x45, (*bits).into()), [0, 2])
            }
            Says::Length(least) => judged(vec![(0x80, 0, 0, 0)], (0x35, *least), [0, 2]),
            Says::SumIs(one, other, sum) => {
                let first = [(0x30, 0, 0, u32::from(*one)), (0x02, 0, 0, 3), (0x30, 0, 0, (*other).into())];
                let add = [(0x07, 0, 0, 0), (0x60, 0, 0, 3), (0x0c, 0, 0, 0)];
                judged([first, add].concat(), (0x15, *sum), [0, 2])
            }
            Says::Not(inner) => [compile(inner), vec![(0xa4, 0, 0, 1)]].concat(),
            Says::And(one, other) => joined(one, other, 0),
            Says::Or(one, other) => joined(one, other, 1),
        }
    }

    /// The second only where the first did not say `decides`.
    fn joined(one: &Says, other: &Says, decides: u32) -> Code {
        let other = compile(other);
        let skip = [(0x15, 0, 1, decides), (5, 0, 0, other.len() as u32)];
        [compile(one), skip.to_vec(), other].concat()
    }

    proptest! {
        #[test]
        fn programs_say_what_a_look_at_the_frame_says(says in says(), frame in prop::collection::vec(0..4_u8, 0..32),
                                                      length in 0..64_u32) {
            let mut code = compile(&says);
            code.push((0x16, 0, 0, 0));
            let program = Program::new(code).unwrap();
            prop_assert_eq!(program.matches(&frame, length), truth(&says, &frame, length).unwrap_or(false));
        }

        #[test]
        fn arithmetic_is_that_of_32_bits(a in any::<u32>(), b in prop_oneof![0..40_u32, any::<u32>()]) {
            let expected = [
                (0x00, Some(a.wrapping_add(b))),
                (0x10, Some(a.wrapping_sub(b))),
                (0x20, Some(a.wrapping_mul(b))),
                (0x30, a.checked_div(b)),
                (0x40, Some(a | b)),
                (0x50, Some(a & b)),
                (0x60, Some((u64::from(a) << b.min(32)) as u32)),
                (0x70, Some((u64::from(a) >> b.min(32)) as u32)),
                (0x90, a.checked_rem(b)),
                (0xa0, Some(a ^ b)),
            ];
            for (which, expected) in expected {
                for register in [0, 8] {
                    let code = vec![(0x01, 0, 0, b), (0, 0, 0, a), (4 | which | register, 0, 0, b), (0x16, 0, 0, 0)];
                    match Program::new(code) {
                        Ok(program) => prop_assert_eq!(program.run(&[], 0), expected.unwrap_or(0), "{:#x}", which),
                        Err(_) => prop_assert!(register == 0 && (expected.is_none() || b > 31)),
                    }
                }
            }
        }

        #[test]
        fn anything_that_is_accepted_ends(code in prop::collection::vec((0..0x100_u16, 0..4_u8, 0..4_u8, 0..20_u32), 1..12),
                                          frame in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut code = code;
            code.push((6, 0, 0, 1));
            if let Ok(program) = Program::new(code) {
                let _ = program.run(&frame, 100);
            }
        }
    }

    #[test]
    fn registers_and_memory_keep_what_they_are_given() {
        let run = |code: Code| Program::new(code).unwrap().run(&[0x45, 2, 3, 4, 5], 77);
        assert_eq!(run(vec![(0x81, 0, 0, 0), (0x87, 0, 0, 0), (0x16, 0, 0, 0)]), 77);
        assert_eq!(
            run(vec![(0x01, 0, 0, 9), (0x03, 0, 0, 15), (0x60, 0, 0, 15), (0x84, 0, 0, 0), (0x16, 0, 0, 0)]),
            9_u32.wrapping_neg()
        );
        assert_eq!(
            run(vec![(0, 0, 0, 8), (0x02, 0, 0, 0), (0x61, 0, 0, 0), (0x87, 0, 0, 0), (0x16, 0, 0, 0)]),
            8
        );
        assert_eq!(run(vec![(0xb1, 0, 0, 0), (0x87, 0, 0, 0), (0x16, 0, 0, 0)]), 20);
        assert_eq!(run(vec![(0x01, 0, 0, 3), (0x50, 0, 0, u32::MAX), (0x16, 0, 0, 0)]), 3, "one before X");
        assert_eq!(
            run(vec![(0x01, 0, 0, 0), (0x50, 0, 0, u32::MAX), (0x06, 0, 0, 5)]),
            0,
            "before the frame"
        );
        assert_eq!(run(vec![(0x30, 0, 0, 0xffe0_0001), (0x16, 0, 0, 0)]), 2, "from the link layer on");
        assert_eq!(run(vec![(0, 0, 0, 6), (0x01, 0, 0, 3), (0x20, 0, 0, 0xffff_f028), (0x16, 0, 0, 0)]), 5);
    }
}
