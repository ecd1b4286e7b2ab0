//! How a file fares on a GPU with a driver: it runs natively, by JIT, or not, with the driver it needs and why.
//!
//! Invariant: the rules of `compat` decide per fatbin, since the driver picks an image within one. A file of which some
//! fatbins start and others do not is no failure (sources for one generation are common), but it is said.

use serde::Serialize;

use super::found::Found;
use crate::compat::rules::{self, Code, Image, Runs};
use crate::compat::{self, DriverVersion};
use crate::domain::arch::{Arch, Capability, Item, Origin, parse_list};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::version::CudaVersion;
use crate::targets;

/// A GPU that files must run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// How to call it: a product, or `8.6`.
    pub name: String,
    /// Its capability.
    pub capability: Capability,
}

/// The driver that must start the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// The CUDA release it is for.
    pub cuda: CudaVersion,
    /// How the user named it.
    pub name: String,
}

/// How one file fares on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Fate {
    /// The GPU as it was named.
    pub gpu: String,
    /// Its capability.
    pub capability: String,
    /// `natively`, `by-jit` or `no`.
    pub runs: String,
    /// The code that it runs, such as `sm_86`.
    pub by: Vec<String>,
    /// Oldest driver that starts it, where known.
    pub driver: Option<String>,
    /// Why not, or what it costs.
    pub why: Option<String>,
    /// Fatbins that hold nothing for this GPU, although others of the file do.
    pub without: usize,
    /// All fatbins with code that a driver loads.
    pub fatbins: usize,
    /// Reason of the waiver that excuses a failure, if one does.
    pub waived: Option<String>,
}

impl Fate {
    /// Whether the file starts.
    pub fn starts(&self) -> bool {
        self.runs != "no"
    }
}

/// Reads `--runs-on` values: products, capabilities in any spelling, `native` for what `native` gives.
///
/// # Errors
/// Every item that is no GPU.
pub fn gpus(values: &[String], mut native: impl FnMut() -> Vec<Gpu>) -> Result<Vec<Gpu>, Vec<Problem>> {
    let (mut found, mut problems): (Vec<Gpu>, Vec<Problem>) = (Vec::new(), Vec::new());
    for part in values.iter().flat_map(|value| value.split([',', ';'])).map(str::trim).filter(|part| !part.is_empty()) {
        match gpu(part) {
            Ok(Some(gpus)) => found.extend(gpus),
            Ok(None) => found.extend(native()),
            Err(problem) => problems.push(problem),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|gpu| seen.insert((gpu.name.clone(), gpu.capability)));
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// One item; `None` for `native`.
fn gpu(text: &str) -> Result<Option<Vec<Gpu>>, Problem> {
    let own = |gpu: compat::Gpu| Gpu { name: gpu.name.to_owned(), capability: gpu.capability };
    let product = || targets::gpus(text, Exit::Usage).map(|gpus| gpus.into_iter().map(own).collect::<Vec<_>>());
    let items = match parse_list(&Origin::argument("--runs-on"), text) {
        Ok(items) => items,
        // A product's name may hold blanks, which a list of archs may not; a slip in a number is said as such.
        Err(problems) => {
            return product().map(Some).map_err(|problem| match problems.iter().next() {
                Some(slip) if text.starts_with(|c: char| c.is_ascii_digit()) => slip.clone(),
                _ => problem,
            });
        }
    };
    match items.first().map(|spanned| &spanned.item) {
        Some(Item::Arch(arch, _)) if items.len() == 1 => {
            Ok(Some(vec![Gpu { name: arch.capability.to_string(), capability: arch.capability }]))
        }
        Some(Item::Native) if items.len() == 1 => Ok(None),
        _ => product().map(Some),
    }
}

/// Reads `--driver`: a driver's branch or version, such as 535 or 535.161.08, or the CUDA release it is for.
///
/// # Errors
/// Something else, or a branch before the table begins.
pub fn driver(text: &str) -> Result<Driver, Problem> {
    let refuse = |why: String| {
        Problem::new("cuwright::usage::driver", Exit::Usage, format!("`{text}` is no driver")).why(why).help(
            "write its branch or version, such as `535` or `535.161.08`, or the CUDA release that it is for: `12.2`",
        )
    };
    let first = text.split('.').next().and_then(|number| number.parse::<u16>().ok());
    let Some(first) = first else { return Err(refuse("it does not begin with a number".to_owned())) };
    if first < 100 {
        let cuda = text.parse::<CudaVersion>().map_err(|error| refuse(error.to_string()))?;
        return Ok(Driver { cuda: cuda.release(), name: format!("a driver for CUDA {}", cuda.release()) });
    }
    if text.contains('.') {
        text.parse::<DriverVersion>().map_err(|()| refuse("a driver's version has two to four numbers".to_owned()))?;
    }
    let bundled = |toolkit: &&compat::Toolkit| toolkit.bundled_driver.as_ref().is_some_and(|d| d.branch() <= first);
    match compat::toolkits().iter().rev().find(bundled) {
        Some(toolkit) => {
            Ok(Driver { cuda: toolkit.release, name: format!("driver {text}, which is for CUDA {}", toolkit.release) })
        }
        None => Err(refuse("it is older than the table of drivers, which begins with CUDA 9".to_owned())),
    }
}

/// How `file` fares on `gpu`.
pub fn fate(file: &Found, gpu: &Gpu, driver: Option<&Driver>) -> Fate {
    let cuda = driver.map(|driver| driver.cuda);
    let (mut chosen, mut without, mut refusal): (Vec<Image>, usize, Option<String>) = (Vec::new(), 0, None);
    for group in &file.groups {
        match rules::best_of(group.images.iter().copied(), gpu.capability, cuda) {
            (Runs::No { why }, _) => {
                without += group.count;
                refusal.get_or_insert(why);
            }
            (_, image) => chosen.extend(image),
        }
    }
    let fatbins = file.groups.iter().map(|group| group.count).sum();
    let fate = |runs: &str, why: Option<String>| Fate {
        gpu: gpu.name.clone(),
        capability: gpu.capability.to_string(),
        runs: runs.to_owned(),
        by: names(&chosen),
        driver: None,
        why,
        without,
        fatbins,
        waived: None,
    };
    if let Some(why) = too_new(gpu, driver) {
        return Fate { by: Vec::new(), without: fatbins, ..fate("no", Some(why)) };
    }
    if chosen.is_empty() {
        // Several fatbins may refuse for several reasons; together they are one.
        let all = file.groups.iter().flat_map(|group| group.images.iter().copied());
        let why = match rules::best_of(all, gpu.capability, cuda) {
            (Runs::No { why }, _) => why,
            _ => refusal.unwrap_or_else(|| "there is no GPU code".to_owned()),
        };
        return fate("no", Some(why));
    }
    let jit = chosen.iter().any(|image| image.code == Code::Ptx);
    let floor = floor(&chosen, gpu.capability).map(|driver| driver.to_string());
    let slow = jit.then(|| "compiled by the driver: the first start is slow".to_owned());
    Fate { driver: floor, ..fate(if jit { "by-jit" } else { "natively" }, slow) }
}

fn names(images: &[Image]) -> Vec<String> {
    let mut sorted: Vec<&Image> = images.iter().collect();
    sorted.sort_by_key(|image| (image.code, image.arch));
    let mut names: Vec<String> = Vec::new();
    for image in sorted {
        let name = if image.code == Code::Sass { image.arch.sm() } else { image.arch.compute() };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A GPU that came after the driver does not start, whatever a file holds.
fn too_new(gpu: &Gpu, driver: Option<&Driver>) -> Option<String> {
    let driver = driver?;
    let first = compat::arch_span(Arch::plain(gpu.capability))?.first;
    // The oldest releases of the table say nothing about what came with them.
    let known = compat::toolkits().first().is_none_or(|oldest| oldest.release == first) || driver.cuda >= first;
    let floor = compat::toolkit(first).and_then(|toolkit| toolkit.bundled_driver.as_ref());
    let floor = floor.map(|floor| format!(" ({floor} or newer)")).unwrap_or_default();
    (!known).then(|| {
        format!(
            "{} came with CUDA {first}, and {} does not know it: update the driver{floor}",
            gpu.capability, driver.name
        )
    })
}

/// The oldest driver that starts all of `images` on a GPU, as far as the table tells.
fn floor(images: &[Image], gpu: Capability) -> Option<DriverVersion> {
    let of_image = |image: &Image| match image.code {
        Code::Sass => compat::toolkit(image.toolkit?)?.minimum_driver.clone(),
        Code::Ptx => {
            let isa = image.ptx_isa?;
            compat::toolkits().iter().find(|toolkit| toolkit.ptx >= isa)?.bundled_driver.clone()
        }
    };
    let of_gpu = || {
        let first = compat::arch_span(Arch::plain(gpu))?.first;
        compat::toolkit(first)?.bundled_driver.clone()
    };
    images.iter().filter_map(of_image).chain(of_gpu()).max()
}

/// A file that does not run on a GPU where it must.
pub fn refusal(file: &Found, fate: &Fate) -> Problem {
    let holds = if file.archs.is_empty() { "no code that a driver loads".to_owned() } else { file.archs.to_string() };
    let gpu =
        if fate.gpu == fate.capability { fate.gpu.clone() } else { format!("{} ({})", fate.gpu, fate.capability) };
    let problem =
        Problem::new("cuwright::verify::does_not_run", Exit::Verify, format!("{} does not run on {gpu}", file.file))
            .why(fate.why.clone().unwrap_or_default())
            .why(format!("the file holds {holds}"));
    if fate.why.as_ref().is_some_and(|why| why.contains("driver")) {
        return problem
            .help(format!("update the driver, or build with an older toolkit and `--arch {}`", fate.capability));
    }
    problem
        .help(format!("build for it: `--arch {}`", fate.capability))
        .help("if that is right for this file, add a `[[verify.waive]]` with its reason")
}

#[cfg(test)]
mod tests {
    use super::super::found::sample;
    use super::*;
    use crate::compat::PtxIsa;

    fn gpu_of(text: &str) -> Gpu {
        gpus(&[text.to_owned()], Vec::new).unwrap().remove(0)
    }

    fn runs(archs: &str, gpu: &str, driver_name: Option<&str>) -> String {
        let driver = driver_name.map(|name| driver(name).unwrap());
        let mut file = sample("a.so", archs);
        for image in file.groups.iter_mut().flat_map(|group| &mut group.images) {
            image.toolkit = Some(CudaVersion::new(12, 8));
            image.ptx_isa = (image.code == Code::Ptx).then_some(PtxIsa { major: 8, minor: 7 });
        }
        let fate = fate(&file, &gpu_of(gpu), driver.as_ref());
        format!("{} {} {}", fate.runs, fate.by.join(","), fate.driver.unwrap_or_default()).trim_end().to_owned()
    }

    #[test]
    fn every_spelling_of_a_gpu_reads_and_others_are_refused() {
        let names = |text: &str| -> Vec<String> {
            let found = gpus(&[text.to_owned()], Vec::new).unwrap();
            found.iter().map(|gpu| format!("{}={}", gpu.name, gpu.capability)).collect()
        };
        assert_eq!(names("RTX 3090, h100;8.6"), ["GeForce RTX 3090=8.6", "H100=9.0", "8.6=8.6"]);
        assert_eq!(names("sm_120,86 , 86"), ["12.0=12.0", "8.6=8.6"]);
        for (wrong, code) in [
            ("8", "cuwright::target::lost_zero"),
            ("RTX 4000", "cuwright::target::ambiguous_gpu"),
            ("Radeon", "cuwright::target::unknown_gpu"),
        ] {
            assert_eq!(gpus(&[wrong.to_owned()], Vec::new).unwrap_err()[0].code(), code, "{wrong}");
        }
    }

    #[test]
    fn a_driver_is_a_branch_a_version_or_a_cuda_release() {
        for (text, cuda) in [
            ("535", "12.2"),
            ("535.161.08", "12.2"),
            ("12.2", "12.2"),
            ("580", "13.0"),
            ("570.26", "12.8"),
            ("460.80", "11.2"),
            ("999", "13.4"),
        ] {
            assert_eq!(driver(text).unwrap().cuda.to_string(), cuda, "{text}");
        }
        for wrong in ["13", "new", "", "535.x", "100"] {
            assert_eq!(driver(wrong).unwrap_err().code(), "cuwright::usage::driver", "{wrong}");
        }
    }

    #[test]
    fn the_driver_floor_follows_the_code_and_the_gpu() {
        assert_eq!(runs("8.6", "8.6", None), "natively sm_86 525.60.13");
        assert_eq!(runs("8.0", "8.6", Some("535")), "natively sm_80 525.60.13");
        assert_eq!(runs("12.0", "12.0", None), "natively sm_120 570.86.10");
        assert_eq!(runs("8.0+PTX", "9.0", None), "by-jit compute_80 570.86.10");
        assert_eq!(runs("8.0+PTX", "9.0", Some("535")), "no");
        assert_eq!(runs("12.0", "12.0", Some("535")), "no");
        assert_eq!(runs("7.5", "8.6", None), "no");
    }

    #[test]
    fn fatbins_without_code_for_a_gpu_are_counted() {
        let mut file = sample("a.so", "8.0;9.0");
        file.groups.extend(sample("b.so", "9.0a").groups);
        let fate = |gpu: &str| {
            let fate = fate(&file, &gpu_of(gpu), None);
            (fate.runs, fate.by.join(","), fate.without)
        };
        assert_eq!(fate("9.0"), ("natively".to_owned(), "sm_90,sm_90a".to_owned(), 0));
        assert_eq!(fate("8.6"), ("natively".to_owned(), "sm_80".to_owned(), 1));
        assert_eq!(fate("7.5"), ("no".to_owned(), String::new(), 2));
    }
}
