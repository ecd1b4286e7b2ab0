//! The only home of the operating system: environment, processes, files, network, clock.
//!
//! Invariant: everything that touches the world goes through here, so every other module can be tested with values.
//! No policy lives here: `sys` does as told and reports what happened.

pub mod clock;
pub mod dirs;
pub mod env;
pub mod env_vars;
pub mod exec;
pub mod files;
pub mod lines;
pub mod lock;
pub mod machine;
pub mod net;
pub mod process;
pub mod processes;
pub mod signals;
#[cfg(test)]
pub(crate) mod test_server;
pub mod unpack;

pub use env::Env;
