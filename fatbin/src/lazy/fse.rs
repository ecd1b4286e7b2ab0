//! Finite state entropy tables: read from a description, or fixed by the format.

use super::bits::Forward;

/// The most states that any table has.
pub(super) const MOST: usize = 512;

/// The most symbols that a table tells apart.
const SYMBOLS: usize = 256;

/// A state: what it stands for, and how to get to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct State {
    /// Its symbol, or the smallest value of its code.
    pub(super) value: u32,
    /// The next state, before `bits` more are added.
    pub(super) base: u16,
    /// Bits that are added to the value.
    pub(super) extra: u8,
    pub(super) bits: u8,
}

/// How often each symbol comes; -1 is less than once.
pub(super) struct Counts {
    log: u32,
    of_symbols: [i16; SYMBOLS],
    length: usize,
}

impl Counts {
    pub(super) fn fixed(counts: &[i16], log: u32) -> Self {
        let mut own = [0; SYMBOLS];
        own[..counts.len()].copy_from_slice(counts);
        Self { log, of_symbols: own, length: counts.len() }
    }

    /// Reads a description; gives the bytes it took, too.
    pub(super) fn read(bytes: &[u8], max_log: u32, max_symbol: usize) -> Option<(Self, usize)> {
        let mut source = Forward::new(bytes);
        let log = 5 + source.read(4);
        if log > max_log {
            return None;
        }
        let mut counts = [0i16; SYMBOLS];
        let mut length = 0;
        let mut remaining: i32 = 1 << log;
        while remaining > 0 {
            if length > max_symbol {
                return None;
            }
            let bits = 32 - (remaining + 1).leading_zeros();
            let mut value = source.read(bits).cast_signed();
            let low = (1 << (bits - 1)) - 1;
            let threshold = (1 << bits) - 1 - (remaining + 1);
            if value & low < threshold {
                source.unread();
                value &= low;
            } else if value > low {
                value -= threshold;
            }
            let count = value - 1;
            remaining -= count.abs();
            *counts.get_mut(length)? = i16::try_from(count).ok()?;
            length += 1;
            if count == 0 {
                loop {
                    let repeat = source.read(2);
                    length += repeat as usize;
                    if repeat != 3 {
                        break;
                    }
                    source.used()?;
                }
            }
        }
        let fits = remaining == 0 && length <= max_symbol + 1;
        let used = source.used().filter(|_| fits)?;
        Some((Self { log, of_symbols: counts, length }, used))
    }
}

pub(super) struct Table {
    pub(super) log: u32,
    states: Box<[State; MOST]>,
}

impl Default for Table {
    fn default() -> Self {
        Self { log: 0, states: Box::new([State::default(); MOST]) }
    }
}

impl Table {
    /// Makes it the table of a distribution, whose symbols stand for codes (smallest value, further bits).
    pub(super) fn fill(&mut self, counts: &Counts, codes: &[(u32, u8)]) -> Option<()> {
        let size = 1usize << counts.log;
        let symbols = counts.of_symbols.get(..counts.length).filter(|symbols| symbols.len() <= codes.len())?;
        let used = self.states.get_mut(..size)?;
        let mut next = [0u16; SYMBOLS];
        let mut high = size;
        for (symbol, &count) in symbols.iter().enumerate() {
            next[symbol] = count.unsigned_abs();
            if count == -1 {
                high = high.checked_sub(1)?;
                used[high].value = symbol as u32;
            }
        }
        let (step, mask) = ((size >> 1) + (size >> 3) + 3, size - 1);
        let mut at = 0;
        for (symbol, &count) in symbols.iter().enumerate() {
            for _ in 0..count.max(0) {
                used[at].value = symbol as u32;
                at = (at + step) & mask;
                while at >= high {
                    at = (at + step) & mask;
                }
            }
        }
        if at != 0 {
            return None;
        }
        for state in used {
            let symbol = state.value as usize & (SYMBOLS - 1);
            let value = next[symbol];
            next[symbol] = value.wrapping_add(1);
            let bits = counts.log - value.checked_ilog2()?;
            let (value, base) = (*codes.get(symbol)?, ((u32::from(value) << bits) - size as u32) as u16);
            *state = State { value: value.0, extra: value.1, bits: bits as u8, base };
        }
        self.log = counts.log;
        Some(())
    }

    /// Makes it a table that gives one code and takes no bits.
    pub(super) fn fill_single(&mut self, code: (u32, u8)) {
        self.log = 0;
        self.states[0] = State { value: code.0, extra: code.1, bits: 0, base: 0 };
    }

    #[inline(always)]
    pub(super) fn state(&self, index: usize) -> State {
        // Every index that a table leads to is within it; the mask says so to the compiler.
        self.states[index & (MOST - 1)]
    }
}
