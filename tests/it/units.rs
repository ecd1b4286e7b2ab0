//! Several units at once: side by side, failing apart, stopped, spanned by a matrix.
//!
//! What compiles here is the example with the real toolchain; where only what is around the compilers matters,
//! `real::quick` puts its wheel in place again.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::support::artifact::rename;
use crate::support::real::{self, Running, Signal, artifact, copy, quick, stamp, wait_for};
use crate::support::{Said, Sandbox, project};

/// A copy of the example under another name, unlike any other.
fn named(sandbox: &Sandbox, name: &str) -> Utf8PathBuf {
    let tree = sandbox.work().join(name);
    copy(&project("examples/hello_ext"), &tree);
    for file in ["cuwright.toml", "setup.py"] {
        let text = fs_err::read_to_string(tree.join(file)).unwrap();
        fs_err::write(tree.join(file), text.replace("hello-ext", name)).unwrap();
    }
    fs_err::write(tree.join("stamp"), stamp()).unwrap();
    tree
}

/// A tree that puts the example's wheel in place, under another name and with these lines at the top of setup.py.
fn quick_named(sandbox: &Sandbox, quick: &Utf8Path, name: &str, setup: &str) -> Utf8PathBuf {
    let tree = sandbox.work().join(name);
    copy(quick, &tree);
    let recipe = fs_err::read_to_string(tree.join("cuwright.toml")).unwrap();
    fs_err::write(tree.join("cuwright.toml"), recipe.replace("hello-ext", name)).unwrap();
    let text = fs_err::read_to_string(tree.join("setup.py")).unwrap();
    fs_err::write(tree.join("setup.py"), format!("{setup}\n{text}# {}\n", stamp())).unwrap();
    // Wheels of different units must not have one name.
    for wheel in tree.read_dir_utf8().unwrap().flatten().filter(|entry| entry.path().extension() == Some("whl")) {
        rename(wheel.path(), &name.replace('-', "_"));
    }
    tree
}

fn messages(said: &Said) -> Vec<Value> {
    said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// How each unit ended, by the last messages.
fn statuses(said: &Said) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found: Vec<_> = messages(said)
        .iter()
        .filter(|message| message["reason"] == "unit")
        .map(|message| (text(&message["unit"]), text(&message["status"])))
        .collect();
    found.sort();
    found
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = expected.iter().map(|(unit, status)| ((*unit).to_owned(), (*status).to_owned())).collect();
    pairs.sort();
    pairs
}

#[test]
fn two_units_compile_side_by_side_within_one_limit() {
    let sandbox = real::sandbox();
    let trees = [named(&sandbox, "one"), named(&sandbox, "two")];
    let args = ["build", trees[0].as_str(), trees[1].as_str(), trees[0].as_str(), "--arch", "9.0", "--json", "-j", "2"];
    let said = sandbox.run(&args).assert_code(0);
    let messages = messages(&said);
    let at = |reason: &str, stage: &str, unit: &str| {
        let found = |m: &Value| m["reason"] == reason && (stage.is_empty() || m["stage"] == stage) && m["unit"] == unit;
        messages.iter().position(found).unwrap_or_else(|| panic!("no {reason} {stage} of {unit}: {}", said.stdout))
    };
    // Both compile before either is ready.
    let building = at("stage", "build", "one").max(at("stage", "build", "two"));
    assert!(building < at("artifact", "", "one").min(at("artifact", "", "two")));
    for unit in ["one", "two"] {
        let text = messages[at("stage", "build", unit)]["text"].as_str().unwrap();
        assert!(text.starts_with("compilers on 2 cores as asked"), "one coordinator holds the limit of both: {text}");
        assert!(
            sandbox.work().join(format!("dist/{unit}-0.1.0-cp311-cp311-linux_x86_64.whl")).exists()
                || cfg!(not(target_arch = "x86_64"))
        );
        assert!(messages[at("progress", "", unit)]["memory"].is_u64());
    }
    assert!(said.stdout.contains("one is named twice and built once"), "{}", said.stdout);
    assert_eq!(messages.iter().filter(|m| m["reason"] == "artifact").count(), 2);
    assert_eq!(statuses(&said), pairs(&[("one", "built"), ("two", "built")]));
    // Every message but the first and the last says whose it is, or is about all of them.
    for message in &messages {
        let of_all = ["start", "units", "finish", "warning"].iter().any(|reason| message["reason"] == *reason);
        assert!(of_all || message["unit"].is_string(), "{message}");
    }
}

#[test]
fn a_failing_unit_among_three_stops_the_ones_that_have_not_begun() {
    let sandbox = real::sandbox();
    let quick = quick(&sandbox);
    let good = quick_named(&sandbox, &quick, "good", "");
    let bad = quick_named(&sandbox, &quick, "bad", "raise SystemExit('error: no licence')");
    let last = quick_named(&sandbox, &quick, "last", "");
    let args = ["build", good.as_str(), bad.as_str(), last.as_str(), "--arch", "9.0", "-j", "1"];
    let json = [&args[..], &["--json"]].concat();
    let said = sandbox.run(&json).assert_code(13);
    assert_eq!(statuses(&said), pairs(&[("bad", "failed"), ("good", "built"), ("last", "not-started")]));
    let error = messages(&said).into_iter().find(|message| message["reason"] == "error").unwrap();
    assert_eq!((&error["unit"], &error["exit"]), (&"bad".into(), &13.into()));
    let said = sandbox.run(&[&json[..], &["--keep-going"]].concat()).assert_code(13);
    assert_eq!(statuses(&said), pairs(&[("bad", "failed"), ("good", "restored"), ("last", "built")]));
    // As a person sees it, with the wheels on standard output in the order of the command line.
    let said = sandbox.run(&[&args[..], &["--keep-going"]].concat()).assert_code(13);
    let wheels: Vec<&str> = said.stdout.lines().filter_map(|line| Utf8Path::new(line).file_name()).collect();
    assert!(wheels[0].starts_with("good-") && wheels[1].starts_with("last-") && wheels.len() == 2, "{wheels:?}");
    let table = said.stderr.split("UNIT").nth(1).unwrap();
    assert!(table.contains("bad   failed") && table.contains("hit"), "{table}");
    assert!(said.stderr.contains("> 2 | error: no licence"), "{}", said.stderr);
}

#[test]
fn one_unit_that_runs_goes_on_when_another_fails() {
    let sandbox = real::sandbox();
    let quick = quick(&sandbox);
    let slow = quick_named(&sandbox, &quick, "slow", "import time; time.sleep(3)");
    let bad = quick_named(&sandbox, &quick, "bad", "raise SystemExit('no')");
    let said = sandbox.run(&["build", slow.as_str(), bad.as_str(), "--arch", "9.0", "--json", "-j", "2"]);
    assert_eq!(statuses(&said.assert_code(13)), pairs(&[("bad", "failed"), ("slow", "built")]));
}

/// Processes whose command line holds `word`.
fn running(word: &str) -> Vec<String> {
    let processes = Utf8Path::new("/proc").read_dir_utf8().unwrap().flatten();
    let lines = processes.filter_map(|process| fs_err::read(process.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(word)).collect()
}

#[test]
fn a_first_signal_stops_politely_and_keeps_what_is_finished() {
    let sandbox = real::sandbox();
    let quick = quick(&sandbox);
    let done = quick_named(&sandbox, &quick, "done", "");
    let mark = format!("87{}", std::process::id());
    let works = format!("import subprocess; subprocess.run(['sleep', '{mark}'])");
    let works = quick_named(&sandbox, &quick, "works", &works);
    let waits = quick_named(&sandbox, &quick, "waits", "");
    let args = ["build", done.as_str(), works.as_str(), waits.as_str(), "--arch", "9.0", "--json", "-j", "1"];
    let mut build = Running::start(sandbox.command(&args));
    build.until(|message| message["reason"] == "stage" && message["stage"] == "build" && message["unit"] == "works");
    wait_for("the child", || !running(&mark).is_empty());
    build.signal(Signal::INT);
    let said = build.finish().assert_code(130);
    assert_eq!(statuses(&said), pairs(&[("done", "built"), ("waits", "not-started"), ("works", "interrupted")]));
    assert!(said.stdout.contains("finished before: 1 of 3 units, which stay"), "{}", said.stdout);
    assert_eq!(running(&mark), Vec::<String>::new());
    let wheel = artifact(&said);
    assert!(Utf8Path::new(wheel["wheel"].as_str().unwrap()).is_file());
    let again = sandbox.run(&["build", done.as_str(), "--arch", "9.0", "--json"]).assert_code(0);
    assert_eq!(artifact(&again)["restored"], true);
}

#[test]
fn a_second_signal_kills_at_once() {
    let sandbox = real::sandbox();
    let quick = quick(&sandbox);
    let mark = format!("88{}", std::process::id());
    // It takes no hint, and neither does its child, which inherits that.
    let deaf = format!(
        "import signal, subprocess\nfor s in (signal.SIGTERM, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\n\
         subprocess.run(['sleep', '{mark}'])"
    );
    let trees = ["deaf-a", "deaf-b"].map(|name| quick_named(&sandbox, &quick, name, &deaf));
    let args = ["build", trees[0].as_str(), trees[1].as_str(), "--arch", "9.0", "--json", "-j", "2", "--no-cache"];
    let build = Running::start(sandbox.command(&args));
    wait_for("both children", || running(&mark).len() == 2);
    build.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(running(&mark).len(), 2, "they were killed before they had time to stop");
    let start = Instant::now();
    build.signal(Signal::INT);
    build.finish().assert_code(130);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(running(&mark), Vec::<String>::new());
}

#[test]
fn a_signal_stops_an_installation() {
    // A stand-in for uv, which would need a slow network to be caught at work.
    let mark = format!("89{}", std::process::id());
    let sandbox = Sandbox::new();
    let script = format!(
        "#!/bin/sh\ncase \"$1 $2\" in\n--version*) echo 'uv 99.0.0' ;;\n\
         'pip compile') echo 'torch==2.11.0 --hash=sha256:0' ;;\n*) sleep {mark} & wait ;;\nesac\n"
    );
    sandbox.file("bin/uv", &script).file("setup.py", "").file("other/setup.py", "");
    let uv = sandbox.work().join("bin/uv");
    let mut mode = fs_err::metadata(&uv).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    fs_err::set_permissions(&uv, mode).unwrap();
    let path = format!("{}:{}", sandbox.work().join("bin"), std::env::var("PATH").unwrap());
    let sandbox = sandbox.var("PATH", &path);
    let build = Running::start(sandbox.command(&["build", ".", "other", "--arch", "9.0", "--json", "-j", "2"]));
    wait_for("uv", || !running(&mark).is_empty());
    build.signal(Signal::INT);
    let start = Instant::now();
    let said = build.finish().assert_code(130);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(said.stdout.contains("waiting for another unit"), "{}", said.stdout);
    assert_eq!(said.stdout.matches("\"text\":\"resolving").count(), 1, "{}", said.stdout);
    assert_eq!(running(&mark), Vec::<String>::new());
}

#[test]
fn a_matrix_of_two_arch_sets_gives_two_wheels() {
    let sandbox = real::sandbox();
    let tree = named(&sandbox, "cells");
    let recipe = tree.join("cuwright.toml");
    let text = fs_err::read_to_string(&recipe).unwrap();
    let matrix = "\n[matrix]\narch = [\"8.6\", \"9.0+PTX\", \"7.0\"]\ncuda = [\"13.0\"]\n";
    fs_err::write(&recipe, format!("{text}{matrix}")).unwrap();
    let said = sandbox.run(&["build", tree.as_str(), "--matrix", "--json"]).assert_code(0);
    let (a, b, c) = ("cells/arch8.6-cuda13.0", "cells/arch9.0+PTX-cuda13.0", "cells/arch7.0-cuda13.0");
    assert_eq!(statuses(&said), pairs(&[(a, "built"), (c, "pruned"), (b, "built")]));
    let artifacts: Vec<Value> = messages(&said).into_iter().filter(|message| message["reason"] == "artifact").collect();
    for (unit, found) in [(a, "8.6"), (b, "9.0+PTX")] {
        let one = artifacts.iter().find(|artifact| artifact["unit"] == unit).unwrap();
        assert_eq!((&one["package"], &one["files"][0]["found"]), (&"cells".into(), &found.into()));
        let folder = sandbox.work().join("dist").join(unit.split_once('/').unwrap().1);
        assert!(one["wheel"].as_str().unwrap().starts_with(folder.as_str()) && folder.is_dir(), "{one}");
    }
    assert_ne!(artifacts[0]["key"], artifacts[1]["key"]);
    // A cell is the same artifact as the same build without a matrix.
    let plain = sandbox.run(&["build", tree.as_str(), "--arch", "8.6", "--json"]).assert_code(0);
    assert_eq!(artifact(&plain)["restored"], true);
}

const RECIPE: &str = "schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n[toolchain]\ntorch = \">=2.6\"\n";

/// A recipe with this matrix, on a machine without a toolchain.
fn matrix(matrix: &str) -> Sandbox {
    let sandbox = Sandbox::new().var("PATH", &std::env::var("PATH").unwrap());
    sandbox.file("setup.py", "").file("cuwright.toml", &format!("{RECIPE}{matrix}"));
    sandbox
}

#[test]
fn a_plan_lists_cells_and_what_removed_the_others() {
    let sandbox = matrix(
        "[matrix]\narch = [\"9.0\", \"7.0\", \"11.0\"]\ntorch = [\"2.11.0\", \"2.8.0\"]\ncuda = [\"13.0\", \"12.8\"]\n\
         zip = [\"torch\", \"cuda\"]\nexclude = [{ arch = \"12.0\" }]\n\
         include = [{ arch = \"9.0\", python = \"3.9\", torch = \"2.11.0\" }, { torch = \"2.5.1\" }]\n",
    );
    // torch 2.8 goes with CUDA 12.8, and no wheels bring that here: refused, and the others are still shown.
    let said = sandbox.run(&["plan", "--matrix"]).assert_code(12);
    insta::with_settings!({ filters => vec![(r"Python 3\.\d+\.\d+", "Python [PYTHON]")] }, {
        insta::assert_snapshot!("plan_matrix", said.shown(&sandbox));
    });
    let json = sandbox.run(&["plan", "--matrix", "--json"]).assert_code(12).stdout;
    let cells: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(cells.len(), 8);
    let pruned = cells.iter().filter(|cell| cell["pruned"].is_string()).count();
    let refused = cells.iter().filter(|cell| cell["refused"][0]["code"].is_string()).count();
    assert_eq!(refused, 2);
    assert_eq!((pruned, &cells[0]["cell"]["torch"], &cells[0]["package"]), (4, &"2.11.0".into(), &"x".into()));
    // The command line takes the place of an axis, and needs no recipe for it.
    let args =
        ["plan", "--matrix", "--json", "--torch", "2.11.0", "--torch", "2.12.1", "--arch", "9.0", "--cuda", "13.0"];
    let zipped = sandbox.run(&args).assert_code(2);
    assert!(zipped.stderr.contains("cuwright::matrix::uneven_zip"), "{}", zipped.stderr);
    let json = matrix("").run(&args).assert_code(0).stdout;
    let cells: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(cells.len(), 2);
}

#[test]
fn a_matrix_that_makes_no_sense_is_refused() {
    let wrong = "[matrix]\narch = [\"8.6\", \"9.x\"]\ntorch = [\"2.11.0\"]\ncuda = [\"13.0\", \"13.2\"]\n\
                 zip = [\"torch\", \"cuda\", \"troch\"]\ninclude = [{}]\n";
    let sandbox = matrix(wrong);
    insta::assert_snapshot!("matrix_mistakes", sandbox.run(&["plan", "--matrix"]).assert_code(10).shown(&sandbox));
    let none = matrix("");
    insta::assert_snapshot!("matrix_none", none.run(&["build", "--matrix"]).assert_code(2).shown(&none));
    let empty = matrix(
        "[matrix]\narch = [\"7.0\", \"11.0\"]\ncuda = [\"12.9\", \"13.0\"]\nexclude = [{ arch = \"7.0\", cuda = \"12.9\" }, { arch = \"11.0\", cuda = \"13.0\" }]\n",
    );
    insta::assert_snapshot!("matrix_nothing_left", empty.run(&["build", "--matrix"]).assert_code(12).shown(&empty));
    let uneven = matrix(
        "[matrix]\ntorch = [\"2.11.0\", \"2.12.1\"]\ncuda = [\"13.0\", \"13.0.1\"]\nzip = [\"torch\", \"cuda\"]\n",
    );
    let said = uneven.run(&["plan", "--matrix", "--torch", "2.11.0"]).assert_code(2);
    insta::assert_snapshot!("matrix_uneven_zip", said.shown(&uneven));
    let many: Vec<String> = (0..1001).map(|number| format!("\"2.{number}.0\"")).collect();
    let many = matrix(&format!("[matrix]\ntorch = [{}]\n", many.join(", ")));
    insta::assert_snapshot!("matrix_too_many", many.run(&["plan", "--matrix"]).assert_code(2).shown(&many));
    let twice = none.run(&["build", "--torch", "2.11.0", "--torch", "2.12.1"]).assert_code(2);
    insta::assert_snapshot!("several_values", twice.shown(&none));
}

#[test]
fn json_and_ci_services_say_which_unit_it_is() {
    let sandbox = real::sandbox();
    let quick = quick(&sandbox);
    let trees = [("json-a", ""), ("json-b", "raise SystemExit('error: no')")]
        .map(|(name, setup)| quick_named(&sandbox, &quick, name, setup));
    let args = ["build", trees[0].as_str(), trees[1].as_str(), "--arch", "9.0", "-j", "1"];
    let said = sandbox.run(&[&args[..], &["--json"]].concat()).assert_code(13);
    let word = |message: &Value, key: &str| message[key].as_str().unwrap_or("-").to_owned();
    // Notes, progress and what is passing depend on the machine and its speed.
    let kept = |message: &Value| {
        let reason = message["reason"].as_str().unwrap();
        !matches!(reason, "note" | "progress") && message["passing"] != true
    };
    let shown: Vec<String> = messages(&said)
        .iter()
        .filter(|message| kept(message))
        .map(|message| ["reason", "unit", "stage", "status", "code"].map(|key| word(message, key)).join(" "))
        .collect();
    insta::assert_snapshot!("json_of_two", shown.join("\n"));
    for (variable, begin, end) in [
        ("GITLAB_CI", "\u{1b}[0Ksection_start:", "\u{1b}[0Ksection_end:"),
        ("GITHUB_ACTIONS", "::group::json-a\n", "::endgroup::\n"),
    ] {
        let mut command = sandbox.command(&args);
        command.env(variable, "true");
        let said = Said::of(command).assert_code(13);
        assert_eq!(
            (said.stderr.matches(begin).count() > 0, said.stderr.matches(end).count()),
            (true, 2),
            "{}",
            said.stderr
        );
        let annotated = said.stderr.contains("\n::error title=cuwright%3A%3Abuild%3A%3Afailed::setup.py failed");
        assert_eq!(annotated, variable == "GITHUB_ACTIONS", "{}", said.stderr);
    }
    let verbose = sandbox.run(&[&args[..], &["-v"]].concat()).assert_code(13);
    assert!(verbose.stderr.contains("\njson-b | error: no\n"), "{}", verbose.stderr);
}

#[test]
fn wheels_of_one_file_name_are_all_kept() {
    let sandbox = real::sandbox();
    let quick = quick(&sandbox);
    let mark = "import atexit, glob, sys, zipfile\ndef mark():\n    for wheel in glob.glob(sys.argv[-1] + '/*.whl'):\n        \
                with zipfile.ZipFile(wheel, 'a') as zip: zip.comment = b'another'\natexit.register(mark)";
    let trees = [("twin-a", ""), ("twin-b", mark)].map(|(name, setup)| {
        let tree = quick_named(&sandbox, &quick, name, setup);
        let real =
            tree.read_dir_utf8().unwrap().flatten().find(|entry| entry.path().extension() == Some("whl")).unwrap();
        rename(real.path(), "twin_a");
        tree
    });
    let args = ["build", trees[0].as_str(), trees[1].as_str(), "--arch", "9.0", "-j", "1"];
    let said = sandbox.run(&args).assert_code(0);
    let wheels: Vec<&str> = said.stdout.lines().collect();
    let (one, two) = (Utf8Path::new(wheels[0]), Utf8Path::new(wheels[1]));
    assert_eq!(one.file_name(), two.file_name());
    assert_eq!(
        (one.parent(), two.parent()),
        (Some(&*sandbox.work().join("dist")), Some(&*sandbox.work().join("dist/twin-b")))
    );
    assert_ne!(fs_err::read(one).unwrap(), fs_err::read(two).unwrap());
    assert!(said.stderr.contains("twin-a made a file of the same name"), "{}", said.stderr);
    // A run that restores both leaves each where it is.
    let again = sandbox.run(&args).assert_code(0);
    assert_eq!(again.stdout, said.stdout);
    assert!(!again.stderr.contains("replaced"), "{}", again.stderr);
}

#[test]
fn a_matrix_whose_cells_are_all_taken_out_builds_nothing() {
    let sandbox = Sandbox::new();
    let recipe = "schema = 1\npackage.name = \"x\"\nsource.path = \".\"\ntargets.arch = [\"8.6\"]\n\
                  [matrix]\narch = [\"9.0\", \"8.0\"]\nexclude = [{ arch = \"9.0\" }, { arch = \"8.0\" }]\n";
    sandbox.file("cuwright.toml", recipe).file("setup.py", "");
    let said = sandbox.run(&["plan", "--matrix"]).assert_code(12);
    assert!(said.stderr.contains("error[cuwright::matrix::nothing_left]"), "{}", said.stderr);
    assert!(said.stderr.contains("`matrix.exclude` takes out every cell"), "{}", said.stderr);
}
