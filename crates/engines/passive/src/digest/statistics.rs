//! Whether digests spread evenly over real-looking traffic: tests only.
#![cfg(test)]

use netaware_wire::lmap::DigestFunction;

use super::{Choice, DigestSettings, Digester};
use crate::Seed;
use crate::made_up::Made;

/// Packets as a fleet sees them: few hosts, counting sequence numbers, counting identifications.
fn digests(function: DigestFunction) -> Vec<u64> {
    let settings = DigestSettings { share: 1.0, payload: 16, function, initialiser: None };
    let digester = Digester::new(&settings, &Seed::new([5; 16])).unwrap();
    let mut all = Vec::new();
    for number in 0..10_000_u32 {
        let four = Made::tcp4()
            .identification(number as u16)
            .sequence(number * 1448, 1)
            .destination_of((number % 5) as u8);
        let six = Made::udp6().payload(&number.to_be_bytes());
        for made in [four, six] {
            let Ok(Choice::Selected(digest)) = digester.choose(&made.packet()) else {
                panic!("all are chosen")
            };
            all.push(digest);
        }
    }
    all
}

#[test]
fn digests_are_uniform_by_chi_square_in_their_top_and_low_bits() {
    for (function, bits) in [(DigestFunction::Sip, 64), (DigestFunction::Bob, 32)] {
        for shift in [0, bits - 8] {
            let mut bins = [0_f64; 256];
            let all = digests(function);
            for digest in &all {
                bins[(digest >> shift & 255) as usize] += 1.0;
            }
            let expected = all.len() as f64 / 256.0;
            let chi_square: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
            // 255 degrees of freedom: mean 255, deviation 22.6; four and a half of those.
            assert!((153.0..357.0).contains(&chi_square), "{function:?} from bit {shift}: {chi_square}");
        }
    }
}

#[test]
fn no_two_of_twenty_thousand_packets_share_a_64_bit_digest() {
    let mut all = digests(DigestFunction::Sip);
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
}
