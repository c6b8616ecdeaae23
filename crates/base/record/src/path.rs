//! What is known of a path before any load: can it be reached, how long is it, how big a packet
//! fits.

use netaware_units::Span;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why nothing, or nothing more, could be measured over an IP version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Unreachable {
    /// What was being tried: `resolve`, `connect`, `hello`, `reserve`, `udp`, `tcp`, …
    pub stage: String,
    /// What happened, in one sentence with the address and the system's answer.
    pub reason: String,
    /// What to try; may be empty.
    #[serde(default)]
    pub advice: String,
}

/// A phase that was to be run over a version that was reached, and failed: the responder refused
/// it, nothing of its kind came through, or it could not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FailedPhase {
    /// What was to be done: "send trains".
    pub stage: String,
    /// Why it failed, in a sentence.
    pub reason: String,
}

/// Name resolution and connection set-up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Reach {
    /// Time of the name lookup (one for both versions); absent for literal addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolve: Option<Span>,
    /// Time of each TCP connect (SYN to SYN/ACK, as the application sees it).
    pub connects: Vec<Span>,
    /// From connected to the responder's welcome.
    pub greeting: Span,
    /// Smallest round trip that this host's TCP measured meanwhile. A connect whose first segment
    /// was lost takes a second more than a round trip; this does not. Absent where the system does
    /// not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Span>,
}

impl Reach {
    /// The path's round trip as far as connecting tells: the smallest of what TCP measured and of
    /// the connects.
    pub fn shortest_round_trip(&self) -> Option<Span> {
        self.connects.iter().chain(&self.round_trip).min().copied()
    }

    /// The longest of the connects, without those that took longer because their first segment was
    /// lost: it is sent again after a second (RFC 6298 §2.1).
    pub fn longest_round_trip(&self) -> Option<Span> {
        let shortest = self.shortest_round_trip()?;
        let once = self.connects.iter().filter(|took| self.resent_for(**took).is_none());
        once.max().copied().or(Some(shortest))
    }

    /// By how much connecting took longer than a round trip, if it took so long that its first
    /// segment was lost, or came too late, and was sent again. **Biased**: a first segment that a
    /// queue held for almost a second counts as well.
    pub fn resent_for(&self, took: Span) -> Option<Span> {
        let longer = took - self.shortest_round_trip()?;
        (longer >= SENT_AGAIN_AFTER).then_some(longer)
    }

    /// In a sentence without an end, which connects had no answer to their first segment; `None`
    /// where all of them had one.
    pub fn lost_syns(&self) -> Option<String> {
        let was_resent = |took: &Span| self.resent_for(*took).is_some();
        let resent: Vec<Span> = self.connects.iter().copied().filter(was_resent).collect();
        let (longest, shortest) = (resent.iter().max()?, self.shortest_round_trip()?);
        Some(match resent.len() {
            1 => format!("the first SYN got no answer: connecting took {longest} instead of {shortest}"),
            many => format!(
                "the first SYNs of {many} connections got no answer: connecting took up to {longest} instead of \
                 {shortest}"
            ),
        })
    }
}

/// Less what a clock may be late.
const SENT_AGAIN_AFTER: Span = Span::from_millis(900);

/// Path MTU and hop counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PathFacts {
    /// Largest IP packet that passed unfragmented there and back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// How that compares with what the system believes.
    pub mtu_finding: MtuFinding,
    /// Smallest packet that was tried and vanished without an answer; absent where none did. It is
    /// one byte more than `mtu` unless the search was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_vanishes: Option<u32>,
    /// MTU the kernel assumed for the path before any probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_believed: Option<u32>,
    /// Routers crossed, forward: common initial TTL (64, 128, 255) minus the TTL that arrived. A
    /// guess of the initial value, wrong when a host starts elsewhere or a tunnel hides hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops_forward: Option<u8>,
    /// The same on the way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops_reverse: Option<u8>,
}

impl PathFacts {
    /// In a sentence without an end, which sizes vanish; `None` unless a black hole was found.
    pub fn black_hole(&self) -> Option<String> {
        let passes = self.mtu.filter(|_| self.mtu_finding == MtuFinding::BlackHole)?;
        Some(match self.mtu_vanishes.filter(|vanishes| *vanishes > passes + 1) {
            None => format!("packets above {passes} bytes vanish and no router says so"),
            Some(vanishes) => format!(
                "packets of {vanishes} bytes and more vanish and no router says so, those of {passes} bytes pass"
            ),
        })
    }
}

/// What the search for the path MTU found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MtuFinding {
    /// Not searched, or no answer at all.
    #[default]
    Unknown,
    /// Packets of the believed size pass.
    Confirmed,
    /// A router answered "packet too big"; the system learnt a smaller value.
    Learnt,
    /// Larger packets vanish without an answer: TCP stalls on such a path.
    BlackHole,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_black_hole_whose_edge_was_not_found_is_not_said_to_be_exact() {
        let facts = |mtu, mtu_vanishes| PathFacts {
            mtu: Some(mtu),
            mtu_finding: MtuFinding::BlackHole,
            mtu_vanishes,
            ..PathFacts::default()
        };
        let exact = "packets above 1300 bytes vanish and no router says so";
        assert_eq!(facts(1300, Some(1301)).black_hole().unwrap(), exact);
        assert_eq!(
            facts(1280, Some(1350)).black_hole().unwrap(),
            "packets of 1350 bytes and more vanish and no router says so, those of 1280 bytes pass"
        );
        let learnt = PathFacts { mtu_finding: MtuFinding::Learnt, ..facts(1300, None) };
        assert_eq!((learnt.black_hole(), PathFacts::default().black_hole()), (None, None));
    }

    /// A connection took two seconds on a path of 20 ms, and nobody was told.
    #[test]
    fn a_lost_syn_is_named_with_the_time_that_it_cost() {
        let reach = |connects: &[i64]| Reach {
            resolve: None,
            connects: connects.iter().copied().map(Span::from_millis).collect(),
            greeting: Span::from_millis(20),
            round_trip: Some(Span::from_millis(20)),
        };
        assert_eq!(reach(&[20, 25, 900]).lost_syns(), None, "a queue, and no retransmission");
        assert_eq!(
            reach(&[1020, 20, 20]).lost_syns().unwrap(),
            "the first SYN got no answer: connecting took 1.02 s instead of 20.0 ms"
        );
        let two = reach(&[1020, 20, 3020]).lost_syns().unwrap();
        assert!(two.starts_with("the first SYNs of 2 connections") && two.contains("3.02 s"), "{two}");
        // A round trip of more than a second is sent again as well, and nothing was lost.
        let far = Reach { round_trip: Some(Span::from_millis(1200)), ..reach(&[1200, 1250, 1210]) };
        assert_eq!(far.lost_syns(), None);
        assert_eq!(reach(&[20]).resent_for(Span::from_millis(2520)), Some(Span::from_millis(2500)));
    }

    type Row = (&'static [i64], Option<i64>, Option<(i64, i64)>);

    #[test]
    fn a_lost_syn_does_not_make_the_round_trip_a_second_longer() {
        let reach = |connects: &[i64], round_trip: Option<i64>| Reach {
            resolve: None,
            connects: connects.iter().copied().map(Span::from_millis).collect(),
            greeting: Span::ZERO,
            round_trip: round_trip.map(Span::from_millis),
        };
        // Milliseconds of the connects, of TCP's own, and what is the shortest and the longest.
        let rows: [Row; 6] = [
            (&[20, 22, 25], Some(20), Some((20, 25))),
            (&[1020, 22, 25], Some(21), Some((21, 25))),
            (&[1020], Some(20), Some((20, 20))),
            (&[1200, 1250, 2200], None, Some((1200, 1250))),
            (&[], Some(7), Some((7, 7))),
            (&[], None, None),
        ];
        for (connects, round_trip, want) in rows {
            let reach = reach(connects, round_trip);
            let found = reach.shortest_round_trip().zip(reach.longest_round_trip());
            let want = want.map(|(least, most)| (Span::from_millis(least), Span::from_millis(most)));
            assert_eq!(found, want, "{connects:?} {round_trip:?}");
        }
    }
}
