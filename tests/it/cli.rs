//! The command line as a whole: help, version, usage errors, completions.

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
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(Sandbox::new().run(&["completions", shell]).assert_code(0).stdout.contains("cuwright"), "{shell}");
    }
}
