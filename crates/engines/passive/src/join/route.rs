//! The way of one packet past the points, and which of its steps only stamps can put in order.
//!
//! A router takes one off the TTL, so points of different TTL are in order whatever their clocks.
//! Those of equal TTL, on one link or at both sides of a bridge, are in the order of their stamps,
//! less what their clocks are apart: which is known only when the period is settled. Until then the
//! stamps are kept.

use super::part::Paths;
use super::shelf::Entry;

/// Points of a packet in order, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Route {
    /// Points plus one, a byte each, the first in the lowest.
    path: u64,
    length: usize,
    stamps: [i64; Route::MOST],
    /// Bit n: steps n and n + 1 had the same TTL.
    ties: u8,
    last_ttl: u8,
}

impl Route {
    /// Steps of one path.
    pub(crate) const MOST: usize = 8;

    /// The next point; further ones than there is room for are left out.
    #[inline]
    pub(crate) fn pass(&mut self, entry: &Entry) {
        if self.length == Self::MOST {
            return;
        }
        if self.length > 0 && self.last_ttl == entry.ttl {
            self.ties |= 1 << (self.length - 1);
        }
        self.stamps[self.length] = entry.at;
        self.path |= (u64::from(entry.point()) + 1) << (8 * self.length);
        self.last_ttl = entry.ttl;
        self.length += 1;
    }

    /// Counts it, or leaves it for when the clocks are known.
    #[inline]
    pub(crate) fn tell(&self, paths: &mut Paths) {
        if self.ties == 0 {
            paths.count(self.path);
        } else {
            paths.open.extend([self.path.cast_signed(), self.ties.into()]);
            paths.open.extend_from_slice(&self.stamps[..self.length]);
        }
    }
}

/// Steps in a path.
fn steps(path: u64) -> usize {
    (Route::MOST as u32 - path.leading_zeros() / 8) as usize
}

/// Routes that were left open, as [`Route::tell`] wrote them; what nobody can have written ends
/// them.
pub(crate) struct OpenRoutes<'w>(pub(crate) &'w [i64]);

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenRoute<'w> {
    pub(crate) path: u64,
    ties: u8,
    pub(crate) stamps: &'w [i64],
}

impl<'w> Iterator for OpenRoutes<'w> {
    type Item = OpenRoute<'w>;

    fn next(&mut self) -> Option<OpenRoute<'w>> {
        let [path, ties, rest @ ..] = self.0 else { return None };
        let path = path.cast_unsigned();
        let (stamps, rest) = rest.split_at_checked(steps(path))?;
        self.0 = rest;
        Some(OpenRoute { path, ties: u8::try_from(*ties).ok()?, stamps })
    }
}

impl OpenRoute<'_> {
    /// Points are among so many, and each step is there.
    pub(crate) fn is_sane(&self, points: usize) -> bool {
        let bytes = self.path.to_le_bytes();
        let steps = self.stamps.len();
        steps > 1
            && bytes[..steps].iter().all(|step| (1..=points).contains(&usize::from(*step)))
            && u32::from(self.ties) < 1 << (steps - 1)
    }

    /// The path, steps of one TTL in the order of their stamps by one clock: `apart` says of two
    /// points, the first of which has the lower number, and an instant of its clock how far the
    /// second's is ahead then; nothing where that is not known.
    pub(crate) fn path(&self, apart: impl Fn(u8, u8, i64) -> Option<i64>) -> u64 {
        let bytes = self.path.to_le_bytes();
        let mut order: Vec<(u8, i64)> = bytes.iter().copied().zip(self.stamps.iter().copied()).collect();
        let mut from = 0;
        while from < order.len() {
            let until =
                (from..order.len() - 1).find(|at| self.ties & 1 << at == 0).unwrap_or(order.len() - 1) + 1;
            let tied = &mut order[from..until];
            if let Some((reference, at)) = tied.iter().copied().min() {
                for (step, stamp) in tied.iter_mut().filter(|(step, _)| *step != reference) {
                    *stamp -= apart(reference - 1, *step - 1, at).unwrap_or(0);
                }
                tied.sort_by_key(|(_, stamp)| *stamp);
            }
            from = until;
        }
        order.iter().rev().fold(0, |path, (step, _)| path << 8 | u64::from(*step))
    }
}

#[cfg(test)]
mod tests {
    use netaware_record::passive::PacketSighting;
    use netaware_units::Wall;

    use super::*;

    fn route(steps: &[(u8, u8, i64)]) -> Route {
        let mut route = Route::default();
        for (point, ttl, at) in steps {
            let seen = PacketSighting { digest: 1, at: Wall(*at), length: 100, ttl: *ttl, version: 4 };
            route.pass(&Entry::new(*point, &seen));
        }
        route
    }

    fn told(route: Route) -> Paths {
        let mut paths = Paths::default();
        route.tell(&mut paths);
        paths.flush();
        paths
    }

    #[test]
    fn different_ttls_need_no_clock() {
        let paths = told(route(&[(2, 64, 500), (0, 63, 100), (1, 62, 50)]));
        assert_eq!(
            (paths.open.len(), paths.counts.into_iter().collect::<Vec<_>>()),
            (0, vec![(0x02_01_03, 1)])
        );
    }

    #[test]
    fn points_of_one_ttl_are_in_the_order_of_corrected_stamps() {
        // Point 3 is before a router, points 0, 1 and 2 are behind it. 1 is 1000 ahead of 0, 2 is
        // 500 behind it.
        let paths = told(route(&[(3, 64, 900), (2, 63, 620), (0, 63, 1000), (1, 63, 2050)]));
        let open: Vec<_> = OpenRoutes(&paths.open).collect();
        assert_eq!((open.len(), paths.counts.len(), open[0].is_sane(4)), (1, 0, true));
        let apart = |a: u8, b: u8, _: i64| (a == 0).then_some(if b == 1 { 1000 } else { -500 });
        // Really 0 at 1000, 1 at 1050, 2 at 1120.
        assert_eq!(open[0].path(apart), 0x03_02_01_04);
        // Where nothing is known of the clocks, stamps are what there is.
        assert_eq!(open[0].path(|_, _, _| None), 0x02_01_03_04);
        assert!(!open[0].is_sane(3));
    }

    #[test]
    fn what_nobody_wrote_ends_the_routes() {
        let routes = |words: &[i64]| OpenRoutes(words).filter(|route| route.is_sane(64)).count();
        assert_eq!(routes(&[0x02_01, 1, 5, 6, 0x02_01, 1, 7, 8]), 2);
        for words in [
            &[0x02_01, 1, 5][..],
            &[0x02_01],
            &[-1, 1, 5, 6],
            &[0x02_01, -1, 5, 6],
            &[0, 0],
            &[0x02_01, 2, 5, 6],
        ] {
            assert_eq!(routes(words), 0, "{words:?}");
        }
    }

    #[test]
    fn a_path_has_eight_steps_at_most() {
        let steps: Vec<(u8, u8, i64)> = (0..10).map(|point| (point, 64 - point, 0)).collect();
        let paths = told(route(&steps));
        let counts: Vec<_> = paths.counts.into_iter().collect();
        assert_eq!(counts, [(0x0807_0605_0403_0201, 1)]);
    }

    #[test]
    fn points_of_each_ttl_are_put_in_order_by_themselves() {
        let paths = told(route(&[(1, 64, 500), (0, 64, 100), (3, 63, 900), (2, 63, 800)]));
        assert_eq!(paths.open, [0x0304_0102, 0b101, 500, 100, 900, 800]);
        let open: Vec<_> = OpenRoutes(&paths.open).collect();
        assert_eq!((open.len(), open[0].is_sane(4)), (1, true));
        // Point 1 is 350 ahead of point 0, and point 3 is 150 ahead of point 2.
        let apart = |a: u8, b: u8, at: i64| match (a, b, at) {
            (0, 1, 100) => Some(350),
            (2, 3, 800) => Some(150),
            other => panic!("{other:?} is of no use"),
        };
        assert_eq!(open[0].path(apart), 0x0304_0201);
        assert_eq!(open[0].path(|_, _, _| None), 0x0403_0201);
    }

    #[test]
    fn a_route_of_one_step_is_not_open() {
        let open: Vec<_> = OpenRoutes(&[1, 0, 5]).collect();
        assert_eq!((open.len(), open[0].stamps, open[0].is_sane(64)), (1, &[5][..], false));
    }
}
