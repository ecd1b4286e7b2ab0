//! Layouts of distributions, modules, conda and wheels, with nvcc stand-ins that answer as the named release does.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn program(path: &Utf8Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn touch(path: &Utf8Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

/// A program that answers like the nvcc of `release` in `home`.
fn nvcc(path: &Utf8Path, home: &Utf8Path, release: &str) {
    let body = format!(
        "case $1 in --version) echo 'release {release}, V{release}.88';; --list-gpu-code) echo sm_90 compute_90;;\n\
         --dryrun) echo '#$ TOP={home}/bin/..' >&2;; *) exit 1;; esac"
    );
    program(path, &body);
}

fn fake(home: &Utf8Path, release: &str) {
    nvcc(&home.join("bin/nvcc"), home, release);
    fs::create_dir_all(home.join("include/crt")).unwrap();
    touch(&home.join("lib/libcudart.so.1"));
    touch(&home.join("include/cuda_runtime.h"));
    fs::write(home.join("include/crt/host_config.h"), "#if __GNUC__ > 15\n#error\n#endif\n").unwrap();
}

fn root() -> (tempfile::TempDir, Utf8PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
    (folder, root)
}

/// Homes below `root` with their origins, and what each is.
fn seen(env: &Env, sites: &[Utf8PathBuf], root: &Utf8Path) -> Vec<(String, String, String)> {
    let facts = Facts::new(None);
    let below = |home: &Utf8Path| home.strip_prefix(root).map_or_else(|_| home.to_string(), ToString::to_string);
    candidates(env, sites, &facts)
        .iter()
        .map(|candidate| {
            let what = match describe(candidate, env, &facts) {
                Ok(found) => found.toolkit.nvcc.release().to_string(),
                Err(rejected) => rejected.reason,
            };
            (below(&candidate.home), candidate.origin.replace(root.as_str(), ""), what.replace(root.as_str(), ""))
        })
        .collect()
}

fn is(found: &[(String, String, String)], home: &str, origin: &str, what: &str) {
    let wanted = (home.to_owned(), origin.to_owned(), what.to_owned());
    assert!(found.contains(&wanted), "{wanted:?} is not in {found:#?}");
}

#[test]
fn the_header_tells_the_newest_host_compilers() {
    let new = "((__clang_major__ < 16) || (__clang_major__ > 20))\n#if __GNUC__ > 15\n#if (__clang_major__ >= 21) ||";
    assert_eq!(host_bounds(new), HostBounds { gcc_max: Some(15), clang_below: Some(21) });
    assert_eq!(host_bounds("__clang_major__ > 17").clang_below, Some(18));
    assert_eq!(host_bounds(""), HostBounds::default());
}

#[test]
fn a_place_that_is_found_twice_is_called_by_its_first_name() {
    let (_keep, root) = root();
    let (a, b) = (root.join("a"), root.join("site/nvidia/cu13"));
    fake(&a, "12.8");
    fake(&b, "13.0");
    let env = Env::of("/", [("CUDA_HOME", a.as_str()), ("PATH", a.join("bin").as_str())]);
    let env = env.with("CUWRIGHT_SYSTEM_ROOT", root.join("none"));
    let facts = Facts::new(None);
    let found = candidates(&env, &[root.join("site")], &facts);
    assert_eq!(found.iter().map(|c| (c.origin.as_str(), c.named)).next(), Some(("CUDA_HOME", true)));
    assert_eq!(found.len(), 2);
    let found = describe(&found[1], &env, &facts).unwrap();
    assert_eq!(found.parts.unwrap().libraries, [b.join("lib")]);
    let kit = found.toolkit;
    assert_eq!((kit.nvcc.to_string().as_str(), kit.host_bounds.gcc_max), ("13.0.88", Some(15)));
    assert_eq!((kit.gpu_codes, kit.gpu_archs), (vec!["sm_90".to_owned()], vec![]));
    touch(&b.join("lib/libcudart.so"));
    let again = &candidates(&env, &[root.join("site")], &facts)[1];
    assert_eq!(describe(again, &env, &facts).unwrap().parts, None);
}

#[test]
fn links_scripts_modules_and_packages_lead_to_their_toolkits() {
    let (_keep, root) = root();
    for (home, release) in [("usr/local/cuda-11.8", "11.8"), ("usr/local/cuda-12.6", "12.6"), ("opt/cuda", "13.1")] {
        fake(&root.join(home), release);
    }
    fs::create_dir_all(root.join("usr/local/cuda-samples")).unwrap();
    std::os::unix::fs::symlink("cuda-11.8", root.join("usr/local/cuda")).unwrap();
    // The HPC SDK has a compiler driver of its own in front, and so do modules.
    let sdk = root.join("opt/nvidia/hpc_sdk/Linux_x86_64/24.7");
    fake(&sdk.join("cuda/12.5"), "12.5");
    fs::create_dir_all(sdk.join("cuda/include")).unwrap();
    nvcc(&sdk.join("compilers/bin/nvcc"), &sdk.join("cuda/12.5"), "12.5");
    // Debian: a script, the program elsewhere, headers and libraries in `/usr`.
    nvcc(&root.join("usr/lib/nvidia-cuda-toolkit/bin/nvcc"), &root.join("usr/lib/nvidia-cuda-toolkit"), "11.5");
    program(&root.join("usr/bin/nvcc"), &format!("exec {root}/usr/lib/nvidia-cuda-toolkit/bin/nvcc \"$@\""));
    touch(&root.join("usr/include/cuda_runtime.h"));
    touch(&root.join(format!("usr/lib/{}-linux-gnu/libcudart.so.11.0", std::env::consts::ARCH)));
    touch(&root.join(format!("usr/lib/{}-linux-gnu/libcudart.so", std::env::consts::ARCH)));
    fake(&root.join("easybuild/CUDA/12.1"), "12.1");
    program(&root.join("wrap/nvcc"), &format!("exec {root}/usr/local/cuda-12.6/bin/nvcc \"$@\""));
    let env = Env::of("/", [("CUWRIGHT_SYSTEM_ROOT", root.as_str())])
        .with("PATH", format!("{root}/wrap:{sdk}/compilers/bin:{root}/usr/bin:/bin"))
        .with("EBROOTCUDA", root.join("easybuild/CUDA/12.1"));
    let found = seen(&env, &[], &root);
    is(&found, "easybuild/CUDA/12.1", "EBROOTCUDA", "12.1");
    is(&found, "usr/local/cuda-12.6", "nvcc on PATH", "12.6");
    is(&found, "opt/nvidia/hpc_sdk/Linux_x86_64/24.7/cuda/12.5", "nvcc on PATH", "12.5");
    is(&found, "usr", "nvcc on PATH", "11.5");
    is(&found, "usr/local/cuda", "a link to /usr/local/cuda-11.8", "11.8");
    is(&found, "opt/cuda", "a usual place", "13.1");
    assert_eq!(found.len(), 6, "each once, and nothing that is no toolkit: {found:#?}");
    let without_path = seen(&env.clone().with("PATH", "/bin").with("NVHPC_ROOT", sdk.as_str()), &[], &root);
    is(&without_path, "usr", "package of the distribution", "11.5");
    is(&without_path, "opt/nvidia/hpc_sdk/Linux_x86_64/24.7/cuda/12.5", "NVHPC_ROOT", "12.5");
}

#[test]
fn a_variable_with_the_wrong_kind_of_value_is_told_and_what_it_means_is_found() {
    let (_keep, root) = root();
    fake(&root.join("kit"), "12.4");
    let env = |value: &str| Env::of("/", [("CUDA_HOME", value), ("CUWRIGHT_SYSTEM_ROOT", "/nonexistent")]);
    let found = seen(&env(root.join("kit/bin").as_str()), &[], &root);
    is(&found, "kit/bin", "CUDA_HOME", "is the bin folder of a toolkit; it must name /kit");
    is(&found, "kit", "meant by CUDA_HOME", "12.4");
    let found = seen(&env(root.join("kit/bin/nvcc").as_str()), &[], &root);
    is(&found, "kit/bin/nvcc", "CUDA_HOME", "is a file; it must name the folder that holds bin/nvcc");
    is(&found, "kit", "meant by CUDA_HOME", "12.4");
    let found = seen(&env(&format!("{root}/none:{root}/kit")), &[], &root);
    assert_eq!(found[0].2, "is a list of folders; it must name one");
    is(&found, "kit", "meant by CUDA_HOME", "12.4");
    let found = seen(&env(root.join("gone").as_str()), &[], &root);
    assert_eq!(found, [("gone".into(), "CUDA_HOME".into(), "does not exist".into())]);
    let cudacxx = Env::of("/", [("CUWRIGHT_SYSTEM_ROOT", "/nonexistent")]).with("CUDACXX", root.join("kit/bin/nvcc"));
    is(&seen(&cudacxx, &[], &root), "kit", "CUDACXX", "12.4");
}

#[test]
fn a_runtime_is_no_toolkit_whoever_brings_it() {
    let (_keep, root) = root();
    touch(&root.join("conda/lib/libcudart.so.11.3.109"));
    touch(&root.join("conda/conda-meta/cudatoolkit-11.3.1-h2bc3f7f_2.json"));
    touch(&root.join("site/nvidia/cuda_runtime/lib/libcudart.so.12"));
    touch(&root.join("site/nvidia/cuda_nvcc/bin/ptxas"));
    touch(&root.join("usr/local/cuda/lib64/libcudart.so.12.4.127"));
    let env = Env::of("/", [("CUWRIGHT_SYSTEM_ROOT", root.as_str())]).with("CONDA_PREFIX", root.join("conda"));
    let found = seen(&env, &[root.join("site")], &root);
    let conda = "is a conda environment with the CUDA runtime (cudatoolkit-11.3.1-h2bc3f7f_2), which brings no nvcc";
    is(&found, "conda", "CONDA_PREFIX", conda);
    let wheels = "is the CUDA 12 runtime of wheels, which brings no nvcc";
    is(&found, "site/nvidia/cuda_runtime", "wheels in /site", wheels);
    is(&found, "usr/local/cuda", "a usual place", "holds the CUDA 12.4.127 runtime but no nvcc");
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn a_conda_toolkit_has_its_parts_elsewhere() {
    let (_keep, root) = root();
    let prefix = root.join("env");
    nvcc(&prefix.join("bin/nvcc"), &prefix, "12.4");
    touch(&prefix.join("targets/x86_64-linux/include/cuda_runtime.h"));
    touch(&prefix.join("targets/x86_64-linux/lib/libcudart.so"));
    let env = Env::of("/", [("CUWRIGHT_SYSTEM_ROOT", "/nonexistent")]).with("CONDA_PREFIX", prefix.as_str());
    let facts = Facts::new(None);
    let found = describe(&candidates(&env, &[], &facts)[0], &env, &facts).unwrap();
    assert_eq!(found.parts.unwrap().include, prefix.join("targets/x86_64-linux/include"));
}

#[test]
fn a_broken_toolkit_says_what_is_broken() {
    let (_keep, root) = root();
    let env = Env::of("/", []);
    let reason = |home: Utf8PathBuf| {
        let candidate = Candidate { home, origin: "CUDA_HOME".into(), named: true };
        describe(&candidate, &env, &Facts::new(None)).map_err(|rejected| rejected.reason).unwrap_err()
    };
    assert_eq!(reason(root.clone()), "holds no bin/nvcc");
    fake(&root.join("kit"), "13.0");
    program(&root.join("kit/bin/nvcc"), "echo no device >&2\nexit 1");
    assert_eq!(reason(root.join("kit")), "holds an nvcc that fails at --version: no device");
    fs::remove_file(root.join("kit/lib/libcudart.so.1")).unwrap();
    assert_eq!(reason(root.join("kit")), "holds nvcc but no CUDA runtime (libcudart)");
}
