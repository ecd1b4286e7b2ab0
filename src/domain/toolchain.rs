//! The toolchain a unit is built with, as facts: every one with its version and where it came from.
//!
//! Invariant: pure values. `probe` and `provision` make them; preflight, plan and key only read them.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use super::version::CudaVersion;

/// A complete, working set of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolchain {
    /// The CUDA toolkit.
    pub toolkit: Toolkit,
    /// The Python that runs setup.py.
    pub python: Python,
    /// The torch installed in that Python.
    pub torch: Torch,
    /// The host compiler for C++ and for nvcc.
    pub host: HostCompiler,
    /// `ninja`, where there is one.
    pub ninja: Option<Utf8PathBuf>,
    /// Folders that go in front of `PATH`, the most specific first.
    pub path: Vec<Utf8PathBuf>,
    /// Folder of packages that an existing environment lacks for the build; goes in front of `PYTHONPATH`.
    #[serde(default)]
    pub overlay: Option<Utf8PathBuf>,
    /// Content address of the provisioned environment; `None` where an existing one is used.
    pub environment: Option<String>,
}

/// Something that was looked at while a toolchain was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Considered {
    /// `toolkit`, `python` or `host compiler`.
    pub what: String,
    /// Its place.
    pub place: String,
    /// Its version, where it told one.
    pub version: Option<String>,
    /// How it was found.
    pub origin: String,
    /// Whether it was taken.
    pub taken: bool,
    /// Why, or why not.
    pub why: String,
}

impl std::fmt::Display for Considered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, place, version, origin, why, .. } = self;
        let name = match (what.as_str(), version) {
            ("toolkit", Some(version)) => format!("CUDA {version} at {place}"),
            ("python", Some(version)) => format!("Python {version} at {place}"),
            (_, Some(version)) => format!("{what} {version} at {place}"),
            (_, None) => place.clone(),
        };
        write!(f, "{name} ({origin}) {why}")
    }
}

/// A CUDA toolkit that holds nvcc.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolkit {
    /// Root to export as `CUDA_HOME`.
    pub home: Utf8PathBuf,
    /// nvcc's full version, such as `13.0.88`.
    pub nvcc: CudaVersion,
    /// What `nvcc --list-gpu-code` says, such as `sm_90`, `sm_90a`.
    pub gpu_codes: Vec<String>,
    /// What `nvcc --list-gpu-arch` says, such as `compute_90`.
    pub gpu_archs: Vec<String>,
    /// Bounds on the host compiler, read from `crt/host_config.h`.
    pub host_bounds: HostBounds,
    /// How it was found, for people: `CUDA_HOME`, `provisioned from wheels` …
    pub origin: String,
}

impl Toolkit {
    /// The archs it says it targets; `None` where it does not tell, as nvcc before 11.1.
    pub fn codes(&self) -> Option<&[String]> {
        (!self.gpu_codes.is_empty()).then_some(self.gpu_codes.as_slice())
    }
}

/// Newest host compilers that nvcc accepts; `None` where the header names no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBounds {
    /// Newest accepted gcc major.
    pub gcc_max: Option<u32>,
    /// First refused clang major.
    pub clang_below: Option<u32>,
}

impl HostBounds {
    /// The newest accepted major of a family, where the header names one.
    pub fn newest(&self, family: HostFamily) -> Option<u32> {
        match family {
            HostFamily::Gcc => self.gcc_max,
            HostFamily::Clang => self.clang_below.map(|below| below.saturating_sub(1)),
        }
    }

    /// Whether a compiler is within them.
    pub fn accept(&self, host: &HostCompiler) -> bool {
        self.newest(host.family).is_none_or(|newest| host.major() <= newest)
    }
}

/// A Python interpreter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Python {
    /// The interpreter to run.
    pub executable: Utf8PathBuf,
    /// Full version, such as `3.11.7`.
    pub version: String,
    /// Wheel tag, such as `cp311`.
    pub tag: String,
    /// `sysconfig.get_platform()`, such as `linux-x86_64`.
    pub platform: String,
    /// C library and version, such as `glibc 2.36`; `None` where Python does not tell.
    #[serde(default)]
    pub libc: Option<String>,
    /// Folders that packages are imported from, in import order.
    pub site_dirs: Vec<Utf8PathBuf>,
    /// Folder with `Python.h`; `None` where the development headers are not installed.
    pub headers: Option<Utf8PathBuf>,
    /// How it was found.
    pub origin: String,
}

/// A torch installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torch {
    /// Full version with its local part, such as `2.11.0+cu130`.
    pub version: String,
    /// CUDA version it was built for; `None` for a CPU-only torch.
    pub cuda: Option<CudaVersion>,
    /// Whether it uses the C++11 ABI of libstdc++.
    pub cxx11_abi: bool,
    /// Arch spellings its `cpp_extension` accepts, such as `9.0`, `9.0a`.
    pub supported_archs: Vec<String>,
    /// Wheel tag of the Python it was compiled for, such as `cp311`, where its files tell.
    #[serde(default)]
    pub tag: Option<String>,
    /// Its package folder.
    pub folder: Utf8PathBuf,
}

/// Family of a host compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostFamily {
    /// GNU.
    Gcc,
    /// LLVM.
    Clang,
}

impl HostFamily {
    /// Name of its C compiler.
    pub const fn cc(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Clang => "clang",
        }
    }

    /// Name of its C++ compiler.
    pub const fn cxx(self) -> &'static str {
        match self {
            Self::Gcc => "g++",
            Self::Clang => "clang++",
        }
    }
}

/// A C and C++ compiler pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCompiler {
    /// C compiler.
    pub cc: Utf8PathBuf,
    /// C++ compiler.
    pub cxx: Utf8PathBuf,
    /// Family.
    pub family: HostFamily,
    /// Full version, such as `12.2.0`.
    pub version: String,
    /// Flags that came with its name, as in `CXX="g++ -m64"`; they belong to every call of it.
    #[serde(default)]
    pub flags: Vec<String>,
    /// How it was found: `CXX`, `PATH` …
    pub origin: String,
}

impl HostCompiler {
    /// First number of the version; 0 where it is no number.
    pub fn major(&self) -> u32 {
        self.version.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

/// A toolchain as it is provisioned on Linux, for tests of the pure stages.
#[cfg(test)]
pub(crate) fn sample() -> Toolchain {
    let names = |kind: &str| ["75", "80", "86", "90", "90a", "100", "120"].map(|n| format!("{kind}_{n}")).to_vec();
    Toolchain {
        toolkit: Toolkit {
            home: "/c/toolchain/cuda".into(),
            nvcc: CudaVersion { major: 13, minor: 0, build: Some(88) },
            gpu_codes: names("sm"),
            gpu_archs: names("compute"),
            host_bounds: HostBounds { gcc_max: Some(15), clang_below: Some(21) },
            origin: "provisioned from wheels".to_owned(),
        },
        python: Python {
            executable: "/c/toolchain/bin/python".into(),
            version: "3.11.7".to_owned(),
            tag: "cp311".to_owned(),
            platform: "linux-x86_64".to_owned(),
            libc: Some("glibc 2.36".to_owned()),
            site_dirs: Vec::new(),
            headers: None,
            origin: "provisioned".to_owned(),
        },
        torch: Torch {
            version: "2.11.0+cu130".to_owned(),
            cuda: Some(CudaVersion::new(13, 0)),
            cxx11_abi: true,
            supported_archs: ["7.5", "8.0", "8.6", "9.0", "9.0a", "10.0", "12.0"].map(str::to_owned).to_vec(),
            tag: Some("cp311".to_owned()),
            folder: "/c/toolchain/lib/torch".into(),
        },
        host: HostCompiler {
            cc: "/usr/bin/gcc".into(),
            cxx: "/usr/bin/g++".into(),
            family: HostFamily::Gcc,
            version: "12.2.0".to_owned(),
            flags: Vec::new(),
            origin: "PATH".to_owned(),
        },
        ninja: Some("/c/toolchain/bin/ninja".into()),
        path: vec!["/c/toolchain/bin".into(), "/c/toolchain/cuda/bin".into()],
        overlay: None,
        environment: Some("0".repeat(64)),
    }
}
