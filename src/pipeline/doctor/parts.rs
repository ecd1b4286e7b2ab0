//! The parts of the report, each from its probe.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::{
    CacheReport, DiskReport, LockReport, MachineReport, PtxasReport, PythonReport, ToolReport, TorchReport, lacks,
    sccache_note,
};
use crate::domain::arch::ArchSet;
use crate::domain::toolchain::{Considered, Python, Torch};
use crate::pipeline::toolchain::{self, Survey};
use crate::pipeline::{Context, site};
use crate::probe::{compiler, facts::Facts, python, toolkit, tools, torch, torch_locks};
use crate::provision::list;
use crate::sys::{Env, env_vars as vars, files, machine as system};

/// How long one cache is counted.
const PATIENCE: Duration = Duration::from_millis(100);

/// A Python with its torch, or why it cannot be used.
type Seen = Result<(Python, Option<Torch>), String>;

/// What several parts of the report look at.
pub(super) struct Parts<'a> {
    context: &'a Context<'a>,
    facts: Facts,
    pythons: Vec<(python::Candidate, Seen)>,
    survey: Survey,
}

impl<'a> Parts<'a> {
    pub(super) fn of(context: &'a Context<'a>) -> Self {
        let facts = Facts::new(Some(context.cache_root));
        let candidates = python::candidates(None, context.env).unwrap_or_default();
        let describe = |candidate: &python::Candidate| {
            let found = python::describe(candidate, context.env, &facts);
            let found = found.map_err(|problem| match problem.code() {
                "cuwright::probe::python_too_old" => problem.to_string(),
                _ => problem.evidence().first().cloned().unwrap_or(problem.to_string()),
            })?;
            let torch = torch::find(&found.site_dirs);
            Ok((found, torch))
        };
        let mut pythons: Vec<_> = candidates.into_iter().map(|one| (one.clone(), describe(&one))).collect();
        // Shims and links lead to the same interpreter; the first name is the one that a build would use.
        let mut seen = std::collections::BTreeSet::new();
        pythons.retain(|(_, found)| found.as_ref().map_or(true, |(python, _)| seen.insert(python.executable.clone())));
        let sites: Vec<Utf8PathBuf> = pythons
            .iter()
            .filter_map(|(_, found)| found.as_ref().ok())
            .flat_map(|(python, _)| python.site_dirs.clone())
            .collect();
        let survey = Survey::take(&sites, context.env, context.cache_root, &facts);
        Self { context, facts, pythons, survey }
    }

    pub(super) fn toolkits(&self) -> Vec<Considered> {
        let torches: Vec<&Torch> = self.torches().collect();
        let provisioned = list::list(self.context.cache_root);
        // An environment of ours that holds a torch brought its toolkit for that one.
        let own = |home: &Utf8Path| {
            let folder = home.strip_prefix(toolchain::kept_in(home)?).ok()?.components().next()?;
            provisioned.iter().find(|one| one.digest == folder.as_str())?.torch.clone()
        };
        let of = |place: &Result<toolkit::Found, toolkit::Rejected>| match place {
            Ok(found) => {
                let kit = &found.toolkit;
                let fits = |torch: &&&Torch| torch.cuda.is_some_and(|cuda| cuda.major == kit.nvcc.major);
                let fitting: Vec<String> = torches.iter().filter(fits).map(|torch| torch.version.clone()).collect();
                let gcc = kit.host_bounds.gcc_max.map(|gcc| format!("gcc up to {gcc}")).unwrap_or_default();
                let why = match (own(&kit.home), fitting.as_slice()) {
                    (Some(torch), _) => format!("{gcc}; came with torch {torch}"),
                    (None, []) => format!("{gcc}; no Python here holds a torch for CUDA {}.x", kit.nvcc.major),
                    (None, all) => format!("{gcc}; goes with torch {}", all.join(", ")),
                };
                Considered { why, ..considered("toolkit", kit.home.as_str(), &kit.nvcc.to_string(), &kit.origin) }
            }
            Err(toolkit::Rejected { candidate, reason }) => Considered {
                version: None,
                taken: false,
                why: reason.clone(),
                ..considered("toolkit", candidate.home.as_str(), "", &candidate.origin)
            },
        };
        self.survey.places.iter().map(of).collect()
    }

    fn torches(&self) -> impl Iterator<Item = &Torch> {
        self.pythons.iter().filter_map(|(_, found)| found.as_ref().ok()?.1.as_ref())
    }

    pub(super) fn compilers(&self) -> Vec<Considered> {
        let chosen = compiler::find(None, self.context.env, &self.facts);
        let mut all = compiler::all(self.context.env, &self.facts);
        if let Ok(first) = &chosen
            && all.iter().all(|host| host.version != first.host.version || host.family != first.host.family)
        {
            all.insert(0, first.host.clone());
        }
        let mut found: Vec<Considered> = all
            .iter()
            .map(|host| {
                let refuse = self.survey.usable().filter(|kit| !kit.toolkit.host_bounds.accept(host));
                let refusing: Vec<String> = refuse.map(|kit| kit.toolkit.nvcc.release().to_string()).collect();
                let why = match refusing.as_slice() {
                    [] => "every toolkit here accepts it".to_owned(),
                    list => format!("too new for CUDA {}", list.join(", ")),
                };
                let name = format!("{} {}", host.family.cc(), host.version);
                let taken = chosen.as_ref().is_ok_and(|first| first.host.version == host.version);
                Considered { taken, why, ..considered("host compiler", host.cxx.as_str(), &name, &host.origin) }
            })
            .collect();
        if let Err(problem) = chosen {
            let why = problem.evidence().first().cloned().unwrap_or_default();
            found.push(Considered {
                version: None,
                taken: false,
                why: format!("{problem}: {why}"),
                ..considered("host compiler", "none", "", "asked for")
            });
        }
        found
    }

    pub(super) fn pythons(&self) -> Vec<PythonReport> {
        self.pythons
            .iter()
            .map(|(candidate, found)| {
                let (python, torch) = match found {
                    Ok((python, torch)) => (Some(python), torch.as_ref()),
                    Err(_) => (None, None),
                };
                PythonReport {
                    executable: candidate.program.to_string(),
                    origin: candidate.origin.clone(),
                    version: python.map(|python| python.version.clone()),
                    headers: python.is_some_and(|python| python.headers.is_some()),
                    torch: torch.map(|torch| TorchReport {
                        version: torch.version.clone(),
                        cuda: torch.cuda.map(|cuda| cuda.to_string()),
                        cxx11_abi: torch.cxx11_abi,
                        archs: torch.supported_archs.clone(),
                    }),
                    problem: found.as_ref().err().cloned(),
                }
            })
            .collect()
    }

    pub(super) fn tools(&self) -> Vec<ToolReport> {
        let kits: Vec<_> = self.survey.usable().map(|found| found.toolkit.nvcc).collect();
        tools::all(self.context.env, &self.facts)
            .into_iter()
            .map(|tool| {
                let fit = tool.version.as_ref().ok().filter(|_| tool.name == "sccache");
                ToolReport {
                    name: tool.name.to_owned(),
                    path: tool.path.to_string(),
                    note: match &tool.version {
                        Ok(_) => fit.and_then(|version| sccache_note(version, &kits)),
                        Err(why) if why == tools::MUTE => None,
                        Err(why) => Some(format!("does not work: {why}")),
                    },
                    version: tool.version.ok(),
                }
            })
            .collect()
    }

    pub(super) fn ptxas(&self, needed: &ArchSet) -> Vec<PtxasReport> {
        let sites: Vec<Utf8PathBuf> = self
            .pythons
            .iter()
            .filter_map(|(_, found)| found.as_ref().ok())
            .flat_map(|(python, _)| python.site_dirs.clone())
            .collect();
        let sites = [sites, list::sites(self.context.cache_root)].concat();
        let homes: Vec<Utf8PathBuf> = self.survey.usable().map(|found| found.toolkit.home.clone()).collect();
        tools::ptxas(self.context.env, &sites, &homes, &self.facts)
            .into_iter()
            .map(|one| PtxasReport {
                path: one.path.to_string(),
                user: one.user,
                lacks: one.version.as_ref().map(|version| lacks(*version, needed)).unwrap_or_default(),
                problem: one.version.as_ref().err().cloned(),
                version: one.version.ok().map(|version| version.to_string()),
            })
            .collect()
    }
}

fn considered(what: &str, place: &str, version: &str, origin: &str) -> Considered {
    Considered {
        what: what.to_owned(),
        place: place.to_owned(),
        version: Some(version.to_owned()),
        origin: origin.to_owned(),
        taken: true,
        why: String::new(),
    }
}

pub(super) fn machine(env: &Env) -> MachineReport {
    let group = system::group_memory(env);
    let limits = system::limits();
    MachineReport {
        cores: system::cores(),
        available_memory: system::available_memory(env),
        group_limit: group.as_ref().map(|group| group.limit),
        group: group.map(|group| group.folder.to_string()),
        open_files: limits.files,
        processes: limits.processes,
        address_space: limits.memory,
    }
}

pub(super) fn disks(context: &Context<'_>) -> Vec<DiskReport> {
    let disks = site::disks(context).into_iter();
    disks
        .map(|disk| DiskReport { what: disk.what.to_owned(), folder: disk.folder.to_string(), free: disk.free })
        .collect()
}

pub(super) fn caches(context: &Context<'_>) -> Vec<CacheReport> {
    let root = context.cache_root;
    let home = context.env.get(vars::XDG_CACHE_HOME).map(Utf8PathBuf::from);
    let home = home.or_else(|| context.env.get(vars::HOME).map(|home| Utf8PathBuf::from(home).join(".cache")));
    let own_root = context.env.get(vars::CUWRIGHT_CACHE_DIR).map(|_| root.join("uv"));
    let uv = context.env.get(vars::UV_CACHE_DIR).map(Utf8PathBuf::from).or(own_root);
    let uv = uv.or_else(|| home.map(|home| home.join("uv")));
    let counted = [
        ("artifacts", Some(root.join("artifacts-v1"))),
        ("build folders", Some(root.join("build-v1"))),
        ("packages of uv", uv),
        ("torch extensions", torch_locks::folder(context.env)),
    ];
    let toolchains: u64 = list::list(root).iter().map(|one| one.bytes).sum();
    let mut found = vec![CacheReport {
        what: "toolchains".to_owned(),
        folder: root.join("toolchains-v1").to_string(),
        bytes: toolchains,
        counted: true,
    }];
    for (what, folder) in counted.into_iter().filter_map(|(what, folder)| Some((what, folder?))) {
        if folder.is_dir() {
            // The folder may be a link to another disk.
            let real = folder.canonicalize_utf8().unwrap_or_else(|_| folder.clone());
            let (bytes, counted) = files::size(&real, PATIENCE);
            found.push(CacheReport { what: what.to_owned(), folder: folder.to_string(), bytes, counted });
        }
    }
    found
}

pub(super) fn locks(env: &Env) -> Vec<LockReport> {
    let locks = torch_locks::all(env).into_iter();
    locks
        .map(|lock| LockReport {
            path: lock.path.to_string(),
            age: lock.age.as_secs(),
            holder: lock.holder.map(|(pid, command)| format!("{pid} {command}")),
        })
        .collect()
}
