//! Real parts shared by the tests that build: one cache folder with a toolchain from wheels, the example, a built wheel.
//!
//! The first run needs a network; everything it brings is kept between runs.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
pub use rustix::process::Signal;
use serde_json::Value;

use super::{Said, Sandbox, project};

/// The cache folder shared by these tests.
pub fn cache() -> Utf8PathBuf {
    // By its real name, since an environment knows the path it was made for.
    let named = Utf8PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cache");
    named.canonicalize_utf8().unwrap_or(named)
}

/// A sandbox over the shared cache that may use the network as this machine does.
pub fn sandbox() -> Sandbox {
    let passed = ["PATH", "SSL_CERT_FILE", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "HTTPS_PROXY", "PIP_CERT"];
    let mut sandbox = Sandbox::new().var("CUWRIGHT_CACHE_DIR", cache().as_str());
    for name in passed {
        if let Ok(value) = std::env::var(name) {
            sandbox = sandbox.var(name, &value);
        }
    }
    sandbox
}

/// A copy of the example in a folder that build systems stumble over.
pub fn example(sandbox: &Sandbox) -> Utf8PathBuf {
    let tree = sandbox.work().join("héllo ext");
    copy(&project("examples/hello_ext"), &tree);
    tree
}

pub fn copy(from: &Utf8Path, to: &Utf8Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let path = Utf8Path::from_path(entry.path()).unwrap();
        let target = to.join(path.strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs_err::create_dir_all(&target).unwrap();
        } else {
            fs_err::copy(path, &target).unwrap();
        }
    }
}

/// Something that no other run has.
pub fn stamp() -> String {
    format!("{:?}", (std::process::id(), std::thread::current().id(), std::time::SystemTime::now()))
}

/// A tree whose setup.py puts the real wheel of the example in place without compiling it again: what comes after the
/// compilers can then be tested in seconds. It waits as long as its variable `WAIT` says.
pub fn quick(sandbox: &Sandbox) -> Utf8PathBuf {
    let tree = example(sandbox);
    let built = sandbox.run(&["build", tree.as_str(), "--arch", "9.0", "--out", "real"]).assert_code(0);
    let wheel = Utf8PathBuf::from(built.stdout.trim());
    let quick = sandbox.work().join("quick");
    fs_err::create_dir(&quick).unwrap();
    fs_err::copy(&wheel, quick.join(wheel.file_name().unwrap())).unwrap();
    let setup = "import glob, os, shutil, sys, time\ntime.sleep(float(os.environ.get('WAIT', '0')))\n\
                 for wheel in glob.glob('*.whl'): shutil.copy(wheel, sys.argv[-1])\n";
    fs_err::write(quick.join("setup.py"), format!("{setup}# {}\n", stamp())).unwrap();
    let recipe = fs_err::read_to_string(tree.join("cuwright.toml")).unwrap();
    let recipe = recipe.replace("[build]\n", "[build]\npass-env = [\"WAIT\"]\n");
    fs_err::write(quick.join("cuwright.toml"), recipe).unwrap();
    quick
}

/// A `build --json` that runs, with what it has said so far.
pub struct Running {
    child: Child,
    reader: BufReader<ChildStdout>,
    said: String,
}

impl Running {
    pub fn start(mut command: std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let reader = BufReader::new(child.stdout.take().unwrap());
        Self { child, reader, said: String::new() }
    }

    /// Reads messages up to the first that `wanted` takes.
    pub fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.reader.read_line(&mut line).unwrap() > 0, "ended early: {}", self.said);
            self.said.push_str(&line);
            let message = serde_json::from_str(&line).unwrap();
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Reads up to the message of a stage, and gives its text.
    pub fn until_stage(&mut self, stage: &str) -> String {
        let message = self.until(|message| message["reason"] == "stage" && message["stage"] == stage);
        message["text"].as_str().unwrap().to_owned()
    }

    /// The build folder, once a miss was told.
    pub fn folder(&mut self) -> Utf8PathBuf {
        let key_in = |message: &Value| {
            let words = message["text"].as_str()?.split([' ', ',']);
            let key = |word: &&str| word.len() == 12 && word.bytes().all(|b| b.is_ascii_hexdigit());
            words.filter(|_| message["stage"] == "cache").find(key).map(str::to_owned)
        };
        let message = self.until(|message| key_in(message).is_some());
        let key = key_in(&message).unwrap();
        let start = Instant::now();
        loop {
            let entries = cache().join("build-v1").read_dir_utf8().map(|entries| entries.flatten().collect::<Vec<_>>());
            let folder = entries.unwrap_or_default().into_iter().find(|entry| entry.file_name().starts_with(&key));
            if let Some(folder) = folder {
                return folder.into_path();
            }
            assert!(start.elapsed() < Duration::from_mins(1), "no build folder for {key}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        send(self.child.id(), signal).unwrap();
    }

    pub fn finish(mut self) -> Said {
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        self.reader.read_to_string(&mut self.said).unwrap();
        Said { code: self.child.wait().unwrap().code(), stdout: self.said, stderr }
    }
}

/// Sends a signal without a `kill` program, which a small system does not have.
pub fn send(pid: u32, signal: Signal) -> rustix::io::Result<()> {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal)
}

/// Waits until `condition` holds.
pub fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_mins(10), "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The message of the finished artifact.
pub fn artifact(said: &Said) -> Value {
    let messages = said.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.into_iter().find(|message| message["reason"] == "artifact").expect("an artifact message")
}
