//! What each CUDA toolkit release can target, and what it needs.
//!
//! A toolkit at hand knows better than this table (`nvcc --list-gpu-code`); the table answers when there is none yet.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use super::driver::DriverVersion;
use super::table;
use crate::domain::arch::{Arch, Variant};
use crate::domain::version::CudaVersion;

const TABLE: &str = include_str!("tables/toolkits.tsv");

/// A version of the PTX instruction set; a driver refuses PTX newer than it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PtxIsa {
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u8,
}

impl fmt::Display for PtxIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for PtxIsa {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        let number = |part: &str| part.parse().map_err(|_| ());
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

/// One toolkit release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// The release.
    pub release: CudaVersion,
    /// What nvcc targets when told nothing.
    pub default: Arch,
    /// Every arch it targets, all variants, in order.
    pub archs: Vec<Arch>,
    /// The PTX it writes.
    pub ptx: PtxIsa,
    /// Newest accepted gcc major.
    pub gcc_max: Option<u32>,
    /// Newest accepted clang, as documented.
    pub clang_max: Option<String>,
    /// The driver that came with it, where known.
    pub bundled_driver: Option<DriverVersion>,
    /// The oldest driver its programs run on under minor-version compatibility.
    pub minimum_driver: Option<DriverVersion>,
}

impl Toolkit {
    /// Whether nvcc can target `arch`.
    pub fn knows(&self, arch: Arch) -> bool {
        let within = |span: &Span| span.first <= self.release && span.last.is_none_or(|last| self.release <= last);
        self.archs.contains(&arch) || by_user(arch).as_ref().is_some_and(within)
    }

    /// The archs without a suffix.
    pub fn plain(&self) -> impl DoubleEndedIterator<Item = Arch> + '_ {
        self.archs.iter().copied().filter(|arch| arch.variant == Variant::Plain)
    }
}

/// First and last toolkit release that can target an arch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first in the table.
    pub first: CudaVersion,
    /// The last, or `None` where the newest release of the table still can.
    pub last: Option<CudaVersion>,
}

static TOOLKITS: LazyLock<Vec<Toolkit>> = LazyLock::new(|| table::rows(TABLE).filter_map(|row| read(&row)).collect());

/// All releases, oldest first.
pub fn toolkits() -> &'static [Toolkit] {
    &TOOLKITS
}

/// The newest release that the table knows.
pub fn newest() -> Option<&'static Toolkit> {
    TOOLKITS.last()
}

/// The release `version` belongs to, build number or not.
pub fn toolkit(version: CudaVersion) -> Option<&'static Toolkit> {
    TOOLKITS.iter().find(|toolkit| toolkit.release == version.release())
}

/// The newest release that a driver supports by itself, by the driver that came with each release.
pub fn cuda_of_driver(driver: &DriverVersion) -> Option<CudaVersion> {
    let knows = |toolkit: &&Toolkit| toolkit.bundled_driver.as_ref().is_some_and(|bundled| bundled <= driver);
    TOOLKITS.iter().rev().find(knows).map(|toolkit| toolkit.release)
}

/// What the user's own file says about an arch.
fn by_user(arch: Arch) -> Option<Span> {
    let own = super::user::installed()?;
    own.archs.iter().find(|(known, _)| *known == arch).map(|(_, span)| *span)
}

/// Which releases can target `arch`; `None` where none of the table can.
pub fn arch_span(arch: Arch) -> Option<Span> {
    if let Some(span) = by_user(arch) {
        return Some(span);
    }
    let mut knowing = TOOLKITS.iter().filter(|toolkit| toolkit.knows(arch));
    let first = knowing.next()?.release;
    let last = knowing.next_back().map_or(first, |toolkit| toolkit.release);
    let open = newest().is_some_and(|newest| newest.release == last);
    Some(Span { first, last: (!open).then_some(last) })
}

fn read(row: &[&'static str]) -> Option<Toolkit> {
    let [release, default, plain, specific, family, ptx, gcc_max, clang_max, bundled, minimum, ..] = *row else {
        return None;
    };
    let archs = |cell| table::list(cell, ',').map(Arch::from_joined);
    let archs: Option<Vec<Arch>> = [plain, specific, family].into_iter().flat_map(archs).collect();
    let mut archs = archs?;
    archs.sort_unstable();
    Some(Toolkit {
        release: release.parse().ok()?,
        default: Arch::from_joined(default)?,
        archs,
        ptx: ptx.parse().ok()?,
        gcc_max: gcc_max.parse().ok(),
        clang_max: (clang_max != "?").then(|| clang_max.to_owned()),
        bundled_driver: bundled.parse().ok(),
        minimum_driver: minimum.parse().ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(arch: &str) -> (String, String) {
        let span = arch_span(arch.parse().unwrap()).unwrap();
        (span.first.to_string(), span.last.map(|v| v.to_string()).unwrap_or_default())
    }

    #[test]
    fn every_row_reads_and_releases_ascend() {
        table::tests::is_well_formed(TABLE, 3);
        assert_eq!(toolkits().len(), table::rows(TABLE).count());
        assert!(toolkits().is_sorted_by(|a, b| a.release < b.release && a.ptx <= b.ptx));
        for toolkit in toolkits() {
            assert!(toolkit.knows(toolkit.default), "{}", toolkit.release);
            assert!(toolkit.minimum_driver <= toolkit.bundled_driver || toolkit.bundled_driver.is_none());
        }
    }

    #[test]
    fn archs_come_once_and_go_once() {
        let all: std::collections::BTreeSet<Arch> = toolkits().iter().flat_map(|t| t.archs.clone()).collect();
        for arch in all {
            let known: Vec<bool> = toolkits().iter().map(|t| t.knows(arch)).collect();
            assert!(known.windows(2).filter(|pair| pair[0] != pair[1]).count() <= 2, "{arch} {known:?}");
        }
    }

    #[test]
    fn the_spans_that_everyone_trips_over() {
        for (arch, first, last) in [
            ("3.5", "9.0", "11.8"),
            ("3.0", "9.0", "10.2"),
            ("5.0", "9.0", "12.9"),
            ("7.0", "9.0", "12.9"),
            ("7.5", "10.0", ""),
            ("8.0", "11.0", ""),
            ("8.6", "11.1", ""),
            ("8.7", "11.4", ""),
            ("8.9", "11.8", ""),
            ("9.0", "11.8", ""),
            ("9.0a", "12.0", ""),
            ("10.0", "12.8", ""),
            ("10.1", "12.8", "12.9"),
            ("10.3", "12.9", ""),
            ("10.0f", "12.9", ""),
            ("11.0", "13.0", ""),
            ("8.8", "13.0", ""),
            ("10.7", "13.4", ""),
            ("12.1", "12.9", ""),
        ] {
            assert_eq!(span(arch), (first.to_owned(), last.to_owned()), "{arch}");
        }
        assert_eq!(arch_span("9.9".parse().unwrap()), None);
    }

    #[test]
    fn a_driver_tells_the_newest_release_it_supports() {
        let of = |text: &str| cuda_of_driver(&text.parse().unwrap()).map(|release| release.to_string());
        assert_eq!(of("535.161.08"), Some("12.2".to_owned()));
        assert_eq!(of("580.65.06"), Some("13.0".to_owned()));
        assert_eq!(of("100.1"), None);
    }

    #[test]
    fn a_build_number_finds_its_release() {
        assert_eq!(toolkit("12.8.93".parse().unwrap()).unwrap().ptx.to_string(), "8.7");
        assert_eq!(toolkit(CudaVersion::new(12, 7)), None);
    }
}
