//! What something costs by the size of a packet.

/// Times for sizes that were measured, and straight lines between them: a call costs so much, and
/// each byte so much more.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostBySize(Vec<(u32, f64)>);

impl CostBySize {
    /// From IP packet (bytes) and time (ns), in any order. What is no positive number is left out;
    /// of the same size twice the later counts.
    pub fn new(points: impl IntoIterator<Item = (u32, f64)>) -> Self {
        let mut kept: Vec<(u32, f64)> = Vec::new();
        for (size, time) in points.into_iter().filter(|(_, time)| time.is_finite() && *time > 0.0) {
            kept.retain(|(known, _)| *known != size);
            kept.push((size, time));
        }
        kept.sort_by_key(|(size, _)| *size);
        Self(kept)
    }

    /// ns for a packet of this size; `None` if nothing was measured. Below the smallest size it is
    /// that one's; above the largest the last line goes on, though it never falls.
    pub fn at(&self, packet: u32) -> Option<f64> {
        let (first, last) = (self.0.first()?, self.0.last()?);
        if packet <= first.0 {
            return Some(first.1);
        }
        let pair = self.0.windows(2).find(|pair| packet <= pair[1].0).or_else(|| self.0.windows(2).last());
        let Some([(from, cost), (to, next)]) = pair else { return Some(last.1) };
        let share = f64::from(packet - from) / f64::from(to - from);
        let line = cost + (next - cost) * share;
        Some(if packet > last.0 { line.max(last.1) } else { line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_lie_on_lines_between_what_was_measured() {
        let costs = CostBySize::new([(1500, 2000.0), (500, 1000.0)]);
        let rows = [(100, 1000.0), (500, 1000.0), (1000, 1500.0), (1500, 2000.0), (2500, 3000.0)];
        for (packet, want) in rows {
            assert_eq!(costs.at(packet), Some(want), "{packet} B");
        }
    }

    #[test]
    fn of_three_sizes_the_two_around_a_packet_say_what_it_costs() {
        let costs = CostBySize::new([(3000, 2300.0), (500, 1000.0), (1500, 2000.0)]);
        let rows = [(1000, 1500.0), (1500, 2000.0), (2000, 2100.0), (3000, 2300.0), (4000, 2500.0)];
        for (packet, want) in rows {
            let found = costs.at(packet).unwrap();
            assert!((found - want).abs() < 1e-9, "{packet} B: {found}");
        }
    }

    #[test]
    fn a_line_that_falls_does_not_go_on_falling() {
        assert_eq!(CostBySize::new([(500, 1000.0), (1500, 900.0)]).at(9000), Some(900.0));
    }

    #[test]
    fn what_is_no_time_is_no_cost() {
        assert_eq!(CostBySize::new([(500, 0.0), (600, f64::NAN), (700, f64::INFINITY)]).at(500), None);
        assert_eq!(CostBySize::new([(500, 7.0), (500, 9.0)]).at(9000), Some(9.0));
    }
}
