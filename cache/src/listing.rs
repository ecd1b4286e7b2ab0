//! What is in the store, and which of it comes closest to a key that is not.
//!
//! Invariant: an overview reads manifests and inputs but no artifact, takes no lock and changes nothing; it is a
//! picture of a moment. Everything is ordered by key, so two pictures of one store are equal.

use crate::disk::absent_is_none;
use crate::entry::{Found, read};
use crate::error::Context;
use crate::layout::{INPUTS, LAST_USED, MANIFEST};
use crate::{Change, Damage, Key, Manifest, Result, Store, diff};
use serde_json::Value;
use std::cmp::Reverse;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An entry as the overview sees it: its files are not checked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// What it says about itself.
    pub manifest: Manifest,
    /// What its key stands for.
    pub inputs: Value,
    /// Its size on disk: files, inputs and manifest.
    pub bytes: u64,
    /// The last hit, or the commit if there was none.
    pub last_used: SystemTime,
}

impl Record {
    /// The key it is stored under.
    pub fn key(&self) -> &Key {
        &self.manifest.key
    }
}

/// A folder with a manifest that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damaged {
    /// The key that the folder is named after.
    pub key: Key,
    /// What is wrong.
    pub damage: Damage,
}

/// Everything in the store, by key.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Listing {
    /// The entries.
    pub entries: Vec<Record>,
    /// Entries whose manifest or inputs are damaged.
    pub damaged: Vec<Damaged>,
    /// Entries of newer versions, which this one leaves alone.
    pub newer: Vec<Key>,
    /// Folders without a manifest, which are no entries.
    pub leftovers: Vec<Key>,
}

/// The store in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// How many entries can be read.
    pub entries: usize,
    /// Their size on disk.
    pub bytes: u64,
    /// The entry that gc would take first was last used then.
    pub oldest_use: Option<SystemTime>,
    /// The entry that gc would take last was last used then.
    pub newest_use: Option<SystemTime>,
    /// How many have a damaged manifest or damaged inputs.
    pub damaged: usize,
    /// How many are of a newer format.
    pub newer: usize,
}

/// An entry and how it differs from what was asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Near {
    /// The entry.
    pub record: Record,
    /// From its inputs to the inputs asked for.
    pub changes: Vec<Change>,
}

impl Store {
    /// Lists everything, by key.
    pub fn list(&self) -> Result<Listing> {
        let mut listing = Listing::default();
        for key in self.keys()? {
            let folder = self.layout().entry(&key);
            match read(&folder, &key)? {
                Found::Nothing => {
                    // An entry that was removed since we saw its name is not a leftover.
                    if fs_err::symlink_metadata(&folder).is_ok() {
                        listing.leftovers.push(key);
                    }
                }
                Found::Newer(_) => listing.newer.push(key),
                Found::Damaged(damage) => listing.damaged.push(Damaged { key, damage }),
                Found::Entry(entry) => {
                    let (manifest, inputs) = entry.into_parts();
                    let files = manifest.files.iter().map(|file| file.size);
                    let bytes = files
                        .chain([MANIFEST, INPUTS].map(|name| size(&folder.join(name))))
                        .fold(0, u64::saturating_add);
                    listing.entries.push(Record { last_used: last_used(&folder, &manifest), manifest, inputs, bytes });
                }
            }
        }
        Ok(listing)
    }

    /// Counts everything.
    pub fn stat(&self) -> Result<Stat> {
        let listing = self.list()?;
        let uses = || listing.entries.iter().map(|entry| entry.last_used);
        Ok(Stat {
            entries: listing.entries.len(),
            bytes: total(&listing.entries),
            oldest_use: uses().min(),
            newest_use: uses().max(),
            damaged: listing.damaged.len(),
            newer: listing.newer.len(),
        })
    }

    /// The entries among which `same` finds kin (say, builds of the same package), closest first: fewest changes,
    /// then most recent use, then key.
    pub fn why(&self, inputs: &Value, same: impl Fn(&Record) -> bool) -> Result<Vec<Near>> {
        let mut near: Vec<_> = self
            .list()?
            .entries
            .into_iter()
            .filter(same)
            .map(|record| Near { changes: diff(&record.inputs, inputs), record })
            .collect();
        // The sort is stable and the list was in key order.
        near.sort_by_key(|near| (near.changes.len(), Reverse(near.record.last_used)));
        Ok(near)
    }

    /// The first of [`Store::why`].
    pub fn nearest(&self, inputs: &Value, same: impl Fn(&Record) -> bool) -> Result<Option<Near>> {
        Ok(self.why(inputs, same)?.into_iter().next())
    }

    /// The names in the bucket that are keys in their right place; all else is not ours.
    fn keys(&self) -> Result<Vec<Key>> {
        let bucket = self.layout().bucket();
        let mut keys = Vec::new();
        for shard in names(&bucket)? {
            for name in names(&bucket.join(&shard))? {
                keys.extend(name.parse::<Key>().ok().filter(|_| name.starts_with(&shard)));
            }
        }
        keys.sort();
        Ok(keys)
    }
}

pub(crate) fn total(entries: &[Record]) -> u64 {
    let sizes = entries.iter().map(|entry| entry.bytes);
    sizes.fold(0, u64::saturating_add)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let Some(items) = absent_is_none(fs_err::read_dir(folder)).context("list", folder)? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for item in items {
        names.extend(item.context("list", folder)?.file_name().into_string().ok());
    }
    Ok(names)
}

fn size(path: &Path) -> u64 {
    fs_err::symlink_metadata(path).map_or(0, |found| found.len())
}

/// The marker may be missing, as it is not part of what makes an entry valid.
fn last_used(folder: &Path, manifest: &Manifest) -> SystemTime {
    fs_err::symlink_metadata(folder.join(LAST_USED))
        .and_then(|found| found.modified())
        .ok()
        .or_else(|| UNIX_EPOCH.checked_add(Duration::from_secs(manifest.created)))
        .unwrap_or(UNIX_EPOCH)
}
