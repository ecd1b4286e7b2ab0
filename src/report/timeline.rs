//! What ran when: every compiler call of a build, and its memory over time. Pure; the launcher fills it.

use serde::Serialize;

/// One compiler call. Times are milliseconds since the build began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Call {
    /// The source below the source tree, or the file that is linked.
    pub source: String,
    /// File name of the tool.
    pub tool: String,
    /// Whether it links.
    pub link: bool,
    /// Whether it is nvcc compiling device code.
    pub device: bool,
    /// Archs that its arguments name.
    pub archs: String,
    /// When it asked for room.
    pub asked: u64,
    /// When it was let in.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// Processor milliseconds in user mode.
    pub user: u64,
    /// Processor milliseconds in the system.
    pub system: u64,
    /// Bytes at its peak, with everything it started.
    pub peak: u64,
    /// Cores that it was given.
    pub cores: u32,
    /// Exit code, or a signal's number with its sign changed.
    pub status: i32,
    /// Whether its last run was killed as for lack of memory.
    pub starved: bool,
    /// Runs: 2 where the first was killed for memory.
    pub attempts: u32,
}

/// Memory at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sample {
    /// Milliseconds since the build began.
    pub at: u64,
    /// Bytes that this build's compilers hold.
    pub used: u64,
    /// Bytes that could still be had; 0 where unknown.
    pub free: u64,
    /// Compilers that run.
    pub running: usize,
    /// Compilers that wait.
    pub waiting: usize,
}

/// A whole build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Timeline {
    /// Every call, in the order of their ends.
    pub calls: Vec<Call>,
    /// Memory over time.
    pub samples: Vec<Sample>,
    /// Cores that the build might use.
    pub cores: u32,
}
