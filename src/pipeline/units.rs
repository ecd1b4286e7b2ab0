//! The units of a run: what they are, and building them side by side.
//!
//! A unit is a recipe with one cell of its matrix. Invariant: names are unlike one another, and units of one package have
//! output folders of their own, since their wheels have one file name; a unit that is asked for twice is built once.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use camino::Utf8PathBuf;

use super::budget::{Budget, Seat};
use super::launch::Launcher;
use super::load::{Loaded, RECIPE_FILE};
use super::output::{Output, Place};
use super::{Context, Request, build, prepare};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::plan::jobs::{Bound, Machine};
use crate::preflight::cells;
use crate::recipe::matrix::{Axis, Cell};
use crate::report::{Ended, Event, Planned, Stage, Status, Summary};
use crate::sys::clock::Stopwatch;
use crate::sys::machine;
use crate::sys::signals::{self, Deferred};

/// One thing to build.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Unlike that of any other unit of the run.
    pub id: String,
    /// The recipe.
    pub loaded: Loaded,
    /// Its cell; open without a matrix.
    pub cell: Cell,
    /// What is asked, the cell's values included.
    pub request: Request,
    /// The constraint that nothing satisfies together with this cell.
    pub pruned: Option<String>,
}

/// Values for axes of a matrix from the command line, in the order of [`Axis::ALL`].
pub type Axes = [Vec<String>; 4];

/// The units of a run.
#[derive(Debug, Default)]
pub struct Units {
    /// In the order of the command line, pruned cells included.
    pub units: Vec<Unit>,
    /// What the user should know although it works.
    pub warnings: Vec<String>,
}

/// One unit for each recipe.
pub fn plain(recipes: Vec<Loaded>, request: &Request) -> Units {
    let mut found = Units::default();
    for loaded in recipes {
        found.add(loaded, Cell::default(), request.clone());
    }
    found
}

/// One unit for each cell of each recipe's matrix, with `axes` in place of what the recipe says.
///
/// # Errors
/// Nothing names an axis; axes that do not go together; nothing left to build.
pub fn matrix(recipes: Vec<Loaded>, request: &Request, axes: &Axes) -> Result<Units, Problem> {
    let mut found = Units::default();
    let mut any = false;
    for loaded in recipes {
        let with = |matrix: crate::recipe::matrix::Matrix, axis: Axis| matrix.with_axis(axis, &axes[axis as usize]);
        let matrix = Axis::ALL.into_iter().fold(loaded.recipe.matrix.clone(), with);
        any |= !matrix.is_empty();
        let spanned = matrix.cells()?;
        for idle in &spanned.idle {
            found.warnings.push(format!("{}: `matrix.exclude` matches no cell with {}", loaded.origin, idle.words()));
        }
        if spanned.cells.is_empty() && !matrix.is_empty() {
            found.warnings.push(format!("{}: `matrix.exclude` takes out every cell", loaded.origin));
            continue;
        }
        if spanned.cells.is_empty() {
            found.warnings.push(format!("{} has no matrix and is one unit", loaded.origin));
            found.add(loaded, Cell::default(), request.clone());
            continue;
        }
        for cell in spanned.cells {
            let flag = cell.get(Axis::Arch).is_some_and(|list| axes[Axis::Arch as usize].iter().any(|own| own == list));
            let request = of_cell(request, &cell, flag, &loaded);
            found.add(loaded.clone(), cell, request);
        }
    }
    if !any {
        return Err(no_matrix(&found));
    }
    if found.units.iter().all(|unit| unit.pruned.is_some()) { Err(nothing_left(&found)) } else { Ok(found) }
}

fn no_matrix(found: &Units) -> Problem {
    let problem = Problem::new("cuwright::matrix::none", Exit::Usage, "there is no matrix to build");
    let problem = found.warnings.iter().fold(problem, Problem::why);
    problem
        .help("name values on the command line: `--matrix --torch 2.11.0 --torch 2.12.1`")
        .help(format!("or write a `[matrix]` into {RECIPE_FILE}; docs/recipe.md describes it"))
}

fn nothing_left(found: &Units) -> Problem {
    let problem = Problem::new("cuwright::matrix::nothing_left", Exit::Toolchain, "no cell of the matrix can be built");
    let reason = |unit: &Unit| Some(format!("{}: {}", unit.id, unit.pruned.as_ref()?));
    let problem = found.units.iter().filter_map(reason).fold(problem, Problem::why);
    // Where no cell is there at all, a warning says who took them out.
    let warned = found.warnings.iter().filter(|_| found.units.is_empty());
    let problem = warned.fold(problem, Problem::why);
    problem.help("change an axis so that archs, torch, CUDA and Python go together")
}

/// The request of a cell: its values stand in for those of the command line.
fn of_cell(request: &Request, cell: &Cell, flag: bool, loaded: &Loaded) -> Request {
    let own = |axis: Axis, other: &Option<String>| cell.get(axis).map(str::to_owned).or_else(|| other.clone());
    let mut request = Request {
        torch: own(Axis::Torch, &request.torch),
        cuda: own(Axis::Cuda, &request.cuda),
        python: own(Axis::Python, &request.python),
        ..request.clone()
    };
    if let Some(list) = cell.get(Axis::Arch) {
        request.archs = vec![list.to_owned()];
        request.archs_from = (!flag).then(|| format!("the matrix of {}", loaded.origin));
    }
    request
}

impl Units {
    fn add(&mut self, loaded: Loaded, cell: Cell, mut request: Request) {
        let same = |unit: &&Unit| {
            unit.cell == cell && unit.loaded.text == loaded.text && real(&unit.loaded.folder) == real(&loaded.folder)
        };
        if let Some(unit) = self.units.iter().find(same) {
            self.warnings.push(format!("{} is named twice and built once", unit.id));
            return;
        }
        let name = &loaded.recipe.name;
        let slug = cell.slug();
        let id = |number: usize| match (slug.as_str(), number) {
            ("", 1) => name.clone(),
            ("", number) => format!("{name}/{number}"),
            (slug, 1) => format!("{name}/{slug}"),
            (slug, number) => format!("{name}/{slug}-{number}"),
        };
        let taken = |id: &String| self.units.iter().any(|unit| unit.id == *id);
        let id = (1..=self.units.len() + 1).map(id).find(|id| !taken(id)).unwrap_or_default();
        // Two pages under one name would be one.
        let page = request.timings.as_ref().filter(|page| !page.as_str().is_empty() && !self.units.is_empty());
        if let Some(page) = page {
            let stem = page.file_stem().unwrap_or(name);
            request.timings = Some(page.with_file_name(format!("{stem}-{}.html", id.replace('/', "-"))));
        }
        // A wheel's file name tells neither archs nor torch nor CUDA, so each cell has a folder of its own.
        if let Some((_, folder)) = id.split_once('/') {
            request.out = request.out.join(folder);
            if slug.is_empty() {
                let out = &request.out;
                self.warnings
                    .push(format!("another {name} is built too: the wheel of {} goes to {out}", loaded.origin));
            }
        }
        let pruned = cells::unsatisfiable(&loaded.recipe, &cell);
        self.units.push(Unit { id, loaded, cell, request, pruned });
    }

    /// As told to whoever watches.
    pub fn planned(&self) -> Vec<Planned> {
        self.units.iter().map(planned).collect()
    }
}

fn real(folder: &camino::Utf8Path) -> Utf8PathBuf {
    folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned())
}

fn planned(unit: &Unit) -> Planned {
    let value = |axis: Axis| unit.cell.get(axis).map(str::to_owned);
    Planned {
        unit: unit.id.clone(),
        package: unit.loaded.recipe.name.clone(),
        arch: value(Axis::Arch),
        torch: value(Axis::Torch),
        cuda: value(Axis::Cuda),
        python: value(Axis::Python),
        pruned: unit.pruned.clone(),
    }
}

/// How units are built.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What the user says about the number of jobs.
    pub jobs: Bound,
    /// Whether others begin after one has failed.
    pub keep_going: bool,
}

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The wheels, in the order of the units.
    pub wheels: Vec<String>,
    /// The highest code of all units.
    pub exit: Exit,
    /// What stopped everything, where a signal did.
    pub interrupted: Option<Problems>,
}

/// Builds units side by side within one limit of jobs. `failed` is told of every unit that an error stopped.
///
/// Without `keep_going` no unit begins after one has failed; those that run go on to their end, and what they make is
/// kept. A signal stops all of them.
pub fn run(
    context: &Context<'_>,
    units: &[Unit],
    options: Options,
    launcher: &Launcher,
    failed: &(dyn Fn(&str, &Problems) + Sync),
) -> Outcome {
    // Whatever a unit is at, it gets to stop its children and to clear away.
    let _deferred = Deferred::begin();
    let machine = Machine { cores: machine::cores(), memory: machine::available_memory(context.env) };
    let budget = Budget::new(machine, options.jobs);
    let work: Vec<&Unit> = units.iter().filter(|unit| unit.pruned.is_none()).collect();
    let seats: Vec<Mutex<Option<Seat<'_>>>> = work.iter().map(|_| Mutex::new(Some(budget.seat()))).collect();
    let results: Vec<Mutex<Option<Result<Summary, Problems>>>> = work.iter().map(|_| Mutex::new(None)).collect();
    let output = Output::of(work.len());
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let lane = || {
        loop {
            if stop.load(Ordering::SeqCst) || signals::caught() {
                return;
            }
            let index = next.fetch_add(1, Ordering::SeqCst);
            let Some(unit) = work.get(index) else { return };
            let seat = lock(&seats[index]).take();
            let Some(mut seat) = seat else { return };
            let watch = Stopwatch::start();
            let result = one(context, unit, &output, launcher, &mut seat);
            drop(seat);
            let interrupted = is_interrupted(&result);
            if let Err(problems) = &result
                && !interrupted
            {
                stop.fetch_or(!options.keep_going, Ordering::SeqCst);
                failed(&unit.id, problems);
            }
            (context.tell)(Event::Unit(ended(unit, &result, watch.elapsed().as_secs())));
            *lock(&results[index]) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        let lanes = budget.lanes(work.len());
        (1..lanes).for_each(|_| drop(scope.spawn(lane)));
        lane();
    });
    let results: Vec<Option<Result<Summary, Problems>>> =
        results.into_iter().map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
    for (unit, result) in work.iter().zip(&results) {
        if result.is_none() {
            (context.tell)(Event::Unit(without_wheel(unit, Status::NotStarted, "it was not begun", Exit::Ok)));
        }
    }
    for unit in units {
        if let Some(why) = &unit.pruned {
            (context.tell)(Event::Unit(without_wheel(unit, Status::Pruned, why, Exit::Ok)));
        }
    }
    outcome(&work, results)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One unit, whose stages need not know that there are others.
fn one(
    context: &Context<'_>,
    unit: &Unit,
    output: &Output,
    launcher: &Launcher,
    seat: &mut Seat<'_>,
) -> Result<Summary, Problems> {
    let place = Place { id: &unit.id, folder: &unit.request.out, output };
    let tell = |event: Event| (context.tell)(event.of_unit(&unit.id));
    let context = Context { tell: &tell, ..*context };
    let name = unit.loaded.recipe.name.as_str();
    context.stage(name, Stage::Recipe, unit.loaded.describe());
    let made = prepare::prepare(&context, unit.loaded.clone(), &unit.request)
        .and_then(|prepared| build::unit(&context, &prepared, &unit.request, place, launcher, seat));
    // What a stage says when its child was stopped under it is true, and beside the point.
    let made = made.map_err(|problems| match problems.exit() {
        Exit::Interrupted => problems,
        _ if signals::caught() => stopped(name).into(),
        _ => problems,
    })?;
    tell(Event::Artifact(Box::new(made.clone())));
    Ok(made)
}

fn stopped(name: &str) -> Problem {
    Problem::new("cuwright::build::interrupted", Exit::Interrupted, "the build was interrupted")
        .why(format!("{name} was not compiling yet; everything it had started was stopped"))
        .help("run the same command again")
}

fn is_interrupted(result: &Result<Summary, Problems>) -> bool {
    result.as_ref().is_err_and(|problems| problems.exit() == Exit::Interrupted)
}

fn ended(unit: &Unit, result: &Result<Summary, Problems>, seconds: u64) -> Ended {
    match result {
        Ok(summary) => Ended {
            unit: unit.id.clone(),
            status: if summary.restored { Status::Restored } else { Status::Built },
            seconds,
            archs: Some(summary.requested.clone()),
            wheel: Some(summary.wheel.clone()),
            wheel_bytes: Some(summary.wheel_bytes),
            exit: Exit::Ok.code(),
            why: None,
        },
        Err(problems) => {
            let status = if is_interrupted(result) { Status::Interrupted } else { Status::Failed };
            let why = problems.iter().next().map(ToString::to_string).unwrap_or_default();
            Ended { seconds, ..without_wheel(unit, status, &why, problems.exit()) }
        }
    }
}

fn without_wheel(unit: &Unit, status: Status, why: &str, exit: Exit) -> Ended {
    Ended {
        unit: unit.id.clone(),
        status,
        seconds: 0,
        archs: unit.cell.get(Axis::Arch).map(str::to_owned),
        wheel: None,
        wheel_bytes: None,
        exit: exit.code(),
        why: Some(why.to_owned()),
    }
}

fn outcome(work: &[&Unit], results: Vec<Option<Result<Summary, Problems>>>) -> Outcome {
    let mut outcome = Outcome { wheels: Vec::new(), exit: Exit::Ok, interrupted: None };
    let mut stopped: Vec<(&str, Option<Problems>)> = Vec::new();
    for (unit, result) in work.iter().zip(results) {
        match result {
            Some(Ok(summary)) => outcome.wheels.push(summary.wheel),
            Some(Err(problems)) => {
                outcome.exit = outcome.exit.max(problems.exit());
                if problems.exit() == Exit::Interrupted {
                    stopped.push((&unit.id, Some(problems)));
                }
            }
            None => stopped.push((&unit.id, None)),
        }
    }
    if !stopped.is_empty() && signals::caught() {
        outcome.exit = Exit::Interrupted;
        outcome.interrupted = Some(told(&outcome, work.len(), stopped));
    }
    outcome
}

/// One message for everything that a signal stopped.
fn told(outcome: &Outcome, all: usize, mut stopped: Vec<(&str, Option<Problems>)>) -> Problems {
    if all == 1
        && let Some((_, Some(problems))) = stopped.pop()
    {
        return problems;
    }
    let problem = Problem::new("cuwright::build::interrupted", Exit::Interrupted, "the build was interrupted")
        .why("everything it had started was stopped");
    let problem = match outcome.wheels.len() {
        0 => problem,
        ready => problem.why(format!("finished before: {ready} of {all} units, which stay")),
    };
    let names = stopped.iter().map(|(id, problems)| match problems {
        Some(_) => format!("stopped: {id}"),
        None => format!("not begun: {id}"),
    });
    let problem = names.fold(problem, Problem::why);
    problem.help("run the same command again; finished units come from the cache").into()
}
