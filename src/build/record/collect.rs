//! Turns what the processes of a build wrote down into what a look-up has to check.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::SystemTime;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::Recorder;
use super::look::{self, Digests};
use crate::domain::reads::{Reads, Seen};
use crate::sys::files;

/// Programs that answer from a store of their own or let other processes work for them.
const NOT_FOLLOWED: [&str; 8] = ["ccache", "sccache", "distcc", "icecc", "buildcache", "bazel", "docker", "ssh"];
/// What every Go program holds; they make system calls of their own.
const GO: &[u8] = b"\xff Go buildinf:";
/// The most reasons that are worth telling.
const REASONS: usize = 5;

/// What a build looked at, and what cannot be said about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Paths and programs; its `local` is left to the caller.
    pub reads: Reads,
    /// What cannot be known of the build, in words.
    pub unknown: Vec<String>,
    /// A file that changed while it was read: what was built belongs to neither of its states.
    pub unsteady: Option<Utf8PathBuf>,
}

#[derive(Debug, Default)]
struct Notes {
    by: BTreeMap<char, BTreeSet<Utf8PathBuf>>,
    odd: bool,
}

impl Notes {
    fn of(&self, kind: char) -> impl Iterator<Item = &Utf8PathBuf> {
        self.by.get(&kind).into_iter().flatten()
    }
}

impl Recorder {
    /// What the build looked at. `path` is its `PATH`; `temporary` are folders for temporary files.
    pub fn collect(&self, cache_root: &Utf8Path, path: &str, temporary: &[&str]) -> Recorded {
        let notes = self.notes();
        let mut digests = Digests::load(cache_root);
        let sorter = Sorter {
            skip: &self.skip,
            written: notes.of('W').map(|path| real(path)).collect(),
            temporary: temporary.iter().map(Utf8PathBuf::from).collect(),
            began: self.began,
        };
        let ran: BTreeSet<Utf8PathBuf> = notes.of('P').map(|path| real(path)).collect();
        let mut result = Recorded { unknown: unknown(&notes, &ran, &sorter), ..Recorded::default() };
        let mut look = |path: &Utf8PathBuf, read: bool, result: &mut Recorded| {
            let Some(path) = sorter.place(path) else { return };
            if !path.exists() {
                // Made and removed while it was built, by whoever.
                if read && !sorter.is_written(&path) {
                    result.unknown.push(format!("it reads {path}, which is gone"));
                }
                return;
            }
            let library = path.extension() == Some("so") || path.as_str().contains(".so.");
            if read || library && path.is_file() {
                if sorter.is_written(&path) {
                    result.unknown.push(format!("it reads and writes {path}"));
                } else if sorter.unsteady(&path) {
                    result.unsteady.get_or_insert_with(|| path.clone());
                } else {
                    let seen = digests.contents(&path);
                    result.reads.paths.insert(path, seen);
                }
            } else if !sorter.is_written(&path) {
                result.reads.paths.entry(path).or_insert(Seen::There);
            }
        };
        for path in notes.of('E') {
            look(path, false, &mut result);
        }
        for path in notes.of('R').chain(notes.of('X')).chain(&ran) {
            look(path, true, &mut result);
        }
        for path in notes.of('L').filter_map(|path| sorter.place(path)) {
            if !sorter.temporary.contains(&path) && path.exists() {
                result.reads.paths.insert(path.clone(), look::names(&path));
            }
        }
        for path in notes.of('A').filter_map(|path| sorter.missing(path)) {
            result.reads.paths.entry(path).or_insert(Seen::Missing);
        }
        by_name(&mut result.reads, path, &sorter);
        digests.keep();
        result.unknown.truncate(REASONS);
        result
    }

    fn notes(&self) -> Notes {
        let (mut notes, mut seen) = (Notes::default(), HashSet::new());
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for text in entries.filter_map(|entry| fs::read(entry.path()).ok()) {
            for record in text.split(|byte| *byte == 0).filter(|record| record.len() > 1) {
                if !seen.insert(record.to_owned()) {
                    continue;
                }
                match std::str::from_utf8(&record[1..]) {
                    Ok(path) => drop(notes.by.entry(char::from(record[0])).or_default().insert(path.into())),
                    Err(_) => notes.odd = true,
                }
            }
        }
        notes
    }
}

/// What cannot be known of a build in which `ran` ran.
fn unknown(notes: &Notes, ran: &BTreeSet<Utf8PathBuf>, sorter: &Sorter<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    if ran.is_empty() {
        reasons.push("its processes did not say what they read".to_owned());
    }
    if notes.odd {
        reasons.push("it reads a file whose name is not UTF-8".to_owned());
    }
    let started: BTreeSet<Utf8PathBuf> = notes.of('X').map(|path| real(path)).collect();
    // Those that are left out themselves are cuwright's stand-ins.
    let silent = started.difference(ran).filter(|path| !sorter.skip.contains(path) && is_elf(path));
    reasons
        .extend(silent.map(|path| format!("it runs {path}, which is linked statically: what that reads is unknown")));
    for program in ran.iter().filter(|path| !sorter.skipped(path)) {
        let name = program.file_name().unwrap_or_default();
        if NOT_FOLLOWED.contains(&name) {
            reasons.push(format!("it runs {name}, which answers from elsewhere"));
        } else if fs::read(program).is_ok_and(|bytes| memchr::memmem::find(&bytes, GO).is_some()) {
            reasons.push(format!("it runs {program}, a Go program: what that reads is unknown"));
        }
    }
    reasons.extend(notes.of('N').map(|address| format!("it connects to {address}")));
    reasons.extend(notes.of('M').map(|what| format!("it asks for this machine's processor ({what})")));
    reasons
}

/// Decides which paths matter.
struct Sorter<'a> {
    skip: &'a [Utf8PathBuf],
    written: HashSet<Utf8PathBuf>,
    temporary: Vec<Utf8PathBuf>,
    began: SystemTime,
}

impl Sorter<'_> {
    fn skipped(&self, path: &Utf8Path) -> bool {
        let kernel = ["/proc", "/sys", "/dev"];
        kernel.iter().any(|folder| path.starts_with(folder)) || self.skip.iter().any(|folder| path.starts_with(folder))
    }

    fn is_written(&self, path: &Utf8Path) -> bool {
        path.ancestors().any(|path| self.written.contains(path))
    }

    fn in_temporary(&self, path: &Utf8Path) -> bool {
        self.temporary.iter().any(|folder| path.starts_with(folder))
    }

    /// The path that is looked at for one that was found: a source for what Python made of it, nothing for what lies in
    /// the build or was made by it.
    fn place(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        let path = source(&resolved(path)).unwrap_or_else(|| resolved(path));
        let mine = self.is_written(&path) && (self.in_temporary(&path) || !path.exists());
        let gone = !path.exists() && self.in_temporary(&path);
        let made = self.in_temporary(&path) && self.unsteady(&path);
        (!self.skipped(&path) && !mine && !gone && !made && !is_bytecode(&path)).then_some(path)
    }

    /// The first part of a path that is not there, if it still is not.
    fn missing(&self, path: &Utf8Path) -> Option<Utf8PathBuf> {
        let path = resolved(path);
        if self.skipped(&path) || is_bytecode(&path) || self.is_written(&path) {
            return None;
        }
        let first = path.ancestors().take_while(|path| !path.exists()).last()?;
        let parent = first.parent().unwrap_or(Utf8Path::new("/"));
        let temporary = self.temporary.iter().any(|folder| folder == parent);
        (!temporary && !self.skipped(first)).then(|| first.to_owned())
    }

    /// Whether a file changed since the build began.
    fn unsteady(&self, path: &Utf8Path) -> bool {
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
        found.and_then(|found| found.modified().ok()).is_some_and(|modified| modified >= self.began)
    }
}

/// The `.py` beside a `__pycache__`, which is what counts: Python compares the two each time.
fn source(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let folder = path.parent().filter(|folder| folder.file_name() == Some("__pycache__"))?;
    let module = path.file_name()?.split('.').next()?;
    Some(folder.with_file_name(format!("{module}.py"))).filter(|source| source.exists())
}

fn is_bytecode(path: &Utf8Path) -> bool {
    path.components().any(|part| part.as_str() == "__pycache__")
}

fn is_elf(path: &Utf8Path) -> bool {
    files::head(path) == Some(*b"\x7fELF")
}

fn real(path: &Utf8Path) -> Utf8PathBuf {
    path.canonicalize_utf8().unwrap_or_else(|_| resolved(path))
}

/// Without `..`, which a link before it may lead astray.
fn resolved(path: &Utf8Path) -> Utf8PathBuf {
    let mut result = Utf8PathBuf::from("/");
    for part in path.components() {
        match part {
            Utf8Component::Normal(name) => result.push(name),
            Utf8Component::ParentDir => {
                result = result.canonicalize_utf8().unwrap_or(result);
                result.pop();
            }
            _ => {}
        }
    }
    result
}

/// What was looked for in the folders of `PATH` was looked for by its name: the answer counts, not where it was not.
fn by_name(reads: &mut Reads, path: &str, sorter: &Sorter<'_>) {
    let folders: BTreeSet<&str> = path.split(':').filter(|folder| folder.starts_with('/')).collect();
    let on_path = |path: &Utf8PathBuf| path.parent().is_some_and(|folder| folders.contains(folder.as_str()));
    let names: BTreeSet<String> = reads
        .paths
        .keys()
        .filter(|path| on_path(path))
        .filter_map(|path| path.file_name().map(str::to_owned))
        .collect();
    reads.paths.retain(|path, seen| !on_path(path) || matches!(seen, Seen::Contents(_) | Seen::Names(_)));
    for name in names {
        let program = look::program(&name, path);
        if program.as_ref().is_none_or(|program| !sorter.skipped(program)) {
            reads.programs.insert(name, program);
        }
    }
}
