//! Every environment variable that cuwright reads, sets or clears, with what it means.
//!
//! A name is written here once and nowhere else as a string; `docs/environment.md` is checked against this file.

/// Folder for everything cuwright caches. Default: `$XDG_CACHE_HOME/cuwright`, else `~/.cache/cuwright`.
pub const CUWRIGHT_CACHE_DIR: &str = "CUWRIGHT_CACHE_DIR";
/// A file with further GPUs and archs. Default: `$XDG_CONFIG_HOME/cuwright/gpus.toml`, if there is one.
pub const CUWRIGHT_TABLES: &str = "CUWRIGHT_TABLES";
/// Seconds that `cache gc` and `cache remove` wait for builds that use the cache. Default: 60.
pub const CUWRIGHT_LOCK_TIMEOUT: &str = "CUWRIGHT_LOCK_TIMEOUT";
/// Folder in which Bazel keeps the results of its actions between builds.
pub const CUWRIGHT_BAZEL_DISK_CACHE: &str = "CUWRIGHT_BAZEL_DISK_CACHE";
/// Address of a remote cache of Bazel's.
pub const CUWRIGHT_BAZEL_REMOTE_CACHE: &str = "CUWRIGHT_BAZEL_REMOTE_CACHE";
/// Folder that stands for `/` where toolkits, compilers and control groups of the system are looked for.
pub const CUWRIGHT_SYSTEM_ROOT: &str = "CUWRIGHT_SYSTEM_ROOT";
/// Folder of the launcher whose coordinator a compiler call asks for room; set in builds by cuwright.
pub const CUWRIGHT_LAUNCHER: &str = "CUWRIGHT_LAUNCHER";
/// Set below a compiler call that has room, so that the compilers it starts ask for none.
pub const CUWRIGHT_SLOT: &str = "CUWRIGHT_SLOT";
/// Search path of programs.
pub const PATH: &str = "PATH";
/// The user's home folder.
pub const HOME: &str = "HOME";
/// Base of per-user caches.
pub const XDG_CACHE_HOME: &str = "XDG_CACHE_HOME";
/// The active Python virtual environment.
pub const VIRTUAL_ENV: &str = "VIRTUAL_ENV";
/// CUDA toolkit root; torch and `CMake` read it.
pub const CUDA_HOME: &str = "CUDA_HOME";
/// CUDA toolkit root under its Windows and `CMake` name.
pub const CUDA_PATH: &str = "CUDA_PATH";
/// The nvcc that `CMake` uses.
pub const CUDACXX: &str = "CUDACXX";
/// The host compiler that `CMake` gives nvcc.
pub const CUDAHOSTCXX: &str = "CUDAHOSTCXX";
/// The host compiler that newer nvcc use where no flag names one.
pub const NVCC_CCBIN: &str = "NVCC_CCBIN";
/// CUDA toolkit root as some modules call it.
pub const CUDA_ROOT: &str = "CUDA_ROOT";
/// CUDA toolkit root as Cray's modules call it.
pub const CUDATOOLKIT_HOME: &str = "CUDATOOLKIT_HOME";
/// CUDA toolkit root as `EasyBuild` modules call it.
pub const EBROOTCUDA: &str = "EBROOTCUDA";
/// Root of an installed NVIDIA HPC SDK; its toolkits are in `cuda/`.
pub const NVHPC_ROOT: &str = "NVHPC_ROOT";
/// CUDA toolkit that the HPC SDK's compilers use.
pub const NVHPC_CUDA_HOME: &str = "NVHPC_CUDA_HOME";
/// Where torch builds extensions at run time. Default: `~/.cache/torch_extensions`.
pub const TORCH_EXTENSIONS_DIR: &str = "TORCH_EXTENSIONS_DIR";
/// The ptxas that triton uses in place of its own.
pub const TRITON_PTXAS_PATH: &str = "TRITON_PTXAS_PATH";
/// Folder for temporary files; compilers put large ones there.
pub const TMPDIR: &str = "TMPDIR";
/// torch's arch list.
pub const TORCH_CUDA_ARCH_LIST: &str = "TORCH_CUDA_ARCH_LIST";
/// Where uv keeps its wheels.
pub const UV_CACHE_DIR: &str = "UV_CACHE_DIR";
/// Default package index of `uv`.
pub const UV_DEFAULT_INDEX: &str = "UV_DEFAULT_INDEX";
/// Default package index of `uv` under its older name.
pub const UV_INDEX_URL: &str = "UV_INDEX_URL";
/// Further package indexes of `uv`.
pub const UV_INDEX: &str = "UV_INDEX";
/// Further package indexes of `uv` under their older name.
pub const UV_EXTRA_INDEX_URL: &str = "UV_EXTRA_INDEX_URL";
/// Folders or pages of packages that `uv` looks into besides the index.
pub const UV_FIND_LINKS: &str = "UV_FIND_LINKS";
/// Keeps `uv` away from every index.
pub const UV_NO_INDEX: &str = "UV_NO_INDEX";
/// Keeps `uv` away from the network.
pub const UV_OFFLINE: &str = "UV_OFFLINE";
/// Whether uv trusts the certificates of the system's store; set unless the user set it.
pub const UV_SYSTEM_CERTS: &str = "UV_SYSTEM_CERTS";
/// The same in older uv.
pub const UV_NATIVE_TLS: &str = "UV_NATIVE_TLS";
/// A configuration file that `uv` reads instead of the usual ones.
pub const UV_CONFIG_FILE: &str = "UV_CONFIG_FILE";
/// pip's package index.
pub const PIP_INDEX_URL: &str = "PIP_INDEX_URL";
/// pip's further package indexes.
pub const PIP_EXTRA_INDEX_URL: &str = "PIP_EXTRA_INDEX_URL";
/// Folders or pages of packages that pip looks into besides the index.
pub const PIP_FIND_LINKS: &str = "PIP_FIND_LINKS";
/// Keeps pip away from every index.
pub const PIP_NO_INDEX: &str = "PIP_NO_INDEX";
/// Certificates that pip trusts.
pub const PIP_CERT: &str = "PIP_CERT";
/// Certificates that OpenSSL, uv and cuwright trust.
pub const SSL_CERT_FILE: &str = "SSL_CERT_FILE";
/// C compiler.
pub const CC: &str = "CC";
/// C++ compiler.
pub const CXX: &str = "CXX";
/// The active conda environment.
pub const CONDA_PREFIX: &str = "CONDA_PREFIX";
/// Folders that Python imports from before its own.
pub const PYTHONPATH: &str = "PYTHONPATH";
/// Another home for Python's standard library.
pub const PYTHONHOME: &str = "PYTHONHOME";
/// Keeps Python away from the user's own packages.
pub const PYTHONNOUSERSITE: &str = "PYTHONNOUSERSITE";
/// Base folder of the user's own Python packages.
pub const PYTHONUSERBASE: &str = "PYTHONUSERBASE";
/// Version that pyenv's shims run.
pub const PYENV_VERSION: &str = "PYENV_VERSION";
/// Home of pyenv.
pub const PYENV_ROOT: &str = "PYENV_ROOT";
/// Where uv keeps its Pythons.
pub const UV_PYTHON_INSTALL_DIR: &str = "UV_PYTHON_INSTALL_DIR";
/// Flags that nvcc puts before its own.
pub const NVCC_PREPEND_FLAGS: &str = "NVCC_PREPEND_FLAGS";
/// Flags that nvcc puts after its own.
pub const NVCC_APPEND_FLAGS: &str = "NVCC_APPEND_FLAGS";
/// Base of per-user configuration.
pub const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
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
/// Folders that the loader searches for libraries before its own.
pub const LD_LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
/// Libraries that the loader takes into every program first.
pub const LD_PRELOAD: &str = "LD_PRELOAD";
/// Folder in which a build's processes write down what they read.
pub const CUWRIGHT_READS: &str = "CUWRIGHT_READS";
/// Folders, one a line, of which nothing is written down there.
pub const CUWRIGHT_READS_SKIP: &str = "CUWRIGHT_READS_SKIP";
/// Language and character set of a program, above all others.
pub const LC_ALL: &str = "LC_ALL";
/// Set by GitLab CI.
pub const GITLAB_CI: &str = "GITLAB_CI";
/// Set by GitHub Actions.
pub const GITHUB_ACTIONS: &str = "GITHUB_ACTIONS";
/// What the terminal can do.
pub const TERM: &str = "TERM";
/// Options of make; also where a jobserver is announced.
pub const MAKEFLAGS: &str = "MAKEFLAGS";
/// The same for cargo, which looks here first.
pub const CARGO_MAKEFLAGS: &str = "CARGO_MAKEFLAGS";
/// The nvcc that torch's ninja files run.
pub const PYTORCH_NVCC: &str = "PYTORCH_NVCC";
