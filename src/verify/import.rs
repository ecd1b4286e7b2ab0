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
use crate::report::{GpuCheck, GpuStatus};
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
    # Die with cuwright, however that dies; where there is no such call, the end of the input does it later.
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
except (ImportError, OSError, AttributeError):
    pass
try:
    import importlib.util, json, os
    os.nice(10)
    if sys.argv[1] == "torch" and importlib.util.find_spec("torch"):
        import torch
    site, modules, check, gpu = json.loads(sys.stdin.readline())
    sys.path.insert(0, site)
    for name in modules:
        stage = name
        module = importlib.import_module(name)
        where = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), "")
        if not os.path.realpath(where).startswith(os.path.realpath(site) + os.sep):
            raise ImportError(f"{name} was imported from {where}, not from the wheel")
        if not gpu:
            print(f"{name} imports")
    if gpu:
        # What the environment lacks is no fault of the files.
        stage = "reach"
        import torch
        torch.cuda.init()
    stage = "check"
    exec(compile(check, "<check>", "exec"), {"__name__": "__check__", "root": site})
    if gpu:
        # Kernels fail only when somebody waits for them.
        torch.cuda.synchronize()
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
    let failure = match ask(checker, site, modules, check.unwrap_or_default(), false)? {
        Answer::Passed(output) => return Ok(output),
        Answer::Failed(failure) => failure,
    };
    let message = match failure.stage.as_deref() {
        Some("torch") => "torch itself does not import in the build's environment".to_owned(),
        Some("check") => "the recipe's check failed".to_owned(),
        Some(module) => format!("`{module}` does not import"),
        None => format!("the import check died ({})", failure.status),
    };
    let problem = failure.told(Problem::new("cuwright::verify::import_failed", Exit::Verify, message));
    Err(mends(problem, &failure.last))
}

/// Imports `modules` from `site` and runs `check` on `gpu`, in the process that `checker` is. What fails is given as a
/// problem, too.
///
/// # Errors
/// A process that cannot be run to its end.
pub fn run_on_gpu(
    checker: Checker,
    site: &Site,
    modules: &[String],
    check: &str,
    gpu: &str,
) -> Result<(GpuCheck, Option<Problem>), Problem> {
    let gone = |status, why, output| GpuCheck { status, gpu: Some(gpu.to_owned()), why, output };
    let failure = match ask(checker, site, modules, check, true)? {
        Answer::Passed(output) => return Ok((gone(GpuStatus::Passed, None, output), None)),
        Answer::Failed(failure) => failure,
    };
    if failure.stage.as_deref() == Some("reach") {
        let why = format!("torch does not reach {gpu}: {}", failure.last);
        return Ok((GpuCheck::not_run(why), None));
    }
    let message = match (failure.stage.as_deref(), &failure.status) {
        (Some(_), _) => format!("the recipe's `gpu-check` failed on {gpu}"),
        (None, status) => format!("the recipe's `gpu-check` died on {gpu} ({status})"),
    };
    let problem = failure
        .told(Problem::new("cuwright::verify::gpu_check_failed", Exit::Verify, message))
        .help("the wheel is not used: mend the project, the targets or the recipe's `gpu-check`, then build again");
    Ok((gone(GpuStatus::Failed, Some(failure.last), failure.output), Some(problem)))
}

enum Answer {
    Passed(Vec<String>),
    Failed(Failure),
}

/// What a process said before it gave up.
struct Failure {
    status: std::process::ExitStatus,
    stage: Option<String>,
    output: Vec<String>,
    lines: Vec<String>,
    last: String,
}

impl Failure {
    fn told(&self, problem: Problem) -> Problem {
        let mut problem = problem.why(self.last.clone());
        if let Some(reached) = self.output.last() {
            problem = problem.why(format!("before that: {reached}"));
        }
        if self.lines.len() > 1 {
            problem = problem.why(self.lines[self.lines.len().saturating_sub(8)..self.lines.len() - 1].join("\n"));
        }
        problem
    }
}

fn ask(checker: Checker, site: &Site, modules: &[String], check: &str, gpu: bool) -> Result<Answer, Problem> {
    let input = serde_json::json!([site.root, modules, check, gpu]).to_string() + "\n";
    let said = checker.process.finish(Some(&input), LIMIT).map_err(|error| not_run(&checker.python, &error))?;
    let output = said.stdout.lines().map(str::to_owned).collect();
    if said.status.success() {
        return Ok(Answer::Passed(output));
    }
    let stage = said.stderr.lines().rev().find_map(|line| line.strip_prefix("cuwright-failed-at "));
    let stderr = said.stderr.lines().filter(|line| !line.starts_with("cuwright-failed-at "));
    let lines: Vec<String> = stderr.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
    let last = lines.last().map_or("the process ended without a word", |line| line.trim()).to_owned();
    let stage = stage.map(str::to_owned);
    Ok(Answer::Failed(Failure { status: said.status, stage, output, lines, last }))
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

    /// Runs a check "on a GPU" with a stand-in for torch, whose `cuda.init` and `cuda.synchronize` do as told: the real
    /// thing needs a GPU.
    fn on_gpu(init: &str, wait: &str, check: &str) -> (GpuCheck, Option<Problem>) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs_err::create_dir(root.join("torch")).unwrap();
        let torch = format!("class cuda:\n    def init(): {init}\n    def synchronize(): {wait}\n");
        fs_err::write(root.join("torch/__init__.py"), torch).unwrap();
        fs_err::write(root.join("mine.py"), "answer = 42\n").unwrap();
        let env = BTreeMap::from([("PYTHONPATH".to_owned(), root.to_string())]);
        let python = which::which("python3").unwrap();
        let checker = Checker::start(Utf8Path::from_path(&python).unwrap(), env, None, true).unwrap();
        let site = Site { root: root.to_owned(), extensions: Vec::new() };
        run_on_gpu(checker, &site, &["mine".to_owned()], check, "H200").unwrap()
    }

    #[test]
    fn a_check_on_a_gpu_passes_fails_or_is_not_run() {
        let (check, problem) = on_gpu("pass", "pass", "import mine; print(mine.answer)");
        assert_eq!((check.headline().as_str(), problem), ("passed on H200", None));
        assert_eq!(check.output, ["42"]);
        let (check, problem) = on_gpu("raise RuntimeError('driver too old')", "pass", "assert False");
        assert_eq!(check.headline(), "not run: torch does not reach H200: RuntimeError: driver too old");
        assert_eq!(problem, None);
        // A kernel that fails is seen by whoever waits for it.
        let (check, problem) = on_gpu("pass", "raise RuntimeError('illegal memory access')", "pass");
        assert_eq!(check.headline(), "failed on H200: RuntimeError: illegal memory access");
        assert_eq!(problem.unwrap().code(), "cuwright::verify::gpu_check_failed");
        let (check, problem) = on_gpu("pass", "pass", "import os; os.abort()");
        assert_eq!(check.status, GpuStatus::Failed);
        assert!(problem.unwrap().message().starts_with("the recipe's `gpu-check` died on H200 (signal: 6"));
        let (_, problem) = on_gpu("pass", "pass", "assert 1 == 2, 'one is not two'");
        insta::assert_snapshot!(problem.unwrap().to_string());
    }
}
