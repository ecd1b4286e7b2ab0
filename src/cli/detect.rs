//! `detect`: the GPUs of this machine, or of a fleet's reports.

use camino::Utf8PathBuf;
use clap::Args;

use super::path;

/// Arguments of `detect`.
#[derive(Debug, Args)]
pub struct DetectArgs {
    /// Unite reports written by `detect --json` on other machines, instead of looking at this one
    #[arg(long, value_name = "REPORT", value_parser = path, num_args = 1.., conflicts_with = "method")]
    pub merge: Vec<Utf8PathBuf>,
    /// Ask in this way only
    #[arg(long, value_name = "METHOD", value_parser = ["nvml", "nvidia-smi", "pci", "device-tree", "name"])]
    pub method: Option<String>,
}
