//! One unit from its key to the verified artifact: restore, or build, verify and store.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::artifact::{Artifacts, Cached};
use super::budget::Seat;
use super::made::{self, Made};
use super::prepare::Prepared;
use super::{Context, verify};
use crate::build::bazel;
use crate::build::cause::Finder;
use crate::build::cmake::Unread;
use crate::build::folder::{self, BuildFolder};
use crate::build::ninja;
use crate::build::run::{self, Ending, Happening, RunError};
use crate::build::setup_py::Serial;
use crate::domain::arch::{ArchSet, effective_archs_of_line};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::plan::{self, Step};
use crate::report::{Event, Stage, Summary};
use crate::sys::clock::Stopwatch;
use crate::sys::signals::{self, Deferred};
use crate::sys::{clock, files, process};
use crate::verify::import::Checker;

/// How long a rejected wheel or what a killed build left is kept for a look.
const KEPT: Duration = Duration::from_hours(24);

/// Restores or builds a prepared unit and puts its artifact into `out`.
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
    let artifact = built.made.file();
    let looked_at = if imports(unit) { "device code and import" } else { "device code" };
    context.stage(name, Stage::Verify, format!("{looked_at} of {}", file_name(artifact)));
    let checker = || built.checker.map_or_else(|| start_checker(context, unit, &folder.root), Ok);
    let verified =
        verify::artifact(context, &unit.recipe, &unit.archs, &unit.toolchain, checker, &built.made, &folder.root);
    if signals::caught() {
        let _ = folder.remove();
        return Err(interrupted(&folder).into());
    }
    let verified = verified.map_err(|problems| keep_failed(&problems, &folder))?;
    let mut summary = Summary {
        unit: name.to_owned(),
        package: name.to_owned(),
        version: unit.recipe.version.clone().or_else(|| built.made.version()),
        key: unit.key.to_string(),
        restored: false,
        wheel: String::new(),
        kind: built.made.kind(),
        wheel_bytes: fs_err::metadata(artifact).map(|meta| meta.len()).unwrap_or_default(),
        wheel_sha256: files::sha256_file(artifact).map_err(|error| not_written(artifact, &error))?,
        requested: unit.archs.to_string(),
        effective: built.effective.to_string(),
        files: verified.files,
        import_output: verified.import_output,
        cuda: unit.toolchain.toolkit.nvcc.to_string(),
        torch: unit.toolchain.torch.version.clone(),
        python: unit.toolchain.python.tag.clone(),
        build_seconds: built.seconds,
    };
    if !no_cache {
        artifacts.put(context, &unit.key, artifact, unit.inputs.to_json(), &summary);
    }
    // What was built and verified is worth naming even where it cannot be put where it should go.
    let kept = |problem: Problem| problem.why(format!("the verified artifact is {artifact}"));
    summary.wheel = deliver(context, name, artifact, out).map_err(kept)?.into_string();
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
    // The arch set is not part of an artifact's file name, so another build of the same package has the same one.
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

fn file_name(path: &Utf8Path) -> &str {
    path.file_name().unwrap_or_default()
}

/// The artifact that failed stays where it is, for `inspect`.
fn keep_failed(problems: &Problems, folder: &BuildFolder) -> Problems {
    problems.clone().also(&format!("the rejected artifact is in {}, the log is {}", folder.dist, folder.log))
}

struct Built {
    made: Made,
    effective: ArchSet,
    seconds: u64,
    checker: Option<Checker>,
}

fn start_checker(context: &Context<'_>, unit: &Prepared, within: &Utf8Path) -> Result<Checker, Problem> {
    let (python, env) = (&unit.toolchain.python.executable, plan::of_import(&unit.toolchain, context.env));
    Checker::start(python, env, Some(within), unit.recipe.name != "torch")
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
    if signals::caught() {
        return Err(interrupted(folder).into());
    }
    // One limit holds for all units of a run.
    let jobs = seat.take(unit.jobs.count, unit.recipe.build.memory_per_job).ok_or_else(|| interrupted(folder))?;
    let environment = unit.environment.with_jobs(jobs);
    let commands = plan::commands(&unit.recipe, &unit.toolchain, &environment, jobs, folder.places(), context.env);
    let shared = if jobs < unit.jobs.count { format!("{jobs} of ") } else { String::new() };
    context.stage(name, Stage::Build, format!("{shared}{}; log {}", unit.jobs.why, folder.log));
    let mut watcher = Watcher::new(context, name);
    // Importing torch takes seconds. At a low priority it fits into what the compilers leave.
    let checker = imports(unit).then(|| start_checker(context, unit, &folder.root).ok()).flatten();
    let ended = commands.steps.iter().try_for_each(|step| watcher.run(unit, folder, step));
    seat.leave();
    if let Some(last) = &commands.last {
        // A signal has stopped everything in the folder already, and what has ended cannot be ended again.
        let _ = process::capture(&last.command, LAST);
    }
    ended?;
    if let Some(loss) = watcher.serial.loss(watcher.watch.elapsed(), jobs) {
        context.warn(name, made::told(loss, jobs));
    }
    let made = made::collect(unit, folder, &commands)?;
    Ok(Built { made, effective: watcher.effective, seconds: watcher.watch.elapsed().as_secs(), checker })
}

/// How long the end of a build system may take.
const LAST: Duration = Duration::from_mins(1);

/// Whether something of the artifact is to be imported.
fn imports(unit: &Prepared) -> bool {
    let verify = &unit.recipe.verify;
    let modules = verify.import.as_ref().map_or(unit.recipe.build.backend.makes_wheel(), |all| !all.is_empty());
    modules || verify.check.is_some()
}

fn not_run(error: &RunError, program: &str) -> Problem {
    let (why, help) = match error {
        RunError::Start(error) => (
            format!("{program}: {error}"),
            "check that this program is here; `build-requires` can bring ninja and CMake",
        ),
        RunError::Log(error) => {
            (error.to_string(), "free some space, or choose another cache folder with `--cache-dir`")
        }
        RunError::System(error) => (error.to_string(), "the system refused a pipe, a signal handler or a wait"),
    };
    Problem::new("cuwright::build::not_run", Exit::Build, "the build could not be run").why(why).help(help)
}

/// The first line that names an error, and what stood around it: the last line of such a log is only an echo.
fn failed(step: &str, status: std::process::ExitStatus, log: &Utf8Path, cause: &Finder) -> Problem {
    let problem = Problem::new("cuwright::build::failed", Exit::Build, format!("{step} failed ({status})"));
    let log = format!("the whole log is {log}");
    match cause.text() {
        Some(text) => {
            problem.why(text).why(log).help("mend the first error above; the ones after it often follow from it")
        }
        None => problem.why("it printed nothing").why(log).help("run the command at the top of the log in a debugger"),
    }
}

struct Watcher<'a> {
    context: &'a Context<'a>,
    unit: &'a str,
    /// The step that runs.
    step: &'static str,
    watch: Stopwatch,
    serial: Serial,
    unread: Unread,
    cause: Finder,
    effective: ArchSet,
    done: u32,
    total: u32,
    seconds: u64,
    memory: u64,
}

impl<'a> Watcher<'a> {
    fn new(context: &'a Context<'a>, unit: &'a str) -> Self {
        let (cause, effective) = (Finder::default(), ArchSet::new());
        let (serial, unread, watch) = (Serial::default(), Unread::default(), Stopwatch::start());
        let (done, total, seconds, memory) = (0, 0, 0, 0);
        Self { context, unit, step: "", watch, serial, unread, cause, effective, done, total, seconds, memory }
    }

    /// Runs one step to its end.
    fn run(&mut self, unit: &Prepared, folder: &BuildFolder, step: &Step) -> Result<(), Problem> {
        if signals::caught() {
            return Err(interrupted(folder));
        }
        self.step = step.name;
        self.cause = Finder::default();
        let run = run::run(&step.command, &folder.root, &folder.log, |happening| self.see(&happening));
        match run.map_err(|error| not_run(&error, &step.command.program))?.0 {
            Ending::Interrupted => Err(interrupted(folder)),
            Ending::Exited(status) if !status.success() => Err(failed(step.name, status, &folder.log, &self.cause)),
            Ending::Exited(_) => {
                let unread = std::mem::take(&mut self.unread);
                let own = unread.judge(&unit.environment.archs.define, &plan::TOOLCHAIN_DEFINES)?;
                if !own.is_empty() {
                    let names = own.join(", ");
                    self.context.warn(self.unit, format!("the project does not read the CMake variables {names}"));
                }
                Ok(())
            }
        }
    }

    fn see(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Line(line) => {
                (self.context.tell)(Event::Output { unit: self.unit.to_owned(), line: (*line).to_owned() });
                self.read(line);
                self.cause.see(line);
                self.unread.see(line);
                self.serial.see(line, self.watch.elapsed());
            }
            Happening::Tick { oldest, memory, .. } => {
                (self.seconds, self.memory) = (self.watch.elapsed().as_secs(), *memory);
                // Where no compiler runs, the build system itself links, copies or packs.
                let (file, age) = oldest.clone().unwrap_or_else(|| (self.step.to_owned(), self.seconds));
                self.progress(file, age);
            }
        }
    }

    fn read(&mut self, line: &str) {
        if ninja::runs_nvcc(line) {
            self.effective = std::mem::take(&mut self.effective).union(&effective_archs_of_line(line).set);
        }
        if let Some(step) = ninja::step(line).or_else(|| bazel::step(line)) {
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
