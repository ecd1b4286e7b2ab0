//! The only printer. Text goes to standard error, data to standard output; with `--message-format json`, messages
//! are JSON lines: on standard output for `build`, on standard error for commands that answer with one document.
//!
//! Invariant: decides nothing. Everything shown is readable without colour, and a closed pipe is not an error.

pub mod ci;
pub mod diagnosis;
pub mod diagnostic;
pub mod doctor;
pub mod plan;
mod progress;
pub mod style;
mod text;

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressDrawTarget;

use self::ci::Service;
use self::progress::Bars;

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
    /// For programs.
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
    /// Redraw bars instead of writing many lines.
    pub live: bool,
    /// The CI service that folds and annotates, for commands that stream messages.
    pub service: Option<Service>,
}

impl Settings {
    /// Settings for this terminal and environment.
    pub fn detect(format: Format, streams: bool, quiet: bool, verbose: bool, env: &Env) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let dumb = env.get(env_vars::TERM) == Some("dumb");
        let color = terminal && !dumb && env.get(env_vars::NO_COLOR).is_none();
        let plain = env.get(env_vars::CI).is_some() || env.get(env_vars::NO_COLOR).is_some();
        let live = terminal && !dumb && !plain && !quiet && format == Format::Text;
        let service = Service::detect(env).filter(|_| streams && !live && format == Format::Text);
        Self { format, streams, quiet, verbose, color, live, service }
    }

    /// The same, with lines instead of bars where that is asked for.
    #[must_use]
    pub fn without_bars(self, asked: bool) -> Self {
        Self { live: self.live && !asked, ..self }
    }
}

/// Prints events, data and problems.
#[derive(Debug)]
pub struct Printer {
    settings: Settings,
    text: Mutex<text::Text>,
    bars: Option<Bars>,
    lost: Mutex<Option<std::io::Error>>,
}

impl Printer {
    /// A printer with `settings`.
    pub fn new(settings: Settings) -> Self {
        let bars = settings.live.then(|| Bars::new(ProgressDrawTarget::stderr(), true, err));
        Self { settings, text: Mutex::new(text::Text::new(settings)), bars, lost: Mutex::new(None) }
    }

    /// What this printer may do.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Shows one event.
    pub fn event(&self, event: &Event) {
        match self.settings.format {
            Format::Json if matches!(event, Event::Output { .. }) && !self.settings.verbose => {}
            Format::Json => {
                let Ok(line) = serde_json::to_string(event) else { return };
                if self.settings.streams {
                    self.data(&line);
                } else {
                    err(&format!("{line}\n"));
                }
            }
            Format::Text => {
                if let (Event::Finish { .. }, Some(bars)) = (event, &self.bars) {
                    bars.clear();
                }
                // Whoever renders also writes, so that lines of units side by side come whole and in order.
                let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
                let rendered = text.render(event);
                self.write(&rendered);
                if let Some(bars) = &self.bars {
                    bars.follow(event);
                }
            }
        }
    }

    /// Shows every problem, and which unit it stopped.
    pub fn problems(&self, unit: Option<&str>, problems: &Problems) {
        if self.settings.format == Format::Json {
            for problem in problems {
                let message = ErrorMessage { unit: unit.map(str::to_owned), ..ErrorMessage::from(problem) };
                self.event(&Event::Error(message));
            }
            return;
        }
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shown = text.before_problem(unit);
        for problem in problems {
            let rendered = diagnostic::render(problem, self.settings.color);
            match self.settings.service {
                Some(service) => {
                    let lines: Vec<String> = rendered.lines().map(|line| service.harmless(line)).collect();
                    let _ = write!(shown, "{}\n\n{}", lines.join("\n"), service.annotation(problem));
                }
                None => drop(write!(shown, "{rendered}\n\n")),
            }
        }
        self.write(&shown);
    }

    /// Takes away whatever is redrawn. Nothing is shown after this.
    pub fn close(&self) {
        if let Some(bars) = &self.bars {
            bars.clear();
        }
    }

    /// Writes text for people.
    fn write(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.print(text),
            None => err(text),
        }
    }

    /// Writes a result to standard output, exactly as given plus a line end.
    pub fn data(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.aside(|| self.put(text)),
            None => self.put(text),
        }
    }

    fn put(&self, text: &str) {
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
