//! The renderers against the real consumers: what torch, CMake and nvcc make of our values equals the set.
//!
//! nvcc and torch are those of the shared toolchain, CMake comes once from its wheel; none needs a GPU. With
//! `CUWRIGHT_TEST_TORCH_WHEELS` (a folder of `torch-*.whl`, any platform) every torch in there is asked as well.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use camino::{Utf8Path, Utf8PathBuf};
use cuwright::compat;
use cuwright::compat::support::{self, Compiler};
use cuwright::domain::arch::dialect::{cmake, nvcc, torch};
use cuwright::domain::arch::{Arch, ArchSet, Form, effective_archs_of_line};
use cuwright::domain::toolchain::Toolchain;

use crate::support::{project, real};

/// The toolchain that the tests that build use, too.
static TOOLCHAIN: LazyLock<Toolchain> = LazyLock::new(|| {
    let sandbox = real::sandbox();
    let tree = real::example(&sandbox);
    let said = sandbox.run(&["toolchain", "install", tree.as_str(), "--json"]).assert_code(0);
    let answer: serde_json::Value = serde_json::from_str(said.stdout.trim()).unwrap();
    serde_json::from_value(answer["toolchain"].clone()).unwrap()
});

/// CMake out of its wheel, kept between runs.
fn cmake_program() -> Utf8PathBuf {
    const REQUIREMENT: &str = "cmake==4.4.5";
    let kept = Utf8Path::new(env!("CARGO_TARGET_TMPDIR")).join(REQUIREMENT.replace("==", "-"));
    let program = "cmake/data/bin/cmake";
    if !kept.join(program).is_file() {
        let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let pip = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
            .args([fresh.path().to_str().unwrap(), REQUIREMENT])
            .output()
            .unwrap();
        assert!(pip.status.success(), "{}", String::from_utf8_lossy(&pip.stderr));
        // Another run may have been faster; its copy is as good.
        if std::fs::rename(fresh.path(), &kept).is_ok() {
            let _ = fresh.keep();
        }
    }
    kept.join(program)
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

/// Asks the `cpp_extension.py` of one release about sets of the archs it accepts, and about those that it does not.
fn ask_torch(version: &str, cpp_extension: &Utf8Path) {
    let row = compat::torch(version).unwrap();
    let allowed: Vec<String> = row.archs.iter().map(ToString::to_string).collect();
    let sets = sets(&row.archs, 500, &[Form::SASS, Form::BOTH]);
    let values: Vec<String> = sets.iter().map(|set| torch::render(set, Some(&allowed)).unwrap()).collect();
    // Archs outside the table's list must be refused by torch as well, or the table is wrong.
    let every: Vec<Arch> = compat::toolkits().iter().flat_map(|toolkit| toolkit.archs.clone()).collect();
    let others: BTreeSet<Arch> = every.into_iter().filter(|arch| !row.accepts(*arch)).collect();
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();

    let mut python = Command::new("python3")
        .arg(project("tests/it/support/torch_flags.py"))
        .arg(cpp_extension)
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
}

#[test]
fn torch_makes_exactly_the_set_of_our_list() {
    let own = &TOOLCHAIN.torch;
    ask_torch(&own.version, &own.folder.join("utils/cpp_extension.py"));
    let Ok(folder) = std::env::var("CUWRIGHT_TEST_TORCH_WHEELS") else { return };
    let mut asked = 0;
    for wheel in Utf8Path::new(&folder).read_dir_utf8().unwrap().flatten() {
        let Some((version, _)) = wheel.file_name().strip_prefix("torch-").and_then(|rest| rest.split_once('-')) else {
            continue;
        };
        let temporary = tempfile::tempdir().unwrap();
        let extracted = Utf8Path::from_path(temporary.path()).unwrap().join("cpp_extension.py");
        let mut archive = zip::ZipArchive::new(fs_err::File::open(wheel.path()).unwrap()).unwrap();
        let mut entry = archive.by_name("torch/utils/cpp_extension.py").unwrap();
        std::io::copy(&mut entry, &mut fs_err::File::create(&extracted).unwrap()).unwrap();
        ask_torch(version, &extracted);
        asked += 1;
    }
    assert!(asked > 0, "{folder} holds no torch-*.whl");
}

fn nvcc_program() -> Utf8PathBuf {
    TOOLCHAIN.toolkit.home.join("bin/nvcc")
}

fn nvcc_archs() -> Vec<Arch> {
    compat::toolkit(TOOLCHAIN.toolkit.nvcc).unwrap().archs.clone()
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
fn nvcc_makes_exactly_the_images_of_our_flags() {
    let (program, version, archs) = (nvcc_program(), TOOLCHAIN.toolkit.nvcc, nvcc_archs());
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

/// One configure run, since that takes seconds: the first set comes from the environment, and each further one is the
/// property of a target, which reads the same grammar.
#[test]
fn cmake_gives_nvcc_exactly_our_set() {
    let program = cmake_program();
    // CMake's own list of families and suffixes grows slower than nvcc's; plain numbers and `a` are what it must know.
    let archs: Vec<Arch> = nvcc_archs().into_iter().filter(|arch| !arch.joined().ends_with('f')).collect();
    let sets = sets(&archs, 40, &[Form::SASS, Form::BOTH, Form::PTX]);
    let values: Vec<String> = sets.iter().map(|set| cmake::render(set, None).unwrap()).collect();
    let mut source = "cmake_minimum_required(VERSION 3.24)\nproject(x CUDA)\n".to_owned();
    for (number, value) in values.iter().enumerate() {
        let property = format!("set_target_properties(x{number} PROPERTIES CUDA_ARCHITECTURES \"{value}\")\n");
        let library = format!("add_library(x{number} STATIC a{number}.cu)\n");
        source.push_str(&library);
        source.push_str(if number > 0 { &property } else { "" });
    }
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("CMakeLists.txt"), source).unwrap();
    for number in 0..sets.len() {
        fs_err::write(folder.path().join(format!("a{number}.cu")), "__global__ void k() {}\n").unwrap();
    }
    let output = Command::new(&program)
        .args(["-S", ".", "-B", "build", "-G", "Ninja", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"])
        .arg(format!("-DCMAKE_CUDA_COMPILER={}", nvcc_program()))
        .arg(format!("-DCMAKE_CUDA_HOST_COMPILER={}", TOOLCHAIN.host.cxx))
        .arg(format!("-DCMAKE_MAKE_PROGRAM={}", TOOLCHAIN.ninja.as_ref().unwrap()))
        .env(cmake::ENVIRONMENT, &values[0])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let commands = fs_err::read_to_string(folder.path().join("build/compile_commands.json")).unwrap();
    let commands: Vec<serde_json::Value> = serde_json::from_str(&commands).unwrap();
    assert_eq!(commands.len(), sets.len());
    for (number, set) in sets.iter().enumerate() {
        let of = |command: &&serde_json::Value| command["file"].as_str().unwrap().ends_with(&format!("/a{number}.cu"));
        let line = commands.iter().find(of).unwrap()["command"].as_str().unwrap();
        let effective = effective_archs_of_line(line);
        assert_eq!((&effective.set, effective.unread.len()), (set, 0), "{line}");
    }
}
