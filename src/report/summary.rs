//! What a finished unit tells: the artifact, its key, and per file which targets it can run on.

use serde::{Deserialize, Serialize};

/// A verified artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Unit of the run: the package, and with a matrix its cell.
    pub unit: String,
    /// Package.
    #[serde(default)]
    pub package: String,
    /// Version, where known.
    pub version: Option<String>,
    /// Cache key, 64 hex digits.
    pub key: String,
    /// Whether it came from the cache.
    pub restored: bool,
    /// What kind of artifact it is.
    #[serde(default)]
    pub kind: Kind,
    /// Path of the artifact in the output folder: a wheel, or the archive of a tree.
    pub wheel: String,
    /// Size of that file in bytes.
    pub wheel_bytes: u64,
    /// sha256 of that file.
    pub wheel_sha256: String,
    /// Archs asked for.
    pub requested: String,
    /// Archs that the compiler command lines carried; empty where no command was seen.
    pub effective: String,
    /// The same for every source that holds device code, where the launcher saw them.
    #[serde(default)]
    pub effective_sources: Vec<EffectiveSources>,
    /// Sources whose compiler was killed for lack of memory and ran again.
    #[serde(default)]
    pub ran_again: Vec<String>,
    /// What each extension file holds.
    pub files: Vec<FileCoverage>,
    /// What the import check printed, line by line.
    pub import_output: Vec<String>,
    /// The recipe's check on a GPU; nothing where the recipe has none.
    #[serde(default)]
    pub gpu_check: Option<GpuCheck>,
    /// CUDA toolkit, such as `13.0.88`.
    pub cuda: String,
    /// torch, such as `2.11.0+cu130`.
    pub torch: String,
    /// Python wheel tag.
    pub python: String,
    /// Seconds that the build system ran, when it did.
    pub build_seconds: u64,
    /// Why the artifact is kept for this machine only: what cannot be known of its build. Empty where it is valid
    /// wherever the files that it was built from are the same.
    #[serde(default)]
    pub local: Vec<String>,
}

/// A kind of artifact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A Python wheel.
    #[default]
    Wheel,
    /// Files for a prefix, in a `.tar.gz`.
    Tree,
}

/// The recipe's check on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct GpuCheck {
    /// How it went.
    pub status: GpuStatus,
    /// The GPU it ran on.
    pub gpu: Option<String>,
    /// Why it was not run, or failed.
    pub why: Option<String>,
    /// What it printed, line by line.
    pub output: Vec<String>,
}

/// How a check on a GPU went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GpuStatus {
    /// It ran and raised nothing.
    Passed,
    /// It raised, or its process died.
    Failed,
    /// There is nothing here to run it on.
    NotRun,
}

impl GpuCheck {
    /// A check that there is nothing to run on for.
    pub fn not_run(why: impl Into<String>) -> Self {
        Self { status: GpuStatus::NotRun, gpu: None, why: Some(why.into()), output: Vec::new() }
    }

    /// In one line.
    pub fn headline(&self) -> String {
        let on = self.gpu.as_ref().map(|gpu| format!(" on {gpu}")).unwrap_or_default();
        let why = self.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        match self.status {
            GpuStatus::Passed => format!("passed{on}"),
            GpuStatus::Failed => format!("failed{on}{why}"),
            GpuStatus::NotRun => format!("not run{why}"),
        }
    }
}

/// Sources that were compiled for the same archs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct EffectiveSources {
    /// Archs on the command lines; empty where they named none.
    pub archs: String,
    /// The sources.
    pub sources: Vec<String>,
}

/// The device code of one file inside the artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct FileCoverage {
    /// Path inside the artifact.
    pub file: String,
    /// Archs found, as an arch list; empty for a file without device code.
    pub found: String,
    /// Number of SASS images (cubins).
    pub cubins: usize,
    /// Number of PTX images.
    pub ptx: usize,
    /// Reason of the waiver that applies, if one does.
    pub waived: Option<String>,
}
