//! The files that GPU code travels in: which one this is, and where in it fatbins may stand.
//!
//! Invariant: a file of any format goes through `list`, and archives go through it again per member, one level deep.
//! What stands inside a fatbin is `walk.rs`.

mod archive;
pub(crate) mod elf;
mod object;
mod pe;

use std::io;

use crate::bytes::{u16_at, u32_at};
use crate::collect::Collector;
use crate::cubin;
use crate::diagnostic::Problem;
use crate::entry::FoundBy;
use crate::listing::Format;
use crate::source::{Source, Span};
use crate::walk;

/// The format of what stands in `span`, by its first bytes.
pub(crate) fn detect(source: &mut Source, span: Span) -> io::Result<Option<Format>> {
    let len = usize::try_from(span.len()).unwrap_or(usize::MAX).min(64);
    let start = source.peek(span.start, len)?;
    Ok(if start.starts_with(b"\x7fELF") {
        // The machine number has its place and byte order in every ELF.
        Some(if u16_at(start, 18) == elf::MACHINE_CUDA { Format::Cubin } else { Format::Elf })
    } else if start.starts_with(b"!<arch>\n") {
        Some(Format::Archive)
    } else if start.starts_with(b"!<thin>\n") {
        Some(Format::ThinArchive)
    } else if u32_at(start, 0) == walk::MAGIC {
        Some(Format::Fatbin)
    } else if start.starts_with(b"MZ") {
        Some(Format::Pe)
    } else if pe::is_object(start) {
        Some(Format::Coff)
    } else {
        None
    })
}

/// Lists what stands in `span`, which is of the given format.
pub(crate) fn list(
    source: &mut Source,
    out: &mut Collector,
    span: Span,
    format: Format,
    scan_all: bool,
) -> io::Result<()> {
    out.section = None;
    out.found_by = FoundBy::Format;
    match format {
        Format::Elf => object::list_elf(source, out, span, scan_all),
        Format::Cubin => cubin::list(source, out, span),
        Format::Fatbin => walk::walk(source, out, span),
        Format::Pe | Format::Coff => pe::list(source, out, span, scan_all),
        Format::Archive | Format::ThinArchive if out.member.is_some() => {
            out.report(span.start, Problem::Archive { reason: "an archive inside an archive is not followed" });
            Ok(())
        }
        Format::Archive | Format::ThinArchive => {
            archive::list(source, out, span, format == Format::ThinArchive, scan_all)
        }
    }
}
