//! The map of cuwright: flow, layers, modules.

pub mod domain;
pub mod recipe;
pub mod sys;
