//! A wheel unpacked as an installer would, so that its files can be read and imported without an environment.
//!
//! Scripts and data files of a wheel are left out: nothing that we check needs them.

use std::io::{Read as _, Seek as _};

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
        let Some(inner) = placed(&name) else {
            return Err(broken(format!("the member `{name}` leads out of the wheel")));
        };
        let Some(inner) = inner else { continue };
        let path = root.join(&inner);
        let mut write = || -> std::io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            let mut out = fs::File::create(&path)?;
            std::io::copy(&mut member, &mut out)?;
            Ok(())
        };
        write().map_err(|error| broken(format!("{name}: {error}")))?;
        if is_extension(&inner) {
            extensions.push(ExtensionFile { name: inner.into_string(), path });
        }
    }
    extensions.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Site { root: root.to_owned(), extensions })
}

/// Whether a path names an extension file, versioned sonames included.
pub fn is_extension(path: &Utf8Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    path.extension().is_some_and(|suffix| EXTENSIONS.contains(&suffix)) || name.contains(".so.")
}

/// Where a member goes below the site: `None` for an illegal path, `Some(None)` for one that is not installed there.
fn placed(name: &str) -> Option<Option<Utf8PathBuf>> {
    let path = Utf8Path::new(name);
    if name.ends_with('/') {
        return Some(None);
    }
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Utf8Component::Normal(part) => parts.push(part),
            Utf8Component::CurDir => {}
            _ => return None,
        }
    }
    if parts.first().is_some_and(|first| first.ends_with(".data")) {
        let library = parts.get(1).is_some_and(|scheme| matches!(*scheme, "purelib" | "platlib"));
        return Some(library.then(|| parts[2..].iter().collect()));
    }
    Some(Some(parts.iter().collect()))
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
        let at = |name: &str| placed(name).map(|p| p.map(Utf8PathBuf::into_string));
        assert_eq!(at("pkg/_C.so"), Some(Some("pkg/_C.so".into())));
        assert_eq!(at("x-1.data/platlib/pkg/_C.so"), Some(Some("pkg/_C.so".into())));
        assert_eq!(at("x-1.data/scripts/run"), Some(None));
        assert_eq!(at("pkg/"), Some(None));
        assert_eq!(at("../evil"), None);
        assert_eq!(at("/etc/passwd"), None);
    }

    #[test]
    fn extension_files_are_known_by_name() {
        for (name, is) in [("a/_C.cpython-311-x86_64-linux-gnu.so", true), ("libx.so.1", true), ("a.py", false)] {
            assert_eq!(is_extension(name.into()), is, "{name}");
        }
    }
}
