//! `inspect` and `verify`: questions about finished files.

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

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Wheels or libraries
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<Utf8PathBuf>,
    /// Archs that every file must hold, such as "8.6;9.0+PTX"
    #[arg(long, short, value_name = "LIST", required = true)]
    pub expect: String,
    /// Archs beyond the expected ones fail, too
    #[arg(long)]
    pub strict: bool,
}
