//! `build` and `plan`.

use super::World;
use crate::cli::build::{BuildArgs, PlanArgs};
use crate::domain::exit::Exit;
use crate::domain::problem::Problems;
use crate::pipeline::{self, Context, load, prepare};
use crate::report::{Event, Stage};

pub(super) fn build(args: &BuildArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let cache_root = world.cache_root()?;
    let tell = |event: Event| world.printer.event(&event);
    let context = Context { env: world.env, cache_root: &cache_root, tell: &tell };
    let request = args.choice.request(world.env.absolute(&args.out), args.no_cache);
    let mut worst = Exit::Ok;
    for name in args.choice.recipes() {
        let one = || -> Result<(), Problems> {
            let loaded = load::load(name, world.env)?;
            context.stage(&loaded.recipe.name, Stage::Recipe, describe(&loaded));
            let prepared = prepare::prepare(&context, loaded, &request)?;
            let summary = pipeline::build::unit(&context, &prepared, &request.out, request.no_cache)?;
            let wheel = summary.wheel.clone();
            tell(Event::Artifact(Box::new(summary)));
            if !world.json() {
                world.printer.data(&wheel);
            }
            Ok(())
        };
        match one() {
            Ok(()) => {}
            Err(problems) if args.keep_going && problems.exit() != Exit::Interrupted => {
                world.printer.problems(&problems);
                worst = worst.max(problems.exit());
            }
            Err(problems) => return Err(problems),
        }
    }
    Ok(worst)
}

pub(super) fn plan(args: &PlanArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let cache_root = world.cache_root()?;
    let tell = |event: Event| {
        if !matches!(event, Event::Stage { .. }) {
            world.printer.event(&event);
        }
    };
    let context = Context { env: world.env, cache_root: &cache_root, tell: &tell };
    let request = args.choice.request(world.env.absolute("dist".into()), false);
    let mut documents = Vec::new();
    for name in args.choice.recipes() {
        let loaded = load::load(name, world.env)?;
        documents.push(pipeline::plan::document(&context, &loaded, &request)?);
    }
    if world.json() {
        let json = serde_json::to_string_pretty(&documents).unwrap_or_default();
        world.printer.data(&json);
    } else {
        let texts: Vec<String> = documents.iter().map(crate::ui::plan::text).collect();
        world.printer.data(&texts.join("\n\n"));
    }
    Ok(Exit::Ok)
}

fn describe(loaded: &load::Loaded) -> String {
    if loaded.inferred {
        return format!(
            "{}; keep it as {} to change it:\n{}",
            loaded.origin,
            load::RECIPE_FILE,
            loaded.text.trim_end()
        );
    }
    let version = loaded.recipe.version.as_deref().map(|v| format!(" {v}")).unwrap_or_default();
    format!("{}{version} ({})", loaded.recipe.name, loaded.origin)
}
