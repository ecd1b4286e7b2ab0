//! `inspect` as a user runs it: tables, shares, kernels, extraction, wheels, folders and installed packages.

use serde_json::Value;

use crate::support::artifact::{Library, fatbin, wheel};
use crate::support::{Sandbox, project};

/// A sandbox with a copy of a vector.
fn vector(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    fs_err::copy(project("fatbin/tests/vectors").join(name), sandbox.work().join(name)).unwrap();
    sandbox
}

fn shown(name: &str, args: &[&str]) -> String {
    let sandbox = vector(name);
    let args: Vec<&str> = ["inspect", name].into_iter().chain(args.iter().copied()).collect();
    sandbox.run(&args).assert_code(0).stdout
}

#[test]
fn a_table_tells_every_entry_and_what_an_arch_costs() {
    insta::assert_snapshot!(shown("v02_sm75_86_ptx86.o", &[]));
    insta::assert_snapshot!(shown("v16_lib.a", &[]));
    insta::assert_snapshot!(shown("v11_lineinfo_name8.o", &["--summary"]));
}

#[test]
fn kernels_are_listed_with_what_they_take() {
    insta::assert_snapshot!(shown("v03_sm90_90a_ptx90a.o", &["--kernels"]));
}

#[test]
fn json_tells_the_same_and_more() {
    let document: Value = serde_json::from_str(&shown("v02_sm75_86_ptx86.o", &["--json", "--kernels"])).unwrap();
    let entries = document[0]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(document[0]["archs"][2]["arch"], "compute_86");
    let elf = entries.iter().find(|entry| entry["arch"] == "sm_86").unwrap();
    assert!(elf["kernels"][0]["resources"]["registers"].as_u64().unwrap() > 0);
    assert!(elf["toolkit"].as_str().unwrap().starts_with("13.0"));
}

#[test]
fn images_are_written_as_they_are() {
    let sandbox = vector("v03_sm90_90a_ptx90a.o");
    sandbox.run(&["inspect", "v03_sm90_90a_ptx90a.o", "--extract", "out"]).assert_code(0);
    let mut names: Vec<String> = sandbox
        .work()
        .join("out")
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["0000.sm_90.cubin", "0001.compute_90a.ptx", "0002.sm_90a.cubin"]);
    let ptx = fs_err::read_to_string(sandbox.work().join("out/0001.compute_90a.ptx")).unwrap();
    assert!(ptx.contains(".target sm_90a") && !ptx.ends_with('\0'));
    let cubin = sandbox.run(&["inspect", "out/0000.sm_90.cubin", "--json"]).assert_code(0).stdout;
    assert!(cubin.contains(r#""format": "cubin""#));
    // Files of one run do not write over one another.
    fs_err::copy(sandbox.work().join("v03_sm90_90a_ptx90a.o"), sandbox.work().join("b.o")).unwrap();
    sandbox.run(&["inspect", "v03_sm90_90a_ptx90a.o", "b.o", "--extract", "two"]).assert_code(0);
    assert!(sandbox.work().join("two/b.o/0000.sm_90.cubin").exists());
}

#[test]
fn wheels_folders_and_globs_are_looked_into() {
    let sandbox = Sandbox::new();
    let path = sandbox.work().join("site/p/_C.so");
    Library { fatbins: &[&["sm_80", "compute_80"]], ..Library::default() }.write(&path);
    wheel(&sandbox.work().join("p-1-py3-none-any.whl"), &[("p/_C.so", &fs_err::read(&path).unwrap())]);
    fs_err::write(sandbox.work().join("site/k.fatbin"), fatbin(&["sm_90"])).unwrap();
    let said = sandbox.run(&["inspect", "p-1-py3-none-any.whl", "site", "site/**/*.so", "--summary"]).assert_code(0);
    let heads: Vec<&str> = said.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    let want = [
        "p-1-py3-none-any.whl:p/_C.so: 2 images",
        "site/k.fatbin: 1 image",
        "site/p/_C.so: 2 images",
        "site/p/_C.so: 2 images",
    ];
    assert_eq!(heads, want);
    let said = sandbox.run(&["inspect", "nothing.so"]).assert_code(14);
    assert!(said.stderr.contains("error[cuwright::verify::no_file]"), "{}", said.stderr);
}

#[test]
fn what_is_no_file_is_told_as_what_it_is_and_nothing_is_waited_for() {
    let sandbox = Sandbox::new();
    let made = std::process::Command::new("mkfifo").arg(sandbox.work().join("pipe.so")).status().unwrap();
    assert!(made.success());
    fs_err::os::unix::fs::symlink("gone.so", sandbox.work().join("link.so")).unwrap();
    let args = ["/dev/null", "pipe.so", "link.so", "none.so", "x*.so"];
    let said = sandbox.run(&[&["inspect"], &args[..]].concat()).assert_code(14);
    insta::assert_snapshot!(said.shown(&sandbox));
    // The judge tells the same, as findings.
    let said = sandbox.run(&[&["verify", "--json"], &args[..]].concat()).assert_code(14);
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    let codes: Vec<&str> = document["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| input["findings"][0]["code"].as_str().unwrap())
        .collect();
    let (odd, none) = ("cuwright::verify::not_regular", "cuwright::verify::no_file");
    assert_eq!(codes, [odd, odd, none, none, none]);
    // In a folder, a pipe is as little a library as a text is.
    let said = sandbox.run(&["inspect", "."]).assert_code(14);
    assert!(said.stderr.contains("the folder holds no wheel and no library"), "{}", said.stderr);
}

#[test]
fn one_broken_wheel_hides_nothing_of_a_folder() {
    let sandbox = Sandbox::new();
    let dist = sandbox.work().join("dist");
    let library = Library { fatbins: &[&["sm_80"]], ..Library::default() }.write(&dist.join("lib/k.so"));
    let bytes = fs_err::read(&library).unwrap();
    let good = wheel(&dist.join("b-1-py3-none-linux_x86_64.whl"), &[("b/_C.so", &bytes)]);
    let whole = fs_err::read(good).unwrap();
    fs_err::write(dist.join("a-1-py3-none-linux_x86_64.whl"), &whole[..whole.len() / 2]).unwrap();
    fs_err::write(dist.join("c-1-py3-none-linux_x86_64.whl"), "<html>not found</html>").unwrap();
    let said = sandbox.run(&["inspect", "dist", "--summary"]).assert_code(14);
    let heads: Vec<&str> = said.stdout.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(heads, ["dist/b-1-py3-none-linux_x86_64.whl:b/_C.so: 1 image", "dist/lib/k.so: 1 image"]);
    for name in ["a-1", "c-1"] {
        let message = format!("dist/{name}-py3-none-linux_x86_64.whl cannot be read as a wheel");
        assert!(said.stderr.contains(&message), "{}", said.stderr);
    }
    let said = sandbox.run(&["verify", "dist", "--expect", "8.0", "--json"]).assert_code(14);
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    let inputs = document["inputs"].as_array().unwrap();
    let told: Vec<(&str, bool)> =
        inputs.iter().map(|input| (input["file"].as_str().unwrap(), input["ok"].as_bool().unwrap())).collect();
    let of = |name: &'static str, ok| (name, ok);
    let want = [
        of("dist/a-1-py3-none-linux_x86_64.whl", false),
        of("dist/b-1-py3-none-linux_x86_64.whl", true),
        of("dist/c-1-py3-none-linux_x86_64.whl", false),
        of("dist", true),
    ];
    assert_eq!(told, want);
}

#[test]
fn a_package_is_found_by_the_list_of_its_installer() {
    let sandbox = Sandbox::new();
    let venv = std::process::Command::new("python3")
        .args(["-m", "venv", "--without-pip", sandbox.work().join("env").as_str()])
        .status()
        .unwrap();
    assert!(venv.success());
    let lib = sandbox.work().join("env/lib");
    let site = lib.read_dir_utf8().unwrap().next().unwrap().unwrap().into_path().join("site-packages");
    Library { fatbins: &[&["sm_80"]], ..Library::default() }.write(&site.join("my_pkg/_C.so"));
    fs_err::create_dir_all(site.join("my_pkg-1.2.dist-info")).unwrap();
    let record = "my_pkg/_C.so,sha256=x,9\nmy_pkg/__init__.py,,\n../../../bin/x.so,,\n";
    fs_err::write(site.join("my_pkg-1.2.dist-info/RECORD"), record).unwrap();
    let said = sandbox.run(&["inspect", "--package", "My.Pkg", "--python", "env", "--summary"]).assert_code(0);
    assert!(said.stdout.starts_with("my-pkg 1.2/my_pkg/_C.so: 1 image\n"), "{}", said.stdout);
    let said = sandbox.run(&["verify", "--package", "my-pkg", "--python", "env", "--runs-on", "H100"]).assert_code(14);
    assert!(said.stderr.contains("my-pkg 1.2/my_pkg/_C.so does not run on H100"), "{}", said.stderr);
    // What is not there hides nothing of what is named beside it.
    Library { fatbins: &[&["sm_80"]], ..Library::default() }.write(&sandbox.work().join("k.so"));
    for command in ["inspect", "verify"] {
        let said = sandbox.run(&[command, "--package", "other", "--python", "env", "k.so"]).assert_code(14);
        assert!(said.stderr.contains("error[cuwright::verify::no_package]"), "{}", said.stderr);
        assert!(said.stdout.contains("k.so: "), "{}", said.stdout);
    }
}
