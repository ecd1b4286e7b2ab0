//! What compilers were really asked for, by real builds whose setup.py has a will of its own.

use camino::Utf8PathBuf;
use serde_json::Value;

use crate::support::Sandbox;
use crate::support::real::{artifact, sandbox, stamp};

/// An extension without torch headers, so that it builds in seconds. `how` goes into its setup.py.
fn tree(sandbox: &Sandbox, how: &str) -> Utf8PathBuf {
    let setup = format!(
        "from setuptools import setup\nfrom torch.utils.cpp_extension import BuildExtension, CUDAExtension\n\
         sources = ['bind.cpp', 'a.cu', 'b.cu']\n{how}\nsetup(name='own-list', version='1.0', packages=['own_list'],\n      \
         cmdclass={{'build_ext': build}}, ext_modules=[CUDAExtension('own_list._C', sources, \
         extra_compile_args={{'cxx': [], 'nvcc': flags}})])\n"
    );
    let bind = "#include <Python.h>\nstatic PyModuleDef module = {PyModuleDef_HEAD_INIT, \"_C\", nullptr, -1, nullptr, \
                nullptr, nullptr, nullptr, nullptr};\nPyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }\n";
    sandbox.file("own/setup.py", &setup).file("own/own_list/__init__.py", "");
    sandbox.file("own/bind.cpp", &format!("{bind}// {}\n", stamp()));
    for name in ["a", "b"] {
        sandbox
            .file(&format!("own/{name}.cu"), &format!("__global__ void {name}(float* x) {{ x[threadIdx.x] += 1; }}\n"));
    }
    sandbox.work().join("own")
}

fn warnings(text: &str) -> Vec<String> {
    let messages = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages
        .filter(|message| message["reason"] == "warning")
        .filter_map(|message| message["text"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn a_project_with_an_arch_list_of_its_own_is_named_with_the_line_of_its_log() {
    let sandbox = sandbox();
    // Without ninja torch takes CUDA_HOME/bin/nvcc, whatever variables say.
    let how = "build = BuildExtension.with_options(use_ninja=False)\nflags = ['-gencode=arch=compute_80,code=sm_80']";
    let tree = tree(&sandbox, how);
    let said = sandbox.run(&["build", tree.as_str(), "--arch", "9.0", "--json", "--no-cache"]).assert_code(14);
    let told = warnings(&said.stdout);
    let told = told.iter().find(|text| text.contains("arch list of its own")).unwrap_or_else(|| panic!("{told:#?}"));
    assert!(told.starts_with("a.cu and 1 more were compiled for 8.0 instead of 9.0"), "{told}");
    let number: usize = told.rsplit_once("(line ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    let stage = said.stdout.lines().find(|line| line.contains("; log ")).unwrap();
    let log = stage.split("; log ").nth(1).unwrap().split('"').next().unwrap();
    let log = fs_err::read_to_string(log).unwrap();
    let line = log.lines().nth(number - 1).unwrap();
    assert!(line.contains("nvcc") && line.contains("code=sm_80"), "line {number}: {line}");
}

#[test]
fn every_source_is_told_with_its_archs_and_the_timings_hold_every_call() {
    let sandbox = sandbox();
    let tree = tree(&sandbox, "build = BuildExtension\nflags = []");
    let args = ["build", tree.as_str(), "--arch", "8.6;9.0+PTX", "--json", "--no-cache", "--timings"];
    let said = sandbox.run(&args).assert_code(0);
    let artifact = artifact(&said);
    assert_eq!(artifact["effective"], "8.6;9.0+PTX");
    let group = &artifact["effective-sources"][0];
    assert_eq!((&group["archs"], &group["sources"]), (&"8.6;9.0+PTX".into(), &serde_json::json!(["a.cu", "b.cu"])));
    assert!(warnings(&said.stdout).iter().all(|text| !text.contains("arch list of its own")));
    let trace = fs_err::read_to_string(sandbox.work().join("dist/own-list-timings.json")).unwrap();
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let calls = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let mut names: Vec<&str> = calls.map(|event| event["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names[..2], ["a.cu", "b.cu"]);
    assert_eq!((names.len(), names[2]), (4, "bind.cpp"), "three sources and a link: {names:?}");
    let page = fs_err::read_to_string(sandbox.work().join("dist/own-list-timings.html")).unwrap();
    assert!(page.contains("a.cu") && page.contains("</html>"));
}
