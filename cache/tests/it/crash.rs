//! Processes that die at a bad moment: whatever they leave is never read and soon gone.

use crate::support::{Helper, Sandbox, at, helper_store, inputs, key_of, names, say, until_told};
use cache::{Limits, Lookup};
use serde_json::json;
use std::time::Duration;

/// The stages through which a staging folder goes, each as the files that exist by then.
const STAGES: [&[&str]; 6] = [
    &[],
    &["files/"],
    &["files/", "files/half"],
    &["files/", "files/half", "inputs.json"],
    &["files/", "files/half", "inputs.json", "last-used"],
    &["files/", "files/half", "inputs.json", "last-used", "manifest.json"],
];

#[test]
fn what_a_dead_process_left_in_tmp_is_swept_at_every_stage() {
    for stage in STAGES {
        for folder_exists in [true, false] {
            let sandbox = Sandbox::new();
            sandbox.commit("other", 0);
            let tmp = sandbox.store.root().join("tmp");
            fs_err::write(tmp.join("99-0.lock"), "").unwrap();
            if folder_exists {
                fs_err::create_dir(tmp.join("99-0")).unwrap();
                for name in stage {
                    let path = tmp.join("99-0").join(name);
                    if name.ends_with('/') {
                        fs_err::create_dir(path).unwrap();
                    } else {
                        fs_err::write(path, "{").unwrap();
                    }
                }
            }
            let store = sandbox.reopened();
            assert!(sandbox.tmp_names().is_empty(), "{stage:?}");
            assert!(matches!(store.get(&key_of("a"), at(0)), Ok(Lookup::Miss)));
            sandbox.hit("other");
        }
    }
}

#[test]
fn a_half_entry_in_place_is_never_a_hit_and_gives_way() {
    for stage in STAGES {
        let sandbox = Sandbox::new();
        let folder = sandbox.entry_folder("a");
        fs_err::create_dir_all(&folder).unwrap();
        for name in stage {
            if name.ends_with('/') {
                fs_err::create_dir(folder.join(name)).unwrap();
            } else {
                fs_err::write(folder.join(name), "{").unwrap();
            }
        }
        let lookup = sandbox.get("a");
        assert!(matches!(lookup, Lookup::Miss | Lookup::Evicted { .. }), "{stage:?}: {lookup:?}");
        sandbox.commit("a", 0);
        sandbox.hit("a");
    }
}

#[test]
fn a_living_process_keeps_its_staging() {
    let sandbox = Sandbox::new();
    let staging = sandbox.store.stage(&key_of("a")).unwrap();
    fs_err::write(staging.path().join("file"), "x").unwrap();
    sandbox.reopened();
    let removed = sandbox.store.gc(&sandbox.exclusive(), Limits::default(), at(1 << 40));
    assert_eq!(removed.unwrap().leftovers, 0);
    staging.commit(inputs("a"), json!({}), at(0)).unwrap();
    sandbox.hit("a");
}

#[test]
fn a_staging_folder_without_a_lock_file_is_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.commit("a", 0);
    fs_err::create_dir(sandbox.store.root().join("tmp/99-0")).unwrap();
    sandbox.reopened();
    assert_eq!(sandbox.tmp_names(), ["99-0"], "it may be alive where locks do not work");
}

#[test]
fn a_killed_process_leaves_nothing_after_the_next_open() {
    let sandbox = Sandbox::new();
    let mut helper = Helper::start("crash::helper_stages_and_hangs", sandbox.store.root());
    helper.wait_for("staged");
    sandbox.reopened();
    assert_eq!(sandbox.tmp_names().len(), 2, "it is alive");
    helper.kill();
    assert_eq!(sandbox.tmp_names().len(), 2, "nobody tidied up yet");
    sandbox.reopened();
    assert!(sandbox.tmp_names().is_empty());
    assert!(sandbox.is_miss("a"));
}

#[test]
#[ignore = "the body of a second process, started by a_killed_process_leaves_nothing_after_the_next_open"]
fn helper_stages_and_hangs() {
    let Some(store) = helper_store() else { return };
    let staging = store.stage(&key_of("a")).unwrap();
    fs_err::write(staging.path().join("file"), "x").unwrap();
    say("staged");
    until_told();
}

#[test]
fn a_process_killed_at_any_moment_of_a_commit_leaves_a_whole_entry_or_none() {
    let sandbox = Sandbox::new();
    for round in 0..12 {
        let mut helper = Helper::start("crash::helper_commits_for_ever", sandbox.store.root());
        helper.wait_for("started");
        std::thread::sleep(Duration::from_millis(7 * round));
        helper.kill();
        for shard in names(&sandbox.store.root().join("artifacts-v1")) {
            for name in names(&sandbox.store.root().join("artifacts-v1").join(shard)) {
                let lookup = sandbox.store.get(&name.parse().unwrap(), at(0)).unwrap();
                assert!(matches!(lookup, Lookup::Hit(_)), "{lookup:?}");
            }
        }
    }
    sandbox.reopened();
    assert!(sandbox.tmp_names().is_empty());
}

#[test]
#[ignore = "the body of a second process, started by a_process_killed_at_any_moment_of_a_commit_…"]
fn helper_commits_for_ever() {
    let Some(store) = helper_store() else { return };
    say("started");
    for number in 0_u64.. {
        let package = format!("p{}", number % 5);
        let staging = store.stage(&key_of(&package)).unwrap();
        for file in 0..4 {
            fs_err::write(staging.path().join(format!("f{file}")), vec![1; 20_000]).unwrap();
        }
        staging.commit(inputs(&package), json!({}), at(number)).unwrap();
        if number % 5 == 4 {
            let guard = store.try_lock(cache::STORE_LOCK, cache::Mode::Exclusive).unwrap().unwrap();
            let all = cache::Match::Where(&|_| true);
            store.remove(&guard, &all).unwrap();
        }
    }
}
