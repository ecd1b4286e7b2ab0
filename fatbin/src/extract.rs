//! The second level: one image's bytes, and what they say.
//!
//! Invariant: sizes are checked against `Limits` before anything is read or unpacked, and a concatenated blob is
//! unpacked once for all images next to each other. Which image is wanted is an `Entry` of a listing of the same file.

use crate::collect::Collector;
use crate::container::elf::Elf;
use crate::cubin::{self, Cubin};
use crate::decompress::unpack;
use crate::diagnostic::{Diagnostic, Problem};
use crate::entry::{Compression, Entry, Image, Kind, Payload};
use crate::error::ExtractError;
use crate::lazy::{Lazy, Scratch};
use crate::ptx::{self, Ptx};
use crate::reader::ReadAt;
use crate::source::{Source, Span};

/// Small images may be packed as tightly as they like.
const RATIO_FLOOR: u64 = 64 << 10;

/// How much a deep read may take.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest image, in bytes, packed and unpacked; 1 GiB by default.
    pub max_payload: u64,
    /// The highest ratio of unpacked to packed bytes; 512 by default (NVIDIA's tools reach 33). Images below 64 KiB
    /// are exempt.
    pub max_ratio: u64,
    /// The most that one [`Extractor`] unpacks in all, in bytes; 64 GiB by default.
    pub max_total: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_payload: 1 << 30, max_ratio: 512, max_total: 64 << 30 }
    }
}

impl Limits {
    /// The same with [`Limits::max_payload`] set to `bytes`.
    #[must_use]
    pub fn max_payload(mut self, bytes: u64) -> Self {
        self.max_payload = bytes;
        self
    }

    /// The same with [`Limits::max_ratio`] set to `ratio`.
    #[must_use]
    pub fn max_ratio(mut self, ratio: u64) -> Self {
        self.max_ratio = ratio;
        self
    }

    pub(crate) fn total(&self) -> u64 {
        self.max_total
    }

    /// The same with [`Limits::max_total`] set to `bytes`.
    #[must_use]
    pub fn max_total(mut self, bytes: u64) -> Self {
        self.max_total = bytes;
        self
    }
}

/// What an image holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Contents {
    /// Machine code.
    Cubin(Cubin),
    /// PTX text.
    Ptx(Ptx),
    /// Something that is not looked into: LTO IR, tile IR, and kinds that are not known.
    Opaque,
}

/// A deep read of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Inspection {
    /// What it holds.
    pub contents: Contents,
    /// What was odd; offsets count from the start of the image.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads images deep, one entry of a listing at a time.
///
/// Go through the entries in the order of the listing: then a concatenated blob is unpacked once, not per image.
#[derive(Debug)]
pub struct Extractor<R> {
    reader: R,
    limits: Limits,
    spent: u64,
    blob: Option<(Payload, Vec<u8>)>,
    scratch: Scratch,
}

impl<R: ReadAt> Extractor<R> {
    /// An extractor for the file that `reader` reads.
    pub fn new(reader: R, limits: Limits) -> Self {
        Self { reader, limits, spent: 0, blob: None, scratch: Scratch::default() }
    }

    /// The bytes of an image: an ELF file, PTX text without the NUL that ends it, or what else the entry holds.
    ///
    /// Padding is removed where the true size is known. LTO IR comes as it is stored.
    ///
    /// # Errors
    /// Every [`ExtractError`] but [`ExtractError::NotACubin`].
    pub fn bytes(&mut self, entry: &Entry) -> Result<Vec<u8>, ExtractError> {
        let mut bytes = match entry.image {
            Some(image) => self.image(&entry.payload, image)?,
            None if entry.is_opaque() => {
                let size = match entry.payload.compressed_size {
                    0 => entry.payload.stored_size,
                    size => entry.payload.stored_size.min(u64::from(size)),
                };
                self.stored(&entry.payload, size)?
            }
            None => self.unpacked(&entry.payload)?,
        };
        match entry.kind {
            Kind::Ptx | Kind::RelocatablePtx => {
                let text = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                bytes.truncate(text);
            }
            Kind::Elf => trim_elf(&mut bytes)?,
            _ => {}
        }
        Ok(bytes)
    }

    /// Reads what an image holds.
    ///
    /// # Errors
    /// Every [`ExtractError`]. Damage inside an image that unpacks gives findings instead.
    pub fn inspect(&mut self, entry: &Entry) -> Result<Inspection, ExtractError> {
        let mut out = Collector::new(0);
        out.member.clone_from(&entry.member);
        out.section.clone_from(&entry.section);
        let contents = match entry.kind {
            Kind::Elf => Contents::Cubin(self.cubin(entry, &mut out)?),
            Kind::Ptx | Kind::RelocatablePtx => {
                let ptx = ptx::read(&self.bytes(entry)?);
                if ptx.version.is_none() || ptx.target.is_none() {
                    out.report(0, Problem::PtxHeader);
                }
                Contents::Ptx(ptx)
            }
            _ => Contents::Opaque,
        };
        Ok(Inspection { contents, diagnostics: out.diagnostics })
    }

    fn cubin(&mut self, entry: &Entry, out: &mut Collector) -> Result<Cubin, ExtractError> {
        let limit = self.limits.max_payload;
        let cubin = if entry.image.is_none() && entry.payload.compression == Compression::None {
            let mut source = Source::new(&self.reader)?;
            let span = source.whole().clip(entry.payload.offset, entry.payload.stored_size);
            let span = span.unwrap_or(Span { start: 0, end: 0 });
            cubin::read(&mut source, out, span, limit)?
        } else if entry.image.is_none() {
            self.packed_cubin(&entry.payload, out)?
        } else {
            let bytes = self.bytes(entry)?;
            whole_cubin(&bytes, out, limit)?
        };
        let cubin = cubin.ok_or(ExtractError::NotACubin)?;
        if cubin.arch.number != entry.arch.number {
            out.report(0, Problem::ArchMismatch { entry: entry.arch.number, cubin: cubin.arch.number });
        }
        Ok(cubin)
    }

    /// Reads a packed cubin, where possible without unpacking all of it.
    fn packed_cubin(&mut self, payload: &Payload, out: &mut Collector) -> Result<Option<Cubin>, ExtractError> {
        let limit = self.limits.max_payload;
        let packed = self.packed(payload)?;
        if payload.compression == Compression::Zstd {
            let scratch = std::mem::take(&mut self.scratch);
            if let Some(lazy) = Lazy::new(&packed, payload.uncompressed_size, scratch) {
                let before = out.diagnostics.len();
                let read = whole_cubin(&lazy, out, limit);
                self.scratch = lazy.scratch();
                // A part that does not unpack is an error of the reader here; unpacking the whole words it better.
                if let Ok(Some(cubin)) = read {
                    return Ok(Some(cubin));
                }
                out.diagnostics.truncate(before);
            }
        }
        let mut bytes = unpack(&packed, payload.compression, payload.uncompressed_size)?;
        trim_elf(&mut bytes)?;
        whole_cubin(&bytes, out, limit)
    }

    /// One image out of a concatenated blob.
    fn image(&mut self, payload: &Payload, image: Image) -> Result<Vec<u8>, ExtractError> {
        if self.blob.as_ref().is_none_or(|(unpacked, _)| unpacked != payload) {
            self.blob = None;
            let blob = self.unpacked(payload)?;
            self.blob = Some((*payload, blob));
        }
        let blob = self.blob.as_ref().map(|(_, blob)| blob.as_slice()).unwrap_or_default();
        let start = usize::try_from(image.offset).map_err(|_| ExtractError::OutsideBlob)?;
        let size = usize::try_from(image.size).map_err(|_| ExtractError::OutsideBlob)?;
        let bytes = blob.get(start..).and_then(|rest| rest.get(..size)).ok_or(ExtractError::OutsideBlob)?;
        Ok(bytes.to_vec())
    }

    /// A payload in its true form.
    fn unpacked(&mut self, payload: &Payload) -> Result<Vec<u8>, ExtractError> {
        if payload.compression == Compression::None {
            return self.stored(payload, payload.stored_size);
        }
        let packed = self.packed(payload)?;
        unpack(&packed, payload.compression, payload.uncompressed_size)
    }

    /// A packed payload, if unpacking it is within the limits.
    fn packed(&mut self, payload: &Payload) -> Result<Vec<u8>, ExtractError> {
        let (packed, size) = (u64::from(payload.compressed_size), payload.uncompressed_size);
        if packed > payload.stored_size {
            return Err(ExtractError::Corrupt { reason: "more compressed bytes than stored ones".to_owned() });
        }
        let by_ratio = packed.saturating_mul(self.limits.max_ratio).max(RATIO_FLOOR);
        let limit = self.limits.max_payload.min(by_ratio).min(self.limits.max_total - self.spent);
        if size > limit {
            return Err(ExtractError::TooLarge { declared: size, limit });
        }
        let packed = self.stored(payload, packed)?;
        self.spent += size;
        Ok(packed)
    }

    /// The first `size` bytes of a payload as they stand in the file.
    fn stored(&self, payload: &Payload, size: u64) -> Result<Vec<u8>, ExtractError> {
        let limit = self.limits.max_payload;
        let source = Source::new(&self.reader)?;
        let span = source.whole().clip(payload.offset, size);
        let available = span.map_or(0, Span::len);
        let span = span.filter(|span| span.len() == size);
        let span = span.ok_or(ExtractError::Truncated { declared: size, available })?;
        if size > limit {
            return Err(ExtractError::TooLarge { declared: size, limit });
        }
        let bytes = source.read(span)?;
        if bytes.len() as u64 != size {
            return Err(ExtractError::Truncated { declared: size, available: bytes.len() as u64 });
        }
        Ok(bytes)
    }
}

fn whole_cubin(reader: &dyn ReadAt, out: &mut Collector, limit: u64) -> Result<Option<Cubin>, ExtractError> {
    let mut source = Source::new(reader)?;
    let span = source.whole();
    Ok(cubin::read(&mut source, out, span, limit)?)
}

/// Cuts the padding to a multiple of 8 that an ELF stored unpacked may have.
fn trim_elf(bytes: &mut Vec<u8>) -> Result<(), ExtractError> {
    let mut source = Source::new(bytes)?;
    let span = source.whole();
    let Some(elf) = Elf::read(&mut source, span)? else {
        return Ok(());
    };
    if let Some(end) = elf.end(&mut source)?
        && end <= span.len()
        && span.len() - end < 8
    {
        bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
    }
    Ok(())
}
