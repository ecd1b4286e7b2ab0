//! Access to the vectors, and shorthand for listing bytes.

use std::path::PathBuf;

use fatbin::{Listing, Options, Problem};

/// The folder with the vectors.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// The expected values of all vectors, by file name.
pub(crate) fn expected() -> serde_json::Map<String, serde_json::Value> {
    let text = fs_err::read(folder().join("expected.json")).expect("vectors are part of the crate");
    let mut all: serde_json::Value = serde_json::from_slice(&text).expect("expected.json is JSON");
    match all["files"].take() {
        serde_json::Value::Object(files) => files,
        other => panic!("`files` is {other}"),
    }
}

/// The bytes of one vector.
pub(crate) fn vector(name: &str) -> Vec<u8> {
    fs_err::read(folder().join(name)).expect("vectors are part of the crate")
}

/// Lists bytes of a format that must be known.
pub(crate) fn list(bytes: &[u8]) -> Listing {
    fatbin::list(bytes, &Options::default()).expect("a known format")
}

/// Entries as `kind arch`, for short comparisons.
pub(crate) fn shown(listing: &Listing) -> Vec<String> {
    listing.entries.iter().map(|entry| format!("{} {}", entry.kind, entry.arch)).collect()
}

/// The problems of a listing, without their places.
pub(crate) fn problems(listing: &Listing) -> Vec<Problem> {
    listing.diagnostics.iter().map(|diagnostic| diagnostic.problem.clone()).collect()
}

/// The whole of `.nv_fatbin` of the first vector: one fatbin with one cubin for `sm_80`.
pub(crate) fn fatbin_sm80() -> Vec<u8> {
    vector("v01_sm80.o")[1544..1544 + 5936].to_vec()
}
