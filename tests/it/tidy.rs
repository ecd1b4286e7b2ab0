//! The house rules that a compiler does not check: sizes, module docs, layers, documented error codes.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;

use crate::support::project;

/// What each module may use of the crate. `sys::Env` and `sys::env_vars` are values that pure modules may take.
const LAYERS: [(&str, &[&str]); 21] = [
    ("domain", &[]),
    ("emit", &["domain"]),
    ("recipe", &["domain"]),
    ("compat", &["domain", "recipe"]),
    ("targets", &["domain", "recipe", "compat"]),
    ("preflight", &["domain", "recipe", "compat", "targets"]),
    ("plan", &["domain", "recipe", "compat", "targets", "preflight"]),
    ("key", &["domain", "recipe", "compat", "targets", "preflight", "plan"]),
    ("diagnose", &["domain", "compat"]),
    ("report", &["domain", "recipe", "compat", "targets", "preflight", "plan", "key", "diagnose"]),
    ("sys", &["domain"]),
    ("probe", &["domain", "recipe", "compat", "targets", "report", "sys"]),
    ("provision", &["domain", "recipe", "compat", "targets", "report", "sys"]),
    ("source", &["domain", "recipe", "compat", "targets", "report", "sys"]),
    ("build", &["domain", "recipe", "compat", "targets", "plan", "report", "sys"]),
    ("verify", &["domain", "recipe", "compat", "targets", "plan", "report", "sys"]),
    (
        "pipeline",
        &[
            "domain",
            "recipe",
            "compat",
            "targets",
            "preflight",
            "plan",
            "key",
            "diagnose",
            "report",
            "sys",
            "probe",
            "provision",
            "source",
            "build",
            "verify",
        ],
    ),
    ("ui", &["domain", "recipe", "compat", "targets", "plan", "key", "diagnose", "report", "sys", "pipeline"]),
    ("cli", &["domain", "emit", "recipe", "pipeline", "ui"]),
    (
        "commands",
        &[
            "domain",
            "emit",
            "recipe",
            "compat",
            "targets",
            "preflight",
            "plan",
            "key",
            "diagnose",
            "report",
            "sys",
            "probe",
            "provision",
            "source",
            "build",
            "verify",
            "pipeline",
            "ui",
            "cli",
        ],
    ),
    ("lib", &["sys"]),
];
const VALUES: [&str; 2] = ["sys::Env", "sys::env_vars"];

fn rust_files(folders: &[&str]) -> Vec<Utf8PathBuf> {
    let walk = |folder: &&str| {
        walkdir::WalkDir::new(project(folder))
            .into_iter()
            .filter_map(Result::ok)
            .filter_map(|entry| Utf8PathBuf::from_path_buf(entry.into_path()).ok())
    };
    let all = folders.iter().flat_map(walk);
    all.filter(|path| path.extension() == Some("rs") && !path.as_str().contains("/target/")).collect()
}

fn read(path: &Utf8PathBuf) -> String {
    fs_err::read_to_string(path).unwrap()
}

const EVERYWHERE: [&str; 6] = ["src", "tests", "benches", "fatbin", "cache", "examples"];

#[test]
fn files_are_short_and_say_what_they_own() {
    let mut wrong = Vec::new();
    for path in rust_files(&EVERYWHERE) {
        let text = read(&path);
        let lines = text.lines().count();
        if lines > 400 {
            wrong.push(format!("{path} has {lines} lines, 400 are allowed"));
        }
        if !text.starts_with("//!") && !text.starts_with("#![no_main]") {
            wrong.push(format!("{path} does not open with module docs"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_use_only_what_their_layer_allows() {
    let mut wrong = Vec::new();
    for path in rust_files(&["src"]) {
        let inside = path.strip_prefix(project("src")).unwrap().to_owned();
        let module = inside.components().next().unwrap().as_str().trim_end_matches(".rs").to_owned();
        if module == "main" {
            continue;
        }
        let allowed = LAYERS.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed);
        let Some(allowed) = allowed else {
            wrong.push(format!("{path}: the module `{module}` has no layer"));
            continue;
        };
        for (number, line) in read(&path).lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in line.split("crate::").skip(1) {
                let name: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let value = VALUES.iter().any(|value| used.starts_with(value)) || used.starts_with("sys::{Env");
                let macro_or_test = matches!(name.as_str(), "schema_check" | "");
                if name != module && !allowed.contains(&name.as_str()) && !value && !macro_or_test {
                    wrong.push(format!("{path}:{}: `{module}` may not use `{name}`", number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_error_code_is_documented_and_every_documented_code_exists() {
    let mut codes = BTreeSet::new();
    for path in rust_files(&["src"]) {
        for part in read(&path).split('"').filter(|part| part.starts_with("cuwright::")) {
            if part != "cuwright::test"
                && part.chars().all(|c| c.is_ascii_lowercase() || matches!(c, ':' | '_' | '0'..='9'))
            {
                codes.insert(part.to_owned());
            }
        }
    }
    let docs = fs_err::read_to_string(project("docs/errors.md")).unwrap();
    let documented: BTreeSet<String> =
        docs.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).map(str::to_owned).collect();
    let missing: Vec<_> = codes.difference(&documented).collect();
    let stale: Vec<_> = documented.difference(&codes).collect();
    assert!(missing.is_empty() && stale.is_empty(), "undocumented: {missing:#?}\nno longer in the code: {stale:#?}");
}

#[test]
fn every_variable_of_the_registry_is_documented() {
    let docs = fs_err::read_to_string(project("docs/environment.md")).unwrap();
    for line in read(&project("src/sys/env_vars.rs")).lines() {
        if let Some(name) = line.strip_prefix("pub const ").and_then(|rest| rest.split(':').next()) {
            assert!(docs.contains(&format!("`{name}`")), "docs/environment.md lacks {name}");
        }
    }
}

#[test]
fn every_exit_code_is_documented() {
    let docs = fs_err::read_to_string(project("docs/exit-codes.md")).unwrap();
    for line in read(&project("src/domain/exit.rs")).lines() {
        if let Some((_, number)) = line.trim().trim_end_matches(',').split_once(" = ") {
            assert!(docs.contains(&format!("| {number} |")), "docs/exit-codes.md lacks {number}");
        }
    }
}

#[test]
fn commands_named_in_the_readme_exist() {
    let readme = fs_err::read_to_string(project("README.md")).unwrap();
    let help = crate::support::Sandbox::new().run(&["--help"]).stdout;
    for line in readme.lines().filter_map(|line| line.trim_start_matches("$ ").strip_prefix("cuwright ")) {
        let command = line.split_whitespace().next().unwrap();
        assert!(command.starts_with('-') || help.contains(&format!("  {command} ")), "README names `{command}`");
    }
}
