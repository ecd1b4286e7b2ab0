//! Values that every layer speaks: archs, versions, commands, problems, exit codes.
//!
//! Invariant: pure. Nothing here reads a file, an environment variable or a clock.

pub mod arch;
pub mod command;
pub mod exit;
pub mod index;
pub mod problem;
pub mod reads;
pub mod release;
pub mod requirement;
pub mod symbol;
pub mod toolchain;
pub mod version;
