//! The source tree of a loaded recipe: a folder as it is, or an sdist or a commit that is fetched once.

use camino::{Utf8Path, Utf8PathBuf};

use super::load::Loaded;
use super::{Context, Request, toolchain};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::toolchain::Python;
use crate::provision;
use crate::recipe::{Backend, Build, Source};
use crate::report::Stage;
use crate::source::git::Commit;
use crate::source::pypi::Sdist;
use crate::source::{Tree, git, path, pypi};
use crate::sys::net::{Client, Patience};

/// Code of "this would have to be fetched first".
pub const NOT_FETCHED: &str = "cuwright::source::not_fetched";

/// What can be known of a source before there is a toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// A folder, read.
    Tree(Tree),
    /// The sdist to look for.
    Sdist(Sdist),
    /// The commit to fetch.
    Commit(Commit),
}

/// Reads a source that is a folder.
///
/// # Errors
/// A folder that cannot be read or holds nothing to build.
pub fn known(loaded: &Loaded) -> Result<Known, Problem> {
    match &loaded.recipe.source {
        Source::Path(folder) => {
            let folder: Utf8PathBuf = loaded.folder.join(folder).components().collect();
            buildable(path::tree(&folder, loaded.file.as_deref())?, folder.as_str(), &loaded.recipe.build)
                .map(Known::Tree)
        }
        Source::Pypi { name, version, sha256 } => {
            Ok(Known::Sdist(Sdist { name: name.clone(), version: version.clone(), sha256: sha256.clone() }))
        }
        Source::Git { url, commit, submodules } => {
            let is_path = url.starts_with(['/', '.']);
            let url = if is_path { loaded.folder.join(url).components().collect() } else { Utf8PathBuf::from(url) };
            Ok(Known::Commit(Commit { url: url.into_string(), id: commit.clone(), submodules: *submodules }))
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
    build: &Build,
    request: &Request,
) -> Result<Tree, Problem> {
    let sdist = match known {
        Known::Tree(tree) => return Ok(tree),
        Known::Commit(commit) => return checked_out(context, unit, &commit, build, request),
        Known::Sdist(sdist) => sdist,
    };
    let place = format!("the sdist of {} {}", sdist.name, sdist.version);
    if let Some(tree) = pypi::stored(&sdist, context.cache_root) {
        return buildable(tree, &place, build);
    }
    let wanted = format!("{} {} (sha256 {}…)", sdist.name, sdist.version, sdist.sha256.get(..12).unwrap_or_default());
    if request.dry {
        return Err(not_fetched(wanted));
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
            let why = format!("{wanted} is neither in the cache nor in a folder of PIP_FIND_LINKS or UV_FIND_LINKS");
            return Err(offline(why).help("run once without `--offline`, or put the file into such a folder"));
        }
        provision::index(&asked, context.cache_root, context.env, &mut watch)
    };
    let folders = provision::index::folders(context.env);
    buildable(
        pypi::tree(&sdist, context.cache_root, &folders, &Client::new(Patience::default()), index)?,
        &place,
        build,
    )
}

fn checked_out(
    context: &Context<'_>,
    unit: &str,
    commit: &Commit,
    build: &Build,
    request: &Request,
) -> Result<Tree, Problem> {
    let wanted = format!("commit {}… of {}", commit.id.get(..12).unwrap_or_default(), commit.url);
    if let Some(tree) = git::stored(commit, context.cache_root) {
        return buildable(tree, &wanted, build);
    }
    if request.dry {
        return Err(not_fetched(wanted));
    }
    if request.offline && !commit.is_local() {
        return Err(offline(format!("{wanted} is not in the cache"))
            .help("run once without `--offline`, or clone it and name the clone as `source.git`"));
    }
    let also = if commit.submodules { " and its submodules" } else { "" };
    context.stage(unit, Stage::Source, format!("{wanted}{also}"));
    buildable(git::tree(commit, context.cache_root, context.env)?, &wanted, build)
}

fn not_fetched(wanted: String) -> Problem {
    Problem::new(NOT_FETCHED, Exit::Recipe, "the source is not fetched yet")
        .why(wanted)
        .help("`cuwright build` fetches it")
}

fn offline(why: String) -> Problem {
    let message = "the source is not stored here, and the network may not be used";
    Problem::new("cuwright::source::offline", Exit::Recipe, message).why(why)
}

/// A tree with what its build system starts from.
fn buildable(tree: Tree, place: &str, build: &Build) -> Result<Tree, Problem> {
    let folder = Utf8Path::new(&build.folder);
    let files = build.backend.files();
    let starts = |path: &Utf8Path| path.file_name().is_some_and(|name| files.contains(&name));
    if tree.files.iter().any(|entry| starts(&entry.path) && entry.path.parent() == Some(folder)) {
        return Ok(tree);
    }
    let (name, backend) = (files.join(" or "), build.backend);
    let code = if backend == Backend::SetupPy { NO_SETUP_PY } else { NO_BUILD_FILE };
    let place = if build.folder.is_empty() { place.to_owned() } else { format!("{folder} of {place}") };
    let mut problem = Problem::new(code, Exit::Recipe, format!("there is no {name} in {place}"))
        .why(format!("{name} is what a build with the backend `{}` starts from", backend.name()));
    let deeper = tree.files.iter().find(|entry| starts(&entry.path)).and_then(|entry| entry.path.parent());
    if let Some(deeper) = deeper.filter(|deeper| !deeper.as_str().is_empty()) {
        problem = problem.help(format!("there is one in `{deeper}`: write `folder = \"{deeper}\"` in `[build]`"));
    }
    if let Some(other) = other(&tree, folder).filter(|other| *other != backend) {
        problem = problem.help(format!("write `backend = \"{}\"` in `[build]`, whose file is there", other.name()));
    }
    Err(problem.help("name the folder that holds it as `source.path`, or as `build.folder` of a larger tree"))
}

const NO_SETUP_PY: &str = "cuwright::source::no_setup_py";
const NO_BUILD_FILE: &str = "cuwright::source::no_build_file";

/// The first backend whose file lies in `folder`.
fn other(tree: &Tree, folder: &Utf8Path) -> Option<Backend> {
    let holds = |name: &str| tree.files.iter().any(|entry| entry.path == folder.join(name));
    Backend::ALL.into_iter().find(|backend| backend.files().iter().any(|name| holds(name)))
}
