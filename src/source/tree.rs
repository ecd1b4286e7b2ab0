//! A source tree as values: every file with its kind and digest, and one digest over all of them.
//!
//! The digest covers relative path, kind, exec bit, link target and contents, ordered by path bytes. Not in it: mtimes,
//! owners, other mode bits, empty folders and the place of the tree. Left out of a user's folder, hashed and copied
//! neither: `.git`, `.hg`, `.svn`, `__pycache__` and `*.pyc` anywhere; `build`, `dist`, `target`, `.venv` and
//! `*.egg-info` and Bazel's links `bazel-*` at the top. An unpacked sdist is taken whole.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::domain::{exit::Exit, problem::Problem};
use crate::sys::files;

/// Changes with the meaning of the digest.
const FORMAT: &str = "cuwright tree 1";
const ANYWHERE: [&str; 4] = [".git", ".hg", ".svn", "__pycache__"];
const AT_THE_TOP: [&str; 4] = ["build", "dist", "target", ".venv"];

/// A source tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Where it is now; not part of the digest.
    pub root: Utf8PathBuf,
    /// sha256 over all entries.
    pub digest: String,
    /// Files and links, ordered by path bytes.
    pub files: Vec<Entry>,
}

/// One file or link of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path below the root.
    pub path: Utf8PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Kind {
    /// A regular file.
    File {
        /// sha256 of its contents.
        sha256: String,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// A symbolic link within the tree.
    Link {
        /// What it points at, as written.
        target: String,
    },
}

/// What is taken of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Everything but version control and build leftovers.
    Sources,
    /// Everything.
    All,
}

impl Tree {
    /// Reads and hashes a folder.
    pub fn read(root: &Utf8Path, taken: Taken) -> Result<Self, Problem> {
        let mut files = Vec::new();
        walk(root, Utf8Path::new(""), taken, &mut files)?;
        files.sort_by(|a, b| a.path.as_str().as_bytes().cmp(b.path.as_str().as_bytes()));
        Ok(Self { root: root.to_owned(), digest: digest(&files), files })
    }

    /// The same tree without one file.
    #[must_use]
    pub fn without(mut self, path: &Utf8Path) -> Self {
        self.files.retain(|entry| entry.path != path);
        self.digest = digest(&self.files);
        self
    }

    /// Copies exactly the hashed entries into `to`, writable, with fresh times. A file that changed since it was hashed
    /// is a problem: the copy would not be what the digest says.
    pub fn copy_to(&self, to: &Utf8Path) -> Result<(), Problem> {
        let mut made = std::collections::BTreeSet::new();
        for entry in &self.files {
            let (source, target) = (self.root.join(&entry.path), to.join(&entry.path));
            let folder = target.parent().unwrap_or(to);
            if made.insert(folder.to_owned()) {
                fs::create_dir_all(folder).map_err(|error| unwritable(&error))?;
            }
            match &entry.kind {
                Kind::Link { target: points_at } => symlink(points_at, &target).map_err(|error| unwritable(&error))?,
                Kind::File { sha256, executable } => {
                    if copy(&source, &target, *executable)? != *sha256 {
                        return Err(changed(&source));
                    }
                }
            }
        }
        Ok(())
    }
}

fn digest(files: &[Entry]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(FORMAT);
    for Entry { path, kind } in files {
        // Lengths keep two entries from being read as one.
        let mut line = format!("\n{} {path} ", path.as_str().len());
        let _ = match kind {
            Kind::File { sha256, executable } => write!(line, "{} {sha256}", if *executable { "x" } else { "f" }),
            Kind::Link { target } => write!(line, "l {} {target}", target.len()),
        };
        hasher.update(&line);
    }
    hex::encode(hasher.finalize())
}

fn walk(root: &Utf8Path, below: &Utf8Path, taken: Taken, files: &mut Vec<Entry>) -> Result<(), Problem> {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).map_err(|error| unreadable(&error))? {
        let entry = entry.map_err(|error| unreadable(&error))?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(odd(&folder, &format!("the name {} is not UTF-8", entry.file_name().display())));
        };
        let path = below.join(&name);
        let kind = entry.file_type().map_err(|error| unreadable(&error))?;
        if taken == Taken::Sources && left_out(&name, below.as_str().is_empty(), kind) {
            continue;
        }
        let full = root.join(&path);
        if kind.is_dir() {
            walk(root, &path, taken, files)?;
        } else if kind.is_symlink() {
            files.push(Entry { kind: Kind::Link { target: link(&full, &path)? }, path });
        } else if kind.is_file() {
            let mode = entry.metadata().map_err(|error| unreadable(&error))?.permissions().mode();
            let sha256 = files::sha256_file(&full).map_err(|error| unreadable(&error))?;
            files.push(Entry { kind: Kind::File { sha256, executable: mode & 0o100 != 0 }, path });
        } else {
            return Err(odd(&full, "it is neither a file, a folder nor a link"));
        }
    }
    Ok(())
}

fn left_out(name: &str, top: bool, kind: std::fs::FileType) -> bool {
    let folder = kind.is_dir();
    let ends = |suffix: &str| name.len() > suffix.len() && name.ends_with(suffix);
    // A worktree has a file named `.git`.
    ANYWHERE.contains(&name)
        || (!folder && ends(".pyc"))
        || (top && folder && (AT_THE_TOP.contains(&name) || ends(".egg-info")))
        || (top && kind.is_symlink() && name.starts_with("bazel-"))
}

fn link(full: &Utf8Path, path: &Utf8Path) -> Result<String, Problem> {
    let target = fs::read_link(full).map_err(|error| unreadable(&error))?;
    let Ok(target) = target.into_os_string().into_string() else {
        return Err(odd(full, "its target is not UTF-8"));
    };
    if stays_within(path, &target) {
        return Ok(target);
    }
    Err(odd(full, &format!("it is a link out of the tree, to {target}"))
        .help("put a copy of what it points at in its place, or build from the folder that holds both"))
}

/// Whether a link at `path` with this target stays below the root, judged by the names alone.
pub(super) fn stays_within(path: &Utf8Path, target: &str) -> bool {
    // A link without a name, as `./` in an archive, has no folder that it lies in.
    let Some(mut depth) = path.components().count().checked_sub(1) else { return false };
    for part in Utf8Path::new(target).components() {
        match part {
            camino::Utf8Component::Normal(_) => depth += 1,
            camino::Utf8Component::CurDir => {}
            camino::Utf8Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

/// Copies one file and says the sha256 of what was copied.
fn copy(source: &Utf8Path, target: &Utf8Path, executable: bool) -> Result<String, Problem> {
    let mut reader = fs::File::open(source).map_err(|error| unreadable(&error))?;
    let mut writer = fs::File::create(target).map_err(|error| unwritable(&error))?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let count = reader.read(&mut buffer).map_err(|error| unreadable(&error))?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        writer.write_all(&buffer[..count]).map_err(|error| unwritable(&error))?;
    }
    let mode = if executable { 0o755 } else { 0o644 };
    writer.file().set_permissions(std::fs::Permissions::from_mode(mode)).map_err(|error| unwritable(&error))?;
    Ok(hex::encode(hasher.finalize()))
}

pub(super) fn unreadable(error: &io::Error) -> Problem {
    Problem::new("cuwright::source::unreadable", Exit::Recipe, "the source cannot be read")
        .why(error.to_string())
        .help("check that it exists and that you may read all of it")
}

pub(super) fn unwritable(error: &io::Error) -> Problem {
    let problem = Problem::new("cuwright::source::unwritable", Exit::Recipe, "the source cannot be copied");
    let problem = problem.why(error.to_string());
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        return problem.help("free some disk space, or name another disk with CUWRIGHT_CACHE_DIR");
    }
    problem.help("check that the cache folder can be written, or name another one with CUWRIGHT_CACHE_DIR")
}

fn changed(path: &Utf8Path) -> Problem {
    Problem::new("cuwright::source::changed", Exit::Recipe, "the source changed while it was being read")
        .why(format!("{path} was written to after it was hashed"))
        .help("stop what writes to it, then run again")
}

fn odd(path: &Utf8Path, what: &str) -> Problem {
    Problem::new("cuwright::source::odd_entry", Exit::Recipe, format!("{path} cannot be part of a source tree"))
        .why(what)
        .help("remove it, or build from a folder without it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(root: &Utf8Path) -> Tree {
        Tree::read(root, Taken::Sources).unwrap()
    }

    fn fill(root: &Utf8Path) {
        for (name, text) in [("setup.py", "x"), ("a/b.cu", "y"), ("a.b", "z"), ("ä ö.h", "")] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        symlink("a/b.cu", root.join("link.cu")).unwrap();
    }

    #[test]
    fn the_digest_follows_contents_and_neither_place_nor_time_nor_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let (one, two) = (root.join("one"), root.join("two"));
        fill(&one);
        fill(&two);
        let digest = tree(&one).digest;
        assert_eq!(tree(&two).digest, digest);
        for leftover in [".git/HEAD", "a/__pycache__/x.pyc", "a/x.pyc", "build/lib/x", "dist/x.whl", "m.egg-info/PKG"] {
            fs::create_dir_all(two.join(leftover).parent().unwrap()).unwrap();
            fs::write(two.join(leftover), "").unwrap();
        }
        assert_eq!(tree(&two).digest, digest);
        fs::create_dir_all(two.join("a/build")).unwrap();
        fs::write(two.join("a/build/x"), "").unwrap();
        let deeper = tree(&two).digest;
        assert_ne!(deeper, digest);
        fs::set_permissions(one.join("setup.py"), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_ne!(tree(&one).digest, digest);
    }

    #[test]
    fn a_copy_is_writable_and_hashes_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let (from, to) = (root.join("from"), root.join("to"));
        fill(&from);
        fs::set_permissions(from.join("setup.py"), std::fs::Permissions::from_mode(0o555)).unwrap();
        let original = tree(&from);
        original.copy_to(&to).unwrap();
        assert_eq!(tree(&to).digest, original.digest);
        assert_eq!(fs::metadata(to.join("setup.py")).unwrap().permissions().mode() & 0o777, 0o755);
        fs::write(from.join("a.b"), "later").unwrap();
        let code = original.copy_to(&root.join("again")).map_err(|problem| problem.code());
        assert_eq!(code, Err("cuwright::source::changed"));
    }

    #[test]
    fn what_cannot_be_built_from_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let code = || Tree::read(root, Taken::Sources).map(|tree| tree.files.len()).map_err(|problem| problem.code());
        assert_eq!(code(), Ok(0));
        symlink("../x", root.join("out")).unwrap();
        assert_eq!(code(), Err("cuwright::source::odd_entry"));
        fs::remove_file(root.join("out")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
        assert_eq!(code(), Err("cuwright::source::odd_entry"));
        fs::remove_file(root.join("socket")).unwrap();
        let odd = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff");
        fs::write(root.as_std_path().join::<&std::ffi::OsStr>(odd), "").unwrap();
        assert_eq!(code(), Err("cuwright::source::odd_entry"));
        let gone = Tree::read(&root.join("none"), Taken::All).map_err(|problem| problem.exit());
        assert_eq!(gone, Err(Exit::Recipe));
    }

    #[test]
    fn links_are_judged_by_where_they_lead() {
        let within = |path: &str, target: &str| stays_within(Utf8Path::new(path), target);
        assert!(within("a/b", "../c") && within("a", "./b/../c") && within("a/b/c", "../../d"));
        assert!(!within("", "c") && !within("", ""));
        assert!(!within("a", "../c") && !within("a/b", "../../c") && !within("a", "/etc") && !within("a", "b/../../c"));
    }
}
