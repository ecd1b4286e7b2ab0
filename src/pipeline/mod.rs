//! Joins the effects of one unit.

pub mod toolchain;
