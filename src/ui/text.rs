//! Events as lines for people, with one live line at the bottom where the terminal allows it.

use super::Settings;
use super::style::{GOOD, PLAIN, WARN, bytes, clock, count, paint, visible};
use crate::report::{Event, FileCoverage, Summary};

/// Seconds between two progress lines where nothing can be redrawn.
const HEARTBEAT: u64 = 15;
/// Characters shown of a file name.
const WIDEST: usize = 36;

/// Keeps what is needed to turn a stream of events into text.
#[derive(Debug)]
pub(super) struct Text {
    settings: Settings,
    live: bool,
    last_progress: u64,
}

impl Text {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, live: false, last_progress: 0 }
    }

    /// What removes the live line, if one is shown.
    pub(super) fn clear(&mut self) -> String {
        if std::mem::take(&mut self.live) { "\r\u{1b}[2K".to_owned() } else { String::new() }
    }

    pub(super) fn render(&mut self, event: &Event) -> String {
        let quiet = self.settings.quiet;
        let color = self.settings.color;
        let line = |label: &str, ansi: &str, text: &str| {
            let indent = format!("\n{:13}", "");
            format!("{} {}\n", paint(&format!("{label:>12}"), ansi, color), visible(text).replace('\n', &indent))
        };
        let body = match event {
            Event::Start { .. } | Event::Finish { .. } | Event::Error(_) => return String::new(),
            Event::Stage { .. } | Event::Note { .. } | Event::Progress { .. } | Event::Artifact(_) if quiet => {
                return String::new();
            }
            Event::Note { .. } if !self.settings.verbose => return String::new(),
            Event::Stage { stage, text, .. } => line(stage.verb(), PLAIN, text),
            Event::Note { text, .. } => line("note", PLAIN, text),
            Event::Warning { text, .. } => line("warning", WARN, text),
            Event::Progress { done, total, file, file_seconds, seconds, .. } => {
                return self.progress(*done, *total, file, *file_seconds, *seconds);
            }
            Event::Artifact(summary) => {
                line(if summary.restored { "Restored" } else { "Verified" }, GOOD, &table(summary))
            }
        };
        format!("{}{body}", self.clear())
    }

    fn progress(&mut self, done: u32, total: u32, file: &str, file_seconds: u64, seconds: u64) -> String {
        let steps = if total == 0 { String::new() } else { format!("[{done}/{total}] ") };
        let file = visible(file);
        let long = file.chars().count();
        // A line that wraps cannot be redrawn, and the end of a long name tells it from its like.
        let file = if self.settings.live && long > WIDEST {
            format!("…{}", file.chars().skip(long + 1 - WIDEST).collect::<String>())
        } else {
            file.to_string()
        };
        let text = format!("{steps}{file} {}", clock(file_seconds));
        if self.settings.live {
            self.live = true;
            return format!("\r\u{1b}[2K{:>12} {text}  (total {})", "", clock(seconds));
        }
        // A new build counts from zero again.
        if seconds < self.last_progress {
            self.last_progress = 0;
        }
        if seconds < self.last_progress + HEARTBEAT {
            return String::new();
        }
        self.last_progress = seconds;
        format!("{:>12} {text}  (total {})\n", "", clock(seconds))
    }
}

/// The summary: three columns of truth per file, then the facts of the wheel.
fn table(summary: &Summary) -> String {
    let version = summary.version.as_deref().map(|v| format!(" {v}")).unwrap_or_default();
    let took = if summary.restored {
        "from the cache".to_owned()
    } else {
        format!("built in {}", clock(summary.build_seconds))
    };
    let mut lines = vec![
        format!("{}{version} for {} ({took})", summary.unit, summary.requested),
        format!("toolchain  CUDA {}, torch {}, {}", summary.cuda, summary.torch, summary.python),
        format!("requested  {}", summary.requested),
        format!("effective  {}", or(&summary.effective, "no compiler command seen")),
    ];
    lines.extend(summary.files.iter().map(|file| format!("found      {}", found(file))));
    lines.extend(summary.import_output.iter().map(|line| format!("import     {line}")));
    let digest = summary.wheel_sha256.get(..12).unwrap_or_default();
    lines.push(format!("key        {}", summary.key.get(..12).unwrap_or(&summary.key)));
    lines.push(format!("wheel      {} ({}, sha256 {digest}…)", summary.wheel, bytes(summary.wheel_bytes)));
    lines.join("\n")
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
