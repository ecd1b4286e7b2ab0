//! What is known of a frame's content: its front, its end, and single blocks between them.
//!
//! Invariant: positions known from the front and from the end agree where they meet; `steps` bounds the work of
//! following copies.

use super::block::{Block, Literals, MAX_BLOCK};
use super::huffman::Huffman;
use super::known::Known;
use super::sequences::{
    FIRST_RECENT, Recent, Stream, UNKNOWN_RECENT, distance, each, is_known, measure, measure_two, resolved,
};
use super::{STRIDE, Scratch};

/// More steps than any honest part of a frame takes, per byte of it.
const STEPS_PER_BYTE: usize = 8;

/// The most sequences that are kept; above, unpacking the whole is better.
const MAX_KEPT: usize = 4 << 20;

/// The most steps that wait for others.
const MAX_WORK: usize = 1 << 20;

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

/// The sequences of one block.
struct Detail {
    sequences: Vec<Sequence>,
    /// The distances used last, at its end.
    recent: Recent,
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

/// A piece of work: content that must be known, or that is a copy of what is known by then.
pub(super) enum Step {
    Need { from: usize, end: usize },
    Copy { source: usize, to: usize, length: usize },
    /// Everything from `copy_start` on repeats the `period` bytes before it.
    Repeat { copy_start: usize, period: usize, to: usize, end: usize },
}

impl<'a> Parts<'a> {
    pub(super) fn new(bytes: &'a [u8], size: usize, blocks: Vec<Block>, mut scratch: Scratch) -> Self {
        let mut content = std::mem::take(&mut scratch.content);
        if content.len() < size {
            // Zeros from the system cost nothing until they are touched.
            content = vec![0; size];
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

    /// Measures the last one or two blocks whose place is not known.
    fn lower(&mut self) -> Option<()> {
        let index = self.low.checked_sub(1).filter(|index| *index >= self.front_blocks)?;
        let two = index.checked_sub(1).filter(|before| {
            *before >= self.front_blocks && self.blocks[*before].sequences > 0 && self.blocks[index].sequences > 0
        });
        let [of_index, of_before] = &mut self.scratch.tables;
        let stream = |tables, bits, index: usize| Stream { tables, bits, count: self.blocks[index].sequences };
        let (copied, copied_before) = if let Some(before) = two {
            let bits = of_index.fill(self.bytes, &self.blocks, index)?;
            let bits_before = of_before.fill(self.bytes, &self.blocks, before)?;
            let [copied, copied_before] =
                measure_two(stream(of_index, bits, index), stream(of_before, bits_before, before))?;
            (copied, Some(copied_before))
        } else if self.blocks[index].sequences > 0 {
            let bits = of_index.fill(self.bytes, &self.blocks, index)?;
            (measure(stream(of_index, bits, index))?, None)
        } else {
            (0, None)
        };
        for copied in [Some(copied), copied_before].into_iter().flatten() {
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

    /// Sees to it that the sequences of a block are there.
    fn detail(&mut self, index: usize) -> Option<()> {
        if self.details[index].is_some() {
            return Some(());
        }
        let block = &self.blocks[index];
        self.steps = self.steps.checked_sub(block.sequences)?;
        self.kept += block.sequences;
        if self.kept > MAX_KEPT {
            return None;
        }
        let mut sequences = Vec::with_capacity(block.sequences + 1);
        let mut recent = UNKNOWN_RECENT;
        let (mut end, mut literal) = (0, 0);
        if block.sequences > 0 {
            let bits = self.scratch.tables[0].fill(self.bytes, &self.blocks, index)?;
            each(&self.scratch.tables[0], bits, block.sequences, |run, copied, value| {
                let distance = distance(&mut recent, value, run);
                end += run + copied;
                sequences.push(Sequence { end, copied, distance, literal });
                literal += run;
                (end as usize <= MAX_BLOCK).then_some(())
            })?;
        }
        let left = (block.literals.len() as u32).checked_sub(literal)?;
        if left > 0 {
            sequences.push(Sequence { end: end + left, copied: 0, distance: 0, literal });
        }
        self.details[index] = Some(Detail { sequences, recent });
        Some(())
    }

    /// The distances used last at the start of a block.
    fn recent_at(&mut self, index: usize) -> Option<Recent> {
        let mut first = index;
        while self.recent[first].is_none() {
            first = first.checked_sub(1)?;
            self.detail(first)?;
            let at_end = self.details[first].as_ref()?.recent;
            if at_end.into_iter().all(is_known) {
                first += 1;
                self.recent[first] = Some(at_end);
            }
        }
        for index in first..index {
            let before = self.recent[index]?;
            let at_end = self.details[index].as_ref()?.recent;
            self.recent[index + 1] = Some(at_end.map(|distance| resolved(distance, before)));
        }
        self.recent[index]
    }

    /// The block and the sequence of it that hold a position.
    fn sequence(&mut self, at: usize) -> Option<(usize, usize)> {
        let index = self.block_at(at)?;
        self.detail(index)?;
        let inside = (at - self.starts[index]) as u32;
        let sequences = &self.details[index].as_ref()?.sequences;
        Some((index, sequences.partition_point(|sequence| sequence.end <= inside)))
    }

    /// Copies literals of a block into the content.
    fn copy_literals(&mut self, index: usize, from: usize, to: usize, length: usize) -> Option<()> {
        let into = self.content.get_mut(to..to + length)?;
        let range = from..from + length;
        match &self.blocks[index].literals {
            Literals::Raw(place) => into.copy_from_slice(self.bytes.get(place.clone())?.get(range)?),
            Literals::Repeated { byte, count } => {
                if range.end > *count {
                    return None;
                }
                into.fill(*byte);
            }
            packed @ Literals::Packed { .. } => {
                let literals = match &mut self.literals[index] {
                    Some(literals) => literals,
                    none @ None => {
                        let mut literals = Vec::new();
                        unpacked(self.bytes, packed, &mut literals)?;
                        none.insert(literals)
                    }
                };
                into.copy_from_slice(literals.get(range)?);
            }
        }
        Some(())
    }

    /// Makes content known by following copies to where their bytes are.
    fn fetch(&mut self, at: usize, end: usize) -> Option<()> {
        self.work.clear();
        self.work.push(Step::Need { from: at, end });
        while let Some(step) = self.work.pop() {
            self.steps = self.steps.checked_sub(1)?;
            match step {
                Step::Copy { source, to, length } => {
                    self.content.copy_within(source..source + length, to);
                    self.known.set(to, to + length);
                }
                Step::Repeat { copy_start, period, to, end } => {
                    let mut source = copy_start - period + (to - copy_start) % period;
                    for at in to..end {
                        self.content[at] = self.content[source];
                        source += 1;
                        if source == copy_start {
                            source -= period;
                        }
                    }
                    self.known.set(to, end);
                }
                Step::Need { from, end } => self.need(from.max(self.front), end)?,
            }
        }
        Some(())
    }

    /// Makes content known, or puts down the steps that will.
    fn need(&mut self, from: usize, end: usize) -> Option<()> {
        let Some(mut at) = self.known.first_unknown(from, end) else { return Some(()) };
        if self.low > self.front_blocks && at < self.front + STRIDE {
            self.extend_front(at + 1)?;
            self.work.push(Step::Need { from: self.front, end });
            return Some(());
        }
        let (index, mut which) = self.sequence(at)?;
        let block_start = self.starts[index];
        while at < end {
            self.steps = self.steps.checked_sub(1)?;
            let sequences = &self.details[index].as_ref()?.sequences;
            let Some(sequence) = sequences.get(which).copied() else {
                self.work.push(Step::Need { from: at, end });
                break;
            };
            let start = block_start + which.checked_sub(1).map_or(0, |before| sequences[before].end as usize);
            which += 1;
            let sequence_end = block_start + sequence.end as usize;
            let copy_start = sequence_end - sequence.copied as usize;
            if at < copy_start {
                let part = end.min(copy_start);
                self.copy_literals(index, sequence.literal as usize + at - start, at, part - at)?;
                self.known.set(at, part);
                at = part;
            }
            let part = end.min(sequence_end);
            if at == part {
                continue;
            }
            let mut distance = sequence.distance;
            if !is_known(distance) {
                distance = resolved(distance, self.recent_at(index)?);
            }
            let distance = (distance as usize).clamp(0, copy_start);
            if distance == 0 {
                return None;
            }
            // A copy that runs into itself needs one period only.
            let (step, low, high) = if part - distance > copy_start {
                let step = Step::Repeat { copy_start, period: distance, to: at, end: part };
                (step, copy_start - distance, copy_start)
            } else {
                let source = at - distance;
                (Step::Copy { source, to: at, length: part - at }, source, part - distance)
            };
            if self.known.first_unknown(low.max(self.front), high).is_some() {
                // First what is copied, then the copy, then what comes behind it.
                if self.work.len() > MAX_WORK {
                    return None;
                }
                if part < end {
                    self.work.push(Step::Need { from: part, end });
                }
                self.work.push(step);
                self.work.push(Step::Need { from: low, end: high });
                break;
            }
            if let Step::Copy { source, to, length } = step {
                self.content.copy_within(source..source + length, to);
                self.known.set(to, to + length);
            } else {
                self.work.push(Step::Need { from: part, end });
                self.work.push(step);
                break;
            }
            at = part;
        }
        Some(())
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
