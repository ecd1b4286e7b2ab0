//! No toolchain: what is here, what wheels cannot bring, and what is possible instead, in one message.

use camino::Utf8Path;

use super::kits::{Survey, not_usable, of_toolkit};
use super::{Request, Trail, World, told, within};
use crate::compat;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::toolchain::{Considered, Python, Torch};
use crate::domain::version::CudaVersion;
use crate::provision::combinations::{self, Combination, OLDEST_NVCC};

/// How many rejected candidates a message shows; `doctor` shows all.
const SHOWN: usize = 8;

pub(super) fn has_headers(python: &Python) -> Result<(), Problem> {
    if python.headers.is_some() {
        return Ok(());
    }
    let message = format!("Python {} has no development headers (Python.h)", python.version);
    Err(Problem::new("cuwright::probe::python_headers", Exit::Toolchain, message)
        .why(format!("{} ({})", python.executable, python.origin))
        .help("Debian, Ubuntu: apt-get install python3-dev")
        .help("Fedora, RHEL: dnf install python3-devel")
        .help("or name another Python with `--python`"))
}

pub(super) fn no_python(request: &Request, trail: &Trail) -> Problem {
    let message = format!("no Python here is within `{}`", request.python_range);
    let problem = Problem::new("cuwright::probe::python_missing", Exit::Toolchain, message);
    trail.notes.iter().fold(problem, Problem::why).help("name one with `--python`, or widen `python` in the recipe")
}

/// Neither the environment nor wheels have what was asked for.
pub(super) fn no_wheels(world: &World<'_>, first: &Python, survey: &Survey, trail: &Trail) -> Problem {
    let request = world.request;
    let mut problem = if asks_for_old_cuda(request) {
        old_cuda(request)
    } else {
        let refused = combinations::choose(&world.wanted(), &first.version).err();
        refused.unwrap_or_else(|| no_python(request, trail))
    };
    problem = with_places(problem, survey, trail);
    if asks_for_old_cuda(request) {
        return instead(problem, request, first, survey);
    }
    problem.help("or start cuwright in an environment that holds a fitting torch, with CUDA_HOME at its toolkit")
}

/// A range that only releases without nvcc in wheels satisfy.
fn asks_for_old_cuda(request: &Request) -> bool {
    let inside = |version: CudaVersion| within(&request.cuda, &version.release().to_string());
    let known = compat::toolkits().iter().map(|toolkit| toolkit.release);
    let (old, new): (Vec<_>, Vec<_>) = known.filter(|release| inside(*release)).partition(|r| *r < OLDEST_NVCC);
    !old.is_empty() && new.is_empty()
}

fn old_cuda(request: &Request) -> Problem {
    let message = format!("CUDA {} is not here, and wheels do not have it", combinations::shown(&request.cuda));
    Problem::new("cuwright::provision::no_nvcc_in_wheels", Exit::Toolchain, message)
        .why(format!("wheels hold nvcc from CUDA {OLDEST_NVCC} on; an older toolkit must be installed by you"))
}

/// What is here, the toolkits before the Pythons, and no more than can be read.
fn with_places(problem: Problem, survey: &Survey, trail: &Trail) -> Problem {
    let here = survey.places.iter().map(|place| match place {
        Ok(found) => of_toolkit(found, false, "is here".to_owned()),
        Err(rejected) => not_usable(rejected),
    });
    let judged = |one: &Considered| trail.considered.iter().any(|known| known.place == one.place);
    let here: Vec<Considered> = here.filter(|one| !judged(one)).collect();
    // A Python that does not even run explains nothing here.
    let telling = trail.considered.iter().filter(|one| one.what != "python" || one.version.is_some());
    let mut lines = told::lines(here.iter().chain(telling));
    if survey.places.is_empty() {
        lines.insert(0, "no toolkit is on this machine".to_owned());
    }
    let more = lines.len().saturating_sub(SHOWN);
    let problem = lines.into_iter().take(SHOWN).fold(problem, Problem::why);
    if more == 0 { problem } else { problem.why(format!("{more} more were looked at: `cuwright doctor` lists them")) }
}

fn instead(mut problem: Problem, request: &Request, python: &Python, survey: &Survey) -> Problem {
    let of_wheels = |row: &Combination| within(&request.torch, &row.torch) && within(&row.python, &python.version);
    let row = combinations::rows().unwrap_or_default().into_iter().find(of_wheels);
    if let Some(row) = row {
        problem = problem.help(format!(
            "let wheels bring torch {} with CUDA {}: `--cuda {}`, within what the recipe allows",
            row.torch, row.cuda, row.cuda
        ));
    }
    let newest = survey.usable().map(|found| &found.toolkit).max_by_key(|kit| kit.nvcc);
    if let Some(kit) = newest {
        let release = kit.nvcc.release();
        problem = problem.help(format!(
            "or use CUDA {} at {} (`--cuda {release}`) with a Python that holds torch for CUDA {}.x (`--python`)",
            kit.nvcc, kit.home, release.major
        ));
    }
    problem.help(format!(
        "or install that toolkit, set CUDA_HOME to it, and name a Python with a torch for CUDA {} by `--python`",
        majors(request)
    ))
}

/// The majors of the asked range, such as `12.x`.
fn majors(request: &Request) -> String {
    let inside = compat::toolkits().iter().map(|toolkit| toolkit.release);
    let inside = inside.filter(|release| within(&request.cuda, &release.to_string()));
    let mut majors: Vec<String> = inside.map(|release| format!("{}.x", release.major)).collect();
    majors.dedup();
    majors.join(" or ")
}

/// The torch of the active environment is passed over, so the wheel will not load there.
pub(super) fn unused_torch(world: &World<'_>, python: &Python, torch: &Torch, survey: &Survey) -> Option<String> {
    let cuda = torch.cuda?;
    let without: Vec<String> = survey
        .places
        .iter()
        .filter_map(|place| place.as_ref().err())
        .filter(|rejected| rejected.reason.contains("runtime"))
        .map(|rejected| format!("{} {}", rejected.candidate.home, rejected.reason))
        .collect();
    let seen = if without.is_empty() { String::new() } else { format!(" ({})", without.join("; ")) };
    let driver = Utf8Path::new("/proc/driver/nvidia/version").exists();
    let driver = if driver { "; the CUDA version of nvidia-smi is the driver's, not a toolkit" } else { "" };
    let wheels = if cuda.release() < OLDEST_NVCC {
        format!("wheels hold nvcc from CUDA {OLDEST_NVCC} on")
    } else {
        format!("`{}` excludes it", world.request.cuda)
    };
    Some(format!(
        "torch {} of {} is not used, and the wheel will not load beside it: no nvcc of CUDA {}.x is here{seen}, and \
         {wheels}{driver}. Install CUDA {cuda} and set CUDA_HOME to it to build for that torch",
        torch.version, python.executable, cuda.major
    ))
}
