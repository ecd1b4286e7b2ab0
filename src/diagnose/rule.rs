//! Rules as data: what a TOML file under `rules/` may say. A new rule needs no code.
//!
//! A rule has a stable label, patterns that know its lines, conditions over facts, and texts with facts in braces. A
//! context entry draws facts from lines that are no error: versions, paths, cards.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

/// How much a finding explains; the first of the highest kind is the cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Why it failed.
    #[default]
    Cause,
    /// Went wrong without an error: the build ends well and the result is not what was wanted.
    Quiet,
    /// What a cause leads to; explained where the cause itself is not in the log.
    Symptom,
    /// Worth knowing, but nothing failed by it.
    Side,
    /// Only says that something else failed, or is harmless; never the cause.
    Echo,
}

/// A sentence with facts in braces, perhaps only under conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// Conditions, all of which must hold.
    pub when: Vec<String>,
    /// The sentence; left out where a fact in it is unknown.
    pub text: String,
}

/// Sentences in order: one string, or a list of strings and `{ when, text }` tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Texts(pub Vec<Text>);

/// One pattern of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Find {
    /// Literals, one of which every such line holds; what the fast search looks for.
    pub has: Vec<String>,
    /// Regular expression over the cleaned line; its named groups are facts. Without one, the literal is enough.
    #[serde(default, rename = "match")]
    pub pattern: Option<String>,
    /// Lines joined by blanks before matching, since CMake and others wrap.
    #[serde(default = "one")]
    pub lines: usize,
    /// Conditions, all of which must hold.
    #[serde(default)]
    pub when: Vec<String>,
    /// Facts that this pattern stands for.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

fn one() -> usize {
    1
}

/// One cause of failure, or one thing that is none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    /// Stable name, which is also a topic.
    pub label: String,
    /// How much it explains.
    #[serde(default)]
    pub kind: Kind,
    /// Whether such a line shows that something failed, for an echo.
    #[serde(default)]
    pub failing: bool,
    /// What went wrong; the first sentence whose facts are known.
    pub title: Texts,
    /// The matter in general, for the topic's page.
    #[serde(default)]
    pub about: String,
    /// Patterns.
    pub find: Vec<Find>,
    /// Why, a fact a line.
    #[serde(default)]
    pub why: Texts,
    /// Mends, the best first.
    #[serde(default)]
    pub mend: Texts,
    /// What people take for the cause, and is not.
    #[serde(default)]
    pub not: Texts,
    /// Labels that are consequences of this one, wherever they stand.
    #[serde(default)]
    pub beats: Vec<String>,
    /// Where the knowledge comes from.
    pub source: String,
}

/// Draws facts from a line that is no error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Context {
    /// Literals, one of which such a line holds.
    pub has: Vec<String>,
    /// Regular expression; its named groups are facts.
    #[serde(rename = "match")]
    pub pattern: String,
    /// Match the line after the one that holds the literal, as what a command printed.
    #[serde(default)]
    pub next: bool,
    /// Look only at the lines that belong to an error: its command and its place.
    #[serde(default)]
    pub near: bool,
    /// Take every match in the line, not the first alone.
    #[serde(default)]
    pub every: bool,
    /// What wins where several lines tell a fact; higher first.
    #[serde(default)]
    pub rank: u8,
}

/// One file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) rule: Vec<Rule>,
    #[serde(default)]
    pub(super) context: Vec<Context>,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sentence, or a table with `when` and `text`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text { when: Vec::new(), text: text.to_owned() })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                let (mut when, mut text) = (Vec::new(), None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "when" => when = map.next_value()?,
                        "text" => text = Some(map.next_value()?),
                        other => return Err(de::Error::unknown_field(other, &["when", "text"])),
                    }
                }
                Ok(Text { when, text: text.ok_or_else(|| de::Error::missing_field("text"))? })
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sentence or a list of them")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![Text { when: Vec::new(), text: text.to_owned() }]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
