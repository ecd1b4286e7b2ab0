//! Reads the embedded tables: tab-separated, one row a line, `#` lines for people.
//!
//! The rows are ours and tested, so a wrong cell is a bug that a test finds; at run time such a row is left out.

/// The rows of a table, as cells.
pub(super) fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// The parts of a list cell; `-` is the empty list.
pub(super) fn list(cell: &'static str, separator: char) -> impl Iterator<Item = &'static str> {
    cell.split(separator).filter(|part| !part.is_empty() && *part != "-")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Checks what every table owes: equal width, a known source in the last columns, no blank cell in the first.
    pub(in super::super) fn is_well_formed(text: &'static str, source_columns: usize) {
        let header = text.lines().find(|line| line.starts_with("#columns\t")).unwrap();
        let width = header.split('\t').count() - 1;
        let sources: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("#source\t")?.split('\t').next()).collect();
        for row in rows(text) {
            assert_eq!(row.len(), width, "{row:?}");
            assert!(row.iter().all(|cell| !cell.is_empty() && cell.trim() == *cell), "{row:?}");
            for cell in &row[width - source_columns..] {
                assert!(list(cell, ',').all(|source| sources.contains(&source)), "{row:?}");
            }
        }
    }

    #[test]
    fn comments_and_blank_lines_are_no_rows() {
        assert_eq!(rows("# a\n\nx\ty\n").collect::<Vec<_>>(), [["x", "y"]]);
        assert_eq!(list("-", ',').count(), 0);
    }
}
