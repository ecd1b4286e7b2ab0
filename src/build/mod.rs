//! Runs a unit's build command: streamed, logged, watched, and killed as a whole when it must end.
//!
//! Invariant: the source tree given by the user is never written to; a build folder belongs to one key and is made
//! anew for every build, so stale objects cannot mix. What the wheel holds is not judged here (`verify` does).

pub mod folder;
pub mod log;
pub mod ninja;
pub mod patch;
pub mod run;
