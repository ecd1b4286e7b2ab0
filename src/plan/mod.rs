//! What would run: the environment, the command and the number of jobs of one unit, as values.
//!
//! Invariant: pure, and the whole of it: `build` adds nothing to what is planned here. A child gets only variables
//! that are named below, in the recipe, or set by us; everything else is left behind.

pub mod environment;
pub mod inherited;
pub mod jobs;

use camino::Utf8Path;

pub use self::environment::{ARCH_VARIABLES, Environment, environment, of_import, of_toolchain};
pub use self::inherited::{Fate, Inherited, inherited};
pub use self::jobs::{Jobs, jobs};
use crate::domain::command::CommandSpec;
use crate::domain::toolchain::Toolchain;
use crate::sys::env_vars as vars;

/// Variables by which flags reach nvcc: its own two, and what setup.py files commonly read.
pub const NVCC_FLAGS: [&str; 4] = [vars::NVCC_PREPEND_FLAGS, "TORCH_NVCC_FLAGS", "NVCC_FLAGS", vars::NVCC_APPEND_FLAGS];

/// The build command of a setup.py project: a wheel, without isolation, into `dist`.
pub fn setup_py(toolchain: &Toolchain, environment: &Environment, source: &Utf8Path, dist: &Utf8Path) -> CommandSpec {
    CommandSpec::new(toolchain.python.executable.as_str(), source)
        .args(["setup.py", "bdist_wheel", "--dist-dir", dist.as_str()])
        .env(environment.variables.clone())
}
