//! Reads parts of a zstd frame without unpacking the rest of it.
//!
//! A cubin's tables stand at its two ends and are a small part of it; the code between them is most of the work of
//! unpacking and says nothing that a deep read asks for. So the front is put together as far as it is read. The end is
//! reached from behind: how much content a block has is measured without making any, and what the end copies from the
//! middle is followed to where its bytes are known.
//!
//! Invariant: what is read of a sound frame equals what a whole unpacking gives; where that is not possible at a cost
//! and in memory bounded by the declared content, the read fails and the caller unpacks the whole. Parts that nobody
//! asks for are not checked.

#![expect(clippy::inline_always, reason = "measured: the loops over bits are twice as slow with calls in them")]
#![expect(clippy::cast_possible_truncation, reason = "values are bits of a known count; sizes are below 4 GiB")]

mod bits;
mod block;
mod fse;
mod huffman;
mod known;
mod parts;
mod sequences;

use std::cell::RefCell;
use std::io;

use self::parts::Parts;
use crate::reader::ReadAt;

/// How far ahead of what is put together a read may be to be reached by going on from there.
const STRIDE: usize = 64 << 10;

/// A frame's content, put together where it is read.
pub(crate) struct Lazy<'a> {
    size: usize,
    parts: RefCell<Parts<'a>>,
}

impl<'a> Lazy<'a> {
    /// Takes a frame apart; `None` if it is not one of the usual kind with `size` bytes of content.
    pub(crate) fn new(bytes: &'a [u8], size: u64, scratch: Scratch) -> Option<Self> {
        let blocks = block::cut(bytes, size)?;
        let size = usize::try_from(u32::try_from(size).ok()?).ok()?;
        Some(Self { size, parts: RefCell::new(Parts::new(bytes, size, blocks, scratch)) })
    }

    /// Gives the memory back for the next frame.
    pub(crate) fn scratch(self) -> Scratch {
        self.parts.into_inner().scratch()
    }
}

/// Memory that is used again from frame to frame.
#[derive(Default)]
pub(crate) struct Scratch {
    content: Vec<u8>,
    known: known::Known,
    literals: Vec<u8>,
    raw: Vec<sequences::Raw>,
    tables: [block::Tables; 2],
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Scratch").field("content", &self.content.len()).finish_non_exhaustive()
    }
}

impl ReadAt for Lazy<'_> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let Some(at) = usize::try_from(offset).ok().filter(|at| *at < self.size) else { return Ok(0) };
        let length = buffer.len().min(self.size - at);
        let mut parts = self.parts.try_borrow_mut().map_err(|_| broken())?;
        buffer[..length].copy_from_slice(parts.read(at, at + length).ok_or_else(broken)?);
        Ok(length)
    }
}
