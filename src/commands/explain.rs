//! `explain`: a log from a file or standard input, or a topic's page.

use super::World;
use crate::cli::explain::ExplainArgs;
use crate::diagnose::topics;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems, nearest};
use crate::pipeline::explain::{self, Told};
use crate::ui::diagnosis;

pub(super) fn run(args: &ExplainArgs, world: &World<'_>) -> Result<Exit, Problems> {
    if args.list {
        return Ok(list(world));
    }
    let what = args.what.as_deref().unwrap_or("-");
    let path = world.env.absolute(what.into());
    if what != "-" && !path.exists() {
        return page(what, world);
    }
    let told = Told { cuda: args.cuda.as_deref(), torch: args.torch.as_deref(), gpu: args.gpu.as_deref() };
    let facts = explain::facts(&told, args.here, world.env)?;
    let found = if what == "-" { explain::standard_input(&facts) } else { explain::file(&path, what, &facts) }?;
    world.printer.data(&if world.json() {
        serde_json::to_string_pretty(&found).unwrap_or_default()
    } else {
        diagnosis::text(&found)
    });
    Ok(Exit::Ok)
}

fn list(world: &World<'_>) -> Exit {
    let all = topics::all();
    world.printer.data(&if world.json() {
        serde_json::to_string_pretty(&all).unwrap_or_default()
    } else {
        diagnosis::topics(&all)
    });
    Exit::Ok
}

fn page(name: &str, world: &World<'_>) -> Result<Exit, Problems> {
    let all = topics::all();
    let Some(topic) = topics::find(&all, name) else {
        let near = nearest(name, all.iter().map(|topic| topic.name.as_str()));
        let problem =
            Problem::new("cuwright::usage::no_topic", Exit::Usage, format!("`{name}` is no file and no topic"));
        let problem = near.into_iter().fold(problem, |problem, near| problem.help(format!("did you mean `{near}`?")));
        return Err(problem
            .help("`cuwright explain --list` names every topic; `-` reads a log from standard input")
            .into());
    };
    world.printer.data(&if world.json() {
        serde_json::to_string_pretty(topic).unwrap_or_default()
    } else {
        diagnosis::page(topic)
    });
    Ok(Exit::Ok)
}
