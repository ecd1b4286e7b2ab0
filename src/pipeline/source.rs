//! The source tree of a loaded recipe.

use super::load::Loaded;
use super::{Context, Request};
use crate::domain::problem::Problems;
use crate::source::Tree;

/// Gets the tree.
pub fn obtain(_: &Context<'_>, loaded: &Loaded, _: &Request) -> Result<Tree, Problems> {
    Ok(Tree { root: loaded.folder.clone(), digest: String::new() })
}
