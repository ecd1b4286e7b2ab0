//! The functions of a cubin: from its symbol table, with resources from `.nv.info` and from the sizes of sections.
//!
//! Invariant: the symbol table is found by its type and only its own link is followed, since the links of other sections
//! are stale in some toolkits' output. Every index is checked; tables are read once.

use std::collections::HashMap;
use std::io;

use super::attributes::{Records, of_symbol};
use super::names::Names;
use super::{Cubin, Function};
use crate::bytes::{u16_at, u32_at, u64_at};
use crate::collect::Collector;
use crate::container::elf::{self, Elf, Section};
use crate::diagnostic::Problem;
use crate::source::{Source, Span};

const SYMBOL: usize = 24;
const FUNCTION: u8 = 2;
const OTHER_KERNEL: u8 = 0x10;

const SHARED: &[u8] = b".nv.shared.";
const CONSTANT: &[u8] = b".nv.constant0.";
const LOCAL: &[u8] = b".nv.local.";

const FRAME_SIZE: u8 = 0x11;
const MIN_STACK_SIZE: u8 = 0x12;
const MAX_STACK_SIZE: u8 = 0x23;
const REGISTERS: u8 = 0x2f;

/// From this number on, executables with shared memory have some reserved for the system.
const FIRST_WITH_RESERVED: u32 = 90;
const RESERVED: u64 = 1024;

pub(super) struct Tables<'a> {
    pub(super) elf: &'a Elf,
    pub(super) sections: &'a [Section],
    pub(super) names: Span,
    pub(super) info: Option<Section>,
    /// The largest table that is read, in bytes.
    pub(super) limit: u64,
}

/// Sizes of the sections that belong to one function.
#[derive(Clone, Copy, Default)]
struct Sizes {
    shared: Option<u64>,
    constant: Option<u64>,
    local: Option<u64>,
}

/// What `.nv.info` says of one symbol.
#[derive(Clone, Copy, Default)]
struct Info {
    registers: Option<u32>,
    min_stack: Option<u32>,
    max_stack: Option<u32>,
    frame: Option<u32>,
}

pub(super) fn read(source: &mut Source, out: &mut Collector, tables: &Tables<'_>, cubin: &mut Cubin) -> io::Result<()> {
    let damaged = |out: &mut Collector, reason| out.report(0, Problem::CubinTable { reason });
    let Some(symbols) = tables.sections.iter().find(|section| section.kind == elf::SYMBOLS) else {
        damaged(out, "no symbol table");
        return Ok(());
    };
    let linked = usize::try_from(symbols.link).ok().and_then(|index| tables.sections.get(index));
    let Some(linked) = linked else {
        damaged(out, "the symbol table links to no string table");
        return Ok(());
    };
    let names = Names::new(tables.bytes(source, out, tables.elf.bytes_of(linked), linked.size)?);
    let symbols = tables.bytes(source, out, tables.elf.bytes_of(symbols), symbols.size)?;
    let section_names = Names::new(tables.bytes(source, out, Some(tables.names), 0)?);
    let sizes = tables.sizes(&section_names, out);
    let infos = tables.infos(source, out)?;
    let keeps_reserved = cubin.arch.number >= FIRST_WITH_RESERVED && !cubin.relocatable;
    for (index, symbol) in (0..).zip(symbols.chunks_exact(SYMBOL)) {
        let (kind, other, section) = (symbol[4] & 0xf, symbol[5], u16_at(symbol, 6));
        if kind != FUNCTION || section == 0 {
            continue;
        }
        let Some(name) = names.get(u32_at(symbol, 0)) else {
            damaged(out, "a function's name cannot be read");
            continue;
        };
        let info = infos.get(&index).copied().unwrap_or_default();
        let sizes = sizes.get(name).copied().unwrap_or_default();
        let shared = sizes.shared.unwrap_or(0);
        let function = Function {
            name: String::from_utf8_lossy(name).into_owned(),
            registers: info.registers,
            stack: info.min_stack.or(info.max_stack).or(info.frame).unwrap_or(0),
            shared,
            shared_reserved: if keeps_reserved && shared >= RESERVED { RESERVED } else { 0 },
            constant: sizes.constant.unwrap_or(0),
            local: sizes.local.unwrap_or(0),
            code_size: u64_at(symbol, 16),
        };
        if other & OTHER_KERNEL != 0 {
            cubin.kernels.push(function);
        } else {
            cubin.device_functions.push(function);
        }
    }
    Ok(())
}

impl Tables<'_> {
    /// A table's bytes; reports a table that is cut off or too large.
    fn bytes(
        &self,
        source: &mut Source,
        out: &mut Collector,
        span: Option<Span>,
        declared: u64,
    ) -> io::Result<Vec<u8>> {
        let available = span.map_or(0, Span::len);
        if available < declared {
            out.report(0, Problem::CubinTable { reason: "a table is cut off" });
        }
        match span {
            Some(span) if span.len() <= self.limit => source.read(span),
            Some(_) => {
                out.report(0, Problem::CubinTable { reason: "a table is larger than the limit" });
                Ok(Vec::new())
            }
            None => Ok(Vec::new()),
        }
    }

    /// By the function's name.
    fn sizes<'n>(&self, names: &'n Names, out: &mut Collector) -> HashMap<&'n [u8], Sizes> {
        let mut sizes: HashMap<&[u8], Sizes> = HashMap::new();
        let mut unread = false;
        for section in self.sections.iter().filter(|section| section.kind != elf::NULL) {
            let slot = |prefix: &&[u8]| names.begins(section.name, prefix);
            let Some(prefix) = [SHARED, CONSTANT, LOCAL].into_iter().find(slot) else {
                continue;
            };
            let Some(function) = names.get(section.name).and_then(|name| name.strip_prefix(prefix)) else {
                unread = true;
                continue;
            };
            let sizes = sizes.entry(function).or_default();
            let slot = match prefix {
                SHARED => &mut sizes.shared,
                CONSTANT => &mut sizes.constant,
                _ => &mut sizes.local,
            };
            slot.get_or_insert(section.size);
        }
        if unread {
            out.report(0, Problem::CubinTable { reason: "a section's name cannot be read" });
        }
        sizes
    }

    fn infos(&self, source: &mut Source, out: &mut Collector) -> io::Result<HashMap<u32, Info>> {
        let mut infos: HashMap<u32, Info> = HashMap::new();
        let Some(section) = self.info else {
            return Ok(infos);
        };
        let bytes = self.bytes(source, out, self.elf.bytes_of(&section), section.size)?;
        let mut records = Records::new(&bytes);
        for record in &mut records {
            let Some((symbol, value)) = of_symbol(&record) else {
                continue;
            };
            let slot = match record.attribute {
                REGISTERS => |info: &mut Info, value| info.registers = Some(value),
                MIN_STACK_SIZE => |info: &mut Info, value| info.min_stack = Some(value),
                MAX_STACK_SIZE => |info: &mut Info, value| info.max_stack = Some(value),
                FRAME_SIZE => |info: &mut Info, value| info.frame = Some(value),
                _ => continue,
            };
            slot(infos.entry(symbol).or_default(), value);
        }
        if !records.is_spent() {
            out.report(0, Problem::CubinTable { reason: ".nv.info ends inside a record" });
        }
        Ok(infos)
    }
}
