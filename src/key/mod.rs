//! The cache key: what an artifact depends on, as a value that is stored beside it.
//!
//! | in the key | why |
//! |---|---|
//! | key version | a change of this table or of how a build is made |
//! | package, recipe's build and verify parts | they decide what is built and what passes |
//! | source tree digest, patches | the code |
//! | build system, what it is told, whose arch variables it gets | they decide what is compiled, and how |
//! | arch set in canonical form | the same set has one key, however it was spelled |
//! | nvcc's full version | another compiler, another code |
//! | torch's full version, its CUDA, its C++ ABI | extensions link against torch's C++ symbols |
//! | Python tag and platform | names and ABI of extension modules, machine type |
//! | host compiler family and version, C library | C++ ABI and symbol versions |
//! | place and contents of nvcc, the host compilers and Python | wrappers and dispatchers tell a version of others |
//! | the records of all packages that the build can import | one may be replaced under its version |
//! | variables that reach the compilers, and the recipe's | flags change code |
//!
//! What else a build reads, and from where, is known once it has run: an entry holds it beside the artifact
//! (`domain::reads`), and it is checked at look-up.
//!
//! Not in the key: other absolute paths, times, user and host names, core count, memory, GPUs and driver of this machine,
//! locale, proxies, where the toolchain came from. `plan` keeps such variables apart from those in the key.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::domain::arch::ArchSet;
use crate::domain::toolchain::{HostFamily, Toolchain};
use crate::recipe::{Build, Patch, Recipe, ToolchainNeeds, Verify};

/// Raised whenever equal inputs may give another artifact than before.
pub const KEY_VERSION: u32 = 3;

/// A program of the toolchain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tool {
    /// Where it is; one of a provisioned environment, from the environment's root.
    pub path: String,
    /// sha256 of its file.
    pub sha256: String,
}

/// What the toolchain is, beyond the versions that it says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Identity {
    /// Its programs, by what they are for.
    pub tools: BTreeMap<String, Tool>,
    /// One digest over the records of all packages that a build can import.
    pub packages: String,
}

/// Everything an artifact depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KeyInputs {
    /// [`KEY_VERSION`].
    pub key_version: u32,
    /// Package name.
    pub package: String,
    /// Package version, where known.
    pub version: Option<String>,
    /// Digest of the source tree.
    pub source: String,
    /// Digest of each patch, in order.
    pub patches: Vec<String>,
    /// Build backend.
    pub backend: String,
    /// What it is told beside variables, and by which names it gets the archs.
    pub options: Value,
    /// Requirements of the build, as the recipe names them.
    pub build_requires: Vec<String>,
    /// Digest of the recipe's verify part.
    pub verify: String,
    /// Canonical arch set.
    pub archs: String,
    /// nvcc's full version.
    pub nvcc: String,
    /// torch's full version.
    pub torch: String,
    /// CUDA version torch was built for.
    pub torch_cuda: Option<String>,
    /// Whether torch uses the C++11 ABI.
    pub cxx11_abi: bool,
    /// Python wheel tag.
    pub python: String,
    /// Operating system and machine.
    pub platform: String,
    /// C library and its version, where known.
    pub libc: Option<String>,
    /// Host compiler family and version.
    pub host_compiler: String,
    /// Variables that decide about the output.
    pub variables: BTreeMap<String, String>,
    /// What the toolchain is, beyond the versions that it says.
    #[serde(flatten)]
    pub identity: Identity,
}

/// Collects the inputs of a unit.
pub fn inputs(
    recipe: &Recipe,
    toolchain: &Toolchain,
    archs: &ArchSet,
    source: &str,
    variables: &BTreeMap<String, String>,
    identity: Identity,
) -> KeyInputs {
    let ToolchainNeeds { build_requires, .. } = &recipe.toolchain;
    let family = match toolchain.host.family {
        HostFamily::Gcc => "gcc",
        HostFamily::Clang => "clang",
    };
    KeyInputs {
        key_version: KEY_VERSION,
        package: recipe.name.clone(),
        version: recipe.version.clone(),
        source: source.to_owned(),
        patches: recipe.patches.iter().map(patch).collect(),
        backend: recipe.build.backend.name().to_owned(),
        options: options(&recipe.build),
        build_requires: build_requires.clone(),
        verify: verify(&recipe.verify),
        archs: archs.to_string(),
        nvcc: toolchain.toolkit.nvcc.to_string(),
        torch: toolchain.torch.version.clone(),
        torch_cuda: toolchain.torch.cuda.map(|cuda| cuda.to_string()),
        cxx11_abi: toolchain.torch.cxx11_abi,
        python: toolchain.python.tag.clone(),
        platform: toolchain.python.platform.clone(),
        libc: toolchain.python.libc.clone(),
        host_compiler: format!("{family} {}", toolchain.host.version),
        variables: variables.clone(),
        identity,
    }
}

impl KeyInputs {
    /// As JSON, the form that is hashed and stored.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

fn options(build: &Build) -> Value {
    let Build { folder, archs, cmake, bazel, .. } = build;
    serde_json::json!({ "folder": folder, "archs": archs, "cmake": cmake, "bazel": bazel })
}

fn patch(patch: &Patch) -> String {
    cache::digest(patch.text.as_bytes()).to_string()
}

fn verify(verify: &Verify) -> String {
    let json = serde_json::to_value(verify).unwrap_or_default();
    cache::digest(&cache::canonical_json(&json).unwrap_or_default()).to_string()
}

#[cfg(test)]
mod tests;
