//! 128 bits that stand for a state.

use std::hash::{Hash, Hasher};

/// What a state is known by.
pub(crate) type Name = u128;

pub(crate) fn name<S: Hash>(state: &S) -> Name {
    let mut folding = Folding([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344]);
    state.hash(&mut folding);
    folding.finished()
}

/// Two chains of folded products (as in wyhash), each with its own multipliers: a fifth of the time
/// of SipHash, which has to withstand those who choose what is hashed.
struct Folding([u64; 2]);

impl Folding {
    fn take(&mut self, value: u64) {
        let [one, two] = self.0;
        self.0 = [
            fold(one ^ value, 0xa409_3822_299f_31d1).rotate_left(17) ^ one.rotate_left(31),
            fold(two.wrapping_add(value), 0x082e_fa98_ec4e_6c89).rotate_left(29) ^ two.wrapping_mul(5),
        ];
    }

    fn finished(mut self) -> Name {
        for round in 0..2 {
            let [one, two] = self.0;
            self.0 = [one ^ two.rotate_left(32), two];
            self.take(round);
        }
        (Name::from(self.0[0]) << 64) | Name::from(self.0[1])
    }
}

/// Both halves of the product. The multiplier is odd, so nothing but 0 becomes 0.
fn fold(value: u64, by: u64) -> u64 {
    let product = u128::from(value) * u128::from(by);
    (product >> 64) as u64 ^ product as u64
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut whole = [0; 8];
            whole[..part.len()].copy_from_slice(part);
            self.take(u64::from_le_bytes(whole));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.take(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.take(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.take(value);
    }

    fn write_i64(&mut self, value: i64) {
        self.take(value as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.take(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.take(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0[0]
    }
}

/// Names are as good as random already.
#[derive(Default)]
pub(crate) struct Given(u64);

impl Hasher for Given {
    fn write(&mut self, _: &[u8]) {
        unreachable!("names only");
    }

    fn write_u128(&mut self, name: u128) {
        self.0 = name as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[test]
fn what_differs_has_other_names_and_every_bit_of_them_counts() {
    let names: Vec<Name> = (0..1_000_u32).map(|n| name(&(n / 10, n % 10, Some(n % 2)))).collect();
    let all: std::collections::HashSet<&Name> = names.iter().collect();
    assert_eq!(all.len(), 1_000);
    for bit in 0..128 {
        let set = names.iter().filter(|name| *name >> bit & 1 == 1).count();
        assert!((400..600).contains(&set), "bit {bit} is set in {set} of 1000");
    }
}
