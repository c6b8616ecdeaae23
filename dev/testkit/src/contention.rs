//! How long a process had to wait for a core: evidence, from outside the product, that a loss
//! within this host is the machine's fault.

use std::fs;
use std::path::PathBuf;

use netaware_units::Span;

/// The waiting times of a process when something began.
#[derive(Debug)]
pub struct Contention {
    process: u32,
    waited: Span,
    stolen: Span,
}

impl Contention {
    /// Begins to watch a process.
    pub fn begin(process: u32) -> Self {
        Self { process, waited: waited(process), stolen: stolen() }
    }

    /// The time since then that the threads of the process were ready to run and had no core, and
    /// that the hypervisor took the cores away, together.
    pub fn so_far(&self) -> Span {
        (waited(self.process) - self.waited) + (stolen() - self.stolen)
    }

    /// Notes that a test cannot be judged because the process lost something while it had no core.
    ///
    /// # Panics
    /// If it had its cores nearly all the time: then the loss is the product's own fault.
    #[track_caller]
    pub fn excuses(&self, loss: &str) {
        let waited = self.so_far();
        assert!(waited >= LEAST, "{loss}, although the process waited for a core for {waited} only");
        crate::inconclusive(format!("{loss}; the process waited for a core for {waited}"));
    }
}

/// Sockets have room for longer than this.
const LEAST: Span = Span::from_millis(20);

/// The second number of `schedstat` of each thread, in nanoseconds (Linux,
/// Documentation/scheduler/sched-stats.rst). Threads that have ended are no longer in it.
fn waited(process: u32) -> Span {
    let tasks = fs::read_dir(PathBuf::from(format!("/proc/{process}/task"))).into_iter().flatten().flatten();
    let of_one = |path: PathBuf| {
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse().ok().map(Span::from_nanos)
    };
    tasks.filter_map(|task| of_one(task.path())).sum()
}

/// The eighth number of the first line of `/proc/stat`, in hundredths of a second (`man 5 proc`).
fn stolen() -> Span {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse().ok());
    Span::from_millis(10) * ticks.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_shares_its_core_has_waited_for_it() {
        let watch = Contention::begin(std::process::id());
        let core = netaware_io::thread::allowed_cores()[0];
        let until = netaware_io::clock::now() + Span::from_millis(200);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    netaware_io::thread::pin(core).unwrap();
                    while netaware_io::clock::now() < until {
                        std::hint::spin_loop();
                    }
                    // While they live their times can be read.
                    assert!(watch.so_far() > Span::from_millis(50), "{}", watch.so_far());
                });
            }
        });
    }
}
