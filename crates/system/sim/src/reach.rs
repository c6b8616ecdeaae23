//! The method behind `netaware reach` over a simulated path: the host at its other end answers as
//! that of [`crate::hops`] does.

use netaware_path::reach::{Reach, ReachFinding, ReachPlan, TcpAnswer, TcpTries};
use netaware_record::IpVersion;
use netaware_units::Span;

use crate::hops::{HopPath, TcpPort, destination};

/// Connections that were tried, with what is true of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TcpFound {
    /// What a prober sees.
    pub tries: TcpTries,
    /// True round trips of SYNs that were answered.
    pub rtts: Vec<Span>,
    /// Of those tried, lost there or back.
    pub lost: u32,
}

/// Runs the method over a path to its end, without TCP. Its trains are kept apart from what
/// [`HopPath::way`] tells.
pub fn reach(path: &mut HopPath, plan: ReachPlan) -> ReachFinding {
    run(path, plan, None).0
}

/// The same with connections to a port, between the rounds as a prober has them.
pub fn reach_with_tcp(path: &mut HopPath, plan: ReachPlan, port: TcpPort) -> (ReachFinding, TcpFound) {
    run(path, plan, Some(port))
}

fn run(path: &mut HopPath, plan: ReachPlan, port: Option<TcpPort>) -> (ReachFinding, TcpFound) {
    let end = path.now() + plan.time;
    let (mut method, mut tcp) = (Reach::new(plan), TcpFound::default());
    while let Some(round) = method.next(path.now()) {
        if method.strains() {
            path.keep_apart();
        }
        let report = path.run(&round);
        method.take(&report);
        let now = path.now();
        if let Some(port) = port.filter(|_| !method.strains())
            && let Some(patience) =
                tcp.tries.due(now, end.since(now), method.syn_patience(tcp.tries.unanswered()))
        {
            let answered = tcp.tries.answered();
            let connected = path.connect(port, patience);
            if connected.answer == TcpAnswer::Silent && answered > 0 {
                method.missed(now);
            }
            tcp.tries.take(now, connected.answer);
            tcp.rtts.extend(connected.rtt);
            tcp.lost += u32::from(connected.lost);
            if tcp.tries.answered() > answered {
                method.heard(path.now());
            }
        }
    }
    (method.finding(), tcp)
}

/// What a prober with `CAP_NET_RAW` asks for over this version, on a path that takes 1500 bytes.
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
        patience: netaware_stats::patience::MOST,
        stamp_error: Span::ZERO,
    }
}
