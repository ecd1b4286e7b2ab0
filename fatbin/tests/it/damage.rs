//! Every vector cut at every 64th byte and with bits flipped: an answer always comes, soon, and the good part is in it.
//!
//! Flips come from a fixed seed, so a failure names the vector and the round to repeat.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use fatbin::{Extractor, Limits, Listing, Options, ReadAt};

use crate::support::{expected, vector};

/// Bytes that count what is read of them: a measure of work that no other process can disturb.
struct Counted<'a> {
    bytes: &'a [u8],
    read: AtomicU64,
}

impl ReadAt for Counted<'_> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read_at(offset, buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Lists and reads deep whatever the bytes hold; the listing, if they have a known format.
fn exercise(bytes: &[u8]) -> Option<Listing> {
    let counted = Counted { bytes, read: AtomicU64::new(0) };
    let listing = fatbin::list(&counted, &Options::default().scan_all(true)).ok()?;
    let read = counted.read.load(Ordering::Relaxed);
    assert!(read <= 8 * bytes.len() as u64 + 65_536, "listing {} bytes read {read}", bytes.len());
    let limits = Limits::default().max_payload(16 << 20);
    let mut extractor = Extractor::new(bytes, limits);
    for entry in &listing.entries {
        // Errors are as good as answers here.
        let _ = extractor.inspect(entry);
        if let Ok(image) = extractor.bytes(entry) {
            assert!(image.len() <= 16 << 20);
        }
    }
    Some(listing)
}

/// A small generator of repeatable numbers (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("below a usize")
    }
}

#[test]
fn truncated_files_give_entries_of_the_whole_file_or_fewer() {
    for name in expected().keys() {
        let whole = vector(name);
        let all = exercise(&whole).expect("a known format").entries.len();
        for end in (0..whole.len()).step_by(64) {
            let Some(listing) = exercise(&whole[..end]) else {
                continue;
            };
            assert!(listing.entries.len() <= all, "{name} cut at {end}");
            // An object may lose all of its code with the section table; it then says so.
            assert!(listing.entries.len() == all || !listing.complete, "{name} cut at {end}");
        }
    }
}

#[test]
fn files_with_flipped_bits_give_an_answer() {
    for name in expected().keys() {
        let whole = vector(name);
        let mut numbers = Numbers(0x5eed_0001 + name.len() as u64);
        for _ in 0..200 {
            let mut bytes = whole.clone();
            for _ in 0..=numbers.below(8) {
                let at = numbers.below(bytes.len());
                bytes[at] ^= 1 << numbers.below(8);
            }
            exercise(&bytes);
        }
    }
}

#[test]
fn files_with_extreme_fields_give_an_answer() {
    for name in expected().keys() {
        let whole = vector(name);
        let mut numbers = Numbers(0x5eed_0002 + name.len() as u64);
        for _ in 0..200 {
            let mut bytes = whole.clone();
            let width = [2, 4, 8][numbers.below(3)];
            let at = numbers.below(bytes.len() / width) * width;
            let value = [0, 1, u64::MAX, 1 << 63, 0x7fff_ffff, 64, 0xffff_fff8][numbers.below(7)];
            bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            exercise(&bytes);
        }
    }
}

#[test]
fn headers_with_every_byte_changed_give_an_answer() {
    // Container, fatbin and entry headers decide everything, so they get more than their random share.
    for name in ["v17_a.fatbin", "v18_sm90a.cubin", "v20_abi7_sm90a.cubin", "v11_lineinfo_name8.o", "v16_lib.a"] {
        let whole = vector(name);
        let headers = whole.windows(4).position(|bytes| bytes == [0x50, 0xed, 0x55, 0xba]).unwrap_or(0);
        for at in (0..160).chain(headers..headers + 160) {
            for value in [0, 0xff, whole[at] ^ 0x80, whole[at].wrapping_add(1)] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                exercise(&bytes);
            }
        }
    }
}
