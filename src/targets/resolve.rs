//! Turns items of a list into archs: families, GPU names, this machine, all of a toolkit.
//!
//! Collects every problem instead of stopping at the first, and writes down why each member is there.

use super::{Detected, Facts, no_target, of_detected};
use crate::compat::{self, GpuLookup, support};
use crate::domain::arch::{Arch, ArchSet, Capability, Form, Item, Origin, Spanned, parse_list};
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Snippet};

pub(super) struct Resolver<'r, 'f> {
    pub(super) facts: Facts<'f>,
    pub(super) detect: &'r mut dyn FnMut() -> Detected,
    pub(super) why: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

impl Resolver<'_, '_> {
    /// Several lists of one origin.
    pub(super) fn lists(&mut self, origin: &Origin, lists: &[String]) -> ArchSet {
        let alone = lists.len() == 1;
        lists.iter().fold(ArchSet::new(), |set, list| set.union(&self.list_of(origin, list, alone)))
    }

    /// One list.
    pub(super) fn list(&mut self, origin: &Origin, text: &str) -> ArchSet {
        self.list_of(origin, text, true)
    }

    fn list_of(&mut self, origin: &Origin, text: &str, alone: bool) -> ArchSet {
        let items = match parse_list(origin, text) {
            Ok(items) => items,
            Err(problems) => {
                self.problems.extend(problems.iter().cloned());
                return ArchSet::new();
            }
        };
        let alone = alone && items.len() == 1;
        let mut set = ArchSet::new();
        let mut literal = ArchSet::new();
        for Spanned { item, range } in items {
            let here = |label: &str| origin.snippet(text, range.clone(), label);
            match item {
                Item::Arch(arch, form) => literal.insert(arch, form),
                Item::Family { name, ptx } => set = set.union(&self.family(origin, name, ptx, here("unknown"))),
                Item::Gpu(name) => {
                    let found = gpus(&name, origin.exit).map_err(|problem| problem.at(here("not one GPU")));
                    set = set.union(&self.named(origin, &name, found));
                }
                Item::Native => set = set.union(&self.native(origin, alone)),
                Item::All => set = set.union(&self.all(origin, false, here("which archs?"))),
                Item::AllMajor => set = set.union(&self.all(origin, true, here("which archs?"))),
            }
        }
        if !literal.is_empty() {
            self.why.push(format!("{literal} from {}", origin.name));
        }
        set.union(&literal)
    }

    /// Product names, blanks and all; commas and semicolons separate names within a value.
    pub(super) fn gpus(&mut self, origin: &Origin, values: &[String]) -> ArchSet {
        let mut set = ArchSet::new();
        for value in values {
            let mut start = 0;
            for part in value.split([',', ';']) {
                let name = part.trim();
                let from = start + part.len() - part.trim_start().len();
                start += part.len() + 1;
                if !name.is_empty() {
                    let place = origin.snippet(value, from..from + name.len(), "not one GPU");
                    let found = gpus(name, origin.exit).map_err(|problem| problem.at(place));
                    set = set.union(&self.named(origin, name, found));
                }
            }
        }
        set
    }

    /// What a name stands for: one product, or several of a series.
    fn named(&mut self, origin: &Origin, name: &str, found: Result<Vec<compat::Gpu>, Problem>) -> ArchSet {
        let gpus = found.unwrap_or_else(|problem| {
            self.problems.push(problem);
            Vec::new()
        });
        for gpu in &gpus {
            let source = compat::user::source_of(gpu.name);
            let as_in = if gpus.len() > 1 { format!(" ({})", gpu.name) } else { String::new() };
            self.why.push(format!("{} is {name}{as_in} from {}, by {source}", gpu.capability, origin.name));
        }
        gpus.iter().map(|gpu| (Arch::plain(gpu.capability), Form::SASS)).collect()
    }

    /// The machine's GPUs, because nothing else names a target.
    pub(super) fn machine(&mut self) -> ArchSet {
        let detected = (self.detect)();
        self.detected(&detected, "on this machine", true)
    }

    fn native(&mut self, origin: &Origin, alone: bool) -> ArchSet {
        let detected = (self.detect)();
        self.detected(&detected, &format!("for `native` from {}", origin.name), alone)
    }

    fn detected(&mut self, detected: &Detected, reason: &str, with_ptx: bool) -> ArchSet {
        if detected.gpus.is_empty() {
            self.problems.push(detected.problem.clone().unwrap_or_else(|| no_target(detected)));
            return ArchSet::new();
        }
        for (capability, evidence) in &detected.gpus {
            self.why.push(format!("{capability} is {evidence}, {reason}"));
        }
        let set = of_detected(detected);
        if with_ptx {
            if let Some(highest) = set.virtuals().next_back() {
                self.why.push(format!("PTX of {highest}, the highest, so that a later GPU can start"));
            }
            return set;
        }
        set.real().map(|arch| (arch, Form::SASS)).collect()
    }

    fn family(&mut self, origin: &Origin, name: &'static str, ptx: bool, place: Snippet) -> ArchSet {
        let cuda = self.facts.compiler.map(|compiler| compiler.version);
        let Some(set) = compat::families(name, self.facts.torch, cuda) else {
            let message = format!("`{name}` is a family that no torch in the table knows");
            let problem = Problem::new("cuwright::target::unknown_family", origin.exit, message);
            self.problems.push(problem.help("name its archs instead").at(place));
            return ArchSet::new();
        };
        let set = if ptx { set.with_highest_ptx() } else { set };
        self.why.push(format!("{set} is {name} from {}, as torch understands it", origin.name));
        set
    }

    fn all(&mut self, origin: &Origin, major_only: bool, place: Snippet) -> ArchSet {
        let word = if major_only { "all-major" } else { "all" };
        let mut archs = self.facts.compiler.map(|compiler| compiler.plain()).unwrap_or_default();
        let Some(lowest) = archs.first().copied() else {
            let message = format!("`{word}` needs a toolkit to say which archs there are");
            let problem = Problem::new(super::NEEDS_TOOLKIT, Exit::NoTarget, message);
            self.problems.push(problem.help("name one: `--cuda 12.8`").at(place));
            return ArchSet::new();
        };
        // A word asks for what can be had; an arch that is written out and refused stays an error elsewhere.
        let refused = support::refused_by_torch(&archs, self.facts.torch, self.facts.torch_accepts);
        archs.retain(|arch| !refused.contains(arch));
        // nvcc's own meaning: the first of each generation, besides the lowest it can target; PTX of the last of those.
        let generation = |arch: &Arch| arch.capability.minor == 0 || *arch == lowest;
        let highest = archs.iter().rev().find(|arch| arch.capability.minor == 0).copied();
        let kept = archs.iter().copied().filter(|arch| !major_only || generation(arch));
        let set: ArchSet =
            kept.map(|arch| (arch, if Some(arch) == highest { Form::BOTH } else { Form::SASS })).collect();
        let release = self.facts.compiler.map(|compiler| compiler.version.release().to_string()).unwrap_or_default();
        self.why.push(format!("{set} is `{word}` of CUDA {release} from {}", origin.name));
        let would_be = |arch: &&Arch| !major_only || generation(arch);
        let torch = self.facts.torch.unwrap_or_default();
        let told =
            refused.iter().filter(would_be).map(|arch| format!("{arch} left out: torch {torch} does not accept it"));
        let told: Vec<String> = told.collect();
        self.why.extend(told.iter().cloned());
        self.warnings.extend(told);
        set
    }
}

/// The products that `name` stands for: one, or one for each capability of a series; a mistake ends with `exit`.
///
/// # Errors
/// A name that is unknown, that products of different capability carry, or that no toolkit compiles for.
pub fn gpus(name: &str, exit: Exit) -> Result<Vec<compat::Gpu>, Problem> {
    match compat::gpu_by_name(name) {
        GpuLookup::Found(gpu) => Ok(vec![gpu]),
        GpuLookup::Several(gpus) => Ok(gpus),
        GpuLookup::Ambiguous(candidates) => Err(ambiguous_gpu(name, &candidates, exit)),
        GpuLookup::Retired(retired) => Err(retired_gpu(name, retired, exit)),
        GpuLookup::Unknown(near) => Err(unknown_gpu(name, &near, exit)),
    }
}

/// A product that is known and that nothing can be built for.
fn retired_gpu(name: &str, retired: compat::Retired, exit: Exit) -> Problem {
    let capability = retired.capability.replace('|', " or ");
    Problem::new("cuwright::target::retired_gpu", exit, format!("no supported CUDA release compiles for `{name}`"))
        .why(format!("its compute capability is {capability}, generation {}", retired.generation))
        .why(format!("CUDA {} was the last release that compiles for it", retired.last))
        .help("remove it from the list: cuwright supports compute capability 3.0 and newer")
}

/// A name that products of different capability carry.
pub fn ambiguous_gpu(name: &str, candidates: &[compat::Candidate], exit: Exit) -> Problem {
    const SHOWN: usize = 8;
    let message = format!("`{name}` names GPUs of different compute capability");
    let mut problem = Problem::new("cuwright::target::ambiguous_gpu", exit, message);
    // The shortest name of each capability says it best.
    let mut by_capability: std::collections::BTreeMap<&[Capability], Vec<&str>> = std::collections::BTreeMap::new();
    for candidate in candidates {
        by_capability.entry(&candidate.capabilities).or_default().push(candidate.name);
    }
    for (capabilities, mut names) in by_capability.into_iter().take(SHOWN) {
        names.sort_unstable_by_key(|name| name.len());
        let list: Vec<String> = capabilities.iter().map(Capability::to_string).collect();
        problem = problem.why(format!("{} is {}", names[0], list.join(" or ")));
    }
    let by_pci = candidates.iter().any(|candidate| candidate.capabilities.len() > 1);
    problem = problem.help(if by_pci {
        "the name alone cannot decide: name the arch, or run `cuwright detect` on that machine"
    } else {
        "write the full product name, or name the arch"
    });
    problem
}

/// A name that no table knows.
pub fn unknown_gpu(name: &str, near: &[&str], exit: Exit) -> Problem {
    let problem =
        Problem::new("cuwright::target::unknown_gpu", exit, format!("`{name}` is no GPU that the table knows"));
    let problem = match near {
        [] => problem,
        names => problem.help(format!("did you mean {}?", names.join(", or "))),
    };
    problem.help("or name its arch, such as `8.6`: a compute capability works without the table")
}
