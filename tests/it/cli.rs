//! The command line as a whole: help, version, usage errors, completions.

use serde_json::Value;

use crate::support::Sandbox;

#[test]
fn help_shows_every_command() {
    insta::assert_snapshot!(Sandbox::new().run(&["--help"]).assert_code(0).stdout);
}

#[test]
fn build_help_explains_every_choice() {
    insta::assert_snapshot!(Sandbox::new().run(&["build", "--help"]).assert_code(0).stdout);
}

#[test]
fn a_wrong_flag_is_a_usage_error() {
    let said = Sandbox::new().run(&["build", "--archs", "9.0"]).assert_code(2);
    assert!(said.stderr.contains("--arch"), "{}", said.stderr);
}

#[test]
fn an_empty_path_is_refused_with_the_name_of_its_argument() {
    let sandbox = Sandbox::new();
    sandbox.file("setup.py", "");
    let refused = |args: &[&str]| sandbox.run(args).assert_code(2).stderr.lines().next().unwrap().to_owned();
    for args in [&["inspect", ""][..], &["verify", ""], &["build", "--out", ""], &["build", "--out="], &["build", ""]] {
        assert!(refused(args).ends_with(": it is empty"), "{args:?}: {}", refused(args));
    }
    assert_eq!(
        refused(&["recipes", "--cache-dir", ""]),
        "error: invalid value '' for '--cache-dir <DIR>': it is empty"
    );
    assert_eq!(refused(&["verify", "", "--strict"]), "error: invalid value '' for '[FILE]...': it is empty");
}

#[test]
fn a_usage_error_is_json_where_json_was_asked_for() {
    let sandbox = Sandbox::new();
    // Other commands: a line on standard error, nothing on the other.
    let said = sandbox.run(&["verify", "--runs-on", "H100", "--json"]).assert_code(2);
    let error: Value = serde_json::from_str(said.stderr.trim_end()).unwrap();
    assert_eq!((&error["reason"], &error["exit"]), (&"error".into(), &2.into()));
    assert_eq!(error["code"], "cuwright::usage::arguments");
    assert_eq!(said.stdout, "");
    // `build` streams, and its stream is whole.
    let said = sandbox.run(&["build", "--message-format", "json", "--archs", "9.0"]).assert_code(2);
    let messages: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reasons: Vec<&str> = messages.iter().map(|message| message["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["start", "error", "finish"]);
    assert_eq!((&messages[0]["command"], &messages[2]["exit"]), (&"build".into(), &2.into()));
    assert!(messages[1]["help"].to_string().contains("--arch"), "{}", messages[1]);
    assert_eq!(said.stderr, "");
    // Pages stay pages.
    for page in ["--help", "--version"] {
        assert!(sandbox.run(&["--json", page]).assert_code(0).stdout.starts_with(['C', 'c']));
    }
    assert!(sandbox.run(&["build", "--archs", "9.0"]).assert_code(2).stderr.starts_with("error: unexpected argument"));
}

#[test]
fn a_report_is_refused_before_the_work_where_its_folder_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox.file("setup.py", "raise SystemExit('this must not run')\n").file("x.so", "x").file("here/file", "");
    let refused = |args: &[&str]| sandbox.run(args).assert_code(2).shown(&sandbox);
    insta::assert_snapshot!("junit_folder", refused(&["verify", "x.so", "--junit", "new/dir/x.xml"]));
    insta::assert_snapshot!("timings_folder", refused(&["build", "--arch", "9.0", "--timings=new/x.html"]));
    insta::assert_snapshot!("junit_is_folder", refused(&["verify", "x.so", "--junit", "here"]));
    assert!(!sandbox.work().join("new").exists());
    sandbox.run(&["verify", "x.so", "--junit", "here/x.xml"]).assert_code(14);
    assert!(sandbox.work().join("here/x.xml").is_file());
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(Sandbox::new().run(&["completions", shell]).assert_code(0).stdout.contains("cuwright"), "{shell}");
    }
}
