//! What users see, on real files, on damaged copies of them, and on files made up byte by byte.
//!
//! The vectors and their expected values were made with NVIDIA's own tools; see `tests/vectors/README.md`.

mod build;
mod concat;
mod containers;
mod damage;
mod hostile;
mod support;
mod vectors;
