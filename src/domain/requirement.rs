//! Python requirements and version ranges, as far as choosing a toolchain needs them.
//!
//! A range is PEP 440; a bare version means "this release": `2.11` is `==2.11.*`, `2.11.0` is `==2.11.0`. Markers are
//! kept as text and never evaluated here: uv does that.

use std::fmt;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

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
    fn a_bare_version_names_its_release() {
        let accepts = |text: &str, version: &str| range(text).unwrap().contains(&version.parse().unwrap());
        assert!(accepts("13.0", "13.0") && accepts("13.0", "13.0.88") && !accepts("13.0", "13.1"));
        assert!(accepts("2.11.0", "2.11.0+cu130") && !accepts("2.11.0", "2.11.1"));
        assert!(accepts(">=2.0", "2.11.0+cu130") && accepts("", "1"));
        assert!(range("new").is_err());
    }
}
