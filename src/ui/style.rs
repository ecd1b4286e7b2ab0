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
