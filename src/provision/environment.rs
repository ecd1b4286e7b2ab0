//! Environment folders: made in place under an exclusive lock, complete once their manifest is written.
//!
//! A Python environment knows its own path, so it cannot be staged elsewhere and renamed. Invariant: a folder without
//! its manifest, or with one that was written for another place, does not exist: it is removed and made anew.

use std::io;
use std::time::UNIX_EPOCH;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Event, Kind, Request, Watcher, faults, resolve, shape, uv::Tool};
use crate::domain::problem::Problem;
use crate::sys::{clock, files, lines, lock::Lock};

/// Folder of all environments under the cache root.
pub(super) const BUCKET: &str = "toolchains-v1";
/// Written last.
const MANIFEST: &str = "cuwright-environment.json";
/// Part of the digest: goes up when the same lock is to give another folder, as when the shape changes.
const FORMAT: &str = "cuwright environment 1";
/// The same for what is added to an environment.
const OVERLAY_FORMAT: &str = "cuwright overlay 1";

/// A complete environment, safe from removal while this value lives.
#[derive(Debug)]
pub struct Environment {
    /// Content address.
    pub digest: String,
    /// Its folder.
    pub root: Utf8PathBuf,
    /// Its interpreter.
    pub python: Utf8PathBuf,
    /// Its packages.
    pub site: Utf8PathBuf,
    /// Its shaped toolkit.
    pub cuda_home: Utf8PathBuf,
    /// Whether this call made it.
    pub fresh: bool,
    /// Keeps it.
    pub lease: Lock,
}

/// What an environment says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) digest: String,
    pub(super) root: Utf8PathBuf,
    pub(super) python: String,
    pub(super) base: Utf8PathBuf,
    pub(super) torch: Option<String>,
    pub(super) cuda: Option<String>,
    pub(super) site: Utf8PathBuf,
    pub(super) packages: Vec<String>,
    pub(super) bytes: u64,
    pub(super) created: u64,
}

/// Content address of a lock on a Python. 32 digits keep interpreter lines of scripts short.
pub(super) fn digest(lock: &str, request: &Request) -> String {
    let python = &request.python;
    let format = match request.kind {
        Kind::Whole => FORMAT,
        Kind::Overlay => OVERLAY_FORMAT,
    };
    let parts = [format, &python.version, &python.tag, &python.platform, lock];
    files::sha256(parts.join("\n").as_bytes())[..32].to_owned()
}

/// The environment of a lock, if it is there and complete.
pub(super) fn existing(root: &Utf8Path, lock: &str, request: &Request) -> Option<Environment> {
    let digest = digest(lock, request);
    let folder = root.join(BUCKET).join(&digest);
    manifest(&folder)?;
    let lease = Lock::shared(&lock_path(&folder)).ok()?;
    let manifest = manifest(&folder)?;
    if !is_whole(&folder, &manifest, request.kind) {
        return None;
    }
    let found = Environment {
        python: interpreter(&folder, request),
        cuda_home: folder.join("cuda"),
        site: manifest.site,
        root: folder,
        digest,
        fresh: false,
        lease,
    };
    // The mtime says when it was last used; where it cannot be set, only a listing is less exact.
    let _ = fs::File::open(found.root.join(MANIFEST)).and_then(|file| file.file().set_modified(clock::now()));
    Some(found)
}

fn interpreter(folder: &Utf8Path, request: &Request) -> Utf8PathBuf {
    match request.kind {
        Kind::Whole => folder.join("bin/python"),
        Kind::Overlay => request.python.executable.clone(),
    }
}

/// Whether what every build needs is there; `make` makes it anew where it is not.
fn is_whole(folder: &Utf8Path, manifest: &Manifest, kind: Kind) -> bool {
    if kind == Kind::Overlay {
        return manifest.site.is_dir() && (manifest.cuda.is_none() || shape::wheel_home(&manifest.site).is_some());
    }
    let needed = ["bin/python", "cuda/bin/nvcc"].map(|path| folder.join(path));
    needed.iter().all(|path| path.exists()) && manifest.site.join("torch").exists()
}

/// Makes the environment of a lock, or waits for whoever makes it.
pub(super) fn make(
    tool: &Tool,
    lock: &str,
    request: &Request,
    root: &Utf8Path,
    watch: Watcher<'_>,
) -> Result<Environment, Problem> {
    let digest = digest(lock, request);
    let folder = root.join(BUCKET).join(&digest);
    let disk = |error: io::Error| faults::disk(folder.as_str(), &error);
    let alone = Lock::exclusive(&lock_path(&folder), || watch(Event::Waiting)).map_err(disk)?;
    let whole = manifest(&folder).is_some_and(|manifest| is_whole(&folder, &manifest, request.kind));
    if !whole {
        files::remove_tree(&folder).map_err(disk)?;
        if let Err(problem) = fill(tool, lock, request, &folder, &digest, &alone, watch) {
            let _ = files::remove_tree(&folder);
            return Err(problem);
        }
    }
    drop(alone);
    let found = existing(root, lock, request).ok_or_else(|| faults::incomplete(&folder, "usable environment"))?;
    Ok(Environment { fresh: !whole, ..found })
}

const INSTALL: [&str; 4] = ["pip", "install", "--require-hashes", "--no-deps"];

fn fill(
    tool: &Tool,
    lock: &str,
    request: &Request,
    folder: &Utf8Path,
    digest: &str,
    alone: &Lock,
    watch: Watcher<'_>,
) -> Result<(), Problem> {
    let stopwatch = clock::Stopwatch::start();
    let disk = |error: io::Error| faults::disk(folder.as_str(), &error);
    let packages = resolve::packages(lock);
    watch(Event::Installing { digest: digest.to_owned(), packages: packages.len() });
    let base = request.python.executable.as_str();
    let pins = folder.join("cuwright.lock");
    let site = match request.kind {
        Kind::Whole => {
            run(tool, alone, "venv", &["venv", "--quiet", "--no-project", "--python", base, folder.as_str()], watch)?;
            files::write_atomic(&pins, lock.as_bytes()).map_err(disk)?;
            let python = folder.join("bin/python");
            let into = ["--python", python.as_str()];
            run(tool, alone, "install", &[&INSTALL[..], &into, &["-r", pins.as_str()]].concat(), watch)?;
            let site = site_of(folder).ok_or_else(|| faults::incomplete(folder, "site-packages"))?;
            let wheel = shape::wheel_home(&site).ok_or_else(|| faults::incomplete(&site, "nvcc"))?;
            shape::shape(&shape::Parts::of_wheel(&wheel), &folder.join("cuda")).map_err(disk)?;
            site
        }
        Kind::Overlay => {
            files::write_atomic(&pins, lock.as_bytes()).map_err(disk)?;
            let site = folder.join("site");
            let into = ["--python", base, "--target", site.as_str()];
            run(tool, alone, "install", &[&INSTALL[..], &into, &["-r", pins.as_str()]].concat(), watch)?;
            site
        }
    };
    let manifest = Manifest {
        digest: digest.to_owned(),
        root: folder.to_owned(),
        python: request.python.version.clone(),
        base: request.python.executable.clone(),
        torch: resolve::version(lock, "torch").map(str::to_owned),
        cuda: resolve::version(lock, "nvidia-cuda-nvcc").map(str::to_owned),
        site,
        packages: packages.iter().map(|(name, version)| format!("{name}=={version}")).collect(),
        bytes: size(folder),
        created: clock::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
    };
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| disk(error.into()))?;
    files::write_atomic(&folder.join(MANIFEST), &text).map_err(disk)?;
    watch(Event::Ready { digest: digest.to_owned(), bytes: manifest.bytes, took: stopwatch.elapsed() });
    Ok(())
}

/// Runs uv; it holds our lock too, so that a uv that outlives us is waited for.
fn run(tool: &Tool, alone: &Lock, what: &str, args: &[&str], watch: Watcher<'_>) -> Result<(), Problem> {
    let spec = tool.command(args.iter().copied());
    let finished = lines::run(&spec, Some(alone), |line| watch_line(line, watch));
    let finished = finished.map_err(|error| faults::uv_failed(what, &[error.to_string()]))?;
    if finished.status.success() { Ok(()) } else { Err(faults::uv_failed(what, &finished.stderr)) }
}

/// uv says `Downloading torch (506.0MiB)` and later ` Downloaded torch`.
fn watch_line(line: &str, watch: Watcher<'_>) {
    let line = line.trim();
    if let Some((name, size)) = line.strip_prefix("Downloading ").and_then(|rest| rest.split_once(" (")) {
        watch(Event::Downloading { name: name.to_owned(), size: size.trim_end_matches(')').to_owned() });
    } else if let Some(name) = line.strip_prefix("Downloaded ") {
        watch(Event::Downloaded { name: name.to_owned() });
    }
}

/// The manifest of a folder, unless it was written for another place.
pub(super) fn manifest(folder: &Utf8Path) -> Option<Manifest> {
    let text = fs::read(folder.join(MANIFEST)).ok()?;
    // A cache may be reached by several names; what counts is that the one it was written for still leads here.
    let here = |root: &Utf8Path| root == folder || root.canonicalize_utf8().ok() == folder.canonicalize_utf8().ok();
    serde_json::from_slice::<Manifest>(&text).ok().filter(|manifest| here(&manifest.root))
}

/// When the environment was last used, in seconds since 1970.
pub(super) fn last_used(folder: &Utf8Path) -> Option<u64> {
    let modified = fs::metadata(folder.join(MANIFEST)).ok()?.modified().ok()?;
    modified.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// The lock beside a folder.
pub(super) fn lock_path(folder: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{folder}.lock"))
}

/// Takes the manifest away first, so that an interrupted removal leaves a folder that does not exist.
pub(super) fn erase(folder: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(folder.join(MANIFEST)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    files::remove_tree(folder)
}

fn site_of(folder: &Utf8Path) -> Option<Utf8PathBuf> {
    let libs = folder.join("lib").read_dir_utf8().ok()?.flatten();
    libs.map(|entry| entry.path().join("site-packages")).find(|site| site.is_dir())
}

fn size(folder: &Utf8Path) -> u64 {
    let entries = walkdir::WalkDir::new(folder).into_iter().flatten();
    entries.filter(|entry| entry.file_type().is_file()).filter_map(|entry| entry.metadata().ok()).map(|m| m.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uv_lines_become_events() {
        let mut seen = Vec::new();
        for line in ["Resolved 37 packages in 5s", "Downloading torch (506.0MiB)", " Downloaded torch"] {
            watch_line(line, &mut |event| seen.push(event));
        }
        let name = "torch".to_owned();
        assert_eq!(
            seen,
            [Event::Downloading { name: name.clone(), size: "506.0MiB".into() }, Event::Downloaded { name }]
        );
    }

    #[test]
    fn a_moved_or_half_made_folder_does_not_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let here = root.join("here");
        fs::create_dir_all(&here).unwrap();
        assert_eq!(manifest(&here), None);
        let written = Manifest {
            digest: "d".into(),
            root: here.clone(),
            python: "3.11.7".into(),
            base: "/p".into(),
            torch: None,
            cuda: None,
            site: here.clone(),
            packages: Vec::new(),
            bytes: 1,
            created: 2,
        };
        fs::write(here.join(MANIFEST), serde_json::to_vec(&written).unwrap()).unwrap();
        assert_eq!(manifest(&here), Some(written));
        fs::rename(&here, root.join("there")).unwrap();
        assert_eq!(manifest(&root.join("there")), None);
        erase(&root.join("there")).unwrap();
        erase(&root.join("there")).unwrap();
        assert!(!root.join("there").exists());
    }
}
