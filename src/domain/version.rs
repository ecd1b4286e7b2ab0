//! Versions of CUDA: toolkit releases and driver levels, compared by number.
//!
//! CUDA versions are no semver: `13.0` names a release, `13.0.88` a compiler build of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A CUDA version, `major.minor` with an optional build (`13.0`, `13.0.88`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaVersion {
    /// Major release; binaries and torch must agree on it.
    pub major: u16,
    /// Minor release.
    pub minor: u16,
    /// Build or patch number, where the tool tells one.
    pub build: Option<u32>,
}

impl CudaVersion {
    /// The release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, build: None }
    }

    /// The same release without the build number.
    #[must_use]
    pub const fn release(self) -> Self {
        Self::new(self.major, self.minor)
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.build.map_or(Ok(()), |build| write!(f, ".{build}"))
    }
}

/// A text that is no CUDA version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAVersion(pub String);

impl fmt::Display for NotAVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no CUDA version (expected one like `13.0` or `12.8.93`)", self.0)
    }
}

impl FromStr for CudaVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let refuse = || NotAVersion(text.to_owned());
        let mut parts = text.trim().split('.');
        let mut number = || parts.next().filter(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        let major = number().and_then(|p| p.parse().ok()).ok_or_else(refuse)?;
        let minor = number().and_then(|p| p.parse().ok()).ok_or_else(refuse)?;
        let build = match parts.next() {
            None => None,
            Some(part) if !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) => {
                Some(part.parse().map_err(|_| refuse())?)
            }
            Some(_) => return Err(refuse()),
        };
        if parts.next().is_some() { Err(refuse()) } else { Ok(Self { major, minor, build }) }
    }
}

impl Serialize for CudaVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CudaVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_and_print_as_written() {
        let version = |text: &str| text.parse::<CudaVersion>();
        assert!(version("12.10").unwrap() > version("12.9").unwrap());
        assert_eq!(version("13.0.88").unwrap().to_string(), "13.0.88");
        for wrong in ["", "13", "13.", "13.x", "13.0.", "1.2.3.4", "-1.0", "99999999.0"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
    }
}
