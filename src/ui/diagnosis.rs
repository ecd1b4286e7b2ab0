//! A diagnosis for people: the cause first, its evidence with its line, why, the mend, and what is not the cause.

use super::style::{bytes, count, table, visible};
use crate::diagnose::topics::{Topic, TopicKind};
use crate::diagnose::{Diagnosis, Echo, Finding, LogLine, UnknownError, Verdict, Weight};

/// Lines of an excerpt that are shown.
const SHOWN: usize = 5;
/// Lines that are not the cause that are shown, and characters of each.
const ECHOES: usize = 4;
const BRIEF: usize = 70;
/// Characters of a line that are shown.
const WIDE: usize = 240;

/// Renders a diagnosis, without a final line end.
pub fn text(diagnosis: &Diagnosis) -> String {
    let read =
        format!("{} ({} read)", diagnosis.input, count(usize::try_from(diagnosis.lines).unwrap_or(usize::MAX), "line"));
    let mut lines = Vec::new();
    match (&diagnosis.cause, diagnosis.verdict) {
        (Some(cause), _) => {
            lines.push(format!("{}{}  [{}]", lead(cause.weight), cause.title, cause.label));
            lines.push(format!("  in:    {read}"));
            finding(cause, &mut lines);
            let echoes = diagnosis.echoes.iter().filter(|echo| echo.label != "compiler-warning").take(ECHOES);
            lines.extend(echoes.map(|echo| label("not", &echoed(echo))));
            earlier(&diagnosis.errors, &mut lines);
        }
        (None, Verdict::Unknown) => {
            lines.push("unknown: it failed, and no rule knows why".to_owned());
            lines.push(format!("  in:    {read}"));
            unknown(diagnosis, &mut lines);
        }
        (None, Verdict::NotText) => not_text(diagnosis, &mut lines),
        (None, _) => {
            lines.push("no failure found".to_owned());
            lines.push(format!("  in:    {read}"));
            if let Some(success) = &diagnosis.success {
                lines.push(format!("  line {}: {}", success.line, cut(&success.text)));
            }
            if diagnosis.lines == 0 {
                lines.push("  why:   the log is empty".to_owned());
            }
        }
    }
    for finding_ in &diagnosis.further {
        lines.push(String::new());
        lines.push(format!("also: {}{}  [{}]", lead(finding_.weight), finding_.title, finding_.label));
        finding(finding_, &mut lines);
    }
    for side in &diagnosis.side {
        lines.push(String::new());
        lines.push(format!("by the way: {}  [{}]", side.title, side.label));
        lines.push(at(&side.evidence));
        lines.extend(side.why.iter().map(|why| label("why", why)));
        lines.extend(side.mend.iter().map(|mend| label("mend", mend)));
    }
    visible(&lines.join("\n")).into_owned()
}

fn not_text(diagnosis: &Diagnosis, lines: &mut Vec<String>) {
    lines.push("nothing to explain: this is no text, so it is no log".to_owned());
    lines.push(format!("  in:    {} ({})", diagnosis.input, bytes(diagnosis.bytes)));
    lines.push(label("why", "it begins with bytes that no tool prints, as packed and compiled files and UTF-16 do"));
    lines
        .push(label("mend", "unpack it first: `zcat LOG.gz | cuwright explain -`; from UTF-16, `iconv -f utf-16 LOG`"));
    lines.push(label("mend", "`cuwright inspect` reads libraries, objects and wheels"));
}

fn lead(weight: Weight) -> &'static str {
    match weight {
        Weight::Error => "cause: ",
        Weight::Quiet => "cause, without an error: ",
        Weight::Symptom => "the root is not in this log: ",
    }
}

fn finding(finding: &Finding, lines: &mut Vec<String>) {
    lines.push(at(&finding.evidence));
    // The lines above an exception tell the place; those below a compiler's message show it.
    let others = finding.excerpt.iter().filter(|text| **text != finding.evidence.text).take(SHOWN);
    lines.extend(others.map(|text| format!("         {}", cut(text))));
    if !finding.broke.is_empty() {
        let more = finding.count.saturating_sub(finding.broke.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(label("broke", &format!("{}{more}", finding.broke.join(", "))));
    } else if finding.count > 1 {
        lines.push(label("times", &finding.count.to_string()));
    }
    lines.extend(finding.why.iter().map(|why| label("why", why)));
    lines.extend(finding.mend.iter().map(|mend| label("mend", mend)));
    lines.extend(finding.not.iter().map(|not| label("not", not)));
}

/// Errors above the cause that no rule knows: they may matter more.
fn earlier(errors: &[UnknownError], lines: &mut Vec<String>) {
    for error in errors {
        lines.push(label("above", &format!("line {}, which no rule knows: {}", error.line, cut(&error.text))));
    }
}

fn unknown(diagnosis: &Diagnosis, lines: &mut Vec<String>) {
    for (number, error) in diagnosis.errors.iter().enumerate() {
        lines.push(format!("  line {}: {}", error.line, cut(&error.text)));
        if number == 0 {
            let others = error.excerpt.iter().filter(|text| **text != error.text).take(SHOWN);
            lines.extend(others.map(|text| format!("         {}", cut(text))));
        }
    }
    if diagnosis.errors.is_empty() {
        lines.push("  why:   no line looks like an error; the log ends so:".to_owned());
        lines.extend(diagnosis.tail.iter().map(|text| format!("         {}", cut(text))));
    }
    lines.extend(diagnosis.echoes.iter().take(ECHOES).map(|echo| label("not", &echoed(echo))));
    lines.push(label(
        "mend",
        "begin with the first of these lines; `cuwright explain --list` names what can be explained",
    ));
}

fn echoed(echo: &Echo) -> String {
    let text: String = echo.text.chars().take(BRIEF).collect();
    let more = if text.len() < echo.text.len() { "…" } else { "" };
    format!("line {}, `{text}{more}`: {}", echo.line, echo.meaning)
}

fn at(line: &LogLine) -> String {
    format!("  line {}: {}", line.line, cut(&line.text))
}

fn label(name: &str, text: &str) -> String {
    format!("  {:<7}{}", format!("{name}:"), text.replace('\n', "\n         "))
}

fn cut(text: &str) -> String {
    if text.chars().count() <= WIDE {
        return text.to_owned();
    }
    text.chars().take(WIDE).chain(['…']).collect()
}

/// A topic's page.
pub fn page(topic: &Topic) -> String {
    format!("{}: {}\n\n{}", topic.name, topic.title, topic.text)
}

/// Every topic with its line, by kind.
pub fn topics(topics: &[Topic]) -> String {
    let kinds = [
        (TopicKind::General, "General"),
        (TopicKind::Cause, "Causes"),
        (TopicKind::Echo, "Lines that are not the cause"),
        (TopicKind::Error, "Error codes"),
    ];
    let of = |(kind, head): (TopicKind, &str)| {
        let rows = topics.iter().filter(|topic| topic.kind == kind);
        let rows: Vec<Vec<String>> = rows.map(|topic| vec![format!("  {}", topic.name), cut(&topic.title)]).collect();
        format!("{head}\n{}", table(&rows))
    };
    kinds.map(of).join("\n\n")
}
