//! Odd wheels, and legal ones that must pass.

use super::*;

struct Wheel {
    facts: Facts,
    torch: Option<&'static str>,
    cuda: Option<u16>,
}

fn wheel(name: &str, files: &[(&str, Format)]) -> Wheel {
    let parsed = parse_name(name).unwrap();
    let tags: Vec<String> = parsed.tags.iter().map(|t| format!("Tag: {}-{}-{}", t.python, t.abi, t.platform)).collect();
    let tags = tags.join("\n");
    let facts = Facts {
        name: name.to_owned(),
        dist_info: vec![format!("{}-{}", parsed.package, parsed.version)],
        wheel: Some(format!("Wheel-Version: 1.0\nRoot-Is-Purelib: {}\n{tags}\n", files.is_empty())),
        metadata: Some(format!("Metadata-Version: 2.1\nName: {}\nVersion: {}\n", parsed.package, parsed.version)),
        binaries: files.iter().map(|(file, format)| ((*file).to_owned(), *format)).collect(),
    };
    Wheel { facts, torch: None, cuda: None }
}

impl Wheel {
    fn metadata(mut self, line: &str) -> Self {
        let metadata = self.facts.metadata.as_mut().unwrap();
        metadata.push_str(line);
        metadata.push('\n');
        self
    }

    fn with(mut self, torch: &'static str, cuda: u16) -> Self {
        (self.torch, self.cuda) = (Some(torch), Some(cuda));
        self
    }

    fn codes(&self) -> Vec<&'static str> {
        let beside = Beside { torch: self.torch, cuda: self.cuda };
        let short = |code: &'static str| code.rsplit(':').next().unwrap();
        judge(&self.facts, beside).iter().map(|finding| short(finding.problem.code())).collect()
    }
}

const ELF: &[(&str, Format)] = &[("x/_C.cpython-311-x86_64-linux-gnu.so", Format::Elf)];

#[test]
fn legal_wheels_pass() {
    let plain = "x-1.0-cp311-cp311-linux_x86_64.whl";
    for (name, files) in [
        (plain, ELF),
        ("x-1.0-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", ELF),
        ("x-1.0+cu130-cp311-cp311-linux_x86_64.whl", ELF),
        ("x-1.0-py3-none-any.whl", &[]),
        ("x-1.0-py2.py3-none-any.whl", &[]),
        ("x-1.0-py3-none-manylinux2014_x86_64.whl", &[("x/lib/libx.so.1", Format::Elf)]),
        ("x-1.0-cp39-abi3-manylinux_2_28_x86_64.whl", &[("x/_C.abi3.so", Format::Elf)]),
        ("x-1.0-cp311-cp311-linux_x86_64.whl", &[("x/_C.so", Format::Elf), ("x/libx.so", Format::Elf)]),
        ("x-1.0-cp313-cp313t-linux_x86_64.whl", &[("x/_C.cpython-313t-x86_64-linux-gnu.so", Format::Elf)]),
        ("x-1.0-cp311-cp311-win_amd64.whl", &[("x/_C.cp311-win_amd64.pyd", Format::Pe)]),
        ("x-1.0-cp311-cp311-macosx_11_0_arm64.whl", &[("x/_C.cpython-311-darwin.so", Format::MachO)]),
        (
            "x-1.0-cp310.cp311-cp310.cp311-linux_x86_64.whl",
            &[("x/_C.cpython-310-x86_64-linux-gnu.so", Format::Elf), ELF[0]],
        ),
    ] {
        // The last of these is tagged for combinations (cp310-cp311) that no Python has; the files serve the real ones.
        assert_eq!(wheel(name, files).codes(), Vec::<&str>::new(), "{name}");
    }
    let good = wheel(plain, ELF).metadata("Requires-Python: >=3.8").metadata("Requires-Dist: torch>=2.0");
    assert_eq!(good.with("2.11.0+cu130", 13).codes(), Vec::<&str>::new());
    let conditional = wheel(plain, ELF).metadata("Requires-Dist: torch==1.0; extra == \"old\"");
    assert_eq!(conditional.with("2.11.0", 13).codes(), Vec::<&str>::new());
    let renamed = wheel("My_Ext-1.0-cp311-cp311-linux_x86_64.whl", ELF);
    let mut facts = renamed.facts.clone();
    facts.dist_info = vec!["my_ext-1.0".to_owned()];
    assert!(judge(&facts, Beside::default()).is_empty());
    let mut described = wheel(plain, ELF).metadata("\nRequires-Dist: torch==1.0\nis what the description says");
    described.torch = Some("2.11.0");
    assert_eq!(described.codes(), Vec::<&str>::new());
}

#[test]
fn a_wheel_for_another_platform_or_python_is_refused() {
    let pe = &[("x/_C.cp311-win_amd64.pyd", Format::Pe)][..];
    let abi3 = &[("x/_C.abi3.so", Format::Elf)][..];
    let elf312 = &[("x/_C.cpython-312-x86_64-linux-gnu.so", Format::Elf)][..];
    let threaded = &[("x/_C.cpython-313t-x86_64-linux-gnu.so", Format::Elf)][..];
    for (name, files, code) in [
        ("x-1.0-cp312-cp312-win_amd64.whl", ELF, &["wheel_platform", "wheel_python"][..]),
        ("x-1.0-cp311-cp311-win_amd64.whl", ELF, &["wheel_platform"]),
        ("x-1.0-cp311-cp311-macosx_11_0_arm64.whl", ELF, &["wheel_platform"]),
        ("x-1.0-cp311-cp311-linux_x86_64.whl", pe, &["wheel_platform"]),
        ("x-1.0-py3-none-any.whl", abi3, &["wheel_platform"]),
        ("x-1.0-cp311-none-any.whl", ELF, &["wheel_platform"]),
        ("x-1.0-cp312-cp312-linux_x86_64.whl", ELF, &["wheel_python"]),
        ("x-1.0-cp311-cp311-linux_x86_64.whl", elf312, &["wheel_python"]),
        ("x-1.0-cp39-abi3-linux_x86_64.whl", ELF, &["wheel_python"]),
        ("x-1.0-cp313-cp313-linux_x86_64.whl", threaded, &["wheel_python"]),
        ("x-1.0-cp313-cp313t-linux_x86_64.whl", ELF, &["wheel_python"]),
        ("x-1.0-cp310.cp311-none-linux_x86_64.whl", ELF, &["wheel_python"]),
    ] {
        assert_eq!(wheel(name, files).codes(), code, "{name}");
    }
}

#[test]
fn what_a_wheel_says_twice_must_agree() {
    let plain = "x-1.0-cp311-cp311-linux_x86_64.whl";
    let change = |change: &dyn Fn(&mut Facts)| {
        let mut wheel = wheel(plain, ELF);
        change(&mut wheel.facts);
        wheel.codes()
    };
    let tag = |tag: &'static str| change(&|facts| facts.wheel = Some(format!("Root-Is-Purelib: false\nTag: {tag}\n")));
    assert_eq!(tag("cp311-cp311-linux_aarch64"), ["wheel_tags"]);
    assert_eq!(tag("cp312-cp312-linux_x86_64"), ["wheel_tags", "wheel_python"]);
    assert_eq!(tag("py3-none-any"), ["wheel_tags", "wheel_platform"]);
    assert_eq!(change(&|facts| facts.wheel = Some("Root-Is-Purelib: true\n".to_owned())), ["wheel_platform"]);
    assert_eq!(change(&|facts| facts.wheel = None), ["wheel_incomplete"]);
    assert_eq!(change(&|facts| facts.metadata = None), ["wheel_incomplete"]);
    assert_eq!(change(&|facts| facts.dist_info.clear()), ["wheel_incomplete"]);
    assert_eq!(change(&|facts| facts.dist_info.push("y-2".to_owned())), ["wheel_incomplete"]);
    assert_eq!(change(&|facts| facts.metadata = Some("Name: y\nVersion: 1.0\n".to_owned())), ["wheel_name"]);
    assert_eq!(change(&|facts| facts.metadata = Some("Name: x\nVersion: 2.0\n".to_owned())), ["wheel_name"]);
    for name in ["x.whl", "x-1.0.whl", "x-1.0-cp311-linux_x86_64.whl", "a-b-c-d-e-f-g-h.whl", ""] {
        assert_eq!(change(&|facts| name.clone_into(&mut facts.name)), ["wheel_name"], "{name}");
    }
}

#[test]
fn requirements_must_fit_what_it_was_built_with() {
    let plain = "x-1.0-cp311-cp311-linux_x86_64.whl";
    for (line, bad) in [
        ("Requires-Python: >=3.12", true),
        ("Requires-Python: <3.11", true),
        ("Requires-Python: >3.11.2", false),
        ("Requires-Dist: torch==2.1.0", true),
        ("Requires-Dist: torch<2.11", true),
        ("Requires-Dist: torch (==2.11.0)", false),
        ("Requires-Dist: torch==2.11.0+cu130", false),
        ("Requires-Dist: nvidia-cublas-cu12", true),
        ("Requires-Dist: nvidia-cudnn-cu13>=9", false),
        ("Requires-Dist: numpy", false),
    ] {
        let codes = wheel(plain, ELF).metadata(line).with("2.11.0+cu130", 13).codes();
        assert_eq!(codes, if bad { vec!["wheel_requires"] } else { vec![] }, "{line}");
    }
}
