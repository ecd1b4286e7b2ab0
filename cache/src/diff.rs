//! What changed between two sets of inputs, field by field.
//!
//! Invariant: the same two values always give the same list in the same order, and equal values give none.
//! Numbers, texts and lists are compared, not interpreted: that `12.4 → 12.8` is an upgrade is for the caller to say.

use crate::json::below;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// One field that differs. `None` stands for a field that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where it stands, as a JSON pointer.
    pub path: String,
    /// The value in the first set.
    pub before: Option<Value>,
    /// The value in the second set.
    pub after: Option<Value>,
}

/// The fields in which `b` differs from `a`, outermost first, objects by key and lists by position.
pub fn diff(a: &Value, b: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(Some(a), Some(b), &mut String::new(), &mut changes);
    changes
}

fn compare(before: Option<&Value>, after: Option<&Value>, path: &mut String, out: &mut Vec<Change>) {
    match (before, after) {
        _ if before == after => {}
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for name in names {
                below(path, name, |path| {
                    compare(a.get(name), b.get(name), path, out);
                });
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            // One flag put in front of a list must read as one change, so what both ends share is set aside.
            let shortest = a.len().min(b.len());
            let same_head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
            let pairs_from_end = a.iter().rev().zip(b.iter().rev());
            let same_tail = pairs_from_end.take(shortest - same_head).take_while(|(a, b)| a == b).count();
            let (a_end, b_end) = (a.len() - same_tail, b.len() - same_tail);
            for index in same_head..a_end.max(b_end) {
                below(path, &index.to_string(), |path| {
                    compare(a[..a_end].get(index), b[..b_end].get(index), path, out);
                });
            }
        }
        _ => out.push(Change { path: path.clone(), before: before.cloned(), after: after.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(a: &Value, b: &Value) -> Vec<String> {
        let show = |side: &Option<Value>| side.as_ref().map_or("-".to_owned(), Value::to_string);
        diff(a, b)
            .iter()
            .map(|change| format!("{} {} {}", change.path, show(&change.before), show(&change.after)))
            .collect()
    }

    #[test]
    fn equal_values_do_not_differ() {
        let value = json!({"a": [1, {"b": null}]});
        assert!(diff(&value, &value).is_empty());
    }

    #[test]
    fn fields_are_reported_in_key_order() {
        let a = json!({"nvcc": "12.4", "arch": ["9.0"], "gone": 1, "same": 0});
        let b = json!({"same": 0, "new": {"x": 1}, "nvcc": "12.8", "arch": ["9.0"]});
        assert_eq!(lines(&a, &b), ["/gone 1 -", "/new - {\"x\":1}", "/nvcc \"12.4\" \"12.8\"",]);
    }

    #[test]
    fn one_flag_added_anywhere_is_one_change() {
        let base = json!(["-O3", "-g", "-O3"]);
        for at in 0..=3 {
            let mut longer = base.as_array().unwrap().clone();
            longer.insert(at, json!("-lineinfo"));
            assert_eq!(lines(&base, &json!(longer)), [format!("/{at} - \"-lineinfo\"")]);
            assert_eq!(lines(&json!(longer), &base), [format!("/{at} \"-lineinfo\" -")]);
        }
    }

    #[test]
    fn a_missing_field_is_not_a_null_field() {
        assert_eq!(lines(&json!({}), &json!({"a": null})), ["/a - null"]);
    }

    #[test]
    fn a_repeated_item_counts_once_at_each_end() {
        assert_eq!(lines(&json!([1, 1]), &json!([1, 1, 1])), ["/2 - 1"]);
        assert_eq!(lines(&json!([1]), &json!([])), ["/0 1 -"]);
    }

    #[test]
    fn values_of_different_kinds_are_one_change() {
        assert_eq!(lines(&json!({"a": [1]}), &json!({"a": {"0": 1}})), ["/a [1] {\"0\":1}"]);
        assert_eq!(lines(&json!(1), &json!("1")), [" 1 \"1\""]);
    }
}
