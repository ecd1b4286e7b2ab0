//! One unit from its key to the verified wheel: restore, or build, verify and store.

use camino::{Utf8Path, Utf8PathBuf};

use super::artifact::{Artifacts, Cached};
use super::prepare::Prepared;
use super::{Context, verify};
use crate::build::cause::Finder;
use crate::build::folder::BuildFolder;
use crate::build::ninja;
use crate::build::run::{self, Ending, Happening, RunError};
use crate::domain::arch::{ArchSet, effective_archs_of_line};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::plan;
use crate::report::{Event, Stage, Summary};
use crate::sys::files;
use crate::verify::import::Checker;

/// Restores or builds a prepared unit and puts its wheel into `out`.
///
/// # Errors
/// A failed build or verification; an output folder that cannot be written.
pub fn unit(context: &Context<'_>, unit: &Prepared, out: &Utf8Path, no_cache: bool) -> Result<Summary, Problems> {
    let artifacts = Artifacts::open(context, &unit.recipe.name);
    let name = unit.recipe.name.as_str();
    let look = |artifacts: &Artifacts| if no_cache { None } else { artifacts.get(context, name, &unit.key) };
    if let Some(cached) = look(&artifacts) {
        return restore(context, cached, out);
    }
    let _held = artifacts.lock(context, name, &unit.key);
    // Another builder may have finished this key while we waited.
    if let Some(cached) = look(&artifacts) {
        return restore(context, cached, out);
    }
    let why = artifacts.why(name, &unit.inputs.to_json()).map(|why| format!(", {why}")).unwrap_or_default();
    context.stage(name, Stage::Cache, format!("miss {}{why}", unit.key.short()));
    let folder = BuildFolder::of(context.cache_root, name, unit.key.as_str());
    let built = compile(context, unit, &folder)?;
    context.stage(name, Stage::Verify, format!("device code and import of {}", file_name(&built.wheel)));
    let checker = || built.checker.map_or_else(|| start_checker(context, unit), Ok);
    let verified = verify::wheel(context, &unit.recipe, &unit.archs, &unit.toolchain, checker, &built.wheel)
        .map_err(|problems| keep_failed(&problems, &folder))?;
    let mut summary = Summary {
        unit: name.to_owned(),
        version: unit.recipe.version.clone(),
        key: unit.key.to_string(),
        restored: false,
        wheel: String::new(),
        wheel_bytes: fs_err::metadata(&built.wheel).map(|meta| meta.len()).unwrap_or_default(),
        wheel_sha256: files::sha256_file(&built.wheel).map_err(|error| not_written(&built.wheel, &error))?,
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
        artifacts.put(context, &unit.key, &built.wheel, unit.inputs.to_json(), &summary);
    }
    summary.wheel = deliver(context, name, &built.wheel, out)?.into_string();
    if let Err(error) = folder.remove() {
        context.warn(name, format!("the build folder stays behind: {error}"));
    }
    Ok(summary)
}

fn restore(context: &Context<'_>, cached: Cached, out: &Utf8Path) -> Result<Summary, Problems> {
    let wheel = deliver(context, &cached.summary.unit, &cached.wheel, out)?.into_string();
    Ok(Summary { restored: true, wheel, ..cached.summary })
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

fn start_checker(context: &Context<'_>, unit: &Prepared) -> Result<Checker, Problem> {
    Checker::start(&unit.toolchain.python.executable, plan::of_import(&unit.toolchain, context.env))
}

fn compile(context: &Context<'_>, unit: &Prepared, folder: &BuildFolder) -> Result<Built, Problems> {
    let name = unit.recipe.name.as_str();
    let stopped = folder.create().map_err(|error| not_written(&folder.root, &error))?;
    if stopped > 0 {
        context.warn(name, format!("stopped {stopped} compilers that a killed build had left running"));
    }
    unit.source.copy_to(&folder.source)?;
    unit.apply_patches(context, &folder.source)?;
    let spec = plan::setup_py(&unit.toolchain, &unit.environment, &folder.source, &folder.dist);
    context.stage(name, Stage::Build, format!("{} jobs ({}); log {}", unit.jobs.count, unit.jobs.why, folder.log));
    let mut watcher = Watcher::new(context, name);
    // Importing torch takes seconds. At a low priority it fits into what the compilers leave.
    let checker = start_checker(context, unit).ok();
    let (ending, elapsed) = run::run(&spec, &folder.root, &folder.log, |happening| {
        watcher.see(&happening);
    })
    .map_err(|error| not_run(&error, &spec.program))?;
    match ending {
        Ending::Interrupted => {
            // The folder goes, so that nothing half-made stays behind; the log tells how far it was.
            let _ = folder.remove();
            let problem = Problem::new("cuwright::build::interrupted", Exit::Interrupted, "the build was interrupted")
                .why(format!("every compiler it had started was stopped; the log is {}", folder.log))
                .help("run the same command again");
            return Err(problem.into());
        }
        Ending::Exited(status) if !status.success() => {
            return Err(failed(status, &folder.log, &watcher.cause).into());
        }
        Ending::Exited(_) => {}
    }
    let wheel = folder.wheel().map_err(|why| {
        Problem::new("cuwright::build::no_wheel", Exit::Build, "setup.py ended well but left no wheel to verify")
            .why(why)
            .why(format!("the log is {}", folder.log))
            .help("run the project's own `setup.py bdist_wheel` and see where it writes")
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

/// The first line that names an error, and what stood around it: the last line of such a log is only an echo.
fn failed(status: std::process::ExitStatus, log: &Utf8Path, cause: &Finder) -> Problem {
    Problem::new("cuwright::build::failed", Exit::Build, format!("setup.py failed ({status})"))
        .why(cause.text())
        .why(format!("the whole log is {log}"))
        .help("mend the first error above; the ones after it often follow from it")
}

struct Watcher<'a> {
    context: &'a Context<'a>,
    unit: &'a str,
    cause: Finder,
    effective: ArchSet,
    done: u32,
    total: u32,
    file: String,
    seconds: u64,
}

impl<'a> Watcher<'a> {
    fn new(context: &'a Context<'a>, unit: &'a str) -> Self {
        let (cause, effective, file) = (Finder::default(), ArchSet::new(), "setup.py".to_owned());
        Self { context, unit, cause, effective, done: 0, total: 0, file, seconds: 0 }
    }

    fn see(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Line(line) => {
                self.read(line);
                self.cause.see(line);
            }
            Happening::Tick(oldest) => {
                self.seconds += 1;
                let (file, age) = oldest.clone().unwrap_or_else(|| (self.file.clone(), self.seconds));
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
                self.file.clone_from(&source);
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
        });
    }
}
