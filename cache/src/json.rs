//! One JSON value, one spelling: the bytes that get hashed.
//!
//! Invariant: two values that mean the same give the same bytes, whatever the order of keys in memory or on disk.
//! Keys are sorted by their UTF-8 bytes, nothing is indented, and numbers are 64-bit integers: a fraction has
//! many spellings and would let one meaning have two keys.

use crate::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// The canonical bytes of `value`. Fractions and integers beyond 64 bits are refused.
pub fn canonical_json(value: &Value) -> Result<Vec<u8>> {
    let mut text = String::new();
    write(value, &mut String::new(), &mut text)?;
    Ok(text.into_bytes())
}

fn write(value: &Value, pointer: &mut String, out: &mut String) -> Result<()> {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            return Err(Error::NotInteger { pointer: pointer.clone(), number: number.to_string() });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                below(pointer, &index.to_string(), |pointer| write(item, pointer, out))?;
            }
            out.push(']');
        }
        Value::Object(fields) => write_object(fields, pointer, out)?,
    }
    Ok(())
}

/// Sorts by itself and not by trust in `serde_json`: any crate in the build may switch its map to file order.
fn write_object<'a>(
    fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
    pointer: &mut String,
    out: &mut String,
) -> Result<()> {
    out.push('{');
    let sorted: BTreeMap<_, _> = fields.into_iter().collect();
    for (index, (name, field)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        below(pointer, name, |pointer| write(field, pointer, out))?;
    }
    out.push('}');
    Ok(())
}

/// Runs `visit` with `pointer` lengthened by one escaped step, and shortens it again.
pub(crate) fn below<T>(pointer: &mut String, step: &str, visit: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
    let result = visit(pointer);
    pointer.truncate(length);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;
    use proptest::prelude::*;
    use serde_json::json;

    fn text(value: &Value) -> String {
        String::from_utf8(canonical_json(value).unwrap()).unwrap()
    }

    #[test]
    fn keys_are_sorted_and_nothing_is_indented() {
        let value = json!({"b": [1, -2, u64::MAX, null, true], "a": {"z": "ü\n\"", "Z": {}}, "": []});
        assert_eq!(text(&value), r#"{"":[],"a":{"Z":{},"z":"ü\n\""},"b":[1,-2,18446744073709551615,null,true]}"#);
    }

    #[test]
    fn keys_are_sorted_even_if_the_map_is_not() {
        let fields = [("b", 1), ("a", 2), ("ä", 3)].map(|(name, n)| (name.to_owned(), json!(n)));
        let unsorted = fields.iter().map(|(name, value)| (name, value));
        let mut out = String::new();
        write_object(unsorted, &mut String::new(), &mut out).unwrap();
        assert_eq!(out, r#"{"a":2,"b":1,"ä":3}"#);
    }

    #[test]
    fn a_fraction_is_refused_with_its_place() {
        for number in [json!(1.0), json!(0.5), json!(1e300)] {
            let error = canonical_json(&json!({"a/b": [0, {"c": number}]})).unwrap_err();
            assert!(matches!(&error, Error::NotInteger { pointer, .. } if pointer == "/a~1b/1/c"), "{error}");
        }
    }

    #[test]
    fn an_integer_beyond_64_bits_is_refused() {
        let value: Value = serde_json::from_str("[18446744073709551616]").unwrap();
        assert!(canonical_json(&value).is_err());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// The same value as JSON text whose objects list their keys in an order drawn from `seed`.
    fn shuffled(value: &Value, seed: &mut u64) -> String {
        match value {
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| shuffled(item, seed)).collect();
                format!("[ {} ]", items.join(" ,\n"))
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                for last in (1..fields.len()).rev() {
                    *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    let other = usize::try_from(*seed >> 33).unwrap() % (last + 1);
                    fields.swap(last, other);
                }
                let fields: Vec<_> = fields
                    .into_iter()
                    .map(|(name, field)| {
                        let name = Value::from(name.as_str());
                        format!("{name} : {}", shuffled(field, seed))
                    })
                    .collect();
                format!("{{ {} }}", fields.join(" ,\n"))
            }
            leaf => leaf.to_string(),
        }
    }

    proptest! {
        #[test]
        fn any_order_of_keys_gives_the_same_digest(value in any_json(), mut seed: u64) {
            let reordered: Value = serde_json::from_str(&shuffled(&value, &mut seed)).unwrap();
            prop_assert_eq!(
                digest(&canonical_json(&value).unwrap()),
                digest(&canonical_json(&reordered).unwrap())
            );
        }

        #[test]
        fn canonical_bytes_read_back_as_the_same_value(value in any_json()) {
            let bytes = canonical_json(&value).unwrap();
            let back: Value = serde_json::from_slice(&bytes).unwrap();
            prop_assert_eq!(&back, &value);
            prop_assert_eq!(canonical_json(&back).unwrap(), bytes);
        }
    }
}
