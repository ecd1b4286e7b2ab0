//! Two builds that can differ never share a cache entry: one build, then one input at a time is changed, and the plan has
//! to say miss for all that can matter and hit for all that cannot.
//!
//! The setup.py is a real one: it compiles and links an extension with the machine's compiler behind wrappers, runs
//! programs, and reads files and folders from outside of its tree. A stand-in is only the wheel that it hands over: that
//! of the example, built once, since nothing here hangs on device code. What needs another toolkit, torch or Python is
//! tested on the inputs of the key (`src/key/tests.rs`, `src/pipeline/identity.rs`).

use std::os::unix::fs::symlink;
use std::time::SystemTime;

use camino::Utf8PathBuf;
use serde_json::Value;

use crate::support::kits::program;
use crate::support::{Said, Sandbox, real};

const SETUP: &str = r#"
import glob, os, shutil, subprocess, sys
from setuptools import Extension, setup
outside = os.environ["OUTSIDE"]
sys.path[:0] = [outside + "/modules", outside + "/later"]
import helper
version = subprocess.run(["describe"], check=True, capture_output=True, text=True).stdout
with open(outside + "/data/config") as file: config = file.read()
plugins = sorted(os.listdir(outside + "/plugins"))
if shutil.which("optional"): sys.exit("not wanted")
if os.path.exists(outside + "/data/override"): sys.exit("not wanted")
with open("probe.cpp", "w") as file:
    file.write('#include <first.h>\n#include "%s/absolute/third.h"\nextern "C" int g(); extern "C" int s();\n'
               'int f() { return FIRST + THIRD + g() + s(); }\n' % outside)
extension = Extension(
    "probe", ["probe.cpp"], include_dirs=[outside + "/include-a", outside + "/include-b"],
    library_dirs=[outside + "/lib-a", outside + "/lib-b"], libraries=["g", "s"],
    extra_compile_args=["@" + outside + "/data/flags"])
setup(name="probe", version="1", ext_modules=[extension], script_args=["build_ext", "--inplace"])
for wheel in glob.glob("*.whl"): shutil.copy(wheel, sys.argv[-1])
"#;

/// A build whose inputs lie in one sandbox.
struct World {
    sandbox: Sandbox,
    outside: Utf8PathBuf,
    tree: Utf8PathBuf,
}

/// What is changed for one plan: files, and the variables and arguments of the call.
#[derive(Default)]
struct Change {
    variables: Vec<(&'static str, String)>,
    arguments: Vec<&'static str>,
    /// Files and links to put back, as they were.
    undo: Vec<(Utf8PathBuf, Option<Vec<u8>>)>,
}

impl World {
    fn new() -> Self {
        let sandbox = real::sandbox();
        let outside = sandbox.root().join("outside");
        let folders = ["include-a", "include-b", "lib-a", "lib-b", "absolute", "data", "plugins", "modules", "later"];
        for folder in folders.into_iter().chain(["early", "bin", "as"]) {
            fs_err::create_dir_all(outside.join(folder)).unwrap();
        }
        let write = |name: &str, text: &str| fs_err::write(outside.join(name), text).unwrap();
        write("include-b/first.h", "#include <second.h>\n#define FIRST SECOND\n");
        write("data/second.h", "#define SECOND 1\n");
        write("data/second-other.h", "#define SECOND 2\n");
        symlink(outside.join("data/second.h"), outside.join("include-b/second.h")).unwrap();
        write("absolute/third.h", "#define THIRD 3\n");
        write("data/config", "a = 1\n");
        write("data/flags", "-DFLAG=1\n");
        write("data/version", "1.0\n");
        write("plugins/one", "");
        write("later/helper.py", "VALUE = 1\n");
        program(&outside.join("bin/dispatch-1"), &format!("cat {outside}/data/version"));
        program(&outside.join("bin/dispatch-2"), &format!("cat {outside}/data/config"));
        symlink("dispatch-1", outside.join("bin/describe")).unwrap();
        // A compiler behind a wrapper, a dispatcher, and an assembler of its own.
        for name in ["gcc", "g++"] {
            let chosen = outside.join("bin").join(format!("chosen-{name}"));
            program(&outside.join("bin").join(name), &format!("exec {chosen} -B{outside}/as \"$@\""));
            program(&chosen, &format!("exec /usr/bin/{name} \"$@\""));
        }
        program(&outside.join("as/as"), "exec /usr/bin/as \"$@\"");
        let tree = real::quick(&sandbox);
        fs_err::write(tree.join("setup.py"), SETUP).unwrap();
        fs_err::write(tree.join("unique"), real::stamp()).unwrap();
        let recipe = fs_err::read_to_string(tree.join("cuwright.toml")).unwrap();
        let recipe = recipe.replace("[\"WAIT\"]", "[\"OUTSIDE\", \"SWITCH\"]");
        fs_err::write(tree.join("cuwright.toml"), recipe).unwrap();
        let world = Self { sandbox, outside, tree };
        world.library("lib-b", "g", 1, true);
        world.library("lib-b", "s", 1, false);
        world
    }

    fn library(&self, folder: &str, name: &str, value: u32, shared: bool) {
        let work = self.sandbox.root();
        let run = |program: &str, args: &[&str]| {
            assert!(std::process::Command::new(program).args(args).current_dir(work).status().unwrap().success());
        };
        fs_err::write(work.join("lib.c"), format!("int {name}() {{ return {value}; }}\n")).unwrap();
        let to = self.outside.join(folder).join(format!("lib{name}{}", if shared { ".so" } else { ".a" }));
        if shared {
            return run("gcc", &["-shared", "-fPIC", "lib.c", "-o", to.as_str()]);
        }
        run("gcc", &["-c", "-fPIC", "lib.c", "-o", "lib.o"]);
        let _ = fs_err::remove_file(&to);
        run("ar", &["rcD", to.as_str(), "lib.o"]);
    }

    fn run(&self, command: &str, change: &Change) -> Said {
        let mut arguments = vec![command, self.tree.as_str(), "--arch", "9.0", "--json"];
        arguments.extend(&change.arguments);
        let path = std::env::var("PATH").unwrap();
        let mut run = self.sandbox.command(&arguments);
        run.env("PATH", format!("{0}/early:{0}/bin:{path}", self.outside));
        run.env("CXX", self.outside.join("bin/g++")).env("OUTSIDE", &self.outside).env("SWITCH", "1");
        run.envs(change.variables.iter().map(|(name, value)| (*name, value)));
        Said::of(run)
    }

    /// Whether the plan is a hit, and its reason where it is not.
    fn plan(&self, change: &Change) -> (bool, String) {
        let said = self.run("plan", change).assert_code(0);
        let plan: Value = serde_json::from_str(&said.stdout).unwrap();
        let ready = &plan[0]["ready"];
        let why = ready["why"].as_str().unwrap_or_default().to_owned();
        (ready["hit"].as_bool().unwrap_or_else(|| panic!("{}", said.stdout)), why)
    }

    fn outside(&self, name: &str) -> Utf8PathBuf {
        self.outside.join(name)
    }
}

impl Change {
    fn keep(&mut self, path: &Utf8PathBuf) {
        self.undo.push((path.clone(), fs_err::read(path).ok()));
    }

    fn write(mut self, path: impl Into<Utf8PathBuf>, text: &str) -> Self {
        let path = path.into();
        self.keep(&path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, text).unwrap();
        self
    }

    fn remove(mut self, path: impl Into<Utf8PathBuf>) -> Self {
        let path = path.into();
        self.keep(&path);
        fs_err::remove_file(&path).unwrap();
        self
    }

    fn program(mut self, path: impl Into<Utf8PathBuf>, body: &str) -> Self {
        let path = path.into();
        self.keep(&path);
        program(&path, body);
        self
    }

    fn replace(self, path: impl Into<Utf8PathBuf>, from: &str, to: &str) -> Self {
        let path = path.into();
        let text = fs_err::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{path} lacks {from}");
        self.write(path, &text.replace(from, to))
    }

    fn var(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    fn args(mut self, arguments: &[&'static str]) -> Self {
        self.arguments.extend(arguments);
        self
    }

    fn undo(self) {
        for (path, text) in self.undo.into_iter().rev() {
            match text {
                Some(text) => fs_err::write(&path, text).unwrap(),
                None => fs_err::remove_file(&path).unwrap(),
            }
        }
    }
}

/// Makes a change.
type Make = fn(&World) -> Change;
/// A kind of input: its name, the change, and a part of the reason that a miss has to give.
type Kind = (&'static str, Make, &'static str);

fn none() -> Change {
    Change::default()
}

/// What can matter.
const MISS: [Kind; 36] = [
    ("a source of the tree", |w| none().write(w.tree.join("csrc.h"), "x"), "source"),
    ("setup.py", |w| none().replace(w.tree.join("setup.py"), "version=\"1\"", "version=\"2\""), "source"),
    ("a variable of the recipe", |w| recipe(w, "FORCE_CUDA = \"1\"", "FORCE_CUDA = \"2\""), "variables"),
    ("the recipe's check", |w| recipe(w, "compiled with CUDA", "made with CUDA"), "verify"),
    ("the recipe's version", |w| recipe(w, "version = \"0.1.0\"", "version = \"0.1.1\""), "version"),
    ("the targets", |_| none().args(&["--arch", "8.6"]), "archs"),
    ("a variable that the recipe passes", |_| none().var("SWITCH", "2"), "SWITCH"),
    ("CFLAGS", |_| none().var("CFLAGS", "-DX"), "CFLAGS"),
    ("LDFLAGS", |_| none().var("LDFLAGS", "-s"), "LDFLAGS"),
    ("CPATH", |w| none().var("CPATH", w.outside("data").as_str()), "CPATH"),
    ("LIBRARY_PATH", |w| none().var("LIBRARY_PATH", w.outside("data").as_str()), "LIBRARY_PATH"),
    ("LD_LIBRARY_PATH", |w| none().var("LD_LIBRARY_PATH", w.outside("data").as_str()), "LD_LIBRARY_PATH"),
    ("flags for nvcc", |_| none().var("NVCC_PREPEND_FLAGS", "-lineinfo"), "NVCC_PREPEND_FLAGS"),
    ("flags in CXX", |w| none().var("CXX", &format!("{} -DX", w.outside("bin/g++"))), "CXXFLAGS"),
    ("how OpenBLAS uses the processor", |_| none().var("OPENBLAS_CORETYPE", "Haswell"), "OPENBLAS"),
    ("a header", |w| none().replace(w.outside("include-b/first.h"), "FIRST SECOND", "FIRST 7"), "first.h has changed"),
    (
        "a header in an earlier folder",
        |w| none().write(w.outside("include-a/first.h"), ""),
        "include-a/first.h is there",
    ),
    ("a header that is gone", |w| none().remove(w.outside("include-b/first.h")), "first.h is gone"),
    (
        "what a link of a header leads to",
        |w| none().replace(w.outside("data/second.h"), "1", "2"),
        "second.h has changed",
    ),
    ("a header by an absolute path", |w| none().write(w.outside("absolute/third.h"), "#define THIRD 4\n"), "third.h"),
    ("flags in a file", |w| none().write(w.outside("data/flags"), "-DFLAG=2\n"), "data/flags has changed"),
    ("a configuration that setup.py reads", |w| none().write(w.outside("data/config"), "a = 2\n"), "data/config"),
    ("one of the same size and time", same_size_and_time, "data/config has changed"),
    ("a file that setup.py looks for", |w| none().write(w.outside("data/override"), ""), "data/override is there"),
    ("a folder that setup.py lists", |w| none().write(w.outside("plugins/two"), ""), "plugins holds other files"),
    ("a module of Python", |w| none().write(w.outside("later/helper.py"), "VALUE = 2\n"), "helper.py has changed"),
    (
        "a module in an earlier folder",
        |w| none().write(w.outside("modules/helper.py"), ""),
        "modules holds other files",
    ),
    (
        "what a program of setup.py reads",
        |w| none().write(w.outside("data/version"), "2.0\n"),
        "data/version has changed",
    ),
    ("the text of such a program", |w| none().program(w.outside("bin/dispatch-1"), "echo 3"), "describe has changed"),
    ("a program earlier on PATH", |w| none().program(w.outside("early/describe"), "echo 4"), "`describe` on PATH"),
    ("a program that is looked for", |w| none().program(w.outside("bin/optional"), ""), "`optional` on PATH"),
    ("the compiler's wrapper", |w| none().replace(w.outside("bin/g++"), "\"$@\"", "-DX \"$@\""), "tools/cxx"),
    ("what the wrapper starts", |w| none().replace(w.outside("bin/chosen-g++"), "\"$@\"", "-DX \"$@\""), "chosen-g++"),
    ("the wrapper of the C compiler", |w| none().replace(w.outside("bin/gcc"), "\"$@\"", "-DX \"$@\""), "tools/cc"),
    ("the assembler", |w| none().replace(w.outside("as/as"), "\"$@\"", "-g \"$@\""), "as/as has changed"),
    ("a file read by two programs", |w| none().remove(w.outside("data/version")), "data/version is gone"),
];

/// What cannot.
const HIT: [(&str, Make); 18] = [
    ("nothing", |_| none()),
    ("a comment in the recipe", |w| recipe(w, "[build]", "# why\n[build]")),
    ("the layout of the recipe", |w| recipe(w, "schema = 1", "schema   =   1\n\n")),
    ("memory-per-job", |w| recipe(w, "\"2 GiB\"", "\"3 GiB\"")),
    ("the number of jobs", |_| none().args(&["-j", "1"])),
    ("where the caller's home is", |w| none().var("HOME", w.outside("data").as_str())),
    ("~/.pydistutils.cfg", |w| none().write(home(w, ".pydistutils.cfg"), "[build_ext]\ndefine=X\n")),
    ("pip's configuration", |w| none().write(home(w, ".config/pip/pip.conf"), "[global]\nno-index=1\n")),
    ("setup.cfg at home", |w| none().write(home(w, "setup.cfg"), "[build_ext]\ndefine=X\n")),
    ("git's configuration", |w| none().write(home(w, ".gitconfig"), "[core]\nabbrev=4\n")),
    ("PYTHONSTARTUP", |_| none().var("PYTHONSTARTUP", "/x.py").var("PYTHONHASHSEED", "1")),
    ("DISTUTILS and PIP variables", |_| none().var("PIP_NO_CACHE_DIR", "1").var("DISTUTILS_DEBUG", "1")),
    ("threads of numeric libraries", |_| none().var("OMP_NUM_THREADS", "3").var("MKL_NUM_THREADS", "3")),
    ("language, time zone and user", |_| none().var("LANG", "C").var("TZ", "Asia/Tokyo").var("USER", "other")),
    ("a header that nobody reads", |w| none().write(w.outside("include-b/unread.h"), "x")),
    ("a program that nobody runs", |w| none().program(w.outside("early/unused"), "")),
    ("the time of a header", |w| none().replace(w.outside("include-b/first.h"), "FIRST", "FIRST")),
    ("leftovers in the tree", |w| none().write(w.tree.join("__pycache__/x.pyc"), "x")),
];

fn recipe(world: &World, from: &str, to: &str) -> Change {
    none().replace(world.tree.join("cuwright.toml"), from, to)
}

fn home(world: &World, name: &str) -> Utf8PathBuf {
    world.sandbox.root().join("home").join(name)
}

fn same_size_and_time(world: &World) -> Change {
    let path = world.outside("data/config");
    let modified: SystemTime = fs_err::metadata(&path).unwrap().modified().unwrap();
    let change = none().write(path.clone(), "a = 9\n");
    fs_err::OpenOptions::new().write(true).open(path).unwrap().file().set_modified(modified).unwrap();
    change
}

#[test]
fn one_changed_input_is_a_miss_if_it_can_matter_and_a_hit_if_it_cannot() {
    let world = World::new();
    let built = real::artifact(&world.run("build", &none()).assert_code(0));
    assert_eq!((&built["restored"], &built["local"]), (&false.into(), &serde_json::json!([])));
    // Stamps are believed once they are two seconds old; the same look is taken at both ages.
    let mut wrong = Vec::new();
    for (name, change, reason) in MISS {
        let change = change(&world);
        let (hit, why) = world.plan(&change);
        if hit || !why.contains(reason) {
            wrong.push(format!("{name}: {}", if hit { "WRONG HIT".to_owned() } else { format!("miss, but {why}") }));
        }
        change.undo();
    }
    for (name, change) in HIT {
        let change = change(&world);
        let (hit, why) = world.plan(&change);
        if !hit {
            wrong.push(format!("{name}: needless miss: {why}"));
        }
        change.undo();
    }
    // A link that leads elsewhere, and libraries, which are made by programs.
    let link = world.outside("bin/describe");
    fs_err::remove_file(&link).unwrap();
    symlink("dispatch-2", &link).unwrap();
    let dispatched = world.plan(&none());
    fs_err::remove_file(&link).unwrap();
    symlink("dispatch-1", &link).unwrap();
    world.library("lib-b", "g", 2, true);
    let shared = world.plan(&none());
    world.library("lib-b", "g", 1, true);
    world.library("lib-b", "s", 2, false);
    let fixed = world.plan(&none());
    world.library("lib-b", "s", 1, false);
    world.library("lib-a", "g", 3, true);
    let earlier = world.plan(&none());
    fs_err::remove_file(world.outside("lib-a/libg.so")).unwrap();
    for (name, (hit, why), reason) in [
        ("a dispatcher's link", dispatched, "describe has changed"),
        ("a shared library", shared, "lib-b/libg.so has changed"),
        ("a static library", fixed, "lib-b/libs.a has changed"),
        ("a library in an earlier folder", earlier, "lib-a/libg.so is there"),
    ] {
        if hit || !why.contains(reason) {
            wrong.push(format!("{name}: hit {hit}, {why}"));
        }
    }
    assert_eq!(world.plan(&none()), (true, String::new()), "everything is as it was");
    assert!(wrong.is_empty(), "{} of {} kinds:\n{}", wrong.len(), MISS.len() + HIT.len() + 4, wrong.join("\n"));
    // What is built after a change takes the place of the entry, and says why it was built.
    let change = none().write(world.outside("data/config"), "a = 5\n");
    let again = world.run("build", &change).assert_code(0);
    assert!(again.stdout.contains("data/config has changed since it was built"), "{}", again.stdout);
    assert_eq!(real::artifact(&again)["key"], built["key"]);
    assert_eq!(real::artifact(&world.run("build", &none()).assert_code(0))["restored"], true);
}

#[test]
fn what_cannot_be_known_keeps_an_artifact_for_this_machine_and_is_shown_everywhere() {
    let world = World::new();
    fs_err::write(world.outside("data/flags"), "-DFLAG=1\n").unwrap();
    let setup =
        SETUP.replace("import helper\n", "import helper\nsubprocess.run(['cat', '/proc/cpuinfo'], stdout=-3)\n");
    fs_err::write(world.tree.join("setup.py"), setup).unwrap();
    let reason = "it asks for this machine's processor (/proc/cpuinfo)";
    let built = world.run("build", &none()).assert_code(0);
    assert!(built.stdout.contains(&format!("kept for this machine only: {reason}")), "{}", built.stdout);
    assert_eq!(real::artifact(&built)["local"], serde_json::json!([reason]));
    let key = real::artifact(&built)["key"].as_str().unwrap().to_owned();
    let plan: Value = serde_json::from_str(&world.run("plan", &none()).stdout).unwrap();
    assert_eq!(plan[0]["ready"]["local"], serde_json::json!([reason]));
    let listed: Value = serde_json::from_str(&world.sandbox.run(&["cache", "list", "--json"]).stdout).unwrap();
    let entries = listed["entries"].as_array().unwrap();
    assert_eq!(
        entries.iter().find(|entry| entry["key"] == key.as_str()).unwrap()["local"],
        serde_json::json!([reason])
    );
    // Where it was made for another machine, it is no hit.
    let folder = real::cache().join("artifacts-v1").join(&key[..2]).join(&key);
    let text = fs_err::read_to_string(folder.join("files/reads.json")).unwrap();
    let mut reads: Value = serde_json::from_str(&text).unwrap();
    reads["local"]["machine"] = "another".into();
    let store = cache::Store::open(real::cache()).unwrap();
    let id: cache::Key = key.parse().unwrap();
    let staging = store.stage(&id).unwrap();
    for file in folder.join("files").read_dir_utf8().unwrap().flatten() {
        if file.file_name() == "reads.json" {
            fs_err::write(staging.path().join("reads.json"), serde_json::to_vec(&reads).unwrap()).unwrap();
        } else {
            staging.add_file(file.path().as_std_path(), file.file_name()).unwrap();
        }
    }
    let cache::Lookup::Hit(entry) = store.get(&id, SystemTime::now()).unwrap() else { panic!("no entry") };
    let (inputs, meta) = (entry.inputs().clone(), entry.manifest().meta.clone());
    staging.replace(inputs, meta, SystemTime::now()).unwrap();
    let (hit, why) = world.plan(&none());
    assert!(!hit && why.contains("valid on another machine only"), "{why}");
}
