//! What preflight is told of this machine. Nothing here starts a process on a warm run.

use camino::{Utf8Path, Utf8PathBuf};

use super::Context;
use crate::compat;
use crate::domain::arch::Capability;
use crate::domain::toolchain::{HostCompiler, Toolchain};
use crate::plan::{Fate, Inherited};
use crate::preflight::{Disk, Here};
use crate::probe::{compiler, facts::Facts, gpu};
use crate::sys::{Env, env_vars as vars, machine};

/// The GPUs and the driver as the kernel shows them: the driver's own library may take seconds to answer.
pub(super) fn here(env: &Env) -> Option<Here> {
    let found = gpu::detect_with(env, &gpu::Roots::default(), Some(gpu::Method::Pci));
    let driver = found.driver.clone()?;
    let mut gpus: Vec<Capability> = found.usable().map(|(_, capability)| capability).collect();
    gpus.sort_unstable();
    gpus.dedup();
    let cuda = found.cuda_driver.or_else(|| compat::cuda_of_driver(&driver))?;
    Some(Here { gpus, driver: driver.to_string(), cuda })
}

/// Where a build writes, and how much of that disk is left.
pub(super) fn disks(context: &Context<'_>) -> Vec<Disk> {
    let temporary =
        context.env.get(vars::TMPDIR).map_or_else(|| "/tmp".into(), |folder| context.env.absolute(folder.into()));
    let places = [
        ("the build folder", context.cache_root.to_owned(), "choose another folder with `--cache-dir`", 1 << 30),
        ("temporary files", temporary, "choose another folder with TMPDIR", 256 << 20),
    ];
    let room = |(what, folder, mend, each): (_, Utf8PathBuf, _, _)| {
        let machine::Room { free, files } = machine::room(&folder)?;
        Some(Disk { what, folder, mend, free, files, each })
    };
    places.into_iter().filter_map(room).collect()
}

/// The other compilers, where the chosen one is refused.
pub(super) fn compilers(toolchain: &Toolchain, context: &Context<'_>) -> Vec<HostCompiler> {
    if toolchain.toolkit.host_bounds.accept(&toolchain.host) {
        return Vec::new();
    }
    compiler::all(context.env, &Facts::new(Some(context.cache_root)))
}

/// Folders of headers that compilers would look into first, and that hold those of another toolkit.
pub(super) fn foreign_headers(inherited: &[Inherited], toolchain: &Toolchain) -> Vec<String> {
    let paths = ["CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"];
    let home = toolchain.toolkit.home.canonicalize_utf8().ok();
    let mut warnings = Vec::new();
    for one in inherited.iter().filter(|one| one.fate == Fate::Kept && paths.contains(&one.name.as_str())) {
        let folders = one.value.split(':').map(Utf8Path::new);
        let foreign = |folder: &&Utf8Path| {
            let own =
                home.as_ref().is_some_and(|home| folder.canonicalize_utf8().is_ok_and(|real| real.starts_with(home)));
            folder.join("cuda_runtime.h").exists() && !own
        };
        warnings.extend(folders.filter(foreign).map(|folder| {
            format!("{} puts the headers of another toolkit in front: {folder}; unset it for this build", one.name)
        }));
    }
    warnings
}
