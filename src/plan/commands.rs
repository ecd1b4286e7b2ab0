//! The commands of a unit, in order, for each build system.
//!
//! Invariant: a command is argv, never a shell string, and everything that it leaves lies below the build folder.

use camino::{Utf8Path, Utf8PathBuf};

use super::archs::ArchVariables;
use super::environment::Environment;
use crate::domain::command::CommandSpec;
use crate::domain::toolchain::Toolchain;
use crate::recipe::{Backend, Recipe};
use crate::sys::{Env, env_vars as vars};

/// Where a build works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places<'a> {
    /// Copy of the source tree.
    pub source: &'a Utf8Path,
    /// Files in between.
    pub work: &'a Utf8Path,
    /// Where a tree of files is installed.
    pub stage: &'a Utf8Path,
    /// Where a wheel appears.
    pub dist: &'a Utf8Path,
    /// An empty folder that the build takes for the user's home.
    pub home: &'a Utf8Path,
}

/// One command with the name that people know it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Such as `setup.py` or `cmake --build`.
    pub name: &'static str,
    /// What runs.
    pub command: CommandSpec,
}

/// Everything that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    /// In this order; the first that fails ends the build.
    pub steps: Vec<Step>,
    /// Runs after them, however they ended.
    pub last: Option<Step>,
    /// What they leave.
    pub outputs: Outputs,
}

/// Where the results of a build are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outputs {
    /// One wheel in this folder.
    Wheel(Utf8PathBuf),
    /// Whatever was installed below this folder.
    Installed(Utf8PathBuf),
    /// The files that Bazel's events name, to be collected in `stage`.
    Events {
        /// File of the build event protocol, one JSON object a line.
        file: Utf8PathBuf,
        /// Folder to collect them in.
        stage: Utf8PathBuf,
    },
}

impl std::fmt::Display for Outputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wheel(folder) => write!(f, "one wheel in {folder}"),
            Self::Installed(folder) => write!(f, "what is installed below {folder}"),
            Self::Events { file, .. } => write!(f, "the files named in {file}"),
        }
    }
}

/// Name of the file in `work` that Bazel writes its events to.
const EVENTS: &str = "events.json";

/// The commands of a unit.
pub fn commands(
    recipe: &Recipe,
    toolchain: &Toolchain,
    environment: &Environment,
    jobs: u32,
    places: Places<'_>,
    env: &Env,
) -> Commands {
    let python = toolchain.python.executable.as_str();
    let folder = if recipe.build.folder.is_empty() {
        places.source.to_owned()
    } else {
        places.source.join(&recipe.build.folder)
    };
    let step = |name, program: &str, args: Vec<String>| {
        let mut command = CommandSpec::new(program, folder.clone()).args(args).env(environment.variables.clone());
        // Files that a user keeps at home would steer the build without being in the recipe.
        command.env.entry("HOME".to_owned()).or_insert_with(|| places.home.to_string());
        Step { name, command }
    };
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let wheel = Outputs::Wheel(places.dist.to_owned());
    match recipe.build.backend {
        Backend::SetupPy => {
            let args = words(&["setup.py", "bdist_wheel", "--dist-dir", places.dist.as_str()]);
            Commands { steps: vec![step("setup.py", python, args)], last: None, outputs: wheel }
        }
        Backend::Pyproject => {
            let args = ["-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check", "--outdir"];
            let args = [words(&args), words(&[places.dist.as_str(), "."])].concat();
            Commands { steps: vec![step("python -m build", python, args)], last: None, outputs: wheel }
        }
        Backend::Cmake => {
            let (configure, build) =
                (configure(recipe, toolchain, &environment.archs, places), cmake_build(recipe, jobs, places));
            let mut steps = vec![step("CMake's configure", "cmake", configure), step("CMake's build", "cmake", build)];
            for component in installs(recipe) {
                let mut args = words(&["--install", places.work.as_str(), "--prefix", places.stage.as_str()]);
                args.extend(component.into_iter().flat_map(|name| ["--component".to_owned(), name]));
                steps.push(step("CMake's install", "cmake", args));
            }
            Commands { steps, last: None, outputs: Outputs::Installed(places.stage.to_owned()) }
        }
        Backend::Bazel => {
            let startup = bazel_startup(recipe, places);
            let build = [startup.clone(), bazel_build(recipe, environment, toolchain, jobs, places, env)].concat();
            let shutdown = [startup, words(&["shutdown"])].concat();
            Commands {
                steps: vec![step("bazel build", "bazel", build)],
                last: Some(step("bazel shutdown", "bazel", shutdown)),
                outputs: Outputs::Events { file: places.work.join(EVENTS), stage: places.stage.to_owned() },
            }
        }
    }
}

/// `CMake` definitions: the recipe's own, and those that carry the archs.
pub(super) fn defines(recipe: &Recipe, archs: &ArchVariables) -> Vec<String> {
    let own = recipe.build.cmake.defines.iter();
    let archs = archs.define.iter().map(|(name, value)| (name, value));
    own.chain(archs).map(|(name, value)| format!("-D{name}={value}")).collect()
}

fn configure(recipe: &Recipe, toolchain: &Toolchain, archs: &ArchVariables, places: Places<'_>) -> Vec<String> {
    let mut args = vec!["-S".to_owned(), ".".to_owned(), "-B".to_owned(), places.work.to_string()];
    if let Some(preset) = &recipe.build.cmake.preset {
        args.push(format!("--preset={preset}"));
    }
    // Some projects install to `${CMAKE_INSTALL_PREFIX}/…`, which `--prefix` does not move.
    args.push(format!("-DCMAKE_INSTALL_PREFIX={}", places.stage));
    // A build type that the project or the preset names is theirs to decide.
    if recipe.build.cmake.preset.is_none() && !recipe.build.cmake.defines.contains_key("CMAKE_BUILD_TYPE") {
        args.push("-DCMAKE_BUILD_TYPE=Release".to_owned());
    }
    args.extend(toolchain_defines(toolchain).iter().map(|(name, value)| format!("-D{name}={value}")));
    args.extend(defines(recipe, archs));
    args
}

/// `CMake` variables that name the toolchain, for projects of every age. Definitions win over presets, which may name
/// another compiler in variables of either kind.
fn toolchain_defines(toolchain: &Toolchain) -> [(&'static str, String); 4] {
    let home = toolchain.toolkit.home.as_str();
    let [compiler, host, root, old_root] = TOOLCHAIN_DEFINES;
    let nvcc = toolchain.toolkit.home.join("bin/nvcc").into_string();
    [(compiler, nvcc), (host, toolchain.host.cxx.to_string()), (root, home.to_owned()), (old_root, home.to_owned())]
}

/// Names of `CMake` variables that tell where the toolchain is. No project reads all of them.
pub const TOOLCHAIN_DEFINES: [&str; 4] =
    ["CMAKE_CUDA_COMPILER", "CMAKE_CUDA_HOST_COMPILER", "CUDAToolkit_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];

fn cmake_build(recipe: &Recipe, jobs: u32, places: Places<'_>) -> Vec<String> {
    let mut args = vec!["--build".to_owned(), places.work.to_string(), "--parallel".to_owned(), jobs.to_string()];
    // The effective archs are read from the compilers' command lines.
    args.push("--verbose".to_owned());
    if !recipe.build.cmake.targets.is_empty() {
        args.push("--target".to_owned());
        args.extend(recipe.build.cmake.targets.iter().cloned());
    }
    args
}

fn installs(recipe: &Recipe) -> Vec<Option<String>> {
    let components = &recipe.build.cmake.components;
    if components.is_empty() { vec![None] } else { components.iter().cloned().map(Some).collect() }
}

fn bazel_startup(recipe: &Recipe, places: Places<'_>) -> Vec<String> {
    // The flags of some user would change what is built without being in the key. Those of the system stay: Debian's
    // Bazel does not start without them.
    let mut args = vec![format!("--output_user_root={}", places.work.join("bazel"))];
    args.extend(["--nohome_rc", "--max_idle_secs=60"].map(str::to_owned));
    args.extend(recipe.build.bazel.startup_flags.iter().cloned());
    args
}

fn bazel_build(
    recipe: &Recipe,
    environment: &Environment,
    toolchain: &Toolchain,
    jobs: u32,
    places: Places<'_>,
    env: &Env,
) -> Vec<String> {
    let bazel = &recipe.build.bazel;
    let megabytes = (recipe.build.memory_per_job.0 >> 20).saturating_mul(u64::from(jobs));
    let mut args = vec!["build".to_owned()];
    // The effective archs are read from the compilers' command lines.
    args.extend(["--color=no", "--curses=no", "--subcommands", "--nosandbox_debug"].map(str::to_owned));
    args.push(format!("--jobs={jobs}"));
    args.push(format!("--local_cpu_resources={jobs}"));
    args.push(format!("--local_ram_resources={megabytes}"));
    args.push(format!("--build_event_json_file={}", places.work.join(EVENTS)));
    let home = toolchain.toolkit.home.as_str();
    let toolkit = [("CUDA_TOOLKIT_PATH", home), ("LOCAL_CUDA_PATH", home), ("CUDA_HOME", home)];
    let archs = environment.archs.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    args.extend(archs.chain(toolkit).map(|(name, value)| format!("--repo_env={name}={value}")));
    let caches = [
        ("--disk_cache", vars::CUWRIGHT_BAZEL_DISK_CACHE, &bazel.disk_cache),
        ("--remote_cache", vars::CUWRIGHT_BAZEL_REMOTE_CACHE, &bazel.remote_cache),
    ];
    for (flag, variable, own) in caches {
        if let Some(place) = env.get(variable).or(own.as_deref()) {
            args.push(format!("{flag}={place}"));
        }
    }
    args.extend(bazel.flags.iter().cloned());
    args.push("--".to_owned());
    args.extend(bazel.targets.iter().cloned());
    args
}

#[cfg(test)]
mod tests;
