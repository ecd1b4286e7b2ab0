//! The map of cuwright: flow, layers, modules.

pub mod compat;
pub mod domain;
pub mod probe;
pub mod sys;
pub mod targets;
