//! The source tree of a loaded recipe: a folder as it is, or an sdist that is fetched once.

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

/// Gets the tree; `python` is asked for the package index where no variable names one.
///
/// # Errors
/// A folder that cannot be read, an index that cannot be reached, a wrong digest; in a dry run, a missing sdist.
pub fn obtain(context: &Context<'_>, loaded: &Loaded, python: &Python, request: &Request) -> Result<Tree, Problem> {
    let unit = loaded.recipe.name.as_str();
    let (name, version, sha256) = match &loaded.recipe.source {
        Source::Path(folder) => return path::tree(&loaded.folder.join(folder)),
        Source::Pypi { name, version, sha256 } => (name.clone(), version.clone(), sha256.clone()),
    };
    let sdist = Sdist { name, version, sha256 };
    if let Some(tree) = pypi::stored(&sdist, context.cache_root) {
        return Ok(tree);
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
    };
    let mut watch = |event| context.stage(unit, Stage::Source, toolchain::words(&event));
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
    pypi::tree(&sdist, context.cache_root, &folders, &Client::new(Patience::default()), index)
}
