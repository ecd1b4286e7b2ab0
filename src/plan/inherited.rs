//! The caller's variables that would change a build, and what becomes of each: kept, replaced, cleared or refused.

use serde::Serialize;

use super::environment::{ARCH_VARIABLES, FLAGS, OURS, is_of_processor};
use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::domain::toolchain::Toolchain;
use crate::recipe::Recipe;
use crate::sys::{Env, env_vars as vars};

/// What becomes of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It reaches the build as it is, and is part of the key.
    Kept,
    /// The build gets another value.
    Replaced,
    /// It does not reach the build.
    Cleared,
    /// It stops the build.
    Refused,
    /// It bounds what cuwright decides.
    Limit,
}

/// A variable of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Inherited {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What becomes of it.
    pub fate: Fate,
    /// Why, or what it may do.
    pub why: String,
}

impl std::fmt::Display for Inherited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fate = match self.fate {
            Fate::Kept => "is kept",
            Fate::Replaced => "is replaced",
            Fate::Cleared => "does not reach the build",
            Fate::Refused => "is refused",
            Fate::Limit => "is a limit",
        };
        write!(f, "{}={} {fate}: {}", self.name, self.value, self.why)
    }
}

/// Variables whose text nvcc reads by itself, or that a build hands to it.
const OF_NVCC: [&str; 4] = [vars::NVCC_PREPEND_FLAGS, vars::NVCC_APPEND_FLAGS, "TORCH_NVCC_FLAGS", "CUDAFLAGS"];
/// Variables by which some makefiles hand flags to nvcc. A build gets them only where its recipe passes them.
const OF_MAKEFILES: [&str; 3] = ["EXTRA_NVCC_FLAGS", "EXTRA_NVCCFLAGS", "NVCC_FLAGS"];
/// A name that people take for TensorFlow's. Neither TensorFlow nor XLA nor JAX reads it: searched for in their sources.
const NOT_OF_TENSORFLOW: &str = "TF_CUDA_ARCHS";
/// Further choices that cuwright makes anew.
const DECIDED: [&str; 2] = [vars::CUDAHOSTCXX, vars::NVCC_CCBIN];
/// Beginnings of variables that would steer a build from outside of its recipe.
const STEERING: [&str; 7] = ["PYTHON", "PIP_", "DISTUTILS_", "SETUPTOOLS_", "OPENBLAS_", "OMP_", "MKL_"];
/// Beginnings of nvcc flags that name archs.
const ARCH_FLAGS: [&str; 6] = ["-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code"];
/// Beginnings of those that name the host compiler.
const HOST_FLAGS: [&str; 2] = ["-ccbin", "--compiler-bindir"];

/// Every such variable. `inherited` says that the targets are those of the caller's own arch list, `counted` that the
/// number of jobs is named otherwise.
pub fn inherited(recipe: Option<&Recipe>, env: &Env, inherited: bool, counted: bool) -> Vec<Inherited> {
    let of = |list: fn(&Recipe) -> &Vec<String>, name: &str| {
        recipe.is_some_and(|recipe| list(recipe).iter().any(|listed| listed == name))
    };
    let passed = |name: &str| of(|recipe| &recipe.build.pass_env, name);
    let cleared = |name: &str| of(|recipe| &recipe.build.clear_env, name);
    let set = |name: &str| recipe.is_some_and(|recipe| recipe.build.env.contains_key(name));
    let mut names: Vec<&str> = FLAGS.into_iter().chain(ARCH_VARIABLES).chain(OURS).chain(DECIDED).collect();
    names.extend(recipe.iter().flat_map(|recipe| recipe.build.pass_env.iter().map(String::as_str)));
    names.extend(env.variables().keys().map(String::as_str).filter(|name| steers(name)));
    names.retain(|name| *name != vars::PATH);
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let judge = |name: &str, value: &str| -> (Fate, String) {
        if cleared(name) {
            (Fate::Cleared, "the recipe clears it".to_owned())
        } else if set(name) {
            (Fate::Replaced, "the recipe sets it".to_owned())
        } else if name == vars::TORCH_CUDA_ARCH_LIST && inherited {
            (Fate::Kept, "the targets are read from it".to_owned())
        } else if let Some(flag) = first_flag(name, value, &ARCH_FLAGS) {
            (Fate::Refused, format!("`{flag}` names archs beside those of the targets"))
        } else if passed(name) && silences_torch(name, value) {
            (Fate::Refused, "the letters `arch` in it make torch leave out its arch flags".to_owned())
        } else if let Some(flag) = first_flag(name, value, &HOST_FLAGS) {
            (Fate::Kept, format!("`{flag}` gives nvcc a host compiler; torch's own choice comes later and wins"))
        } else if passed(name) {
            (Fate::Kept, "the recipe passes it; it is part of the key".to_owned())
        } else if FLAGS.contains(&name) {
            (Fate::Kept, "compilers read it; it is part of the key".to_owned())
        } else if name == NOT_OF_TENSORFLOW {
            let why = "TensorFlow does not read this name but TF_CUDA_COMPUTE_CAPABILITIES; name archs with `--arch`";
            (Fate::Cleared, why.to_owned())
        } else if let Some(flag) = raw_arch_flag(name, value) {
            (Fate::Cleared, format!("`{flag}` names archs, and archs come from the targets: name them with `--arch`"))
        } else if is_of_processor(name) {
            (Fate::Kept, "numeric libraries read it; it is part of the key".to_owned())
        } else if name == vars::PYTHONPATH {
            (
                Fate::Kept,
                "an environment of yours may need it; it is part of the key, where it reaches the build".to_owned(),
            )
        } else if steers(name) {
            (Fate::Cleared, "the recipe does not name it in `pass-env`".to_owned())
        } else if ARCH_VARIABLES.contains(&name) {
            (Fate::Cleared, "archs come from the targets".to_owned())
        } else if name == vars::MAX_JOBS && counted {
            (Fate::Replaced, "`-j` names the number of jobs".to_owned())
        } else if name == vars::MAX_JOBS {
            (Fate::Limit, "no more jobs run at once; cores and memory may allow fewer".to_owned())
        } else {
            (Fate::Replaced, "the toolchain decides it".to_owned())
        }
    };
    names
        .into_iter()
        .filter_map(|name| Some((name, env.get(name)?)))
        .map(|(name, value)| {
            let (fate, why) = judge(name, value);
            Inherited { name: name.to_owned(), value: value.to_owned(), fate, why }
        })
        .collect()
}

/// Why a build may not start with these variables, and what may go wrong although it does.
pub fn judge(recipe: &Recipe, toolchain: &Toolchain, all: &[Inherited]) -> (Vec<Problem>, Vec<String>) {
    let mut problems: Vec<Problem> = all
        .iter()
        .filter(|one| one.fate == Fate::Refused)
        .map(|one| {
            let message = format!("{} of the environment would change the archs", one.name);
            Problem::new(ARCH_FLAGS_CODE, Exit::Toolchain, message)
                .why(format!("{}={}", one.name, one.value))
                .why(one.why.clone())
                .help(format!("unset {}, or clear it in the recipe: `build.clear-env = [\"{}\"]`", one.name, one.name))
                .help("name archs with `--arch`")
        })
        .collect();
    for (name, value) in &recipe.build.env {
        if silences_torch(name, value) {
            problems.push(
                Problem::new(
                    ARCH_FLAGS_CODE,
                    Exit::Toolchain,
                    format!("{name} of the recipe takes torch's arch flags away"),
                )
                .why(format!("`build.env.{name} = \"{value}\"`"))
                .why(
                    "torch adds no arch flags where a flag of nvcc has the letters `arch` in it, as in a folder's name",
                )
                .help("write the flag without them, such as a relative folder; archs belong into `[targets]`"),
            );
        }
    }
    let host = toolchain.host.cxx.as_str();
    let of_host = |one: &&Inherited| one.fate == Fate::Kept && first_flag(&one.name, &one.value, &HOST_FLAGS).is_some();
    let own = [host, toolchain.host.cc.as_str()];
    let other = |one: &&Inherited| !one.value.split(|c: char| c.is_whitespace() || c == '=').any(|w| own.contains(&w));
    let warnings = all.iter().filter(of_host).filter(other);
    let warnings = warnings.map(|one| {
        format!("{}={} names another host compiler than {host}; unset it, or say `--cc`", one.name, one.value)
    });
    (problems, warnings.collect())
}

/// Whether a variable would steer a build from outside of its recipe.
fn steers(name: &str) -> bool {
    STEERING.iter().any(|prefix| name.starts_with(prefix))
}

/// Code of a variable that would change the archs.
const ARCH_FLAGS_CODE: &str = "cuwright::preflight::arch_flags";

/// The first word of nvcc's variables that begins like one of `flags`.
fn first_flag(name: &str, value: &str, flags: &[&str]) -> Option<String> {
    OF_NVCC.contains(&name).then(|| find_flag(value, flags))?
}

/// The first flag in a makefile's variable that names an arch.
fn raw_arch_flag(name: &str, value: &str) -> Option<String> {
    OF_MAKEFILES.contains(&name).then(|| find_flag(value, &ARCH_FLAGS))?
}

/// The first word of `value` that is one of `flags`, alone or with its value behind `=`.
fn find_flag(value: &str, flags: &[&str]) -> Option<String> {
    let is = |word: &&str| {
        flags.iter().any(|flag| word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
            || (flags.contains(&"-gencode") && word.starts_with("-gencode"))
    };
    value.split_whitespace().find(is).map(str::to_owned)
}

/// Whether a build hands this to nvcc as flags that torch reads: with `arch` in it, and no arch named in earnest.
fn silences_torch(name: &str, value: &str) -> bool {
    let handed = matches!(name, "MMCV_CUDA_ARGS" | "NVCC_FLAGS")
        || (name.contains("NVCC") || name.contains("CUDA")) && (name.ends_with("FLAGS") || name.ends_with("ARGS"));
    let read_by_nvcc = OF_NVCC.contains(&name);
    let in_earnest = ["-gencode", "-arch=", "--gpu-", "--generate-code"].iter().any(|flag| value.contains(flag));
    handed && !read_by_nvcc && value.contains("arch") && !in_earnest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::toolchain;
    use crate::recipe;

    fn fates(recipe: &Recipe, variables: &[(&'static str, &'static str)]) -> Vec<(String, Fate)> {
        let env = Env::of("/", variables.iter().copied());
        inherited(Some(recipe), &env, false, false).into_iter().map(|one| (one.name, one.fate)).collect()
    }

    #[test]
    fn every_variable_that_changes_a_build_has_a_fate() {
        let mut recipe = recipe::sample();
        recipe.build.pass_env.extend(["MMCV_CUDA_ARGS".to_owned(), "NVCC_FLAGS".to_owned(), "MY_SWITCH".to_owned()]);
        recipe.build.clear_env.push("LDFLAGS".to_owned());
        let all = fates(
            &recipe,
            &[
                ("CFLAGS", "-march=native"),
                ("LDFLAGS", "-s"),
                ("NVCC_PREPEND_FLAGS", "-ccbin /usr/bin/g++-11 -lineinfo"),
                ("NVCC_APPEND_FLAGS", "-lineinfo -gencode=arch=compute_80,code=sm_80"),
                ("MMCV_CUDA_ARGS", "-I/home/me/research/include"),
                ("NVCC_FLAGS", "-gencode arch=compute_90,code=sm_90"),
                ("MY_SWITCH", "1"),
                ("CUDAARCHS", "native"),
                ("CUDA_GENERATION", "Ampere"),
                ("TF_CUDA_ARCHS", "8.6"),
                ("EXTRA_NVCC_FLAGS", "-O3 -gencode arch=compute_80,code=sm_80"),
                ("CUDA_HOME", "/usr/local/cuda"),
                ("MAX_JOBS", "64"),
                ("NVCC_CCBIN", "g++-9"),
                ("UNRELATED", "1"),
            ],
        );
        let fate = |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, fate)| *fate);
        let kept = ["CFLAGS", "NVCC_PREPEND_FLAGS", "MY_SWITCH", "NVCC_FLAGS"];
        assert!(kept.iter().all(|name| fate(name) == Some(Fate::Kept)), "{all:?}");
        for name in ["LDFLAGS", "CUDAARCHS", "CUDA_GENERATION", "TF_CUDA_ARCHS", "EXTRA_NVCC_FLAGS"] {
            assert_eq!(fate(name), Some(Fate::Cleared), "{name}: {all:?}");
        }
        assert!(
            ["NVCC_APPEND_FLAGS", "MMCV_CUDA_ARGS"].iter().all(|name| fate(name) == Some(Fate::Refused)),
            "{all:?}"
        );
        assert!(["CUDA_HOME", "NVCC_CCBIN"].iter().all(|name| fate(name) == Some(Fate::Replaced)), "{all:?}");
        assert_eq!(fate("MAX_JOBS"), Some(Fate::Limit));
        assert_eq!(fate("UNRELATED"), None);
    }

    #[test]
    fn flags_that_name_archs_or_silence_torch_stop_the_build() {
        let env = Env::of("/", [("NVCC_APPEND_FLAGS", "-arch=sm_80"), ("NVCC_PREPEND_FLAGS", "-ccbin=/usr/bin/g++-9")]);
        let mut recipe = recipe::sample();
        recipe.build.env.insert("MMCV_CUDA_ARGS".into(), "-Xcompiler -march=native".into());
        recipe.build.env.insert("OTHER_CUDA_FLAGS".into(), "-gencode arch=compute_101,code=sm_101".into());
        let (problems, warnings) = judge(&recipe, &toolchain::sample(), &inherited(Some(&recipe), &env, false, false));
        assert_eq!(problems.len(), 2, "{problems:#?}");
        assert!(warnings.len() == 1 && warnings[0].contains("--cc"), "{warnings:?}");
    }
}
