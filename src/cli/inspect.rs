//! `inspect`: the GPU code in finished files.

use camino::Utf8PathBuf;
use clap::Args;

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Libraries, objects, archives, cubins, fatbins, wheels
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<Utf8PathBuf>,
    /// List every kernel with its registers and memory
    #[arg(long)]
    pub kernels: bool,
    /// Search sections where no loader looks, too
    #[arg(long)]
    pub scan_all: bool,
}
