//! Conditions that a rule may set, by name. They ask the tables, so that one message with several mends is told apart.
//!
//! `!` in front negates. An unknown fact makes a condition false, but for those that say otherwise below.

use super::derive::{ancient, twin, version};
use super::facts::View;
use crate::compat::{arch_span, toolkit};
use crate::domain::arch::Arch;
use crate::domain::symbol;

type Test = fn(&View<'_>, &[&str]) -> bool;

/// Every condition, with the number of its arguments.
const ALL: [(&str, usize, Test); 17] = [
    // A fact is known, or holds exactly a value, or one of the words of a text.
    ("has", 1, |view, args| view.get(args[0]).is_some()),
    ("is", 2, |view, args| view.get(args[0]).as_deref() == Some(args[1])),
    ("contains", 2, |view, args| view.get(args[0]).is_some_and(|value| value.contains(args[1]))),
    // Two facts, or a fact and a number, as versions.
    ("newer", 2, |view, args| both(view, args).is_some_and(|(one, other)| one > other)),
    ("same-major", 2, |view, args| both(view, args).is_some_and(|(one, other)| one.major == other.major)),
    ("other-major", 2, |view, args| both(view, args).is_some_and(|(one, other)| one.major != other.major)),
    ("equal", 2, |view, args| both(view, args).is_some_and(|(one, other)| one.release() == other.release())),
    // The arch of the line.
    ("arch-empty", 0, |view, _| raw_arch(view).is_some_and(|text| matches!(text.as_str(), "" | "native"))),
    ("arch-garbage", 0, |view, _| garbage(view)),
    ("arch-after-toolkit", 0, |view, _| after(view)),
    ("arch-gone", 0, |view, _| gone(view)),
    ("arch-renamed", 0, |view, _| renamed(view)),
    ("arch-is-cuda-version", 0, |view, _| is_cuda_version(view)),
    ("arch-unheard", 0, |view, _| {
        view.arch().is_some_and(|arch| arch_span(arch).is_none() && !ancient(arch)) || lost_zero(view).is_some()
    }),
    // The symbol of the line.
    ("symbol-of-torch", 0, |view, _| symbol_name(view).is_some_and(|name| symbol::is_torch(&name))),
    ("symbol-cxx11", 0, |view, _| symbol_raw(view).is_some_and(|name| has_cxx11(&name))),
    ("symbol-old-string", 0, |view, _| symbol_name(view).is_some_and(|name| name.contains("std::string"))),
];

/// Whether every condition holds. One that does not exist never does; a test keeps such out of the rules.
pub(super) fn hold(conditions: &[String], view: &View<'_>) -> bool {
    conditions.iter().all(|condition| {
        let (negated, test) = match condition.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, condition.as_str()),
        };
        match parse(test) {
            Some((test, args)) => test(view, &args) != negated,
            None => false,
        }
    })
}

/// A condition taken apart, if it is one.
pub(super) fn parse(text: &str) -> Option<(Test, Vec<&str>)> {
    let mut words = text.trim_start_matches('!').split(' ');
    let name = words.next()?;
    let args: Vec<&str> = words.collect();
    ALL.iter().find(|(known, count, _)| *known == name && *count == args.len()).map(|(_, _, test)| (*test, args))
}

fn both(
    view: &View<'_>,
    args: &[&str],
) -> Option<(crate::domain::version::CudaVersion, crate::domain::version::CudaVersion)> {
    let one = |name: &str| view.get(name).and_then(|value| version(&value)).or_else(|| version(name));
    Some((one(args[0])?, one(args[1])?))
}

fn raw_arch(view: &View<'_>) -> Option<String> {
    let text = view.fact("arch")?.value.clone();
    let rest = text.strip_prefix("compute_").or_else(|| text.strip_prefix("sm_")).map(str::to_owned);
    Some(rest.unwrap_or(text))
}

/// Digits that are no arch since the `.0` was lost on the way: 8, 10, 12.
fn lost_zero(view: &View<'_>) -> Option<Arch> {
    let text = raw_arch(view)?;
    let short = text.len() == 1 || (text.len() == 2 && text.starts_with('1'));
    if short { format!("{text}.0").parse().ok() } else { None }
}

/// No arch at all: a word, a sentence, a path.
fn garbage(view: &View<'_>) -> bool {
    let Some(text) = raw_arch(view) else { return false };
    !matches!(text.as_str(), "" | "native") && view.arch().is_none() && lost_zero(view).is_none()
}

/// The toolkit is older than the arch. With the toolkit unknown: an arch that no later toolkit dropped can only be
/// too new for it.
fn after(view: &View<'_>) -> bool {
    let Some(span) = view.arch().and_then(arch_span) else { return false };
    view.toolkit().map_or(span.last.is_none(), |toolkit| span.first > toolkit.release())
}

/// The toolkit is too new for the arch. With the toolkit unknown: an arch that came before the oldest known toolkit can
/// only have been dropped.
fn gone(view: &View<'_>) -> bool {
    let Some(arch) = view.arch() else { return false };
    if ancient(arch) {
        return true;
    }
    let Some(span) = arch_span(arch) else { return false };
    let Some(last) = span.last else { return false };
    let oldest = crate::compat::toolkits().first().map(|toolkit| toolkit.release);
    view.toolkit().map_or(Some(span.first) == oldest, |toolkit| toolkit.release() > last)
}

/// The toolkit knows the same GPU by another number.
fn renamed(view: &View<'_>) -> bool {
    let (Some(arch), Some(version)) = (view.arch(), view.toolkit()) else { return false };
    toolkit(version).is_some_and(|toolkit| !toolkit.knows(arch) && twin(arch).is_some_and(|twin| toolkit.knows(twin)))
}

/// Somebody typed the CUDA version where a capability was asked for: 10.1 with CUDA 10.1, and no card is a 10.1.
fn is_cuda_version(view: &View<'_>) -> bool {
    let Some(arch) = view.arch() else { return false };
    let same = |version: crate::domain::version::CudaVersion| {
        (version.major, version.minor) == (u16::from(arch.capability.major), u16::from(arch.capability.minor))
    };
    let named =
        view.toolkit().is_some_and(same) || view.fact("driver_cuda").and_then(|f| version(&f.value)).is_some_and(same);
    let knows = view.toolkit().and_then(toolkit).is_some_and(|toolkit| toolkit.knows(arch));
    // Without a card to compare, 12.0 with CUDA 12.0 may be meant: it is a card of a year later. 10.1 with CUDA 10.1 not.
    let far =
        || arch_span(arch).is_none_or(|span| view.toolkit().is_some_and(|toolkit| toolkit.major < span.first.major));
    named && !knows && view.gpu().map_or_else(far, |gpu| gpu != arch.capability)
}

fn symbol_raw(view: &View<'_>) -> Option<String> {
    view.fact("symbol").map(|fact| fact.value.clone())
}

fn symbol_name(view: &View<'_>) -> Option<String> {
    symbol_raw(view).map(|name| symbol::demangle(&name))
}

fn has_cxx11(name: &str) -> bool {
    name.contains("__cxx11") || name.contains("B5cxx11")
}

#[cfg(test)]
mod tests {
    use super::super::facts::{Facts, Origin};
    use super::*;

    fn holds(condition: &str, facts: &[(&str, &str)]) -> bool {
        let mut own = Facts::default();
        for (name, value) in facts {
            own.add(name, value, Origin::Line(1), 0);
        }
        let none = Facts::default();
        let view = View { line: 1, own: &own, near: &none, given: &none, log: &none };
        hold(&[condition.to_owned()], &view)
    }

    #[test]
    fn one_message_has_four_meanings_and_each_arch_only_one() {
        let tests = ["arch-empty", "arch-garbage", "arch-after-toolkit", "arch-gone", "arch-unheard"];
        for (arch, toolkit, is) in [
            ("compute_86", Some("10.2"), "arch-after-toolkit"),
            ("compute_86", None, "arch-after-toolkit"),
            ("sm_120a", Some("12.4"), "arch-after-toolkit"),
            ("compute_60", Some("13.0"), "arch-gone"),
            ("compute_60", None, "arch-gone"),
            ("compute_20", Some("11.4"), "arch-gone"),
            ("compute_35", Some("12.1"), "arch-gone"),
            ("compute_", Some("12.2"), "arch-empty"),
            ("compute_native", None, "arch-empty"),
            ("sm_Failed", Some("12.2"), "arch-garbage"),
            ("compute_No devices", None, "arch-garbage"),
            ("compute_8", Some("12.2"), "arch-unheard"),
            ("compute_12", None, "arch-unheard"),
            ("compute_99", Some("12.2"), "arch-unheard"),
        ] {
            let mut facts = vec![("arch", arch)];
            facts.extend(toolkit.map(|toolkit| ("toolkit", toolkit)));
            let held: Vec<&str> = tests.into_iter().filter(|test| holds(test, &facts)).collect();
            assert_eq!(held, [is], "{arch} {toolkit:?}");
        }
    }

    #[test]
    fn a_renamed_card_and_a_mistaken_version_are_seen_with_their_facts_only() {
        assert!(holds("arch-renamed", &[("arch", "compute_101"), ("toolkit", "13.0")]));
        assert!(holds("arch-renamed", &[("arch", "sm_110a"), ("toolkit", "12.9")]));
        assert!(!holds("arch-renamed", &[("arch", "compute_110"), ("toolkit", "12.4")]));
        assert!(holds("arch-is-cuda-version", &[("arch", "compute_101"), ("toolkit", "10.1.168")]));
        assert!(!holds("arch-is-cuda-version", &[("arch", "compute_101"), ("toolkit", "10.1"), ("gpu_arch", "10.1")]));
        assert!(!holds("arch-is-cuda-version", &[("arch", "compute_120"), ("toolkit", "11.8")]));
    }

    #[test]
    fn an_unknown_fact_and_an_unknown_condition_hold_nothing() {
        assert!(!holds("newer toolkit 12.0", &[]) && holds("newer toolkit 12.0", &[("toolkit", "12.4")]));
        assert!(!holds("no-such-condition", &[]) && !holds("!no-such-condition", &[]));
        assert!(holds("!has toolkit", &[]));
    }
}
