//! The map of cuwright: cargo for CUDA extensions.
//!
//! # Flow
//!
//! ```text
//! recipe text ─parse→ RawRecipe ─resolve→ Recipe ─┐
//! argv + Env ─cli→ Request ───────────────────────┴─targets::select→ ArchSet + why
//! Request + ArchSet ─pipeline::toolchain::choose→ Toolchain     source ─source→ tree and its digest
//! Recipe's matrix ─cells→ units, each with its Request; those that nothing satisfies are pruned (preflight::cells)
//! (Recipe, Toolchain, ArchSet) ─preflight→ ok | every violated constraint, each with its mend
//! (Recipe, Toolchain, ArchSet, Env) ─plan→ environment, jobs, command     ─key→ KeyInputs → Key
//! Key and what the build read ─artifact cache→ wheel, or:  build, through the launcher → wheel ─verify (device code, import)→ ok → cache → `dist/`
//! a log, of a failed build or from elsewhere ─diagnose (rules as data)→ cause, evidence, mend
//! ```
//!
//! # Layers
//!
//! | modules | may use |
//! |---|---|
//! | pure, in this order: `domain` `recipe` `compat` `targets` `preflight` `plan` `key` `diagnose` `report` | what stands left of it |
//! | `emit`: an environment in the formats of others | `domain` |
//! | `sys`: environment, processes, files, network, clock | `domain` |
//! | effects: `probe` `provision` `source` `launcher` `build` `verify` | the pure line and `sys`, never one another |
//! | `pipeline` joins effects for one unit, and runs units side by side (`pipeline::units`) | all above |
//! | `ui` prints, `cli` is the command line as values, `commands` wires | all above |
//!
//! A test (`tests/it/tidy.rs`) holds the table and the code together. Two values of `sys` count as pure: the captured
//! environment `sys::Env` and the registry of variable names.
//!
//! # Invariants
//!
//! * The artifact is the only truth: a build passes by what its wheel holds, not by an exit status.
//! * Nothing is guessed in silence: every fact carries its source.
//! * The environment is a value: captured once, passed down; children get an explicit one.
//! * Only verified artifacts enter the cache, and a fault of the cache is a warning and a plain build.
//!
//! # Where this departs from the first design
//!
//! * A build environment is one folder per *set of requirements* (torch, toolkit and what a recipe needs), hard-linked
//!   from uv's cache. It is used in place after a marker is written, since virtual environments do not move.
//! * What an environment with torch lacks for a build is a folder of the same kind, without torch, in front of
//!   `PYTHONPATH`: the environment itself is never written to.
//! * `ErrorMessage` and [`domain::problem::Problem`] carry what, why and the mend; there is no error enum per stage, as
//!   nothing but a person ever reads them. Libraries (`fatbin`, `cache`) have typed errors.
//! * `plan` on a machine without the toolchain says what would be provisioned and installs nothing; the key is known
//!   once the toolchain is.
//! * Recipes gained `build.pass-env`, `build.archs-for` and `verify.requires`; `url` sources are not there yet.
//! * A setup.py without ninja is not only measured: its compilers run ahead of it (`launcher::ahead`), so that the sources
//!   of an extension compile side by side.
//! * The launcher orders calls by their own time and by what their build has still to ask for, as far as it is known:
//!   the longest file first is the best order only where a build asks for all its files at once.
//! * A key holds what is declared. What a build read is written down by a library in each of its processes, not put
//!   together from dependency files, which know neither absent files nor other programs (`build::record`).
//! * A build has an empty home and fixed locale, time zone and user; Bazel alone keeps the caller's.

pub mod build;
pub mod cli;
pub mod commands;
pub mod compat;
pub mod diagnose;
pub mod domain;
pub mod emit;
pub mod key;
pub mod launcher;
pub mod pipeline;
pub mod plan;
pub mod preflight;
pub mod probe;
pub mod provision;
pub mod recipe;
pub mod report;
pub mod source;
pub mod sys;
pub mod targets;
pub mod ui;
pub mod verify;

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
