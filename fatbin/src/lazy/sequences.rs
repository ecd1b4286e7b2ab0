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

/// A sequence as it stands in the stream, in 64 bits: the value of the distance, the literals, the copied bytes.
///
/// Most sequences are only counted, so that none costs more than one store.
#[derive(Clone, Copy, Default)]
pub(super) struct Raw(u64);

const LENGTH_BITS: u32 = 17;
const LENGTH: u32 = (1 << LENGTH_BITS) - 1;
const SHORTEST: u32 = 3;

impl Raw {
    #[inline(always)]
    fn new(run: u32, copied: u32, value: u32) -> Self {
        let lengths = u64::from(run & LENGTH) << LENGTH_BITS | u64::from((copied - SHORTEST) & LENGTH);
        Self(u64::from(value) << (2 * LENGTH_BITS) | lengths)
    }

    #[inline(always)]
    pub(super) fn run(self) -> u32 {
        (self.0 >> LENGTH_BITS) as u32 & LENGTH
    }

    #[inline(always)]
    pub(super) fn copied(self) -> u32 {
        (self.0 as u32 & LENGTH) + SHORTEST
    }

    #[inline(always)]
    pub(super) fn value(self) -> u32 {
        (self.0 >> (2 * LENGTH_BITS)) as u32
    }
}

/// Decodes the sequences of two blocks and gives how many bytes each copies. They take turns, because one alone leaves
/// the processor waiting.
pub(super) fn decode_two(one: Stream<'_, '_>, other: Stream<'_, '_>, into: [&mut [Raw]; 2]) -> Option<[usize; 2]> {
    let both = into[0].len().min(into[1].len()).saturating_sub(1);
    let [(for_one, rest_of_one), (for_other, rest_of_other)] = into.map(|raw| raw.split_at_mut(both));
    let [mut one, mut other] = [one, other].map(|stream| Cursor::new(stream.tables, stream.bits));
    let (mut by_one, mut by_other) = (0, 0);
    for (for_one, for_other) in for_one.iter_mut().zip(for_other) {
        let (run, copied, value) = one.step(true);
        *for_one = Raw::new(run, copied, value);
        by_one += copied as usize;
        let (run, copied, value) = other.step(true);
        *for_other = Raw::new(run, copied, value);
        by_other += copied as usize;
    }
    Some([rest(one, rest_of_one, by_one)?, rest(other, rest_of_other, by_other)?])
}

/// Decodes the sequences of a block and gives how many bytes they copy.
pub(super) fn decode(stream: Stream<'_, '_>, into: &mut [Raw]) -> Option<usize> {
    rest(Cursor::new(stream.tables, stream.bits), into, 0)
}

fn rest(mut cursor: Cursor<'_, '_>, into: &mut [Raw], before: usize) -> Option<usize> {
    let (last, into) = into.split_last_mut()?;
    let mut sum = before;
    let mut put = |raw: &mut Raw, (run, copied, value)| {
        *raw = Raw::new(run, copied, value);
        sum += copied as usize;
    };
    for raw in into {
        put(raw, cursor.step(true));
    }
    put(last, cursor.step(false));
    (cursor.bits.spent() && sum <= MAX_BLOCK).then_some(sum)
}

/// What is needed to decode a block's sequences.
#[derive(Clone, Copy)]
pub(super) struct Stream<'a, 't> {
    pub(super) tables: &'t Tables,
    pub(super) bits: Backward<'a>,
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
