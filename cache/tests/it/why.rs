//! Finding the entry that comes closest, and saying what differs.

use crate::support::{Sandbox, at};
use cache::{Change, canonical_json, digest};
use serde_json::{Value, json};

fn put(sandbox: &Sandbox, inputs: Value, now: u64) {
    let key = digest(&canonical_json(&inputs).unwrap());
    let staging = sandbox.store.stage(&key).unwrap();
    staging.commit(inputs, json!({}), at(now)).unwrap();
}

fn build(package: &str, nvcc: &str, flags: &[&str]) -> Value {
    json!({"package": package, "nvcc": nvcc, "flags": flags})
}

#[test]
fn the_nearest_entry_is_the_one_with_fewest_changes_of_the_same_package() {
    let sandbox = Sandbox::new();
    put(&sandbox, build("mmcv", "12.4", &["-O3"]), 1);
    put(&sandbox, build("mmcv", "12.4", &["-O2", "-g"]), 9);
    put(&sandbox, build("apex", "12.8", &["-O3"]), 9);
    let wanted = build("mmcv", "12.8", &["-O3"]);
    let near = sandbox.store.nearest(&wanted, |record| record.inputs["package"] == "mmcv");
    let near = near.unwrap().unwrap();
    let (before, after) = (Some(json!("12.4")), Some(json!("12.8")));
    let path = "/nvcc".to_owned();
    assert_eq!(near.changes, [Change { path, before, after }]);
    let all = sandbox.store.why(&wanted, |record| record.inputs["package"] == "mmcv").unwrap();
    assert_eq!(all.iter().map(|near| near.changes.len()).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn of_two_equally_near_entries_the_more_recently_used_comes_first() {
    let sandbox = Sandbox::new();
    for (nvcc, now) in [("12.1", 1), ("12.2", 3), ("12.3", 2)] {
        put(&sandbox, build("mmcv", nvcc, &[]), now);
    }
    let all = sandbox.store.why(&build("mmcv", "12.8", &[]), |_| true).unwrap();
    let order: Vec<_> = all.iter().map(|near| near.record.inputs["nvcc"].clone()).collect();
    assert_eq!(order, ["12.2", "12.3", "12.1"]);
}

#[test]
fn an_empty_store_has_no_nearest_entry() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.store.nearest(&json!({}), |_| true).unwrap(), None);
}
