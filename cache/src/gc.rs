//! Removal: by name, by content, by age and by size.
//!
//! Invariant: nothing is removed without the exclusive store lock, an entry vanishes in one step, and entries of a
//! newer format stay. Which limits are sensible, and how long to wait for the lock, is for the caller to know.

use crate::disk::{Identity, remove_any};
use crate::error::Context;
use crate::key::check_prefix;
use crate::layout::{KEY_LOCK_PREFIX, LOCK_SUFFIX, STORE_LOCK};
use crate::listing::total;
use crate::lock::{Attempt, attempt};
use crate::scratch::sweep;
use crate::{Error, Guard, Key, Mode, Record, Result, Store};
use std::time::{Duration, SystemTime};

/// Which entries to remove.
#[non_exhaustive]
pub enum Match<'a> {
    /// All whose key starts with these digits, damaged ones too.
    Prefix(&'a str),
    /// All for which this holds.
    Where(&'a dyn Fn(&Record) -> bool),
}

/// What gc may keep. An absent limit keeps all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Entries go, longest unused first, until the rest is no larger than this.
    pub max_bytes: Option<u64>,
    /// Entries go that were last used longer ago than this.
    pub max_age: Option<Duration>,
}

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// The entries, in the order in which they went.
    pub keys: Vec<Key>,
    /// The size of those that could still be read.
    pub bytes: u64,
    /// Folders of killed processes and folders without a manifest.
    pub leftovers: usize,
}

impl Store {
    /// Whether [`Store::remove`] would find something under [`Match::Prefix`]; takes no lock, so it is true of a moment.
    pub fn holds(&self, prefix: &str) -> Result<bool> {
        check_prefix(prefix)?;
        let listing = self.list()?;
        let damaged = listing.damaged.iter().map(|damaged| &damaged.key);
        Ok(listing.entries.iter().map(Record::key).chain(damaged).any(|key| key.as_str().starts_with(prefix)))
    }

    /// Removes the entries that match. `guard` has to be the exclusive lock [`STORE_LOCK`] of this store.
    pub fn remove(&self, guard: &Guard, which: &Match<'_>) -> Result<Removed> {
        self.check_guard(guard)?;
        if let Match::Prefix(prefix) = which {
            check_prefix(prefix)?;
        }
        let listing = self.list()?;
        let mut removed = Removed::default();
        if let Match::Prefix(prefix) = which {
            for damaged in &listing.damaged {
                if damaged.key.as_str().starts_with(prefix) {
                    self.discard(&damaged.key)?;
                    removed.keys.push(damaged.key.clone());
                }
            }
        }
        for record in &listing.entries {
            let matches = match which {
                Match::Prefix(prefix) => record.key().as_str().starts_with(prefix),
                Match::Where(holds) => holds(record),
            };
            if matches {
                self.discard_record(record, &mut removed)?;
            }
        }
        Ok(removed)
    }

    /// Removes what is damaged, abandoned or beyond `limits`. `guard` has to be the exclusive lock [`STORE_LOCK`]
    /// of this store.
    pub fn gc(&self, guard: &Guard, limits: Limits, now: SystemTime) -> Result<Removed> {
        self.check_guard(guard)?;
        let mut removed = Removed { leftovers: sweep(self.layout()), ..Removed::default() };
        let listing = self.list()?;
        for key in &listing.leftovers {
            self.discard(key)?;
            removed.leftovers += 1;
        }
        for damaged in &listing.damaged {
            self.discard(&damaged.key)?;
            removed.keys.push(damaged.key.clone());
        }
        let mut entries = listing.entries;
        entries.sort_by(|a, b| (a.last_used, a.key()).cmp(&(b.last_used, b.key())));
        let mut kept_bytes = total(&entries);
        for record in &entries {
            // A use in the future, seen after a clock was set back, is as good as one right now.
            let age = now.duration_since(record.last_used).unwrap_or_default();
            let too_old = limits.max_age.is_some_and(|most| age > most);
            let too_much = limits.max_bytes.is_some_and(|most| kept_bytes > most);
            if too_old || too_much {
                kept_bytes = kept_bytes.saturating_sub(record.bytes);
                self.discard_record(record, &mut removed)?;
            }
        }
        self.remove_free_key_locks();
        Ok(removed)
    }

    /// A degraded guard passes: its holder was told, and a filesystem without locks needs gc as well.
    fn check_guard(&self, guard: &Guard) -> Result<()> {
        let path = self.layout().lock_file(STORE_LOCK)?;
        if guard.mode() == Mode::Exclusive && guard.path() == path { Ok(()) } else { Err(Error::NotExclusive { path }) }
    }

    fn discard_record(&self, record: &Record, removed: &mut Removed) -> Result<()> {
        self.discard(record.key())?;
        removed.keys.push(record.key().clone());
        removed.bytes = removed.bytes.saturating_add(record.bytes);
        Ok(())
    }

    fn discard(&self, key: &Key) -> Result<()> {
        let folder = self.layout().entry(key);
        let Some(seen) = Identity::of(&folder).context("look at", &folder)? else {
            return Ok(());
        };
        self.move_aside(key, &seen).map(|_| ())
    }

    /// Every key that was ever built left a lock file. Whoever waits for one notices that it was deleted.
    fn remove_free_key_locks(&self) {
        let Ok(files) = fs_err::read_dir(self.layout().locks()) else {
            return;
        };
        for path in files.flatten().map(|file| file.path()) {
            let is_key_lock = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(KEY_LOCK_PREFIX) && name.ends_with(LOCK_SUFFIX));
            if is_key_lock && let Ok(Attempt::Held(_file)) = attempt(&path, Mode::Exclusive) {
                // An empty file that stays does no harm.
                let _ = remove_any(&path);
            }
        }
    }
}
