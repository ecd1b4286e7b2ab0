//! Chooses the toolchain of a unit: what the environment holds where it fits, else one provisioned from wheels.
//!
//! Invariant: every choice and every rejected candidate is said in a note, and everything that can be missing on the
//! machine is checked before anything is downloaded. A warm call starts no process.

use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use pep440_rs::{Version, VersionSpecifiers};

use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::requirement::Requirement;
use crate::domain::toolchain::{HostCompiler, Python, Toolchain, Toolkit, Torch};
use crate::probe::{compiler, facts::Facts, packages, python, toolkit, torch};
use crate::provision::{self, Watcher, combinations, combinations::Wanted, shape};
use crate::sys::{Env, lock::Lock};

/// What a unit needs of its toolchain.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Value of `--python`: a path, an environment's folder, a program name or a version.
    pub python: Option<String>,
    /// Pythons that the recipe allows.
    pub python_range: VersionSpecifiers,
    /// torch releases allowed.
    pub torch: VersionSpecifiers,
    /// CUDA releases allowed.
    pub cuda: VersionSpecifiers,
    /// Packages that the build needs.
    pub build_requires: Vec<Requirement>,
    /// Packages that importing the result needs.
    pub verify_requires: Vec<Requirement>,
    /// Whether the network is forbidden.
    pub offline: bool,
    /// Whether a missing environment may be made; otherwise it is an error that says what would be installed.
    pub install: bool,
}

/// The chosen toolchain and why.
#[derive(Debug)]
pub struct Choice {
    /// The toolchain.
    pub toolchain: Toolchain,
    /// What was chosen, and what was not and why, a fact a line.
    pub notes: Vec<String>,
    /// Packages for the import check that an existing environment lacks; empty for a provisioned one.
    pub unmet: Vec<String>,
    /// Keeps a provisioned environment from removal; hold it for as long as the toolchain is used.
    pub lease: Option<Lock>,
}

/// Everything that choosing looks at.
struct World<'a> {
    request: &'a Request,
    env: &'a Env,
    root: &'a Utf8Path,
    facts: Facts,
}

/// Chooses, and provisions where needed.
pub fn choose(request: &Request, env: &Env, root: &Utf8Path, watch: Watcher<'_>) -> Result<Choice, Problems> {
    let world = World { request, env, root, facts: Facts::new(Some(root)) };
    let mut notes = Vec::new();
    let (host, pythons) = (compiler::find(env, &world.facts), world.pythons(&mut notes));
    let (host, pythons) = match (host, pythons) {
        (Ok(host), Ok(pythons)) => (host, pythons),
        (host, pythons) => {
            let found = [pythons.err(), host.err()].into_iter().flatten().collect();
            return Err(Problems::check(found).err().unwrap_or_else(|| no_python(request, &notes).into()));
        }
    };
    let Pythons { first, base } = pythons;
    if let Some(choice) = world.existing(&first, &host, &mut notes)? {
        return Ok(choice);
    }
    let (base, row) = base.ok_or_else(|| world.no_base(&first, &notes))?;
    has_headers(&base)?;
    notes.push(format!(
        "torch {} and CUDA {} come from wheels, for Python {} at {} ({})",
        row.torch, row.cuda, base.version, base.executable, base.origin
    ));
    let own = request.build_requires.iter().chain(&request.verify_requires).map(ToString::to_string);
    let wanted = provision::Request {
        requirements: row.requirements().into_iter().chain(own).collect(),
        python: base,
        offline: request.offline,
        install: request.install,
    };
    let made = provision::ensure(&wanted, root, env, watch)
        .map_err(|problem| notes.iter().fold(problem, |problem, note| problem.why(format!("note: {note}"))))?;
    world.provisioned(made, host, notes)
}

/// The interpreter that is active here, and the first one that wheels exist for.
struct Pythons {
    first: Python,
    base: Option<(Python, combinations::Combination)>,
}

impl World<'_> {
    fn pythons(&self, notes: &mut Vec<String>) -> Result<Pythons, Problem> {
        let request = self.request;
        let wanted = Wanted { torch: request.torch.clone(), cuda: request.cuda.clone() };
        let mut first: Option<Python> = None;
        let mut refusal = None;
        for candidate in python::candidates(request.python.as_deref(), self.env)? {
            let found = match python::describe(&candidate, self.env, &self.facts) {
                Ok(found) => found,
                Err(problem) => {
                    let evidence = problem.evidence().first().map(|why| format!(": {why}")).unwrap_or_default();
                    notes.push(format!("{problem} ({}){evidence}", candidate.origin));
                    refusal.get_or_insert(problem);
                    continue;
                }
            };
            if !within(&request.python_range, &found.version) {
                notes.push(format!(
                    "Python {} at {} ({}) is outside `{}`",
                    found.version, found.executable, found.origin, request.python_range
                ));
                continue;
            }
            let row = combinations::choose(&wanted, &found.version).ok();
            let active = first.get_or_insert_with(|| found.clone()).clone();
            if let Some(row) = row {
                return Ok(Pythons { first: active, base: Some((found, row)) });
            }
        }
        match (first, refusal) {
            (Some(first), _) => Ok(Pythons { first, base: None }),
            (None, Some(refusal)) => Err(refusal),
            (None, None) => Err(no_python(request, notes)),
        }
    }

    /// The toolchain that the active environment holds, or `None` with the reasons in `notes`.
    fn existing(
        &self,
        python: &Python,
        host: &HostCompiler,
        notes: &mut Vec<String>,
    ) -> Result<Option<Choice>, Problem> {
        let request = self.request;
        let place = format!("Python {} at {} ({})", python.version, python.executable, python.origin);
        let Some(torch) = torch::find(&python.site_dirs) else {
            notes.push(format!("{place} holds no torch"));
            return Ok(None);
        };
        let Some(cuda) = torch.cuda else {
            notes.push(format!("torch {} of {place} was built without CUDA", torch.version));
            return Ok(None);
        };
        if !within(&request.torch, &torch.version) {
            notes.push(format!("torch {} of {place} is outside `{}`", torch.version, request.torch));
            return Ok(None);
        }
        let installed = packages::installed(&python.site_dirs);
        let on_path = |wanted: &&Requirement| {
            !(matches!(wanted.name.as_str(), "ninja" | "cmake") && self.env.find_program(&wanted.name).is_some())
        };
        let build: Vec<Requirement> = request.build_requires.iter().filter(on_path).cloned().collect();
        let lacking = packages::unmet(&build, &installed);
        if !lacking.is_empty() {
            notes.push(format!("{place} does not fit the build: {}", lacking.join(", ")));
            return Ok(None);
        }
        let Some(toolkit) = self.toolkit(cuda, python, notes)? else {
            notes.push(format!(
                "no toolkit here goes with torch {} of {place}, which needs CUDA {}.x",
                torch.version, cuda.major
            ));
            return Ok(None);
        };
        has_headers(python)?;
        notes.push(format!(
            "torch {} of {place} is used, with CUDA {} at {} ({})",
            torch.version, toolkit.nvcc, toolkit.home, toolkit.origin
        ));
        let unmet = packages::unmet(&request.verify_requires, &installed);
        let toolchain = self.join(toolkit, python.clone(), torch, host.clone(), None);
        Ok(Some(Choice { toolchain, notes: std::mem::take(notes), unmet, lease: None }))
    }

    /// The installed toolkit of torch's CUDA major: the one of the same minor if there is one, else the first.
    fn toolkit(
        &self,
        cuda: crate::domain::version::CudaVersion,
        python: &Python,
        notes: &mut Vec<String>,
    ) -> Result<Option<Toolkit>, Problem> {
        let mut fitting: Vec<toolkit::Found> = Vec::new();
        for candidate in toolkit::candidates(self.env, &python.site_dirs) {
            let (home, origin) = (&candidate.home, &candidate.origin);
            match toolkit::describe(&candidate, self.env, &self.facts) {
                Err(rejected) => notes.push(format!("{home} ({origin}) {}", rejected.reason)),
                Ok(found) if found.toolkit.nvcc.major != cuda.major => {
                    let nvcc = found.toolkit.nvcc;
                    notes.push(format!("CUDA {nvcc} at {home} ({origin}) does not go with torch's CUDA {cuda}"));
                }
                Ok(found) if !within(&self.request.cuda, &found.toolkit.nvcc.release().to_string()) => {
                    let nvcc = found.toolkit.nvcc;
                    notes.push(format!("CUDA {nvcc} at {home} ({origin}) is outside `{}`", self.request.cuda));
                }
                Ok(found) => fitting.push(found),
            }
        }
        let same_minor = fitting.iter().position(|found| found.toolkit.nvcc.release() == cuda.release());
        if fitting.is_empty() {
            return Ok(None);
        }
        let toolkit::Found { toolkit: kit, unshaped } = fitting.swap_remove(same_minor.unwrap_or(0));
        if !unshaped {
            return Ok(Some(kit));
        }
        let stamp = toolkit::stamp(&kit.home).unwrap_or_default();
        let home = shape::borrowed(self.root, &kit.home, &stamp).map_err(|error| {
            Problem::new(
                "cuwright::provision::cache_folder",
                Exit::Toolchain,
                "the toolkit's wheels cannot be given a CUDA_HOME",
            )
            .why(error.to_string())
            .help("make the cache folder writable, or name another one with CUWRIGHT_CACHE_DIR")
        })?;
        Ok(Some(Toolkit { home, ..kit }))
    }

    fn provisioned(
        &self,
        made: provision::environment::Environment,
        host: HostCompiler,
        notes: Vec<String>,
    ) -> Result<Choice, Problems> {
        let origin = "provisioned from wheels".to_owned();
        let candidate = python::Candidate { program: made.python.clone(), origin: origin.clone() };
        // The environment is used in isolation: nothing of the caller's Python reaches into it.
        let clean = without_python_variables(self.env);
        let python = python::describe(&candidate, &clean, &self.facts)?;
        let place = toolkit::Candidate { home: made.cuda_home.clone(), origin };
        let found = toolkit::describe(&place, self.env, &self.facts)
            .map_err(|rejected| damaged(&made.root, &format!("{} {}", made.cuda_home, rejected.reason)))?;
        let torch =
            torch::describe(&made.site.join("torch")).ok_or_else(|| damaged(&made.root, "it holds no torch"))?;
        let toolchain = self.join(found.toolkit, python, torch, host, Some(made.digest));
        Ok(Choice { toolchain, notes, unmet: Vec::new(), lease: Some(made.lease) })
    }

    fn join(
        &self,
        toolkit: Toolkit,
        python: Python,
        torch: Torch,
        host: HostCompiler,
        environment: Option<String>,
    ) -> Toolchain {
        let bin: Option<Utf8PathBuf> = python.executable.parent().map(Utf8Path::to_owned);
        let beside = bin.as_ref().map(|bin| bin.join("ninja")).filter(|ninja| ninja.is_file());
        let ninja = beside.or_else(|| self.env.find_program("ninja"));
        let path = bin.into_iter().chain([toolkit.home.join("bin")]).collect();
        Toolchain { toolkit, python, torch, host, ninja, path, environment }
    }

    fn no_base(&self, first: &Python, notes: &[String]) -> Problem {
        let wanted = Wanted { torch: self.request.torch.clone(), cuda: self.request.cuda.clone() };
        let problem = combinations::choose(&wanted, &first.version).err();
        let problem = problem.unwrap_or_else(|| no_python(self.request, &[]));
        notes.iter().fold(problem, |problem, note| problem.why(format!("note: {note}")))
    }
}

fn within(range: &VersionSpecifiers, version: &str) -> bool {
    range.is_empty() || Version::from_str(version).is_ok_and(|version| range.contains(&version))
}

fn without_python_variables(env: &Env) -> Env {
    let kept = env.variables().iter().filter(|(name, _)| !name.starts_with("PYTHON"));
    Env::of(env.current_dir(), kept.map(|(name, value)| (name.as_str(), value.as_str())))
}

fn has_headers(python: &Python) -> Result<(), Problem> {
    if python.headers.is_some() {
        return Ok(());
    }
    let message = format!("Python {} has no development headers (Python.h)", python.version);
    Err(Problem::new("cuwright::probe::python_headers", Exit::Toolchain, message)
        .why(format!("{} ({})", python.executable, python.origin))
        .help("Debian, Ubuntu: apt-get install python3-dev")
        .help("Fedora, RHEL: dnf install python3-devel")
        .help("or name another Python with `--python`"))
}

fn no_python(request: &Request, notes: &[String]) -> Problem {
    let message = format!("no Python here is within `{}`", request.python_range);
    let problem = Problem::new("cuwright::probe::python_missing", Exit::Toolchain, message);
    notes.iter().fold(problem, Problem::why).help("name one with `--python`, or widen `python` in the recipe")
}

fn damaged(folder: &Utf8Path, what: &str) -> Problem {
    Problem::new("cuwright::provision::incomplete", Exit::Toolchain, "the provisioned environment is damaged")
        .why(what)
        .help(format!("remove it with `cuwright toolchain remove {}`", folder.file_name().unwrap_or_default()))
}

/// A provisioning event in words.
pub fn words(event: &provision::Event) -> String {
    use provision::Event;
    let short = |digest: &str| digest.get(..12).unwrap_or(digest).to_owned();
    match event {
        Event::FetchingUv { version } => format!("fetching uv {version}, which installs toolchains"),
        Event::Resolving { requirements } => format!("resolving {requirements} requirements"),
        Event::Waiting => "waiting for another unit or another cuwright, which installs it".to_owned(),
        Event::Installing { digest, packages } => format!("installing {packages} packages into {}", short(digest)),
        Event::Downloading { name, size } => format!("downloading {name} ({size})"),
        Event::Downloaded { name } => format!("downloaded {name}"),
        Event::Ready { digest, took, .. } => format!("{} is ready after {} s", short(digest), took.as_secs()),
    }
}
