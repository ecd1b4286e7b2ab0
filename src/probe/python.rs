//! Finds and describes Python interpreters.
//!
//! Order: `--python` (a path, a program name or a version) alone; else the active virtual or conda environment; else
//! `python3` and its versioned names on `PATH`. An interpreter is asked once and its answer remembered.

use std::collections::BTreeSet;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::facts::{self, Facts};
use crate::domain::{command::CommandSpec, exit::Exit, problem::Problem, toolchain::Python};
use crate::sys::{Env, env_vars as vars, files, process};

/// Oldest Python that cuwright drives.
const OLDEST: (u32, u32) = (3, 9);
/// Versioned names looked for after `python3`, the newest with torch wheels first.
const VERSIONED: [&str; 7] =
    ["python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9", "python"];
const PATIENCE: Duration = Duration::from_mins(1);

/// Keeps everything out that is not Python's own: `-I` leaves out the working folder, `PYTHONPATH` and the user's
/// packages, `-S` keeps `sitecustomize` and the code of `.pth` files from running.
const ISOLATED: [&str; 3] = ["-I", "-S", "-c"];

/// Asks an interpreter everything at once. Only modules of the standard library are imported. The folders of packages
/// are worked out as `site` would, and `.pth` files are read as text: a line that `site` would execute is left out.
const QUESTIONS: &str = include_str!("describe.py");

/// Shorter lines of the questions are found in other texts as well.
const SPEAKING: usize = 8;
/// Longer lines of a program's words are cut.
const LONGEST: usize = 300;
const NO_PYTHON: &str = "it does not answer like a Python 3";

/// What an interpreter said: its facts, or why it gave none.
type Answer = Result<Python, String>;

/// A program that may be a Python, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The program.
    pub program: Utf8PathBuf,
    /// How it was found.
    pub origin: String,
}

/// The programs to try, in order: exactly one if `wanted` names it. None of them has been started yet.
pub fn candidates(wanted: Option<&str>, env: &Env) -> Result<Vec<Candidate>, Problem> {
    let found = match wanted {
        Some(wanted) => {
            let program = named(wanted, env).ok_or_else(|| missing_named(wanted))?;
            vec![Candidate { program, origin: "--python".to_owned() }]
        }
        None => programs(env),
    };
    if found.is_empty() { Err(missing()) } else { Ok(found) }
}

/// Describes one interpreter, or says why it cannot be used.
pub fn describe(candidate: &Candidate, env: &Env, facts: &Facts) -> Result<Python, Problem> {
    let Candidate { program, origin } = candidate;
    let answer: Answer = match context(program, env) {
        Some(context) => facts.remember("python", program, &context, || ask(program, env))?,
        None => ask(program, env)?,
    };
    let known = answer.map_err(|reason| broken(program, &reason))?;
    let implementation = known.origin.as_str();
    if implementation != "cpython" {
        return Err(broken(program, &format!("it is {implementation}; torch exists for CPython only")));
    }
    let mut parts = known.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version < OLDEST {
        let (major, minor) = OLDEST;
        let message = format!("Python {} is too old", known.version);
        return Err(Problem::new("cuwright::probe::python_too_old", Exit::Toolchain, message)
            .why(format!("{program} ({origin})"))
            .help(format!("name Python {major}.{minor} or newer with `--python`")));
    }
    Ok(Python { origin: origin.clone(), ..known })
}

/// Where to look when nothing was named, and what to call each place.
fn programs(env: &Env) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for variable in [vars::VIRTUAL_ENV, vars::CONDA_PREFIX] {
        let program = env.get(variable).map(|root| env.absolute(Utf8Path::new(root)).join("bin/python"));
        let program = program.filter(|program| program.exists());
        found.extend(program.map(|program| Candidate { program, origin: variable.to_owned() }));
    }
    for name in std::iter::once("python3").chain(VERSIONED) {
        let programs = env.find_programs(name).into_iter();
        found.extend(programs.map(|program| Candidate { program, origin: format!("`{name}` on PATH") }));
    }
    let kept = managed("3", env).into_iter();
    found.extend(kept.map(|program| Candidate { program, origin: "kept by pyenv or uv".to_owned() }));
    let mut seen = std::collections::BTreeSet::new();
    // Where `/bin` is a link to `/usr/bin`, every program is there twice; a venv's link to it is another Python.
    found.retain(|candidate| seen.insert(real_folder(&candidate.program)));
    found
}

/// Interpreters that pyenv and uv keep, of this version, the newest first.
fn managed(version: &str, env: &Env) -> Vec<Utf8PathBuf> {
    let Some(home) = env.get(vars::HOME).map(Utf8PathBuf::from) else { return Vec::new() };
    let pyenv = env.get(vars::PYENV_ROOT).map_or_else(|| home.join(".pyenv"), Utf8PathBuf::from).join("versions");
    let uv =
        env.get(vars::UV_PYTHON_INSTALL_DIR).map_or_else(|| home.join(".local/share/uv/python"), Utf8PathBuf::from);
    let release = |name: &str| {
        let number = name.strip_prefix("cpython-").unwrap_or(name).split(['-', '+']).next().unwrap_or_default();
        number.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<u32>>>()
    };
    let sought = release(version).unwrap_or_default();
    let entries = [pyenv, uv].into_iter().filter_map(|folder| folder.read_dir_utf8().ok()).flatten().flatten();
    let mut found: Vec<(Vec<u32>, Utf8PathBuf)> = entries
        .filter_map(|entry| Some((release(entry.file_name())?, entry.path().join("bin/python3"))))
        .filter(|(release, program)| release.starts_with(&sought) && program.exists())
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, program)| program).collect()
}

fn real_folder(program: &Utf8Path) -> Option<Utf8PathBuf> {
    Some(program.parent()?.canonicalize_utf8().ok()?.join(program.file_name()?))
}

fn is_shim(program: &Utf8Path) -> bool {
    program.parent().is_some_and(|folder| folder.ends_with("shims"))
}

/// The program that a `--python` value means.
fn named(wanted: &str, env: &Env) -> Option<Utf8PathBuf> {
    if wanted.starts_with(|c: char| c.is_ascii_digit()) {
        let mut parts = wanted.split('.');
        let (major, minor) = (parts.next()?, parts.next().map(|minor| format!(".{minor}")).unwrap_or_default());
        let on_path = env.find_programs(&format!("python{major}{minor}"));
        let real = on_path.iter().find(|program| !is_shim(program)).cloned();
        return real.or_else(|| managed(wanted, env).into_iter().next()).or_else(|| on_path.into_iter().next());
    }
    let path = env.absolute(Utf8Path::new(wanted));
    let inside = path.join("bin/python");
    if path.is_dir() && inside.exists() {
        return Some(inside);
    }
    env.find_program(wanted)
}

/// What else the answer hangs on; `None` where it cannot be known, so that nothing may be remembered.
fn context(program: &Utf8Path, env: &Env) -> Option<Vec<String>> {
    let named = [vars::PYTHONPATH, vars::PYTHONHOME, vars::PYTHONNOUSERSITE, vars::PYTHONUSERBASE, vars::HOME];
    let mut context: Vec<String> = named.iter().map(|name| env.get(name).unwrap_or_default().to_owned()).collect();
    let folder = program.parent()?;
    context.extend(folder.parent().and_then(|root| facts::stamp(&root.join("pyvenv.cfg"))));
    context.extend(packages_seen(program, env));
    if files::head(program) == Some(*b"\x7fELF") {
        return Some(context);
    }
    // A script is only understood where it is pyenv's: what it runs is then named by a variable or by a version file.
    if folder.file_name() != Some("shims") {
        return None;
    }
    context.push(env.get(vars::PYENV_VERSION).unwrap_or_default().to_owned());
    let chosen = env.current_dir().ancestors().map(|folder| folder.join(".python-version"));
    for file in chosen.chain([folder.parent()?.join("version")]) {
        context.push(fs::read_to_string(file).unwrap_or_default());
    }
    Some(context)
}

/// The folders of packages that are there now, with their times: one that comes later, or a `.pth` file laid into one,
/// changes what a Python says of its path.
fn packages_seen(program: &Utf8Path, env: &Env) -> Vec<String> {
    let canonical = program.canonicalize_utf8().ok();
    let roots =
        [Some(program), canonical.as_deref()].into_iter().flatten().filter_map(|program| program.parent()?.parent());
    let user = env.get(vars::PYTHONUSERBASE).map(Utf8PathBuf::from);
    let user = user.or_else(|| env.get(vars::HOME).map(|home| Utf8Path::new(home).join(".local")));
    // A set: a program and what it is a link to mostly have the same ones.
    let mut folders: BTreeSet<Utf8PathBuf> =
        env.get(vars::PYTHONPATH).unwrap_or_default().split(':').map(Utf8PathBuf::from).collect();
    for root in roots.map(Utf8Path::to_owned).chain(user).collect::<BTreeSet<_>>() {
        let versions = root.join("lib").read_dir_utf8().into_iter().flatten().flatten();
        let versions =
            versions.filter(|entry| entry.file_name().starts_with("python3")).map(|entry| entry.path().to_owned());
        folders.extend(versions.flat_map(|folder| [folder.join("site-packages"), folder.join("dist-packages")]));
    }
    folders.iter().filter(|folder| !folder.as_str().is_empty()).filter_map(|folder| facts::stamp(folder)).collect()
}

/// A refusal is an answer too, and remembered; a program that hangs or cannot be started is not.
fn ask(program: &Utf8Path, env: &Env) -> Result<Answer, Problem> {
    let value = |name: &str| env.get(name).unwrap_or_default();
    let given = [vars::PYTHONPATH, vars::HOME, vars::PYTHONUSERBASE, vars::PYTHONNOUSERSITE].map(value);
    // A shim of pyenv chooses by the working folder; a Python itself never sees it.
    let folder = if is_shim(program) { env.current_dir() } else { Utf8Path::new("/") };
    let spec = CommandSpec::new(program.as_str(), folder)
        .args(ISOLATED)
        .args([QUESTIONS])
        .args(given)
        .env(env.probe_variables());
    let said = process::capture(&spec, PATIENCE).map_err(|error| broken(program, &error.to_string()))?;
    if !said.status.success() {
        return Ok(Err(telling(&said.stderr)));
    }
    let last = said.stdout.lines().next_back().unwrap_or_default();
    Ok(serde_json::from_str(last).map_err(|_| NO_PYTHON.to_owned()))
}

/// The first and the last lines: a shim says what is wrong first, a traceback last. What only repeats the question, as a
/// program does that took it for a file's name, is no answer.
fn telling(words: &str) -> String {
    let asked: Vec<&str> = QUESTIONS.lines().map(str::trim).filter(|line| line.len() >= SPEAKING).collect();
    let all: Vec<&str> = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let own = all.iter().filter(|line| !asked.iter().any(|asked| line.contains(asked)));
    let lines: Vec<String> = own.map(|line| line.chars().take(LONGEST).collect()).collect();
    match lines.len() {
        0 if all.is_empty() => "it failed without a word".to_owned(),
        0 => NO_PYTHON.to_owned(),
        1..=6 => lines.join("\n"),
        count => [&lines[..3], &lines[count - 3..]].concat().join("\n"),
    }
}

fn broken(program: &Utf8Path, reason: &str) -> Problem {
    let problem = Problem::new("cuwright::probe::python_broken", Exit::Toolchain, format!("{program} cannot be used"));
    reason.lines().fold(problem, |problem, line| problem.why(line.trim())).help("name a working one with `--python`")
}

fn missing() -> Problem {
    Problem::new("cuwright::probe::python_missing", Exit::Toolchain, "no Python was found")
        .why("looked at VIRTUAL_ENV, CONDA_PREFIX and `python3` on PATH")
        .help("Debian, Ubuntu: apt-get install python3 python3-dev python3-pip")
        .help("Fedora, RHEL: dnf install python3 python3-devel python3-pip")
        .help("or name one with `--python`")
}

fn missing_named(wanted: &str) -> Problem {
    Problem::new("cuwright::probe::python_missing", Exit::Toolchain, format!("no Python `{wanted}` was found"))
        .why("`--python` takes a path, an environment's folder, a program name or a version such as 3.12")
        .help("leave `--python` out to use `python3` of PATH")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn script(folder: &Utf8Path, name: &str, body: &str) -> Utf8PathBuf {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn old_and_broken_interpreters_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let answer = |version: &str, kind: &str| {
            format!(
                r#"echo '{{"executable":"/x","version":"{version}","tag":"cp","platform":"p","site_dirs":[],"headers":null,"origin":"{kind}"}}'"#
            )
        };
        let env = Env::of(root, [("PATH", "/bin")]);
        let code = |name: &str, body: &str| {
            let candidate = Candidate { program: script(root, name, body), origin: "test".to_owned() };
            let got = describe(&candidate, &env, &Facts::new(None));
            got.map(|python| python.version).map_err(|problem| problem.code())
        };
        assert_eq!(code("good", &answer("3.12.1", "cpython")), Ok("3.12.1".to_owned()));
        assert_eq!(code("old", &answer("3.8.18", "cpython")), Err("cuwright::probe::python_too_old"));
        assert_eq!(code("pypy", &answer("3.10.1", "pypy")), Err("cuwright::probe::python_broken"));
        assert_eq!(code("mute", "exit 127"), Err("cuwright::probe::python_broken"));
        assert_eq!(code("babble", "echo hello"), Err("cuwright::probe::python_broken"));
    }

    #[test]
    fn a_program_that_is_no_python_does_not_get_to_repeat_the_question() {
        let env = Env::of("/", [("PATH", "/usr/bin:/bin")]);
        for name in ["ls", "cat", "find"] {
            let program = env.find_program(name).unwrap();
            let candidate = Candidate { program, origin: "test".to_owned() };
            let problem = describe(&candidate, &env, &Facts::new(None)).unwrap_err();
            let told = problem.evidence().join("\n");
            assert!(!told.is_empty() && !told.contains("sysconfig") && !told.contains("def "), "{name}: {told}");
        }
        let traceback = "Traceback (most recent call last):\n  File \"<string>\", line 2, in <module>\n    import json, \
                         os, sys, sysconfig\nModuleNotFoundError: No module named 'json'";
        assert!(telling(traceback).ends_with("No module named 'json'"));
        assert!(telling(&"x".repeat(5000)).len() == LONGEST);
    }

    #[test]
    fn a_named_python_is_a_path_a_folder_a_name_or_a_version() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::create_dir_all(root.join("v/bin")).unwrap();
        script(root, "python3.12", "");
        script(&root.join("v/bin"), "python", "");
        let env = Env::of(root, [("PATH", root.as_str())]);
        let found = |wanted: &str| named(wanted, &env).map(|path| path.strip_prefix(root).unwrap().to_string());
        assert_eq!(found("3.12"), Some("python3.12".into()));
        assert_eq!(found("3.12.4"), Some("python3.12".into()));
        assert_eq!(found("./python3.12"), Some("python3.12".into()));
        assert_eq!(found("v"), Some("v/bin/python".into()));
        assert_eq!(found("python9"), None);
        assert!(candidates(Some("python9"), &env).is_err());
    }

    #[test]
    fn an_answer_is_not_remembered_over_a_change_of_the_packages_it_was_given_for() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        let program = root.join("bin/python3");
        fs::copy("/bin/true", &program).unwrap();
        let (more, user) = (root.join("more"), root.join("user"));
        let env = Env::of(root, [("PYTHONPATH", more.as_str()), ("PYTHONUSERBASE", user.as_str())]);
        let mut seen = vec![context(&program, &env).unwrap()];
        assert_eq!(seen[0], context(&program, &env).unwrap());
        let later = [&more, &user.join("lib/python3.12/site-packages"), &root.join("lib/python3.12/site-packages")];
        for folder in later {
            fs::create_dir_all(folder).unwrap();
            seen.push(context(&program, &env).unwrap());
            fs::write(folder.join("editable.pth"), "/elsewhere").unwrap();
            seen.push(context(&program, &env).unwrap());
        }
        let unlike: BTreeSet<_> = seen.iter().collect();
        assert_eq!(unlike.len(), seen.len());
    }
}
