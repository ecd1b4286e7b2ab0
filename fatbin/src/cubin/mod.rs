//! GPU ELF files: who made them, for what, and which functions they hold.
//!
//! Invariant: a cubin is read through positioned reads of its tables, so a large one that is stored unpacked costs
//! little; a damaged table loses its own facts and no others. There is no disassembly.

mod attributes;
mod functions;
mod identity;
mod names;
mod notes;

use std::io;

use crate::arch::Arch;
use crate::collect::Collector;
use crate::container::elf::{Elf, Sections};
use crate::diagnostic::Problem;
use crate::entry::{CodeVersion, Compression, Entry, Host, Kind, Payload};
use crate::source::{Source, Span};
use crate::toolkit::Producer;

/// What a deep read of a cubin tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Cubin {
    /// The architecture as the ELF tells it. The suffix `f` is only known if the maker's command line was kept; prefer
    /// [`Entry::arch`] where there is an entry header.
    pub arch: Arch,
    /// The ABI version: 7 for CUDA 12 and older up to `sm_90`, else 8.
    pub abi: u8,
    /// Whether it still has to be linked (`-rdc`).
    pub relocatable: bool,
    /// Who made it.
    pub producer: Producer,
    /// The functions that a host can launch, in the order of the symbol table.
    pub kernels: Vec<Function>,
    /// The functions that only other functions call.
    pub device_functions: Vec<Function>,
}

/// A function of a cubin and the resources it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Function {
    /// The name as mangled.
    pub name: String,
    /// Registers per thread, if recorded.
    pub registers: Option<u32>,
    /// Stack per thread in bytes, 0 if not recorded.
    pub stack: u32,
    /// Static shared memory per block in bytes, as NVIDIA's tools show it: with [`Function::shared_reserved`].
    pub shared: u64,
    /// The part of [`Function::shared`] that the system keeps for itself: 1024 on `sm_90` and later where there is any.
    pub shared_reserved: u64,
    /// Bytes of constant bank 0: parameters and what the driver adds.
    pub constant: u64,
    /// Local memory per thread in bytes, without the stack.
    pub local: u64,
    /// Bytes of machine code.
    pub code_size: u64,
}

impl Function {
    /// Static shared memory per block that the source code asks for, in bytes.
    pub fn shared_static(&self) -> u64 {
        self.shared - self.shared_reserved
    }
}

/// Lists a bare cubin as the one entry that it is.
pub(crate) fn list(source: &mut Source, out: &mut Collector, span: Span) -> io::Result<()> {
    let Some(elf) = Elf::read(source, span)? else {
        out.report(span.start, Problem::ObjectHeader);
        return Ok(());
    };
    let known = match elf.sections(source)? {
        Sections::Table { sections, names, .. } => identity::Known::find(source, &sections, names)?,
        Sections::Absent => identity::Known::default(),
        Sections::Outside => {
            out.report(span.start, Problem::CubinTable { reason: "the section table lies outside the file" });
            identity::Known::default()
        }
    };
    let identity = known.read(source, &elf)?;
    let end = elf.end(source)?.unwrap_or(span.len());
    out.push(Entry {
        member: out.member.clone(),
        section: None,
        found_by: out.found_by,
        fatbin: None,
        offset: span.start,
        kind: Kind::Elf,
        arch: identity.arch,
        code_version: CodeVersion { major: 1, minor: u16::from(elf.abi) },
        compression: Compression::None,
        payload: Payload {
            offset: span.start,
            stored_size: span.len(),
            compressed_size: 0,
            uncompressed_size: 0,
            compression: Compression::None,
        },
        image: None,
        identifier: None,
        options: None,
        compat: None,
        debug: known.debug,
        host: Host::Unknown,
        address_bits: elf.address_bits(),
        flags: 0,
        truncated: end > span.len(),
    });
    Ok(())
}

/// Reads a cubin deep. `limit` bounds each of its tables. `None` if it is no GPU ELF.
pub(crate) fn read(source: &mut Source, out: &mut Collector, span: Span, limit: u64) -> io::Result<Option<Cubin>> {
    let Some(elf) = Elf::read(source, span)? else {
        return Ok(None);
    };
    if elf.machine != crate::container::elf::MACHINE_CUDA {
        return Ok(None);
    }
    let (sections, names) = match elf.sections(source)? {
        Sections::Table { sections, names, .. } => (sections, names),
        Sections::Absent => (Vec::new(), Span { start: span.start, end: span.start }),
        Sections::Outside => {
            out.report(0, Problem::CubinTable { reason: "the section table lies outside the file" });
            (Vec::new(), Span { start: span.start, end: span.start })
        }
    };
    let known = identity::Known::find(source, &sections, names)?;
    let identity = known.read(source, &elf)?;
    let mut cubin = Cubin {
        arch: identity.arch,
        abi: elf.abi,
        relocatable: elf.kind == 1,
        producer: identity.producer,
        kernels: Vec::new(),
        device_functions: Vec::new(),
    };
    let tables = functions::Tables { elf: &elf, sections: &sections, names, info: known.info, limit };
    functions::read(source, out, &tables, &mut cubin)?;
    Ok(Some(cubin))
}
