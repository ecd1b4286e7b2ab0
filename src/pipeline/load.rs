//! From what the user names to a recipe: a built-in name, a recipe file, a folder, or a bare source tree.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::domain::arch::ArchSet;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::recipe::parse::Document;
use crate::recipe::size::ByteSize;
use crate::recipe::{Backend, Recipe, builtin, infer, resolve};
use crate::sys::Env;

/// Name of the recipe file in a folder.
pub const RECIPE_FILE: &str = "cuwright.toml";
/// Code of a folder that holds nothing to build.
pub const NOTHING: &str = "cuwright::recipe::nothing_to_build";
/// Files that a recipe can be inferred from.
const STARTS: &str = "setup.py, pyproject.toml, CMakeLists.txt, MODULE.bazel, WORKSPACE";
/// A recipe is a page of text; anything larger is another kind of file.
const LARGEST: u64 = 1 << 20;
/// Patches may carry generated code.
const LARGEST_PATCH: u64 = 64 << 20;

/// A recipe and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The recipe.
    pub recipe: Recipe,
    /// How to name its origin in messages.
    pub origin: String,
    /// Its text.
    pub text: String,
    /// The file it was read from, where it is one.
    pub file: Option<Utf8PathBuf>,
    /// Folder that relative paths are relative to.
    pub folder: Utf8PathBuf,
    /// Whether it was written by us for a bare source tree.
    pub inferred: bool,
}

impl Loaded {
    /// The recipe in one line, or whole where it was inferred.
    pub fn describe(&self) -> String {
        if self.inferred {
            return format!("{}; keep it as {RECIPE_FILE} to change it:\n{}", self.origin, self.text.trim_end());
        }
        let version = self.recipe.version.as_deref().map(|v| format!(" {v}")).unwrap_or_default();
        format!("{}{version} ({})", self.recipe.name, self.origin)
    }
}

/// Loads what `name` names; without a name, the current folder.
///
/// # Errors
/// Nothing there to build, or a recipe that is wrong.
pub fn load(name: Option<&str>, env: &Env) -> Result<Loaded, Problems> {
    let Some(name) = name else { return in_folder(env.current_dir(), ".") };
    let looks_like_path =
        name.contains('/') || Utf8Path::new(name).extension() == Some("toml") || matches!(name, "." | "..");
    if let Some(found) = builtin::find(name).filter(|_| !looks_like_path) {
        let document = Document { origin: found.name, text: found.text };
        let missing = |patch: &str| Err(format!("built-in recipes carry no `{patch}`"));
        let recipe = resolve::read(document, missing)?;
        let origin = format!("built-in recipe {}", found.name);
        let folder = env.current_dir().to_owned();
        return Ok(Loaded { recipe, origin, text: found.text.to_owned(), file: None, folder, inferred: false });
    }
    let path = env.absolute(Utf8Path::new(name));
    if path.is_dir() {
        return in_folder(&path, name);
    }
    // A link to nothing or into a loop is there, and the attempt to read it says what is wrong.
    if path.symlink_metadata().is_ok() {
        return from_file(&path, name);
    }
    Err(not_found(name, &path).into())
}

fn not_found(name: &str, path: &Utf8Path) -> Problem {
    let problem = Problem::new("cuwright::recipe::not_found", Exit::Recipe, format!("there is no recipe `{name}`"))
        .why(format!("no built-in recipe has that name, and there is no file or folder {path}"));
    match builtin::nearest_name(name) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None if name.parse::<ArchSet>().is_ok() => {
            problem.help(format!("`{name}` looks like an arch: a list is one argument, `--arch \"8.6 {name}\"`"))
        }
        None => problem,
    }
    .help(format!("`cuwright recipes` lists the built-in ones; else name a recipe file, or a folder with one of {RECIPE_FILE}, {STARTS}"))
}

fn from_file(path: &Utf8Path, shown: &str) -> Result<Loaded, Problems> {
    let text = read(path)?;
    let document = Document { origin: shown, text: &text };
    let beside = path.parent().unwrap_or(Utf8Path::new("/")).to_owned();
    let text_of = |name: &str| plain_text(&beside.join(name), LARGEST_PATCH);
    let recipe = resolve::read(document, text_of)?;
    Ok(Loaded { recipe, origin: shown.to_owned(), text, file: Some(path.to_owned()), folder: beside, inferred: false })
}

fn in_folder(path: &Utf8Path, shown: &str) -> Result<Loaded, Problems> {
    let recipe_file = path.join(RECIPE_FILE);
    if recipe_file.symlink_metadata().is_ok() {
        let shown = if shown == "." {
            RECIPE_FILE.to_owned()
        } else {
            format!("{}/{RECIPE_FILE}", shown.trim_end_matches('/'))
        };
        return from_file(&recipe_file, &shown);
    }
    let optional = |name: &str| {
        let path = path.join(name);
        path.exists().then(|| read(&path)).transpose()
    };
    let setup_py = optional("setup.py")?;
    // What cannot be read there is no part of a recipe, and the build says more about it.
    let optional_text = |name: &str| plain_text(&path.join(name), LARGEST).ok();
    let imports = setup_py.as_deref().map(infer::imports).unwrap_or_default();
    let helpers = imports.into_iter().filter_map(|name| optional_text(&name).map(|text| (name, text))).collect();
    let real = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let sight = infer::Sight {
        folder: real.file_name().unwrap_or_default().to_owned(),
        setup_py,
        setup_cfg: optional_text("setup.cfg"),
        pkg_info: optional_text("PKG-INFO"),
        helpers,
        pyproject: optional("pyproject.toml")?,
        cmake: optional("CMakeLists.txt")?,
        bazel: Backend::Bazel
            .files()
            .iter()
            .find_map(|&file| optional(file).map(|text| text.map(|text| (file.to_owned(), text))).transpose())
            .transpose()?,
    };
    let Some(infer::Inferred { text, file }) = infer::infer(&sight) else {
        let problem = Problem::new(NOTHING, Exit::Recipe, format!("nothing to build in {path}"))
            .why(format!("it holds none of {RECIPE_FILE}, {STARTS}"))
            .help("go to the project's folder, or name a recipe: `cuwright recipes` lists the built-in ones");
        return Err(problem.into());
    };
    let document = Document { origin: "inferred recipe", text: &text };
    let recipe = resolve::read(document, |_| Err(String::new()))?;
    let origin = format!("inferred from {}", path.join(file));
    Ok(Loaded { recipe, origin, text, file: None, folder: path.to_owned(), inferred: true })
}

fn read(path: &Utf8Path) -> Result<String, Problem> {
    plain_text(path, LARGEST).map_err(|why| {
        Problem::new("cuwright::recipe::unreadable", Exit::Recipe, format!("{path} cannot be read"))
            .why(why)
            .help("check the path and its permissions; a recipe is UTF-8 text")
    })
}

/// A text file of at most `largest` bytes. What is no file, a pipe above all, is not opened: that could take for ever.
fn plain_text(path: &Utf8Path, largest: u64) -> Result<String, String> {
    let missing = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound if path.is_symlink() => "it is a link to nothing".to_owned(),
        _ => error.to_string(),
    };
    let meta = path.metadata().map_err(missing)?;
    if !meta.is_file() {
        return Err("it is no file".to_owned());
    }
    if meta.len() > largest {
        return Err(format!("it has {}, and {} are allowed", ByteSize(meta.len()), ByteSize(largest)));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}
