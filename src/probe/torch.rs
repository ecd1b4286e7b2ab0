//! Facts of an installed torch, read from its files: importing it would take seconds.
//!
//! Invariant: nothing here starts a process. A Python without torch is a value, not an error.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::domain::toolchain::Torch;

/// The torch that `import torch` would find in these folders.
pub fn find(site_dirs: &[Utf8PathBuf]) -> Option<Torch> {
    site_dirs.iter().map(|folder| folder.join("torch")).find_map(|folder| describe(&folder))
}

/// Describes the torch in its package folder; `None` where there is none.
pub fn describe(folder: &Utf8Path) -> Option<Torch> {
    let versions = fs::read_to_string(folder.join("version.py")).ok()?;
    let version = assigned(&versions, "__version__")?;
    let cmake = fs::read_to_string(folder.join("share/cmake/Torch/TorchConfig.cmake")).unwrap_or_default();
    let extension = fs::read_to_string(folder.join("utils/cpp_extension.py")).unwrap_or_default();
    Some(Torch {
        cuda: assigned(&versions, "cuda").and_then(|cuda| cuda.parse().ok()),
        cxx11_abi: cxx11_abi(&cmake).unwrap_or_else(|| abi_of_release(&version)),
        supported_archs: supported_archs(&extension),
        tag: tag(folder),
        version,
        folder: folder.to_owned(),
    })
}

/// The string assigned to `name` on its own line: `__version__ = '2.11.0+cu130'`, `cuda: Optional[str] = '13.0'`.
fn assigned(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (annotation, value) = rest.split_once('=')?;
        (annotation.trim().is_empty() || annotation.starts_with(':')).then(|| quoted(value)).flatten()
    })
}

fn quoted(text: &str) -> Option<String> {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| "'\"".contains(*c))?;
    text[1..].split_once(quote).map(|(inner, _)| inner.to_owned())
}

/// `cp311`, from the name of its module `_C.cpython-311-x86_64-linux-gnu.so`.
fn tag(folder: &Utf8Path) -> Option<String> {
    let mut entries = folder.read_dir_utf8().ok()?.flatten();
    entries.find_map(|entry| {
        let number = entry.file_name().strip_prefix("_C.cpython-")?.split('-').next()?;
        Some(format!("cp{number}"))
    })
}

/// `-D_GLIBCXX_USE_CXX11_ABI=1` among the flags that torch's `CMake` file hands on.
fn cxx11_abi(cmake: &str) -> Option<bool> {
    let (_, rest) = cmake.split_once("_GLIBCXX_USE_CXX11_ABI=")?;
    rest.chars().next().map(|c| c != '0')
}

/// Where the files are silent: all builds have used the new ABI from 2.7 on, and say nothing about it from 2.8 on.
fn abi_of_release(version: &str) -> bool {
    let mut parts = version.split(['.', '+']).map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (2, 7)
}

/// The elements of `supported_arches = ['3.5', …]` in `cpp_extension.py`.
fn supported_archs(source: &str) -> Vec<String> {
    let list = source.split_once("supported_arches = [").and_then(|(_, rest)| rest.split_once(']'));
    let elements = list.map(|(elements, _)| elements.split(',')).into_iter().flatten();
    elements.filter_map(quoted).filter(|arch| !arch.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::version::CudaVersion;

    fn torch(files: &[(&str, &str)]) -> Option<Torch> {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for (name, text) in files {
            let path = root.join("torch").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        find(&[root.join("none"), root.to_owned()])
    }

    #[test]
    fn a_torch_is_read_from_its_files() {
        let found = torch(&[
            (
                "version.py",
                "__all__ = ['cuda']\n__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\nhip = None\n",
            ),
            ("share/cmake/Torch/TorchConfig.cmake", "set(TORCH_CXX_FLAGS \"-D_GLIBCXX_USE_CXX11_ABI=0\")"),
            ("_C.cpython-312-x86_64-linux-gnu.so", ""),
            ("utils/cpp_extension.py", "x\n    supported_arches = ['8.6', '9.0',\n          '9.0a']\n"),
        ])
        .unwrap();
        assert_eq!(found.version, "2.6.0+cu124");
        assert_eq!(found.cuda, Some(CudaVersion::new(12, 4)));
        assert!(!found.cxx11_abi);
        assert_eq!(found.tag.as_deref(), Some("cp312"));
        assert_eq!(found.supported_archs, ["8.6", "9.0", "9.0a"]);
    }

    #[test]
    fn silence_about_the_abi_is_read_from_the_release() {
        let new = torch(&[("version.py", "__version__ = \"2.11.0\"\ncuda = None\n")]).unwrap();
        assert!(new.cxx11_abi && new.cuda.is_none() && new.supported_archs.is_empty());
        let old = torch(&[("version.py", "__version__ = '2.5.1'\n")]).unwrap();
        assert!(!old.cxx11_abi);
    }

    #[test]
    fn no_torch_is_a_value() {
        assert_eq!(torch(&[]), None);
        assert_eq!(torch(&[("version.py", "debug = False\n")]), None);
    }
}
