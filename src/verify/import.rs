//! Imports the built modules in a fresh Python, outside the source tree, and runs the recipe's check.
//!
//! torch is imported first, since extensions link against its libraries. Each module must come from the wheel under
//! test: a package of the same name in the environment would prove nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use super::abi;
use super::input::{Opened, Shape};
use super::site::{ExtensionFile, Site};
use crate::domain::command::CommandSpec;
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::sys::process::{self, Started};

/// A Python that imports torch and then waits to be told what to check.
///
/// Importing torch takes seconds, so it may be started while the compilers still work.
#[derive(Debug)]
pub struct Checker {
    python: Utf8PathBuf,
    process: Started,
    _cwd: TempDir,
}

/// Importing torch and a large extension from a cold disk may take minutes.
const LIMIT: Duration = Duration::from_mins(10);

const SCRIPT: &str = r#"
import sys
stage = "torch"
try:
    import importlib.util, json, os
    os.nice(10)
    if sys.argv[1] == "torch" and importlib.util.find_spec("torch"):
        import torch
    site, modules, check = json.loads(sys.stdin.readline())
    sys.path.insert(0, site)
    for name in modules:
        stage = name
        module = importlib.import_module(name)
        where = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), "")
        if not os.path.realpath(where).startswith(os.path.realpath(site) + os.sep):
            raise ImportError(f"{name} was imported from {where}, not from the wheel")
        print(f"{name} imports")
    stage = "check"
    exec(compile(check, "<check>", "exec"), {"__name__": "__check__", "root": site})
except BaseException as error:
    import traceback
    traceback.print_exc()
    print(f"\ncuwright-failed-at {stage}", file=sys.stderr)
    sys.exit(1)
"#;

impl Checker {
    /// Starts `python` with `env` in an empty folder of its own, made in `within` or among the temporary files; it
    /// imports torch at once if `torch` says so, which must not be where torch itself is checked.
    ///
    /// # Errors
    /// A Python that does not start, or no room for a temporary folder.
    pub fn start(
        python: &Utf8Path,
        mut env: BTreeMap<String, String>,
        within: Option<&Utf8Path>,
        torch: bool,
    ) -> Result<Self, Problem> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("cuwright-import-");
        let cwd = within.map_or_else(|| folder.tempdir(), |within| folder.tempdir_in(within));
        let cwd = cwd.map_err(|error| not_run(python, &error))?;
        let folder =
            Utf8Path::from_path(cwd.path()).ok_or_else(|| not_run(python, &"the temporary folder is not UTF-8"))?;
        env.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
        let spec = CommandSpec::new(python.as_str(), folder)
            .args(["-X", "faulthandler", "-c", SCRIPT, if torch { "torch" } else { "" }])
            .env(env);
        let process = process::start_waiting(&spec).map_err(|error| not_run(python, &error))?;
        Ok(Self { python: python.to_owned(), process, _cwd: cwd })
    }
}

fn not_run(python: &Utf8Path, why: &dyn std::fmt::Display) -> Problem {
    Problem::new("cuwright::verify::import_not_run", Exit::Verify, "the import check could not be run")
        .why(format!("{python}: {why}"))
        .help("check that this Python starts, then build again")
}

/// The folder that the modules of an input are imported from. A bare file is found below the package it lies in.
pub fn site_of(opened: &Opened) -> Site {
    if opened.shape != Shape::File {
        return Site { root: opened.root.clone(), extensions: opened.files.clone() };
    }
    let mut root = opened.root.as_path();
    while root.join("__init__.py").exists() {
        let Some(above) = root.parent() else { break };
        root = above;
    }
    let within = |file: &ExtensionFile| {
        let name = file.path.strip_prefix(root).unwrap_or(&file.path).to_string();
        ExtensionFile { name, path: file.path.clone() }
    };
    Site { root: root.to_owned(), extensions: opened.files.iter().map(within).collect() }
}

/// Modules of extension files, as they would be imported; a library without `PyInit_…` is none.
pub fn modules_of(site: &Site) -> Vec<String> {
    let stem = |name: &str| name.rsplit('/').next().and_then(|file| file.split('.').next()).map(str::to_owned);
    site.extensions
        .iter()
        .filter(|file| !file.name.rsplit('/').next().is_some_and(|name| name.starts_with("lib")))
        .filter(|file| abi::may_be_module(&file.path))
        .filter_map(|file| {
            let folder = file.name.rsplit_once('/').map(|(folder, _)| folder.replace('/', "."));
            let stem = stem(&file.name)?;
            Some(folder.map_or_else(|| stem.clone(), |folder| format!("{folder}.{stem}")))
        })
        .collect()
}

/// Imports `modules` from `site`, runs `check`, and gives back what was printed.
///
/// # Errors
/// A module that does not import or comes from elsewhere, or a check that raises.
pub fn run(checker: Checker, site: &Site, modules: &[String], check: Option<&str>) -> Result<Vec<String>, Problem> {
    let input = serde_json::json!([site.root, modules, check.unwrap_or_default()]).to_string() + "\n";
    let said = checker.process.finish(Some(&input), LIMIT).map_err(|error| not_run(&checker.python, &error))?;
    if said.status.success() {
        return Ok(said.stdout.lines().map(str::to_owned).collect());
    }
    let stage = said.stderr.lines().rev().find_map(|line| line.strip_prefix("cuwright-failed-at "));
    let stderr = said.stderr.lines().filter(|line| !line.starts_with("cuwright-failed-at "));
    let told: Vec<&str> = stderr.filter(|line| !line.trim().is_empty()).collect();
    let last = told.last().copied().unwrap_or("the process ended without a word").trim().to_owned();
    let message = match stage {
        Some("torch") => "torch itself does not import in the build's environment".to_owned(),
        Some("check") => "the recipe's check failed".to_owned(),
        Some(module) => format!("`{module}` does not import"),
        None => format!("the import check died ({})", said.status),
    };
    let mut problem = Problem::new("cuwright::verify::import_failed", Exit::Verify, message).why(last.clone());
    if let Some(reached) = said.stdout.lines().last() {
        problem = problem.why(format!("before that: {reached}"));
    }
    if told.len() > 1 {
        problem = problem.why(told[told.len().saturating_sub(8)..told.len() - 1].join("\n"));
    }
    Err(mends(problem, &last))
}

fn mends(problem: Problem, last: &str) -> Problem {
    if let Some(missing) = last.split("No module named ").nth(1) {
        let name = missing.trim_matches(['\'', '"']);
        return problem.help(format!(
            "if `{name}` is a requirement at run time, add it to `verify.requires`, or install it into this Python"
        ));
    }
    if last.contains("undefined symbol") {
        return problem
            .help("the file was linked against another torch than the one imported: build with `--no-cache`");
    }
    problem.help("the wheel is not used: mend the recipe's `[verify]` or the project, then build again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_named_after_the_extension_files() {
        let file = |name: &str| ExtensionFile { name: name.into(), path: name.into() };
        let site = Site {
            root: "/".into(),
            extensions: vec![file("a/b/_C.cpython-311.so"), file("_top.so"), file("a/lib/libx.so")],
        };
        assert_eq!(modules_of(&site), ["a.b._C", "_top"]);
    }
}
