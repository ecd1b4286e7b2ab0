//! Shapes the toolkit folder of wheels into a `CUDA_HOME` that torch, `CMake` and nvcc accept.
//!
//! ```text
//! bin/         a real folder, one link a file: nvcc finds its home from the path it is called by, so a linked folder
//!              would lead it back to the wheel
//! lib64/       one link a library, and `libX.so` for each `libX.so.N`
//! lib          → lib64
//! include nvvm → the wheel's
//! ```

use std::io;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::sys::files;

/// Shapes of wheels in environments that are not ours.
const BUCKET: &str = "shaped-v1";

/// The toolkit folder that wheels leave in a site folder, the newest first.
pub fn wheel_home(site: &Utf8Path) -> Option<Utf8PathBuf> {
    let entries = site.join("nvidia").read_dir_utf8().ok()?.flatten();
    let mut homes: Vec<Utf8PathBuf> = entries
        .filter(|entry| entry.file_name().starts_with("cu"))
        .map(|entry| entry.path().to_owned())
        .filter(|home| home.join("bin/nvcc").exists())
        .collect();
    homes.sort();
    homes.pop()
}

/// Makes `home` a `CUDA_HOME` of links into `wheel`. `home` must not be there yet.
pub fn shape(wheel: &Utf8Path, home: &Utf8Path) -> io::Result<()> {
    link_files(&wheel.join("bin"), &home.join("bin"))?;
    let lib64 = home.join("lib64");
    fs::create_dir_all(&lib64)?;
    let entries: Vec<Utf8PathBuf> =
        sorted(&wheel.join("lib"))?.into_iter().filter(|path| path.file_name().is_some()).collect();
    for path in &entries {
        symlink(path, lib64.join(path.file_name().unwrap_or_default()))?;
    }
    for path in &entries {
        let Some((stem, _)) = path.file_name().unwrap_or_default().split_once(".so.") else { continue };
        let plain = lib64.join(format!("{stem}.so"));
        if plain.symlink_metadata().is_err() {
            symlink(path, plain)?;
        }
    }
    symlink("lib64", home.join("lib"))?;
    for folder in ["include", "nvvm"] {
        symlink(wheel.join(folder), home.join(folder))?;
    }
    Ok(())
}

/// The shape of wheels in an environment that is not ours, made once per `stamp` of their nvcc.
pub fn borrowed(root: &Utf8Path, wheel: &Utf8Path, stamp: &str) -> io::Result<Utf8PathBuf> {
    let bucket = root.join(BUCKET);
    let home = bucket.join(&files::sha256(stamp.as_bytes())[..32]);
    if home.join("nvvm").exists() {
        return Ok(home);
    }
    fs::create_dir_all(&bucket)?;
    let staged = tempfile::Builder::new().prefix(".shape-").tempdir_in(&bucket)?;
    let staging = Utf8Path::from_path(staged.path()).unwrap_or(&bucket).join("cuda");
    shape(wheel, &staging)?;
    match fs::rename(&staging, &home) {
        // Somebody else was faster; theirs is the same.
        Err(_) if home.join("nvvm").exists() => Ok(home),
        other => other.map(|()| home),
    }
}

fn link_files(from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for path in sorted(from)? {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            link_files(&path, &to.join(name))?;
        } else {
            symlink(&path, to.join(name))?;
        }
    }
    Ok(())
}

fn sorted(folder: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let mut found = Vec::new();
    for entry in folder.read_dir_utf8()? {
        found.push(entry?.path().to_owned());
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_folder_gets_the_shape_of_a_toolkit() {
        let folder = tempfile::tempdir().unwrap();
        let site = Utf8Path::from_path(folder.path()).unwrap().join("é p");
        let wheel = site.join("nvidia/cu13");
        for file in ["bin/nvcc", "bin/crt/link.stub", "lib/libcudart.so.13", "lib/libx.so", "include/a.h", "nvvm/b"] {
            fs::create_dir_all(wheel.join(file).parent().unwrap()).unwrap();
            fs::write(wheel.join(file), file).unwrap();
        }
        assert_eq!(wheel_home(&site), Some(wheel.clone()));
        let home = site.join("cuda");
        shape(&wheel, &home).unwrap();
        for file in
            ["bin/nvcc", "bin/crt/link.stub", "lib64/libcudart.so.13", "lib/libcudart.so", "lib/libx.so", "include/a.h"]
        {
            assert!(home.join(file).is_file(), "{file}");
        }
        assert!(home.join("bin").symlink_metadata().unwrap().is_dir());
        let borrowed_once = borrowed(&site, &wheel, "s").unwrap();
        assert_eq!(borrowed(&site, &wheel, "s").unwrap(), borrowed_once);
        assert_eq!(wheel_home(&site.join("none")), None);
    }
}
