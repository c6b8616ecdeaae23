//! Two reference distributions: Student's t for intervals over few rounds, the normal for trend
//! tests.

/// The half-width multiplier of a two-sided Student-t interval: the `t` with `P(|T| <= t) =
/// confidence`.
///
/// `confidence` must lie strictly between 0 and 1 and `degrees` be at least 1, else `None`. Above
/// 1000 degrees we answer for 1000, which is too wide by less than 0.2 % at 95 %. Relative error
/// below 1e-9 for `confidence` up to 0.999.
///
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4, solved by
/// bisection.
pub fn student_t_two_sided(confidence: f64, degrees: u64) -> Option<f64> {
    if !(confidence > 0.0 && confidence < 1.0) || degrees == 0 {
        return None;
    }
    let degrees = degrees.min(MOST_DEGREES);
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        if student_t_within(middle, degrees) < confidence { low = middle } else { high = middle }
    }
    Some(f64::midpoint(low, high).tan() * (degrees as f64).sqrt())
}

/// `P(|Z| >= |z|)` for a standard normal `Z`: the two-sided p-value. Absolute error below 1.5e-7,
/// so treat anything smaller as "about zero".
///
/// Source: Abramowitz and Stegun 7.1.26.
pub fn normal_two_sided_p(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592]
        .iter()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    (polynomial * (-x * x).exp()).clamp(0.0, 1.0)
}

/// `P(|T| <= tan(theta) * sqrt(degrees))`. The series is finite because `degrees` is an integer.
fn student_t_within(theta: f64, degrees: u64) -> f64 {
    let (sin, cos) = theta.sin_cos();
    let odd = degrees % 2 == 1;
    let mut term = if odd { cos } else { 1.0 };
    let mut sum = 0.0;
    // The k-th factor is 2/3, 4/5, ... for odd degrees and 1/2, 3/4, ... for even ones.
    let mut numerator = if odd { 2.0 } else { 1.0 };
    for _ in 0..degrees / 2 {
        sum += term;
        term *= cos * cos * numerator / (numerator + 1.0);
        numerator += 2.0;
    }
    if odd { (theta + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum }
}

/// Halving pi/2 this often reaches the spacing of doubles.
const BISECTIONS: u32 = 60;

/// Bounds the length of the series; the t distribution is normal for our purposes long before.
const MOST_DEGREES: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::assert_close;

    #[test]
    fn student_t_equals_the_printed_tables() {
        let table = [
            (0.95, 1, 12.706_204_7),
            (0.95, 2, 4.302_652_7),
            (0.95, 3, 3.182_446_3),
            (0.95, 7, 2.364_624_3),
            (0.95, 30, 2.042_272_5),
            (0.99, 4, 4.604_094_9),
            (0.90, 5, 2.015_048_4),
        ];
        for (confidence, degrees, expected) in table {
            assert_close(student_t_two_sided(confidence, degrees).unwrap(), expected, 1e-6);
        }
        assert_close(student_t_two_sided(0.95, u64::MAX).unwrap(), 1.962_339, 1e-5);
    }

    #[test]
    fn impossible_requests_have_no_answer() {
        for (confidence, degrees) in [(0.0, 3), (1.0, 3), (-1.0, 3), (f64::NAN, 3), (0.95, 0)] {
            assert_eq!(student_t_two_sided(confidence, degrees), None, "{confidence} {degrees}");
        }
    }

    #[test]
    fn normal_p_equals_the_printed_tables() {
        for (z, expected) in [(0.0, 1.0), (1.0, 0.317_310_5), (-1.959_964, 0.05), (3.0, 0.002_699_8)] {
            assert_close(normal_two_sided_p(z), expected, 3e-7);
        }
    }
}
