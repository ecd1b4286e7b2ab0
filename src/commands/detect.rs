//! `detect`: shows the GPUs of this machine, or unites reports.

use fs_err as fs;
use serde_json::json;

use super::World;
use crate::cli::detect::DetectArgs;
use crate::domain::arch::ArchSet;
use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::probe::gpu::{Method, Report, Roots, archs_of, detect_with};
use crate::report::Event;
use crate::ui::style::table;

pub(super) fn run(args: &DetectArgs, world: &World<'_>) -> Result<Exit, Problems> {
    if !args.merge.is_empty() {
        return merge(args, world);
    }
    let method = args.method.as_ref().and_then(|name| Method::ALL.into_iter().find(|method| method.name() == name));
    let found = detect_with(world.env, &Roots::default(), method);
    let report = Report::from(&found);
    let problem = found.problem();
    if world.json() {
        world.printer.data(&serde_json::to_string_pretty(&report).unwrap_or_default());
        return Ok(problem.map_or(Exit::Ok, |problem| problem.exit()));
    }
    if !report.devices.is_empty() {
        world.printer.data(&text(&report));
    }
    let tell = |text: String| world.printer.event(&Event::Note { unit: None, text });
    report.steps.iter().for_each(|step| tell(format!("{}: {}", step.method, step.outcome)));
    for text in report.notes {
        world.printer.event(&Event::Warning { unit: None, text });
    }
    match problem {
        Some(problem) => Err(problem.into()),
        None => Ok(Exit::Ok),
    }
}

fn text(report: &Report) -> String {
    let mut rows = vec![["GPU", "NAME", "CAPABILITY", "KNOWN FROM", "CONFIDENCE", ""].map(str::to_owned).to_vec()];
    for device in &report.devices {
        let instances = if device.mig.is_empty() { String::new() } else { format!("{} MIG", device.mig.len()) };
        let state = if device.visible { instances } else { "hidden".to_owned() };
        rows.push(vec![
            device.index.to_string(),
            device.name.clone().unwrap_or_else(|| "-".to_owned()),
            device.capability.clone().unwrap_or_else(|| "unknown".to_owned()),
            device.source.clone(),
            device.confidence.clone(),
            state,
        ]);
    }
    let mut lines = vec![table(&rows)];
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    lines.push(format!("driver {}, for CUDA up to {}", known(&report.driver), known(&report.cuda)));
    if !report.archs.is_empty() {
        lines.push(format!("archs {}; `--arch native` builds {}", report.archs, report.native));
    }
    lines.join("\n")
}

fn merge(args: &DetectArgs, world: &World<'_>) -> Result<Exit, Problems> {
    let mut problems = Vec::new();
    let mut reports = Vec::new();
    for path in &args.merge {
        let read = fs::read_to_string(world.env.absolute(path)).map_err(|error| {
            Problem::new("cuwright::detect::bad_report", Exit::Usage, format!("{path} cannot be read"))
                .why(error.to_string())
        });
        match read.and_then(|text| archs_of(path.as_str(), &text)) {
            Ok(archs) => reports.push((path, archs)),
            Err(problem) => problems.push(problem),
        }
    }
    Problems::check(problems)?;
    let all = reports.iter().fold(ArchSet::new(), |all, (_, archs)| all.union(archs));
    if world.json() {
        let parts: Vec<_> = reports.iter().map(|(file, archs)| json!({ "file": file, "archs": archs })).collect();
        let native = all.clone().with_highest_ptx();
        let json = json!({ "schema": 1, "archs": all, "native": native, "reports": parts });
        world.printer.data(&serde_json::to_string_pretty(&json).unwrap_or_default());
    } else {
        world.printer.data(&all.to_string());
    }
    Ok(if all.is_empty() { Exit::NoTarget } else { Exit::Ok })
}
