//! What a log says about its failure, as a value: `ui` shows it, JSON carries it.

use serde::Serialize;

use super::rule::Kind;

/// What can be said about a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A rule knows the cause.
    Explained,
    /// It failed, and no rule knows why.
    Unknown,
    /// Nothing says that it failed.
    NoFailure,
    /// It is no text, so nothing can be said.
    NotText,
}

/// How much a finding explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// An error that made it fail.
    Error,
    /// No error was printed, and the result is not what was wanted.
    Quiet,
    /// What the real cause, which is not in this log, leads to.
    Symptom,
}

impl Weight {
    pub(super) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Cause => Self::Error,
            Kind::Quiet => Self::Quiet,
            Kind::Symptom | Kind::Side | Kind::Echo => Self::Symptom,
        }
    }
}

/// The answer for one log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Diagnosis {
    /// What was read: a file's name, `standard input`, or the log of a build.
    pub input: String,
    /// What can be said.
    pub verdict: Verdict,
    /// The first real cause.
    pub cause: Option<Finding>,
    /// Other causes, which do not follow from the first.
    pub further: Vec<Finding>,
    /// Worth knowing, but nothing failed by it.
    pub side: Vec<Finding>,
    /// Lines that only say that something failed, or say nothing about it.
    pub echoes: Vec<Echo>,
    /// Lines that look like errors and that no rule knows: all where the verdict is unknown, else those before the cause.
    pub errors: Vec<UnknownError>,
    /// The last line that says that all went well.
    pub success: Option<LogLine>,
    /// The last lines, where nothing else could be shown.
    pub tail: Vec<String>,
    /// Lines read.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// One cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// Stable name of the cause, which is also a topic of `explain`.
    pub label: String,
    /// How much it explains.
    pub weight: Weight,
    /// What went wrong, in one sentence.
    pub title: String,
    /// The line that shows it.
    pub evidence: LogLine,
    /// That line with what belongs to it.
    pub excerpt: Vec<String>,
    /// How many jobs or lines say the same.
    pub count: usize,
    /// What it broke: objects, targets or files, the first few.
    pub broke: Vec<String>,
    /// Why, a fact a line, with where each comes from.
    pub why: Vec<String>,
    /// Mends, the best first.
    pub mend: Vec<String>,
    /// What is not the cause, though it looks like it.
    pub not: Vec<String>,
    /// Where the knowledge comes from.
    pub source: String,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct LogLine {
    /// Number, counted from 1.
    pub line: u64,
    /// Text, without what CI and terminals add.
    pub text: String,
}

/// A line that is not the cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Echo {
    /// Name of the rule that knows it.
    pub label: String,
    /// Number of the first such line.
    pub line: u64,
    /// Its text.
    pub text: String,
    /// What it means.
    pub meaning: String,
}

/// A line that looks like an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct UnknownError {
    /// Number, counted from 1.
    pub line: u64,
    /// Text.
    pub text: String,
    /// The line with what belongs to it.
    pub excerpt: Vec<String>,
}

impl Diagnosis {
    /// The cause and the further ones.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.cause.iter().chain(&self.further)
    }
}
