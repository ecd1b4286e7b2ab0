//! Toolchains that are not to be had: compilers, Pythons, versions, a cache folder, an index.
//!
//! Compilers and Pythons that are broken or too old are stand-ins: scripts that answer as those would.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Sandbox, real};

/// A sandbox with a recipe that needs nothing special.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("setup.py", "");
    sandbox
}

fn script(sandbox: &Sandbox, name: &str, body: &str) -> String {
    let path = sandbox.work().join("bin").join(name);
    sandbox.file(&format!("bin/{name}"), &format!("#!/bin/sh\n{body}\n"));
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.into_string()
}

fn refused(sandbox: &Sandbox, more: &[&str], code: i32) -> String {
    let args: Vec<&str> = ["build", "--arch", "9.0", "-q"].into_iter().chain(more.iter().copied()).collect();
    let said = sandbox.run(&args).assert_code(code);
    assert!(!sandbox.work().join("dist").exists());
    said.shown(sandbox)
}

#[test]
fn a_compiler_that_is_absent_or_broken_is_told() {
    let plain = sandbox();
    script(&plain, "python3", "exec /usr/bin/python3 \"$@\"");
    let bin = plain.work().join("bin");
    insta::assert_snapshot!("no_compiler", refused(&plain.var("PATH", bin.as_str()), &[], 12));
    insta::assert_snapshot!("no_such_compiler", refused(&sandbox().var("CXX", "/nonexistent/g++"), &[], 12));
    insta::assert_snapshot!("no_such_c_compiler", refused(&sandbox().var("CXX", "g++").var("CC", "gcc-99"), &[], 12));
    let broken = sandbox();
    let (mute, loud) = (script(&broken, "mute", "exit 1"), script(&broken, "loud", "echo no licence >&2; exit 1"));
    let broken = broken.var("CXX", &mute);
    insta::assert_snapshot!("mute_compiler", refused(&broken, &[], 12));
    insta::assert_snapshot!("broken_c_compiler", refused(&broken.var("CXX", "g++").var("CC", &loud), &[], 12));
}

#[test]
fn a_python_that_does_not_fit_is_told() {
    let sandbox = sandbox();
    let answer = r#"echo '{"executable":"/x","version":"3.8.18","tag":"cp38","platform":"p","site_dirs":[],"headers":null,"origin":"cpython"}'"#;
    let (old, mute) = (script(&sandbox, "old", answer), script(&sandbox, "mute", "exit 3"));
    let dead = script(&sandbox, "dead", "echo 'Fatal Python error: init_fs_encoding' >&2; exit 1");
    insta::assert_snapshot!("no_such_python", refused(&sandbox, &["--python", "/nonexistent"], 12));
    insta::assert_snapshot!("old_python", refused(&sandbox, &["--python", &old], 12));
    insta::assert_snapshot!("mute_python", refused(&sandbox, &["--python", &mute], 12));
    insta::assert_snapshot!("dead_python", refused(&sandbox, &["--python", &dead], 12));
    insta::assert_snapshot!("no_python", refused(&sandbox, &["--python", "/bin/true"], 12));
}

#[test]
fn versions_that_do_not_exist_are_told() {
    let sandbox = sandbox();
    insta::assert_snapshot!("no_version", refused(&sandbox, &["--cuda", "abc"], 2));
    insta::assert_snapshot!("no_range", refused(&sandbox, &["--torch", ">=2.0,<"], 2));
    for more in [["--cuda", "99"], ["--torch", "1.0"]] {
        let text = refused(&sandbox, &more, 12);
        assert!(text.contains("error[cuwright::provision::no_combination]"), "{text}");
    }
}

#[test]
fn a_cache_folder_that_cannot_be_made_is_told() {
    let sandbox = sandbox().var("CUWRIGHT_CACHE_DIR", "/dev/null/x");
    let text = refused(&sandbox, &[], 12);
    assert!(text.contains("error[cuwright::provision::cache_folder]") && text.contains("Not a directory"), "{text}");
    insta::assert_snapshot!(
        "nothing_to_remove",
        sandbox.run(&["toolchain", "remove", "abc"]).assert_code(2).shown(&sandbox)
    );
    insta::assert_snapshot!("nothing_to_list", sandbox.run(&["toolchain", "list"]).assert_code(0).shown(&sandbox));
}

#[test]
fn an_index_that_nobody_serves_is_told_and_leaves_no_toolchain() {
    let sandbox = real::sandbox();
    sandbox.run(&["toolchain", "install"]).assert_code(0);
    let own = sandbox.root().join("cache");
    real::copy(&real::cache().join("tools"), &own.join("tools"));
    let sandbox = sandbox.var("CUWRIGHT_CACHE_DIR", own.as_str()).var("UV_HTTP_RETRIES", "0");
    let sandbox = sandbox.var("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple").var("PIP_INDEX_URL", "");
    sandbox.file("setup.py", "");
    let text = refused(&sandbox, &[], 12);
    assert!(text.contains("error[cuwright::provision::unreachable]"), "{text}");
    let text = refused(&sandbox, &["--offline"], 12);
    assert!(text.contains("error[cuwright::provision::offline]"), "{text}");
    assert_eq!(sandbox.run(&["toolchain", "list", "--json"]).assert_code(0).stdout, "[]\n");
}

#[test]
fn a_toolchain_that_lost_a_part_is_made_anew_and_one_in_use_stays() {
    let sandbox = real::sandbox();
    sandbox.run(&["toolchain", "install"]).assert_code(0);
    // Wheels are hard-linked from the shared cache, so another toolchain costs a second and no download.
    let own = sandbox.root().join("cache");
    for folder in ["tools", "resolutions-v1"] {
        real::copy(&real::cache().join(folder), &own.join(folder));
    }
    let wheels = real::cache().join("uv");
    let sandbox = sandbox.var("CUWRIGHT_CACHE_DIR", own.as_str()).var("UV_CACHE_DIR", wheels.as_str());
    sandbox.run(&["toolchain", "install"]).assert_code(0);
    let environment = own.join("toolchains-v1").read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path());
    let environment = environment.into_iter().find(|path| path.is_dir()).unwrap();
    fs_err::remove_file(environment.join("cuda/bin/nvcc")).unwrap();
    sandbox.run(&["toolchain", "install"]).assert_code(0);
    assert!(environment.join("cuda/bin/nvcc").exists());
    let digest = &environment.file_name().unwrap()[..8];
    let lock = fs_err::File::open(format!("{environment}.lock")).unwrap();
    lock.file().lock_shared().unwrap();
    let said = sandbox.run(&["toolchain", "remove", digest]).assert_code(12);
    assert!(said.stderr.contains("error[cuwright::provision::in_use]"), "{}", said.stderr);
    drop(lock);
    sandbox.run(&["toolchain", "remove", digest]).assert_code(0);
    assert!(!environment.exists());
}
