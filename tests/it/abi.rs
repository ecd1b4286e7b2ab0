//! `verify` on what files link: another torch, another CUDA runtime, tags that promise too much, paths of a build.

use crate::support::Sandbox;
use crate::support::artifact::{Library, wheel};

/// A sandbox with a torch 2.3.0 for CUDA 12.1 whose libraries export what `symbols` define.
fn with_torch(symbols: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("torch/version.py", "__version__ = '2.3.0+cu121'\ncuda = '12.1'\n");
    let soname = |name: &str| format!("-Wl,-soname,{name}");
    for (name, source) in [("libc10.so", "int c10_here;"), ("libc10_cuda.so", symbols), ("libtorch_cpu.so", "int t;")] {
        Library { source, link: &[&soname(name)], ..Library::default() }
            .write(&sandbox.work().join("torch/lib").join(name));
    }
    sandbox
}

/// Links `name` against the given libraries of the sandbox's torch.
fn extension(sandbox: &Sandbox, name: &str, source: &str, libraries: &[&str]) {
    let folder = format!("-L{}/torch/lib", sandbox.work());
    let mut link = vec![folder.as_str(), "-Wl,--no-as-needed"];
    link.extend(libraries);
    Library { source, fatbins: &[&["sm_80"]], link: &link }.write(&sandbox.work().join(name));
}

#[test]
fn a_symbol_of_another_torch_is_named_with_the_form_that_is_there() {
    let sandbox = with_torch("void _ZN3c104cuda9SetDeviceEa(char x) {} void _ZN3c104cuda9GetDeviceEPa(char *x) {}");
    let source = "void _ZN3c104cuda9SetDeviceEi(int); void f(void) { _ZN3c104cuda9SetDeviceEi(1); }";
    extension(&sandbox, "flash_attn_2_cuda.so", source, &["-lc10_cuda", "-lc10"]);
    let said = sandbox.run(&["verify", "flash_attn_2_cuda.so", "--torch-dir", "torch"]).assert_code(14);
    insta::assert_snapshot!(said.stderr);
    // Without a torch to compare with, nothing is claimed.
    let said = sandbox.run(&["verify", "flash_attn_2_cuda.so", "--json"]).assert_code(0);
    assert!(said.stdout.contains(r#""unjudged": 1"#), "{}", said.stdout);
}

#[test]
fn a_symbol_that_the_file_does_not_link_is_a_warning() {
    let sandbox = with_torch("void _ZN3c104cuda9SetDeviceEi(int x) {}");
    let source = "void _ZN3c104cuda9SetDeviceEi(int); void f(void) { _ZN3c104cuda9SetDeviceEi(1); }";
    extension(&sandbox, "_C.so", source, &["-lc10"]);
    let said = sandbox.run(&["verify", "_C.so", "--torch-dir", "torch/lib"]).assert_code(0);
    assert!(said.stderr.contains("_C.so uses libc10_cuda.so without linking it"), "{}", said.stderr);
    extension(&sandbox, "_C.so", source, &["-lc10_cuda"]);
    let said = sandbox.run(&["verify", "_C.so", "--torch-dir", "."]).assert_code(0);
    assert_eq!(said.stderr, "");
}

#[test]
fn a_cuda_runtime_of_another_major_is_told_with_both_numbers() {
    let sandbox = with_torch("int c;");
    let stub =
        Library { source: "void cudaMalloc(void) {}", link: &["-Wl,-soname,libcudart.so.11.0"], ..Library::default() };
    stub.write(&sandbox.work().join("torch/lib/libcudart.so"));
    let source = "void cudaMalloc(void); void f(void) { cudaMalloc(); }";
    extension(&sandbox, "mmcv/_ext.so", source, &["-lcudart", "-lc10"]);
    let said = sandbox.run(&["verify", "mmcv/_ext.so", "--torch-dir", "torch"]).assert_code(14);
    insta::assert_snapshot!(said.stderr);
}

#[test]
fn strings_of_the_old_abi_do_not_fit_a_torch_of_the_new() {
    let sandbox = with_torch("int c;");
    sandbox.file("torch/version.py", "__version__ = '2.11.0+cu130'\ncuda = '13.0'\n");
    extension(&sandbox, "_C.so", "void _ZN3c105raiseESs(int); void f(void) { _ZN3c105raiseESs(1); }", &["-lc10"]);
    let said = sandbox.run(&["verify", "_C.so", "--torch-dir", "torch"]).assert_code(14);
    let claim =
        "error[cuwright::verify::cxx_abi]: _C.so was compiled for the old C++ ABI, and torch 2.11.0+cu130 uses C++11";
    assert!(said.stderr.contains(claim), "{}", said.stderr);
}

#[test]
fn a_path_of_the_build_is_an_error_only_where_a_library_hangs_on_it() {
    let sandbox = Sandbox::new();
    let folder = sandbox.work().join("elsewhere");
    let dep =
        Library { source: "int dep(void) { return 1; }", link: &["-Wl,-soname,libdep.so.7"], ..Library::default() };
    dep.write(&folder.join("libdep.so.7"));
    let source = "int dep(void); int f(void) { return dep(); }";
    let (run, dep) = (format!("-Wl,-rpath,{folder}"), format!("{folder}/libdep.so.7"));
    Library { source, link: &[&run, &dep], ..Library::default() }.write(&sandbox.work().join("a.so"));
    let said = sandbox.run(&["verify", "a.so"]).assert_code(14);
    insta::assert_snapshot!(said.shown(&sandbox));
    Library { link: &["-Wl,-rpath,/home/me/build/lib"], ..Library::default() }.write(&sandbox.work().join("b.so"));
    let said = sandbox.run(&["verify", "b.so"]).assert_code(0);
    assert!(said.stderr.contains("b.so searches /home/me/build/lib for libraries"), "{}", said.stderr);
    // Without the path, the library is in no place that anybody has.
    Library { source, link: &[&dep], ..Library::default() }.write(&sandbox.work().join("c.so"));
    let said = sandbox.run(&["verify", "c.so"]).assert_code(0);
    assert!(said.stderr.contains("c.so needs libdep.so.7, which is not here"), "{}", said.stderr);
    // Beside the file it is found.
    fs_err::create_dir_all(sandbox.work().join("site")).unwrap();
    fs_err::copy(folder.join("libdep.so.7"), sandbox.work().join("site/libdep.so.7")).unwrap();
    fs_err::copy(sandbox.work().join("c.so"), sandbox.work().join("site/c.so")).unwrap();
    assert_eq!(sandbox.run(&["verify", "site"]).assert_code(0).stderr, "");
}

fn said_machine() -> &'static str {
    std::env::consts::ARCH
}

#[test]
fn a_tag_must_hold_for_every_file() {
    let sandbox = Sandbox::new();
    let source = "#include <string.h>\nvoid f(char *a, char *b, unsigned long n) { memcpy(a, b, n); }";
    let path = Library { source, fatbins: &[&["sm_80"]], ..Library::default() }.write(&sandbox.work().join("_C.so"));
    let bytes = fs_err::read(path).unwrap();
    let machine = said_machine();
    for (platform, code) in [
        (format!("manylinux1_{machine}"), 14),
        (format!("manylinux_2_40_{machine}"), 0),
        (format!("linux_{machine}"), 0),
        ("manylinux_2_40_s390x".to_owned(), 14),
    ] {
        let name = format!("p-1-cp311-cp311-{platform}.whl");
        wheel(&sandbox.work().join(&name), &[("p/_C.so", &bytes)]);
        let said = sandbox.run(&["verify", &name, "--expect", "8.0"]).assert_code(code);
        let claim = match platform.as_str() {
            "manylinux_2_40_s390x" => "the wheel is tagged manylinux_2_40_s390x",
            _ if code == 14 => "is tagged manylinux1_",
            _ => "",
        };
        assert!(said.stderr.contains(claim), "{}", said.stderr);
    }
}

#[test]
fn abi3_is_a_promise_about_symbols() {
    let sandbox = Sandbox::new();
    let source = "void *PyFrame_GetBack(void *); void *PyObject_Vectorcall(void); void *PyInit__C(void) {\
        PyObject_Vectorcall(); return PyFrame_GetBack(0); }";
    let path =
        Library { source, fatbins: &[&["sm_80"]], ..Library::default() }.write(&sandbox.work().join("_C.abi3.so"));
    let said = sandbox.run(&["verify", "_C.abi3.so"]).assert_code(14);
    assert!(said.stderr.contains("`PyFrame_GetBack` is not part of the stable ABI"), "{}", said.stderr);
    let source = source
        .replace("PyFrame_GetBack(void *)", "PyModule_New(void *)")
        .replace("PyFrame_GetBack(0)", "PyModule_New(0)");
    let path = Library { source: &source, fatbins: &[&["sm_80"]], ..Library::default() }.write(&path);
    sandbox.run(&["verify", "_C.abi3.so"]).assert_code(0);
    let bytes = fs_err::read(path).unwrap();
    let name = format!("p-1-cp39-abi3-linux_{}.whl", said_machine());
    wheel(&sandbox.work().join(&name), &[("p/_C.so", &bytes)]);
    let said = sandbox.run(&["verify", &name]).assert_code(14);
    assert!(said.stderr.contains("`PyObject_Vectorcall` came with Python 3.12"), "{}", said.stderr);
}

#[test]
fn a_second_libstdcxx_is_warned_of_and_the_shared_one_is_not() {
    let sandbox = Sandbox::new();
    let source = "#include <sstream>\nstd::string f(int n) { std::ostringstream s; s << n; return s.str(); }\n";
    sandbox.file("f.cpp", source);
    let link = |name: &str, extra: &[&str]| {
        let mut compiler = std::process::Command::new("g++");
        compiler.args(["-shared", "-fPIC", "f.cpp", "-o", name]).args(extra).current_dir(sandbox.work());
        assert!(compiler.status().unwrap().success());
    };
    link("own.so", &["-static-libstdc++"]);
    link("shared.so", &[]);
    let warned = |name: &str| sandbox.run(&["verify", name]).assert_code(0).stderr.contains("a libstdc++ of its own");
    assert!(warned("own.so"));
    assert!(!warned("shared.so"));
}
