//! `doctor` on machines with something wrong, and on one where nothing can be built.
//!
//! nvcc, ptxas and torch of releases that wheels do not bring are stand-ins, as `support/kits.rs` says.

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::kits::{environment, machine, place, program, toolkit};

fn json(sandbox: &Sandbox, more: &[&str], code: i32) -> Value {
    let said = sandbox.run(&[&["doctor", "--json"], more].concat()).assert_code(code);
    serde_json::from_str(&said.stdout).unwrap()
}

fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().filter_map(|one| one[field].as_str()).collect()
}

#[test]
fn broken_parts_are_reported_and_stop_nothing() {
    let sandbox = machine();
    toolkit(&place(&sandbox, "usr/local/cuda-12.8"), "12.8");
    program(&place(&sandbox, "usr/local/cuda-12.9/bin/nvcc"), "exit 1");
    fs_err::create_dir_all(place(&sandbox, "opt/cuda/lib64")).unwrap();
    fs_err::write(place(&sandbox, "opt/cuda/lib64/libcudart.so.12"), "").unwrap();
    let site = environment(&sandbox.root().join("env"), "2.8.0+cu128", &["9.0", "12.0"]);
    let bin = sandbox.root().join("bin");
    program(&bin.join("python3.12"), "echo Fatal Python error >&2; exit 1");
    program(&bin.join("sccache"), "echo sccache 0.16.0");
    program(&bin.join("cmake"), "exit 3");
    for (folder, name, release) in
        [("triton/backends/nvidia/bin", "ptxas", "12.8"), ("nvidia/cuda_nvcc/bin", "ptxas", "12.9")]
    {
        let said = format!("echo 'Cuda compilation tools, release {release}, V{release}.93'");
        program(&site.join(folder).join(name), &said);
    }
    let extensions = sandbox.root().join("extensions");
    for name in ["held", "left"] {
        fs_err::create_dir_all(extensions.join(name)).unwrap();
        fs_err::write(extensions.join(name).join("lock"), "").unwrap();
    }
    let held = fs_err::File::open(extensions.join("held/lock")).unwrap();
    let (env, path) = (sandbox.root().join("env"), format!("{bin}:/usr/local/bin:/usr/bin:/bin"));
    let sandbox = sandbox.var("VIRTUAL_ENV", env.as_str()).var("PATH", &path);
    let sandbox =
        sandbox.var("TORCH_EXTENSIONS_DIR", extensions.as_str()).var("CUDA_HOME", "/usr/local/cuda:/opt/cuda");
    let report = json(&sandbox, &[".", "--arch", "12.1"], 12);
    assert_eq!(report["can-build"], false);
    let whys = texts(&report["toolkits"], "why");
    for why in [
        "is a list of folders; it must name one",
        "holds the CUDA 12 runtime but no nvcc",
        "goes with torch 2.8.0+cu128",
    ] {
        assert!(whys.iter().any(|known| known.contains(why)), "{why} is not in {whys:#?}");
    }
    assert!(whys.iter().any(|why| why.starts_with("holds nvcc but no cuda_runtime.h")), "{whys:#?}");
    assert!(texts(&report["pythons"], "problem").contains(&"Fatal Python error"), "{:#}", report["pythons"]);
    assert_eq!(report["pythons"][0]["torch"]["cuda"], "12.8");
    let locks = report["torch-locks"].as_array().unwrap();
    assert_eq!(locks.iter().map(|lock| lock["holder"].is_null()).collect::<Vec<_>>(), [false, true]);
    drop(held);
    let findings: Vec<&str> = report["findings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let left = extensions.join("left/lock");
    let triton = site.join("triton/backends/nvidia/bin/ptxas");
    for finding in [
        format!("nobody holds {left}: torch waits for it without end; remove it"),
        format!("{triton} is of CUDA 12.8.93 and does not know 12.1, which needs CUDA 12.9; TRITON_PTXAS_PATH="),
        "sccache was not tried with CUDA 12.8".to_owned(),
        "cmake does not work: ".to_owned(),
    ] {
        assert!(findings.iter().any(|known| known.starts_with(&finding)), "{finding} is not in {findings:#?}");
    }
}

#[test]
fn each_recipe_tells_what_would_be_chosen_and_what_is_in_the_way() {
    let sandbox = machine();
    sandbox.file("good/setup.py", "");
    let recipe = "schema = 1\n[package]\nname = \"old\"\n[source]\npath = \".\"\n[toolchain]\ncuda = \"<12\"\n";
    sandbox.file("old/setup.py", "").file("old/cuwright.toml", recipe);
    let report = json(&sandbox, &["./good", "./old", "nonsense", "--arch", "9.0"], 12);
    let recipes = report["recipes"].as_array().unwrap();
    assert_eq!(recipes.iter().map(|one| &one["can-build"]).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(recipes[0]["missing"][0]["code"], "cuwright::provision::not_installed");
    assert_eq!(recipes[1]["problems"][0]["code"], "cuwright::provision::no_nvcc_in_wheels");
    assert_eq!(recipes[2]["problems"][0]["code"], "cuwright::recipe::not_found");
    let page = sandbox.run(&["doctor", "./good", "--arch", "9.0"]).assert_code(0).stdout;
    for topic in ["driver ", "toolkit ", "compiler ", "python ", "machine ", "limits ", "disk ", "recipe "] {
        assert!(page.lines().any(|line| line.starts_with(topic)), "{topic} is not in\n{page}");
    }
    assert!(page.contains("./good can be built for 9.0, once this is brought"), "{page}");
    // Nothing can build where there is no compiler, and the page is there all the same.
    let bin = sandbox.root().join("none");
    program(&bin.join("python3"), "exec /usr/bin/python3 \"$@\"");
    let said = sandbox.var("PATH", bin.as_str()).run(&["doctor"]).assert_code(12);
    assert!(said.stdout.contains("no C++ compiler was found"), "{}", said.stdout);
}

#[test]
fn commands_that_ask_no_table_work_beside_a_broken_one() {
    let sandbox = machine();
    sandbox.file("broken.toml", "[[gpu]\n");
    let file = sandbox.work().join("broken.toml").into_string();
    let sandbox = sandbox.var("CUWRIGHT_TABLES", &file);
    for (command, code) in [
        (&["toolchain", "list"][..], 0),
        (&["cache", "list"], 0),
        (&["completions", "bash"], 0),
        // The page is there all the same, and says that nothing can be built so.
        (&["doctor"], 2),
    ] {
        let said = sandbox.run(command).assert_code(code);
        assert!(said.stderr.contains("warning") && said.stderr.contains("left out"), "{command:?}: {}", said.stderr);
    }
    let page = sandbox.run(&["doctor"]).stdout;
    assert!(page.contains("problem     error[cuwright::usage::tables]") && page.contains("machine "), "{page}");
    let report = json(&sandbox, &[], 2);
    assert_eq!((&report["can-build"], &report["problems"][0]["exit"]), (&false.into(), &2.into()));
    sandbox.run(&["arch", "8.6"]).assert_code(2);
    // A GPU that nobody knows is a mistake although `--arch` wins.
    let said = machine().run(&["plan", "--arch", "9.0", "--gpu", "RTX 99999"]).assert_code(2);
    assert!(said.stderr.contains("unknown_gpu"), "{}", said.stderr);
}

/// Folders as `toolchain install` leaves them, as far as looking at them goes.
fn provisioned(sandbox: &Sandbox, count: usize) {
    for number in 0..count {
        let digest = format!("{number:032x}");
        let folder = sandbox.root().join("cache/toolchains-v1").join(&digest);
        toolkit(&folder.join("cuda"), "13.0");
        let manifest = serde_json::json!({
            "digest": digest, "python": "3.11.7", "torch": "2.11.0", "cuda": "13.0.99", "bytes": 1, "created": 1,
            "packages": [], "root": folder, "base": "/usr/bin/python3", "site": folder.join("site"),
        });
        fs_err::write(folder.join("cuwright-environment.json"), manifest.to_string()).unwrap();
    }
}

#[test]
fn of_many_toolchains_of_our_own_the_first_are_told_and_none_is_without_torch() {
    let sandbox = machine();
    provisioned(&sandbox, 16);
    let toolkits = |said: &str| said.matches("came with torch 2.11.0").count();
    let page = sandbox.run(&["doctor"]).stdout;
    assert_eq!(toolkits(&page), 2, "{page}");
    assert!(page.contains("and 14 more in ") && page.contains("toolchains-v1; `-v` lists them"), "{page}");
    assert!(!page.contains("holds a torch for CUDA 13.x"), "{page}");
    let all = sandbox.run(&["doctor", "-v"]).stdout;
    assert_eq!(toolkits(&all), 16, "{all}");
    assert_eq!(json(&sandbox, &[], 0)["toolkits"].as_array().unwrap().len(), 16);
    let refusal = sandbox.run(&["plan", "--arch", "9.0", "--cuda", "12.1"]).assert_code(12).stderr;
    assert!(refusal.contains("and 14 more in ") && refusal.lines().count() < 14, "{refusal}");
    // A torch that none of them goes with.
    environment(&sandbox.root().join("env"), "2.4.0+cu124", &["9.0"]);
    let env = sandbox.root().join("env");
    let plan = sandbox.var("VIRTUAL_ENV", env.as_str()).run(&["plan", "--arch", "9.0"]).assert_code(0).stdout;
    assert_eq!(plan.matches("does not go with").count(), 2, "{plan}");
    assert!(plan.contains("and 14 more in ") && plan.lines().count() < 40, "{plan}");
}
