//! Values judged at their place, and everything wrong with a recipe at once.

use super::super::parse::parse;
use super::*;

fn read(text: &str) -> Result<Recipe, Problems> {
    let document = Document { origin: "r.toml", text };
    resolve(document, parse(document).unwrap(), |name| Err(format!("no {name}")))
}

#[test]
fn defaults_are_applied() {
    let recipe = read("schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n").unwrap();
    assert_eq!(recipe.toolchain.build_requires, ["setuptools<81", "wheel", "ninja"]);
    assert_eq!(recipe.build.memory_per_job, building::DEFAULT_MEMORY);
}

#[test]
fn heavy_sources_are_named_by_glob() {
    let text = "schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n\
                [[build.heavy]]\nfile = \"csrc/big*.cu\"\nmemory = \"6 GiB\"\n";
    let heavy = crate::recipe::Heavy { file: "csrc/big*.cu".to_owned(), memory: crate::recipe::ByteSize(6 << 30) };
    assert_eq!(read(text).unwrap().build.heavy, [heavy]);
    let problems = read(&text.replace("6 GiB", "much").replace("big*", "[")).unwrap_err();
    assert_eq!(problems.iter().count(), 2);
}

#[test]
fn names_and_values_of_variables_are_judged_at_their_place() {
    let text = "schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n[build]\n\
        env = { \"A=B\" = \"1\", OK = \"a\\u0000\" }\npass-env = [\"\"]\nclear-env = [\"a b\", \"FINE\"]\n";
    let problems = read(text).unwrap_err();
    let places = problems.iter().map(|p| p.snippet().map(|s| s.text[s.range.clone()].to_owned()).unwrap());
    assert_eq!(places.collect::<Vec<_>>(), ["\"A=B\"", "\"a\\u0000\"", "\"\"", "\"a b\""]);
}

#[test]
fn a_source_is_one_thing_and_pinned() {
    let source = |lines: &str| {
        let text = format!("schema = 1\n[package]\nname = \"x\"\n[source]\n{lines}");
        read(&text).map(|recipe| recipe.source).map_err(|all| all.iter().map(|p| p.message().to_owned()).collect())
    };
    let id = "A".repeat(40);
    let git = format!("git = \"u\"\ncommit = \"{id}\"\nsubmodules = true\n");
    let commit = id.to_ascii_lowercase();
    assert_eq!(source(&git), Ok(Source::Git { url: "u".into(), commit, submodules: true }));
    let refused = |lines: &str| -> Vec<String> { source(lines).unwrap_err() };
    assert_eq!(refused(&format!("path = \".\"\n{git}")), ["the source has both `path` and `git`"]);
    assert_eq!(refused("git = \"u\"\n"), ["a `git` source needs the commit"]);
    assert_eq!(refused("git = \"-u\"\ncommit = \"v1\"\n").len(), 2);
    assert_eq!(refused("path = \".\"\nsha256 = \"x\"\n"), ["`sha256` does not go with `path`"]);
}

#[test]
fn every_wrong_value_is_reported_at_once() {
    let text = "schema = 1\n[package]\nname = \"a b\"\n[source]\npypi = \"x\"\npatches = [\"p\"]\n\
        [toolchain]\ntorch = \"two\"\n[build]\nbackend = \"make\"\nmemory-per-job = \"much\"\n\
        [verify]\nextensions = [\"[\"]\nimport = [\"a-b\"]\n";
    let problems = read(text).unwrap_err();
    assert_eq!(problems.iter().count(), 8, "{problems:#?}");
    assert!(problems.iter().all(|p| p.snippet().is_some_and(|s| !s.range.is_empty())));
}
