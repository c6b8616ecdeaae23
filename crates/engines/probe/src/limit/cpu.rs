//! How near one end was to the end of its CPU.

use netaware_record::{CpuUse, StreamEnd, TcpEnd};

use super::percent;

/// CPU of one end. Shares of one core; absent is what nobody measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuLoad {
    /// The busiest thread that moved data, on a core.
    thread: Option<f64>,
    /// The same, with the time it waited for a core.
    demand: Option<f64>,
    /// What this program and the kernel's soft interrupts used together: our own part in a busy
    /// core.
    work: f64,
    busiest_core: Option<f64>,
}

impl CpuLoad {
    pub(super) fn of(cpu: &CpuUse) -> Self {
        let process = cpu.process_user.unwrap_or(0.0) + cpu.process_system.unwrap_or(0.0);
        let interrupts = cpu.softirq.unwrap_or(0.0) * f64::from(cpu.cores);
        let thread = cpu.busiest_thread;
        Self {
            thread,
            demand: thread,
            work: process.max(thread.unwrap_or(0.0)) + interrupts,
            busiest_core: cpu.busiest_core,
        }
    }

    /// Of an end that may not have told.
    pub(super) fn of_told(cpu: Option<&CpuUse>) -> Self {
        Self::of(&cpu.copied().unwrap_or_default())
    }

    pub(super) fn of_tcp(end: &TcpEnd) -> Self {
        let load = Self::of_told(end.cpu.as_ref());
        let threads = end.streams.iter().filter_map(|stream| stream.thread_cpu);
        let thread = threads.chain(load.thread).reduce(f64::max);
        let demand = |stream: &StreamEnd| Some(stream.thread_cpu? + stream.thread_waiting.unwrap_or(0.0));
        let demands = end.streams.iter().filter_map(demand);
        let demand = demands.chain(thread).reduce(f64::max).map(|demand| demand.min(1.0));
        Self { thread, demand, work: load.work.max(thread.unwrap_or(0.0)), ..load }
    }

    /// Whether CPU held this end back: its busiest thread ran all the time, or would have if it had
    /// been given a core, or a core was full and we did a good part of it. Waiting alone does not
    /// count: on a host that others keep busy even an idle flow's thread waits at each wake-up.
    pub(super) fn is_saturated(&self, threshold: f64) -> bool {
        let reaches = |share: Option<f64>, least: f64| share.is_some_and(|share| share >= least);
        reaches(self.thread, threshold)
            || (reaches(self.demand, threshold) && reaches(self.thread, OURS_THREAD))
            || (reaches(self.busiest_core, threshold)
                && self.work >= OURS_CORE
                && reaches(self.demand, OURS_DEMAND))
    }

    /// Whether the busiest thread was ready and had no core for nearly all of the time, on a host
    /// with a core that was full: others had it.
    pub(super) fn was_denied(&self) -> bool {
        let waited = self.demand.unwrap_or(0.0) - self.thread.unwrap_or(0.0);
        self.has_full_core() && waited >= DENIED
    }

    /// Whether some core ran all the time, for whomever.
    pub(super) fn has_full_core(&self) -> bool {
        self.busiest_core.is_some_and(|core| core >= FULL_CORE)
    }

    /// For choosing between two that are saturated.
    pub(super) fn pressure(&self) -> f64 {
        self.demand.unwrap_or(0.0)
    }

    pub(super) fn describe(&self) -> String {
        let core =
            self.busiest_core.map_or(String::new(), |core| format!(", busiest core {}", percent(core)));
        let Some(thread) = self.thread else { return format!("CPU time is unknown{core}") };
        let waited = self.demand.map_or(0.0, |demand| demand - thread);
        let waited =
            if waited >= WORTH_TELLING { format!(" and waited {}", percent(waited)) } else { String::new() };
        format!("busiest thread ran {}{waited}{core}", percent(thread))
    }

    pub(super) fn brief(&self) -> String {
        let Some(thread) = self.thread else { return "unknown".to_owned() };
        let waited = self.demand.map_or(0.0, |demand| demand - thread);
        if waited >= WORTH_TELLING {
            format!("{} (and waited {} for a core)", percent(thread), percent(waited))
        } else {
            percent(thread)
        }
    }
}

/// Below this a waiting thread has too little to do to be the limit.
const OURS_THREAD: f64 = 0.4;
/// A core may be full of others' work; half a core of ours is needed to call it ours.
const OURS_CORE: f64 = 0.5;
/// Interrupts are counted for the whole host. Where the busiest data thread wanted less than this,
/// they were others'.
const OURS_DEMAND: f64 = 0.1;
/// A program that has to wait for such a core is late.
const FULL_CORE: f64 = 0.95;
const WORTH_TELLING: f64 = 0.05;
/// Threads of a flow that a link limits wait for a core at each wake-up; on a host that was kept
/// full they waited for less than a tenth of the time at 12 Mbit/s, and for 80 to 98 % where the
/// host itself was the limit.
const DENIED: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_waiting_where_it_is_worth_it_and_the_core_where_it_is_known() {
        let rows = [
            (
                0.7,
                0.9,
                Some(0.8),
                "busiest thread ran 70 % and waited 20 %, busiest core 80 %",
                "70 % (and waited 20 % for a core)",
            ),
            (0.7, 0.9, None, "busiest thread ran 70 % and waited 20 %", "70 % (and waited 20 % for a core)"),
            (0.7, 0.74, Some(1.0), "busiest thread ran 70 %, busiest core 100 %", "70 %"),
            (0.7, 0.7, None, "busiest thread ran 70 %", "70 %"),
            (
                0.0,
                WORTH_TELLING,
                None,
                "busiest thread ran 0 % and waited 5 %",
                "0 % (and waited 5 % for a core)",
            ),
        ];
        for (thread, demand, busiest_core, long, brief) in rows {
            let load = CpuLoad { thread: Some(thread), demand: Some(demand), work: thread, busiest_core };
            assert_eq!((load.describe().as_str(), load.brief().as_str()), (long, brief));
        }
    }

    /// Thread, demand, work, busiest core.
    fn parts(load: CpuLoad) -> (f64, f64, f64, Option<f64>) {
        (load.thread.unwrap(), load.demand.unwrap(), load.work, load.busiest_core)
    }

    #[test]
    fn our_work_is_that_of_the_process_or_its_busiest_thread_and_of_all_interrupts() {
        let cpu = CpuUse {
            process_user: Some(0.25),
            process_system: Some(0.5),
            busiest_thread: Some(0.5),
            busiest_core: Some(0.75),
            softirq: Some(0.125),
            cores: 4,
            ..CpuUse::default()
        };
        assert_eq!(parts(CpuLoad::of(&cpu)), (0.5, 0.5, 1.25, Some(0.75)));
        let of_one_thread = CpuUse { busiest_thread: Some(0.875), softirq: None, busiest_core: None, ..cpu };
        assert_eq!(parts(CpuLoad::of(&of_one_thread)), (0.875, 0.875, 0.875, None));
    }

    #[test]
    fn of_a_tcp_end_the_thread_and_the_demand_are_those_of_its_busiest_streams() {
        let stream = |cpu, waiting| StreamEnd {
            thread_cpu: Some(cpu),
            thread_waiting: Some(waiting),
            ..StreamEnd::default()
        };
        let cpu = CpuUse { process_user: Some(0.25), busiest_thread: Some(0.125), ..CpuUse::default() };
        let streams = vec![stream(0.5, 0.25), stream(0.25, 0.625)];
        let end = TcpEnd { cpu: Some(cpu), streams, ..TcpEnd::default() };
        assert_eq!(parts(CpuLoad::of_tcp(&end)), (0.5, 0.875, 0.5, None));
        let denied = TcpEnd { streams: vec![stream(0.75, 0.5)], ..end };
        assert_eq!(parts(CpuLoad::of_tcp(&denied)), (0.75, 1.0, 0.75, None));
    }

    #[test]
    fn the_cpu_of_an_end_that_never_told_is_unknown_and_not_0_percent() {
        let silent = CpuLoad::of_told(None);
        assert_eq!((silent.describe().as_str(), silent.brief().as_str()), ("CPU time is unknown", "unknown"));
        assert!(!silent.is_saturated(0.0), "nobody is blamed for what nobody measured");
        let core = CpuUse { busiest_core: Some(0.8), cores: 2, ..CpuUse::default() };
        assert_eq!(CpuLoad::of(&core).describe(), "CPU time is unknown, busiest core 80 %");
        // A stream of which the system told nothing.
        let end = TcpEnd { streams: vec![StreamEnd::default()], ..TcpEnd::default() };
        assert_eq!(CpuLoad::of_tcp(&end).brief(), "unknown");
    }

    #[test]
    fn an_end_is_saturated_by_its_thread_by_a_wish_for_a_core_or_by_its_part_in_a_full_core() {
        // Thread, demand, work, busiest core.
        let rows = [
            ((0.9, 0.9, 0.0, None), true),
            ((0.89, 0.89, 0.89, None), false),
            ((0.4, 0.9, 0.4, None), true),
            ((0.39, 0.9, 0.4, None), false),
            ((0.4, 0.89, 0.4, None), false),
            ((0.1, 0.1, 0.5, Some(0.9)), true),
            ((0.1, 0.1, 0.5, Some(0.89)), false),
            ((0.1, 0.1, 0.5, None), false),
            ((0.1, 0.1, 0.49, Some(0.9)), false),
            ((0.09, 0.09, 0.5, Some(0.9)), false),
        ];
        for ((thread, demand, work, busiest_core), want) in rows {
            let load = CpuLoad { thread: Some(thread), demand: Some(demand), work, busiest_core };
            assert_eq!(load.is_saturated(0.9), want, "{load:?}");
        }
    }
}
