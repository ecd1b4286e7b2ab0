//! What is on this machine: facts with their source, never choices.

pub mod gpu;
