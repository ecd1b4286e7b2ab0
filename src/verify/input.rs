//! What users name, opened for judging: a wheel gives its extension files, a folder or a glob what lies in it.
//!
//! Invariant: a file keeps two names, the one people see and the one that globs of a recipe match. Nothing is read here
//! beyond what a wheel needs to be unpacked.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use globset::GlobBuilder;

use super::site::{self, ExtensionFile};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;

/// What an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A wheel.
    Wheel,
    /// A tree of files in a `.tar.gz`, as builds make it.
    Tree,
    /// A folder, or the files of an installed package.
    Folder,
    /// One file.
    File,
}

/// Files of one input, and the folder that keeps unpacked ones alive.
#[derive(Debug)]
pub struct Opened {
    /// The input as the user named it.
    pub name: String,
    /// What it is.
    pub shape: Shape,
    /// Its files, named within the input.
    pub files: Vec<ExtensionFile>,
    /// Folder whose modules can be imported; of a wheel, the folder it was unpacked in.
    pub root: Utf8PathBuf,
    scratch: Option<tempfile::TempDir>,
}

impl Opened {
    /// Files that lie in a folder, such as those of an installed package.
    pub fn folder(name: impl Into<String>, root: Utf8PathBuf, files: Vec<ExtensionFile>) -> Self {
        Self { name: name.into(), shape: Shape::Folder, files, root, scratch: None }
    }

    /// How to show a file of this input.
    pub fn label(&self, file: &ExtensionFile) -> String {
        match self.shape {
            Shape::Wheel | Shape::Tree => format!("{}:{}", self.name, file.name),
            Shape::Folder => format!("{}/{}", self.name.trim_end_matches('/'), file.name),
            Shape::File => self.name.clone(),
        }
    }

    /// Whether it is a wheel, whose name promises things.
    pub fn is_wheel(&self) -> bool {
        self.shape == Shape::Wheel
    }

    /// Whether names within the input are whole paths of an artifact, as recipes write them.
    pub fn is_artifact(&self) -> bool {
        self.scratch.is_some()
    }
}

/// Opens `path`, shown as `shown`: a wheel, a packed tree, a file, a folder with wheels and libraries, or a glob over such.
///
/// # Errors
/// A path that is not there, a folder without anything to read, or a broken wheel.
pub fn open(path: &Utf8Path, shown: &str) -> Result<Vec<Opened>, Problem> {
    if path.is_dir() {
        return folder(path, shown);
    }
    if path.is_file() {
        return match Packed::of(path) {
            Some(packed) => unpacked(packed, path, shown),
            None => Ok(vec![file(path, shown)]),
        };
    }
    if shown.contains(['*', '?', '[', '{']) {
        return glob(path, shown);
    }
    Err(nothing(shown, "there is no such file"))
}

fn nothing(shown: &str, why: &str) -> Problem {
    Problem::new("cuwright::verify::no_file", Exit::Verify, format!("{shown} cannot be read"))
        .why(why)
        .help("name a wheel, a library, an object, an archive, a fatbin, a cubin, or a folder or glob of such")
}

fn file(path: &Utf8Path, shown: &str) -> Opened {
    let root = path.parent().unwrap_or(Utf8Path::new("/")).to_owned();
    // A recipe's glob names a path from the package down, so a bare file keeps the whole of its own.
    let name = shown.trim_start_matches("./").to_owned();
    let files = vec![ExtensionFile { name, path: path.to_owned() }];
    Opened { name: shown.to_owned(), shape: Shape::File, files, root, scratch: None }
}

/// A file that has to be unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packed {
    Wheel,
    Tree,
}

impl Packed {
    fn of(path: &Utf8Path) -> Option<Self> {
        let tree = || site::is_packed_tree(path).then_some(Self::Tree);
        if site::is_wheel(path) { Some(Self::Wheel) } else { tree() }
    }
}

fn unpacked(packed: Packed, path: &Utf8Path, shown: &str) -> Result<Vec<Opened>, Problem> {
    let no_scratch = |why: String| {
        Problem::new("cuwright::verify::no_scratch", Exit::Verify, format!("{shown} cannot be unpacked"))
            .why(why)
            .help("free some space in the temporary folder, or point TMPDIR at another")
    };
    let scratch =
        tempfile::Builder::new().prefix("cuwright-").tempdir().map_err(|error| no_scratch(error.to_string()))?;
    let root = Utf8PathBuf::from_path_buf(scratch.path().to_owned())
        .map_err(|_| no_scratch("its path is not UTF-8".to_owned()))?;
    let (site, shape) = match packed {
        Packed::Wheel => (site::unpack(path, &root)?, Shape::Wheel),
        Packed::Tree => (site::unpack_tree(path, &root)?, Shape::Tree),
    };
    let files = site.extensions;
    Ok(vec![Opened { name: shown.to_owned(), shape, files, root, scratch: Some(scratch) }])
}

/// A folder: each wheel in it is an input, and what else can hold GPU code is another.
fn folder(path: &Utf8Path, shown: &str) -> Result<Vec<Opened>, Problem> {
    let mut inputs = Vec::new();
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    for found in walk(path) {
        // A library and the link that names its version are one file.
        if !seen.insert(found.canonicalize_utf8().unwrap_or_else(|_| found.clone())) {
            continue;
        }
        let inner = found.strip_prefix(path).unwrap_or(&found).to_owned();
        let packed = match found.extension() {
            Some("whl") => Some(Packed::Wheel),
            Some("gz") => Packed::of(&found),
            _ => None,
        };
        if let Some(packed) = packed {
            inputs.extend(unpacked(packed, &found, path_in(shown, &inner).as_str())?);
        } else if is_code(&inner) {
            files.push(ExtensionFile { name: inner.into_string(), path: found });
        }
    }
    if !files.is_empty() {
        inputs.push(Opened::folder(shown, path.to_owned(), files));
    }
    if inputs.is_empty() { Err(nothing(shown, "the folder holds no wheel and no library")) } else { Ok(inputs) }
}

fn path_in(shown: &str, inner: &Utf8Path) -> Utf8PathBuf {
    Utf8Path::new(shown).join(inner)
}

fn is_code(path: &Utf8Path) -> bool {
    site::is_extension(path) || site::is_object(path)
}

/// Files below a folder, in byte order of their paths.
fn walk(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files = entries.filter(|entry| !entry.file_type().is_dir());
    let paths = files.filter_map(|entry| Utf8PathBuf::from_path_buf(entry.into_path()).ok());
    paths.filter(|path| path.is_file()).collect()
}

fn glob(path: &Utf8Path, shown: &str) -> Result<Vec<Opened>, Problem> {
    let bad = |why: String| nothing(shown, &why);
    let matcher = GlobBuilder::new(path.as_str()).literal_separator(true).build();
    let matcher = matcher.map_err(|error| bad(error.to_string()))?.compile_matcher();
    let fixed: Utf8PathBuf =
        path.components().take_while(|part| !part.as_str().contains(['*', '?', '[', '{'])).collect();
    let mut inputs = Vec::new();
    for found in walk(&fixed).into_iter().filter(|found| matcher.is_match(found)) {
        // As the user would have typed it: relative where the pattern is.
        let typed = match path.as_str().strip_suffix(shown) {
            Some(before) => found.as_str().strip_prefix(before).unwrap_or(found.as_str()),
            None => found.as_str(),
        };
        inputs.extend(open(&found, typed)?);
    }
    if inputs.is_empty() { Err(bad("the pattern matches no file".to_owned())) } else { Ok(inputs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, Utf8PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        for name in files {
            fs_err::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs_err::write(root.join(name), "x").unwrap();
        }
        (folder, root)
    }

    #[test]
    fn a_folder_gives_its_libraries_once_and_nothing_else() {
        let (_keep, root) = tree(&["p/_C.abi3.so", "p/lib/libx.so.1.2", "p/a.py", "k.cubin"]);
        fs_err::os::unix::fs::symlink("libx.so.1.2", root.join("p/lib/libx.so.1")).unwrap();
        let opened = open(&root, "build").unwrap();
        let labels: Vec<String> = opened[0].files.iter().map(|file| opened[0].label(file)).collect();
        assert_eq!(opened.len(), 1);
        assert_eq!(labels, ["build/k.cubin", "build/p/_C.abi3.so", "build/p/lib/libx.so.1"]);
    }

    #[test]
    fn a_glob_finds_what_a_shell_would_and_says_when_nothing_matches() {
        let (_keep, root) = tree(&["d/a.so", "d/b.so", "d/deep/c.so", "d/a.txt"]);
        let names = |pattern: &str| -> Vec<String> {
            let opened = open(&root.join(pattern), pattern).unwrap();
            opened.iter().map(|input| input.name.clone()).collect()
        };
        assert_eq!(names("d/*.so"), ["d/a.so", "d/b.so"]);
        assert_eq!(names("d/**/*.so"), ["d/a.so", "d/b.so", "d/deep/c.so"]);
        assert_eq!(open(&root.join("d/*.whl"), "d/*.whl").unwrap_err().code(), "cuwright::verify::no_file");
        assert_eq!(open(&root.join("x"), "x").unwrap_err().code(), "cuwright::verify::no_file");
    }
}
