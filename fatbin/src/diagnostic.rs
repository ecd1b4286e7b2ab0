//! What was odd about a file that could be read in part.
//!
//! Invariant: every place where a parser gives up or skips something reports here, and `may_miss_code` tells whether
//! the listing can be trusted to be whole. Wording is final text; ranking and colouring are the caller's.

use std::fmt;
use std::sync::Arc;

/// One finding about a file, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Diagnostic {
    /// The archive member it is about.
    pub member: Option<Arc<str>>,
    /// The section it is about.
    pub section: Option<Arc<str>>,
    /// Where, in bytes from the start of the file (from the start of the unpacked image for a deep read).
    pub offset: u64,
    /// What was found.
    pub problem: Problem,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(member) = &self.member {
            write!(formatter, "{member}: ")?;
        }
        if let Some(section) = &self.section {
            write!(formatter, "{section}: ")?;
        }
        write!(formatter, "{} (at 0x{:x})", self.problem, self.offset)
    }
}

/// The kinds of finding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Problem {
    /// The object has no section table; its segments were searched instead.
    NoSectionTable,
    /// The section table lies outside the file, as after truncation; what is there was searched instead.
    SectionTableOutside,
    /// The object's header is cut off or of a shape that is not read here.
    ObjectHeader,
    /// A section is cut off by the end of the file.
    SectionTruncated {
        /// Bytes that the table declares.
        declared: u64,
        /// Bytes that are there.
        available: u64,
    },
    /// A section for GPU code has no bytes in this file, as in a split debug file.
    SectionWithoutBytes,
    /// A section for GPU code is compressed by the linker, which is not read.
    SectionCompressed,
    /// A section lies over one that was read already.
    SectionOverlap,
    /// Bytes between fatbins that are no fatbin.
    Junk {
        /// How many were passed over.
        skipped: u64,
    },
    /// A fatbin's version is not 1; it was read as if it were.
    FatbinVersion {
        /// The version found.
        version: u16,
    },
    /// A fatbin is cut off.
    FatbinTruncated {
        /// Bytes that its header declares.
        declared: u64,
        /// Bytes that are there.
        available: u64,
    },
    /// A fatbin ended before the place that its header declares, because another one starts there.
    FatbinShort,
    /// An entry's header is cut off; the entry is not listed.
    EntryHeaderTruncated,
    /// An entry's header size is below 64, so nothing behind it can be found.
    EntryHeaderSize {
        /// The size found.
        size: u32,
    },
    /// An entry is cut off; it is listed as truncated.
    EntryTruncated {
        /// Bytes of header and payload that are declared.
        declared: u64,
        /// Bytes that are there.
        available: u64,
    },
    /// A name or options text reaches past its header and was cut.
    TextOutsideHeader,
    /// The table of a concatenated entry is damaged; images may be missing.
    ConcatTable {
        /// What is wrong.
        reason: &'static str,
    },
    /// An archive's member table is damaged; members may be missing.
    Archive {
        /// What is wrong.
        reason: &'static str,
    },
    /// An archive member is neither object, fatbin nor cubin and was passed over.
    MemberSkipped,
    /// A member of a thin archive lies in another file; see `Listing::external`.
    MemberExternal,
    /// The limit on entries or sections was met; the rest is not listed.
    LimitReached,
    /// A cubin's table is damaged or absent; its kernels may be missing.
    CubinTable {
        /// What is wrong.
        reason: &'static str,
    },
    /// A cubin names another architecture than its entry.
    ArchMismatch {
        /// What the entry says.
        entry: u32,
        /// What the cubin says.
        cubin: u32,
    },
    /// PTX without a `.version` or `.target` line that can be read.
    PtxHeader,
    /// There were more findings than are kept.
    MoreFindings,
}

impl Problem {
    /// Whether GPU code may exist that was not found because of this.
    pub fn may_miss_code(&self) -> bool {
        !matches!(
            self,
            Self::NoSectionTable
                | Self::SectionWithoutBytes
                | Self::SectionOverlap
                | Self::FatbinVersion { .. }
                | Self::TextOutsideHeader
                | Self::MemberSkipped
                | Self::ArchMismatch { .. }
                | Self::PtxHeader
                | Self::MoreFindings
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::NoSectionTable => "no section table; searched the segments",
            Self::SectionTableOutside => "section table outside the file; searched what is there",
            Self::ObjectHeader => "object header cut off or of an unknown shape",
            Self::SectionWithoutBytes => "section has no bytes in this file",
            Self::SectionCompressed => "section is compressed by the linker",
            Self::SectionOverlap => "section lies over another one and was passed over",
            Self::FatbinShort => "fatbin ends early: another one starts inside it",
            Self::EntryHeaderTruncated => "entry header cut off",
            Self::TextOutsideHeader => "name or options reach past the entry header",
            Self::MemberSkipped => "member is no object and was passed over",
            Self::MemberExternal => "member of a thin archive lies in another file",
            Self::LimitReached => "limit reached; the rest is not listed",
            Self::PtxHeader => "PTX without readable .version and .target",
            Self::MoreFindings => "more findings than are kept",
            Self::ConcatTable { reason } => {
                return write!(formatter, "concatenated entry: {reason}");
            }
            Self::Archive { reason } => return write!(formatter, "archive: {reason}"),
            Self::CubinTable { reason } => return write!(formatter, "cubin: {reason}"),
            Self::Junk { skipped } => {
                return write!(formatter, "{skipped} bytes that are no fatbin");
            }
            Self::FatbinVersion { version } => {
                return write!(formatter, "fatbin version {version} instead of 1");
            }
            Self::EntryHeaderSize { size } => {
                return write!(formatter, "entry header size {size} is below 64");
            }
            Self::ArchMismatch { entry, cubin } => {
                return write!(formatter, "entry says sm_{entry}, its cubin sm_{cubin}");
            }
            Self::SectionTruncated { declared, available } => {
                return write!(formatter, "section cut off: {declared} bytes declared, {available} there");
            }
            Self::FatbinTruncated { declared, available } => {
                return write!(formatter, "fatbin cut off: {declared} bytes declared, {available} there");
            }
            Self::EntryTruncated { declared, available } => {
                return write!(formatter, "entry cut off: {declared} bytes declared, {available} there");
            }
        };
        formatter.write_str(text)
    }
}
