//! A path's rate as the record has it.

use netaware_path::{AWAY_TOO_LONG, Bound, Estimate, Flag, Instrument, NoFigure, Use};
use netaware_record::{
    Direction, ETHERNET_OVERHEAD, HonestRate, Interval, IpVersion, Layer, MissingRate, NoRate, PathFacts,
    PathMetric, PathRate, PathUse, PathVerdict, Pedigree, RateBound, RateMode, RatePoint, ReceiverTick,
    TcpResult, TightLink, VersionResult,
};
use netaware_stats::ceasing::Ceased;
use netaware_stats::quantile::linear;
use netaware_units::{BitRate, ByteCount, ClockSource, Span};

use crate::estimation::interval;
use crate::host::During;
use crate::trains::Silence;

/// What a run of an estimator came to.
pub(crate) struct Estimated {
    /// The figure, or why there is none.
    pub(crate) answer: Result<Estimate, NoFigure>,
    pub(crate) tight: Option<netaware_path::available::TightLink>,
    pub(crate) modes: Vec<netaware_path::RateMode>,
    /// Largest IP packet, bytes.
    pub(crate) packet: u32,
    pub(crate) sent: u64,
    /// IP bytes of these.
    pub(crate) sent_bytes: u64,
    pub(crate) received: u64,
    /// Of these, stamped by a program because the kernel had no stamp.
    pub(crate) unstamped: u64,
    /// In which they were sent, pauses between trains included.
    pub(crate) took: Span,
    pub(crate) instrument: Instrument,
    /// IP and UDP, bytes.
    pub(crate) headers: u32,
    /// What this host did meanwhile.
    pub(crate) during: During,
    /// What it can do with such packets in the method's way.
    pub(crate) host: Option<HonestRate>,
    /// What has not come at the end.
    pub(crate) silence: Silence,
    /// That was longer than volleys are silent: the method was not run to its end.
    pub(crate) ceased: Option<Ceased>,
    /// The most bytes of a test that the responder's owner allows, where the method ended at that.
    pub(crate) capped: Option<ByteCount>,
}

/// The result of one direction over one version.
pub(crate) fn result(
    metric: PathMetric,
    version: IpVersion,
    direction: Direction,
    done: &Estimated,
) -> PathRate {
    let answer = done.answer.as_ref().ok();
    let missing = done.answer.as_ref().err().map(|why| missing(*why, done.silence, direction));
    let missing = missing.map(|why| of_a_capped_test(why, done.capped));
    let of_packet = |bytes: u32| {
        let share = f64::from(bytes) / f64::from(done.packet.max(1));
        answer.map(|answer| BitRate((told_rate(answer).estimate * share).max(0.0) as u64))
    };
    // A method counts what it has asked for: where it was cut, not all of that has left.
    let bytes = ByteCount(done.sent_bytes);
    let load = BitRate::mean(bytes, done.took).unwrap_or_default();
    let flags = noticed(answer);
    let words = words(answer);
    let silent = Some(done.silence).filter(Silence::is_told);
    let is_silent = silent.is_some()
        || missing.as_ref().is_some_and(|it| matches!(it.reason, NoRate::NothingCame | NoRate::WentSilent));
    PathRate {
        pedigree: Pedigree {
            method: answer.map_or("none", |answer| answer.method).to_owned(),
            layer: Layer::Ip,
            direction,
            version,
            clock: clock(done),
            uncertainty: uncertainty(answer),
        },
        metric,
        rate: answer.map(told_rate),
        bound: bound(answer),
        tight_link: done.tight.as_ref().filter(|_| answer.is_some()).map(tight_link),
        payload: of_packet(done.packet.saturating_sub(done.headers)),
        ethernet: of_packet(done.packet + ETHERNET_OVERHEAD),
        packet: done.packet,
        packets: done.sent,
        received: done.received,
        bytes,
        took: done.took,
        load,
        flags: words.into_iter().chain(is_silent.then(|| SILENT.to_owned())).collect(),
        remarks: flags
            .iter()
            .map(|flag| sentence(flag, bound(answer), direction))
            .chain(late_stamps(done))
            .chain(answer.and_then(|answer| limit(answer, done)))
            .chain(answer.filter(|_| metric == PathMetric::Available).and_then(|answer| unseen(answer, load)))
            .chain(silent.filter(|_| missing.is_none()).map(silence))
            .chain(missing.iter().map(|missing| format!("no figure: {}", missing.because)))
            .collect(),
        missing,
        send_gap: done.instrument.send_gap,
        stamp_error: Span(done.instrument.stamp_error() as i64),
        health: done.during.health(),
        host: done.host.clone(),
        fastest_sent: done.during.fastest_sent(),
        modes: done.modes.iter().take(MOST_MODES).map(mode).collect(),
        over_time: Vec::new(),
    }
}

/// A rate for the record. The figure of a bound is the end that bounds: nothing else is known.
fn told_rate(answer: &Estimate) -> Interval {
    let rate = interval(&answer.rate);
    let estimate = match answer.bound {
        Bound::None => rate.estimate,
        Bound::AtLeast => rate.lo,
        Bound::AtMost => rate.hi,
    };
    Interval { estimate, ..rate }
}

/// Says that a token bucket may have hidden behind its credit, where the method sent so little that
/// a bucket that lets much less than the figure through would have stayed full.
fn unseen(answer: &Estimate, load: BitRate) -> Option<String> {
    let explains = |flag: &Flag| {
        matches!(flag, Flag::Shaped { .. } | Flag::Policed { .. } | Flag::PathChanged | Flag::Slower { .. })
    };
    let is_plain = answer.bound == Bound::None && !answer.flags.iter().any(explains);
    let is_little = (load.0 as f64) < LITTLE * answer.rate.estimate;
    (is_plain && is_little).then(|| format!("{load} {UNSEEN}"))
}

/// Marks each figure that a transfer of the same direction contradicts: trains are too short to
/// spend a large credit, and a transfer is not. Those that were `cut` by an outage contradict none.
/// Where a transfer says whether there is such a credit, nothing is said of one that may be there.
pub(crate) fn mark_peaks(result: &mut VersionResult, cut: &[(Direction, u16)]) {
    for rate in &mut result.path_rates {
        let is_shaped = rate.flags.iter().any(|flag| flag == "shaped");
        let usable = rate.metric != PathMetric::Maximum && rate.bound != RateBound::AtMost && !is_shaped;
        let Some(figure) = rate.payload.filter(|_| usable) else { continue };
        let whole = |it: &&TcpResult| !cut.contains(&(it.pedigree.direction, it.streams));
        let mut of_direction =
            result.tcp.iter().filter(|it| it.pedigree.direction == rate.pedigree.direction).filter(whole);
        if of_direction.clone().any(|it| says_what_lasts(&it.receiver_ticks)) {
            rate.remarks.retain(|remark| !remark.ends_with(UNSEEN));
        }
        let held = of_direction.find_map(|it| held_down(figure.0 as f64, &it.receiver_ticks));
        if let Some((first, later)) = held {
            rate.flags.push("peak".to_owned());
            rate.remarks.push(format!(
                "a transfer over TCP came at {} at first and at {} in its second half: the figure is that of short \
                 bursts ({} were sent for it), and longer transfers get less, as behind a token bucket",
                BitRate(first as u64),
                BitRate(later as u64),
                rate.bytes
            ));
        }
    }
}

/// Payload in bit/s at first and later of a round that came about as fast as `figure` and then, for
/// all of its second half, at a lower rate that stayed the same. What loss makes of TCP varies.
pub(super) fn held_down(figure: f64, ticks: &[ReceiverTick]) -> Option<(f64, f64)> {
    rounds(ticks).filter(|round| is_long(round)).find_map(|round| {
        let sorted = |ticks: &[ReceiverTick]| {
            let rate = |it: &ReceiverTick| it.bytes.0 as f64 * 8.0 / it.length.secs_f64().max(1e-9);
            let mut rates: Vec<f64> = ticks.iter().map(rate).collect();
            rates.sort_unstable_by(f64::total_cmp);
            rates
        };
        let (early, late) = round.split_at(round.len() / 2);
        let (early, late) = (sorted(early), sorted(late));
        // Single slices may be of packets that a host had gathered.
        let first = early.get(early.len().checked_sub(2)?).copied()?;
        let [low, later, high] = [0.1, 0.5, 0.9].map(|share| linear(&late, share));
        let (low, later, high) = (low?, later?, high?);
        // A path that carries nothing holds no rate.
        let is_held = later > 0.0
            && first >= REACHED * figure
            && high <= HELD_DOWN * figure
            && high - low <= STAYS * later;
        is_held.then_some((first, later))
    })
}

/// Whether one of the rounds was long enough for [`held_down`], and carried something.
fn says_what_lasts(ticks: &[ReceiverTick]) -> bool {
    rounds(ticks).any(|round| is_long(round) && round.iter().any(|tick| tick.bytes.0 > 0))
}

/// The rounds of a transfer: each begins its time again.
fn rounds(ticks: &[ReceiverTick]) -> impl Iterator<Item = &[ReceiverTick]> {
    ticks.chunk_by(|before, after| before.end < after.end)
}

fn is_long(round: &[ReceiverTick]) -> bool {
    round.len() >= MIN_TICKS
}

/// A sentence for each rate of a version that has no figure: which, and why. Nothing is said of one
/// that a person stopped, and of silence where another warning says why nothing came.
pub(super) fn missing_warnings(result: &VersionResult) -> Vec<String> {
    let hole = result.path.as_ref().and_then(PathFacts::black_hole);
    let has_broken_off = result.failed_phases.iter().any(|phase| phase.stage == "send trains");
    let is_said = |reason: NoRate| match reason {
        NoRate::Stopped => true,
        NoRate::NothingCame | NoRate::WentSilent => hole.is_some() || has_broken_off,
        _ => false,
    };
    let missing = result.path_rates.iter().filter_map(|rate| Some((rate, rate.missing.as_ref()?)));
    let unsaid = missing.filter(|(_, missing)| !is_said(missing.reason));
    let sentences = unsaid.map(|(rate, missing)| {
        let (name, way) = (rate.metric.name(), rate.pedigree.direction.name());
        let why = hole.as_deref().unwrap_or(&missing.because);
        format!("no figure of {name} {way}: {why}")
    });
    sentences.collect()
}

/// Whether none of the packets that were sent for it ever came. Where some came, packets of their
/// length pass.
pub(crate) fn is_silent(rate: &PathRate) -> bool {
    rate.received == 0 && rate.flags.iter().any(|flag| flag == SILENT)
}

/// The word of records for that.
const SILENT: &str = "silent";

fn mode(of: &netaware_path::RateMode) -> RateMode {
    RateMode {
        lo: BitRate(of.lo.max(0.0) as u64),
        hi: BitRate(of.hi.max(0.0) as u64),
        share: of.share,
        merit: if of.merit.is_finite() { of.merit } else { 0.0 },
        chosen: of.chosen,
    }
}

/// Of most arrivals.
fn clock(done: &Estimated) -> ClockSource {
    if done.unstamped * 2 > done.received { ClockSource::Application } else { ClockSource::Kernel }
}

fn late_stamps(done: &Estimated) -> Option<String> {
    let told = format!(
        "{} of {} arrivals had no stamp of the kernel's; the program's, which leans late, stands for it",
        done.unstamped, done.received
    );
    (done.unstamped > 0).then_some(told)
}

fn tight_link(tight: &netaware_path::available::TightLink) -> TightLink {
    TightLink { capacity: interval(&tight.capacity), fit: tight.quality }
}

/// That the path stopped to carry trains, or never did.
fn silence(of: Silence) -> String {
    if of.after_some {
        format!(
            "of the last {} packets none came: something began to drop the trains, or an address translator gave them \
             another port",
            of.packets
        )
    } else {
        format!(
            "of {} packets none came: something drops the trains, though single datagrams pass",
            of.packets
        )
    }
}

/// What limits this host, where it mattered or where a figure lies beyond it.
fn limit(answer: &Estimate, done: &Estimated) -> Option<String> {
    let host = done.host.as_ref()?;
    let can = ability(host);
    if answer.flags.contains(&Flag::HostLimited) {
        return Some(can);
    }
    let is_beyond = answer.bound == Bound::None && answer.rate.estimate > host.rate.0 as f64;
    is_beyond.then(|| format!("the figure is beyond what one of these tells: {can}"))
}

/// How fast this host probes in a method's way, and why no faster.
pub(crate) fn ability(host: &HonestRate) -> String {
    format!(
        "this host probes by {} of {} B up to {} with {:.0} % error, limited by {}: {}",
        host.way,
        host.packet,
        host.rate,
        host.error * 100.0,
        host.limited_by.by,
        host.limited_by.because
    )
}

/// What was known at an instant of a path that is followed.
pub(crate) fn point(at: Span, answer: &Result<Estimate, NoFigure>) -> RatePoint {
    let reason = answer.as_ref().err().map(|why| word_of(reason(*why)).to_owned());
    let answer = answer.as_ref().ok();
    RatePoint {
        at,
        rate: answer.map(told_rate),
        bound: bound(answer),
        flags: words(answer).into_iter().chain(reason).collect(),
    }
}

/// More time would be of no use where it is the bytes that were not enough.
fn of_a_capped_test(missing: MissingRate, capped: Option<ByteCount>) -> MissingRate {
    match (missing.reason, capped) {
        (NoRate::TooShort, Some(most)) => {
            let because = format!(
                "the responder's owner allows tests of no more than {most}, which is too little for this method here"
            );
            MissingRate { because, enough: None, ..missing }
        }
        _ => missing,
    }
}

/// Why there is no rate, for the record.
fn missing(why: NoFigure, silent: Silence, direction: Direction) -> MissingRate {
    let rate = |rate: f64| BitRate(rate.max(0.0) as u64);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let (mut carried, mut enough) = (None, None);
    let because = match why {
        NoFigure::NotSent => "none of the packets left the sending host".to_owned(),
        NoFigure::NothingCame { .. } | NoFigure::WentSilent { .. } if silent.is_told() => silence(silent),
        NoFigure::NothingCame { packets } => {
            format!(
                "of {packets} packets none came: something drops the trains, or they take longer than the time \
                 that there was"
            )
        }
        NoFigure::WentSilent { packets } => silence(Silence::after_some(packets)),
        NoFigure::TooLossy(share) => {
            format!("{} of the packets were lost, and too few trains came whole", percent(share))
        }
        NoFigure::Policed { lost, lasts } => {
            carried = Some(rate(lasts));
            format!(
                "{} of the packets were lost, and too few trains came whole: packets behind the first ones of a train are \
                 dropped, as a policer drops them; {} came all the same",
                percent(lost),
                rate(lasts)
            )
        }
        NoFigure::Interrupted { packets, over } => {
            format!(
                "{}, and what came before and after was too little: measure again, or give it more time (-t)",
                gone(packets, over)
            )
        }
        NoFigure::TooShort { carried: seen, enough: needed } => {
            (carried, enough) = (seen.map(rate), needed.map(rounded_up));
            let seen =
                carried.map(|rate| format!(" on a path that carries about {rate}")).unwrap_or_default();
            let needed =
                enough.map(|enough| format!("; about {enough} for this method (-t) would be enough"));
            format!("the time was too short{seen}{}", needed.unwrap_or_default())
        }
        NoFigure::TooSlow(seen) => {
            carried = Some(rate(seen));
            format!(
                "the path carries about {}: the shortest train that tells this method something would fill it for too long",
                rate(seen)
            )
        }
        NoFigure::Batched => {
            "the receiving host handed packets over in batches that hide how far apart they came".to_owned()
        }
        NoFigure::PathChanged => "the path or a clock changed in the middle".to_owned(),
        NoFigure::Slower { from, to } => {
            carried = Some(rate(to));
            slower(from, to, direction)
        }
        NoFigure::NothingLeft => "other traffic leaves nothing, or less than the method can see".to_owned(),
        NoFigure::Stopped => "it was stopped before there was one".to_owned(),
        NoFigure::Undecided => "the trains do not say the same".to_owned(),
    };
    MissingRate { reason: reason(why), because, carried, enough }
}

/// The sentence that the path was gone for a while.
fn gone(packets: u64, over: Span) -> String {
    format!(
        "{packets} packets in a row were lost, sent within {over}: the path was gone for that long at least"
    )
}

/// Says that trains came far more slowly from some point on, why that may be, and what shows it.
/// Trains cannot distinguish the two causes: the credit of a token bucket that is larger than the
/// test of a figure spends ends as suddenly as a link becomes slower.
fn slower(from: f64, to: f64, direction: Direction) -> String {
    let rate = |rate: f64| BitRate(rate.max(0.0) as u64);
    let way = match direction {
        Direction::Reverse => " -R",
        Direction::Forward | Direction::RoundTrip => "",
    };
    format!(
        "trains came far more slowly from some point on, at about {} instead of {}: the credit of a token bucket was \
         used up then, or the path became slower; 'netaware tcp{way} -t 30s' shows the lasting rate",
        rate(to),
        rate(from)
    )
}

fn reason(why: NoFigure) -> NoRate {
    match why {
        NoFigure::NotSent => NoRate::NotSent,
        NoFigure::NothingCame { .. } => NoRate::NothingCame,
        NoFigure::WentSilent { .. } => NoRate::WentSilent,
        NoFigure::TooLossy(_) | NoFigure::Policed { .. } | NoFigure::Interrupted { .. } => NoRate::TooLossy,
        NoFigure::TooShort { .. } => NoRate::TooShort,
        NoFigure::TooSlow(_) => NoRate::TooSlow,
        NoFigure::Batched => NoRate::Batched,
        NoFigure::PathChanged | NoFigure::Slower { .. } => NoRate::PathChanged,
        NoFigure::NothingLeft => NoRate::NothingLeft,
        NoFigure::Stopped => NoRate::Stopped,
        NoFigure::Undecided => NoRate::Undecided,
    }
}

/// As the record has it.
fn word_of(reason: NoRate) -> &'static str {
    match reason {
        NoRate::NotSent => "not_sent",
        NoRate::NothingCame => "nothing_came",
        NoRate::WentSilent => "went_silent",
        NoRate::TooLossy => "too_lossy",
        NoRate::TooShort => "too_short",
        NoRate::TooSlow => "too_slow",
        NoRate::Batched => "batched",
        NoRate::PathChanged => "path_changed",
        NoRate::NothingLeft => "nothing_left",
        NoRate::Stopped => "stopped",
        NoRate::Undecided => "undecided",
    }
}

/// To whole seconds, as people type it.
fn rounded_up(time: Span) -> Span {
    Span::from_secs(time.secs_f64().ceil() as i64)
}

fn bound(answer: Option<&Estimate>) -> RateBound {
    match answer.map_or(Bound::None, |answer| answer.bound) {
        Bound::None => RateBound::None,
        Bound::AtLeast => RateBound::AtLeast,
        Bound::AtMost => RateBound::AtMost,
    }
}

fn words(answer: Option<&Estimate>) -> Vec<String> {
    noticed(answer).iter().map(|flag| word(flag).to_owned()).collect()
}

/// What was noticed, each thing once: methods within a method may notice the same.
fn noticed(answer: Option<&Estimate>) -> Vec<Flag> {
    let mut flags: Vec<Flag> = Vec::new();
    for flag in answer.map_or(&[][..], |answer| &answer.flags) {
        if !flags.iter().any(|known| word(known) == word(flag)) {
            flags.push(*flag);
        }
    }
    flags
}

/// The verdict over one direction.
pub(crate) fn path_use(direction: Direction, of: Use) -> PathUse {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let (verdict, used, because) = match of {
        Use::Shared(used) => (
            PathVerdict::Shared,
            Some(interval(&used)),
            format!(
                "others use {} of the narrowest link ({} .. {})",
                percent(used.estimate),
                percent(used.lo),
                percent(used.hi)
            ),
        ),
        Use::NotShown { at_most } => (
            PathVerdict::UseNotShown,
            None,
            format!("no other traffic shown: at most {} of the narrowest link", percent(at_most)),
        ),
        Use::HostSuspected(used) => (
            PathVerdict::HostSuspected,
            used.as_ref().map(interval),
            match &used {
                Some(used) => format!(
                    "others seem to use {} of the narrowest link ({} .. {}), but programs used the hosts too meanwhile",
                    percent(used.estimate),
                    percent(used.lo),
                    percent(used.hi)
                ),
                None => "how much others use is not known: programs used the hosts meanwhile".to_owned(),
            },
        ),
        Use::HostLimited => (
            PathVerdict::HostLimited,
            None,
            "host-limited: the hosts, not the path, set these figures".to_owned(),
        ),
        Use::Contradiction => (
            PathVerdict::Contradiction,
            None,
            "more is available than the path carries: one of the figures is wrong, or the path changed"
                .to_owned(),
        ),
        Use::Unknown => (
            PathVerdict::Unknown,
            None,
            "how much others use is not known: a figure is missing or a bound".to_owned(),
        ),
    };
    PathUse { direction, verdict, used, because }
}

fn uncertainty(answer: Option<&Estimate>) -> String {
    match answer {
        None => "no figure".to_owned(),
        Some(answer) if answer.bound == Bound::None => {
            let is_busy = answer.flags.iter().any(|flag| matches!(flag, Flag::HostBusy { .. }));
            let widened = if is_busy { ", widened for what others took of the hosts" } else { "" };
            format!("{:.0} % interval of the method{widened}", answer.rate.confidence * 100.0)
        }
        Some(_) => "a bound; the flags say why, as far as that is known".to_owned(),
    }
}

fn word(flag: &Flag) -> &'static str {
    match flag {
        Flag::HostLimited => "host_limited",
        Flag::Unexplained => "unexplained",
        Flag::HostBusy { .. } => "host_busy",
        Flag::Coalescing { .. } => "coalescing",
        Flag::Lossy(_) => "lossy",
        Flag::Reordered(_) => "reordered",
        Flag::PathChanged | Flag::Slower { .. } => "path_changed",
        Flag::Elastic => "elastic",
        Flag::Ambiguous => "ambiguous",
        Flag::CutShort => "cut_short",
        Flag::Unreadable => "unreadable",
        Flag::Noisy => "noisy",
        Flag::Shaped { .. } => "shaped",
        Flag::Policed { .. } => "policed",
        Flag::Interrupted { .. } => "interrupted",
        _ => "other",
    }
}

fn sentence(flag: &Flag, bound: RateBound, direction: Direction) -> String {
    match flag {
        Flag::HostLimited => "host-limited: the hosts cannot send or stamp fast enough for more".to_owned(),
        Flag::Unexplained => "the method found a bound only, and why is not known: it is far below what this host probes at, so \
                              packets may have been held up or put into another order on the way, or a host was \
                              busy for moments"
            .to_owned(),
        Flag::HostBusy { away } => busy_sentence(*away, Some(bound)),
        Flag::Coalescing { period, batch } => {
            format!("arrivals are handed over in batches of {batch:.1} packets, one each {period}")
        }
        Flag::Lossy(share) => format!("{:.1} % of the packets in this method's trains were lost", share * 100.0),
        Flag::Reordered(share) => format!(
            "{:.1} % of the packets came behind later ones: the path takes trains apart, as links in parallel do that take \
             turns packet by packet",
            share * 100.0
        ),
        Flag::PathChanged => {
            "the delay moved in the middle: another path, or a clock that was set".to_owned()
        }
        Flag::Slower { from, to } => slower(*from, *to, direction),
        Flag::Elastic => "other traffic gave way to the trains: without them less would be left".to_owned(),
        Flag::Ambiguous => "modes or methods disagree".to_owned(),
        Flag::CutShort => "the method ended before its figure was certain enough: what it still had to send would have taken longer than its time".to_owned(),
        Flag::Unreadable => "too few trains came in a way that can be read: packets were lost, or handed over in batches that hide how \
                             far apart they came"
            .to_owned(),
        Flag::Noisy => {
            "a rough figure: trains differed by more than could be averaged out, or were too few".to_owned()
        }
        Flag::Shaped { peak } => {
            format!("a token bucket: short bulks pass at {}", BitRate(peak.max(0.0) as u64))
        }
        Flag::Policed { peak } => format!(
            "trains pass at up to {}, but packets behind their first ones are dropped without a queue, as a policer drops \
             them: that rate does not last, and the bound is what is known of the rate that lasts",
            BitRate(peak.max(0.0) as u64)
        ),
        Flag::Interrupted { packets, over } => gone(*packets, *over),
        _ => "something that this version cannot name".to_owned(),
    }
}

/// That others used the hosts, and what follows from it for figures of this kind, if there is any.
pub(crate) fn busy_sentence(away: f64, bound: Option<RateBound>) -> String {
    let follows = match bound {
        None => "",
        Some(RateBound::None) => "; the interval holds what that may have done",
        Some(_) if away >= AWAY_TOO_LONG => {
            "; of hosts that were away for so long a bound is told at most, and it holds what that may have done"
        }
        Some(_) => "; the bound holds what that may have done",
    };
    format!("busy host: {}{follows}", busy_cause(away))
}

/// What others took of the hosts.
pub(crate) fn busy_cause(away: f64) -> String {
    if away < 0.005 {
        return "others used the processors meanwhile".to_owned();
    }
    format!("others had the core for {:.0} % of the time in which packets were sent", away * 100.0)
}

/// Slices of a round that says something.
const MIN_TICKS: usize = 12;
/// Of a figure, what a transfer reached and what it is held down to, at most; and by what share of
/// itself the latter may vary.
const REACHED: f64 = 0.7;
const HELD_DOWN: f64 = 0.6;
const STAYS: f64 = 0.25;
/// A method that sends less than this share of its figure leaves most buckets full.
const LITTLE: f64 = 0.5;
/// How the remark on a bucket that stayed full goes on behind the load.
const UNSEEN: &str = "was sent on average: a token bucket that refills faster than that and has a large credit is not \
                      noticed, and long transfers would get less";
/// A mode has more than 15 of at most 1000 pairs; those that are left out are the emptiest.
const MOST_MODES: usize = 16;

#[cfg(test)]
mod tests {
    use netaware_record::{Ceiling, FailedPhase, MtuFinding};
    use netaware_stats::interval::Interval;

    use super::*;

    #[test]
    fn a_path_that_went_silent_within_one_volley_says_what_may_have_happened() {
        let because =
            missing(NoFigure::WentSilent { packets: 21 }, Silence::default(), Direction::Forward).because;
        assert!(
            because.starts_with("of the last 21 packets none came") && because.contains("another port"),
            "{because}"
        );
    }

    #[test]
    fn the_figure_of_a_bound_is_the_end_that_bounds_wherever_it_is_read() {
        let rate = Interval { estimate: 2e9, lo: 24e6, hi: 3e9, confidence: 0.9 };
        for (bound, figure) in [(Bound::AtLeast, 24e6), (Bound::AtMost, 3e9), (Bound::None, 2e9)] {
            let answer = Estimate {
                rate,
                bound,
                method: "bulk",
                bytes: 0,
                packets: 0,
                took: Span::ZERO,
                flags: Vec::new(),
            };
            assert!((told_rate(&answer).estimate - figure).abs() < 1.0, "{bound:?}");
            let point = point(Span::ZERO, &Ok(answer)).rate.unwrap();
            assert!((point.estimate - figure).abs() < 1.0, "{bound:?}");
        }
    }

    #[test]
    fn an_outage_and_a_policer_are_told_and_not_only_a_share_that_was_lost() {
        let outage = NoFigure::Interrupted { packets: 120, over: Span::from_millis(290) };
        let because = missing(outage, Silence::default(), Direction::Forward).because;
        assert!(because.starts_with("120 packets in a row were lost, sent within 290 ms"), "{because}");
        assert!(because.contains("-t"), "{because}");
        let policed =
            missing(NoFigure::Policed { lost: 0.39, lasts: 99.9e6 }, Silence::default(), Direction::Forward);
        assert_eq!((policed.reason, policed.carried), (NoRate::TooLossy, Some(BitRate(99_900_000))));
        assert!(policed.because.contains("policer"), "{}", policed.because);
    }

    #[test]
    fn more_time_is_not_asked_for_where_the_owner_allows_no_more_bytes() {
        let short = NoFigure::TooShort { carried: Some(64_000.0), enough: Some(Span::from_secs(20)) };
        let told = |capped| of_a_capped_test(missing(short, Silence::default(), Direction::Forward), capped);
        assert!(told(None).because.contains("-t") && told(None).enough.is_some());
        let capped = told(Some(ByteCount(1_000_000)));
        assert!(capped.because.contains("tests of no more than 977 KiB"), "{}", capped.because);
        assert_eq!((capped.reason, capped.enough), (NoRate::TooShort, None));
        let silent = missing(NoFigure::NotSent, Silence::default(), Direction::Forward);
        assert_eq!(of_a_capped_test(silent.clone(), Some(ByteCount(1))), silent);
    }

    fn remarks(rate: f64, flags: &[Flag]) -> Vec<String> {
        told(rate, flags, 0).remarks
    }

    fn told(rate: f64, flags: &[Flag], unstamped: u64) -> PathRate {
        told_of(PathMetric::Capacity, rate, flags, unstamped)
    }

    fn told_of(metric: PathMetric, rate: f64, flags: &[Flag], unstamped: u64) -> PathRate {
        let limited_by =
            Ceiling { by: "sending".into(), rate: BitRate(8_000_000_000), because: "1.5 us each".into() };
        let host = HonestRate {
            way: "trains".into(),
            methods: Vec::new(),
            packet: 1500,
            error: 0.05,
            rate: limited_by.rate,
            limited_by,
            above: Vec::new(),
        };
        let answer = Estimate {
            rate: Interval { estimate: rate, lo: rate * 0.98, hi: rate * 1.02, confidence: 0.95 },
            bound: Bound::None,
            method: "bulk",
            bytes: 611_000,
            packets: 407,
            took: Span::from_secs(1),
            flags: flags.to_vec(),
        };
        let done = Estimated {
            answer: Ok(answer),
            tight: None,
            modes: vec![
                netaware_path::RateMode { lo: 4.9e9, hi: 5.1e9, share: 0.4, merit: 1.2, chosen: true };
                if flags.contains(&Flag::Ambiguous) { 20 } else { 0 }
            ],
            packet: 1500,
            sent: 100,
            sent_bytes: 100_000,
            received: 100,
            unstamped,
            took: Span::from_secs(1),
            instrument: Instrument {
                largest: 1500,
                smallest: 200,
                rtt: Span::from_millis(1),
                send_gap: Span(1500),
                send_error: Span(100),
                receive_error: Span(100),
                largest_burst: 200_000,
                max_load: 0.1,
                time_limit: Span::from_secs(30),
                carried: None,
            },
            headers: 28,
            during: During::default(),
            host: Some(host),
            silence: Silence::default(),
            ceased: None,
            capped: None,
        };
        result(metric, IpVersion::V4, Direction::Forward, &done)
    }

    /// A shaper's credit of 2 MB was used up in the middle, and a slower path was said to be why.
    #[test]
    fn a_credit_that_was_used_up_is_named_beside_a_path_that_became_slower() {
        let fell = NoFigure::Slower { from: 95e6, to: 20e6 };
        for (way, command) in
            [(Direction::Forward, "'netaware tcp -t"), (Direction::Reverse, "'netaware tcp -R -t")]
        {
            let because = missing(fell, Silence::default(), way).because;
            assert!(because.contains("at about 20.0 Mbit/s instead of 95.0 Mbit/s: the credit"), "{because}");
            assert!(because.contains(command), "{because}");
            let flag = Flag::Slower { from: 95e6, to: 20e6 };
            assert_eq!(sentence(&flag, RateBound::None, way), because);
        }
    }

    /// "sent 611 KiB", "mean load 18.0 Mbit/s": a cap on bytes had kept back most of what was
    /// asked.
    #[test]
    fn what_a_method_asked_for_and_was_never_sent_is_in_neither_bytes_nor_load() {
        let told = told(5e7, &[Flag::CutShort], 0);
        assert_eq!((told.bytes, told.load, told.packets), (ByteCount(100_000), BitRate(800_000), 100));
    }

    #[test]
    fn little_traffic_does_not_show_a_bucket_of_large_credit_and_says_so() {
        // 800 kbit/s were sent on average.
        let of = |metric, rate, flags: &[Flag]| told_of(metric, rate, flags, 0).remarks;
        let [remark]: [String; 1] = of(PathMetric::Available, 5e7, &[]).try_into().unwrap();
        assert!(remark.starts_with("800 kbit/s was sent") && remark.ends_with(UNSEEN), "{remark}");
        // The load itself shows what lasts, a bucket was seen, or it is what bursts get that
        // counts.
        assert_eq!(of(PathMetric::Available, 1.5e6, &[]), [""; 0]);
        assert_eq!(of(PathMetric::Capacity, 5e7, &[]), [""; 0]);
        let shaped = of(PathMetric::Available, 5e7, &[Flag::Shaped { peak: 9e7 }]);
        assert!(!shaped.iter().any(|remark| remark.ends_with(UNSEEN)), "{shaped:?}");
    }

    #[test]
    fn a_transfer_that_lasts_says_whether_there_is_a_credit_and_one_of_a_second_does_not() {
        let length = Span::from_millis(100);
        let ticks = |count: i64, bytes| -> Vec<ReceiverTick> {
            let tick = |at: i64| ReceiverTick {
                end: length * at,
                length,
                bytes: ByteCount(bytes),
                ..ReceiverTick::default()
            };
            (1..=count).map(tick).collect()
        };
        assert!(says_what_lasts(&ticks(12, 9000)) && says_what_lasts(&[ticks(3, 1), ticks(12, 1)].concat()));
        // Two rounds are no long one, and what carried nothing spent nothing.
        assert!(
            !says_what_lasts(&ticks(11, 9000)) && !says_what_lasts(&[ticks(11, 1), ticks(11, 1)].concat())
        );
        assert!(!says_what_lasts(&ticks(12, 0)) && !says_what_lasts(&[]));
    }

    /// The reason was a remark of the rate alone, and `warnings` was empty.
    #[test]
    fn a_rate_without_a_figure_has_its_reason_among_the_warnings() {
        let rate = |metric, why| PathRate {
            rate: None,
            missing: Some(missing(why, Silence::default(), Direction::Forward)),
            ..told_of(metric, 5e7, &[], 0)
        };
        let mut result = VersionResult {
            path_rates: vec![
                rate(PathMetric::Capacity, NoFigure::Batched),
                rate(PathMetric::Available, NoFigure::NothingCame { packets: 9 }),
                rate(PathMetric::Maximum, NoFigure::Stopped),
                told_of(PathMetric::Maximum, 5e7, &[], 0),
            ],
            ..VersionResult::new(IpVersion::V4)
        };
        let said = missing_warnings(&result);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("no figure of capacity up: the receiving host handed"), "{said:?}");
        assert!(said[1].contains("up: of 9 packets none came"), "{said:?}");
        // The warning of the phase has the silence already.
        let reason = "no packet of the trains up came any more".to_owned();
        result.failed_phases = vec![FailedPhase { stage: "send trains".to_owned(), reason }];
        assert_eq!(missing_warnings(&result), said[..1]);
        // And so has that of a black hole, which is why trains did not come.
        result.failed_phases.clear();
        let hole = PathFacts { mtu: Some(1400), mtu_finding: MtuFinding::BlackHole, ..PathFacts::default() };
        result.path = Some(hole);
        let want = "no figure of capacity up: packets above 1400 bytes vanish and no router says so";
        assert_eq!(missing_warnings(&result), [want]);
    }

    #[test]
    fn a_transfer_that_slows_down_for_good_contradicts_the_rate_of_short_bursts() {
        let round = |rates: &[u64]| -> Vec<ReceiverTick> {
            let length = Span::from_millis(100);
            let tick = |(at, rate): (i64, &u64)| ReceiverTick {
                end: length * (at + 1),
                length,
                bytes: ByteCount(rate * 1_000_000 / 80),
                ..ReceiverTick::default()
            };
            (0..).zip(rates).map(tick).collect()
        };
        let boosted = [40, 95, 96, 95, 95, 94, 95, 20, 19, 19, 20, 19, 19, 20, 19, 19];
        assert_eq!(held_down(97e6, &round(&boosted)), Some((95e6, 19e6)));
        // The first round of two says it, whatever the other was.
        let both = [round(&boosted), round(&[95; 16])].concat();
        assert!(held_down(97e6, &both).is_some());
        // A transfer that stayed fast, was slow throughout, varied or was short says nothing.
        let varied = [40, 95, 96, 95, 50, 40, 20, 25, 35, 45, 55, 25, 35, 45, 55, 25];
        for other in [&[95; 16][..], &[19; 16], &varied, &boosted[..9]] {
            assert_eq!(held_down(97e6, &round(other)), None, "{other:?}");
        }
    }

    #[test]
    fn a_figure_that_is_missing_has_its_reason_and_what_would_be_enough() {
        let short = NoFigure::TooShort { carried: Some(64_000.0), enough: Some(Span::from_millis(280_500)) };
        let told = missing(short, Silence::default(), Direction::Forward);
        assert_eq!((told.reason, told.carried), (NoRate::TooShort, Some(BitRate(64_000))));
        assert_eq!(told.enough, Some(Span::from_secs(281)));
        assert!(told.because.contains("64.0 kbit/s") && told.because.contains("-t"), "{}", told.because);
        let point = point(Span::ZERO, &Err(NoFigure::TooLossy(0.4)));
        assert_eq!((point.rate, point.flags), (None, vec!["too_lossy".to_owned()]));
    }

    const CAN: &str = "this host probes by trains of 1500 B up to 8.00 Gbit/s with 5 % error, limited by sending: 1.5 us each";

    #[test]
    fn a_verdict_against_the_host_names_its_limit() {
        let told = remarks(7.9e9, &[Flag::HostLimited, Flag::HostLimited]);
        assert!(told.len() == 2 && told[0].starts_with("host-limited") && told[1] == CAN, "{told:?}");
    }

    #[test]
    fn a_figure_beyond_the_honest_rate_has_a_remark_and_one_below_has_none() {
        assert_eq!(remarks(9e9, &[]), [format!("the figure is beyond what one of these tells: {CAN}")]);
        assert_eq!(remarks(7e9, &[]), [""; 0]);
    }

    #[test]
    fn stamps_of_a_program_are_not_told_as_the_kernels() {
        let clock = |unstamped| told(5e9, &[], unstamped).pedigree.clock;
        assert_eq!(
            [0, 50, 51].map(clock),
            [ClockSource::Kernel, ClockSource::Kernel, ClockSource::Application]
        );
        let remarks = told(5e9, &[], 3).remarks;
        assert!(remarks.len() == 1 && remarks[0].starts_with("3 of 100 arrivals"), "{remarks:?}");
    }

    #[test]
    fn the_fullest_modes_are_kept_and_a_figure_without_has_none() {
        assert_eq!(told(5e9, &[], 0).modes, []);
        let kept = told(5e9, &[Flag::Ambiguous], 0).modes;
        let first = RateMode {
            lo: BitRate(4_900_000_000),
            hi: BitRate(5_100_000_000),
            share: 0.4,
            merit: 1.2,
            chosen: true,
        };
        assert_eq!((kept.len(), &kept[0]), (MOST_MODES, &first));
    }

    #[test]
    fn a_busy_host_is_named_with_what_it_missed() {
        let busy = |away| told(5e9, &[Flag::HostBusy { away }], 0);
        assert_eq!(busy(0.31).flags, ["host_busy"]);
        let [waited, beside] = [0.31, 0.0].map(|away| busy(away).remarks.concat());
        assert!(waited.contains("31 % of the time"), "{waited}");
        assert!(beside.contains("others used the processors"), "{beside}");
    }

    #[test]
    fn no_interval_is_spoken_of_where_a_bound_is_shown() {
        let of = |away, bound| busy_sentence(away, bound);
        assert!(of(0.1, Some(RateBound::None)).contains("the interval holds"));
        for bound in [RateBound::AtLeast, RateBound::AtMost] {
            for away in [0.0, 0.1, 0.4] {
                let told = of(away, Some(bound));
                assert!(told.contains("bound") && !told.contains("interval"), "{told}");
            }
        }
        let told = of(0.1, None);
        assert!(!told.contains("bound") && !told.contains("interval"), "{told}");
    }

    #[test]
    fn a_suspected_host_leaves_the_share_that_the_figures_say() {
        let used = Interval { estimate: 0.4, lo: 0.3, hi: 0.5, confidence: 0.95 };
        let said = path_use(Direction::Forward, Use::HostSuspected(Some(used)));
        assert_eq!(said.verdict, PathVerdict::HostSuspected);
        assert!(said.used.is_some() && said.because.contains("40 %"), "{said:?}");
        assert_eq!(path_use(Direction::Forward, Use::HostSuspected(None)).used, None);
    }
}
