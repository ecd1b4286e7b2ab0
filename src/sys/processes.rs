//! A look at other processes through `/proc`. Where there is no `/proc`, nothing is seen and nothing is killed.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::process::{Pid, Signal};

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Whether it has ended and only waits for its parent.
    pub ended: bool,
    /// Start time in clock ticks since boot: comparable, and with `pid` unique.
    pub started: u64,
    /// Memory it holds, in bytes; pages shared with others count in full.
    pub memory: u64,
    /// Argument vector, lossily as UTF-8.
    pub argv: Vec<String>,
}

/// Every process whose working folder is `folder` or below. Build tools put their compilers into process groups of
/// their own, so this is how a build's processes are told from all others.
pub fn working_in(folder: &Utf8Path) -> Vec<Process> {
    let folder = folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned());
    let inside = |pid: &i32| {
        fs_err::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder.as_std_path()))
    };
    pids().filter(inside).filter_map(read).collect()
}

/// The processes that have `path` open, as far as this user may see them.
pub fn holding(path: &Utf8Path) -> Vec<Process> {
    let Ok(path) = path.canonicalize_utf8() else { return Vec::new() };
    let holds = |pid: &i32| {
        let open = fs_err::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.into_iter().any(|entry| fs_err::read_link(entry.path()).is_ok_and(|file| file == path.as_std_path()))
    };
    pids().filter(holds).filter_map(read).collect()
}

/// Kills every process whose working folder is `folder` or below, and says how many there were.
pub fn kill_working_in(folder: &Utf8Path) -> usize {
    let mut killed = BTreeSet::new();
    // A process may start another between the look and the kill, so look until nothing is left, but not forever.
    for _ in 0..50 {
        let found: Vec<Process> = working_in(folder).into_iter().filter(|process| !process.ended).collect();
        if found.is_empty() {
            break;
        }
        for process in found {
            killed.insert((process.pid, process.started));
            if let Some(pid) = Pid::from_raw(process.pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    killed.len()
}

/// Kills a process and everything that it has started.
pub fn kill_tree(root: i32) {
    // Stopped first, so that none starts another while the tree is walked.
    let tree = tree(root);
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in tree.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Whether a process other than ours has a file open.
pub fn opened_by_another(path: &Utf8Path) -> bool {
    let own = rustix::process::getpid().as_raw_pid();
    let path = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let opens = |pid: i32| {
        let files = fs_err::read_dir(format!("/proc/{pid}/fd")).ok().into_iter().flatten().filter_map(Result::ok);
        files.map(|file| file.path()).any(|link| fs_err::read_link(link).is_ok_and(|open| open == path.as_std_path()))
    };
    pids().filter(|pid| *pid != own).any(opens)
}

/// The parent of a process.
pub fn parent(pid: i32) -> Option<i32> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The name of a process, as the system shows it: at most 15 bytes of its file's name.
pub fn name(pid: i32) -> Option<String> {
    Some(fs_err::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

/// A process and everything below it, parents first.
pub fn tree(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let tasks = fs_err::read_dir(format!("/proc/{pid}/task")).ok();
        for task in tasks.into_iter().flatten().filter_map(Result::ok) {
            let children = fs_err::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    found
}

/// Memory of a process tree in bytes: what is resident now, and the sum of what each living process had at its peak.
pub fn tree_memory(root: i32) -> (u64, u64) {
    tree(root).into_iter().filter_map(memory).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn memory(pid: i32) -> Option<(u64, u64)> {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
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
    let ended = matches!(*fields.first()?, "Z" | "X");
    let started = fields.get(19)?.parse().ok()?;
    let pages: u64 = fields.get(21)?.parse().ok()?;
    let memory = pages * u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let argv = fs_err::read(format!("/proc/{pid}/cmdline")).ok()?;
    let argv = argv
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    Some(Process { pid, ended, started, memory, argv })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::command::CommandSpec;
    use crate::sys::process;

    #[test]
    fn the_holder_of_a_file_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = Utf8Path::from_path(file.path()).unwrap();
        let mine = i32::try_from(std::process::id()).unwrap();
        assert!(holding(path).iter().any(|process| process.pid == mine));
        assert!(holding(Utf8Path::new("/nonexistent")).is_empty());
    }

    #[test]
    fn processes_are_found_by_where_they_work_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let mut child = process::command(&CommandSpec::new("/bin/sleep", path).args(["60"])).spawn().unwrap();
        let found = working_in(path);
        assert_eq!(found.iter().map(|process| process.argv.join(" ")).collect::<Vec<_>>(), ["/bin/sleep 60"]);
        assert!((100_000..100_000_000).contains(&found[0].memory), "{}", found[0].memory);
        assert_eq!(kill_working_in(path), 1);
        assert!(!child.wait().unwrap().success());
        assert_eq!(kill_working_in(path), 0);
    }
}
