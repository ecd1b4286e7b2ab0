//! `env` as a user runs it, and every format against a reader of its own: a real `sh`, a JSON parser, and the
//! documented rules of the others.

use std::process::Command;

use cuwright::emit::{Format, Variables, write};
use proptest::prelude::*;

use crate::support::{Sandbox, real};

fn one(value: &str) -> Variables {
    Variables { set: vec![("V".to_owned(), value.to_owned())], path: Vec::new() }
}

/// What a real shell holds in `V` after `script`.
fn by_shell(script: &str) -> String {
    let script = format!("{script}\nprintf %s. \"$V\"");
    let output = Command::new("/bin/sh").args(["-c", &script]).env_clear().output().unwrap();
    assert!(output.status.success(), "{script}");
    String::from_utf8(output.stdout).unwrap().strip_suffix('.').unwrap().to_owned()
}

/// What Docker makes of the inside of double quotes: a backslash goes only in front of `"`, `$` and itself.
fn by_docker(quoted: &str) -> String {
    let inside = quoted.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
    let mut text = String::new();
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        assert!(c != '"' && c != '$', "a bare {c} in {quoted}");
        match chars.next_if(|next| c == '\\' && "\"$\\".contains(*next)) {
            Some(next) => text.push(next),
            None => text.push(c),
        }
    }
    text
}

/// What the service makes of `$` after YAML was read; a single one would begin a reference.
fn undollar(text: &str) -> String {
    assert!(!text.replace("$$", "").contains('$'), "{text}");
    text.replace("$$", "$")
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,24}",
        "[a-zA-Z0-9.;:/+$'\"\\\\ `!#{}()\n\t]{0,24}",
        any::<String>().prop_map(|text| text.replace('\0', "")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_real_shell_reads_back_what_was_meant(value in values()) {
        prop_assert_eq!(by_shell(&write(Format::Sh, &one(&value)).unwrap()), value);
    }

    #[test]
    fn a_dotenv_line_is_read_by_a_shell_and_by_plain_rules_alike(value in values()) {
        if let Ok(line) = write(Format::Dotenv, &one(&value)) {
            prop_assert_eq!(line.lines().count(), 1);
            let plain = line.strip_prefix("V=").unwrap();
            let plain = plain.strip_prefix('\'').map_or(plain, |rest| rest.strip_suffix('\'').unwrap());
            prop_assert_eq!(plain, value.as_str());
            prop_assert_eq!(by_shell(&line), value);
        }
    }
}

proptest! {
    #[test]
    fn json_docker_and_yaml_read_back(value in values()) {
        let json: serde_json::Value = serde_json::from_str(&write(Format::Json, &one(&value)).unwrap()).unwrap();
        prop_assert_eq!(json["V"].as_str(), Some(value.as_str()));
        if let Ok(line) = write(Format::Docker, &one(&value)) {
            prop_assert_eq!(by_docker(line.strip_prefix("ENV V=").unwrap()), value.clone());
        }
        // A quoted scalar is JSON as well as YAML.
        let gitlab = write(Format::Gitlab, &one(&value)).unwrap();
        let scalar: String = serde_json::from_str(gitlab.strip_prefix("variables:\n  V: ").unwrap()).unwrap();
        prop_assert_eq!(undollar(&scalar), value.clone());
        let k8s = write(Format::K8s, &one(&value)).unwrap();
        let scalar: String = serde_json::from_str(k8s.strip_prefix("env:\n- name: \"V\"\n  value: ").unwrap()).unwrap();
        prop_assert_eq!(undollar(&scalar), value);
    }
}

#[test]
fn a_path_goes_in_front_of_the_reader_s_own() {
    let variables = Variables { set: Vec::new(), path: vec!["/a b".to_owned(), "/c".to_owned()] };
    let script = write(Format::Sh, &variables).unwrap();
    assert_eq!(by_shell(&format!("PATH=/x; {script}; V=$PATH")), "/a b:/c:/x");
    assert_eq!(by_shell(&format!("PATH=; {script}; V=$PATH")), "/a b:/c");
    assert_eq!(write(Format::Docker, &variables).unwrap(), "ENV PATH=\"/a b:/c:$PATH\"");
    assert_eq!(write(Format::K8s, &variables).unwrap(), "env:");
}

#[test]
fn what_a_reader_cannot_hold_is_refused_by_name() {
    let problems = write(Format::Dotenv, &one("it's")).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert!(problem.message().contains('V') && problem.code() == "cuwright::usage::format_cannot_hold");
    assert!([r"a\\b", r"a\", "${a}", "a\rb"].iter().all(|value| write(Format::Dotenv, &one(value)).is_err()));
    assert!(write(Format::Docker, &one("a\nb")).is_err());
    let odd = Variables { set: vec![("A B".to_owned(), "1".to_owned())], path: Vec::new() };
    assert!(write(Format::Sh, &odd).is_err());
    let key = Variables { set: vec![("NO".to_owned(), "1".to_owned())], path: Vec::new() };
    assert_eq!(write(Format::Gitlab, &key).unwrap(), "variables:\n  \"NO\": \"1\"");
}

fn answer(sandbox: &Sandbox, args: &[&str]) -> String {
    let args: Vec<&str> = ["env"].into_iter().chain(args.iter().copied()).collect();
    sandbox.run(&args).assert_code(0).stdout
}

/// A machine whose only programs are none: no Python, no compiler, no toolkit.
fn bare() -> Sandbox {
    Sandbox::new().var("PATH", "/nonexistent")
}

#[test]
fn without_a_toolchain_the_arch_variables_are_written() {
    let said = bare().run(&["env", "--arch", "75;8.6+PTX"]).assert_code(0);
    assert_eq!(
        said.stdout,
        "export TORCH_CUDA_ARCH_LIST='7.5;8.6+PTX'\nexport CUDAARCHS='75-real;86-real;86-virtual'\n"
    );
    assert!(said.stderr.contains("archs only"), "{}", said.stderr);
}

#[test]
fn every_consumer_that_has_words_gets_them_and_the_others_are_told() {
    let said = bare().run(&["env", "--arch", "8.0;9.0+PTX", "--for", "all"]).assert_code(0);
    insta::assert_snapshot!("env_for_all", said.shown(&bare()));
    let said = bare().run(&["env", "--arch", "10.0f"]).assert_code(0);
    assert_eq!(said.stdout, "export CUDAARCHS=100f-real\n");
    assert!(said.stderr.contains("torch is left out") && said.stderr.contains("`f` suffix"), "{}", said.stderr);
    let said = bare().run(&["env", "--arch", "10.0f", "--for", "torch"]).assert_code(12);
    assert!(said.stdout.is_empty() && said.stderr.contains("dialect_cannot_hold"), "{}", said.stderr);
}

#[test]
fn formats_look_as_their_readers_want_them() {
    let sandbox = bare();
    for format in ["sh", "dotenv", "docker", "gitlab", "k8s", "json"] {
        let args = ["--arch", "9.0+PTX;8.6", "--for", "torch", "--for", "caffe", "--for", "tensorflow"];
        let said = answer(&sandbox, &[&args[..], &["--format", format]].concat());
        insta::assert_snapshot!(format!("env_{format}"), said);
    }
    let document = answer(&sandbox, &["--arch", "9.0", "--json"]);
    assert_eq!(document, answer(&sandbox, &["--arch", "9.0", "--format", "json"]));
}

#[test]
fn no_word_that_looks_at_a_gpu_is_ever_written() {
    for list in ["all", "all-major"] {
        let said = answer(&bare(), &["--arch", list, "--cuda", "13.0", "--torch", "2.11", "--for", "all"]);
        assert!(["native", "auto", "all", "common"].iter().all(|word| !said.to_lowercase().contains(word)), "{said}");
    }
    let said = bare().run(&["env", "--arch", "native"]);
    assert!(said.stdout.is_empty() || !said.stdout.contains("native"), "{}", said.stdout);
}

#[test]
fn a_recipe_s_own_variables_come_along_and_what_would_still_reach_a_build_is_told() {
    let sandbox = bare().var("CMAKE_CUDA_ARCHITECTURES", "native");
    let said = sandbox.run(&["env", "mmcv", "--arch", "8.6"]).assert_code(0);
    assert!(said.stdout.contains("export FORCE_CUDA=1") && said.stderr.contains("CMAKE_CUDA_ARCHITECTURES=native"));
    assert_eq!(bare().run(&["env", "mmvc"]).assert_code(10).stdout, "");
}

#[test]
fn with_a_toolchain_here_its_programs_are_named() {
    let sandbox = real::sandbox();
    sandbox.run(&["toolchain", "install"]).assert_code(0);
    let said = answer(&sandbox, &["--arch", "9.0"]);
    let value = |name: &str| by_shell(&format!("{said}\nV=${name}"));
    for name in ["CUDACXX", "PYTORCH_NVCC", "CC", "CXX"] {
        assert!(std::path::Path::new(&value(name)).is_file(), "{name}: {said}");
    }
    assert_eq!(value("CUDACXX"), format!("{}/bin/nvcc", value("CUDA_HOME")));
    let output = Command::new("/bin/sh").args(["-c", &format!("{said}\nnvcc --version")]).output().unwrap();
    assert!(output.status.success(), "nvcc is on the PATH of {said}");
    // Paths of this machine mean nothing in an image.
    assert_eq!(
        answer(&sandbox, &["--arch", "9.0", "--for", "torch", "--format", "docker"]),
        "ENV TORCH_CUDA_ARCH_LIST=\"9.0\"\n"
    );
}
