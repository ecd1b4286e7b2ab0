//! Disks that refuse: full, read-only. The store says so, and what was there before stays readable.
//!
//! These need a small filesystem of their own. Where mounting is not permitted the tests say so and pass.

use crate::support::{Sandbox, at, inputs, key_of, snapshot};
use cache::{Damage, Limits, Lookup, Match, Mode, STORE_LOCK};
use serde_json::json;
use std::io::ErrorKind;
use std::path::Path;

/// A mounted tmpfs, unmounted on drop.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().to_str().unwrap();
        if mount(&["-t", "tmpfs", "-o", options, "none", target]) {
            return Some(Self(folder));
        }
        crate::support::say("skipped: this user may not mount a tmpfs");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(mount(&["-o", &options, self.path().to_str().unwrap()]));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["-l", self.path().to_str().unwrap()]);
    }
}

fn mount(arguments: &[&str]) -> bool {
    run("mount", arguments)
}

fn run(program: &str, arguments: &[&str]) -> bool {
    #[expect(clippy::disallowed_methods, reason = "only mount(8) can make a full disk to order")]
    std::process::Command::new(program)
        .args(arguments)
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Fills the filesystem to the last byte.
fn fill(folder: &Path) {
    use std::io::Write;
    let mut file = fs_err::File::create(folder.join("ballast")).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_to_read() {
    let Some(disk) = Mount::new("size=1m") else {
        return;
    };
    let sandbox = Sandbox::under(disk.path());
    sandbox.commit("old", 0);
    let source = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(source.path(), vec![1; 2 << 20]).unwrap();

    let staging = sandbox.store.stage(&key_of("new")).unwrap();
    let error = staging.add_file(source.path(), "big").unwrap_err();
    assert_eq!(error.io_kind(), Some(ErrorKind::StorageFull), "{error:?}");
    drop(staging);
    assert!(sandbox.tmp_names().is_empty());
    assert!(sandbox.is_miss("new"));
    sandbox.hit("old");
}

#[test]
fn a_disk_that_fills_up_before_the_manifest_fails_the_commit() {
    let Some(disk) = Mount::new("size=1m") else {
        return;
    };
    let sandbox = Sandbox::under(disk.path());
    sandbox.commit("old", 0);
    let staging = sandbox.store.stage(&key_of("new")).unwrap();
    fs_err::write(staging.path().join("file"), "x").unwrap();
    fill(disk.path());
    let error = staging.commit(inputs("new"), json!({}), at(0)).unwrap_err();
    assert_eq!(error.io_kind(), Some(ErrorKind::StorageFull), "{error:?}");
    assert!(sandbox.is_miss("new"));
    assert!(sandbox.tmp_names().is_empty());
    sandbox.hit("old");
}

#[test]
fn gc_works_on_a_disk_without_room_for_one_more_file() {
    let Some(disk) = Mount::new("size=4m,nr_inodes=40") else {
        return;
    };
    let sandbox = Sandbox::under(disk.path());
    sandbox.commit("old", 0);
    let guard = sandbox.exclusive();
    let full = (0..100).any(|n| fs_err::write(disk.path().join(format!("{n}")), "").is_err());
    assert!(full && sandbox.store.stage(&key_of("x")).is_err());
    let limits = Limits { max_bytes: Some(0), max_age: None };
    let removed = sandbox.store.gc(&guard, limits, at(0)).unwrap();
    assert_eq!(removed.keys, [key_of("old")]);
    assert!(!sandbox.entry_folder("old").exists());
}

#[test]
fn a_read_only_store_can_be_read_and_refuses_the_rest() {
    let Some(disk) = Mount::new("size=4m") else {
        return;
    };
    let sandbox = Sandbox::under(disk.path());
    sandbox.commit("good", 0);
    sandbox.commit("bad", 0);
    fs_err::write(sandbox.entry_folder("bad").join("files/wheel.whl"), "bad").unwrap();
    disk.remount("ro");
    let before = snapshot(disk.path());

    let store = sandbox.reopened();
    sandbox.hit("good");
    let lookup = sandbox.get("bad");
    assert!(matches!(&lookup, Lookup::Evicted { reason: Damage::WrongSize { .. }, left: Some(_) }), "{lookup:?}");
    let error = store.stage(&key_of("new")).unwrap_err();
    assert_eq!(error.io_kind(), Some(ErrorKind::ReadOnlyFilesystem), "{error:?}");
    let shared = store.try_lock(STORE_LOCK, Mode::Shared).unwrap().unwrap();
    assert!(shared.degraded().is_some(), "there is no lock file to lock");
    assert!(store.try_lock(STORE_LOCK, Mode::Exclusive).is_err());
    assert_eq!(snapshot(disk.path()), before);
}

#[test]
fn a_read_only_store_with_a_lock_file_is_locked_for_reading() {
    let Some(disk) = Mount::new("size=4m") else {
        return;
    };
    let sandbox = Sandbox::under(disk.path());
    drop(sandbox.exclusive());
    disk.remount("ro");
    let shared = sandbox.store.try_lock(STORE_LOCK, Mode::Shared).unwrap().unwrap();
    assert_eq!(shared.degraded(), None);
}

#[test]
fn an_empty_read_only_folder_is_an_empty_store() {
    let Some(disk) = Mount::new("size=1m") else {
        return;
    };
    disk.remount("ro");
    let sandbox = Sandbox::under(disk.path());
    assert!(sandbox.is_miss("a"));
    assert!(sandbox.store.list().unwrap().entries.is_empty());
    assert!(sandbox.store.stage(&key_of("a")).is_err());
    let shared = sandbox.store.try_lock(STORE_LOCK, Mode::Shared).unwrap().unwrap();
    assert!(shared.degraded().is_some());
}

#[test]
fn an_entry_in_a_lower_image_layer_can_be_evicted_replaced_and_removed() {
    let Some(disk) = Mount::new("size=8m") else {
        return;
    };
    let place = |name| disk.path().join(name).to_str().unwrap().to_owned();
    for name in ["lower", "upper", "work", "merged"] {
        fs_err::create_dir(place(name)).unwrap();
    }
    Sandbox::under(place("lower").as_ref()).commit("a", 0);
    let layers = ["lower", "upper", "work"].map(|name| format!("{name}dir={}", place(name)));
    let options = format!("redirect_dir=off,{}", layers.join(","));
    let merged = place("merged");
    if !mount(&["-t", "overlay", "-o", &options, "none", &merged]) {
        crate::support::say("skipped: this kernel may not mount an overlay here");
        return;
    }
    let sandbox = Sandbox::under(merged.as_ref());
    sandbox.hit("a");
    fs_err::write(sandbox.entry_folder("a").join("files/wheel.whl"), "bad").unwrap();
    let lookup = sandbox.get("a");
    assert!(matches!(lookup, Lookup::Evicted { left: None, .. }), "{lookup:?}");
    sandbox.commit("a", 1);
    sandbox.hit("a");
    let all = Match::Where(&|_| true);
    sandbox.store.remove(&sandbox.exclusive(), &all).unwrap();
    assert!(sandbox.is_miss("a"));
    run("umount", &["-l", &merged]);
}
