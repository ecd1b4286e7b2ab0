//! Words for quantities, and colours: plurals, durations, sizes, one place for each.

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

/// A time span as its largest unit: `3 days`, `5 minutes`, `now`.
pub fn age(span: std::time::Duration) -> String {
    let seconds = span.as_secs();
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => count(number(seconds / 60), "minute"),
        3600..86_400 => count(number(seconds / 3600), "hour"),
        _ => count(number(seconds / 86_400), "day"),
    }
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
    }
}
