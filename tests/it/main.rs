//! One integration binary: a file per command, a sandbox to run in, and the tidy tests that hold the house in shape.

mod support;

mod cli;
mod tidy;
