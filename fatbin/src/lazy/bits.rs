//! The two directions in which zstd reads bits: forward for table descriptions, backward for streams.
//!
//! Invariant: reading past an end gives zero bits and is remembered, so the inner loops need no error path.

/// Bits from the first byte on, the lowest first.
pub(super) struct Forward<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Forward<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Up to 16 bits.
    pub(super) fn read(&mut self, count: u32) -> u32 {
        let (byte, shift) = (self.at / 8, self.at % 8);
        let rest = self.bytes.get(byte..).unwrap_or_default();
        let window = rest.first_chunk().map_or_else(
            || rest.iter().rev().fold(0, |window, byte| window << 8 | u32::from(*byte)),
            |raw| u32::from_le_bytes(*raw),
        );
        self.at += count as usize;
        window >> shift & ((1 << count) - 1)
    }

    /// Gives one bit back.
    pub(super) fn unread(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    /// Bytes read so far, the last one whole; `None` if that is more than there are.
    pub(super) fn used(&self) -> Option<usize> {
        let used = self.at.div_ceil(8);
        (used <= self.bytes.len()).then_some(used)
    }
}

/// Bits from the last byte on, the highest first, behind a one that marks the start.
#[derive(Clone, Copy)]
pub(super) struct Backward<'a> {
    bytes: &'a [u8],
    /// Bits that are left; negative if more were read than there were.
    left: i64,
}

impl<'a> Backward<'a> {
    /// `None` if the mark is missing.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let last = *bytes.last().filter(|last| **last != 0)?;
        let mark = bytes.len().checked_mul(8)?.checked_sub(last.leading_zeros() as usize + 1)?;
        Some(Self { bytes, left: i64::try_from(mark).ok()? })
    }

    /// The next 57 bits or more from the top down, zeros where there are none.
    #[inline(always)]
    pub(super) fn window(&self) -> u64 {
        let last = self.left >> 3;
        let raw = usize::try_from(last - 7).ok().and_then(|at| self.bytes.get(at..)?.first_chunk());
        match raw {
            Some(raw) => u64::from_le_bytes(*raw) << (8 - (self.left & 7)),
            None => short_window(self.bytes, self.left),
        }
    }

    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.left -= i64::from(count);
    }

    /// Up to 32 bits.
    #[inline(always)]
    pub(super) fn read(&mut self, count: u32) -> u32 {
        let bits = top(self.window(), count);
        self.skip(count);
        bits
    }

    /// Whether more was read than there was.
    pub(super) fn overrun(&self) -> bool {
        self.left < 0
    }

    /// Whether all was read and no more.
    pub(super) fn spent(&self) -> bool {
        self.left == 0
    }
}

/// By value, so that the inner loops can keep what they read in registers.
#[cold]
#[inline(never)]
fn short_window(bytes: &[u8], left: i64) -> u64 {
    let Ok(left @ 1..) = usize::try_from(left) else { return 0 };
    let bytes = bytes.iter().take(left / 8 + 1).rev();
    bytes.fold(0, |window, byte| window << 8 | u64::from(*byte)) << (64 - left)
}

/// The upper `count` bits, at most 32.
#[inline(always)]
pub(super) fn top(window: u64, count: u32) -> u32 {
    (window >> 1 >> (63 - count)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_in_order_from_both_ends() {
        let mut forward = Forward::new(&[0b1010_0110, 0b1]);
        assert_eq!((forward.read(3), forward.read(4), forward.read(2)), (0b110, 0b0100, 0b11));
        assert_eq!(forward.used(), Some(2));
        // The mark is the one at the top of 0b0001_0110.
        let mut backward = Backward::new(&[0b1100_0011, 0b0001_0110]).unwrap();
        assert_eq!((backward.read(4), backward.read(3), backward.read(5)), (0b0110, 0b110, 0b00011));
        assert!(backward.spent() && !backward.overrun());
        assert_eq!(backward.read(2), 0);
        assert!(backward.overrun());
        assert!(Backward::new(&[1, 0]).is_none() && Backward::new(&[]).is_none());
    }

    #[test]
    fn no_bit_is_lost_in_streams_of_any_length() {
        for length in 1..40 {
            let bytes: Vec<u8> = (0..length).map(|n: u32| (n * 37 + 11) as u8).chain([1]).collect();
            for step in [1, 3, 7, 11, 16, 25, 32] {
                let mut backward = Backward::new(&bytes).unwrap();
                let mut bit = length as usize * 8;
                while bit >= step as usize {
                    let got = backward.read(step);
                    let want = (0..step as usize).fold(0u32, |value, index| {
                        let at = bit - 1 - index;
                        value << 1 | u32::from(bytes[at / 8] >> (at % 8) & 1)
                    });
                    assert_eq!(got, want, "{step} at {bit} of {length}");
                    bit -= step as usize;
                }
                assert!(!backward.overrun());
            }
        }
    }
}
