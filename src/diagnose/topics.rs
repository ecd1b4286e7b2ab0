//! Pages that `explain TOPIC` shows: every rule, every error code, and a few general matters.
//!
//! Rules tell their own page; error codes are the sections of `docs/errors.md`; general matters are in `general.md`.

use serde::Serialize;

use super::index::index;
use super::rule::{Kind, Rule, Texts};
use super::text::fill;

const ERRORS: &str = include_str!("../../docs/errors.md");
const GENERAL: &str = include_str!("general.md");

/// What a topic is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TopicKind {
    /// A matter in general.
    General,
    /// A cause that a log may show.
    Cause,
    /// A line that is never the cause.
    Echo,
    /// An error code of cuwright.
    Error,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Topic {
    /// What to ask for.
    pub name: String,
    /// What it is about.
    pub kind: TopicKind,
    /// One line.
    pub title: String,
    /// The page, in paragraphs.
    pub text: String,
}

/// Every topic: general ones, causes, error codes, each group by name.
pub fn all() -> Vec<Topic> {
    let mut topics = sections(GENERAL, "## ", TopicKind::General);
    topics.extend(index().rules.iter().map(of_rule));
    topics.extend(sections(ERRORS, "### ", TopicKind::Error));
    topics.sort_by(|a, b| (a.kind as u8, &a.name).cmp(&(b.kind as u8, &b.name)));
    topics
}

/// The topic of that name; an error code may be given without `cuwright::`.
pub fn find<'a>(topics: &'a [Topic], name: &str) -> Option<&'a Topic> {
    let name = name.trim().to_lowercase().replace('_', "-");
    let plain = |topic: &Topic| topic.name.replace('_', "-");
    let same = |topic: &&Topic| {
        plain(topic) == name
            || plain(topic).strip_prefix("cuwright").and_then(|rest| rest.strip_prefix("::")) == Some(&name)
    };
    topics.iter().find(same)
}

fn of_rule(rule: &Rule) -> Topic {
    let known = |text: &str| fill(text, |name| Some(format!("<{}>", name.trim_start_matches('@').replace('_', " "))));
    let list = |head: &str, texts: &Texts| {
        let lines: Vec<String> =
            texts.0.iter().filter_map(|text| known(&text.text)).map(|text| format!("- {text}")).collect();
        if lines.is_empty() { String::new() } else { format!("\n\n{head}\n{}", lines.join("\n")) }
    };
    let title = rule.title.0.last().and_then(|text| known(&text.text)).unwrap_or_default();
    let about = if rule.about.is_empty() { title.as_str() } else { rule.about.trim() };
    Topic {
        name: rule.label.clone(),
        kind: if rule.kind == Kind::Echo { TopicKind::Echo } else { TopicKind::Cause },
        text: format!(
            "{about}{}{}{}\n\nSource: {}",
            list("What is told, as far as it is known:", &rule.why),
            list("Mends:", &rule.mend),
            list("Not the cause:", &rule.not),
            rule.source
        ),
        title,
    }
}

/// Sections of a Markdown file whose headings are a name, perhaps in backticks, and perhaps a title behind a colon.
fn sections(text: &str, mark: &str, kind: TopicKind) -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix(mark) {
            let head = head.replace('`', "");
            let (name, title) = head.split_once(": ").unwrap_or((&head, ""));
            topics.push(Topic { name: name.to_owned(), kind, title: title.to_owned(), text: String::new() });
            open = true;
        } else if line.starts_with('#') {
            open = false;
        } else if let Some(topic) = topics.last_mut().filter(|_| open) {
            topic.text.push_str(line);
            topic.text.push('\n');
        }
    }
    for topic in &mut topics {
        topic.text = topic.text.trim().to_owned();
        if topic.title.is_empty() {
            let first = topic.text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
            first.split_once(". ").map_or(first.as_str(), |(sentence, _)| sentence).clone_into(&mut topic.title);
        }
    }
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_and_every_error_code_is_a_topic_with_text() {
        let topics = all();
        for topic in &topics {
            assert!(!topic.title.is_empty() && topic.text.len() > 40, "{topic:?}");
            assert_eq!(topics.iter().filter(|other| other.name == topic.name).count(), 1, "{}", topic.name);
        }
        for rule in &index().rules {
            assert!(find(&topics, &rule.label).is_some());
        }
        for name in ["cuwright::build::failed", "build::failed", "no_kernel_image", "ARCH", "memory", "isolation"] {
            assert!(find(&topics, name).is_some(), "{name}");
        }
        assert!(find(&topics, "no such thing").is_none());
    }

    #[test]
    fn the_committed_schema_is_what_the_code_says() {
        crate::schema_check::<Vec<Topic>>("schemas/topics.schema.json");
    }
}
