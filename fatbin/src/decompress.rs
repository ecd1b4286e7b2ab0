//! Unpacks one payload to exactly the size its header declares.
//!
//! Invariant: no more is allocated than the packed bytes can honestly need, and anything but the declared size is an
//! error. Whether the declared size is acceptable was decided before, in `extract.rs`.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

use crate::entry::Compression;
use crate::error::ExtractError;

/// An LZ4 block grows by less than this factor, so a larger claim is false.
const LZ4_MAX_RATIO: u64 = 255;

/// More than any window that NVIDIA's tools use (8 MiB).
const MIN_WINDOW_LIMIT: u64 = 128 << 20;

pub(crate) fn unpack(packed: &[u8], compression: Compression, size: u64) -> Result<Vec<u8>, ExtractError> {
    match compression {
        Compression::Lz4 => lz4(packed, size),
        Compression::Zstd => zstd(packed, size),
        Compression::Unknown(bits) => Err(ExtractError::UnknownCompression { bits }),
        Compression::None | Compression::Inherited => Ok(packed.to_vec()),
    }
}

fn lz4(packed: &[u8], size: u64) -> Result<Vec<u8>, ExtractError> {
    if size / LZ4_MAX_RATIO > packed.len() as u64 {
        return Err(corrupt("the declared size is beyond what LZ4 can reach"));
    }
    let mut unpacked = vec![0; usize::try_from(size).map_err(|_| corrupt("the size is beyond this machine"))?];
    let count = lz4_flex::block::decompress_into(packed, &mut unpacked).map_err(|error| corrupt(&error.to_string()))?;
    exactly(count as u64, size)?;
    Ok(unpacked)
}

fn zstd(packed: &[u8], size: u64) -> Result<Vec<u8>, ExtractError> {
    // A frame of one segment has a window as large as its content.
    let window = MIN_WINDOW_LIMIT.max(size);
    let mut rest = packed;
    let mut unpacked = Vec::new();
    let decoder = StreamingDecoder::new_with_max_window_size(&mut rest, window);
    decoder
        .map_err(|error| corrupt(&error.to_string()))?
        .take(size.saturating_add(1))
        .read_to_end(&mut unpacked)
        .map_err(|error| corrupt(&error.to_string()))?;
    exactly(unpacked.len() as u64, size)?;
    if !rest.is_empty() {
        return Err(corrupt("bytes follow the zstd frame"));
    }
    Ok(unpacked)
}

fn exactly(found: u64, declared: u64) -> Result<(), ExtractError> {
    if found == declared { Ok(()) } else { Err(corrupt("it unpacks to another size than declared")) }
}

fn corrupt(reason: &str) -> ExtractError {
    ExtractError::Corrupt { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Compression, unpack};

    #[test]
    fn an_lz4_block_unpacks_to_its_declared_size_only() {
        // Four literals, then a match of 8 at distance 4, then one last literal.
        let block = [0x44, b'a', b'b', b'c', b'd', 4, 0, 0x10, b'!'];
        assert_eq!(unpack(&block, Compression::Lz4, 13).unwrap(), b"abcdabcdabcd!");
        assert!(unpack(&block, Compression::Lz4, 12).is_err());
        assert!(unpack(&block, Compression::Lz4, 14).is_err());
    }

    #[test]
    fn lz4_distances_of_zero_or_before_the_start_are_errors() {
        for distance in [0, 5] {
            let block = [0x44, b'a', b'b', b'c', b'd', distance, 0, 0x10, b'!'];
            assert!(unpack(&block, Compression::Lz4, 13).is_err(), "{distance}");
        }
    }

    #[test]
    fn a_claim_that_lz4_cannot_reach_is_refused_before_allocating() {
        assert!(unpack(&[0; 16], Compression::Lz4, u64::MAX).is_err());
    }

    #[test]
    fn a_zstd_run_longer_than_declared_stops_at_the_declared_size() {
        // One segment, content size 4 GiB - 1, one block of 2 MiB that repeats a byte: 131,072 at most are legal.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0xff, 0xff, 0xff, 0xff, 0x03, 0x00, 0x10, b'x'];
        assert!(unpack(&frame, Compression::Zstd, 100).is_err());
    }
}
