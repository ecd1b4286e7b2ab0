//! Source trees: a folder of the user, or an sdist from the package index, each with a digest of what is in it.
//!
//! On disk, under the cache root: `downloads-v1/<sha256>/<file name>` and `sources-v1/<sha256>/{tree/,tree.json}`.
//! Invariant: a source is never built in place; `Tree::copy_to` copies exactly what was hashed.

mod archive;
pub mod path;
pub mod pypi;
mod simple;
pub mod tree;

pub use tree::Tree;
