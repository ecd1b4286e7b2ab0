//! uv: the one on `PATH`, else a pinned one that the Python's own pip fetches as a wheel.
//!
//! `Tool` is uv together with the environment it always gets. Invariant: the wheel is checked against the hashes in
//! `uv.txt`, which pip enforces, and the program appears in its place complete or not at all.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::{Event, Request, Watcher, faults, index};
use crate::domain::{command::CommandSpec, problem::Problem, toolchain::Python};
use crate::sys::{Env, env_vars as vars, files, lines, lock::Lock, process};

/// The pinned version with the hashes of its wheels, as pip reads them.
const PINNED: &str = include_str!("uv.txt");
/// Oldest uv that has every option used here.
const OLDEST: (u32, u32) = (0, 5);
const PATIENCE: Duration = Duration::from_secs(30);
/// Variables that would lead uv to another environment than the one named.
const CLEARED: [&str; 8] = [
    vars::VIRTUAL_ENV,
    vars::CONDA_PREFIX,
    vars::PYTHONPATH,
    vars::PYTHONHOME,
    "UV_PYTHON",
    "UV_SYSTEM_PYTHON",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
];

/// uv and everything it is run with.
#[derive(Debug, Clone)]
pub struct Tool {
    program: Utf8PathBuf,
    variables: BTreeMap<String, String>,
}

impl Tool {
    /// uv set up for one request.
    pub fn new(program: Utf8PathBuf, request: &Request, root: &Utf8Path, env: &Env) -> Self {
        let mut variables = env.variables().clone();
        variables.retain(|name, _| !CLEARED.contains(&name.as_str()));
        variables.extend(index::variables(&request.python, env));
        let mut set = |name: &str, value: &str| variables.insert(name.to_owned(), value.to_owned());
        set("UV_PYTHON_DOWNLOADS", "never");
        set(vars::NO_COLOR, "1");
        if request.offline {
            set(vars::UV_OFFLINE, "1");
        }
        // An index behind a company's certificate is trusted through the system's store, as pip and curl do it there. The
        // variable has another name before uv 0.13.
        if env.get(vars::UV_SYSTEM_CERTS).is_none() && env.get(vars::UV_NATIVE_TLS).is_none() {
            set(vars::UV_SYSTEM_CERTS, "1");
            set(vars::UV_NATIVE_TLS, "1");
        }
        // A cache root that was chosen by hand is chosen for its disk: uv's wheels belong there too.
        if env.get(vars::CUWRIGHT_CACHE_DIR).is_some() && env.get(vars::UV_CACHE_DIR).is_none() {
            set(vars::UV_CACHE_DIR, root.join("uv").as_str());
        }
        Self { program, variables }
    }

    /// A command of uv, run where no project's configuration is in reach.
    pub fn command<S: Into<String>>(&self, args: impl IntoIterator<Item = S>) -> CommandSpec {
        CommandSpec::new(self.program.as_str(), "/").args(args).env(self.variables.clone())
    }

    /// The value uv sees for a variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

/// A working uv: found, kept from an earlier run, or fetched.
pub fn obtain(
    python: &Python,
    root: &Utf8Path,
    env: &Env,
    offline: bool,
    watch: Watcher<'_>,
) -> Result<Utf8PathBuf, Problem> {
    fs::create_dir_all(root).map_err(|error| faults::disk(root.as_str(), &error))?;
    let fitting = |program: &Utf8PathBuf| version(program, env).is_some_and(|version| version >= OLDEST);
    if let Some(program) = env.find_programs("uv").into_iter().find(fitting) {
        return Ok(program);
    }
    let pinned = pinned_version();
    let folder = root.join("tools").join(format!("uv-{pinned}"));
    let program = folder.join("uv");
    if program.is_file() {
        return Ok(program);
    }
    if offline {
        return Err(faults::uv_offline());
    }
    let lock = Utf8PathBuf::from(format!("{folder}.lock"));
    let _alone = Lock::exclusive(&lock, || {}).map_err(|error| faults::disk(lock.as_str(), &error))?;
    if !program.is_file() {
        watch(Event::FetchingUv { version: pinned.to_owned() });
        fetch(python, &folder, env)?;
    }
    Ok(program)
}

fn pinned_version() -> &'static str {
    PINNED.split_whitespace().next().and_then(|first| first.strip_prefix("uv==")).unwrap_or_default()
}

/// `uv 0.13.9 (…)`; `None` where it does not run, as a version manager's empty shim.
fn version(program: &Utf8Path, env: &Env) -> Option<(u32, u32)> {
    let spec = CommandSpec::new(program.as_str(), "/").args(["--version"]).env(env.tool_variables());
    let said = process::capture(&spec, PATIENCE).ok().filter(|said| said.status.success())?;
    let mut parts = said.stdout.split_whitespace().nth(1)?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Has pip download the wheel, takes the program out, and moves it into place.
fn fetch(python: &Python, folder: &Utf8Path, env: &Env) -> Result<(), Problem> {
    let disk = |error: std::io::Error| faults::disk(folder.as_str(), &error);
    let parent = folder.parent().unwrap_or(folder);
    let staged = tempfile::Builder::new().prefix(".uv-").tempdir_in(parent).map_err(disk)?;
    let staging = Utf8Path::from_path(staged.path()).unwrap_or(folder);
    let pins = staging.join("uv.txt");
    fs::write(&pins, PINNED).map_err(disk)?;
    let with_pip = pythons(python, env).into_iter().find(|program| has_pip(program, env));
    let with_pip = with_pip.ok_or_else(|| faults::no_pip(python))?;
    let spec = CommandSpec::new(with_pip.as_str(), staging)
        .args(["-I", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar", "off", "-r", pins.as_str(), "-d", staging.as_str()])
        .env(env.probe_variables());
    let finished = lines::run(&spec, None, |_| {}).map_err(|error| faults::pip(&[error.to_string()]))?;
    if !finished.status.success() {
        return Err(faults::pip(&finished.stderr));
    }
    let wheels = staging.read_dir_utf8().map_err(disk)?.flatten();
    let wheel = wheels.map(|entry| entry.path().to_owned()).find(|path| path.extension() == Some("whl"));
    let program = wheel.and_then(|wheel| program_in(&wheel)).ok_or_else(|| faults::no_uv_in_wheel(&with_pip))?;
    let ready = staging.join("ready");
    files::write_atomic(&ready.join("uv"), &program).map_err(disk)?;
    fs::set_permissions(ready.join("uv"), std::fs::Permissions::from_mode(0o755)).map_err(disk)?;
    files::remove_tree(folder).map_err(disk)?;
    fs::rename(&ready, folder).map_err(disk)
}

/// Pythons whose pip may fetch uv: any will do, since the wheel does not depend on it.
fn pythons(python: &Python, env: &Env) -> Vec<Utf8PathBuf> {
    let settings = python.executable.parent().and_then(|bin| bin.parent()).map(|root| root.join("pyvenv.cfg"));
    let settings = settings.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let value = |line: &str| {
        line.split_once('=').filter(|(key, _)| key.trim() == "home").map(|(_, home)| home.trim().to_owned())
    };
    let base = settings.lines().find_map(value).map(|home| Utf8PathBuf::from(home).join("python3"));
    [vec![python.executable.clone()], base.into_iter().collect(), env.find_programs("python3")].concat()
}

fn has_pip(program: &Utf8Path, env: &Env) -> bool {
    let spec =
        CommandSpec::new(program.as_str(), "/").args(["-I", "-m", "pip", "--version"]).env(env.probe_variables());
    process::capture(&spec, PATIENCE).is_ok_and(|said| said.status.success())
}

/// The file `uv-<version>.data/scripts/uv` of the wheel.
fn program_in(wheel: &Utf8Path) -> Option<Vec<u8>> {
    let mut archive = zip::ZipArchive::new(fs::File::open(wheel).ok()?).ok()?;
    let mut names = archive.file_names().flatten();
    let name = names.find(|name| name.ends_with(".data/scripts/uv"))?.into_owned();
    drop(names);
    let mut program = Vec::new();
    archive.by_name(&name).ok()?.read_to_end(&mut program).ok()?;
    Some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_is_one_version_with_hashes() {
        assert!(pinned_version().split('.').count() == 3);
        let hashes = PINNED.matches("--hash=sha256:").count();
        assert!(hashes > 10 && PINNED.lines().count() == hashes + 1);
    }

    #[test]
    fn a_shim_without_uv_behind_it_is_no_uv() {
        let env = Env::of("/", [("PATH", "/bin")]);
        assert_eq!(version(Utf8Path::new("/bin/false"), &env), None);
        assert_eq!(version(Utf8Path::new("/nonexistent"), &env), None);
    }

    #[test]
    fn without_network_and_uv_the_problem_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let python = Python { executable: "/nonexistent".into(), ..crate::domain::toolchain::sample().python };
        let env = Env::of("/", [("PATH", "/none")]);
        let code = |offline| obtain(&python, root, &env, offline, &mut |_| {}).map_err(|problem| problem.code());
        assert_eq!(code(true), Err("cuwright::provision::offline"));
        assert_eq!(code(false), Err("cuwright::provision::no_uv"));
        assert!(!root.join("tools/uv-0").exists());
    }
}
