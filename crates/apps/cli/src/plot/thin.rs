//! Of more points than a picture has columns of pixels, those that can be seen: in each column the
//! first, the smallest, the largest and the last. No peak is lost, and what is drawn is bounded by
//! the width.

/// Points in pixels; `None` breaks a line.
pub(super) type Pixel = Option<(i32, i32)>;

/// In each run of points of one column the first, lowest, highest and last; as they are where they
/// are few.
pub(super) fn line(points: Vec<Pixel>, width: usize) -> Vec<Pixel> {
    if points.len() <= FEW * width.max(1) {
        return points;
    }
    let mut kept = Vec::new();
    let mut column: Option<Column> = None;
    for (at, pixel) in points.into_iter().enumerate() {
        match (pixel, &mut column) {
            (Some((x, y)), Some(open)) if open.x == x => open.take(at, y),
            (Some((x, y)), _) => {
                close(&mut column, &mut kept);
                column = Some(Column::new(x, at, y));
            }
            (None, _) => {
                close(&mut column, &mut kept);
                kept.push(None);
            }
        }
    }
    close(&mut column, &mut kept);
    kept
}

fn close(column: &mut Option<Column>, kept: &mut Vec<Pixel>) {
    if let Some(column) = column.take() {
        column.close(kept);
    }
}

/// Of marks the lowest and the highest of each column, in any order; as they are where they are
/// few.
pub(super) fn marks(points: Vec<(i32, i32)>, width: usize) -> Vec<(i32, i32)> {
    if points.len() <= FEW * width.max(1) {
        return points;
    }
    let mut columns = std::collections::BTreeMap::<i32, (i32, i32)>::new();
    for (x, y) in points {
        columns
            .entry(x)
            .and_modify(|(low, high)| (*low, *high) = ((*low).min(y), (*high).max(y)))
            .or_insert((y, y));
    }
    columns.into_iter().flat_map(|(x, (low, high))| [(x, low), (x, high)]).collect()
}

struct Column {
    x: i32,
    first: i32,
    last: i32,
    /// With their places, so that the order of time stays.
    low: (i32, usize),
    high: (i32, usize),
}

impl Column {
    fn new(x: i32, at: usize, y: i32) -> Self {
        Self { x, first: y, last: y, low: (y, at), high: (y, at) }
    }

    fn take(&mut self, at: usize, y: i32) {
        self.last = y;
        if y < self.low.0 {
            self.low = (y, at);
        }
        if y > self.high.0 {
            self.high = (y, at);
        }
    }

    fn close(self, kept: &mut Vec<Pixel>) {
        let (one, other) =
            if self.low.1 <= self.high.1 { (self.low.0, self.high.0) } else { (self.high.0, self.low.0) };
        let mut ys = vec![self.first, one, other, self.last];
        ys.dedup();
        kept.extend(ys.into_iter().map(|y| Some((self.x, y))));
    }
}

/// Points per column below which nothing is left out.
const FEW: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_survive_and_the_number_is_bounded_by_the_width() {
        let peak = 54_321;
        let points: Vec<Pixel> =
            (0..100_000).map(|n| Some((n / 100, if n == peak { -7 } else { n % 13 }))).collect();
        let kept = line(points, 1000);
        assert!(kept.len() <= 4000);
        assert!(kept.contains(&Some((543, -7))));
        for (x, y) in kept.iter().flatten() {
            assert!((0..1000).contains(x) && (-7..13).contains(y));
        }
        let spots: Vec<(i32, i32)> =
            (0..100_000).rev().map(|n| (n / 100, if n == peak { -7 } else { n % 13 })).collect();
        let kept = marks(spots, 1000);
        assert!(kept.len() == 2000 && kept.contains(&(543, -7)));
    }

    #[test]
    fn few_points_stay_as_they_are_and_breaks_stay() {
        let few = vec![Some((1, 1)), None, Some((1, 5)), Some((1, 3))];
        assert_eq!(line(few.clone(), 100), few);
        let many: Vec<Pixel> = (0..1000).map(|n| (n != 500).then_some((3, n))).collect();
        assert_eq!(line(many, 1), [Some((3, 0)), Some((3, 499)), None, Some((3, 501)), Some((3, 999))]);
    }
}
