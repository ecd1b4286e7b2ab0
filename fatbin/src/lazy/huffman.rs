//! Huffman-coded literals.

use super::bits::{Backward, top};
use super::fse::{Counts, Table};

const MAX_BITS: u32 = 11;

/// Symbols that the shortest window of a stream surely holds.
const PER_WINDOW: usize = 5;

/// A tree as a table of what the next bits stand for.
pub(super) struct Huffman {
    bits: u32,
    /// Symbol and length by the next `bits` bits.
    codes: Box<[(u8, u8); 1 << MAX_BITS]>,
}

/// Bytes that a tree description takes.
pub(super) fn description(bytes: &[u8]) -> Option<usize> {
    let head = usize::from(*bytes.first()?);
    let size = if head < 128 { 1 + head } else { 1 + (head - 127).div_ceil(2) };
    (size <= bytes.len()).then_some(size)
}

impl Huffman {
    /// Reads a tree description.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first()?;
        let head = usize::from(*head);
        let mut weights = if head < 128 {
            weights(rest.get(..head)?)?
        } else {
            let pairs = rest.get(..(head - 127).div_ceil(2))?.iter().flat_map(|pair| [pair >> 4, pair & 15]);
            pairs.take(head - 127).collect()
        };
        if weights.len() > 255 || weights.iter().any(|weight| u32::from(*weight) > MAX_BITS) {
            return None;
        }
        let sum: u32 = weights.iter().filter(|weight| **weight > 0).map(|weight| 1u32 << (weight - 1)).sum();
        let bits = (sum != 0).then(|| sum.ilog2() + 1).filter(|bits| *bits <= MAX_BITS)?;
        let left = (1u32 << bits) - sum;
        if !left.is_power_of_two() {
            return None;
        }
        weights.push(left.ilog2() as u8 + 1);
        let mut codes = Box::new([(0, 0); 1 << MAX_BITS]);
        // Longer codes, which are those of lower weight, come first, and equal ones in the order of their symbols.
        let mut next = [0usize; MAX_BITS as usize + 2];
        for weight in weights.iter().filter(|weight| **weight > 0) {
            next[usize::from(*weight) + 1] += 1 << (weight - 1);
        }
        for weight in 1..next.len() {
            next[weight] += next[weight - 1];
        }
        for (symbol, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            let at = &mut next[usize::from(*weight)];
            let span = 1usize << (weight - 1);
            codes.get_mut(*at..*at + span)?.fill((symbol as u8, bits as u8 + 1 - weight));
            *at += span;
        }
        Some(Self { bits, codes })
    }

    /// Decodes `size` literals from one stream, or from four.
    pub(super) fn decode(&self, bytes: &[u8], size: usize, streams: usize, out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        out.resize(size, 0);
        if streams == 1 {
            return self.stream(bytes, out);
        }
        let jump = bytes.first_chunk::<6>()?;
        let mut rest = &bytes[6..];
        let quarter = size.div_ceil(4).max(1);
        let mut parts = out.chunks_mut(quarter);
        for index in 0..3 {
            let length = usize::from(u16::from_le_bytes([jump[2 * index], jump[2 * index + 1]]));
            let (stream, after) = rest.split_at_checked(length)?;
            self.stream(stream, parts.next()?)?;
            rest = after;
        }
        self.stream(rest, parts.next()?)
    }

    fn stream(&self, bytes: &[u8], out: &mut [u8]) -> Option<()> {
        let mut bits = Backward::new(bytes)?;
        for part in out.chunks_mut(PER_WINDOW) {
            let mut window = bits.window();
            let mut used = 0;
            for byte in part {
                let (symbol, length) = self.codes[top(window, self.bits) as usize & ((1 << MAX_BITS) - 1)];
                *byte = symbol;
                window <<= length;
                used += u32::from(length);
            }
            bits.skip(used);
        }
        bits.spent().then_some(())
    }
}

/// Weights that are themselves packed, with two states that take turns until the bits end.
fn weights(bytes: &[u8]) -> Option<Vec<u8>> {
    let codes: [(u32, u8); 256] = std::array::from_fn(|symbol| (symbol as u32, 0));
    let (counts, used) = Counts::read(bytes, 6, 255)?;
    let mut table = Table::default();
    table.fill(&counts, &codes)?;
    let mut bits = Backward::new(&bytes[used..])?;
    let mut states = [bits.read(table.log) as usize, bits.read(table.log) as usize];
    let mut weights = Vec::new();
    let mut turn = 0;
    while weights.len() <= 255 {
        let state = table.state(states[turn]);
        weights.push(u8::try_from(state.value).ok()?);
        states[turn] = usize::from(state.base) + bits.read(u32::from(state.bits)) as usize;
        turn ^= 1;
        if bits.overrun() {
            weights.push(u8::try_from(table.state(states[turn]).value).ok()?);
            return Some(weights);
        }
    }
    None
}
