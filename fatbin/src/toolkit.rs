//! Which tool of which CUDA toolkit made an image, as images themselves tell.
//!
//! Invariant: absent means that the image does not say; nothing is inferred from what a version could or could not do.

use std::fmt;

/// The version of a CUDA toolkit, such as 12.4 or 13.0.88.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Toolkit {
    /// Such as 13.
    pub major: u16,
    /// Such as 0.
    pub minor: u16,
    /// Such as 88, where recorded.
    pub patch: Option<u16>,
}

impl Toolkit {
    /// From ten times major plus minor, such as 124.
    pub(crate) fn from_tenths(number: u32) -> Option<Self> {
        let major = u16::try_from(number / 10).ok().filter(|&major| major != 0)?;
        Some(Self { major, minor: (number % 10) as u16, patch: None })
    }

    /// From NVIDIA's banner, which ends in something like `release 13.0, V13.0.88`.
    pub(crate) fn from_banner(banner: &str) -> Option<Self> {
        let version = banner.rsplit_once(", V")?.1;
        let mut parts = version.split('.').map(|part| part.trim().parse::<u16>().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Self { major, minor, patch: parts.next().flatten() })
    }
}

impl fmt::Display for Toolkit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(formatter, ".{patch}"))
    }
}

/// The tool that wrote an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Producer {
    /// Its name, such as `ptxas` or `nvlink`.
    pub tool: Option<String>,
    /// The toolkit it came with.
    pub toolkit: Option<Toolkit>,
    /// Its command line, without the name of the tool.
    pub options: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Toolkit;

    #[test]
    fn versions_come_out_of_banners_and_numbers() {
        let banner = "Cuda compilation tools, release 13.0, V13.0.88";
        assert_eq!(Toolkit::from_banner(banner).unwrap().to_string(), "13.0.88");
        assert_eq!(Toolkit::from_banner("release 13.0, Vx"), None);
        assert_eq!(Toolkit::from_tenths(118).unwrap().to_string(), "11.8");
        assert_eq!(Toolkit::from_tenths(1), None);
    }
}
