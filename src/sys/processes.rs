//! A look at other processes through `/proc`. Where there is no `/proc`, nothing is seen and nothing is killed.

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal};

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Process group.
    pub group: i32,
    /// Start time in clock ticks since boot: comparable, and with `pid` unique.
    pub started: u64,
    /// Argument vector, lossily as UTF-8.
    pub argv: Vec<String>,
}

/// Every process of a process group.
pub fn of_group(group: i32) -> Vec<Process> {
    pids().filter_map(read).filter(|process| process.group == group).collect()
}

/// Kills every process whose working folder is `folder` or below, and says how many there were.
pub fn kill_working_in(folder: &Utf8Path) -> usize {
    let folder = folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned());
    let inside = |pid: &i32| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder.as_std_path()))
    };
    let mut killed = 0;
    // A process may start another between the look and the kill, so look until nothing is left, but not forever.
    for _ in 0..20 {
        let found: Vec<i32> = pids().filter(inside).collect();
        if found.is_empty() {
            break;
        }
        killed += found.len();
        for pid in found.into_iter().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    killed
}

/// Clock ticks a second in `/proc/<pid>/stat`; 100 on every Linux that runs CUDA.
pub const TICKS: u64 = 100;

/// Clock ticks since boot, from `/proc/uptime`.
pub fn ticks_since_boot() -> Option<u64> {
    let text = fs_err::read_to_string("/proc/uptime").ok()?;
    let (seconds, rest) = text.split_once('.')?;
    let hundredths = rest.get(..2)?;
    Some(seconds.parse::<u64>().ok()? * TICKS + hundredths.parse::<u64>().ok()?)
}

fn pids() -> impl Iterator<Item = i32> {
    let folder = Utf8PathBuf::from("/proc").read_dir_utf8().ok();
    folder.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().parse().ok())
}

fn read(pid: i32) -> Option<Process> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program name in parentheses may hold blanks and parentheses itself: fields start behind the last one.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let group = fields.get(2)?.parse().ok()?;
    let started = fields.get(19)?.parse().ok()?;
    let argv = fs_err::read(format!("/proc/{pid}/cmdline")).ok()?;
    let argv = argv
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    Some(Process { pid, group, started, argv })
}
