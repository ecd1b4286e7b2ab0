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

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    /// Content like a cubin's: names in front, much that is new in the middle, and an end that repeats pieces of all.
    fn content(seed: u64, size: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % bound as u64).unwrap()
        };
        let mut content = Vec::with_capacity(size);
        while content.len() < size {
            let fresh = content.len() < 64 || content.len() < size * 3 / 4 && below(3) > 0;
            if fresh {
                let letters = if below(2) == 0 { 256 } else { 7 };
                content.extend((0..=below(200)).map(|_| below(letters) as u8));
            } else if below(8) == 0 {
                content.resize(content.len() + below(5000), below(3) as u8);
            } else {
                let from = below(content.len());
                let end = (from + 3 + below(300)).min(content.len());
                content.extend_from_within(from..end);
            }
        }
        content.truncate(size);
        content
    }

    /// A frame without a checksum, which the encoder adds where its features say so.
    fn plain(content: &[u8], level: CompressionLevel) -> Vec<u8> {
        let mut frame = compress_to_vec(content, level);
        if frame[4] & 4 != 0 {
            frame.truncate(frame.len() - 4);
            frame[4] &= !4;
        }
        frame
    }

    fn lazy(frame: &[u8], size: usize) -> Option<Lazy<'_>> {
        Lazy::new(frame, size as u64, Scratch::default())
    }

    #[test]
    fn parts_equal_the_whole_in_whatever_order_they_are_read() {
        for (seed, size) in [(1, 100), (2, 70_000), (3, 300_000), (4, 500_003)] {
            let whole = content(seed, size);
            for level in [CompressionLevel::Fastest, CompressionLevel::Uncompressed] {
                let plain = plain(&whole, level);
                for order in [[0, 9, 5, 1], [9, 8, 7, 0], [5, 9, 0, 3], [9, 0, 9, 2]] {
                    let lazy = lazy(&plain, size).expect("a usual frame");
                    for tenth in order {
                        let at = size * tenth / 10;
                        let mut part = vec![0; (size - at).min(40_000)];
                        assert_eq!(lazy.read_at(at as u64, &mut part).unwrap(), part.len());
                        assert_eq!(part, whole[at..at + part.len()], "{seed}, {tenth} of {order:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_frame_that_is_not_sound_gives_an_error_or_bytes_and_ends() {
        let whole = content(7, 200_000);
        let plain = plain(&whole, CompressionLevel::Fastest);
        for flip in (0..plain.len() * 8).step_by(9973) {
            let mut bad = plain.clone();
            bad[flip / 8] ^= 1 << (flip % 8);
            let Some(lazy) = lazy(&bad, whole.len()) else { continue };
            for at in [0, 190_000, 100_000] {
                let _ = lazy.read_at(at, &mut [0; 9000]);
            }
        }
        for (size, cut) in [(whole.len() - 1, 0), (whole.len() + 1, 0), (whole.len(), 1)] {
            let read = lazy(&plain[..plain.len() - cut], size).map(|lazy| lazy.read_at(0, &mut vec![0; size]));
            assert!(read.is_none_or(|read| read.is_err()), "{size} {cut}");
        }
    }
}
