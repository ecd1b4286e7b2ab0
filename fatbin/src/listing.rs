//! The first level: what GPU code a file holds, from headers alone.
//!
//! Invariant: payloads are never read, and a file's size matters only with `scan_all` or when its section table is
//! unusable. The formats themselves are in `container/` and `walk.rs`.

use crate::collect::Collector;
use crate::container;
use crate::diagnostic::Diagnostic;
use crate::entry::{Entry, Kind};
use crate::error::Error;
use crate::reader::ReadAt;
use crate::source::Source;

/// What a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Format {
    /// A host ELF: object file, shared object or program, for any machine.
    Elf,
    /// A GPU ELF by itself.
    Cubin,
    /// A static archive.
    Archive,
    /// A static archive whose members lie in other files.
    ThinArchive,
    /// One or more fatbins by themselves.
    Fatbin,
    /// A Windows DLL or program.
    Pe,
    /// A Windows object file.
    Coff,
}

/// How far a listing goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Whether to search all other sections too, for libraries that keep fatbins where no loader looks, such as
    /// `.cask_resource` of cuBLASLt or `.rodata`. Reads those sections whole. Off by default.
    pub scan_all: bool,
    /// The most entries to list; 1,048,576 by default. More than that gives a finding.
    pub max_entries: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { scan_all: false, max_entries: 1 << 20 }
    }
}

impl Options {
    /// The same with [`Options::scan_all`] set to `scan_all`.
    #[must_use]
    pub fn scan_all(mut self, scan_all: bool) -> Self {
        self.scan_all = scan_all;
        self
    }

    /// The same with [`Options::max_entries`] set to `max_entries`.
    #[must_use]
    pub fn max_entries(mut self, max_entries: usize) -> Self {
        self.max_entries = max_entries;
        self
    }
}

/// The GPU code in a file.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Listing {
    /// What the file is.
    pub format: Format,
    /// All entries: member by member, in each `.nv_fatbin` before `__nv_relfatbin`, then what a scan found.
    pub entries: Vec<Entry>,
    /// Paths, as written in a thin archive, of members that the caller may want to list too.
    pub external: Vec<String>,
    /// What was odd, up to a thousand findings.
    pub diagnostics: Vec<Diagnostic>,
    /// False if damage or a limit may have hidden GPU code.
    pub complete: bool,
}

impl Listing {
    /// The entries that are images, without the wrappers around concatenated ones.
    pub fn images(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.kind != Kind::Concatenated)
    }
}

/// Lists the GPU code in a file by reading headers only.
///
/// A file of a known format without GPU code gives an empty listing.
///
/// # Errors
/// [`Error::Io`] if the reader fails, [`Error::UnknownFormat`] if the file is none of the formats of [`Format`]. Damage
/// inside a known format is no error; see [`Listing::diagnostics`].
pub fn list<R: ReadAt + ?Sized>(reader: &R, options: &Options) -> Result<Listing, Error> {
    let mut source = Source::new(&reader)?;
    let mut out = Collector::new(options.max_entries);
    let span = source.whole();
    let Some(format) = container::detect(&mut source, span)? else {
        return Err(Error::UnknownFormat { start: source.peek(0, 8)?.to_vec() });
    };
    container::list(&mut source, &mut out, span, format, options.scan_all)?;
    Ok(Listing {
        format,
        entries: out.entries,
        external: out.external,
        diagnostics: out.diagnostics,
        complete: out.complete,
    })
}
