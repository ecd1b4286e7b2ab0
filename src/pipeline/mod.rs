//! Joins the effects: one unit from recipe to verified artifact.
//!
//! The stages do not know one another; this is where a value of one becomes the input of the next.

pub mod aim;
pub mod artifact;
pub mod budget;
pub mod build;
pub mod detect;
pub mod doctor;
pub mod env;
pub mod explain;
mod gpu_check;
mod identity;
pub mod judge;
pub mod launch;
pub mod load;
pub mod made;
pub mod output;
pub mod plan;
pub mod prepare;
mod site;
pub mod source;
pub mod toolchain;
pub mod units;
pub mod verify;
mod watch;

use camino::{Utf8Path, Utf8PathBuf};

use crate::report::{Event, Stage};
use crate::sys::Env;

/// What a user asks of one run, flags already read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of one command line")]
pub struct Request {
    /// `--arch` values.
    pub archs: Vec<String>,
    /// `--gpu` values.
    pub gpus: Vec<String>,
    /// `--profile`.
    pub profile: Option<String>,
    /// `--cuda`.
    pub cuda: Option<String>,
    /// `--torch`.
    pub torch: Option<String>,
    /// `--python`.
    pub python: Option<String>,
    /// `--cc`.
    pub cc: Option<String>,
    /// `-j`.
    pub jobs: Option<u32>,
    /// `--offline`.
    pub offline: bool,
    /// Look only: provision nothing and fetch nothing.
    pub dry: bool,
    /// `--no-cache`.
    pub no_cache: bool,
    /// How the user knows `archs`, where not as `--arch`.
    pub archs_from: Option<String>,
    /// `--no-launcher`.
    pub no_launcher: bool,
    /// `--timings`: the page's file, empty for the one of its own; `None` for no page.
    pub timings: Option<Utf8PathBuf>,
    /// `--out`.
    pub out: Utf8PathBuf,
}

/// Where a run happens and who is told.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The captured environment.
    pub env: &'a Env,
    /// Root of all caches.
    pub cache_root: &'a Utf8Path,
    /// Gets every event.
    pub tell: &'a (dyn Fn(Event) + Sync),
}

impl Context<'_> {
    /// Tells what a stage found.
    pub fn stage(&self, unit: &str, stage: Stage, text: impl Into<String>) {
        (self.tell)(Event::Stage { unit: unit.to_owned(), stage, text: text.into(), passing: false });
    }

    /// Tells what a stage is at, which nobody needs to know later.
    pub fn step(&self, unit: &str, stage: Stage, text: impl Into<String>) {
        (self.tell)(Event::Stage { unit: unit.to_owned(), stage, text: text.into(), passing: true });
    }

    /// Tells a fact.
    pub fn note(&self, unit: &str, text: impl Into<String>) {
        (self.tell)(Event::Note { unit: Some(unit.to_owned()), text: text.into() });
    }

    /// Tells a risk.
    pub fn warn(&self, unit: &str, text: impl Into<String>) {
        (self.tell)(Event::Warning { unit: Some(unit.to_owned()), text: text.into() });
    }
}
