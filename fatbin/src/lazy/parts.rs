//! What is known of a frame's content: its front, its end, and single blocks between them.
//!
//! Invariant: positions known from the front and from the end agree where they meet; `steps` bounds the work of
//! following copies.

mod fetch;

use self::fetch::Step;
use super::block::{Block, Literals, MAX_BLOCK};
use super::huffman::Huffman;
use super::known::Known;
use super::sequences::{
    FIRST_RECENT, Raw, Recent, Stream, UNKNOWN_RECENT, decode, decode_two, distance, each, is_known, resolved,
};
use super::{STRIDE, Scratch};

/// More steps than any honest part of a frame takes, per byte of it.
const STEPS_PER_BYTE: usize = 8;

/// The most sequences that are kept; above, unpacking the whole is better.
const MAX_KEPT: usize = 4 << 20;

/// Sequences at the end of a block that mostly hold the distances used last.
const FEW: usize = 32;

pub(super) struct Parts<'a> {
    bytes: &'a [u8],
    size: usize,
    blocks: Vec<Block>,
    /// The content, as far as it is known; the rest is whatever was there.
    content: Vec<u8>,
    /// The content of the first `front_blocks` blocks is known, up to here.
    front: usize,
    front_blocks: usize,
    /// Further bytes that are known.
    known: Known,
    /// The distances used last, at the start of each block, where they are known.
    recent: Vec<Option<Recent>>,
    /// Where each block from `low` on starts, and the end of the last.
    starts: Vec<usize>,
    low: usize,
    details: Vec<Option<Detail>>,
    literals: Vec<Option<Vec<u8>>>,
    kept: usize,
    steps: usize,
    work: Vec<Step>,
    scratch: Scratch,
}

/// The sequences of one block, as far as they were asked for.
struct Detail {
    sequences: Vec<Sequence>,
    end: u32,
    literal: u32,
    /// The distances used last, at `end`.
    recent: Recent,
}

impl Detail {
    const EMPTY: Self = Self { sequences: Vec::new(), end: 0, literal: 0, recent: UNKNOWN_RECENT };

    /// Goes on until a position, from the start of the block, is covered.
    fn extend(&mut self, raw: &[Raw], literals: usize, until: u32) -> Option<()> {
        if self.end > until {
            return Some(());
        }
        for raw in raw.get(self.sequences.len()..)? {
            let distance = distance(&mut self.recent, raw.value(), raw.run());
            self.end += raw.run() + raw.copied();
            self.sequences.push(Sequence { end: self.end, copied: raw.copied(), distance, literal: self.literal });
            self.literal += raw.run();
            if self.end > until {
                return Some(());
            }
        }
        let left = (literals as u32).checked_sub(self.literal).filter(|left| *left > 0)?;
        self.end += left;
        self.sequences.push(Sequence { end: self.end, copied: 0, distance: 0, literal: self.literal });
        (self.end > until).then_some(())
    }
}

/// Literals, then a copy of earlier content. The last of a block may have no copy.
#[derive(Clone, Copy)]
struct Sequence {
    /// Where its content ends, from the start of the block.
    end: u32,
    /// Bytes that are copied, at its end.
    copied: u32,
    /// How far back they are copied from.
    distance: u32,
    /// Literals of the block before its own.
    literal: u32,
}

impl<'a> Parts<'a> {
    pub(super) fn new(bytes: &'a [u8], size: usize, blocks: Vec<Block>, mut scratch: Scratch) -> Self {
        let mut content = std::mem::take(&mut scratch.content);
        if content.len() < size {
            // Zeros from the system cost nothing until they are touched.
            content = vec![0; size];
        }
        let sequences = blocks.last().map_or(0, |block| block.before + block.sequences);
        if scratch.raw.len() < sequences {
            scratch.raw = vec![Raw::default(); sequences];
        }
        let mut known = std::mem::take(&mut scratch.known);
        known.clear(size);
        let count = blocks.len();
        let mut recent = vec![None; count + 1];
        recent[0] = Some(FIRST_RECENT);
        Self {
            bytes,
            size,
            blocks,
            content,
            front: 0,
            front_blocks: 0,
            known,
            recent,
            starts: vec![size; count + 1],
            low: count,
            details: std::iter::repeat_with(|| None).take(count).collect(),
            literals: vec![None; count],
            kept: 0,
            steps: size.saturating_mul(STEPS_PER_BYTE).saturating_add(1 << 16),
            work: Vec::new(),
            scratch,
        }
    }

    pub(super) fn scratch(mut self) -> Scratch {
        self.scratch.content = self.content;
        self.scratch.known = self.known;
        self.scratch
    }

    /// Content; `None` if it is broken or too much work.
    pub(super) fn read(&mut self, at: usize, end: usize) -> Option<&[u8]> {
        if at <= self.front.saturating_add(STRIDE) {
            self.extend_front(end)?;
        } else {
            self.fetch(at, end)?;
        }
        self.content.get(at..end)
    }

    /// Puts the front together up to `end` at least.
    fn extend_front(&mut self, end: usize) -> Option<()> {
        while self.front < end {
            let (index, start) = (self.front_blocks, self.front);
            let block = self.blocks.get(index)?;
            let mut recent = self.recent[index]?;
            let scratch = &mut self.scratch;
            let literals = unpacked(self.bytes, &block.literals, &mut scratch.literals)?;
            let most = self.size.min(start + MAX_BLOCK);
            let content = self.content.get_mut(..most)?;
            let (mut at, mut used) = (start, 0);
            if block.sequences > 0 {
                let bits = scratch.tables[0].fill(self.bytes, &self.blocks, index)?;
                each(&scratch.tables[0], bits, block.sequences, |run, copied, value| {
                    let (run, copied) = (run as usize, copied as usize);
                    let from = literals.get(used..used + run)?;
                    content.get_mut(at..at + run)?.copy_from_slice(from);
                    (at, used) = (at + run, used + run);
                    let distance = distance(&mut recent, value, run as u32) as usize;
                    repeat(content, at, distance, copied)?;
                    at += copied;
                    Some(())
                })?;
            }
            let rest = literals.get(used..)?;
            content.get_mut(at..at + rest.len())?.copy_from_slice(rest);
            self.front = at + rest.len();
            self.front_blocks += 1;
            self.recent[index + 1] = Some(recent);
            if self.front_blocks == self.blocks.len() && self.front != self.size {
                return None;
            }
            self.agree()?;
        }
        Some(())
    }

    /// Whether what is known from both ends fits together.
    fn agree(&self) -> Option<()> {
        (self.front_blocks < self.low || self.starts[self.front_blocks] == self.front).then_some(())
    }

    /// Decodes the sequences of the last one or two blocks whose place is not known, and so finds it.
    fn lower(&mut self) -> Option<()> {
        let last = self.low.checked_sub(1).filter(|index| *index >= self.front_blocks)?;
        let packed = |index: &usize| self.blocks[*index].sequences > 0;
        let two = last.checked_sub(1).filter(|first| *first >= self.front_blocks && packed(first) && packed(&last));
        let (bytes, blocks) = (self.bytes, &self.blocks);
        let [tables, others] = &mut self.scratch.tables;
        let (from, end) = (blocks[two.unwrap_or(last)].before, blocks[last].before + blocks[last].sequences);
        let raw = self.scratch.raw.get_mut(from..end)?;
        let copied = if let Some(first) = two {
            let (bits, bits_of_first) = (tables.fill(bytes, blocks, last)?, others.fill(bytes, blocks, first)?);
            let (of_first, of_last) = raw.split_at_mut(blocks[first].sequences);
            let (one, other) = (Stream { tables, bits }, Stream { tables: others, bits: bits_of_first });
            decode_two(one, other, [of_last, of_first])?.map(Some)
        } else if packed(&last) {
            let bits = tables.fill(bytes, blocks, last)?;
            [Some(decode(Stream { tables, bits }, raw)?), None]
        } else {
            [Some(0), None]
        };
        for copied in copied.into_iter().flatten() {
            let index = self.low - 1;
            self.starts[index] = self.starts[self.low].checked_sub(copied + self.blocks[index].literals.len())?;
            self.low = index;
        }
        self.agree()
    }

    /// The block that holds a position, by way of measuring blocks from the end on.
    fn block_at(&mut self, at: usize) -> Option<usize> {
        while self.starts[self.low] > at {
            self.lower()?;
        }
        let index = self.low + self.starts[self.low..].partition_point(|start| *start <= at);
        index.checked_sub(1).filter(|index| *index < self.blocks.len())
    }

    /// Sees to it that the sequences of a block are there up to a position in it.
    fn detail(&mut self, index: usize, inside: u32) -> Option<&[Sequence]> {
        let block = &self.blocks[index];
        let raw = self.scratch.raw.get(block.before..block.before + block.sequences)?;
        let detail = self.details[index].get_or_insert(Detail::EMPTY);
        let had = detail.sequences.len();
        detail.extend(raw, block.literals.len(), inside)?;
        let new = detail.sequences.len() - had;
        self.steps = self.steps.checked_sub(new)?;
        self.kept += new;
        (self.kept <= MAX_KEPT).then_some(&detail.sequences)
    }

    /// The distances used last at the start of a block.
    fn recent_at(&mut self, index: usize) -> Option<Recent> {
        // Back to where they are known, or to a block that leaves nothing unknown behind.
        let mut first = index;
        let mut left_behind = Vec::new();
        while self.recent[first].is_none() {
            first = first.checked_sub(1)?;
            if first < self.low {
                self.lower()?;
            }
            let at_end = self.recent_behind(first)?;
            if at_end.into_iter().all(is_known) {
                first += 1;
                self.recent[first] = Some(at_end);
            } else {
                left_behind.push(at_end);
            }
        }
        for (index, at_end) in (first..).zip(left_behind.into_iter().rev()) {
            let before = self.recent[index]?;
            self.recent[index + 1] = Some(at_end.map(|distance| resolved(distance, before)));
        }
        self.recent[index]
    }

    /// The distances used last at the end of a block, by those at its start.
    fn recent_behind(&mut self, index: usize) -> Option<Recent> {
        let block = &self.blocks[index];
        let raw = self.scratch.raw.get(block.before..block.before + block.sequences)?;
        // The last few sequences mostly tell.
        let few = raw.len().saturating_sub(FEW);
        let behind = |raw: &[Raw]| {
            let mut recent = UNKNOWN_RECENT;
            for raw in raw {
                distance(&mut recent, raw.value(), raw.run());
            }
            recent
        };
        let recent = behind(&raw[few..]);
        if few == 0 || recent.into_iter().all(is_known) {
            return Some(recent);
        }
        self.steps = self.steps.checked_sub(raw.len())?;
        Some(behind(raw))
    }

    /// The block and the sequence of it that hold a position.
    fn sequence(&mut self, at: usize) -> Option<(usize, usize)> {
        let index = self.block_at(at)?;
        let inside = (at - self.starts[index]) as u32;
        let sequences = self.detail(index, inside)?;
        Some((index, sequences.partition_point(|sequence| sequence.end <= inside)))
    }
}

/// The literals of a block, unpacked into `out` where they are packed.
fn unpacked<'o>(bytes: &'o [u8], literals: &Literals, out: &'o mut Vec<u8>) -> Option<&'o [u8]> {
    match literals {
        Literals::Raw(place) => return bytes.get(place.clone()),
        Literals::Repeated { byte, count } => {
            out.clear();
            out.resize(*count, *byte);
        }
        Literals::Packed { tree, data, size, streams } => {
            let tree = Huffman::read(bytes.get(tree.clone())?)?;
            tree.decode(bytes.get(data.clone())?, *size, *streams, out)?;
        }
    }
    Some(out)
}

/// Copies `length` bytes to `at` from `distance` before; they may run into themselves.
#[inline(always)]
fn repeat(content: &mut [u8], at: usize, distance: usize, length: usize) -> Option<()> {
    let from = at.checked_sub(distance).filter(|from| *from < at)?;
    if length > content.len() - at {
        return None;
    }
    let mut done = 0;
    while done < length {
        let part = (distance + done).min(length - done);
        content.copy_within(from..from + part, at + done);
        done += part;
    }
    Some(())
}
