//! What one version of a matrix has yielded so far, and what is left out because of it.

use std::collections::{BTreeMap, BTreeSet};

use netaware_probe::matrix;
use netaware_record::{
    Direction, Layer, MatrixProtocol, MatrixResult, MatrixRun, Outcome, PathFacts, Pedigree,
};
use netaware_units::{ByteCount, ClockSource, SendRate, Span};

use super::plan::Step;
use super::{Done, HIGHEST_SEEN, may_burst};
use crate::lane::Lane;

/// What one version has yielded so far.
pub(super) struct Ledger<'a> {
    steps: &'a [Step],
    /// One entry per step.
    runs: Vec<Vec<MatrixRun>>,
    /// For how long nothing had come at the end of each of them, where that is known.
    silent: Vec<Vec<Option<Span>>>,
    stamped: bool,
    /// Transfers in a row that could not begin, by protocol.
    refused: BTreeMap<MatrixProtocol, u32>,
    /// Steps of transfers of which next to nothing arrived, and none as large has ended since.
    in_vain: Vec<usize>,
    /// Protocols of which larger cells are left out, which has been said.
    explained: BTreeSet<MatrixProtocol>,
    /// What the path was seen to carry of datagrams: where that is not known there are none. Until
    /// it is looked into nothing speaks against any of them.
    pub(super) carried: Option<SendRate>,
    /// The most payload of a transfer that the responder's owner allows.
    pub(super) most: Option<ByteCount>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(steps: &'a [Step]) -> Self {
        Self {
            steps,
            runs: vec![Vec::new(); steps.len()],
            silent: vec![Vec::new(); steps.len()],
            stamped: false,
            refused: BTreeMap::new(),
            in_vain: Vec::new(),
            explained: BTreeSet::new(),
            carried: Some(HIGHEST_SEEN),
            most: None,
        }
    }

    /// Whether the responder's owner allows a transfer of this size.
    pub(super) fn allows(&self, step: Step) -> bool {
        self.most.is_none_or(|most| step.payload() <= most)
    }

    /// A sentence about the cells that the responder's owner does not allow, if there are any.
    pub(super) fn above_the_cap(&self) -> Option<String> {
        let most = self.most?;
        let has_larger = self.steps.iter().any(|step| !self.allows(*step));
        has_larger.then(|| {
            format!(
                "the responder's owner allows transfers of no more than {most}: larger cells are left out"
            )
        })
    }

    fn has_given_up(&self, protocol: MatrixProtocol) -> bool {
        self.refused.get(&protocol).is_some_and(|refused| *refused >= MOST_REFUSED)
    }

    /// Notes whether next to nothing arrived of a transfer that packets of the usual size carry.
    fn note_arrival(&mut self, at: usize, run: &MatrixRun) {
        let step = self.steps[at];
        if run.outcome == Outcome::Complete {
            // A transfer in small blocks may end although large packets vanish.
            let steps = self.steps;
            let has_large = step.pair.block >= SHORT_PACKETS;
            self.in_vain.retain(|it| !is_tcp(step) || !(has_large || is_within(steps[*it], step)));
        } else if is_tcp(step)
            && step.pair.bytes >= SHORT_PACKETS
            && run.server.is_some_and(|server| server.bytes < SHORT_PACKETS)
        {
            self.in_vain.push(at);
        }
    }

    /// Steps of the last transfers over TCP, where of several nothing arrived any more though one
    /// as large had ended before.
    fn ceased(&self) -> &[usize] {
        let ended = |at: usize| self.runs[at].iter().any(|run| run.outcome == Outcome::Complete);
        let as_large = |one: usize, other: usize| {
            is_tcp(self.steps[other]) && is_within(self.steps[one], self.steps[other])
        };
        let ended_before =
            |one: &usize| (0..self.steps.len()).any(|other| as_large(*one, other) && ended(other));
        let has_ceased = self.in_vain.len() >= MOST_IN_VAIN && self.in_vain.iter().any(ended_before);
        if has_ceased { &self.in_vain } else { &[] }
    }

    /// Whether a cell is not run, or not any more: the responder's owner does not allow it, its
    /// datagrams would fill the path, transfers of its protocol cannot begin, or it is no smaller
    /// than one of two that failed.
    pub(super) fn leaves_out(&self, at: usize) -> bool {
        let step = self.steps[at];
        if !self.allows(step) {
            return true;
        }
        let fits = |rate| may_burst(step.pair.bytes, rate);
        if step.protocol == MatrixProtocol::Udp && !self.carried.is_some_and(fits) {
            return true;
        }
        let failed = self.failed(step.protocol);
        let is_as_large = |failed: &usize| is_within(self.steps[*failed], step);
        self.has_given_up(step.protocol)
            || (failed.len() >= MOST_FAILED && failed.iter().any(is_as_large))
            || (is_tcp(step) && self.ceased().iter().any(is_as_large))
    }

    /// The cells that are still to come and how often, of which so many have been passed in all
    /// rounds.
    pub(super) fn to_come(&self, passed: usize, rounds: u16) -> impl Iterator<Item = (usize, i64)> {
        let steps = self.steps.len();
        let still =
            move |at: usize| i64::from(rounds) - passed.saturating_sub(at).div_ceil(steps.max(1)) as i64;
        (0..steps).filter(|at| !self.leaves_out(*at)).map(move |at| (at, still(at)))
    }

    /// Cells of a protocol none of whose transfers moved all of its bytes, and no transfer of a
    /// cell that is as large did.
    fn failed(&self, protocol: MatrixProtocol) -> Vec<usize> {
        let of_protocol = || (0..self.steps.len()).filter(move |at| self.steps[*at].protocol == protocol);
        let is_whole = |at: usize| self.runs[at].iter().any(|run| run.outcome == Outcome::Complete);
        let is_contradicted = |at: usize| {
            of_protocol().any(|other| is_within(self.steps[at], self.steps[other]) && is_whole(other))
        };
        of_protocol().filter(|at| !self.runs[*at].is_empty() && !is_contradicted(*at)).collect()
    }

    /// The cells of which two have failed, or two transfers in a row of which nothing arrived any
    /// more, the first time that it is so.
    pub(super) fn is_to_be_explained(&mut self, protocol: MatrixProtocol) -> Option<Shortfall> {
        let failed = self.failed(protocol);
        if failed.len() >= MOST_FAILED && !self.has_given_up(protocol) && self.explained.insert(protocol) {
            let arrived = |at: usize| self.runs[at].iter().filter_map(|run| Some(run.server?.bytes)).max();
            // Small blocks pass where large packets do not, so the one of which least arrived tells
            // most.
            let step = self.steps[*failed.first()?];
            let least = |at: &usize| (arrived(*at).is_none(), arrived(*at), *at);
            let worst = failed.into_iter().min_by_key(least)?;
            let (of, arrived) = (self.steps[worst].pair.bytes, arrived(worst));
            let silent = self.silence(worst);
            return Some(Shortfall { step, of, arrived, silent, kind: ShortfallKind::OfSize });
        }
        let at = self.ceased().iter().copied().min_by_key(|at| self.steps[*at].pair.bytes)?;
        let arrived = self.runs[at].last().and_then(|run| Some(run.server?.bytes));
        let step = self.steps[at];
        let (of, silent) = (step.pair.bytes, self.silence(at));
        let shortfall = Shortfall { step, of, arrived, silent, kind: ShortfallKind::Ceased };
        // Large packets vanish with TCP_NODELAY and without it alike.
        let is_new = protocol != MatrixProtocol::Udp && self.explained.insert(protocol);
        self.explained.extend([MatrixProtocol::Tcp, MatrixProtocol::TcpNodelay]);
        is_new.then_some(shortfall)
    }

    /// For how long nothing had come when the transfers of a cell ended that failed: the shortest
    /// time, if it is known of all of them.
    fn silence(&self, at: usize) -> Option<Span> {
        let ended = self.runs[at].iter().zip(&self.silent[at]);
        let failed = ended.filter(|(run, _)| run.outcome != Outcome::Complete);
        failed.map(|(_, silent)| *silent).min().flatten()
    }

    pub(super) fn enter(&mut self, lane: &mut Lane, at: usize, round: u16, done: Option<Done>) {
        let step = self.steps[at];
        let Some(Done { mut run, stamped, silent }) = done else {
            let refused = self.refused.entry(step.protocol).or_default();
            *refused += 1;
            if *refused == MOST_REFUSED {
                lane.warn(&format!("{} is left out: transfers could not begin", step.protocol.name()));
            }
            self.runs[at].push(matrix::tcp_run(round, Outcome::Failed, None, None));
            self.silent[at].push(None);
            return;
        };
        self.refused.remove(&step.protocol);
        self.stamped |= stamped;
        run.round = round;
        if run.outcome == Outcome::Complete && run.client.is_some_and(|end| end.bytes < step.pair.bytes) {
            // Out of patience: the ends say that they kept to the plan's time.
            run.outcome = Outcome::Interrupted;
        }
        self.note_arrival(at, &run);
        self.runs[at].push(run);
        self.silent[at].push(silent);
    }

    /// A sentence for each protocol some of whose transfers did not move all of their bytes.
    pub(super) fn shortfalls(&self) -> Vec<String> {
        let of = |protocol: MatrixProtocol| {
            let steps = self.steps.iter().zip(self.runs.iter().zip(&self.silent));
            let entries = steps.filter(|(step, _)| step.protocol == protocol);
            let runs = || {
                entries.clone().flat_map(|(step, (runs, silent))| {
                    runs.iter().zip(silent).map(move |(run, silent)| (step, run, *silent))
                })
            };
            let mut failed = runs().filter(|(_, run, _)| run.outcome != Outcome::Complete);
            let (first, run, silent) = failed.next()?;
            let (count, all) = (failed.count() + 1, runs().count());
            Some(format!(
                "{count} of {all} transfers over {} did not move all of their bytes, the first one {} B in blocks of \
                 {} B{}; they are in no figure",
                protocol.name(),
                first.pair.bytes.0,
                first.pair.block.0,
                fate(run, silent),
            ))
        };
        MatrixProtocol::ALL.into_iter().filter_map(of).collect()
    }

    pub(super) fn close(self, lane: &Lane) -> Vec<MatrixResult> {
        let mut results: Vec<MatrixResult> = Vec::new();
        for (step, runs) in self.steps.iter().zip(self.runs) {
            if runs.iter().all(|run| run.client.is_none_or(|end| end.bytes == ByteCount(0))) {
                continue;
            }
            let cell = matrix::cell(step.pair.bytes, step.pair.block, runs);
            match results.iter_mut().find(|result| result.protocol == step.protocol) {
                Some(result) => result.cells.push(cell),
                None => results.push(MatrixResult {
                    pedigree: pedigree(lane, step.protocol, self.stamped),
                    protocol: step.protocol,
                    cells: vec![cell],
                }),
            }
        }
        results
    }
}

/// What became of the bytes of a transfer that did not move all of them, as a part of a sentence.
fn fate(run: &MatrixRun, silent: Option<Span>) -> String {
    let stopped = silent.filter(|silent| *silent >= LONG_SILENCE);
    match (run.client, run.server, stopped) {
        (None, None, _) => String::new(),
        (Some(_), None, _) => ", and the other end did not report what arrived".to_owned(),
        (_, Some(end), None) => format!(", of which {} B arrived", end.bytes.0),
        (_, Some(end), Some(silent)) => {
            format!(", of which {} B arrived, and nothing more for the last {silent}", end.bytes.0)
        }
    }
}

fn is_tcp(step: Step) -> bool {
    step.protocol != MatrixProtocol::Udp
}

/// Whether one cell has neither more bytes nor larger blocks than another.
fn is_within(one: Step, other: Step) -> bool {
    one.pair.bytes <= other.pair.bytes && one.pair.block <= other.pair.block
}

/// Two transfers that failed, by the smaller one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shortfall {
    step: Step,
    /// How much the transfer was to move of which the least arrived.
    of: ByteCount,
    /// How much of it arrived, where the other end reported that.
    arrived: Option<ByteCount>,
    /// For how long nothing had come then, where that is known.
    silent: Option<Span>,
    kind: ShortfallKind,
}

/// Which cells are left out because of two transfers that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShortfallKind {
    /// Cells that are as large.
    OfSize,
    /// The same; but transfers as large had ended before.
    Ceased,
}

impl Shortfall {
    /// What the transfer was to move.
    pub(super) fn asked(self) -> ByteCount {
        self.of
    }

    /// So little arrived that packets of the path's usual size seem not to.
    pub(super) fn is_of_large_packets(self) -> bool {
        self.arrived.is_none_or(|arrived| arrived < SHORT_PACKETS) && self.of >= SHORT_PACKETS
    }

    /// Transfers had ended before, and then nothing came any more: the protocol was not measured to
    /// its end.
    pub(super) fn has_ceased(self) -> bool {
        self.kind == ShortfallKind::Ceased
    }

    /// Something arrived, and then nothing more for most of the time: more time does not help.
    fn stopped_for(self, patience: Span) -> Option<Span> {
        self.silent.filter(|silent| *silent >= LONG_SILENCE && *silent * 2 >= patience)
    }

    /// What is left out, and the likely cause. `cap` is what the responder's owner allows, where a
    /// transfer so large cannot end within it.
    pub(super) fn explained(self, path: Option<&PathFacts>, patience: Span, cap: Option<&str>) -> String {
        let black_hole = path.and_then(PathFacts::black_hole);
        let (bytes, of, arrived) = (self.step.pair.bytes.0, self.of.0, self.arrived);
        let why = match (black_hole, arrived) {
            (Some(hole), _) if self.is_of_large_packets() => {
                format!("{hole}, and a longer --patience does not help")
            }
            (_, Some(arrived)) if cap.is_some() => format!(
                "of {of} B {} B arrived, and the responder's owner allows {}",
                arrived.0,
                cap.unwrap_or_default()
            ),
            (_, Some(arrived)) if self.has_ceased() => {
                format!("of {of} B only {} B arrived in {patience}", arrived.0)
            }
            (_, Some(arrived)) if self.is_of_large_packets() => format!(
                "of {of} B only {} B arrived in {patience}; large packets seem to vanish on the path",
                arrived.0
            ),
            (_, Some(arrived)) => match self.stopped_for(patience) {
                Some(silent) => format!(
                    "of {of} B {} B arrived, and nothing more came for {silent}, so that it had stopped: a longer \
                     --patience does not help",
                    arrived.0
                ),
                None => format!(
                    "of {of} B {} B arrived in {patience}; a longer --patience would let them end",
                    arrived.0
                ),
            },
            (_, None) => "the other end did not report what arrived".to_owned(),
        };
        if self.has_ceased() {
            return format!(
                "of two transfers over TCP nothing arrived any more, though others as large had ended before; cells that \
                 are as large are left out from here on ({bytes} B in blocks of {} B and more): {why}",
                self.step.pair.block.0
            );
        }
        format!(
            "two transfers over {} failed, and cells that are as large are left out from here on ({bytes} B in blocks of \
             {} B and more): {why}",
            self.step.protocol.name(),
            self.step.pair.block.0
        )
    }
}

fn pedigree(lane: &Lane, protocol: MatrixProtocol, stamped: bool) -> Pedigree {
    let by_kernel = stamped && protocol == MatrixProtocol::Udp;
    Pedigree {
        method: "matrix".into(),
        layer: Layer::Payload,
        direction: Direction::Forward,
        version: lane.version,
        clock: if by_kernel { ClockSource::Kernel } else { ClockSource::Application },
        uncertainty: "median of the runs, between the smallest and the largest".into(),
    }
}

/// A protocol that a firewall swallows costs seconds each time.
const MOST_REFUSED: u32 = 2;
/// Each costs the whole patience.
const MOST_FAILED: usize = 2;
/// So does each of these.
const MOST_IN_VAIN: usize = 2;
/// TCP has sent again more than once in so long on most paths.
const LONG_SILENCE: Span = Span::from_secs(1);
/// What a few packets that pass every path of IPv6 carry (RFC 8200 §5).
const SHORT_PACKETS: ByteCount = ByteCount(1280);

#[cfg(test)]
mod tests {
    use netaware_record::{IpVersion, MatrixEnd, MtuFinding};

    use super::super::plan::Pair;
    use super::*;

    fn steps(protocol: MatrixProtocol) -> Vec<Step> {
        let pairs =
            [(1_000, 50), (1_000, 1_000), (10_000, 50), (10_000, 5_000), (100_000, 50), (100_000, 5_000)];
        let pair = |(bytes, block)| Pair { bytes: ByteCount(bytes), block: ByteCount(block) };
        pairs.into_iter().map(|it| Step { protocol, pair: pair(it) }).collect()
    }

    fn done(sent: u64, arrived: u64) -> Done {
        let end = |bytes| Some(MatrixEnd { bytes: ByteCount(bytes), ..MatrixEnd::default() });
        let run = matrix::tcp_run(0, Outcome::Complete, None, None);
        let run = MatrixRun { client: end(sent), server: end(arrived), ..run };
        Done { run, stamped: false, silent: None }
    }

    /// What is still run after each of these transfers: step, bytes sent, bytes that arrived.
    fn left(transfers: &[(usize, u64, u64)], of: &[Step]) -> Vec<usize> {
        let (mut ledger, mut lane) = (Ledger::new(of), Lane::empty(IpVersion::V6));
        for (at, sent, arrived) in transfers {
            ledger.enter(&mut lane, *at, 0, Some(done(*sent, *arrived)));
        }
        (0..of.len()).filter(|at| !ledger.leaves_out(*at)).collect()
    }

    #[test]
    fn a_cap_on_bytes_leaves_out_the_cells_above_it_and_no_others() {
        let tcp = steps(MatrixProtocol::Tcp);
        let mut ledger = Ledger::new(&tcp);
        assert_eq!(ledger.above_the_cap(), None, "there is no cap");
        ledger.most = Some(ByteCount(10_000));
        let left = |ledger: &Ledger<'_>| (0..6).filter(|at| !ledger.leaves_out(*at)).collect::<Vec<_>>();
        assert_eq!(left(&ledger), [0, 1, 2, 3]);
        let mut lane = Lane::empty(IpVersion::V6);
        for (at, step) in tcp.iter().enumerate().take(4) {
            let bytes = step.pair.bytes.0;
            ledger.enter(&mut lane, at, 0, Some(done(bytes, bytes)));
        }
        assert_eq!(left(&ledger), [0, 1, 2, 3]);
        assert!(
            ledger.shortfalls().is_empty() && lane.warnings.is_empty(),
            "what is not allowed has not failed"
        );
        let said = ledger.above_the_cap().unwrap();
        assert!(said.ends_with("larger cells are left out"), "{said}");
        ledger.most = Some(ByteCount(100_000));
        assert_eq!(ledger.above_the_cap(), None, "all of them fit");
        // The last datagram is as long as the others: the responder counts what may leave.
        let uneven = Step {
            protocol: MatrixProtocol::Udp,
            pair: Pair { bytes: ByteCount(1_000), block: ByteCount(300) },
        };
        ledger.most = Some(ByteCount(1_000));
        assert!(!ledger.allows(uneven));
        assert!(ledger.allows(Step { protocol: MatrixProtocol::Tcp, ..uneven }));
    }

    #[test]
    fn a_black_hole_does_not_cost_the_whole_patience_for_every_cell() {
        let steps = steps(MatrixProtocol::Tcp);
        let small = [(0, 1_000, 1_000), (1, 1_000, 1_000)];
        let after = |more: &[(usize, u64, u64)]| left(&[&small[..], more].concat(), &steps);
        assert_eq!(after(&[(2, 9_000, 50)]), [0, 1, 2, 3, 4, 5], "one may be bad luck");
        assert_eq!(after(&[(2, 9_000, 50), (3, 5_000, 0)]), [0, 1]);
        // Small blocks pass where large ones do not.
        assert_eq!(after(&[(2, 10_000, 10_000), (3, 5_000, 0), (5, 5_000, 0)]), [0, 1, 2, 4]);
        // A larger transfer that ended shows that it was not the size.
        assert_eq!(after(&[(2, 9_000, 50), (3, 10_000, 10_000), (4, 90_000, 0)]), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_path_that_stops_carrying_in_the_midst_does_not_cost_the_patience_of_every_transfer() {
        let steps = steps(MatrixProtocol::Tcp);
        let whole: Vec<_> =
            steps.iter().enumerate().map(|(at, it)| (at, it.pair.bytes.0, it.pair.bytes.0)).collect();
        let after = |more: &[(usize, u64, u64)]| left(&[&whole[..], more].concat(), &steps);
        assert_eq!(after(&[(2, 9_000, 0)]).len(), 6, "one may be bad luck");
        assert_eq!(after(&[(2, 9_000, 0), (4, 9_000, 5_000)]).len(), 6, "something arrived");
        assert_eq!(after(&[(2, 9_000, 0), (3, 10_000, 10_000), (4, 9_000, 0)]).len(), 6, "one ended");
        // Short ones pass where packets of the usual size do not.
        assert_eq!(after(&[(2, 9_000, 0), (0, 1_000, 1_000), (4, 9_000, 0)]), [0, 1]);
        let (mut ledger, mut lane) = (Ledger::new(&steps), Lane::empty(IpVersion::V6));
        for (at, sent, arrived) in whole.into_iter().chain([(2, 9_000, 0), (4, 9_000, 0)]) {
            assert_eq!(ledger.is_to_be_explained(MatrixProtocol::Tcp), None);
            ledger.enter(&mut lane, at, 0, Some(done(sent, arrived)));
        }
        let found = ledger.is_to_be_explained(MatrixProtocol::Tcp).unwrap();
        assert_eq!(ledger.is_to_be_explained(MatrixProtocol::Tcp), None);
        assert!(found.has_ceased() && found.is_of_large_packets());
        let said = found.explained(None, Span::from_secs(10), None);
        assert!(said.contains("nothing arrived any more, though others as large had ended before"), "{said}");
    }

    #[test]
    fn small_blocks_that_pass_do_not_make_a_black_hole_a_matter_of_patience() {
        let steps = steps(MatrixProtocol::TcpNodelay);
        let (mut ledger, mut lane) = (Ledger::new(&steps), Lane::empty(IpVersion::V4));
        // Nothing of 10 kB in large blocks; 9 kB of 100 kB in small ones.
        ledger.enter(&mut lane, 3, 0, Some(done(5_000, 0)));
        ledger.enter(&mut lane, 4, 0, Some(done(90_000, 9_000)));
        let found = ledger.is_to_be_explained(MatrixProtocol::TcpNodelay).unwrap();
        assert!(found.is_of_large_packets(), "{found:?}");
    }

    #[test]
    fn what_waited_in_vain_is_explained_once_and_not_by_too_little_patience() {
        let steps = steps(MatrixProtocol::Tcp);
        let (mut ledger, mut lane) = (Ledger::new(&steps), Lane::empty(IpVersion::V6));
        ledger.enter(&mut lane, 2, 0, Some(done(9_000, 50)));
        assert_eq!(ledger.is_to_be_explained(MatrixProtocol::Tcp), None);
        ledger.enter(&mut lane, 3, 0, Some(done(5_000, 0)));
        let found = ledger.is_to_be_explained(MatrixProtocol::Tcp).unwrap();
        assert_eq!(ledger.is_to_be_explained(MatrixProtocol::Tcp), None);
        let hole = PathFacts { mtu: Some(1300), mtu_finding: MtuFinding::BlackHole, ..PathFacts::default() };
        let patience = Span::from_secs(10);
        let said = [found.explained(Some(&hole), patience, None), found.explained(None, patience, None)];
        assert!(said[0].contains("packets above 1300 bytes vanish and no router says so"), "{said:?}");
        assert!(said[1].contains("of 10000 B only 0 B arrived in 10.0 s; large packets seem"), "{said:?}");
        let slow = Shortfall { arrived: Some(ByteCount(8_000)), ..found };
        assert!(slow.explained(None, patience, None).contains("a longer --patience"), "{slow:?}");
        let capped = slow.explained(None, patience, Some("transfers no longer than 2.00 s"));
        assert!(
            capped.ends_with("arrived, and the responder's owner allows transfers no longer than 2.00 s")
        );
        let short = ledger.shortfalls();
        assert_eq!(short.len(), 1);
        assert!(
            short[0].starts_with("2 of 2 transfers over TCP did not move all of their bytes"),
            "{short:?}"
        );
    }

    /// A path that drops a connection after 60 kB was said to need a longer --patience.
    #[test]
    fn a_transfer_that_stopped_for_good_needs_no_longer_patience() {
        let steps = steps(MatrixProtocol::Tcp);
        let patience = Span::from_secs(5);
        let said = |silent_ms: i64| {
            let (mut ledger, mut lane) = (Ledger::new(&steps), Lane::empty(IpVersion::V4));
            for at in [4, 5] {
                let silent = Some(Span::from_millis(silent_ms));
                ledger.enter(&mut lane, at, 0, Some(Done { silent, ..done(90_000, 58_420) }));
            }
            let found = ledger.is_to_be_explained(MatrixProtocol::Tcp).unwrap();
            (found.explained(None, patience, None), ledger.shortfalls().concat())
        };
        let (stopped, short) = said(4_900);
        let want = "of 100000 B 58420 B arrived, and nothing more came for 4.90 s, so that it had stopped: a longer \
                    --patience does not help";
        assert!(stopped.ends_with(want), "{stopped}");
        let want = "the first one 100000 B in blocks of 50 B, of which 58420 B arrived, and nothing more for the last \
                    4.90 s; they are in no figure";
        assert!(short.ends_with(want), "{short}");
        let (slow, short) = said(300);
        assert!(
            slow.ends_with("58420 B arrived in 5.00 s; a longer --patience would let them end"),
            "{slow}"
        );
        assert!(short.ends_with("50 B, of which 58420 B arrived; they are in no figure"), "{short}");
    }
}
