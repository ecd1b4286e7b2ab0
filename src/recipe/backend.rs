//! Build systems and what each may be told, as values: the part of `[build]` that differs between them.

use std::collections::BTreeMap;

use clap::ValueEnum as _;
use serde::{Serialize, Serializer};

use crate::domain::arch::dialect::Consumer;

/// A build system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Backend {
    /// `setup.py bdist_wheel` without isolation.
    #[serde(rename = "setup.py")]
    SetupPy,
    /// The build backend that `pyproject.toml` names, without isolation.
    #[serde(rename = "pyproject")]
    Pyproject,
    /// Configure, build, install into a folder.
    #[serde(rename = "cmake")]
    Cmake,
    /// `bazel build`.
    #[serde(rename = "bazel")]
    Bazel,
}

impl Backend {
    /// Every backend, in the order they are listed to people.
    pub const ALL: [Self; 4] = [Self::SetupPy, Self::Pyproject, Self::Cmake, Self::Bazel];

    /// Its name in recipes.
    pub fn name(self) -> &'static str {
        match self {
            Self::SetupPy => "setup.py",
            Self::Pyproject => "pyproject",
            Self::Cmake => "cmake",
            Self::Bazel => "bazel",
        }
    }

    /// The backend of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }

    /// Files of which one must lie at the top of a tree that it builds.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::SetupPy => &["setup.py"],
            Self::Pyproject => &["pyproject.toml"],
            Self::Cmake => &["CMakeLists.txt"],
            Self::Bazel => &["MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"],
        }
    }

    /// Whether it ends in a wheel; the others end in a tree of files.
    pub fn makes_wheel(self) -> bool {
        matches!(self, Self::SetupPy | Self::Pyproject)
    }

    /// What it needs beside torch, where the recipe does not say.
    pub fn default_requires(self) -> &'static [&'static str] {
        match self {
            // setuptools 81 and later lack `pkg_resources`, which many setup.py files still import.
            Self::SetupPy => &["setuptools<81", "wheel", "ninja"],
            Self::Pyproject => &["build", "setuptools<81", "wheel", "cmake", "ninja"],
            Self::Cmake => &["cmake", "ninja"],
            Self::Bazel => &[],
        }
    }

    /// Who reads the archs, where the recipe does not say.
    pub fn default_consumers(self) -> &'static [Consumer] {
        match self {
            Self::SetupPy => &[Consumer::Torch],
            Self::Pyproject => &[Consumer::Torch, Consumer::Cmake],
            Self::Cmake => &[Consumer::Cmake],
            Self::Bazel => &[Consumer::Bazel],
        }
    }
}

/// Who reads the archs, and by which names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ArchNames {
    /// Consumers whose names are known.
    #[serde(serialize_with = "names")]
    pub consumers: Vec<Consumer>,
    /// Environment variables of the project's own.
    pub env: BTreeMap<String, Words>,
    /// `CMake` variables of the project's own.
    pub define: BTreeMap<String, Words>,
}

impl ArchNames {
    /// Whether `consumer` reads the archs.
    pub fn has(&self, consumer: Consumer) -> bool {
        self.consumers.contains(&consumer)
    }
}

fn names<S: Serializer>(consumers: &[Consumer], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(consumers.iter().filter_map(Consumer::to_possible_value).map(|v| v.get_name().to_owned()))
}

/// How a variable of a project's own is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Words {
    /// `8.6;9.0+PTX`
    Torch,
    /// `86-real;90-virtual`
    Cmake,
    /// `sm_86,compute_90`
    Bazel,
    /// `-gencode=…`
    Nvcc,
    /// `8.6;9.0`
    Dotted,
    /// `86;90`
    Joined,
}

impl Words {
    /// Every spelling with its name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("torch", Self::Torch),
        ("cmake", Self::Cmake),
        ("bazel", Self::Bazel),
        ("nvcc", Self::Nvcc),
        ("dotted", Self::Dotted),
        ("joined", Self::Joined),
    ];
}

/// What `CMake` is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cmake {
    /// `-D` definitions.
    pub defines: BTreeMap<String, String>,
    /// Configure preset.
    pub preset: Option<String>,
    /// Targets to build; none means the default target.
    pub targets: Vec<String>,
    /// Components to install; none means all.
    pub components: Vec<String>,
}

/// What Bazel is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Bazel {
    /// Target patterns.
    pub targets: Vec<String>,
    /// Further flags of `build`.
    pub flags: Vec<String>,
    /// Flags before `build`.
    pub startup_flags: Vec<String>,
    /// Folder that actions are cached in; not part of the key.
    #[serde(skip)]
    pub disk_cache: Option<String>,
    /// Address of a remote cache; not part of the key.
    #[serde(skip)]
    pub remote_cache: Option<String>,
}

/// How far a recipe was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// How far.
    pub how: HowFar,
    /// Day, `2026-11-30`.
    pub on: String,
    /// torch release.
    pub torch: String,
    /// CUDA release.
    pub cuda: String,
    /// For which archs, and what else is worth knowing.
    pub note: String,
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}, torch {}, CUDA {}", self.how.name(), self.on, self.torch, self.cuda)?;
        if self.note.is_empty() { Ok(()) } else { write!(f, "; {}", self.note) }
    }
}

/// How far something was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum HowFar {
    /// Built, verified, and its kernels run on a GPU.
    #[serde(rename = "built and run")]
    Run,
    /// Built and verified, imports included.
    #[serde(rename = "built")]
    Built,
    /// Its plan was made, and nothing was compiled.
    #[serde(rename = "planned only")]
    Planned,
}

impl HowFar {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Run, Self::Built, Self::Planned];

    /// Its name in recipes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "built and run",
            Self::Built => "built",
            Self::Planned => "planned only",
        }
    }
}
