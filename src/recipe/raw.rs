//! The recipe file as written: optional where the user may leave out, with spans where an error will point.
//!
//! Invariant: no defaults and no meaning here, and no `untagged` or `flatten`, so that every refusal has a place.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// A whole recipe file of schema 1.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawRecipe {
    /// Version of this format; 1.
    #[serde(rename = "schema")]
    #[expect(dead_code, reason = "judged before this type is read; kept so that the key is legal")]
    schema_version: i64,
    /// What is built.
    pub package: RawPackage,
    /// Where it comes from.
    pub source: RawSource,
    /// Bounds on the toolchain.
    #[serde(default)]
    pub toolchain: RawToolchain,
    /// GPU targets.
    #[serde(default)]
    pub targets: RawTargets,
    /// How to build.
    #[serde(default)]
    pub build: RawBuild,
    /// How to judge the result.
    #[serde(default)]
    pub verify: RawVerify,
    /// What `--matrix` builds.
    #[serde(default)]
    pub matrix: RawMatrix,
    /// How far this recipe was tried.
    pub tried: Option<RawTried>,
}

/// `[package]`
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawPackage {
    /// Distribution name, such as `mmcv`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub name: Spanned<String>,
    /// Version; a `pypi` source brings its own.
    pub version: Option<String>,
}

/// `[source]`: exactly one of `path`, `pypi` and `git`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawSource {
    /// Folder of the source tree, relative to the recipe.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub path: Option<Spanned<String>>,
    /// Source distribution on the package index, `name==version`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub pypi: Option<Spanned<String>>,
    /// sha256 of the source distribution, in hex.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub sha256: Option<Spanned<String>>,
    /// Address of a git repository, or a path relative to the recipe.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub git: Option<Spanned<String>>,
    /// The commit of that repository, as its full id.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub commit: Option<Spanned<String>>,
    /// Whether the submodules of that commit are fetched too.
    #[serde(default)]
    pub submodules: bool,
    /// Patch files beside the recipe, applied in order with `-p1`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub patches: Vec<Spanned<String>>,
}

/// `[toolchain]`: version bounds in PEP 440 form.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawToolchain {
    /// CUDA toolkit, such as `>=11.8`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub cuda: Option<Spanned<String>>,
    /// torch, such as `>=2.0`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub torch: Option<Spanned<String>>,
    /// Python, such as `>=3.8`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub python: Option<Spanned<String>>,
    /// What the build needs beside torch. The default depends on the backend; `setup.py`: setuptools below 81, wheel, ninja.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub build_requires: Option<Vec<Spanned<String>>>,
}

/// `[targets]`
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawTargets {
    /// Archs used when nothing else names a target; strings, such as `"8.6"` or `"9.0+PTX"`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub arch: Vec<Spanned<String>>,
    /// Named sets for `--profile`.
    pub profiles: BTreeMap<String, RawProfile>,
}

/// `[targets.profiles.NAME]`
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawProfile {
    /// Archs.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub arch: Vec<Spanned<String>>,
    /// GPU product names, such as `"RTX 4090"`.
    pub gpus: Vec<String>,
}

/// `[build]`
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawBuild {
    /// Build system: `setup.py` (default), `pyproject`, `cmake` or `bazel`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub backend: Option<Spanned<String>>,
    /// Folder of the source tree that the build system runs in. Default: the top.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub folder: Option<Spanned<String>>,
    /// Whose arch variables are set, such as `torch`, `cmake`, `caffe`. The default depends on the backend.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub archs_for: Option<Vec<Spanned<String>>>,
    /// Environment variables of the project's own that take archs, each with its spelling.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub arch_env: BTreeMap<Spanned<String>, Spanned<String>>,
    /// `CMake` variables of the project's own that take archs, each with its spelling.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub arch_define: BTreeMap<Spanned<String>, Spanned<String>>,
    /// What `CMake` is told.
    pub cmake: RawCmake,
    /// What Bazel is told.
    pub bazel: RawBazel,
    /// Variables to set for the build.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub env: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Variables that must not reach the build.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub clear_env: Vec<Spanned<String>>,
    /// Variables to take over from the caller's environment.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub pass_env: Vec<Spanned<String>>,
    /// Variables that take the number of jobs, beside those that every build gets.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub jobs_env: Vec<Spanned<String>>,
    /// Memory one compile job needs, such as `3 GiB`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub memory_per_job: Option<Spanned<String>>,
    /// Sources that need more than that.
    pub heavy: Vec<RawHeavy>,
    /// Whether compilers that setup.py starts one after another may run side by side, while it goes on. The default is
    /// yes where setup.py does without ninja.
    pub compile_ahead: Option<bool>,
}

/// `[[build.heavy]]`
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawHeavy {
    /// Glob over paths below the source tree.
    #[cfg_attr(test, schemars(with = "String"))]
    pub file: Spanned<String>,
    /// Memory its compiler needs, such as `6 GiB`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub memory: Spanned<String>,
}

/// `[build.cmake]`
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawCmake {
    /// `-D` definitions, values as strings.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub defines: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Configure preset of the project's `CMakePresets.json`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub preset: Option<Spanned<String>>,
    /// Targets to build. Default: the project's default target.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub targets: Vec<Spanned<String>>,
    /// Components to install. Default: all.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub components: Vec<Spanned<String>>,
}

/// `[build.bazel]`
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawBazel {
    /// Target patterns, such as `//pkg:lib`; required with the backend `bazel`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub targets: Vec<Spanned<String>>,
    /// Further flags of `bazel build`, such as `--config=cuda`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub flags: Vec<Spanned<String>>,
    /// Flags before `build`, such as `--host_jvm_args=-Xmx4g`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub startup_flags: Vec<Spanned<String>>,
    /// Folder for `--disk_cache`; absolute, or relative to the home folder with `~/`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub disk_cache: Option<Spanned<String>>,
    /// Address for `--remote_cache`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub remote_cache: Option<Spanned<String>>,
}

/// `[tried]`
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawTried {
    /// `built and run`, `built` or `planned only`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub how: Spanned<String>,
    /// Day, such as `2026-11-30`.
    pub on: String,
    /// torch release.
    pub torch: String,
    /// CUDA release.
    pub cuda: String,
    /// For which archs, and what else is worth knowing.
    #[serde(default)]
    pub note: String,
}

/// `[verify]`
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawVerify {
    /// Globs of the extension files inside the wheel that must hold device code. Default: every `.so`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub extensions: Vec<Spanned<String>>,
    /// Modules that must import. Default: the modules of the extension files; an empty list imports nothing.
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub import: Option<Vec<Spanned<String>>>,
    /// Python statements to run after the imports; an exception fails the verification.
    pub check: Option<String>,
    /// Python statements to run on a GPU that the built targets cover, in a process of their own; an exception fails.
    pub gpu_check: Option<String>,
    /// Requirements of the imports, installed beside torch.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub requires: Vec<Spanned<String>>,
    /// Exceptions, each with a reason.
    pub waive: Vec<RawWaiver>,
}

/// `[[verify.waive]]`
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawWaiver {
    /// Glob over paths inside the wheel.
    #[cfg_attr(test, schemars(with = "String"))]
    pub file: Spanned<String>,
    /// Archs that may be missing, or `all` for a file without device code.
    #[cfg_attr(test, schemars(with = "String"))]
    pub arch: Spanned<String>,
    /// Why that is right.
    #[cfg_attr(test, schemars(with = "String"))]
    pub reason: Spanned<String>,
}

/// `[matrix]`: what `--matrix` builds; the product of the axes, with exceptions.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawMatrix {
    /// Arch lists, such as `"8.6;9.0+PTX"`: each is one value.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub arch: Vec<Spanned<String>>,
    /// torch releases or ranges.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub torch: Vec<Spanned<String>>,
    /// CUDA releases or ranges.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub cuda: Vec<Spanned<String>>,
    /// Pythons: versions or paths.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub python: Vec<Spanned<String>>,
    /// Axes that are walked in step instead of multiplied.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub zip: Vec<Spanned<String>>,
    /// Cells to add, as they stand.
    #[cfg_attr(test, schemars(with = "Vec<RawCell>"))]
    pub include: Vec<Spanned<RawCell>>,
    /// Cells to take out: those that have every value named here.
    #[cfg_attr(test, schemars(with = "Vec<RawCell>"))]
    pub exclude: Vec<Spanned<RawCell>>,
}

/// An entry of `matrix.include` or `matrix.exclude`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RawCell {
    /// Arch list.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub arch: Option<Spanned<String>>,
    /// torch release or range.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub torch: Option<Spanned<String>>,
    /// CUDA release or range.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub cuda: Option<Spanned<String>>,
    /// Python.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub python: Option<Spanned<String>>,
}
