//! What users name, opened for judging: a wheel gives its extension files, a folder or a glob what lies in it.
//!
//! Invariant: a file keeps two names, the one people see and the one that globs of a recipe match. Nothing is read here
//! beyond what a wheel needs to be unpacked.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use globset::GlobBuilder;

use super::regular;
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

/// An input that cannot be opened, under its own name: what stands beside it is judged all the same.
#[derive(Debug)]
pub struct Unopened {
    /// It, as the user named it or as it lies in the folder that the user named.
    pub name: String,
    /// Why.
    pub problem: Problem,
}

/// What one name of the user stands for; never empty.
pub type Inputs = Vec<Result<Opened, Unopened>>;

/// Opens `path`, shown as `shown`: a wheel, a packed tree, a file, a folder with wheels and libraries, or a glob over such.
///
/// What cannot be opened is told in its place: a path that is not there, a folder without anything to read, a broken
/// wheel.
pub fn open(path: &Utf8Path, shown: &str) -> Inputs {
    match path.metadata() {
        Ok(meta) if meta.is_dir() => folder(path, shown),
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() && is_pattern(shown) => {
            glob(path, shown)
        }
        _ => vec![one(path, shown)],
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

fn unopened(shown: &str, problem: Problem) -> Result<Opened, Unopened> {
    Err(Unopened { name: shown.to_owned(), problem })
}

/// One file.
fn one(path: &Utf8Path, shown: &str) -> Result<Opened, Unopened> {
    let opened = regular::open(path, shown).and_then(|_| match Packed::of(path) {
        Some(packed) => unpacked(packed, path, shown),
        None => Ok(file(path, shown)),
    });
    opened.or_else(|problem| unopened(shown, problem))
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

fn unpacked(packed: Packed, path: &Utf8Path, shown: &str) -> Result<Opened, Problem> {
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
    Ok(Opened { name: shown.to_owned(), shape, files, root, scratch: Some(scratch) })
}

/// A folder: each wheel in it is an input, and what else can hold GPU code is another.
fn folder(path: &Utf8Path, shown: &str) -> Inputs {
    let (mut inputs, mut files, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (found, closed) = walk(path);
    for (folder, error) in closed {
        let name = path_in(shown, folder.strip_prefix(path).unwrap_or(&folder));
        inputs.push(unopened(name.as_str(), regular::refused(name.as_str(), &error)));
    }
    for found in found {
        // A library and the link that names its version are one file.
        if !seen.insert(found.canonicalize_utf8().unwrap_or_else(|_| found.clone())) {
            continue;
        }
        let inner = found.strip_prefix(path).unwrap_or(&found).to_owned();
        let packed = match found.extension() {
            Some("whl") => true,
            Some("gz") => site::is_packed_tree(&found),
            _ => false,
        };
        let name = path_in(shown, &inner);
        if packed {
            inputs.push(wheel_or_tree(&found, name.as_str()));
        } else if is_code(&inner) {
            // Whether it may be read is asked for when it is.
            files.push(ExtensionFile { name: inner.into_string(), path: found });
        }
    }
    if !files.is_empty() {
        inputs.push(Ok(Opened::folder(shown, path.to_owned(), files)));
    }
    if inputs.is_empty() {
        inputs.push(unopened(shown, regular::missing(shown, "the folder holds no wheel and no library")));
    }
    inputs
}

/// What is a wheel by its name, or a packed tree; one that is neither by its bytes is a broken wheel.
fn wheel_or_tree(path: &Utf8Path, shown: &str) -> Result<Opened, Unopened> {
    let opened =
        regular::open(path, shown).and_then(|_| unpacked(Packed::of(path).unwrap_or(Packed::Wheel), path, shown));
    opened.or_else(|problem| unopened(shown, problem))
}

fn path_in(shown: &str, inner: &Utf8Path) -> Utf8PathBuf {
    Utf8Path::new(shown).join(inner)
}

fn is_code(path: &Utf8Path) -> bool {
    site::is_extension(path) || site::is_object(path)
}

/// Files below a folder in byte order of their paths, and the folders that the system does not show.
fn walk(folder: &Utf8Path) -> (Vec<Utf8PathBuf>, Vec<(Utf8PathBuf, std::io::Error)>) {
    let (mut files, mut closed) = (Vec::new(), Vec::new());
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(entry) => {
                files.extend(Utf8PathBuf::from_path_buf(entry.into_path()).ok().filter(|path| path.is_file()));
            }
            Err(error) => {
                let path = error.path().and_then(Utf8Path::from_path).unwrap_or(folder).to_owned();
                closed.extend(error.into_io_error().map(|error| (path, error)));
            }
        }
    }
    (files, closed)
}

fn glob(path: &Utf8Path, shown: &str) -> Inputs {
    let bad = |why: &str| vec![unopened(shown, regular::missing(shown, why))];
    let matcher = match GlobBuilder::new(path.as_str()).literal_separator(true).build() {
        Ok(glob) => glob.compile_matcher(),
        Err(error) => return bad(&error.to_string()),
    };
    let fixed: Utf8PathBuf = path.components().take_while(|part| !is_pattern(part.as_str())).collect();
    // As with a shell, a folder that is closed to us matches nothing.
    let (found, _) = walk(&fixed);
    let found = found.into_iter().filter(|found| matcher.is_match(found));
    let inputs: Inputs = found
        .map(|found| {
            // As the user would have typed it: relative where the pattern is.
            let typed = match path.as_str().strip_suffix(shown) {
                Some(before) => found.as_str().strip_prefix(before).unwrap_or(found.as_str()),
                None => found.as_str(),
            };
            one(&found, typed)
        })
        .collect();
    if inputs.is_empty() { bad("the pattern matches no file") } else { inputs }
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

    fn whole(inputs: Inputs) -> Vec<Opened> {
        inputs.into_iter().map(|input| input.unwrap()).collect()
    }

    /// Name and code of everything that could not be opened.
    fn refused(inputs: Inputs) -> Vec<(String, &'static str)> {
        inputs.into_iter().filter_map(Result::err).map(|input| (input.name, input.problem.code())).collect()
    }

    #[test]
    fn a_folder_gives_its_libraries_once_and_nothing_else() {
        let (_keep, root) = tree(&["p/_C.abi3.so", "p/lib/libx.so.1.2", "p/a.py", "k.cubin"]);
        fs_err::os::unix::fs::symlink("libx.so.1.2", root.join("p/lib/libx.so.1")).unwrap();
        let opened = whole(open(&root, "build"));
        let labels: Vec<String> = opened[0].files.iter().map(|file| opened[0].label(file)).collect();
        assert_eq!(opened.len(), 1);
        assert_eq!(labels, ["build/k.cubin", "build/p/_C.abi3.so", "build/p/lib/libx.so.1"]);
    }

    #[test]
    fn a_broken_wheel_hides_nothing_of_its_folder() {
        let (_keep, root) = tree(&["a.whl", "b.so", "deep/c.whl", "deep/d.tar.gz"]);
        let inputs = open(&root, "dist");
        assert_eq!(inputs.iter().filter(|input| input.is_ok()).count(), 1);
        let broken = "cuwright::verify::broken_wheel";
        assert_eq!(refused(inputs), [("dist/a.whl".to_owned(), broken), ("dist/deep/c.whl".to_owned(), broken)]);
    }

    #[test]
    fn a_glob_finds_what_a_shell_would_and_says_when_nothing_matches() {
        let (_keep, root) = tree(&["d/a.so", "d/b.so", "d/deep/c.so", "d/a.txt"]);
        let names = |pattern: &str| -> Vec<String> {
            whole(open(&root.join(pattern), pattern)).into_iter().map(|input| input.name).collect()
        };
        assert_eq!(names("d/*.so"), ["d/a.so", "d/b.so"]);
        assert_eq!(names("d/**/*.so"), ["d/a.so", "d/b.so", "d/deep/c.so"]);
        for name in ["d/*.whl", "x"] {
            let refused = refused(open(&root.join(name), name));
            assert_eq!(refused, [(name.to_owned(), "cuwright::verify::no_file")]);
        }
    }
}
