//! Little-endian fields out of byte slices; every container read here is little-endian on disk.
//!
//! Invariant: a field that does not lie wholly inside the slice reads as zero instead of panicking. Callers check
//! lengths where a zero would mean something.

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(field(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(field(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(field(bytes, at))
}

/// The bytes before the first NUL, or all of them.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    std::ffi::CStr::from_bytes_until_nul(bytes).map_or(bytes, std::ffi::CStr::to_bytes)
}

/// Text that may not be UTF-8, up to its first NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(until_nul(bytes)).into_owned()
}
