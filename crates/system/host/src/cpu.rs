//! CPU time of this process and of every core of the host, over a phase.
//!
//! Cores are read from `/proc/stat`, which counts in ticks of 10 ms: **over an interval of length T
//! each share is wrong by up to 10 ms / T** (1 % over a second), so shares of cores are absent for
//! less than 100 ms. Unless the kernel is built with `CONFIG_VIRT_CPU_ACCOUNTING`, it finds out who
//! runs by looking at each timer tick: work that sleeps in step with the tick, as a paced sender
//! may, goes uncounted, so a core can read too idle but hardly too busy. Steal counts as busy,
//! because the core was wanted and could not be had; without paravirtual steal accounting it reads
//! as zero.
//!
//! The process's own time comes from `getrusage` and does not suffer from the tick, save for its
//! split into user and kernel mode. In a container `/proc/stat` shows the whole host, which is what
//! decides whether cores were free.

use std::collections::BTreeMap;

use netaware_record::CpuUse;
use netaware_units::Span;

use crate::rusage::{self, CpuTime};
use crate::{describe, kernel_file};

/// Share of all CPU time since the system started that the hypervisor withheld; `None` where the
/// system does not tell.
pub(crate) fn steal_since_boot() -> Option<f64> {
    share_of_steal(&kernel_file::read("/proc/stat")?)
}

fn share_of_steal(stat: &str) -> Option<f64> {
    let total = parse_stat(stat).into_values().fold(CoreTicks::default(), |sum, core| sum.plus(&core));
    (total.total() > 0).then(|| total.share(total.steal))
}

/// CPU counters at one instant. Taking one costs about 0.1 ms, more on hosts with hundreds of
/// cores.
#[derive(Debug, Clone, Default)]
pub struct CpuSnapshot {
    process: Option<CpuTime>,
    /// By the kernel's number of the core; offline cores are missing.
    cores: BTreeMap<u32, CoreTicks>,
    online: u32,
}

impl CpuSnapshot {
    /// Reads the counters.
    pub fn take() -> Self {
        Self {
            process: rusage::of_process(),
            cores: kernel_file::read("/proc/stat").map(|text| parse_stat(&text)).unwrap_or_default(),
            online: describe::cores_online(),
        }
    }

    /// What was used since `earlier`, `elapsed` ago by the caller's monotonic clock.
    /// `busiest_thread` and `denied` are absent: the caller knows which threads moved data.
    ///
    /// Cores that were not online at both ends are left out. Shares of the process are 0 when no
    /// time has passed.
    #[must_use]
    pub fn use_since(&self, earlier: &Self, elapsed: Span) -> CpuUse {
        let (process_user, process_system) = self.process_since(earlier, elapsed);
        let cores = self.cores_since(earlier);
        let total: CoreTicks = cores.iter().fold(CoreTicks::default(), CoreTicks::plus);
        let longest = cores.iter().map(CoreTicks::total).max().unwrap_or(0);
        let known = longest >= FEWEST_TICKS;
        // A core that came online half-way has few ticks, of which one more or less is a large
        // share.
        let full = cores.iter().filter(|core| core.total().saturating_mul(2) >= longest);
        CpuUse {
            process_user,
            process_system,
            busiest_thread: None,
            busiest_core: full.map(|core| core.share(core.busy())).reduce(f64::max).filter(|_| known),
            host: known.then(|| total.share(total.busy())),
            softirq: known.then(|| total.share(total.interrupt())),
            steal: known.then(|| total.share(total.steal)),
            denied: None,
            cores: self.online,
        }
    }

    fn process_since(&self, earlier: &Self, elapsed: Span) -> (Option<f64>, Option<f64>) {
        let (Some(now), Some(before)) = (self.process, earlier.process) else { return (None, None) };
        let all_cores = f64::from(self.online.max(earlier.online).max(1));
        let share = |part: Span| (part.secs_f64() / elapsed.secs_f64()).clamp(0.0, all_cores);
        if elapsed <= Span::ZERO {
            return (None, None);
        }
        (Some(share(now.user - before.user)), Some(share(now.system - before.system)))
    }

    fn cores_since(&self, earlier: &Self) -> Vec<CoreTicks> {
        let both = self.cores.iter().filter_map(|(number, now)| Some((now, earlier.cores.get(number)?)));
        both.map(|(now, before)| now.minus(before)).filter(|core| core.total() > 0).collect()
    }
}

/// Ticks of one core since boot, or their difference, by what it did: proc(5). Guest time is part
/// of user time there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CoreTicks {
    user: u64,
    nice: u64,
    system: u64,
    idle: u64,
    iowait: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
}

impl CoreTicks {
    fn busy(&self) -> u64 {
        let own = [self.user, self.nice, self.system, self.interrupt(), self.steal];
        own.into_iter().fold(0, u64::saturating_add)
    }

    fn total(&self) -> u64 {
        self.busy().saturating_add(self.idle).saturating_add(self.iowait)
    }

    fn interrupt(&self) -> u64 {
        self.irq.saturating_add(self.softirq)
    }

    fn share(&self, part: u64) -> f64 {
        part as f64 / self.total().max(1) as f64
    }

    fn plus(self, other: &Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// Never negative: `idle` and `iowait` may run backwards by a little (proc(5)), and a core that
    /// was offline in between may start anew.
    fn minus(self, earlier: &Self) -> Self {
        self.zip(earlier, u64::saturating_sub)
    }

    fn zip(self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            user: with(self.user, other.user),
            nice: with(self.nice, other.nice),
            system: with(self.system, other.system),
            idle: with(self.idle, other.idle),
            iowait: with(self.iowait, other.iowait),
            irq: with(self.irq, other.irq),
            softirq: with(self.softirq, other.softirq),
            steal: with(self.steal, other.steal),
        }
    }
}

/// The `cpuN` lines; broken ones and all others are skipped.
fn parse_stat(text: &str) -> BTreeMap<u32, CoreTicks> {
    text.lines().filter_map(parse_core).collect()
}

fn parse_core(line: &str) -> Option<(u32, CoreTicks)> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let number = words.next()?.parse().ok()?;
    let mut next = || words.next()?.parse::<u64>().ok();
    let ticks = CoreTicks {
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        iowait: next()?,
        irq: next()?,
        softirq: next()?,
        steal: next()?,
    };
    Some((number, ticks))
}

/// Below 100 ms the tick's error exceeds a tenth, and a share says more about the tick than about
/// the core.
const FEWEST_TICKS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(stat: &str) -> CpuSnapshot {
        CpuSnapshot { process: Some(CpuTime::default()), cores: parse_stat(stat), online: 2 }
    }

    #[test]
    fn steal_is_a_share_of_all_cores() {
        assert_eq!(share_of_steal("cpu0 10 0 10 60 0 0 0 20\ncpu1 0 0 0 100 0 0 0 0\n"), Some(0.1));
        assert_eq!((share_of_steal("intr 5\n"), share_of_steal("cpu0 0 0 0 0 0 0 0 0")), (None, None));
    }

    #[test]
    fn only_whole_core_lines_are_read() {
        let rows: &[(&str, usize)] = &[
            ("cpu  1 2 3 4 5 6 7 8 9 0\ncpu0 1 2 3 4 5 6 7 8 9 0\ncpu1 1 2 3 4 5 6 7 8 9 0\nintr 5 0\n", 2),
            ("cpu7 1 2 3 4 5 6 7 8", 1),
            ("cpu0 1 2 3 4 5 6 7", 0),
            ("cpu0 1 2 3 four 5 6 7 8", 0),
            ("cpu0 1 2 3 -4 5 6 7 8", 0),
            ("cpu99999999999 1 2 3 4 5 6 7 8", 0),
            ("cpux 1 2 3 4 5 6 7 8", 0),
            ("cpu0 99999999999999999999 2 3 4 5 6 7 8", 0),
            ("cp", 0),
            ("", 0),
        ];
        for (n, (text, want)) in rows.iter().enumerate() {
            assert_eq!(parse_stat(text).len(), *want, "row {n}: {text:?}");
        }
    }

    #[test]
    fn steal_and_interrupts_count_as_busy_and_waiting_for_disks_does_not() {
        let earlier = snapshot("cpu0 0 0 0 0 0 0 0 0\ncpu1 100 100 100 100 100 100 100 100");
        let later = snapshot("cpu0 10 10 10 20 20 5 15 10\ncpu1 100 100 100 200 100 100 100 100");
        let used = later.use_since(&earlier, Span::from_secs(1));
        assert_eq!(used.busiest_core, Some(0.6));
        assert_eq!(used.host, Some(0.3));
        assert_eq!(used.softirq, Some(0.1));
        assert_eq!(used.steal, Some(0.05));
        assert_eq!(used.cores, 2);
    }

    #[test]
    fn a_core_that_comes_or_goes_is_left_out() {
        let earlier = snapshot("cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0");
        let later = snapshot("cpu0 50 0 0 50 0 0 0 0\ncpu2 100 0 0 0 0 0 0 0");
        let used = later.use_since(&earlier, Span::from_secs(1));
        assert_eq!((used.busiest_core, used.host), (Some(0.5), Some(0.5)));
    }

    #[test]
    fn a_core_with_a_few_ticks_is_never_the_busiest() {
        let earlier = snapshot("cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0");
        let later = snapshot("cpu0 20 0 0 80 0 0 0 0\ncpu1 3 0 0 0 0 0 0 0");
        assert_eq!(later.use_since(&earlier, Span::from_secs(1)).busiest_core, Some(0.2));
    }

    #[test]
    fn counters_that_run_backwards_yield_no_negative_share() {
        let earlier = snapshot("cpu0 50 0 0 100 100 0 0 0");
        let later = snapshot("cpu0 60 0 0 99 130 0 0 0");
        assert_eq!(later.use_since(&earlier, Span::from_secs(1)).busiest_core, Some(0.25));
        let restarted = snapshot("cpu0 1 0 0 2 0 0 0 0");
        assert_eq!(restarted.use_since(&later, Span::from_secs(1)).busiest_core, None);
    }

    #[test]
    fn intervals_of_a_few_ticks_have_no_core_shares() {
        let earlier = snapshot("cpu0 0 0 0 0 0 0 0 0");
        let used = snapshot("cpu0 9 0 0 0 0 0 0 0").use_since(&earlier, Span::from_millis(90));
        assert_eq!((used.busiest_core, used.host, used.softirq, used.steal), (None, None, None, None));
        let used = snapshot("cpu0 9 0 0 1 0 0 0 0").use_since(&earlier, Span::from_millis(100));
        assert_eq!(used.busiest_core, Some(0.9));
    }

    #[test]
    fn process_shares_are_cores_and_bounded_by_the_cores_there_are() {
        let time = |user, system| CpuSnapshot {
            process: Some(CpuTime { user: Span::from_millis(user), system: Span::from_millis(system) }),
            cores: BTreeMap::new(),
            online: 2,
        };
        let rows = [
            (1500, 200, 1000, Some((1.5, 0.2))),
            (9000, 0, 1000, Some((2.0, 0.0))),
            // No time, no share.
            (10, 10, 0, None),
        ];
        for (n, (user, system, elapsed, want)) in rows.into_iter().enumerate() {
            let used = time(user, system).use_since(&time(0, 0), Span::from_millis(elapsed));
            assert_eq!(used.process_user.zip(used.process_system), want, "row {n}");
        }
        let backwards = time(0, 0).use_since(&time(5, 5), Span::from_secs(1));
        let nothing = (Some(0.0), Some(0.0));
        assert_eq!(
            (backwards.process_user, backwards.process_system, backwards.cores),
            (nothing.0, nothing.1, 2)
        );
    }

    #[test]
    fn nothing_known_yields_nothing_claimed() {
        let used = CpuSnapshot::default().use_since(&CpuSnapshot::default(), Span::from_secs(1));
        assert_eq!(used, CpuUse::default());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_host_has_cores_and_every_share_stays_within_bounds() {
        let earlier = CpuSnapshot::take();
        let later = CpuSnapshot::take();
        assert!(later.online >= 1 && !later.cores.is_empty() && later.process.is_some());
        let used = later.use_since(&earlier, Span::from_millis(1));
        assert!((0.0..=f64::from(later.online)).contains(&used.process_user.unwrap()));
    }
}
