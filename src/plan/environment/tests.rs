//! What reaches a build, what does not, and what is said about it.

use super::*;
use crate::domain::toolchain;
use crate::recipe;

fn compose(recipe: &Recipe, variables: &[(&'static str, &'static str)]) -> Result<Environment, Problems> {
    let env = Env::of("/w", variables.iter().copied());
    environment(recipe, &toolchain::sample(), &"8.6;9.0+PTX".parse().unwrap(), 4, &env, false)
}

#[test]
fn inherited_arch_variables_are_left_behind_and_reported() {
    let composed =
        compose(&recipe::sample(), &[("TORCH_CUDA_ARCH_LIST", "3.5"), ("MMCV_CUDA_ARGS", "-arch=sm_35"), ("X", "1")]);
    let composed = composed.unwrap();
    assert_eq!(composed.variables["TORCH_CUDA_ARCH_LIST"], "8.6;9.0+PTX");
    assert!(!composed.variables.contains_key("MMCV_CUDA_ARGS") && !composed.variables.contains_key("X"));
    let cleared: Vec<&str> = composed.cleared.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(cleared, ["TORCH_CUDA_ARCH_LIST", "MMCV_CUDA_ARGS"]);
}

#[test]
fn compiler_flags_reach_the_build_and_the_key_and_paths_of_this_machine_do_not_reach_the_key() {
    let mut recipe = recipe::sample();
    recipe.build.env.insert("FORCE_CUDA".into(), "1".into());
    recipe.build.pass_env.push("MY_SWITCH".into());
    let composed = compose(&recipe, &[("CFLAGS", "-O1"), ("MY_SWITCH", "on"), ("HOME", "/h")]).unwrap();
    let keyed: Vec<(&str, &str)> = composed.keyed.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(keyed, [("CFLAGS", "-O1"), ("FORCE_CUDA", "1"), ("MY_SWITCH", "on")]);
    assert!(!composed.variables.contains_key("HOME"), "the build's home is a folder of its own");
    assert_eq!(composed.variables["CARGO_HOME"], "/h/.cargo");
}

#[test]
fn a_cleared_variable_does_not_reach_the_build_although_we_would_take_it() {
    let mut recipe = recipe::sample();
    recipe.build.clear_env.push("CFLAGS".into());
    assert!(!compose(&recipe, &[("CFLAGS", "-O1")]).unwrap().variables.contains_key("CFLAGS"));
}

#[test]
fn a_recipe_may_not_decide_what_cuwright_decides() {
    let mut recipe = recipe::sample();
    recipe.build.env.insert("TORCH_CUDA_ARCH_LIST".into(), "9.0".into());
    let problems = compose(&recipe, &[]).unwrap_err();
    assert_eq!(problems.iter().next().map(Problem::code), Some("cuwright::recipe::reserved_variable"));
}

#[test]
fn our_tools_come_first_on_the_path_and_nothing_comes_twice() {
    let composed = compose(&recipe::sample(), &[("PATH", "/usr/bin:/c/toolchain/bin::/bin")]).unwrap();
    assert_eq!(composed.variables["PATH"], "/c/toolchain/bin:/c/toolchain/cuda/bin:/usr/bin:/bin");
}

#[test]
fn flags_of_the_compiler_reach_every_call_of_it_and_the_key() {
    let mut toolchain = toolchain::sample();
    toolchain.host.flags = vec!["-m64".into(), "-B/x y".into()];
    toolchain.overlay = Some("/c/overlay/site".into());
    toolchain.environment = None;
    let env = Env::of("/w", [("CXXFLAGS", "-O1"), ("PYTHONPATH", "/mine")]);
    let archs = "9.0".parse().unwrap();
    let composed = environment(&recipe::sample(), &toolchain, &archs, 4, &env, false).unwrap();
    assert_eq!(composed.keyed["CXXFLAGS"], "-m64 '-B/x y' -O1");
    assert_eq!(composed.keyed["NVCC_PREPEND_FLAGS"], "-Xcompiler=-m64 -Xcompiler=\"-B/x y\"");
    assert_eq!(composed.variables["CUDAHOSTCXX"], "/usr/bin/g++");
    assert_eq!(composed.variables["PYTHONPATH"], "/c/overlay/site:/mine");
    assert_eq!(composed.keyed["PYTHONPATH"], "/mine");
}

#[test]
fn what_steers_python_or_numeric_libraries_is_in_the_key_or_does_not_reach_the_build() {
    let asked = [
        ("PYTHONPATH", "/mine"),
        ("PYTHONSTARTUP", "/s.py"),
        ("PYTHONHASHSEED", "1"),
        ("PIP_CONFIG_FILE", "/pip.conf"),
        ("DISTUTILS_DEBUG", "1"),
        ("SETUPTOOLS_SCM_PRETEND_VERSION", "9"),
        ("OPENBLAS_CORETYPE", "Haswell"),
        ("OMP_NUM_THREADS", "7"),
        ("LD_LIBRARY_PATH", "/opt/lib"),
        ("LANG", "tr_TR.UTF-8"),
        ("LC_NUMERIC", "de_DE.UTF-8"),
        ("TZ", "Asia/Tokyo"),
        ("USER", "me"),
        ("XDG_CONFIG_HOME", "/h/.config"),
    ];
    let composed = compose(&recipe::sample(), &asked).unwrap();
    let keyed: Vec<&str> = composed.keyed.keys().map(String::as_str).collect();
    assert_eq!(keyed, ["LD_LIBRARY_PATH", "OPENBLAS_CORETYPE"]);
    for (name, value) in asked.iter().filter(|(name, _)| !keyed.contains(name)) {
        assert_ne!(composed.variables.get(*name).map(String::as_str), Some(*value), "{name}");
    }
    assert_eq!(composed.variables["LC_ALL"], "C.UTF-8");
}
