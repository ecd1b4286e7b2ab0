//! What a log, a build or a flag says: facts by name, each with where it came from, and which one to believe.

use std::collections::BTreeMap;

/// Where a fact came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// A line of the log.
    Line(u64),
    /// Told with the question: a flag, our own build, this machine.
    Given(String),
}

impl Origin {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Line(number) => format!("line {number}"),
            Self::Given(by) => by.clone(),
        }
    }
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fact {
    /// What it says.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
    /// How much it is worth against others of its name.
    pub rank: u8,
}

/// Values kept of one name; a log may name thousands.
const KEPT: usize = 24;
/// Longer values are cut: no fact that a sentence can hold is longer.
const LONGEST: usize = 300;

/// Facts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<String, Vec<Fact>>);

impl Facts {
    /// Adds a fact that was told with the question; it outweighs what the log says.
    pub fn give(&mut self, name: &str, value: impl Into<String>, by: &str) {
        self.add(name, &value.into(), Origin::Given(by.to_owned()), u8::MAX);
    }

    pub(super) fn add(&mut self, name: &str, value: &str, origin: Origin, rank: u8) {
        let value: String = value.trim().chars().take(LONGEST).collect();
        let known = self.0.entry(name.to_owned()).or_default();
        if known.len() < KEPT && !known.iter().any(|fact| fact.value == value && fact.rank >= rank) {
            known.push(Fact { value, origin, rank });
        }
    }

    fn of(&self, name: &str) -> &[Fact] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The most trusted one; of equals the one that stands nearest to `line`.
    fn best(&self, name: &str, line: u64) -> Option<&Fact> {
        let distance = |fact: &Fact| match fact.origin {
            Origin::Line(at) => at.abs_diff(line),
            Origin::Given(_) => 0,
        };
        self.of(name).iter().min_by_key(|fact| (u8::MAX - fact.rank, distance(fact)))
    }
}

/// The facts that count for one line: what it says itself, what stands around it, what was given, what else is there.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) line: u64,
    pub(super) own: &'a Facts,
    pub(super) near: &'a Facts,
    pub(super) given: &'a Facts,
    pub(super) log: &'a Facts,
}

impl View<'_> {
    /// One fact as it was found.
    pub(super) fn fact(&self, name: &str) -> Option<&Fact> {
        let [own, given, near, log] = [self.own, self.given, self.near, self.log].map(|f| f.best(name, self.line));
        own.or(given).or(near).or(log)
    }

    /// Every value of a name.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let mut values: Vec<&str> = Vec::new();
        for fact in [self.own, self.given, self.near, self.log].iter().flat_map(|facts| facts.of(name)) {
            if !values.contains(&fact.value.as_str()) {
                values.push(&fact.value);
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_itself_wins_then_what_was_given_then_rank_then_nearness() {
        let mut facts = [Facts::default(), Facts::default(), Facts::default(), Facts::default()];
        let get = |facts: &[Facts; 4]| {
            let view = View { line: 50, own: &facts[0], given: &facts[1], near: &facts[2], log: &facts[3] };
            view.fact("toolkit").map(|fact| (fact.value.clone(), fact.origin.text()))
        };
        facts[3].add("toolkit", "10.2", Origin::Line(1), 1);
        facts[3].add("toolkit", "11.8", Origin::Line(40), 1);
        assert_eq!(get(&facts).unwrap(), ("11.8".into(), "line 40".into()));
        facts[3].add("toolkit", "10.2", Origin::Line(900), 3);
        assert_eq!(get(&facts).unwrap(), ("10.2".into(), "line 900".into()));
        facts[2].add("toolkit", "12.0", Origin::Line(49), 0);
        assert_eq!(get(&facts).unwrap().0, "12.0");
        facts[1].give("toolkit", "12.4", "--cuda");
        assert_eq!(get(&facts).unwrap(), ("12.4".into(), "--cuda".into()));
        facts[0].add("toolkit", "13.0", Origin::Line(50), 0);
        assert_eq!(get(&facts).unwrap().0, "13.0");
    }

    #[test]
    fn endless_facts_are_bounded() {
        let mut facts = Facts::default();
        (0..1000).for_each(|n| facts.add("x", &format!("{n}{}", "y".repeat(1000)), Origin::Line(n), 0));
        assert_eq!(facts.of("x").len(), KEPT);
        assert!(facts.of("x").iter().all(|fact| fact.value.len() == LONGEST));
    }
}
