//! `build` and `plan`.

use camino::{Utf8Path, Utf8PathBuf};

use super::{World, report_file};
use crate::cli::build::{BuildArgs, Choice, PlanArgs};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::pipeline::launch::Launcher;
use crate::pipeline::load::{self, Loaded};
use crate::pipeline::units::{self, Options, Units};
use crate::pipeline::{self, Context, Request};
use crate::plan::jobs::Bound;
use crate::report::Event;

pub(super) fn build(args: &BuildArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let cache_root = world.cache_root()?;
    let tell = |event: Event| world.printer.event(&event);
    let context = Context { env: world.env, cache_root: &cache_root, tell: &tell };
    let out = world.env.absolute(&args.out);
    let jobs = Bound::read(args.choice.jobs, world.env)?;
    let request = Request {
        no_launcher: args.no_launcher,
        timings: timings(args, &out, world)?,
        ..request(&args.choice, args.matrix, out, args.no_cache)?
    };
    let (recipes, unread) = load_all(&args.choice, world);
    let mut worst = Exit::Ok;
    if let Err(problems) = unread {
        // Nothing is compiled for an hour beside a recipe that cannot be read, unless that is wanted.
        if !args.keep_going || recipes.is_empty() {
            return Err(problems);
        }
        world.printer.problems(None, &problems);
        worst = problems.exit();
    }
    let found = spanned(recipes, &args.choice, args.matrix, &request)?;
    for text in &found.warnings {
        tell(Event::Warning { unit: None, text: text.clone() });
    }
    let launcher = Launcher::new(&request, jobs);
    tell(Event::Units { units: found.planned() });
    let options = Options { jobs, keep_going: args.keep_going };
    let failed = |unit: &str, problems: &Problems| world.printer.problems(Some(unit), problems);
    let outcome = units::run(&context, &found.units, options, &launcher, &failed);
    if let Some(problems) = &outcome.interrupted {
        world.printer.problems(None, problems);
    }
    if !world.json() {
        outcome.wheels.iter().for_each(|wheel| world.printer.data(wheel));
    }
    Ok(worst.max(outcome.exit))
}

pub(super) fn plan(args: &PlanArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let cache_root = world.cache_root()?;
    let tell = |event: Event| {
        if !matches!(event, Event::Stage { .. }) {
            world.printer.event(&event);
        }
    };
    let context = Context { env: world.env, cache_root: &cache_root, tell: &tell };
    let out = world.env.absolute("dist".into());
    let request = request(&args.choice, args.matrix, out, false)?;
    let (recipes, unread) = load_all(&args.choice, world);
    unread?;
    let found = spanned(recipes, &args.choice, args.matrix, &request)?;
    for text in &found.warnings {
        tell(Event::Warning { unit: None, text: text.clone() });
    }
    let mut worst = Exit::Ok;
    let mut documents = Vec::new();
    for unit in &found.units {
        match pipeline::plan::document(&context, unit) {
            // One cell that cannot be built here is no reason not to show the others.
            Err(problems) if args.matrix => {
                worst = worst.max(problems.exit());
                documents.push(pipeline::plan::refused(unit, &problems));
            }
            document => documents.push(document?),
        }
    }
    if world.json() {
        let json = serde_json::to_string_pretty(&documents).unwrap_or_default();
        world.printer.data(&json);
        return Ok(worst);
    }
    if args.matrix {
        world.printer.data(&crate::ui::plan::cells(&documents));
    }
    if !args.matrix || world.printer.settings().verbose {
        let whole = documents.iter().filter(|document| document.pruned.is_none() && document.refused.is_empty());
        let texts: Vec<String> = whole.map(crate::ui::plan::text).collect();
        let gap = if args.matrix { "\n" } else { "" };
        world.printer.data(&format!("{gap}{}", texts.join("\n\n")));
    }
    Ok(worst)
}

/// The page of timings that is asked for, empty for the one in the output folder.
fn timings(args: &BuildArgs, out: &Utf8Path, world: &World<'_>) -> Result<Option<Utf8PathBuf>, Problem> {
    let Some(asked) = &args.timings else { return Ok(None) };
    let Some(shown) = asked else { return Ok(Some(Utf8PathBuf::new())) };
    let page = world.env.absolute(shown);
    report_file::check(&page, shown, Some(out))?;
    Ok(Some(page))
}

/// What is asked; values that span a matrix are left out of it.
fn request(choice: &Choice, matrix: bool, out: Utf8PathBuf, no_cache: bool) -> Result<Request, Problem> {
    if matrix { Ok(choice.request_of_cells(out, no_cache)) } else { choice.request(out, no_cache) }
}

/// The recipes that can be read, and everything that is wrong with the others.
fn load_all(choice: &Choice, world: &World<'_>) -> (Vec<Loaded>, Result<(), Problems>) {
    let (mut recipes, mut unread) = (Vec::new(), Vec::new());
    for name in choice.recipes() {
        match load::load(name, world.env) {
            Ok(loaded) => recipes.push(loaded),
            Err(problems) => unread.extend(problems.iter().cloned()),
        }
    }
    (recipes, Problems::check(unread))
}

fn spanned(recipes: Vec<Loaded>, choice: &Choice, matrix: bool, request: &Request) -> Result<Units, Problems> {
    if matrix {
        return Ok(units::matrix(recipes, request, &choice.aim.axes())?);
    }
    Ok(units::plain(recipes, request))
}
