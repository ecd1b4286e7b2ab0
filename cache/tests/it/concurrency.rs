//! Threads and processes on one store: every reader sees a whole entry or none, every writer ends with an entry.

use crate::support::{Helper, Sandbox, at, helper_store, inputs, key_of, say, until_told};
use cache::{Lookup, Match, Store};
use serde_json::json;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Like two builds whose output is not the same from run to run.
fn commit_as(store: &Store, who: usize) -> cache::Entry {
    let staging = store.stage(&key_of("a")).unwrap();
    fs_err::write(staging.path().join("file"), vec![b'0' + u8::try_from(who).unwrap(); 5_000]).unwrap();
    staging.commit(inputs("a"), json!({"who": who}), at(0)).unwrap()
}

#[test]
fn threads_that_race_for_one_key_end_with_the_same_entry() {
    for _ in 0..20 {
        let sandbox = Sandbox::new();
        let barrier = Barrier::new(4);
        let entries: Vec<_> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..4)
                .map(|who| {
                    let (store, barrier) = (&sandbox.store, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        commit_as(store, who)
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let winner = sandbox.hit("a");
        assert!(entries.iter().all(|entry| *entry == winner));
        assert!(sandbox.tmp_names().is_empty());
    }
}

#[test]
fn threads_that_race_over_a_damaged_entry_end_with_the_same_entry() {
    for _ in 0..20 {
        let sandbox = Sandbox::new();
        commit_as(&sandbox.store, 9);
        fs_err::write(sandbox.entry_folder("a").join("files/file"), "bad").unwrap();
        let barrier = Barrier::new(3);
        std::thread::scope(|scope| {
            for who in 0..3 {
                let (sandbox, barrier) = (&sandbox, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let _ = sandbox.get("a");
                    commit_as(&sandbox.store, who);
                });
            }
        });
        assert!(sandbox.hit("a").manifest().meta["who"] != json!(9));
        assert!(sandbox.tmp_names().is_empty());
    }
}

#[test]
fn processes_that_race_for_one_key_end_with_one_whole_entry() {
    let sandbox = Sandbox::new();
    let mut helpers: Vec<_> =
        (0..3).map(|_| Helper::start("concurrency::helper_commits_when_told", sandbox.store.root())).collect();
    for helper in &mut helpers {
        helper.wait_for("ready");
    }
    for helper in helpers {
        helper.finish();
    }
    sandbox.hit("a");
    assert_eq!(sandbox.keys(), [key_of("a")]);
    assert!(sandbox.tmp_names().is_empty());
}

#[test]
#[ignore = "the body of a second process, started by processes_that_race_for_one_key_…"]
fn helper_commits_when_told() {
    let Some(store) = helper_store() else { return };
    say("ready");
    until_told();
    for _ in 0..20 {
        commit_as(&store, 1);
    }
}

#[test]
fn a_get_during_removal_and_renewal_is_a_hit_or_a_miss_and_never_damage() {
    let sandbox = Sandbox::new();
    commit_as(&sandbox.store, 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    match sandbox.store.get(&key_of("a"), at(0)) {
                        Ok(Lookup::Hit(_) | Lookup::Miss) => {}
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        for who in 0..150 {
            let guard = sandbox.exclusive();
            sandbox.store.remove(&guard, &Match::Where(&|_| true)).unwrap();
            commit_as(&sandbox.store, who % 10);
        }
        done.store(true, Ordering::Relaxed);
    });
}
