//! File work that must not leave halves behind: atomic writes, tree copies, digests of files.
//!
//! Every error names its path (`fs_err`).

use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use camino::Utf8Path;
use fs_err as fs;
use sha2::{Digest as _, Sha256};

use super::clock::Stopwatch;

/// Writes `bytes` to `path` so that a reader sees the old file or the new one, never a part.
pub fn write_atomic(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Utf8Path::new("/"));
    fs::create_dir_all(folder)?;
    // As any new file: the user's mask decides who reads it.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut staged = tempfile::Builder::new().prefix(".cuwright-").permissions(mode).tempfile_in(folder)?;
    staged.write_all(bytes)?;
    staged.as_file().sync_data()?;
    staged.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Copies `from` to `to` through a staged file, so that an interrupted copy leaves `to` as it was.
pub fn copy_atomic(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(Utf8Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut source = fs::File::open(from)?;
    let mut staged = tempfile::Builder::new().prefix(".cuwright-").tempfile_in(folder)?;
    io::copy(&mut source, staged.as_file_mut())?;
    let mode = fs::metadata(from)?.permissions();
    staged.as_file().set_permissions(mode)?;
    staged.persist(to).map_err(|error| error.error)?;
    Ok(())
}

/// sha256 of a file, in lower-case hex, read in pieces.
pub fn sha256_file(path: &Utf8Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hex::encode(hasher.finalize()));
        }
        hasher.update(&buffer[..count]);
    }
}

/// sha256 of bytes, in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Bytes of all files below `folder`, and whether all of them were counted before `patience` ran out.
pub fn size(folder: &Utf8Path, patience: Duration) -> (u64, bool) {
    let watch = Stopwatch::start();
    let mut bytes = 0;
    for (index, entry) in walkdir::WalkDir::new(folder).into_iter().flatten().enumerate() {
        if entry.file_type().is_file() {
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
        if index % 256 == 0 && watch.elapsed() > patience {
            return (bytes, false);
        }
    }
    (bytes, true)
}

/// Removes a file; one that is not there is fine.
pub fn remove_file(path: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes a folder and everything in it, folders without write permission included; one that is not there is fine.
pub fn remove_tree(path: &Utf8Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let folders = walkdir::WalkDir::new(path).into_iter().filter_map(Result::ok);
            for folder in folders.filter(|entry| entry.file_type().is_dir()) {
                // The removal that follows tells what could not be mended.
                let _ = fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700));
            }
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atomic_write_replaces_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("ä b/file");
        write_atomic(&path, b"long first").unwrap();
        write_atomic(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(sha256_file(&path).unwrap(), sha256(b"second"));
    }
}
