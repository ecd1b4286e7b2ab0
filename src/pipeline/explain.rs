//! Feeds logs to `diagnose`: from a file, from standard input, from our own failed build; with facts from flags, from
//! that build, or from this machine where it is asked for.

use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use camino::Utf8Path;

use super::prepare::Prepared;
use crate::build::log as build_log;
use crate::compat::{GpuLookup, gpu_by_name};
use crate::diagnose::{Diagnosis, Facts, Finding, Scanner, judge};
use crate::domain::arch::Capability;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::domain::release::{Takes, Versioned};
use crate::probe::gpu;
use crate::report::Excerpt;
use crate::sys::{Env, machine};

/// Read at once.
const PIECE: usize = 1 << 18;

/// Facts as typed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// `--cuda`.
    pub cuda: Option<&'a str>,
    /// `--torch`.
    pub torch: Option<&'a str>,
    /// `--gpu`.
    pub gpu: Option<&'a str>,
}

/// The facts of flags and, with `here`, of this machine.
///
/// # Errors
/// A version or card that cannot be read.
pub fn facts(told: &Told<'_>, here: bool, env: &Env) -> Result<Facts, Problems> {
    let mut facts = Facts::default();
    if here {
        of_machine(&mut facts, env);
    }
    let mut problems = Vec::new();
    let asked = [("toolkit", Versioned::Cuda, "--cuda", told.cuda), ("torch", Versioned::Torch, "--torch", told.torch)];
    for (fact, product, flag, text) in asked.into_iter().filter_map(|(f, p, flag, text)| Some((f, p, flag, text?))) {
        match product.release(text) {
            Ok(release) => facts.give(fact, release, flag),
            Err(why) => problems.push(product.refuse(flag, text, &why, Takes::Release)),
        }
    }
    Problems::check(problems)?;
    if let Some(gpu) = told.gpu {
        let capability = gpu.parse::<Capability>().ok().or_else(|| match gpu_by_name(gpu) {
            GpuLookup::Found(gpu) => Some(gpu.capability),
            _ => None,
        });
        let capability = capability.ok_or_else(|| {
            Problem::new("cuwright::target::unknown_gpu", Exit::Usage, format!("`--gpu {gpu}` is no known GPU"))
                .help("give its capability instead, such as 8.6")
        })?;
        facts.give("gpu_arch", capability.to_string(), "--gpu");
    }
    Ok(facts)
}

/// What this machine is; toolkits and Pythons are left out, since which of them was used is not known.
fn of_machine(facts: &mut Facts, env: &Env) {
    let by = "this machine";
    of_cores(facts, by, env);
    let found = gpu::detect(env);
    if let Some((device, capability)) = found.usable().next() {
        facts.give("gpu_arch", capability.to_string(), by);
        if let Some(name) = &device.name {
            facts.give("gpu", name.as_str(), by);
        }
    }
}

fn of_cores(facts: &mut Facts, by: &str, env: &Env) {
    facts.give("cores", machine::cores().to_string(), by);
    if let Some(bytes) = machine::available_memory(env) {
        facts.give("memory_free_gib", (bytes >> 30).to_string(), by);
    }
}

/// The diagnosis of a log file, called `name` to people.
///
/// # Errors
/// A file that cannot be read.
pub fn file(path: &Utf8Path, name: &str, facts: &Facts) -> Result<Diagnosis, Problem> {
    let unreadable = |error: std::io::Error| {
        Problem::new("cuwright::usage::unreadable_file", Exit::Usage, format!("{name} cannot be read"))
            .why(error.to_string())
            .help("give a log file, or `-` for standard input")
    };
    let file = fs_err::File::open(path).map_err(unreadable)?;
    read(file, name, facts).map_err(unreadable)
}

/// The diagnosis of what comes in on standard input.
///
/// # Errors
/// An input that cannot be read.
pub fn standard_input(facts: &Facts) -> Result<Diagnosis, Problem> {
    read(std::io::stdin().lock(), "standard input", facts).map_err(|error| {
        Problem::new("cuwright::usage::unreadable_file", Exit::Usage, "standard input cannot be read")
            .why(error.to_string())
            .help("pipe a log into it: `COMMAND 2>&1 | cuwright explain -`")
    })
}

/// The diagnosis of our own failed build, whose facts are known.
pub fn build(unit: &Prepared, jobs: u32, log: &Utf8Path, env: &Env) -> Option<Diagnosis> {
    let mut facts = Facts::default();
    let by = "this build";
    facts.give("our_build", unit.recipe.name.as_str(), by);
    let chain = &unit.toolchain;
    facts.give("toolkit", chain.toolkit.nvcc.to_string(), by);
    facts.give("torch", chain.torch.version.as_str(), by);
    if let Some(cuda) = chain.torch.cuda {
        facts.give("torch_cuda", cuda.to_string(), by);
    }
    if chain.host.family == crate::domain::toolchain::HostFamily::Gcc {
        facts.give("gcc", chain.host.version.as_str(), by);
    }
    of_cores(&mut facts, "this machine", env);
    facts.give("jobs", jobs.to_string(), by);
    for (arch, _) in unit.archs.iter() {
        facts.give("archs", arch.to_string(), by);
    }
    read(fs_err::File::open(log).ok()?, log.as_str(), &facts).ok()
}

/// The failure of `step` of our own build as its last words: the cause where a rule knows it, else the first error as it stands.
pub fn problem(step: &str, status: ExitStatus, log: &Utf8Path, found: Option<&Diagnosis>) -> Problem {
    let new = |message: String| Problem::new("cuwright::build::failed", Exit::Build, message);
    let whole = format!("the whole log is {log}");
    if let Some(cause) = found.and_then(|found| found.cause.as_ref()) {
        return explained(new(format!("{step} failed ({status}): {}", cause.title)), cause).why(whole);
    }
    let problem = new(format!("{step} failed ({status})"));
    let shown = found.and_then(|found| {
        let first = found.errors.first().map(|error| match around(log, error.line) {
            Some(excerpt) => format!("where the log first names an error:\n{excerpt}"),
            None => format!("line {}: {}", error.line, error.excerpt.join("\n")),
        });
        first.or_else(|| (!found.tail.is_empty()).then(|| found.tail.join("\n")))
    });
    let problem = match (&shown, status.signal()) {
        (Some(text), _) => problem.why(text.as_str()),
        (None, Some(_)) => problem.why("it was stopped by a signal and printed nothing"),
        (None, None) => problem.why("it printed nothing"),
    };
    let problem = problem.why(whole);
    match (status.signal(), shown) {
        (Some(9), _) => {
            problem.help("signal 9 is what the kernel sends when memory runs out: build with fewer jobs (`-j`)")
        }
        (_, Some(_)) => problem.help("mend the first error above; the ones after it often follow from it"),
        (_, None) => problem.help("run the project's own `setup.py bdist_wheel` in a debugger"),
    }
}

/// What stands around a line of our own log, which begins with the command that was run.
fn around(log: &Utf8Path, line: u64) -> Option<Excerpt> {
    build_log::around(log, 1, usize::try_from(line).ok()?)
}

fn explained(problem: Problem, cause: &Finding) -> Problem {
    let place = if cause.broke.is_empty() { String::new() } else { format!("\nbroke {}", cause.broke.join(", ")) };
    let problem = problem.why(format!("line {}: {}{place}", cause.evidence.line, cause.excerpt.join("\n")));
    let problem = cause.why.iter().fold(problem, |problem, why| problem.why(why.as_str()));
    let problem = cause.not.iter().fold(problem, |problem, not| problem.why(format!("not the cause: {not}")));
    let problem = cause.mend.iter().fold(problem, |problem, mend| problem.help(mend.as_str()));
    problem.help(format!("`cuwright explain {}` tells more", cause.label))
}

fn read(mut input: impl Read, name: &str, facts: &Facts) -> std::io::Result<Diagnosis> {
    let mut scanner = Scanner::default();
    let mut piece = vec![0; PIECE];
    loop {
        match input.read(&mut piece) {
            Ok(0) => return Ok(judge(scanner, name, facts)),
            Ok(length) => scanner.feed(&piece[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
