//! Reads a piece of a build's log, however large the log is and whatever bytes it holds.

use std::io::{BufRead, BufReader};

use camino::Utf8Path;

use crate::report::Excerpt;

/// Bytes kept of a line; enough for every character that is shown.
const KEPT: usize = 1 << 13;

/// The lines around line number `line`, without the first `head` lines, which are ours; nothing where the log cannot be
/// read or is shorter.
pub fn around(log: &Utf8Path, head: usize, line: usize) -> Option<Excerpt> {
    Excerpt::around(Lines(BufReader::new(fs_err::File::open(log).ok()?)), head + 1, line)
}

struct Lines<R>(R);

impl<R: BufRead> Iterator for Lines<R> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let (mut line, mut any) = (Vec::new(), false);
        loop {
            let piece = self.0.fill_buf().ok()?;
            if piece.is_empty() {
                break;
            }
            any = true;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            line.extend_from_slice(&part[..part.len().min(KEPT - line.len())]);
            let used = part.len() + usize::from(end.is_some());
            self.0.consume(used);
            if end.is_some() {
                break;
            }
        }
        let text = || String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned();
        any.then(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_cut_and_whatever_their_bytes() {
        let text = [b"a\r\n\n".as_slice(), &[0xff, b'\n'], &vec![b'x'; 3 << 13], b"\nend"].concat();
        let lines: Vec<String> = Lines(BufReader::with_capacity(7, text.as_slice())).collect();
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [1, 0, 3, KEPT, 3]);
        assert_eq!(around(Utf8Path::new("/nonexistent"), 0, 1), None);
    }
}
