//! A recipe for a bare source tree: written as text, so that it can be shown, kept and edited.
//!
//! It states only what the tree shows. It names no archs: whoever asks for the build must name them or have a GPU.

use std::fmt::Write as _;

use crate::domain::requirement::Requirement;

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
    if let Some(setup) = &sight.setup_py {
        return Some(setup_py(sight, setup));
    }
    if let Some(system) = sight.pyproject.as_deref().and_then(build_system) {
        return Some(pyproject(sight, &system));
    }
    if let Some(lists) = &sight.cmake {
        return Some(cmake(sight, lists));
    }
    sight.bazel.as_ref().map(|(file, text)| bazel(sight, file, text))
}

fn head(name: &str, toolchain: &str, backend: &str) -> String {
    let name = toml_string(name);
    format!(
        "schema = 1\n\n[package]\nname = {name}\n\n[source]\npath = \".\"\n{toolchain}\n[build]\nbackend = \"{backend}\"\n"
    )
}

fn setup_py(sight: &Sight, setup: &str) -> Inferred {
    let name = from_pyproject(sight).or_else(|| name_argument(setup)).filter(|name| legal(name));
    let mut text = head(&name.unwrap_or_else(|| clean(&sight.folder)), "", "setup.py");
    let switches: Vec<String> = SWITCHES
        .iter()
        .filter(|(name, _)| ['"', '\''].iter().any(|quote| setup.contains(&format!("{quote}{name}{quote}"))))
        .map(|(name, value)| format!("{name} = \"{value}\""))
        .collect();
    if !switches.is_empty() {
        let _ = writeln!(text, "env = {{ {} }}", switches.join(", "));
    }
    Inferred { text, file: "setup.py".to_owned() }
}

fn pyproject(sight: &Sight, system: &BuildSystem) -> Inferred {
    let name = from_pyproject(sight).filter(|name| legal(name)).unwrap_or_else(|| clean(&sight.folder));
    // torch comes with the toolchain, and CMake and ninja are what such backends look for and do not always name.
    let named = |name: &str| system.requires.iter().any(|own| own.parse::<Requirement>().is_ok_and(|r| r.name == name));
    let own = system.requires.iter().filter(|text| text.parse::<Requirement>().is_ok_and(|r| r.name != "torch"));
    let more = ["build", "cmake", "ninja"].into_iter().filter(|name| !named(name));
    let all: Vec<String> = own.map(String::as_str).chain(more).map(toml_string).collect();
    let toolchain = format!("\n[toolchain]\nbuild-requires = [{}]\n", all.join(", "));
    let mut text = head(&name, &toolchain, "pyproject");
    let uses_torch = named("torch") || sight.cmake.as_deref().is_some_and(|lists| lists.contains("find_package(Torch"));
    if !uses_torch && !system.is_setuptools() {
        text.push_str("archs-for = [\"cmake\"]\n");
    }
    Inferred { text, file: "pyproject.toml".to_owned() }
}

fn cmake(sight: &Sight, lists: &str) -> Inferred {
    let own = call(lists, "project").and_then(|inside| inside.split_whitespace().next().map(str::to_owned));
    let name = own.filter(|name| legal(name)).unwrap_or_else(|| clean(&sight.folder));
    let mut text = head(&name, "", "cmake");
    let consumers: Vec<&str> =
        READERS.iter().filter(|(mark, _)| lists.contains(mark)).map(|(_, consumer)| *consumer).take(1).collect();
    if let Some(consumer) = consumers.first() {
        let _ = writeln!(text, "archs-for = [\"{consumer}\"]");
    }
    Inferred { text, file: "CMakeLists.txt".to_owned() }
}

/// What in a lists file shows who reads the archs, the surest first; without any, CMake itself does.
const READERS: [(&str, &str); 3] =
    [("find_package(Torch", "torch"), ("CUDA_ARCH_NAME", "caffe"), ("CUDA_ARCH_BIN", "opencv")];

fn bazel(sight: &Sight, file: &str, text: &str) -> Inferred {
    let call = call(text, "workspace").or_else(|| call(text, "module")).unwrap_or_default();
    let own = call.split_once("name").and_then(|(_, rest)| rest.split(['"', '\'']).nth(1).map(str::to_owned));
    let name = own.filter(|name| legal(name)).unwrap_or_else(|| clean(&sight.folder));
    let mut text = head(&name, "", "bazel");
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

fn from_pyproject(sight: &Sight) -> Option<String> {
    let table: toml::Table = toml::from_str(sight.pyproject.as_deref()?).ok()?;
    Some(table.get("project")?.get("name")?.as_str()?.to_owned())
}

fn legal(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Switches of common setup.py files that turn the CUDA part on where no GPU is in sight. Only a quoted name counts: that
/// is how a variable is read, while `-DWITH_CUDA` is a macro.
const SWITCHES: [(&str, &str); 2] = [("FORCE_CUDA", "1"), ("WITH_CUDA", "1")];

/// The literal of the `name=` argument in the `setup(` call. Extensions have names too, and come after `setup(` or
/// before it, so the first literal behind `setup(` that is not inside an `Extension(` call is taken.
fn name_argument(setup: &str) -> Option<String> {
    let call = setup.rfind("setup(")?;
    let mut rest = &setup[call + "setup(".len()..];
    loop {
        let at = rest.find("name")?;
        let before = &rest[..at];
        let own = before.matches("Extension(").count() == 0;
        let value = rest[at + "name".len()..].trim_start();
        rest = &rest[at + "name".len()..];
        let boundary = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if let (true, true, Some(value)) = (own, boundary, value.strip_prefix('=')) {
            let value = value.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            return value[1..].split(quote).next().map(str::to_owned);
        }
    }
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
