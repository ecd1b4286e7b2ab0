//! A recipe for a bare source tree: written as text, so that it can be shown, kept and edited.
//!
//! It states only what the tree shows, each line with the file that shows it. It names no archs: whoever asks for the build
//! must name them or have a GPU.

mod metadata;
pub mod switches;

use std::fmt::Write as _;

use self::metadata::Stated;
use self::switches::{On, Switch};
use super::Backend;
use crate::domain::requirement::{self, Requirement};

/// What a look at a source tree found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// Name of the tree's folder.
    pub folder: String,
    /// Text of `setup.py`.
    pub setup_py: Option<String>,
    /// Text of `pyproject.toml`.
    pub pyproject: Option<String>,
    /// Text of `CMakeLists.txt`.
    pub cmake: Option<String>,
    /// Text of `setup.cfg`.
    pub setup_cfg: Option<String>,
    /// Text of `PKG-INFO`, which an sdist has.
    pub pkg_info: Option<String>,
    /// Names and texts of the Python files that `setup.py` imports from the tree.
    pub helpers: Vec<(String, String)>,
    /// Text of the file that makes the folder a workspace of Bazel's, and that file's name.
    pub bazel: Option<(String, String)>,
}

/// A recipe that was written for a bare tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// The recipe.
    pub text: String,
    /// The file that it was read from.
    pub file: String,
}

/// A recipe for what was seen; `None` where there is nothing to build.
///
/// A build backend that a project names wins over a `setup.py`, which then is only a leftover or a part of it; and
/// whatever makes a wheel wins over CMake and Bazel, which that may run itself.
pub fn infer(sight: &Sight) -> Option<Inferred> {
    let system = sight.pyproject.as_deref().and_then(build_system).filter(|system| !system.is_setuptools());
    if let Some(system) = system {
        return Some(pyproject(sight, &system));
    }
    if sight.setup_py.is_some() {
        return Some(setup_py(sight));
    }
    if let Some(system) = sight.pyproject.as_deref().and_then(build_system) {
        return Some(pyproject(sight, &system));
    }
    if let Some(lists) = &sight.cmake {
        return Some(cmake(sight, lists));
    }
    sight.bazel.as_ref().map(|(file, text)| bazel(sight, file, text))
}

/// Files of the tree that `setup` may import, as paths below its folder: `from tools.x import y` is `tools/x.py`. Those that
/// are not there are for the caller to leave out.
pub fn imports(setup: &str) -> Vec<String> {
    let modules = setup.lines().filter_map(|line| {
        let mut words = line.trim_start().split([' ', ',', '\t']).filter(|word| !word.is_empty());
        let word = words.next().filter(|word| matches!(*word, "import" | "from"))?;
        let module = words.next()?.trim_start_matches('.');
        let name = words.nth(1).filter(|_| word == "from").map(|name| format!("{module}/{name}"));
        Some([Some(module.to_owned()), name])
    });
    let mut files: Vec<String> = modules
        .flatten()
        .flatten()
        .map(|module| module.replace('.', "/"))
        .filter(|module| module.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '/')))
        .flat_map(|module| [format!("{module}.py"), format!("{module}/__init__.py")])
        .collect();
    files.sort();
    files.dedup();
    files
}

/// The beginning of a recipe: the project's name and version with the files that state them, and the backend.
fn head(sight: &Sight, own: Option<Stated>, toolchain: &str, backend: Backend, file: &str) -> String {
    let folder = || (clean(&sight.folder), "the folder's name");
    let (name, origin) = own.map_or_else(folder, |own| (own.value, own.file));
    let mut package = format!("name = {}  # {origin}\n", toml_string(&name));
    // A version that a program computes is that of the wheel.
    if let Some(Stated { value, file }) = metadata::version(sight).filter(|stated| stated.file != "setup.py") {
        let _ = writeln!(package, "version = {}  # {file}", toml_string(&value));
    }
    format!(
        "schema = 1\n\n[package]\n{package}\n[source]\npath = \".\"\n{toolchain}\n[build]\nbackend = \"{}\"  # \
         {file} is there\n",
        backend.name()
    )
}

fn setup_py(sight: &Sight) -> Inferred {
    let system = sight.pyproject.as_deref().and_then(build_system);
    let toolchain = system.map(|system| toolchain(&system, Backend::SetupPy.default_requires())).unwrap_or_default();
    let mut text = head(sight, metadata::name(sight), &toolchain, Backend::SetupPy, "setup.py");
    text.push_str(&switched("env", &python_switches(sight)));
    Inferred { text, file: "setup.py".to_owned() }
}

/// `[toolchain]` of a project that names what its build needs: that, and of `more` what it does not name.
fn toolchain(system: &BuildSystem, more: &[&str]) -> String {
    let own: Vec<(&String, Requirement)> =
        system.requires.iter().filter_map(|text| Some((text, text.parse::<Requirement>().ok()?))).collect();
    // A bound of ours stays where the project's own leaves room for it.
    let fits = |text: &&&str| {
        let Ok(ours) = text.parse::<Requirement>() else { return false };
        let mut same = own.iter().filter(|(_, own)| own.name == ours.name).peekable();
        if same.peek().is_none() {
            return true;
        }
        let joined = |own: &Requirement| own.range.iter().chain(ours.range.iter()).cloned().collect();
        !ours.range.is_empty() && same.all(|(_, own)| requirement::contradiction(&joined(own)).is_none())
    };
    let more = more.iter().filter(fits);
    // torch comes with the toolchain.
    let all = own.iter().filter(|(_, own)| own.name != "torch").map(|(text, _)| text.as_str()).chain(more.copied());
    let all: Vec<String> = all.map(toml_string).collect();
    let mut text =
        format!("\n[toolchain]\nbuild-requires = [{}]  # pyproject.toml, and what it leaves out\n", all.join(", "));
    let pin = own.iter().find(|(_, own)| own.name == "torch" && !own.range.is_empty() && !own.conditional);
    if let Some((_, torch)) = pin {
        let _ = writeln!(text, "torch = {}  # pyproject.toml", toml_string(&torch.range.to_string()));
    }
    text
}

/// The switches that setup.py and what it imports read.
fn python_switches(sight: &Sight) -> Vec<Switch> {
    let setup = sight.setup_py.iter().map(|text| ("setup.py".to_owned(), text.clone()));
    switches::in_python(&setup.chain(sight.helpers.iter().cloned()).collect::<Vec<_>>())
}

/// Lines of `[build]` that set `switches` in the table `table`, each with the place that reads it.
fn switched(table: &str, switches: &[Switch]) -> String {
    let line = |Switch { name, place, on }: &Switch| match on {
        On::Value(value, how) => format!("{table}.{name} = {}  # {place} {how}\n", toml_string(value)),
        On::ByDefault => format!("# {table}.{name} is not set: {place} takes it as on\n"),
        On::Unknown => format!("# {table}.{name} is not set: {place} reads it, but for which value is unknown\n"),
    };
    switches.iter().map(line).collect()
}

fn pyproject(sight: &Sight, system: &BuildSystem) -> Inferred {
    // CMake and ninja are what such backends look for and do not always name.
    let toolchain = toolchain(system, &["build", "cmake", "ninja"]);
    let mut text = head(sight, metadata::name(sight), &toolchain, Backend::Pyproject, "pyproject.toml");
    let named = |name: &str| system.requires.iter().any(|own| own.parse::<Requirement>().is_ok_and(|r| r.name == name));
    let uses_torch = named("torch") || sight.cmake.as_deref().is_some_and(|lists| lists.contains("find_package(Torch"));
    if !uses_torch && !system.is_setuptools() {
        text.push_str("archs-for = [\"cmake\"]  # no torch is named\n");
    }
    text.push_str(&switched("env", &python_switches(sight)));
    Inferred { text, file: "pyproject.toml".to_owned() }
}

fn cmake(sight: &Sight, lists: &str) -> Inferred {
    let own = call(lists, "project").and_then(|inside| inside.split_whitespace().next().map(str::to_owned));
    let own = own.filter(|name| legal(name)).map(|value| Stated { value, file: "CMakeLists.txt" });
    let mut text = head(sight, own, "", Backend::Cmake, "CMakeLists.txt");
    if let Some((mark, consumer)) = READERS.iter().find(|(mark, _)| lists.contains(mark)) {
        let _ = writeln!(text, "archs-for = [\"{consumer}\"]  # CMakeLists.txt has `{mark}`");
    }
    let (options, variables) = switches::in_cmake("CMakeLists.txt", lists);
    text.push_str(&switched("env", &variables));
    text.push_str(&switched("cmake.defines", &options));
    Inferred { text, file: "CMakeLists.txt".to_owned() }
}

/// What in a lists file shows who reads the archs, the surest first; without any, CMake itself does.
const READERS: [(&str, &str); 3] =
    [("find_package(Torch", "torch"), ("CUDA_ARCH_NAME", "caffe"), ("CUDA_ARCH_BIN", "opencv")];

fn bazel(sight: &Sight, file: &str, text: &str) -> Inferred {
    let call = call(text, "workspace").or_else(|| call(text, "module")).unwrap_or_default();
    let own = call.split_once("name").and_then(|(_, rest)| rest.split(['"', '\'']).nth(1).map(str::to_owned));
    let file_name = if file == "MODULE.bazel" { "MODULE.bazel" } else { "WORKSPACE" };
    let own = own.filter(|name| legal(name)).map(|value| Stated { value, file: file_name });
    let mut text = head(sight, own, "", Backend::Bazel, file);
    text.push_str("bazel.targets = [\"//...\"]\n");
    Inferred { text, file: file.to_owned() }
}

/// What stands in the parentheses of the first call of `name` at the start of a line.
fn call(text: &str, name: &str) -> Option<String> {
    let line =
        |line: &&str| line.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('('));
    let start = text.lines().find(line)?;
    let at = start.as_ptr() as usize - text.as_ptr() as usize;
    let inside = text[at..].split_once('(')?.1;
    inside.split_once(')').map(|(inside, _)| inside.to_owned())
}

/// `[build-system]` of a `pyproject.toml`.
struct BuildSystem {
    backend: String,
    requires: Vec<String>,
}

impl BuildSystem {
    fn is_setuptools(&self) -> bool {
        self.backend.starts_with("setuptools")
    }
}

fn build_system(pyproject: &str) -> Option<BuildSystem> {
    let table: toml::Table = toml::from_str(pyproject).ok()?;
    let system = table.get("build-system")?;
    let requires = system.get("requires").and_then(toml::Value::as_array).into_iter().flatten();
    let backend = system.get("build-backend").and_then(toml::Value::as_str).unwrap_or("setuptools").to_owned();
    Some(BuildSystem { backend, requires: requires.filter_map(toml::Value::as_str).map(str::to_owned).collect() })
}

/// `[project]` of `pyproject.toml`.
fn project(sight: &Sight) -> Option<toml::Table> {
    let table: toml::Table = toml::from_str(sight.pyproject.as_deref()?).ok()?;
    table.get("project")?.as_table().cloned()
}

fn legal(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn clean(folder: &str) -> String {
    let name: String =
        folder.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') { c } else { '-' }).collect();
    let name = name.trim_matches(['-', '.']).to_owned();
    if name.is_empty() { "extension".to_owned() } else { name }
}

fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::parse::{Document, parse};
    use super::super::resolve::resolve;
    use super::super::{Backend, Recipe};
    use super::*;
    use crate::domain::arch::dialect::Consumer;

    fn sight(files: &[(&str, &str)]) -> Sight {
        let text = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
        Sight {
            folder: "my folder é".into(),
            setup_py: text("setup.py"),
            pyproject: text("pyproject.toml"),
            cmake: text("CMakeLists.txt"),
            bazel: text("WORKSPACE").map(|text| ("WORKSPACE".to_owned(), text)),
            ..Sight::default()
        }
    }

    fn recipe(sight: &Sight) -> Recipe {
        let inferred = infer(sight).unwrap();
        let document = Document { origin: "inferred", text: &inferred.text };
        resolve(document, parse(document).unwrap(), |_| Err(String::new())).unwrap()
    }

    fn name_of(folder: &str, setup: &str) -> String {
        recipe(&Sight { folder: folder.into(), ..sight(&[("setup.py", setup)]) }).name
    }

    #[test]
    fn the_name_comes_from_the_setup_call() {
        assert_eq!(name_of("x", "setup(name='my_ext', ext_modules=[CUDAExtension(name='a.b')])"), "my_ext");
        assert_eq!(name_of("x", "setup(\n  name = \"my-ext\")"), "my-ext");
    }

    #[test]
    fn a_computed_name_falls_back_to_the_folder() {
        assert_eq!(name_of("my ext é", "setup(name=NAME)"), "my-ext");
        assert_eq!(name_of("tree", "setup(ext_modules=[CUDAExtension(name='a.b')])"), "tree");
        assert_eq!(name_of("", "setup()"), "extension");
    }

    const SCIKIT: &str = "[build-system]\nrequires = [\"scikit-build-core>=0.10\"]\nbuild-backend = \
                          \"scikit_build_core.build\"\n[project]\nname = \"sk\"\n";

    #[test]
    fn a_named_build_backend_wins_and_brings_its_requirements() {
        let found = recipe(&sight(&[("setup.py", ""), ("pyproject.toml", SCIKIT), ("CMakeLists.txt", "")]));
        assert_eq!((found.name.as_str(), found.build.backend), ("sk", Backend::Pyproject));
        assert_eq!(found.toolchain.build_requires, ["scikit-build-core>=0.10", "build", "cmake", "ninja"]);
        assert_eq!(found.build.archs.consumers, [Consumer::Cmake]);
        let setuptools = "[build-system]\nrequires = [\"setuptools\", \"torch\"]\n";
        let old = recipe(&sight(&[("setup.py", "setup(name='x')"), ("pyproject.toml", setuptools)]));
        assert_eq!(old.build.backend, Backend::SetupPy);
        let new = recipe(&sight(&[("pyproject.toml", setuptools)]));
        assert_eq!((new.build.backend, new.build.archs.consumers.len()), (Backend::Pyproject, 2));
        assert!(!new.toolchain.build_requires.contains(&"torch".to_owned()));
    }

    #[test]
    fn what_pyproject_requires_is_joined_with_what_setup_py_needs_anyway() {
        let system = "[build-system]\nrequires = [\"setuptools>=77\", \"torch==2.11.0\", \"pybind11\"]\n";
        let found = recipe(&sight(&[("setup.py", "setup(name='x')"), ("pyproject.toml", system)]));
        assert_eq!(found.toolchain.build_requires, ["setuptools>=77", "pybind11", "setuptools<81", "wheel", "ninja"]);
        assert_eq!((found.toolchain.torch.as_str(), found.build.backend), ("==2.11.0", Backend::SetupPy));
        let newer = system.replace("77", "82");
        let found = recipe(&sight(&[("setup.py", "setup(name='x')"), ("pyproject.toml", &newer)]));
        assert_eq!(found.toolchain.build_requires, ["setuptools>=82", "pybind11", "wheel", "ninja"]);
    }

    #[test]
    fn switches_are_set_with_their_place_and_never_invented() {
        let setup = "macros = ['-DWITH_CUDA']\nfrom tools.flags import on\nif on('FORCE_CUDA'): pass\n\
                     b = int(os.getenv('BUILD_CUDA_EXT', '1')) == 1\nsetup(name='x')\n";
        let flags = "def on(name):\n    return os.environ.get(name, 'OFF') == 'ON'\n";
        let sight = Sight {
            helpers: vec![("tools/flags.py".into(), flags.into())],
            pkg_info: Some("Name: y\nVersion: 1.2\n".into()),
            ..sight(&[("setup.py", setup)])
        };
        assert!(imports(setup).contains(&"tools/flags.py".to_owned()));
        let found = recipe(&sight);
        let env: Vec<_> = found.build.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!((env, found.version.as_deref()), (vec![("FORCE_CUDA", "ON")], Some("1.2")));
        insta::assert_snapshot!(infer(&sight).unwrap().text);
        let cmake = "project(x)\noption(WITH_CUDA \"with CUDA\" OFF)\n";
        let found = recipe(&super::tests::sight(&[("CMakeLists.txt", cmake)]));
        assert_eq!(found.build.cmake.defines["WITH_CUDA"], "ON");
    }

    #[test]
    fn cmake_and_bazel_are_known_by_their_files() {
        let caffe = "# project(not)\ncmake_minimum_required(VERSION 3)\nproject( Caffe C CXX)\nset(CUDA_ARCH_NAME x)\n";
        let found = recipe(&sight(&[("CMakeLists.txt", caffe)]));
        assert_eq!((found.name.as_str(), found.build.backend), ("Caffe", Backend::Cmake));
        assert_eq!(found.build.archs.consumers, [Consumer::Caffe]);
        let plain = recipe(&sight(&[("CMakeLists.txt", "project(${NAME})")]));
        assert_eq!((plain.name.as_str(), plain.build.archs.consumers), ("my-folder", vec![Consumer::Cmake]));
        let found = recipe(&sight(&[("WORKSPACE", "workspace(\n    name = \"tf\")\n")]));
        assert_eq!((found.name.as_str(), found.build.backend), ("tf", Backend::Bazel));
        assert_eq!(found.build.bazel.targets, ["//..."]);
    }

    #[test]
    fn a_tree_with_nothing_to_build_gives_nothing() {
        assert_eq!(infer(&Sight::default()), None);
        assert_eq!(infer(&sight(&[("pyproject.toml", "[tool.black]\n")])), None);
    }
}
