//! Why a build or a program failed, from its log: rules as data, matched over what tools printed.
//!
//! ```text
//! bytes ─scan→ lines that hold a literal of a rule ─line→ text ─rule patterns→ hits with facts
//! hits + facts (log, command line, our own build) ─condition, derive→ rules that hold ─judge→ Diagnosis
//! ```
//!
//! Invariants: pure, in bounded memory, never panics whatever the bytes; a rule is a table in `rules/` and needs no
//! code; what no rule knows is said to be unknown. Nothing here looks at a machine: facts come from the log or are
//! given. How to add a rule is told in `docs/diagnosis.md`.

mod around;
mod attempts;
mod condition;
mod derive;
mod diagnosis;
mod facts;
mod index;
mod judge;
mod line;
mod marks;
mod rule;
mod scan;
mod text;
pub mod topics;
mod words;

#[cfg(test)]
mod tests;

pub use diagnosis::{Diagnosis, Echo, Finding, LogLine, UnknownError, Verdict, Weight};
pub use facts::Facts;
pub use judge::judge;
pub use scan::Scanner;

/// Judges a whole log at once.
pub fn explain(log: &[u8], input: &str, given: &Facts) -> Diagnosis {
    let mut scanner = Scanner::default();
    scanner.feed(log);
    judge(scanner, input, given)
}
