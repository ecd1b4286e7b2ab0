//! The map of cuwright: flow, layers, modules.

pub mod domain;
pub mod pipeline;
pub mod probe;
pub mod provision;
pub mod source;
pub mod sys;
