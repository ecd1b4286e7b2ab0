//! A folder of its own for every test, and the real `cuwright` in it with an environment that nothing leaks into.

pub mod artifact;
pub mod kits;
pub mod real;
#[path = "../../../src/sys/test_server.rs"]
pub mod server;

use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};

/// An empty home, working folder and cache; removed at the end.
pub struct Sandbox {
    root: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a run said.
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    pub fn of(mut command: Command) -> Self {
        command.output().unwrap().into()
    }

    /// Both streams and the exit code, with folders, versions, digests and times replaced, for snapshots.
    pub fn shown(&self, sandbox: &Sandbox) -> String {
        let text = format!("exit {:?}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr);
        let text = text
            .replace(sandbox.root().as_str(), "[ROOT]")
            .replace(real::cache().as_str(), "[TMP]/cache")
            .replace(env!("CARGO_TARGET_TMPDIR"), "[TMP]")
            .replace(env!("CARGO_MANIFEST_DIR"), "[PROJECT]")
            .replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
            .replace(std::env::consts::ARCH, "[MACHINE]");
        // Keys and digests are the only long runs of hex digits.
        let mut shown = String::new();
        for word in text.split_inclusive(|c: char| !c.is_ascii_hexdigit()) {
            let digits = word.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
            shown.push_str(if digits.len() >= 12 { "[DIGEST]" } else { digits });
            shown.push_str(&word[digits.len()..]);
        }
        shown
    }

    pub fn assert_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

impl From<Output> for Said {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }
}

impl Sandbox {
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("cuwright-it-").tempdir().unwrap();
        let sandbox = Self { root, variables: Vec::new() };
        for folder in ["home", "here"] {
            fs_err::create_dir_all(sandbox.root().join(folder)).unwrap();
        }
        sandbox
    }

    pub fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.root.path()).unwrap()
    }

    pub fn work(&self) -> Utf8PathBuf {
        self.root().join("here")
    }

    pub fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.work().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
        self
    }

    pub fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuwright"));
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("HOME", self.root().join("home"))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("CUWRIGHT_CACHE_DIR", self.root().join("cache"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        Said::of(self.command(args))
    }
}

/// A path inside this project.
pub fn project(path: &str) -> Utf8PathBuf {
    Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
