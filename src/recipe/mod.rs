//! Recipes: what to build, from what, with what, for which GPUs, and how to know that it worked.
//!
//! Two types on purpose: [`raw`] mirrors the file with its spans and gaps, [`Recipe`] has every default applied.
//! `parse` reads, `resolve` joins, `infer` writes one for a bare source tree, `builtin` holds those we ship.
//! Pure: reading the file is the caller's work.

pub mod backend;
mod building;
pub mod builtin;
pub mod infer;
pub mod matrix;
pub mod parse;
pub mod raw;
pub mod resolve;
pub mod size;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::backend::{ArchNames, Backend, Bazel, Cmake, HowFar, Tried, Words};
use self::matrix::Matrix;
use self::size::ByteSize;

/// The only recipe schema so far.
pub const SCHEMA: i64 = 1;

/// A recipe with every default applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recipe {
    /// Distribution name.
    pub name: String,
    /// Version, where the recipe or its source names one.
    pub version: Option<String>,
    /// Where the source comes from.
    pub source: Source,
    /// Patches, applied in this order with `-p1`; names relative to the recipe, with their text.
    pub patches: Vec<Patch>,
    /// Bounds on the toolchain.
    pub toolchain: ToolchainNeeds,
    /// GPU targets named by the recipe.
    pub targets: Targets,
    /// How to build.
    pub build: Build,
    /// How to judge the result.
    pub verify: Verify,
    /// What `--matrix` builds.
    pub matrix: Matrix,
    /// How far this recipe was tried, where it says so.
    pub tried: Option<Tried>,
}

impl Recipe {
    /// A recipe that asks for a default toolchain and builds nothing.
    pub fn without_source(name: &str) -> Self {
        let backend = Backend::SetupPy;
        Self {
            name: name.to_owned(),
            version: None,
            source: Source::Path(".".to_owned()),
            patches: Vec::new(),
            toolchain: ToolchainNeeds {
                build_requires: backend.default_requires().iter().map(|&name| name.to_owned()).collect(),
                ..ToolchainNeeds::default()
            },
            targets: Targets::default(),
            build: Build {
                backend,
                folder: String::new(),
                archs: ArchNames { consumers: backend.default_consumers().to_vec(), ..ArchNames::default() },
                cmake: Cmake::default(),
                bazel: Bazel::default(),
                env: BTreeMap::new(),
                clear_env: Vec::new(),
                pass_env: Vec::new(),
                jobs_env: Vec::new(),
                memory_per_job: building::DEFAULT_MEMORY,
                heavy: Vec::new(),
                compile_ahead: None,
            },
            verify: Verify::default(),
            matrix: Matrix::default(),
            tried: None,
        }
    }
}

/// Where a source tree comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A folder; relative paths are relative to the recipe's folder.
    Path(String),
    /// A source distribution from the configured package index.
    Pypi {
        /// Project name.
        name: String,
        /// Exact version.
        version: String,
        /// Digest that the file must have, lower-case hex.
        sha256: String,
    },
    /// One commit of a git repository.
    Git {
        /// Address; a path is relative to the recipe's folder.
        url: String,
        /// The commit, lower-case hex.
        commit: String,
        /// Whether its submodules belong to it.
        submodules: bool,
    },
}

/// One patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Patch {
    /// File name as the recipe gives it.
    pub name: String,
    /// Unified diff.
    pub text: String,
}

/// Version bounds in PEP 440 form; empty accepts everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ToolchainNeeds {
    /// CUDA toolkit.
    pub cuda: String,
    /// torch.
    pub torch: String,
    /// Python.
    pub python: String,
    /// Requirements that the build needs beside torch.
    pub build_requires: Vec<String>,
}

/// What the recipe says about targets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Targets {
    /// Used when nothing else names a target.
    pub arch: Vec<String>,
    /// Named sets.
    pub profiles: BTreeMap<String, Profile>,
}

/// A named target set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Archs.
    pub arch: Vec<String>,
    /// GPU product names.
    pub gpus: Vec<String>,
}

/// How to build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Build {
    /// Build system.
    pub backend: Backend,
    /// Folder of the source tree that it runs in; empty for the top.
    pub folder: String,
    /// Who reads the archs.
    pub archs: ArchNames,
    /// What `CMake` is told.
    pub cmake: Cmake,
    /// What Bazel is told.
    pub bazel: Bazel,
    /// Variables to set.
    pub env: BTreeMap<String, String>,
    /// Variables that must not reach the build.
    pub clear_env: Vec<String>,
    /// Variables to take over from the caller; their values are part of the key.
    pub pass_env: Vec<String>,
    /// Variables that take the number of jobs; not part of the key.
    pub jobs_env: Vec<String>,
    /// Memory one compile job needs at its peak.
    pub memory_per_job: ByteSize,
    /// Sources that need more.
    pub heavy: Vec<Heavy>,
    /// Whether compilers may run ahead of a setup.py that starts one after another; where it does without ninja if not
    /// said. Not part of the key.
    pub compile_ahead: Option<bool>,
}

/// A source that needs more memory than most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heavy {
    /// Glob over paths below the source tree.
    pub file: String,
    /// Memory its compiler needs at its peak.
    pub memory: ByteSize,
}

/// How to judge the result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verify {
    /// Globs of the extension files inside the wheel that must hold device code; empty means every `.so`.
    pub extensions: Vec<String>,
    /// Modules that must import; nothing means the modules of the extension files.
    pub import: Option<Vec<String>>,
    /// Python statements to run after the imports.
    pub check: Option<String>,
    /// Python statements to run where a GPU is at hand that the built targets cover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_check: Option<String>,
    /// Requirements of the imports, installed beside torch.
    pub requires: Vec<String>,
    /// Exceptions, each with its reason.
    pub waivers: Vec<Waiver>,
}

/// A file that may lack code for some archs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waiver {
    /// Glob over paths inside the wheel.
    pub file: String,
    /// Arch list that may be missing; `all` for a file without device code.
    pub arch: String,
    /// Why that is right.
    pub reason: String,
}

/// The smallest recipe, for tests of the stages behind this one.
#[cfg(test)]
pub(crate) fn sample() -> Recipe {
    let text = "schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n";
    let document = parse::Document { origin: "sample", text };
    resolve::resolve(document, parse::parse(document).unwrap(), |_| Err(String::new())).unwrap()
}
