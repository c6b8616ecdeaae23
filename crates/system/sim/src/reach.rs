//! The method behind `netaware reach` over a simulated path: the host at its other end answers as that of [`crate::hops`] does.

use netaware_path::reach::{Reach, ReachFinding, ReachPlan};
use netaware_record::IpVersion;
use netaware_units::Span;

use crate::hops::{HopPath, destination};

/// Runs the method over a path to its end.
pub fn reach(path: &mut HopPath, plan: ReachPlan) -> ReachFinding {
    let mut method = Reach::new(plan);
    while let Some(round) = method.next(path.now()) {
        let report = path.run(&round);
        method.take(&report);
    }
    method.finding()
}

/// What a prober with `CAP_NET_RAW` asks for over this version, on a path that takes 1500 bytes. TCP is not part of it: that is
/// the system's.
pub fn usual_plan(version: IpVersion, time: Span) -> ReachPlan {
    ReachPlan {
        host: destination(version),
        smallest: version.header_len() + 8 + 16,
        largest: 1500,
        time,
        count: None,
        gap: Span::from_millis(20),
        echo: true,
        timestamps: version == IpVersion::V4,
        patience: Span::from_secs(1),
        stamp_error: Span::ZERO,
    }
}
