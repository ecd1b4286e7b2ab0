//! The source tree of a loaded recipe: a folder as it is, or an sdist that is fetched once.

use camino::Utf8PathBuf;

use super::load::Loaded;
use super::{Context, Request, toolchain};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::toolchain::Python;
use crate::provision;
use crate::recipe::Source;
use crate::report::Stage;
use crate::source::pypi::Sdist;
use crate::source::{Tree, path, pypi};
use crate::sys::net::{Client, Patience};

/// Code of "this would have to be fetched first".
pub const NOT_FETCHED: &str = "cuwright::source::not_fetched";

/// What can be known of a source before there is a toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// A folder, read.
    Tree(Tree),
    /// What to look for.
    Sdist(Sdist),
}

/// Reads a source that is a folder.
///
/// # Errors
/// A folder that cannot be read or holds nothing to build.
pub fn known(loaded: &Loaded) -> Result<Known, Problem> {
    match &loaded.recipe.source {
        Source::Path(folder) => {
            let folder: Utf8PathBuf = loaded.folder.join(folder).components().collect();
            buildable(path::tree(&folder)?, folder.as_str()).map(Known::Tree)
        }
        Source::Pypi { name, version, sha256 } => {
            Ok(Known::Sdist(Sdist { name: name.clone(), version: version.clone(), sha256: sha256.clone() }))
        }
    }
}

/// Gets the tree; `python` is asked for the package index where no variable names one.
///
/// # Errors
/// An index that cannot be reached, a wrong digest; in a dry run, a missing sdist.
pub fn obtain(
    context: &Context<'_>,
    unit: &str,
    known: Known,
    python: &Python,
    request: &Request,
) -> Result<Tree, Problem> {
    let sdist = match known {
        Known::Tree(tree) => return Ok(tree),
        Known::Sdist(sdist) => sdist,
    };
    let place = format!("the sdist of {} {}", sdist.name, sdist.version);
    if let Some(tree) = pypi::stored(&sdist, context.cache_root) {
        return buildable(tree, &place);
    }
    let wanted = format!("{} {} (sha256 {}…)", sdist.name, sdist.version, sdist.sha256.get(..12).unwrap_or_default());
    if request.dry {
        return Err(Problem::new(NOT_FETCHED, Exit::Recipe, "the source is not fetched yet")
            .why(wanted)
            .help("`cuwright build` fetches it"));
    }
    context.stage(unit, Stage::Source, format!("{wanted} from the package index"));
    let asked = provision::Request {
        python: python.clone(),
        requirements: Vec::new(),
        offline: request.offline,
        install: true,
        kind: provision::Kind::Whole,
    };
    let mut watch = |event| context.step(unit, Stage::Source, toolchain::words(&event));
    let index = || {
        if request.offline {
            return Err(Problem::new(
                "cuwright::source::offline",
                Exit::Recipe,
                "the source is not stored here, and the network may not be used",
            )
            .why(format!("{wanted} is neither in the cache nor in a folder of PIP_FIND_LINKS or UV_FIND_LINKS"))
            .help("run once without `--offline`, or put the file into such a folder"));
        }
        provision::index(&asked, context.cache_root, context.env, &mut watch)
    };
    let folders = provision::index::folders(context.env);
    buildable(pypi::tree(&sdist, context.cache_root, &folders, &Client::new(Patience::default()), index)?, &place)
}

/// A tree with a `setup.py` at its top, which is what the only backend runs.
fn buildable(tree: Tree, place: &str) -> Result<Tree, Problem> {
    if tree.files.iter().any(|entry| entry.path == "setup.py") {
        return Ok(tree);
    }
    let mut problem =
        Problem::new("cuwright::source::no_setup_py", Exit::Recipe, format!("there is no setup.py in {place}"))
            .why("setup.py is what a build runs");
    let deeper = tree.files.iter().find(|entry| entry.path.file_name() == Some("setup.py"));
    if let Some(folder) = deeper.and_then(|entry| entry.path.parent()) {
        problem = problem.help(format!("there is one in `{folder}`: name that folder as `source.path`"));
    }
    Err(problem.help("name the folder that holds setup.py as `source.path`"))
}
