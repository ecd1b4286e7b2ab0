//! Build tools and assemblers of this machine with their versions. One that does not answer is a value, not an error.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::facts::Facts;
use super::toolkit::parse_version;
use crate::domain::command::CommandSpec;
use crate::domain::version::CudaVersion;
use crate::sys::{Env, env_vars as vars, process};

const PATIENCE: Duration = Duration::from_secs(10);
/// Programs that builds or caches of builds are made with.
const NAMES: [&str; 7] = ["cmake", "ninja", "make", "bazel", "sccache", "ccache", "uv"];

/// Why a tool that works has no version.
pub const MUTE: &str = "it tells no version";

/// A program and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub path: Utf8PathBuf,
    /// Its version, or why it told none.
    pub version: Result<String, String>,
}

/// The first of each tool on `PATH`.
pub fn all(env: &Env, facts: &Facts) -> Vec<Tool> {
    let found = NAMES.iter().filter_map(|name| Some((*name, env.find_program(name)?)));
    found.map(|(name, path)| Tool { name, version: version(name, &path, env, facts), path }).collect()
}

fn version(name: &str, path: &Utf8Path, env: &Env, facts: &Facts) -> Result<String, String> {
    facts.remember(name, path, &[], || {
        let said = said(path, "--version", env)?;
        number(&said).ok_or_else(|| MUTE.to_owned())
    })
}

fn said(path: &Utf8Path, argument: &str, env: &Env) -> Result<String, String> {
    let spec = CommandSpec::new(path.as_str(), "/").args([argument]).env(env.tool_variables());
    let said = process::capture(&spec, PATIENCE).map_err(|error| format!("it {error}"))?;
    if said.status.success() { Ok(said.stdout) } else { Err(said.tail(1)) }
}

/// The first word that begins like a version: `cmake version 4.4.5`, `1.13.2.git`, `sccache 0.16.0`.
fn number(text: &str) -> Option<String> {
    let is = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    text.split_whitespace().find(is).map(|word| word.trim_end_matches(',').to_owned())
}

/// An assembler of GPU code; several packages bring their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptxas {
    /// Where it is.
    pub path: Utf8PathBuf,
    /// Who uses it.
    pub user: String,
    /// Its CUDA version, or why it told none.
    pub version: Result<CudaVersion, String>,
}

/// Every ptxas: the one that triton is told to use, those in Pythons, those of toolkits.
pub fn ptxas(env: &Env, site_dirs: &[Utf8PathBuf], toolkits: &[Utf8PathBuf], facts: &Facts) -> Vec<Ptxas> {
    let mut places: Vec<(Utf8PathBuf, String)> = Vec::new();
    if let Some(path) = env.get(vars::TRITON_PTXAS_PATH) {
        places.push((env.absolute(Utf8Path::new(path)), format!("triton, by {}", vars::TRITON_PTXAS_PATH)));
    }
    for site in site_dirs {
        let of_triton = ["ptxas", "ptxas-blackwell"].map(|name| site.join("triton/backends/nvidia/bin").join(name));
        let older = ["triton/common/../third_party/cuda/bin/ptxas", "triton/third_party/cuda/bin/ptxas"];
        let triton = of_triton.into_iter().chain(older.map(|place| site.join(place)));
        places.extend(triton.map(|path| (path, "triton".to_owned())));
        places.push((site.join("nvidia/cuda_nvcc/bin/ptxas"), "wheels of CUDA 12".to_owned()));
    }
    places.extend(toolkits.iter().map(|home| (home.join("bin/ptxas"), "nvcc of that toolkit".to_owned())));
    let mut seen = std::collections::BTreeSet::new();
    places.retain(|(path, user)| {
        let named = user.contains(vars::TRITON_PTXAS_PATH);
        named || path.canonicalize_utf8().is_ok_and(|real| seen.insert(real))
    });
    let ask = |path: &Utf8Path| {
        let said = said(path, "--version", env)?;
        parse_version(&said).ok_or_else(|| "it tells no version".to_owned())
    };
    places
        .into_iter()
        .map(|(path, user)| Ptxas { version: facts.remember("ptxas", &path, &[], || ask(&path)), path, user })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_say() {
        for (said, version) in [
            ("cmake version 4.4.5\n\nCMake suite", "4.4.5"),
            ("1.13.2.git.kitware", "1.13.2.git.kitware"),
            ("sccache 0.16.0\n", "0.16.0"),
        ] {
            assert_eq!(number(said).as_deref(), Some(version));
        }
        assert_eq!(number("no number here"), None);
    }

    #[test]
    fn a_ptxas_that_is_named_and_absent_is_told() {
        let env = Env::of("/", [("TRITON_PTXAS_PATH", "/nonexistent/ptxas")]);
        let found = ptxas(&env, &["/none".into()], &[], &Facts::new(None));
        assert_eq!(found.len(), 1);
        assert!(found[0].version.is_err());
    }
}
