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

/// Writes `bytes` to a file that the user named. Through a symbolic link its target is written; a device or a pipe is
/// opened and written to, and never replaced; a regular file is replaced as a whole and keeps its mode.
///
/// # Errors
/// A pipe that nobody reads, a socket, a folder, and whatever the system refuses; the error names the path.
pub fn write_output(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
    let named = |kind: io::ErrorKind, text: &str| io::Error::new(kind, format!("{path}: {text}"));
    let Ok(found) = fs::metadata(path) else {
        // Nothing is there, or a link to nothing: then the target of the link is made.
        let target = path.read_link_utf8().map(|target| path.parent().unwrap_or(path).join(target));
        return write_atomic(target.as_deref().unwrap_or(path), bytes);
    };
    let kind = found.file_type();
    if kind.is_file() {
        let real = path.canonicalize_utf8()?;
        write_atomic(&real, bytes)?;
        return fs::set_permissions(&real, found.permissions());
    }
    if kind.is_dir() || kind.is_socket() {
        return Err(named(io::ErrorKind::InvalidInput, "it is a folder or a socket, not a file"));
    }
    // Without `NONBLOCK`, a pipe that nobody reads would be waited for without an end.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = std::fs::OpenOptions::new().write(true).custom_flags(flags).open(path);
    let mut file = opened.map_err(|error| match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NXIO) => named(io::ErrorKind::BrokenPipe, "it is a pipe that nobody reads"),
        _ => named(error.kind(), &error.to_string()),
    })?;
    // The reader may be slow: from here on waiting is right.
    rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::empty())?;
    file.write_all(bytes).map_err(|error| named(error.kind(), &error.to_string()))
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

/// The first `N` bytes of a file, by which its format is known; `None` where it is shorter or cannot be read.
pub fn head<const N: usize>(path: &Utf8Path) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).ok()?;
    Some(bytes)
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
    fn an_output_goes_through_links_and_never_replaces_a_device_or_pipe() {
        use std::os::unix::fs::{FileTypeExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let (file, link, dangling) = (root.join("file"), root.join("link"), root.join("dangling"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        symlink("later", &dangling).unwrap();
        write_output(&link, b"new").unwrap();
        write_output(&dangling, b"made").unwrap();
        assert!(link.is_symlink() && dangling.is_symlink());
        assert_eq!(
            (fs::read(&file).unwrap(), fs::read(root.join("later")).unwrap()),
            (b"new".to_vec(), b"made".to_vec())
        );
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);

        let pipe = root.join("pipe");
        let at = rustix::fs::CWD;
        rustix::fs::mknodat(at, pipe.as_std_path(), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let error = write_output(&pipe, b"x").unwrap_err();
        assert!(error.to_string().contains("nobody reads"), "{error}");
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        let long = vec![b'y'; 1 << 20];
        while write_output(&pipe, &long).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(reader.join().unwrap(), long);
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert!(write_output(root, b"x").is_err());

        // Only root may make a device: elsewhere the one of the system serves, which this user cannot replace anyway.
        let null = root.join("null");
        let device = rustix::fs::makedev(1, 3);
        let made = rustix::fs::mknodat(
            at,
            null.as_std_path(),
            rustix::fs::FileType::CharacterDevice,
            rustix::fs::Mode::all(),
            device,
        );
        let null = if made.is_ok() { null } else { "/dev/null".into() };
        // A file system that allows no devices refuses to open one.
        let written = write_output(&null, b"x");
        assert!(written.is_ok() || made.is_ok(), "{written:?}");
        assert!(fs::symlink_metadata(&null).unwrap().file_type().is_char_device());
    }

    #[test]
    fn an_atomic_write_replaces_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("ä b/file");
        write_atomic(&path, b"long first").unwrap();
        write_atomic(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(sha256_file(&path).unwrap(), sha256(b"second"));
        assert_eq!((head(&path), head::<7>(&path)), (Some(*b"seco"), None));
    }
}
