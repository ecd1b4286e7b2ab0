//! The outcome as a JUnit report: a suite per input, and per file a case for each topic that was judged.
//!
//! Invariant: well-formed XML 1.0 whatever a file is called; characters that XML cannot hold become a question mark.

use std::fmt::Write as _;

use super::outcome::{Finding, Input, Level, Outcome, Topic};
use crate::report::GpuStatus;

/// One test case.
struct Case<'a> {
    class: &'a str,
    name: String,
    findings: Vec<&'a Finding>,
    /// Why it was not run.
    skipped: Option<&'a str>,
}

/// Renders the report.
pub fn render(outcome: &Outcome) -> String {
    let suites: Vec<(&Input, Vec<Case<'_>>)> =
        outcome.inputs.iter().map(|input| (input, cases(outcome, input))).collect();
    let total: usize = suites.iter().map(|(_, cases)| cases.len()).sum();
    let failures: usize = suites.iter().map(|(_, cases)| failed(cases)).sum();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ =
        writeln!(xml, "<testsuites name=\"cuwright verify\" tests=\"{total}\" failures=\"{failures}\" errors=\"0\">");
    for (input, cases) in &suites {
        let name = escape(&input.file);
        let (tests, failures) = (cases.len(), failed(cases));
        let skipped = cases.iter().filter(|case| case.skipped.is_some()).count();
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">"
        );
        for case in cases {
            write_case(&mut xml, case);
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn failed(cases: &[Case<'_>]) -> usize {
    cases.iter().filter(|case| case.findings.iter().any(|finding| finding.level == Level::Error)).count()
}

fn cases<'a>(outcome: &Outcome, input: &'a Input) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for file in &input.files {
        let about = |topic: Topic| file.findings.iter().filter(|finding| finding.topic == topic).collect::<Vec<_>>();
        let mut case = |name: String, findings| cases.push(Case { class: &file.file, name, findings, skipped: None });
        case(Topic::File.label().to_owned(), about(Topic::File));
        if outcome.expected.is_some() || !about(Topic::DeviceCode).is_empty() {
            let wanted = outcome.expected.as_ref().map(|list| format!(" {list}")).unwrap_or_default();
            case(format!("{}{wanted}", Topic::DeviceCode.label()), about(Topic::DeviceCode));
        }
        if !file.gpus.is_empty() {
            let names: Vec<&str> = file.gpus.iter().map(|fate| fate.gpu.as_str()).collect();
            case(format!("runs on {}", names.join(", ")), about(Topic::Gpu));
        }
        if file.abi.is_some() {
            case(Topic::Abi.label().to_owned(), about(Topic::Abi));
        }
    }
    let about = |topic: Topic| input.findings.iter().filter(|finding| finding.topic == topic).collect::<Vec<_>>();
    let mut case = |name: &str, findings, skipped| {
        cases.push(Case { class: &input.file, name: name.to_owned(), findings, skipped });
    };
    let (import, gpu_check) = (about(Topic::Import), about(Topic::GpuCheck));
    if input.import.is_some() || !import.is_empty() {
        case(Topic::Import.label(), import, None);
    }
    if input.gpu_check.is_some() || !gpu_check.is_empty() {
        let not_run = input.gpu_check.as_ref().filter(|check| check.status == GpuStatus::NotRun);
        case(Topic::GpuCheck.label(), gpu_check, not_run.and_then(|check| check.why.as_deref()));
    }
    let own = input.findings.iter().filter(|finding| !matches!(finding.topic, Topic::Import | Topic::GpuCheck));
    let own: Vec<_> = own.collect();
    if !own.is_empty() || input.files.is_empty() {
        case("input", own, None);
    }
    cases
}

fn write_case(xml: &mut String, case: &Case<'_>) {
    let (class, name) = (escape(case.class), escape(&case.name));
    if case.findings.is_empty() && case.skipped.is_none() {
        let _ = writeln!(xml, "    <testcase classname=\"{class}\" name=\"{name}\"/>");
        return;
    }
    let _ = writeln!(xml, "    <testcase classname=\"{class}\" name=\"{name}\">");
    if let Some(why) = case.skipped {
        let _ = writeln!(xml, "      <skipped message=\"{}\"/>", escape(why));
    }
    for finding in &case.findings {
        let message = &finding.message;
        let body: Vec<String> = (message.why.iter().map(|why| format!("why: {why}")))
            .chain(message.help.iter().map(|help| format!("help: {help}")))
            .collect();
        let (text, body) = (escape(&message.message), escape(&body.join("\n")));
        let _ = match finding.level {
            Level::Error => {
                writeln!(xml, "      <failure type=\"{}\" message=\"{text}\">{body}</failure>", escape(&message.code))
            }
            Level::Warning => writeln!(xml, "      <system-out>warning: {text}\n{body}</system-out>"),
        };
    }
    xml.push_str("    </testcase>\n");
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::exit::Exit;
    use crate::domain::problem::Problem;
    use crate::verify::outcome::File;

    #[test]
    fn a_report_counts_failures_and_escapes_names() {
        let problem = Problem::new("cuwright::test", Exit::Verify, "lacks <8.6> & \"9.0\"").why("a\u{1}b").help("mend");
        let file = |name: &str, findings| File {
            file: name.to_owned(),
            ok: false,
            found: "7.5".to_owned(),
            cubins: 1,
            ptx: 0,
            toolkit: None,
            waived: None,
            gpus: Vec::new(),
            abi: None,
            findings,
        };
        let files = vec![
            file("a&b.so", vec![Finding::error(Topic::DeviceCode, problem.clone())]),
            file("c.so", vec![Finding::warning(Topic::Abi, problem)]),
        ];
        let input =
            Input { file: "x.whl".to_owned(), ok: false, files, import: None, gpu_check: None, findings: Vec::new() };
        let outcome = Outcome { expected: Some("8.6".to_owned()), inputs: vec![input], ..Outcome::default() }.settled();
        insta::assert_snapshot!(render(&outcome));
    }
}
