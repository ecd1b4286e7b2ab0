//! All rules, ready to search: which literals to look for, who wants to see a line that holds one, and the compiled
//! patterns.
//!
//! Invariant: made once from the files in `rules/`; a file that did not read would be a bug, and a test reads them all.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::Regex;

use super::attempts;
use super::marks;
use super::rule::{Context, File, Find, Rule};
use super::words;

/// The rule files, by tool family.
pub(super) const FILES: [(&str, &str); 9] = [
    ("context", include_str!("rules/context.toml")),
    ("compilers", include_str!("rules/compilers.toml")),
    ("link", include_str!("rules/link.toml")),
    ("cmake", include_str!("rules/cmake.toml")),
    ("python", include_str!("rules/python.toml")),
    ("torch", include_str!("rules/torch.toml")),
    ("loading", include_str!("rules/loading.toml")),
    ("runtime", include_str!("rules/runtime.toml")),
    ("machine", include_str!("rules/machine.toml")),
];

/// Who wants to see a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch {
    /// A pattern of a rule, by its number.
    Find(usize),
    /// A context entry, by its number.
    Context(usize),
    /// Whatever collects lines that look like errors.
    Error,
    /// Whatever collects the commands that were typed.
    Command,
    /// Whatever looks for the end of a build that went well.
    Success,
}

/// How a line is matched.
pub(super) enum Matcher<'a> {
    /// The literal is enough.
    Literal,
    /// By this expression.
    Regex(&'a Regex),
    /// It does not compile, which a test forbids.
    Nothing,
}

/// A pattern of a rule, and a place for it compiled.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: OnceLock<Option<Regex>>,
    text: Option<String>,
}

impl Pattern {
    fn new(text: Option<&str>) -> Self {
        Self { regex: OnceLock::new(), text: text.map(str::to_owned) }
    }

    /// How to match.
    pub(super) fn matcher(&self) -> Matcher<'_> {
        let Some(text) = self.text.as_deref() else { return Matcher::Literal };
        self.regex.get_or_init(|| Regex::new(text).ok()).as_ref().map_or(Matcher::Nothing, Matcher::Regex)
    }
}

/// Everything needed to search.
#[derive(Debug)]
pub(super) struct Index {
    /// Every rule.
    pub(super) rules: Vec<Rule>,
    /// Every context entry.
    pub(super) contexts: Vec<Context>,
    /// Rule and pattern of each number.
    pub(super) finds: Vec<(usize, usize)>,
    /// Compiled patterns of `finds`.
    pub(super) find_patterns: Vec<Pattern>,
    /// Compiled patterns of `contexts`.
    pub(super) context_patterns: Vec<Pattern>,
    /// Every literal.
    pub(super) needles: Vec<String>,
    /// Who watches which literal.
    pub(super) watchers: Vec<Vec<Watch>>,
    /// The search for all of them.
    pub(super) search: Option<AhoCorasick>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut all = File::default();
    for (_, text) in FILES {
        let file: File = toml::from_str(text).unwrap_or_default();
        all.rule.extend(file.rule);
        all.context.extend(file.context);
    }
    Index::new(all)
});

/// The one index.
pub(super) fn index() -> &'static Index {
    &INDEX
}

impl Index {
    fn new(file: File) -> Self {
        let File { rule: rules, context: contexts } = file;
        let mut watched: BTreeMap<String, Vec<Watch>> = BTreeMap::new();
        let mut watch = |literal: &str, who| {
            let watchers = watched.entry(literal.to_owned()).or_default();
            if !watchers.contains(&who) {
                watchers.push(who);
            }
        };
        let (mut finds, mut find_patterns) = (Vec::new(), Vec::new());
        for (number, rule) in rules.iter().enumerate() {
            for (at, find) in rule.find.iter().enumerate() {
                for literal in &find.has {
                    watch(literal, Watch::Find(finds.len()));
                    words::forms(literal).for_each(|form| watch(form, Watch::Find(finds.len())));
                }
                finds.push((number, at));
                find_patterns.push(Pattern::new(find.pattern.as_deref()));
            }
        }
        for (number, context) in contexts.iter().enumerate().filter(|(_, context)| !context.near) {
            context.has.iter().for_each(|literal| watch(literal, Watch::Context(number)));
        }
        for literal in attempts::COMMANDS {
            watch(literal, Watch::Command);
        }
        for literal in marks::ERRORS.into_iter().chain(words::ERRORS) {
            watch(literal, Watch::Error);
        }
        for literal in marks::SUCCESSES {
            watch(literal, Watch::Success);
        }
        let context_patterns = contexts.iter().map(|context| Pattern::new(Some(&context.pattern))).collect();
        let (needles, watchers): (Vec<String>, Vec<Vec<Watch>>) = watched.into_iter().unzip();
        let search = search(&needles);
        Self { rules, contexts, finds, find_patterns, context_patterns, needles, watchers, search }
    }

    /// The rule and the pattern of a number.
    pub(super) fn find(&self, number: usize) -> (&Rule, &Find) {
        let (rule, find) = self.finds[number];
        (&self.rules[rule], &self.rules[rule].find[find])
    }
}

/// A search for literals.
pub(super) fn search<S: AsRef<[u8]>>(needles: &[S]) -> Option<AhoCorasick> {
    AhoCorasick::builder().match_kind(MatchKind::Standard).kind(Some(AhoCorasickKind::DFA)).build(needles).ok()
}
