//! Everything that is knowable before compiling: all constraints joined, all violations at once.
//!
//! Invariant: pure. Each violation names the losing constraint, the evidence with its source, and the edit that mends
//! it. What only may hurt is a warning. The installed tool's own word wins over any table.

pub mod cells;

use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

use crate::compat::support::{self, Compiler};
use crate::domain::arch::dialect::Consumer;
use crate::domain::arch::{Arch, ArchSet, Form};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::toolchain::{HostFamily, Toolchain};
use crate::recipe::{Backend, Recipe};

/// Checks a unit. Gives back the warnings.
///
/// # Errors
/// Every violated constraint.
pub fn check(recipe: &Recipe, toolchain: &Toolchain, archs: &ArchSet) -> Result<Vec<String>, Problems> {
    let mut found = Vec::new();
    let mut warnings = Vec::new();
    let toolkit = &toolchain.toolkit;
    let compiler = Compiler { version: toolkit.nvcc, gpu_codes: Some(&toolkit.gpu_codes) };
    let nvcc = format!("nvcc {} at {}/bin/nvcc ({})", toolkit.nvcc, toolkit.home, toolkit.origin);
    found.extend(support::against_compiler(archs, compiler).into_iter().map(|problem| problem.why(&nvcc)));
    let torch = &toolchain.torch;
    // A list that could not be read says nothing; the table of torch releases is asked instead.
    let accepted = (!torch.supported_archs.is_empty()).then_some(torch.supported_archs.as_slice());
    let place = format!("torch {} at {}", torch.version, torch.folder);
    if recipe.build.archs.has(Consumer::Torch) {
        let refused = support::against_torch(archs, &torch.version, accepted).into_iter();
        found.extend(refused.map(|problem| problem.why(&place)));
    }
    // Wheels are taken to link torch, whoever reads their archs.
    if recipe.build.archs.has(Consumer::Torch) || recipe.build.backend.makes_wheel() {
        toolkit_against_torch(toolchain, &mut found, &mut warnings);
    }
    toolkit_against_host_compiler(toolchain, &mut found);
    recipe_ranges(recipe, toolchain, &mut found);
    if toolchain.ninja.is_none() && recipe.build.backend != Backend::Bazel {
        warnings.push("ninja was not found: sources compile one after another and progress is not known; add \"ninja\" to `toolchain.build-requires`".to_owned());
    }
    if only_arch_specific_ptx(archs) {
        warnings.push(format!(
            "the only PTX in {archs} is arch-specific, which no later GPU can use; add a plain one, such as `{}+PTX`",
            archs.highest().map_or_else(String::new, |arch| Arch::plain(arch.capability).to_string())
        ));
    }
    Problems::check(found).map(|()| warnings)
}

fn toolkit_against_torch(toolchain: &Toolchain, found: &mut Vec<Problem>, warnings: &mut Vec<String>) {
    let (toolkit, torch) = (&toolchain.toolkit, &toolchain.torch);
    let Some(cuda) = torch.cuda else {
        found.push(
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
        found.push(
            Problem::new(
                "cuwright::preflight::toolkit_torch",
                Exit::Toolchain,
                format!("toolkit {} and torch for CUDA {cuda} do not fit each other", toolkit.nvcc.release()),
            )
            .why(format!("nvcc {} at {} ({})", toolkit.nvcc, toolkit.home, toolkit.origin))
            .why(format!("torch {} at {}; torch refuses another major", torch.version, torch.folder))
            .help(format!("use a toolkit {}.x: set CUDA_HOME to one, or `--cuda {cuda}`", cuda.major)),
        );
    } else if cuda.minor != toolkit.nvcc.minor {
        warnings.push(format!(
            "nvcc {} differs from torch's CUDA {cuda} in the minor release, which torch accepts",
            toolkit.nvcc
        ));
    }
}

fn toolkit_against_host_compiler(toolchain: &Toolchain, found: &mut Vec<Problem>) {
    let (bounds, host) = (toolchain.toolkit.host_bounds, &toolchain.host);
    let (name, limit) = match host.family {
        HostFamily::Gcc => ("gcc", bounds.gcc_max),
        HostFamily::Clang => ("clang", bounds.clang_below.map(|below| below.saturating_sub(1))),
    };
    let Some(limit) = limit.filter(|limit| host.major() > *limit) else { return };
    found.push(
        Problem::new(
            "cuwright::preflight::host_compiler_too_new",
            Exit::Toolchain,
            format!("{name} {} is newer than nvcc {} accepts", host.version, toolchain.toolkit.nvcc),
        )
        .why(format!("{} ({})", host.cxx, host.origin))
        .why(format!("{}/include/crt/host_config.h accepts {name} up to {limit}", toolchain.toolkit.home))
        .help(format!("for this build only: `CC={name}-{limit} CXX={}-{limit} cuwright build …`", plus_plus(name)))
        .help("or choose a newer toolkit with `--cuda`"),
    );
}

fn plus_plus(name: &str) -> &str {
    if name == "gcc" { "g++" } else { "clang++" }
}

fn recipe_ranges(recipe: &Recipe, toolchain: &Toolchain, found: &mut Vec<Problem>) {
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
            found.push(
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
