//! The main job with real parts: nvcc and torch from wheels, a real setup.py, a real import. No stand-ins.
//!
//! One cache folder serves all of these tests, so the toolchain is provisioned once. The first run needs a network.

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::Sandbox;
use crate::support::real::{Running, Signal, artifact, cache, example, sandbox, stamp, wait_for};

/// Makes this test's source differ from every other run's, so that nothing is in the cache.
fn make_unique(tree: &Utf8Path) {
    let text = fs_err::read_to_string(tree.join("csrc/bind.cpp")).unwrap();
    fs_err::write(tree.join("csrc/bind.cpp"), format!("{text}// {}\n", stamp())).unwrap();
}

#[test]
fn a_wheel_is_built_verified_restored_and_kept_apart_by_arch_set() {
    let sandbox = sandbox();
    let tree = example(&sandbox);
    make_unique(&tree);
    let before = listing(&tree);
    set_read_only(&tree, true);
    let first = sandbox.run(&["build", tree.as_str(), "--arch", "9.0", "--json", "--out", "öut put"]).assert_code(0);
    let first = artifact(&first);
    assert_eq!(first["restored"], false);
    assert_eq!(first["effective"], "9.0");
    assert_eq!(first["files"][0]["found"], "9.0");
    assert!(Utf8Path::new(first["wheel"].as_str().unwrap()).starts_with(sandbox.work().join("öut put")));
    set_read_only(&tree, false);
    assert_eq!(listing(&tree), before, "the source tree was touched");

    // Every spelling is the same artifact, and restoring it starts no compiler and needs no network.
    let log = sandbox.root().join("started");
    let watched = watched_path(&sandbox, &log);
    // These compilers are others than those of the first build, so it builds with them once; after that it knows them.
    let mut warm = sandbox.command(&["build", tree.as_str(), "--arch", "9.0", "--json"]);
    warm.env("PATH", &watched);
    let warm = artifact(&crate::support::Said::of(warm).assert_code(0));
    let _ = fs_err::remove_file(&log);
    for spelling in ["9.0", "sm_90", "90-real", "9.0 9.0, sm_90"] {
        let mut again = sandbox.command(&["build", tree.as_str(), "--arch", spelling, "--json", "--offline"]);
        let output = again.env("PATH", &watched).env("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(r#""restored":true"#), "{spelling}: {text}");
        assert!(text.contains(warm["key"].as_str().unwrap()), "{spelling}");
    }
    assert!(!log.exists(), "{}", fs_err::read_to_string(&log).unwrap_or_default());

    // Another set is another key; two at once compile once; the first is not lost.
    let other = ["build", tree.as_str(), "--arch", "8.6;9.0+PTX", "--json"];
    let both = [Running::start(sandbox.command(&other)), Running::start(sandbox.command(&other))];
    let said = both.map(|running| artifact(&running.finish().assert_code(0)));
    assert_eq!(said.iter().filter(|said| said["restored"] == true).count(), 1, "{said:#?}");
    assert_eq!(said[0]["key"], said[1]["key"]);
    assert_ne!(said[0]["key"], first["key"]);
    assert_eq!(said[0]["files"][0]["found"], "8.6;9.0+PTX");
    let list = sandbox.run(&["cache", "list", "--json"]).assert_code(0).stdout;
    for key in [&first["key"], &said[0]["key"]] {
        assert!(list.contains(key.as_str().unwrap()));
    }

    // The wheel stands on its own: judged by the commands that need no toolkit.
    let wheel = said[0]["wheel"].as_str().unwrap();
    assert!(
        sandbox.run(&["verify", wheel, "--expect", "9.0+PTX 8.6", "--strict"]).assert_code(0).stdout.contains("found")
    );
    sandbox.run(&["verify", wheel, "--expect", "7.5"]).assert_code(14);
    let inspected = sandbox.run(&["inspect", wheel, "--kernels"]).assert_code(0).stdout;
    assert!(inspected.contains("square_kernel") && inspected.contains("sm_86"), "{inspected}");

    // A damaged artifact is never handed out.
    let key = first["key"].as_str().unwrap();
    damage(&cache(), key);
    let said = sandbox.run(&["build", tree.as_str(), "--arch", "9.0", "--json"]).assert_code(0);
    assert!(said.stdout.contains("was damaged and is rebuilt"), "{}", said.stdout);
    assert_eq!(artifact(&said)["restored"], false);
}

#[test]
fn a_silent_cpu_only_build_fails_verification() {
    let sandbox = sandbox();
    let tree = example(&sandbox);
    make_unique(&tree);
    let recipe = fs_err::read_to_string(tree.join("cuwright.toml")).unwrap();
    fs_err::write(tree.join("cuwright.toml"), recipe.replace("env = { FORCE_CUDA = \"1\" }\n", "")).unwrap();
    let said = sandbox.run(&["build", tree.as_str(), "--arch", "9.0"]).assert_code(14);
    assert!(
        said.stderr.contains("error[cuwright::verify::no_device_code]: no device code; wanted 9.0"),
        "{}",
        said.stderr
    );
    assert!(!sandbox.work().join("dist").exists());
}

#[test]
fn a_killed_build_leaves_nothing_that_the_next_one_could_take() {
    let sandbox = sandbox();
    let tree = example(&sandbox);
    make_unique(&tree);
    let args = ["build", tree.as_str(), "--arch", "9.0", "--json"];
    let running = compiling(&sandbox, &args).0;
    running.signal(Signal::KILL);
    running.finish();
    let said = artifact(&sandbox.run(&args).assert_code(0));
    assert_eq!((&said["restored"], &said["files"][0]["found"]), (&false.into(), &"9.0".into()));
}

#[test]
fn an_interrupted_build_stops_its_compilers_and_says_so() {
    let sandbox = sandbox();
    let tree = example(&sandbox);
    make_unique(&tree);
    let (running, folder) = compiling(&sandbox, &["build", tree.as_str(), "--arch", "9.0", "--json"]);
    running.signal(Signal::INT);
    let said = running.finish().assert_code(130);
    assert!(said.stdout.contains("cuwright::build::interrupted"), "{}", said.stdout);
    assert!(!folder.exists() && working_in(&folder).is_empty());
}

#[test]
fn a_source_error_is_shown_instead_of_the_traceback_behind_it() {
    let sandbox = sandbox();
    let tree = example(&sandbox);
    fs_err::write(tree.join("csrc/square.cu"), "int broken = nothing;\n").unwrap();
    fs_err::write(tree.join("csrc/bind.cpp"), "").unwrap();
    let said = sandbox.run(&["build", tree.as_str(), "--arch", "9.0"]).assert_code(13);
    assert!(said.stderr.contains("square.cu(1): error: identifier \"nothing\" is undefined"), "{}", said.stderr);
    assert!(said.stderr.contains("the whole log is") && !said.stderr.contains("Traceback"), "{}", said.stderr);
}

/// A build whose compilers work, and its folder.
fn compiling(sandbox: &Sandbox, args: &[&str]) -> (Running, Utf8PathBuf) {
    let mut running = Running::start(sandbox.command(args));
    let folder = running.folder();
    wait_for("a compiler", || working_in(&folder).iter().any(|line| line.contains(".cu")));
    (running, folder)
}

/// Command lines of the processes that work in a folder.
fn working_in(folder: &Utf8Path) -> Vec<String> {
    let processes = Utf8Path::new("/proc").read_dir_utf8().unwrap().flatten();
    let inside = |process: &camino::Utf8DirEntry| {
        fs_err::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder.as_std_path()))
    };
    let line = |process: camino::Utf8DirEntry| fs_err::read(process.path().join("cmdline")).ok();
    processes.filter(inside).filter_map(line).map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
}

/// A PATH whose compilers and Python leave a line in `log` when started.
fn watched_path(sandbox: &Sandbox, log: &Utf8Path) -> String {
    let folder = sandbox.root().join("watched");
    fs_err::create_dir_all(&folder).unwrap();
    for name in ["gcc", "g++", "cc", "c++", "nvcc", "ninja"] {
        let real = std::process::Command::new("which").arg(name).output().unwrap();
        let real = String::from_utf8(real.stdout).unwrap().trim().to_owned();
        if !real.is_empty() {
            let path = folder.join(name);
            fs_err::write(&path, format!("#!/bin/sh\necho {name} >> '{log}'\nexec '{real}' \"$@\"\n")).unwrap();
            let mut mode = fs_err::metadata(&path).unwrap().permissions();
            std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
            fs_err::set_permissions(&path, mode).unwrap();
        }
    }
    format!("{folder}:{}", std::env::var("PATH").unwrap())
}

fn listing(tree: &Utf8Path) -> Vec<String> {
    let mut names: Vec<String> =
        walkdir::WalkDir::new(tree).into_iter().map(|entry| entry.unwrap().path().display().to_string()).collect();
    names.sort();
    names
}

fn set_read_only(tree: &Utf8Path, on: bool) {
    for entry in walkdir::WalkDir::new(tree) {
        let entry = entry.unwrap();
        let mut mode = entry.metadata().unwrap().permissions();
        let bits = std::os::unix::fs::PermissionsExt::mode(&mode);
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, if on { bits & !0o222 } else { bits | 0o200 });
        fs_err::set_permissions(entry.path(), mode).unwrap();
    }
}

/// Flips a byte in the wheel of an entry.
fn damage(cache: &Utf8Path, key: &str) {
    let folder = cache.join("artifacts-v1").join(&key[..2]).join(key).join("files");
    let wheel = folder.read_dir_utf8().unwrap().next().unwrap().unwrap().into_path();
    let mut bytes = fs_err::read(&wheel).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::write(&wheel, bytes).unwrap();
}
