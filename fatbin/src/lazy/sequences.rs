//! The sequences of a block: runs of literals and copies, decoded in full or only measured.
//!
//! Invariant: a stream that does not end where its last sequence ends gives `None`.

use super::bits::{Backward, top};
use super::block::{MAX_BLOCK, Tables};
use super::fse::State;

/// Bits that a window surely holds.
const WINDOW: u32 = 57;

/// One block's sequences while they are decoded.
struct Cursor<'a, 't> {
    tables: &'t Tables,
    bits: Backward<'a>,
    run: State,
    distance: State,
    copy: State,
}

impl<'a, 't> Cursor<'a, 't> {
    fn new(tables: &'t Tables, mut bits: Backward<'a>) -> Self {
        let [runs, distances, copies] = &tables.tables;
        let run = runs.state(bits.read(runs.log) as usize);
        let distance = distances.state(bits.read(distances.log) as usize);
        let copy = copies.state(bits.read(copies.log) as usize);
        Self { tables, bits, run, distance, copy }
    }

    /// The values of the sequence: run, copied, distance. `further` says whether another one follows.
    #[inline(always)]
    fn step(&mut self, further: bool) -> (u32, u32, u32) {
        let (run, distance, copy) = (self.run, self.distance, self.copy);
        let [of_run, of_distance, of_copy] = [run, distance, copy].map(|state| u32::from(state.extra));
        let extra = of_run + of_distance + of_copy;
        let mut window = self.bits.window();
        let value = distance.value + top(window, of_distance);
        window <<= of_distance;
        let copied = copy.value + top(window, of_copy);
        window <<= of_copy;
        let moves = u32::from(run.bits) + u32::from(copy.bits) + u32::from(distance.bits);
        if extra + moves > WINDOW {
            self.bits.skip(of_distance + of_copy);
            window = self.bits.window();
            self.bits.skip(of_run);
        } else {
            self.bits.skip(extra);
        }
        let literals = run.value + top(window, of_run);
        window <<= of_run;
        if further {
            self.advance(window, moves);
        }
        (literals, copied, value)
    }

    /// Goes on to the next states.
    #[inline(always)]
    fn advance(&mut self, mut window: u64, moves: u32) {
        let [runs, distances, copies] = &self.tables.tables;
        let next = |state: State, window: u64| usize::from(state.base) + top(window, u32::from(state.bits)) as usize;
        let (run, distance, copy) = (self.run, self.distance, self.copy);
        self.run = runs.state(next(run, window));
        window <<= run.bits;
        self.copy = copies.state(next(copy, window));
        window <<= copy.bits;
        self.distance = distances.state(next(distance, window));
        self.bits.skip(moves);
    }
}

/// Decodes `count` sequences and hands each on as literals, copied bytes and the value of the distance.
#[inline(always)]
pub(super) fn each(
    tables: &Tables,
    bits: Backward<'_>,
    count: usize,
    mut sink: impl FnMut(u32, u32, u32) -> Option<()>,
) -> Option<()> {
    let mut cursor = Cursor::new(tables, bits);
    for left in (0..count).rev() {
        let (run, copied, value) = cursor.step(left > 0);
        sink(run, copied, value)?;
    }
    cursor.bits.spent().then_some(())
}

/// How many bytes the sequences of two blocks copy. They take turns, because one alone leaves the processor waiting.
pub(super) fn measure_two(first: Stream<'_, '_>, second: Stream<'_, '_>) -> Option<[usize; 2]> {
    let [mut one, mut other] = [first, second].map(|stream| Cursor::new(stream.tables, stream.bits));
    let both = first.count.min(second.count).saturating_sub(1);
    let (mut by_one, mut by_other) = (0, 0);
    for _ in 0..both {
        by_one += one.step(true).1 as usize;
        by_other += other.step(true).1 as usize;
    }
    by_one += rest(&mut one, first.count - both)?;
    by_other += rest(&mut other, second.count - both)?;
    Some([by_one, by_other])
}

/// How many bytes the sequences of a block copy.
pub(super) fn measure(stream: Stream<'_, '_>) -> Option<usize> {
    rest(&mut Cursor::new(stream.tables, stream.bits), stream.count)
}

fn rest(cursor: &mut Cursor<'_, '_>, count: usize) -> Option<usize> {
    let copied: usize = (0..count).rev().map(|left| cursor.step(left > 0).1 as usize).sum();
    (cursor.bits.spent() && copied <= MAX_BLOCK).then_some(copied)
}

/// What is needed to decode a block's sequences.
#[derive(Clone, Copy)]
pub(super) struct Stream<'a, 't> {
    pub(super) tables: &'t Tables,
    pub(super) bits: Backward<'a>,
    pub(super) count: usize,
}

/// The three distances used last. A distance that is not known yet is one of the three at the start of the block, less
/// a few: `UNKNOWN`, which of them, and how many less.
pub(super) type Recent = [u32; 3];

const UNKNOWN: u32 = 1 << 31;
const LESS: u32 = (1 << 28) - 1;

/// Before anything is known of the blocks before.
pub(super) const UNKNOWN_RECENT: Recent = [UNKNOWN, UNKNOWN | 1 << 28, UNKNOWN | 2 << 28];

/// At the start of a frame.
pub(super) const FIRST_RECENT: Recent = [1, 4, 8];

/// A distance for what the block before left behind; 0 for what may not be.
pub(super) fn resolved(distance: u32, before: Recent) -> u32 {
    if distance < UNKNOWN {
        return distance;
    }
    let known = before[(distance >> 28 & 3).min(2) as usize];
    let less = distance & LESS;
    // What is still unknown stays so.
    if known < UNKNOWN { known.saturating_sub(less) } else { known.saturating_add(less) }
}

pub(super) fn is_known(distance: u32) -> bool {
    distance < UNKNOWN
}

/// What a value stands for; 0 for what may not be.
#[inline(always)]
pub(super) fn distance(recent: &mut Recent, value: u32, run: u32) -> u32 {
    let [first, second, third] = *recent;
    if value > 3 {
        *recent = [value - 3, first, second];
        return value - 3;
    }
    match value + u32::from(run == 0) {
        1 => first,
        2 => {
            *recent = [second, first, third];
            second
        }
        3 => {
            *recent = [third, first, second];
            third
        }
        _ => {
            let distance = if first < UNKNOWN { first.saturating_sub(1) } else { first + 1 };
            *recent = [distance, first, second];
            distance
        }
    }
}
