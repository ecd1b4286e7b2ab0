//! What each torch release accepts, ships and runs on.
//!
//! A torch at hand knows better (`toolchain::Torch`); the table answers for one that is only asked for by version.

use std::sync::LazyLock;

use super::table;
use super::toolkits::toolkit;
use crate::domain::arch::{Arch, ArchSet};
use crate::domain::version::CudaVersion;

const TABLE: &str = include_str!("tables/torch.tsv");

/// One minor release of torch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torch {
    /// The patch release that was read.
    pub version: &'static str,
    /// Python requirement of its wheels, such as `>=3.10`.
    pub python: &'static str,
    /// Python releases with wheels.
    pub pythons: Vec<&'static str>,
    /// CUDA of the wheel on PyPI.
    pub cuda: CudaVersion,
    /// Wheel variants, such as `cu126`.
    pub variants: Vec<&'static str>,
    /// Whether the PyPI wheel uses the C++11 ABI; `abi_exception` names a variant that differs.
    pub cxx11_abi: bool,
    /// Variant whose ABI is the other one.
    pub abi_exception: Option<&'static str>,
    /// The allow-list of `cpp_extension`.
    pub archs: Vec<Arch>,
    /// What its family names stand for.
    pub families: Vec<(&'static str, ArchSet)>,
    /// Whether its arch list may be the word `native` (which we never emit).
    pub native: bool,
    /// Machine code in the PyPI wheel, where checked.
    pub wheel_archs: Vec<Arch>,
    /// C++ standard of extensions, such as `c++17`.
    pub cxx_std: &'static str,
    /// Whether a CUDA major that differs from the toolkit's stops the build.
    pub refuses_other_major: bool,
    /// Newest host compilers it accepts, by CUDA release.
    pub host_bounds: Vec<HostBound>,
}

/// torch's own bound on a host compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostBound {
    /// `gcc` or `clang`.
    pub family: &'static str,
    /// The toolkit release it holds for.
    pub cuda: CudaVersion,
    /// First refused version.
    pub below: &'static str,
}

impl Torch {
    /// Major and minor.
    pub fn minor(&self) -> (u32, u32) {
        minor(self.version).unwrap_or_default()
    }

    /// Whether `cpp_extension` accepts `arch`.
    pub fn accepts(&self, arch: Arch) -> bool {
        self.archs.contains(&arch)
    }
}

static TORCHES: LazyLock<Vec<Torch>> = LazyLock::new(|| table::rows(TABLE).filter_map(|row| read(&row)).collect());

/// All releases, oldest first.
pub fn torch_releases() -> &'static [Torch] {
    &TORCHES
}

/// The release that `version` belongs to: `2.9`, `2.9.1` or `2.9.1+cu130`.
pub fn torch(version: &str) -> Option<&'static Torch> {
    let wanted = minor(version)?;
    TORCHES.iter().find(|torch| torch.minor() == wanted)
}

/// What a family name stands for: by the given torch, else by the newest whose members the toolkit can all target.
pub fn families(name: &str, torch_version: Option<&str>, cuda: Option<CudaVersion>) -> Option<ArchSet> {
    let of = |torch: &Torch| torch.families.iter().find(|(n, _)| *n == name).map(|(_, set)| set.clone());
    if let Some(set) = torch_version.and_then(torch).and_then(of) {
        return Some(set);
    }
    let mut meanings = TORCHES.iter().rev().filter_map(of);
    let newest = meanings.next()?;
    let fits =
        |set: &ArchSet| cuda.and_then(toolkit).is_none_or(|toolkit| set.iter().all(|(arch, _)| toolkit.knows(arch)));
    if fits(&newest) { Some(newest) } else { Some(meanings.find(fits).unwrap_or(newest)) }
}

fn minor(version: &str) -> Option<(u32, u32)> {
    let version = version.split('+').next()?;
    let mut parts = version.split('.');
    let pair = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(pair)
}

fn read(row: &[&'static str]) -> Option<Torch> {
    let [version, python, pythons, cuda, variants, abi, archs, families, native, wheel, cxx_std, mismatch, bounds, ..] =
        *row
    else {
        return None;
    };
    let family = |item: &'static str| -> Option<(&'static str, ArchSet)> {
        let (name, list) = item.split_once('=')?;
        Some((name, list.parse().ok()?))
    };
    let (default_abi, exception) = abi.split_once(',').unwrap_or((abi, ""));
    let mut allowed: Vec<Arch> = table::list(archs, ',').map(|arch| arch.parse().ok()).collect::<Option<_>>()?;
    allowed.sort_unstable();
    Some(Torch {
        version,
        python,
        pythons: table::list(pythons, ',').collect(),
        cuda: cuda.parse().ok()?,
        variants: table::list(variants, ',').collect(),
        cxx11_abi: default_abi == "1",
        abi_exception: exception.split('=').next().filter(|name| !name.is_empty()),
        archs: allowed,
        families: table::list(families, ' ').map(family).collect::<Option<_>>()?,
        native: native == "yes",
        wheel_archs: table::list(wheel, ',').filter_map(Arch::from_joined).collect(),
        cxx_std,
        refuses_other_major: mismatch == "major",
        host_bounds: host_bounds(bounds),
    })
}

/// `gcc: 11.0<10.0 11.1<11.0; clang: 11.1<11.0`.
fn host_bounds(cell: &'static str) -> Vec<HostBound> {
    let mut bounds = Vec::new();
    for part in cell.split(';') {
        let Some((family, list)) = part.split_once(':') else { continue };
        for item in list.split_whitespace() {
            if let Some((cuda, below)) = item.split_once('<')
                && let Ok(cuda) = cuda.parse()
            {
                bounds.push(HostBound { family: family.trim(), cuda, below });
            }
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::arch::FAMILIES;

    #[test]
    fn every_row_reads_and_releases_ascend() {
        table::tests::is_well_formed(TABLE, 1);
        assert_eq!(torch_releases().len(), table::rows(TABLE).count());
        assert!(torch_releases().is_sorted_by(|a, b| a.minor() < b.minor()));
        for torch in torch_releases() {
            assert!(toolkit(torch.cuda).is_some(), "{}", torch.version);
            assert!(torch.pythons.iter().all(|p| p.starts_with("3.")) && !torch.pythons.is_empty());
            assert!(!torch.variants.is_empty() && torch.variants.iter().all(|v| v.starts_with("cu")));
            for (name, set) in &torch.families {
                assert!(FAMILIES.contains(name), "{name}");
                assert!(set.iter().all(|(arch, _)| torch.accepts(arch)), "{} {name}", torch.version);
            }
        }
    }

    #[test]
    fn a_local_version_finds_its_release() {
        for version in ["2.9", "2.9.1", "2.9.0+cu130"] {
            assert_eq!(torch(version).unwrap().version, "2.9.1");
        }
        assert!(torch("2.8").unwrap().accepts("10.1".parse().unwrap()));
        assert!(!torch("2.9").unwrap().accepts("10.1".parse().unwrap()));
        assert!(torch("0.4").is_none() && torch("x").is_none());
    }

    #[test]
    fn families_follow_the_torch_and_the_toolkit() {
        let family = |name, torch, cuda: Option<&str>| {
            families(name, torch, cuda.map(|v| v.parse().unwrap())).unwrap().to_string()
        };
        assert_eq!(family("Ampere", None, None), "8.0;8.6+PTX");
        assert_eq!(family("Blackwell+Tegra", None, None), "11.0");
        assert_eq!(family("Blackwell+Tegra", None, Some("12.8")), "10.1");
        assert_eq!(family("Blackwell+Tegra", Some("2.8"), None), "10.1");
        assert!(FAMILIES.iter().all(|name| families(name, None, None).is_some()));
        assert_eq!(families("Tesla", None, None), None);
    }

    #[test]
    fn bounds_keep_family_and_release() {
        let bounds = &torch("2.0").unwrap().host_bounds;
        assert!(bounds.contains(&HostBound { family: "gcc", cuda: CudaVersion::new(11, 7), below: "12.0" }));
        assert!(bounds.iter().any(|bound| bound.family == "clang"));
    }
}
