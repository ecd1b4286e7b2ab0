//! Releases of CUDA and torch as people write them, on the command line and in a matrix: one reader and one refusal.
//!
//! `12`, `12.8`, `12.8.1`, `v2.9`, `2.9.1+cu128`, the tags of wheels such as `cu128`, or a PEP 440 range. CUDA is told
//! apart by release, so a third number of it is read and not compared. Ranges in recipes are PEP 440 and nothing else.

use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

use super::exit::Exit;
use super::problem::Problem;
use super::requirement;

/// Of what a release is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versioned {
    /// The CUDA toolkit, or a driver by the CUDA it is for.
    Cuda,
    /// torch.
    Torch,
}

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A version or a range.
    Range,
    /// One release.
    Release,
}

impl Versioned {
    /// The versions that a text stands for.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    pub fn range(self, text: &str) -> Result<VersionSpecifiers, String> {
        let plain = self.plain(text)?;
        let range = match self {
            Self::Cuda if is_version(&plain) => {
                let release: Vec<&str> = plain.split('.').take(2).collect();
                requirement::range(&release.join("."))
            }
            Self::Cuda | Self::Torch => requirement::range(&plain),
        }?;
        requirement::contradiction(&range).map_or(Ok(range), Err)
    }

    /// The one release that a text names, `12.8` or `2.9.1+cu128`.
    ///
    /// # Errors
    /// What is wrong with it, in a few words; a range and a mere major version are no release.
    pub fn release(self, text: &str) -> Result<String, String> {
        let range = self.range(text)?;
        let plain = self.plain(text)?;
        if !is_version(&plain) || plain.contains('*') {
            return Err(
                if range.is_empty() { "it is empty" } else { "it is a range, and one release is needed" }.to_owned()
            );
        }
        let numbers = plain.split('+').next().unwrap_or_default().split('.').count();
        match (self, numbers) {
            (_, 0 | 1) => Err(format!("`{plain}` is a major version, and one release is needed")),
            (Self::Cuda, _) => Ok(plain.split('.').take(2).collect::<Vec<_>>().join(".")),
            (Self::Torch, _) => Ok(plain),
        }
    }

    /// The refusal of `flag text`.
    pub fn refuse(self, flag: &str, text: &str, why: &str, takes: Takes) -> Problem {
        let (one, range) = match self {
            Self::Cuda => ("13.0", ">=12.4,<13"),
            Self::Torch => ("2.11.0", ">=2.6,<3"),
        };
        let range = if takes == Takes::Range {
            format!(" or a range: `{flag} {one}`, `{flag} \"{range}\"`")
        } else {
            format!(": `{flag} {one}`")
        };
        let message = format!("`{flag} {text}` names no {}", if takes == Takes::Range { "version" } else { "release" });
        let what = if takes == Takes::Range { "a version" } else { "one release" };
        Problem::new("cuwright::usage::version_range", Exit::Usage, message)
            .why(why)
            .help(format!("write {what}{range}"))
    }

    /// The text without what other tools put around a version.
    fn plain(self, text: &str) -> Result<String, String> {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let digits = |rest: &&str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
        let plain = match (self, lower.strip_prefix("cu").filter(digits), lower.strip_prefix('v')) {
            (Self::Cuda, Some(tag), _) => of_tag(tag).ok_or_else(|| format!("`{text}` is no tag of a CUDA release"))?,
            (Self::Torch, Some(_), _) => return Err(format!("`{text}` is a tag of CUDA")),
            (_, _, Some(rest)) if is_version(rest) => rest.to_owned(),
            _ => text.to_owned(),
        };
        let numbers: Vec<&str> = plain.split('.').collect();
        let well_formed =
            || numbers.len() <= 3 && numbers.iter().enumerate().all(|(at, n)| digits(n) || at > 0 && *n == "*");
        match self {
            Self::Cuda if is_version(&plain) && !well_formed() => {
                Err("a version of CUDA is two numbers, or three".to_owned())
            }
            // A range is judged as one; a version is judged here, so that its refusal is about what was written.
            Self::Torch if is_version(&plain) && !plain.contains('*') => Version::from_str(&plain)
                .map(|_| plain.clone())
                .map_err(|_| format!("`{plain}` is no version of torch")),
            Self::Cuda | Self::Torch => Ok(plain),
        }
    }
}

fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// `128` of `cu128` is 12.8; `12` of `cu12` is the major, and `92` of `cu92` is 9.2.
fn of_tag(digits: &str) -> Option<String> {
    match digits.len() {
        2 if digits.starts_with(['1', '2']) => Some(digits.to_owned()),
        2 | 3 => {
            let (major, minor) = digits.split_at(digits.len() - 1);
            Some(format!("{major}.{minor}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(product: Versioned, text: &str, version: &str) -> bool {
        product.range(text).unwrap_or_else(|why| panic!("{text}: {why}")).contains(&version.parse().unwrap())
    }

    #[test]
    fn every_spelling_of_a_release_reads() {
        for text in ["12.8", "v12.8", "cu128", "CU128", " 12.8 ", "12.8.1", "12.8.93", ">=12.8,<12.9", "12.8.*"] {
            assert!(accepts(Versioned::Cuda, text, "12.8") && !accepts(Versioned::Cuda, text, "12.9"), "{text}");
        }
        for text in ["12", "v12", "cu12", "12.*"] {
            assert!(accepts(Versioned::Cuda, text, "12.8") && !accepts(Versioned::Cuda, text, "13.0"), "{text}");
        }
        assert!(accepts(Versioned::Cuda, "cu92", "9.2") && accepts(Versioned::Cuda, "", "13.0"));
        for text in ["2.9", "v2.9", "V2.9.1", "2.9.1", "2.9.1+cu128", "==2.9.*"] {
            assert!(
                accepts(Versioned::Torch, text, "2.9.1+cu128") && !accepts(Versioned::Torch, text, "2.8.0"),
                "{text}"
            );
        }
        assert!(!accepts(Versioned::Torch, "2.9.1+cu128", "2.9.1+cu130"));
    }

    #[test]
    fn one_release_is_named_by_the_same_words() {
        for text in ["12.8", "v12.8", "cu128", "12.8.1"] {
            assert_eq!(Versioned::Cuda.release(text).as_deref(), Ok("12.8"), "{text}");
        }
        for (text, release) in [("2.9", "2.9"), ("v2.9", "2.9"), ("2.9.1+cu128", "2.9.1+cu128")] {
            assert_eq!(Versioned::Torch.release(text).as_deref(), Ok(release));
        }
        for (product, text, why) in [
            (Versioned::Cuda, "12", "major"),
            (Versioned::Cuda, "cu12", "major"),
            (Versioned::Cuda, ">=12.4", "range"),
            (Versioned::Cuda, "12.*", "range"),
            (Versioned::Cuda, "", "empty"),
            (Versioned::Torch, "2", "major"),
        ] {
            assert!(product.release(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn what_is_no_version_is_refused_alike() {
        for text in ["new", "12.x", "12.8.1.2", "cu1280", "cu", "v", "12.", "-1", ">=12,<11"] {
            let why = Versioned::Cuda.range(text).unwrap_err();
            assert_eq!(Versioned::Cuda.release(text), Err(why.clone()), "{text}");
            let problem = Versioned::Cuda.refuse("--cuda", text, &why, Takes::Range);
            assert_eq!((problem.code(), problem.exit()), ("cuwright::usage::version_range", Exit::Usage));
        }
        for text in ["new", "cu128", "2.x", "2..9", ">=3,<2"] {
            assert!(Versioned::Torch.range(text).is_err() && Versioned::Torch.release(text).is_err(), "{text}");
        }
    }
}
