//! The rules against logs: every rule has a log that it must explain and a near miss that it must not; the field cases
//! in `logs/` and their siblings in `cases/` are explained as people found them to be; no bytes can break anything.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde::Deserialize;

use super::index::{FILES, index};
use super::rule::{File, Kind, Texts};
use super::{Diagnosis, Facts, Scanner, Verdict, condition, explain, judge, text};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The cause, or `unknown`, or `no-failure`; for side findings and echoes their label.
    label: String,
    /// What the answer must hold, in any of its texts.
    #[serde(default)]
    says: Vec<String>,
    /// What the answer must not hold in its title, reasons and mends.
    #[serde(default)]
    never: Vec<String>,
    /// Number of the evidence line.
    line: Option<u64>,
    /// Other labels that must be told as well.
    #[serde(default)]
    also: Vec<String>,
    /// The log.
    text: String,
}

/// A log that looks like a rule's and is none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Miss {
    of: String,
    text: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    #[serde(default)]
    log: Vec<Case>,
    #[serde(default)]
    miss: Vec<Miss>,
}

fn folder(name: &str) -> Vec<(String, String)> {
    let folder = camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("src/diagnose").join(name);
    let mut files: Vec<_> = folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path()).collect();
    files.sort();
    files.iter().map(|path| (path.to_string(), fs_err::read_to_string(path).unwrap())).collect()
}

fn cases() -> Cases {
    let mut all = Cases::default();
    for (path, text) in folder("cases") {
        let cases: Cases = toml::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        all.log.extend(cases.log);
        all.miss.extend(cases.miss);
    }
    all
}

fn answer(log: &str) -> Diagnosis {
    explain(log.as_bytes(), "log", &Facts::default())
}

/// The labels of an answer, the verdict's name first where there is no cause.
fn labels(found: &Diagnosis) -> Vec<String> {
    let mut labels: Vec<String> = found.findings().map(|finding| finding.label.clone()).collect();
    match found.verdict {
        Verdict::Unknown => labels.insert(0, "unknown".to_owned()),
        Verdict::NoFailure => labels.insert(0, "no-failure".to_owned()),
        Verdict::NotText => labels.insert(0, "not-text".to_owned()),
        Verdict::Explained => {}
    }
    labels.extend(found.side.iter().map(|finding| finding.label.clone()));
    labels.extend(found.echoes.iter().map(|echo| echo.label.clone()));
    labels
}

fn said(found: &Diagnosis, with_not: bool) -> String {
    let mut all = Vec::new();
    for finding in found.findings().chain(&found.side) {
        all.push(finding.title.clone());
        all.extend(finding.broke.iter().chain(&finding.why).chain(&finding.mend).cloned());
        if with_not {
            all.extend(finding.not.iter().chain(&finding.excerpt).cloned());
            all.push(finding.evidence.text.clone());
        }
    }
    if with_not {
        all.extend(found.errors.iter().map(|error| format!("{}: {}", error.line, error.text)));
        all.extend(found.echoes.iter().map(|echo| echo.text.clone()));
    }
    all.join("\n")
}

fn check(case: &Case) -> Result<(), String> {
    let found = answer(&case.text);
    let labels = labels(&found);
    let kind = index().rules.iter().find(|rule| rule.label == case.label).map(|rule| rule.kind);
    let fits = match kind {
        Some(Kind::Side | Kind::Echo) => labels.contains(&case.label),
        _ => labels.first() == Some(&case.label),
    };
    if !fits || case.also.iter().any(|label| !labels.contains(label)) {
        return Err(format!("wanted {} {:?}, got {labels:?}", case.label, case.also));
    }
    if let Some(line) = case.line {
        let at = found.cause.as_ref().map(|cause| cause.evidence.line).or(found.errors.first().map(|error| error.line));
        if at != Some(line) {
            return Err(format!("{}: evidence is line {at:?}, not {line}", case.label));
        }
    }
    let (all, claimed) = (said(&found, true), said(&found, false));
    if let Some(missing) = case.says.iter().find(|text| !all.contains(text.as_str())) {
        return Err(format!("{}: `{missing}` is not said in\n{all}", case.label));
    }
    match case.never.iter().find(|text| claimed.contains(text.as_str())) {
        Some(wrong) => Err(format!("{}: `{wrong}` is said in\n{claimed}", case.label)),
        None => Ok(()),
    }
}

fn all_hold(cases: &[Case]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| check(case).err().map(|error| format!("{error}\n--- of\n{}", case.text)))
        .collect();
    assert!(wrong.is_empty(), "{} of {}\n\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
}

#[test]
fn every_case_is_explained_as_it_is() {
    all_hold(&cases().log);
}

#[test]
fn near_misses_are_not_explained_by_their_rule() {
    let mut wrong = Vec::new();
    for miss in cases().miss {
        let labels = labels(&answer(&miss.text));
        if labels.contains(&miss.of) {
            wrong.push(format!("{} in {labels:?}\n--- of\n{}", miss.of, miss.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_field_cases_are_explained_as_people_found_them() {
    let told: Cases = toml::from_str(include_str!("field.toml")).unwrap();
    let logs = folder("logs");
    let mut cases = told.log;
    assert_eq!(cases.len(), logs.len());
    for (case, (path, log)) in cases.iter_mut().zip(&logs) {
        assert!(path.ends_with(&format!("{}.log", case.text.trim())), "{path}");
        case.text.clone_from(log);
    }
    all_hold(&cases);
}

#[test]
fn every_rule_is_whole_and_tested() {
    let cases = cases();
    let mut seen = BTreeSet::new();
    let logs: BTreeSet<&str> =
        cases.log.iter().flat_map(|case| std::iter::once(&case.label).chain(&case.also)).map(String::as_str).collect();
    let misses: BTreeSet<&str> = cases.miss.iter().map(|miss| miss.of.as_str()).collect();
    let mut wrong = Vec::new();
    for rule in &index().rules {
        let label = rule.label.as_str();
        if !seen.insert(label) {
            wrong.push(format!("{label} is there twice"));
        }
        if rule.source.trim().is_empty() || rule.title.0.is_empty() || rule.find.is_empty() {
            wrong.push(format!("{label} has no source, title or pattern"));
        }
        if rule.kind != Kind::Echo && (rule.about.trim().is_empty() || rule.mend.0.is_empty()) {
            wrong.push(format!("{label} says nothing about the matter or its mend"));
        }
        if !logs.contains(label) || !misses.contains(label) {
            wrong.push(format!("{label} has no log or no near miss in cases/"));
        }
        for find in &rule.find {
            if let Some(Err(error)) = find.pattern.as_deref().map(regex::Regex::new) {
                wrong.push(format!("{label}: {error}"));
            }
            if find.has.is_empty() || find.has.iter().any(|literal| literal.len() < 4) {
                wrong.push(format!("{label} looks for too little: {:?}", find.has));
            }
        }
        let texts = [&rule.title, &rule.why, &rule.mend, &rule.not];
        let conditions = texts.iter().flat_map(|texts| texts.0.iter().flat_map(|text| &text.when));
        for condition in conditions.chain(rule.find.iter().flat_map(|find| &find.when)) {
            if condition::parse(condition).is_none() {
                wrong.push(format!("{label}: there is no condition `{condition}`"));
            }
        }
        wrong.extend(unknown_facts(label, &texts));
        for beaten in &rule.beats {
            if !index().rules.iter().any(|other| other.label == *beaten) {
                wrong.push(format!("{label} beats {beaten}, which is no rule"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong of {}:\n{}", wrong.len(), seen.len(), wrong.join("\n"));
    assert!(seen.len() >= 60, "{}", seen.len());
}

/// Facts in a text that nothing draws: a slip, as the text would never be said.
fn unknown_facts(label: &str, texts: &[&Texts]) -> Vec<String> {
    const DERIVED: [&str; 10] = [
        "torch_",
        "arch_",
        "archs_",
        "toolkit_",
        "gpu_",
        "fitting_",
        "symbol_name",
        "jobs_advised",
        "ptx_",
        "driver_needed",
    ];
    let named = |pattern: &str| -> Vec<String> {
        let regex = regex::Regex::new(pattern).unwrap();
        regex
            .capture_names()
            .flatten()
            .map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
            .collect()
    };
    let mut drawn: BTreeSet<String> = index().contexts.iter().flat_map(|context| named(&context.pattern)).collect();
    for find in index().rules.iter().filter(|rule| rule.label == label).flat_map(|rule| &rule.find) {
        drawn.extend(find.set.keys().cloned());
        drawn.extend(find.pattern.iter().flat_map(|pattern| named(pattern)));
    }
    drawn.extend(["gcc_major".to_owned(), "our_build".to_owned()]);
    let used = texts.iter().flat_map(|texts| texts.0.iter().flat_map(|text| text::names(&text.text)));
    used.map(|name| name.trim_start_matches('@').to_owned())
        .filter(|name| !drawn.contains(name) && !DERIVED.iter().any(|derived| name.starts_with(derived)))
        .map(|name| format!("{label}: nothing draws the fact `{name}`"))
        .collect()
}

#[test]
fn every_rule_file_reads() {
    for (name, text) in FILES {
        let file: Result<File, _> = toml::from_str(text);
        assert!(file.is_ok(), "rules/{name}.toml: {}", file.unwrap_err());
    }
    for context in &index().contexts {
        assert!(regex::Regex::new(&context.pattern).is_ok(), "{}", context.pattern);
    }
}

/// Pieces of logs, so that random ones come near to real ones.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<Vec<u8>> = cases().log.into_iter().map(|case| case.text.into_bytes()).collect();
    let cut = (prop::sample::select(pieces), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let real = cut.prop_map(|(text, one, other)| {
        let (one, other) = (one.index(text.len() + 1), other.index(text.len() + 1));
        text[one.min(other)..one.max(other)].to_vec()
    });
    let odd = prop::collection::vec(any::<u8>(), 0..200);
    let marks = prop::sample::select(vec![
        b"\n".to_vec(),
        b"\r".to_vec(),
        b"\x1b[".to_vec(),
        b"\0".to_vec(),
        vec![b'x'; 70_000],
    ]);
    prop::collection::vec(prop_oneof![4 => real, 2 => odd, 1 => marks], 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_and_the_pieces_they_come_in_do_not_matter(log in noise(), size in 1usize..5000) {
        let whole = explain(&log, "log", &Facts::default());
        let newlines = log.split(|byte| *byte == b'\n').count() as u64 - 1;
        let open = u64::from(log.last().is_some_and(|byte| *byte != b'\n'));
        prop_assert_eq!(whole.lines, newlines + open);
        let mut scanner = Scanner::default();
        log.chunks(size).for_each(|piece| scanner.feed(piece));
        prop_assert_eq!(judge(scanner, "log", &Facts::default()), whole);
    }
}

/// One that is far larger than what is kept: the cause stands before, within or behind a flood of other lines.
#[test]
fn a_flood_of_lines_hides_nothing_and_is_counted_right() {
    let cause = "nvcc fatal   : Unsupported gpu architecture 'compute_86'\n";
    for flood in
        ["[1/2] c++ -c a.cpp -o a.o -I/usr/include\n", "a.cpp:1:2: error: ‘x’ was not declared\n", "Killed off\n"]
    {
        for at in [0usize, 30_000, 60_000] {
            let mut log = flood.repeat(at);
            log.push_str(cause);
            log.push_str(&flood.repeat(60_000 - at));
            let found = answer(&log);
            let cause = found.cause.as_ref().map(|cause| (cause.label.as_str(), cause.evidence.line));
            assert_eq!(cause, Some(("toolkit-too-old-for-arch", at as u64 + 1)), "{flood}{at}");
            assert_eq!(found.lines, 60_001);
        }
    }
}

#[test]
fn what_is_no_text_is_said_to_be_none_and_what_is_one_is_not() {
    let folder = camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs_err::read(folder.join(name)).unwrap();
    let verdict = |log: &[u8]| explain(log, "log", &Facts::default()).verdict;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &read("src/diagnose/logs/C21.log")).unwrap();
    let utf16: Vec<u8> = "all is well\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for odd in [read("fatbin/tests/vectors/v16_lib.a"), gzip.finish().unwrap(), utf16, vec![0; 500]] {
        assert_eq!(verdict(&odd), Verdict::NotText, "{:?}", &odd[..16]);
    }
    // Colours, progress bars, another language in an old encoding, and a few bytes that a full disk left.
    let mut cut_off = b"[1/2] c++ -c a.cpp -o a.o\n".repeat(20);
    cut_off.extend([0; 8]);
    for log in [&b"\x1b[1mok\x1b[0m\n"[..], b"10%\x08\x08\x0820%\r30%\n", b"\xc9\xd4\xea fertig\n", &cut_off] {
        assert_eq!(verdict(log), Verdict::NoFailure, "{log:?}");
    }
    // What is found in it is worth more than what it looks like.
    let log = [&[0; 500][..], b"\nnvcc fatal   : Unsupported gpu architecture 'compute_86'\n"].concat();
    assert_eq!(verdict(&log), Verdict::Explained);
}

#[test]
fn given_facts_outweigh_the_log() {
    let log = b"nvcc fatal   : Unsupported gpu architecture 'compute_101'\n";
    let label = |cuda: &str| {
        let mut facts = Facts::default();
        facts.give("toolkit", cuda, "--cuda");
        explain(log, "log", &facts).cause.map(|cause| cause.label)
    };
    assert_eq!(label("12.4").as_deref(), Some("toolkit-too-old-for-arch"));
    assert_eq!(label("13.0").as_deref(), Some("arch-renamed"));
    assert_eq!(label("10.1").as_deref(), Some("arch-list-wrong"));
}

#[test]
fn the_committed_schema_is_what_the_code_says() {
    crate::schema_check::<Diagnosis>("schemas/explain.schema.json");
}
