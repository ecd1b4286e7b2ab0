//! What a run looks like, plain and for CI services: the same events through every form.

use super::*;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::report::{Stage, Status};
use crate::ui::ci::Service;
use crate::ui::{Format, diagnostic};

fn settings(service: Option<Service>) -> Settings {
    Settings { format: Format::Text, streams: true, quiet: false, verbose: false, color: false, live: false, service }
}

fn planned(unit: &str, pruned: Option<&str>) -> Planned {
    let pruned = pruned.map(str::to_owned);
    Planned { unit: unit.into(), package: "x".into(), arch: None, torch: None, cuda: None, python: None, pruned }
}

fn stage(unit: &str, stage: Stage, text: &str) -> Event {
    Event::Stage { unit: unit.into(), stage, text: text.into(), passing: false }
}

fn progress(unit: &str, done: u32, seconds: u64) -> Event {
    let file = "square.cu".into();
    Event::Progress { unit: unit.into(), done, total: 2, file, file_seconds: 9, seconds, memory: 3 << 29 }
}

fn summary(unit: &str, restored: bool) -> Summary {
    let file = FileCoverage { file: "x/_C.so".into(), found: "9.0".into(), cubins: 1, ptx: 0, waived: None };
    Summary {
        unit: unit.into(),
        package: "x".into(),
        version: Some("1.0".into()),
        key: "0123456789abcdef".into(),
        restored,
        kind: crate::report::summary::Kind::Wheel,
        wheel: "dist/x-1.0.whl".into(),
        wheel_bytes: 1 << 20,
        wheel_sha256: "fedcba9876543210".into(),
        requested: "9.0".into(),
        effective: "9.0".into(),
        effective_sources: Vec::new(),
        ran_again: Vec::new(),
        files: vec![file],
        import_output: vec!["x imports".into()],
        gpu_check: None,
        cuda: "13.0.88".into(),
        torch: "2.11.0+cu130".into(),
        python: "cp311".into(),
        build_seconds: 83,
        local: Vec::new(),
    }
}

fn ended(unit: &str, status: Status) -> Event {
    let good = matches!(status, Status::Built | Status::Restored);
    Event::Unit(Ended {
        unit: unit.into(),
        status,
        seconds: 91,
        archs: good.then(|| "9.0".into()),
        wheel: good.then(|| "dist/x-1.0.whl".into()),
        wheel_bytes: good.then_some(1 << 20),
        exit: 0,
        why: None,
    })
}

fn output(unit: &str, line: &str) -> Event {
    Event::Output { unit: unit.into(), line: line.into() }
}

fn finish() -> Event {
    Event::Finish { exit: 0, milliseconds: 1 }
}

/// One unit, from the recipe to the wheel.
fn alone() -> Vec<Event> {
    vec![
        Event::Units { units: vec![planned("x", None)] },
        stage("x", Stage::Recipe, "x 1.0 (cuwright.toml)"),
        Event::Stage { unit: "x".into(), stage: Stage::Toolchain, text: "downloading".into(), passing: true },
        Event::Warning { unit: Some("x".into()), text: "careful".into() },
        stage("x", Stage::Build, "2 jobs"),
        output("x", "::error::no command"),
        progress("x", 0, 3),
        progress("x", 1, 16),
        progress("x", 1, 20),
        Event::Artifact(Box::new(summary("x", false))),
        ended("x", Status::Built),
        finish(),
    ]
}

/// Four cells at once: one built, one restored, one failed, one pruned.
fn together() -> Vec<Event> {
    let (a, b, c, d) = ("x/arch8.6", "x/arch9.0", "x/arch10.0", "x/arch3.5");
    vec![
        Event::Units {
            units: vec![planned(a, None), planned(b, None), planned(c, None), planned(d, Some("no nvcc for 3.5"))],
        },
        stage(a, Stage::Recipe, "x 1.0 (cuwright.toml)"),
        stage(b, Stage::Recipe, "x 1.0 (cuwright.toml)"),
        stage(a, Stage::Build, "1 of 2 jobs"),
        output(a, "running build_ext"),
        stage(b, Stage::Targets, "9.0 (9.0 from the matrix)"),
        Event::Artifact(Box::new(summary(b, true))),
        ended(b, Status::Restored),
        stage(c, Stage::Build, "1 of 2 jobs"),
        progress(a, 1, 15),
        progress(c, 0, 15),
        ended(c, Status::Failed),
        Event::Artifact(Box::new(summary(a, false))),
        ended(a, Status::Built),
        ended(d, Status::Pruned),
        finish(),
    ]
}

fn rendered(settings: Settings, events: &[Event]) -> String {
    let mut text = Text::new(settings);
    let mut all = String::new();
    for event in events {
        if let Event::Unit(Ended { status: Status::Failed, unit, .. }) = event {
            let problem = Problem::new("cuwright::test", Exit::Build, "it failed").why("a.cu(1): error: no");
            all.push_str(&text.before_problem(Some(unit)));
            for problem in &Problems::from(problem) {
                let _ = write!(all, "{}\n\n", diagnostic::render(problem, false));
                all.push_str(&settings.service.map(|service| service.annotation(problem)).unwrap_or_default());
            }
        }
        all.push_str(&text.render(event));
    }
    // Times differ; what moves the cursor must be seen in a snapshot.
    let times = |part: &str| part.split_once(':').map(|(_, rest)| format!("TIME:{rest}")).unwrap_or_default();
    let mut shown = String::new();
    for (index, part) in all.split_inclusive("section_start:").enumerate() {
        shown.push_str(&if index == 0 { part.to_owned() } else { times(part) });
    }
    let mut again = String::new();
    for (index, part) in shown.split_inclusive("section_end:").enumerate() {
        again.push_str(&if index == 0 { part.to_owned() } else { times(part) });
    }
    again.replace('\u{1b}', "␛").replace('\r', "␍")
}

#[test]
fn one_unit_in_every_form() {
    insta::assert_snapshot!("alone_plain", rendered(settings(None), &alone()));
    insta::assert_snapshot!("alone_gitlab", rendered(settings(Some(Service::GitLab)), &alone()));
    let verbose = Settings { verbose: true, ..settings(Some(Service::GitHub)) };
    insta::assert_snapshot!("alone_github_verbose", rendered(verbose, &alone()));
    assert_eq!(rendered(Settings { quiet: true, ..settings(None) }, &alone()), "     warning careful\n");
}

#[test]
fn several_units_in_every_form() {
    insta::assert_snapshot!("together_plain", rendered(settings(None), &together()));
    let verbose = Settings { verbose: true, ..settings(None) };
    assert!(rendered(verbose, &together()).contains("\nx/arch8.6 | running build_ext\n"));
    insta::assert_snapshot!("together_gitlab", rendered(settings(Some(Service::GitLab)), &together()));
    insta::assert_snapshot!("together_github", rendered(settings(Some(Service::GitHub)), &together()));
}
