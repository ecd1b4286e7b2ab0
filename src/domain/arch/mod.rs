//! GPU architectures: values, one canonical set, and the grammar people write them in.
//!
//! Invariant: an `ArchSet` holds every arch once, ordered by number, so any permutation of a list is the same set and
//! the same cache key. Which archs exist, and who can compile or run them, is not known here: see `compat`.

pub mod dialect;
mod effective;
mod literal;
mod parse;
mod set;

pub use effective::{Effective, effective_archs, effective_archs_of_line};
pub use parse::{FAMILIES, Item, Origin, Spanned, parse_list};
pub use set::{ArchSet, Form};

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A compute capability, such as 8.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    /// Generation.
    pub major: u8,
    /// Member of the generation; one digit.
    pub minor: u8,
}

impl Capability {
    /// `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }

    /// From the joined number that compilers use: 86, 120.
    pub fn from_number(number: u16) -> Option<Self> {
        let major = u8::try_from(number / 10).ok()?;
        let minor = u8::try_from(number % 10).ok()?;
        MAJORS.contains(&major).then_some(Self { major, minor })
    }

    /// The joined number: 86, 120.
    pub const fn number(self) -> u16 {
        self.major as u16 * 10 + self.minor as u16
    }
}

/// Majors outside this are no capability but a slip: `75.0` for 7.5, `1.2` for 12.0. No toolkit since 2014 knows 1.x.
const MAJORS: std::ops::RangeInclusive<u8> = 2..=29;

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A text that is no capability or arch in the dotted spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnArch(pub String);

impl fmt::Display for NotAnArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no arch (expected one like `8.6` or `9.0a`)", self.0)
    }
}

impl std::error::Error for NotAnArch {}

impl FromStr for Capability {
    type Err = NotAnArch;

    /// Reads the dotted spelling only: `8.6`.
    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        literal::dotted(text).ok_or_else(|| NotAnArch(text.to_owned()))
    }
}

impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Capability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Which GPUs of a number a compilation may use the features of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// Portable within the generation.
    #[default]
    Plain,
    /// Arch-specific features: exactly this GPU.
    A,
    /// Family features: GPUs of the same family.
    F,
}

impl Variant {
    /// The suffix: nothing, `a` or `f`.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::A => "a",
            Self::F => "f",
        }
    }
}

/// A compilation target: a capability and its variant. Ordered by number, then plain < a < f.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// The number.
    pub capability: Capability,
    /// Plain, `a` or `f`.
    pub variant: Variant,
}

impl Arch {
    /// A plain arch.
    pub const fn new(major: u8, minor: u8) -> Self {
        Self::plain(Capability::new(major, minor))
    }

    /// The plain arch of a capability.
    pub const fn plain(capability: Capability) -> Self {
        Self { capability, variant: Variant::Plain }
    }

    /// The same number in another variant.
    #[must_use]
    pub const fn with(self, variant: Variant) -> Self {
        Self { capability: self.capability, variant }
    }

    /// The joined spelling: `86`, `90a`.
    pub fn joined(self) -> String {
        format!("{}{}", self.capability.number(), self.variant.suffix())
    }

    /// The name of the real arch: `sm_90a`.
    pub fn sm(self) -> String {
        format!("sm_{}", self.joined())
    }

    /// The name of the virtual arch: `compute_90a`.
    pub fn compute(self) -> String {
        format!("compute_{}", self.joined())
    }

    /// Reads the joined spelling: `86`, `90a`.
    pub fn from_joined(text: &str) -> Option<Self> {
        literal::joined(text)
    }

    /// Reads a compiler's name, `sm_90a` or `compute_90a`.
    pub fn from_code(name: &str) -> Option<Self> {
        name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_")).and_then(literal::joined)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.capability, self.variant.suffix())
    }
}

impl FromStr for Arch {
    type Err = NotAnArch;

    /// Reads the dotted spelling only: `8.6`, `9.0a`.
    fn from_str(text: &str) -> Result<Self, NotAnArch> {
        literal::dotted_arch(text).ok_or_else(|| NotAnArch(text.to_owned()))
    }
}

impl Serialize for Arch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Arch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archs_order_by_number_then_variant() {
        let mut archs: Vec<Arch> =
            ["12.0", "9.0a", "8.6", "10.0f", "9.0", "10.0", "10.0a"].iter().map(|a| a.parse().unwrap()).collect();
        archs.sort();
        let shown: Vec<String> = archs.iter().map(Arch::to_string).collect();
        assert_eq!(shown, ["8.6", "9.0", "9.0a", "10.0", "10.0a", "10.0f", "12.0"]);
    }

    #[test]
    fn compiler_names_read_and_write() {
        for (name, arch) in [("sm_86", "8.6"), ("compute_90a", "9.0a"), ("sm_120f", "12.0f"), ("sm_107", "10.7")] {
            assert_eq!(Arch::from_code(name).unwrap().to_string(), arch);
        }
        assert_eq!(Arch::new(12, 1).with(Variant::F).sm(), "sm_121f");
        for wrong in ["sm_", "sm_8", "sm_Failed", "compute_", "86", "lto_86", "sm_12", "sm_1234", "sm_086"] {
            assert_eq!(Arch::from_code(wrong), None, "{wrong}");
        }
    }
}
