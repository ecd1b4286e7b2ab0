//! Finds fatbins by their magic number where no table says where they are.
//!
//! Invariant: each byte is looked at once, and a hit counts only with a sane fatbin header and first entry, because the
//! four magic bytes also occur in the code and data of tools that handle fatbins.

use std::io;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::collect::Collector;
use crate::source::{Source, Span};
use crate::walk;

const MAGIC: [u8; 4] = [0x50, 0xed, 0x55, 0xba];

/// Fatbin header and first entry header.
const LEAST: usize = 16 + 64;

/// Whether a hit must lie wholly in the range that is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    Whole,
    /// Where the file is known to be cut, or the place alone is good evidence.
    MayBeCut,
}

/// Lists all fatbins in `span`, whatever lies between them.
pub(crate) fn scan(source: &mut Source, out: &mut Collector, span: Span, fit: Fit) -> io::Result<()> {
    let mut at = span.start;
    while let Some(found) = find(source, at, span.end, fit)? {
        match walk::fatbin(source, out, Span { start: found, end: span.end })? {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(())
}

/// The first believable fatbin at or behind `at`.
pub(crate) fn find(source: &mut Source, mut at: u64, end: u64, fit: Fit) -> io::Result<Option<u64>> {
    while at < end && end - at >= LEAST as u64 {
        let window = source.window(at, MAGIC.len())?;
        let Some(last) = window.len().checked_sub(MAGIC.len()) else {
            break;
        };
        match window.windows(MAGIC.len()).position(|bytes| bytes == MAGIC) {
            Some(skip) => {
                at += skip as u64;
                if believable(source, at, end, fit)? {
                    return Ok(Some(at));
                }
                at += 1;
            }
            None => at += last as u64 + 1,
        }
    }
    Ok(None)
}

fn believable(source: &mut Source, at: u64, end: u64, fit: Fit) -> io::Result<bool> {
    if at >= end {
        return Ok(false);
    }
    let span = Span { start: at, end };
    let Some(raw) = source.take::<LEAST>(span, 0)? else {
        return Ok(false);
    };
    let room = span.len() - 16;
    Ok(u16_at(&raw, 4) == 1
        && u16_at(&raw, 6) == 16
        && (fit == Fit::MayBeCut || u64_at(&raw, 8) <= room)
        && u16_at(&raw, 16 + 2) == 0x0101
        && (64..=4096).contains(&u32_at(&raw, 16 + 4)))
}
