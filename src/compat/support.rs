//! Whether a toolkit and a torch can build for an arch set, and what to do where they cannot.
//!
//! Everything wrong is reported at once: archs that share a cause share a problem. What is unknown to every table is a
//! warning and works, since tables are always older than hardware.

use super::available::{Available, get};
use super::retired::retired;
use super::rules::THOR;
use super::toolkits::{self, Span, arch_span, toolkit};
use super::torch::torch;
use crate::domain::arch::{Arch, ArchSet, Capability, Form, Variant};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::version::CudaVersion;

/// Code of an arch that a tool cannot build for.
pub const UNSUPPORTED: &str = "cuwright::target::arch_unsupported";

/// The toolkit that would compile.
#[derive(Debug, Clone, Copy)]
pub struct Compiler<'a> {
    /// Its version.
    pub version: CudaVersion,
    /// What `nvcc --list-gpu-code` said; without it the table is asked.
    pub gpu_codes: Option<&'a [String]>,
}

impl Compiler<'_> {
    /// A release that is only asked about.
    pub fn release(version: CudaVersion) -> Self {
        Self { version, gpu_codes: None }
    }

    /// Whether it targets `arch`; `None` where neither it nor the table can tell.
    pub fn knows(&self, arch: Arch) -> Option<bool> {
        let row = toolkit(self.version);
        if let Some(codes) = self.gpu_codes {
            // nvcc lists plain names only, so a variant counts if its number is listed and the table does not deny it.
            let listed = codes.contains(&arch.sm());
            let number = codes.contains(&Arch::plain(arch.capability).sm());
            return Some(listed || (number && row.is_none_or(|row| row.knows(arch))));
        }
        row.map(|row| row.knows(arch))
    }

    /// The archs without suffix that it targets, in order.
    pub fn plain(&self) -> Vec<Arch> {
        let mut archs: Vec<Arch> = match self.gpu_codes {
            Some(codes) => codes.iter().filter_map(|code| Arch::from_code(code)).collect(),
            None => toolkit(self.version).map(|row| row.plain().collect()).unwrap_or_default(),
        };
        archs.retain(|arch| arch.variant == Variant::Plain);
        archs.sort_unstable();
        archs.dedup();
        archs
    }
}

/// Warnings about archs that no table knows.
pub fn unknown(set: &ArchSet) -> Vec<String> {
    set.iter()
        .filter(|(arch, _)| arch_span(*arch).is_none() && retired(arch.capability).is_none())
        .map(|(arch, _)| format!("{arch} is in no table of this cuwright and is used as written"))
        .collect()
}

/// What of `set` the compiler cannot build, one problem per cause.
pub fn against_compiler(set: &ArchSet, compiler: Compiler<'_>) -> Vec<Problem> {
    against_compiler_here(set, compiler, &[], None)
}

/// The same, on a machine with these GPUs, which tell what was meant, and these toolkits, which tell what can be done.
pub fn against_compiler_here(
    set: &ArchSet,
    compiler: Compiler<'_>,
    gpus: &[Capability],
    available: Option<&Available>,
) -> Vec<Problem> {
    let mut refused: Vec<Arch> =
        set.iter().map(|(arch, _)| arch).filter(|arch| compiler.knows(*arch) == Some(false)).collect();
    let mut problems = Vec::new();
    if let Some(at) = refused.iter().position(|arch| is_cuda_version(*arch, compiler.version)) {
        problems.push(cuda_version(refused.remove(at), compiler, gpus));
    }
    problems.extend(set.iter().filter_map(|(arch, form)| clash(set, arch, form)));
    let (renamed, others): (Vec<Arch>, Vec<Arch>) = refused.iter().partition(|arch| is_thor(arch.capability));
    problems.extend(renamed.first().map(|arch| thor(*arch, compiler.version)));
    let release = compiler.version.release();
    let span = |arch: &&Arch| arch_span(**arch);
    let dropped: Vec<Arch> = others
        .iter()
        .filter(|arch| span(arch).and_then(|s| s.last).is_some_and(|last| last < release))
        .copied()
        .collect();
    let early: Vec<Arch> = others.iter().filter(|arch| !dropped.contains(arch)).copied().collect();
    if !early.is_empty() {
        problems.push(too_old(set, &early, compiler, available));
    }
    if !dropped.is_empty() {
        problems.push(too_new(set, &dropped, compiler, available));
    }
    problems
}

/// Which of `archs` a torch refuses: by its own list where that is at hand, else by the table, else none.
pub fn refused_by_torch(archs: &[Arch], version: Option<&str>, accepted: Option<&[String]>) -> Vec<Arch> {
    let known = |arch: Arch| match (accepted, version.and_then(torch)) {
        (Some(list), _) => list.contains(&arch.to_string()),
        (None, Some(row)) => row.accepts(arch),
        (None, None) => true,
    };
    archs.iter().copied().filter(|arch| !known(*arch)).collect()
}

/// What of `set` the torch's own list does not know.
pub fn against_torch(set: &ArchSet, version: &str, accepted: Option<&[String]>) -> Vec<Problem> {
    let archs: Vec<Arch> = set.iter().map(|(arch, _)| arch).collect();
    let refused = refused_by_torch(&archs, Some(version), accepted);
    if refused.is_empty() {
        return Vec::new();
    }
    let message = format!("torch {version} does not accept {}", names(&refused));
    let mut problem = Problem::new(UNSUPPORTED, Exit::Toolchain, message)
        .why("torch checks its arch list against a list of its own, whatever nvcc can do");
    for arch in &refused {
        let takers: Vec<&str> =
            super::torch_releases().iter().filter(|row| row.accepts(*arch)).map(|row| row.version).collect();
        let minor = |version: &&str| version.rsplit_once('.').map_or_else(String::new, |(minor, _)| minor.to_owned());
        problem = match (takers.first(), takers.last()) {
            (Some(first), Some(last)) if first == last => {
                problem.help(format!("torch {} accepts {arch}", minor(first)))
            }
            (Some(first), Some(last)) => {
                problem.help(format!("torch {} to {} accepts {arch}", minor(first), minor(last)))
            }
            _ => problem.help(format!("no torch in the table accepts {arch}")),
        };
    }
    if let Some(renamed) = refused.iter().find(|arch| arch.capability == THOR.0) {
        let new = Arch { capability: THOR.1, variant: renamed.variant };
        problem = problem.help(format!("with CUDA {} or newer and torch for it, say {new}", THOR.2));
    }
    vec![problem.help("or give nvcc its -gencode flags directly: torch adds none where one is present")]
}

/// nvcc stops on machine code for an arch in its plain and its family form at once (asked of nvcc 13.0); `a` is fine.
fn clash(set: &ArchSet, arch: Arch, form: Form) -> Option<Problem> {
    let plain = arch.with(Variant::Plain);
    let both = arch.variant == Variant::F && form.sass && set.get(plain).is_some_and(|form| form.sass);
    both.then(|| {
        Problem::new(UNSUPPORTED, Exit::Toolchain, format!("nvcc cannot build {plain} and {arch} into one file"))
            .why(format!("it names both images {} and stops", arch.sm()))
            .help(format!("keep one: {arch} for its family's features, {plain} for code that runs on later parts too"))
    })
}

/// An arch that equals the toolkit's version is what a wrong answer to a prompt looks like.
fn is_cuda_version(arch: Arch, cuda: CudaVersion) -> bool {
    u16::from(arch.capability.major) == cuda.major && u16::from(arch.capability.minor) == cuda.minor
}

fn cuda_version(arch: Arch, compiler: Compiler<'_>, gpus: &[Capability]) -> Problem {
    let message = format!("{arch} is the version of this CUDA toolkit, not a compute capability");
    let mut problem = Problem::new(UNSUPPORTED, Exit::Toolchain, message);
    if let Some((_, last)) = reach(compiler) {
        problem = problem.why(format!("nvcc {} ends at {last}", compiler.version));
    }
    match gpus {
        [] => problem.help("name the compute capability of the GPU: `cuwright detect` tells it"),
        gpus => {
            let set: ArchSet = gpus.iter().map(|gpu| (Arch::plain(*gpu), Form::SASS)).collect();
            problem.help(format!("the GPU here is {set}: say `{set}` instead"))
        }
    }
}

/// `6.0 and 7.0`.
fn names(archs: &[Arch]) -> String {
    let names: Vec<String> = archs.iter().map(Arch::to_string).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn is_thor(capability: Capability) -> bool {
    capability == THOR.0 || capability == THOR.1
}

fn thor(arch: Arch, version: CudaVersion) -> Problem {
    let (old, new, since) = THOR;
    let message = format!("nvcc {version} does not know {arch}");
    let problem = Problem::new(UNSUPPORTED, Exit::Toolchain, message);
    let spans = |capability| arch_span(Arch { capability, variant: arch.variant });
    let with = |capability| Arch { capability, variant: arch.variant };
    if arch.capability == old && version.release() >= since {
        problem.why(format!("{old} was renamed to {new} in CUDA {since}")).help(format!("say {}", with(new)))
    } else if arch.capability == new && spans(old).is_some_and(|span| span.first <= version.release()) {
        problem
            .why(format!("Thor is {old} before CUDA {since}"))
            .help(format!("say {}, or use CUDA {since}", with(old)))
    } else {
        let first = spans(old).map_or(since, |span| span.first);
        problem
            .why(format!("Thor is {old} from CUDA {first} on and {new} from CUDA {since} on"))
            .help(format!("use CUDA {since} or newer and say {}", with(new)))
    }
}

fn reach(compiler: Compiler<'_>) -> Option<(Arch, Arch)> {
    let plain = compiler.plain();
    Some((*plain.first()?, *plain.last()?))
}

fn too_old(set: &ArchSet, early: &[Arch], compiler: Compiler<'_>, available: Option<&Available>) -> Problem {
    let message = format!("nvcc {} cannot compile for {}", compiler.version, names(early));
    let mut problem = Problem::new(UNSUPPORTED, Exit::Toolchain, message);
    // Where it ends says nothing of an arch that nobody knows and that is not beyond that.
    let beyond = |last: Arch| early.iter().any(|arch| arch_span(*arch).is_some() || arch.capability > last.capability);
    if let Some((_, last)) = reach(compiler).filter(|(_, last)| beyond(*last)) {
        problem = problem.why(format!("CUDA {} ends at {last}", compiler.version.release()));
    }
    let firsts: Vec<Option<Span>> = early.iter().map(|arch| arch_span(*arch)).collect();
    for (arch, span) in early.iter().zip(&firsts) {
        problem = match span {
            Some(span) => problem.why(format!("{arch} needs CUDA {} or newer", span.first)),
            None => match retired(arch.capability) {
                Some(old) => {
                    problem.why(format!("{arch} is {}: CUDA {} was the last release for it", old.generation, old.last))
                }
                None => problem.why(format!("no toolkit in the table knows {arch}")),
            },
        };
    }
    if let Some(need) = firsts.iter().flatten().map(|span| span.first).max() {
        let general = format!("build with CUDA {need} or newer (`--cuda {need}`)");
        let fits = |version: CudaVersion| {
            version >= need && set.iter().all(|(arch, _)| Compiler::release(version).knows(arch) != Some(false))
        };
        problem = problem.help(get(available, compiler.version.major, &format!("{need} or newer"), general, fits));
    }
    let unknown = |arch: &&Arch| arch_span(**arch).is_none() && retired(arch.capability).is_none();
    for arch in early.iter().filter(unknown) {
        let near: Vec<Arch> = around(*arch, compiler).into_iter().flatten().collect();
        problem = match near.as_slice() {
            [] => problem,
            near => {
                let near = names(near).replace(" and ", " or ");
                problem.help(format!("or say what is meant: nearest to {arch} is {near}"))
            }
        };
    }
    let rest = set.filter(|arch, _| !early.contains(&arch));
    if rest.is_empty() {
        // A driver compiles no PTX for a GPU before the PTX's own.
        let below = early.first().and_then(|lowest| around(*lowest, compiler)[0]);
        return match below {
            Some(last) => problem.help(format!("or build `{last}+PTX`, which the driver compiles at first start")),
            None => problem,
        };
    }
    let had_ptx = early.iter().any(|arch| set.get(*arch).is_some_and(|form| form.ptx));
    let rest = if had_ptx { rest.with_highest_ptx() } else { rest };
    problem.help(format!("or build `{rest}`"))
}

/// The plain archs next to `arch` that the compiler targets: the one below and the one above.
fn around(arch: Arch, compiler: Compiler<'_>) -> [Option<Arch>; 2] {
    let (below, above): (Vec<Arch>, Vec<Arch>) =
        compiler.plain().into_iter().partition(|known| known.capability <= arch.capability);
    [below.last().copied(), above.first().copied()]
}

fn too_new(set: &ArchSet, dropped: &[Arch], compiler: Compiler<'_>, available: Option<&Available>) -> Problem {
    let message = format!("nvcc {} no longer compiles for {}", compiler.version, names(dropped));
    let mut problem = Problem::new(UNSUPPORTED, Exit::Toolchain, message);
    if let Some((first, _)) = reach(compiler) {
        problem = problem.why(format!("CUDA {} starts at {first}", compiler.version.release()));
    }
    let last = dropped.iter().filter_map(|arch| arch_span(*arch)?.last).min();
    if let Some(last) = last {
        let plural = if dropped.len() == 1 { "its last release is" } else { "their last common release is" };
        problem = problem.why(format!("{plural} CUDA {last}"));
    }
    let rest = set.filter(|arch, _| !dropped.contains(&arch));
    if !rest.is_empty() {
        problem = problem.help(format!("remove them and build `{rest}`").replace("them", pronoun(dropped)));
    }
    let Some(last) = last else { return problem };
    let general = format!("build with CUDA {last} or older if those GPUs are needed (`--cuda {last}`)");
    let fits = |version: CudaVersion| {
        version <= last && set.iter().all(|(arch, _)| Compiler::release(version).knows(arch) != Some(false))
    };
    problem.help(format!("or {}", get(available, compiler.version.major, &format!("{last} or older"), general, fits)))
}

fn pronoun(archs: &[Arch]) -> &'static str {
    if archs.len() == 1 { "it" } else { "them" }
}

/// Whether the table can judge a release; a release newer than the table is judged by the toolkit itself only.
pub fn judged(version: CudaVersion) -> Result<(), String> {
    if toolkit(version).is_some() {
        return Ok(());
    }
    let newest = toolkits::newest().map(|row| row.release.to_string()).unwrap_or_default();
    Err(format!(
        "CUDA {} is not in the table, which ends at {newest}: archs are not checked against it",
        version.release()
    ))
}

#[cfg(test)]
mod tests;
