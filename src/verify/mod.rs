//! Judges a wheel by what it holds: device code per extension file, and an import in a fresh process.
//!
//! Invariant: the artifact is the only truth; no flag, log or exit status of the build enters here.

pub mod coverage;
pub mod files;
pub mod import;
pub mod site;
