//! Shapes the toolkit folder of wheels, or of a conda environment, into a `CUDA_HOME` that torch, `CMake` and nvcc accept.
//!
//! ```text
//! bin/         a real folder, one link a file: nvcc finds its home from the path it is called by, so a linked folder
//!              would lead it back to the wheel
//! lib64/       one link a library, and `libX.so` for each `libX.so.N`
//! lib          → lib64
//! include nvvm → the wheel's; targets → conda's, which its nvcc.profile names
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

/// Where the parts of a toolkit are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Its root.
    pub home: Utf8PathBuf,
    /// Folders with headers; where a name is twice, the first one wins.
    pub include: Vec<Utf8PathBuf>,
    /// Folders with libraries.
    pub libraries: Vec<Utf8PathBuf>,
}

impl Parts {
    /// The parts of a toolkit of wheels.
    pub fn of_wheel(home: &Utf8Path) -> Self {
        Self { home: home.to_owned(), include: vec![home.join("include")], libraries: vec![home.join("lib")] }
    }
}

/// What belongs to a toolkit in a `bin` folder that it shares with everything else, as conda's.
const TOOLS: [&str; 13] = [
    "nvcc",
    "nvcc.profile",
    "__nvcc_device_query",
    "bin2c",
    "cicc",
    "crt",
    "cu++filt",
    "cudafe++",
    "cuobjdump",
    "fatbinary",
    "nvdisasm",
    "nvlink",
    "ptxas",
];

/// Makes `home` a `CUDA_HOME` of links into `parts`. `home` must not be there yet.
pub fn shape(parts: &Parts, home: &Utf8Path) -> io::Result<()> {
    let shared = parts.home.join("conda-meta").is_dir();
    link_files(&parts.home.join("bin"), &home.join("bin"), &|name| !shared || TOOLS.contains(&name))?;
    let lib64 = home.join("lib64");
    fs::create_dir_all(&lib64)?;
    for path in link_once(&parts.libraries, &lib64, &|path| !shared || is_of_cuda(path))? {
        let Some((stem, _)) = path.file_name().unwrap_or_default().split_once(".so.") else { continue };
        let plain = lib64.join(format!("{stem}.so"));
        if plain.symlink_metadata().is_err() {
            symlink(&path, plain)?;
        }
    }
    symlink("lib64", home.join("lib"))?;
    if let [only] = parts.include.as_slice() {
        symlink(only, home.join("include"))?;
    } else {
        fs::create_dir_all(home.join("include"))?;
        link_once(&parts.include, &home.join("include"), &|_| true)?;
    }
    for folder in ["nvvm", "targets"] {
        let folder_there = parts.home.join(folder);
        if folder == "nvvm" || folder_there.is_dir() {
            symlink(folder_there, home.join(folder))?;
        }
    }
    Ok(())
}

/// The shape of a toolkit in an environment that is not ours, made once per `stamp` of its nvcc.
pub fn borrowed(root: &Utf8Path, parts: &Parts, stamp: &str) -> io::Result<Utf8PathBuf> {
    let bucket = root.join(BUCKET);
    let home = bucket.join(&files::sha256(stamp.as_bytes())[..32]);
    if home.join("nvvm").exists() {
        return Ok(home);
    }
    fs::create_dir_all(&bucket)?;
    let staged = tempfile::Builder::new().prefix(".shape-").tempdir_in(&bucket)?;
    let staging = Utf8Path::from_path(staged.path()).unwrap_or(&bucket).join("cuda");
    shape(parts, &staging)?;
    match fs::rename(&staging, &home) {
        // Somebody else was faster; theirs is the same.
        Err(_) if home.join("nvvm").exists() => Ok(home),
        other => other.map(|()| home),
    }
}

/// Links the entries of `folders` into `to`, the first of each name, and gives back what they lead to.
fn link_once(
    folders: &[Utf8PathBuf],
    to: &Utf8Path,
    wanted: &dyn Fn(&Utf8Path) -> bool,
) -> io::Result<Vec<Utf8PathBuf>> {
    let mut linked = Vec::new();
    for folder in folders {
        for path in sorted(folder)?.into_iter().filter(|path| wanted(path)) {
            let link = to.join(path.file_name().unwrap_or_default());
            if link.symlink_metadata().is_err() {
                symlink(&path, link)?;
                linked.push(path);
            }
        }
    }
    Ok(linked)
}

/// Libraries that conda's toolkit shares a folder with every other package's.
fn is_of_cuda(path: &Utf8Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    ["libcu", "libnv", "stubs"].iter().any(|prefix| name.starts_with(prefix))
}

fn link_files(from: &Utf8Path, to: &Utf8Path, wanted: &dyn Fn(&str) -> bool) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for path in sorted(from)? {
        let name = path.file_name().unwrap_or_default();
        if !wanted(name) {
            continue;
        }
        if path.is_dir() {
            link_files(&path, &to.join(name), &|_| true)?;
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
        shape(&Parts::of_wheel(&wheel), &home).unwrap();
        for file in
            ["bin/nvcc", "bin/crt/link.stub", "lib64/libcudart.so.13", "lib/libcudart.so", "lib/libx.so", "include/a.h"]
        {
            assert!(home.join(file).is_file(), "{file}");
        }
        assert!(home.join("bin").symlink_metadata().unwrap().is_dir());
        let parts = Parts::of_wheel(&wheel);
        let borrowed_once = borrowed(&site, &parts, "s").unwrap();
        assert_eq!(borrowed(&site, &parts, "s").unwrap(), borrowed_once);
        assert_eq!(wheel_home(&site.join("none")), None);
    }
}
