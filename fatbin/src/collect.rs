//! Gathers entries and findings while parsers walk a file, and knows the place they are at.
//!
//! Invariant: what a hostile file can make us keep is bounded, by `Options::max_entries` and a fixed number of
//! findings; names of members and sections are shared, not copied per entry.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Problem};
use crate::entry::{Entry, FoundBy};

/// Real files have a handful; a mutated one can have one per few bytes.
const MAX_DIAGNOSTICS: usize = 1000;

pub(crate) struct Collector {
    pub(crate) entries: Vec<Entry>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) external: Vec<String>,
    pub(crate) complete: bool,
    pub(crate) member: Option<Arc<str>>,
    pub(crate) section: Option<Arc<str>>,
    pub(crate) found_by: FoundBy,
    /// Set once an entry was refused: the rest of the file need not be read.
    pub(crate) full: bool,
    max_entries: usize,
}

impl Collector {
    pub(crate) fn new(max_entries: usize) -> Self {
        Self {
            entries: Vec::new(),
            diagnostics: Vec::new(),
            external: Vec::new(),
            complete: true,
            member: None,
            section: None,
            found_by: FoundBy::Format,
            full: false,
            max_entries,
        }
    }

    /// Keeps an entry; false if there is no room, and then nothing more need be read.
    pub(crate) fn push(&mut self, entry: Entry) -> bool {
        if self.entries.len() >= self.max_entries {
            if !self.full {
                self.full = true;
                self.report(entry.offset, Problem::LimitReached);
            }
            return false;
        }
        self.entries.push(entry);
        true
    }

    pub(crate) fn report(&mut self, offset: u64, problem: Problem) {
        self.complete &= !problem.may_miss_code();
        let problem = match self.diagnostics.len() {
            len if len < MAX_DIAGNOSTICS => problem,
            MAX_DIAGNOSTICS => Problem::MoreFindings,
            _ => return,
        };
        self.diagnostics.push(Diagnostic {
            member: self.member.clone(),
            section: self.section.clone(),
            offset,
            problem,
        });
    }
}
