//! One integration binary: a file per command, a sandbox to run in, and the tidy tests that hold the house in shape.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "a test drives processes and reads the clock from outside")]
#![expect(unreachable_pub, reason = "helpers are shared between the files of one binary")]

mod ahead;
mod support;

mod abi;
mod arch;
mod backends;
mod build;
mod cache;
mod choose;
mod cli;
mod consent;
mod consumers;
mod detect;
mod doctor;
mod effective;
mod env;
mod explain;
mod inspect;
mod kills;
mod launch;
mod launcher;
mod mirrors;
mod mutations;
mod parity;
mod provision;
mod real;
mod recipe;
mod silence;
mod stale;
mod tidy;
mod toolchain;
mod units;
mod verify;
