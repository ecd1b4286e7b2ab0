//! A zstd frame cut into its blocks, without decoding any: where literals, tables and sequences stand.
//!
//! Invariant: ranges lie within the frame, and what a block takes over from earlier ones is there.

use std::ops::Range;

use super::bits::Backward;
use super::fse::{Counts, Table};
use super::huffman;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
pub(super) const MAX_BLOCK: usize = 128 << 10;

const SHORTEST_COPY: u64 = 3;
const MAX_SEQUENCES: usize = MAX_BLOCK / 3;

/// Where a block's literals are.
#[derive(Clone)]
pub(super) enum Literals {
    Raw(Range<usize>),
    Repeated { byte: u8, count: usize },
    Packed { tree: Range<usize>, data: Range<usize>, size: usize, streams: usize },
}

impl Literals {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Raw(range) => range.len(),
            Self::Repeated { count, .. } => *count,
            Self::Packed { size, .. } => *size,
        }
    }
}

pub(super) struct Block {
    pub(super) literals: Literals,
    /// How many sequences; 0 if all is literals.
    pub(super) sequences: usize,
    /// How many sequences the blocks before have.
    pub(super) before: usize,
    /// The description of its tables and the sequences.
    packed: Range<usize>,
    modes: u8,
    /// For each table, the block that describes it; its own index but where it is taken over.
    sources: [u32; 3],
}

/// The tables for runs of literals, distances and copies.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) tables: [Table; 3],
}

/// Cuts a frame with `size` bytes of content.
pub(super) fn cut(bytes: &[u8], size: u64) -> Option<Vec<Block>> {
    let mut at = header(bytes, size)?;
    let mut blocks = Vec::new();
    let mut tree = None;
    let mut sources = [None; 3];
    let mut sequences = 0;
    loop {
        let head = bytes.get(at..at + 3)?;
        let head = u32::from(head[0]) | u32::from(head[1]) << 8 | u32::from(head[2]) << 16;
        let (last, kind, length) = (head & 1 != 0, head >> 1 & 3, (head >> 3) as usize);
        at += 3;
        if length > MAX_BLOCK {
            return None;
        }
        let stored = if kind == 1 { 1 } else { length };
        let range = at..at.checked_add(stored)?;
        let own = bytes.get(range.clone())?;
        at = range.end;
        let before = sequences;
        let plain = |literals| Block { literals, sequences: 0, before, packed: 0..0, modes: 0, sources: [0; 3] };
        let block = match kind {
            0 => plain(Literals::Raw(range)),
            1 => plain(Literals::Repeated { byte: own[0], count: length }),
            2 => packed(bytes, range, u32::try_from(blocks.len()).ok()?, &mut tree, &mut sources)?,
            _ => return None,
        };
        // Each copies some bytes, so there are no more than the content has room for.
        sequences += block.sequences;
        if sequences as u64 > size / SHORTEST_COPY {
            return None;
        }
        blocks.push(Block { before, ..block });
        if last {
            break;
        }
    }
    (at == bytes.len()).then_some(blocks)
}

fn header(bytes: &[u8], size: u64) -> Option<usize> {
    let rest = bytes.strip_prefix(&MAGIC)?;
    let descriptor = *rest.first()?;
    let single = descriptor & 0x20 != 0;
    // No checksum, no dictionary, no reserved bit.
    if descriptor & 0x0f != 0 {
        return None;
    }
    let length = match descriptor >> 6 {
        0 => usize::from(single),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let start = 1 + usize::from(!single);
    let content = rest.get(start..start + length)?.iter().rev().fold(0, |size, byte| size << 8 | u64::from(*byte));
    let content = content + if length == 2 { 256 } else { 0 };
    (length == 0 || content == size).then_some(4 + start + length)
}

fn packed(
    bytes: &[u8],
    block: Range<usize>,
    index: u32,
    tree: &mut Option<Range<usize>>,
    sources: &mut [Option<u32>; 3],
) -> Option<Block> {
    let (literals, rest) = literals(bytes, block, tree)?;
    let own = &bytes[rest.clone()];
    let at = |index: usize| own.get(index).map(|byte| usize::from(*byte));
    let (sequences, used) = match at(0)? {
        0 if own.len() == 1 => (0, 1),
        first @ 1..128 => (first, 1),
        first @ 128..255 => (((first - 128) << 8) + at(1)?, 2),
        255 => (at(1)? + (at(2)? << 8) + 0x7f00, 3),
        _ => return None,
    };
    if sequences == 0 {
        return (own.len() == 1).then_some(Block {
            literals,
            sequences,
            before: 0,
            packed: 0..0,
            modes: 0,
            sources: [0; 3],
        });
    }
    let modes = *own.get(used)?;
    if modes & 3 != 0 || sequences > MAX_SEQUENCES || literals.len() > MAX_BLOCK {
        return None;
    }
    for (table, source) in sources.iter_mut().enumerate() {
        if mode(modes, table) != 3 {
            *source = Some(index);
        }
    }
    let [Some(runs), Some(distances), Some(copies)] = *sources else { return None };
    Some(Block {
        literals,
        sequences,
        before: 0,
        packed: rest.start + used + 1..rest.end,
        modes,
        sources: [runs, distances, copies],
    })
}

fn mode(modes: u8, table: usize) -> u8 {
    modes >> (6 - 2 * table) & 3
}

/// The literals of a block, and the range of what follows.
fn literals(bytes: &[u8], block: Range<usize>, tree: &mut Option<Range<usize>>) -> Option<(Literals, Range<usize>)> {
    let own = &bytes[block.clone()];
    let first = *own.first()?;
    let (kind, format) = (first & 3, first >> 2 & 3);
    let (head, width, streams) = match (kind < 2, format) {
        (true, 0 | 2) => (1, 5, 0),
        (true, 1) => (2, 12, 0),
        (true, _) => (3, 20, 0),
        (false, 0) => (3, 10, 1),
        (false, 1) => (3, 10, 4),
        (false, 2) => (4, 14, 4),
        (false, _) => (5, 18, 4),
    };
    let raw = own.get(..head)?.iter().rev().fold(0u64, |raw, byte| raw << 8 | u64::from(*byte));
    let mask = (1u64 << width) - 1;
    // One bit of the format belongs to the size where that is short.
    let size = usize::try_from(raw >> if width == 5 { 3 } else { 4 } & mask).ok()?;
    let mut start = block.start + head;
    let within = |end: usize| Some(end).filter(|end| *end <= block.end);
    if kind < 2 {
        let end = within(start.checked_add(if kind == 0 { size } else { 1 })?)?;
        let literals = match kind {
            0 => Literals::Raw(start..end),
            _ => Literals::Repeated { byte: bytes[start], count: size },
        };
        return Some((literals, end..block.end));
    }
    let packed = usize::try_from(raw >> (4 + width) & mask).ok()?;
    let end = within(start.checked_add(packed)?)?;
    if kind == 2 {
        let length = huffman::description(&bytes[start..end])?;
        *tree = Some(start..start + length);
        start += length;
    }
    let tree = tree.clone()?;
    Some((Literals::Packed { tree, data: start..end, size, streams }, end..block.end))
}

impl Tables {
    /// Fills in the tables of a block, and gives its stream of sequences.
    pub(super) fn fill<'a>(&mut self, bytes: &'a [u8], blocks: &[Block], index: usize) -> Option<Backward<'a>> {
        let block = blocks.get(index)?;
        for (table, source) in self.tables.iter_mut().zip(0..) {
            let of: usize = block.sources[source] as usize;
            if of != index {
                blocks.get(of)?.describe(bytes, |which, description| {
                    if which == source { description.fill(table, which) } else { Some(()) }
                })?;
            }
        }
        let used = block.describe(bytes, |which, description| description.fill(&mut self.tables[which], which))?;
        Backward::new(bytes.get(block.packed.clone())?.get(used..)?)
    }
}

#[expect(clippy::large_enum_variant, reason = "it lives for one call")]
enum Description {
    Fixed,
    Single(u8),
    Counted(Counts),
}

impl Block {
    /// Walks through the descriptions of tables that it has; gives the bytes they take.
    fn describe(&self, bytes: &[u8], mut each: impl FnMut(usize, Description) -> Option<()>) -> Option<usize> {
        let own = bytes.get(self.packed.clone())?;
        let mut used = 0;
        for (table, (_, _, max_log, codes)) in KINDS.iter().enumerate() {
            let description = match mode(self.modes, table) {
                0 => Description::Fixed,
                1 => {
                    used += 1;
                    Description::Single(*own.get(used - 1)?)
                }
                2 => {
                    let (counts, length) = Counts::read(own.get(used..)?, *max_log, codes.len() - 1)?;
                    used += length;
                    Description::Counted(counts)
                }
                _ => continue,
            };
            each(table, description)?;
        }
        Some(used)
    }
}

impl Description {
    fn fill(self, table: &mut Table, which: usize) -> Option<()> {
        let (fixed, fixed_log, _, codes) = KINDS[which];
        match self {
            Self::Fixed => table.fill(&Counts::fixed(fixed, fixed_log), codes),
            Self::Single(code) => {
                table.fill_single(*codes.get(usize::from(code))?);
                Some(())
            }
            Self::Counted(counts) => table.fill(&counts, codes),
        }
    }
}

/// Of each table: the fixed distribution, its accuracy, the highest accuracy, and what the codes stand for.
type Kind = (&'static [i16], u32, u32, &'static [(u32, u8)]);

static KINDS: [Kind; 3] =
    [(&RUNS, 6, 9, &RUN_CODES), (&DISTANCES, 5, 8, &DISTANCE_CODES), (&COPIES, 6, 9, &COPY_CODES)];

const RUNS: [i16; 36] =
    [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1];
const COPIES: [i16; 53] = [
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
];
const DISTANCES: [i16; 29] =
    [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1];

/// Smallest value and further bits, by code.
static RUN_CODES: [(u32, u8); 36] = codes(&[1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 16, 0);
static COPY_CODES: [(u32, u8); 53] =
    codes(&[1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 32, 3);
/// A code of 31 would go beyond the sizes that are read here.
static DISTANCE_CODES: [(u32, u8); 31] = powers();

/// Codes below `plain` are values from `smallest` on; each later one begins where the one before ends.
const fn codes<const N: usize>(extra: &[u8], plain: usize, smallest: u32) -> [(u32, u8); N] {
    let mut codes = [(0, 0); N];
    let mut index = 0;
    let mut base = smallest;
    while index < N {
        let bits = if index < plain { 0 } else { extra[index - plain] };
        codes[index] = (base, bits);
        base += 1 << bits;
        index += 1;
    }
    codes
}

const fn powers() -> [(u32, u8); 31] {
    let mut codes = [(0, 0); 31];
    let mut index = 0;
    while index < 31 {
        codes[index] = (1 << index, index as u8);
        index += 1;
    }
    codes
}
