//! `recipes`: the built-in ones, and how far each was tried.

use serde_json::json;

use super::World;
use crate::domain::exit::Exit;
use crate::domain::problem::Problems;
use crate::pipeline::load;
use crate::recipe::builtin;
use crate::ui::style::table;

pub(super) fn run(world: &World<'_>) -> Result<Exit, Problems> {
    let mut documents = Vec::new();
    let mut rows = vec![["NAME", "VERSION", "BACKEND", "TRIED"].map(str::to_owned).to_vec()];
    for one in builtin::ALL {
        let recipe = load::load(Some(one.name), world.env)?.recipe;
        let backend = recipe.build.backend.name();
        let said = recipe.tried.as_ref().map(ToString::to_string).unwrap_or_default();
        let version = recipe.version.clone().unwrap_or_else(|| "-".to_owned());
        rows.push(vec![one.name.to_owned(), version, backend.to_owned(), said]);
        documents.push(json!({
            "name": one.name,
            "version": recipe.version,
            "backend": backend,
            "source": recipe.source,
            "archs": recipe.targets.arch,
            "tried": recipe.tried,
        }));
    }
    let text = if world.json() { serde_json::to_string_pretty(&documents).unwrap_or_default() } else { table(&rows) };
    world.printer.data(&text);
    Ok(Exit::Ok)
}
