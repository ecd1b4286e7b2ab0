//! Requirements in, a hashed lock out; stored by request, so that the same request needs no network again.
//!
//! Invariant: everything is resolved in one go, since a toolkit resolved apart from torch can bring a library that does
//! not fit torch's. The lock is uv's own format without comments.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::{Event, Request, Watcher, faults, uv::Tool};
use crate::domain::problem::Problem;
use crate::sys::{files, process};

const BUCKET: &str = "resolutions-v1";
/// Resolving can mean building the metadata of source packages.
const PATIENCE: Duration = Duration::from_mins(15);

/// What a request is stored under. Whether the network may be used does not change what it means.
pub(super) fn key(request: &Request) -> String {
    let mut requirements = request.requirements.clone();
    requirements.sort();
    requirements.dedup();
    let python = &request.python;
    let parts = [&requirements[..], &[python.version.clone(), python.tag.clone(), python.platform.clone()]].concat();
    files::sha256(parts.join("\n").as_bytes())
}

/// The lock of an earlier run, if there was one.
pub(super) fn stored(root: &Utf8Path, key: &str) -> Option<String> {
    fs::read_to_string(place(root, key)).ok().filter(|lock| !packages(lock).is_empty())
}

/// Asks uv, and stores what it says.
pub(super) fn resolve(
    tool: &Tool,
    request: &Request,
    root: &Utf8Path,
    key: &str,
    watch: Watcher<'_>,
) -> Result<String, Problem> {
    watch(Event::Resolving { requirements: request.requirements.len() });
    let folder = tempfile::tempdir().map_err(|error| faults::disk("a temporary folder", &error))?;
    let folder = Utf8Path::from_path(folder.path()).unwrap_or(root);
    let input = folder.join("requirements.in");
    fs::write(&input, request.requirements.join("\n") + "\n").map_err(|error| faults::disk(input.as_str(), &error))?;
    let spec = tool.command(["pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate"]).args([
        "--no-emit-index-url",
        "--python",
        request.python.executable.as_str(),
        input.as_str(),
    ]);
    let said = process::capture(&spec, PATIENCE).map_err(|error| faults::uv_failed("resolve", &[error.to_string()]))?;
    if !said.status.success() {
        return Err(faults::uv_failed("resolve", &said.stderr.lines().map(str::to_owned).collect::<Vec<_>>()));
    }
    let lock = plain(&said.stdout);
    let path = place(root, key);
    files::write_atomic(&path, lock.as_bytes()).map_err(|error| faults::disk(path.as_str(), &error))?;
    Ok(lock)
}

/// The pinned packages of a lock, as name and version.
pub(super) fn packages(lock: &str) -> Vec<(&str, &str)> {
    let pinned = lock.lines().filter(|line| !line.starts_with(char::is_whitespace));
    pinned.filter_map(|line| line.trim_end_matches(['\\', ' ']).split_once("==")).collect()
}

/// The version that a lock pins a package to.
pub(super) fn version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let found = packages(lock).into_iter().find(|(package, _)| *package == name)?;
    found.1.split_whitespace().next()
}

fn place(root: &Utf8Path, key: &str) -> Utf8PathBuf {
    root.join(BUCKET).join(format!("{key}.lock"))
}

/// The file whose lock says that somebody brings what a request asks for.
pub(super) fn turn(root: &Utf8Path, key: &str) -> Utf8PathBuf {
    root.join(BUCKET).join(format!("{key}.turn"))
}

fn plain(text: &str) -> String {
    let telling = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let lines: Vec<&str> = text.lines().filter(telling).map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::toolchain::Python;

    fn request(requirements: &[&str], version: &str) -> Request {
        Request {
            python: Python {
                executable: "/p".into(),
                version: version.into(),
                tag: "cp311".into(),
                platform: "linux-x86_64".into(),
                libc: None,
                site_dirs: Vec::new(),
                headers: None,
                origin: "test".into(),
            },
            requirements: requirements.iter().map(|text| (*text).to_owned()).collect(),
            offline: false,
            install: true,
            kind: crate::provision::Kind::Whole,
        }
    }

    #[test]
    fn a_request_is_the_same_in_any_order_and_differs_by_python() {
        let one = key(&request(&["a", "b<2"], "3.11.7"));
        assert_eq!(one, key(&request(&["b<2", "a"], "3.11.7")));
        assert_ne!(one, key(&request(&["a", "b<2"], "3.11.8")));
        assert_ne!(one, key(&request(&["a"], "3.11.7")));
        let offline = Request { offline: true, ..request(&["a", "b<2"], "3.11.7") };
        assert_eq!(one, key(&offline));
    }

    #[test]
    fn a_lock_tells_its_packages() {
        let said = "# by uv\n\ntorch==2.11.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\nx==1 ; sys_platform == 'linux' \\\n    --hash=sha256:cc\n";
        let lock = plain(said);
        assert_eq!(lock.lines().count(), 5);
        assert_eq!(packages(&lock).len(), 2);
        assert_eq!((version(&lock, "torch"), version(&lock, "x")), (Some("2.11.0"), Some("1")));
        assert_eq!(version(&lock, "y"), None);
    }
}
