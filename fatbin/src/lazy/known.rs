//! Which bytes are known: a bit for each.

#[derive(Default)]
pub(super) struct Known {
    words: Vec<u64>,
}

impl Known {
    /// Forgets everything, and makes room for `size` bytes.
    pub(super) fn clear(&mut self, size: usize) {
        self.words.clear();
        self.words.resize(size / 64 + 1, 0);
    }

    /// The first byte of a range that is not known.
    #[inline]
    pub(super) fn first_unknown(&self, from: usize, end: usize) -> Option<usize> {
        let mut at = from;
        while at < end {
            let unknown = !self.words.get(at / 64)? >> (at % 64);
            if unknown != 0 {
                return Some(at + unknown.trailing_zeros() as usize).filter(|at| *at < end);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Marks a range as known.
    #[inline]
    pub(super) fn set(&mut self, from: usize, end: usize) {
        let mut at = from;
        while at < end {
            let (word, shift) = (at / 64, at % 64);
            let count = (64 - shift).min(end - at);
            if let Some(word) = self.words.get_mut(word) {
                *word |= u64::MAX >> (64 - count) << shift;
            }
            at += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Known;

    #[test]
    fn ranges_are_known_to_the_byte() {
        for (from, end) in [(0, 1), (3, 64), (63, 65), (64, 128), (5, 300), (7, 7)] {
            let mut known = Known::default();
            known.clear(300);
            known.set(from, end);
            let expected = |low: usize, high: usize| (low..high).find(|at| !(from..end).contains(at));
            for low in 0..300 {
                for high in [low, low + 1, 64, 65, 300] {
                    assert_eq!(known.first_unknown(low, high), expected(low, high), "{from}..{end}, {low}..{high}");
                }
            }
        }
    }
}
