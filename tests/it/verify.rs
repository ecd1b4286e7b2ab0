//! `verify` as a user runs it: expectations, GPUs and drivers, waivers, wheels and folders, reports.

use serde_json::Value;

use crate::support::artifact::{Library, fatbin, wheel};
use crate::support::{Sandbox, project};

/// A sandbox with `name` made of fatbins.
fn library(name: &str, fatbins: &[&[&str]]) -> Sandbox {
    let sandbox = Sandbox::new();
    Library { fatbins, ..Library::default() }.write(&sandbox.work().join(name));
    sandbox
}

fn code(fatbins: &[&[&str]], args: &[&str]) -> i32 {
    let sandbox = library("_C.so", fatbins);
    let args: Vec<&str> = ["verify", "_C.so"].into_iter().chain(args.iter().copied()).collect();
    sandbox.run(&args).code.unwrap()
}

#[test]
fn the_card_decides_whether_a_file_is_right() {
    // A file for 7.5, run on an RTX 3080: the error says what the card needs and what the file holds.
    let sandbox = library("amp_C.so", &[&["sm_75"]]);
    let said = sandbox.run(&["verify", "amp_C.so", "--runs-on", "RTX 3080"]).assert_code(14);
    insta::assert_snapshot!(said.shown(&sandbox));
    assert_eq!(code(&[&["sm_80"]], &["--runs-on", "8.6"]), 0);
    assert_eq!(code(&[&["compute_75"]], &["--runs-on", "8.6"]), 0);
    assert_eq!(code(&[&["sm_89"]], &["--runs-on", "8.6"]), 14);
}

#[test]
fn flags_that_looked_right_do_not_count() {
    let sandbox = library("_C.so", &[&["sm_89"]]);
    let said = sandbox.run(&["verify", "_C.so", "--expect", "7.0;7.5;8.0;8.6;8.9;9.0+PTX"]).assert_code(14);
    insta::assert_snapshot!(said.shown(&sandbox));
}

#[test]
fn a_file_built_without_cuda_fails_although_it_loads() {
    let sandbox = library("mmcv/_ext.so", &[]);
    let said = sandbox.run(&["verify", "mmcv/_ext.so", "--expect", "8.0;8.6"]).assert_code(14);
    assert!(said.stderr.contains("no device code; wanted 8.0;8.6"), "{}", said.stderr);
    let said = sandbox.run(&["verify", "mmcv/_ext.so", "--runs-on", "A100"]).assert_code(14);
    assert!(said.stderr.contains("no device code; wanted some for A100"), "{}", said.stderr);
    // Without a wish there is nothing to fail.
    sandbox.run(&["verify", "mmcv/_ext.so"]).assert_code(0);
}

#[test]
fn a_wheel_without_its_extension_fails_before_anybody_imports_it() {
    let sandbox = Sandbox::new();
    wheel(&sandbox.work().join("mmcv-2.2.0-py3-none-any.whl"), &[("mmcv/__init__.py", b"")]);
    let args = ["verify", "mmcv-2.2.0-py3-none-any.whl", "--recipe", "mmcv"];
    let said = sandbox.run(&args).assert_code(14);
    assert!(said.stderr.contains("no file that was built matches `mmcv/_ext*.so`"), "{}", said.stderr);
}

#[test]
fn jit_is_told_with_its_driver_and_refused_by_an_older_one() {
    let sandbox = library("_C.so", &[&["sm_80", "compute_80"]]);
    let said = sandbox.run(&["verify", "_C.so", "--runs-on", "RTX 3090, H100", "--runs-on", "8.7"]).assert_code(0);
    insta::assert_snapshot!(said.shown(&sandbox));
    let said = sandbox.run(&["verify", "_C.so", "--runs-on", "A100, H100", "--driver", "520"]).assert_code(14);
    insta::assert_snapshot!(said.shown(&sandbox));
}

#[test]
fn a_gpu_that_came_after_the_driver_does_not_start() {
    let sandbox = library("_C.so", &[&["sm_120"]]);
    let said = sandbox.run(&["verify", "_C.so", "--runs-on", "RTX 5090", "--driver", "535"]).assert_code(14);
    assert!(said.stderr.contains("12.0 came with CUDA 12.8"), "{}", said.stderr);
    sandbox.run(&["verify", "_C.so", "--runs-on", "RTX 5090", "--driver", "570"]).assert_code(0);
}

#[test]
fn variants_run_where_the_rules_let_them() {
    for (images, gpu, want) in [
        (&["sm_90a"][..], "9.0", 0),
        (&["sm_100a"], "10.3", 14),
        (&["sm_100f"], "10.3", 0),
        (&["sm_100"], "10.3", 0),
        (&["sm_100"], "12.0", 14),
        (&["compute_90a"], "10.0", 14),
        (&["compute_90"], "12.0", 0),
        (&["sm_86"], "8.7", 14),
        (&["sm_80"], "7.5", 14),
    ] {
        assert_eq!(code(&[images], &["--runs-on", gpu]), want, "{images:?} on {gpu}");
    }
}

#[test]
fn one_files_gap_is_not_hidden_by_another() {
    let sandbox = Sandbox::new();
    let library = |images: &[&str]| {
        let path = sandbox.work().join("made.so");
        fs_err::read(Library { fatbins: &[images], ..Library::default() }.write(&path)).unwrap()
    };
    let (good, short) = (library(&["sm_80", "sm_90"]), library(&["sm_80"]));
    wheel(&sandbox.work().join("p-1-cp311-cp311-linux_x86_64.whl"), &[("p/_a.so", &good), ("p/_b.so", &short)]);
    let args = ["verify", "p-1-cp311-cp311-linux_x86_64.whl", "--runs-on", "H100, A100", "--expect", "8.0;9.0"];
    let said = sandbox.run(&args).assert_code(14);
    insta::assert_snapshot!(said.shown(&sandbox));
    // As a folder of unpacked files, and through a glob, it is the same.
    fs_err::create_dir_all(sandbox.work().join("site/p")).unwrap();
    fs_err::write(sandbox.work().join("site/p/_a.so"), &good).unwrap();
    fs_err::write(sandbox.work().join("site/p/_b.so"), &short).unwrap();
    for named in ["site", "site/p/_b.so", "site/**/*.so", "*.whl"] {
        let said = sandbox.run(&["verify", named, "--expect", "9.0"]).assert_code(14);
        assert!(said.stderr.contains("_b.so lacks device code for 9.0"), "{named}: {}", said.stderr);
    }
    sandbox.run(&["verify", "site/p/_a.so", "--expect", "9.0"]).assert_code(0);
}

#[test]
fn a_part_without_code_is_a_warning_and_fails_when_strict() {
    let sandbox = library("_C.so", &[&["sm_80", "sm_90"], &["sm_90"]]);
    let said = sandbox.run(&["verify", "_C.so", "--runs-on", "A100"]).assert_code(0);
    assert!(said.stderr.contains("1 of 2 fatbins hold nothing for A100"), "{}", said.stderr);
    sandbox.run(&["verify", "_C.so", "--runs-on", "A100", "--strict"]).assert_code(14);
    let said = sandbox.run(&["verify", "_C.so", "--expect", "8.0", "--strict"]).assert_code(14);
    assert!(said.stderr.contains("_C.so also holds 9.0"), "{}", said.stderr);
}

#[test]
fn a_recipe_brings_its_waivers_and_its_targets() {
    let sandbox = library("build/lib/pkg/_a.so", &[&["sm_80", "sm_90"]]);
    Library::default().write(&sandbox.work().join("build/lib/pkg/_version.so"));
    let recipe = "schema = 1\n[package]\nname = \"pkg\"\n[source]\npath = \".\"\n[targets]\narch = [\"8.0\", \"9.0\"]\n\
        [verify]\nextensions = [\"pkg/_*.so\"]\n[[verify.waive]]\nfile = \"pkg/_version.so\"\narch = \"all\"\n\
        reason = \"reports a version\"\n";
    sandbox.file("pkg.toml", recipe);
    let said = sandbox.run(&["verify", "build/lib", "--recipe", "pkg.toml"]).assert_code(0);
    insta::assert_snapshot!(said.shown(&sandbox));
    let said = sandbox.run(&["verify", "build/lib", "--recipe", "pkg.toml", "--runs-on", "T4"]).assert_code(14);
    assert!(said.stdout.contains("waived: reports a version") && said.stderr.contains("does not run on T4"));
    sandbox.run(&["verify", "build/lib", "--recipe", "pkg.toml", "--expect", "8.6"]).assert_code(14);
}

#[test]
fn json_and_junit_say_the_same_as_the_text() {
    let sandbox = library("_C.so", &[&["sm_80"]]);
    fs_err::write(sandbox.work().join("k.fatbin"), fatbin(&["sm_90", "compute_90"])).unwrap();
    fs_err::create_dir(sandbox.work().join("out")).unwrap();
    let args = ["verify", "_C.so", "k.fatbin", "none.so", "--runs-on", "9.0", "--json", "--junit", "out/r.xml"];
    let said = sandbox.run(&args).assert_code(14);
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&document["schema"], &document["ok"]), (&1.into(), &false.into()));
    assert_eq!(document["inputs"][0]["files"][0]["gpus"][0]["runs"], "no");
    assert_eq!(document["inputs"][1]["files"][0]["gpus"][0]["by"][0], "sm_90");
    assert_eq!(document["inputs"][2]["findings"][0]["code"], "cuwright::verify::no_file");
    let messages = serde_json::Deserializer::from_str(&said.stderr).into_iter::<Value>();
    let codes: Vec<Value> = messages.map(|message| message.unwrap()["code"].clone()).collect();
    assert_eq!(codes, ["cuwright::verify::does_not_run", "cuwright::verify::no_file"]);
    insta::assert_snapshot!(fs_err::read_to_string(sandbox.work().join("out/r.xml")).unwrap());
}

#[test]
fn questions_that_make_no_sense_are_usage_errors() {
    let sandbox = library("_C.so", &[&["sm_80"]]);
    for args in [
        &["--runs-on", "RTX 4000"][..],
        &["--runs-on", "8"],
        &["--runs-on", "A100", "--driver", "13"],
        &["--driver", "535"],
        &["--expect", "8.60"],
    ] {
        let args: Vec<&str> = ["verify", "_C.so"].into_iter().chain(args.iter().copied()).collect();
        let said = sandbox.run(&args).assert_code(2);
        assert_eq!(said.stdout, "", "{args:?}");
    }
    sandbox.run(&["verify", "_C.so", "--recipe", "mmvc"]).assert_code(10);
    sandbox.run(&["verify"]).assert_code(2);
}

#[test]
fn every_vector_can_be_judged() {
    let folder = project("fatbin/tests/vectors");
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["verify", folder.as_str(), "--runs-on", "H100", "--json"]);
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    let files = document["inputs"][0]["files"].as_array().unwrap();
    assert_eq!(files.len(), 23);
    let of = |name: &str| files.iter().find(|file| file["file"].as_str().unwrap().ends_with(name)).unwrap();
    assert_eq!(of("v03_sm90_90a_ptx90a.o")["gpus"][0]["runs"], "natively");
    assert_eq!(of("v02_sm75_86_ptx86.o")["gpus"][0]["runs"], "by-jit");
    assert_eq!(of("v01_sm80.o")["gpus"][0]["runs"], "no");
    assert_eq!(of("v18_sm90a.cubin")["gpus"][0]["by"][0], "sm_90a");
}

#[test]
fn modules_are_imported_by_the_python_that_is_named() {
    let sandbox = Sandbox::new();
    let source = "void *PyModule_Create2(void *, int); void *PyInit__C(void) { return (void *)0; }";
    let path = sandbox.work().join("lib/pkg/_C.so");
    Library { source, fatbins: &[&["sm_80"]], ..Library::default() }.write(&path);
    sandbox.file("lib/pkg/__init__.py", "");
    let said = sandbox.run(&["verify", "lib/pkg/_C.so", "--python", "python3", "--expect", "8.0"]).assert_code(14);
    assert!(
        said.stderr.contains("error[cuwright::verify::import_failed]: `pkg._C` does not import"),
        "{}",
        said.stderr
    );
    sandbox.file("ok/pkg/__init__.py", "print('hello from pkg')");
    sandbox.file(
        "pkg.toml",
        "schema = 1\n[package]\nname = \"pkg\"\n[source]\npath = \".\"\n[verify]\nimport = [\"pkg\"]\ncheck = \"print(6 * 7)\"\n",
    );
    fs_err::copy(&path, sandbox.work().join("ok/pkg/_C.so")).unwrap();
    let said = sandbox.run(&["verify", "ok", "--python", "python3", "--recipe", "pkg.toml"]).assert_code(0);
    assert!(said.stdout.contains("ok: imports\n") && said.stdout.contains("  42"), "{}", said.stdout);
}

#[test]
fn a_check_for_a_gpu_is_told_apart_from_the_import() {
    // No GPU for this, wherever the test runs.
    let sandbox = Sandbox::new().var("CUDA_VISIBLE_DEVICES", "");
    let source = "void *PyModule_Create2(void *, int);";
    Library { source, fatbins: &[&["sm_80"]], ..Library::default() }.write(&sandbox.work().join("ok/pkg/_C.so"));
    sandbox.file("ok/pkg/__init__.py", "");
    let recipe = "schema = 1\n[package]\nname = \"pkg\"\n[source]\npath = \".\"\n[targets]\narch = [\"8.0\"]\n\
                  [targets.profiles.prod]\narch = [\"9.0\"]\n[verify]\nimport = [\"pkg\"]\ngpu-check = \"1/0\"\n";
    sandbox.file("pkg.toml", recipe);
    let with = ["verify", "ok", "--python", "python3", "--recipe", "pkg.toml"];
    let said = sandbox.run(&with).assert_code(0);
    assert!(
        said.stdout.contains("ok: imports\n") && said.stdout.contains("ok: GPU check not run: "),
        "{}",
        said.stdout
    );
    let said = sandbox.run(&[&with[..], &["--json", "--junit", "report.xml"]].concat()).assert_code(0);
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    let input = &document["inputs"][0];
    assert_eq!((&input["import"]["ok"], &input["gpu-check"]["status"]), (&Value::Bool(true), &"not-run".into()));
    let why = input["gpu-check"]["why"].as_str().unwrap();
    let report = fs_err::read_to_string(sandbox.work().join("report.xml")).unwrap();
    assert!(report.contains("skipped=\"1\"") && report.contains("<skipped message=\""), "{report}");
    assert!(why.contains("GPU"), "{why}");
    // What a profile expects is judged in the place of the recipe's own targets.
    let said = sandbox.run(&[&with[..], &["--profile", "prod"]].concat()).assert_code(14);
    assert!(said.stderr.contains("missing_arch") && said.stderr.contains("9.0"), "{}", said.stderr);
    let said = sandbox.run(&[&with[..], &["--profile", "prd"]].concat()).assert_code(2);
    assert!(said.stderr.contains("did you mean `prod`?"), "{}", said.stderr);
}

#[test]
fn an_empty_file_beside_a_full_one_fails_when_strict() {
    let sandbox = Sandbox::new();
    let library = |images: &[&[&str]]| {
        let path = sandbox.work().join("made.so");
        fs_err::read(Library { fatbins: images, ..Library::default() }.write(&path)).unwrap()
    };
    let (full, empty) = (library(&[&["sm_90"]]), library(&[]));
    wheel(&sandbox.work().join("p-1-cp311-cp311-linux_x86_64.whl"), &[("p/_a.so", &full), ("p/_b.so", &empty)]);
    for wanted in [["--expect", "9.0"], ["--runs-on", "H100"]] {
        let args = [&["verify", "p-1-cp311-cp311-linux_x86_64.whl"][..], &wanted].concat();
        let said = sandbox.run(&args).assert_code(0);
        assert!(said.stderr.contains("_b.so holds no device code"), "{}", said.stderr);
        let said = sandbox.run(&[&args[..], &["--strict"]].concat()).assert_code(14);
        assert!(said.stderr.contains("error[cuwright::verify::no_device_code]"), "{}", said.stderr);
    }
}

#[test]
fn a_file_that_is_cut_short_is_not_judged_by_what_is_left_of_it() {
    let sandbox = library("_C.so", &[&["sm_80"]]);
    let whole = fs_err::read(sandbox.work().join("_C.so")).unwrap();
    for part in [whole.len() * 2 / 3, whole.len() * 95 / 100] {
        fs_err::write(sandbox.work().join("cut.so"), &whole[..part]).unwrap();
        for more in [&["--expect", "8.0"][..], &["--runs-on", "A100"], &[]] {
            let said = sandbox.run(&[&["verify", "cut.so"], more].concat()).assert_code(14);
            assert!(said.stderr.contains("error[cuwright::verify::damaged_file]"), "{}", said.stderr);
            assert!(!said.stderr.contains("built without CUDA"), "{}", said.stderr);
        }
    }
    // An empty variable of a CI job must not turn the question off.
    let said = sandbox.run(&["verify", "_C.so", "--runs-on", ""]).assert_code(2);
    assert!(said.stderr.contains("`--runs-on` names no GPU"), "{}", said.stderr);
}
