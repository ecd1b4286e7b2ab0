//! The renderers against the real consumers: what torch, CMake and nvcc make of our values equals the set.
//!
//! Not run by default, since it needs them: `CUWRIGHT_TEST_TORCH_WHEELS` (a folder of `torch-*.whl`, any platform),
//! `CUWRIGHT_TEST_NVCC` and `CUWRIGHT_TEST_CMAKE` (paths). `cargo test --test it -- --ignored consumers::`

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use camino::Utf8PathBuf;
use cuwright::compat;
use cuwright::compat::support::{self, Compiler};
use cuwright::domain::arch::dialect::{cmake, nvcc, torch};
use cuwright::domain::arch::{Arch, ArchSet, Form, effective_archs_of_line};
use cuwright::domain::version::CudaVersion;

use crate::support::project;

fn given(variable: &str) -> Utf8PathBuf {
    std::env::var(variable).unwrap_or_else(|_| panic!("set {variable}, see the head of this file")).into()
}

/// Sets over `archs`, the same ones in every run.
fn sets(archs: &[Arch], count: usize, forms: &[Form]) -> Vec<ArchSet> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below
    };
    (0..count).map(|_| (0..=next(8)).map(|_| (archs[next(archs.len())], forms[next(forms.len())])).collect()).collect()
}

#[test]
#[ignore = "needs torch wheels"]
fn torch_makes_exactly_the_set_of_our_list() {
    let folder = given("CUWRIGHT_TEST_TORCH_WHEELS");
    let mut releases = BTreeSet::new();
    for wheel in folder.read_dir_utf8().unwrap().flatten().filter(|entry| entry.file_name().starts_with("torch-")) {
        let version = wheel.file_name().split('-').nth(1).unwrap().to_owned();
        let row = compat::torch(&version).unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let extracted = temporary.path().join("cpp_extension.py");
        let archive = fs_err::File::open(wheel.path()).unwrap();
        let mut archive = zip::ZipArchive::new(archive).unwrap();
        let mut entry = archive.by_name("torch/utils/cpp_extension.py").unwrap();
        std::io::copy(&mut entry, &mut fs_err::File::create(&extracted).unwrap()).unwrap();

        let allowed: Vec<String> = row.archs.iter().map(ToString::to_string).collect();
        let sets = sets(&row.archs, 500, &[Form::SASS, Form::BOTH]);
        let values: Vec<String> = sets.iter().map(|set| torch::render(set, Some(&allowed)).unwrap()).collect();
        // Archs outside the table's list must be refused by torch as well, or the table is wrong.
        let every: Vec<Arch> = compat::toolkits().iter().flat_map(|toolkit| toolkit.archs.clone()).collect();
        let others: BTreeSet<Arch> = every.into_iter().filter(|arch| !row.accepts(*arch)).collect();
        let others: Vec<String> = others.iter().map(ToString::to_string).collect();

        let mut python = Command::new("python3")
            .arg(project("tests/it/support/torch_flags.py"))
            .arg(&extracted)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let asked = [values, others.clone()].concat().join("\n") + "\n";
        python.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
        let said = String::from_utf8(python.wait_with_output().unwrap().stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), sets.len() + others.len(), "torch {version}");
        for (set, line) in sets.iter().zip(&lines) {
            assert_eq!(&effective_archs_of_line(line).set, set, "torch {version}: {line}");
        }
        for (other, line) in others.iter().zip(&lines[sets.len()..]) {
            assert!(line.starts_with("error: Unknown CUDA arch"), "torch {version} accepts {other}: {line}");
        }
        releases.insert(row.minor());
    }
    assert!(releases.len() >= 3, "three releases are wanted, found {releases:?}");
}

fn nvcc_and_its_archs() -> (Utf8PathBuf, CudaVersion, Vec<Arch>) {
    let program = given("CUWRIGHT_TEST_NVCC");
    let text = String::from_utf8(Command::new(&program).arg("--version").output().unwrap().stdout).unwrap();
    let version = text.split(" release ").nth(1).unwrap().split(',').next().unwrap();
    let version: CudaVersion = version.parse().unwrap();
    (program, version, compat::toolkit(version).unwrap().archs.clone())
}

/// The images that nvcc would put into a file: `--image3=kind=elf,sm=86,…` of its call of fatbinary.
fn images(dry_run: &str) -> ArchSet {
    let mut set = ArchSet::new();
    for image in dry_run.split("--image3=").skip(1) {
        let field = |name: &str| image.split(['"', ' ', ',']).find_map(|part| part.strip_prefix(name));
        let arch = Arch::from_joined(field("sm=").unwrap()).unwrap();
        set.insert(arch, if field("kind=").unwrap() == "elf" { Form::SASS } else { Form::PTX });
    }
    set
}

#[test]
#[ignore = "needs nvcc"]
fn nvcc_makes_exactly_the_images_of_our_flags() {
    let (program, version, archs) = nvcc_and_its_archs();
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("a.cu"), "__global__ void k() {}\n").unwrap();
    for set in sets(&archs, 60, &[Form::SASS, Form::BOTH, Form::PTX]) {
        let refused = !support::against_compiler(&set, Compiler::release(version)).is_empty();
        let output = Command::new(&program)
            .args(["--dryrun", "-c", "a.cu"])
            .args(nvcc::flags(&set))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.success(), !refused, "what we refuse, nvcc refuses, and nothing else: {set}: {text}");
        if !refused {
            assert_eq!(images(&text), set, "{text}");
        }
    }
}

#[test]
#[ignore = "needs CMake and nvcc"]
fn cmake_gives_nvcc_exactly_our_set() {
    let (program, _, archs) = nvcc_and_its_archs();
    let cmake_program = given("CUWRIGHT_TEST_CMAKE");
    // CMake's own list of families and suffixes grows slower than nvcc's; plain numbers and `a` are what it must know.
    let archs: Vec<Arch> = archs.into_iter().filter(|arch| !arch.joined().ends_with('f')).collect();
    let folder = tempfile::tempdir().unwrap();
    let source = "cmake_minimum_required(VERSION 3.24)\nproject(x CUDA)\nadd_library(x STATIC a.cu)\n";
    fs_err::write(folder.path().join("CMakeLists.txt"), source).unwrap();
    fs_err::write(folder.path().join("a.cu"), "__global__ void k() {}\n").unwrap();
    for (number, set) in sets(&archs, 6, &[Form::SASS, Form::BOTH, Form::PTX]).iter().enumerate() {
        let build = folder.path().join(number.to_string());
        let value = cmake::render(set, None).unwrap();
        let output = Command::new(&cmake_program)
            .args(["-S", ".", "-B"])
            .arg(&build)
            .arg(format!("-DCMAKE_CUDA_ARCHITECTURES={value}"))
            .arg(format!("-DCMAKE_CUDA_COMPILER={program}"))
            .arg("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{value}: {}", String::from_utf8_lossy(&output.stderr));
        let commands = fs_err::read_to_string(build.join("compile_commands.json")).unwrap();
        let commands: serde_json::Value = serde_json::from_str(&commands).unwrap();
        let line = commands[0]["command"].as_str().unwrap();
        let effective = effective_archs_of_line(line);
        assert_eq!((&effective.set, effective.unread.len()), (set, 0), "{line}");
    }
}
