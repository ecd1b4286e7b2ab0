//! One unit from its key to the verified wheel: restore, or build, verify and store.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::artifact::{Artifacts, Cached};
use super::budget::Seat;
use super::prepare::Prepared;
use super::{Context, explain, verify};
use crate::build::folder::{self, BuildFolder};
use crate::build::ninja;
use crate::build::run::{self, Ending, Happening, RunError};
use crate::domain::arch::{ArchSet, effective_archs_of_line};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::plan;
use crate::report::{Event, Stage, Summary};
use crate::sys::signals::{self, Deferred};
use crate::sys::{clock, files};
use crate::verify::import::Checker;

/// How long a rejected wheel or what a killed build left is kept for a look.
const KEPT: Duration = Duration::from_hours(24);

/// Restores or builds a prepared unit and puts its wheel into `out`.
///
/// # Errors
/// A failed build or verification; an output folder that cannot be written.
pub fn unit(
    context: &Context<'_>,
    unit: &Prepared,
    out: &Utf8Path,
    no_cache: bool,
    seat: &mut Seat<'_>,
) -> Result<Summary, Problems> {
    check_out(out)?;
    let artifacts = Artifacts::open(context, &unit.recipe.name);
    let name = unit.recipe.name.as_str();
    if let Some(restored) = restore(context, unit, &artifacts, out, no_cache)? {
        return Ok(restored);
    }
    let _held = artifacts.lock(context, name, &unit.key);
    let folder = BuildFolder::of(context.cache_root, name, unit.key.as_str());
    if signals::caught() {
        return Err(interrupted(&folder).into());
    }
    // Another builder may have finished this key while we waited.
    if let Some(restored) = restore(context, unit, &artifacts, out, no_cache)? {
        return Ok(restored);
    }
    // From here on there is something to stop and to clear away.
    let _deferred = Deferred::begin();
    if no_cache {
        context.stage(name, Stage::Cache, format!("not looked at, as asked; building {}", unit.key.short()));
    } else {
        let why = artifacts.why(name, &unit.inputs.to_json()).map(|why| format!(", {why}")).unwrap_or_default();
        context.stage(name, Stage::Cache, format!("miss {}{why}", unit.key.short()));
    }
    sweep(context, &artifacts);
    let built = compile(context, unit, &folder, seat).inspect_err(|_| {
        // Nothing half-made stays behind; the log tells how far it was.
        let _ = folder.remove();
    })?;
    context.stage(name, Stage::Verify, format!("device code and import of {}", file_name(&built.wheel)));
    let checker = || built.checker.map_or_else(|| start_checker(context, unit, &folder.root), Ok);
    let verified =
        verify::wheel(context, &unit.recipe, &unit.archs, &unit.toolchain, checker, &built.wheel, &folder.root);
    if signals::caught() {
        let _ = folder.remove();
        return Err(interrupted(&folder).into());
    }
    let verified = verified.map_err(|problems| keep_failed(&problems, &folder))?;
    let mut summary = Summary {
        unit: name.to_owned(),
        package: name.to_owned(),
        version: unit.recipe.version.clone().or_else(|| version_of(&built.wheel)),
        key: unit.key.to_string(),
        restored: false,
        wheel: String::new(),
        wheel_bytes: fs_err::metadata(&built.wheel).map(|meta| meta.len()).unwrap_or_default(),
        wheel_sha256: files::sha256_file(&built.wheel).map_err(|error| not_written(&built.wheel, &error))?,
        requested: unit.archs.to_string(),
        effective: built.effective.to_string(),
        files: verified.files,
        import_output: verified.import_output,
        gpu_check: verified.gpu_check,
        cuda: unit.toolchain.toolkit.nvcc.to_string(),
        torch: unit.toolchain.torch.version.clone(),
        python: unit.toolchain.python.tag.clone(),
        build_seconds: built.seconds,
    };
    if !no_cache {
        artifacts.put(context, &unit.key, &built.wheel, unit.inputs.to_json(), &summary);
    }
    // What was built and verified is worth naming even where it cannot be put where it should go.
    let kept = |problem: Problem| problem.why(format!("the verified wheel is {}", built.wheel));
    summary.wheel = deliver(context, name, &built.wheel, out).map_err(kept)?.into_string();
    if let Err(error) = folder.remove() {
        context.warn(name, format!("the build folder stays behind: {error}"));
    }
    Ok(summary)
}

/// The wheel of an earlier build, unless the cache must not be used or has none.
fn restore(
    context: &Context<'_>,
    unit: &Prepared,
    artifacts: &Artifacts,
    out: &Utf8Path,
    no_cache: bool,
) -> Result<Option<Summary>, Problem> {
    let found = if no_cache { None } else { artifacts.get(context, &unit.recipe.name, &unit.key) };
    let Some(Cached { wheel, summary }) = found else { return Ok(None) };
    match deliver(context, &summary.unit, &wheel, out) {
        // Somebody removed it between the look and the copy.
        Err(_) if !wheel.exists() => Ok(None),
        delivered => Ok(Some(Summary { restored: true, wheel: delivered?.into_string(), ..summary })),
    }
}

/// Removes what killed builds and rejected wheels left behind a day ago or longer, unless somebody builds that key.
fn sweep(context: &Context<'_>, artifacts: &Artifacts) {
    for leftover in folder::leftovers(context.cache_root, clock::now()) {
        if leftover.age > KEPT {
            artifacts.if_free(&leftover.key, || drop(files::remove_tree(&leftover.path)));
        }
    }
}

/// Refuses an output folder that cannot be written to before an hour is spent on what should go there; makes nothing.
fn check_out(out: &Utf8Path) -> Result<(), Problem> {
    let nearest = out.ancestors().find(|folder| folder.exists()).unwrap_or(Utf8Path::new("/"));
    tempfile::tempfile_in(nearest).map(drop).map_err(|error| not_written(out, &error))
}

fn deliver(context: &Context<'_>, unit: &str, wheel: &Utf8Path, out: &Utf8Path) -> Result<Utf8PathBuf, Problem> {
    let to = out.join(file_name(wheel));
    // The arch set is not part of a wheel's file name, so another build of the same package has the same one.
    let digest = |path: &Utf8Path| files::sha256_file(path).ok();
    if to.exists() && digest(&to) != digest(wheel) {
        context.warn(unit, format!("{to} held another build and is replaced; that one can be restored from the cache"));
    }
    files::copy_atomic(wheel, &to).map_err(|error| not_written(&to, &error))?;
    Ok(to)
}

fn not_written(path: &Utf8Path, error: &std::io::Error) -> Problem {
    Problem::new("cuwright::build::not_written", Exit::Build, format!("{path} could not be written"))
        .why(error.to_string())
        .help("free some space or check the permissions of the folder; `--out DIR` chooses another")
}

fn no_folder(folder: &BuildFolder, error: &std::io::Error) -> Problem {
    Problem::new(
        "cuwright::build::not_written",
        Exit::Build,
        format!("the build folder {} cannot be made", folder.root),
    )
    .why(error.to_string())
    .help("free some space or check the permissions of the cache folder; `--cache-dir DIR` chooses another")
}

fn interrupted(folder: &BuildFolder) -> Problem {
    Problem::new("cuwright::build::interrupted", Exit::Interrupted, "the build was interrupted")
        .why(format!("everything it had started was stopped; the log is {}", folder.log))
        .help("run the same command again")
}

/// The version in a wheel's file name, `name-version-…`.
fn version_of(wheel: &Utf8Path) -> Option<String> {
    file_name(wheel).split('-').nth(1).map(str::to_owned)
}

fn file_name(path: &Utf8Path) -> &str {
    path.file_name().unwrap_or_default()
}

/// The wheel that failed stays where it is, for `inspect`.
fn keep_failed(problems: &Problems, folder: &BuildFolder) -> Problems {
    problems.clone().also(&format!("the rejected wheel is in {}, the log is {}", folder.dist, folder.log))
}

struct Built {
    wheel: Utf8PathBuf,
    effective: ArchSet,
    seconds: u64,
    checker: Option<Checker>,
}

fn start_checker(context: &Context<'_>, unit: &Prepared, within: &Utf8Path) -> Result<Checker, Problem> {
    Checker::start(&unit.toolchain.python.executable, plan::of_import(&unit.toolchain, context.env), Some(within))
}

fn compile(
    context: &Context<'_>,
    unit: &Prepared,
    folder: &BuildFolder,
    seat: &mut Seat<'_>,
) -> Result<Built, Problems> {
    let name = unit.recipe.name.as_str();
    let stopped = folder.create().map_err(|error| no_folder(folder, &error))?;
    if stopped > 0 {
        let processes = if stopped == 1 { "a process".to_owned() } else { format!("{stopped} processes") };
        context.warn(name, format!("stopped {processes} that a killed build had left running"));
    }
    unit.source.copy_to(&folder.source)?;
    unit.apply_patches(context, &folder.source)?;
    // One limit holds for all units of a run.
    let each = plan::jobs::memory(&unit.recipe, context.env);
    let jobs = seat.take(unit.jobs.count, each).ok_or_else(|| interrupted(folder))?;
    let environment = unit.environment.with_jobs(jobs);
    let spec = plan::setup_py(&unit.toolchain, &environment, &folder.source, &folder.dist);
    let shared = if jobs < unit.jobs.count { format!("{jobs} of ") } else { String::new() };
    context.stage(name, Stage::Build, format!("{shared}{}; log {}", unit.jobs.why, folder.log));
    let mut watcher = Watcher::new(context, name);
    // Importing torch takes seconds. At a low priority it fits into what the compilers leave.
    let checker = start_checker(context, unit, &folder.root).ok();
    let (ending, elapsed) = run::run(&spec, &folder.root, &folder.log, |happening| {
        watcher.see(&happening);
    })
    .map_err(|error| not_run(&error, &spec.program))?;
    seat.leave();
    match ending {
        Ending::Interrupted => return Err(interrupted(folder).into()),
        Ending::Exited(status) if !status.success() => {
            return Err(failed(context, unit, jobs, status, &folder.log).into());
        }
        Ending::Exited(_) => {}
    }
    let wheel = folder.wheel().map_err(|(message, why)| {
        Problem::new("cuwright::build::no_wheel", Exit::Build, message)
            .why(why)
            .why(format!("the log is {}", folder.log))
            .help("run the project's own `setup.py bdist_wheel` and see what it writes to `--dist-dir`")
    })?;
    Ok(Built { wheel, effective: watcher.effective, seconds: elapsed.as_secs(), checker })
}

fn not_run(error: &RunError, program: &str) -> Problem {
    let (why, help) = match error {
        RunError::Start(error) => (format!("{program}: {error}"), "check that this Python exists and may be run"),
        RunError::Log(error) => {
            (error.to_string(), "free some space, or choose another cache folder with `--cache-dir`")
        }
        RunError::System(error) => (error.to_string(), "the system refused a pipe, a signal handler or a wait"),
    };
    Problem::new("cuwright::build::not_run", Exit::Build, "the build could not be run").why(why).help(help)
}

/// What the log says about the failure: told as a value, and as the last words of the run.
fn failed(
    context: &Context<'_>,
    unit: &Prepared,
    jobs: u32,
    status: std::process::ExitStatus,
    log: &Utf8Path,
) -> Problem {
    let found = explain::build(unit, jobs, log, context.env);
    let problem = explain::problem(status, log, found.as_ref());
    if let Some(diagnosis) = found {
        (context.tell)(Event::Diagnosis { unit: unit.recipe.name.clone(), diagnosis: Box::new(diagnosis) });
    }
    problem
}

struct Watcher<'a> {
    context: &'a Context<'a>,
    unit: &'a str,
    effective: ArchSet,
    done: u32,
    total: u32,
    seconds: u64,
    memory: u64,
}

impl<'a> Watcher<'a> {
    fn new(context: &'a Context<'a>, unit: &'a str) -> Self {
        Self { context, unit, effective: ArchSet::new(), done: 0, total: 0, seconds: 0, memory: 0 }
    }

    fn see(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Line(line) => {
                (self.context.tell)(Event::Output { unit: self.unit.to_owned(), line: (*line).to_owned() });
                self.read(line);
            }
            Happening::Tick { seconds, oldest, memory } => {
                (self.seconds, self.memory) = (*seconds, *memory);
                // Where no compiler runs, setup.py itself links, copies or packs.
                let (file, age) = oldest.clone().unwrap_or_else(|| ("setup.py".to_owned(), self.seconds));
                self.progress(file, age);
            }
        }
    }

    fn read(&mut self, line: &str) {
        if ninja::runs_nvcc(line) {
            self.effective = std::mem::take(&mut self.effective).union(&effective_archs_of_line(line).set);
        }
        if let Some(step) = ninja::step(line) {
            (self.done, self.total) = (step.done, step.total);
            if let Some(source) = ninja::source(step.command) {
                self.progress(source, 0);
            }
        }
    }

    fn progress(&self, file: String, file_seconds: u64) {
        (self.context.tell)(Event::Progress {
            unit: self.unit.to_owned(),
            done: self.done,
            total: self.total,
            file,
            file_seconds,
            seconds: self.seconds,
            memory: self.memory,
        });
    }
}
