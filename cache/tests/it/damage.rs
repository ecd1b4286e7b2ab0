//! Entries that are not what they were: each kind of damage is found, named, and moved out of sight.

use crate::support::{Sandbox, at, inputs, key_of, snapshot};
use cache::{Damage, Error, Lookup};
use serde_json::json;

const WHEEL: &str = "files/wheel.whl";

/// Harms a fresh entry and returns what the store makes of it; afterwards the entry has to be gone and storable.
fn damage(harm: impl FnOnce(&Sandbox, &std::path::Path)) -> Damage {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    harm(&sandbox, &sandbox.entry_folder("a"));
    let lookup = sandbox.get("a");
    let Lookup::Evicted { reason, left: None } = lookup else {
        panic!("{lookup:?}");
    };
    assert!(sandbox.is_miss("a"), "an evicted entry is gone");
    assert!(sandbox.tmp_names().is_empty());
    let again = sandbox.commit("a", 1);
    assert_eq!(sandbox.hit("a"), again);
    reason
}

#[test]
fn one_flipped_bit_in_any_file_is_found() {
    for name in [WHEEL, "files/pkg/lib/_ext.so", "inputs.json"] {
        let reason = damage(|_, entry| {
            let mut bytes = fs_err::read(entry.join(name)).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs_err::write(entry.join(name), bytes).unwrap();
        });
        let Damage::WrongDigest { name: named, .. } = &reason else {
            panic!("{name}: {reason:?}");
        };
        assert!(name.ends_with(named));
    }
}

#[test]
fn a_file_that_was_cut_off_or_grew_is_found() {
    for bytes in ["", "wheel", "wheel of a and more"] {
        let reason = damage(|_, entry| fs_err::write(entry.join(WHEEL), bytes).unwrap());
        let found = bytes.len() as u64;
        assert_eq!(reason, Damage::WrongSize { name: "wheel.whl".to_owned(), expected: 10, found });
    }
}

#[test]
fn a_missing_file_is_found() {
    for (path, name) in [
        (WHEEL, "wheel.whl"),
        ("files/pkg", "pkg/lib/_ext.so"),
        ("files", "pkg/lib/_ext.so"),
        ("inputs.json", "inputs.json"),
    ] {
        let reason = damage(|_, entry| {
            let path = entry.join(path);
            if path.is_dir() {
                fs_err::remove_dir_all(path).unwrap();
            } else {
                fs_err::remove_file(path).unwrap();
            }
        });
        let name = name.to_owned();
        assert_eq!(reason, Damage::Missing { name });
    }
}

#[test]
fn a_link_to_the_right_bytes_is_still_damage() {
    for name in [WHEEL, "files/pkg", "inputs.json", "manifest.json"] {
        let outside = tempfile::tempdir().unwrap();
        let reason = damage(|_, entry| {
            let moved = outside.path().join("moved");
            let path = entry.join(name);
            if path.is_dir() {
                fs_err::create_dir_all(moved.join("lib")).unwrap();
                fs_err::rename(path.join("lib/_ext.so"), moved.join("lib/_ext.so")).ok();
                fs_err::remove_dir_all(&path).unwrap();
            } else {
                fs_err::copy(&path, &moved).unwrap();
                fs_err::remove_file(&path).unwrap();
            }
            fs_err::os::unix::fs::symlink(&moved, &path).unwrap();
        });
        assert!(matches!(reason, Damage::NotAFile { .. }), "{name}: {reason:?}");
    }
}

#[test]
fn a_folder_in_place_of_a_file_is_found() {
    let reason = damage(|_, entry| {
        fs_err::remove_file(entry.join(WHEEL)).unwrap();
        fs_err::create_dir(entry.join(WHEEL)).unwrap();
    });
    assert!(matches!(reason, Damage::NotAFile { .. }));
}

#[test]
fn two_files_that_changed_places_are_found() {
    let sandbox = Sandbox::new();
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    fs_err::write(staging.path().join("one"), "111").unwrap();
    fs_err::write(staging.path().join("two"), "222").unwrap();
    staging.commit(inputs("a"), json!({}), at(0)).unwrap();
    let files = sandbox.entry_folder("a").join("files");
    fs_err::rename(files.join("one"), files.join("three")).unwrap();
    fs_err::rename(files.join("two"), files.join("one")).unwrap();
    fs_err::rename(files.join("three"), files.join("two")).unwrap();
    let lookup = sandbox.get("a");
    assert!(
        matches!(&lookup, Lookup::Evicted { reason: Damage::WrongDigest { name, .. }, .. } if name == "one"),
        "{lookup:?}"
    );
}

#[test]
fn a_manifest_cut_off_anywhere_is_found() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    let whole = fs_err::read(sandbox.entry_folder("a").join("manifest.json")).unwrap();
    // The last byte is a line end, which carries no meaning. Each step stores the entry anew, hence the stride.
    for length in (0..whole.len() - 1).rev().step_by(7) {
        fs_err::write(sandbox.entry_folder("a").join("manifest.json"), &whole[..length]).unwrap();
        let lookup = sandbox.get("a");
        let Lookup::Evicted { reason, .. } = lookup else {
            panic!("{length}: {lookup:?}");
        };
        assert!(matches!(reason, Damage::UnreadableManifest { .. }), "{length}");
        sandbox.commit("a", 0);
    }
}

#[test]
fn an_entry_without_a_manifest_does_not_exist_and_can_be_stored_anew() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    fs_err::remove_file(sandbox.entry_folder("a").join("manifest.json")).unwrap();
    assert!(sandbox.is_miss("a"));
    assert!(sandbox.keys().is_empty());
    sandbox.commit("a", 0);
    sandbox.hit("a");
}

#[test]
fn a_file_in_place_of_an_entry_can_be_overcome() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    fs_err::remove_dir_all(sandbox.entry_folder("a")).unwrap();
    fs_err::write(sandbox.entry_folder("a"), "rubbish").unwrap();
    assert!(sandbox.is_miss("a"));
    sandbox.commit("a", 0);
    sandbox.hit("a");
}

#[test]
fn the_manifest_of_another_entry_is_not_believed() {
    let reason = damage(|sandbox, entry| {
        sandbox.commit("b", 0);
        fs_err::remove_dir_all(entry).unwrap();
        fs_err::rename(sandbox.entry_folder("b"), entry).unwrap();
    });
    assert_eq!(reason, Damage::OtherKey { found: key_of("b") });
}

#[test]
fn changed_meta_data_is_found() {
    let reason = damage(|sandbox, _| sandbox.edit_manifest("a", |m| m["meta"]["package"] = json!("b")));
    assert_eq!(reason, Damage::ChangedMeta);
    let reason = damage(|sandbox, _| sandbox.edit_manifest("a", |m| m["meta"] = json!(0.5)));
    assert_eq!(reason, Damage::ChangedMeta);
}

#[test]
fn a_manifest_that_points_outside_its_entry_is_not_followed() {
    for name in ["../inputs.json", "/etc/hostname", "pkg/../wheel.whl", ""] {
        let reason = damage(|sandbox, _| {
            sandbox.edit_manifest("a", |m| m["files"][0]["name"] = json!(name));
        });
        let name = name.to_owned();
        assert_eq!(reason, Damage::UnsafeName { name });
    }
}

#[test]
fn a_commit_over_a_damaged_entry_replaces_it() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    fs_err::write(sandbox.entry_folder("a").join(WHEEL), "bad").unwrap();
    sandbox.commit("a", 9);
    assert_eq!(sandbox.hit("a").manifest().created, 9);
}

#[test]
fn an_entry_of_a_newer_format_is_reported_and_never_touched() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    let folder = sandbox.entry_folder("a");
    fs_err::write(folder.join("manifest.json"), r#"{"format": 2, "blobs": []}"#).unwrap();
    fs_err::remove_file(folder.join(WHEEL)).unwrap();
    let before = snapshot(&folder);

    assert!(matches!(sandbox.get("a"), Lookup::Newer { format: 2 }));
    assert_eq!(sandbox.store.list().unwrap().newer, [key_of("a")]);
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    let refused = staging.commit(inputs("a"), json!({}), at(0));
    assert!(matches!(refused, Err(Error::NewerFormat { format: 2, known: 1, .. })));
    let guard = sandbox.exclusive();
    let limits = cache::Limits { max_bytes: Some(0), max_age: None };
    sandbox.store.gc(&guard, limits, at(1 << 40)).unwrap();
    let all = cache::Match::Prefix(&key_of("a").to_string()[..1]);
    sandbox.store.remove(&guard, &all).unwrap();
    assert_eq!(snapshot(&folder), before);
}

#[test]
fn fields_added_by_a_newer_revision_are_skipped() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    sandbox.edit_manifest("a", |manifest| {
        manifest["revision"] = json!(9);
        manifest["signature"] = json!({"by": 0.5});
        manifest["files"][0]["mode"] = json!(493);
    });
    assert_eq!(sandbox.hit("a").manifest().revision, 9);
}

#[test]
fn damage_reads_as_a_sentence_and_as_json() {
    let name = "a.so".to_owned();
    let damage = Damage::WrongSize { name, expected: 2, found: 1 };
    assert_eq!(damage.to_string(), "a.so has size 1 instead of 2");
    assert_eq!(
        serde_json::to_value(damage).unwrap(),
        json!({"reason": "wrong-size", "name": "a.so", "expected": 2, "found": 1})
    );
}
