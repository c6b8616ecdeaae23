//! At a planned spacing, each datagram at its own absolute deadline.
//!
//! A datagram is never sent early. One that is overdue by up to [`HOLE`] leaves at once, so the mean rate is exact. After a
//! longer hole (the hypervisor or another program had the core) the datagrams that were due in it are left out and counted
//! as `not_sent`: sent back to back they would make a burst that no plan asked for, and the receiver would blame the
//! network. `late` counts datagrams that left later than a tenth of the gap or 10 us, whichever is more.

use netaware_record::{Outcome, UdpSenderEnd};
use netaware_units::{ByteCount, Mono, Span};
use netaware_wire::control::UdpPlan;

use super::gaps::GapRecorder;
use super::outbox::{Outbox, Refusal};
use super::unpaced::MOST_UNANSWERED;
use super::{priority, sleep_watching};
use crate::clock;
use crate::pacer::{self, Pacer};
use crate::stop::StopFlag;

pub(super) fn send(outbox: &mut Outbox<'_>, plan: &UdpPlan, gap_ps: u64, stop: &StopFlag) -> UdpSenderEnd {
    let margin = pacer::margin();
    priority::raise();
    let _precise = pacer::precise_sleep();
    let start = clock::now() + LEAD;
    let mut stream = Paced::new(start, gap_ps.max(SHORTEST_GAP_PS), margin);
    let outcome = stream.run(outbox, plan, start + plan.duration.or_zero(), stop);
    UdpSenderEnd {
        outcome,
        elapsed: stream.last.map_or(Span::ZERO, |last| last - start),
        sent: outbox.sent(),
        not_sent: stream.not_sent,
        bytes: ByteCount(outbox.sent() * outbox.length()),
        late: stream.late,
        worst_lateness: stream.worst,
        gaps: stream.gaps.summary(stream.gap),
        ..UdpSenderEnd::default()
    }
}

#[derive(Debug)]
struct Paced {
    pacer: Pacer,
    gap: Span,
    wait: Wait,
    tolerance: Span,
    hole: Span,
    gaps: GapRecorder,
    last: Option<Mono>,
    late: u64,
    not_sent: u64,
    worst: Span,
    unanswered: u32,
}

impl Paced {
    fn new(start: Mono, gap_ps: u64, margin: Span) -> Self {
        let gap = Span((gap_ps / 1000) as i64);
        Self {
            pacer: Pacer::new(start, gap_ps),
            gap,
            wait: Wait::new(start, margin),
            tolerance: (gap / 10).max(LEAST_TOLERANCE),
            hole: gap.max(HOLE),
            gaps: GapRecorder::new(),
            last: None,
            late: 0,
            not_sent: 0,
            worst: Span::ZERO,
            unanswered: 0,
        }
    }

    fn run(&mut self, outbox: &mut Outbox<'_>, plan: &UdpPlan, end: Mono, stop: &StopFlag) -> Outcome {
        let planned = plan.packets.unwrap_or(u64::MAX);
        loop {
            let due = self.pacer.due();
            if due >= end || self.pacer.steps() >= planned {
                return Outcome::Complete;
            }
            if stop.is_raised() {
                return Outcome::Interrupted;
            }
            let now = self.wait.until(due, stop);
            if now < due {
                continue;
            }
            let lateness = now - due;
            self.worst = self.worst.max(lateness);
            if lateness > self.hole {
                self.not_sent += self.pacer.skip_to(now);
                continue;
            }
            self.pacer.advance();
            if let Err(error) = outbox.send(1, now) {
                if self.is_over(Refusal::from(&error)) {
                    return Outcome::Failed;
                }
                continue;
            }
            self.count(now, lateness);
        }
    }

    #[inline]
    fn count(&mut self, now: Mono, lateness: Span) {
        self.late += u64::from(lateness > self.tolerance);
        if let Some(last) = self.last.replace(now) {
            self.gaps.observe(now - last);
        }
    }

    fn is_over(&mut self, refusal: Refusal) -> bool {
        self.not_sent += 1;
        self.unanswered += u32::from(refusal == Refusal::NobodyThere);
        refusal == Refusal::Fatal || self.unanswered > MOST_UNANSWERED
    }
}

/// Waits for deadlines: sleeps up to a margin and spins the rest where there is room, breathes where there is none.
#[derive(Debug)]
struct Wait {
    margin: Span,
    breath: Breath,
}

impl Wait {
    fn new(start: Mono, margin: Span) -> Self {
        Self { margin, breath: Breath::new(start) }
    }

    /// The time when the deadline is over, or earlier when `stop` is raised.
    #[inline]
    fn until(&mut self, due: Mono, stop: &StopFlag) -> Mono {
        let now = clock::now();
        let room = due - self.margin - now;
        if room > LONGEST_SLEEP {
            sleep_watching(due - self.margin, stop);
            if stop.is_raised() {
                return clock::now();
            }
        } else if room > SHORTEST_SLEEP {
            clock::sleep_until(due - self.margin);
        } else {
            self.breath.take_if_owed(now, due);
        }
        pacer::spin_until(due)
    }
}

/// Sleeps a little now and then when the gaps leave no room for it.
///
/// A thread that only spins is stopped in the end: the kernel gives 5 % of each second to ordinary threads that are
/// waiting, in one piece, a hole of 50 ms. Measured beside a busy compiler at gaps of 10 and 20 us: spinning alone has such
/// a hole every second, leaving the core for 5 % of the time does not remove it, 9 % does. Each breath is meant to end when
/// the datagram is due, judging by the overshoot of earlier ones, so that it disturbs one gap by a microsecond or two.
///
/// What counts is the time off the core, which is not the time asked for: the thread's own CPU clock tells it every
/// [`SYNC_EVERY`], and what a breath gains is learned from that.
#[derive(Debug)]
struct Breath {
    owed: Span,
    overshoot: Span,
    /// Time off the core that one breath brings.
    gain: Span,
    /// Breaths since the last look at the CPU clock.
    breaths: i64,
    synced_at: Mono,
    cpu_then: Span,
}

impl Breath {
    fn new(start: Mono) -> Self {
        Self {
            owed: Span::ZERO,
            overshoot: FIRST_OVERSHOOT,
            gain: FIRST_GAIN,
            breaths: 0,
            synced_at: start,
            cpu_then: crate::thread::cpu_time_exact(),
        }
    }

    #[inline]
    fn take_if_owed(&mut self, now: Mono, due: Mono) {
        if now - self.synced_at >= SYNC_EVERY {
            self.sync(now, crate::thread::cpu_time_exact());
        }
        let accrued = (now - self.synced_at) * SHARE_PERCENT / 100;
        // A datagram that is overdue already goes first.
        if self.owed + accrued <= Span::ZERO || now >= due {
            return;
        }
        let until = (due - self.overshoot).max(now + SHORTEST_SLEEP);
        clock::sleep_until(until);
        let overshoot = clock::now() - until;
        self.owed -= self.gain;
        self.breaths += 1;
        // Follows the typical overshoot and is not led astray by the rare long one.
        let step = (overshoot - self.overshoot).0.clamp(-STEP.0, STEP.0);
        self.overshoot = (self.overshoot + Span(step)).min(LONGEST_OVERSHOOT);
    }

    /// Settles what was owed and estimated by what the CPU clock says.
    fn sync(&mut self, now: Mono, cpu: Span) {
        let passed = now - self.synced_at;
        let idle = (passed - (cpu - self.cpu_then)).or_zero();
        let estimated = self.gain * self.breaths;
        let settled = self.owed + passed * SHARE_PERCENT / 100 + estimated - idle;
        self.owed = Span(settled.0.clamp(-MOST_OWED.0, MOST_OWED.0));
        if self.breaths > 0 {
            self.gain = Span(((self.gain * 3 + idle / self.breaths) / 4).0.clamp(LEAST_GAIN.0, MOST_GAIN.0));
        }
        if std::env::var_os("DBG").is_some() && now.0 % 50 == 0 { eprintln!("passed {passed} idle {idle} breaths {} gain {} over {} owed {}", self.breaths, self.gain, self.overshoot, self.owed); }
        (self.breaths, self.synced_at, self.cpu_then) = (0, now, cpu);
    }
}

/// A hole; see the module.
const HOLE: Span = Span::from_millis(1);
const LEAST_TOLERANCE: Span = Span::from_micros(10);
/// Before the first datagram, so that it is on time.
const LEAD: Span = Span::from_millis(1);
/// 1 us: faster than any host sends one by one, and no plan makes the arithmetic absurd.
const SHORTEST_GAP_PS: u64 = 1_000_000;
const SHORTEST_SLEEP: Span = Span::from_micros(2);
/// Longer sleeps watch the stop flag.
const LONGEST_SLEEP: Span = Span::from_millis(20);
const SHARE_PERCENT: i64 = 9;
const SYNC_EVERY: Span = Span::from_millis(1);
/// A hole pays for a long time without a breath, and no debt is paid off in one go.
const MOST_OWED: Span = Span::from_micros(500);
const FIRST_GAIN: Span = Span::from_micros(5);
const LEAST_GAIN: Span = Span::from_micros(1);
const MOST_GAIN: Span = Span::from_micros(100);
const FIRST_OVERSHOOT: Span = Span::from_micros(5);
const LONGEST_OVERSHOOT: Span = Span::from_micros(30);
const STEP: Span = Span::from_nanos(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_follows_the_cpu_clock_and_is_bounded_both_ways() {
        let mut breath = Breath { cpu_then: Span::ZERO, ..Breath::new(Mono(0)) };
        breath.sync(Mono(1_000_000), Span::from_millis(1));
        assert_eq!(breath.owed, Span::from_micros(90));
        // Ten breaths estimated at 5 us each have brought 100 us: the difference is settled, and one is worth more.
        breath.breaths = 10;
        breath.owed -= breath.gain * 10;
        breath.sync(Mono(2_000_000), Span::from_micros(1_900));
        assert_eq!(breath.owed, Span::from_micros(80));
        assert!(breath.gain > FIRST_GAIN);
        breath.sync(Mono(9_000_000_000), Span::from_micros(1_900));
        assert_eq!(breath.owed, -MOST_OWED);
        breath.sync(Mono(99_000_000_000), Span::from_secs(99));
        assert_eq!(breath.owed, MOST_OWED);
    }
}
