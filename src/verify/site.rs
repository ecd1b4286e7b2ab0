//! A wheel unpacked as an installer would, so that its files can be read and imported without an environment.
//!
//! Scripts and data files of a wheel are left out: nothing that we check needs them.

use std::io::{Read as _, Seek as _, Write as _};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::domain::exit::Exit;
use crate::domain::problem::Problem;

/// Suffixes of extension files.
const EXTENSIONS: [&str; 3] = ["so", "pyd", "dylib"];

/// One extension file of a wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionFile {
    /// Path inside the wheel.
    pub name: String,
    /// Where it lies now.
    pub path: Utf8PathBuf,
}

/// An unpacked wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Folder to put on `sys.path`.
    pub root: Utf8PathBuf,
    /// Extension files, ordered by name.
    pub extensions: Vec<ExtensionFile>,
}

/// Unpacks `wheel` into the empty folder `root`.
///
/// # Errors
/// A file that is no wheel, or one with paths that lead out of the folder.
pub fn unpack(wheel: &Utf8Path, root: &Utf8Path) -> Result<Site, Problem> {
    let broken = |why: String| {
        Problem::new("cuwright::verify::broken_wheel", Exit::Verify, format!("{wheel} cannot be read as a wheel"))
            .why(why)
            .help("build it again; if it was downloaded, download it again")
    };
    let file = fs::File::open(wheel).map_err(|error| broken(error.to_string()))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| broken(error.to_string()))?;
    let mut extensions = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| broken(error.to_string()))?;
        let name = member.name().map_err(|error| broken(error.to_string()))?.into_owned();
        let inner = match placed(&name) {
            Place::Site(inner) => inner,
            Place::Elsewhere => continue,
            Place::Outside => return Err(broken(format!("the member `{name}` leads out of the wheel"))),
        };
        let path = root.join(&inner);
        copy(&mut member, &path).map_err(|fault| match fault {
            Fault::Read(error) => broken(format!("{name}: {error}")),
            Fault::Write(error) => not_unpacked(wheel, root, &error),
        })?;
        if is_extension(&inner) {
            extensions.push(ExtensionFile { name: inner.into_string(), path });
        }
    }
    extensions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Site { root: root.to_owned(), extensions })
}

/// Which side of a copy failed: what a full disk refuses is no fault of the wheel.
enum Fault {
    Read(std::io::Error),
    Write(std::io::Error),
}

fn copy(member: &mut impl std::io::Read, path: &Utf8Path) -> Result<(), Fault> {
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(Fault::Write)?;
    let mut out = fs::File::create(path).map_err(Fault::Write)?;
    let mut chunk = vec![0; 64 << 10];
    loop {
        match member.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => out.write_all(&chunk[..count]).map_err(Fault::Write)?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::Read(error)),
        }
    }
}

fn not_unpacked(wheel: &Utf8Path, root: &Utf8Path, error: &std::io::Error) -> Problem {
    Problem::new("cuwright::verify::not_unpacked", Exit::Verify, format!("{wheel} could not be unpacked"))
        .why(error.to_string())
        .help(format!("free some space where {root} lies; `--cache-dir` and TMPDIR choose another place"))
}

/// Whether a path names an extension file, versioned sonames included.
pub fn is_extension(path: &Utf8Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    path.extension().is_some_and(|suffix| EXTENSIONS.contains(&suffix))
        || name.split('.').skip(1).any(|part| part == "so")
}

/// Where an installer would put a member.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// Below the site folder.
    Site(Utf8PathBuf),
    /// With scripts or data, or nowhere.
    Elsewhere,
    /// Out of the folder: no wheel may ask for that.
    Outside,
}

fn placed(name: &str) -> Place {
    let path = Utf8Path::new(name);
    if name.ends_with('/') {
        return Place::Elsewhere;
    }
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Utf8Component::Normal(part) => parts.push(part),
            Utf8Component::CurDir => {}
            _ => return Place::Outside,
        }
    }
    if parts.first().is_some_and(|first| Utf8Path::new(first).extension() == Some("data")) {
        let library = parts.get(1).is_some_and(|scheme| matches!(*scheme, "purelib" | "platlib"));
        return if library { Place::Site(parts[2..].iter().collect()) } else { Place::Elsewhere };
    }
    Place::Site(parts.iter().collect())
}

/// Whether a file starts like a zip archive.
pub fn is_wheel(path: &Utf8Path) -> bool {
    let mut head = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| {
        file.rewind()?;
        file.read_exact(&mut head)
    });
    read.is_ok() && head == *b"PK\x03\x04"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_land_where_an_installer_puts_them() {
        let site = |path: &str| Place::Site(path.into());
        assert_eq!(placed("pkg/_C.so"), site("pkg/_C.so"));
        assert_eq!(placed("x-1.data/platlib/pkg/_C.so"), site("pkg/_C.so"));
        assert_eq!(placed("x-1.data/scripts/run"), Place::Elsewhere);
        assert_eq!(placed("pkg/"), Place::Elsewhere);
        assert_eq!(placed("../evil"), Place::Outside);
        assert_eq!(placed("/etc/passwd"), Place::Outside);
    }

    #[test]
    fn a_disk_that_refuses_is_told_apart_from_a_wheel_that_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let wheel = folder.join("x.whl");
        let mut zip = zip::ZipWriter::new(fs::File::create(&wheel).unwrap().into_file());
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file("pkg/a.py", stored).unwrap();
        zip.write_all(b"the text of a module").unwrap();
        zip.finish().unwrap();
        let root = folder.join("site");
        let code = |root: &Utf8Path| unpack(&wheel, root).map_err(|problem| problem.code());
        assert!(code(&root).is_ok());
        // Where the folder of the package should be, there is a file: the system refuses to write below it.
        fs::create_dir(folder.join("taken")).unwrap();
        fs::write(folder.join("taken/pkg"), "").unwrap();
        assert_eq!(code(&folder.join("taken")), Err("cuwright::verify::not_unpacked"));
        let mut bytes = fs::read(&wheel).unwrap();
        let at = bytes.windows(8).position(|window| window == b"the text").unwrap();
        bytes[at] ^= 1;
        fs::write(&wheel, bytes).unwrap();
        assert_eq!(code(&folder.join("other")), Err("cuwright::verify::broken_wheel"));
    }

    #[test]
    fn extension_files_are_known_by_name() {
        for (name, is) in [("a/_C.cpython-311-x86_64-linux-gnu.so", true), ("libx.so.1", true), ("a.py", false)] {
            assert_eq!(is_extension(name.into()), is, "{name}");
        }
    }
}
