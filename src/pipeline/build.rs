//! One unit from its key to the verified artifact: restore, or build, verify and store.

use std::time::Duration;

use camino::Utf8Path;

use super::artifact::{Artifacts, Cached};
use super::budget::Seat;
use super::launch::{self, Launcher, Placed};
use super::made::{self, Made};
use super::output::{Place, not_written};
use super::prepare::Prepared;
use super::watch::{self, Stop, Watcher};
use super::{Context, Request, verify};
use crate::build::folder::{self, BuildFolder};
use crate::build::record::{Recorded, Recorder};
use crate::domain::arch::ArchSet;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::plan;
use crate::provision;
use crate::recipe::Backend;
use crate::report::{EffectiveSources, Stage, Summary};
use crate::sys::env_vars::PATH;
use crate::sys::signals::{self, Deferred};
use crate::sys::{clock, exec, files, process};
use crate::verify::import::Checker;

/// How long a rejected wheel or what a killed build left is kept for a look.
const KEPT: Duration = Duration::from_hours(24);

/// Restores or builds a prepared unit and puts its artifact into its place.
///
/// # Errors
/// A failed build or verification; an output folder that cannot be written.
pub fn unit(
    context: &Context<'_>,
    unit: &Prepared,
    request: &Request,
    place: Place<'_>,
    launcher: &Launcher,
    seat: &mut Seat<'_>,
) -> Result<Summary, Problems> {
    let no_cache = request.no_cache;
    place.check()?;
    let artifacts = Artifacts::open(context, &unit.recipe.name);
    let name = unit.recipe.name.as_str();
    let mut stale = None;
    let mut restore = || {
        let restored = restore(context, unit, &artifacts, place, no_cache, &mut stale)?;
        if restored.is_some() && request.timings.is_some() {
            context.note(name, "no timings are written: no compiler ran (`--no-cache` builds again)");
        }
        Ok::<_, Problems>(restored)
    };
    if let Some(restored) = restore()? {
        return Ok(restored);
    }
    let _held = artifacts.lock(context, name, &unit.key);
    let folder = BuildFolder::of(context.cache_root, name, unit.key.as_str());
    if signals::caught() {
        return Err(watch::interrupted(&folder).into());
    }
    // Another builder may have finished this key while we waited.
    if let Some(restored) = restore()? {
        return Ok(restored);
    }
    // From here on there is something to stop and to clear away.
    let _deferred = Deferred::begin();
    if no_cache {
        context.stage(name, Stage::Cache, format!("not looked at, as asked; building {}", unit.key.short()));
    } else {
        let why = stale.or_else(|| artifacts.why(name, &unit.inputs.to_json()));
        let why = why.map(|why| format!(", {why}")).unwrap_or_default();
        context.stage(name, Stage::Cache, format!("miss {}{why}", unit.key.short()));
    }
    sweep(context, &artifacts);
    let built = compile(context, unit, request, &folder, launcher, seat).inspect_err(|_| {
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
        return Err(watch::interrupted(&folder).into());
    }
    let verified = verified.map_err(|problems| keep_failed(&problems, &folder))?;
    let mut summary = Summary {
        unit: name.to_owned(),
        package: name.to_owned(),
        version: built.made.version().or_else(|| unit.recipe.version.clone()),
        key: unit.key.to_string(),
        restored: false,
        wheel: String::new(),
        kind: built.made.kind(),
        wheel_bytes: fs_err::metadata(artifact).map(|meta| meta.len()).unwrap_or_default(),
        wheel_sha256: files::sha256_file(artifact).map_err(|error| not_written(artifact, &error))?,
        requested: unit.archs.to_string(),
        effective: built.effective.to_string(),
        effective_sources: built.sources,
        ran_again: built.ran_again,
        files: verified.files,
        import_output: verified.import_output,
        gpu_check: verified.gpu_check,
        cuda: unit.toolchain.toolkit.nvcc.to_string(),
        torch: unit.toolchain.torch.version.clone(),
        python: unit.toolchain.python.tag.clone(),
        build_seconds: built.seconds,
        local: built.recorded.unknown.clone(),
    };
    if !no_cache {
        if !summary.local.is_empty() {
            let why = summary.local.join("; ");
            context.stage(name, Stage::Cache, format!("kept for this machine only: {why}"));
        }
        artifacts.put(context, unit, artifact, built.recorded, &summary);
    }
    // What was built and verified is worth naming even where it cannot be put where it should go.
    let kept = |problem: Problem| problem.why(format!("the verified artifact is {artifact}"));
    summary.wheel = place.put(context, name, artifact).map_err(kept)?.into_string();
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
    place: Place<'_>,
    no_cache: bool,
    stale: &mut Option<String>,
) -> Result<Option<Summary>, Problem> {
    if no_cache {
        return Ok(None);
    }
    let Cached { wheel, summary } = match artifacts.get(context, unit) {
        Ok(found) => found,
        Err(why) => {
            *stale = why;
            return Ok(None);
        }
    };
    match place.put(context, &summary.unit, &wheel) {
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

fn no_folder(folder: &BuildFolder, error: &std::io::Error) -> Problem {
    Problem::new(
        "cuwright::build::not_written",
        Exit::Build,
        format!("the build folder {} cannot be made", folder.root),
    )
    .why(error.to_string())
    .help("free some space or check the permissions of the cache folder; `--cache-dir DIR` chooses another")
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
    sources: Vec<EffectiveSources>,
    ran_again: Vec<String>,
    seconds: u64,
    checker: Option<Checker>,
    recorded: Recorded,
}

fn start_checker(context: &Context<'_>, unit: &Prepared, within: &Utf8Path) -> Result<Checker, Problem> {
    let (python, env) = (&unit.toolchain.python.executable, plan::of_import(&unit.toolchain, context.env));
    Checker::start(python, env, Some(within), unit.recipe.name != "torch")
}

fn compile(
    context: &Context<'_>,
    unit: &Prepared,
    request: &Request,
    folder: &BuildFolder,
    launcher: &Launcher,
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
        return Err(watch::interrupted(folder).into());
    }
    let placed = launcher.place(context, unit, &folder.root, &folder.source);
    let each = plan::jobs::memory(&unit.recipe, context.env);
    // One limit holds for all units of a run: the coordinator's, call by call, else this one, unit by unit.
    let jobs = match &placed {
        Some(_) => Some(seat.pass(unit.jobs.count, each)),
        None => seat.take(unit.jobs.count, each),
    };
    let jobs = jobs.ok_or_else(|| watch::interrupted(folder))?;
    let environment = unit.environment.with_jobs(jobs);
    let commands = plan::commands(&unit.recipe, &unit.toolchain, &environment, jobs, folder.places(), context.env);
    let shared = if placed.is_none() && jobs < unit.jobs.count { format!("{jobs} of ") } else { String::new() };
    context.stage(name, Stage::Build, format!("{shared}{}; log {}", unit.jobs.why, folder.log));
    let ahead = placed.as_ref().is_some_and(Placed::runs_ahead);
    if ahead {
        let text = "setup.py starts one compiler after another: they run side by side, and links wait for them \
                    (`compile-ahead = false` in `[build]` turns this off)";
        context.note(name, text);
    }
    let recorder = follow(context, unit, folder);
    let status = || placed.as_ref().map(Placed::status);
    let mut watcher = Watcher::new(context, unit, folder, &status);
    // Importing torch takes seconds. At a low priority it fits into what the compilers leave.
    let checker = imports(unit).then(|| start_checker(context, unit, &folder.root).ok()).flatten();
    let ended = commands.steps.iter().try_for_each(|step| {
        let command = placed.as_ref().map_or_else(|| step.command.clone(), |placed| placed.wrap(&step.command));
        let command = match &recorder {
            Ok(recorder) => recorder.follow(command),
            Err(_) => command,
        };
        watcher.run(step.name, &command)
    });
    seat.leave();
    if let Some(last) = &commands.last {
        // A signal has stopped everything in the folder already, and what has ended cannot be ended again.
        let _ = process::capture(&last.command, LAST);
    }
    let (seen, serial, elapsed) = watcher.seen();
    let timeline = placed.map(|placed| placed.finish(context, name));
    match &timeline {
        Some(timeline) => launch::write_timings(context, name, request, timeline),
        None if request.timings.is_some() => {
            context.warn(name, "no timings are written: these compilers run without the launcher, which takes them");
        }
        None => {}
    }
    let timeline = timeline.unwrap_or_default();
    ended.map_err(|stop| match stop {
        Stop::Problem(problem) => *problem,
        Stop::Failed { step, status } => launch::starved(&timeline, &folder.log, context.env).unwrap_or_else(|| {
            let problem = watch::failed(context, unit, step, jobs, status, &folder.log);
            // The log tells of a failed compiler, and a signal came from elsewhere.
            let compiled = timeline.calls.iter().all(|call| call.link || call.status == 0);
            let may_be_ours = ahead && compiled && status.code().is_some();
            if may_be_ours { problem.help(USED_TOO_EARLY) } else { problem }
        }),
    })?;
    if let Some(loss) = serial.loss(elapsed, jobs).filter(|_| !ahead) {
        context.warn(name, made::told(loss, jobs));
    }
    let (asked, sources) = launch::effective(&timeline);
    let effective = if asked.is_empty() { seen.effective.clone() } else { asked };
    if let Some(warning) = watch::other_archs(&unit.archs, &sources, &seen) {
        context.warn(name, warning);
    }
    let made = made::collect(unit, folder, &commands)?;
    let ran_again = launch::ran_again(&timeline);
    let reads = if request.no_cache { Recorded::default() } else { what_was_read(context, unit, recorder) };
    Ok(Built { made, effective, sources, ran_again, seconds: elapsed.as_secs(), checker, recorded: reads })
}

/// What writes down what the build reads, or why that cannot be.
fn follow(context: &Context<'_>, unit: &Prepared, folder: &BuildFolder) -> Result<Recorder, String> {
    if unit.recipe.build.backend == Backend::Bazel {
        return Err("Bazel starts compilers in a server of its own".to_owned());
    }
    let known: Vec<_> = std::iter::once(provision::folder(context.cache_root)).chain(exec::own_path()).collect();
    let path = unit.environment.variables.get(PATH).map_or("", String::as_str);
    Recorder::start(context.cache_root, &folder.root, &known, &unit.toolchain.host, path)
        .map_err(|why| format!("what the build reads cannot be followed ({why})"))
}

fn what_was_read(context: &Context<'_>, unit: &Prepared, recorder: Result<Recorder, String>) -> Recorded {
    let recorder = match recorder {
        Ok(recorder) => recorder,
        Err(why) => return Recorded { unknown: vec![why], ..Recorded::default() },
    };
    let variables = &unit.environment.variables;
    let path = variables.get(PATH).map_or("", String::as_str);
    let own_folder = variables.get("TMPDIR").map(String::as_str);
    let temporary: Vec<&str> = ["/tmp", "/var/tmp"].into_iter().chain(own_folder).collect();
    recorder.collect(context.cache_root, path, &temporary)
}

/// What else to try where a build has failed without a failed compiler.
const USED_TOO_EARLY: &str = "or, where objects were missing: compilers ran ahead of setup.py; if it uses objects \
                              itself, or links with a program that it names by its path, set `compile-ahead = false` \
                              in `[build]`";

/// How long the end of a build system may take.
const LAST: Duration = Duration::from_mins(1);

/// Whether something of the artifact is to be imported.
fn imports(unit: &Prepared) -> bool {
    let verify = &unit.recipe.verify;
    let modules = verify.import.as_ref().map_or(unit.recipe.build.backend.makes_wheel(), |all| !all.is_empty());
    modules || verify.check.is_some()
}
