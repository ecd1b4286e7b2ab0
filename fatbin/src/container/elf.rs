//! The tables of an ELF file, host or GPU: header, sections and segments, in both widths.
//!
//! Invariant: little-endian only, as every host with CUDA is; entries that do not lie whole in the file do not exist,
//! and at most `MAX_SECTIONS` are looked at. Meaning of names and types is left to `object.rs` and `cubin/`.

use std::io;

use crate::bytes::{u16_at, u32_at, u64_at, until_nul};
use crate::source::{Source, Span};

pub(crate) const MACHINE_CUDA: u16 = 190;
pub(crate) const NULL: u32 = 0;
pub(crate) const SYMBOLS: u32 = 2;
pub(crate) const NOBITS: u32 = 8;
pub(crate) const FLAG_COMPRESSED: u64 = 0x800;

const SEGMENT_LOAD: u32 = 1;
const INDEX_IN_LINK: u16 = 0xffff;
const MAX_SECTIONS: u64 = 1 << 20;
const MAX_SEGMENTS: u64 = 1 << 16;

pub(crate) struct Elf {
    pub(crate) span: Span,
    pub(crate) abi: u8,
    pub(crate) kind: u16,
    pub(crate) machine: u16,
    pub(crate) version: u32,
    pub(crate) flags: u32,
    wide: bool,
    section_offset: u64,
    section_size: u16,
    section_count: u16,
    names_index: u16,
    segment_offset: u64,
    segment_size: u16,
    segment_count: u16,
}

#[derive(Clone, Copy)]
pub(crate) struct Section {
    pub(crate) name: u32,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    /// Relative to the start of the ELF, unchecked.
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
}

pub(crate) enum Sections {
    /// The header names none.
    Absent,
    /// The header names some, but they are not (all) in the file.
    Outside,
    Table {
        sections: Vec<Section>,
        /// The section names; empty if they cannot be read.
        names: Span,
        /// Whether there were more than are looked at.
        cut: bool,
    },
}

impl Elf {
    /// Reads the header; `None` if it is cut off or not little-endian.
    pub(crate) fn read(source: &mut Source, span: Span) -> io::Result<Option<Self>> {
        let Some(ident) = source.take::<16>(span, 0)? else {
            return Ok(None);
        };
        let wide = match ident[4] {
            1 => false,
            2 => true,
            _ => return Ok(None),
        };
        if !ident.starts_with(b"\x7fELF") || ident[5] != 1 {
            return Ok(None);
        }
        let raw = if wide {
            source.take::<64>(span, 0)?
        } else {
            // The shorter header, moved to the places of the longer one behind the program counter.
            source.take::<52>(span, 0)?.map(|short| {
                let mut raw = [0; 64];
                raw[..24].copy_from_slice(&short[..24]);
                raw[32..36].copy_from_slice(&short[28..32]);
                raw[40..44].copy_from_slice(&short[32..36]);
                raw[48..64].copy_from_slice(&short[36..52]);
                raw
            })
        };
        Ok(raw.map(|raw| Self {
            span,
            abi: raw[8],
            kind: u16_at(&raw, 16),
            machine: u16_at(&raw, 18),
            version: u32_at(&raw, 20),
            flags: u32_at(&raw, 48),
            wide,
            section_offset: u64_at(&raw, 40),
            section_size: u16_at(&raw, 58),
            section_count: u16_at(&raw, 60),
            names_index: u16_at(&raw, 62),
            segment_offset: u64_at(&raw, 32),
            segment_size: u16_at(&raw, 54),
            segment_count: u16_at(&raw, 56),
        }))
    }

    /// 32 or 64.
    pub(crate) fn address_bits(&self) -> u8 {
        if self.wide { 64 } else { 32 }
    }

    /// Reads the section table.
    pub(crate) fn sections(&self, source: &mut Source) -> io::Result<Sections> {
        if self.section_offset == 0 {
            return Ok(Sections::Absent);
        }
        if u64::from(self.section_size) < if self.wide { 64 } else { 40 } {
            return Ok(Sections::Outside);
        }
        // A count or index too large for its field is kept in the first section.
        let Some(first) = self.section(source, 0)? else {
            return Ok(Sections::Outside);
        };
        let count = match self.section_count {
            0 => first.size,
            count => u64::from(count),
        };
        let names_index = match self.names_index {
            INDEX_IN_LINK => first.link,
            index => u32::from(index),
        };
        if count == 0 {
            return Ok(Sections::Absent);
        }
        let mut sections = Vec::new();
        for index in 0..count.min(MAX_SECTIONS) {
            let Some(section) = self.section(source, index)? else {
                return Ok(Sections::Outside);
            };
            sections.push(section);
        }
        let names = usize::try_from(names_index)
            .ok()
            .filter(|&index| index != 0)
            .and_then(|index| sections.get(index))
            .and_then(|section| self.bytes_of(section))
            .unwrap_or(Span { start: self.span.start, end: self.span.start });
        Ok(Sections::Table { sections, names, cut: count > MAX_SECTIONS })
    }

    /// The part of the file that a section covers, cut to what is there; `None` if it has no bytes in the file.
    pub(crate) fn bytes_of(&self, section: &Section) -> Option<Span> {
        if section.kind == NOBITS { None } else { self.span.clip(section.offset, section.size) }
    }

    /// The file ranges that are loaded at run time, cut to what is there.
    pub(crate) fn loaded(&self, source: &mut Source) -> io::Result<Vec<Span>> {
        let mut ranges = Vec::new();
        for index in 0..u64::from(self.segment_count).min(MAX_SEGMENTS) {
            let Some(at) = position(self.segment_offset, index, self.segment_size) else {
                break;
            };
            let (kind, offset, size) = if self.wide {
                let Some(raw) = source.take::<56>(self.span, at)? else {
                    break;
                };
                (u32_at(&raw, 0), u64_at(&raw, 8), u64_at(&raw, 32))
            } else {
                let Some(raw) = source.take::<32>(self.span, at)? else {
                    break;
                };
                (u32_at(&raw, 0), u64::from(u32_at(&raw, 4)), u64::from(u32_at(&raw, 16)))
            };
            if kind == SEGMENT_LOAD {
                ranges.extend(self.span.clip(offset, size));
            }
        }
        Ok(ranges)
    }

    /// Where the last table or section ends, relative to the start: the size of the file without padding.
    pub(crate) fn end(&self, source: &mut Source) -> io::Result<Option<u64>> {
        let Sections::Table { sections, .. } = self.sections(source)? else {
            return Ok(None);
        };
        let tables = [
            position(self.section_offset, sections.len() as u64, self.section_size),
            position(self.segment_offset, u64::from(self.segment_count), self.segment_size),
        ];
        let bodies = sections
            .iter()
            .filter(|section| section.kind != NOBITS && section.kind != NULL)
            .map(|section| section.offset.checked_add(section.size));
        let ends: Option<Vec<u64>> = tables.into_iter().chain(bodies).collect();
        Ok(ends.and_then(|ends| ends.into_iter().max()))
    }

    fn section(&self, source: &mut Source, index: u64) -> io::Result<Option<Section>> {
        let Some(at) = position(self.section_offset, index, self.section_size) else {
            return Ok(None);
        };
        if self.wide {
            let raw = source.take::<64>(self.span, at)?;
            return Ok(raw.map(|raw| Section {
                name: u32_at(&raw, 0),
                kind: u32_at(&raw, 4),
                flags: u64_at(&raw, 8),
                offset: u64_at(&raw, 24),
                size: u64_at(&raw, 32),
                link: u32_at(&raw, 40),
            }));
        }
        let raw = source.take::<40>(self.span, at)?;
        Ok(raw.map(|raw| Section {
            name: u32_at(&raw, 0),
            kind: u32_at(&raw, 4),
            flags: u64::from(u32_at(&raw, 8)),
            offset: u64::from(u32_at(&raw, 16)),
            size: u64::from(u32_at(&raw, 20)),
            link: u32_at(&raw, 24),
        }))
    }
}

/// The start of a section's name, up to 64 bytes, which is more than any name that matters to a listing.
pub(crate) fn short_name(source: &mut Source, names: Span, section: &Section) -> io::Result<Vec<u8>> {
    let Some(name) = names.clip(u64::from(section.name), 64) else {
        return Ok(Vec::new());
    };
    let len = usize::try_from(name.len()).unwrap_or(0);
    Ok(until_nul(source.peek(name.start, len)?).to_vec())
}

fn position(offset: u64, index: u64, size: u16) -> Option<u64> {
    index.checked_mul(u64::from(size))?.checked_add(offset)
}
