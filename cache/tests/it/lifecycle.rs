//! Storing and finding again, on the paths where nothing goes wrong.

use crate::support::{Sandbox, at, inputs, key_of, names};
use cache::{Error, Lookup, Store};
use serde_json::json;
use std::path::Path;

#[test]
fn opening_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new");
    let store = Store::open(&root).unwrap();
    assert!(matches!(store.get(&key_of("a"), at(0)), Ok(Lookup::Miss)));
    assert_eq!(store.stat().unwrap().entries, 0);
    assert!(!root.exists());
}

#[test]
fn a_root_that_is_a_file_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(Store::open(file.path()), Err(Error::Io { path, .. }) if path == file.path()));
}

#[test]
fn what_was_stored_is_found_again_under_an_odd_root() {
    let sandbox = Sandbox::new();
    let stored = sandbox.commit("mmcv", 5);
    let found = sandbox.hit("mmcv");
    assert_eq!(found, stored);
    assert_eq!(found.inputs(), &inputs("mmcv"));
    assert_eq!(found.manifest().meta, json!({"package": "mmcv"}));
    assert_eq!(found.manifest().created, 5);
    let listed: Vec<_> = found.files().map(|(file, _)| file.name.as_str()).collect();
    assert_eq!(listed, ["pkg/lib/_ext.so", "wheel.whl"]);
    let wheel = found.file("wheel.whl").unwrap();
    assert_eq!(fs_err::read(wheel).unwrap(), b"wheel of mmcv");
    assert_eq!(found.file("manifest.json"), None);
}

#[test]
fn the_layout_on_disk_is_the_documented_one() {
    let sandbox = Sandbox::new();
    sandbox.commit("mmcv", 0);
    let root = sandbox.store.root();
    assert_eq!(names(root), ["CACHEDIR.TAG", "artifacts-v1", "locks", "tmp"]);
    assert_eq!(names(&sandbox.entry_folder("mmcv")), ["files", "inputs.json", "last-used", "manifest.json"]);
    assert!(sandbox.tmp_names().is_empty());
    let tag = fs_err::read_to_string(root.join("CACHEDIR.TAG")).unwrap();
    assert!(tag.starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
}

#[test]
fn an_added_file_is_a_copy_that_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let source = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(source.path(), "first").unwrap();
    fs_err::set_permissions(source.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    staging.add_file(source.path(), "bin/tool ü").unwrap();
    let entry = staging.commit(inputs("a"), json!(null), at(0)).unwrap();
    fs_err::write(source.path(), "second").unwrap();
    let path = entry.file("bin/tool ü").unwrap();
    assert_eq!(fs_err::read(&path).unwrap(), b"first");
    assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(sandbox.hit("a"), entry);
}

#[test]
fn a_name_that_leaves_the_entry_or_is_taken_is_refused() {
    let sandbox = Sandbox::new();
    let source = tempfile::NamedTempFile::new().unwrap();
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    staging.add_file(source.path(), "taken").unwrap();
    for name in ["../x", "/x", "", "taken"] {
        let result = staging.add_file(source.path(), name);
        assert!(matches!(result, Err(Error::BadFile { .. })), "{name}: {result:?}");
    }
}

#[test]
fn a_link_cannot_be_stored() {
    let sandbox = Sandbox::new();
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    fs_err::os::unix::fs::symlink("/etc/hostname", staging.path().join("link")).unwrap();
    let result = staging.commit(inputs("a"), json!({}), at(0));
    assert!(matches!(result, Err(Error::BadFile { .. })));
    assert!(sandbox.is_miss("a") && sandbox.tmp_names().is_empty());
}

#[test]
fn a_missing_source_file_is_an_error_with_its_path() {
    let sandbox = Sandbox::new();
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    let error = staging.add_file(Path::new("/no/such/file"), "a").unwrap_err();
    assert!(error.to_string().contains("/no/such/file"), "{error}");
}

#[test]
fn a_fraction_in_the_inputs_stores_nothing() {
    let sandbox = Sandbox::new();
    for (inputs, meta) in [(json!({"x": 0.5}), json!({})), (json!({}), json!([1.5]))] {
        let staging = sandbox.store.stage(&key_of("a")).unwrap();
        let result = staging.commit(inputs, meta, at(0));
        assert!(matches!(result, Err(Error::NotInteger { .. })));
    }
    assert!(sandbox.is_miss("a") && sandbox.tmp_names().is_empty());
}

#[test]
fn dropping_a_staging_removes_its_folder() {
    let sandbox = Sandbox::new();
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    fs_err::write(staging.path().join("file"), "x").unwrap();
    assert_eq!(sandbox.tmp_names().len(), 2);
    drop(staging);
    assert!(sandbox.tmp_names().is_empty());
}

#[test]
fn the_first_of_two_commits_stays() {
    let sandbox = Sandbox::new();
    let first = sandbox.commit("a", 1);
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    fs_err::write(staging.path().join("other"), "x").unwrap();
    let second = staging.commit(inputs("a"), json!({}), at(2)).unwrap();
    assert_eq!(second, first);
    assert_eq!(sandbox.hit("a"), first);
    assert!(sandbox.tmp_names().is_empty());
}

#[test]
fn a_hit_moves_the_time_of_last_use() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 10);
    let used = || sandbox.store.list().unwrap().entries[0].last_used;
    assert_eq!(used(), at(10));
    assert!(matches!(sandbox.store.get(&key_of("a"), at(77)), Ok(Lookup::Hit(_))));
    assert_eq!(used(), at(77));
    fs_err::remove_file(sandbox.entry_folder("a").join("last-used")).unwrap();
    assert_eq!(used(), at(10), "without the marker the commit counts");
}

#[test]
fn a_foreign_file_in_the_bucket_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    let note = sandbox.store.root().join("artifacts-v1/notes.txt");
    fs_err::write(&note, "mine").unwrap();
    sandbox.store.gc(&sandbox.exclusive(), cache::Limits::default(), at(0)).unwrap();
    assert_eq!(sandbox.keys(), [key_of("a")]);
    assert!(note.exists());
}
