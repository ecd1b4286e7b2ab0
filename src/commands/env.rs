//! `env`: the environment of a build, written for whoever runs it without cuwright.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::World;
use crate::cli::env::{EnvArgs, Which};
use crate::domain::arch::dialect::CANNOT_HOLD;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::emit::{self, Format, Variables};
use crate::pipeline::env::{Composed, compose, no_recipe};
use crate::pipeline::{Context, load, prepare};
use crate::plan;
use crate::recipe::Recipe;
use crate::report::{ErrorMessage, Event};
use crate::sys::env_vars;

/// An environment.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
struct EnvReport {
    /// Version of this form.
    schema: u32,
    /// The canonical arch list.
    archs: String,
    /// Why these archs.
    why: Vec<String>,
    /// What one should know although it works.
    warnings: Vec<String>,
    /// Variables to set.
    variables: BTreeMap<String, String>,
    /// Folders that go in front of `PATH`.
    path: Vec<String>,
    /// The toolchain in one line, where one is here.
    toolchain: Option<String>,
    /// What stands against a toolchain here, where one was wanted.
    missing: Vec<ErrorMessage>,
}

pub(super) fn run(args: &EnvArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let format = if world.json() { Format::Json } else { args.format };
    let root = world.cache_root()?;
    let tell = |event: Event| {
        if !matches!(event, Event::Stage { .. }) {
            world.printer.event(&event);
        }
    };
    let context = Context { env: world.env, cache_root: &root, tell: &tell };
    let loaded = match load::load(args.recipe.as_deref(), world.env) {
        Err(problems) if args.recipe.is_none() && problems.iter().all(|p| p.code() == load::NOTHING) => None,
        loaded => Some(loaded?),
    };
    let here = args.toolchain.map_or(!format.travels(), |which| which == Which::Here);
    let recipe = loaded.as_ref().map(|loaded| loaded.recipe.clone());
    let composed = compose(&context, &loaded.unwrap_or_else(|| no_recipe(&context)), &args.request()?, here)?;
    let mut warnings = composed.selected.warnings.clone();
    let mut variables = Variables { set: archs(args, &composed, &mut warnings)?, path: Vec::new() };
    add_toolchain(&composed, recipe.as_ref(), &mut variables);
    if let [first, ..] = composed.missing.as_slice() {
        warnings.push(format!("archs only, no toolchain is named: {first}"));
    }
    if !variables.path.is_empty() && !format.extends_path() {
        warnings.push(format!("PATH is not in it: put {} in front of yours", variables.path.join(":")));
    }
    if !format.travels() {
        warnings.extend(staying(&variables, composed.selected.inherited, world));
    }
    if format == Format::Json {
        let report = report(&composed, variables, warnings);
        world.printer.data(&serde_json::to_string_pretty(&report).unwrap_or_default());
        return Ok(Exit::Ok);
    }
    let text = emit::write(format, &variables)?;
    for text in composed.selected.why {
        world.printer.event(&Event::Note { unit: None, text });
    }
    for text in warnings {
        world.printer.event(&Event::Warning { unit: None, text });
    }
    world.printer.data(&text);
    Ok(Exit::Ok)
}

/// The arch variables of everybody who has words for the set.
fn archs(args: &EnvArgs, composed: &Composed, warnings: &mut Vec<String>) -> Result<Vec<(String, String)>, Problems> {
    let set = &composed.selected.set;
    let (wanted, named) = args.wanted();
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut refused: Vec<Problem> = Vec::new();
    for one in wanted {
        let Some(consumer) = one.consumer() else { continue };
        match consumer.variables(set, composed.torch_allows.as_deref()) {
            Ok(pairs) => {
                if let Some(instead) = consumer.builds_instead(set) {
                    warnings.push(format!("{} builds {instead} when it is told {set}", one.name()));
                }
                if consumer.reads_definitions() {
                    let list: Vec<String> = pairs.iter().map(|(name, _)| format!("-D{name}=\"${name}\"")).collect();
                    warnings.push(format!("{} reads no environment: pass {} to CMake", one.name(), list.join(" ")));
                }
                for pair in pairs {
                    if !variables.contains(&pair) {
                        variables.push(pair);
                    }
                }
            }
            Err(problems) => {
                if let Some(problem) = problems.iter().next().filter(|_| !named) {
                    let why = problem.evidence().first().map(|why| format!(" ({why})")).unwrap_or_default();
                    warnings.push(format!("{} is left out: {problem}{why}", one.name()));
                }
                refused.extend(problems.iter().cloned());
            }
        }
    }
    if named {
        Problems::check(refused)?;
    } else if variables.is_empty() {
        let none = Problem::new(CANNOT_HOLD, Exit::Toolchain, format!("no consumer has words for {set}"));
        return Err(none.help("name other archs, or give nvcc its flags: `cuwright arch LIST --to nvcc`").into());
    }
    Ok(variables)
}

fn add_toolchain(composed: &Composed, recipe: Option<&Recipe>, variables: &mut Variables) {
    if let Some(toolchain) = &composed.toolchain {
        let tools = plan::of_toolchain(toolchain);
        variables.set.extend(tools.into_iter().map(|(name, value)| (name.to_owned(), value)));
        variables.path.extend(toolchain.path.iter().map(ToString::to_string));
    }
    for (name, value) in recipe.iter().flat_map(|recipe| &recipe.build.env) {
        variables.set.retain(|(known, _)| known != name);
        variables.set.push((name.clone(), value.clone()));
    }
}

/// Arch variables of the caller that none of ours replaces, and that a build would still see.
fn staying(variables: &Variables, inherited: bool, world: &World<'_>) -> Vec<String> {
    let ours: BTreeSet<&str> = variables.set.iter().map(|(name, _)| name.as_str()).collect();
    // The list that the targets were read from says the same as ours.
    let chosen = |name: &str| inherited && name == env_vars::TORCH_CUDA_ARCH_LIST;
    plan::ARCH_VARIABLES
        .into_iter()
        .filter(|name| !ours.contains(name) && !chosen(name))
        .filter_map(|name| Some((name, world.env.get(name)?)))
        .map(|(name, value)| format!("{name}={value} of the environment stays; `unset {name}` keeps it from a build"))
        .collect()
}

fn report(composed: &Composed, variables: Variables, warnings: Vec<String>) -> EnvReport {
    EnvReport {
        schema: 1,
        archs: composed.selected.set.to_string(),
        why: composed.selected.why.clone(),
        warnings,
        variables: variables.set.into_iter().collect(),
        path: variables.path,
        toolchain: composed.toolchain.as_ref().map(prepare::describe),
        missing: composed.missing.iter().map(ErrorMessage::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schema_is_what_the_code_says() {
        crate::schema_check::<super::EnvReport>("schemas/env.schema.json");
    }
}
