//! Watches both connections and wishes for the better one.
//!
//! What the stream carries shows the connection that it uses. The other one carries nothing, so it
//! is padded now and then, with as much as its congestion window needs to open: twice as much as
//! the last time while that still raised the rate, half as much when it did not. Padding costs
//! [`Rules::budget`] of what the stream carries, and a first allowance. Both rates are the kernel's
//! delivery rate, so they err alike.
//!
//! Where the policy asks for round trips a ping does. Where it asks for loss, which only many
//! packets show, the other version gets one of a byte of padding every 20 ms, as far as the budget
//! pays for it, and nothing is said of its loss before there were enough of them.

mod loss;

use netaware_dual::Stream;
use netaware_dual::policy::{Decision, Evidence, Metric, Observation, Policy, Rules};
use netaware_io::tcp_info::TcpInfo;
use netaware_record::{IpVersion, Use};
use netaware_units::{BitRate, ByteCount, Mono, Span};

use loss::{LossSeen, LossWindow};

#[derive(Debug)]
pub(crate) struct Steer {
    policy: Policy,
    /// A callback decides; the rules say what is looked at.
    judged: bool,
    /// Something was seen that it has not been shown, and when it was shown the last.
    fresh: bool,
    shown_at: Option<Mono>,
    /// By IP version.
    losses: [LossWindow; 2],
    observed_at: Option<Mono>,
    look_at: Mono,
    probe: Option<Probe>,
    /// When the other version gets a further packet that shows its loss, where one can be paid for.
    packet_at: Mono,
    /// What it was given waits: more would tell nothing.
    is_choked: bool,
    /// Bytes of padding that may still be spent.
    allowance: f64,
    acked: u64,
    size: u32,
    rate: BitRate,
    nonce: u64,
}

/// Padding under way.
#[derive(Debug, Clone, Copy)]
struct Probe {
    ip: IpVersion,
    began_at: Mono,
}

impl Steer {
    /// None where neither rules nor a callback decide.
    pub(crate) fn made(rules: Option<Rules>, judged: bool, now: Mono) -> Option<Self> {
        let rules = rules.or_else(|| judged.then(|| Rules::of(Use::Bulk)));
        rules.map(|rules| Self::new(rules, judged, now))
    }

    fn new(rules: Rules, judged: bool, now: Mono) -> Self {
        Self {
            policy: Policy::new(rules),
            judged,
            fresh: false,
            shown_at: None,
            losses: Default::default(),
            observed_at: None,
            look_at: now,
            probe: None,
            packet_at: now,
            is_choked: false,
            allowance: if rules.metric == Metric::Goodput { FIRST_ALLOWANCE } else { 0.0 },
            acked: 0,
            size: SMALLEST,
            rate: BitRate(0),
            nonce: 0,
        }
    }

    /// The stream goes another way.
    pub(crate) fn turned(&mut self, now: Mono) {
        self.policy.switched(now);
        self.probe = None;
        self.losses = Default::default();
        self.look_at = now + self.policy.rules().every;
    }

    /// Takes in what the kernel knows; `busy` where the stream has bytes under way. The decision,
    /// where there is one.
    pub(crate) fn look(
        &mut self,
        now: Mono,
        stream: &mut Stream,
        seen: &[Option<TcpInfo>; 2],
        busy: bool,
    ) -> Option<Decision> {
        let present = stream.current()?;
        let other = present.other();
        let acked = stream.acked();
        self.allowance += (acked - self.acked) as f64 * self.policy.rules().budget;
        self.acked = acked;
        if self.policy.rules().metric != Metric::Goodput {
            self.allowance = self.allowance.min(PACKET_COST * MOST_SAVED);
        }
        self.is_choked = seen[other.index()].is_none_or(|info| info.unsent > ByteCount(0));
        let due = self.observed_at.is_none_or(|at| now - at >= OBSERVED_EVERY);
        if let Some(info) = seen[present.index()].filter(|_| busy && due) {
            self.observe(now, present, &info, info.delivery_rate);
            self.observed_at = Some(now);
        }
        if let Some(info) = seen[other.index()] {
            self.look_at_other(now, other, &info, stream, busy);
        }
        if self.judged || !busy && self.policy.rules().metric == Metric::Goodput {
            return None;
        }
        self.policy.decide(now, present)
    }

    /// When [`Self::send_packet`] has something to do.
    pub(crate) fn packet_at(&self) -> Option<Mono> {
        let wanted = self.policy.rules().metric == Metric::Loss;
        (wanted && !self.is_choked && self.allowance >= PACKET_COST).then_some(self.packet_at)
    }

    /// Gives the other version a packet, so that its loss shows.
    pub(crate) fn send_packet(&mut self, now: Mono, stream: &mut Stream) {
        if self.packet_at().is_none_or(|at| at > now) {
            return;
        }
        self.packet_at = now + BETWEEN_PACKETS;
        let other = stream.current().map(IpVersion::other);
        if other.is_some_and(|ip| stream.pad(ip, 1)) {
            self.allowance -= PACKET_COST;
        }
    }

    /// What a callback is to judge by, where there is something new.
    pub(crate) fn evidence(&mut self, now: Mono, present: IpVersion, up: [bool; 2]) -> Option<Evidence> {
        let due = self.shown_at.is_none_or(|at| now - at >= self.policy.rules().every);
        if !(self.judged && self.fresh && due) {
            return None;
        }
        (self.fresh, self.shown_at) = (false, Some(now));
        Some(self.policy.evidence(now, present, up))
    }

    /// What goes into the log where a callback wants to be elsewhere.
    pub(crate) fn called(&self, now: Mono, present: IpVersion) -> Option<Decision> {
        self.judged.then(|| self.policy.called(now, present))
    }

    fn look_at_other(&mut self, now: Mono, ip: IpVersion, info: &TcpInfo, stream: &mut Stream, busy: bool) {
        let goodput = self.policy.rules().metric == Metric::Goodput;
        if let Some(probe) = self.probe.filter(|probe| probe.ip == ip) {
            let over = info.unacked == 0 && info.unsent == ByteCount(0);
            if over && now - probe.began_at >= SETTLED || now - probe.began_at > LONGEST_PROBE {
                self.probe = None;
                self.look_at = now + self.policy.rules().every;
                self.judge(now, ip, info);
            }
            return;
        }
        if now < self.look_at {
            return;
        }
        if !goodput {
            self.nonce += 1;
            stream.ping(ip, self.nonce);
            self.observe(now, ip, info, BitRate(0));
            self.look_at = now + self.policy.rules().every;
        } else if busy && self.allowance >= f64::from(self.size) {
            let padded = (0..self.size.div_ceil(PAD)).all(|_| stream.pad(ip, PAD));
            if padded {
                self.allowance -= f64::from(self.size);
                self.probe = Some(Probe { ip, began_at: now });
            }
        }
    }

    /// A rate that still grew with the padding was the window's, not the path's.
    fn judge(&mut self, now: Mono, ip: IpVersion, info: &TcpInfo) {
        let rate = info.delivery_rate;
        let grew = rate.0 as f64 > self.rate.0 as f64 * GROWN;
        self.rate = rate;
        if grew && self.size < LARGEST {
            self.size *= 2;
            return;
        }
        if !grew {
            self.size = (self.size / 2).max(SMALLEST);
        }
        self.observe(now, ip, info, rate);
    }

    fn observe(&mut self, now: Mono, ip: IpVersion, info: &TcpInfo, rate: BitRate) {
        let losses = &mut self.losses[ip.index()];
        losses.note(now, info);
        let seen = losses.seen();
        self.fresh = true;
        self.policy.observe(&Observation {
            at: now,
            ip,
            goodput: (rate.0 > 0).then_some(rate),
            round_trip: (info.rtt > Span::ZERO).then_some(info.rtt),
            loss: seen.map(|seen: LossSeen| seen.share),
            loss_bounds: seen.map(|seen| seen.bounds),
        });
    }
}

/// Of padding in one record.
const PAD: u32 = 64 * 1024;
const SMALLEST: u32 = 256 * 1024;
const LARGEST: u32 = 8 << 20;
/// Bytes of padding before the stream has carried any.
const FIRST_ALLOWANCE: f64 = (4 << 20) as f64;
const GROWN: f64 = 1.2;
/// Of a packet with a byte of padding: its head, those of TCP with timestamps and IPv6, and of the
/// acknowledgement.
const PACKET_COST: f64 = 17.0 + 72.0 + 72.0;
const BETWEEN_PACKETS: Span = Span::from_millis(20);
/// Packets that can be saved up for later.
const MOST_SAVED: f64 = 20.0;
const OBSERVED_EVERY: Span = Span::from_millis(250);
/// Padding is written within this.
const SETTLED: Span = Span::from_millis(40);
const LONGEST_PROBE: Span = Span::from_secs(2);

#[cfg(test)]
mod simulated;
