//! Sentences with facts in braces. A sentence whose facts are not known is not said.
//!
//! `{toolkit}` is a fact, `{toolkit|your CUDA}` has words for when it is unknown, `{@toolkit}` tells where it came from.

use super::condition::hold;
use super::facts::View;
use super::rule::{Text, Texts};

/// Every sentence that can be said.
pub(super) fn all(texts: &Texts, view: &View<'_>) -> Vec<String> {
    texts.0.iter().filter_map(|text| one(text, view)).collect()
}

/// The first sentence that can be said.
pub(super) fn first(texts: &Texts, view: &View<'_>) -> Option<String> {
    texts.0.iter().find_map(|text| one(text, view))
}

fn one(text: &Text, view: &View<'_>) -> Option<String> {
    if !hold(&text.when, view) {
        return None;
    }
    fill(&text.text, |name| match name.strip_prefix('@') {
        Some(name) => view.fact(name).map(|fact| fact.origin.text()),
        None => view.get(name),
    })
}

/// Puts facts into a sentence; `None` where one is unknown. Braces that hold no name stay as they are.
pub(super) fn fill(text: &str, fact: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            filled.push('{');
            rest = after;
            continue;
        };
        let (name, instead) = inside.split_once('|').map_or((inside, None), |(name, words)| (name, Some(words)));
        if is_name(name) {
            filled.push_str(&fact(name).or_else(|| instead.map(str::to_owned))?);
            rest = behind;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled.push_str(rest);
    Some(filled)
}

/// The names in a sentence.
#[cfg(test)]
pub(super) fn names(text: &str) -> Vec<String> {
    let found = std::cell::RefCell::new(Vec::new());
    let _ = fill(text, |name| {
        found.borrow_mut().push(name.to_owned());
        Some(String::new())
    });
    found.into_inner()
}

fn is_name(text: &str) -> bool {
    let name = text.strip_prefix('@').unwrap_or(text);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_said_only_with_its_facts() {
        let fact = |name: &str| (name == "a").then(|| "1".to_owned());
        assert_eq!(fill("x {a} y", fact).as_deref(), Some("x 1 y"));
        assert_eq!(fill("x {b} y", fact), None);
        assert_eq!(fill("x {b|two} y", fact).as_deref(), Some("x two y"));
        assert_eq!(fill("${X} {} {a", fact).as_deref(), Some("${X} {} {a"));
        assert_eq!(names("{a} {@b} {c|d} {E}"), ["a", "@b", "c"]);
    }
}
