//! Instructions, decoded once so that running them needs no second look at their codes.

use super::ProgramError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    LoadAbsolute(Size, u32),
    /// From X plus a signed constant.
    LoadIndirect(Size, i32),
    LoadImmediate(u32),
    LoadMemory(u8),
    LoadLength,
    /// What the kernel knows besides the frame; the same for every frame here.
    LoadAncillary(Ancillary),
    LoadXImmediate(u32),
    LoadXMemory(u8),
    LoadXLength,
    /// Four times the low half of a byte: the length of an IPv4 header.
    LoadXHeader(u32),
    StoreA(u8),
    StoreX(u8),
    Arithmetic(Arithmetic, Operand),
    Negate,
    Jump(u32),
    Branch(Condition, Operand, u8, u8),
    ReturnK(u32),
    ReturnA,
    AToX,
    XToA,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Word,
    Half,
    Byte,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    K(u32),
    X,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Or,
    And,
    ShiftLeft,
    ShiftRight,
    Modulo,
    Xor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ancillary {
    /// The type of an Ethernet frame.
    Protocol,
    /// Whether a tag was stripped, which, and of what type: never here.
    StrippedVlan,
    /// A with X, bit by bit.
    XorX,
}

/// What is wrong with an instruction, wherever it stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Code(u16),
    Constant(u32),
    NotInFrame(u32),
}

impl Fault {
    pub(super) fn at(self, at: usize) -> ProgramError {
        match self {
            Self::Code(code) => ProgramError::UnknownCode { at, code },
            Self::Constant(k) => ProgramError::BadConstant { at, k },
            Self::NotInFrame(k) => ProgramError::NotInFrame { at, k },
        }
    }
}

impl Op {
    pub(super) fn decode(code: u16, if_true: u8, if_false: u8, k: u32) -> Result<Self, Fault> {
        Ok(match code {
            0x20 => Self::load(Size::Word, k)?,
            0x28 => Self::load(Size::Half, k)?,
            0x30 => Self::load(Size::Byte, k)?,
            0x40 => Self::LoadIndirect(Size::Word, k.cast_signed()),
            0x48 => Self::LoadIndirect(Size::Half, k.cast_signed()),
            0x50 => Self::LoadIndirect(Size::Byte, k.cast_signed()),
            0x00 => Self::LoadImmediate(k),
            0x60 => Self::LoadMemory(place(k)?),
            0x80 => Self::LoadLength,
            0x01 => Self::LoadXImmediate(k),
            0x61 => Self::LoadXMemory(place(k)?),
            0x81 => Self::LoadXLength,
            0xb1 => Self::LoadXHeader(k),
            0x02 => Self::StoreA(place(k)?),
            0x03 => Self::StoreX(place(k)?),
            0x84 => Self::Negate,
            0x05 => Self::Jump(k),
            0x06 => Self::ReturnK(k),
            0x16 => Self::ReturnA,
            0x07 => Self::AToX,
            0x87 => Self::XToA,
            _ if code & 0xff07 == ALU => Self::arithmetic(code, k)?,
            _ if code & 0xff07 == JUMP => Self::branch(code, if_true, if_false, k)?,
            _ => return Err(Fault::Code(code)),
        })
    }

    fn load(size: Size, k: u32) -> Result<Self, Fault> {
        if k < LINK_LAYER {
            return Ok(Self::LoadAbsolute(size, k));
        }
        match k {
            PROTOCOL => Ok(Self::LoadAncillary(Ancillary::Protocol)),
            VLAN_TAG | VLAN_PRESENT | VLAN_TYPE => Ok(Self::LoadAncillary(Ancillary::StrippedVlan)),
            XOR_X => Ok(Self::LoadAncillary(Ancillary::XorX)),
            // From the link layer on, which is where the frame begins.
            LINK_LAYER..NETWORK_LAYER => Ok(Self::LoadAbsolute(size, k - LINK_LAYER)),
            _ => Err(Fault::NotInFrame(k)),
        }
    }

    fn arithmetic(code: u16, k: u32) -> Result<Self, Fault> {
        let operand = operand(code, k);
        let which = match code & 0xf0 {
            0x00 => Arithmetic::Add,
            0x10 => Arithmetic::Subtract,
            0x20 => Arithmetic::Multiply,
            0x30 => Arithmetic::Divide,
            0x40 => Arithmetic::Or,
            0x50 => Arithmetic::And,
            0x60 => Arithmetic::ShiftLeft,
            0x70 => Arithmetic::ShiftRight,
            0x90 => Arithmetic::Modulo,
            0xa0 => Arithmetic::Xor,
            _ => return Err(Fault::Code(code)),
        };
        match (which, operand) {
            (Arithmetic::Divide | Arithmetic::Modulo, Operand::K(0)) => Err(Fault::Constant(0)),
            (Arithmetic::ShiftLeft | Arithmetic::ShiftRight, Operand::K(32..)) => Err(Fault::Constant(k)),
            _ => Ok(Self::Arithmetic(which, operand)),
        }
    }

    fn branch(code: u16, if_true: u8, if_false: u8, k: u32) -> Result<Self, Fault> {
        let condition = match code & 0xf0 {
            0x10 => Condition::Equal,
            0x20 => Condition::Greater,
            0x30 => Condition::GreaterOrEqual,
            0x40 => Condition::AnyBit,
            _ => return Err(Fault::Code(code)),
        };
        Ok(Self::Branch(condition, operand(code, k), if_true, if_false))
    }

    /// How many instructions it may skip; `None`: it goes on with the next, or ends.
    pub(super) fn furthest(&self) -> Option<usize> {
        match self {
            Self::Jump(far) => Some(*far as usize),
            Self::Branch(_, _, if_true, if_false) => Some((*if_true).max(*if_false).into()),
            _ => None,
        }
    }
}

fn operand(code: u16, k: u32) -> Operand {
    if code & 8 == 0 { Operand::K(k) } else { Operand::X }
}

fn place(k: u32) -> Result<u8, Fault> {
    if k < 16 { Ok(k as u8) } else { Err(Fault::Constant(k)) }
}

const ALU: u16 = 4;
const JUMP: u16 = 5;

// linux/filter.h: SKF_LL_OFF, SKF_NET_OFF, and what follows SKF_AD_OFF.
const LINK_LAYER: u32 = 0xffe0_0000;
const NETWORK_LAYER: u32 = 0xfff0_0000;
const PROTOCOL: u32 = 0xffff_f000;
const XOR_X: u32 = 0xffff_f028;
const VLAN_TAG: u32 = 0xffff_f02c;
const VLAN_PRESENT: u32 = 0xffff_f030;
const VLAN_TYPE: u32 = 0xffff_f03c;
