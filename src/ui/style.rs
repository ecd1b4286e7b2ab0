//! Words for quantities, and colours: plurals, durations, sizes, one place for each.

use std::borrow::Cow;

use crate::recipe::size::ByteSize;

/// `1 file`, `2 files`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Seconds as `0:42` or `1:02:03`.
pub fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Bytes as `1.5 MiB`.
pub fn bytes(number: u64) -> String {
    ByteSize(number).to_string()
}

/// A time span up to now as its largest unit: `3 days ago`, `5 minutes ago`, `just now`.
pub fn age(span: std::time::Duration) -> String {
    let seconds = span.as_secs();
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let ago = |value: u64, unit: &str| format!("{} ago", count(number(value), unit));
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => ago(seconds / 60, "minute"),
        3600..86_400 => ago(seconds / 3600, "hour"),
        _ => ago(seconds / 86_400, "day"),
    }
}

/// `text` broken at blanks so that no line has more than `width` characters; further lines begin with `indent`. A word
/// that is longer stays whole, since paths and commands are there to be copied.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut current = String::new();
        for word in line.split_inclusive(' ') {
            let full = current.chars().count() + word.trim_end().chars().count() > width;
            if full && !current.trim().is_empty() {
                lines.push(current.trim_end().to_owned());
                indent.clone_into(&mut current);
            }
            current.push_str(word);
        }
        lines.push(current.trim_end().to_owned());
    }
    lines.join("\n")
}

/// Rows as columns, two blanks apart; trailing blanks are left out.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// `text` with its control characters made visible, so that what a build prints cannot move a cursor, ring a bell or
/// set a title. Line ends and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    };
    Cow::Owned(text.chars().map(|c| if odd(c) { picture(c) } else { c }).collect())
}

/// Paints `text` where `color` is on.
pub fn paint(text: &str, ansi: &str, color: bool) -> String {
    if color { format!("\u{1b}[{ansi}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Bold green.
pub const GOOD: &str = "1;32";
/// Bold yellow.
pub const WARN: &str = "1;33";
/// Cyan.
pub const PLAIN: &str = "36";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_well() {
        assert_eq!((count(1, "file"), count(0, "file")), ("1 file".into(), "0 files".into()));
        assert_eq!((clock(42), clock(3723)), ("0:42".into(), "1:02:03".into()));
        assert_eq!(bytes(3 << 19), "1.5 MiB");
        let ages = [5, 60, 7200, 86_400 * 3].map(|seconds| age(std::time::Duration::from_secs(seconds)));
        assert_eq!(ages, ["just now", "1 minute ago", "2 hours ago", "3 days ago"]);
    }

    #[test]
    fn long_text_breaks_at_blanks_and_words_stay_whole() {
        assert_eq!(wrap("one two three", 8, "  "), "one two\n  three");
        assert_eq!(wrap("short", 8, ""), "short");
        assert_eq!(wrap("a-very-long-word b", 5, ""), "a-very-long-word\nb");
        assert_eq!(wrap("  keeps  its blanks\n\nand lines", 40, ""), "  keeps  its blanks\n\nand lines");
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(visible("a\tb\nc é"), "a\tb\nc é");
        assert_eq!(visible("\u{1b}[2J\u{7}\u{9b}x\u{7f}\r"), "␛[2J␇\u{fffd}x␡␍");
    }
}
