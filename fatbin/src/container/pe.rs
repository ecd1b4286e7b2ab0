//! Windows files: DLLs, programs and object files, which share a header and a section table.
//!
//! Invariant: only the table is trusted for places, and it is cut to the file. Names are cut to 8 bytes by linkers
//! and moved to a string table by compilers; both are understood.

use std::io;
use std::sync::Arc;

use super::object::{Covered, rank};
use crate::bytes::{text, u16_at, u32_at, until_nul};
use crate::collect::Collector;
use crate::diagnostic::Problem;
use crate::entry::FoundBy;
use crate::scan::{self, Fit};
use crate::source::{Source, Span};
use crate::walk;

const MACHINES: [u16; 2] = [0x8664, 0xaa64];
const FILE_HEADER: u64 = 20;
const SECTION: u64 = 40;
const SYMBOL: u64 = 18;
const NAME: usize = 8;

/// Whether this is the header of an object file: a 64-bit machine, sections, and no optional header.
pub(super) fn is_object(start: &[u8]) -> bool {
    start.len() >= 20
        && MACHINES.contains(&u16_at(start, 0))
        && (1..=0x7fff).contains(&u16_at(start, 2))
        && u16_at(start, 16) == 0
}

pub(super) fn list(source: &mut Source, out: &mut Collector, span: Span, scan_all: bool) -> io::Result<()> {
    let Some(header) = file_header(source, span)? else {
        out.report(span.start, Problem::ObjectHeader);
        return Ok(());
    };
    let Some(raw) = source.take::<20>(span, header)? else {
        out.report(span.start, Problem::ObjectHeader);
        return Ok(());
    };
    let strings = u64::from(u32_at(&raw, 8)) + u64::from(u32_at(&raw, 12)) * SYMBOL;
    let table = header + FILE_HEADER + u64::from(u16_at(&raw, 16));
    let mut chosen = Vec::new();
    for index in 0..u64::from(u16_at(&raw, 2)) {
        let Some(raw) = source.take::<40>(span, table + index * SECTION)? else {
            out.report(span.start, Problem::SectionTableOutside);
            break;
        };
        let name = section_name(source, span, &raw, strings)?;
        let rank = rank(&name, NAME);
        if rank.is_some() || scan_all {
            chosen.push((rank.unwrap_or(usize::MAX), text(&name), u32_at(&raw, 20), u32_at(&raw, 16)));
        }
    }
    chosen.sort_by_key(|(rank, ..)| *rank);
    let mut covered = Covered::default();
    for (rank, name, offset, size) in chosen {
        let scanned = rank == usize::MAX;
        let (offset, size) = (u64::from(offset), u64::from(size));
        out.section = Some(Arc::from(name));
        out.found_by = if scanned { FoundBy::Scan } else { FoundBy::Format };
        let bytes = span.clip(offset, size).unwrap_or(Span { start: span.end, end: span.end });
        if bytes.len() < size && !scanned {
            out.report(bytes.start, Problem::SectionTruncated { declared: size, available: bytes.len() });
        }
        if out.full || bytes.len() == 0 {
            continue;
        }
        if !covered.claim(bytes) {
            out.report(bytes.start, Problem::SectionOverlap);
        } else if scanned {
            scan::scan(source, out, bytes, Fit::Whole)?;
        } else {
            walk::walk(source, out, bytes)?;
        }
    }
    Ok(())
}

/// Where the file header is, relative to the file.
fn file_header(source: &mut Source, span: Span) -> io::Result<Option<u64>> {
    let Some(start) = source.take::<64>(span, 0)? else {
        return Ok(source.take::<20>(span, 0)?.filter(|start| is_object(start)).map(|_| 0));
    };
    if is_object(&start) {
        return Ok(Some(0));
    }
    let offset = u64::from(u32_at(&start, 0x3c));
    Ok(source.take::<4>(span, offset)?.filter(|magic| magic == b"PE\0\0").map(|_| offset + 4))
}

fn section_name(source: &mut Source, span: Span, raw: &[u8; 40], strings: u64) -> io::Result<Vec<u8>> {
    let short = until_nul(&raw[..NAME]);
    let offset = short.strip_prefix(b"/").and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
    let long = offset.and_then(|offset| span.clip(strings.checked_add(offset)?, 64));
    let Some(long) = long else {
        return Ok(short.to_vec());
    };
    let len = usize::try_from(long.len()).unwrap_or(0);
    Ok(until_nul(source.peek(long.start, len)?).to_vec())
}
