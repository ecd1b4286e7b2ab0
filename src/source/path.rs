//! A source that is a folder of the user.
//!
//! It is read afresh each time, since nothing else says whether it changed, and never written to.

use camino::Utf8Path;

use super::tree::{Taken, Tree};
use crate::domain::{exit::Exit, problem::Problem};

/// The tree in `folder`, which must be absolute. `recipe`, a file that may lie in it, is no part of the source: what counts
/// of it is in the key by its meaning, and a build does not get to see it.
pub fn tree(folder: &Utf8Path, recipe: Option<&Utf8Path>) -> Result<Tree, Problem> {
    let refuse = |what: &str, help: &str| {
        let message = format!("the source {folder} {what}");
        Err(Problem::new("cuwright::source::no_folder", Exit::Recipe, message).help(help))
    };
    if !folder.exists() {
        return refuse("does not exist", "correct `source.path` in the recipe; it is relative to the recipe's folder");
    }
    if !folder.is_dir() {
        return refuse("is no folder", "unpack it, or name the folder that holds the project");
    }
    let tree = Tree::read(folder, Taken::Sources)?;
    let tree = match recipe.and_then(|recipe| recipe.strip_prefix(folder).ok()) {
        Some(inside) => tree.without(inside),
        None => tree,
    };
    if tree.files.is_empty() {
        return refuse("is empty", "name the folder that holds the project");
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    #[test]
    fn only_a_folder_with_something_in_it_is_a_source() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let said = |path: &Utf8Path| tree(path, None).map(|tree| tree.files.len()).map_err(|p| p.message().to_owned());
        assert!(said(&root.join("none")).unwrap_err().ends_with("does not exist"));
        assert!(said(root).unwrap_err().ends_with("is empty"));
        fs::write(root.join("setup.py"), "").unwrap();
        assert_eq!(said(root), Ok(1));
        let digest = |recipe: &str| {
            fs::write(root.join("cuwright.toml"), recipe).unwrap();
            tree(root, Some(&root.join("cuwright.toml"))).unwrap().digest
        };
        let first = digest("# one");
        assert_eq!(digest("# another"), first);
        assert_eq!(said(root), Ok(2));
        assert!(said(&root.join("setup.py")).unwrap_err().ends_with("is no folder"));
    }
}
