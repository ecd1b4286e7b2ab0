//! Events as lines for people.
//!
//! Where a CI service folds sections, a unit's lines stand in one of its own: as they come where the unit is alone, and
//! in one piece at its end where several would mix. What must be seen stands outside: warnings, results, and the line
//! every now and then which shows that a build is alive.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Settings;
use super::progress::doing;
use super::style::{GOOD, PLAIN, WARN, bytes, clock, count, paint, table, visible};
use crate::report::summary::Kind;
use crate::report::{EffectiveSources, Ended, Event, FileCoverage, Planned, Status, Summary};
use crate::sys::clock::now;

/// Seconds between two progress lines where nothing can be redrawn.
const HEARTBEAT: u64 = 15;

/// Keeps what is needed to turn a stream of events into text.
#[derive(Debug)]
pub(super) struct Text {
    settings: Settings,
    several: bool,
    last_progress: BTreeMap<String, u64>,
    /// What goes into sections, by unit; where one unit is alone, whether its section is open.
    folds: BTreeMap<String, String>,
    ended: Vec<Ended>,
    /// Names of the units, in the order in which they were asked for.
    order: Vec<String>,
}

impl Text {
    pub(super) fn new(settings: Settings) -> Self {
        let (last_progress, folds) = (BTreeMap::new(), BTreeMap::new());
        Self { settings, several: false, last_progress, folds, ended: Vec::new(), order: Vec::new() }
    }

    /// What an event says.
    pub(super) fn render(&mut self, event: &Event) -> String {
        let Settings { quiet, verbose, .. } = self.settings;
        match event {
            Event::Start { .. } | Event::Error(_) | Event::Diagnosis { .. } => String::new(),
            Event::Warning { unit, text } => self.line("warning", WARN, unit.as_deref(), text),
            Event::Units { units } => self.units(units),
            Event::Unit(ended) => {
                self.ended.push(ended.clone());
                self.unfold(&ended.unit)
            }
            Event::Finish { .. } => self.table(),
            _ if quiet => String::new(),
            Event::Waiting { text } => self.line("Waiting", PLAIN, None, text),
            Event::Stage { passing: true, .. } | Event::Progress { .. } if self.settings.live => String::new(),
            Event::Stage { unit, stage, text, .. } => {
                let line = self.line(stage.verb(), PLAIN, Some(unit), text);
                self.fold(unit, line)
            }
            Event::Note { .. } | Event::Output { .. } if !verbose => String::new(),
            Event::Note { unit, text } => {
                let line = self.line("note", PLAIN, unit.as_deref(), text);
                match unit {
                    Some(unit) => self.fold(unit, line),
                    None => line,
                }
            }
            Event::Output { unit, line } => {
                let line = self.output(unit, line);
                self.fold(unit, line)
            }
            Event::Progress { unit, done, total, file, file_seconds, seconds, memory } => {
                if !self.is_due(unit, *seconds) {
                    return String::new();
                }
                let steps = if *total == 0 { String::new() } else { format!("[{done}/{total}] ") };
                self.line("", PLAIN, Some(unit), &format!("{steps}{}", doing(file, *file_seconds, *seconds, *memory)))
            }
            Event::Artifact(summary) => {
                let label = if summary.restored { "Restored" } else { "Verified" };
                let text = if self.several && !verbose { short(summary) } else { whole(summary) };
                let unfolded = self.unfold(&summary.unit);
                format!("{unfolded}{}", self.line(label, GOOD, None, &text))
            }
        }
    }

    /// What must come before a problem of a unit is shown: whatever leads to it.
    pub(super) fn before_problem(&mut self, unit: Option<&str>) -> String {
        let Some(unit) = unit else { return String::new() };
        let head = if self.several { self.line("Failed", WARN, None, unit) } else { String::new() };
        format!("{}{head}", self.unfold(unit))
    }

    fn line(&self, label: &str, ansi: &str, unit: Option<&str>, text: &str) -> String {
        let indent = format!("\n{:13}", "");
        let unit = unit.filter(|_| self.several).map(|unit| format!("{unit}: ")).unwrap_or_default();
        let text = visible(text).replace('\n', &indent);
        let text = self.settings.service.map_or_else(|| text.clone(), |service| service.harmless(&text));
        format!("{} {unit}{text}\n", paint(&format!("{label:>12}"), ansi, self.settings.color))
    }

    /// A line of the build system.
    fn output(&self, unit: &str, line: &str) -> String {
        let line = visible(line);
        let line = self.settings.service.map_or_else(|| line.to_string(), |service| service.harmless(&line));
        if self.several { format!("{unit} | {line}\n") } else { format!("{line}\n") }
    }

    /// Whether a progress line is due. A new build counts from zero again.
    fn is_due(&mut self, unit: &str, seconds: u64) -> bool {
        let last = self.last_progress.entry(unit.to_owned()).or_default();
        if seconds < *last {
            *last = 0;
        }
        let due = seconds >= *last + HEARTBEAT;
        if due {
            *last = seconds;
        }
        due
    }

    /// A line that belongs into the section of a unit.
    fn fold(&mut self, unit: &str, line: String) -> String {
        let Some(service) = self.settings.service else { return line };
        let begun = self.folds.contains_key(unit);
        let held = self.folds.entry(unit.to_owned()).or_default();
        if self.several {
            held.push_str(&line);
            return String::new();
        }
        if begun { line } else { format!("{}{line}", service.begin(unit, false, now())) }
    }

    /// The section of a unit, or the end of the open one.
    fn unfold(&mut self, unit: &str) -> String {
        let (Some(service), Some(held)) = (self.settings.service, self.folds.remove(unit)) else {
            return String::new();
        };
        let begin = if self.several { service.begin(unit, true, now()) } else { String::new() };
        format!("{begin}{held}{}", service.end(unit, now()))
    }

    fn units(&mut self, units: &[Planned]) -> String {
        self.several = units.len() > 1;
        self.order = units.iter().map(|unit| unit.unit.clone()).collect();
        if !self.several || self.settings.quiet {
            return String::new();
        }
        let pruned = units.iter().filter_map(|unit| Some((unit, unit.pruned.as_ref()?)));
        let mut text = count(units.len() - pruned.clone().count(), "unit");
        if pruned.clone().next().is_some() {
            let _ = write!(text, ", {} of the matrix pruned", count(pruned.clone().count(), "cell"));
        }
        let lines = pruned.map(|(unit, why)| self.line("Pruned", WARN, Some(&unit.unit), why));
        format!("{}{}", self.line("Units", PLAIN, None, &text), lines.collect::<String>())
    }

    /// How every unit ended, where there were several.
    fn table(&self) -> String {
        if !self.several || self.settings.quiet || self.ended.is_empty() {
            return String::new();
        }
        let mut rows = vec![["UNIT", "STATUS", "TIME", "ARCHS", "SIZE", "CACHE"].map(str::to_owned).to_vec()];
        let mut ended: Vec<&Ended> = self.ended.iter().collect();
        ended.sort_by_key(|ended| self.order.iter().position(|unit| *unit == ended.unit));
        rows.extend(ended.into_iter().map(row));
        format!("\n{}\n", visible(&table(&rows)))
    }
}

fn row(ended: &Ended) -> Vec<String> {
    let (status, cache) = match ended.status {
        Status::Built => ("ok", "built"),
        Status::Restored => ("ok", "hit"),
        other => (other.word(), ""),
    };
    let begun = !matches!(ended.status, Status::NotStarted | Status::Pruned);
    vec![
        ended.unit.clone(),
        status.to_owned(),
        if begun { clock(ended.seconds) } else { String::new() },
        ended.archs.clone().unwrap_or_default(),
        ended.wheel_bytes.map(bytes).unwrap_or_default(),
        cache.to_owned(),
    ]
}

/// The first line of a result: what it is, how it came about, how large it is.
fn head(summary: &Summary) -> String {
    let version = summary.version.as_deref().map(|v| format!(" {v}")).unwrap_or_default();
    let took = if summary.restored {
        "from the cache".to_owned()
    } else {
        format!("built in {}", clock(summary.build_seconds))
    };
    format!("{}{version} for {} ({took}, {})", summary.unit, summary.requested, bytes(summary.wheel_bytes))
}

/// A result among others: the archs of every file, and the wheel.
fn short(summary: &Summary) -> String {
    let mut lines = vec![head(summary)];
    lines.extend(summary.files.iter().map(|file| format!("found      {}", found(file))));
    lines.push(format!("{}    {}", label(summary.kind), summary.wheel));
    lines.join("\n")
}

/// The whole result: three columns of truth per file, then the facts of the wheel.
fn whole(summary: &Summary) -> String {
    let mut lines = vec![
        head(summary),
        format!("toolchain  CUDA {}, torch {}, {}", summary.cuda, summary.torch, summary.python),
        format!("requested  {}", summary.requested),
    ];
    lines.extend(effective(summary).into_iter().map(|line| format!("effective  {line}")));
    if !summary.ran_again.is_empty() {
        lines.push(format!("memory     ran short: {} ran again, alone", summary.ran_again.join(", ")));
    }
    lines.extend(summary.files.iter().map(|file| format!("found      {}", found(file))));
    lines.extend(summary.import_output.iter().map(|line| format!("import     {line}")));
    if let Some(check) = &summary.gpu_check {
        lines.push(format!("GPU check  {}", check.headline()));
        lines.extend(check.output.iter().map(|line| format!("GPU check  {line}")));
    }
    let digest = summary.wheel_sha256.get(..12).unwrap_or_default();
    lines.push(format!("key        {}", summary.key.get(..12).unwrap_or(&summary.key)));
    lines.push(format!("{}    {} (sha256 {digest}…)", label(summary.kind), summary.wheel));
    lines.join("\n")
}

fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Wheel => "wheel  ",
        Kind::Tree => "archive",
    }
}

/// One line for each arch set that compilers were asked for.
fn effective(summary: &Summary) -> Vec<String> {
    let line = |group: &EffectiveSources| {
        let archs = or(&group.archs, "nvcc's default");
        match group.sources.as_slice() {
            [first, _, rest @ ..] if summary.effective_sources.len() > 1 => {
                format!("{archs} in {first} and {} more", rest.len() + 1)
            }
            [one] => format!("{archs} in {one}"),
            all => format!("{archs} in {}", count(all.len(), "source")),
        }
    };
    match summary.effective_sources.as_slice() {
        [] => vec![or(&summary.effective, "no compiler command seen").to_owned()],
        groups => groups.iter().map(line).collect(),
    }
}

fn or<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() { instead } else { text }
}

fn found(file: &FileCoverage) -> String {
    let waived = file.waived.as_deref().map(|reason| format!(" (waived: {reason})")).unwrap_or_default();
    if file.found.is_empty() {
        return format!("no device code in {}{waived}", file.file);
    }
    let ptx = if file.ptx > 0 { format!(", {} PTX", file.ptx) } else { String::new() };
    format!("{} in {} ({}{ptx}){waived}", file.found, file.file, count(file.cubins, "cubin"))
}

#[cfg(test)]
mod tests;
