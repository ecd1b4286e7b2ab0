//! Judges files by what they hold: device code per extension file, fitness for GPUs, ABI, an import in a fresh process.
//!
//! Invariant: the artifact is the only truth; no flag, log or exit status of the build enters here.

pub mod abi;
pub mod coverage;
pub mod fate;
pub mod found;
pub mod import;
pub mod input;
pub mod inspect;
pub mod junit;
pub mod outcome;
pub mod regular;
pub mod site;
pub mod wheel;
