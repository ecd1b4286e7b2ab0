//! Where toolkits may be on a machine, each place once, with how it was found. Nothing is judged here.
//!
//! Order: the variables that name one, every `nvcc` on `PATH`, module variables, the conda prefix, the usual folders of
//! the system, wheels in site folders. The order decides nothing but how a place that is found twice is called.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::{Candidate, headers, runtime};
use crate::domain::command::CommandSpec;
use crate::probe::facts::Facts;
use crate::sys::{Env, env_vars as vars, process};

const PATIENCE: Duration = Duration::from_secs(30);
/// Variables that hold the root of a toolkit. The first two are what torch and `CMake` read.
const NAMED: [&str; 6] = [
    vars::CUDA_HOME,
    vars::CUDA_PATH,
    vars::CUDA_ROOT,
    vars::CUDATOOLKIT_HOME,
    vars::EBROOTCUDA,
    vars::NVHPC_CUDA_HOME,
];

/// Every place to look at, in order, each once. None of them has been looked into yet.
pub fn candidates(env: &Env, site_dirs: &[Utf8PathBuf], facts: &Facts) -> Vec<Candidate> {
    let mut found = Places::default();
    for variable in NAMED {
        if let Some(value) = env.get(variable) {
            found.named(value, variable, env);
        }
    }
    if let Some(program) = env.get(vars::CUDACXX).and_then(|value| env.find_program(value)) {
        found.add(home_of(&program, env, facts), vars::CUDACXX, true);
    }
    for program in env.find_programs("nvcc") {
        found.add(home_of(&program, env, facts), "nvcc on PATH", false);
    }
    if let Some(root) = env.get(vars::NVHPC_ROOT) {
        found.all(releases(&env.absolute(Utf8Path::new(root)).join("cuda")), vars::NVHPC_ROOT);
    }
    if let Some(prefix) = env.get(vars::CONDA_PREFIX).map(|prefix| env.absolute(Utf8Path::new(prefix))) {
        let cuda = prefix.join("bin/nvcc").exists() || !runtime(&prefix).is_empty();
        found.add(Some(prefix).filter(|_| cuda), vars::CONDA_PREFIX, false);
    }
    found.system(env);
    for folder in site_dirs {
        let origin = format!("wheels in {folder}");
        let of_wheels = ["cu", "cuda_nvcc", "cuda_runtime"];
        let homes = of_wheels.iter().flat_map(|prefix| installed(&folder.join("nvidia"), prefix));
        let telling = |home: &Utf8PathBuf| home.join("bin/nvcc").exists() || !runtime(home).is_empty();
        found.all(homes.filter(telling).collect(), &origin);
    }
    found.0
}

#[derive(Default)]
struct Places(Vec<Candidate>);

impl Places {
    fn add(&mut self, home: Option<Utf8PathBuf>, origin: &str, named: bool) {
        let Some(home) = home else { return };
        let same = |known: &Candidate| {
            known.home == home
                || (home.exists() && known.home.canonicalize_utf8().ok() == home.canonicalize_utf8().ok())
        };
        if !self.0.iter().any(same) {
            self.0.push(Candidate { home, origin: origin.to_owned(), named });
        }
    }

    fn all(&mut self, homes: Vec<Utf8PathBuf>, origin: &str) {
        for home in homes {
            self.add(Some(home), origin, false);
        }
    }

    /// The value of a variable, and what was meant where it is a list, a `bin` folder or a program.
    fn named(&mut self, value: &str, variable: &str, env: &Env) {
        let home = env.absolute(Utf8Path::new(value));
        self.add(Some(home.clone()), variable, true);
        let meant = format!("meant by {variable}");
        if value.contains(':') && !home.exists() {
            for part in value.split(':').filter(|part| !part.is_empty()) {
                let part = env.absolute(Utf8Path::new(part));
                self.add(Some(part).filter(|part| part.join("bin/nvcc").exists()), &meant, false);
            }
        }
        let bin = if home.is_file() { home.parent() } else { Some(home.as_path()) };
        let parent = bin.filter(|bin| bin.ends_with("bin") && bin.join("nvcc").exists()).and_then(Utf8Path::parent);
        self.add(parent.map(Utf8Path::to_owned), &meant, false);
    }

    fn system(&mut self, env: &Env) {
        let usual = ["/usr/local", "/opt"].map(|folder| installed(&env.system(folder), "cuda"));
        for home in usual.into_iter().flatten() {
            let target = home.canonicalize_utf8().ok().filter(|target| *target != home);
            let linked = home.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
            let origin = match target.filter(|_| linked) {
                Some(target) => format!("a link to {target}"),
                None => "a usual place".to_owned(),
            };
            self.add(Some(home), &origin, false);
        }
        for machine in installed(&env.system("/opt/nvidia/hpc_sdk"), "") {
            for release in releases(&machine) {
                self.all(releases(&release.join("cuda")), "NVIDIA HPC SDK");
            }
        }
        for folder in ["/usr/lib/nvidia-cuda-toolkit", "/usr/lib/cuda"] {
            self.add(debian(&env.system(folder)), "package of the distribution", false);
        }
    }
}

/// The toolkit that an nvcc belongs to: by its path, else by where its links lead, else by what it says itself, since
/// distributions and modules put scripts in its place. A cache's link named nvcc belongs to none.
fn home_of(nvcc: &Utf8Path, env: &Env, facts: &Facts) -> Option<Utf8PathBuf> {
    let real = nvcc.canonicalize_utf8().ok()?;
    if real.file_name() != Some("nvcc") {
        return None;
    }
    let home =
        |program: &Utf8Path| program.parent().filter(|bin| bin.ends_with("bin"))?.parent().map(Utf8Path::to_owned);
    // A shaped home is made of links into a wheel, so the path as it is goes first.
    let whole = |home: &Utf8PathBuf| headers(home).is_some();
    let by_path = home(nvcc).filter(whole).or_else(|| home(&real).filter(whole));
    let distribution = || home(&real).and_then(|home| debian(&home));
    let itself = || {
        let told = facts.remember("nvcc-home", nvcc, &[], || told_home(nvcc, env).ok_or(())).ok()?;
        debian(&told).or(Some(told))
    };
    by_path.or_else(distribution).or_else(itself).or_else(|| home(nvcc))
}

/// The line `#$ TOP=/usr/local/cuda/bin/..` of a dry run.
fn told_home(nvcc: &Utf8Path, env: &Env) -> Option<Utf8PathBuf> {
    let spec = CommandSpec::new(nvcc.as_str(), "/")
        .args(["--dryrun", "-E", "-x", "cu", "/dev/null"])
        .env(super::ask::variables(env));
    let said = process::capture(&spec, PATIENCE).ok()?;
    let top = said.stderr.lines().chain(said.stdout.lines()).find_map(|line| line.trim().strip_prefix("#$ TOP="))?;
    Utf8Path::new(top).canonicalize_utf8().ok()
}

/// Debian splits a toolkit: nvcc in `/usr/lib/nvidia-cuda-toolkit`, headers and libraries where everything has them.
/// Its root is then `/usr`, which torch knows as such.
pub(super) fn debian(folder: &Utf8Path) -> Option<Utf8PathBuf> {
    let name = folder.file_name().filter(|name| matches!(*name, "nvidia-cuda-toolkit" | "cuda"));
    let lib = name.and(folder.parent()).filter(|lib| lib.ends_with("lib"))?;
    let root = lib.parent()?;
    (root.join("include/cuda_runtime.h").exists() && root.join("bin/nvcc").exists()).then(|| root.to_owned())
}

/// Folders in `parent` that are called by a number, the newest first.
fn releases(parent: &Utf8Path) -> Vec<Utf8PathBuf> {
    let numbered =
        |path: &Utf8PathBuf| path.file_name().is_some_and(|name| name.starts_with(|c: char| c.is_ascii_digit()));
    installed(parent, "").into_iter().filter(numbered).collect()
}

/// Folders in `parent` whose name is `prefix`, or starts with it and goes on with a number: the unversioned one first, then the newest.
pub(super) fn installed(parent: &Utf8Path, prefix: &str) -> Vec<Utf8PathBuf> {
    let Ok(entries) = parent.read_dir_utf8() else { return Vec::new() };
    let numbered = |name: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| prefix.is_empty() || rest.chars().all(|c| !c.is_alphabetic()))
    };
    let mut found: Vec<Utf8PathBuf> = entries
        .flatten()
        .filter(|entry| numbered(entry.file_name()) && entry.path().is_dir())
        .map(|entry| entry.path().to_owned())
        .collect();
    let release = |path: &Utf8PathBuf| {
        let digits = path.file_name().unwrap_or_default().trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
        digits.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<u32>>()
    };
    found.sort_by_key(|path| (path.file_name() != Some(prefix), std::cmp::Reverse(release(path)), path.clone()));
    found
}

/// What a folder without nvcc is, where its files tell: a conda environment, wheels of a runtime.
pub(super) fn without_nvcc(home: &Utf8Path) -> String {
    let libraries = runtime(home);
    if libraries.is_empty() {
        return "holds no bin/nvcc".to_owned();
    }
    let numbers = |name: &String| name.strip_prefix("libcudart.so.").map(str::to_owned);
    let version = libraries.iter().filter_map(numbers).max_by_key(String::len);
    let version = version.map(|version| format!("{version} ")).unwrap_or_default();
    let packages = fs::read_dir(home.join("conda-meta")).map(|entries| {
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.into_iter().find(|name| name.starts_with("cudatoolkit-") || name.starts_with("cuda-cudart-"))
    });
    match packages {
        Ok(Some(package)) => {
            let package = package.trim_end_matches(".json");
            format!("is a conda environment with the CUDA runtime ({package}), which brings no nvcc")
        }
        _ if home.parent().is_some_and(|parent| parent.ends_with("nvidia")) => {
            format!("is the CUDA {version}runtime of wheels, which brings no nvcc")
        }
        _ => format!("holds the CUDA {version}runtime but no nvcc"),
    }
}
