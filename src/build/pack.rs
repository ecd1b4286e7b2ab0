//! Packs a tree of files into one archive whose bytes depend on the files alone.
//!
//! Entries are ordered by the bytes of their paths; times, owners and all mode bits but the executable one are left out.
//! A link that stays within the tree is kept, any other is replaced by what it points at.

use std::io;
use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

/// Files and links below `root`, ordered by the bytes of their paths, which are relative.
pub fn files(root: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry?;
        if entry.file_type().is_dir() {
            continue;
        }
        let path = Utf8PathBuf::from_path_buf(entry.into_path())
            .map_err(|path| io::Error::new(io::ErrorKind::InvalidData, format!("{} is not UTF-8", path.display())))?;
        found.push(path.strip_prefix(root).unwrap_or(&path).to_owned());
    }
    found.sort_by(|a, b| a.as_str().as_bytes().cmp(b.as_str().as_bytes()));
    Ok(found)
}

/// Writes `files` of `root` to the `.tar.gz` at `archive`.
pub fn pack(root: &Utf8Path, files: &[Utf8PathBuf], archive: &Utf8Path) -> io::Result<()> {
    let file = fs::File::create(archive)?;
    let gzip = flate2::GzBuilder::new().mtime(0).write(io::BufWriter::new(file), flate2::Compression::default());
    let mut tar = tar::Builder::new(gzip);
    for name in files {
        let path = root.join(name);
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        if let Some(target) = inner_link(name, &path)? {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_mode(0o777);
            header.set_size(0);
            tar.append_link(&mut header, name, target)?;
            continue;
        }
        let meta = fs::metadata(&path)?;
        header.set_size(meta.len());
        header.set_mode(if meta.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 });
        tar.append_data(&mut header, name, fs::File::open(&path)?)?;
    }
    tar.into_inner()?.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// Target of a link that stays within the tree, judged by names alone.
fn inner_link(name: &Utf8Path, path: &Utf8Path) -> io::Result<Option<Utf8PathBuf>> {
    if !path.is_symlink() {
        return Ok(None);
    }
    let target = Utf8PathBuf::from_path_buf(fs::read_link(path)?).unwrap_or_else(|_| "/".into());
    let mut depth = name.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            camino::Utf8Component::Normal(_) => depth += 1,
            camino::Utf8Component::ParentDir if depth > 0 => depth -= 1,
            camino::Utf8Component::CurDir => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(target))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn equal_trees_give_equal_bytes_wherever_and_whenever_they_were_made() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs::write(root.join("outside"), "o").unwrap();
        let packed = |name: &str, backwards: bool| {
            let tree = root.join(name);
            let mut names = ["lib/libx.so.1", "bin/tool", "a"];
            if backwards {
                names.reverse();
            }
            for file in names {
                fs::create_dir_all(tree.join(file).parent().unwrap()).unwrap();
                fs::write(tree.join(file), file).unwrap();
            }
            fs::set_permissions(tree.join("bin/tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
            symlink("libx.so.1", tree.join("lib/libx.so")).unwrap();
            symlink(root.join("outside"), tree.join("out")).unwrap();
            let archive = root.join(format!("{name}.tar.gz"));
            pack(&tree, &files(&tree).unwrap(), &archive).unwrap();
            fs::read(archive).unwrap()
        };
        let first = packed("one", false);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(packed("two", true), first);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&first[..]));
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            (entry.path().unwrap().to_str().unwrap().to_owned(), header.entry_type(), header.mode().unwrap())
        });
        let (file, link) = (tar::EntryType::Regular, tar::EntryType::Symlink);
        let wanted = [
            ("a", file, 0o644),
            ("bin/tool", file, 0o755),
            ("lib/libx.so", link, 0o777),
            ("lib/libx.so.1", file, 0o644),
            ("out", file, 0o644),
        ];
        assert_eq!(entries.collect::<Vec<_>>(), wanted.map(|(name, kind, mode)| (name.to_owned(), kind, mode)));
    }
}
