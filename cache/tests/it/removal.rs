//! What remove and gc take, what they leave, and what they need to be allowed.

use crate::support::{Sandbox, at, key_of, names};
use cache::{Error, Key, Limits, Match, Mode, STORE_LOCK};
use std::time::Duration;

fn three() -> Sandbox {
    let sandbox = Sandbox::new();
    for (package, used) in [("a", 30), ("b", 10), ("c", 20)] {
        sandbox.commit(package, used);
    }
    sandbox
}

fn sorted<const N: usize>(packages: [&str; N]) -> Vec<Key> {
    let mut keys: Vec<_> = packages.into_iter().map(key_of).collect();
    keys.sort();
    keys
}

fn gc(sandbox: &Sandbox, limits: Limits, now: u64) -> Vec<Key> {
    sandbox.store.gc(&sandbox.exclusive(), limits, at(now)).unwrap().keys
}

#[test]
fn stat_counts_entries_bytes_and_times() {
    let sandbox = three();
    let stat = sandbox.store.stat().unwrap();
    assert_eq!((stat.entries, stat.damaged, stat.newer), (3, 0, 0));
    assert_eq!((stat.oldest_use, stat.newest_use), (Some(at(10)), Some(at(30))));
    assert!(stat.bytes > 300_000 && stat.bytes < 310_000, "{}", stat.bytes);
}

#[test]
fn removing_by_prefix_takes_the_one_it_names() {
    let sandbox = three();
    let key = key_of("b");
    assert!(sandbox.store.holds(key.short()).unwrap());
    let removed = sandbox.store.remove(&sandbox.exclusive(), &Match::Prefix(key.short())).unwrap();
    assert!(!sandbox.store.holds(key.short()).unwrap());
    assert_eq!(removed.keys, [key]);
    assert!(removed.bytes > 100_000);
    assert_eq!(sandbox.keys(), sorted(["a", "c"]));
    assert!(sandbox.is_miss("b") && sandbox.tmp_names().is_empty());
}

#[test]
fn a_prefix_that_is_no_hex_or_empty_is_refused() {
    let sandbox = three();
    for prefix in ["", "xyz", "A", &"a".repeat(65)] {
        let result = sandbox.store.remove(&sandbox.exclusive(), &Match::Prefix(prefix));
        assert!(matches!(result, Err(Error::BadPrefix { .. })), "{prefix}");
        assert!(matches!(sandbox.store.holds(prefix), Err(Error::BadPrefix { .. })), "{prefix}");
    }
    assert_eq!(sandbox.keys().len(), 3);
}

#[test]
fn removing_by_content_sees_inputs_and_manifest() {
    let sandbox = three();
    let which = Match::Where(&|record| record.inputs["package"] == "a" || record.manifest.meta["package"] == "c");
    sandbox.store.remove(&sandbox.exclusive(), &which).unwrap();
    assert_eq!(sandbox.keys(), sorted(["b"]));
}

#[test]
fn removing_needs_the_exclusive_lock_of_this_store() {
    let sandbox = three();
    let shared = sandbox.store.try_lock(STORE_LOCK, Mode::Shared).unwrap().unwrap();
    let other_name = sandbox.store.try_lock("other", Mode::Exclusive).unwrap().unwrap();
    let other_store = Sandbox::new();
    let foreign = other_store.exclusive();
    for guard in [&shared, &other_name, &foreign] {
        let all = Match::Where(&|_| true);
        assert!(matches!(sandbox.store.remove(guard, &all), Err(Error::NotExclusive { .. })));
        let result = sandbox.store.gc(guard, Limits::default(), at(0));
        assert!(matches!(result, Err(Error::NotExclusive { .. })));
    }
    assert_eq!(sandbox.keys().len(), 3);
}

#[test]
fn gc_without_limits_keeps_every_entry() {
    let sandbox = three();
    assert!(gc(&sandbox, Limits::default(), 1 << 40).is_empty());
    assert_eq!(sandbox.keys().len(), 3);
}

#[test]
fn gc_by_size_takes_the_longest_unused_first_and_no_more_than_needed() {
    let sandbox = three();
    let _ = sandbox.store.get(&key_of("b"), at(40)).unwrap();
    let bytes = sandbox.store.stat().unwrap().bytes;
    let limit = |max_bytes| Limits { max_bytes: Some(max_bytes), max_age: None };
    assert!(gc(&sandbox, limit(bytes), 50).is_empty());
    assert_eq!(gc(&sandbox, limit(bytes - 1), 50), [key_of("c")]);
    assert_eq!(gc(&sandbox, limit(0), 50), [key_of("a"), key_of("b")]);
}

#[test]
fn gc_by_age_takes_what_is_older_and_not_what_is_as_old() {
    let sandbox = three();
    let limit = Limits { max_bytes: None, max_age: Some(Duration::from_secs(20)) };
    assert_eq!(gc(&sandbox, limit, 40), [key_of("b")]);
    assert_eq!(gc(&sandbox, limit, 5), [], "uses in the future are recent");
}

#[test]
fn gc_takes_damaged_entries_and_folders_without_a_manifest() {
    let sandbox = three();
    fs_err::write(sandbox.entry_folder("a").join("manifest.json"), "{").unwrap();
    fs_err::remove_file(sandbox.entry_folder("b").join("manifest.json")).unwrap();
    assert_eq!(sandbox.store.stat().unwrap().damaged, 1);
    let removed = sandbox.store.gc(&sandbox.exclusive(), Limits::default(), at(0)).unwrap();
    assert_eq!((removed.keys, removed.leftovers), (vec![key_of("a")], 1));
    assert!(!sandbox.entry_folder("a").exists() && !sandbox.entry_folder("b").exists());
    sandbox.hit("c");
}

#[test]
fn gc_removes_free_key_locks_and_no_held_ones() {
    let sandbox = three();
    let (free, held) = (key_of("a").lock_name(), key_of("b").lock_name());
    drop(sandbox.store.try_lock(&free, Mode::Exclusive).unwrap());
    let _held = sandbox.store.try_lock(&held, Mode::Exclusive).unwrap().unwrap();
    gc(&sandbox, Limits::default(), 0);
    let left = names(&sandbox.store.root().join("locks"));
    assert_eq!(left, [format!("{held}.lock"), "store.lock".to_owned()]);
}
