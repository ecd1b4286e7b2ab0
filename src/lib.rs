//! The map of cuwright: flow, layers, modules.

pub mod build;
pub mod domain;
pub mod key;
pub mod plan;
pub mod preflight;
pub mod recipe;
pub mod report;
pub mod sys;
pub mod ui;
pub mod verify;

/// temporary
pub mod compat {
    /// x
    pub fn toolkit_range_text(_: crate::domain::arch::Arch) -> Option<String> {
        None
    }
}

/// Compares a committed JSON schema with what the types say. `CUWRIGHT_BLESS=1` writes it instead.
#[cfg(test)]
pub(crate) fn schema_check<T: schemars::JsonSchema>(path: &str) {
    let schema = schemars::schema_for!(T);
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if sys::Env::capture().flag("CUWRIGHT_BLESS") {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(&path, &text).unwrap();
    }
    let committed = fs_err::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, text, "{path} is stale: run the tests once with CUWRIGHT_BLESS=1 and commit it");
}
