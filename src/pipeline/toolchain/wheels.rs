//! What comes from wheels: a whole environment, or the parts that an environment with torch lacks.

use camino::{Utf8Path, Utf8PathBuf};

use super::kits::Survey;
use super::{Choice, Trail, World, hosts::Hosts, of_python, told, within};
use crate::compat::support::{self, Compiler};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::requirement::Requirement;
use crate::domain::toolchain::{Python, Toolkit};
use crate::domain::version::CudaVersion;
use crate::probe::{packages, python, toolkit, torch};
use crate::provision::{self, Watcher, combinations, shape};
use crate::sys::{Env, lock::Lock};

/// What an environment with a fitting torch lacks for the build.
#[derive(Debug, Default)]
pub(super) struct Lacks {
    build: Vec<Requirement>,
    /// Requirement of the toolkit, where wheels have one for torch's CUDA.
    pub(super) toolkit: Option<String>,
}

impl Lacks {
    pub(super) fn requirements(&self) -> Vec<String> {
        self.build.iter().map(ToString::to_string).chain(self.toolkit.clone()).collect()
    }
}

/// A folder of added parts.
pub(super) struct Overlay {
    pub(super) what: String,
    pub(super) place: String,
    pub(super) site: Utf8PathBuf,
    pub(super) lease: Lock,
}

impl World<'_> {
    /// What to add to an environment. Programs that a build only starts may be on `PATH` as well.
    pub(super) fn lacks(&self, python: &Python, cuda: CudaVersion, no_toolkit: bool) -> Lacks {
        let installed = packages::installed(&python.site_dirs);
        let beside = |name: &str| python.executable.parent().is_some_and(|bin| bin.join(name).exists());
        let met = |wanted: &&Requirement| {
            let known = packages::unmet(std::slice::from_ref(*wanted), &installed).is_empty();
            match wanted.name.as_str() {
                program @ ("ninja" | "cmake") => (known && beside(program)) || self.env.find_program(program).is_some(),
                _ => known,
            }
        };
        let build = self.request.build_requires.iter().filter(|wanted| !met(wanted)).cloned();
        let release = cuda.release();
        let in_wheels = release >= combinations::OLDEST_NVCC && within(&self.request.cuda, &release.to_string());
        let toolkit = (no_toolkit && in_wheels).then(|| combinations::toolkit_of(release));
        Lacks { build: build.collect(), toolkit }
    }

    /// A folder with what `python` lacks, made where it is not there yet.
    pub(super) fn overlay(
        &self,
        python: &Python,
        requirements: &[String],
        watch: Watcher<'_>,
    ) -> Result<Overlay, Problem> {
        let wanted = provision::Request {
            requirements: requirements.to_vec(),
            python: python.clone(),
            offline: self.request.offline,
            install: self.request.install,
            kind: provision::Kind::Overlay,
        };
        let what = requirements.join(", ");
        let made = provision::ensure(&wanted, self.root, self.env, watch).map_err(|problem| {
            problem.why(format!("{} ({}) holds torch, but lacks {what}", python.executable, python.origin))
        })?;
        let what = format!("{what} for {}", python.executable);
        Ok(Overlay { what, place: format!("comes from wheels in {}", made.root), site: made.site, lease: made.lease })
    }

    /// The toolkit that an overlay brought.
    pub(super) fn toolkit_of_overlay(
        &self,
        overlay: Option<&Utf8Path>,
        python: &Python,
    ) -> Result<toolkit::Found, Problem> {
        let site = overlay.unwrap_or(Utf8Path::new("/"));
        let home = shape::wheel_home(site).unwrap_or_else(|| site.to_owned());
        let origin = format!("from wheels, for {}", python.executable);
        let place = toolkit::Candidate { home, origin, named: false };
        toolkit::describe(&place, self.env, &self.facts)
            .map_err(|rejected| damaged(site, &format!("{} {}", place.home, rejected.reason)))
    }

    /// A toolkit as it can be exported. Headers of CUDA libraries lie in torch's own environment, where wheels put them.
    pub(super) fn shaped(&self, found: &toolkit::Found, python: &Python) -> Result<Toolkit, Problem> {
        let Some(parts) = &found.parts else { return Ok(found.toolkit.clone()) };
        let of_torch =
            python.site_dirs.iter().map(|site| site.join("nvidia").join(format!("cu{}", found.toolkit.nvcc.major)));
        let beside: Vec<Utf8PathBuf> = of_torch.filter(|folder| folder.is_dir() && *folder != parts.home).collect();
        let also =
            |name: &str| beside.iter().map(|home| home.join(name)).filter(|folder| folder.is_dir()).collect::<Vec<_>>();
        let from_wheels = parts.home.parent().is_some_and(|parent| parent.ends_with("nvidia"));
        let more = |name: &str| if from_wheels { also(name) } else { Vec::new() };
        let parts = shape::Parts {
            home: parts.home.clone(),
            include: [vec![parts.include.clone()], more("include")].concat(),
            libraries: [parts.libraries.clone(), more("lib")].concat(),
        };
        let stamp = format!("{}{parts:?}", toolkit::stamp(&parts.home).unwrap_or_default());
        let home = shape::borrowed(self.root, &parts, &stamp).map_err(|error| {
            Problem::new(
                "cuwright::provision::cache_folder",
                Exit::Toolchain,
                "the toolkit cannot be given a CUDA_HOME",
            )
            .why(error.to_string())
            .help("make the cache folder writable, or name another one with CUWRIGHT_CACHE_DIR")
        })?;
        Ok(Toolkit { home, ..found.toolkit.clone() })
    }

    /// Archs that the toolkit of `row` is known not to compile for: no reason to fetch it first.
    fn refused_archs(&self, row: &combinations::Combination, survey: &Survey) -> Vec<Problem> {
        let archs = self.request.archs.clone().unwrap_or_default();
        let available = survey.available(self.request);
        let refused = support::against_compiler_here(&archs, Compiler::release(row.cuda), &[], Some(&available));
        let origin = format!("CUDA {} would come from wheels, with torch {}", row.cuda, row.torch);
        refused.into_iter().map(|problem| problem.why(&origin)).collect()
    }

    /// A whole environment from wheels.
    pub(super) fn provision(
        &self,
        base: Python,
        row: &combinations::Combination,
        host: &Hosts<'_>,
        survey: &Survey,
        mut trail: Trail,
        watch: Watcher<'_>,
    ) -> Result<Choice, Problems> {
        trail.consider(of_python(&base, true, "is the base of the environment".to_owned()));
        trail.notes.push(format!("torch {} and CUDA {} come from wheels", row.torch, row.cuda));
        let own = self.request.build_requires.iter().chain(&self.request.verify_requires).map(ToString::to_string);
        let wanted = provision::Request {
            requirements: row.requirements().into_iter().chain(own).collect(),
            python: base,
            offline: self.request.offline,
            install: self.request.install,
            kind: provision::Kind::Whole,
        };
        let looked = provision::Request { install: false, ..wanted.clone() };
        let absent = provision::ensure(&looked, self.root, self.env, &mut |_| {});
        if absent.is_err_and(|problem| problem.code() == provision::NOT_INSTALLED) {
            Problems::check(self.refused_archs(row, survey))?;
        }
        let made = provision::ensure(&wanted, self.root, self.env, watch).map_err(|problem| {
            let unused = survey.unused(&row.torch, row.cuda, self.root);
            let problem = trail.warnings.iter().cloned().fold(problem, Problem::why);
            let new = unused.iter().filter(|one| !trail.considered.contains(one));
            let notes = trail.notes.iter().cloned().chain(told::lines(new));
            notes.fold(problem, |problem, note| problem.why(format!("note: {note}")))
        })?;
        let mut unused = survey.unused(&row.torch, row.cuda, &made.root);
        unused.retain(|one| trail.considered.iter().all(|known| known.place != one.place));
        trail.consider_all(unused);
        let origin = "provisioned from wheels".to_owned();
        let candidate = python::Candidate { program: made.python.clone(), origin: origin.clone() };
        // The environment is used in isolation: nothing of the caller's Python reaches into it.
        let clean = without_python_variables(self.env);
        let python = python::describe(&candidate, &clean, &self.facts)?;
        let place = toolkit::Candidate { home: made.cuda_home.clone(), origin, named: false };
        let found = toolkit::describe(&place, self.env, &self.facts)
            .map_err(|rejected| damaged(&made.root, &format!("{} {}", made.cuda_home, rejected.reason)))?;
        let torch =
            torch::describe(&made.site.join("torch")).ok_or_else(|| damaged(&made.root, "it holds no torch"))?;
        trail.consider(super::kits::of_toolkit(&found, true, format!("is used: it came with torch {}", torch.version)));
        let host = host.fitting(&found.toolkit, &mut trail);
        let mut toolchain = self.join(found.toolkit, python, torch, host, None);
        toolchain.environment = Some(made.digest);
        Ok(self.choice(toolchain, survey, trail, Vec::new(), vec![made.lease]))
    }
}

fn without_python_variables(env: &Env) -> Env {
    let kept = env.variables().iter().filter(|(name, _)| !name.starts_with("PYTHON"));
    Env::of(env.current_dir(), kept.map(|(name, value)| (name.as_str(), value.as_str())))
}

fn damaged(folder: &Utf8Path, what: &str) -> Problem {
    Problem::new("cuwright::provision::incomplete", Exit::Toolchain, "the provisioned environment is damaged")
        .why(what)
        .help(format!("remove it with `cuwright toolchain remove {}`", folder.file_name().unwrap_or_default()))
}
