//! Puts the stand-ins into a build's folder, and says by which variables and options a build comes to use them.

use std::io;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::{APART, NAME, START};
use crate::domain::command::quote;
use crate::sys::Env;
use crate::sys::env_vars as vars;

/// Compilers that projects call by their bare name, and the ninja that torch calls.
const BARE: [&str; 7] = ["gcc", "g++", "cc", "c++", "clang", "clang++", "ninja"];

/// The real tools of a build.
#[derive(Debug, Clone, Copy)]
pub struct Tools<'a> {
    /// nvcc.
    pub nvcc: &'a Utf8Path,
    /// C compiler.
    pub cc: &'a Utf8Path,
    /// C++ compiler.
    pub cxx: &'a Utf8Path,
}

/// The stand-ins of one build.
#[derive(Debug)]
pub struct Placement {
    root: Utf8PathBuf,
    cc: Utf8PathBuf,
    cxx: Utf8PathBuf,
    path: String,
    /// Keeps the short name of a folder with blanks.
    _short: Option<tempfile::TempDir>,
}

impl Placement {
    /// Makes stand-ins for `tools` in `folder`, all of them links to `program`. `path` is the build's
    /// `PATH`.
    pub fn make(folder: &Utf8Path, program: &Utf8Path, tools: Tools<'_>, path: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let (root, short) = plain(folder)?;
        let name = |path: &Utf8Path| path.file_name().unwrap_or("cc").to_owned();
        let links = Links { folder, program };
        links.put("cc", &name(tools.cc), tools.cc)?;
        links.put("cxx", &name(tools.cxx), tools.cxx)?;
        links.put("bin", "nvcc", tools.nvcc)?;
        links.put_found(path, &BARE, &["gcc", "g++"])?;
        for name in [NAME, START, APART] {
            symlink(program, folder.join("bin").join(name))?;
        }
        let path = format!("{}:{path}", root.join("bin"));
        Ok(Self {
            cc: root.join("cc").join(name(tools.cc)),
            cxx: root.join("cxx").join(name(tools.cxx)),
            path,
            root,
            _short: short,
        })
    }

    /// The launcher's folder, where its coordinator listens.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// What every build needs: how its stand-ins find the coordinator, and bare names of compilers.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![(vars::CUWRIGHT_LAUNCHER, self.root.to_string()), (vars::PATH, self.path.clone())]
    }

    /// Further variables of a build that goes by `CC`, `CXX`, `CUDACXX` and `PYTORCH_NVCC`, as setup.py files do.
    pub fn compilers(&self) -> Vec<(&'static str, String)> {
        let nvcc = self.root.join("bin/nvcc");
        vec![
            (vars::CC, self.cc.to_string()),
            (vars::CXX, self.cxx.to_string()),
            (vars::CUDACXX, nvcc.to_string()),
            // torch writes it into its ninja file as it is.
            (vars::PYTORCH_NVCC, quote(nvcc.as_str())),
        ]
    }

    /// The value of `CMAKE_C_COMPILER_LAUNCHER`, `CMAKE_CXX_COMPILER_LAUNCHER` and `CMAKE_CUDA_COMPILER_LAUNCHER`. With it
    /// the compilers themselves stay the real ones, so that `CMake` recognises them.
    pub fn compiler_launcher(&self) -> Utf8PathBuf {
        self.root.join("bin").join(NAME)
    }

    /// The ninja whose `-j` the coordinator widens; for `CMAKE_MAKE_PROGRAM`.
    pub fn ninja(&self) -> Utf8PathBuf {
        self.root.join("bin/ninja")
    }

    /// Makes stand-ins for the archivers on `path` too, so that they wait for what was compiled ahead.
    pub fn archivers(&self, program: &Utf8Path, path: &str) -> io::Result<()> {
        let names = ["ar", "gcc-ar"];
        Links { folder: &self.root, program }.put_found(path, &names, &names)
    }

    /// A program that becomes the command given as its arguments, and dies when cuwright does.
    pub fn starter(&self) -> Utf8PathBuf {
        self.root.join("bin").join(START)
    }

    /// Makes a `CUDA_HOME` like `home` whose nvcc is a stand-in.
    pub fn shadow(&self, home: &Utf8Path, program: &Utf8Path) -> io::Result<Utf8PathBuf> {
        let shadow = self.root.join("cuda");
        for entry in home.read_dir_utf8()?.filter_map(Result::ok).filter(|entry| entry.file_name() != "bin") {
            fs::create_dir_all(&shadow)?;
            symlink(entry.path(), shadow.join(entry.file_name()))?;
        }
        fs::create_dir_all(shadow.join("bin"))?;
        for entry in
            home.join("bin").read_dir_utf8()?.filter_map(Result::ok).filter(|entry| entry.file_name() != "nvcc")
        {
            symlink(entry.path(), shadow.join("bin").join(entry.file_name()))?;
        }
        Links { folder: &shadow, program }.put("bin", "nvcc", &home.join("bin/nvcc"))?;
        Ok(shadow)
    }
}

struct Links<'a> {
    folder: &'a Utf8Path,
    program: &'a Utf8Path,
}

impl Links<'_> {
    /// Stand-ins for those of `names` that are on `path`, and for those of `prefixed` after the machine's triplet.
    fn put_found(&self, path: &str, names: &[&str], prefixed: &[&str]) -> io::Result<()> {
        let env = Env::of("/", [(vars::PATH, path)]);
        let prefixed = prefixed.iter().map(|tool| format!("{}-linux-gnu-{tool}", std::env::consts::ARCH));
        for name in names.iter().map(|name| (*name).to_owned()).chain(prefixed) {
            if let Some(real) = env.find_program(&name) {
                self.put("bin", &name, &real)?;
            }
        }
        Ok(())
    }

    fn put(&self, kind: &str, name: &str, real: &Utf8Path) -> io::Result<()> {
        for (folder, to) in [(self.folder.join(kind), self.program), (self.folder.join("real").join(kind), real)] {
            fs::create_dir_all(&folder)?;
            symlink(to, folder.join(name))?;
        }
        Ok(())
    }
}

/// `CC` and `CXX` are split at blanks by some and not by others, so no quoting suits all: a folder with a blank in its
/// path gets a short name without one.
fn plain(folder: &Utf8Path) -> io::Result<(Utf8PathBuf, Option<tempfile::TempDir>)> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    if folder.as_str().chars().all(harmless) {
        return Ok((folder.to_owned(), None));
    }
    let short = tempfile::Builder::new().prefix("cuwright-").tempdir_in("/tmp")?;
    let link = Utf8PathBuf::from_path_buf(short.path().join("launch")).map_err(|_| io::ErrorKind::InvalidFilename)?;
    symlink(folder, &link)?;
    Ok((link, Some(short)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Tools<'static> {
        Tools { nvcc: "/c/cuda/bin/nvcc".into(), cc: "/usr/bin/gcc".into(), cxx: "/usr/bin/g++".into() }
    }

    #[test]
    fn every_tool_has_a_stand_in_and_a_way_to_the_real_one() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(temporary.path()).unwrap().join("a b/launch");
        let program = Utf8Path::new("/opt/cuwright");
        let placement = Placement::make(&folder, program, tools(), "/usr/bin:/bin").unwrap();
        assert!(!placement.root().as_str().contains(' '));
        let compilers = placement.compilers();
        assert!(compilers.iter().all(|(_, value)| !value.contains(' ')), "{compilers:?}");
        let real = |kind: &str, name: &str| fs::read_link(placement.root().join("real").join(kind).join(name)).unwrap();
        assert_eq!(real("bin", "nvcc").to_str(), Some("/c/cuda/bin/nvcc"));
        assert_eq!(real("cxx", "g++").to_str(), Some("/usr/bin/g++"));
        assert_eq!(fs::read_link(placement.compiler_launcher()).unwrap().to_str(), Some("/opt/cuwright"));
    }

    #[test]
    fn a_shadow_home_differs_in_nvcc_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temporary.path()).unwrap();
        let home = root.join("cuda");
        fs::create_dir_all(home.join("bin/crt")).unwrap();
        fs::create_dir_all(home.join("include")).unwrap();
        fs::write(home.join("bin/nvcc"), "").unwrap();
        fs::write(home.join("bin/ptxas"), "").unwrap();
        let placement = Placement::make(&root.join("launch"), "/opt/cuwright".into(), tools(), "").unwrap();
        let shadow = placement.shadow(&home, "/opt/cuwright".into()).unwrap();
        let link = |name: &str| fs::read_link(shadow.join(name)).unwrap();
        assert_eq!(link("bin/nvcc").to_str(), Some("/opt/cuwright"));
        assert_eq!(link("real/bin/nvcc"), home.join("bin/nvcc"));
        for same in ["bin/ptxas", "bin/crt", "include"] {
            assert_eq!(link(same), home.join(same));
        }
    }
}
