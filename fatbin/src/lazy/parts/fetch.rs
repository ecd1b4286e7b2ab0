//! Content made known piece by piece: copies are followed back to bytes that are known or to literals.
//!
//! Invariant: each byte is made known once, so the work is bounded by the content and by `steps`, not by how deep copies
//! of copies go.

use super::super::block::Literals;
use super::super::sequences::{is_known, resolved};
use super::{Parts, STRIDE, unpacked};

/// The most steps that wait for others.
const MAX_WORK: usize = 1 << 20;

/// A piece of work: content that must be known, or that is a copy of what is known by then.
pub(super) enum Step {
    Need {
        from: usize,
        end: usize,
    },
    Copy {
        source: usize,
        to: usize,
        length: usize,
    },
    /// Everything from `copy_start` on repeats the `period` bytes before it.
    Repeat {
        copy_start: usize,
        period: usize,
        to: usize,
        end: usize,
    },
}

impl Parts<'_> {
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
    pub(super) fn fetch(&mut self, at: usize, end: usize) -> Option<()> {
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
            let inside = at - block_start;
            if inside >= self.starts[index + 1] - block_start {
                self.work.push(Step::Need { from: at, end });
                break;
            }
            let sequences = self.detail(index, inside as u32)?;
            let sequence = *sequences.get(which)?;
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
