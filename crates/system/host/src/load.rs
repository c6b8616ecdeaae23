//! How busy the host has been, and how much memory it has left.

use serde::Serialize;

use crate::kernel_file;

/// Tasks that ran or could have run, in the mean of the last minutes; Linux counts those that wait
/// for a disk, too (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Over a minute.
    pub one: f64,
    /// Over five minutes.
    pub five: f64,
    /// Over fifteen minutes.
    pub fifteen: f64,
}

impl Load {
    /// `None` where the system does not tell.
    pub fn read() -> Option<Self> {
        Self::parse(&kernel_file::read("/proc/loadavg")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut means = text.split_ascii_whitespace().map(str::parse);
        let mut next = || means.next()?.ok();
        Some(Self { one: next()?, five: next()?, fifteen: next()? })
    }
}

/// Bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Of the host.
    pub total: u64,
    /// What could be had without swapping, as the kernel estimates it.
    pub available: u64,
}

impl Memory {
    /// `None` where the system does not tell.
    pub fn read() -> Option<Self> {
        Self::parse(&kernel_file::read("/proc/meminfo")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kib.checked_mul(1024)
        };
        Some(Self { total: bytes("MemTotal")?, available: bytes("MemAvailable")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_memory_are_read_as_the_kernel_writes_them() {
        let load = Load::parse("6.66 5.94 3.75 5/312 28150\n");
        assert_eq!(load, Some(Load { one: 6.66, five: 5.94, fifteen: 3.75 }));
        let memory =
            Memory::parse("MemTotal:       24690588 kB\nMemFree: 1 kB\nMemAvailable:   23000000 kB\n");
        assert_eq!(memory, Some(Memory { total: 24_690_588 << 10, available: 23_000_000 << 10 }));
        for broken in ["", "1 2", "a b c", "MemTotal: x kB", "MemTotal: 99999999999999999999 kB"] {
            assert_eq!((Load::parse(broken), Memory::parse(broken)), (None, None), "{broken}");
        }
    }
}
