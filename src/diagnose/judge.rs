//! From what was found to one answer: conditions are asked now that all facts are known, hits become one finding a
//! cause, and the findings are put in order.
//!
//! Invariant: a root cause beats what follows from it, an error beats a quiet fault, and the earlier beats the later of
//! equals. Where no rule holds, nothing is claimed.

use std::collections::BTreeSet;

use super::attempts;
use super::condition::hold;
use super::diagnosis::{Diagnosis, Echo, Finding, LogLine, UnknownError, Verdict, Weight};
use super::facts::{Facts, View};
use super::index::Index;
use super::rule::{Kind, Rule};
use super::scan::{Found, Hit, Scanner};
use super::text;

/// Names of broken targets that are told.
const NAMED: usize = 4;
/// Unknown errors that are told.
const TOLD: usize = 6;

/// Ends a scan and judges it. `given` are facts that outweigh what the log says.
pub fn judge(scanner: Scanner, input: &str, given: &Facts) -> Diagnosis {
    let (index, found) = scanner.end();
    let overcome =
        attempts::overcome(&found.commands, found.last_error.max(found.success.as_ref().map_or(0, |end| end.0)));
    let (mut heard, mut earlier) = (Vec::new(), Vec::new());
    let mut lines = BTreeSet::new();
    for (number, rule) in index.rules.iter().enumerate() {
        let mut hits = hits_of(index, &found, number, given);
        lines.extend(hits.iter().map(|hit| hit.line));
        let before: Vec<&Hit> =
            hits.extract_if(.., |hit| overcome.iter().any(|lines| lines.contains(&hit.line))).collect();
        if let (Some(first), true) = (before.first(), hits.is_empty() && rule.kind == Kind::Cause) {
            let mut finding = finding(rule, first, &before, &found.facts, given);
            finding.title = format!("an earlier attempt failed, and a later one got past it: {}", finding.title);
            finding.mend.clear();
            earlier.push(finding);
        }
        if let Some(first) = hits.first() {
            heard.push((rule, finding(rule, first, &hits, &found.facts, given)));
        }
    }
    let beaten: Vec<&str> = heard.iter().flat_map(|(rule, _)| rule.beats.iter().map(String::as_str)).collect();
    heard.retain(|(rule, _)| !beaten.contains(&rule.label.as_str()));
    heard.sort_by_key(|(rule, finding)| (rule.kind, finding.evidence.line));
    let of = |kinds: &[Kind]| {
        let some = heard.iter().filter(|(rule, _)| kinds.contains(&rule.kind));
        some.map(|(_, finding)| finding.clone()).collect::<Vec<_>>()
    };
    let mut causes = of(&[Kind::Cause, Kind::Quiet]);
    let mut symptoms = of(&[Kind::Symptom]);
    let mut side = of(&[Kind::Side]);
    side.extend(earlier);
    let echoes = heard.iter().filter(|(rule, _)| rule.kind == Kind::Echo);
    let mut echoes: Vec<Echo> = echoes.map(|(_, finding)| echo(finding)).collect();
    let failed = heard.iter().any(|(rule, _)| rule.failing);
    let text = found.is_text();
    let success = found.success.map(|(line, text)| LogLine { line, text });
    let ended_well = success.as_ref().is_some_and(|success| success.line > found.last_error) && !failed;
    if ended_well {
        // Whatever went wrong before was tried again or did not matter; quiet faults are found in such logs alone.
        let end = success.as_ref().map_or(0, |success| success.line);
        let over = |finding: &Finding| finding.weight != Weight::Quiet && finding.evidence.line < end;
        for list in [&mut causes, &mut symptoms] {
            side.extend(list.extract_if(.., |finding| over(finding)));
        }
    }
    // A symptom leads only where no error that it may follow from is in the log, known or not.
    let unknown = || {
        found
            .errors
            .iter()
            .filter(|error| !lines.contains(&error.line) && !overcome.iter().any(|lines| lines.contains(&error.line)))
    };
    let bare = |finding: &Finding| index.rules.iter().any(|rule| rule.label == finding.label && rule.failing);
    let leads = symptoms
        .first()
        .is_some_and(|symptom| unknown().all(|error| error.line > symptom.evidence.line && !bare(symptom)));
    if causes.is_empty() && leads {
        causes = symptoms;
    } else {
        // Only what comes after a cause can follow from it.
        echoes.extend(symptoms.iter().map(echo));
    }
    echoes.sort_by_key(|echo| echo.line);
    let mut causes = causes.into_iter();
    let cause = causes.next();
    let further: Vec<Finding> = causes.collect();
    let unknown = unknown().map(|error| UnknownError {
        line: error.line,
        text: error.text.clone(),
        excerpt: error.excerpt.clone(),
    });
    let mut errors: Vec<UnknownError> = match &cause {
        // `RuntimeError:` alone only leads in the line that is the evidence.
        Some(cause) => unknown
            .filter(|error| error.line < cause.evidence.line)
            .filter(|error| !error.text.ends_with(':') || error.line + 3 < cause.evidence.line)
            .collect(),
        None => unknown.collect(),
    };
    let verdict = match &cause {
        Some(_) => Verdict::Explained,
        None if failed || (!errors.is_empty() && !ended_well) => Verdict::Unknown,
        None if !text => Verdict::NotText,
        None => Verdict::NoFailure,
    };
    let told = matches!(verdict, Verdict::Explained | Verdict::NotText) || !errors.is_empty();
    errors.truncate(TOLD);
    Diagnosis {
        input: input.to_owned(),
        verdict,
        cause,
        further,
        side,
        echoes,
        tail: if told { Vec::new() } else { found.tail },
        errors,
        success,
        lines: found.lines,
        bytes: found.bytes,
    }
}

/// The hits of a rule whose conditions hold, in the order of the log.
fn hits_of<'a>(index: &Index, found: &'a Found, rule: usize, given: &Facts) -> Vec<&'a Hit> {
    let patterns = index.finds.iter().enumerate().filter(|(_, (of, _))| *of == rule);
    let mut hits: Vec<&Hit> = patterns
        .flat_map(|(number, (_, find))| {
            let conditions = &index.rules[rule].find[*find].when;
            found.hits[number].kept.iter().filter(|hit| hold(conditions, &view(hit, &found.facts, given)))
        })
        .collect();
    hits.sort_by_key(|hit| hit.line);
    hits.dedup_by_key(|hit| hit.line);
    hits
}

fn view<'a>(hit: &'a Hit, log: &'a Facts, given: &'a Facts) -> View<'a> {
    View { line: hit.line, own: &hit.facts, near: &hit.around.facts, given, log }
}

fn finding(rule: &Rule, first: &Hit, hits: &[&Hit], log: &Facts, given: &Facts) -> Finding {
    let view = view(first, log, given);
    let mut broke: Vec<String> = Vec::new();
    let mut jobs = BTreeSet::new();
    for hit in hits {
        let target = hit.around.target.clone().or_else(|| file_of(&hit.text));
        jobs.insert(target.clone().unwrap_or_else(|| hit.text.clone()));
        broke.extend(target.filter(|target| broke.len() < NAMED && !broke.contains(target)));
    }
    Finding {
        label: rule.label.clone(),
        weight: Weight::of(rule.kind),
        title: text::first(&rule.title, &view).unwrap_or_else(|| rule.label.replace('-', " ")),
        evidence: LogLine { line: first.line, text: first.text.clone() },
        excerpt: first.around.excerpt.clone(),
        count: jobs.len(),
        broke,
        why: text::all(&rule.why, &view),
        mend: text::all(&rule.mend, &view),
        not: text::all(&rule.not, &view),
        source: rule.source.clone(),
    }
}

fn echo(finding: &Finding) -> Echo {
    Echo {
        label: finding.label.clone(),
        line: finding.evidence.line,
        text: finding.evidence.text.clone(),
        meaning: finding.title.clone(),
    }
}

/// The source that a compiler's message begins with: `a.cu(3): error`, `a.cpp:3:4: error`.
fn file_of(text: &str) -> Option<String> {
    let end = text.find(['(', ':'])?;
    let (file, rest) = text.split_at(end);
    let numbered = rest[1..].starts_with(|c: char| c.is_ascii_digit());
    (numbered && file.contains('.') && !file.contains(' ')).then(|| file.to_owned())
}
