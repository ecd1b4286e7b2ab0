//! Follows what the processes of a build look at, so that a cached artifact can be told from a stale one.
//!
//! A small library (`recorder.c`) stands in front of the C library's functions that take a path, in every process of the
//! build. The build's own C compiler makes it, once per compiler and cache folder. Invariant: a build that cannot be
//! followed is built all the same; what cannot be known about it is a reason to keep its artifact for this machine only.
//!
//! Deliberately not here: what lies in the build's folder (the source digest covers it) and in a provisioned toolchain
//! (its content address does).

mod check;
mod collect;
mod look;

use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

pub use check::{Memo, check, remember};
pub use collect::Recorded;

use crate::domain::command::CommandSpec;
use crate::domain::toolchain::HostCompiler;
use crate::sys::env_vars as vars;
use crate::sys::{clock, files, process};

const SOURCE: &str = include_str!("recorder.c");
/// How long the compiler may take for it.
const PATIENCE: Duration = Duration::from_mins(1);
/// Folder of it below the cache root.
const TOOLS: &str = "tools";

/// What a build's processes write down, and where.
#[derive(Debug)]
pub struct Recorder {
    library: Utf8PathBuf,
    /// Holds a copy of the library where its own path has a letter that the loader splits at.
    _short: Option<tempfile::TempDir>,
    folder: Utf8PathBuf,
    skip: Vec<Utf8PathBuf>,
    began: SystemTime,
}

impl Recorder {
    /// Makes one for a build in `root`, whose `host` compiler runs with `path`. What lies below `root` and the folders in
    /// `known` is not followed.
    ///
    /// # Errors
    /// Why the build cannot be followed, in words.
    pub fn start(
        cache_root: &Utf8Path,
        root: &Utf8Path,
        known: &[Utf8PathBuf],
        host: &HostCompiler,
        path: &str,
    ) -> Result<Self, String> {
        let library = made(cache_root, host, path)?;
        let (library, short) = plain(library).map_err(|error| error.to_string())?;
        let folder = root.join("reads");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let mut skip = vec![root.to_owned(), library.clone()];
        skip.extend(known.iter().cloned());
        let real: Vec<Utf8PathBuf> = skip.iter().filter_map(|path| path.canonicalize_utf8().ok()).collect();
        skip.extend(real);
        skip.sort();
        skip.dedup();
        Ok(Self { library, _short: short, folder, skip, began: clock::now() })
    }

    /// The command, followed.
    pub fn follow(&self, mut command: CommandSpec) -> CommandSpec {
        let theirs = command.env.get(vars::LD_PRELOAD).map(|theirs| format!(":{theirs}")).unwrap_or_default();
        let skip = self.skip.iter().map(|path| path.as_str()).collect::<Vec<_>>().join("\n");
        command.env.insert(vars::LD_PRELOAD.to_owned(), format!("{}{theirs}", self.library));
        command.env.insert(vars::CUWRIGHT_READS.to_owned(), self.folder.to_string());
        command.env.insert(vars::CUWRIGHT_READS_SKIP.to_owned(), skip);
        command
    }
}

/// The library, made where it is not there yet.
fn made(cache_root: &Utf8Path, host: &HostCompiler, path: &str) -> Result<Utf8PathBuf, String> {
    let arch = std::env::consts::ARCH;
    let key = files::sha256(format!("{SOURCE}\0{}\0{}\0{arch}", host.cc, host.version).as_bytes());
    let library = cache_root.join(TOOLS).join(format!("recorder-{}.so", key.get(..16).unwrap_or(&key)));
    if library.exists() {
        return Ok(library);
    }
    let words = |error: std::io::Error| error.to_string();
    fs::create_dir_all(cache_root.join(TOOLS)).map_err(words)?;
    let work = tempfile::Builder::new().prefix(".recorder-").tempdir_in(cache_root.join(TOOLS)).map_err(words)?;
    let work = Utf8Path::from_path(work.path()).ok_or("the path of the cache folder is not UTF-8")?;
    fs::write(work.join("recorder.c"), SOURCE).map_err(words)?;
    let flags = ["-O2", "-shared", "-fPIC", "-fno-builtin", "-U_FORTIFY_SOURCE", "-w", "recorder.c", "-o", "made.so"];
    let env = [(vars::PATH, path), (vars::LC_ALL, "C")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let spec = CommandSpec::new(host.cc.as_str(), work).args(flags).args(["-ldl"]).env(env.into());
    let said = process::capture(&spec, PATIENCE).map_err(|error| format!("{} {error}", host.cc))?;
    if !said.status.success() {
        return Err(format!("{} could not compile what follows it: {}", host.cc, said.tail(1)));
    }
    fs::rename(work.join("made.so"), &library).map_err(words)?;
    Ok(library)
}

/// The loader splits its list at blanks and colons, with no way to quote them.
fn plain(library: Utf8PathBuf) -> std::io::Result<(Utf8PathBuf, Option<tempfile::TempDir>)> {
    if !library.as_str().contains([' ', ':', '\t', '\n']) {
        return Ok((library, None));
    }
    let short = tempfile::Builder::new().prefix("cuwright-").tempdir_in("/tmp")?;
    let copy = Utf8PathBuf::from_path_buf(short.path().join("recorder.so"))
        .map_err(|_| std::io::ErrorKind::InvalidFilename)?;
    fs::copy(&library, &copy)?;
    Ok((copy, Some(short)))
}

#[cfg(test)]
mod tests;
