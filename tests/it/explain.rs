//! `explain` as a user runs it: logs from files and standard input, facts from flags, topics, JSON, and a build of ours
//! that fails.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Said, Sandbox, project, real};

/// A sandbox with the log of a field case.
fn case(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    fs_err::copy(project("src/diagnose/logs").join(format!("{name}.log")), sandbox.work().join("build.log")).unwrap();
    sandbox
}

fn shown(name: &str) -> String {
    case(name).run(&["explain", "build.log"]).assert_code(0).stdout
}

/// Runs with this text on standard input.
fn piped(sandbox: &Sandbox, args: &[&str], text: &[u8]) -> Said {
    let mut command = sandbox.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_cause_is_told_with_evidence_reason_mend_and_what_it_is_not() {
    insta::assert_snapshot!("toolkit_too_old", shown("C05"));
    insta::assert_snapshot!("quiet_fault", shown("C02"));
    insta::assert_snapshot!("error_and_side_finding", shown("C18"));
    insta::assert_snapshot!("no_failure", shown("C21"));
}

#[test]
fn what_no_rule_knows_is_said_to_be_unknown_with_the_first_errors() {
    let sandbox = Sandbox::new();
    let log =
        b"[1/2] c++ -c a.cpp -o a.o\nFAILED: a.o\na.cpp:3:5: error: \x1b[1m'frobnicate'\x1b[0m was not declared\n    \
                3 |     frobnicate();\n      |     ^\nninja: build stopped: subcommand failed.\n";
    let said = piped(&sandbox, &["explain", "-"], log).assert_code(0);
    insta::assert_snapshot!("unknown", said.stdout);
}

#[test]
fn json_carries_the_same_and_flags_tell_what_the_log_lacks() {
    let sandbox = case("C12");
    let found: Value =
        serde_json::from_str(&sandbox.run(&["explain", "build.log", "--json"]).assert_code(0).stdout).unwrap();
    assert_eq!(found["verdict"], "explained");
    assert_eq!((&found["cause"]["label"], &found["cause"]["evidence"]["line"]), (&"out-of-memory".into(), &7.into()));
    assert_eq!(found["cause"]["count"], 2);
    let log = b"nvcc fatal   : Unsupported gpu architecture 'compute_101'\n";
    let label = |args: &[&str]| {
        let args: Vec<&str> = ["explain", "-", "--json"].iter().chain(args).copied().collect();
        let found: Value = serde_json::from_str(&piped(&sandbox, &args, log).assert_code(0).stdout).unwrap();
        found["cause"]["label"].as_str().unwrap().to_owned()
    };
    assert_eq!(label(&[]), "arch-unknown-to-toolkit");
    assert_eq!(label(&["--cuda", "13.0"]), "arch-renamed");
    assert_eq!(label(&["--cuda", "10.1", "--gpu", "GTX 1080"]), "arch-list-wrong");
    for flag in ["--cuda", "--torch", "--gpu"] {
        let said = sandbox.run(&["explain", "build.log", flag, "nonsense"]).assert_code(2).stderr;
        assert!(said.contains(&format!("`{flag} nonsense`")), "{said}");
    }
    assert_eq!(label(&["--cuda", "cu130"]), "arch-renamed");
    sandbox.run(&["explain", "build.log", "--here"]).assert_code(0);
}

#[test]
fn what_is_no_text_is_not_called_a_log_without_a_failure() {
    let sandbox = Sandbox::new();
    let binary = project("fatbin/tests/vectors/v16_lib.a");
    fs_err::copy(binary, sandbox.work().join("lib.a")).unwrap();
    insta::assert_snapshot!("not_text", sandbox.run(&["explain", "lib.a"]).assert_code(0).stdout);
    let said = sandbox.run(&["explain", "lib.a", "--json"]).assert_code(0);
    assert!(said.stdout.contains(r#""verdict": "not-text""#), "{}", said.stdout);
}

#[test]
fn topics_are_shown_listed_and_suggested_and_a_file_wins_over_one() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!("topic", sandbox.run(&["explain", "arch"]).assert_code(0).stdout);
    let page = sandbox.run(&["explain", "no-kernel-image"]).assert_code(0).stdout;
    assert!(page.contains("NVIDIA/apex#1051") && page.contains("Mends:"), "{page}");
    for code in ["cuwright::build::failed", "build::failed"] {
        assert!(
            sandbox.run(&["explain", code]).assert_code(0).stdout.contains("A command of the build system ended"),
            "{code}"
        );
    }
    let list = sandbox.run(&["explain", "--list"]).assert_code(0).stdout;
    for name in ["arch", "out-of-memory", "ninja-stopped", "cuwright::cache::busy"] {
        assert!(list.lines().any(|line| line.trim_start().starts_with(name)), "{name}");
    }
    let topics: Value =
        serde_json::from_str(&sandbox.run(&["explain", "--list", "--json"]).assert_code(0).stdout).unwrap();
    assert!(topics.as_array().unwrap().len() > 100);
    insta::assert_snapshot!("no_topic", sandbox.run(&["explain", "no-kernel-imag"]).assert_code(2).stderr);
    sandbox.file("arch", "Killed\n");
    assert!(sandbox.run(&["explain", "arch"]).assert_code(0).stdout.contains("[out-of-memory]"));
    assert!(sandbox.run(&["explain", "."]).assert_code(2).stderr.contains("cuwright::usage::unreadable_file"));
    sandbox.run(&["explain"]).assert_code(2);
}

#[test]
fn a_failed_build_of_ours_is_explained_by_itself_with_its_facts() {
    let sandbox = real::sandbox();
    let setup = "print('[1/1] nvcc -c a.cu -o a.o')\nprint('FAILED: a.o')\n\
                 print(\"nvcc error   : 'cicc' died due to signal 9 (Kill signal)\")\nraise SystemExit(1)\n";
    sandbox.file("setup.py", setup).file("stamp", &real::stamp());
    let said = sandbox.run(&["build", "--arch", "9.0", "--json"]).assert_code(13);
    let messages: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |reason: &str| messages.iter().position(|message| message["reason"] == reason).unwrap();
    let (told, error) = (of("diagnosis"), of("error"));
    assert!(told < error);
    let cause = &messages[told]["diagnosis"]["cause"];
    assert_eq!((&cause["label"], &cause["broke"][0]), (&"out-of-memory".into(), &"a.o".into()));
    assert_eq!(messages[error]["code"], "cuwright::build::failed");
    assert!(messages[error]["message"].as_str().unwrap().contains("ran out of memory"));
    let help = messages[error]["help"].to_string();
    assert!(help.contains("cuwright build -j") && help.contains("cuwright explain out-of-memory"), "{help}");
}
