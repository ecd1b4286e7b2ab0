//! `doctor`: one page about this machine.

use super::World;
use crate::cli::doctor::DoctorArgs;
use crate::domain::exit::Exit;
use crate::domain::problem::Problems;
use crate::pipeline::{Context, doctor};

pub(super) fn run(args: &DoctorArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let root = world.cache_root()?;
    let context = Context { env: world.env, cache_root: &root, tell: &|_| {} };
    let report = doctor::examine(&context, &args.recipes, &args.request()?, world.tables.as_ref());
    if world.json() {
        world.printer.data(&serde_json::to_string_pretty(&report).unwrap_or_default());
    } else {
        world.printer.data(&crate::ui::doctor::text(&report, world.printer.settings().verbose));
    }
    Ok(report.exit())
}
