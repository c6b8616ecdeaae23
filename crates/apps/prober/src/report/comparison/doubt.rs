//! Why a difference between the versions may say nothing of them: what the path did meanwhile hit
//! one of them alone, or they were not measured alike.

use netaware_probe::compare::Share;
use netaware_record::{Direction, LimitedBy, Metric, Outcome, StreamEnd, TcpResult, VersionResult};
use netaware_units::{BitRate, ByteCount, Span};

use super::super::rounds::Unlike;
use super::super::route::Shift;
use super::super::{Findings, udp as report_udp};
use super::{Pair, goodput, idle_share, share, transfers, udp};
use crate::echo::EchoRun;
use crate::transfer::{TcpRound, UdpRound};

impl Pair<'_> {
    /// Why a difference of what both were measured with says nothing of the versions.
    pub(super) fn doubt(&self, metric: Metric, direction: Direction) -> Option<String> {
        match metric {
            Metric::TcpSingle | Metric::TcpParallel | Metric::LoadedRtt => {
                let both = || [(self.v4, self.f4), (self.v6, self.f6)].into_iter();
                let broken = both().find_map(|(result, _)| broke_off(result, metric, direction));
                broken
                    .or_else(|| both().find_map(|(result, found)| did_not_last(result, found, direction)))
                    .or_else(|| self.moved(|_| true))
                    .or_else(|| self.changed())
                    .or_else(|| self.fell(metric, direction))
                    .or_else(|| self.shared_links(metric, direction))
            }
            Metric::UdpLoss if self.cannot_be_chance(direction) => None,
            Metric::UdpLoss => self
                .volumes()
                .or_else(|| self.silence(direction))
                .or_else(|| self.udp_outage(direction))
                .or_else(|| self.lost_within_a_pause(direction))
                .or_else(|| unlike_rates(self.v4, self.v6, direction))
                .or_else(|| self.changed())
                .or_else(|| self.fell(metric, direction))
                .or_else(|| self.udp_changed(direction)),
            Metric::IdleLoss => self.outage(),
            Metric::IdleRtt | Metric::DelayVariation => self.moved(Shift::is_among_idle),
            Metric::Connect => None,
        }
    }

    /// That the round trip of either version rose in the midst: the other one was measured before,
    /// or after, or on another route.
    fn moved(&self, counts: impl Fn(&Shift) -> bool) -> Option<String> {
        let both = [(self.v4, self.f4), (self.v6, self.f6)];
        both.into_iter().find_map(|(result, found)| {
            let shift = Shift::of(found).filter(&counts)?;
            Some(format!("over {} {}", result.version.name(), shift.told()))
        })
    }

    /// That the path changed in the midst: the same transfer of one version had far unlike rates in
    /// two rounds. The turns of a version lie side by side (A B B A), so that a change of some
    /// seconds can hit one version alone.
    pub(super) fn changed(&self) -> Option<String> {
        let both = [(self.v4, self.f4), (self.v6, self.f6)];
        let mut each = both.into_iter().flat_map(|it| [(it, Direction::Forward), (it, Direction::Reverse)]);
        let unlike = each.find_map(|((result, found), way)| Unlike::of_tcp(result, found, way))?;
        Some(unlike.doubt())
    }

    /// That the streams of datagrams of one version had far unlike rates in two rounds.
    fn udp_changed(&self, direction: Direction) -> Option<String> {
        let mut both = [(self.v4, self.f4), (self.v6, self.f6)].into_iter();
        let unlike = both.find_map(|(result, found)| Unlike::of_udp(result, found, direction))?;
        Some(unlike.doubt())
    }

    /// That what was lost on the idle path was lost in a few rows: an outage passes, and hits
    /// whoever is measured then.
    fn outage(&self) -> Option<String> {
        let ratio = |result| idle_share(result).map_or(0.0, |share| share.part as f64 / share.of as f64);
        let (more, found) =
            if ratio(self.v4) > ratio(self.v6) { (self.v4, self.f4) } else { (self.v6, self.f6) };
        let Share { part: lost, of } = idle_share(more)?;
        let asked = found.idle.iter().map(|run| {
            run.order.shown_spacing() * i64::try_from(run.round.counts().sent()).unwrap_or(i64::MAX)
        });
        if lost == of && outlasts(asked, found) {
            // No request was answered while messages over TCP were: that is no outage.
            return None;
        }
        let at_end = |run: &EchoRun| usize::from(run.lost_at_end > 0);
        let runs: usize = found.idle.iter().map(|run| run.round.loss_runs() + at_end(run)).sum();
        (lost > 0 && runs < MIN_LOSS_RUNS).then(|| {
            let version = more.version.name();
            let when = if runs > 1 { format!("within {runs} short times") } else { "at one time".to_owned() };
            let lost = if lost == 1 { "one request".to_owned() } else { format!("all {lost} requests") };
            format!("over {version} {lost} that had no answer left {when}, as in an outage")
        })
    }

    /// Whether nothing at all came of the datagrams over one version while messages over TCP did:
    /// no burst of others' traffic, no outage and no rate of ours does that for so long.
    pub(super) fn has_dead_stream(&self, direction: Direction) -> bool {
        let is_dead = |(result, found): (&VersionResult, &Findings)| {
            let lost_all = share(result, direction).is_some_and(|share| share.part == share.of);
            let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
            let sent = rounds.filter_map(|round| Some(round.ended.udp_sender.as_ref()?.elapsed));
            lost_all && outlasts(sent, found)
        };
        is_dead((self.v4, self.f4)) != is_dead((self.v6, self.f6))
    }

    /// Whether no burst of others' traffic, no outage and no rate of ours explains what one version
    /// lost more than the other: nothing came at all while messages did, or each of its streams
    /// stopped after the same bytes.
    pub(super) fn cannot_be_chance(&self, direction: Direction) -> bool {
        self.has_dead_stream(direction) || self.stops_after_a_volume(direction)
    }

    /// Whether only one version's streams each stopped after the same bytes, and that one lost
    /// more.
    fn stops_after_a_volume(&self, direction: Direction) -> bool {
        let lost = |result| share(result, direction).map_or(0.0, |share| share.part as f64 / share.of as f64);
        match (self.f4.volume, self.f6.volume) {
            (Some(_), None) => lost(self.v4) > lost(self.v6),
            (None, Some(_)) => lost(self.v6) > lost(self.v4),
            _ => false,
        }
    }

    /// That nothing came of a stream while nothing came over the session's connection either.
    fn silence(&self, direction: Direction) -> Option<String> {
        [(self.v4, self.f4), (self.v6, self.f6)].into_iter().find_map(|(result, found)| {
            let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
            let silence =
                rounds.filter(|round| fell_into_silence(round)).filter_map(|it| it.silence).max()?;
            Some(format!("over {} nothing at all came for {silence}, as in an outage", result.version.name()))
        })
    }

    /// That all of a stream was lost in less time than one in which its control connection was
    /// silent: the path may have been out for all of it, and no rate loses every datagram.
    fn lost_within_a_pause(&self, direction: Direction) -> Option<String> {
        [(self.v4, self.f4), (self.v6, self.f6)].into_iter().find_map(|(result, found)| {
            let lost_all = share(result, direction).is_some_and(|share| share.part == share.of);
            let rounds = found.udp.iter().filter(|round| round.order.plan.direction == direction);
            let sent = rounds.filter_map(|round| Some(round.ended.udp_sender.as_ref()?.elapsed));
            let longest = sent.max()?;
            (lost_all && found.longest_pause.is_some_and(|pause| longest <= pause)).then(|| {
                format!(
                    "over {} all datagrams of {longest} were lost, as in an outage",
                    result.version.name()
                )
            })
        })
    }

    /// That the streams of both versions stopped after the same bytes of each flow: the share that
    /// was lost is one of how long they were.
    fn volumes(&self) -> Option<String> {
        let (v4, v6) = (self.f4.volume?, self.f6.volume?);
        Some(format!(
            "UDP stopped after the same bytes in each flow, {} over IPv4 and {} over IPv6, so that longer streams lose \
             a larger share",
            v4.in_words(),
            v6.in_words()
        ))
    }

    /// That most datagrams of a stream were lost in a few rows.
    fn udp_outage(&self, direction: Direction) -> Option<String> {
        let ratio =
            |result| share(result, direction).map_or(0.0, |share| share.part as f64 / share.of as f64);
        let (more, found) =
            if ratio(self.v4) > ratio(self.v6) { (self.v4, self.f4) } else { (self.v6, self.f6) };
        let Share { part: lost, of } = share(more, direction)?;
        if lost == of {
            // Whether the path was out for all of a stream is asked of its control connection. An
            // outage would hardly begin and end with the stream.
            return None;
        }
        let ends = udp(more, direction).filter_map(|udp| udp.receiver.as_ref());
        let rows = ends.flat_map(|end| end.loss_runs.iter().copied()).chain(cut_off(found, direction));
        let (runs, of_runs) = in_few_rows(rows, lost)?;
        let (version, rows) = (more.version.name(), if runs == 1 { "row" } else { "rows" });
        Some(format!(
            "over {version} {of_runs} of the {lost} lost datagrams were lost in {runs} {rows}, as in an outage"
        ))
    }

    /// That several streams had a whole number of times the rate of one stream, over both versions,
    /// and not the same number: a path of parallel links gives each stream one of them by its
    /// addresses and ports, and how many they meet is chance.
    fn shared_links(&self, metric: Metric, direction: Direction) -> Option<String> {
        if metric != Metric::TcpParallel {
            return None;
        }
        let one = [self.v4, self.v6].map(|result| goodput(result, Metric::TcpSingle, direction));
        let several = [self.v4, self.v6].map(|result| goodput(result, metric, direction));
        let [[Some(one4), Some(one6)], [Some(v4), Some(v6)]] = [one, several] else { return None };
        let rounds = |found: &Findings| {
            let several = |round: &&TcpRound| round.order.direction == direction && round.order.streams > 1;
            found.tcp.iter().filter(several).count()
        };
        let single = |result| transfers(result, Metric::TcpSingle, direction).next().map(|tcp| tcp.limit.by);
        let streams = transfers(self.v4, metric, direction).map(|tcp| tcp.streams).max()?;
        // Another round has other ports and would meet other links, and a window or a limit of each
        // stream is no link.
        let is_one_round = rounds(self.f4).max(rounds(self.f6)) < 2;
        let is_of_path = [self.v4, self.v6].map(single) == [Some(LimitedBy::Network); 2];
        if !is_one_round || !is_of_path {
            return None;
        }
        let (times4, times6) = times_of_links([one4, one6], [v4, v6])?;
        // So many times the rate as there are streams needs no link to be shared.
        if times4.min(times6) >= u32::from(streams) || times4.max(times6) > u32::from(streams) {
            return None;
        }
        Some(format!(
            "several streams had {times4} times the rate of one over IPv4 and {times6} times over IPv6, as over parallel \
             links that streams meet by chance"
        ))
    }
}

/// Whether one of these times was longer than any in which the control connection was silent: the
/// path was not out for all of it.
fn outlasts(mut times: impl Iterator<Item = Span>, found: &Findings) -> bool {
    found.longest_pause.is_some_and(|pause| times.any(|time| time > pause))
}

/// Whether nothing came of it while nothing came over the session's connection either.
fn fell_into_silence(round: &UdpRound) -> bool {
    let lasted = round.ended.udp_sender.as_ref().map(|end| end.elapsed);
    round.carried_nothing() && round.silence >= lasted
}

/// Whether an outage explains what was lost of a stream: it says nothing of the rate that the path
/// carries.
pub(in crate::report) fn is_outage(round: &UdpRound) -> bool {
    let ends = round.ended.udp_receiver.iter();
    let rows = ends.flat_map(|end| end.loss_runs.iter().copied());
    let rows = rows.chain([(report_udp::cut_off(round), 1)]);
    fell_into_silence(round) || in_few_rows(rows, report_udp::lost_in(round)).is_some()
}

/// What an outage cut off from the streams of one direction, as rows of losses.
fn cut_off(found: &Findings, direction: Direction) -> impl Iterator<Item = (u64, u64)> {
    // What drops each flow after a volume is no outage.
    let rounds = found.udp.iter().filter(move |_| found.volume.is_none());
    let own = rounds.filter(move |round| round.order.plan.direction == direction);
    own.map(|round| (report_udp::cut_off(round), 1))
}

/// How many times the rate of one stream several had, over either version, where these are unlike
/// whole numbers and one stream had the same rate over both.
fn times_of_links(one: [f64; 2], several: [f64; 2]) -> Option<(u32, u32)> {
    let (slow, fast) = (one[0].min(one[1]), one[0].max(one[1]));
    if slow <= 0.0 || fast > slow * OF_ONE_LINK {
        return None;
    }
    let times = |rate: f64| {
        let times = (rate / slow).round();
        let is_whole = (rate / slow - times).abs() <= A_PART_OF_A_LINK;
        ((1.0..=MOST_LINKS).contains(&times) && is_whole).then_some(times as u32)
    };
    let (v4, v6) = (times(several[0])?, times(several[1])?);
    // One link alone carries no more with several streams, and says nothing of others.
    (v4 != v6 && v4.max(v6) > 1).then_some((v4, v6))
}

/// A transfer that did not run to its end has the rate of a part of it, whatever that says.
fn broke_off(result: &VersionResult, metric: Metric, direction: Direction) -> Option<String> {
    let is_broken = transfers(result, metric, direction).any(|tcp| tcp.outcome == Outcome::Failed);
    is_broken
        .then(|| format!("TCP {} over {} broke off before its end", direction.name(), result.version.name()))
}

/// UDP was sent at less than TCP had reached, and much of it was lost. The path changed, a token
/// bucket was empty by then, or something on the way carries less of UDP than of TCP.
pub(in crate::report) fn did_not_last(
    result: &VersionResult,
    found: &Findings,
    direction: Direction,
) -> Option<String> {
    let of_direction = |round: &&UdpRound| round.order.plan.direction == direction;
    if found.volume.is_some() || found.udp.iter().filter(of_direction).any(fell_into_silence) {
        // A volume and an outage say nothing of the rate.
        return None;
    }
    let tcp = || result.tcp.iter().filter(|tcp| tcp.pedigree.direction == direction);
    let reached = tcp().filter_map(|tcp| tcp.goodput).max()?;
    // Losses that TCP met as well are the path's at any rate.
    let usual = tcp().filter_map(resent_share).fold(0.0, f64::max) * AS_TCP;
    udp(result, direction).find_map(|udp| {
        let (planned, ratio) = (udp.planned?, udp.loss.ratio?);
        if udp.received == 0 {
            // An outage or a filter takes all of it at any rate.
            return None;
        }
        if !loses_below_tcp((planned, reached), (ratio.lo, usual)) {
            return None;
        }
        let rows = udp.receiver.iter().flat_map(|end| end.loss_runs.iter().copied());
        let rows = rows.chain(cut_off(found, direction));
        if in_few_rows(rows, udp.loss.lost).is_some() {
            // An outage says nothing of the rate.
            return None;
        }
        let (version, lost) = (result.version.name(), ratio.estimate * 100.0);
        Some(format!(
            "UDP {} over {version} at {planned}, which is less than TCP had reached, lost {lost:.0} %: the path did \
             not go on carrying that rate, or carries less of UDP",
            direction.name()
        ))
    })
}

/// Whether a stream of a lower rate than TCP reached lost more than TCP's own losses explain. The
/// rates are those of UDP and of TCP, and so are the shares of losses.
fn loses_below_tcp(rates: (BitRate, BitRate), losses: (f64, f64)) -> bool {
    rates.0 < rates.1 && losses.0 > MUCH_LOSS.max(losses.1)
}

/// The share of its bytes that a transfer had to send again.
fn resent_share(tcp: &TcpResult) -> Option<f64> {
    let sender = tcp.sender.as_ref()?;
    let sum = |of: fn(&StreamEnd) -> Option<ByteCount>| -> Option<u64> {
        sender.streams.iter().map(|stream| of(stream).map(|bytes| bytes.0)).sum()
    };
    let (sent, resent) = (sum(|stream| stream.bytes_sent)?, sum(|stream| stream.bytes_resent)?);
    (sent > 0).then(|| resent as f64 / sent as f64)
}

/// In how many rows most of the lost datagrams were lost, and how many these are, where the rows
/// are so few that they say nothing of how often that happens. `runs` has lengths and how often
/// each was.
fn in_few_rows(runs: impl Iterator<Item = (u64, u64)>, lost: u64) -> Option<(u64, u64)> {
    let long = runs.filter(|(length, _)| *length >= LONG_RUN);
    let (rows, of_rows) = long.fold((0_u64, 0_u64), |(rows, lost), (length, times)| {
        (rows.saturating_add(times), lost.saturating_add(times.saturating_mul(length)))
    });
    (of_rows > lost / 2 && rows < MIN_LOSS_RUNS as u64).then_some((rows, of_rows))
}

/// Losses of streams of unlike rates are those of the rates, as far as the rates explain them. The
/// path carried what came of the slower stream, and so much of the faster one.
fn unlike_rates(v4: &VersionResult, v6: &VersionResult, direction: Direction) -> Option<String> {
    let rated = |result| udp(result, direction).next().and_then(|udp| Some((udp.planned?, udp.loss.ratio)));
    let ((of_v4, lost_v4), (of_v6, lost_v6)) = (rated(v4)?, rated(v6)?);
    let ((less, lost_of_less), (more, lost_of_more)) = if of_v4 <= of_v6 {
        ((of_v4, lost_v4), (of_v6, lost_v6))
    } else {
        ((of_v6, lost_v6), (of_v4, lost_v4))
    };
    if more.0 as f64 <= less.0 as f64 * ALIKE {
        return None;
    }
    if let (Some(of_less), Some(of_more)) = (lost_of_less, lost_of_more) {
        let carried = less.0 as f64 * (1.0 - of_less.estimate);
        let explained = (1.0 - carried / more.0 as f64).max(0.0);
        if of_more.hi < of_less.lo || (of_more.lo > of_less.hi && of_more.lo > explained * MOST) {
            // The slower stream lost more, or the faster one far more than its rate explains.
            return None;
        }
    }
    Some(format!("the streams had unlike rates, {of_v4} over IPv4 and {of_v6} over IPv6"))
}

/// TCP itself would not have reached a rate with so much loss, unless it met as much.
const MUCH_LOSS: f64 = 0.05;
/// UDP's share of losses on a path that loses at random may exceed TCP's by this factor.
const AS_TCP: f64 = 2.0;
/// Fewer times at which requests were lost say nothing of how often that happens.
const MIN_LOSS_RUNS: usize = 3;
/// So many datagrams lost in a row are one event.
const LONG_RUN: u64 = 4;
/// A cause that explains less than the inverse of it leaves most of something unexplained.
const MOST: f64 = 2.0;
/// Rates of TCP over the same path differ by less from turn to turn.
const ALIKE: f64 = 1.1;
/// Of the rate of one link: several come as near to a whole number of them.
const A_PART_OF_A_LINK: f64 = 0.1;
/// Rates of one link differ by no more.
const OF_ONE_LINK: f64 = 1.05;
/// Beyond that nearly each ratio is near a whole number.
const MOST_LINKS: f64 = 6.0;

#[cfg(test)]
mod tests {
    use netaware_record::IpVersion;

    use super::super::super::{Across, Path, outages};
    use super::*;

    /// An outage of 80 ms each 15 s, of which two fell into the turns of one version.
    #[test]
    fn datagrams_lost_in_two_rows_are_no_property_of_a_version() {
        let of = |runs: &[(u64, u64)], lost| in_few_rows(runs.iter().copied(), lost);
        assert_eq!(of(&[(1, 1), (7, 2)], 15), Some((2, 14)));
        assert_eq!(of(&[(1, 1), (7, 3)], 22), None, "that often it is a habit");
        assert_eq!(of(&[(1, 9), (4, 1)], 13), None, "most were lost one by one");
        assert_eq!(of(&[], 0), None);
    }

    /// A firewall that drops the datagrams of one version, and a path that was down while they
    /// came.
    #[test]
    fn a_stream_of_which_nothing_came_is_no_outage_where_messages_came_all_the_time() {
        let of = |version, received: u64| {
            let lost = (1000 - received, 1);
            let rounds = [outages::tests::stream(Direction::Reverse, vec![lost], received)];
            let mut result = VersionResult::new(version);
            let path = Path { version, across: Across::Network };
            result.udp.extend(crate::report::udp::results(path, &rounds));
            result
        };
        let (v4, v6, f4) = (of(IpVersion::V4, 1000), of(IpVersion::V6, 0), Findings::default());
        let doubt = |millis, silence: bool| {
            let round = outages::tests::stream(Direction::Reverse, vec![(1000, 1)], 0);
            let silence = silence.then(|| Span::from_millis(millis));
            let udp = vec![UdpRound { silence, ..round }];
            let longest_pause = Some(Span::from_millis(millis));
            let f6 = Findings { udp, longest_pause, ..Findings::default() };
            let pair = Pair { v4: &v4, v6: &v6, f4: &f4, f6: &f6 };
            pair.doubt(Metric::UdpLoss, Direction::Reverse)
        };
        assert!(doubt(1_500, false).is_some_and(|why| why.contains("as in an outage")));
        assert_eq!(doubt(900, false), None, "it lasted 1 s");
        let silent = doubt(3_000, true).unwrap();
        assert_eq!(silent, "over IPv6 nothing at all came for 3.00 s, as in an outage");
    }

    /// Of 245 datagrams that an outage took, the cause was said to be that the other version's
    /// stream had another rate.
    #[test]
    fn an_outage_that_took_a_whole_short_stream_is_not_blamed_on_unlike_rates() {
        let of = |version, received: u64, planned| {
            let rounds = [outages::tests::stream(Direction::Forward, vec![], received)];
            let mut result = VersionResult::new(version);
            let path = Path { version, across: Across::Network };
            result.udp.extend(crate::report::udp::results(path, &rounds));
            result.udp[0].planned = Some(BitRate(planned));
            result
        };
        let (v4, v6) = (of(IpVersion::V4, 0, 9_250_000), of(IpVersion::V6, 1000, 7_600_000));
        let doubt = |pause| {
            let f4 = Findings {
                udp: vec![outages::tests::stream(Direction::Forward, vec![], 0)],
                longest_pause: Some(Span::from_millis(pause)),
                ..Findings::default()
            };
            let pair = Pair { v4: &v4, v6: &v6, f4: &f4, f6: &Findings::default() };
            pair.doubt(Metric::UdpLoss, Direction::Forward)
        };
        let want = "over IPv4 all datagrams of 1.00 s were lost, as in an outage";
        assert_eq!(doubt(1_500).as_deref(), Some(want));
        assert_eq!(doubt(900), None, "messages came meanwhile");
    }

    /// 1584 of 1584 datagrams that a filter dropped were said to be lost "in 1 row, as in an
    /// outage", and the version that lost them was preferred.
    #[test]
    fn a_stream_of_which_nothing_came_is_no_outage_because_it_is_one_row() {
        let of = |version, received: u64| {
            let lost = if received == 0 { vec![(1000, 1)] } else { vec![(1, 950)] };
            let rounds = [outages::tests::stream(Direction::Forward, lost, received)];
            let mut result = VersionResult::new(version);
            let path = Path { version, across: Across::Network };
            result.udp.extend(crate::report::udp::results(path, &rounds));
            result
        };
        let (v4, v6) = (of(IpVersion::V4, 50), of(IpVersion::V6, 0));
        let pair = Pair { v4: &v4, v6: &v6, f4: &Findings::default(), f6: &Findings::default() };
        assert_eq!(pair.udp_outage(Direction::Forward), None);
    }

    /// 95 % of loss against none were said to be those of 11.4 Mbit/s against 10.3: a tenth more
    /// explains a tenth of loss.
    #[test]
    fn a_loss_is_doubted_only_where_the_rates_explain_it() {
        let of = |version, planned, lost: u64| {
            let rounds = [outages::tests::stream(Direction::Forward, vec![(1, lost)], 1000 - lost)];
            let mut result = VersionResult::new(version);
            let path = Path { version, across: Across::Network };
            result.udp.extend(crate::report::udp::results(path, &rounds));
            result.udp[0].planned = Some(BitRate(planned));
            result
        };
        let doubts = |(rate4, lost4), (rate6, lost6)| {
            let (v4, v6) = (of(IpVersion::V4, rate4, lost4), of(IpVersion::V6, rate6, lost6));
            unlike_rates(&v4, &v6, Direction::Forward).is_some()
        };
        assert!(!doubts((10_300_000, 0), (11_400_000, 950)));
        assert!(doubts((10_300_000, 0), (11_400_000, 95)), "as much as the rates explain");
        assert!(doubts((20_000_000, 600), (10_000_000, 0)), "one path of 10 Mbit/s gives half of loss");
        assert!(!doubts((10_000_000, 300), (20_000_000, 0)), "the slower stream lost");
        assert!(doubts((20_000_000, 0), (10_000_000, 0)), "nothing lost is no difference");
        assert!(!doubts((10_000_000, 0), (10_500_000, 40)), "alike");
    }

    /// 26 % that an outage took from the end of a stream were said to be of a rate that the path
    /// did not go on carrying: the marks of its end were lost with them, and the receiver had no
    /// row.
    #[test]
    fn an_outage_that_outlasted_a_stream_says_nothing_of_its_rate() {
        let stream = |received: u64, came_within: i64| {
            let mut round = outages::tests::stream(Direction::Reverse, vec![], received);
            round.ended.udp_receiver.as_mut().unwrap().elapsed = Span::from_millis(came_within);
            round
        };
        assert!(is_outage(&stream(740, 740)));
        assert!(!is_outage(&stream(740, 1200)), "a queue may have held up what did not come");
        assert!(!is_outage(&stream(1000, 1000)), "nothing was lost");
        let of = |version, received: u64| {
            let rounds = [stream(received, 740)];
            let mut result = VersionResult::new(version);
            let path = Path { version, across: Across::Network };
            result.udp.extend(crate::report::udp::results(path, &rounds));
            result
        };
        let (v4, v6, f4) = (of(IpVersion::V4, 1000), of(IpVersion::V6, 740), Findings::default());
        let f6 = Findings { udp: vec![stream(740, 740)], ..Findings::default() };
        let pair = Pair { v4: &v4, v6: &v6, f4: &f4, f6: &f6 };
        assert_eq!(
            pair.udp_outage(Direction::Reverse).unwrap(),
            "over IPv6 260 of the 260 lost datagrams were lost in 1 row, as in an outage"
        );
    }

    /// Three links of 200 Mbit/s, of which four streams met three over IPv4 and two over IPv6.
    #[test]
    fn links_that_streams_meet_by_chance_prefer_no_version() {
        assert_eq!(times_of_links([198.2, 197.6], [591.4, 392.2]), Some((3, 2)));
        assert_eq!(times_of_links([198.2, 197.6], [591.4, 590.0]), None, "both met as many");
        assert_eq!(times_of_links([95.0, 48.0], [95.0, 48.0]), None, "one is slower");
        assert_eq!(times_of_links([20.0, 20.0], [95.0, 48.0]), None, "no links of 20");
        assert_eq!(times_of_links([0.0, 0.0], [1.0, 2.0]), None);
    }

    /// UDP limited to 3 Mbit/s on a path on which TCP reached 77.
    #[test]
    fn a_stream_that_loses_most_below_the_rate_of_tcp_is_told() {
        let rates = |udp: u64| (BitRate(udp * 1_000_000), BitRate(77_000_000));
        assert!(loses_below_tcp(rates(31), (0.86, 0.0)));
        assert!(!loses_below_tcp(rates(31), (0.02, 0.0)));
        assert!(!loses_below_tcp(rates(31), (0.18, 0.2)), "TCP met as much");
        assert!(!loses_below_tcp(rates(90), (0.86, 0.0)), "faster than the path");
    }
}
