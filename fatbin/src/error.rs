//! Failures that leave nothing to return. Everything milder is a `Diagnostic`.

use std::fmt;
use std::io;

/// Why a file could not be listed at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The reader failed.
    Io(io::Error),
    /// The first bytes are none of the formats read here.
    UnknownFormat {
        /// The first bytes of the file, up to 8.
        start: Vec<u8>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(formatter, "reading failed: {error}"),
            Self::UnknownFormat { start } if start.is_empty() => formatter.write_str("the file is empty"),
            Self::UnknownFormat { start } if start.starts_with(b"PK") => {
                formatter.write_str("a zip archive (such as a wheel): list its members one by one")
            }
            Self::UnknownFormat { start } => {
                write!(formatter, "no ELF, PE, static archive, fatbin or cubin (starts with {start:02x?})")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::UnknownFormat { .. } => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why one image could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExtractError {
    /// The reader failed.
    Io(io::Error),
    /// The file ends before the image does.
    Truncated {
        /// Bytes that the header declares.
        declared: u64,
        /// Bytes that are there.
        available: u64,
    },
    /// The image is larger, packed or unpacked, than the limits allow.
    TooLarge {
        /// Bytes that the header declares.
        declared: u64,
        /// The limit in bytes that was met.
        limit: u64,
    },
    /// The compression bits in the flags have no known meaning.
    UnknownCompression {
        /// The bits, a subset of 0xf000.
        bits: u16,
    },
    /// The packed bytes do not unpack to what the header declares.
    Corrupt {
        /// What the decoder found.
        reason: String,
    },
    /// The image's place lies outside the concatenated blob.
    OutsideBlob,
    /// The payload of an ELF entry is not a GPU ELF.
    NotACubin,
}

impl fmt::Display for ExtractError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(formatter, "reading failed: {error}"),
            Self::Truncated { declared, available } => {
                write!(formatter, "truncated: {declared} bytes declared, {available} there")
            }
            Self::TooLarge { declared, limit } => {
                write!(formatter, "{declared} bytes declared, more than the limit of {limit}")
            }
            Self::UnknownCompression { bits } => {
                write!(formatter, "unknown compression 0x{bits:x}")
            }
            Self::Corrupt { reason } => write!(formatter, "corrupt payload: {reason}"),
            Self::OutsideBlob => formatter.write_str("the image lies outside its concatenated blob"),
            Self::NotACubin => formatter.write_str("the payload is no GPU ELF"),
        }
    }
}

impl std::error::Error for ExtractError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ExtractError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
