//! Everything that is knowable before compiling: all constraints joined, all violations at once.
//!
//! Invariant: pure. Each violation names the losing constraint, the evidence with its source, and the edit that mends
//! it. What only may hurt is a warning. The installed tool's own word wins over any table.

pub mod cells;
mod machine;

use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

pub use self::machine::{Disk, Here, full};
use crate::compat::Available;
use crate::compat::support::{self, Compiler};
use crate::domain::arch::dialect::Consumer;
use crate::domain::arch::{Arch, ArchSet, Capability, Form};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::toolchain::{HostCompiler, Toolchain};
use crate::recipe::{Backend, Recipe};

/// What the machine adds to the question. The default knows nothing and asks nothing.
#[derive(Debug, Clone, Default)]
pub struct Site<'a> {
    /// Toolkits that can be had.
    pub available: Option<&'a Available>,
    /// Other host compilers that are installed.
    pub compilers: &'a [HostCompiler],
    /// Why each target is one.
    pub reasons: &'a [String],
    /// GPUs and driver, where there are some.
    pub here: Option<Here>,
    /// Capabilities of the GPUs here, with or without a driver.
    pub gpus: Vec<Capability>,
    /// Disks that the build writes to.
    pub disks: &'a [Disk],
    /// Compile jobs at once.
    pub jobs: u32,
}

/// What was found: violations stop, warnings do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Violated constraints.
    pub problems: Vec<Problem>,
    /// What may hurt.
    pub warnings: Vec<String>,
}

/// Checks a unit.
pub fn check(recipe: &Recipe, toolchain: &Toolchain, archs: &ArchSet, site: &Site<'_>) -> Report {
    let mut report = Report::default();
    let toolkit = &toolchain.toolkit;
    let compiler = Compiler { version: toolkit.nvcc, gpu_codes: toolkit.codes() };
    let nvcc = format!("nvcc {} at {}/bin/nvcc ({})", toolkit.nvcc, toolkit.home, toolkit.origin);
    let refused = support::against_compiler_here(archs, compiler, &site.gpus, site.available);
    report.problems.extend(refused.into_iter().map(|problem| because(problem.why(&nvcc), site.reasons, archs)));
    let reads_torch = recipe.build.archs.has(Consumer::Torch);
    if reads_torch {
        let torch = &toolchain.torch;
        // A list that could not be read says nothing; the table of torch releases is asked instead.
        let accepted = (!torch.supported_archs.is_empty()).then_some(torch.supported_archs.as_slice());
        let place = format!("torch {} at {}", torch.version, torch.folder);
        let refused = support::against_torch(archs, &torch.version, accepted);
        report.problems.extend(refused.into_iter().map(|problem| problem.why(&place)));
    }
    // Wheels are taken to link torch, whoever reads their archs.
    if reads_torch || recipe.build.backend.makes_wheel() {
        toolkit_against_torch(toolchain, site, &mut report);
        python_against_torch(toolchain, &mut report);
    }
    toolkit_against_host_compiler(toolchain, site, &mut report);
    recipe_ranges(recipe, toolchain, &mut report);
    machine::check(toolchain, archs, site, &mut report);
    if toolchain.ninja.is_none() && recipe.build.backend != Backend::Bazel {
        report.warnings.push("ninja was not found: sources compile one after another and progress is not known; add \"ninja\" to `toolchain.build-requires`".to_owned());
    }
    if only_arch_specific_ptx(archs) {
        report.warnings.push(format!(
            "the only PTX in {archs} is arch-specific, which no later GPU can use; add a plain one, such as `{}+PTX`",
            archs.highest().map_or_else(String::new, |arch| Arch::plain(arch.capability).to_string())
        ));
    }
    report
}

/// Adds where the refused archs come from; one that a GPU of this machine asks for can be left out by name.
fn because(mut problem: Problem, reasons: &[String], archs: &ArchSet) -> Problem {
    let told = problem.message().to_owned();
    let refused = |arch: &str| told.split([' ', ',']).any(|word| word == arch);
    let of_machine = |reason: &&String| reason.split_once(" is ").is_some_and(|(arch, _)| refused(arch));
    let cards: Vec<&String> = reasons.iter().filter(of_machine).collect();
    for reason in &cards {
        problem = problem.why(format!("asked for: {reason}"));
    }
    if cards.is_empty() {
        let lists = reasons.iter().filter(|reason| reason.contains(" from "));
        return lists.take(2).fold(problem, |problem, reason| problem.why(format!("asked for: {reason}")));
    }
    let rest = archs.filter(|arch, _| !refused(&arch.to_string()));
    let rest = if archs.virtuals().next().is_some() { rest.with_highest_ptx() } else { rest };
    if rest.is_empty() { problem } else { problem.help(format!("to leave that GPU out, say so: `--arch \"{rest}\"`")) }
}

fn toolkit_against_torch(toolchain: &Toolchain, site: &Site<'_>, report: &mut Report) {
    let (toolkit, torch) = (&toolchain.toolkit, &toolchain.torch);
    let Some(cuda) = torch.cuda else {
        report.problems.push(
            Problem::new(
                "cuwright::preflight::torch_cpu_only",
                Exit::Toolchain,
                format!("torch {} was built without CUDA", torch.version),
            )
            .why(format!("{}/version.py names no CUDA version", torch.folder))
            .help("install a CUDA build of torch into this Python, or leave `--python` out to have one provisioned"),
        );
        return;
    };
    if cuda.major != toolkit.nvcc.major {
        let beside = site.available.and_then(|known| known.mend(None, |version| version.major == cuda.major));
        let general = format!("use a toolkit {}.x: set CUDA_HOME to one, or `--cuda {cuda}`", cuda.major);
        report.problems.push(
            Problem::new(
                "cuwright::preflight::toolkit_torch",
                Exit::Toolchain,
                format!("toolkit {} and torch for CUDA {cuda} do not fit each other", toolkit.nvcc.release()),
            )
            .why(format!("nvcc {} at {} ({})", toolkit.nvcc, toolkit.home, toolkit.origin))
            .why(format!("torch {} at {}; torch refuses another major", torch.version, torch.folder))
            .help(beside.unwrap_or(general))
            .help(format!("or install a torch built for CUDA {}.x", toolkit.nvcc.major)),
        );
    } else if cuda.minor != toolkit.nvcc.minor {
        report.warnings.push(format!(
            "nvcc {} differs from torch's CUDA {cuda} in the minor release, which torch accepts",
            toolkit.nvcc
        ));
    }
}

/// A folder of packages for another Python gets in the way by `PYTHONPATH`, mostly.
fn python_against_torch(toolchain: &Toolchain, report: &mut Report) {
    let (python, torch) = (&toolchain.python, &toolchain.torch);
    let Some(tag) = torch.tag.as_ref().filter(|tag| **tag != python.tag) else { return };
    let message =
        format!("torch {} is compiled for {tag}, and Python {} is {}", torch.version, python.version, python.tag);
    report.problems.push(
        Problem::new("cuwright::preflight::python_torch", Exit::Toolchain, message)
            .why(format!("{} is found before any other torch", torch.folder))
            .why(format!("{} ({})", python.executable, python.origin))
            .help("remove its folder from PYTHONPATH, or name the Python it belongs to with `--python`"),
    );
}

fn toolkit_against_host_compiler(toolchain: &Toolchain, site: &Site<'_>, report: &mut Report) {
    let (bounds, host) = (toolchain.toolkit.host_bounds, &toolchain.host);
    let name = host.family.cc();
    let Some(limit) = bounds.newest(host.family).filter(|limit| host.major() > *limit) else { return };
    let newer = |release: crate::domain::version::CudaVersion| {
        let row = crate::compat::toolkit(release);
        let of_family = |row: &crate::compat::Toolkit| match host.family {
            crate::domain::toolchain::HostFamily::Gcc => row.gcc_max,
            crate::domain::toolchain::HostFamily::Clang => None,
        };
        release.major == toolchain.toolkit.nvcc.major && row.and_then(of_family).is_some_and(|max| host.major() <= max)
    };
    let mut problem = Problem::new(
        "cuwright::preflight::host_compiler_too_new",
        Exit::Toolchain,
        format!("{name} {} is newer than nvcc {} accepts", host.version, toolchain.toolkit.nvcc),
    )
    .why(format!("{} ({})", host.cxx, host.origin))
    .why(format!("{}/include/crt/host_config.h accepts {name} up to {limit}", toolchain.toolkit.home));
    problem = match site.compilers.iter().find(|other| bounds.accept(other)) {
        Some(other) => problem.help(format!(
            "for this build only: `--cc {}`, which is {} {}",
            other.cc,
            other.family.cc(),
            other.version
        )),
        None => problem
            .help(format!("install {name}-{limit} and {}-{limit}, and add `--cc {name}-{limit}`", host.family.cxx())),
    };
    if let Some(mend) = site.available.and_then(|known| known.mend(None, newer)) {
        problem = problem.help(format!("or {mend}"));
    }
    report.problems.push(
        problem.help("`-allow-unsupported-compiler` only silences the check: such a build may fail later, or be wrong"),
    );
}

fn recipe_ranges(recipe: &Recipe, toolchain: &Toolchain, report: &mut Report) {
    let needs = &recipe.toolchain;
    let nvcc = toolchain.toolkit.nvcc.release().to_string();
    let torch = toolchain.torch.version.split('+').next().unwrap_or_default().to_owned();
    let checks = [
        ("cuda", &needs.cuda, nvcc, format!("{} ({})", toolchain.toolkit.home, toolchain.toolkit.origin)),
        ("torch", &needs.torch, torch, toolchain.torch.folder.to_string()),
        (
            "python",
            &needs.python,
            toolchain.python.version.clone(),
            format!("{} ({})", toolchain.python.executable, toolchain.python.origin),
        ),
    ];
    for (what, range, version, place) in checks {
        let (Ok(specifiers), Ok(parsed)) = (VersionSpecifiers::from_str(range), Version::from_str(&version)) else {
            continue;
        };
        if !specifiers.contains(&parsed) {
            report.problems.push(
                Problem::new(
                    "cuwright::preflight::recipe_range",
                    Exit::Toolchain,
                    format!("{} wants {what} {range}, and this is {version}", recipe.name),
                )
                .why(place)
                .help(format!(
                    "choose another with `--{what}`, or widen `toolchain.{what}` if you know that it builds"
                )),
            );
        }
    }
}

/// Whether there is PTX, and none that a GPU of another number could use.
fn only_arch_specific_ptx(archs: &ArchSet) -> bool {
    let mut ptx = archs.iter().filter(|(_, form): &(Arch, Form)| form.ptx).peekable();
    ptx.peek().is_some() && ptx.all(|(arch, _)| arch != Arch::plain(arch.capability))
}

#[cfg(test)]
mod tests;
