//! Lines of a log around one of them, numbered, the one that matters marked.
//!
//! For whoever shows where a build went wrong. Pure, and in bounded memory however long the log or a line of it is.

use std::fmt;

/// Lines shown before and after.
pub const AROUND: usize = 5;
/// Characters shown of the marked line.
const WIDE: usize = 1000;
/// Characters shown of the others; command lines of compilers are long, and their begin tells enough.
const NARROW: usize = 160;

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the first line shown, counted from 1.
    pub first: usize,
    /// Number of the marked line.
    pub marked: usize,
    /// The lines, cut where they are long.
    pub lines: Vec<String>,
}

impl Excerpt {
    /// The lines around line number `marked`, from line number `from` on; nothing where the log has no such line.
    pub fn around<S: AsRef<str>>(lines: impl IntoIterator<Item = S>, from: usize, marked: usize) -> Option<Self> {
        let first = marked.saturating_sub(AROUND).max(from).max(1);
        let shown = lines.into_iter().enumerate().skip(first - 1).take((marked + AROUND + 1).saturating_sub(first));
        let cut = |(index, line): (usize, S)| cut(line.as_ref(), if index + 1 == marked { WIDE } else { NARROW });
        let lines: Vec<String> = shown.map(cut).collect();
        (first + lines.len() > marked && first <= marked).then_some(Self { first, marked, lines })
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = (self.first + self.lines.len()).to_string().len();
        for (index, line) in self.lines.iter().enumerate() {
            let number = self.first + index;
            let mark = if number == self.marked { '>' } else { ' ' };
            let end = if index + 1 == self.lines.len() { "" } else { "\n" };
            write!(f, "{}{end}", format!("{mark} {number:>width$} | {line}").trim_end())?;
        }
        Ok(())
    }
}

fn cut(line: &str, most: usize) -> String {
    let mut letters = line.chars();
    let kept: String = letters.by_ref().take(most).collect();
    if letters.next().is_some() { format!("{kept}…") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_stand_around_the_marked_one() {
        let log: Vec<String> = (1..=30).map(|n| format!("line {n}")).collect();
        let excerpt = Excerpt::around(&log, 1, 9).unwrap();
        assert_eq!((excerpt.first, excerpt.lines.len()), (4, 11));
        let text = excerpt.to_string();
        assert!(text.starts_with("   4 | line 4\n") && text.ends_with("\n  14 | line 14"), "{text}");
        assert!(text.contains("\n>  9 | line 9\n"), "{text}");
    }

    #[test]
    fn the_ends_of_a_log_and_long_lines_are_fine() {
        assert_eq!(Excerpt::around(["a", "b"], 1, 1).unwrap().to_string(), "> 1 | a\n  2 | b");
        assert_eq!(Excerpt::around(["a", "b"], 2, 2).unwrap().lines, ["b"]);
        assert_eq!(Excerpt::around(["a", "b"], 1, 3), None);
        assert_eq!(Excerpt::around(["a"], 0, 0), None);
        let long = "é".repeat(5000);
        let excerpt = Excerpt::around([long.as_str(), &long], 1, 2).unwrap();
        assert_eq!(excerpt.lines.iter().map(|line| line.chars().count()).collect::<Vec<_>>(), [NARROW + 1, WIDE + 1]);
    }
}
