//! From what was asked for to an arch set, with the reason for every member.
//!
//! The first source that names something wins: `--arch`, `--gpu`, `--profile`, the recipe, an inherited variable, this
//! machine's GPUs. Words are resolved to numbers here and go no further. Pure: detection comes in as a closure.

mod explain;
mod resolve;

use crate::compat::support::{self, Compiler};
use crate::domain::arch::{ArchSet, Capability, Form, Origin};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};

pub use explain::{Verdict, explain};
pub use resolve::{ambiguous_gpu, gpus, unknown_gpu};

/// Code of "nothing names a target".
pub const NO_TARGET: &str = "cuwright::target::none";
/// Code of a list that was given and holds nothing.
pub const EMPTY: &str = "cuwright::target::empty_list";
/// Code of a word that looks at this machine, where that makes no sense.
pub const MACHINE_WORD: &str = "cuwright::target::machine_word";
/// Code of a word that only a toolkit can expand.
pub const NEEDS_TOOLKIT: &str = "cuwright::target::all_needs_toolkit";

/// What was asked for, as plain text; empty lists ask for nothing.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// Values of `--arch`.
    pub arch: &'a [String],
    /// How the user knows that list, if not as `--arch`.
    pub arch_name: Option<&'a str>,
    /// Values of `--gpu`.
    pub gpus: &'a [String],
    /// The recipe's profile that `--profile` chose.
    pub profile: Option<Listed<'a>>,
    /// The recipe's own targets.
    pub recipe: Option<Listed<'a>>,
    /// An arch variable of the environment, name and value.
    pub inherited: Option<(&'a str, &'a str)>,
}

impl<'a> Request<'a> {
    fn arch_name(&self) -> &'a str {
        self.arch_name.unwrap_or("--arch")
    }

    /// The first source that names something.
    fn named(&self) -> Named<'_, 'a> {
        // A recipe without lists asks for nothing.
        let holds = |listed: &&Listed<'_>| !listed.arch.is_empty() || !listed.gpus.is_empty();
        let listed = self.profile.as_ref().or(self.recipe.as_ref().filter(holds));
        let inherited = self.inherited.filter(|(_, value)| !value.trim().is_empty());
        match (listed, inherited) {
            _ if !self.arch.is_empty() => Named::Arch,
            _ if !self.gpus.is_empty() => Named::Gpus,
            (Some(listed), _) => Named::Listed(listed),
            (None, Some((name, value))) => Named::Inherited(name, value),
            (None, None) => Named::Machine,
        }
    }
}

/// What names the targets.
enum Named<'r, 'a> {
    Arch,
    Gpus,
    Listed(&'r Listed<'a>),
    Inherited(&'a str, &'a str),
    Machine,
}

/// Targets that a recipe lists.
#[derive(Debug, Clone)]
pub struct Listed<'a> {
    /// What to call it: `profile prod of mmcv.toml`.
    pub name: &'a str,
    /// Arch items.
    pub arch: &'a [String],
    /// GPU names.
    pub gpus: &'a [String],
}

/// What helps to resolve words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    /// The toolkit, if one is chosen: expands `all` and `all-major`.
    pub compiler: Option<Compiler<'a>>,
    /// The torch version, if one is chosen: expands family names, and `all` leaves out what it refuses.
    pub torch: Option<&'a str>,
    /// What that torch itself says it accepts; without it the table is asked.
    pub torch_accepts: Option<&'a [String]>,
}

/// The GPUs of this machine, as far as selecting needs to know them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detected {
    /// The usable GPUs: capability and how it is known, such as `RTX 3090, from NVML`.
    pub gpus: Vec<(Capability, String)>,
    /// What kept GPUs from being found or used, for an error.
    pub notes: Vec<String>,
    /// A fault that explains why there are none, with its own mend.
    pub problem: Option<Problem>,
}

/// The targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The set.
    pub set: ArchSet,
    /// Why it is this set, a line per source or member.
    pub why: Vec<String>,
    /// What the user should know although it works.
    pub warnings: Vec<String>,
    /// Whether the set is that of an inherited variable.
    pub inherited: bool,
}

/// Chooses the targets. `detect` is called only if the machine's GPUs matter.
pub fn select(
    request: &Request<'_>,
    facts: Facts<'_>,
    mut detect: impl FnMut() -> Detected,
) -> Result<Selected, Problems> {
    let mut warnings = ignored(request);
    let mut resolver =
        resolve::Resolver { facts, detect: &mut detect, why: Vec::new(), warnings: Vec::new(), problems: Vec::new() };
    if !request.arch.is_empty() {
        // Ignored, but a name that nobody knows is a mistake all the same.
        resolver.gpus(&Origin::argument("--gpu"), request.gpus);
        resolver.why.clear();
    }
    let named = request.named();
    let set = match &named {
        Named::Arch => resolver.lists(&Origin::argument(request.arch_name()), request.arch),
        Named::Gpus => resolver.gpus(&Origin::argument("--gpu"), request.gpus),
        Named::Listed(listed) => {
            let origin = Origin::recipe(listed.name);
            let archs = resolver.lists(&origin, listed.arch);
            archs.union(&resolver.gpus(&origin, listed.gpus))
        }
        Named::Inherited(name, value) => {
            warnings.push(format!("the arch list comes from the environment variable {name}"));
            resolver.list(&Origin::argument(*name), value)
        }
        Named::Machine => resolver.machine(),
    };
    let resolve::Resolver { why, warnings: left_out, problems, .. } = resolver;
    Problems::check(problems)?;
    if set.is_empty() {
        return Err(empty(request, &named).into());
    }
    warnings.extend(left_out);
    warnings.extend(support::unknown(&set));
    Ok(Selected { set, why, warnings, inherited: matches!(named, Named::Inherited(..)) })
}

/// Reads a list that may hold everything but the words that need this machine: literal archs, families, GPU names.
///
/// # Errors
/// An item that names no arch, or `native`, which is no expectation.
pub fn literal(origin: &str, text: &str) -> Result<ArchSet, Problems> {
    let asked = [text.to_owned()];
    let request = Request { arch: &asked, arch_name: Some(origin), ..Request::default() };
    let nothing = || Detected {
        problem: Some(
            Problem::new(MACHINE_WORD, Exit::Usage, format!("{origin} takes no word that depends on this machine"))
                .why("an expectation must say the same thing everywhere")
                .help("name the archs, such as `8.6;9.0+PTX`; `cuwright detect` tells those of this machine"),
        ),
        ..Detected::default()
    };
    Ok(select(&request, Facts::default(), nothing)?.set)
}

fn ignored(request: &Request<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let arch = !request.arch.is_empty();
    if arch && !request.gpus.is_empty() {
        warnings.push(format!("--gpu is ignored: {} names the targets", request.arch_name()));
    }
    if (arch || !request.gpus.is_empty()) && request.profile.is_some() {
        let winner = if arch { request.arch_name() } else { "--gpu" };
        warnings.push(format!("--profile is ignored: {winner} names the targets"));
    }
    warnings
}

/// A list was given and holds nothing.
fn empty(request: &Request<'_>, named: &Named<'_, '_>) -> Problem {
    let (origin, exit) = match named {
        Named::Arch => (request.arch_name(), Exit::Usage),
        Named::Gpus => ("--gpu", Exit::Usage),
        Named::Listed(listed) => (listed.name, Exit::Recipe),
        Named::Inherited(name, _) => (*name, Exit::Usage),
        Named::Machine => ("the list", Exit::Usage),
    };
    let problem = Problem::new(EMPTY, exit, format!("{origin} is given and names no target"));
    match named {
        Named::Inherited(name, value) => problem
            .why(format!("the environment has {name}={value}"))
            .help(format!("unset {name}, or put archs such as `8.6;9.0+PTX` into it")),
        _ => problem.help("name archs such as `8.6;9.0+PTX`, or leave it out to build for the GPUs of this machine"),
    }
}

/// No list and no GPU: says what was looked at and the three ways to name targets.
pub fn no_target(detected: &Detected) -> Problem {
    let problem = Problem::new(NO_TARGET, Exit::NoTarget, "no GPU is known here and no target is named");
    let problem = detected.notes.iter().fold(problem, Problem::why);
    problem
        .help("name archs: `--arch \"8.6;9.0+PTX\"`")
        .help("or name GPUs: `--gpu \"RTX 4090\" --gpu H100`")
        .help("or list them in the recipe: `[targets] arch = [\"8.6\", \"9.0+PTX\"]`, or a profile with `--profile`")
        .help("nvcc needs no GPU: any arch can be built anywhere")
}

/// Detected GPUs as targets: machine code for each, and PTX of the highest so that a later card can start.
pub fn of_detected(detected: &Detected) -> ArchSet {
    let archs = detected.gpus.iter().map(|(capability, _)| (crate::domain::arch::Arch::plain(*capability), Form::SASS));
    archs.collect::<ArchSet>().with_highest_ptx()
}

#[cfg(test)]
mod tests;
