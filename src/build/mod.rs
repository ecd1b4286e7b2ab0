//! Runs a unit's build commands: streamed, logged, watched, and killed as a whole when it must end.
//!
//! Invariant: the source tree given by the user is never written to; a build folder belongs to one key and is made
//! anew for every build, so stale objects cannot mix. What the artifact holds is not judged here (`verify` does).

pub mod bazel;
pub mod cmake;
pub mod folder;
pub mod log;
pub mod ninja;
pub mod pack;
pub mod patch;
pub mod record;
pub mod run;
pub mod setup_py;
