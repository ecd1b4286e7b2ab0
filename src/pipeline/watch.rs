//! Watches the commands of one build: progress, effective archs, what CMake left unread, what a build without ninja costs,
//! and the last words of one that fails.

use std::process::ExitStatus;
use std::time::Duration;

use camino::Utf8Path;

use super::prepare::Prepared;
use super::{Context, explain};
use crate::build::cmake::Unread;
use crate::build::folder::BuildFolder;
use crate::build::run::{self, Ending, Happening, RunError};
use crate::build::setup_py::Serial;
use crate::build::{bazel, ninja};
use crate::domain::arch::{ArchSet, effective_archs_of_line};
use crate::domain::command::CommandSpec;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::launcher::Status;
use crate::plan;
use crate::report::{EffectiveSources, Event};
use crate::sys::clock::Stopwatch;
use crate::sys::signals;

pub(super) fn interrupted(folder: &BuildFolder) -> Problem {
    Problem::new("cuwright::build::interrupted", Exit::Interrupted, "the build was interrupted")
        .why(format!("everything it had started was stopped; the log is {}", folder.log))
        .help("run the same command again")
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

/// What the log says about the failure of `step`: told as a value, and as the last words of the run.
pub(super) fn failed(
    context: &Context<'_>,
    unit: &Prepared,
    step: &str,
    jobs: u32,
    status: ExitStatus,
    log: &Utf8Path,
) -> Problem {
    let found = explain::build(unit, jobs, log, context.env);
    let problem = explain::problem(step, status, log, found.as_ref());
    if let Some(diagnosis) = found {
        (context.tell)(Event::Diagnosis { unit: unit.recipe.name.clone(), diagnosis: Box::new(diagnosis) });
    }
    problem
}

/// Why the commands of a build did not all run to a good end.
#[derive(Debug)]
pub(super) enum Stop {
    /// A command failed, and its log has to tell why.
    Failed {
        /// The name of the command.
        step: &'static str,
        /// How it ended.
        status: ExitStatus,
    },
    /// Anything whose reason is known.
    Problem(Box<Problem>),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

/// Follows one build from its first command to its last.
pub(super) struct Watcher<'a> {
    context: &'a Context<'a>,
    unit: &'a Prepared,
    folder: &'a BuildFolder,
    status: &'a dyn Fn() -> Option<Status>,
    /// The step that runs.
    step: &'static str,
    watch: Stopwatch,
    serial: Serial,
    unread: Unread,
    seen: Seen,
    line: usize,
    done: u32,
    total: u32,
    seconds: u64,
    memory: u64,
}

/// What the output told.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Archs of all nvcc calls.
    pub(super) effective: ArchSet,
    /// nvcc calls whose archs differ from what most would expect, each set with its first line.
    pub(super) lines: Vec<(ArchSet, usize)>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        unit: &'a Prepared,
        folder: &'a BuildFolder,
        status: &'a dyn Fn() -> Option<Status>,
    ) -> Self {
        let (serial, unread, watch) = (Serial::default(), Unread::default(), Stopwatch::start());
        let (seen, line, done, total, seconds, memory) = (Seen::default(), 0, 0, 0, 0, 0);
        Self {
            context,
            unit,
            folder,
            status,
            step: "",
            watch,
            serial,
            unread,
            seen,
            line,
            done,
            total,
            seconds,
            memory,
        }
    }

    /// What was seen in all, and how long it took.
    pub(super) fn seen(self) -> (Seen, Serial, Duration) {
        (self.seen, self.serial, self.watch.elapsed())
    }

    /// Runs one step to its end.
    pub(super) fn run(&mut self, step: &'static str, command: &CommandSpec) -> Result<(), Stop> {
        if signals::caught() {
            return Err(interrupted(self.folder).into());
        }
        self.step = step;
        // Each step writes its command into the log first.
        self.line += 1;
        let (root, log) = (&self.folder.root, &self.folder.log);
        let ended = run::run(command, root, log, |happening| self.see(&happening));
        match ended.map_err(|error| not_run(&error, &command.program))?.0 {
            Ending::Interrupted => Err(interrupted(self.folder).into()),
            Ending::Exited(status) if !status.success() => Err(Stop::Failed { step, status }),
            Ending::Exited(_) => {
                let unread = std::mem::take(&mut self.unread);
                let own = unread.judge(&self.unit.environment.archs.define, &plan::TOOLCHAIN_DEFINES)?;
                if !own.is_empty() {
                    let (name, names) = (self.unit.recipe.name.as_str(), own.join(", "));
                    self.context.warn(name, format!("the project does not read the CMake variables {names}"));
                }
                Ok(())
            }
        }
    }

    fn see(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Line(line) => {
                let unit = self.unit.recipe.name.clone();
                (self.context.tell)(Event::Output { unit, line: (*line).to_owned() });
                self.line += 1;
                self.read(line);
                self.unread.see(line);
                self.serial.see(line, self.watch.elapsed());
            }
            Happening::Tick { .. } => {
                self.seconds = self.watch.elapsed().as_secs();
                let (oldest, memory) = match (self.status)() {
                    Some(Status { working, .. }) => {
                        let memory = working.iter().map(|one| one.memory).sum();
                        (working.into_iter().next().map(|one| (file_name(&one.source), one.seconds)), memory)
                    }
                    None => run::look(&self.folder.root),
                };
                self.memory = memory;
                // Where no compiler runs, the build system itself links, copies or packs.
                let (file, age) = oldest.unwrap_or_else(|| (self.step.to_owned(), self.seconds));
                self.progress(file, age);
            }
        }
    }

    fn read(&mut self, line: &str) {
        if ninja::runs_nvcc(line) {
            let archs = effective_archs_of_line(line).set;
            if !self.seen.lines.iter().any(|(known, _)| *known == archs) {
                self.seen.effective = std::mem::take(&mut self.seen.effective).union(&archs);
                self.seen.lines.push((archs, self.line));
            }
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
            unit: self.unit.recipe.name.clone(),
            done: self.done,
            total: self.total,
            file,
            file_seconds,
            seconds: self.seconds,
            memory: self.memory,
        });
    }
}

fn file_name(source: &str) -> String {
    source.rsplit('/').next().unwrap_or(source).to_owned()
}

/// Says where compilers were asked for other archs than we asked the build for, which means that the project has a list
/// of its own. Silent where they agree, and where no call was seen.
pub(super) fn other_archs(wanted: &ArchSet, sources: &[EffectiveSources], seen: &Seen) -> Option<String> {
    let line = |archs: &ArchSet| seen.lines.iter().find(|(known, _)| known == archs).map(|(_, line)| *line);
    let other = sources.iter().find_map(|group| {
        let archs: ArchSet = group.archs.parse().unwrap_or_default();
        (archs != *wanted).then(|| (archs, Some(named(&group.sources))))
    });
    // Without the launcher, the log has to do.
    let logged = || seen.lines.iter().find(|(archs, _)| archs != wanted).map(|(archs, _)| (archs.clone(), None));
    let (archs, who) = if sources.is_empty() { logged() } else { other }?;
    let at = line(&archs).map(|line| format!(" (line {line} of the log)")).unwrap_or_default();
    let who = who.map_or_else(|| "some sources were".to_owned(), |(names, verb)| format!("{names} {verb}"));
    let what = if archs.is_empty() { "for nvcc's default arch".to_owned() } else { format!("for {archs}") };
    Some(format!("{who} compiled {what} instead of {wanted}: the project has an arch list of its own{at}"))
}

fn named(sources: &[String]) -> (String, &'static str) {
    match sources {
        [] => ("no source".to_owned(), "was"),
        [one] => (one.clone(), "was"),
        [first, rest @ ..] => (format!("{first} and {} more", rest.len()), "were"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(archs: &str, sources: &[&str]) -> EffectiveSources {
        EffectiveSources { archs: archs.into(), sources: sources.iter().map(|&s| s.to_owned()).collect() }
    }

    #[test]
    fn a_list_of_the_projects_own_is_named_with_its_line() {
        let wanted: ArchSet = "9.0".parse().unwrap();
        let old: ArchSet = "7.0;8.0".parse().unwrap();
        let seen = Seen { lines: vec![(wanted.clone(), 3), (old, 7)], ..Seen::default() };
        assert_eq!(other_archs(&wanted, &[group("9.0", &["a.cu"])], &seen), None);
        let said =
            other_archs(&wanted, &[group("7.0;8.0", &["a.cu", "b.cu"]), group("9.0", &["c.cu"])], &seen).unwrap();
        let text = "a.cu and 1 more were compiled for 7.0;8.0 instead of 9.0: the project has an arch list of its own \
                    (line 7 of the log)";
        assert_eq!(said, text);
        let said = other_archs(&wanted, &[], &seen).unwrap();
        assert!(said.starts_with("some sources were compiled for 7.0;8.0") && said.ends_with("(line 7 of the log)"));
        let said = other_archs(&wanted, &[group("", &["a.cu"])], &seen).unwrap();
        assert!(said.starts_with("a.cu was compiled for nvcc's default arch instead"), "{said}");
    }
}
