//! The map of cuwright.
