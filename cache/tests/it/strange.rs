//! What somebody put in place of a file of the store: it is neither followed, nor waited for, nor believed.

use crate::support::{Sandbox, at, inputs, key_of, names};
use cache::{Damage, Limits, Lookup, Mode, STORE_LOCK};
use rustix::fs::{CWD, FileType, Mode as Bits, mknodat};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const KINDS: [&str; 4] = ["link", "pipe", "socket", "folder"];

/// Puts something of this kind at `path`, in place of what is there. A link leads to `victim`.
fn put(kind: &str, path: &Path, victim: &Path) {
    if path.is_dir() {
        fs_err::remove_dir_all(path).unwrap();
    } else if path.exists() {
        fs_err::remove_file(path).unwrap();
    }
    match kind {
        "link" => fs_err::os::unix::fs::symlink(victim, path).unwrap(),
        "pipe" => mknodat(CWD, path, FileType::Fifo, Bits::RWXU, 0).unwrap(),
        "socket" => {
            // The path of a socket may have 108 bytes.
            let short = tempfile::tempdir().unwrap();
            drop(std::os::unix::net::UnixListener::bind(short.path().join("s")).unwrap());
            fs_err::rename(short.path().join("s"), path).unwrap();
        }
        _ => fs_err::create_dir(path).unwrap(),
    }
}

/// Fails where `work` hangs, which a plain test would do for ever.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    result.recv_timeout(Duration::from_mins(1)).expect("it panicked or hangs")
}

/// Runs `work` once per kind, with that in place of `name` below the root or, with `*`, the entry; then looks that a link
/// was not followed.
fn each(name: &'static str, work: impl Fn(&Sandbox, &str) + Clone + Send + 'static) {
    for kind in KINDS {
        let work = work.clone();
        in_time(move || {
            let outside = tempfile::tempdir().unwrap();
            let victim = outside.path().join("victim");
            fs_err::write(&victim, "mine").unwrap();
            let long_ago = at(1);
            fs_err::File::options().write(true).open(&victim).unwrap().file().set_modified(long_ago).unwrap();
            let sandbox = Sandbox::new();
            sandbox.commit("a", 0);
            drop(sandbox.exclusive());
            let path = match name.split_once('/') {
                Some(("*", inner)) => sandbox.entry_folder("a").join(inner),
                _ if name == "*" => sandbox.entry_folder("a"),
                _ => sandbox.store.root().join(name),
            };
            put(kind, &path, &victim);
            work(&sandbox, kind);
            assert_eq!(fs_err::read_to_string(&victim).unwrap(), "mine", "{name} {kind}");
            assert_eq!(fs_err::metadata(&victim).unwrap().modified().unwrap(), long_ago, "{name} {kind}");
            assert_eq!(names(outside.path()), ["victim"]);
        });
    }
}

#[test]
fn a_mark_of_the_last_use_is_no_reason_to_miss() {
    each("*/last-used", |sandbox, _| {
        sandbox.hit("a");
        assert_eq!(sandbox.keys(), [key_of("a")]);
        sandbox.store.gc(&sandbox.exclusive(), Limits::default(), at(1 << 40)).unwrap();
    });
}

#[test]
fn a_lock_file_is_an_error_with_its_path() {
    each("locks/store.lock", |sandbox, kind| {
        for mode in [Mode::Shared, Mode::Exclusive] {
            let error = sandbox.store.try_lock(STORE_LOCK, mode).unwrap_err();
            assert!(error.to_string().contains("locks/store.lock"), "{kind}: {error}");
            let why = std::error::Error::source(&error).unwrap().to_string();
            assert!(why.contains("not a regular file"), "{kind}: {why}");
        }
        sandbox.hit("a");
    });
}

#[test]
fn a_tag_of_the_cache_folder_is_an_error_with_its_path() {
    each("CACHEDIR.TAG", |sandbox, kind| {
        let error = sandbox.store.stage(&key_of("b")).unwrap_err();
        assert!(error.to_string().contains("CACHEDIR.TAG"), "{kind}: {error}");
        sandbox.hit("a");
    });
}

#[test]
fn a_file_of_an_entry_is_damage() {
    for name in ["*/manifest.json", "*/inputs.json", "*/files/wheel.whl"] {
        each(name, move |sandbox, kind| {
            let lookup = sandbox.get("a");
            assert!(
                matches!(lookup, Lookup::Evicted { reason: Damage::NotAFile { .. }, left: None }),
                "{name} {kind}: {lookup:?}"
            );
            sandbox.commit("a", 0);
            sandbox.hit("a");
        });
    }
}

#[test]
fn the_folder_of_an_entry_can_be_stored_anew() {
    each("*", |sandbox, kind| {
        let lookup = sandbox.get("a");
        assert!(!matches!(lookup, Lookup::Hit(_)), "{kind}: {lookup:?}");
        sandbox.commit("a", 0);
        sandbox.hit("a");
    });
}

#[test]
fn a_link_to_a_whole_entry_is_not_served() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    let outside = tempfile::tempdir().unwrap();
    let moved = outside.path().join("moved");
    fs_err::rename(sandbox.entry_folder("a"), &moved).unwrap();
    fs_err::os::unix::fs::symlink(&moved, sandbox.entry_folder("a")).unwrap();
    assert_eq!(sandbox.store.list().unwrap().damaged.len(), 1);
    let lookup = sandbox.get("a");
    assert!(matches!(lookup, Lookup::Evicted { reason: Damage::Link, left: None }), "{lookup:?}");
    assert!(moved.join("manifest.json").exists(), "what the link leads to is not ours to remove");
}

#[test]
fn a_manifest_without_end_is_not_read_and_one_too_large_is_not_written() {
    for name in ["manifest.json", "inputs.json"] {
        let sandbox = Sandbox::new();
        sandbox.commit("a", 0);
        let path = sandbox.entry_folder("a").join(name);
        // 1 TiB, of which the disk holds nothing.
        fs_err::File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
        let lookup = sandbox.get("a");
        assert!(matches!(lookup, Lookup::Evicted { reason: Damage::TooLarge { .. }, .. }), "{lookup:?}");
    }
    let sandbox = Sandbox::new();
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    let error = staging.commit(inputs("a"), json!("x".repeat(1 << 20)), at(0)).unwrap_err();
    assert!(error.to_string().contains("larger than 1 MiB"), "{error}");
    assert!(sandbox.is_miss("a"));
}

#[test]
fn an_entry_of_another_user_is_not_served_but_listed() {
    for name in ["", "manifest.json"] {
        let sandbox = Sandbox::new();
        sandbox.commit("a", 0);
        let folder = sandbox.entry_folder("a");
        let path = if name.is_empty() { folder } else { folder.join(name) };
        if fs_err::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
            crate::support::say("skipped: only root may give files away");
            return;
        }
        assert_eq!(sandbox.keys(), [key_of("a")]);
        let lookup = sandbox.get("a");
        let Lookup::Evicted { reason, left: None } = lookup else { panic!("{lookup:?}") };
        let text = reason.to_string();
        assert!(text.contains("12345") && text.contains(sandbox.store.root().to_str().unwrap()), "{text}");
        sandbox.commit("a", 0);
        sandbox.hit("a");
    }
}
