//! The commands of each build system, word by word where a word decides.

use super::*;
use crate::domain::toolchain;
use crate::plan::environment;
use crate::recipe::{self, Recipe};

fn recipe(lines: &str) -> Recipe {
    let text = format!("schema = 1\n[package]\nname = \"x\"\n[source]\npath = \".\"\n[build]\n{lines}");
    let document = recipe::parse::Document { origin: "r.toml", text: &text };
    recipe::resolve::resolve(document, recipe::parse::parse(document).unwrap(), |_| Err(String::new())).unwrap()
}

fn planned(lines: &str, env: &Env) -> Commands {
    let (recipe, toolchain) = (recipe(lines), toolchain::sample());
    let environment = environment(&recipe, &toolchain, &"8.6;9.0+PTX".parse().unwrap(), 4, env, false).unwrap();
    let path = Utf8Path::new;
    let places = Places {
        source: path("/b/src"),
        work: path("/b/work"),
        stage: path("/b/stage"),
        dist: path("/b/dist"),
        home: path("/b/home"),
    };
    commands(&recipe, &toolchain, &environment, 4, places, env)
}

fn nowhere() -> Env {
    Env::of("/w", [])
}

#[test]
fn cmake_is_told_archs_and_toolchain_as_one() {
    let planned = planned("backend = \"cmake\"\ncmake.defines = { BUILD_TESTING = \"OFF\" }\n", &nowhere());
    let names: Vec<&str> = planned.steps.iter().map(|step| step.name).collect();
    assert_eq!(names, ["CMake's configure", "CMake's build", "CMake's install"]);
    let configure = &planned.steps[0].command;
    for word in [
        "-DCMAKE_CUDA_ARCHITECTURES=86-real;90-real;90-virtual",
        "-DCMAKE_CUDA_COMPILER=/c/toolchain/cuda/bin/nvcc",
        "-DCMAKE_CUDA_HOST_COMPILER=/usr/bin/g++",
        "-DCUDAToolkit_ROOT=/c/toolchain/cuda",
        "-DBUILD_TESTING=OFF",
    ] {
        assert!(configure.args.iter().any(|arg| arg == word), "{word}: {:?}", configure.args);
    }
    for (name, value) in [
        ("CUDAARCHS", "86-real;90-real;90-virtual"),
        ("CUDACXX", "/c/toolchain/cuda/bin/nvcc"),
        ("CUDAHOSTCXX", "/usr/bin/g++"),
        ("CMAKE_GENERATOR", "Ninja"),
    ] {
        assert_eq!(configure.env.get(name).map(String::as_str), Some(value));
    }
    assert!(!configure.env.contains_key("TORCH_CUDA_ARCH_LIST"));
}

#[test]
fn a_preset_keeps_its_build_type_and_generator() {
    let planned = planned("backend = \"cmake\"\ncmake.preset = \"gpu\"\ncmake.targets = [\"a\", \"b\"]\n", &nowhere());
    let configure = planned.steps[0].command.command_line();
    assert!(configure.contains("--preset=gpu") && !configure.contains("BUILD_TYPE") && !configure.contains(" -G"));
    assert!(planned.steps[1].command.command_line().ends_with("--verbose --target a b"));
}

#[test]
fn python_builds_hand_definitions_on() {
    let lines = "backend = \"pyproject\"\nenv = { CMAKE_ARGS = \"-DX=1\" }\nfolder = \"python\"\n";
    let command = planned(lines, &nowhere()).steps.remove(0).command;
    assert_eq!(command.env["CMAKE_ARGS"], "-DX=1 '-DCMAKE_CUDA_ARCHITECTURES=86-real;90-real;90-virtual'");
    assert_eq!(command.cwd, "/b/src/python");
    assert_eq!(command.args[..4], ["-m", "build", "--wheel", "--no-isolation"]);
}

#[test]
fn bazel_is_told_archs_jobs_memory_and_caches_and_is_shut_down() {
    let lines =
        "backend = \"bazel\"\nmemory-per-job = \"3 GiB\"\nbazel.targets = [\"//k:x\"]\nbazel.disk-cache = \"/own\"\n";
    let env = Env::of("/w", [("CUWRIGHT_BAZEL_REMOTE_CACHE", "grpc://cache:9092")]);
    let planned = planned(lines, &env);
    let build = &planned.steps[0].command;
    for word in [
        "--repo_env=TF_CUDA_COMPUTE_CAPABILITIES=sm_86,compute_90",
        "--repo_env=CUDA_TOOLKIT_PATH=/c/toolchain/cuda",
        "--jobs=4",
        "--local_ram_resources=12288",
        "--disk_cache=/own",
        "--remote_cache=grpc://cache:9092",
        "//k:x",
    ] {
        assert!(build.args.iter().any(|arg| arg == word), "{word}: {:?}", build.args);
    }
    let shutdown = planned.last.unwrap().command;
    assert_eq!(shutdown.args.last().map(String::as_str), Some("shutdown"));
    assert_eq!(shutdown.args[0], build.args[0]);
}

#[test]
fn every_built_in_recipe_has_a_plan_for_its_own_archs() {
    let mut toolchain = toolchain::sample();
    let numbers = ["75", "80", "86", "87", "89", "90", "100", "103", "110", "120", "121"];
    toolchain.toolkit.gpu_codes = numbers.map(|number| format!("sm_{number}")).to_vec();
    toolchain.torch.supported_archs = ["7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"].map(str::to_owned).to_vec();
    for builtin in recipe::builtin::ALL {
        let document = recipe::parse::Document { origin: builtin.name, text: builtin.text };
        let recipe =
            recipe::resolve::resolve(document, recipe::parse::parse(document).unwrap(), |_| Err(String::new()))
                .unwrap();
        let set = recipe.targets.arch.join(";").parse().unwrap();
        let report = crate::preflight::check(&recipe, &toolchain, &set, &crate::preflight::Site::default());
        assert!(report.problems.is_empty(), "{}: {:#?}", recipe.name, report.problems);
        let environment = environment(&recipe, &toolchain, &set, 4, &nowhere(), false)
            .unwrap_or_else(|why| panic!("{}: {why:#?}", recipe.name));
        let root = Utf8Path::new("/b");
        let places = Places { source: root, work: root, stage: root, dist: root, home: root };
        let planned = commands(&recipe, &toolchain, &environment, 4, places, &nowhere());
        // Somebody must be told the archs, unless the project fixes them itself.
        let told = !environment.archs.env.is_empty() || !environment.archs.define.is_empty();
        let fixed = ["causal-conv1d", "mamba-ssm"].contains(&builtin.name);
        assert!(told != fixed && !planned.steps.is_empty(), "{}", recipe.name);
    }
}
