//! Chooses the toolchain of a unit: what the environment holds where it fits, else one provisioned from wheels.
//!
//! Invariant: every choice and every rejected candidate is said, and everything that can be missing on the machine is
//! checked before anything is downloaded. A warm call starts no process.

mod hosts;
mod kits;
mod refusal;
mod told;
mod wheels;

use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use pep440_rs::{Version, VersionSpecifiers};

use crate::compat::Available;
use crate::domain::arch::ArchSet;
use crate::domain::problem::{Problem, Problems};
use crate::domain::requirement::Requirement;
use crate::domain::toolchain::{Considered, Python, Toolchain, Torch};
use crate::probe::{facts::Facts, packages, python, torch};
use crate::provision::{self, Watcher, combinations, combinations::Wanted};
use crate::sys::{Env, lock::Lock};

pub use kits::Survey;
pub use told::kept_in;

/// What a unit needs of its toolchain.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Value of `--python`: a path, an environment's folder, a program name or a version.
    pub python: Option<String>,
    /// Value of `--cc`.
    pub cc: Option<String>,
    /// Pythons that the recipe allows.
    pub python_range: VersionSpecifiers,
    /// torch releases allowed.
    pub torch: VersionSpecifiers,
    /// CUDA releases allowed.
    pub cuda: VersionSpecifiers,
    /// The targets, as far as they are known without a toolkit.
    pub archs: Option<ArchSet>,
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
    /// The same for every candidate, as values.
    pub considered: Vec<Considered>,
    /// What the user should know although it works.
    pub warnings: Vec<String>,
    /// Toolkits that can be had here, for mends.
    pub available: Available,
    /// Packages for the import check that an existing environment lacks; empty for a provisioned one.
    pub unmet: Vec<String>,
    /// Keeps provisioned parts from removal; hold them for as long as the toolchain is used.
    pub leases: Vec<Lock>,
}

/// Everything that choosing looks at.
struct World<'a> {
    request: &'a Request,
    env: &'a Env,
    root: &'a Utf8Path,
    facts: Facts,
}

/// What was found out on the way.
#[derive(Debug, Default)]
struct Trail {
    notes: Vec<String>,
    considered: Vec<Considered>,
    warnings: Vec<String>,
}

impl Trail {
    fn consider(&mut self, one: Considered) {
        self.notes.push(one.to_string());
        self.considered.push(one);
    }

    /// A whole survey; as values all of it is kept.
    fn consider_all(&mut self, all: Vec<Considered>) {
        self.notes.extend(told::lines(&all));
        self.considered.extend(all);
    }
}

/// Chooses, and provisions where needed.
pub fn choose(request: &Request, env: &Env, root: &Utf8Path, watch: Watcher<'_>) -> Result<Choice, Problems> {
    let world = World { request, env, root, facts: Facts::new(Some(root)) };
    let mut trail = Trail::default();
    let (host, pythons) = (hosts::find(&world), world.pythons(&mut trail));
    let (host, pythons) = match (host, pythons) {
        (Ok(host), Ok(pythons)) => (host, pythons),
        (host, pythons) => {
            let found = [pythons.err(), host.err()].into_iter().flatten().collect();
            return Err(Problems::check(found).err().unwrap_or_else(|| refusal::no_python(request, &trail).into()));
        }
    };
    let Pythons { first, base } = pythons;
    let survey = Survey::take(&first.site_dirs, env, root, &world.facts);
    match world.existing(&first, &host, &survey, &mut trail, watch)? {
        Existing::Fits(choice) => return Ok(*choice),
        Existing::Unfit => {}
    }
    let Some((base, row)) = base else { return Err(refusal::no_wheels(&world, &first, &survey, &trail).into()) };
    refusal::has_headers(&base)?;
    world.provision(base, &row, &host, &survey, trail, watch)
}

/// The interpreter that is active here, and the first one that wheels exist for.
struct Pythons {
    first: Python,
    base: Option<(Python, combinations::Combination)>,
}

enum Existing {
    Fits(Box<Choice>),
    Unfit,
}

impl World<'_> {
    fn pythons(&self, trail: &mut Trail) -> Result<Pythons, Problem> {
        let request = self.request;
        let wanted = self.wanted();
        let mut first: Option<Python> = None;
        let mut refusal = None;
        for candidate in python::candidates(request.python.as_deref(), self.env)? {
            let found = match python::describe(&candidate, self.env, &self.facts) {
                Ok(found) => found,
                Err(problem) => {
                    trail.consider(unusable(&candidate, &problem));
                    refusal.get_or_insert(problem);
                    continue;
                }
            };
            if !within(&request.python_range, &found.version) {
                trail.consider(of_python(&found, false, format!("is outside `{}`", request.python_range)));
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
            (None, None) => Err(refusal::no_python(request, trail)),
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted { torch: self.request.torch.clone(), cuda: self.request.cuda.clone() }
    }

    /// The toolchain around the torch of the active environment, if that is to be had. What it lacks beside torch is
    /// put into a folder of its own; the environment is never written to.
    fn existing(
        &self,
        python: &Python,
        host: &hosts::Hosts,
        survey: &Survey,
        trail: &mut Trail,
        watch: Watcher<'_>,
    ) -> Result<Existing, Problem> {
        let reject = |trail: &mut Trail, why: String| {
            trail.consider(of_python(python, false, why));
            Ok(Existing::Unfit)
        };
        let Some(torch) = torch::find(&python.site_dirs) else {
            return reject(trail, "holds no torch".to_owned());
        };
        let Some(cuda) = torch.cuda else {
            return reject(trail, format!("holds torch {}, which was built without CUDA", torch.version));
        };
        if !within(&self.request.torch, &torch.version) {
            return reject(trail, format!("holds torch {}, which is outside `{}`", torch.version, self.request.torch));
        }
        let ranked = survey.rank(cuda, host, self.request);
        let lacks = self.lacks(python, cuda, ranked.best.is_none());
        if ranked.best.is_none() && lacks.toolkit.is_none() {
            trail.consider_all(ranked.considered);
            trail.consider(of_python(
                python,
                false,
                format!("holds torch {}, for which no CUDA {}.x is here", torch.version, cuda.major),
            ));
            trail.warnings.extend(refusal::unused_torch(self, python, &torch, survey));
            return Ok(Existing::Unfit);
        }
        refusal::has_headers(python)?;
        let (overlay, lease) = match lacks.requirements().as_slice() {
            [] => (None, None),
            requirements => {
                let made = self.overlay(python, requirements, watch)?;
                trail.notes.push(format!("{} {}", made.what, made.place));
                (Some(made.site), Some(made.lease))
            }
        };
        let found = match ranked.best {
            Some(best) => best.clone(),
            None => self.toolkit_of_overlay(overlay.as_deref(), python)?,
        };
        trail.consider_all(ranked.considered);
        let toolkit = self.shaped(&found, python)?;
        trail.consider(of_python(python, true, format!("is used, with its torch {}", torch.version)));
        let installed = packages::installed(&python.site_dirs);
        let unmet = packages::unmet(&self.request.verify_requires, &installed);
        let host = host.fitting(&toolkit, trail);
        let leases = survey.lease(&found).into_iter().chain(lease).collect();
        let toolchain = self.join(toolkit, python.clone(), torch, host, overlay);
        Ok(Existing::Fits(Box::new(self.choice(toolchain, survey, std::mem::take(trail), unmet, leases))))
    }

    fn choice(
        &self,
        toolchain: Toolchain,
        survey: &Survey,
        trail: Trail,
        unmet: Vec<String>,
        leases: Vec<Lock>,
    ) -> Choice {
        let Trail { notes, considered, warnings } = trail;
        Choice { toolchain, notes, considered, warnings, available: survey.available(self.request), unmet, leases }
    }

    fn join(
        &self,
        toolkit: crate::domain::toolchain::Toolkit,
        python: Python,
        torch: Torch,
        host: crate::domain::toolchain::HostCompiler,
        overlay: Option<Utf8PathBuf>,
    ) -> Toolchain {
        let bin: Option<Utf8PathBuf> = python.executable.parent().map(Utf8Path::to_owned);
        let own = overlay.as_ref().map(|overlay| overlay.join("bin")).filter(|bin| bin.is_dir());
        let folders: Vec<Utf8PathBuf> = own.into_iter().chain(bin).collect();
        let beside = folders.iter().map(|bin| bin.join("ninja")).find(|ninja| ninja.is_file());
        let ninja = beside.or_else(|| self.env.find_program("ninja"));
        let path = folders.into_iter().chain([toolkit.home.join("bin")]).collect();
        Toolchain { toolkit, python, torch, host, ninja, path, overlay, environment: None }
    }
}

fn within(range: &VersionSpecifiers, version: &str) -> bool {
    range.is_empty() || Version::from_str(version).is_ok_and(|version| range.contains(&version))
}

fn of_python(python: &Python, taken: bool, why: String) -> Considered {
    Considered {
        what: "python".to_owned(),
        place: python.executable.to_string(),
        version: Some(python.version.clone()),
        origin: python.origin.clone(),
        taken,
        why,
    }
}

fn unusable(candidate: &python::Candidate, problem: &Problem) -> Considered {
    let why = if problem.code() == "cuwright::probe::python_too_old" {
        "is too old".to_owned()
    } else {
        let evidence = problem.evidence().first().map(|why| format!(": {why}")).unwrap_or_default();
        format!("cannot be used{evidence}")
    };
    Considered {
        what: "python".to_owned(),
        place: candidate.program.to_string(),
        version: None,
        origin: candidate.origin.clone(),
        taken: false,
        why,
    }
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
