//! Which toolchain is chosen on machines of many shapes, and what is said where none fits.
//!
//! What is a stand-in is said in `support/kits.rs`.

use crate::support::kits::{environment, gcc, machine, place, program, real_toolkit, toolkit, wheel_toolkit};
use crate::support::{Said, Sandbox};

const MODERN: [&str; 9] = ["5.0", "6.0", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "9.0a"];

fn plan(sandbox: &Sandbox, more: &[&str]) -> Said {
    sandbox.run(&[&["plan", "-v"], more].concat())
}

/// A machine with these toolkits below `/usr/local` and a torch in `env`.
fn with(toolkits: &[&str], torch: &str, archs: &[&str]) -> Sandbox {
    let sandbox = machine();
    for release in toolkits {
        toolkit(&place(&sandbox, &format!("usr/local/cuda-{release}")), release);
    }
    if let [first, ..] = toolkits {
        std::os::unix::fs::symlink(format!("cuda-{first}"), place(&sandbox, "usr/local/cuda")).unwrap();
    }
    environment(&sandbox.root().join("env"), torch, archs);
    let (env, bin) = (sandbox.root().join("env"), sandbox.root().join("old"));
    // Old toolkits want old compilers.
    gcc(&bin, "", "8.5.0");
    let path = format!("{bin}:/usr/local/bin:/usr/bin:/bin");
    sandbox.var("VIRTUAL_ENV", env.as_str()).var("PATH", &path)
}

fn holds(said: &Said, texts: &[&str]) {
    let all = format!("{}{}", said.stdout, said.stderr);
    // Lines are folded at the width of a page.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in texts {
        assert!(flat(&all).contains(&flat(text)), "`{text}` is not in\n{all}");
    }
}

#[test]
fn the_toolkit_next_door_is_taken_where_the_first_one_does_not_go_with_torch() {
    let sandbox = with(&["11.8", "12.6"], "2.5.1+cu124", &MODERN);
    let said = plan(&sandbox, &["--arch", "8.6"]).assert_code(0);
    let eleven = format!("CUDA 11.8.99 at {}/usr/local/cuda (a link to", sandbox.root().join("machine"));
    holds(&said, &[&eleven, "does not go with torch's CUDA 12.4", "/usr/local/cuda-12.6 (a usual place) is used"]);
    holds(&said, &["nvcc 12.6.99 differs from torch's CUDA 12.4 in the minor release, which torch accepts"]);
    // The same the other way round, and among several of one major.
    let said = plan(&with(&["12.6", "11.8"], "2.3.1+cu118", &MODERN), &["--arch", "8.6"]).assert_code(0);
    holds(&said, &["cuda-11.8 (a usual place) is used"]);
    let said = plan(&with(&["12.8", "12.4", "12.1"], "2.4.0+cu124", &MODERN), &["--arch", "8.6"]).assert_code(0);
    holds(&said, &["cuda-12.4 (a usual place) is used", "fits as well; another one is of torch's own release"]);
    // An arch that only one of them compiles decides before all that.
    let all = [&MODERN[..], &["12.0"]].concat();
    let said = plan(&with(&["12.4", "12.8"], "2.7.0+cu124", &all), &["--arch", "12.0"]).assert_code(0);
    holds(&said, &["cuda-12.8 (a usual place) is used", "fits torch, but does not compile for 12.0"]);
    // One that the user names goes before newer ones, but never before what fits.
    let sandbox = with(&["12.8", "12.6"], "2.4.0+cu124", &MODERN);
    let named = place(&sandbox, "usr/local/cuda-12.6");
    let sandbox = sandbox.var("CUDA_HOME", named.as_str());
    holds(&plan(&sandbox, &["--arch", "8.6"]).assert_code(0), &["cuda-12.6 (CUDA_HOME) is used"]);
    let said = plan(&sandbox, &["--arch", "8.6", "--cuda", "12.8"]).assert_code(0);
    holds(&said, &["is outside `==12.8.*`", "CUDA_HOME=", "is not used"]);
}

#[test]
fn a_release_that_neither_machine_nor_wheels_have_is_one_message_with_what_is_possible() {
    let sandbox = with(&["11.8", "12.6"], "2.5.1+cu124", &MODERN);
    let said = plan(&sandbox, &["--arch", "8.6", "--cuda", "12.1"]).assert_code(12);
    assert_eq!(said.stderr.matches("error[").count(), 1, "{}", said.stderr);
    holds(&said, &["error[cuwright::provision::no_nvcc_in_wheels]: CUDA 12.1 is not here, and wheels do not have it"]);
    holds(&said, &["is outside `==12.1.*`", "`--cuda 13.0`", "or use CUDA 12.6.99 at", "(`--cuda 12.6`)"]);
    let said = plan(&sandbox, &["--arch", "8.6", "--cuda", "11.8"]).assert_code(12);
    holds(&said, &["does not go with torch's CUDA 12.4", "for CUDA 11.x"]);
    // A bare machine says so, and what wheels have.
    let said = plan(&machine(), &["--arch", "9.0", "--cuda", "12.9"]).assert_code(12);
    holds(&said, &["no toolkit is on this machine", "wheels hold nvcc from CUDA 13.0 on"]);
    assert!(said.stderr.lines().count() < 16, "{}", said.stderr);
}

#[test]
fn a_runtime_without_nvcc_is_no_toolkit_and_the_torch_beside_it_is_not_used_in_silence() {
    let sandbox = machine();
    let prefix = sandbox.root().join("conda");
    environment(&prefix, "1.12.1+cu113", &["7.5", "8.6"]);
    fs_err::create_dir_all(prefix.join("conda-meta")).unwrap();
    fs_err::write(prefix.join("conda-meta/cudatoolkit-11.3.1-h2bc3f7f_2.json"), "{}").unwrap();
    fs_err::write(prefix.join("lib/libcudart.so.11.0"), "").unwrap();
    let sandbox = sandbox.var("CONDA_PREFIX", prefix.as_str()).var("CUDA_HOME", "/usr/local/no-such-cuda");
    let said = plan(&sandbox, &["--arch", "8.6"]).assert_code(0);
    holds(
        &said,
        &[
            "/usr/local/no-such-cuda (CUDA_HOME) does not exist",
            "torch 1.12.1+cu113 of",
            "is not used, and the wheel will not load beside it: no nvcc of CUDA 11.x is here",
            "with the CUDA runtime (cudatoolkit-11.3.1-h2bc3f7f_2), which brings no nvcc",
            "Install CUDA 11.3 and set CUDA_HOME to it",
        ],
    );
}

#[test]
fn thor_goes_by_the_name_that_toolkit_and_torch_know() {
    let torch28 = ["9.0", "10.0", "10.1", "12.0"];
    let torch29 = ["9.0", "10.0", "11.0", "12.0"];
    let run = |arch: &str, cuda: &str, torch: &str, archs: &[&str], code: i32| {
        plan(&with(&[cuda], torch, archs), &["--arch", arch]).assert_code(code)
    };
    run("10.1", "12.8", "2.8.0+cu128", &torch28, 0);
    run("11.0", "13.0", "2.9.0+cu130", &torch29, 0);
    holds(&run("11.0", "12.9", "2.9.0+cu129", &torch29, 12), &["Thor is 10.1 before CUDA 13.0"]);
    holds(&run("10.1", "13.0", "2.9.0+cu130", &torch29, 12), &["10.1 was renamed to 11.0 in CUDA 13.0"]);
    let said = run("10.1", "12.8", "2.9.0+cu128", &torch29, 12);
    holds(&said, &["torch 2.9.0+cu128 does not accept 10.1", "2.8 accepts 10.1", "say 11.0", "-gencode"]);
    // A project that CMake tells the archs does not ask torch's list.
    let sandbox = with(&["12.8"], "2.9.0+cu128", &torch29);
    let recipe = "schema = 1\npackage.name = \"thor\"\nsource.path = \".\"\nbuild.backend = \"cmake\"\n\
                  toolchain.build-requires = [\"ninja\"]\n";
    sandbox.file("CMakeLists.txt", "").file("cuwright.toml", recipe);
    let said = plan(&sandbox, &["--arch", "10.1"]).assert_code(0);
    holds(&said, &["CMAKE_CUDA_ARCHITECTURES=101"]);
}

#[test]
fn archs_beyond_the_toolkit_come_with_the_remedy_that_works_here() {
    // Too old: what the environment names, in one message, with the rest and its PTX.
    let list = "5.2 6.0 6.1 7.0 7.5 8.0 8.6 9.0+PTX";
    let sandbox = with(&["11.7"], "1.13.1+cu117", &[&MODERN[..], &["5.2", "6.1"]].concat());
    let said = plan(&sandbox.var("TORCH_CUDA_ARCH_LIST", list), &[]).assert_code(12);
    assert_eq!(said.stderr.matches("error[").count(), 1, "{}", said.stderr);
    holds(&said, &["nvcc 11.7.99 cannot compile for 9.0", "TORCH_CUDA_ARCH_LIST", "`5.2;6.0;6.1;7.0;7.5;8.0;8.6+PTX`"]);
    let said = plan(&with(&["10.2"], "1.10.0+cu102", &MODERN), &["--arch", "8.6"]).assert_code(12);
    holds(&said, &["nvcc 10.2.99 cannot compile for 8.6", "8.6 needs CUDA 11.1 or newer", "`7.5+PTX`"]);
    // Duplicates and permutations are one set; a toolkit of the time takes all of it.
    let many = "5.2;5.3;6.0;6.1;6.2;7.0;7.0+PTX;7.2;7.2+PTX;7.5;7.5+PTX;8.0;8.0+PTX;8.6;8.6+PTX";
    let all = ["5.2", "5.3", "6.0", "6.1", "6.2", "7.0", "7.2", "7.5", "8.0", "8.6"];
    let said = plan(&with(&["11.2"], "1.9.0+cu112", &all), &["--arch", many]).assert_code(0);
    holds(&said, &["5.2;5.3;6.0;6.1;6.2;7.0+PTX;7.2+PTX;7.5+PTX;8.0+PTX;8.6+PTX"]);
    let said = plan(&with(&["12.4"], "2.4.0+cu124", &MODERN), &["--arch", "8.6, 7.5;;8.6+PTX  7.5"]).assert_code(0);
    holds(&said, &["  archs       7.5;8.6+PTX"]);
    // Dropped: the other remedy, and no release is promised that cannot be had.
    let said = plan(&with(&["13.0"], "2.11.0+cu130", &MODERN), &["--arch", "60;70;80;90"]).assert_code(12);
    holds(&said, &["no longer compiles for 6.0 and 7.0", "remove them and build `8.0;9.0`"]);
    holds(&said, &["install CUDA 12.9 or older yourself"]);
    assert!(!said.stderr.contains("--cuda 12.9"), "{}", said.stderr);
    let said = plan(&with(&["13.0", "12.8"], "2.11.0+cu130", &MODERN), &["--arch", "6.0"]).assert_code(12);
    holds(&said, &["use CUDA 12.8.99 at", "`--cuda 12.8`"]);
    // The version of CUDA is no capability.
    let said = plan(&with(&["10.1"], "1.8.0+cu101", &MODERN), &["--arch", "10.1"]).assert_code(12);
    holds(&said, &["10.1 is the version of this CUDA toolkit, not a compute capability"]);
    assert!(!said.stderr.contains("12.8"), "{}", said.stderr);
}

#[test]
fn cards_that_the_toolkit_dropped_are_named_and_can_be_left_out() {
    let cards = |rows: &str, cuda: &str, torch: &str, archs: &[&str]| {
        let sandbox = with(&[cuda], torch, archs);
        let bin = sandbox.root().join("bin");
        program(&bin.join("nvidia-smi"), &format!("case \"$*\" in *query-gpu*) printf '{rows}';; *) exit 0;; esac"));
        let path = format!("{bin}:/usr/bin:/bin");
        sandbox.var("PATH", &path)
    };
    let three = "0, GPU-a, NVIDIA GeForce RTX 3090, 8.6\\n1, GPU-b, NVIDIA GeForce GTX 1070 Ti, 6.1\\n2, GPU-c, NVIDIA GeForce RTX 3090, 8.6\\n";
    let archs = [&MODERN[..], &["6.1", "12.0"]].concat();
    let said = plan(&cards(three, "12.4", "2.4.0+cu124", &archs), &[]);
    holds(&said.assert_code(0), &["  archs       6.1;8.6+PTX"]);
    let said = plan(&cards(three, "13.0", "2.11.0+cu130", &archs), &[]).assert_code(12);
    holds(&said, &["no longer compiles for 6.1", "6.1 is NVIDIA GeForce GTX 1070 Ti", "`--arch \"8.6+PTX\"`"]);
    let two = "0, GPU-a, NVIDIA GeForce RTX 5090, 12.0\\n1, GPU-b, NVIDIA GeForce RTX 3090, 8.6\\n";
    let said = plan(&cards(two, "12.8", "2.7.0+cu128", &archs), &[]).assert_code(0);
    holds(&said, &["  archs       8.6;12.0+PTX"]);
}

#[test]
fn without_gpu_or_list_nothing_starts() {
    let sandbox = with(&["11.8"], "2.3.1+cu118", &MODERN);
    for more in [&[][..], &["--arch", "native"][..]] {
        let said = plan(&sandbox, more).assert_code(11);
        holds(&said, &["nvcc needs no GPU", "--arch"]);
    }
}

#[test]
fn a_host_compiler_that_is_too_new_gives_way_to_one_that_fits() {
    let sandbox = |with_old: bool| {
        let sandbox = with(&["12.4"], "2.4.0+cu124", &MODERN);
        let bin = sandbox.root().join("bin");
        gcc(&bin, "", "14.2.0");
        if with_old {
            gcc(&bin, "-13", "13.3.0");
        }
        // Nothing of the real machine's compilers: links to what a plan needs besides.
        let python = std::process::Command::new("which").arg("python3").output().unwrap();
        let python = String::from_utf8(python.stdout).unwrap();
        program(&bin.join("python3"), &format!("exec {} \"$@\"", python.trim()));
        let path = bin.to_string();
        sandbox.var("PATH", &path)
    };
    let said = plan(&sandbox(true), &["--arch", "8.6"]).assert_code(0);
    holds(&said, &["is newer than nvcc 12.4.99 accepts (gcc up to 13)", "bin/g++-13 (PATH) is used"]);
    let bin = sandbox(true);
    holds(&plan(&bin, &["--arch", "8.6"]), &["CUDAHOSTCXX=", "g++-13"]);
    let said = plan(&sandbox(false), &["--arch", "8.6"]).assert_code(12);
    holds(&said, &["error[cuwright::preflight::host_compiler_too_new]: gcc 14.2.0 is newer than nvcc 12.4.99 accepts"]);
    holds(&said, &["host_config.h accepts gcc up to 13", "--cc gcc-13", "`-allow-unsupported-compiler` only silences"]);
    // A compiler that was named is kept, and the one beside it is the mend.
    let said = plan(&sandbox(true).var("CXX", "g++").var("CC", "gcc"), &["--arch", "8.6"]).assert_code(12);
    holds(&said, &["host_compiler_too_new", "for this build only: `--cc ", "gcc-13"]);
    holds(&plan(&sandbox(true), &["--arch", "8.6", "--cc", "gcc-13"]).assert_code(0), &["g++-13"]);
}

#[test]
fn everything_wrong_comes_at_once_and_variables_have_a_fate() {
    let sandbox = with(&["12.4"], "2.4.0+cu124", &["8.6"]);
    let bin = sandbox.root().join("bin");
    gcc(&bin, "-14", "14.2.0");
    let cxx = bin.join("g++-14").into_string();
    let sandbox = sandbox.var("CXX", &cxx).var("NVCC_APPEND_FLAGS", "-gencode=arch=compute_80,code=sm_80");
    let sandbox = sandbox.var("CFLAGS", "-O1").var("CUDAARCHS", "native").var("MAX_JOBS", "64");
    let said = plan(&sandbox, &["--arch", "3.5;12.0"]).assert_code(12);
    for code in ["arch_unsupported", "host_compiler_too_new", "arch_flags"] {
        assert!(said.stderr.contains(code), "{code} is not in\n{}", said.stderr);
    }
    assert_eq!(said.stderr.matches("error[").count(), 5, "{}", said.stderr);
    let said = sandbox.run(&["doctor"]).assert_code(12);
    holds(&said, &["NVCC_APPEND_FLAGS=-gencode=arch=compute_80,code=sm_80 is refused", "CFLAGS=-O1 is kept"]);
    holds(&said, &["CUDAARCHS=native does not reach the build", "MAX_JOBS=64 is a limit"]);
    holds(&said, &["cannot be built", "error[cuwright::preflight::arch_flags]", "host_compiler_too_new"]);
}

#[test]
fn a_limit_of_jobs_in_the_environment_is_kept_to_unless_j_says_otherwise() {
    let with_limit = |value: &str| with(&["12.4"], "2.4.0+cu124", &MODERN).var("MAX_JOBS", value);
    let said = plan(&with_limit("1"), &["--arch", "8.6"]).assert_code(0);
    holds(&said, &["compilers on 1 core by MAX_JOBS of ", "MAX_JOBS=1 is a limit"]);
    let said = plan(&with_limit("1"), &["--arch", "8.6", "-j", "3"]).assert_code(0);
    holds(&said, &["compilers on 3 cores as asked", "MAX_JOBS=1 is replaced: `-j` names the number"]);
    for wrong in ["0", "x", ""] {
        for command in ["plan", "build", "doctor"] {
            let said = with_limit(wrong).run(&[command, ".", "--arch", "8.6"]).assert_code(2);
            holds(&said, &["error[cuwright::usage::max_jobs]", &format!("`MAX_JOBS={wrong}`")]);
        }
        plan(&with_limit(wrong), &["--arch", "8.6", "-j", "2"]).assert_code(0);
    }
}

#[test]
fn doctor_refuses_what_a_plan_refuses_and_as_a_plan_does() {
    let sandbox = with(&["12.4"], "2.4.0+cu124", &MODERN);
    let both = |sandbox: &Sandbox, more: &[&str]| {
        let plan = plan(sandbox, more);
        for recipe in [&[][..], &["."]] {
            let doctor = sandbox.run(&[&["doctor"], recipe, more].concat());
            assert_eq!(doctor.code, plan.code, "{more:?}\n{}\n{}", plan.stderr, doctor.stdout);
            let codes = plan.stderr.lines().filter_map(|line| line.strip_prefix("error[")?.split(']').next());
            let codes: Vec<&str> = codes.collect();
            assert!(!codes.is_empty(), "{}", plan.stderr);
            for code in codes {
                assert!(doctor.stdout.contains(&format!("error[{code}]")), "{code}: {}", doctor.stdout);
            }
        }
        plan.code
    };
    assert_eq!(both(&sandbox, &["--arch", "3.5"]), Some(12));
    assert_eq!(both(&sandbox, &["--arch", "9.9"]), Some(12));
    assert_eq!(both(&sandbox, &["--arch", "8.6x"]), Some(2));
    assert_eq!(both(&sandbox, &["--arch", "native"]), Some(11));
    assert_eq!(both(&sandbox, &["--gpu", "RTX 99999"]), Some(2));
    assert_eq!(both(&sandbox, &["--arch", "8.6", "--profile", "none"]), Some(2));
    assert_eq!(both(&sandbox, &["--arch", "8.6", "--cuda", "new"]), Some(2));
    assert_eq!(both(&sandbox, &["--arch", "8.6", "--python", "/bin/ls"]), Some(12));
    let sandbox = sandbox.var("TORCH_CUDA_ARCH_LIST", ";;");
    assert_eq!(both(&sandbox, &[]), Some(2));
    // `/proc` is a disk without room; it is known before there is a toolchain as well.
    for (variable, place) in [("TMPDIR", "/proc"), ("CUWRIGHT_CACHE_DIR", "/proc/cuwright")] {
        for sandbox in [with(&["12.4"], "2.4.0+cu124", &MODERN), machine()] {
            sandbox.file("setup.py", "");
            assert_eq!(both(&sandbox.var(variable, place), &["--arch", "8.6"]), Some(12), "{variable}");
        }
    }
}

#[test]
fn the_real_toolkit_is_read_wherever_it_lies() {
    let wheel = wheel_toolkit();
    let sandbox = machine();
    real_toolkit(&wheel, &place(&sandbox, "usr/local/cuda-13.0"));
    environment(&sandbox.root().join("env"), "2.11.0+cu130", &MODERN);
    let env = sandbox.root().join("env");
    let sandbox = sandbox.var("VIRTUAL_ENV", env.as_str());
    let said = plan(&sandbox, &["--arch", "9.0", "--json"]).assert_code(0);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let taken = json[0]["considered"].as_array().unwrap().iter().find(|one| one["taken"] == true).unwrap();
    assert_eq!((taken["what"].as_str(), taken["version"].as_str()), (Some("toolkit"), Some("13.0.88")));
    // The older folder of a header decides about the compiler: the real nvcc reads the same file.
    let said = plan(&sandbox, &["--arch", "7.0"]).assert_code(12);
    holds(&said, &["nvcc 13.0.88 no longer compiles for 7.0"]);
}

/// One error of a run, as it is read.
fn block(sandbox: &Sandbox, said: &Said, code: &str) -> String {
    let text = said.shown(sandbox);
    let start = text.find(&format!("error[{code}]")).unwrap_or_else(|| panic!("{code} is not in {text}"));
    text[start..].split("\n\n").next().unwrap_or_default().to_owned()
}

#[test]
fn new_refusals_read_well() {
    let sandbox = with(&["12.4"], "2.4.0+cu124", &MODERN);
    let sandbox = sandbox.var("NVCC_APPEND_FLAGS", "-gencode=arch=compute_80,code=sm_80");
    let said = plan(&sandbox, &["--arch", "8.6"]).assert_code(12);
    insta::assert_snapshot!("arch_flags", block(&sandbox, &said, "cuwright::preflight::arch_flags"));
    let sandbox = with(&["12.4"], "2.4.0+cu124", &MODERN);
    let lib = sandbox.root().join("env/lib").read_dir_utf8().unwrap().flatten().next().unwrap();
    let torch = lib.path().join("site-packages/torch");
    fs_err::write(torch.join("_C.cpython-38-x86_64-linux-gnu.so"), "").unwrap();
    let said = plan(&sandbox, &["--arch", "8.6"]).assert_code(12);
    let text = block(&sandbox, &said, "cuwright::preflight::python_torch");
    // Which Python runs these tests is the machine's business.
    let version = lib.file_name().trim_start_matches("python3.");
    assert!(
        text.contains(&format!("is compiled for cp38, and Python 3.{version}.")) && text.contains("PYTHONPATH"),
        "{text}"
    );
    let said = plan(&with(&["11.8"], "2.3.1+cu118", &MODERN), &["--arch", "8.6", "--cuda", "12.1"]).assert_code(12);
    let text =
        said.stderr.lines().filter(|line| line.starts_with("error[") || line.starts_with("  help")).collect::<Vec<_>>();
    assert_eq!(text.len(), 4, "{text:#?}");
}

#[test]
fn a_conda_layout_of_the_real_toolkit_compiles_once_it_is_shaped() {
    let wheel = wheel_toolkit();
    let sandbox = machine();
    let prefix = sandbox.root().join("conda");
    environment(&prefix, "2.11.0+cu130", &MODERN);
    for entry in wheel.join("bin").read_dir_utf8().unwrap().flatten() {
        std::os::unix::fs::symlink(entry.path(), prefix.join("bin").join(entry.file_name())).unwrap();
    }
    let target = prefix.join("targets/x86_64-linux");
    fs_err::create_dir_all(&target).unwrap();
    for (from, to) in
        [("include", target.join("include")), ("lib64", target.join("lib")), ("nvvm", prefix.join("nvvm"))]
    {
        std::os::unix::fs::symlink(wheel.join(from), to).unwrap();
    }
    fs_err::create_dir_all(prefix.join("conda-meta")).unwrap();
    let sandbox = sandbox.var("CONDA_PREFIX", prefix.as_str());
    let said = sandbox.run(&["toolchain", "install", "--json"]).assert_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    let home = json["toolchain"]["toolkit"]["home"].as_str().unwrap().to_owned();
    assert_eq!(json["toolchain"]["toolkit"]["origin"], "CONDA_PREFIX");
    assert!(!std::path::Path::new(&home).join("bin/python").exists(), "only the toolkit's own programs");
    let compile = |program: &str, name: &str, args: &[&str]| {
        sandbox.file(name, "#include <cuda_runtime.h>\nint main() { return cudaDeviceSynchronize(); }\n");
        let mut command = std::process::Command::new(program);
        let output = command.args([name, "-o", "out"]).args(args).current_dir(sandbox.work()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    compile(&format!("{home}/bin/nvcc"), "a.cu", &["-arch=sm_90", "-cudart=shared"]);
    compile("g++", "a.cpp", &[&format!("-I{home}/include"), &format!("-L{home}/lib64"), "-lcudart"]);
}
