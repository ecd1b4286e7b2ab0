//! The only printer. Text goes to standard error, data to standard output; with `--message-format json`, messages
//! are JSON lines: on standard output for `build`, on standard error for commands that answer with one document.
//!
//! Invariant: decides nothing. Everything shown is readable without colour, and a closed pipe is not an error.

pub mod diagnosis;
pub mod diagnostic;
pub mod plan;
pub mod style;
mod text;

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;

use crate::domain::exit::Exit;
use crate::domain::problem::{Problem, Problems};
use crate::report::{ErrorMessage, Event};
use crate::sys::{Env, env_vars};

/// How messages look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What the printer may do.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of one printer")]
pub struct Settings {
    /// Message format.
    pub format: Format,
    /// Whether JSON messages are the answer itself; otherwise the answer is one document, and messages stay apart.
    pub streams: bool,
    /// Leave out everything but errors and results.
    pub quiet: bool,
    /// Show every note.
    pub verbose: bool,
    /// Use ANSI colour on standard error.
    pub color: bool,
    /// Redraw one line instead of writing many.
    pub live: bool,
}

impl Settings {
    /// Settings for this terminal and environment.
    pub fn detect(format: Format, streams: bool, quiet: bool, verbose: bool, env: &Env) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let dumb = env.get("TERM") == Some("dumb");
        let color = terminal && !dumb && env.get(env_vars::NO_COLOR).is_none();
        let live = terminal && !dumb && env.get(env_vars::CI).is_none() && !quiet && format == Format::Text;
        Self { format, streams, quiet, verbose, color, live }
    }
}

/// Prints events, data and problems.
#[derive(Debug)]
pub struct Printer {
    settings: Settings,
    text: Mutex<text::Text>,
    lost: Mutex<Option<std::io::Error>>,
}

impl Printer {
    /// A printer with `settings`.
    pub fn new(settings: Settings) -> Self {
        Self { settings, text: Mutex::new(text::Text::new(settings)), lost: Mutex::new(None) }
    }

    /// What this printer may do.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Shows one event.
    pub fn event(&self, event: &Event) {
        match self.settings.format {
            Format::Json => {
                let Ok(line) = serde_json::to_string(event) else { return };
                if self.settings.streams {
                    self.data(&line);
                } else {
                    err(&format!("{line}\n"));
                }
            }
            Format::Text => {
                let rendered = self.text.lock().map(|mut text| text.render(event)).unwrap_or_default();
                err(&rendered);
            }
        }
    }

    /// Shows every problem.
    pub fn problems(&self, problems: &Problems) {
        for problem in problems {
            match self.settings.format {
                Format::Json => self.event(&Event::Error(ErrorMessage::from(problem))),
                Format::Text => {
                    let clear = self.text.lock().map(|mut text| text.clear()).unwrap_or_default();
                    err(&format!("{clear}{}\n\n", diagnostic::render(problem, self.settings.color)));
                }
            }
        }
    }

    /// Writes a result to standard output, exactly as given plus a line end.
    pub fn data(&self, text: &str) {
        let mut stream = std::io::stdout().lock();
        let written = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(b"\n"));
        match written.and_then(|()| stream.flush()) {
            // A reader that went away (`cuwright … | head`) is no failure of ours.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                if let Ok(mut lost) = self.lost.lock() {
                    lost.get_or_insert(error);
                }
            }
            _ => {}
        }
    }

    /// What kept a result from being written, as a full disk behind standard output, and the exit code for that. Shown
    /// on standard error in any format, since the other stream is broken.
    pub fn lost(&self) -> Option<Exit> {
        let lost = self.lost.lock().ok()?.take()?;
        let problem = Problem::new("cuwright::usage::output", Exit::Usage, "standard output could not be written")
            .why(lost.to_string())
            .help("free some space where it is redirected to, and run again");
        err(&format!("{}\n\n", diagnostic::render(&problem, self.settings.color)));
        Some(problem.exit())
    }
}

fn err(text: &str) {
    if text.is_empty() {
        return;
    }
    let mut stream = std::io::stderr().lock();
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
}
