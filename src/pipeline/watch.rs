//! Watches the commands of one build: progress, effective archs, what CMake left unread, what a build without ninja costs,
//! and the last words of one that fails.

use camino::Utf8Path;

use super::prepare::Prepared;
use super::{Context, explain};
use crate::build::cmake::Unread;
use crate::build::folder::BuildFolder;
use crate::build::run::{self, Ending, Happening, RunError};
use crate::build::setup_py::Serial;
use crate::build::{bazel, ninja};
use crate::domain::arch::{ArchSet, effective_archs_of_line};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::plan::{self, Step};
use crate::report::Event;
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
fn failed(
    context: &Context<'_>,
    unit: &Prepared,
    step: &str,
    jobs: u32,
    status: std::process::ExitStatus,
    log: &Utf8Path,
) -> Problem {
    let found = explain::build(unit, jobs, log, context.env);
    let problem = explain::problem(step, status, log, found.as_ref());
    if let Some(diagnosis) = found {
        (context.tell)(Event::Diagnosis { unit: unit.recipe.name.clone(), diagnosis: Box::new(diagnosis) });
    }
    problem
}

/// Follows one build from its first command to its last.
pub(super) struct Watcher<'a> {
    context: &'a Context<'a>,
    unit: &'a str,
    /// The step that runs.
    step: &'static str,
    pub(super) watch: Stopwatch,
    pub(super) serial: Serial,
    unread: Unread,
    pub(super) effective: ArchSet,
    done: u32,
    total: u32,
    seconds: u64,
    memory: u64,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(context: &'a Context<'a>, unit: &'a str) -> Self {
        let (serial, unread, watch) = (Serial::default(), Unread::default(), Stopwatch::start());
        let (effective, done, total, seconds, memory) = (ArchSet::new(), 0, 0, 0, 0);
        Self { context, unit, step: "", watch, serial, unread, effective, done, total, seconds, memory }
    }

    /// Runs one step to its end.
    pub(super) fn run(&mut self, unit: &Prepared, folder: &BuildFolder, step: &Step, jobs: u32) -> Result<(), Problem> {
        if signals::caught() {
            return Err(interrupted(folder));
        }
        self.step = step.name;
        let run = run::run(&step.command, &folder.root, &folder.log, |happening| self.see(&happening));
        match run.map_err(|error| not_run(&error, &step.command.program))?.0 {
            Ending::Interrupted => Err(interrupted(folder)),
            Ending::Exited(status) if !status.success() => {
                Err(failed(self.context, unit, step.name, jobs, status, &folder.log))
            }
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
