//! Bad recipes and sources as a user meets them: every error with its place, before anything is installed.

use std::os::unix::fs::symlink;

use crate::support::{Sandbox, project};

const HEAD: &str = "schema = 1\n[package]\nname = \"x\"\n";

/// A recipe in `x.toml` with a source tree beside it.
fn sandbox(recipe: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("x.toml", recipe).file("setup.py", "").file("empty/.keep", "");
    sandbox
}

/// What a build that must end in the recipe stage says. Nothing is left behind by it.
fn refused(sandbox: &Sandbox, recipe: &str) -> String {
    let said = sandbox.run(&["build", recipe, "--arch", "9.0"]).assert_code(10);
    assert!(!sandbox.work().join("dist").exists() && !sandbox.root().join("cache/toolchains-v1").exists());
    said.shown(sandbox)
}

#[test]
fn every_mistake_in_a_recipe_is_shown_at_its_place() {
    let tail = "[source]\npath = \".\"\n";
    for (name, text) in [
        ("broken_toml", "schema = 1\n[package\n".to_owned()),
        ("no_schema", "[package]\nname = \"x\"\n".to_owned()),
        ("unknown_schema", "schema = 2\nnew = true\n".to_owned()),
        ("missing_key", HEAD.to_owned()),
        ("no_source", format!("{HEAD}[source]\n")),
        ("unknown_key", format!("{HEAD}{tail}[targets]\narchs = [\"9.0\"]\n")),
        ("unquoted_arch", format!("{HEAD}{tail}[targets]\narch = [10.0]\n")),
        ("unquoted_variable", format!("{HEAD}{tail}[build]\nenv = {{ FORCE_CUDA = 1 }}\n")),
        ("no_list", format!("{HEAD}{tail}[targets]\narch = \"9.0\"\n")),
        ("wrong_type", format!("toolchain = 3\n{HEAD}{tail}")),
        ("requirement", format!("{HEAD}{tail}[toolchain]\nbuild-requires = [\"two words\"]\n")),
        ("no_version_left", format!("{HEAD}{tail}[toolchain]\ncuda = \">=12,<11\"\n")),
        (
            "every_kind_at_once",
            "schema = 1\n[package]\nname = \"a b\"\n[source]\npath = \".\"\nbranch = \"main\"\n[toolchain]\ntorch = \"two\"\n\
             build-requires = [\"two words\", \"numpy>=2,<1\"]\n[targets]\narch = [9.0, \"8.60\"]\nprofiles.prod.arch = \"9.0\"\n\
             [build]\nenv = { FORCE_CUDA = 1 }\n"
                .to_owned(),
        ),
        (
            "many_wrong_values",
            "schema = 1\n[package]\nname = \"a b\"\n[source]\npypi = \"x\"\npatches = [\"none.patch\"]\n\
             [toolchain]\ntorch = \"two\"\n[build]\nbackend = \"make\"\nmemory-per-job = \"much\"\n\
             env = { \"A=B\" = \"1\", \"\" = \"2\" }\n[verify]\nextensions = [\"[\"]\nimport = [\"a-b\"]\n\
             waive = [{ file = \"x\", arch = \"9.0\", reason = \" \" }]\n"
                .to_owned(),
        ),
    ] {
        insta::assert_snapshot!(name, refused(&sandbox(&text), "x.toml"));
    }
}

#[test]
fn an_arch_is_found_in_the_file_and_costs_no_download() {
    let sandbox = sandbox(&format!("{HEAD}[source]\npath = \".\"\n[targets]\narch = [\"9.0\", \"foo\"]\n"));
    insta::assert_snapshot!(sandbox.run(&["build", "x.toml"]).assert_code(10).shown(&sandbox));
    let word = sandbox.run(&["build", "x.toml", "--arch", "banana"]).assert_code(2);
    assert!(word.stderr.contains("unknown_gpu") && !word.stderr.contains("Toolchain"), "{}", word.stderr);
    insta::assert_snapshot!(
        "no_profile",
        sandbox.run(&["build", "x.toml", "--profile", "dev"]).assert_code(2).shown(&sandbox)
    );
}

#[test]
fn what_is_not_the_recipe_s_to_say_comes_with_what_is_asked_wrongly() {
    let build = "[build]\npass-env = [\"MAX_JOBS\", \"PATH\"]\nenv = { CC = \"x\" }\n";
    let sandbox = sandbox(&format!("{HEAD}[source]\npath = \".\"\n{build}")).var("MAX_JOBS", "0");
    let said = sandbox.run(&["plan", "x.toml", "--arch", "8.60", "--cuda", "new", "--torch", "x"]).assert_code(10);
    let codes: Vec<&str> = said
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("error[")?.split(']').next()?.rsplit(':').next())
        .collect();
    let expected =
        ["reserved_variable"; 3].into_iter().chain(["malformed_arch", "max_jobs"]).chain(["version_range"; 2]);
    assert_eq!(codes, expected.collect::<Vec<_>>(), "{}", said.stderr);
}

#[test]
fn what_is_no_recipe_is_told_apart() {
    let sandbox = sandbox("");
    let path = |name: &str| sandbox.work().join(name);
    fs_err::write(path("binary.toml"), [0xff, 0xfe, 0]).unwrap();
    fs_err::File::create(path("large.toml")).unwrap().set_len(100 << 20).unwrap();
    symlink("loop.toml", path("loop.toml")).unwrap();
    symlink("gone", path("dangling.toml")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path("pipe.toml")).status().unwrap().success());
    for recipe in
        ["binary.toml", "large.toml", "loop.toml", "dangling.toml", "pipe.toml", "empty", "mmvc", "./none.toml"]
    {
        let name = format!("no_recipe_{}", recipe.trim_matches(['.', '/']).replace('.', "_"));
        insta::assert_snapshot!(name, refused(&sandbox, recipe));
    }
}

#[test]
fn a_patch_that_cannot_be_read_or_applied_is_known_at_once() {
    let sandbox = sandbox(&format!("{HEAD}[source]\npath = \".\"\npatches = [\"x.patch\"]\n"));
    assert!(std::process::Command::new("mkfifo").arg(sandbox.work().join("x.patch")).status().unwrap().success());
    insta::assert_snapshot!(refused(&sandbox, "x.toml"));
    fs_err::remove_file(sandbox.work().join("x.patch")).unwrap();
    sandbox.file("x.patch", "");
    let sandbox = sandbox.var("PATH", "/nonexistent");
    insta::assert_snapshot!("patch_program", refused(&sandbox, "x.toml"));
}

#[test]
fn a_source_that_cannot_be_built_is_known_at_once() {
    let with_source = |path: &str| sandbox(&format!("{HEAD}[source]\npath = \"{path}\"\n"));
    insta::assert_snapshot!("source_missing", refused(&with_source("../nowhere"), "x.toml"));
    insta::assert_snapshot!("source_is_a_file", refused(&with_source("setup.py"), "x.toml"));
    let deeper = with_source("tree");
    deeper.file("tree/python/setup.py", "");
    insta::assert_snapshot!("source_without_setup_py", refused(&deeper, "x.toml"));
    let odd = with_source(".");
    symlink("/etc", odd.work().join("etc")).unwrap();
    insta::assert_snapshot!("source_with_a_link_out_of_it", refused(&odd, "x.toml"));
}

#[test]
fn odd_names_in_a_tree_and_odd_folders_around_it_change_nothing() {
    let sandbox = Sandbox::new();
    let digest = |folder: &str, extra: &[&str]| {
        for name in ["setup.py", "cuwright.toml"] {
            let text = fs_err::read_to_string(project(&format!("examples/hello_ext/{name}"))).unwrap();
            sandbox.file(&format!("{folder}/{name}"), &text);
        }
        for name in extra {
            sandbox.file(&format!("{folder}/{name}"), "");
        }
        symlink("self", sandbox.work().join(folder).join("self")).unwrap();
        // Without a toolchain the plan goes as far as the source, which is enough: a fault of it would be told.
        sandbox.run(&["plan", folder, "--arch", "9.0", "--json"]).assert_code(0).stdout
    };
    let names = ["new\nline", "it's \"quoted\" $HOME", "back\\slash", "é"];
    for folder in ["plain", "new\nline", "it's \"quoted\" $HOME é"] {
        assert!(digest(folder, &names).contains("the toolchain is not installed yet"), "{folder}");
    }
}
