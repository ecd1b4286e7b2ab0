//! Reads a cubin out of a zstd frame in parts and as a whole. `cargo fuzz run parts fuzz/corpus/parts`.
//!
//! The first byte says what follows: a frame behind its size in three bytes, or content that is packed here. Wherever
//! the whole unpacks, the parts must say the same.
#![no_main]

use fatbin::{Extractor, Limits, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, rest)) = bytes.split_first() else { return };
    let (frame, size) = if how == 0 {
        let Some((size, frame)) = rest.split_first_chunk::<3>() else { return };
        (frame.to_vec(), u64::from(u32::from_le_bytes([size[0], size[1], size[2], 0])))
    } else {
        // Content of one block is no test of copies between blocks.
        let content: Vec<u8> = rest.iter().copied().cycle().take(rest.len() * (1 + usize::from(how >> 5))).collect();
        let Ok(frame) = zstd::bulk::compress(&content, i32::from(how & 31) % 12) else { return };
        (frame, content.len() as u64)
    };
    let file = file(&frame, size);
    let Ok(listing) = fatbin::list(&file, &Options::default()) else { return };
    let Some(entry) = listing.entries.first() else { return };
    let limits = Limits::default().max_payload(16 << 20);
    let in_parts = Extractor::new(&file, limits).inspect(entry);
    let Ok(whole) = Extractor::new(&file, limits).bytes(entry) else { return };
    let Some(bare) = fatbin::list(&whole, &Options::default()).ok().filter(|bare| bare.entries.len() == 1) else {
        return;
    };
    let of_whole = Extractor::new(&whole, limits).inspect(&bare.entries[0]);
    if let Ok(of_whole) = of_whole {
        assert_eq!(in_parts.map(|inspection| inspection.contents).ok(), Some(of_whole.contents));
    }
});

/// A fatbin with one entry for `sm_90`.
fn file(frame: &[u8], size: u64) -> Vec<u8> {
    let stored = frame.len().next_multiple_of(8);
    let mut entry = vec![0; 64];
    let mut put = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[2, 0, 1, 1, 64]);
    put(8, &(stored as u64).to_le_bytes());
    put(16, &(frame.len() as u32).to_le_bytes());
    put(24, &[8, 0, 1, 0, 90]);
    put(40, &0x8011_u64.to_le_bytes());
    put(56, &size.to_le_bytes());
    let mut file = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    file.extend(((64 + stored) as u64).to_le_bytes());
    file.extend(entry);
    file.extend(frame);
    file.resize(16 + 64 + stored, 0);
    file
}
