//! Content-addressed artifact store: what is staged, verified and renamed into place can be read; nothing else can.
//!
//! Invariant: [`Store::get`] returns a hit only after every byte of the entry was checked against its manifest.
//! Deliberately not here: what goes into a key, printing, the environment and the clock. Every operation that
//! needs the time takes `now`, and every wait asks the caller whether to go on.
//!
//! | module | owns |
//! |---|---|
//! | `layout` | names and places on disk |
//! | `key`, `json` | [`Key`], [`digest`], [`canonical_json`] |
//! | `manifest`, `entry` | what an entry claims, and the check of that claim |
//! | `scratch`, `staging` | unfinished work in `tmp/`, and its publication |
//! | `lock` | locks that vanish with their process |
//! | `store`, `listing`, `gc` | look-up, overview, removal |
//! | `diff` | why two builds have different keys |
//!
//! ```
//! use cache::{Lookup, Store, canonical_json, digest};
//! use std::time::SystemTime;
//!
//! # let folder = tempfile::tempdir()?;
//! # let root = folder.path().join("cache");
//! # let wheel = folder.path().join("mmcv.whl");
//! # fs_err::write(&wheel, "built")?;
//! # let now = SystemTime::UNIX_EPOCH;
//! let store = Store::open(root)?;
//! let inputs = serde_json::json!({"package": "mmcv", "arch": ["9.0"]});
//! let key = digest(&canonical_json(&inputs)?);
//!
//! let staging = store.stage(&key)?;
//! staging.add_file(&wheel, "mmcv.whl")?;
//! staging.commit(inputs, serde_json::json!({"seconds": 812}), now)?;
//!
//! let Lookup::Hit(entry) = store.get(&key, now)? else { panic!() };
//! assert!(entry.file("mmcv.whl").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod diff;
mod disk;
mod entry;
mod error;
mod gc;
mod json;
mod key;
mod layout;
mod listing;
mod lock;
mod manifest;
mod scratch;
mod staging;
mod store;

pub use diff::{Change, diff};
pub use entry::{Damage, Entry};
pub use error::{Error, Result};
pub use gc::{Limits, Match, Removed};
pub use json::canonical_json;
pub use key::{Key, digest};
pub use layout::STORE_LOCK;
pub use listing::{Damaged, Listing, Near, Record, Stat};
pub use lock::{Guard, Mode, Wait};
pub use manifest::{FileRecord, Manifest};
pub use staging::Staging;
pub use store::{Lookup, Store};
