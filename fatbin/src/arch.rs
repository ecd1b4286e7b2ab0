//! GPU architectures as containers name them: a number and, since Hopper, a suffix.
//!
//! Invariant: a value of this type is what a file says, known to us or not. Which GPU runs which architecture is a
//! matter of policy and is not here.

use std::fmt;
use std::str::FromStr;

/// The letter behind an architecture's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Suffix {
    /// No letter: code for this architecture and, as far as the GPU allows, its later minor revisions.
    #[default]
    None,
    /// `a`: features of exactly this architecture, such as `sm_90a`.
    A,
    /// `f`: features of this family, such as `sm_100f`.
    F,
}

impl Suffix {
    /// The letter itself, empty for [`Suffix::None`].
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "",
            Self::A => "a",
            Self::F => "f",
        }
    }
}

/// A GPU architecture, shown as `sm_90a`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Arch {
    /// Ten times the compute capability: 75, 90, 120. 0 where a container names none.
    pub number: u32,
    /// The letter behind the number.
    pub suffix: Suffix,
}

impl Arch {
    /// An architecture from its number (90 for compute capability 9.0) and suffix.
    pub fn new(number: u32, suffix: Suffix) -> Self {
        Self { number, suffix }
    }

    /// The major part of the compute capability, such as 12 of 12.1.
    pub fn major(self) -> u32 {
        self.number / 10
    }

    /// The minor part of the compute capability, 0 to 9, such as 1 of 12.1.
    pub fn minor(self) -> u32 {
        self.number % 10
    }

    /// Both parts of the compute capability, `(12, 1)`.
    pub fn capability(self) -> (u32, u32) {
        (self.major(), self.minor())
    }

    /// The name as a virtual architecture, the one PTX is compiled for: `compute_90a`.
    pub fn to_virtual(self) -> String {
        format!("compute_{}{}", self.number, self.suffix.as_str())
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("sm_{}{}", self.number, self.suffix.as_str()))
    }
}

/// A text is no architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseArchError;

impl fmt::Display for ParseArchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("expected an architecture such as \"sm_90a\" or \"compute_80\"")
    }
}

impl std::error::Error for ParseArchError {}

impl FromStr for Arch {
    type Err = ParseArchError;

    /// Reads `sm_90a` and `compute_90a`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).ok_or(ParseArchError)?;
        let (digits, suffix) = match name.as_bytes().last() {
            Some(b'a') => (&name[..name.len() - 1], Suffix::A),
            Some(b'f') => (&name[..name.len() - 1], Suffix::F),
            _ => (name, Suffix::None),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseArchError);
        }
        Ok(Self { number: digits.parse().map_err(|_| ParseArchError)?, suffix })
    }
}

#[cfg(test)]
mod tests {
    use super::{Arch, Suffix};

    #[test]
    fn what_is_shown_parses_back() {
        for number in [50, 75, 90, 100, 103, 121] {
            for suffix in [Suffix::None, Suffix::A, Suffix::F] {
                let arch = Arch::new(number, suffix);
                assert_eq!(arch.to_string().parse(), Ok(arch));
                assert_eq!(arch.to_virtual().parse(), Ok(arch));
            }
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "sm_", "sm_a", "90", "sm_+9", "sm_9.0", "sm_90b", "sm_99999999999", "sm_90é"] {
            assert!(text.parse::<Arch>().is_err(), "{text}");
        }
    }

    #[test]
    fn capability_splits_off_the_last_digit() {
        assert_eq!(Arch::new(121, Suffix::A).capability(), (12, 1));
    }
}
