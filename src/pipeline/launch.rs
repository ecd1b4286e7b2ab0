//! Joins a build and the launcher: stand-ins in its folder, a place at the coordinator, and what both tell afterwards.
//!
//! A launcher that cannot be put in place is a warning, and the build goes on without it.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use globset::{Glob, GlobMatcher};

use super::prepare::Prepared;
use super::{Context, Request};
use crate::domain::arch::ArchSet;
use crate::domain::command::CommandSpec;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::launcher::{Coordinator, Costs, Limits, Placement, Status, Tools, Unit, UnitSpec};
use crate::plan::jobs::Bound;
use crate::recipe::size::ByteSize;
use crate::recipe::{Backend, Heavy};
use crate::report::timeline::Timeline;
use crate::report::{EffectiveSources, Stage, timings};
use crate::sys::{Env, env_vars as vars, exec, files, machine, process};

/// Variables that CMake takes its launchers from.
const COMPILER_LAUNCHERS: [&str; 3] =
    ["CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_CUDA_COMPILER_LAUNCHER"];

/// The coordinator of a whole run, started by the first build that needs it.
#[derive(Debug)]
pub struct Launcher {
    limits: Limits,
    off: bool,
    coordinator: OnceLock<Result<Coordinator, String>>,
}

impl Launcher {
    /// For what `request` and the user's limit allow.
    pub fn new(request: &Request, jobs: Bound) -> Self {
        let limits = Limits { cores: jobs.cores(machine::cores()), memory: None };
        Self { limits, off: request.no_launcher, coordinator: OnceLock::new() }
    }

    /// Puts the launcher into a build's folder.
    pub fn place(&self, context: &Context<'_>, unit: &Prepared, root: &Utf8Path, source: &Utf8Path) -> Option<Placed> {
        // Bazel's server starts compilers in sandboxes of its own, and holds its own limit.
        if self.off || unit.recipe.build.backend == Backend::Bazel {
            return None;
        }
        let placed = self.try_place(context, unit, root, source);
        placed.map_err(|why| context.warn(&unit.recipe.name, format!("compilers run without the launcher: {why}"))).ok()
    }

    fn try_place(
        &self,
        context: &Context<'_>,
        unit: &Prepared,
        root: &Utf8Path,
        source: &Utf8Path,
    ) -> Result<Placed, String> {
        let backend = unit.recipe.build.backend;
        let start = || Coordinator::start(self.limits, context.env).map_err(|error| error.to_string());
        let coordinator = self.coordinator.get_or_init(start).as_ref().map_err(Clone::clone)?;
        let program = exec::own_path().ok_or("the file of cuwright itself is gone")?;
        let folder = root.join("launch");
        let (nvcc, host) = (unit.toolchain.toolkit.home.join("bin/nvcc"), &unit.toolchain.host);
        let tools = Tools { nvcc: &nvcc, cc: &host.cc, cxx: &host.cxx };
        let path = unit.environment.variables.get(vars::PATH).map_or("", String::as_str);
        let placement = Placement::make(&folder, &program, tools, path).map_err(|error| error.to_string())?;
        let toolkit = unit.toolchain.toolkit.nvcc.to_string();
        let one_by_one = without_ninja(unit, source);
        let python = matches!(backend, Backend::SetupPy | Backend::Pyproject);
        let ahead = python && unit.recipe.build.compile_ahead.unwrap_or(one_by_one);
        let spec = UnitSpec {
            root: folder,
            source: source.canonicalize_utf8().unwrap_or_else(|_| source.to_owned()),
            costs: Costs::load(context.cache_root, &unit.recipe.name, &toolkit),
            memory: unit.recipe.build.memory_per_job.0,
            heavy: unit.recipe.build.heavy.iter().filter_map(matcher).collect(),
            ahead,
        };
        if ahead {
            placement.archivers(&program, path).map_err(|error| error.to_string())?;
        }
        let old = release(&unit.toolchain.torch.version) < Some((2, 1));
        let shadow = (old || one_by_one)
            .then(|| placement.shadow(&unit.toolchain.toolkit.home, &program).map_err(|error| error.to_string()))
            .transpose()?;
        let cmake = match backend {
            Backend::Cmake => true,
            Backend::Pyproject => source.join(&unit.recipe.build.folder).join("CMakeLists.txt").exists(),
            Backend::SetupPy | Backend::Bazel => false,
        };
        let unit = coordinator.unit(spec).map_err(|error| error.to_string())?;
        let make_reads_it = reads_named_pipes(path);
        Ok(Placed { placement, shadow, make_reads_it, cmake, ahead, unit })
    }
}

/// Whether the make on `path`, if there is one, knows jobservers that are named pipes: one before 4.4 stops at their sight.
fn reads_named_pipes(path: &str) -> bool {
    let Some(make) = Env::of("/", [(vars::PATH, path)]).find_program("make") else { return true };
    let said = process::capture(&CommandSpec::new(make.as_str(), "/").args(["--version"]), Duration::from_secs(2));
    let version = said.ok().and_then(|said| release(said.stdout.lines().next()?.strip_prefix("GNU Make ")?));
    version >= Some((4, 4))
}

fn matcher(heavy: &Heavy) -> Option<(GlobMatcher, u64)> {
    Some((Glob::new(&heavy.file).ok()?.compile_matcher(), heavy.memory.0))
}

/// Whether setup.py starts one compiler after another. torch then takes `CUDA_HOME/bin/nvcc` whatever else is set, as
/// it always did before 2.1.
fn without_ninja(unit: &Prepared, source: &Utf8Path) -> bool {
    let without_ninja = |text: &str| text.lines().any(|line| line.contains("use_ninja") && line.contains("False"));
    unit.toolchain.ninja.is_none()
        || fs_err::read_to_string(source.join(&unit.recipe.build.folder).join("setup.py"))
            .is_ok_and(|text| without_ninja(&text))
}

/// The first two numbers of a version.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// A build's launcher, at work.
#[derive(Debug)]
pub struct Placed {
    placement: Placement,
    shadow: Option<Utf8PathBuf>,
    make_reads_it: bool,
    /// CMake takes a launcher before the real compilers, which it must recognise.
    cmake: bool,
    ahead: bool,
    unit: Unit,
}

impl Placed {
    /// The command with stand-ins for its compilers; it dies with cuwright.
    pub fn wrap(&self, spec: &CommandSpec) -> CommandSpec {
        // A program that is not there is told apart by who tries to start it.
        let path = spec.env.get(vars::PATH).map_or("", String::as_str);
        let Some(program) = Env::of(spec.cwd.as_path(), [(vars::PATH, path)]).find_program(&spec.program) else {
            return spec.clone();
        };
        let mut wrapped = CommandSpec::new(self.placement.starter().as_str(), spec.cwd.as_path())
            .args([program.as_str()])
            .args(&spec.args)
            .env(spec.env.clone());
        let mut variables = self.placement.variables();
        if self.cmake {
            let launcher = self.placement.compiler_launcher();
            variables.extend(COMPILER_LAUNCHERS.map(|name| (name, launcher.to_string())));
        } else {
            variables.extend(self.placement.compilers());
        }
        for (name, value) in variables {
            wrapped.env.insert(name.to_owned(), value);
        }
        if let Some(flags) = self.unit.make_flags(&self.placement) {
            if self.make_reads_it {
                wrapped.env.insert(vars::MAKEFLAGS.to_owned(), flags.clone());
            }
            wrapped.env.insert(vars::CARGO_MAKEFLAGS.to_owned(), flags);
        }
        for name in self.shadow.iter().flat_map(|_| [vars::CUDA_HOME, vars::CUDA_PATH]) {
            wrapped.env.insert(name.to_owned(), self.shadow.clone().unwrap_or_default().into_string());
        }
        wrapped
    }

    /// Whether compilers may run ahead of a build that starts one after another.
    pub fn runs_ahead(&self) -> bool {
        self.ahead
    }

    /// How the build stands.
    pub fn status(&self) -> Status {
        self.unit.status()
    }

    /// Ends the launcher's work, and keeps what was learnt.
    pub fn finish(self, context: &Context<'_>, name: &str) -> Timeline {
        let finished = self.unit.finish();
        if let Err(error) = finished.costs.save() {
            context.note(name, format!("what the sources cost could not be kept: {error}"));
        }
        finished.timeline
    }
}

/// Writes the page and the trace that `--timings` asks for; the trace beside the page.
pub fn write_timings(context: &Context<'_>, name: &str, request: &Request, timeline: &Timeline) {
    let Some(asked) = &request.timings else { return };
    let own = || request.out.join(format!("{name}-timings.html"));
    let file = if asked.as_str().is_empty() { own() } else { asked.clone() };
    let texts =
        [(file.clone(), timings::page(name, timeline)), (file.with_extension("json"), timings::trace(timeline))];
    for (file, text) in texts {
        if let Err(error) = files::write_output(&file, text.as_bytes()) {
            context.warn(name, format!("the timings could not be written: {error}"));
            return;
        }
    }
    context.stage(name, Stage::Build, format!("timings in {file}"));
}

/// What the compilers were asked for, source by source.
pub fn effective(timeline: &Timeline) -> (ArchSet, Vec<EffectiveSources>) {
    let mut all = ArchSet::new();
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    // CMake tries a compiler before it knows the archs.
    let probe = |source: &str| source.contains("CMakeCUDACompiler");
    for call in timeline.calls.iter().filter(|call| call.device && !probe(&call.source)) {
        all = all.union(&call.archs.parse().unwrap_or_default());
        groups.entry(&call.archs).or_default().push(call.source.clone());
    }
    let group = |(archs, mut sources): (&str, Vec<String>)| {
        sources.sort();
        sources.dedup();
        EffectiveSources { archs: archs.to_owned(), sources }
    };
    (all, groups.into_iter().map(group).collect())
}

/// A compiler that was killed twice, the second time while it had the machine to itself.
pub fn starved(timeline: &Timeline, log: &Utf8Path, env: &Env) -> Option<Problem> {
    let call = timeline.calls.iter().find(|call| call.starved)?;
    let limit = machine::whole_memory(env);
    let limit = limit.map(|(bytes, source)| format!("{} is all there is ({source})", ByteSize(bytes)));
    let message = format!("{} needs more memory than there is", call.source);
    let peak =
        format!("its compiler was killed twice, the second time while it ran alone; it had {}", ByteSize(call.peak));
    let problem = Problem::new("cuwright::build::out_of_memory", Exit::Build, message).why(peak);
    let problem = limit.into_iter().fold(problem, Problem::why).why(format!("the whole log is {log}"));
    let problem = if call.archs.contains(';') { problem.help("build for fewer archs at a time") } else { problem };
    Some(problem.help("or give it more memory, or swap; a lower optimisation level for that source needs less"))
}

/// The sources that ran twice because memory was short.
pub fn ran_again(timeline: &Timeline) -> Vec<String> {
    timeline.calls.iter().filter(|call| call.attempts > 1).map(|call| call.source.clone()).collect()
}
