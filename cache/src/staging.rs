//! Work on its way into the store: collected in `tmp/`, made durable, and published by one rename.
//!
//! Invariant: the manifest is written after everything else, and the rename comes after the manifest, so no moment
//! exists at which a reader could see half an entry. Whether the files are any good was verified by the caller.

use crate::disk::{absent_is_none, hash_file, sync_folder, touch, write_new};
use crate::entry::{Found, read_and_verify};
use crate::error::Context;
use crate::layout::{FILES, INPUTS, LAST_USED, MANIFEST};
use crate::manifest::{FORMAT, FileRecord, LARGEST, Manifest, check_name};
use crate::scratch::Scratch;
use crate::{Entry, Error, Key, Result, Store, canonical_json, digest};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Attempts to publish while others publish and remove the same key.
const ATTEMPTS: usize = 8;

/// An artifact that is being put together. Dropping it without [`Staging::commit`] removes it.
#[derive(Debug)]
#[must_use = "a staging that is dropped without a commit is removed"]
pub struct Staging {
    store: Store,
    key: Key,
    scratch: Scratch,
    files: PathBuf,
}

impl Staging {
    pub(crate) fn new(store: &Store, key: &Key) -> Result<Self> {
        let scratch = Scratch::new(store.layout())?;
        let files = scratch.path().join(FILES);
        fs_err::create_dir(&files).context("create the staging folder", &files)?;
        Ok(Self { store: store.clone(), key: key.clone(), scratch, files })
    }

    /// The key that this will be stored under.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The folder for the files of the artifact. A build may write straight into it, also into folders below.
    pub fn path(&self) -> &Path {
        &self.files
    }

    /// Copies a file in under `name`, a relative path with `/` between folders. A copy and not a hard link:
    /// the build tree keeps changing its own file.
    pub fn add_file(&self, from: &Path, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        let to = self.files.join(name);
        if absent_is_none(fs_err::symlink_metadata(&to)).context("look at", &to)?.is_some() {
            return Err(Error::BadFile { path: to, why: "a file of this name is already staged" });
        }
        if let Some(folder) = to.parent() {
            fs_err::create_dir_all(folder).context("create the staging folder", folder)?;
        }
        fs_err::copy(from, &to).context("copy into the cache", from)?;
        Ok(to)
    }

    /// Publishes the artifact and returns it as an entry. If another process published a valid entry under this
    /// key first, that one stays and is returned. `inputs` and `meta` may hold no fractions.
    pub fn commit(self, inputs: Value, meta: Value, now: SystemTime) -> Result<Entry> {
        self.publish(inputs, meta, now, false)
    }

    /// The same, but a valid entry under this key makes way: the caller found that it does not hold any more.
    pub fn replace(self, inputs: Value, meta: Value, now: SystemTime) -> Result<Entry> {
        self.publish(inputs, meta, now, true)
    }

    fn publish(mut self, inputs: Value, meta: Value, now: SystemTime, replace: bool) -> Result<Entry> {
        let manifest = self.seal(&inputs, meta, now)?;
        let layout = self.store.layout();
        let shard = layout.shard(&self.key);
        let target = layout.entry(&self.key);
        fs_err::create_dir_all(&shard).context("create the folder of the entry", &shard)?;
        sync_folder(&layout.bucket()).context("sync", &layout.bucket())?;
        for _ in 0..ATTEMPTS {
            match fs_err::rename(self.scratch.path(), &target) {
                Ok(()) => {
                    self.scratch.moved_away();
                    sync_folder(&shard).context("sync", &shard)?;
                    return Ok(Entry::new(target, manifest, inputs));
                }
                Err(error) if is_taken(&error) => {
                    if let Some(entry) = self.existing(&target, now, replace)? {
                        return Ok(entry);
                    }
                }
                // Someone tidied away the folder around entries that was empty a moment ago.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs_err::create_dir_all(&shard).context("create the folder of the entry", &shard)?;
                }
                Err(error) => return Err(error).context("publish the entry", &target),
            }
        }
        Err(Error::Contended { path: target })
    }

    /// The valid entry that is already there, or `None` once one that is invalid or to be replaced was moved out of the
    /// way.
    fn existing(&self, target: &Path, now: SystemTime, replace: bool) -> Result<Option<Entry>> {
        let seen = crate::disk::Identity::of(target).context("look at", target)?;
        match read_and_verify(target, &self.key)? {
            Found::Entry(entry) if !replace => {
                self.store.touch(&self.key, now);
                Ok(Some(*entry))
            }
            Found::Newer(format) => Err(Error::NewerFormat { path: target.to_owned(), format, known: FORMAT }),
            Found::Entry(_) | Found::Nothing | Found::Damaged(_) => {
                if let Some(seen) = seen {
                    self.store.move_aside(&self.key, &seen)?;
                }
                Ok(None)
            }
        }
    }

    /// Makes the staged folder complete and durable: files, inputs, marker, and the manifest as the last of them.
    fn seal(&self, inputs: &Value, meta: Value, now: SystemTime) -> Result<Manifest> {
        let folder = self.scratch.path();
        let inputs = canonical_json(inputs)?;
        let meta_sha256 = digest(&canonical_json(&meta)?);
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        collect(&self.files, "", &mut files, &mut folders)?;
        files.sort_by(|a, b| a.name.cmp(&b.name));

        // A clock before 1970 is odd, but no reason to lose a build.
        let created = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let key = self.key.clone();
        let manifest = Manifest::new(key, created, digest(&inputs), meta, meta_sha256, files);
        let path = folder.join(MANIFEST);
        let mut text =
            serde_json::to_vec_pretty(&manifest).map_err(io::Error::from).context("encode the manifest", &path)?;
        text.push(b'\n');

        let inputs_path = folder.join(INPUTS);
        for (path, bytes) in [(&path, &text), (&inputs_path, &inputs)] {
            if bytes.len() as u64 > LARGEST {
                return Err(Error::BadFile { path: path.clone(), why: "it would be larger than 1 MiB" });
            }
        }
        write_new(&inputs_path, &inputs).context("write", &inputs_path)?;
        let marker = folder.join(LAST_USED);
        touch(&marker, now).context("write", &marker)?;
        write_new(&path, &text).context("write", &path)?;
        for folder in folders.iter().map(PathBuf::as_path).chain([folder]) {
            sync_folder(folder).context("sync", folder)?;
        }
        Ok(manifest)
    }
}

/// Another entry, or something that is none, stands where ours should go.
fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory
    )
}

/// Hashes and syncs every file below `folder`. Only plain files and folders can be stored: a link may point
/// outside the entry, where nobody checks it.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<FileRecord>, folders: &mut Vec<PathBuf>) -> Result<()> {
    for item in fs_err::read_dir(folder).context("list", folder)? {
        let item = item.context("list", folder)?;
        let path = item.path();
        let refuse = |why| Error::BadFile { path: path.clone(), why };
        let Ok(name) = item.file_name().into_string() else {
            return Err(refuse("the name is not UTF-8"));
        };
        let name = format!("{prefix}{name}");
        check_name(&name)?;
        let kind = item.file_type().context("look at", &path)?;
        if kind.is_dir() {
            collect(&path, &format!("{name}/"), files, folders)?;
        } else if kind.is_file() {
            let (size, sha256) = hash_file(&path, true).context("hash", &path)?;
            files.push(FileRecord { name, size, sha256 });
        } else {
            return Err(refuse("only plain files and folders can be stored"));
        }
    }
    folders.push(folder.to_owned());
    Ok(())
}
