//! Walks fatbins standing back to back, entry by entry.
//!
//! Invariant: every step goes forward by at least one header, sizes are compared with what remains and never added
//! to a position first, and nothing behind a header is read but its texts.

use std::io;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::collect::Collector;
use crate::diagnostic::Problem;
use crate::entry::{Compression, Image, Kind, Payload};
use crate::header::{HEADER_SIZE, Header};
use crate::scan::{self, Fit};
use crate::source::{Source, Span};

pub(crate) const MAGIC: u32 = 0xba55_ed50;
const FATBIN_HEADER: u64 = 16;

/// Lists the fatbins in `span`. Zeros between them are padding; anything else is searched for the next one.
pub(crate) fn walk(source: &mut Source, out: &mut Collector, span: Span) -> io::Result<()> {
    let mut at = span.start;
    loop {
        at = skip_zeros(source, Span { start: at, end: span.end })?;
        let rest = Span { start: at, end: span.end };
        if rest.len() == 0 {
            return Ok(());
        }
        if starts_fatbin(source, rest)? {
            match fatbin(source, out, rest)? {
                Some(next) => at = next,
                None => return Ok(()),
            }
            continue;
        }
        let next = scan::find(source, at, span.end, Fit::MayBeCut)?;
        let resume = next.unwrap_or(span.end);
        out.report(at, Problem::Junk { skipped: resume - at });
        at = resume;
    }
}

fn starts_fatbin(source: &mut Source, span: Span) -> io::Result<bool> {
    // A header of any other size has never been seen and is refused by NVIDIA's own reader.
    let raw = source.take::<16>(span, 0)?;
    Ok(raw.is_some_and(|raw| u32_at(&raw, 0) == MAGIC && u64::from(u16_at(&raw, 6)) == FATBIN_HEADER))
}

fn skip_zeros(source: &mut Source, span: Span) -> io::Result<u64> {
    let mut at = span.start;
    while span.end - at >= 8 {
        let left = usize::try_from(span.end - at).unwrap_or(usize::MAX);
        let window = source.window(at, 8)?;
        let window = &window[..window.len().min(left)];
        let zeros = window.iter().position(|&byte| byte != 0).unwrap_or(window.len()) & !7;
        if zeros == 0 {
            return Ok(at);
        }
        at += zeros as u64;
    }
    // What is too short for anything counts as padding if it is zero, or if the reader has no bytes for it.
    let rest = usize::try_from(span.end - at).unwrap_or(usize::MAX);
    let all_zero = source.peek(at, rest)?.iter().all(|&byte| byte == 0);
    Ok(if all_zero { span.end } else { at })
}

/// Lists the fatbin at the start of `span` and returns where to go on; `None` if no more entries can be kept.
pub(crate) fn fatbin(source: &mut Source, out: &mut Collector, span: Span) -> io::Result<Option<u64>> {
    let Some(raw) = source.take::<16>(span, 0)? else {
        return Ok(Some(span.end));
    };
    let version = u16_at(&raw, 4);
    if version != 1 {
        out.report(span.start, Problem::FatbinVersion { version });
    }
    let declared = u64_at(&raw, 8);
    let available = span.len() - FATBIN_HEADER;
    let cut = declared > available;
    if cut {
        out.report(span.start, Problem::FatbinTruncated { declared, available });
    }
    let body = Span { start: span.start + FATBIN_HEADER, end: span.end - available.saturating_sub(declared) };
    let mut at = body.start;
    while at < body.end {
        match entry(source, out, span.start, Span { start: at, end: body.end })? {
            Step::Next(next) => at = next,
            Step::Full => return Ok(None),
            Step::OtherFatbin => {
                out.report(at, Problem::FatbinShort);
                return Ok(Some(at));
            }
            // With a believable size the next fatbin is known; otherwise the search starts over from here.
            Step::Lost => return Ok(Some(if cut { at } else { body.end })),
        }
    }
    Ok(Some(body.end))
}

enum Step {
    Next(u64),
    Lost,
    OtherFatbin,
    Full,
}

fn entry(source: &mut Source, out: &mut Collector, fatbin: u64, rest: Span) -> io::Result<Step> {
    let Some(raw) = source.take::<64>(rest, 0)? else {
        if starts_fatbin(source, rest)? {
            return Ok(Step::OtherFatbin);
        }
        let left = usize::try_from(rest.len()).unwrap_or(usize::MAX).min(64);
        if source.peek(rest.start, left)?.iter().any(|&byte| byte != 0) {
            out.report(rest.start, Problem::EntryHeaderTruncated);
        }
        return Ok(Step::Lost);
    };
    if u32_at(&raw, 0) == MAGIC {
        return Ok(Step::OtherFatbin);
    }
    let header = Header::decode(&raw);
    let size = u64::from(header.size_or_offset);
    if size < HEADER_SIZE {
        out.report(rest.start, Problem::EntryHeaderSize { size: header.size_or_offset });
        return Ok(Step::Lost);
    }
    let room = rest.len().checked_sub(size);
    let truncated = room.is_none_or(|room| room < header.payload_size);
    if truncated {
        let declared = size.saturating_add(header.payload_size);
        out.report(rest.start, Problem::EntryTruncated { declared, available: rest.len() });
    }
    let Some(span) = rest.clip(0, size) else {
        return Ok(Step::Lost);
    };
    let tail = header.tail(source, out, span)?;
    let payload = header.payload(rest.start.saturating_add(size));
    let mut listed = header.entry(out, (fatbin, rest.start), tail, payload, None);
    listed.truncated = truncated;
    let parent = out.entries.len();
    if !out.push(listed) {
        return Ok(Step::Full);
    }
    if header.kind == Kind::Concatenated {
        let table = Table { fatbin, parent, payload, truncated };
        if !concatenated(source, out, span, header.options_offset, &table)? {
            return Ok(Step::Full);
        }
    }
    Ok(if truncated { Step::Lost } else { Step::Next(rest.start + size + header.payload_size) })
}

/// What the records of a concatenated entry share.
struct Table {
    fatbin: u64,
    parent: usize,
    payload: Payload,
    truncated: bool,
}

/// Lists the images of a concatenated entry from its table; false if no more entries can be kept.
fn concatenated(
    source: &mut Source,
    out: &mut Collector,
    header: Span,
    offset: u32,
    table: &Table,
) -> io::Result<bool> {
    let damage = |out: &mut Collector, at: u64, reason| out.report(at, Problem::ConcatTable { reason });
    let offset = u64::from(offset);
    let start = match source.take::<8>(header, offset)? {
        Some(start) if offset >= HEADER_SIZE => start,
        _ => {
            damage(out, header.start, "its table lies outside the header");
            return Ok(true);
        }
    };
    let (count, bytes) = (u32_at(&start, 0), u64::from(u32_at(&start, 4)));
    let Some(span) = header.clip(offset, bytes) else {
        return Ok(true);
    };
    if span.len() < bytes {
        damage(out, span.start, "its table reaches past the header");
    }
    if u64::from(count) * HEADER_SIZE > bytes.saturating_sub(8) {
        damage(out, span.start, "its table is too small for its count");
    }
    let blob = match table.payload.compression {
        Compression::None => table.payload.stored_size,
        _ => table.payload.uncompressed_size,
    };
    let mut at = span.start + 8;
    for _ in 0..count {
        let rest = Span { start: at.min(span.end), end: span.end };
        let Some(raw) = source.take::<64>(rest, 0)? else {
            damage(out, rest.start, "its table ends before its last record");
            return Ok(true);
        };
        let record = Header::decode(&raw);
        let tail = record.tail(source, out, rest)?;
        let size = tail.size;
        let image = Image { parent: table.parent, offset: u64::from(record.size_or_offset), size: record.payload_size };
        let mut listed = record.entry(out, (table.fatbin, at), tail, table.payload, Some(image));
        listed.truncated = table.truncated;
        if record.kind == Kind::Concatenated {
            damage(out, at, "it nests another one, which is not followed");
        }
        if blob.checked_sub(image.offset).is_none_or(|room| room < image.size) {
            damage(out, at, "an image lies outside the blob");
            listed.truncated = true;
        }
        if !out.push(listed) {
            return Ok(false);
        }
        if size > rest.len() {
            damage(out, at, "a record reaches past the table");
            return Ok(true);
        }
        at += size;
    }
    if at != span.end {
        damage(out, at, "its table has bytes behind the last record");
    }
    Ok(true)
}
