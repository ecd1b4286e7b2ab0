//! A wheel unpacked as an installer would, so that its files can be read and imported without an environment.
//!
//! Scripts and data files of a wheel are left out: nothing that we check needs them.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::domain::exit::Exit;
use crate::domain::problem::Problem;
use crate::sys::files;
use crate::sys::unpack::Room;

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

/// An unpacked wheel, or a tree of files.
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
    let mut limits = Room::of(file.metadata().map_err(|error| broken(error.to_string()))?.len());
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
        limits.member(&name).map_err(broken)?;
        if member.is_symlink() {
            return Err(broken(format!("the member `{name}` is a symbolic link, which a wheel cannot hold")));
        }
        let path = root.join(&inner);
        copy(&mut limits.reader(&mut member), &path).map_err(|fault| match fault {
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

/// Files of a tree that can hold device code: libraries, objects, archives, and programs whatever their name.
pub fn of_tree(root: &Utf8Path, files: &[Utf8PathBuf]) -> Site {
    let code = files.iter().filter(|name| {
        let path = root.join(name);
        // A library and the link that names its version are one file.
        !path.is_symlink()
            && (is_object(name) || is_extension(name) && starts_with(&path, *b"\x7fELF") || is_program(&path))
    });
    let extensions = code.map(|name| ExtensionFile { name: name.to_string(), path: root.join(name) }).collect();
    Site { root: root.to_owned(), extensions }
}

/// Unpacks the tree in `archive`, a `.tar.gz`, into the empty folder `root`. Links are left out: what they lead to is in
/// the tree as well.
///
/// # Errors
/// A file that is no such archive, or one with paths that lead out of the folder.
pub fn unpack_tree(archive: &Utf8Path, root: &Utf8Path) -> Result<Site, Problem> {
    let broken = |why: String| {
        Problem::new(
            "cuwright::verify::broken_archive",
            Exit::Verify,
            format!("{archive} cannot be read as an archive"),
        )
        .why(why)
        .help("build it again; if it was downloaded, download it again")
    };
    let file = fs::File::open(archive).map_err(|error| broken(error.to_string()))?;
    let mut limits = Room::of(file.metadata().map_err(|error| broken(error.to_string()))?.len());
    let mut tar = tar::Archive::new(flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file)));
    let mut files = Vec::new();
    for entry in tar.entries().map_err(|error| broken(error.to_string()))? {
        let mut entry = entry.map_err(|error| broken(error.to_string()))?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        limits.member(&name).map_err(broken)?;
        let inside = Utf8Path::new(&name)
            .components()
            .all(|part| matches!(part, Utf8Component::Normal(_) | Utf8Component::CurDir));
        if !inside {
            return Err(broken(format!("the member `{name}` leads out of the archive")));
        }
        let inner: Utf8PathBuf =
            Utf8Path::new(&name).components().filter(|part| *part != Utf8Component::CurDir).collect();
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
        let path = root.join(&inner);
        let mut write = || -> std::io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
            let mut out = fs::File::create(&path)?;
            std::io::copy(&mut limits.reader(&mut entry), &mut out)?;
            out.file().set_permissions(std::fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
        };
        write().map_err(|error| broken(format!("{name}: {error}")))?;
        files.push(inner);
    }
    files.sort();
    Ok(of_tree(root, &files))
}

/// Suffixes of files that hold GPU code and are no extension files.
const OBJECTS: [&str; 7] = ["o", "obj", "a", "lib", "cubin", "fatbin", "dll"];

/// Whether a path names a file that may hold GPU code and is no extension file.
pub fn is_object(path: &Utf8Path) -> bool {
    path.extension().is_some_and(|suffix| OBJECTS.contains(&suffix))
}

fn is_program(path: &Utf8Path) -> bool {
    let executable = |meta: std::fs::Metadata| meta.permissions().mode() & 0o100 != 0;
    fs::metadata(path).is_ok_and(executable) && starts_with(path, *b"\x7fELF")
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
    starts_with(path, *b"PK\x03\x04")
}

/// Whether a file starts like one that gzip made.
pub fn is_packed_tree(path: &Utf8Path) -> bool {
    files::head(path) == Some([0x1f, 0x8b])
}

fn starts_with(path: &Utf8Path, magic: [u8; 4]) -> bool {
    files::head(path) == Some(magic)
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
    fn a_packed_tree_gives_what_can_hold_code_and_never_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let pack = |name: &str, members: &[(&str, u32, &[u8])]| {
            let archive = root.join(name);
            let gzip = flate2::write::GzEncoder::new(fs::File::create(&archive).unwrap(), flate2::Compression::fast());
            let mut tar = tar::Builder::new(gzip);
            for (name, mode, bytes) in members {
                let mut header = tar::Header::new_gnu();
                header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
                header.set_mode(*mode);
                header.set_size(bytes.len() as u64);
                header.set_cksum();
                tar.append(&header, *bytes).unwrap();
            }
            tar.into_inner().unwrap().finish().unwrap();
            unpack_tree(&archive, &root.join(format!("{name}-to")))
        };
        let elf = b"\x7fELF rest";
        let members: [(&str, u32, &[u8]); 5] = [
            ("./bin/tool", 0o755, elf),
            ("bin/script", 0o755, b"#!/bin/sh\n"),
            ("lib/libx.so.1", 0o644, elf),
            ("lib/libx.so", 0o644, b"INPUT(libx.so.1)"),
            ("lib/liby.a", 0o644, b"!<arch>\n"),
        ];
        let names: Vec<String> = pack("a.tar.gz", &members).unwrap().extensions.into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["bin/tool", "lib/libx.so.1", "lib/liby.a"]);
        for evil in ["../evil", "/etc/evil"] {
            let refused = pack("b.tar.gz", &[(evil, 0o644, b"x")]).unwrap_err();
            assert_eq!(refused.code(), "cuwright::verify::broken_archive");
        }
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
