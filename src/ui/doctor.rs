//! The report on a machine as one page: a block a topic, a line a fact.

use std::time::Duration;

use camino::Utf8Path;

use super::style::{age, bytes};
use crate::pipeline::doctor::{Doctor, PythonReport, RecipeReport};
use crate::pipeline::toolchain;
use crate::report::{ErrorMessage, Location};

/// Toolchains of our own that a page tells of one by one.
const OWN_SHOWN: usize = 2;

/// Renders the report, without a final line end. Without `all`, only the first of cuwright's own toolchains are told.
pub fn text(report: &Doctor, all: bool) -> String {
    let mut page = Page::default();
    let gpus = &report.gpus;
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    match (&gpus.driver, gpus.devices.is_empty()) {
        (None, true) => page.fact("driver", "none: nvcc needs no GPU, and targets must be named"),
        _ => page.fact("driver", &format!("{}, for CUDA up to {}", known(&gpus.driver), known(&gpus.cuda))),
    }
    for device in &gpus.devices {
        let hidden = if device.visible { "" } else { ", hidden" };
        let name = device.name.as_deref().unwrap_or("an unnamed GPU");
        page.fact("gpu", &format!("{} {name}, {}{hidden}", device.index, known(&device.capability)));
    }
    let toolkits = report.toolkits.iter().map(|one| (one.place.as_str(), one.to_string()));
    page.places("toolkit", toolkits, all);
    if report.toolkits.is_empty() {
        page.fact("toolkit", "none; wheels bring one");
    }
    for one in &report.compilers {
        let used = if one.taken { "used; " } else { "" };
        let version = one.version.clone().map(|version| format!("{version} at ")).unwrap_or_default();
        page.fact("compiler", &format!("{version}{} ({}): {used}{}", one.place, one.origin, one.why));
    }
    for one in &report.pythons {
        page.fact("python", &python(one));
    }
    for one in &report.tools {
        let note = one.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        page.fact("tool", &format!("{} {} at {}{note}", one.name, known(&one.version), one.path));
    }
    let ptxas = report.ptxas.iter().map(|one| {
        let lacks = if one.lacks.is_empty() { String::new() } else { format!(", lacks {}", one.lacks.join(", ")) };
        let version = one.version.as_ref().map_or_else(|| known(&one.problem), |version| format!("CUDA {version}"));
        (one.path.as_str(), format!("{version} at {} ({}){lacks}", one.path, one.user))
    });
    page.places("ptxas", ptxas, all);
    machine(report, &mut page);
    for one in &report.torch_locks {
        let held = one.holder.as_ref().map_or("nobody holds it".to_owned(), |holder| format!("held by {holder}"));
        page.fact("torch lock", &format!("{}: {} old, {held}", one.path, age(Duration::from_secs(one.age))));
    }
    for one in &report.variables {
        page.fact("variable", &one.to_string());
    }
    for one in &report.problems {
        problem("problem", one, &mut page);
    }
    for one in &report.recipes {
        recipe(one, &mut page);
    }
    for one in &report.findings {
        page.fact("finding", one);
    }
    page.0.join("\n")
}

fn machine(report: &Doctor, page: &mut Page) {
    let machine = &report.machine;
    let memory = machine
        .available_memory
        .map_or_else(|| "unknown memory".to_owned(), |free| format!("{} available", bytes(free)));
    let group = match (&machine.group_limit, &machine.group) {
        (Some(limit), Some(group)) => format!(", {} allowed by {group}", bytes(*limit)),
        _ => String::new(),
    };
    page.fact("machine", &format!("{} cores, {memory}{group}", machine.cores));
    let limit = |value: Option<u64>| value.map_or_else(|| "no limit".to_owned(), |value| value.to_string());
    page.fact(
        "limits",
        &format!(
            "open files {}, processes {}, address space {}",
            limit(machine.open_files),
            limit(machine.processes),
            machine.address_space.map_or_else(|| "no limit".to_owned(), bytes)
        ),
    );
    for one in &report.disks {
        page.fact("disk", &format!("{} left for {} at {}", bytes(one.free), one.what, one.folder));
    }
    for one in &report.caches {
        let more = if one.counted { "" } else { "more than " };
        page.fact("cache", &format!("{more}{} of {} at {}", bytes(one.bytes), one.what, one.folder));
    }
}

fn python(one: &PythonReport) -> String {
    let place = format!("{} ({})", one.executable, one.origin);
    let Some(version) = &one.version else {
        return format!("{place} cannot be used: {}", one.problem.as_deref().unwrap_or("unknown"));
    };
    let headers = if one.headers { "" } else { ", no headers (python3-dev)" };
    let torch = match &one.torch {
        None => "no torch".to_owned(),
        Some(torch) => {
            let cuda = torch.cuda.as_ref().map_or("no CUDA".to_owned(), |cuda| format!("CUDA {cuda}"));
            let abi = if torch.cxx11_abi { "" } else { ", old C++ ABI" };
            format!("torch {} for {cuda}{abi}", torch.version)
        }
    };
    format!("{version} at {place}: {torch}{headers}")
}

fn recipe(one: &RecipeReport, page: &mut Page) {
    let archs = one.archs.as_ref().map(|archs| format!(" for {archs}")).unwrap_or_default();
    let state = match (one.can_build, &one.toolchain) {
        (false, _) => format!("cannot be built{archs}"),
        (true, Some(toolchain)) => format!("can be built{archs} with {toolchain}"),
        (true, None) => format!("can be built{archs}, once this is brought"),
    };
    page.fact("recipe", &format!("{} {state}", one.name));
    one.why.iter().for_each(|why| page.fact("", why));
    one.problems.iter().for_each(|one| problem("", one, page));
    for missing in &one.missing {
        page.fact("", &missing.message);
        reasons(missing, page);
    }
    one.warnings.iter().for_each(|warning| page.fact("", &format!("warning: {warning}")));
}

fn problem(label: &str, problem: &ErrorMessage, page: &mut Page) {
    page.fact(label, &format!("error[{}]: {}", problem.code, problem.message));
    if let Some(Location { origin, line, column, label, .. }) = &problem.location {
        page.fact("", &format!("  at {origin}:{line}:{column}: {label}"));
    }
    reasons(problem, page);
}

fn reasons(problem: &ErrorMessage, page: &mut Page) {
    problem.why.iter().for_each(|why| page.fact("", &format!("  why:  {why}")));
    problem.help.iter().for_each(|help| page.fact("", &format!("  help: {help}")));
}

#[derive(Default)]
struct Page(Vec<String>);

impl Page {
    /// Facts about places; those inside toolchains of our own are many and much alike.
    fn places<'a>(&mut self, label: &str, facts: impl Iterator<Item = (&'a str, String)>, all: bool) {
        let facts: Vec<_> = facts
            .map(|(place, text)| (toolchain::kept_in(Utf8Path::new(place)).map(Utf8Path::to_owned), text))
            .collect();
        let own = facts.iter().filter(|(folder, _)| folder.is_some()).count();
        // One that is left is told rather than counted.
        let shown = if all || own == OWN_SHOWN + 1 { own } else { OWN_SHOWN };
        let mut seen = 0;
        for (folder, text) in &facts {
            seen += usize::from(folder.is_some());
            match folder {
                Some(folder) if seen == shown + 1 => {
                    self.fact(label, &format!("and {} more in {folder}; `-v` lists them", own - shown));
                }
                Some(_) if seen > shown => {}
                _ => self.fact(label, text),
            }
        }
    }

    fn fact(&mut self, label: &str, text: &str) {
        let repeated = label.is_empty()
            || self
                .0
                .iter()
                .rev()
                .find(|line| !line.starts_with(' '))
                .is_some_and(|line| line.split("  ").next() == Some(label));
        let label = if repeated { "" } else { label };
        for (index, line) in text.lines().enumerate() {
            let label = if index == 0 { label } else { "" };
            self.0.push(format!("{label:<11} {line}"));
        }
    }
}
