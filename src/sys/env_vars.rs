//! Every environment variable that cuwright reads, sets or clears, with what it means.
//!
//! A name is written here once and nowhere else as a string; `docs/environment.md` is checked against this file.

/// Folder for everything cuwright caches. Default: `$XDG_CACHE_HOME/cuwright`, else `~/.cache/cuwright`.
pub const CUWRIGHT_CACHE_DIR: &str = "CUWRIGHT_CACHE_DIR";
/// Search path of programs.
pub const PATH: &str = "PATH";
/// The user's home folder.
pub const HOME: &str = "HOME";
/// Base of per-user caches.
pub const XDG_CACHE_HOME: &str = "XDG_CACHE_HOME";
/// The active Python virtual environment.
pub const VIRTUAL_ENV: &str = "VIRTUAL_ENV";
/// CUDA toolkit root; torch and CMake read it.
pub const CUDA_HOME: &str = "CUDA_HOME";
/// CUDA toolkit root under its Windows and CMake name.
pub const CUDA_PATH: &str = "CUDA_PATH";
/// torch's arch list.
pub const TORCH_CUDA_ARCH_LIST: &str = "TORCH_CUDA_ARCH_LIST";
/// Where uv keeps its wheels.
pub const UV_CACHE_DIR: &str = "UV_CACHE_DIR";
/// Default package index of `uv`.
pub const UV_DEFAULT_INDEX: &str = "UV_DEFAULT_INDEX";
/// Default package index of `uv` under its older name.
pub const UV_INDEX_URL: &str = "UV_INDEX_URL";
/// pip's package index.
pub const PIP_INDEX_URL: &str = "PIP_INDEX_URL";
/// Set by continuous-integration services.
pub const CI: &str = "CI";
/// Turns colour off.
pub const NO_COLOR: &str = "NO_COLOR";
/// Parallel jobs of a torch extension build.
pub const MAX_JOBS: &str = "MAX_JOBS";
/// Which GPUs a CUDA program may use; detection respects it.
pub const CUDA_VISIBLE_DEVICES: &str = "CUDA_VISIBLE_DEVICES";
/// How CUDA numbers GPUs: `FASTEST_FIRST` (default) or `PCI_BUS_ID`.
pub const CUDA_DEVICE_ORDER: &str = "CUDA_DEVICE_ORDER";
