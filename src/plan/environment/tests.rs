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
    assert_eq!(composed.variables["HOME"], "/h");
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
}
