//! Unpacks an sdist, trusting nothing in it.
//!
//! Refused, naming the member: absolute paths, `..`, links out of the tree or below another link, devices and pipes, names
//! that are not UTF-8 or too long, and archives that unpack to absurd sizes or numbers. Links are made last, so that no
//! file is ever written through one. Set-user-id and set-group-id bits are dropped. A single top folder is stripped.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::sys::unpack::Room;

use super::tree::{stays_within, unreadable, unwritable};
use crate::domain::{exit::Exit, problem::Problem};

/// How many links a link may lead through: what Linux allows.
const HOPS: usize = 40;

/// Unpacks `archive`, a `.zip` or else a `.tar.gz`, into the empty folder `to`.
///
/// # Errors
/// A file that cannot be read, is no such archive, or breaks a rule above; names the member. A full disk.
pub fn unpack(archive: &Utf8Path, to: &Utf8Path) -> Result<(), Problem> {
    let file = fs::File::open(archive).map_err(|error| unreadable(&error))?;
    let packed = file.metadata().map_err(|error| unreadable(&error))?.len();
    let mut sink = Sink { archive, to, links: BTreeMap::new(), room: Room::of(packed) };
    if archive.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip")) {
        sink.zip(file)?;
    } else {
        sink.tar(tar::Archive::new(flate2::read::MultiGzDecoder::new(io::BufReader::new(file))))?;
    }
    sink.finish()
}

/// Where entries go once they have been judged.
struct Sink<'a> {
    archive: &'a Utf8Path,
    to: &'a Utf8Path,
    links: BTreeMap<Utf8PathBuf, String>,
    room: Room,
}

impl Sink<'_> {
    fn tar<R: Read>(&mut self, mut archive: tar::Archive<R>) -> Result<(), Problem> {
        let broken = |error: io::Error| self.refuse(&error.to_string());
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(|error| self.refuse(&error.to_string()))?;
            let kind = entry.header().entry_type();
            let path = String::from_utf8(entry.path_bytes().into_owned());
            let path = self.judge(&path.map_err(|_| self.refuse("a name in it is not UTF-8"))?)?;
            let target = entry.link_name_bytes().map(|name| String::from_utf8_lossy(&name).into_owned());
            match kind {
                tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => {
                    let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
                    self.file(&path, executable, &mut entry)?;
                }
                tar::EntryType::Symlink => drop(self.links.insert(path, target.unwrap_or_default())),
                tar::EntryType::Link => {
                    let original = self.judge(&target.unwrap_or_default())?;
                    let opened = fs::File::open(self.to.join(&original));
                    let mut original =
                        opened.map_err(|error| self.refuse(&format!("the hard link `{path}`: {error}")))?;
                    let meta = original.metadata().map_err(|error| self.refuse(&error.to_string()))?;
                    if !meta.is_file() {
                        return Err(self.refuse(&format!("the hard link `{path}` is to a folder")));
                    }
                    // A copy: as many bytes again, which count.
                    self.file(&path, meta.permissions().mode() & 0o100 != 0, &mut original)?;
                }
                tar::EntryType::Directory | tar::EntryType::XGlobalHeader => {}
                other => return Err(self.refuse(&format!("{path} is a special file ({other:?})"))),
            }
        }
        Ok(())
    }

    fn zip(&mut self, file: fs::File) -> Result<(), Problem> {
        let mut archive = zip::ZipArchive::new(file).map_err(|error| self.refuse(&error.to_string()))?;
        for index in 0..archive.len() {
            let mut entry = archive.by_index(index).map_err(|error| self.refuse(&error.to_string()))?;
            let name = entry.name().map_err(|error| self.refuse(&error.to_string()))?.into_owned();
            let path = self.judge(&name)?;
            let mode = entry.unix_mode().unwrap_or(0);
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                let mut target = String::new();
                (&mut entry).take(4096).read_to_string(&mut target).map_err(|error| self.refuse(&error.to_string()))?;
                self.links.insert(path, target);
            } else {
                self.file(&path, mode & 0o100 != 0, &mut entry)?;
            }
        }
        Ok(())
    }

    /// A name that stays below the folder, or a refusal.
    fn judge(&mut self, name: &str) -> Result<Utf8PathBuf, Problem> {
        self.room.member(name).map_err(|reason| self.refuse(&reason))?;
        let mut path = Utf8PathBuf::new();
        for part in Utf8Path::new(name).components() {
            match part {
                Utf8Component::Normal(part) => path.push(part),
                Utf8Component::CurDir => {}
                _ => return Err(self.refuse(&format!("the name `{name}` leads out of the tree"))),
            }
        }
        Ok(path)
    }

    fn place(&self, path: &Utf8Path) -> Result<Utf8PathBuf, Problem> {
        if path.as_str().is_empty() {
            return Err(self.refuse("it has a file without a name"));
        }
        let place = self.to.join(path);
        fs::create_dir_all(place.parent().unwrap_or(self.to)).map_err(|error| unwritable(&error))?;
        Ok(place)
    }

    fn file(&mut self, path: &Utf8Path, executable: bool, contents: &mut impl Read) -> Result<(), Problem> {
        let mut file = fs::File::create(self.place(path)?).map_err(|error| unwritable(&error))?;
        let (name, shown) = (self.archive, path);
        copy(&mut self.room.reader(contents), &mut file, |reason| refuse(name, &format!("{shown}: {reason}")))?;
        let mode = if executable { 0o755 } else { 0o644 };
        file.file().set_permissions(std::fs::Permissions::from_mode(mode)).map_err(|error| unwritable(&error))
    }

    /// Makes the links, once nothing can be written through them any more.
    fn finish(self) -> Result<(), Problem> {
        for (path, target) in &self.links {
            if let Some(above) = path.ancestors().skip(1).find(|above| self.links.contains_key(*above)) {
                return Err(self.refuse(&format!("`{path}` lies below the link `{above}`")));
            }
            if !stays_within(path, target) || !self.resolves_within(path) {
                return Err(self.refuse(&format!("the link `{path}` leads out of the tree, to `{target}`")));
            }
            let place = self.place(path)?;
            symlink(target, place).map_err(|error| self.refuse(&format!("the link `{path}`: {error}")))?;
        }
        Ok(())
    }

    /// Whether a link stays in the tree as the system would follow it: `a/../..` is judged by where the link `a` leads, not
    /// by its name.
    fn resolves_within(&self, link: &Utf8Path) -> bool {
        let mut place = Utf8PathBuf::new();
        let mut todo: Vec<String> = link.components().rev().map(|part| part.to_string()).collect();
        let mut hops = 0;
        while let Some(part) = todo.pop() {
            match part.as_str() {
                "/" => return false,
                "." => {}
                ".." => {
                    if !place.pop() {
                        return false;
                    }
                }
                _ => {
                    place.push(&part);
                    if let Some(target) = self.links.get(&place) {
                        hops += 1;
                        if hops > HOPS {
                            return false;
                        }
                        place.pop();
                        todo.extend(Utf8Path::new(target).components().rev().map(|part| part.to_string()));
                    }
                }
            }
        }
        true
    }

    fn refuse(&self, reason: &str) -> Problem {
        refuse(self.archive, reason)
    }
}

fn refuse(archive: &Utf8Path, reason: &str) -> Problem {
    let name = archive.file_name().unwrap_or_default();
    Problem::new("cuwright::source::bad_archive", Exit::Recipe, format!("the archive {name} cannot be unpacked"))
        .why(reason)
        .help("use another release of the project")
}

/// Copies and tells a fault of the archive from a fault of the disk.
fn copy(from: &mut impl Read, to: &mut impl io::Write, refuse: impl Fn(&str) -> Problem) -> Result<(), Problem> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut buffer).map_err(|error| refuse(&error.to_string()))?;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..count]).map_err(|error| unwritable(&error))?;
    }
}

/// The folder that holds the project: the single top folder if there is just one thing, else the whole.
pub(super) fn top(folder: &Utf8Path) -> io::Result<Utf8PathBuf> {
    let entries: Vec<_> = folder.read_dir_utf8()?.collect::<io::Result<_>>()?;
    match &entries[..] {
        [only] if only.file_type()?.is_dir() => Ok(only.path().to_owned()),
        _ => Ok(folder.to_owned()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A `.tar.gz` of raw entries, which may break every rule: name, type, link target or contents.
    pub(in crate::source) fn sdist(path: &Utf8Path, entries: &[(&str, tar::EntryType, &str)]) {
        let encoder = flate2::write::GzEncoder::new(fs::File::create(path).unwrap(), flate2::Compression::fast());
        let mut builder = tar::Builder::new(encoder);
        for (name, kind, text) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(if name.contains("configure") { 0o755 } else { 0o600 });
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            let regular = *kind == tar::EntryType::Regular;
            if !regular {
                header.as_mut_bytes()[157..157 + text.len()].copy_from_slice(text.as_bytes());
            }
            let contents = if regular { text.as_bytes() } else { b"" };
            header.set_size(contents.len() as u64);
            header.set_cksum();
            builder.append(&header, contents).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap();
    }

    fn unpacked(entries: &[(&str, tar::EntryType, &str)]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        sdist(&root.join("x-1.tar.gz"), entries);
        let to = root.join("to");
        fs::create_dir_all(&to).unwrap();
        unpack(&root.join("x-1.tar.gz"), &to).map_err(|problem| problem.evidence().join("; "))?;
        let top = top(&to).unwrap();
        let mut names: Vec<String> = top.read_dir_utf8().unwrap().map(|e| e.unwrap().file_name().to_owned()).collect();
        names.sort();
        Ok(names)
    }

    #[test]
    fn a_plain_sdist_is_unpacked_without_its_top_folder() {
        use tar::EntryType as T;
        let entries = [
            ("x-1/", T::Directory, ""),
            ("./x-1/setup.py", T::Regular, "s"),
            ("x-1/l", T::Symlink, "setup.py"),
            ("x-1/h", T::Link, "x-1/setup.py"),
        ];
        assert_eq!(unpacked(&entries).unwrap(), ["h", "l", "setup.py"]);
    }

    #[test]
    fn an_attack_is_refused_with_its_name() {
        use tar::EntryType as T;
        for entry in [
            ("../evil", T::Regular, "x"),
            ("/etc/evil", T::Regular, "x"),
            ("x/../../evil", T::Regular, "x"),
            ("x/l", T::Symlink, "/etc"),
            ("x/l", T::Symlink, "../../y"),
            ("x/h", T::Link, "../../etc/passwd"),
            ("./", T::Symlink, "x"),
            (".", T::Symlink, ""),
            ("x/f", T::Fifo, ""),
            ("x/d", T::Char, ""),
        ] {
            assert!(unpacked(&[("x/setup.py", T::Regular, "s"), entry]).is_err(), "{entry:?}");
        }
        // Each of these names alone stays within; followed by the system, they lead out.
        for attack in [
            &[("x/a", T::Symlink, "."), ("x/b", T::Symlink, "a/a/a/../../..")][..],
            &[("x/a", T::Symlink, "."), ("x/a/a/b", T::Symlink, "../../..")],
            &[("x/d/e/deep", T::Symlink, "../.."), ("x/b", T::Symlink, "d/e/deep/../../..")],
            &[("x/one", T::Symlink, "two"), ("x/two", T::Symlink, "one")],
            &[("x/dir/", T::Directory, ""), ("x/dir/f", T::Regular, "s"), ("x/h", T::Link, "x/dir")],
            &[("x/new\nline", T::Regular, "s")],
        ] {
            let all = [&[("x/setup.py", T::Regular, "s")], attack].concat();
            assert!(unpacked(&all).is_err(), "{attack:?}");
        }
        // A file "through" a link lands in a folder of its own, and the link is then refused.
        let through = [("x/l", T::Symlink, "y"), ("x/l/f", T::Regular, "s"), ("x/y", T::Regular, "")];
        assert!(unpacked(&through).is_err());
    }

    #[test]
    fn a_bomb_is_refused_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        let bomb = root.join("bomb.tar.gz");
        let encoder = flate2::write::GzEncoder::new(fs::File::create(&bomb).unwrap(), flate2::Compression::best());
        let mut builder = tar::Builder::new(encoder);
        let mut header = tar::Header::new_gnu();
        header.set_size(300 << 20);
        builder.append_data(&mut header, "x/zeros", io::repeat(0).take(300 << 20)).unwrap();
        builder.into_inner().unwrap().finish().unwrap();
        let why = unpack(&bomb, &root.join("to")).unwrap_err().evidence().join("; ");
        assert!(why.contains("more than 256 MiB") && why.contains("x/zeros"), "{why}");
    }

    #[test]
    fn garbage_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in ["x.tar.gz", "x.zip"] {
            fs::write(root.join(name), "not an archive").unwrap();
            let code = unpack(&root.join(name), &root.join("to")).map_err(|problem| problem.code());
            assert_eq!(code, Err("cuwright::source::bad_archive"), "{name}");
        }
    }
}
