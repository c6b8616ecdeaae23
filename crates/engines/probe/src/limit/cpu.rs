//! How near one end was to the end of its CPU.

use netaware_record::{CpuUse, TcpEnd};

use super::percent;

/// CPU of one end. Shares of one core.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuLoad {
    /// The busiest thread that moved data, on a core.
    thread: f64,
    /// The same, with the time it waited for a core.
    demand: f64,
    /// What this program and the kernel's soft interrupts used together: our own part in a busy core.
    work: f64,
    busiest_core: Option<f64>,
}

impl CpuLoad {
    pub(super) fn of(cpu: &CpuUse) -> Self {
        let process = cpu.process_user + cpu.process_system;
        let interrupts = cpu.softirq.unwrap_or(0.0) * f64::from(cpu.cores);
        let thread = cpu.busiest_thread;
        Self {
            thread,
            demand: thread,
            work: process.max(thread) + interrupts,
            busiest_core: cpu.busiest_core,
        }
    }

    pub(super) fn of_tcp(end: &TcpEnd) -> Self {
        let load = Self::of(&end.cpu);
        let thread = end.streams.iter().map(|stream| stream.thread_cpu).fold(load.thread, f64::max);
        let demands = end.streams.iter().map(|stream| stream.thread_cpu + stream.thread_waiting);
        let demand = demands.fold(thread, f64::max).min(1.0);
        Self { thread, demand, work: load.work.max(thread), ..load }
    }

    /// Whether CPU held this end back: its busiest thread ran all the time, or would have if it had been given a core, or
    /// a core was full and we did a good part of it. Waiting alone does not count: on a host that others keep busy even
    /// an idle flow's thread waits at each wake-up.
    pub(super) fn is_saturated(&self, threshold: f64) -> bool {
        let core = self.busiest_core.unwrap_or(0.0);
        self.thread >= threshold
            || (self.demand >= threshold && self.thread >= OURS_THREAD)
            || (core >= threshold && self.work >= OURS_CORE && self.demand >= OURS_DEMAND)
    }

    /// For choosing between two that are saturated.
    pub(super) fn pressure(&self) -> f64 {
        self.demand
    }

    pub(super) fn describe(&self) -> String {
        let waited = self.demand - self.thread;
        let waited =
            if waited >= WORTH_TELLING { format!(" and waited {}", percent(waited)) } else { String::new() };
        let core =
            self.busiest_core.map_or(String::new(), |core| format!(", busiest core {}", percent(core)));
        format!("busiest thread ran {}{waited}{core}", percent(self.thread))
    }

    pub(super) fn brief(&self) -> String {
        percent(self.demand.max(self.thread))
    }
}

/// Below this a waiting thread has too little to do to be the limit.
const OURS_THREAD: f64 = 0.4;
/// A core may be full of others' work; half a core of ours is needed to call it ours.
const OURS_CORE: f64 = 0.5;
/// Interrupts are counted for the whole host. Where the busiest data thread wanted less than this, they were others'.
const OURS_DEMAND: f64 = 0.1;
const WORTH_TELLING: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_waiting_where_it_is_worth_it_and_the_core_where_it_is_known() {
        let rows = [
            (0.7, 0.9, Some(0.8), "busiest thread ran 70 % and waited 20 %, busiest core 80 %", "90 %"),
            (0.7, 0.9, None, "busiest thread ran 70 % and waited 20 %", "90 %"),
            (0.7, 0.74, Some(1.0), "busiest thread ran 70 %, busiest core 100 %", "74 %"),
            (0.7, 0.7, None, "busiest thread ran 70 %", "70 %"),
            (0.0, WORTH_TELLING, None, "busiest thread ran 0 % and waited 5 %", "5 %"),
        ];
        for (thread, demand, busiest_core, long, brief) in rows {
            let load = CpuLoad { thread, demand, work: thread, busiest_core };
            assert_eq!((load.describe().as_str(), load.brief().as_str()), (long, brief));
        }
    }
}
