//! The environment of a build: what is taken over, what is set, what is left behind and said.

use std::collections::BTreeMap;

use super::archs::{ArchVariables, arch_variables};
use super::commands::{TOOLCHAIN_DEFINES, defines};
use crate::domain::arch::ArchSet;
use crate::domain::arch::dialect::Consumer;
use crate::domain::command::quote;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::toolchain::Toolchain;
use crate::recipe::{Backend, Recipe};
use crate::sys::{Env, env_vars as vars};

/// Variables that tools need to run at all and that do not change what they produce.
const NEUTRAL: [&str; 15] = [
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CCACHE_DIR",
    "SCCACHE_DIR",
    "RUSTUP_HOME",
    "CARGO_HOME",
];

/// Folders at home that hold tools and stores, not settings: where they are, as the build's own home is empty.
const KEPT_AT_HOME: [(&str, &str); 4] = [
    ("RUSTUP_HOME", ".rustup"),
    ("CARGO_HOME", ".cargo"),
    ("CCACHE_DIR", ".cache/ccache"),
    ("SCCACHE_DIR", ".cache/sccache"),
];

/// What every build gets, whoever starts it from wherever.
const FIXED: [(&str, &str); 6] = [
    (vars::LC_ALL, "C.UTF-8"),
    (vars::TERM, "dumb"),
    ("TZ", "UTC0"),
    ("USER", "cuwright"),
    ("LOGNAME", "cuwright"),
    ("SHELL", "/bin/sh"),
];

/// What Bazel gets of the caller instead: it and bazelisk keep all they have at home, and what it starts gets an
/// environment of Bazel's own making.
const OF_BAZEL: [&str; 7] = ["HOME", "USER", "LOGNAME", "SHELL", "TERM", "XDG_CACHE_HOME", "LANG"];

/// Beginnings of variables by which numeric libraries are told how to use this processor. Without them, a numpy or
/// `OpenCV` on a processor that its `OpenBLAS` does not know may crash at import. Part of the key.
const OF_PROCESSOR: [&str; 3] = ["OPENBLAS_", "OMP_", "MKL_"];
/// End of those that only say how wide to run.
const THREADS: &str = "_NUM_THREADS";

/// Variables that compilers and linkers read: taken over, shown, and part of the key.
pub(super) const FLAGS: [&str; 16] = [
    "LIBRARY_PATH",
    vars::LD_LIBRARY_PATH,
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "ARCHFLAGS",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "SOURCE_DATE_EPOCH",
    "TORCH_NVCC_FLAGS",
    "CUDAFLAGS",
    "GCC_EXEC_PREFIX",
];

/// Variables by which people name archs to one tool or another; an inherited one is reported.
pub const ARCH_VARIABLES: [&str; 20] = [
    vars::TORCH_CUDA_ARCH_LIST,
    "CUDAARCHS",
    "CUDA_ARCH_BIN",
    "CUDA_ARCH_PTX",
    "CUDA_ARCH_NAME",
    "CMAKE_CUDA_ARCHITECTURES",
    "TF_CUDA_COMPUTE_CAPABILITIES",
    "HERMETIC_CUDA_COMPUTE_CAPABILITIES",
    "FLASH_ATTN_CUDA_ARCHS",
    "NVTE_CUDA_ARCHS",
    "TCNN_CUDA_ARCHITECTURES",
    "NATTEN_CUDA_ARCH",
    "MMCV_CUDA_ARGS",
    "NVCC_FLAGS",
    "MXNET_CUDA_ARCH",
    "COMPUTE_CAPABILITY",
    "CUDA_GENERATION",
    "TF_CUDA_ARCHS",
    "EXTRA_NVCC_FLAGS",
    "EXTRA_NVCCFLAGS",
];

/// Variables that cuwright alone decides about.
pub(super) const OURS: [&str; 13] = [
    vars::PATH,
    vars::CUDA_HOME,
    vars::CUDA_PATH,
    vars::TORCH_CUDA_ARCH_LIST,
    vars::MAX_JOBS,
    "CC",
    "CXX",
    vars::CUDACXX,
    vars::CUDAHOSTCXX,
    "CUDAToolkit_ROOT",
    "CUDAARCHS",
    "NINJA_STATUS",
    "PYTORCH_NVCC",
];

/// The whole environment of a build, and how it came to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// What the child gets.
    pub variables: BTreeMap<String, String>,
    /// Those of them that decide about the output, without machine paths.
    pub keyed: BTreeMap<String, String>,
    /// Names that we or the recipe set, worth showing.
    pub shown: Vec<String>,
    /// Inherited arch variables that were left behind, with their values.
    pub cleared: Vec<(String, String)>,
    /// The archs, as those who read them want them.
    pub archs: ArchVariables,
    /// Names of the variables that hold the number of jobs.
    pub counted: Vec<String>,
}

/// The environment of the import check: the caller's own, as whoever uses the wheel would have it, with the
/// toolchain's programs first. A provisioned environment is complete, so the caller's Python folders are left out.
pub fn of_import(toolchain: &Toolchain, env: &Env) -> BTreeMap<String, String> {
    let complete = toolchain.environment.is_some();
    let mut variables = env.variables().clone();
    variables.retain(|name, _| !complete || !name.starts_with("PYTHON"));
    variables.insert(vars::PATH.to_owned(), search_path(toolchain, env));
    variables.insert("PYTHONNOUSERSITE".to_owned(), "1".to_owned());
    variables
}

/// The variables by which build systems find the tools of `toolchain`, `PATH` aside.
pub fn of_toolchain(toolchain: &Toolchain) -> [(&'static str, String); 7] {
    let home = toolchain.toolkit.home.as_str();
    let nvcc = toolchain.toolkit.home.join("bin/nvcc");
    [
        (vars::CUDA_HOME, home.to_owned()),
        (vars::CUDA_PATH, home.to_owned()),
        (vars::CUDACXX, nvcc.to_string()),
        // torch writes this into its ninja file as it is, where a blank in the path would end the word.
        ("PYTORCH_NVCC", quote(nvcc.as_str())),
        // torch hands CC to nvcc as its host compiler; setting only one of the two lets nvcc pick another by itself.
        ("CC", toolchain.host.cc.to_string()),
        ("CXX", toolchain.host.cxx.to_string()),
        // CMake gives nvcc a compiler by this name alone.
        (vars::CUDAHOSTCXX, toolchain.host.cxx.to_string()),
    ]
}

/// Composes the environment of a unit.
///
/// `inherited` says that the targets are those of the caller's own `TORCH_CUDA_ARCH_LIST`, which then is not reported.
///
/// # Errors
/// An arch set that torch has no words for, and a recipe that sets what cuwright decides.
pub fn environment(
    recipe: &Recipe,
    toolchain: &Toolchain,
    archs: &ArchSet,
    jobs: u32,
    env: &Env,
    inherited: bool,
) -> Result<Environment, Problems> {
    Problems::check(reserved(recipe))?;
    let mut result = Environment { archs: arch_variables(&recipe.build.archs, archs)?, ..Environment::default() };
    check_defines(recipe, &result.archs)?;
    let cleared = |name: &str| recipe.build.clear_env.iter().any(|clear| clear == name);
    // A provisioned environment is complete; the caller's own Python folders would only shadow it.
    let complete = toolchain.environment.is_some();
    let of_bazel = OF_BAZEL.into_iter().filter(|_| recipe.build.backend == Backend::Bazel);
    for (name, value) in KEPT_AT_HOME {
        if let Some(home) = env.get("HOME").filter(|_| !cleared(name)) {
            result.variables.insert(name.to_owned(), format!("{home}/{value}"));
        }
    }
    result.variables.extend(FIXED.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for name in NEUTRAL.into_iter().chain(of_bazel).filter(|name| !cleared(name)) {
        if let Some(value) = env.get(name) {
            result.variables.insert(name.to_owned(), value.to_owned());
        }
    }
    let passed = recipe.build.pass_env.iter().map(String::as_str);
    let python_path = Some(vars::PYTHONPATH).filter(|_| !complete);
    let of_processor = env.variables().keys().map(String::as_str).filter(|name| is_of_processor(name));
    let names = FLAGS.into_iter().chain(python_path).chain(of_processor).chain(passed);
    for name in names.filter(|name| !cleared(name) && !OURS.contains(name)) {
        if let Some(value) = env.get(name) {
            result.set(name, value, true);
        }
    }
    for name in ARCH_VARIABLES {
        let chosen = name == vars::TORCH_CUDA_ARCH_LIST && inherited;
        if let Some(value) = env.get(name).filter(|_| !chosen && !result.variables.contains_key(name)) {
            result.cleared.push((name.to_owned(), value.to_owned()));
        }
    }
    for (name, value) in of_toolchain(toolchain) {
        result.set(name, &value, false);
    }
    result.add_host_flags(&toolchain.host.flags);
    if let Some(overlay) = &toolchain.overlay {
        let theirs = result.variables.get(vars::PYTHONPATH).map(|path| format!(":{path}")).unwrap_or_default();
        result.set(vars::PYTHONPATH, &format!("{overlay}{theirs}"), false);
    }
    for (name, value) in result.archs.env.clone() {
        result.set(&name, &value, false);
    }
    result.count(vars::MAX_JOBS, jobs);
    for name in &recipe.build.jobs_env {
        result.count(name, jobs);
    }
    if runs_cmake(recipe) {
        result.count("CMAKE_BUILD_PARALLEL_LEVEL", jobs);
        for (name, value) in of_cmake(recipe, toolchain, &result.archs) {
            result.set(name, &value, false);
        }
    }
    result.set(vars::PATH, &search_path(toolchain, env), false);
    result.variables.insert("NINJA_STATUS".to_owned(), "[%f/%t] ".to_owned());
    result.variables.insert("PYTHONUNBUFFERED".to_owned(), "1".to_owned());
    // A package in the user's own site folder would shadow the chosen torch without a word.
    result.variables.insert("PYTHONNOUSERSITE".to_owned(), "1".to_owned());
    for (name, value) in &recipe.build.env {
        if result.archs.env.iter().any(|(ours, _)| ours == name) {
            return Err(sets_ours(name, value).into());
        }
        match result.variables.get(name).filter(|_| name == CMAKE_ARGS).cloned() {
            // The last word wins there, and archs are ours to decide.
            Some(ours) => {
                result.set(name, &format!("{value} {ours}"), false);
                result.keyed.insert(name.clone(), value.clone());
            }
            None => result.set(name, value, true),
        }
    }
    Ok(result)
}

/// Whether a variable tells a numeric library how to use the processor, beyond how many threads to start.
pub(super) fn is_of_processor(name: &str) -> bool {
    OF_PROCESSOR.iter().any(|prefix| name.starts_with(prefix)) && !name.ends_with(THREADS)
}

/// Arguments for `CMake` that Python build systems hand on.
const CMAKE_ARGS: &str = "CMAKE_ARGS";

/// Whether the build may run `CMake`.
fn runs_cmake(recipe: &Recipe) -> bool {
    let names = &recipe.build.archs;
    let reads = |consumer: &Consumer| *consumer == Consumer::Cmake || consumer.reads_definitions();
    recipe.build.backend == Backend::Cmake || names.consumers.iter().any(reads) || !names.define.is_empty()
}

/// What makes `CMake` take the toolchain as one, and Ninja.
fn of_cmake(recipe: &Recipe, toolchain: &Toolchain, archs: &ArchVariables) -> Vec<(&'static str, String)> {
    let mut variables =
        vec![("CUDAToolkit_ROOT", toolchain.toolkit.home.to_string()), ("CMAKE_GENERATOR", "Ninja".to_owned())];
    if recipe.build.backend != Backend::Cmake {
        let words: Vec<String> = defines(recipe, archs).iter().map(|word| quote(word)).collect();
        variables.push((CMAKE_ARGS, words.join(" ")));
        // Without it scikit-build-core keeps the compilers' command lines to itself.
        variables.push(("SKBUILD_BUILD_VERBOSE", "1".to_owned()));
    }
    variables
}

fn check_defines(recipe: &Recipe, archs: &ArchVariables) -> Result<(), Problem> {
    let ours = |name: &str| {
        let toolchain = TOOLCHAIN_DEFINES.contains(&name) || name == "CMAKE_INSTALL_PREFIX";
        toolchain || archs.define.iter().any(|(arch, _)| arch == name)
    };
    let Some(name) = recipe.build.cmake.defines.keys().find(|name| ours(name)) else { return Ok(()) };
    let message = format!("`build.cmake.defines` sets `{name}`, which cuwright decides");
    Err(Problem::new(RESERVED_CODE, Exit::Recipe, message)
        .help(RESERVED)
        .help("`build.archs-for` says whose arch variables are set"))
}

const RESERVED_CODE: &str = "cuwright::recipe::reserved_variable";
const RESERVED: &str = "remove it; name archs in `[targets]`, the toolkit with `--cuda`, jobs with `-j`";

/// What a recipe sets or names although cuwright decides it, as far as that does not hang on the targets. A list of names
/// would be ignored for a variable of ours, and nothing is ignored in silence.
pub fn reserved(recipe: &Recipe) -> Vec<Problem> {
    let build = &recipe.build;
    let ours = |name: &&String| OURS.contains(&name.as_str());
    let lists = [("pass-env", &build.pass_env), ("clear-env", &build.clear_env), ("jobs-env", &build.jobs_env)];
    let named = lists.into_iter().flat_map(|(key, names)| {
        names.iter().filter(ours).map(move |name| {
            let message = format!("`build.{key}` names `{name}`, which cuwright decides");
            Problem::new(RESERVED_CODE, Exit::Recipe, message).help(RESERVED)
        })
    });
    let set = build.env.iter().filter(|(name, _)| ours(name)).map(|(name, value)| sets_ours(name, value));
    named.chain(set).collect()
}

fn sets_ours(name: &str, value: &str) -> Problem {
    Problem::new(RESERVED_CODE, Exit::Recipe, format!("the recipe sets `{name}`, which cuwright decides"))
        .why(format!("`build.env.{name} = \"{value}\"`"))
        .help(RESERVED)
}

impl Environment {
    /// Flags that belong to every call of the host compiler, also where nvcc calls it. They cannot stay in `CC`, which
    /// torch hands to nvcc as one word.
    fn add_host_flags(&mut self, flags: &[String]) {
        if flags.is_empty() {
            return;
        }
        let words = flags.iter().map(|flag| quote(flag)).collect::<Vec<_>>().join(" ");
        // nvcc splits its variable at blanks and knows double quotes around a value only (tried with 13.0).
        let blank = |flag: &str| flag.contains(char::is_whitespace);
        let quoted = |flag: &String| if blank(flag) { format!("\"{flag}\"") } else { flag.clone() };
        let for_nvcc = flags.iter().map(|flag| format!("-Xcompiler={}", quoted(flag)));
        let for_nvcc = for_nvcc.collect::<Vec<_>>().join(" ");
        for (name, more) in [("CFLAGS", &words), ("CXXFLAGS", &words), (vars::NVCC_PREPEND_FLAGS, &for_nvcc)] {
            let value = match self.variables.get(name) {
                Some(theirs) => format!("{more} {theirs}"),
                None => more.clone(),
            };
            self.set(name, &value, true);
        }
    }

    /// The same with another number of jobs.
    #[must_use]
    pub fn with_jobs(&self, jobs: u32) -> Self {
        let mut changed = self.clone();
        for name in &self.counted {
            changed.variables.insert(name.clone(), jobs.to_string());
        }
        changed
    }

    fn count(&mut self, name: &str, jobs: u32) {
        self.set(name, &jobs.to_string(), false);
        self.counted.push(name.to_owned());
    }

    fn set(&mut self, name: &str, value: &str, keyed: bool) {
        self.variables.insert(name.to_owned(), value.to_owned());
        if !self.shown.iter().any(|shown| shown == name) {
            self.shown.push(name.to_owned());
        }
        if keyed {
            self.keyed.insert(name.to_owned(), value.to_owned());
        }
    }
}

fn search_path(toolchain: &Toolchain, env: &Env) -> String {
    let ours = toolchain.path.iter().map(|folder| folder.as_str());
    let theirs = env.get(vars::PATH).unwrap_or("/usr/local/bin:/usr/bin:/bin").split(':');
    let mut seen = Vec::new();
    for folder in ours.chain(theirs).filter(|folder| !folder.is_empty()) {
        if !seen.contains(&folder) {
            seen.push(folder);
        }
    }
    seen.join(":")
}

#[cfg(test)]
mod tests;
