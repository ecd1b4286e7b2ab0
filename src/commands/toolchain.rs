//! `toolchain`: list, install, remove.

use std::time::Duration;

use serde_json::json;

use super::World;
use crate::cli::toolchain::{ToolchainAction, ToolchainArgs};
use crate::domain::exit::Exit;
use crate::domain::problem::Problems;
use crate::pipeline::{Context, Request, load, prepare};
use crate::provision::list;
use crate::recipe::Recipe;
use crate::report::Event;
use crate::sys::clock;
use crate::ui::style::{age, bytes, table};

pub(super) fn run(args: &ToolchainArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let root = world.cache_root()?;
    match &args.action {
        ToolchainAction::List => {
            let found = list::list(&root);
            if world.json() {
                world.printer.data(&serde_json::to_string_pretty(&found).unwrap_or_default());
            } else {
                world.printer.data(&text(&found));
            }
        }
        ToolchainAction::Install { recipe, cuda, torch, python, cc, offline } => {
            let tell = |event: Event| world.printer.event(&event);
            let context = Context { env: world.env, cache_root: &root, tell: &tell };
            let recipe = match recipe {
                Some(name) => load::load(Some(name), world.env)?.recipe,
                None => Recipe::without_source("toolchain"),
            };
            let request = Request {
                cuda: cuda.clone(),
                torch: torch.clone(),
                python: python.clone(),
                cc: cc.clone(),
                offline: *offline,
                ..Request::default()
            };
            let chosen = prepare::choose(&context, &recipe, &request, None)?;
            if world.json() {
                let json =
                    json!({ "toolchain": chosen.toolchain, "why": chosen.notes, "considered": chosen.considered });
                world.printer.data(&json.to_string());
            } else {
                world.printer.data(&prepare::describe(&chosen.toolchain));
            }
        }
        ToolchainAction::Remove { digests } => {
            for digest in digests {
                let removed = list::remove(&root, digest)?;
                if world.json() {
                    world.printer.data(&json!({ "removed": removed.digest, "bytes": removed.bytes }).to_string());
                } else {
                    world.printer.data(&format!("removed {} ({})", removed.digest, bytes(removed.bytes)));
                }
            }
        }
    }
    Ok(Exit::Ok)
}

fn text(found: &[list::Listed]) -> String {
    if found.is_empty() {
        return "no toolchain is provisioned; `cuwright toolchain install` makes one".to_owned();
    }
    let now = clock::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut rows = vec![["DIGEST", "PYTHON", "TORCH", "CUDA", "SIZE", "USED"].map(str::to_owned).to_vec()];
    for one in found {
        rows.push(vec![
            one.digest.get(..12).unwrap_or(&one.digest).to_owned(),
            one.python.clone(),
            one.torch.clone().unwrap_or_else(|| "-".to_owned()),
            one.cuda.clone().unwrap_or_else(|| "-".to_owned()),
            bytes(one.bytes),
            age(now.saturating_sub(Duration::from_secs(one.last_used))),
        ]);
    }
    table(&rows)
}
