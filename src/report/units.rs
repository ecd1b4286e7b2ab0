//! The units of a run: what was asked for, and how each of them ended.

use serde::Serialize;

/// A unit before anything has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Planned {
    /// Name of the unit, unlike any other of this run.
    pub unit: String,
    /// Package.
    pub package: String,
    /// Archs of the cell of the matrix, as written.
    pub arch: Option<String>,
    /// torch of the cell.
    pub torch: Option<String>,
    /// CUDA of the cell.
    pub cuda: Option<String>,
    /// Python of the cell.
    pub python: Option<String>,
    /// The constraint that nothing satisfies together with this cell, if there is one; it is not built then.
    pub pruned: Option<String>,
}

/// How a unit ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Ended {
    /// Name of the unit.
    pub unit: String,
    /// What became of it.
    pub status: Status,
    /// Seconds from its begin to its end, waiting included.
    pub seconds: u64,
    /// Canonical arch set, where the unit was built or restored.
    pub archs: Option<String>,
    /// Path of the wheel.
    pub wheel: Option<String>,
    /// Size of the wheel.
    pub wheel_bytes: Option<u64>,
    /// Exit code that this unit alone would have given.
    pub exit: u8,
    /// Why, where it has no wheel.
    pub why: Option<String>,
}

/// What became of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Built and verified.
    Built,
    /// Restored from the cache.
    Restored,
    /// An error stopped it.
    Failed,
    /// A signal stopped it.
    Interrupted,
    /// It never began, since another one had failed or a signal had come.
    NotStarted,
    /// A cell that no toolchain can satisfy.
    Pruned,
}

impl Status {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Built => "built",
            Self::Restored => "restored",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::NotStarted => "not started",
            Self::Pruned => "pruned",
        }
    }
}
