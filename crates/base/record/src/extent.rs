//! How far each part of a version was measured: the one rule by which a figure is published as
//! whole, is judged by a threshold, and is a point of a picture.
//!
//! A version that was lost on the way has no whole part. Else a part is not whole if a phase that
//! it depends on failed, or if one of its transfers did. **Biased** towards doubt: a failed phase
//! names no protocol and no direction, so that it counts against each part that it may have been.

use crate::{Direction, FailedPhase, OVER_TCP, Outcome, VersionResult};

/// A part of what is measured over an IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The times of the TCP connects.
    Connects,
    /// Round trips of [`VersionResult::latency`].
    RoundTrip,
    /// Round trips of [`VersionResult::latency_tcp`].
    RoundTripOverTcp,
    /// Transfers over TCP, of one direction or of all.
    Tcp(Option<Direction>),
    /// Streams over UDP, of one direction or of all.
    Udp(Option<Direction>),
    /// Capacity and available bandwidth.
    Trains,
    /// The matrix. Runs of it that failed are in none of its figures.
    Matrix,
    /// The hops of the path.
    Hops,
    /// Answers of a host that does not cooperate.
    Reach,
    /// One-way delay.
    OneWay,
}

/// How far a part was measured. Reasons are sentences without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent<'a> {
    /// As planned; also where it was not asked for.
    Whole,
    /// Ended early on request: what there is holds for the shorter time.
    Shortened,
    /// There are results, but it was not measured to its end, for this reason.
    Partial(&'a str),
    /// It was to be measured and there is no result, for this reason.
    Failed(&'a str),
}

impl Extent<'_> {
    /// Whether the figure may be published as whole, in a record that came to this end. What a
    /// person ended early may; not so if something else ended the measurement.
    pub fn holds(self, record: Outcome) -> bool {
        match self {
            Self::Whole => true,
            Self::Shortened => record != Outcome::Failed,
            Self::Partial(_) | Self::Failed(_) => false,
        }
    }
}

impl VersionResult {
    /// The version was reached, and then no longer.
    pub fn was_lost(&self) -> bool {
        self.unreachable.is_some() && (self.reach.is_some() || self.has_figures())
    }

    /// Something of it failed or broke off. Not so if the version was never reached.
    pub fn broke_off(&self) -> bool {
        let has_failed = |part| self.ends(part).iter().any(|(outcome, _)| *outcome == Outcome::Failed);
        let have_phases_failed = !self.failed_phases.is_empty();
        self.was_lost() || have_phases_failed || has_failed(Part::Tcp(None)) || has_failed(Part::Udp(None))
    }

    /// The failed phase because of which a part was not measured to its end by this command.
    pub fn failed_phase(&self, part: Part, command: &str) -> Option<&FailedPhase> {
        self.failed_phases.iter().find(|phase| match phase.stage.as_str() {
            MEASURE_LATENCY => matches!(part, Part::RoundTrip | Part::RoundTripOverTcp),
            ATTACH_FLOW => part == Part::RoundTrip,
            OPEN_ECHO => match part {
                Part::RoundTripOverTcp => true,
                Part::RoundTrip => self.latency.as_ref().is_none_or(|it| it.pedigree.method == OVER_TCP),
                _ => false,
            },
            SEND_TRAINS => part == Part::Trains,
            MEASURE_THROUGHPUT => self.may_have_failed(part, command),
            _ => false,
        })
    }

    /// How far this command measured a part.
    pub fn extent(&self, part: Part, command: &str) -> Extent<'_> {
        let lost = self.unreachable.as_ref().map(|it| it.reason.as_str());
        let cause = lost.or_else(|| self.failed_phase(part, command).map(|phase| phase.reason.as_str()));
        if let Some(why) = cause {
            return if self.has_results(part) { Extent::Partial(why) } else { Extent::Failed(why) };
        }
        let ends = self.ends(part);
        let failed = ends.iter().find_map(|(outcome, why)| (*outcome == Outcome::Failed).then_some(*why));
        if let Some(why) = failed {
            return Extent::Partial(why);
        }
        let is_shortened = ends.iter().any(|(outcome, _)| *outcome == Outcome::Interrupted);
        if is_shortened { Extent::Shortened } else { Extent::Whole }
    }

    /// Whether a part that has results was cut short in a record that was ended on request: a
    /// figure of it is not that of what was asked for. **Biased** towards doubt where nothing says
    /// that the part was over by then.
    pub fn was_cut_short(&self, part: Part, command: &str) -> bool {
        let is_without = |part: Part| self.ends(part).is_empty();
        match part {
            Part::Connects => false,
            Part::Tcp(only) | Part::Udp(only) => {
                let mut ends = self.ends(part).into_iter();
                let of = |way| if matches!(part, Part::Tcp(_)) { Part::Tcp(way) } else { Part::Udp(way) };
                // The rest of what was asked for may not have begun.
                let may_lack_a_way = only.is_none()
                    && (command != "test"
                        || is_without(of(Some(Direction::Forward)))
                        || is_without(of(Some(Direction::Reverse))));
                self.has_results(part)
                    && (may_lack_a_way || ends.any(|(outcome, _)| outcome == Outcome::Interrupted))
            }
            // Transfers come after idle requests.
            Part::RoundTrip | Part::RoundTripOverTcp => {
                self.has_results(part) && is_without(Part::Tcp(None)) && is_without(Part::Udp(None))
            }
            _ => self.has_results(part),
        }
    }

    /// Whether the throughput that could not be measured may have been this one. The phase does not
    /// say which protocol and direction it had.
    fn may_have_failed(&self, part: Part, command: &str) -> bool {
        let is_complete = |way: Direction| {
            let ends = self.ends(Part::Tcp(Some(way)));
            ends.iter().any(|(outcome, _)| *outcome == Outcome::Complete)
        };
        let is_tcp_alone = command == "tcp";
        match part {
            Part::Udp(_) | Part::Matrix => !is_tcp_alone,
            // Each direction has turns of its own: a figure of one is that of a turn that ran.
            Part::Tcp(Some(way)) => !is_complete(way),
            // If TCP ran to its end both ways, it was a stream over UDP.
            Part::Tcp(None) => {
                is_tcp_alone || !(is_complete(Direction::Forward) && is_complete(Direction::Reverse))
            }
            _ => false,
        }
    }

    /// How the transfers of a part ended, and why; none of a part that has no transfers.
    fn ends(&self, part: Part) -> Vec<(Outcome, &str)> {
        let is_of = |only: Option<Direction>, way: Direction| only.is_none_or(|only| only == way);
        match part {
            Part::Tcp(only) => {
                let tcp = self.tcp.iter().filter(|it| is_of(only, it.pedigree.direction));
                tcp.map(|it| (it.outcome, it.ended_early.as_deref().unwrap_or(BROKE_OFF))).collect()
            }
            Part::Udp(only) => {
                let udp = self.udp.iter().filter(|it| is_of(only, it.pedigree.direction));
                udp.map(|it| (it.outcome, BROKE_OFF)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn has_results(&self, part: Part) -> bool {
        match part {
            Part::Connects => self.reach.is_some(),
            Part::RoundTrip => self.latency.is_some(),
            Part::RoundTripOverTcp => self.latency_tcp.is_some(),
            Part::Tcp(_) | Part::Udp(_) => !self.ends(part).is_empty(),
            Part::Trains => self.path_rates.iter().any(|it| it.rate.is_some()),
            Part::Matrix => !self.matrix.is_empty(),
            Part::Hops => self.hops.is_some(),
            Part::Reach => !self.reach_probes.is_empty(),
            Part::OneWay => self.owd.is_some(),
        }
    }
}

/// The stages of [`FailedPhase`] that parts depend on.
const MEASURE_LATENCY: &str = "measure latency";
const ATTACH_FLOW: &str = "attach a UDP flow";
const OPEN_ECHO: &str = "open the echo connection";
const SEND_TRAINS: &str = "send trains";
const MEASURE_THROUGHPUT: &str = "measure throughput";

/// Why a transfer is not whole that does not say so itself.
const BROKE_OFF: &str = "it broke off before its end";

#[cfg(test)]
mod tests {
    use netaware_units::{ByteCount, ClockSource, Span};

    use super::*;
    use crate::{
        Exchanges, Health, IpVersion, LatencyResult, Layer, Limit, LimitedBy, LossSplit, Pedigree, Reach,
        TcpCount, TcpResult, UdpResult, Unreachable,
    };

    const UP: Direction = Direction::Forward;
    const DOWN: Direction = Direction::Reverse;

    fn pedigree(method: &str, direction: Direction) -> Pedigree {
        Pedigree {
            method: method.to_owned(),
            layer: Layer::Payload,
            direction,
            version: IpVersion::V4,
            clock: ClockSource::Kernel,
            uncertainty: String::new(),
        }
    }

    fn tcp(direction: Direction, outcome: Outcome) -> TcpResult {
        TcpResult {
            pedigree: pedigree("tcp", direction),
            outcome,
            planned: None,
            ended_early: None,
            streams: 1,
            congestion: String::new(),
            goodput: None,
            goodput_interval: None,
            rounds: Vec::new(),
            counted: TcpCount::default(),
            bytes: None,
            measured: Span::ZERO,
            warm_up: None,
            retransmits: None,
            rtt: None,
            min_rtt: None,
            cwnd: None,
            queue_left: None,
            receiver_ticks: Vec::new(),
            sender_ticks: Vec::new(),
            sender: None,
            receiver: None,
            times: None,
            blocks: None,
            window_asked: None,
            rfc6349: None,
            fairness: None,
            latency_under_load: None,
            limit: Limit::new(LimitedBy::Unknown, ""),
            health: Health::default(),
        }
    }

    fn udp(direction: Direction, outcome: Outcome) -> UdpResult {
        UdpResult {
            pedigree: pedigree("udp", direction),
            outcome,
            payload: ByteCount(1472),
            planned: None,
            sent_rate: None,
            goodput: None,
            wire: None,
            exchanges: Exchanges::default(),
            sent: 0,
            not_sent: None,
            received: 0,
            packets_per_second: None,
            loss: LossSplit::default(),
            duplicates: None,
            reordered: None,
            ticks: Vec::new(),
            sender: None,
            receiver: None,
            limit: Limit::new(LimitedBy::Unknown, ""),
            health: Health::default(),
        }
    }

    fn requests(method: &str) -> LatencyResult {
        LatencyResult::before_any(pedigree(method, Direction::RoundTrip), ByteCount(64))
    }

    fn version() -> VersionResult {
        VersionResult::new(IpVersion::V4)
    }

    fn with_failed(stage: &str, of: VersionResult) -> VersionResult {
        let phase = FailedPhase { stage: stage.to_owned(), reason: "no answer".to_owned() };
        VersionResult { failed_phases: vec![phase], ..of }
    }

    fn gone(of: VersionResult) -> VersionResult {
        let (stage, reason) = ("ping".to_owned(), "it fell silent".to_owned());
        VersionResult { unreachable: Some(Unreachable { stage, reason, advice: String::new() }), ..of }
    }

    #[test]
    fn a_transfer_that_broke_off_does_not_hold_and_one_that_was_ended_on_request_does() {
        use Outcome::{Complete, Failed, Interrupted};
        let rows = [
            // The transfer, the record, want
            (Complete, Complete, true),
            (Complete, Failed, true),
            (Interrupted, Interrupted, true),
            (Interrupted, Failed, false),
            (Failed, Complete, false),
            (Failed, Failed, false),
        ];
        for (transfer, record, want) in rows {
            let over_tcp = VersionResult { tcp: vec![tcp(UP, transfer)], ..version() };
            let over_udp = VersionResult { udp: vec![udp(UP, transfer)], ..version() };
            let holds = [
                over_tcp.extent(Part::Tcp(Some(UP)), "tcp").holds(record),
                over_udp.extent(Part::Udp(Some(UP)), "udp").holds(record),
            ];
            assert_eq!(holds, [want; 2], "{transfer:?} of {record:?}");
        }
    }

    #[test]
    fn a_transfer_that_failed_makes_its_direction_partial_and_no_other() {
        let ended_early = Some("the peer closed it".to_owned());
        let failed = TcpResult { ended_early, ..tcp(UP, Outcome::Failed) };
        let transfers = vec![tcp(UP, Outcome::Complete), failed, tcp(DOWN, Outcome::Complete)];
        let of = VersionResult { tcp: transfers, ..version() };
        let extent = |part| of.extent(part, "test");
        assert_eq!(extent(Part::Tcp(Some(UP))), Extent::Partial("the peer closed it"));
        assert_eq!(extent(Part::Tcp(None)), Extent::Partial("the peer closed it"));
        assert_eq!(extent(Part::Tcp(Some(DOWN))), Extent::Whole);
        assert_eq!(extent(Part::Udp(None)), Extent::Whole);
        assert!(of.broke_off() && !of.was_lost());
        let of = VersionResult { udp: vec![udp(DOWN, Outcome::Failed)], ..version() };
        assert_eq!(of.extent(Part::Udp(Some(DOWN)), "udp"), Extent::Partial(BROKE_OFF));
        assert!(of.broke_off());
    }

    /// `tcp>1M` held on a rate that was marked as partial.
    #[test]
    fn a_part_that_was_being_measured_when_a_person_ended_it_was_cut_short() {
        let cut = VersionResult { tcp: vec![tcp(UP, Outcome::Interrupted)], ..version() };
        let is_cut = |of: &VersionResult, part, command| of.was_cut_short(part, command);
        assert!(is_cut(&cut, Part::Tcp(Some(UP)), "tcp") && is_cut(&cut, Part::Tcp(None), "tcp"));
        assert!(!is_cut(&cut, Part::Tcp(Some(DOWN)), "tcp"), "it has no figure");
        let first = VersionResult {
            latency: Some(requests("latency")),
            tcp: vec![tcp(UP, Outcome::Complete), tcp(DOWN, Outcome::Complete)],
            udp: vec![udp(UP, Outcome::Interrupted)],
            ..version()
        };
        assert!(!is_cut(&first, Part::RoundTrip, "test") && !is_cut(&first, Part::Tcp(None), "test"));
        assert!(is_cut(&first, Part::Udp(None), "test") && is_cut(&first, Part::Udp(Some(UP)), "test"));
        let idle = VersionResult { latency: Some(requests("latency")), ..version() };
        assert!(is_cut(&idle, Part::RoundTrip, "latency") && is_cut(&idle, Part::RoundTrip, "test"));
        assert!(!is_cut(&idle, Part::RoundTripOverTcp, "latency") && !is_cut(&idle, Part::Connects, "test"));
    }

    #[test]
    fn a_version_that_was_lost_has_no_whole_part_and_one_that_was_never_there_did_not_break_off() {
        let never = gone(version());
        assert!(!never.was_lost() && !never.broke_off());
        let before_a_figure = VersionResult { reach: Some(Reach::default()), ..never.clone() };
        assert!(before_a_figure.was_lost() && before_a_figure.broke_off());
        let lost = VersionResult { tcp: vec![tcp(UP, Outcome::Complete)], ..never };
        assert!(lost.was_lost() && lost.broke_off());
        assert_eq!(lost.extent(Part::Tcp(Some(UP)), "tcp"), Extent::Partial("it fell silent"));
        assert_eq!(lost.extent(Part::Tcp(Some(DOWN)), "tcp"), Extent::Failed("it fell silent"));
        assert_eq!(lost.extent(Part::Connects, "tcp"), Extent::Failed("it fell silent"));
        assert!(!version().broke_off());
        assert_eq!(version().extent(Part::Hops, "hops"), Extent::Whole);
    }

    #[test]
    fn a_phase_that_failed_counts_against_the_parts_that_depend_on_it() {
        use Part::{Hops, Matrix, RoundTrip, RoundTripOverTcp, Trains};
        let parts = [RoundTrip, RoundTripOverTcp, Part::Tcp(None), Part::Udp(None), Trains, Matrix, Hops];
        let both = VersionResult {
            latency: Some(requests("latency")),
            latency_tcp: Some(requests(OVER_TCP)),
            ..version()
        };
        let over_tcp = VersionResult { latency: Some(requests(OVER_TCP)), ..version() };
        let rows: [(&str, &VersionResult, &[Part]); 7] = [
            (MEASURE_LATENCY, &both, &[RoundTrip, RoundTripOverTcp]),
            (ATTACH_FLOW, &both, &[RoundTrip]),
            (OPEN_ECHO, &both, &[RoundTripOverTcp]),
            (OPEN_ECHO, &over_tcp, &[RoundTrip, RoundTripOverTcp]),
            (SEND_TRAINS, &both, &[Trains]),
            (MEASURE_THROUGHPUT, &both, &[Part::Tcp(None), Part::Udp(None), Matrix]),
            ("something else", &both, &[]),
        ];
        for (stage, of, want) in rows {
            let of = with_failed(stage, of.clone());
            let found: Vec<Part> =
                parts.into_iter().filter(|part| of.failed_phase(*part, "test").is_some()).collect();
            assert_eq!(found, want, "{stage}");
            assert!(of.broke_off(), "{stage}");
        }
        let none_came = with_failed(OPEN_ECHO, version());
        assert_eq!(none_came.extent(RoundTrip, "latency"), Extent::Failed("no answer"));
        let few_came = with_failed(MEASURE_LATENCY, both);
        assert_eq!(few_came.extent(RoundTripOverTcp, "latency"), Extent::Partial("no answer"));
    }

    #[test]
    fn throughput_that_failed_is_not_that_of_a_direction_that_ran_to_its_end() {
        let up = VersionResult { tcp: vec![tcp(UP, Outcome::Complete)], ..version() };
        let both = VersionResult {
            tcp: vec![tcp(UP, Outcome::Complete), tcp(DOWN, Outcome::Complete)],
            ..version()
        };
        let (up, both) = (with_failed(MEASURE_THROUGHPUT, up), with_failed(MEASURE_THROUGHPUT, both));
        let rows = [
            // The version, the command, the part, whether it is affected
            (&up, "tcp", Part::Tcp(Some(UP)), false),
            (&up, "tcp", Part::Tcp(Some(DOWN)), true),
            (&up, "tcp", Part::Tcp(None), true),
            (&both, "tcp", Part::Tcp(None), true),
            (&both, "tcp", Part::Udp(None), false),
            (&both, "tcp", Part::Matrix, false),
            (&up, "test", Part::Tcp(None), true),
            (&both, "test", Part::Tcp(None), false),
            (&both, "test", Part::Tcp(Some(DOWN)), false),
            (&both, "test", Part::Udp(Some(UP)), true),
            (&both, "matrix", Part::Matrix, true),
        ];
        for (n, (of, command, part, want)) in rows.into_iter().enumerate() {
            assert_eq!(of.failed_phase(part, command).is_some(), want, "row {n}: {part:?} in {command}");
        }
    }
}
