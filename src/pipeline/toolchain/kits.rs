//! All toolkits of the machine, and which of them goes with a torch.
//!
//! Order of choice: torch's CUDA major; archs covered; a host compiler that it accepts; the range asked for; one that a
//! variable names; torch's own minor; the newest.

use std::cmp::Reverse;

use camino::{Utf8Path, Utf8PathBuf};

use super::hosts::Hosts;
use super::{Request, within};
use crate::compat::Available;
use crate::compat::support::Compiler;
use crate::domain::arch::{Arch, ArchSet};
use crate::domain::toolchain::{Considered, Toolkit};
use crate::domain::version::CudaVersion;
use crate::probe::facts::Facts;
use crate::probe::toolkit::{self, Candidate, Found, Rejected};
use crate::provision::{combinations, list};
use crate::sys::{Env, lock::Lock};

/// Every place that was looked into.
#[derive(Debug)]
pub struct Survey {
    /// In the order of finding.
    pub places: Vec<Result<Found, Rejected>>,
    root: Utf8PathBuf,
}

/// The best toolkit for a torch, and what is to be said of every place.
pub(super) struct Ranked<'a> {
    pub(super) best: Option<&'a Found>,
    pub(super) considered: Vec<Considered>,
}

/// What a toolkit is judged by, the better the smaller.
type Rank = (bool, bool, bool, bool, Reverse<CudaVersion>);

impl Survey {
    /// Looks into every place, the toolkits that cuwright installed last.
    pub fn take(site_dirs: &[Utf8PathBuf], env: &Env, root: &Utf8Path, facts: &Facts) -> Self {
        let mut candidates = toolkit::candidates(env, site_dirs, facts);
        for (digest, home) in list::toolkits(root) {
            if candidates.iter().all(|known| known.home != home) {
                let short = digest.get(..12).unwrap_or(&digest).to_owned();
                candidates.push(Candidate { home, origin: format!("installed as {short}"), named: false });
            }
        }
        let places = candidates.iter().map(|candidate| toolkit::describe(candidate, env, facts)).collect();
        Self { places, root: root.to_owned() }
    }

    /// The usable toolkits.
    pub fn usable(&self) -> impl Iterator<Item = &Found> {
        self.places.iter().filter_map(|place| place.as_ref().ok())
    }

    /// Keeps a toolkit of ours from removal.
    pub(super) fn lease(&self, found: &Found) -> Option<Lock> {
        list::lease(&self.root, &found.toolkit.home)
    }

    /// Toolkits that can be had: those here and those of wheels, as far as `--torch` and the recipe allow.
    pub(super) fn available(&self, request: &Request) -> Available {
        let installed = self.usable().map(|found| (found.toolkit.nvcc, found.toolkit.home.to_string())).collect();
        let rows = combinations::rows().unwrap_or_default();
        let allowed = rows.into_iter().filter(|row| within(&request.torch, &row.torch));
        Available { installed, wheels: allowed.map(|row| (row.cuda, row.torch)).collect() }
    }

    /// Ranks all toolkits for a torch of this CUDA.
    pub(super) fn rank(&self, cuda: CudaVersion, host: &Hosts<'_>, request: &Request) -> Ranked<'_> {
        let rank = |found: &Found| -> Rank {
            let nvcc = found.toolkit.nvcc;
            (
                !lacking(&found.toolkit, request.archs.as_ref()).is_empty(),
                !host.any_fits(found.toolkit.host_bounds),
                !found.named,
                nvcc.release() != cuda.release(),
                Reverse(nvcc),
            )
        };
        let fits = |found: &&Found| {
            let nvcc = found.toolkit.nvcc;
            nvcc.major == cuda.major && within(&request.cuda, &nvcc.release().to_string())
        };
        let best = self.usable().filter(fits).min_by_key(|found| rank(found));
        let best_rank = best.map(rank);
        let considered = self.places.iter().map(|place| match place {
            Err(rejected) => not_usable(rejected),
            Ok(found) => {
                let taken = best.is_some_and(|best| std::ptr::eq(best, found));
                let why = match (&best_rank, taken) {
                    (_, true) => format!("is used: torch is built for CUDA {cuda}"),
                    (Some(best), false) if fits(&found) => beaten(&rank(found), best, found, request.archs.as_ref()),
                    _ if found.toolkit.nvcc.major != cuda.major => format!("does not go with torch's CUDA {cuda}"),
                    _ => format!("is outside `{}`", request.cuda),
                };
                of_toolkit(found, taken, why)
            }
        });
        let considered = considered.collect();
        Ranked { best, considered }
    }

    /// What is to be said of every place where torch comes from wheels, which bring a toolkit of their own.
    pub(super) fn unused(&self, torch: &str, cuda: CudaVersion, environment: &Utf8Path) -> Vec<Considered> {
        let says = |place: &Result<Found, Rejected>| match place {
            Err(rejected) => Some(not_usable(rejected)),
            Ok(found) if found.toolkit.home.starts_with(environment) => None,
            Ok(found) => {
                let nvcc = found.toolkit.nvcc;
                let why = if nvcc.major == cuda.major {
                    format!("is not used: torch {torch} comes with CUDA {cuda} of its own")
                } else {
                    format!("does not go with torch {torch}, which needs CUDA {}.x", cuda.major)
                };
                Some(of_toolkit(found, false, why))
            }
        };
        self.places.iter().filter_map(says).collect()
    }
}

/// The archs that a toolkit does not know.
fn lacking(toolkit: &Toolkit, archs: Option<&ArchSet>) -> Vec<Arch> {
    let compiler = Compiler { version: toolkit.nvcc, gpu_codes: toolkit.codes() };
    let all = archs.into_iter().flat_map(ArchSet::iter).map(|(arch, _)| arch);
    all.filter(|arch| compiler.knows(*arch) == Some(false)).collect()
}

/// What the better one has over this one: the first difference in rank.
fn beaten(own: &Rank, best: &Rank, found: &Found, archs: Option<&ArchSet>) -> String {
    if own.0 != best.0 {
        let missing: Vec<String> = lacking(&found.toolkit, archs).iter().map(Arch::to_string).collect();
        return format!("fits torch, but does not compile for {}", missing.join(", "));
    }
    if own.1 != best.1 {
        return "fits torch, but accepts no compiler that is here".to_owned();
    }
    if own.2 != best.2 {
        return "fits as well; another one is named by a variable".to_owned();
    }
    if own.3 != best.3 {
        return "fits as well; another one is of torch's own release".to_owned();
    }
    if own.4 == best.4 {
        return "fits as well; the same release was found elsewhere before".to_owned();
    }
    format!("fits as well; CUDA {} is newer", best.4.0)
}

pub(super) fn not_usable(rejected: &Rejected) -> Considered {
    let Candidate { home, origin, .. } = &rejected.candidate;
    Considered {
        what: "toolkit".to_owned(),
        place: home.to_string(),
        version: None,
        origin: origin.clone(),
        taken: false,
        why: rejected.reason.clone(),
    }
}

pub(super) fn of_toolkit(found: &Found, taken: bool, why: String) -> Considered {
    Considered {
        what: "toolkit".to_owned(),
        place: found.toolkit.home.to_string(),
        version: Some(found.toolkit.nvcc.to_string()),
        origin: found.toolkit.origin.clone(),
        taken,
        why,
    }
}
