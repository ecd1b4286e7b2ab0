//! Host ELF files: picks the sections that hold GPU code, or searches where no table tells.
//!
//! Invariant: sections are chosen by name and no byte is walked twice, whatever the table says. Alternatives for
//! files that lost their table are tried here and nowhere else.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::elf::{self, Elf, Section, Sections};
use crate::collect::Collector;
use crate::diagnostic::Problem;
use crate::entry::FoundBy;
use crate::scan::{self, Fit};
use crate::source::{Source, Span};
use crate::walk;

/// In the order in which NVIDIA's tools list them.
const CODE_SECTIONS: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];

/// The place of a section among those for GPU code, by the first `len` bytes of its name.
pub(super) fn rank(name: &[u8], len: usize) -> Option<usize> {
    CODE_SECTIONS.iter().position(|code| {
        let code = code.as_bytes();
        name == code || (len < code.len() && name == &code[..len])
    })
}

/// Ranges that were walked already.
#[derive(Default)]
pub(super) struct Covered(BTreeMap<u64, u64>);

impl Covered {
    /// Adds a range; false if it lies over an earlier one.
    pub(super) fn claim(&mut self, span: Span) -> bool {
        let before = self.0.range(..span.end).next_back();
        if span.len() != 0 && before.is_some_and(|(_, &end)| end > span.start) {
            return false;
        }
        if span.len() != 0 {
            self.0.insert(span.start, span.end);
        }
        true
    }
}

pub(super) fn list_elf(source: &mut Source, out: &mut Collector, span: Span, scan_all: bool) -> io::Result<()> {
    let Some(elf) = Elf::read(source, span)? else {
        out.report(span.start, Problem::ObjectHeader);
        return Ok(());
    };
    match elf.sections(source)? {
        Sections::Table { sections, names, cut } if names.len() != 0 => {
            if cut {
                out.report(span.start, Problem::LimitReached);
            }
            walk_sections(source, out, &elf, &sections, names, scan_all)
        }
        Sections::Outside => {
            out.report(span.start, Problem::SectionTableOutside);
            search(source, out, &elf, Fit::MayBeCut)
        }
        _ => {
            out.report(span.start, Problem::NoSectionTable);
            search(source, out, &elf, Fit::Whole)
        }
    }
}

fn walk_sections(
    source: &mut Source,
    out: &mut Collector,
    elf: &Elf,
    sections: &[Section],
    names: Span,
    scan_all: bool,
) -> io::Result<()> {
    let mut chosen = Vec::new();
    for section in sections {
        if section.kind == elf::NULL || section.size == 0 {
            continue;
        }
        let name = elf::short_name(source, names, section)?;
        let rank = rank(&name, usize::MAX);
        if rank.is_some() || (scan_all && section.kind != elf::NOBITS) {
            chosen.push((rank.unwrap_or(usize::MAX), String::from_utf8_lossy(&name).into_owned(), *section));
        }
    }
    chosen.sort_by_key(|(rank, ..)| *rank);
    let mut covered = Covered::default();
    for (rank, name, section) in chosen {
        if out.full {
            break;
        }
        let scanned = rank == usize::MAX;
        let at = elf.span.start.saturating_add(section.offset);
        out.section = Some(Arc::from(name));
        out.found_by = if scanned { FoundBy::Scan } else { FoundBy::Format };
        let Some(bytes) = readable(out, elf, &section, at, scanned) else {
            continue;
        };
        if !covered.claim(bytes) {
            if !scanned {
                out.report(at, Problem::SectionOverlap);
            }
            continue;
        }
        if scanned {
            scan::scan(source, out, bytes, Fit::Whole)?;
        } else {
            walk::walk(source, out, bytes)?;
        }
    }
    Ok(())
}

/// The bytes of a section, if it has some that can be read; reports what is amiss with one for GPU code.
fn readable(out: &mut Collector, elf: &Elf, section: &Section, at: u64, scanned: bool) -> Option<Span> {
    let problem = if section.kind == elf::NOBITS {
        Problem::SectionWithoutBytes
    } else if section.flags & elf::FLAG_COMPRESSED != 0 {
        Problem::SectionCompressed
    } else {
        let bytes = elf.bytes_of(section);
        let available = bytes.map_or(0, Span::len);
        if available < section.size && !scanned {
            out.report(at, Problem::SectionTruncated { declared: section.size, available });
        }
        return bytes.filter(|bytes| bytes.len() != 0);
    };
    if !scanned {
        out.report(at, problem);
    }
    None
}

/// Looks for fatbins without a table: in what is loaded at run time, or everywhere if that is not known either.
fn search(source: &mut Source, out: &mut Collector, elf: &Elf, fit: Fit) -> io::Result<()> {
    out.found_by = FoundBy::Scan;
    let mut ranges = elf.loaded(source)?;
    if ranges.is_empty() {
        ranges.push(elf.span);
    }
    let mut covered = Covered::default();
    for range in ranges {
        if !out.full && covered.claim(range) {
            scan::scan(source, out, range, fit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Covered, Span, rank};

    #[test]
    fn a_range_over_an_earlier_one_is_refused() {
        let mut covered = Covered::default();
        assert!(covered.claim(Span { start: 10, end: 20 }));
        assert!(covered.claim(Span { start: 20, end: 30 }));
        assert!(covered.claim(Span { start: 0, end: 10 }));
        assert!(!covered.claim(Span { start: 19, end: 20 }));
        assert!(!covered.claim(Span { start: 0, end: 100 }));
        assert!(covered.claim(Span { start: 15, end: 15 }));
    }

    #[test]
    fn names_match_whole_or_as_windows_cuts_them() {
        assert_eq!(rank(b".nv_fatbin", usize::MAX), Some(0));
        assert_eq!(rank(b".nv_fatb", usize::MAX), None);
        assert_eq!(rank(b".nv_fatb", 8), Some(0));
        assert_eq!(rank(b"__nv_rel", 8), Some(1));
        assert_eq!(rank(b".nvFatBi", 8), None);
    }
}
