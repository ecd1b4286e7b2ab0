//! Opens a file to be looked into, or says what stands in its place.
//!
//! Invariant: only a regular file is ever opened. The open of a pipe waits for a writer, and GPU code is not read from
//! front to back, which is all that a pipe or a device can give.

use std::fs::FileType;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;

use camino::Utf8Path;
use fs_err as fs;

use crate::domain::exit::Exit;
use crate::domain::problem::Problem;

/// Opens `path`, which people know as `shown`.
///
/// # Errors
/// Nothing is there, it is no regular file, or it may not be read.
pub fn open(path: &Utf8Path, shown: &str) -> Result<fs::File, Problem> {
    let kind = path.metadata().map_err(|error| absent(path, shown, &error))?.file_type();
    if !kind.is_file() {
        return Err(irregular(shown, kind));
    }
    fs::File::open(path).map_err(|error| refused(shown, &error))
}

/// Why nothing can be known of `path`.
pub(super) fn absent(path: &Utf8Path, shown: &str, error: &io::Error) -> Problem {
    match (error.kind(), path.read_link_utf8()) {
        (ErrorKind::NotFound, Ok(to)) => missing(shown, &format!("it is a link to {to}, which is not there")),
        (ErrorKind::NotFound, Err(_)) => missing(shown, "there is no such file"),
        _ => refused(shown, error),
    }
}

/// A file that is not there.
pub(super) fn missing(shown: &str, why: &str) -> Problem {
    Problem::new("cuwright::verify::no_file", Exit::Verify, format!("{shown} cannot be read"))
        .why(why)
        .help("name a wheel, a library, an object, an archive, a fatbin, a cubin, or a folder or glob of such")
}

/// A file that is there, and that the system does not let us read.
pub(super) fn refused(shown: &str, error: &io::Error) -> Problem {
    let problem = Problem::new("cuwright::verify::not_opened", Exit::Verify, format!("{shown} cannot be read"))
        .why(error.to_string());
    match error.kind() {
        ErrorKind::PermissionDenied => problem
            .help("give yourself the right to read it and to enter the folders above it, or run as a user who has it"),
        _ => problem.help("mend what the system says of it; where it names the disk, copy the file from elsewhere"),
    }
}

fn irregular(shown: &str, kind: FileType) -> Problem {
    let what = if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "a folder"
    };
    let problem = Problem::new("cuwright::verify::not_regular", Exit::Verify, format!("{shown} is {what}, not a file"))
        .why("only a regular file can be looked into, since GPU code is not read from front to back");
    if kind.is_fifo() {
        return problem.help("write what comes out of it to a file, and name that");
    }
    problem.help("name a wheel, a library, an object, an archive, a fatbin, a cubin, or a folder or glob of such")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_read_is_told_apart_from_what_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        fs_err::write(folder.join("file"), "").unwrap();
        fs_err::os::unix::fs::symlink("gone", folder.join("link")).unwrap();
        let code = |name: &str| open(&folder.join(name), name).map_err(|problem| problem.code());
        assert!(code("file").is_ok());
        for (name, wrong) in [
            ("none", "cuwright::verify::no_file"),
            ("link", "cuwright::verify::no_file"),
            ("file/below", "cuwright::verify::not_opened"),
            (".", "cuwright::verify::not_regular"),
        ] {
            assert_eq!(code(name).unwrap_err(), wrong, "{name}");
        }
        // Root may read everything, so what the system says to others is told here as it comes.
        let denied = refused("a.so", &io::Error::from(ErrorKind::PermissionDenied));
        assert!(denied.mends()[0].contains("the right to read it"), "{:?}", denied.mends());
    }
}
