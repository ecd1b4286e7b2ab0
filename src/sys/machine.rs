//! What this machine lets one process use: cores and memory, control-group limits included.

use fs_err as fs;

/// Cores that this process may use; at least 1.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// Bytes of memory that can be had without swapping, or `None` where the system does not tell.
pub fn available_memory() -> Option<u64> {
    let system = meminfo(&fs::read_to_string("/proc/meminfo").ok()?)?;
    Some(control_group().map_or(system, |group| group.min(system)))
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What the control group of a container leaves, for both versions of the interface.
fn control_group() -> Option<u64> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let pairs = [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ];
    pairs.iter().find_map(|(limit, used)| Some(number(limit)?.saturating_sub(number(used).unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        let text = "MemTotal:       24576000 kB\nMemFree: 1 kB\nMemAvailable:   20480000 kB\n";
        assert_eq!(meminfo(text), Some(20_480_000 * 1024));
        assert_eq!(meminfo("MemTotal: 1 kB\n"), None);
    }
}
