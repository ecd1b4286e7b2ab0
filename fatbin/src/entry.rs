//! What a listing says about one image: the types, and how flag bits and kind numbers map to them.
//!
//! Invariant: every field is what the file says, unchecked against the payload, because a listing does not read
//! payloads. Reading headers from bytes is in `header.rs`.

use std::fmt;
use std::sync::Arc;

use crate::arch::Arch;

/// What an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Kind {
    /// PTX text (0x01).
    Ptx,
    /// Machine code in a GPU ELF, executable or relocatable; what people call a cubin (0x02).
    Elf,
    /// A cubin of the format before ELF (0x04).
    Cubin,
    /// LTO intermediate code (0x08); its payload is obfuscated.
    Nvvm,
    /// An index (0x20).
    Index,
    /// Relocatable PTX (0x40).
    RelocatablePtx,
    /// Tile IR (0x80).
    TileIr,
    /// One compressed blob for several images (0x100); the images follow as entries of their own.
    Concatenated,
    /// A number without a known meaning.
    Unknown(u16),
}

impl Kind {
    pub(crate) fn from_code(code: u16) -> Self {
        match code {
            0x01 => Self::Ptx,
            0x02 => Self::Elf,
            0x04 => Self::Cubin,
            0x08 => Self::Nvvm,
            0x20 => Self::Index,
            0x40 => Self::RelocatablePtx,
            0x80 => Self::TileIr,
            0x100 => Self::Concatenated,
            other => Self::Unknown(other),
        }
    }
}

impl fmt::Display for Kind {
    /// NVIDIA's own word for the kind, `unknown(0x10)` where there is none.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Ptx => "ptx",
            Self::Elf => "elf",
            Self::Cubin => "cubin",
            Self::Nvvm => "nvvm",
            Self::Index => "index",
            Self::RelocatablePtx => "relocatable ptx",
            Self::TileIr => "tile ir",
            Self::Concatenated => "concatenated entry",
            Self::Unknown(code) => return formatter.pad(&format!("unknown(0x{code:x})")),
        })
    }
}

/// How a payload is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Compression {
    /// Stored as it is.
    None,
    /// One raw LZ4 block.
    Lz4,
    /// One zstd frame.
    Zstd,
    /// An image inside a concatenated entry, whose blob carries the compression.
    Inherited,
    /// Compressed in a way that is not known; the value is the compression bits of the flags, a subset of 0xf000.
    Unknown(u16),
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
            Self::Inherited => "inherited",
            Self::Unknown(bits) => return formatter.pad(&format!("unknown(0x{bits:x})")),
        })
    }
}

/// The host operating system an image was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Host {
    /// Linux.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
    /// The container does not say.
    Unknown,
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Linux => "linux",
            Self::Mac => "mac",
            Self::Windows => "windows",
            Self::Unknown => "unknown",
        })
    }
}

/// The version of the code's own format: the PTX ISA for PTX, 1.7 or 1.8 (old and new ABI) for a cubin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CodeVersion {
    /// Before the dot.
    pub major: u16,
    /// Behind the dot.
    pub minor: u16,
}

impl fmt::Display for CodeVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{}.{}", self.major, self.minor))
    }
}

/// How an entry was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum FoundBy {
    /// It stands where the format says: in a section for GPU code, or the file itself is a fatbin or cubin.
    Format,
    /// Found by searching: other sections (see `Options::scan_all`), or a file without usable section table.
    Scan,
}

/// The stored bytes of an image; for an image in a concatenated entry, those of the blob around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Payload {
    /// File offset in bytes.
    pub offset: u64,
    /// Bytes in the file, padding to a multiple of 8 included. As declared: more than there is if truncated.
    pub stored_size: u64,
    /// Bytes without padding if compressed, else 0.
    pub compressed_size: u32,
    /// Bytes when unpacked if compressed, else 0.
    pub uncompressed_size: u64,
    /// How these bytes are packed; never [`Compression::Inherited`].
    pub compression: Compression,
}

/// The place of an image in the unpacked blob of a concatenated entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Image {
    /// Index in `Listing::entries` of the concatenated entry.
    pub parent: usize,
    /// Offset in the unpacked blob, in bytes.
    pub offset: u64,
    /// Bytes, padding to a multiple of 8 included.
    pub size: u64,
}

/// One image of GPU code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Entry {
    /// The archive member that holds it.
    pub member: Option<Arc<str>>,
    /// The section that holds it; `None` for a bare file and for code found in segments.
    pub section: Option<Arc<str>>,
    /// How it was come by.
    pub found_by: FoundBy,
    /// File offset of the fatbin header above it, in bytes; `None` for a bare cubin.
    pub fatbin: Option<u64>,
    /// File offset of its own header, in bytes; of the ELF header for a bare cubin.
    pub offset: u64,
    /// What it is.
    pub kind: Kind,
    /// The architecture it is for; number 0 for a concatenated entry.
    pub arch: Arch,
    /// The version of the code's format.
    pub code_version: CodeVersion,
    /// How it is packed.
    pub compression: Compression,
    /// Its stored bytes.
    pub payload: Payload,
    /// Its place in the unpacked payload, if it is part of a concatenated entry.
    pub image: Option<Image>,
    /// The name of the source file, where recorded (`-lineinfo`, `-G`, `--ident`).
    pub identifier: Option<String>,
    /// Options for the compiler that will read it (ptxas, nvvm, tileiras), blanks and all.
    pub options: Option<String>,
    /// The verbatim copy of the cubin's `.nv.compat` that `sm_100` and later carry.
    pub compat: Option<Vec<u8>>,
    /// Whether it holds debug information.
    pub debug: bool,
    /// The host operating system.
    pub host: Host,
    /// Width of an address, 32 or 64.
    pub address_bits: u8,
    /// All flag bits as stored; 0 for a bare cubin.
    pub flags: u64,
    /// Whether the payload reaches past the end of the file or of its container.
    pub truncated: bool,
}

impl Entry {
    /// Bytes of the image when unpacked, as declared; padding (up to 7 bytes) may be included.
    pub fn unpacked_size(&self) -> u64 {
        match self.image {
            Some(image) => image.size,
            None if self.payload.compression == Compression::None => self.payload.stored_size,
            None => self.payload.uncompressed_size,
        }
    }

    /// Whether the payload is obfuscated, so that its bytes can be copied but not read. True of LTO IR.
    pub fn is_opaque(&self) -> bool {
        self.kind == Kind::Nvvm
    }
}
