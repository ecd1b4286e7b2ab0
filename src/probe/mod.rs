//! What is on this machine: Pythons, torch, toolkits, compilers, GPUs. Read-only, each fact with its origin.
//!
//! Invariant: a probe changes nothing but its own cache of facts, and absence is a value or a problem, never a panic.

pub mod compiler;
pub mod facts;
pub mod gpu;
pub mod packages;
pub mod python;
pub mod toolkit;
pub mod tools;
pub mod torch;
pub mod torch_locks;
