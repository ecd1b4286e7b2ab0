//! What would run: the environment, the commands and the number of jobs of one unit, as values.
//!
//! Invariant: pure, and the whole of it: `build` adds nothing to what is planned here. A child gets only variables
//! that are named below, in the recipe, or set by us; everything else is left behind.

pub mod archs;
pub mod commands;
pub mod environment;
pub mod inherited;
pub mod jobs;

pub use self::archs::{ArchVariables, arch_variables};
pub use self::commands::{Commands, Outputs, Places, Step, TOOLCHAIN_DEFINES, commands};
pub use self::environment::{ARCH_VARIABLES, Environment, environment, of_import, of_toolchain, reserved};
pub use self::inherited::{Fate, Inherited, inherited};
pub use self::jobs::{Jobs, jobs};
use crate::sys::env_vars as vars;

/// Variables by which flags reach nvcc: its own two, and what setup.py files commonly read.
pub const NVCC_FLAGS: [&str; 4] = [vars::NVCC_PREPEND_FLAGS, "TORCH_NVCC_FLAGS", "NVCC_FLAGS", vars::NVCC_APPEND_FLAGS];
