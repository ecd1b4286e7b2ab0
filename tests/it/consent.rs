//! Nothing runs before a build was asked for: commands that only look start no code of the working folder, of
//! `PYTHONPATH`, of the user's packages or of a `PATH` that names the working folder.
//!
//! Every trap leaves a line in one file when it runs. Each trap is first sprung on purpose, so that none is a dud.

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::{Sandbox, project};

/// Modules that Python or its tools import by themselves, or that a probe is likely to import.
const MODULES: [&str; 13] = [
    "json",
    "os",
    "site",
    "sysconfig",
    "sitecustomize",
    "usercustomize",
    "torch",
    "setup",
    "conftest",
    "pip",
    "setuptools",
    "platform",
    "re",
];
/// Programs that cuwright asks for their version, or that builds start.
const PROGRAMS: [&str; 14] = [
    "python3",
    "python",
    "g++",
    "gcc",
    "c++",
    "nvcc",
    "ninja",
    "cmake",
    "bazel",
    "uv",
    "git",
    "nvidia-smi",
    "sccache",
    "ptxas",
];

struct Traps {
    sandbox: Sandbox,
    canary: Utf8PathBuf,
}

impl Traps {
    fn lay() -> Self {
        let sandbox = Sandbox::new();
        let canary = sandbox.root().join("canary");
        let traps = Self { sandbox, canary };
        let (work, modules) = (traps.sandbox.work(), traps.sandbox.root().join("modules"));
        let user = traps.sandbox.root().join("home/.local/lib").join(python_folder()).join("site-packages");
        for folder in [&work, &modules, &user] {
            for name in MODULES {
                traps.module(&folder.join(format!("{name}.py")));
            }
        }
        fs_err::write(user.join("trap.pth"), format!("import sys; {}\n", traps.python("pth"))).unwrap();
        for name in PROGRAMS {
            traps.program(&work.join(name));
        }
        fs_err::write(work.join("CMakeLists.txt"), "file(APPEND canary cmake)\n").unwrap();
        // What bash reads before a script.
        // A tool that is a script of bash, in a folder of `PATH` that counts.
        let tools = traps.sandbox.root().join("tools");
        fs_err::create_dir_all(&tools).unwrap();
        traps.program(&tools.join("ccache"));
        fs_err::write(tools.join("ccache"), "#!/bin/bash\necho ccache version 4.8\n").unwrap();
        fs_err::write(work.join("startup.sh"), format!("echo startup.sh >> {}\n", traps.canary)).unwrap();
        fs_err::write(work.join("uv.toml"), "not = toml = at all\n").unwrap();
        fs_err::write(work.join("pyproject.toml"), "[tool.uv]\nindex-url = 5\n[project]\nname = \"x\"\n").unwrap();
        fs_err::write(work.join(".bazelrc"), "startup --host_jvm_args=-bad\n").unwrap();
        fs_err::write(work.join("a.log"), "ninja: build stopped: subcommand failed.\n").unwrap();
        traps
    }

    fn python(&self, name: &str) -> String {
        format!("open({:?}, 'a').write({:?} + chr(10))", self.canary.as_str(), name)
    }

    fn module(&self, path: &Utf8Path) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, format!("{}\n", self.python(path.as_str()))).unwrap();
    }

    fn program(&self, path: &Utf8Path) {
        use std::os::unix::fs::PermissionsExt as _;
        fs_err::write(path, format!("#!/bin/sh\necho {path} >> {}\n", self.canary)).unwrap();
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a command with every trap in reach, and gives what was sprung.
    fn sprung_by(&self, args: &[&str]) -> String {
        let _ = fs_err::remove_file(&self.canary);
        let mut command = self.sandbox.command(args);
        command
            .env("PATH", format!(".::{}:/usr/local/bin:/usr/bin:/bin:./", self.sandbox.root().join("tools")))
            .env("PYTHONPATH", format!("{}:", self.sandbox.root().join("modules")))
            .env("BASH_ENV", self.sandbox.work().join("startup.sh"))
            .env("ENV", self.sandbox.work().join("startup.sh"))
            .env("LD_LIBRARY_PATH", ".:")
            .env("PYTHONSTARTUP", self.sandbox.work().join("setup.py"));
        let said = crate::support::Said::of(command);
        assert!(said.code.is_some_and(|code| code != 1 && code != 101), "{args:?}: {} {}", said.stdout, said.stderr);
        fs_err::read_to_string(&self.canary).unwrap_or_default()
    }
}

/// `python3.11`: the folder's name under `lib`, asked of the Python that the sandbox sees.
fn python_folder() -> String {
    let ask = "import sys; print('python%d.%d' % sys.version_info[:2])";
    let said = std::process::Command::new("/usr/bin/env")
        .args(["-i", "PATH=/usr/local/bin:/usr/bin:/bin", "python3", "-I", "-c", ask])
        .output()
        .unwrap();
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_traps_are_no_duds() {
    let traps = Traps::lay();
    let python = |args: &[&str], path: Option<&str>| {
        let mut command = std::process::Command::new("/usr/bin/env");
        command.args(["-i", "PATH=/usr/local/bin:/usr/bin:/bin"]);
        command.arg(format!("HOME={}", traps.sandbox.root().join("home")));
        command.args(path.map(|path| format!("PYTHONPATH={path}")));
        let _ = command.arg("python3").args(args).current_dir(traps.sandbox.work()).output().unwrap();
        std::mem::take(&mut fs_err::read_to_string(&traps.canary).unwrap_or_default())
    };
    // `json` is not loaded at the start, so it comes from the working folder.
    assert!(python(&["-c", "import json"], None).contains("/here/json.py"));
    assert!(python(&["-c", ""], Some(traps.sandbox.root().join("modules").as_str())).contains("/modules/"));
    assert!(python(&["-c", ""], None).contains("pth"));
    std::process::Command::new(traps.sandbox.work().join("g++")).status().unwrap();
    assert!(fs_err::read_to_string(&traps.canary).unwrap().contains("/here/g++"));
}

#[test]
fn commands_that_look_run_nothing() {
    let traps = Traps::lay();
    let example = project("examples/hello_ext");
    let tree = traps.sandbox.work().join("tree");
    crate::support::real::copy(&example, &tree);
    for name in MODULES.iter().filter(|name| **name != "setup") {
        traps.module(&tree.join(format!("{name}.py")));
    }
    let vector = project("fatbin/tests/vectors/v01_sm80.o");
    for args in [
        &["plan", "tree", "--arch", "9.0"][..],
        &["plan", ".", "--arch", "9.0"],
        &["plan", "mmcv", "--arch", "9.0"],
        &["doctor"],
        &["doctor", "tree"],
        &["detect"],
        &["recipes"],
        &["arch", "9.0", "--explain"],
        &["env", "tree", "--arch", "9.0"],
        &["explain", "a.log"],
        &["explain", "a.log", "--here"],
        &["inspect", vector.as_str()],
        &["verify", vector.as_str(), "--expect", "8.0"],
        &["toolchain", "list"],
        &["cache", "list"],
        &["cache", "stat"],
        &["completions", "bash"],
    ] {
        assert_eq!(traps.sprung_by(args), "", "{args:?}");
    }
}

#[test]
fn every_command_has_a_row_in_the_page_on_security() {
    let page = fs_err::read_to_string(project("docs/security.md")).unwrap();
    let firsts: String = page.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next()).collect();
    let help = Sandbox::new().run(&["--help"]).stdout;
    let listed = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    // A description that is too long goes on below itself.
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names: Vec<&str> =
        names.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 10, "{help}");
    for name in names.into_iter().filter(|name| *name != "help") {
        assert!(firsts.contains(&format!("`{name}")), "{name} has no row");
    }
}

#[test]
fn an_environment_with_code_of_its_own_is_described_without_running_it() {
    let traps = Traps::lay();
    let venv = traps.sandbox.root().join("venv");
    let made = std::process::Command::new("/usr/bin/env")
        .args([
            "-i",
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "python3",
            "-I",
            "-m",
            "venv",
            "--without-pip",
            venv.as_str(),
        ])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let site = venv.join("lib").join(python_folder()).join("site-packages");
    traps.module(&site.join("sitecustomize.py"));
    fs_err::write(site.join("trap.pth"), format!("import sys; {}\n/usr\n", traps.python("pth"))).unwrap();
    fs_err::create_dir_all(site.join("torch")).unwrap();
    fs_err::write(site.join("torch/version.py"), "__version__ = '2.11.0+cu130'\ncuda = '13.0'\n").unwrap();
    traps.module(&site.join("torch/__init__.py"));
    for args in
        [&["doctor", "--python", venv.as_str()][..], &["plan", "mmcv", "--arch", "9.0", "--python", venv.as_str()]]
    {
        assert_eq!(traps.sprung_by(args), "", "{args:?}");
    }
    let said = traps.sandbox.run(&["doctor", "--python", venv.as_str(), "--json"]);
    assert!(said.stdout.contains("(--python) holds torch"), "its torch is found all the same: {}", said.stdout);
}
