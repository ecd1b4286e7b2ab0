//! Exit codes, which are API: scripts and CI rules branch on them.
//!
//! The numbers never change; the table in `docs/exit-codes.md` is checked against this file.

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Everything asked for was done.
    Ok = 0,
    /// cuwright itself is wrong.
    Bug = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The recipe or its source is wrong.
    Recipe = 10,
    /// No GPU target is known.
    NoTarget = 11,
    /// No fitting toolchain, or the preflight refused.
    Toolchain = 12,
    /// The project's build failed.
    Build = 13,
    /// The artifact does not hold what was asked for.
    Verify = 14,
    /// The artifact cache could not do what a `cache` command asked.
    Cache = 15,
    /// Stopped by a signal.
    Interrupted = 130,
}

impl Exit {
    /// The number the operating system sees.
    pub fn code(self) -> u8 {
        self as u8
    }
}
