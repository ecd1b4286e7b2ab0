//! Source trees: a folder of the user, an sdist from the package index, or a commit of a git repository, each with a digest of what is in it.
//!
//! On disk, under the cache root: `downloads-v1/<sha256>/<file name>` and `sources-v1/<sha256>/{tree/,tree.json}`,
//! or `sources-v1/git-<commit>/…`.
//! Invariant: a source is never built in place; `Tree::copy_to` copies exactly what was hashed.

pub mod archive;
pub mod git;
pub mod path;
pub mod pypi;
mod simple;
pub mod tree;

pub use tree::Tree;
