//! The queues between drivers and the stack: `/proc/net/softnet_stat`, one line for each core,
//! hexadecimal (Linux `net/core/net-procfs.c`).

/// Packets dropped because such a queue was full, on all cores since the host started.
pub(crate) fn dropped() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/net/softnet_stat").ok()?)
}

fn parse(text: &str) -> Option<u64> {
    text.lines().map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_all_cores_are_summed() {
        let text = "0000d5a1 00000010 00000003 00000000\n0001b1f2 000000ff 00000000 00000000\n";
        assert_eq!(parse(text), Some(0x10f));
        assert_eq!(parse("nonsense\n"), None);
    }
}
