//! What went wrong, for a person: what, why, and the mend.
//!
//! Every error that can reach a user ends as a `Problem` with a stable code. Stages build theirs beside the code
//! that fails; only `ui` renders them. Codes are listed in `docs/errors.md`, and a test holds the two together.

use std::fmt;
use std::ops::Range;

use super::exit::Exit;

/// A place in a text that a person wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    /// File name, flag or variable that holds the text.
    pub origin: String,
    /// The whole text.
    pub text: String,
    /// Byte range at fault within `text`.
    pub range: Range<usize>,
    /// What is wrong with that range, in a few words.
    pub label: String,
}

/// One user-facing error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    code: &'static str,
    exit: Exit,
    message: String,
    snippet: Option<Snippet>,
    why: Vec<String>,
    help: Vec<String>,
}

impl Problem {
    /// A problem with a stable `code` (`cuwright::<stage>::<what>`) and a lower-case message without final period.
    pub fn new(code: &'static str, exit: Exit, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Inner { code, exit, message, snippet: None, why: Vec::new(), help: Vec::new() }))
    }

    /// Adds one line of evidence and where it came from.
    #[must_use]
    pub fn why(mut self, evidence: impl Into<String>) -> Self {
        self.0.why.push(evidence.into());
        self
    }

    /// Adds one mend: a command to run or an edit to make. One that begins with "or" loses it where it is the first.
    #[must_use]
    pub fn help(mut self, mend: impl Into<String>) -> Self {
        let mend = mend.into();
        let alone = mend.strip_prefix("or ").filter(|_| self.0.help.is_empty()).map(str::to_owned);
        self.0.help.push(alone.unwrap_or(mend));
        self
    }

    /// Points at the text that is at fault.
    #[must_use]
    pub fn at(mut self, snippet: Snippet) -> Self {
        self.0.snippet = Some(snippet);
        self
    }

    /// Stable code.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// Exit code of a process that stops on this.
    pub fn exit(&self) -> Exit {
        self.0.exit
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it stands, if in a text.
    pub fn snippet(&self) -> Option<&Snippet> {
        self.0.snippet.as_ref()
    }

    /// The evidence, a fact a line.
    pub fn evidence(&self) -> &[String] {
        &self.0.why
    }

    /// The mends, the best first.
    pub fn mends(&self) -> &[String] {
        &self.0.help
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.message)
    }
}

impl std::error::Error for Problem {}

/// One or more problems found together; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// `Err` if any problem was collected.
    pub fn check(found: Vec<Problem>) -> Result<(), Self> {
        if found.is_empty() { Ok(()) } else { Err(Self(found)) }
    }

    /// Adds one line of evidence to the last problem, where it is read next to the mends.
    #[must_use]
    pub fn also(mut self, evidence: &str) -> Self {
        if let Some(last) = self.0.pop() {
            self.0.push(last.why(evidence));
        }
        self
    }

    /// Every problem changed by `change`.
    #[must_use]
    pub fn map(self, change: impl FnMut(Problem) -> Problem) -> Self {
        Self(self.0.into_iter().map(change).collect())
    }

    /// The problems, in the order found.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// The exit code of the first problem, which is the one to act on.
    pub fn exit(&self) -> Exit {
        self.0.first().map_or(Exit::Bug, Problem::exit)
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An error with everything behind it, outermost first.
pub fn chain(error: &dyn std::error::Error) -> String {
    let behind = std::iter::successors(error.source(), |error| error.source());
    behind.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The legal name nearest to `wrong`, if one is near enough to be a slip.
pub fn nearest<'a>(wrong: &str, legal: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    legal
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_does_not() {
        assert_eq!(nearest("mmvc", ["mmcv", "torch-scatter"]), Some("mmcv"));
        assert_eq!(nearest("archs", ["arch", "ptx"]), Some("arch"));
        assert_eq!(nearest("zzz", ["mmcv", "arch"]), None);
    }

    #[test]
    fn the_first_mend_follows_no_other() {
        let problem = Problem::new("cuwright::test", Exit::Usage, "x").help("or this").help("or that");
        assert_eq!(problem.mends(), ["this", "or that"]);
    }

    #[test]
    fn no_problem_is_ok() {
        assert!(Problems::check(Vec::new()).is_ok());
        let one = Problem::new("cuwright::test", Exit::Recipe, "x");
        assert_eq!(Problems::check(vec![one]).map_err(|p| p.exit()), Err(Exit::Recipe));
    }
}
