//! Toolchains from wheels: uv, a resolved and hashed set, an environment folder, a shaped `CUDA_HOME`.
//!
//! On disk, under the cache root:
//!
//! ```text
//! tools/uv-<version>/uv                     uv, where the machine has none
//! resolutions-v1/<digest of request>.lock   what a request resolved to, pinned by hash
//! resolutions-v1/<digest of request>.turn   held exclusively while that request is brought
//! toolchains-v1/<digest>/                   the environment; `cuwright-environment.json` is written last
//! toolchains-v1/<digest>/cuda/              its `CUDA_HOME`
//! toolchains-v1/<digest>/site/              where it adds to an environment that is not ours: the packages
//! toolchains-v1/<digest>.lock               held shared while used, exclusively while made or removed
//! ```
//!
//! Invariant: a folder without its manifest does not exist; nothing here prints; a warm call starts no process.

pub mod combinations;
pub mod environment;
mod faults;
pub mod index;
pub mod list;
mod resolve;
pub mod shape;
pub mod uv;

use std::time::Duration;

use camino::Utf8Path;

use crate::domain::exit::Exit;
use crate::domain::{index::Index, problem::Problem, toolchain::Python};
use crate::sys::{Env, lock::Lock};

use environment::Environment;

/// The folder of all environments below the cache root.
pub fn folder(cache_root: &Utf8Path) -> camino::Utf8PathBuf {
    cache_root.join(environment::BUCKET)
}

/// How complete the result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An environment with torch and a toolkit.
    Whole,
    /// A folder of packages that an environment with torch lacks.
    Overlay,
}

/// What to provision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// How complete the result is.
    pub kind: Kind,
    /// The Python to base the environment on.
    pub python: Python,
    /// Requirements, resolved together.
    pub requirements: Vec<String>,
    /// Whether the network is forbidden.
    pub offline: bool,
    /// Whether a missing environment may be made.
    pub install: bool,
}

/// What provisioning is doing, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// uv is missing and being fetched.
    FetchingUv {
        /// Version fetched.
        version: String,
    },
    /// The requirements are being resolved.
    Resolving {
        /// How many were asked for.
        requirements: usize,
    },
    /// Another unit or another process makes the same environment.
    Waiting,
    /// The environment is being made.
    Installing {
        /// Its digest.
        digest: String,
        /// How many packages it has.
        packages: usize,
    },
    /// A package's download began.
    Downloading {
        /// Package.
        name: String,
        /// Size as uv says it, such as `506.0MiB`.
        size: String,
    },
    /// A package's download ended.
    Downloaded {
        /// Package.
        name: String,
    },
    /// The environment is complete.
    Ready {
        /// Its digest.
        digest: String,
        /// Its size on disk, hard links counted as if alone.
        bytes: u64,
        /// How long making it took.
        took: Duration,
    },
}

/// Takes events as they happen.
pub type Watcher<'a> = &'a mut dyn FnMut(Event);

/// The environment for `request`: the one that is there, else a new one. It cannot be removed while the result lives.
pub fn ensure(request: &Request, root: &Utf8Path, env: &Env, watch: Watcher<'_>) -> Result<Environment, Problem> {
    let key = resolve::key(request);
    let stored = resolve::stored(root, &key);
    if let Some(ready) = stored.as_ref().and_then(|lock| environment::existing(root, lock, request)) {
        return Ok(ready);
    }
    if !request.install {
        return Err(not_installed(request));
    }
    // Units side by side often want the same: one brings it, the others wait here and find it.
    let turn = resolve::turn(root, &key);
    let _turn =
        Lock::exclusive(&turn, || watch(Event::Waiting)).map_err(|error| faults::disk(turn.as_str(), &error))?;
    let stored = resolve::stored(root, &key);
    if let Some(ready) = stored.as_ref().and_then(|lock| environment::existing(root, lock, request)) {
        return Ok(ready);
    }
    let uv = uv::obtain(&request.python, root, env, request.offline, watch)?;
    let tool = uv::Tool::new(uv, request, root, env);
    let lock = match stored {
        Some(lock) => lock,
        None => resolve::resolve(&tool, request, root, &key, watch)?,
    };
    environment::make(&tool, &lock, request, root, watch)
}

/// Code of "this would have to be installed first".
pub const NOT_INSTALLED: &str = "cuwright::provision::not_installed";

fn not_installed(request: &Request) -> Problem {
    let message = match request.kind {
        Kind::Whole => "the toolchain is not installed yet",
        Kind::Overlay => "what this environment lacks is not installed yet",
    };
    Problem::new(NOT_INSTALLED, Exit::Toolchain, message)
        .why(format!("Python {} with {}", request.python.version, request.requirements.join(", ")))
        .help("`cuwright build` or `cuwright toolchain install` installs it from wheels")
}

/// The package sources of this machine, for files that uv has no command to fetch.
pub fn index(request: &Request, root: &Utf8Path, env: &Env, watch: Watcher<'_>) -> Result<Index, Problem> {
    if let Some(named) = index::named(env) {
        return Ok(named);
    }
    let uv = uv::obtain(&request.python, root, env, request.offline, watch)?;
    index::ask(&uv::Tool::new(uv, request, root, env))
}
