//! A string table read whole, with a bound on the work that its users can cause.
//!
//! Invariant: all names handed out together are a small multiple of the table. Honest tables use each string a few
//! times at most (a name, and names that end in it); a hostile one points everything at its longest.

use std::cell::Cell;

use crate::bytes::until_nul;

const REUSE: usize = 16;
const SLACK: usize = 64 << 10;

/// C++ templates give names of several KiB.
const MAX_NAME: usize = 256 << 10;

pub(super) struct Names {
    table: Vec<u8>,
    budget: Cell<usize>,
}

impl Names {
    pub(super) fn new(table: Vec<u8>) -> Self {
        let budget = table.len().saturating_mul(REUSE).saturating_add(SLACK);
        Self { table, budget: Cell::new(budget) }
    }

    /// Whether the name at `offset` begins in this way.
    pub(super) fn begins(&self, offset: u32, with: &[u8]) -> bool {
        usize::try_from(offset).is_ok_and(|at| self.table.get(at..).is_some_and(|rest| rest.starts_with(with)))
    }

    /// The name at `offset`; `None` if it is outside, far too long, or the budget is spent.
    pub(super) fn get(&self, offset: u32) -> Option<&[u8]> {
        let rest = self.table.get(usize::try_from(offset).ok()?..)?;
        let shown = &rest[..rest.len().min(MAX_NAME).min(self.budget.get())];
        let name = until_nul(shown);
        self.budget.set(self.budget.get() - name.len());
        if name.len() == shown.len() { None } else { Some(name) }
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_end_at_nul_and_inside_the_table() {
        let names = Names::new(b"\0abc\0def".to_vec());
        assert_eq!(names.get(0), Some(&b""[..]));
        assert_eq!(names.get(1), Some(&b"abc"[..]));
        assert_eq!(names.get(5), None);
        assert_eq!(names.get(u32::MAX), None);
    }

    #[test]
    fn the_budget_ends_repeated_use_of_a_long_name() {
        let mut table = vec![b'x'; 100_000];
        table.push(0);
        let names = Names::new(table);
        let given = (0..1000).filter(|_| names.get(0).is_some()).count();
        assert!((1..=17).contains(&given), "{given}");
    }
}
