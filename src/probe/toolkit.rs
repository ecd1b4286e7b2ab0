//! Finds CUDA toolkits and asks their nvcc what it is.
//!
//! Order: `CUDA_HOME`, `CUDA_PATH`, every `nvcc` on `PATH`, `CONDA_PREFIX`, `/usr/local/cuda*`, `/opt/cuda`, then wheels
//! in the given site folders. What looks like a toolkit and is none is returned with the reason. Which of them fits is
//! not decided here.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::facts::{self, Facts};
use crate::domain::command::CommandSpec;
use crate::domain::toolchain::{HostBounds, Toolkit};
use crate::domain::version::CudaVersion;
use crate::sys::{Env, env_vars as vars, process};

const PATIENCE: Duration = Duration::from_secs(30);

/// A place where a toolkit may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Root that would be exported as `CUDA_HOME`.
    pub home: Utf8PathBuf,
    /// How it was found.
    pub origin: String,
}

/// A toolkit, and whether it can be exported as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The toolkit.
    pub toolkit: Toolkit,
    /// Whether its libraries lie where nothing links them, as in a wheel's folder: it needs a shape first.
    pub unshaped: bool,
}

/// A candidate that is no usable toolkit, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The place.
    pub candidate: Candidate,
    /// Why it is out, as half a sentence.
    pub reason: String,
}

/// Every place to look at, in order, each once. None of them has been looked into yet.
pub fn candidates(env: &Env, site_dirs: &[Utf8PathBuf]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |home: Utf8PathBuf, origin: &str| {
        let same = |known: &Candidate| {
            known.home == home || known.home.canonicalize_utf8().ok() == home.canonicalize_utf8().ok()
        };
        if !found.iter().any(|known| known.home == home || (home.exists() && same(known))) {
            found.push(Candidate { home, origin: origin.to_owned() });
        }
    };
    for variable in [vars::CUDA_HOME, vars::CUDA_PATH] {
        if let Some(value) = env.get(variable) {
            add(env.absolute(Utf8Path::new(value)), variable);
        }
    }
    for program in env.find_programs("nvcc") {
        if let Some(home) = home_of(&program) {
            add(home, "nvcc on PATH");
        }
    }
    if let Some(prefix) =
        env.get(vars::CONDA_PREFIX).map(Utf8PathBuf::from).filter(|prefix| prefix.join("bin/nvcc").exists())
    {
        add(prefix, vars::CONDA_PREFIX);
    }
    for home in installed("/usr/local", "cuda").into_iter().chain(installed("/opt", "cuda")) {
        let origin = home.to_string();
        add(home, &origin);
    }
    for folder in site_dirs {
        for home in
            installed(folder.join("nvidia").as_str(), "cu").into_iter().filter(|home| home.join("bin/nvcc").exists())
        {
            add(home, &format!("wheels in {folder}"));
        }
    }
    found
}

/// Looks into one candidate.
pub fn describe(candidate: &Candidate, env: &Env, facts: &Facts) -> Result<Found, Rejected> {
    let home = &candidate.home;
    let refuse = |reason: String| Rejected { candidate: candidate.clone(), reason };
    if home.as_str().contains(':') && !home.is_dir() {
        return Err(refuse("is a list of folders; it must name one".to_owned()));
    }
    if !home.is_dir() {
        return Err(refuse("is no folder".to_owned()));
    }
    let nvcc = home.join("bin/nvcc");
    if !nvcc.exists() {
        let what = if runtime(home).is_empty() { "holds no bin/nvcc" } else { "holds the CUDA runtime but no nvcc" };
        return Err(refuse(what.to_owned()));
    }
    let include = headers(home).ok_or_else(|| refuse("holds nvcc but no cuda_runtime.h".to_owned()))?;
    let host_config = fs::read_to_string(include.join("crt/host_config.h")).unwrap_or_default();
    let runtime = runtime(home);
    if runtime.is_empty() {
        return Err(refuse("holds nvcc but no CUDA runtime (libcudart)".to_owned()));
    }
    let answer = facts.remember("nvcc", &nvcc, &[], || ask(&nvcc, env)).map_err(refuse)?;
    let toolkit = Toolkit {
        home: home.clone(),
        nvcc: answer.version,
        gpu_codes: answer.gpu_codes,
        gpu_archs: answer.gpu_archs,
        host_bounds: host_bounds(&host_config),
        origin: candidate.origin.clone(),
    };
    Ok(Found { toolkit, unshaped: !runtime.iter().any(|name| name == "libcudart.so") })
}

/// What nvcc says about itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Answer {
    version: CudaVersion,
    gpu_codes: Vec<String>,
    gpu_archs: Vec<String>,
}

fn ask(nvcc: &Utf8Path, env: &Env) -> Result<Answer, String> {
    let mut variables = env.variables().clone();
    variables.retain(|name, _| name != vars::NVCC_PREPEND_FLAGS && name != vars::NVCC_APPEND_FLAGS);
    let run = |argument: &str| {
        let spec = CommandSpec::new(nvcc.as_str(), "/").args([argument]).env(variables.clone());
        let said = process::capture(&spec, PATIENCE).map_err(|error| format!("holds an nvcc that {error}"))?;
        if said.status.success() {
            return Ok(said.stdout);
        }
        Err(format!("holds an nvcc that fails at {argument}: {}", said.tail(1)))
    };
    let about = run("--version")?;
    let version = parse_version(&about).ok_or_else(|| "holds an nvcc that tells no version".to_owned())?;
    // nvcc before 11.1 has no lists; its archs are then unknown, not absent.
    let list = |argument: &str, prefix: &str| parse_list(&run(argument).unwrap_or_default(), prefix);
    Ok(Answer { version, gpu_codes: list("--list-gpu-code", "sm_"), gpu_archs: list("--list-gpu-arch", "compute_") })
}

/// `Cuda compilation tools, release 13.0, V13.0.88`.
fn parse_version(text: &str) -> Option<CudaVersion> {
    let (_, rest) = text.split_once("release ")?;
    let full = rest.split_once(", V").map(|(_, full)| full.split_whitespace().next().unwrap_or_default());
    let release = rest.split([',', '\n']).next().unwrap_or_default();
    full.and_then(|full| full.parse().ok()).or_else(|| release.parse().ok())
}

fn parse_list(text: &str, prefix: &str) -> Vec<String> {
    text.split_whitespace().filter(|word| word.starts_with(prefix)).map(str::to_owned).collect()
}

/// `#if __GNUC__ > 15` and `(__clang_major__ >= 21)`, or `> 20`, whichever the header has.
fn host_bounds(header: &str) -> HostBounds {
    let after = |pattern: &str| {
        let (_, rest) = header.split_once(pattern)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..digits].parse::<u32>().ok()
    };
    let above = || after("__clang_major__ > ").map(|newest| newest + 1);
    HostBounds { gcc_max: after("#if __GNUC__ > "), clang_below: after("__clang_major__ >= ").or_else(above) }
}

/// The folder with `cuda_runtime.h`: conda keeps it under `targets/`.
fn headers(home: &Utf8Path) -> Option<Utf8PathBuf> {
    let targets = installed(home.join("targets").as_str(), "");
    let folders = std::iter::once(home.join("include")).chain(targets.into_iter().map(|target| target.join("include")));
    folders.into_iter().find(|folder| folder.join("cuda_runtime.h").exists())
}

/// The names of the CUDA runtime's library files: beside nvcc, under `targets/`, or where Debian keeps libraries.
fn runtime(home: &Utf8Path) -> Vec<String> {
    let targets = installed(home.join("targets").as_str(), "").into_iter().map(|target| target.join("lib"));
    let folders = [home.join("lib64"), home.join("lib")].into_iter().chain(targets);
    let folders = folders.chain(installed(home.join("lib").as_str(), std::env::consts::ARCH));
    let entries = folders.filter_map(|folder| folder.read_dir_utf8().ok()).flatten().flatten();
    entries.map(|entry| entry.file_name().to_owned()).filter(|name| name.starts_with("libcudart.so")).collect()
}

/// The toolkit that an nvcc belongs to, links resolved where that helps; a cache's link named nvcc belongs to none.
fn home_of(nvcc: &Utf8Path) -> Option<Utf8PathBuf> {
    let real = nvcc.canonicalize_utf8().ok()?;
    let home =
        |program: &Utf8Path| program.parent().filter(|bin| bin.ends_with("bin"))?.parent().map(Utf8Path::to_owned);
    if real.file_name() != Some("nvcc") {
        return None;
    }
    // A shaped home is made of links into a wheel, so the path as it is goes first.
    let whole = |home: &Utf8PathBuf| headers(home).is_some();
    home(nvcc).filter(whole).or_else(|| home(&real).filter(whole)).or_else(|| home(nvcc))
}

/// Folders in `parent` whose name starts with `prefix`: the unversioned one first, then the newest.
fn installed(parent: &str, prefix: &str) -> Vec<Utf8PathBuf> {
    let Ok(entries) = Utf8Path::new(parent).read_dir_utf8() else { return Vec::new() };
    let mut found: Vec<Utf8PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().starts_with(prefix) && entry.path().is_dir())
        .map(|entry| entry.path().to_owned())
        .collect();
    let release = |path: &Utf8PathBuf| {
        let digits = path.file_name().unwrap_or_default().trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
        digits.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<u32>>()
    };
    found.sort_by_key(|path| (path.file_name() != Some(prefix), std::cmp::Reverse(release(path)), path.clone()));
    found
}

/// Identity of a toolkit's nvcc for keys of what is made from it.
pub fn stamp(home: &Utf8Path) -> Option<String> {
    facts::stamp(&home.join("bin/nvcc"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn fake(home: &Utf8Path, release: &str) {
        fs::create_dir_all(home.join("bin")).unwrap();
        fs::create_dir_all(home.join("include/crt")).unwrap();
        fs::create_dir_all(home.join("lib")).unwrap();
        fs::write(home.join("lib/libcudart.so.1"), "").unwrap();
        fs::write(home.join("include/cuda_runtime.h"), "").unwrap();
        fs::write(home.join("include/crt/host_config.h"), "#if __GNUC__ > 15\n#error\n#endif\n").unwrap();
        let script = format!(
            "#!/bin/sh\ncase $1 in --version) echo 'release {release}, V{release}.88';; --list-gpu-code) echo sm_90 compute_90;; *) exit 1;; esac\n"
        );
        let nvcc = home.join("bin/nvcc");
        fs::write(&nvcc, script).unwrap();
        fs::set_permissions(&nvcc, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn nvcc_and_its_header_are_understood() {
        let said = "Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/compiler.36424714_0\n";
        assert_eq!(parse_version(said).unwrap().to_string(), "13.0.88");
        assert_eq!(parse_version("release 9.2, Vx").unwrap().to_string(), "9.2");
        assert_eq!(parse_version("nothing"), None);
        let new =
            "((__clang_major__ < 16) || (__clang_major__ > 20))\n#if __GNUC__ > 15\n#if (__clang_major__ >= 21) ||";
        assert_eq!(host_bounds(new), HostBounds { gcc_max: Some(15), clang_below: Some(21) });
        assert_eq!(host_bounds("__clang_major__ > 17").clang_below, Some(18));
        assert_eq!(host_bounds(""), HostBounds::default());
    }

    #[test]
    fn candidates_come_in_order_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().unwrap()).unwrap();
        let (a, b) = (root.join("a"), root.join("site/nvidia/cu13"));
        fake(&a, "12.8");
        fake(&b, "13.0");
        let env = Env::of("/", [("CUDA_HOME", a.as_str()), ("PATH", a.join("bin").as_str())]);
        let found = candidates(&env, &[root.join("site")]);
        let mine: Vec<_> = found.iter().filter(|c| c.home.starts_with(&root)).collect();
        assert_eq!(mine.iter().map(|c| c.origin.as_str()).collect::<Vec<_>>()[0], "CUDA_HOME");
        assert_eq!(mine.len(), 2);
        let found = describe(mine[1], &env, &Facts::new(None)).unwrap();
        assert!(found.unshaped);
        let kit = found.toolkit;
        fs::write(b.join("lib/libcudart.so"), "").unwrap();
        assert!(!describe(mine[1], &env, &Facts::new(None)).unwrap().unshaped);
        assert_eq!((kit.nvcc.to_string().as_str(), kit.host_bounds.gcc_max), ("13.0.88", Some(15)));
        assert_eq!((kit.gpu_codes, kit.gpu_archs), (vec!["sm_90".to_owned()], vec![]));
    }

    #[test]
    fn what_is_no_toolkit_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
        let env = Env::of("/", []);
        let reason = |home: Utf8PathBuf| {
            let candidate = Candidate { home, origin: "CUDA_HOME".into() };
            describe(&candidate, &env, &Facts::new(None)).map_err(|rejected| rejected.reason).unwrap_err()
        };
        assert_eq!(reason("/usr/local/cuda:/opt/cuda".into()), "is a list of folders; it must name one");
        assert_eq!(reason(root.join("none")), "is no folder");
        assert_eq!(reason(root.clone()), "holds no bin/nvcc");
        fs::create_dir_all(root.join("lib64")).unwrap();
        fs::write(root.join("lib64/libcudart.so.13"), "").unwrap();
        assert_eq!(reason(root.clone()), "holds the CUDA runtime but no nvcc");
        fake(&root.join("kit"), "13.0");
        fs::write(root.join("kit/bin/nvcc"), "#!/bin/sh\necho no device >&2\nexit 1\n").unwrap();
        assert_eq!(reason(root.join("kit")), "holds an nvcc that fails at --version: no device");
    }
}
