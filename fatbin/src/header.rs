//! The fixed 64 bytes that describe an image, and the texts that may follow them.
//!
//! Invariant: decoding is total, any 64 bytes give a header; whether it makes sense is for `walk.rs` to judge.

use std::io;

use crate::arch::{Arch, Suffix};
use crate::bytes::{text, u16_at, u32_at, u64_at};
use crate::collect::Collector;
use crate::diagnostic::Problem;
use crate::entry::{CodeVersion, Compression, Entry, Host, Image, Kind, Payload};
use crate::source::{Source, Span};

pub(crate) const HEADER_SIZE: u64 = 64;

const FLAG_64_BIT: u64 = 0x1;
const FLAG_DEBUG: u64 = 0x2;
const FLAG_LINUX: u64 = 0x10;
const FLAG_MAC: u64 = 0x20;
const FLAG_WINDOWS: u64 = 0x40;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const MASK_COMPRESSED: u64 = 0xf000;
const FLAG_SUFFIX_A: u64 = 0x10_0000;
const FLAG_SUFFIX_F: u64 = 0x20_0000;
const FLAG_COMPAT: u64 = 0x100_0000;

/// The longest name or options text that is kept; real ones are paths and flags.
const MAX_TEXT: u64 = 64 << 10;

pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// Size of header and texts; in a record of a concatenated entry, the image's offset in the blob.
    pub(crate) size_or_offset: u32,
    pub(crate) payload_size: u64,
    pub(crate) options_offset: u32,
    compressed_size: u32,
    code_version: CodeVersion,
    arch: u32,
    name_offset: u32,
    name_length: u32,
    flags: u64,
    uncompressed_size: u64,
}

/// The texts behind a header, and the size up to where they reach.
#[derive(Default)]
pub(crate) struct Tail {
    identifier: Option<String>,
    options: Option<String>,
    compat: Option<Vec<u8>>,
    /// 64 or more, a multiple of 8; what a record of a concatenated entry occupies.
    pub(crate) size: u64,
}

impl Header {
    pub(crate) fn decode(raw: &[u8; 64]) -> Self {
        Self {
            kind: Kind::from_code(u16_at(raw, 0x00)),
            size_or_offset: u32_at(raw, 0x04),
            payload_size: u64_at(raw, 0x08),
            compressed_size: u32_at(raw, 0x10),
            options_offset: u32_at(raw, 0x14),
            code_version: CodeVersion { minor: u16_at(raw, 0x18), major: u16_at(raw, 0x1a) },
            arch: u32_at(raw, 0x1c),
            name_offset: u32_at(raw, 0x20),
            name_length: u32_at(raw, 0x24),
            flags: u64_at(raw, 0x28),
            uncompressed_size: u64_at(raw, 0x38),
        }
    }

    /// Reads the texts behind this header. `span` starts at the header and ends where its texts must.
    pub(crate) fn tail(&self, source: &mut Source, out: &mut Collector, span: Span) -> io::Result<Tail> {
        let mut tail = Tail { size: HEADER_SIZE, ..Tail::default() };
        let mut whole = true;
        let mut reach = |offset: u32, skip: u64, length: u32| {
            let end = u64::from(offset) + u64::from(length);
            tail.size = tail.size.max((end + 1).next_multiple_of(8));
            let inside = u64::from(offset) >= HEADER_SIZE && end + skip <= span.len();
            whole &= inside;
            span.clip(u64::from(offset) + skip, u64::from(length).min(MAX_TEXT))
        };
        if self.name_length != 0
            && let Some(name) = reach(self.name_offset, 0, self.name_length)
        {
            tail.identifier = Some(text(&bytes_of(source, name)?));
        }
        // A concatenated entry keeps its table where others keep their options.
        if self.options_offset != 0 && self.kind != Kind::Concatenated {
            if let Some(block) = source.take::<8>(span, u64::from(self.options_offset))? {
                let (offset, length) = (u32_at(&block, 0), u32_at(&block, 4));
                if self.flags & FLAG_COMPAT != 0 && self.kind == Kind::Elf {
                    // One empty text stands before the copy.
                    if let Some(copy) = reach(offset, 1, length) {
                        tail.compat = Some(bytes_of(source, copy)?);
                    }
                } else if let Some(options) = reach(offset, 0, length) {
                    tail.options = Some(text(&bytes_of(source, options)?));
                }
            } else {
                whole = false;
            }
        }
        if !whole {
            out.report(span.start, Problem::TextOutsideHeader);
        }
        Ok(tail)
    }

    pub(crate) fn payload(&self, offset: u64) -> Payload {
        Payload {
            offset,
            stored_size: self.payload_size,
            compressed_size: self.compressed_size,
            uncompressed_size: self.uncompressed_size,
            compression: self.compression(),
        }
    }

    fn compression(&self) -> Compression {
        match self.flags & MASK_COMPRESSED {
            0 => Compression::None,
            FLAG_LZ4 => Compression::Lz4,
            FLAG_ZSTD => Compression::Zstd,
            bits => Compression::Unknown(u16::try_from(bits).unwrap_or(u16::MAX)),
        }
    }

    fn arch(&self) -> Arch {
        let suffix = match self.flags {
            flags if flags & FLAG_SUFFIX_A != 0 => Suffix::A,
            flags if flags & FLAG_SUFFIX_F != 0 => Suffix::F,
            _ => Suffix::None,
        };
        Arch::new(self.arch, suffix)
    }

    fn host(&self) -> Host {
        match self.flags {
            flags if flags & FLAG_LINUX != 0 => Host::Linux,
            flags if flags & FLAG_MAC != 0 => Host::Mac,
            flags if flags & FLAG_WINDOWS != 0 => Host::Windows,
            _ => Host::Unknown,
        }
    }

    /// The entry for this header; `image` is set for a record of a concatenated entry.
    pub(crate) fn entry(
        &self,
        out: &Collector,
        (fatbin, offset): (u64, u64),
        tail: Tail,
        payload: Payload,
        image: Option<Image>,
    ) -> Entry {
        Entry {
            member: out.member.clone(),
            section: out.section.clone(),
            found_by: out.found_by,
            fatbin: Some(fatbin),
            offset,
            kind: self.kind,
            arch: self.arch(),
            code_version: self.code_version,
            compression: if image.is_some() { Compression::Inherited } else { payload.compression },
            payload,
            image,
            identifier: tail.identifier,
            options: tail.options,
            compat: tail.compat,
            debug: self.flags & FLAG_DEBUG != 0,
            host: self.host(),
            address_bits: if self.flags & FLAG_64_BIT != 0 { 64 } else { 32 },
            flags: self.flags,
            truncated: false,
        }
    }
}

fn bytes_of(source: &mut Source, span: Span) -> io::Result<Vec<u8>> {
    let len = usize::try_from(span.len()).unwrap_or(usize::MAX);
    Ok(source.peek(span.start, len)?.to_vec())
}
