//! `cache`, and what every command does with a cache folder, a current folder and an output that cannot be used.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::process::Stdio;

use crate::support::{Said, Sandbox};

fn shown(sandbox: &Sandbox, args: &[&str], code: i32) -> String {
    sandbox.run(args).assert_code(code).shown(sandbox)
}

#[test]
fn an_empty_cache_says_so_and_is_not_made_by_looking() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(shown(&sandbox, &["cache", "list"], 0));
    insta::assert_snapshot!("empty_stat", shown(&sandbox, &["cache", "stat"], 0));
    assert!(!sandbox.root().join("cache").exists());
}

#[test]
fn mistakes_are_told_with_what_would_be_right() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!("no_such_key", shown(&sandbox, &["cache", "remove", "abc"], 15));
    insta::assert_snapshot!("no_key_at_all", shown(&sandbox, &["cache", "remove", "xyz"], 2));
    insta::assert_snapshot!("gc_without_a_limit", shown(&sandbox, &["cache", "gc"], 2));
    insta::assert_snapshot!("gc_with_a_strange_limit", shown(&sandbox, &["cache", "gc", "--max-size", "3"], 2));
}

#[test]
fn a_removal_says_what_it_waits_for_and_looks_at_its_arguments_first() {
    let sandbox = Sandbox::new().var("CUWRIGHT_LOCK_TIMEOUT", "1");
    let store = cache::Store::open(sandbox.root().join("cache")).unwrap();
    let key = cache::digest(b"kept");
    let artifact = sandbox.work().join("x.whl");
    fs_err::write(&artifact, "x").unwrap();
    let staging = store.stage(&key).unwrap();
    staging.add_file(artifact.as_std_path(), "x.whl").unwrap();
    staging.commit(serde_json::json!({}), serde_json::json!({}), std::time::SystemTime::now()).unwrap();
    // What a build holds.
    let held = store.lock(cache::STORE_LOCK, cache::Mode::Shared, |_| cache::Wait::GiveUp).unwrap();
    for (args, code) in [
        (&["cache", "gc"][..], 2),
        (&["cache", "gc", "--max-size", "3"], 2),
        (&["cache", "remove", "xyz"], 2),
        (&["cache", "remove", key.short(), "fff0"], 15),
    ] {
        let said = sandbox.run(args).assert_code(code);
        assert!(!said.stderr.contains("Waiting") && !said.stderr.contains("busy"), "{}", said.stderr);
    }
    insta::assert_snapshot!("waits", shown(&sandbox, &["cache", "gc", "--max-age", "30"], 15));
    let said = sandbox.run(&["cache", "remove", key.short(), "--json"]).assert_code(15);
    let reasons: Vec<serde_json::Value> = said.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&reasons[0]["reason"], &reasons[1]["code"]), (&"waiting".into(), &"cuwright::cache::busy".into()));
    drop(held);
    let said = sandbox.run(&["cache", "remove", key.short()]).assert_code(0);
    assert!(said.stderr.is_empty() && said.stdout.starts_with("removed 1 artifact"), "{}{}", said.stdout, said.stderr);
}

#[test]
fn a_cache_folder_that_cannot_be_used_is_told_with_the_reason() {
    let sandbox = Sandbox::new();
    sandbox.file("file", "");
    insta::assert_snapshot!("cache_is_a_file", shown(&sandbox, &["cache", "list", "--cache-dir", "file"], 15));
    let homeless = |sandbox: &Sandbox| {
        let mut command = sandbox.command(&["cache", "list"]);
        command.env_remove("HOME").env_remove("CUWRIGHT_CACHE_DIR");
        command
    };
    insta::assert_snapshot!("no_home", Said::of(homeless(&sandbox)).assert_code(2).shown(&sandbox));
    let mut odd = homeless(&sandbox);
    odd.env("CUWRIGHT_CACHE_DIR", std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
    insta::assert_snapshot!("odd_cache_dir", Said::of(odd).assert_code(2).shown(&sandbox));
}

#[test]
fn a_current_folder_that_is_gone_is_not_taken_for_the_root() {
    let sandbox = Sandbox::new();
    let gone = sandbox.work().join("gone");
    fs_err::create_dir(&gone).unwrap();
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", "rmdir ../gone && exec \"$0\" build --arch 9.0", env!("CARGO_BIN_EXE_cuwright")]);
    command.current_dir(gone).env("CUWRIGHT_CACHE_DIR", sandbox.root().join("cache"));
    insta::assert_snapshot!(Said::of(command).assert_code(2).shown(&sandbox));
}

/// Whether `/dev/full` is the device: a container may have none or a plain file of that name.
fn has_full_device() -> bool {
    fs_err::metadata("/dev/full").is_ok_and(|meta| meta.file_type().is_char_device())
}

#[test]
#[expect(clippy::print_stderr, reason = "a part that is left out is said")]
fn a_full_output_is_an_error_and_a_closed_one_is_not() {
    let sandbox = Sandbox::new();
    for args in [["completions", "bash"], ["cache", "list"]] {
        if has_full_device() {
            let full = fs_err::OpenOptions::new().write(true).open("/dev/full").unwrap().into_parts().0;
            let output = sandbox.command(&args).stdout(Stdio::from(full)).stderr(Stdio::piped()).spawn().unwrap();
            let said = Said::from(output.wait_with_output().unwrap()).assert_code(2);
            assert!(said.stderr.starts_with("error[cuwright::usage::output]"), "{}", said.stderr);
        } else {
            eprintln!("skipped: this system has no device /dev/full");
        }
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sandbox.command(&args).stdout(Stdio::from(writer)).stderr(Stdio::piped()).spawn().unwrap();
        Said::from(output.wait_with_output().unwrap()).assert_code(0);
    }
}
