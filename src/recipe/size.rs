//! Sizes of memory as people write them: `3 GiB`, `512MiB`, `2G`.
//!
//! Binary units only: `G`, `GB` and `GiB` all mean 2^30 here, since that is what memory comes in.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const UNITS: [(&str, u32); 4] = [("t", 40), ("g", 30), ("m", 20), ("k", 10)];

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("`{text}` is no size; write one like `3 GiB` or `512 MiB`");
        let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(refuse)?;
        let (number, unit) = text.split_at(split);
        let number: u64 = number.parse().map_err(|_| refuse())?;
        let unit = unit.trim().to_ascii_lowercase();
        let letter = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit);
        let shift = UNITS.iter().find(|(name, _)| *name == letter).map(|(_, shift)| *shift).ok_or_else(refuse)?;
        number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).map(Self).ok_or_else(refuse)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_precision_loss, reason = "shown to one decimal")]
        let bytes = self.0 as f64;
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            let scaled = bytes / f64::from(1u32 << shift);
            if scaled >= 1.0 {
                let digits = usize::from(scaled.fract() > 0.05 && scaled < 100.0);
                return write!(f, "{scaled:.digits$} {unit}");
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for text in ["3 GiB", "3GiB", "3gb", "3G", "3072 MiB"] {
            assert_eq!(text.parse(), Ok(ByteSize(3 << 30)), "{text}");
        }
        for text in ["", "GiB", "3", "0 GiB", "3 parsecs", "-3 GiB", "99999999999999 TiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!(ByteSize(3 << 30).to_string(), "3 GiB");
        assert_eq!(ByteSize(1536 << 10).to_string(), "1.5 MiB");
    }
}
