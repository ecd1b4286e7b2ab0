//! `verify`: asks the judge and shows what it found, as text, JSON and JUnit.

use std::fmt::Write as _;

use super::{World, report_file};
use crate::cli::verify::VerifyArgs;
use crate::domain::exit::Exit;
use crate::domain::problem::Problems;
use crate::pipeline::judge::{self, Question};
use crate::report::{Event, GpuStatus};
use crate::sys::files::write_output;
use crate::ui::style::{count, table};
use crate::verify::abi::Abi;
use crate::verify::junit;
use crate::verify::outcome::{File, Input, Level, Outcome};

pub(super) fn verify(args: &VerifyArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let question = Question {
        files: args.files.clone(),
        package: args.package.clone(),
        expect: args.expect.clone(),
        profile: args.profile.clone(),
        strict: args.strict,
        runs_on: args.runs_on.clone(),
        driver: args.driver.clone(),
        recipe: args.recipe.clone(),
        python: args.python.clone(),
        torch_dir: args.torch_dir.clone(),
    };
    let junit = args.junit.as_ref().map(|path| (world.env.absolute(path), path));
    if let Some((path, shown)) = &junit {
        report_file::check(path, shown, None)?;
    }
    let outcome = judge::judge(&question, world.env, world.cache_root().ok().as_deref())?;
    if let Some((path, shown)) = &junit {
        write_output(path, junit::render(&outcome).as_bytes()).map_err(|error| report_file::failed(shown, &error))?;
    }
    if world.json() {
        world.printer.data(&serde_json::to_string_pretty(&outcome).unwrap_or_default());
    } else {
        for input in &outcome.inputs {
            for text in texts(&outcome, input) {
                world.printer.data(&text);
            }
        }
        for finding in outcome.findings().filter(|finding| finding.level == Level::Warning) {
            let text = finding.message.message.clone();
            world.printer.event(&Event::Warning { unit: None, text });
        }
    }
    let verdict = outcome.check();
    if !world.json() {
        world.printer.data(&said(&outcome));
    }
    verdict?;
    Ok(Exit::Ok)
}

/// The verdict in one line, the last one of the answer.
fn said(outcome: &Outcome) -> String {
    let files: usize = outcome.inputs.iter().map(|input| input.files.len()).sum();
    let failed = outcome.inputs.iter().filter(|input| !input.ok).count();
    let warnings = outcome.findings().filter(|finding| finding.level == Level::Warning).count();
    let warned = if warnings > 0 { format!(", {}", count(warnings, "warning")) } else { String::new() };
    let inputs = count(outcome.inputs.len(), "input");
    if outcome.ok {
        format!("verified: {inputs}, {}{warned}", count(files, "file"))
    } else {
        format!("failed: {failed} of {inputs}{warned}")
    }
}

/// What an input shows, a text a file.
fn texts(outcome: &Outcome, input: &Input) -> Vec<String> {
    let mut texts: Vec<String> = input.files.iter().map(|file| text(outcome, file)).collect();
    if let Some(import) = input.import.as_ref().filter(|import| import.ok) {
        texts.push(format!("{}: imports", input.file));
        texts.extend(import.output.iter().map(|line| format!("  {line}")));
    }
    // A failure is told as the finding that it is.
    if let Some(check) = input.gpu_check.as_ref().filter(|check| check.status != GpuStatus::Failed) {
        texts.push(format!("{}: GPU check {}", input.file, check.headline()));
        texts.extend(check.output.iter().map(|line| format!("  {line}")));
    }
    texts
}

fn text(outcome: &Outcome, file: &File) -> String {
    let holds = if file.found.is_empty() { "no device code" } else { &file.found };
    let mut head = format!("{}: found {holds}", file.file);
    if let Some(expected) = &outcome.expected {
        let _ = write!(head, "; expected {expected}");
    }
    if let Some(reason) = &file.waived {
        let _ = write!(head, " (waived: {reason})");
    }
    if let Some(abi) = &file.abi {
        let _ = write!(head, "\n  {}", interface(abi));
    }
    // Without code there is nothing to tell of any GPU that the first line does not.
    if file.gpus.is_empty() || file.found.is_empty() {
        return head;
    }
    let mut rows = vec![["  GPU", "CAPABILITY", "RUNS", "BY", "DRIVER", ""].map(str::to_owned).to_vec()];
    for fate in &file.gpus {
        let driver = fate.driver.as_ref().map_or_else(String::new, |floor| format!("{floor} or newer"));
        let why = fate.waived.as_ref().map(|reason| format!("waived: {reason}")).or_else(|| fate.why.clone());
        rows.push(vec![
            format!("  {}", fate.gpu),
            fate.capability.clone(),
            fate.runs.clone(),
            fate.by.join(", "),
            driver,
            why.unwrap_or_default(),
        ]);
    }
    format!("{head}\n{}", table(&rows))
}

/// How a file links, in one line.
fn interface(abi: &Abi) -> String {
    let mut parts = vec![abi.machine.clone()];
    parts.extend(abi.versions.get("GLIBC").map(|version| format!("glibc {version}")));
    parts.extend(abi.versions.get("GLIBCXX").map(|version| format!("GLIBCXX {version}")));
    parts.extend(abi.manylinux.as_ref().map(|level| format!("manylinux_{}", level.replace('.', "_"))));
    parts.extend(abi.cudart.map(|major| format!("CUDA runtime {major}")));
    parts.extend(match (abi.torch.as_str(), abi.cxx11_abi) {
        ("stable", _) => Some("torch's stable interface alone".to_owned()),
        ("c++", Some(false)) => Some("torch's C++ interface with the old ABI".to_owned()),
        ("c++", _) => Some("torch's C++ interface".to_owned()),
        _ => None,
    });
    parts.extend(match (abi.python.as_str(), &abi.limited_since) {
        ("limited", Some(since)) => Some(format!("Python's stable ABI of {since}")),
        ("full", _) => Some("Python's full API".to_owned()),
        _ => None,
    });
    parts.join(", ")
}
