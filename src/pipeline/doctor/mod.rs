//! What this machine has for building, and what is in the way, as one document. Installs and changes nothing.
//!
//! Invariant: a broken part is reported in its place and never ends the report.

mod parts;
mod recipes;

use serde::Serialize;

use super::{Context, Request};
use crate::compat::{self, SccacheFit};
use crate::domain::arch::{Arch, ArchSet};
use crate::domain::exit::Exit;
use crate::domain::problem::Problems;
use crate::domain::toolchain::Considered;
use crate::domain::version::CudaVersion;
use crate::plan::Inherited;
use crate::probe::gpu;
use crate::report::ErrorMessage;

/// Version of the form.
const SCHEMA: u32 = 1;

/// The whole report.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Doctor {
    /// Version of this form.
    pub schema: u32,
    /// Whether something can be built: every recipe that was named, or a plain one.
    pub can_build: bool,
    /// Driver and GPUs.
    pub gpus: gpu::Report,
    /// Every toolkit and what looks like one.
    pub toolkits: Vec<Considered>,
    /// Every host compiler.
    pub compilers: Vec<Considered>,
    /// Every Python, with its torch.
    pub pythons: Vec<PythonReport>,
    /// Build tools.
    pub tools: Vec<ToolReport>,
    /// Every ptxas.
    pub ptxas: Vec<PtxasReport>,
    /// Cores, memory and limits.
    pub machine: MachineReport,
    /// Disks that builds write to.
    pub disks: Vec<DiskReport>,
    /// What is kept, and how large it is.
    pub caches: Vec<CacheReport>,
    /// Locks of torch's run-time builds.
    pub torch_locks: Vec<LockReport>,
    /// Variables that would change a build.
    pub variables: Vec<Inherited>,
    /// What stands against every build, whatever is built.
    pub problems: Vec<ErrorMessage>,
    /// What would be chosen for each recipe.
    pub recipes: Vec<RecipeReport>,
    /// What may hurt, the gravest first.
    pub findings: Vec<String>,
    #[serde(skip)]
    exit: Exit,
}

/// A Python.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct PythonReport {
    /// The interpreter.
    pub executable: String,
    /// How it was found.
    pub origin: String,
    /// Its version.
    pub version: Option<String>,
    /// Whether its headers are here.
    pub headers: bool,
    /// The torch in it.
    pub torch: Option<TorchReport>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// A torch.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct TorchReport {
    /// Full version.
    pub version: String,
    /// CUDA it was built for.
    pub cuda: Option<String>,
    /// Whether it uses the C++11 ABI.
    pub cxx11_abi: bool,
    /// Archs that its build of extensions accepts.
    pub archs: Vec<String>,
}

/// A build tool.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ToolReport {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: String,
    /// Its version.
    pub version: Option<String>,
    /// What is to be known of it.
    pub note: Option<String>,
}

/// A ptxas.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct PtxasReport {
    /// Where it is.
    pub path: String,
    /// Who uses it.
    pub user: String,
    /// Its CUDA version.
    pub version: Option<String>,
    /// Archs that are needed here and that it does not know.
    pub lacks: Vec<String>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// Cores, memory, limits.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct MachineReport {
    /// Cores that may be used.
    pub cores: u32,
    /// Bytes that can be had without swapping.
    pub available_memory: Option<u64>,
    /// The tightest limit of a control group, in bytes.
    pub group_limit: Option<u64>,
    /// The group that sets it.
    pub group: Option<String>,
    /// Limit of open files.
    pub open_files: Option<u64>,
    /// Limit of processes.
    pub processes: Option<u64>,
    /// Limit of address space, in bytes.
    pub address_space: Option<u64>,
}

/// Room on a disk.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct DiskReport {
    /// What is written there.
    pub what: String,
    /// The folder.
    pub folder: String,
    /// Bytes left.
    pub free: u64,
}

/// A folder of kept files.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct CacheReport {
    /// What is kept.
    pub what: String,
    /// The folder.
    pub folder: String,
    /// Bytes; at least that many where not all were counted.
    pub bytes: u64,
    /// Whether all were counted.
    pub counted: bool,
}

/// A lock of torch.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct LockReport {
    /// The file.
    pub path: String,
    /// Seconds since it was made.
    pub age: u64,
    /// The process that holds it.
    pub holder: Option<String>,
}

/// What would be chosen for a recipe.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct RecipeReport {
    /// What was named.
    pub name: String,
    /// Whether it can be built.
    pub can_build: bool,
    /// What a plan of it would end with.
    #[serde(skip)]
    pub exit: Exit,
    /// Archs that would be built.
    pub archs: Option<String>,
    /// The toolchain in one line.
    pub toolchain: Option<String>,
    /// Why.
    pub why: Vec<String>,
    /// What would be brought first.
    pub missing: Vec<ErrorMessage>,
    /// What is in the way.
    pub problems: Vec<ErrorMessage>,
    /// What may hurt.
    pub warnings: Vec<String>,
}

impl Doctor {
    /// What the process ends with: as a plan would, with the highest code where there are several recipes.
    pub fn exit(&self) -> Exit {
        self.exit.max(self.recipes.iter().map(|recipe| recipe.exit).max().unwrap_or(Exit::Ok))
    }
}

/// Looks at everything. `refused` is what a command that is not there to examine the machine would have stopped on.
pub fn examine(context: &Context<'_>, names: &[String], request: &Request, refused: Option<&Problems>) -> Doctor {
    let env = context.env;
    let found = gpu::detect(env);
    let recipes = recipes::all(context, names, request);
    let can_build = refused.is_none() && recipes.iter().all(|recipe| recipe.can_build);
    let parts = parts::Parts::of(context);
    let needed = recipes.iter().filter_map(|recipe| recipe.archs.as_ref()?.parse::<ArchSet>().ok());
    let needed = needed.fold(found.archs(), |all, archs| all.union(&archs));
    let mut report = Doctor {
        schema: SCHEMA,
        can_build,
        gpus: gpu::Report::from(&found),
        toolkits: parts.toolkits(),
        compilers: parts.compilers(),
        pythons: parts.pythons(),
        tools: parts.tools(),
        ptxas: parts.ptxas(&needed),
        machine: parts::machine(env),
        disks: parts::disks(context),
        caches: parts::caches(context),
        torch_locks: parts::locks(env),
        variables: crate::plan::inherited(None, env, false, false),
        problems: refused.into_iter().flatten().map(ErrorMessage::from).collect(),
        exit: refused.map_or(Exit::Ok, Problems::exit),
        recipes,
        findings: Vec::new(),
    };
    report.findings = findings(&report);
    report
}

fn findings(report: &Doctor) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(error) = report.gpus.error.as_ref().filter(|error| error.code != crate::targets::NO_TARGET) {
        found.push(error.message.clone());
    }
    found.extend(report.gpus.notes.iter().cloned());
    for lock in report.torch_locks.iter().filter(|lock| lock.holder.is_none()) {
        found.push(format!("nobody holds {}: torch waits for it without end; remove it", lock.path));
    }
    for ptxas in &report.ptxas {
        if let (false, Some(version)) = (ptxas.lacks.is_empty() || has_sibling(report, ptxas), &ptxas.version) {
            let lacks = ptxas.lacks.join(", ");
            let need =
                ptxas.lacks.iter().filter_map(|arch| compat::arch_span(arch.parse().ok()?)).map(|span| span.first);
            let need = need.max().map(|need| format!(", which needs CUDA {need}")).unwrap_or_default();
            let mend = match better(report, &ptxas.lacks).filter(|_| ptxas.user.starts_with("triton")) {
                Some(path) => format!("; TRITON_PTXAS_PATH={path} helps triton"),
                None => String::new(),
            };
            found.push(format!("{} is of CUDA {version} and does not know {lacks}{need}{mend}", ptxas.path));
        }
    }
    for disk in report.disks.iter().filter(|disk| disk.free < 2 << 30) {
        found.push(format!("only {} MiB are left for {} ({})", disk.free >> 20, disk.what, disk.folder));
    }
    if let Some(files) = report.machine.open_files.filter(|files| *files < 1024) {
        found.push(format!("only {files} files may be open at once: `ulimit -n 4096` before a large build"));
    }
    found.extend(report.variables.iter().filter(|one| one.fate == crate::plan::Fate::Refused).map(ToString::to_string));
    let notes = report.tools.iter().filter_map(|tool| Some(format!("{} {}", tool.name, tool.note.as_ref()?)));
    found.extend(notes);
    found
}

/// Newer triton has a second ptxas beside the first, for the archs that the first does not know.
fn has_sibling(report: &Doctor, ptxas: &PtxasReport) -> bool {
    let sibling = format!("{}-blackwell", ptxas.path);
    report.ptxas.iter().any(|other| other.path == sibling && ptxas.lacks.iter().all(|arch| !other.lacks.contains(arch)))
}

/// A ptxas here that knows all of `archs`.
fn better<'a>(report: &'a Doctor, archs: &[String]) -> Option<&'a str> {
    let knows = |ptxas: &&PtxasReport| {
        ptxas.version.is_some() && ptxas.problem.is_none() && archs.iter().all(|arch| !ptxas.lacks.contains(arch))
    };
    report.ptxas.iter().find(knows).map(|ptxas| ptxas.path.as_str())
}

/// What an sccache means for the toolkits that are here.
fn sccache_note(version: &str, toolkits: &[CudaVersion]) -> Option<String> {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().ok());
    let release = (numbers.next()??, numbers.next()??);
    let mut notes: Vec<String> = toolkits
        .iter()
        .filter_map(|cuda| {
            let release_of = cuda.release();
            match compat::sccache_fit(release, *cuda) {
                SccacheFit::Fits => None,
                SccacheFit::Partly(why) => Some(format!("with CUDA {release_of} {why}")),
                SccacheFit::Fails(why) => Some(format!("does not go with CUDA {release_of}: {why}")),
                SccacheFit::Unknown => Some(format!("was not tried with CUDA {release_of}")),
            }
        })
        .collect();
    notes.sort();
    notes.dedup();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The archs of `needed` that a release cannot compile for.
fn lacks(version: CudaVersion, needed: &ArchSet) -> Vec<String> {
    let row = compat::toolkit(version);
    let knows = |arch: Arch| row.is_none_or(|row| row.knows(arch));
    needed.iter().map(|(arch, _)| arch).filter(|arch| !knows(*arch)).map(|arch| arch.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_what_the_code_says() {
        crate::schema_check::<Doctor>("schemas/doctor.schema.json");
    }

    #[test]
    fn an_older_assembler_lacks_newer_archs() {
        let needed: ArchSet = "9.0;12.1".parse().unwrap();
        assert_eq!(lacks(CudaVersion::new(12, 8), &needed), ["12.1"]);
        assert!(lacks(CudaVersion::new(12, 9), &needed).is_empty());
        assert!(lacks(CudaVersion::new(99, 0), &needed).is_empty(), "a release that no table knows is not judged");
    }

    #[test]
    fn sccache_is_judged_for_each_toolkit() {
        let kits = [CudaVersion::new(13, 0), CudaVersion::new(13, 3)];
        assert!(sccache_note("0.16.0", &kits).unwrap().contains("13.3"));
        assert_eq!(sccache_note("0.16.0", &kits[..1]), None);
        assert!(sccache_note("0.19.0", &kits).unwrap().contains("PTX"));
        assert_eq!(sccache_note("new", &kits), None);
    }
}
