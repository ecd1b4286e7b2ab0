//! Python requirements and version ranges, as far as choosing a toolchain needs them.
//!
//! A range is PEP 440; a bare version means "this release": `2.11` is `==2.11.*`, `2.11.0` is `==2.11.0`. Markers are
//! kept as text and never evaluated here: uv does that. Whether a range leaves any version is a question of its own,
//! since only who wrote it can mend it.

use std::fmt;
use std::str::FromStr;

use pep440_rs::{Prerelease, Version, VersionSpecifier, VersionSpecifiers};

/// One requirement, such as `setuptools<81` or `cuda-toolkit[nvcc]==13.0.2 ; python_version > "3.9"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Normalised name: lower case, runs of `-_.` as one `-`.
    pub name: String,
    /// Versions that satisfy it.
    pub range: VersionSpecifiers,
    /// Whether it has an environment marker or a direct URL, which only uv can judge.
    pub conditional: bool,
    text: String,
}

impl Requirement {
    /// Whether `version` satisfies it.
    pub fn accepts(&self, version: &str) -> bool {
        self.range.is_empty() || Version::from_str(version).is_ok_and(|version| self.range.contains(&version))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A text that is no requirement, with what is wrong about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotARequirement {
    /// The text.
    pub text: String,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for NotARequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no requirement: {}", self.text, self.reason)
    }
}

impl FromStr for Requirement {
    type Err = NotARequirement;

    fn from_str(text: &str) -> Result<Self, NotARequirement> {
        let refuse = |reason: String| NotARequirement { text: text.to_owned(), reason };
        let text = text.trim();
        if text.contains(['\n', '\r']) {
            return Err(refuse("it has more than one line".to_owned()));
        }
        let (plain, marker) = text.split_once(';').map_or((text, None), |(plain, marker)| (plain, Some(marker)));
        let end = plain.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)).unwrap_or(plain.len());
        let (name, rest) = plain.split_at(end);
        let alphanumeric = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        if !alphanumeric(name.chars().next()) || !alphanumeric(name.chars().next_back()) {
            return Err(refuse("it must begin with a package name".to_owned()));
        }
        let mut rest = rest.trim();
        if let Some(extras) = rest.strip_prefix('[') {
            rest = extras.split_once(']').ok_or_else(|| refuse("`[` is not closed".to_owned()))?.1.trim();
        }
        let url = rest.starts_with('@');
        let rest = rest.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(rest);
        let range = if url { VersionSpecifiers::empty() } else { specifiers(rest).map_err(refuse)? };
        Ok(Self { name: normalise(name), range, conditional: url || marker.is_some(), text: text.to_owned() })
    }
}

/// The one spelling of a package name.
pub fn normalise(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            c => normal.push(c.to_ascii_lowercase()),
        }
    }
    normal
}

/// A version range as a person writes it: PEP 440 specifiers, or a bare version for "this release".
pub fn range(text: &str) -> Result<VersionSpecifiers, String> {
    let text = text.trim();
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return specifiers(text);
    }
    let exact = text.contains(['*', '+']) || text.split('.').count() > 2;
    specifiers(&if exact { format!("=={text}") } else { format!("=={text}.*") })
}

/// PEP 440 specifiers; what is wrong with them is told in a few words.
pub fn specifiers(text: &str) -> Result<VersionSpecifiers, String> {
    if text.trim_start().starts_with(|c: char| c.is_alphabetic()) {
        return Err("it starts with a letter".to_owned());
    }
    let first_line = |error: String| {
        let line = error.lines().next().unwrap_or_default();
        let line = line.strip_prefix("Failed to parse version: ").unwrap_or(line).trim_end_matches(':');
        let mut letters = line.chars();
        letters.next().map(|first| first.to_lowercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    VersionSpecifiers::from_str(text).map_err(|error| first_line(error.to_string()))
}

/// Why no version can be within `range`, where none can.
pub fn contradiction(range: &VersionSpecifiers) -> Option<String> {
    let all: Vec<&VersionSpecifier> = range.iter().collect();
    if possible(&all) {
        return None;
    }
    let pairs = all.iter().enumerate().flat_map(|(at, one)| all[at + 1..].iter().map(move |other| [*one, *other]));
    let alone = all.iter().find(|one| !possible(&[**one])).map(|one| format!("nothing is within `{one}`"));
    let pair = || {
        let [one, other] = pairs.into_iter().find(|pair| !possible(pair))?;
        Some(format!("nothing is within both `{one}` and `{other}`"))
    };
    Some(alone.or_else(pair).unwrap_or_else(|| "nothing is within all of its parts".to_owned()))
}

/// More numbers in one version are not looked at.
const MOST_NUMBERS: usize = 16;

/// Whether some version satisfies all of them. Between neighbours among the bounds all versions fare alike, so it is
/// enough to try the bounds themselves and a version of each kind right behind them.
fn possible(all: &[&VersionSpecifier]) -> bool {
    let numbers = all.iter().map(|one| one.version().release().len()).max().unwrap_or(0);
    let behind = all.iter().flat_map(|one| behind(one.version(), numbers));
    let lowest = Version::new(vec![0; numbers.max(1)]);
    numbers > MOST_NUMBERS
        || std::iter::once(lowest).chain(behind).any(|version| all.iter().all(|one| one.contains(&version)))
}

/// A bound and what comes after it: `1.2`, then `2.0`, `1.3` and `1.2.1`, `1.2.0.1`, its next pre-release and the like.
fn behind(bound: &Version, numbers: usize) -> Vec<Version> {
    let padded = |numbers_of: &[u64]| {
        let mut padded = numbers_of.to_vec();
        padded.resize(numbers.max(padded.len()), 0);
        padded
    };
    let release = padded(bound.release());
    let mut found = vec![bound.clone(), bound.clone().with_release(release.clone())];
    let plain = |numbers: &[u64]| Version::new(padded(numbers)).with_epoch(bound.epoch());
    for at in 0..release.len() {
        let mut next = release[..=at].to_vec();
        next[at] = next[at].saturating_add(1);
        found.push(plain(&next));
    }
    found.push(plain(&[&release[..], &[1]].concat()));
    let same = || bound.clone();
    found.extend(bound.pre().map(|pre| {
        let next = Prerelease { number: pre.number.saturating_add(1), ..pre };
        same().with_pre(Some(next)).with_post(None).with_dev(None)
    }));
    found.extend(bound.post().map(|number| same().with_post(Some(number.saturating_add(1))).with_dev(None)));
    found.extend(bound.dev().map(|number| same().with_dev(Some(number.saturating_add(1)))));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_taken_apart() {
        let one: Requirement = "Setup_Tools[core] <81, >=40 ; python_version > '3.9'".parse().unwrap();
        assert_eq!((one.name.as_str(), one.conditional), ("setup-tools", true));
        assert!(one.accepts("80.10.2") && !one.accepts("81") && !one.accepts("no version"));
        assert!("wheel".parse::<Requirement>().unwrap().accepts("not even a version"));
        assert!("x @ file:///x.whl".parse::<Requirement>().unwrap().conditional);
        for wrong in ["", "<81", "-x", "a[b", "a ~ 3", "a\nb", "--index-url x", "ä"] {
            assert!(wrong.parse::<Requirement>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_range_that_no_version_satisfies_is_known() {
        let why = |text: &str| contradiction(&specifiers(text).unwrap());
        for (text, parts) in [
            (">=12,<11", "`<11` and `>=12`"),
            (">=2.0,!=2.3,<1", "`<1` and `>=2.0`"),
            (">1,<1", "`<1` and `>1`"),
            ("==2.*,!=2.*", ""),
            ("==2.11.0,==2.12.0", ""),
            ("~=2.2,<2.2", ""),
            (">=1.2,!=1.2.*,<1.3", "all of its parts"),
            ("==12.8.*,<12.8", ""),
            ("<0", "within `<0`"),
        ] {
            let why = why(text).unwrap_or_else(|| panic!("{text}"));
            let all = parts.split(" and ").all(|part| why.contains(part));
            assert!(why.starts_with("nothing is within") && all, "{text}: {why}");
        }
        for text in [
            "",
            ">=12,<13",
            ">=12",
            "<11",
            "!=0",
            ">1.0,<1.0.1",
            ">1.4.9,<1.4.10",
            ">1.0a1,<=1.0a3,!=1.0a3",
            "==1!2.0",
            ">=2,!=2.0",
            ">1.0.dev1,<=1.0.dev3,!=1.0.dev3",
            ">1.0.post1,<1.1",
            "==2.9.1+cu128",
            "~=2.2",
            "==12.8.*",
            "<1,!=0.3.*",
            "===1.0",
        ] {
            assert_eq!(why(text), None, "{text}");
        }
    }

    #[test]
    fn a_bare_version_names_its_release() {
        let accepts = |text: &str, version: &str| range(text).unwrap().contains(&version.parse().unwrap());
        assert!(accepts("13.0", "13.0") && accepts("13.0", "13.0.88") && !accepts("13.0", "13.1"));
        assert!(accepts("2.11.0", "2.11.0+cu130") && !accepts("2.11.0", "2.11.1"));
        assert!(accepts(">=2.0", "2.11.0+cu130") && accepts("", "1"));
        assert!(range("new").is_err());
    }
}
