//! What this machine lets one process use: cores, memory with control-group limits, room on disks.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::{Env, files};

/// Cores that this process may use; at least 1.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// Bytes of memory that can be had without swapping, or `None` where the system does not tell.
pub fn available_memory(env: &Env) -> Option<u64> {
    let system = meminfo(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    Some(group_memory(env).map_or(system, |group| group.left.min(system)))
}

/// All the memory that this process may have, in bytes, and what sets that bound.
pub fn whole_memory(env: &Env) -> Option<(u64, String)> {
    let machine = meminfo(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let group = group_memory(env).filter(|group| group.limit < machine);
    Some(group.map_or((machine, "the machine".to_owned()), |group| (group.limit, group.folder.into_string())))
}

/// Percent of the last ten seconds in which every task waited for memory; `None` where the system does not measure it.
pub fn memory_pressure() -> Option<f64> {
    let text = fs::read_to_string("/proc/pressure/memory").ok()?;
    let full = text.lines().find_map(|line| line.strip_prefix("full avg10="))?;
    full.split(' ').next()?.parse().ok()
}

fn meminfo(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The tightest memory limit of the control groups that this process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMemory {
    /// The limit, in bytes.
    pub limit: u64,
    /// What is left of it; page cache that can be dropped counts as left.
    pub left: u64,
    /// The folder of the group.
    pub folder: Utf8PathBuf,
}

/// The limit of this process's control groups, for both versions of the interface; groups nest, and the tightest counts.
pub fn group_memory(env: &Env) -> Option<GroupMemory> {
    let groups =
        fs::read_to_string(env.system("/proc/self/cgroup")).or_else(|_| fs::read_to_string("/proc/self/cgroup"));
    let root = env.system("/sys/fs/cgroup");
    let mut found: Vec<GroupMemory> = Vec::new();
    for line in groups.unwrap_or_default().lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (base, names) = match controllers {
            "" => (root.clone(), ["memory.max", "memory.current", "inactive_file "]),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "])
            }
            _ => continue,
        };
        // A container sees its own group as the root, whatever path it is told.
        let inside = Utf8Path::new(path.trim_start_matches('/'));
        found.extend(inside.ancestors().filter_map(|group| limit_of(&base.join(group), names)));
    }
    found.into_iter().min_by_key(|group| group.left)
}

fn limit_of(folder: &Utf8Path, [limit, used, cache]: [&str; 3]) -> Option<GroupMemory> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    // Version 1 says "none" with the largest number of pages.
    let limit = number(limit).filter(|limit| *limit < 1 << 60)?;
    let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache = statistics.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse::<u64>().ok());
    let used = number(used).unwrap_or(0).saturating_sub(cache.unwrap_or(0));
    Some(GroupMemory { limit, left: limit.saturating_sub(used), folder: folder.to_owned() })
}

/// What tells this machine from others: its number or else its name, and the model and features of its processor. Eight
/// bytes in hex.
pub fn id() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let number =
        [read("/etc/machine-id"), read("/proc/sys/kernel/hostname")].into_iter().find(|id| !id.trim().is_empty());
    let information = read("/proc/cpuinfo");
    let of_processor = |line: &&str| line.starts_with("model name") || line.starts_with("flags");
    let processor: Vec<&str> = information.lines().filter(of_processor).take(2).collect();
    let digest = files::sha256(format!("{}\n{}", number.unwrap_or_default(), processor.join("\n")).as_bytes());
    digest.get(..16).unwrap_or(&digest).to_owned()
}

/// A limit that this process runs under; `None` where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open files.
    pub files: Option<u64>,
    /// Processes of this user.
    pub processes: Option<u64>,
    /// Bytes of address space.
    pub memory: Option<u64>,
}

/// The limits of this process, which its compilers inherit.
pub fn limits() -> Limits {
    use rustix::process::{Resource, getrlimit};
    let of = |resource| getrlimit(resource).current;
    Limits { files: of(Resource::Nofile), processes: of(Resource::Nproc), memory: of(Resource::As) }
}

/// Room on the disk of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that this user may still write.
    pub free: u64,
    /// Files that may still be made; `None` where there is no limit.
    pub files: Option<u64>,
}

/// Room where `folder` is or would be; `None` where the system does not tell.
pub fn room(folder: &Utf8Path) -> Option<Room> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let told = rustix::fs::statvfs(there.as_std_path()).ok()?;
    let files = (told.f_files > 0).then_some(told.f_favail);
    Some(Room { free: told.f_bavail.saturating_mul(told.f_frsize), files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        let text = "MemTotal:       24576000 kB\nMemFree: 1 kB\nMemAvailable:   20480000 kB\n";
        assert_eq!(meminfo(text, "MemAvailable:"), Some(20_480_000 * 1024));
        assert_eq!(meminfo("MemTotal: 1 kB\n", "MemAvailable:"), None);
    }

    /// A fake `/sys/fs/cgroup` and `/proc/self/cgroup`.
    fn group(files: &[(&str, &str)]) -> Option<GroupMemory> {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        group_memory(&Env::of("/", [("CUWRIGHT_SYSTEM_ROOT", root.as_str())]))
    }

    #[test]
    fn the_tightest_control_group_counts_in_both_versions() {
        let nested = group(&[
            ("proc/self/cgroup", "0::/user.slice/job"),
            ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/job/memory.max", "4294967296\n"),
            ("sys/fs/cgroup/user.slice/job/memory.current", "3221225472\n"),
            ("sys/fs/cgroup/user.slice/job/memory.stat", "anon 1\ninactive_file 1073741824\n"),
        ]);
        let nested = nested.unwrap();
        assert_eq!((nested.limit, nested.left), (4 << 30, 2 << 30));
        let old = group(&[
            ("proc/self/cgroup", "4:cpu:/x\n3:memory,hugetlb:/docker/abc\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "536870912"),
        ]);
        assert_eq!(old.unwrap().left, 512 << 20, "the container's own group is the root it sees");
        let free = group(&[
            ("proc/self/cgroup", "3:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
        ]);
        assert_eq!(free, None);
    }

    #[test]
    fn room_is_told_for_folders_that_are_not_there_yet() {
        assert!(room(Utf8Path::new("/tmp/not/there/yet")).unwrap().free > 0);
    }
}
