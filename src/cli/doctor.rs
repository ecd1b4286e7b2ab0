//! `doctor`: this machine and what is in the way of a build.

use clap::Args;

use super::build::Aim;
use super::word;
use crate::domain::problem::Problem;
use crate::pipeline::Request;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Recipes, as `build` takes them, to say what would be chosen for each [default: a plain torch extension]
    #[arg(value_name = "RECIPE", value_parser = word)]
    pub recipes: Vec<String>,
    /// For which GPUs and with what.
    #[command(flatten)]
    pub aim: Aim,
    /// Judge as without a network
    #[arg(long, help_heading = "Toolchain")]
    pub offline: bool,
}

impl DoctorArgs {
    /// The request to the pipeline; installs nothing.
    ///
    /// # Errors
    /// A version named twice.
    pub fn request(&self) -> Result<Request, Problem> {
        Ok(Request { dry: true, offline: self.offline, ..self.aim.request()? })
    }
}
