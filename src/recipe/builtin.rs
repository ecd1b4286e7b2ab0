//! The recipes that travel inside the binary.
//!
//! They are ordinary recipe files under `recipes/`; nothing here may treat one of them differently.

use crate::domain::problem::nearest;

/// A built-in recipe.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Name on the command line.
    pub name: &'static str,
    /// Recipe text.
    pub text: &'static str,
}

/// Every built-in recipe, by name.
pub const ALL: [Builtin; 3] = [
    Builtin { name: "mmcv", text: include_str!("../../recipes/mmcv.toml") },
    Builtin { name: "torch-linear-assignment", text: include_str!("../../recipes/torch-linear-assignment.toml") },
    Builtin { name: "torch-scatter", text: include_str!("../../recipes/torch-scatter.toml") },
];

/// The recipe called `name`; `_` and `-` are one, as in package names.
pub fn find(name: &str) -> Option<Builtin> {
    let wanted = name.to_ascii_lowercase().replace('_', "-");
    ALL.into_iter().find(|recipe| recipe.name == wanted)
}

/// The built-in name that `name` was probably meant to be.
pub fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(name, ALL.iter().map(|recipe| recipe.name))
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Document, parse};
    use super::super::resolve::resolve;
    use super::*;

    #[test]
    fn every_built_in_recipe_is_legal_and_named_after_its_package() {
        for recipe in ALL {
            let document = Document { origin: recipe.name, text: recipe.text };
            let resolved = resolve(document, parse(document).unwrap(), |_| Err(String::new())).unwrap();
            assert_eq!(resolved.name, recipe.name);
            assert_eq!(find(recipe.name).map(|found| found.name), Some(recipe.name));
        }
        assert_eq!(find("torch_scatter").map(|found| found.name), Some("torch-scatter"));
    }
}
