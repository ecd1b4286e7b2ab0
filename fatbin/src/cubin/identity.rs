//! What a cubin says of itself: architecture, suffix and maker, from its header and a few small sections.
//!
//! Invariant: only bits that were seen to be reliable count; the top byte of the flags and old uses of the suffix bit
//! do not. A fatbin entry's own header is better evidence and is not looked at here.

use std::io;

use super::attributes::{self, Records};
use super::notes;
use crate::arch::{Arch, Suffix};
use crate::container::elf::{self, Elf, Section};
use crate::source::{Source, Span};
use crate::toolkit::{Producer, Toolkit};

const INFO: u32 = 0x7000_0000;
const COMPAT: u32 = 0x7000_0086;
const COMPAT_SUFFIX_A: u8 = 9;

const FLAG_A_ABI_7: u32 = 0x800;
const FLAG_A_ABI_8: u32 = 0x8;

/// Before this number there are no suffixes, but the same bit occurs with another meaning.
const FIRST_WITH_SUFFIX: u32 = 90;

/// Far above the size of any of the small sections read here.
const MAX_SMALL: u64 = 64 << 10;

/// The sections with a meaning of their own.
#[derive(Default)]
pub(super) struct Known {
    pub(super) info: Option<Section>,
    pub(super) debug: bool,
    compat: Option<Section>,
    tool: Option<Section>,
    version: Option<Section>,
}

pub(super) struct Identity {
    pub(super) arch: Arch,
    pub(super) producer: Producer,
}

impl Known {
    pub(super) fn find(source: &mut Source, sections: &[Section], names: Span) -> io::Result<Self> {
        let mut known = Self::default();
        for section in sections.iter().filter(|section| section.kind != elf::NULL) {
            let name = elf::short_name(source, names, section)?;
            let slot = match (name.as_slice(), section.kind) {
                (b".nv.info", INFO) => &mut known.info,
                (b".nv.compat", COMPAT) => &mut known.compat,
                (b".note.nv.tkinfo", _) => &mut known.tool,
                (b".note.nv.cuinfo", _) => &mut known.version,
                (b".debug_info", _) => {
                    known.debug = true;
                    continue;
                }
                _ => continue,
            };
            slot.get_or_insert(*section);
        }
        Ok(known)
    }

    pub(super) fn read(&self, source: &mut Source, elf: &Elf) -> io::Result<Identity> {
        let small = |section: Option<Section>| -> io::Result<Vec<u8>> {
            let bytes = section.and_then(|section| elf.bytes_of(&section));
            let bytes = bytes.and_then(|bytes| bytes.clip(0, MAX_SMALL));
            bytes.map_or(Ok(Vec::new()), |bytes| source.read(bytes))
        };
        let (compat, tool, version) = (small(self.compat)?, small(self.tool)?, small(self.version)?);
        let mut producer = notes::tool(&tool).unwrap_or_default();
        if producer.toolkit.is_none() {
            let old = (elf.abi < 8).then(|| Toolkit::from_tenths(elf.version & 0xff)).flatten();
            producer.toolkit = notes::toolkit(&version).or(old);
        }
        let number = if elf.abi < 8 { elf.flags & 0xff } else { elf.flags >> 8 & 0xff };
        let flag = if elf.abi < 8 { FLAG_A_ABI_7 } else { FLAG_A_ABI_8 };
        let suffix = if number < FIRST_WITH_SUFFIX {
            Suffix::None
        } else if elf.flags & flag != 0 || compat_says_a(&compat) {
            Suffix::A
        } else if names_family(&producer, number) {
            Suffix::F
        } else {
            Suffix::None
        };
        Ok(Identity { arch: Arch::new(number, suffix), producer })
    }
}

fn compat_says_a(compat: &[u8]) -> bool {
    Records::new(compat).any(|record| record.attribute == COMPAT_SUFFIX_A && attributes::short(&record) == Some(1))
}

/// No structure holds the family suffix; the command line of the maker does.
fn names_family(producer: &Producer, number: u32) -> bool {
    let family = Ok(Arch::new(number, Suffix::F));
    let options = producer.options.as_deref().unwrap_or_default();
    options.split_ascii_whitespace().any(|word| word.parse() == family)
}
