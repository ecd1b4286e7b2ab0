//! Facts that follow from others by the tables: where an arch began and ended, what a toolkit accepts, which installed
//! toolkit would fit. Asked for by name in a rule's texts and conditions, computed only then.

use super::facts::View;
use crate::compat::rules::is_tegra;
use crate::compat::{GpuLookup, arch_span, gpu_by_name, newest, toolkit, toolkits};
use crate::domain::arch::{Arch, Capability, Variant};
use crate::domain::symbol;
use crate::domain::version::CudaVersion;

/// GiB that one nvcc on heavy templates takes.
const JOB_GIB: f64 = 4.5;

impl View<'_> {
    /// A fact as found, or as it follows from others.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.fact(name).map(|fact| fact.value.clone()).or_else(|| self.derived(name)).filter(|value| !value.is_empty())
    }

    /// The arch at fault.
    pub(super) fn arch(&self) -> Option<Arch> {
        read_arch(&self.fact("arch")?.value)
    }

    /// The toolkit's release.
    pub(super) fn toolkit(&self) -> Option<CudaVersion> {
        version(&self.fact("toolkit")?.value)
    }

    /// The CUDA that torch was built with.
    pub(super) fn torch_cuda(&self) -> Option<CudaVersion> {
        let told = self.fact("torch_cuda").and_then(|fact| version(&fact.value));
        told.or_else(|| tag_version(self.fact("torch")?.value.split("+cu").nth(1)?))
    }

    /// The capability of the card.
    pub(super) fn gpu(&self) -> Option<Capability> {
        if let Some(told) = self.fact("gpu_arch") {
            return told.value.parse().ok().or_else(|| read_arch(&told.value).map(|arch| arch.capability));
        }
        match gpu_by_name(&self.fact("gpu")?.value) {
            GpuLookup::Found(gpu) => Some(gpu.capability),
            _ => None,
        }
    }

    /// Every arch that the failing command or the settings name.
    pub(super) fn archs(&self) -> Vec<Arch> {
        let words = self.all("archs").into_iter().flat_map(|list| list.split([';', ',', ' ', '|']).map(str::to_owned));
        let mut archs: Vec<Arch> = words.filter_map(|word| read_arch(word.trim_end_matches("+PTX"))).collect();
        archs.extend(self.arch());
        archs.sort_unstable();
        archs.dedup();
        archs
    }

    fn derived(&self, name: &str) -> Option<String> {
        if let Some(rest) = name.strip_prefix("arch_") {
            return self.of_arch(rest);
        }
        if let Some(rest) = name.strip_prefix("archs_") {
            return self.of_archs(rest);
        }
        if let Some(rest) = name.strip_prefix("toolkit_") {
            return self.of_toolkit(rest);
        }
        match name {
            "torch_cuda" => Some(self.torch_cuda()?.release().to_string()),
            "torch_cuda_major" => Some(self.torch_cuda()?.major.to_string()),
            "torch_tag" => self.torch_cuda().map(tag),
            "torch_release" => Some(self.fact("torch")?.value.split('+').next()?.to_owned()),
            "gpu_arch" => Some(self.gpu()?.to_string()),
            "gpu_cmake" => Some(self.gpu()?.number().to_string()),
            "gpu_first" => Some(arch_span(Arch::plain(self.gpu()?))?.first.to_string()),
            "fitting_toolkit" => self.fitting_toolkit(),
            "gcc_major" => Some(self.fact("gcc")?.value.split('.').next()?.to_owned()),
            "fitting_gcc" => self.fitting_gcc(),
            "symbol_name" => Some(symbol::demangle(&self.fact("symbol")?.value)),
            "jobs_advised" => self.jobs_advised(),
            "ptx_cuda" => cuda_of_ptx(&self.fact("ptx")?.value, true),
            "ptx_known_cuda" => cuda_of_ptx(&self.fact("ptx_known")?.value, false),
            "driver_needed" => Some(toolkit(self.toolkit()?)?.minimum_driver.as_ref()?.to_string()),
            _ => None,
        }
    }

    fn of_arch(&self, what: &str) -> Option<String> {
        let arch = self.arch()?;
        let last = arch_span(arch).and_then(|span| span.last).or_else(|| ancient(arch).then(|| CudaVersion::new(8, 0)));
        match what {
            "name" => Some(arch.to_string()),
            "sm" => Some(arch.sm()),
            "first" => Some(arch_span(arch)?.first.to_string()),
            "last" => Some(last?.to_string()),
            "gone" => {
                let after = toolkits().iter().find(|toolkit| Some(toolkit.release) > last && last.is_some());
                after.map(|toolkit| toolkit.release.to_string())
            }
            "twin" => twin(arch).map(|twin| twin.to_string()),
            "twin_number" => twin(arch).map(Arch::joined),
            // The newest arch below it that this toolkit knows; chips of their own (Jetson) are no step on the way.
            "below" => {
                let known = toolkit(self.toolkit()?)?.plain().rev();
                let below = known.map(|arch| arch.capability).find(|have| *have < arch.capability && !is_tegra(*have));
                below.map(|below| below.to_string())
            }
            "generation" => Some(arch.capability.major.to_string()),
            _ => None,
        }
    }

    fn of_archs(&self, what: &str) -> Option<String> {
        let archs = self.archs();
        let known = toolkit(self.toolkit()?)?;
        let span = |arch: &Arch| arch_span(*arch);
        let picked: Vec<Arch> = match what {
            "gone" => {
                let gone = |arch: &Arch| span(arch).is_some_and(|s| s.last.is_some_and(|last| last < known.release));
                archs.into_iter().filter(|arch| gone(arch) || ancient(*arch)).collect()
            }
            "new" => archs.into_iter().filter(|arch| span(arch).is_some_and(|s| s.first > known.release)).collect(),
            "fit" | "fit_cmake" => archs.into_iter().filter(|arch| known.knows(*arch)).collect(),
            _ => return None,
        };
        let joiner = if what.starts_with("fit") { ";" } else { ", " };
        let cmake = what == "fit_cmake";
        let names = picked.iter().map(|arch| if cmake { arch.joined() } else { arch.to_string() });
        Some(names.collect::<Vec<_>>().join(joiner))
    }

    fn of_toolkit(&self, what: &str) -> Option<String> {
        let version = self.toolkit()?;
        match what {
            "release" => return Some(version.release().to_string()),
            "major" => return Some(version.major.to_string()),
            "tag" => return Some(tag(version)),
            _ => {}
        }
        // A release that the table lacks has the bounds of the one before it.
        let known = toolkit(version).or_else(|| toolkits().iter().rev().find(|known| known.release <= version))?;
        match what {
            "newest" => known.plain().next_back().map(|arch| arch.to_string()),
            "oldest" => known.plain().next().map(|arch| arch.to_string()),
            "gcc" => known.gcc_max.map(|gcc| gcc.to_string()),
            "clang" => known.clang_max.clone(),
            _ => None,
        }
    }

    /// An installed toolkit of torch's major, the nearest to torch's own first.
    fn fitting_toolkit(&self) -> Option<String> {
        let wanted = self.torch_cuda()?;
        let installed = self.all("installed");
        let fits = |path: &&str| Some((version(path.rsplit('-').next()?)?, (*path).to_owned()));
        let mut found: Vec<(CudaVersion, String)> =
            installed.iter().filter_map(fits).filter(|(version, _)| version.major == wanted.major).collect();
        found.sort_by_key(|(version, _)| (version.release() != wanted.release(), std::cmp::Reverse(*version)));
        found.into_iter().next().map(|(_, path)| path)
    }

    /// The newest installed gcc within the limit.
    fn fitting_gcc(&self) -> Option<String> {
        let limit: u32 = self.get("limit").or_else(|| self.get("toolkit_gcc"))?.parse().ok()?;
        let majors = self.all("installed_gcc").into_iter().filter_map(|major| major.parse::<u32>().ok());
        majors.filter(|major| *major <= limit).max().map(|major| major.to_string())
    }

    fn jobs_advised(&self) -> Option<String> {
        let free: f64 = self.fact("memory_free_gib").or_else(|| self.fact("memory_gib"))?.value.parse().ok()?;
        // Never more than there were: what is left over is no reason to start more.
        let most = self.fact("jobs").or_else(|| self.fact("cores")).and_then(|fact| fact.value.parse::<u32>().ok());
        let most = most.map_or(1024, |jobs| jobs.saturating_sub(1).max(1));
        let fit = (1..=most).take_while(|jobs| f64::from(*jobs) * JOB_GIB <= free).last();
        Some(fit.unwrap_or(1).to_string())
    }
}

/// `compute_86`, `sm_90a`, `86`, `8.6`.
pub(super) fn read_arch(text: &str) -> Option<Arch> {
    let text = text.trim().trim_end_matches("-real").trim_end_matches("-virtual");
    let coded = Arch::from_code(text).or_else(|| Arch::from_joined(text));
    // compute_20 and below: gone before the tables begin, but a number all the same.
    coded.or_else(|| text.parse().ok())
}

/// Archs that ended before the oldest toolkit of the table.
pub(super) fn ancient(arch: Arch) -> bool {
    arch.capability.major < 3
}

/// A GPU whose number changed with CUDA 13: Thor, 10.1 before and 11.0 since.
pub(super) fn twin(arch: Arch) -> Option<Arch> {
    let (old, new) = (Capability::new(10, 1), Capability::new(11, 0));
    let other = [(old, new), (new, old)].into_iter().find(|(one, _)| *one == arch.capability)?.1;
    Some(Arch { capability: other, variant: if arch.variant == Variant::F { Variant::F } else { arch.variant } })
}

/// `12.4`, `V12.4.131`, `12`.
pub(super) fn version(text: &str) -> Option<CudaVersion> {
    let text = text.trim().trim_start_matches(['V', 'v']);
    text.parse().ok().or_else(|| format!("{text}.0").parse().ok())
}

/// `124` is 12.4, `92` is 9.2.
fn tag_version(tag: &str) -> Option<CudaVersion> {
    let digits: String = tag.chars().take_while(char::is_ascii_digit).collect();
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    format!("{major}.{minor}").parse().ok()
}

fn tag(version: CudaVersion) -> String {
    format!("cu{}{}", version.major, version.minor)
}

/// The toolkit that first writes (or last still writes) a PTX version.
fn cuda_of_ptx(ptx: &str, first: bool) -> Option<String> {
    let wanted = ptx.parse().ok()?;
    let mut same =
        toolkits().iter().filter(|toolkit| if first { toolkit.ptx >= wanted } else { toolkit.ptx <= wanted });
    let found = if first { same.next() } else { same.next_back() };
    found.or_else(|| newest().filter(|_| !first)).map(|toolkit| toolkit.release.to_string())
}
