//! Policy as data: what a manylinux level allows, which symbols Python's stable ABI has, who brings which library.
//!
//! Every row of `tables/` names its source.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use globset::{Glob, GlobMatcher};

const MANYLINUX: &str = include_str!("../tables/manylinux.tsv");
const STABLE_ABI: &str = include_str!("../tables/stable_abi.tsv");
const LIBRARIES: &str = include_str!("../tables/libraries.tsv");

/// A dotted version number, compared by its parts.
pub(super) type Number = Vec<u32>;

/// Reads `2.17`; `None` for a name that is no number.
pub(super) fn number(text: &str) -> Option<Number> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

/// What one manylinux level allows on one machine.
struct Level {
    glibc: Number,
    aliases: Vec<&'static str>,
    machine: &'static str,
    newest: BTreeMap<&'static str, Number>,
    other: Vec<&'static str>,
}

static LEVELS: LazyLock<Vec<Level>> = LazyLock::new(|| rows(MANYLINUX).filter_map(|row| level(&row)).collect());
static STABLE: LazyLock<HashMap<&'static str, (u32, u32)>> = LazyLock::new(|| {
    let read = |row: Vec<&'static str>| {
        let (major, minor) = row.get(1)?.split_once('.')?;
        Some((*row.first()?, (major.parse().ok()?, minor.parse().ok()?)))
    };
    rows(STABLE_ABI).filter_map(read).collect()
});
static BROUGHT: LazyLock<Vec<(GlobMatcher, Bringer)>> = LazyLock::new(|| {
    let read = |row: Vec<&'static str>| {
        let who = match *row.get(1)? {
            "system" => Bringer::System,
            "torch" => Bringer::Torch,
            "cuda" => Bringer::Cuda,
            "driver" => Bringer::Driver,
            "python" => Bringer::Python,
            _ => return None,
        };
        Some((Glob::new(row.first()?).ok()?.compile_matcher(), who))
    };
    rows(LIBRARIES).filter_map(read).collect()
});

/// Who brings a library that a wheel does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bringer {
    /// Every Linux of the manylinux levels.
    System,
    /// torch.
    Torch,
    /// The CUDA wheels or a toolkit.
    Cuda,
    /// The driver.
    Driver,
    /// A Python built with a shared library.
    Python,
}

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| line.split('\t').collect())
}

fn level(row: &[&'static str]) -> Option<Level> {
    let [glibc, aliases, machine, newest_glibc, newest_cxx, newest_abi, newest_gcc, other, _] = *row else {
        return None;
    };
    let list = |cell: &'static str| cell.split(',').filter(|part| *part != "-").collect();
    let newest = [("GLIBC", newest_glibc), ("GLIBCXX", newest_cxx), ("CXXABI", newest_abi), ("GCC", newest_gcc)];
    let newest = newest.into_iter().map(|(name, cell)| Some((name, number(cell)?))).collect::<Option<_>>()?;
    Some(Level { glibc: number(glibc)?, aliases: list(aliases), machine, newest, other: list(other) })
}

/// The glibc release of the lowest level that allows these symbol versions, such as `GLIBC_2.34`.
///
/// # Errors
/// The version that no level of the table allows.
pub(super) fn satisfied(versions: &[&str], machine: &str) -> Result<Number, String> {
    let mut offender = None;
    for level in LEVELS.iter().filter(|level| level.machine == machine) {
        match versions.iter().find(|version| !allows(level, version)) {
            None => return Ok(level.glibc.clone()),
            Some(version) => offender = Some((*version).to_owned()),
        }
    }
    // Beyond the table, a level asks for its own glibc only.
    let glibc = versions.iter().filter_map(|version| number(version.strip_prefix("GLIBC_")?)).max();
    match (glibc, offender) {
        (Some(glibc), Some(offender)) if offender.starts_with("GLIBC_") && LEVELS.iter().all(|l| l.glibc < glibc) => {
            Ok(glibc)
        }
        (_, Some(offender)) => Err(offender),
        (_, None) => Err(format!("nothing is known about {machine}")),
    }
}

fn allows(level: &Level, version: &str) -> bool {
    let Some((family, rest)) = version.split_once('_') else { return true };
    match (level.newest.get(family), number(rest)) {
        (Some(newest), Some(number)) => number <= *newest,
        (Some(_), None) => level.other.contains(&version),
        // Versions of other libraries say nothing about the system.
        (None, _) => true,
    }
}

/// The glibc that a platform tag promises: `manylinux_2_17_x86_64`, `manylinux2014_x86_64`.
pub(super) fn promised(platform: &str) -> Option<Number> {
    if let Some(rest) = platform.strip_prefix("manylinux_") {
        let mut parts = rest.split('_');
        return Some(vec![parts.next()?.parse().ok()?, parts.next()?.parse().ok()?]);
    }
    let level =
        LEVELS.iter().find(|level| level.aliases.iter().any(|alias| platform.starts_with(&format!("{alias}_"))))?;
    Some(level.glibc.clone())
}

/// Since when a symbol is part of Python's stable ABI.
pub(super) fn stable_since(symbol: &str) -> Option<(u32, u32)> {
    STABLE.get(symbol).copied()
}

/// Who brings a library; `None` where nobody is known to.
pub(super) fn bringer(library: &str) -> Option<Bringer> {
    BROUGHT.iter().find(|(glob, _)| glob.is_match(library)).map(|(_, who)| *who)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level_of(versions: &[&str]) -> String {
        satisfied(versions, "x86_64").map_or_else(|odd| format!("! {odd}"), |n| format!("{}.{}", n[0], n[1]))
    }

    #[test]
    fn every_row_reads() {
        assert_eq!(LEVELS.len(), rows(MANYLINUX).count());
        assert_eq!(STABLE.len(), rows(STABLE_ABI).count());
        assert_eq!(BROUGHT.len(), rows(LIBRARIES).count());
        assert!(LEVELS.iter().filter(|level| level.machine == "x86_64").is_sorted_by_key(|level| level.glibc.clone()));
    }

    #[test]
    fn the_level_is_the_lowest_that_allows_every_version() {
        assert_eq!(level_of(&["GLIBC_2.2.5", "GLIBC_2.14"]), "2.17");
        assert_eq!(level_of(&["GLIBC_2.34", "GLIBCXX_3.4.21", "CXXABI_1.3.8"]), "2.34");
        assert_eq!(level_of(&["GLIBC_2.17", "GLIBCXX_3.4.29"]), "2.34");
        assert_eq!(level_of(&["GLIBCXX_3.4.40"]), "! GLIBCXX_3.4.40");
        assert_eq!(level_of(&["GLIBC_2.55"]), "2.55");
        assert_eq!(level_of(&["CXXABI_FLOAT128", "GLIBC_2.5", "libcudart.so.13"]), "2.24");
        assert_eq!(level_of(&[]), "2.5");
    }

    #[test]
    fn tags_promise_a_glibc() {
        for (tag, glibc) in [
            ("manylinux_2_28_x86_64", Some(vec![2, 28])),
            ("manylinux2014_aarch64", Some(vec![2, 17])),
            ("manylinux1_x86_64", Some(vec![2, 5])),
            ("linux_x86_64", None),
            ("any", None),
        ] {
            assert_eq!(promised(tag), glibc, "{tag}");
        }
    }

    #[test]
    fn libraries_and_symbols_have_their_origin() {
        assert_eq!(bringer("libtorch_cuda.so"), Some(Bringer::Torch));
        assert_eq!(bringer("libcudart.so.13"), Some(Bringer::Cuda));
        assert_eq!(bringer("libc.so.6"), Some(Bringer::System));
        assert_eq!(bringer("libopencv_core.so.4"), None);
        assert_eq!(stable_since("PyArg_ParseTuple"), Some((3, 2)));
        assert_eq!(stable_since("PyFrame_GetBack"), None);
    }
}
