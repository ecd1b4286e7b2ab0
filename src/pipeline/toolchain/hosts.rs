//! The host compiler: the one that was named, else that of `PATH`, else another one that the toolkit accepts.

use std::cell::OnceCell;

use super::{Trail, World};
use crate::domain::problem::Problem;
use crate::domain::toolchain::{Considered, HostBounds, HostCompiler, Toolkit};
use crate::probe::compiler::{self, Found};
use crate::probe::facts::Facts;
use crate::sys::Env;

/// The compiler of the environment and, where it does not fit, the others.
pub(super) struct Hosts<'a> {
    found: Found,
    env: &'a Env,
    facts: &'a Facts,
    others: OnceCell<Vec<HostCompiler>>,
}

pub(super) fn find<'a>(world: &'a World<'_>) -> Result<Hosts<'a>, Problem> {
    let found = compiler::find(world.request.cc.as_deref(), world.env, &world.facts)?;
    Ok(Hosts { found, env: world.env, facts: &world.facts, others: OnceCell::new() })
}

impl Hosts<'_> {
    /// Every compiler of the machine; looked for only where the first one does not do.
    pub(super) fn others(&self) -> &[HostCompiler] {
        self.others.get_or_init(|| compiler::all(self.env, self.facts))
    }

    fn other(&self, bounds: HostBounds) -> Option<&HostCompiler> {
        let same = |host: &&HostCompiler| host.family == self.found.host.family && bounds.accept(host);
        self.others().iter().find(same).or_else(|| self.others().iter().find(|host| bounds.accept(host)))
    }

    /// Whether some compiler that may be used is within the bounds.
    pub(super) fn any_fits(&self, bounds: HostBounds) -> bool {
        bounds.accept(&self.found.host) || (!self.found.named && self.other(bounds).is_some())
    }

    /// The compiler for a toolkit. One that was named is kept: preflight says what is wrong with it.
    pub(super) fn fitting(&self, toolkit: &Toolkit, trail: &mut Trail) -> HostCompiler {
        let first = &self.found.host;
        let bounds = toolkit.host_bounds;
        if bounds.accept(first) || self.found.named {
            trail.considered.push(considered(first, true, "is used"));
            return first.clone();
        }
        let newest = bounds.newest(first.family).unwrap_or_default();
        let family = first.family.cc();
        let refused = format!("is newer than nvcc {} accepts ({family} up to {newest})", toolkit.nvcc);
        trail.consider(considered(first, false, &refused));
        match self.other(bounds) {
            Some(other) => {
                trail.consider(considered(other, true, "is used: it is the newest that this nvcc accepts"));
                HostCompiler { origin: format!("beside {} {}", first.family.cxx(), first.version), ..other.clone() }
            }
            None => first.clone(),
        }
    }
}

fn considered(host: &HostCompiler, taken: bool, why: &str) -> Considered {
    Considered {
        what: "host compiler".to_owned(),
        place: host.cxx.to_string(),
        version: Some(host.version.clone()),
        origin: host.origin.clone(),
        taken,
        why: why.to_owned(),
    }
}
