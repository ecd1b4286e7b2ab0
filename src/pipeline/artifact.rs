//! The artifact cache as the pipeline sees it: a fault of the cache is a warning and a plain build.
//!
//! An entry holds the wheel and what its build read; its metadata is the [`Summary`] of that build. One entry a key: what
//! was built again because something outside has changed takes the place of the older one.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cache::{Damage, Guard, Key, Lookup, Mode, STORE_LOCK, Store, Wait};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::Context;
use super::prepare::Prepared;
use crate::build::record::{self, Memo, Recorded};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, chain};
use crate::domain::reads::{Local, Reads};
use crate::report::{Stage, Summary};
use crate::sys::env_vars::PATH;
use crate::sys::{clock, machine, signals};

/// What a build read, beside the artifact.
const READS: &str = "reads.json";

/// A verified wheel in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// The wheel inside the cache.
    pub wheel: Utf8PathBuf,
    /// What its build told.
    pub summary: Summary,
}

/// The store, or nothing where it cannot be used.
pub struct Artifacts {
    store: Option<Store>,
    /// Faults that were reported: one folder that cannot be used is one warning, whatever needs it.
    reported: Mutex<BTreeSet<String>>,
}

/// Locks that a build holds: nobody removes the store's entries, nobody else builds this key.
#[derive(Debug, Default)]
#[must_use = "the locks are released when this is dropped"]
pub struct Held {
    guards: Vec<Guard>,
}

impl Artifacts {
    /// Opens the store below the cache root.
    pub fn open(context: &Context<'_>, unit: &str) -> Self {
        match Store::open(context.cache_root.as_std_path()) {
            Ok(store) => Self { store: Some(store), reported: Mutex::default() },
            Err(error) => {
                context
                    .warn(unit, format!("the artifact cache cannot be used, building without it: {}", chain(&error)));
                Self { store: None, reported: Mutex::default() }
            }
        }
    }

    /// Looks a unit's key up, and checks what the build read against this machine.
    ///
    /// # Errors
    /// What has changed since the build, where that is why the entry is not used.
    pub fn get(&self, context: &Context<'_>, unit: &Prepared) -> Result<Cached, Option<String>> {
        let (name, key) = (unit.recipe.name.as_str(), &unit.key);
        let store = self.store.as_ref().ok_or(None)?;
        match store.get(key, clock::now()) {
            Ok(Lookup::Hit(entry)) => {
                let summary: Summary = serde_json::from_value(entry.manifest().meta.clone()).map_err(|_| None)?;
                current(context, unit, &entry).map_err(Some)?;
                let wheel = entry.files().find(|(file, _)| file.name != READS).map(|(_, path)| path);
                let wheel = wheel.and_then(|wheel| Utf8PathBuf::from_path_buf(wheel).ok()).ok_or(None)?;
                return Ok(Cached { wheel, summary });
            }
            Ok(Lookup::Miss) => {}
            Ok(Lookup::Evicted { reason: reason @ Damage::Foreign { .. }, .. }) => {
                let what = format!("the cached artifact {} is not used, and is rebuilt: {reason}", key.short());
                context.warn(name, what);
            }
            Ok(Lookup::Evicted { reason, .. }) => {
                context.warn(name, format!("the cached artifact {} was damaged and is rebuilt: {reason}", key.short()));
            }
            Ok(_) => {
                context.warn(name, format!("the artifact {} was written by a newer cuwright; left alone", key.short()));
            }
            Err(error) => self.warn(context, name, "the artifact cache could not be read", &error),
        }
        Err(None)
    }

    /// Takes the locks for building `key`, waiting for another builder of the same key.
    /// A lock that cannot be had is a warning.
    pub fn lock(&self, context: &Context<'_>, unit: &str, key: &Key) -> Held {
        let Some(store) = &self.store else { return Held::default() };
        let mut held = Held::default();
        let who = [
            format!("another unit or another cuwright, which builds {}", key.short()),
            "another cuwright, which removes artifacts".to_owned(),
        ];
        let locks = [(STORE_LOCK.to_owned(), Mode::Shared, &who[1]), (key.lock_name(), Mode::Exclusive, &who[0])];
        for (name, mode, who) in locks {
            let waiting = |waited: Duration| {
                if waited.is_zero() {
                    context.step(unit, Stage::Cache, format!("waiting for {who}"));
                }
                if signals::caught() { Wait::GiveUp } else { Wait::Again }
            };
            match store.lock(&name, mode, waiting) {
                Ok(guard) => {
                    if let Some(reason) = guard.degraded() {
                        context.warn(
                            unit,
                            format!("the cache folder cannot be locked, do not build twice at once: {reason}"),
                        );
                    }
                    held.guards.push(guard);
                }
                // Whoever was asked to stop while waiting says so itself.
                Err(_) if signals::caught() => {}
                Err(error) => self.warn(context, unit, "no lock on the cache", &error),
            }
        }
        held
    }

    /// Does something while nobody builds `key`; nothing where somebody does, or where that cannot be known.
    pub fn if_free(&self, key: &str, then: impl FnOnce()) {
        let (Some(store), Ok(key)) = (&self.store, key.parse::<Key>()) else { return };
        if let Ok(Some(guard)) = store.try_lock(&key.lock_name(), Mode::Exclusive)
            && guard.degraded().is_none()
        {
            then();
        }
    }

    /// Stores a verified wheel with what its build read. Nothing half-written can ever be read.
    pub fn put(&self, context: &Context<'_>, unit: &Prepared, wheel: &Utf8Path, recorded: Recorded, summary: &Summary) {
        let Some(store) = &self.store else { return };
        let name = wheel.file_name().unwrap_or("artifact.whl");
        if let Some(path) = recorded.unsteady {
            let text = format!("the artifact was not cached: {path} changed while the build read it");
            return context.warn(&summary.unit, text);
        }
        let local = (!recorded.unknown.is_empty()).then(|| Local { machine: machine::id(), reasons: recorded.unknown });
        let reads = Reads { local, ..recorded.reads };
        let text = serde_json::to_vec(&reads).unwrap_or_default();
        let stored = store.stage(&unit.key).and_then(|staging| {
            staging.add_file(wheel.as_std_path(), name)?;
            let path = staging.path().join(READS);
            fs_err::write(&path, &text).map_err(|source| cache::Error::Io { action: "write", path, source })?;
            let meta = serde_json::to_value(summary).unwrap_or_default();
            staging.replace(unit.inputs.to_json(), meta, clock::now())
        });
        match stored {
            Ok(_) => record::remember(&reads, memo(context, &unit.key, &cache::digest(&text))),
            Err(error) => self.warn(context, &summary.unit, "the artifact was not cached", &error),
        }
    }

    /// Reports a fault of the cache, once.
    fn warn(&self, context: &Context<'_>, unit: &str, what: &str, error: &cache::Error) {
        let why = chain(error);
        let first = self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(why.clone());
        if first {
            context.warn(unit, format!("{what}: {why}"));
        }
    }

    /// Why `inputs` miss: the nearest artifact of the same package and how it differs, in words.
    pub fn why(&self, package: &str, inputs: &Value) -> Option<String> {
        let same = |record: &cache::Record| record.inputs.get("package").and_then(Value::as_str) == Some(package);
        let near = self.store.as_ref()?.nearest(inputs, same).ok()??;
        let changes: Vec<String> = near.changes.iter().map(change).collect();
        Some(format!("nearest is {}: {}", near.record.key().short(), changes.join(", ")))
    }

    /// The store for commands that need one.
    ///
    /// # Errors
    /// A folder that cannot be used.
    pub fn store(cache_root: &Utf8Path) -> Result<Store, Problem> {
        Store::open(cache_root.as_std_path()).map_err(|error| {
            Problem::new("cuwright::cache::unusable", Exit::Cache, "the cache folder cannot be used")
                .why(chain(&error))
                .help("check its permissions, or choose another with `--cache-dir DIR`")
        })
    }
}

fn memo<'a>(context: &Context<'a>, key: &'a Key, reads: &'a Key) -> Memo<'a> {
    Memo { cache_root: context.cache_root, key: key.as_str(), reads: reads.as_str() }
}

/// Whether what the build of an entry read is still so.
fn current(context: &Context<'_>, unit: &Prepared, entry: &cache::Entry) -> Result<(), String> {
    let untold = || "its entry does not say what the build read".to_owned();
    let (record, path) = entry.files().find(|(file, _)| file.name == READS).ok_or_else(untold)?;
    let text = fs_err::read(path).map_err(|_| untold())?;
    let reads: Reads = serde_json::from_slice(&text).map_err(|_| untold())?;
    let path = unit.environment.variables.get(PATH).map_or("", String::as_str);
    // What the kernel says of the processor takes milliseconds to read.
    let here = reads.local.as_ref().map(|_| machine::id()).unwrap_or_default();
    record::check(&reads, &here, path, memo(context, &unit.key, &record.sha256))
}

/// A changed input as `nvcc 12.4.131 → 12.8.93`.
pub fn change(change: &cache::Change) -> String {
    let show = |value: &Option<Value>| match value {
        None => "none".to_owned(),
        Some(Value::String(text)) if text.len() == 64 => format!("{}…", &text[..12]),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(fields)) => format!("{{{} fields}}", fields.len()),
        Some(other) => other.to_string(),
    };
    format!("{} {} → {}", change.path.trim_start_matches(['/', '.']), show(&change.before), show(&change.after))
}
