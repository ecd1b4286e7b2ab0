//! A buffered, bounds-checked view of a [`ReadAt`], and the spans of it that hold one object each.
//!
//! Invariant: bytes reach the parsers only through here; a span never leaves the file, and no allocation exceeds the
//! part of the file asked for. The buffer is small because a listing hops from header to header.

use std::io;

use crate::reader::ReadAt;

/// Enough for a few headers, and one page for the operating system.
const HEADER_CHUNK: usize = 4 << 10;

/// Used where bytes are looked at one after the other.
const SCAN_CHUNK: usize = 64 << 10;

/// A range of file offsets, `start <= end <= size of the file`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Span {
    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }

    /// The part at `offset` (relative to this span), cut to what is there; `None` if it starts outside.
    pub(crate) fn clip(self, offset: u64, size: u64) -> Option<Span> {
        let left = self.len().checked_sub(offset)?;
        let start = self.start + offset;
        Some(Span { start, end: start + left.min(size) })
    }
}

pub(crate) struct Source<'r> {
    reader: &'r dyn ReadAt,
    size: u64,
    chunk: Vec<u8>,
    chunk_start: u64,
}

impl<'r> Source<'r> {
    pub(crate) fn new(reader: &'r dyn ReadAt) -> io::Result<Self> {
        Ok(Self { reader, size: reader.size()?, chunk: Vec::new(), chunk_start: 0 })
    }

    /// All of the file.
    pub(crate) fn whole(&self) -> Span {
        Span { start: 0, end: self.size }
    }

    /// Up to `len` bytes at `offset`; fewer only where the file ends.
    pub(crate) fn peek(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        if self.buffered(offset).len() < len {
            self.refill(offset, len.max(HEADER_CHUNK))?;
        }
        let have = self.buffered(offset);
        Ok(&have[..have.len().min(len)])
    }

    /// A long run of bytes at `offset`, at least `least` of them unless the file ends before.
    ///
    /// What is buffered is used up first, so stepping through a region reads each byte once however short the steps.
    pub(crate) fn window(&mut self, offset: u64, least: usize) -> io::Result<&[u8]> {
        if self.buffered(offset).len() < least {
            self.refill(offset, SCAN_CHUNK)?;
        }
        Ok(self.buffered(offset))
    }

    /// Exactly `N` bytes at `offset` in `span`; `None` if they are not all there.
    pub(crate) fn take<const N: usize>(&mut self, span: Span, offset: u64) -> io::Result<Option<[u8; N]>> {
        match span.clip(offset, N as u64) {
            Some(part) if part.len() == N as u64 => Ok(self.peek(part.start, N)?.first_chunk().copied()),
            _ => Ok(None),
        }
    }

    /// All bytes of `span`, past the buffer; fewer if the reader ends early.
    pub(crate) fn read(&self, span: Span) -> io::Result<Vec<u8>> {
        let len = usize::try_from(span.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(len, 0);
        let count = read_full(self.reader, span.start, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    fn buffered(&self, offset: u64) -> &[u8] {
        offset
            .checked_sub(self.chunk_start)
            .and_then(|skip| usize::try_from(skip).ok())
            .and_then(|skip| self.chunk.get(skip..))
            .unwrap_or_default()
    }

    fn refill(&mut self, offset: u64, len: usize) -> io::Result<()> {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.chunk.clear();
        self.chunk.resize(len.min(left), 0);
        self.chunk_start = offset;
        let count = read_full(self.reader, offset, &mut self.chunk)?;
        self.chunk.truncate(count);
        Ok(())
    }
}

fn read_full(reader: &dyn ReadAt, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match reader.read_at(offset + done as u64, &mut buffer[done..]) {
            Ok(0) => break,
            // A reader that claims more than the buffer holds is wrong; believing it would panic.
            Ok(count) => done += count.min(buffer.len() - done),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::{Source, Span};

    #[test]
    fn a_clip_never_leaves_its_span_however_large_the_request() {
        let span = Span { start: 10, end: 20 };
        assert_eq!(span.clip(4, u64::MAX), Some(Span { start: 14, end: 20 }));
        assert_eq!(span.clip(10, 1), Some(Span { start: 20, end: 20 }));
        assert_eq!(span.clip(11, 0), None);
        assert_eq!(span.clip(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn peeking_backwards_and_across_the_end_gives_what_is_there() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let mut source = Source::new(&bytes).unwrap();
        assert_eq!(source.peek(9_990, 100).unwrap(), &bytes[9_990..]);
        assert_eq!(source.peek(5, 10).unwrap(), &bytes[5..15]);
        assert!(source.peek(10_000, 1).unwrap().is_empty());
        assert!(source.peek(u64::MAX, 1).unwrap().is_empty());
    }
}
