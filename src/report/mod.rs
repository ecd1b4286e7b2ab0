//! What cuwright says while it works, as values: one stream feeds the terminal, JSON lines and tests alike.
//!
//! Invariant: pure and additive. An event is never renamed, a field never changes its meaning; `SCHEMA` counts
//! breaking changes and `schemas/messages.schema.json` is generated from here.

use serde::Serialize;

use crate::diagnose::Diagnosis;
use crate::domain::problem::{Problem, Snippet};

pub mod excerpt;
pub mod summary;
pub mod timeline;
pub mod timings;
pub mod units;

pub use excerpt::Excerpt;
pub use summary::{EffectiveSources, FileCoverage, GpuCheck, GpuStatus, Summary};
pub use units::{Ended, Planned, Status};

/// Version of the JSON messages.
pub const SCHEMA: u32 = 1;

/// One message. As JSON, the tag is `reason`, in kebab-case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Event {
    /// First message of every run.
    Start {
        /// Version of these messages.
        schema: u32,
        /// Version of cuwright.
        version: String,
        /// Command that runs.
        command: String,
    },
    /// A stage begins or tells its result: what, in a few words.
    Stage {
        /// Package that is worked on.
        unit: String,
        /// Which stage.
        stage: Stage,
        /// What it does or found.
        text: String,
        /// Whether it only tells what goes on for now, such as a download; left out where not.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        passing: bool,
    },
    /// A decision or fact with its source.
    Note {
        /// Package that is worked on, if one.
        unit: Option<String>,
        /// The fact.
        text: String,
    },
    /// Something that may hurt, but does not stop.
    Warning {
        /// Package that is worked on, if one.
        unit: Option<String>,
        /// What may hurt.
        text: String,
    },
    /// A lock that another process holds is waited for.
    Waiting {
        /// For whom, how long at most, and which lock.
        text: String,
    },
    /// How far a build is.
    Progress {
        /// Package that is built.
        unit: String,
        /// Finished steps.
        done: u32,
        /// All steps known so far; 0 while unknown.
        total: u32,
        /// Source that a compiler works on or has just finished.
        file: String,
        /// Seconds that this source has taken so far.
        file_seconds: u64,
        /// Seconds since the build began.
        seconds: u64,
        /// Memory of all its processes, in bytes.
        memory: u64,
    },
    /// A line that the build system has printed; told only where everything is wanted (`-v`).
    Output {
        /// Unit that is built.
        unit: String,
        /// The line, without its end.
        line: String,
    },
    /// The units of this run, in order.
    Units {
        /// Every unit, those included that nothing can satisfy.
        units: Vec<Planned>,
    },
    /// A unit has ended, or will not begin.
    Unit(Ended),
    /// One error.
    Error(ErrorMessage),
    /// Why the build of a unit failed, as far as its log tells; the error follows.
    Diagnosis {
        /// Package that was built.
        unit: String,
        /// What the log says.
        diagnosis: Box<Diagnosis>,
    },
    /// A unit is done: the verified artifact.
    Artifact(Box<Summary>),
    /// Last message of every run.
    Finish {
        /// Exit code.
        exit: u8,
        /// Milliseconds since the start.
        milliseconds: u64,
    },
}

/// A stage of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Reading the recipe.
    Recipe,
    /// Choosing the GPU targets.
    Targets,
    /// Finding or provisioning the toolchain.
    Toolchain,
    /// Fetching the source.
    Source,
    /// Checking everything that is knowable before compiling.
    Preflight,
    /// Looking the key up.
    Cache,
    /// Running the build system.
    Build,
    /// Judging the artifact.
    Verify,
}

impl Stage {
    /// The word that leads the stage's line on a terminal.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Recipe => "Recipe",
            Self::Targets => "Targets",
            Self::Toolchain => "Toolchain",
            Self::Source => "Source",
            Self::Preflight => "Preflight",
            Self::Cache => "Cache",
            Self::Build => "Build",
            Self::Verify => "Verify",
        }
    }
}

impl Event {
    /// The same event, told of the unit `id`: stages know their package only, and one package may be several units.
    #[must_use]
    pub fn of_unit(mut self, id: &str) -> Self {
        match &mut self {
            Self::Stage { unit, .. }
            | Self::Progress { unit, .. }
            | Self::Output { unit, .. }
            | Self::Diagnosis { unit, .. } => id.clone_into(unit),
            Self::Note { unit, .. } | Self::Warning { unit, .. } => *unit = Some(id.to_owned()),
            Self::Error(error) => error.unit = Some(id.to_owned()),
            Self::Artifact(summary) => id.clone_into(&mut summary.unit),
            Self::Start { .. } | Self::Waiting { .. } | Self::Units { .. } | Self::Unit(_) | Self::Finish { .. } => {}
        }
        self
    }
}

/// A problem as a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ErrorMessage {
    /// Unit that it stopped, if one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Stable code.
    pub code: String,
    /// What went wrong.
    pub message: String,
    /// Where it stands, if in a text.
    pub location: Option<Location>,
    /// The evidence.
    pub why: Vec<String>,
    /// The mends, best first.
    pub help: Vec<String>,
    /// Exit code of a process that stops on this.
    pub exit: u8,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Location {
    /// File, flag or variable.
    pub origin: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub label: String,
}

impl From<&Problem> for ErrorMessage {
    fn from(problem: &Problem) -> Self {
        Self {
            unit: None,
            code: problem.code().to_owned(),
            message: problem.message().to_owned(),
            location: problem.snippet().map(Location::from),
            why: problem.evidence().to_vec(),
            help: problem.mends().to_vec(),
            exit: problem.exit().code(),
        }
    }
}

impl From<&Snippet> for Location {
    fn from(snippet: &Snippet) -> Self {
        let before = snippet.text.get(..snippet.range.start).unwrap_or(&snippet.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            origin: snippet.origin.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            label: snippet.label.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_counts_lines_and_characters() {
        let text = "a = 1\nä = x".to_owned();
        let at = text.find('x').unwrap();
        let snippet = Snippet { origin: "f".into(), text, range: at..at + 1, label: String::new() };
        let location = Location::from(&snippet);
        assert_eq!((location.line, location.column), (2, 5));
    }

    #[test]
    fn the_committed_message_schema_is_what_the_code_says() {
        crate::schema_check::<Event>("schemas/messages.schema.json");
    }
}
