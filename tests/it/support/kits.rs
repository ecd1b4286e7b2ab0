//! Machines with toolkits, compilers and Pythons in the places where distributions put them.
//!
//! A toolkit of the release that wheels bring is the real one, linked into place. Other releases have no nvcc in wheels:
//! their nvcc is a stand-in that answers as that release does, by the table. So is a torch of another release.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use camino::{Utf8Path, Utf8PathBuf};

use super::{Sandbox, project, real};

/// The provisioned toolkit of these tests.
pub fn wheel_toolkit() -> Utf8PathBuf {
    let sandbox = real::sandbox();
    let said = sandbox.run(&["toolchain", "install", "--json"]).assert_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    json["toolchain"]["toolkit"]["home"].as_str().unwrap().into()
}

pub fn program(path: &Utf8Path, body: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A toolkit of `release` at `home`: a stand-in with that release's archs and newest gcc.
pub fn toolkit(home: &Utf8Path, release: &str) {
    let table = fs_err::read_to_string(project("src/compat/tables/toolkits.tsv")).unwrap();
    let row = table.lines().find(|line| line.split('\t').next() == Some(release)).unwrap();
    let cells: Vec<&str> = row.split('\t').collect();
    let codes: Vec<String> = cells[2].split(',').map(|number| format!("sm_{number}")).collect();
    let body = format!(
        "case $1 in\n--version) echo 'Cuda compilation tools, release {release}, V{release}.99';;\n\
         --list-gpu-code) echo {};;\n*) exit 1;;\nesac",
        codes.join(" ")
    );
    program(&home.join("bin/nvcc"), &body);
    fs_err::create_dir_all(home.join("include/crt")).unwrap();
    fs_err::create_dir_all(home.join("lib64")).unwrap();
    fs_err::write(home.join("include/cuda_runtime.h"), "").unwrap();
    fs_err::write(home.join("include/crt/host_config.h"), format!("#if __GNUC__ > {}\n", cells[6])).unwrap();
    fs_err::write(home.join("lib64/libcudart.so"), "").unwrap();
}

/// The real toolkit at `home`, by links.
pub fn real_toolkit(wheel: &Utf8Path, home: &Utf8Path) {
    fs_err::create_dir_all(home.join("bin")).unwrap();
    for entry in wheel.join("bin").read_dir_utf8().unwrap().flatten() {
        symlink(entry.path(), home.join("bin").join(entry.file_name())).unwrap();
    }
    for folder in ["include", "lib64", "nvvm"] {
        symlink(wheel.join(folder), home.join(folder)).unwrap();
    }
}

/// A real Python environment that holds `torch`, a stand-in made of the files that cuwright reads.
pub fn environment(folder: &Utf8Path, torch: &str, archs: &[&str]) -> Utf8PathBuf {
    let made = std::process::Command::new("python3").args(["-m", "venv", "--without-pip", folder.as_str()]).status();
    assert!(made.unwrap().success());
    let lib = folder.join("lib").read_dir_utf8().unwrap().flatten().next().unwrap();
    let site = lib.path().join("site-packages");
    for name in ["setuptools-80.0.0.dist-info", "wheel-0.45.0.dist-info", "ninja-1.13.0.dist-info", "torch/utils"] {
        fs_err::create_dir_all(site.join(name)).unwrap();
    }
    program(&folder.join("bin/ninja"), "exit 1");
    let cuda = torch.split_once("+cu").map(|(_, digits)| {
        let (major, minor) = digits.split_at(digits.len() - 1);
        format!("'{major}.{minor}'")
    });
    let version = format!("__version__ = '{torch}'\ncuda = {}\n", cuda.unwrap_or_else(|| "None".into()));
    fs_err::write(site.join("torch/version.py"), version).unwrap();
    let list: Vec<String> = archs.iter().map(|arch| format!("'{arch}'")).collect();
    let list = format!("    supported_arches = [{}]\n", list.join(", "));
    fs_err::write(site.join("torch/utils/cpp_extension.py"), list).unwrap();
    site
}

/// A compiler pair that says it is gcc `version`: the real one with another number in its macros.
pub fn gcc(folder: &Utf8Path, suffix: &str, version: &str) {
    let numbers: Vec<&str> = version.split('.').collect();
    let macros = ["__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"];
    let flags: Vec<String> =
        macros.iter().zip(numbers).map(|(name, number)| format!("-U{name} -D{name}={number}")).collect();
    for name in ["gcc", "g++"] {
        program(&folder.join(format!("{name}{suffix}")), &format!("exec /usr/bin/{name} {} \"$@\"", flags.join(" ")));
    }
}

/// A machine of its own: its toolkits and nothing else of CUDA, and a source tree to plan.
pub fn machine() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("setup.py", "");
    let root = sandbox.root().join("machine");
    fs_err::create_dir_all(&root).unwrap();
    sandbox.var("CUWRIGHT_SYSTEM_ROOT", root.as_str()).var("LD_LIBRARY_PATH", "")
}

/// A place on that machine.
pub fn place(sandbox: &Sandbox, path: &str) -> Utf8PathBuf {
    sandbox.root().join("machine").join(path)
}
