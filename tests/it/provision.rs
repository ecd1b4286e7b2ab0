//! Toolchains from wheels, with real packages: a bare machine, a wrong toolkit, many at once, a kill, what is missing
//! beside a torch, and package indexes of a company.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::support::kits::{environment, machine, place, program, real_toolkit, wheel_toolkit};
use crate::support::real::{self, artifact, copy, stamp, wait_for};
use crate::support::{Said, Sandbox};

/// A sandbox with an empty cache of its own over uv's shared one, so that an installation costs seconds.
fn own_cache(sandbox: Sandbox) -> (Sandbox, Utf8PathBuf) {
    wheel_toolkit();
    let own = sandbox.root().join("cache");
    let wheels = real::cache().join("uv");
    (sandbox.var("CUWRIGHT_CACHE_DIR", own.as_str()).var("UV_CACHE_DIR", wheels.as_str()), own)
}

fn resolutions(own: &Utf8Path) {
    for folder in ["tools", "resolutions-v1"] {
        copy(&real::cache().join(folder), &own.join(folder));
    }
}

/// nvcc 13.2 from wheels, which is not the release of the default torch.
fn other_toolkit(sandbox: &Sandbox) -> Utf8PathBuf {
    let site = real::cache().join("other-toolkit-13.2");
    if !site.join("nvidia/cu13/bin/nvcc").exists() {
        let tools = real::cache().join("tools").read_dir_utf8().unwrap().flatten();
        let uv = tools.map(|entry| entry.path().join("uv")).find(|uv| uv.is_file()).unwrap();
        let set = "cuda-toolkit[nvcc,cccl,cudart,crt,nvvm]==13.2.2";
        let mut install = std::process::Command::new(uv);
        install.args(["pip", "install", "--quiet", "--target", site.as_str(), set]).current_dir(sandbox.work());
        assert!(install.env("UV_CACHE_DIR", real::cache().join("uv")).status().unwrap().success());
    }
    site.join("nvidia/cu13")
}

#[test]
fn a_bare_machine_builds_the_example_and_a_wrong_toolkit_does_not_lead_it_astray() {
    // An empty home, and a PATH without CUDA: only what the distribution has.
    let sandbox = real::sandbox().var("PATH", "/usr/local/bin:/usr/bin:/bin");
    let (sandbox, own) = own_cache(sandbox);
    let root = sandbox.root().join("machine");
    fs_err::create_dir_all(&root).unwrap();
    let sandbox = sandbox.var("CUWRIGHT_SYSTEM_ROOT", root.as_str());
    assert_eq!(sandbox.root().join("home").read_dir_utf8().unwrap().count(), 0);
    let tree = real::example(&sandbox);
    let first = sandbox.run(&["build", tree.as_str(), "--arch", "9.0", "--json"]).assert_code(0);
    assert!(first.stdout.contains("is ready after"), "{}", first.stdout);
    let first = artifact(&first);
    assert_eq!((&first["restored"], &first["cuda"]), (&false.into(), &"13.0.88".into()));
    assert!(own.join("toolchains-v1").is_dir());

    // The same machine gets another real toolkit at the usual place and on PATH. It is of torch's major, and newer.
    let wheel = other_toolkit(&sandbox);
    let home = place(&sandbox, "usr/local/cuda");
    let parts = [("bin", "bin"), ("include", "include"), ("lib", "lib64"), ("nvvm", "nvvm")];
    fs_err::create_dir_all(&home).unwrap();
    for (from, to) in parts {
        symlink(wheel.join(from), home.join(to)).unwrap();
    }
    let path = format!("{home}/bin:/usr/local/bin:/usr/bin:/bin");
    let sandbox = sandbox.var("PATH", &path);
    let second = sandbox.run(&["build", tree.as_str(), "--arch", "9.0", "--json"]).assert_code(0);
    let why = format!("{home} (nvcc on PATH) is not used: torch 2.11.0 comes with CUDA 13.0 of its own");
    assert!(second.stdout.contains(&why), "{why} is not in {}", second.stdout);
    // The key holds nvcc's version, so this is the same toolchain.
    assert_eq!(artifact(&second)["key"], first["key"]);
    // Where the torch is an environment's own, the toolkit of its release goes before the newer one, unless asked for.
    let python = own.join("toolchains-v1").read_dir_utf8().unwrap().flatten().map(camino::Utf8DirEntry::into_path);
    let python = python.map(|folder| folder.join("bin/python")).find(|python| python.exists()).unwrap();
    let choose = |more: &[&str]| {
        let args = [&["plan", tree.as_str(), "--arch", "9.0", "--json", "--python", python.as_str()], more].concat();
        let said = sandbox.run(&args).assert_code(0);
        let json: Value = serde_json::from_str(&said.stdout).unwrap();
        let all = json[0]["considered"].as_array().unwrap().clone();
        let taken = all.iter().find(|one| one["what"] == "toolkit" && one["taken"] == true).unwrap();
        taken["version"].as_str().unwrap().to_owned()
    };
    assert_eq!(choose(&[]), "13.0.88");
    assert!(choose(&["--cuda", "13.2"]).starts_with("13.2."));
    // Named by its variable it is told all the more.
    let named = sandbox.var("CUDA_HOME", home.as_str());
    let said = named.run(&["build", tree.as_str(), "--arch", "9.0"]).assert_code(0);
    assert!(said.stderr.contains("CUDA_HOME=") && said.stderr.contains("is not used"), "{}", said.stderr);
}

#[test]
fn ten_at_once_leave_one_good_copy_and_a_kill_in_the_middle_leaves_no_half() {
    let (sandbox, own) = own_cache(real::sandbox());
    resolutions(&own);
    let install = ["toolchain", "install", "--offline"];
    let start = || {
        let mut command = sandbox.command(&install);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let bucket = own.join("toolchains-v1");
    let folders = || -> Vec<Utf8PathBuf> {
        let entries = bucket.read_dir_utf8().into_iter().flatten().flatten();
        entries.map(camino::Utf8DirEntry::into_path).filter(|path| path.is_dir()).collect()
    };
    // Killed as soon as something is there, uv with it.
    let mut victim = start();
    wait_for("the first files", || folders().iter().any(|folder| folder.join("lib").exists()));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let half = folders().pop().unwrap();
    assert!(!half.join("cuwright-environment.json").exists(), "it was too fast to be killed");
    assert_eq!(sandbox.run(&["toolchain", "list", "--json"]).assert_code(0).stdout, "[]\n");

    let running: Vec<_> = (0..10).map(|_| start()).collect();
    let said: Vec<Said> = running.into_iter().map(|child| child.wait_with_output().unwrap().into()).collect();
    let lines: Vec<String> = said.into_iter().map(|said| said.assert_code(0).stdout).collect();
    assert!(lines.iter().all(|line| *line == lines[0] && line.contains("provisioned from wheels")), "{lines:#?}");
    let folders = folders();
    assert_eq!(folders.len(), 1, "{folders:?}");
    let list = sandbox.run(&["toolchain", "list", "--json"]).assert_code(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap().as_array().unwrap().len(), 1);
    let python = folders[0].join("bin/python");
    let imports = std::process::Command::new(python).args(["-c", "import torch; print(torch.version.cuda)"]).output();
    assert_eq!(String::from_utf8(imports.unwrap().stdout).unwrap(), "13.0\n");
}

/// A real Python environment with the real torch of the tests, by a `.pth` file, and a site folder of its own in front.
fn with_real_torch(sandbox: &Sandbox, site: &Utf8Path) -> (Utf8PathBuf, Utf8PathBuf) {
    let folder = sandbox.root().join("theirs");
    let own = environment(&folder, "0", &[]);
    fs_err::remove_dir_all(own.join("torch")).unwrap();
    for name in ["setuptools-80.0.0.dist-info", "wheel-0.45.0.dist-info", "ninja-1.13.0.dist-info"] {
        fs_err::remove_dir_all(own.join(name)).unwrap();
    }
    fs_err::remove_file(folder.join("bin/ninja")).unwrap();
    fs_err::write(own.join("theirs.pth"), format!("{site}\n")).unwrap();
    (folder, own)
}

/// The package folder of the provisioned environment.
fn site() -> Utf8PathBuf {
    let lib = wheel_toolkit().parent().unwrap().join("lib");
    lib.read_dir_utf8().unwrap().flatten().next().unwrap().path().join("site-packages")
}

#[test]
fn what_an_environment_with_torch_lacks_comes_beside_it() {
    let sandbox = real::sandbox();
    let tree = real::quick(&sandbox);
    // It says what it is built with, and fails with another setuptools.
    let setup = fs_err::read_to_string(tree.join("setup.py")).unwrap();
    let asks =
        "import setuptools, torch\nassert int(setuptools.__version__.split('.')[0]) < 81, setuptools.__version__\n";
    fs_err::write(tree.join("setup.py"), format!("{asks}{setup}# {}\n", stamp())).unwrap();
    let (theirs, own) = with_real_torch(&sandbox, &site());
    // A newer setuptools than the build takes, found before the one of the shared environment.
    fs_err::create_dir_all(own.join("setuptools-99.0.0.dist-info")).unwrap();
    fs_err::create_dir_all(own.join("setuptools")).unwrap();
    fs_err::write(own.join("setuptools/__init__.py"), "__version__ = '99.0.0'\n").unwrap();
    let sandbox = sandbox.var("VIRTUAL_ENV", theirs.as_str());
    let before = walkdir::WalkDir::new(&theirs).into_iter().count();
    let said = sandbox.run(&["build", tree.as_str(), "--arch", "9.0", "--json", "--no-cache"]).assert_code(0);
    assert!(said.stdout.contains("setuptools<81, ninja for"), "{}", said.stdout);
    assert!(said.stdout.contains("(VIRTUAL_ENV) is used, with its torch 2.11.0"), "{}", said.stdout);
    assert_eq!(artifact(&said)["files"][0]["found"], "9.0");
    // Nothing of theirs was touched but Python's own byte code.
    let after = walkdir::WalkDir::new(&theirs).into_iter().flatten();
    let after = after.filter(|entry| !entry.path().to_string_lossy().contains("__pycache__")).count();
    assert!(after <= before, "{before} → {after}");
}

#[test]
fn a_torch_of_cuda_13_without_nvcc_gets_a_toolkit_from_wheels() {
    // No toolkit of ours is in the cache either.
    let (sandbox, own) = own_cache(real::sandbox());
    copy(&real::cache().join("tools"), &own.join("tools"));
    let root = sandbox.root().join("machine");
    fs_err::create_dir_all(&root).unwrap();
    let sandbox = sandbox.var("CUWRIGHT_SYSTEM_ROOT", root.as_str());
    sandbox.file("setup.py", "");
    // The same packages without nvcc: what `pip install torch` alone leaves.
    let bare = sandbox.root().join("bare");
    fs_err::create_dir_all(bare.join("nvidia/cu13")).unwrap();
    for entry in site().read_dir_utf8().unwrap().flatten().filter(|entry| entry.file_name() != "nvidia") {
        symlink(entry.path(), bare.join(entry.file_name())).unwrap();
    }
    for folder in ["lib", "include"] {
        symlink(site().join("nvidia/cu13").join(folder), bare.join("nvidia/cu13").join(folder)).unwrap();
    }
    let (theirs, _) = with_real_torch(&sandbox, &bare);
    let sandbox = sandbox.var("VIRTUAL_ENV", theirs.as_str());
    let said = sandbox.run(&["plan", "--arch", "9.0"]).assert_code(0);
    assert!(said.stdout.contains("what this environment lacks is not installed yet"), "{}", said.stdout);
    assert!(said.stdout.contains("cuda-toolkit[nvcc,cccl,cudart,crt,nvvm]==13.0.2"), "{}", said.stdout);
    let said = sandbox.run(&["toolchain", "install", "--json"]).assert_code(0).stdout;
    let json: Value = serde_json::from_str(&said).unwrap();
    let home = Utf8PathBuf::from(json["toolchain"]["toolkit"]["home"].as_str().unwrap());
    assert_eq!(
        json["toolchain"]["toolkit"]["nvcc"].as_str().unwrap().split('.').take(2).collect::<Vec<_>>(),
        ["13", "0"]
    );
    assert_eq!(json["toolchain"]["torch"]["folder"], theirs_torch(&bare));
    // Headers of torch's CUDA libraries and of the toolkit are in one place, and nvcc compiles with them.
    let source = sandbox.work().join("a.cu");
    fs_err::write(&source, "#include <cusparse.h>\n#include <thrust/complex.h>\n__global__ void k() {}\n").unwrap();
    let nvcc = home.join("bin/nvcc");
    let mut compile = std::process::Command::new(nvcc);
    compile.args(["-arch=sm_90", "-c", source.as_str(), "-o", "/dev/null"]).current_dir(sandbox.work());
    let compiled = compile.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

fn theirs_torch(bare: &Utf8Path) -> String {
    bare.join("torch").into_string()
}

#[test]
fn archs_that_the_toolkit_to_come_does_not_know_cost_no_download() {
    let (sandbox, own) = own_cache(real::sandbox());
    for command in ["plan", "build"] {
        let said = sandbox.run(&[command, "mmcv", "--arch", "6.1;7.0;8.6"]).assert_code(12);
        assert!(said.stderr.contains("no longer compiles for 6.1 and 7.0"), "{}", said.stderr);
        assert!(said.stderr.contains("would come from wheels, with torch"), "{}", said.stderr);
        assert!(!own.join("toolchains-v1").exists());
    }
}

#[test]
fn offline_names_what_is_missing() {
    let (sandbox, own) = own_cache(real::sandbox());
    resolutions(&own);
    let empty = sandbox.root().join("empty");
    let sandbox = sandbox.var("UV_CACHE_DIR", empty.as_str());
    let said = sandbox.run(&["toolchain", "install", "--offline"]).assert_code(12);
    assert!(said.stderr.contains("error[cuwright::provision::offline]"), "{}", said.stderr);
    assert!(said.stderr.contains("uv: "), "uv's own words name the package: {}", said.stderr);
    assert_eq!(sandbox.run(&["toolchain", "list", "--json"]).assert_code(0).stdout, "[]\n");
    // A machine that has neither uv nor anything to fetch it with.
    let bare = machine();
    let bin = bare.root().join("bin");
    program(&bin.join("python3"), "exec /usr/bin/python3 \"$@\"");
    program(&bin.join("g++"), "exec /usr/bin/g++ \"$@\"");
    real_toolkit(&wheel_toolkit(), &place(&bare, "usr/local/cuda"));
    let bare = bare.var("PATH", bin.as_str());
    let said = bare.run(&["build", "--arch", "9.0", "--offline"]).assert_code(12);
    assert!(said.stderr.contains("there is no uv, and the network may not be used"), "{}", said.stderr);
}
