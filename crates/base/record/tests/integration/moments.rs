//! Mean, sigma, skew and kurtosis of a histogram against exact rational arithmetic.

use netaware_record::{HistogramMoments, HistogramShape};
use netaware_units::Span;
use num_bigint::BigInt;

/// Relative to the larger of the figure and one.
const TOLERANCE: f64 = 1e-9;

/// The same figures, exact up to the last step: sums of powers in integers of any length, and one
/// division.
struct Exact {
    mean: f64,
    sigma: f64,
    skew: f64,
    kurtosis: f64,
}

impl Exact {
    fn of(values: &[i64]) -> Self {
        let n = BigInt::from(values.len());
        let sum = |power: u32| values.iter().map(|x| BigInt::from(*x).pow(power)).sum::<BigInt>();
        let [s1, s2, s3, s4] = [1, 2, 3, 4].map(sum);
        // n^k times the sum of the k-th powers of deviations from the mean, over n.
        let second = &n * &s2 - &s1 * &s1;
        let third = &n * &n * &s3 - &n * &s1 * &s2 * 3 + s1.pow(3) * 2;
        let fourth = n.pow(3) * &s4 - n.pow(2) * &s1 * &s3 * 4 + &n * s1.pow(2) * &s2 * 6 - s1.pow(4) * 3;
        let variance = quotient(&second, &n.pow(2));
        Self {
            mean: quotient(&s1, &n),
            sigma: quotient(&second, &(&n * (&n - 1))).sqrt(),
            skew: quotient(&third, &n.pow(3)) / variance.powf(1.5),
            kurtosis: quotient(&(fourth - second.pow(2) * 3), &second.pow(2)),
        }
    }
}

/// To 60 binary digits and more, whatever the lengths.
fn quotient(numerator: &BigInt, denominator: &BigInt) -> f64 {
    const SCALE: usize = 200;
    let scaled: BigInt = (numerator << SCALE) / denominator;
    let text = scaled.to_string();
    text.parse::<f64>().unwrap() / 2f64.powi(SCALE as i32)
}

#[track_caller]
fn assert_exact(values: &[i64]) {
    let shape = HistogramShape { low: Span::ZERO, width: Span::from_micros(1), bins: 1000 };
    let mut histogram = shape.empty().unwrap();
    for value in values {
        histogram.observe(*value);
    }
    let found = HistogramMoments::of(&histogram).unwrap();
    let exact = Exact::of(values);
    let pairs = [
        ("mean", found.mean, exact.mean),
        ("sigma", found.sigma.unwrap(), exact.sigma),
        ("skew", found.skew.unwrap(), exact.skew),
        ("kurtosis", found.kurtosis.unwrap(), exact.kurtosis),
    ];
    for (name, found, exact) in pairs {
        let off = (found - exact).abs() / exact.abs().max(1.0);
        assert!(
            off <= TOLERANCE,
            "{name} of {} values: {found} instead of {exact}, {off:e} off",
            values.len()
        );
    }
}

/// xorshift64* (Vigna 2016): any numbers will do, but always the same.
fn numbers(mut seed: u64) -> impl FnMut() -> u64 {
    move || {
        seed ^= seed >> 12;
        seed ^= seed << 25;
        seed ^= seed >> 27;
        seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }
}

#[test]
fn even_spacing_with_microseconds_of_noise() {
    let mut next = numbers(7);
    let values: Vec<i64> = (0..100_000).map(|_| 100_000 + (next() % 3000) as i64).collect();
    assert_exact(&values);
}

#[test]
fn spacing_with_rare_holes_of_milliseconds() {
    let mut next = numbers(8);
    let value = |n: i64, random: u64| {
        if n % 997 == 0 { 5_000_000 + (random % 10_000) as i64 } else { 20_000 + (random % 50) as i64 }
    };
    let values: Vec<i64> = (0..100_000).map(|n| value(n, next())).collect();
    assert_exact(&values);
}

#[test]
fn wide_and_lopsided_values() {
    let mut next = numbers(9);
    let values: Vec<i64> = (0..50_000).map(|_| (next() % 1_000_000_000) as i64 >> (next() % 30)).collect();
    assert_exact(&values);
}

#[test]
fn two_values_and_a_tiny_spread_on_a_large_mean() {
    assert_exact(&[95_000, 96_001]);
    let values: Vec<i64> = (0..1000).map(|n| 1_000_000_000 + n % 2).collect();
    assert_exact(&values);
}
