//! CMake, scikit-build-core and Bazel with real parts: real compilers, real build systems, the examples as users find
//! them. Bazel is the distribution's; where it is missing these tests fail, since nobody can provision it.

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::real::{self, Running, Signal, artifact, cache, stamp, wait_for};
use crate::support::{Said, Sandbox, project};

/// A copy of an example in a folder that build systems stumble over, unlike any other.
fn example(sandbox: &Sandbox, name: &str) -> Utf8PathBuf {
    let tree = sandbox.work().join(format!("héllo {name}"));
    real::copy(&project(&format!("examples/{name}")), &tree);
    fs_err::write(tree.join("stamp"), stamp()).unwrap();
    tree
}

/// Names of the entries of a packed tree.
fn entries(archive: &str) -> Vec<String> {
    let file = flate2::read::GzDecoder::new(fs_err::File::open(archive).unwrap());
    let mut archive = tar::Archive::new(file);
    archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn a_project_of_caffes_age_is_built_verified_packed_and_restored() {
    let sandbox = real::sandbox();
    let tree = example(&sandbox, "cmake_caffe");
    let args = ["build", tree.as_str(), "--arch", "8.6;9.0+PTX", "--json"];
    let first = artifact(&sandbox.run(&args).assert_code(0));
    assert_eq!((&first["restored"], &first["kind"]), (&false.into(), &"tree".into()));
    assert_eq!((&first["effective"], &first["files"][0]["found"]), (&"8.6;9.0+PTX".into(), &"8.6;9.0+PTX".into()));
    assert!(first["import-output"].to_string().contains("axpy for CUDA 13"), "{first:#}");
    // The compilers were run by the launcher, which alone knows the sources.
    let sources = serde_json::json!([{ "archs": "8.6;9.0+PTX", "sources": ["src/axpy.cu"] }]);
    assert_eq!(first["effective-sources"], sources);
    let archive = first["wheel"].as_str().unwrap();
    assert_eq!(entries(archive), ["bin/axpy", "include/axpy.h", "lib/libaxpy.so"]);
    // What was made stands on its own.
    let recipe = tree.join("cuwright.toml");
    let judged = ["verify", archive, "--recipe", recipe.as_str(), "--expect", "8.6 9.0+PTX", "--strict"];
    let judged = sandbox.run(&judged).assert_code(0);
    assert!(judged.stdout.contains("lib/libaxpy.so"), "{}", judged.stdout);
    sandbox.run(&["verify", archive, "--expect", "7.5"]).assert_code(14);
    assert!(sandbox.run(&["inspect", archive, "--kernels"]).assert_code(0).stdout.contains("axpy_kernel"));
    let warm = artifact(&sandbox.run(&[&args[..], &["--offline", "--out", "other"]].concat()).assert_code(0));
    assert_eq!((&warm["restored"], &warm["wheel-sha256"]), (&true.into(), &first["wheel-sha256"]));
}

#[test]
fn a_scikit_build_core_extension_becomes_a_wheel_that_imports() {
    let sandbox = real::sandbox();
    let tree = example(&sandbox, "skbuild_ext");
    let said = artifact(&sandbox.run(&["build", tree.as_str(), "--arch", "8.6;9.0+PTX", "--json"]).assert_code(0));
    assert_eq!((&said["effective"], &said["files"][0]["found"]), (&"8.6;9.0+PTX".into(), &"8.6;9.0+PTX".into()));
    assert!(said["import-output"].to_string().contains("skbuild_ext imports"), "{said:#}");
    assert_eq!(said["effective-sources"][0]["sources"], serde_json::json!(["src/scale.cu"]));
    assert_eq!((&said["kind"], &said["version"]), (&"wheel".into(), &"0.1.0".into()));
}

/// A small CMake project with `more` in its lists file and `build` in its recipe.
fn cmake(lists: &str, build: &str) -> Sandbox {
    let sandbox = real::sandbox();
    let kernel = "__global__ void k(float *a) { *a *= 2; }\nextern \"C\" void run(float *a) { k<<<1, 1>>>(a); }\n";
    let recipe = "schema = 1\n[package]\nname = \"small\"\n[source]\npath = \".\"\n[build]\nbackend = \"cmake\"\n";
    sandbox.file("cuwright.toml", &format!("{recipe}{build}")).file("CMakeLists.txt", lists);
    sandbox.file("k.cu", kernel).file("stamp", &stamp());
    sandbox
}

const MODERN: &str = "cmake_minimum_required(VERSION 3.24)\nproject(small LANGUAGES CUDA)\n\
                      add_library(k SHARED k.cu)\ninstall(TARGETS k)\n";

#[test]
fn a_modern_project_needs_no_word_about_its_variables() {
    let sandbox = cmake(MODERN, "cmake.defines = { UNKNOWN_SWITCH = \"ON\" }\n");
    let said = sandbox.run(&["build", "--arch", "9.0;compute_90", "--json"]).assert_code(0);
    assert!(said.stdout.contains("does not read the CMake variables UNKNOWN_SWITCH"), "{}", said.stdout);
    assert_eq!(artifact(&said)["files"][0]["found"], "9.0+PTX");
    // PTX alone has no word in torch's variable, and none is needed here.
    let ptx = artifact(&sandbox.run(&["build", "--arch", "compute_90", "--json"]).assert_code(0));
    assert_eq!((&ptx["effective"], &ptx["files"][0]["found"]), (&"compute_90".into(), &"compute_90".into()));
}

#[test]
fn a_preset_is_respected_but_not_in_its_archs() {
    let sandbox = cmake(
        &format!("{MODERN}if(NOT FROM_PRESET)\n  message(FATAL_ERROR none)\nendif()\n"),
        "cmake.preset = \"gpu\"\n",
    );
    let presets = r#"{"version":3,"configurePresets":[{"name":"gpu","generator":"Ninja","binaryDir":"elsewhere",
        "cacheVariables":{"FROM_PRESET":"ON","CMAKE_CUDA_ARCHITECTURES":"75","CMAKE_BUILD_TYPE":"MinSizeRel"}}]}"#;
    sandbox.file("CMakePresets.json", presets);
    let said = artifact(&sandbox.run(&["build", "--arch", "9.0", "--json"]).assert_code(0));
    assert_eq!(said["files"][0]["found"], "9.0");
    let wrong = cmake(MODERN, "cmake.preset = \"gone\"\n");
    let said = wrong.run(&["build", "--arch", "9.0"]).assert_code(13);
    assert!(said.stderr.contains("CMake's configure failed"), "{}", said.stderr);
}

#[test]
fn a_commit_is_fetched_once_and_built_without_its_repository() {
    let sandbox = cmake(MODERN, "");
    let repository = sandbox.work().join("repository");
    fs_err::create_dir(&repository).unwrap();
    for name in ["CMakeLists.txt", "k.cu", "stamp"] {
        fs_err::rename(sandbox.work().join(name), repository.join(name)).unwrap();
    }
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=n", "-c", "user.email=e"];
        let said =
            std::process::Command::new("git").args(identity).args(args).current_dir(&repository).output().unwrap();
        assert!(said.status.success(), "{args:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "one"]);
    let commit = git(&["rev-parse", "HEAD"]);
    let recipe = fs_err::read_to_string(sandbox.work().join("cuwright.toml")).unwrap();
    let source = format!("git = \"./repository\"\ncommit = \"{commit}\"");
    sandbox.file("cuwright.toml", &recipe.replace("path = \".\"", &source));
    let planned = sandbox.run(&["plan", "--arch", "9.0"]).assert_code(0);
    // On a machine without the toolchain, that is what comes first.
    let known = ["the source is not fetched yet", "the toolchain is not installed yet"];
    assert!(known.iter().any(|text| planned.stdout.contains(text)), "{}", planned.stdout);
    let built = artifact(&sandbox.run(&["build", "--arch", "9.0", "--json"]).assert_code(0));
    assert_eq!(built["files"][0]["found"], "9.0");
    fs_err::remove_dir_all(&repository).unwrap();
    let again = artifact(&sandbox.run(&["build", "--arch", "9.0", "--json", "--offline"]).assert_code(0));
    assert_eq!((&again["restored"], &again["key"]), (&true.into(), &built["key"]));
}

#[test]
fn a_project_that_ignores_our_variables_ends_at_its_configure() {
    let sandbox = cmake(MODERN, "archs-for = [\"caffe\"]\n");
    insta::assert_snapshot!(
        "archs_not_read",
        sandbox.run(&["build", "--arch", "9.0", "-q"]).assert_code(13).shown(&sandbox)
    );
}

#[test]
fn a_project_that_fixes_its_archs_is_caught_by_what_it_built() {
    let sandbox = cmake(&MODERN.replace("add_library", "set(CMAKE_CUDA_ARCHITECTURES 75-real)\nadd_library"), "");
    let said = sandbox.run(&["build", "--arch", "9.0", "-q"]).assert_code(14);
    assert!(said.stderr.contains("lib/libk.so lacks device code for 9.0"), "{}", said.stderr);
}

#[test]
fn a_project_without_install_rules_is_told_what_it_lacks() {
    let sandbox = cmake(&MODERN.replace("install(TARGETS k)\n", ""), "");
    insta::assert_snapshot!(
        "nothing_installed",
        sandbox.run(&["build", "--arch", "9.0", "-q"]).assert_code(13).shown(&sandbox)
    );
}

#[test]
fn every_built_in_recipe_is_planned() {
    let sandbox = real::sandbox();
    let recipes = project("recipes").read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path());
    let names: Vec<String> = recipes
        .filter(|path| path.extension() == Some("toml"))
        .map(|path| path.file_stem().unwrap().to_owned())
        .collect();
    assert!(names.len() >= 19, "{names:?}");
    for name in names {
        let said = sandbox.run(&["plan", &name, "--json"]).assert_code(0);
        let plan = serde_json::from_str::<serde_json::Value>(&said.stdout).unwrap()[0].clone();
        assert!(plan["tried"].as_str().unwrap().contains("torch 2."), "{plan:#}");
        assert!(!plan["archs"].as_str().unwrap().is_empty(), "{plan:#}");
        let missing: Vec<&str> =
            plan["missing"].as_array().unwrap().iter().map(|missing| missing["code"].as_str().unwrap()).collect();
        // Whatever a build would bring by itself, and nothing else.
        let brought = ["cuwright::provision::not_installed", "cuwright::source::not_fetched"];
        assert!(missing.iter().all(|code| brought.contains(code)), "{name}: {missing:?}");
    }
}

#[test]
fn what_cannot_be_planned_is_refused_at_once() {
    let reserved = cmake(MODERN, "cmake.defines = { CMAKE_CUDA_ARCHITECTURES = \"80\" }\n");
    insta::assert_snapshot!(
        "reserved_define",
        reserved.run(&["build", "--arch", "9.0", "-q"]).assert_code(10).shown(&reserved)
    );
    let other = cmake(MODERN, "");
    fs_err::rename(other.work().join("CMakeLists.txt"), other.work().join("setup.py")).unwrap();
    insta::assert_snapshot!(
        "no_build_file",
        other.run(&["build", "--arch", "9.0", "-q"]).assert_code(10).shown(&other)
    );
    let bare = cmake(MODERN, "").var("PATH", "/nonexistent");
    let text = fs_err::read_to_string(bare.work().join("cuwright.toml")).unwrap();
    bare.file("cuwright.toml", &text.replace("\"cmake\"", "\"bazel\"\nbazel.targets = [\"//:k\"]"));
    insta::assert_snapshot!("no_bazel", bare.run(&["build", "--arch", "9.0", "-q"]).assert_code(12).shown(&bare));
}

#[test]
fn a_build_without_ninja_compiles_side_by_side_or_says_what_it_lost() {
    let sandbox = real::sandbox();
    let kernel = |name: &str| format!("__global__ void {name}() {{}}\nvoid run_{name}() {{ {name}<<<1, 1>>>(); }}\n");
    for name in ["one", "two"] {
        sandbox.file(&format!("{name}.cu"), &kernel(name));
    }
    let bind = "#include <Python.h>\nstatic PyModuleDef m = {PyModuleDef_HEAD_INIT, \"_serial\"};\n\
                PyMODINIT_FUNC PyInit__serial() { return PyModule_Create(&m); }\n";
    let setup = "from setuptools import setup\nfrom torch.utils.cpp_extension import BuildExtension, CUDAExtension\n\
                 setup(name='serial', version='1', ext_modules=[CUDAExtension('_serial', ['one.cu', 'two.cu', 'bind.cpp'])],\n\
                 cmdclass={'build_ext': BuildExtension.with_options(use_ninja=False)})\n";
    sandbox.file("bind.cpp", bind).file("setup.py", setup).file("stamp", &stamp());
    let loss = "setup.py does not use ninja: 3 sources compiled one after another in ";
    let said = sandbox.run(&["build", "--arch", "9.0", "-j", "2", "--json", "--timings"]).assert_code(0);
    assert!(said.stdout.contains("they run side by side") && !said.stdout.contains(loss), "{}", said.stdout);
    assert_eq!(artifact(&said)["effective"], "9.0");
    let trace = fs_err::read_to_string(sandbox.work().join("dist/serial-timings.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
    let began = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "compile");
    let first = began.clone().map(|event| event["ts"].as_u64().unwrap() + event["dur"].as_u64().unwrap()).min();
    let at_once = began.filter(|event| event["ts"].as_u64() < first).count();
    assert_eq!(at_once, 2, "as many at once as there are jobs: {trace}");

    let alone = ["build", "--arch", "9.0", "-j", "2", "--json", "--no-cache", "--no-launcher"];
    let said = sandbox.run(&alone).assert_code(0);
    assert!(said.stdout.contains(loss), "{}", said.stdout);

    // A linker that is none of ours cannot wait for what is ahead.
    let around = format!("import os\nos.environ['CXX'] = '/usr/bin/g++'\n{setup}");
    sandbox.file("setup.py", &around);
    let said = sandbox.run(&["build", "--arch", "9.0", "-j", "1"]).assert_code(13);
    assert!(said.stderr.contains("set `compile-ahead = false` in `[build]`"), "{}", said.stderr);
    sandbox.file("setup.py", setup);

    sandbox.file("two.cu", "__global__ void two() { nonsense(); }\n");
    let said = sandbox.run(&["build", "--arch", "9.0", "-j", "2"]).assert_code(13);
    let error = "two.cu(1): error: identifier \"nonsense\" is undefined";
    assert!(said.stderr.contains(error), "{}", said.stderr);
}

/// Bazel servers that work in a folder below the cache.
fn servers() -> Vec<String> {
    let builds = cache().join("build-v1").canonicalize_utf8().unwrap();
    let processes = Utf8Path::new("/proc").read_dir_utf8().unwrap().flatten();
    let line = |process: camino::Utf8DirEntry| {
        let cwd = fs_err::read_link(process.path().join("cwd")).ok()?;
        let line = String::from_utf8_lossy(&fs_err::read(process.path().join("cmdline")).ok()?).into_owned();
        (cwd.starts_with(&builds) && line.starts_with("bazel(")).then_some(line)
    };
    processes.filter_map(line).collect()
}

#[test]
fn a_bazel_workspace_is_built_verified_and_leaves_no_server_however_it_ends() {
    let sandbox = real::sandbox();
    let tree = example(&sandbox, "bazel_tf");
    let args = ["build", tree.as_str(), "--arch", "8.6;9.0+PTX", "--json"];
    let said = sandbox.run(&args).assert_code(0);
    assert!(!said.stdout.contains(r#""reason":"warning""#), "{}", said.stdout);
    let first = artifact(&said);
    assert_eq!((&first["effective"], &first["files"][0]["found"]), (&"8.6;9.0+PTX".into(), &"8.6;9.0+PTX".into()));
    assert_eq!(entries(first["wheel"].as_str().unwrap()), ["kernels/librelu.so"]);
    assert!(servers().is_empty(), "{:?}", servers());
    assert_eq!(artifact(&sandbox.run(&args).assert_code(0))["restored"], true);

    // Actions come from a cache of our setting, although nothing of the first build is left.
    let disk = sandbox.root().join("actions");
    let cached = real::sandbox().var("CUWRIGHT_BAZEL_DISK_CACHE", disk.as_str());
    let again = [&args[..], &["--no-cache"]].concat();
    let log = |said: &Said| {
        let text = said.stdout.split("; log ").nth(1).unwrap().split('"').next().unwrap().to_owned();
        fs_err::read_to_string(text).unwrap()
    };
    // Bazel 4 calls both kinds of cache remote.
    assert!(!log(&cached.run(&again).assert_code(0)).contains(" cache hit"));
    let warm = log(&cached.run(&again).assert_code(0));
    assert!(warm.contains("3 remote cache hit") || warm.contains("3 disk cache hit"), "{warm}");

    // A failure, and a signal in the middle.
    fs_err::write(tree.join("kernels/version.cu"), "int broken = nothing;\n").unwrap();
    let said = sandbox.run(&["build", tree.as_str(), "--arch", "9.0"]).assert_code(13);
    assert!(said.stderr.contains("version.cu(1): error: identifier \"nothing\" is undefined"), "{}", said.stderr);
    assert!(servers().is_empty(), "{:?}", servers());
    let slow = "#include <thrust/sort.h>\n#include <thrust/device_vector.h>\nvoid f(thrust::device_vector<int> &v) { \
                thrust::sort(v.begin(), v.end()); }\n";
    fs_err::write(tree.join("kernels/version.cu"), slow).unwrap();
    let mut running = Running::start(sandbox.command(&args));
    let folder = running.folder();
    wait_for("a Bazel server", || !servers().is_empty());
    running.signal(Signal::INT);
    let said = running.finish().assert_code(130);
    assert!(said.stdout.contains("cuwright::build::interrupted"), "{}", said.stdout);
    assert!(!folder.exists() && servers().is_empty(), "{:?}", servers());
}
