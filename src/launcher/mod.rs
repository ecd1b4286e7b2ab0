//! The launcher: cuwright under the compilers' names, and the coordinator that lets them run.
//!
//! ```text
//! <build folder>/launch/
//!     socket                where the coordinator listens
//!     jobserver             tokens for tools that run jobs of their own
//!     bin/                  nvcc, gcc, g++, cc, c++, clang, clang++, ninja: first on PATH
//!     cc/NAME  cxx/NAME     the chosen host compiler, under its own name: nvcc goes by it
//!     bin/cuwright-apart    a stand-in whose caller was told that all went well (`ahead`)
//!     bin/cuwright-launch   runs the compiler that its first argument names (`CMAKE_*_COMPILER_LAUNCHER`)
//!     real/{bin,cc,cxx}/    the same names as links to the real tools
//!     cuda/                 a CUDA_HOME of links whose nvcc is a stand-in, where a project insists on CUDA_HOME/bin/nvcc
//! ```
//!
//! Invariant: without a coordinator a stand-in is the compiler, and with one it differs only in when it runs. The
//! coordinator alone holds the limit; ninja and make may start what they like. Builds that share a limit share a
//! [`Coordinator`], each with a [`Unit`] of its own. Where the launcher is put is [`Placement`]'s to say; that it is used
//! is the backends' work.

mod ahead;
mod book;
mod call;
mod coordinator;
mod costs;
mod jobserver;
mod message;
mod ninja;
mod place;
mod schedule;
mod socket;
pub mod stand_in;
mod unit;

pub use coordinator::{Coordinator, Limits};
pub use costs::Costs;
pub use place::{Placement, Tools};
pub use unit::{Finished, Status, Unit, UnitSpec, Working};

/// Name of the stand-in that takes the compiler as its first argument.
const NAME: &str = "cuwright-launch";
/// Name of the starter of a build: what it starts dies with cuwright.
const START: &str = "cuwright-start";
/// Name of a stand-in that runs its compiler apart from who asked for it.
const APART: &str = "cuwright-apart";
