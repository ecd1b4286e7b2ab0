//! `build` with the real toolchain, around the compilers: what setup.py may do, what users and machines do meanwhile.
//!
//! Nothing is compiled here but the example, once: `real::quick` puts its wheel in place again. `real` compiles.

use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::real::{self, Running, Signal, artifact, cache, quick, stamp};
use crate::support::{Said, Sandbox};

const HEAD: &str = "schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n";

/// A tree with this setup.py and these lines in its recipe, unlike any other.
fn tree(setup: &str, more: &str) -> Sandbox {
    let sandbox = real::sandbox();
    sandbox.file("cuwright.toml", &format!("{HEAD}{more}")).file("setup.py", setup).file("stamp", &stamp());
    sandbox
}

/// A quiet build of the working folder that must fail, with its build folder gone.
fn refused(sandbox: &Sandbox, code: i32) -> Said {
    let said = sandbox.run(&["build", "--arch", "9.0", "-q"]).assert_code(code);
    assert!(!sandbox.work().join("dist").exists());
    said
}

fn build_folder(key: &str) -> Utf8PathBuf {
    cache().join("build-v1").join(key)
}

#[test]
fn whatever_setup_py_does_wrong_is_told_and_cleared_away() {
    let put = "import sys\nput = lambda name: open(f'{sys.argv[-1]}/{name}', 'w').write('x')\n";
    for (name, setup, code) in [
        ("syntax_error", "def (:\n".to_owned(), 13),
        ("exception", "import no_such_module_anywhere\n".to_owned(), 13),
        ("own_words", "raise SystemExit('this needs a licence')\n".to_owned(), 13),
        ("silence", "raise SystemExit(1)\n".to_owned(), 13),
        ("death", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n".to_owned(), 13),
        ("no_wheel", "\n".to_owned(), 13),
        ("two_wheels", format!("{put}put('a-1-py3-none-any.whl')\nput('b-1-py3-none-any.whl')\n"), 13),
        ("no_zip", format!("{put}put('a-1-py3-none-any.whl')\n"), 14),
    ] {
        let sandbox = tree(&setup, "");
        let key = sandbox.run(&["plan", "--arch", "9.0", "--json"]).assert_code(0).stdout;
        let key =
            serde_json::from_str::<serde_json::Value>(&key).unwrap()[0]["ready"]["key"].as_str().unwrap().to_owned();
        insta::assert_snapshot!(format!("setup_py_{name}"), refused(&sandbox, code).shown(&sandbox));
        // A rejected wheel is kept for a look, and its place is said.
        assert_eq!(build_folder(&key).exists(), code == 14, "{name}");
        let _ = fs_err::remove_dir_all(build_folder(&key));
    }
}

#[test]
fn nobody_is_asked_anything() {
    let said = refused(&tree("input('licence? ')\n", ""), 13);
    assert!(said.stderr.contains("EOFError"), "{}", said.stderr);
}

#[test]
fn what_a_build_prints_cannot_move_the_cursor_or_fill_the_memory() {
    let sandbox = tree("import sys\nsys.stdout.write('\\x1b[2J\\x07' + 'x' * 50_000_000)\nsys.exit(1)\n", "");
    let said = refused(&sandbox, 13);
    assert!(said.stderr.contains("␇xxx") && !said.stderr.contains('\u{1b}'), "{}", said.stderr);
    assert!(said.stderr.len() < 10_000);
}

#[test]
fn a_patch_changes_the_copy_only_and_a_stale_one_is_told() {
    let sandbox = tree("print('plain')\n", "patches = [\"x.patch\"]\n");
    let patch = "--- a/setup.py\n+++ b/setup.py\n@@ -1 +1 @@\n-print('plain')\n+raise SystemExit('patched')\n";
    sandbox.file("x.patch", patch);
    let said = refused(&sandbox, 13);
    assert!(said.stderr.contains("why:  patched"), "{}", said.stderr);
    assert_eq!(fs_err::read_to_string(sandbox.work().join("setup.py")).unwrap(), "print('plain')\n");
    sandbox.file("x.patch", &patch.replace("'plain'", "'other'"));
    insta::assert_snapshot!(refused(&sandbox, 10).shown(&sandbox));
    // GNU patch refuses to leave the tree.
    sandbox.file("x.patch", "--- a/../../../evil\n+++ b/../../../evil\n@@ -0,0 +1 @@\n+x\n");
    refused(&sandbox, 10);
    assert!(!cache().join("evil").exists() && !cache().join("build-v1/evil").exists());
}

#[test]
fn variables_reach_setup_py_as_the_recipe_says() {
    let setup =
        "import os\nraise SystemExit(repr([os.environ.get(name) for name in ('OWN', 'TAKEN', 'OTHER', 'CFLAGS')]))\n";
    let more = "[build]\nenv = { OWN = \"a\\nb $HOME \\\" é\" }\npass-env = [\"TAKEN\"]\nclear-env = [\"CFLAGS\"]\n";
    let sandbox = tree(setup, more).var("TAKEN", "t").var("OTHER", "o").var("CFLAGS", "-O0");
    let said = refused(&sandbox, 13);
    assert!(said.stderr.contains(r#"['a\nb $HOME " é', 't', None, None]"#), "{}", said.stderr);
    insta::assert_snapshot!("env_of_ours", refused(&tree("", "[build]\nenv = { PATH = \"/x\" }\n"), 10).stderr);
    insta::assert_snapshot!("pass_env_of_ours", refused(&tree("", "[build]\npass-env = [\"MAX_JOBS\"]\n"), 10).stderr);
}

#[test]
fn an_output_folder_that_cannot_be_used_is_known_before_anything_runs() {
    let sandbox = tree("raise SystemExit('it ran')\n", "");
    sandbox.file("file", "");
    for out in ["file", "file/x", "/proc/x"] {
        let said = sandbox.run(&["build", "--arch", "9.0", "--out", out]).assert_code(13);
        assert!(said.stderr.contains("error[cuwright::build::not_written]"), "{}", said.stderr);
        assert!(!said.stderr.contains("it ran") && !said.stderr.contains("       Build "), "{}", said.stderr);
    }
}

#[test]
fn keep_going_builds_the_rest_and_remembers_the_failure() {
    let sandbox = real::sandbox();
    let good = quick(&sandbox);
    sandbox.file("bad/setup.py", "raise SystemExit('no')\n").file("bad/stamp", &stamp());
    let args = ["build", "nowhere", "bad", good.as_str(), "--arch", "9.0", "--json"];
    let stopped = sandbox.run(&args).assert_code(10);
    assert!(!stopped.stdout.contains(r#""reason":"artifact""#));
    let said = sandbox.run(&[&args[..], &["--keep-going"]].concat()).assert_code(13);
    assert_eq!(artifact(&said)["restored"], false);
    assert_eq!(said.stdout.matches(r#""reason":"error""#).count(), 2);
}

#[test]
fn a_signal_stops_whatever_runs_and_leaves_nothing() {
    let sandbox = real::sandbox();
    let tree = quick(&sandbox);
    let args = ["build", tree.as_str(), "--arch", "9.0", "--json", "--no-cache"];
    for (stage, signal) in
        [("build", Signal::INT), ("build", Signal::HUP), ("verify", Signal::INT), ("verify", Signal::TERM)]
    {
        let mut command = sandbox.command(&args);
        command.env("WAIT", if stage == "build" { "60" } else { "0" });
        let mut running = Running::start(command);
        let folder = running.folder();
        running.until_stage(stage);
        running.signal(signal);
        let said = running.finish().assert_code(130);
        assert!(said.stdout.contains("cuwright::build::interrupted"), "{}", said.stdout);
        assert!(!folder.exists() && !sandbox.work().join("dist").exists(), "{stage} {signal:?}");
    }
    // Whoever starts it under `nohup` wants it to outlive the terminal.
    let mut command = std::process::Command::new("/bin/sh");
    let plain = sandbox.command(&args);
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(plain.get_program()).args(plain.get_args());
    command.env_clear().current_dir(sandbox.work());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("WAIT", "1");
    let mut running = Running::start(command);
    running.until_stage("build");
    running.signal(Signal::HUP);
    running.finish().assert_code(0);
}

#[test]
fn a_kill_at_any_moment_is_mended_by_the_next_run() {
    let sandbox = real::sandbox();
    let tree = quick(&sandbox);
    let args = ["build", tree.as_str(), "--arch", "9.0", "--json"];
    for stage in ["recipe", "toolchain", "cache", "build", "verify"] {
        let mut running = Running::start(sandbox.command(&args));
        running.until_stage(stage);
        running.signal(Signal::KILL);
        running.finish();
    }
    let said = artifact(&sandbox.run(&args).assert_code(0));
    assert_eq!((&said["restored"], &said["files"][0]["found"]), (&false.into(), &"9.0".into()));
    assert_eq!(artifact(&sandbox.run(&args).assert_code(0))["restored"], true);
}

#[test]
fn builds_and_removals_at_once_do_not_hurt_each_other() {
    // Tests beside this one compile in the same cache, which a removal has to wait for.
    let sandbox = real::sandbox().var("CUWRIGHT_LOCK_TIMEOUT", "1800");
    let tree = quick(&sandbox);
    let args = ["build", tree.as_str(), "--arch", "9.0", "--json"];
    for _ in 0..3 {
        let running = [(); 3].map(|()| Running::start(sandbox.command(&args)));
        let said = running.map(|running| artifact(&running.finish().assert_code(0)));
        let key = said[0]["key"].as_str().unwrap();
        assert!(said.iter().all(|said| said["key"] == key));
        let removing = Running::start(sandbox.command(&["cache", "remove", key]));
        artifact(&sandbox.run(&args).assert_code(0));
        removing.finish().assert_code(0);
        let _ = sandbox.run(&["cache", "remove", key]);
    }
}

#[test]
fn old_leftovers_go_with_the_next_build_and_young_ones_stay() {
    let sandbox = tree("raise SystemExit('no')\n", "");
    let (old, young) = (build_folder(&"0".repeat(64)), build_folder(&"1".repeat(64)));
    for folder in [&old, &young] {
        fs_err::create_dir_all(folder).unwrap();
    }
    let status = std::process::Command::new("touch").args(["-d", "2 days ago"]).arg(&old).status().unwrap();
    assert!(status.success());
    refused(&sandbox, 13);
    assert!(!old.exists() && young.exists());
    fs_err::remove_dir_all(young).unwrap();
}

#[test]
fn a_full_disk_behind_the_output_names_the_wheel_that_was_made() {
    let sandbox = real::sandbox();
    let tree = quick(&sandbox);
    // A stand-in for a disk that fills up after the first look: the folder's mode changes while setup.py works.
    let out = sandbox.work().join("out");
    fs_err::create_dir(&out).unwrap();
    let mut command = sandbox.command(&["build", tree.as_str(), "--arch", "9.0", "--json", "--out", "out"]);
    command.env("WAIT", "1");
    let mut running = Running::start(command);
    running.until_stage("build");
    fs_err::remove_dir(&out).unwrap();
    fs_err::write(&out, "").unwrap();
    let said = running.finish().assert_code(13);
    assert!(said.stdout.contains("the verified artifact is "), "{}", said.stdout);
    let wheel = said.stdout.split("the verified artifact is ").nth(1).unwrap().split('"').next().unwrap();
    assert!(Utf8Path::new(wheel).is_file());
    fs_err::remove_file(&out).unwrap();
    let mut again = sandbox.command(&["build", tree.as_str(), "--arch", "9.0", "--json", "--out", "out"]);
    again.env("WAIT", "1");
    assert_eq!(artifact(&Said::of(again).assert_code(0))["restored"], true);
}

#[test]
fn a_read_only_tree_with_odd_names_is_built_from_a_copy() {
    let sandbox = real::sandbox();
    let tree = quick(&sandbox);
    let odd = sandbox.work().join("it's \"a\"\nnew $HOME é");
    fs_err::rename(&tree, &odd).unwrap();
    for name in ["new\nline", "sp ace"] {
        fs_err::write(odd.join(name), "").unwrap();
    }
    fs_err::set_permissions(&odd, std::fs::Permissions::from_mode(0o555)).unwrap();
    let said = sandbox.run(&["build", odd.as_str(), "--arch", "9.0", "--json", "--out", "o'ut\n$x"]).assert_code(0);
    assert!(Utf8Path::new(artifact(&said)["wheel"].as_str().unwrap()).is_file());
    fs_err::set_permissions(&odd, std::fs::Permissions::from_mode(0o755)).unwrap();
}
