//! A store in a temporary folder, with short ways to fill it, harm it, and run a second process on it.
//!
//! Time is a number of seconds that the test chooses; nothing here reads a clock.

use cache::{Entry, Guard, Key, Lookup, Mode, STORE_LOCK, Store, Wait, canonical_json, digest};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

pub(crate) struct Sandbox {
    pub(crate) store: Store,
    _folder: Option<TempDir>,
}

pub(crate) fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(crate) fn inputs(package: &str) -> Value {
    json!({"package": package, "arch": ["9.0"]})
}

pub(crate) fn key_of(package: &str) -> Key {
    digest(&canonical_json(&inputs(package)).unwrap())
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("cache of Zoë/キャッシュ");
        Self { store: Store::open(root).unwrap(), _folder: Some(folder) }
    }

    pub(crate) fn under(root: &Path) -> Self {
        Self { store: Store::open(root).unwrap(), _folder: None }
    }

    /// The store as a process that starts now would see it.
    pub(crate) fn reopened(&self) -> Store {
        Store::open(self.store.root()).unwrap()
    }

    /// Stores two files, the second in a folder of its own, and returns the entry.
    pub(crate) fn commit(&self, package: &str, now: u64) -> Entry {
        let staging = self.store.stage(&key_of(package)).unwrap();
        let lib = staging.path().join("pkg/lib/_ext.so");
        fs_err::write(staging.path().join("wheel.whl"), format!("wheel of {package}")).unwrap();
        fs_err::create_dir_all(lib.parent().unwrap()).unwrap();
        fs_err::write(lib, vec![7; 100_000]).unwrap();
        staging.commit(inputs(package), json!({"package": package}), at(now)).unwrap()
    }

    pub(crate) fn get(&self, package: &str) -> Lookup {
        self.store.get(&key_of(package), at(0)).unwrap()
    }

    pub(crate) fn hit(&self, package: &str) -> Entry {
        match self.get(package) {
            Lookup::Hit(entry) => entry,
            other => panic!("{package}: {other:?}"),
        }
    }

    pub(crate) fn is_miss(&self, package: &str) -> bool {
        matches!(self.get(package), Lookup::Miss)
    }

    pub(crate) fn entry_folder(&self, package: &str) -> PathBuf {
        let key = key_of(package);
        let bucket = self.store.root().join("artifacts-v1");
        bucket.join(&key.as_str()[..2]).join(key.as_str())
    }

    pub(crate) fn manifest(&self, package: &str) -> Value {
        let path = self.entry_folder(package).join("manifest.json");
        serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap()
    }

    pub(crate) fn edit_manifest(&self, package: &str, edit: impl FnOnce(&mut Value)) {
        let mut manifest = self.manifest(package);
        edit(&mut manifest);
        let path = self.entry_folder(package).join("manifest.json");
        fs_err::write(path, manifest.to_string()).unwrap();
    }

    pub(crate) fn tmp_names(&self) -> Vec<String> {
        names(&self.store.root().join("tmp"))
    }

    pub(crate) fn exclusive(&self) -> Guard {
        self.store.lock(STORE_LOCK, Mode::Exclusive, |_| Wait::GiveUp).unwrap()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        let listing = self.store.list().unwrap();
        listing.entries.iter().map(|record| record.key().clone()).collect()
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs_err::read_dir(folder)
        .map(|items| items.map(|item| item.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    names.sort();
    names
}

/// Every path below `folder` with the bytes of the files, to prove that nothing was touched.
pub(crate) fn snapshot(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    for name in names(folder) {
        let path = folder.join(name);
        if path.is_dir() {
            all.push((path.clone(), None));
            all.extend(snapshot(&path));
        } else {
            let bytes = fs_err::read(&path).unwrap();
            all.push((path, Some(bytes)));
        }
    }
    all
}

/// A second process: this very test binary, running one ignored test as its body.
pub(crate) struct Helper {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Helper {
    /// Starts the helper named by its test path, and tells it the root of the store.
    pub(crate) fn start(body: &str, root: &Path) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a crate without `sys` needs a real second process to test locks and kills"
        )]
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", body, "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{}", root.to_str().unwrap()).unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin: Some(stdin), stdout }
    }

    /// Blocks until the helper said `word` on a line.
    pub(crate) fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the helper ended without saying {word}");
        }
    }

    /// Lets it finish, and checks that it was content.
    pub(crate) fn finish(mut self) {
        drop(self.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
    }

    /// Ends it the hard way, without a chance to tidy up.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The store that the parent named, or `None` when a person runs the ignored tests by hand.
pub(crate) fn helper_store() -> Option<Store> {
    let mut root = String::new();
    std::io::stdin().read_line(&mut root).unwrap();
    let root = root.trim_end_matches('\n');
    (!root.is_empty()).then(|| Store::open(root).unwrap())
}

pub(crate) fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word}").unwrap();
    out.flush().unwrap();
}

/// Blocks a helper until its parent closes the pipe, or for ever if the parent means to kill it.
pub(crate) fn until_told() {
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
}
