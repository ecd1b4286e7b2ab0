//! Static archives: GNU, BSD and thin, member by member.
//!
//! Invariant: members are visited once, in file order, and one that is no object does not stop the walk. Archives
//! inside archives are not followed; members that lie in other files are named, not opened.

use std::io;
use std::sync::Arc;

use crate::bytes::until_nul;
use crate::collect::Collector;
use crate::diagnostic::Problem;
use crate::source::{Source, Span};

const HEADER: u64 = 60;

/// Real tables of long names stay far below; what lies behind is reported as a damaged name.
const MAX_LONG_NAMES: u64 = 16 << 20;
const MAX_NAME: usize = 4096;

pub(super) fn list(source: &mut Source, out: &mut Collector, span: Span, thin: bool, scan_all: bool) -> io::Result<()> {
    let mut long_names = LongNames::default();
    let mut at = 8;
    while at < span.len() && !out.full {
        out.member = None;
        out.section = None;
        let Some(header) = member_header(source, span, &mut at)? else {
            out.report(span.start + at.min(span.len()), Problem::Archive { reason: "a member header is damaged" });
            return Ok(());
        };
        let Some(size) = decimal(&header[48..58]) else {
            out.report(span.start + at, Problem::Archive { reason: "a member size is no number" });
            return Ok(());
        };
        let body = at + HEADER;
        let mut name = trim(&header[..16]).to_vec();
        let stored = !thin || matches!(name.as_slice(), b"/" | b"//" | b"/SYM64/");
        let Some(mut data) = span.clip(body, if stored { size } else { 0 }) else {
            return Ok(());
        };
        if stored && data.len() < size {
            out.report(span.start + at, Problem::Archive { reason: "the last member is cut off" });
        }
        // Members start at even offsets.
        at = if stored { (body + data.len()).next_multiple_of(2) } else { body };
        match name.as_slice() {
            b"/" | b"/SYM64/" => continue,
            b"//" => {
                let end = data.start + data.len().min(MAX_LONG_NAMES);
                long_names = LongNames::new(source.read(Span { start: data.start, end })?);
                continue;
            }
            _ => {}
        }
        if let Some(length) = name.strip_prefix(b"#1/").and_then(decimal) {
            let Some(rest) = data.clip(length, u64::MAX) else {
                out.report(data.start, Problem::Archive { reason: "a member name is longer than the member" });
                continue;
            };
            let shown = usize::try_from(length).unwrap_or(usize::MAX).min(MAX_NAME);
            name = until_nul(source.peek(data.start, shown)?).to_vec();
            data = rest;
        } else if let Some(offset) = name.strip_prefix(b"/").and_then(decimal) {
            name = long_names.get(offset).unwrap_or_else(|| {
                out.report(data.start, Problem::Archive { reason: "a member name lies outside the name table" });
                b"?".to_vec()
            });
        } else if let Some(short) = name.strip_suffix(b"/") {
            name = short.to_vec();
        }
        if !name.starts_with(b"__.SYMDEF") {
            visit(source, out, data, &name, thin, scan_all)?;
        }
    }
    Ok(())
}

/// The header at `at`, or one byte before for archives whose writer did not pad.
fn member_header(source: &mut Source, span: Span, at: &mut u64) -> io::Result<Option<[u8; 60]>> {
    for start in [*at, *at - 1] {
        if let Some(header) = source.take::<60>(span, start)?
            && header.ends_with(b"`\n")
        {
            *at = start;
            return Ok(Some(header));
        }
    }
    Ok(None)
}

fn visit(
    source: &mut Source,
    out: &mut Collector,
    data: Span,
    name: &[u8],
    thin: bool,
    scan_all: bool,
) -> io::Result<()> {
    let name: Arc<str> = Arc::from(String::from_utf8_lossy(name));
    out.member = Some(Arc::clone(&name));
    if thin {
        out.external.push(name.to_string());
        out.report(data.start, Problem::MemberExternal);
        return Ok(());
    }
    let Some(format) = super::detect(source, data)? else {
        out.report(data.start, Problem::MemberSkipped);
        return Ok(());
    };
    super::list(source, out, data, format, scan_all)
}

/// The GNU table of names that do not fit a header.
#[derive(Default)]
struct LongNames {
    table: Vec<u8>,
    /// Bytes that may still be handed out: honest members use each name once, hostile ones the longest every time.
    budget: usize,
}

impl LongNames {
    fn new(table: Vec<u8>) -> Self {
        let budget = table.len().saturating_mul(4);
        Self { table, budget }
    }

    /// The name at `offset`, which ends at a newline, with or without a slash before it.
    fn get(&mut self, offset: u64) -> Option<Vec<u8>> {
        let rest = self.table.get(usize::try_from(offset).ok()?..)?;
        let rest = &rest[..rest.len().min(MAX_NAME)];
        let line = rest.split(|&byte| byte == b'\n' || byte == 0).next()?;
        self.budget = self.budget.checked_sub(line.len())?;
        Some(line.strip_suffix(b"/").unwrap_or(line).to_vec())
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(trim(text)).ok()?.parse().ok()
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii_end()
}
